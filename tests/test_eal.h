/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TEST_EAL_H
#define TESTS_TEST_EAL_H

/*
 * The EAL of a test: ordinary memory, nothing shared with other processes. It binds the calling
 * thread to one CPU, and with it all threads made later; here that is undone, so that tests run
 * side by side and their threads at the same time.
 */

#include <sched.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_eal.h>

/* Once per process, with this number of megabytes. 0, or negative. */
static inline int
test_eal_start(unsigned int megabytes)
{
	static char memory[12], cpu[12];
	static char *argv[] = {"test",	   "--no-huge",	     "-m",	    memory,
			       "--no-pci", "--no-telemetry", "--no-shconf", "-l",
			       cpu,	   "--log-level",    "error",	    NULL};
	cpu_set_t set;
	int first = 0, rc;

	sched_getaffinity(0, sizeof(set), &set);
	while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &set))
		first++;
	snprintf(memory, sizeof(memory), "%u", megabytes);
	snprintf(cpu, sizeof(cpu), "%d", first);
	rc = rte_eal_init(RTE_DIM(argv) - 1, argv);
	sched_setaffinity(0, sizeof(set), &set);
	return rc < 0 ? -1 : 0;
}

#endif
