/* SPDX-License-Identifier: BSD-3-Clause */

/* Posting by ibv_wr_start .. ibv_wr_complete. */

#include <pthread.h>

#include "all.h"

#define OPS \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)

static uint64_t
address(const struct all *all, size_t offset)
{
	return (uintptr_t)all->memory + offset;
}

static void
begin(struct ibv_qp_ex *qp, uint64_t wr_id)
{
	qp->wr_id = wr_id;
	qp->wr_flags = IBV_SEND_SIGNALED;
}

/* One region of five requests: one doorbell, completions in order. */
static void
rdma(struct all *all, struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_sge sges[2] = {{address(all, 0), 8, all->mr->lkey},
				  {address(all, 16), 8, all->mr->lkey}};
	uint32_t lkey = all->mr->lkey, rkey = all->mr->rkey;

	memcpy(all->memory, "12345678abcdefghABCDEFGH", 24);
	memset(all->memory + 4096, 0, 64);
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_rdma_write(ex, rkey, address(all, 4096));
	ibv_wr_set_sge_list(ex, 2, sges);
	begin(ex, 2);
	ex->wr_flags |= IBV_SEND_FENCE;
	ibv_wr_rdma_read(ex, rkey, address(all, 4096));
	ibv_wr_set_sge(ex, lkey, address(all, 8192), 16);
	begin(ex, 3);
	ibv_wr_atomic_fetch_add(ex, rkey, address(all, 4128), 5);
	ibv_wr_set_sge(ex, lkey, address(all, 8208), 8);
	begin(ex, 4);
	ibv_wr_atomic_cmp_swp(ex, rkey, address(all, 4128), 5, 7);
	ibv_wr_set_sge(ex, lkey, address(all, 8216), 8);
	CHECK(ibv_wr_complete(ex) == 0);
	for (uint64_t i = 1; i <= 4; i++)
		CHECK(all_wc(all->cq).wr_id == i);
	CHECK(memcmp(all->memory + 4096, "12345678ABCDEFGH", 16) == 0);
	CHECK(memcmp(all->memory + 8192, "12345678ABCDEFGH", 16) == 0);
	CHECK(*(uint64_t *)(all->memory + 8216) == 5 && *(uint64_t *)(all->memory + 4128) == 7);
}

static void
expect_send_recv(struct all *all, uint64_t recv_id, uint32_t bytes, unsigned int flags)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = all_wc(all->cq);

		if ((wc.opcode & IBV_WC_RECV) == 0)
			continue;
		CHECK(wc.wr_id == recv_id && (wc.byte_len == bytes || bytes == 0));
		CHECK((wc.wc_flags & ~(unsigned int)IBV_WC_GRH) == flags);
		if (flags == IBV_WC_WITH_IMM)
			CHECK(wc.imm_data == htobe32(0x01020304));
	}
}

/* From memory by ibv_post_send, of an operand that may change at once by ibv_wr_atomic_write. */
static void
atomic_writes(struct all *all)
{
	uint64_t ops = OPS | IBV_QP_EX_WITH_ATOMIC_WRITE, value = 0x1122334455667788;
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, ops);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, NULL, ops);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a);
	struct ibv_sge sge = {address(all, 4104), 8, all->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = 2,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_ATOMIC_WRITE,
					 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
					 .wr.rdma = {address(all, 4112), all->mr->rkey},
				 };
	struct ibv_wc wc;

	all_connect(all, a, b);
	memset(all->memory + 4096, 0, 64);
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_atomic_write(ex, all->mr->rkey, address(all, 4104), &value);
	value = 0;
	CHECK(ibv_wr_complete(ex) == 0);
	wc = all_wc(all->cq);
	CHECK(wc.wr_id == 1 && wc.opcode == IBV_WC_ATOMIC_WRITE && wc.byte_len == 8);
	CHECK(*(uint64_t *)(all->memory + 4104) == 0x1122334455667788);
	CHECK(ibv_post_send(a, &wr, &bad) == 0);
	wc = all_wc(all->cq);
	CHECK(wc.wr_id == 2 && wc.opcode == IBV_WC_ATOMIC_WRITE);
	CHECK(*(uint64_t *)(all->memory + 4112) == 0x1122334455667788);
	sge.length = 4;
	CHECK(ibv_post_send(a, &wr, &bad) == EINVAL && bad == &wr);
	/* it has no members in this structure */
	wr.opcode = (enum ibv_wr_opcode)14;
	CHECK(ibv_post_send(a, &wr, &bad) == EINVAL);
	/* misaligned: the peer refuses it */
	ibv_wr_start(ex);
	begin(ex, 3);
	ibv_wr_atomic_write(ex, all->mr->rkey, address(all, 4100), &value);
	CHECK(ibv_wr_complete(ex) == 0);
	wc = all_any_wc(all->cq);
	CHECK(wc.wr_id == 3 && wc.status == IBV_WC_REM_INV_REQ_ERR);
	CHECK(ibv_destroy_qp(a) == 0);
	CHECK(ibv_destroy_qp(b) == 0);
}

/* Inline data may change as soon as it is set. */
static void
sends(struct all *all, struct ibv_qp *qp, struct ibv_qp *peer)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	char word[] = "inline data";
	struct ibv_data_buf list[2] = {{word, 6}, {word + 7, 4}};

	all_recv(all, peer, 10, 4096, 64);
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, word, sizeof(word));
	CHECK(ibv_wr_complete(ex) == 0);
	expect_send_recv(all, 10, sizeof(word), 0);
	CHECK(strcmp((char *)all->memory + 4096, word) == 0);

	all_recv(all, peer, 11, 4096, 64);
	ibv_wr_start(ex);
	begin(ex, 2);
	ibv_wr_send_imm(ex, htobe32(0x01020304));
	ibv_wr_set_inline_data_list(ex, 2, list);
	memset(word, 0, sizeof(word));
	CHECK(ibv_wr_complete(ex) == 0);
	expect_send_recv(all, 11, 10, IBV_WC_WITH_IMM);
	CHECK(memcmp(all->memory + 4096, "inlinedata", 10) == 0);

	all_recv(all, peer, 12, 4096, 64);
	ibv_wr_start(ex);
	begin(ex, 3);
	ibv_wr_rdma_write_imm(ex, all->mr->rkey, address(all, 4096), htobe32(0x01020304));
	ibv_wr_set_sge(ex, all->mr->lkey, address(all, 0), 8);
	CHECK(ibv_wr_complete(ex) == 0);
	expect_send_recv(all, 12, 8, IBV_WC_WITH_IMM);
}

/* A window by its pieces: bound, invalidated here, bound, invalidated by the peer. */
static void
windows(struct all *all, struct ibv_qp *qp, struct ibv_qp *peer)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp), *other = ibv_qp_to_qp_ex(peer);
	struct ibv_mw *mw = ibv_alloc_mw(all->pd, IBV_MW_TYPE_2);
	const struct ibv_mw_bind_info info = {all->mr, address(all, 0), 64,
					      IBV_ACCESS_REMOTE_WRITE};
	uint32_t rkey;

	CHECK(mw != NULL);
	rkey = ibv_inc_rkey(mw->rkey);
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_bind_mw(ex, mw, rkey, &info);
	begin(ex, 2);
	ibv_wr_local_inv(ex, rkey);
	mw->rkey = rkey;
	CHECK(ibv_wr_complete(ex) == 0);
	CHECK(all_wc(all->cq).opcode == IBV_WC_BIND_MW);
	CHECK(all_wc(all->cq).opcode == IBV_WC_LOCAL_INV);
	CHECK(ibv_dealloc_mw(mw) == 0);

	mw = ibv_alloc_mw(all->pd, IBV_MW_TYPE_2);
	CHECK(mw != NULL);
	rkey = ibv_inc_rkey(mw->rkey);
	ibv_wr_start(ex);
	begin(ex, 3);
	ibv_wr_bind_mw(ex, mw, rkey, &info);
	CHECK(ibv_wr_complete(ex) == 0);
	CHECK(all_wc(all->cq).wr_id == 3);
	all_recv(all, qp, 20, 4096, 64);
	ibv_wr_start(other);
	begin(other, 4);
	ibv_wr_send_inv(other, rkey);
	ibv_wr_set_sge(other, all->mr->lkey, address(all, 0), 8);
	CHECK(ibv_wr_complete(other) == 0);
	expect_send_recv(all, 20, 8, IBV_WC_WITH_INV);
	CHECK(ibv_dealloc_mw(mw) == 0);
}

/* An invalid request or an abort posts no request of the batch. */
static void
refused(struct all *all, struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_sge sges[100] = {0};
	struct ibv_wc wc;

	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_rdma_write(ex, all->mr->rkey, address(all, 0));
	ibv_wr_set_sge(ex, all->mr->lkey, address(all, 0), 8);
	ibv_wr_rdma_write(ex, all->mr->rkey, address(all, 0));
	ibv_wr_set_sge_list(ex, 100, sges);
	CHECK(ibv_wr_complete(ex) == EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, all->memory, 60000);
	CHECK(ibv_wr_complete(ex) == EINVAL);
	ibv_wr_start(ex);
	for (int i = 0; i < 100000; i++) {
		ibv_wr_rdma_write(ex, all->mr->rkey, address(all, 0));
		ibv_wr_set_sge(ex, all->mr->lkey, address(all, 0), 8);
	}
	CHECK(ibv_wr_complete(ex) == ENOMEM);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, all->mr->rkey, address(all, 0));
	ibv_wr_set_sge(ex, all->mr->lkey, address(all, 0), 8);
	ibv_wr_abort(ex);
	CHECK(ibv_poll_cq(all->cq, 1, &wc) == 0);
}

/* Turns of each thread; TURNS in the environment */
static int
turns(void)
{
	const char *given = getenv("TURNS");

	return given != NULL ? atoi(given) : 20000;
}

static void *
good_batches(void *of)
{
	struct ibv_qp_ex *ex = of;

	for (int i = 0; i < turns(); i++) {
		ibv_wr_start(ex);
		CHECK(ibv_wr_complete(ex) == 0);
	}
	return NULL;
}

/* Refused by turns as too much inline data and as too long an SGE */
static void *
bad_batches(void *of)
{
	struct ibv_qp_ex *ex = of;
	char byte = 0;

	for (int i = 0; i < turns(); i++) {
		ibv_wr_start(ex);
		ibv_wr_send(ex);
		if (i % 2 == 0)
			ibv_wr_set_inline_data(ex, &byte, 60000);
		else
			ibv_wr_set_sge(ex, 0, 0, UINT32_MAX);
		CHECK(ibv_wr_complete(ex) == EINVAL);
	}
	return NULL;
}

/* Threads post to one QP by turns: each gets the result of its own requests. */
static void
by_threads(struct ibv_qp *qp)
{
	void *(*const mains[])(void *) = {good_batches, bad_batches, good_batches, bad_batches};
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, mains[i], ibv_qp_to_qp_ex(qp)) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

struct writer {
	struct all *all;
	struct ibv_qp_ex *ex;
};

static void *
writes(void *of)
{
	const struct writer *w = of;
	int err;

	for (int i = 0; i < turns() / 2; i++) {
		do {
			ibv_wr_start(w->ex);
			for (int j = 0; j < 3; j++) {
				begin(w->ex, 1);
				ibv_wr_rdma_write(w->ex, w->all->mr->rkey, address(w->all, 0));
				ibv_wr_set_sge(w->ex, w->all->mr->lkey, address(w->all, 64), 8);
			}
			err = ibv_wr_complete(w->ex);
		} while (err == ENOMEM);
		CHECK(err == 0);
	}
	return NULL;
}

/* No posted request is lost. */
static void
writes_by_threads(struct all *all, struct ibv_qp *qp)
{
	struct writer writer = {all, ibv_qp_to_qp_ex(qp)};
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, writes, &writer) == 0);
	for (int i = 0; i < 2 * 3 * (turns() / 2); i++)
		CHECK(all_wc(all->cq).opcode == IBV_WC_RDMA_WRITE);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Both orders of the setters of a datagram, and none of data. */
static void
datagrams(struct all *all)
{
	struct ibv_qp *qp = all_qp(all, IBV_QPT_UD, all->cq, NULL, IBV_QP_EX_WITH_SEND);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_ah *ah = all_ah(all);

	for (int order = 0; order < 3; order++) {
		all_recv(all, qp, 30, 4096, 128);
		memset(all->memory + 4096, 0, 128);
		ibv_wr_start(ex);
		begin(ex, 1);
		ibv_wr_send(ex);
		if (order == 0)
			ibv_wr_set_inline_data(ex, "datagram", 8);
		ibv_wr_set_ud_addr(ex, ah, qp->qp_num, 0x11111111);
		if (order == 1)
			ibv_wr_set_sge(ex, all->mr->lkey, address(all, 0), 8);
		memcpy(all->memory, "datagram", 8);
		CHECK(ibv_wr_complete(ex) == 0);
		expect_send_recv(all, 30, order == 2 ? 40 : 48, 0);
		CHECK(order == 2 || memcmp(all->memory + 4136, "datagram", 8) == 0);
	}
	/* without an address, though the request before had one */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, "datagram", 8);
	CHECK(ibv_wr_complete(ex) == EINVAL);
	CHECK(ibv_destroy_ah(ah) == 0);
	CHECK(ibv_destroy_qp(qp) == 0);
}

void
all_pieces(struct all *all)
{
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, OPS);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, NULL, OPS);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = all->cq,
		.recv_cq = all->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = all->pd,
		.send_ops_flags = IBV_QP_EX_WITH_TSO,
	};

	CHECK_NULL(ibv_create_qp_ex(all->context, &attr), EOPNOTSUPP);
	attr.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE;
	attr.qp_type = IBV_QPT_UC;
	CHECK_NULL(ibv_create_qp_ex(all->context, &attr), EOPNOTSUPP);
	all_connect(all, a, b);
	rdma(all, a);
	atomic_writes(all);
	sends(all, a, b);
	windows(all, a, b);
	refused(all, a);
	by_threads(a);
	writes_by_threads(all, a);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
	datagrams(all);
}
