/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_EAL_H
#define ENDPOINT_EAL_H

/*
 * Starts the EAL of the daemon: a single process, with private memory on hugepages if enough are
 * free.
 *
 * The EAL is not cleaned up at exit: in DPDK 22.11 rte_eal_cleanup() frees memory that its
 * interrupt thread still uses for callbacks that drivers have left registered (such as a listener),
 * and about one exit in ten crashed. No resource outlives the process: the memory has no files, and
 * the ports close the devices.
 */

#include "endpoint_device.h"

/*
 * Start the EAL; 0 or a negative errno (endpoint_fail). The caller's CPU affinity is not changed.
 * Once per process.
 */
int endpoint_eal_start(const struct endpoint_config *c, const struct endpoint_device *d);

/* Whether the EAL's memory is on hugepages. */
bool endpoint_eal_huge(void);

#endif
