/* SPDX-License-Identifier: BSD-3-Clause */

/* Impairments and captures as text. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "admin_capture.h"
#include "admin_impair.h"
#include "wire/wire_view.h"

static struct hca_impair odds;
static struct hca_fault_rule rule;
static struct admin_impair all;

/* enum admin_impair_what, or the error */
static int
parse(const char *text)
{
	char why[128];
	int rc = admin_impair_parse(text, &all, why, sizeof(why));

	odds = all.said.odds;
	rule = all.said.rule;
	return rc != 0 ? rc : (int)all.what;
}

static void
probabilities(void **state)
{
	(void)state;
	assert_int_equal(parse("drop=0.5,dup=1,reorder=0,corrupt=1e-3,truncate=.25,ecn=0.125,"
			       "delay=7,jitter=0x10"),
			 ADMIN_IMPAIR_ODDS);
	assert_true(odds.drop == 0.5 && odds.dup == 1 && odds.reorder == 0);
	assert_true(odds.corrupt == 1e-3 && odds.truncate == 0.25 && odds.ecn == 0.125);
	assert_int_equal(odds.delay_ns, 7000);
	assert_int_equal(odds.jitter_ns, 16000);
}

static void
rules(void **state)
{
	(void)state;
	assert_int_equal(parse("rule=delay,psn=0xffffff,opcode=4,nth=2,count=3,arg=5000"),
			 ADMIN_IMPAIR_RULE);
	assert_int_equal(rule.fault, HCA_FAULT_DELAY);
	assert_int_equal(rule.psn, 0xffffff);
	assert_int_equal(rule.opcode, 4);
	assert_int_equal(rule.nth, 2);
	assert_int_equal(rule.count, 3);
	assert_int_equal(rule.arg, 5000);
	assert_int_equal(parse("rule=corrupt_icrc"), ADMIN_IMPAIR_RULE);
	assert_int_equal(rule.psn, HCA_FAULT_ANY);
	assert_int_equal(rule.opcode, HCA_FAULT_ANY);
	assert_int_equal(parse("off"), ADMIN_IMPAIR_OFF);
	assert_int_equal(parse(""), ADMIN_IMPAIR_NOTHING);
}

/* Without dir only sent frames are impaired; "off" alone ends both directions. */
static void
directions(void **state)
{
	static const struct {
		const char *text;
		int what;
		bool sent, received;
		uint32_t qpn;
		const char *words;
	} all_of_them[] = {
		{"drop=1", ADMIN_IMPAIR_ODDS, true, false, 0, "drop=1"},
		{"rule=drop", ADMIN_IMPAIR_RULE, true, false, 0, "rule=drop"},
		{"dir=out,drop=1", ADMIN_IMPAIR_ODDS, true, false, 0, "drop=1"},
		{"dir=in,drop=1", ADMIN_IMPAIR_ODDS, false, true, 0, "drop=1"},
		{"dir=both,rule=dup,psn=3", ADMIN_IMPAIR_RULE, true, true, 0, "rule=dup,psn=3"},
		{"off", ADMIN_IMPAIR_OFF, true, true, 0, "off"},
		{"dir=in,off", ADMIN_IMPAIR_OFF, false, true, 0, "off"},
		{"dir=out,off", ADMIN_IMPAIR_OFF, true, false, 0, "off"},
		{"dir=in,qp=0x12,drop=1", ADMIN_IMPAIR_ODDS, false, true, 0x12, "qp=0x12,drop=1"},
		{"tp=0x13,drop=1", ADMIN_IMPAIR_ODDS, true, false, 0, "tp=0x13,drop=1"},
		{"rule=drop,psn=1,qp=16777215", ADMIN_IMPAIR_RULE, true, false, 0xffffff,
		 "rule=drop,psn=1,qp=16777215"},
		{"", ADMIN_IMPAIR_NOTHING, false, false, 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all_of_them) / sizeof(all_of_them[0]); i++) {
		assert_int_equal(parse(all_of_them[i].text), all_of_them[i].what);
		assert_int_equal(all.sent, all_of_them[i].sent);
		assert_int_equal(all.received, all_of_them[i].received);
		assert_int_equal(all.said.qpn, all_of_them[i].qpn);
		assert_int_equal(all.said.tpn, strncmp(all.words, "tp=", 3) == 0 ? 0x13 : 0);
		assert_string_equal(all.words, all_of_them[i].words);
	}
}

static void
refused(void **state)
{
	static const char *const bad[] = {
		"dir=in",
		"dir=in,",
		"dir=up,drop=1",
		"dir=in,dir=out,drop=1",
		"drop=1,dir=in",
		"in,drop=1",
		"qp=0,drop=1",
		"qp=0x1000000,drop=1",
		"qp=x,drop=1",
		"rule=drop,qp=",
		"tp=0,drop=1",
		"tp=0x1000000,drop=1",
		"qp=1,tp=2,drop=1",
		"drop",
		"drop=",
		"drop=1.5",
		"drop=-0.1",
		"drop=nan",
		"drop=0.1x",
		"=1",
		",",
		"drop=0.1,",
		"fly=1",
		"delay=1.5",
		"delay=99999999999",
		"delay_us=1",
		"rule=",
		"rule=melt",
		"rule=drop,psn=16777216",
		"rule=drop,drop=1",
		"psn=1",
		"rule=drop,opcode=256",
		"rule=drop,nth=-1",
		"OFF",
	};
	char longest[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(bad[i]) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = 'd';
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(parse(longest), -EINVAL);
}

static void
captures(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"relative/path",
		"dir=in",
		"dir=up,/x",
		"qp=,/x",
		"tp=0,/x",
		"qp=1,tp=1,/x",
		"tp=1,qp=1,/x",
		"qp=0,/x",
		"qp=1x,/x",
		"qp=0x1000000,/x",
		"snaplen=13,/x",
		"snaplen=-1,/x",
		"snaplen=65536,/x",
		",/x",
		"dir=in,dir=out,/x",
		"qp=00000000000000000000000000000000000001,/x",
	};
	struct admin_capture c;

	(void)state;
	assert_int_equal(admin_capture_parse("/tmp/a,b", &c), 0);
	assert_string_equal(c.path, "/tmp/a,b");
	assert_false(c.ng.no_received || c.ng.no_sent || c.ng.one_qp);
	assert_int_equal(admin_capture_parse("dir=in,qp=0x123,snaplen=64,/x", &c), 0);
	assert_true(c.ng.no_sent && !c.ng.no_received && c.ng.one_qp);
	assert_int_equal(c.ng.qpn, 0x123);
	assert_int_equal(c.ng.wire, HCA_WIRE_ROCE);
	assert_int_equal(c.ng.snaplen, 64);
	assert_int_equal(admin_capture_parse("tp=0x123,/x", &c), 0);
	assert_true(c.ng.one_qp && c.ng.qpn == 0x123 && c.ng.wire == HCA_WIRE_UB);
	assert_int_equal(admin_capture_parse("dir=out,/x", &c), 0);
	assert_true(c.ng.no_received && !c.ng.no_sent);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (admin_capture_parse(bad[i], &c) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probabilities), cmocka_unit_test(rules),
		cmocka_unit_test(directions),	 cmocka_unit_test(refused),
		cmocka_unit_test(captures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
