/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Commands that ask every HCA once and print the answer: status, stages, usage, lists of objects.
 */

#include <string.h>

#include "ctl.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define STAGES_S 0.5 /* how long stages are measured */

#define ASK(name, command) \
	static json_t *name(struct ctl_process *p, const char *hca) \
	{ \
		return ctl_ask_about(p, command, hca, NULL); \
	}
#define ASK_LIST(name, command) \
	static json_t *name(struct ctl_process *p, const char *hca) \
	{ \
		return ctl_ask_list(p, command, hca); \
	}
#define TABLE(name, columns) \
	static void name(const json_t *answer) \
	{ \
		ctl_table(stdout, columns, COUNT(columns), answer); \
	}

ASK(status, "/softhca/status")
ASK(usage, "/softhca/usage")
ASK_LIST(qps, "/softhca/qps")
ASK_LIST(jettys, "/softhca/jettys")
ASK_LIST(tps, "/softhca/tps")
ASK_LIST(mrs, "/softhca/mrs")
ASK_LIST(gids, "/softhca/gids")
ASK_LIST(clients, "/softhca/clients")
ASK_LIST(cm, "/softhca/cm")

static void
print_members(const json_t *answer)
{
	ctl_members(stdout, answer);
}

/* A row per stage, its name among them. */
static json_t *
stage_rows(json_t *answer)
{
	json_t *rows = json_array(), *stage;
	const char *name;

	json_object_foreach(answer, name, stage) {
		json_object_set_new(stage, "stage", json_string(name));
		json_array_append(rows, stage);
	}
	json_decref(answer);
	return rows;
}

/*
 * Polls and cycles are counted only while a client measures: if none does (such as top), this
 * command measures itself before it prints.
 */
static json_t *
stages(struct ctl_process *p, const char *hca)
{
	json_t *answer = ctl_ask_stages(p, hca);
	void *first = json_object_iter(answer);
	json_t *measured = json_object_get(json_object_iter_value(first), "measured");

	if (answer == NULL)
		return NULL;
	if (json_is_integer(measured) && json_integer_value(measured) == 0) {
		json_decref(answer);
		json_decref(ctl_ask_about(p, "/softhca/measure", hca, "1"));
		ctl_wait(STAGES_S);
		answer = ctl_ask_stages(p, hca);
		json_decref(ctl_ask_about(p, "/softhca/measure", hca, "0"));
	}
	return answer != NULL ? stage_rows(answer) : NULL;
}

static const struct ctl_column stage_columns[] = {
	{"stage", "STAGE", CTL_TEXT},
	{"worker", "WORKER", CTL_NUMBER},
	{"waiting", "WAITING", CTL_NUMBER},
	{"polls", "POLLS", CTL_NUMBER},
	{"busy_polls", "WITH WORK", CTL_NUMBER},
	{"busy_ns", "BUSY NS", CTL_NUMBER},
	{"packets", "PACKETS", CTL_NUMBER},
	{"handed_over", "HANDED OVER", CTL_NUMBER},
};
TABLE(print_stages, stage_columns)

static const struct ctl_column qp_columns[] = {
	{"qpn", "QPN", CTL_HEX},
	{"service", "SERVICE", CTL_TEXT},
	{"state", "STATE", CTL_TEXT},
	{"client", "CLIENT", CTL_NUMBER},
	{"remote_qpn", "REMOTE", CTL_HEX},
	{"peer", "PEER", CTL_TEXT},
	{"gid_index", "GID", CTL_NUMBER},
	{"mtu", "MTU", CTL_NUMBER},
	{"next_psn", "NEXT", CTL_HEX},
	{"unacked_psn", "UNACKED", CTL_HEX},
	{"expected_psn", "EXPECTED", CTL_HEX},
	{"tx_packets", "TX", CTL_RATE},
	{"rx_packets", "RX", CTL_RATE},
	{"tx_bytes", "TX BYTES", CTL_RATE},
	{"rx_bytes", "RX BYTES", CTL_RATE},
	{"retransmissions", "AGAIN", CTL_RATE},
	{"local_ack_timeout_err", "TIMEOUTS", CTL_RATE},
	{"rx_dropped", "DROPPED", CTL_RATE},
	{"rx_missing", "MISSING", CTL_RATE},
	{"rx_late", "LATE", CTL_RATE},
	{"rx_doubled", "DOUBLED", CTL_RATE},
	{"rtt_min_ns", "RTT MIN", CTL_NUMBER},
	{"rtt_p50_ns", "RTT NS", CTL_NUMBER},
	{"rtt_p99_ns", "RTT P99", CTL_NUMBER},
	{"congestion", "CC", CTL_TEXT},
	{"cc_rate_bps", "CC BIT/S", CTL_RATE},
	{"cc_window", "CC WINDOW", CTL_NUMBER},
};
TABLE(print_qps, qp_columns)

static const struct ctl_column jetty_columns[] = {
	{"id", "ID", CTL_HEX},
	{"service", "SERVICE", CTL_TEXT},
	{"state", "STATE", CTL_TEXT},
	{"client", "CLIENT", CTL_NUMBER},
	{"jfr", "JFR", CTL_HEX},
	{"next_tassn", "NEXT", CTL_HEX},
	{"open_segments", "OPEN", CTL_NUMBER},
	{"open_reads", "READS", CTL_NUMBER},
	{"answers", "ANSWERS", CTL_RATE},
	{"rx_packets", "RX", CTL_RATE},
	{"rx_bytes", "RX BYTES", CTL_RATE},
	{"reissued", "AGAIN", CTL_RATE},
	{"refused", "REFUSED", CTL_RATE},
};
TABLE(print_jettys, jetty_columns)

static const struct ctl_column tp_columns[] = {
	{"tpn", "TPN", CTL_HEX},
	{"state", "STATE", CTL_TEXT},
	{"remote_tpn", "REMOTE", CTL_HEX},
	{"peer", "PEER", CTL_TEXT},
	{"group", "GROUP", CTL_NUMBER},
	{"mode", "MODE", CTL_TEXT},
	{"rule", "RULE", CTL_TEXT},
	{"mtu", "MTU", CTL_NUMBER},
	{"window", "WINDOW", CTL_NUMBER},
	{"paths", "PATHS", CTL_NUMBER},
	{"next_psn", "NEXT", CTL_HEX},
	{"unacked_psn", "UNACKED", CTL_HEX},
	{"expected_psn", "EXPECTED", CTL_HEX},
	{"srtt_ns", "RTT NS", CTL_NUMBER},
	{"open_out", "OUT", CTL_NUMBER},
	{"open_in", "IN", CTL_NUMBER},
	{"resent_time", "TIME", CTL_RATE},
	{"resent_nak", "NAK", CTL_RATE},
	{"resent_timeout", "RTO", CTL_RATE},
	{"timeouts", "TIMEOUTS", CTL_RATE},
	{"duplicates", "DUPLICATES", CTL_RATE},
	{"out_of_order", "LATE", CTL_RATE},
	{"congestion", "CC", CTL_TEXT},
	{"cc_rate_bps", "CC BIT/S", CTL_RATE},
	{"cc_window", "CC WINDOW", CTL_NUMBER},
};
TABLE(print_tps, tp_columns)

static const struct ctl_column mr_columns[] = {
	{"key", "KEY", CTL_HEX},	  {"kind", "KIND", CTL_TEXT},
	{"client", "CLIENT", CTL_NUMBER}, {"pd", "PD", CTL_HEX},
	{"address", "ADDRESS", CTL_HEX},  {"length", "LENGTH", CTL_BYTES},
	{"page_size", "PAGE", CTL_BYTES}, {"rights", "ACCESS", CTL_TEXT},
};
TABLE(print_mrs, mr_columns)

static const struct ctl_column gid_columns[] = {
	{"index", "INDEX", CTL_NUMBER},
	{"ip", "ADDRESS", CTL_TEXT},
	{"mac", "MAC", CTL_TEXT},
	{"vlan", "VLAN", CTL_NUMBER},
};
TABLE(print_gids, gid_columns)

static const struct ctl_column client_columns[] = {
	{"index", "CLIENT", CTL_NUMBER},      {"pid", "PID", CTL_NUMBER},
	{"uid", "UID", CTL_NUMBER},	      {"qps", "QPS", CTL_NUMBER},
	{"cqs", "CQS", CTL_NUMBER},	      {"srqs", "SRQS", CTL_NUMBER},
	{"mrs", "MRS", CTL_NUMBER},	      {"pds", "PDS", CTL_NUMBER},
	{"peers", "PEERS", CTL_NUMBER},	      {"links", "LINKS", CTL_NUMBER},
	{"segments", "SEGMENTS", CTL_NUMBER}, {"attached", "MEMORY", CTL_BYTES},
	{"requests", "REQUESTS", CTL_NUMBER}, {"muted", "MUTED", CTL_NUMBER},
	{"release", "LIBRARY", CTL_TEXT},
};
TABLE(print_clients, client_columns)

/* ---- connection management ---- */

static const struct ctl_column cm_columns[] = {
	{"id", "ID", CTL_NUMBER},	  {"client", "CLIENT", CTL_NUMBER},
	{"space", "SPACE", CTL_TEXT},	  {"state", "STATE", CTL_TEXT},
	{"from", "SOURCE", CTL_TEXT},	  {"to", "DESTINATION", CTL_TEXT},
	{"local_qpn", "QPN", CTL_HEX},	  {"remote_qpn", "REMOTE", CTL_HEX},
	{"age", "AGE", CTL_TEXT},	  {"waiting", "WAITING", CTL_NUMBER},
	{"events", "EVENTS", CTL_NUMBER}, {"repeats", "AGAIN", CTL_NUMBER},
	{"phase", "PHASE", CTL_TEXT},
};

/* ADDRESS:PORT, of IPv6 [ADDRESS]:PORT, as a further member. */
static void
add_end(json_t *row, const char *name, const char *address, const char *port)
{
	const char *ip = json_string_value(json_object_get(row, address));
	long long number = json_integer_value(json_object_get(row, port));
	bool six = ip != NULL && strchr(ip, ':') != NULL;
	char text[64];

	if (ip == NULL)
		return;
	snprintf(text, sizeof(text), "%s%s%s:%lld", six ? "[" : "", ip, six ? "]" : "", number);
	json_object_set_new(row, name, json_string(text));
}

static void
add_age(json_t *row)
{
	long long s = json_integer_value(json_object_get(row, "age_ms")) / 1000;
	char text[32];

	if (s < 60)
		snprintf(text, sizeof(text), "%llds", s);
	else if (s < 3600)
		snprintf(text, sizeof(text), "%lldm%02llds", s / 60, s % 60);
	else
		snprintf(text, sizeof(text), "%lldh%02lldm", s / 3600, s / 60 % 60);
	json_object_set_new(row, "age", json_string(text));
}

static void
print_cm(const json_t *answer)
{
	json_t *rows = json_deep_copy(answer), *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		add_end(row, "from", "source", "source_port");
		add_end(row, "to", "destination", "destination_port");
		add_age(row);
	}
	ctl_table(stdout, cm_columns, COUNT(cm_columns), rows);
	json_decref(rows);
}

const struct ctl_view ctl_views[] = {
	{"status", status, print_members},
	{"qps", qps, print_qps},
	{"jettys", jettys, print_jettys},
	{"tps", tps, print_tps},
	{"mrs", mrs, print_mrs},
	{"gids", gids, print_gids},
	{"clients", clients, print_clients},
	{"cm", cm, print_cm},
	{"stages", stages, print_stages},
	{"usage", usage, print_members},
};
const unsigned int ctl_views_count = COUNT(ctl_views);

/* ---- all HCAs of all processes ---- */

static void
show(const struct ctl_process *p, const char *hca, const struct ctl_view *v, const json_t *answer,
     bool first)
{
	printf("%s%s%s%s:\n", first ? "" : "\n", hca, strcmp(hca, p->prefix) != 0 ? " of " : "",
	       strcmp(hca, p->prefix) != 0 ? p->prefix : "");
	v->print(answer);
}

static void
view_process(const struct ctl *c, struct ctl_process *p, const struct ctl_view *v, json_t *all)
{
	json_t *list = ctl_ask(p, "/softhca/hca/list", NULL), *each, *answer;
	size_t i;

	json_array_foreach(list, i, each) {
		const char *hca = json_string_value(each);

		if (hca == NULL || (c->hca != NULL && strcmp(hca, c->hca) != 0))
			continue;
		answer = v->gather(p, hca);
		if (answer == NULL)
			continue; /* went away */
		if (!c->json)
			show(p, hca, v, answer, json_array_size(all) == 0);
		json_array_append_new(all, ctl_frame(p->prefix, hca, v->name, answer));
	}
	json_decref(list);
}

/* --hca names none of those there are. */
static void
no_such_hca(const struct ctl *c, struct ctl_process *p, unsigned int n)
{
	ctl_error("no process has an HCA \"%s\"; there are:", c->hca);
	for (unsigned int i = 0; i < n; i++) {
		json_t *list = ctl_ask(&p[i], "/softhca/hca/list", NULL), *each;
		size_t k;

		json_array_foreach(list, k, each)
			fprintf(stderr, "  %s of %s\n", json_string_value(each), p[i].prefix);
		json_decref(list);
	}
}

int
ctl_run_view(struct ctl *c, const struct ctl_view *v, int argc, char **argv)
{
	struct ctl_process p[CTL_PROCESSES_MAX];
	int rc = ctl_options(c, argc, argv, NULL, NULL, NULL);
	struct ctl_others others;
	json_t *all;
	unsigned int n;
	size_t seen;

	if (rc != 0)
		return rc;
	all = json_array();
	n = ctl_find(c, p, CTL_PROCESSES_MAX, &others);
	for (unsigned int i = 0; i < n; i++)
		view_process(c, &p[i], v, all);
	seen = json_array_size(all);
	if (c->json)
		ctl_json(stdout, all);
	ctl_name_hanging(&others);
	if (seen == 0 && n != 0 && c->hca != NULL)
		no_such_hca(c, p, n);
	else if (seen == 0)
		ctl_none(c, "HCA", &others);
	json_decref(all);
	ctl_close(p, n);
	return seen != 0 && others.hung == 0 ? 0 : CTL_EXIT_FAILED;
}
