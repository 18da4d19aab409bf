/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Counters compared with each other and with the link: core/counters.h defines the sums that must
 * hold.
 */

#include <inttypes.h>

#include "core/counters.h"
#include "sim.h"
#include "sim_link.h"
#include "ub_sums.h"

static uint64_t
value(const struct sim *s, unsigned int side, enum hca_counter c)
{
	return hca_counter_value(s->side[side].hca, c);
}

static uint64_t
sum(const struct sim *s, unsigned int side, const uint16_t *c, size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += value(s, side, c[i]);
	return total;
}

#define X(n) HCA_CTR_##n,
static const uint16_t rx_drops[] = {HCA_RX_DROP_LIST(X)};
static const uint16_t tx_drops[] = {HCA_TX_DROP_LIST(X)};
static const uint16_t request_drops[] = {HCA_REQUEST_DROP_LIST(X)};
static const uint16_t response_drops[] = {HCA_RESPONSE_DROP_LIST(X)};
static const uint16_t descriptor_drops[] = {HCA_DESCRIPTOR_DROP_LIST(X)};
static const uint16_t doorbell_drops[] = {HCA_DOORBELL_DROP_LIST(X)};
static const uint16_t again[] = {HCA_AGAIN_LIST(X)};
static const uint16_t ub_again[] = {HCA_UB_AGAIN_LIST(X)};
#undef X

#define COUNTER(name) value(s, side, HCA_CTR_##name)
#define SUM(list) sum(s, side, list, sizeof(list) / sizeof((list)[0]))

static void
same(struct sim *s, unsigned int side, const char *what, uint64_t left, uint64_t right)
{
	sim_check(s, left == right, "side %u: %s: %" PRIu64 " and %" PRIu64, side, what, left,
		  right);
}

#define SAME(left, right) same(s, side, #left " == " #right, left, right)

uint64_t
sim_packets_dropped(const struct sim *s, unsigned int side)
{
	return SUM(rx_drops);
}

uint64_t
sim_requests_executed(const struct sim *s, unsigned int side)
{
	return COUNTER(rcvd_requests) - SUM(request_drops);
}

uint64_t
sim_responses_used(const struct sim *s, unsigned int side)
{
	return COUNTER(rcvd_responses) - SUM(response_drops);
}

uint64_t
sim_chains_begun(const struct sim *s, unsigned int side)
{
	return COUNTER(doorbells) + COUNTER(db_read_on) - COUNTER(db_kicks) - SUM(doorbell_drops);
}

static void
check_requester(struct sim *s, unsigned int side)
{
	SAME(COUNTER(sq_wqes), COUNTER(req_completions) + COUNTER(req_cqe_error) +
				       COUNTER(req_cqe_flush_error) + COUNTER(sq_purged));
	SAME(COUNTER(retransmissions), SUM(again));
	sim_check(s, COUNTER(req_packets) >= COUNTER(retransmissions), "more again than at all");
	sim_check(s,
		  SUM(doorbell_drops) + COUNTER(db_kicks) <=
			  COUNTER(doorbells) + COUNTER(db_read_on),
		  "side %u: more doorbells dropped than rung", side);
}

/* Frames that the port below the device sent and received. */
static void
check_frames(struct sim *s, unsigned int side)
{
	struct hca_port_impair_stats out, in;

	hca_port_impair_stats(s->side[side].impair, &out);
	hca_port_impair_stats(s->side[1 - side].impair, &in);
	SAME(COUNTER(req_packets) + COUNTER(resp_packets) + COUNTER(acks_sent) +
		     COUNTER(naks_sent) + COUNTER(np_cnp_sent) + COUNTER(ub_packets) +
		     SUM(ub_again) + COUNTER(ub_utp_packets) + COUNTER(ub_answers) +
		     COUNTER(ub_cnp_sent),
	     COUNTER(sent_pkts) + SUM(descriptor_drops));
	SAME(COUNTER(sent_pkts) + COUNTER(loopback_copies),
	     COUNTER(loopback_pkts) + COUNTER(loopback_drops) + SUM(tx_drops) + out.frames);
	SAME(COUNTER(rcvd_pkts), COUNTER(loopback_pkts) + in.frames - in.dropped + in.duplicated +
					 sim_link_injected(s->side[side].wire) -
					 sim_link_lost(s->side[1 - side].wire));
	SAME(COUNTER(rcvd_pkts) - COUNTER(rx_mcast_pkts) + COUNTER(rx_mcast_members),
	     SUM(rx_drops) + COUNTER(rcvd_requests) + COUNTER(rcvd_responses) +
		     COUNTER(ub_rx_tp_packets) + COUNTER(ub_rx_acks) + COUNTER(ub_rx_utp));
	sim_check(s, SUM(request_drops) <= COUNTER(rcvd_requests), "side %u: requests", side);
	sim_check(s, SUM(response_drops) <= COUNTER(rcvd_responses), "side %u: responses", side);
}

static void
check_marks(struct sim *s, unsigned int side)
{
	SAME(COUNTER(np_ecn_marked_roce_packets),
	     COUNTER(np_cnp_sent) + COUNTER(np_cnp_suppressed) + COUNTER(np_ecn_marked_unanswered));
}

static void
check_ub(struct sim *s, unsigned int side)
{
	struct ub_sum broken = ub_sums_broken(s->side[side].hca);

	if (broken.what != NULL)
		same(s, side, broken.what, broken.left, broken.right);
}

static void
check_events(struct sim *s, unsigned int side)
{
	SAME(COUNTER(events_raised), COUNTER(comp_events) + COUNTER(async_events) +
					     COUNTER(events_coalesced) + COUNTER(events_unmapped) +
					     COUNTER(events_dead));
}

void
sim_check_conservation(struct sim *s)
{
	for (unsigned int side = 0; side < 2; side++) {
		check_requester(s, side);
		check_marks(s, side);
		check_frames(s, side);
		check_ub(s, side);
		check_events(s, side);
	}
}
