/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_STRICT_H
#define TESTS_SIM_UB_STRICT_H

/*
 * A peer of side 0 without our own code: it reads and writes frames by the design of the wire
 * alone, with a coder and a CRC of its own. It takes the place of side 1 on the link, and uses the
 * memory of side 1 as target. One TP; IPv4 or IPv6, each MTU and each receive mode, as the pair has
 * it.
 *
 * It does required work as late as allowed:
 * - it acknowledges only on A, on `last`, every STRICT_EVERY packets, or when a hole is to be told;
 * - it sends the last two packets of a Read_response in the wrong order;
 * - it repeats a packet only when side 0 says that it is missing, never by a timer.
 * Each frame of side 0 is held against the rules of the wire; the first break ends the test.
 */

#include "ub_pair.h"

#define STRICT_EVERY 16u
#define STRICT_WINDOW 256u
#define STRICT_FRAME 4400u

/* Packet to drop once: the nth of its kind from now on, 1 .. ; 0: none. */
struct ub_strict_losses {
	unsigned int data;	/* packets of side 0; as `packets` counts them */
	unsigned int acks;	/* TPACKs, TPSACKs and TPNAKs of the peer */
	unsigned int responses; /* TP Packets of the peer, which `side 0` must ask for */
};

struct ub_strict_sent {
	uint8_t bytes[STRICT_FRAME];
	uint32_t len;
};

struct ub_strict {
	struct ub_pair *p;
	uint32_t ip, mtu; /* bytes of the IP header, of payload */
	uint8_t mode;	  /* enum hca_tp_mode, of both ends */
	/* receiving */
	bool nak; /* mode DROP: side 0 was told to go back to epsn */
	uint32_t epsn, max_rcv, tpmsn;
	uint32_t unacked;
	bool got[STRICT_WINDOW];
	struct {
		bool valid, last;
		uint32_t tpmsn, len, sum;
	} seen[STRICT_WINDOW]; /* all that was sent under a PSN, dropped or not */
	uint32_t max_sent;     /* highest PSN that side 0 used, + 1 */
	struct {
		uint32_t tpmsn, bytes, end, last_psn;
		bool open, ended;
	} op[STRICT_WINDOW];
	/* sending */
	uint32_t next, una, msn;
	struct ub_strict_sent sent[STRICT_WINDOW];
	uint64_t owed_since; /* when side 0 got a packet to acknowledge at once; 0: none */
	/* receives */
	uint64_t immediate, notified;
	struct ub_strict_losses lose;
	/* RC id of a queue of side 0: its requests are acknowledged and executed, and not answered
	 * before ub_strict_answer(); 0: of none */
	uint32_t silent;
	/* RSPST and RSPINFO: the next request is answered by its TPACK, not by a TAACK;
	 * 0: as usual */
	uint8_t tell;
	uint32_t told; /* its TPMSN */
	struct {
		uint8_t btah[8];
		const uint8_t *from; /* Read */
		uint32_t len, offset;
	} kept[64];
	unsigned int kept_n;
	/* counts */
	uint64_t packets, again, acks, requests[256];
	uint64_t order[4096]; /* TASSNs in the order in which requests were executed */
	unsigned int executed;
};

/* Takes the place of side 1. The pair has one TP. */
void ub_strict_open(struct ub_strict *x, struct ub_pair *p);
/* Answers to the n requests that were kept first. */
void ub_strict_answer(struct ub_strict *x, unsigned int n);
/* TAOpcode, the operation of UDETAH, and two operands: result for v. */
void ub_strict_change(uint8_t op, uint8_t user_op, uint8_t *v, const uint8_t *first,
		      const uint8_t *second, uint32_t n);
/* All is acknowledged both ways. */
void ub_strict_check(struct ub_strict *x);

#endif
