/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_EQ_IMPL_H
#define QUEUES_EQ_IMPL_H

/* The tables of the event queues; shared by eq.c and eq_tables.c only. */

#include <stdbool.h>
#include <stdint.h>

#include <rte_ring.h>

#include "abi_bar.h"
#include "core/core.h"
#include "queues/qbuf.h"

#define EQ_MAX HCA_BAR0_EQ_CI_MAX
#define EQN_NONE 0xffu
#define EVENT_TYPES 31u /* bit 31 of unsent is PARKED */

enum object_kind {
	OBJ_CQ,
	OBJ_QP,
	OBJ_DEVICE, /* 0: the port; 1 + EQN: an event queue */
	OBJ_SRQ,
	OBJ_TP,
	OBJ_KINDS
};

#define TOKEN(kind, index) ((uint32_t)(kind) << 29 | (index))
#define TOKEN_KIND(t) ((t) >> 29)
#define TOKEN_INDEX(t) ((t)&0x1fffffffu)
#define TOKEN_NONE UINT32_MAX

struct hca_eq {
	bool live;
	struct hca_qbuf q;
	uint32_t log_size, key, pd, intr;
	uint32_t prod, ci; /* free running; ci as last accepted */
	uint64_t mask;	   /* event types mapped to it */
	uint64_t start;
	bool overflowed; /* EQ_OVERFLOW was raised, and the queue has not been empty since */
};

/* The COMP event of a CQ that software has not consumed yet. */
struct comp_mark {
	uint32_t index; /* index of its EQE */
	uint32_t valid;
};

/* The last object on a stage's list; the CEU takes the whole list at once. */
struct raised {
	uint32_t last __rte_cache_aligned; /* [pub] token */
};

/* All event queues of an HCA: hca_core.eqs */
struct hca_eqs {
	uint32_t kick __rte_cache_aligned;	   /* [pub] some stage's list is not empty */
	uint32_t parked_count __rte_cache_aligned; /* CEU from here on */
	uint32_t scan_left;			   /* parked objects still to be checked */
	uint32_t written;			   /* bits of EQNs written since the last notify */
	uint8_t port_subtype;
	struct hca_eq eq[EQ_MAX];
	uint8_t type_eqn[EVENT_TYPES];
	uint32_t count[OBJ_KINDS];
	uint32_t *pending[OBJ_KINDS]; /* [pub] any stage */
	/* tokens: written by the stage that raises an event, then by the CEU */
	uint32_t *link[OBJ_KINDS];
	uint32_t *unsent[OBJ_KINDS];
	struct comp_mark *comp;
	uint32_t *tp_told; /* [pub] by TP: subtype[31:24] TPN[23:0] of its event; one writer */
	/*
	 * CQs whose moderation period runs: indexes, and the end of each period (0: none,
	 * LATER_UNSET: it began at an unknown time)
	 */
	uint32_t *later;
	uint64_t *later_at;
	uint32_t later_n;
	uint64_t later_next; /* the earliest */
	struct rte_ring *parked, *failed_cq;
	hca_notify_fn notify;
	void *notify_arg;
	struct raised raised[HCA_STAGE_N];
};

#endif
