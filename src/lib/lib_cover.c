/* SPDX-License-Identifier: BSD-3-Clause */

/* The memory of regions: parts of pieces, or memory that is accessed in place. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib_share_impl.h"
#include "lib_sparse.h"
#include "lib_sys.h"

struct lib_part {
	struct lib_share *share;
	uint64_t offset; /* in the piece */
	uint64_t bytes;
};

struct lib_cover {
	struct lib_cover *next, **link; /* list of the same context */
	struct lib_part *part;		/* in the order of the region's bytes */
	uint32_t count, room;
	uint64_t va, end; /* whole pages that are accessed in place (foreign); else 0 */
	struct lib_cover *next_foreign, **link_foreign;
};

static struct lib_cover *foreign_covers;

/* ---- pages that regions cover ---- */

static void
pin(struct lib_share *share, uint64_t offset, uint64_t bytes)
{
	if (share->pins == NULL)
		return;
	for (uint64_t i = offset / LIB_PAGE; i < (offset + bytes) / LIB_PAGE; i++) {
		lib_back_unstick(share, i);
		share->pins[i]++;
	}
}

/* Pages that are not covered any more go back to the program, as many as possible at once. */
static void
unpin(struct lib_share *share, uint64_t offset, uint64_t bytes)
{
	uint64_t run = 0, end = (offset + bytes) / LIB_PAGE;

	if (share->pins == NULL)
		return;
	for (uint64_t i = offset / LIB_PAGE; i < end; i++) {
		if (--share->pins[i] == 0) {
			run++;
			continue;
		}
		if (run != 0)
			lib_back_pages(share, (i - run) * LIB_PAGE, run * LIB_PAGE);
		run = 0;
	}
	if (run != 0)
		lib_back_pages(share, (end - run) * LIB_PAGE, run * LIB_PAGE);
}

static void
release(struct lib_share *share)
{
	if (--share->users != 0)
		return;
	switch (share->kind) {
	case LIB_SHARE_CONVERTED:
		if (share->stuck == 0)
			lib_back_end(share);
		break;
	case LIB_SHARE_FOUND:
		lib_share_remove(share);
		break;
	default:
		lib_pool_tidy(share);
		break;
	}
}

/* ---- parts ---- */

static bool
part_extends(const struct lib_cover *cover, const struct lib_share *share, uint64_t offset)
{
	const struct lib_part *last = cover->count != 0 ? &cover->part[cover->count - 1] : NULL;

	return last != NULL && last->share == share && last->offset + last->bytes == offset;
}

/* Make room for one more part, so that cover_add() cannot fail. */
static int
cover_reserve(struct lib_cover *cover)
{
	uint32_t room = cover->room * 2 + 1;
	struct lib_part *grown;

	if (cover->count < cover->room)
		return 0;
	grown = realloc(cover->part, room * sizeof(*grown));
	if (grown == NULL)
		return lib_no_memory("a region", room * sizeof(*grown));
	cover->part = grown;
	cover->room = room;
	return 0;
}

static void
cover_add(struct lib_cover *cover, struct lib_share *share, uint64_t offset, uint64_t bytes)
{
	pin(share, offset, bytes);
	if (part_extends(cover, share, offset)) {
		cover->part[cover->count - 1].bytes += bytes;
		return;
	}
	cover->part[cover->count++] = (struct lib_part){share, offset, bytes};
	share->users++;
}

static void
foreign_unlink(struct lib_cover *cover)
{
	if (cover->link_foreign == NULL)
		return;
	*cover->link_foreign = cover->next_foreign;
	if (cover->next_foreign != NULL)
		cover->next_foreign->link_foreign = cover->link_foreign;
}

static void
cover_empty(struct lib_cover *cover)
{
	foreign_unlink(cover);
	while (cover->count > 0) {
		const struct lib_part *part = &cover->part[--cover->count];

		unpin(part->share, part->offset, part->bytes);
		release(part->share);
	}
	free(cover->part);
	free(cover);
}

static struct lib_cover *
cover_new(void)
{
	struct lib_cover *cover = calloc(1, sizeof(*cover));

	if (cover == NULL)
		lib_no_memory("a region", sizeof(*cover));
	return cover;
}

static void
cover_link(struct lib_context *ctx, struct lib_cover *cover)
{
	cover->next = ctx->covers;
	cover->link = &ctx->covers;
	if (cover->next != NULL)
		cover->next->link = &cover->next;
	ctx->covers = cover;
}

/* ---- taking mapped memory ---- */

static int
mapping_at(const struct lib_maps *maps, uint64_t va, struct lib_mapping *m)
{
	if (lib_maps_from(maps, va, m) == 0 && va >= m->start)
		return 0;
	return lib_fail(-EFAULT, LIB_NOT_MAPPED, (unsigned long long)va);
}

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Whether all of [va, end) can be shared, before any of it is exchanged. */
static int
range_judge(const struct lib_context *ctx, const struct lib_maps *maps, uint64_t va, uint64_t end,
	    bool convert)
{
	int err = 0;

	while (va < end && err == 0) {
		struct lib_mapping m;

		err = mapping_at(maps, va, &m);
		if (err == 0)
			err = lib_convert_judge(ctx, &m, va, smaller(end, m.end), convert);
		va = m.end;
	}
	return err;
}

/*
 * The program's process allocates the pages: the daemon refuses missing ones. Queues and memory of
 * softhca_alloc() have all of theirs, and so has most that was exchanged.
 */
static bool
may_lack_pages(const struct lib_share *share)
{
	return share->kind == LIB_SHARE_GIVEN || share->kind == LIB_SHARE_FOUND ||
	       (share->kind == LIB_SHARE_CONVERTED && (share->has_holes || share->users == 0));
}

/* Cover [va, end) of one mapping, or its first part; returns the bytes, or 0 with an error. */
static uint64_t
cover_mapped(struct lib_context *ctx, struct lib_cover *cover, const struct lib_mapping *m,
	     uint64_t va, uint64_t end, int *err)
{
	struct lib_share *share;
	uint64_t offset, bytes;

	*err = cover_reserve(cover);
	if (*err != 0)
		return 0;
	share = lib_convert_share(m, va, end);
	if (share == NULL) {
		*err = -errno;
		return 0;
	}
	offset = m->shared ? lib_convert_offset(share, m, va) : 0;
	bytes = smaller(end - va, share->length - offset);
	if (m->shared && may_lack_pages(share))
		(void)lib_sys_populate((void *)(uintptr_t)va, bytes, m->write);
	cover_add(cover, share, offset, bytes);
	*err = lib_share_attach(ctx, share);
	return *err == 0 ? bytes : 0;
}

static int
cover_range(struct lib_context *ctx, struct lib_cover *cover, const struct lib_maps *maps,
	    uint64_t va, uint64_t end)
{
	int err = 0;

	while (va < end && err == 0) {
		struct lib_mapping m;

		err = mapping_at(maps, va, &m);
		if (err == 0)
			va += cover_mapped(ctx, cover, &m, va, smaller(end, m.end), &err);
	}
	return err;
}

/* The cover is linked, or emptied after an error. */
static int
cover_done(struct lib_context *ctx, struct lib_cover *cover, int err)
{
	struct lib_error error;

	lib_error_keep(&error);
	if (err == 0)
		cover_link(ctx, cover);
	else
		cover_empty(cover);
	lib_back_retry();
	lib_error_restore(&error);
	pthread_mutex_unlock(&lib_share_lock);
	return err;
}

static int
cover_view(struct lib_context *ctx, struct lib_cover *cover, uint64_t va, uint64_t end,
	   bool convert)
{
	struct lib_maps maps;
	int err = lib_maps_begin(&maps);

	if (err != 0)
		return err;
	err = range_judge(ctx, &maps, va, end, convert);
	if (err == 0)
		err = cover_range(ctx, cover, &maps, va, end);
	lib_maps_end(&maps);
	return err;
}

int
lib_cover_take(struct lib_context *ctx, uint64_t va, uint64_t length, bool convert,
	       struct lib_cover **out)
{
	uint64_t first = va & ~(LIB_PAGE - 1);
	uint64_t last = (va + length - 1) | (LIB_PAGE - 1);
	struct lib_cover *cover = cover_new();

	if (cover == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&lib_share_lock);
	*out = cover;
	return cover_done(
		ctx, cover,
		last != UINT64_MAX
			? cover_view(ctx, cover, first, last + 1, convert)
			: lib_fail(-EINVAL,
				   "length %#llx: the range at %#llx wraps past the end of the "
				   "address space",
				   (unsigned long long)length, (unsigned long long)va));
}

int
lib_cover_take_pages(struct lib_context *ctx, const uint64_t *pages, uint64_t npages, uint64_t size,
		     bool convert, struct lib_cover **out)
{
	struct lib_cover *cover = cover_new();
	int err = 0;

	if (cover == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&lib_share_lock);
	*out = cover;
	for (uint64_t i = 0; i < npages && err == 0;) {
		uint64_t first = pages[i], bytes = 0;

		do {
			if ((pages[i] & (LIB_PAGE - 1)) != 0 || pages[i] + size < pages[i])
				err = lib_fail(
					-EINVAL,
					"page %llu at %#llx: expected a multiple of %u below the "
					"end of the address space",
					(unsigned long long)i, (unsigned long long)pages[i],
					(unsigned int)LIB_PAGE);
			bytes += size;
		} while (++i < npages && pages[i] == first + bytes && err == 0);
		if (err == 0)
			err = cover_view(ctx, cover, first, first + bytes, convert);
	}
	return cover_done(ctx, cover, err);
}

void
lib_cover_drop(struct lib_cover *cover)
{
	struct lib_error error;

	if (cover == NULL)
		return;
	pthread_mutex_lock(&lib_share_lock);
	lib_error_keep(&error);
	*cover->link = cover->next;
	if (cover->next != NULL)
		cover->next->link = cover->link;
	cover_empty(cover);
	lib_back_retry();
	lib_error_restore(&error);
	pthread_mutex_unlock(&lib_share_lock);
}

void
lib_cover_forget(struct lib_context *ctx)
{
	while (ctx->covers != NULL) {
		struct lib_cover *cover = ctx->covers;

		ctx->covers = cover->next;
		cover_empty(cover);
	}
}

/* ---- names ---- */

/* Goes through the covered bytes in their order. */
struct cursor {
	const struct lib_cover *cover;
	uint32_t part;
	uint64_t done; /* bytes of the part */
};

/* The name of the next `bytes`; false: they have no common one, or one that is not aligned. */
static bool
cursor_name(struct cursor *c, uint64_t bytes, uint64_t *name)
{
	bool whole = true;

	for (uint64_t done = 0; done < bytes;) {
		const struct lib_part *p = &c->cover->part[c->part];
		uint64_t at = p->share->name + p->offset + c->done;
		uint64_t n = smaller(bytes - done, p->bytes - c->done);

		if (done == 0)
			*name = at;
		whole = whole && at == *name + done;
		done += n;
		c->done += n;
		if (c->done == p->bytes) {
			c->part++;
			c->done = 0;
		}
	}
	return whole && (*name & (bytes - 1)) == 0;
}

/* npages pages of `size` bytes, after `skip` of them; NULL: no memory, or *whole is false */
static uint64_t *
cover_list(const struct lib_cover *cover, uint64_t npages, uint64_t skip, uint64_t size,
	   bool *whole)
{
	uint64_t *list = malloc(npages * sizeof(*list)), name;
	struct cursor c = {.cover = cover};

	*whole = true;
	for (uint64_t i = 0; i < skip; i++)
		cursor_name(&c, size, &name);
	for (uint64_t i = 0; list != NULL && i < npages && *whole; i++)
		*whole = cursor_name(&c, size, &list[i]);
	if (list != NULL && *whole)
		return list;
	free(list);
	return NULL;
}

static bool
is_contiguous(const struct lib_cover *cover)
{
	for (uint32_t i = 1; i < cover->count; i++) {
		const struct lib_part *a = &cover->part[i - 1], *b = &cover->part[i];

		if (a->share->name + a->offset + a->bytes != b->share->name + b->offset)
			return false;
	}
	return true;
}

int
lib_cover_name(const struct lib_cover *cover, bool listed, struct hca_ctl_mr *request,
	       uint64_t **list)
{
	uint64_t in_page = request->va & (LIB_PAGE - 1), skip = 0, name;
	bool whole = false;

	*list = NULL;
	if (!listed && is_contiguous(cover)) {
		name = cover->part[0].share->name + cover->part[0].offset + in_page;
		request->shift += request->va - name;
		request->va = name;
		return 0;
	}
	if (listed)
		*list = cover_list(cover, request->npages, 0, request->page_size, &whole);
	if (*list != NULL)
		return 0;
	/* smaller pages: the parts of a larger one may have names that are not contiguous */
	if (listed)
		skip = (request->va & (request->page_size - 1)) / LIB_PAGE;
	else
		request->va += request->shift;
	request->shift = 0;
	request->page_size = LIB_PAGE;
	request->npages = (in_page + (request->length - 1)) / LIB_PAGE + 1;
	*list = cover_list(cover, request->npages, skip, LIB_PAGE, &whole);
	return *list != NULL ? 0
			     : lib_no_memory("a list of pages", request->npages * sizeof(**list));
}

/* ---- memory that is reached where it is ---- */

bool
lib_share_foreign(uint64_t va, uint64_t end)
{
	for (const struct lib_cover *c = foreign_covers; c != NULL; c = c->next_foreign)
		if (c->va < end && va < c->end)
			return true;
	return false;
}

void
lib_cover_clear(void)
{
	foreign_covers = NULL;
}

/* Give the daemon access to /proc/self/mem, once per context. */
static int
give_memory(struct lib_context *ctx)
{
	struct hca_ctl_extra extra;
	int mem, maps, err;

	if (ctx->memory_given)
		return 0;
	mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (mem < 0 || maps < 0) {
		err = errno == EMFILE || errno == ENFILE ? -errno : -EOPNOTSUPP;
		lib_fail(err, "/proc/self/mem cannot be opened: %s", strerror(errno));
	} else {
		extra.fds[0] = mem;
		extra.fds[1] = maps;
		err = LIB_CALL_EXTRA(ctx, MEMORY, NULL, NULL, &extra);
		ctx->memory_given = err == 0;
	}
	if (mem >= 0)
		close(mem);
	if (maps >= 0)
		close(maps);
	return err;
}

/* Pages of the range that are converted stay so while the region exists. */
static int
hold_converted(struct lib_cover *cover, const struct lib_maps *maps)
{
	struct lib_mapping m;
	int err = 0;

	for (uint64_t va = cover->va; err == 0 && va < cover->end;) {
		struct lib_share *share;
		uint64_t offset, bytes;

		if (lib_maps_from(maps, va, &m) != 0 || m.start >= cover->end)
			break;
		if (va < m.start)
			va = m.start;
		bytes = smaller(m.end, cover->end) - va;
		offset = m.offset + (va - m.start);
		share = m.shared && lib_sparse_has(m.dev, m.inode)
				? lib_share_in_file(m.dev, m.inode, false, offset)
				: NULL;
		if (share != NULL && share->offset > offset) {
			bytes = smaller(bytes, share->offset - offset);
			share = NULL;
		}
		if (share != NULL) {
			bytes = smaller(bytes, share->offset + share->length - offset);
			err = cover_reserve(cover);
			if (err == 0)
				cover_add(cover, share, offset - share->offset, bytes);
		}
		va += bytes;
	}
	return err;
}

static int
hold_range(struct lib_cover *cover)
{
	struct lib_maps maps;
	int err = lib_maps_begin(&maps);

	if (err != 0)
		return err;
	err = hold_converted(cover, &maps);
	lib_maps_end(&maps);
	return err;
}

int
lib_cover_take_foreign(struct lib_context *ctx, uint64_t va, uint64_t length,
		       struct lib_cover **out)
{
	struct lib_cover *cover = cover_new();
	int err;

	if (cover == NULL)
		return -ENOMEM;
	cover->va = va & ~(LIB_PAGE - 1);
	cover->end = ((va + (length - 1)) | (LIB_PAGE - 1)) + 1;
	pthread_mutex_lock(&lib_share_lock);
	err = give_memory(ctx);
	if (err == 0)
		err = hold_range(cover);
	if (err == 0) {
		cover->next_foreign = foreign_covers;
		cover->link_foreign = &foreign_covers;
		if (cover->next_foreign != NULL)
			cover->next_foreign->link_foreign = &cover->next_foreign;
		foreign_covers = cover;
	}
	*out = cover;
	return cover_done(ctx, cover, err);
}
