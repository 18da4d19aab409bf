/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MAPS_H
#define IPC_MAPS_H

/*
 * A process has so many mappings (vm.max_map_count) and no more, and nothing works any longer when
 * they are used up: no thread starts, no memory comes or goes. Each segment of a client may take
 * two, itself and a hole beside it. What clients may have together is counted here, and stays far
 * below:
 * half of it is everybody's own share, the other half is for whoever comes first.
 *
 * Owned by the server; thread safe.
 */

#include <stdbool.h>
#include <stdint.h>

struct ipc_maps {
	uint32_t share;	 /* segments of one client that are always there */
	uint32_t common; /* further ones, of all clients */
	uint32_t used;	 /* of those */
};

/* For so many clients, on a machine that allows a process `limit` mappings; 0: ask the kernel. */
void ipc_maps_init(struct ipc_maps *maps, uint32_t clients, uint32_t limit);

/* The client has `count` segments and wants one more: may it? */
bool ipc_maps_take(struct ipc_maps *maps, uint32_t count);
/* The client had `count` segments and has `left`. */
void ipc_maps_give(struct ipc_maps *maps, uint32_t count, uint32_t left);

#endif
