/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_TRANSIT_H
#define PORT_PORT_TRANSIT_H

/*
 * Frames on their way, for ports that are a network (port_fabric.h, port_switch.h): copies from a
 * pool, in lists, first in, first out. One owner, which is the port; its functions run on the
 * port's lcore, except where any thread is stated. Times are in ps: rounding shortens the time of a
 * frame by less than 1 ps.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define HCA_TRANSIT_NONE UINT32_MAX
#define HCA_PS UINT64_C(1000)		  /* per ns */
#define HCA_PS_BIT_MBPS UINT64_C(1000000) /* ps per bit at 1 Mb/s */

/* A host's link takes frames while it is busy for at most this time; then the port stalls. */
#define HCA_FABRIC_AHEAD_NS 2000u
#define HCA_FABRIC_OVERHEAD 24u /* bytes of Ethernet: preamble, FCS, gap */

struct hca_transit {
	struct rte_mbuf *m;
	uint64_t due; /* in units of the port */
	uint32_t next;
	uint32_t from; /* of the port's own */
};

/* Empty: HCA_TRANSIT_EMPTY */
struct hca_transit_list {
	uint32_t head, tail;
};

#define HCA_TRANSIT_EMPTY \
	((struct hca_transit_list){.head = HCA_TRANSIT_NONE, .tail = HCA_TRANSIT_NONE})

struct hca_transits {
	struct rte_mempool *pool;
	struct hca_transit *slot;
	uint32_t unused; /* list of free slots */
	uint32_t held;	 /* [pub] slots in use */
};

/**
 * Allocate slots and copies.
 *
 * @param name
 *   Unique: names the pool.
 * @param hold
 *   Limit of frames on their way.
 * @param more
 *   Further copies: those that have arrived belong to the receiver until it frees them.
 * @param socket_id
 *   As of rte_zmalloc_socket().
 * @return
 *   0, or -ENOMEM.
 */
int hca_transits_init(struct hca_transits *t, const char *name, uint32_t hold, uint32_t more,
		      int socket_id);
/** Free them; the lists are empty. */
void hca_transits_fini(struct hca_transits *t);

/** Copy a frame. @return NULL: no copy is free. */
struct rte_mbuf *hca_transits_copy(struct hca_transits *t, const struct rte_mbuf *m);

static inline bool
hca_transits_full(const struct hca_transits *t)
{
	return t->unused == HCA_TRANSIT_NONE;
}

/** The first of a list, NULL: it is empty. */
static inline struct hca_transit *
hca_transit_first(const struct hca_transits *t, const struct hca_transit_list *l)
{
	return l->head != HCA_TRANSIT_NONE ? &t->slot[l->head] : NULL;
}

/** Append a frame; hca_transits_full() is false. */
void hca_transit_append(struct hca_transits *t, struct hca_transit_list *l, struct hca_transit x);
/** Take the first of a list, which is not empty. */
struct hca_transit hca_transit_take(struct hca_transits *t, struct hca_transit_list *l);
/** Free all frames of a list. */
void hca_transit_clear(struct hca_transits *t, struct hca_transit_list *l);

/** Frames on their way. Any thread. */
uint32_t hca_transits_held(const struct hca_transits *t);

/** Bytes of a frame on the wire. */
static inline uint64_t
hca_transit_bytes(const struct rte_mbuf *m)
{
	return (uint64_t)m->data_len + HCA_FABRIC_OVERHEAD;
}

/** Time of bytes at a rate, ps. */
static inline uint64_t
hca_transit_ps(uint64_t bytes, uint64_t rate_mbps)
{
	return 8 * bytes * HCA_PS_BIT_MBPS / rate_mbps;
}

/** Mark a frame that is ECN-capable and not marked yet. @return whether it was marked. */
bool hca_transit_mark(struct rte_mbuf *m);

#endif
