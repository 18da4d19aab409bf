/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_FUZZ_PORT_H
#define TESTS_FUZZ_FUZZ_PORT_H

/* A port that delivers the frames of a target, and shows it the frames of the device. */

#include <rte_mbuf.h>

#include "port/port.h"

#define FUZZ_PORT_DEPTH 512u /* frames waiting for the device */

struct fuzz_port {
	struct hca_port port;
	struct rte_mempool *pool;
	struct rte_mbuf *rx[FUZZ_PORT_DEPTH];
	unsigned int head, tail; /* free running */
	unsigned int most;	 /* frames that may wait, at most FUZZ_PORT_DEPTH */
	uint64_t sent;
	void (*judge)(void *arg, const uint8_t *frame, uint32_t len); /* of frames of the device */
	void *arg;
};

/* judge and arg are set already. name: of the device, for the pool of its frames. */
void fuzz_port_open(struct fuzz_port *p, const char *name, unsigned int most);

/* Returns false if the queue is full. A frame has at most 4608 bytes. */
bool fuzz_port_put(struct fuzz_port *p, const uint8_t *frame, uint32_t len);

#endif
