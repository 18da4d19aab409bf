/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_CTL_H
#define HCA_ABI_CTL_H

/*
 * What crosses the control channel between a client (src/lib) and the driver (src/driver): calls
 * inside one process, messages of a unix socket (src/ipc) between two. Flat structures without
 * pointers, host byte order (both ends are on one machine). The driver believes none of it.
 *
 * QP contexts cross as the mailbox of the MODIFY_QP family (T3-2-40); the driver replaces every
 * field a client may not choose.
 */

#include <stdint.h>

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
 * Memory a client lets the device reach: [offset, offset + length) of a file of shared memory,
 * which lies at va in the client.
 */
struct hca_ctl_segment {
	uint64_t va;
	uint64_t length;
	uint64_t offset;
};

/* What rereg_mr changes; the members of struct hca_ctl_mr that count. As verbs numbers them. */
#define HCA_CTL_REREG_TRANSLATION (1u << 0) /* va, length */
#define HCA_CTL_REREG_PD (1u << 1)
#define HCA_CTL_REREG_ACCESS (1u << 2)

/* Type of a memory window, as verbs numbers it */
#define HCA_CTL_MW_TYPE_1 1u
#define HCA_CTL_MW_TYPE_2 2u

/* Keys of a region */
struct hca_ctl_keys {
	uint32_t lkey;
	uint32_t rkey;
};

/* CQ: 2^log_size CQEs at addr (4 KiB aligned), 128 bytes of CQ record behind the last */
struct hca_ctl_cq {
	uint64_t addr;
	uint32_t log_size;
	uint32_t channel; /* HCA_CTL_NO_CHANNEL = none */
	uint32_t vector;  /* below num_vectors */
	uint32_t reserved;
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

/* Resolve: which MAC address a datagram to dgid goes to. */
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

struct hca_ctl_counter {
	char name[48];
	uint64_t value;
};

/* Events the driver itself raises, about port 1; numbers T3-2-25 does not use, below 32. */
#define HCA_CTL_EVENT_PKEY_CHANGE 0x1cu
#define HCA_CTL_EVENT_GID_CHANGE 0x1du

/*
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
