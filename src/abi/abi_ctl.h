/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_CTL_H
#define HCA_ABI_CTL_H

/*
 * Structures of the control channel between a client (src/lib) and the driver (src/driver): calls
 * inside one process, messages of a unix socket (src/ipc) between two. They are flat, without
 * pointers, in host byte order (both ends are on one machine). The driver does not trust them.
 *
 * QP contexts have the form of the mailbox of the MODIFY_QP family (T3-2-40); the driver replaces
 * every field that a client may not choose.
 */

#include <stdint.h>

#include "abi_cqe.h"
#include "abi_ctx.h"

/* No structure has padding: an answer would carry bytes of the daemon's memory in it. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

#define HCA_CTL_FDS_MAX 4u

/* Data of a few operations in addition to request and answer */
struct hca_ctl_extra {
	int fds[HCA_CTL_FDS_MAX]; /* of the request; after the call, of the answer */
	const uint64_t *pages;	  /* REG_MR, REREG_MR: npages page addresses */
};

struct hca_ctl_none {
	uint8_t nothing[0];
};

/*
 * Versions of one end in addition to the one in the head of its message (abi_ops.h). Libraries and
 * daemons of version 7.0 send 0, which means the same, and do not read it.
 */
struct hca_ctl_offer {
	uint8_t older;	   /* number of older versions that it also supports */
	uint8_t minor;	   /* of that version */
	uint16_t features; /* HCA_CTL_FEATURE_* */
};

/* HELLO, the first message of a client */
struct hca_ctl_hello {
	uint32_t magic;
	struct hca_ctl_offer offer;
};

/*
 * Three descriptors come with it: the doorbell page; the page of sleep words, read-only; an
 * eventfd, used by this client only, that wakes the worker that reads the doorbells. The sleep word
 * of that worker is at sleep_offset (struct softhca_ctl_ops, sleep).
 *
 * They belong to pipeline 0. KICK with the number of a pipeline, less than num_pipes of INFO, is
 * answered with the offset of the sleep word of its worker and an eventfd.
 */
struct hca_ctl_welcome {
	uint64_t nonce;
	uint32_t sleep_offset;
	struct hca_ctl_offer offer; /* minor: of the version that was agreed on */
	char name[32];		    /* of the device */
};

/* IDENTIFY: each end tells its release, for operators and programs: "0.2.0". */
struct hca_ctl_identity {
	char release[32];
};

/* Page addresses for the next REG_MR; several messages form one list. */
#define HCA_CTL_PAGES_MAX 4000u

struct hca_ctl_pages {
	uint32_t count;
	uint32_t reserved;
	uint64_t page[HCA_CTL_PAGES_MAX];
};

#define HCA_CTL_NO_CHANNEL 0xffffffffu

/*
 * Clients with one token may import PDs of each other (IMPORT_PD). Each begins with a random one of
 * its own, which INFO tells; JOIN, before it has a PD, gives it that of clients of the same user.
 * Root may join all. -ENOENT: no client has the token.
 */
struct hca_ctl_share {
	uint64_t token[2];
};

/* Limits and identity of the device as one client may use it */
struct hca_ctl_info {
	uint64_t board_id;    /* node GUID */
	uint64_t fw_ver;      /* as HCA_FW_VER() makes it */
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
	uint32_t vendor_id;   /* 24 bits */
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	uint32_t slow_memory; /* 1: MEMORY is taken, regions may be foreign */
	uint32_t num_pipes;   /* parts of the doorbell page, see HCA_UAR_FIFO_SLOT(); 0: one */
	struct hca_ctl_share share;
};

/* Port; state as verbs numbers it */
struct hca_ctl_port {
	uint64_t speed; /* Mb/s, 0 = unknown */
	uint32_t state;
	uint32_t max_mtu;
	uint32_t active_mtu;
	uint8_t mac[6];
	uint8_t reserved[6];
};

/*
 * Register memory. npages 0: [va, va + length) of the client's own address space, pages chosen by
 * the driver. Otherwise a list of npages page addresses of page_size bytes accompanies this. Work
 * requests and the peer address the first byte as va + shift. length 0: a region without memory,
 * whose keys allow accesses of length 0.
 */
struct hca_ctl_mr {
	uint64_t va;
	uint64_t length;
	uint64_t shift; /* a multiple of 4 KiB, modulo 2^64 */
	uint64_t page_size;
	uint64_t npages;
	uint32_t pdn;
	uint32_t access; /* T3-2-19, low byte (ON_DEMAND: foreign only); and this: */
#define HCA_CTL_ACCESS_FOREIGN 0x80000000u /* not attached: through the memory that was given */
};

/*
 * ATTACH makes memory of a client accessible to the device: bytes [offset, offset + length) of a
 * regular file, of whole pages of the file. The answer is a handle for DETACH, which fails with
 * -EBUSY while regions or queues use the memory. The address va is a name for later requests: it
 * need not be one of the program, but no two segments of a client may overlap. -EBADF: the daemon
 * does not take this file from this client.
 *
 * Without flags the descriptor is open for reading and writing, and the file stays as it is. From
 * clients that the daemon trusts (root and its own user) it takes any regular file. From others it
 * takes files of tmpfs and hugetlbfs, and guards them: an access to a page that the client has
 * removed ends the client. They may have holes, where REG_MR finds no memory (-EFAULT).
 *
 * READ_ONLY: the descriptor is open for reading at least. A region with rights to write to the
 * segment is refused with -EFAULT. A client that is not trusted passes one that is also open for
 * writing, or a file that is sealed against shrinking and writing, without holes in the segment.
 *
 * SEAL: the file is a memfd that the client has made for this, sealed against shrinking, and
 * without holes in the segment. The daemon seals a file of up to HCA_CTL_SMALL_FILE bytes against
 * growing, and guards it. It seals a larger file against later writers (F_SEAL_FUTURE_WRITE): the
 * file can then have no holes, and no second device can map it. Files of a trusted client are not
 * sealed.
 *
 * MEMORY gives /proc/self/mem, open for reading and writing, and /proc/self/maps to the daemon. A
 * client sends it once; afterwards its regions may have HCA_CTL_ACCESS_FOREIGN.
 */
#define HCA_CTL_SMALL_FILE (UINT64_C(4) << 20)

struct hca_ctl_segment {
	uint64_t va;
	uint64_t length;
	uint64_t offset;
	uint32_t flags;
#define HCA_CTL_SEGMENT_READ_ONLY HCA_BIT(0)
#define HCA_CTL_SEGMENT_SEAL HCA_BIT(1)
	uint32_t reserved;
};

/*
 * CHECK_MR: whether the client could register this much now, before it makes the memory accessible.
 * -ENOMEM: a quota or a table of the driver is exhausted, or one of the daemon. Nothing is
 * reserved.
 */
struct hca_ctl_need {
	uint64_t entries; /* translation entries of the region: its pages */
	uint64_t bytes;	  /* that are to be attached for it */
	uint32_t segments;
	uint32_t regions;
};

/*
 * Change a region. flags selects the members of mr that are used, numbered as in verbs. If the
 * operation fails, the region has not changed.
 */
struct hca_ctl_rereg {
	uint32_t lkey;
	uint32_t flags;
#define HCA_CTL_REREG_TRANSLATION (1u << 0) /* va, length, shift */
#define HCA_CTL_REREG_PD (1u << 1)
#define HCA_CTL_REREG_ACCESS (1u << 2)
	struct hca_ctl_mr mr;
};

/*
 * Judge advice about a range of a region with ON_DEMAND: nothing follows from it. -EFAULT: no such
 * region in the PD, a range outside of it, or write without its LOCAL_WRITE.
 */
struct hca_ctl_advice {
	uint64_t addr; /* as in work requests */
	uint64_t length;
	uint32_t pdn;
	uint32_t lkey;
	uint32_t write; /* not 0: it will be written */
	uint32_t reserved;
};

/*
 * Allocate a memory window, which counts as a region in the quota. The answer is its rkey. To free
 * the window the index of the key is enough; the tag may be any.
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

/* IMPORT_MR: a region of any client in a PD of this one, by the index of its keys */
struct hca_ctl_find_mr {
	uint32_t pdn;
	uint32_t index;
};

struct hca_ctl_found_mr {
	uint64_t length;
	struct hca_ctl_keys keys;
};

/* CQ: 2^log_size CQEs at addr (4 KiB aligned), followed by 128 bytes of CQ record */
struct hca_ctl_cq {
	uint64_t addr;
	uint32_t log_size;
	uint32_t channel; /* HCA_CTL_NO_CHANNEL = none */
	uint32_t vector;  /* below num_vectors */
	uint32_t flags;	  /* HCA_CTL_CQ_* */
	uint32_t tag;	  /* of the client's choice; its events have it */
	uint32_t reserved;
};

#define HCA_CTL_CQ_IGNORE_OVERRUN HCA_BIT(0)
#define HCA_CTL_CQ_LARGE HCA_BIT(1) /* CQEs of 64 bytes */
#define HCA_CTL_CQ_WALL HCA_BIT(2)  /* with the wall clock in them; only with LARGE */
#define HCA_CTL_CQ_FLAGS (HCA_CTL_CQ_IGNORE_OVERRUN | HCA_CTL_CQ_LARGE | HCA_CTL_CQ_WALL)
/* Bytes of its CQEs */
#define HCA_CTL_CQE_SIZE(flags) \
	(((flags)&HCA_CTL_CQ_LARGE) != 0 ? HCA_CQE_LARGE_SIZE : HCA_CQE_SIZE)

/*
 * Give a CQ a new buffer. The answer is the index of the first completion in the new buffer.
 * -EINVAL: more completions are pending than it holds.
 */
struct hca_ctl_resize {
	uint32_t cqn;
	uint32_t log_size;
	uint64_t addr;
	uint32_t flags; /* HCA_CTL_CQ_LARGE if it was created with it */
	uint32_t reserved;
};

struct hca_ctl_moderate {
	uint32_t cqn;
	uint16_t count;
	uint16_t period_us;
};

/*
 * QP: SQ of 2^log_sq WQEs of 2^log_sq_stride bytes at sq_addr, RQ alike with 128 bytes of producer
 * record after it; both 4 KiB aligned.
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
	/*
	 * UD: HCA_CTL_NO_OWN_GROUP; source QPN[23:0] of privileged clients, 0: its own. With
	 * several pipelines also [28:24], see HCA_CTL_PIPE().
	 */
	uint32_t source;
};

/* The QP does not receive its own datagrams to its groups. */
#define HCA_CTL_NO_OWN_GROUP HCA_BIT(31)

/* The pipeline that the QP should be in; none: the driver chooses. A hint. */
#define HCA_CTL_PIPE(pipe) HCA_FIELD(28, 24, (pipe) + 1)
#define HCA_CTL_PIPE_MASK HCA_FIELD(28, 24, 0x1f)
#define HCA_CTL_PIPE_OF(source) HCA_BITS(source, 28, 24)

/*
 * opcode: a command of the MODIFY_QP family; 2RST and 2ERR have no mailbox. The driver resolves
 * addresses, and replaces the fields that a client may not choose by the values of its tables.
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

/* SRQ: 2^log_size WQEs of 2^log_stride bytes at addr (4 KiB aligned), producer record after it. */
struct hca_ctl_srq {
	uint64_t addr;
	uint32_t pdn;
	uint32_t limit;
	uint32_t xrcd; /* 0 = not XRC */
	uint32_t cqn;  /* XRC */
	uint8_t log_size;
	uint8_t log_stride;
	uint8_t max_sge;
	uint8_t reserved[5];
};

/*
 * OPEN_XRCD: the domain of the file whose descriptor comes with it; answered with its number, as
 * ALLOC_XRCD, which makes a domain of one client. DEALLOC_XRCD closes both.
 */
enum hca_ctl_xrcd_flag {
	HCA_CTL_XRCD_CREATE = 1u << 0, /* if the file has none */
	HCA_CTL_XRCD_NEW = 1u << 1,    /* with CREATE: the file must have none */
};

/* OPEN_QP: an XRC target of a domain that the client has open; DESTROY_QP closes it again. */
struct hca_ctl_open_qp {
	uint32_t qpn;
	uint32_t xrcd;
};

/*
 * UB. CREATE_JETTY makes a Jetty or JFS that is ready (qp.service says which), CREATE_JFR a JFR;
 * the answer is its number. A Jetty is a QP and a JFR an SRQ for all operations that have no own
 * one here: QUERY_QP, DESTROY_QP, QUERY_COUNTERS; ARM_SRQ, QUERY_SRQ, DESTROY_SRQ.
 */
#define HCA_CTL_TC_TOKEN HCA_BIT(0)	  /* requests to it must have the TokenValue */
#define HCA_CTL_JETTY_SUSPEND HCA_BIT(1)  /* a failed request suspends the send queue */
#define HCA_CTL_JETTY_ONE_PEER HCA_BIT(2) /* it is bound to a peer before it is used */

struct hca_ctl_jetty {
	struct hca_ctl_qp qp; /* first: its memory is that of a QP */
	uint32_t flags;
	uint32_t token;
	uint8_t err_timeout;   /* 4.096 us << n until a request is given up, 0: never */
	uint8_t rnr_retry;     /* 0..7, 7: no limit */
	uint8_t min_rnr_timer; /* 2 us << n, 0..19 */
	uint8_t reserved[5];
};

/*
 * state: enum hca_qp_state: RTS, SQD, ERR or RST. In RST the device has no such Jetty; from there
 * it becomes RTS as it was created, with the same number and well-known numbers, and without a
 * peer.
 */
struct hca_ctl_jetty_state {
	uint32_t number;
	uint32_t state;
};

/*
 * A Jetty made with HCA_CTL_JETTY_ONE_PEER sends to the Jetty tc of the host eid only, and serves
 * Sends of that one only; tc HCA_TC_NONE: it has no peer any more.
 */
struct hca_ctl_bind {
	uint32_t number;
	uint32_t tc;
	uint8_t eid[16];
};

struct hca_ctl_jfr {
	struct hca_ctl_srq srq; /* first, as above; cqn is that of the JFR */
	uint32_t flags;
	uint32_t token;
	uint8_t min_rnr_timer;
	uint8_t reserved[7];
};

/*
 * A well-known number stands for a Jetty or JFR of the client: tc is its number, of a JFR with
 * HCA_TC_JFR; 0: it stands for none any more. Numbers below HCA_TC_WELL_KNOWN_FREE are for
 * privileged clients.
 */
struct hca_ctl_known {
	uint32_t id;
	uint32_t tc;
};

/*
 * A region becomes a segment, or gets other values, of which one or both are accepted: HCA_TOKEN_*.
 * flags 0: it is no segment any more. The answer is its TokenID.
 */
struct hca_ctl_token {
	uint32_t lkey;
	uint32_t flags;
	uint32_t value[2];
};

/*
 * IMPORT_PEER asks for channels from the address of index gid_index to that of the peer, and does
 * not wait for them: the answer is the number of the import, which QUERY_PEER asks about, again and
 * again, until there is a group of TPs (up 1) or an error, which states the reason. The import
 * stays until UNIMPORT_PEER, even without channels.
 */
struct hca_ctl_peer {
	uint8_t eid[16];
	uint32_t gid_index;
	uint32_t reserved;
};

struct hca_ctl_peer_state {
	uint32_t up;
	uint32_t tpg;
};

/* Of the peer of a TP */
struct hca_ctl_eid {
	uint8_t eid[16];
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
	uint32_t ifindex; /* of a kernel interface of the daemon's network namespace, 0: none */
};

/*
 * Find the MAC addresses for a path to dgid: of a multicast group by rule, of the port itself, or
 * of a known neighbour. -EHOSTUNREACH: the neighbour is not known.
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

/* The answer has at most max counters. Those of a QP in RESET are 0. */
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
	uint32_t total; /* number of counters that exist */
	uint32_t reserved;
	struct hca_ctl_counter counter[HCA_CTL_COUNTERS_MAX];
};

/*
 * Connection management, after librdmacm: the daemon has the ids, ports and connections of all its
 * clients (src/cm/ib); a client names an id by its number, which stands for one id only as long as
 * the daemon runs. An id belongs to a channel of the client (CREATE_CHANNEL), in whose pipe there
 * is one record of type HCA_CTL_EVENT_CM for each event that waits; CM_EVENT fetches it.
 *
 * Addresses: family 0 is none; a GID of an IPv4 address is mapped; the wildcards are ::ffff:0.0.0.0
 * and ::. Ports are in host byte order. Family IB (HCA_CTL_FEATURE_CM_IB) is a GID of either
 * address family without an IP header in messages; its wildcard is ::, and struct
 * hca_ctl_cm_service has its service ID in the place of the port.
 */
enum hca_ctl_cm_family {
	HCA_CTL_CM_NONE = 0,
	HCA_CTL_CM_IP4 = 4,
	HCA_CTL_CM_IP6 = 6,
	HCA_CTL_CM_IB = 27,
};

struct hca_ctl_cm_addr {
	uint8_t gid[16];
	uint16_t family; /* enum hca_ctl_cm_family */
	uint16_t port;
	uint32_t scope; /* kernel interface of a link-local address, 0: any */
};

/* The rest of an address of family IB */
struct hca_ctl_cm_service {
	uint64_t id;   /* service ID: a port space and a port, but of a peer any */
	uint64_t mask; /* bits of it that are given; the daemon chooses the others */
	uint16_t pkey;
	uint16_t reserved[3];
};

/* Port spaces, as upper part of service IDs (IBTA, annex A11.2) */
enum hca_ctl_cm_space {
	HCA_CTL_CM_SPACE_IPOIB = 0x0002,
	HCA_CTL_CM_SPACE_TCP = 0x0106,
	HCA_CTL_CM_SPACE_UDP = 0x0111,
	HCA_CTL_CM_SPACE_IB = 0x013f,
};

/* The answer is the number of the id. */
struct hca_ctl_cm_create {
	uint32_t channel;
	uint32_t space;	  /* enum hca_ctl_cm_space */
	uint32_t service; /* of its QP: HCA_SERVICE_* */
	uint32_t reserved;
};

#define HCA_CTL_CM_REUSE 1u   /* ids with this flag may share a port */
#define HCA_CTL_CM_AF_ONLY 2u /* the wildcard of IPv6 is not that of IPv4 */

/* port 0: the daemon chooses one. The answer is the address with its port. */
struct hca_ctl_cm_bind {
	struct hca_ctl_cm_addr addr;
	uint32_t id;
	uint32_t flags;
	struct hca_ctl_cm_service service;
};

struct hca_ctl_cm_bound {
	struct hca_ctl_cm_addr addr;
	uint32_t gid_index; /* HCA_CTL_CM_NO_GID: all */
	uint32_t reserved;
};

#define HCA_CTL_CM_NO_GID 0xffffffffu

/* src.family 0: as it is bound, or by the route. The outcome is an event. */
struct hca_ctl_cm_resolve {
	struct hca_ctl_cm_addr src, dst;
	uint32_t id;
	uint32_t timeout_ms;
	struct hca_ctl_cm_service src_service, dst_service;
};

struct hca_ctl_cm_route {
	uint32_t id;
	uint32_t timeout_ms;
};

struct hca_ctl_cm_listen {
	uint32_t id;
	uint32_t backlog; /* requests that wait for the program; 0: the most there may be */
};

#define HCA_CTL_CM_PRIVATE_MAX 224u

/*
 * CM_CONNECT, CM_ACCEPT, and the peer's values in an event. space UDP: qpn and qkey are those of
 * the QP; sidr_status: of the answer (IBTA table 12.11.2).
 */
struct hca_ctl_cm_param {
	uint32_t id;
	uint32_t qpn; /* 0 of CM_ACCEPT without a QP: softhca_cm_establish() follows */
	uint32_t qkey;
	uint32_t sidr_status;
	uint32_t ece_vendor, ece_options;
	uint8_t srq;
	uint8_t responder_resources; /* READs and atomics of the peer served at once */
	uint8_t initiator_depth;     /* those of this end */
	uint8_t flow_control;
	uint8_t retry_count;	 /* 0..7 */
	uint8_t rnr_retry_count; /* 0..7 */
	uint8_t private_len;
	uint8_t valid; /* CM_ACCEPT: 0: only the id counts: the program's QP is ready */
	uint8_t private[HCA_CTL_CM_PRIVATE_MAX];
};

struct hca_ctl_cm_reject {
	uint32_t id;
	uint8_t reason; /* IBTA table 12.6.7.2; 28: the consumer's */
	uint8_t private_len;
	uint8_t reserved[2];
	uint8_t private[HCA_CTL_CM_PRIVATE_MAX];
};

/* The program has seen an event of the QP: HCA_EVENT_COMM_EST, HCA_EVENT_PATH_MIG. */
struct hca_ctl_cm_notify {
	uint32_t id;
	uint32_t event;
};

struct hca_ctl_cm_option {
	uint32_t id;
	uint32_t option; /* enum hca_ctl_cm_option_name */
	uint32_t value;
	uint32_t reserved;
};

enum hca_ctl_cm_option_name {
	HCA_CTL_CM_OPTION_TOS = 0,
	HCA_CTL_CM_OPTION_REUSE = 1,
	HCA_CTL_CM_OPTION_AF_ONLY = 2,
	HCA_CTL_CM_OPTION_ACK_TIMEOUT = 3,
};

/* The id and its events belong to another channel of the client. */
struct hca_ctl_cm_move {
	uint32_t id;
	uint32_t channel;
};

#define HCA_CTL_CM_STATE_LIST(X) \
	X(IDLE) \
	X(BOUND) \
	X(RESOLVING) \
	X(RESOLVED) \
	X(ROUTED) \
	X(LISTENING) \
	X(CONNECTING) /* REQ or SIDR request is sent */ \
	X(REQUESTED)  /* the peer has sent one, which the program has not answered */ \
	X(ACCEPTED)   /* REP is sent */ \
	X(ANSWERED)   /* REP has come; the program that owns the QP has to establish */ \
	X(ESTABLISHED) \
	X(DISCONNECTING) \
	X(ENDED) /* refused, disconnected, given up, or of an HCA that has gone */

enum hca_ctl_cm_state {
#define X(NAME) HCA_CTL_CM_##NAME,
	HCA_CTL_CM_STATE_LIST(X)
#undef X
};

struct hca_ctl_cm_info {
	struct hca_ctl_cm_addr src, dst;
	uint64_t service_id;
	uint32_t state; /* enum hca_ctl_cm_state */
	uint32_t space;
	uint32_t gid_index; /* HCA_CTL_CM_NO_GID */
	uint32_t mtu;	    /* of the path: 1..5 */
	uint16_t vlan_id;   /* 0xffff: none */
	uint16_t pkey;
	uint8_t dmac[6], smac[6];
	uint64_t src_service_id, dst_service_id; /* of family IB */
};

/* Attributes of the QP for its way to qp_state: those of mask */
struct hca_ctl_cm_ask {
	uint32_t id;
	uint32_t qp_state; /* enum hca_qp_state: INIT, RTR, RTS */
};

/* The bits have the numbers of enum ibv_qp_attr_mask. */
struct hca_ctl_cm_attr {
	uint32_t mask;
	uint32_t qp_state;
	uint32_t path_mtu; /* 1..5 */
	uint32_t qkey;
	uint32_t rq_psn, sq_psn;
	uint32_t dest_qpn;
	uint32_t access; /* IBV_ACCESS_REMOTE_* */
	uint32_t gid_index;
	uint32_t flow_label;
	uint8_t dgid[16];
	uint8_t hop_limit, traffic_class, sl;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, timeout, retry_count, rnr_retry_count;
	uint8_t pkey_index;
	uint8_t reserved[6];
};

/* The group's address; the answer is the number of the membership, for CM_LEAVE. */
struct hca_ctl_cm_join {
	struct hca_ctl_cm_addr addr;
	uint32_t id;
	uint32_t flags; /* 1: this QP only sends to it */
};

/* Numbers as in enum rdma_cm_event_type */
#define HCA_CTL_CM_EVENT_LIST(X) \
	X(ADDR_RESOLVED, 0) \
	X(ADDR_ERROR, 1) \
	X(ROUTE_RESOLVED, 2) \
	X(ROUTE_ERROR, 3) \
	X(CONNECT_REQUEST, 4) \
	X(CONNECT_RESPONSE, 5) \
	X(CONNECT_ERROR, 6) \
	X(UNREACHABLE, 7) \
	X(REJECTED, 8) \
	X(ESTABLISHED, 9) \
	X(DISCONNECTED, 10) \
	X(DEVICE_REMOVAL, 11) \
	X(MULTICAST_JOIN, 12) \
	X(MULTICAST_ERROR, 13) \
	X(ADDR_CHANGE, 14) \
	X(TIMEWAIT_EXIT, 15)

enum hca_ctl_cm_event_type {
#define X(NAME, number) HCA_CTL_CM_EV_##NAME = (number),
	HCA_CTL_CM_EVENT_LIST(X)
#undef X
};

/* The answer of CM_EVENT, -EAGAIN: no event waits in the channel. */
struct hca_ctl_cm_event {
	uint32_t type;	   /* enum hca_ctl_cm_event_type */
	int32_t status;	   /* a negative errno; REJECTED: the reason; SIDR: its status */
	uint32_t id;	   /* CONNECT_REQUEST: a new one, which belongs to the client now */
	uint32_t listener; /* CONNECT_REQUEST: the id that listens */
	uint32_t group;	   /* MULTICAST_*: the membership */
	uint32_t left;	   /* events that wait after this one */
	/* of the peer; of space UDP and of groups the address to send to: */
	struct hca_ctl_cm_param param;
	uint8_t dgid[16];
	uint32_t gid_index;
	uint32_t flow_label;
	uint8_t hop_limit, traffic_class, sl;
	uint8_t reserved[5];
};

/* Events the driver itself raises, about port 1; numbers T3-2-25 does not use, below 32. */
#define HCA_CTL_EVENT_PKEY_CHANGE 0x1cu
#define HCA_CTL_EVENT_GID_CHANGE 0x1du
/* An event of connection management waits; object is the number of the channel. */
#define HCA_CTL_EVENT_CM 0x1eu

/*
 * Event channels are pipes. The client owns the read end; the driver keeps the write end, which
 * never blocks. Channel 0 is the asynchronous one: it exists from the start, and ASYNC_FD hands its
 * read end out once.
 *
 * An event as it is read from a completion channel (type COMP, 0) or from the asynchronous one
 * (T3-2-25 or HCA_CTL_EVENT_*)
 */
struct hca_ctl_event {
	uint32_t type;
	uint32_t object; /* CQN, QPN or port */
	uint32_t subtype;
	uint32_t tag; /* of the CQ, whose number may have belonged to another one before */
};

#pragma GCC diagnostic pop

#endif
