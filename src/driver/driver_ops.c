/* SPDX-License-Identifier: BSD-3-Clause */

/* Dispatch of the operations of clients (abi_ops.h) */

#include <errno.h>

#include "driver_types.h"

#define CARRY_OUT_DRIVER(name) driver_op_##name(client, request, answer)
#define CARRY_OUT_EXTRA(name) driver_op_##name(client, request, answer, extra)
#define CARRY_OUT_CHANNEL(name) driver_fail(-EINVAL, #name " is no operation of the driver")

static int
carry_out(struct hca_client *client, enum hca_ctl_op op, const void *request, void *answer,
	  struct hca_ctl_extra *extra)
{
	const struct hca_ctl_shape *shape = hca_ctl_shape(op);

	if (shape != NULL && shape->caller == HCA_CTL_CALLER_PRIVILEGED && !client->privileged)
		return driver_fail(-EACCES,
				   "%s is for privileged users (root, [control] privileged_users)",
				   shape->name);
	switch (op) {
#define X(NAME, name, request_type, answer_type, fds_in, fds_out, caller, by, since) \
	case HCA_CTL_##NAME: \
		return CARRY_OUT_##by(name);
		HCA_CTL_OPS(X)
#undef X
	default:
		return driver_fail(-EINVAL, "operation %u does not exist", op);
	}
}

int
hca_client_call(struct hca_client *client, enum hca_ctl_op op, const void *request, void *answer,
		struct hca_ctl_extra *extra)
{
	struct driver_xrc_file *ended;
	int err;

	driver_lock_take(&client->drv->lock);
	err = carry_out(client, op, request, answer, extra);
	ended = client->ended;
	client->ended = NULL;
	driver_lock_give(&client->drv->lock);
	driver_xrc_close(ended);
	return err;
}
