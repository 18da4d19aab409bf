/* SPDX-License-Identifier: BSD-3-Clause */

/* Time of RTC per packet and of RRC per message: bursts of 32 small WRITEs, one ACK per burst. */

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
	uint64_t rtc = 0, rrc = 0, t;
	double ns;

	rig_setup(&state);
	r = state;
	ns = 1e9 / (double)rte_get_tsc_hz() / ROUNDS / HCA_BURST;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		round_of_writes(r);
		t = rte_rdtsc();
		hca_rtc_poll(r->h, r->now, HCA_BURST);
		rtc += rte_rdtsc() - t;
		rig_send(r, 0);
		t = rte_rdtsc();
		rig_ack(r, (r->qp->rtc.max_psn - 1) & HCA_PSN_MASK, HCA_AETH_ACK);
		rrc += rte_rdtsc() - t;
		r->h->cq[RIG_CQ].consumer = rig_cqes(r);
		hca_rrc_poll(r->h, r->now, HCA_BURST);
		fx_take_msgs(r->fx, HCA_STAGE_RTC, HCA_STAGE_PARSER, RIG_QPI);
		t = rte_rdtsc();
		hca_rtc_poll(r->h, r->now, HCA_BURST); /* frees the records */
		rtc += rte_rdtsc() - t;
	}
	printf("RTC %.1f ns per packet, RRC %.1f ns per message\n", (double)rtc * ns,
	       (double)rrc * ns);
	return 0;
}
