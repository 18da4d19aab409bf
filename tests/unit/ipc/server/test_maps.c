/* SPDX-License-Identifier: BSD-3-Clause */

/* Segments of all clients together: no client can use up the process's mappings. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc_memory.h"

#define BYTES 0x1000ull
#define SEGMENTS 64u

static int file;

static int
attach(struct ipc_memory *m, uint32_t i, uint32_t *handle)
{
	const struct hca_ctl_segment r = {.va = UINT64_C(0x10000000) + i * 2 * BYTES,
					  .length = BYTES};

	return ipc_memory_attach(m, &r, file, handle);
}

static uint32_t
attach_all(struct ipc_memory *m, uint32_t *last)
{
	uint32_t n = 0;

	while (n < SEGMENTS && attach(m, n, last) == 0)
		n++;
	return n;
}

static struct ipc_memory *
make(struct ipc_maps *maps)
{
	const struct ipc_memory_config c = {.bytes_max = UINT64_C(1) << 30,
					    .segments_max = SEGMENTS,
					    .lost_fd = -1,
					    .maps = maps};
	struct ipc_memory *m;

	assert_int_equal(ipc_memory_create(&c, &m), 0);
	return m;
}

static void
one_takes_all(void **state)
{
	struct ipc_maps maps = {.share = 3, .common = 5};
	struct ipc_memory *greedy = make(&maps), *other = make(&maps);
	uint32_t last = 0, handle;

	assert_int_equal(attach_all(greedy, &last), 8);
	assert_int_equal(attach(greedy, 8, &handle), -ENOMEM);
	assert_int_equal(attach_all(other, &handle), 3);
	assert_int_equal(ipc_memory_detach(greedy, last), 0);
	assert_int_equal(attach(other, 3, &handle), 0);
	assert_int_equal(attach(greedy, 7, &handle), -ENOMEM);
	ipc_memory_destroy(greedy);
	assert_int_equal(attach(other, 4, &handle), 0);
	assert_int_equal(maps.used, 2);
	ipc_memory_destroy(other);
	assert_int_equal(maps.used, 0);
}

/* A mapping that fails is not charged. */
static void
refused(void **state)
{
	struct ipc_maps maps = {.share = 0, .common = 1};
	struct ipc_memory *m = make(&maps);
	const struct hca_ctl_segment beyond = {.va = BYTES, .length = 4 * BYTES};
	uint32_t handle;

	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(ipc_memory_attach(m, &beyond, file, &handle), -EBADF);
	assert_int_equal(attach(m, 0, &handle), 0);
	assert_int_equal(attach(m, 1, &handle), -ENOMEM);
	ipc_memory_destroy(m);
	assert_int_equal(maps.used, 0);
}

/*
 * All shares together leave the daemon the mappings it needs itself, whatever the machine's limit.
 */
static void
limits(void **state)
{
	static const uint32_t clients[] = {1, 256, 2047}, limit[] = {1, 4096, 65530, 1u << 20};
	struct ipc_maps maps;

	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int k = 0; k < 4; k++) {
			ipc_maps_init(&maps, clients[i], limit[k]);
			assert_true((uint64_t)maps.share * clients[i] + maps.common + 4096 <=
				    (limit[k] > 4096 ? limit[k] : 4096));
		}
	ipc_maps_init(&maps, 256, 65530);
	assert_in_range(maps.share, 100, 65530);
	assert_in_range(maps.common, 25000, 65530); /* for a client with as many regions */
	ipc_maps_init(&maps, 1024, 65530);
	assert_in_range(maps.common, 25000, 65530);
	ipc_maps_init(&maps, 256, 0);
	assert_true(maps.share * 256 + maps.common > 0);
}

int
main(void)
{
	const char page[BYTES] = {0}; /* a file without holes */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_takes_all),
		cmocka_unit_test(refused),
		cmocka_unit_test(limits),
	};

	file = memfd_create("maps", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (file < 0 || write(file, page, sizeof(page)) != (ssize_t)sizeof(page) ||
	    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
