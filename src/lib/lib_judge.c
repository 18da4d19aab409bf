/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <softhca/softhca.h>

#include "lib_error.h"
#include "lib_judge.h"
#include "lib_maps.h"
#include "lib_sys.h"

#define PAGE UINT64_C(4096)
#define HUGE_PAGE UINT64_C(0x200000)
#define MANY_PAGES 4096u /* a daemon uses larger pages for more (ipc_translate.c) */

/* Properties of the memory seen so far */
struct judged {
	bool writes;
	bool private, shared;
	uint64_t start; /* of the mapping that was seen last */
	struct hca_ctl_need *need;
};

static int
judge_mapping(struct judged *j, const struct lib_mapping *m, uint64_t va, uint64_t end)
{
	unsigned long long at = va;

	if (va < m->start)
		return lib_fail(-EFAULT, LIB_NOT_MAPPED, at);
	if (!m->read)
		return lib_fail(-EFAULT,
				"memory at %#llx cannot be read: mprotect() it with PROT_READ", at);
	if (j->writes && !m->write)
		return lib_fail(
			-EFAULT,
			"memory at %#llx cannot be written: mprotect() it with PROT_WRITE, or "
			"register it without local write",
			at);
	if (m->shared) {
		j->shared = true;
		return 0;
	}
	j->private = true;
	j->need->bytes += (end < m->end ? end : m->end) - va;
	j->need->segments += m->start != j->start;
	j->start = m->start;
	return 0;
}

/* [va, end) in whole pages */
static int
judge_range(struct judged *j, const struct lib_maps *maps, uint64_t va, uint64_t end)
{
	int err = 0;

	while (va < end && err == 0) {
		struct lib_mapping m;

		if (lib_maps_from(maps, va, &m) != 0)
			return lib_fail(-EFAULT, LIB_NOT_MAPPED, (unsigned long long)va);
		err = judge_mapping(j, &m, va, end);
		va = m.end;
	}
	return err;
}

static uint64_t
first_of(const struct hca_ctl_mr *request)
{
	return request->va & ~(PAGE - 1);
}

/* The end of the last page; the highest one is no memory. */
static uint64_t
end_of(const struct hca_ctl_mr *request)
{
	uint64_t last = (request->va + (request->length - 1)) | (PAGE - 1);

	return last != UINT64_MAX ? last + 1 : last;
}

/*
 * A daemon uses pages of 2 MiB where all of them lie in one segment. Private memory becomes a
 * segment of exactly the range, shared memory possibly a larger one.
 */
static uint64_t
entries_of(const struct judged *j, uint64_t first, uint64_t end)
{
	uint64_t pages = (end - first) / PAGE;

	if (pages <= MANY_PAGES || (j->private && !j->shared && (first | end) % HUGE_PAGE != 0))
		return pages;
	return (end - 1) / HUGE_PAGE - first / HUGE_PAGE + 1;
}

/* A run of pages of the list that lie side by side; *i: its first page, then the one behind it */
static uint64_t
run_of(const struct hca_ctl_mr *request, const uint64_t *pages, uint64_t *i)
{
	uint64_t size = request->page_size, first = pages[*i], bytes = 0;

	do
		bytes += size;
	while (++*i < request->npages && pages[*i] == first + bytes);
	return bytes;
}

static int
judge_pages(struct judged *j, const struct lib_maps *maps, const struct hca_ctl_mr *request,
	    const uint64_t *pages)
{
	int err = 0;

	for (uint64_t i = 0; i < request->npages && err == 0;) {
		uint64_t first = pages[i], bytes = run_of(request, pages, &i);

		if (first + bytes < first)
			err = lib_fail(-EINVAL,
				       "page %llu at %#llx wraps past the end of the address space",
				       (unsigned long long)i - 1, (unsigned long long)pages[i - 1]);
		else
			err = judge_range(j, maps, first, first + bytes);
	}
	return err;
}

int
lib_judge_memory(const struct hca_ctl_mr *request, const uint64_t *pages, struct hca_ctl_need *need)
{
	struct judged j = {.writes = (request->access & LIB_JUDGE_WRITES) != 0, .need = need};
	struct lib_maps maps;
	int err = lib_maps_begin(&maps);

	memset(need, 0, sizeof(*need));
	if (err != 0)
		return err;
	if (pages != NULL)
		err = judge_pages(&j, &maps, request, pages);
	else
		err = judge_range(&j, &maps, first_of(request), end_of(request));
	lib_maps_end(&maps);
	need->entries = pages != NULL ? request->npages
				      : entries_of(&j, first_of(request), end_of(request));
	return err;
}

static int
touch_range(uint64_t va, uint64_t bytes)
{
	if (lib_sys_madvise((void *)(uintptr_t)va, bytes, MADV_POPULATE_READ) == 0)
		return 0;
	/* EINVAL: memory of a device, or a kernel before 5.14 */
	if (errno != EFAULT && errno != EHWPOISON)
		return 0;
	return lib_fail(
		-EFAULT,
		"%llu bytes at %#llx: a page of them cannot be read, as it lies behind the end of "
		"a file or has failed",
		(unsigned long long)bytes, (unsigned long long)va);
}

int
lib_judge_touch(const struct hca_ctl_mr *request, const uint64_t *pages)
{
	int err = 0;

	if (pages == NULL)
		return touch_range(first_of(request), end_of(request) - first_of(request));
	for (uint64_t i = 0; i < request->npages && err == 0;) {
		uint64_t first = pages[i];

		err = touch_range(first, run_of(request, pages, &i));
	}
	return err;
}
