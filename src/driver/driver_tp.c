/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * TPs and their groups. They belong to the host, not to a client: the agent that sets channels up
 * (or a test) asks for them, and clients use those they are told. All of them are domain 0's.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_tp.h"
#include "driver_types.h"

#define TPN_BITS 24u

static uint32_t
log_tps(const struct hca_driver *drv)
{
	return HCA_LIM_TPS_LOG(hca_be32_to_cpu(drv->lim.ub));
}

int
driver_ub_init(struct hca_driver *drv)
{
	uint32_t tps = 1u << log_tps(drv);
	int err;

	if (!driver_has_cap(drv, HCA_CAP_UB))
		return 0;
	/* index 0: packets without a TP */
	err = driver_ids_init(&drv->tp_ids, 1, tps);
	if (err == 0)
		err = driver_ids_init(&drv->tpg_ids, 0, tps);
	drv->tps = calloc(tps, sizeof(*drv->tps));
	drv->known = calloc(HCA_TC_WELL_KNOWN, sizeof(*drv->known));
	return err == 0 && drv->tps != NULL && drv->known != NULL ? 0 : -ENOMEM;
}

void
driver_ub_free(struct hca_driver *drv)
{
	driver_ids_free(&drv->tp_ids);
	driver_ids_free(&drv->tpg_ids);
	free(drv->tps);
	free(drv->known);
}

/* The place of a live TP; NULL: not found, with a reason. */
static uint32_t *
find(struct hca_driver *drv, uint32_t tpn)
{
	uint32_t *place = drv->tps != NULL ? &drv->tps[tpn & (drv->tp_ids.count - 1)] : NULL;

	if (place != NULL && tpn != 0 && *place == tpn)
		return place;
	driver_fail(-EINVAL, "TP %#x does not exist", tpn);
	return NULL;
}

bool
driver_tp_lives(const struct hca_driver *drv, uint32_t tpn)
{
	return drv->tps != NULL && tpn != 0 && drv->tps[tpn & (drv->tp_ids.count - 1)] == tpn;
}

/* The number that the agent has told the peer; 0: one that cannot be predicted. */
static int
take_tpn(struct hca_driver *drv, uint32_t *tpn)
{
	uint32_t log = log_tps(drv), index;
	int err;

	if (*tpn != 0) {
		err = *tpn <= HCA_TPN_MASK
			      ? driver_ids_take_at(&drv->tp_ids, *tpn & (drv->tp_ids.count - 1))
			      : -EINVAL;
		return err == 0 ? 0
				: driver_fail(err, "TP %#x: %s", *tpn,
					      err == -EBUSY ? "a TP with the same index exists"
							    : "not the number of a TP");
	}
	err = driver_ids_take(&drv->tp_ids, &index);
	if (err != 0)
		return driver_all_used(err, "TPs", drv->tp_ids.count - 1, "[limits] log_tps");
	*tpn = driver_ids_new_tag(&drv->tp_ids, index, TPN_BITS - log, &drv->random) << log | index;
	return 0;
}

static int
create(struct hca_driver *drv, struct hca_tpc *tpc, const struct driver_answer *told)
{
	uint32_t tpn = hca_be32_to_cpu(tpc->tpn);
	int err = driver_resolve_path(drv, &tpc->path, told);

	if (err == 0)
		err = take_tpn(drv, &tpn);
	if (err != 0)
		return err;
	tpc->tpn = hca_cpu_to_be32(tpn);
	memcpy(driver_mailbox(drv), tpc, sizeof(*tpc));
	err = driver_command_in(drv, HCA_CMD_SW2HW_TP, tpn);
	if (err != 0)
		driver_ids_give(&drv->tp_ids, tpn & (drv->tp_ids.count - 1));
	else
		drv->tps[tpn & (drv->tp_ids.count - 1)] = tpn;
	return err;
}

int
hca_driver_create_tp(struct hca_driver *drv, struct hca_tpc *tpc)
{
	struct driver_answer told;
	int err;

	if (drv->tps == NULL)
		return driver_fail(-EOPNOTSUPP, "the device does not speak UB");
	driver_lock_take(&drv->lock);
	driver_ask_path(drv, &tpc->path, &told);
	err = create(drv, tpc, &told);
	driver_lock_give(&drv->lock);
	return err;
}

int
hca_driver_create_tp_to(struct hca_driver *drv, struct hca_tpc *tpc, const uint8_t dmac[6])
{
	struct driver_answer told = {.valid = true};
	int err;

	if (drv->tps == NULL)
		return driver_fail(-EOPNOTSUPP, "the device does not speak UB");
	memcpy(told.dgid, tpc->path.rgid, sizeof(told.dgid));
	memcpy(told.dmac, dmac, sizeof(told.dmac));
	driver_lock_take(&drv->lock);
	err = create(drv, tpc, &told);
	driver_lock_give(&drv->lock);
	return err;
}

int
hca_driver_modify_tp(struct hca_driver *drv, uint32_t tpn, const struct hca_tpc *tpc)
{
	struct driver_answer told;
	struct hca_tpc own = *tpc;
	bool path = (hca_be32_to_cpu(own.mask) & HCA_TP_ATTR_PATH) != 0;
	int err = 0;

	driver_lock_take(&drv->lock);
	if (path)
		driver_ask_path(drv, &own.path, &told);
	if (find(drv, tpn) == NULL)
		err = -EINVAL;
	if (err == 0 && path)
		err = driver_resolve_path(drv, &own.path, &told);
	if (err == 0) {
		memcpy(driver_mailbox(drv), &own, sizeof(own));
		err = driver_command_in(drv, HCA_CMD_MODIFY_TP, tpn);
	}
	driver_lock_give(&drv->lock);
	return err;
}

int
hca_driver_query_tp(struct hca_driver *drv, uint32_t tpn, struct hca_tpc *tpc)
{
	int err = -EINVAL;

	driver_lock_take(&drv->lock);
	if (find(drv, tpn) != NULL)
		err = driver_command_out(drv, HCA_CMD_QUERY_TP, tpn);
	if (err == 0)
		memcpy(tpc, drv->mailbox_out, sizeof(*tpc));
	driver_lock_give(&drv->lock);
	return err;
}

int
hca_driver_destroy_tp(struct hca_driver *drv, uint32_t tpn)
{
	uint32_t *place;
	int err = -EINVAL;

	driver_lock_take(&drv->lock);
	place = find(drv, tpn);
	if (place != NULL)
		err = driver_command_bare(drv, HCA_CMD_HW2SW_TP, 0, tpn, 0);
	if (err == 0) {
		*place = 0;
		driver_ids_give(&drv->tp_ids, tpn & (drv->tp_ids.count - 1));
	}
	driver_lock_give(&drv->lock);
	return err;
}

unsigned int
hca_driver_list_tps(struct hca_driver *drv, uint32_t from, uint32_t *tpns, unsigned int max)
{
	unsigned int n = 0;

	driver_lock_take(&drv->lock);
	for (uint32_t i = from; i < drv->tp_ids.count && n < max; i++)
		if (drv->tps[i] != 0)
			tpns[n++] = drv->tps[i];
	driver_lock_give(&drv->lock);
	return n;
}

uint32_t
hca_driver_tp_index(const struct hca_driver *drv, uint32_t tpn)
{
	return tpn & (drv->tp_ids.count - 1);
}

/* ---- groups ---- */

static int
set_group(struct hca_driver *drv, uint32_t group, const uint32_t *tpns, uint32_t count)
{
	struct hca_mbox_set_tpg *m = driver_mailbox(drv);

	m->count = hca_cpu_to_be32(count);
	for (uint32_t i = 0; i < count; i++)
		m->tpn[i] = hca_cpu_to_be32(tpns[i]);
	return driver_command_in(drv, HCA_CMD_SET_TPG, group);
}

static int
check_group(struct hca_driver *drv, uint32_t count)
{
	if (drv->tps == NULL)
		return driver_fail(-EOPNOTSUPP, "the device does not speak UB");
	if (count == 0 || count > HCA_TPG_MAX_TPS)
		return driver_fail(-EINVAL, "a group of %u TPs: must be 1 to %u", count,
				   HCA_TPG_MAX_TPS);
	return 0;
}

static int
take_group(struct hca_driver *drv, const uint32_t *tpns, uint32_t count, uint32_t *group)
{
	int err = driver_ids_take(&drv->tpg_ids, group);

	if (err != 0)
		return driver_fail(err, "all groups of TPs are in use");
	err = set_group(drv, *group, tpns, count);
	if (err != 0)
		driver_ids_give(&drv->tpg_ids, *group);
	return err;
}

int
hca_driver_create_tpg(struct hca_driver *drv, const uint32_t *tpns, uint32_t count, uint32_t *group)
{
	int err = check_group(drv, count);

	if (err != 0)
		return err;
	driver_lock_take(&drv->lock);
	err = take_group(drv, tpns, count, group);
	driver_lock_give(&drv->lock);
	return err;
}

int
hca_driver_change_tpg(struct hca_driver *drv, uint32_t group, const uint32_t *tpns, uint32_t count)
{
	int err = check_group(drv, count);

	if (err != 0)
		return err;
	driver_lock_take(&drv->lock);
	err = driver_ids_in_use(&drv->tpg_ids, group)
		      ? set_group(drv, group, tpns, count)
		      : driver_fail(-EINVAL, "group %u of TPs does not exist", group);
	driver_lock_give(&drv->lock);
	return err;
}

int
hca_driver_destroy_tpg(struct hca_driver *drv, uint32_t group)
{
	int err = 0;

	driver_lock_take(&drv->lock);
	if (drv->tps == NULL || !driver_ids_in_use(&drv->tpg_ids, group))
		err = driver_fail(-EINVAL, "group %u of TPs does not exist", group);
	else if (set_group(drv, group, NULL, 0) != 0 && drv->dead)
		err = -EIO; /* a group whose last TP has gone is gone in the device already */
	if (err == 0)
		driver_ids_give(&drv->tpg_ids, group);
	driver_lock_give(&drv->lock);
	return err;
}

int
driver_permit_tpg(struct hca_driver *drv, uint32_t uar, uint32_t group, bool may)
{
	uint64_t word = uar | (may ? HCA_TPG_PERMIT : 0);

	return driver_command_bare(drv, HCA_CMD_PERMIT_TPG, 0, group, word);
}

int
hca_driver_permit_tpg(struct hca_driver *drv, uint32_t uar, uint32_t group, bool may)
{
	int err;

	driver_lock_take(&drv->lock);
	err = drv->tps != NULL && driver_ids_in_use(&drv->tpg_ids, group)
		      ? driver_permit_tpg(drv, uar, group, may)
		      : driver_fail(-EINVAL, "group %u of TPs does not exist", group);
	driver_lock_give(&drv->lock);
	return err;
}
