/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_FOREIGN_H
#define IPC_FOREIGN_H

/*
 * Memory of a client that the daemon does not map: read and written through the client's own
 * /proc/self/mem, which it has opened and handed over. Such a file is bound to the memory, not to a
 * process number: it never reaches another process, neither one that got the number later, nor a
 * child, nor the program the client becomes by exec(). The daemon needs no rights over the client
 * for it, and does nothing with it that the client could not do itself.
 *
 * The system call may wait as long as the client likes (a page of a file system of its own,
 * userfaultfd). So it is made by a thread of the client's own, the agent, and a worker of the
 * device waits for that a few milliseconds at most: then the access counts as lost, and so do all
 * that follow until the agent is back. A client whose memory often makes workers wait is not waited
 * for.
 *
 * Errors: negative errno, reason by ipc_fail().
 */

#include <stdbool.h>
#include <stdint.h>

#include "ipc_proto.h"

struct ipc_foreign;

/*
 * mem and maps: /proc/PID/mem open for reading and writing, /proc/PID/maps of the same process,
 * which stay the caller's. peer: its number as the socket says it. -EBADF: other files.
 */
int ipc_foreign_create(int mem, int maps, int peer, struct ipc_foreign **out);
/* From now on every access fails. */
void ipc_foreign_end(struct ipc_foreign *f);
/* The device touches it no more. An agent that is still waiting ends when it can. */
void ipc_foreign_destroy(struct ipc_foreign *f);

/* As hca_config.foreign: 0, -EAGAIN, -EFAULT. Any worker. */
int ipc_foreign_access(struct ipc_foreign *f, bool write, uint64_t addr, void *bytes, uint32_t len);

/*
 * Waits until an access that was given up is over, so that memory the device has let go is not
 * written later. -EIO: it lasts too long.
 */
int ipc_foreign_settle(struct ipc_foreign *f);

/* Bus pages of a region, as ipc_translate_mr(). writes: the device will write there. */
int ipc_foreign_pages(struct ipc_foreign *f, struct hca_ctl_mr *mr, bool writes, uint64_t *list,
		      uint64_t **out);
/* May [va, va + length) be read, and written, as the client has mapped it now? -EFAULT, -EACCES */
int ipc_foreign_judge(struct ipc_foreign *f, uint64_t va, uint64_t length, bool writes);

#endif
