/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_CONNECT_H
#define IPC_CONNECT_H

/* Checks the owner of a socket and the daemon's version before anything is handed over. */

/* seconds until a daemon accepts a connection and reads the greeting, and until it replies */
#define IPC_GREETING_SECONDS 2
#define IPC_REPLY_SECONDS 60 /* the driver gives up a command much earlier */

/**
 * Connect to a daemon. Any thread; blocks at most IPC_GREETING_SECONDS.
 *
 * @param path
 *   Of the socket.
 * @param sock
 *   Set to the connected socket, close-on-exec, owned by the caller; not changed on error.
 * @return
 *   - 0: connected.
 *   - -ENOENT: no process listens.
 *   - -EACCES: this user may not use the socket, or the daemon's user is not trusted.
 *   - -ETIMEDOUT: the daemon accepts no connection.
 *   - -ENAMETOOLONG: path does not fit an address.
 *   - another negative errno. Reason by lib_fail().
 */
int ipc_connect(const char *path, int *sock);

/**
 * Find out why a connection ended at the greeting without an answer: greet in the version whose
 * daemons give no answer to others.
 *
 * @param path
 *   Of the socket.
 * @return
 *   - -EPROTONOSUPPORT: the daemon is of that version.
 *   - -EIO: it is not. Reason by lib_fail().
 */
int ipc_explain_silence(const char *path);

#endif
