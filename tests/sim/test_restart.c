/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An HCA that is closed, reset or abandoned by its driver while everything is in use: all services,
 * SRQs, XRC, windows. Then a new driver brings it up, and all of that works again with the other
 * HCA, for which it was only silent.
 */

#include "abi_bar.h"
#include "abi_cmd.h"
#include "mw_rig.h"
#include "sim_tagged.h"

#define PROGRAM "test_restart"

enum way_out {
	BY_DRIVER,   /* the client is closed, then CLOSE_HCA */
	BY_COMMAND,  /* CLOSE_HCA without telling the driver */
	BY_REGISTER, /* the reset register of BAR0 */
	WAYS_OUT
};

static const struct sim_tagged_attr kinds[] = {
	{.service = SIM_RC, .flows = 2},
	{.service = SIM_RC, .flows = 2, .srq = true, .gid = SIM_GID_V6},
	{.service = SIM_UC, .flows = 2, .gid = SIM_GID_V4_VLAN},
	{.service = SIM_UD, .flows = 2, .max_len = 1024},
	{.service = SIM_UD, .flows = 2, .max_len = 1024, .srq = true, .gid = SIM_GID_V6_VLAN},
	{.service = SIM_XRC, .flows = 2},
};

struct load {
	struct sim *s;
	struct sim_tagged *t[COUNT(kinds)];
	struct rig w; /* a window on each memory of side 1 */
	struct softhca_mw *mw;
	unsigned int puts;
};

static void
load_open(struct load *l, struct sim *s)
{
	*l = (struct load){.s = s, .w = {.s = s}};
	for (unsigned int i = 0; i < COUNT(kinds); i++) {
		l->t[i] = sim_tagged_open(s, &kinds[i]);
		l->t[i]->lossless = true;
	}
	l->w.p = sim_pair_open(s, NULL);
	l->w.mem = memory(&l->w, BYTES);
	l->w.local = memory(&l->w, BYTES);
	l->w.mr = region(&l->w, 1, l->w.mem, LW | BIND);
	l->w.local_mr = region(&l->w, 0, l->w.local, LW);
	l->mw = window(&l->w, SOFTHCA_MW_TYPE_1);
	expect(&l->w, bind1(&l->w, l->mw, 0, BYTES, WR | RD), SOFTHCA_WC_SUCCESS, "bind");
}

/* Some of everything, without waiting. */
static void
post_all(struct load *l)
{
	struct sim_rng *r = &sim_model(l->s)->rng;
	struct softhca_sge sge = {(uintptr_t)l->w.local, BYTES / 2, l->w.local_mr->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = l->puts & 1 ? SOFTHCA_WR_RDMA_READ
							   : SOFTHCA_WR_RDMA_WRITE,
				     .wr.rdma = {va_of(&l->w, 0), l->mw->rkey}};

	for (unsigned int i = 0; i < COUNT(kinds); i++)
		for (unsigned int k = 0; k < 6; k++)
			sim_tagged_send(l->t[i], sim_below(r, 2), sim_below(r, 2));
	if (l->puts < 8) {
		post_on(&l->w, l->w.p->qp[0], &wr);
		l->puts++;
	}
}

static void
reap_all(struct load *l)
{
	for (unsigned int i = 0; i < COUNT(kinds); i++) {
		sim_tagged_reap(l->t[i]);
		sim_tagged_fill(l->t[i]);
	}
	while (l->puts > 0 && done(l->s, &l->w)) {
		expect(&l->w, l->w.wc.status, SOFTHCA_WC_SUCCESS, "through the window");
		l->puts--;
	}
}

static void
finish_all(struct load *l)
{
	for (unsigned int i = 0; i < COUNT(kinds); i++)
		sim_tagged_finish(l->t[i]);
	while (l->puts > 0) {
		expect(&l->w, wait_for(&l->w, 0), SOFTHCA_WC_SUCCESS, "through the window");
		l->puts--;
	}
}

static void
load_close(struct load *l)
{
	expect(&l->w, bind1(&l->w, l->mw, 0, 0, 0), SOFTHCA_WC_SUCCESS, "unbind");
	sim_check(l->s,
		  softhca_dealloc_mw(l->mw) == 0 && softhca_dereg_mr(l->w.mr) == 0 &&
			  softhca_dereg_mr(l->w.local_mr) == 0,
		  "dereg_mr");
	for (unsigned int i = 0; i < COUNT(kinds); i++)
		sim_tagged_close(l->t[i]);
	sim_pair_close(l->w.p);
	free(l->w.mem);
	free(l->w.local);
}

static void
load_abandon(struct load *l, unsigned int lost)
{
	for (unsigned int i = 0; i < COUNT(kinds); i++)
		sim_tagged_abandon(l->t[i], lost);
	if (lost == 1) {
		sim_check(l->s, softhca_dereg_mr(l->w.local_mr) == 0, "dereg_mr");
		sim_pair_abandon(l->w.p, lost);
	} else {
		/* its QP is in ERR: no bind can unbind */
		sim_pair_abandon(l->w.p, lost);
		sim_check(l->s, softhca_dealloc_mw(l->mw) == 0, "dealloc_mw");
		sim_check(l->s, softhca_dereg_mr(l->w.mr) == 0, "dereg_mr");
	}
	free(l->w.mem);
	free(l->w.local);
}

static void
register_write(struct sim *s, unsigned int side, uint32_t off, uint32_t value)
{
	volatile uint8_t *bar = hca_bar0(s->side[side].hca);

	__atomic_store_n((volatile uint32_t *)(bar + off), hca_cpu_to_le32(value),
			 __ATOMIC_SEQ_CST);
}

static uint32_t
register_read(struct sim *s, unsigned int side, uint32_t off)
{
	volatile uint8_t *bar = hca_bar0(s->side[side].hca);

	return hca_le32_to_cpu(__atomic_load_n((volatile uint32_t *)(bar + off), __ATOMIC_SEQ_CST));
}

static void
kill_hca(struct sim *s, unsigned int side, enum way_out how)
{
	uint32_t off =
		how == BY_REGISTER ? HCA_BAR0_RESET : HCA_BAR0_HCR + offsetof(struct hca_hcr, ctrl);
	uint32_t busy = how == BY_REGISTER ? HCA_RESET_START : HCA_HCR_GO;

	if (how == BY_DRIVER)
		return;
	register_write(s, side, off,
		       how == BY_REGISTER ? HCA_RESET_START
					  : HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_CLOSE_HCA));
	for (unsigned int i = 0; register_read(s, side, off) & busy; i++) {
		sim_check(s, i < 1000000, "the HCA does not come back");
		sim_poll(s);
	}
}

static void
check_empty(struct sim *s, unsigned int side)
{
	struct hca_usage u;

	hca_usage(s->side[side].hca, &u);
	/* after a reset not even the driver's own objects */
	sim_check(s,
		  u.qps <= s->side[side].base.qps && u.cqs <= s->side[side].base.cqs &&
			  u.srqs <= s->side[side].base.srqs && u.mpts <= s->side[side].base.mpts,
		  "%u QPs, %u CQs, %u SRQs, %u keys are left", u.qps, u.cqs, u.srqs, u.mpts);
	sim_check(s, u.records + u.full_records == 0, "%u records are left",
		  u.records + u.full_records);
}

static void
one(struct sim *s, struct sim_rng *r, unsigned int side, enum way_out how)
{
	unsigned int loops = sim_below(r, 400);
	struct load l;

	load_open(&l, s);
	for (unsigned int i = 0; i < loops; i++) {
		if (i % 8 == 0)
			post_all(&l);
		sim_poll(s);
		reap_all(&l);
	}
	post_all(&l);
	for (unsigned int i = sim_below(r, 30); i > 0; i--)
		sim_poll(s);
	kill_hca(s, side, how);
	if (how != BY_DRIVER)
		check_empty(s, side);
	for (unsigned int i = 0; i < 100; i++)
		sim_poll(s);
	sim_restart(s, side);
	check_empty(s, side);
	/* packets from the other side find no QP here */
	sim_run_for(s, 3000000);
	load_abandon(&l, side);
	sim_check_usage(s, true);
	/* everything again */
	load_open(&l, s);
	for (unsigned int i = 0; i < 100; i++) {
		post_all(&l);
		sim_poll(s);
		reap_all(&l);
	}
	finish_all(&l);
	load_close(&l);
}

static void
under_traffic_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_rng r = {cfg->seed * 23 + cfg->layout};
	unsigned int rounds = (unsigned int)sim_env("SIM_ROUNDS", 2);

	for (unsigned int i = 0; i < 2 * WAYS_OUT * rounds; i++)
		one(s, &r, i & 1, i / 2 % WAYS_OUT);
	sim_close(s);
}
SIM_TEST(under_traffic)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(under_traffic),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
