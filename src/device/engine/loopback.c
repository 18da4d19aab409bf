/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/impl.h"
#include "engine/loopback.h"

#define FRAMES_MAX 256u /* 1 MiB of the largest frames, which stay in the cache */
#define FRAMES_MIN 8u

static bool
is_multicast(const uint8_t *mac)
{
	return mac[0] & 1;
}

int
hca_loopback_init(struct hca_pipe *h)
{
	uint32_t frames = RTE_MIN(RTE_MAX(h->cfg.edge_size, FRAMES_MIN), FRAMES_MAX);

	return hca_handover_init(h, &h->loop.out, "loop", frames, (2u << h->pipe_mask) - 1);
}

void
hca_loopback_fini(struct hca_pipe *h)
{
	hca_handover_fini(&h->loop.out);
}

void
hca_loopback_learn(struct hca_pipe *h, const uint8_t dmac[6])
{
	bool own = is_multicast(dmac);

	if (h->cfg.own_frames_leave)
		return;
	for (uint32_t i = 0; i < HCA_GID_ENTRIES && !own; i++) {
		const struct hca_gid_entry *g = hca_gid_get(h->ctxmgt, i);

		own = g != NULL && memcmp(g->mac, dmac, 6) == 0;
	}
	for (unsigned int n = 0; n < h->hca->n_pipes && own; n++) {
		struct hca_loopback *l = &h->hca->pipe[n].loop;

		if (__atomic_load_n(&l->on, __ATOMIC_RELAXED) == 0)
			__atomic_store_n(&l->on, 1, __ATOMIC_RELEASE);
	}
}

static bool
known_mac(const struct hca_loopback *l, const uint8_t *mac)
{
	for (uint32_t i = 0; i < l->n_macs; i++)
		if (memcmp(l->mac[i], mac, 6) == 0)
			return true;
	return false;
}

static void
read_macs(struct hca_pipe *h, struct hca_loopback *l)
{
	uint64_t gids = __atomic_load_n(&h->ctxmgt->gid_changes, __ATOMIC_ACQUIRE);

	if (likely(l->gids == gids))
		return;
	l->n_macs = 0;
	for (uint32_t i = 0; i < HCA_GID_ENTRIES; i++) {
		const struct hca_gid_entry *g = hca_gid_get(h->ctxmgt, i);

		if (g != NULL && !known_mac(l, g->mac))
			memcpy(l->mac[l->n_macs++], g->mac, 6);
	}
	l->gids = gids;
}

/* A copy for local members; the frame itself goes to the port. */
static struct rte_mbuf *
copy_of(struct hca_pipe *h, const struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_alloc(h->tx_pool);
	char *to = c != NULL ? rte_pktmbuf_append(c, m->data_len) : NULL;

	if (to == NULL) {
		rte_pktmbuf_free(c);
		HCA_COUNT(h, ENCAP, loopback_drops);
		return NULL;
	}
	memcpy(to, rte_pktmbuf_mtod(m, const char *), m->data_len);
	return c;
}

static bool
loop_to(struct hca_pipe *h, unsigned int pipe, struct rte_mbuf *m)
{
	if (unlikely(rte_ring_enqueue(h->loop.out.to[pipe], m) != 0)) {
		rte_pktmbuf_free(m);
		HCA_COUNT(h, ENCAP, loopback_drops);
		return false;
	}
	hca_wake_pipe(h, HCA_STAGE_ENCAP, pipe, HCA_STAGE_DECAP);
	return true;
}

/* A multicast; the pipe that sent it counts it, the others get copies. */
static void
loop_to_all(struct hca_pipe *h, struct rte_mbuf *m)
{
	for (unsigned int n = 0; n < h->hca->n_pipes; n++) {
		struct rte_mbuf *copy = n != h->pipe_number ? copy_of(h, m) : NULL;

		if (copy != NULL) {
			copy->hash.usr = HCA_HANDED_COPY;
			loop_to(h, n, copy);
		}
	}
	m->hash.usr = 0;
	if (loop_to(h, h->pipe_number, m))
		HCA_COUNT(h, ENCAP, loopback_pkts);
}

/* The rings have room: encap has checked it before it took the frame. */
static void
loop(struct hca_pipe *h, struct rte_mbuf *m)
{
	unsigned int pipe = 0;

	if (h->pipe_mask != 0)
		pipe = hca_pipe_of_frame(&h->core, rte_pktmbuf_mtod(m, const uint8_t *),
					 m->data_len);
	if (pipe == HCA_PIPE_ALL)
		loop_to_all(h, m);
	else if (loop_to(h, pipe, m))
		HCA_COUNT(h, ENCAP, loopback_pkts);
}

unsigned int
hca_loopback_divert(struct hca_pipe *h, struct rte_mbuf **m, unsigned int n)
{
	unsigned int left = 0;

	read_macs(h, &h->loop);
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *dmac = rte_pktmbuf_mtod(m[i], const uint8_t *);
		struct rte_mbuf *copy;

		if (known_mac(&h->loop, dmac)) {
			loop(h, m[i]);
			continue;
		}
		if (is_multicast(dmac)) {
			HCA_COUNT(h, ENCAP, loopback_copies);
			copy = copy_of(h, m[i]);
			if (copy != NULL)
				loop(h, copy);
		}
		m[left++] = m[i];
	}
	return left;
}

uint32_t
hca_loopback_room(const struct hca_pipe *h)
{
	return hca_handover_room(&h->loop.out, h->hca->n_pipes);
}

unsigned int
hca_loopback_rx(struct hca_pipe *h, struct rte_mbuf **m, unsigned int n)
{
	unsigned int pipes = h->hca->n_pipes, got = 0;

	for (unsigned int i = 0; i < pipes && got < n; i++) {
		unsigned int from = (h->loop.next + i) & h->pipe_mask;

		got += rte_ring_dequeue_burst(h->hca->pipe[from].loop.out.to[h->pipe_number],
					      (void **)m + got, n - got, NULL);
	}
	h->loop.next++;
	return got;
}

uint32_t
hca_loopback_count(const struct hca_pipe *h)
{
	uint32_t sum = 0;

	for (unsigned int n = 0; n < h->hca->n_pipes; n++)
		sum += hca_ring_count(h->hca->pipe[n].loop.out.to[h->pipe_number]);
	return sum;
}
