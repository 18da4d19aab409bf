/* SPDX-License-Identifier: BSD-3-Clause */

/* Protection domains, memory regions, and the memory of queues. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi_cmd.h"
#include "abi_ctx.h"
#include "lib_judge.h"
#include "lib_sys.h"
#include "lib_types.h"

#define LIB_PAGE UINT64_C(4096)
#define LIB_PAGE_MAX (UINT64_C(1) << HCA_MAX_PAGE_LOG)

void *
lib_map(struct lib_context *ctx, size_t bytes)
{
	void *mem;

	if (ctx->ops->attaches)
		return lib_share_queue(ctx, bytes);
	mem = lib_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return mem != MAP_FAILED ? mem : NULL;
}

void
lib_unmap(struct lib_context *ctx, void *mem, size_t bytes)
{
	if (mem == NULL)
		return;
	if (ctx->ops->attaches)
		lib_share_queue_free(mem);
	else
		lib_sys_munmap(mem, bytes);
}

struct softhca_pd *
softhca_alloc_pd(struct softhca_context *pub)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct lib_pd *pd = lib_object_new(ctx, sizeof(*pd), "a PD");

	if (pd == NULL)
		return NULL;
	pd->pub.context = pub;
	if (LIB_CALL(ctx, ALLOC_PD, NULL, &pd->pub.handle) != 0)
		return lib_object_refused(ctx, pd);
	return &pd->pub;
}

int
softhca_dealloc_pd(struct softhca_pd *pub)
{
	struct lib_context *ctx = lib_ctx(pub->context);
	uint32_t ahs = __atomic_load_n(&((struct lib_pd *)pub)->ahs, __ATOMIC_RELAXED);
	int err;

	if (ahs != 0)
		return lib_fail(-EBUSY, "%u address handles use PD %u: destroy them first", ahs,
				pub->handle);
	err = LIB_CALL(ctx, DEALLOC_PD, &pub->handle, NULL);
	if (err == 0)
		lib_object_free(ctx, pub);
	return err;
}

/* Flags that the device does not support */
#define IGNORED \
	(SOFTHCA_ACCESS_HUGETLB | SOFTHCA_ACCESS_OPTIONAL_RANGE | SOFTHCA_ACCESS_KEEP_PRIVATE)

static int
check_on_demand(const struct lib_context *ctx)
{
	if (ctx->info.slow_memory != 0)
		return 0;
	return lib_fail(-EOPNOTSUPP,
			"on-demand paging is offered by daemons with slow_memory = yes "
			"in section [memory] of their configuration");
}

static int
check_flush(const struct lib_context *ctx, uint32_t access)
{
	if ((ctx->info.flags & HCA_CAP_FLUSH) == 0)
		return lib_fail(-EOPNOTSUPP, "the daemon has no FLUSH: upgrade the daemon");
	if ((access & SOFTHCA_ACCESS_FLUSH_PERSISTENT) != 0)
		return lib_fail(-EOPNOTSUPP,
				"FLUSH_PERSISTENT: no memory of the device is persistent; use "
				"FLUSH_GLOBAL");
	return 0;
}

static int
check_access(const struct lib_context *ctx, uint32_t access)
{
	uint32_t writes = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_ATOMIC;
	uint32_t known = writes | SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
			 SOFTHCA_ACCESS_MW_BIND | SOFTHCA_ACCESS_ZERO_BASED |
			 SOFTHCA_ACCESS_ON_DEMAND | SOFTHCA_ACCESS_FLUSH_GLOBAL | IGNORED;

	if ((access & (SOFTHCA_ACCESS_FLUSH_GLOBAL | SOFTHCA_ACCESS_FLUSH_PERSISTENT)) != 0 &&
	    check_flush(ctx, access) != 0)
		return -EOPNOTSUPP;
	if ((access & ~known) != 0)
		return lib_fail(-EINVAL, "access flags %#x: expected a set of %#x", access, known);
	if ((access & writes) != 0 && (access & SOFTHCA_ACCESS_LOCAL_WRITE) == 0)
		return lib_fail(
			-EINVAL,
			"access flags %#x: remote write and atomic access need local write (%#x)",
			access, SOFTHCA_ACCESS_LOCAL_WRITE);
	return access & SOFTHCA_ACCESS_ON_DEMAND ? check_on_demand(ctx) : 0;
}

/* The whole address space, in verbs: implicit on-demand paging */
static int
check_implicit(const struct hca_ctl_mr *request)
{
	if ((request->access & SOFTHCA_ACCESS_ON_DEMAND) == 0 || request->length != UINT64_MAX)
		return 0;
	return lib_fail(
		-EOPNOTSUPP,
		"on-demand paging of the whole address space is not offered: register the ranges "
		"that are used");
}

static int
check_range(const struct hca_ctl_mr *request)
{
	uint64_t iova = request->va + request->shift, last = request->length - 1;

	if ((request->shift & (LIB_PAGE - 1)) != 0)
		return lib_fail(
			-EINVAL,
			"address %#llx and iova %#llx have different offsets in a page of %u "
			"bytes: they must be equal",
			(unsigned long long)request->va, (unsigned long long)iova,
			(unsigned int)LIB_PAGE);
	if (request->length == 0 || (request->va + last >= request->va && iova + last >= iova))
		return 0;
	return lib_fail(-EINVAL,
			"a region of %llu bytes at %#llx wraps past the end of the address space",
			(unsigned long long)request->length, (unsigned long long)iova);
}

/* Update the address and length as the program sees them, as far as flags say. */
static void
describe(struct lib_mr *mr, uint32_t flags, const struct hca_ctl_mr *request)
{
	if (flags & SOFTHCA_REREG_MR_CHANGE_TRANSLATION) {
		mr->va = request->va + request->shift;
		mr->slow = (request->access & HCA_CTL_ACCESS_FOREIGN) != 0;
		mr->pub.length = request->length;
	}
	if (flags & SOFTHCA_REREG_MR_CHANGE_ACCESS) {
		mr->access = request->access & ~HCA_CTL_ACCESS_FOREIGN;
		mr->on_demand = (request->access & SOFTHCA_ACCESS_ON_DEMAND) != 0;
		mr->zero_based = (request->access & SOFTHCA_ACCESS_ZERO_BASED) != 0;
	}
	mr->pub.addr = mr->zero_based ? 0 : mr->va;
}

/* Whether private memory may be converted; the process may forbid it for all. */
static bool
may_convert(uint32_t access)
{
	const char *slow = secure_getenv("SOFTHCA_SLOW_MR");

	return (access & SOFTHCA_ACCESS_KEEP_PRIVATE) == 0 &&
	       (slow == NULL || slow[0] == '\0' || strcmp(slow, "0") == 0);
}

/* Memory of a region, made ready for the device */
struct region_memory {
	struct lib_cover *cover;
	const uint64_t *pages; /* to be sent with the request; NULL: none */
	uint64_t *list;	       /* to be freed after that */
};

/* From the first page to the last, including the gaps between them */
static int
take_foreign_pages(struct lib_context *ctx, const struct hca_ctl_mr *request, const uint64_t *pages,
		   struct lib_cover **cover)
{
	uint64_t first = UINT64_MAX, end = 0;

	for (uint64_t i = 0; i < request->npages; i++) {
		if (pages[i] + request->page_size < pages[i])
			return lib_fail(
				-EINVAL,
				"page %llu at %#llx wraps past the end of the address space",
				(unsigned long long)i, (unsigned long long)pages[i]);
		if (pages[i] < first)
			first = pages[i];
		if (pages[i] + request->page_size > end)
			end = pages[i] + request->page_size;
	}
	return lib_cover_take_foreign(ctx, first, end - first, cover);
}

/* Share the memory with the daemon, and write the names that the daemon has for it. */
static int
share_pages(struct lib_context *ctx, bool convert, struct hca_ctl_mr *request,
	    const uint64_t *pages, struct region_memory *memory)
{
	int err;

	if (pages == NULL)
		err = lib_cover_take(ctx, request->va, request->length, convert, &memory->cover);
	else
		err = lib_cover_take_pages(ctx, pages, request->npages, request->page_size, convert,
					   &memory->cover);
	if (err != 0)
		return err;
	err = lib_cover_name(memory->cover, pages != NULL, request, &memory->list);
	if (err != 0)
		lib_cover_drop(memory->cover);
	return err;
}

/* Less than this is exchanged before the daemon's quota is asked: it is given back quickly. */
#define ASK_BYTES (UINT64_C(16) * LIB_PAGE)

/* Whether the daemon has room for the region, before its memory is exchanged. */
static int
ask_quota(struct lib_context *ctx, const struct hca_ctl_need *need)
{
	if (need->bytes < ASK_BYTES)
		return 0;
	return LIB_CALL(ctx, CHECK_MR, need, NULL);
}

static int
take_foreign(struct lib_context *ctx, struct hca_ctl_mr *request, const uint64_t *pages,
	     struct lib_cover **cover)
{
	request->access |= HCA_CTL_ACCESS_FOREIGN;
	if (pages != NULL)
		return take_foreign_pages(ctx, request, pages, cover);
	return lib_cover_take_foreign(ctx, request->va, request->length, cover);
}

/*
 * Prepare the memory of a region, which is judged first. Embedded: that is all. Otherwise share it
 * with the daemon, or leave it in place as foreign memory, which is noted in the request; on-demand
 * memory always. access: as the program passed it; more: regions that this will add
 */
static int
share(struct lib_context *ctx, uint32_t access, uint32_t more, struct hca_ctl_mr *request,
      const uint64_t *pages, struct region_memory *memory)
{
	bool convert = may_convert(access);
	struct hca_ctl_need need;
	int err;

	*memory = (struct region_memory){.pages = pages};
	if (request->length == 0)
		return 0;
	if ((access & SOFTHCA_ACCESS_ON_DEMAND) != 0)
		return take_foreign(ctx, request, pages, &memory->cover);
	err = lib_judge_memory(request, pages, &need);
	if (err == 0 && !ctx->ops->attaches)
		return lib_judge_touch(request, pages);
	need.regions = more;
	if (err == 0 && convert)
		err = ask_quota(ctx, &need);
	if (err == 0)
		err = share_pages(ctx, convert, request, pages, memory);
	if (err == 0 && memory->list != NULL)
		memory->pages = memory->list;
	return err == -EOPNOTSUPP ? take_foreign(ctx, request, pages, &memory->cover) : err;
}

static struct softhca_mr *
register_region(struct softhca_pd *pd, uint32_t access, struct hca_ctl_mr *request,
		const uint64_t *pages)
{
	struct lib_context *ctx = lib_ctx(pd->context);
	uint64_t at = pages == NULL ? request->va : 0;
	struct region_memory memory;
	struct hca_ctl_extra extra;
	struct hca_ctl_keys keys;
	struct lib_mr *mr;
	int err;

	request->access = access & ~(uint32_t)IGNORED;
	if (check_access(ctx, access) != 0 || check_implicit(request) != 0 ||
	    check_range(request) != 0)
		return NULL;
	mr = lib_object_new(ctx, sizeof(*mr), "an MR");
	if (mr == NULL)
		return NULL;
	err = share(ctx, access, 1, request, pages, &memory);
	if (err != 0)
		goto err_free;
	extra.pages = memory.pages;
	err = LIB_CALL_EXTRA(ctx, REG_MR, request, &keys, &extra);
	free(memory.list);
	if (err != 0)
		goto err_cover;
	mr->ctx = ctx;
	mr->cover = memory.cover;
	mr->memory = at;
	mr->pd = pd;
	mr->pub = (struct softhca_mr){
		.context = pd->context,
		.pd = pd,
		.handle = HCA_KEY_INDEX(keys.lkey),
		.lkey = keys.lkey,
		.rkey = keys.rkey,
	};
	describe(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION | SOFTHCA_REREG_MR_CHANGE_ACCESS, request);
	return &mr->pub;

err_cover:
	lib_cover_drop(memory.cover);
err_free:
	lib_object_free(ctx, mr);
	errno = -err;
	return NULL;
}

struct softhca_mr *
softhca_reg_mr_iova(struct softhca_pd *pd, void *addr, uint64_t length, uint64_t iova,
		    uint32_t access)
{
	struct hca_ctl_mr request = {
		.va = (uintptr_t)addr,
		.length = length,
		.shift = iova - (uintptr_t)addr,
		.pdn = pd->handle,
	};

	return register_region(pd, access, &request, NULL);
}

struct softhca_mr *
softhca_reg_mr(struct softhca_pd *pd, void *addr, uint64_t length, uint32_t access)
{
	return softhca_reg_mr_iova(pd, addr, length, (uintptr_t)addr, access);
}

/* Check the number of pages before the list is built. */
static int
check_pages(const struct hca_ctl_mr *request)
{
	uint64_t size = request->page_size, in_page = request->va & (size - 1), last;

	if (size < LIB_PAGE || size > LIB_PAGE_MAX || (size & (size - 1)) != 0)
		return lib_fail(-EINVAL,
				"pages of %llu bytes: expected a power of two from %llu to %llu",
				(unsigned long long)size, (unsigned long long)LIB_PAGE,
				(unsigned long long)LIB_PAGE_MAX);
	if (request->length == 0)
		return lib_fail(-EINVAL, "length 0: a region of pages has at least one byte");
	if (check_range(request) != 0)
		return -EINVAL;
	last = request->length - 1;
	/* in two steps: in_page + length may overflow */
	if (request->npages != last / size + (in_page + last % size) / size + 1)
		return lib_fail(-EINVAL, "%llu pages of %llu bytes for a region of %llu",
				(unsigned long long)request->npages, (unsigned long long)size,
				(unsigned long long)request->length);
	return 0;
}

struct softhca_mr *
softhca_reg_mr_pages(struct softhca_pd *pd, uint64_t va, uint64_t length, uint64_t page_size,
		     void *const pages[], uint64_t npages, uint32_t access)
{
	struct hca_ctl_mr request = {
		.va = va,
		.length = length,
		.page_size = page_size,
		.npages = npages,
		.pdn = pd->handle,
	};
	struct softhca_mr *mr;
	uint64_t *list;

	if (npages == 0 || npages > SIZE_MAX / sizeof(*list) || pages == NULL) {
		lib_fail(-EINVAL, "%llu pages at %p: expected a list of at least one",
			 (unsigned long long)npages, (const void *)pages);
		return NULL;
	}
	if (check_pages(&request) != 0)
		return NULL;
	list = malloc(npages * sizeof(*list));
	if (list == NULL) {
		lib_no_memory("a list of pages", npages * sizeof(*list));
		return NULL;
	}
	for (uint64_t i = 0; i < npages; i++)
		list[i] = (uintptr_t)pages[i];
	mr = register_region(pd, access, &request, list);
	free(list);
	return mr;
}

struct softhca_mr *
softhca_alloc_null_mr(struct softhca_pd *pd)
{
	struct lib_context *ctx = lib_ctx(pd->context);
	struct lib_mr *mr = lib_object_new(ctx, sizeof(*mr), "a null MR");
	struct hca_ctl_keys keys;

	if (mr == NULL)
		return NULL;
	if (LIB_CALL(ctx, ALLOC_NULL_MR, &pd->handle, &keys) != 0)
		return lib_object_refused(ctx, mr);
	mr->ctx = ctx;
	mr->pd = pd;
	mr->pub = (struct softhca_mr){
		.context = pd->context,
		.pd = pd,
		.handle = HCA_KEY_INDEX(keys.lkey),
		.length = UINT64_MAX,
		.lkey = keys.lkey,
		.rkey = keys.rkey,
	};
	return &mr->pub;
}

int
softhca_dereg_mr(struct softhca_mr *pub)
{
	struct lib_mr *mr = (struct lib_mr *)pub;
	int err = mr->imported ? 0 : LIB_CALL(mr->ctx, DEREG_MR, &pub->lkey, NULL);

	if (err != 0)
		return err;
	lib_cover_drop(mr->cover);
	lib_object_free(mr->ctx, mr);
	return 0;
}

int
softhca_mr_is_slow(const struct softhca_mr *pub)
{
	return ((const struct lib_mr *)pub)->slow;
}

/*
 * For a new translation: the kind that access selects, or on demand if the region is on demand
 * already.
 */
static uint32_t
kept_access(const struct lib_mr *mr, uint32_t access)
{
	access &= ~(uint32_t)SOFTHCA_ACCESS_ON_DEMAND;
	return mr->on_demand ? access | SOFTHCA_ACCESS_ON_DEMAND : access;
}

/* Rights to write that the region did not have, over the memory it has */
static int
judge_rights(const struct lib_mr *mr, uint32_t access)
{
	const struct hca_ctl_mr request = {
		.va = mr->memory,
		.length = mr->pub.length,
		.access = access,
	};
	struct hca_ctl_need need;

	if ((access & LIB_JUDGE_WRITES) == 0 || (mr->access & LIB_JUDGE_WRITES) != 0 ||
	    mr->memory == 0 || mr->pub.length == 0)
		return 0;
	return lib_judge_memory(&request, NULL, &need);
}

int
softhca_rereg_mr(struct softhca_mr *pub, uint32_t flags, struct softhca_pd *pd, void *addr,
		 uint64_t length, uint32_t access)
{
	struct lib_mr *mr = (struct lib_mr *)pub;
	struct lib_context *ctx = mr->ctx;
	struct hca_ctl_rereg request = {
		.lkey = pub->lkey,
		.flags = flags,
		.mr = {.va = (uintptr_t)addr,
		       .length = length,
		       .access = access & ~(uint32_t)IGNORED},
	};
	struct region_memory memory = {NULL};
	struct hca_ctl_extra extra;
	struct hca_ctl_keys keys;
	int err;

	if (mr->imported)
		return lib_fail(
			-EINVAL,
			"region %#x was imported: only the context that registered it can change "
			"it",
			pub->handle);
	if (flags & SOFTHCA_REREG_MR_CHANGE_PD) {
		if (pd == NULL || pd->context != &ctx->pub)
			return lib_fail(
				-EINVAL,
				"the new PD of region %#x is NULL, or of another context: pass one "
				"of the context of the region",
				pub->handle);
		request.mr.pdn = pd->handle;
	}
	if (flags & SOFTHCA_REREG_MR_CHANGE_ACCESS) {
		err = check_access(ctx, access);
		if (err != 0)
			return err;
		if ((flags & SOFTHCA_REREG_MR_CHANGE_TRANSLATION) == 0)
			err = judge_rights(mr, access);
		if (err != 0)
			return err;
	} else {
		access = kept_access(mr, access);
		request.mr.access = mr->access; /* by which its memory is judged */
	}
	if (flags & SOFTHCA_REREG_MR_CHANGE_TRANSLATION) {
		err = check_range(&request.mr);
		if (err == 0)
			err = share(ctx, access, 0, &request.mr, NULL, &memory);
		if (err != 0)
			return err;
	}
	extra.pages = memory.pages;
	err = LIB_CALL_EXTRA(ctx, REREG_MR, &request, &keys, &extra);
	free(memory.list);
	if (err != 0) {
		lib_cover_drop(memory.cover);
		return err;
	}
	if (flags & SOFTHCA_REREG_MR_CHANGE_TRANSLATION) {
		lib_cover_drop(mr->cover);
		mr->cover = memory.cover;
		mr->memory = (uintptr_t)addr;
	}
	pub->handle = HCA_KEY_INDEX(keys.lkey);
	pub->lkey = keys.lkey;
	pub->rkey = keys.rkey;
	if (flags & SOFTHCA_REREG_MR_CHANGE_PD)
		pub->pd = mr->pd = pd;
	describe(mr, flags, &request.mr);
	return 0;
}

int
softhca_advise_mr(struct softhca_pd *pd, uint32_t advice, uint32_t flags,
		  const struct softhca_sge *sg_list, uint32_t num_sge)
{
	struct lib_context *ctx = lib_ctx(pd->context);
	int err = check_on_demand(ctx);

	if (err == 0 && advice > SOFTHCA_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		err = lib_fail(-EOPNOTSUPP, "advice %u: expected 0 to %u", advice,
			       SOFTHCA_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT);
	if (err == 0 && (flags & ~(uint32_t)SOFTHCA_ADVISE_MR_FLAG_FLUSH) != 0)
		err = lib_fail(-EINVAL, "flags %#x of an advice: expected 0 or %#x", flags,
			       SOFTHCA_ADVISE_MR_FLAG_FLUSH);
	if (err == 0 && (num_sge == 0 || sg_list == NULL))
		err = lib_fail(-EINVAL, "%u ranges at %p: an advice names at least one", num_sge,
			       (const void *)sg_list);
	for (uint32_t i = 0; i < num_sge && err == 0; i++) {
		const struct hca_ctl_advice request = {
			.addr = sg_list[i].addr,
			.length = sg_list[i].length,
			.pdn = pd->handle,
			.lkey = sg_list[i].lkey,
			.write = advice == SOFTHCA_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		};

		err = LIB_CALL(ctx, ADVISE_MR, &request, NULL);
	}
	return err;
}
