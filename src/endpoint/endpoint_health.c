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
#define CALM_SECONDS 20u  /* duration without it before the trouble ends */

/* Worst first: a loss matters more than its consequences. At most 8. */
static const struct {
	const char *counter, *what;
} troubles[] = {
	{"tx_discard_stalled", "frames discarded: the other end of the link took none"},
	{"tx_discard_link_down", "frames discarded: the link was down"},
	{"loopback_drops", "frames to an address of this HCA lost: no room"},
	{"rx_icrc_encapsulated", "frames received were damaged (ICRC)"},
	{"local_ack_timeout_err", "ack timeouts: the peer is slow, or the network loses frames"},
	{"packet_seq_err", "sequence NAKs of peers: the network loses frames"},
	{"retransmissions", "packets sent again"},
};
#define TROUBLES (sizeof(troubles) / sizeof(troubles[0]))
_Static_assert(TROUBLES <= ENDPOINT_HEALTH_TROUBLES, "a place each");

static unsigned int
index_of(const char *counter)
{
	unsigned int i = 0;

	while (i < hca_counter_count() && strcmp(hca_counter_name(i), counter) != 0)
		i++;
	return i;
}

static unsigned int
workers(const struct endpoint_health *h)
{
	unsigned int n = hca_threads_count(h->threads);

	return n < ENDPOINT_HEALTH_WORKERS ? n : ENDPOINT_HEALTH_WORKERS;
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
	for (unsigned int i = 0; i < TROUBLES; i++)
		h->trouble[i].last = hca_counter_value(hca, index_of(troubles[i].counter));
	for (unsigned int i = 0; i < workers(h); i++)
		h->waited[i] = endpoint_machine_waited_ns(hca_threads_tid(threads, i));
}

static void
watch_counter(struct endpoint_health *h, unsigned int i, uint64_t now)
{
	struct endpoint_trouble *t = &h->trouble[i];
	uint64_t value = hca_counter_value(h->hca, index_of(troubles[i].counter));
	uint64_t grown = value - t->last;

	t->last = value;
	if (grown != 0) {
		t->moved_at = now;
		if (t->since == 0)
			LOG_WARNING("%s: %" PRIu64 " %s (%s)", h->name, grown, troubles[i].what,
				    troubles[i].counter);
		t->since += grown;
	} else if (t->since != 0 && now - t->moved_at >= ENDPOINT_HEALTH_CALM_NS) {
		LOG_INFO("%s: calm for a minute after %" PRIu64 " %s", h->name, t->since,
			 troubles[i].what);
		t->since = 0;
	}
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
	for (unsigned int i = 0; i < TROUBLES; i++)
		watch_counter(h, i, now);
	watch_cpu(h, now - h->looked_at);
	h->looked_at = now;
	pthread_mutex_unlock(&h->lock);
}

void
endpoint_health_tell(struct endpoint_health *h, char *health, size_t health_size, char *cpu,
		     size_t cpu_size)
{
	unsigned int worst = 0;

	pthread_mutex_lock(&h->lock);
	while (worst < TROUBLES && h->trouble[worst].since == 0)
		worst++;
	if (worst == TROUBLES)
		snprintf(health, health_size, "well");
	else
		snprintf(health, health_size, "%" PRIu64 " %s", h->trouble[worst].since,
			 troubles[worst].what);
	if (h->short_seconds < SHORT_SECONDS)
		snprintf(cpu, cpu_size, "enough");
	else
		snprintf(cpu, cpu_size,
			 "workers wait %u %% of their time: programs and workers share CPUs, try "
			 "--events",
			 h->short_of_cpu);
	pthread_mutex_unlock(&h->lock);
}
