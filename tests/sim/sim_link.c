/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ring.h>

#include "core/ring_count.h"
#include "sim_link.h"
#include "wire/wire_view.h"

struct sim_port {
	struct hca_port port;
	struct sim_port *peer;			  /* NULL: closed */
	struct rte_ring *rx[SIM_LINK_QUEUES_MAX]; /* owned */
	enum sim_link_steering steering;
	uint64_t hash;
	uint64_t injected;
	bool hash_on;
	sim_link_lost_fn lost;
	void *lost_arg;
	uint64_t lost_frames;
};

uint64_t
sim_hash(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t w;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&w, p, 8);
		h = (h ^ w) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	w = n;
	memcpy(&w, p, n);
	h = (h ^ w ^ (uint64_t)n << 56) * 0xbf58476d1ce4e5b9ull;
	return h ^ h >> 32;
}

/* Of IP addresses and UDP ports. */
static uint32_t
flow_hash(const uint8_t *frame, const struct hca_wire_view *v)
{
	uint32_t addresses = v->ip_version == 4 ? 12 : 8;
	uint64_t h = sim_hash(1, frame + v->l3 + addresses, v->ip_version == 4 ? 8 : 32);

	return (uint32_t)(sim_hash(h, frame + v->transport - HCA_UDP_LEN, 4) >> 32);
}

/* The queue in which a frame arrives: of one flow, always the same. */
static struct rte_ring *
ring_of(const struct sim_port *to, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t queues = to->port.queues, q = 0;
	struct hca_wire_view v;

	if (queues > 1 && hca_wire_parse(frame, m->data_len, &v) == 0)
		q = to->steering == SIM_LINK_BY_QPN ? v.dst : flow_hash(frame, &v);
	return to->rx[q % queues];
}

/* False: the frame stays the caller's. */
static bool
send_one(struct sim_port *p, struct rte_mbuf *m)
{
	sim_link_lost_fn lost = __atomic_load_n(&p->lost, __ATOMIC_ACQUIRE);
	struct rte_ring *to = ring_of(p->peer, m);

	if (hca_ring_room(to) == 0)
		return false;
	if (p->hash_on)
		p->hash = sim_hash(p->hash, rte_pktmbuf_mtod(m, void *), m->data_len);
	if (lost != NULL && lost(p->lost_arg, rte_pktmbuf_mtod(m, uint8_t *), m->data_len)) {
		__atomic_store_n(&p->lost_frames, p->lost_frames + 1, __ATOMIC_RELAXED);
		rte_pktmbuf_free(m);
		return true;
	}
	return rte_ring_enqueue(to, m) == 0;
}

static uint16_t
link_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint16_t done = 0;

	(void)q;
	(void)now;
	while (done < n && send_one((struct sim_port *)port, m[done]))
		done++;
	return done;
}

static uint16_t
link_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct sim_port *p = (struct sim_port *)port;

	(void)now;
	return (uint16_t)rte_ring_dequeue_burst(p->rx[q], (void **)m, n, NULL);
}

static bool
link_up(struct hca_port *port)
{
	(void)port;
	return true;
}

static void
free_port(struct sim_port *p)
{
	void *m;

	for (unsigned int q = 0; p != NULL && q < p->port.queues; q++) {
		while (p->rx[q] != NULL && rte_ring_dequeue(p->rx[q], &m) == 0)
			rte_pktmbuf_free(m);
		rte_ring_free(p->rx[q]);
	}
	free(p);
}

static void
link_close(struct hca_port *port)
{
	struct sim_port *p = (struct sim_port *)port;

	if (p->peer != NULL)
		p->peer->peer = NULL;
	free_port(p);
}

static const struct hca_port_ops link_ops = {
	.rx = link_rx,
	.tx = link_tx,
	.link_up = link_up,
	.close = link_close,
};

static struct sim_port *
new_port(const char *name, unsigned int side, const struct sim_link_config *cfg)
{
	struct sim_port *p = calloc(1, sizeof(*p));
	char ring[RTE_RING_NAMESIZE];

	if (p == NULL)
		return NULL;
	p->port = (struct hca_port){.ops = &link_ops,
				    .max_frame = 4400,
				    .queue_size = cfg->depth,
				    .queues = (uint16_t)RTE_MAX(cfg->queues, 1u)};
	p->steering = cfg->steering;
	for (unsigned int q = 0; q < p->port.queues; q++) {
		snprintf(ring, sizeof(ring), "%s.wire%u.%u", name, side, q);
		p->rx[q] = rte_ring_create(ring, cfg->depth, SOCKET_ID_ANY, RING_F_EXACT_SZ);
		if (p->rx[q] == NULL) {
			free_port(p);
			return NULL;
		}
	}
	return p;
}

int
sim_link_open(const char *name, const struct sim_link_config *cfg, struct hca_port *out[2])
{
	struct sim_port *p[2] = {new_port(name, 0, cfg), new_port(name, 1, cfg)};

	if (p[0] == NULL || p[1] == NULL) {
		free_port(p[0]);
		free_port(p[1]);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < 2; i++) {
		p[i]->peer = p[1 - i];
		out[i] = &p[i]->port;
	}
	return 0;
}

void
sim_link_hash_on(struct hca_port *p)
{
	((struct sim_port *)p)->hash_on = true;
}

uint64_t
sim_link_hash(const struct hca_port *p)
{
	return ((const struct sim_port *)p)->hash;
}

uint32_t
sim_link_queued(const struct hca_port *p)
{
	uint32_t n = 0;

	for (unsigned int q = 0; q < p->queues; q++)
		n += hca_ring_count(((const struct sim_port *)p)->rx[q]);
	return n;
}

void
sim_link_lose(struct hca_port *p, sim_link_lost_fn lost, void *arg)
{
	((struct sim_port *)p)->lost_arg = arg;
	__atomic_store_n(&((struct sim_port *)p)->lost, lost, __ATOMIC_RELEASE);
}

uint64_t
sim_link_lost(const struct hca_port *p)
{
	return __atomic_load_n(&((const struct sim_port *)p)->lost_frames, __ATOMIC_RELAXED);
}

bool
sim_link_inject(struct hca_port *p, struct rte_mbuf *m)
{
	if (rte_ring_enqueue(ring_of((struct sim_port *)p, m), m) != 0)
		return false;
	((struct sim_port *)p)->injected++;
	return true;
}

uint16_t
sim_link_take(struct hca_port *p, struct rte_mbuf **m, uint16_t n)
{
	uint16_t got = 0;

	for (uint16_t q = 0; q < p->queues; q++)
		got += link_rx(p, q, m + got, n - got, 0);
	((struct sim_port *)p)->injected -= got;
	return got;
}

uint64_t
sim_link_injected(const struct hca_port *p)
{
	return ((const struct sim_port *)p)->injected;
}
