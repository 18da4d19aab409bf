/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_IMPAIR_H
#define PORT_PORT_IMPAIR_H

/*
 * A port that misbehaves on transmit: stands in front of another port and drops, duplicates,
 * reorders, delays, corrupts, truncates or marks what it is given, at random or by rules that name
 * a packet. Works under real and simulated time: the only clock is the engine's `now`.
 *
 * A frame that is duplicated or held back is a copy from a pool of this port (the sender gets its
 * mbuf back at once); at most `hold` frames are held. When that is full a delay makes the port
 * stall, and other faults let the frame pass.
 *
 * Owner: the composition. Changes from one thread at a time, any; they are seen at the next burst.
 * After rules were cleared, a new one only when no worker may still be in that burst
 * (hca_wait_workers). hca_port.close() closes what is wrapped too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi_impair.h"
#include "port/port.h"

/* Where a frame is corrupted: one byte there is changed. */
enum hca_corrupt_kind {
	HCA_CORRUPT_PAYLOAD = 1 << 0, /* payload or pad; header where there is none */
	HCA_CORRUPT_HEADER = 1 << 1,  /* BTH and extension headers */
	HCA_CORRUPT_ICRC = 1 << 2,
	HCA_CORRUPT_RANDOM = 1 << 3, /* anywhere behind the MAC addresses */
	HCA_CORRUPT_ANY = 15,
};

/* Probabilities 0..1 per frame, each judged on its own; at most one of the faults happens. */
struct hca_impair {
	double drop, dup, reorder, corrupt, truncate;
	double ecn;		/* CE mark, besides any other fault */
	uint32_t corrupt_kinds; /* enum hca_corrupt_kind, 0: any */
	uint64_t delay_ns;	/* every frame */
	uint64_t jitter_ns;	/* 0..jitter more, at random: reorders too */
	uint64_t reorder_ns;	/* a reordered frame comes 1..reorder_ns later, 0: 10 us */
	uint32_t qpn, sqpn;	/* as in a rule: other frames have no fault, nor delay */
};

enum hca_fault {
#define X(name, text) HCA_FAULT_##name,
	HCA_FAULT_LIST(X)
#undef X
	HCA_FAULT_KINDS
};

#define HCA_FAULT_ANY 0xffffffffu

/* One rule; the first that matches a frame decides, and no random fault happens to it then. */
struct hca_fault_rule {
	uint32_t opcode; /* of the BTH, or HCA_FAULT_ANY */
	uint32_t psn;	 /* or HCA_FAULT_ANY */
	uint32_t nth;	 /* from the nth matching frame on, counted from 1; 0 as 1 */
	uint32_t count;	 /* so many matching frames, 0: all that come */
	enum hca_fault fault;
	uint64_t arg;
	/*
	 * Frames of one QP: to QPN qpn by their BTH, or from QPN sqpn by their DETH; 0: not asked,
	 * both 0: any. (Only datagrams say who sends them: of the rest, qpn is the peer's.)
	 */
	uint32_t qpn, sqpn;
};

/*
 * What a text says: "drop=0.01,delay=50,qp=0x123", or "rule=drop,psn=100,count=1,qp=5", with the
 * names of abi_impair.h; in a rule psn, opcode, nth, count and arg as above.
 */
struct hca_impair_text {
	bool is_rule;
	struct hca_impair odds;
	struct hca_fault_rule rule;
	uint32_t qpn; /* 0: not said */
};

/* 0, or -EINVAL and in why what was expected and what was found. Any thread. */
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
	uint32_t hold; /* frames held at most, 0: 1024 */
	int socket_id;
};

/* 0, -ENOMEM. On failure inner is left to the caller. */
int hca_port_impair_open(const struct hca_port_impair_config *cfg, struct hca_port *inner,
			 struct hca_port **out);

/* NULL: no faults at random any more. */
void hca_port_impair_set(struct hca_port *p, const struct hca_impair *impair);

/* 0, -ENOSPC. */
int hca_port_impair_rule(struct hca_port *p, const struct hca_fault_rule *rule);
void hca_port_impair_clear_rules(struct hca_port *p);
unsigned int hca_port_impair_rules(const struct hca_port *p);

/* Frames the rule in that place has matched and changed. */
uint64_t hca_port_impair_hits(const struct hca_port *p, unsigned int rule);

/*
 * For a port that impairs what it receives (port_inbound.c), from its lcore: frames may pass it by,
 * since nothing is set and nothing held; and so many did.
 */
bool hca_port_impair_clean(struct hca_port *p);
void hca_port_impair_count(struct hca_port *p, uint16_t n);

void hca_port_impair_stats(const struct hca_port *p, struct hca_port_impair_stats *out);
uint32_t hca_port_impair_held(const struct hca_port *p);
/* Copies not yet freed by whoever has received them. */
uint32_t hca_port_impair_mbufs(const struct hca_port *p);

#endif
