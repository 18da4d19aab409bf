/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_WATCH_H
#define IPC_WATCH_H

/*
 * Keeps pages of client memory as they are while the device uses them. The client allocates them,
 * the daemon never does (it would be charged for them), and the client cannot remove them while a
 * worker uses them, which would then block:
 *
 *	files of more than HCA_CTL_SMALL_FILE are sealed once they are mapped
 *	(F_SEAL_FUTURE_WRITE): holes cannot be punched any more, and the file cannot be mapped for
 *	writing again, not even by another device: such a file serves one device
 *
 *   smaller ones can be punched quickly: they may serve several devices, and are watched
 *   (userfaultfd, SIGBUS): an access to a hole ends the owner (ipc_guard.c) instead of filling it
 *
 * Errors are a negative errno, reason by ipc_fail().
 */

#include <stdint.h>

#include "ipc_proto.h"

/*
 * Check for a memfd that cannot shrink and is large enough. *page: its page size. -EBADF: another
 * file
 */
int ipc_file_judge(const struct hca_ctl_segment *request, int fd, uint64_t *page);
/*
 * Protect a file that was mapped. -EFAULT: it has holes; then it is unchanged, and can be filled
 * and attached.
 */
int ipc_file_protect(const struct hca_ctl_segment *request, int fd, uint64_t at, uint64_t page);

/*
 * From now on accesses to holes of a mapping of shared memory raise SIGBUS; 0, or -errno: they are
 * filled.
 */
int ipc_watch(uint64_t at, uint64_t bytes);

#endif
