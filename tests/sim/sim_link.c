/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ring.h>

#include "core/ring_count.h"
#include "sim_link.h"

struct sim_port {
	struct hca_port port;
	struct rte_ring *tx, *rx; /* tx is owned */
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

static void
send_one(struct sim_port *p, struct rte_mbuf *m)
{
	if (p->lost(p->lost_arg, rte_pktmbuf_mtod(m, uint8_t *), m->data_len)) {
		__atomic_store_n(&p->lost_frames, p->lost_frames + 1, __ATOMIC_RELAXED);
		rte_pktmbuf_free(m);
	} else {
		rte_ring_enqueue(p->tx, m);
	}
}

static uint16_t
link_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct sim_port *p = (struct sim_port *)port;
	unsigned int room = hca_ring_room(p->tx);

	(void)now;
	if (n > room)
		n = (uint16_t)room;
	for (uint16_t i = 0; p->hash_on && i < n; i++)
		p->hash = sim_hash(p->hash, rte_pktmbuf_mtod(m[i], void *), m[i]->data_len);
	if (__atomic_load_n(&p->lost, __ATOMIC_ACQUIRE) == NULL)
		return (uint16_t)rte_ring_enqueue_burst(p->tx, (void **)m, n, NULL);
	for (uint16_t i = 0; i < n; i++)
		send_one(p, m[i]);
	return n;
}

static uint16_t
link_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct sim_port *p = (struct sim_port *)port;

	(void)now;
	return (uint16_t)rte_ring_dequeue_burst(p->rx, (void **)m, n, NULL);
}

static bool
link_up(struct hca_port *port)
{
	(void)port;
	return true;
}

static void
link_close(struct hca_port *port)
{
	struct sim_port *p = (struct sim_port *)port;
	void *m;

	while (rte_ring_dequeue(p->rx, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(p->rx);
	free(p);
}

static const struct hca_port_ops link_ops = {
	.rx = link_rx,
	.tx = link_tx,
	.link_up = link_up,
	.close = link_close,
};

int
sim_link_open(const char *name, uint32_t depth, struct hca_port *out[2])
{
	struct sim_port *p[2] = {calloc(1, sizeof(*p[0])), calloc(1, sizeof(*p[0]))};
	struct rte_ring *r[2] = {NULL, NULL};
	char rn[RTE_RING_NAMESIZE];

	for (unsigned int i = 0; i < 2; i++) {
		snprintf(rn, sizeof(rn), "%s.wire%u", name, i);
		r[i] = rte_ring_create(rn, depth, SOCKET_ID_ANY, RING_F_EXACT_SZ);
	}
	if (p[0] == NULL || p[1] == NULL || r[0] == NULL || r[1] == NULL) {
		for (unsigned int i = 0; i < 2; i++) {
			rte_ring_free(r[i]);
			free(p[i]);
		}
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < 2; i++) {
		p[i]->port =
			(struct hca_port){.ops = &link_ops, .max_frame = 4400, .queue_size = depth};
		p[i]->tx = r[i];
		p[i]->rx = r[1 - i];
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
	return hca_ring_count(((const struct sim_port *)p)->rx);
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
	if (rte_ring_enqueue(((struct sim_port *)p)->rx, m) != 0)
		return false;
	((struct sim_port *)p)->injected++;
	return true;
}

uint16_t
sim_link_take(struct hca_port *p, struct rte_mbuf **m, uint16_t n)
{
	n = link_rx(p, 0, m, n, 0);
	((struct sim_port *)p)->injected -= n;
	return n;
}

uint64_t
sim_link_injected(const struct hca_port *p)
{
	return ((const struct sim_port *)p)->injected;
}
