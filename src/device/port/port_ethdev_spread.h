/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_ETHDEV_SPREAD_H
#define PORT_PORT_ETHDEV_SPREAD_H

/*
 * How a device with several receive queues distributes frames to them. A frame is for the pipeline
 * of its destination QPN, which has the queue QPN modulo queues: rules that match the BTH put it
 * there. Without them the hash of addresses and UDP ports keeps each flow in one queue, and
 * pipelines hand frames over.
 *
 * Called by the thread that opens and closes the port.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_flow.h>

#define ETHDEV_SPREAD_QUEUES 16u

enum ethdev_spread_by {
	ETHDEV_SPREAD_DRIVER, /* neither rules nor RSS: as the driver does it */
	ETHDEV_SPREAD_RSS,
	ETHDEV_SPREAD_QPN,
};

struct ethdev_spread {
	uint16_t id;
	enum ethdev_spread_by by;
	unsigned int n; /* rules */
	struct rte_flow *flow[2 + 2 * ETHDEV_SPREAD_QUEUES];
};

/* Number of queues each way that the device offers, at most `wanted`; at least 1. */
uint16_t ethdev_spread_queues(const struct rte_eth_dev_info *info, uint16_t wanted);
/* Asks for RSS if there are several queues and the device offers it; returns whether it does. */
bool ethdev_spread_hash(const struct rte_eth_dev_info *info, uint16_t queues,
			struct rte_eth_conf *conf);
/*
 * Create rules for frames of RoCE on a started device; queues: a power of two, at most
 * ETHDEV_SPREAD_QUEUES. On success s->by is ETHDEV_SPREAD_QPN. A negative errno: the driver takes
 * none of them or not all, and s has none.
 */
int ethdev_spread_rules(struct ethdev_spread *s, uint16_t id, uint16_t queues);
/* Destroys the rules. */
void ethdev_spread_end(struct ethdev_spread *s);
/* "by destination QPN (rules of the device)" */
const char *ethdev_spread_text(const struct ethdev_spread *s);

#endif
