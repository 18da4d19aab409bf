/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MAPS_H
#define IPC_MAPS_H

/*
 * A process can have a limited number of mappings (vm.max_map_count); without free ones it can
 * neither start threads nor map or unmap memory. Each segment of a client may need two, itself and
 * a hole beside it. Clients' mappings are counted here and stay far below the limit: half of them
 * is divided into shares, the other half is available to all.
 *
 * Owned by the server; any thread may call.
 */

#include <stdbool.h>
#include <stdint.h>

struct ipc_maps {
	uint32_t share;	 /* segments that each client may always have */
	uint32_t common; /* further ones, for all clients */
	uint32_t used;	 /* number of those in use */
};

/* Initialize for so many clients, and a limit of mappings per process; 0: the kernel's. */
void ipc_maps_init(struct ipc_maps *maps, uint32_t clients, uint32_t limit);

/* The client has `count` segments and needs one more; false: not permitted. */
bool ipc_maps_take(struct ipc_maps *maps, uint32_t count);
/* The client had `count` segments and now has `left`. */
void ipc_maps_give(struct ipc_maps *maps, uint32_t count, uint32_t left);

#endif
