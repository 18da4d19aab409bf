/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MSG_H
#define IPC_MSG_H

/*
 * One message of the control channel out or in, with its descriptors. Used by both ends; no state.
 * Errors: negative errno; -EPIPE: the other end is gone; -EBADMSG: cut off, or too many
 * descriptors.
 */

#include <stddef.h>
#include <sys/types.h>

#include "ipc_proto.h"

/* Descriptors a hostile peer may send at once */
#define IPC_FDS_PER_MESSAGE 253u

/* The descriptors stay the caller's. flags: MSG_DONTWAIT or 0. */
int ipc_send(int sock, const void *head, size_t head_bytes, const void *body, size_t body_bytes,
	     const int *fds, unsigned int num_fds, int flags);

/*
 * Returns the bytes read, 0 at the end of the stream and for a packet without bytes. *num_fds in:
 * room in fds, out: how many came, close-on-exec, the caller's whatever is returned. What does not
 * fit is closed here: where that may sleep, there is room for IPC_FDS_PER_MESSAGE. -EMFILE: this
 * process may not have the descriptors that came, the rest is as it should be; -EBADMSG: it is not.
 */
ssize_t ipc_receive(int sock, void *message, size_t bytes, int *fds, unsigned int *num_fds);

void ipc_close_fds(int *fds, unsigned int num_fds);

#endif
