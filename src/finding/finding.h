/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FINDING_FINDING_H
#define FINDING_FINDING_H

/*
 * Faults between an HCA and its peers, in words, from counters. The daemon judges their growth
 * since a trouble began, other programs since their HCA exists or in a run. docs/network.md has a
 * section for each finding, by its name. Any thread; nothing is kept.
 */

#include <stdint.h>

/*
 * Counters that count trouble; their growth begins an episode and keeps it going. Packets sent
 * again because a receiver was not ready, or memory of this host came late, are none.
 */
#define FINDING_TROUBLES(X) \
	X(tx_discard_stalled) \
	X(tx_discard_link_down) \
	X(loopback_drops) \
	X(rx_icrc_encapsulated) \
	X(rx_bad_length) \
	X(port_rcv_missed) \
	X(rx_missing) \
	X(rx_doubled) \
	X(answers_doubled) \
	X(packet_seq_err) \
	X(local_ack_timeout_err) \
	X(again_timeout) \
	X(again_seq_nak) \
	X(again_implied_nak) \
	X(ub_resent_nak) \
	X(ub_resent_high) \
	X(ub_resent_mark) \
	X(ub_resent_time) \
	X(ub_resent_timeout)

/* Those that say more about them. */
#define FINDING_CONTEXT(X) \
	X(rx_late) \
	X(rx_late_depth) \
	X(req_packets) \
	X(retransmissions) \
	X(req_gather_late) \
	X(rcvd_requests) \
	X(rcvd_responses) \
	X(duplicate_request) \
	X(out_of_seq_request) \
	X(req_out_of_order) \
	X(req_duplicate_ack) \
	X(req_stale_response) \
	X(full_frames_passed) \
	X(small_frames_passed) \
	X(full_frames_timeouts) \
	X(ub_packets)

enum finding_counter {
#define X(n) FINDING_##n,
	FINDING_TROUBLES(X) FINDING_TROUBLE_COUNTERS,
	FINDING_LAST_TROUBLE = FINDING_TROUBLE_COUNTERS - 1,
	FINDING_CONTEXT(X)
#undef X
	FINDING_COUNTERS
};

extern const char *const finding_counter_names[FINDING_COUNTERS];

#define FINDINGS_MAX 16u
#define FINDING_TEXT 128u

struct finding {
	const char *name;
	char text[FINDING_TEXT]; /* without the name of the HCA */
};

/*
 * Judge the growth of the counters, in the order of enum finding_counter.
 *
 * @return number of findings, the worst first: losses of this host come before faults of the
 *   network, and these before their consequences
 */
unsigned int finding_judge(const uint64_t grown[FINDING_COUNTERS],
			   struct finding out[FINDINGS_MAX]);

#endif
