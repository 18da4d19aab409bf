/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * poll_cq: converts CQEs (tables 3-3-1 .. 3-3-4) to work completions; start_poll and next_poll:
 * show them one by one, where they lie. When the owner byte of a CQE says so, it belongs to
 * software: it is read after that byte, returned by writing the byte, and then counted in the
 * consumer index.
 */

#include <errno.h>

#include "abi_roce.h"
#include "lib_types.h"
#include "lib_wait.h"

/* Number of CQEs to prefetch while one is read: two cache lines */
#define POLL_PREFETCH 4
/* The same of completions of many QPs, and the distances of prefetch_many() */
#define POLL_MANY_PREFETCH 30
#define POLL_QP 24
#define POLL_QUEUE 4

/* Completion opcodes of send opcodes */
static const uint8_t send_wc[32] = {
#define X(name, code, wr, wc, kind, flags, bth) [code] = SOFTHCA_WC_##wc,
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

static inline bool
is_error(const struct hca_cqe *cqe)
{
	return cqe->opcode >= HCA_CQE_OP_ERR_RECV;
}

static uint32_t
error_status(const struct hca_cqe *cqe)
{
	const struct hca_cqe_err *err = (const struct hca_cqe_err *)cqe;
	uint8_t status = 0;

	if (err->syndrome < sizeof(status_of))
		status = status_of[err->syndrome];
	return status != SOFTHCA_WC_SUCCESS ? status : SOFTHCA_WC_GENERAL_ERR;
}

static uint32_t
error_vendor(const struct hca_cqe *cqe)
{
	const struct hca_cqe_err *err = (const struct hca_cqe_err *)cqe;

	return (uint32_t)err->vendor_err << 8 | err->syndrome;
}

static void
take_error(const struct hca_cqe *cqe, bool is_send, struct softhca_wc *wc)
{
	wc->status = error_status(cqe);
	wc->vendor_err = error_vendor(cqe);
	wc->opcode = is_send ? SOFTHCA_WC_SEND : SOFTHCA_WC_RECV;
	wc->byte_len = 0;
	wc->imm_data = 0;
	wc->wc_flags = 0;
}

/*
 * Complete the WQE of a CQE and those before it, which are unsignalled; returns its wr_id. Another
 * thread may reuse the WQEs as soon as tail has passed them. 0: the device has invented a
 * completion.
 */
static inline uint64_t
take_wqe(struct lib_polled *queue, const struct hca_cqe *cqe)
{
	uint32_t index = hca_le32_to_cpu(cqe->wqe) >> queue->log_stride & queue->mask;
	uint32_t tail = queue->tail;
	uint64_t wr_id;

	if (__builtin_expect(queue->wr_id == NULL, 0))
		return 0;
	wr_id = queue->wr_id[index];
	__atomic_store_n(&queue->tail, tail + ((index - tail) & queue->mask) + 1, __ATOMIC_RELEASE);
	return wr_id;
}

static inline void
take_send(struct lib_qp *qp, const struct hca_cqe *cqe, struct softhca_wc *wc)
{
	wc->wr_id = take_wqe(&qp->sq_polled, cqe);
	wc->opcode = send_wc[cqe->opcode & 31];
	wc->imm_data = 0;
	wc->wc_flags = 0;
}

/* wr_id of the receive WQE of a CQE: of an SRQ, or the next of the QP's own queue */
static inline uint64_t
take_recv_wqe(struct lib_qp *qp, const struct hca_cqe *cqe)
{
	if (__builtin_expect(cqe->srqn != 0, 0)) {
		struct lib_srq *srq = lib_find_srq(lib_qp_ctx(qp), hca_le32_to_cpu(cqe->srqn));

		return srq != NULL ? lib_srq_take(srq, hca_le32_to_cpu(cqe->wqe)) : 0;
	}
	return take_wqe(&qp->rq_polled, cqe);
}

/* An immediate in network order, as received; a key as a number */
static inline uint32_t
recv_imm(const struct recv_kind *kind, const struct hca_cqe *cqe)
{
	return kind->flags & SOFTHCA_WC_WITH_INV ? hca_le32_to_cpu(cqe->imm) : cqe->imm;
}

static inline uint32_t
recv_flags(const struct recv_kind *kind, const struct hca_cqe *cqe)
{
	return kind->flags |
	       ((hca_le32_to_cpu(cqe->flags) & HCA_CQE_GRH) != 0 ? SOFTHCA_WC_GRH : 0);
}

static inline void
take_recv(struct lib_qp *qp, const struct hca_cqe *cqe, struct softhca_wc *wc)
{
	const struct recv_kind *kind = &recv_wc[cqe->opcode];

	wc->wr_id = take_recv_wqe(qp, cqe);
	wc->opcode = kind->opcode;
	wc->wc_flags = recv_flags(kind, cqe);
	wc->imm_data = recv_imm(kind, cqe);
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
	if (__builtin_expect(is_error(cqe), 0))
		take_error(cqe, is_send, wc);
	wc->qp_num = qpn;
	wc->src_qp = hca_le32_to_cpu(cqe->rqpn);
	wc->pkey_index = (uint16_t)HCA_CQE_PKEY_INDEX(flags);
	wc->slid = 0;
	wc->sl = (uint8_t)HCA_CQE_SL(flags);
	wc->dlid_path_bits = 0;
	return true;
}

/* The CQE after `ahead` others, to prefetch what it refers to; NULL: the device has it. */
static inline const struct hca_cqe *
cqe_ahead(const struct lib_cq *cq, uint32_t consumer, uint32_t ahead)
{
	const struct hca_cqe *cqe = &cq->ring[(consumer + ahead) & cq->mask];

	return __atomic_load_n(&cqe->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW ? NULL : cqe;
}

/* Other threads may post if the CQ has a lock: it leaves the lines that they write alone. */
static inline void
prefetch_qp(const struct lib_cq *cq, const struct hca_cqe *cqe)
{
	const struct lib_qp *qp =
		__atomic_load_n(&cq->ctx->qps[hca_le32_to_cpu(cqe->my_qpn) & cq->ctx->qp_mask],
				__ATOMIC_RELAXED);

	if (qp == NULL)
		return;
	__builtin_prefetch(&qp->pub);
	__builtin_prefetch(&qp->sq_polled, 1);
	if (!cq->locked)
		__builtin_prefetch(&qp->sq, 1);
}

/* The wr_id of a CQE, and the WQE that the program posts next, often right after the poll */
static inline void
prefetch_wqe(const struct lib_cq *cq, const struct hca_cqe *cqe)
{
	const struct lib_qp *qp = lib_find_qp(cq->ctx, hca_le32_to_cpu(cqe->my_qpn));
	const struct lib_polled *sends;
	uint32_t index, head;

	if (qp == NULL || (cqe->is_send & 1) == 0 || qp->sq_polled.wr_id == NULL)
		return;
	sends = &qp->sq_polled;
	index = hca_le32_to_cpu(cqe->wqe) >> sends->log_stride & sends->mask;
	__builtin_prefetch(&sends->wr_id[index]);
	if (cq->locked)
		return;
	head = __atomic_load_n(&qp->sq.head, __ATOMIC_RELAXED);
	__builtin_prefetch(qp->sq.buf + ((size_t)(head & sends->mask) << sends->log_stride), 1);
}

/* The lines of a QP object first, and when they have arrived those that it refers to. */
static inline void
prefetch_many(const struct lib_cq *cq, uint32_t consumer)
{
	const struct hca_cqe *far = cqe_ahead(cq, consumer, POLL_QP);
	const struct hca_cqe *near = cqe_ahead(cq, consumer, POLL_QUEUE);

	if (far != NULL)
		prefetch_qp(cq, far);
	if (near != NULL)
		prefetch_wqe(cq, near);
}

/* `large` is that of the CQ, as a constant: CQEs of 32 bytes cost nothing for the others. */
static inline __attribute__((always_inline)) int
poll_kind(struct lib_cq *cq, int num, struct softhca_wc *wc, const uint32_t large, const bool many)
{
	const uint32_t ahead = many ? POLL_MANY_PREFETCH : POLL_PREFETCH;
	uint32_t consumer = cq->consumer;
	int got = 0;

	while (got < num) {
		struct hca_cqe *cqe = &cq->ring[(size_t)(consumer & cq->mask) << large];

		if (__atomic_load_n(&cqe->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW)
			break;
		__builtin_prefetch(&cq->ring[(size_t)((consumer + ahead) & cq->mask) << large], 1);
		if (many)
			prefetch_many(cq, consumer);
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

static __attribute__((noinline)) int
poll_large(struct lib_cq *cq, int num, struct softhca_wc *wc)
{
	return poll_kind(cq, num, wc, 1, false);
}

static __attribute__((noinline)) int
poll_many(struct lib_cq *cq, int num, struct softhca_wc *wc)
{
	return poll_kind(cq, num, wc, 0, true);
}

/* Whether the next two completions are of different QPs. */
static inline bool
has_many(const struct lib_cq *cq)
{
	const struct hca_cqe *first = cqe_ahead(cq, cq->consumer, 0);
	const struct hca_cqe *second = cqe_ahead(cq, cq->consumer, 1);

	return first != NULL && second != NULL && first->my_qpn != second->my_qpn;
}

#define LIB_READS_CQ "this thread reads CQ %u: end_poll comes before another poll"

static inline int
poll_locked(struct lib_cq *cq, int num, struct softhca_wc *wc)
{
	if (__builtin_expect(cq->large, 0))
		return poll_large(cq, num, wc);
	if (__builtin_expect(has_many(cq), 0))
		return poll_many(cq, num, wc);
	return poll_kind(cq, num, wc, 0, false);
}

/* Another thread has the lock, or this one, between start_poll and end_poll. */
static __attribute__((noinline)) int
wait_for_lock(struct lib_cq *cq)
{
	if (lib_cq_is_read(cq))
		return lib_fail(-EBUSY, LIB_READS_CQ, cq->pub.handle);
	lib_lock_take(&cq->lock);
	return 0;
}

static inline int
poll_once(struct lib_cq *cq, int num, struct softhca_wc *wc)
{
	int got;

	if (!cq->locked)
		return poll_locked(cq, num, wc);
	if (__builtin_expect(!lib_lock_try(&cq->lock), 0)) {
		got = wait_for_lock(cq);
		if (got != 0)
			return got;
	}
	got = poll_locked(cq, num, wc);
	lib_lock_drop(&cq->lock);
	return got;
}

/*
 * A program that polls an empty CQ of a dead daemon must not wait without end. Not with manual
 * progress.
 */
static inline int
found_nothing(const struct lib_context *ctx)
{
	if (__builtin_expect(ctx->dead, 0))
		return lib_dead(ctx);
	lib_wait_empty();
	return 0;
}

int
softhca_poll_cq(struct softhca_cq *pub, int num_entries, struct softhca_wc *wc)
{
	struct lib_cq *cq = (struct lib_cq *)pub;
	int got;

	if (__builtin_expect(num_entries < 0, 0))
		return lib_fail(-EINVAL, "num_entries %d: expected 0 or more", num_entries);
	got = poll_once(cq, num_entries, wc);
	if (got != 0) {
		lib_wait_over();
		return got;
	}
	if (cq->ctx->progress == NULL)
		return found_nothing(cq->ctx);
	lib_run(cq->ctx, cq->ctx->progress);
	return poll_once(cq, num_entries, wc);
}

/* ---- one completion after another ---- */

/* Whether a completion may be read; if the CQE is of no QP (any more), it may not. */
static bool
show_cqe(struct lib_cq *cq, const struct hca_cqe *cqe)
{
	struct lib_qp *qp = lib_find_qp(cq->ctx, hca_le32_to_cpu(cqe->my_qpn));

	if (__builtin_expect(qp == NULL, 0)) {
		skip_cqe(cq, cqe);
		return false;
	}
	cq->pub.wr_id =
		(cqe->is_send & 1) != 0 ? take_wqe(&qp->sq_polled, cqe) : take_recv_wqe(qp, cqe);
	cq->pub.status = is_error(cqe) ? error_status(cqe) : SOFTHCA_WC_SUCCESS;
	cq->shown = cqe;
	return true;
}

static void
return_cqe(struct lib_cq *cq)
{
	__atomic_store_n(&lib_cqe_at(cq, cq->consumer)->owner, HCA_OWNER_HW, __ATOMIC_RELEASE);
	cq->consumer++;
	__atomic_store_n(&cq->record->consumer, hca_cpu_to_le32(cq->consumer), __ATOMIC_RELEASE);
}

static void
return_shown(struct lib_cq *cq)
{
	if (cq->shown != NULL)
		return_cqe(cq);
	cq->shown = NULL;
}

/* Show the next completion. False: the CQ is empty. */
static bool
show_next(struct lib_cq *cq)
{
	for (;;) {
		const struct hca_cqe *cqe = lib_cqe_at(cq, cq->consumer);

		if (__atomic_load_n(&cqe->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW)
			return false;
		__builtin_prefetch(lib_cqe_at(cq, cq->consumer + POLL_PREFETCH), 1);
		if (show_cqe(cq, cqe))
			return true;
		return_cqe(cq);
	}
}

/* Begin if there is a completion. The lock is held until end_poll. */
static bool
start_once(struct lib_cq *cq)
{
	if (cq->locked)
		lib_lock_take(&cq->lock);
	if (show_next(cq)) {
		__atomic_store_n(&cq->reader, &lib_wait, __ATOMIC_RELAXED);
		return true;
	}
	if (cq->locked)
		lib_lock_drop(&cq->lock);
	return false;
}

int
softhca_start_poll(struct softhca_cq *pub)
{
	struct lib_cq *cq = (struct lib_cq *)pub;
	bool found;
	int err = 0;

	if (__builtin_expect(lib_cq_is_read(cq), 0))
		return lib_fail(-EBUSY, LIB_READS_CQ, pub->handle);
	found = start_once(cq);
	if (!found && cq->ctx->progress != NULL) {
		lib_run(cq->ctx, cq->ctx->progress);
		found = start_once(cq);
	} else if (!found) {
		err = found_nothing(cq->ctx);
	}
	if (!found)
		return err != 0 ? err : -ENOENT;
	lib_wait_over();
	return 0;
}

int
softhca_next_poll(struct softhca_cq *pub)
{
	struct lib_cq *cq = (struct lib_cq *)pub;

	if (__builtin_expect(!lib_cq_is_read(cq), 0))
		return lib_fail(-EINVAL,
				"next_poll of CQ %u without start_poll: the thread must begin with "
				"start_poll",
				pub->handle);
	return_shown(cq);
	return show_next(cq) ? 0 : -ENOENT;
}

void
softhca_end_poll(struct softhca_cq *pub)
{
	struct lib_cq *cq = (struct lib_cq *)pub;

	if (__builtin_expect(!lib_cq_is_read(cq), 0))
		return;
	return_shown(cq);
	__atomic_store_n(&cq->reader, NULL, __ATOMIC_RELAXED);
	if (cq->locked)
		lib_lock_drop(&cq->lock);
}

/* The completion to read; there is one between start_poll and end_poll, else all fields are 0. */
static inline const struct hca_cqe *
shown(const struct softhca_cq *pub)
{
	static const struct hca_cqe none = {.is_send = 1, .opcode = HCA_OP_SEND};
	const struct hca_cqe *cqe = ((const struct lib_cq *)pub)->shown;

	return cqe != NULL ? cqe : &none;
}

/* Row for the opcode of a receive; NULL: a send or an error */
static inline const struct recv_kind *
recv_kind_of(const struct hca_cqe *cqe)
{
	return (cqe->is_send & 1) != 0 || is_error(cqe) ? NULL : &recv_wc[cqe->opcode];
}

uint32_t
softhca_wc_read_opcode(const struct softhca_cq *cq)
{
	const struct hca_cqe *cqe = shown(cq);

	if ((cqe->is_send & 1) != 0)
		return is_error(cqe) ? SOFTHCA_WC_SEND : send_wc[cqe->opcode & 31];
	return is_error(cqe) ? SOFTHCA_WC_RECV : recv_wc[cqe->opcode].opcode;
}

uint32_t
softhca_wc_read_vendor_err(const struct softhca_cq *cq)
{
	return is_error(shown(cq)) ? error_vendor(shown(cq)) : 0;
}

uint32_t
softhca_wc_read_byte_len(const struct softhca_cq *cq)
{
	return is_error(shown(cq)) ? 0 : hca_le32_to_cpu(shown(cq)->byte_cnt);
}

uint32_t
softhca_wc_read_imm_data(const struct softhca_cq *cq)
{
	const struct recv_kind *kind = recv_kind_of(shown(cq));

	return kind != NULL && kind->flags != 0 ? recv_imm(kind, shown(cq)) : 0;
}

uint32_t
softhca_wc_read_qp_num(const struct softhca_cq *cq)
{
	return hca_le32_to_cpu(shown(cq)->my_qpn);
}

uint32_t
softhca_wc_read_src_qp(const struct softhca_cq *cq)
{
	return hca_le32_to_cpu(shown(cq)->rqpn);
}

uint32_t
softhca_wc_read_wc_flags(const struct softhca_cq *cq)
{
	const struct recv_kind *kind = recv_kind_of(shown(cq));

	return kind != NULL ? recv_flags(kind, shown(cq)) : 0;
}

uint16_t
softhca_wc_read_pkey_index(const struct softhca_cq *cq)
{
	return (uint16_t)HCA_CQE_PKEY_INDEX(hca_le32_to_cpu(shown(cq)->flags));
}

uint8_t
softhca_wc_read_sl(const struct softhca_cq *cq)
{
	return (uint8_t)HCA_CQE_SL(hca_le32_to_cpu(shown(cq)->flags));
}

uint8_t
softhca_wc_read_network(const struct softhca_cq *cq)
{
	return (uint8_t)HCA_CQE_NETWORK(hca_le32_to_cpu(shown(cq)->flags));
}

/* RoCE has no LIDs. */
uint32_t
softhca_wc_read_slid(const struct softhca_cq *cq)
{
	(void)cq;
	return 0;
}

uint8_t
softhca_wc_read_dlid_path_bits(const struct softhca_cq *cq)
{
	(void)cq;
	return 0;
}

/* Fields of CQEs of 64 bytes; 0 in others */
static const struct hca_cqe_more *
shown_more(const struct softhca_cq *pub)
{
	static const struct hca_cqe_more none;
	const struct lib_cq *cq = (const struct lib_cq *)pub;

	if (cq->shown == NULL || cq->large == 0)
		return &none;
	return (const struct hca_cqe_more *)(cq->shown + 1);
}

uint64_t
softhca_wc_read_completion_ts(const struct softhca_cq *cq)
{
	return hca_le64_to_cpu(shown_more(cq)->core_clock);
}

uint64_t
softhca_wc_read_completion_wallclock_ns(const struct softhca_cq *cq)
{
	return hca_le64_to_cpu(shown_more(cq)->wall_clock);
}

uint16_t
softhca_wc_read_cvlan(const struct softhca_cq *cq)
{
	return hca_le16_to_cpu(shown_more(cq)->vlan);
}
