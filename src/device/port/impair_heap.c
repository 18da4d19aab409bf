/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdbool.h>

#include "port/impair_heap.h"

static bool
earlier(const struct impair_held *a, const struct impair_held *b)
{
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void
set_n(struct impair_heap *h, uint32_t n)
{
	__atomic_store_n(&h->n, n, __ATOMIC_RELAXED);
}

static void
set_due(struct impair_heap *h)
{
	__atomic_store_n(&h->next_due, h->n != 0 ? h->at[0].due : UINT64_MAX, __ATOMIC_RELAXED);
}

void
impair_heap_push(struct impair_heap *h, struct rte_mbuf *m, uint64_t due, uint64_t after)
{
	const struct impair_held held = {.m = m, .due = due, .seq = h->seq++, .after = after};
	uint32_t i = h->n;

	set_n(h, i + 1);
	while (i != 0 && earlier(&held, &h->at[(i - 1) / 2])) {
		h->at[i] = h->at[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->at[i] = held;
	set_due(h);
}

void
impair_heap_remove(struct impair_heap *h, uint32_t i)
{
	struct impair_held last = h->at[h->n - 1];

	set_n(h, h->n - 1);
	/* move the hole up while the last entry is earlier than its parent; otherwise down */
	while (i != 0 && earlier(&last, &h->at[(i - 1) / 2])) {
		h->at[i] = h->at[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c + 1 < h->n && earlier(&h->at[c + 1], &h->at[c]))
			c++;
		if (c >= h->n || !earlier(&h->at[c], &last))
			break;
		h->at[i] = h->at[c];
		i = c;
	}
	h->at[i] = last;
	set_due(h);
}

uint32_t
impair_heap_clear(struct impair_heap *h)
{
	uint32_t n = h->n;

	for (uint32_t i = 0; i < n; i++)
		rte_pktmbuf_free(h->at[i].m);
	set_n(h, 0);
	set_due(h);
	return n;
}
