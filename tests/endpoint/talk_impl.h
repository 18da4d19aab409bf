/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_ENDPOINT_TALK_IMPL_H
#define TESTS_ENDPOINT_TALK_IMPL_H

/* Shared by the operations of a conversation (talk_ops.c, talk_rdma.c). */

#include "talk.h"

/* Every message fits every receive, so one that arrives during the next attempt is harmless. */
#define TALK_RECV_BYTES 12000u
#define TALK_PARTS 3
#define TALK_OFFSET 3u /* of the first part in its quarter */

enum talk_kind {
	TALK_TWO_SIDED, /* completes a receive */
	TALK_WRITES,
	TALK_READS,
	TALK_ATOMICS,
};

/* bytes: many packets if the service segments messages; parts: number of SGEs */
struct talk_shape {
	enum talk_op op;
	enum talk_kind kind;
	uint32_t opcode, flags, bytes, parts;
	uint32_t services; /* bits of QP types; 0: any, but not by talk_ops() */
};

const struct talk_shape *talk_shape(const struct talk_flow *f, enum talk_op op);
bool talk_unreliable(const struct talk_flow *f);

/*
 * Lay out parts of odd lengths and offsets in a quarter of the buffer; the last part takes the
 * rest.
 */
int talk_lay_out(struct softhca_sge *sge, const struct talk_flow *f, uint32_t at, uint32_t bytes,
		 uint32_t parts);
uint8_t *talk_byte(const struct softhca_sge *sge, uint32_t i);
/* The data of this attempt: its serial number, then a pattern. */
void talk_fill(const struct talk_flow *f, const struct softhca_sge *sge, uint32_t bytes);
/*
 * Number of leading bytes that are correct data of the other end; skip: header bytes before the
 * data
 */
uint32_t talk_right(const struct talk_flow *f, const struct softhca_sge *sge, uint32_t skip,
		    uint32_t bytes);
int talk_differs(const struct talk_flow *f, enum talk_op op, uint32_t i);

/* Post one receive; parts: the SGEs for its data. */
int talk_post_recv(struct talk_flow *f, struct softhca_sge *sge, uint32_t parts);
/*
 * Wait for `sends` completions of requests and one receive, in any order. 0; 1: no receive in time,
 * which unreliable services may cause; or a negative errno.
 */
int talk_collect(struct talk_flow *f, unsigned int sends, struct softhca_sge *in, uint32_t parts,
		 struct softhca_wc *recv);

/* 1: both ends succeeded; 0: a message was lost, repeat; or a negative errno */
typedef int (*talk_attempt)(struct talk_flow *f, const void *arg);
/* Repeat an attempt until it succeeds at both ends. */
int talk_insist(struct talk_flow *f, enum talk_op op, talk_attempt attempt, const void *arg);

int talk_atomic(struct talk_flow *f, const struct talk_shape *s);

#endif
