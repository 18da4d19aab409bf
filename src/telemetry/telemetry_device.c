/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about an HCA as a whole: counters, stages, objects in use. */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "core/wires.h"
#include "telemetry_impl.h"

#define ARRAY_MAX 512u /* DPDK's limit of array entries in an answer */

static int
counters(struct rte_tel_data *d, unsigned int n, const char *(*name)(unsigned int i),
	 const uint64_t *values)
{
	struct telemetry_dict t = {d, rte_tel_data_start_dict(d)};

	telemetry_put_values(&t, n, name, values);
	return t.rc;
}

int
telemetry_hca_list(const struct telemetry_request *r, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);

	(void)r;
	for (const struct hca_telemetry *t = telemetry_first(); t != NULL && rc == 0; t = t->next)
		rc = rte_tel_data_add_array_string(d, t->name);
	return rc;
}

/* A dictionary has at most 256 entries, so those of UB have one of their own. */
static int
counters_of(const struct hca *h, bool ub, struct rte_tel_data *d)
{
	struct telemetry_dict t = {d, rte_tel_data_start_dict(d)};

	for (unsigned int i = 0; i < hca_counter_count(); i++)
		if ((hca_counter_wire(i) == HCA_WIRE_UB) == ub)
			telemetry_put(&t, hca_counter_name(i), hca_counter_value(h, i));
	return t.rc;
}

int
telemetry_hca_counters(const struct telemetry_request *r, struct rte_tel_data *d)
{
	return counters_of(r->t->hca, false, d);
}

int
telemetry_ub_counters(const struct telemetry_request *r, struct rte_tel_data *d)
{
	return counters_of(r->t->hca, true, d);
}

int
telemetry_port_list(const struct telemetry_request *r, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_array(d, RTE_TEL_INT_VAL);

	(void)r;
	return rc != 0 ? rc : rte_tel_data_add_array_int(d, 1);
}

int
telemetry_port_counters(const struct telemetry_request *r, struct rte_tel_data *d)
{
	uint64_t values[TELEMETRY_VALUES_MAX];

	if (r->has_number && r->number != 1)
		return -EINVAL;
	hca_port_counters(r->t->hca, values);
	return counters(d, hca_port_counter_count(), hca_port_counter_name, values);
}

/* The number in the request is that of QPs to skip, because an answer holds 512. */
/* Take those of the composition itself out; returns how many are left. */
static unsigned int
without_host(struct hca_driver *drv, uint32_t *qpn, unsigned int n)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < n; i++)
		if (!hca_driver_is_host_qp(drv, qpn[i]))
			qpn[left++] = qpn[i];
	return left;
}

int
telemetry_qp_list(const struct telemetry_request *r, struct rte_tel_data *d)
{
	unsigned int all = hca_qp_list(r->t->hca, NULL, 0), n;
	uint32_t *qpn = calloc(all + 1, sizeof(*qpn));
	int rc;

	if (qpn == NULL)
		return -ENOMEM;
	n = without_host(r->t->drv, qpn, RTE_MIN(hca_qp_list(r->t->hca, qpn, all), all));
	rc = rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
	for (uint64_t i = r->number; i < n && i - r->number < ARRAY_MAX && rc == 0; i++)
		rc = rte_tel_data_add_array_int(d, (int)qpn[i]);
	free(qpn);
	return rc;
}

int
telemetry_qp_counters(const struct telemetry_request *r, struct rte_tel_data *d)
{
	uint64_t values[TELEMETRY_VALUES_MAX];

	if (!r->has_number || r->number > UINT32_MAX ||
	    hca_qp_counters(r->t->hca, (uint32_t)r->number, values) != 0)
		return -EINVAL;
	return counters(d, hca_qp_counter_count(), hca_qp_counter_name, values);
}

static uint64_t
pipe_value(const struct hca *h, unsigned int pipe, const char *counter)
{
	for (unsigned int i = 0; i < hca_counter_count(); i++)
		if (strcmp(hca_counter_name(i), counter) == 0)
			return hca_pipe_counter_value(h, pipe, i);
	return 0;
}

static int
add_stage(const struct hca *h, unsigned int pipe, unsigned int stage, struct rte_tel_data *d)
{
	bool receives = strcmp(hca_stage_name(stage), "decap") == 0;
	struct telemetry_dict s;

	telemetry_begin(&s);
	telemetry_put(&s, "pipeline", pipe);
	telemetry_put(&s, "worker", hca_stage_on(h, pipe, stage));
	telemetry_put(&s, "waiting", hca_stage_waiting(h, pipe, stage));
	telemetry_put(&s, "measured", hca_stage_times_enabled(h));
	telemetry_put(&s, "busy_cycles", hca_stage_cycles(h, pipe, stage));
	telemetry_put(&s, "busy_ns", hca_stage_time_ns(h, pipe, stage));
	telemetry_put(&s, "polls", hca_stage_polls(h, pipe, stage, false));
	telemetry_put(&s, "busy_polls", hca_stage_polls(h, pipe, stage, true));
	if (receives) {
		telemetry_put(&s, "packets", pipe_value(h, pipe, "rcvd_pkts"));
		telemetry_put(&s, "handed_over", pipe_value(h, pipe, "rx_handed_over"));
	}
	if (s.rc == 0)
		s.rc = rte_tel_data_add_dict_container(d, hca_stage_name(stage), s.d, 0);
	if (s.rc != 0)
		rte_tel_data_free(s.d);
	return s.rc;
}

int
telemetry_stages(const struct telemetry_request *r, struct rte_tel_data *d)
{
	const struct hca *h = r->t->hca;
	unsigned int pipe = r->has_number ? r->number : 0;
	int rc;

	if (pipe >= hca_pipelines(h))
		return -EINVAL;
	rc = rte_tel_data_start_dict(d);
	for (unsigned int i = 0; i < hca_stage_count() && rc == 0; i++)
		if (hca_stage_on(h, pipe, i) != UINT_MAX)
			rc = add_stage(h, pipe, i, d);
	return rc;
}

int
telemetry_measure(const struct telemetry_request *r, struct rte_tel_data *d)
{
	struct telemetry_dict t = {d, 0};

	if (!r->has_number || r->number > 1)
		return -EINVAL;
	hca_stage_times_enable(r->t->hca, r->number == 1);
	t.rc = rte_tel_data_start_dict(d);
	telemetry_put(&t, "measured", r->number);
	return t.rc;
}

/* Objects, records and mbufs in use. */
int
telemetry_usage(const struct telemetry_request *r, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_dict(d);

	return rc != 0 ? rc : r->t->usage(r->t->arg, d);
}

/* ---- findings ---- */

static uint64_t
value_of(const struct hca *h, const char *counter)
{
	uint64_t port[TELEMETRY_VALUES_MAX];

	for (unsigned int i = 0; i < hca_counter_count(); i++)
		if (strcmp(hca_counter_name(i), counter) == 0)
			return hca_counter_value(h, i);
	hca_port_counters(h, port);
	for (unsigned int i = 0; i < hca_port_counter_count(); i++)
		if (strcmp(hca_port_counter_name(i), counter) == 0)
			return port[i];
	return 0;
}

unsigned int
telemetry_judge(const struct hca_telemetry *t, struct finding out[FINDINGS_MAX])
{
	const struct hca *h = t->hca;
	uint64_t value[FINDING_COUNTERS];

	if (t->findings != NULL)
		return t->findings(t->arg, out);
	for (unsigned int i = 0; i < FINDING_COUNTERS; i++)
		value[i] = value_of(h, finding_counter_names[i]);
	return finding_judge(value, out);
}

int
telemetry_findings(const struct telemetry_request *r, struct rte_tel_data *d)
{
	struct finding found[FINDINGS_MAX];
	unsigned int n;
	uint32_t from;
	int rc = telemetry_begin_list(r, d, &from);

	n = telemetry_judge(r->t, found);
	for (unsigned int i = from; i < n && rc == 0; i++) {
		struct telemetry_dict t;

		telemetry_begin(&t);
		telemetry_put_text(&t, "finding", found[i].name);
		telemetry_put_text(&t, "text", found[i].text);
		rc = telemetry_end(&t, d, i);
	}
	return rc;
}
