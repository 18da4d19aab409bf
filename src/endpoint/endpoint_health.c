/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "endpoint_health.h"
#include "endpoint_log.h"
#include "endpoint_machine.h"

#define SECOND_NS 1000000000ull
#define SHORT_PERCENT 25u /* of its time that a worker waits for a CPU */
#define SHORT_SECONDS 3u  /* duration before the warning */
#define HEALTH_PORT_MAX 32u
#define CALM_SECONDS 20u /* duration without it before the trouble ends */

static unsigned int
index_of(const char *counter)
{
	unsigned int i = 0;

	while (i < hca_counter_count() && strcmp(hca_counter_name(i), counter) != 0)
		i++;
	return i;
}

/* The present counters of the device; those that it does not have are its port's. */
static void
read_counters(const struct hca *hca, uint64_t value[FINDING_COUNTERS])
{
	uint64_t port[HEALTH_PORT_MAX] = {0};

	hca_port_counters(hca, port);
	for (unsigned int i = 0; i < FINDING_COUNTERS; i++) {
		unsigned int k = index_of(finding_counter_names[i]);

		if (k < hca_counter_count())
			value[i] = hca_counter_value(hca, k);
	}
	for (unsigned int k = 0; k < hca_port_counter_count(); k++)
		if (strcmp(hca_port_counter_name(k), "port_rcv_missed") == 0)
			value[FINDING_port_rcv_missed] = port[k];
}

static unsigned int
workers(const struct endpoint_health *h)
{
	unsigned int n = hca_threads_count(h->threads);

	return n < HCA_WORKERS_MAX ? n : HCA_WORKERS_MAX;
}

void
endpoint_health_init(struct endpoint_health *h, const char *name, const struct hca *hca,
		     const struct hca_threads *threads, uint64_t now)
{
	memset(h, 0, sizeof(*h));
	pthread_mutex_init(&h->lock, NULL);
	h->name = name;
	h->hca = hca;
	h->threads = threads;
	h->looked_at = now;
	read_counters(hca, h->last);
	for (unsigned int i = 0; i < workers(h); i++)
		h->waited[i] = endpoint_machine_waited_ns(hca_threads_tid(threads, i));
}

/* The log names each finding once in an episode. */
static void
log_findings(struct endpoint_health *h)
{
	struct finding found[FINDINGS_MAX];
	unsigned int n = finding_judge(h->grown, found), k;

	for (unsigned int i = 0; i < n; i++) {
		for (k = 0; k < h->num_logged && h->logged[k] != found[i].name; k++)
			;
		if (k < h->num_logged || k == FINDINGS_MAX)
			continue;
		h->logged[h->num_logged++] = found[i].name;
		LOG_WARNING("%s: %s", h->name, found[i].text);
	}
}

static void
end_trouble(struct endpoint_health *h)
{
	struct finding found[FINDINGS_MAX];

	if (finding_judge(h->grown, found) != 0)
		LOG_INFO("%s: calm for a minute after: %s", h->name, found[0].text);
	memset(h->grown, 0, sizeof(h->grown));
	h->moved_at = 0;
	h->num_logged = 0;
}

static bool
has_moved(const struct endpoint_health *h, const uint64_t value[FINDING_COUNTERS])
{
	for (unsigned int i = 0; i <= FINDING_LAST_TROUBLE; i++)
		if (value[i] != h->last[i])
			return true;
	return false;
}

/* An episode of trouble begins with the second in which a counter of trouble grows. */
static void
watch_counters(struct endpoint_health *h, uint64_t now)
{
	uint64_t value[FINDING_COUNTERS] = {0};
	bool moved;

	read_counters(h->hca, value);
	moved = has_moved(h, value);
	if (moved)
		h->moved_at = now;
	for (unsigned int i = 0; i < FINDING_COUNTERS; i++) {
		h->grown[i] += h->moved_at != 0 ? value[i] - h->last[i] : 0;
		h->last[i] = value[i];
	}
	if (moved)
		log_findings(h);
	else if (h->moved_at != 0 && now - h->moved_at >= ENDPOINT_HEALTH_CALM_NS)
		end_trouble(h);
}

/* Watch the worker that waits most. */
static void
watch_cpu(struct endpoint_health *h, uint64_t elapsed)
{
	uint64_t longest = 0;

	for (unsigned int i = 0; i < workers(h); i++) {
		uint64_t waited = endpoint_machine_waited_ns(hca_threads_tid(h->threads, i));

		if (waited - h->waited[i] > longest)
			longest = waited - h->waited[i];
		h->waited[i] = waited;
	}
	h->short_of_cpu = (unsigned int)(longest * 100 / elapsed);
	h->calm_seconds = h->short_of_cpu < SHORT_PERCENT ? h->calm_seconds + 1 : 0;
	if (h->calm_seconds != 0) {
		if (h->calm_seconds < CALM_SECONDS)
			return;
		if (h->short_seconds >= SHORT_SECONDS)
			LOG_INFO("%s: workers get their CPU again", h->name);
		h->short_seconds = 0;
	} else if (++h->short_seconds == SHORT_SECONDS) {
		LOG_WARNING(
			"%s: a worker waits %u %% of its time for a CPU: programs and workers "
			"share CPUs; give it a CPU of its own (lcores), or let programs wait for "
			"events instead of polling",
			h->name, h->short_of_cpu);
	}
}

void
endpoint_health_watch(struct endpoint_health *h, uint64_t now)
{
	if (now - h->looked_at < SECOND_NS)
		return;
	pthread_mutex_lock(&h->lock);
	watch_counters(h, now);
	watch_cpu(h, now - h->looked_at);
	h->looked_at = now;
	pthread_mutex_unlock(&h->lock);
}

unsigned int
endpoint_health_findings(struct endpoint_health *h, struct finding out[FINDINGS_MAX])
{
	uint64_t grown[FINDING_COUNTERS], value[FINDING_COUNTERS] = {0};
	bool moved;

	pthread_mutex_lock(&h->lock);
	read_counters(h->hca, value);
	moved = h->moved_at != 0 || has_moved(h, value);
	for (unsigned int i = 0; i < FINDING_COUNTERS; i++)
		grown[i] = h->grown[i] + (moved ? value[i] - h->last[i] : 0);
	pthread_mutex_unlock(&h->lock);
	return finding_judge(grown, out);
}

void
endpoint_health_tell(struct endpoint_health *h, char *health, size_t health_size, char *cpu,
		     size_t cpu_size)
{
	struct finding found[FINDINGS_MAX];

	snprintf(health, health_size, "%s",
		 endpoint_health_findings(h, found) != 0 ? found[0].text : "well");
	pthread_mutex_lock(&h->lock);
	if (h->short_seconds < SHORT_SECONDS)
		snprintf(cpu, cpu_size, "enough");
	else
		snprintf(cpu, cpu_size,
			 "workers wait %u %% of their time: programs and workers share CPUs, try "
			 "--events",
			 h->short_of_cpu);
	pthread_mutex_unlock(&h->lock);
}
