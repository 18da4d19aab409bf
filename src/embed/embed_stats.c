/* SPDX-License-Identifier: BSD-3-Clause */

/* Counters, stage times and objects in use of embedded HCAs, as names and values. */

#include <errno.h>

#include "embed_impl.h"

struct out {
	struct softhca_value *values;
	unsigned int max, n;
};

static void
put(struct out *o, const char *name, uint64_t value)
{
	if (o->n < o->max)
		o->values[o->n] = (struct softhca_value){name, value};
	o->n++;
}

int
softhca_embed_counters(struct softhca_embed *e, unsigned int index, struct softhca_value *values,
		       unsigned int max)
{
	struct out o = {values, max, 0};
	int err = embed_own_hca(e, index);
	struct hca_port_impair_stats impair;
	struct hca_port_stall_stats stall;

	if (err != 0)
		return err;
	for (unsigned int i = 0; i < hca_counter_count(); i++)
		put(&o, hca_counter_name(i), hca_counter_value(e->side[index].hca, i));
	hca_port_impair_stats(e->side[index].impair, &impair);
	hca_port_stall_stats(e->side[index].port, &stall);
#define X(n) put(&o, "link_" #n, impair.n);
	HCA_PORT_IMPAIR_STATS(X)
#undef X
	if (e->side[index].inbound != NULL) {
		hca_port_impair_stats(e->side[index].inbound, &impair);
#define X(n) put(&o, "inbound_" #n, impair.n);
		HCA_PORT_IMPAIR_STATS(X)
#undef X
	}
	if (e->side[index].fabric != NULL) {
		struct hca_port_fabric_stats fabric;

		hca_port_fabric_stats(e->side[index].fabric, &fabric);
#define X(n) put(&o, "fabric_" #n, fabric.n);
		HCA_PORT_FABRIC_STATS(X)
#undef X
	}
#define X(n) put(&o, "port_" #n, stall.n);
	HCA_PORT_STALL_STATS(X)
#undef X
	return (int)o.n;
}

int
softhca_embed_stage_times(struct softhca_embed *e, unsigned int index, struct softhca_value *values,
			  unsigned int max)
{
	struct out o = {values, max, 0};
	int err = embed_own_hca(e, index);
	const struct hca *h;

	if (err != 0)
		return err;
	h = e->side[index].hca;
	for (unsigned int i = 0; i < hca_stage_count(); i++) {
		uint64_t sum = 0;

		for (unsigned int pipe = 0; pipe < hca_pipelines(h); pipe++)
			sum += hca_stage_time_ns(h, pipe, i);
		put(&o, hca_stage_name(i), sum);
	}
	return (int)o.n;
}

void
softhca_embed_reset_times(struct softhca_embed *e)
{
	if (embed_own(e) != 0)
		return;
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++)
		hca_stage_times_enable(e->side[i].hca, true);
}

void
softhca_embed_stop_times(struct softhca_embed *e)
{
	if (embed_own(e) != 0)
		return;
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++)
		hca_stage_times_enable(e->side[i].hca, false);
}

int
softhca_embed_resources(struct softhca_embed *e, unsigned int index, struct softhca_value *values,
			unsigned int max)
{
	struct out o = {values, max, 0};
	int err = embed_own_hca(e, index);
	const struct embed_hca *s;
	struct hca_driver_usage d;
	struct hca_usage u;

	if (err != 0)
		return err;
	s = &e->side[index];
	hca_usage(s->hca, &u);
	hca_driver_usage(s->drv, &d);
	put(&o, "records", u.records);
	put(&o, "full_records", u.full_records);
	put(&o, "tx_mbufs", u.tx_mbufs);
	put(&o, "resp_mbufs", u.resp_mbufs);
	put(&o, "edge_objects", u.edge_objects);
	put(&o, "backlog", u.backlog);
	put(&o, "messages", u.messages);
	put(&o, "link_held", hca_port_impair_held(s->impair));
	put(&o, "link_mbufs", hca_port_impair_mbufs(s->impair));
	if (s->fabric != NULL) {
		put(&o, "fabric_held", hca_port_fabric_held(s->fabric));
		put(&o, "fabric_mbufs", hca_port_fabric_mbufs(s->fabric));
	}
	put(&o, "hw_qps", u.qps - s->base.qps);
	put(&o, "hw_cqs", u.cqs - s->base.cqs);
	put(&o, "hw_mpts", u.mpts - s->base.mpts);
	put(&o, "qps", d.qps);
	put(&o, "cqs", d.cqs);
	put(&o, "mrs", d.mrs);
	put(&o, "pds", d.pds);
	put(&o, "clients", d.clients);
	put(&o, "channels", d.channels);
	if (d.qps !=
	    0) { /* memory of each in addition to its queues, and its ring of READs to answer */
		put(&o, "qp_bytes", u.qp_bytes + d.qp_bytes);
		put(&o, "qp_job_bytes", u.qp_job_bytes);
	}
	return (int)o.n;
}
