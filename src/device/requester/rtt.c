/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "core/table.h"
#include "hca.h"
#include "requester/req_rx.h"
#include "requester/req_tx.h"
#include "requester/rtt.h"

#define GET(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define PUT(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

_Static_assert(sizeof(struct hca_rtt) == 128, "a line for each writer");

int
hca_rtt_init(struct hca_pipe *h)
{
	uint32_t n = RTE_MIN(h->qp_mask + 1, HCA_RTT_PLACES);

	h->rtt = hca_table_alloc(n, sizeof(*h->rtt), h->cfg.socket_id);
	h->rtt_peers = hca_table_alloc(HCA_RTT_PEERS, sizeof(*h->rtt_peers), h->cfg.socket_id);
	h->rtt_mask = n - 1;
	if (h->rtt != NULL && h->rtt_peers != NULL)
		return 0;
	hca_rtt_fini(h);
	return -ENOMEM;
}

void
hca_rtt_fini(struct hca_pipe *h)
{
	hca_table_free(h->rtt);
	hca_table_free(h->rtt_peers);
	h->rtt = NULL;
	h->rtt_peers = NULL;
}

/* ---- req_tx ---- */

/* The QP gets the place unless another one still measures there. */
static bool
take_place(struct hca_req_tx_visit *v, struct hca_rtt *t)
{
	uint32_t life = v->generation + 1;

	if (t->qpi == v->qpi && t->life == life)
		return true;
	if (t->qpi != v->qpi && t->life != 0 && v->ctx->now - t->sent_at < HCA_RTT_IDLE_NS)
		return false;
	PUT(t->spoilt, t->begun);
	PUT(t->qpi, v->qpi);
	PUT(t->life, life);
	PUT(t->begun, __atomic_load_n(&t->ended, __ATOMIC_ACQUIRE));
	return true;
}

/* The PSN that the last frame of this visit has, or the first one of its answer. */
static uint32_t
timed_psn(const struct hca_req_tx_visit *v, const struct hca_record *r)
{
	return r->flags & HCA_REC_RD ? r->psn : (v->next_psn - 1) & HCA_PSN_MASK;
}

/*
 * The record of the visit's last frame; local operations have none. *full: it, or one before it in
 * this visit, has a frame of the full MTU.
 */
static const struct hca_record *
last_sent(const struct hca_req_tx_visit *v, bool *full)
{
	const struct hca_record *last = NULL, *r;
	uint32_t c = v->next + (v->pkt != 0), left = v->wqes + 1;

	for (*full = false; !*full && c != v->tail && (left-- != 0 || last == NULL); c--) {
		r = hca_record(v->h, hca_req_tx_ref(v, c - 1));
		if (r->flags & HCA_REC_LOCAL)
			continue;
		if (last == NULL)
			last = r;
		*full = r->len >= 1u << v->qp->req_tx.mtu_log;
	}
	return last;
}

void
hca_rtt_begin(struct hca_req_tx_visit *v, struct hca_rtt *t, bool repeated)
{
	uint64_t now = v->ctx->now;
	const struct hca_record *r;
	bool open, full;

	if (!take_place(v, t))
		return;
	if (repeated) {
		PUT(t->spoilt, t->begun);
		return;
	}
	open = __atomic_load_n(&t->ended, __ATOMIC_ACQUIRE) != t->begun;
	if ((open && now - t->sent_at < HCA_RTT_IDLE_NS) ||
	    (v->last != NULL && !(v->last->flags & HCA_TXD_ACKREQ)))
		return;
	r = last_sent(v, &full);
	if (unlikely(r == NULL))
		return;
	PUT(t->sent_at, now);
	PUT(t->psn, timed_psn(v, r));
	PUT(t->full, full);
	__atomic_store_n(&t->begun, t->begun + 1, __ATOMIC_RELEASE);
	t->next_at = now + HCA_RTT_EVERY_NS;
}

/* ---- req_rx ---- */

static unsigned int
bucket_of(uint64_t ns)
{
	unsigned int log = ns != 0 ? 63 - (unsigned int)__builtin_clzll(ns) : 0;

	if (log < HCA_RTT_FIRST)
		return 0;
	return RTE_MIN((log - HCA_RTT_FIRST) * 2 + (unsigned int)(ns >> (log - 1) & 1),
		       HCA_RTT_BUCKETS - 1);
}

/* Middle of the bucket's times */
static uint64_t
bucket_ns(unsigned int i)
{
	uint64_t low = 1ull << (HCA_RTT_FIRST + i / 2);

	return i % 2 == 0 ? low + low / 4 : low + low * 3 / 4;
}

static void
sample(struct hca_rtt *t, uint64_t ns)
{
	unsigned int b = bucket_of(ns);

	for (unsigned int i = 0; t->bucket[b] == UINT8_MAX && i < HCA_RTT_BUCKETS; i++)
		if (i != b)
			PUT(t->bucket[i], t->bucket[i] / 2);
	PUT(t->bucket[b], t->bucket[b] == UINT8_MAX ? UINT8_MAX / 2 + 1 : t->bucket[b] + 1);
	if (t->min_ns == 0 || ns < t->min_ns)
		PUT(t->min_ns, (uint32_t)RTE_MIN(RTE_MAX(ns, 1u), UINT32_MAX));
}

/* The QP's peer on the path in use; *place: where it may be. */
static const uint8_t *
peer_of(const struct hca_req_rx_run *run, struct hca_rtt_peer **place)
{
	uint32_t path = __atomic_load_n(&run->qp->encap.path, __ATOMIC_ACQUIRE) & 1, word[4], sum;
	const uint8_t *gid = run->qp->addr.peer_gid[path];

	memcpy(word, gid, sizeof(word));
	sum = (word[0] ^ word[1] ^ word[2] ^ word[3]) * 0x9e3779b1u;
	*place = &run->h->rtt_peers[sum >> 16 & (HCA_RTT_PEERS - 1)];
	return gid;
}

static void
note_passed(const struct hca_req_rx_run *run, bool full)
{
	struct hca_rtt_peer *p;
	const uint8_t *gid = peer_of(run, &p);

	if (memcmp(p->gid, gid, sizeof(p->gid)) != 0) {
		memcpy(p->gid, gid, sizeof(p->gid));
		p->full = 0;
	}
	p->some = true;
	if (full)
		p->full = RTE_MAX(p->full, run->qp->cfg.mtu_log);
}

/* Another QP has the place now. */
static void
forget(struct hca_rtt *t, uint32_t qpi, uint32_t life)
{
	PUT(t->of_life, 0);
	PUT(t->of_qpi, qpi);
	PUT(t->min_ns, 0);
	t->passed = false;
	memset(t->bucket, 0, sizeof(t->bucket));
	__atomic_store_n(&t->of_life, life, __ATOMIC_RELEASE);
}

void
hca_rtt_end(struct hca_req_rx_run *run, struct hca_rtt *t)
{
	uint32_t begun = __atomic_load_n(&t->begun, __ATOMIC_ACQUIRE), life = GET(t->life);
	bool full = GET(t->full);

	if (GET(t->qpi) != run->qpi || life != run->qp->cfg.generation + 1 ||
	    ((run->upsn - 1 - GET(t->psn)) & HCA_PSN_MASK) >= HCA_PSN_HALF)
		return;
	if (t->of_qpi != run->qpi || t->of_life != life)
		forget(t, run->qpi, life);
	if (GET(t->spoilt) != begun)
		sample(t, RTE_MAX(run->now, GET(t->sent_at)) - GET(t->sent_at));
	t->passed |= full;
	note_passed(run, full);
	if (full)
		HCA_COUNT(run->h, REQ_RX, full_frames_passed);
	else
		HCA_COUNT(run->h, REQ_RX, small_frames_passed);
	__atomic_store_n(&t->ended, begun, __ATOMIC_RELEASE);
}

bool
hca_rtt_never_full(const struct hca_req_rx_run *run)
{
	const struct hca_rtt *t = hca_rtt_of(run->h, run->qpi);
	uint32_t mtu_log = run->qp->cfg.mtu_log;
	struct hca_rtt_peer *p;
	const uint8_t *gid = peer_of(run, &p);

	/* no packet of any size has passed: the peer may be gone */
	if (!p->some || memcmp(p->gid, gid, sizeof(p->gid)) != 0 || p->full >= mtu_log)
		return false;
	if (t->passed && t->of_qpi == run->qpi && t->of_life == run->qp->cfg.generation + 1)
		return false;
	return hca_req_rx_record(run, run->tail)->len >= 1u << mtu_log;
}

/* ---- other threads ---- */

/* Time that `percent` of n samples do not exceed. */
static uint64_t
quantile(const uint8_t bucket[HCA_RTT_BUCKETS], uint32_t n, uint32_t percent, uint64_t min)
{
	uint32_t left = (n * percent + 99) / 100;
	unsigned int i = 0;

	while (i < HCA_RTT_BUCKETS - 1 && left > bucket[i])
		left -= bucket[i++];
	return RTE_MAX(bucket_ns(i), min);
}

int
hca_qp_round_trips(const struct hca *h, uint32_t qpn, struct hca_round_trips *out)
{
	const struct hca_pipe *p = &h->pipe[0];
	uint32_t qpi = qpn & p->qp_mask, n = 0;
	const struct hca_qp *qp = &p->qp[qpi];
	const struct hca_rtt *t = hca_rtt_of(p, qpi);
	uint8_t bucket[HCA_RTT_BUCKETS];

	memset(out, 0, sizeof(*out));
	if (qpn == 0 || __atomic_load_n(&qp->cfg.local_qpn, __ATOMIC_ACQUIRE) != qpn)
		return -ENOENT;
	/* of this life: one that has sent something, and is measured */
	if (GET(qp->encap.tx_packets) == 0 ||
	    __atomic_load_n(&t->of_life, __ATOMIC_ACQUIRE) != GET(t->life) ||
	    GET(t->of_qpi) != qpi || GET(t->qpi) != qpi)
		return 0;
	for (unsigned int i = 0; i < HCA_RTT_BUCKETS; i++)
		n += bucket[i] = GET(t->bucket[i]);
	if (n == 0)
		return 0;
	out->samples = n;
	out->min_ns = GET(t->min_ns);
	out->p50_ns = quantile(bucket, n, 50, out->min_ns);
	out->p99_ns = quantile(bucket, n, 99, out->min_ns);
	return 0;
}
