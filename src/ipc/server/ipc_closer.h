/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_CLOSER_H
#define IPC_CLOSER_H

/*
 * Closing what a client has sent, or has queued in a socket. close() of such a descriptor may last
 * as long as the client likes (a TCP socket with SO_LINGER, a file of a file system of its own), so
 * no thread that others wait for may do it. Descriptors are given away to threads that do nothing
 * else: one that does not come back is interrupted, and counts as lost while that does not help.
 * Another one takes its place, up to a bound; the user whose descriptor it was owes it.
 *
 * Thread safe. The threads of a closer that was destroyed end when they can.
 */

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

struct ipc_closer;

/* 0 or negative errno, reason by ipc_fail(). */
int ipc_closer_create(struct ipc_closer **out);
/* Waits a moment for what is still to be closed; what is lost by then stays open. */
void ipc_closer_destroy(struct ipc_closer *c);

/* The descriptor is the closer's from here on. Never sleeps. */
void ipc_closer_give(struct ipc_closer *c, int fd, uid_t uid);
void ipc_closer_give_all(struct ipc_closer *c, int *fds, unsigned int num_fds, uid_t uid);

/* Threads that are lost with a descriptor of this user now */
unsigned int ipc_closer_owed(struct ipc_closer *c, uid_t uid);
/* Threads that were ever lost */
uint64_t ipc_closer_lost(struct ipc_closer *c);

/*
 * For threads that may sleep on behalf of a client elsewhere (a message whose descriptors find no
 * room is closed by recvmsg()): ipc_closer_admit() once in the thread, then ipc_closer_interrupt()
 * from outside ends the sleep, where the kernel lets it.
 */
void ipc_closer_admit(void);
void ipc_closer_interrupt(pthread_t thread);

#endif
