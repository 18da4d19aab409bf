/* SPDX-License-Identifier: BSD-3-Clause */

/* Register memory: its pages, the byte order of a word, and failures of its two allocations. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include <rte_memory.h>

#include "../../../test_eal.h"
#include "bar/bar.h"
#include "core/core.h"

static struct hca_core h;
static bool fail_mmap, fail_heap;

void *__real_mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off_t off);
void *__wrap_mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off_t off);
void *__real_rte_zmalloc_socket(const char *type, size_t bytes, unsigned int align, int socket);
void *__wrap_rte_zmalloc_socket(const char *type, size_t bytes, unsigned int align, int socket);

void *
__wrap_mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off_t off)
{
	if (fail_mmap) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap64(addr, bytes, prot, flags, fd, off);
}

void *
__wrap_rte_zmalloc_socket(const char *type, size_t bytes, unsigned int align, int socket)
{
	return fail_heap ? NULL : __real_rte_zmalloc_socket(type, bytes, align, socket);
}

static int
setup(void **state)
{
	h.cfg.socket_id = SOCKET_ID_ANY;
	fail_mmap = fail_heap = false;
	return 0;
}

static void
test_zero_pages(void **state)
{
	assert_int_equal(hca_bar_init(&h), 0);
	assert_int_equal((uintptr_t)h.bar0 % HCA_UAR_PAGE_SIZE, 0);
	assert_int_equal((uintptr_t)h.bar2 % HCA_UAR_PAGE_SIZE, 0);
	for (size_t i = 0; i < HCA_BAR0_SIZE; i++)
		assert_int_equal(h.bar0[i], 0);
	/* first and last byte of each page */
	for (size_t i = 0; i < HCA_BAR2_SIZE; i += HCA_UAR_PAGE_SIZE) {
		assert_int_equal(((uint8_t *)h.bar2)[i], 0);
		assert_int_equal(((uint8_t *)h.bar2)[i + HCA_UAR_PAGE_SIZE - 1], 0);
	}
	hca_bar_fini(&h);
	assert_null(h.bar0);
	assert_null(h.bar2);
	hca_bar_fini(&h);
}

/* Words are little-endian, whatever the host is. */
static void
test_words(void **state)
{
	static const uint8_t bytes[] = {0x44, 0x33, 0x22, 0x11};

	assert_int_equal(hca_bar_init(&h), 0);
	hca_bar_store(h.bar0, 8, 0x11223344);
	assert_memory_equal((const uint8_t *)h.bar0 + 8, bytes, 4);
	assert_int_equal(hca_bar_load(h.bar0, 8), 0x11223344);
	assert_int_equal(hca_bar_load(h.bar0, 4), 0);
	assert_int_equal(hca_bar_load(h.bar0, 12), 0);
	hca_bar_fini(&h);
}

static void
test_no_memory(void **state)
{
	fail_mmap = true;
	assert_int_equal(hca_bar_init(&h), -ENOMEM);
	assert_null(h.bar0);
	assert_null(h.bar2);
	fail_mmap = false;
	fail_heap = true;
	assert_int_equal(hca_bar_init(&h), -ENOMEM);
	assert_null(h.bar0);
	assert_null(h.bar2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_zero_pages, setup),
		cmocka_unit_test_setup(test_words, setup),
		cmocka_unit_test_setup(test_no_memory, setup),
	};

	if (test_eal_start(16) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
