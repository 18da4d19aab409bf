/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Pages that no region covers any more: private memory again where the program has them mapped, or
 * freed.
 */

#include <errno.h>
#include <sys/mman.h>

#include "lib_hold.h"
#include "lib_share_impl.h"
#include "lib_sparse.h"
#include "lib_sys.h"

#define RETRIES 8u /* pieces per call of lib_back_retry() */
/* A run with a page that cannot be accessed is searched in parts of this size. */
#define BISECT_MAX UINT64_C(0x200000)
#define RETRY_WAIT_MAX 1023u
/* The memory that exists twice while pages go back */
#define BACK_STEP UINT64_C(0x1000000)

/*
 * Some pages can be made private later: when there are fewer mappings, or a guard is removed.
 * Others never can. Each attempt without success doubles the number of calls until the next.
 */
static struct {
	uint64_t pages; /* stuck */
	uint32_t wait, calls;
	uint32_t next; /* piece to begin with */
} retry;

/* One call of lib_back_pages() or the like */
struct back {
	struct lib_share *share;
	struct lib_maps maps;
	struct lib_mapping *list; /* all mappings; NULL: not read yet */
	uint32_t count;
	size_t bytes;
};

/* *done: bytes that are private now, also after an error. */
static int
back_step(const struct lib_share *share, const struct lib_mapping *m, uint64_t va, uint64_t bytes,
	  void *fresh, uint64_t *done)
{
	int err;

	*done = 0;
	if (m->write)
		return lib_convert_exchange(m, va, bytes, fresh, done);
	err = lib_sparse_read(share->sparse, lib_convert_offset_of(m, va), fresh, bytes);
	if (err == 0)
		err = lib_convert_place(m, va, bytes, fresh);
	if (err == 0)
		*done = bytes;
	return err;
}

/*
 * Exchange pages of the file that are mapped at va for private memory with the same contents. Each
 * part of the file is freed before the next is copied: a region may be larger than half the memory.
 */
static int
back_data(const struct lib_share *share, const struct lib_mapping *m, uint64_t va, uint64_t bytes,
	  uint64_t *done)
{
	uint8_t *fresh = lib_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err = 0;

	*done = 0;
	if (fresh == MAP_FAILED)
		return -ENOMEM;
	while (*done < bytes && err == 0) {
		uint64_t step = bytes - *done < BACK_STEP ? bytes - *done : BACK_STEP, n;

		err = back_step(share, m, va + *done, step, fresh + *done, &n);
		if (n != 0)
			lib_sparse_punch(share->sparse, lib_convert_offset_of(m, va + *done), n);
		*done += n;
	}
	if (*done != bytes)
		lib_sys_munmap(fresh + *done, bytes - *done);
	return err;
}

static int
place_zeros(const struct lib_mapping *m, uint64_t va, uint64_t bytes)
{
	void *at = lib_sys_mmap((void *)(uintptr_t)va, bytes, lib_maps_protection(m),
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	return at != MAP_FAILED ? 0 : -ENOMEM;
}

/* Pages that were never touched: zeros. *done is 0 without an error if one is touched meanwhile. */
static int
back_hole(const struct lib_share *share, const struct lib_mapping *m, uint64_t va, uint64_t bytes,
	  uint64_t *done)
{
	uint64_t offset = lib_convert_offset_of(m, va);
	struct lib_hold hold;
	int err;

	*done = 0;
	if (m->write) {
		err = lib_hold_absent(&hold, va, bytes);
		if (err != 0)
			return err;
	}
	if (m->write && lib_sparse_used(share->sparse, offset, offset + bytes)) {
		err = 0;
	} else {
		err = place_zeros(m, va, bytes);
		*done = err == 0 ? bytes : 0;
	}
	if (m->write)
		lib_hold_absent_end(&hold);
	return err;
}

/*
 * *done: bytes from va on that are private now, also after an error. They must not be tried again:
 * the file has holes in their place.
 */
static int
back_at(const struct lib_share *share, const struct lib_mapping *m, uint64_t va, uint64_t bytes,
	uint64_t *done)
{
	uint64_t offset = lib_convert_offset_of(m, va), end = offset + bytes;
	int err = 0;

	for (*done = 0; offset + *done < end && err == 0;) {
		bool data;
		uint64_t at = offset + *done, n;
		uint64_t part = lib_sparse_extent(share->sparse, at, end, &data) - at;

		if (data)
			err = back_data(share, m, va + *done, part, &n);
		else
			err = back_hole(share, m, va + *done, part, &n);
		*done += n;
	}
	return err;
}

static bool
is_of(const struct lib_share *share, const struct lib_mapping *m)
{
	return m->shared && m->dev == share->dev && m->inode == share->inode;
}

/* The pages stay shared memory of the program, until something is done with memory again. */
static void
stick(struct lib_share *share, uint64_t offset, uint64_t bytes)
{
	for (uint64_t i = offset / LIB_PAGE; i < (offset + bytes) / LIB_PAGE; i++) {
		if (share->pins[i] != 0)
			continue;
		share->pins[i] = LIB_PIN_STUCK;
		share->stuck++;
		retry.pages++;
	}
}

void
lib_back_unstick(struct lib_share *share, uint64_t page)
{
	if (share->pins[page] != LIB_PIN_STUCK)
		return;
	share->pins[page] = 0;
	share->stuck--;
	retry.pages--;
}

/*
 * Where a mapping of the piece's end goes on behind it, mremap() has lengthened it: as far as no
 * other piece lies there, that is the program's private memory as well.
 */
static uint64_t
tail_of(const struct lib_share *share, const struct lib_mapping *m, uint64_t va)
{
	uint64_t end = share->offset + share->length, last = lib_convert_offset_of(m, m->end);
	const struct lib_share *behind;

	if (lib_convert_offset_of(m, va) != end || last <= end)
		return 0;
	behind = lib_share_in_file(share->dev, share->inode, false, end);
	if (behind != NULL && behind->offset < last)
		last = behind->offset;
	return last - end;
}

static void
stick_at(struct back *b, const struct lib_mapping *m, uint64_t va, uint64_t bytes)
{
	stick(b->share, lib_convert_offset_of(m, va) - b->share->offset, bytes);
}

/* Find the pages that cannot be accessed: they do not keep the others. */
static void
back_bisect(struct back *b, const struct lib_mapping *m, uint64_t va, uint64_t bytes)
{
	uint64_t half = bytes == LIB_PAGE ? bytes : bytes / 2 & ~(LIB_PAGE - 1);

	for (uint64_t end = va + bytes; va < end; half = end - va) {
		uint64_t done;
		int err = back_at(b->share, m, va, half, &done);

		if (err != 0 && half == LIB_PAGE)
			stick_at(b, m, va, half);
		else if (err != 0)
			back_bisect(b, m, va + done, half - done);
		va += half;
	}
}

/* Make [va, va + bytes) of the mapping private, as far as possible. */
static void
back_run(struct back *b, const struct lib_mapping *m, uint64_t va, uint64_t bytes)
{
	for (uint64_t end = va + bytes; va < end;) {
		uint64_t done, part;
		int err = back_at(b->share, m, va, end - va, &done);

		va += done;
		if (err == 0)
			return;
		if (err != -EFAULT) {
			stick_at(b, m, va, end - va);
			return;
		}
		part = end - va < BISECT_MAX ? end - va : BISECT_MAX;
		back_bisect(b, m, va, part);
		va += part;
	}
}

static void
back_part(struct back *b, const struct lib_mapping *m, uint64_t va, uint64_t bytes)
{
	uint64_t tail = tail_of(b->share, m, va + bytes), done;

	back_run(b, m, va, bytes);
	if (tail != 0)
		(void)back_at(b->share, m, va + bytes, tail, &done);
}

static int
back_list(struct back *b)
{
	return b->list != NULL ? 0 : lib_maps_list(&b->list, &b->count, &b->bytes);
}

/* Free the pages of a file that no mapping shows any more. */
static void
punch_free(const struct lib_share *share, uint64_t offset, uint64_t bytes)
{
	uint64_t end = (offset + bytes) / LIB_PAGE, run = 0;

	for (uint64_t i = offset / LIB_PAGE; i <= end; i++) {
		if (i < end && share->pins[i] == 0) {
			run++;
			continue;
		}
		if (run != 0)
			lib_sparse_punch(share->sparse, share->offset + (i - run) * LIB_PAGE,
					 run * LIB_PAGE);
		run = 0;
	}
}

/* Pages that are not where they were: the program has moved them, or unmapped them. */
static void
back_elsewhere(struct back *b, uint64_t offset, uint64_t bytes)
{
	uint64_t first = b->share->offset + offset, last = first + bytes;

	if (back_list(b) != 0) {
		stick(b->share, offset, bytes);
		return;
	}
	for (uint32_t i = 0; i < b->count; i++) {
		const struct lib_mapping *m = &b->list[i];
		uint64_t from = m->offset, to = lib_convert_offset_of(m, m->end);

		if (!is_of(b->share, m) || from >= last || to <= first)
			continue;
		if (from < first)
			from = first;
		if (to > last)
			to = last;
		back_part(b, m, m->start + (from - m->offset), to - from);
	}
	punch_free(b->share, offset, bytes);
}

/*
 * Handles the bytes from `offset` on that one mapping has, or that no mapping has; returns their
 * number.
 */
static uint64_t
back_next(struct back *b, uint64_t offset, uint64_t bytes)
{
	uint64_t va = b->share->va + offset;
	struct lib_mapping m;

	if (lib_maps_from(&b->maps, va, &m) != 0 || m.start >= va + bytes) {
		back_elsewhere(b, offset, bytes);
		return bytes;
	}
	if (m.start > va) {
		back_elsewhere(b, offset, m.start - va);
		return m.start - va;
	}
	if (bytes > m.end - va)
		bytes = m.end - va;
	if (is_of(b->share, &m) && lib_convert_offset_of(&m, va) == b->share->offset + offset)
		back_part(b, &m, va, bytes);
	else
		back_elsewhere(b, offset, bytes);
	return bytes;
}

static void
back_finish(struct back *b)
{
	lib_maps_end(&b->maps);
	if (b->list != NULL)
		lib_maps_list_free(b->list, b->bytes);
}

void
lib_back_pages(struct lib_share *share, uint64_t offset, uint64_t bytes)
{
	struct back b = {.share = share};

	share->has_holes = true;
	if (lib_maps_begin(&b.maps) != 0) {
		stick(share, offset, bytes);
		return;
	}
	for (uint64_t done = 0; done < bytes;)
		done += back_next(&b, offset + done, bytes - done);
	back_finish(&b);
}

/* Whether another piece lies in the slot of this one */
static bool
is_alone(const struct lib_share *share, uint64_t slot)
{
	const struct lib_share *first = lib_share_in_file(share->dev, share->inode, false, slot);
	const struct lib_share *behind =
		lib_share_in_file(share->dev, share->inode, false, share->offset + share->length);

	return first == share && (behind == NULL || behind->offset >= slot + LIB_SLOT);
}

/* The rest of a slot that has no regions: make its mapped pages private and free the others. */
static void
back_slot(struct back *b, uint64_t slot)
{
	bool freed = back_list(b) == 0;

	for (uint32_t i = 0; i < b->count; i++) {
		const struct lib_mapping *m = &b->list[i];
		uint64_t done;

		if (is_of(b->share, m) && m->offset >= slot && m->offset < slot + LIB_SLOT &&
		    back_at(b->share, m, m->start, m->end - m->start, &done) != 0)
			freed = false;
	}
	if (freed)
		lib_sparse_punch(b->share->sparse, slot, LIB_SLOT);
}

void
lib_back_end(struct lib_share *share)
{
	uint64_t slot = share->offset & ~(LIB_SLOT - 1);
	struct back b = {.share = share, .maps = {.fd = -1}};

	if (is_alone(share, slot) && lib_sparse_used(share->sparse, slot, slot + LIB_SLOT))
		back_slot(&b, slot);
	back_finish(&b);
	lib_share_remove(share);
}

/* ---- again ---- */

static void
retry_piece(struct lib_share *share)
{
	uint64_t pages = share->length / LIB_PAGE;

	for (uint64_t i = 0; i < pages && share->stuck != 0;) {
		uint64_t run = 0;

		while (i + run < pages && share->pins[i + run] == LIB_PIN_STUCK)
			lib_back_unstick(share, i + run++);
		if (run != 0)
			lib_back_pages(share, i * LIB_PAGE, run * LIB_PAGE);
		i += run != 0 ? run : 1;
	}
}

/* The next piece with stuck pages, from a place that moves on with each call */
static struct lib_share *
retry_next(void)
{
	struct lib_share *share = NULL;

	for (uint32_t turn = 0; turn < 2; turn++) {
		while ((share = lib_share_at(retry.next)) != NULL && share->stuck == 0)
			retry.next++;
		if (share != NULL)
			break;
		retry.next = 0;
	}
	retry.next++;
	return share;
}

void
lib_back_retry(void)
{
	uint64_t before = retry.pages;

	if (retry.pages == 0 || ++retry.calls < retry.wait)
		return;
	retry.calls = 0;
	for (uint32_t i = 0; i < RETRIES && retry.pages != 0; i++) {
		struct lib_share *share = retry_next();

		if (share == NULL)
			break;
		retry_piece(share);
		if (share->stuck == 0 && share->users == 0)
			lib_back_end(share);
	}
	if (retry.pages < before)
		retry.wait = 0;
	else if (retry.wait < RETRY_WAIT_MAX)
		retry.wait = retry.wait * 2 + 1;
}

void
lib_back_forget(void)
{
	retry.pages = 0;
	retry.wait = 0;
}
