/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LOOPBACK_H
#define ENGINE_LOOPBACK_H

/*
 * Frames for the device's own addresses do not leave it: bounded rings take them from encap to the
 * decap of each pipe. Multicasts go both ways; every pipe gets a copy.
 *
 * Room in the rings is credit, like that of the port: encap takes no more frames than fit into any
 * of them (hca_encap_room()), for any destinations, so no frame is lost. encap -> decap closes a
 * cycle with the edges between them, but there is no deadlock: EE and req_rx accept all frames of
 * decap without waiting for room, so decap always empties its rings. loopback_drops counts copies
 * of multicasts for which there was no mbuf.
 *
 * The first path to an own or multicast address switches loopback on; devices without these paths
 * do not pay for it. With hca_config.own_frames_leave it stays off, for ports that return own
 * frames and may impair them. The CEU and encap write `on`, which is never reset. divert: on
 * encap's worker; rx: on decap's worker.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "ctxmgt/ctxmgt.h"
#include "engine/handover.h"

struct hca_pipe;

struct hca_loopback {
	struct hca_handover out; /* encap -> decap of each pipe */
	uint32_t on;		 /* [pub] */
	/* encap: the different MAC addresses of the GID table at gid_changes */
	uint64_t gids __rte_cache_aligned;
	uint32_t n_macs;
	uint8_t mac[HCA_GID_ENTRIES][6];
	/* decap: the pipe that is asked first */
	unsigned int next __rte_cache_aligned;
};

int hca_loopback_init(struct hca_pipe *h);
void hca_loopback_fini(struct hca_pipe *h);

/* Announce a path's destination, which switches it on if necessary. CEU or encap. */
void hca_loopback_learn(struct hca_pipe *h, const uint8_t dmac[6]);
/* Remove frames for the device itself from the burst; returns the number of remaining frames. */
unsigned int hca_loopback_divert(struct hca_pipe *h, struct rte_mbuf **m, unsigned int n);
/* Frames that every ring can take until the next divert. On encap's worker. */
uint32_t hca_loopback_room(const struct hca_pipe *h);
/* Receive up to n frames of any pipe, whose ownership passes to the caller. */
unsigned int hca_loopback_rx(struct hca_pipe *h, struct rte_mbuf **m, unsigned int n);
/* Number of frames that wait for this pipe's decap. */
uint32_t hca_loopback_count(const struct hca_pipe *h);

#endif
