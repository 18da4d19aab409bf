/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib_error.h"
#include "lib_hold.h"
#include "lib_sys.h"

/* Stack that the functions here and the kernel's calls use, around the current frame */
#define STACK_BELOW 16384u
#define STACK_ABOVE 1024u
/* More than the C library's data of a thread; on x86 the program's TLS lies before it. */
#define THREAD_ROOM 2560u
#ifdef __x86_64__
#define THREAD_BEFORE 0u
#else
#define THREAD_BEFORE THREAD_ROOM
#endif

static int hold_fd = -1;
static dev_t hold_dev; /* of its inode, which is its own from Linux 5.12 on */
static ino_t hold_inode;

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

/* The descriptor must also handle faults of the kernel: read(2) must wait, not fail. */
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

/* A program that closes all descriptors may have another file under the number. */
static bool
hold_is_open(void)
{
	struct stat st;

	return hold_fd >= 0 && fstat(hold_fd, &st) == 0 && st.st_dev == hold_dev &&
	       st.st_ino == hold_inode;
}

static int
hold_keep(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	hold_dev = st.st_dev;
	hold_inode = st.st_ino;
	hold_fd = fd;
	return 0;
}

int
lib_hold_ready(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd, err;

	if (hold_is_open())
		return 0;
	hold_fd = -1;
	fd = open_fd();
	if (fd < 0)
		return refuse(errno);
	if (lib_sys_ioctl(fd, UFFDIO_API, &api) == 0 &&
	    (api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP) != 0 && hold_keep(fd) == 0)
		return 0;
	err = errno != 0 ? errno : EOPNOTSUPP;
	close(fd);
	return refuse(err);
}

void
lib_hold_forget(void)
{
	if (hold_is_open())
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

static bool
overlaps(uint64_t va, uint64_t bytes, uint64_t first, uint64_t end)
{
	return va < end && first < va + bytes;
}

/*
 * Pages that this thread writes while writers are blocked: its stack and its errno, and the kernel:
 * its rseq area, which the C library keeps in its own data at the thread pointer.
 */
static bool
own_thread_writes(uint64_t va, uint64_t bytes)
{
	uint64_t stack = (uintptr_t)__builtin_frame_address(0), no = (uintptr_t)&errno;
	uint64_t thread = (uintptr_t)__builtin_thread_pointer();

	return overlaps(va, bytes, stack - STACK_BELOW, stack + STACK_ABOVE) ||
	       overlaps(va, bytes, no, no + sizeof(errno)) ||
	       overlaps(va, bytes, thread - THREAD_BEFORE, thread + THREAD_ROOM);
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
lib_hold_fail(int err, uint64_t va)
{
	switch (err) {
	case -ENOMEM:
		return lib_fail(
			err,
			"memory at %#llx cannot be exchanged: out of memory, or the process "
			"has as many mappings as vm.max_map_count permits",
			(unsigned long long)va);
	case -EAGAIN:
		return lib_fail(
			-EOPNOTSUPP,
			"memory at %#llx cannot be exchanged: the process locks its memory, "
			"and may not lock so much (RLIMIT_MEMLOCK, ulimit -l)",
			(unsigned long long)va);
	case -EBUSY: /* the program watches the memory with userfaultfd */
	case -EPERM: /* the program has sealed it */
	case -EACCES:
		err = -EOPNOTSUPP;
		break;
	default:
		break;
	}
	return lib_fail(err, "memory at %#llx cannot be exchanged: %s", (unsigned long long)va,
			strerror(-err));
}

int
lib_hold_watched(uint64_t va, uint64_t bytes)
{
	struct uffdio_register reg = {.range = {va, bytes}, .mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_range range = {va, bytes};
	int err = lib_hold_ready();

	if (err != 0)
		return err;
	if (lib_sys_ioctl(hold_fd, UFFDIO_REGISTER, &reg) != 0)
		return lib_hold_fail(-errno, va);
	if (lib_sys_ioctl(hold_fd, UFFDIO_UNREGISTER, &range) != 0)
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
	if (lib_sys_populate((void *)(uintptr_t)va, bytes, true) != 0)
		return lib_hold_fail(-errno, va);
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
	return err == 0 ? 0 : lib_hold_fail(err, va);
}

int
lib_hold_absent(struct lib_hold *hold, uint64_t va, uint64_t bytes)
{
	struct uffdio_register reg = {.range = {va, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	sigset_t all;
	int err = lib_hold_ready();

	if (err != 0)
		return err;
	*hold = (struct lib_hold){.va = va, .bytes = bytes};
	/* a signal handler that touches them would block the thread it interrupts */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &hold->signals);
	if (lib_sys_ioctl(hold_fd, UFFDIO_REGISTER, &reg) == 0)
		return 0;
	err = -errno;
	pthread_sigmask(SIG_SETMASK, &hold->signals, NULL);
	return lib_hold_fail(err, va);
}

/* Private memory that replaces the range is not registered; the rest of the range is. */
void
lib_hold_absent_end(const struct lib_hold *hold)
{
	struct uffdio_range range = {hold->va, hold->bytes};

	if (lib_sys_ioctl(hold_fd, UFFDIO_UNREGISTER, &range) != 0 ||
	    lib_sys_ioctl(hold_fd, UFFDIO_WAKE, &range) != 0)
		lib_hold_forget();
	pthread_sigmask(SIG_SETMASK, &hold->signals, NULL);
}
