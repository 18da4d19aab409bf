/* SPDX-License-Identifier: BSD-3-Clause */

#include "graph/layout.h"

/*
 * Which worker polls which stage. Workers of stages that only some wires need come last, so that a
 * device without these wires has the others.
 */
static const uint8_t layouts[HCA_LAYOUTS][HCA_STAGE_N] = {
	[HCA_LAYOUT_RTC] = {0},
	[HCA_LAYOUT_TXRX] = {[HCA_STAGE_DECAP] = 1,
			     [HCA_STAGE_TPR] = 1,
			     [HCA_STAGE_TAT] = 1,
			     [HCA_STAGE_EE] = 1,
			     [HCA_STAGE_REQ_RX] = 1,
			     [HCA_STAGE_TIMER] = 1},
	[HCA_LAYOUT_FULL] = {[HCA_STAGE_DOORBELL] = 0,
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
			     [HCA_STAGE_TPS] = 12},
};

static unsigned int
workers_of(enum hca_layout layout, uint32_t stages)
{
	unsigned int last = 0;

	for (; stages != 0; stages &= stages - 1) {
		unsigned int worker = layouts[layout][__builtin_ctz(stages)];

		last = worker > last ? worker : last;
	}
	return last + 1;
}

unsigned int
hca_layout_workers(enum hca_layout layout, unsigned int pipelines, uint32_t wires)
{
	/* the CEU and the other wires are in the first pipe */
	uint32_t others = hca_stages_of(HCA_WIRE_BIT(HCA_WIRE_ROCE)) & ~(1u << HCA_STAGE_CEU);

	return workers_of(layout, hca_stages_of(wires)) +
	       (pipelines - 1) * workers_of(layout, others);
}

unsigned int
hca_layout_worker(enum hca_layout layout, uint32_t wires, enum hca_stage_id stage)
{
	unsigned int worker = layouts[layout][stage];

	return worker < workers_of(layout, hca_stages_of(wires)) ? worker : 0;
}
