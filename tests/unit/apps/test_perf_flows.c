/* SPDX-License-Identifier: BSD-3-Clause */

/* The file of softhca-perf --flows: values, defaults, messages of bad files; rates over time. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf_flows.h"
#include "softhca/softhca.h"

static struct perf_flows flows;
static char why[256];

static int
parse(const char *text)
{
	FILE *f = tmpfile();
	int rc;

	assert_non_null(f);
	assert_int_equal(fputs(text, f) < 0, 0);
	rewind(f);
	why[0] = '\0';
	rc = perf_flows_parse(f, "f.txt", &flows, why, sizeof(why));
	fclose(f);
	return rc;
}

static void
values(void **state)
{
	const struct perf_flow_spec *s = flows.spec;

	(void)state;
	assert_int_equal(
		parse("# flows\n\n"
		      "start=2ms size=10M message=8K rate=12.5 depth=4 dscp=26 ecn=1 congestion=swift "
		      "peer=0 op=read # one\n"
		      "\tduration=1.5s start=0 count=3\r\n"
		      "size=100"),
		0);
	assert_int_equal(flows.n, 5);
	assert_int_equal(s[0].line, 3);
	assert_int_equal(s[0].start_ns, 2000000);
	assert_int_equal(s[0].size, 10485760);
	assert_int_equal(s[0].message, 8192);
	assert_true(s[0].rate_gbps == 12.5);
	assert_int_equal(s[0].depth, 4);
	assert_int_equal(s[0].dscp, 26);
	assert_int_equal(s[0].ecn, 1);
	assert_int_equal(s[0].congestion, SOFTHCA_CONGESTION_SWIFT);
	assert_string_equal(s[0].peer, "0");
	assert_int_equal(s[0].op, PERF_FLOW_READ);
	for (unsigned int i = 1; i < 4; i++) {
		assert_int_equal(s[i].line, 4);
		assert_int_equal(s[i].duration_ns, 1500000000);
		assert_int_equal(s[i].size, 0);
		assert_int_equal(s[i].message, 65536);
		assert_int_equal(s[i].depth, 16);
		assert_int_equal(s[i].ecn, 0);
		assert_int_equal(s[i].congestion, SOFTHCA_CONGESTION_DEFAULT);
		assert_int_equal(s[i].op, PERF_FLOW_WRITE);
		assert_string_equal(s[i].peer, "1");
		assert_int_equal(s[i].count, 1);
	}
	assert_int_equal(s[4].message, 100);
	assert_int_equal(parse("size=1G peer=[fe80::1]:7\nsize=1 peer=host"), 0);
	assert_string_equal(s[0].peer, "[fe80::1]:7");
	assert_int_equal(s[0].size, 1073741824);
}

static void
bad_files(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"", "f.txt: no flow in it"},
		{"# nothing\n\n", "f.txt: no flow in it"},
		{"size=1M\nstart=1ms\n", "f.txt:2: neither size nor duration"},
		{"size=1M\n\nsize\n", "f.txt:3: \"size\": expected NAME=VALUE"},
		{"size=x", "f.txt:1: \"size=x\": expected bytes, 1 to 1024G"},
		{"size=", "f.txt:1: \"size=\": expected bytes, 1 to 1024G"},
		{"size=0", "f.txt:1: \"size=0\": expected bytes, 1 to 1024G"},
		{"size=-1", "f.txt:1: \"size=-1\": expected bytes, 1 to 1024G"},
		{"size=1.0001", "f.txt:1: \"size=1.0001\": expected bytes, 1 to 1024G"},
		{"size=1T", "f.txt:1: \"size=1T\": expected bytes, 1 to 1024G"},
		{"size=1M message=17M", "f.txt:1: \"message=17M\": expected bytes, 1 to 16M"},
		{"size=1K message=2K", "f.txt:1: message is larger than size"},
		{"duration=5", "f.txt:1: \"duration=5\": expected a time as 500us, 2ms or 1.5s"},
		{"duration=0", "f.txt:1: \"duration=0\": expected a time as 500us, 2ms or 1.5s"},
		{"duration=nan", "f.txt:1: \"duration=nan\": expected a time"},
		{"size=1 rate=0", "f.txt:1: \"rate=0\": expected Gb/s, 0.001 to 10000"},
		{"size=1 dscp=64", "f.txt:1: \"dscp=64\": expected 0 to 63"},
		{"size=1 dscp=1.5", "f.txt:1: \"dscp=1.5\": expected 0 to 63"},
		{"size=1 congestion=cubic",
		 "f.txt:1: \"congestion=cubic\": expected one of default none "
		 "dcqcn swift"},
		{"size=1 ecn=2", "f.txt:1: \"ecn=2\": expected 0 or 1"},
		{"size=1 op=send", "f.txt:1: \"op=send\": expected write or read"},
		{"size=1 peer=", "f.txt:1: \"peer=\": expected 0, 1 or HOST[:PORT] of a server"},
		{"size=1 depth=2000", "f.txt:1: \"depth=2000\": expected messages under way"},
		{"size=1 colour=red",
		 "f.txt:1: \"colour=red\": expected one of op peer start duration size message rate "
		 "depth dscp ecn count congestion"},
		{"size=1 count=1000\nsize=1 count=25", "f.txt:2: more than 1024 flows"},
		{"size=1\nsize=1 peer=host",
		 "f.txt:2: peer=host: peers are 0 and 1, or all of them servers"},
	};
	char longer[2000];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse(bad[i].text), -EINVAL);
		if (strncmp(why, bad[i].why, strlen(bad[i].why)) != 0)
			fail_msg("\"%s\": %s", bad[i].text, why);
	}
	memset(longer, ' ', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(parse(longer), -EINVAL);
	assert_string_equal(why, "f.txt:1: more than 1022 characters");
	memset(longer, 'p', sizeof(longer) - 1);
	memcpy(longer, "peer=", 5);
	longer[500] = '\0';
	assert_int_equal(parse(longer), -EINVAL);
	assert_non_null(strstr(why, "expected 0, 1 or HOST"));
}

static void
rates(void **state)
{
	static struct perf_flows_rate r;
	uint64_t sum = 0;

	(void)state;
	for (uint64_t i = 0; i < 3 * PERF_FLOWS_STEPS; i++)
		perf_flows_rate_add(&r, i * PERF_FLOWS_STEP_NS, 1);
	assert_int_equal(r.step_ns, 4 * PERF_FLOWS_STEP_NS);
	for (uint32_t i = 0; i < PERF_FLOWS_STEPS; i++) {
		assert_int_equal(r.bytes[i], i < 3 * PERF_FLOWS_STEPS / 4 ? 4 : 0);
		sum += r.bytes[i];
	}
	assert_int_equal(sum, 3 * PERF_FLOWS_STEPS);
}

static void
lines(void **state)
{
	struct perf_flows_result r = {.bytes = 1000000,
				      .messages = 20,
				      .end_ns = 1080000,
				      .cnps = 3};
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	assert_int_equal(parse("start=1ms size=1000000 message=50000 peer=\"x"), 0);
	r.spec = &flows.spec[0];
	perf_flows_rate_add(&r.rate, 150000, 1000000);
	assert_int_equal(perf_flows_print(f, 7, &r), 0);
	fclose(f);
	assert_string_equal(
		text,
		"{\"flow\": 7, \"line\": 1, \"peer\": \"\\\"x\", \"op\": \"write\", \"message\": "
		"50000, \"depth\": 16, \"dscp\": 0, \"ecn\": 0, \"congestion\": \"default\", \"start_us\": 1000.0, "
		"\"completion_us\": 80.0, \"bytes\": 1000000, \"messages\": 20, \"gbit_per_s\": "
		"100.0, \"failed\": false, \"cnps\": 3, \"retransmissions\": 0, \"timeouts\": 0, "
		"\"rate\": {\"step_us\": 100.0, \"gbit_per_s\": [0.0, 80.0]}}\n");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(bad_files),
		cmocka_unit_test(rates),
		cmocka_unit_test(lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
