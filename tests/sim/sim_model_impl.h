/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_MODEL_IMPL_H
#define TESTS_SIM_SIM_MODEL_IMPL_H

/*
 * Shared by the files of the model: sim_model.c predicts and posts, sim_judge.c checks, sim_pair.c
 * has the objects.
 */

#include <stdlib.h>

#include "sim_model.h"

#define SIM_GUARD 64u	      /* largest gap between areas in bytes */
#define SIM_COUNTER_BYTES 64u /* the atomics' counter is the first word of a region */

/* After a failed operation its targets may contain anything: adopt their contents. */
void sim_forget_targets(struct sim_pair *p, const struct sim_op *op);

static inline bool
sim_is_atomic(uint32_t opcode)
{
	return opcode == SOFTHCA_WR_ATOMIC_CMP_AND_SWP || opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD;
}

/* Operations of 8 bytes. */
static inline bool
sim_is_8_bytes(uint32_t opcode)
{
	return sim_is_atomic(opcode) || opcode == SOFTHCA_WR_ATOMIC_WRITE;
}

static inline void
sim_fifo_init(struct sim_fifo *f)
{
	f->head = NULL;
	f->tail = &f->head;
	f->n = 0;
}

static inline void
sim_fifo_put(struct sim_fifo *f, struct sim_op *op)
{
	op->next = NULL;
	*f->tail = op;
	f->tail = &op->next;
	f->n++;
}

static inline struct sim_op *
sim_fifo_take(struct sim_fifo *f)
{
	struct sim_op *op = f->head;

	if (op == NULL)
		return NULL;
	f->head = op->next;
	if (f->head == NULL)
		f->tail = &f->head;
	f->n--;
	return op;
}

static inline void
sim_fifo_free(struct sim_fifo *f)
{
	struct sim_op *op;

	while ((op = sim_fifo_take(f)) != NULL)
		free(op);
}

#endif
