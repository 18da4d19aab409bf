/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_CM_H
#define DRIVER_CM_H

/*
 * QP 1, and the seam between the operations CM_* of clients and the connection manager of the host.
 * Part of driver.h.
 */

#include <stdint.h>

#include "abi_ops.h"

struct hca_driver;

/**
 * Make a QP take the datagrams that are sent to QPN 1, with the Q_Key of management whatever its
 * own is. Completions in a CQ of large CQEs contain VLAN and MAC address of their senders. It ends
 * with the QP. Any thread.
 *
 * @param drv
 *   The driver.
 * @param qpn
 *   A QP of service UD of a privileged client that has left RESET and was created with source
 *   HCA_QPN_GSI, so that its own datagrams leave from QPN 1. 0: no QP takes them, they are dropped.
 * @return
 *   - 0: done.
 *   - -EINVAL: a QP of another kind.
 *   - -EBUSY: another QP has this role.
 *   - -EIO: the device is dead.
 */
int hca_driver_set_gsi(struct hca_driver *drv, uint32_t qpn);

struct hca_driver_cm_caller {
	uint32_t owner; /* its UAR page: no other client has it at the same time */
	uint32_t user;
};

/*
 * Implements the operations CM_* of clients (abi_ops.h). All are called with the lock of the driver
 * held, by any thread: they must neither block nor call the driver, but for hca_driver_cm_event().
 */
struct hca_driver_cm {
	/* 0 or a negative errno, with *why. Channels that the request names exist. */
	int (*call)(void *arg, const struct hca_driver_cm_caller *caller, enum hca_ctl_op op,
		    const void *request, void *answer, const char **why);
	/* The client ends: all ids of it. */
	void (*forget)(void *arg, uint32_t owner);
	/*
	 * DESTROY_CHANNEL: the ids that are in the channel of the client end, as Linux destroys
	 * those of a file that is closed. The number of the channel may be given out again.
	 */
	void (*channel)(void *arg, uint32_t owner, uint32_t channel);
	/* An entry of the GID table has changed; valid 0: it is empty. */
	void (*gid)(void *arg, uint32_t index, const struct hca_ctl_gid *gid);
	/* Its counter i; NULL: there are no more. */
	const char *(*counter)(void *arg, uint32_t i, uint64_t *value);
};

/**
 * Set the connection manager, which gets the GID table at once. When the call returns, no function
 * of the former one is called any more. Any thread.
 *
 * @param drv
 *   The driver.
 * @param cm
 *   Its functions, valid until the next call; NULL: operations CM_* are refused.
 * @param arg
 *   Their first argument.
 */
void hca_driver_set_cm(struct hca_driver *drv, const struct hca_driver_cm *cm, void *arg);

/**
 * An event waits in the channel of a client: write a record HCA_CTL_EVENT_CM into its pipe. To be
 * called when the first event begins to wait, and when CM_EVENT has fetched one and others wait. A
 * pipe that is full is readable already. Any thread, also with the lock of the driver.
 *
 * @param drv
 *   The driver.
 * @param owner
 *   UAR page of the client; one that has ended is no error.
 * @param channel
 *   Number of the channel.
 */
void hca_driver_cm_event(struct hca_driver *drv, uint32_t owner, uint32_t channel);

/**
 * Counters of connection management by index. Any thread.
 *
 * @param drv
 *   The driver.
 * @param i
 *   Index, from 0.
 * @param value
 *   Set to the value.
 * @return
 *   The name; NULL: i is beyond the last one, or the HCA has no connection management.
 */
const char *hca_driver_cm_counter(struct hca_driver *drv, uint32_t i, uint64_t *value);

#endif
