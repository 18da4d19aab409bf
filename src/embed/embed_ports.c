/* SPDX-License-Identifier: BSD-3-Clause */

/* The link in memory: every port can stall, misbehave and be captured, and does none by default. */

#include <errno.h>
#include <stdio.h>

#include "embed_ports.h"
#include "port/port_ethdev.h"

static int
wrap(struct embed_hca *s, const char *name, uint64_t seed)
{
	struct hca_port_impair_config ic = {.name = name, .seed = seed, .socket_id = -1};
	struct hca_port_stall_config sc = {.seed = seed + 1, .socket_id = -1};
	int err = hca_port_pcap_open(NULL, s->wire, -1, &s->pcap);

	if (err != 0)
		return err;
	s->port = s->pcap;
	err = hca_port_impair_open(&ic, s->pcap, &s->impair);
	if (err != 0)
		return err;
	s->port = s->impair;
	err = hca_port_stall_open(&sc, s->impair, &s->port);
	return err;
}

int
embed_ports_open(struct softhca_embed *e, uint32_t serial)
{
	for (uint32_t i = 0; i < e->cfg.num_hcas; i += 2) {
		struct hca_port *pair[2];
		char name[32];
		int err;

		snprintf(name, sizeof(name), "shl%u_%u_", serial, i);
		err = hca_port_memory_pair(name, e->cfg.port_queue, -1, pair);
		if (err != 0)
			return embed_fail(err, "no link in memory for HCA %u and %u", i, i + 1);
		for (uint32_t k = 0; k < 2; k++) {
			e->side[i + k].wire = pair[k];
			e->side[i + k].port = pair[k];
		}
		for (uint32_t k = 0; k < 2; k++) {
			snprintf(name, sizeof(name), "shi%u_%u", serial, i + k);
			err = wrap(&e->side[i + k], name, e->cfg.seed * 4 + 2 * (i + k) + 1);
			if (err != 0)
				return embed_fail(err, "no port for HCA %u", i + k);
		}
	}
	if (softhca_embed_set_impairment(e, &e->cfg.impair) != 0)
		return -EINVAL;
	return softhca_embed_set_stall(e, &e->cfg.stall);
}

void
embed_ports_close(struct softhca_embed *e)
{
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++)
		if (e->side[i].port != NULL)
			e->side[i].port->ops->close(e->side[i].port);
}

static bool
is_probability(double p)
{
	return p >= 0 && p <= 1;
}

int
softhca_embed_set_impairment(struct softhca_embed *e, const struct softhca_impairment *im)
{
	struct hca_impair out = {0};

	if (im != NULL) {
		if (!is_probability(im->drop) || !is_probability(im->dup) ||
		    !is_probability(im->reorder) || !is_probability(im->corrupt))
			return embed_fail(-EINVAL, "impairment: probabilities are 0 to 1");
		out = (struct hca_impair){
			.drop = im->drop,
			.dup = im->dup,
			.reorder = im->reorder,
			.corrupt = im->corrupt,
			.delay_ns = (uint64_t)im->delay_us * 1000,
			.jitter_ns = (uint64_t)im->jitter_us * 1000,
		};
	}
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++)
		hca_port_impair_set(e->side[i].impair, im != NULL ? &out : NULL);
	return 0;
}

int
softhca_embed_set_stall(struct softhca_embed *e, const struct softhca_port_stall *st)
{
	struct hca_port_stall_rules rules = {0};

	if (st != NULL)
		rules = (struct hca_port_stall_rules){
			.tx_burst_max = st->tx_burst_max,
			.down_after = (uint64_t)st->down_after_ms * 1000000,
			.down_for = (uint64_t)st->down_for_ms * 1000000,
		};
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++)
		hca_port_stall_set(e->side[i].port, &rules);
	return 0;
}

int
softhca_embed_capture(struct softhca_embed *e, const char *path)
{
	struct hca_pcap *file = NULL;
	int err = 0;

	pthread_mutex_lock(&e->lock);
	if (path != NULL)
		err = hca_pcap_open(path, 0, &file);
	if (err == 0) {
		for (uint32_t i = 0; i < e->cfg.num_hcas; i++)
			hca_port_pcap_attach(e->side[i].pcap, file);
		if (e->capture != NULL)
			err = hca_pcap_close(e->capture);
		e->capture = file;
	}
	pthread_mutex_unlock(&e->lock);
	return err == 0 ? 0 : embed_fail(err, "capture to %s failed", path ? path : "file");
}
