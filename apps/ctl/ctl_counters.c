/* SPDX-License-Identifier: BSD-3-Clause */

/* counters: of an HCA, its port, and the parts around it; once or repeatedly. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

enum {
	OPT_WATCH = 256,
	OPT_NONZERO,
	OPT_INTERVAL,
	OPT_COUNT
};

struct counters {
	bool watch, nonzero;
	double interval; /* s */
	double count;	 /* of --watch; 0 = until it is stopped */
};

static int
counters_option(void *arg, int code, const char *value)
{
	struct counters *o = arg;

	switch (code) {
	case OPT_WATCH:
		o->watch = true;
		return 0;
	case OPT_NONZERO:
		o->nonzero = true;
		return 0;
	case OPT_INTERVAL:
		return ctl_number("interval", value, 0.01, 3600, &o->interval);
	default:
		return ctl_number("count", value, 1, 1e9, &o->count);
	}
}

/* With a prefix, unless they have it; an empty answer adds none. */
static void
add(json_t *all, const char *prefix, json_t *part)
{
	bool has;
	char name[96];
	const char *key;
	json_t *value;

	json_object_foreach(part, key, value) {
		has = strncmp(key, prefix, strlen(prefix)) == 0;
		snprintf(name, sizeof(name), "%s%s", has ? "" : prefix, key);
		if (json_is_integer(value))
			json_object_set(all, name, value);
	}
	json_decref(part);
}

/* One object: the device, UB, the port; of a daemon also clients, the other traffic, faults. */
json_t *
ctl_gather_counters(struct ctl_process *p, const char *hca)
{
	json_t *all = ctl_ask_about(p, "/softhca/hca/counters", hca, NULL);

	if (all == NULL)
		return NULL;
	add(all, "ub_", ctl_ask_about(p, "/softhca/ub/counters", hca, NULL));
	add(all, "agent_", ctl_ask_about(p, "/softhca/ub/agent", hca, NULL));
	add(all, "cm_", ctl_ask_about(p, "/softhca/cm/counters", hca, NULL));
	add(all, "port_", ctl_ask_about(p, "/softhca/port/counters", hca, NULL));
	add(all, "ipc_", ctl_ask(p, "/softhca/ipc", NULL));
	add(all, "memif_", ctl_ask(p, "/softhca/memif", NULL));
	add(all, "kernel_", ctl_ask(p, "/softhca/kernif", NULL));
	add(all, "fault_", ctl_ask(p, "/softhca/impair", NULL));
	return all;
}

/* Selection: all, or those that are not zero. */
static json_t *
filtered(json_t *counters, bool nonzero)
{
	json_t *out = json_object(), *value;
	const char *key;

	json_object_foreach(counters, key, value)
		if (!nonzero || json_integer_value(value) != 0)
			json_object_set(out, key, value);
	return out;
}

/* Growth per second of those that moved. */
static json_t *
rates(json_t *now, json_t *before, double seconds)
{
	json_t *out = json_object(), *value;
	const char *key;

	json_object_foreach(now, key, value) {
		json_int_t d = json_integer_value(value) -
			       json_integer_value(json_object_get(before, key));

		if (d != 0)
			json_object_set_new(out, key, json_real((double)d / seconds));
	}
	return out;
}

static void
print_rates(const json_t *r, double at)
{
	const char *key;
	json_t *value;

	printf("%.1f s:%s\n", at, json_object_size(r) == 0 ? " nothing moves" : "");
	json_object_foreach((json_t *)r, key, value)
		printf("  %-32s %14.1f/s\n", key, json_real_value(value));
	fflush(stdout);
}

static int
watch(const struct ctl *c, const struct counters *o, struct ctl_process *p, const char *hca)
{
	json_t *before = ctl_gather_counters(p, hca), *now, *r;
	double start = ctl_now(), last = start, t;

	for (double i = 0; before != NULL && (o->count == 0 || i < o->count); i++) {
		ctl_wait(o->interval);
		now = ctl_gather_counters(p, hca);
		t = ctl_now();
		if (now == NULL)
			break;
		r = rates(now, before, t - last);
		if (c->json) {
			r = ctl_frame(p->prefix, hca, "rates", r);
			json_object_set_new(r, "seconds", json_real(t - start));
			ctl_json_line(stdout, r);
		} else {
			print_rates(r, t - start);
		}
		json_decref(r);
		json_decref(before);
		before = now;
		last = t;
	}
	if (p->fd < 0)
		ctl_error("%s has ended: 'softhca-ctl status' shows those that run", p->prefix);
	json_decref(before);
	return p->fd >= 0 ? 0 : CTL_EXIT_FAILED;
}

static int
once(const struct ctl *c, const struct counters *o, struct ctl_process *p, const char *hca)
{
	json_t *all = ctl_gather_counters(p, hca);

	if (all == NULL) {
		ctl_error("%s does not answer", p->prefix);
		return CTL_EXIT_FAILED;
	}
	ctl_show(c, p->prefix, hca, "counters", filtered(all, o->nonzero));
	json_decref(all);
	return 0;
}

int
ctl_run_counters(struct ctl *c, int argc, char **argv)
{
	static const struct option own[] = {
		{"watch", no_argument, NULL, OPT_WATCH},
		{"nonzero", no_argument, NULL, OPT_NONZERO},
		{"interval", required_argument, NULL, OPT_INTERVAL},
		{"count", required_argument, NULL, OPT_COUNT},
		{NULL, 0, NULL, 0},
	};
	struct counters o = {.interval = 1};
	int rc = ctl_options(c, argc, argv, own, counters_option, &o);
	struct ctl_process p;
	char hca[64];

	if (rc != 0)
		return rc;
	if (ctl_one_hca(c, &p, hca, sizeof(hca)) != 0)
		return CTL_EXIT_FAILED;
	rc = o.watch ? watch(c, &o, &p, hca) : once(c, &o, &p, hca);
	ctl_close(&p, 1);
	return rc;
}
