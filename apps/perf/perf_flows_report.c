/* SPDX-License-Identifier: BSD-3-Clause */

/* The result of a flow of --flows: its rate over time, and a line of JSON. */

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include <softhca/softhca.h>

#include "perf_flows.h"

/* Steps of twice the time. */
static void
widen(struct perf_flows_rate *r)
{
	for (uint32_t i = 0; i < PERF_FLOWS_STEPS / 2; i++)
		r->bytes[i] = r->bytes[2 * i] + r->bytes[2 * i + 1];
	memset(r->bytes + PERF_FLOWS_STEPS / 2, 0, sizeof(r->bytes) / 2);
	r->step_ns *= 2;
}

void
perf_flows_rate_add(struct perf_flows_rate *r, uint64_t at_ns, uint64_t bytes)
{
	if (r->step_ns == 0)
		r->step_ns = PERF_FLOWS_STEP_NS;
	while (at_ns / r->step_ns >= PERF_FLOWS_STEPS)
		widen(r);
	r->bytes[at_ns / r->step_ns] += bytes;
}

static json_t *
rate_object(const struct perf_flows_rate *r)
{
	uint64_t step = r->step_ns != 0 ? r->step_ns : PERF_FLOWS_STEP_NS;
	json_t *gbit = json_array();
	uint32_t n = PERF_FLOWS_STEPS;

	while (n != 0 && r->bytes[n - 1] == 0)
		n--;
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(gbit, json_real((double)r->bytes[i] * 8 / (double)step));
	return json_pack("{s:f, s:o}", "step_us", (double)step / 1e3, "gbit_per_s", gbit);
}

int
perf_flows_print(FILE *f, uint32_t i, const struct perf_flows_result *r)
{
	static const char *const congestion[] = {
#define X(name, number, text) [number] = (text),
		SOFTHCA_CONGESTION_LIST(X)
#undef X
	};
	const struct perf_flow_spec *s = r->spec;
	double ns = r->end_ns > s->start_ns ? (double)(r->end_ns - s->start_ns) : 0;
	json_t *o = json_pack(
		"{s:i, s:i, s:s, s:s, s:I, s:i, s:i, s:i, s:s, s:f, s:f, s:I, s:I, s:f, s:b, s:I, s:I, "
		"s:I, s:o}",
		"flow", (int)i, "line", (int)s->line, "peer", s->peer, "op",
		s->op == PERF_FLOW_READ ? "read" : "write", "message", (json_int_t)s->message,
		"depth", (int)s->depth, "dscp", (int)s->dscp, "ecn", (int)s->ecn, "congestion",
		congestion[s->congestion], "start_us", (double)s->start_ns / 1e3, "completion_us",
		ns / 1e3, "bytes", (json_int_t)r->bytes, "messages", (json_int_t)r->messages,
		"gbit_per_s", ns > 0 ? (double)r->bytes * 8 / ns : 0.0, "failed", r->failed, "cnps",
		(json_int_t)r->cnps, "retransmissions", (json_int_t)r->retransmissions, "timeouts",
		(json_int_t)r->timeouts, "rate", rate_object(&r->rate));
	int err;

	if (o == NULL)
		return -ENOMEM;
	err = json_dumpf(o, f, JSON_REAL_PRECISION(6)) == 0 && fputc('\n', f) != EOF ? 0 : -EIO;
	json_decref(o);
	return err;
}
