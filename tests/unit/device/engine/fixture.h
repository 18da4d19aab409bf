/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_ENGINE_FIXTURE_H
#define TESTS_UNIT_DEVICE_ENGINE_FIXTURE_H

/*
 * A struct hca_pipe with tiny tables, to run one stage alone: every edge calls a recorder, every
 * message channel exists, and raised events and errors are recorded. The test initializes the
 * stages it needs (hca_parser_init(fx->h), ...).
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/impl.h"

#define FX_OBJECTS 1024u

struct fx_edge {
	void *obj[FX_OBJECTS]; /* the objects pushed */
	unsigned int n;
	unsigned int room; /* free entries that the consumer reports */
};

struct fx_event {
	uint8_t type;	/* HCA_EVENT_* */
	uint32_t index; /* QP or CQ */
};

struct fx {
	struct hca_pipe *h;
	struct fx_edge edge[HCA_EDGE_N];
	struct fx_event event[64];
	unsigned int events;
};

/* 0 selects the default in brackets. */
struct fx_config {
	uint32_t log_num_qps;  /* [4] */
	uint32_t records;      /* [64] */
	uint32_t full_records; /* [32] */
};

struct fx *fx_create(const struct fx_config *cfg);
void fx_destroy(struct fx *fx);

/*
 * Make QP qpi an RC QP in RTS on UAR page `page`, with a send queue of 1 << log_sq WQEs of 1 <<
 * log_stride bytes and a window of `window` records (a power of two). QPN: fx_qpn(qpi).
 */
struct hca_qp *fx_qp(struct fx *fx, uint32_t qpi, uint32_t page, uint32_t log_sq,
		     uint32_t log_stride, uint32_t window);
uint32_t fx_qpn(uint32_t qpi);

/* Take all flags for this QP from a channel; messages for other QPs keep their order. */
unsigned int fx_take_msgs(struct fx *fx, enum hca_stage_id from, enum hca_stage_id to,
			  uint32_t qpi);

uint64_t fx_counter(const struct fx *fx, enum hca_stage_id s, enum hca_counter c);
#define FX_COUNTER(fx, STAGE, name) fx_counter((fx), HCA_STAGE_##STAGE, HCA_CTR_##name)

#endif
