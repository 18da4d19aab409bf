/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_DUO_H
#define TESTS_SIM_DUO_H

/*
 * Two connected RC QPs with CQs chosen by the test, for cases that the model does not cover: shared
 * CQs, small CQs, channels and events. Only the results of calls are checked.
 */

#include "sim.h"

struct sim_duo {
	struct sim *s;
	struct softhca_cq *scq[2], *rcq[2]; /* set before sim_duo_open(); NULL: a CQ of its own */
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

/*
 * Post n requests of len bytes; no receives are posted for SENDs. Remote memory is the peer's
 * buffer.
 */
void sim_duo_post(struct sim_duo *d, unsigned int side, uint32_t opcode, uint32_t len,
		  unsigned int n, uint32_t flags);
void sim_duo_recv(struct sim_duo *d, unsigned int side, uint32_t len, unsigned int n);
/* The same, with receives for SENDs. */
void sim_duo_send(struct sim_duo *d, unsigned int side, unsigned int n, uint32_t flags);

uint32_t sim_qp_state(struct sim *s, struct softhca_qp *qp);
/*
 * Poll the CQ until it is empty; returns the number of completions. errors: number of failed ones.
 */
unsigned int sim_cq_drain(struct softhca_cq *cq, unsigned int *errors);

/*
 * Get an asynchronous event of the type in `event` without waiting; false: no event of that type
 * waits.
 */
bool sim_async(struct softhca_context *ctx, struct softhca_async_event *event);

#endif
