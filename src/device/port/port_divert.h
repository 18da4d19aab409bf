/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_DIVERT_H
#define PORT_PORT_DIVERT_H

/*
 * A port that two share: the device and "the other side" (a kernel interface, or a small responder
 * to ARP, ND and ICMP). Stands in front of another port and sorts what comes in:
 *
 *   to the device     UDP to port 4791, whatever else is wrong with it (it is counted there), with
 *                     or without one VLAN tag, to our MAC address or to a group; and frames
 *                     shorter than an Ethernet header
 *   dropped, counted  the same to somebody else's MAC address
 *   diverted          everything else: ARP, ND, ICMP, TCP, other UDP, fragments that do not show a
 *                     port, frames with two tags, tunnels (the outer header counts)
 *
 * Diverted frames are copies from a pool of this port: however slow the other side is, the device
 * keeps its receive buffers. What the other side sends joins the device's frames: the device first,
 * but while it waits for a slow port every eighth byte is the other side's.
 *
 * Owner: the composition. hca_port_divert_take/alloc/give/may_sleep: one thread, the other side.
 * The rest from any thread. hca_port.close() closes what is wrapped too; the other side has stopped
 * by then.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

struct hca_port_divert_config {
	const char *name; /* unique: names rings and pools */
	uint8_t mac[6];	  /* ours */
	uint32_t depth;	  /* frames either way, a power of two; 0: 1024 */
	int socket_id;
	/*
	 * A frame came for the other side, which had said that it goes to sleep. Called once per
	 * sleep from the lcore of decap; or NULL.
	 */
	void (*kick)(void *arg);
	void *kick_arg;
};

/*
 * Counted by the lcore of decap (rx_...), by that of encap (tx_pkts, tx_bytes), by the other side.
 */
#define HCA_PORT_DIVERT_STATS(X) \
	X(rx_pkts) /* diverted */ \
	X(rx_bytes) \
	X(rx_drops)    /* to be diverted, but the ring was full */ \
	X(rx_no_mbuf)  /* ... or the pool empty */ \
	X(rx_too_long) /* ... or the frame longer than a buffer */ \
	X(rx_not_ours) /* RoCE to another MAC address */ \
	X(tx_pkts)     /* of the other side, taken by the port */ \
	X(tx_bytes) \
	X(tx_drops) /* given, but the ring was full */

struct hca_port_divert_stats {
#define X(n) uint64_t n;
	HCA_PORT_DIVERT_STATS(X)
#undef X
};

/* 0, -EINVAL (depth), -ENOMEM. On failure inner is left to the caller. */
int hca_port_divert_open(const struct hca_port_divert_config *cfg, struct hca_port *inner,
			 struct hca_port **out);
void hca_port_divert_set_mac(struct hca_port *p, const uint8_t mac[6]);
void hca_port_divert_stats(const struct hca_port *p, struct hca_port_divert_stats *out);

/* ---- who sends ---- */

/*
 * Watch RoCE frames that come from that MAC address, on that VLAN (0xffff: none), and of that IP
 * address in GID form (NULL: of any). A handle, or -ENOSPC. One thread at a time; a handle that was
 * given back is given out again later than everything that came before.
 */
#define HCA_PORT_DIVERT_WATCHES 32u
int hca_port_divert_watch(struct hca_port *p, const uint8_t mac[6], const uint8_t *gid,
			  uint16_t vlan_id);
/* True: such a frame has come since the last call. */
bool hca_port_divert_seen(struct hca_port *p, int handle);
void hca_port_divert_unwatch(struct hca_port *p, int handle);

/* ---- the other side ---- */

/* Frames diverted, at most n; whoever takes them frees them. */
unsigned int hca_port_divert_take(struct hca_port *p, struct rte_mbuf **m, unsigned int n);
/* An empty buffer for a frame to be sent, HCA_PORT_DIVERT_FRAME bytes of tail room; or NULL. */
struct rte_mbuf *hca_port_divert_alloc(struct hca_port *p);
/* How many hca_port_divert_give() would take now: it grows until then. */
unsigned int hca_port_divert_room(const struct hca_port *p);
/* To the wire; takes all, and drops what does not fit. Returns how many are on their way. */
unsigned int hca_port_divert_give(struct hca_port *p, struct rte_mbuf **m, unsigned int n);
/*
 * Called behind every hca_port_divert_give(), by the thread that gives: the worker that transmits
 * may sleep. Set before there is such a thread.
 */
void hca_port_divert_set_wake(struct hca_port *p, void (*fn)(void *arg), void *arg);
/* False: there is something to take. True: kick() will be called when there is. */
bool hca_port_divert_may_sleep(struct hca_port *p);

#define HCA_PORT_DIVERT_FRAME 4480u

#endif
