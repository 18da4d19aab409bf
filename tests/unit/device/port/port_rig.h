/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_PORT_PORT_RIG_H
#define TESTS_UNIT_DEVICE_PORT_PORT_RIG_H

/*
 * Shared by the tests of ports in front of another port: the inner port, which records sent frames
 * and provides frames to receive; and builders of frames. One of each per program.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <rte_mbuf.h>

#include "engine/pkt.h"
#include "port/port.h"
#include "roce_craft.h"
#include "ub_craft.h"

#define RIG_FRAMES 4096u
#define RIG_MISSED 7u
#define RIG_QPN 0x123u

struct rig_sink {
	struct hca_port port;
	struct rte_mbuf *got[RIG_FRAMES];
	uint16_t queue[RIG_FRAMES];  /* by which got[i] was sent */
	unsigned int n, room, polls; /* accepts at most room more frames */
	bool closed;
};

extern struct rig_sink sink;
extern struct rte_mempool *pool;
extern unsigned int arrived; /* number of frames of rig_source() that were received */

/* Setup of a group: the EAL and the pool. */
int rig_setup(void **state);

/* The inner port, empty, with one queue; and with n queues. */
struct hca_port *rig_sink(void);
struct hca_port *rig_sink_of(uint16_t queues);
void rig_sink_clear(void);
/* The same, with frames with PSN 0 .. n - 1 to receive. */
struct hca_port *rig_source(unsigned int n);
/* The same with several queues: frame i arrives in queue i modulo queues. */
struct hca_port *rig_source_of(unsigned int n, uint16_t queues);

/* A UB packet without payload: TPACK or TAACK, by the opcode of its transport header. */
struct rte_mbuf *rig_ub_frame(uint8_t opcode, uint32_t psn, uint32_t tpn, uint32_t source_tpn);
/* A frame of that opcode for that QP, of 64 bytes if it has any; with a VLAN tag on request. */
struct rte_mbuf *rig_frame_of(uint8_t opcode, uint32_t psn, uint32_t qpn, uint32_t sqpn, bool vlan);
/* A WRITE ONLY to RIG_QPN. */
struct rte_mbuf *rig_frame(uint32_t psn);
/* PSN of frame i of the sink; -1 if it does not parse, -2 if the ICRC is wrong. */
int rig_psn_of(unsigned int i);

/* Send one frame, which the port must accept. */
void rig_send(struct hca_port *p, uint32_t psn, uint64_t now);
void rig_send_by(struct hca_port *p, uint16_t q, uint32_t psn, uint64_t now);
/* Receive once and append the frames to the sink, which owns them. */
unsigned int rig_receive(struct hca_port *p, uint16_t n, uint64_t now);
unsigned int rig_receive_by(struct hca_port *p, uint16_t q, uint16_t n, uint64_t now);
/* Close the port; asserts that no frame is left. */
void rig_done(struct hca_port *p);

#endif
