/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_H
#define PORT_PORT_H

/*
 * The wire as encap (tx) and decap (rx) see it. Implementations: port_ethdev.c (any DPDK ethdev, a
 * pair joined in memory among them), port_memif.c, what stands in front of another port
 * (port_wrap.h) and the simulated link of the tests. rx and tx may be called from different lcores,
 * each from one lcore only.
 *
 * rx: up to n single-segment mbufs whose private area has HCA_MBUF_PRIV bytes; ownership passes to
 * the caller. tx: takes the first k of n frames (ownership passes for those) and returns k; a short
 * count with the link up means "stalled": the caller keeps the rest. link_up: may be called at any
 * time from tx's lcore. poll: NULL, or called by encap in every poll, from tx's lcore: for ports
 * that hold frames back and let them go later. missed: NULL, or called from any thread: frames that
 * came and were lost before rx could return them.
 *
 * A worker that sleeps (graph/executor.c) needs three more; each may be NULL, all are called from
 * rx's lcore unless said otherwise:
 * wait_fd: a descriptor the worker puts into its epoll set, edge-triggered, and never reads; it
 * stays the same for the life of the port. -1 or NULL: the port has no interrupt and is napped for.
 * arm(true): a frame that comes from now on makes wait_fd an edge; has a full fence in it; returns
 * true if frames are there already, so that the worker must not sleep. arm(false): awake again,
 * frames need no interrupt; returns false.
 * deadline: from any worker of the HCA, between its polls: when rx or poll has something to do
 * although nothing comes, in ns of the clock of now: now or less = at once, UINT64_MAX = never.
 * NULL: never.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct hca_port;

struct hca_port_ops {
	uint16_t (*rx)(struct hca_port *p, struct rte_mbuf **m, uint16_t n, uint64_t now);
	uint16_t (*tx)(struct hca_port *p, struct rte_mbuf **m, uint16_t n, uint64_t now);
	bool (*link_up)(struct hca_port *p);
	void (*poll)(struct hca_port *p, uint64_t now);
	uint64_t (*missed)(const struct hca_port *p);
	int (*wait_fd)(const struct hca_port *p);
	bool (*arm)(struct hca_port *p, bool on);
	uint64_t (*deadline)(const struct hca_port *p, uint64_t now);
	void (*close)(struct hca_port *p);
};

/* Embedded first in every implementation. */
struct hca_port {
	const struct hca_port_ops *ops;
	uint32_t max_frame;  /* bytes incl. Ethernet header, without FCS */
	uint32_t queue_size; /* frames the port may hold on to, for sizing pools */
};

static inline uint64_t
hca_port_missed(const struct hca_port *p)
{
	return p->ops->missed != NULL ? p->ops->missed(p) : 0;
}

/* Statistics of a port: one writer, read at any time. */
static inline void
hca_port_count(uint64_t *word, uint64_t n)
{
	__atomic_store_n(word, *word + n, __ATOMIC_RELAXED);
}

/* A copy of all of them, words of 64 bits. */
static inline void
hca_port_counted(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
		((uint64_t *)to)[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

#endif
