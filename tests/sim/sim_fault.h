/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_FAULT_H
#define TESTS_SIM_SIM_FAULT_H

/*
 * One fault, applied to one packet, which is selected by its PSN or its position in its direction.
 */

#include "sim_model.h"

#define SIM_FAULT_PSN0 0xfffffdu /* PSNs wrap around within the first message */
#define SIM_FAULT_MTU 256u

struct sim_fault_case {
	struct sim_pair_attr attr; /* MTU, region, PSNs and depths are set here */
	unsigned int side;	   /* the requester */
	uint32_t opcode, len;
	enum hca_fault fault;
	uint32_t count; /* number of repetitions of the packet that are also hit */
	bool response;	/* the packet is one of the responder */
	bool by_psn;	/* place: offset to the first PSN of the operation; else the nth packet */
	uint32_t place;
};

extern const uint32_t sim_fault_ops[];
extern const unsigned int sim_fault_num_ops;

/* Number of packets of a message; *sent: those that the requester sends. */
uint32_t sim_fault_packets(uint32_t opcode, uint32_t len, uint32_t *sent);

struct hca_fault_rule sim_fault_rule(enum hca_fault fault, uint32_t count);

/* Run a WRITE, the operation, a SEND and a READ in one chain. */
void sim_one_fault(struct sim *s, const struct sim_fault_case *c);

#endif
