/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_IMPAIR_H
#define PORT_PORT_IMPAIR_H

/*
 * A port that impairs transmission: it is in front of another port and drops, duplicates, reorders,
 * delays, corrupts, truncates or marks frames, at random or by rules that select packets. Works
 * with real and simulated time: its only clock is the engine's `now`.
 *
 * What happens to the nth frame since odds were set depends on the seed, n and how often they were
 * set before, not on time or on the fate of other frames. Where it falls inside of a frame depends
 * on the frame, too.
 *
 * A frame that is duplicated or held back is a copy from a pool of this port (the sender gets its
 * mbuf back at once); at most `hold` frames are held. When that many are held, a delay makes the
 * port stall, and with other faults the frame passes. So is one that was damaged while the inner
 * port has no room: the sender never gets a frame back that is not as it was sent.
 *
 * Owned by the composition. One thread at a time may change settings; changes take effect at the
 * next burst. After rules were cleared, add a new one only when no worker can still be in that
 * burst (hca_wait_workers). hca_port.close() also closes the inner port.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi_impair.h"
#include "port/port.h"

/* Parts of a frame where one byte is changed. */
enum hca_corrupt_kind {
	HCA_CORRUPT_PAYLOAD = 1 << 0, /* payload or pad; header if there is none */
	HCA_CORRUPT_HEADER = 1 << 1,  /* BTH and extension headers */
	HCA_CORRUPT_ICRC = 1 << 2,
	HCA_CORRUPT_RANDOM = 1 << 3, /* anywhere after the MAC addresses */
	HCA_CORRUPT_ANY = 15,
};

/* Probabilities 0..1 per frame, evaluated separately; at most one of the faults is applied. */
struct hca_impair {
	double drop, dup, reorder, corrupt, truncate;
	double ecn;		/* CE mark, in addition to another fault */
	uint32_t corrupt_kinds; /* enum hca_corrupt_kind, 0: any */
	uint64_t delay_ns;	/* every frame */
	uint64_t jitter_ns;	/* 0..jitter more, at random; this reorders, too */
	uint64_t reorder_ns;	/* a reordered frame is sent 1..reorder_ns later, 0: 10 us */
	/* as in a rule; frames of others have neither faults nor delays */
	uint32_t qpn, sqpn;
	uint8_t wire;
};

enum hca_fault {
#define X(name, text) HCA_FAULT_##name,
	HCA_FAULT_LIST(X)
#undef X
	HCA_FAULT_KINDS
};

#define HCA_FAULT_ANY 0xffffffffu

/* The first rule that matches a frame is applied, and no random fault. */
struct hca_fault_rule {
	uint32_t opcode; /* of BTH or RTPH, or HCA_FAULT_ANY */
	uint32_t psn;	 /* or HCA_FAULT_ANY */
	uint32_t nth;	 /* from the nth matching frame on, counted from 1; 0 stands for 1 */
	uint32_t count;	 /* number of matching frames, 0: all */
	enum hca_fault fault;
	uint64_t arg;
	/*
	 * Frames of one QP: to QPN qpn (BTH), or from QPN sqpn (DETH); 0: not compared, both 0:
	 * any. (Only datagrams contain their source; otherwise qpn is the peer's.) Of UB both are
	 * TPNs, and each frame has both.
	 */
	uint32_t qpn, sqpn;
	uint8_t wire; /* enum hca_wire; HCA_WIRE_NONE: any */
};

/*
 * What a text says: "drop=0.01,delay=50,qp=0x123", or "rule=drop,psn=100,count=1,qp=5", with the
 * names of abi_impair.h; in a rule psn, opcode, nth, count and arg as above; tp=N instead of qp=N.
 */
struct hca_impair_text {
	bool is_rule;
	struct hca_impair odds;
	struct hca_fault_rule rule;
	uint32_t qpn; /* 0: absent */
	uint32_t tpn; /* of UB; 0: absent */
};

/* Parse the text. 0, or -EINVAL with what was expected and found in why. Any thread. */
int hca_impair_parse(const char *text, struct hca_impair_text *out, char *why, size_t size);

#define HCA_FAULT_RULES 32u

#define HCA_PORT_IMPAIR_STATS(X) \
	X(frames) \
	X(dropped) \
	X(duplicated) \
	X(reordered) \
	X(delayed) \
	X(corrupted) \
	X(truncated) \
	X(ecn_marked) \
	X(hold_full) \
	X(no_mbuf) \
	X(stalled)

struct hca_port_impair_stats {
#define X(n) uint64_t n;
	HCA_PORT_IMPAIR_STATS(X)
#undef X
};

struct hca_port_impair_config {
	const char *name; /* unique: names the pool */
	uint64_t seed;
	uint32_t hold; /* limit of held frames, 0: 1024 */
	int socket_id;
};

/* Create the port; 0 or -ENOMEM. On failure the caller keeps inner. */
int hca_port_impair_open(const struct hca_port_impair_config *cfg, struct hca_port *inner,
			 struct hca_port **out);

/* Set random faults and delays; NULL: none. */
void hca_port_impair_set(struct hca_port *p, const struct hca_impair *impair);

/* Add a rule; 0 or -ENOSPC. */
int hca_port_impair_rule(struct hca_port *p, const struct hca_fault_rule *rule);
void hca_port_impair_clear_rules(struct hca_port *p);
unsigned int hca_port_impair_rules(const struct hca_port *p);

/* Number of frames that the i-th rule has matched and changed. */
uint64_t hca_port_impair_hits(const struct hca_port *p, unsigned int rule);

/*
 * For a port that impairs received frames (port_inbound.c), on its lcore: whether frames may bypass
 * it, because nothing is set or held; and count such frames.
 */
bool hca_port_impair_clean(struct hca_port *p);
void hca_port_impair_count(struct hca_port *p, uint16_t n);

void hca_port_impair_stats(const struct hca_port *p, struct hca_port_impair_stats *out);
uint32_t hca_port_impair_held(const struct hca_port *p);
/* Number of copies that their receivers have not freed. */
uint32_t hca_port_impair_mbufs(const struct hca_port *p);

#endif
