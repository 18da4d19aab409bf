/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_GROUP_RIG_H
#define TESTS_GROUP_RIG_H

/* A responder with addresses in three VLANs, its frames for groups, and a querier. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "arp_nd.h"

#define SECOND 1000000000ull
#define MS 1000000ull
#define NONE ARP_ND_NO_VLAN
#define KEPT 512u

#define V4(a, b, c, d) \
	{ \
		[10] = 0xff, 0xff, a, b, c, d \
	}
static const uint8_t g4[16] = V4(239, 129, 2, 3), h4[16] = V4(224, 0, 1, 129);
static const uint8_t g6[16] = {0xff, 0x15, [14] = 2, 3}, h6[16] = {0xff, 0x05, [15] = 9};
static const uint8_t made_ll[16] = {0xfe, 0x80, [8] = 0, [11] = 0xff, 0xfe, 0, 0, 0x0a};
static const uint8_t own_ll[16] = {0xfe, 0x80, [15] = 0x70};

/* A frame that was sent: its message, and the fields of the headers in front of it. */
struct sent {
	uint64_t at;
	uint16_t vlan_id;
	bool v4;
	uint8_t dmac[6];
	uint8_t src[16], dst[16]; /* GID form */
	uint8_t message[1500];
	uint32_t len;
};

extern struct arp_nd *group_host;
extern struct sent *sent; /* of the last KEPT frames, those after rig_settle() from 0 on */
extern unsigned int num;
extern uint64_t now;

void rig_run(uint64_t ns);
/* The frames of a run are forgotten. */
void rig_settle(uint64_t ns);
int rig_setup_new(void **state);
/* After the groups of the own addresses have been reported. */
int rig_setup(void **state);
int rig_teardown(void **state);
int rig_join(const uint8_t gid[16], uint16_t vlan_id);
int rig_leave(const uint8_t gid[16], uint16_t vlan_id);
struct arp_nd_stats rig_stats(void);
/* A report of IGMPv3 or MLDv2 with count records, of which one says type of group. */
void rig_report(const struct sent *s, unsigned int count, uint8_t type, const uint8_t group[16]);
/* An exact copy, so that sanitizers detect reads beyond its end. */
void rig_put(const uint8_t *f, uint32_t len);
uint32_t rig_igmp(uint8_t *f, uint16_t vlan_id, const uint8_t dst[16], const uint8_t *message,
		  uint32_t len);
uint32_t rig_mld(uint8_t *f, uint16_t vlan_id, const uint8_t dst[16], const uint8_t *message,
		 uint32_t len);
/* group NULL: a general query. len 8: of IGMPv1 (code 0) or IGMPv2. */
void rig_igmp_query(uint16_t vlan_id, const uint8_t *group, uint8_t code, uint32_t len);
/* len 24: of MLDv1, 28: of MLDv2 */
void rig_mld_query(uint16_t vlan_id, const uint8_t *group, uint16_t code, uint32_t len);

#endif
