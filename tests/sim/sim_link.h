/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_LINK_H
#define TESTS_SIM_LINK_H

/*
 * The wire of the simulation: two ports connected by queues in each direction. The frames of a flow
 * are delivered in order, and all without delay. Can compute a hash over all frames.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

#define SIM_LINK_QUEUES_MAX 16u

/* How a port with several queues chooses one of them for a frame that arrives. */
enum sim_link_steering {
	SIM_LINK_BY_HASH, /* of addresses and UDP ports, as RSS does */
	SIM_LINK_BY_QPN,  /* destination QPN mod queues */
};

struct sim_link_config {
	uint32_t depth;	 /* frames per queue, a power of two */
	uint32_t queues; /* of each port and each way; 0: 1 */
	enum sim_link_steering steering;
};

/* Create the link. 0 or a negative errno. */
int sim_link_open(const char *name, const struct sim_link_config *cfg, struct hca_port *out[2]);
/* Frees the link when both ports are closed. */

void sim_link_hash_on(struct hca_port *p);
uint64_t sim_link_hash(const struct hca_port *p);
uint32_t sim_link_queued(const struct hca_port *p);

/*
 * Decides about each frame that p sends: true: it is lost; it may also change the frame. NULL: none
 * is lost.
 */
typedef bool (*sim_link_lost_fn)(void *arg, uint8_t *frame, uint32_t len);
void sim_link_lose(struct hca_port *p, sim_link_lost_fn lost, void *arg);
/* Number of lost frames. */
uint64_t sim_link_lost(const struct hca_port *p);

/* Put a frame on the wire as if the peer of p had sent it. False: the queue is full. */
bool sim_link_inject(struct hca_port *p, struct rte_mbuf *m);
/* Take up to n frames that p would have received next; the test owns them. */
uint16_t sim_link_take(struct hca_port *p, struct rte_mbuf **m, uint16_t n);
/* Frames that p receives but its peer has not sent: injected minus taken. */
uint64_t sim_link_injected(const struct hca_port *p);

/* 64-bit hash, chainable over several pieces. */
uint64_t sim_hash(uint64_t h, const void *data, size_t n);

#endif
