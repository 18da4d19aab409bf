/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Segments of UB: regions with a token row in the device. A region that is deregistered loses its
 * row in the device by the same command.
 */

#include <errno.h>

#include "abi_tp.h"
#include "driver_mr.h"

static int
check_token(const struct hca_client *client, const struct hca_ctl_token *request)
{
	uint32_t flags = request->flags;

	if (!driver_has_cap(client->drv, HCA_CAP_UB))
		return driver_fail(-EOPNOTSUPP, "the device does not speak UB");
	if ((flags & ~HCA_TOKEN_FLAGS_ALL) != 0 ||
	    (flags != 0 && (flags & HCA_TOKEN_EXPORTED) == 0) ||
	    ((flags & HCA_TOKEN_SECOND) != 0 && (flags & HCA_TOKEN_CHECK) == 0))
		return driver_fail(-EINVAL, "a token with flags %#x", flags);
	return 0;
}

int
driver_op_set_token(struct hca_client *client, const struct hca_ctl_token *request,
		    uint32_t *token_id)
{
	struct hca_driver *drv = client->drv;
	struct hca_mbox_set_token *m;
	struct driver_mr *region;
	int err = check_token(client, request);

	if (err != 0)
		return err;
	region = driver_mr_of(client, request->lkey);
	if (region == NULL)
		return -EINVAL;
	if (region->null)
		return driver_fail(-EINVAL, "a null region is no segment");
	m = driver_mailbox(drv);
	m->flags = hca_cpu_to_be32(request->flags);
	m->value[0] = hca_cpu_to_be32(request->value[0]);
	m->value[1] = hca_cpu_to_be32(request->value[1]);
	err = driver_command_in(drv, HCA_CMD_SET_TOKEN, HCA_KEY_INDEX(region->key));
	if (err != 0)
		return err;
	region->segment = request->flags != 0;
	*token_id = HCA_KEY_TOKEN_ID(region->key);
	return 0;
}
