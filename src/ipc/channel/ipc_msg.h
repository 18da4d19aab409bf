/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MSG_H
#define IPC_MSG_H

/*
 * Sends and receives one message of the control channel with its descriptors. Used by both ends; no
 * state. Errors are a negative errno; -EPIPE: the other end has closed; -EBADMSG: truncated, or too
 * many descriptors.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "ipc_proto.h"

/* Limit of descriptors in a message, which a hostile peer may use */
#define IPC_FDS_PER_MESSAGE 253u

/* Send a message; the caller keeps the descriptors. flags: MSG_DONTWAIT or 0. */
int ipc_send(int sock, const void *head, size_t head_bytes, const void *body, size_t body_bytes,
	     const int *fds, unsigned int num_fds, int flags);

/*
 * Receive a message. Returns its length; 0 at the end of the stream and for an empty packet.
 * *num_fds in: room in fds; out: number received, close-on-exec, owned by the caller whatever is
 * returned. Those without room are closed here; if that must not block, provide room for
 * IPC_FDS_PER_MESSAGE. -EMFILE: the process may not have the descriptors, the message is valid
 * otherwise; -EBADMSG: it is invalid.
 */
ssize_t ipc_receive(int sock, void *message, size_t bytes, int *fds, unsigned int *num_fds);

/*
 * Bring the body of a message to the size of this end's structure, in place: missing members are 0.
 * False: there is more than that, and it is not 0. The buffer has room for both.
 */
bool ipc_fit(void *body, size_t len, size_t bytes);

void ipc_close_fds(int *fds, unsigned int num_fds);

#endif
