/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_PROTO_H
#define IPC_PROTO_H

/*
 * The control channel on a unix socket (SOCK_SEQPACKET): one message is one packet, a request is
 * answered by one reply, and one request at a time is under way. Both ends are on one machine: host
 * byte order, flat structures, addresses are those of the client. File descriptors accompany a
 * message as SCM_RIGHTS. The server believes nothing of what it reads.
 *
 * The first message is HELLO. Its reply brings a nonce: the n-th request after it (n from 1) has
 * seq = nonce + n, so that two writers of one socket, or a client that has lost count, are found
 * out at once. Any breach of the framing ends the connection; a request that is merely refused is
 * answered with a negative errno and a sentence.
 *
 * Across versions: the heads of requests and replies, the number of HELLO and the size of its body
 * stay as they are. A HELLO of another version is answered in the version it came with, so that its
 * sender takes the reply: -EPROTONOSUPPORT, `speaks` and a sentence. Then the connection ends.
 * Daemons of version 1 that know nothing of this end it without an answer.
 */

#include <stdint.h>

#include "abi_ctl.h"
#include "abi_ctx.h"

#define IPC_VERSION 2u
#define IPC_MAGIC 0x41434873u /* "sHCA" */
#define IPC_DIRECTORY "/run/softhca"
#define IPC_BODY_MAX 32768u
#define IPC_FDS_MAX 4u
#define IPC_SMALL_FILE (UINT64_C(4) << 20) /* a memfd up to here may serve several devices */
#define IPC_PAGES_MAX 4000u		   /* page addresses per message */

struct ipc_request {
	uint16_t version;
	uint16_t op;
	uint32_t len; /* bytes of the body behind this */
	uint64_t seq;
};

struct ipc_reply {
	uint16_t version;
	uint16_t op;
	uint32_t len;
	uint64_t seq;
	int32_t err;	  /* 0 or negative errno; then there is no body */
	uint32_t speaks;  /* the daemon's own version */
	char reason[168]; /* why, 0-terminated */
};

struct ipc_none {
	uint8_t nothing[0];
};

struct ipc_hello {
	uint32_t magic;
	uint32_t reserved;
};

/*
 * With four descriptors: the doorbell page, the asynchronous channel, a page of sleep words to be
 * read, an eventfd that wakes the worker whose word is at sleep_offset: the one that looks at
 * doorbells (struct softhca_ctl_ops, sleep). The eventfd is this client's alone.
 */
struct ipc_welcome {
	uint64_t nonce;
	uint32_t sleep_offset;
	uint32_t reserved;
	struct hca_ctl_info info;
	char name[32]; /* of the device */
};

struct ipc_number {
	uint32_t number;
	uint32_t reserved;
};

struct ipc_pair {
	uint32_t number;
	uint32_t value;
};

struct ipc_gid {
	uint8_t gid[16];
};

/* Page addresses of the next REG_MR: appended to those that came before */
struct ipc_pages {
	uint32_t count;
	uint32_t reserved;
	uint64_t page[IPC_PAGES_MAX];
};

struct ipc_rereg {
	uint32_t lkey;
	uint32_t flags;
	struct hca_ctl_mr mr;
};

struct ipc_resize {
	uint32_t cqn;
	uint32_t log_size;
	uint64_t addr;
};

struct ipc_moderate {
	uint32_t cqn;
	uint16_t count;
	uint16_t period_us;
};

struct ipc_modify {
	uint32_t qpn;
	uint32_t opcode;
	uint32_t has_mailbox;
	uint32_t reserved;
	struct hca_qpc mailbox;
};

struct ipc_mcast {
	uint32_t qpn;
	uint32_t attach;
	uint8_t mgid[16];
};

struct ipc_count {
	uint32_t of; /* enum hca_ctl_counters_of */
	uint32_t number;
	uint32_t max;
	uint32_t reserved;
};

/* The reply ends behind its count-th counter. */
#define IPC_COUNTERS_MAX ((IPC_BODY_MAX - 8u) / sizeof(struct hca_ctl_counter))

struct ipc_counters {
	uint32_t total;
	uint32_t count;
	struct hca_ctl_counter counter[IPC_COUNTERS_MAX];
};

/*
 * X(NAME, body of the request, body of the reply, descriptors with the request, with the reply).
 * The numbers are the order; a body has exactly its size, but PAGES and the reply of
 * QUERY_COUNTERS, which end behind their last element. The file of ATTACH is a memfd sealed against
 * shrinking (F_SEAL_SHRINK), open for reading and writing, without holes in the segment. Up to
 * IPC_SMALL_FILE the daemon seals it against growing, and a client with a hole there ends; larger
 * ones it seals against writers that come later (F_SEAL_FUTURE_WRITE): no holes, and no second
 * device. MEMORY brings /proc/self/mem, open for reading and writing, and /proc/self/maps; from
 * then on regions may have HCA_CTL_ACCESS_FOREIGN.
 */
#define IPC_OPS(X) \
	X(HELLO, hello, struct ipc_hello, struct ipc_welcome, 0, 4) \
	X(QUERY_PORT, query_port, struct ipc_number, struct hca_ctl_port, 0, 0) \
	X(QUERY_GID, query_gid, struct ipc_number, struct ipc_gid, 0, 0) \
	X(QUERY_GID_ENTRY, query_gid_entry, struct ipc_number, struct hca_ctl_gid, 0, 0) \
	X(QUERY_PKEY, query_pkey, struct ipc_number, struct ipc_number, 0, 0) \
	X(RESOLVE, resolve, struct hca_ctl_ah, struct hca_ctl_ah, 0, 0) \
	X(ALLOC_PD, alloc_pd, struct ipc_none, struct ipc_number, 0, 0) \
	X(DEALLOC_PD, dealloc_pd, struct ipc_number, struct ipc_none, 0, 0) \
	X(PAGES, pages, struct ipc_pages, struct ipc_none, 0, 0) \
	X(REG_MR, reg_mr, struct hca_ctl_mr, struct hca_ctl_keys, 0, 0) \
	X(DEREG_MR, dereg_mr, struct ipc_number, struct ipc_none, 0, 0) \
	X(REREG_MR, rereg_mr, struct ipc_rereg, struct hca_ctl_keys, 0, 0) \
	X(ALLOC_MW, alloc_mw, struct ipc_pair, struct ipc_number, 0, 0) \
	X(DEALLOC_MW, dealloc_mw, struct ipc_number, struct ipc_none, 0, 0) \
	X(CREATE_CHANNEL, create_channel, struct ipc_none, struct ipc_number, 0, 1) \
	X(DESTROY_CHANNEL, destroy_channel, struct ipc_number, struct ipc_none, 0, 0) \
	X(CREATE_CQ, create_cq, struct hca_ctl_cq, struct ipc_number, 0, 0) \
	X(DESTROY_CQ, destroy_cq, struct ipc_number, struct ipc_none, 0, 0) \
	X(RESIZE_CQ, resize_cq, struct ipc_resize, struct ipc_number, 0, 0) \
	X(MODERATE_CQ, moderate_cq, struct ipc_moderate, struct ipc_none, 0, 0) \
	X(CREATE_QP, create_qp, struct hca_ctl_qp, struct ipc_number, 0, 0) \
	X(MODIFY_QP, modify_qp, struct ipc_modify, struct ipc_none, 0, 0) \
	X(QUERY_QP, query_qp, struct ipc_number, struct hca_qpc, 0, 0) \
	X(DESTROY_QP, destroy_qp, struct ipc_number, struct ipc_none, 0, 0) \
	X(QUERY_COUNTERS, query_counters, struct ipc_count, struct ipc_counters, 0, 0) \
	X(MCAST, mcast, struct ipc_mcast, struct ipc_none, 0, 0) \
	X(ALLOC_XRCD, alloc_xrcd, struct ipc_none, struct ipc_number, 0, 0) \
	X(DEALLOC_XRCD, dealloc_xrcd, struct ipc_number, struct ipc_none, 0, 0) \
	X(CREATE_SRQ, create_srq, struct hca_ctl_srq, struct ipc_number, 0, 0) \
	X(ARM_SRQ, arm_srq, struct ipc_pair, struct ipc_none, 0, 0) \
	X(QUERY_SRQ, query_srq, struct ipc_number, struct hca_ctl_srq_state, 0, 0) \
	X(DESTROY_SRQ, destroy_srq, struct ipc_number, struct ipc_none, 0, 0) \
	X(ATTACH, attach, struct hca_ctl_segment, struct ipc_number, 1, 0) \
	X(DETACH, detach, struct ipc_number, struct ipc_none, 0, 0) \
	X(CLOSE, close, struct ipc_none, struct ipc_none, 0, 0) \
	X(MEMORY, memory, struct ipc_none, struct ipc_none, 2, 0)

enum ipc_op {
#define X(NAME, name, request, reply, fds_in, fds_out) IPC_##NAME,
	IPC_OPS(X)
#undef X
	IPC_OP_COUNT,
};

_Static_assert(sizeof(struct ipc_pages) <= IPC_BODY_MAX, "a page list fits a message");
_Static_assert(sizeof(struct ipc_counters) <= IPC_BODY_MAX, "counters fit a message");

#endif
