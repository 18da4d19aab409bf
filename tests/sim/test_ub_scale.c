/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * As many Jettys as an HCA supports over four TPs, all active: the memory of each, and the fairness
 * between them. One Jetty with 64 peers. SIM_SCALE_LOG: log2 of Jettys; SIM_SCALE_ROUNDS: requests
 * of each, on average.
 */

#include "ub_pair.h"

#define PROGRAM "sim-ub-scale"

#define JFCS 16u
#define MSG 1024u
#define OUTSTANDING 2u
#define PEERS 64u

static struct ub_pair pair;

/* ---- many Jettys ---- */

struct scale {
	struct ub_pair *p;
	uint32_t max, n;
	urma_jfc_t *jfc[JFCS];
	urma_jetty_t **jetty;
	uint32_t *done, *posted;
	uint64_t all, rung;
};

static urma_jetty_t *
create(struct scale *x, uint32_t i)
{
	struct ub_pair_side *sd = &x->p->side[0];
	urma_jetty_cfg_t cfg = {.flag.bs.share_jfr = 1,
				.shared.jfr = sd->jfr,
				.jfs_cfg = {.depth = 2 * OUTSTANDING,
					    .trans_mode = URMA_TM_RM,
					    .rnr_retry = 7,
					    .err_timeout = 24,
					    .jfc = x->jfc[i % JFCS]}};

	return urma_create_jetty(sd->ctx, &cfg);
}

static void
create_all(struct scale *x)
{
	urma_jfc_cfg_t depth = {.depth = 2 * OUTSTANDING * x->max / JFCS};

	for (uint32_t k = 0; k < JFCS; k++) {
		x->jfc[k] = urma_create_jfc(x->p->side[0].ctx, &depth);
		sim_check(x->p->s, x->jfc[k] != NULL, "JFC: %s", softhca_urma_reason());
	}
	x->jetty = calloc(x->max, sizeof(urma_jetty_t *));
	x->done = calloc(x->max, sizeof(*x->done));
	x->posted = calloc(x->max, sizeof(*x->posted));
	/* the pair has some of its own */
	while (x->n < x->max && (x->jetty[x->n] = create(x, x->n)) != NULL)
		x->n++;
	sim_check(x->p->s, x->n + 4 >= x->max, "%u Jettys: %s", x->n, softhca_urma_reason());
}

static void
report_memory(struct scale *x)
{
	const struct hca *h = x->p->side[0].h;
	struct hca_driver_usage d;
	struct hca_usage u;
	uint32_t per_tp, sum;

	hca_usage(h, &u);
	hca_driver_usage(x->p->s->side[0].drv, &d);
	per_tp = (uint32_t)(h->core->ub->tp_bytes / x->p->cfg.tps + sizeof(struct hca_tp));
	sum = u.qp_bytes + d.qp_bytes + (uint32_t)sizeof(struct urma_queue);
	print_message("%u Jettys alive, each beyond its queues %u bytes: device %u, driver %u, "
		      "library %u; a TP with a window of %u packets %u bytes\n",
		      u.qps, sum, u.qp_bytes, d.qp_bytes, (uint32_t)sizeof(struct urma_queue),
		      ub_pair_tp(x->p, 0, 1)->cfg.window, per_tp);
	sim_check(x->p->s, sum < 8192, "a Jetty takes %u bytes", sum);
	sim_check(x->p->s, per_tp < 256u * ub_pair_tp(x->p, 0, 1)->cfg.window,
		  "a TP takes %u bytes", per_tp);
}

static void
post(struct scale *x, uint32_t i)
{
	struct ub_pair *p = x->p;
	bool read = x->posted[i]++ % 4 == 3;
	uint32_t at = i % (UB_PAIR_PART / MSG) * MSG;
	urma_sge_t own = ub_pair_local(p, 0, (read ? UB_PAIR_READ : UB_PAIR_FROM) + at, MSG);
	urma_sge_t peers = ub_pair_remote(p, 0, (read ? UB_PAIR_FROM : UB_PAIR_TO) + at, MSG);
	urma_jfs_wr_t wr = ub_pair_request(p, 0, read ? URMA_OPC_READ : URMA_OPC_WRITE, i);

	wr.rw.src = (urma_sg_t){read ? &peers : &own, 1};
	wr.rw.dst = (urma_sg_t){read ? &own : &peers, 1};
	sim_check(p->s, urma_post_jetty_send_wr(x->jetty[i], &wr, NULL) == URMA_SUCCESS, "post: %s",
		  softhca_urma_reason());
	/* the doorbell page has 256 slots */
	if (++x->rung % 16 == 0)
		sim_poll(p->s);
}

static void
reap(struct scale *x, bool more)
{
	urma_cr_t cr[64];

	for (uint32_t k = 0; k < JFCS; k++) {
		int n = urma_poll_jfc(x->jfc[k], 64, cr);

		for (int c = 0; c < n; c++) {
			uint32_t i = (uint32_t)cr[c].user_ctx;

			sim_check(x->p->s, cr[c].status == URMA_CR_SUCCESS, "Jetty %u: status %u",
				  i, cr[c].status);
			x->done[i]++;
			x->all++;
			if (more)
				post(x, i);
		}
	}
}

static int
by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
work_fairly(struct scale *x)
{
	uint64_t rounds = sim_env("SIM_SCALE_ROUNDS", 12), began = x->p->s->now, mean;
	uint32_t *sorted = calloc(x->n, sizeof(*sorted));

	for (uint32_t i = 0; i < x->n; i++)
		for (uint32_t k = 0; k < OUTSTANDING; k++)
			post(x, i);
	while (x->all < rounds * x->n) {
		reap(x, true);
		sim_poll(x->p->s);
	}
	memcpy(sorted, x->done, x->n * sizeof(*sorted));
	mean = x->all / x->n;
	qsort(sorted, x->n, sizeof(*sorted), by_size);
	print_message("%u active Jettys, %lu us: requests of the slowest %u, mean %lu, median %u, "
		      "fastest %u\n",
		      x->n, (unsigned long)(x->p->s->now - began) / 1000, sorted[0],
		      (unsigned long)mean, sorted[x->n / 2], sorted[x->n - 1]);
	sim_check(x->p->s, 2 * sorted[0] >= mean, "the slowest has %u, the mean is %lu", sorted[0],
		  (unsigned long)mean);
	for (uint64_t end = (rounds * x->n) + (uint64_t)OUTSTANDING * x->n; x->all < end;) {
		reap(x, false);
		sim_poll(x->p->s);
	}
	free(sorted);
}

static void
close_all(struct scale *x)
{
	for (uint32_t i = 0; i < x->n; i++)
		sim_check(x->p->s, urma_delete_jetty(x->jetty[i]) == URMA_SUCCESS, "delete: %s",
			  softhca_urma_reason());
	for (uint32_t k = 0; k < JFCS; k++)
		sim_check(x->p->s, urma_delete_jfc(x->jfc[k]) == URMA_SUCCESS, "delete: %s",
			  softhca_urma_reason());
	ub_pair_close(x->p);
	free(x->jetty);
	free(x->done);
	free(x->posted);
}

static void
many_jettys_in(const struct sim_config *way)
{
	uint32_t log = (uint32_t)sim_env("SIM_SCALE_LOG", 14);
	struct scale x = {.p = &pair, .max = 1u << log};
	struct ub_pair_config c = {.sim = *way, .tps = UB_PAIR_TPS, .rto_base = 100000};

	c.sim.log_num_qps = log;
	c.sim.records = (2u << log) + 16384;
	c.sim.full_records = (2u << log) + 4096;
	c.sim.mbufs = 4096;
	c.sim.link_depth = 4096;
	ub_pair_open(&pair, &c);
	create_all(&x);
	report_memory(&x);
	work_fairly(&x);
	close_all(&x);
}

/* ---- many peers ---- */

/* Each channel has a group of its own, as if each led to another host. */
static void
open_peers(struct ub_pair *p, struct urma_target *to)
{
	for (uint32_t i = 1; i < PEERS; i++) {
		uint32_t tpn, group;

		for (unsigned int side = 0; side < 2; side++) {
			ub_pair_open_tp(p, side, i + 1);
			tpn = ub_pair_tp(p, side, i + 1)->cfg.own_tpn;
			sim_check(p->s,
				  hca_driver_create_tpg(p->s->side[side].drv, &tpn, 1, &group) == 0,
				  "group: %s", hca_driver_reason());
			UB_PAIR_EQ(p, group, i);
			ub_pair_permit(p, side, p->s->side[side].ctx, group, true);
		}
		to[i] = *(struct urma_target *)p->side[0].to_jetty;
		to[i].tpg = i;
	}
	to[0] = *(struct urma_target *)p->side[0].to_jetty;
}

static void
close_peers(struct ub_pair *p)
{
	for (uint32_t i = 1; i < PEERS; i++) {
		for (unsigned int side = 0; side < 2; side++) {
			sim_check(p->s, hca_driver_destroy_tpg(p->s->side[side].drv, i) == 0, "%s",
				  hca_driver_reason());
			ub_pair_close_tp(p, side, i + 1);
		}
	}
}

static void
many_peers_in(const struct sim_config *way)
{
	static struct urma_target to[PEERS];
	struct ub_pair_config c = {.sim = *way, .rto_base = 100000};
	struct ub_pair *p = &pair;
	urma_target_jetty_t *usual;

	c.sim.log_tps = 7;
	ub_pair_open(p, &c);
	open_peers(p, to);
	usual = p->side[0].to_jetty;
	for (uint32_t round = 0; round < 8; round++) {
		memset(p->side[1].mem + UB_PAIR_TO, 0, PEERS * 20000);
		for (uint32_t i = 0; i < PEERS; i++) {
			p->side[0].to_jetty = &to[i].pub;
			ub_pair_rw(p, 0, URMA_OPC_WRITE, UB_PAIR_FROM + round,
				   UB_PAIR_TO + i * 20000, 20000, i);
		}
		for (uint32_t i = 0; i < PEERS; i++) {
			ub_pair_done(p, 0, i, URMA_CR_SUCCESS);
			ub_pair_same(p, 1, UB_PAIR_TO + i * 20000, UB_PAIR_FROM + round, 20000);
		}
	}
	p->side[0].to_jetty = usual;
	for (uint32_t i = 0; i < PEERS; i++)
		UB_PAIR_EQ(p, ub_pair_tp(p, 0, i + 1)->tx.ops_sent, 8);
	close_peers(p);
	ub_pair_close(p);
}

SIM_TEST(many_jettys)
SIM_TEST(many_peers)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_jettys),
		cmocka_unit_test(many_peers),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
