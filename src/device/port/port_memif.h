/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_MEMIF_H
#define PORT_PORT_MEMIF_H

/*
 * A port on a memif (port_memif_proto.h): shared memory with one other process, which may be
 * another HCA, DPDK's net_memif, VPP or libmemif. Named like DPDK's device, and understands its
 * arguments; what DPDK's has not: interrupts, so that a worker may sleep, peers that may come, go
 * and misbehave as they like, and a link that is up if and only if the peer's process is connected.
 *
 * A thread of the port's own, which sleeps nearly always, accepts and connects, shakes hands, and
 * tears down; the link comes back by itself when the peer does, some 50 ms after that at most. rx
 * and tx touch the rings only. They never wait for the thread; it waits for them before it unmaps
 * anything. Nothing in shared memory is believed: what points outside of the peer's regions is
 * dropped and counted, what breaks the rings takes the link down.
 *
 * Peers whose name begins with HCA_PORT_MEMIF_OURS raise interrupts without gaps; others do not
 * order what they write before what they read, so that a worker is napped for beside its interrupt
 * (port.h, deadline) for a moment after it has begun to sleep.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "port/port.h"

#define HCA_PORT_MEMIF_DEVICE "net_memif"
#define HCA_PORT_MEMIF_OURS "softhca "
#define HCA_PORT_MEMIF_SOCKET_MAX 108u
/* Slots come round one after the other: 256 of 4 KiB stay in a CPU's second cache, 1,024 do not. */
#define HCA_PORT_MEMIF_LOG2_RING 8u /* default; DPDK's is 10 */

struct hca_port_memif_config {
	/* From the arguments of the device, hca_port_memif_parse() */
	bool server;
	bool abstract; /* the socket has no file */
	bool has_mac;
	uint8_t log2_ring;
	uint8_t mac[6];
	uint16_t buffer; /* bytes each, a client's; 0: the longest frame fits */
	uint32_t id;
	uid_t owner_uid; /* of the socket's file; -1: left alone */
	gid_t owner_gid;
	char socket[HCA_PORT_MEMIF_SOCKET_MAX];
	char secret[24]; /* "": none */
	/* From whoever opens it */
	const char *name; /* names the pool; interface towards the peer */
	uint32_t rx_mbufs;
	uint32_t data_room; /* per receive buffer, headroom included; 0: HCA_MBUF_DATA */
	uint32_t mtu;	    /* of IP packets */
	int socket_id;
	/* From the port's thread: the link went up or down, somebody was turned away; or NULL. */
	void (*log)(void *arg, bool warning, const char *text);
	void *log_arg;
};

/* One writer each: the lcore of rx, of tx, the port's thread. */
#define HCA_PORT_MEMIF_STATS(X) \
	X(rx_pkts) \
	X(rx_bytes) \
	X(rx_no_mbuf)	 /* polls in which frames waited for buffers */ \
	X(rx_bad_buffer) /* dropped: outside of the peer's regions */ \
	X(rx_too_long)	 /* dropped: longer than a receive buffer */ \
	X(rx_too_short)	 /* dropped: no Ethernet header */ \
	X(rx_bad_chain)	 /* dropped: the last descriptor of a frame is not there */ \
	X(rx_broken)	 /* polls that found indexes beyond the ring: the link went down */ \
	X(rx_arms)	 /* the worker began to sleep */ \
	X(tx_pkts) \
	X(tx_bytes) \
	X(tx_full)     /* bursts cut short: no room */ \
	X(tx_too_long) /* dropped: longer than all buffers of the ring together */ \
	X(tx_broken)   /* as rx_broken */ \
	X(tx_kicks)    /* interrupts raised */ \
	X(connects)    /* the link went up */ \
	X(disconnects) /* and down */ \
	X(refused)     /* handshakes that failed */ \
	X(memory_lost) /* the peer took shared memory away */

struct hca_port_memif_stats {
#define X(n) uint64_t n;
	HCA_PORT_MEMIF_STATS(X)
#undef X
};

/* "net_memif0" and the like */
bool hca_port_memif_is(const char *device);

/*
 * The arguments behind the device's name ("role=client,socket=/run/x,..."; may be empty). Fills the
 * first part of out. 0, or -EINVAL with a sentence in why.
 */
int hca_port_memif_parse(const char *args, struct hca_port_memif_config *out, char *why,
			 uint32_t size);

/*
 * A server's socket is there when this returns, with the modes umask leaves; -EADDRINUSE: its file
 * was there already. The link comes later. 0 or negative errno.
 */
int hca_port_memif_open(const struct hca_port_memif_config *cfg, struct hca_port **out);

/* Any thread, while the port is open. */
void hca_port_memif_stats(const struct hca_port *p, struct hca_port_memif_stats *out);
/* Who is at the other end, as it says; "" while the link is down. */
void hca_port_memif_peer(const struct hca_port *p, char *name, uint32_t size);
/* Is up; how often it went up in *connects: a peer that came back at once is another one. */
bool hca_port_memif_connected(const struct hca_port *p, uint64_t *connects);

#endif
