/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory windows: an MPT entry with a key and a PD. Binding is done in the data path, which changes
 * the consumer's tag of the key; here the rest of the key identifies the window.
 */

#include <errno.h>
#include <stdlib.h>

#include "driver_types.h"

static int
write_window(struct hca_driver *drv, const struct driver_mr *window, uint32_t type)
{
	struct hca_mpt *mpt = driver_mailbox(drv);

	mpt->flags = hca_cpu_to_be32(type == HCA_CTL_MW_TYPE_2 ? HCA_MPT_FLAG_WINDOW2 : 0);
	mpt->key = hca_cpu_to_be32(window->key);
	mpt->pd = hca_cpu_to_be32(window->pdn);
	mpt->domain = driver_mpt_domain(window->owner);
	return driver_command_in(drv, HCA_CMD_SW2HW_MPT, HCA_KEY_INDEX(window->key));
}

static int
create(struct hca_client *client, uint32_t pdn, uint32_t type, struct driver_mr **out)
{
	struct hca_driver *drv = client->drv;
	struct driver_mr *window;
	int err = driver_mr_quota(drv, client, 1, 0);

	if (err != 0)
		return err;
	window = calloc(1, sizeof(*window));
	if (window == NULL)
		return driver_no_memory("a window", sizeof(*window));
	window->owner = client;
	window->pdn = pdn;
	window->window = true;
	err = driver_mpt_take(drv, &window->key);
	if (err != 0)
		goto err_free;
	err = write_window(drv, window, type);
	if (err != 0)
		goto err_index;
	drv->mrs[HCA_KEY_INDEX(window->key)] = window;
	DRIVER_LIST_ADD(client->mws, window);
	client->count[DRIVER_MRS]++;
	*out = window;
	return 0;

err_index:
	driver_ids_give(&drv->mpt_ids, HCA_KEY_INDEX(window->key));
err_free:
	free(window);
	return err;
}

int
driver_op_alloc_mw(struct hca_client *client, const struct hca_ctl_mw *request, uint32_t *rkey)
{
	struct driver_pd *pd = driver_pd_of(client, request->pdn);
	uint32_t type = request->type;
	struct driver_mr *window = NULL;
	int err;

	if (pd == NULL)
		return driver_fail(-EINVAL, "PD %#x does not exist", request->pdn);
	if ((hca_be32_to_cpu(client->drv->lim.caps) & HCA_CAP_MW) == 0)
		return driver_fail(-EOPNOTSUPP, "the device has no memory windows");
	if (type != HCA_CTL_MW_TYPE_1 && type != HCA_CTL_MW_TYPE_2)
		return driver_fail(-EINVAL, "windows of type %u do not exist", type);
	err = create(client, request->pdn, type, &window);
	if (err != 0)
		return err;
	pd->users++;
	*rkey = window->key;
	return 0;
}

int
driver_mw_release(struct hca_driver *drv, struct driver_mr *window, bool force)
{
	uint32_t index = HCA_KEY_INDEX(window->key);
	int err = driver_take_back(drv, window->owner, HCA_CMD_HW2SW_MPT, 0, index);

	if (err != 0 && !force)
		return err;
	drv->mrs[index] = NULL;
	DRIVER_LIST_REMOVE(window);
	window->owner->count[DRIVER_MRS]--;
	driver_ids_give(&drv->mpt_ids, index);
	free(window);
	return 0;
}

int
driver_op_dealloc_mw(struct hca_client *client, const uint32_t *rkey, struct hca_ctl_none *none)
{
	struct hca_driver *drv = client->drv;
	uint32_t index = HCA_KEY_INDEX(*rkey);
	struct driver_mr *window = index < drv->mpt_ids.count ? drv->mrs[index] : NULL;
	struct driver_pd *pd;
	int err;

	if (window == NULL || !window->window || window->owner != client ||
	    HCA_KEY_TAG(window->key ^ *rkey) != (window->key ^ *rkey))
		return driver_fail(-EINVAL, "key %#x names no window of the client", *rkey);
	pd = driver_pd_of(client, window->pdn);
	err = driver_mw_release(drv, window, false);
	if (err == 0 && pd != NULL)
		pd->users--;
	return err;
}
