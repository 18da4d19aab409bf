/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SET_PKEY_H
#define TESTS_SET_PKEY_H

#include "driver_types.h"

/*
 * Writes an entry of the P_Key table, as a subnet manager would: for QPs that are given this index
 * from now on. Clients get PKEY_CHANGE.
 */
static inline int
set_pkey(struct hca_driver *drv, uint32_t index, uint16_t pkey)
{
	struct hca_mbox_set_pkey *mailbox;
	int err;

	driver_lock_take(&drv->lock);
	mailbox = driver_mailbox(drv);
	mailbox->index = hca_cpu_to_be32(index);
	mailbox->pkey = hca_cpu_to_be32(pkey);
	err = driver_command_in(drv, HCA_CMD_SET_PKEY, 0);
	if (err == 0 && drv->pkeys[index] != pkey) {
		drv->pkeys[index] = pkey;
		driver_port_event(drv, HCA_CTL_EVENT_PKEY_CHANGE);
	}
	driver_lock_give(&drv->lock);
	return err;
}

#endif
