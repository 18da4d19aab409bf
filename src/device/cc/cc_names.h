/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CC_CC_NAMES_H
#define CC_CC_NAMES_H

/* The names of the algorithms of congestion control. No DPDK, so that softhca-ctl links it. */

#include <stdbool.h>

#include "cc/cc_list.h"

#define HCA_CC_NAME_MAX 16u /* with its terminating zero */

/* The list in messages: "one of: none ...", a string literal. */
#define HCA_CC_WORD(name) " " #name
#define HCA_CC_NAMES "one of:" HCA_CC_LIST(HCA_CC_WORD)

/**
 * The number of an algorithm: that of its row in the table, from 1 on. Any thread.
 *
 * @return
 *   0: the table does not have it.
 */
unsigned int hca_cc_number(const char *name);

/**
 * Whether the table has an algorithm. Any thread.
 *
 * @param name
 *   A string, compared byte by byte.
 */
bool hca_cc_is_name(const char *name);

#endif
