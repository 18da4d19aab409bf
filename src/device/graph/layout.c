/* SPDX-License-Identifier: BSD-3-Clause */

#include "graph/layout.h"
#include "wire/wire_view.h"

struct layout_row {
	unsigned int workers;
	unsigned int ub_workers; /* in addition, for stages of UB alone */
	uint8_t worker[HCA_STAGE_N];
};

/*
 * Which worker polls which stage. Workers of UB's stages alone come last, so that a device without
 * that wire has the others.
 */
static const struct layout_row layouts[HCA_LAYOUTS] = {
	[HCA_LAYOUT_RTC] = {.workers = 1},
	[HCA_LAYOUT_TXRX] = {.workers = 2,
			     .worker = {[HCA_STAGE_DECAP] = 1,
					[HCA_STAGE_TPR] = 1,
					[HCA_STAGE_TAT] = 1,
					[HCA_STAGE_EE] = 1,
					[HCA_STAGE_REQ_RX] = 1,
					[HCA_STAGE_TIMER] = 1}},
	[HCA_LAYOUT_FULL] = {.workers = 9,
			     .ub_workers = 4,
			     .worker = {[HCA_STAGE_DOORBELL] = 0,
					[HCA_STAGE_PARSER] = 1,
					[HCA_STAGE_REQ_TX] = 2,
					[HCA_STAGE_DECAP] = 3,
					[HCA_STAGE_EE] = 4,
					[HCA_STAGE_REQ_RX] = 5,
					[HCA_STAGE_TIMER] = 6,
					[HCA_STAGE_ENCAP] = 7,
					[HCA_STAGE_CEU] = 8,
					[HCA_STAGE_TAI] = 9,
					[HCA_STAGE_TPR] = 10,
					[HCA_STAGE_TAT] = 11,
					[HCA_STAGE_TPS] = 12}},
};

unsigned int
hca_layout_workers(enum hca_layout layout, uint32_t wires)
{
	const struct layout_row *l = &layouts[layout];

	return l->workers + (wires & HCA_WIRE_BIT(HCA_WIRE_UB) ? l->ub_workers : 0);
}

unsigned int
hca_layout_worker(enum hca_layout layout, uint32_t wires, enum hca_stage_id stage)
{
	unsigned int worker = layouts[layout].worker[stage];

	return worker < hca_layout_workers(layout, wires) ? worker : 0;
}
