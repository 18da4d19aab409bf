/* SPDX-License-Identifier: BSD-3-Clause */

#include <grp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "endpoint.h"
#include "endpoint_check.h"
#include "endpoint_device.h"
#include "endpoint_machine.h"
#include "hca.h"

/*
 * MiB that an HCA needs, measured as the growth of DPDK's heap: per 1024 buffers (two pools of
 * mbufs, one of receive descriptors), per table at its largest size, and for the rest.
 */
#define MIB_PER_1024_BUFFERS 16u
#define MIB_QPS 36u  /* 2^14 */
#define MIB_CQS 4u   /* 2^14 */
#define MIB_MPTS 8u  /* 2^17 */
#define MIB_MTTS 10u /* 2^20 */
#define MIB_REST 56u

struct check {
	const char *path;
	FILE *out;
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

static unsigned int
usable_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned int)CPU_COUNT(&set) : 1;
}

static void
check_cpus(struct check *k, const struct endpoint_config *c)
{
	unsigned int need = endpoint_workers(c), cpus = usable_cpus();
	bool spin = c->idle == ENDPOINT_IDLE_SPIN;

	if (endpoint_machine_cpus(c) != 0)
		say(k, c->line.lcores, false, "lcores: %s", endpoint_reason());
	if (spin && need >= cpus && cpus > 1)
		say(k, c->line.layout, false,
		    "idle: expected a CPU for programs beside %u workers that spin, found %u CPUs",
		    need, cpus);
	else if (need > cpus)
		say(k, c->line.layout, true, "layout: %u workers take turns on %u CPUs", need,
		    cpus);
	if (c->num_cpus != 0 && c->num_cpus < need)
		say(k, c->line.lcores, true, "lcores: %u workers take turns on %u CPUs", need,
		    c->num_cpus);
}

static uint32_t
table_mib(uint32_t mib, uint32_t log, uint32_t largest)
{
	return log >= largest ? mib << (log - largest) : mib >> (largest - log);
}

static void
check_memory(struct check *k, const struct endpoint_config *c)
{
	uint64_t buffers = (uint64_t)c->mbufs + c->rx_descriptors;
	uint64_t need = MIB_REST + buffers * MIB_PER_1024_BUFFERS / 1024;

	need += table_mib(MIB_QPS, c->log_qps, 14) + table_mib(MIB_CQS, c->log_cqs, 14);
	need += table_mib(MIB_MPTS, c->log_mpts, 17) + table_mib(MIB_MTTS, c->log_mtts, 20);
	if (c->memory_mb >= need)
		return;
	/* Hugepages are allocated on demand, ordinary memory is allocated at the start. */
	say(k, c->line.memory, c->hugepages != ENDPOINT_HUGEPAGES_NEVER,
	    "size_mb: expected at least %llu for these [limits] and [pools], found %u",
	    (unsigned long long)need, c->memory_mb);
}

int
endpoint_check(const struct endpoint_config *c, const char *path, FILE *out)
{
	struct check k = {.path = path, .out = out};

	check_device(&k, c);
	check_group(&k, c);
	check_cpus(&k, c);
	check_memory(&k, c);
	return k.errors;
}
