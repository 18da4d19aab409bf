/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_CLIENT_H
#define IPC_CLIENT_H

/*
 * The client's end of the control channel, part of libsofthca: opens a context on the device behind
 * a socket. No DPDK. All memory the device is to reach is attached by the library
 * (src/lib/lib_share.h).
 */

#include <softhca/softhca.h>

/*
 * Reason in softhca_last_error(). -ENOENT: no daemon listens there, -EACCES: it is not for this
 * user
 */
int ipc_client_open(const char *path, struct softhca_context **ctx);

#endif
