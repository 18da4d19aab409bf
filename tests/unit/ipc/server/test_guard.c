/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The SIGBUS handler while clients come and go: pages of one memory vanish again and again while
 * others are created and destroyed at the same addresses. Only bytes of the lost segment become
 * zeros.
 */

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc_memory_impl.h"

#define LOSSES 2000u
#define BYTES UINT64_C(0x10000)
#define VA UINT64_C(0x10000000)
#define LARGE (2 * HCA_CTL_SMALL_FILE)

struct user {
	int file, lost_fd;
	uint32_t failed; /* number of failed checks, because a thread cannot assert */
	bool end;
};

static struct ipc_memory *
make_of(const struct user *u, uint64_t bytes)
{
	static struct ipc_maps maps = {.share = 4};
	const struct hca_ctl_segment segment = {VA, bytes, 0, HCA_CTL_SEGMENT_SEAL, 0};
	const struct ipc_memory_config c = {.bytes_max = LARGE,
					    .segments_max = 4,
					    .lost_fd = u->lost_fd,
					    .maps = &maps};
	struct ipc_memory *m;
	uint32_t handle;

	if (ipc_memory_create(&c, &m) != 0)
		return NULL;
	if (ipc_memory_attach(m, &segment, u->file, &handle) == 0)
		return m;
	ipc_memory_destroy(m);
	return NULL;
}

static struct ipc_memory *
make(const struct user *u)
{
	return make_of(u, BYTES);
}

static void *
come_and_go(void *arg)
{
	struct user *u = arg;

	while (!__atomic_load_n(&u->end, __ATOMIC_RELAXED)) {
		struct ipc_memory *m = make(u);
		volatile uint8_t *byte;

		if (m == NULL) {
			u->failed = __LINE__;
			break;
		}
		byte = (volatile uint8_t *)(uintptr_t)m->segment[0].bus;
		if (*byte != 'x' || __atomic_load_n(&m->lost, __ATOMIC_ACQUIRE))
			u->failed = __LINE__;
		ipc_memory_destroy(m);
	}
	return NULL;
}

static int
file_of(uint64_t bytes)
{
	int fd = memfd_create("guard", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	for (uint64_t at = 0; at < bytes; at += 4096)
		assert_int_equal(pwrite(fd, "", 1, (off_t)at), 1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

/* Access pages that are missing: they read as zeros, and the owner is told. */
static void
lose(const struct user *u, int empty)
{
	struct ipc_memory *m = make(u);
	volatile uint8_t *byte;
	uint64_t told = 0;

	assert_non_null(m);
	byte = (volatile uint8_t *)(uintptr_t)m->segment[0].bus;
	assert_int_equal(*byte, 'x');
	assert_ptr_not_equal(mmap((void *)(uintptr_t)byte, BYTES, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, empty, 0),
			     MAP_FAILED);
	assert_int_equal(*byte, 0);
	assert_true(__atomic_load_n(&m->lost, __ATOMIC_ACQUIRE));
	assert_int_equal(read(u->lost_fd, &told, sizeof(told)), sizeof(told));
	assert_int_equal(told, 1);
	ipc_memory_destroy(m);
}

static void
loss_beside_others(void)
{
	struct user loser = {.file = file_of(BYTES), .lost_fd = eventfd(0, EFD_NONBLOCK)};
	struct user other[2];
	int empty = file_of(0);
	pthread_t thread[2];

	assert_int_equal(ipc_memory_guard(), 0);
	assert_int_equal(pwrite(loser.file, "x", 1, 0), 1);
	for (unsigned int i = 0; i < 2; i++) {
		other[i] = (struct user){.file = loser.file, .lost_fd = eventfd(0, EFD_NONBLOCK)};
		assert_int_equal(pthread_create(&thread[i], NULL, come_and_go, &other[i]), 0);
	}
	for (unsigned int i = 0; i < LOSSES; i++)
		lose(&loser, empty);
	for (unsigned int i = 0; i < 2; i++) {
		__atomic_store_n(&other[i].end, true, __ATOMIC_RELAXED);
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_int_equal(other[i].failed, 0);
		close(other[i].lost_fd);
	}
	close(empty);
	close(loser.file);
	close(loser.lost_fd);
}

/* All pages are missing, and this many are accessed: how often the handler replaced some. */
static uint64_t
replaced(uint64_t bytes, unsigned int accessed)
{
	struct user u = {.file = file_of(bytes), .lost_fd = eventfd(0, EFD_NONBLOCK)};
	struct ipc_memory *m = make_of(&u, bytes);
	volatile uint8_t *byte;
	int empty = file_of(0);
	uint64_t told = 0;

	assert_non_null(m);
	byte = (volatile uint8_t *)(uintptr_t)m->segment[0].bus;
	assert_ptr_not_equal(mmap((void *)(uintptr_t)byte, bytes, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, empty, 0),
			     MAP_FAILED);
	for (unsigned int i = 0; i < accessed; i++)
		assert_int_equal(byte[bytes - (i + 1) * UINT64_C(4096)], 0);
	assert_int_equal(read(u.lost_fd, &told, sizeof(told)), sizeof(told));
	ipc_memory_destroy(m);
	close(empty);
	close(u.file);
	close(u.lost_fd);
	return told;
}

/* A client can make a worker wait once for each small segment, not for each of its pages. */
static void
small_at_once(void)
{
	assert_int_equal(replaced(BYTES, BYTES / 4096), 1);
	assert_int_equal(replaced(HCA_CTL_SMALL_FILE, 64), 1);
}

static void
large_in_pieces(void)
{
	assert_int_equal(replaced(LARGE, 8), 8);
	assert_int_equal(replaced(LARGE, 64), 33); /* then the rest at once */
}

/* In one test, because cmocka takes SIGBUS back at the end of each. */
static void
all_losses(void **state)
{
	small_at_once();
	large_in_pieces();
	loss_beside_others();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
