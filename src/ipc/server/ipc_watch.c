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

/* ---- files ---- */

/* The first checks are done by the kernel itself: a file of a hostile file system is not called. */
int
ipc_file_judge(const struct hca_ctl_segment *request, int fd, uint64_t *page)
{
	int seals = fcntl(fd, F_GET_SEALS), flags = fcntl(fd, F_GETFL);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || flags < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    fstatfs(fd, &fs) != 0 || (fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC))
		return ipc_fail(-EBADF, "memory comes as a memfd, this is another kind of file");
	if ((seals & (F_SEAL_SHRINK | F_SEAL_SEAL)) == 0)
		return ipc_fail(-EBADF, "the memfd is not sealed against shrinking");
	if ((seals & F_SEAL_FUTURE_WRITE) != 0)
		return ipc_fail(-EBADF,
				"the memfd is sealed against further writers: it is another "
				"device's, and a file of more than %llu MiB serves one",
				(unsigned long long)HCA_CTL_SMALL_FILE >> 20);
	if ((flags & O_ACCMODE) != O_RDWR || (seals & F_SEAL_WRITE) != 0)
		return ipc_fail(-EBADF, "the memfd cannot be written");
	if (request->offset > (uint64_t)st.st_size ||
	    request->length > (uint64_t)st.st_size - request->offset)
		return ipc_fail(-EBADF, "%llu bytes at %llu of a file of %llu",
				(unsigned long long)request->length,
				(unsigned long long)request->offset,
				(unsigned long long)st.st_size);
	*page = fs.f_type == HUGETLBFS_MAGIC ? (uint64_t)st.st_blksize : PAGE_SIZE;
	return 0;
}

static int
has_holes(uint64_t va)
{
	return ipc_fail(-EFAULT,
			"memory at %#llx has holes: it is to be filled before it is attached",
			(unsigned long long)va);
}

/*
 * SEEK_HOLE does not find holes in hugetlbfs, and mincore() only knows pages that are mapped. If
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
check_holes(const struct hca_ctl_segment *r, int fd, uint64_t at, uint64_t page)
{
	off_t hole;

	if (page != PAGE_SIZE)
		return check_huge(r, fd, at);
	hole = lseek(fd, (off_t)r->offset, SEEK_HOLE);
	if (hole >= (off_t)(r->offset + r->length))
		return 0;
	return has_holes(hole >= 0 ? r->va + ((uint64_t)hole - r->offset) : r->va);
}

/* A file that cannot be sealed: an access to a page that is not there ends its owner. */
static int
guard(const struct hca_ctl_segment *request, uint64_t at)
{
	return ipc_watch(at, request->length) == 0
		       ? 0
		       : ipc_fail(-EBADF, "the file cannot be sealed, and this daemon cannot guard "
					  "it (userfaultfd)");
}

int
ipc_file_protect(const struct hca_ctl_segment *request, int fd, uint64_t at, uint64_t page)
{
	bool small = false;
	struct stat st;
	int err = check_holes(request, fd, at, page);

	/* seals remain: what is refused can be filled and attached */
	if (err != 0)
		return err;
	if ((fcntl(fd, F_GET_SEALS) & F_SEAL_SEAL) != 0)
		return guard(request, at);
	/* a small file that cannot grow stays small */
	if (fstat(fd, &st) == 0 && (uint64_t)st.st_size <= HCA_CTL_SMALL_FILE)
		small = (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0 ||
			 (fcntl(fd, F_GET_SEALS) & F_SEAL_GROW) != 0) &&
			fstat(fd, &st) == 0 && (uint64_t)st.st_size <= HCA_CTL_SMALL_FILE;
	if (small)
		ipc_watch(at, request->length); /* otherwise holes are filled, a page at a time */
	else if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0)
		return ipc_fail(-EBADF, "the memfd cannot be sealed against holes: %s",
				strerror(errno));
	return check_holes(request, fd, at, page); /* again: now there can be no new ones */
}
