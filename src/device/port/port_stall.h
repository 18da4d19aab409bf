/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_STALL_H
#define PORT_PORT_STALL_H

/*
 * A port in front of another port that does not accept all frames: it takes 0..k frames per burst
 * at random, takes none in given windows of time, or has no link. Received frames pass unchanged.
 * Time is the `now` of the engine, real or simulated. Each queue of the inner port has its own seed
 * (that of queue 0 is the given one); the link, and the first frame that rules count from, are of
 * all queues.
 *
 * Owned by the composition. One thread at a time calls the setters; they take effect at the next
 * burst. hca_port.close() also closes the inner port.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

struct hca_port_stall_config {
	uint64_t seed;
	int socket_id;
	uint32_t *deaf; /* hca_port_inbound_deaf() of the receiving port, or NULL */
};

/* All 0: the port accepts everything. Times in ns. */
struct hca_port_stall_rules {
	uint32_t tx_burst_max; /* accept 0..n frames per burst; 0: no limit */
	uint64_t down_after;   /* the link goes down this long after the first frame */
	uint64_t down_for;     /* time without link; 0: the link does not go down */
	bool at_once;	       /* down_after counts from the setting, not from the first frame */
	bool both_ways;	       /* while the link is down by these rules, cfg.deaf is set */
	uint64_t stall_every;  /* period of stalls */
	/* no frames are accepted for this long at the end of each period; 0: no stalls */
	uint64_t stall_for;
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

/* Create the port; 0 or -ENOMEM. On failure the caller keeps inner. */
int hca_port_stall_open(const struct hca_port_stall_config *cfg, struct hca_port *inner,
			struct hca_port **out);
void hca_port_stall_set(struct hca_port *p, const struct hca_port_stall_rules *rules);

/* Takes the link down or up at once, for simulations. */
void hca_port_stall_link(struct hca_port *p, bool up);
void hca_port_stall_stats(const struct hca_port *p, struct hca_port_stall_stats *out);

#endif
