/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_EAL_H
#define ENDPOINT_EAL_H

/*
 * The EAL of the daemon: private memory on hugepages when there are enough, one process.
 *
 * It is not taken down again. rte_eal_cleanup() of DPDK 22.11 takes the memory away under its own
 * interrupt thread, which still looks at what drivers have left registered there (like a
 * listener), and about one end in ten was a crash. All there is of it ends with the process: the
 * memory has no files, the devices are closed by their ports.
 */

#include "endpoint_device.h"

/*
 * 0 or negative errno (endpoint_fail). The caller's affinity is left as it was. Once per process.
 */
int endpoint_eal_start(const struct endpoint_config *c, const struct endpoint_device *d);

/* The memory is hugepages. */
bool endpoint_eal_huge(void);

#endif
