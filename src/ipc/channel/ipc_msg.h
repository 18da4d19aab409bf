/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MSG_H
#define IPC_MSG_H

/*
 * Sends and receives one message of the control channel with its descriptors. Used by both ends; no
 * state. Any thread; two threads that use one socket would mix their messages.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "ipc_proto.h"

/* Limit of descriptors in a message, which a hostile peer may use */
#define IPC_FDS_PER_MESSAGE 253u

/**
 * Send a message.
 *
 * @param sock
 *   A connected socket of type SOCK_SEQPACKET.
 * @param head
 *   The header, struct ipc_request or ipc_reply.
 * @param head_bytes
 *   Its size.
 * @param body
 *   The body; NULL if body_bytes is 0.
 * @param body_bytes
 *   Its size, at most IPC_BODY_MAX.
 * @param fds
 *   Descriptors to send; they stay open here.
 * @param num_fds
 *   Their number, at most HCA_CTL_FDS_MAX.
 * @param flags
 *   MSG_DONTWAIT, or 0: wait for room, at most the socket's SO_SNDTIMEO.
 * @return
 *   - 0: sent.
 *   - -EPIPE: the other end has closed.
 *   - -EAGAIN: no room, within the time limit of the socket.
 *   - -EINVAL: num_fds beyond HCA_CTL_FDS_MAX.
 *   - another negative errno of sendmsg().
 */
int ipc_send(int sock, const void *head, size_t head_bytes, const void *body, size_t body_bytes,
	     const int *fds, unsigned int num_fds, int flags);

/**
 * Receive a message.
 *
 * @param sock
 *   A connected socket of type SOCK_SEQPACKET.
 * @param message
 *   Room for header and body.
 * @param bytes
 *   Its size.
 * @param fds
 *   Room for descriptors, which are close-on-exec and belong to the caller, whatever is returned.
 *   Those without room are closed here; if that must not block, provide room for
 *   IPC_FDS_PER_MESSAGE.
 * @param num_fds
 *   In: room in fds. Out: number received.
 * @return
 *   - the length of the message in bytes; 0 at the end of the stream and for an empty packet.
 *   - -EAGAIN: no message within the socket's SO_RCVTIMEO.
 *   - -EMFILE: this process may have no more descriptors; the message is valid otherwise.
 *   - -EBADMSG: the message is longer than `bytes`, or has more descriptors than there is room for.
 *   - another negative errno of recvmsg().
 */
ssize_t ipc_receive(int sock, void *message, size_t bytes, int *fds, unsigned int *num_fds);

/**
 * Bring the body of a message to the size of this end's structure, in place: missing members
 * become 0.
 *
 * @param body
 *   The body, with room for the larger of len and bytes.
 * @param len
 *   Bytes received.
 * @param bytes
 *   Size of this end's structure.
 * @return
 *   True: the structure is complete. False: bytes beyond it are not 0, so the sender asks for
 *   something that this end does not have.
 */
bool ipc_fit(void *body, size_t len, size_t bytes);

/**
 * Close descriptors.
 *
 * @param fds
 *   The descriptors, which are set to -1; negative ones are skipped.
 * @param num_fds
 *   Their number.
 */
void ipc_close_fds(int *fds, unsigned int num_fds);

#endif
