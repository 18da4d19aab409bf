/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * top: rates per second, from two samples. Stage times are measured only while top runs, so that
 * they cost nothing otherwise.
 */

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "ctl.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CLEAR "\033[H\033[J"

enum {
	OPT_ONCE = 256,
	OPT_INTERVAL,
	OPT_QPS
};

struct top {
	bool once;
	bool keys; /* q ends it */
	double interval, qps;
};

struct sample {
	double at;
	json_t *port, *counters, *stages, *status, *qps;
};

static int
top_option(void *arg, int code, const char *value)
{
	struct top *o = arg;

	if (code == OPT_ONCE) {
		o->once = true;
		return 0;
	}
	return code == OPT_INTERVAL ? ctl_number("interval", value, 0.05, 3600, &o->interval)
				    : ctl_number("qps", value, 0, 16384, &o->qps);
}

static void
release(struct sample *s)
{
	json_decref(s->port);
	json_decref(s->counters);
	json_decref(s->stages);
	json_decref(s->status);
	json_decref(s->qps);
	memset(s, 0, sizeof(*s));
}

static int
sample(struct ctl_process *p, const char *hca, bool qps, struct sample *s)
{
	s->at = ctl_now();
	s->port = ctl_ask_about(p, "/softhca/port/counters", hca, NULL);
	s->counters = ctl_ask_about(p, "/softhca/hca/counters", hca, NULL);
	s->stages = ctl_ask_stages(p, hca);
	s->status = ctl_ask_about(p, "/softhca/status", hca, NULL);
	s->qps = qps ? ctl_ask_list(p, "/softhca/qps", hca) : json_array();
	return s->port != NULL && s->counters != NULL && s->stages != NULL ? 0 : -1;
}

static double
growth(const json_t *now, const json_t *before, const char *key)
{
	return (double)(json_integer_value(json_object_get(now, key)) -
			json_integer_value(json_object_get(before, key)));
}

/* ---- the picture ---- */

/* Everything that grew, per second. */
static json_t *
rates(const json_t *now, const json_t *before, double seconds)
{
	json_t *out = json_object(), *value;
	const char *key;

	json_object_foreach((json_t *)now, key, value)
		json_object_set_new(out, key, json_real(growth(now, before, key) / seconds));
	return out;
}

/* The HCA's answer; null without one. */
static json_t *
said(const json_t *status, const char *key)
{
	json_t *text = json_object_get(status, key);

	return text != NULL ? json_incref(text) : json_null();
}

static json_t *
stage_rows(const struct sample *now, const struct sample *before, double seconds)
{
	json_t *rows = json_array(), *stage;
	const char *name;

	json_object_foreach(now->stages, name, stage) {
		const json_t *was = json_object_get(before->stages, name);
		double polls = growth(stage, was, "polls");
		double busy = growth(stage, was, "busy_polls");

		json_array_append_new(rows,
				      json_pack("{s:s, s:O, s:O, s:f, s:f, s:f}", "stage", name,
						"worker", json_object_get(stage, "worker"),
						"waiting", json_object_get(stage, "waiting"),
						"polls_per_s", polls / seconds, "busy_polls_share",
						polls > 0 ? busy / polls : 0.0, "busy_share",
						growth(stage, was, "busy_ns") / seconds * 1e-9));
	}
	return rows;
}

/* Both lists ascend by index. */
static const json_t *
same_qp(const json_t *list, const json_t *qp, size_t *at)
{
	json_int_t index = json_integer_value(json_object_get(qp, "index"));
	const json_t *q;

	for (; (q = json_array_get(list, *at)) != NULL; ++*at) {
		json_int_t i = json_integer_value(json_object_get(q, "index"));

		if (i >= index)
			return i == index && json_equal(json_object_get(q, "qpn"),
							json_object_get(qp, "qpn"))
				       ? q
				       : NULL;
	}
	return NULL;
}

static int
by_bytes(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	double dx = json_real_value(json_object_get(x, "bytes_per_s"));
	double dy = json_real_value(json_object_get(y, "bytes_per_s"));

	return dx < dy ? 1 : dx > dy ? -1 : 0;
}

static json_t *
sorted(json_t *rows, size_t most)
{
	size_t n = json_array_size(rows);
	json_t **all = calloc(n + 1, sizeof(*all)), *out = json_array();

	for (size_t i = 0; all != NULL && i < n; i++)
		all[i] = json_array_get(rows, i);
	if (all != NULL)
		qsort(all, n, sizeof(*all), by_bytes);
	for (size_t i = 0; all != NULL && i < n && i < most; i++)
		json_array_append(out, all[i]);
	free(all);
	json_decref(rows);
	return out;
}

/* Where the HCA has measured some; in ns */
static void
put_round_trips(json_t *row, const json_t *qp)
{
	static const char *const names[] = {"rtt_min_ns", "rtt_p50_ns", "rtt_p99_ns"};

	for (size_t i = 0; i < COUNT(names); i++) {
		json_t *value = json_object_get(qp, names[i]);

		if (value != NULL)
			json_object_set(row, names[i], value);
	}
}

static json_t *
qp_rows(const struct sample *now, const struct sample *before, double seconds, size_t most)
{
	json_t *rows = json_array(), *qp, *row;
	size_t i, at = 0;

	json_array_foreach(now->qps, i, qp) {
		const json_t *was = same_qp(before->qps, qp, &at);
		double tx = growth(qp, was, "tx_bytes"), rx = growth(qp, was, "rx_bytes");
		double packets = growth(qp, was, "tx_packets") + growth(qp, was, "rx_packets");

		row = json_pack("{s:O, s:O, s:O, s:O, s:O, s:f, s:f, s:f, s:f, s:f}", "qpn",
				json_object_get(qp, "qpn"), "service",
				json_object_get(qp, "service"), "state",
				json_object_get(qp, "state"), "client",
				json_object_get(qp, "client"), "peer", json_object_get(qp, "peer"),
				"tx_bytes_per_s", tx / seconds, "rx_bytes_per_s", rx / seconds,
				"bytes_per_s", (tx + rx) / seconds, "packets_per_s",
				packets / seconds, "retransmissions_per_s",
				growth(qp, was, "retransmissions") / seconds);
		put_round_trips(row, qp);
		json_array_append_new(rows, row);
	}
	return sorted(rows, most);
}

static json_t *
picture(const struct top *o, const struct ctl_process *p, const char *hca, const struct sample *now,
	const struct sample *before)
{
	double seconds = now->at - before->at;
	json_t *frame = ctl_frame(p->prefix, hca, "port", rates(now->port, before->port, seconds));

	json_object_set_new(frame, "seconds", json_real(seconds));
	json_object_set_new(frame, "health", said(now->status, "health"));
	json_object_set_new(frame, "cpu", said(now->status, "cpu"));
	json_object_set_new(frame, "counters", rates(now->counters, before->counters, seconds));
	json_object_set_new(frame, "stages", stage_rows(now, before, seconds));
	json_object_set_new(frame, "qps", qp_rows(now, before, seconds, (size_t)o->qps));
	return frame;
}

/* ---- printing ---- */

static double
rate(const json_t *picture, const char *of, const char *key)
{
	return json_real_value(json_object_get(json_object_get(picture, of), key));
}

static void
print_head(const json_t *p)
{
	printf("%s   tx %.3f Gb/s %.3f Mpps   rx %.3f Gb/s %.3f Mpps\n",
	       json_string_value(json_object_get(p, "hca")),
	       rate(p, "port", "port_xmit_data") * 8e-9,
	       rate(p, "port", "port_xmit_packets") * 1e-6, rate(p, "port", "port_rcv_data") * 8e-9,
	       rate(p, "port", "port_rcv_packets") * 1e-6);
}

/* Counters of trouble that move now. */
static void
print_trouble(const json_t *p)
{
	static const char *const names[] = {
		"tx_discard_stalled",
		"tx_discard_link_down",
		"loopback_drops",
		"retransmissions",
		"local_ack_timeout_err",
		"packet_seq_err",
		"rx_missing",
		"rx_late",
		"rx_doubled",
		"answers_doubled",
		"port_rcv_missed",
		"duplicate_request",
		"rnr_nak_retry_err",
		"req_cqe_error",
		"resp_cqe_error",
		"rx_icrc_encapsulated",
		"rx_unknown_qpn",
		"naks_sent",
		"out_of_buffer",
	};
	const char *health = json_string_value(json_object_get(p, "health"));
	const char *cpu = json_string_value(json_object_get(p, "cpu"));
	bool any = false;

	for (size_t i = 0; i < COUNT(names); i++) {
		double r = rate(p, "counters", names[i]) + rate(p, "port", names[i]);

		if (r == 0)
			continue;
		printf("%s%s %.1f/s", any ? "   " : "", names[i], r);
		any = true;
	}
	puts(any ? "" : "no errors, no retransmissions");
	if (health != NULL && strcmp(health, "well") != 0)
		puts(health);
	if (cpu != NULL && strcmp(cpu, "enough") != 0)
		puts(cpu);
}

static void
print_picture(const json_t *p, bool clear)
{
	static const struct ctl_column stages[] = {
		{"stage", "STAGE", CTL_TEXT},
		{"worker", "WORKER", CTL_NUMBER},
		{"busy_share", "BUSY", CTL_PERCENT},
		{"waiting", "WAITING", CTL_NUMBER},
		{"polls_per_s", "POLLS/S", CTL_RATE},
		{"busy_polls_share", "WITH WORK", CTL_PERCENT},
	};
	static const struct ctl_column qps[] = {
		{"qpn", "QPN", CTL_HEX},
		{"service", "SERVICE", CTL_TEXT},
		{"state", "STATE", CTL_TEXT},
		{"client", "CLIENT", CTL_NUMBER},
		{"peer", "PEER", CTL_TEXT},
		{"tx_bytes_per_s", "TX B/S", CTL_RATE},
		{"rx_bytes_per_s", "RX B/S", CTL_RATE},
		{"packets_per_s", "PKT/S", CTL_RATE},
		{"retransmissions_per_s", "AGAIN/S", CTL_RATE},
		{"rtt_p50_ns", "RTT NS", CTL_NUMBER},
		{"rtt_p99_ns", "RTT P99", CTL_NUMBER},
	};

	if (clear)
		fputs(CLEAR, stdout);
	print_head(p);
	print_trouble(p);
	putchar('\n');
	ctl_table(stdout, stages, COUNT(stages), json_object_get(p, "stages"));
	putchar('\n');
	ctl_table(stdout, qps, COUNT(qps), json_object_get(p, "qps"));
	if (clear)
		puts("\nq ends it");
	fflush(stdout);
}

static void
show(const struct ctl *c, const struct top *o, const json_t *p)
{
	if (c->json) {
		ctl_json_line(stdout, p);
	} else {
		print_picture(p, !o->once && isatty(STDOUT_FILENO));
	}
}

/* ---- the keyboard ---- */

/* A terminal that hands over each key at once; false: stdin is none. */
static bool
read_keys(struct termios *before)
{
	struct termios raw;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, before) != 0)
		return false;
	raw = *before;
	raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
	return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

/* Sleeps that long; true: the user wants to leave. */
static bool
wait_for_key(double seconds, bool keys)
{
	double end = ctl_now() + seconds, left = seconds;
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char key;

	if (!keys) {
		ctl_wait(seconds);
		return ctl_stopped();
	}
	while (left > 0 && !ctl_stopped()) {
		if (poll(&in, 1, (int)(left * 1e3) + 1) > 0 &&
		    (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q'))
			return true;
		left = end - ctl_now();
	}
	return ctl_stopped();
}

static int
loop(const struct ctl *c, const struct top *o, struct ctl_process *p, const char *hca)
{
	struct sample before = {0}, now = {0};
	json_t *all;
	int rc = sample(p, hca, o->qps > 0, &before);

	while (rc == 0) {
		if (wait_for_key(o->interval, o->keys))
			break;
		rc = sample(p, hca, o->qps > 0, &now);
		if (rc != 0)
			break;
		all = picture(o, p, hca, &now, &before);
		show(c, o, all);
		json_decref(all);
		release(&before);
		before = now;
		memset(&now, 0, sizeof(now));
		if (o->once)
			break;
	}
	if (rc != 0)
		ctl_error("%s has ended: 'softhca-ctl status' shows those that run", p->prefix);
	release(&before);
	release(&now);
	return rc == 0 ? 0 : CTL_EXIT_FAILED;
}

static void
measure(struct ctl_process *p, const char *hca, const char *on)
{
	json_decref(ctl_ask_about(p, "/softhca/measure", hca, on));
}

int
ctl_run_top(struct ctl *c, int argc, char **argv)
{
	static const struct option own[] = {
		{"once", no_argument, NULL, OPT_ONCE},
		{"interval", required_argument, NULL, OPT_INTERVAL},
		{"qps", required_argument, NULL, OPT_QPS},
		{NULL, 0, NULL, 0},
	};
	struct top o = {.interval = 1, .qps = 10};
	int rc = ctl_options(c, argc, argv, own, top_option, &o);
	struct termios terminal;
	struct ctl_process p;
	char hca[64];

	if (rc != 0)
		return rc;
	if (ctl_one_hca(c, &p, hca, sizeof(hca)) != 0)
		return CTL_EXIT_FAILED;
	ctl_catch_signals();
	o.keys = !o.once && !c->json && read_keys(&terminal);
	measure(&p, hca, "1");
	rc = loop(c, &o, &p, hca);
	measure(&p, hca, "0");
	if (o.keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
	ctl_close(&p, 1);
	return rc;
}
