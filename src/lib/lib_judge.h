/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_JUDGE_H
#define LIB_JUDGE_H

/*
 * Judges memory of the program before a region is made over it, as the kernel's verbs do when they
 * pin pages. Errors are a negative errno with lib_fail(). Any thread may call.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ctl.h"

/* Rights for which the memory must be writable */
#define LIB_JUDGE_WRITES \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_ATOMIC | \
	 SOFTHCA_ACCESS_MW_BIND)

/**
 * Judge the memory of a region by the present mappings.
 *
 * @param request  range and rights; with `pages` npages pages of page_size bytes
 * @param pages  NULL: [va, va + length)
 * @param need  the least memory that the region needs if its private memory is exchanged bytes 0:
 *   there is no private memory
 * @return  0, or -EFAULT: a part is not mapped, cannot be read, or cannot be written and the rights
 *   ask for that
 */
int lib_judge_memory(const struct hca_ctl_mr *request, const uint64_t *pages,
		     struct hca_ctl_need *need);

/**
 * Bring in the pages of the memory, as an access of the program would, for reading: an access must
 * not fault in the device of this process.
 *
 * @return  0, or -EFAULT: there is no memory, as behind the end of a file, or a guard page
 */
int lib_judge_touch(const struct hca_ctl_mr *request, const uint64_t *pages);

#endif
