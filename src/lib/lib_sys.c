/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib_sys.h"

_Static_assert(sizeof(long) == sizeof(void *) && sizeof(long) == 8, "offsets in bytes");

void *
lib_sys_mmap(void *at, size_t bytes, int prot, int flags, int fd, uint64_t offset)
{
	void *got = (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, offset);

	if (got == MAP_FAILED || got == at || (flags & MAP_FIXED) == 0)
		return got;
	lib_sys_munmap(got, bytes);
	errno = EFAULT;
	return MAP_FAILED;
}

int
lib_sys_munmap(void *at, size_t bytes)
{
	return (int)syscall(SYS_munmap, at, bytes);
}

int
lib_sys_move(void *from, size_t bytes, void *to)
{
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	void *got = (void *)syscall(SYS_mremap, from, bytes, bytes, flags, to);

	if (got == to)
		return 0;
	if (got == MAP_FAILED)
		return -1;
	/* moved elsewhere: move the caller's mapping back */
	syscall(SYS_mremap, got, bytes, bytes, flags, from);
	errno = EFAULT;
	return -1;
}

int
lib_sys_mprotect(void *at, size_t bytes, int prot)
{
	return (int)syscall(SYS_mprotect, at, bytes, prot);
}

int
lib_sys_madvise(void *at, size_t bytes, int advice)
{
	return (int)syscall(SYS_madvise, at, bytes, advice);
}

int
lib_sys_populate(void *at, size_t bytes, bool write)
{
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (lib_sys_madvise(at, bytes, advice) == 0)
		return 0;
	if (errno != EINVAL)
		return -1;
	/* an unknown advice is an error even for no pages; else these cannot be accessed */
	if (lib_sys_madvise(NULL, 0, advice) != 0)
		return 0;
	errno = EFAULT;
	return -1;
}

int
lib_sys_ioctl(int fd, unsigned long request, void *arg)
{
	return (int)syscall(SYS_ioctl, fd, request, arg);
}
