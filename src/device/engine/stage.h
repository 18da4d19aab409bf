/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_STAGE_H
#define ENGINE_STAGE_H

/*
 * Stages: single-threaded objects that see time only as an argument and packets only as mbufs.
 * No stage reads a clock, calls ethdev, takes a lock, allocates (mbufs and records aside) or logs.
 */

#include <stdint.h>

#include "core/stage.h"

struct hca;

#define HCA_BURST 32u

/*
 * What a stage file exports. poll: messages, own lists, ring edges; does at most budget units of
 * work (packets, WQEs, doorbells) and returns how many it did. process: accepts all n objects of
 * one incoming edge, because the producer took room first. room: how many objects process() would
 * accept now (only asked for direct edges).
 */
typedef unsigned int (*hca_stage_poll_fn)(struct hca *h, uint64_t now, unsigned int budget);
typedef void (*hca_stage_process_fn)(struct hca *h, void *const *objs, unsigned int n,
				     uint64_t now);
typedef unsigned int (*hca_stage_room_fn)(struct hca *h);
/*
 * Asked by the stage's own worker between two polls, before it sleeps: until when may the stage be
 * left alone, if nothing comes from outside? now or less: not at all. HCA_DEADLINE_ROOM: it waits
 * for room that nobody announces. UINT64_MAX: for ever. The list of what a worker may not sleep
 * over is what these functions say.
 */
typedef uint64_t (*hca_stage_deadline_fn)(const struct hca *h, uint64_t now);

#define X(e, n) \
	int hca_##n##_init(struct hca *h); \
	void hca_##n##_fini(struct hca *h); \
	unsigned int hca_##n##_poll(struct hca *h, uint64_t now, unsigned int budget); \
	uint64_t hca_##n##_deadline(const struct hca *h, uint64_t now);
HCA_STAGE_LIST(X)
#undef X

void hca_parser_process(struct hca *h, void *const *objs, unsigned int n, uint64_t now);
void hca_encap_process_req(struct hca *h, void *const *objs, unsigned int n, uint64_t now);
void hca_encap_process_resp(struct hca *h, void *const *objs, unsigned int n, uint64_t now);
void hca_ee_process(struct hca *h, void *const *objs, unsigned int n, uint64_t now);
void hca_rrc_process(struct hca *h, void *const *objs, unsigned int n, uint64_t now);
unsigned int hca_parser_room(struct hca *h);
unsigned int hca_encap_room(struct hca *h);
unsigned int hca_ee_room(struct hca *h);
unsigned int hca_rrc_room(struct hca *h);
/* The worker of encap, before it sleeps: its next poll asks the port for its link. */
void hca_encap_ask_link_next(struct hca *h);

#endif
