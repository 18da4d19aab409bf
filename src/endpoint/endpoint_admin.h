/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_ADMIN_H
#define ENDPOINT_ADMIN_H

/*
 * What an operator sees and changes of a running endpoint, as commands of DPDK's telemetry socket
 * besides those of every HCA (hca_telemetry.h):
 *
 *   /softhca/endpoint               port, addresses of its link, workers
 *   /softhca/ipc, /softhca/kernif   counters
 *   /softhca/memif                  those of a memif port (port_memif.h)
 *   /softhca/impair,drop=0.01,...   faults of frames sent or received (admin_impair.h); "off" ends
 *                                   them; nothing: what happened
 *   /softhca/capture,PATH           both directions into a new pcapng file; "off" ends it; words in
 *                                   front of the path choose (admin_capture.h)
 *
 * The socket is the daemon's user's alone.
 */

struct endpoint;

void endpoint_admin_add(struct endpoint *e);
void endpoint_admin_remove(struct endpoint *e);

#endif
