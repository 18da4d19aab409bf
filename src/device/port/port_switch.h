/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_SWITCH_H
#define PORT_PORT_SWITCH_H

/*
 * A simulated Ethernet switch: each of its ports is the port of one HCA, and stands for the host's
 * link and the switch's end of it.
 *
 * A link has a rate and a delay, the same both ways. Towards the switch it takes frames while it is
 * busy for at most HCA_FABRIC_AHEAD_NS; then the port stalls, as any port does. A frame enters the
 * switch as a whole, after its time at the rate plus the delay. The switch forwards by destination
 * MAC address: learned from source addresses, or given. A frame to an unknown or a group address
 * goes to all other ports; one to the port that it came from is filtered.
 *
 * Each port has an output queue, first in, first out. A frame is dropped if it would make the queue
 * longer than `queue` bytes. If it is ECN-capable it is marked with a probability that depends on
 * the bytes that wait when it enters: 0 below kmin, from there to kmax rising from 0 to pmax, 1
 * from kmax on. It leaves when its turn has come, and arrives after its time at the rate plus the
 * delay. Bytes of a queue are those of the wire, HCA_FABRIC_OVERHEAD more than the frame has; the
 * frame that is leaving does not wait any more. A host that does not take its frames loses those
 * beyond HCA_SWITCH_RX.
 *
 * PFC, of one priority: the switch counts the bytes of each input that wait in any queue. Beyond
 * xoff it pauses the host's link, at xon or below it lets it go on; both take effect after the
 * delay, between two frames. A paused link takes frames as a busy one does, and the port stalls.
 *
 * The only clock is `now`, the same for all ports: simulated time, which must fit in 2^64 ps. The
 * same calls with the same times and seed give the same results.
 *
 * One thread makes all calls of all ports: workers of HCAs on several lcores would see events in an
 * order that does not repeat. The first call of rx, tx or poll decides which one; those of other
 * threads do nothing, and are counted (refused). Owned by the composition: closing all ports frees
 * the switch. Statistics may be read by any thread; settings are changed by the thread of the
 * ports.
 */

#include <stddef.h>
#include <stdint.h>

#include "port/port.h"
#include "port/port_transit.h"

#define HCA_SWITCH_PORTS 64u
#define HCA_SWITCH_MACS 256u /* addresses that are learned or given */
#define HCA_SWITCH_RX 4096u  /* frames that wait for a host */

/* Members of a text, as HCA_FABRIC_TEXT_LIST. */
#define HCA_SWITCH_TEXT_LIST(X) \
	X(rate, rate_mbps, 1000, 0.001, 10000, "Gb/s of a link, 0.001 to 10000") \
	X(delay, delay_ns, 1000, 0, 1000000, "microseconds of a link, 0 to 1000000") \
	X(queue, queue, 1, 1, 4294967295.0, "bytes, 1 to 4294967295") \
	X(kmin, kmin, 1, 1, 4294967295.0, "bytes, 1 to 4294967295") \
	X(kmax, kmax, 1, 1, 4294967295.0, "bytes, 1 to 4294967295") \
	X(pmax, pmax, 1, 0, 1, "0 to 1") \
	X(xoff, xoff, 1, 1, 4294967295.0, "bytes, 1 to 4294967295") \
	X(xon, xon, 1, 0, 4294967295.0, "bytes, 0 to 4294967295")

struct hca_switch {
	uint64_t rate_mbps; /* of each link; not 0 */
	uint64_t delay_ns;
	uint64_t queue; /* bytes, 0: no limit but that of all frames */
	uint64_t kmin, kmax;
	double pmax;
	uint64_t xoff, xon; /* bytes of an input; xoff 0: no PFC */
};

/**
 * Parse "rate=100,delay=1,queue=400000,kmin=100000,kmax=300000,pmax=0.1,xoff=100000,xon=80000".
 * rate must be there; without kmin no frame is marked, without kmax it is kmin, without pmax it
 * is 1. Any thread.
 *
 * @param why
 *   Set to the reason of an error.
 * @param size
 *   Bytes of why.
 * @return
 *   0, or -EINVAL.
 */
int hca_switch_parse(const char *text, struct hca_switch *out, char *why, size_t size);

struct hca_port_switch_config {
	const char *name; /* unique: names the pool */
	struct hca_switch settings;
	uint32_t ports;
	uint64_t seed;
	uint32_t hold;	    /* limit of frames in the switch and on its links, 0: 8192 */
	uint32_t max_frame; /* as of struct hca_port, 0: 4400 */
	/* of each port, 0: one. All are on one lcore; the first that asks gets the frames */
	uint16_t queues;
	int socket_id;
};

/* Of each port. taken + copied = those of all ports that left, were dropped, missed, filtered. */
#define HCA_PORT_SWITCH_STATS(X) \
	X(taken)     /* frames from the host */ \
	X(copied)    /* of these: further copies to other ports */ \
	X(frames)    /* to the host */ \
	X(bytes)     /* of these, without HCA_FABRIC_OVERHEAD */ \
	X(dropped)   /* the port's queue was full */ \
	X(marked)    /* in its queue, with CE */ \
	X(missed)    /* the host did not take them in time */ \
	X(filtered)  /* from the host to itself */ \
	X(pauses)    /* of the host's link */ \
	X(paused_ns) /* time that it was paused */ \
	X(max_queue) /* bytes */ \
	X(stalled)   /* bursts of the host of which a part was refused */ \
	X(no_mbuf)   /* of these because no copy was free; copies that were not made */ \
	X(refused)   /* calls of another thread */

struct hca_port_switch_stats {
#define X(n) uint64_t n;
	HCA_PORT_SWITCH_STATS(X)
#undef X
};

/**
 * Create a switch.
 *
 * @param out
 *   Set to cfg->ports ports.
 * @return
 *   - 0: created.
 *   - -EINVAL: less than 2 or more than HCA_SWITCH_PORTS ports, no rate, kmin above kmax, pmax
 *     outside of 0 .. 1, xon above xoff.
 *   - -ENOMEM: no memory.
 */
int hca_port_switch_open(const struct hca_port_switch_config *cfg, struct hca_port **out);

/**
 * An address is at this port, whatever was learned.
 *
 * @return
 *   0, or -ENOSPC: there are HCA_SWITCH_MACS of them.
 */
int hca_port_switch_give(struct hca_port *p, const uint8_t mac[6]);

/** Change rate and delay of a port's link, from the next frame on; rate_mbps is not 0. */
void hca_port_switch_set_link(struct hca_port *p, uint64_t rate_mbps, uint64_t delay_ns);

/* Any thread. */
void hca_port_switch_stats(const struct hca_port *p, struct hca_port_switch_stats *out);
/* Bytes that wait in the port's queue. */
uint64_t hca_port_switch_queued(const struct hca_port *p);
/* Whether the host's link is paused. */
bool hca_port_switch_paused(const struct hca_port *p);
/* Frames in the switch and on its links, and copies that hosts have not freed. */
uint32_t hca_port_switch_held(const struct hca_port *p);
uint32_t hca_port_switch_mbufs(const struct hca_port *p);

#endif
