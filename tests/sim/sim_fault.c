/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim_fault.h"

#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define DELAY_NS 50000u

const uint32_t sim_fault_ops[] = {
	SOFTHCA_WR_SEND,
	SOFTHCA_WR_SEND_WITH_IMM,
	SOFTHCA_WR_RDMA_WRITE,
	SOFTHCA_WR_RDMA_WRITE_WITH_IMM,
	SOFTHCA_WR_RDMA_READ,
	SOFTHCA_WR_ATOMIC_CMP_AND_SWP,
	SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
	SOFTHCA_WR_ATOMIC_WRITE,
	SOFTHCA_WR_FLUSH,
};
const unsigned int sim_fault_num_ops = COUNT(sim_fault_ops);

uint32_t
sim_fault_packets(uint32_t opcode, uint32_t len, uint32_t *sent)
{
	uint32_t n = opcode >= SOFTHCA_WR_ATOMIC_CMP_AND_SWP
			     ? 1
			     : (len + SIM_FAULT_MTU - 1) / SIM_FAULT_MTU;

	/* a READ request is one packet; the other PSNs belong to its responses */
	*sent = opcode == SOFTHCA_WR_RDMA_READ ? 1 : n;
	return n;
}

struct hca_fault_rule
sim_fault_rule(enum hca_fault fault, uint32_t count)
{
	return (struct hca_fault_rule){
		.opcode = HCA_FAULT_ANY,
		.psn = HCA_FAULT_ANY,
		.nth = 1,
		.count = count,
		.fault = fault,
		.arg = fault == HCA_FAULT_DELAY ? DELAY_NS : 0,
	};
}

void
sim_one_fault(struct sim *s, const struct sim_fault_case *c)
{
	const struct sim_req r[] = {
		{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 10, .flags = S},
		{.opcode = c->opcode, .len = c->len, .nsge = 2, .flags = S},
		{.opcode = SOFTHCA_WR_SEND, .len = 300, .flags = 0},
		{.opcode = SOFTHCA_WR_RDMA_READ, .len = 300, .flags = S},
	};
	struct sim_pair_attr attr = c->attr;
	unsigned int at = c->response ? 1 - c->side : c->side;
	struct hca_fault_rule rule = sim_fault_rule(c->fault, c->count);
	struct sim_pair *p;

	attr.mtu = SOFTHCA_MTU_256;
	attr.region = 32768;
	attr.psn[0] = attr.psn[1] = SIM_FAULT_PSN0;
	attr.sq_depth = attr.rq_depth = 8;
	p = sim_pair_open(s, &attr);
	if (c->by_psn)
		rule.psn = (SIM_FAULT_PSN0 + 1 + c->place) & 0xffffff;
	else
		rule.nth = c->place;
	sim_clear_rules(s);
	sim_rule(s, at, rule);
	sim_check(s, sim_post(p, c->side, r, COUNT(r)) == 0, "post");
	sim_finish(s, 10 * SIM_S);
	sim_check(s, hca_port_impair_hits(s->side[at].impair, 0) != 0 || c->response || !c->by_psn,
		  "op %u len %u fault %u: no packet was hit (psn place %u)", c->opcode, c->len,
		  c->fault, c->place);
	sim_clear_rules(s);
	sim_pair_close(p);
}
