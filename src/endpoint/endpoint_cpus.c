/* SPDX-License-Identifier: BSD-3-Clause */

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint_cpus.h"

#define PATH 1024
#define LINE 4096
#define MILLI 1000u
#define SETS 8u /* of CPU_SETSIZE CPUs */

/* A mounted hierarchy of control groups: the group `inside` of it is at `place`; "": the root. */
struct hierarchy {
	char place[PATH], inside[PATH];
};

/* CPUs by their numbers, for CPU_SET_S(); no kernel has more. */
struct cpus {
	cpu_set_t set[SETS];
};

static void
read_list(const char *list, struct cpus *out)
{
	memset(out, 0, sizeof(*out));
	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < SETS * CPU_SETSIZE; first++)
			CPU_SET_S(first, sizeof(out->set), out->set);
		list = *end == ',' ? end + 1 : end;
	}
}

static uint32_t
count(const struct cpus *c)
{
	return (uint32_t)CPU_COUNT_S(sizeof(c->set), c->set);
}

uint32_t
endpoint_cpus_in_list(const char *list)
{
	struct cpus c;

	read_list(list, &c);
	return count(&c);
}

uint32_t
endpoint_cpus_within(const struct endpoint_cpus *cpus, uint32_t n)
{
	uint32_t whole = cpus->quota_milli / MILLI;

	if (n > whole)
		n = whole;
	return n != 0 ? n : 1;
}

/* ---- files ---- */

static FILE *
open_below(const char *root, const char *path)
{
	char full[2 * PATH];
	int n = snprintf(full, sizeof(full), "%s%s", root, path);

	return n > 0 && (size_t)n < sizeof(full) ? fopen(full, "re") : NULL;
}

static FILE *
open_of_process(const char *root, const char *process, const char *name)
{
	char path[PATH];

	snprintf(path, sizeof(path), "/proc/%s/%s", process, name);
	return open_below(root, path);
}

/* Reads the first line; false: the file cannot be read, or is empty. */
static bool
read_line(const char *root, const char *path, char *line, size_t size)
{
	FILE *f = open_below(root, path);
	bool there = f != NULL && fgets(line, (int)size, f) != NULL;

	if (f != NULL)
		fclose(f);
	return there;
}

/* Whether a list with commas has the word. */
static bool
has_word(const char *list, size_t len, const char *word)
{
	size_t want = strlen(word);

	while (len != 0) {
		size_t n = 0;

		while (n < len && list[n] != ',')
			n++;
		if (n == want && memcmp(list, word, n) == 0)
			return true;
		n += n < len;
		list += n;
		len -= n;
	}
	return false;
}

/* ---- affinity ---- */

/* The mask as the process gave it: it may have CPUs that are not online. False: no mask. */
static bool
read_mask(const char *root, const char *process, struct cpus *out)
{
	static const char field[] = "Cpus_allowed_list:";
	FILE *f = open_of_process(root, process, "status");
	bool found = false;
	char line[LINE];

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
		const char *list = line + strlen(field);

		found = strncmp(line, field, strlen(field)) == 0;
		if (found)
			read_list(list + strspn(list, " \t"), out);
	}
	if (f != NULL)
		fclose(f);
	return found;
}

/* Of the CPUs that are online. The kernel's answer counts where the files are the kernel's. */
static uint32_t
allowed(const char *root, const char *process, const struct cpus *online)
{
	struct cpus c = {0};

	if (*root == '\0' &&
	    sched_getaffinity((pid_t)strtol(process, NULL, 10), sizeof(c.set), c.set) == 0)
		return count(&c);
	if (!read_mask(root, process, &c))
		return count(online);
	CPU_AND_S(sizeof(c.set), c.set, c.set, online->set);
	return count(&c);
}

/* ---- control groups ---- */

/* Undo \040 and the like, as the kernel writes spaces of paths, in place. */
static void
decode(char *path)
{
	char *out = path;

	for (; *path != '\0'; path++) {
		unsigned int octal;
		int len = 0;

		if (*path == '\\' && sscanf(path + 1, "%3o%n", &octal, &len) == 1 && len == 3) {
			*out++ = (char)octal;
			path += 3;
		} else {
			*out++ = *path;
		}
	}
	*out = '\0';
}

/*
 * A line of mountinfo: "ID PARENT DEVICE ROOT PLACE OPTIONS ... - TYPE SOURCE OPTIONS". v1: the one
 * whose controllers include cpu.
 */
static bool
is_hierarchy(const char *line, bool v1, struct hierarchy *out)
{
	const char *rest = strstr(line, " - ");
	char type[32], options[LINE];

	if (rest == NULL ||
	    sscanf(line, "%*s %*s %*s %1023s %1023s", out->inside, out->place) != 2 ||
	    sscanf(rest, " - %31s %*s %4095s", type, options) != 2)
		return false;
	decode(out->inside);
	decode(out->place);
	if (strcmp(out->inside, "/") == 0)
		out->inside[0] = '\0';
	if (!v1)
		return strcmp(type, "cgroup2") == 0;
	return strcmp(type, "cgroup") == 0 && has_word(options, strlen(options), "cpu");
}

/* Whether the group is one of those that are mounted. */
static bool
has_group(const struct hierarchy *h, const char *group)
{
	size_t len = strlen(h->inside);

	return strncmp(group, h->inside, len) == 0 && strncmp(group, "/..", 3) != 0 &&
	       (group[len] == '/' || group[len] == '\0');
}

/*
 * The mount that has the group and most of those above it. Without one the first: a container may
 * have its own group alone, at a place that its name does not tell.
 */
static bool
find_hierarchy(const char *root, bool v1, const char *group, struct hierarchy *out)
{
	FILE *f = open_of_process(root, "self", "mountinfo");
	bool found = false;
	struct hierarchy h;
	char line[LINE];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (!is_hierarchy(line, v1, &h))
			continue;
		if (!found || (has_group(&h, group) &&
			       (!has_group(out, group) || strlen(h.inside) < strlen(out->inside))))
			*out = h;
		found = true;
	}
	if (f != NULL)
		fclose(f);
	return found;
}

/* A line of the process's groups: "NUMBER:CONTROLLERS:GROUP"; v2 has no controllers. */
static bool
find_group(const char *root, const char *process, bool v1, char *group, size_t size)
{
	FILE *f = open_of_process(root, process, "cgroup");
	bool found = false;
	char line[LINE];

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
		const char *names = strchr(line, ':');
		const char *end = names != NULL ? strchr(names + 1, ':') : NULL;

		if (end == NULL)
			continue;
		names++;
		found = v1 ? has_word(names, (size_t)(end - names), "cpu") : names == end;
		snprintf(group, size, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static uint32_t
milli(double quota, double period)
{
	double cpus = period > 0 ? quota / period * MILLI : 0;

	return quota > 0 && cpus > 0 && cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

static uint32_t
quota_v2(const char *root, const char *folder)
{
	char path[2 * PATH], line[128];
	double quota, period;

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	if (!read_line(root, path, line, sizeof(line)) ||
	    sscanf(line, "%lf %lf", &quota, &period) != 2) /* "max 100000" is no limit */
		return UINT32_MAX;
	return milli(quota, period);
}

static uint32_t
quota_v1(const char *root, const char *folder)
{
	char path[2 * PATH], quota[64], period[64];

	snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
	if (!read_line(root, path, quota, sizeof(quota)))
		return UINT32_MAX;
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
	if (!read_line(root, path, period, sizeof(period)))
		return UINT32_MAX;
	return milli(strtod(quota, NULL), strtod(period, NULL));
}

/* The least of the group and those above it, as far as they are mounted. */
static uint32_t
quota_of(const char *root, const char *process, bool v1)
{
	struct hierarchy h;
	char group[PATH], folder[2 * PATH];
	uint32_t least = UINT32_MAX;
	size_t place;

	if (!find_group(root, process, v1, group, sizeof(group)) ||
	    !find_hierarchy(root, v1, group, &h))
		return least;
	snprintf(folder, sizeof(folder), "%s%s", h.place,
		 has_group(&h, group) ? group + strlen(h.inside) : "");
	place = strlen(h.place);
	for (size_t len = strlen(folder); len >= place && len > 0; len--) {
		uint32_t each;

		if (len != place && folder[len] != '/' && folder[len] != '\0')
			continue;
		folder[len] = '\0';
		each = v1 ? quota_v1(root, folder) : quota_v2(root, folder);
		if (each < least)
			least = each;
	}
	return least;
}

void
endpoint_cpus_read(struct endpoint_cpus *cpus, const char *root, const char *process)
{
	uint32_t v1 = quota_of(root, process, true), v2 = quota_of(root, process, false);
	char line[LINE] = "";
	struct cpus online;

	read_line(root, "/sys/devices/system/cpu/online", line, sizeof(line));
	read_list(line, &online);
	cpus->online = count(&online);
	cpus->allowed = allowed(root, process, &online);
	cpus->quota_milli = v1 < v2 ? v1 : v2;
	cpus->usable = endpoint_cpus_within(cpus, cpus->allowed);
}
