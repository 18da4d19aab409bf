/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_HEALTH_H
#define ENDPOINT_HEALTH_H

/*
 * Reports trouble at run time in words: frames lost or retransmitted, and workers that wait for a
 * CPU. The main thread checks every second and logs its findings, and the end of a trouble: when
 * none of its counters has changed for ENDPOINT_HEALTH_CALM_NS. Telemetry and softhca-ctl show the
 * findings of the current episode.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "core/stage.h"
#include "finding.h"
#include "graph/executor.h"
#include "hca.h"

#define ENDPOINT_HEALTH_CALM_NS 60000000000ull

struct endpoint_health {
	pthread_mutex_t lock; /* protects all below: the main thread writes, telemetry reads */
	const char *name;     /* of the HCA, for the log */
	const struct hca *hca;
	const struct hca_threads *threads;
	uint64_t looked_at;		  /* time of the last check, ns */
	uint64_t last[FINDING_COUNTERS];  /* at the last check */
	uint64_t grown[FINDING_COUNTERS]; /* by how much in this episode of trouble */
	uint64_t moved_at;		  /* time of the last trouble, ns; 0: none */
	const char *logged[FINDINGS_MAX]; /* names of findings in the log */
	unsigned int num_logged;
	/* total time each worker has waited for a CPU, ns */
	uint64_t waited[HCA_WORKERS_MAX];
	/* percent of the last second that a worker waited */
	unsigned int short_of_cpu;
	unsigned int short_seconds; /* number of such seconds in this trouble */
	unsigned int calm_seconds;  /* seconds since the last such second */
};

/* Start with the counters' current values; name, hca and threads must outlive h. now: ns. */
void endpoint_health_init(struct endpoint_health *h, const char *name, const struct hca *hca,
			  const struct hca_threads *threads, uint64_t now);
/* Check the counters, at most once a second. Main thread; may be called more often. now: ns. */
void endpoint_health_watch(struct endpoint_health *h, uint64_t now);
/* Findings, the worst first; returns their number. Any thread. */
unsigned int endpoint_health_findings(struct endpoint_health *h, struct finding out[FINDINGS_MAX]);
/*
 * Describe the state; any thread. health: "well" or the worst trouble. cpu: "enough", or how long
 * workers wait and a remedy.
 */
void endpoint_health_tell(struct endpoint_health *h, char *health, size_t health_size, char *cpu,
			  size_t cpu_size);

#endif
