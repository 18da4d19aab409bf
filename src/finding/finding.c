/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "finding.h"

/* A share of packets that came twice below which it may be an accident of the judgement */
#define DOUBLED_MIN 3u
#define DOUBLED_SHARE 2000u
#define LOST_SHARE 50u /* fewer timeouts per sequence NAK: may be delay */
#define MTU_MIN 3u     /* timeouts of full frames that may have another reason */

const char *const finding_counter_names[FINDING_COUNTERS] = {
#define X(n) [FINDING_##n] = #n,
	FINDING_TROUBLES(X) FINDING_CONTEXT(X)
#undef X
};

struct finding_list {
	const uint64_t *v;
	struct finding *out;
	unsigned int n;
};

static void add(struct finding_list *l, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void
add(struct finding_list *l, const char *name, const char *format, ...)
{
	struct finding *f = &l->out[l->n++];
	va_list ap;

	f->name = name;
	va_start(ap, format);
	vsnprintf(f->text, sizeof(f->text), format, ap);
	va_end(ap);
}

/* "1.0 %", "0.004 %" */
static const char *
percent(uint64_t part, uint64_t whole, char text[16])
{
	double p = whole != 0 ? (double)part * 100 / (double)whole : 100;

	snprintf(text, 16, p >= 0.095 ? "%.1f %%" : "%.1g %%", p);
	return text;
}

static uint64_t
less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Packets that came in order */
static uint64_t
came(const uint64_t *v)
{
	return less(v[FINDING_rcvd_requests] + v[FINDING_rcvd_responses],
		    v[FINDING_duplicate_request] + v[FINDING_out_of_seq_request] +
			    v[FINDING_req_out_of_order] + v[FINDING_req_duplicate_ack] +
			    v[FINDING_req_stale_response]);
}

/* ---- this host ---- */

static void
judge_port(struct finding_list *l)
{
	static const struct {
		enum finding_counter counter;
		const char *name, *what;
	} rows[] = {
		{FINDING_tx_discard_stalled, "stalled",
		 "frames discarded: the other end of the link took none"},
		{FINDING_tx_discard_link_down, "link-down", "frames discarded: the link was down"},
		{FINDING_loopback_drops, "own-frames",
		 "frames to an address of this HCA lost: no room"},
		{FINDING_rx_icrc_encapsulated, "damaged", "frames received were damaged (ICRC)"},
		{FINDING_rx_bad_length, "cut", "frames received were cut short, or padded"},
		{FINDING_port_rcv_missed, "missed",
		 "frames lost in this host's receive queue: it is not read in time"},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (l->v[rows[i].counter] != 0)
			add(l, rows[i].name, "%" PRIu64 " %s", l->v[rows[i].counter], rows[i].what);
}

/* ---- received frames ---- */

/* Missing frames that did not arrive late; frames lost by the host's own port are known. */
static void
judge_lost(struct finding_list *l)
{
	uint64_t late = l->v[FINDING_rx_late], lost = less(l->v[FINDING_rx_missing], late);
	char share[16];

	if (lost <= late || l->v[FINDING_port_rcv_missed] + l->v[FINDING_rx_icrc_encapsulated] +
					    l->v[FINDING_rx_bad_length] >=
				    lost)
		return;
	add(l, "lost",
	    "the network loses %s of the frames to this host (%" PRIu64 " of %" PRIu64 ")",
	    percent(lost, lost + came(l->v), share), lost, lost + came(l->v));
}

static void
judge_late(struct finding_list *l)
{
	uint64_t late = l->v[FINDING_rx_late];
	char share[16];

	if (late == 0 || late * 4 < l->v[FINDING_rx_missing])
		return;
	add(l, "reordered",
	    "the network reorders %s of the frames to this host: %" PRIu64
	    " overtaken, by %.1f on average",
	    percent(late, late + came(l->v), share), late,
	    (double)l->v[FINDING_rx_late_depth] / (double)late);
}

static void
judge_doubled(struct finding_list *l)
{
	uint64_t n = l->v[FINDING_rx_doubled], answers = l->v[FINDING_answers_doubled];
	char share[16];

	if (n >= DOUBLED_MIN && n * DOUBLED_SHARE >= came(l->v) && n > l->v[FINDING_rx_late] / 4)
		add(l, "doubled",
		    "the network doubles %s of the frames to this host (%" PRIu64
		    ", not repeated by peers)",
		    percent(n, came(l->v), share), n);
	else if (answers >= DOUBLED_MIN && answers * DOUBLED_SHARE >= came(l->v))
		add(l, "doubled-answers",
		    "%" PRIu64 " answers came twice, nothing was sent twice: the network doubles "
		    "frames, to or from peers",
		    answers);
}

/* ---- sent frames ---- */

/*
 * Small frames pass and full ones never do. Only QPs count of which none ever passed; nothing was
 * acknowledged if the peer is gone.
 */
static bool
judge_mtu(struct finding_list *l)
{
	uint64_t timeouts = l->v[FINDING_full_frames_timeouts];

	if (timeouts < MTU_MIN || timeouts * 2 < l->v[FINDING_local_ack_timeout_err] ||
	    l->v[FINDING_full_frames_passed] != 0 || l->v[FINDING_small_frames_passed] == 0)
		return false;
	add(l, "path-mtu",
	    "path MTU: small frames pass (%" PRIu64 "), full ones never (%" PRIu64
	    " timeouts): the network carries less than the MTU of QPs",
	    l->v[FINDING_small_frames_passed], timeouts);
	return true;
}

/* Frames to peers that this host has not sent: peers report gaps, or do not answer. */
static uint64_t
unsent(const uint64_t *v)
{
	return v[FINDING_tx_discard_stalled] + v[FINDING_tx_discard_link_down] +
	       v[FINDING_req_gather_late];
}

/*
 * Repeated packets without a cause on this host. A peer acknowledges again a repeated packet that
 * it already had.
 */
static void
judge_naks(struct finding_list *l)
{
	uint64_t naks = less(l->v[FINDING_packet_seq_err], unsent(l->v)),
		 timeouts = l->v[FINDING_local_ack_timeout_err];
	uint64_t sent = less(l->v[FINDING_req_packets], l->v[FINDING_retransmissions]);
	char share[16];

	if (naks == 0)
		return;
	percent(naks, naks + sent, share);
	if (l->v[FINDING_req_duplicate_ack] * 20 >= naks)
		add(l, "overtaken-out",
		    "%s of the frames to peers are overtaken or lost (%" PRIu64
		    " sequence NAKs): see the doctor there",
		    share, naks);
	else if (timeouts * LOST_SHARE >= naks)
		add(l, "lost-out",
		    "the network loses %s of the frames to peers (%" PRIu64
		    " sequence NAKs, %" PRIu64 " ack timeouts)",
		    share, naks, timeouts);
	else
		add(l, "missing-out",
		    "%s of the frames to peers are lost or overtaken (%" PRIu64
		    " sequence NAKs): see the doctor there",
		    share, naks);
}

static void
judge_timeouts(struct finding_list *l)
{
	uint64_t timeouts = less(l->v[FINDING_local_ack_timeout_err], unsent(l->v));
	uint64_t again = l->v[FINDING_again_timeout] + l->v[FINDING_again_seq_nak] +
			 l->v[FINDING_again_implied_nak];

	if (timeouts != 0 && l->v[FINDING_packet_seq_err] == 0)
		add(l, "timeouts",
		    "%" PRIu64
		    " ack timeouts, no sequence NAK: peers are slow, stopped or gone, or "
		    "answers are lost",
		    timeouts);
	else if (again != 0 && l->n == 0)
		add(l, "repeated", "%" PRIu64 " packets sent again", again);
}

/* A TP sees better which packets are missing, but not the cause. */
static void
judge_ub(struct finding_list *l)
{
	uint64_t timeouts = l->v[FINDING_ub_resent_timeout];
	uint64_t again = l->v[FINDING_ub_resent_nak] + l->v[FINDING_ub_resent_high] +
			 l->v[FINDING_ub_resent_mark] + l->v[FINDING_ub_resent_time] + timeouts;
	char share[16];

	if (again != 0)
		add(l, "ub-repeated",
		    "UB: %s of the packets to peers were sent again (%" PRIu64 ", %" PRIu64
		    " after a timeout): lost or late",
		    percent(again, again + l->v[FINDING_ub_packets], share), again, timeouts);
}

unsigned int
finding_judge(const uint64_t grown[FINDING_COUNTERS], struct finding out[FINDINGS_MAX])
{
	struct finding_list l = {.v = grown, .out = out};

	judge_port(&l);
	judge_lost(&l);
	judge_late(&l);
	judge_doubled(&l);
	if (!judge_mtu(&l)) {
		judge_naks(&l);
		judge_timeouts(&l);
	}
	judge_ub(&l);
	return l.n;
}
