/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_FAULTS_H
#define CONFIG_FAULTS_H

/* The texts of faults, for programs without DPDK. */

#include <stddef.h>

/* Judge faults, several parted by ";". 0, or -EINVAL with what was expected and found in why. */
int endpoint_faults_judge(const char *text, char *why, size_t size);

#endif
