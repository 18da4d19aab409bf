/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_WQE_UB_H
#define REQUESTER_WQE_UB_H

/*
 * Decodes send WQEs of Jettys (abi_tp.h). As wqe_unit.h it reads the device's private copy only and
 * checks the structure: TPs, tokens, keys and ranges are checked when they are used.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_tp.h"
#include "engine/record_ub.h"

/* Pointers lead into the copy. If status is not 0 the other members are invalid. */
struct hca_wqe_ub {
	uint8_t status; /* 0 or HCA_UB_STATUS_* */
	uint8_t nsge;	/* SGEs of non-zero length */
	uint8_t nunits; /* data units, including empty ones */
	bool is_inline; /* data: len bytes */
	bool is_rd;	/* Read or atomic */
	uint32_t len;	/* bytes of the message; of an atomic: of one operand */
	const struct hca_ub_wr *wr;
	const struct hca_ub_unit *ub;
	const struct hca_raddr_unit *raddr; /* NULL: there is none, as the next three */
	const struct hca_notify_unit *notify;
	const uint8_t *operands;
	const struct hca_ud_unit *ud; /* not checked here */
	const uint8_t *data;	      /* first data unit, or inline bytes */
	struct hca_sge first;	      /* first SGE of non-zero length, when nsge != 0 */
};

/* As hca_wqe_decode(): size and op are any value, of size at most stride bytes exist. */
void hca_wqe_ub_decode(const uint8_t *wqe, uint32_t size, uint32_t stride, uint8_t op,
		       struct hca_wqe_ub *out);

/* Whether the record of a decoded WQE must be a full one. */
static inline bool
hca_wqe_ub_full(const struct hca_wqe_ub *w)
{
	return w->is_inline || w->nsge > 1 || w->operands != NULL || w->ud != NULL;
}

/*
 * Fill in the record of a decoded WQE, full where hca_wqe_ub_full() says so, but for op, wqe_index
 * and the flags that the next unit and the chain tell. av: of one with a UD unit.
 */
void hca_wqe_ub_fill(const struct hca_wqe_ub *w, const struct hca_ud_av *av,
		     struct hca_ub_record *r);

#endif
