/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_CTXMGT_RATE_H
#define DEVICE_CTXMGT_RATE_H

/*
 * Rate limits of QPs, and static rates of address vectors, in the codes of InfiniBand (verbs: enum
 * ibv_rate). A QP with a rate spaces its frames, requests and retransmissions accordingly; its
 * responses leave at the rate of the peer's requests. Pure function, any lcore.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Convert a code to ps per byte; 0: no limit (code 0, the rate of the port). False: unknown code.
 */
bool hca_rate_pace(uint32_t code, uint32_t *pace);

/* The rate limit of a QP, from its context, in ps per byte; 0: no limit */
uint32_t hca_rate_limit_pace(uint32_t kbps);

#endif
