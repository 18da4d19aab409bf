/* SPDX-License-Identifier: BSD-3-Clause */

/* The segments that objects hold, and their pages as bus addresses. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ipc_memory_impl.h"

#define MANY_PAGES 4096u /* a region of more pages uses larger pages, if they fit */
#define PAGES_MAX (UINT64_C(1) << 22)

/* ---- holds ---- */

struct ipc_hold *
ipc_hold_new(void)
{
	static uint64_t last;
	struct ipc_hold *hold = calloc(1, sizeof(*hold));

	if (hold == NULL)
		ipc_no_memory("an object", sizeof(*hold));
	else
		hold->id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	return hold;
}

void
ipc_hold_drop(struct ipc_memory *m, struct ipc_hold *hold)
{
	if (hold == NULL)
		return;
	for (uint32_t i = 0; i < hold->count; i++)
		hold->segment[i]->holders--;
	free(hold->segment);
	free(hold);
}

static struct ipc_hold **
bucket(struct ipc_memory *m, enum ipc_holder kind, uint32_t number)
{
	/* the low byte of a key is the consumer's, the index is above it */
	return &m->holds[(number ^ number >> 8 ^ (uint32_t)kind << 5) % IPC_HOLD_BUCKETS];
}

void
ipc_hold_bind(struct ipc_memory *m, struct ipc_hold *hold, enum ipc_holder kind, uint32_t number)
{
	struct ipc_hold **head = bucket(m, kind, number);

	hold->kind = kind;
	hold->number = number;
	hold->next = *head;
	*head = hold;
}

struct ipc_foreign_region *
ipc_hold_foreign(struct ipc_hold *hold)
{
	return &hold->foreign;
}

struct ipc_hold *
ipc_hold_find(struct ipc_memory *m, enum ipc_holder kind, uint32_t number)
{
	struct ipc_hold *hold = *bucket(m, kind, number);

	while (hold != NULL && (hold->kind != kind || hold->number != number))
		hold = hold->next;
	return hold;
}

struct ipc_hold *
ipc_hold_take(struct ipc_memory *m, enum ipc_holder kind, uint32_t number)
{
	struct ipc_hold **link = bucket(m, kind, number);
	struct ipc_hold *hold;

	while (*link != NULL && ((*link)->kind != kind || (*link)->number != number))
		link = &(*link)->next;
	hold = *link;
	if (hold != NULL)
		*link = hold->next;
	return hold;
}

static int
hold_grow(struct ipc_hold *hold)
{
	uint32_t room = hold->room * 2 + 1;
	struct ipc_segment **grown;

	if (hold->count < hold->room)
		return 0;
	grown = realloc(hold->segment, room * sizeof(struct ipc_segment *));
	if (grown == NULL)
		return ipc_no_memory("an object", room * sizeof(*grown));
	hold->segment = grown;
	hold->room = room;
	return 0;
}

static int
hold_segment(struct ipc_hold *hold, struct ipc_segment *s)
{
	if (s->held_by == hold->id)
		return 0;
	if (hold_grow(hold) != 0)
		return -ENOMEM;
	s->held_by = hold->id;
	hold->segment[hold->count++] = s;
	s->holders++;
	return 0;
}

int
ipc_hold_writable(const struct ipc_hold *hold)
{
	for (uint32_t i = 0; i < hold->count; i++)
		if (hold->segment[i]->read_only)
			return ipc_fail(-EFAULT, "memory at %#llx is attached for reading alone",
					(unsigned long long)hold->segment[i]->va);
	return 0;
}

/* ---- translation ---- */

static int
not_attached(uint64_t va)
{
	return ipc_fail(-EPERM, "memory at %#llx is not attached", (unsigned long long)va);
}

/* Translate a piece inside one segment. *last: the last segment found, tried first */
static int
translate(struct ipc_memory *m, struct ipc_hold *hold, uint64_t va, uint64_t bytes,
	  struct ipc_segment **last, uint64_t *bus)
{
	struct ipc_segment *s = *last;

	if (s == NULL || va < s->va || va - s->va >= s->length) {
		s = ipc_arena_at(m, va);
		if (s == NULL)
			return not_attached(va);
		if (hold_segment(hold, s) != 0)
			return -ENOMEM;
		*last = s;
	}
	if (bytes > s->length - (va - s->va))
		return not_attached(s->va + s->length);
	*bus = s->bus + (va - s->va);
	return 0;
}

/*
 * The client has allocated the pages (ipc_watch.h): enter them into this process's page tables,
 * because faults would cost the device's lcores time. Not on kernels without the call (before
 * 5.14).
 */
static int
populate(const struct ipc_segment *s, uint64_t bus, uint64_t bytes)
{
	int advice = s->by_reading ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;

	if (madvise((void *)(uintptr_t)bus, bytes, advice) == 0 || errno == EINVAL)
		return 0;
	return errno == EFAULT ? ipc_fail(-EFAULT, "the memory has holes: it is to be filled "
						   "before it is registered")
			       : ipc_fail(-ENOMEM, "the memory has no pages: %s", strerror(errno));
}

int
ipc_translate(struct ipc_memory *m, struct ipc_hold *hold, uint64_t va, uint64_t bytes,
	      uint64_t *bus)
{
	struct ipc_segment *last = NULL;
	int err;

	if (bytes == 0 || va + bytes - 1 < va || (va & (IPC_PAGE - 1)) != 0)
		return ipc_fail(
			-EINVAL,
			"a queue of %llu bytes at %#llx: must begin at a page, not be empty",
			(unsigned long long)bytes, (unsigned long long)va);
	err = translate(m, hold, va, bytes, &last, bus);
	return err != 0 ? err : populate(last, *bus, (bytes + IPC_PAGE - 1) & ~(IPC_PAGE - 1));
}

static uint64_t
pages_of(uint64_t va, uint64_t length, uint32_t log)
{
	return ((va + (length - 1)) >> log) - (va >> log) + 1;
}

/* Contiguous pages of one segment, which are populated at once */
struct run {
	const struct ipc_segment *segment;
	uint64_t bus, bytes;
};

static int
run_add(struct run *run, const struct ipc_segment *s, uint64_t bus, uint64_t size)
{
	int err = 0;

	if (s == run->segment && bus == run->bus + run->bytes) {
		run->bytes += size;
		return 0;
	}
	if (run->bytes != 0)
		err = populate(run->segment, run->bus, run->bytes);
	*run = (struct run){s, bus, size};
	return err;
}

static int
translate_pages(struct ipc_memory *m, struct ipc_hold *hold, uint64_t *page, uint64_t count,
		uint64_t size)
{
	struct ipc_segment *last = NULL;
	struct run run = {0};
	int err = 0;

	for (uint64_t i = 0; i < count && err == 0; i++) {
		uint64_t bus = 0;

		if ((page[i] & (size - 1)) != 0)
			return ipc_fail(-EINVAL, "page %llu at %#llx is not aligned",
					(unsigned long long)i, (unsigned long long)page[i]);
		err = translate(m, hold, page[i], size, &last, &bus);
		if (err != 0)
			return err;
		page[i] = bus;
		err = run_add(&run, last, bus, size);
	}
	return err != 0 || run.bytes == 0 ? err : populate(run.segment, run.bus, run.bytes);
}

/* [va, va + length) in pages of 2^log bytes. -EPERM also if such pages would exceed the segment. */
static int
translate_range(struct ipc_memory *m, struct ipc_hold *hold, const struct hca_ctl_mr *mr,
		uint32_t log, uint64_t **out)
{
	uint64_t count = pages_of(mr->va, mr->length, log);
	uint64_t first = mr->va >> log << log;
	uint64_t *page;
	int err;

	if (count > PAGES_MAX)
		return ipc_fail(-ENOMEM, "a region of %llu pages: at most %llu; use larger pages",
				(unsigned long long)count, (unsigned long long)PAGES_MAX);
	page = malloc(count * sizeof(*page));
	if (page == NULL)
		return ipc_no_memory("a list of pages", count * sizeof(*page));
	for (uint64_t i = 0; i < count; i++)
		page[i] = first + (i << log);
	err = translate_pages(m, hold, page, count, UINT64_C(1) << log);
	if (err != 0)
		free(page);
	else
		*out = page;
	return err;
}

int
ipc_translate_mr(struct ipc_memory *m, struct ipc_hold *hold, struct hca_ctl_mr *mr, uint64_t *list,
		 uint64_t **out)
{
	static const uint32_t logs[] = {IPC_HUGE_LOG, IPC_PAGE_LOG};
	int err = -EPERM;

	if (mr->length == 0 && mr->npages == 0)
		return 0; /* no memory */
	if (mr->length == 0 || mr->va + mr->length - 1 < mr->va)
		return ipc_fail(
			-EINVAL,
			"a region of %llu bytes at %#llx passes the end of the address space",
			(unsigned long long)mr->length, (unsigned long long)mr->va);
	if (mr->npages != 0) {
		*out = list;
		if (mr->page_size < IPC_PAGE || mr->page_size > UINT64_C(1) << IPC_GIANT_LOG ||
		    (mr->page_size & (mr->page_size - 1)) != 0)
			return ipc_fail(
				-EINVAL,
				"pages of %llu bytes: must be a power of two, 4 KiB to 1 GiB",
				(unsigned long long)mr->page_size);
		return translate_pages(m, hold, list, mr->npages, mr->page_size);
	}
	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]) && err == -EPERM; i++) {
		if (logs[i] > IPC_PAGE_LOG &&
		    pages_of(mr->va, mr->length, IPC_PAGE_LOG) <= MANY_PAGES)
			continue;
		err = translate_range(m, hold, mr, logs[i], out);
		mr->page_size = UINT64_C(1) << logs[i];
		mr->npages = pages_of(mr->va, mr->length, logs[i]);
	}
	return err;
}
