/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_CLIENT_H
#define IPC_CLIENT_H

/*
 * The client's end of the control channel, part of libsofthca: opens a context on the device of a
 * socket. Without DPDK. The library attaches all memory that the device accesses
 * (src/lib/lib_share.h).
 */

#include <softhca/softhca.h>

/*
 * Open a context; reason in softhca_last_error(). -ENOENT: no daemon listens there; -EACCES: this
 * user may not use it.
 */
int ipc_client_open(const char *path, struct softhca_context **ctx);

#endif
