/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_MEMORY_H
#define PORT_PORT_MEMORY_H

/*
 * Two ports connected back to back in the memory of the process. Frames are passed on as they are:
 * they must have one segment and the private area that port.h names.
 *
 * Both ports have the same number of queues. A frame of RoCE arrives in the queue of its
 * destination QPN (QPN modulo queues), by whichever queue it leaves, and other frames in queue 0.
 * From each queue of one port to each queue of the other there is a ring with one producer and one
 * consumer, so the order of frames between two queues is kept. If a ring is full, the port accepts
 * no frame behind the first one for it.
 *
 * Owned by the composition. A port frees the frames that it has not received when it is closed. The
 * rings stay until both ports are closed; frames that are sent to a closed port fill them.
 */

#include <stdint.h>

#include "port/port.h"

#define HCA_PORT_MEMORY_QUEUES 16u

/*
 * Create a pair of ports.
 *
 * @param name    unique, part of the names of the rings
 * @param queues  1, 2, 4, 8 or HCA_PORT_MEMORY_QUEUES
 * @param depth   length of each ring in frames, a power of two; it holds one less
 * @param socket_id  NUMA node of the memory, or SOCKET_ID_ANY
 * @param out     the two ports
 * @return        0, -EINVAL (queues or depth), -ENOMEM, -EMFILE
 */
int hca_port_memory_pair(const char *name, uint16_t queues, uint32_t depth, int socket_id,
			 struct hca_port *out[2]);

#endif
