/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_RIG_H
#define PORT_RIG_H

/*
 * What the tests of ports that stand in front of another share: the inner port, which keeps what it
 * is given and receives what is to arrive; and frames. One of each per program.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <rte_mbuf.h>

#include "engine/pkt.h"
#include "port/port.h"
#include "wire/roce_frame.h"

#define RIG_FRAMES 4096u
#define RIG_MISSED 7u
#define RIG_QPN 0x123u

struct rig_sink {
	struct hca_port port;
	struct rte_mbuf *got[RIG_FRAMES];
	unsigned int n, room, polls; /* takes at most room more */
	bool closed;
};

extern struct rig_sink sink;
extern struct rte_mempool *pool;
extern unsigned int arrived; /* frames of rig_source() that have been fetched */

/* A group's setup: the EAL and the pool. */
int rig_setup(void **state);

/* The inner port, empty. */
struct hca_port *rig_sink(void);
void rig_sink_clear(void);
/* The same, and frames with PSN 0 .. n - 1 are to be received. */
struct hca_port *rig_source(unsigned int n);

/* 64 bytes of that opcode to that QP; without VLAN tag but on request. */
struct rte_mbuf *rig_frame_of(uint8_t opcode, uint32_t psn, uint32_t qpn, uint32_t sqpn, bool vlan);
/* A WRITE ONLY to RIG_QPN. */
struct rte_mbuf *rig_frame(uint32_t psn);
/* PSN of frame i of the sink, or -1 where it does not parse, -2 where the ICRC is wrong. */
int rig_psn_of(unsigned int i);

/* Sends one; the port must take it. */
void rig_send(struct hca_port *p, uint32_t psn, uint64_t now);
/* Receives once, behind what the sink has; the sink owns the frames. */
unsigned int rig_receive(struct hca_port *p, uint16_t n, uint64_t now);
/* Closes the port; nothing may be left. */
void rig_done(struct hca_port *p);

#endif
