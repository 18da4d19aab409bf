/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_CPUS_H
#define ENDPOINT_CPUS_H

/*
 * CPUs that a process may use: those of its affinity mask that are online, and the CPU time that
 * its control groups allow (cpu.max of cgroup v2, cpu.cfs_quota_us of v1, of its group and those
 * above). It reads files below a root, which tests replace.
 */

#include <stdint.h>

struct endpoint_cpus {
	uint32_t online;      /* of the machine */
	uint32_t allowed;     /* online, and in the affinity mask */
	uint32_t quota_milli; /* CPU time per time, in 1/1000 CPUs; UINT32_MAX: no limit */
	uint32_t usable;      /* that are busy at the same time, at least 1 */
};

/* The number of CPUs in a list like 0-3,8 */
uint32_t endpoint_cpus_in_list(const char *list);

/* The number of CPUs that are busy all the time within the quota, at most n, and at least 1. */
uint32_t endpoint_cpus_within(const struct endpoint_cpus *cpus, uint32_t n);

/*
 * root: "", or a folder with /proc and /sys. process: "self", or a number; a file that cannot be
 * read does not limit it.
 */
void endpoint_cpus_read(struct endpoint_cpus *cpus, const char *root, const char *process);

#endif
