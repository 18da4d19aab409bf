/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>

#include <dpdk_compat.h>
#include <rte_ip.h>

#include "abi_addr.h"
#include "group_rig.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0x0a}, querier_mac[6] = {2, 0, 0, 0, 0, 0x0c};

struct arp_nd *group_host;
struct sent *sent;
unsigned int num;
uint64_t now;

static uint32_t
take_ip4(struct sent *s, const uint8_t *p, uint32_t len)
{
	uint32_t total = (uint32_t)p[2] << 8 | p[3];

	assert_int_equal(p[0], 0x46);
	assert_int_equal(p[1], 0xc0);
	assert_true(total <= len);
	assert_int_equal(p[8], 1);
	assert_int_equal(p[9], 2);
	assert_int_equal(rte_raw_cksum(p, 24), 0xffff);
	assert_memory_equal(p + 20, "\x94\x04\0\0", 4);
	hca_gid_from_ip4(s->src, p + 12);
	hca_gid_from_ip4(s->dst, p + 16);
	s->v4 = true;
	s->len = total - 24;
	assert_int_equal(rte_raw_cksum(p + 24, s->len), 0xffff);
	return 24;
}

static uint32_t
take_ip6(struct sent *s, const uint8_t *p, uint32_t len)
{
	uint32_t payload = (uint32_t)p[4] << 8 | p[5];
	struct rte_ipv6_hdr ip;

	assert_int_equal(p[0], 0x60);
	assert_int_equal(payload, len - 40);
	assert_int_equal(p[6], 0);
	assert_int_equal(p[7], 1);
	assert_memory_equal(p + 40, "\x3a\0\x05\x02\0\0\x01\0", 8);
	memcpy(s->src, p + 8, 16);
	memcpy(s->dst, p + 24, 16);
	s->len = payload - 8;
	memcpy(&ip, p, 40);
	ip.proto = 58;
	ip.payload_len = rte_cpu_to_be_16((uint16_t)s->len);
	assert_int_equal(rte_ipv6_udptcp_cksum(&ip, p + 48), 0);
	return 48;
}

static bool
is_group_frame(const uint8_t *frame, uint32_t l3, uint16_t type)
{
	return (type == 0x0800 && frame[l3 + 9] == 2) || (type == 0x86dd && frame[l3 + 6] == 0);
}

static void
on_send(void *arg, const uint8_t *frame, uint32_t len)
{
	uint32_t l3 = 14;
	uint16_t type = (uint16_t)(frame[12] << 8 | frame[13]);
	struct sent *s = &sent[num % KEPT];

	(void)arg;
	memset(s, 0, sizeof(*s));
	s->at = now;
	s->vlan_id = NONE;
	assert_true(len >= 60 && len <= 1518);
	if (type == 0x8100) {
		l3 = 18;
		s->vlan_id = (uint16_t)(frame[14] << 8 | frame[15]);
		type = (uint16_t)(frame[16] << 8 | frame[17]);
	}
	if (!is_group_frame(frame, l3, type))
		return;
	num++;
	memcpy(s->dmac, frame, 6);
	assert_memory_equal(frame + 6, mac, 6);
	l3 += type == 0x0800 ? take_ip4(s, frame + l3, len - l3)
			     : take_ip6(s, frame + l3, len - l3);
	memcpy(s->message, frame + l3, s->len);
}

void
rig_run(uint64_t ns)
{
	for (uint64_t end = now + ns; now < end; now += 50 * MS)
		if (now >= arp_nd_due(group_host))
			arp_nd_tick(group_host, now);
}

void
rig_settle(uint64_t ns)
{
	rig_run(ns);
	num = 0;
}

int
rig_setup_new(void **state)
{
	static const struct arp_nd_address own[] = {
		{V4(10, 0, 0, 1), 24, NONE},
		{{0x20, 1, 0xd, 0xb8, [15] = 1}, 64, NONE},
		{V4(10, 0, 7, 1), 24, 7},
		{{0xfe, 0x80, [15] = 0x70}, 64, 7},
		{{0x20, 1, 0xd, 0xb8, 0, 0, 0, 9, [15] = 1}, 64, 9}, /* no IPv4 in this VLAN */
	};
	struct arp_nd_config cfg = {.addresses = own, .num_addresses = 5, .send = on_send};

	(void)state;
	memcpy(cfg.mac, mac, 6);
	cfg.seed = 0x5eed;
	now = 100 * SECOND;
	sent = calloc(KEPT, sizeof(*sent));
	assert_non_null(sent);
	assert_int_equal(arp_nd_create(&cfg, &group_host), 0);
	num = 0;
	return 0;
}

int
rig_setup(void **state)
{
	(void)rig_setup_new(state);
	rig_settle(3 * SECOND);
	return 0;
}

int
rig_teardown(void **state)
{
	(void)state;
	arp_nd_destroy(group_host);
	free(sent);
	return 0;
}

int
rig_join(const uint8_t gid[16], uint16_t vlan_id)
{
	struct arp_nd_hop g = {.vlan_id = vlan_id};

	memcpy(g.gid, gid, 16);
	return arp_nd_join(group_host, &g, now);
}

int
rig_leave(const uint8_t gid[16], uint16_t vlan_id)
{
	struct arp_nd_hop g = {.vlan_id = vlan_id};

	memcpy(g.gid, gid, 16);
	return arp_nd_leave(group_host, &g, now);
}

struct arp_nd_stats
rig_stats(void)
{
	struct arp_nd_stats s;

	arp_nd_stats(group_host, &s);
	return s;
}

void
rig_report(const struct sent *s, unsigned int count, uint8_t type, const uint8_t group[16])
{
	static const uint8_t routers4[16] = V4(224, 0, 0, 22),
			     routers6[16] = {0xff, 2, [15] = 0x16};
	uint32_t size = s->v4 ? 8 : 20;

	assert_int_equal(s->v4, hca_gid_is_mapped(group));
	assert_memory_equal(s->dst, s->v4 ? routers4 : routers6, 16);
	assert_memory_equal(s->dmac, s->v4 ? "\x01\0\x5e\0\0\x16" : "\x33\x33\0\0\0\x16", 6);
	assert_int_equal(s->message[0], s->v4 ? 0x22 : 143);
	assert_int_equal(s->message[6] << 8 | s->message[7], count);
	assert_int_equal(s->len, 8 + count * size);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *r = s->message + 8 + i * size;

		assert_int_equal(r[1] | r[2] | r[3], 0); /* no sources, no auxiliary data */
		if (r[0] == type && memcmp(r + 4, s->v4 ? group + 12 : group, s->v4 ? 4 : 16) == 0)
			return;
	}
	fail_msg("the group is not in the report");
}

/* ---- frames of a querier ---- */

static uint32_t
ether(uint8_t *f, const uint8_t dst[16], uint16_t vlan_id, uint16_t type)
{
	uint32_t n = 12;

	hca_gid_multicast_mac(dst, f);
	memcpy(f + 6, querier_mac, 6);
	if (vlan_id != NONE) {
		memcpy(f + n, "\x81\0", 2);
		f[n + 2] = (uint8_t)(vlan_id >> 8);
		f[n + 3] = (uint8_t)vlan_id;
		n += 4;
	}
	f[n] = (uint8_t)(type >> 8);
	f[n + 1] = (uint8_t)type;
	return n + 2;
}

void
rig_put(const uint8_t *f, uint32_t len)
{
	uint8_t *exact = malloc(len ? len : 1);

	memcpy(exact, f, len);
	arp_nd_input(group_host, exact, len, now);
	free(exact);
}

uint32_t
rig_igmp(uint8_t *f, uint16_t vlan_id, const uint8_t dst[16], const uint8_t *message, uint32_t len)
{
	uint32_t l3 = ether(f, dst, vlan_id, 0x0800);
	uint8_t ip[24] = {0x46, 0xc0, 0, (uint8_t)(24 + len), 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, 9};
	uint16_t sum;

	memcpy(ip + 16, dst + 12, 4);
	memcpy(ip + 20, "\x94\x04\0\0", 4);
	sum = (uint16_t)~rte_raw_cksum(ip, 24);
	memcpy(ip + 10, &sum, 2);
	memcpy(f + l3, ip, 24);
	memcpy(f + l3 + 24, message, len);
	sum = (uint16_t)~rte_raw_cksum(f + l3 + 24, len);
	memcpy(f + l3 + 26, &sum, 2);
	return l3 + 24 + len;
}

uint32_t
rig_mld(uint8_t *f, uint16_t vlan_id, const uint8_t dst[16], const uint8_t *message, uint32_t len)
{
	uint32_t l3 = ether(f, dst, vlan_id, 0x86dd);
	struct rte_ipv6_hdr ip = {.vtc_flow = rte_cpu_to_be_32(6u << 28),
				  .payload_len = rte_cpu_to_be_16((uint16_t)len),
				  .proto = 58,
				  .hop_limits = 1};
	uint8_t src[16] = {0xfe, 0x80, [15] = 9};
	uint16_t sum;

	memcpy(&ip.src_addr, src, 16);
	memcpy(&ip.dst_addr, dst, 16);
	memcpy(f + l3 + 40, "\x3a\0\x05\x02\0\0\x01\0", 8);
	memcpy(f + l3 + 48, message, len);
	memset(f + l3 + 50, 0, 2);
	sum = rte_ipv6_udptcp_cksum(&ip, f + l3 + 48);
	memcpy(f + l3 + 50, &sum, 2);
	ip.proto = 0;
	ip.payload_len = rte_cpu_to_be_16((uint16_t)(len + 8));
	memcpy(f + l3, &ip, 40);
	return l3 + 48 + len;
}

void
rig_igmp_query(uint16_t vlan_id, const uint8_t *group, uint8_t code, uint32_t len)
{
	static const uint8_t all[16] = V4(224, 0, 0, 1);
	uint8_t f[128], message[16] = {0x11, code};

	if (group != NULL)
		memcpy(message + 4, group + 12, 4);
	rig_put(f, rig_igmp(f, vlan_id, group != NULL ? group : all, message, len));
}

void
rig_mld_query(uint16_t vlan_id, const uint8_t *group, uint16_t code, uint32_t len)
{
	static const uint8_t all[16] = {0xff, 2, [15] = 1};
	uint8_t f[160], message[32] = {130, 0, 0, 0, (uint8_t)(code >> 8), (uint8_t)code};

	if (group != NULL)
		memcpy(message + 8, group, 16);
	rig_put(f, rig_mld(f, vlan_id, group != NULL ? group : all, message, len));
}
