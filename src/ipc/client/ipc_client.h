/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_CLIENT_H
#define IPC_CLIENT_H

/*
 * The client's end of the control channel, part of libsofthca: opens a context on the device of a
 * socket. Without DPDK. The library attaches all memory that the device accesses
 * (src/lib/lib_share.h).
 */

#include <softhca/softhca.h>

/**
 * Open a context on the device of a daemon. Any thread; blocks at most IPC_GREETING_SECONDS until
 * the daemon accepts the connection, and as long for its answer to the greeting (ipc_connect.h).
 *
 * @param path
 *   Of the daemon's socket.
 * @param ctx
 *   Set to the context; not changed on error.
 * @return
 *   - 0: open.
 *   - -ENOENT: no daemon listens there.
 *   - -EACCES: this user may not use the socket, or the daemon's user is not trusted.
 *   - -ETIMEDOUT: the daemon does not answer in time.
 *   - -EPROTONOSUPPORT: daemon and library have no version of the control channel in common.
 *   - -EMFILE, -ENOMEM: a limit of the daemon, or of this process.
 *   - another negative errno.
 *   Reason in softhca_last_error().
 */
int ipc_client_open(const char *path, struct softhca_context **ctx);

#endif
