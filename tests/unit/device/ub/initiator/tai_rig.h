/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_UB_INITIATOR_TAI_RIG_H
#define TESTS_UNIT_DEVICE_UB_INITIATOR_TAI_RIG_H

/*
 * TAI alone: Jettys whose requests the test puts into their windows, TPs whose lanes it empties,
 * and a peer whose answers the test chooses. Asserts with cmocka.
 */

#include "../../engine/fixture.h"

#include <string.h>

#include "ub/initiator/ta_initiator.h"

#define RIG_TPS 8u
#define RIG_QPI 3u
#define RIG_MTU_LOG 10u
#define RIG_MTU (1u << RIG_MTU_LOG)
#define RIG_GROUP 2u /* has TPs 1 and 2 */
#define RIG_VA UINT64_C(0x100000)
#define RIG_LEN (1u << 20)
#define RIG_KEY 0x0100u
#define RIG_PD 7u
#define RIG_CQES 512u
#define RIG_TOKEN 0x11223344u
#define RIG_TOKEN_ID 0xabcdeu
#define RIG_RADDR UINT64_C(0x7000000000)
#define RIG_TC HCA_UB_MAKE_TC(0x10403, HCA_UB_TC_ONE, 0x77)
#define RIG_DATA UINT64_C(0x0123456789abcdef)

struct tai_rig {
	struct fx *fx;
	struct hca_pipe *h;
	struct hca_qp *qp; /* Jetty RIG_QPI */
	struct rte_mempool *pool;
	uint8_t *mem; /* at RIG_VA */
	struct hca_cqe_ub *cqe;
	uint32_t cqes;		/* taken */
	uint32_t seen[RIG_TPS]; /* operations taken, by TP */
	uint64_t now;
};

int rig_setup(void **state);
int rig_teardown(void **state);

/* A Jetty more, like that of RIG_QPI. */
struct hca_qp *rig_jetty(struct tai_rig *r, uint32_t qpi);

/*
 * A request of a Jetty through the group, of len bytes at RIG_VA, signaled; the test may change it
 * before it polls.
 */
struct hca_ub_record *rig_post_on(struct tai_rig *r, struct hca_qp *qp, uint8_t op, uint32_t len);
struct hca_ub_record *rig_post(struct tai_rig *r, uint8_t op, uint32_t len);

void rig_poll(struct tai_rig *r);
/* Every request to a group goes to another of its TPs than the one before. */
void rig_by_turns(struct tai_rig *r);

/* The next operation in the lane of the TP; NULL: the lane is empty. */
struct hca_ta_op *rig_next(struct tai_rig *r, uint32_t tpi);
/* The same for TP 1 or 2, if one of them has an operation; *tpi is that TP. */
struct hca_ta_op *rig_any(struct tai_rig *r, uint32_t *tpi);
/* Forget the operations in the lanes; returns their number. */
uint32_t rig_skip(struct tai_rig *r);

/* TPS has done with n operations of the TP, or with all that are there. */
void rig_release(struct tai_rig *r, uint32_t tpi, uint32_t n);
void rig_release_all(struct tai_rig *r);

/* ---- time ---- */

/* The wheel's entry of Jetty RIG_QPI expires. */
void rig_expire(struct tai_rig *r, uint64_t now);
/* The time at which it expires; 0: it is not armed. */
uint64_t rig_armed_for(const struct tai_rig *r);

/* ---- answers ---- */

struct hca_ub_headers rig_response(uint8_t opcode, const struct hca_qp *qp, uint16_t tassn);
/* It comes through the TP, with n bytes of payload. */
void rig_answer(struct tai_rig *r, uint32_t tpi, const struct hca_ub_headers *h,
		const void *payload, uint32_t n);
/* TAACK of k + 1 requests. */
void rig_taack(struct tai_rig *r, uint32_t tpi, uint16_t tassn, uint8_t rspst, uint8_t rspinfo);

/* ---- completions ---- */

/* The next CQE, or NULL. */
const struct hca_cqe_ub *rig_cqe(struct tai_rig *r);
/* There is one, of the request with that WQE index and status. */
void rig_expect(struct tai_rig *r, uint32_t wqe_index, uint8_t status);
void rig_expect_none(struct tai_rig *r);

#define RIG_COUNTER(r, name) FX_COUNTER((r)->fx, TAI, name)

/* Assert the counters and pools of a rig without open requests. */
void rig_check_quiet(struct tai_rig *r);

#endif
