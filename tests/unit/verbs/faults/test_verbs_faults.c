/* SPDX-License-Identifier: BSD-3-Clause */

/* Faults of verbs as text: each form, defaults, several in a line, and refusals with a reason. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <softhca/softhca.h>

#include "faults/verbs_faults.h"

static struct verbs_fault f;
static char why[400];

static const char *
parse(const char *text)
{
	const char *rest = text;

	assert_int_equal(verbs_fault_parse(&rest, &f, why, sizeof(why)), 0);
	return rest;
}

static void
assert_refused(const char *text, const char *reason)
{
	const char *rest = text;

	assert_int_equal(verbs_fault_parse(&rest, &f, why, sizeof(why)), -EINVAL);
	if (strstr(why, reason) == NULL)
		fail_msg("%s: \"%s\" instead of \"%s\"", text, why, reason);
}

static void
test_calls(void **state)
{
	assert_null(parse("call=ibv_reg_mr,nth=3,errno=ENOMEM"));
	assert_int_equal(f.kind, VERBS_FAULT_CALL);
	assert_string_equal(f.call, "reg_mr");
	assert_int_equal(f.err, ENOMEM);
	assert_int_equal(f.nth, 3);
	assert_int_equal(f.count, 1); /* with nth */
	assert_string_equal(f.text, "call=ibv_reg_mr,nth=3,errno=ENOMEM");
}

static void
test_defaults(void **state)
{
	parse("call=post_send,errno=EAGAIN");
	assert_string_equal(f.call, "post_send");
	assert_int_equal(f.nth, 1);
	assert_int_equal(f.count, 0); /* all */
	parse("call=rdma_connect,errno=ECONNREFUSED,count=2");
	assert_string_equal(f.call, "rdma_connect");
	assert_int_equal(f.count, 2);
	parse("completion,nth=5,count=0,status=retry-exc");
	assert_int_equal(f.nth, 5);
	assert_int_equal(f.count, 0);
	assert_int_equal(f.of, VERBS_FAULT_BOTH);
}

/* Names of statuses, also as verbs writes them */
static void
test_statuses(void **state)
{
	static const char *const names[] = {"retry-exc", "RETRY_EXC", "retry_exc_err",
					    "IBV_WC_RETRY_EXC_ERR", "ibv_wc_retry-exc"};
	char text[80];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "completion,status=%s", names[i]);
		parse(text);
		assert_int_equal(f.status, SOFTHCA_WC_RETRY_EXC_ERR);
	}
	for (uint32_t status = 1; status < 32; status++) {
		const char *name = verbs_fault_status_name(status);

		if (strcmp(name, "unknown") == 0)
			continue;
		snprintf(text, sizeof(text), "completion,of=recv,status=%s", name);
		parse(text);
		assert_int_equal(f.status, status);
		assert_int_equal(f.of, VERBS_FAULT_RECV);
	}
	assert_string_equal(verbs_fault_status_name(SOFTHCA_WC_SUCCESS), "unknown");
	parse("completion,of=send,status=fatal");
	assert_int_equal(f.of, VERBS_FAULT_SEND);
}

static void
test_several(void **state)
{
	const char *rest = parse("call=reg_mr,errno=ENOMEM;completion,status=fatal;");

	assert_int_equal(f.kind, VERBS_FAULT_CALL);
	assert_string_equal(f.text, "call=reg_mr,errno=ENOMEM");
	assert_null(parse(rest));
	assert_int_equal(f.kind, VERBS_FAULT_COMPLETION);
}

static void
test_refusals(void **state)
{
	char longer[300];

	assert_refused("call=reg_mr", "needs errno");
	assert_refused("call=reg_mr,errno=12", "a name of errno");
	assert_refused("call=reg_mr,errno=ENOSUCH", "a name of errno");
	assert_refused("call=ibv_fork_init,errno=ENOMEM", "a call of verbs that can fail");
	assert_refused("call=connect,errno=ENOMEM", "a call of verbs that can fail");
	assert_refused("call=reg_mr,errno=ENOMEM,status=fatal", "call, errno, nth or count");
	assert_refused("call=reg_mr,errno", "NAME=VALUE");
	assert_refused("completion", "completion needs status");
	assert_refused("completion,status=good", "loc-len");
	assert_refused("completion,status=success", "loc-len");
	assert_refused("completion,status=fatal,of=both", "send or recv");
	assert_refused("completion,status=fatal,errno=EIO", "completion, status, of, nth or count");
	assert_refused("completion,status=fatal,nth=0", "a number from 1");
	assert_refused("completion,status=fatal,nth=-1", "a number from 1");
	assert_refused("completion,status=fatal,nth=2x", "a number from 1");
	assert_refused("completion,status=fatal,count=4294967295", "a number");
	assert_refused("completion,status=fatal,count=99999999999999999999", "a number");
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_refused(longer, "at most 255 characters");
}

static void
test_is(void **state)
{
	assert_true(verbs_fault_is("call=reg_mr"));
	assert_true(verbs_fault_is("completion"));
	assert_true(verbs_fault_is("completion,status=fatal"));
	assert_true(verbs_fault_is("call;drop"));
	assert_false(verbs_fault_is("calls=reg_mr"));
	assert_false(verbs_fault_is("drop,nth=3"));
	assert_false(verbs_fault_is(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),	 cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_statuses), cmocka_unit_test(test_several),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
