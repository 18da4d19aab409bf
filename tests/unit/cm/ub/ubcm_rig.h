/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_UBCM_RIG_H
#define TESTS_UNIT_UBCM_RIG_H

/*
 * Two machines of ubcm, a network between them with the faults of a test, and for each a driver
 * that keeps the TPs it is told to make and complains of every order that does not fit. Time is
 * simulated.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ubcm_impl.h"

#define RIG_ENDS 2u
#define RIG_TPS 64u
#define RIG_MESSAGES 512u
#define RIG_LOG 64u
#define RIG_DELAY UBCM_MS

struct rig_tp {
	enum hca_tp_state state; /* HCA_TPS_RESET: no TP */
	uint32_t link;
	struct ubcm_tp tp;
	uint64_t packets; /* that it has carried */
};

struct rig_end {
	struct ubcm *cm;
	uint8_t eid[16];
	struct rig_tp tp[RIG_TPS];
	uint32_t up, down;    /* how often the users of a link were told so */
	enum ubcm_status why; /* of the last DOWN */
	uint32_t acts[UBCM_DOWN + 1];
	uint32_t looks;	 /* how often a link's traffic was asked for */
	int fail_create; /* error of the next CREATE */
};

struct rig_message {
	uint64_t at;
	uint32_t from;
	size_t len;
	uint8_t bytes[UBCM_MSG_MAX];
};

struct rig {
	uint64_t now, random;
	struct rig_end end[RIG_ENDS];
	struct rig_message message[RIG_MESSAGES]; /* on their way, in no order */
	uint32_t nmessages;
	uint8_t log[RIG_LOG]; /* types of the messages sent, from 0: as they are, from 1: | 0x80 */
	uint32_t sent;
	/* fault of message number n of an end; NULL: it arrives after RIG_DELAY */
	void (*fate)(struct rig *r, uint32_t from, uint32_t n, const uint8_t *bytes, size_t len);
	uint32_t count[RIG_ENDS]; /* messages sent by each */
	uint32_t arg[4];	  /* of fate */
	/* users of a link have another handle; NULL: not needed */
	void (*joined)(struct rig *r, uint32_t end, uint32_t from, uint32_t to);
};

/* End 0 has the lower EID. tps, links: of the configuration. */
void rig_open(struct rig *r, uint64_t seed, uint32_t tps, uint32_t links);
void rig_close(struct rig *r);
struct ubcm_config rig_config(struct rig *r, uint32_t end, uint32_t tps, uint32_t links);
uint32_t rig_random(struct rig *r, uint32_t below);

uint32_t rig_import(struct rig *r, uint32_t end);
void rig_put(struct rig *r, uint32_t from, const uint8_t *bytes, size_t len, uint64_t delay);
/* A message that end `to` gets at once. */
void rig_deliver(struct rig *r, uint32_t to, const uint8_t *bytes, size_t len);
/* Until nothing is under way and nothing due before `until`. */
void rig_run(struct rig *r, uint64_t until);

/* TPs of an end in any state; its first one */
uint32_t rig_tps(const struct rig *r, uint32_t end);
struct rig_tp *rig_first(struct rig *r, uint32_t end);
/* Both have the same channels, crosswise, all ACTIVE, n of them. */
void rig_agree(struct rig *r, uint32_t n);
uint64_t rig_dropped(const struct rig *r, uint32_t end);
/* received = dropped + handled, and the driver has the TPs of a machine */
void rig_sums(const struct rig *r);

#endif
