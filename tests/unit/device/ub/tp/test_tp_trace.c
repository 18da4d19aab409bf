/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Losses as in the figures of the source (6.4.2), exactly: the packets of both ends, with times. A
 * sends a packet per us, each an operation of its own; frames take 5 us; the timeout is 40 us. Each
 * trace runs with first PSNs and TPMSNs on both sides of their wrap.
 *
 * A line has the packets of a time, in us: P1 is packet m + 1, "again" when it was sent before,
 * "lost" when it will not arrive; ACK1, NAK1 and SACK1 are answers with PSN m + 1, TPSACK with the
 * first bits of its bitmap, up to MaxRcv.
 */

#include "tp_rig.h"

#include <stdio.h>

#include "ub/tp/tp_core.h"

#define FLIGHT 5u /* us */
#define NS 1000u
#define FRAMES 64u
#define LINES 64u

/* The nth sending of a packet; n counts from 1, so 0 ends a list. */
struct sending {
	uint32_t packet, n;
};

struct trace {
	const char *name;
	enum hca_tp_mode mode;
	enum hca_tp_rule rule;
	uint32_t packets;	/* at 0 us */
	uint32_t more, more_at; /* further packets, at a time in us */
	struct sending lost[4];
	struct sending late;	 /* by 4 us */
	uint32_t lost_answer[4]; /* the nth, from 1 */
	const char *lines[LINES];
};

static const struct trace traces[] = {
#include "tp_traces.h"
};

struct frame {
	uint64_t arrives; /* us; 0: none */
	bool answer;
	struct hca_tp_pkt p;
	struct hca_tp_answer a;
	uint8_t bits[HCA_TP_SACK_BYTES];
};

struct world {
	const struct trace *t;
	struct tp_rig a, b;
	uint32_t m; /* first PSN */
	uint64_t us;
	uint32_t sent[FRAMES]; /* sendings by packet */
	uint32_t answers;
	struct frame frame[FRAMES];
	uint32_t frames;
	uint32_t line;
	uint64_t passed; /* bit per packet */
};

static void
say(struct world *w, const char *text)
{
	char line[120];
	const char *expected = w->t->lines[w->line];

	snprintf(line, sizeof(line), "%u %s", (unsigned int)w->us, text);
	if (getenv("TP_TRACE_PRINT") != NULL)
		print_message("\"%s\",\n", line);
	else if (expected == NULL || strcmp(expected, line) != 0)
		fail_msg("%s, m %x, line %u: \"%s\", expected \"%s\"", w->t->name, w->m, w->line,
			 line, expected == NULL ? "nothing" : expected);
	w->line++;
}

static struct frame *
launch(struct world *w, bool answer, bool lost, uint32_t late)
{
	struct frame *f = &w->frame[w->frames++ % FRAMES];

	*f = (struct frame){.answer = answer, .arrives = lost ? 0 : w->us + FLIGHT + late};
	return f;
}

/* ---- A ---- */

static bool
is_lost(const struct trace *t, uint32_t packet, uint32_t n)
{
	for (uint32_t i = 0; i < RTE_DIM(t->lost) && t->lost[i].n != 0; i++) {
		if (t->lost[i].packet == packet && t->lost[i].n == n)
			return true;
	}
	return false;
}

static void
send_one(struct world *w)
{
	struct hca_tp_txd d;
	uint32_t packet, n;
	struct frame *f;
	char text[100];
	bool lost;

	if (!hca_tp_pick(&w->a.tp, &w->a.pools, w->us * NS, &d))
		return;
	w->a.tp.encap.done_seq = d.seq;
	packet = hca_tp_past(d.psn, w->m);
	assert_true(packet < FRAMES);
	n = ++w->sent[packet];
	lost = is_lost(w->t, packet, n);
	f = launch(w, false, lost, w->t->late.n == n && w->t->late.packet == packet ? 4 : 0);
	f->p = (struct hca_tp_pkt){.psn = d.psn,
				   .tpmsn = hca_ta_op_at(&w->a.pools, d.op)->tps.tpmsn,
				   .last = d.flags & HCA_TP_TXD_LAST,
				   .ask = d.flags & HCA_TP_TXD_ASK};
	assert_int_equal(!!(d.flags & HCA_TP_TXD_AGAIN), n > 1);
	snprintf(text, sizeof(text), "P%u%s%s", packet, n > 1 ? " again" : "", lost ? " lost" : "");
	say(w, text);
}

/* ---- B ---- */

static bool
answer_is_lost(const struct trace *t, uint32_t n)
{
	for (uint32_t i = 0; i < RTE_DIM(t->lost_answer); i++) {
		if (t->lost_answer[i] == n)
			return true;
	}
	return false;
}

static void
say_answer(struct world *w, const struct hca_tp_answer *a, bool lost)
{
	static const char *const name[] = {"ACK", "NAK", "SACK"};
	char text[100];
	int n = snprintf(text, sizeof(text), "%s%u", name[a->kind], hca_tp_past(a->psn, w->m));

	if (a->kind == HCA_TP_TPSACK) {
		assert_int_equal(a->sack_code, 0);
		text[n++] = ' ';
		for (uint32_t k = 0; k <= hca_tp_past(a->max_rcv, a->psn); k++)
			text[n++] = a->bits[k >> 3] >> (k & 7) & 1 ? '1' : '0';
	}
	snprintf(text + n, sizeof(text) - (size_t)n, "%s", lost ? " lost" : "");
	say(w, text);
}

static void
take(struct world *w, const struct hca_tp_pkt *p)
{
	uint64_t bit = UINT64_C(1) << hca_tp_past(p->psn, w->m);
	uint8_t bits[HCA_TP_SACK_BYTES] = {0};
	struct hca_tp_answer a;
	struct frame *f;
	bool lost;

	if (hca_tp_accept(&w->b.tp, p) == HCA_TP_PASS) {
		assert_false(w->passed & bit);
		w->passed |= bit;
	}
	if (!hca_tp_make_answer(&w->b.tp, &a, bits))
		return;
	lost = answer_is_lost(w->t, ++w->answers);
	f = launch(w, true, lost, 0);
	f->a = a;
	memcpy(f->bits, bits, sizeof(bits));
	f->a.bits = f->bits;
	say_answer(w, &a, lost);
}

/* ---- */

static void
deliver(struct world *w, bool answer)
{
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct frame *f = &w->frame[(w->frames + i) % FRAMES];

		if (f->arrives != w->us || f->answer != answer || w->us == 0)
			continue;
		if (answer)
			assert_int_equal(hca_tp_ack(&w->a.tp, &w->a.pools, &f->a, w->us * NS),
					 HCA_TP_HEARD_NEWS);
		else
			take(w, &f->p);
	}
}

static void
step(struct world *w)
{
	deliver(w, false);
	deliver(w, true);
	hca_tp_expire(&w->a.tp, &w->a.pools, w->us * NS);
	if (w->us == w->t->more_at)
		rig_ops(&w->a, HCA_TP_REQUESTS, w->t->more);
	send_one(w);
}

static void
finish(struct world *w)
{
	uint32_t n = w->t->packets + w->t->more;

	assert_true(w->passed == (UINT64_C(1) << n) - 1);
	assert_int_equal(w->a.tp.tx.una, hca_tp_psn(w->m, n));
	assert_int_equal(w->b.tp.rx.epsn, hca_tp_psn(w->m, n));
	assert_int_equal(w->a.tp.tx.tpmsn, hca_tp_psn(w->m, n + 1));
	assert_true(w->a.tp.tx.deadline == HCA_TP_NEVER);
	assert_int_equal(rig_release(&w->a), n);
	if (getenv("TP_TRACE_PRINT") == NULL && w->t->lines[w->line] != NULL)
		fail_msg("%s: \"%s\" is missing", w->t->name, w->t->lines[w->line]);
	rig_close(&w->a);
	rig_close(&w->b);
}

static void
run(const struct trace *t, uint32_t m)
{
	struct world *w = calloc(1, sizeof(*w));
	struct hca_tp_cfg cfg;

	w->t = t;
	w->m = m;
	rig_cfg(&cfg, t->mode, t->rule);
	cfg.rto_base = 40;
	rig_open(&w->a, &cfg, m, 0);
	rig_open(&w->b, &cfg, 0, m);
	w->a.tp.tx.tpmsn = w->b.tp.rx.msn = hca_tp_psn(m, 1);
	rig_ops(&w->a, HCA_TP_REQUESTS, t->packets);
	for (; w->us < 400; w->us++)
		step(w);
	finish(w);
	free(w);
}

static void
test_traces(void **state)
{
	static const uint32_t first[] = {0, 0xfffff0, 0xfffffe, 0xfffffd, 0x7ffffe};

	for (size_t i = 0; i < RTE_DIM(traces); i++) {
		if (getenv("TP_TRACE_PRINT") != NULL) {
			print_message("--- %s\n", traces[i].name);
			run(&traces[i], 0);
			continue;
		}
		for (size_t k = 0; k < RTE_DIM(first); k++)
			run(&traces[i], first[k]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
