/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_CONNECT_H
#define IPC_CONNECT_H

/* Checks the owner of a socket and the daemon's version before anything is handed over. */

#define IPC_REPLY_SECONDS 60 /* limit of a reply; the driver gives up a command much earlier */

/*
 * Connect. -ENOENT: no process listens; -EACCES: this user may not use it, or its owner is not
 * trusted.
 */
int ipc_connect(const char *path, int *sock);
/*
 * The reason why a greeting got no answer, with lib_fail(): -EPROTONOSUPPORT: an older daemon; else
 * -EIO.
 */
int ipc_explain_silence(const char *path);

#endif
