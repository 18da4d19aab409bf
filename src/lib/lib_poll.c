/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * poll_cq: converts CQEs (tables 3-3-1 .. 3-3-4) to work completions. When the owner byte of a CQE
 * says so, it belongs to software: it is read after that byte, returned by writing the byte, and
 * then counted in the consumer index.
 */

#include <errno.h>

#include "abi_roce.h"
#include "lib_types.h"
#include "lib_wait.h"

/* Number of CQEs to prefetch while one is read: two cache lines */
#define POLL_PREFETCH 4

/* Completion opcodes of send opcodes */
static const uint8_t send_wc[32] = {
#define X(name, code, wr, wc, flags, bth) [code] = SOFTHCA_WC_##wc,
	HCA_OP_LIST(X)
#undef X
};

/* Receives, by the BTH opcode of the last packet: a SEND, or a WRITE with an immediate */
struct recv_kind {
	uint8_t opcode;
	uint8_t flags;
};

static const struct recv_kind recv_wc[256] = {
#define OPCODE(kind) \
	((kind) == HCA_PKT_SEND	   ? SOFTHCA_WC_RECV \
	 : (kind) == HCA_PKT_WRITE ? SOFTHCA_WC_RECV_RDMA_WITH_IMM \
				   : 0)
#define FLAGS(ext) \
	((ext)&HCA_EXT_IMMDT ? SOFTHCA_WC_WITH_IMM : (ext)&HCA_EXT_IETH ? SOFTHCA_WC_WITH_INV : 0)
#define X(name, code, kind, pos, ext) [code] = {OPCODE(HCA_PKT_##kind), FLAGS(ext)},
	HCA_BTH_LIST(X)
#undef X
};

static const uint8_t status_of[] = {
#define X(name, code, text, wc) [code] = SOFTHCA_WC_##wc,
	HCA_SYND_LIST(X)
#undef X
};

static void
take_error(const struct hca_cqe *cqe, bool is_send, struct softhca_wc *wc)
{
	const struct hca_cqe_err *err = (const struct hca_cqe_err *)cqe;
	uint8_t status = 0;

	if (err->syndrome < sizeof(status_of))
		status = status_of[err->syndrome];
	wc->status = status != SOFTHCA_WC_SUCCESS ? status : SOFTHCA_WC_GENERAL_ERR;
	wc->vendor_err = (uint32_t)err->vendor_err << 8 | err->syndrome;
	wc->opcode = is_send ? SOFTHCA_WC_SEND : SOFTHCA_WC_RECV;
	wc->byte_len = 0;
	wc->imm_data = 0;
	wc->wc_flags = 0;
}

static inline void
take_send(struct lib_qp *qp, const struct hca_cqe *cqe, struct softhca_wc *wc)
{
	struct lib_polled *sq = &qp->sq_polled;
	uint32_t index = hca_le32_to_cpu(cqe->wqe) >> sq->log_stride & sq->mask;
	uint32_t tail = sq->tail;

	if (__builtin_expect(sq->wr_id == NULL, 0))
		return; /* the device has invented a completion */
	wc->wr_id = sq->wr_id[index];
	/* Complete this WQE and the unsignalled ones before it. */
	__atomic_store_n(&sq->tail, tail + ((index - tail) & sq->mask) + 1, __ATOMIC_RELEASE);
	wc->opcode = send_wc[cqe->opcode & 31];
	wc->imm_data = 0;
	wc->wc_flags = 0;
}

/*
 * wr_id of the receive WQE of a CQE: of an SRQ, or the next of the QP's own queue, where another
 * thread may reuse the WQE as soon as tail has passed it.
 */
static inline uint64_t
take_recv_wqe(struct lib_qp *qp, const struct hca_cqe *cqe)
{
	struct lib_polled *rq = &qp->rq_polled;
	uint32_t index, tail = rq->tail;
	uint64_t wr_id;

	if (__builtin_expect(cqe->srqn != 0, 0)) {
		struct lib_srq *srq = lib_find_srq(lib_qp_ctx(qp), hca_le32_to_cpu(cqe->srqn));

		return srq != NULL ? lib_srq_take(srq, hca_le32_to_cpu(cqe->wqe)) : 0;
	}
	if (__builtin_expect(rq->wr_id == NULL, 0))
		return 0;
	index = hca_le32_to_cpu(cqe->wqe) >> rq->log_stride & rq->mask;
	wr_id = rq->wr_id[index];
	__atomic_store_n(&rq->tail, tail + ((index - tail) & rq->mask) + 1, __ATOMIC_RELEASE);
	return wr_id;
}

static inline void
take_recv(struct lib_qp *qp, const struct hca_cqe *cqe, struct softhca_wc *wc)
{
	const struct recv_kind *kind = &recv_wc[cqe->opcode];

	wc->wr_id = take_recv_wqe(qp, cqe);
	wc->opcode = kind->opcode;
	wc->wc_flags = kind->flags |
		       ((hca_le32_to_cpu(cqe->flags) & HCA_CQE_GRH) != 0 ? SOFTHCA_WC_GRH : 0);
	/* an immediate in network order, as received; a key as a number */
	wc->imm_data = kind->flags & SOFTHCA_WC_WITH_INV ? hca_le32_to_cpu(cqe->imm) : cqe->imm;
}

/* The QP is destroyed, but its WQE of an SRQ is freed. */
static void
skip_cqe(struct lib_cq *cq, const struct hca_cqe *cqe)
{
	struct lib_srq *srq = NULL;

	if ((cqe->is_send & 1) == 0 && cqe->srqn != 0)
		srq = lib_find_srq(cq->ctx, hca_le32_to_cpu(cqe->srqn));
	if (srq != NULL)
		lib_srq_take(srq, hca_le32_to_cpu(cqe->wqe));
}

/* Convert a CQE. False: no such QP (any more); the CQE is skipped. */
static inline bool
take_cqe(struct lib_cq *cq, const struct hca_cqe *cqe, struct softhca_wc *wc)
{
	uint32_t qpn = hca_le32_to_cpu(cqe->my_qpn);
	struct lib_qp *qp = lib_find_qp(cq->ctx, qpn);
	uint32_t flags = hca_le32_to_cpu(cqe->flags);
	bool is_send = (cqe->is_send & 1) != 0;

	if (__builtin_expect(qp == NULL, 0)) {
		skip_cqe(cq, cqe);
		return false;
	}
	if (is_send)
		take_send(qp, cqe, wc);
	else
		take_recv(qp, cqe, wc);
	wc->status = SOFTHCA_WC_SUCCESS;
	wc->vendor_err = 0;
	wc->byte_len = hca_le32_to_cpu(cqe->byte_cnt);
	if (__builtin_expect(cqe->opcode >= HCA_CQE_OP_ERR_RECV, 0))
		take_error(cqe, is_send, wc);
	wc->qp_num = qpn;
	wc->src_qp = hca_le32_to_cpu(cqe->rqpn);
	wc->pkey_index = (uint16_t)HCA_CQE_PKEY_INDEX(flags);
	wc->slid = 0;
	wc->sl = (uint8_t)HCA_CQE_SL(flags);
	wc->dlid_path_bits = 0;
	return true;
}

static inline int
poll_locked(struct lib_cq *cq, int num, struct softhca_wc *wc)
{
	uint32_t consumer = cq->consumer;
	int got = 0;

	while (got < num) {
		struct hca_cqe *cqe = &cq->ring[consumer & cq->mask];

		if (__atomic_load_n(&cqe->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW)
			break;
		__builtin_prefetch(&cq->ring[(consumer + POLL_PREFETCH) & cq->mask], 1);
		got += take_cqe(cq, cqe, &wc[got]);
		__atomic_store_n(&cqe->owner, HCA_OWNER_HW, __ATOMIC_RELEASE);
		consumer++;
	}
	if (consumer != cq->consumer) {
		cq->consumer = consumer;
		__atomic_store_n(&cq->record->consumer, hca_cpu_to_le32(consumer),
				 __ATOMIC_RELEASE);
	}
	return got;
}

static inline int
poll_once(struct lib_cq *cq, int num, struct softhca_wc *wc)
{
	int got;

	if (!cq->locked)
		return poll_locked(cq, num, wc);
	lib_lock_take(&cq->lock);
	got = poll_locked(cq, num, wc);
	lib_lock_drop(&cq->lock);
	return got;
}

int
softhca_poll_cq(struct softhca_cq *pub, int num_entries, struct softhca_wc *wc)
{
	struct lib_cq *cq = (struct lib_cq *)pub;
	int got;

	if (__builtin_expect(num_entries < 0, 0))
		return lib_fail(-EINVAL, "poll_cq for %d entries", num_entries);
	got = poll_once(cq, num_entries, wc);
	if (got != 0) {
		lib_wait_over();
		return got;
	}
	/* a program that polls an empty CQ of a dead daemon must not wait for ever */
	if (cq->ctx->progress == NULL) {
		if (__builtin_expect(cq->ctx->dead, 0))
			return lib_dead(cq->ctx);
		lib_wait_empty();
		return 0;
	}
	lib_run(cq->ctx);
	return poll_once(cq, num_entries, wc);
}
