/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_WRAP_H
#define PORT_PORT_WRAP_H

/*
 * Shared by ports in front of another port: forwarding, and a random generator for each port, so
 * that a seed reproduces a run independently of other users of random numbers in the process.
 */

#include <stdint.h>

#include "port/port.h"

/* The queue of ports with state for one queue. */
#define HCA_PORT_QUEUE 0u

/* The first member of a port in front of another port. */
struct hca_port_wrap {
	struct hca_port port;
	struct hca_port *inner; /* owned: close() closes it */
};

/* The wrapper has the properties of the inner port; its owner may change them afterwards. */
void hca_port_wrap_init(struct hca_port_wrap *w, const struct hca_port_ops *ops,
			struct hca_port *inner);

/* Operations that call the same operation of the inner port. */
uint16_t hca_port_wrap_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n,
			  uint64_t now);
uint16_t hca_port_wrap_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n,
			  uint64_t now);
bool hca_port_wrap_link_up(struct hca_port *p);
void hca_port_wrap_poll(struct hca_port *p, uint16_t q, uint64_t now);
uint64_t hca_port_wrap_missed(const struct hca_port *p);
int hca_port_wrap_wait_fd(const struct hca_port *p, uint16_t q);
bool hca_port_wrap_arm(struct hca_port *p, uint16_t q, bool on);
uint64_t hca_port_wrap_deadline(const struct hca_port *p, uint16_t q, uint64_t now);

/* Offset of the IP header of a frame of len bytes; 0: not IP, or the header is cut off. */
uint32_t hca_port_l3(const uint8_t *frame, uint32_t len);
/* Read the ECN field of an IP header; set it to "congestion experienced" as a switch does. */
uint32_t hca_port_ecn(const uint8_t *l3);
void hca_port_mark_ce(uint8_t *l3);

struct hca_port_rng {
	uint64_t s;
};

static inline uint64_t
hca_port_random(struct hca_port_rng *r)
{
	/* splitmix64 */
	uint64_t z = (r->s += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* A random number in 0 .. n - 1; n >= 1. */
static inline uint32_t
hca_port_random_below(struct hca_port_rng *r, uint32_t n)
{
	return (uint32_t)(((hca_port_random(r) >> 32) * n) >> 32);
}

static inline void
hca_port_poll(struct hca_port *p, uint16_t q, uint64_t now)
{
	if (p->ops->poll != NULL)
		p->ops->poll(p, q, now);
}

/* Functions of a sleeping worker (port.h), with the default where the port has no function. */
static inline int
hca_port_wait_fd(const struct hca_port *p, uint16_t q)
{
	return p->ops->wait_fd != NULL ? p->ops->wait_fd(p, q) : -1;
}

static inline bool
hca_port_arm(struct hca_port *p, uint16_t q, bool on)
{
	return p->ops->arm != NULL && p->ops->arm(p, q, on);
}

static inline uint64_t
hca_port_deadline(const struct hca_port *p, uint16_t q, uint64_t now)
{
	return p->ops->deadline != NULL ? p->ops->deadline(p, q, now) : UINT64_MAX;
}

static inline uint64_t
hca_port_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
