/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "endpoint_log.h"
#include "endpoint_machine.h"

#define OWN_FILES 94u /* descriptors for EAL, telemetry and its clients, port, log */
#define FILES_PER_WORKER 2u
#define FILES_PER_CLIENT \
	11u /* socket, process, doorbell page, kicks, events, and those in a request; with several \
	       pipelines also a kick for each but the first */
#define MIN_SHARE 2u /* in addition to these: a channel, and the file of an XRC domain */
#define CHANNELS_MAX 65536u

static uint64_t
raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit all = {limit.rlim_max, limit.rlim_max};

		if (setrlimit(RLIMIT_NOFILE, &all) == 0)
			limit = all;
	}
	return limit.rlim_cur;
}

uint64_t
endpoint_machine_files_needed(const struct endpoint_config *c)
{
	return OWN_FILES + FILES_PER_WORKER * endpoint_workers(c) +
	       (uint64_t)c->clients * (FILES_PER_CLIENT + c->pipelines - 1 + MIN_SHARE);
}

void
endpoint_machine_files(struct endpoint_config *c)
{
	uint64_t files = raise_limit();
	uint64_t need = endpoint_machine_files_needed(c), share = MIN_SHARE;

	if (files < need)
		LOG_WARNING("%llu files may be open; %u clients may need %llu (ulimit -n)",
			    (unsigned long long)files, c->clients, (unsigned long long)need);
	if (c->quota.channels != 0)
		return;
	if (files > need)
		share += (files - need) / c->clients;
	c->quota.channels = (uint32_t)(share < CHANNELS_MAX ? share : CHANNELS_MAX);
}

int
endpoint_machine_cpus(const struct endpoint_config *c)
{
	cpu_set_t before, one;
	int err = pthread_getaffinity_np(pthread_self(), sizeof(before), &before);

	if (err != 0 || c->num_cpus == 0)
		return 0;
	for (uint32_t i = 0; i < c->num_cpus && err == 0; i++) {
		CPU_ZERO(&one);
		if (c->cpus[i] < CPU_SETSIZE)
			CPU_SET(c->cpus[i], &one);
		err = pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
		if (err != 0)
			endpoint_fail(-err, "[hca] lcores: CPU %d cannot be used: %s", c->cpus[i],
				      err == EINVAL ? "it is not there, or not for this process"
						    : strerror(err));
	}
	pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	return -err;
}

uint64_t
endpoint_machine_waited_ns(int tid)
{
	char path[64];
	uint64_t waited = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%*u %" SCNu64, &waited) != 1)
		waited = 0;
	fclose(f);
	return waited;
}

static int
arp_ignore(const char *interface)
{
	char path[128];
	int value = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/arp_ignore", interface);
	f = fopen(path, "re");
	if (f == NULL)
		return -1; /* no such interface here */
	if (fscanf(f, "%d", &value) != 1)
		value = 0;
	fclose(f);
	return value;
}

void
endpoint_machine_arp(const struct endpoint_config *c, const char *interface)
{
	if (c->kernel == ENDPOINT_KERNEL_NONE || !c->has_mac || interface[0] == '\0')
		return;
	if (arp_ignore(interface) == 0 && arp_ignore("all") <= 0)
		LOG_WARNING("the kernel answers ARP on %s for addresses of %s, and not with the "
			    "MAC address configured; run 'sysctl net.ipv4.conf.%s.arp_ignore=1'",
			    interface, c->kernel_interface, interface);
}
