/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_ABI_ABI_TEST_H
#define TESTS_UNIT_ABI_ABI_TEST_H

/*
 * Shared by the ABI tests: cmocka's headers in the required order, and comparison with golden
 * bytes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define assert_bytes(object, offset, ...) \
	do { \
		static const uint8_t golden_[] = {__VA_ARGS__}; \
		assert_true((offset) + sizeof(golden_) <= sizeof(object)); \
		assert_memory_equal((const uint8_t *)&(object) + (offset), golden_, \
				    sizeof(golden_)); \
	} while (0)

#endif
