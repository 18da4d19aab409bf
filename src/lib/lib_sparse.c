/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib_error.h"
#include "lib_maps.h"
#include "lib_sparse.h"

#define SLOTS 32767u /* the largest file has 2^63 - 1 bytes */

/* Full files are kept while ranges lie in them, and then while the program has them mapped. */
struct lib_sparse {
	struct lib_sparse *next;
	int fd;
	dev_t dev;
	ino_t inode;
	uint32_t slots; /* given out */
	uint32_t references;
};

static struct lib_sparse *files; /* the first one has slots */

/* A program that closes all descriptors may have another file under the number. */
static bool
sparse_is_open(const struct lib_sparse *f)
{
	struct stat st;

	return fstat(f->fd, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->inode;
}

static void
sparse_close(const struct lib_sparse *f)
{
	if (sparse_is_open(f))
		close(f->fd);
}

/* A limit of the process would raise SIGXFSZ. */
static int
sparse_check_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		return lib_fail(-EOPNOTSUPP,
				"private memory cannot be shared in place: the process limits the "
				"size of its files (RLIMIT_FSIZE, ulimit -f)");
	return 0;
}

static int
sparse_open(struct lib_sparse *f)
{
	struct stat st;
	int err = sparse_check_limit();

	if (err != 0)
		return err;
	f->fd = memfd_create("softhca-private", MFD_CLOEXEC);
	if (f->fd < 0)
		return lib_fail(-errno, "memfd_create: %s", strerror(errno));
	(void)fcntl(f->fd, F_ADD_SEALS, F_SEAL_SEAL); /* where memfds are sealable by default */
	if (ftruncate(f->fd, (off_t)(SLOTS * LIB_SLOT)) != 0 || fstat(f->fd, &st) != 0) {
		err = lib_fail(-errno, "a sparse memfd: %s", strerror(errno));
		close(f->fd);
		return err;
	}
	f->dev = st.st_dev;
	f->inode = st.st_ino;
	return 0;
}

static bool
sparse_is_mapped(const struct lib_sparse *f, const struct lib_mapping *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i].dev == f->dev && list[i].inode == f->inode)
			return true;
	return false;
}

/* Forget full files without users. Without a list of the mappings they are kept. */
static void
sparse_tidy(void)
{
	struct lib_mapping *list;
	uint32_t count;
	size_t bytes;

	if (files == NULL || lib_maps_list(&list, &count, &bytes) != 0)
		return;
	for (struct lib_sparse **link = &files; *link != NULL;) {
		struct lib_sparse *f = *link;

		if (f->references != 0 || sparse_is_mapped(f, list, count)) {
			link = &f->next;
			continue;
		}
		*link = f->next;
		sparse_close(f);
		free(f);
	}
	lib_maps_list_free(list, bytes);
}

static int
sparse_add(void)
{
	struct lib_sparse *f = calloc(1, sizeof(*f));
	int err;

	if (f == NULL)
		return lib_no_memory("a file", sizeof(*f));
	err = sparse_open(f);
	if (err != 0) {
		free(f);
		return err;
	}
	sparse_tidy();
	f->next = files;
	files = f;
	return 0;
}

int
lib_sparse_take(struct lib_sparse **file, uint64_t *offset)
{
	if (files == NULL || files->slots == SLOTS || !sparse_is_open(files)) {
		int err = sparse_add();

		if (err != 0)
			return err;
	}
	*file = files;
	*offset = files->slots++ * LIB_SLOT;
	files->references++;
	return 0;
}

void
lib_sparse_give(struct lib_sparse *file)
{
	file->references--;
}

struct lib_sparse *
lib_sparse_of(dev_t dev, ino_t inode)
{
	for (struct lib_sparse *f = files; f != NULL; f = f->next)
		if (f->dev == dev && f->inode == inode) {
			f->references++;
			return f;
		}
	return NULL;
}

bool
lib_sparse_has(dev_t dev, ino_t inode)
{
	const struct lib_sparse *f = files;

	while (f != NULL && (f->dev != dev || f->inode != inode))
		f = f->next;
	return f != NULL;
}

bool
lib_sparse_any(void)
{
	return files != NULL;
}

/* -1: the program has closed it. */
int
lib_sparse_fd(const struct lib_sparse *file)
{
	return sparse_is_open(file) ? file->fd : -1;
}

void
lib_sparse_numbers(const struct lib_sparse *file, dev_t *dev, ino_t *inode)
{
	*dev = file->dev;
	*inode = file->inode;
}

/* Pages that cannot be freed take memory until the file is closed. */
void
lib_sparse_punch(const struct lib_sparse *file, uint64_t offset, uint64_t bytes)
{
	if (sparse_is_open(file))
		(void)fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
				(off_t)bytes);
}

bool
lib_sparse_used(const struct lib_sparse *file, uint64_t offset, uint64_t end)
{
	off_t data = sparse_is_open(file) ? lseek(file->fd, (off_t)offset, SEEK_DATA) : -1;

	return data >= 0 && (uint64_t)data < end;
}

uint64_t
lib_sparse_extent(const struct lib_sparse *file, uint64_t offset, uint64_t end, bool *data)
{
	off_t next = -1;

	*data = true;
	if (!sparse_is_open(file))
		return end;
	next = lseek(file->fd, (off_t)offset, SEEK_DATA);
	if (next >= 0 && (uint64_t)next == offset)
		next = lseek(file->fd, (off_t)offset, SEEK_HOLE);
	else
		*data = next < 0 && errno != ENXIO; /* ENXIO: no data until the file's end */
	return next >= 0 && (uint64_t)next < end ? (uint64_t)next : end;
}

int
lib_sparse_read(const struct lib_sparse *file, uint64_t offset, void *to, size_t bytes)
{
	if (!sparse_is_open(file))
		return -EBADF;
	for (size_t done = 0; done < bytes;) {
		ssize_t n =
			pread(file->fd, (uint8_t *)to + done, bytes - done, (off_t)(offset + done));

		if (n <= 0 && errno != EINTR)
			return n < 0 ? -errno : -EIO;
		if (n > 0)
			done += (size_t)n;
	}
	return 0;
}

void
lib_sparse_forget(void)
{
	for (struct lib_sparse *f = files; f != NULL; f = f->next)
		sparse_close(f);
	files = NULL;
}
