/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The EAL of an embedded process: private (in memory, without files or PCI), on hugepages if there
 * are enough.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_version.h>

#include "embed_ctl.h"
#include "embed_impl.h"
#include "host.h"

#define ARGS_MAX 32
#define FILES 32u /* of the EAL without hugepages, its threads and devices, and our workers */
#define ADDRESSES (UINT64_C(256) << 30)
#define FILES_MAX 65536u /* hugepages as files: 128 GiB */

const char *
softhca_embed_dpdk_version(void)
{
	return rte_version();
}

/* How many more files this process may open, up to max. One thread at a time. */
static uint32_t
free_files(uint32_t max)
{
	static int fds[FILES_MAX];
	uint32_t n = 0;

	if (max > FILES_MAX)
		max = FILES_MAX;
	while (n < max && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
		n++;
	for (uint32_t i = 0; i < n; i++)
		close(fds[i]);
	return n;
}

/* The EAL ends the process, or waits without end, where one of its threads cannot open a file. */
static int
check_files(void)
{
	uint32_t have = free_files(FILES);

	if (have == FILES)
		return 0;
	return embed_fail(-EMFILE, "this process may open %u more files, %u are needed (ulimit -n)",
			  have, FILES);
}

/*
 * The EAL reserves addresses for all hugepages that it might have later. Where a process may not
 * have them (ulimit -v, under valgrind) it does not start, but with ordinary memory.
 */
static bool
has_addresses(void)
{
	void *at = mmap(NULL, ADDRESSES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			0);

	if (at == MAP_FAILED)
		return false;
	munmap(at, ADDRESSES);
	return true;
}

/* true: hugepages; false: ordinary memory, if it is permitted. Each hugepage is a file. */
static int
choose_memory(const struct softhca_embed_config *cfg, bool *huge)
{
	uint32_t need = HCA_HUGEPAGES_OF(cfg->memory_mb), have = hca_host_free_hugepages();
	bool files = need <= FILES_MAX - FILES && free_files(need + FILES) == need + FILES;

	*huge = cfg->hugepages != 2 && have >= need && files && has_addresses();
	if (cfg->hugepages != 1 || *huge)
		return 0;
	if (have >= need && files)
		return embed_fail(-ENOMEM,
				  "DPDK reserves addresses for hugepages, which this process may "
				  "not have (ulimit -v)");
	if (have >= need)
		return embed_fail(-EMFILE,
				  "%u hugepages of 2 MiB are as many files, which this process "
				  "may not open (ulimit -n)",
				  need);
	return embed_fail(-ENOMEM,
			  "%u free hugepages of 2 MiB, %u are needed: run "
			  "'echo %u > " HCA_HUGEPAGES "nr_hugepages'",
			  have, need, hca_host_hugepages_for(need));
}

static int
init(const struct softhca_embed_config *cfg, const cpu_set_t *set)
{
	char cpu[16], memory[16];
	char *argv[ARGS_MAX + 1] = {(char *)(uintptr_t) "softhca"};
	bool huge;
	int argc = 1, err = check_files();

	if (err != 0)
		return err;
	if (cfg->eal_args != NULL) {
		for (; argc < ARGS_MAX && cfg->eal_args[argc - 1] != NULL; argc++)
			argv[argc] = (char *)(uintptr_t)cfg->eal_args[argc - 1];
	} else {
		static const char *const common[] = {"--no-pci", "--no-shconf", "--iova-mode=va",
						     "--log-level=error", "--file-prefix=softhca"};

		err = choose_memory(cfg, &huge);
		if (err != 0)
			return err;
		snprintf(cpu, sizeof(cpu), "%d", hca_host_first_cpu(set));
		snprintf(memory, sizeof(memory), "%u", cfg->memory_mb);
		for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
			argv[argc++] = (char *)(uintptr_t)common[i];
		if (cfg->telemetry == 0)
			argv[argc++] = (char *)(uintptr_t) "--no-telemetry";
		argv[argc++] = (char *)(uintptr_t)(huge ? "--in-memory" : "--no-huge");
		argv[argc++] = (char *)(uintptr_t) "-m";
		argv[argc++] = memory;
		argv[argc++] = (char *)(uintptr_t) "-l";
		argv[argc++] = cpu;
	}
	if (rte_eal_init(argc, argv) < 0)
		return embed_fail(-rte_errno, "DPDK did not start: %s", rte_strerror(rte_errno));
	return 0;
}

int
embed_eal_start(const struct softhca_embed_config *cfg)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	static uint32_t forks; /* embed_forks() when it was started */
	static bool started;
	cpu_set_t set;
	int err = 0;

	pthread_mutex_lock(&once);
	if (started && forks != embed_forks()) {
		err = embed_fail(-EPERM, "the EAL belongs to the process this one was forked from");
	} else if (!started) {
		forks = embed_forks();
		CPU_ZERO(&set);
		pthread_getaffinity_np(pthread_self(), sizeof(set), &set);
		err = init(cfg, &set);
		started = err == 0;
		if (started)
			embed_lsan_watch();
		pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	}
	pthread_mutex_unlock(&once);
	return err;
}
