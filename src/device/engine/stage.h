/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_STAGE_H
#define ENGINE_STAGE_H

/*
 * Stages: single-threaded objects that get the time as an argument and packets as mbufs. No stage
 * reads a clock, calls ethdev, takes a lock, allocates (except mbufs and records) or logs.
 */

#include <stdint.h>

#include "core/stage.h"

struct hca_pipe;

#define HCA_BURST 32u
/* Objects that a stage takes at once where an edge is a direct call. */
#define HCA_DIRECT_ROOM (2 * HCA_BURST)

/*
 * Interface of a stage. poll: messages, own lists, ring edges; does at most budget units of work
 * (packets, WQEs, doorbells) and returns their number; decap of a device with several wires half a
 * burst more. process: accepts all n objects of an incoming edge, because
 * the producer has checked the room. room: number of objects that process() would accept now (used
 * for direct edges only).
 */
typedef unsigned int (*hca_stage_poll_fn)(struct hca_pipe *h, uint64_t now, unsigned int budget);
typedef void (*hca_stage_process_fn)(struct hca_pipe *h, void *const *objs, unsigned int n,
				     uint64_t now);
typedef unsigned int (*hca_stage_room_fn)(struct hca_pipe *h);
/*
 * Called by the stage's worker between two polls, before it sleeps: the time until which the stage
 * has nothing to do without external events. now or less: it has work. HCA_DEADLINE_ROOM: it waits
 * for room that is not announced. UINT64_MAX: no deadline. These functions define which work keeps
 * a worker awake.
 */
typedef uint64_t (*hca_stage_deadline_fn)(const struct hca_pipe *h, uint64_t now);

#define X(e, n, wires) \
	int hca_##n##_init(struct hca_pipe *h); \
	void hca_##n##_fini(struct hca_pipe *h); \
	unsigned int hca_##n##_poll(struct hca_pipe *h, uint64_t now, unsigned int budget); \
	uint64_t hca_##n##_deadline(const struct hca_pipe *h, uint64_t now);
HCA_STAGE_LIST(X)
#undef X

void hca_parser_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);
void hca_encap_process_req(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);
void hca_encap_process_resp(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);
void hca_ee_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);
void hca_req_rx_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now);
unsigned int hca_parser_room(struct hca_pipe *h);
unsigned int hca_encap_room(struct hca_pipe *h);
unsigned int hca_ee_room(struct hca_pipe *h);
unsigned int hca_req_rx_room(struct hca_pipe *h);
/* The worker of encap, before it sleeps: its next poll asks the port for its link. */
void hca_encap_ask_link_next(struct hca_pipe *h);

#endif
