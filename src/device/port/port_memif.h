/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_MEMIF_H
#define PORT_PORT_MEMIF_H

/*
 * A port on a memif (port_memif_proto.h): memory shared with one other process, which may be
 * another HCA, DPDK's net_memif, VPP or libmemif. It uses the names and arguments of DPDK's device.
 * Unlike DPDK's it has interrupts, so that a worker may sleep, tolerates peers that disconnect,
 * reconnect and misbehave, and its link is up exactly while the peer's process is connected.
 *
 * A thread of the port, which sleeps nearly always, accepts and connects, does the handshakes, and
 * ends connections; the link recovers at most about 50 ms after the peer is back. rx and tx access
 * only the rings and never wait for the thread; it waits for them before it unmaps memory.
 * Shared memory is untrusted: buffers outside the peer's regions are dropped and counted, invalid
 * indexes take the link down.
 *
 * Queues: a peer that is also this port says in its name how many it has. Then there is a ring
 * from each queue of one port to each of the other, so that each ring has one producer, and a frame
 * of RoCE is sent to the queue of its destination QPN (QPN modulo the peer's queues, a power of
 * two), other frames to queue 0. With another peer there are as many rings each way as both have,
 * and ring q belongs to queue q modulo queues. Queues without a ring send by that of another queue:
 * while that one sends, the port accepts no frame of theirs.
 *
 * Peers whose name begins with HCA_PORT_MEMIF_OURS always raise interrupts. Other peers lack a
 * barrier between writing an index and reading the interrupt flag, so that an interrupt may be
 * missed: a worker that goes to sleep also checks the ring every NAP_NS until SETTLED_NS have
 * passed (port.h, deadline).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "port/port.h"

#define HCA_PORT_MEMIF_DEVICE "net_memif"
#define HCA_PORT_MEMIF_OURS "softhca "
#define HCA_PORT_MEMIF_QUEUES 16u
#define HCA_PORT_MEMIF_SOCKET_MAX 108u
/* Slots are used in turn: 256 buffers of 4 KiB stay in a CPU's L2 cache, 1,024 do not. */
#define HCA_PORT_MEMIF_LOG2_RING 8u /* default; that of DPDK is 10 */

struct hca_port_memif_config {
	/* Set by hca_port_memif_parse() from the arguments of the device */
	bool server;
	bool abstract; /* abstract socket, without a file */
	bool has_mac;
	uint8_t log2_ring;
	uint8_t mac[6];
	uint16_t buffer; /* bytes per buffer (client); 0: as the longest frame needs */
	uint32_t id;
	uid_t owner_uid; /* owner of the socket's file; -1: not changed */
	gid_t owner_gid;
	char socket[HCA_PORT_MEMIF_SOCKET_MAX];
	char secret[24]; /* "": no secret */
	/* Set by the caller of hca_port_memif_open() */
	const char *name;   /* name of the pool, and of the interface as the peer sees it */
	uint16_t queues;    /* at most HCA_PORT_MEMIF_QUEUES; 0: one */
	uint32_t rx_mbufs;  /* of each queue */
	uint32_t data_room; /* per receive buffer, headroom included; 0: HCA_MBUF_DATA */
	uint32_t mtu;	    /* bytes of an IP packet */
	bool carrier;	    /* the link is up even without a peer, when frames sent are dropped */
	int socket_id;
	/*
	 * Called by the port's thread when the link goes up or down or a peer is refused; may be
	 * NULL.
	 */
	void (*log)(void *arg, bool warning, const char *text);
	void *log_arg;
};

/* Counters; each has one writer: rx's lcore, tx's lcore or the port's thread. */
#define HCA_PORT_MEMIF_STATS(X) \
	X(rx_pkts) \
	X(rx_bytes) \
	X(rx_no_mbuf)	 /* polls in which frames waited for mbufs */ \
	X(rx_bad_buffer) /* dropped: buffer outside the peer's regions */ \
	X(rx_too_long)	 /* dropped: longer than the receive buffer */ \
	X(rx_too_short)	 /* dropped: shorter than an Ethernet header */ \
	X(rx_bad_chain)	 /* dropped: the last descriptor of a frame is missing */ \
	X(rx_broken)	 /* polls that found an invalid index: the link goes down */ \
	X(rx_arms)	 /* times the worker armed the interrupt */ \
	X(tx_pkts) \
	X(tx_bytes) \
	X(tx_full)     /* bursts cut short because the ring was full */ \
	X(tx_too_long) /* dropped: longer than all buffers of the ring */ \
	X(tx_no_peer)  /* dropped: carrier, but no peer */ \
	X(tx_broken)   /* as rx_broken */ \
	X(tx_kicks)    /* interrupts raised */ \
	X(connects)    /* times the link went up */ \
	X(disconnects) /* times it went down */ \
	X(refused)     /* handshakes that failed */ \
	X(memory_lost) /* the peer truncated shared memory */

struct hca_port_memif_stats {
#define X(n) uint64_t n;
	HCA_PORT_MEMIF_STATS(X)
#undef X
};

/* Whether a device's name is that of a memif, such as "net_memif0". */
bool hca_port_memif_is(const char *device);

/*
 * Parse the arguments of the device ("role=client,socket=/run/x,..."; may be empty) into the first
 * part of out. 0, or -EINVAL with a reason in why.
 */
int hca_port_memif_parse(const char *args, struct hca_port_memif_config *out, char *why,
			 uint32_t size);

/*
 * Open the port. A server's socket exists on return, with the mode that umask leaves; the link
 * comes up later. 0 or a negative errno; -EADDRINUSE: the socket's file exists.
 */
int hca_port_memif_open(const struct hca_port_memif_config *cfg, struct hca_port **out);

/* Copy the counters; any thread, while the port is open. */
void hca_port_memif_stats(const struct hca_port *p, struct hca_port_memif_stats *out);
/* The name that the peer has sent; "" while the link is down. Any thread. */
void hca_port_memif_peer(const struct hca_port *p, char *name, uint32_t size);
/*
 * Whether the link is up. *connects: number of times it came up: while it is the same, so is the
 * connection. Any thread.
 */
bool hca_port_memif_connected(const struct hca_port *p, uint64_t *connects);

#endif
