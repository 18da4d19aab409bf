/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_UB_UBCM_IN_H
#define CM_UB_UBCM_IN_H

/* A received message, for the functions of ubcm_recv.c, ubcm_req.c. */

#include "ubcm_impl.h"

struct ubcm_in {
	struct ubcm *cm;
	const uint8_t *own, *peer;
	const struct ubcm_msg *m;
	uint64_t now;
};

/* By the transaction that has set it up. An HCA that talks to itself has both ends. */
struct ubcm_link *ubcm_in_link(const struct ubcm_in *in, bool active);
void ubcm_in_reply(const struct ubcm_in *in, enum ubcm_type type, enum ubcm_status status);
/* Pair the TPs and agree; TPNs of this end that have no partner go back. */
void ubcm_in_pair(const struct ubcm_in *in, struct ubcm_link *l);
/* 0, or the owner has refused to make the TPs. */
int ubcm_in_create(struct ubcm *cm, struct ubcm_link *l, enum hca_tp_state state);

/* As all functions of messages: why nothing was done, or UBCM_DROP_none. */
enum ubcm_drop ubcm_take_req(const struct ubcm_in *in);
enum ubcm_drop ubcm_take_retry(const struct ubcm_in *in);

#endif
