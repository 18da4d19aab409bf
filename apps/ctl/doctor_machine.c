/* SPDX-License-Identifier: BSD-3-Clause */

/* The machine: memory, CPUs, limits of the user. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define HUGEPAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define MOUNTS_MAX 65536u
#define CPUINFO_MAX 8192u
#define MEMLOCK_MIN (64ll << 20)
#define FILES_MIN 1024

/* ---- hugepages ---- */

static void
hugepages_mount(struct doctor *d)
{
	char *text = malloc(MOUNTS_MAX), *line, *save = NULL, place[256] = "";

	if (text == NULL || doctor_read(doctor_path(d, "/proc/mounts"), text, MOUNTS_MAX) != 0) {
		free(text);
		return;
	}
	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
		if (strstr(line, " hugetlbfs ") != NULL)
			sscanf(line, "%*s %255s", place);
	free(text);
	if (place[0] == '\0')
		doctor_ok(d, "hugetlbfs", "not mounted, and not needed");
	else if (access(doctor_path(d, "%s", place), R_OK | W_OK) != 0)
		doctor_warn(
			d, "hugetlbfs", NULL,
			"no permission to use %s; softhcad needs no mount, other DPDK programs do",
			place);
	else
		doctor_ok(d, "hugetlbfs", "mounted on %s", place);
}

void
doctor_hugepages(struct doctor *d)
{
	long total = doctor_number(doctor_path(d, HUGEPAGES "nr_hugepages"));
	long available = doctor_number(doctor_path(d, HUGEPAGES "free_hugepages"));
	long need = ((long)d->config.memory_mb + 1) / 2;
	enum endpoint_hugepages use = d->config.hugepages;
	enum doctor_level short_of = use == ENDPOINT_HUGEPAGES_MUST ? DOCTOR_FAIL : DOCTOR_WARN;
	char fix[128];

	snprintf(fix, sizeof(fix), "echo %ld > " HUGEPAGES "nr_hugepages",
		 need + (total > 0 ? total - available : 0));
	if (use == ENDPOINT_HUGEPAGES_NEVER)
		doctor_ok(d, "hugepages", "not used: [memory] hugepages = never");
	else if (total < 0)
		doctor_report(d, short_of, "hugepages", NULL,
			      "this kernel has no hugepages of 2 MiB");
	else if (d->running)
		doctor_ok(d, "hugepages", "%ld of 2 MiB, %ld are free while a daemon runs", total,
			  available);
	else if (available < need)
		doctor_report(d, short_of, "hugepages", fix,
			      "%ld of 2 MiB are free, %ld are needed%s", available, need,
			      short_of == DOCTOR_WARN ? ": ordinary memory is slower" : "");
	else
		doctor_ok(d, "hugepages", "%ld of 2 MiB are free, %ld are needed", available, need);
	hugepages_mount(d);
}

/* ---- CPU ---- */

static bool
has_flag(const char *cpuinfo, const char *flag)
{
	size_t len = strlen(flag);

	for (const char *s = cpuinfo; (s = strstr(s, flag)) != NULL; s += len)
		if (s > cpuinfo && (s[-1] == ' ' || s[-1] == '\t') &&
		    (s[len] == ' ' || s[len] == '\n' || s[len] == '\0'))
			return true;
	return false;
}

void
doctor_cpu(struct doctor *d)
{
	char text[CPUINFO_MAX];

	if (doctor_read(doctor_path(d, "/proc/cpuinfo"), text, sizeof(text)) != 0) {
		doctor_warn(d, "cpu", NULL, "/proc/cpuinfo cannot be read");
		return;
	}
	if (!has_flag(text, "sse4_2") || !has_flag(text, "pclmulqdq"))
		doctor_fail(d, "cpu", "give the virtual machine the CPU of its host (-cpu host)",
			    "no SSE4.2 or no carry-less multiplication: DPDK does not start");
	else if (!has_flag(text, "avx2"))
		doctor_warn(d, "cpu", "give the virtual machine the CPU of its host (-cpu host)",
			    "no AVX2: copies and CRCs are slower");
	else
		doctor_ok(d, "cpu", "SSE4.2, AVX2%s%s",
			  has_flag(text, "avx512f") ? ", AVX-512" : "",
			  has_flag(text, "vpclmulqdq") ? ", VPCLMULQDQ" : "");
}

/* The limits of the configured daemon, or if it does not run of this process. */
static void
read_cpus(struct doctor *d, struct endpoint_cpus *cpus)
{
	char process[16] = "self";

	if (d->pid != 0)
		snprintf(process, sizeof(process), "%d", d->pid);
	endpoint_cpus_read(cpus, d->root, process);
	if (cpus->allowed < cpus->online)
		doctor_ok(d, "cores", "CPU affinity: %u of %u CPUs", cpus->allowed, cpus->online);
	if (cpus->quota_milli / 1000 < cpus->allowed)
		doctor_ok(d, "cores", "the quota of the control group is %.2f CPUs",
			  cpus->quota_milli / 1000.0);
}

/*
 * Mask and quota are the daemon's. Programs run in other control groups, so its quota is not
 * theirs; the mask of this process stands for theirs.
 */
static void
judge_cpus(struct doctor *d, const struct endpoint_cpus *cpus)
{
	unsigned int need = endpoint_workers(&d->config);
	struct endpoint_cpus here;

	endpoint_cpus_read(&here, d->root, "self");
	if (d->config.idle == ENDPOINT_IDLE_SPIN && need >= cpus->allowed)
		doctor_fail(d, "cores",
			    "idle = auto in section [hca], or layout = rtc and fewer pipelines",
			    "%u workers spin on %u CPUs: nothing is left for programs", need,
			    cpus->allowed);
	else if (need > cpus->usable)
		doctor_warn(d, "cores",
			    d->config.pipelines > 1 ? "fewer pipelines in section [hca]"
						    : "layout = rtc in section [hca]",
			    "the layout has %u workers for %u CPUs%s", need, cpus->usable,
			    cpus->usable < cpus->allowed ? ": the quota throttles them" : "");
	else if (d->workers + d->clients > here.allowed)
		doctor_warn(d, "cores",
			    "let programs wait for events (--events), or use fewer daemons",
			    "%u CPUs for %u workers and %u programs that may poll: they take turns",
			    here.allowed, d->workers, d->clients);
	else
		doctor_ok(d, "cores", "%u CPUs for %u worker%s", cpus->usable, need,
			  need == 1 ? "" : "s");
}

static void
governor(struct doctor *d)
{
	char text[64];

	if (doctor_read(doctor_path(d, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
			text, sizeof(text)) != 0)
		return; /* the hypervisor's business */
	if (strcmp(text, "performance") == 0)
		doctor_ok(d, "frequency", "governor performance");
	else
		doctor_warn(d, "frequency", "cpupower frequency-set -g performance",
			    "governor %s: latencies vary", text);
}

void
doctor_cores(struct doctor *d)
{
	char isolated[256] = "";
	struct endpoint_cpus cpus;

	doctor_read(doctor_path(d, "/sys/devices/system/cpu/isolated"), isolated, sizeof(isolated));
	read_cpus(d, &cpus);
	endpoint_settle_pipelines(&d->config, &cpus);
	judge_cpus(d, &cpus);
	if (d->configured && d->pid == 0)
		doctor_ok(d, "congestion", "congestion control: %s", d->config.congestion);
	if (endpoint_cpus_in_list(isolated) != 0)
		doctor_ok(d, "isolation", "isolated CPUs: %s", isolated);
	else if (d->config.idle == ENDPOINT_IDLE_SPIN)
		doctor_warn(d, "isolation",
			    "boot with isolcpus=LIST and name them as lcores in section [hca]",
			    "workers spin, and no CPU is isolated: latencies have outliers");
	governor(d);
}

/* ---- limits ---- */

/* Soft limit of a line of /proc/self/limits; -1: unlimited, -2: not there. */
static long long
limit(const char *limits, const char *name)
{
	const char *s = strstr(limits, name);

	if (s == NULL)
		return -2;
	s += strlen(name);
	s += strspn(s, " ");
	return strncmp(s, "unlimited", 9) == 0 ? -1 : strtoll(s, NULL, 10);
}

/* Programs whose memory answers slowly make workers wait, a tenth of the time at most. */
void
doctor_slow_memory(struct doctor *d)
{
	if (d->config.slow_memory)
		doctor_warn(d, "slow memory", "slow_memory = no in section [memory]",
			    "allowed: programs whose memory answers slowly may take a tenth of a "
			    "worker's time from all others");
	else if (d->configured)
		doctor_ok(d, "slow memory",
			  "refused: stacks and mappings of files cannot be registered");
}

void
doctor_limits(struct doctor *d)
{
	char text[4096];
	long long locked, files;

	if (doctor_read(doctor_path(d, "/proc/self/limits"), text, sizeof(text)) != 0)
		return;
	locked = limit(text, "Max locked memory");
	files = limit(text, "Max open files");
	/* Only VFIO pins memory, and then all of it. */
	if (locked == -1 || locked >= MEMLOCK_MIN || !endpoint_is_pci(d->config.device))
		doctor_ok(d, "memlock", "%s",
			  locked == -1 ? "unlimited"
			  : endpoint_is_pci(d->config.device)
				  ? "enough"
				  : "limited; only PCI devices need more");
	else
		doctor_fail(d, "memlock",
			    "LimitMEMLOCK=infinity in the service, or: ulimit -l unlimited",
			    "%lld KiB may be locked, VFIO locks %u MiB", locked >> 10,
			    d->config.memory_mb);
	if (files != -1 && files < FILES_MIN)
		doctor_warn(d, "open files", "ulimit -n 65536", "%lld: a client needs several",
			    files);
	else
		doctor_ok(d, "open files", "enough");
}
