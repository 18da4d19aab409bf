/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_DUO_H
#define TESTS_SIM_DUO_H

/*
 * Two connected RC QPs with CQs of the test's own choice, for what the model does not know: CQs
 * that are shared, too small or have channels, and events. Nothing is checked but that calls
 * succeed.
 */

#include "sim.h"

struct sim_duo {
	struct sim *s;
	struct softhca_cq *scq[2], *rcq[2]; /* set before sim_duo_open(), or NULL: one of its own */
	struct softhca_qp *qp[2];
	struct softhca_mr *mr[2];
	uint8_t *buf[2]; /* 64 KiB */
	struct softhca_cq *own[2];
	uint32_t depth; /* of the queues [64] */
	bool stay_rtr;	/* side 0 is not moved to RTS */
};

void sim_duo_open(struct sim *s, struct sim_duo *d);
void sim_duo_rts(struct sim_duo *d, unsigned int side);
void sim_duo_close(struct sim_duo *d);

/* n requests of len bytes; SENDs have no receives posted. Remote memory is the peer's buffer. */
void sim_duo_post(struct sim_duo *d, unsigned int side, uint32_t opcode, uint32_t len,
		  unsigned int n, uint32_t flags);
void sim_duo_recv(struct sim_duo *d, unsigned int side, uint32_t len, unsigned int n);
/* The same, SENDs with their receives. */
void sim_duo_send(struct sim_duo *d, unsigned int side, unsigned int n, uint32_t flags);

uint32_t sim_qp_state(struct sim *s, struct softhca_qp *qp);
/* Everything that is in the CQ; errors: how many of them failed. */
unsigned int sim_cq_drain(struct softhca_cq *cq, unsigned int *errors);

/* Asynchronous events of a context, not waited for. type in, false: none (of any type). */
bool sim_async(struct softhca_context *ctx, struct softhca_async_event *event);

#endif
