/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_DIVERT_H
#define PORT_PORT_DIVERT_H

/*
 * A port shared by the device and "the other side" (a kernel interface, or a small responder for
 * ARP, ND and ICMP). It is in front of another port and sorts received frames:
 *
 *  to the device     UDP to the port of a wire that is on (RoCE: 4791, UB: 4792), even if invalid
 *                    otherwise (counted there), with or without one VLAN tag, to our MAC address
 *                    or to a group; and frames shorter than an Ethernet header
 *  dropped, counted  the same to another MAC address
 *  diverted          everything else: ARP, ND, ICMP, TCP, other UDP, fragments without a port,
 *                    frames with two tags, tunnels (the outer header counts)
 *
 * Diverted frames are copied to a pool of this port, so that a slow other side does not use up the
 * device's receive buffers. Those of all queues go to one other side, and its frames are sent by
 * queue 0, together with the device's: the device's come first, but while it waits for a slow port
 * the other side gets every eighth byte.
 *
 * Owned by the composition. hca_port_divert_take/alloc/give/may_sleep: one thread, the other side.
 * Other calls: any thread. hca_port.close() also closes the inner port; the other side must have
 * stopped.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

struct hca_port_divert_config {
	const char *name; /* unique: names rings and pools */
	uint8_t mac[6];	  /* our MAC address */
	uint32_t depth;	  /* frames either way of all queues, a power of two; 0: 1024 */
	uint32_t wires;	  /* HCA_WIRE_BIT() of the device's wires; 0: RoCE alone */
	int socket_id;
	/*
	 * Called on decap's lcore when a frame arrives for the other side after
	 * hca_port_divert_may_sleep() has returned true, once per such return; may be NULL.
	 */
	void (*kick)(void *arg);
	void *kick_arg;
};

/* Counted by the lcores of decap (rx_...) and encap (tx_pkts, tx_bytes), and by the other side. */
#define HCA_PORT_DIVERT_STATS(X) \
	X(rx_pkts) /* diverted */ \
	X(rx_bytes) \
	X(rx_drops)    /* the ring to the other side was full */ \
	X(rx_no_mbuf)  /* the pool was empty */ \
	X(rx_too_long) /* the frame is longer than a buffer */ \
	X(rx_not_ours) /* of a wire, to another MAC address */ \
	X(tx_pkts)     /* of the other side, accepted by the port */ \
	X(tx_bytes) \
	X(tx_drops) /* the ring from the other side was full */

struct hca_port_divert_stats {
#define X(n) uint64_t n;
	HCA_PORT_DIVERT_STATS(X)
#undef X
};

/* Create the port. 0, -EINVAL (depth, wires), -ENOMEM. On failure the caller keeps inner. */
int hca_port_divert_open(const struct hca_port_divert_config *cfg, struct hca_port *inner,
			 struct hca_port **out);
void hca_port_divert_set_mac(struct hca_port *p, const uint8_t mac[6]);
void hca_port_divert_stats(const struct hca_port *p, struct hca_port_divert_stats *out);

/* ---- watches for senders ---- */

/*
 * Watch for RoCE frames from that MAC address, in that VLAN (0xffff: none), with that source IP
 * address in GID form (NULL: any). Returns a handle, or -ENOSPC. One thread at a time; a released
 * handle is reused as late as possible.
 */
#define HCA_PORT_DIVERT_WATCHES 32u
int hca_port_divert_watch(struct hca_port *p, const uint8_t mac[6], const uint8_t *gid,
			  uint16_t vlan_id);
/* Returns whether a frame of the watch has arrived since the last call. */
bool hca_port_divert_seen(struct hca_port *p, int handle);
void hca_port_divert_unwatch(struct hca_port *p, int handle);

/* ---- the other side ---- */

/* Take diverted frames, at most n; the caller frees them. */
unsigned int hca_port_divert_take(struct hca_port *p, struct rte_mbuf **m, unsigned int n);
/* Allocate a buffer for a frame to send, with HCA_PORT_DIVERT_FRAME bytes of tail room; or NULL. */
struct rte_mbuf *hca_port_divert_alloc(struct hca_port *p);
/* Number of frames that hca_port_divert_give() accepts; grows until that is called. */
unsigned int hca_port_divert_room(const struct hca_port *p);
/* Send frames; takes all, and drops those that do not fit. Returns the number that will be sent. */
unsigned int hca_port_divert_give(struct hca_port *p, struct rte_mbuf **m, unsigned int n);
/*
 * Set a function to be called after every hca_port_divert_give() by the same thread, because the
 * transmitting worker may sleep. Before that thread starts.
 */
void hca_port_divert_set_wake(struct hca_port *p, void (*fn)(void *arg), void *arg);
/* False: there are frames to take. True: kick() will be called when there are. */
bool hca_port_divert_may_sleep(struct hca_port *p);

#define HCA_PORT_DIVERT_FRAME 4480u

#endif
