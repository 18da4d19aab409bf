/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOFTHCA_SOFTHCA_H
#define SOFTHCA_SOFTHCA_H

/*
 * softhca: the public interface of a host channel adapter in software.
 *
 * Objects and calls correspond one to one to those of the InfiniBand verbs, and every enumeration
 * uses the numbers of verbs, so that a libibverbs provider is a thin layer. Values are in host byte
 * order unless a comment says "network order". Sizes are in bytes.
 *
 * Errors. Calls that return int return 0, or a count where documented, or a negative errno. Calls
 * that return a pointer return NULL and set errno (positive, as libc does). softhca_last_error()
 * returns a sentence that explains the error. In addition to the errors listed with it, every call
 * can return:
 *   -EINVAL  an argument, attribute, state or handle is invalid
 *   -ENOMEM  out of memory, or a queue or table is full
 *   -EBUSY   another object still uses the object
 *   -EPERM   the object or the memory belongs to another process
 *   -EAGAIN  nothing is available (non-blocking event calls)
 *   -EFAULT  nothing is mapped at an address
 *   -EIO     the device does not respond any more
 *   -EOPNOTSUPP  the device does not offer this
 *
 * Threads. Every call may be made from any thread. For objects created with
 * SOFTHCA_SINGLE_THREADED, post_send, post_recv, poll_cq and req_notify_cq take no lock: the caller
 * must ensure that only one thread at a time uses the object and, for a QP, both of its CQs. As in
 * verbs, the caller must not destroy an object that another thread still uses.
 *
 * Ownership. The library allocates and frees all objects; pointers are valid until the matching
 * destroy, dealloc, dereg or close call succeeds. Arguments passed by pointer are read or written
 * before the call returns, and the library keeps no reference to them, except for memory that is
 * registered or attached.
 *
 * Progress. If the engine runs in its own threads or in a daemon, the program need not do anything.
 * With manual progress (embedded mode) the engine runs in the caller's thread: inside poll_cq and
 * start_poll when there is no completion, inside post_send after 32 requests have been posted
 * without a poll, and inside req_notify_cq, get_cq_event and softhca_progress(). A program
 * that posts requests must therefore keep polling.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTHCA_API __attribute__((visibility("default")))

/* --- objects -------------------- */

/*
 * The program may read the members below but not write them, except these:
 * - `user`, which is 0 at first and which the library does not use. Queues have their cq_context,
 *   qp_context or srq_context instead.
 * - `context` and `pd` of regions, windows and address handles, and `addr` of regions. The library
 *   writes them at creation, and softhca_rereg_mr() writes pd and addr; it does not read them.
 *
 * So a provider of verbs needs no copies of work requests: softhca_mr, softhca_mw, softhca_ah and
 * the requests, SGEs and completions below have the layout of ibv_mr, ibv_mw, ibv_ah and so on, up
 * to `user`, and a list of struct ibv_send_wr can be posted as it is.
 */
struct softhca_context {
	const char *name; /* "softhca0" */
	int async_fd;	  /* readable when an asynchronous event is available */
	uint32_t num_comp_vectors;
	void *user;
};

struct softhca_pd {
	struct softhca_context *context;
	uint32_t handle;
	void *user;
};

struct softhca_mr {
	struct softhca_context *context;
	struct softhca_pd *pd;
	uint64_t addr; /* first address, as used in work requests and by the peer */
	uint64_t length;
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
	void *user;
};

struct softhca_mw {
	struct softhca_context *context;
	struct softhca_pd *pd;
	/* type 1: the current key; type 2: the key at allocation, the program counts on from it */
	uint32_t rkey;
	uint32_t handle;
	uint32_t type; /* enum softhca_mw_type */
	void *user;
};

struct softhca_comp_channel {
	struct softhca_context *context;
	int fd; /* readable when a completion event is available */
	void *user;
};

struct softhca_cq {
	struct softhca_context *context;
	struct softhca_comp_channel *channel;
	void *cq_context; /* the program's own pointer */
	uint32_t handle;
	int cqe; /* number of entries the queue holds */
	/* of the completion that start_poll or next_poll has given: */
	uint32_t status; /* enum softhca_wc_status */
	uint64_t wr_id;
};

struct softhca_ah {
	struct softhca_context *context;
	struct softhca_pd *pd;
	uint32_t handle; /* 0: address handles have no number */
	void *user;
};

struct softhca_srq {
	struct softhca_context *context;
	struct softhca_pd *pd;
	void *srq_context; /* the program's own pointer */
	uint32_t handle;   /* SRQ number; XRC peers put it into their requests */
};

struct softhca_xrcd {
	struct softhca_context *context;
	uint32_t handle;
	void *user;
};

struct softhca_td {
	struct softhca_context *context;
	void *user;
};

struct softhca_qp {
	struct softhca_context *context;
	struct softhca_pd *pd; /* NULL for XRC_RECV */
	struct softhca_cq *send_cq;
	struct softhca_cq *recv_cq;
	struct softhca_srq *srq;
	void *qp_context; /* the program's own pointer */
	uint32_t qp_num;
	uint32_t state;	  /* enum softhca_qp_state after the last modify or query */
	uint32_t qp_type; /* enum softhca_qp_type */
};

/* --- device, port, addresses -------------------- */

struct softhca_device {
	char name[64];
	uint64_t guid;	/* node GUID, as in struct softhca_device_attr */
	uint32_t index; /* see softhca_get_device_index() */
};

enum softhca_mtu {
	SOFTHCA_MTU_256 = 1,
	SOFTHCA_MTU_512,
	SOFTHCA_MTU_1024,
	SOFTHCA_MTU_2048,
	SOFTHCA_MTU_4096,
};

enum softhca_port_state {
	SOFTHCA_PORT_NOP,
	SOFTHCA_PORT_DOWN,
	SOFTHCA_PORT_INIT,
	SOFTHCA_PORT_ARMED,
	SOFTHCA_PORT_ACTIVE,
};

/* On-demand paging: the device finds the memory again at each access. Numbers of ibv_odp_caps */
enum softhca_odp_general_caps {
	SOFTHCA_ODP_SUPPORT = 1 << 0,
};

enum softhca_odp_transport_caps {
	SOFTHCA_ODP_SUPPORT_SEND = 1 << 0,
	SOFTHCA_ODP_SUPPORT_RECV = 1 << 1,
	SOFTHCA_ODP_SUPPORT_WRITE = 1 << 2,
	SOFTHCA_ODP_SUPPORT_READ = 1 << 3,
	SOFTHCA_ODP_SUPPORT_ATOMIC = 1 << 4,
	SOFTHCA_ODP_SUPPORT_SRQ_RECV = 1 << 5,
	SOFTHCA_ODP_SUPPORT_FLUSH = 1 << 6,
	SOFTHCA_ODP_SUPPORT_ATOMIC_WRITE = 1 << 7,
};

struct softhca_odp_caps {
	uint64_t general_caps; /* 0: regions with ON_DEMAND are refused */
	uint32_t rc_odp_caps;
	uint32_t uc_odp_caps;
	uint32_t ud_odp_caps;
	uint32_t xrc_odp_caps;
};

struct softhca_device_attr {
	char fw_ver[64];    /* "1.2.3": the release of the device, unless configured */
	uint64_t node_guid; /* EUI-64 made of the port's MAC address, the first byte on top */
	uint64_t sys_image_guid;
	uint64_t max_mr_size;
	uint64_t page_size_cap; /* bit n set: pages of 2^n bytes */
	/* 0x025348, 1 and 1 unless configured; the vendor is a locally administered OUI */
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	uint32_t max_qp;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_cq;
	uint32_t max_cqe;
	uint32_t max_mr;
	uint32_t max_pd;
	uint32_t max_qp_rd_atom;      /* READs and atomics executed concurrently, per QP */
	uint32_t max_qp_init_rd_atom; /* READs and atomics outstanding, per QP */
	uint32_t max_res_rd_atom;     /* READs and atomics executed concurrently, of all QPs */
	uint32_t max_inline_data;
	uint32_t max_pkeys;
	uint32_t phys_port_cnt;
	uint32_t local_ca_ack_delay; /* an ACK may take 4.096 us * 2^local_ca_ack_delay */
	uint32_t max_srq;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	uint32_t max_ah;
	uint32_t max_mcast_grp;
	uint32_t max_mcast_qp_attach; /* QPs per group */
	uint32_t max_total_mcast_qp_attach;
	uint32_t max_mw;
	uint32_t max_xrcd;
	uint32_t atomic_cap;	   /* enum softhca_atomic_cap */
	uint64_t device_cap_flags; /* enum softhca_device_cap_flags */
	struct softhca_odp_caps odp_caps;
	uint64_t hca_core_clock;	    /* kHz; 0: completions have no time stamps */
	uint64_t completion_timestamp_mask; /* the bits that softhca_wc_read_completion_ts() has */
};

enum softhca_values_mask {
	SOFTHCA_VALUES_MASK_RAW_CLOCK = 1 << 0,
};

struct softhca_values {
	uint32_t comp_mask; /* enum softhca_values_mask: which ones to read */
	uint64_t raw_clock; /* core clock, in its ticks, of which hca_core_clock is the rate */
};

enum softhca_atomic_cap {
	SOFTHCA_ATOMIC_NONE,
	SOFTHCA_ATOMIC_HCA,
	SOFTHCA_ATOMIC_GLOB, /* also atomic with respect to the CPUs of the host */
};

/* Numbers of ibv_device_cap_flags */
enum softhca_device_cap_flags {
	SOFTHCA_DEVICE_BAD_PKEY_CNTR = 1 << 1,
	SOFTHCA_DEVICE_AUTO_PATH_MIG = 1 << 4,
	SOFTHCA_DEVICE_UD_AV_PORT_ENFORCE = 1 << 6,
	SOFTHCA_DEVICE_PORT_ACTIVE_EVENT = 1 << 10,
	SOFTHCA_DEVICE_RC_RNR_NAK_GEN = 1 << 12,
	SOFTHCA_DEVICE_MEM_WINDOW = 1 << 17,
	SOFTHCA_DEVICE_XRC = 1 << 20,
	SOFTHCA_DEVICE_MEM_WINDOW_TYPE_2B = 1 << 24,
};

/* The same beyond 32 bits; in verbs of device_cap_flags_ex alone */
#define SOFTHCA_DEVICE_FLUSH_GLOBAL ((uint64_t)1 << 38)
#define SOFTHCA_DEVICE_FLUSH_PERSISTENT ((uint64_t)1 << 39) /* no device has it */
#define SOFTHCA_DEVICE_ATOMIC_WRITE ((uint64_t)1 << 40)

enum softhca_port_phys_state {
	SOFTHCA_PHYS_DISABLED = 3, /* no link */
	SOFTHCA_PHYS_LINK_UP = 5,
};

enum softhca_width {
	SOFTHCA_WIDTH_1X = 1,
	SOFTHCA_WIDTH_4X = 2,
	SOFTHCA_WIDTH_8X = 4,
};

/* Gb/s of a lane */
enum softhca_speed {
	SOFTHCA_SPEED_SDR = 1,	 /* 2.5 */
	SOFTHCA_SPEED_DDR = 2,	 /* 5 */
	SOFTHCA_SPEED_FDR10 = 8, /* 10 */
	SOFTHCA_SPEED_FDR = 16,	 /* 14 */
	SOFTHCA_SPEED_EDR = 32,	 /* 25 */
	SOFTHCA_SPEED_HDR = 64,	 /* 50 */
	SOFTHCA_SPEED_NDR = 128, /* 100 */
};

/*
 * Width and speed are those with which RoCE devices describe the link of a port: the least that
 * reaches link_speed, 1X SDR if it is not known. DPDK says 100 Gb/s of memif, and so does an
 * embedded HCA; 10 Gb/s of ring, null and af_packet, whatever lies behind.
 */
struct softhca_port_attr {
	uint32_t state;	  /* enum softhca_port_state */
	uint32_t max_mtu; /* enum softhca_mtu */
	uint32_t active_mtu;
	uint32_t gid_tbl_len;
	uint32_t pkey_tbl_len;
	uint32_t max_msg_sz;
	uint32_t phys_state;  /* enum softhca_port_phys_state */
	uint64_t link_speed;  /* Mb/s, 0 = unknown */
	uint8_t active_width; /* enum softhca_width */
	uint8_t active_speed; /* enum softhca_speed */
	uint8_t mac[6];
};

/* 16 bytes in network order; an IPv4 address is ::ffff:a.b.c.d */
union softhca_gid {
	uint8_t raw[16];
	struct {
		uint64_t subnet_prefix;
		uint64_t interface_id;
	} global;
};

enum softhca_gid_type {
	SOFTHCA_GID_TYPE_IB,
	SOFTHCA_GID_TYPE_ROCE_V1,
	SOFTHCA_GID_TYPE_ROCE_V2,
};

/*
 * One entry of the GID table. ndev_ifindex is the kernel interface that has the address or that the
 * port uses, in the network namespace of the daemon; 0: the kernel has no interface for the port.
 */
struct softhca_gid_entry {
	union softhca_gid gid;
	uint32_t gid_index;
	uint32_t port_num;
	uint32_t gid_type; /* enum softhca_gid_type: always ROCE_V2 */
	uint32_t ndev_ifindex;
	uint16_t vlan_id; /* 0xffff: none */
	uint8_t mac[6];
};

/* --- memory -------------------- */

enum softhca_access_flags {
	SOFTHCA_ACCESS_LOCAL_WRITE = 1 << 0,
	SOFTHCA_ACCESS_REMOTE_WRITE = 1 << 1,
	SOFTHCA_ACCESS_REMOTE_READ = 1 << 2,
	SOFTHCA_ACCESS_REMOTE_ATOMIC = 1 << 3,
	SOFTHCA_ACCESS_MW_BIND = 1 << 4,
	SOFTHCA_ACCESS_ZERO_BASED = 1 << 5,
	SOFTHCA_ACCESS_ON_DEMAND = 1 << 6,	   /* see softhca_reg_mr() */
	SOFTHCA_ACCESS_HUGETLB = 1 << 7,	   /* accepted, has no effect */
	SOFTHCA_ACCESS_FLUSH_GLOBAL = 1 << 8,	   /* SOFTHCA_WR_FLUSH with FLUSH_GLOBAL */
	SOFTHCA_ACCESS_FLUSH_PERSISTENT = 1 << 9,  /* of QPs only: no memory is persistent */
	SOFTHCA_ACCESS_RELAXED_ORDERING = 1 << 20, /* as all of the optional range */
	SOFTHCA_ACCESS_KEEP_PRIVATE = 1 << 30,	   /* not in verbs: see softhca_reg_mr() */
};

/* Flags that a device may ignore. They are accepted and have no effect. */
#define SOFTHCA_ACCESS_OPTIONAL_RANGE 0x3ff00000u

/* Numbers of ibv_rereg_mr_flags */
enum softhca_rereg_mr_flags {
	SOFTHCA_REREG_MR_CHANGE_TRANSLATION = 1 << 0,
	SOFTHCA_REREG_MR_CHANGE_PD = 1 << 1,
	SOFTHCA_REREG_MR_CHANGE_ACCESS = 1 << 2,
};

/* Numbers of ibv_advise_mr_advice and its flags */
enum softhca_advise_mr_advice {
	SOFTHCA_ADVISE_MR_ADVICE_PREFETCH,
	SOFTHCA_ADVISE_MR_ADVICE_PREFETCH_WRITE,
	SOFTHCA_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
};

enum softhca_advise_mr_flags {
	SOFTHCA_ADVISE_MR_FLAG_FLUSH = 1 << 0,
};

enum softhca_mw_type {
	SOFTHCA_MW_TYPE_1 = 1, /* bound by softhca_bind_mw(), usable by every QP of its PD */
	SOFTHCA_MW_TYPE_2,     /* (2B) bound by SOFTHCA_WR_BIND_MW, usable by that QP only */
};

/*
 * length 0 unbinds (type 1). mw_access_flags: remote access rights, and ZERO_BASED; the other flags
 * of regions say nothing about a window and are ignored.
 */
struct softhca_mw_bind_info {
	struct softhca_mr *mr;
	uint64_t addr;
	uint64_t length;
	uint32_t mw_access_flags;
};

struct softhca_mw_bind {
	uint64_t wr_id;
	uint32_t send_flags; /* FENCE, SIGNALED */
	struct softhca_mw_bind_info bind_info;
};

/* --- completion queues -------------------- */

enum softhca_create_flags {
	SOFTHCA_SINGLE_THREADED = 1 << 0, /* see "Threads" above */
	/*
	 * CQs only: a full CQ is no error. Completions for which it has no room are lost; its QPs
	 * go on.
	 */
	SOFTHCA_IGNORE_OVERRUN = 1 << 1,
	/*
	 * UD QPs only: the QP does not receive its own datagrams to a group of which it is a
	 * member.
	 */
	SOFTHCA_BLOCK_SELF_MCAST_LB = 1 << 2,
	/* UD QPs of privileged users only: datagrams are sent as from source_qpn. */
	SOFTHCA_SOURCE_QPN = 1 << 3,
};

enum softhca_wc_status {
	SOFTHCA_WC_SUCCESS,
	SOFTHCA_WC_LOC_LEN_ERR,
	SOFTHCA_WC_LOC_QP_OP_ERR,
	SOFTHCA_WC_LOC_EEC_OP_ERR,
	SOFTHCA_WC_LOC_PROT_ERR,
	SOFTHCA_WC_WR_FLUSH_ERR,
	SOFTHCA_WC_MW_BIND_ERR,
	SOFTHCA_WC_BAD_RESP_ERR,
	SOFTHCA_WC_LOC_ACCESS_ERR,
	SOFTHCA_WC_REM_INV_REQ_ERR,
	SOFTHCA_WC_REM_ACCESS_ERR,
	SOFTHCA_WC_REM_OP_ERR,
	SOFTHCA_WC_RETRY_EXC_ERR,
	SOFTHCA_WC_RNR_RETRY_EXC_ERR,
	SOFTHCA_WC_LOC_RDD_VIOL_ERR,
	SOFTHCA_WC_REM_INV_RD_REQ_ERR,
	SOFTHCA_WC_REM_ABORT_ERR,
	SOFTHCA_WC_INV_EECN_ERR,
	SOFTHCA_WC_INV_EEC_STATE_ERR,
	SOFTHCA_WC_FATAL_ERR,
	SOFTHCA_WC_RESP_TIMEOUT_ERR,
	SOFTHCA_WC_GENERAL_ERR,
};

enum softhca_wc_opcode {
	SOFTHCA_WC_SEND,
	SOFTHCA_WC_RDMA_WRITE,
	SOFTHCA_WC_RDMA_READ,
	SOFTHCA_WC_COMP_SWAP,
	SOFTHCA_WC_FETCH_ADD,
	SOFTHCA_WC_BIND_MW,
	SOFTHCA_WC_LOCAL_INV,
	SOFTHCA_WC_FLUSH = 8,
	SOFTHCA_WC_ATOMIC_WRITE = 9,
	SOFTHCA_WC_RECV = 1 << 7,
	SOFTHCA_WC_RECV_RDMA_WITH_IMM,
};

enum softhca_wc_flags {
	SOFTHCA_WC_GRH = 1 << 0,
	SOFTHCA_WC_WITH_IMM = 1 << 1,
	SOFTHCA_WC_WITH_INV = 1 << 3,
};

/*
 * With an error status only wr_id, status, vendor_err and qp_num are valid, and opcode tells only
 * the queue (SEND or RECV).
 */
struct softhca_wc {
	uint64_t wr_id;
	uint32_t status;     /* enum softhca_wc_status */
	uint32_t opcode;     /* enum softhca_wc_opcode */
	uint32_t vendor_err; /* syndrome[7:0] and vendor error[15:8] of the device */
	uint32_t byte_len;   /* valid for receives, READs and atomics */
	union {
		uint32_t imm_data; /* network order, as the peer posted it */
		uint32_t invalidated_rkey;
	};
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t wc_flags; /* enum softhca_wc_flags */
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
};

/* Numbers of ibv_create_cq_wc_flags. Those that are not here are refused (EOPNOTSUPP). */
enum softhca_create_cq_wc_flags {
	SOFTHCA_WC_EX_WITH_BYTE_LEN = 1 << 0,
	SOFTHCA_WC_EX_WITH_IMM = 1 << 1,
	SOFTHCA_WC_EX_WITH_QP_NUM = 1 << 2,
	SOFTHCA_WC_EX_WITH_SRC_QP = 1 << 3,
	SOFTHCA_WC_EX_WITH_SLID = 1 << 4,
	SOFTHCA_WC_EX_WITH_SL = 1 << 5,
	SOFTHCA_WC_EX_WITH_DLID_PATH_BITS = 1 << 6,
	/* with one of these the CQ takes 64 instead of 32 bytes per entry */
	SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP = 1 << 7,
	SOFTHCA_WC_EX_WITH_CVLAN = 1 << 8,
	SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK = 1 << 11,
};

struct softhca_cq_init_attr {
	uint32_t cqe; /* requested number; rounded up to a power of two */
	uint32_t comp_vector;
	struct softhca_comp_channel *channel; /* or NULL */
	void *cq_context;
	uint32_t flags;	   /* enum softhca_create_flags */
	uint64_t wc_flags; /* enum softhca_create_cq_wc_flags; poll_cq needs none of them */
};

struct softhca_moderate_cq {
	uint16_t cq_count;
	uint16_t cq_period; /* us */
};

enum softhca_cq_attr_mask {
	SOFTHCA_CQ_ATTR_MODERATE = 1 << 0,
};

struct softhca_modify_cq_attr {
	uint32_t attr_mask;
	struct softhca_moderate_cq moderate;
};

/* --- queue pairs -------------------- */

/* Numbers of ibv_qp_type. Reliable datagrams (RD) are refused. */
enum softhca_qp_type {
	SOFTHCA_QPT_RC = 2,
	SOFTHCA_QPT_UC,
	SOFTHCA_QPT_UD,
	SOFTHCA_QPT_XRC_SEND = 9, /* sends requests, which name an SRQ of the peer */
	SOFTHCA_QPT_XRC_RECV,	  /* executes requests; has no queues of its own */
};

enum softhca_qp_state {
	SOFTHCA_QPS_RESET,
	SOFTHCA_QPS_INIT,
	SOFTHCA_QPS_RTR,
	SOFTHCA_QPS_RTS,
	SOFTHCA_QPS_SQD,
	SOFTHCA_QPS_SQE,
	SOFTHCA_QPS_ERR,
};

enum softhca_mig_state {
	SOFTHCA_MIG_MIGRATED,
	SOFTHCA_MIG_REARM,
	SOFTHCA_MIG_ARMED,
};

/* Numbers of ibv_qp_attr_mask */
enum softhca_qp_attr_mask {
	SOFTHCA_QP_STATE = 1 << 0,
	SOFTHCA_QP_CUR_STATE = 1 << 1,
	SOFTHCA_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	SOFTHCA_QP_ACCESS_FLAGS = 1 << 3,
	SOFTHCA_QP_PKEY_INDEX = 1 << 4,
	SOFTHCA_QP_PORT = 1 << 5,
	SOFTHCA_QP_QKEY = 1 << 6,
	SOFTHCA_QP_AV = 1 << 7,
	SOFTHCA_QP_PATH_MTU = 1 << 8,
	SOFTHCA_QP_TIMEOUT = 1 << 9,
	SOFTHCA_QP_RETRY_CNT = 1 << 10,
	SOFTHCA_QP_RNR_RETRY = 1 << 11,
	SOFTHCA_QP_RQ_PSN = 1 << 12,
	SOFTHCA_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	SOFTHCA_QP_ALT_PATH = 1 << 14,
	SOFTHCA_QP_MIN_RNR_TIMER = 1 << 15,
	SOFTHCA_QP_SQ_PSN = 1 << 16,
	SOFTHCA_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	SOFTHCA_QP_PATH_MIG_STATE = 1 << 18,
	SOFTHCA_QP_CAP = 1 << 19,
	SOFTHCA_QP_DEST_QPN = 1 << 20,
	SOFTHCA_QP_RATE_LIMIT = 1 << 25, /* RC, UC, XRC_SEND: to RTS, and in RTS */
	SOFTHCA_QP_CONGESTION = 1 << 26, /* RC, XRC: to RTR */
};

struct softhca_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

struct softhca_qp_init_attr {
	void *qp_context;
	struct softhca_cq *send_cq;
	struct softhca_cq *recv_cq;
	struct softhca_srq *srq;   /* RC, UD: replaces the receive queue; or NULL */
	struct softhca_qp_cap cap; /* in: requested; out: granted, at least as much as requested */
	uint32_t qp_type;	   /* enum softhca_qp_type */
	int sq_sig_all;		   /* non-zero: every send request generates a completion */
	uint32_t flags;		   /* enum softhca_create_flags */
};

enum softhca_qp_init_attr_mask {
	SOFTHCA_QP_INIT_ATTR_PD = 1 << 0,
	SOFTHCA_QP_INIT_ATTR_XRCD = 1 << 1,
};

struct softhca_qp_init_attr_ex {
	void *qp_context;
	struct softhca_cq *send_cq;
	struct softhca_cq *recv_cq;
	struct softhca_srq *srq;
	struct softhca_qp_cap cap;
	uint32_t qp_type;
	int sq_sig_all;
	uint32_t flags; /* enum softhca_create_flags */
	uint32_t comp_mask;
	struct softhca_pd *pd;	   /* required by all types but XRC_RECV */
	struct softhca_xrcd *xrcd; /* required by XRC_RECV */
	uint32_t source_qpn;	   /* with SOFTHCA_SOURCE_QPN: 1 to 0xffffff */
};

/* --- shared receive queues -------------------- */

struct softhca_srq_attr {
	uint32_t max_wr; /* in: requested; out: granted */
	uint32_t max_sge;
	uint32_t srq_limit; /* event when fewer receive WQEs are left; 0 = never */
};

struct softhca_srq_init_attr {
	void *srq_context;
	struct softhca_srq_attr attr;
};

enum softhca_srq_type {
	SOFTHCA_SRQT_BASIC,
	SOFTHCA_SRQT_XRC,
};

struct softhca_srq_init_attr_ex {
	void *srq_context;
	struct softhca_srq_attr attr;
	uint32_t comp_mask; /* ignored; the members that the type needs must be set */
	uint32_t srq_type;  /* enum softhca_srq_type */
	struct softhca_pd *pd;
	struct softhca_xrcd *xrcd; /* XRC only */
	struct softhca_cq *cq;	   /* XRC only: CQ for completions of its receives */
};

enum softhca_srq_attr_mask {
	SOFTHCA_SRQ_MAX_WR = 1 << 0, /* refused: SRQs cannot be resized */
	SOFTHCA_SRQ_LIMIT = 1 << 1,
};

struct softhca_xrcd_init_attr {
	uint32_t comp_mask;
	int fd;	    /* of a regular file; -1: a domain that no other context can open */
	int oflags; /* with a file: O_CREAT, O_EXCL */
};

struct softhca_qp_open_attr {
	uint32_t comp_mask; /* ignored */
	uint32_t qp_num;
	struct softhca_xrcd *xrcd;
	void *qp_context;
	uint32_t qp_type; /* SOFTHCA_QPT_XRC_RECV */
};

/* --- addresses -------------------- */

/*
 * Static rates limit the frames of a QP, or the datagrams sent with a UD address handle, in bits of
 * Ethernet frames per second. READ responses are not paced. X(name, number, Mb/s)
 */
#define SOFTHCA_RATE_LIST(X) \
	X(2_5_GBPS, 2, 2500) \
	X(5_GBPS, 5, 5000) \
	X(10_GBPS, 3, 10000) \
	X(20_GBPS, 6, 20000) \
	X(30_GBPS, 4, 30000) \
	X(40_GBPS, 7, 40000) \
	X(60_GBPS, 8, 60000) \
	X(80_GBPS, 9, 80000) \
	X(120_GBPS, 10, 120000) \
	X(14_GBPS, 11, 14000) \
	X(56_GBPS, 12, 56000) \
	X(112_GBPS, 13, 112000) \
	X(168_GBPS, 14, 168000) \
	X(25_GBPS, 15, 25000) \
	X(100_GBPS, 16, 100000) \
	X(200_GBPS, 17, 200000) \
	X(300_GBPS, 18, 300000) \
	X(28_GBPS, 19, 28000) \
	X(50_GBPS, 20, 50000) \
	X(400_GBPS, 21, 400000) \
	X(600_GBPS, 22, 600000)

enum softhca_rate {
	SOFTHCA_RATE_MAX = 0, /* the rate of the port */
#define SOFTHCA_RATE_NUMBER(name, number, mbps) SOFTHCA_RATE_##name = number,
	SOFTHCA_RATE_LIST(SOFTHCA_RATE_NUMBER)
#undef SOFTHCA_RATE_NUMBER
};

/* Of flow_label and sl the bits beyond their width are ignored. */
struct softhca_ah_attr {
	union softhca_gid dgid;
	uint32_t flow_label; /* 20 bits; chooses the UDP source port, 0: the QPNs do */
	uint8_t sgid_index;
	uint8_t hop_limit; /* 0 stands for 64 */
	uint8_t traffic_class;
	uint8_t sl;	     /* VLAN priority, 3 bits */
	uint8_t static_rate; /* enum softhca_rate */
	uint8_t port_num;    /* counted from 1 */
	uint8_t is_global;   /* treated as 1, as RoCE requires */
};

/*
 * Congestion control of a QP's requests and READ responses, by the names of the daemon's
 * configuration. X(name, number, text)
 */
#define SOFTHCA_CONGESTION_LIST(X) \
	X(DEFAULT, 0, "default") /* that of the HCA, also after a change of it */ \
	X(NONE, 1, "none") \
	X(DCQCN, 2, "dcqcn") \
	X(SWIFT, 3, "swift")

enum softhca_congestion {
#define SOFTHCA_CONGESTION_NUMBER(name, number, text) SOFTHCA_CONGESTION_##name = (number),
	SOFTHCA_CONGESTION_LIST(SOFTHCA_CONGESTION_NUMBER)
#undef SOFTHCA_CONGESTION_NUMBER
};

struct softhca_qp_attr {
	uint32_t qp_state; /* enum softhca_qp_state */
	uint32_t cur_qp_state;
	uint32_t path_mtu; /* enum softhca_mtu */
	uint32_t path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn; /* 24 bits; those beyond are ignored */
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	uint32_t qp_access_flags; /* the REMOTE_ flags of enum softhca_access_flags */
	struct softhca_qp_cap cap;
	struct softhca_ah_attr ah_attr;
	struct softhca_ah_attr alt_ah_attr;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;	    /* as requester */
	uint8_t max_dest_rd_atomic; /* as responder */
	uint8_t min_rnr_timer;	    /* InfiniBand's 5-bit code; 0 = 655.36 ms, 1 = 10 us */
	uint8_t port_num;
	uint8_t timeout;   /* 4.096 us * 2^timeout; 0 = no timeout */
	uint8_t retry_cnt; /* 0..7 */
	uint8_t rnr_retry; /* 0..6; 7 = no limit */
	uint8_t alt_port_num;
	uint8_t alt_timeout;
	uint8_t congestion; /* enum softhca_congestion */
	/*
	 * kb/s of Ethernet frames that the QP's requests and retransmissions may take, 0: as many
	 * as there are. READ responses are not limited. Else from SOFTHCA_RATE_LIMIT_LEAST to
	 * SOFTHCA_RATE_LIMIT_MOST.
	 */
	uint32_t rate_limit;
};

#define SOFTHCA_RATE_LIMIT_LEAST 1000u
#define SOFTHCA_RATE_LIMIT_MOST 400000000u

/* --- work requests -------------------- */

enum softhca_wr_opcode {
	SOFTHCA_WR_RDMA_WRITE,
	SOFTHCA_WR_RDMA_WRITE_WITH_IMM,
	SOFTHCA_WR_SEND,
	SOFTHCA_WR_SEND_WITH_IMM,
	SOFTHCA_WR_RDMA_READ,
	SOFTHCA_WR_ATOMIC_CMP_AND_SWP,
	SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
	SOFTHCA_WR_LOCAL_INV,
	SOFTHCA_WR_BIND_MW,
	SOFTHCA_WR_SEND_WITH_INV,
	/* 8 bytes, inline or of SGEs, stored at once; remote_addr is a multiple of 8 (wr.rdma) */
	SOFTHCA_WR_ATOMIC_WRITE = 15,
	/*
	 * no data: it completes when earlier data of the QP is placed at the peer (wr.flush). Not
	 * 14 as in verbs, whose ibv_send_wr has no members for it
	 */
	SOFTHCA_WR_FLUSH,
	SOFTHCA_WR_OPCODE_COUNT,
};

/* Placement types of SOFTHCA_WR_FLUSH, a set */
enum softhca_placement_type {
	SOFTHCA_FLUSH_GLOBAL = 1 << 0, /* visible to all CPUs and devices of the peer's host */
	SOFTHCA_FLUSH_PERSISTENT = 1 << 1,
};

enum softhca_selectivity_level {
	SOFTHCA_FLUSH_RANGE,
	SOFTHCA_FLUSH_MR, /* all of the region or window; address and length mean nothing */
};

enum softhca_send_flags {
	SOFTHCA_SEND_FENCE = 1 << 0,
	SOFTHCA_SEND_SIGNALED = 1 << 1,
	SOFTHCA_SEND_SOLICITED = 1 << 2,
	SOFTHCA_SEND_INLINE = 1 << 3,
};

struct softhca_sge {
	uint64_t addr;
	uint32_t length; /* at most 2^31 - 1; a whole message at most 2^31 */
	uint32_t lkey;	 /* ignored with SOFTHCA_SEND_INLINE */
};

struct softhca_send_wr {
	uint64_t wr_id;
	struct softhca_send_wr *next;
	struct softhca_sge *sg_list;
	int num_sge;
	uint32_t opcode;     /* enum softhca_wr_opcode */
	uint32_t send_flags; /* enum softhca_send_flags */
	union {
		uint32_t imm_data;	  /* network order */
		uint32_t invalidate_rkey; /* SEND_WITH_INV, LOCAL_INV */
	};
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic; /* the result, 8 bytes in host order, goes to the SGE */
		struct {
			struct softhca_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey; /* if bit 31 is set the QP's own Q_Key is sent */
		} ud;
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
			uint32_t length; /* of the range, at most 2^31 */
			uint8_t type;	 /* enum softhca_placement_type */
			uint8_t level;	 /* enum softhca_selectivity_level */
		} flush;		 /* not in verbs */
	} wr;
	union {
		struct {
			uint32_t remote_srqn;
		} xrc;
	} qp_type;
	union {
		struct {
			struct softhca_mw *mw;
			/*
			 * 8 bits of it are used: with the others of mw->rkey they are the
			 * new key, which is in mw->rkey when the request is posted
			 */
			uint32_t rkey;
			struct softhca_mw_bind_info bind_info;
		} bind_mw;
		struct {
			void *hdr;
			uint16_t hdr_sz;
			uint16_t mss;
		} tso; /* not used: no service offers segmentation */
	};
};

/* The 40 bytes before a datagram's payload: an IPv6 header, or 20 zero bytes and an IPv4 header. */
#define SOFTHCA_GRH_BYTES 40

struct softhca_recv_wr {
	uint64_t wr_id;
	struct softhca_recv_wr *next;
	struct softhca_sge *sg_list;
	int num_sge;
};

/* --- asynchronous events -------------------- */

enum softhca_event_type {
	SOFTHCA_EVENT_CQ_ERR,
	SOFTHCA_EVENT_QP_FATAL,
	SOFTHCA_EVENT_QP_REQ_ERR,
	SOFTHCA_EVENT_QP_ACCESS_ERR,
	SOFTHCA_EVENT_COMM_EST,
	SOFTHCA_EVENT_SQ_DRAINED,
	SOFTHCA_EVENT_PATH_MIG,
	SOFTHCA_EVENT_PATH_MIG_ERR,
	SOFTHCA_EVENT_DEVICE_FATAL,
	SOFTHCA_EVENT_PORT_ACTIVE,
	SOFTHCA_EVENT_PORT_ERR,
	SOFTHCA_EVENT_LID_CHANGE,
	SOFTHCA_EVENT_PKEY_CHANGE,
	SOFTHCA_EVENT_SM_CHANGE,
	SOFTHCA_EVENT_SRQ_ERR,
	SOFTHCA_EVENT_SRQ_LIMIT_REACHED,
	SOFTHCA_EVENT_QP_LAST_WQE_REACHED,
	SOFTHCA_EVENT_CLIENT_REREGISTER,
	SOFTHCA_EVENT_GID_CHANGE,
};

struct softhca_async_event {
	uint32_t event_type; /* enum softhca_event_type */
	union {
		struct softhca_cq *cq;
		struct softhca_qp *qp;
		struct softhca_srq *srq;
		int port_num;
	} element;
};

/* --- calls: device -------------------- */

/**
 * List the devices of the daemons on this host.
 *
 * A device is a socket in /run/softhca, or in the directory that the environment variable
 * SOFTHCA_DIRECTORY names, whose daemon lives. No daemon is asked: one that hangs is in the list
 * and does not delay the call. The embedded device is not in the list.
 *
 * @param num_devices  number of devices found; may be NULL
 * @return  a list that ends with NULL, to be freed with softhca_free_device_list(); NULL: errno is
 *   set
 */
SOFTHCA_API struct softhca_device **softhca_get_device_list(int *num_devices);

/**
 * Free a list of devices and the devices in it.
 *
 * @param list  list, or NULL
 */
SOFTHCA_API void softhca_free_device_list(struct softhca_device **list);

/**
 * Get the name of a device.
 *
 * @param device  device from softhca_get_device_list()
 * @return  the name, valid until the list of the device is freed
 */
SOFTHCA_API const char *softhca_get_device_name(const struct softhca_device *device);

/**
 * Get the node GUID of a device.
 *
 * @param device  device from softhca_get_device_list()
 * @return  node GUID, as in struct softhca_device_attr
 */
SOFTHCA_API uint64_t softhca_get_device_guid(const struct softhca_device *device);

/**
 * Get a number that no other device in the list has. It is the same until the daemon restarts.
 *
 * @param device  device from softhca_get_device_list()
 * @return  the number, or -EINVAL
 */
SOFTHCA_API int softhca_get_device_index(const struct softhca_device *device);

/**
 * Open a device.
 *
 * If the device belongs to a daemon it can access only memory that is shared with the daemon: see
 * softhca_reg_mr(). A malicious daemon could read such memory, so its socket must belong to root,
 * to the program's own user, to the owner of /run/softhca, or to the user that the environment
 * variable SOFTHCA_DAEMON_USER names.
 *
 * After the daemon has ended, softhca_get_async_event() reports SOFTHCA_EVENT_DEVICE_FATAL once,
 * threads that wait for an event wake with -EIO, and posts, polls of an empty CQ and all other
 * calls return -EIO. The program must close the context and open the device again.
 *
 * A context belongs to the process that opened it. In a child of fork() calls with a context of
 * the parent return -EPERM; the child may open its own, also if the parent has ended. Whatever the
 * child does, exit() included, does not affect the parent's context. All descriptors are closed by
 * exec(). A program that goes to the background after it has opened a device (daemon(3)) opens it
 * again there.
 *
 * The library's threads block all signals. The library may be loaded with dlopen(), and used in
 * constructors and destructors; dlclose() does not unload it.
 *
 * @param name  a name from softhca_get_device_list(), or the path of a daemon's socket (it contains
 *   a '/'), or "embed" or "embed:1": load libsofthca-embed, start two HCAs back to back inside the
 *   process and open the first or the second (<softhca/embed.h> offers more choices). NULL: the
 *   device that the environment variable SOFTHCA_DEVICE names, else the first of the list.
 * @param ctx  the new context
 * @return  0, or -ENODEV: there is no such device; -EACCES: the socket belongs to another user;
 *   -ENOENT: the embedded mode is not installed
 */
SOFTHCA_API int softhca_open(const char *name, struct softhca_context **ctx);

/**
 * Close a context and destroy the objects that the program has left in it. Pointers to them are
 * invalid afterwards. Never returns -EBUSY. Threads that wait for its events return -EIO.
 *
 * When it returns the device does not access memory of the context any more. But a daemon that is
 * stopped (SIGSTOP, a debugger) is waited for only two seconds. When it goes on, requests that had
 * begun may still change memory that was registered, as long as the program has it; they change
 * none that the library gives out after this call.
 *
 * @param ctx  open context
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_close(struct softhca_context *ctx);

/**
 * Explain why the last failed call of this thread failed.
 *
 * @param ctx  not used; may be NULL
 * @return  a sentence, never NULL, valid until the next failed call of this thread
 */
SOFTHCA_API const char *softhca_last_error(const struct softhca_context *ctx);

/**
 * Read the limits and capabilities of the device. They do not change while the context is open.
 *
 * @param ctx  open context
 * @param attr  attributes
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_query_device(struct softhca_context *ctx, struct softhca_device_attr *attr);

/**
 * Read the state of a port.
 *
 * @param ctx  open context
 * @param port  number of the port, from 1
 * @param attr  attributes
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_query_port(struct softhca_context *ctx, unsigned int port,
				   struct softhca_port_attr *attr);

/**
 * Read clocks of the device.
 *
 * @param ctx  open context
 * @param values  comp_mask selects the values to read
 * @return  0, or -EOPNOTSUPP: completions of this device have no time stamps
 */
SOFTHCA_API int softhca_query_rt_values(struct softhca_context *ctx, struct softhca_values *values);

/**
 * Read one GID. An empty entry reads as all zeros.
 *
 * @param ctx  open context
 * @param port  number of the port, from 1
 * @param index  index in the table, from 0
 * @param gid  the GID
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_query_gid(struct softhca_context *ctx, unsigned int port,
				  unsigned int index, union softhca_gid *gid);

/**
 * Read one GID with its type, VLAN and MAC address.
 *
 * @param ctx  open context
 * @param port  number of the port, from 1
 * @param index  index in the table, from 0
 * @param entry  the entry
 * @param flags  must be 0
 * @return  0, or -ENODATA: the entry is empty
 */
SOFTHCA_API int softhca_query_gid_ex(struct softhca_context *ctx, unsigned int port,
				     unsigned int index, struct softhca_gid_entry *entry,
				     uint32_t flags);

/**
 * Read the release of the program that runs the device: the daemon, or with an embedded HCA this
 * library.
 *
 * @param ctx  open context
 * @param release  the release, "0.2.0"
 * @param bytes  size of release; a longer text is cut off
 * @return  0, or -EOPNOTSUPP: the daemon is older than 0.2.0
 */
SOFTHCA_API int softhca_query_release(struct softhca_context *ctx, char *release, size_t bytes);

/**
 * Read one P_Key, in host order.
 *
 * modify_qp copies the P_Key at an index into the QP. After SOFTHCA_EVENT_PKEY_CHANGE a QP keeps
 * its old P_Key until the program sets the index again.
 *
 * @param ctx  open context
 * @param port  number of the port, from 1
 * @param index  index in the table, from 0
 * @param pkey  the P_Key
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_query_pkey(struct softhca_context *ctx, unsigned int port,
				   unsigned int index, uint16_t *pkey);

/**
 * Find a P_Key, in host order: all 16 bits are compared.
 *
 * @param ctx  open context
 * @param port  number of the port, from 1
 * @param pkey  the P_Key
 * @return  its lowest index, or -ENOENT: it is not in the table
 */
SOFTHCA_API int softhca_get_pkey_index(struct softhca_context *ctx, unsigned int port,
				       uint16_t pkey);

/**
 * Run the engine once if progress is manual; otherwise do nothing. If another thread is running
 * the engine this call returns at once.
 *
 * @param ctx  open context
 * @return  amount of work done; 0 = the engine is idle
 */
SOFTHCA_API unsigned int softhca_progress(struct softhca_context *ctx);

/* --- calls: memory -------------------- */

/**
 * Allocate a protection domain.
 *
 * @param ctx  open context
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_pd *softhca_alloc_pd(struct softhca_context *ctx);

/**
 * Free a protection domain. A PD that several contexts share is freed by the device after the last
 * of them has freed it or has ended.
 *
 * @param pd  protection domain
 * @return  0, or -EBUSY: another object still uses it
 */
SOFTHCA_API int softhca_dealloc_pd(struct softhca_pd *pd);

/*
 * Contexts of one device can share protection domains, also across processes: a process that has
 * the token of a context joins it with a context of its own. Joined contexts import PDs of each
 * other by their handles and use each other's regions in requests on their own QPs. An object in a
 * shared PD belongs to the context that created it: it counts for this context's quota and ends
 * with it. A QP binds windows of its own context to regions of its own context only.
 */
#define SOFTHCA_TOKEN_BYTES 16

/**
 * Get the token of a context: a random number, after softhca_join() that of the joined contexts.
 *
 * @param ctx  open context
 * @param token  the token
 */
SOFTHCA_API void softhca_get_token(struct softhca_context *ctx, uint8_t token[SOFTHCA_TOKEN_BYTES]);

/**
 * Join the contexts that have this token.
 *
 * @param ctx  open context
 * @param token  token from softhca_get_token() of another context
 * @return  0, or -ENOENT: no context of the device has it; -EACCES: they are another user's, and
 *   this process is not root; -EBUSY: this context has PDs
 */
SOFTHCA_API int softhca_join(struct softhca_context *ctx, const uint8_t token[SOFTHCA_TOKEN_BYTES]);

/**
 * Get a PD of a context with the same token, or a second reference to one of this context. Each
 * reference is given back by softhca_dealloc_pd().
 *
 * @param ctx  open context
 * @param handle  handle of its struct softhca_pd
 * @return  the PD; NULL with errno EINVAL: no context with the token has this PD
 */
SOFTHCA_API struct softhca_pd *softhca_import_pd(struct softhca_context *ctx, uint32_t handle);

/**
 * Find a region of any context in a shared PD. The importing context does not own it: its keys are
 * valid until the owner deregisters it or ends, softhca_dereg_mr() frees only the returned object,
 * and softhca_rereg_mr() refuses it. addr is 0, as in verbs: the owner tells its address to the
 * importer.
 *
 * @param pd  protection domain
 * @param handle  handle of its struct softhca_mr
 * @return  the region; NULL with errno EINVAL: the PD has no such region
 */
SOFTHCA_API struct softhca_mr *softhca_import_mr(struct softhca_pd *pd, uint32_t handle);

/**
 * Allocate memory that is shared with daemons from the start, so that registering it is cheap.
 *
 * The memory is zeroed and aligned to 4 KiB, from 2 MiB on to 2 MiB and in hugepages if there are
 * any. It belongs to the process, not to a context. Any number of regions may lie in it, and they
 * must be deregistered first. Children of fork() do not inherit it.
 *
 * The process, never a daemon, allocates the pages of shared memory. A piece of more than 4 MiB is
 * shared with one context only, because the daemon seals its file against hole punching and new
 * writable mappings; other contexts' regions in it are refused with -EOPNOTSUPP.
 *
 * @param bytes  size
 * @return  the memory; NULL: errno is set
 */
SOFTHCA_API void *softhca_alloc(size_t bytes);

/**
 * Free memory of softhca_alloc().
 *
 * @param mem  the memory, or NULL
 * @return  0, or -EBUSY: a region lies in it
 */
SOFTHCA_API int softhca_free(void *mem);

/**
 * Declare a shared mapping of the program, so that regions can be registered in it.
 *
 * The mapping must stay until softhca_detach(). The library duplicates fd; the program may close
 * it. The file is checked when the first region in it is registered: it must be open for reading
 * and writing, and a memfd, POSIX or SysV shared memory or a file of hugetlbfs; a daemon of the
 * program's own user takes any regular file. Else -EBADF. The file stays as it is. A program that
 * removes pages under a region loses the device.
 *
 * @param fd  the file
 * @param addr  start of the mapping, a multiple of 4 KiB
 * @param length  bytes, a multiple of 4 KiB
 * @param offset  of the mapping in the file, a multiple of 4 KiB
 * @return  0, or -EEXIST: part of the range has been attached or allocated already
 */
SOFTHCA_API int softhca_attach(int fd, void *addr, uint64_t length, uint64_t offset);

/**
 * Undo softhca_attach().
 *
 * @param addr  start of the mapping
 * @return  0, or -EBUSY: a region lies in the mapping
 */
SOFTHCA_API int softhca_detach(void *addr);

/**
 * Register memory of the process for the device.
 *
 * The memory must be readable and, with LOCAL_WRITE, writable. A region covers the pages that are
 * mapped when it is made, and keeps them until softhca_dereg_mr() returns, whatever the program
 * maps there meanwhile. Slow memory and memory of embedded HCAs must stay mapped until then.
 *
 * A daemon's device can access only memory that the process shares with the daemon:
 * - Memory of softhca_alloc() and softhca_attach() is shared.
 * - For another shared mapping of a sealed memfd the library finds the file, as long as the process
 *   has an open descriptor of it.
 * - Private anonymous memory (malloc, mmap, most of .bss) is replaced in place by shared memory
 *   with the same contents, in whole pages, and each page is replaced back after its last region
 *   is gone, wherever the program has moved it. Stores and read(2) of other threads meanwhile are
 *   not lost; transfers into pages that the kernel has pinned (O_DIRECT, io_uring with fixed
 *   buffers) are: pin them after the registration, and unpin them before the deregistration. While
 *   the memory is registered a child of fork() gets a copy, made at fork().
 * - Other memory is accessed the slow way: the daemon makes system calls on /proc/self/mem of the
 *   process for each packet. This is for stacks, mappings of files (.data included), read-only
 *   memory, all private memory if the process may not use userfaultfd, and private memory of
 *   regions with KEEP_PRIVATE in access, or of all regions with SOFTHCA_SLOW_MR=1 in the
 *   environment (useful for programs that fork often). If part of a region is such memory, the
 *   whole region is accessed the slow way. The daemon's configuration must have slow_memory = yes,
 *   else -EOPNOTSUPP.
 *
 * ON_DEMAND asks for the slow way with any memory: each access uses the pages that are mapped at
 * that time, so parts of the region may be unmapped and mapped again. The whole range must be
 * mapped when it is registered. odp_caps in struct softhca_device_attr says whether this is
 * offered, else it is refused with EOPNOTSUPP: in embedded HCAs, by daemons with slow_memory = no,
 * and for the whole address space (length UINT64_MAX).
 *
 * Slow memory behaves differently in three ways: atomics are atomic only with respect to requests
 * from the network (SOFTHCA_ATOMIC_HCA); a request that accesses memory unmapped under the region
 * fails, whereas shared memory keeps its pages; and slow accesses, as to a page on a slow disk,
 * cause retries on the QPs concerned.
 *
 * @param pd  protection domain
 * @param addr  first byte, any alignment
 * @param length  bytes. 0: a region without memory, which allows accesses of length 0 at addr
 * @param access  enum softhca_access_flags. REMOTE_WRITE and REMOTE_ATOMIC require LOCAL_WRITE.
 *   ZERO_BASED: work requests and the peer address the first byte as 0.
 * @return  the region; NULL with errno EFAULT: part of the range is not mapped; EACCES: it is not
 *   readable or not writable as needed
 */
SOFTHCA_API struct softhca_mr *softhca_reg_mr(struct softhca_pd *pd, void *addr, uint64_t length,
					      uint32_t access);

/**
 * Register memory that work requests and the peer address from iova on, wherever it lies.
 *
 * The rest is as for softhca_reg_mr(). ZERO_BASED overrides iova.
 *
 * @param pd  protection domain
 * @param addr  first byte
 * @param length  bytes
 * @param iova  address of the first byte in requests, with the same offset in a page of 4 KiB as
 *   addr, else EINVAL
 * @param access  enum softhca_access_flags
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_mr *softhca_reg_mr_iova(struct softhca_pd *pd, void *addr,
						   uint64_t length, uint64_t iova, uint32_t access);

/**
 * Test whether the device accesses the memory of a region the slow way: by system calls on the
 * memory of this process (see softhca_reg_mr()).
 *
 * @param mr  region
 * @return  1 or 0
 */
SOFTHCA_API int softhca_mr_is_slow(const struct softhca_mr *mr);

/**
 * Register a list of pages as one contiguous region.
 *
 * Byte i of the region is byte (va + i) % page_size of pages[(va % page_size + i) / page_size]. A
 * page may appear any number of times: a 2 GiB region can lie on one small buffer. Sharing with a
 * daemon and errors are as for softhca_reg_mr().
 *
 * @param pd  protection domain
 * @param va  first address as work requests and the peer use it; it need not be mapped
 * @param length  bytes, at least 1
 * @param page_size  bytes: a power of two, 4 KiB to 1 GiB
 * @param pages  addresses of the pages, each a multiple of page_size
 * @param npages  exactly as many as the range covers
 * @param access  enum softhca_access_flags
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_mr *softhca_reg_mr_pages(struct softhca_pd *pd, uint64_t va,
						    uint64_t length, uint64_t page_size,
						    void *const pages[], uint64_t npages,
						    uint32_t access);

/**
 * Allocate a null region. Its lkey is valid in SGEs of any address and length. The device reads
 * zeros from it and discards data that it writes to it. Requests of the peer to it are refused.
 * softhca_rereg_mr() refuses it.
 *
 * @param pd  protection domain
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_mr *softhca_alloc_null_mr(struct softhca_pd *pd);

/**
 * Deregister a region. The device does not access the memory any more after this call returns.
 *
 * @param mr  region
 * @return  0, or -EBUSY: a queue lies in the region, or a memory window is bound to it
 */
SOFTHCA_API int softhca_dereg_mr(struct softhca_mr *mr);

/**
 * Change the translation, the PD or the access rights of a region.
 *
 * Accesses during the call fail as if the region did not exist. A new translation or PD changes
 * lkey and rkey. If the call fails the region is unchanged. With a new translation work requests
 * use addr, whatever iova the region had. KEEP_PRIVATE in access takes effect with a new
 * translation, and ON_DEMAND needs one.
 *
 * @param mr  region
 * @param flags  enum softhca_rereg_mr_flags: which of the following arguments to use
 * @param pd  the new PD
 * @param addr  first byte of the new translation
 * @param length  bytes of the new translation
 * @param access  the new rights, enum softhca_access_flags
 * @return  0, or -EBUSY as for softhca_dereg_mr(); -EOPNOTSUPP: ON_DEMAND without a new
 *   translation, or where it is not offered
 */
SOFTHCA_API int softhca_rereg_mr(struct softhca_mr *mr, uint32_t flags, struct softhca_pd *pd,
				 void *addr, uint64_t length, uint32_t access);

/**
 * Announce the use of regions with ON_DEMAND. The call checks the ranges and does no more: an
 * access finds the memory at its time.
 *
 * @param pd  protection domain
 * @param advice  enum softhca_advise_mr_advice; -EOPNOTSUPP: another one, or on-demand paging is
 *   not offered
 * @param flags  enum softhca_advise_mr_flags, else -EINVAL
 * @param sg_list  ranges
 * @param num_sge  at least 1, else -EINVAL
 * @return  0, also for regions without ON_DEMAND; or -EFAULT: an lkey is not of a region in the PD,
 *   a range is outside of its region, or PREFETCH_WRITE and the region has no LOCAL_WRITE
 */
SOFTHCA_API int softhca_advise_mr(struct softhca_pd *pd, uint32_t advice, uint32_t flags,
				  const struct softhca_sge *sg_list, uint32_t num_sge);

/* --- calls: memory windows -------------------- */

/**
 * Allocate a memory window.
 *
 * A window gives part of a region access rights of its own, under an rkey that binds change in the
 * data path. The region needs SOFTHCA_ACCESS_MW_BIND and the same PD; REMOTE_WRITE and
 * REMOTE_ATOMIC of a window require LOCAL_WRITE of the region. A bind that fails completes with
 * SOFTHCA_WC_MW_BIND_ERR and moves the QP to ERR. When a QP is reset or destroyed the windows bound
 * to it (type 2) become inaccessible; they can still be deallocated.
 *
 * @param pd  protection domain
 * @param type  enum softhca_mw_type
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_mw *softhca_alloc_mw(struct softhca_pd *pd, uint32_t type);

/**
 * Free a memory window, bound or not.
 *
 * @param mw  memory window
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_dealloc_mw(struct softhca_mw *mw);

/**
 * Post a bind of a type 1 window. It may be bound to a new range without unbinding first.
 *
 * @param qp  queue pair
 * @param mw  memory window
 * @param mw_bind  range and rights
 * @return  0: mw->rkey is the new key, valid after the request has completed; errors are those of
 *   softhca_post_send()
 */
SOFTHCA_API int softhca_bind_mw(struct softhca_qp *qp, struct softhca_mw *mw,
				struct softhca_mw_bind *mw_bind);

/**
 * Get the rkey with the next tag, for SOFTHCA_WR_BIND_MW.
 *
 * @param rkey  an rkey of the window
 * @return  the next rkey
 */
static inline uint32_t
softhca_inc_rkey(uint32_t rkey)
{
	return (rkey & 0xffffff00u) | ((rkey + 1) & 0xffu);
}

/* --- calls: completion queues -------------------- */

/**
 * Create a channel for completion events. Its fd may be used with poll(2) and epoll(7), also edge
 * triggered: every event is an edge. It may be duplicated and made O_NONBLOCK. It is close-on-exec.
 *
 * @param ctx  open context
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_comp_channel *softhca_create_comp_channel(struct softhca_context *ctx);

/**
 * Destroy a channel. Threads that wait for its events return -EIO.
 *
 * @param channel  completion channel
 * @return  0, or -EBUSY: a CQ still uses it
 */
SOFTHCA_API int softhca_destroy_comp_channel(struct softhca_comp_channel *channel);

/**
 * Create a completion queue. Its member cqe has the granted number of entries.
 *
 * @param ctx  open context
 * @param attr  size, channel and flags
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_cq *softhca_create_cq(struct softhca_context *ctx,
						 const struct softhca_cq_init_attr *attr);

/**
 * Change the number of entries, without losing completions or pausing traffic.
 *
 * @param cq  completion queue
 * @param cqe  requested entries; rounded up to a power of two
 * @return  0, or -EINVAL: the queue holds more completions than fit into the new size; it stays
 *   unchanged
 */
SOFTHCA_API int softhca_resize_cq(struct softhca_cq *cq, int cqe);

/**
 * Moderate completion events.
 *
 * A requested event is delayed until cq_count completions have arrived since the last event, or
 * cq_period microseconds have passed since the first of them (0: no such limit; both 0: no delay).
 * Solicited and failed completions are not delayed.
 *
 * @param cq  completion queue
 * @param attr  attr_mask must be SOFTHCA_CQ_ATTR_MODERATE
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_modify_cq(struct softhca_cq *cq, const struct softhca_modify_cq_attr *attr);

/**
 * Destroy a completion queue. Blocks until every event obtained from it has been acknowledged.
 * Events that no thread has got vanish.
 *
 * @param cq  completion queue
 * @return  0, or -EBUSY: a QP or SRQ still uses it
 */
SOFTHCA_API int softhca_destroy_cq(struct softhca_cq *cq);

/**
 * Request one event on the CQ's channel, for the next completion. A completion may have arrived
 * just before the call, so poll the CQ once more after it.
 *
 * @param cq  completion queue
 * @param solicited_only  non-zero: for the next solicited or failed completion. It does not weaken
 *   an earlier request for any completion.
 * @return  0, or -EINVAL: the CQ has no channel
 */
SOFTHCA_API int softhca_req_notify_cq(struct softhca_cq *cq, int solicited_only);

/**
 * Get the next completion event. Blocks unless the channel's fd is O_NONBLOCK. Several threads may
 * wait on a channel; each event goes to one of them.
 *
 * @param channel  completion channel
 * @param cq  the CQ of the event
 * @param cq_context  its cq_context; may be NULL
 * @return  0, or -EAGAIN: there is no event (O_NONBLOCK); -EINTR: a signal handler that was
 *   installed without SA_RESTART has run, unless progress is manual; -EIO: the channel or the
 *   context was destroyed, or the daemon is gone
 */
SOFTHCA_API int softhca_get_cq_event(struct softhca_comp_channel *channel, struct softhca_cq **cq,
				     void **cq_context);

/**
 * Acknowledge events of a CQ. Each event must be acknowledged once.
 *
 * @param cq  completion queue
 * @param nevents  number of events
 */
SOFTHCA_API void softhca_ack_cq_events(struct softhca_cq *cq, unsigned int nevents);

/**
 * Take completions from a CQ.
 *
 * @param cq  completion queue
 * @param num_entries  size of wc
 * @param wc  completions
 * @return  number of entries written to wc, 0 if the CQ is empty, or a negative errno
 */
SOFTHCA_API int softhca_poll_cq(struct softhca_cq *cq, int num_entries, struct softhca_wc *wc);

/**
 * Begin to take completions one by one, without a copy: cq->wr_id and cq->status are those of the
 * first one, and softhca_wc_read_...() read the rest of it.
 *
 * After 0 the CQ is this thread's until softhca_end_poll(): others wait that poll, arm or resize it
 * or that reset or destroy a QP of it or any SRQ. Until then poll_cq and resize_cq by this thread
 * and destroy_cq fail with -EBUSY; without locks (SOFTHCA_SINGLE_THREADED) poll_cq must not be
 * called.
 *
 * @param cq  completion queue
 * @return  0, -ENOENT: the CQ is empty, or another negative errno; -EBUSY: this thread has begun
 *   already
 */
SOFTHCA_API int softhca_start_poll(struct softhca_cq *cq);

/**
 * Go on to the next completion. The slot of the one before it is free again.
 *
 * @param cq  completion queue
 * @return  0, or -ENOENT: there is no more (softhca_end_poll() is still due); -EINVAL: without
 *   softhca_start_poll()
 */
SOFTHCA_API int softhca_next_poll(struct softhca_cq *cq);

/**
 * End the sequence that softhca_start_poll() began. The last completion counts as taken.
 *
 * @param cq  completion queue
 */
SOFTHCA_API void softhca_end_poll(struct softhca_cq *cq);

/*
 * Fields of the completion that start_poll or next_poll has given, as in struct softhca_wc. Without
 * one they are 0.
 */
/**
 * Read the opcode of the present completion.
 *
 * @param cq  completion queue
 * @return  enum softhca_wc_opcode; 0 without a completion
 */
SOFTHCA_API uint32_t softhca_wc_read_opcode(const struct softhca_cq *cq);

/**
 * Read the vendor error of the present completion.
 *
 * @param cq  completion queue
 * @return  as wc.vendor_err; 0 without a completion
 */
SOFTHCA_API uint32_t softhca_wc_read_vendor_err(const struct softhca_cq *cq);

/**
 * Read the length of the present completion.
 *
 * @param cq  completion queue
 * @return  bytes; 0 without a completion
 */
SOFTHCA_API uint32_t softhca_wc_read_byte_len(const struct softhca_cq *cq);

/**
 * Read the immediate or the invalidated rkey of the present completion. softhca_wc_read_wc_flags()
 * tells which one.
 *
 * @param cq  completion queue
 * @return  as wc.imm_data; 0 if the completion has neither
 */
SOFTHCA_API uint32_t softhca_wc_read_imm_data(const struct softhca_cq *cq);

/**
 * Read the local QPN of the present completion.
 *
 * @param cq  completion queue
 * @return  QPN; 0 without a completion
 */
SOFTHCA_API uint32_t softhca_wc_read_qp_num(const struct softhca_cq *cq);

/**
 * Read the sender's QPN of the present completion.
 *
 * @param cq  completion queue
 * @return  QPN; 0 without a completion
 */
SOFTHCA_API uint32_t softhca_wc_read_src_qp(const struct softhca_cq *cq);

/**
 * Read the flags of the present completion.
 *
 * @param cq  completion queue
 * @return  enum softhca_wc_flags; 0 without a completion
 */
SOFTHCA_API uint32_t softhca_wc_read_wc_flags(const struct softhca_cq *cq);

/**
 * Read the P_Key index of the present completion.
 *
 * @param cq  completion queue
 * @return  index; 0 without a completion
 */
SOFTHCA_API uint16_t softhca_wc_read_pkey_index(const struct softhca_cq *cq);

/**
 * Read the source LID of the present completion.
 *
 * @param cq  completion queue
 * @return  as wc.slid; 0 without a completion
 */
SOFTHCA_API uint32_t softhca_wc_read_slid(const struct softhca_cq *cq);

/**
 * Read the service level of the present completion.
 *
 * @param cq  completion queue
 * @return  as wc.sl; 0 without a completion
 */
SOFTHCA_API uint8_t softhca_wc_read_sl(const struct softhca_cq *cq);

/**
 * Read the path bits of the present completion.
 *
 * @param cq  completion queue
 * @return  as wc.dlid_path_bits; 0 without a completion
 */
SOFTHCA_API uint8_t softhca_wc_read_dlid_path_bits(const struct softhca_cq *cq);

enum softhca_network {
	SOFTHCA_NETWORK_NONE = 0,
	SOFTHCA_NETWORK_IPV6 = 1,
	SOFTHCA_NETWORK_IPV4 = 2,
};

/**
 * Read which network header the first 40 bytes of a received datagram hold. struct softhca_wc has
 * no such field.
 *
 * @param cq  completion queue
 * @return  enum softhca_network; NONE for all other completions
 */
SOFTHCA_API uint8_t softhca_wc_read_network(const struct softhca_cq *cq);

/* These need a CQ that was created with the field in wc_flags. */

/**
 * Read the time at which the device wrote the completion. The device reads its clock once per turn
 * of its engine: with several workers the time can be some microseconds earlier than a reading made
 * before the request was posted.
 *
 * @param cq  completion queue
 * @return  ticks of the core clock, as softhca_query_rt_values() reads it
 */
SOFTHCA_API uint64_t softhca_wc_read_completion_ts(const struct softhca_cq *cq);

/**
 * Read the time at which the device wrote the completion, as softhca_wc_read_completion_ts().
 *
 * @param cq  completion queue
 * @return  ns since 1970
 */
SOFTHCA_API uint64_t softhca_wc_read_completion_wallclock_ns(const struct softhca_cq *cq);

/**
 * Read the VLAN tag of a received datagram.
 *
 * @param cq  completion queue
 * @return  priority[15:13] DEI[12] VLAN[11:0]; 0: no tag
 */
SOFTHCA_API uint16_t softhca_wc_read_cvlan(const struct softhca_cq *cq);

/* --- calls: queue pairs -------------------- */

/**
 * Create a queue pair, in state RESET.
 *
 * @param pd  protection domain
 * @param attr  the granted capacities are written back to attr->cap
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_qp *softhca_create_qp(struct softhca_pd *pd,
						 struct softhca_qp_init_attr *attr);

/**
 * Change the state or attributes of a QP. Transitions and their required and optional attributes
 * are those of the InfiniBand specification; if one is missing or not allowed, softhca_last_error()
 * names it.
 *
 * @param qp  queue pair
 * @param attr  the new values
 * @param attr_mask  enum softhca_qp_attr_mask: which members of attr to use; no others are read
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_modify_qp(struct softhca_qp *qp, const struct softhca_qp_attr *attr,
				  uint32_t attr_mask);

/**
 * Read the state and attributes of a QP.
 *
 * @param qp  queue pair
 * @param attr  state and attributes
 * @param attr_mask  ignored: all of attr is written
 * @param init_attr  the attributes at creation; may be NULL
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_query_qp(struct softhca_qp *qp, struct softhca_qp_attr *attr,
				 uint32_t attr_mask, struct softhca_qp_init_attr *init_attr);

/**
 * Destroy a QP. After the call returns, the device accesses neither its queues nor other memory on
 * its behalf, and its completions are gone from its CQs. Blocks until every asynchronous event
 * obtained for it has been acknowledged.
 *
 * @param qp  queue pair
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_destroy_qp(struct softhca_qp *qp);

/**
 * As softhca_create_qp(), for all types: XRC_RECV has an XRC domain and no PD and queues.
 *
 * @param ctx  open context
 * @param attr  the granted capacities are written back to attr->cap
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_qp *softhca_create_qp_ex(struct softhca_context *ctx,
						    struct softhca_qp_init_attr_ex *attr);

/**
 * Add a UD QP to a multicast group, so that it receives the group's datagrams.
 *
 * The QP must not be in RESET. It leaves all groups when it moves to RESET or is destroyed.
 *
 * @param qp  queue pair
 * @param gid  address of the group
 * @param lid  ignored
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_attach_mcast(struct softhca_qp *qp, const union softhca_gid *gid,
				     uint16_t lid);

/**
 * Remove a QP from a multicast group.
 *
 * @param qp  queue pair
 * @param gid  address of the group
 * @param lid  ignored
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_detach_mcast(struct softhca_qp *qp, const union softhca_gid *gid,
				     uint16_t lid);

/* --- calls: address handles -------------------- */

/**
 * Create an address handle: the destination of datagrams.
 *
 * The destination's MAC address is resolved here, once, and stays in the handle. If a neighbour or
 * router gets a new MAC address connected QPs follow, but datagrams of the handle go to the old
 * one; a program that gets no replies any more must create a new handle.
 *
 * @param pd  protection domain
 * @param attr  destination
 * @return  the handle; NULL with errno EHOSTUNREACH: the MAC address is unknown; EINVAL: source and
 *   destination have different IP versions, or an attribute is invalid
 */
SOFTHCA_API struct softhca_ah *softhca_create_ah(struct softhca_pd *pd,
						 const struct softhca_ah_attr *attr);

/**
 * Destroy an address handle. Posted requests that name it are not affected.
 *
 * @param ah  address handle
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_destroy_ah(struct softhca_ah *ah);

/**
 * Get the address of the sender of a received datagram.
 *
 * @param ctx  open context
 * @param port  number of the port, from 1
 * @param wc  completion of the receive
 * @param grh  the first SOFTHCA_GRH_BYTES of its buffer
 * @param attr  the address, usable in softhca_create_ah()
 * @return  0, or -EINVAL: wc has no GRH, or the datagram was not sent to a GID of the port
 */
SOFTHCA_API int softhca_init_ah_from_wc(struct softhca_context *ctx, uint8_t port,
					const struct softhca_wc *wc, const void *grh,
					struct softhca_ah_attr *attr);

/**
 * Call softhca_init_ah_from_wc(), then softhca_create_ah().
 *
 * @param pd  protection domain
 * @param wc  completion of the receive
 * @param grh  the first SOFTHCA_GRH_BYTES of its buffer
 * @param port  number of the port, from 1
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_ah *softhca_create_ah_from_wc(struct softhca_pd *pd,
							 const struct softhca_wc *wc,
							 const void *grh, uint8_t port);

/* --- calls: shared receive queues, XRC domains -------------------- */

/**
 * Create a shared receive queue.
 *
 * @param pd  protection domain
 * @param attr  the granted sizes are written back to attr->attr
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_srq *softhca_create_srq(struct softhca_pd *pd,
						   struct softhca_srq_init_attr *attr);

/**
 * As softhca_create_srq(), for basic and XRC SRQs.
 *
 * @param ctx  open context
 * @param attr  the granted sizes are written back to attr->attr
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_srq *softhca_create_srq_ex(struct softhca_context *ctx,
						      struct softhca_srq_init_attr_ex *attr);

/**
 * Set the limit of an SRQ. When fewer receives are left, SOFTHCA_EVENT_SRQ_LIMIT_REACHED is
 * reported once, and the limit becomes 0.
 *
 * @param srq  shared receive queue
 * @param attr  the new limit
 * @param attr_mask  SOFTHCA_SRQ_LIMIT; SOFTHCA_SRQ_MAX_WR is refused with -EOPNOTSUPP
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_modify_srq(struct softhca_srq *srq, const struct softhca_srq_attr *attr,
				   uint32_t attr_mask);

/**
 * Read the size of an SRQ and its limit (0: not set).
 *
 * @param srq  shared receive queue
 * @param attr  attributes
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_query_srq(struct softhca_srq *srq, struct softhca_srq_attr *attr);

/**
 * Get the SRQ number that XRC peers use.
 *
 * @param srq  shared receive queue
 * @param srq_num  SRQ number
 * @return  0
 */
SOFTHCA_API int softhca_get_srq_num(struct softhca_srq *srq, uint32_t *srq_num);

/**
 * Destroy an SRQ. Blocks until every asynchronous event obtained for it has been acknowledged.
 *
 * @param srq  shared receive queue
 * @return  0, or -EBUSY: a QP still uses it
 */
SOFTHCA_API int softhca_destroy_srq(struct softhca_srq *srq);

/**
 * Post a list of receives, as softhca_post_recv().
 *
 * @param srq  shared receive queue
 * @param wr  first receive
 * @param bad_wr  on an error the first request that was not posted; all before it are posted
 * @return  0, or a negative errno
 */
SOFTHCA_API int softhca_post_srq_recv(struct softhca_srq *srq, struct softhca_recv_wr *wr,
				      struct softhca_recv_wr **bad_wr);

/**
 * Open an XRC domain: a new one, or that of a file, which all contexts on the device share that
 * open it.
 *
 * The file's inode names the domain, not its path. O_CREAT makes the domain if the file has none;
 * with O_EXCL the file must have none. It lives until the last context closes it; the descriptor
 * may be closed at once. The owner of the file, root and users with write access to the file may
 * open it.
 *
 * @param ctx  open context
 * @param attr  file and flags
 * @return  the domain; NULL with errno EBADF: fd is not open, or O_PATH; EINVAL: not a regular
 *   file, or other flags; EACCES: a descriptor for reading, of another user's file; ENOENT: the
 *   file has no domain, and O_CREAT is not set; EEXIST: it has one, and both flags are set
 */
SOFTHCA_API struct softhca_xrcd *softhca_open_xrcd(struct softhca_context *ctx,
						   const struct softhca_xrcd_init_attr *attr);

/**
 * Close an XRC domain.
 *
 * @param xrcd  XRC domain
 * @return  0, or -EBUSY: a QP or SRQ of this context still uses it
 */
SOFTHCA_API int softhca_close_xrcd(struct softhca_xrcd *xrcd);

/**
 * Allocate a thread domain: a hint that one thread uses the QPs that are created with it. On a
 * device with several pipelines these QPs are in one pipeline as long as it has QPNs left, so that
 * one worker executes the requests of the thread; QPs of other thread domains may be in others. It
 * has no other effect: the QPs keep their locks.
 *
 * @param ctx  open context
 * @return  the thread domain; NULL: errno is set
 */
SOFTHCA_API struct softhca_td *softhca_alloc_td(struct softhca_context *ctx);

/**
 * Deallocate a thread domain. Its QPs stay as they are.
 *
 * @param td  thread domain
 * @return  0
 */
SOFTHCA_API int softhca_dealloc_td(struct softhca_td *td);

/**
 * As softhca_create_qp_ex(), in a thread domain.
 *
 * @param ctx  open context
 * @param attr  the granted capacities are written back to attr->cap
 * @param td  thread domain of the context; NULL: none
 * @return  the object; NULL: errno is set
 */
SOFTHCA_API struct softhca_qp *softhca_create_qp_td(struct softhca_context *ctx,
						    struct softhca_qp_init_attr_ex *attr,
						    struct softhca_td *td);

/**
 * Open a target QP (XRC_RECV) that a context of the XRC domain has created: another one, or this.
 *
 * All can modify and query it and get its asynchronous events, and it counts for the quotas of
 * each context. softhca_destroy_qp(), as the end of a program, closes it; the last close destroys
 * it. A context that has it more than once gets an event once, about the QP that it got first.
 *
 * @param ctx  open context
 * @param attr  XRC domain and QPN
 * @return  the QP; NULL with errno EINVAL: the domain has no such target; ENOMEM: quotas
 */
SOFTHCA_API struct softhca_qp *softhca_open_qp(struct softhca_context *ctx,
					       const struct softhca_qp_open_attr *attr);

/**
 * Post a list of send requests, with one doorbell.
 *
 * Requests and SGEs may be reused when the call returns; the data buffers only after the requests
 * have completed, except with SOFTHCA_SEND_INLINE.
 *
 * Errors in the meaning of a request, not in its form, are reported by its completion: an opcode
 * that the type of the QP does not have and an address handle of another PD by
 * SOFTHCA_WC_LOC_QP_OP_ERR, a window or region of another PD by SOFTHCA_WC_MW_BIND_ERR. 24 bits of
 * a remote QPN are used.
 *
 * @param qp  queue pair
 * @param wr  first request
 * @param bad_wr  on error, the first request that was not posted; all before it were
 * @return  0, or -ENOMEM: the queue is full; -EIO: the device is dead; -EINVAL: wrong state,
 *   unknown opcode or flags, no address handle, window or region, too many SGEs, too much inline
 *   data, or an SGE longer than 2^31 - 1 bytes
 */
SOFTHCA_API int softhca_post_send(struct softhca_qp *qp, struct softhca_send_wr *wr,
				  struct softhca_send_wr **bad_wr);

/* Requests added between softhca_wr_start() and its end. The members belong to the library. */
struct softhca_wr_batch {
	struct softhca_qp *qp;
	uint64_t doorbell;
	uint32_t room;
	uint32_t count;
	int err;
};

/**
 * Begin to post requests one by one: all of them or none, with one doorbell.
 *
 * The send queue stays locked until softhca_wr_complete() or softhca_wr_abort(), one of which must
 * follow in the same thread. Meanwhile the thread must not post to the QP otherwise.
 *
 * @param batch  memory of the caller; nothing in it need be set. Threads that share the QP may
 *   share it.
 * @param qp  queue pair
 */
SOFTHCA_API void softhca_wr_start(struct softhca_wr_batch *batch, struct softhca_qp *qp);

/**
 * Add a request, built in the send queue at once: neither it nor its SGEs, nor inline data, need
 * stay. wr->next is ignored.
 *
 * @param batch  batch of softhca_wr_start()
 * @param wr  request
 * @return  0, or the error of softhca_post_send() for it; after an error nothing more is added, and
 *   softhca_wr_complete() returns that error
 */
SOFTHCA_API int softhca_wr_add(struct softhca_wr_batch *batch, const struct softhca_send_wr *wr);

/**
 * Post the requests of the batch.
 *
 * @param batch  batch of softhca_wr_start()
 * @return  0, or the first error: no request of the batch is posted
 */
SOFTHCA_API int softhca_wr_complete(struct softhca_wr_batch *batch);

/**
 * Drop the requests of the batch.
 *
 * @param batch  batch of softhca_wr_start()
 */
SOFTHCA_API void softhca_wr_abort(struct softhca_wr_batch *batch);

/**
 * Post a list of receives.
 *
 * @param qp  queue pair
 * @param wr  first receive
 * @param bad_wr  on an error the first request that was not posted; all before it are posted
 * @return  as softhca_post_send()
 */
SOFTHCA_API int softhca_post_recv(struct softhca_qp *qp, struct softhca_recv_wr *wr,
				  struct softhca_recv_wr **bad_wr);

/* --- calls: asynchronous events -------------------- */

/**
 * Get the next asynchronous event. Blocks unless ctx->async_fd is O_NONBLOCK.
 *
 * @param ctx  open context
 * @param event  event
 * @return  as softhca_get_cq_event()
 */
SOFTHCA_API int softhca_get_async_event(struct softhca_context *ctx,
					struct softhca_async_event *event);

/**
 * Acknowledge an event. Each event must be acknowledged once.
 *
 * @param event  event
 */
SOFTHCA_API void softhca_ack_async_event(struct softhca_async_event *event);

/* --- calls: counters (not in verbs) -------------------- */

struct softhca_counter {
	char name[48];
	uint64_t value;
};

/**
 * Read the counters of the device since it was created. Values may lag behind the traffic.
 *
 * @param ctx  open context
 * @param counters  the array to fill; may be NULL if max is 0
 * @param max  size of counters; 0 only asks for the number
 * @return  number of counters that exist, or a negative errno
 */
SOFTHCA_API int softhca_query_counters(struct softhca_context *ctx,
				       struct softhca_counter *counters, unsigned int max);

/**
 * Read the counters of a port, as softhca_query_counters(). Bytes count whole frames.
 *
 * @param ctx  open context
 * @param port_num  number of the port, from 1
 * @param counters  the array to fill; may be NULL if max is 0
 * @param max  size of counters; 0 only asks for the number
 * @return  number of counters that exist, or a negative errno
 */
SOFTHCA_API int softhca_query_port_counters(struct softhca_context *ctx, uint8_t port_num,
					    struct softhca_counter *counters, unsigned int max);

/**
 * Read the counters of a QP since it left RESET (in RESET they are 0), as
 * softhca_query_counters(). Bytes count payload.
 *
 * @param qp  queue pair
 * @param counters  the array to fill; may be NULL if max is 0
 * @param max  size of counters; 0 only asks for the number
 * @return  number of counters that exist, or a negative errno
 */
SOFTHCA_API int softhca_query_qp_counters(struct softhca_qp *qp, struct softhca_counter *counters,
					  unsigned int max);

/* --- names -------------------- */

/* Names of enumeration values: constant strings, never NULL; "unknown" for other values. */
/**
 * Name of a completion status.
 *
 * @param status  enum softhca_wc_status
 * @return  a constant string, never NULL; "unknown" for other values
 */
SOFTHCA_API const char *softhca_wc_status_str(uint32_t status);

/**
 * Name of a completion opcode.
 *
 * @param opcode  enum softhca_wc_opcode
 * @return  a constant string, never NULL; "unknown" for other values
 */
SOFTHCA_API const char *softhca_wc_opcode_str(uint32_t opcode);

/**
 * Name of a QP state.
 *
 * @param state  enum softhca_qp_state
 * @return  a constant string, never NULL; "unknown" for other values
 */
SOFTHCA_API const char *softhca_qp_state_str(uint32_t state);

/**
 * Name of an asynchronous event.
 *
 * @param type  enum softhca_event_type
 * @return  a constant string, never NULL; "unknown" for other values
 */
SOFTHCA_API const char *softhca_event_type_str(uint32_t type);

/**
 * Name of a port state.
 *
 * @param state  enum softhca_port_state
 * @return  a constant string, never NULL; "unknown" for other values
 */
SOFTHCA_API const char *softhca_port_state_str(uint32_t state);

#ifdef __cplusplus
}
#endif

#endif
