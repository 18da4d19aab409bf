/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory regions: MTT ranges, MPT entries, keys. Tables 3-2-17 .. 3-2-23. */

#include <errno.h>
#include <stdlib.h>

#include "driver_mr.h"

#define MIN_PAGE_LOG HCA_MIN_PAGE_LOG
#define HUGE_PAGE_LOG 21u
#define MAX_PAGE_LOG HCA_MAX_PAGE_LOG
#define MANY_PAGES 4096u /* a region of more pages uses larger pages */
#define KEY_RANDOM_BITS 7u
#define KEY_TAG_BITS 8u

static uint64_t
page_at(const struct page_source *pages, uint64_t i)
{
	return pages->list != NULL ? pages->list[i] : pages->first + (i << pages->log);
}

static uint64_t
pages_of(uint64_t va, uint64_t length, uint32_t log)
{
	uint64_t in_page = va & ((UINT64_C(1) << log) - 1);

	if (length == 0)
		return 0;
	/* in two steps: in_page + length may overflow */
	return ((length - 1) >> log) + 1 +
	       ((in_page + ((length - 1) & ((UINT64_C(1) << log) - 1))) >> log);
}

uint32_t
driver_log2_up(uint64_t n)
{
	uint32_t log = 0;

	while ((UINT64_C(1) << log) < n)
		log++;
	return log;
}

static int
check_range(uint64_t start, uint64_t length)
{
	if (length == 0 || start + length - 1 >= start)
		return 0;
	return driver_fail(-EINVAL,
			   "a region of %llu bytes at %#llx passes the end of the address space",
			   (unsigned long long)length, (unsigned long long)start);
}

int
driver_mr_check(const struct hca_ctl_mr *mr)
{
	uint32_t writes = HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_ATOMIC;
	int err = check_range(mr->va, mr->length);

	if (err == 0)
		err = check_range(mr->va + mr->shift, mr->length);
	if (err != 0)
		return err;
	if ((mr->shift & (DRIVER_PAGE - 1)) != 0)
		return driver_fail(-EINVAL, "%#llx and %#llx differ in their offset in a page",
				   (unsigned long long)mr->va,
				   (unsigned long long)(mr->va + mr->shift));
	if ((mr->access & HCA_ACCESS_FLUSH_PERSISTENT) != 0)
		return driver_fail(-EOPNOTSUPP, "no memory of the device is persistent");
	if ((mr->access & ~(HCA_ACCESS_MASK | HCA_ACCESS_FLUSH_GLOBAL)) != 0)
		return driver_fail(-EINVAL, "access flags %#x: known are %#x", mr->access,
				   HCA_ACCESS_MASK | HCA_ACCESS_FLUSH_GLOBAL);
	if ((mr->access & writes) != 0 && (mr->access & HCA_ACCESS_LOCAL_WRITE) == 0)
		return driver_fail(-EINVAL, "remote write and atomic access need local write");
	return 0;
}

/* A consecutive region: use pages that need few MTT entries and lie inside the owner's memory. */
static void
choose_pages(const struct hca_client *owner, const struct hca_ctl_mr *mr, struct page_source *pages)
{
	static const uint32_t logs[] = {MIN_PAGE_LOG, HUGE_PAGE_LOG, MAX_PAGE_LOG};

	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
		uint64_t first = mr->va >> logs[i] << logs[i];
		uint64_t count = pages_of(mr->va, mr->length, logs[i]);

		if (i > 0 && owner != NULL && !driver_client_covers(owner, first, count << logs[i]))
			return;
		pages->log = logs[i];
		pages->first = first;
		pages->count = count;
		if (count <= MANY_PAGES)
			return;
	}
}

static int
check_list(const struct hca_ctl_mr *mr, const uint64_t *list, struct page_source *pages)
{
	uint64_t size = mr->page_size;

	if (size < 1u << MIN_PAGE_LOG || size > 1u << MAX_PAGE_LOG || (size & (size - 1)) != 0)
		return driver_fail(-EINVAL,
				   "pages of %llu bytes: must be a power of two from 2^%u to 2^%u",
				   (unsigned long long)size, MIN_PAGE_LOG, MAX_PAGE_LOG);
	pages->list = list;
	pages->log = driver_log2_up(size);
	pages->count = pages_of(mr->va, mr->length, pages->log);
	if (list == NULL || pages->count != mr->npages)
		return driver_fail(-EINVAL, "%llu pages given, the region has %llu",
				   (unsigned long long)mr->npages,
				   (unsigned long long)pages->count);
	return 0;
}

static int
check_pages(const struct hca_client *owner, const struct page_source *pages)
{
	uint64_t size = UINT64_C(1) << pages->log;

	if (pages->count == 0)
		return 0;
	if (pages->list == NULL) {
		if (owner == NULL ||
		    driver_client_covers(owner, pages->first, pages->count << pages->log))
			return 0;
		return driver_fail(-EPERM, "memory at %#llx is not the client's",
				   (unsigned long long)pages->first);
	}
	for (uint64_t i = 0; i < pages->count; i++) {
		if ((pages->list[i] & (size - 1)) != 0)
			return driver_fail(-EINVAL, "page %llu at %#llx is not aligned",
					   (unsigned long long)i,
					   (unsigned long long)pages->list[i]);
		if (owner != NULL && !driver_client_covers(owner, pages->list[i], size))
			return driver_fail(-EPERM, "page %llu at %#llx is not the client's",
					   (unsigned long long)i,
					   (unsigned long long)pages->list[i]);
	}
	return 0;
}

/* Only an access to foreign memory finds the pages again each time. */
static int
check_on_demand(const struct hca_ctl_mr *mr, const struct page_source *pages)
{
	if ((mr->access & HCA_ACCESS_ON_DEMAND) == 0 || pages->count == 0 ||
	    (page_at(pages, 0) & HCA_BUS_FOREIGN) != 0)
		return 0;
	return driver_fail(-EOPNOTSUPP, "on-demand paging of memory that the device maps");
}

int
driver_mr_pages(struct hca_driver *drv, const struct hca_client *owner, const struct hca_ctl_mr *mr,
		const uint64_t *list, struct page_source *pages)
{
	int err = driver_mr_check(mr);

	if (err != 0)
		return err;
	*pages = (struct page_source){0};
	if (mr->npages == 0)
		choose_pages(owner, mr, pages);
	else
		err = check_list(mr, list, pages);
	if (err == 0 && pages->count > UINT64_C(1) << drv->mtt_ranges.max_log)
		err = driver_fail(
			-ENOMEM,
			"a region of %llu pages: the device has 2^%u translation entries; "
			"use larger pages",
			(unsigned long long)pages->count, drv->mtt_ranges.max_log);
	if (err == 0)
		err = check_on_demand(mr, pages);
	return err != 0 ? err : check_pages(owner, pages);
}

int
driver_mr_write_mtts(struct hca_driver *drv, uint32_t first, const struct page_source *pages)
{
	for (uint64_t done = 0; done < pages->count;) {
		struct hca_mbox_write_mtt *mailbox = driver_mailbox(drv);
		uint64_t left = pages->count - done;
		uint32_t n = left < HCA_WRITE_MTT_MAX ? (uint32_t)left : HCA_WRITE_MTT_MAX;
		int err;

		mailbox->start_index = hca_cpu_to_be64(first + done);
		for (uint32_t i = 0; i < n; i++)
			*hca_write_mtt_entry(mailbox, i) =
				hca_cpu_to_be64(page_at(pages, done + i));
		err = driver_command_in(drv, HCA_CMD_WRITE_MTT, n);
		if (err != 0)
			return err;
		done += n;
	}
	return 0;
}

int
driver_mr_write_mpt(struct hca_driver *drv, const struct driver_mr *region)
{
	struct hca_mpt *mpt = driver_mailbox(drv);
	uint64_t offset = region->va & ((UINT64_C(1) << region->page_log) - 1);
	uint32_t flags =
		HCA_MPT_FLAG_REGION | HCA_MPT_FLAGS_OF(region->access & ~HCA_ACCESS_ON_DEMAND);

	if (region->null)
		flags |= HCA_MPT_FLAG_NULL;
	if ((region->access & HCA_ACCESS_MW_BIND) != 0)
		flags |= HCA_MPT_FLAG_BIND_ENABLE;
	mpt->flags = hca_cpu_to_be32(flags);
	mpt->page_size = hca_cpu_to_be32(1u << region->page_log);
	mpt->key = hca_cpu_to_be32(region->key);
	mpt->pd = hca_cpu_to_be32(region->pdn);
	mpt->domain = driver_mpt_domain(region->owner);
	/* zero-based: the address is 0, the memory is the same */
	if ((region->access & HCA_ACCESS_ZERO_BASED) == 0)
		mpt->start = hca_cpu_to_be64(region->va + region->shift);
	mpt->length = hca_cpu_to_be64(region->length);
	hca_mpt_set_mtt_seg(mpt, region->mtt);
	mpt->mtt_sz = hca_cpu_to_be32((uint32_t)region->pages);
	mpt->first_byte_offset = hca_cpu_to_be32((uint32_t)offset);
	return driver_command_in(drv, HCA_CMD_SW2HW_MPT, HCA_KEY_INDEX(region->key));
}

hca_be32
driver_mpt_domain(const struct hca_client *owner)
{
	return hca_cpu_to_be32(HCA_MPT_DOMAIN_MAKE(owner != NULL ? owner->uar : DRIVER_DOMAIN));
}

uint32_t
driver_mpt_new_key(struct hca_driver *drv, uint32_t index)
{
	uint32_t bits = driver_ids_new_tag(&drv->mpt_ids, index, KEY_RANDOM_BITS + KEY_TAG_BITS,
					   &drv->random);

	return HCA_KEY_MAKE(bits >> KEY_TAG_BITS, index, bits);
}

int
driver_mpt_take(struct hca_driver *drv, uint32_t *key)
{
	uint32_t index;
	int err = driver_ids_take(&drv->mpt_ids, &index);

	if (err != 0)
		return driver_all_used(err, "memory protection entries", drv->mpt_ids.count - 1,
				       "[limits] log_mpts");
	err = driver_icm_need(drv, ICM_MPT, index, 1);
	if (err != 0) {
		driver_ids_give(&drv->mpt_ids, index);
		return err;
	}
	*key = driver_mpt_new_key(drv, index);
	return 0;
}

int
driver_mr_take_mtts(struct hca_driver *drv, uint32_t count, uint32_t *mtt)
{
	int err = driver_ranges_take(&drv->mtt_ranges, count, mtt);

	if (err != 0)
		return driver_fail(err,
				   "no %u translation entries in one piece are left: deregister "
				   "regions, or use larger pages",
				   count);
	err = driver_icm_need(drv, ICM_MTT, *mtt, count);
	if (err != 0)
		driver_ranges_give(&drv->mtt_ranges, *mtt, count);
	return err;
}

/* Allocate an MPT index with a new key and an MTT range, both mapped in ICM. */
static int
take_numbers(struct hca_driver *drv, struct driver_mr *region)
{
	int err = driver_mr_take_mtts(drv, region->mtts, &region->mtt);

	if (err != 0)
		return err;
	err = driver_mpt_take(drv, &region->key);
	if (err != 0)
		driver_ranges_give(&drv->mtt_ranges, region->mtt, region->mtts);
	return err;
}

static void
give_numbers(struct hca_driver *drv, const struct driver_mr *region)
{
	driver_ranges_give(&drv->mtt_ranges, region->mtt, region->mtts);
	driver_ids_give(&drv->mpt_ids, HCA_KEY_INDEX(region->key));
}

int
driver_mr_quota(const struct hca_driver *drv, const struct hca_client *owner, uint32_t mrs,
		uint64_t mtts)
{
	int err = driver_quota(owner, DRIVER_MRS, mrs);

	return err == 0 ? driver_quota(owner, DRIVER_MTTS, mtts) : err;
}

static void
link_region(struct hca_driver *drv, struct driver_mr *region)
{
	struct hca_client *owner = region->owner;

	drv->mrs[HCA_KEY_INDEX(region->key)] = region;
	if (owner == NULL)
		return;
	DRIVER_LIST_ADD(owner->mrs, region);
	owner->count[DRIVER_MRS]++;
	owner->count[DRIVER_MTTS] += region->mtts;
}

static void
unlink_region(struct hca_driver *drv, struct driver_mr *region)
{
	struct hca_client *owner = region->owner;

	drv->mrs[HCA_KEY_INDEX(region->key)] = NULL;
	if (owner == NULL)
		return;
	DRIVER_LIST_REMOVE(region);
	owner->count[DRIVER_MRS]--;
	owner->count[DRIVER_MTTS] -= region->mtts;
}

uint32_t
driver_mr_entries(uint64_t pages)
{
	return pages != 0 ? (uint32_t)pages : 1;
}

void
driver_mr_describe(struct driver_mr *region, const struct hca_ctl_mr *mr,
		   const struct page_source *pages)
{
	region->pdn = mr->pdn;
	region->access = mr->access;
	region->va = mr->va;
	region->shift = mr->shift;
	region->length = mr->length;
	region->pages = pages->count;
	region->page_log = (uint8_t)pages->log;
	region->mtts = driver_mr_entries(pages->count);
}

struct driver_mr *
driver_mr_of(struct hca_client *client, uint32_t lkey)
{
	uint32_t index = HCA_KEY_INDEX(lkey);
	struct hca_driver *drv = client->drv;
	struct driver_mr *region = index < drv->mpt_ids.count ? drv->mrs[index] : NULL;

	if (region == NULL || region->key != lkey || region->owner != client || region->internal ||
	    region->window) {
		driver_fail(-EINVAL, "key %#x names no region of the client", lkey);
		return NULL;
	}
	return region;
}

/* null: a null region, for which mr has no address and no length. */
static int
create_mr(struct hca_driver *drv, struct hca_client *owner, const struct hca_ctl_mr *mr,
	  const uint64_t *list, bool null, struct driver_mr **out)
{
	struct page_source pages;
	struct driver_mr *region;
	int err = driver_mr_pages(drv, owner, mr, list, &pages);

	if (err == 0)
		err = driver_mr_quota(drv, owner, 1, driver_mr_entries(pages.count));
	if (err != 0)
		return err;
	region = calloc(1, sizeof(*region));
	if (region == NULL)
		return driver_no_memory("a region", sizeof(*region));
	region->owner = owner;
	region->null = null;
	driver_mr_describe(region, mr, &pages);
	err = take_numbers(drv, region);
	if (err != 0)
		goto err_free;
	err = driver_mr_write_mtts(drv, region->mtt, &pages);
	if (err == 0)
		err = driver_mr_write_mpt(drv, region);
	if (err != 0)
		goto err_numbers;
	link_region(drv, region);
	*out = region;
	return 0;

err_numbers:
	give_numbers(drv, region);
err_free:
	free(region);
	return err;
}

int
driver_mr_queue(struct hca_driver *drv, struct hca_client *owner, uint32_t pdn, uint64_t addr,
		uint64_t bytes, uint32_t access, struct driver_mr **out)
{
	struct hca_ctl_mr mr = {.va = addr, .length = bytes, .pdn = pdn, .access = access};
	int err;

	if ((addr & (DRIVER_PAGE - 1)) != 0)
		return driver_fail(-EINVAL, "the queue at %#llx is not aligned to a page",
				   (unsigned long long)addr);
	err = create_mr(drv, owner, &mr, NULL, false, out);
	if (err == 0)
		(*out)->internal = true;
	return err;
}

int
driver_mr_destroy(struct hca_driver *drv, struct driver_mr *mr, bool force)
{
	int err;

	if (mr == NULL)
		return 0;
	err = driver_take_back(drv, mr->owner, HCA_CMD_HW2SW_MPT, 0, HCA_KEY_INDEX(mr->key));
	if (err != 0 && !force)
		return err;
	unlink_region(drv, mr);
	give_numbers(drv, mr);
	free(mr);
	return 0;
}

static int
create_of_client(struct hca_client *client, const struct hca_ctl_mr *mr, const uint64_t *list,
		 bool null, struct hca_ctl_keys *keys)
{
	struct driver_pd *pd = driver_pd_of(client, mr->pdn);
	struct driver_mr *region = NULL;
	int err;

	if (pd == NULL)
		return driver_fail(-EINVAL, "PD %#x does not exist", mr->pdn);
	err = create_mr(client->drv, client, mr, list, null, &region);
	if (err != 0)
		return err;
	pd->users++;
	keys->lkey = region->key;
	keys->rkey = region->key;
	return 0;
}

int
driver_op_check_mr(struct hca_client *client, const struct hca_ctl_need *need,
		   struct hca_ctl_none *none)
{
	struct hca_driver *drv = client->drv;

	if (need->entries > UINT64_C(1) << drv->mtt_ranges.max_log)
		return driver_fail(-ENOMEM,
				   "a region of %llu pages, the device has entries for %llu",
				   (unsigned long long)need->entries,
				   1ull << drv->mtt_ranges.max_log);
	return driver_mr_quota(drv, client, need->regions, need->entries);
}

int
driver_op_reg_mr(struct hca_client *client, const struct hca_ctl_mr *mr, struct hca_ctl_keys *keys,
		 struct hca_ctl_extra *extra)
{
	return create_of_client(client, mr, extra != NULL ? extra->pages : NULL, false, keys);
}

int
driver_op_alloc_null_mr(struct hca_client *client, const uint32_t *pdn, struct hca_ctl_keys *keys)
{
	const struct hca_ctl_mr mr = {.pdn = *pdn, .access = HCA_ACCESS_LOCAL_WRITE};

	return create_of_client(client, &mr, NULL, true, keys);
}

int
driver_op_dereg_mr(struct hca_client *client, const uint32_t *lkey, struct hca_ctl_none *none)
{
	struct driver_mr *region = driver_mr_of(client, *lkey);
	struct driver_pd *pd;
	int err;

	if (region == NULL)
		return -EINVAL;
	pd = driver_pd_of(client, region->pdn);
	err = driver_mr_destroy(client->drv, region, false);
	if (err == 0 && pd != NULL)
		pd->users--;
	return err;
}

/* Whether work requests may use [addr, addr + length) of the region. */
static bool
contains(const struct driver_mr *region, uint64_t addr, uint64_t length)
{
	uint64_t start = region->access & HCA_ACCESS_ZERO_BASED ? 0 : region->va + region->shift;

	return length <= region->length && addr - start <= region->length - length;
}

int
driver_op_advise_mr(struct hca_client *client, const struct hca_ctl_advice *advice,
		    struct hca_ctl_none *none)
{
	const struct driver_mr *region = driver_mr_of(client, advice->lkey);

	if (driver_pd_of(client, advice->pdn) == NULL)
		return driver_fail(-EINVAL, "PD %#x does not exist", advice->pdn);
	if (region == NULL || region->pdn != advice->pdn)
		return driver_fail(-EFAULT, "key %#x names no region of the PD", advice->lkey);
	if (advice->write != 0 && (region->access & HCA_ACCESS_LOCAL_WRITE) == 0)
		return driver_fail(-EFAULT, "the region of key %#x is not writable", advice->lkey);
	if (!contains(region, advice->addr, advice->length))
		return driver_fail(-EFAULT, "%llu bytes at %#llx are outside of the region",
				   (unsigned long long)advice->length,
				   (unsigned long long)advice->addr);
	return 0;
}
