/* SPDX-License-Identifier: BSD-3-Clause */

/* CPUs that a process may use, on machines made of files; pipelines = auto takes no more. */

#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../test_path.h"
#include "endpoint_config.h"

#define NO_LIMIT UINT32_MAX
#define V2 "29 23 0:26 / /cg rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1 "30 23 0:27 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"

static char root[TEST_PATH_MAX];
static struct endpoint_cpus cpus;

/* A file, with its folders. */
static void
put(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *s = full + strlen(root) + 1; (s = strchr(s, '/')) != NULL; s++) {
		*s = '\0';
		mkdir(full, 0700);
		*s = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int
setup(void **state)
{
	(void)state;
	if (mkdtemp(test_path(root, "cpus")) == NULL)
		return -1;
	put("/sys/devices/system/cpu/online", "0-7\n");
	return 0;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	(void)st;
	(void)kind;
	(void)place;
	return remove(path);
}

static int
teardown(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void
expect(uint32_t allowed, uint32_t quota, uint32_t usable)
{
	endpoint_cpus_read(&cpus, root, "self");
	assert_int_equal(cpus.online, 8);
	assert_int_equal(cpus.allowed, allowed);
	assert_int_equal(cpus.quota_milli, quota);
	assert_int_equal(cpus.usable, usable);
}

static void
affinity(void **state)
{
	(void)state;
	expect(8, NO_LIMIT, 8);
	put("/proc/self/status", "Name:\tx\nCpus_allowed:\t0d\nCpus_allowed_list:\t0,2-3\n");
	expect(3, NO_LIMIT, 3);
	put("/proc/77/status", "Cpus_allowed_list:\t6\n");
	endpoint_cpus_read(&cpus, root, "77");
	assert_int_equal(cpus.usable, 1);
}

/* The mask of a process has CPUs that may come later, or that are off: these do not count. */
static void
not_online(void **state)
{
	(void)state;
	put("/proc/self/status", "Cpus_allowed_list:\t0-127\n");
	expect(8, NO_LIMIT, 8);
	put("/proc/self/status", "Cpus_allowed_list:\t6-9,200\n");
	expect(2, NO_LIMIT, 2);
	put("/sys/devices/system/cpu/online", "0-2,4,8-11\n");
	expect(2, NO_LIMIT, 2);
}

/* The kernel's own answer, for this process and for one with a number */
static void
of_the_kernel(void **state)
{
	cpu_set_t set;
	char number[16];

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	endpoint_cpus_read(&cpus, "", "self");
	assert_int_equal(cpus.allowed, CPU_COUNT(&set));
	snprintf(number, sizeof(number), "%d", getpid());
	endpoint_cpus_read(&cpus, "", number);
	assert_int_equal(cpus.allowed, CPU_COUNT(&set));
}

/* The least of the group and those above it counts. */
static void
quota(void **state)
{
	(void)state;
	put("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda rw\n" V2);
	put("/proc/self/cgroup", "0::/system.slice/softhcad.service\n");
	put("/cg/system.slice/softhcad.service/cpu.max", "max 100000\n");
	expect(8, NO_LIMIT, 8);
	put("/cg/system.slice/softhcad.service/cpu.max", "550000 100000\n");
	expect(8, 5500, 5);
	put("/cg/system.slice/cpu.max", "125000 50000\n");
	expect(8, 2500, 2);
	put("/cg/system.slice/cpu.max", "900000 100000\n");
	expect(8, 5500, 5);
	/* no whole CPU is one that is shared */
	put("/cg/cpu.max", "20000 100000\n");
	expect(8, 200, 1);
	put("/cg/cpu.max", "nonsense\n");
	put("/cg/system.slice/softhcad.service/cpu.max", "100000 0\n");
	expect(8, 9000, 8);
}

static void
quota_v1(void **state)
{
	(void)state;
	put("/proc/self/mountinfo", "31 23 0:28 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n" V1 V2);
	put("/proc/self/cgroup", "5:cpuset:/\n4:cpu,cpuacct:/pod/x\n0::/\n");
	put("/cg/cpu/pod/x/cpu.cfs_quota_us", "-1\n");
	put("/cg/cpu/pod/x/cpu.cfs_period_us", "100000\n");
	expect(8, NO_LIMIT, 8);
	put("/cg/cpu/pod/cpu.cfs_quota_us", "300000\n");
	put("/cg/cpu/pod/cpu.cfs_period_us", "100000\n");
	expect(8, 3000, 3);
}

/* A container has its group mounted, whose name is that of the host, or is hidden. */
static void
container(void **state)
{
	(void)state;
	put("/proc/self/mountinfo", "30 23 0:27 /docker/a /cg ro - cgroup2 cgroup rw\n");
	put("/cg/cpu.max", "200000 100000\n");
	put("/cg/sub/cpu.max", "100000 100000\n");
	put("/proc/self/cgroup", "0::/docker/a\n");
	expect(8, 2000, 2);
	put("/proc/self/cgroup", "0::/docker/a/sub\n");
	expect(8, 1000, 1);
	put("/proc/self/cgroup", "0::/docker/ab\n");
	expect(8, 2000, 2);
	put("/proc/self/mountinfo", "30 23 0:27 / /cg ro - cgroup2 cgroup rw\n");
	put("/proc/self/cgroup", "0::/../outside\n");
	expect(8, 2000, 2);
}

/* The mounts of a container's group and of all groups, in any order, with spaces in their names. */
static void
several_mounts(void **state)
{
	(void)state;
	put("/cg/a/b/cpu.max", "300000 100000\n");
	put("/cg/a/cpu.max", "200000 100000\n");
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/proc/self/mountinfo", "30 23 0:27 /x /other rw - cgroup2 cgroup rw\n"
				    "31 23 0:27 /a/b /mine rw - cgroup2 cgroup rw\n" V2);
	put("/other/cpu.max", "100000 100000\n");
	expect(8, 2000, 2);
	put("/proc/self/mountinfo", V2 "31 23 0:27 /a/b /mine rw - cgroup2 cgroup rw\n");
	expect(8, 2000, 2);
	put("/proc/self/mountinfo", "31 23 0:27 /a\\040\\134b /c\\040g rw - cgroup2 cgroup rw\n");
	put("/proc/self/cgroup", "0::/a \\b/c\n");
	put("/c g/c/cpu.max", "400000 100000\n");
	expect(8, 4000, 4);
}

/* [hca] pipelines = auto, with memory for as many as there are */
static uint32_t
pipelines(uint32_t allowed, uint32_t quota_milli, uint32_t lcores, enum endpoint_idle idle)
{
	static struct endpoint_config c;
	const struct endpoint_cpus given = {16, allowed, quota_milli, 1};

	endpoint_config_init(&c);
	c.pipelines = 0;
	c.memory_mb = 1u << 20;
	c.num_cpus = lcores;
	c.idle = idle;
	endpoint_settle_pipelines(&c, &given);
	return c.pipelines;
}

static void
auto_pipelines(void **state)
{
	(void)state;
	assert_int_equal(pipelines(16, NO_LIMIT, 0, ENDPOINT_IDLE_AUTO), 16);
	assert_int_equal(pipelines(5, NO_LIMIT, 0, ENDPOINT_IDLE_AUTO), 4);
	assert_int_equal(pipelines(16, 2900, 0, ENDPOINT_IDLE_AUTO), 2);
	assert_int_equal(pipelines(16, 300, 0, ENDPOINT_IDLE_AUTO), 1);
	assert_int_equal(pipelines(16, NO_LIMIT, 8, ENDPOINT_IDLE_AUTO), 8);
	assert_int_equal(pipelines(16, 4000, 8, ENDPOINT_IDLE_AUTO), 4);
	/* one CPU of the mask is for programs; the quota is the daemon's alone */
	assert_int_equal(pipelines(16, NO_LIMIT, 0, ENDPOINT_IDLE_SPIN), 8);
	assert_int_equal(pipelines(4, 4000, 0, ENDPOINT_IDLE_SPIN), 2);
	assert_int_equal(pipelines(16, 4000, 0, ENDPOINT_IDLE_SPIN), 4);
	assert_int_equal(pipelines(16, 2000, 0, ENDPOINT_IDLE_SPIN), 2);
	assert_int_equal(pipelines(16, 300, 0, ENDPOINT_IDLE_SPIN), 1);
	assert_int_equal(pipelines(1, NO_LIMIT, 0, ENDPOINT_IDLE_SPIN), 1);
	assert_int_equal(pipelines(0, NO_LIMIT, 0, ENDPOINT_IDLE_SPIN), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(affinity, setup, teardown),
		cmocka_unit_test_setup_teardown(not_online, setup, teardown),
		cmocka_unit_test(of_the_kernel),
		cmocka_unit_test_setup_teardown(quota, setup, teardown),
		cmocka_unit_test_setup_teardown(quota_v1, setup, teardown),
		cmocka_unit_test_setup_teardown(container, setup, teardown),
		cmocka_unit_test_setup_teardown(several_mounts, setup, teardown),
		cmocka_unit_test(auto_pipelines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
