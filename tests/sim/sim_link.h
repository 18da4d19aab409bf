/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_LINK_H
#define TESTS_SIM_LINK_H

/*
 * The wire of the simulation: two ports joined by a queue in each direction. What one sends, the
 * other receives, in order and at once. Can keep a hash over all frames.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

/* depth: frames each direction holds, a power of two. 0 or negative errno. */
int sim_link_open(const char *name, uint32_t depth, struct hca_port *out[2]);
/* Frees the link when both ports are closed. */

void sim_link_hash_on(struct hca_port *p);
uint64_t sim_link_hash(const struct hca_port *p);
uint32_t sim_link_queued(const struct hca_port *p);

/* Frames that p sends and lost() names do not arrive; others it may change. NULL: all do. */
typedef bool (*sim_link_lost_fn)(void *arg, uint8_t *frame, uint32_t len);
void sim_link_lose(struct hca_port *p, sim_link_lost_fn lost, void *arg);
/* How many there were. */
uint64_t sim_link_lost(const struct hca_port *p);

/* A frame put on the wire by the test itself, as if the peer of p had sent it. False: full. */
bool sim_link_inject(struct hca_port *p, struct rte_mbuf *m);
/* Up to n frames that p would have received next; the test has them instead. */
uint16_t sim_link_take(struct hca_port *p, struct rte_mbuf **m, uint16_t n);
/* Injected less taken: frames p receives that its peer has not sent. */
uint64_t sim_link_injected(const struct hca_port *p);

/* 64-bit hash that is chained over pieces. */
uint64_t sim_hash(uint64_t h, const void *data, size_t n);

#endif
