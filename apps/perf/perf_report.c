/* SPDX-License-Identifier: BSD-3-Clause */

/* Tables in perftest's columns, counters, progress, and messages about errors. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "finding.h"
#include "perf_ub.h"

#define PROGRESS_NS 500000000ull
#define PROGRESS_FIRST_NS 2000000000ull

static const char *
verdict(const struct perf_row *row)
{
	static const char *const names[] = {[PERF_NOT_VERIFIED] = "",
					    [PERF_VERIFIED] = " verified",
					    [PERF_WRONG] = " WRONG",
					    [PERF_FAILED] = " FAILED"};

	return names[row->verified];
}

/* A share of its time from which on waiting for a CPU is worth a line */
#define CPU_WAIT_SHARE 0.25

/* Of both HCAs together */
static uint64_t
counted(const struct perf_row *row, const char *counter)
{
	uint64_t n = 0;

	for (unsigned int h = 0; h < 2; h++)
		for (unsigned int k = 0; k < row->counters[h].count; k++)
			if (strcmp(row->counters[h].value[k].name, counter) == 0)
				n += row->counters[h].value[k].value;
	return n;
}

static void
report_network(const struct perf_row *row)
{
	printf("#   the network lost %" PRIu64 " frames, %" PRIu64 " of them data, and %" PRIu64
	       " in full queues; %" PRIu64 " were sent again\n",
	       counted(row, "fabric_lost"), counted(row, "fabric_lost_data"),
	       counted(row, "fabric_overflown"), row->retransmissions);
}

/* Of an HCA of this process, or of the daemon: 0 the client's, 1 the server's. */
static void
report_findings(const struct perf_row *row, unsigned int h)
{
	static const char *const whose[] = {"client", "server"};
	bool both = row->counters[1 - h].count != 0;
	uint64_t grown[FINDING_COUNTERS] = {0};
	struct finding found[FINDINGS_MAX];
	unsigned int n;

	for (unsigned int i = 0; i < FINDING_COUNTERS; i++)
		for (unsigned int k = 0; k < row->counters[h].count; k++)
			if (strcmp(row->counters[h].value[k].name, finding_counter_names[i]) == 0)
				grown[i] = row->counters[h].value[k].value;
	n = finding_judge(grown, found);
	for (unsigned int i = 0; i < n; i++)
		printf("#   %s%s%s\n", both ? whose[h] : "", both ? ": " : "", found[i].text);
}

static void
report_trouble(const struct perf_options *opt, const struct perf_row *row)
{
	uint64_t not_ready = counted(row, "rnr_nak_retry_err");

	for (unsigned int h = 0; h < 2; h++)
		report_findings(row, h);
	if (not_ready != 0)
		printf("#   %" PRIu64 " times the peer had no receive posted (rnr_nak_retry_err)\n",
		       not_ready);
	if (row->cpu_wait > CPU_WAIT_SHARE && !perf_is_simulated(opt))
		printf("#   this program waited %.0f %% of its time for a CPU: programs and workers "
		       "share CPUs%s\n",
		       row->cpu_wait * 100, opt->events ? "" : ": try --events");
}

void
perf_report_header(const struct perf_options *opt)
{
	bool ub = opt->wire == PERF_WIRE_UB;
	char where[48] = "between daemons";

	if (!perf_is_remote(opt))
		snprintf(where, sizeof(where), "layout %s (%s)",
			 perf_layout_names[opt->embed.layout],
			 perf_executor_names[opt->embed.executor]);
	printf("# %s %s %s%s%s over IPv%u%s, %s, %u %s, depth %u, MTU %u, post list %u%s\n",
	       ub ? "ub" : perf_service_names[opt->service], perf_op_names[opt->op],
	       perf_test_name(opt->test), opt->remote.bidir ? " both ways" : "",
	       opt->srq ? (ub ? " with a JFR" : " with an SRQ") : "", opt->ip,
	       opt->embed.vlan != 0 ? " on a VLAN" : "", where, opt->qps, ub ? "Jetty" : "QP",
	       opt->depth, opt->mtu, opt->post_list, opt->events ? ", completion events" : "");
	if (perf_is_simulated(opt))
		printf("# over a fabric: all times and rates are of its simulated clock\n");
	if (opt->load != 0)
		printf("# messages are due at %g Gb/s; the latency is from then to completion\n",
		       opt->load);
	if (opt->test == PERF_TEST_BW)
		printf("#bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   "
		       "MsgRate[Mpps]   ns/msg   retrans\n");
	else
		printf("#bytes     #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    "
		       "t_avg[usec]    t_stdev[usec]   99%%[usec]   99.9%%[usec]   retrans\n");
	fflush(stdout);
}

/* "run ns, waited ns, slices" */
uint64_t
perf_cpu_wait_ns(void)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	uint64_t waited = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%*u %" SCNu64, &waited) != 1)
		waited = 0;
	fclose(f);
	return waited;
}

void
perf_report_interval(const struct perf_session *s, struct perf_interval *i, uint64_t done)
{
	uint64_t now, every = (uint64_t)(s->opt->report_every * 1e9);
	double seconds, rate;

	if (every == 0)
		return;
	now = perf_pass_clock(s);
	if (i->begin == 0)
		i->begin = i->at = now;
	if (now - i->at < every)
		return;
	seconds = (double)(now - i->at) / 1e9;
	rate = (double)(done - i->done) / seconds;
	printf("#   %8.2f s  %10.3f Gb/s  %12.6f Mpps\n", (double)(now - i->begin) / 1e9,
	       rate * (double)s->size * 8 / 1e9, rate / 1e6);
	fflush(stdout);
	i->at = now;
	i->done = done;
}

void
perf_report_row(const struct perf_options *opt, const struct perf_row *row)
{
	double rate = row->seconds > 0 ? (double)row->msgs / row->seconds : 0;
	double gbit = rate * (double)row->size * 8 / 1e9;
	const struct perf_latency *l = &row->lat;

	if (opt->test == PERF_TEST_BW)
		printf(" %-10" PRIu64 " %-14" PRIu64 " %-18.3f %-20.3f %-15.6f %-8.1f %" PRIu64
		       "%s\n",
		       row->size, row->msgs, row->peak_mmsg * (double)row->size * 8 / 1e3, gbit,
		       rate / 1e6, rate > 0 ? 1e9 / rate : 0, row->retransmissions, verdict(row));
	else
		printf(" %-10" PRIu64 " %-14" PRIu64
		       " %-14.2f %-12.2f %-18.2f %-14.2f %-15.2f %-11.2f %-13.2f %" PRIu64 "%s\n",
		       row->size, row->msgs, l->min, l->max, l->p50, l->avg, l->stdev, l->p99,
		       l->p999, row->retransmissions, verdict(row));
	if (row->lost != 0)
		printf("#   %" PRIu64 " messages were lost, as %s may lose them\n", row->lost,
		       perf_service_names[opt->service]);
	if (perf_is_simulated(opt))
		report_network(row);
	report_trouble(opt, row);
	fflush(stdout);
}

void
perf_report_counters(const struct perf_row *row)
{
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < row->counters[i].count; k++)
			if (row->counters[i].value[k].value != 0)
				printf("#   HCA %u %-28s %" PRIu64 "\n", i,
				       row->counters[i].value[k].name,
				       row->counters[i].value[k].value);
}

/* Losses of the daemon's port that was not read in time: the device does not count them. */
static void
add_missed(struct perf_session *s, struct perf_values *values)
{
	static struct softhca_counter c[PERF_VALUES_MAX];
	int n = softhca_query_port_counters(s->ctx[0], 1, c, PERF_VALUES_MAX);

	for (int i = 0; i < n && i < PERF_VALUES_MAX && values->count < PERF_VALUES_MAX; i++)
		if (strcmp(c[i].name, "port_rcv_missed") == 0)
			values->value[values->count++] =
				(struct softhca_value){.name = c[i].name, .value = c[i].value};
}

/* Counters of the daemon's device, for all its users together. The names stay where they are. */
static int
read_device_counters(struct perf_session *s, struct perf_values values[2])
{
	static struct softhca_counter c[PERF_VALUES_MAX];
	int n = softhca_query_counters(s->ctx[0], c, PERF_VALUES_MAX);

	values[0].count = values[1].count = 0;
	if (n < 0 || n > PERF_VALUES_MAX)
		return -EIO;
	for (int i = 0; i < n; i++)
		values[0].value[i] = (struct softhca_value){.name = c[i].name, .value = c[i].value};
	values[0].count = (unsigned int)n;
	add_missed(s, &values[0]);
	return 0;
}

int
perf_counters_read(struct perf_session *s, struct perf_values values[2])
{
	if (s->embed == NULL)
		return read_device_counters(s, values);
	for (unsigned int i = 0; i < 2; i++) {
		int n = softhca_embed_counters(s->embed, i, values[i].value, PERF_VALUES_MAX);

		if (n < 0 || n > PERF_VALUES_MAX)
			return -EIO;
		values[i].count = (unsigned int)n;
	}
	return 0;
}

int
perf_counters_diff(struct perf_session *s, const struct perf_values before[2], struct perf_row *row)
{
	int err = perf_counters_read(s, row->counters);

	if (err != 0)
		return err;
	row->retransmissions = 0;
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int k = 0; k < row->counters[i].count; k++) {
			struct softhca_value *v = &row->counters[i].value[k];

			v->value -= before[i].value[k].value;
			if (strcmp(v->name, "retransmissions") == 0 ||
			    strncmp(v->name, "ub_resent_", 10) == 0)
				row->retransmissions += v->value;
		}
	}
	return 0;
}

/* The line appears for passes that last, on a terminal, and is taken away at their end. */
void
perf_progress(const struct perf_session *s, const char *what, double done)
{
	static uint64_t first, last;
	static int terminal = -1;
	uint64_t now;

	if (terminal < 0)
		terminal = isatty(STDERR_FILENO);
	if (!terminal)
		return;
	now = perf_now_ns();
	if (done < 0) {
		if (last != 0)
			fprintf(stderr, "\r%60s\r", "");
		first = last = 0;
		return;
	}
	if (first == 0)
		first = now;
	if (now - first < PROGRESS_FIRST_NS || now - last < PROGRESS_NS)
		return;
	last = now;
	fprintf(stderr, "\r%s %" PRIu64 " B: %3.0f %% ", what, s->size,
		done > 1 ? 100.0 : done * 100);
}

int
perf_bad_completion(const struct perf_session *s, const struct softhca_wc *wc)
{
	if (s->ub != NULL) {
		fprintf(stderr, "softhca-perf: Jetty %#x, request %u of size %" PRIu64 ": %s\n",
			wc->qp_num, (uint32_t)wc->wr_id, s->size, perf_ub_status(wc->vendor_err));
		return -EIO;
	}
	fprintf(stderr,
		"softhca-perf: QP %#x, request %u of size %" PRIu64 ": %s (vendor error %#x)\n",
		wc->qp_num, (uint32_t)wc->wr_id, s->size, softhca_wc_status_str(wc->status),
		wc->vendor_err);
	return -EIO;
}

int
perf_stuck(struct perf_session *s)
{
	struct perf_values v[2];

	fprintf(stderr, "softhca-perf: no more completions at size %" PRIu64 "\n", s->size);
	if (perf_counters_read(s, v) != 0)
		return -ETIMEDOUT;
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < v[i].count; k++)
			if (v[i].value[k].value != 0)
				fprintf(stderr, "  HCA %u %s %" PRIu64 "\n", i, v[i].value[k].name,
					v[i].value[k].value);
	return -ETIMEDOUT;
}
