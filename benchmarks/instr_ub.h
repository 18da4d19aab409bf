/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCHMARKS_INSTR_UB_H
#define BENCHMARKS_INSTR_UB_H

/* Messages over UB for benchmarks/instr_loop.c: a Jetty at each side, as its QPs. */

#include <stdbool.h>
#include <stdint.h>

#include <softhca/embed.h>

struct instr_ub;

enum instr_ub_op {
	INSTR_UB_WRITE,
	INSTR_UB_READ,
	INSTR_UB_SEND,
};

/*
 * Jettys of both HCAs that have imported each other, for messages of this length; list: one call
 * posts a whole batch. Ends the program on errors.
 */
struct instr_ub *instr_ub_open(struct softhca_embed *embed, uint32_t bytes, uint32_t batch,
			       enum instr_ub_op op, bool list);
void instr_ub_close(struct instr_ub *u);
/* A batch of messages from the first to the second, until all have completed. */
void instr_ub_round(struct instr_ub *u);

#endif
