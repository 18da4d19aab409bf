/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Lines of the exchange: written lines can be read, invalid ones are refused, unknown words are
 * skipped.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "perf_exchange.h"

static void
round_trip(void **state)
{
	struct perf_exchange x = {.version = 1, .qpn = 0xffffff, .vaddr = UINT64_MAX, .rkey = 7}, y;
	char line[PERF_EXCHANGE_LINE], word[PERF_EXCHANGE_WORD];
	int n;

	(void)state;
	for (unsigned int i = 0; i < 16; i++)
		x.gid[i] = (uint8_t)(i * 17);
	strcpy(x.text, "two words = one text");
	n = perf_exchange_format(line, sizeof(line), "case", &x);
	assert_int_equal(n, strlen(line));
	assert_string_equal(line,
			    "case version=1 qpn=16777215 vaddr=18446744073709551615 rkey=7 "
			    "gid=00112233445566778899aabbccddeeff text=two words = one text\n");
	assert_int_equal(perf_exchange_parse(line, word, &y), 0);
	assert_string_equal(word, "case");
	assert_memory_equal(&x, &y, sizeof(x));
}

static void
largest(void **state)
{
	char line[PERF_EXCHANGE_LINE], word[PERF_EXCHANGE_WORD];
	struct perf_exchange x, y;

	(void)state;
	memset(&x, 0xff, sizeof(x));
	memset(x.text, 'x', sizeof(x.text));
	x.text[sizeof(x.text) - 1] = '\0';
	assert_true(perf_exchange_format(line, sizeof(line), "fifteen-letters", &x) > 0);
	assert_int_equal(perf_exchange_parse(line, word, &y), 0);
	assert_memory_equal(&x, &y, sizeof(x));
	for (size_t room = 0; room < strlen(line) + 1; room++)
		assert_int_equal(perf_exchange_format(word, room < sizeof(word) ? room : 0,
						      "fifteen-letters", &x),
				 -ENOSPC);
}

static void
nonsense(void **state)
{
	static const char *const lines[] = {
		"",
		"\n",
		" case",
		"sixteen-letters-",
		"case qpn",
		"case =1",
		"case qpn=",
		"case qpn=-1",
		"case qpn= 1",
		"case qpn=1x",
		"case qpn=18446744073709551616",
		"case qpn=00000000000000000000000000000001",
		"case gid=00112233445566778899aabbccddeef",
		"case gid=00112233445566778899aabbccddeeffg",
		"case gid=0011223344556677-899aabbccddeeff",
		"case  qpn=1",
	};
	char word[PERF_EXCHANGE_WORD];
	struct perf_exchange x;

	(void)state;
	for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(perf_exchange_parse(lines[i], word, &x), -EPROTO);
}

static void
strangers(void **state)
{
	char word[PERF_EXCHANGE_WORD];
	struct perf_exchange x;

	(void)state;
	assert_int_equal(perf_exchange_parse("go colour=blue qpn=5 qpnx=6\n", word, &x), 0);
	assert_int_equal(x.qpn, 5);
	assert_int_equal(perf_exchange_parse("bye", word, &x), 0);
	assert_string_equal(word, "bye");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(largest),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
