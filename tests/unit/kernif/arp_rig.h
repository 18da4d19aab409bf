/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_ARP_RIG_H
#define TESTS_ARP_RIG_H

/* Two responders, x and y, on one simulated wire; z is a stranger whose frames the test builds. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "arp_nd.h"

#define SECOND 1000000000ull
#define MS 1000000ull
#define NONE ARP_ND_NO_VLAN

/* One end of the wire; frames it sends are queued, and the last one is kept. */
struct end {
	struct arp_nd *a;
	struct end *peer;
	bool cut;
	uint8_t last[ARP_ND_FRAME_MAX];
	uint32_t last_len;
	unsigned int sent, changes, lost_hops;
	struct arp_nd_hop hop;
	uint8_t hop_mac[6];
};

extern struct end x, y;
extern uint64_t now;
extern const uint8_t *nd_mac; /* MAC address in the option of frame_nd(): z_mac */

static const uint8_t x_mac[6] = {2, 0, 0, 0, 0, 0x0a}, y_mac[6] = {2, 0, 0, 0, 0, 0x0b};
static const uint8_t z_mac[6] = {2, 0, 0, 0, 0, 0x0c};
static const uint8_t all[6] = {255, 255, 255, 255, 255, 255};
#define V4(a, b, c, d) \
	{ \
		[10] = 0xff, 0xff, a, b, c, d \
	}
#define V6(last) \
	{ \
		0x20, 1, 0xd, 0xb8, [15] = last \
	}
static const uint8_t x4[16] = V4(10, 0, 0, 1), y4[16] = V4(10, 0, 0, 2), z4[16] = V4(10, 0, 0, 3);
static const uint8_t x6[16] = V6(1), y6[16] = V6(2), far4[16] = V4(8, 8, 8, 8);

void rig_make(struct end *e, const uint8_t mac[6], const uint8_t g4[16], const uint8_t g6[16],
	      struct end *peer);
int rig_setup(void **state);
int rig_teardown(void **state);
struct arp_nd_stats rig_stats(struct end *e);
int rig_lookup(const uint8_t gid[16], uint16_t vlan, uint8_t mac[6]);
void rig_run(uint64_t ns);
uint32_t frame_ether(uint8_t *f, const uint8_t *dst, const uint8_t *src, int vlan, uint16_t type);
uint32_t frame_arp(uint8_t *f, const uint8_t *dst, int vlan, uint8_t op, const uint8_t *sha,
		   const uint8_t *spa, const uint8_t *tpa);
void rig_put(const uint8_t *f, uint32_t len);
uint32_t frame_icmp6(uint8_t *f, const uint8_t *dst_mac, const uint8_t *src, const uint8_t *dst,
		     const uint8_t *body, uint32_t len, uint8_t hops, unsigned int wrong);
uint32_t frame_nd(uint8_t *f, uint8_t type, uint8_t flags, const uint8_t *src,
		  const uint8_t *target, uint8_t option, uint8_t units, uint8_t hops,
		  unsigned int wrong);

#endif
