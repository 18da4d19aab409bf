/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_CC_TOLD_H
#define TESTS_UNIT_DEVICE_CC_TOLD_H

/* A made-up algorithm: it gives the answer of the test, and counts its calls. */

#include "cc/cc.h"

struct told {
	/* the answer: bytes, then 0; and when to ask again */
	uint32_t leave;
	uint64_t again;
	/* asked and told */
	uint32_t begun, asked, unanswered, frames, acked, timed, cnps, lost[HCA_CC_LOSSES];
	uint64_t bytes, psns, rtt;
};

extern const struct hca_cc_ops told_ops;

/* The object of a device without hca_create() has it from now on; hca_cc_fini() ends that. */
void told_open(struct hca_pipe *h, uint32_t obj);

#endif
