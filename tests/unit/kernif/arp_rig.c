/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>

#include "arp_rig.h"

struct end x, y;
uint64_t now;
const uint8_t *nd_mac = z_mac;

static void
on_send(void *arg, const uint8_t *frame, uint32_t len)
{
	struct end *e = arg;

	assert_true(len >= 42 && len <= ARP_ND_FRAME_MAX);
	e->sent++;
	memcpy(e->last, frame, len);
	e->last_len = len;
	if (!e->cut && e->peer != NULL && e->peer->a != NULL)
		arp_nd_input(e->peer->a, frame, len, now);
}

static void
on_change(void *arg, const struct arp_nd_hop *hop, const uint8_t *mac)
{
	struct end *e = arg;

	e->hop = *hop;
	e->changes += mac != NULL;
	e->lost_hops += mac == NULL;
	if (mac != NULL)
		memcpy(e->hop_mac, mac, 6);
}

void
rig_make(struct end *e, const uint8_t mac[6], const uint8_t g4[16], const uint8_t g6[16],
	 struct end *peer)
{
	struct arp_nd_address own[4] = {
		{.prefix = 24, .vlan_id = NONE},
		{.prefix = 64, .vlan_id = NONE},
		{.prefix = 24, .vlan_id = 7},
		{.prefix = 64, .vlan_id = 7},
	};
	const struct arp_nd_hop gw = {.gid = V4(10, 0, 0, 2), .vlan_id = NONE};
	struct arp_nd_config cfg = {
		.addresses = own,
		.num_addresses = 4,
		.gateways = &gw,
		.num_gateways = 1,
		.send = on_send,
		.changed = on_change,
		.arg = e,
	};

	for (unsigned int i = 0; i < 4; i++)
		memcpy(own[i].gid, i % 2 ? g6 : g4, 16);
	own[2].gid[14] = 7; /* 10.0.7.x */
	own[3].gid[7] = 7;
	memcpy(cfg.mac, mac, 6);
	*e = (struct end){.peer = peer};
	assert_int_equal(arp_nd_create(&cfg, &e->a), 0);
}

int
rig_setup(void **state)
{
	(void)state;
	now = 100 * SECOND;
	x.a = y.a = NULL;
	rig_make(&x, x_mac, x4, x6, &y);
	rig_make(&y, y_mac, y4, y6, &x);
	return 0;
}

int
rig_teardown(void **state)
{
	(void)state;
	arp_nd_destroy(x.a);
	arp_nd_destroy(y.a);
	return 0;
}

struct arp_nd_stats
rig_stats(struct end *e)
{
	struct arp_nd_stats s;

	arp_nd_stats(e->a, &s);
	return s;
}

static uint64_t
frames_counted(struct end *e)
{
	struct arp_nd_stats s = rig_stats(e);

	return s.arp_requests + s.arp_answers + s.nd_requests + s.nd_answers + s.echo_requests +
	       s.group_queries + s.not_ours + s.other_protocol + s.malformed + s.spoofed +
	       s.unasked + s.limited;
}

int
rig_lookup(const uint8_t gid[16], uint16_t vlan, uint8_t mac[6])
{
	struct arp_nd_hop hop;

	return arp_nd_lookup(x.a, gid, vlan, now, mac, &hop);
}

void
rig_run(uint64_t ns)
{
	for (uint64_t end = now + ns; now < end; now += 50 * MS) {
		if (now >= arp_nd_due(x.a))
			arp_nd_tick(x.a, now);
		if (now >= arp_nd_due(y.a))
			arp_nd_tick(y.a, now);
	}
}

uint32_t
frame_ether(uint8_t *f, const uint8_t *dst, const uint8_t *src, int vlan, uint16_t type)
{
	uint32_t n = 12;

	memcpy(f, dst, 6);
	memcpy(f + 6, src, 6);
	if (vlan >= 0) {
		const uint8_t tag[4] = {0x81, 0, (uint8_t)(vlan >> 8), (uint8_t)vlan};

		memcpy(f + n, tag, 4);
		n += 4;
	}
	f[n++] = (uint8_t)(type >> 8);
	f[n++] = (uint8_t)type;
	return n;
}

uint32_t
frame_arp(uint8_t *f, const uint8_t *dst, int vlan, uint8_t op, const uint8_t *sha,
	  const uint8_t *spa, const uint8_t *tpa)
{
	static const uint8_t head[7] = {0, 1, 8, 0, 6, 4, 0};
	uint32_t n = frame_ether(f, dst, z_mac, vlan, 0x0806);

	memcpy(f + n, head, 7);
	f[n + 7] = op;
	memcpy(f + n + 8, sha, 6);
	memcpy(f + n + 14, spa, 4);
	memset(f + n + 18, 0, 6);
	memcpy(f + n + 24, tpa, 4);
	return n + 28;
}

void
rig_put(const uint8_t *f, uint32_t len)
{
	/* an exact copy, so that sanitizers detect reads beyond its end */
	uint8_t *exact = malloc(len ? len : 1);
	uint64_t before = frames_counted(&x);

	memcpy(exact, f, len);
	arp_nd_input(x.a, exact, len, now);
	free(exact);
	assert_int_equal(frames_counted(&x), before + 1);
}

/* Write an ICMPv6 frame; sum: added to the correct checksum. */
uint32_t
frame_icmp6(uint8_t *f, const uint8_t *dst_mac, const uint8_t *src, const uint8_t *dst,
	    const uint8_t *body, uint32_t len, uint8_t hops, unsigned int wrong)
{
	struct rte_ipv6_hdr ip = {.vtc_flow = rte_cpu_to_be_32(6u << 28),
				  .payload_len = rte_cpu_to_be_16((uint16_t)len),
				  .proto = 58,
				  .hop_limits = hops};
	uint32_t n = frame_ether(f, dst_mac, z_mac, -1, 0x86dd);
	uint16_t sum;

	memcpy(&ip.src_addr, src, 16);
	memcpy(&ip.dst_addr, dst, 16);
	memcpy(f + n, &ip, 40);
	memcpy(f + n + 40, body, len);
	memset(f + n + 42, 0, 2);
	sum = (uint16_t)(rte_ipv6_udptcp_cksum(&ip, f + n + 40) + wrong);
	memcpy(f + n + 42, &sum, 2);
	return n + 40 + len;
}

uint32_t
frame_nd(uint8_t *f, uint8_t type, uint8_t flags, const uint8_t *src, const uint8_t *target,
	 uint8_t option, uint8_t units, uint8_t hops, unsigned int wrong)
{
	uint8_t body[32] = {type, [4] = flags, [24] = option, units};

	memcpy(body + 8, target, 16);
	memcpy(body + 26, nd_mac, 6);
	return frame_icmp6(f, x_mac, src, x6, body, 32, hops, wrong);
}
