/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_FORGE_H
#define TESTS_SIM_UB_FORGE_H

/*
 * Frames of UB over IPv4 that a hostile host sends: whole ones, with the right ICRC, in which one
 * thing is not as the peer of a TP would have it.
 */

#include "sim.h"

#include "ub/ub_stage.h"
#include "ub_craft.h"

/* The zero value is the peer's own. */
struct ub_forged {
	uint8_t from, to;  /* last bytes of both addresses, 0: the right ones */
	uint32_t dst, src; /* TPNs, 0: the right ones */
	bool vlan;
	bool damaged; /* its ICRC is wrong */
	struct hca_ub_headers headers;
	const void *payload;
	uint32_t len; /* of it */
};

/* tp: the sending end. Returns the length of the frame, which has room for UB_ROOM bytes. */
uint32_t ub_forge(struct sim *s, const struct hca_tp *tp, const struct ub_forged *f,
		  uint8_t *frame);
/* Put a frame before the port of that side as if the other one had sent it. */
void ub_forge_inject(struct sim *s, unsigned int side, const uint8_t *frame, uint32_t len);

#endif
