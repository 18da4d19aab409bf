/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about UB: transport channels, Jettys. */

#include <rte_common.h>

#include "abi_tp.h"
#include "core/wires.h"
#include "telemetry_impl.h"

/* Number of entries per answer: they fit whatever their numbers are. */
#define TPS 9u
#define JETTYS 16u

static const char *const tp_states[] = {
#define X(name, number) [number] = #name,
	HCA_TP_STATE_LIST(X)
#undef X
};
static const char *const tp_modes[] = {
#define X(name, number) [number] = #name,
	HCA_TP_MODE_LIST(X)
#undef X
};
static const char *const tp_rules[] = {
#define X(name, number, modes) [number] = #name,
	HCA_TP_RULE_LIST(X)
#undef X
};

/* ---- the agent; empty without one ---- */

int
telemetry_ub_agent(const struct telemetry_request *r, struct rte_tel_data *d)
{
	struct telemetry_dict t = {.d = d};
	const char *name;
	uint64_t value;

	t.rc = rte_tel_data_start_dict(d);
	for (uint32_t i = 0;; i++) {
		name = hca_driver_agent_counter(r->t->drv, i, &value);
		if (name == NULL)
			return t.rc;
		telemetry_put(&t, name, value);
	}
}

/* ---- TPs ---- */

static void
put_name(struct telemetry_dict *t, const char *name, const char *const *names, unsigned int n,
	 uint32_t value)
{
	telemetry_put_text(t, name, telemetry_name_in(names, n, value));
}

/* Its configuration */
static void
put_settings(struct telemetry_dict *t, const struct hca_tpc *c)
{
	uint32_t group = hca_tpc_get(c, HCA_TPC_GROUP);

	put_name(t, "state", tp_states, RTE_DIM(tp_states), hca_tpc_get(c, HCA_TPC_STATE));
	put_name(t, "mode", tp_modes, RTE_DIM(tp_modes), hca_tpc_get(c, HCA_TPC_MODE));
	put_name(t, "rule", tp_rules, RTE_DIM(tp_rules), hca_tpc_get(c, HCA_TPC_RULE));
	telemetry_put(t, "remote_tpn", hca_tpc_get(c, HCA_TPC_PEER));
	telemetry_put_ip(t, "peer", c->path.rgid);
	telemetry_put(t, "gid_index", HCA_QPC_GID_INDEX(hca_be32_to_cpu(c->path.ackto)));
	telemetry_put(t, "mtu", HCA_TP_MTU_BYTES(hca_tpc_get(c, HCA_TPC_MTU)));
	telemetry_put(t, "window", HCA_TP_WINDOW_PACKETS(hca_tpc_get(c, HCA_TPC_WINDOW)));
	telemetry_put(t, "requests", hca_tpc_get(c, HCA_TPC_REQUESTS));
	telemetry_put(t, "source_port", hca_tpc_get(c, HCA_TPC_SPORT));
	telemetry_put(t, "paths", 1u << hca_tpc_get(c, HCA_TPC_SPORTS_LOG));
	telemetry_put(t, "reorder_us", hca_tpc_get(c, HCA_TPC_REORDER));
	if (group != 0)
		telemetry_put(t, "group", group - 1);
}

/* X(name, member) */
#define LIVE(X) \
	X("next_psn", next) \
	X("unacked_psn", una) \
	X("expected_psn", live_epsn) \
	X("received_psn", max_rcv) \
	X("srtt_ns", srtt) \
	X("open_out", open_out) \
	X("open_in", open_in) \
	X("timeouts", timeouts) \
	X("resent_nak", resent_nak) \
	X("resent_high", resent_high) \
	X("resent_mark", resent_mark) \
	X("resent_time", resent_time) \
	X("resent_timeout", resent_timeout) \
	X("duplicates", duplicates) \
	X("out_of_order", out_of_order)

static int
add_tp(const struct hca_telemetry *h, const uint32_t *tpn, struct rte_tel_data *d)
{
	struct hca_congestion_limits limits;
	struct telemetry_dict t;
	struct hca_tpc c;

	if (hca_driver_query_tp(h->drv, *tpn, &c) != 0)
		return 0; /* destroyed meanwhile */
	telemetry_begin(&t);
	telemetry_put(&t, "tpn", *tpn);
	put_settings(&t, &c);
#define X(name, member) telemetry_put(&t, name, hca_be32_to_cpu(c.member));
	LIVE(X)
#undef X
	hca_tp_congestion(h->hca, *tpn, &limits);
	telemetry_put_congestion(&t, &limits);
	return telemetry_end(&t, d, hca_driver_tp_index(h->drv, *tpn));
}

TELEMETRY_LIST(telemetry_tps, uint32_t, TPS, hca_driver_list_tps, add_tp)

/* ---- Jettys ---- */

static const char *
jetty_state(uint32_t qp_state)
{
	switch (qp_state) {
	case HCA_QPS_RST:
		return "RESET";
	case HCA_QPS_RTS:
		return "READY";
	case HCA_QPS_SQD:
		return "SUSPENDED";
	default:
		return telemetry_qp_state_name(qp_state);
	}
}

static const char *
value_name(unsigned int i)
{
	return hca_wire_value_name(HCA_WIRE_UB, i);
}

static int
add_jetty(const struct hca_telemetry *h, const struct hca_driver_qp_info *i, struct rte_tel_data *d)
{
	uint64_t values[TELEMETRY_VALUES_MAX] = {0};
	struct telemetry_dict t;
	struct hca_qpc q;

	if (hca_driver_query_qp(h->drv, i->qpn, &q) != 0)
		return 0; /* destroyed meanwhile */
	/* all zeros in RESET */
	hca_wire_values(h->hca, HCA_WIRE_UB, i->qpn, values);
	telemetry_begin(&t);
	telemetry_put(&t, "id", i->qpn);
	telemetry_put_text(&t, "service", telemetry_service_name(i->service));
	telemetry_put_text(&t, "state", jetty_state(HCA_QPC_STATE(hca_be32_to_cpu(q.flags))));
	telemetry_put(&t, "client", i->owner);
	telemetry_put(&t, "pd", i->pdn);
	telemetry_put(&t, "send_jfc", i->send_cqn);
	telemetry_put(&t, "recv_jfc", i->recv_cqn);
	telemetry_put(&t, "jfr", i->srqn);
	telemetry_put_values(&t, hca_wire_value_count(HCA_WIRE_UB), value_name, values);
	return telemetry_end(&t, d, i->index);
}

static unsigned int
list_jettys(struct hca_driver *drv, uint32_t from, struct hca_driver_qp_info *out, unsigned int max)
{
	return telemetry_list_queues(drv, from, true, out, max);
}

TELEMETRY_LIST(telemetry_jettys, struct hca_driver_qp_info, JETTYS, list_jettys, add_jetty)
