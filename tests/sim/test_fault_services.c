/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The fault matrix of every service except plain RC over IPv4 (test_fault.c): receives from SRQs,
 * XRC, every kind of address, memory windows, UC and UD. The seed selects a part of it; SIM_CASES=n
 * selects more of each test and layout.
 */

#include "mw_rig.h"
#include "sim_fault.h"
#include "sim_tagged.h"

#define PROGRAM "test_fault_services"

static unsigned int
cases(unsigned int otherwise)
{
	return (unsigned int)sim_env("SIM_CASES", otherwise);
}

/* --- reliable services -------------------- */

static void
reliable_in(const struct sim_config *cfg)
{
	static const uint32_t lens[] = {1, 100, SIM_FAULT_MTU, 4 * SIM_FAULT_MTU + 3};
	struct sim *s = sim_open(cfg);
	struct sim_rng r = {cfg->seed * 11 + cfg->layout};

	for (unsigned int n = 0; n < cases(500); n++) {
		unsigned int kind = sim_below(&r, 3);
		struct sim_fault_case c = {
			.attr = {.srq = kind == 1,
				 .xrc = kind == 2,
				 .gid = sim_below(&r, SIM_GIDS)},
			.side = sim_below(&r, 2),
			.opcode = sim_fault_ops[sim_below(&r, sim_fault_num_ops)],
			.len = lens[sim_below(&r, COUNT(lens))],
			.fault = sim_below(&r, HCA_FAULT_KINDS),
			.count = sim_below(&r, 4) ? 1 : 3,
			.response = sim_below(&r, 2),
			.by_psn = sim_below(&r, 2),
		};
		uint32_t sent, packets = sim_fault_packets(c.opcode, c.len, &sent);

		if (c.by_psn)
			c.place = sim_below(&r, c.response ? packets : sent);
		else
			c.place = 1 + sim_below(&r, 8);
		sim_one_fault(s, &c);
	}
	sim_close(s);
}
SIM_TEST(reliable)

/* --- memory windows -------------------- */

/* Side 0 accesses memory through the window; one of its packets or of the responses is hit. */
static void
one_through(struct rig *r, struct softhca_mw *mw, uint32_t op, struct sim_rng *rng)
{
	uint32_t len = 1 + sim_below(rng, 4000), off = 4096 + sim_below(rng, 8192) * 4;
	struct hca_fault_rule rule =
		sim_fault_rule(sim_below(rng, HCA_FAULT_KINDS), 1 + sim_below(rng, 2));
	uint8_t value = (uint8_t)sim_random(rng), other = value ^ 0xff;
	struct softhca_qp_attr a;

	sim_check(r->s, softhca_query_qp(r->p->qp[0], &a, SOFTHCA_QP_SQ_PSN, NULL) == 0, "query");
	rule.psn = (a.sq_psn + sim_below(rng, (len + 1023) / 1024)) & 0xffffff;
	sim_rule(r->s, sim_below(rng, 2), rule);
	if (op == SOFTHCA_WR_RDMA_READ) {
		memset(r->mem + off, value, len);
		memset(r->local, other, BYTES);
		expect(r, rdma(r, op, va_of(r, off), mw->rkey, len), SOFTHCA_WC_SUCCESS, "READ");
		sim_check(r->s, holds(r->local, len, value), "wrong bytes read");
	} else {
		memset(r->mem, other, BYTES);
		expect(r, put(r, va_of(r, off), mw->rkey, len, value), SOFTHCA_WC_SUCCESS, "WRITE");
		sim_check(r->s, holds(r->mem + off, len, value), "wrong bytes written");
		sim_check(r->s, r->mem[off - 1] == other && r->mem[off + len] == other,
			  "bytes beside them");
	}
	sim_clear_rules(r->s);
}

static void
windows_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr attr = {.timeout = 8};
	struct sim_rng rng = {cfg->seed * 13 + cfg->layout};
	struct softhca_mw *mw;
	struct rig r;

	rig_open(&r, cfg, &attr);
	mw = window(&r, SOFTHCA_MW_TYPE_1);
	for (unsigned int n = 0; n < cases(150); n++) {
		/* bound again from time to time, to other bounds */
		if (n % 10 == 0)
			expect(&r, bind1(&r, mw, 4000 - n % 7, 50000, WR | RD), SOFTHCA_WC_SUCCESS,
			       "bind");
		one_through(&r, mw, n & 1 ? SOFTHCA_WR_RDMA_READ : SOFTHCA_WR_RDMA_WRITE, &rng);
	}
	/* refused once, however often the NAK arrives */
	sim_rule(r.s, 1, sim_fault_rule(HCA_FAULT_DUP, 1));
	expect(&r, put(&r, va_of(&r, 3000), mw->rkey, 8, 1), SOFTHCA_WC_REM_ACCESS_ERR, "before");
	sim_clear_rules(r.s);
	reset(&r);
	expect(&r, bind1(&r, mw, 0, 0, 0), SOFTHCA_WC_SUCCESS, "unbind");
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
	rig_close(&r);
}
SIM_TEST(windows)

/* --- unreliable services -------------------- */

/* The number of messages that a fault of one packet may lose. */
static unsigned int
most_lost(enum sim_service service, enum hca_fault fault)
{
	switch (fault) {
	case HCA_FAULT_ECN:
		return 0;
	case HCA_FAULT_DUP:
		/* a duplicate MIDDLE ends its message */
		return service == SIM_UC;
	case HCA_FAULT_REORDER:
	case HCA_FAULT_DELAY:
		/* a late packet is a gap for its own message, and ends the one it arrives in */
		return service == SIM_UD ? 0 : 2;
	default:
		return 1;
	}
}

static bool
surely_lost(enum hca_fault fault)
{
	return fault == HCA_FAULT_DROP || fault == HCA_FAULT_CORRUPT_ICRC ||
	       fault == HCA_FAULT_CORRUPT_PAYLOAD || fault == HCA_FAULT_TRUNCATE;
}

static void
check_rts(struct sim *s, struct softhca_qp *qp)
{
	struct softhca_qp_attr a;

	sim_check(s,
		  softhca_query_qp(qp, &a, SOFTHCA_QP_STATE, NULL) == 0 &&
			  a.qp_state == SOFTHCA_QPS_RTS,
		  "the QP is in %s", softhca_qp_state_str(a.qp_state));
}

#define SENDS 6u

/* Some messages, of which one packet is hit, and some more, which must arrive. */
static void
one_unreliable(struct sim *s, struct sim_rng *r)
{
	struct sim_tagged_attr a = {
		.service = sim_below(r, 2) ? SIM_UC : SIM_UD,
		.gid = sim_below(r, SIM_GIDS),
		.mtu = SOFTHCA_MTU_256,
		.max_len = 1000,
	};
	enum hca_fault fault = sim_below(r, HCA_FAULT_KINDS);
	struct hca_fault_rule rule = sim_fault_rule(fault, 1);
	unsigned int lost, side = sim_below(r, 2);
	struct sim_tagged *t;

	a.srq = a.service == SIM_UD && sim_below(r, 2);
	t = sim_tagged_open(s, &a);
	rule.psn = (0xfffff0 + sim_below(r, SENDS)) & 0xffffff;
	t->duplicates = fault == HCA_FAULT_DUP;
	sim_rule(s, side, rule);
	for (unsigned int i = 0; i < SENDS; i++)
		sim_check(s, sim_tagged_send(t, side, 0), "no room to send");
	sim_tagged_finish(t);
	lost = SENDS > t->dir[0][side].received ? SENDS - t->dir[0][side].received : 0;
	sim_check(s, hca_port_impair_hits(s->side[side].impair, 0) == 1, "no packet was hit");
	sim_check(s, lost <= most_lost(a.service, fault) && lost >= surely_lost(fault),
		  "%s, fault %u at PSN %#x: %u messages lost", sim_service_names[a.service], fault,
		  rule.psn, lost);
	sim_clear_rules(s);
	for (unsigned int i = 0; i < SENDS; i++)
		sim_check(s, sim_tagged_send(t, side, 0), "no room to send");
	sim_tagged_finish(t);
	sim_check(s, t->dir[0][side].received + lost >= 2 * SENDS, "what came after is lost too");
	for (unsigned int i = 0; i < 2; i++)
		check_rts(s, t->end[i].qp[0]);
	sim_tagged_close(t);
}

static void
unreliable_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_rng r = {cfg->seed * 17 + cfg->layout};

	for (unsigned int n = 0; n < cases(150); n++)
		one_unreliable(s, &r);
	for (unsigned int side = 0; side < 2; side++)
		sim_check(s, sim_counter(s, side, "retransmissions") == 0, "retransmissions");
	sim_close(s);
}
SIM_TEST(unreliable)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reliable),
		cmocka_unit_test(windows),
		cmocka_unit_test(unreliable),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
