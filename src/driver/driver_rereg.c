/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Changing a registration. All steps that can fail for lack of resources come first: the request is
 * checked, and a new translation is written in addition to the old one. Then the entry is taken
 * from the device, which waits until no access uses it, and is returned changed, under the same
 * index. Accesses in between find no key. If accesses could afterwards reach other memory or
 * another PD, the key is changed. If the device refuses the new entry, the old one is restored.
 */

#include <errno.h>

#include "driver_mr.h"

#define FLAGS (HCA_CTL_REREG_TRANSLATION | HCA_CTL_REREG_PD | HCA_CTL_REREG_ACCESS)
#define NEW_KEY (HCA_CTL_REREG_TRANSLATION | HCA_CTL_REREG_PD)

/* The changed region: its own values, except those that flags name. */
static struct hca_ctl_mr
merge(const struct driver_mr *region, uint32_t flags, const struct hca_ctl_mr *mr)
{
	struct hca_ctl_mr want = {
		.va = region->va,
		.shift = region->shift,
		.length = region->length,
		.pdn = region->pdn,
		.access = region->access,
	};

	if (flags & HCA_CTL_REREG_TRANSLATION) {
		want.va = mr->va;
		want.shift = mr->shift;
		want.length = mr->length;
		want.page_size = mr->page_size;
		want.npages = mr->npages;
	}
	if (flags & HCA_CTL_REREG_PD)
		want.pdn = mr->pdn;
	if (flags & HCA_CTL_REREG_ACCESS)
		want.access = mr->access;
	return want;
}

/* The pages of the old translation are unchanged. */
static int
prepare(struct hca_driver *drv, const struct driver_mr *region, uint32_t flags,
	const struct hca_ctl_mr *want, const uint64_t *list, struct driver_mr *next)
{
	struct page_source pages;
	int err;

	next->pdn = want->pdn;
	next->access = want->access;
	if ((flags & HCA_CTL_REREG_TRANSLATION) == 0) {
		if ((want->access & ~region->access & HCA_ACCESS_ON_DEMAND) != 0)
			return driver_fail(-EOPNOTSUPP,
					   "on-demand paging without a new translation");
		return driver_mr_check(want);
	}
	err = driver_mr_pages(drv, region->owner, want, list, &pages);
	if (err == 0)
		err = driver_mr_quota(drv, region->owner, 0, driver_mr_entries(pages.count));
	if (err != 0)
		return err;
	driver_mr_describe(next, want, &pages);
	err = driver_mr_take_mtts(drv, next->mtts, &next->mtt);
	if (err != 0)
		return err;
	err = driver_mr_write_mtts(drv, next->mtt, &pages);
	if (err != 0)
		driver_ranges_give(&drv->mtt_ranges, next->mtt, next->mtts);
	return err;
}

static int
swap(struct hca_driver *drv, const struct driver_mr *region, const struct driver_mr *next)
{
	uint32_t index = HCA_KEY_INDEX(region->key);
	int err = driver_command_bare(drv, HCA_CMD_HW2SW_MPT, 0, index, 0);

	if (err != 0)
		return err;
	err = driver_mr_write_mpt(drv, next);
	/* it was accepted before and its translation is unchanged: only a dead device refuses it */
	if (err != 0 && driver_mr_write_mpt(drv, region) != 0)
		return -EIO;
	return err;
}

static int
change(struct hca_client *client, struct driver_mr *region, uint32_t flags,
       const struct hca_ctl_mr *mr, const uint64_t *list)
{
	struct hca_driver *drv = client->drv;
	const struct hca_ctl_mr want = merge(region, flags, mr);
	bool moves = flags & HCA_CTL_REREG_TRANSLATION;
	struct driver_mr old = *region, next = *region;
	struct driver_pd *from = driver_pd_of(client, old.pdn);
	struct driver_pd *to = driver_pd_of(client, want.pdn);
	int err;

	if (to == NULL)
		return driver_fail(-EINVAL, "PD %#x does not exist", want.pdn);
	err = prepare(drv, region, flags, &want, list, &next);
	if (err != 0)
		return err;
	if (flags & NEW_KEY)
		next.key = driver_mpt_new_key(drv, HCA_KEY_INDEX(old.key));
	err = swap(drv, &old, &next);
	if (err != 0) {
		if (moves)
			driver_ranges_give(&drv->mtt_ranges, next.mtt, next.mtts);
		return err;
	}
	*region = next;
	if (from != NULL)
		from->users--;
	to->users++;
	if (moves) {
		driver_ranges_give(&drv->mtt_ranges, old.mtt, old.mtts);
		client->count[DRIVER_MTTS] += next.mtts;
		client->count[DRIVER_MTTS] -= old.mtts;
	}
	return 0;
}

int
driver_op_rereg_mr(struct hca_client *client, const struct hca_ctl_rereg *request,
		   struct hca_ctl_keys *keys, struct hca_ctl_extra *extra)
{
	struct driver_mr *region = driver_mr_of(client, request->lkey);
	int err;

	if (region == NULL)
		return -EINVAL;
	if (region->null)
		return driver_fail(-EINVAL, "a null region cannot change");
	if (region->segment)
		return driver_fail(-EBUSY, "a segment of UB cannot change: revoke its token first");
	if (request->flags == 0 || (request->flags & ~FLAGS) != 0)
		return driver_fail(-EINVAL, "flags %#x of a change: must be of %#x, not 0",
				   request->flags, FLAGS);
	err = change(client, region, request->flags, &request->mr,
		     extra != NULL ? extra->pages : NULL);
	if (err == 0)
		keys->lkey = keys->rkey = region->key;
	return err;
}
