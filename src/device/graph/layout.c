/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>

#include "graph/layout.h"

/*
 * Which worker polls which stage. Workers of stages that only some wires need come last, so that a
 * device without these wires has the others.
 */
static const uint8_t layouts[HCA_LAYOUTS][HCA_STAGE_N] = {
	[HCA_LAYOUT_RTC] = {0},
	[HCA_LAYOUT_TXRX] = {[HCA_STAGE_DECAP] = 1,
			     [HCA_STAGE_TPR] = 1,
			     [HCA_STAGE_TAT] = 1,
			     [HCA_STAGE_EE] = 1,
			     [HCA_STAGE_REQ_RX] = 1,
			     [HCA_STAGE_TIMER] = 1},
	[HCA_LAYOUT_FULL] = {[HCA_STAGE_DOORBELL] = 0,
			     [HCA_STAGE_PARSER] = 1,
			     [HCA_STAGE_REQ_TX] = 2,
			     [HCA_STAGE_DECAP] = 3,
			     [HCA_STAGE_EE] = 4,
			     [HCA_STAGE_REQ_RX] = 5,
			     [HCA_STAGE_TIMER] = 6,
			     [HCA_STAGE_ENCAP] = 7,
			     [HCA_STAGE_CEU] = 8,
			     [HCA_STAGE_TAI] = 9,
			     [HCA_STAGE_TPR] = 10,
			     [HCA_STAGE_TAT] = 11,
			     [HCA_STAGE_TPS] = 12},
};

static unsigned int
workers_of(enum hca_layout layout, uint32_t stages)
{
	unsigned int last = 0;

	for (; stages != 0; stages &= stages - 1) {
		unsigned int worker = layouts[layout][__builtin_ctz(stages)];

		last = worker > last ? worker : last;
	}
	return last + 1;
}

uint32_t
hca_stages_of_pipe(uint32_t wires, unsigned int pipe)
{
	if (pipe == 0)
		return hca_stages_of(wires);
	return hca_stages_of(HCA_WIRE_BIT(HCA_WIRE_ROCE)) & ~(1u << HCA_STAGE_CEU);
}

unsigned int
hca_layout_workers(enum hca_layout layout, unsigned int pipelines, uint32_t wires)
{
	return workers_of(layout, hca_stages_of_pipe(wires, 0)) +
	       (pipelines - 1) * workers_of(layout, hca_stages_of_pipe(wires, 1));
}

unsigned int
hca_layout_worker(enum hca_layout layout, uint32_t wires, enum hca_stage_id stage)
{
	unsigned int worker = layouts[layout][stage];

	return worker < workers_of(layout, hca_stages_of(wires)) ? worker : 0;
}

/*
 * Which stages share a CPU if there are fewer CPUs than workers: until every worker has one, the
 * next row lets the workers of its two stages share theirs. Stages without work of each message
 * come first, then those of the two wires that do the same, then neighbours on the way of a
 * message. The last rows leave the two halves of layout txrx, and one CPU.
 */
static const struct {
	uint8_t stage, with;
} sharing[] = {
	{HCA_STAGE_CEU, HCA_STAGE_DOORBELL}, {HCA_STAGE_TIMER, HCA_STAGE_REQ_RX},
	{HCA_STAGE_TAI, HCA_STAGE_REQ_TX},   {HCA_STAGE_TAT, HCA_STAGE_EE},
	{HCA_STAGE_TPR, HCA_STAGE_REQ_RX},   {HCA_STAGE_DOORBELL, HCA_STAGE_PARSER},
	{HCA_STAGE_TPS, HCA_STAGE_ENCAP},    {HCA_STAGE_PARSER, HCA_STAGE_REQ_TX},
	{HCA_STAGE_EE, HCA_STAGE_REQ_RX},    {HCA_STAGE_DECAP, HCA_STAGE_EE},
	{HCA_STAGE_REQ_TX, HCA_STAGE_ENCAP}, {HCA_STAGE_ENCAP, HCA_STAGE_DECAP},
};

/* Let the workers of two stages share a CPU. Returns whether two had CPUs apart before. */
static bool
share(uint8_t cpu[HCA_STAGE_N], uint8_t from, uint8_t to)
{
	uint8_t low = cpu[from] < cpu[to] ? cpu[from] : cpu[to], high = cpu[from] ^ cpu[to] ^ low;

	for (unsigned int w = 0; w < HCA_STAGE_N && low != high; w++)
		if (cpu[w] == high)
			cpu[w] = low;
		else if (cpu[w] > high)
			cpu[w]--;
	return low != high;
}

/* The CPU of each worker of a pipe with these stages. */
static void
plan_pipe(enum hca_layout layout, uint32_t stages, unsigned int cpus, uint8_t cpu[HCA_STAGE_N])
{
	unsigned int n = workers_of(layout, stages);

	for (unsigned int w = 0; w < HCA_STAGE_N; w++)
		cpu[w] = (uint8_t)w;
	for (unsigned int i = 0; n > cpus && i < sizeof(sharing) / sizeof(sharing[0]); i++) {
		uint32_t both = 1u << sharing[i].stage | 1u << sharing[i].with;

		if ((stages & both) == both &&
		    share(cpu, layouts[layout][sharing[i].stage], layouts[layout][sharing[i].with]))
			n--;
	}
}

unsigned int
hca_layout_cpu(enum hca_layout layout, unsigned int pipelines, uint32_t wires, unsigned int cpus,
	       unsigned int worker)
{
	unsigned int pipe = 0, first = 0, last;
	uint8_t cpu[HCA_STAGE_N];

	if (cpus >= hca_layout_workers(layout, pipelines, wires))
		return worker;
	for (; worker >= (last = hca_layout_workers(layout, pipe + 1, wires)); pipe++)
		first = last;
	if (cpus < pipelines)
		return pipe % cpus;
	last = cpus * (pipe + 1) / pipelines;
	plan_pipe(layout, hca_stages_of_pipe(wires, pipe), last - cpus * pipe / pipelines, cpu);
	return cpus * pipe / pipelines + cpu[worker - first];
}

void
hca_layout_plan(enum hca_layout layout, uint32_t wires, unsigned int cpus, char *text, size_t size)
{
	static const char *const names[HCA_STAGE_N] = {
#define X(e, n, wires) [HCA_STAGE_##e] = #n,
		HCA_STAGE_LIST(X)
#undef X
	};
	uint32_t stages = hca_stages_of(wires);
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int cpu = 0; cpu < cpus; cpu++) {
		const char *before = cpu == 0 ? "" : ", ";

		for (unsigned int s = 0; s < HCA_STAGE_N; s++) {
			unsigned int worker = hca_layout_worker(layout, wires, s);

			if ((stages & 1u << s) == 0 || used >= size ||
			    hca_layout_cpu(layout, 1, wires, cpus, worker) != cpu)
				continue;
			used += (size_t)snprintf(text + used, size - used, "%s%s", before,
						 names[s]);
			before = "+";
		}
	}
}
