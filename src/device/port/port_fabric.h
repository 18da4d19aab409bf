/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_FABRIC_H
#define PORT_PORT_FABRIC_H

/*
 * A port in front of another one that is a network in the direction of transmission: a host's link,
 * then one of several paths to the other end. A pair of them is a network for both directions.
 *
 * The host's link has the rate of all paths together. It takes frames while it is busy for at most
 * HCA_FABRIC_AHEAD_NS; then the port stalls, as any port does. The path of a frame is a hash of its
 * IP addresses plus its UDP source port: `paths` successive ports select each path once. Frames
 * without IP take path 0. At its path a frame is dropped if `queue` bytes wait already, is marked
 * if `ecn` bytes wait and it is ECN-capable, waits for the frames in front of it, takes its time at
 * the path's rate, may be lost, and arrives `delay_ns` later, plus the path's share of `skew_ns`:
 * path i of k has i / (k - 1) of it. A frame costs HCA_FABRIC_OVERHEAD bytes more than its length.
 *
 * The only clock is `now`, which must be simulated time or fit in 2^64 ps; the port has its own
 * random generator. Frames in the network are copies from a pool of this port, at most `hold`. At
 * that limit the port stalls; while the inner port takes no more, frames arrive later.
 *
 * Queues of the inner port share the link and the paths; each has its part of `hold`, and delivers
 * its frames.
 *
 * Owned by the composition. tx and poll run on encap's lcore; settings do not change. Statistics
 * may be read by any thread. hca_port.close() also closes the inner port.
 */

#include <stddef.h>
#include <stdint.h>

#include "port/port.h"
#include "port/port_transit.h"

#define HCA_FABRIC_PATHS 64u

/*
 * Members of a text, X(key, member, scale, min, max, text of an error): member is the value times
 * scale. loss0 is the loss of path 0, if given.
 */
#define HCA_FABRIC_TEXT_LIST(X) \
	X(rate, rate_mbps, 1000, 0.001, 10000, "Gb/s of a path, 0.001 to 10000") \
	X(delay, delay_ns, 1000, 0, 1000000, "microseconds, 0 to 1000000") \
	X(paths, paths, 1, 1, 64, "1 to 64") \
	X(skew, skew_ns, 1000, 0, 1000000, "microseconds, 0 to 1000000") \
	X(loss, loss, 1, 0, 1, "0 to 1") \
	X(loss0, loss0, 1, 0, 1, "0 to 1") \
	X(queue, queue, 1, 1, 4294967295.0, "bytes, 1 to 4294967295") \
	X(ecn, ecn, 1, 1, 4294967295.0, "bytes, 1 to 4294967295")

struct hca_fabric {
	uint64_t rate_mbps; /* rate of each path; 0: no fabric */
	uint64_t delay_ns, skew_ns;
	uint32_t paths; /* 0: 1 */
	double loss;	/* per frame */
	double loss0;	/* of path 0; negative: loss */
	uint64_t queue; /* bytes that may wait at a path, 0: as many as the port holds */
	uint64_t ecn;	/* bytes that wait when frames are marked, 0: never */
};

/*
 * "rate=100,delay=50,paths=8,skew=20,loss=1e-3,loss0=0.1,queue=200000,ecn=50000"; rate must be
 * there. 0, or -EINVAL with the expected and the found words in why. Any thread.
 */
int hca_fabric_parse(const char *text, struct hca_fabric *out, char *why, size_t size);

struct hca_port_fabric_config {
	const char *name; /* unique: names the pool */
	struct hca_fabric fabric;
	uint64_t seed;
	uint32_t hold; /* limit of frames in the network, 0: 4096 */
	int socket_id;
};

#define HCA_PORT_FABRIC_STATS(X) \
	X(frames)    /* taken from the sender */ \
	X(arrived)   /* passed to the inner port */ \
	X(lost)	     /* at random */ \
	X(lost_data) /* of these requests and responses: no acknowledgements */ \
	X(overflown) /* dropped by a full queue */ \
	X(marked)    /* with CE */ \
	X(stalled)   /* bursts of which a part was refused */ \
	X(no_mbuf)   /* of these because no copy was free */

struct hca_port_fabric_stats {
#define X(n) uint64_t n;
	HCA_PORT_FABRIC_STATS(X)
#undef X
};

/*
 * Create the port; 0, -EINVAL (no rate, more than HCA_FABRIC_PATHS paths) or -ENOMEM: the caller
 * keeps inner.
 */
int hca_port_fabric_open(const struct hca_port_fabric_config *cfg, struct hca_port *inner,
			 struct hca_port **out);

void hca_port_fabric_stats(const struct hca_port *p, struct hca_port_fabric_stats *out);
/* Frames that path i has carried, including lost ones; 0 beyond the last path. */
uint64_t hca_port_fabric_carried(const struct hca_port *p, unsigned int path);
/* Path of a frame of len bytes. */
unsigned int hca_port_fabric_path(const struct hca_port *p, const uint8_t *frame, uint32_t len);
/* Frames in the network, and copies that their receivers have not freed. */
uint32_t hca_port_fabric_held(const struct hca_port *p);
uint32_t hca_port_fabric_mbufs(const struct hca_port *p);

#endif
