/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ipc_memory.h"
#include "ipc_watch.h"

#define PAGE_SIZE UINT64_C(4096)
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* ---- watching ---- */

static int watch_fd = -1;

static void
open_watch(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS};

	/* only faults of this process's own code are handled, which needs no privileges */
	watch_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (watch_fd < 0 || ioctl(watch_fd, UFFDIO_API, &api) == 0)
		return;
	close(watch_fd);
	watch_fd = -1;
}

int
ipc_watch(uint64_t at, uint64_t bytes)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct uffdio_register reg = {.range = {at, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	pthread_once(&once, open_watch);
	if (watch_fd < 0)
		return -ENOSYS;
	return ioctl(watch_fd, UFFDIO_REGISTER, &reg) == 0 ? 0 : -errno;
}

/* ---- judging files ---- */

static int
judge_mode(const struct hca_ctl_segment *r, const struct ipc_file *file)
{
	int flags = fcntl(file->fd, F_GETFL), mode = flags & O_ACCMODE;

	if (flags < 0 || (flags & O_PATH) != 0)
		return ipc_fail(-EBADF, "memory comes as an open file");
	if (file->read_only)
		return mode == O_RDONLY || mode == O_RDWR
			       ? 0
			       : ipc_fail(-EBADF, "the file cannot be read");
	if ((file->seals & F_SEAL_FUTURE_WRITE) != 0)
		return ipc_fail(-EBADF,
				"the memfd is sealed against further writers: it is another "
				"device's, and one of more than %llu MiB serves one",
				(unsigned long long)HCA_CTL_SMALL_FILE >> 20);
	if (mode != O_RDWR || (file->seals & F_SEAL_WRITE) != 0)
		return ipc_fail(-EBADF, "the file cannot be written");
	if ((r->flags & HCA_CTL_SEGMENT_SEAL) != 0 && (file->seals & F_SEAL_SHRINK) == 0)
		return ipc_fail(-EBADF, "the memfd is not sealed against shrinking");
	return 0;
}

/* The last page of the file counts whole, as it is mapped. */
static int
judge_size(const struct hca_ctl_segment *r, struct ipc_file *file)
{
	struct statfs fs;
	struct stat st;
	uint64_t size;

	if (fstat(file->fd, &st) != 0 || !S_ISREG(st.st_mode) || fstatfs(file->fd, &fs) != 0)
		return ipc_fail(-EBADF, "memory comes as a regular file");
	file->page = fs.f_type == HUGETLBFS_MAGIC ? (uint64_t)st.st_blksize : PAGE_SIZE;
	size = ((uint64_t)st.st_size + file->page - 1) & ~(file->page - 1);
	if (r->offset > size || r->length > size - r->offset)
		return ipc_fail(-EBADF, "%llu bytes at %llu of a file of %llu",
				(unsigned long long)r->length, (unsigned long long)r->offset,
				(unsigned long long)st.st_size);
	return 0;
}

/*
 * The first question is answered by the kernel itself: files of a hostile file system are not
 * called for clients that are not trusted.
 */
int
ipc_file_judge(const struct hca_ctl_segment *request, struct ipc_file *file)
{
	int seals = fcntl(file->fd, F_GET_SEALS), err;

	if ((request->flags & ~(HCA_CTL_SEGMENT_READ_ONLY | HCA_CTL_SEGMENT_SEAL)) != 0 ||
	    request->reserved != 0)
		return ipc_fail(-EINVAL, "flags %#x of a segment", request->flags);
	file->shmem = seals >= 0;
	file->seals = seals >= 0 ? seals : 0;
	file->read_only = (request->flags & HCA_CTL_SEGMENT_READ_ONLY) != 0;
	if (!file->shmem && (!file->trusted || (request->flags & HCA_CTL_SEGMENT_SEAL) != 0))
		return ipc_fail(-EBADF, "the file is none of tmpfs or hugetlbfs, as memfds are, "
					"and the daemon does not trust its user");
	err = judge_mode(request, file);
	return err != 0 ? err : judge_size(request, file);
}

/* ---- holes ---- */

static int
has_holes(uint64_t va)
{
	return ipc_fail(-EFAULT,
			"memory at %#llx has holes: it is to be filled before it is attached",
			(unsigned long long)va);
}

/*
 * SEEK_HOLE does not find holes in hugetlbfs, and mincore() only reports pages that are mapped. If
 * holes are watched, mapping the whole file finds them without allocating pages; otherwise the file
 * must be full.
 */
static int
check_huge(const struct hca_ctl_segment *r, int fd, uint64_t at)
{
	struct stat st;

	if (ipc_watch(at, r->length) != 0)
		return fstat(fd, &st) == 0 && st.st_blocks * 512 >= st.st_size ? 0
									       : has_holes(r->va);
	if (madvise((void *)(uintptr_t)at, r->length, MADV_POPULATE_WRITE) == 0 || errno == EINVAL)
		return 0;
	return has_holes(r->va);
}

static int
check_holes(const struct hca_ctl_segment *r, const struct ipc_file *file, uint64_t at)
{
	off_t hole;

	if (file->page != PAGE_SIZE)
		return check_huge(r, file->fd, at);
	hole = lseek(file->fd, (off_t)r->offset, SEEK_HOLE);
	if (hole >= (off_t)(r->offset + r->length))
		return 0;
	return has_holes(hole >= 0 ? r->va + ((uint64_t)hole - r->offset) : r->va);
}

/* ---- protection ---- */

/* A small file that cannot grow stays small. */
static bool
stays_small(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size <= HCA_CTL_SMALL_FILE &&
	       (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0 ||
		(fcntl(fd, F_GET_SEALS) & F_SEAL_GROW) != 0) &&
	       fstat(fd, &st) == 0 && (uint64_t)st.st_size <= HCA_CTL_SMALL_FILE;
}

/* For a file that the client has made for this */
static int
protect_sealed(const struct hca_ctl_segment *request, const struct ipc_file *file, uint64_t at)
{
	int err = check_holes(request, file, at);

	/* seals remain: a refused file can be filled and attached */
	if (err != 0)
		return err;
	if (stays_small(file->fd))
		ipc_watch(at, request->length); /* otherwise holes are filled, a page at a time */
	else if (fcntl(file->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0)
		return ipc_fail(-EBADF, "the memfd cannot be sealed against holes: %s",
				strerror(errno));
	return check_holes(request, file, at); /* again: now there can be no new ones */
}

/* No process can remove pages of it, or truncate it. */
static bool
is_constant(const struct ipc_file *file)
{
	return (file->seals & F_SEAL_SHRINK) != 0 &&
	       (file->seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0;
}

int
ipc_file_protect(const struct hca_ctl_segment *request, const struct ipc_file *file, uint64_t at)
{
	if (file->trusted)
		return 0;
	if ((request->flags & HCA_CTL_SEGMENT_SEAL) != 0)
		return protect_sealed(request, file, at);
	if (ipc_watch(at, request->length) == 0)
		return 0;
	if (file->read_only && is_constant(file))
		return check_holes(request, file, at);
	return ipc_fail(-EBADF,
			file->read_only
				? "the file is neither open for writing nor sealed against "
				  "shrinking and writing, so the daemon cannot guard it"
				: "the daemon cannot guard the file: it may not use userfaultfd");
}
