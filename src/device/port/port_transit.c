/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "core/mbuf.h"
#include "core/table.h"
#include "port/port_transit.h"
#include "port/port_wrap.h"

#define MORE 1024u
#define ECN_CE 3u

int
hca_transits_init(struct hca_transits *t, const char *name, uint32_t hold, uint32_t more,
		  int socket_id)
{
	t->slot = rte_zmalloc_socket("hca_transits", hold * sizeof(t->slot[0]), RTE_CACHE_LINE_SIZE,
				     socket_id);
	if (t->slot == NULL)
		return -ENOMEM;
	t->pool = hca_mbuf_pool(name, hold + more + MORE, 0, HCA_MBUF_DATA, socket_id);
	if (t->pool == NULL) {
		rte_free(t->slot);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < hold; i++)
		t->slot[i].next = i + 1 < hold ? i + 1 : HCA_TRANSIT_NONE;
	t->unused = 0;
	t->held = 0;
	return 0;
}

void
hca_transits_fini(struct hca_transits *t)
{
	rte_mempool_free(t->pool);
	rte_free(t->slot);
}

struct rte_mbuf *
hca_transits_copy(struct hca_transits *t, const struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_alloc(t->pool);

	if (c == NULL)
		return NULL;
	memcpy(rte_pktmbuf_append(c, m->data_len), rte_pktmbuf_mtod(m, const void *), m->data_len);
	return c;
}

static void
set_held(struct hca_transits *t, uint32_t n)
{
	__atomic_store_n(&t->held, n, __ATOMIC_RELAXED);
}

void
hca_transit_append(struct hca_transits *t, struct hca_transit_list *l, struct hca_transit x)
{
	uint32_t i = t->unused;

	t->unused = t->slot[i].next;
	x.next = HCA_TRANSIT_NONE;
	t->slot[i] = x;
	if (l->head == HCA_TRANSIT_NONE)
		l->head = i;
	else
		t->slot[l->tail].next = i;
	l->tail = i;
	set_held(t, t->held + 1);
}

struct hca_transit
hca_transit_take(struct hca_transits *t, struct hca_transit_list *l)
{
	uint32_t i = l->head;
	struct hca_transit x = t->slot[i];

	l->head = x.next;
	t->slot[i].next = t->unused;
	t->unused = i;
	set_held(t, t->held - 1);
	return x;
}

void
hca_transit_clear(struct hca_transits *t, struct hca_transit_list *l)
{
	while (l->head != HCA_TRANSIT_NONE)
		rte_pktmbuf_free(hca_transit_take(t, l).m);
}

uint32_t
hca_transits_held(const struct hca_transits *t)
{
	return __atomic_load_n(&t->held, __ATOMIC_RELAXED);
}

bool
hca_transit_mark(struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t l3 = hca_port_l3(frame, m->data_len), ecn;

	ecn = l3 != 0 ? hca_port_ecn(frame + l3) : 0;
	if (ecn == 0 || ecn == ECN_CE)
		return false;
	hca_port_mark_ce(frame + l3);
	return true;
}
