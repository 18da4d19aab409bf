/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_OPS_H
#define HCA_ABI_OPS_H

/*
 * The operations of the control channel. Each is one row:
 *
 * X(NAME, name, request, answer, fds_in, fds_out, caller, by, since)
 *
 *  request, answer  types from abi_ctl.h; struct hca_ctl_none means nothing
 *  fds_in, fds_out  number of file descriptors with the request and with the answer, at most
 *                   HCA_CTL_FDS_MAX; the caller keeps those of a request and owns those of an
 *                   answer; no row has both
 *  caller           EVERY client, or PRIVILEGED: only clients that may send management datagrams;
 *                   the driver refuses others with -EACCES, which the daemon counts as
 *                   refused_request
 *  by               executes the operation:
 *                   DRIVER   driver_op_name(client, request, answer) in src/driver
 *                   EXTRA    the same with struct hca_ctl_extra as the fourth argument
 *                   CHANNEL  the server's end of the socket (src/ipc/server), for EVERY client
 *  since            minor version that the row came with
 *
 * Generated from the rows: the call inside one process, the messages between two processes and
 * their sizes, the dispatch in driver and server, the counters of calls and the inputs of the
 * fuzzers. The order of the rows gives the numbers; HELLO is 0 in every version of the channel.
 *
 * Versions. The number in the heads of messages is raised by changes that older ends would misread,
 * also in memory that both ends use: doorbells and sleep words (abi_bar.h), WQEs (abi_wqe.h), CQEs
 * and records (abi_cqe.h), contexts (abi_ctx.h), events (abi_ctl.h). The minor version is raised by
 * additions: a row at the end of the list, a member at the end of a structure, a feature. Both ends
 * tell their range in HELLO and use the highest version that they have in common. See
 * docs/reference/versions.md.
 *
 * The length of a message says which members it has. From minor version 1 on, a missing member is
 * 0; bytes beyond the receiver's structure are ignored in an answer, and refused in a request if
 * they are not 0 (-EOPNOTSUPP), as is an operation that the daemon does not have. A message of
 * minor version 0 has exactly the size of its type. PAGES ends after its last element in all.
 */

#include <stdbool.h>
#include <stddef.h>

#include "abi_ctl.h"

#define HCA_CTL_VERSION 7u
#define HCA_CTL_MINOR 2u
/* Number of older versions that are also supported. */
#define HCA_CTL_OLDER 0u

/*
 * Features: extensions of rows after their release. X(NAME, bit, words). One is in force if both
 * ends name it in HELLO.
 */
#define HCA_CTL_FEATURE_LIST(X) \
	X(JETTY_RESET, 0, "the state RESET of Jettys") \
	X(CM_IB, 1, "addresses of family AF_IB in connection management") \
	X(PIPES, 2, "several pipelines") \
	X(CONGESTION, 3, "the congestion control of a QP")

enum hca_ctl_feature {
#define X(NAME, bit, words) HCA_CTL_FEATURE_##NAME = 1u << (bit),
	HCA_CTL_FEATURE_LIST(X)
#undef X
};

#define HCA_CTL_FEATURE_OF(NAME, bit, words) | 1u << (bit)
#define HCA_CTL_FEATURES (0u HCA_CTL_FEATURE_LIST(HCA_CTL_FEATURE_OF))
_Static_assert(HCA_CTL_FEATURES <= UINT16_MAX, "they fit into struct hca_ctl_offer");

#ifndef HCA_CTL_OPS /* a test has a table of its own */
#define HCA_CTL_OPS(X) \
	X(HELLO, hello, struct hca_ctl_hello, struct hca_ctl_welcome, 0, 3, EVERY, CHANNEL, 0) \
	X(CLOSE, close, struct hca_ctl_none, struct hca_ctl_none, 0, 0, EVERY, CHANNEL, 0) \
	X(MEMORY, memory, struct hca_ctl_none, struct hca_ctl_none, 2, 0, EVERY, CHANNEL, 0) \
	X(ATTACH, attach, struct hca_ctl_segment, uint32_t, 1, 0, EVERY, CHANNEL, 0) \
	X(DETACH, detach, uint32_t, struct hca_ctl_none, 0, 0, EVERY, CHANNEL, 0) \
	X(PAGES, pages, struct hca_ctl_pages, struct hca_ctl_none, 0, 0, EVERY, CHANNEL, 0) \
	X(INFO, info, struct hca_ctl_none, struct hca_ctl_info, 0, 0, EVERY, DRIVER, 0) \
	X(ASYNC_FD, async_fd, struct hca_ctl_none, struct hca_ctl_none, 0, 1, EVERY, EXTRA, 0) \
	X(QUERY_PORT, query_port, uint32_t, struct hca_ctl_port, 0, 0, EVERY, DRIVER, 0) \
	X(QUERY_GID, query_gid, uint32_t, struct hca_ctl_gid, 0, 0, EVERY, DRIVER, 0) \
	X(QUERY_CLOCK, query_clock, struct hca_ctl_none, uint64_t, 0, 0, EVERY, DRIVER, 0) \
	X(QUERY_PKEY, query_pkey, uint32_t, uint16_t, 0, 0, EVERY, DRIVER, 0) \
	X(RESOLVE, resolve, struct hca_ctl_ah, struct hca_ctl_ah, 0, 0, EVERY, DRIVER, 0) \
	X(ALLOC_PD, alloc_pd, struct hca_ctl_none, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(DEALLOC_PD, dealloc_pd, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(JOIN, join, struct hca_ctl_share, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(IMPORT_PD, import_pd, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(CHECK_MR, check_mr, struct hca_ctl_need, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(REG_MR, reg_mr, struct hca_ctl_mr, struct hca_ctl_keys, 0, 0, EVERY, EXTRA, 0) \
	X(DEREG_MR, dereg_mr, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(REREG_MR, rereg_mr, struct hca_ctl_rereg, struct hca_ctl_keys, 0, 0, EVERY, EXTRA, 0) \
	X(IMPORT_MR, import_mr, struct hca_ctl_find_mr, struct hca_ctl_found_mr, 0, 0, EVERY, \
	  DRIVER, 0) \
	X(ADVISE_MR, advise_mr, struct hca_ctl_advice, struct hca_ctl_none, 0, 0, EVERY, DRIVER, \
	  0) \
	X(ALLOC_NULL_MR, alloc_null_mr, uint32_t, struct hca_ctl_keys, 0, 0, EVERY, DRIVER, 0) \
	X(ALLOC_MW, alloc_mw, struct hca_ctl_mw, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(DEALLOC_MW, dealloc_mw, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(CREATE_CHANNEL, create_channel, struct hca_ctl_none, uint32_t, 0, 1, EVERY, EXTRA, 0) \
	X(DESTROY_CHANNEL, destroy_channel, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(CREATE_CQ, create_cq, struct hca_ctl_cq, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(DESTROY_CQ, destroy_cq, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(RESIZE_CQ, resize_cq, struct hca_ctl_resize, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(MODERATE_CQ, moderate_cq, struct hca_ctl_moderate, struct hca_ctl_none, 0, 0, EVERY, \
	  DRIVER, 0) \
	X(CREATE_QP, create_qp, struct hca_ctl_qp, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(MODIFY_QP, modify_qp, struct hca_ctl_modify, struct hca_ctl_none, 0, 0, EVERY, DRIVER, \
	  0) \
	X(QUERY_QP, query_qp, uint32_t, struct hca_qpc, 0, 0, EVERY, DRIVER, 0) \
	X(DESTROY_QP, destroy_qp, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(OPEN_QP, open_qp, struct hca_ctl_open_qp, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(QUERY_COUNTERS, query_counters, struct hca_ctl_count, struct hca_ctl_counters, 0, 0, \
	  EVERY, DRIVER, 0) \
	X(MCAST, mcast, struct hca_ctl_mcast, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(ALLOC_XRCD, alloc_xrcd, struct hca_ctl_none, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(OPEN_XRCD, open_xrcd, uint32_t, uint32_t, 1, 0, EVERY, EXTRA, 0) \
	X(DEALLOC_XRCD, dealloc_xrcd, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(CREATE_SRQ, create_srq, struct hca_ctl_srq, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(ARM_SRQ, arm_srq, struct hca_ctl_arm, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(QUERY_SRQ, query_srq, uint32_t, struct hca_ctl_srq_state, 0, 0, EVERY, DRIVER, 0) \
	X(DESTROY_SRQ, destroy_srq, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(CREATE_JETTY, create_jetty, struct hca_ctl_jetty, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(MODIFY_JETTY, modify_jetty, struct hca_ctl_jetty_state, struct hca_ctl_none, 0, 0, \
	  EVERY, DRIVER, 0) \
	X(BIND_JETTY, bind_jetty, struct hca_ctl_bind, struct hca_ctl_none, 0, 0, EVERY, DRIVER, \
	  0) \
	X(CREATE_JFR, create_jfr, struct hca_ctl_jfr, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(NAME_TC, name_tc, struct hca_ctl_known, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(SET_TOKEN, set_token, struct hca_ctl_token, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(IMPORT_PEER, import_peer, struct hca_ctl_peer, uint32_t, 0, 0, EVERY, DRIVER, 0) \
	X(QUERY_PEER, query_peer, uint32_t, struct hca_ctl_peer_state, 0, 0, EVERY, DRIVER, 0) \
	X(UNIMPORT_PEER, unimport_peer, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 0) \
	X(QUERY_TP_EID, query_tp_eid, uint32_t, struct hca_ctl_eid, 0, 0, EVERY, DRIVER, 0) \
	X(IDENTIFY, identify, struct hca_ctl_identity, struct hca_ctl_identity, 0, 0, EVERY, \
	  DRIVER, 1) \
	X(CM_CREATE, cm_create, struct hca_ctl_cm_create, uint32_t, 0, 0, EVERY, DRIVER, 2) \
	X(CM_DESTROY, cm_destroy, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 2) \
	X(CM_BIND, cm_bind, struct hca_ctl_cm_bind, struct hca_ctl_cm_bound, 0, 0, EVERY, DRIVER, \
	  2) \
	X(CM_RESOLVE, cm_resolve, struct hca_ctl_cm_resolve, struct hca_ctl_none, 0, 0, EVERY, \
	  DRIVER, 2) \
	X(CM_ROUTE, cm_route, struct hca_ctl_cm_route, struct hca_ctl_none, 0, 0, EVERY, DRIVER, \
	  2) \
	X(CM_LISTEN, cm_listen, struct hca_ctl_cm_listen, struct hca_ctl_none, 0, 0, EVERY, \
	  DRIVER, 2) \
	X(CM_CONNECT, cm_connect, struct hca_ctl_cm_param, struct hca_ctl_none, 0, 0, EVERY, \
	  DRIVER, 2) \
	X(CM_ACCEPT, cm_accept, struct hca_ctl_cm_param, struct hca_ctl_none, 0, 0, EVERY, DRIVER, \
	  2) \
	X(CM_REJECT, cm_reject, struct hca_ctl_cm_reject, struct hca_ctl_none, 0, 0, EVERY, \
	  DRIVER, 2) \
	X(CM_DISCONNECT, cm_disconnect, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 2) \
	X(CM_NOTIFY, cm_notify, struct hca_ctl_cm_notify, struct hca_ctl_none, 0, 0, EVERY, \
	  DRIVER, 2) \
	X(CM_OPTION, cm_option, struct hca_ctl_cm_option, struct hca_ctl_none, 0, 0, EVERY, \
	  DRIVER, 2) \
	X(CM_MOVE, cm_move, struct hca_ctl_cm_move, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 2) \
	X(CM_QUERY, cm_query, uint32_t, struct hca_ctl_cm_info, 0, 0, EVERY, DRIVER, 2) \
	X(CM_QP_ATTR, cm_qp_attr, struct hca_ctl_cm_ask, struct hca_ctl_cm_attr, 0, 0, EVERY, \
	  DRIVER, 2) \
	X(CM_JOIN, cm_join, struct hca_ctl_cm_join, uint32_t, 0, 0, EVERY, DRIVER, 2) \
	X(CM_LEAVE, cm_leave, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER, 2) \
	X(CM_EVENT, cm_event, uint32_t, struct hca_ctl_cm_event, 0, 0, EVERY, DRIVER, 2) \
	X(KICK, kick, uint32_t, uint32_t, 0, 1, EVERY, CHANNEL, 2)
#endif

/*
 * Rows whose structures have grown, with their sizes in minor version 0, which demands them:
 * X(NAME, bytes of the request, bytes of the answer)
 */
#ifndef HCA_CTL_GROWN
#define HCA_CTL_GROWN(X)
#endif

enum hca_ctl_op {
#define X(NAME, name, request, answer, fds_in, fds_out, caller, by, since) HCA_CTL_##NAME,
	HCA_CTL_OPS(X)
#undef X
	HCA_CTL_OP_COUNT,
};

enum hca_ctl_caller {
	HCA_CTL_CALLER_EVERY,
	HCA_CTL_CALLER_PRIVILEGED,
};

enum hca_ctl_by {
	HCA_CTL_BY_DRIVER,
	HCA_CTL_BY_EXTRA,
	HCA_CTL_BY_CHANNEL,
};

#define X(NAME, name, request, answer, fds_in, fds_out, caller, by, since) \
	_Static_assert((fds_in) <= HCA_CTL_FDS_MAX && (fds_out) <= HCA_CTL_FDS_MAX && \
			       ((fds_in) == 0 || (fds_out) == 0), \
		       #name ": descriptors"); \
	_Static_assert(HCA_CTL_BY_##by != HCA_CTL_BY_CHANNEL || \
			       HCA_CTL_CALLER_##caller == HCA_CTL_CALLER_EVERY, \
		       #name ": its caller is not checked");
HCA_CTL_OPS(X)
#undef X

/* The types of each row, for the checks of HCA_CTL_REQUEST() and HCA_CTL_ANSWER() */
#define X(NAME, name, request, answer, fds_in, fds_out, caller, by, since) \
	typedef request hca_ctl_request_##NAME; \
	typedef answer hca_ctl_answer_##NAME;
HCA_CTL_OPS(X)
#undef X

/* The pointer, which must point to the request (answer) type of NAME or be NULL */
#define HCA_CTL_REQUEST(NAME, pointer) (1 ? (pointer) : (const hca_ctl_request_##NAME *)NULL)
#define HCA_CTL_ANSWER(NAME, pointer) (1 ? (pointer) : (hca_ctl_answer_##NAME *)NULL)

/* A row at run time */
struct hca_ctl_shape {
	const char *name;
	uint32_t request, answer; /* bytes */
	uint32_t fds_in, fds_out;
	enum hca_ctl_caller caller;
	uint32_t since; /* minor version */
};

/* The row of an operation; NULL if there is no such operation */
static inline const struct hca_ctl_shape *
hca_ctl_shape(uint32_t op)
{
	static const struct hca_ctl_shape shapes[HCA_CTL_OP_COUNT] = {
#define X(NAME, name, request, answer, fds_in, fds_out, caller, by, since) \
	{#name, sizeof(request), sizeof(answer), fds_in, fds_out, HCA_CTL_CALLER_##caller, since},
		HCA_CTL_OPS(X)
#undef X
	};

	return op < HCA_CTL_OP_COUNT ? &shapes[op] : NULL;
}

struct hca_ctl_sizes {
	uint32_t request, answer; /* bytes */
};

/* The sizes of an operation in messages to an end of that minor version */
static inline struct hca_ctl_sizes
hca_ctl_sizes(enum hca_ctl_op op, uint32_t minor)
{
	const struct hca_ctl_shape *shape = hca_ctl_shape(op);

#define X(NAME, request_bytes, answer_bytes) \
	if (op == HCA_CTL_##NAME && minor == 0) \
		return (struct hca_ctl_sizes){request_bytes, answer_bytes};
	HCA_CTL_GROWN(X)
#undef X
	return (struct hca_ctl_sizes){shape->request, shape->answer};
}

/*
 * The version that two ends use: the highest that both support, or -1. Each end supports one and a
 * number of older ones.
 */
static inline int
hca_ctl_common(uint32_t a, uint32_t a_older, uint32_t b, uint32_t b_older)
{
	uint32_t low = a < b ? a : b, high = a < b ? b : a;
	uint32_t older = a < b ? b_older : a_older;

	return high - low <= older ? (int)low : -1;
}

#endif
