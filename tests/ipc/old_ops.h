/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_IPC_OLD_OPS_H
#define TESTS_IPC_OLD_OPS_H

/*
 * The operations of version 7.0 of the control channel, as commit 8a9a875 has them. Frozen:
 * libraries and daemons of that version send and take these bytes.
 *
 * X(name, bytes of the request, bytes of the answer, descriptors in, descriptors out)
 */

#include <stdint.h>

#define OLD_OPS_LIST(X) \
	X(HELLO, 8, 48, 0, 3) \
	X(CLOSE, 0, 0, 0, 0) \
	X(MEMORY, 0, 0, 2, 0) \
	X(ATTACH, 32, 4, 1, 0) \
	X(DETACH, 4, 0, 0, 0) \
	X(PAGES, 32008, 0, 0, 0) \
	X(INFO, 0, 160, 0, 0) \
	X(ASYNC_FD, 0, 0, 0, 1) \
	X(QUERY_PORT, 4, 32, 0, 0) \
	X(QUERY_GID, 4, 32, 0, 0) \
	X(QUERY_CLOCK, 0, 8, 0, 0) \
	X(QUERY_PKEY, 4, 2, 0, 0) \
	X(RESOLVE, 32, 32, 0, 0) \
	X(ALLOC_PD, 0, 4, 0, 0) \
	X(DEALLOC_PD, 4, 0, 0, 0) \
	X(JOIN, 16, 0, 0, 0) \
	X(IMPORT_PD, 4, 0, 0, 0) \
	X(CHECK_MR, 24, 0, 0, 0) \
	X(REG_MR, 48, 8, 0, 0) \
	X(DEREG_MR, 4, 0, 0, 0) \
	X(REREG_MR, 56, 8, 0, 0) \
	X(IMPORT_MR, 8, 16, 0, 0) \
	X(ADVISE_MR, 32, 0, 0, 0) \
	X(ALLOC_NULL_MR, 4, 8, 0, 0) \
	X(ALLOC_MW, 8, 4, 0, 0) \
	X(DEALLOC_MW, 4, 0, 0, 0) \
	X(CREATE_CHANNEL, 0, 4, 0, 1) \
	X(DESTROY_CHANNEL, 4, 0, 0, 0) \
	X(CREATE_CQ, 32, 4, 0, 0) \
	X(DESTROY_CQ, 4, 0, 0, 0) \
	X(RESIZE_CQ, 24, 4, 0, 0) \
	X(MODERATE_CQ, 8, 0, 0, 0) \
	X(CREATE_QP, 48, 4, 0, 0) \
	X(MODIFY_QP, 272, 0, 0, 0) \
	X(QUERY_QP, 4, 256, 0, 0) \
	X(DESTROY_QP, 4, 0, 0, 0) \
	X(OPEN_QP, 8, 0, 0, 0) \
	X(QUERY_COUNTERS, 16, 28680, 0, 0) \
	X(MCAST, 24, 0, 0, 0) \
	X(ALLOC_XRCD, 0, 4, 0, 0) \
	X(OPEN_XRCD, 4, 4, 1, 0) \
	X(DEALLOC_XRCD, 4, 0, 0, 0) \
	X(CREATE_SRQ, 32, 4, 0, 0) \
	X(ARM_SRQ, 8, 0, 0, 0) \
	X(QUERY_SRQ, 4, 8, 0, 0) \
	X(DESTROY_SRQ, 4, 0, 0, 0) \
	X(CREATE_JETTY, 64, 4, 0, 0) \
	X(MODIFY_JETTY, 8, 0, 0, 0) \
	X(BIND_JETTY, 24, 0, 0, 0) \
	X(CREATE_JFR, 48, 4, 0, 0) \
	X(NAME_TC, 8, 0, 0, 0) \
	X(SET_TOKEN, 16, 4, 0, 0) \
	X(IMPORT_PEER, 24, 4, 0, 0) \
	X(QUERY_PEER, 4, 8, 0, 0) \
	X(UNIMPORT_PEER, 4, 0, 0, 0) \
	X(QUERY_TP_EID, 4, 16, 0, 0)

#define OLD_VERSION 7u

enum {
#define X(name, request, answer, fds_in, fds_out) OLD_##name,
	OLD_OPS_LIST(X)
#undef X
	OLD_OPS,
};

static const struct {
	uint32_t request, answer, fds_in, fds_out;
} old_ops[OLD_OPS] = {
#define X(name, request, answer, fds_in, fds_out) {request, answer, fds_in, fds_out},
	OLD_OPS_LIST(X)
#undef X
};

#endif
