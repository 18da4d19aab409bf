/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_PACKET_H
#define PORT_PORT_PACKET_H

/*
 * Frames that the kernel dropped because the ring of a packet socket of DPDK's driver net_af_packet
 * was full. The driver does not export its sockets and counts no drops (DPDK 22.11), so they are
 * found among the descriptors of this process. Reading the statistics resets them: if a driver also
 * reads them, each drop is counted by one of the two readers only.
 */

#include <stdint.h>

#define HCA_PACKET_SOCKETS 8u

struct hca_packet {
	int fd[HCA_PACKET_SOCKETS]; /* owned and closed by the driver */
	unsigned int count;
	uint64_t lost; /* [pub] */
};

/* Find the sockets of the driver that are bound to interface ifindex of this network namespace. */
void hca_packet_find(struct hca_packet *p, unsigned int ifindex);
/* Frames dropped since hca_packet_find(). A system call; any thread, until the device is closed. */
uint64_t hca_packet_lost(struct hca_packet *p);

#endif
