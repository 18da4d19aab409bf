/* SPDX-License-Identifier: BSD-3-Clause */

/* Bringing a device up and down: reset, limits, INIT_HCA, tables, event queues. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi_reason.h"
#include "driver_types.h"

HCA_REASON_DEFINE(driver_fail, hca_driver_reason, 256, 0)

int
driver_all_used(int err, const char *kind, uint32_t count, const char *limit)
{
	return driver_fail(err, "all %u %s of the device are in use: destroy some, or raise %s",
			   count, kind, limit);
}

int
driver_no_memory(const char *object, size_t bytes)
{
	return driver_fail(-ENOMEM, HCA_NO_MEMORY("the device's process"), object, bytes);
}

#define ASYNC_EQ_MAX_LOG 12u
#define XRCDS_LOG 14u

static uint32_t
limit_log(uint32_t wanted, uint32_t device)
{
	return wanted != 0 && wanted < device ? wanted : device;
}

/* The arena is one piece, so that one window covers all of the driver's memory. */
static int
alloc_arena(struct hca_driver *drv, size_t bytes)
{
	drv->arena_bytes = bytes;
	if (drv->hw.alloc_mem != NULL) {
		drv->arena = drv->hw.alloc_mem(drv->hw.mem_arg, bytes, &drv->arena_bus);
	} else {
		void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		drv->arena = mem != MAP_FAILED ? mem : NULL;
		drv->arena_bus = (uintptr_t)mem;
	}
	if (drv->arena == NULL)
		return driver_no_memory("the driver", bytes);
	if (drv->hw.dma_attach == NULL)
		return 0;
	return drv->hw.dma_attach(drv->hw.dma_arg, DRIVER_DOMAIN, drv->arena_bus, bytes);
}

static void
free_arena(struct hca_driver *drv)
{
	if (drv->arena == NULL)
		return;
	if (drv->hw.dma_detach != NULL)
		drv->hw.dma_detach(drv->hw.dma_arg, DRIVER_DOMAIN, drv->arena_bus,
				   drv->arena_bytes);
	if (drv->hw.free_mem != NULL)
		drv->hw.free_mem(drv->hw.mem_arg, drv->arena, drv->arena_bytes);
	else
		munmap(drv->arena, drv->arena_bytes);
	drv->arena = NULL;
}

/* The mailboxes come first: the limits that determine the other sizes are read through them. */
static void
place_mailboxes(struct hca_driver *drv)
{
	drv->mailbox_in = drv->arena;
	drv->mailbox_in_bus = drv->arena_bus;
	drv->mailbox_out = drv->arena + HCA_MBOX_SIZE;
	drv->mailbox_out_bus = drv->arena_bus + HCA_MBOX_SIZE;
}

static int
query_limits(struct hca_driver *drv)
{
	int err = driver_command_out(drv, HCA_CMD_QUERY_DEV_LIM, 0);

	if (err != 0)
		return err;
	memcpy(&drv->lim, drv->mailbox_out, sizeof(drv->lim));
	err = driver_command_out(drv, HCA_CMD_QUERY_ADAPTER, 0);
	if (err != 0)
		return err;
	memcpy(&drv->adapter, drv->mailbox_out, sizeof(drv->adapter));
	return 0;
}

static int
choose_sizes(struct hca_driver *drv)
{
	struct hca_driver_config *config = &drv->config;
	uint32_t max = hca_be32_to_cpu(drv->lim.max_log);
	uint32_t mtts = HCA_LIM_MTTS_LOG(hca_be32_to_cpu(drv->lim.mr));
	uint32_t srqs = HCA_LIM_SRQS_LOG(hca_be32_to_cpu(drv->lim.rd_atomic));
	uint32_t async_log;

	config->log_num_srqs = limit_log(config->log_num_srqs, srqs);
	config->log_num_qps = limit_log(config->log_num_qps, HCA_LIM_QPS_LOG(max));
	config->log_num_cqs = limit_log(config->log_num_cqs, HCA_LIM_CQS_LOG(max));
	config->log_num_mpts = limit_log(config->log_num_mpts, HCA_LIM_MPTS_LOG(max));
	config->log_num_mtts = limit_log(config->log_num_mtts, mtts);
	if (config->log_num_qps < 2 || config->log_num_qps > 23 || config->log_num_cqs < 1 ||
	    config->log_num_cqs > 23 || config->log_num_srqs > 23 || config->log_num_mpts < 3 ||
	    config->log_num_mpts > HCA_KEY_INDEX_BITS || config->log_num_mtts > 31 ||
	    HCA_LIM_EQS_LOG(max) < 1)
		return driver_fail(-EIO, "the device's limits make no sense");

	async_log = config->log_num_qps < ASYNC_EQ_MAX_LOG ? config->log_num_qps : ASYNC_EQ_MAX_LOG;
	drv->num_eqs = 1u << (HCA_LIM_EQS_LOG(max) & 31);
	if (drv->num_eqs > EQ_COUNT)
		drv->num_eqs = EQ_COUNT;
	for (uint32_t eqn = 0; eqn < drv->num_eqs; eqn++)
		drv->eq[eqn].log_size =
			config->log_eq_size ? config->log_eq_size : config->log_num_cqs;
	drv->eq[EQ_ASYNC].log_size = config->log_eq_size ? config->log_eq_size : async_log;
	drv->icm[ICM_QPC] = (struct driver_icm){.entry_bytes = HCA_QPC_SIZE,
						.log_entries = config->log_num_qps};
	drv->icm[ICM_CQC] = (struct driver_icm){.entry_bytes = HCA_CQC_SIZE,
						.log_entries = config->log_num_cqs};
	drv->icm[ICM_EQC] = (struct driver_icm){.entry_bytes = HCA_EQC_SIZE,
						.log_entries = HCA_LIM_EQS_LOG(max)};
	drv->icm[ICM_SRQC] = (struct driver_icm){.entry_bytes = HCA_SRQC_SIZE,
						 .log_entries = config->log_num_srqs};
	drv->icm[ICM_MPT] = (struct driver_icm){.entry_bytes = HCA_MPT_SIZE,
						.log_entries = config->log_num_mpts};
	drv->icm[ICM_MTT] = (struct driver_icm){.entry_bytes = HCA_MTT_SIZE,
						.log_entries = config->log_num_mtts};
	return 0;
}

/* Mailboxes, EQs and ICM, one after another */
static int
place_tables(struct hca_driver *drv)
{
	uint64_t offset = 2 * HCA_MBOX_SIZE;
	uint64_t eq_offset[EQ_COUNT];

	for (uint32_t eqn = 0; eqn < drv->num_eqs; eqn++) {
		uint64_t bytes = (uint64_t)HCA_EQE_SIZE << drv->eq[eqn].log_size;

		eq_offset[eqn] = offset;
		offset += (bytes + DRIVER_PAGE - 1) / DRIVER_PAGE * DRIVER_PAGE;
	}
	offset = driver_icm_layout(drv, offset);
	free_arena(drv);
	if (alloc_arena(drv, offset) != 0)
		return -ENOMEM;
	place_mailboxes(drv);
	for (uint32_t eqn = 0; eqn < drv->num_eqs; eqn++) {
		drv->eq[eqn].ring = (struct hca_eqe *)(drv->arena + eq_offset[eqn]);
		drv->eq[eqn].bus = drv->arena_bus + eq_offset[eqn];
	}
	return driver_icm_alloc(drv);
}

static int
init_numbers(struct hca_driver *drv)
{
	const struct hca_driver_config *config = &drv->config;
	uint32_t uars = hca_be32_to_cpu(drv->lim.num_uars);
	int err;

	if (uars < 2 || uars > HCA_UAR_PAGES)
		uars = HCA_UAR_PAGES;
	drv->pipes = hca_be32_to_cpu(drv->lim.pipes);
	if (drv->pipes == 0 || drv->pipes > HCA_UAR_PIPES_MAX)
		drv->pipes = 1;
	if (driver_random_init(&drv->random, config->seed) != 0)
		return driver_fail(-EIO, "no random numbers from the system");
	err = driver_ids_init(&drv->qp_ids, 0, 1u << config->log_num_qps);
	if (err == 0)
		err = driver_ids_init(&drv->cq_ids, 1, 1u << config->log_num_cqs);
	if (err == 0)
		err = driver_ids_init(&drv->srq_ids, 0, 1u << config->log_num_srqs);
	if (err == 0)
		err = driver_ids_init(&drv->xrcd_ids, 1, 1u << XRCDS_LOG);
	if (err == 0)
		err = driver_ids_init(&drv->mpt_ids, 1, 1u << config->log_num_mpts);
	if (err == 0)
		err = driver_ids_init(&drv->uar_ids, 1, uars);
	if (err == 0)
		err = driver_ranges_init(&drv->mtt_ranges, config->log_num_mtts);
	if (err == 0)
		err = driver_ub_init(drv);
	drv->qps = calloc(drv->qp_ids.count, sizeof(*drv->qps));
	drv->srqs = calloc(drv->srq_ids.count, sizeof(*drv->srqs));
	drv->cqs = calloc(drv->cq_ids.count, sizeof(*drv->cqs));
	drv->mrs = calloc(drv->mpt_ids.count, sizeof(*drv->mrs));
	if (err != 0 || drv->qps == NULL || drv->cqs == NULL || drv->srqs == NULL ||
	    drv->mrs == NULL)
		return driver_no_memory("the driver's tables",
					((size_t)drv->qp_ids.count + drv->srq_ids.count +
					 drv->cq_ids.count + drv->mpt_ids.count) *
						sizeof(void *));
	return 0;
}

static int
init_hca(struct hca_driver *drv)
{
	const struct driver_icm *icm = drv->icm;
	struct hca_mbox_init_hca *mailbox = driver_mailbox(drv);
	int err;

	mailbox->qpc_base =
		hca_cpu_to_be64(HCA_INIT_MAKE(icm[ICM_QPC].virt, icm[ICM_QPC].log_entries));
	mailbox->cqc_base =
		hca_cpu_to_be64(HCA_INIT_MAKE(icm[ICM_CQC].virt, icm[ICM_CQC].log_entries));
	mailbox->eqc_base =
		hca_cpu_to_be64(HCA_INIT_MAKE(icm[ICM_EQC].virt, icm[ICM_EQC].log_entries));
	mailbox->srqc_base =
		hca_cpu_to_be64(HCA_INIT_MAKE(icm[ICM_SRQC].virt, icm[ICM_SRQC].log_entries));
	mailbox->mpt_base =
		hca_cpu_to_be64(HCA_INIT_MAKE(icm[ICM_MPT].virt, icm[ICM_MPT].log_entries));
	mailbox->mtt_base = hca_cpu_to_be64(icm[ICM_MTT].virt);
	err = driver_command_in(drv, HCA_CMD_INIT_HCA, 0);
	drv->initialized = err == 0;
	return err;
}

static int
bring_up(struct hca_driver *drv)
{
	int err = alloc_arena(drv, 2 * HCA_MBOX_SIZE);

	if (err != 0)
		return err;
	place_mailboxes(drv);
	err = driver_reset(drv);
	if (err == 0)
		err = query_limits(drv);
	if (err == 0)
		err = choose_sizes(drv);
	if (err == 0)
		err = place_tables(drv);
	if (err == 0)
		err = init_numbers(drv);
	if (err == 0)
		err = init_hca(drv);
	if (err == 0)
		err = driver_eq_create_all(drv);
	if (err == 0)
		err = driver_addr_init(drv);
	return err;
}

static void
tear_down(struct hca_driver *drv)
{
	driver_eq_destroy_all(drv);
	if (drv->initialized)
		driver_command_bare(drv, HCA_CMD_CLOSE_HCA, 0, 0, 0);
	driver_icm_free(drv);
	free_arena(drv);
	driver_ids_free(&drv->qp_ids);
	driver_ids_free(&drv->cq_ids);
	driver_ids_free(&drv->srq_ids);
	driver_ids_free(&drv->xrcd_ids);
	driver_ids_free(&drv->mpt_ids);
	driver_ids_free(&drv->uar_ids);
	driver_ranges_free(&drv->mtt_ranges);
	driver_ub_free(drv);
	free(drv->qps);
	free(drv->srqs);
	free(drv->cqs);
	free(drv->mrs);
	pthread_mutex_destroy(&drv->event_lock);
	driver_lock_destroy(&drv->lock);
	free(drv);
}

int
hca_driver_create(const struct hca_hw *hw, const struct hca_driver_config *config,
		  struct hca_driver **out)
{
	struct hca_driver *drv = calloc(1, sizeof(*drv));
	int err;

	if (drv == NULL)
		return driver_no_memory("a driver", sizeof(*drv));
	drv->hw = *hw;
	if (config != NULL)
		drv->config = *config;
	driver_lock_init(&drv->lock);
	pthread_mutex_init(&drv->event_lock, NULL);
	driver_lock_take(&drv->lock);
	err = bring_up(drv);
	driver_lock_give(&drv->lock);
	if (err != 0) {
		tear_down(drv);
		return err;
	}
	*out = drv;
	return 0;
}

void
hca_driver_destroy(struct hca_driver *drv)
{
	while (drv->clients != NULL)
		hca_client_close(drv->clients);
	tear_down(drv);
}

bool
hca_driver_dead(const struct hca_driver *drv)
{
	return __atomic_load_n(&drv->dead, __ATOMIC_RELAXED);
}

/* Descriptors of the composition itself. */
static void
take_from_usage(const struct hca_client *host, struct hca_driver_usage *usage)
{
	usage->qps -= (uint32_t)host->count[DRIVER_QPS];
	usage->cqs -= (uint32_t)host->count[DRIVER_CQS];
	for (const struct driver_mr *mr = host->mrs; mr != NULL; mr = mr->next) {
		usage->mrs--;
		usage->mtts -= mr->mtts;
	}
}

void
hca_driver_usage(struct hca_driver *drv, struct hca_driver_usage *usage)
{
	memset(usage, 0, sizeof(*usage));
	driver_lock_take(&drv->lock);
	usage->mrs = drv->mpt_ids.used;
	usage->cqs = drv->cq_ids.used;
	usage->qps = drv->qp_ids.used;
	usage->srqs = drv->srq_ids.used;
	usage->xrcds = drv->xrcd_ids.used;
	usage->mtts = drv->mtt_ranges.used;
	/*
	 * the object and malloc's header, its entry in the table, the tag of its number, the
	 * context
	 */
	usage->qp_bytes = sizeof(struct driver_qp) + 2 * sizeof(void *) + sizeof(*drv->qps) +
			  sizeof(*drv->qp_ids.tag) + HCA_QPC_SIZE;
	for (uint32_t eqn = 0; eqn < drv->num_eqs; eqn++) {
		if (drv->eq[eqn].mr == NULL)
			continue;
		usage->mrs--;
		usage->mtts -= drv->eq[eqn].mr->mtts;
	}
	for (const struct hca_client *c = drv->clients; c != NULL; c = c->next) {
		if (c->host) {
			take_from_usage(c, usage);
			continue;
		}
		usage->clients++;
		usage->pds += (uint32_t)c->count[DRIVER_PDS];
		usage->channels += c->count_channels - 1; /* without the asynchronous one */
	}
	driver_lock_give(&drv->lock);
}

uint64_t
hca_driver_node_guid(const struct hca_driver *drv)
{
	return hca_be64_to_cpu(drv->adapter.board_id);
}

/* parameter 0: the algorithm */
static int
set_congestion(struct hca_driver *drv, uint32_t parameter, uint32_t value)
{
	int err;

	if (!(hca_be32_to_cpu(drv->lim.caps) & HCA_CAP_ECN))
		return driver_fail(-EOPNOTSUPP, "the device cannot change its congestion control");
	driver_lock_take(&drv->lock);
	err = driver_command_bare(drv, HCA_CMD_SET_CONGESTION, 0, parameter, value);
	driver_lock_give(&drv->lock);
	return err;
}

int
hca_driver_set_congestion_parameter(struct hca_driver *drv, uint32_t number, uint32_t value)
{
	int err = number != 0 ? set_congestion(drv, number, value) : -EINVAL;

	if (err == -EINVAL)
		return driver_fail(err,
				   "the device has no parameter %u of congestion control that can "
				   "be %u",
				   number, value);
	return err;
}

int
hca_driver_set_congestion(struct hca_driver *drv, uint32_t number)
{
	int err = set_congestion(drv, 0, number);

	if (err == -EINVAL)
		return driver_fail(err, "the device has no congestion control %u", number);
	if (err == -ENOMEM)
		return driver_fail(err, "no memory for the state of congestion control: raise "
					"[memory] size_mb");
	return err;
}
