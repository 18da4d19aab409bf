/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_WATCH_H
#define IPC_WATCH_H

/*
 * Pages of client memory stay what they are while the device uses them. They are the client's own:
 * it has filled them, the daemon never makes one (what it made would be charged to it), and the
 * client cannot take them away under a worker, which would sleep for as long as that takes:
 *
 *	files of more than HCA_CTL_SMALL_FILE are sealed once they are mapped
 *	(F_SEAL_FUTURE_WRITE): no holes can be punched any more, and nobody maps them for writing
 *	any more, another device neither: such a file serves one
 *
 *	smaller ones are quickly punched: they may serve several devices, and are watched
 *	(userfaultfd, SIGBUS): who touches a hole ends its owner (ipc_guard.c) instead of filling it
 *
 * Errors: negative errno, reason by ipc_fail().
 */

#include <stdint.h>

#include "ipc_proto.h"

/* A memfd that cannot shrink under us, large enough. *page: its page size. -EBADF: another file */
int ipc_file_judge(const struct hca_ctl_segment *request, int fd, uint64_t *page);
/* It is mapped here: see that it stays as it is. -EFAULT: it has holes. */
int ipc_file_protect(const struct hca_ctl_segment *request, int fd, uint64_t at, uint64_t page);

/* Holes of a mapping of shared memory raise SIGBUS from now on; 0, or -errno: they are filled. */
int ipc_watch(uint64_t at, uint64_t bytes);

#endif
