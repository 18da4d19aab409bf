/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_WORLD_H
#define TESTS_FUZZ_WORLD_H

/*
 * One HCA with the real driver and library; the fuzzer is its peer: the port delivers frames made
 * from the input. Time is simulated. The HCA exists as long as the process; its QPs are reset for
 * every input, so inputs influence each other only by the generation of a QP.
 *
 * world_run() has two such worlds, one with the short ways of the stages and one without. The input
 * runs in both, and all frames, completions, counters and bytes of memory must be equal.
 *
 * The QPs have different initial states: see the table in world.c.
 */

#include <softhca/softhca.h>

#include "driver.h"
#include "engine/impl.h"
#include "fuzz.h"
#include "fuzz_port.h"
#include "fuzz_trace.h"
#include "hca.h"

#define WORLD_MEM 0xc000u
#define WORLD_RX 64u  /* frames waiting for the device */
#define WORLD_WRS 64u /* requests and receives that an input may post */
#define WORLD_MTU 256u
#define WORLD_LOCAL_IP 0x0a4d0001u
#define WORLD_PEER_IP 0x0a4d0002u
#define WORLD_PEER_QPN 0x00beefu

enum world_qp {
	WORLD_FRESH,	/* nothing posted */
	WORLD_READER,	/* READs and an ATOMIC unanswered */
	WORLD_WRITER,	/* WRITE of several packets, SEND, ATOMIC unacknowledged */
	WORLD_RECEIVER, /* receives of several SGEs posted */
	WORLD_WRITTEN,	/* after a WRITE FIRST */
	WORLD_SENT,	/* after a SEND FIRST */
	WORLD_QPS,
};

enum world_region {
	WORLD_RW,     /* remote write, read, atomic */
	WORLD_RO,     /* remote read only */
	WORLD_SOURCE, /* source of sends: no remote rights */
	WORLD_TARGET, /* of READs and ATOMICs */
	WORLD_RECV,   /* of receives */
	WORLD_REGIONS,
};

struct world {
	struct fuzz_port port;
	struct hca *h;
	struct hca_driver *drv;
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_mr *mr[WORLD_REGIONS];
	struct softhca_mw *mw[2]; /* of type 1 and 2; new for each input */
	struct softhca_qp *qp[WORLD_QPS];
	uint8_t *mem;
	uint64_t now;
	struct hca_usage base;
	struct fuzz_trace trace;
	/* of the current input */
	unsigned int posted, completed;
	uint8_t done[WORLD_WRS];
	bool lying; /* the input wrote into the queues: completions are not checked */
};

/* Run an input, from world_begin() to world_end(), in both worlds and compare them. */
void world_run(void (*run)(const uint8_t *data, size_t size), const uint8_t *data, size_t size);

/* Set up the initial state for an input. */
struct world *world_begin(void);
/* Move everything to ERR and then to RESET, and check the final state. */
void world_end(struct world *w);

void world_poll(struct world *w, unsigned int n);
/* Poll until nothing happens, at most a fixed number of loops. */
void world_settle(struct world *w);
/* Take completions and check them. */
void world_reap(struct world *w);

/* Give the device a frame of at most 4 KiB; dropped if the port's queue is full. */
void world_frame(struct world *w, const uint8_t *frame, uint32_t len);

/*
 * A frame of a QP's peer: Ethernet to BTH from the arguments, ext bytes after it unchanged, correct
 * pad and ICRC. Returns its length.
 */
struct world_packet {
	enum world_qp to;
	uint8_t opcode, flags; /* BTH: SE, MigReq; the pad count is computed */
	bool ackreq;
	uint32_t psn;
	const uint8_t *ext;
	uint32_t ext_len;
	uint32_t payload_len;
	uint8_t fill; /* payload: this byte */
	int32_t pad;  /* bits [1:0] XORed into the pad count */
};
void world_packet(struct world *w, const struct world_packet *p);

/* Correct lengths, addresses, QPN and ICRC of an IPv4 frame, as far as it is long enough. */
void world_fix(struct world *w, uint8_t *frame, uint32_t len);

/* Post request `kind` (enum softhca_wr_opcode) of len bytes; nothing if the queue is full. */
void world_send(struct world *w, enum world_qp qp, uint32_t kind, uint32_t len, unsigned int nsge);
void world_recv(struct world *w, enum world_qp qp, unsigned int nsge, uint32_t sge_len);

/* Connect a QP in RESET with the fuzzer's peer, to RTS. */
void world_connect(struct world *w, struct softhca_qp *qp);

uint8_t *world_region(struct world *w, enum world_region r, uint32_t *len);
struct hca_qp *world_store(struct world *w, enum world_qp qp);

#endif
