/* SPDX-License-Identifier: BSD-3-Clause */

/* Growth of counters, as each kind of network makes it, and the findings. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "finding.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct growth {
	enum finding_counter counter;
	uint64_t by;
};

#define G(name, n) \
	{ \
		FINDING_##name, n \
	}

struct network {
	const char *what;
	struct growth grown[10]; /* after the last one: no growth of the first counter */
	const char *said[3];
};

static const struct network networks[] = {
	{"nothing", {G(rcvd_requests, 9900), G(req_packets, 9900)}, {NULL}},
	{"receiver of 1 % lost",
	 {G(rx_missing, 100), G(rcvd_requests, 13000), G(out_of_seq_request, 3100)},
	 {"lost: the network loses 1.0 % of the frames to this host (100 of 10000)"}},
	{"sender of 1 % lost",
	 {G(packet_seq_err, 100), G(req_packets, 13000), G(retransmissions, 3100),
	  G(local_ack_timeout_err, 2)},
	 {"lost-out: the network loses 1.0 % of the frames to peers (100 sequence NAKs, 2 ack "
	  "timeouts)"}},
	{"sender, one timeout of a frame that was delayed",
	 {G(packet_seq_err, 90), G(req_packets, 13000), G(retransmissions, 3100),
	  G(local_ack_timeout_err, 1)},
	 {"missing-out: 0.9 % of the frames to peers are lost or overtaken (90 sequence NAKs): "
	  "see the doctor there"}},
	{"sender, which cannot tell",
	 {G(packet_seq_err, 100), G(req_packets, 13000), G(retransmissions, 3100)},
	 {"missing-out: 1.0 % of the frames to peers are lost or overtaken (100 sequence NAKs): "
	  "see the doctor there"}},
	{"sender of reordered frames, on a busy machine",
	 {G(packet_seq_err, 100), G(req_packets, 13000), G(retransmissions, 3100),
	  G(req_duplicate_ack, 20), G(local_ack_timeout_err, 1)},
	 {"overtaken-out: 1.0 % of the frames to peers are overtaken or lost (100 sequence NAKs): "
	  "see the doctor there"}},
	{"receiver of reordered ones",
	 {G(rx_missing, 500), G(rx_late, 500), G(rx_late_depth, 750), G(rcvd_requests, 9500)},
	 {"reordered: the network reorders 5.0 % of the frames to this host: 500 overtaken, by 1.5 "
	  "on average"}},
	{"some of which look lost",
	 {G(rx_missing, 500), G(rx_late, 300), G(rx_late_depth, 300), G(rcvd_requests, 9700)},
	 {"reordered: the network reorders 3.0 % of the frames to this host: 300 overtaken, by 1.0 "
	  "on average"}},
	{"doubled",
	 {G(rx_doubled, 500), G(rcvd_requests, 10500), G(duplicate_request, 500)},
	 {"doubled: the network doubles 5.0 % of the frames to this host (500, not repeated by "
	  "peers)"}},
	{"too few to say so", {G(rx_doubled, 2), G(rcvd_requests, 100)}, {NULL}},
	{"answers doubled",
	 {G(answers_doubled, 50), G(rcvd_responses, 500), G(req_duplicate_ack, 50)},
	 {"doubled-answers: 50 answers came twice, nothing was sent twice: the network doubles "
	  "frames, to or from peers"}},
	{"a host too slow",
	 {G(port_rcv_missed, 2560), G(rx_missing, 90), G(rcvd_requests, 135632)},
	 {"missed: 2560 frames lost in this host's receive queue: it is not read in time"}},
	{"damaged",
	 {G(rx_icrc_encapsulated, 90), G(rx_missing, 80), G(rcvd_requests, 5000)},
	 {"damaged: 90 frames received were damaged (ICRC)"}},
	{"a stopped peer",
	 {G(local_ack_timeout_err, 14), G(retransmissions, 14), G(req_packets, 15)},
	 {"timeouts: 14 ack timeouts, no sequence NAK: peers are slow, stopped or gone, or answers "
	  "are lost"}},
	{"an MTU in the middle",
	 {G(local_ack_timeout_err, 8), G(full_frames_timeouts, 8), G(small_frames_passed, 40),
	  G(retransmissions, 24), G(req_packets, 80)},
	 {"path-mtu: path MTU: small frames pass (40), full ones never (8 timeouts): the network "
	  "carries less than the MTU of QPs"}},
	{"a peer that stops for a while",
	 {G(local_ack_timeout_err, 8), G(full_frames_timeouts, 8), G(small_frames_passed, 40),
	  G(full_frames_passed, 1)},
	 {"timeouts: 8 ack timeouts, no sequence NAK: peers are slow, stopped or gone, or answers "
	  "are lost"}},
	{"UB",
	 {G(ub_resent_nak, 15), G(ub_resent_timeout, 5), G(ub_packets, 1980)},
	 {"ub-repeated: UB: 1.0 % of the packets to peers were sent again (20, 5 after a timeout): "
	  "lost or late"}},
	{"receivers not ready, late memory of this host",
	 {G(retransmissions, 9), G(req_packets, 20)},
	 {NULL}},
	{"READs repeated",
	 {G(again_implied_nak, 7), G(retransmissions, 9), G(req_packets, 20)},
	 {"repeated: 7 packets sent again"}},
	{"late memory of this host, and what follows is early at the peer",
	 {G(packet_seq_err, 12), G(req_gather_late, 12), G(retransmissions, 40),
	  G(req_packets, 900)},
	 {NULL}},
	{"frames discarded here, and timeouts at the end",
	 {G(packet_seq_err, 12), G(tx_discard_stalled, 50), G(retransmissions, 40),
	  G(again_seq_nak, 40), G(local_ack_timeout_err, 3), G(req_packets, 900)},
	 {"stalled: 50 frames discarded: the other end of the link took none"}},
	{"a link that was down",
	 {G(local_ack_timeout_err, 14), G(tx_discard_link_down, 14), G(again_timeout, 14)},
	 {"link-down: 14 frames discarded: the link was down"}},
	{"frames discarded here, and others lost",
	 {G(packet_seq_err, 120), G(tx_discard_link_down, 20), G(req_packets, 9900),
	  G(again_seq_nak, 120)},
	 {"link-down: 20 frames discarded: the link was down",
	  "missing-out: 1.0 % of the frames to peers are lost or overtaken (100 sequence NAKs): "
	  "see the doctor there"}},
	{"little of much",
	 {G(rx_missing, 4), G(rcvd_requests, 99996)},
	 {"lost: the network loses 0.004 % of the frames to this host (4 of 100000)"}},
};

static void
check(const struct network *n)
{
	uint64_t grown[FINDING_COUNTERS] = {0};
	struct finding found[FINDINGS_MAX];
	unsigned int count, i;

	for (i = 0; i < COUNT(n->grown); i++)
		grown[n->grown[i].counter] += n->grown[i].by;
	count = finding_judge(grown, found);
	for (i = 0; i < count && i < COUNT(n->said) && n->said[i] != NULL; i++) {
		size_t len = strlen(found[i].name);

		if (strncmp(n->said[i], found[i].name, len) != 0 || n->said[i][len] != ':' ||
		    strcmp(n->said[i] + len + 2, found[i].text) != 0)
			fail_msg("%s: %s: %s", n->what, found[i].name, found[i].text);
	}
	if (i != count || (i < COUNT(n->said) && n->said[i] != NULL))
		fail_msg("%s: %u findings, the last: %s", n->what, count,
			 count != 0 ? found[count - 1].text : "none");
}

static void
words(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(networks); i++)
		check(&networks[i]);
}

/* The largest numbers fit. */
static void
lengths(void **state)
{
	uint64_t grown[FINDING_COUNTERS];
	struct finding found[FINDINGS_MAX];
	unsigned int n;

	(void)state;
	for (unsigned int i = 0; i < FINDING_COUNTERS; i++)
		grown[i] = UINT64_MAX / 4096;
	n = finding_judge(grown, found);
	assert_in_range(n, 6, FINDINGS_MAX);
	for (unsigned int i = 0; i < n; i++)
		assert_in_range(strlen(found[i].text), 10, FINDING_TEXT - 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
