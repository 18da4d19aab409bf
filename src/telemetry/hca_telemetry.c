/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Commands cannot be taken back, so they are registered once and look HCAs up by name; the lock keeps
 * an HCA alive while it is read. The registry is the process's, like DPDK's own; the device knows
 * nothing of it.
 */

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_telemetry.h>

#include "hca_telemetry.h"

#define ARRAY_MAX 512u /* entries telemetry puts into one answer */
#define VALUES_MAX 256u
#define PARAM_MAX 64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hca_telemetry *entries;

/* "NAME" or "NAME,NUMBER"; without a name the first HCA there is. */
struct request {
	const struct hca_telemetry *entry;
	uint64_t number;
	bool has_number;
};

static const struct hca_telemetry *
find(const char *name)
{
	for (const struct hca_telemetry *t = entries; t != NULL; t = t->next)
		if (*name == '\0' || strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

static int
parse(const char *params, struct request *r)
{
	char text[PARAM_MAX], *comma, *end = NULL;
	int n = snprintf(text, sizeof(text), "%s", params != NULL ? params : "");

	memset(r, 0, sizeof(*r));
	if (n < 0 || (size_t)n >= sizeof(text))
		return -EINVAL;
	comma = strchr(text, ',');
	if (comma != NULL) {
		*comma++ = '\0';
		r->number = strtoull(comma, &end, 0);
		if (!isdigit((unsigned char)*comma) || *end != '\0')
			return -EINVAL;
		r->has_number = true;
	}
	r->entry = find(text);
	return r->entry != NULL ? 0 : -EINVAL;
}

static int
add_counters(struct rte_tel_data *d, unsigned int n, const char *(*name)(unsigned int i),
	     const uint64_t *values)
{
	int rc = rte_tel_data_start_dict(d);

	for (unsigned int i = 0; i < n && rc == 0; i++)
		rc = rte_tel_data_add_dict_u64(d, name(i), values[i]);
	return rc;
}

/* ---- commands; the lock is held ---- */

static int
hca_list(const struct request *r, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);

	for (const struct hca_telemetry *t = entries; t != NULL && rc == 0; t = t->next)
		rc = rte_tel_data_add_array_string(d, t->name);
	return rc;
}

static int
hca_counters(const struct request *r, struct rte_tel_data *d)
{
	unsigned int n = RTE_MIN(hca_counter_count(), VALUES_MAX);
	uint64_t values[VALUES_MAX];

	for (unsigned int i = 0; i < n; i++)
		values[i] = hca_counter_value(r->entry->hca, i);
	return add_counters(d, n, hca_counter_name, values);
}

static int
port_list(const struct request *r, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_array(d, RTE_TEL_INT_VAL);

	return rc != 0 ? rc : rte_tel_data_add_array_int(d, 1);
}

static int
port_counters(const struct request *r, struct rte_tel_data *d)
{
	uint64_t values[VALUES_MAX];

	if (r->has_number && r->number != 1)
		return -EINVAL;
	hca_port_counters(r->entry->hca, values);
	return add_counters(d, hca_port_counter_count(), hca_port_counter_name, values);
}

/* The number skips so many of them: an answer holds 512. */
static int
qp_list(const struct request *r, struct rte_tel_data *d)
{
	unsigned int all = hca_qp_list(r->entry->hca, NULL, 0), n;
	uint32_t *qpn = calloc(all + 1, sizeof(*qpn));
	int rc;

	if (qpn == NULL)
		return -ENOMEM;
	n = RTE_MIN(hca_qp_list(r->entry->hca, qpn, all), all);
	rc = rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
	for (uint64_t i = r->number; i < n && i - r->number < ARRAY_MAX && rc == 0; i++)
		rc = rte_tel_data_add_array_int(d, (int)qpn[i]);
	free(qpn);
	return rc;
}

static int
qp_counters(const struct request *r, struct rte_tel_data *d)
{
	uint64_t values[VALUES_MAX];

	if (!r->has_number || r->number > UINT32_MAX ||
	    hca_qp_counters(r->entry->hca, (uint32_t)r->number, values) != 0)
		return -EINVAL;
	return add_counters(d, hca_qp_counter_count(), hca_qp_counter_name, values);
}

static int
add_stage(const struct hca *h, unsigned int stage, struct rte_tel_data *d)
{
	struct rte_tel_data *s = rte_tel_data_alloc();
	int rc;

	if (s == NULL)
		return -ENOMEM;
	rc = rte_tel_data_start_dict(s);
	if (rc == 0)
		rc = rte_tel_data_add_dict_u64(s, "worker", hca_stage_on(h, stage));
	if (rc == 0)
		rc = rte_tel_data_add_dict_u64(s, "waiting", hca_stage_waiting(h, stage));
	if (rc == 0)
		rc = rte_tel_data_add_dict_u64(s, "busy_cycles", hca_stage_cycles(h, stage));
	if (rc == 0)
		rc = rte_tel_data_add_dict_u64(s, "polls", hca_stage_polls(h, stage, false));
	if (rc == 0)
		rc = rte_tel_data_add_dict_u64(s, "busy_polls", hca_stage_polls(h, stage, true));
	if (rc == 0)
		rc = rte_tel_data_add_dict_container(d, hca_stage_name(stage), s, 0);
	if (rc != 0)
		rte_tel_data_free(s);
	return rc;
}

static int
stages(const struct request *r, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_dict(d);

	for (unsigned int i = 0; i < hca_stage_count() && rc == 0; i++)
		rc = add_stage(r->entry->hca, i, d);
	return rc;
}

/* What is in use: objects, records, mbufs. */
static int
usage(const struct request *r, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_dict(d);

	return rc != 0 ? rc : r->entry->usage(r->entry->arg, d);
}

#define COMMANDS(X) \
	X(hca_list, "/softhca/hca/list", "Names of the HCAs of this process") \
	X(hca_counters, "/softhca/hca/counters", "Counters of an HCA. Parameters: NAME") \
	X(port_list, "/softhca/port/list", "Ports of an HCA. Parameters: NAME") \
	X(port_counters, "/softhca/port/counters", \
	  "Frames, bytes and drops of a port. Parameters: NAME[,PORT]") \
	X(qp_list, "/softhca/qp/list", "QPNs, 512 at most. Parameters: NAME[,SKIP]") \
	X(qp_counters, "/softhca/qp/counters", "Counters of a QP. Parameters: NAME,QPN") \
	X(stages, "/softhca/stages", \
	  "Worker of each stage, what waits for it; polls and cycles while measured. " \
	  "Parameters: NAME") \
	X(usage, "/softhca/usage", "Objects in use of an HCA and its driver. Parameters: NAME")

/* Telemetry wants a function of its own for each command. */
#define X(fn, path, text) \
	static int on_##fn(const char *cmd, const char *params, struct rte_tel_data *d) \
	{ \
		struct request r; \
		int rc; \
		pthread_mutex_lock(&lock); \
		rc = parse(params, &r); \
		if (rc == 0) \
			rc = fn(&r, d); \
		pthread_mutex_unlock(&lock); \
		return rc; \
	}
COMMANDS(X)
#undef X

#define X(fn, path, text) \
	_Static_assert(sizeof(path) <= 56 && sizeof(text) <= 128, \
		       "telemetry refuses what is longer");
COMMANDS(X)
#undef X

static void
register_commands(void)
{
#define X(fn, path, text) rte_telemetry_register_cmd(path, on_##fn, text);
	COMMANDS(X)
#undef X
}

void
hca_telemetry_add(struct hca_telemetry *t)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct hca_telemetry **p = &entries;

	pthread_once(&once, register_commands);
	pthread_mutex_lock(&lock);
	while (*p != NULL)
		p = &(*p)->next;
	t->next = NULL;
	*p = t;
	pthread_mutex_unlock(&lock);
}

void
hca_telemetry_remove(struct hca_telemetry *t)
{
	pthread_mutex_lock(&lock);
	for (struct hca_telemetry **p = &entries; *p != NULL; p = &(*p)->next) {
		if (*p != t)
			continue;
		*p = t->next;
		break;
	}
	pthread_mutex_unlock(&lock);
}
