/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_CONNECT_H
#define IPC_CONNECT_H

/* Checks the owner of a socket and the daemon's version before anything is handed over. */

/* seconds until a daemon accepts a connection and reads the greeting, and until it replies */
#define IPC_GREETING_SECONDS 2
#define IPC_REPLY_SECONDS 60 /* the driver gives up a command much earlier */

/*
 * Connect. -ENOENT: no process listens; -EACCES: this user may not use it, or its owner is not
 * trusted; -ETIMEDOUT: the daemon accepts no connection.
 */
int ipc_connect(const char *path, int *sock);
/*
 * The reason why a connection ended at the greeting without an answer, with lib_fail():
 * -EPROTONOSUPPORT: a daemon of the version that gives none, asked in that version; else -EIO.
 */
int ipc_explain_silence(const char *path);

#endif
