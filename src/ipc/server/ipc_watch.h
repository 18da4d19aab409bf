/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_WATCH_H
#define IPC_WATCH_H

/*
 * The files that clients attach (abi_ctl.h, ATTACH). The client allocates their pages, the daemon
 * never does for a client that it does not trust (it would be charged for them), and a client that
 * removes pages must not hurt others:
 *
 *	guarded: files of tmpfs and hugetlbfs are watched (userfaultfd): an access to a hole raises
 *	SIGBUS, which ends the owner (ipc_guard.c), instead of filling it
 *
 *	sealed: large files that clients have made for the daemon are sealed once they are mapped
 *	(F_SEAL_FUTURE_WRITE): holes cannot be punched any more, so that no worker waits for a punch
 *	that is in progress, and the file cannot be mapped for writing again
 *
 *	trusted: any regular file of root's processes and of those of the daemon's user, as it is.
 *	A hole is filled by the daemon's access, as by one of the program. Beyond the end of a
 *	file that was truncated there is SIGBUS.
 *
 * Errors are a negative errno, reason by ipc_fail().
 */

#include <stdbool.h>
#include <stdint.h>

#include "ipc_proto.h"

struct ipc_file {
	int fd;
	bool trusted;
	/* set by ipc_file_judge() */
	bool read_only;
	bool shmem;    /* of tmpfs or hugetlbfs */
	int seals;     /* F_SEAL_*, if it is */
	uint64_t page; /* bytes */
};

/*
 * Judge the file of a segment, and describe it. -EBADF: not acceptable; -EINVAL: flags
 */
int ipc_file_judge(const struct hca_ctl_segment *request, struct ipc_file *file);
/*
 * Guard or seal a file that was mapped. -EFAULT: it has holes, and must not; then it is unchanged,
 * and can be filled and attached. -EBADF: it can be neither guarded nor sealed.
 */
int ipc_file_protect(const struct hca_ctl_segment *request, const struct ipc_file *file,
		     uint64_t at);

/*
 * From now on accesses to holes of a mapping of shared memory raise SIGBUS; 0, or -errno: they are
 * filled.
 */
int ipc_watch(uint64_t at, uint64_t bytes);

#endif
