/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * poll_jfc: completions of the UB form (struct hca_cqe_ub). As in poll_cq of verbs, a CQE is read
 * after its owner byte, returned by writing that byte, and then counted in the consumer index.
 */

#include <string.h>

#include "abi_addr.h"
#include "urma_impl.h"

/* In CQEs of an object that has ended: no kind */
#define FORGOTTEN UINT32_MAX

static const uint8_t status_of[256] = {
	[HCA_UB_STATUS_OK] = URMA_CR_SUCCESS,
	[HCA_UB_STATUS_UNSUPPORTED_OPCODE] = URMA_CR_UNSUPPORTED_OPCODE_ERR,
	[HCA_UB_STATUS_LOCAL_LENGTH] = URMA_CR_LOC_LEN_ERR,
	[HCA_UB_STATUS_LOCAL_ACCESS] = URMA_CR_LOC_ACCESS_ERR,
	[HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH] = URMA_CR_REM_RESP_LEN_ERR,
	[HCA_UB_STATUS_LOCAL_POISON] = URMA_CR_LOC_DATA_POISON,
	[HCA_UB_STATUS_REMOTE_UNSUPPORTED] = URMA_CR_REM_UNSUPPORTED_REQ_ERR,
	[HCA_UB_STATUS_REMOTE_ACCESS] = URMA_CR_REM_ACCESS_ABORT_ERR,
	[HCA_UB_STATUS_REMOTE_POISON] = URMA_CR_REM_DATA_POISON,
	[HCA_UB_STATUS_RNR_EXC] = URMA_CR_RNR_RETRY_CNT_EXC_ERR,
	[HCA_UB_STATUS_ACK_TIMEOUT] = URMA_CR_ACK_TIMEOUT_ERR,
	[HCA_UB_STATUS_FLUSHED] = URMA_CR_WR_FLUSH_ERR,
	[HCA_UB_STATUS_SUSPEND_DONE] = URMA_CR_WR_SUSPEND_DONE,
	[HCA_UB_STATUS_FLUSH_DONE] = URMA_CR_WR_FLUSH_ERR_DONE,
};

static urma_cr_status_t
cr_status(uint8_t code)
{
	if (status_of[code] == URMA_CR_SUCCESS && code != HCA_UB_STATUS_OK)
		return URMA_CR_WR_UNHANDLED;
	return (urma_cr_status_t)status_of[code];
}

static urma_cr_opcode_t
recv_opcode(uint8_t opcode)
{
	switch (opcode) {
	case HCA_UB_TA_SEND_IMM:
		return URMA_CR_OPC_SEND_WITH_IMM;
	case HCA_UB_TA_WRITE_IMM:
		return URMA_CR_OPC_WRITE_WITH_IMM;
	default:
		return URMA_CR_OPC_SEND;
	}
}

/* By its whole number; NULL: not found, or deleted. */
static struct urma_queue *
find_queue(const struct urma_ctx *ctx, uint32_t number, bool is_jfs)
{
	struct urma_queue *q =
		__atomic_load_n(&ctx->queue[number & ctx->queue_mask], __ATOMIC_ACQUIRE);

	return q != NULL && q->number == number && q->is_jfs == is_jfs ? q : NULL;
}

static struct urma_jfrq *
find_jfrq(const struct urma_ctx *ctx, uint32_t number)
{
	struct urma_jfrq *f =
		__atomic_load_n(&ctx->jfrq[number & ctx->jfrq_mask], __ATOMIC_ACQUIRE);

	return f != NULL && f->number == number ? f : NULL;
}

/* The last CQEs of a queue that stops or is flushed are of no request. */
static bool
is_of_no_request(uint8_t status)
{
	return status == HCA_UB_STATUS_FLUSH_DONE || status == HCA_UB_STATUS_SUSPEND_DONE;
}

/* Requests complete in order; those without a completion are also finished. */
static inline uint64_t
sq_take(struct urma_queue *q, uint32_t wqe_offset)
{
	uint32_t index = wqe_offset >> q->sq.log_stride & q->sq.mask, at = q->tail;
	uint64_t id = q->sq.wr_id[index];

	/* another thread may reuse the WQEs as soon as tail has passed them */
	__atomic_store_n(&q->tail, at + ((index - at) & q->sq.mask) + 1, __ATOMIC_RELEASE);
	return id;
}

/* Receives are taken in order, but complete in the order in which messages become whole. */
static inline uint64_t
take_ring(struct urma_rq *rq, uint32_t offset)
{
	uint32_t index = offset >> rq->wq.log_stride & rq->wq.mask, tail = rq->tail;
	uint64_t id = rq->wq.wr_id[index];

	if (index == (tail & rq->wq.mask))
		tail++;
	else
		rq->done[index] = 1;
	for (; rq->done[tail & rq->wq.mask]; tail++)
		rq->done[tail & rq->wq.mask] = 0;
	__atomic_store_n(&rq->tail, tail, __ATOMIC_RELEASE);
	return id;
}

static __attribute__((noinline)) uint64_t
take_list(struct urma_rq *rq, uint32_t offset)
{
	uint32_t index = offset >> rq->wq.log_stride & rq->wq.mask;
	uint64_t id;

	lib_lock_take(&rq->wq.lock);
	id = rq->wq.wr_id[index];
	rq->next[rq->free_tail] = index;
	rq->free_tail = index;
	lib_lock_drop(&rq->wq.lock);
	return id;
}

/* A receive is completed: its user_ctx. */
static inline uint64_t
rq_take(struct urma_rq *rq, uint32_t wqe_offset)
{
	if (rq->wq.buf == NULL) /* the device has invented a completion */
		return 0;
	return rq->next != NULL ? take_list(rq, wqe_offset) : take_ring(rq, wqe_offset);
}

static inline void
take_send(struct urma_queue *q, const struct hca_cqe_ub *cqe, urma_cr_t *cr)
{
	if (!is_of_no_request(cqe->status)) {
		cr->user_ctx = sq_take(q, hca_le32_to_cpu(cqe->wqe));
		return;
	}
	if (cqe->status == HCA_UB_STATUS_FLUSH_DONE)
		__atomic_store_n(&q->flushed, true, __ATOMIC_RELEASE);
}

/*
 * The address of the sender stands in front of an unreliable message. A message by a channel has
 * data in its place: only a peer with the wrong mode sends one.
 */
static void
take_head(const struct urma_rq *rq, const struct hca_cqe_ub *cqe, urma_cr_t *cr)
{
	uint32_t index = hca_le32_to_cpu(cqe->wqe) >> rq->wq.log_stride & rq->wq.mask;
	const uint8_t *head = rq->heads + (size_t)index * URMA_HEAD_STRIDE;

	if (cr->status != URMA_CR_SUCCESS)
		return;
	if (cr->tpn != 0 || cr->completion_len < URMA_HEAD_BYTES) {
		cr->status = URMA_CR_LOC_LEN_ERR;
		return;
	}
	cr->completion_len -= URMA_HEAD_BYTES;
	if (head[0] >> 4 == 6)
		memcpy(cr->remote_id.eid.raw, head + 8, sizeof(cr->remote_id.eid.raw));
	else
		hca_gid_from_ip4(cr->remote_id.eid.raw, head + 32);
}

static void
take_recv(struct urma_rq *rq, const struct hca_cqe_ub *cqe, urma_cr_t *cr)
{
	cr->user_ctx = rq_take(rq, hca_le32_to_cpu(cqe->wqe));
	cr->opcode = recv_opcode(cqe->opcode);
	cr->remote_id.id = hca_le32_to_cpu(cqe->rc) & HCA_TC_MASK;
	cr->tpn = hca_le32_to_cpu(cqe->tpn) & HCA_TPN_MASK;
	if (cr->opcode != URMA_CR_OPC_SEND)
		cr->imm_data = hca_le64_to_cpu(cqe->imm);
	if (rq->heads != NULL)
		take_head(rq, cqe, cr);
	cr->flag.bs.s_r = 1;
}

/* Completion of a Jetty or JFS. A Jetty that shares a JFR has its receives there. */
static bool
take_queue(struct urma_ctx *ctx, const struct hca_cqe_ub *cqe, uint32_t number, bool is_jfs,
	   urma_cr_t *cr)
{
	struct urma_queue *q = find_queue(ctx, number, is_jfs);

	if (q == NULL)
		return false;
	if ((cqe->is_send & 1) != 0)
		take_send(q, cqe, cr);
	else
		take_recv(q->shared != NULL ? &q->shared->rq : &q->rq, cqe, cr);
	cr->flag.bs.jetty = !is_jfs;
	cr->local_id = is_jfs ? q->jfs.jfs_id.id : q->jetty.jetty_id.id;
	cr->user_data = (uintptr_t)q;
	return true;
}

static bool
take_jfr(struct urma_ctx *ctx, const struct hca_cqe_ub *cqe, uint32_t number, urma_cr_t *cr)
{
	struct urma_jfrq *f = find_jfrq(ctx, number);

	if (f == NULL)
		return false;
	take_recv(&f->rq, cqe, cr);
	cr->local_id = f->pub.jfr_id.id;
	cr->user_data = (uintptr_t)&f->pub;
	return true;
}

/* False: its object does not exist (any more); the CQE is skipped. */
static bool
take_cqe(struct urma_ctx *ctx, const struct hca_cqe_ub *cqe, urma_cr_t *cr)
{
	uint32_t local = hca_le32_to_cpu(cqe->local), number = HCA_CQE_UB_NUMBER(local);

	if ((cqe->is_send & HCA_CQE_UB) == 0)
		return false;
	memset(cr, 0, sizeof(*cr));
	cr->status = cr_status(cqe->status);
	cr->completion_len = hca_le32_to_cpu(cqe->bytes);
	switch (HCA_CQE_UB_KIND(local)) {
	case HCA_CQE_UB_JETTY:
		return take_queue(ctx, cqe, number, false, cr);
	case HCA_CQE_UB_JFS:
		return take_queue(ctx, cqe, number, true, cr);
	case HCA_CQE_UB_JFR:
		return take_jfr(ctx, cqe, number, cr);
	default:
		return false;
	}
}

/* The previous completion, and `local` of its CQE. */
struct before {
	const urma_cr_t *cr;
	struct urma_queue *q; /* of a request; NULL: it was a receive */
	struct urma_rq *rq;   /* of a receive; NULL: it was a request, or of a JFS */
	uint32_t local;
};

/* Where the object of a receive has its receives. */
static struct urma_rq *
rq_of(const urma_cr_t *cr)
{
	struct urma_queue *q = (struct urma_queue *)cr->user_data;

	if (!cr->flag.bs.jetty)
		return &((struct urma_jfrq *)cr->user_data)->rq;
	return q->shared != NULL ? &q->shared->rq : &q->rq;
}

/* A device that works completes no receive of a JFS. */
static inline bool
is_of_jfs(const struct hca_cqe_ub *cqe)
{
	return HCA_CQE_UB_KIND(hca_le32_to_cpu(cqe->local)) == HCA_CQE_UB_JFS;
}

static inline void
note_before(struct before *b, const struct hca_cqe_ub *cqe, const urma_cr_t *cr)
{
	bool request = !cr->flag.bs.s_r;

	b->local = cqe->local;
	b->cr = cr;
	b->q = request ? (struct urma_queue *)cr->user_data : NULL;
	b->rq = request || is_of_jfs(cqe) ? NULL : rq_of(cr);
}

/*
 * take_cqe() of a request, or of a Send without an address in front of it, that went well, of the
 * object of the one before, which was of the same kind; false: it is another one.
 */
static inline bool
take_like(const struct before *b, const struct hca_cqe_ub *cqe, urma_cr_t *cr)
{
	bool request = cqe->is_send == (HCA_CQE_UB | 1);

	if (cqe->local != b->local || cqe->status != HCA_UB_STATUS_OK)
		return false;
	if (request ? b->q == NULL
		    : cqe->is_send != HCA_CQE_UB || b->rq == NULL || b->rq->heads != NULL ||
			      cqe->opcode != HCA_UB_TA_SEND)
		return false;
	memset(cr, 0, sizeof(*cr));
	cr->status = URMA_CR_SUCCESS;
	cr->completion_len = hca_le32_to_cpu(cqe->bytes);
	cr->flag.bs.jetty = b->cr->flag.bs.jetty;
	cr->local_id = b->cr->local_id;
	cr->user_data = b->cr->user_data;
	if (request) {
		cr->user_ctx = sq_take(b->q, hca_le32_to_cpu(cqe->wqe));
		return true;
	}
	cr->user_ctx = rq_take(b->rq, hca_le32_to_cpu(cqe->wqe));
	cr->opcode = URMA_CR_OPC_SEND;
	cr->remote_id.id = hca_le32_to_cpu(cqe->rc) & HCA_TC_MASK;
	cr->tpn = hca_le32_to_cpu(cqe->tpn) & HCA_TPN_MASK;
	cr->flag.bs.s_r = 1;
	return true;
}

static int
poll_locked(struct urma_ctx *ctx, struct lib_cq *cq, int cr_cnt, urma_cr_t *cr)
{
	uint32_t consumer = cq->consumer;
	struct before before = {.q = NULL};
	int got = 0;

	for (; got < cr_cnt; consumer++) {
		struct hca_cqe *cqe = lib_cqe_at(cq, consumer);
		const struct hca_cqe_ub *ub = (const struct hca_cqe_ub *)cqe;

		if (__atomic_load_n(&cqe->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW)
			break;
		if (take_like(&before, ub, &cr[got])) {
			got++;
		} else if (take_cqe(ctx, ub, &cr[got])) {
			note_before(&before, ub, &cr[got]);
			got++;
		}
		__atomic_store_n(&cqe->owner, HCA_OWNER_HW, __ATOMIC_RELEASE);
	}
	if (consumer != cq->consumer) {
		cq->consumer = consumer;
		__atomic_store_n(&cq->record->consumer, hca_cpu_to_le32(consumer),
				 __ATOMIC_RELEASE);
	}
	return got;
}

/* ---- senders ---- */

static bool
cached(struct urma_ctx *ctx, uint32_t tpn, urma_eid_t *eid)
{
	const struct urma_eid_of *e = &ctx->eid_of[tpn % URMA_EID_CACHE];
	bool hit;

	pthread_mutex_lock(&ctx->lock);
	hit = e->tpn == tpn;
	if (hit)
		*eid = e->eid;
	pthread_mutex_unlock(&ctx->lock);
	return hit;
}

/* The EID of a channel does not change. Zeros: the driver does not have it (any more). */
static void
find_eid(struct urma_ctx *ctx, uint32_t tpn, urma_eid_t *eid)
{
	if (tpn == 0 || cached(ctx, tpn, eid) || ctx->ctl->tp_eid(ctx->lib, tpn, eid->raw) != 0)
		return;
	pthread_mutex_lock(&ctx->lock);
	ctx->eid_of[tpn % URMA_EID_CACHE] = (struct urma_eid_of){.tpn = tpn, .eid = *eid};
	pthread_mutex_unlock(&ctx->lock);
}

/* ---- the call ---- */

/* Receives in a row by one channel have one sender, which is looked up once. */
static inline void
find_senders(struct urma_ctx *ctx, urma_cr_t *cr, int n)
{
	const urma_cr_t *last = NULL;

	for (int i = 0; i < n; i++) {
		if (!cr[i].flag.bs.s_r)
			continue;
		if (last != NULL && last->tpn == cr[i].tpn && cr[i].tpn != 0)
			cr[i].remote_id.eid = last->remote_id.eid;
		else
			find_eid(ctx, cr[i].tpn, &cr[i].remote_id.eid);
		last = &cr[i];
	}
}

static int
poll_once(struct urma_ctx *ctx, struct lib_cq *cq, int cr_cnt, urma_cr_t *cr)
{
	int got;

	urma_inside()->cq_lock(cq);
	got = poll_locked(ctx, cq, cr_cnt, cr);
	urma_inside()->cq_unlock(cq);
	find_senders(ctx, cr, got);
	return got;
}

/* A program that polls a JFC of a dead daemon must not wait without end. */
static int
found_nothing(struct urma_ctx *ctx)
{
	if (ctx->lib->dead) {
		(void)urma_inside()->dead(ctx->lib);
		return -1;
	}
	urma_inside()->wait_empty();
	return 0;
}

int
urma_poll_jfc(urma_jfc_t *jfc, int cr_cnt, urma_cr_t *cr)
{
	struct urma_ctx *ctx;
	struct lib_cq *cq;
	int got;

	if (jfc == NULL || cr_cnt < 0 || (cr == NULL && cr_cnt != 0)) {
		urma_fail(-EINVAL,
			  "jfc %p, %d completions at %p: expected a JFC, and a place for 0 or more",
			  (void *)jfc, cr_cnt, (void *)cr);
		return -1;
	}
	ctx = urma_ctx_of(jfc->urma_ctx);
	cq = (struct lib_cq *)((struct urma_jfc_obj *)jfc)->cq;
	got = poll_once(ctx, cq, cr_cnt, cr);
	if (got != 0) {
		urma_inside()->wait_over();
		return got;
	}
	if (ctx->lib->progress == NULL)
		return found_nothing(ctx);
	lib_run(ctx->lib, ctx->lib->progress);
	return poll_once(ctx, cq, cr_cnt, cr);
}

/* ---- completions of one object ---- */

/* Returns the next completion of the object from *at on and moves *at behind it; NULL: no more. */
static struct hca_cqe_ub *
next_of(struct lib_cq *cq, uint32_t local, uint32_t *at)
{
	for (; *at - cq->consumer <= cq->mask; (*at)++) {
		struct hca_cqe *cqe = lib_cqe_at(cq, *at);

		if ((__atomic_load_n(&cqe->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW) != 0)
			break;
		if (hca_le32_to_cpu(((struct hca_cqe_ub *)cqe)->local) != local)
			continue;
		(*at)++;
		return (struct hca_cqe_ub *)cqe;
	}
	return NULL;
}

void
urma_jfc_forget(struct lib_cq *cq, uint32_t local)
{
	struct hca_cqe_ub *cqe;
	uint32_t at;

	urma_inside()->cq_lock(cq);
	at = cq->consumer;
	while ((cqe = next_of(cq, local, &at)) != NULL)
		cqe->local = FORGOTTEN;
	urma_inside()->cq_unlock(cq);
}

bool
urma_jfc_holds(struct lib_cq *cq, uint32_t local)
{
	bool holds;
	uint32_t at;

	urma_inside()->cq_lock(cq);
	at = cq->consumer;
	holds = next_of(cq, local, &at) != NULL;
	urma_inside()->cq_unlock(cq);
	return holds;
}
