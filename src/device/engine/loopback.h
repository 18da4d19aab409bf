/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LOOPBACK_H
#define ENGINE_LOOPBACK_H

/*
 * Frames to the device's own addresses do not leave it: a bounded ring takes them from encap to
 * decap. Multicasts go both ways, the ring gets a copy.
 *
 * The ring's room is credit like that of the port: encap takes no more than it has room for
 * (hca_encap_room()), whoever the frames are for, so nothing is lost on it. encap -> decap closes a
 * circle with the edges between them, but nobody waits in a circle: EE and RRC take what decap has
 * whether they find room behind them or not, so decap always empties the ring. loopback_drops
 * counts copies of multicasts no mbuf was left for.
 *
 * Switched on by the first path to an own address or a multicast one, so that a device without
 * them pays nothing. Writer of `on`: the CEU and encap, never back to false. divert: encap's
 * worker; rx: decap's worker.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "ctxmgt/ctxmgt.h"

struct hca;

struct hca_loopback {
	struct rte_ring *ring; /* of frames, SPSC encap -> decap */
	uint32_t on;	       /* [pub] */
	/* encap: the distinct MACs of the GID table as of gid_changes */
	uint64_t gids __rte_cache_aligned;
	uint32_t n_macs;
	uint8_t mac[HCA_GID_ENTRIES][6];
};

int hca_loopback_init(struct hca *h);
void hca_loopback_fini(struct hca *h);

/* A path has this destination: switched on if it needs it. CEU or encap. */
void hca_loopback_learn(struct hca *h, const uint8_t dmac[6]);
/* Takes what is for the device itself out of the burst; returns how many frames are left. */
unsigned int hca_loopback_divert(struct hca *h, struct rte_mbuf **m, unsigned int n);
/* Frames the ring takes now; only more until the next divert. Encap's worker. */
uint32_t hca_loopback_room(const struct hca *h);
/* Up to n frames; ownership passes to the caller. */
unsigned int hca_loopback_rx(struct hca *h, struct rte_mbuf **m, unsigned int n);
/* Frames in the ring. */
uint32_t hca_loopback_count(const struct hca *h);

#endif
