/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MAPS_H
#define IPC_MAPS_H

/*
 * A process can have a limited number of mappings (vm.max_map_count); without free ones it can
 * neither start threads nor map or unmap memory. A segment of a client is one, as is a hole between
 * two segments. Clients' mappings are counted here and stay far below the limit: half of them is
 * divided into shares, the other half is available to all.
 *
 * Owned by the server; any thread may call.
 */

#include <stdbool.h>
#include <stdint.h>

struct ipc_maps {
	uint32_t share;	 /* mappings that each client may always have */
	uint32_t common; /* further ones, for all clients */
	uint32_t used;	 /* number of those in use */
};

/* Initialize for a number of clients, and a limit of mappings per process; 0: the kernel's. */
void ipc_maps_init(struct ipc_maps *maps, uint32_t clients, uint32_t limit);

/* The client has `from` mappings and is to have `to`; false: not permitted, if these are more. */
bool ipc_maps_change(struct ipc_maps *maps, uint32_t from, uint32_t to);

#endif
