/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_FOREIGN_H
#define IPC_FOREIGN_H

/*
 * Memory of a client that the daemon does not map: accessed through the client's own
 * /proc/self/mem, which the client has opened and sent. Such a file is bound to the memory, not to
 * a process number: it never refers to another process, be it a later one with the same number, a
 * child, or the program after exec(). The daemon needs no rights over the client, and its accesses
 * are possible for the client itself.
 *
 * The system call may block as long as the client wants (a page of its own file system,
 * userfaultfd). So a thread per client, the agent, makes it, and a worker of the device waits for
 * that at most a few milliseconds, and at most a tenth of a second if the agent has no CPU: then
 * the access counts as late, and so do further ones until the agent returns. Workers do not wait
 * for clients that have used up their budget, or whose user has used up his share (ipc_budget.h).
 *
 * Errors are a negative errno, reason by ipc_fail().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc_proto.h"

struct ipc_foreign;

/*
 * Create the access to a client. mem and maps: /proc/PID/mem open for reading and writing, and
 * /proc/PID/maps of the same process, which the caller keeps. peer, uid: process number and user
 * according to the socket. stop_fd: readable when the daemon is being stopped, -1: there
 * is none. -EBADF: other files.
 */
int ipc_foreign_create(int mem, int maps, int peer, uid_t uid, int stop_fd,
		       struct ipc_foreign **out);
/* Make every further access fail. */
void ipc_foreign_end(struct ipc_foreign *f);
/* Destroy it when the device does not use it any more. A blocked agent ends when it can. */
void ipc_foreign_destroy(struct ipc_foreign *f);

/* hca_config.foreign: 0, -EAGAIN, -EINPROGRESS, -EFAULT. Any worker. */
int ipc_foreign_access(struct ipc_foreign *f, bool write, uint64_t addr, void *bytes, uint32_t len);

/*
 * Wait until an abandoned access has ended, so that memory that the device has released is not
 * written later. -EIO: it takes too long.
 */
int ipc_foreign_settle(struct ipc_foreign *f);

/* Bus pages of a region, as ipc_translate_mr(). writes: the device will write to it. */
int ipc_foreign_pages(struct ipc_foreign *f, struct hca_ctl_mr *mr, bool writes, uint64_t *list,
		      uint64_t **out);
/* Whether [va, va + length) is readable (and writable) as currently mapped; 0 or -EFAULT. */
int ipc_foreign_judge(struct ipc_foreign *f, uint64_t va, uint64_t length, bool writes);

#endif
