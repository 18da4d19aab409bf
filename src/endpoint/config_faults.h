/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_FAULTS_H
#define CONFIG_FAULTS_H

/* The texts of faults, for programs without DPDK. */

#include <stddef.h>

/*
 * Judge the first of faults that are parted by ";" as the daemon does; *rest is then the text after
 * it, or NULL. 0, or -EINVAL with the expected and the found text in why.
 */
int endpoint_faults_judge_next(const char **rest, char *why, size_t size);

#endif
