/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_EAL_H
#define ENDPOINT_EAL_H

/* The EAL of the daemon: private memory on hugepages when there are enough, one process. */

#include "endpoint_device.h"

/* 0 or negative errno (endpoint_fail). The caller's affinity is left as it was. Once per process. */
int endpoint_eal_start(const struct endpoint_config *c, const struct endpoint_device *d);
void endpoint_eal_stop(void);

/* The memory is hugepages. */
bool endpoint_eal_huge(void);

#endif
