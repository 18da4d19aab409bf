/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_STALL_H
#define PORT_PORT_STALL_H

/*
 * A port that does not take what it is given: stands in front of another port, takes 0..k frames
 * per burst at random, takes nothing in given windows of time, or has no link. Frames that come in
 * are passed through. Time is the `now` of the engine, real or simulated.
 *
 * Owner: the composition. Setters: from one thread at a time, any; they are seen at the next burst.
 * hca_port.close() of a wrapper closes what it wraps.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

struct hca_port_stall_config {
	uint64_t seed;
	int socket_id;
};

/* All 0: the port takes everything. Times in ns. */
struct hca_port_stall_rules {
	uint32_t tx_burst_max; /* take 0..n frames per burst; 0: no limit */
	uint64_t down_after;   /* link goes down so long after the first frame ... */
	uint64_t down_for;     /* ... for this long; 0: never */
	uint64_t stall_every;  /* in every such period ... */
	uint64_t stall_for;    /* ... nothing is taken for so long at its end; 0: never */
};

#define HCA_PORT_STALL_STATS(X) \
	X(offered) \
	X(taken) \
	X(short_bursts) \
	X(empty_bursts) \
	X(link_downs)

struct hca_port_stall_stats {
#define X(n) uint64_t n;
	HCA_PORT_STALL_STATS(X)
#undef X
};

/* 0, -ENOMEM. On failure inner is left to the caller. */
int hca_port_stall_open(const struct hca_port_stall_config *cfg, struct hca_port *inner,
			struct hca_port **out);
void hca_port_stall_set(struct hca_port *p, const struct hca_port_stall_rules *rules);

/* Pull and plug the cable by hand. */
void hca_port_stall_link(struct hca_port *p, bool up);
void hca_port_stall_stats(const struct hca_port *p, struct hca_port_stall_stats *out);

#endif
