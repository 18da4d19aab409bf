/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The built-in responder for ARP, ND, ICMP, IGMP and MLD on a segment whose stations are the input,
 * a list of steps; a byte names the step (its low two bits) and its parameters:
 *
 *  0  u16 n, n bytes: a frame; step byte & 4: to our MAC address, & 8: checksums are corrected
 *  1  u8: time passes, its square in units of 1 ms
 *  2  u8: a group is joined, & 1: left, & 2: in the VLAN
 *  3  u8: the next hop to a host is looked for
 *
 * Each frame is counted once and answered by at most one, no longer than it but for padding; frames
 * leave with our MAC address; a tick sends a bounded number.
 */

#include <stdlib.h>
#include <string.h>

#include <dpdk_compat.h>
#include <rte_ip.h>

#include "arp_nd.h"
#include "fuzz.h"

#define FRAME_MAX 2048u
#define STEPS_MAX 256u
#define MS UINT64_C(1000000)
#define PADDED 64u /* the shortest frame, with a VLAN tag */
#define TICK_FRAMES 4096u
#define VLAN 7u

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};
static unsigned int sent;
static uint32_t longest;

static void
on_send(void *arg, const uint8_t *frame, uint32_t len)
{
	fuzz_check(len >= 42 && len <= ARP_ND_FRAME_MAX, "a frame of %u bytes", len);
	fuzz_check(memcmp(frame + 6, our_mac, 6) == 0, "not from us");
	sent++;
	longest = len > longest ? len : longest;
}

static void
on_change(void *arg, const struct arp_nd_hop *hop, const uint8_t *mac)
{
	fuzz_check(mac == NULL || (mac[0] & 1) == 0, "a hop at a group");
}

static uint64_t
counted(const struct arp_nd *a)
{
	struct arp_nd_stats s;

	arp_nd_stats(a, &s);
	return s.arp_requests + s.arp_answers + s.nd_requests + s.nd_answers + s.echo_requests +
	       s.group_queries + s.not_ours + s.other_protocol + s.malformed + s.spoofed +
	       s.unasked + s.limited;
}

/* ---- checksums ---- */

static void
correct_ip4(uint8_t *p, uint32_t len)
{
	uint32_t header = (p[0] & 0xfu) * 4, total = (uint32_t)p[2] << 8 | p[3];
	uint16_t sum;

	if (header < 20 || total > len || total < header + 4)
		return;
	memset(p + 10, 0, 2);
	sum = (uint16_t)~rte_raw_cksum(p, header);
	memcpy(p + 10, &sum, 2);
	memset(p + header + 2, 0, 2);
	sum = (uint16_t)~rte_raw_cksum(p + header, total - header);
	memcpy(p + header + 2, &sum, 2);
}

static void
correct_ip6(uint8_t *p, uint32_t len)
{
	uint32_t payload = (uint32_t)p[4] << 8 | p[5], header = p[6] == 0 ? (p[41] + 1u) * 8 : 0;
	struct rte_ipv6_hdr ip;
	uint16_t sum;

	if (payload + 40 > len || payload < header + 4)
		return;
	memcpy(&ip, p, sizeof(ip));
	ip.proto = 58;
	ip.payload_len = rte_cpu_to_be_16((uint16_t)(payload - header));
	memset(p + 40 + header + 2, 0, 2);
	sum = rte_ipv6_udptcp_cksum(&ip, p + 40 + header);
	memcpy(p + 40 + header + 2, &sum, 2);
}

static void
correct(uint8_t *f, uint32_t len)
{
	uint32_t l3 = len >= 18 && f[12] == 0x81 && f[13] == 0 ? 18 : 14;

	if (len < l3 + 44)
		return;
	if (f[l3 - 2] == 8 && f[l3 - 1] == 0)
		correct_ip4(f + l3, len - l3);
	else if (f[l3 - 2] == 0x86 && f[l3 - 1] == 0xdd)
		correct_ip6(f + l3, len - l3);
}

/* ---- steps ---- */

static void
put_frame(struct arp_nd *a, struct fuzz_input *in, uint8_t step, uint64_t now)
{
	size_t n, max = fuzz_u16(in) % (FRAME_MAX + 1);
	const uint8_t *bytes = fuzz_bytes(in, max, &n);
	uint8_t *exact = malloc(n + 1);
	uint64_t before = counted(a);

	fuzz_check(exact != NULL, "no memory");
	memcpy(exact, bytes, n);
	if ((step & 4) != 0 && n >= 6)
		memcpy(exact, our_mac, 6);
	if ((step & 8) != 0)
		correct(exact, (uint32_t)n);
	sent = longest = 0;
	arp_nd_input(a, exact, (uint32_t)n, now);
	/* an announcement of a known hop is followed by two questions */
	fuzz_check(sent <= 2, "a frame is answered by %u", sent);
	fuzz_check(longest <= n + PADDED, "%u bytes for %zu", longest, n);
	fuzz_check(counted(a) == before + 1, "a frame counts %u times",
		   (unsigned int)(counted(a) - before));
	free(exact);
}

static void
pass_time(struct arp_nd *a, uint64_t ms, uint64_t *now)
{
	for (uint64_t end = *now + ms * MS; *now < end; *now += 50 * MS) {
		sent = 0;
		arp_nd_tick(a, *now);
		fuzz_check(sent <= TICK_FRAMES, "a tick sends %u frames", sent);
	}
}

static void
change_group(struct arp_nd *a, uint8_t step, uint8_t which, uint64_t now)
{
	struct arp_nd_hop group = {.gid = {[10] = 0xff, 0xff, 239, 1, 0, which},
				   .vlan_id = step & 16 ? VLAN : ARP_ND_NO_VLAN};

	if (which & 1) {
		memset(group.gid, 0, sizeof(group.gid));
		group.gid[0] = 0xff;
		group.gid[1] = which & 0xf;
		group.gid[15] = which;
	}
	if (step & 4)
		(void)arp_nd_leave(a, &group, now);
	else
		(void)arp_nd_join(a, &group, now);
}

static void
look_for(struct arp_nd *a, uint8_t step, uint8_t host, uint64_t now)
{
	uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, host}, mac[6];
	struct arp_nd_hop hop;

	if (step & 4)
		memcpy(gid, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0", 15);
	(void)arp_nd_lookup(a, gid, step & 8 ? VLAN : ARP_ND_NO_VLAN, now, mac, &hop);
}

static struct arp_nd *
make(void)
{
	static const struct arp_nd_address own[] = {
		{{[10] = 0xff, 0xff, 10, 0, 0, 1}, 24, ARP_ND_NO_VLAN},
		{{0x20, 1, 0xd, 0xb8, [15] = 1}, 64, ARP_ND_NO_VLAN},
		{{[10] = 0xff, 0xff, 10, 0, 7, 1}, 24, VLAN},
	};
	struct arp_nd_config c = {.addresses = own,
				  .num_addresses = 3,
				  .send = on_send,
				  .changed = on_change,
				  .seed = 1};
	struct arp_nd *a;

	memcpy(c.mac, our_mac, 6);
	fuzz_check(arp_nd_create(&c, &a) == 0, "no memory");
	return a;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	struct arp_nd *a = make();
	uint64_t now = 1000 * MS;

	for (unsigned int i = 0; i < STEPS_MAX && fuzz_left(&in) != 0; i++) {
		uint8_t step = fuzz_u8(&in), value;

		if ((step & 3) == 0) {
			put_frame(a, &in, step, now);
			continue;
		}
		value = fuzz_u8(&in);
		if ((step & 3) == 1)
			pass_time(a, (uint64_t)value * value, &now);
		else if ((step & 3) == 2)
			change_group(a, step, value, now);
		else
			look_for(a, step, value, now);
	}
	arp_nd_leave_all(a, now);
	arp_nd_destroy(a);
	return 0;
}
