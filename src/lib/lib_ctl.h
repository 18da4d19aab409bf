/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_CTL_H
#define LIB_CTL_H

/*
 * The control channel of a context: how the user side reaches the driver. In embedded use the
 * functions call into the driver of this process (src/embed), for a client of the daemon they
 * send messages (src/ipc). Everything that is not here goes through shared memory.
 *
 * Every function gets the `arg` of softhca_context_create(), is thread safe and returns 0 or a
 * negative errno; reason() then has the sentence for the calling thread.
 */

#include <stdbool.h>

#include <softhca/softhca.h>

#include "abi_ctl.h"

struct softhca_ctl_ops {
	int (*info)(void *arg, struct hca_ctl_info *info);
	volatile void *(*uar)(void *arg); /* the context's doorbell page, mapped */

	int (*query_port)(void *arg, uint32_t port, struct hca_ctl_port *out);
	int (*query_gid)(void *arg, uint32_t index, uint8_t gid[16]);
	int (*query_gid_entry)(void *arg, uint32_t index, struct hca_ctl_gid *out);
	int (*query_pkey)(void *arg, uint32_t index, uint16_t *pkey);
	int (*resolve)(void *arg, struct hca_ctl_ah *ah);

	int (*alloc_pd)(void *arg, uint32_t *pdn);
	int (*dealloc_pd)(void *arg, uint32_t pdn);
	int (*reg_mr)(void *arg, const struct hca_ctl_mr *mr, const uint64_t *pages,
		      struct hca_ctl_keys *keys);
	int (*dereg_mr)(void *arg, uint32_t lkey);
	int (*rereg_mr)(void *arg, uint32_t lkey, uint32_t flags, const struct hca_ctl_mr *mr,
			struct hca_ctl_keys *keys);
	int (*alloc_mw)(void *arg, uint32_t pdn, uint32_t type, uint32_t *rkey);
	int (*dealloc_mw)(void *arg, uint32_t rkey);

	/*
	 * Memory the device may reach, before a region or a queue lies in it; fd stays the
	 * caller's. NULL: the device reaches all memory of the process (embedded). -EBUSY:
	 * something lies there.
	 */
	int (*attach)(void *arg, const struct hca_ctl_segment *segment, int fd, uint32_t *handle);
	int (*detach)(void *arg, uint32_t handle);
	/*
	 * Memory that cannot be attached: /proc/self/mem and /proc/self/maps, which stay the
	 * caller's. Once; from then on reg_mr and rereg_mr take HCA_CTL_ACCESS_FOREIGN. NULL: not
	 * offered.
	 */
	int (*give_memory)(void *arg, int mem_fd, int maps_fd);

	/* The descriptor belongs to the caller; struct hca_ctl_event is read from it. */
	int (*async_fd)(void *arg, int *fd);
	int (*create_channel)(void *arg, uint32_t *channel, int *fd);
	int (*destroy_channel)(void *arg, uint32_t channel);

	int (*create_cq)(void *arg, const struct hca_ctl_cq *cq, uint32_t *cqn);
	int (*destroy_cq)(void *arg, uint32_t cqn);
	/* The new buffer as in create_cq; index: where the device began to use it. */
	int (*resize_cq)(void *arg, uint32_t cqn, uint64_t addr, uint32_t log_size,
			 uint32_t *index);
	int (*moderate_cq)(void *arg, uint32_t cqn, uint16_t count, uint16_t period_us);
	int (*create_qp)(void *arg, const struct hca_ctl_qp *qp, uint32_t *qpn);
	int (*modify_qp)(void *arg, uint32_t qpn, uint32_t opcode, const void *mailbox);
	int (*query_qp)(void *arg, uint32_t qpn, void *mailbox);
	int (*destroy_qp)(void *arg, uint32_t qpn);
	/* As hca_client_query_counters(): enum hca_ctl_counters_of, QPN or port. */
	int (*query_counters)(void *arg, uint32_t of, uint32_t number, struct hca_ctl_counter *out,
			      uint32_t max, uint32_t *total);
	int (*mcast)(void *arg, uint32_t qpn, const uint8_t mgid[16], bool attach);

	int (*alloc_xrcd)(void *arg, uint32_t *xrcd);
	int (*dealloc_xrcd)(void *arg, uint32_t xrcd);
	int (*create_srq)(void *arg, const struct hca_ctl_srq *srq, uint32_t *srqn);
	int (*arm_srq)(void *arg, uint32_t srqn, uint32_t limit);
	int (*query_srq)(void *arg, uint32_t srqn, struct hca_ctl_srq_state *out);
	int (*destroy_srq)(void *arg, uint32_t srqn);

	const char *(*reason)(void *arg);
	bool (*alive)(void *arg); /* asked when the doorbell page is full; a load */

	/*
	 * A descriptor that hangs up when the device is gone, of the channel. NULL: alive() is all.
	 */
	int (*watch_fd)(void *arg);

	/*
	 * The worker that looks at the doorbell page may sleep: its sleep word, bit 0 of which says
	 * so while the rest counts, and an eventfd that wakes it; both are the channel's. NULL, or
	 * an error: it never sleeps.
	 */
	int (*sleep)(void *arg, const uint32_t **word, int *kick_fd);

	/* Manual progress: run the engine once, return the work done. NULL: it runs by itself. */
	unsigned int (*progress)(void *arg);

	void (*close)(void *arg); /* everything left is destroyed; arg is gone after it */
};

/*
 * Make a context over a control channel. ops must outlive it. On failure the channel is not
 * closed. softhca_close() closes it.
 */
SOFTHCA_API int softhca_context_create(const struct softhca_ctl_ops *ops, void *arg,
				       const char *name, struct softhca_context **ctx);

#endif
