/* SPDX-License-Identifier: BSD-3-Clause */

/* The table of shared pieces, their attachments, and the covers of regions. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib_share_impl.h"
#include "lib_sys.h"

struct lib_cover {
	struct lib_cover *next, **link; /* list of the same context */
	struct lib_share **share;
	uint32_t count;
	uint64_t va, end; /* whole pages that are accessed in place (foreign); else 0 */
	struct lib_cover *next_foreign, **link_foreign;
};

pthread_mutex_t lib_share_lock = PTHREAD_MUTEX_INITIALIZER;

static struct lib_cover *foreign_covers;
static struct lib_share **table; /* ordered by va */
static uint32_t table_count, table_room;

/* ---- the table ---- */

static uint32_t
index_behind(uint64_t va)
{
	uint32_t low = 0, high = table_count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (table[mid]->va + table[mid]->length <= va)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct lib_share *
lib_share_behind(uint64_t va)
{
	uint32_t i = index_behind(va);

	return i < table_count ? table[i] : NULL;
}

struct lib_share *
lib_share_before(uint64_t va)
{
	uint32_t i = index_behind(va);

	return i > 0 ? table[i - 1] : NULL;
}

struct lib_share *
lib_share_at(uint32_t i)
{
	return i < table_count ? table[i] : NULL;
}

/* The objects are not freed: the child of a multi-threaded process must not call free(). */
void
lib_share_clear(void)
{
	table_count = 0;
	foreign_covers = NULL;
}

struct lib_share *
lib_share_enter(const struct lib_share *piece)
{
	struct lib_share *share = malloc(sizeof(*share));
	uint32_t i = index_behind(piece->va);

	if (share != NULL && table_count == table_room) {
		uint32_t room = table_room * 2 + 64;
		struct lib_share **grown = realloc(table, room * sizeof(struct lib_share *));

		if (grown == NULL) {
			free(share);
			share = NULL;
		} else {
			table = grown;
			table_room = room;
		}
	}
	if (share == NULL) {
		lib_fail(-ENOMEM, "no memory for the list of shared memory");
		return NULL;
	}
	*share = *piece;
	memmove(&table[i + 1], &table[i], (table_count - i) * sizeof(struct lib_share *));
	table[i] = share;
	table_count++;
	return share;
}

void
lib_share_remove(struct lib_share *share)
{
	uint32_t i = index_behind(share->va);

	while (share->attachments != NULL) {
		struct lib_attachment *a = share->attachments;

		share->attachments = a->next;
		lib_drop(a->ctx, HCA_CTL_DETACH, a->handle); /* a dead daemon has released it */
		free(a);
	}
	table_count--;
	memmove(&table[i], &table[i + 1], (table_count - i) * sizeof(struct lib_share *));
	if (share->kind == LIB_SHARE_GIVEN || share->kind == LIB_SHARE_FOUND)
		close(share->fd);
	free(share);
}

/*
 * This process allocates the pages, because a daemon refuses missing ones. On kernels without a
 * call for it (before 5.14): store to each page without changing it.
 */
static void
fill(const struct lib_share *share)
{
	if (lib_sys_madvise((void *)(uintptr_t)share->va, share->length, MADV_POPULATE_WRITE) ==
		    0 ||
	    errno != EINVAL)
		return; /* the daemon reports what is missing */
	for (uint64_t at = 0; at < share->length; at += LIB_PAGE)
		__atomic_fetch_or((uint8_t *)(uintptr_t)(share->va + at), 0, __ATOMIC_RELAXED);
}

static bool
is_attached(const struct lib_context *ctx, const struct lib_share *share)
{
	const struct lib_attachment *a = share->attachments;

	while (a != NULL && a->ctx != ctx)
		a = a->next;
	return a != NULL;
}

int
lib_share_attach(struct lib_context *ctx, struct lib_share *share)
{
	const struct hca_ctl_segment segment = {share->va, share->length, share->offset};
	int fd = share->file != NULL ? lib_pool_fd(share->file) : share->fd, err;
	struct hca_ctl_extra extra;
	struct lib_attachment *a;

	if (is_attached(ctx, share))
		return 0;
	if (fd < 0)
		return lib_fail(-EOPNOTSUPP,
				"the %llu MiB at %#llx are shared with the device of another "
				"context: pieces of more than %llu MiB can be with one",
				(unsigned long long)share->length >> 20,
				(unsigned long long)share->va,
				(unsigned long long)HCA_CTL_SMALL_FILE >> 20);
	a = malloc(sizeof(*a));
	if (a == NULL)
		return lib_fail(-ENOMEM, "no memory");
	if (share->file == NULL)
		fill(share);
	extra.fds[0] = fd;
	err = LIB_CALL_EXTRA(ctx, ATTACH, &segment, &a->handle, &extra);
	if (err != 0) {
		free(a);
		/*
		 * a file named by the program must be usable; one that was found can be replaced by
		 * slow access
		 */
		return err == -EBADF && share->kind == LIB_SHARE_FOUND ? -EOPNOTSUPP : err;
	}
	if (share->file != NULL)
		lib_pool_attached(share->file);
	a->ctx = ctx;
	a->next = share->attachments;
	share->attachments = a;
	return 0;
}

/* ---- covers ---- */

static int
cover_add(struct lib_cover *cover, struct lib_share *share)
{
	struct lib_share **grown;

	for (uint32_t i = cover->count; i-- > 0;)
		if (cover->share[i] == share)
			return 0;
	grown = realloc(cover->share, (cover->count + 1) * sizeof(struct lib_share *));
	if (grown == NULL)
		return lib_fail(-ENOMEM, "no memory for a region");
	cover->share = grown;
	cover->share[cover->count++] = share;
	share->users++;
	return 0;
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
		struct lib_share *share = cover->share[--cover->count];

		if (--share->users == 0)
			lib_share_release(share);
	}
	free(cover->share);
	free(cover);
}

/* The piece that contains va; private memory is converted first, at most up to end. */
static struct lib_share *
piece_at(uint64_t va, uint64_t end, bool convert)
{
	struct lib_share *share = lib_share_behind(va);

	if (share != NULL && share->va <= va)
		return share;
	if (share != NULL && share->va < end)
		end = share->va;
	return lib_share_adopt(va, end, convert);
}

/* Cover whole pages from va to end. *share: the last piece found, tried first */
static int
cover_range(struct lib_context *ctx, struct lib_cover *cover, uint64_t va, uint64_t end,
	    bool convert, struct lib_share **share)
{
	int err = 0;

	while (va < end && err == 0) {
		struct lib_share *s = *share;

		if (s == NULL || va < s->va || va - s->va >= s->length) {
			s = piece_at(va, end, convert);
			if (s == NULL)
				return -errno;
			err = cover_add(cover, s);
			if (err == 0)
				err = lib_share_attach(ctx, s);
			*share = s;
		}
		va = s->va + s->length;
	}
	return err;
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

static struct lib_cover *
cover_new(void)
{
	struct lib_cover *cover = calloc(1, sizeof(*cover));

	if (cover == NULL)
		lib_fail(-ENOMEM, "no memory for a region");
	return cover;
}

int
lib_cover_take(struct lib_context *ctx, uint64_t va, uint64_t length, bool convert,
	       struct lib_cover **out)
{
	uint64_t first = va & ~(LIB_PAGE - 1);
	uint64_t end = (va + length - 1) | (LIB_PAGE - 1);
	struct lib_cover *cover = cover_new();
	struct lib_share *share = NULL;
	int err;

	if (cover == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&lib_share_lock);
	err = end != UINT64_MAX ? cover_range(ctx, cover, first, end + 1, convert, &share)
				: lib_fail(-EINVAL, "the last page is no memory");
	if (err == 0)
		cover_link(ctx, cover);
	else
		cover_empty(cover);
	pthread_mutex_unlock(&lib_share_lock);
	*out = cover;
	return err;
}

int
lib_cover_take_pages(struct lib_context *ctx, const uint64_t *pages, uint64_t npages, uint64_t size,
		     bool convert, struct lib_cover **out)
{
	struct lib_cover *cover = cover_new();
	struct lib_share *share = NULL;
	int err = 0;

	if (cover == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&lib_share_lock);
	for (uint64_t i = 0; i < npages && err == 0; i++) {
		if ((pages[i] & (LIB_PAGE - 1)) != 0 || pages[i] + size < pages[i])
			err = lib_fail(-EINVAL, "page %llu at %#llx", (unsigned long long)i,
				       (unsigned long long)pages[i]);
		else
			err = cover_range(ctx, cover, pages[i], pages[i] + size, convert, &share);
	}
	if (err == 0)
		cover_link(ctx, cover);
	else
		cover_empty(cover);
	pthread_mutex_unlock(&lib_share_lock);
	*out = cover;
	return err;
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
		err = lib_fail(-EOPNOTSUPP, "/proc/self/mem cannot be opened: %s", strerror(errno));
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

/* Hold the pieces of the range while the region exists, so that they are not converted. */
static int
hold_range(struct lib_cover *cover)
{
	int err = 0;

	for (uint64_t va = cover->va; va < cover->end && err == 0;) {
		struct lib_share *share = lib_share_behind(va);

		if (share == NULL || share->va >= cover->end)
			break;
		err = cover_add(cover, share);
		va = share->va + share->length;
	}
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
	cover->end = (va + (length - 1)) | (LIB_PAGE - 1);
	pthread_mutex_lock(&lib_share_lock);
	err = give_memory(ctx);
	if (err == 0)
		err = hold_range(cover);
	if (err == 0) {
		cover_link(ctx, cover);
		cover->next_foreign = foreign_covers;
		cover->link_foreign = &foreign_covers;
		if (cover->next_foreign != NULL)
			cover->next_foreign->link_foreign = &cover->next_foreign;
		foreign_covers = cover;
	} else {
		cover_empty(cover);
	}
	pthread_mutex_unlock(&lib_share_lock);
	*out = cover;
	return err;
}

void
lib_cover_drop(struct lib_cover *cover)
{
	if (cover == NULL)
		return;
	pthread_mutex_lock(&lib_share_lock);
	*cover->link = cover->next;
	if (cover->next != NULL)
		cover->next->link = cover->link;
	cover_empty(cover);
	pthread_mutex_unlock(&lib_share_lock);
}

static void
forget_attachment(struct lib_share *share, const struct lib_context *ctx)
{
	for (struct lib_attachment **link = &share->attachments; *link != NULL;) {
		struct lib_attachment *a = *link;

		if (a->ctx != ctx) {
			link = &a->next;
			continue;
		}
		*link = a->next;
		free(a);
	}
}

void
lib_share_forget(struct lib_context *ctx)
{
	pthread_mutex_lock(&lib_share_lock);
	for (uint32_t i = 0; i < table_count; i++)
		forget_attachment(table[i], ctx);
	while (ctx->covers != NULL) {
		struct lib_cover *cover = ctx->covers;

		ctx->covers = cover->next;
		cover_empty(cover);
	}
	pthread_mutex_unlock(&lib_share_lock);
}

void
lib_share_abandon(struct lib_context *ctx)
{
	pthread_mutex_lock(&lib_share_lock);
	for (uint32_t i = 0; i < table_count; i++)
		if (table[i]->file != NULL && is_attached(ctx, table[i]))
			lib_pool_retire(table[i]->file);
	pthread_mutex_unlock(&lib_share_lock);
}

/* ---- what the program names itself ---- */

static int
judge_given(uint64_t va, uint64_t length, uint64_t offset)
{
	const struct lib_share *behind = lib_share_behind(va);

	if (length == 0 || ((va | length | offset) & (LIB_PAGE - 1)) != 0 || va + length < va)
		return lib_fail(-EINVAL, "%llu bytes at %#llx: whole pages are shared",
				(unsigned long long)length, (unsigned long long)va);
	if (behind != NULL && behind->va < va + length)
		return lib_fail(-EEXIST, "memory at %#llx is shared already",
				(unsigned long long)behind->va);
	return 0;
}

int
softhca_attach(int fd, void *addr, uint64_t length, uint64_t offset)
{
	struct lib_share piece = {
		.va = (uintptr_t)addr,
		.length = length,
		.offset = offset,
		.kind = LIB_SHARE_GIVEN,
		.page = LIB_PAGE,
	};
	int err;

	pthread_mutex_lock(&lib_share_lock);
	err = judge_given(piece.va, length, offset);
	if (err == 0) {
		piece.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (piece.fd < 0)
			err = lib_fail(-errno, "descriptor %d: %s", fd, strerror(errno));
		else if (lib_share_enter(&piece) == NULL) {
			close(piece.fd);
			err = -ENOMEM;
		}
	}
	pthread_mutex_unlock(&lib_share_lock);
	return err;
}

int
softhca_detach(void *addr)
{
	struct lib_share *share;
	int err = 0;

	pthread_mutex_lock(&lib_share_lock);
	share = lib_share_behind((uintptr_t)addr);
	if (share == NULL || share->va != (uintptr_t)addr || share->kind != LIB_SHARE_GIVEN)
		err = lib_fail(-EINVAL, "nothing was attached at %p", addr);
	else if (share->users != 0)
		err = lib_fail(-EBUSY, "%u regions lie in it", share->users);
	else
		lib_share_remove(share);
	pthread_mutex_unlock(&lib_share_lock);
	return err;
}
