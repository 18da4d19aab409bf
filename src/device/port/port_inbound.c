/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Received frames are "transmitted" through an impairment to a queue of this port, one for each
 * queue of the inner port, and received from it. The impairment may release held frames at any
 * time, so the queue is larger than a burst. Frames that it refuses (it holds its maximum during a
 * delay) wait here, and no more are fetched meanwhile: losses then occur in the inner port, which
 * counts them (missed).
 */

#include <errno.h>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "port/port_inbound.h"
#include "port/port_wrap.h"

#define BURST 32u
#define QUEUE 256u /* frames; a power of two */

struct queue {
	uint32_t head, tail; /* free running */
	struct rte_mbuf *frame[QUEUE];
} __rte_cache_aligned;

/* The port the impairment transmits to, and this port receives from. */
struct passed {
	struct hca_port port;
	struct queue queue[];
};

/* State of one queue. */
struct inbound_lane {
	struct rte_mbuf *waiting[BURST];
	uint16_t at, end; /* of the waiting frames */
	bool ready;	  /* [pub] frames have passed for which rx had no room */
	uint64_t lost;	  /* [pub] frames dropped because of deaf */
} __rte_cache_aligned;

struct port_inbound {
	struct hca_port_wrap wrap;
	struct hca_port *impair;
	struct passed *passed; /* owned by impair */
	uint32_t deaf;	       /* [pub] not 0: received frames are dropped */
	struct inbound_lane lane[];
};

static uint16_t
passed_tx(struct hca_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct queue *q = &((struct passed *)p)->queue[queue];
	uint16_t took = 0;

	(void)now;
	while (took < n && q->head - q->tail < QUEUE)
		q->frame[q->head++ % QUEUE] = m[took++];
	return took;
}

static uint16_t
passed_rx(struct hca_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct queue *q = &((struct passed *)p)->queue[queue];
	uint16_t got = 0;

	(void)now;
	while (got < n && q->tail != q->head)
		m[got++] = q->frame[q->tail++ % QUEUE];
	return got;
}

static bool
passed_up(struct hca_port *p)
{
	(void)p;
	return true;
}

static uint32_t
queue_clear(struct queue *q)
{
	uint32_t n = q->head - q->tail;

	while (q->tail != q->head)
		rte_pktmbuf_free(q->frame[q->tail++ % QUEUE]);
	return n;
}

static void
passed_close(struct hca_port *p)
{
	struct passed *s = (struct passed *)p;

	for (uint16_t q = 0; q < p->queues; q++)
		queue_clear(&s->queue[q]);
	rte_free(s);
}

static const struct hca_port_ops passed_ops = {
	.rx = passed_rx,
	.tx = passed_tx,
	.link_up = passed_up,
	.close = passed_close,
};

/* Pass one more burst to the impairment, after it has accepted the previous one. */
static void
fetch(struct port_inbound *p, uint16_t q, uint16_t n, uint64_t now)
{
	const struct queue *passed = &p->passed->queue[q];
	struct inbound_lane *l = &p->lane[q];

	if (l->at == l->end) {
		l->at = l->end = 0;
		if (passed->head - passed->tail > QUEUE / 2)
			return;
		l->end = p->wrap.inner->ops->rx(p->wrap.inner, q, l->waiting,
						(uint16_t)RTE_MIN(n, BURST), now);
	}
	if (l->at != l->end)
		l->at += p->impair->ops->tx(p->impair, q, l->waiting + l->at,
					    (uint16_t)(l->end - l->at), now);
}

/* Frees frames that were on their way when the link went down; returns their number. */
static uint32_t
forget(struct port_inbound *p, uint16_t q)
{
	struct inbound_lane *l = &p->lane[q];
	uint32_t n = (uint32_t)(l->end - l->at);

	rte_pktmbuf_free_bulk(l->waiting + l->at, n);
	l->at = l->end = 0;
	n += queue_clear(&p->passed->queue[q]);
	__atomic_store_n(&l->ready, false, __ATOMIC_RELAXED);
	return n + hca_port_impair_forget(p->impair, q);
}

static uint16_t
lose(struct port_inbound *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint16_t got = p->wrap.inner->ops->rx(p->wrap.inner, q, m, n, now);

	rte_pktmbuf_free_bulk(m, got);
	hca_port_count(&p->lane[q].lost, got + forget(p, q));
	return 0;
}

static uint16_t
inbound_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_inbound *p = (struct port_inbound *)port;
	const struct queue *passed = &p->passed->queue[q];
	struct inbound_lane *l = &p->lane[q];
	uint16_t got;

	if (unlikely(__atomic_load_n(&p->deaf, __ATOMIC_RELAXED) != 0))
		return lose(p, q, m, n, now);
	if (likely(l->at == l->end && passed->head == passed->tail &&
		   hca_port_impair_clean(p->impair, q))) {
		got = p->wrap.inner->ops->rx(p->wrap.inner, q, m, n, now);
		if (got != 0)
			hca_port_impair_count(p->impair, q, got);
		return got;
	}
	fetch(p, q, n, now);
	hca_port_poll(p->impair, q, now);
	got = passed_rx(&p->passed->port, q, m, n, now);
	__atomic_store_n(&l->ready, passed->head != passed->tail, __ATOMIC_RELAXED);
	return got;
}

/* For held frames and those that have passed; waiting frames are offered again when one leaves. */
static uint64_t
inbound_deadline(const struct hca_port *port, uint16_t q, uint64_t now)
{
	const struct port_inbound *p = (const struct port_inbound *)port;

	if (__atomic_load_n(&p->lane[q].ready, __ATOMIC_RELAXED))
		return now;
	return hca_port_earlier(hca_port_deadline(p->impair, q, now),
				hca_port_deadline(p->wrap.inner, q, now));
}

static void
inbound_close(struct hca_port *port)
{
	struct port_inbound *p = (struct port_inbound *)port;

	for (uint16_t q = 0; q < p->wrap.port.queues; q++) {
		struct inbound_lane *l = &p->lane[q];

		rte_pktmbuf_free_bulk(l->waiting + l->at, l->end - l->at);
	}
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
	uint16_t queues = hca_port_queues(inner);
	struct port_inbound *p;
	int rc = -ENOMEM;

	p = rte_zmalloc_socket("hca_inbound", sizeof(*p) + queues * sizeof(p->lane[0]),
			       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (p == NULL)
		return -ENOMEM;
	p->passed = rte_zmalloc_socket("hca_inbound_q",
				       sizeof(*p->passed) + queues * sizeof(p->passed->queue[0]),
				       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (p->passed == NULL)
		goto err_port;
	p->passed->port = (struct hca_port){.ops = &passed_ops,
					    .max_frame = inner->max_frame,
					    .queue_size = QUEUE,
					    .queues = queues};
	rc = hca_port_impair_open(cfg, &p->passed->port, &p->impair);
	if (rc != 0)
		goto err_passed;
	hca_port_wrap_init(&p->wrap, &inbound_ops, inner);
	p->wrap.port.queue_size = inner->queue_size + p->impair->queue_size;
	*out = &p->wrap.port;
	return 0;

err_passed:
	rte_free(p->passed);
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
	const struct port_inbound *p = (const struct port_inbound *)port;
	uint64_t n = 0;

	for (uint16_t q = 0; q < port->queues; q++)
		n += __atomic_load_n(&p->lane[q].lost, __ATOMIC_RELAXED);
	return n;
}

struct hca_port *
hca_port_inbound_impair(struct hca_port *port)
{
	return ((struct port_inbound *)port)->impair;
}
