/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * req_rx: ACKs, NAKs and responses, compared with una and max_psn; retries and their
 * counters; the QP's timer. A packet outside the window has no effect. req_rx waits for nothing: it
 * accepts every packet; the CQ counts and drops CQEs that find no slot.
 *
 * Losses (timeout, sequence NAK, missing response) count against retry_cnt, RNR NAKs against
 * rnr_retry; progress resets both. All of them make req_tx go back to una, and so does foreign
 * memory that did not answer in time, which counts against neither: of this side, or of the peer,
 * whose RNR NAK then may be for a packet that takes no receive.
 */

#include <errno.h>

#include <rte_atomic.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "abi_ctx.h"
#include "core/mbuf.h"
#include "cc/cc.h"
#include "engine/migrate.h"
#include "requester/req_rx.h"
#include "requester/rtt.h"

#define HCA_PORT_WAIT_LOG 20u /* ns: 1 ms */
#define LATE_NS 2000000u      /* until late foreign memory of this side is accessed again */

#define X(code, us) [code] = (us)*1000u,
static const uint32_t rnr_ns[32] = {HCA_RNR_TIMER_LIST(X)};
#undef X

int
hca_req_rx_init(struct hca_pipe *h)
{
	return hca_req_rx_order_init(h);
}

void
hca_req_rx_fini(struct hca_pipe *h)
{
	rte_free(h->stage_ctx[HCA_STAGE_REQ_RX]);
	h->stage_ctx[HCA_STAGE_REQ_RX] = NULL;
}

unsigned int
hca_req_rx_room(struct hca_pipe *h)
{
	return HCA_DIRECT_ROOM;
}

/* ---- timer ---- */

static inline uint64_t
ack_timeout_ns(const struct hca_qp *qp)
{
	return HCA_ACK_TIMEOUT_NS(hca_qp_ack_timeout(qp) & 31);
}

static void
start_timer(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	__atomic_store_n(&qp->req_rx.timer_deadline, qp->req_rx.deadline, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->req_rx.timer_armed, 1, __ATOMIC_RELEASE);
	hca_msg_send(h, HCA_STAGE_REQ_RX, HCA_STAGE_TIMER, qpi, HCA_MSG_ARM);
}

static bool
all_acknowledged(const struct hca_qp *qp)
{
	return hca_una_psn(qp->sq_una) == __atomic_load_n(&qp->req_tx.max_psn, __ATOMIC_ACQUIRE);
}

/* Arm the timer if req_tx has asked for it, or may have sent while we disarmed it. */
static void
arm_if_needed(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint64_t now)
{
	if (qp->req_rx.timer_armed || hca_qp_ack_timeout(qp) == 0 || all_acknowledged(qp))
		return;
	qp->req_rx.deadline = now + ack_timeout_ns(qp);
	start_timer(h, qp, qpi);
}

/* Pairs with req_tx, which publishes max_psn, executes a fence, and reads timer_armed. */
static void
disarm(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint64_t now)
{
	__atomic_store_n(&qp->req_rx.timer_armed, 0, __ATOMIC_RELAXED);
	rte_smp_mb();
	arm_if_needed(h, qp, qpi, now);
}

/* ---- retries ---- */

/* Each migration starts a new count of retries. */
static void
note_path(struct hca_qp *qp)
{
	uint8_t path =
		__atomic_load_n(&qp->encap.path, __ATOMIC_ACQUIRE) & 1 ? HCA_REQ_RX_PATH1 : 0;

	if ((qp->req_rx.flags & HCA_REQ_RX_PATH1) == path)
		return;
	if (path != 0)
		hca_req_rx_set_flags(&qp->req_rx, HCA_REQ_RX_PATH1);
	else
		hca_req_rx_clear_flags(&qp->req_rx, HCA_REQ_RX_PATH1);
	qp->req_rx.retries = 0;
}

/* The retries on this path are used up: try the other one. */
static bool
other_path(struct hca_req_rx_run *run)
{
	switch (hca_migrate(run->h, HCA_STAGE_REQ_RX, run->qpi)) {
	case HCA_MIGRATE_DONE:
		note_path(run->qp);
		return true;
	case HCA_MIGRATE_HELD: /* its paths are being changed, which ends soon */
		return true;
	default:
		return false;
	}
}

/* Go back to una, unless the retries are used up. */
static void
retry(struct hca_req_rx_run *run, enum hca_again why)
{
	struct hca_qp_req_rx *q = &run->qp->req_rx;
	const struct hca_cc_ops *cc;

	hca_req_rx_note_progress(run);
	note_path(run->qp);
	if (q->retries < hca_qp_live(&run->qp->cfg.retry_cnt)) {
		q->retries++;
	} else if (!other_path(run)) {
		hca_req_rx_fail(run, HCA_SYND_RETRY_EXC);
		return;
	}
	cc = hca_cc_of(run->h, run->qpi);
	if (unlikely(cc != NULL))
		cc->lost(run->h, run->qpi, why == HCA_AGAIN_TIMEOUT ? HCA_CC_TIMEOUT : HCA_CC_GAP,
			 run->now);
	q->deadline = run->now + ack_timeout_ns(run->qp);
	run->msg |= HCA_MSG_REWIND;
	run->again = why;
}

void
hca_req_rx_drop(struct hca_req_rx_run *run, enum hca_counter why)
{
	HCA_COUNT_AT(run->h, HCA_STAGE_REQ_RX, why);
	hca_qp_stat_add(&run->qp->stats.rx_dropped, 1);
}

/* A response before this packet is missing; at most one rewind per loss. */
static void
implied_nak(struct hca_req_rx_run *run)
{
	struct hca_qp_req_rx *q = &run->qp->req_rx;

	hca_req_rx_note_progress(run);
	/* the end of the wait goes back to una anyway */
	if (q->flags & (HCA_REQ_RX_IMPLIED | HCA_REQ_RX_HOLD))
		return;
	hca_req_rx_set_flags(q, HCA_REQ_RX_IMPLIED);
	HCA_COUNT(run->h, REQ_RX, implied_nak_seq_err);
	hca_qp_stat_add32(&run->qp->stats.implied_nak_seq_err, 1);
	retry(run, HCA_AGAIN_IMPLIED_NAK);
}

void
hca_req_rx_out_of_order(struct hca_req_rx_run *run, uint32_t psn)
{
	hca_req_rx_order_early(run, psn);
	hca_req_rx_drop(run, HCA_CTR_req_out_of_order);
	implied_nak(run);
}

static void
sequence_nak(struct hca_req_rx_run *run)
{
	HCA_COUNT(run->h, REQ_RX, packet_seq_err);
	hca_qp_stat_add32(&run->qp->stats.packet_seq_err, 1);
	if (!(run->qp->req_rx.flags & HCA_REQ_RX_HOLD))
		retry(run, HCA_AGAIN_SEQ_NAK);
}

/* Send nothing for ns, then go back to una. late: 0 or HCA_REQ_RX_LATE. */
static void
begin_hold(struct hca_req_rx_run *run, uint64_t ns, uint8_t late)
{
	hca_req_rx_set_flags(&run->qp->req_rx, HCA_REQ_RX_HOLD | late);
	run->qp->req_rx.deadline = run->now + ns;
	start_timer(run->h, run->qp, run->qpi);
	run->msg |= HCA_MSG_HOLD;
}

static void
rnr_nak(struct hca_req_rx_run *run, uint32_t code)
{
	struct hca_qp_req_rx *q = &run->qp->req_rx;
	uint32_t allowed = hca_qp_live(&run->qp->cfg.rnr_retry);

	HCA_COUNT(run->h, REQ_RX, rnr_nak_received);
	hca_qp_stat_add32(&run->qp->stats.rnr_nak_received, 1);
	hca_req_rx_note_progress(run);
	if (q->flags & HCA_REQ_RX_HOLD)
		return;
	/* of another packet it says that the peer's memory does not answer in time */
	if (allowed != HCA_RNR_RETRY_FOREVER && hca_req_rx_takes_receive(run)) {
		if (q->rnr_retries >= allowed) {
			hca_req_rx_fail(run, HCA_SYND_RNR_RETRY_EXC);
			return;
		}
		q->rnr_retries++;
	}
	HCA_COUNT(run->h, REQ_RX, rnr_nak_retry_err);
	begin_hold(run, rnr_ns[code], 0);
}

void
hca_req_rx_postpone(struct hca_req_rx_run *run)
{
	hca_req_rx_note_progress(run);
	if (!(run->qp->req_rx.flags & HCA_REQ_RX_HOLD))
		begin_hold(run, LATE_NS, HCA_REQ_RX_LATE);
}

/* ---- packets ---- */

/* A release has stopped: a response is missing. A record with an error is handled at commit. */
static void
blocked(struct hca_req_rx_run *run, uint32_t psn)
{
	if (hca_record_syndrome(hca_req_rx_record(run, run->tail)) == 0)
		hca_req_rx_out_of_order(run, psn);
	else
		hca_req_rx_drop(run, HCA_CTR_req_out_of_order);
}

static void
handle_nak(struct hca_req_rx_run *run, uint8_t syndrome, uint32_t psn, uint32_t d)
{
	static const uint8_t fatal[] = {
		[HCA_NAK_INVALID_REQ] = HCA_SYND_REMOTE_INVAL_REQ,
		[HCA_NAK_REMOTE_ACCESS] = HCA_SYND_REMOTE_ACCESS,
		[HCA_NAK_REMOTE_OP] = HCA_SYND_REMOTE_OP,
	};
	uint32_t value = HCA_AETH_VALUE(syndrome);

	/* it acknowledges everything before its PSN */
	if (!hca_req_rx_release(run, d)) {
		blocked(run, psn);
		return;
	}
	if (HCA_AETH_KIND(syndrome) == HCA_AETH_RNR_NAK)
		rnr_nak(run, value);
	else if (value == HCA_NAK_PSN_SEQ)
		sequence_nak(run);
	else
		hca_req_rx_fail(run, fatal[value]);
}

static bool
aeth_known(uint8_t syndrome)
{
	switch (HCA_AETH_KIND(syndrome)) {
	case HCA_AETH_ACK:
	case HCA_AETH_RNR_NAK:
		return true;
	case HCA_AETH_NAK:
		return HCA_AETH_VALUE(syndrome) <= HCA_NAK_REMOTE_OP;
	default:
		return false;
	}
}

static void
handle_ack(struct hca_req_rx_run *run, struct rte_mbuf *m, uint32_t d)
{
	uint8_t syndrome = *rte_pktmbuf_mtod_offset(m, uint8_t *, hca_rxd(m)->ext_off);

	if (unlikely(!aeth_known(syndrome))) {
		hca_req_rx_drop(run, HCA_CTR_req_bad_response);
		return;
	}
	if (unlikely(HCA_AETH_KIND(syndrome) != HCA_AETH_ACK))
		handle_nak(run, syndrome, hca_rxd(m)->psn, d);
	else if (unlikely(!hca_req_rx_release(run, d + 1)))
		blocked(run, hca_rxd(m)->psn);
}

/*
 * Decap lets it pass only where the QP has an algorithm, which may have ended meanwhile. It answers
 * nothing.
 */
static bool
took_cnp(struct hca_req_rx_run *run, const struct hca_rxd *rxd)
{
	const struct hca_cc_ops *cc = hca_cc_of(run->h, run->qpi);

	if (rxd->opcode != HCA_BTH_CNP)
		return false;
	HCA_COUNT(run->h, REQ_RX, rp_cnp_handled);
	hca_qp_stat_add32(&run->qp->stats.rp_cnp_handled, 1);
	run->packets--;
	if (cc != NULL)
		cc->cnp(run->h, run->qpi, run->now);
	/* it may be about requests or about READ responses, which take the same path */
	hca_msg_send(run->h, HCA_STAGE_REQ_RX, HCA_STAGE_EE, run->qpi, HCA_MSG_CNP);
	return true;
}

static void
handle_packet(struct hca_req_rx_run *run, struct rte_mbuf *m)
{
	const struct hca_rxd *rxd = hca_rxd(m);
	uint32_t d = hca_req_rx_ahead(run, rxd->psn);

	/* the PSN of a CNP means nothing */
	if (unlikely(run->qp->req_rx.flags & HCA_REQ_RX_GAP) && rxd->opcode != HCA_BTH_CNP)
		hca_req_rx_order_seen(run, rxd->psn);
	if (unlikely(d >= hca_req_rx_outstanding(run))) {
		if (took_cnp(run, rxd))
			return;
		hca_req_rx_order_again(run, rxd->psn);
		if (d == HCA_PSN_MASK && HCA_BTH_OPERATION(rxd->opcode) == HCA_BTH_RC_ACK)
			hca_req_rx_drop(run, HCA_CTR_req_duplicate_ack);
		else
			hca_req_rx_drop(run, HCA_CTR_req_stale_response);
		return;
	}
	switch (HCA_BTH_OPERATION(rxd->opcode)) { /* RC and XRC */
	case HCA_BTH_RC_ACK:
		handle_ack(run, m, d);
		break;
	case HCA_BTH_RC_READ_RESP_FIRST:
	case HCA_BTH_RC_READ_RESP_MIDDLE:
	case HCA_BTH_RC_READ_RESP_LAST:
	case HCA_BTH_RC_READ_RESP_ONLY:
		run->read_bytes += rxd->payload_len;
		hca_req_rx_read_response(run, m, d);
		break;
	case HCA_BTH_RC_ATOMIC_ACK:
		hca_req_rx_atomic_response(run, m, d);
		break;
	default:
		if (!took_cnp(run, rxd))
			hca_req_rx_drop(run, HCA_CTR_req_bad_response);
	}
}

static bool
is_sending(const struct hca_qp *qp)
{
	uint32_t state = hca_qp_state(qp);

	return state == HCA_QPS_RTS || state == HCA_QPS_SQD;
}

/* Before RTS a QP has READ responses only, which are EE's. */
static bool
took_early_cnp(struct hca_pipe *h, const struct hca_rxd *d)
{
	struct hca_qp *qp = &h->qp[d->qpi];

	if (d->opcode != HCA_BTH_CNP || hca_qp_state(qp) != HCA_QPS_RTR)
		return false;
	HCA_COUNT(h, REQ_RX, rp_cnp_handled);
	hca_qp_stat_add32(&qp->stats.rp_cnp_handled, 1);
	hca_msg_send(h, HCA_STAGE_REQ_RX, HCA_STAGE_EE, d->qpi, HCA_MSG_CNP);
	return true;
}

/* Whether the packet is of this generation and the QP's state accepts responses. */
static bool
accepts(struct hca_pipe *h, const struct hca_rxd *d)
{
	const struct hca_qp *qp = &h->qp[d->qpi];

	if (unlikely(d->generation != qp->cfg.generation))
		HCA_COUNT(h, REQ_RX, rx_stale_generation);
	else if (likely(is_sending(qp)))
		return true;
	else if (!took_early_cnp(h, d))
		HCA_COUNT(h, REQ_RX, rx_qp_state);
	return false;
}

void
hca_req_rx_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct hca_cq_batch batch = {.n = 0};
	struct hca_req_rx_singles singles = {.batch = &batch};
	struct hca_req_rx_run run;
	bool open = false;

	for (unsigned int i = 0, taken; i < n; i += RTE_MAX(taken, 1u)) {
		struct rte_mbuf *const *m = (struct rte_mbuf *const *)objs + i;
		const struct hca_rxd *d = hca_rxd(*m);

		taken = 0;
		if (i + 1 < n)
			rte_prefetch0(hca_rxd(m[1]));
		if (open && (run.qpi != d->qpi || run.dead)) {
			hca_req_rx_commit(&run);
			open = false;
		}
		if (!open) {
			if ((i + 1 == n || hca_rxd(objs[i + 1])->qpi != d->qpi) &&
			    likely(hca_req_rx_single(&singles, h, *m)))
				continue;
			hca_req_rx_singles_end(&singles, h);
		}
		if (unlikely(!accepts(h, d)))
			continue;
		if (!open)
			hca_req_rx_begin(&run, h, d->qpi, now, &batch);
		open = true;
		taken = hca_req_rx_is_answer(d) ? hca_req_rx_answers(&run, m, n - i) : 0;
		if (taken != 0)
			continue;
		run.packets++;
		handle_packet(&run, *m);
	}
	if (open)
		hca_req_rx_commit(&run);
	hca_req_rx_singles_end(&singles, h);
	hca_cq_batch_end(&h->core, &batch, HCA_STAGE_REQ_RX);
	hca_mbuf_free_burst((struct rte_mbuf *const *)objs, n);
}

/* ---- messages ---- */

/* Handle pending errors, flushes and local operations, or a change of state. */
static void
attend(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	struct hca_cq_batch batch = {.n = 0};
	uint32_t state = hca_qp_state(qp);
	struct hca_req_rx_run run;

	/* nothing before RTS; UC and UD have no responses: req_tx completes their requests */
	if (state < HCA_QPS_RTS || qp->req_tx.unreliable)
		return;
	hca_req_rx_begin(&run, h, qpi, now, &batch);
	if (state == HCA_QPS_ERR || state == HCA_QPS_SQE)
		hca_req_rx_flush(&run);
	else
		hca_req_rx_set_flags(&qp->req_rx,
				     (flags & HCA_MSG_BAD ? HCA_REQ_RX_BAD : 0) |
					     (flags & HCA_MSG_LOCAL ? HCA_REQ_RX_LOCAL : 0));
	hca_req_rx_commit(&run);
	hca_cq_batch_end(&h->core, &batch, HCA_STAGE_REQ_RX);
}

/* Foreign memory of requests did not answer in time. */
static void
gather_late(struct hca_pipe *h, uint32_t qpi, uint64_t now)
{
	struct hca_cq_batch batch = {.n = 0};
	struct hca_req_rx_run run;

	hca_req_rx_begin(&run, h, qpi, now, &batch);
	hca_req_rx_postpone(&run);
	hca_req_rx_commit(&run);
	hca_cq_batch_end(&h->core, &batch, HCA_STAGE_REQ_RX);
}

static void
on_req_tx(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	if (flags & HCA_MSG_ARM && is_sending(qp))
		arm_if_needed(h, qp, qpi, now);
	if (unlikely(flags & (HCA_MSG_BAD | HCA_MSG_LOCAL)))
		attend(h, qp, qpi, flags, now);
	if (unlikely(flags & HCA_MSG_LATE) && is_sending(qp))
		gather_late(h, qpi, now);
}

static void
on_state(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	attend(h, qp, qpi, 0, now);
}

static void
on_ceu(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	/* req_rx keeps no state of a QP outside its line */
	if (flags & HCA_MSG_PURGE)
		hca_purge_ack(h, HCA_STAGE_REQ_RX);
	else
		attend(h, qp, qpi, 0, now);
}

static void
end_hold(struct hca_req_rx_run *run)
{
	struct hca_qp_req_rx *q = &run->qp->req_rx;

	run->again = q->flags & HCA_REQ_RX_LATE ? HCA_AGAIN_LATE : HCA_AGAIN_RNR_NAK;
	hca_req_rx_clear_flags(q, HCA_REQ_RX_HOLD | HCA_REQ_RX_LATE);
	q->deadline = run->now + ack_timeout_ns(run->qp);
	run->msg |= HCA_MSG_REWIND;
}

static void
timed_out(struct hca_req_rx_run *run)
{
	HCA_COUNT(run->h, REQ_RX, local_ack_timeout_err);
	hca_qp_stat_add32(&run->qp->stats.local_ack_timeout_err, 1);
	hca_req_rx_clear_flags(&run->qp->req_rx, HCA_REQ_RX_IMPLIED);
	if (hca_rtt_never_full(run))
		HCA_COUNT(run->h, REQ_RX, full_frames_timeouts);
	retry(run, HCA_AGAIN_TIMEOUT);
}

/*
 * The timeout has expired: returns how much longer an answer may take because frames wait for our
 * own port, or were sent only now; 0: no longer. How long a frame waits is estimated from other
 * frames: one that has been in the backlog may have been on its way there for three times as long.
 * The total is limited, because losses must be found even if the port is always slow.
 */
static uint64_t
port_owes(const struct hca_pipe *h, const struct hca_qp *qp, uint64_t timeout, uint64_t now)
{
	const struct hca_tx_wait *w = &h->tx_wait;
	uint64_t since = __atomic_load_n(&w->since, __ATOMIC_ACQUIRE);
	uint64_t left_at = __atomic_load_n(&w->left_at, __ATOMIC_RELAXED);
	uint64_t waited = __atomic_load_n(&w->waited, __ATOMIC_RELAXED);
	uint64_t given = ((uint64_t)qp->req_rx.port_waits << HCA_PORT_WAIT_LOG) + timeout;
	uint64_t longest = now <= left_at + HCA_TX_WAIT_FACTOR * waited ? waited : 0;

	if (since != 0 && now > since)
		longest = RTE_MAX(longest, now - since);
	if (qp->req_rx.port_waits == UINT16_MAX || HCA_TX_WAIT_FACTOR * longest < given)
		return 0;
	if (since != 0)
		return timeout;
	if (now < left_at + timeout)
		return left_at + timeout - now;
	return 0;
}

/* False: the deadline was moved. */
static bool
is_over(struct hca_pipe *h, struct hca_qp *qp, bool hold, uint64_t now)
{
	struct hca_qp_req_rx *q = &qp->req_rx;
	uint64_t more, units;

	if (q->deadline != q->timer_deadline)
		q->port_waits = 0; /* there was progress */
	if (now < q->deadline)
		return false;
	more = hold ? 0 : port_owes(h, qp, ack_timeout_ns(qp), now);
	units = (more >> HCA_PORT_WAIT_LOG) + 1;
	q->deadline = more != 0 ? now + (units << HCA_PORT_WAIT_LOG) : q->deadline;
	q->port_waits = more != 0 ? (uint16_t)RTE_MIN(q->port_waits + units, UINT16_MAX) : 0;
	return more == 0;
}

/*
 * The entry has left the wheel. Deadlines are moved without updating it, so check the actual one.
 */
static void
on_timer(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	struct hca_cq_batch batch = {.n = 0};
	struct hca_qp_req_rx *q = &qp->req_rx;
	bool hold = q->flags & HCA_REQ_RX_HOLD;
	struct hca_req_rx_run run;

	if (!q->timer_armed)
		return;
	if (!is_sending(qp)) {
		__atomic_store_n(&q->timer_armed, 0, __ATOMIC_RELAXED);
		return;
	}
	if (!hold && (hca_qp_ack_timeout(qp) == 0 || all_acknowledged(qp))) {
		disarm(h, qp, qpi, now);
		return;
	}
	if (q->deadline == HCA_REQ_RX_IDLE)
		q->deadline = now + ack_timeout_ns(qp);
	if (is_over(h, qp, hold, now)) {
		hca_req_rx_begin(&run, h, qpi, now, &batch);
		if (hold)
			end_hold(&run);
		else
			timed_out(&run);
		hca_req_rx_commit(&run);
		hca_cq_batch_end(&h->core, &batch, HCA_STAGE_REQ_RX);
	}
	if (hold && hca_qp_ack_timeout(qp) == 0 && !(q->flags & HCA_REQ_RX_HOLD))
		disarm(h, qp, qpi, now);
	else
		start_timer(h, qp, qpi);
}

static unsigned int
messages(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	unsigned int n;

	n = hca_msg_drain(h, HCA_STAGE_CEU, HCA_STAGE_REQ_RX, on_ceu, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, on_req_tx, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_EE, HCA_STAGE_REQ_RX, on_state, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_PARSER, HCA_STAGE_REQ_RX, on_state, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_TIMER, HCA_STAGE_REQ_RX, on_timer, now, budget);
	return n;
}

unsigned int
hca_req_rx_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	unsigned int n = 0;

	if (hca_msg_due(h, HCA_STAGE_REQ_RX))
		n = messages(h, now, budget);
	return n + hca_edge_drain(h, &h->edge[HCA_EDGE_DECAP_REQ_RX], budget, now);
}

/* All work arrives by edges and messages; times are in the wheel. */
uint64_t
hca_req_rx_deadline(const struct hca_pipe *h, uint64_t now)
{
	(void)h;
	(void)now;
	return UINT64_MAX;
}
