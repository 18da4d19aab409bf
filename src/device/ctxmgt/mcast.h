/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTXMGT_MCAST_H
#define CTXMGT_MCAST_H

/*
 * Multicast groups and their UD QPs. Written by the CEU (MCAST_ATTACH, MCAST_DETACH, destruction of
 * a QP), read by decap. A member is one word, 0 for none; a group that has lost its last member
 * keeps its entry until a round has passed.
 */

#include <stdint.h>

#define HCA_MCAST_GROUPS_LOG 8u
#define HCA_MCAST_GROUPS (1u << HCA_MCAST_GROUPS_LOG)
#define HCA_MCAST_MEMBERS 64u

enum hca_mcast_state {
	HCA_MCAST_FREE = 0,
	HCA_MCAST_LIVE = 1,
	HCA_MCAST_DYING = 2, /* a round must pass before the entry is reused */
};

struct hca_mcast_group {
	uint32_t state; /* [pub] enum hca_mcast_state */
	uint32_t used;	/* CEU: number of members */
	uint8_t mgid[16];
	uint32_t qpn[HCA_MCAST_MEMBERS]; /* [pub] */
};

struct hca_core;

/* Group of an address in network order (IPv4 as ::ffff:a.b.c.d), or NULL. Any lcore. */
const struct hca_mcast_group *hca_mcast_find(const struct hca_core *h, const uint8_t mgid[16]);

/* CEU; all return enum hca_stat. */
int hca_mcast_attach(struct hca_core *h, const uint8_t mgid[16], uint32_t qpn);
int hca_mcast_detach(struct hca_core *h, const uint8_t mgid[16], uint32_t qpn);
/* The QP leaves all its groups: before the rounds that end it. */
void hca_mcast_forget(struct hca_core *h, uint32_t qpn);
/* Groups that were DYING when a round began are free after it. */
void hca_mcast_reap(struct hca_core *h);

#endif
