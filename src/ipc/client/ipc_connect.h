/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_CONNECT_H
#define IPC_CONNECT_H

/* Who listens on a socket, and which version it speaks: before anything is handed over. */

/* -ENOENT: nobody listens there; -EACCES: not for this user, or another user than a daemon's. */
int ipc_connect(const char *path, int *sock);
/* Why a greeting got no answer: -EPROTONOSUPPORT an older daemon, else -EIO; with lib_fail(). */
int ipc_explain_silence(const char *path);

#endif
