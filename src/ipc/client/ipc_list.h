/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_LIST_H
#define IPC_LIST_H

/*
 * The devices of the daemons on this host (softhca_get_device_list()), from the descriptions that
 * daemons keep next to their sockets: no daemon is asked, so a hanging one cannot delay it.
 */

#define IPC_SOCKET_SUFFIX ".sock"

/**
 * The folder with the sockets.
 *
 * @return
 *   SOFTHCA_DIRECTORY of the environment, or IPC_DIRECTORY.
 */
const char *ipc_folder(void);

#endif
