/* SPDX-License-Identifier: BSD-3-Clause */

/* The table of shared pieces, their attachments, and memory that the program shares itself. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib_share_impl.h"
#include "lib_sparse.h"

pthread_mutex_t lib_share_lock = PTHREAD_MUTEX_INITIALIZER;

/* Pieces in one order */
struct order {
	struct lib_share **of;
	uint32_t count, room;
};

static struct order by_name, by_file; /* by_file: all but GIVEN, which may overlap in a file */
static struct lib_share *given;	      /* linked by next */

/* ---- the table ---- */

static uint32_t
index_by_name(uint64_t name)
{
	uint32_t low = 0, high = by_name.count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (by_name.of[mid]->name + by_name.of[mid]->length <= name)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Whether the piece ends at or before this place in the order of files */
static bool
ends_before(const struct lib_share *s, dev_t dev, ino_t inode, bool read_only, uint64_t offset)
{
	if (s->dev != dev)
		return s->dev < dev;
	if (s->inode != inode)
		return s->inode < inode;
	if (s->read_only != read_only)
		return read_only;
	return s->offset + s->length <= offset;
}

static uint32_t
index_by_file(dev_t dev, ino_t inode, bool read_only, uint64_t offset)
{
	uint32_t low = 0, high = by_file.count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (ends_before(by_file.of[mid], dev, inode, read_only, offset))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct lib_share *
lib_share_behind(uint64_t name)
{
	uint32_t i = index_by_name(name);

	return i < by_name.count ? by_name.of[i] : NULL;
}

struct lib_share *
lib_share_in_file(dev_t dev, ino_t inode, bool read_only, uint64_t offset)
{
	uint32_t i = index_by_file(dev, inode, read_only, offset);
	struct lib_share *s = i < by_file.count ? by_file.of[i] : NULL;

	return s != NULL && s->dev == dev && s->inode == inode && s->read_only == read_only ? s
											    : NULL;
}

struct lib_share *
lib_share_at(uint32_t i)
{
	return i < by_name.count ? by_name.of[i] : NULL;
}

/* The objects are not freed: the child of a multi-threaded process must not call free(). */
void
lib_share_clear(void)
{
	by_name.count = 0;
	by_file.count = 0;
	given = NULL;
	lib_cover_clear();
	lib_back_forget();
}

static int
order_grow(struct order *o)
{
	uint32_t room = o->room * 2 + 64;
	struct lib_share **grown;

	if (o->count < o->room)
		return 0;
	grown = realloc(o->of, room * sizeof(struct lib_share *));
	if (grown == NULL)
		return -ENOMEM;
	o->of = grown;
	o->room = room;
	return 0;
}

static void
order_insert(struct order *o, uint32_t i, struct lib_share *share)
{
	memmove(&o->of[i + 1], &o->of[i], (o->count - i) * sizeof(struct lib_share *));
	o->of[i] = share;
	o->count++;
}

static void
order_delete(struct order *o, uint32_t i)
{
	o->count--;
	memmove(&o->of[i], &o->of[i + 1], (o->count - i) * sizeof(struct lib_share *));
}

/* The first free name for memory at va; 0: all are in use. */
static uint64_t
free_name(uint64_t va, uint64_t length)
{
	for (uint64_t n = 1; n < UINT64_C(1) << 15; n++) {
		uint64_t name = va + (n << LIB_NAME_SHIFT);
		const struct lib_share *behind = lib_share_behind(name);

		if (behind == NULL || behind->name >= name + length)
			return name;
	}
	return 0;
}

static int
complete(struct lib_share *share)
{
	if (share->kind == LIB_SHARE_QUEUE || share->kind == LIB_SHARE_ALLOC)
		share->name = share->va;
	else
		share->name = free_name(share->va, share->length);
	if (share->kind == LIB_SHARE_CONVERTED)
		share->pins = calloc(share->length / LIB_PAGE, sizeof(share->pins[0]));
	return share->name != 0 && (share->pins != NULL || share->kind != LIB_SHARE_CONVERTED)
		       ? 0
		       : -ENOMEM;
}

static uint32_t
index_of(const struct lib_share *share)
{
	return index_by_file(share->dev, share->inode, share->read_only, share->offset);
}

struct lib_share *
lib_share_enter(const struct lib_share *piece)
{
	struct lib_share *share = malloc(sizeof(*share));

	if (share != NULL)
		*share = *piece;
	if (share == NULL || complete(share) != 0 || order_grow(&by_name) != 0 ||
	    order_grow(&by_file) != 0) {
		if (share != NULL)
			free(share->pins);
		free(share);
		lib_no_memory("the list of shared memory", sizeof(*share));
		return NULL;
	}
	order_insert(&by_name, index_by_name(share->name), share);
	if (share->kind == LIB_SHARE_GIVEN) {
		share->next = given;
		given = share;
	} else {
		order_insert(&by_file, index_of(share), share);
	}
	return share;
}

static void
unlink_given(const struct lib_share *share)
{
	struct lib_share **link = &given;

	while (*link != share)
		link = &(*link)->next;
	*link = share->next;
}

void
lib_share_remove(struct lib_share *share)
{
	while (share->attachments != NULL) {
		struct lib_attachment *a = share->attachments;

		share->attachments = a->next;
		lib_drop(a->ctx, HCA_CTL_DETACH, a->handle); /* a dead daemon has released it */
		free(a);
	}
	order_delete(&by_name, index_by_name(share->name));
	if (share->kind == LIB_SHARE_GIVEN)
		unlink_given(share);
	else
		order_delete(&by_file, index_of(share));
	if (share->fd >= 0)
		close(share->fd);
	if (share->sparse != NULL)
		lib_sparse_give(share->sparse);
	free(share->pins);
	free(share);
}

/* ---- attachments ---- */

static bool
is_attached(const struct lib_context *ctx, const struct lib_share *share)
{
	const struct lib_attachment *a = share->attachments;

	while (a != NULL && a->ctx != ctx)
		a = a->next;
	return a != NULL;
}

static int
share_fd(const struct lib_share *share)
{
	if (share->sparse != NULL)
		return lib_sparse_fd(share->sparse);
	return share->file != NULL ? lib_pool_fd(share->file) : share->fd;
}

static int
attach_new(struct lib_context *ctx, struct lib_share *share, struct lib_attachment *a)
{
	const struct hca_ctl_segment segment = {
		.va = share->name,
		.length = share->length,
		.offset = share->offset,
		.flags = share->read_only      ? HCA_CTL_SEGMENT_READ_ONLY
			 : share->file != NULL ? HCA_CTL_SEGMENT_SEAL
					       : 0,
	};
	struct hca_ctl_extra extra;
	int err;

	extra.fds[0] = share_fd(share);
	err = LIB_CALL_EXTRA(ctx, ATTACH, &segment, &a->handle, &extra);
	/* a file named by the program must be usable; others can be replaced by slow access */
	if (err == -EBADF && (share->kind == LIB_SHARE_FOUND || share->kind == LIB_SHARE_CONVERTED))
		return -EOPNOTSUPP;
	return err;
}

int
lib_share_attach(struct lib_context *ctx, struct lib_share *share)
{
	struct lib_attachment *a;
	int err;

	if (is_attached(ctx, share))
		return 0;
	if (share_fd(share) < 0)
		return lib_fail(-EOPNOTSUPP,
				"the %llu MiB at %#llx are shared with the device of another "
				"context: pieces of more than %llu MiB can be with one",
				(unsigned long long)share->length >> 20,
				(unsigned long long)share->va,
				(unsigned long long)HCA_CTL_SMALL_FILE >> 20);
	a = malloc(sizeof(*a));
	if (a == NULL)
		return lib_no_memory("an attachment", sizeof(*a));
	err = attach_new(ctx, share, a);
	if (err != 0) {
		free(a);
		return err;
	}
	if (share->file != NULL)
		lib_pool_attached(share->file);
	a->ctx = ctx;
	a->next = share->attachments;
	share->attachments = a;
	return 0;
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
	for (uint32_t i = 0; i < by_name.count; i++)
		forget_attachment(by_name.of[i], ctx);
	lib_cover_forget(ctx);
	pthread_mutex_unlock(&lib_share_lock);
}

void
lib_share_abandon(struct lib_context *ctx)
{
	pthread_mutex_lock(&lib_share_lock);
	for (uint32_t i = 0; i < by_name.count; i++)
		if (by_name.of[i]->file != NULL && is_attached(ctx, by_name.of[i]))
			lib_pool_retire(by_name.of[i]->file);
	pthread_mutex_unlock(&lib_share_lock);
}

/* ---- memory that the program names itself ---- */

static struct lib_share *
find_given(uint64_t va, uint64_t length)
{
	struct lib_share *s = given;

	while (s != NULL && (s->va >= va + length || va >= s->va + s->length))
		s = s->next;
	return s;
}

struct lib_share *
lib_share_given(dev_t dev, ino_t inode, uint64_t offset)
{
	struct lib_share *s = given;

	while (s != NULL && (s->dev != dev || s->inode != inode || offset < s->offset ||
			     offset - s->offset >= s->length))
		s = s->next;
	return s;
}

static int
judge_given(uint64_t va, uint64_t length, uint64_t offset)
{
	const struct lib_share *other;

	if (length == 0 || ((va | length | offset) & (LIB_PAGE - 1)) != 0 || va + length < va)
		return lib_fail(
			-EINVAL,
			"%llu bytes at %#llx from offset %llu: whole pages of %u bytes are shared",
			(unsigned long long)length, (unsigned long long)va,
			(unsigned long long)offset, (unsigned int)LIB_PAGE);
	other = find_given(va, length);
	if (other != NULL)
		return lib_fail(-EEXIST,
				"memory at %#llx is attached already: softhca_detach() it first",
				(unsigned long long)other->va);
	return 0;
}

/* The file's numbers as the mapping shows them: on some file systems fstat() has others. */
static int
number_given(struct lib_share *piece)
{
	struct lib_mapping m;
	struct stat st;

	if (fstat(piece->fd, &st) != 0)
		return lib_fail(-errno, "fstat: %s", strerror(errno));
	piece->dev = st.st_dev;
	piece->inode = st.st_ino;
	if (lib_maps_find(piece->va, &m) == 0 && m.shared && m.inode == st.st_ino)
		piece->dev = m.dev;
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
		if (piece.fd < 0) {
			err = lib_fail(-errno, "descriptor %d: %s", fd, strerror(errno));
		} else {
			err = number_given(&piece);
			if (err == 0 && lib_share_enter(&piece) == NULL)
				err = -ENOMEM;
			if (err != 0)
				close(piece.fd);
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
	share = find_given((uintptr_t)addr, 1);
	if (share == NULL || share->va != (uintptr_t)addr)
		err = lib_fail(
			-EINVAL,
			"no softhca_attach() began at %p: pass the address that was attached",
			addr);
	else if (share->users != 0)
		err = lib_fail(-EBUSY, "%u regions lie in the memory at %p: deregister them first",
			       share->users, addr);
	else
		lib_share_remove(share);
	pthread_mutex_unlock(&lib_share_lock);
	return err;
}
