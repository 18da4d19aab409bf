/* SPDX-License-Identifier: BSD-3-Clause */

/* {"version": ..., "date": ..., "host": {...}, "rows": [{...}, ...], "interrupted": ...} */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "abi_release.h"
#include "perf.h"
#include "perf_version.h"

struct perf_json {
	const struct perf_options *opt;
	const char *path;
	json_t *root, *rows;
	int fd; /* of the file, which is written at the end */
};

static json_t *
host_object(const struct perf_options *opt)
{
	struct perf_host h;

	perf_host_query(&h,
			!perf_is_remote(opt) && opt->embed.executor == SOFTHCA_EXECUTOR_THREADS);
	return json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:f, s:f}", "cpu", h.cpu, "cores",
			 (int)h.cores, "kernel", h.kernel, "dpdk", softhca_embed_dpdk_version(),
			 "build_type", PERF_BUILD_TYPE, "commit", PERF_COMMIT,
			 "core_to_core_ns_min", h.core_to_core_min, "core_to_core_ns_max",
			 h.core_to_core_max);
}

struct perf_json *
perf_json_open(const struct perf_options *opt, const char *path)
{
	struct perf_json *j = calloc(1, sizeof(*j));
	time_t seconds = time(NULL);
	char now[32];
	struct tm tm;

	if (j == NULL)
		return NULL;
	j->path = path;
	j->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (j->fd < 0) {
		fprintf(stderr, "softhca-perf: --json: cannot write %s: %s\n", path,
			strerror(errno));
		free(j);
		return NULL;
	}
	strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
	j->opt = opt;
	j->rows = json_array();
	j->root = json_pack("{s:s, s:s, s:o, s:o}", "version", HCA_RELEASE, "date", now, "host",
			    host_object(opt), "rows", j->rows);
	if (j->root != NULL)
		return j;
	close(j->fd);
	free(j);
	return NULL;
}

static json_t *
values_object(const struct perf_values *v, double divisor)
{
	json_t *o = json_object();

	for (unsigned int k = 0; k < v->count; k++) {
		if (v->value[k].value == 0)
			continue;
		if (divisor == 1)
			json_object_set_new(o, v->value[k].name,
					    json_integer((json_int_t)v->value[k].value));
		else
			json_object_set_new(o, v->value[k].name,
					    json_real((double)v->value[k].value / divisor));
	}
	return o;
}

static void
add_latency(json_t *o, const struct perf_row *row)
{
	const struct perf_latency *l = &row->lat;

	if (!row->has_latency) {
		json_object_set_new(o, "lat_us", json_null());
		return;
	}
	json_object_set_new(o, "lat_us",
			    json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "min", l->min, "p50",
				      l->p50, "p99", l->p99, "p999", l->p999, "max", l->max, "avg",
				      l->avg, "stdev", l->stdev));
}

static void
add_histogram(json_t *o, const struct perf_histogram *h)
{
	json_t *us = json_array(), *level = json_array(), *count = json_array();

	for (uint32_t i = 0; i < h->count; i++) {
		json_array_append_new(us, json_real(h->ns[i] / 1e3));
		json_array_append_new(level, json_real(h->level[i]));
		json_array_append_new(count, json_integer(h->total[i]));
	}
	json_object_set_new(o, "histogram",
			    json_pack("{s:o, s:o, s:o}", "us", us, "percentile", level, "count",
				      count));
}

/* Rates between the points of time */
static void
add_series(json_t *o, const struct perf_series *s)
{
	json_t *seconds = json_array(), *rate = json_array();
	uint64_t at = 0, done = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		double ns = (double)(s->at_ns[i] - at);

		json_array_append_new(seconds, json_real((double)s->at_ns[i] / 1e9));
		json_array_append_new(rate, json_real((double)(s->done[i] - done) * 1e3 / ns));
		at = s->at_ns[i];
		done = s->done[i];
	}
	json_object_set_new(o, "series",
			    json_pack("{s:o, s:o}", "seconds", seconds, "mmsg_per_s", rate));
}

int
perf_json_row(struct perf_json *j, const struct perf_session *s, const struct perf_row *row)
{
	const struct perf_options *opt = j->opt;
	bool remote = perf_is_remote(opt);
	double rate = row->seconds > 0 ? (double)row->msgs / row->seconds : 0;
	json_t *o = json_pack(
		"{s:s, s:s, s:I, s:i, s:i, s:i, s:i, s:I, s:s, s:s, s:i, s:I, s:f, s:f, s:f, s:f, "
		"s:f, s:I, s:I}",
		"op", perf_op_names[opt->op], "test", perf_test_name(opt->test), "size",
		(json_int_t)row->size, "qps", (int)opt->qps, "depth", (int)opt->depth, "mtu",
		(int)opt->mtu, "post_list", (int)opt->post_list, "stride", (json_int_t)row->stride,
		"layout", remote ? "daemon" : perf_layout_names[opt->embed.layout], "executor",
		remote ? "daemon" : perf_executor_names[opt->embed.executor], "lcores",
		remote ? 0 : (int)softhca_embed_lcores(s->embed), "msgs", (json_int_t)row->msgs,
		"seconds", row->seconds, "ns_per_msg", rate > 0 ? 1e9 / rate : 0, "mmsg_per_s",
		rate / 1e6, "gbit_per_s", rate * (double)row->size * 8 / 1e9, "peak_gbit_per_s",
		row->peak_mmsg * (double)row->size * 8 / 1e3, "retransmissions",
		(json_int_t)row->retransmissions, "verified_msgs", (json_int_t)row->verified_msgs);

	if (o == NULL)
		return -ENOMEM;
	add_latency(o, row);
	if (row->has_latency)
		add_histogram(o, &row->histogram);
	add_series(o, &row->series);
	json_object_set_new(o, "wire", json_string(opt->wire == PERF_WIRE_UB ? "ub" : "roce"));
	json_object_set_new(o, "service", json_string(perf_service_names[opt->service]));
	json_object_set_new(o, "srq", json_boolean(opt->srq || opt->service == PERF_SERVICE_XRC));
	json_object_set_new(o, "ip", json_integer(opt->ip));
	json_object_set_new(o, "vlan", json_integer(opt->embed.vlan));
	json_object_set_new(o, "events", json_boolean(opt->events));
	json_object_set_new(o, "memory_poll", json_boolean(opt->memory_poll));
	json_object_set_new(o, "bidir", json_boolean(opt->remote.bidir));
	json_object_set_new(o, "lost", json_integer((json_int_t)row->lost));
	if (perf_is_simulated(opt))
		json_object_set_new(o, "fabric", json_string(opt->fabric));
	if (opt->load != 0)
		json_object_set_new(o, "load", json_real(opt->load));
	if (remote)
		json_object_set_new(o, "server", json_string(opt->remote.client));
	json_object_set_new(o, "verified",
			    row->verified == PERF_NOT_VERIFIED
				    ? json_null()
				    : json_boolean(row->verified == PERF_VERIFIED));
	json_object_set_new(o, "failed", json_boolean(row->verified == PERF_FAILED));
	json_object_set_new(o, "cpu_wait", json_real(row->cpu_wait));
	json_object_set_new(o, "inline", json_integer(opt->inline_max));
	json_object_set_new(o, "counters",
			    json_pack("[o, o]", values_object(&row->counters[0], 1),
				      values_object(&row->counters[1], 1)));
	if (row->stage_msgs != 0)
		json_object_set_new(
			o, "stage_ns",
			json_pack("[o, o]", values_object(&row->stages[0], (double)row->stage_msgs),
				  values_object(&row->stages[1], (double)row->stage_msgs)));
	return json_array_append_new(j->rows, o) == 0 ? 0 : -ENOMEM;
}

/* A run that has not begun leaves a file as it was. */
static int
json_leave(struct perf_json *j)
{
	struct stat st;

	if (fstat(j->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		unlink(j->path);
	close(j->fd);
	json_decref(j->root);
	free(j);
	return 0;
}

int
perf_json_close(struct perf_json *j)
{
	FILE *f;
	struct stat st;
	int err;

	if (json_array_size(j->rows) == 0 && !perf_interrupted())
		return json_leave(j);
	f = fdopen(j->fd, "w");
	err = f == NULL ? -errno : 0;

	json_object_set_new(j->root, "interrupted", json_boolean(perf_interrupted()));
	if (err == 0 && fstat(j->fd, &st) == 0 && S_ISREG(st.st_mode))
		err = ftruncate(j->fd, 0);
	if (err == 0)
		err = json_dumpf(j->root, f, JSON_INDENT(1));
	if (f != NULL ? fclose(f) != 0 : close(j->fd) != 0)
		err = -EIO;
	if (err != 0)
		fprintf(stderr, "softhca-perf: --json: cannot write %s\n", j->path);
	json_decref(j->root);
	free(j);
	return err == 0 ? 0 : -EIO;
}
