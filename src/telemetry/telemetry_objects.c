/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about the contents of an HCA: port, limits, QPs, regions, addresses, clients. */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "abi_gid_text.h"
#include "abi_service.h"
#include "telemetry_impl.h"

/* Number of entries per answer: they fit whatever their numbers are. */
#define QPS 7u
#define MRS 32u
#define GIDS 48u
#define CLIENTS 40u

static const char *const port_states[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};

const char *
telemetry_name_in(const char *const *names, unsigned int n, uint32_t i)
{
	return i < n && names[i] != NULL ? names[i] : "?";
}

const char *
telemetry_qp_state_name(uint32_t state)
{
	static const char *const names[] = {
#define X(name, number, verbs) #verbs,
		HCA_QP_STATE_LIST(X)
#undef X
	};

	return telemetry_name_in(names, RTE_DIM(names), state);
}

const char *
telemetry_service_name(uint32_t service)
{
	static const char *const names[HCA_ST_COUNT] = {
#define X(name, ...) [HCA_ST_##name] = #name,
		HCA_SERVICE_LIST(X) HCA_UB_SERVICE_LIST(X)
#undef X
	};

	return telemetry_name_in(names, RTE_DIM(names), service);
}

static void
put_mac(struct telemetry_dict *t, const char *name, const uint8_t m[6])
{
	char text[18];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
		 m[5]);
	telemetry_put_text(t, name, text);
}

void
telemetry_put_ip(struct telemetry_dict *t, const char *name, const uint8_t gid[16])
{
	char text[INET6_ADDRSTRLEN];

	telemetry_put_text(t, name, hca_gid_text(gid, text, sizeof(text)));
}

int
telemetry_begin_list(const struct telemetry_request *r, struct rte_tel_data *d, uint32_t *from)
{
	int rc = rte_tel_data_start_dict(d);

	if (rc == 0 && r->number > UINT32_MAX)
		rc = -EINVAL;
	*from = (uint32_t)r->number;
	return rc;
}

/* ---- the HCA ---- */

static void
put_port(struct telemetry_dict *t, const struct hca_telemetry *h)
{
	struct hca_ctl_port p;

	hca_driver_query_port(h->drv, &p);
	telemetry_put_text(t, "port_state",
			   telemetry_name_in(port_states, RTE_DIM(port_states), p.state));
	telemetry_put(t, "speed_mbps", p.speed);
	telemetry_put(t, "active_mtu", 128u << (p.active_mtu & 7));
	put_mac(t, "mac", p.mac);
	if (h->mtu != 0)
		telemetry_put(t, "ip_mtu", h->mtu);
}

static void
put_health(struct telemetry_dict *t, const struct hca_telemetry *h)
{
	char health[128] = "well", cpu[128] = "";
	struct finding found[FINDINGS_MAX];

	if (h->health != NULL)
		h->health(h->arg, health, sizeof(health), cpu, sizeof(cpu));
	else if (telemetry_judge(h, found) != 0)
		snprintf(health, sizeof(health), "%s", found[0].text);
	telemetry_put_text(t, "health", hca_driver_dead(h->drv) ? "dead" : health);
	if (cpu[0] != '\0')
		telemetry_put_text(t, "cpu", cpu);
}

int
telemetry_status(const struct telemetry_request *r, struct rte_tel_data *d)
{
	struct telemetry_dict t = {d, rte_tel_data_start_dict(d)};
	const struct hca_telemetry *h = r->t;
	struct hca_driver_usage u;

	hca_driver_usage(h->drv, &u);
	telemetry_put_text(&t, "name", h->name);
	telemetry_put(&t, "pid", (uint64_t)getpid());
	put_health(&t, h);
	put_port(&t, h);
	if (h->layout != NULL)
		telemetry_put_text(&t, "layout", h->layout);
	telemetry_put(&t, "pipelines", hca_pipelines(h->hca));
	telemetry_put(&t, "workers", hca_workers(h->hca));
	telemetry_put_text(&t, "congestion", hca_congestion(h->hca));
	if (h->device != NULL)
		telemetry_put_text(&t, "device", h->device);
	if (h->socket != NULL)
		telemetry_put_text(&t, "socket", h->socket);
	telemetry_put(&t, "clients", u.clients);
	telemetry_put(&t, "qps", u.qps);
	telemetry_put(&t, "cqs", u.cqs);
	telemetry_put(&t, "mrs", u.mrs);
	return t.rc;
}

/* ---- QPs ---- */

static void
put_context(struct telemetry_dict *t, const struct hca_qpc *q)
{
	uint32_t state = HCA_QPC_STATE(hca_be32_to_cpu(q->flags));
	uint32_t mtu = HCA_QPC_MTU(hca_be32_to_cpu(q->sizes));

	telemetry_put_text(t, "state", telemetry_qp_state_name(state));
	telemetry_put(t, "remote_qpn", hca_be32_to_cpu(q->remote_qpn) & 0xffffff);
	telemetry_put_ip(t, "peer", q->path.rgid);
	telemetry_put(t, "gid_index", HCA_QPC_GID_INDEX(hca_be32_to_cpu(q->path.ackto)));
	telemetry_put(t, "mtu", mtu != 0 ? 128u << mtu : 0);
	telemetry_put(t, "next_psn", hca_be32_to_cpu(q->next_send_psn) & 0xffffff);
	telemetry_put(t, "unacked_psn", hca_be32_to_cpu(q->last_acked_psn) & 0xffffff);
	telemetry_put(t, "expected_psn", HCA_QPC_EPSN(hca_be32_to_cpu(q->rnr_nextrecvpsn)));
}

/* Where there are samples */
static void
put_round_trips(struct telemetry_dict *t, const struct hca *h, uint32_t qpn)
{
	struct hca_round_trips r;

	if (hca_qp_round_trips(h, qpn, &r) != 0 || r.samples == 0)
		return;
	telemetry_put(t, "rtt_min_ns", r.min_ns);
	telemetry_put(t, "rtt_p50_ns", r.p50_ns);
	telemetry_put(t, "rtt_p99_ns", r.p99_ns);
}

void
telemetry_put_congestion(struct telemetry_dict *t, const struct hca_congestion_limits *l)
{
	const struct {
		const char *name;
		uint64_t value;
	} values[] = {
		{"cc_rate_bps", l->rate_bps},	{"cc_read_rate_bps", l->responses_bps},
		{"cc_window", l->window},	{"cc_rtt_ns", l->rtt_ns},
		{"cc_target_ns", l->target_ns},
	};

	telemetry_put_text(t, "congestion", l->name);
	for (unsigned int i = 0; i < RTE_DIM(values); i++)
		if (values[i].value != 0)
			telemetry_put(t, values[i].name, values[i].value);
}

static int
add_qp(const struct hca_telemetry *h, const struct hca_driver_qp_info *i, struct rte_tel_data *d)
{
	uint64_t values[TELEMETRY_VALUES_MAX] = {0};
	struct hca_congestion_limits limits;
	struct telemetry_dict t;
	struct hca_qpc q;

	if (hca_driver_query_qp(h->drv, i->qpn, &q) != 0)
		return 0;			 /* destroyed meanwhile */
	hca_qp_counters(h->hca, i->qpn, values); /* all zeros in RESET */
	telemetry_begin(&t);
	telemetry_put(&t, "qpn", i->qpn);
	telemetry_put_text(&t, "service", telemetry_service_name(i->service));
	telemetry_put(&t, "client", i->owner);
	telemetry_put(&t, "pd", i->pdn);
	telemetry_put(&t, "send_cq", i->send_cqn);
	telemetry_put(&t, "recv_cq", i->recv_cqn);
	telemetry_put(&t, "srq", i->srqn);
	put_context(&t, &q);
	telemetry_put_values(&t, hca_qp_counter_count(), hca_qp_counter_name, values);
	put_round_trips(&t, h->hca, i->qpn);
	hca_qp_congestion(h->hca, i->qpn, &limits);
	telemetry_put_congestion(&t, &limits);
	return telemetry_end(&t, d, i->index);
}

unsigned int
telemetry_list_queues(struct hca_driver *drv, uint32_t from, bool ub,
		      struct hca_driver_qp_info *out, unsigned int max)
{
	unsigned int n = 0;

	while (n < max && hca_driver_list_qps(drv, from, &out[n], 1) != 0) {
		from = out[n].index + 1;
		if (hca_service_is_ub(out[n].service) == ub)
			n++;
	}
	return n;
}

/* Those of UB are /softhca/jettys. */
static unsigned int
list_qps(struct hca_driver *drv, uint32_t from, struct hca_driver_qp_info *out, unsigned int max)
{
	return telemetry_list_queues(drv, from, false, out, max);
}

TELEMETRY_LIST(telemetry_qps, struct hca_driver_qp_info, QPS, list_qps, add_qp)

/* ---- memory ---- */

/* Access rights (T3-2-19), a word for each. */
static void
put_rights(struct telemetry_dict *t, uint32_t access)
{
	static const struct {
		uint32_t bit;
		const char *word;
	} words[] = {
		{HCA_ACCESS_LOCAL_WRITE, "local_write"},
		{HCA_ACCESS_REMOTE_WRITE, "remote_write"},
		{HCA_ACCESS_REMOTE_READ, "remote_read"},
		{HCA_ACCESS_REMOTE_ATOMIC, "remote_atomic"},
		{HCA_ACCESS_MW_BIND, "mw_bind"},
		{HCA_ACCESS_ZERO_BASED, "zero_based"},
		{HCA_ACCESS_ON_DEMAND, "on_demand"},
		{HCA_ACCESS_FLUSH_GLOBAL, "flush_global"},
	};
	char text[128] = "local_read";

	for (unsigned int i = 0; i < RTE_DIM(words); i++)
		if ((access & words[i].bit) != 0)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%s",
				 words[i].word);
	telemetry_put_text(t, "rights", text);
}

static const char *
kind_of(const struct hca_driver_mr_info *m)
{
	if (m->window)
		return "window";
	if (m->null)
		return "null";
	return m->queue ? "queue" : "region";
}

static int
add_mr(const struct hca_telemetry *h, const struct hca_driver_mr_info *m, struct rte_tel_data *d)
{
	struct telemetry_dict t;

	telemetry_begin(&t);
	telemetry_put(&t, "key", m->key);
	telemetry_put_text(&t, "kind", kind_of(m));
	telemetry_put(&t, "client", m->owner);
	telemetry_put(&t, "pd", m->pdn);
	telemetry_put(&t, "address", m->va);
	telemetry_put(&t, "length", m->length);
	telemetry_put(&t, "page_size", m->page_size);
	telemetry_put(&t, "access", m->access);
	put_rights(&t, m->access);
	return telemetry_end(&t, d, m->index);
}

TELEMETRY_LIST(telemetry_mrs, struct hca_driver_mr_info, MRS, hca_driver_list_mrs, add_mr)

/* ---- addresses ---- */

static int
add_gid(uint32_t index, const struct hca_ctl_gid *g, struct rte_tel_data *d)
{
	char text[INET6_ADDRSTRLEN];
	struct telemetry_dict t;

	telemetry_begin(&t);
	telemetry_put_ip(&t, "ip", g->gid);
	inet_ntop(AF_INET6, g->gid, text, sizeof(text));
	telemetry_put_text(&t, "gid", text);
	put_mac(&t, "mac", g->mac);
	if (g->vlan_id != 0xffff)
		telemetry_put(&t, "vlan", g->vlan_id);
	if (g->ifindex != 0)
		telemetry_put(&t, "ifindex", g->ifindex);
	return telemetry_end(&t, d, index);
}

int
telemetry_gids(const struct telemetry_request *r, struct rte_tel_data *d)
{
	uint32_t from, entries = hca_driver_gid_entries(r->t->drv);
	struct hca_ctl_gid g;
	unsigned int n = 0;
	int rc = telemetry_begin_list(r, d, &from);

	for (; rc == 0 && from < entries && n < GIDS; from++) {
		rc = hca_driver_query_gid(r->t->drv, from, &g);
		if (rc != 0 || !g.valid)
			continue;
		rc = add_gid(from, &g, d);
		n++;
	}
	return rc;
}

/* ---- clients ---- */

static int
add_client(const struct hca_telemetry *h, const struct hca_driver_client_info *c,
	   struct rte_tel_data *d)
{
	struct hca_telemetry_client who;
	struct telemetry_dict t;

	telemetry_begin(&t);
	if (h->client != NULL && h->client(h->arg, c->index, &who)) {
		telemetry_put(&t, "pid", (uint64_t)who.pid);
		telemetry_put(&t, "uid", who.uid);
		telemetry_put(&t, "attached", who.attached);
		telemetry_put(&t, "requests", who.requests);
		telemetry_put(&t, "muted", who.muted);
	}
	telemetry_put(&t, "qps", c->qps);
	telemetry_put(&t, "cqs", c->cqs);
	telemetry_put(&t, "srqs", c->srqs);
	telemetry_put(&t, "mrs", c->mrs);
	telemetry_put(&t, "pds", c->pds);
	telemetry_put(&t, "channels", c->channels);
	telemetry_put(&t, "segments", c->segments);
	telemetry_put(&t, "peers", c->peers);
	telemetry_put(&t, "links", c->links);
	telemetry_put(&t, "known", c->known);
	telemetry_put(&t, "mtts", c->mtts);
	telemetry_put_text(&t, "release", c->release);
	return telemetry_end(&t, d, c->index);
}

TELEMETRY_LIST(telemetry_clients, struct hca_driver_client_info, CLIENTS, hca_driver_list_clients,
	       add_client)
