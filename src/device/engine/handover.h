/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_HANDOVER_H
#define ENGINE_HANDOVER_H

/*
 * Frames of a pipe for other pipes of the device: a ring for each of them. One pipe has two sets:
 * of frames that decap received for QPs of other pipes, and of frames that encap loops back
 * (loopback.h). The decap of the other pipe takes them. A frame is handed over before it is judged,
 * so it refers to no object, and it is handed over once.
 *
 * The pipe of a frame: that of the QP with its destination QPN, for QPN 1 that of the QP that gets
 * these datagrams. Frames of other wires and broken ones belong to pipe 0. A multicast goes to
 * every pipe.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "core/core.h"
#include "core/ring_count.h"

/* Result of hca_pipe_of_frame(): every pipe. */
#define HCA_PIPE_ALL HCA_PIPES_MAX

struct hca_handover {
	struct rte_ring
		*to[HCA_PIPES_MAX]; /* SPSC; NULL: there is no such pipe, or it is this one */
};

/*
 * Create the rings to the pipes in the set `pipes`, a bit each. kind: part of their names. Returns
 * 0 or -ENOMEM; fini accepts both.
 */
int hca_handover_init(struct hca_pipe *h, struct hca_handover *o, const char *kind, uint32_t frames,
		      uint32_t pipes);
/* Frees frames that are left. */
void hca_handover_fini(struct hca_handover *o);

/* Frames that each of the rings can take; UINT32_MAX: there is no ring. Their producer. */
static inline uint32_t
hca_handover_room(const struct hca_handover *o, unsigned int pipes)
{
	uint32_t room = UINT32_MAX;

	for (unsigned int n = 0; n < pipes; n++)
		if (o->to[n] != NULL)
			room = RTE_MIN(room, hca_ring_room(o->to[n]));
	return room;
}

/* mbuf.hash.usr of a multicast's copy for another pipe, which does not count it. */
#define HCA_HANDED_COPY 1u

/* The number of the pipe that a frame of len bytes is for, or HCA_PIPE_ALL. */
unsigned int hca_pipe_of_frame(const struct hca_core *h, const uint8_t *frame, uint32_t len);

#endif
