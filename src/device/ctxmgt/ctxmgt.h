/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTXMGT_CTXMGT_H
#define CTXMGT_CTXMGT_H

/*
 * Context management: the key-QPC store and the CQ table in hugepages, the map of ICM (owner memory
 * that mirrors the contexts), DMA windows, and the port's address tables.
 *
 * Owner: the CEU. All calls are made on the CEU's lcore, except hca_ctxmgt_init/fini (hca_create)
 * and hca_dma_attach/detach (hca.h, any thread; a lock excludes the CEU's checks, which are not in
 * the data path).
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_spinlock.h>

#include "abi_addr.h"
#include "abi_cmd.h"
#include "abi_ctx.h"
#include "ctxmgt/mcast.h"

struct hca_core;

#define HCA_DMA_WINDOWS 4096u
#define HCA_DMA_DOMAINS 2048u /* domain 0: driver; p: UAR page p */
#define HCA_GID_ENTRIES_LOG 4u
#define HCA_GID_ENTRIES (1u << HCA_GID_ENTRIES_LOG)
#define HCA_PKEY_ENTRIES_LOG 4u
#define HCA_PKEY_ENTRIES (1u << HCA_PKEY_ENTRIES_LOG)
#define HCA_NEIGH_ENTRIES 1024u
#define HCA_ICM_CHUNKS 65536u
#define HCA_RD_ATOMIC_MAX 32u /* requester and responder limit of a QP */

struct hca_dma_window {
	uint64_t bus, len;
	uint32_t domain;
};

struct hca_dma {
	rte_spinlock_t lock;
	uint32_t count;
	struct hca_dma_window window[HCA_DMA_WINDOWS];
};

/* A mapped chunk of ICM; each map is sorted by virt, without overlaps. */
struct hca_icm_chunk {
	uint64_t virt, bus;
	uint32_t pages;
};

struct hca_icm_map {
	struct hca_icm_chunk *chunk;
	uint32_t count, room;
};

/* Context tables in ICM, tables 3-2-9 and 3-2-10. X(ENUM, map, entry size) */
#define HCA_ICM_TABLE_LIST(X) \
	X(QPC, CTX, HCA_QPC_SIZE) \
	X(CQC, CTX, HCA_CQC_SIZE) \
	X(EQC, CTX, HCA_EQC_SIZE) \
	X(SRQC, CTX, HCA_SRQC_SIZE) \
	X(MPT, TPT, HCA_MPT_SIZE) \
	X(MTT, TPT, HCA_MTT_SIZE)

enum hca_icm_table {
#define X(e, map, size) HCA_ICM_##e,
	HCA_ICM_TABLE_LIST(X)
#undef X
	HCA_ICM_TABLE_N
};

/* Read by the parser and encap (UD): changed only while not valid and after a round. */
struct hca_gid_entry {
	uint8_t gid[16];
	uint8_t mac[6];
	uint16_t vlan_id; /* HCA_NO_VLAN: none */
	uint8_t ip_version;
	uint8_t valid; /* [pub] */
};

#define HCA_NO_VLAN 0xffffu

struct hca_neigh_entry {
	uint8_t gid[16];
	uint8_t mac[6];
	uint8_t sgid_index;
	uint8_t valid;
};

struct hca_ctxmgt {
	bool ready; /* true between INIT_HCA and CLOSE_HCA */
	uint64_t base[HCA_ICM_TABLE_N];
	uint32_t count[HCA_ICM_TABLE_N]; /* entries of each table; 0 before INIT_HCA */
	struct hca_icm_map map[3];	 /* by op_modifier: HCA_ICM_CTX, HCA_ICM_TPT */
	uint64_t gid_changes;		 /* [pub] from 1 on */
	struct hca_gid_entry gid[HCA_GID_ENTRIES];
	uint16_t pkey[HCA_PKEY_ENTRIES];
	struct hca_neigh_entry neigh[HCA_NEIGH_ENTRIES];
	uint32_t gsi_qpn; /* [pub] CONF_SPECIAL_QP, 0 = off */
	struct hca_mcast_group mcast[HCA_MCAST_GROUPS];
	uint32_t mcast_end; /* [pub] entries from here on are unused */
	struct hca_dma dma;
};

int hca_ctxmgt_init(struct hca_core *h);
void hca_ctxmgt_fini(struct hca_core *h);

/*
 * Add or remove a window of a domain, for hca_dma_attach() and hca_dma_detach(), which handle all
 * that depends on it. *first, *last: the domain had no other. 0, -EINVAL, -ENOSPC, -ENOENT.
 */
int hca_dma_window_add(struct hca_core *h, uint32_t domain, uint64_t bus, uint64_t len,
		       bool *first);
int hca_dma_window_remove(struct hca_core *h, uint32_t domain, uint64_t bus, uint64_t len,
			  bool *last);
/* May the device touch [bus, bus + len) for domain? Adjacent windows of a domain join. */
bool hca_dma_allowed(struct hca_core *h, uint32_t domain, uint64_t bus, uint64_t len);

/* ---- ICM (icm.c) ---- */

/* n checked entries; all or none. enum hca_stat. */
int hca_icm_map_chunks(struct hca_core *h, uint32_t type, const struct hca_icm_chunk *c,
		       uint32_t n);
/* Is entry index of the table in use? Implemented by the rooms that own the objects. */
typedef bool (*hca_icm_live_fn)(const struct hca_core *h, enum hca_icm_table t, uint32_t index);
/* Whole chunks without a live entry; enum hca_stat. */
int hca_icm_unmap(struct hca_core *h, uint32_t type, uint64_t virt, uint32_t pages,
		  hca_icm_live_fn live);
void hca_icm_unmap_all(struct hca_core *h);
/* Is entry index of the table backed by memory? */
bool hca_icm_mapped(const struct hca_core *h, enum hca_icm_table t, uint64_t index);
/* Mirror an entry into owner memory; false when it is not mapped. */
bool hca_icm_write(struct hca_core *h, enum hca_icm_table t, uint64_t index, const void *entry);

/* ---- addresses (addr.c) ---- */

/* Set the state after power on: no GIDs, no neighbours, the default P_Key at index 0. */
void hca_addr_reset(struct hca_ctxmgt *c);
/*
 * Check the mailbox; returns enum hca_stat. hca_gid_put() fills in the entry, hca_gid_clear()
 * clears it.
 */
int hca_gid_check(const struct hca_ctxmgt *c, const struct hca_mbox_set_gid *m);
void hca_gid_clear(struct hca_ctxmgt *c, uint32_t index);
void hca_gid_put(struct hca_ctxmgt *c, const struct hca_mbox_set_gid *m);
int hca_pkey_set(struct hca_ctxmgt *c, const struct hca_mbox_set_pkey *m);
int hca_neigh_set(struct hca_ctxmgt *c, const struct hca_mbox_set_neigh *m);
/* MAC of an own address or of a neighbour; NULL: neither. */
const uint8_t *hca_addr_mac(const struct hca_ctxmgt *c, const uint8_t gid[16]);
/* An own address in this VLAN, 0: in none. */
bool hca_gid_is_own(const struct hca_ctxmgt *c, const uint8_t gid[16], uint16_t vlan);

/* The entry; NULL: it is not valid. Any lcore. */
static inline const struct hca_gid_entry *
hca_gid_get(const struct hca_ctxmgt *c, uint32_t index)
{
	return index < HCA_GID_ENTRIES && __atomic_load_n(&c->gid[index].valid, __ATOMIC_ACQUIRE)
		       ? &c->gid[index]
		       : NULL;
}

/* IPv4-mapped and neither 0.0.0.0, multicast nor broadcast. */
static inline bool
hca_gid_is_ip4(const uint8_t gid[16])
{
	return hca_gid_is_mapped(gid) && gid[12] != 0 && gid[12] < 224;
}

/* Whether it is an IPv6 unicast address: not IPv4-mapped, unspecified, loopback or multicast. */
static inline bool
hca_gid_is_ip6(const uint8_t gid[16])
{
	static const uint8_t zero[15];

	return !hca_gid_is_mapped(gid) && gid[0] != 0xff &&
	       (memcmp(gid, zero, sizeof(zero)) != 0 || gid[15] > 1);
}

#endif
