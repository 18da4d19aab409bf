/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * encap: passes frames, which the file of their wire builds from packet descriptors, to the port,
 * and gathers their payload. Key, PD, rights and range are checked here, once, at the copy.
 *
 * If the port accepts fewer frames than offered, the rest waits in `backlog` and credit (room) is
 * withheld, back to the doorbells. A port that is only slow loses nothing: h->tx_wait tells req_rx
 * how long frames wait, so that ack timeouts do not run meanwhile. If the port has no link, or
 * accepts nothing for cfg.port_stall_ns, encap discards and counts frames until it accepts some
 * again.
 */

#include <errno.h>

#include <rte_malloc.h>

#include "frame/encap.h"
#include "queues/eq.h"
#include "vtp/foreign.h"

#define LINK_EVERY_NS 10000000u /* interval of queries of the port's link */

int
hca_encap_init(struct hca_pipe *h)
{
	struct hca_encap *e =
		rte_zmalloc_socket("encap", sizeof(*e), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);

	uint32_t edges = 0;

	h->stage_ctx[HCA_STAGE_ENCAP] = e;
	if (e == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < HCA_EDGE_N; i++) {
		if (h->edge[i].process == NULL || h->edge[i].to != HCA_STAGE_ENCAP)
			continue;
		edges++;
		if (h->edge[i].ring != NULL)
			e->in[e->n_in++] = &h->edge[i];
	}
	e->share = rte_log2_u32(edges);
	e->room = HCA_ENCAP_BACKLOG >> e->share;
	return 0;
}

void
hca_encap_fini(struct hca_pipe *h)
{
	struct hca_encap *e = h->stage_ctx[HCA_STAGE_ENCAP];

	if (e == NULL)
		return;
	for (; e->tail != e->head; e->tail++)
		rte_pktmbuf_free(e->backlog[e->tail & (HCA_ENCAP_RING - 1)]);
	rte_pktmbuf_free_bulk(e->open.frame, e->open.frames);
	rte_free(e);
}

static inline uint32_t
backlog_count(const struct hca_encap *e)
{
	return e->head - e->tail;
}

/*
 * Each incoming edge in use may deliver its room in one loop, so each gets an equal share. The
 * destination of a frame is not known yet, so there must be room for it in the port and in the
 * loopback ring. Frames of the open burst were pushed into a share of the same loop.
 */
unsigned int
hca_encap_room(struct hca_pipe *h)
{
	const struct hca_encap *e = h->stage_ctx[HCA_STAGE_ENCAP];

	if (unlikely(__atomic_load_n(&h->loop.on, __ATOMIC_ACQUIRE) != 0))
		return RTE_MIN(e->room, hca_loopback_room(h) >> e->share);
	return e->room;
}

/*
 * The backlog has changed: publish how long the oldest frame has waited and, after a long wait, how
 * long the first ones sent had waited.
 */
static void
note_wait(struct hca_pipe *h, struct hca_encap *e, uint32_t left, uint64_t now)
{
	struct hca_tx_wait *w = &h->tx_wait;
	uint32_t n = backlog_count(e);

	if (left != 0) {
		uint64_t waited = now - e->kept_at[(e->tail - left) & (HCA_ENCAP_RING - 1)];
		bool old = now > w->left_at + HCA_TX_WAIT_FACTOR * w->waited;

		if (old || HCA_TX_WAIT_FACTOR * waited >= w->waited) {
			waited = old ? waited : RTE_MAX(waited, w->waited);
			__atomic_store_n(&w->left_at, now, __ATOMIC_RELAXED);
			__atomic_store_n(&w->waited, waited, __ATOMIC_RELAXED);
		}
	}
	__atomic_store_n(&w->since, n != 0 ? e->kept_at[e->tail & (HCA_ENCAP_RING - 1)] : 0,
			 __ATOMIC_RELEASE);
	__atomic_store_n(&h->backlog, n, __ATOMIC_RELAXED);
	e->room = (HCA_ENCAP_BACKLOG - RTE_MIN(n, HCA_ENCAP_BACKLOG)) >> e->share;
}

static void
set_discarding(struct hca_pipe *h, struct hca_encap *e, bool on)
{
	if (e->discarding == on)
		return;
	e->discarding = on;
	__atomic_store_n(&h->discarding, on, __ATOMIC_RELAXED);
}

static void
discard(struct hca_pipe *h, struct hca_encap *e, enum hca_counter why)
{
	hca_count(&h->line[HCA_STAGE_ENCAP], why, backlog_count(e));
	for (; e->tail != e->head; e->tail++)
		rte_pktmbuf_free(e->backlog[e->tail & (HCA_ENCAP_RING - 1)]);
}

/* Query the link; report a change. */
static bool
link_is_up(struct hca_pipe *h, struct hca_encap *e)
{
	bool up = h->port->ops->link_up(h->port);

	if (up == e->link_down) {
		e->link_down = !up;
		__atomic_store_n(&h->link_down, e->link_down, __ATOMIC_RELAXED);
		/* one event for all pipes */
		if (h->pipe_number == 0)
			hca_eq_raise_port(&h->core, HCA_STAGE_ENCAP,
					  up ? HCA_PORT_ACTIVE : HCA_PORT_DOWN);
	}
	return up;
}

/* The port did not accept everything: check how long, and whether there is a link. */
static void
port_stalled(struct hca_pipe *h, struct hca_encap *e, bool progress, uint64_t now)
{
	if (progress || e->stalled_since == 0) {
		e->stalled_since = now ? now : 1;
		if (progress)
			set_discarding(h, e, false);
	}
	if (!link_is_up(h, e)) {
		discard(h, e, HCA_CTR_tx_discard_link_down);
		/* no frame waits: the next stall has its own time */
		e->stalled_since = 0;
		set_discarding(h, e, false);
	} else if (e->discarding || now - e->stalled_since >= h->cfg.port_stall_ns) {
		set_discarding(h, e, true);
		discard(h, e, HCA_CTR_tx_discard_stalled);
	}
}

static unsigned int
flush_backlog(struct hca_pipe *h, struct hca_encap *e, uint64_t now)
{
	unsigned int done = 0;

	while (backlog_count(e) != 0) {
		uint32_t at = e->tail & (HCA_ENCAP_RING - 1);
		uint16_t n = RTE_MIN(backlog_count(e), HCA_ENCAP_RING - at), took;

		took = h->port->ops->tx(h->port, h->port_queue, &e->backlog[at], n, now);
		e->tail += took;
		done += took;
		note_wait(h, e, took, now);
		if (took < n) {
			port_stalled(h, e, done != 0, now);
			break;
		}
	}
	if (backlog_count(e) == 0 && done != 0) {
		e->stalled_since = 0;
		set_discarding(h, e, false);
	}
	note_wait(h, e, 0, now);
	return done;
}

static void
keep(struct hca_encap *e, struct rte_mbuf *const *m, unsigned int n, uint64_t now)
{
	for (unsigned int i = 0; i < n; i++) {
		e->kept_at[e->head & (HCA_ENCAP_RING - 1)] = now;
		e->backlog[e->head++ & (HCA_ENCAP_RING - 1)] = m[i];
	}
}

/*
 * A copy and its part of the ICRC are one pass. The ICRCs of the headers are computed together and
 * last: a load of bytes that were just stored in small pieces waits until the stores are complete.
 */
void
hca_encap_copy_long(struct hca_pipe *h, struct hca_encap_burst *b)
{
	uint32_t crc[HCA_ENCAP_FRAMES];

	h->icrc->crc_burst(b->head, crc, b->copies);
	for (unsigned int i = 0; i < b->copies; i++) {
		const struct hca_encap_copy *c = &b->copy[i];
		uint8_t *end = c->dst + c->len;
		uint32_t pad = -c->len & 3, sum;

		/* a part of a long message: the prefetcher of the CPU begins again in each page */
		if (i + 1 < b->copies && c[1].part)
			hca_prefetch(c[1].src, c[1].len);
		hca_tsan_repeat_begin(c->repeat);
		sum = h->icrc->copy_crc(crc[i], c->dst, c->src, c->len);
		hca_tsan_repeat_end(c->repeat);
		if (unlikely(pad != 0)) {
			memset(end, 0, 4);
			sum = h->icrc->crc(sum, end, pad);
		}
		hca_icrc_store(end + pad, sum);
	}
	b->copies = 0;
}

/* Compute the ICRC of the short frames of the burst together. */
static void
finish_icrc(struct hca_pipe *h, struct hca_encap_burst *b)
{
	uint32_t crc[HCA_ENCAP_FRAMES];

	if (b->spans == 0)
		return;
	h->icrc->crc_burst(b->span, crc, b->spans);
	for (unsigned int i = 0; i < b->spans; i++)
		hca_icrc_store(b->icrc_at[i], crc[i]);
}

void
hca_encap_transmit(struct hca_pipe *h, struct hca_encap_burst *b, uint64_t now)
{
	struct hca_encap *e = h->stage_ctx[HCA_STAGE_ENCAP];
	uint16_t took = 0;

	if (b->frames == 0)
		return;
	hca_encap_copy_all(h, b);
	finish_icrc(h, b);
	HCA_COUNT_N(h, ENCAP, sent_pkts, b->frames);
	HCA_COUNT_N(h, ENCAP, port_xmit_data, b->bytes);
	if (unlikely(__atomic_load_n(&h->loop.on, __ATOMIC_ACQUIRE) != 0)) {
		b->frames = hca_loopback_divert(h, b->frame, b->frames);
		if (b->frames == 0)
			return;
	}
	if (likely(backlog_count(e) == 0)) {
		took = h->port->ops->tx(h->port, h->port_queue, b->frame, (uint16_t)b->frames, now);
		if (likely(took == b->frames)) {
			e->stalled_since = 0;
			set_discarding(h, e, false);
			return;
		}
		HCA_COUNT(h, ENCAP, tx_backlog_events);
	}
	keep(e, b->frame + took, b->frames - took, now);
	if (took == 0 && backlog_count(e) != b->frames)
		flush_backlog(h, e, now);
	else
		port_stalled(h, e, took != 0, now);
	note_wait(h, e, 0, now);
}

void
hca_encap_transmit_open(struct hca_pipe *h, uint64_t now)
{
	struct hca_encap *e = h->stage_ctx[HCA_STAGE_ENCAP];

	hca_encap_transmit(h, &e->open, now);
	hca_encap_begin(&e->open);
}

/* Gathers from a foreign region; false: the key names no such region, or the read failed. */
static bool
gather_foreign(struct hca_pipe *h, const struct hca_qp *qp, uint32_t pd, uint32_t key,
	       uint32_t access, uint64_t va, uint32_t n, uint8_t *dst, uint32_t *crc)
{
	struct hca_encap *enc = h->stage_ctx[HCA_STAGE_ENCAP];
	const struct hca_mpt_entry *e =
		hca_foreign_find(&h->vtp, key, pd,
				 access == HCA_ACCESS_REMOTE_READ ? &qp->cfg : NULL, access, va, n);
	int rc = e != NULL ? hca_foreign_read(&h->core, e, va, dst, n) : -EFAULT;

	enc->late = rc == -EAGAIN;
	if (rc == 0 && crc != NULL)
		*crc = h->icrc->crc(*crc, dst, n);
	return rc == 0;
}

/* Gather [va, va + n) of one key; false: not allowed. */
static bool
gather_run(struct hca_pipe *h, const struct hca_qp *qp, uint32_t pd, uint32_t key, uint32_t access,
	   uint64_t va, uint32_t n, uint8_t *dst, uint32_t *crc)
{
	const struct hca_mpt_entry *e = hca_encap_find_entry(h, qp, pd, key, access, va, n);

	if (e == NULL)
		return gather_foreign(h, qp, pd, key, access, va, n, dst, crc);
	while (n != 0) {
		uint32_t run;
		const uint8_t *src = hca_vtp_ptr(&h->vtp, e, va, n, &run);

		hca_encap_put(h, dst, src, run, crc);
		dst += run;
		va += run;
		n -= run;
	}
	return true;
}

/* Gather from the record's list, from byte d->off on. */
static bool
gather_list(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_txd *d, uint32_t pd,
	    uint32_t access, uint8_t *dst, uint32_t *crc)
{
	const struct hca_record *r = hca_record(h, d->rec);
	const struct hca_sge *sge = hca_record_sges(r);
	uint32_t skip = d->off, left = d->len;

	for (unsigned int i = 0; i < r->nsge && left != 0; i++) {
		uint32_t n;

		if (skip >= sge[i].len) {
			skip -= sge[i].len;
			continue;
		}
		n = RTE_MIN(sge[i].len - skip, left);
		if (!gather_run(h, qp, pd, sge[i].lkey, access, sge[i].va + skip, n, dst, crc))
			return false;
		dst += n;
		left -= n;
		skip = 0;
	}
	return left == 0;
}

bool
hca_encap_gather(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_txd *d, uint32_t pd,
		 uint32_t access, uint8_t *dst, uint32_t *crc)
{
	if (d->flags & HCA_TXD_INLINE) {
		const struct hca_record_full *r = (void *)hca_record(h, d->rec);

		hca_encap_put(h, dst, r->body.inline_data + d->off, d->len, crc);
		return true;
	}
	if (d->nsge > 1)
		return gather_list(h, qp, d, pd, access, dst, crc);
	return gather_run(h, qp, pd, d->key, access, d->va, d->len, dst, crc);
}

unsigned int
hca_encap_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct hca_encap *e = h->stage_ctx[HCA_STAGE_ENCAP];
	unsigned int done = 0;

	if (unlikely(h->port->ops->poll != NULL))
		h->port->ops->poll(h->port, h->port_queue, now);
	if (unlikely(now >= e->link_at)) {
		e->link_at = now + LINK_EVERY_NS;
		link_is_up(h, e);
	}
	if (unlikely(backlog_count(e) != 0))
		done += flush_backlog(h, e, now);
	for (unsigned int i = 0; i < e->n_in; i++)
		done += hca_edge_drain(h, e->in[i], RTE_MIN(hca_encap_room(h), budget), now);
	if (e->open.frames != 0)
		hca_encap_transmit_open(h, now);
	return done;
}

/* Changes of the link are announced by their cause, and the link is checked after every sleep. */
uint64_t
hca_encap_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct hca_encap *e = h->stage_ctx[HCA_STAGE_ENCAP];

	if (e->open.frames != 0)
		return now;
	return backlog_count(e) != 0 ? HCA_DEADLINE_ROOM : UINT64_MAX;
}

void
hca_encap_ask_link_next(struct hca_pipe *h)
{
	((struct hca_encap *)h->stage_ctx[HCA_STAGE_ENCAP])->link_at = 0;
}
