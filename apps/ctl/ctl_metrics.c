/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * metrics: counters and objects of all HCAs as OpenMetrics text, for Prometheus. Metrics of the
 * infiniband collector of node_exporter have its names, with softhca_ in front; other counters keep
 * their name.
 */

#include <stdlib.h>
#include <string.h>

#include "ctl_metrics.h"

#define HCAS_MAX 64u
#define METRICS_TIMEOUT_S 3.0 /* Prometheus waits for 10 s, for all of them together */

/* Names of node_exporter, and their counters in softhca-ctl counters */
static const struct {
	const char *counter, *metric, *help;
} renamed[] = {
	{"port_rcv_data", "port_data_received_bytes", "bytes of RDMA packets received"},
	{"port_xmit_data", "port_data_transmitted_bytes", "bytes of RDMA packets sent"},
	{"port_rcv_packets", "port_packets_received", "frames received by the port"},
	{"port_xmit_packets", "port_packets_transmitted", "frames sent by the port"},
	{"port_rcv_errors", "port_errors_received", "frames received that were damaged"},
	{"port_rcv_missed", "port_discards_received", "frames lost: the port's queue was full"},
	{"port_xmit_discards", "port_discards_transmitted", "frames that could not be sent"},
};

/* Values among the counters that may become smaller; cm_now_...: present numbers */
static const char *const no_counters[] = {"ipc_clean_up_longest_ns", "cm_now_"};

/* Settings and numbers of rules, which have commands of their own */
static const char *const left_out[] = {"fault_", "memif_"};

/* Longest parts of the name of a process that are shown */
#define PROCESS_PREFIX_MAX 71
#define PROCESS_NUMBER_MAX 8

/* By its name and its process, whose socket tells it from others: .../FOLDER/PREFIX/...[:N] */
struct metrics_hca {
	char name[64];
	char process[PROCESS_PREFIX_MAX + PROCESS_NUMBER_MAX + 1];
	char folder[108];
	json_t *status, *counters, *usage;
};

struct metrics {
	const struct ctl *c;
	struct metrics_hca hca[HCAS_MAX];
	unsigned int n;
};

static void
metrics_clear(struct metrics *m)
{
	for (unsigned int i = 0; i < m->n; i++) {
		json_decref(m->hca[i].status);
		json_decref(m->hca[i].counters);
		json_decref(m->hca[i].usage);
	}
	m->n = 0;
}

/* "PREFIX", or "PREFIX:N": all processes with embedded HCAs have one prefix. */
static void
metrics_name_process(struct metrics_hca *h, const struct ctl_process *p)
{
	const char *number = strchr(strrchr(p->path, '/'), ':');
	size_t len = strlen(p->path) - strlen(strrchr(p->path, '/')) - strlen(p->prefix) - 1;

	snprintf(h->process, sizeof(h->process), "%.*s%.*s", PROCESS_PREFIX_MAX, p->prefix,
		 PROCESS_NUMBER_MAX, number != NULL ? number : "");
	snprintf(h->folder, sizeof(h->folder), "%.*s", (int)len, p->path);
}

static void
metrics_add(struct metrics *m, struct ctl_process *p, const char *hca)
{
	struct metrics_hca *h = &m->hca[m->n];

	if (m->n == HCAS_MAX)
		return;
	snprintf(h->name, sizeof(h->name), "%s", hca);
	metrics_name_process(h, p);
	h->status = ctl_ask_about(p, "/softhca/status", hca, NULL);
	h->counters = ctl_gather_counters(p, hca);
	h->usage = ctl_ask_about(p, "/softhca/usage", hca, NULL);
	m->n++;
}

/* Each HCA of each process that answers. */
static void
metrics_gather(struct metrics *m, struct ctl_others *others)
{
	struct ctl_process all[CTL_PROCESSES_MAX];
	unsigned int n = ctl_find(m->c, all, CTL_PROCESSES_MAX, others);

	for (unsigned int i = 0; i < n; i++) {
		json_t *list = ctl_ask(&all[i], "/softhca/hca/list", NULL), *each;
		size_t k;

		json_array_foreach(list, k, each) {
			const char *name = json_string_value(each);

			if (name != NULL && (m->c->hca == NULL || strcmp(m->c->hca, name) == 0))
				metrics_add(m, &all[i], name);
		}
		json_decref(list);
	}
	ctl_close(all, n);
}

/* ---- the text ---- */

static void
print_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# TYPE softhca_%s %s\n", name, type);
	if (help != NULL)
		fprintf(out, "# HELP softhca_%s %s\n", name, help);
}

static void
print_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	for (; *value != '\0'; value++)
		if (*value == '\n')
			fputs("\\n", out);
		else
			fprintf(out, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
	fputc('"', out);
}

static void
print_hca(FILE *out, const struct metrics_hca *h)
{
	print_label(out, "device", h->name);
	fputc(',', out);
	print_label(out, "process", h->process);
	fputc(',', out);
	print_label(out, "folder", h->folder);
}

static void
print_sample(FILE *out, const struct metrics_hca *h, const char *name, const char *suffix,
	     const char *more, json_int_t value)
{
	fprintf(out, "softhca_%s%s{", name, suffix);
	print_hca(out, h);
	fprintf(out, "%s} %" JSON_INTEGER_FORMAT "\n", more, value);
}

static const char *
status_text(const struct metrics_hca *h, const char *key)
{
	const char *text = json_string_value(json_object_get(h->status, key));

	return text != NULL ? text : "";
}

static void
print_info(FILE *out, const struct metrics *m)
{
	static const char *const keys[] = {"layout", "device", "mac"};
	static const char *const labels[] = {"layout", "port_device", "mac"};

	print_head(out, "device", "info", "HCAs that answer");
	for (unsigned int i = 0; i < m->n; i++) {
		fputs("softhca_device_info{", out);
		print_hca(out, &m->hca[i]);
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			fputc(',', out);
			print_label(out, labels[k], status_text(&m->hca[i], keys[k]));
		}
		fputs("} 1\n", out);
	}
}

/* enum ibv_port_state */
static int
state_id(const char *state)
{
	static const char *const names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};

	for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
		if (strcmp(state, names[i]) == 0)
			return i;
	return 0;
}

static void
print_status(FILE *out, const struct metrics *m)
{
	const char *port = ",port=\"1\"";

	print_head(out, "state_id", "gauge", "state of the port: 1 down, 4 active");
	for (unsigned int i = 0; i < m->n; i++)
		print_sample(out, &m->hca[i], "state_id", "", port,
			     state_id(status_text(&m->hca[i], "port_state")));
	print_head(out, "rate_bytes_per_second", "gauge", "speed of the port");
	for (unsigned int i = 0; i < m->n; i++)
		print_sample(out, &m->hca[i], "rate_bytes_per_second", "", port,
			     json_integer_value(json_object_get(m->hca[i].status, "speed_mbps")) *
				     125000);
	print_head(out, "healthy", "gauge", "1: well; 0: softhca-ctl status says what is wrong");
	for (unsigned int i = 0; i < m->n; i++)
		print_sample(out, &m->hca[i], "healthy", "", "",
			     strcmp(status_text(&m->hca[i], "health"), "well") == 0);
}

static void
print_objects(FILE *out, const struct metrics *m)
{
	const char *key;
	json_t *value;

	print_head(out, "objects", "gauge", "in use, as softhca-ctl usage has them");
	for (unsigned int i = 0; i < m->n; i++)
		json_object_foreach(m->hca[i].usage, key, value) {
			char label[96];

			snprintf(label, sizeof(label), ",object=\"%s\"", key);
			if (json_is_integer(value))
				print_sample(out, &m->hca[i], "objects", "", label,
					     json_integer_value(value));
		}
}

static bool
is_in(const char *const *list, size_t n, const char *name, bool begins)
{
	for (size_t i = 0; i < n; i++)
		if (begins ? strncmp(list[i], name, strlen(list[i])) == 0
			   : strcmp(list[i], name) == 0)
			return true;
	return false;
}

#define IS_IN(list, name, begins) is_in(list, sizeof(list) / sizeof((list)[0]), name, begins)

/* The samples of all HCAs that have the counter, from HCA `first` on. */
static void
print_counter(FILE *out, const struct metrics *m, unsigned int first, const char *counter)
{
	bool gauge = IS_IN(no_counters, counter, true);
	const char *name = counter, *help = NULL;
	bool port = strncmp(counter, "port_", 5) == 0;

	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++)
		if (strcmp(renamed[i].counter, counter) == 0) {
			name = renamed[i].metric;
			help = renamed[i].help;
		}
	print_head(out, name, gauge ? "gauge" : "counter", help);
	for (unsigned int i = first; i < m->n; i++) {
		json_t *value = json_object_get(m->hca[i].counters, counter);

		if (value != NULL)
			print_sample(out, &m->hca[i], name, gauge ? "" : "_total",
				     port ? ",port=\"1\"" : "", json_integer_value(value));
	}
}

/* Samples of a metric stand together: an HCA prints those that the ones before it do not have. */
static void
print_counters(FILE *out, const struct metrics *m)
{
	const char *key;
	json_t *value;

	for (unsigned int i = 0; i < m->n; i++)
		json_object_foreach(m->hca[i].counters, key, value) {
			bool done = IS_IN(left_out, key, true);

			for (unsigned int k = 0; k < i && !done; k++)
				done = json_object_get(m->hca[k].counters, key) != NULL;
			if (!done)
				print_counter(out, m, i, key);
		}
}

static void
print_all(FILE *out, const struct metrics *m)
{
	print_info(out, m);
	print_status(out, m);
	print_objects(out, m);
	print_counters(out, m);
	fputs("# EOF\n", out);
}

/* ---- the command ---- */

enum {
	OPT_LISTEN = 256
};

static int
metrics_option(void *arg, int code, const char *value)
{
	(void)code;
	*(const char **)arg = value;
	return 0;
}

/* ctl_http_text_fn: also where there is no HCA, which is a fact as well. */
static char *
make_text(void *arg, size_t *length)
{
	static struct metrics m; /* large, as the others are */
	static struct ctl_others others;
	char *text = NULL;
	FILE *out = open_memstream(&text, length);

	if (out == NULL)
		return NULL;
	m.c = arg;
	metrics_gather(&m, &others);
	print_all(out, &m);
	metrics_clear(&m);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static int
once(const struct ctl *c)
{
	static struct metrics m;
	static struct ctl_others others;

	m.c = c;
	metrics_gather(&m, &others);
	ctl_name_hanging(&others);
	if (m.n == 0) {
		ctl_none(c, "HCA", &others);
		return CTL_EXIT_FAILED;
	}
	print_all(stdout, &m);
	metrics_clear(&m);
	return 0;
}

int
ctl_run_metrics(struct ctl *c, int argc, char **argv)
{
	static const struct option own[] = {
		{"listen", required_argument, NULL, OPT_LISTEN},
		{NULL, 0, NULL, 0},
	};
	const char *listen = NULL;
	int rc = ctl_options(c, argc, argv, own, metrics_option, &listen);

	if (rc != 0)
		return rc;
	if (c->json || c->num_words != 0) {
		ctl_error(c->json ? "metrics are no JSON: see counters --json"
				  : "unexpected argument \"%s\"",
			  c->num_words != 0 ? c->words[0] : "");
		return CTL_EXIT_USAGE;
	}
	c->timeout_s = METRICS_TIMEOUT_S;
	if (listen == NULL)
		return once(c);
	return ctl_http_serve(listen, make_text, c) == 0 ? 0 : CTL_EXIT_FAILED;
}
