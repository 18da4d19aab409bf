/* SPDX-License-Identifier: BSD-3-Clause */

/* Where the system call userfaultfd is refused, as in containers, its device node is opened. */

#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib_hold.h"

#include <cmocka.h>

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

static unsigned int refused;

long
__wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number != SYS_userfaultfd)
		return __real_syscall(number, a, b, c, d, e, f);
	refused++;
	errno = EPERM;
	return -1;
}

static void
device_node(void **state)
{
	bool there = access("/dev/userfaultfd", R_OK | W_OK) == 0;
	int err = lib_hold_ready();

	assert_int_equal(refused, 1);
	assert_int_equal(err == 0, there);
	/* a descriptor that is open is used again */
	assert_int_equal(lib_hold_ready(), err);
	assert_int_equal(refused, there ? 1 : 2);
	lib_hold_forget();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
