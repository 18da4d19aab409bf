/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_VHOST_H
#define ENDPOINT_VHOST_H

/*
 * The end of a vhost-user device. DPDK's thread of these sockets blocks in read() while a front-end
 * has not sent the rest of a message, and DPDK removes a device only when that thread has returned:
 * without help the front-end decides when the daemon ends.
 */

#include "endpoint_device.h"

/*
 * From now on close every connection of the socket, until endpoint_vhost_ended(). Does nothing for
 * other devices. Main thread.
 */
struct endpoint_vhost;
struct endpoint_vhost *endpoint_vhost_end(const struct endpoint_device *device);
/* The device is removed: stop. NULL is allowed. */
void endpoint_vhost_ended(struct endpoint_vhost *v);

#endif
