/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about connection management: ids, connections, counters. */

#include <stdio.h>

#include <rte_common.h>

#include "ibagent.h"
#include "telemetry_impl.h"

/* Number of entries per answer: they fit whatever their numbers are. */
#define ENTRIES 12u
#define NS_PER_MS 1000000u

static const char *const states[] = {
#define X(NAME) [HCA_CTL_CM_##NAME] = #NAME,
	HCA_CTL_CM_STATE_LIST(X)
#undef X
};

/* Nothing where there is no connection management. */
int
telemetry_cm_counters(const struct telemetry_request *r, struct rte_tel_data *d)
{
	struct telemetry_dict t = {.d = d};
	const char *name;
	uint64_t value;

	t.rc = rte_tel_data_start_dict(d);
	for (uint32_t i = 0;; i++) {
		name = hca_driver_cm_counter(r->t->drv, i, &value);
		if (name == NULL)
			return t.rc;
		telemetry_put(&t, name, value);
	}
}

static const char *
space_name(uint32_t space)
{
	switch (space) {
	case HCA_CTL_CM_SPACE_IPOIB:
		return "IPOIB";
	case HCA_CTL_CM_SPACE_TCP:
		return "TCP";
	case HCA_CTL_CM_SPACE_UDP:
		return "UDP";
	case HCA_CTL_CM_SPACE_IB:
		return "IB";
	default:
		return "?";
	}
}

/* GID of its own address; "": none */
static const char *
family_name(uint16_t family)
{
	switch (family) {
	case HCA_CTL_CM_IP4:
		return "IPv4";
	case HCA_CTL_CM_IP6:
		return "IPv6";
	case HCA_CTL_CM_IB:
		return "IB";
	default:
		return "";
	}
}

/* "": none. The wildcards are 0.0.0.0 and ::. */
static void
put_address(struct telemetry_dict *t, const char *name, const char *port,
	    const struct hca_ctl_cm_addr *a)
{
	if (a->family == HCA_CTL_CM_NONE)
		return;
	telemetry_put_ip(t, name, a->gid);
	telemetry_put(t, port, a->port);
}

static int
add_entry(const struct ibcm_entry *e, struct rte_tel_data *d)
{
	struct telemetry_dict t;
	char service[24];

	telemetry_begin(&t);
	telemetry_put(&t, "id", e->id);
	telemetry_put(&t, "client", e->owner);
	telemetry_put_text(&t, "space", space_name(e->space));
	telemetry_put_text(&t, "state", telemetry_name_in(states, RTE_DIM(states), e->state));
	telemetry_put_text(&t, "phase", e->phase != NULL ? e->phase : "");
	telemetry_put_text(&t, "family", family_name(e->src.family));
	put_address(&t, "source", "source_port", &e->src);
	put_address(&t, "destination", "destination_port", &e->dst);
	snprintf(service, sizeof(service), "0x%016llx", (unsigned long long)e->service_id);
	telemetry_put_text(&t, "service_id", service);
	telemetry_put(&t, "age_ms", e->since / NS_PER_MS);
	telemetry_put(&t, "local_comm_id", e->local_comm);
	telemetry_put(&t, "remote_comm_id", e->remote_comm);
	telemetry_put(&t, "local_qpn", e->local_qpn);
	telemetry_put(&t, "remote_qpn", e->remote_qpn);
	telemetry_put(&t, "waiting", e->waiting);
	telemetry_put(&t, "backlog", e->backlog);
	telemetry_put(&t, "events", e->events);
	telemetry_put(&t, "repeats", e->repeats);
	return telemetry_end(&t, d, e->index);
}

int
telemetry_cm(const struct telemetry_request *r, struct rte_tel_data *d)
{
	struct ibcm_entry e[ENTRIES];
	unsigned int n = 0;
	uint32_t from;
	int rc = telemetry_begin_list(r, d, &from);

	if (rc == 0 && r->t->cm != NULL)
		n = ibagent_list(r->t->cm, from, e, ENTRIES);
	for (unsigned int i = 0; i < n && rc == 0; i++)
		rc = add_entry(&e[i], d);
	return rc;
}

/* Refused requests of programs, if any */
int
telemetry_cm_refusals(const struct telemetry_request *r, struct rte_tel_data *d)
{
	struct ibagent_refusal f;
	struct telemetry_dict t;
	const char *name;
	uint32_t i;
	int rc = telemetry_begin_list(r, d, &i);

	for (; rc == 0 && r->t->cm != NULL; i++) {
		name = ibagent_refusal(r->t->cm, i, &f);
		if (name == NULL)
			break;
		if (f.count == 0)
			continue;
		telemetry_begin(&t);
		telemetry_put_text(&t, "refusal", name);
		telemetry_put(&t, "count", f.count);
		telemetry_put(&t, "age_ms", f.since / NS_PER_MS);
		telemetry_put(&t, "client", f.owner);
		telemetry_put_text(&t, "last", f.text);
		rc = telemetry_end(&t, d, i);
	}
	return rc;
}
