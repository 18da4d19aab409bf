/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_CMAGENT_IB_FAKE_IBCM_H
#define TESTS_UNIT_CMAGENT_IB_FAKE_IBCM_H

/* State machines of the test in the place of cm/ib: one object, which records its calls. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <semaphore.h>
#include <cmocka.h>

#include "ibcm.h"

#define INPUTS 4096u

struct ibcm {
	struct ibcm_config cfg;
	struct ibcm_way from[INPUTS];
	uint32_t inputs, ticks, gids, forgotten, resolved, deaths;
	uint32_t op, owner, user, channel;
	uint64_t deadline, ticket;
	int err;
	struct ibcm_way way;
	uint32_t sends; /* of the next call, of the end */
	struct ibcm_way to;
	struct ibcm_wish wish;
	bool wishes;
	int refusal; /* of operations; 0: -EADDRINUSE */
	const char *why;
};

extern struct ibcm cm;
extern sem_t ticked; /* posted by each tick */

#endif
