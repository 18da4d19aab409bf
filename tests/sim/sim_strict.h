/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_STRICT_H
#define TESTS_SIM_SIM_STRICT_H

/*
 * Looks at the frames of both directions. It counts the acknowledgements of each side, and it can
 * make both ends strict: peers that acknowledge a request only if it asked, as the standard allows
 * and other adapters do. Ours acknowledges more, so an ACK loses what nobody asked for: it gets the
 * PSN of the last request up to its own that did, or is dropped. For one pair of QPs at a time.
 */

#include "sim.h"

struct sim_strict_side {
	struct sim_strict *x;
	unsigned int side;
	uint8_t *asked; /* a bit per PSN of the requests this side has sent */
	/* sent by this side, as they are on the wire */
	uint64_t acks, seq_naks, rnr_naks, other_naks, cnps, requests, asks;
};

struct sim_strict {
	struct sim *s;
	bool strict;
	struct sim_strict_side side[2];
};

/* Below the impairments: what these drop has not been sent. */
void sim_strict_open(struct sim *s, struct sim_strict *x, bool strict);
void sim_strict_close(struct sim_strict *x);

#endif
