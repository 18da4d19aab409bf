/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_CTL_H
#define HCA_ABI_CTL_H

/*
 * What crosses the control channel between a client (src/lib) and the driver (src/driver): calls
 * inside one process, messages of a unix socket (src/ipc) between two. Flat structures without
 * pointers, host byte order (both ends are on one machine). The driver does not trust it.
 *
 * QP contexts cross as the mailbox of the MODIFY_QP family (T3-2-40); the driver replaces every
 * field a client may not choose.
 */

#include <stdint.h>

#include "abi_ctx.h"

#define HCA_CTL_FDS_MAX 4u

/* What accompanies the structures of a few operations */
struct hca_ctl_extra {
	int fds[HCA_CTL_FDS_MAX]; /* those of the request; after it, those of the answer */
	const uint64_t *pages;	  /* REG_MR: npages page addresses */
};

struct hca_ctl_none {
	uint8_t nothing[0];
};

/* HELLO, the first message to a daemon */
struct hca_ctl_hello {
	uint32_t magic;
	uint32_t reserved;
};

/*
 * With three descriptors: the doorbell page, a page of sleep words to be read, an eventfd that
 * wakes the worker whose word is at sleep_offset: the one that looks at doorbells (struct
 * softhca_ctl_ops, sleep). The eventfd is this client's alone.
 */
struct hca_ctl_welcome {
	uint64_t nonce;
	uint32_t sleep_offset;
	uint32_t reserved;
	char name[32]; /* of the device */
};

/* Page addresses of the next REG_MR, appended to those that came before */
#define HCA_CTL_PAGES_MAX 4000u

struct hca_ctl_pages {
	uint32_t count;
	uint32_t reserved;
	uint64_t page[HCA_CTL_PAGES_MAX];
};

#define HCA_CTL_NO_CHANNEL 0xffffffffu

/* Limits and identity of the device as one client may use it */
struct hca_ctl_info {
	uint64_t board_id;    /* node GUID */
	uint32_t uar_page;    /* page number in BAR2, = DMA domain of the client */
	uint32_t log_num_qps; /* index bits of a QPN; a random tag is above them */
	uint32_t log_num_cqs;
	uint32_t log_max_wqes;	 /* per SQ or RQ */
	uint32_t log_max_cqes;	 /* per CQ */
	uint32_t max_wqe_stride; /* bytes */
	uint32_t max_sge;
	uint32_t max_inline;	     /* bytes */
	uint32_t max_rd_atomic;	     /* requester */
	uint32_t max_dest_rd_atomic; /* responder */
	uint32_t max_mtu;	     /* 1..5 */
	uint32_t num_ports;
	uint32_t gid_entries;
	uint32_t pkey_entries;
	uint32_t max_qps; /* quota of this client; so the next three */
	uint32_t max_cqs;
	uint32_t max_mrs;
	uint32_t max_pds;
	uint32_t ack_delay;
	uint32_t flags; /* capability bits of QUERY_DEV_LIM */
	uint32_t log_num_srqs;
	uint32_t max_srqs; /* quota */
	uint32_t max_xrcds;
	uint32_t max_mcgs;
	uint32_t max_qps_per_mcg;
	uint32_t max_mws;
	uint32_t num_vectors; /* completion vectors: event queues */
};

/* Port; state as verbs numbers it */
struct hca_ctl_port {
	uint64_t speed; /* Mb/s, 0 = unknown */
	uint32_t state;
	uint32_t max_mtu;
	uint32_t active_mtu;
	uint8_t mac[6];
	uint8_t reserved[2];
};

/*
 * Register memory. npages 0: [va, va + length) of the client's own address space, pages chosen by
 * the driver. Otherwise a list of npages page addresses of page_size bytes accompanies this.
 */
struct hca_ctl_mr {
	uint64_t va;
	uint64_t length;
	uint64_t page_size;
	uint64_t npages;
	uint32_t pdn;
	uint32_t access;		   /* T3-2-19, low byte; and this: */
#define HCA_CTL_ACCESS_FOREIGN 0x80000000u /* not attached: through the memory that was given */
};

/*
 * ATTACH: memory a client lets the device reach, [offset, offset + length) of a file of shared
 * memory, which lies at va in the client. Answered with a handle for DETACH, which is -EBUSY while
 * regions or queues lie there. The file is a memfd sealed against shrinking (F_SEAL_SHRINK), open
 * for reading and writing, without holes in the segment. Up to HCA_CTL_SMALL_FILE the daemon seals
 * it against growing, and a client with a hole there ends; larger ones it seals against writers
 * that come later (F_SEAL_FUTURE_WRITE): no holes, and no second device.
 *
 * MEMORY brings /proc/self/mem, open for reading and writing, and /proc/self/maps, once; from then
 * on regions may have HCA_CTL_ACCESS_FOREIGN.
 */
#define HCA_CTL_SMALL_FILE (UINT64_C(4) << 20)

struct hca_ctl_segment {
	uint64_t va;
	uint64_t length;
	uint64_t offset;
};

/*
 * Change a region. flags: which members of mr count, as verbs numbers them. On error the region is
 * what it was.
 */
struct hca_ctl_rereg {
	uint32_t lkey;
	uint32_t flags;
#define HCA_CTL_REREG_TRANSLATION (1u << 0) /* va, length */
#define HCA_CTL_REREG_PD (1u << 1)
#define HCA_CTL_REREG_ACCESS (1u << 2)
	struct hca_ctl_mr mr;
};

/*
 * A memory window; it counts as a region in the quota. Answered with its rkey; any tag of its key
 * frees it.
 */
struct hca_ctl_mw {
	uint32_t pdn;
	uint32_t type; /* as verbs numbers it */
#define HCA_CTL_MW_TYPE_1 1u
#define HCA_CTL_MW_TYPE_2 2u
};

/* Keys of a region */
struct hca_ctl_keys {
	uint32_t lkey;
	uint32_t rkey;
};

/* CQ: 2^log_size CQEs at addr (4 KiB aligned), followed by 128 bytes of CQ record */
struct hca_ctl_cq {
	uint64_t addr;
	uint32_t log_size;
	uint32_t channel; /* HCA_CTL_NO_CHANNEL = none */
	uint32_t vector;  /* below num_vectors */
	uint32_t reserved;
};

/*
 * A new buffer for a CQ. Answered with the index of the first completion in it; -EINVAL: more
 * completions wait than it holds.
 */
struct hca_ctl_resize {
	uint32_t cqn;
	uint32_t log_size;
	uint64_t addr;
};

struct hca_ctl_moderate {
	uint32_t cqn;
	uint16_t count;
	uint16_t period_us;
};

/*
 * QP: SQ of 2^log_sq WQEs of 2^log_sq_stride bytes at sq_addr, RQ alike with 128 bytes of producer
 * record behind it; both 4 KiB aligned.
 */
struct hca_ctl_qp {
	uint64_t sq_addr;
	uint64_t rq_addr;
	uint32_t pdn;
	uint32_t service; /* enum hca_service */
	uint32_t send_cqn;
	uint32_t recv_cqn;
	uint8_t log_sq;
	uint8_t log_sq_stride;
	uint8_t log_rq;
	uint8_t log_rq_stride;
	uint32_t srqn; /* 0 = a receive queue of its own, where the service has one */
	uint32_t xrcd; /* XRC_TGT */
	uint32_t reserved;
};

/*
 * opcode: one of the MODIFY_QP family. Without a mailbox: 2RST and 2ERR. Fields a client may not
 * choose are taken from the driver's tables; addresses are resolved by it.
 */
struct hca_ctl_modify {
	uint32_t qpn;
	uint32_t opcode;
	uint32_t has_mailbox;
	uint32_t reserved;
	struct hca_qpc mailbox;
};

/* Multicast group of a UD QP, mgid in network order */
struct hca_ctl_mcast {
	uint32_t qpn;
	uint32_t attach; /* 0: leave the group */
	uint8_t mgid[16];
};

/* SRQ: 2^log_size WQEs of 2^log_stride bytes at addr (4 KiB aligned), producer record behind. */
struct hca_ctl_srq {
	uint64_t addr;
	uint32_t pdn;
	uint32_t limit;
	uint32_t xrcd; /* 0 = not XRC */
	uint32_t cqn;  /* XRC */
	uint8_t log_size;
	uint8_t log_stride;
	uint8_t max_sge;
	uint8_t reserved;
};

struct hca_ctl_arm {
	uint32_t srqn;
	uint32_t limit;
};

struct hca_ctl_srq_state {
	uint32_t limit;
	uint32_t error; /* 1: SRQ_CATAS was raised */
};

/* One entry of the GID table. valid 0: empty. */
struct hca_ctl_gid {
	uint8_t gid[16];
	uint8_t mac[6];
	uint16_t vlan_id; /* 0xffff: none */
	uint32_t valid;
};

/*
 * Resolve: which MAC addresses the path of a datagram to dgid has: multicast by rule, the port's
 * own, or what is known. -EHOSTUNREACH
 */
struct hca_ctl_ah {
	uint8_t dgid[16];
	uint32_t sgid_index;
	uint8_t dmac[6]; /* out */
	uint8_t smac[6]; /* out */
};

/* Counters: of the device, of one QP of the client (QPN), of a port. */
enum hca_ctl_counters_of {
	HCA_CTL_COUNTERS_DEVICE,
	HCA_CTL_COUNTERS_QP,
	HCA_CTL_COUNTERS_PORT,
};

/* At most max are answered with. A QP in RESET has zeros. */
struct hca_ctl_count {
	uint32_t of;	 /* enum hca_ctl_counters_of */
	uint32_t number; /* QPN or port */
	uint32_t max;
	uint32_t reserved;
};

struct hca_ctl_counter {
	char name[48];
	uint64_t value;
};

#define HCA_CTL_COUNTERS_MAX 512u /* more than any device has */

struct hca_ctl_counters {
	uint32_t total; /* how many there are */
	uint32_t reserved;
	struct hca_ctl_counter counter[HCA_CTL_COUNTERS_MAX];
};

/* Events the driver itself raises, about port 1; numbers T3-2-25 does not use, below 32. */
#define HCA_CTL_EVENT_PKEY_CHANGE 0x1cu
#define HCA_CTL_EVENT_GID_CHANGE 0x1du

/*
 * Event channels are pipes; the client reads events and closes its end, the driver's never blocks.
 * Channel 0, which ASYNC_FD answers with, once, is the asynchronous one and exists from the start.
 *
 * What is read from a completion channel (type COMP 0) and from the asynchronous one (T3-2-25 or
 * HCA_CTL_EVENT_*)
 */
struct hca_ctl_event {
	uint32_t type;
	uint32_t object; /* CQN, QPN or port */
	uint32_t subtype;
	uint32_t reserved;
};

#endif
