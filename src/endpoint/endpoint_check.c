/* SPDX-License-Identifier: BSD-3-Clause */

#include <grp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "endpoint.h"
#include "endpoint_check.h"
#include "endpoint_device.h"
#include "endpoint_machine.h"
#include "hca.h"
#include "host.h"

struct check {
	const char *path;
	FILE *out;
	bool starting; /* a present shortage of the machine is an error */
	int errors;
};

static void say(struct check *k, uint32_t line, bool warning, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void
say(struct check *k, uint32_t line, bool warning, const char *format, ...)
{
	va_list ap;

	fprintf(k->out, "%s:", k->path);
	if (line != 0)
		fprintf(k->out, "%u:", line);
	fputs(warning ? " warning: " : " ", k->out);
	va_start(ap, format);
	vfprintf(k->out, format, ap);
	va_end(ap);
	fputc('\n', k->out);
	k->errors += !warning;
}

static void
check_device(struct check *k, const struct endpoint_config *c)
{
	struct endpoint_device d;

	if (endpoint_device_parse(c, endpoint_netdev_mtu, &d) != 0)
		say(k, c->line.device, false, "device: %s", endpoint_reason());
}

static void
check_group(struct check *k, const struct endpoint_config *c)
{
	struct group group, *found = NULL;
	char text[4096];

	if (c->socket_group[0] != '\0' &&
	    (getgrnam_r(c->socket_group, &group, text, sizeof(text), &found) != 0 || found == NULL))
		say(k, c->line.group, false,
		    "group: expected a group of this machine, found \"%s\"", c->socket_group);
}

/*
 * Programs use other CPUs of the mask; the quota is the daemon's alone, so a larger need makes it
 * slow, but leaves them theirs.
 */
static void
check_turns(struct check *k, const struct endpoint_config *c, const struct endpoint_cpus *cpus)
{
	unsigned int need = endpoint_workers(c);

	if (c->idle == ENDPOINT_IDLE_SPIN && need >= cpus->allowed && cpus->allowed > 1)
		say(k, c->line.layout, false,
		    "idle: expected a CPU for programs beside %u workers that spin, found %u CPUs",
		    need, cpus->allowed);
	else if (need > cpus->allowed)
		say(k, c->line.layout, true, "layout: %u workers take turns on %u CPUs", need,
		    cpus->allowed);
	else if (need > cpus->usable)
		say(k, c->line.layout, true,
		    "layout: %u workers are throttled by the quota of the control group, %.2f CPUs",
		    need, cpus->quota_milli / 1000.0);
}

static void
check_cpus(struct check *k, const struct endpoint_config *c, const struct endpoint_cpus *cpus)
{
	unsigned int need = endpoint_workers(c);
	char plan[HCA_LAYOUT_PLAN_BYTES];

	if (need > HCA_WORKERS_MAX)
		say(k, c->line.pipelines, false,
		    "pipelines: expected so few that their workers are at most %u, found %u with "
		    "%u workers",
		    HCA_WORKERS_MAX, c->pipelines, need);
	if (endpoint_machine_cpus(c) != 0)
		say(k, c->line.lcores, false, "lcores: %s", endpoint_reason());
	check_turns(k, c, cpus);
	if (c->num_cpus != 0 && c->num_cpus < need) {
		unsigned int each = c->num_cpus / c->pipelines;

		hca_layout_plan((enum hca_layout)c->layout, endpoint_wires(c), each != 0 ? each : 1,
				plan, sizeof(plan));
		say(k, c->line.lcores, true, "lcores: %u workers take turns on %u CPUs: %s%s", need,
		    c->num_cpus, c->pipelines > 1 ? "of the first pipeline " : "", plan);
	}
}

int
endpoint_check_cpus(const struct endpoint_config *c, const struct endpoint_cpus *cpus,
		    const char *path, FILE *out)
{
	struct check k = {.path = path, .out = out};

	check_cpus(&k, c, cpus);
	return k.errors;
}

/* ---- memory ---- */

/* MiB of a line of /proc/meminfo, which begins with the field and a colon; 0: not there */
static uint64_t
meminfo_mib(const char *field)
{
	uint64_t kib = 0;
	size_t len = strlen(field);
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, field, len) == 0 && line[len] == ':') {
			kib = strtoull(line + len + 1, NULL, 10);
			break;
		}
	fclose(f);
	return kib >> 10;
}

static bool
has_hugepages(void)
{
	return access(HCA_HUGEPAGES, F_OK) == 0;
}

/* Whether a start at present takes hugepages */
static bool
takes_hugepages(const struct endpoint_config *c)
{
	return c->hugepages != ENDPOINT_HUGEPAGES_NEVER &&
	       hca_host_free_hugepages() >= HCA_HUGEPAGES_OF(c->memory_mb);
}

static void
check_hugepages(struct check *k, const struct endpoint_config *c)
{
	bool must = c->hugepages == ENDPOINT_HUGEPAGES_MUST;
	uint32_t need = HCA_HUGEPAGES_OF(c->memory_mb), have = hca_host_free_hugepages();

	if (c->hugepages == ENDPOINT_HUGEPAGES_NEVER || takes_hugepages(c))
		return;
	if (must && !has_hugepages())
		say(k, c->line.hugepages, false,
		    "hugepages: must, but this kernel has none of 2 MiB");
	else if (must)
		say(k, c->line.hugepages, !k->starting, ENDPOINT_HUGEPAGES_LACK, have, need,
		    hca_host_hugepages_for(need));
	else if (!k->starting) /* a start logs it */
		say(k, c->line.hugepages, true,
		    "hugepages: %u of 2 MiB are free, %u are needed: ordinary memory is used, "
		    "which is slower",
		    have, need);
}

/* Resources of the machine: the maximum, and the present amount. */
static void
check_size(struct check *k, const struct endpoint_config *c)
{
	uint64_t max = meminfo_mib("MemTotal"), now = meminfo_mib("MemAvailable");

	if (c->hugepages != ENDPOINT_HUGEPAGES_MUST) {
		max += meminfo_mib("SwapTotal");
		now += meminfo_mib("SwapFree");
	}
	if (max == 0 || takes_hugepages(c))
		return;
	if (c->memory_mb > max)
		say(k, c->line.memory, false,
		    "size_mb: expected at most %llu, the memory of this machine, found %u",
		    (unsigned long long)max, c->memory_mb);
	else if (c->hugepages != ENDPOINT_HUGEPAGES_MUST && c->memory_mb > now)
		say(k, c->line.memory, true,
		    "size_mb: %u MiB are taken at the start, %llu are available at present",
		    c->memory_mb, (unsigned long long)now);
}

/*
 * Hugepages are allocated on demand, as long as there are free ones; ordinary memory is allocated
 * at the start.
 */
static void
check_pools(struct check *k, const struct endpoint_config *c)
{
	uint64_t need = endpoint_needed_mib(c);
	bool never = c->hugepages == ENDPOINT_HUGEPAGES_NEVER, warning = !never && !k->starting;

	if (c->memory_mb >= need)
		return;
	if (takes_hugepages(c) && hca_host_free_hugepages() >= HCA_HUGEPAGES_OF(need))
		warning = true;
	say(k, c->line.memory, warning,
	    "size_mb: expected at least %llu for %u pipeline%s with these [limits] and [pools], "
	    "found %u",
	    (unsigned long long)need, c->pipelines, c->pipelines == 1 ? "" : "s", c->memory_mb);
}

/* ---- files ---- */

static void
check_files(struct check *k, const struct endpoint_config *c)
{
	uint64_t need = endpoint_machine_files_needed(c);
	struct rlimit limit;

	/* a start logs it */
	if (!k->starting && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < need)
		say(k, c->line.clients, true,
		    "clients: %llu files may be open here (ulimit -Hn), %u clients may need %llu",
		    (unsigned long long)limit.rlim_max, c->clients, (unsigned long long)need);
}

int
endpoint_check(const struct endpoint_config *c, const char *path, bool starting, FILE *out)
{
	struct check k = {.path = path, .out = out, .starting = starting};
	struct endpoint_cpus cpus;

	endpoint_cpus_read(&cpus, "", "self");
	check_device(&k, c);
	check_group(&k, c);
	check_cpus(&k, c, &cpus);
	check_hugepages(&k, c);
	check_size(&k, c);
	check_pools(&k, c);
	check_files(&k, c);
	return k.errors;
}
