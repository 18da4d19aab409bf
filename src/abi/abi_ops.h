/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_OPS_H
#define HCA_ABI_OPS_H

/*
 * The operations of the control channel. Each is one row:
 *
 * X(NAME, name, request, answer, fds_in, fds_out, caller, by)
 *
 *  request, answer  types from abi_ctl.h; struct hca_ctl_none means nothing
 *  fds_in, fds_out  number of file descriptors with the request and with the answer, at most
 *                   HCA_CTL_FDS_MAX; the caller keeps those of a request and owns those of an
 *                   answer; no row has both
 *  caller           EVERY client, or PRIVILEGED: only clients that may send management datagrams;
 *                   the driver refuses others with -EACCES, which the daemon counts as
 *                   refused_request
 *  by               what carries the operation out:
 *                   DRIVER   driver_op_name(client, request, answer) in src/driver
 *                   EXTRA    the same with struct hca_ctl_extra as the fourth argument
 *                   CHANNEL  the server's end of the socket (src/ipc/server), for EVERY client
 *
 * Generated from the rows: the call inside one process, the messages between two processes and
 * their sizes, the dispatch in driver and server, the counters of calls and the inputs of the
 * fuzzers. The order of the rows gives the numbers; HELLO is 0 in every version of the channel. A
 * message has exactly the size of its type, except the request of PAGES, which ends after its last
 * element.
 */

#include <stdbool.h>
#include <stddef.h>

#include "abi_ctl.h"

/* Version of the rows. A client and a daemon of different versions cannot work together. */
#define HCA_CTL_VERSION 7u

#ifndef HCA_CTL_OPS /* a test has a table of its own */
#define HCA_CTL_OPS(X) \
	X(HELLO, hello, struct hca_ctl_hello, struct hca_ctl_welcome, 0, 3, EVERY, CHANNEL) \
	X(CLOSE, close, struct hca_ctl_none, struct hca_ctl_none, 0, 0, EVERY, CHANNEL) \
	X(MEMORY, memory, struct hca_ctl_none, struct hca_ctl_none, 2, 0, EVERY, CHANNEL) \
	X(ATTACH, attach, struct hca_ctl_segment, uint32_t, 1, 0, EVERY, CHANNEL) \
	X(DETACH, detach, uint32_t, struct hca_ctl_none, 0, 0, EVERY, CHANNEL) \
	X(PAGES, pages, struct hca_ctl_pages, struct hca_ctl_none, 0, 0, EVERY, CHANNEL) \
	X(INFO, info, struct hca_ctl_none, struct hca_ctl_info, 0, 0, EVERY, DRIVER) \
	X(ASYNC_FD, async_fd, struct hca_ctl_none, struct hca_ctl_none, 0, 1, EVERY, EXTRA) \
	X(QUERY_PORT, query_port, uint32_t, struct hca_ctl_port, 0, 0, EVERY, DRIVER) \
	X(QUERY_GID, query_gid, uint32_t, struct hca_ctl_gid, 0, 0, EVERY, DRIVER) \
	X(QUERY_CLOCK, query_clock, struct hca_ctl_none, uint64_t, 0, 0, EVERY, DRIVER) \
	X(QUERY_PKEY, query_pkey, uint32_t, uint16_t, 0, 0, EVERY, DRIVER) \
	X(RESOLVE, resolve, struct hca_ctl_ah, struct hca_ctl_ah, 0, 0, EVERY, DRIVER) \
	X(ALLOC_PD, alloc_pd, struct hca_ctl_none, uint32_t, 0, 0, EVERY, DRIVER) \
	X(DEALLOC_PD, dealloc_pd, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(JOIN, join, struct hca_ctl_share, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(IMPORT_PD, import_pd, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(CHECK_MR, check_mr, struct hca_ctl_need, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(REG_MR, reg_mr, struct hca_ctl_mr, struct hca_ctl_keys, 0, 0, EVERY, EXTRA) \
	X(DEREG_MR, dereg_mr, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(REREG_MR, rereg_mr, struct hca_ctl_rereg, struct hca_ctl_keys, 0, 0, EVERY, EXTRA) \
	X(IMPORT_MR, import_mr, struct hca_ctl_find_mr, struct hca_ctl_found_mr, 0, 0, EVERY, \
	  DRIVER) \
	X(ADVISE_MR, advise_mr, struct hca_ctl_advice, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(ALLOC_NULL_MR, alloc_null_mr, uint32_t, struct hca_ctl_keys, 0, 0, EVERY, DRIVER) \
	X(ALLOC_MW, alloc_mw, struct hca_ctl_mw, uint32_t, 0, 0, EVERY, DRIVER) \
	X(DEALLOC_MW, dealloc_mw, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(CREATE_CHANNEL, create_channel, struct hca_ctl_none, uint32_t, 0, 1, EVERY, EXTRA) \
	X(DESTROY_CHANNEL, destroy_channel, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(CREATE_CQ, create_cq, struct hca_ctl_cq, uint32_t, 0, 0, EVERY, DRIVER) \
	X(DESTROY_CQ, destroy_cq, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(RESIZE_CQ, resize_cq, struct hca_ctl_resize, uint32_t, 0, 0, EVERY, DRIVER) \
	X(MODERATE_CQ, moderate_cq, struct hca_ctl_moderate, struct hca_ctl_none, 0, 0, EVERY, \
	  DRIVER) \
	X(CREATE_QP, create_qp, struct hca_ctl_qp, uint32_t, 0, 0, EVERY, DRIVER) \
	X(MODIFY_QP, modify_qp, struct hca_ctl_modify, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(QUERY_QP, query_qp, uint32_t, struct hca_qpc, 0, 0, EVERY, DRIVER) \
	X(DESTROY_QP, destroy_qp, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(OPEN_QP, open_qp, struct hca_ctl_open_qp, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(QUERY_COUNTERS, query_counters, struct hca_ctl_count, struct hca_ctl_counters, 0, 0, \
	  EVERY, DRIVER) \
	X(MCAST, mcast, struct hca_ctl_mcast, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(ALLOC_XRCD, alloc_xrcd, struct hca_ctl_none, uint32_t, 0, 0, EVERY, DRIVER) \
	X(OPEN_XRCD, open_xrcd, uint32_t, uint32_t, 1, 0, EVERY, EXTRA) \
	X(DEALLOC_XRCD, dealloc_xrcd, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(CREATE_SRQ, create_srq, struct hca_ctl_srq, uint32_t, 0, 0, EVERY, DRIVER) \
	X(ARM_SRQ, arm_srq, struct hca_ctl_arm, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(QUERY_SRQ, query_srq, uint32_t, struct hca_ctl_srq_state, 0, 0, EVERY, DRIVER) \
	X(DESTROY_SRQ, destroy_srq, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(CREATE_JETTY, create_jetty, struct hca_ctl_jetty, uint32_t, 0, 0, EVERY, DRIVER) \
	X(MODIFY_JETTY, modify_jetty, struct hca_ctl_jetty_state, struct hca_ctl_none, 0, 0, \
	  EVERY, DRIVER) \
	X(BIND_JETTY, bind_jetty, struct hca_ctl_bind, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(CREATE_JFR, create_jfr, struct hca_ctl_jfr, uint32_t, 0, 0, EVERY, DRIVER) \
	X(NAME_TC, name_tc, struct hca_ctl_known, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(SET_TOKEN, set_token, struct hca_ctl_token, uint32_t, 0, 0, EVERY, DRIVER) \
	X(IMPORT_PEER, import_peer, struct hca_ctl_peer, uint32_t, 0, 0, EVERY, DRIVER) \
	X(QUERY_PEER, query_peer, uint32_t, struct hca_ctl_peer_state, 0, 0, EVERY, DRIVER) \
	X(UNIMPORT_PEER, unimport_peer, uint32_t, struct hca_ctl_none, 0, 0, EVERY, DRIVER) \
	X(QUERY_TP_EID, query_tp_eid, uint32_t, struct hca_ctl_eid, 0, 0, EVERY, DRIVER)
#endif

enum hca_ctl_op {
#define X(NAME, name, request, answer, fds_in, fds_out, caller, by) HCA_CTL_##NAME,
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

#define X(NAME, name, request, answer, fds_in, fds_out, caller, by) \
	_Static_assert((fds_in) <= HCA_CTL_FDS_MAX && (fds_out) <= HCA_CTL_FDS_MAX && \
			       ((fds_in) == 0 || (fds_out) == 0), \
		       #name ": descriptors"); \
	_Static_assert(HCA_CTL_BY_##by != HCA_CTL_BY_CHANNEL || \
			       HCA_CTL_CALLER_##caller == HCA_CTL_CALLER_EVERY, \
		       #name ": its caller is not checked");
HCA_CTL_OPS(X)
#undef X

/* The types of each row, for the checks of HCA_CTL_REQUEST() and HCA_CTL_ANSWER() */
#define X(NAME, name, request, answer, fds_in, fds_out, caller, by) \
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
};

/* The row of an operation; NULL if there is no such operation */
static inline const struct hca_ctl_shape *
hca_ctl_shape(uint32_t op)
{
	static const struct hca_ctl_shape shapes[HCA_CTL_OP_COUNT] = {
#define X(NAME, name, request, answer, fds_in, fds_out, caller, by) \
	{#name, sizeof(request), sizeof(answer), fds_in, fds_out, HCA_CTL_CALLER_##caller},
		HCA_CTL_OPS(X)
#undef X
	};

	return op < HCA_CTL_OP_COUNT ? &shapes[op] : NULL;
}

#endif
