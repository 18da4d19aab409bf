/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_UB_WORLD_IMPL_H
#define TESTS_FUZZ_UB_WORLD_IMPL_H

/* Shared by the parts of the world. */

#include "ub_world.h"

/* Memory of a region. */
struct ub_world_area {
	uint32_t at, len, access;
	uint32_t token; /* 0: none */
	bool changes;
};

extern const struct ub_world_area ub_world_regions[UB_WORLD_REGIONS];

#define MADE(object) fuzz_check((object) != NULL, #object ": %s", softhca_urma_reason())
#define FINE(call) fuzz_check((call) == URMA_SUCCESS, #call ": %s", softhca_urma_reason())

/* ub_world_make.c: objects that live as long as the process */
void ub_world_make(struct ub_world *w);
void ub_world_open_tp(struct ub_world *w, unsigned int peer, uint8_t kind, bool honest);
/* The client may use the group of the peer, as if it had imported it. */
void ub_world_permit(struct ub_world *w, struct softhca_context *client, unsigned int peer);
urma_jfs_cfg_t ub_world_sends(urma_jfc_t *jfc);
urma_jfr_cfg_t ub_world_receives(urma_jfc_t *jfc);
urma_jetty_t *ub_world_make_jetty(urma_context_t *ctx, urma_jfc_t *send_jfc, urma_jfc_t *recv_jfc,
				  uint32_t known);

/* ub_world.c: the device runs once */
void ub_world_progress(void *world);

/* ub_peer.c */

/* The peer of a TP that was made just now. */
void ub_peer_open(struct ub_world *w, unsigned int peer, bool honest);
/* A Write of 64 bytes into the bystander's segment. */
void ub_peer_write(struct ub_world *w, unsigned int peer);
/* A Send, at most 2048 bytes, to a queue of the device; not answered for sure. */
void ub_peer_send(struct ub_world *w, unsigned int peer, uint32_t tc, uint32_t len);
/* Frames of the device: judged, and taken by the peer. */
void ub_peer_hear(void *world, const uint8_t *frame, uint32_t len);

#define UB_PEER_IP(peer) (0x0a4d0002u + (peer))
#define UB_WORLD_IP 0x0a4d0001u
#define UB_PEER_TPN(peer) (0xdef101u + (peer))
#define UB_PEER_PSN 0xfffff8u  /* the device expects this first */
#define UB_WORLD_PSN 0xfffff0u /* and begins with this */

#endif
