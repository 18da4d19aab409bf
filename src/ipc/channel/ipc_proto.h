/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_PROTO_H
#define IPC_PROTO_H

/*
 * The control channel on a unix socket (SOCK_SEQPACKET): one message is one packet, a request is
 * answered by one reply, and one request at a time is under way. abi_ops.h lists the operations and
 * the types of their bodies. Both ends are on one machine: host byte order, flat structures,
 * addresses are those of the client. File descriptors accompany a message as SCM_RIGHTS. The server
 * trusts no byte that it reads.
 *
 * The first message is HELLO. Its reply contains a nonce: the n-th request after it (n from 1) has
 * seq = nonce + n, so that two writers on one socket, or a client that has lost count, are detected
 * at once. A framing error ends the connection; a refused request is answered with a negative errno
 * and a reason.
 *
 * Compatibility (abi_ops.h: Versions): the headers of requests and replies, the number of HELLO and
 * the size of its body never change. A HELLO of another version is answered in the highest version
 * that both ends speak, which is that of the connection. Without a common version it is answered in
 * its own version, so that the sender accepts the reply: -EPROTONOSUPPORT, `speaks` and a reason.
 * Then the connection ends. Daemons of version 1 that lack this end it without an answer.
 *
 * A daemon that takes no more clients answers before it reads the greeting, in its own version and
 * with seq 0, and ends the connection: -EMFILE: the user's limit; -ENOMEM: the daemon's; with the
 * limit in the reason.
 */

#include <inttypes.h>

#include "abi_ops.h"

#define IPC_MAGIC 0x41434873u /* "sHCA" */
#define IPC_DIRECTORY "/run/softhca"
#define IPC_BODY_MAX 32768u

/*
 * Next to a socket NAME.sock lies NAME.sock.device, which any user may read: the node GUID of the
 * device. The daemon holds a write lock on it (an open file description lock) as long as it lives,
 * so a list of devices needs no connection. Readers check with F_OFD_GETLK and take no lock.
 */
#define IPC_DEVICE_SUFFIX ".device"
#define IPC_DEVICE_PATH_MAX 128u /* an address of a socket, and the suffix */
#define IPC_DEVICE_PRINT "guid %016" PRIx64 "\n"
#define IPC_DEVICE_SCAN "guid %16" SCNx64
#define IPC_DEVICE_TEXT_MAX 64u

struct ipc_request {
	uint16_t version;
	uint16_t op;  /* enum hca_ctl_op */
	uint32_t len; /* bytes of the body after this */
	uint64_t seq;
};

struct ipc_reply {
	uint16_t version;
	uint16_t op;
	uint32_t len;
	uint64_t seq;
	int32_t err;	  /* 0, or a negative errno without a body */
	uint32_t speaks;  /* the daemon's own version */
	char reason[168]; /* the reason, 0-terminated */
};

#define X(NAME, name, request, answer, fds_in, fds_out, caller, by, since) \
	_Static_assert(sizeof(request) <= IPC_BODY_MAX && sizeof(answer) <= IPC_BODY_MAX, \
		       #name " fits a message");
HCA_CTL_OPS(X)
#undef X
_Static_assert(sizeof(struct ipc_request) == 16 && sizeof(struct ipc_reply) == 192 &&
		       HCA_CTL_HELLO == 0 && sizeof(struct hca_ctl_hello) == 8,
	       "what all versions have in common");

#endif
