/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_ADMIN_H
#define ENDPOINT_ADMIN_H

/*
 * Interface of an operator to a running endpoint: commands of DPDK's telemetry socket, in addition
 * to those of every HCA (hca_telemetry.h):
 *
 *   /softhca/endpoint               port, addresses of its link, workers
 *   /softhca/ipc, /softhca/kernif   counters
 *   /softhca/memif                  counters of a memif port (port_memif.h)
 *   /softhca/impair,drop=0.01,...   faults of sent or received frames (admin_impair.h); "off" ends
 *                                   them; without parameters: their counts so far
 *   /softhca/capture,PATH           capture both directions to a new pcapng file; "off" ends it;
 *                                   options before the path select frames (admin_capture.h)
 *
 * Only the daemon's user can open the socket.
 */

struct endpoint;

/* Register the commands for an endpoint; main thread, after everything else runs. */
void endpoint_admin_add(struct endpoint *e);
/* Detach the endpoint from the commands and end a capture; main thread. */
void endpoint_admin_remove(struct endpoint *e);

#endif
