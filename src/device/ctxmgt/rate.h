/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_CTXMGT_RATE_H
#define DEVICE_CTXMGT_RATE_H

/*
 * Static rates of address vectors, in the codes of InfiniBand (verbs: enum ibv_rate). A QP with one
 * leaves that much time between its frames, requests and retransmissions; what it answers as a
 * responder is paced by its requester. Pure function, any lcore.
 */

#include <stdbool.h>
#include <stdint.h>

/* Code to ps per byte, 0: none (code 0, as fast as the port). false: there is no such rate. */
bool hca_rate_pace(uint32_t code, uint32_t *pace);

#endif
