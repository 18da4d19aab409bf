/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_IMPAIR_HEAP_H
#define PORT_IMPAIR_HEAP_H

/*
 * Frames that a queue of port_impair.c holds back: a binary heap by due time, then age. Owned by
 * the lane of the queue; one writer. Any thread may read n and next_due.
 */

#include <stdint.h>

#include <rte_mbuf.h>

struct impair_held {
	struct rte_mbuf *m;
	uint64_t due; /* ns */
	uint64_t seq;
	uint64_t after; /* also due after this number of frames of the queue; UINT64_MAX: never */
};

struct impair_heap {
	struct impair_held *at;
	uint64_t seq;	   /* of the next frame */
	uint32_t n;	   /* [pub] */
	uint32_t max;	   /* entries at `at` */
	uint64_t next_due; /* [pub] the earliest due time; UINT64_MAX: no frame */
};

/* Adds a frame; n < max. */
void impair_heap_push(struct impair_heap *h, struct rte_mbuf *m, uint64_t due, uint64_t after);
void impair_heap_remove(struct impair_heap *h, uint32_t i);
/* Frees all frames; returns their number. */
uint32_t impair_heap_clear(struct impair_heap *h);

#endif
