/* SPDX-License-Identifier: BSD-3-Clause */

/* Paths of programs that look for devices, and the files below SOFTHCA_SYSFS that they get. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sysfs_path.h"
#include "sysfs_watch.h"

#define ROOT "/run/files"

static char buf[SYSFS_PATH_MAX];
static unsigned int looked; /* calls of the watcher */

static void
assert_leads(const char *path, const char *to)
{
	assert_string_equal(sysfs_path(path, buf), to);
}

static void
assert_same(const char *path)
{
	assert_ptr_equal(sysfs_path(path, buf), path);
}

static void
test_led(void **state)
{
	assert_leads("/sys/class/infiniband", ROOT "/sys/class/infiniband");
	assert_leads("/sys/class/infiniband/", ROOT "/sys/class/infiniband/");
	assert_leads("/sys//class///infiniband/a/ports", ROOT "/sys/class/infiniband/a/ports");
	assert_leads("/sys/class/infiniband_verbs/uverbs0/dev",
		     ROOT "/sys/class/infiniband_verbs/uverbs0/dev");
	assert_leads("/sys/class/infiniband_mad/abi_version",
		     ROOT "/sys/class/infiniband_mad/abi_version");
	assert_leads("/sys/devices/virtual/softhca/x", ROOT "/sys/devices/virtual/softhca/x");
	assert_leads("/dev/infiniband/uverbs0", ROOT "/dev/infiniband/uverbs0");
}

static void
test_not_led(void **state)
{
	assert_same(NULL);
	assert_same("");
	assert_same("sys/class/infiniband");
	assert_same("/sys/class/infiniband_cm");
	assert_same("/sys/class/infinibands");
	assert_same("/sys/class");
	assert_same("/sys/class/net/eth0");
	assert_same("/dev/infinibandx/uverbs0");
	assert_same("/sysclass/infiniband");
}

/* A path that is too long with the folder in front of it stays. */
static void
test_too_long(void **state)
{
	char path[SYSFS_PATH_MAX] = "/sys/class/infiniband/";
	size_t n = strlen(path);

	memset(path + n, 'a', sizeof(path) - 1 - n);
	path[sizeof(path) - 1] = '\0';
	assert_same(path);
	path[sizeof(path) - 1 - strlen(ROOT)] = '\0';
	assert_ptr_equal(sysfs_path(path, buf), buf);
	assert_int_equal(strlen(buf), SYSFS_PATH_MAX - 1);
}

static void
test_nodes(void **state)
{
	const char *paths[] = {"/dev/infiniband/uverbs0", "/dev/infiniband", "/dev/infiniband//",
			       "/sys/class/infiniband/a"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(sysfs_is_node(sysfs_path(paths[i], buf), paths[i]), i == 0);
	assert_false(sysfs_is_node("/dev/infinibandx", "/dev/infinibandx"));
}

static void
test_back(void **state)
{
	char ours[] = ROOT "/sys/class/infiniband/a", other[] = "/run/filesystem/a",
	     folder[] = ROOT;

	assert_string_equal(sysfs_path_back(ours), "/sys/class/infiniband/a");
	assert_string_equal(sysfs_path_back(other), "/run/filesystem/a");
	assert_string_equal(sysfs_path_back(folder), ROOT);
	assert_null(sysfs_path_back(NULL));
}

static void
watch(const char *root)
{
	assert_string_equal(root, ROOT);
	looked++;
}

/* Counters are written before a program reads them, other files are not. */
static void
test_watcher(void **state)
{
	softhca_sysfs_watch(watch);
	sysfs_path("/sys/class/infiniband/a/ports/1/state", buf);
	assert_int_equal(looked, 0);
	sysfs_path("/sys/class/infiniband/a/ports/1/counters/port_rcv_data", buf);
	sysfs_path("/sys/class/infiniband/a/ports/1/hw_counters/x", buf);
	assert_int_equal(looked, 2);
	softhca_sysfs_watch(NULL);
	sysfs_path("/sys/class/infiniband/a/ports/1/counters/port_rcv_data", buf);
	assert_int_equal(looked, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_led),	 cmocka_unit_test(test_not_led),
		cmocka_unit_test(test_too_long), cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_back),	 cmocka_unit_test(test_watcher),
	};

	setenv("SOFTHCA_SYSFS", ROOT, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
