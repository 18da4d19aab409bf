/* SPDX-License-Identifier: BSD-3-Clause */

/* The distribution of latencies: HdrHistogram's percentiles, not rounded. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "perf.h"

#define TICKS 5 /* points until the distance to 100 % is halved: HdrHistogram's usual number */

static void
add_point(struct perf_histogram *h, double level, uint32_t ns, uint32_t total)
{
	if (h->count == PERF_HISTOGRAM_MAX)
		return;
	h->level[h->count] = level;
	h->ns[h->count] = ns;
	h->total[h->count++] = total;
}

void
perf_histogram_make(const uint32_t *sorted, uint32_t n, struct perf_histogram *h)
{
	double level = 0;
	uint32_t total = 0;

	h->count = 0;
	for (;;) {
		uint32_t rank = (uint32_t)ceil(level * n), ns = sorted[rank > 0 ? rank - 1 : 0];

		while (total < n && sorted[total] <= ns)
			total++;
		if (total == n)
			break;
		add_point(h, level, ns, total);
		level += 1 / (TICKS * exp2(floor(log2(1 / (1 - level))) + 1));
	}
	add_point(h, 1, sorted[n - 1], n);
}

void
perf_histogram_print(FILE *f, const struct perf_options *opt, const struct perf_row *row)
{
	const struct perf_histogram *h = &row->histogram;

	fprintf(f, "# softhca-perf %s %s %s, %" PRIu64 " bytes; values are microseconds\n",
		opt->wire == PERF_WIRE_UB ? "ub" : perf_service_names[opt->service],
		perf_op_names[opt->op], perf_test_name(opt->test), row->size);
	fprintf(f, "%12s %12s %12s %12s\n\n", "Value", "Percentile", "TotalCount",
		"1/(1-Percentile)");
	for (uint32_t i = 0; i < h->count; i++)
		fprintf(f, "%12.3f %12f %12" PRIu32 " %12.2f\n", h->ns[i] / 1e3, h->level[i],
			h->total[i], 1 / (1 - h->level[i]));
	fprintf(f, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", row->lat.avg, row->lat.stdev);
	fprintf(f, "#[Max     = %12.3f, Total count    = %12" PRIu32 "]\n", row->lat.max,
		h->count != 0 ? h->total[h->count - 1] : 0);
}
