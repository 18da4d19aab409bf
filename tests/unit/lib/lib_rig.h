/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_LIB_LIB_RIG_H
#define TESTS_UNIT_LIB_LIB_RIG_H

/*
 * The set-up of the library's tests: a context on a fake_ctl, and a QP with one CQ for tests that
 * define its sizes. A test defines rig_wanted; its table names rig_setup() and rig_teardown(), or
 * functions that call them. SIGALRM ends a test that takes longer than RIG_SECONDS: a call that
 * waits has not come back.
 */

#include "fake_ctl.h"

#define RIG_SECONDS 240

struct rig_wanted {
	struct softhca_qp_cap cap;
	uint32_t cqe;	/* of the QP's CQ; 0: no QP */
	uint32_t state; /* of the QP */
};

extern const struct rig_wanted rig_wanted;

extern struct softhca_context *ctx; /* a test that closes it sets it to NULL */
extern struct fake_ctl *fake;
extern struct fake_qp q;

int rig_setup(void **state);
int rig_setup_manual(void **state); /* manual progress: with a progress hook */
int rig_teardown(void **state);

#endif
