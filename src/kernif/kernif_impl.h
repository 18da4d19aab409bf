/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_IMPL_H
#define KERNIF_IMPL_H

/* Shared by the files of the kernel interface. */

#include <pthread.h>

#include "dest_table.h"
#include "gid_table.h"
#include "kernel_tables.h"
#include "kernif.h"
#include "move_guard.h"
#include "netlink.h"
#include "tap.h"

#define KERNIF_BURST 32u
#define KERNIF_TIMEOUT_MS 3500u

/*
 * A group that a client of the HCA is in on the link of a GID entry. kernif_group() changes `refs`
 * only; the thread that follows the tables applies it.
 */
struct kernif_member {
	uint8_t group[16];
	uint32_t gid_index;
	uint32_t refs; /* 0: to be left */
	bool applied;  /* the rest is valid: where it is joined */
	bool failed;   /* logged */
	uint16_t vlan_id;
	uint32_t ifindex; /* TAP */
	uint32_t socket;  /* TAP: index of its socket */
};

/* The kernel lets a socket be in a few groups only (net.ipv4.igmp_max_memberships). */
struct kernif_socket {
	int fd;
	uint32_t members;
};

struct kernif_groups {
	pthread_mutex_t lock; /* of member[].refs, num and dirty; no other is taken under it */
	struct kernif_member *member;
	uint32_t num, room;
	bool dirty; /* there is something to apply */
	/* used by the thread that applies it */
	struct kernif_socket *socket;
	uint32_t num_sockets;
};

/*
 * `lock` protects the tables, the responder and the frames that it sends. It is held during calls
 * of the driver, which never calls back while it holds a lock of its own.
 */
struct kernif {
	struct kernif_config cfg;
	struct arp_nd_address address[ARP_ND_ADDRESSES];
	struct arp_nd_hop gateway[ARP_ND_ADDRESSES];
	struct hca_port *divert;
	struct hca_driver *drv;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a neighbour's state, or `stop` */
	struct gid_table gids;
	struct dest_table dests;
	struct move_guard guard; /* filters the moves that reach dests */
	struct kernif_groups groups;
	struct kernif_stats stats; /* pump counters: written by the pump; others under the lock */
	bool started;
	bool stop;	      /* [pub] */
	bool hurry;	      /* [pub] questions for next hops do not wait */
	unsigned int waiting; /* threads inside kernif_resolve() */
	int kick_fd;	      /* eventfd: wakes the pump */
	pthread_t pump;
	bool pump_runs;

	struct arp_nd *responder; /* built-in only */

	struct tap tap;
	struct nl events; /* monitor: subscription */
	struct nl ask;	  /* monitor: requests; used by the starting thread before it runs */
	struct kernel_tables tables;
	pthread_t monitor;
	bool monitor_runs;
	bool link_up; /* as last passed to cfg.link_changed */
	int end_fd;   /* eventfd: wakes the monitor when it is to end */
	int group_fd; /* eventfd: wakes the monitor because of groups */
};

/* Record the reason for kernif_reason(); returns err. */
int kernif_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
void kernif_log(const struct kernif *k, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Write to an eventfd. */
void kernif_ring(int fd);
uint64_t kernif_now(void);
bool kernif_stopping(const struct kernif *k);
/*
 * Wait until a neighbour changes, at most 100 ms; the lock is held and released meanwhile. Returns
 * the ns waited, also at most 100 ms: a process that is stopped or starved meanwhile was not
 * waiting for an answer.
 */
uint64_t kernif_wait(struct kernif *k);
/*
 * Judge a question that has waited some ns for an answer: 0: it goes on; -EHOSTUNREACH: it has
 * waited for kernif_config.timeout_ms; -ESHUTDOWN.
 */
int kernif_waited(const struct kernif *k, uint64_t waited);
/*
 * The pump waits for a kick, at most ms milliseconds, and also until fd (if not negative) is
 * readable. Returns whether it waited until the time was up.
 */
bool kernif_rest(struct kernif *k, int fd, int ms);
static inline void
kernif_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/*
 * kernif_guard.c, lock held. kernif_claim(): ARP, ND or the kernel says that the hop is at mac
 * (NULL: unreachable).
 */
void kernif_guard_init(struct kernif *k);
void kernif_claim(struct kernif *k, const struct arp_nd_hop *hop, const uint8_t *mac);

/* kernif_builtin.c; kernif_builtin_resolve() with the lock held. */
int kernif_builtin_create(struct kernif *k);
int kernif_builtin_start(struct kernif *k);
void *kernif_builtin_pump(void *arg);
int kernif_builtin_resolve(struct kernif *k, uint32_t sgid_index, const uint8_t dgid[16],
			   uint8_t mac[6]);

/* kernif_kernel.c: the interface, its pump and its monitor. */
int kernif_kernel_create(struct kernif *k);
int kernif_kernel_start(struct kernif *k);
void *kernif_kernel_pump(void *arg);
void kernif_kernel_destroy(struct kernif *k);

/* kernif_route.c; kernif_kernel_resolve() with the lock held. */
int kernif_kernel_resolve(struct kernif *k, uint32_t sgid_index, const uint8_t dgid[16],
			  uint8_t mac[6]);
/* kernif_source() by the kernel's routes; lock held. */
int kernif_kernel_source(struct kernif *k, const uint8_t dgid[16], uint32_t scope,
			 uint32_t *sgid_index);
/*
 * kernif_group.c. Apply joins and leaves, lock held; kernif_groups_changed(): entries of the GID
 * table have changed.
 */
void kernif_groups_init(struct kernif *k);
void kernif_groups_apply(struct kernif *k);
void kernif_groups_changed(struct kernif *k);
void kernif_groups_destroy(struct kernif *k);

/* Make the kernel verify a neighbour's address; 0 or negative errno. */
int kernif_probe(struct nl *s, uint32_t ifindex, const uint8_t gid[16]);

#endif
