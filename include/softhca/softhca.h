/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOFTHCA_SOFTHCA_H
#define SOFTHCA_SOFTHCA_H

/*
 * softhca: the public interface of a host channel adapter in software.
 *
 * Objects and calls are those of the InfiniBand verbs, one to one, and every enumeration has the
 * numbers verbs gives it, so that a libibverbs front is a thin layer. Everything is in host byte
 * order unless a comment says "network order". Sizes are bytes.
 *
 * Errors. Calls that return int give 0 or a negative errno; calls that return a pointer give NULL
 * and set errno (positive, as libc does). softhca_last_error() holds a sentence that says why.
 *   -EINVAL  an argument, attribute, state or handle is wrong
 *   -ENOMEM  a queue, a table or memory is full
 *   -EBUSY   the object is still used by another one
 *   -EPERM   the object or the memory belongs to somebody else
 *   -EAGAIN  nothing there (non-blocking event calls)
 *   -EFAULT  nothing is mapped at an address
 *   -EIO     the device does not answer any more
 *   -EOPNOTSUPP  not offered by this device
 *
 * Threads. All calls are thread safe. Objects created with SOFTHCA_SINGLE_THREADED take no lock in
 * post_send, post_recv, poll_cq and req_notify_cq: then the caller makes sure that one thread at a
 * time uses the object *and*, for a QP, both of its CQs. Destroying an object that another thread
 * still uses is the caller's error, as in verbs.
 *
 * Progress. A context whose engine runs in threads of its own, or in a daemon, needs nothing. In
 * manual progress (embedded mode) the engine runs inside poll_cq when there is no
 * completion, inside post_send once 32 requests have been posted without that, and inside
 * req_notify_cq, get_cq_event and softhca_progress(). Who posts must come back and poll.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTHCA_API __attribute__((visibility("default")))

/* --- objects -------------------- */

/* The visible part of each object is read-only for the program. */
struct softhca_context {
	const char *name; /* "softhca0" */
	int async_fd;	  /* readable when get_async_event would not block */
	uint32_t num_comp_vectors;
};

struct softhca_pd {
	struct softhca_context *context;
	uint32_t handle;
};

struct softhca_mr {
	struct softhca_context *context;
	struct softhca_pd *pd;
	uint64_t addr; /* first address, as work requests and the peer name it */
	uint64_t length;
	uint32_t lkey;
	uint32_t rkey;
};

struct softhca_mw {
	struct softhca_context *context;
	struct softhca_pd *pd;
	uint32_t rkey; /* type 1: current; type 2: as it was allocated, the program counts on */
	uint32_t handle;
	uint32_t type; /* enum softhca_mw_type */
};

struct softhca_comp_channel {
	struct softhca_context *context;
	int fd; /* readable when get_cq_event would not block */
};

struct softhca_cq {
	struct softhca_context *context;
	struct softhca_comp_channel *channel;
	void *cq_context; /* the program's own pointer */
	uint32_t handle;
	int cqe; /* entries the queue holds */
};

struct softhca_ah {
	struct softhca_context *context;
	struct softhca_pd *pd;
};

struct softhca_srq {
	struct softhca_context *context;
	struct softhca_pd *pd;
	void *srq_context; /* the program's own pointer */
	uint32_t handle;   /* SRQ number, also the one a peer names in XRC */
};

struct softhca_xrcd {
	struct softhca_context *context;
	uint32_t handle;
};

struct softhca_qp {
	struct softhca_context *context;
	struct softhca_pd *pd; /* NULL: XRC_RECV */
	struct softhca_cq *send_cq;
	struct softhca_cq *recv_cq;
	struct softhca_srq *srq;
	void *qp_context; /* the program's own pointer */
	uint32_t qp_num;
	uint32_t state;	  /* enum softhca_qp_state, as of the last modify or query */
	uint32_t qp_type; /* enum softhca_qp_type */
};

/* --- device, port, addresses -------------------- */

struct softhca_device {
	char name[64];
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

struct softhca_device_attr {
	char fw_ver[64];
	uint64_t node_guid;
	uint64_t max_mr_size;
	uint64_t page_size_cap; /* bit n set: pages of 2^n bytes */
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
	uint32_t max_qp_rd_atom;      /* READ and ATOMIC served at a time, per QP */
	uint32_t max_qp_init_rd_atom; /* READ and ATOMIC requested at a time, per QP */
	uint32_t max_inline_data;
	uint32_t max_pkeys;
	uint32_t phys_port_cnt;
	uint32_t local_ca_ack_delay;
	uint32_t max_srq;
	uint32_t max_srq_wr;
	uint32_t max_srq_sge;
	uint32_t max_ah;
	uint32_t max_mcast_grp;
	uint32_t max_mcast_qp_attach; /* QPs per group */
	uint32_t max_mw;
	uint32_t max_xrcd;
	uint32_t atomic_cap;	   /* enum softhca_atomic_cap */
	uint64_t device_cap_flags; /* enum softhca_device_cap_flags */
};

enum softhca_atomic_cap {
	SOFTHCA_ATOMIC_NONE,
	SOFTHCA_ATOMIC_HCA,
	SOFTHCA_ATOMIC_GLOB, /* also against the CPUs of the host */
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

struct softhca_port_attr {
	uint32_t state;	  /* enum softhca_port_state */
	uint32_t max_mtu; /* enum softhca_mtu */
	uint32_t active_mtu;
	uint32_t gid_tbl_len;
	uint32_t pkey_tbl_len;
	uint32_t max_msg_sz;
	uint64_t active_speed; /* Mb/s, 0 = unknown */
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

/* One entry of the GID table with what belongs to it; ours in place of ndev_ifindex: VLAN. */
struct softhca_gid_entry {
	union softhca_gid gid;
	uint32_t gid_index;
	uint32_t port_num;
	uint32_t gid_type; /* enum softhca_gid_type */
	uint16_t vlan_id;  /* 0xffff: none */
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
	SOFTHCA_ACCESS_ON_DEMAND = 1 << 6,	   /* -EOPNOTSUPP */
	SOFTHCA_ACCESS_RELAXED_ORDERING = 1 << 20, /* allowed, changes nothing */
	SOFTHCA_ACCESS_KEEP_PRIVATE = 1 << 30,	   /* not of verbs: see softhca_reg_mr() */
};

/* Numbers of ibv_rereg_mr_flags */
enum softhca_rereg_mr_flags {
	SOFTHCA_REREG_MR_CHANGE_TRANSLATION = 1 << 0,
	SOFTHCA_REREG_MR_CHANGE_PD = 1 << 1,
	SOFTHCA_REREG_MR_CHANGE_ACCESS = 1 << 2,
};

enum softhca_mw_type {
	SOFTHCA_MW_TYPE_1 = 1, /* bound by softhca_bind_mw(), used by every QP of its PD */
	SOFTHCA_MW_TYPE_2,     /* (2B) bound by SOFTHCA_WR_BIND_MW, used by that QP only */
};

/* length 0 unbinds (type 1). access: remote rights, and ZERO_BASED. */
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
	SOFTHCA_WC_RECV = 1 << 7,
	SOFTHCA_WC_RECV_RDMA_WITH_IMM,
};

enum softhca_wc_flags {
	SOFTHCA_WC_GRH = 1 << 0,
	SOFTHCA_WC_WITH_IMM = 1 << 1,
	SOFTHCA_WC_WITH_INV = 1 << 3,
};

/*
 * After an error status only wr_id, status, vendor_err and qp_num are valid; opcode then says no
 * more than the queue (SEND or RECV).
 */
struct softhca_wc {
	uint64_t wr_id;
	uint32_t status;     /* enum softhca_wc_status */
	uint32_t opcode;     /* enum softhca_wc_opcode */
	uint32_t vendor_err; /* syndrome[7:0] and vendor error[15:8] of the device */
	uint32_t byte_len;   /* receives, READ and atomics */
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

struct softhca_cq_init_attr {
	uint32_t cqe; /* wanted; rounded up to a power of two */
	uint32_t comp_vector;
	struct softhca_comp_channel *channel; /* or NULL */
	void *cq_context;
	uint32_t flags; /* enum softhca_create_flags */
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

/* Numbers of ibv_qp_type. Reliable datagrams (RD) exist nowhere and are refused. */
enum softhca_qp_type {
	SOFTHCA_QPT_RC = 2,
	SOFTHCA_QPT_UC,
	SOFTHCA_QPT_UD,
	SOFTHCA_QPT_XRC_SEND = 9, /* requests; names the SRQ at the peer */
	SOFTHCA_QPT_XRC_RECV,	  /* executes them; has no queues of its own */
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
	struct softhca_srq *srq;   /* RC, UD: instead of a receive queue; or NULL */
	struct softhca_qp_cap cap; /* in: wanted; out: granted (at least what was wanted) */
	uint32_t qp_type;	   /* enum softhca_qp_type */
	int sq_sig_all;		   /* non-zero: every send request is signalled */
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
	struct softhca_pd *pd;	   /* all but XRC_RECV */
	struct softhca_xrcd *xrcd; /* XRC_RECV */
};

/* --- shared receive queues -------------------- */

struct softhca_srq_attr {
	uint32_t max_wr; /* in: wanted; out: granted */
	uint32_t max_sge;
	uint32_t srq_limit; /* an event when fewer receives are left; 0 = never */
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
	uint32_t comp_mask; /* ignored: what the type needs must be there */
	uint32_t srq_type;  /* enum softhca_srq_type */
	struct softhca_pd *pd;
	struct softhca_xrcd *xrcd; /* XRC */
	struct softhca_cq *cq;	   /* XRC: where its receives complete */
};

enum softhca_srq_attr_mask {
	SOFTHCA_SRQ_MAX_WR = 1 << 0, /* refused: SRQs are not resized */
	SOFTHCA_SRQ_LIMIT = 1 << 1,
};

struct softhca_xrcd_init_attr {
	uint32_t comp_mask;
	int fd;	    /* -1: a domain of its own; files that share domains are not offered */
	int oflags; /* ignored */
};

/* --- addresses -------------------- */

/*
 * Static rates: frames of the QP, of UD the datagrams to this address, leave no faster than this,
 * counted in bytes of Ethernet frames. READ responses are not paced. X(name, number, Mb/s)
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
	SOFTHCA_RATE_MAX = 0, /* of the port */
#define SOFTHCA_RATE_NUMBER(name, number, mbps) SOFTHCA_RATE_##name = number,
	SOFTHCA_RATE_LIST(SOFTHCA_RATE_NUMBER)
#undef SOFTHCA_RATE_NUMBER
};

struct softhca_ah_attr {
	union softhca_gid dgid;
	uint32_t flow_label; /* 20 bits */
	uint8_t sgid_index;
	uint8_t hop_limit; /* 0 = 64 */
	uint8_t traffic_class;
	uint8_t sl;	     /* priority in a VLAN, 0..7 */
	uint8_t static_rate; /* enum softhca_rate */
	uint8_t port_num;    /* from 1 */
	uint8_t is_global;   /* always taken as 1: RoCE */
};

struct softhca_qp_attr {
	uint32_t qp_state; /* enum softhca_qp_state */
	uint32_t cur_qp_state;
	uint32_t path_mtu; /* enum softhca_mtu */
	uint32_t path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn; /* 24 bits */
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	uint32_t qp_access_flags; /* the remote ones of enum softhca_access_flags */
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
	uint8_t timeout;   /* 4.096 us * 2^timeout, 0 = wait for ever */
	uint8_t retry_cnt; /* 0..7 */
	uint8_t rnr_retry; /* 0..6, 7 = for ever */
	uint8_t alt_port_num;
	uint8_t alt_timeout;
};

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
	SOFTHCA_WR_OPCODE_COUNT,
};

enum softhca_send_flags {
	SOFTHCA_SEND_FENCE = 1 << 0,
	SOFTHCA_SEND_SIGNALED = 1 << 1,
	SOFTHCA_SEND_SOLICITED = 1 << 2,
	SOFTHCA_SEND_INLINE = 1 << 3,
};

struct softhca_sge {
	uint64_t addr;
	uint32_t length; /* at most 2^31 - 1; a message at most 2^31 in all */
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
		} atomic; /* result: 8 bytes in host order at the SGE */
		struct {
			struct softhca_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey; /* bit 31 set: the QP's own */
		} ud;
	} wr;
	union {
		struct {
			uint32_t remote_srqn;
		} xrc;
	} qp_type;
	union {
		struct {
			struct softhca_mw *mw;
			uint32_t rkey; /* the next one: softhca_inc_rkey() of the last */
			struct softhca_mw_bind_info bind_info;
		} bind_mw;
	};
};

/* The 40 bytes in front of a datagram: an IPv6 header, or 20 zeros and an IPv4 header. */
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

/*
 * Devices of the daemons of this host: sockets in /run/softhca, or where the environment's
 * SOFTHCA_DIRECTORY says. The list ends with NULL; num_devices may be NULL.
 */
SOFTHCA_API struct softhca_device **softhca_get_device_list(int *num_devices);
SOFTHCA_API void softhca_free_device_list(struct softhca_device **list);
SOFTHCA_API const char *softhca_get_device_name(const struct softhca_device *device);

/*
 * Open a device by its name in that list, or by the path of its socket (a name with a '/'). NULL:
 * the one the environment's SOFTHCA_DEVICE names, else the first of the list. "embed" starts two
 * HCAs back to back inside the process and opens the first ("embed:1" the second); it loads
 * libsofthca-embed. Programs that want to choose more use <softhca/embed.h>.
 *
 * A daemon may look at memory that is handed to it, so its socket must be of root, of the program's
 * own user, of the owner of /run/softhca, or of the user that SOFTHCA_DAEMON_USER names: else
 * -EACCES.
 *
 * A device behind a daemon reaches only memory that is shared with it; see "memory" below. When the
 * daemon ends: get_async_event() gives DEVICE_FATAL, whoever waits for an event wakes with -EIO,
 * polls of an empty CQ, posts and calls give -EIO. A process that was forked off has no use of its
 * parent's contexts: calls give -EPERM; it may open its own.
 */
SOFTHCA_API int softhca_open(const char *name, struct softhca_context **ctx);

/* Destroys what the program left. -EBUSY is never returned. */
SOFTHCA_API int softhca_close(struct softhca_context *ctx);

/* Why the last failed call of this thread failed; never NULL. ctx may be NULL. */
SOFTHCA_API const char *softhca_last_error(const struct softhca_context *ctx);

SOFTHCA_API int softhca_query_device(struct softhca_context *ctx, struct softhca_device_attr *attr);
SOFTHCA_API int softhca_query_port(struct softhca_context *ctx, unsigned int port,
				   struct softhca_port_attr *attr);
SOFTHCA_API int softhca_query_gid(struct softhca_context *ctx, unsigned int port,
				  unsigned int index, union softhca_gid *gid);
/* gid, type, VLAN and MAC of an entry; -ENODATA: it is empty. flags must be 0. */
SOFTHCA_API int softhca_query_gid_ex(struct softhca_context *ctx, unsigned int port,
				     unsigned int index, struct softhca_gid_entry *entry,
				     uint32_t flags);
/*
 * A QP keeps the P_Key that stood at its index when modify_qp named it; after
 * SOFTHCA_EVENT_PKEY_CHANGE the program names the index again where the new one is wanted.
 */
SOFTHCA_API int softhca_query_pkey(struct softhca_context *ctx, unsigned int port,
				   unsigned int index, uint16_t *pkey /* host order */);

/* Run the engine once where progress is manual; otherwise nothing. Returns the work done. */
SOFTHCA_API unsigned int softhca_progress(struct softhca_context *ctx);

/* --- calls: memory -------------------- */

SOFTHCA_API struct softhca_pd *softhca_alloc_pd(struct softhca_context *ctx);
SOFTHCA_API int softhca_dealloc_pd(struct softhca_pd *pd); /* -EBUSY while it is used */

/*
 * Memory that a daemon's device can reach without further ado: zeroed, aligned to 4 KiB (to 2 MiB
 * from that size on, in hugepages where there are any). It belongs to the process, not to a
 * context; any number of regions may lie in it, and go before it does. A child of fork() does not
 * have it.
 *
 * Memory shared with a daemon, wherever it comes from: the process fills it (no page is made by the
 * daemon). A piece of more than 4 MiB is shared with one context: the daemon seals its file against
 * holes and later writers. Regions of another context in it are refused with -EOPNOTSUPP.
 */
SOFTHCA_API void *softhca_alloc(size_t bytes);
SOFTHCA_API int softhca_free(void *mem);

/*
 * Memory at addr is a shared mapping of the file fd from offset on: regions in it need no more. The
 * file is a memfd (or hugetlb memfd) with F_SEAL_SHRINK, open for reading and writing; whole pages.
 * It must stay mapped until softhca_detach(), which gives -EBUSY while a region lies in it. Other
 * files are refused when a region is registered (-EBADF). A file of more than 4 MiB is sealed at
 * the first region (F_SEAL_FUTURE_WRITE): map it for writing before, and attach all of it at once;
 * nobody punches holes into it or maps it for writing after. Who punches one into a smaller file
 * loses the device.
 */
SOFTHCA_API int softhca_attach(int fd, void *addr, uint64_t length, uint64_t offset);
SOFTHCA_API int softhca_detach(void *addr);

/*
 * Register [addr, addr + length) of the process. Remote write or atomic need local write, and only
 * then must the memory be writable. ZERO_BASED: work requests and the peer count from 0.
 * length 0 is refused, and so is memory that is not there (-EFAULT). It must stay mapped until
 * softhca_dereg_mr() has returned.
 *
 * With a device behind a daemon the memory must be shared with it. Memory of softhca_alloc() and
 * softhca_attach() is; of another shared mapping of a sealed memfd the file is found while a
 * descriptor of it is open. Private anonymous memory (malloc, mmap, most of .bss) is exchanged in
 * place for shared memory with the same contents, in whole pages, and back when the last region on
 * a page goes: nobody notices, and no store or read(2) of another thread is lost meanwhile, but for
 * transfers to pages the kernel has pinned (O_DIRECT, io_uring with fixed buffers). While it is
 * registered a child of fork() gets a copy of it, made at fork().
 *
 * What cannot be shared stays as it is and is reached the slow way, each packet by system calls of
 * the daemon on the process's /proc/self/mem: stacks, mappings of files (.data too), memory that
 * cannot be written, and all private memory where the process may not use userfaultfd. If a part of
 * a region is such memory all of it goes that way; other regions keep theirs. A process that forks
 * much asks for it: KEEP_PRIVATE in access, or SOFTHCA_SLOW_MR=1 in the environment for all
 * regions, leaves private memory private, and a child costs nothing more; softhca_alloc() is as
 * fast as ever. Everything works there, if the daemon's configuration has slow_memory = yes
 * (-EOPNOTSUPP else), with these differences: ATOMICs are atomic among the requests of the network
 * only (SOFTHCA_ATOMIC_HCA); memory unmapped under a region fails the request instead of keeping
 * its pages; and memory that answers slowly (a page on a slow disk) costs its own queue pairs
 * retries. -EFAULT:
 * something in the range is not mapped, -EACCES: it may not be read, or with local write written.
 */
SOFTHCA_API struct softhca_mr *softhca_reg_mr(struct softhca_pd *pd, void *addr, uint64_t length,
					      uint32_t access);

/*
 * Register a list of pages: region byte i lies at pages[(va % page_size + i) / page_size] +
 * (va + i) % page_size. page_size is a power of two from 4 KiB to 1 GiB, every page is aligned to
 * it, and npages covers the range exactly. The same page may appear any number of times: a 2 GiB
 * region can lie on one small buffer. va is what work requests and the peer use; it need not be
 * mapped in the process.
 */
SOFTHCA_API struct softhca_mr *softhca_reg_mr_pages(struct softhca_pd *pd, uint64_t va,
						    uint64_t length, uint64_t page_size,
						    void *const pages[], uint64_t npages,
						    uint32_t access);

/*
 * When this has returned the device touches the memory no more. -EBUSY: a queue lives in it, or a
 * memory window is bound to it.
 */
SOFTHCA_API int softhca_dereg_mr(struct softhca_mr *mr);

/*
 * Change what flags name (enum softhca_rereg_mr_flags) and take the rest over. Accesses meanwhile
 * fail as if the region did not exist. New translation or PD: new keys. On error the registration
 * is what it was. -EBUSY as with softhca_dereg_mr(). KEEP_PRIVATE in access goes with the
 * translation.
 */
SOFTHCA_API int softhca_rereg_mr(struct softhca_mr *mr, uint32_t flags, struct softhca_pd *pd,
				 void *addr, uint64_t length, uint32_t access);

/* --- calls: memory windows -------------------- */

/*
 * A window gives a part of a region (registered with ACCESS_MW_BIND, same PD) rights of its own,
 * under a key that the data path changes. Remote write and atomic need local write of the region.
 * A bind that fails completes with WC_MW_BIND_ERR and takes the QP to ERR. What is bound to a QP
 * that is reset or destroyed can be used by nobody; the window may be deallocated as always.
 */
SOFTHCA_API struct softhca_mw *softhca_alloc_mw(struct softhca_pd *pd, uint32_t type);
SOFTHCA_API int softhca_dealloc_mw(struct softhca_mw *mw);

/*
 * Type 1: post a bind; mw->rkey is the new key at once, valid when the request has completed. A
 * window may be bound again without unbinding.
 */
SOFTHCA_API int softhca_bind_mw(struct softhca_qp *qp, struct softhca_mw *mw,
				struct softhca_mw_bind *mw_bind);

/* The key with the next tag, for SOFTHCA_WR_BIND_MW. */
static inline uint32_t
softhca_inc_rkey(uint32_t rkey)
{
	return (rkey & 0xffffff00u) | ((rkey + 1) & 0xffu);
}

/* --- calls: completion queues -------------------- */

SOFTHCA_API struct softhca_comp_channel *softhca_create_comp_channel(struct softhca_context *ctx);
SOFTHCA_API int softhca_destroy_comp_channel(struct softhca_comp_channel *channel);

SOFTHCA_API struct softhca_cq *softhca_create_cq(struct softhca_context *ctx,
						 const struct softhca_cq_init_attr *attr);

/*
 * Another number of entries, rounded up to a power of two; what is in the queue stays. -EINVAL:
 * more is waiting than would fit, nothing has changed. Under way without pausing traffic.
 */
SOFTHCA_API int softhca_resize_cq(struct softhca_cq *cq, int cqe);

/*
 * Moderation: an event that was asked for comes when cq_count completions have arrived since the
 * last one, or cq_period microseconds after the first of them (0: no such limit; both 0: at once).
 * Solicited and failed completions do not wait.
 */
SOFTHCA_API int softhca_modify_cq(struct softhca_cq *cq, const struct softhca_modify_cq_attr *attr);

/* -EBUSY while a QP uses it. Waits until every event got from it has been acknowledged. */
SOFTHCA_API int softhca_destroy_cq(struct softhca_cq *cq);

/* One event at the next completion (or the next solicited or failed one). Poll once more after. */
SOFTHCA_API int softhca_req_notify_cq(struct softhca_cq *cq, int solicited_only);

/* Blocks, unless the channel's fd was set to O_NONBLOCK (then -EAGAIN). */
SOFTHCA_API int softhca_get_cq_event(struct softhca_comp_channel *channel, struct softhca_cq **cq,
				     void **cq_context);
SOFTHCA_API void softhca_ack_cq_events(struct softhca_cq *cq, unsigned int nevents);

/* Number of entries written to wc, 0..num_entries, or a negative errno. */
SOFTHCA_API int softhca_poll_cq(struct softhca_cq *cq, int num_entries, struct softhca_wc *wc);

/* --- calls: queue pairs -------------------- */

/* Granted capacities are written back to attr->cap. The QP is in RESET. */
SOFTHCA_API struct softhca_qp *softhca_create_qp(struct softhca_pd *pd,
						 struct softhca_qp_init_attr *attr);

/* The transitions and attributes of InfiniBand; last_error names what is missing or not allowed. */
SOFTHCA_API int softhca_modify_qp(struct softhca_qp *qp, const struct softhca_qp_attr *attr,
				  uint32_t attr_mask);

/* Fills all of attr, whatever the mask; init_attr may be NULL. */
SOFTHCA_API int softhca_query_qp(struct softhca_qp *qp, struct softhca_qp_attr *attr,
				 uint32_t attr_mask, struct softhca_qp_init_attr *init_attr);

/* When this has returned the device touches neither its queues nor any memory for it. */
SOFTHCA_API int softhca_destroy_qp(struct softhca_qp *qp);

/* The same for types that need more than a PD: XRC_RECV takes a domain and no queue. */
SOFTHCA_API struct softhca_qp *softhca_create_qp_ex(struct softhca_context *ctx,
						    struct softhca_qp_init_attr_ex *attr);

/*
 * Datagrams of this group reach the QP (UD) too. lid is ignored. Not in RESET, where a QP is in no
 * group: going there leaves them all, as destroying it does.
 */
SOFTHCA_API int softhca_attach_mcast(struct softhca_qp *qp, const union softhca_gid *gid,
				     uint16_t lid);
SOFTHCA_API int softhca_detach_mcast(struct softhca_qp *qp, const union softhca_gid *gid,
				     uint16_t lid);

/* --- calls: address handles -------------------- */

/*
 * Where a datagram goes. The destination's MAC address is looked up here, once: -EHOSTUNREACH when
 * nobody knows it, -EINVAL when source and destination are of different IP versions.
 *
 * As with other RNICs the handle is the address vector of the WQEs, and stays what it was made as.
 * A connected QP follows a neighbour or router that gets another MAC address; a handle does not,
 * and its datagrams go to the old one: a program that hears nothing any more makes a new handle.
 */
SOFTHCA_API struct softhca_ah *softhca_create_ah(struct softhca_pd *pd,
						 const struct softhca_ah_attr *attr);
SOFTHCA_API int softhca_destroy_ah(struct softhca_ah *ah);

/* The way back to the sender of a datagram: wc of its receive, grh its first 40 bytes. */
SOFTHCA_API int softhca_init_ah_from_wc(struct softhca_context *ctx, uint8_t port,
					const struct softhca_wc *wc, const void *grh,
					struct softhca_ah_attr *attr);
SOFTHCA_API struct softhca_ah *softhca_create_ah_from_wc(struct softhca_pd *pd,
							 const struct softhca_wc *wc,
							 const void *grh, uint8_t port);

/* --- calls: shared receive queues, XRC domains -------------------- */

SOFTHCA_API struct softhca_srq *softhca_create_srq(struct softhca_pd *pd,
						   struct softhca_srq_init_attr *attr);
SOFTHCA_API struct softhca_srq *softhca_create_srq_ex(struct softhca_context *ctx,
						      struct softhca_srq_init_attr_ex *attr);
SOFTHCA_API int softhca_modify_srq(struct softhca_srq *srq, const struct softhca_srq_attr *attr,
				   uint32_t attr_mask);
SOFTHCA_API int softhca_query_srq(struct softhca_srq *srq, struct softhca_srq_attr *attr);
SOFTHCA_API int softhca_get_srq_num(struct softhca_srq *srq, uint32_t *srq_num);

/* -EBUSY while a QP uses it. */
SOFTHCA_API int softhca_destroy_srq(struct softhca_srq *srq);
SOFTHCA_API int softhca_post_srq_recv(struct softhca_srq *srq, struct softhca_recv_wr *wr,
				      struct softhca_recv_wr **bad_wr);

SOFTHCA_API struct softhca_xrcd *softhca_open_xrcd(struct softhca_context *ctx,
						   const struct softhca_xrcd_init_attr *attr);
SOFTHCA_API int softhca_close_xrcd(struct softhca_xrcd *xrcd); /* -EBUSY while it is used */

/*
 * Post a list. On error *bad_wr is the first request that was not posted; all before it are. One
 * doorbell per call. -ENOMEM: the queue is full. -EIO: the device is dead. -EINVAL: wrong state,
 * opcode, too many SGEs, too much inline data, an SGE longer than 2^31 - 1.
 */
SOFTHCA_API int softhca_post_send(struct softhca_qp *qp, struct softhca_send_wr *wr,
				  struct softhca_send_wr **bad_wr);
SOFTHCA_API int softhca_post_recv(struct softhca_qp *qp, struct softhca_recv_wr *wr,
				  struct softhca_recv_wr **bad_wr);

/* --- calls: asynchronous events -------------------- */

/* Blocks, unless ctx->async_fd was set to O_NONBLOCK (then -EAGAIN). */
SOFTHCA_API int softhca_get_async_event(struct softhca_context *ctx,
					struct softhca_async_event *event);
SOFTHCA_API void softhca_ack_async_event(struct softhca_async_event *event);

/* --- calls: counters (not of verbs) -------------------- */

struct softhca_counter {
	char name[48];
	uint64_t value;
};

/*
 * Counters since the device was made, of its port, and of a QP since it left RESET (in RESET: 0).
 * Fills in at most max (NULL and 0 to learn the number); returns how many there are or a negative
 * errno. Bytes of the port are those of frames, bytes of a QP are payload. Values may lag.
 */
SOFTHCA_API int softhca_query_counters(struct softhca_context *ctx,
				       struct softhca_counter *counters, unsigned int max);
SOFTHCA_API int softhca_query_port_counters(struct softhca_context *ctx, uint8_t port_num,
					    struct softhca_counter *counters, unsigned int max);
SOFTHCA_API int softhca_query_qp_counters(struct softhca_qp *qp, struct softhca_counter *counters,
					  unsigned int max);

/* --- names -------------------- */

/* Never NULL: what has no name is "unknown". */
SOFTHCA_API const char *softhca_wc_status_str(uint32_t status);
SOFTHCA_API const char *softhca_wc_opcode_str(uint32_t opcode);
SOFTHCA_API const char *softhca_qp_state_str(uint32_t state);
SOFTHCA_API const char *softhca_event_type_str(uint32_t type);
SOFTHCA_API const char *softhca_port_state_str(uint32_t state);

#ifdef __cplusplus
}
#endif

#endif
