/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_KERNIF_H
#define KERNIF_KERNIF_H

/*
 * The destination of a port's traffic that is not RoCE, and the source of the HCA's addresses:
 *
 *  KERNIF_BUILTIN  a small responder (arp_nd.h), addresses and gateways as configured;
 *  KERNIF_TAP      a TAP interface of the kernel: ping, ssh and TCP use the same address on the
 *                  same port. The kernel's tables are authoritative and followed while they
 *                  change: addresses of the interface and its VLANs become GIDs, routes and
 *                  neighbours determine next hops.
 *
 * GID 0 is the link-local address, made of the MAC address until the kernel has one. Other
 * addresses take the lowest free index when they appear and keep it until they are removed.
 *
 * Order of creation: kernif_create(), the shared port (port/port_divert.h, kick = kernif_kick), the
 * HCA, the driver (resolve = kernif_resolve, source = kernif_source), kernif_start(). Then
 * kernif_stop(), driver, HCA, port, kernif_destroy(). One thread makes the calls create, start,
 * stop and destroy; any thread the others. Errors are 0 or a negative errno; kernif_reason()
 * explains them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "arp_nd.h"
#include "driver.h"
#include "port/port.h"

#define KERNIF_NAME_MAX 16u
#define KERNIF_MTU_MAX 4440u /* of the TAP interface: the shared port carries no longer frames */

enum kernif_kind {
	KERNIF_BUILTIN,
	KERNIF_TAP,
};

struct kernif_config {
	enum kernif_kind kind;
	char name[KERNIF_NAME_MAX]; /* TAP: name of the interface; "" = chosen by the kernel */
	/*
	 * TAP: true: addresses are set by others, and a persistent interface of that name may
	 * exist. False: it must not exist, and gets `addresses`.
	 */
	bool adopt;
	bool link_local; /* GID 0 is the fe80::/64 address; false: it is added like any other */
	uint8_t mac[6];	 /* of the port; the interface gets the same */
	uint32_t mtu;	 /* bytes of an IP packet */
	const struct arp_nd_address *addresses;
	uint32_t num_addresses;
	/* built-in only; with TAP the kernel's routes are used */
	const struct arp_nd_hop *gateways;
	uint32_t num_gateways;
	uint32_t ifindex;    /* built-in only: the kernel interface behind the port; 0: none */
	uint32_t timeout_ms; /* kernif_resolve() waits so long for an answer; 0: 3500 */

	/*
	 * TAP: the interface got another MAC address, or was set up or down; may be NULL. Called
	 * from a thread of the kernel interface with its lock held.
	 */
	void (*mac_changed)(void *arg, const uint8_t mac[6]);
	void (*link_changed)(void *arg, bool up);
	void (*log)(void *arg, const char *text); /* messages for the log; may be NULL */
	void *arg;
};

#define KERNIF_STATS(X) \
	X(to_kernel_pkts) \
	X(to_kernel_drops) /* not accepted by the kernel */ \
	X(from_kernel_pkts) \
	X(from_kernel_drops) /* the ring to the wire was full */ \
	X(resolved)	     /* next hops, successfully or not */ \
	X(unresolved) \
	X(gids_set) \
	X(gids_cleared) \
	X(gids_failed)	       /* the table was full, or the driver refused */ \
	X(neighbours_moved)    /* destinations that got a new MAC address */ \
	X(neighbours_disputed) /* claims of a move refuted by RoCE frames from the old place */ \
	X(groups_joined)       /* multicast groups announced */ \
	X(groups_left) \
	X(groups_failed) /* that could not be announced */ \
	X(resyncs)	 /* of the kernel's tables, after lost events */

struct kernif_stats {
#define X(n) uint64_t n;
	KERNIF_STATS(X)
#undef X
};

struct kernif;

/*
 * Create a kernel interface; for TAP, open the interface. The configuration is copied, without the
 * target of arg.
 */
int kernif_create(const struct kernif_config *cfg, struct kernif **out);
/* Start the threads. When it has returned 0 the GIDs are set and frames flow. */
int kernif_start(struct kernif *k, struct hca_port *divert, struct hca_driver *drv);
/*
 * Calls that wait in kernif_resolve() return -ESHUTDOWN, later ones do not wait: before an owner
 * that ends waits for those that may ask. Any thread.
 */
void kernif_hurry(struct kernif *k);
/* Stop all threads; calls that wait in kernif_resolve() return -ESHUTDOWN. */
void kernif_stop(struct kernif *k);
/* Free a stopped kernel interface; k may be NULL. */
void kernif_destroy(struct kernif *k);

/*
 * Wake the thread that takes frames from the port: hca_port_divert_config.kick, arg is the kernif.
 */
void kernif_kick(void *arg);
/*
 * Resolve a destination for the driver (hca_resolve_fn); waits up to kernif_config.timeout_ms,
 * not counting the time in which this process does not run. Returns 0, -ENETUNREACH (no route),
 * -EHOSTUNREACH (no answer), -ESHUTDOWN or another negative errno.
 */
int kernif_resolve(void *arg, uint32_t sgid_index, const uint8_t dgid[16], uint8_t dmac[6]);

/*
 * Choose the GID entry for packets to dgid (hca_source_fn): by the kernel's routes and their
 * preferred source, or by the built-in responder's prefixes and gateways. -ENETUNREACH,
 * -EADDRNOTAVAIL, -ESHUTDOWN or another negative errno.
 */
int kernif_source(void *arg, const uint8_t dgid[16], uint32_t scope, uint32_t *sgid_index);

/*
 * Join or leave a group (in GID form) on the link of a GID entry: switches and routers are told by
 * IGMP or MLD, by the kernel or by the built-in responder. Each join is undone by one leave with
 * the same arguments; the link follows when the entry changes. Never blocks, and takes no lock but
 * one of its own: any thread, with any locks held.
 *
 * @return 0; -EINVAL: no such index, or not a multicast address; -ENOSPC: too many groups; -ENOENT:
 *   not joined; -ENOMEM
 */
#define KERNIF_GROUPS 4096u
int kernif_group(struct kernif *k, uint32_t gid_index, const uint8_t mgid[16], bool joined);

/*
 * Tell the state of the port's link: it becomes the carrier of the TAP interface; when it comes up,
 * the responder announces its addresses.
 */
void kernif_link(struct kernif *k, bool up);

/* Name of the TAP interface; "" without one. */
const char *kernif_interface(const struct kernif *k);
/* Copy the counters. */
void kernif_stats(struct kernif *k, struct kernif_stats *out);
/* Copy the responder's counters; false: there is no responder. */
bool kernif_arp_nd_stats(struct kernif *k, struct arp_nd_stats *out);

/* Call fn with every counter: divert_..., kernel_..., responder_... Only after kernif_start(). */
typedef void (*kernif_counter_fn)(void *arg, const char *name, uint64_t value);
void kernif_counters(struct kernif *k, kernif_counter_fn fn, void *arg);

/* Why the last failed call of this thread failed; never NULL. */
const char *kernif_reason(void);

#endif
