/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_STRICT_H
#define TESTS_SIM_SIM_STRICT_H

/*
 * Observes the frames of both directions. It counts the acknowledgements of each side, and can make
 * both ends strict: peers that acknowledge a request only if it asks for that, as the standard
 * allows and other adapters do. Our responder acknowledges more, so an ACK is changed to the PSN of
 * the last request up to its own that asked, or dropped. For one pair of QPs at a time.
 */

#include "sim.h"

struct sim_strict_side {
	struct sim_strict *x;
	unsigned int side;
	uint8_t *asked; /* a bit per PSN of the requests that this side has sent */
	/* sent by this side, counted on the wire */
	uint64_t acks, seq_naks, rnr_naks, other_naks, cnps, requests, asks;
};

struct sim_strict {
	struct sim *s;
	bool strict;
	struct sim_strict_side side[2];
};

/* Install it below the impairments, so that frames these drop count as not sent. */
void sim_strict_open(struct sim *s, struct sim_strict *x, bool strict);
void sim_strict_close(struct sim_strict *x);

#endif
