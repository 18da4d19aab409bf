/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_BYSTANDER_H
#define TESTS_SIM_UB_BYSTANDER_H

/*
 * A user of the same channel as the victim or the attacker: the JFS of side 0 writes and reads 4
 * KiB in turn, one request after the other, and is timed, in simulated time.
 *
 * First alone, or with others that behave, then while they misbehave: its requests succeed, with
 * the right data; 99 of 100 take at most a tenth longer; no packet is sent again and no timer
 * expires, at either end. Where stages take turns at random (stepped) the mean is at most a tenth
 * longer, and the p99 a quarter.
 */

#include "ub_pair.h"

#define UB_BYSTANDER_REQUESTS 200u
/* Requests of others have smaller ids; all share side 0's send JFC. */
#define UB_BYSTANDER_ID (UINT64_C(1) << 48)

struct ub_bystander_times {
	uint64_t p99, mean; /* ns */
};

struct ub_bystander {
	struct ub_pair *p;
	struct ub_bystander_times usual; /* alone, or with others */
	uint64_t ended;			 /* when the last request had completed */
	uint64_t again, timeouts;
	uint64_t requests;
	/*
	 * Called with each completion of other users, before each request i, and when it has been
	 * posted: code that waits for the HCA there does so while the request is under way. NULL:
	 * not.
	 */
	void (*other)(void *arg, const urma_cr_t *cr);
	void (*disturb)(void *arg, uint32_t i);
	void (*during)(void *arg, uint32_t i);
	void *arg;
};

/* Times it alone. */
void ub_bystander_open(struct ub_bystander *b, struct ub_pair *p);
/* Times it while others do allowed work: the reference from now on. */
void ub_bystander_beside(struct ub_bystander *b);
/* Times it while disturb() and its requests do their work. */
void ub_bystander_run(struct ub_bystander *b);
/* One request; returns how long it took. */
uint64_t ub_bystander_request(struct ub_bystander *b);
/* Nothing was sent again since ub_bystander_open(). */
void ub_bystander_check(struct ub_bystander *b);

#endif
