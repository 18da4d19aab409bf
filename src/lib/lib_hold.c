/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib_error.h"
#include "lib_hold.h"
#include "lib_sys.h"

#define STACK_ROOM 65536u

static int hold_fd = -1;

static int
refuse(int err)
{
	return lib_fail(
		-EOPNOTSUPP,
		"private memory cannot be shared in place, as writers could not be held off "
		"(userfaultfd: %s): take memory from softhca_alloc(), or let the process use "
		"/dev/userfaultfd, or set vm.unprivileged_userfaultfd",
		strerror(err));
}

/* The descriptor must handle faults of the kernel, too: read(2) must wait, not fail. */
static int
open_fd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), dev;

	if (fd >= 0)
		return fd;
	dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -1;
#ifdef USERFAULTFD_IOC_NEW
	fd = lib_sys_ioctl(dev, USERFAULTFD_IOC_NEW, (void *)(O_CLOEXEC | O_NONBLOCK));
#endif
	close(dev);
	return fd;
}

int
lib_hold_ready(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd, err;

	if (hold_fd >= 0)
		return 0;
	fd = open_fd();
	if (fd < 0)
		return refuse(errno);
	if (lib_sys_ioctl(fd, UFFDIO_API, &api) == 0 &&
	    (api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP) != 0) {
		hold_fd = fd;
		return 0;
	}
	err = errno != 0 ? errno : EOPNOTSUPP;
	close(fd);
	return refuse(err);
}

void
lib_hold_forget(void)
{
	if (hold_fd >= 0)
		close(hold_fd);
	hold_fd = -1;
}

static int
protect(uint64_t va, uint64_t bytes, bool on)
{
	struct uffdio_writeprotect wp = {
		.range = {va, bytes},
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return lib_sys_ioctl(hold_fd, UFFDIO_WRITEPROTECT, &wp) == 0 ? 0 : -errno;
}

/*
 * Release waiting writers whatever fails here: after its descriptor is closed the kernel blocks no
 * writers, and the next exchange opens another one.
 */
static void
release_writers(uint64_t va, uint64_t bytes)
{
	struct uffdio_range range = {va, bytes};

	if (protect(va, bytes, false) != 0 ||
	    lib_sys_ioctl(hold_fd, UFFDIO_UNREGISTER, &range) != 0)
		lib_hold_forget();
}

/* Pages that this thread writes while writers are blocked: its stack, its errno */
static bool
own_thread_writes(uint64_t va, uint64_t bytes)
{
	uint64_t stack = (uintptr_t)__builtin_frame_address(0), no = (uintptr_t)&errno;

	return (va < stack + STACK_ROOM && stack < va + bytes + STACK_ROOM) ||
	       (va <= no && no - va < bytes);
}

/* volatile, so that the compiler does not call memcpy(), which may be intercepted */
__attribute__((no_sanitize("address", "thread"))) void
lib_hold_copy(void *to, const void *from, size_t bytes)
{
	const volatile uint64_t *source = from;
	volatile uint64_t *target = to;

	for (size_t i = 0; i < bytes / sizeof(*source); i++)
		target[i] = source[i];
}

/*
 * From here on only this stack and `fresh` are written: a store of this thread to the range would
 * wait for itself.
 */
static int
copy_and_place(uint64_t va, uint64_t bytes, void *fresh)
{
	struct uffdio_range range = {va, bytes};
	void *at = (void *)(uintptr_t)va;
	int err = protect(va, bytes, true);

	if (err != 0)
		return err;
	lib_hold_copy(fresh, at, bytes);
	if (lib_sys_move(fresh, bytes, at) != 0)
		return -errno;
	/* the range is not registered any more; waiting writers repeat their access */
	if (lib_sys_ioctl(hold_fd, UFFDIO_WAKE, &range) != 0)
		lib_hold_forget();
	return 0;
}

int
lib_hold_exchange(uint64_t va, uint64_t bytes, void *fresh)
{
	struct uffdio_register reg = {.range = {va, bytes}, .mode = UFFDIO_REGISTER_MODE_WP};
	sigset_t all, old;
	int err = lib_hold_ready();

	if (err != 0)
		return err;
	if (own_thread_writes(va, bytes))
		return lib_fail(-EOPNOTSUPP, "memory at %#llx is this thread's stack",
				(unsigned long long)va);
	/* only present pages can be protected */
	if (lib_sys_madvise((void *)(uintptr_t)va, bytes, MADV_POPULATE_WRITE) != 0)
		return lib_fail(-errno, "memory at %#llx: %s", (unsigned long long)va,
				strerror(errno));
	/* a signal handler that writes there would block the thread it interrupts */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = lib_sys_ioctl(hold_fd, UFFDIO_REGISTER, &reg) == 0 ? 0 : -errno;
	if (err == 0) {
		err = copy_and_place(va, bytes, fresh);
		if (err != 0)
			release_writers(va, bytes);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0)
		lib_fail(err, "writers of memory at %#llx cannot be held off: %s",
			 (unsigned long long)va, strerror(-err));
	return err;
}
