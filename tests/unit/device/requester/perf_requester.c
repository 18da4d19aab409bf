/* SPDX-License-Identifier: BSD-3-Clause */

/* Time of req_tx per packet, of req_rx per message: bursts of 32 WRITEs, one ACK each. */

#include "req_rig.h"

#include <stdio.h>

#include <rte_cycles.h>

#define ROUNDS 20000u

static void
round_of_writes(struct rig *r)
{
	for (unsigned int i = 0; i < HCA_BURST; i++)
		rig_post(r, HCA_OP_RDMA_WRITE, 64, HCA_REC_SIGNALED);
}

int
main(void)
{
	struct rig *r;
	void *state;
	uint64_t req_tx = 0, req_rx = 0, t;
	double ns;

	rig_setup(&state);
	r = state;
	ns = 1e9 / (double)rte_get_tsc_hz() / ROUNDS / HCA_BURST;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		round_of_writes(r);
		t = rte_rdtsc();
		hca_req_tx_poll(r->h, r->now, HCA_BURST);
		req_tx += rte_rdtsc() - t;
		rig_send(r, 0);
		t = rte_rdtsc();
		rig_ack(r, (r->qp->req_tx.max_psn - 1) & HCA_PSN_MASK, HCA_AETH_ACK);
		req_rx += rte_rdtsc() - t;
		r->h->cq[RIG_CQ].consumer = rig_cqes(r);
		hca_req_rx_poll(r->h, r->now, HCA_BURST);
		fx_take_msgs(r->fx, HCA_STAGE_REQ_TX, HCA_STAGE_PARSER, RIG_QPI);
		t = rte_rdtsc();
		hca_req_tx_poll(r->h, r->now, HCA_BURST); /* frees the records */
		req_tx += rte_rdtsc() - t;
	}
	printf("req_tx %.1f ns per packet, req_rx %.1f ns per message\n", (double)req_tx * ns,
	       (double)req_rx * ns);
	return 0;
}
