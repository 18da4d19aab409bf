/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_CLOSER_H
#define IPC_CLOSER_H

/*
 * Closes descriptors that a client has sent, or has queued in a socket. close() of such a
 * descriptor may block as long as the client wants (a TCP socket with SO_LINGER, a file of its own
 * file system), so threads that others wait for must not call it. Descriptors are passed to threads
 * for this purpose only; one that blocks is interrupted, and counted as lost while that does not
 * help. Another thread replaces it, up to a limit; it is charged to the user that sent the
 * descriptor.
 *
 * Any thread may call. The threads of a destroyed closer end when they can.
 */

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

struct ipc_closer;

/* Create a closer; 0 or a negative errno, reason by ipc_fail(). */
int ipc_closer_create(struct ipc_closer **out);
/* Destroy it after waiting briefly for pending descriptors; those of lost threads stay open. */
void ipc_closer_destroy(struct ipc_closer *c);

/* Pass a descriptor to the closer, which owns it from now on. Never blocks. */
void ipc_closer_give(struct ipc_closer *c, int fd, uid_t uid);
void ipc_closer_give_all(struct ipc_closer *c, int *fds, unsigned int num_fds, uid_t uid);

/* Number of threads currently lost with a descriptor of this user. */
unsigned int ipc_closer_owed(struct ipc_closer *c, uid_t uid);
/* Number of threads ever lost. */
uint64_t ipc_closer_lost(struct ipc_closer *c);

/*
 * For threads that may block on behalf of a client elsewhere (recvmsg() closes descriptors without
 * room): ipc_closer_admit() once in the thread; then ipc_closer_interrupt() from another thread
 * ends the blocking, if the kernel permits.
 */
void ipc_closer_admit(void);
void ipc_closer_interrupt(pthread_t thread);

#endif
