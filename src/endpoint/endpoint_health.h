/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_HEALTH_H
#define ENDPOINT_HEALTH_H

/*
 * What goes wrong while the daemon runs, in words: frames that are lost or sent again, and workers
 * that wait for a CPU. The main thread looks once a second and logs the begin and the end of each
 * trouble; a trouble ends when its counter has not moved for ENDPOINT_HEALTH_CALM_NS. Telemetry and
 * softhca-ctl say what is wrong now.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/executor.h"
#include "hca.h"

#define ENDPOINT_HEALTH_CALM_NS 60000000000ull
#define ENDPOINT_HEALTH_TROUBLES 8u
#define ENDPOINT_HEALTH_WORKERS 16u

/* One counter of trouble */
struct endpoint_trouble {
	uint64_t last;	   /* its value when it was last read */
	uint64_t since;	   /* how much it has grown in this trouble; 0: calm */
	uint64_t moved_at; /* ns */
};

struct endpoint_health {
	pthread_mutex_t lock; /* of all below: the main thread writes, telemetry reads */
	const char *name;     /* of the HCA, for the log */
	const struct hca *hca;
	const struct hca_threads *threads;
	uint64_t looked_at; /* ns */
	struct endpoint_trouble trouble[ENDPOINT_HEALTH_TROUBLES];
	uint64_t waited[ENDPOINT_HEALTH_WORKERS]; /* ns each worker has waited for a CPU so far */
	unsigned int short_of_cpu;		  /* percent of the last second; 0: enough */
	unsigned int short_seconds;		  /* of the trouble so far in which it was so */
	unsigned int calm_seconds;		  /* since it was so last */
};

void endpoint_health_init(struct endpoint_health *h, const char *name, const struct hca *hca,
			  const struct hca_threads *threads, uint64_t now);
/* From the main thread, at any rate: looks once a second. */
void endpoint_health_watch(struct endpoint_health *h, uint64_t now);
/*
 * Any thread. health: "well", or the worst trouble there is. cpu: "enough", or how long workers
 * wait and what helps.
 */
void endpoint_health_tell(struct endpoint_health *h, char *health, size_t health_size, char *cpu,
			  size_t cpu_size);

#endif
