/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Congestion control of UB's transport: TPS asks a made-up algorithm before anything leaves, obeys
 * it, and tells it of what was sent, acknowledged, timed and lost, as the requester does for RoCE.
 */

#include "sim_link.h"
#include "sim_told.h"
#include "ub_pair.h"

#include "wire/ub_frame.h"

#define PROGRAM "sim-ub-congestion"
#define WRITES 8u
#define BYTES (4 * TOLD_MTU)
#define PACKETS (WRITES * BYTES / TOLD_MTU)

static struct ub_pair pair;

static struct ub_pair *
open_pair(const struct sim_config *cfg, const struct hca_cc_ops *ops)
{
	struct ub_pair_config c = {.sim = *cfg, .small_mtu = true, .rto_base = 2000};

	c.sim.congestion = ops;
	sim_told_clock(NULL);
	ub_pair_open(&pair, &c);
	sim_told_clock(pair.s);
	return &pair;
}

/* Of TP 1 of a side */
static const struct sim_told *
told_tp(const struct ub_pair *p, unsigned int side)
{
	const struct hca_pipe *h = &p->side[side].h->pipe[0];

	return hca_cc_state(h, h->object[HCA_OBJECT_TP].first + 1);
}

static void
write_all(struct ub_pair *p)
{
	for (uint64_t id = 1; id <= WRITES; id++)
		ub_pair_rw(p, 0, URMA_OPC_WRITE, UB_PAIR_FROM, UB_PAIR_TO, BYTES, id);
	for (uint64_t id = 1; id <= WRITES; id++)
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	ub_pair_same(p, 1, UB_PAIR_TO, UB_PAIR_FROM, BYTES);
}

/* Everything that left was told, and no more than one packet was unanswered at a time. */
static void
window_of_one_in(const struct sim_config *cfg)
{
	struct ub_pair *p = open_pair(cfg, &sim_told_window);
	const struct sim_told *t = told_tp(p, 0);

	write_all(p);
	ub_pair_nothing(p, UB_PAIR_MS);
	UB_PAIR_EQ(p, t->begun, 1);
	UB_PAIR_EQ(p, t->most, 1);
	UB_PAIR_EQ(p, t->not_frames, 0);
	UB_PAIR_EQ(p, t->frames, PACKETS);
	UB_PAIR_EQ(p, t->bytes, (uint64_t)PACKETS * TOLD_FRAME);
	UB_PAIR_EQ(p, t->acked, PACKETS);
	sim_check(p->s, t->timed != 0, "nothing is timed");
	UB_PAIR_EQ(p, ub_pair_again(p), 0);
	UB_PAIR_EQ(p, t->lost[HCA_CC_TIMEOUT] + t->lost[HCA_CC_GAP], 0);
	/* answers of the transaction layer are packets of the other end */
	UB_PAIR_EQ(p, told_tp(p, 1)->acked, told_tp(p, 1)->frames);
	ub_pair_close(p);
}
SIM_TEST(window_of_one)

/* Reads and Sends of all sizes; responses are subject to it as requests are. */
static void
all_operations_in(const struct sim_config *cfg)
{
	static const struct hca_cc_ops *const ops[] = {&sim_told_window, &sim_told_hesitant,
						       &sim_told_rate, &sim_told_open};

	for (unsigned int k = 0; k < RTE_DIM(ops); k++) {
		struct ub_pair *p = open_pair(cfg, ops[k]);

		ub_pair_rw(p, 0, URMA_OPC_READ, UB_PAIR_READ, UB_PAIR_FROM, 3 * BYTES, 1);
		ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
		ub_pair_same(p, 0, UB_PAIR_READ, UB_PAIR_FROM, 3 * BYTES);
		ub_pair_recv(p, 1, false, UB_PAIR_RECV, BYTES, 7);
		ub_pair_send(p, 0, p->side[0].to_jetty, UB_PAIR_FROM, BYTES, 2);
		ub_pair_done(p, 0, 2, URMA_CR_SUCCESS);
		ub_pair_received(p, 1, 7, BYTES);
		ub_pair_nothing(p, UB_PAIR_MS);
		for (unsigned int side = 0; side < 2; side++) {
			const struct sim_told *t = told_tp(p, side);

			sim_check(p->s, t->asked != 0 && t->frames != 0, "side %u: not asked",
				  side);
			UB_PAIR_EQ(p, t->frames,
				   ub_pair_counter(p, side, HCA_CTR_ub_packets) +
					   ub_pair_tp(p, side, 1)->tx.resent[HCA_TP_AGAIN_TIMEOUT]);
			UB_PAIR_EQ(p, t->acked, t->frames);
		}
		ub_pair_close(p);
	}
}
SIM_TEST(all_operations)

/* The due time of one TP wakes it, and not before. */
static void
paced_in(const struct sim_config *cfg)
{
	struct ub_pair *p = open_pair(cfg, &sim_told_rate);
	const struct sim_told *t = told_tp(p, 0);
	uint64_t start = p->s->now;

	write_all(p);
	sim_check(p->s, t->refused != 0, "never refused");
	UB_PAIR_EQ(p, t->frames, PACKETS);
	for (unsigned int i = 1; i < t->turns; i++)
		sim_check(p->s, t->sent_at[i] - t->sent_at[i - 1] >= TOLD_GAP_NS,
			  "turn %u: %llu ns", i,
			  (unsigned long long)(t->sent_at[i] - t->sent_at[i - 1]));
	sim_check(p->s, p->s->now - start >= (PACKETS - 1) * (uint64_t)TOLD_GAP_NS, "too fast");
	/* a TP that waits is closed */
	ub_pair_rw(p, 0, URMA_OPC_WRITE, UB_PAIR_FROM, UB_PAIR_TO, BYTES, 100);
	ub_pair_done(p, 0, 100, URMA_CR_SUCCESS);
	ub_pair_close(p);
}
SIM_TEST(paced)

/* A TP that waits for a late time goes on when an answer comes. */
static void
answer_ends_wait_in(const struct sim_config *cfg)
{
	struct ub_pair *p = open_pair(cfg, &sim_told_hesitant);
	uint64_t start = p->s->now;

	write_all(p);
	UB_PAIR_EQ(p, told_tp(p, 0)->most, 1);
	sim_check(p->s, p->s->now - start < TOLD_FOREVER_NS / 10, "took %llu ns",
		  (unsigned long long)(p->s->now - start));
	ub_pair_close(p);
}
SIM_TEST(answer_ends_wait)

/* One frame of side 0 is lost. */
static void
lose_one(const struct sim_config *cfg, const struct hca_cc_ops *ops, enum hca_cc_loss why)
{
	struct ub_pair *p = open_pair(cfg, ops);
	const struct sim_told *t = told_tp(p, 0);
	uint64_t start = p->s->now;

	sim_rule(p->s, 0,
		 (struct hca_fault_rule){.opcode = HCA_FAULT_ANY,
					 .psn = HCA_FAULT_ANY,
					 .nth = 2,
					 .count = 1,
					 .fault = HCA_FAULT_DROP});
	write_all(p);
	ub_pair_nothing(p, UB_PAIR_MS);
	sim_check(p->s, t->lost[why] != 0, "loss %d is not told", (int)why);
	UB_PAIR_EQ(p, t->acked, PACKETS);
	UB_PAIR_EQ(p, t->frames, PACKETS + ub_pair_again(p));
	sim_check(p->s, p->s->now - start < TOLD_FOREVER_NS / 10, "took %llu ns",
		  (unsigned long long)(p->s->now - start));
	ub_pair_close(p);
}

static void
losses_in(const struct sim_config *cfg)
{
	lose_one(cfg, &sim_told_window, HCA_CC_TIMEOUT);
	lose_one(cfg, &sim_told_hesitant, HCA_CC_TIMEOUT);
	lose_one(cfg, &sim_told_open, HCA_CC_GAP);
}
SIM_TEST(losses)

struct marks {
	unsigned int frames, ect;
};

static bool
count_marks(void *arg, uint8_t *frame, uint32_t len)
{
	const uint8_t *ip = frame + HCA_ETH_LEN;
	struct marks *m = arg;

	(void)len;
	m->frames++;
	m->ect += (ip[1] & 3) == HCA_ECN_ECT0;
	return false;
}

/* Packets of TPs over IPv4 are ECT(0) where an algorithm asks for marks. */
static void
marks_in(const struct sim_config *cfg)
{
	for (unsigned int k = 0; k < 2; k++) {
		struct ub_pair *p = open_pair(cfg, k == 0 ? &sim_told_open : &sim_told_window);
		struct marks m = {0};

		sim_link_lose(p->s->side[0].wire, count_marks, &m);
		write_all(p);
		sim_link_lose(p->s->side[0].wire, NULL, NULL);
		sim_check(p->s, m.frames >= PACKETS, "%u frames", m.frames);
		UB_PAIR_EQ(p, m.ect, k == 0 ? m.frames : 0);
		ub_pair_close(p);
	}
}
SIM_TEST(marks)

/* CNPs that a side sends, and the shortest time between two. */
struct cnps {
	struct sim *s;
	unsigned int frames;
	uint64_t at, shortest;
};

static bool
watch_cnps(void *arg, uint8_t *frame, uint32_t len)
{
	struct cnps *c = arg;
	struct hca_wire_view v;
	uint64_t now = c->s->cfg.executor == SIM_STEPPED ? c->s->stepper.now : c->s->now;

	if (hca_wire_parse(frame, len, &v) != 0 || v.opcode != HCA_UB_TP_CNP)
		return false;
	if (c->frames++ != 0)
		c->shortest = RTE_MIN(c->shortest, now - c->at);
	c->at = now;
	return false;
}

/*
 * Marked packets of a TP are answered with CNPs, at most one in 50 us, whatever the algorithm is;
 * one that there is takes them.
 */
static void
cnps_in(const struct sim_config *cfg)
{
	const struct hca_impair marked = {.ecn = 0.5, .delay_ns = 5000};

	for (unsigned int k = 0; k < 2; k++) {
		struct ub_pair *p = open_pair(cfg, k == 0 ? NULL : &sim_told_open);
		struct cnps c[2] = {{.s = p->s, .shortest = UINT64_MAX},
				    {.s = p->s, .shortest = UINT64_MAX}};

		for (unsigned int side = 0; side < 2; side++) {
			sim_impair(p->s, side, &marked);
			sim_link_lose(p->s->side[side].wire, watch_cnps, &c[side]);
		}
		for (unsigned int i = 0; i < 20; i++)
			write_all(p);
		ub_pair_nothing(p, UB_PAIR_MS);
		for (unsigned int side = 0; side < 2; side++) {
			uint64_t n = c[side].frames;

			sim_link_lose(p->s->side[side].wire, NULL, NULL);
			sim_check(p->s, side == 0 || (n >= 5 && c[side].shortest >= 50000),
				  "%u CNPs, the shortest interval %llu ns", c[side].frames,
				  (unsigned long long)c[side].shortest);
			UB_PAIR_EQ(p, ub_pair_counter(p, side, HCA_CTR_ub_cnp_sent), n);
			UB_PAIR_EQ(p,
				   ub_pair_counter(p, 1 - side,
						   k == 0 ? HCA_CTR_ub_rx_cnp_ignored
							  : HCA_CTR_ub_cnp_handled),
				   n);
			if (k == 1)
				UB_PAIR_EQ(p, told_tp(p, 1 - side)->cnps, n);
		}
		ub_pair_close(p);
	}
}
SIM_TEST(cnps)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_of_one),
		cmocka_unit_test(all_operations),
		cmocka_unit_test(paced),
		cmocka_unit_test(losses),
		cmocka_unit_test(answer_ends_wait),
		cmocka_unit_test(marks),
		cmocka_unit_test(cnps),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
