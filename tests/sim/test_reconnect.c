/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One end is reset without the other: PSNs overlap with old ones. UC resynchronizes at once,
 * whatever the PSN; RC acknowledges packets that look like duplicates, refuses those ahead, and
 * never merges two messages; after both ends were reset everything works.
 */

#include "sim_tagged.h"
#include "sim_test.h"

#define PROGRAM "test_reconnect"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
to_state(struct sim *s, struct softhca_qp *qp, struct softhca_qp_attr *a, uint32_t state,
	 uint32_t mask)
{
	a->qp_state = state;
	sim_check(s, softhca_modify_qp(qp, a, mask | SOFTHCA_QP_STATE) == 0, "to %s: %s",
		  softhca_qp_state_str(state), softhca_last_error(NULL));
}

/* --- UC -------------------- */

static uint32_t
next_psn(struct sim *s, struct softhca_qp *qp)
{
	struct softhca_qp_attr a;

	sim_check(s, softhca_query_qp(qp, &a, SOFTHCA_QP_SQ_PSN, NULL) == 0, "query");
	return a.sq_psn;
}

static void
begin_uc_again(struct sim_tagged *t, uint32_t psn)
{
	struct softhca_qp *qp = t->end[0].qp[0];
	struct softhca_qp_attr a = {
		.port_num = 1,
		.path_mtu = t->attr.mtu,
		.dest_qp_num = t->end[1].qp[0]->qp_num,
		.rq_psn = 0xfffff0,
		.sq_psn = psn & 0xffffff,
		.ah_attr = {.port_num = 1,
			    .is_global = 1,
			    .hop_limit = 64,
			    .sgid_index = (uint8_t)t->attr.gid},
	};

	sim_gid(1, t->attr.gid, a.ah_attr.dgid.raw);
	to_state(t->s, qp, &a, SOFTHCA_QPS_RESET, 0);
	to_state(t->s, qp, &a, SOFTHCA_QPS_INIT,
		 SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS);
	to_state(t->s, qp, &a, SOFTHCA_QPS_RTR,
		 SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN);
	to_state(t->s, qp, &a, SOFTHCA_QPS_RTS, SOFTHCA_QP_SQ_PSN);
}

static void
send_uc(struct sim_tagged *t, unsigned int n)
{
	while (n-- > 0)
		sim_check(t->s, sim_tagged_send(t, 0, 0), "no room to send");
}

/* The QP is reset in the middle of a message, and some packets are lost. */
static void
cut_short(struct sim_tagged *t, struct sim_rng *r)
{
	static const struct hca_impair lossy = {.drop = 0.2};
	struct sim_tagged_dir *d = &t->dir[0][0];

	t->cut = true;
	t->lossless = false;
	sim_impair(t->s, 0, &lossy);
	send_uc(t, 1 + sim_below(r, 2));
	for (unsigned int k = sim_below(r, 6); k > 0; k--)
		sim_poll(t->s);
	begin_uc_again(t, 0);
	sim_impair(t->s, 0, NULL);
	sim_settle(t->s);
	sim_tagged_reap(t);
	sim_tagged_fill(t);
	/* whatever happened to them, they are done */
	d->completed = d->received = d->next = d->sent;
	t->lossless = true;
}

static void
uc_in(const struct sim_config *cfg)
{
	const struct sim_tagged_attr a = {.service = SIM_UC,
					  .mtu = SOFTHCA_MTU_256,
					  .max_len = 4000};
	struct sim *s = sim_open(cfg);
	struct sim_rng r = {cfg->seed * 41};
	struct sim_tagged *t = sim_tagged_open(s, &a);

	t->lossless = true;
	for (unsigned int round = 0; round < 60; round++) {
		uint32_t psn = next_psn(s, t->end[0].qp[0]);

		if (round % 3 == 2)
			cut_short(t, &r);
		if (round % 2 == 0)
			psn += 5000 - sim_below(&r, 10000);
		else
			psn -= sim_below(&r, 20);
		begin_uc_again(t, psn);
		send_uc(t, 1 + sim_below(&r, 3));
		sim_tagged_finish(t);
	}
	sim_tagged_close(t);
	sim_close(s);
}
SIM_TEST(uc)

/* --- RC -------------------- */

struct again {
	int32_t ahead; /* relative to the responder's expected PSN */
	uint32_t opcode, len;
	uint32_t status;
	bool executed;
};

#define W SOFTHCA_WR_RDMA_WRITE
#define R SOFTHCA_WR_RDMA_READ

static const struct again rc_cases[] = {
	{0, W, 8, SOFTHCA_WC_SUCCESS, true},
	{0, W, 5000, SOFTHCA_WC_SUCCESS, true},
	{0, R, 5000, SOFTHCA_WC_SUCCESS, true},
	{-1, W, 8, SOFTHCA_WC_SUCCESS, false},
	/* acknowledged with old PSNs, which are ignored here */
	{-20, W, 8, SOFTHCA_WC_RETRY_EXC_ERR, false},
	{-0x700000, W, 8, SOFTHCA_WC_RETRY_EXC_ERR, false},
	{-1, W, 1500, SOFTHCA_WC_REM_INV_REQ_ERR, false}, /* LAST without a message */
	{-2, R, 2048, SOFTHCA_WC_SUCCESS, true},	  /* like a repeated one */
	{1, W, 8, SOFTHCA_WC_RETRY_EXC_ERR, false},
	{300, W, 1500, SOFTHCA_WC_RETRY_EXC_ERR, false},
	{0x700000, R, 8, SOFTHCA_WC_RETRY_EXC_ERR, false},
};

static bool
same_as_before(const uint8_t *p, const uint8_t *before, uint32_t len)
{
	return memcmp(p, before, len) == 0;
}

/* A request in the second half of both regions, which the model does not use. */
static void
one_request(struct sim_pair *p, const struct again *c)
{
	struct sim_region *l = &p->region[0], *r = &p->region[1];
	uint32_t off = l->len / 2;
	struct softhca_sge sge = {l->va + off, c->len, l->mr->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = c->opcode,
		.send_flags = S,
		.wr.rdma = {r->va + off, r->mr->rkey},
	};
	uint8_t *to = c->opcode == R ? l->view + off : r->view + off;
	uint8_t *from = c->opcode == R ? r->view + off : l->view + off;
	uint8_t *before = malloc(c->len);

	memcpy(before, to, c->len);
	sim_post_wr(p, 0, &wr, c->status);
	sim_check(p->s, sim_drain(p->s, SIM_S), "%d ahead: not finished", c->ahead);
	sim_settle(p->s);
	if (c->executed)
		sim_check(p->s, memcmp(to, from, c->len) == 0, "%d ahead: not executed", c->ahead);
	else
		sim_check(p->s, same_as_before(to, before, c->len), "%d ahead: executed", c->ahead);
	free(before);
}

static void
one_rc(struct sim *s, const struct again *c, struct sim_rng *rng)
{
	const struct sim_pair_attr attr = {.retry_cnt = 2,
					   .timeout = 5,
					   .psn = {0xfffff0, 77},
					   .region = 1u << 20};
	const struct sim_req write = {.opcode = W, .len = 3000, .flags = S};
	const struct sim_req read = {.opcode = R, .len = 3000, .flags = S};
	struct softhca_qp_attr a = {0};
	struct sim_pair *p = sim_pair_open(s, &attr);
	struct sim_req mixed[12];
	uint32_t psn;

	for (unsigned int i = 0; i < 9; i++) {
		sim_check(s, sim_post(p, 0, i == 8 ? &read : &write, 1) == 0, "post");
		sim_finish(s, SIM_S);
	}
	psn = next_psn(s, p->qp[0]);
	to_state(s, p->qp[0], &a, SOFTHCA_QPS_RESET, 0);
	p->attr.psn[0] = (psn + (uint32_t)c->ahead) & 0xffffff;
	sim_connect(p, 0);
	one_request(p, c);
	sim_pair_reset(p);
	for (unsigned int i = 0; i < COUNT(mixed); i++)
		mixed[i] = sim_random_req(p, 5000);
	sim_check(s, sim_post(p, sim_below(rng, 2), mixed, COUNT(mixed)) == 0, "post");
	sim_finish(s, SIM_S);
	sim_pair_close(p);
}

static void
rc_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_rng rng = {cfg->seed * 43};

	for (unsigned int i = 0; i < COUNT(rc_cases); i++)
		one_rc(s, &rc_cases[i], &rng);
	sim_close(s);
}
SIM_TEST(rc)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uc),
		cmocka_unit_test(rc),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
