/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_H
#define PORT_PORT_H

/*
 * The wire as encap (tx) and decap (rx) see it. Implementations: port_ethdev.c (any DPDK ethdev),
 * port_memif.c, port_memory.c (a pair in one process), ports in front of another port
 * (port_wrap.h), and the simulated link of the tests.
 *
 * A port has `queues` queues each way; q, below that, selects one. Each queue belongs to one
 * pipeline: rx(q) runs on one lcore only, and so do tx(q) and poll(q), on the same one or another.
 * Different queues may run concurrently. A port in front of another one passes the number on; one
 * with state for one queue only has one queue.
 *
 * rx: returns up to n single-segment mbufs whose private area has HCA_MBUF_PRIV bytes; ownership
 * passes to the caller. tx: takes the first k of n frames and their ownership, and returns k; if k
 * < n while the link is up the port is stalled, and the caller keeps the rest. link_up: called at
 * any time from tx's lcore. poll: NULL, or called by encap in every poll from tx's lcore: for ports
 * that hold frames back and release them later. missed: NULL, or called from any thread: number of
 * frames of all queues lost before rx could return them.
 *
 * A worker that sleeps (graph/executor.c) needs three more functions. Each may be NULL; they are
 * called from rx's lcore unless stated otherwise. wait_fd: a descriptor for the worker's epoll set,
 * edge-triggered and never read by the worker; it does not change while the port is open. -1 or
 * NULL: the queue has no interrupt, so the worker polls it after short sleeps. arm(true): frames
 * that arrive in the queue from now on trigger its wait_fd. It contains a full fence and returns
 * true if frames are already there, so that the worker must not sleep. arm(false): the worker is
 * awake and needs no interrupts; returns false. deadline: called from any worker of the HCA between
 * its polls. Returns the time (ns, of the clock of now) at which rx or poll of the queue must be
 * called although no frame arrives; now or less = at once, UINT64_MAX = never. NULL: never.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct hca_port;

struct hca_port_ops {
	uint16_t (*rx)(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n,
		       uint64_t now);
	uint16_t (*tx)(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n,
		       uint64_t now);
	bool (*link_up)(struct hca_port *p);
	void (*poll)(struct hca_port *p, uint16_t q, uint64_t now);
	uint64_t (*missed)(const struct hca_port *p);
	int (*wait_fd)(const struct hca_port *p, uint16_t q);
	bool (*arm)(struct hca_port *p, uint16_t q, bool on);
	uint64_t (*deadline)(const struct hca_port *p, uint16_t q, uint64_t now);
	void (*close)(struct hca_port *p);
};

/* The first member of every implementation. */
struct hca_port {
	const struct hca_port_ops *ops;
	uint32_t max_frame;  /* bytes with Ethernet header, without FCS */
	uint32_t queue_size; /* frames that a queue may hold, for sizing pools */
	uint16_t queues;     /* each way; 0: one */
};

static inline uint16_t
hca_port_queues(const struct hca_port *p)
{
	return p->queues != 0 ? p->queues : 1;
}

static inline uint64_t
hca_port_missed(const struct hca_port *p)
{
	return p->ops->missed != NULL ? p->ops->missed(p) : 0;
}

/* Add to a counter that has one writer and any number of readers. */
static inline void
hca_port_count(uint64_t *word, uint64_t n)
{
	__atomic_store_n(word, *word + n, __ATOMIC_RELAXED);
}

/* Copy a structure of such counters (64-bit words); any thread. */
static inline void
hca_port_counted(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
		((uint64_t *)to)[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

/* Add a structure of such counters to another one, to sum them over queues; any thread. */
static inline void
hca_port_add_counted(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
		((uint64_t *)to)[i] +=
			__atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

#endif
