/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_IMPAIR_TEXT_H
#define PORT_IMPAIR_TEXT_H

/*
 * Faults as values and as text, without DPDK, so that tools can check texts. port_impair.h applies
 * them to frames.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi_impair.h"
#include "wire/opcode_set.h"

/* Parts of a frame where one byte is changed. */
enum hca_corrupt_kind {
	HCA_CORRUPT_PAYLOAD = 1 << 0, /* payload or pad; header of a frame without both */
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
	uint64_t jitter_ns;	/* 0..jitter more, at random; this also reorders */
	uint64_t reorder_ns;	/* a reordered frame is sent 1..reorder_ns later, 0: 10 us */
	/* as in a rule; other frames have neither faults nor delays */
	uint32_t qpn, sqpn;
	uint8_t wire;
	bool by_name;
	struct hca_opcode_set of;
};

enum hca_fault {
#define X(name, text) HCA_FAULT_##name,
	HCA_FAULT_LIST(X)
#undef X
	HCA_FAULT_KINDS
};

/* "drop"; never NULL. */
const char *hca_fault_name(unsigned int fault);

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
	 * any. (Only datagrams contain their source; otherwise qpn is the peer's.) For UB both are
	 * TPNs, and each frame has both.
	 */
	uint32_t qpn, sqpn;
	uint8_t wire;		  /* enum hca_wire; HCA_WIRE_NONE: any */
	bool by_name;		  /* frames of these opcodes only */
	struct hca_opcode_set of; /* by_name */
};

/* Kinds of texts. */
enum hca_impair_kind {
	HCA_IMPAIR_ODDS,
	HCA_IMPAIR_RULE,
	HCA_IMPAIR_PORT, /* the port goes down for a time */
	HCA_IMPAIR_GID,	 /* programs get an event: the GID table has changed */
};

/*
 * A parsed text; names of opcodes are those of abi_impair.h:
 *   "drop=0.01,delay=50,qp=0x123,opcode=ack"  odds, of frames of one QP (tp=N: TP) or opcode
 *   "drop,opcode=read-response,nth=3"         a rule: a fault without odds, and its frames: psn,
 *                                             opcode (number or name), nth, count, qp, tp; arg as
 *                                             above. With nth or psn, count is 1, else 0, all.
 *   "rule=drop,..."                           the same
 *   "port=down,after=MS,for=MS"               after: since the first frame, absent: at once
 *   "gid=change,after=MS"                     after: since the setting
 */
struct hca_impair_text {
	enum hca_impair_kind kind;
	struct hca_impair odds;
	struct hca_fault_rule rule;
	uint32_t qpn; /* 0: absent */
	uint32_t tpn; /* UB; 0: absent */
	uint32_t after_ms, for_ms;
};

/*
 * Parse a text; 0, or -EINVAL with the expected and the found words in why. Any thread. The second
 * function parses the first text of a list separated by ";" and sets *rest to the rest of the list,
 * or NULL. The last text may end with ";".
 */
int hca_impair_parse(const char *text, struct hca_impair_text *out, char *why, size_t size);
int hca_impair_parse_next(const char **rest, struct hca_impair_text *out, char *why, size_t size);

#endif
