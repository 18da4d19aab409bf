/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_REQUESTER_PARSER_RIG_H
#define TESTS_UNIT_DEVICE_REQUESTER_PARSER_RIG_H

/*
 * The surroundings of the WQE parser: a client that builds WQEs and chains in a QP's queue, and the
 * later stages, which finish its requests. Asserts with cmocka.
 */

#include "../engine/fixture.h"

#include <string.h>

#include "abi_bar.h"
#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_wqe.h"
#include "requester/doorbell.h"
#include "requester/parser.h"
#include "requester/record_pool.h"

#define QPI 3u
#define PAGE 5u
#define BUDGET 32u

/* ---- client side: building WQEs ---- */

/* A WQE under construction: units are appended to it. */
struct wqe {
	uint8_t b[HCA_WQE_MAX_STRIDE];
	uint32_t len;
};

struct wqe wqe_new(uint32_t flags, uint32_t imm);

void add_raddr(struct wqe *w, uint64_t raddr, uint32_t rkey);

void add_atomic(struct wqe *w, uint64_t swap_add, uint64_t cmp);

void add_sge(struct wqe *w, uint64_t va, uint32_t lkey, uint32_t len);

void add_inline(struct wqe *w, const void *data, uint32_t len);

uint8_t *slot(struct fx *fx, uint32_t index);

void put(struct fx *fx, uint32_t index, const struct wqe *w);

/* Make the WQE at index - 1 point to the one at index. */
void link_to(struct fx *fx, uint32_t index, uint8_t op, uint32_t size, bool fence);

void ring_qp(struct fx *fx, uint32_t qpi, uint32_t index, uint8_t op, uint32_t size, bool fence);

void ring(struct fx *fx, uint32_t index, uint8_t op, uint32_t size);

struct wqe write_wqe(uint32_t n);

/* Post n WRITEs from index on as one chain, with its doorbell. */
void post_chain_qp(struct fx *fx, uint32_t qpi, uint32_t index, uint32_t n);

void post_chain(struct fx *fx, uint32_t index, uint32_t n);

extern uint64_t fx_now; /* the time passed by poll_parser() */

/* ---- device side: the rest of the engine ---- */

unsigned int poll_parser(struct fx *fx);

struct hca_record *rec(struct fx *fx, uint32_t cursor);

/* Finish n requests of a QP, as req_tx and req_rx do. */
void complete(struct fx *fx, uint32_t qpi, uint32_t n);

bool told_req_tx(struct fx *fx, uint32_t qpi);

void expect_catas(struct fx *fx);

int parser_setup(void **state);

int parser_teardown(void **state);

/* Post one WQE of op on a new QP with stride 512; returns its record. */
struct hca_record *parse_one(struct fx *fx, const struct wqe *w, uint8_t op, uint32_t size);

#endif
