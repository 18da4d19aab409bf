/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc_memory_impl.h"
#include "ipc_watch.h"

#define PAGE_LOG 12u
#define HUGE_LOG 21u
#define GIANT_LOG 30u
#define PAGE_SIZE (UINT64_C(1) << PAGE_LOG)
#define MANY_PAGES 4096u /* a region of more pages uses larger pages, if they fit */
#define PAGES_MAX (UINT64_C(1) << 22)
#define ARENA_SLACK (UINT64_C(4) << 30) /* for alignment and holes */

/* ---- the arena ---- */

int
ipc_memory_create(const struct ipc_memory_config *config, struct ipc_memory **out)
{
	struct ipc_memory *m = calloc(1, sizeof(*m));
	void *base;
	int err = -ENOMEM;

	if (m == NULL)
		return ipc_fail(err, "no memory for a client");
	m->config = *config;
	m->bytes = config->bytes_max * 2 + ARENA_SLACK;
	m->segment = calloc(config->segments_max, sizeof(*m->segment));
	m->by_va = calloc(config->segments_max, sizeof(struct ipc_segment *));
	if (m->segment == NULL || m->by_va == NULL)
		goto err_free;
	base = mmap(NULL, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		goto err_free;
	m->base = (uintptr_t)base;
	m->next = m->base;
	err = ipc_guard_add(m);
	if (err != 0)
		goto err_unmap;
	*out = m;
	return 0;

err_unmap:
	munmap(base, m->bytes);
err_free:
	free(m->by_va);
	free(m->segment);
	free(m);
	return ipc_fail(err, "no addresses for a client's memory");
}

void
ipc_memory_destroy(struct ipc_memory *m)
{
	for (uint32_t i = 0; i < IPC_HOLD_BUCKETS; i++)
		while (m->holds[i] != NULL) {
			struct ipc_hold *hold = m->holds[i];

			m->holds[i] = hold->next;
			free(hold->segment);
			free(hold);
		}
	ipc_guard_remove(m); /* first, because these addresses may be reused at once */
	munmap((void *)(uintptr_t)m->base, m->bytes);
	ipc_maps_give(m->config.maps, m->count, 0);
	free(m->by_va);
	free(m->segment);
	free(m);
}

void
ipc_memory_forget_uar(struct ipc_memory *m)
{
	__atomic_store_n(&m->config.uar, 0, __ATOMIC_RELEASE);
}

uint64_t
ipc_memory_bus(const struct ipc_memory *m)
{
	return m->base;
}

uint64_t
ipc_memory_window(const struct ipc_memory *m)
{
	return m->bytes;
}

uint64_t
ipc_memory_attached(const struct ipc_memory *m)
{
	return m->attached;
}

/* ---- attach and detach ---- */

/* The first segment that ends after va, as an index of by_va */
static uint32_t
find_behind(const struct ipc_memory *m, uint64_t va)
{
	uint32_t low = 0, high = m->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (m->by_va[mid]->va + m->by_va[mid]->length - 1 < va)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct ipc_segment *
segment_at(const struct ipc_memory *m, uint64_t va)
{
	uint32_t i = find_behind(m, va);

	return i < m->count && m->by_va[i]->va <= va ? m->by_va[i] : NULL;
}

/* A segment in the arena that [at, at + length) would overlap, or NULL */
static const struct ipc_segment *
collision(const struct ipc_memory *m, uint64_t at, uint64_t length)
{
	for (uint32_t i = 0; i < m->count; i++) {
		const struct ipc_segment *s = m->by_va[i];

		if (at < s->bus + s->length && s->bus < at + length)
			return s;
	}
	return NULL;
}

/* The first free place after `from` that is congruent to va modulo align. 0: none. */
static uint64_t
place_from(const struct ipc_memory *m, uint64_t from, uint64_t va, uint64_t length, uint64_t align)
{
	uint64_t end = m->base + m->bytes, at = from;

	for (;;) {
		const struct ipc_segment *s;

		at += (va - at) & (align - 1);
		if (at >= end || length > end - at)
			return 0;
		s = collision(m, at, length);
		if (s == NULL)
			return at;
		at = s->bus + s->length;
	}
}

static uint64_t
place(struct ipc_memory *m, uint64_t va, uint64_t length)
{
	uint64_t align = UINT64_C(1) << (length >= UINT64_C(1) << GIANT_LOG ? GIANT_LOG : HUGE_LOG);
	uint64_t at = place_from(m, m->next, va, length, align);

	if (at == 0)
		at = place_from(m, m->base, va, length, align);
	return at;
}

static int
judge_range(const struct ipc_memory *m, const struct hca_ctl_segment *r, uint64_t page)
{
	uint32_t i;

	if (((r->va | r->length | r->offset) & (page - 1)) != 0 || r->length == 0 || r->va == 0 ||
	    r->va + r->length - 1 < r->va || r->offset + r->length - 1 < r->offset)
		return ipc_fail(-EINVAL, "a segment of %llu bytes at %#llx, pages are %llu",
				(unsigned long long)r->length, (unsigned long long)r->va,
				(unsigned long long)page);
	if (r->length > m->config.bytes_max - m->attached)
		return ipc_fail(-ENOMEM,
				"the client may attach %llu MiB ([quota] memory_mb), %llu are",
				(unsigned long long)(m->config.bytes_max >> 20),
				(unsigned long long)(m->attached >> 20));
	if (m->count >= m->config.segments_max)
		return ipc_fail(-ENOMEM, "the client has its %u segments", m->count);
	i = find_behind(m, r->va);
	if (i < m->count && m->by_va[i]->va - r->va < r->length)
		return ipc_fail(-EEXIST, "memory at %#llx is attached already",
				(unsigned long long)m->by_va[i]->va);
	if (i < m->count && m->by_va[i]->va <= r->va)
		return ipc_fail(-EEXIST, "memory at %#llx is attached already",
				(unsigned long long)r->va);
	return m->config.more != NULL ? m->config.more(m->config.more_arg, r->length) : 0;
}

static struct ipc_segment *
free_slot(struct ipc_memory *m)
{
	for (uint32_t i = 0; i < m->config.segments_max; i++)
		if (m->segment[i].length == 0)
			return &m->segment[i];
	return NULL;
}

static void
enter(struct ipc_memory *m, struct ipc_segment *s, const struct hca_ctl_segment *r, uint64_t bus,
      uint32_t page)
{
	uint32_t i = find_behind(m, r->va);

	s->va = r->va;
	s->bus = bus;
	s->holders = 0;
	s->lost = 0;
	s->page = page;
	__atomic_store_n(&s->length, r->length, __ATOMIC_RELEASE); /* read by the signal handler */
	memmove(&m->by_va[i + 1], &m->by_va[i], (m->count - i) * sizeof(m->by_va[0]));
	m->by_va[i] = s;
	m->count++;
	m->attached += r->length;
	m->next = bus + r->length;
}

/* Replace the mapping by an inaccessible one; the place stays reserved. */
static int
cover(uint64_t at, uint64_t bytes)
{
	return mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED
		       ? 0
		       : -errno;
}

int
ipc_memory_attach(struct ipc_memory *m, const struct hca_ctl_segment *request, int fd,
		  uint32_t *handle)
{
	struct ipc_segment *s = free_slot(m);
	uint64_t page, bus;
	void *at;
	int err = ipc_file_judge(request, fd, &page);

	if (err == 0)
		err = judge_range(m, request, page);
	if (err != 0)
		return err;
	bus = place(m, request->va, request->length);
	if (bus == 0 || s == NULL)
		return ipc_fail(-ENOMEM, "no addresses for %llu bytes",
				(unsigned long long)request->length);
	if (!ipc_maps_take(m->config.maps, m->count))
		return ipc_fail(-ENOMEM, "the client has %u segments, and all clients too many",
				m->count);
	at = mmap((void *)(uintptr_t)bus, request->length, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_FIXED, fd, (off_t)request->offset);
	if (at == MAP_FAILED) {
		err = page > PAGE_SIZE && errno == ENOMEM
			      ? ipc_fail(
					-ENOMEM,
					"the memory cannot be mapped: no pages of %llu KiB are free",
					(unsigned long long)page >> 10)
			      : ipc_fail(-errno, "the memory cannot be mapped: %s",
					 strerror(errno));
		ipc_maps_give(m->config.maps, m->count + 1, m->count);
		return err;
	}
	err = ipc_file_protect(request, fd, bus, page);
	if (err != 0) {
		cover(bus, request->length);
		ipc_maps_give(m->config.maps, m->count + 1, m->count);
		return err;
	}
	enter(m, s, request, bus, (uint32_t)page);
	*handle = (uint32_t)(s - m->segment);
	return 0;
}

int
ipc_memory_detach(struct ipc_memory *m, uint32_t handle)
{
	struct ipc_segment *s;
	uint32_t i;

	if (handle >= m->config.segments_max || m->segment[handle].length == 0)
		return ipc_fail(-EINVAL, "there is no segment %u", handle);
	s = &m->segment[handle];
	if (s->holders != 0)
		return ipc_fail(-EBUSY, "%u objects lie in the segment", s->holders);
	if (cover(s->bus, s->length) != 0)
		return ipc_fail(-errno, "the memory cannot be unmapped: %s", strerror(errno));
	i = find_behind(m, s->va);
	m->count--;
	ipc_maps_give(m->config.maps, m->count + 1, m->count);
	memmove(&m->by_va[i], &m->by_va[i + 1], (m->count - i) * sizeof(m->by_va[0]));
	m->attached -= s->length;
	__atomic_store_n(&s->length, 0, __ATOMIC_RELEASE);
	return 0;
}

/* ---- holds ---- */

struct ipc_hold *
ipc_hold_new(void)
{
	struct ipc_hold *hold = calloc(1, sizeof(*hold));

	if (hold == NULL)
		ipc_fail(-ENOMEM, "no memory");
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
hold_segment(struct ipc_hold *hold, struct ipc_segment *s)
{
	struct ipc_segment **grown;

	for (uint32_t i = hold->count; i-- > 0;)
		if (hold->segment[i] == s)
			return 0;
	grown = realloc(hold->segment, (hold->count + 1) * sizeof(struct ipc_segment *));
	if (grown == NULL)
		return ipc_fail(-ENOMEM, "no memory");
	hold->segment = grown;
	hold->segment[hold->count++] = s;
	s->holders++;
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
		s = segment_at(m, va);
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
populate(uint64_t bus, uint64_t bytes)
{
	if (madvise((void *)(uintptr_t)bus, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL)
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

	if (bytes == 0 || va + bytes - 1 < va || (va & (PAGE_SIZE - 1)) != 0)
		return ipc_fail(-EINVAL, "a queue of %llu bytes at %#llx",
				(unsigned long long)bytes, (unsigned long long)va);
	err = translate(m, hold, va, bytes, &last, bus);
	return err != 0 ? err : populate(*bus, (bytes + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1));
}

static uint64_t
pages_of(uint64_t va, uint64_t length, uint32_t log)
{
	return ((va + (length - 1)) >> log) - (va >> log) + 1;
}

/* Translate every page; runs of contiguous pages are populated at once. */
static int
translate_pages(struct ipc_memory *m, struct ipc_hold *hold, uint64_t *page, uint64_t count,
		uint64_t size)
{
	struct ipc_segment *last = NULL;
	uint64_t run = 0, run_bytes = 0;
	int err = 0;

	for (uint64_t i = 0; i < count && err == 0; i++) {
		uint64_t bus;

		if ((page[i] & (size - 1)) != 0)
			return ipc_fail(-EINVAL, "page %llu at %#llx is not aligned",
					(unsigned long long)i, (unsigned long long)page[i]);
		err = translate(m, hold, page[i], size, &last, &bus);
		if (err != 0)
			return err;
		page[i] = bus;
		if (bus == run + run_bytes) {
			run_bytes += size;
			continue;
		}
		if (run_bytes != 0 && bus != run)
			err = populate(run, run_bytes);
		run = bus;
		run_bytes = size;
	}
	return err != 0 || run_bytes == 0 ? err : populate(run, run_bytes);
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
		return ipc_fail(-ENOMEM, "a region of %llu pages", (unsigned long long)count);
	page = malloc(count * sizeof(*page));
	if (page == NULL)
		return ipc_fail(-ENOMEM, "no memory for %llu pages", (unsigned long long)count);
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
	static const uint32_t logs[] = {HUGE_LOG, PAGE_LOG};
	int err = -EPERM;

	if (mr->length == 0 && mr->npages == 0)
		return 0; /* no memory */
	if (mr->length == 0 || mr->va + mr->length - 1 < mr->va)
		return ipc_fail(-EINVAL, "a region of %llu bytes at %#llx",
				(unsigned long long)mr->length, (unsigned long long)mr->va);
	if (mr->npages != 0) {
		*out = list;
		if (mr->page_size < PAGE_SIZE || mr->page_size > UINT64_C(1) << GIANT_LOG ||
		    (mr->page_size & (mr->page_size - 1)) != 0)
			return ipc_fail(-EINVAL, "pages of %llu bytes",
					(unsigned long long)mr->page_size);
		return translate_pages(m, hold, list, mr->npages, mr->page_size);
	}
	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]) && err == -EPERM; i++) {
		if (logs[i] > PAGE_LOG && pages_of(mr->va, mr->length, PAGE_LOG) <= MANY_PAGES)
			continue;
		err = translate_range(m, hold, mr, logs[i], out);
		mr->page_size = UINT64_C(1) << logs[i];
		mr->npages = pages_of(mr->va, mr->length, logs[i]);
	}
	return err;
}
