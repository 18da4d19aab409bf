/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_DRIVER_H
#define ENDPOINT_DRIVER_H

/*
 * Drivers that lose a peer tear down in DPDK's interrupt thread what they had with it, and keep nobody
 * out of it meanwhile. memif's marks the device as unconnected, unregisters its interrupt callback and
 * unmaps the memory shared with the peer: a worker that entered a burst before, and was preempted in
 * it, finds itself without that memory, and the daemon ends. (DPDK 22.11, and as it is at present.)
 *
 * So rte_intr_callback_unregister() is ours: it waits for the workers and then does what DPDK's does.
 * Who enters a burst later finds the mark. The program's definition comes before that of a shared
 * library, so the drivers call it; tests/endpoint/test_driver.c fails if they do not.
 */

/* wait(arg) returns when no worker is in a burst it had begun before; any thread. NULL: no workers. */
void endpoint_driver_guard(void (*wait)(void *arg), void *arg);

#endif
