/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Received frames are "transmitted" through an impairment to a queue of this port, and received
 * from it. The impairment may release held frames at any time, so the queue is larger than a burst.
 * Frames that it refuses (it holds its maximum during a delay) wait here, and no more are fetched
 * meanwhile: losses then occur in the inner port, which counts them (missed).
 */

#include <errno.h>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "port/port_inbound.h"
#include "port/port_wrap.h"

#define BURST 32u
#define QUEUE 256u /* frames; a power of two */

/* The port the impairment transmits to. */
struct queue {
	struct hca_port port;
	uint32_t head, tail; /* free running */
	struct rte_mbuf *frame[QUEUE];
};

struct port_inbound {
	struct hca_port_wrap wrap;
	struct hca_port *impair;
	struct queue *queue; /* owned by impair */
	struct rte_mbuf *waiting[BURST];
	uint16_t at, end; /* of the waiting frames */
	bool ready;	  /* [pub] frames have passed for which rx had no room */
	uint32_t deaf;	  /* [pub] not 0: received frames are dropped */
	uint64_t lost;	  /* [pub] frames dropped because of deaf */
};

static uint16_t
queue_tx(struct hca_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct queue *q = (struct queue *)p;
	uint16_t took = 0;

	(void)now;
	while (took < n && q->head - q->tail < QUEUE)
		q->frame[q->head++ % QUEUE] = m[took++];
	return took;
}

static uint16_t
queue_rx(struct hca_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct queue *q = (struct queue *)p;
	uint16_t got = 0;

	(void)now;
	while (got < n && q->tail != q->head)
		m[got++] = q->frame[q->tail++ % QUEUE];
	return got;
}

static bool
queue_up(struct hca_port *p)
{
	(void)p;
	return true;
}

static void
queue_close(struct hca_port *p)
{
	struct queue *q = (struct queue *)p;

	while (q->tail != q->head)
		rte_pktmbuf_free(q->frame[q->tail++ % QUEUE]);
	rte_free(q);
}

static const struct hca_port_ops queue_ops = {
	.rx = queue_rx,
	.tx = queue_tx,
	.link_up = queue_up,
	.close = queue_close,
};

static bool
is_empty(const struct port_inbound *p)
{
	return p->at == p->end && p->queue->head == p->queue->tail;
}

/* Pass one more burst to the impairment, after it has accepted the previous one. */
static void
fetch(struct port_inbound *p, uint16_t n, uint64_t now)
{
	if (p->at == p->end) {
		p->at = p->end = 0;
		if (p->queue->head - p->queue->tail > QUEUE / 2)
			return;
		p->end = p->wrap.inner->ops->rx(p->wrap.inner, HCA_PORT_QUEUE, p->waiting,
						(uint16_t)RTE_MIN(n, BURST), now);
	}
	if (p->at != p->end)
		p->at += p->impair->ops->tx(p->impair, HCA_PORT_QUEUE, p->waiting + p->at,
					    (uint16_t)(p->end - p->at), now);
}

/* Frees frames that were on their way when the link went down; returns their number. */
static uint32_t
forget(struct port_inbound *p)
{
	struct queue *q = p->queue;
	uint32_t n = (uint32_t)(p->end - p->at) + (q->head - q->tail);

	rte_pktmbuf_free_bulk(p->waiting + p->at, p->end - p->at);
	p->at = p->end = 0;
	while (q->tail != q->head)
		rte_pktmbuf_free(q->frame[q->tail++ % QUEUE]);
	__atomic_store_n(&p->ready, false, __ATOMIC_RELAXED);
	return n + hca_port_impair_forget(p->impair, HCA_PORT_QUEUE);
}

static uint16_t
lose(struct port_inbound *p, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint16_t got = p->wrap.inner->ops->rx(p->wrap.inner, HCA_PORT_QUEUE, m, n, now);

	rte_pktmbuf_free_bulk(m, got);
	hca_port_count(&p->lost, got + forget(p));
	return 0;
}

static uint16_t
inbound_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_inbound *p = (struct port_inbound *)port;
	uint16_t got;

	if (unlikely(__atomic_load_n(&p->deaf, __ATOMIC_RELAXED) != 0))
		return lose(p, m, n, now);
	if (likely(is_empty(p) && hca_port_impair_clean(p->impair, HCA_PORT_QUEUE))) {
		got = p->wrap.inner->ops->rx(p->wrap.inner, q, m, n, now);
		if (got != 0)
			hca_port_impair_count(p->impair, HCA_PORT_QUEUE, got);
		return got;
	}
	fetch(p, n, now);
	hca_port_poll(p->impair, q, now);
	got = queue_rx(&p->queue->port, q, m, n, now);
	__atomic_store_n(&p->ready, p->queue->head != p->queue->tail, __ATOMIC_RELAXED);
	return got;
}

/* For held frames and those that have passed; waiting frames are offered again when one leaves. */
static uint64_t
inbound_deadline(const struct hca_port *port, uint16_t q, uint64_t now)
{
	const struct port_inbound *p = (const struct port_inbound *)port;

	if (__atomic_load_n(&p->ready, __ATOMIC_RELAXED))
		return now;
	return hca_port_earlier(hca_port_deadline(p->impair, q, now),
				hca_port_deadline(p->wrap.inner, q, now));
}

static void
inbound_close(struct hca_port *port)
{
	struct port_inbound *p = (struct port_inbound *)port;

	rte_pktmbuf_free_bulk(p->waiting + p->at, p->end - p->at);
	p->impair->ops->close(p->impair);
	p->wrap.inner->ops->close(p->wrap.inner);
	rte_free(p);
}

static const struct hca_port_ops inbound_ops = {
	.rx = inbound_rx,
	.tx = hca_port_wrap_tx,
	.link_up = hca_port_wrap_link_up,
	.poll = hca_port_wrap_poll,
	.missed = hca_port_wrap_missed,
	.wait_fd = hca_port_wrap_wait_fd,
	.arm = hca_port_wrap_arm,
	.deadline = inbound_deadline,
	.close = inbound_close,
};

int
hca_port_inbound_open(const struct hca_port_impair_config *cfg, struct hca_port *inner,
		      struct hca_port **out)
{
	struct port_inbound *p;
	int rc = -ENOMEM;

	p = rte_zmalloc_socket("hca_inbound", sizeof(*p), RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (p == NULL)
		return -ENOMEM;
	p->queue = rte_zmalloc_socket("hca_inbound_q", sizeof(*p->queue), RTE_CACHE_LINE_SIZE,
				      cfg->socket_id);
	if (p->queue == NULL)
		goto err_port;
	p->queue->port = (struct hca_port){.ops = &queue_ops,
					   .max_frame = inner->max_frame,
					   .queue_size = QUEUE};
	rc = hca_port_impair_open(cfg, &p->queue->port, &p->impair);
	if (rc != 0)
		goto err_queue;
	hca_port_wrap_init(&p->wrap, &inbound_ops, inner);
	p->wrap.port.queue_size = inner->queue_size + p->impair->queue_size;
	*out = &p->wrap.port;
	return 0;

err_queue:
	rte_free(p->queue);
err_port:
	rte_free(p);
	return rc;
}

uint32_t *
hca_port_inbound_deaf(struct hca_port *port)
{
	return &((struct port_inbound *)port)->deaf;
}

uint64_t
hca_port_inbound_lost(const struct hca_port *port)
{
	return __atomic_load_n(&((const struct port_inbound *)port)->lost, __ATOMIC_RELAXED);
}

struct hca_port *
hca_port_inbound_impair(struct hca_port *port)
{
	return ((struct port_inbound *)port)->impair;
}
