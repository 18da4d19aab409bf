/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_UB_WORLD_H
#define TESTS_FUZZ_UB_WORLD_H

/*
 * One HCA that speaks UB, with the real driver and libraries, and two peers, a TP to each. The
 * attacked Jetty, JFS and JFR, and the TP to peer 0, are new for every input; the Jetty of another
 * client, the bystander, lives as long as the process. Time is simulated.
 *
 * There are two such worlds, one with the short ways of the stages and one without. Each input runs
 * in both, and all frames, completions, counters and bytes of memory must be equal.
 *
 * A peer that is honest takes the device's packets in order, each once: one that is sent again or
 * left out ends the run. It acknowledges and answers, and writes into the bystander's segment.
 */

#include <softhca/urma.h>

#include "driver.h"
#include "engine/impl.h"
#include "fuzz_port.h"
#include "hca.h"
#include "ub/ub_stage.h"
#include "fuzz_trace.h"
#include "ub_craft.h"

#include "fuzz.h"

#define UB_WORLD_MEM 0x10000u
#define UB_WORLD_WRS 64u /* requests, and receives, that an input may post */
#define UB_WORLD_DEPTH 16u
#define UB_WORLD_MTU 1024u
#define UB_WORLD_TOKEN 0x5eedfaceu  /* of segments and queues that ask for one */
#define UB_WORLD_SECRET 0x0badcafeu /* of the bystander's */
#define UB_WORLD_TPN(peer) (0xabc101u + (peer))
#define UB_WORLD_KNOWN 77u /* well-known number of the attacked Jetty */

enum ub_world_region {
	UB_WORLD_RW,	/* a segment: peers read, write, do atomics */
	UB_WORLD_RO,	/* a segment that peers only read, without a token */
	UB_WORLD_VERBS, /* a region of verbs with all rights */
	UB_WORLD_LOCAL, /* sources, receives, results: no rights for peers */
	UB_WORLD_THEIR, /* the bystander's segment */
	UB_WORLD_REGIONS,
};

struct ub_peer {
	uint32_t tpi;
	bool honest;
	uint8_t form; /* of the TP */
	struct hca_udp_template path;
	/* frames of the device */
	uint32_t epsn, msn;
	/* frames of the peer */
	uint32_t next, next_msn;
	uint16_t tassn;
	uint8_t answer;			/* ATAH byte 4 of the next answers */
	unsigned int written, answered; /* own requests */
};

struct ub_world {
	struct fuzz_port port;
	struct hca *h;
	struct hca_driver *drv;
	struct softhca_context *lib, *their_lib; /* clients of the driver */
	urma_context_t *ctx, *their_ctx;
	urma_jfc_t *send_jfc, *recv_jfc; /* of the attacked objects */
	urma_jfc_t *their_jfc;
	urma_jetty_t *jetty, *theirs;
	urma_jfs_t *jfs;
	urma_jfr_t *jfr;
	urma_target_seg_t *seg[UB_WORLD_REGIONS]; /* NULL: a region of verbs */
	struct softhca_mr *mr;
	urma_target_jetty_t *to, *their_to[2]; /* a Jetty of peer 0; of each */
	urma_target_seg_t *to_seg, *their_to_seg[2];
	struct ub_peer peer[2];
	uint8_t *mem;
	uint64_t now;
	struct hca_usage base;
	struct fuzz_trace trace;
	/* of the current input */
	unsigned int posted, received; /* sends; receives of the Jetty */
	unsigned int sent_done, recv_done;
	bool lying;			       /* the input wrote into the queues */
	bool shared;			       /* the bystander uses the attacked TP */
	unsigned int their_posted, their_done; /* since the process began */
};

/* Runs an input, from ub_world_begin() to ub_world_end(), in both worlds and compares them. */
void ub_world_run(void (*run)(const uint8_t *data, size_t size), const uint8_t *data, size_t size);

/*
 * The initial state for an input. kind: the kind of the attacked TP. honest: its peer is, and the
 * bystander uses it.
 */
struct ub_world *ub_world_begin(uint8_t kind, bool honest);
/* Ends everything of the input and checks the final state. */
void ub_world_end(struct ub_world *w);

void ub_world_poll(struct ub_world *w, unsigned int n);
/* Let the bystander do one request, then n * n * 10 us pass. */
void ub_world_time(struct ub_world *w, uint32_t n);
void ub_world_reap(struct ub_world *w);

/* A request of the attacked Jetty, or of its JFS; nothing if the queue is full. */
void ub_world_send(struct ub_world *w, uint8_t kind, uint32_t len, bool jfs);
void ub_world_recv(struct ub_world *w, bool jfr, unsigned int sges, uint32_t len);

uint8_t *ub_world_region(struct ub_world *w, enum ub_world_region r, uint32_t *len);
uint32_t ub_world_token_id(const struct ub_world *w, enum ub_world_region r);
uint32_t ub_world_lkey(const struct ub_world *w, enum ub_world_region r);
/* The number of a Jetty or JFS of this world, also of one with a well-known number. */
uint32_t ub_world_number(const struct ub_world *w, const urma_jetty_id_t *id);
struct hca_qp *ub_world_store(const struct ub_world *w, const urma_jetty_id_t *id);
struct hca_tp *ub_world_tp(const struct ub_world *w, unsigned int peer);

/*
 * A frame of a peer with these headers; rtph's TPNs are set. `patches` times {u8 offset from the
 * transport header, u8 bits} of the input are XORed into it before the ICRC is computed.
 */
void ub_world_packet(struct ub_world *w, unsigned int peer, struct hca_ub_headers *headers,
		     const uint8_t *payload, uint32_t len, struct fuzz_input *in,
		     unsigned int patches);
/* Correct lengths, addresses, TPNs and ICRC of an IPv4 frame, as far as it is long enough. */
void ub_world_fix(struct ub_world *w, uint8_t *frame, uint32_t len);
void ub_world_frame(struct ub_world *w, const uint8_t *frame, uint32_t len);

#endif
