/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Posting by ibv_wr_start .. ibv_wr_complete. A request is complete, and built in the send queue,
 * when all its setters have been called; one without a data setter has no data.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

/* Parts that a request still needs */
#define NEEDS_DATA 1u
#define NEEDS_PEER 2u /* the address of a datagram, or the SRQ of XRC */

struct front_batch {
	struct softhca_wr_batch hca;
	struct softhca_send_wr wr;
	struct softhca_sge sge; /* of wr, if it has one */
	uint32_t needs;		/* wr waits for these setters; 0: it has been added */
	uint32_t peer;		/* NEEDS_PEER if the type of the QP has that, else 0 */
	int err;		/* error of a request refused and explained here; else 0 */
	uint32_t max_sges;
	uint32_t max_inline;
	struct softhca_sge *sges; /* data that waits for the peer, and inline data in pieces */
	uint8_t *inline_data;
	uint8_t operand[8]; /* of an ATOMIC WRITE */
};

static struct front_batch *
batch_of(struct ibv_qp_ex *pub)
{
	return ((struct front_qp *)pub)->batch;
}

/* No request of the batch will be posted. */
static void
spoil(struct front_batch *batch, const char *rule, size_t value, size_t max)
{
	if (batch->err == 0)
		batch->err = front_refuse(EINVAL, "ibv_wr_complete", "%s: %zu, at most %zu", rule,
					  value, max);
}

/* The request is complete. The batch keeps the error. */
static inline void
add(struct front_batch *batch)
{
	(void)softhca_wr_add(&batch->hca, &batch->wr);
}

/* The next request begins, or the batch ends, and this one is incomplete. */
static __attribute__((noinline)) void
end_waiting(struct front_batch *batch)
{
	if ((batch->needs & NEEDS_PEER) != 0) {
		if (batch->err == 0)
			batch->err = front_refuse(EINVAL, "ibv_wr_complete",
						  "a request without its peer: call "
						  "ibv_wr_set_ud_addr() or ibv_wr_set_xrc_srqn()");
	} else {
		batch->wr.sg_list = NULL;
		batch->wr.num_sge = 0;
		add(batch);
	}
	batch->needs = 0;
}

/* No request waits. */
static inline struct softhca_send_wr *
fill(struct front_batch *batch, const struct ibv_qp_ex *pub, uint32_t opcode, uint32_t needs)
{
	struct softhca_send_wr *wr = &batch->wr;

	wr->wr_id = pub->wr_id;
	wr->opcode = opcode;
	wr->send_flags = pub->wr_flags & ~(uint32_t)IBV_SEND_INLINE; /* a setter says that */
	batch->needs = needs;
	return wr;
}

static inline struct softhca_send_wr *
begin(struct ibv_qp_ex *pub, uint32_t opcode, uint32_t needs)
{
	struct front_batch *batch = batch_of(pub);

	if (__builtin_expect(batch->needs != 0, 0))
		end_waiting(batch);
	return fill(batch, pub, opcode, needs);
}

/* Of a request without data and peer; add() follows. */
static struct softhca_send_wr *
begin_local(struct ibv_qp_ex *pub, uint32_t opcode)
{
	struct softhca_send_wr *wr = begin(pub, opcode, 0);

	wr->sg_list = NULL;
	wr->num_sge = 0;
	return wr;
}

/* Parts of a request with data; its peer is needed where the QP has peers. */
static inline struct softhca_send_wr *
begin_data(struct ibv_qp_ex *pub, uint32_t opcode)
{
	return begin(pub, opcode, NEEDS_DATA | batch_of(pub)->peer);
}

/* Setters that come too late change nothing. */
static inline void
set(struct front_batch *batch, uint32_t what)
{
	uint32_t needed = batch->needs;

	batch->needs = needed & ~what;
	if (needed == what)
		add(batch);
}

/* ---- requests ---- */

static void rdma_after_waiting(struct ibv_qp_ex *pub, uint32_t opcode, uint32_t rkey,
			       uint64_t remote_addr);

/* Its last call is the only one, so that the usual way, without it, saves no registers. */
static inline void
wr_rdma(struct ibv_qp_ex *pub, uint32_t opcode, uint32_t rkey, uint64_t remote_addr)
{
	struct front_batch *batch = batch_of(pub);
	struct softhca_send_wr *wr;

	if (__builtin_expect(batch->needs != 0, 0)) {
		rdma_after_waiting(pub, opcode, rkey, remote_addr);
		return;
	}
	wr = fill(batch, pub, opcode, NEEDS_DATA | batch->peer);
	wr->wr.rdma.remote_addr = remote_addr;
	wr->wr.rdma.rkey = rkey;
}

static __attribute__((noinline)) void
rdma_after_waiting(struct ibv_qp_ex *pub, uint32_t opcode, uint32_t rkey, uint64_t remote_addr)
{
	end_waiting(batch_of(pub));
	wr_rdma(pub, opcode, rkey, remote_addr);
}

static void
wr_rdma_read(struct ibv_qp_ex *pub, uint32_t rkey, uint64_t remote_addr)
{
	wr_rdma(pub, SOFTHCA_WR_RDMA_READ, rkey, remote_addr);
}

static void
wr_rdma_write(struct ibv_qp_ex *pub, uint32_t rkey, uint64_t remote_addr)
{
	wr_rdma(pub, SOFTHCA_WR_RDMA_WRITE, rkey, remote_addr);
}

static void
wr_rdma_write_imm(struct ibv_qp_ex *pub, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	wr_rdma(pub, SOFTHCA_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);
	batch_of(pub)->wr.imm_data = imm_data;
}

static void
wr_send(struct ibv_qp_ex *pub)
{
	begin_data(pub, SOFTHCA_WR_SEND);
}

static void
wr_send_imm(struct ibv_qp_ex *pub, __be32 imm_data)
{
	begin_data(pub, SOFTHCA_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void
wr_send_inv(struct ibv_qp_ex *pub, uint32_t invalidate_rkey)
{
	begin_data(pub, SOFTHCA_WR_SEND_WITH_INV)->invalidate_rkey = invalidate_rkey;
}

static void
wr_atomic(struct ibv_qp_ex *pub, uint32_t opcode, uint32_t rkey, uint64_t remote_addr,
	  uint64_t compare_add, uint64_t swap)
{
	struct softhca_send_wr *wr = begin_data(pub, opcode);

	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
	wr->wr.atomic.rkey = rkey;
}

static void
wr_atomic_cmp_swp(struct ibv_qp_ex *pub, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
		  uint64_t swap)
{
	wr_atomic(pub, SOFTHCA_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void
wr_atomic_fetch_add(struct ibv_qp_ex *pub, uint32_t rkey, uint64_t remote_addr, uint64_t value)
{
	wr_atomic(pub, SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, value, 0);
}

/* The request has its data, or none: it waits for the SRQ of XRC only. */
static void
add_unless_peer(struct front_batch *batch)
{
	if (batch->needs == 0)
		add(batch);
}

static void
wr_atomic_write(struct ibv_qp_ex *pub, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr)
{
	struct front_batch *batch = batch_of(pub);
	struct softhca_send_wr *wr = begin(pub, SOFTHCA_WR_ATOMIC_WRITE, batch->peer);

	memcpy(batch->operand, atomic_wr, sizeof(batch->operand));
	batch->sge = (struct softhca_sge){(uintptr_t)batch->operand, sizeof(batch->operand), 0};
	wr->sg_list = &batch->sge;
	wr->num_sge = 1;
	wr->send_flags |= SOFTHCA_SEND_INLINE;
	wr->wr.rdma.remote_addr = remote_addr;
	wr->wr.rdma.rkey = rkey;
	add_unless_peer(batch);
}

static void
wr_flush(struct ibv_qp_ex *pub, uint32_t rkey, uint64_t remote_addr, size_t len, uint8_t type,
	 uint8_t level)
{
	struct front_batch *batch = batch_of(pub);
	struct softhca_send_wr *wr = begin(pub, SOFTHCA_WR_FLUSH, batch->peer);

	if (len > UINT32_MAX && level == SOFTHCA_FLUSH_RANGE)
		spoil(batch, "bytes of a FLUSH", len, (size_t)1 << 31);
	wr->sg_list = NULL;
	wr->num_sge = 0;
	wr->wr.flush.remote_addr = remote_addr;
	wr->wr.flush.rkey = rkey;
	wr->wr.flush.length = level == SOFTHCA_FLUSH_RANGE ? (uint32_t)len : 0;
	wr->wr.flush.type = type;
	wr->wr.flush.level = level;
	add_unless_peer(batch);
}

static void
wr_local_inv(struct ibv_qp_ex *pub, uint32_t invalidate_rkey)
{
	begin_local(pub, SOFTHCA_WR_LOCAL_INV)->invalidate_rkey = invalidate_rkey;
	add(batch_of(pub));
}

static void
wr_bind_mw(struct ibv_qp_ex *pub, struct ibv_mw *mw, uint32_t rkey,
	   const struct ibv_mw_bind_info *info)
{
	struct softhca_send_wr *wr = begin_local(pub, SOFTHCA_WR_BIND_MW);

	wr->bind_mw.mw = front_mw_hca(mw);
	wr->bind_mw.rkey = rkey;
	memcpy(&wr->bind_mw.bind_info, info, sizeof(wr->bind_mw.bind_info));
	add(batch_of(pub));
}

/* ---- setters ---- */

static void
wr_set_ud_addr(struct ibv_qp_ex *pub, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct front_batch *batch = batch_of(pub);

	batch->wr.wr.ud.ah = front_ah_hca(ah);
	batch->wr.wr.ud.remote_qpn = remote_qpn;
	batch->wr.wr.ud.remote_qkey = remote_qkey;
	set(batch, NEEDS_PEER);
}

static void
wr_set_xrc_srqn(struct ibv_qp_ex *pub, uint32_t remote_srqn)
{
	batch_of(pub)->wr.qp_type.xrc.remote_srqn = remote_srqn;
	set(batch_of(pub), NEEDS_PEER);
}

/* Data that must stay until the peer is set too is copied. */
static void
set_sges(struct front_batch *batch, const struct softhca_sge *sges, size_t n)
{
	if (n > batch->max_sges) {
		spoil(batch, "SGEs of a request of the QP", n, batch->max_sges);
		n = 0;
	}
	if (batch->needs != NEEDS_DATA && n != 0) {
		memcpy(batch->sges, sges, n * sizeof(*sges));
		sges = batch->sges;
	}
	batch->wr.sg_list = (struct softhca_sge *)(uintptr_t)sges;
	batch->wr.num_sge = (int)n;
	set(batch, NEEDS_DATA);
}

static void
wr_set_sge(struct ibv_qp_ex *pub, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct front_batch *batch = batch_of(pub);

	batch->sge = (struct softhca_sge){addr, length, lkey};
	batch->wr.sg_list = &batch->sge;
	batch->wr.num_sge = 1;
	set(batch, NEEDS_DATA);
}

static void
wr_set_sge_list(struct ibv_qp_ex *pub, size_t num_sge, const struct ibv_sge *sg_list)
{
	set_sges(batch_of(pub), (const struct softhca_sge *)sg_list, num_sge);
}

static void
wr_set_inline(struct front_batch *batch, size_t n, const struct ibv_data_buf *pieces)
{
	struct softhca_sge sge = {0};
	size_t total = 0;

	for (size_t i = 0; i < n; i++) {
		if (pieces[i].length > batch->max_inline - total) {
			spoil(batch, "bytes of inline data of the QP", total + pieces[i].length,
			      batch->max_inline);
			return;
		}
		if (pieces[i].length != 0)
			memcpy(batch->inline_data + total, pieces[i].addr, pieces[i].length);
		total += pieces[i].length;
	}
	sge.addr = (uintptr_t)batch->inline_data;
	sge.length = (uint32_t)total;
	batch->wr.send_flags |= SOFTHCA_SEND_INLINE;
	set_sges(batch, &sge, 1);
}

static void
wr_set_inline_data(struct ibv_qp_ex *pub, void *addr, size_t length)
{
	struct front_batch *batch = batch_of(pub);
	const struct ibv_data_buf piece = {addr, length};
	const struct softhca_sge sge = {(uintptr_t)addr, (uint32_t)length, 0};

	if (batch->needs != NEEDS_DATA || length > batch->max_inline) {
		wr_set_inline(batch, 1, &piece);
		return;
	}
	batch->wr.send_flags |= SOFTHCA_SEND_INLINE;
	set_sges(batch, &sge, 1);
}

static void
wr_set_inline_data_list(struct ibv_qp_ex *pub, size_t num_buf, const struct ibv_data_buf *buf_list)
{
	wr_set_inline(batch_of(pub), num_buf, buf_list);
}

/* ---- begin and end ---- */

static void
wr_start(struct ibv_qp_ex *pub)
{
	struct front_qp *qp = (struct front_qp *)pub;

	softhca_wr_start(&qp->batch->hca, qp->hca);
	qp->batch->needs = 0;
	qp->batch->err = 0;
}

static int
wr_complete(struct ibv_qp_ex *pub)
{
	struct front_batch *batch = batch_of(pub);
	int err;

	if (__builtin_expect(batch->needs != 0, 0))
		end_waiting(batch);
	err = batch->err;
	if (__builtin_expect(err != 0, 0)) {
		softhca_wr_abort(&batch->hca); /* and then it is the next thread's */
		return err;
	}
	return front_result(softhca_wr_complete(&batch->hca), "ibv_wr_complete");
}

static void
wr_abort(struct ibv_qp_ex *pub)
{
	softhca_wr_abort(&batch_of(pub)->hca);
}

/* ---- functions of a QP ---- */

#define RDMA_WRITES (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define SENDS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define ANSWERED \
	(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV)
#define WINDOWS (IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define WITH_FLUSH (1u << 11) /* IBV_QP_EX_WITH_FLUSH, which the header of rdma-core 44 lacks */

/* Operations that an older daemon does not have */
static uint64_t
confirmed(struct ibv_context *context)
{
	struct softhca_device_attr attr;
	uint64_t ops = 0;

	if (softhca_query_device(front_hca(context), &attr) != 0)
		return 0;
	if ((attr.device_cap_flags & SOFTHCA_DEVICE_ATOMIC_WRITE) != 0)
		ops |= IBV_QP_EX_WITH_ATOMIC_WRITE;
	if ((attr.device_cap_flags & SOFTHCA_DEVICE_FLUSH_GLOBAL) != 0)
		ops |= WITH_FLUSH;
	return ops;
}

/* The operations that a type of QP can have */
static uint64_t
offered(struct ibv_context *context, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return RDMA_WRITES | SENDS | ANSWERED | WINDOWS | confirmed(context);
	case IBV_QPT_UC:
		return RDMA_WRITES | SENDS | WINDOWS;
	case IBV_QPT_UD:
		return SENDS;
	case IBV_QPT_XRC_SEND:
		return RDMA_WRITES | SENDS | ANSWERED | confirmed(context);
	default:
		return 0;
	}
}

/* All functions are set, also unrequested ones: those that the type does not offer fail. */
static void
fill_ops(struct front_qp *qp)
{
	struct ibv_qp_ex *pub = &qp->pub;

	qp->wr_flush = wr_flush;
	pub->wr_atomic_write = wr_atomic_write;
	pub->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	pub->wr_atomic_fetch_add = wr_atomic_fetch_add;
	pub->wr_bind_mw = wr_bind_mw;
	pub->wr_local_inv = wr_local_inv;
	pub->wr_rdma_read = wr_rdma_read;
	pub->wr_rdma_write = wr_rdma_write;
	pub->wr_rdma_write_imm = wr_rdma_write_imm;
	pub->wr_send = wr_send;
	pub->wr_send_imm = wr_send_imm;
	pub->wr_send_inv = wr_send_inv;
	pub->wr_set_ud_addr = wr_set_ud_addr;
	pub->wr_set_xrc_srqn = wr_set_xrc_srqn;
	pub->wr_set_inline_data = wr_set_inline_data;
	pub->wr_set_inline_data_list = wr_set_inline_data_list;
	pub->wr_set_sge = wr_set_sge;
	pub->wr_set_sge_list = wr_set_sge_list;
	pub->wr_start = wr_start;
	pub->wr_complete = wr_complete;
	pub->wr_abort = wr_abort;
}

int
front_wr_judge(struct ibv_context *context, enum ibv_qp_type type, uint64_t send_ops_flags,
	       const char *call)
{
	uint64_t unknown = send_ops_flags & ~offered(context, type);

	if (unknown == 0)
		return 0;
	return front_refuse(
		EOPNOTSUPP, call, "send_ops_flags %#llx: a QP of type %u has a set of %#llx",
		(unsigned long long)send_ops_flags, type,
		(unsigned long long)(send_ops_flags ^ unknown ^ offered(context, type)));
}

int
front_wr_init(struct front_qp *qp, const struct softhca_qp_cap *cap)
{
	size_t sges = cap->max_send_sge * sizeof(struct softhca_sge);
	struct front_batch *batch =
		front_new(sizeof(*batch) + sges + cap->max_inline_data, "ibv_create_qp_ex");
	enum ibv_qp_type type = qp->pub.qp_base.qp_type;

	if (batch == NULL)
		return ENOMEM;
	batch->peer = type == IBV_QPT_UD || type == IBV_QPT_XRC_SEND ? NEEDS_PEER : 0;
	batch->max_sges = cap->max_send_sge;
	batch->max_inline = cap->max_inline_data;
	batch->sges = (struct softhca_sge *)(batch + 1);
	batch->inline_data = (uint8_t *)batch->sges + sges;
	qp->batch = batch;
	fill_ops(qp);
	return 0;
}

void
front_wr_fini(struct front_qp *qp)
{
	free(qp->batch);
}
