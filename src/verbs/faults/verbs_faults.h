/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_FAULTS_H
#define VERBS_FAULTS_H

/*
 * Faults of verbs as text: calls that fail and completions that are errors. The language is that of
 * the faults of frames (src/device/port/impair_text.h), several parted by ";":
 *   "call=ibv_reg_mr,nth=3,errno=ENOMEM"        the third call of that name fails
 *   "completion,nth=5,status=retry-exc"         the fifth completion that is polled is an error
 *   "completion,of=recv,nth=2,status=loc-prot"  of receives (or of=send)
 * nth is counted from 1 in each process; count is 1 with nth and else all, 0 is all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls that can fail, without "ibv_". */
#define VERBS_FAULT_CALLS(X) \
	X(alloc_mw) \
	X(alloc_pd) \
	X(attach_mcast) \
	X(bind_mw) \
	X(close_device) \
	X(close_xrcd) \
	X(create_ah) \
	X(create_comp_channel) \
	X(create_cq) \
	X(create_cq_ex) \
	X(create_qp) \
	X(create_qp_ex) \
	X(create_srq) \
	X(create_srq_ex) \
	X(dealloc_mw) \
	X(dealloc_pd) \
	X(dereg_mr) \
	X(destroy_ah) \
	X(destroy_comp_channel) \
	X(destroy_cq) \
	X(destroy_qp) \
	X(destroy_srq) \
	X(detach_mcast) \
	X(get_async_event) \
	X(get_cq_event) \
	X(get_device_list) \
	X(modify_qp) \
	X(modify_srq) \
	X(open_device) \
	X(open_xrcd) \
	X(poll_cq) \
	X(post_recv) \
	X(post_send) \
	X(post_srq_recv) \
	X(query_device) \
	X(query_device_ex) \
	X(query_gid) \
	X(query_port) \
	X(query_qp) \
	X(reg_mr) \
	X(req_notify_cq) \
	X(rereg_mr) \
	X(resize_cq)

/* Those of librdmacm, by the command of the device rdma_cm that they are; without "rdma_". */
#define VERBS_FAULT_CM_CALLS(X) \
	X(accept) \
	X(bind_addr) \
	X(connect) \
	X(create_id) \
	X(destroy_id) \
	X(disconnect) \
	X(get_cm_event) \
	X(init_qp_attr) \
	X(join_multicast) \
	X(leave_multicast) \
	X(listen) \
	X(migrate_id) \
	X(notify) \
	X(reject) \
	X(resolve_addr) \
	X(resolve_route) \
	X(set_option)

enum verbs_fault_kind {
	VERBS_FAULT_CALL,
	VERBS_FAULT_COMPLETION,
};

enum verbs_fault_queue {
	VERBS_FAULT_BOTH,
	VERBS_FAULT_SEND,
	VERBS_FAULT_RECV,
};

struct verbs_fault {
	enum verbs_fault_kind kind;
	const char *call; /* of VERBS_FAULT_CALLS; of VERBS_FAULT_CM_CALLS with "rdma_" */
	int err;
	uint32_t status; /* of a completion: enum ibv_wc_status */
	enum verbs_fault_queue of;
	uint32_t nth, count;
	char text[64]; /* as it was written, perhaps cut */
};

/* Whether the first fault of a text is one of verbs. */
bool verbs_fault_is(const char *text);

/*
 * Parse the first fault of *rest, which is moved on, or NULL at the end. 0, or -EINVAL with the
 * expected and the found text in why.
 */
int verbs_fault_parse(const char **rest, struct verbs_fault *out, char *why, size_t size);

/* "retry-exc" */
const char *verbs_fault_status_name(uint32_t status);

#endif
