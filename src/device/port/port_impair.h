/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_IMPAIR_H
#define PORT_PORT_IMPAIR_H

/*
 * A port that impairs transmission: it is in front of another port and drops, duplicates, reorders,
 * delays, corrupts, truncates or marks frames, at random or by rules that select packets. Works
 * with real and simulated time: its only clock is the engine's `now`.
 *
 * The fate of the nth frame since odds were set depends on the seed, n and the number of settings
 * before, not on time or on the fate of other frames. The byte that a corruption changes also
 * depends on the frame.
 *
 * A frame that is duplicated or held back is a copy from a pool of this port (the sender gets its
 * mbuf back at once); at most `hold` frames are held. At that limit a delay makes the port stall,
 * and with other faults the frame passes. A damaged frame is held while the inner port has no room;
 * the sender gets it back damaged only at the limit. A refused frame keeps its fate: rules count it
 * once, and when the sender offers the same mbuf again the rest of its fate is applied.
 *
 * Each queue of the inner port has its own seed (that of queue 0 is the given one), held frames,
 * counts of rules and number n; a flow leaves by one queue. Settings apply to all queues, and
 * statistics are sums.
 *
 * Owned by the composition. One thread at a time may change settings; changes take effect at the
 * next burst. After rules were cleared, add a new one only when no worker can still be in that
 * burst (hca_wait_workers). hca_port.close() also closes the inner port.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port/impair_text.h"
#include "port/port.h"
#include "port/port_fired.h"

#define HCA_FAULT_RULES 32u

#define HCA_PORT_IMPAIR_STATS(X) \
	X(frames) \
	X(dropped) \
	X(duplicated) \
	X(reordered) \
	X(delayed) \
	X(corrupted) \
	X(truncated) \
	X(ecn_marked) \
	X(hold_full) \
	X(no_mbuf) \
	X(stalled)

struct hca_port_impair_stats {
#define X(n) uint64_t n;
	HCA_PORT_IMPAIR_STATS(X)
#undef X
};

struct hca_port_impair_config {
	const char *name; /* unique: names the pool */
	uint64_t seed;
	uint32_t hold; /* limit of held frames, of several queues together at least; 0: 1024 */
	int socket_id;
};

/* Create the port; 0 or -ENOMEM. On failure the caller keeps inner. */
int hca_port_impair_open(const struct hca_port_impair_config *cfg, struct hca_port *inner,
			 struct hca_port **out);

/* Set random faults and delays; NULL: none. */
void hca_port_impair_set(struct hca_port *p, const struct hca_impair *impair);

/* Add a rule; 0 or -ENOSPC. Its nth and count apply to the frames of each queue separately. */
int hca_port_impair_rule(struct hca_port *p, const struct hca_fault_rule *rule);
void hca_port_impair_clear_rules(struct hca_port *p);
unsigned int hca_port_impair_rules(const struct hca_port *p);

/* Number of frames that the i-th rule has changed; and that it has matched, changed or not. */
uint64_t hca_port_impair_hits(const struct hca_port *p, unsigned int rule);
uint64_t hca_port_impair_seen(const struct hca_port *p, unsigned int rule);

/* Copies the last faults of all queues, oldest first; returns their number. Any thread. */
unsigned int hca_port_impair_fired(struct hca_port *p, struct hca_fired out[HCA_FIRED_MAX]);

/*
 * Call fn for each frame that gets a fault, before the fault is applied, on the transmitting lcore;
 * NULL: no calls. Before the port is used.
 */
typedef void (*hca_port_impair_watch_fn)(void *arg, const struct rte_mbuf *m,
					 const struct hca_fired *d);
void hca_port_impair_watch(struct hca_port *p, hca_port_impair_watch_fn fn, void *arg);

/*
 * For a port that impairs received frames (port_inbound.c), on the lcore of the queue: whether
 * frames may bypass it, because there are no odds, rules or held frames; and count frames that did.
 */
bool hca_port_impair_clean(struct hca_port *p, uint16_t q);
void hca_port_impair_count(struct hca_port *p, uint16_t q, uint16_t n);
/*
 * On the lcore of the queue: frees held frames; returns their number. A refused frame is not
 * offered again.
 */
uint32_t hca_port_impair_forget(struct hca_port *p, uint16_t q);

void hca_port_impair_stats(const struct hca_port *p, struct hca_port_impair_stats *out);
uint32_t hca_port_impair_held(const struct hca_port *p);
/* Number of copies that their receivers have not freed. */
uint32_t hca_port_impair_mbufs(const struct hca_port *p);

#endif
