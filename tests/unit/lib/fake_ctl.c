/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_ctl.h"

static int
fake_info(void *arg, struct hca_ctl_info *info)
{
	*info = (struct hca_ctl_info){
		.board_id = 0x1122334455667788,
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
	};
	return 0;
}

static volatile void *
fake_uar(void *arg)
{
	return &((struct fake_ctl *)arg)->page;
}

static int
fake_query_port(void *arg, uint32_t port, struct hca_ctl_port *out)
{
	*out = (struct hca_ctl_port){.state = 4, .max_mtu = 5, .active_mtu = 5};
	return 0;
}

static int
fake_query_gid(void *arg, uint32_t index, uint8_t gid[16])
{
	memset(gid, (int)index, 16);
	return 0;
}

static int
fake_query_pkey(void *arg, uint32_t index, uint16_t *pkey)
{
	*pkey = 0xffff;
	return 0;
}

static int
fake_resolve(void *arg, struct hca_ctl_ah *ah)
{
	memcpy(ah->dmac, ((struct fake_ctl *)arg)->dmac, sizeof(ah->dmac));
	return 0;
}

static int
fake_alloc_pd(void *arg, uint32_t *pdn)
{
	((struct fake_ctl *)arg)->objects++;
	*pdn = HCA_PD_MAKE(1, FAKE_UAR_PAGE);
	return 0;
}

static int
fake_drop(void *arg, uint32_t number)
{
	((struct fake_ctl *)arg)->objects--;
	return 0;
}

static int
fake_reg_mr(void *arg, const struct hca_ctl_mr *mr, const uint64_t *pages,
	    struct hca_ctl_keys *keys)
{
	struct fake_ctl *fake = arg;

	fake->mr = *mr;
	for (uint64_t i = 0; i < mr->npages && i < 64; i++)
		fake->mr_pages[i] = pages[i];
	fake->objects++;
	keys->lkey = 0xabcd01;
	keys->rkey = 0xabcd01;
	return 0;
}

static int
fake_async_fd(void *arg, int *fd)
{
	int fds[2];

	if (pipe(fds) != 0)
		return -errno;
	((struct fake_ctl *)arg)->async_write = fds[1];
	*fd = fds[0];
	return 0;
}

static int
fake_create_channel(void *arg, uint32_t *channel, int *fd)
{
	struct fake_ctl *fake = arg;
	int fds[2];

	if (pipe(fds) != 0)
		return -errno;
	fake->channel_write = fds[1];
	fake->objects++;
	*channel = 1;
	*fd = fds[0];
	return 0;
}

static int
fake_destroy_channel(void *arg, uint32_t channel)
{
	struct fake_ctl *fake = arg;

	close(fake->channel_write);
	fake->channel_write = -1;
	fake->objects--;
	return 0;
}

static int
fake_create_cq(void *arg, const struct hca_ctl_cq *cq, uint32_t *cqn)
{
	struct fake_ctl *fake = arg;

	fake->cq = *cq;
	fake->objects++;
	*cqn = fake->next_cqn++;
	return 0;
}

static int
fake_create_qp(void *arg, const struct hca_ctl_qp *qp, uint32_t *qpn)
{
	struct fake_ctl *fake = arg;

	fake->qp = *qp;
	fake->objects++;
	*qpn = fake->next_qpn++;
	return 0;
}

static int
fake_modify_qp(void *arg, uint32_t qpn, uint32_t opcode, const void *mailbox)
{
	struct fake_ctl *fake = arg;
	int err = fake->fail_modify;

	fake->fail_modify = 0;
	if (err != 0)
		return err;
	fake->opcode = opcode;
	memset(&fake->mailbox, 0, sizeof(fake->mailbox));
	if (mailbox != NULL)
		memcpy(&fake->mailbox, mailbox, sizeof(fake->mailbox));
	fake->stored.flags = fake->mailbox.flags;
	return 0;
}

static int
fake_query_qp(void *arg, uint32_t qpn, void *mailbox)
{
	memcpy(mailbox, &((struct fake_ctl *)arg)->stored, sizeof(struct hca_qpc));
	return 0;
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

	fake->progressed++;
	if (fake->on_progress != NULL)
		fake->on_progress(fake);
	return 1;
}

static void
fake_ctl_close(void *arg)
{
}

#define FAKE_OPS(hook) \
	{ \
		.info = fake_info, .uar = fake_uar, .query_port = fake_query_port, \
		.query_gid = fake_query_gid, .query_pkey = fake_query_pkey, \
		.resolve = fake_resolve, .alloc_pd = fake_alloc_pd, .dealloc_pd = fake_drop, \
		.reg_mr = fake_reg_mr, .dereg_mr = fake_drop, .async_fd = fake_async_fd, \
		.create_channel = fake_create_channel, .destroy_channel = fake_destroy_channel, \
		.create_cq = fake_create_cq, .destroy_cq = fake_drop, .create_qp = fake_create_qp, \
		.modify_qp = fake_modify_qp, .query_qp = fake_query_qp, .destroy_qp = fake_drop, \
		.reason = fake_reason, .alive = fake_alive, .progress = hook, \
		.close = fake_ctl_close, \
	}

static const struct softhca_ctl_ops background_ops = FAKE_OPS(NULL);
static const struct softhca_ctl_ops manual_ops = FAKE_OPS(fake_progress);

struct fake_ctl *
fake_open(struct softhca_context **ctx, bool manual)
{
	struct fake_ctl *fake = aligned_alloc(4096, (sizeof(*fake) + 4095) / 4096 * 4096);

	assert_non_null(fake);
	memset(fake, 0, sizeof(*fake));
	fake->fifo_head = HCA_UAR_FIFO_FIRST(FAKE_UAR_PAGE);
	fake->next_qpn = 0x7f0003;
	fake->next_cqn = 1;
	assert_int_equal(softhca_context_create(manual ? &manual_ops : &background_ops, fake,
						"fake", ctx),
			 0);
	return fake;
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
	struct hca_cqe *place = &cq->ring[n & cq->mask];

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
