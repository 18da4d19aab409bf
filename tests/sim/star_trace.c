/* SPDX-License-Identifier: BSD-3-Clause */

/* A run as JSON lines: flows with their rates over time, ports with their queues. */

#include <inttypes.h>

#include <rte_common.h>

#include "star.h"

static void
trace_flow(FILE *f, const struct star *x, const struct star_flow *w, uint32_t n)
{
	static const char *const kinds[] = {"write", "read", "uc-write", "ub-write"};

	fprintf(f,
		"{\"flow\": %u, \"from\": %u, \"peer\": \"%u\", \"op\": \"%s\", \"message\": %u, ",
		(unsigned int)(w - x->flow), w->from, w->to, kinds[w->kind], w->message);
	fprintf(f, "\"cnps\": %" PRIu64 ", ", star_flow_counter(w, "rp_cnp_handled"));
	fprintf(f, "\"bytes\": %" PRIu64 ", \"rate\": {\"step_us\": %u, \"gbit_per_s\": [",
		w->done * w->message, STAR_BUCKET_NS / STAR_US);
	for (uint32_t i = 0; i < n; i++)
		fprintf(f, "%s%.3f", i != 0 ? ", " : "", (double)w->bytes[i] * 8 / STAR_BUCKET_NS);
	fprintf(f, "]}}\n");
}

static void
trace_port(FILE *f, const struct star *x, uint32_t host, uint64_t end)
{
	struct hca_port_switch_stats s = star_port(x, host);
	uint64_t n = RTE_MIN(end / STAR_SAMPLE_NS, STAR_SAMPLES);

	fprintf(f,
		"{\"port\": %u, \"queue\": %" PRIu64 ", \"kmin\": %" PRIu64 ", \"kmax\": %" PRIu64,
		host, x->network.queue, x->network.kmin, x->network.kmax);
#define X(n) fprintf(f, ", \"" #n "\": %" PRIu64, s.n);
	HCA_PORT_SWITCH_STATS(X)
#undef X
	fprintf(f, ", \"step_us\": %u, \"queue_bytes\": [", STAR_SAMPLE_NS / STAR_US);
	for (uint64_t i = 0; i < n; i++)
		fprintf(f, "%s%" PRIu64, i != 0 ? ", " : "", x->host[host].sample[i]);
	fprintf(f, "]}\n");
}

void
star_trace(const struct star *x)
{
	uint64_t end = x->now - x->begin;
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.json", getenv("STAR_TRACE"), x->cfg.name);
	f = fopen(path, "w");
	STAR_CHECK(f != NULL, "STAR_TRACE: cannot write %s", path);
	for (uint32_t i = 0; i < x->flows; i++)
		trace_flow(f, x, &x->flow[i], RTE_MIN(end / STAR_BUCKET_NS, STAR_BUCKETS));
	for (uint32_t i = 0; i < x->n; i++)
		if (star_queue(x, i, 0, end) != 0)
			trace_port(f, x, i, end);
	STAR_CHECK(fclose(f) == 0, "STAR_TRACE: cannot write %s", path);
}
