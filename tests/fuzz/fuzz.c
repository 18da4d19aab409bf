/* SPDX-License-Identifier: BSD-3-Clause */

#include "fuzz.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>

void
fuzz_fail(const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "FUZZ: ");
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	abort();
}

__attribute__((weak)) void __lsan_disable(void);
__attribute__((weak)) void __lsan_enable(void);

void
fuzz_lsan_disable(void)
{
	if (__lsan_disable != NULL)
		__lsan_disable();
}

void
fuzz_lsan_enable(void)
{
	if (__lsan_enable != NULL)
		__lsan_enable();
}

/*
 * libFuzzer calls this first. A run of a whole HCA touches thousands of edges, and the bookkeeping
 * of the entropic schedule then takes five times as long as the run.
 */
int LLVMFuzzerInitialize(int *argc, char ***argv);

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char *args[64], option[] = "-entropic=0";
	int n = *argc;

	if (n + 2 > (int)RTE_DIM(args))
		return 0;
	args[0] = (*argv)[0];
	args[1] = option;
	for (int i = 1; i < n; i++)
		args[i + 1] = (*argv)[i];
	*argc = n + 1;
	*argv = args;
	return 0;
}

/*
 * libFuzzer's timer of slow inputs interrupts the call an input waits in, connect() among them.
 * Restart those calls; poll() and its like are never restarted, and their callers handle EINTR.
 */
static void
restart_interrupted_calls(void)
{
	struct sigaction action;

	if (sigaction(SIGALRM, NULL, &action) != 0 || action.sa_handler == SIG_DFL)
		return;
	action.sa_flags |= SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
}

static void
remove_runtime_dir(void)
{
	rmdir(rte_eal_get_runtime_dir());
}

void
fuzz_eal_start(void)
{
	static bool started;
	char prefix[32];
	char *argv[] = {"fuzz",		  "--no-huge",	 "-m", "256", "--no-pci",
			"--no-telemetry", "--no-shconf", "-l", "0",   "--log-level",
			"error",	  prefix,	 NULL};
	cpu_set_t cpus;

	if (started)
		return;
	restart_interrupted_calls();
	snprintf(prefix, sizeof(prefix), "--file-prefix=fuzz%d", (int)getpid());
	/* tests run in parallel, so the EAL must not bind us to one CPU */
	sched_getaffinity(0, sizeof(cpus), &cpus);
	fuzz_check(rte_eal_init(RTE_DIM(argv) - 1, argv) >= 0, "rte_eal_init");
	sched_setaffinity(0, sizeof(cpus), &cpus);
	atexit(remove_runtime_dir);
	started = true;
}
