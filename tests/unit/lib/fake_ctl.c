/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_ctl.h"

static int
fake_info(const struct fake_ctl *fake, struct hca_ctl_info *info)
{
	*info = (struct hca_ctl_info){
		.board_id = 0x1122334455667788,
		.fw_ver = HCA_FW_VER(20, 65535, 1010),
		.vendor_id = 0x02c9,
		.vendor_part_id = 4119,
		.hw_ver = 5,
		.uar_page = FAKE_UAR_PAGE,
		.log_num_qps = FAKE_LOG_QPS,
		.log_num_cqs = 6,
		.log_max_wqes = 15,
		.log_max_cqes = 17,
		.max_wqe_stride = 512,
		.max_sge = 16,
		.max_inline = 400,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.max_mtu = 5,
		.num_ports = 1,
		.gid_entries = 16,
		.pkey_entries = 16,
		.max_qps = 64,
		.max_cqs = 64,
		.max_mrs = 64,
		.max_pds = 64,
		.ack_delay = 15,
		.max_mcgs = 256,
		.max_qps_per_mcg = 64,
		.num_pipes = fake->pipes,
	};
	return 0;
}

static volatile void *
fake_uar(void *arg)
{
	return &((struct fake_ctl *)arg)->page;
}

/* Both ends of a pipe: one is kept here to write to, the other handed out. */
static int
fake_pipe(int *kept, struct hca_ctl_extra *extra)
{
	int fds[2];

	if (pipe(fds) != 0)
		return -errno;
	*kept = fds[1];
	extra->fds[0] = fds[0];
	return 0;
}

static int
fake_reg_mr(struct fake_ctl *fake, const struct hca_ctl_mr *mr, struct hca_ctl_keys *keys,
	    const struct hca_ctl_extra *extra)
{
	fake->mr = *mr;
	for (uint64_t i = 0; i < mr->npages && i < 64; i++)
		fake->mr_pages[i] = extra->pages[i];
	*keys = (struct hca_ctl_keys){0xabcd01, 0xabcd01};
	return 0;
}

static int
fake_modify_qp(struct fake_ctl *fake, const struct hca_ctl_modify *m)
{
	int err = fake->fail_modify;

	fake->fail_modify = 0;
	if (err != 0)
		return err;
	fake->opcode = m->opcode;
	memset(&fake->mailbox, 0, sizeof(fake->mailbox));
	if (m->has_mailbox)
		fake->mailbox = m->mailbox;
	fake->stored.flags = fake->mailbox.flags;
	return 0;
}

/* Operations that make no object */
static int
fake_query(struct fake_ctl *fake, enum hca_ctl_op op, const void *request, void *answer,
	   struct hca_ctl_extra *extra)
{
	switch (op) {
	case HCA_CTL_INFO:
		return fake_info(fake, answer);
	case HCA_CTL_ASYNC_FD:
		return fake_pipe(&fake->async_write, extra);
	case HCA_CTL_QUERY_PORT:
		*(struct hca_ctl_port *)answer = (struct hca_ctl_port){.state = fake->port_state,
								       .speed = fake->speed,
								       .max_mtu = 5,
								       .active_mtu = 5};
		return 0;
	case HCA_CTL_QUERY_GID:
		memset(answer, (int)*(const uint32_t *)request, sizeof(struct hca_ctl_gid));
		return 0;
	case HCA_CTL_QUERY_CLOCK:
		*(uint64_t *)answer = 0x1122334455667788;
		return 0;
	case HCA_CTL_QUERY_PKEY:
		*(uint16_t *)answer = fake->pkeys[*(const uint32_t *)request];
		return 0;
	case HCA_CTL_RESOLVE:
		memcpy(((struct hca_ctl_ah *)answer)->dmac, fake->dmac, sizeof(fake->dmac));
		return 0;
	case HCA_CTL_RESIZE_CQ:
		fake->resize = *(const struct hca_ctl_resize *)request;
		*(uint32_t *)answer = fake->resize_at;
		return 0;
	case HCA_CTL_MODIFY_QP:
		return fake_modify_qp(fake, request);
	case HCA_CTL_QUERY_QP:
		*(struct hca_qpc *)answer = fake->stored;
		return 0;
	default:
		return fake->cm != NULL ? fake->cm(fake, op, request, answer) : -EOPNOTSUPP;
	}
}

static int
fake_create_channel(struct fake_ctl *fake, uint32_t *number, struct hca_ctl_extra *extra)
{
	uint32_t n = 1;
	int err;

	while (n < FAKE_CHANNELS && fake->channel_writes[n] >= 0)
		n++;
	if (n == FAKE_CHANNELS)
		return -ENOMEM;
	err = fake_pipe(&fake->channel_writes[n], extra);
	if (err != 0)
		return err;
	if (n == 1)
		fake->channel_write = fake->channel_writes[n];
	fake->objects++;
	*number = n;
	return 0;
}

static int
fake_destroy_channel(struct fake_ctl *fake, uint32_t number)
{
	close(fake->channel_writes[number]);
	fake->channel_writes[number] = -1;
	if (number == 1)
		fake->channel_write = -1;
	fake->objects--;
	return 0;
}

static int
fake_call(void *arg, enum hca_ctl_op op, const void *request, void *answer,
	  struct hca_ctl_extra *extra)
{
	struct fake_ctl *fake = arg;
	uint32_t *number = answer;

	switch (op) {
	case HCA_CTL_ALLOC_PD:
		fake->objects++;
		*number = HCA_PD_MAKE(1, FAKE_UAR_PAGE);
		return 0;
	case HCA_CTL_REG_MR:
		fake->objects++;
		return fake_reg_mr(fake, request, answer, extra);
	case HCA_CTL_CREATE_CHANNEL:
		return fake_create_channel(fake, number, extra);
	case HCA_CTL_CREATE_CQ:
		fake->objects++;
		fake->cq = *(const struct hca_ctl_cq *)request;
		*number = fake->next_cqn++;
		return 0;
	case HCA_CTL_CREATE_QP:
		fake->objects++;
		fake->qp = *(const struct hca_ctl_qp *)request;
		*number = fake->next_qpn++;
		return 0;
	case HCA_CTL_REREG_MR:
		*(struct hca_ctl_keys *)answer = (struct hca_ctl_keys){0xabcd02, 0xabcd02};
		return 0;
	case HCA_CTL_ALLOC_MW:
		fake->objects++;
		*number = 0x120034;
		return 0;
	case HCA_CTL_CREATE_SRQ:
		fake->objects++;
		*number = 0;
		return 0;
	case HCA_CTL_DESTROY_CHANNEL:
		return fake_destroy_channel(fake, *(const uint32_t *)request);
	case HCA_CTL_DEALLOC_PD:
	case HCA_CTL_DEREG_MR:
	case HCA_CTL_DEALLOC_MW:
	case HCA_CTL_DESTROY_CQ:
	case HCA_CTL_DESTROY_QP:
	case HCA_CTL_DESTROY_SRQ:
		fake->objects--;
		return 0;
	default:
		return fake_query(fake, op, request, answer, extra);
	}
}

static const char *
fake_reason(void *arg)
{
	return "the fake says no";
}

static bool
fake_alive(void *arg)
{
	return !((struct fake_ctl *)arg)->dead;
}

static unsigned int
fake_progress(void *arg)
{
	struct fake_ctl *fake = arg;

	__atomic_fetch_add(&fake->progressed, 1, __ATOMIC_RELAXED);
	if (fake->on_progress != NULL)
		fake->on_progress(fake);
	return 1;
}

static int
fake_ctl_close(void *arg)
{
	struct fake_ctl *fake = arg;

	__atomic_store_n(&fake->closed, true, __ATOMIC_SEQ_CST);
	return 0;
}

#define FAKE_OPS(hook) \
	{ \
		.call = fake_call, .reason = fake_reason, .uar = fake_uar, .alive = fake_alive, \
		.progress = hook, .close = fake_ctl_close, \
	}

static const struct softhca_ctl_ops background_ops = FAKE_OPS(NULL);
static const struct softhca_ctl_ops manual_ops = FAKE_OPS(fake_progress);

struct fake_ctl *
fake_open_pipes(struct softhca_context **ctx, bool manual, uint32_t pipes)
{
	struct fake_ctl *fake = aligned_alloc(4096, (sizeof(*fake) + 4095) / 4096 * 4096);

	assert_non_null(fake);
	memset(fake, 0, sizeof(*fake));
	fake->fifo_head = HCA_UAR_FIFO_FIRST(FAKE_UAR_PAGE);
	fake->next_qpn = 0x7f0003;
	fake->next_cqn = 1;
	fake->pipes = pipes;
	fake->port_state = SOFTHCA_PORT_ACTIVE;
	fake->pkeys[0] = 0xffff;
	for (uint32_t i = 0; i < FAKE_CHANNELS; i++)
		fake->channel_writes[i] = -1;
	assert_int_equal(softhca_context_create(manual ? &manual_ops : &background_ops, fake,
						"fake", ctx),
			 0);
	return fake;
}

struct fake_ctl *
fake_open(struct softhca_context **ctx, bool manual)
{
	return fake_open_pipes(ctx, manual, 1);
}

void
fake_close(struct fake_ctl *fake, struct softhca_context *ctx)
{
	assert_int_equal(fake->objects, 0);
	assert_int_equal(softhca_close(ctx), 0);
	close(fake->async_write);
	free(fake);
}

uint64_t
fake_take_doorbell(struct fake_ctl *fake)
{
	hca_le64 *slot = &fake->page.fifo[fake->fifo_head % HCA_UAR_FIFO_SLOTS];
	uint64_t word = hca_le64_to_cpu(__atomic_load_n(slot, __ATOMIC_ACQUIRE));

	if (word == 0)
		return 0;
	__atomic_store_n(slot, 0, __ATOMIC_RELEASE);
	fake->fifo_head++;
	return word;
}

void
fake_complete(struct softhca_cq *pub, uint32_t n, const struct hca_cqe *cqe)
{
	struct lib_cq *cq = (struct lib_cq *)pub;
	struct hca_cqe *place = lib_cqe_at(cq, n);

	assert_int_equal(place->owner, HCA_OWNER_HW);
	memcpy(place, cqe, offsetof(struct hca_cqe, owner));
	__atomic_store_n(&place->owner, HCA_OWNER_SW, __ATOMIC_RELEASE);
}

struct fake_qp
fake_make_qp(struct softhca_context *ctx, const struct softhca_qp_cap *cap, uint32_t state,
	     uint32_t cqe)
{
	struct softhca_cq_init_attr cq_attr = {.cqe = cqe};
	struct softhca_qp_init_attr attr = {.qp_type = SOFTHCA_QPT_RC, .cap = *cap};
	struct fake_qp q;

	q.pd = softhca_alloc_pd(ctx);
	q.cq = softhca_create_cq(ctx, &cq_attr);
	assert_non_null(q.cq);
	attr.send_cq = q.cq;
	attr.recv_cq = q.cq;
	q.qp = softhca_create_qp(q.pd, &attr);
	assert_non_null(q.qp);
	q.qp->state = state;
	return q;
}

void
fake_drop_qp(struct fake_qp *q)
{
	assert_int_equal(softhca_destroy_qp(q->qp), 0);
	assert_int_equal(softhca_destroy_cq(q->cq), 0);
	assert_int_equal(softhca_dealloc_pd(q->pd), 0);
}
