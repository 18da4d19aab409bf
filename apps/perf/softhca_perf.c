/* SPDX-License-Identifier: BSD-3-Clause */

/* softhca-perf: rows of measurements of two HCAs back to back; see perf.h. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "perf_flows.h"
#include "remote.h"

#define MIN_SIZE 2u
#define MAX_SIZE (8u << 20)

static volatile sig_atomic_t interrupted;

static void
on_signal(int number)
{
	interrupted = number;
}

bool
perf_interrupted(void)
{
	return interrupted != 0;
}

uint64_t
perf_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t
perf_pass_clock(const struct perf_session *s)
{
	return perf_is_simulated(s->opt) ? softhca_embed_now(s->embed) : perf_now_ns();
}

static int
open_pass(struct perf_session *s, enum remote_pass pass, uint64_t size)
{
	int err;

	if (s->peer != NULL)
		return remote_pass_open(s->peer, pass, size);
	err = perf_row_open(s, size);
	return err == 0 ? perf_row_connect(s) : err;
}

static void
close_pass(struct perf_session *s, int err)
{
	if (s->peer != NULL)
		remote_pass_close(s->peer, err);
	else
		perf_row_close(s);
}

static int
timed_pass(struct perf_session *s, struct perf_row *row)
{
	int err = open_pass(s, REMOTE_PASS_TIMED, row->size);

	row->stride = s->stride;
	row->slots = s->slots;
	if (err == 0)
		err = perf_pause(s, "timed");
	if (err == 0)
		err = perf_measure(s, row);
	close_pass(s, err);
	return err;
}

static int
verify_pass(struct perf_session *s, struct perf_row *row)
{
	int err;

	if (!s->opt->verify || perf_interrupted())
		return 0;
	err = open_pass(s, REMOTE_PASS_VERIFY, row->size);
	if (err == 0)
		err = perf_pause(s, "verify");
	if (err == 0)
		err = perf_check_run(s, row);
	if (err != 0)
		row->verified = perf_verdict(err);
	close_pass(s, err);
	return err;
}

/*
 * Reading the stage clocks changes the measured figures. softhca-perf therefore runs another pass
 * for them, after it has read the counters of the row.
 */
static int
stage_pass(struct perf_session *s, struct perf_row *row)
{
	const struct perf_options *opt = s->opt;
	int err;

	if (s->peer != NULL || opt->test != PERF_TEST_BW || opt->json == NULL ||
	    opt->embed.executor != SOFTHCA_EXECUTOR_MANUAL || perf_interrupted())
		return 0;
	err = open_pass(s, REMOTE_PASS_TIMED, row->size);
	if (err == 0)
		err = perf_bw_stages(s, row);
	close_pass(s, err);
	return err;
}

static int
run_row(struct perf_session *s, uint64_t size, struct perf_results *results)
{
	static struct perf_values before[2]; /* large */
	static struct perf_row row;
	uint64_t waited, begin;
	int err, rc;

	memset(&row, 0, sizeof(row));
	row.size = size;
	err = perf_counters_read(s, before);
	waited = perf_cpu_wait_ns();
	begin = perf_now_ns();
	if (err == 0)
		err = timed_pass(s, &row);
	row.cpu_wait = (double)(perf_cpu_wait_ns() - waited) / (double)(perf_now_ns() - begin);
	if (err == 0)
		err = verify_pass(s, &row);
	if (err != 0 && s->peer != NULL && row.msgs == 0)
		return err;
	rc = perf_counters_diff(s, before, &row);
	perf_report_row(s->opt, &row);
	if (s->opt->list_counters)
		perf_report_counters(&row);
	if (err == 0 && rc == 0)
		err = stage_pass(s, &row);
	if (rc == 0)
		rc = perf_results_row(results, s, &row);
	return err != 0 ? err : rc;
}

int
perf_rows_run(struct perf_session *s, struct perf_results *results)
{
	const struct perf_options *opt = s->opt;
	uint64_t size = opt->all_sizes ? MIN_SIZE : opt->size;
	uint64_t last = opt->all_sizes ? MAX_SIZE : opt->size;
	int err = 0;

	perf_report_header(opt);
	for (; size <= last && err == 0 && !perf_interrupted(); size *= 2)
		err = run_row(s, size, results);
	return err;
}

static int
run(const struct perf_options *opt)
{
	static struct perf_session s;
	struct perf_results results;
	int err = perf_results_open(&results, opt);

	if (err == 0) {
		err = perf_session_open(&s, opt);
		if (err == 0)
			err = perf_rows_run(&s, &results);
		if (perf_session_close(&s) != 0 && err == 0)
			err = -EBUSY;
	}
	if (perf_results_close(&results) != 0 && err == 0)
		err = -EIO;
	return err;
}

/* As of a program that a signal ends, unless something else was wrong before. */
static int
exit_status(int err)
{
	if (perf_interrupted() && (err == 0 || err == -EINTR))
		return 128 + interrupted;
	return err == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
	struct perf_options opt;
	struct sigaction action = {.sa_handler = on_signal};
	int rc = perf_options_parse(argc, argv, &opt);

	if (rc != 0)
		return rc > 0 ? 0 : 2;
	if (perf_fix_addresses(&opt, argv) != 0)
		return 1;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (opt.remote.gids)
		return remote_print_gids(&opt) == 0 ? 0 : 1;
	if (opt.flows != NULL)
		return exit_status(perf_flows_run(&opt));
	if (opt.remote.server)
		return remote_server(&opt) == 0 ? 0 : 1;
	if (opt.remote.client != NULL)
		return exit_status(remote_client(&opt));
	return exit_status(run(&opt));
}
