/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_KERNIF_H
#define KERNIF_KERNIF_H

/*
 * Where the traffic of a port goes that is not RoCE, and where the HCA's addresses come from:
 *
 *  KERNIF_BUILTIN  a small responder (arp_nd.h); addresses and gateways as configured;
 *  KERNIF_TAP      a TAP interface of the kernel: ping, ssh, TCP use the same address on the same
 *                  port. The kernel's tables are the truth: addresses of the interface and of its
 *                  VLANs become GIDs, routes and neighbours give next hops, all of it live.
 *
 * GID 0 is the link-local address (made of the MAC address until the kernel has one); the others
 * take the first free index as they appear and keep it while they stay.
 *
 * Order of life: kernif_create(), the shared port (port/port_divert.h, kick = kernif_kick), the
 * HCA, the driver (resolve = kernif_resolve), kernif_start() ... kernif_stop(), driver, HCA, port,
 * kernif_destroy(). create, start, stop, destroy: one thread; the rest: any. Errors: 0 or negative
 * errno with a sentence from kernif_reason().
 */

#include <stdbool.h>
#include <stdint.h>

#include "arp_nd.h"
#include "driver.h"
#include "port/port.h"

#define KERNIF_NAME_MAX 16u
#define KERNIF_MTU_MAX 4440u /* of the TAP interface: longer frames do not pass the shared port */

enum kernif_kind {
	KERNIF_BUILTIN,
	KERNIF_TAP,
};

struct kernif_config {
	enum kernif_kind kind;
	char name[KERNIF_NAME_MAX]; /* TAP: of the interface; "" = the kernel chooses */
	/*
	 * TAP: true, the addresses are what the interface has or is given by others; the interface
	 * may exist already (persistent). False: it must not, and gets `addresses`.
	 */
	bool adopt;
	bool link_local; /* GID 0 is fe80::/64; else link-local addresses are like any other */
	uint8_t mac[6];	 /* of the port; the interface gets it */
	uint32_t mtu;	 /* of IP packets */
	const struct arp_nd_address *addresses;
	uint32_t num_addresses;
	const struct arp_nd_hop *gateways; /* built-in only: the kernel has routes */
	uint32_t num_gateways;

	/* TAP: the interface was given another MAC address, was set up or down; or NULL. */
	void (*mac_changed)(void *arg, const uint8_t mac[6]);
	void (*link_changed)(void *arg, bool up);
	void (*log)(void *arg, const char *text); /* things worth a line; or NULL */
	void *arg;
};

#define KERNIF_STATS(X) \
	X(to_kernel_pkts) \
	X(to_kernel_drops) /* the kernel did not take them */ \
	X(from_kernel_pkts) \
	X(from_kernel_drops) /* no room on the way to the wire */ \
	X(resolved)	     /* next hops asked for and found; so the next */ \
	X(unresolved) \
	X(gids_set) \
	X(gids_cleared) \
	X(gids_failed)	       /* more addresses than the table has entries, or refused */ \
	X(neighbours_moved)    /* destinations in use that follow a new MAC address */ \
	X(neighbours_disputed) /* said to have moved, but RoCE frames came from the old place */ \
	X(resyncs)	       /* the kernel's tables read anew, events having been lost */

struct kernif_stats {
#define X(n) uint64_t n;
	KERNIF_STATS(X)
#undef X
};

struct kernif;

int kernif_create(const struct kernif_config *cfg, struct kernif **out);
/* GIDs are set and frames flow when this has returned 0. */
int kernif_start(struct kernif *k, struct hca_port *divert, struct hca_driver *drv);
/* No thread of it runs any more; who waits for an address gets -ESHUTDOWN. */
void kernif_stop(struct kernif *k);
void kernif_destroy(struct kernif *k);

/* For hca_port_divert_config; arg is the kernif. */
void kernif_kick(void *arg);
/* hca_resolve_fn: waits up to 3.5 s for an answer. */
int kernif_resolve(void *arg, uint32_t sgid_index, const uint8_t dgid[16], uint8_t dmac[6]);

/*
 * The wire's link: becomes the carrier of the interface; up again, the responder announces itself.
 */
void kernif_link(struct kernif *k, bool up);

/* Name of the interface; "" without one. */
const char *kernif_interface(const struct kernif *k);
void kernif_stats(struct kernif *k, struct kernif_stats *out);
/* false: there is no responder. */
bool kernif_arp_nd_stats(struct kernif *k, struct arp_nd_stats *out);

/* Every counter there is by its name: divert_..., kernel_..., responder_...; started before. */
typedef void (*kernif_counter_fn)(void *arg, const char *name, uint64_t value);
void kernif_counters(struct kernif *k, kernif_counter_fn fn, void *arg);

/* Why the last failed call of this thread failed; never NULL. */
const char *kernif_reason(void);

#endif
