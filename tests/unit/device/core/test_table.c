/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory of a device without hugepages: tables, small and large, and pools; names of counters. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_memory.h>

#include "../../../test_eal.h"
#include "core/core.h"
#include "core/mbuf.h"
#include "core/table.h"

#define HUGE_PAGE (2u << 20)

static bool
is_zero(const uint8_t *p, size_t bytes)
{
	return bytes == 0 || (p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0);
}

/* Heap or mapping: zero, aligned, free to write up to the last byte. */
static void
test_tables(void **state)
{
	const size_t sizes[] = {1, 64, 4096, 250u << 10, 256u << 10, HUGE_PAGE, 3 * HUGE_PAGE + 5};

	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		uint8_t *p = hca_table_alloc(sizes[i], 1, SOCKET_ID_ANY);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % RTE_CACHE_LINE_SIZE, 0);
		assert_true(is_zero(p, sizes[i]));
		/* large tables are no part of the heap, which would clear them when they go */
		assert_int_equal(rte_mem_virt2memseg_list(p) != NULL, sizes[i] < 256u << 10);
		memset(p, 0xa5, sizes[i]);
		hca_table_free(p);
	}
	hca_table_free(NULL);
}

/* Memory that was used by an earlier table is zero again. */
static void
test_zero_again(void **state)
{
	for (uint32_t i = 0; i < 3; i++) {
		uint8_t *p = hca_table_alloc(100, 64, SOCKET_ID_ANY);

		assert_non_null(p);
		assert_true(is_zero(p, 100 * 64));
		memset(p, 0xff, 100 * 64);
		hca_table_free(p);
	}
}

static void
test_no_memory(void **state)
{
	assert_null(hca_table_alloc(1, (size_t)1 << 46, SOCKET_ID_ANY));
	assert_null(hca_mbuf_pool("too_large", 1u << 20, 0, 9216, SOCKET_ID_ANY));
	assert_int_equal(rte_errno, ENOMEM);
	/* its name is free again */
	rte_mempool_free(hca_mbuf_pool("too_large", 15, 0, 2048, SOCKET_ID_ANY));
}

/* Buffers of less and of more than a page: each has its room and its private area. */
static void
test_pools(void **state)
{
	const uint16_t rooms[] = {512, 2048 + RTE_PKTMBUF_HEADROOM, 4096 + RTE_PKTMBUF_HEADROOM,
				  9216};
	struct rte_mbuf *mbufs[63];

	for (size_t i = 0; i < RTE_DIM(rooms); i++) {
		struct rte_mempool *mp =
			hca_mbuf_pool("pool", RTE_DIM(mbufs), 0, rooms[i], SOCKET_ID_ANY);

		assert_non_null(mp);
		assert_int_equal(rte_pktmbuf_alloc_bulk(mp, mbufs, RTE_DIM(mbufs)), 0);
		assert_null(rte_pktmbuf_alloc(mp));
		for (size_t n = 0; n < RTE_DIM(mbufs); n++) {
			assert_int_equal(mbufs[n]->buf_len, rooms[i]);
			assert_int_equal(rte_pktmbuf_priv_size(mp), HCA_MBUF_PRIV);
			memset(rte_mbuf_to_priv(mbufs[n]), (int)n, HCA_MBUF_PRIV);
			memset(mbufs[n]->buf_addr, (int)n, rooms[i]);
		}
		/* none overlaps another */
		for (size_t n = 0; n < RTE_DIM(mbufs); n++) {
			const uint8_t *data = mbufs[n]->buf_addr,
				      *priv = rte_mbuf_to_priv(mbufs[n]);

			assert_int_equal(data[0], n);
			assert_int_equal(data[rooms[i] - 1], n);
			assert_int_equal(priv[0], n);
			assert_int_equal(priv[HCA_MBUF_PRIV - 1], n);
		}
		rte_pktmbuf_free_bulk(mbufs, RTE_DIM(mbufs));
		rte_mempool_free(mp);
	}
}

static void
test_counter_names(void **state)
{
	unsigned int n = hca_counter_count();

	for (unsigned int i = 0; i < n; i++) {
		assert_non_null(hca_counter_name(i));
		for (unsigned int k = 0; k < i; k++)
			assert_string_not_equal(hca_counter_name(i), hca_counter_name(k));
	}
	assert_null(hca_counter_name(n));
	assert_null(hca_counter_name(UINT32_MAX));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),	      cmocka_unit_test(test_zero_again),
		cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_pools),
		cmocka_unit_test(test_counter_names),
	};

	if (test_eal_start(32) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
