/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The link in memory, or devices: every port can be stalled, impaired and captured; by default it
 * is not.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "embed_ports.h"
#include "host.h"
#include "port/port_ethdev.h"
#include "port/port_memif.h"
#include "port/port_memory.h"

#define NG_SUFFIX ".pcapng"
#define HEADERS_MAX 128u /* bytes of IP, of the headers above, of pad and ICRC */

static bool
is_probability(double p)
{
	return p >= 0 && p <= 1;
}

/* Only if the other end is not ours: the senders impair a link in memory. */
static int
wrap_inbound(struct embed_hca *s, const char *name, uint64_t seed)
{
	char inbound[32];
	struct hca_port_impair_config ic = {.name = inbound, .seed = seed, .socket_id = -1};
	int err;

	snprintf(inbound, sizeof(inbound), "%.16s.in", name);
	hca_port_pcap_both_ways(s->pcap);
	err = hca_port_inbound_open(&ic, s->pcap, &s->port);
	if (err == 0)
		s->inbound = hca_port_inbound_impair(s->port);
	return err;
}

/* The network that the text and the structure of the interface describe */
static struct hca_fabric
fabric_of(const struct softhca_fabric *f)
{
	return (struct hca_fabric){
		.rate_mbps = (uint64_t)(f->rate_gbps * 1e3 + 0.5),
		.delay_ns = (uint64_t)(f->delay_us * 1e3 + 0.5),
		.skew_ns = (uint64_t)(f->skew_us * 1e3 + 0.5),
		.paths = f->paths,
		.loss = f->loss,
		.loss0 = f->first_loss != 0 ? f->first_loss : -1,
		.queue = f->queue,
		.ecn = f->ecn,
	};
}

int
softhca_embed_parse_fabric(const char *text, struct softhca_fabric *out)
{
	struct hca_fabric f;
	char why[192];

	if (hca_fabric_parse(text, &f, why, sizeof(why)) != 0)
		return embed_fail(-EINVAL, "%s", why);
	*out = (struct softhca_fabric){
		.rate_gbps = (double)f.rate_mbps / 1e3,
		.delay_us = (double)f.delay_ns / 1e3,
		.skew_us = (double)f.skew_ns / 1e3,
		.paths = f.paths,
		.queue = (uint32_t)f.queue,
		.ecn = (uint32_t)f.ecn,
		.loss = f.loss,
		.first_loss = f.loss0 > 0 ? f.loss0 : 0,
	};
	return 0;
}

/* Replaces the wire, so that a capture has the sent frames with the time of sending. */
static int
wrap_fabric(struct embed_hca *s, const char *name, uint64_t seed)
{
	const struct softhca_fabric *f = &s->owner->cfg.fabric;
	struct hca_port_fabric_config fc = {.name = name,
					    .fabric = fabric_of(f),
					    .seed = seed,
					    .socket_id = -1};
	int err;

	if (!is_probability(f->loss) || !is_probability(f->first_loss) || !(f->rate_gbps >= 1e-3) ||
	    !(f->rate_gbps <= 1e4) || !(f->delay_us >= 0 && f->delay_us <= 1e6) ||
	    !(f->skew_us >= 0 && f->skew_us <= 1e6))
		return -EINVAL;
	err = hca_port_fabric_open(&fc, s->wire, &s->fabric);
	if (err == 0)
		s->port = s->wire = s->fabric;
	return err;
}

static int
wrap_pcap(struct embed_hca *s)
{
	int err = hca_port_pcap_open(NULL, s->port, -1, &s->pcap);

	if (err == 0)
		s->port = s->pcap;
	return err;
}

/*
 * A capture of a link in memory has the frames that its ends send, before any fault; that of a
 * device the frames really sent and received there.
 */
static int
wrap(struct embed_hca *s, const char *name, uint64_t seed, bool device)
{
	struct hca_port_impair_config ic = {.name = name, .seed = seed, .socket_id = -1};
	struct hca_port_stall_config sc = {.seed = seed + 1, .socket_id = -1};
	int err = 0;

	if (s->owner->cfg.fabric.rate_gbps != 0)
		err = wrap_fabric(s, name, seed + 2);
	if (err == 0 && device)
		err = wrap_pcap(s);
	if (err == 0 && device)
		err = wrap_inbound(s, name, ~seed);
	if (err == 0 && device)
		sc.deaf = hca_port_inbound_deaf(s->port);
	if (err != 0)
		return err;
	err = hca_port_impair_open(&ic, s->port, &s->impair);
	if (err != 0)
		return err;
	s->port = s->impair;
	err = device ? 0 : wrap_pcap(s);
	if (err == 0)
		hca_port_impair_watch(s->impair, hca_port_pcap_mark, s->pcap);
	return err == 0 ? hca_port_stall_open(&sc, s->port, &s->port) : err;
}

static int
open_pair(struct softhca_embed *e, uint32_t serial, uint32_t i)
{
	struct hca_port *pair[2];
	char name[32];
	int err;

	snprintf(name, sizeof(name), "shl%u_%u_", serial, i);
	err = hca_port_memory_pair(name, (uint16_t)e->cfg.pipelines, e->cfg.port_queue, -1, pair);
	if (err != 0)
		return embed_fail(err, "no link in memory for HCA %u and %u", i, i + 1);
	for (uint32_t k = 0; k < 2; k++) {
		e->side[i + k].wire = pair[k];
		e->side[i + k].port = pair[k];
	}
	return 0;
}

static int
open_memif(struct softhca_embed *e, uint32_t serial, uint32_t i)
{
	const char *device = e->cfg.ports[i];
	size_t len = strcspn(device, ",");
	struct hca_port_memif_config mc;
	char name[32], why[256];
	int err;

	if (hca_port_memif_parse(device + len + (device[len] == ','), &mc, why, sizeof(why)) != 0)
		return embed_fail(-EINVAL, "device '%s': %s", device, why);
	snprintf(name, sizeof(name), "shd%u_%u", serial, i);
	mc.name = name;
	mc.mtu = (128u << e->cfg.max_mtu) + HEADERS_MAX;
	mc.data_room = RTE_MAX(mc.buffer, mc.mtu + RTE_ETHER_HDR_LEN) + RTE_PKTMBUF_HEADROOM;
	mc.queues = (uint16_t)e->cfg.pipelines;
	mc.socket_id = -1;
	mc.carrier = true;
	err = hca_port_memif_open(&mc, &e->side[i].wire);
	if (err != 0)
		return embed_fail(err, "device '%s': %s", device, strerror(-err));
	e->side[i].port = e->side[i].wire;
	return 0;
}

static int
open_device(struct softhca_embed *e, uint32_t serial, uint32_t i)
{
	const char *device = e->cfg.ports[i];
	char name[32], port[RTE_ETH_NAME_MAX_LEN];
	struct hca_port_ethdev_config pc = {
		.name = name,
		.mtu = (128u << e->cfg.max_mtu) + HEADERS_MAX,
		.rx_desc = (uint16_t)e->cfg.port_queue,
		.tx_desc = (uint16_t)e->cfg.port_queue,
		.queues = (uint16_t)e->cfg.pipelines,
		.socket_id = -1,
	};
	int err;

	if (hca_port_memif_is(device))
		return open_memif(e, serial, i);
	err = rte_dev_probe(device);
	if (err != 0)
		return embed_fail(err, "DPDK has no device '%s': %s", device, strerror(-err));
	snprintf(name, sizeof(name), "shd%u_%u", serial, i);
	snprintf(port, sizeof(port), "%.*s", (int)strcspn(device, ","), device);
	err = rte_eth_dev_get_port_by_name(port, &pc.port_id);
	if (err == 0)
		err = hca_port_ethdev_open(&pc, &e->side[i].wire);
	if (err != 0)
		return embed_fail(err, "port '%s': %s", port, strerror(-err));
	e->side[i].port = e->side[i].wire;
	return 0;
}

int
embed_ports_open(struct softhca_embed *e, uint32_t serial)
{
	bool devices = e->cfg.ports != NULL;
	char name[32];
	int err = 0;

	for (uint32_t i = 0; i < e->cfg.num_hcas && err == 0; i++) {
		if (devices)
			err = open_device(e, serial, i);
		else if (i % 2 == 0)
			err = open_pair(e, serial, i);
	}
	if (err != 0)
		return err;
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++) {
		snprintf(name, sizeof(name), "shi%u_%u", serial, i);
		e->side[i].owner = e;
		err = wrap(&e->side[i], name, e->cfg.seed * 4 + 2 * i + 1, devices);
		if (err != 0)
			return embed_fail(err, "no port for HCA %u", i);
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

int
softhca_embed_set_impairment(struct softhca_embed *e, const struct softhca_impairment *im)
{
	struct hca_impair out = {0};

	if (embed_own(e) != 0)
		return -EPERM;
	if (im != NULL) {
#define X(name) \
	if (!is_probability(im->name)) \
		return embed_fail(-EINVAL, "impairment: " #name " is not 0 to 1"); \
	out.name = im->name;
		HCA_IMPAIR_ODDS_LIST(X)
#undef X
#define X(name) out.name##_ns = (uint64_t)im->name##_us * 1000;
		HCA_IMPAIR_TIME_LIST(X)
#undef X
	}
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++) {
		hca_port_impair_set(e->side[i].impair, im != NULL ? &out : NULL);
		if (e->side[i].inbound != NULL)
			hca_port_impair_set(e->side[i].inbound, im != NULL ? &out : NULL);
	}
	return 0;
}

int
softhca_embed_parse_impairment(const char *text, struct softhca_impairment *out)
{
	struct hca_impair_text t;
	char why[192];

	if (hca_impair_parse(text, &t, why, sizeof(why)) != 0)
		return embed_fail(-EINVAL, "%s", why);
	if (t.kind != HCA_IMPAIR_ODDS || t.qpn != 0 || t.tpn != 0 || t.odds.by_name)
		return embed_fail(-EINVAL,
				  "impairment \"%.60s\": expected probabilities of all frames",
				  text);
#define X(name) out->name = t.odds.name;
	HCA_IMPAIR_ODDS_LIST(X)
#undef X
#define X(name) out->name##_us = (uint32_t)(t.odds.name##_ns / 1000);
	HCA_IMPAIR_TIME_LIST(X)
#undef X
	return 0;
}

int
softhca_embed_add_fault(struct softhca_embed *e, unsigned int index,
			const struct softhca_fault_rule *rule)
{
	static const enum hca_fault faults[] = {
		[SOFTHCA_FAULT_DROP] = HCA_FAULT_DROP,
		[SOFTHCA_FAULT_DUP] = HCA_FAULT_DUP,
		[SOFTHCA_FAULT_REORDER] = HCA_FAULT_REORDER,
		[SOFTHCA_FAULT_DELAY] = HCA_FAULT_DELAY,
		[SOFTHCA_FAULT_CORRUPT] = HCA_FAULT_CORRUPT_RANDOM,
	};
	struct hca_fault_rule r = {
		.opcode = rule->opcode,
		.psn = rule->psn,
		.nth = rule->nth,
		.count = rule->count,
		.arg = rule->arg,
	};
	struct hca_port *port;
	int err = embed_own(e);

	if (err != 0)
		return err;
	if (index >= e->cfg.num_hcas || rule->fault >= RTE_DIM(faults))
		return embed_fail(-EINVAL,
				  "fault %u of HCA number %u: expected 0 to %zu, of HCA 0 to %u",
				  rule->fault, index, RTE_DIM(faults) - 1, e->cfg.num_hcas - 1);
	r.fault = faults[rule->fault];
	port = rule->inbound ? e->side[index].inbound : e->side[index].impair;
	if (port == NULL)
		return embed_fail(
			-EOPNOTSUPP,
			"inbound = 1: HCAs connected in memory are impaired where frames are "
			"sent; add the rule to the other HCA with inbound = 0");
	err = hca_port_impair_rule(port, &r);
	return err == 0 ? 0
			: embed_fail(err,
				     "HCA number %u has %u rules, the most that may be: "
				     "softhca_embed_clear_faults() removes them",
				     index, HCA_FAULT_RULES);
}

int
softhca_embed_clear_faults(struct softhca_embed *e, unsigned int index)
{
	int err = embed_own_hca(e, index);

	if (err != 0)
		return err;
	hca_port_impair_clear_rules(e->side[index].impair);
	if (e->side[index].inbound != NULL)
		hca_port_impair_clear_rules(e->side[index].inbound);
	return 0;
}

int
softhca_embed_set_stall(struct softhca_embed *e, const struct softhca_port_stall *st)
{
	struct hca_port_stall_rules rules = {0};

	if (embed_own(e) != 0)
		return -EPERM;
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

/* Simulated time begins with the HCAs; real time is shown as the time of day. */
static uint64_t
epoch_of(const struct softhca_embed *e)
{
	return e->cfg.fabric.rate_gbps != 0 ? 0 : hca_host_wall_clock() - hca_clock_ns();
}

static int
open_capture(const struct softhca_embed *e, const char *path, struct hca_pcap **file)
{
	const struct hca_pcap_ng ng = {
		.interface = e->side[0].name,
		.epoch = epoch_of(e),
		.replace = true,
	};
	size_t len = strlen(path), end = strlen(NG_SUFFIX);

	if (len > end && strcmp(path + len - end, NG_SUFFIX) == 0)
		return hca_pcap_open_ng(path, &ng, file);
	return hca_pcap_open(path, 0, file);
}

int
softhca_embed_capture(struct softhca_embed *e, const char *path)
{
	struct hca_pcap *file = NULL;
	int err = embed_own(e);

	if (err != 0)
		return err;
	pthread_mutex_lock(&e->lock);
	if (path != NULL)
		err = open_capture(e, path, &file);
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
