/* SPDX-License-Identifier: BSD-3-Clause */

/* The driver with a device made of arrays: commands, resources, ownership, events, failures. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi_ctx.h"
#include "fake_hw.h"
#include "../../set_pkey.h"

#define PAGE 4096u
#define MEM_PAGES 64u

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client;
static uint8_t *memory;
static int async_fd;

static const uint8_t my_gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 77, 0, 1};
static const uint8_t peer_gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 77, 0, 2};
static const uint8_t my_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t peer_mac[6] = {2, 1, 3, 5, 7, 9};

static int
setup(void **state)
{
	struct hca_driver_config config = {.timeout_ms = 50, .quota = {.qps = 3, .mrs = 40}};

	fake = fake_hw_create();
	memory = aligned_alloc(PAGE, MEM_PAGES * PAGE);
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(hca_client_open(drv, NULL, &client), 0);
	assert_int_equal(hca_client_attach(client, (uintptr_t)memory, MEM_PAGES * PAGE), 0);
	assert_int_equal(call_async_fd(client, &async_fd), 0);
	fcntl(async_fd, F_SETFL, O_NONBLOCK);
	return 0;
}

static int
teardown(void **state)
{
	hca_driver_destroy(drv);
	if (!fake->mute) {
		for (int i = 0; i < 4; i++)
			assert_int_equal(fake->live[i], 0);
	}
	assert_int_equal(fake->windows, 0);
	close(async_fd);
	free(memory);
	fake_hw_destroy(fake);
	return 0;
}

static uint32_t
make_pd(void)
{
	uint32_t pdn;

	assert_int_equal(hca_client_call(client, HCA_CTL_ALLOC_PD, NULL, &pdn, NULL), 0);
	return pdn;
}

static uint32_t
make_cq(uint32_t channel)
{
	struct hca_ctl_cq cq = {.addr = (uintptr_t)memory, .log_size = 4, .channel = channel};
	uint32_t cqn;

	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_CQ, &cq, &cqn, NULL), 0);
	return cqn;
}

static int
try_qp(uint32_t pdn, uint32_t cqn, uint32_t *qpn)
{
	struct hca_ctl_qp qp = {
		.sq_addr = (uintptr_t)memory + PAGE,
		.rq_addr = (uintptr_t)memory + 2 * PAGE,
		.pdn = pdn,
		.send_cqn = cqn,
		.recv_cqn = cqn,
		.log_sq = 4,
		.log_sq_stride = 6,
		.log_rq = 3,
		.log_rq_stride = 7,
	};

	return hca_client_call(client, HCA_CTL_CREATE_QP, &qp, qpn, NULL);
}

static uint32_t
make_qp(uint32_t pdn, uint32_t cqn)
{
	uint32_t qpn;

	assert_int_equal(try_qp(pdn, cqn, &qpn), 0);
	return qpn;
}

static void
test_bring_up(void **state)
{
	static const uint32_t order[] = {
		HCA_CMD_QUERY_DEV_LIM,
		HCA_CMD_QUERY_ADAPTER,
		HCA_CMD_INIT_HCA,
		HCA_CMD_MAP_ICM,
	};
	const struct hca_mbox_init_hca *init = (void *)fake_last(fake, HCA_CMD_INIT_HCA)->mailbox;
	const struct fake_command *mask = fake_last(fake, HCA_CMD_MAP_EQ);
	struct hca_ctl_info info;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		assert_int_equal(fake->log[i].op, order[i]);
	for (uint32_t i = 0; i < fake->count; i++)
		assert_false(fake->log[i].event);
	assert_int_equal(HCA_INIT_LOG(hca_be64_to_cpu(init->qpc_base)), 10);
	assert_int_equal(HCA_INIT_LOG(hca_be64_to_cpu(init->mpt_base)), 12);
	assert_int_equal(mask->in_modifier, 1);
	assert_int_equal(mask->in_param & 1, 0); /* completion events are not enabled here */
	assert_int_equal(hca_client_call(client, HCA_CTL_INFO, NULL, &info, NULL), 0);
	assert_int_equal(info.board_id, 0x42);
	assert_int_equal(info.vendor_id, 0x123456);
	assert_int_equal(info.vendor_part_id, 0x789);
	assert_int_equal(info.hw_ver, 7);
	assert_true(info.fw_ver == HCA_FW_VER(1, 2, 3));
	assert_int_equal(info.max_qps, 3);
	assert_int_equal(info.log_num_qps, 10);
	assert_int_equal(info.uar_page, 1);
	assert_ptr_equal(hca_client_uar(client), fake->bar2 + 4096);
}

/* ICM chunks are mapped at first use, once, and cover all entries in use. */
static void
test_icm_at_first_use(void **state)
{
	uint32_t pdn = make_pd();
	uint32_t cqn = make_cq(HCA_CTL_NO_CHANNEL);
	uint32_t before, qpn;

	qpn = make_qp(pdn, cqn);
	before = fake->count;
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_QP, qpn), 0);
	qpn = make_qp(pdn, cqn);
	for (uint32_t i = before; i < fake->count; i++)
		assert_int_not_equal(fake->log[i % FAKE_LOG].op, HCA_CMD_MAP_ICM);
}

static void
test_region_bytes(void **state)
{
	uint32_t pdn = make_pd();
	uint64_t pages[6];
	struct hca_ctl_mr mr = {
		.va = 0x10000800,
		.length = 5 * PAGE,
		.page_size = PAGE,
		.npages = 6,
		.pdn = pdn,
		.access = HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_READ,
	};
	const struct hca_mbox_write_mtt *mtt;
	const struct hca_mpt *mpt;
	struct hca_ctl_keys keys, again;

	for (int i = 0; i < 6; i++)
		pages[i] = (uintptr_t)memory + (uint64_t)(5 - i) * PAGE;
	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys,
					 &(struct hca_ctl_extra){.pages = pages}),
			 0);
	mtt = (void *)fake_last(fake, HCA_CMD_WRITE_MTT)->mailbox;
	mpt = (void *)fake_last(fake, HCA_CMD_SW2HW_MPT)->mailbox;
	assert_int_equal(fake_last(fake, HCA_CMD_WRITE_MTT)->in_modifier, 6);
	assert_int_equal(hca_be64_to_cpu(mtt->slot[3]), pages[0]); /* groups of four */
	assert_int_equal(hca_be64_to_cpu(mtt->slot[0]), pages[3]);
	assert_int_equal(hca_be64_to_cpu(mtt->slot[7]), pages[4]);
	assert_int_equal(hca_be64_to_cpu(mtt->slot[6]), pages[5]);
	assert_int_equal(hca_be32_to_cpu(mpt->flags), HCA_MPT_FLAG_REGION | mr.access);
	assert_int_equal(hca_be32_to_cpu(mpt->key), keys.lkey);
	assert_int_equal(hca_be64_to_cpu(mpt->start), mr.va);
	assert_int_equal(hca_be32_to_cpu(mpt->first_byte_offset), 0x800);
	assert_int_equal(hca_be32_to_cpu(mpt->mtt_sz), 6);
	assert_int_equal(hca_mpt_mtt_seg(mpt), hca_be64_to_cpu(mtt->start_index));
	assert_int_equal(HCA_PD_DOMAIN(hca_be32_to_cpu(mpt->pd)), 1);
	assert_int_equal(fake_last(fake, HCA_CMD_SW2HW_MPT)->in_modifier, HCA_KEY_INDEX(keys.lkey));
	assert_int_not_equal(HCA_KEY_INDEX(keys.lkey), 0);

	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, pdn), -EBUSY);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, keys.lkey ^ 1u << 25), -EINVAL);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, keys.lkey), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, keys.lkey), -EINVAL);
	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &again,
					 &(struct hca_ctl_extra){.pages = pages}),
			 0);
	assert_int_not_equal(again.lkey, keys.lkey);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, again.lkey), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, pdn), 0);
}

/* More entries than one mailbox holds, with the same page repeated */
static void
test_large_region(void **state)
{
	uint32_t pdn = make_pd();
	uint32_t n = 2 * HCA_WRITE_MTT_MAX + 5;
	uint64_t *pages = malloc(n * sizeof(*pages));
	struct hca_ctl_mr mr = {
		.va = 0x100000,
		.length = (uint64_t)n * PAGE,
		.page_size = PAGE,
		.npages = n,
		.pdn = pdn,
	};
	const struct fake_command *last;
	struct hca_ctl_keys keys;
	struct hca_driver_usage usage;

	for (uint32_t i = 0; i < n; i++)
		pages[i] = (uintptr_t)memory;
	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys,
					 &(struct hca_ctl_extra){.pages = pages}),
			 0);
	last = fake_last(fake, HCA_CMD_WRITE_MTT);
	assert_int_equal(last->in_modifier, 5);
	assert_int_equal(
		hca_be64_to_cpu(((struct hca_mbox_write_mtt *)last->mailbox)->start_index) % 1024,
		2 * HCA_WRITE_MTT_MAX);
	hca_driver_usage(drv, &usage);
	assert_int_equal(usage.mrs, 1);
	assert_int_equal(usage.mtts, n);
	assert_int_equal(call_drop(client, HCA_CTL_DEREG_MR, keys.lkey), 0);
	free(pages);
}

static void
test_refused_regions(void **state)
{
	uint32_t pdn = make_pd();
	uint64_t page = (uintptr_t)memory;
	struct hca_ctl_keys keys;
	struct hca_ctl_mr good = {
		.va = 0x1000,
		.length = 10,
		.page_size = PAGE,
		.npages = 1,
		.pdn = pdn,
	};
	struct hca_ctl_mr mr;
	uint32_t before = fake->count;

#define REFUSED(err, change) \
	do { \
		mr = good; \
		change; \
		assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys, \
						 &(struct hca_ctl_extra){.pages = &page}), \
				 err); \
	} while (0)
	REFUSED(-EINVAL, mr.length = 0); /* a list for it */
	REFUSED(-EINVAL, mr.va = UINT64_MAX - 3);
	REFUSED(-EINVAL, mr.shift = 1);
	REFUSED(-EINVAL, mr.shift = 2048);
	REFUSED(-EINVAL, mr.shift = -2 * PAGE + 4095);
	REFUSED(-EINVAL, (mr.va = 0x1ffb, mr.shift = -2 * PAGE));
	REFUSED(-EINVAL, mr.page_size = 2048);
	REFUSED(-EINVAL, mr.page_size = 5000);
	REFUSED(-EINVAL, mr.page_size = UINT64_C(1) << 31);
	REFUSED(-EINVAL, mr.npages = 2);
	REFUSED(-EINVAL, mr.length = PAGE + 1);
	REFUSED(-EINVAL, mr.pdn ^= 1 << 11);
	REFUSED(-EINVAL, mr.access = 1 << 10);
	REFUSED(-EOPNOTSUPP, mr.access = HCA_ACCESS_FLUSH_PERSISTENT);
	REFUSED(-EINVAL, page = (uintptr_t)memory + 8);
	REFUSED(-EPERM, page = (uintptr_t)memory + MEM_PAGES * PAGE);
	page = (uintptr_t)memory;
	REFUSED(-EPERM, (mr.npages = 0, mr.va = (uintptr_t)memory - PAGE));
	REFUSED(-EPERM, (mr.npages = 0, mr.va = (uintptr_t)memory, mr.length = 65 * PAGE));
#undef REFUSED
	assert_int_equal(fake->count, before); /* no command was sent */
}

/* Fields that the driver owns: the client's values are ignored. */
static void
test_context_is_the_drivers(void **state)
{
	uint32_t pdn = make_pd();
	uint32_t cqn = make_cq(HCA_CTL_NO_CHANNEL);
	uint32_t qpn = make_qp(pdn, cqn);
	const struct fake_command *cmd;
	const struct hca_qpc *sent;
	struct hca_qpc qpc;

	memset(&qpc, 0xff, sizeof(qpc));
	qpc.opt_param_mask = hca_cpu_to_be32(HCA_QP_ATTR_PORT);
	assert_int_equal(call_modify_qp(client, qpn, HCA_CMD_RST2INIT_QPEE, &qpc), 0);
	cmd = fake_last(fake, HCA_CMD_RST2INIT_QPEE);
	sent = (void *)cmd->mailbox;
	assert_int_equal(cmd->in_modifier, qpn);
	assert_int_equal(hca_be32_to_cpu(sent->usr_page), 1);
	assert_int_equal(hca_be32_to_cpu(sent->flags) & HCA_QPC_PRIVILEGED, 0);
	assert_int_equal(hca_be32_to_cpu(sent->local_qpn), qpn);
	assert_int_equal(hca_be32_to_cpu(sent->pd), pdn);
	assert_int_equal(hca_be32_to_cpu(sent->cqn_snd), cqn);
	assert_int_equal(hca_be32_to_cpu(sent->cqn_rcv), cqn);
	assert_int_equal(hca_be32_to_cpu(sent->snd_wqe_len), 16 * 64);
	assert_int_equal(hca_be32_to_cpu(sent->rcv_wqe_len), 8 * 128);
	assert_int_equal(HCA_QPC_SERVICE(hca_be32_to_cpu(sent->flags)), HCA_ST_RC);
	assert_int_equal(HCA_QPC_SQ_STRIDE_LOG(hca_be32_to_cpu(sent->sizes)), 6);
	assert_int_equal(HCA_QPC_RQ_STRIDE_LOG(hca_be32_to_cpu(sent->sizes)), 7);
	assert_int_equal(sent->srqn, 0);
	assert_int_equal(call_modify_qp(client, qpn, HCA_CMD_CLOSE_HCA, &qpc), -EINVAL);
	assert_int_equal(call_modify_qp(client, qpn, HCA_CMD_RTR2RTS_QPEE, NULL), -EINVAL);
	assert_int_equal(call_modify_qp(client, qpn ^ 1u << 23, HCA_CMD_2ERR_QPEE, NULL), -EINVAL);
}

static void
test_addresses(void **state)
{
	uint32_t qpn = make_qp(make_pd(), make_cq(HCA_CTL_NO_CHANNEL));
	struct hca_qpc qpc = {.opt_param_mask = hca_cpu_to_be32(HCA_QP_ATTR_AV)};
	const struct hca_qpc *sent;
	struct hca_ctl_gid entry;

	memcpy(qpc.path.rgid, peer_gid, 16);
	assert_int_equal(call_modify_qp(client, qpn, HCA_CMD_INIT2RTR_QPEE, &qpc), -EINVAL);
	assert_int_equal(hca_driver_set_gid(drv, 0, my_gid, my_mac, 0xffff), 0);
	assert_int_equal(call_modify_qp(client, qpn, HCA_CMD_INIT2RTR_QPEE, &qpc), -EHOSTUNREACH);
	assert_non_null(strstr(hca_driver_reason(), "10.77.0.2"));
	assert_int_equal(hca_driver_set_neigh(drv, peer_gid, peer_mac), 0);
	assert_int_equal(call_modify_qp(client, qpn, HCA_CMD_INIT2RTR_QPEE, &qpc), 0);
	sent = (void *)fake_last(fake, HCA_CMD_INIT2RTR_QPEE)->mailbox;
	assert_int_equal(HCA_QPC_DMAC(hca_be32_to_cpu(sent->path.mac_lo),
				      hca_be32_to_cpu(sent->path.dmac_hi)),
			 0x020103050709);
	assert_int_equal(HCA_QPC_SMAC(hca_be32_to_cpu(sent->path.mac_lo),
				      hca_be32_to_cpu(sent->path.smac_hi)),
			 0x020000000001);
	assert_int_equal(hca_be32_to_cpu(sent->path.sip), 0x0a4d0001);
	assert_int_equal(hca_be32_to_cpu(sent->path.dip), 0x0a4d0002);
	assert_int_equal(hca_client_call(client, HCA_CTL_QUERY_GID, &(uint32_t){0}, &entry, NULL),
			 0);
	assert_memory_equal(entry.gid, my_gid, 16);
	assert_int_equal(hca_client_call(client, HCA_CTL_QUERY_GID, &(uint32_t){16}, &entry, NULL),
			 -EINVAL);
	assert_int_equal(hca_driver_set_gid(drv, 16, my_gid, my_mac, 0xffff), -EINVAL);
}

static void
test_busy_order_and_quota(void **state)
{
	uint32_t pdn = make_pd();
	uint32_t cqn = make_cq(HCA_CTL_NO_CHANNEL);
	uint32_t qpn[3], more;
	struct hca_qpc qpc = {0};

	for (int i = 0; i < 3; i++) {
		qpn[i] = make_qp(pdn, cqn);
		assert_true(qpn[i] > 1 && qpn[i] < 0xffffff);
	}
	assert_int_equal(try_qp(pdn, cqn, &more), -ENOMEM);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_CQ, cqn), -EBUSY);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, pdn), -EBUSY);
	assert_int_equal(call_modify_qp(client, qpn[0], HCA_CMD_RST2INIT_QPEE, &qpc), 0);
	assert_int_equal(fake->live[LIVE_QP], 1);
	fake->fail_op = HCA_CMD_ERR2RST_QPEE;
	fake->fail_status = HCA_STAT_RESOURCE_BUSY;
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_QP, qpn[0]), -EBUSY);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_QP, qpn[0]), 0);
	assert_int_equal(fake->live[LIVE_QP], 0);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_QP, qpn[0]), -EINVAL);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_QP, qpn[1]), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_QP, qpn[2]), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_CQ, cqn), 0);
	assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, pdn), 0);
}

/* A client cannot use any object of another. */
static void
test_ownership(void **state)
{
	uint32_t pdn = make_pd();
	uint32_t cqn = make_cq(HCA_CTL_NO_CHANNEL);
	uint32_t qpn = make_qp(pdn, cqn);
	struct hca_ctl_mr mr = {.va = (uintptr_t)memory, .length = 8, .pdn = pdn};
	struct hca_client *other;
	struct hca_ctl_keys keys;
	struct hca_qpc qpc = {0};

	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys, NULL), 0);
	assert_int_equal(hca_client_open(drv, NULL, &other), 0);
	assert_int_equal(call_drop(other, HCA_CTL_DEREG_MR, keys.lkey), -EINVAL);
	assert_int_equal(call_drop(other, HCA_CTL_DESTROY_QP, qpn), -EINVAL);
	assert_int_equal(call_modify_qp(other, qpn, HCA_CMD_RST2INIT_QPEE, &qpc), -EINVAL);
	assert_int_equal(hca_client_call(other, HCA_CTL_QUERY_QP, &(uint32_t){qpn}, &qpc, NULL),
			 -EINVAL);
	assert_int_equal(call_drop(other, HCA_CTL_DESTROY_CQ, cqn), -EINVAL);
	assert_int_equal(call_drop(other, HCA_CTL_DEALLOC_PD, pdn), -EINVAL);
	assert_int_equal(hca_client_call(other, HCA_CTL_REG_MR, &mr, &keys, NULL), -EINVAL);
	assert_int_equal(hca_client_call(other, HCA_CTL_ALLOC_PD, NULL, &mr.pdn, NULL), 0);
	assert_int_equal(hca_client_call(other, HCA_CTL_REG_MR, &mr, &keys, NULL), -EPERM);
	hca_client_close(other);
}

/* Closing a client destroys all its objects. */
static void
test_close_frees_all(void **state)
{
	struct hca_ctl_mr mr = {.va = (uintptr_t)memory, .length = 8, .pdn = make_pd()};
	uint32_t qpn = make_qp(mr.pdn, make_cq(HCA_CTL_NO_CHANNEL));
	struct hca_driver_usage usage;
	struct hca_ctl_keys keys;
	struct hca_qpc qpc = {0};

	assert_int_equal(hca_client_call(client, HCA_CTL_REG_MR, &mr, &keys, NULL), 0);
	assert_int_equal(call_modify_qp(client, qpn, HCA_CMD_RST2INIT_QPEE, &qpc), 0);
	hca_client_close(client);
	hca_driver_usage(drv, &usage);
	assert_int_equal(usage.clients + usage.pds + usage.mrs + usage.cqs + usage.qps, 0);
	assert_int_equal(usage.mtts, 0);
	assert_int_equal(fake->live[LIVE_QP] + fake->live[LIVE_CQ], 0);
	assert_int_equal(fake->live[LIVE_MPT], 5); /* of the EQs */
	assert_int_equal(fake->windows, 1);
}

static int
next_event(int fd, struct hca_ctl_event *event)
{
	return read(fd, event, sizeof(*event)) == (ssize_t)sizeof(*event) ? 0 : -1;
}

static void
test_events(void **state)
{
	struct hca_ctl_event event;
	uint32_t channel, cqn, qpn;
	int fd;

	assert_int_equal(call_create_channel(client, &channel, &fd), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	cqn = make_cq(channel);
	qpn = make_qp(make_pd(), cqn);
	fake_event(fake, 0, HCA_EVENT_COMP, cqn);
	fake_event(fake, 0, HCA_EVENT_COMP, 77); /* a CQ of no client */
	fake_event(fake, 1, HCA_EVENT_WQ_ACCESS, qpn);
	fake_event(fake, 1, HCA_EVENT_WQ_ACCESS, qpn ^ 1u << 20);
	fake_event(fake, 1, HCA_EVENT_CQ_ERROR, cqn);
	assert_int_equal(hca_driver_poll(drv), 5);
	assert_int_equal(hca_driver_poll(drv), 0);
	assert_int_equal(*(uint32_t *)(void *)(fake->bar0 + HCA_BAR0_EQ_CI(0)), 2);
	assert_int_equal(*(uint32_t *)(void *)(fake->bar0 + HCA_BAR0_EQ_CI(1)), 3);
	assert_int_equal(next_event(fd, &event), 0);
	assert_int_equal(event.object, cqn);
	assert_int_equal(next_event(fd, &event), -1);
	assert_int_equal(next_event(async_fd, &event), 0);
	assert_int_equal(event.type, HCA_EVENT_WQ_ACCESS);
	assert_int_equal(event.object, qpn);
	assert_int_equal(next_event(async_fd, &event), 0);
	assert_int_equal(event.type, HCA_EVENT_CQ_ERROR);
	assert_int_equal(next_event(async_fd, &event), -1);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_CHANNEL, channel), -EBUSY);
	close(fd);
}

/* A changed address raises an event for all clients; setting the same one again does not. */
static void
test_address_events(void **state)
{
	static const uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9},
			     mac[6] = {2, 0, 0, 0, 0, 9};
	struct hca_ctl_event event;

	for (unsigned int again = 0; again < 2; again++) {
		assert_int_equal(hca_driver_set_gid(drv, 3, gid, mac, 0xffff), 0);
		assert_int_equal(set_pkey(drv, 1, 0x8123), 0);
	}
	assert_int_equal(next_event(async_fd, &event), 0);
	assert_int_equal(event.type, HCA_CTL_EVENT_GID_CHANGE);
	assert_int_equal(event.object, 1);
	assert_int_equal(next_event(async_fd, &event), 0);
	assert_int_equal(event.type, HCA_CTL_EVENT_PKEY_CHANGE);
	assert_int_equal(next_event(async_fd, &event), -1);
	assert_int_equal(hca_driver_set_gid(drv, 3, gid, mac, 7), 0);
	assert_int_equal(next_event(async_fd, &event), 0);
	assert_int_equal(event.type, HCA_CTL_EVENT_GID_CHANGE);
	/* the port goes down: all clients get the event, and the port's state shows it */
	fake_event(fake, 1, HCA_EVENT_PORT_CHANGE, 1);
	hca_driver_poll(drv);
	assert_int_equal(next_event(async_fd, &event), 0);
	assert_int_equal(event.type, HCA_EVENT_PORT_CHANGE);
	assert_int_equal(next_event(async_fd, &event), -1);
}

/* A full pipe delays no other client, and no event is lost. */
static void
test_full_pipe(void **state)
{
	struct hca_ctl_event event;
	uint32_t channel, cqn, got = 0, last = 0;
	int fd;

	assert_int_equal(call_create_channel(client, &channel, &fd), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	fcntl(fd, F_SETPIPE_SZ, PAGE);
	cqn = make_cq(channel);
	for (uint32_t i = 0; i < 2 * PAGE / sizeof(event); i++) {
		fake_event(fake, 0, HCA_EVENT_COMP, cqn);
		assert_int_equal(hca_driver_poll(drv), 1);
	}
	while (next_event(fd, &event) == 0) {
		got++;
		last = event.object;
	}
	assert_in_range(got, 1, PAGE / sizeof(event));
	assert_int_equal(last, cqn);
	hca_driver_poll(drv);
	assert_int_equal(next_event(fd, &event), 0); /* the delayed event, once */
	assert_int_equal(next_event(fd, &event), -1);
	close(fd);
}

/*
 * Two delayed events for one full channel and one for another: each is written when its channel has
 * room.
 */
static void
test_full_pipe_of_another(void **state)
{
	struct hca_ctl_event event;
	uint32_t channel, cqn[2], got = 0;
	int fd;

	fcntl(async_fd, F_SETPIPE_SZ, PAGE);
	assert_int_equal(call_create_channel(client, &channel, &fd), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	cqn[0] = make_cq(channel);
	cqn[1] = make_cq(channel);
	for (uint32_t i = 0; i < 2 * PAGE / sizeof(event); i++) {
		fake_event(fake, 1, HCA_EVENT_CQ_ERROR, cqn[0]);
		assert_int_equal(hca_driver_poll_wait(drv), 1);
	}
	fake_event(fake, 1, HCA_EVENT_CQ_ERROR, cqn[1]);
	fake_event(fake, 0, HCA_EVENT_COMP, cqn[0]);
	fake_event(fake, 0, HCA_EVENT_COMP, cqn[1]);
	assert_int_equal(hca_driver_poll_wait(drv), 3);
	assert_int_equal(next_event(fd, &event), 0);
	assert_int_equal(next_event(fd, &event), 0);
	assert_int_equal(next_event(fd, &event), -1);
	assert_int_equal(hca_driver_poll_wait(drv), 0);
	while (next_event(async_fd, &event) == 0)
		got += event.object == cqn[1];
	assert_int_equal(got, 0);
	hca_driver_poll_wait(drv);
	while (next_event(async_fd, &event) == 0)
		got += event.object == cqn[0] ? 1 : 16;
	assert_int_equal(got, 17); /* events of both */
	close(fd);
}

/* An event queued when its CQ is destroyed is not delivered to the next CQ of that number. */
static void
test_event_of_the_dead(void **state)
{
	struct hca_ctl_event event;
	uint32_t channel, cqn, again;
	int fd;

	assert_int_equal(call_create_channel(client, &channel, &fd), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	cqn = make_cq(channel);
	fake_event(fake, 0, HCA_EVENT_COMP, cqn);
	assert_int_equal(call_drop(client, HCA_CTL_DESTROY_CQ, cqn), 0);
	while (next_event(fd, &event) == 0)
		;
	while ((again = make_cq(channel)) != cqn) /* numbers are reused in turn */
		assert_int_equal(call_drop(client, HCA_CTL_DESTROY_CQ, again), 0);
	hca_driver_poll(drv);
	assert_int_equal(next_event(fd, &event), -1);
	close(fd);
}

static void
test_failed_command_undoes(void **state)
{
	static const uint32_t ops[] = {HCA_CMD_WRITE_MTT, HCA_CMD_SW2HW_MPT, HCA_CMD_SW2HW_CQ};
	struct hca_ctl_cq cq = {.addr = (uintptr_t)memory,
				.log_size = 4,
				.channel = HCA_CTL_NO_CHANNEL};
	struct hca_ctl_resize resize = {.log_size = 4,
					.addr = (uintptr_t)memory,
					.flags = HCA_CTL_CQ_LARGE};
	struct hca_driver_usage usage;
	uint32_t cqn, index;

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		fake->fail_op = ops[i];
		fake->fail_status = HCA_STAT_BAD_PARAM;
		assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_CQ, &cq, &cqn, NULL),
				 -EINVAL);
		assert_non_null(strstr(hca_driver_reason(), "bad parameter"));
		hca_driver_usage(drv, &usage);
		assert_int_equal(usage.cqs, 0);
		assert_int_equal(usage.mrs, 0);
		assert_int_equal(usage.mtts, 0);
	}
	cq.flags = ~HCA_CTL_CQ_FLAGS;
	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_CQ, &cq, &cqn, NULL), -EINVAL);
	assert_non_null(strstr(hca_driver_reason(), "CQ flags"));
	cq.flags = HCA_CTL_CQ_WALL;
	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_CQ, &cq, &cqn, NULL), -EINVAL);
	assert_non_null(strstr(hca_driver_reason(), "large ones"));
	cq.flags = 0;
	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_CQ, &cq, &cqn, NULL), 0);
	resize.cqn = cqn;
	assert_int_equal(hca_client_call(client, HCA_CTL_RESIZE_CQ, &resize, &index, NULL),
			 -EINVAL);
	assert_non_null(strstr(hca_driver_reason(), "another size"));
}

/* The reason that a user reads names the exhausted resource. */
static void
test_no_room_for_a_qp(void **state)
{
	struct hca_qpc qpc = {0};
	uint32_t qpn = make_qp(make_pd(), make_cq(HCA_CTL_NO_CHANNEL));

	fake->fail_op = HCA_CMD_RST2INIT_QPEE;
	fake->fail_status = HCA_STAT_EXCEED_LIM;
	assert_int_equal(call_modify_qp(client, qpn, HCA_CMD_RST2INIT_QPEE, &qpc), -ENOMEM);
	assert_non_null(strstr(hca_driver_reason(), "request records"));
	fake->fail_op = 0;
	assert_int_equal(call_modify_qp(client, qpn, HCA_CMD_RST2INIT_QPEE, &qpc), 0);
}

/* A device that does not answer: -EIO, at once from then on; closing still works. */
static void
test_dead_device(void **state)
{
	struct hca_ctl_cq cq = {.addr = (uintptr_t)memory, .channel = HCA_CTL_NO_CHANNEL};
	struct hca_ctl_event event;
	uint32_t cqn;

	make_qp(make_pd(), make_cq(HCA_CTL_NO_CHANNEL));
	fake->mute = true;
	assert_false(hca_driver_dead(drv));
	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_CQ, &cq, &cqn, NULL), -EIO);
	assert_true(hca_driver_dead(drv));
	assert_int_equal(hca_client_call(client, HCA_CTL_CREATE_CQ, &cq, &cqn, NULL), -EIO);
	assert_non_null(strstr(hca_driver_reason(), "dead"));
	/* the device cannot report this: the driver does, once */
	hca_driver_poll(drv);
	hca_driver_poll(drv);
	assert_int_equal(next_event(async_fd, &event), 0);
	assert_int_equal(event.type, HCA_EVENT_LOCAL_CATAS);
	assert_int_equal(next_event(async_fd, &event), -1);
}

static int
by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* More PDs than the table has entries: each has its own number and is found by it. */
static void
test_many_pds(void **state)
{
	enum {
		PDS = 20000
	};
	static uint32_t pdn[PDS];
	struct hca_driver_usage usage;

	for (uint32_t i = 0; i < PDS; i++)
		pdn[i] = make_pd();
	qsort(pdn, PDS, sizeof(pdn[0]), by_number);
	for (uint32_t i = 1; i < PDS; i++)
		assert_int_not_equal(pdn[i - 1], pdn[i]);
	for (uint32_t i = 0; i < PDS; i += 2)
		assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, pdn[i]), 0);
	for (uint32_t i = 0; i < PDS; i++)
		assert_int_equal(call_drop(client, HCA_CTL_DEALLOC_PD, pdn[i]),
				 i % 2 == 0 ? -EINVAL : 0);
	make_pd();
	hca_driver_usage(drv, &usage);
	assert_int_equal(usage.pds, 1);
}

static void
test_uar_pages_run_out(void **state)
{
	struct hca_client *more[8];
	uint32_t n = 0;

	while (n < 8 && hca_client_open(drv, NULL, &more[n]) == 0)
		n++;
	assert_int_equal(n, 6); /* 8 pages: one is the driver's, one is in use */
	hca_client_uar(more[0]);
	memset((void *)(uintptr_t)hca_client_uar(more[0]), 0xff, PAGE);
	hca_client_close(more[0]);
	assert_int_equal(hca_client_open(drv, NULL, &more[0]), 0);
	assert_int_equal(*(volatile uint8_t *)hca_client_uar(more[0]), 0);
	while (n-- > 0)
		hca_client_close(more[n]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bring_up),
		TEST(test_icm_at_first_use),
		TEST(test_region_bytes),
		TEST(test_large_region),
		TEST(test_refused_regions),
		TEST(test_context_is_the_drivers),
		TEST(test_addresses),
		TEST(test_busy_order_and_quota),
		TEST(test_ownership),
		TEST(test_close_frees_all),
		TEST(test_events),
		TEST(test_address_events),
		TEST(test_full_pipe),
		TEST(test_failed_command_undoes),
		TEST(test_full_pipe_of_another),
		TEST(test_event_of_the_dead),
		TEST(test_many_pds),
		TEST(test_no_room_for_a_qp),
		TEST(test_dead_device),
		TEST(test_uar_pages_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
