/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Pending responses: per QP a ring of the last requests that have a response (READs, ATOMICs,
 * ATOMIC WRITEs, FLUSHes), each with a bit while it must be answered, and at most one ACK or NAK
 * after them, so that everything is sent in PSN order, the oldest job first. QPs with pending
 * responses are in one list and take turns; a QP that finds no room or no mbuf stays in it,
 * before those that had their turn.
 */

#include <rte_mempool.h>

#include "cc/cc.h"
#include "responder/ee_run.h"

/* Limit of visits per poll, so that a blocked edge does not make every poll visit all QPs. */
#define VISITS 64u

/* owed_psn of a NAK that is not fatal is the highest PSN that was refused. */
void
ee_refused(struct hca_qp_ee *ee, uint32_t psn)
{
	if (ee->flags & EE_NAK_OWED && hca_psn_diff(psn, ee->owed_psn) > 0)
		ee->owed_psn = psn;
}

/*
 * A gap may be a lie: a forged packet of a PSN to come. A requester that has sent nothing beyond
 * the acknowledged PSNs ignores the NAK of it, so it gets its ACK first, asked for or not.
 */
static void
keep_ack(struct hca_qp_ee *ee, bool gap)
{
	if (!gap)
		ee->flags &= ~(EE_ACK_OWED | EE_ACK_REPEAT);
	else if (ee->unacked != 0)
		ee->flags |= EE_ACK_OWED;
}

void
ee_owe_nak(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, uint8_t syndrome, uint32_t psn)
{
	struct hca_qp_ee *ee = &h->qp[qpi].ee;
	bool gap = syndrome == HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ);

	ee->owed_syndrome = syndrome;
	if (ee->flags & EE_NAK_OWED && !(ee->flags & EE_FATAL))
		ee_refused(ee, psn);
	else
		ee->owed_psn = psn;
	keep_ack(ee, gap);
	ee->flags |= EE_NAK_OWED;
	ee_list_ready(h, ctx, ee, qpi);
}

void
ee_add_job(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, const struct hca_resp_job *job)
{
	*ee_new_job(h, ctx, qpi) = *job;
}

/* The newest job that does not begin after psn, or NULL. */
static struct hca_resp_job *
find_job(const struct hca_qp_ee *ee, uint32_t psn)
{
	for (uint32_t i = 1; i <= (uint32_t)ee->job_mask + 1; i++) {
		struct hca_resp_job *job = &ee->jobs[(ee->job_head - i) & ee->job_mask];

		if (job->kind == HCA_KIND_NONE)
			break;
		if (hca_psn_diff(psn, job->first) >= 0)
			return job;
	}
	return NULL;
}

bool
ee_unanswered(const struct hca_qp_ee *ee, uint32_t psn)
{
	const struct hca_resp_job *job = find_job(ee, psn);

	return job != NULL && job->first == psn &&
	       ee->job_pending & 1u << (uint32_t)(job - ee->jobs) &&
	       !(job->flags & (EE_JOB_STARTED | EE_JOB_REPEAT));
}

static void
repeat_read(struct hca_resp_job *job, const struct ee_request *q, bool refused)
{
	job->va = refused ? q->rxd->psn : q->va;
	job->rkey = q->rkey;
	job->pd = q->pd;
	job->left = refused ? 0 : q->dma_len;
	job->psn = q->rxd->psn + (refused ? q->npsn : 0);
	job->flags &= (uint8_t) ~(EE_JOB_STARTED | EE_JOB_REFUSED | EE_JOB_LATE);
	if (refused)
		job->flags |= EE_JOB_REFUSED;
}

/*
 * Answer in the job's own slot: however often a requester repeats, it gets one answer. A READ is
 * answered from where the duplicate begins, possibly only the rest of the request; an ATOMIC with
 * the stored result; others with the same confirmation.
 */
bool
ee_repeat_job(struct ee_request *q, bool refused)
{
	struct hca_qp_ee *ee = &q->qp->ee;
	struct hca_resp_job *job = find_job(ee, q->rxd->psn);
	bool read = q->op->runs == HCA_KIND_READ;
	uint32_t slot;

	if (job == NULL || job->kind != q->op->runs || (!read && job->first != q->rxd->psn))
		return false;
	slot = (uint32_t)(job - ee->jobs);
	if (read)
		repeat_read(job, q, refused);
	job->msn = ee->msn;
	ee->job_pending |= 1u << slot;
	ee_list_ready(q->h, q->ctx, ee, q->qpi);
	return true;
}

/* It is answered, or late: it leaves room for a new one. */
static inline void
release_job(struct hca_qp_ee *ee, struct hca_resp_job *job)
{
	if (!(job->flags & EE_JOB_RELEASED))
		ee->new_jobs--;
	job->flags |= EE_JOB_RELEASED;
}

/*
 * The data of a READ's response with this PSN, already taken from the job, was not available: an
 * RNR NAK there replaces the remaining responses. Unless it was a repetition, the READ has not been
 * answered yet, whatever EE has passed on. Nor does it count as new: the requester may never repeat
 * it, because it got the answer to a duplicate that was on its way.
 */
void
ee_late_job(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, uint32_t psn, bool repeat)
{
	struct hca_qp_ee *ee = &h->qp[qpi].ee;
	struct hca_resp_job *job = find_job(ee, psn);

	if (job == NULL || job->kind != HCA_KIND_READ || hca_psn_diff(psn, job->psn) >= 0)
		return; /* a duplicate has begun it again */
	job->psn += (job->left + (1u << ee->mtu_log) - 1) >> ee->mtu_log;
	job->left = 0;
	job->va = psn;
	job->flags |= EE_JOB_LATE;
	if (!repeat)
		job->flags &= (uint8_t)~EE_JOB_REPEAT;
	release_job(ee, job);
	ee->job_pending |= 1u << (job - ee->jobs);
	ee_list_ready(h, ctx, ee, qpi);
}

uint32_t
ee_awaited_psn(const struct hca_qp_ee *ee, uint32_t psn)
{
	const struct hca_resp_job *job = find_job(ee, psn);

	if (job == NULL || !(job->flags & EE_JOB_LATE) ||
	    hca_psn_diff(psn, (uint32_t)job->va & HCA_PSN_MASK) < 0)
		return psn;
	return (uint32_t)job->va;
}

void
ee_refuse_late(struct hca_qp_ee *ee, uint32_t psn)
{
	for (uint32_t slot = 0; slot <= ee->job_mask; slot++) {
		struct hca_resp_job *job = &ee->jobs[slot];

		if (!(job->flags & EE_JOB_LATE) ||
		    hca_psn_diff((uint32_t)job->va & HCA_PSN_MASK, psn) >= 0)
			continue;
		job->flags = (uint8_t)((job->flags & ~EE_JOB_LATE) | EE_JOB_REFUSED);
		ee->job_pending |= 1u << slot;
	}
}

static inline struct hca_resp_job *
next_job(struct hca_qp_ee *ee)
{
	uint32_t slot = ee_next_slot(ee);

	ee->job_now = (uint8_t)(slot + 1);
	return &ee->jobs[slot];
}

static inline void
finish_job(struct hca_qp_ee *ee, struct hca_resp_job *job)
{
	release_job(ee, job);
	job->flags |= EE_JOB_REPEAT;
	ee_settle(ee, (uint32_t)(job - ee->jobs));
}

static void
read_response(struct hca_txd *d, struct hca_qp *qp, uint32_t qpi, struct hca_resp_job *job)
{
	static const uint8_t opcode[2][2] = {
		/* [first][last] */
		{HCA_BTH_RC_READ_RESP_MIDDLE, HCA_BTH_RC_READ_RESP_LAST},
		{HCA_BTH_RC_READ_RESP_FIRST, HCA_BTH_RC_READ_RESP_ONLY},
	};
	uint32_t mtu = 1u << qp->ee.mtu_log;
	bool first = !(job->flags & EE_JOB_STARTED), last = job->left <= mtu;
	uint32_t len = last ? job->left : mtu;

	ee_describe(d, qp, qpi, opcode[first][last], EE_ACK_SYNDROME, job->psn, job->msn);
	d->flags = (job->flags & EE_JOB_REPEAT ? HCA_TXD_REPEAT : 0) |
		   (first && last ? 0 : HCA_TXD_PART);
	d->nsge = len != 0;
	d->len = (uint16_t)len;
	d->key = job->rkey;
	d->va = job->va;
	d->imm = job->pd;
	job->va += len;
	job->left -= len;
	/*
	 * psn before flags, which share a word: a load of the word waits until a store of one byte
	 * of it is in the cache.
	 */
	job->psn++;
	rte_compiler_barrier();
	job->flags |= EE_JOB_STARTED;
	if (last)
		finish_job(&qp->ee, job);
}

static void
count_answer(struct hca_pipe *h, struct hca_qp_ee *ee, uint8_t syndrome)
{
	if (likely(syndrome == EE_ACK_SYNDROME)) {
		HCA_COUNT(h, EE, acks_sent);
		return;
	}
	HCA_COUNT(h, EE, naks_sent);
	if (syndrome == HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ)) {
		HCA_COUNT(h, EE, seq_nak_sent);
		hca_qp_stat_add32(&ee->seq_nak_sent, 1);
	} else if (HCA_AETH_KIND(syndrome) == HCA_AETH_RNR_NAK) {
		HCA_COUNT(h, EE, rnr_nak_sent);
		hca_qp_stat_add32(&ee->rnr_nak_sent, 1);
	}
}

static void
refuse_read(struct hca_pipe *h, struct hca_txd *d, struct hca_qp *qp, uint32_t qpi,
	    struct hca_resp_job *job)
{
	uint8_t syndrome = job->flags & EE_JOB_LATE
				   ? HCA_RNR_SYNDROME(hca_qp_live(&qp->cfg.min_rnr_timer))
				   : HCA_NAK_SYNDROME(HCA_NAK_REMOTE_ACCESS);

	ee_describe(d, qp, qpi, HCA_BTH_RC_ACK, syndrome, (uint32_t)job->va, job->msn);
	count_answer(h, &qp->ee, syndrome);
	if (job->flags & EE_JOB_LATE)
		ee_settle(&qp->ee, (uint32_t)(job - qp->ee.jobs));
	else
		finish_job(&qp->ee, job);
}

static void
next_response(struct hca_pipe *h, struct hca_txd *d, struct hca_qp *qp, uint32_t qpi)
{
	struct hca_qp_ee *ee = &qp->ee;
	struct hca_resp_job *job = next_job(ee);

	if (unlikely(job->flags & (EE_JOB_REFUSED | EE_JOB_LATE))) {
		refuse_read(h, d, qp, qpi, job);
		return;
	}
	HCA_COUNT(h, EE, resp_packets);
	if (unlikely(job->flags & EE_JOB_REPEAT))
		HCA_COUNT(h, EE, resp_repeated);
	if (job->kind == HCA_KIND_READ) {
		read_response(d, qp, qpi, job);
		return;
	}
	ee_describe(d, qp, qpi,
		    job->kind == HCA_KIND_ATOMIC ? HCA_BTH_RC_ATOMIC_ACK
						 : HCA_BTH_RC_READ_RESP_ONLY,
		    EE_ACK_SYNDROME, job->psn, job->msn);
	d->resp.result = job->va;
	finish_job(ee, job);
}

/*
 * PSN of the last executed request without a response. A plain ACK may name the PSN of a READ's
 * last response, but Linux rxe then considers a READ complete whose last bytes were lost, or an
 * ATOMIC whose answer comes later: so a duplicate, and a request before a NAK, is acknowledged
 * without the READs and ATOMICs after it. (All are answered.)
 */
static uint32_t
last_plain_psn(const struct hca_qp_ee *ee)
{
	uint32_t next = ee->epsn;

	for (uint32_t i = 1; i <= (uint32_t)ee->job_mask + 1; i++) {
		const struct hca_resp_job *job = &ee->jobs[(ee->job_head - i) & ee->job_mask];
		uint32_t end = job->kind == HCA_KIND_READ ? job->psn : job->first + 1u;

		if (job->kind == HCA_KIND_NONE || (end & HCA_PSN_MASK) != next)
			break;
		next = job->first;
	}
	return next - 1;
}

static uint32_t
ack_psn(const struct hca_qp_ee *ee)
{
	uint32_t psn;

	if (likely(!(ee->flags & EE_ACK_REPEAT)))
		return ee->epsn - 1;
	psn = last_plain_psn(ee);
	return hca_psn_diff(psn, ee->owed_psn) >= 0 ? psn : ee->epsn - 1;
}

/*
 * The expected packet may have arrived after the NAK was recorded. Packets dropped after it have
 * not, unless they arrived twice: the NAK then names the first one missing now, or is not needed.
 */
static uint8_t
answer(const struct hca_qp_ee *ee, uint32_t *psn)
{
	if (likely(!(ee->flags & EE_NAK_OWED))) {
		*psn = ack_psn(ee);
		return EE_ACK_SYNDROME;
	}
	*psn = ee->flags & EE_FATAL ? ee->owed_psn : ee->epsn;
	if (ee->flags & (EE_FATAL | EE_RNR))
		return ee->owed_syndrome;
	if (hca_psn_diff(ee->owed_psn, ee->epsn) >= 0)
		return HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ);
	*psn = last_plain_psn(ee);
	return EE_ACK_SYNDROME;
}

/* An ACK and the NAK of a gap are due, and the gap is still there: the ACK goes first. */
static inline bool
acks_first(const struct hca_qp_ee *ee)
{
	return (ee->flags & (EE_ACK_OWED | EE_NAK_OWED | EE_FATAL | EE_RNR)) ==
		       (EE_ACK_OWED | EE_NAK_OWED) &&
	       hca_psn_diff(ee->owed_psn, ee->epsn) >= 0;
}

static void
acknowledge_first(struct hca_pipe *h, struct hca_txd *d, struct hca_qp *qp, uint32_t qpi)
{
	struct hca_qp_ee *ee = &qp->ee;
	uint32_t psn = ee->flags & EE_ACK_REPEAT ? last_plain_psn(ee) : ee->epsn - 1;

	ee_describe(d, qp, qpi, HCA_BTH_RC_ACK, EE_ACK_SYNDROME, psn, ee->msn);
	ee->flags &= ~(EE_ACK_OWED | EE_ACK_REPEAT);
	ee->unacked = 0;
	count_answer(h, ee, EE_ACK_SYNDROME);
}

/* No job is left: everything before epsn was executed and answered. */
static void
acknowledge(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_txd *d, struct hca_qp *qp,
	    uint32_t qpi)
{
	struct hca_qp_ee *ee = &qp->ee;
	uint32_t psn;
	uint8_t syndrome;

	if (unlikely(acks_first(ee))) {
		acknowledge_first(h, d, qp, qpi);
		return;
	}
	syndrome = answer(ee, &psn);
	ee_describe(d, qp, qpi, HCA_BTH_RC_ACK, syndrome, psn, ee->msn);
	ctx->left |= (ee->flags & EE_LEAVES) != 0;
	ee->flags &= ~(EE_ACK_OWED | EE_ACK_REPEAT | EE_NAK_OWED | EE_LEAVES);
	ee->unacked = 0;
	count_answer(h, ee, syndrome);
}

/*
 * Number of descriptors for the QP in this turn, or some of them if it is more than one: all
 * packets of the next job are counted, and one of each other job.
 */
static unsigned int
wanted(const struct hca_qp_ee *ee)
{
	unsigned int n = (ee->flags & (EE_ACK_OWED | EE_NAK_OWED)) != 0;
	uint32_t left;

	n += acks_first(ee) + ee_jobs(ee);
	if (ee->job_pending == 0 || n >= EE_CHUNK)
		return RTE_MIN(n, EE_CHUNK);
	left = ee->jobs[ee_next_slot(ee)].left;
	return left == 0 ? n : RTE_MIN(n + ((left - 1) >> ee->mtu_log), EE_CHUNK);
}

static inline bool
owes(const struct hca_qp_ee *ee)
{
	return ee_jobs(ee) != 0 || ee->flags & (EE_ACK_OWED | EE_NAK_OWED | EE_FLUSHING);
}

void
ee_push(struct hca_pipe *h, struct ee_ctx *ctx, uint64_t now)
{
	if (ctx->nout == 0)
		return;
	hca_edge_push(h, &h->edge[HCA_EDGE_EE_ENCAP], (void *const *)ctx->out, ctx->nout, now);
	ctx->nout = 0;
}

/* Allocate up to n raw mbufs after ctx->out, which encap resets; possibly fewer. */
static unsigned int
take_mbufs(struct hca_pipe *h, struct ee_ctx *ctx, unsigned int n)
{
	void **out = (void **)&ctx->out[ctx->nout];

	if (likely(rte_mempool_get_bulk(h->resp_pool, out, n) == 0))
		return n;
	HCA_COUNT(h, EE, resp_no_mbuf);
	return n > 1 && rte_mempool_get(h->resp_pool, out) == 0 ? 1 : 0;
}

/*
 * Whether other QPs are at work while duplicates of this one are answered, or were shortly before:
 * requests have come that are not its own, requests have left, or another QP's duplicates were
 * answered last.
 */
static bool
others_active(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, uint64_t now)
{
	uint64_t own = h->qp[qpi].ee.rx_packets;
	uint64_t requests =
		__atomic_load_n(&h->line[HCA_STAGE_REQ_TX].counters[HCA_CTR_req_packets],
				__ATOMIC_RELAXED);

	if (ctx->repeat_qpi != qpi ? ctx->repeat_qpi != HCA_QP_NONE
				   : ctx->arrived - ctx->arrived_seen != own - ctx->own_seen ||
					     requests != ctx->requests_seen)
		ctx->others_at = now;
	ctx->repeat_qpi = qpi;
	ctx->arrived_seen = ctx->arrived;
	ctx->own_seen = own;
	ctx->requests_seen = requests;
	return ctx->others_at != 0 && now - ctx->others_at < EE_OTHERS_NS;
}

/* n: as many as the QP may send in this turn. */
static unsigned int
slow_repeats(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, unsigned int n, uint64_t now)
{
	struct hca_qp_ee *ee = &h->qp[qpi].ee;

	if (n <= EE_REPEAT_CHUNK || ee_jobs(ee) == 0 || !(next_job(ee)->flags & EE_JOB_REPEAT) ||
	    !others_active(h, ctx, qpi, now))
		return n;
	HCA_COUNT(h, EE, resp_repeats_slowed);
	return EE_REPEAT_CHUNK;
}

/* Up to n responses, as many as there are mbufs. */
static unsigned int
emit_some(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, unsigned int n, uint64_t now)
{
	struct hca_qp *qp = &h->qp[qpi];
	unsigned int i = 0;

	if (ctx->nout + n > RTE_DIM(ctx->out))
		ee_push(h, ctx, now);
	n = take_mbufs(h, ctx, n);
	if (qp->ee.job_pending != 0)
		i = ee_answer_jobs(h, ctx, qp, qpi, n);
	for (; i < n; i++) {
		struct rte_mbuf *m = ctx->out[ctx->nout++];

		if (qp->ee.job_pending != 0)
			next_response(h, hca_txd(m), qp, qpi);
		else
			acknowledge(h, ctx, hca_txd(m), qp, qpi);
	}
	return n;
}

/* READ responses are due, and congestion control may make them wait. */
static __rte_noinline unsigned int
emit_controlled(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, unsigned int n, uint64_t now)
{
	n = ee_pace_allow(h, ctx, qpi, n, now);
	if (n == 0)
		return 0;
	n = emit_some(h, ctx, qpi, n, now);
	ee_pace_sent(h, ctx, qpi, n, now);
	return n;
}

static unsigned int
emit_qp(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, unsigned int room, uint64_t now)
{
	struct hca_qp_ee *ee = &h->qp[qpi].ee;
	unsigned int n = RTE_MIN(wanted(ee), room), done = 0;
	unsigned int most = n > 1 ? RTE_MIN(EE_CHUNK, room) : n;

	most = slow_repeats(h, ctx, qpi, most, now);
	if (hca_cc_in_use(h))
		return emit_controlled(h, ctx, qpi, RTE_MIN(n, most), now);
	for (n = RTE_MIN(n, most); n != 0; n = RTE_MIN(wanted(ee), most - done)) {
		unsigned int sent = emit_some(h, ctx, qpi, n, now);

		done += sent;
		if (unlikely(sent != n))
			break;
	}
	return done;
}

static uint32_t
pop_ready(struct hca_pipe *h, struct ee_ctx *ctx)
{
	uint32_t qpi = hca_qp_list_pop(h, &ctx->ready, EE_READY_LINK);

	h->qp[qpi].ee.flags &= ~EE_ON_READY;
	ctx->ready_count--;
	return qpi;
}

/*
 * A QP that was reset or went to ERR for its own reasons sends no more. served: takes the QP if it
 * has sent something and has more to send.
 */
static unsigned int
visit(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp_list *served, unsigned int room,
      uint64_t now, unsigned int *work)
{
	uint32_t qpi = pop_ready(h, ctx);
	struct hca_qp *qp = &h->qp[qpi];
	uint32_t state = hca_qp_state(qp);
	unsigned int n;

	if (!ee_state_receives(state) && !(state == HCA_QPS_ERR && qp->ee.flags & EE_FATAL))
		ee_forget(h, &qp->ee);
	if (qp->ee.flags & EE_FLUSHING)
		*work += ee_flush_some(h, ctx, qp);
	n = emit_qp(h, ctx, qpi, room, now);
	*work += n;
	if (owes(&qp->ee))
		ee_list_on(h, ctx, n != 0 ? served : &ctx->ready, &qp->ee, qpi);
	return n;
}

/*
 * All QPs may be visited although the first ones take all the room: only QPs that have sent change
 * places with the others, or the same ones would be the first again.
 */
unsigned int
ee_emit(struct hca_pipe *h, struct ee_ctx *ctx, uint64_t now, unsigned int budget)
{
	struct hca_qp_list served = {.head = HCA_QP_NONE};
	unsigned int visits = RTE_MIN(ctx->ready_count, VISITS), room, work = 0;
	struct ee_acks acks;

	if (visits == 0)
		return 0;
	acks.n = acks.acks = 0;
	room = RTE_MIN(hca_edge_room(h, &h->edge[HCA_EDGE_EE_ENCAP]), budget);
	while (visits-- != 0) {
		if (likely(ee_single_ack(h, ctx, &acks, room, now)))
			room--;
		else
			room -= visit(h, ctx, &served, room, now, &work);
	}
	work += acks.acks;
	ee_single_acks_end(h, &acks);
	hca_qp_list_join(h, &ctx->ready, EE_READY_LINK, &served);
	ee_push(h, ctx, now);
	/* not before: the CEU waits for the ACK that has entered the edge */
	if (unlikely(ctx->left))
		hca_leave_ack(h);
	ctx->left = false;
	return work;
}
