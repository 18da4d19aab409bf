/* SPDX-License-Identifier: BSD-3-Clause */

#include "lib_rig.h"

#include <unistd.h>

struct softhca_context *ctx;
struct fake_ctl *fake;
struct fake_qp q;

static int
rig_open(bool manual)
{
	alarm(RIG_SECONDS);
	fake = fake_open(&ctx, manual);
	if (rig_wanted.cqe != 0)
		q = fake_make_qp(ctx, &rig_wanted.cap, rig_wanted.state, rig_wanted.cqe);
	return 0;
}

int
rig_setup(void **state)
{
	return rig_open(false);
}

int
rig_setup_manual(void **state)
{
	return rig_open(true);
}

int
rig_teardown(void **state)
{
	if (ctx != NULL) {
		if (rig_wanted.cqe != 0)
			fake_drop_qp(&q);
		fake_close(fake, ctx);
	}
	alarm(0);
	return 0;
}
