/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim_link.h"
#include "ub_mix.h"

#define SLOTS 16u /* requests of a side that are open */
#define SLOT (UB_PAIR_PART / SLOTS)
#define RECEIVES 2u /* of each kind: fewer than may be sent, so that some are not ready */
#define COUNTER (UB_PAIR_TO + UB_PAIR_PART - 8u) /* of the fetch-adds */
#define NOTIFY (SLOT - 16u)			 /* in a slot */

enum kind {
	WRITE,
	READ,
	SEND,
	SEND_JFR,
	WRITE_IMM,
	WRITE_NOTIFY,
	FETCH_ADD,
	WRITE_INLINE,
	KINDS
};

struct request {
	enum kind kind;
	uint32_t len;
	uint32_t from; /* of the data, in whoever's memory */
	bool received;
};

struct mix_side {
	struct request request[UB_MIX_REQUESTS];
	uint32_t posted, done;
	uint32_t adds;
	bool fetched[UB_MIX_REQUESTS]; /* old values that fetch-adds have seen */
	uint32_t recv_want, recv_got;
};

struct mix {
	struct ub_pair p;
	struct mix_side side[2];
	uint32_t n;
	uint64_t completions; /* hash */
};

static struct mix mix;

static uint32_t
slot_of(uint64_t id)
{
	return (uint32_t)id % SLOTS * SLOT;
}

/* ---- posting ---- */

static void
post_rw(struct mix *m, unsigned int side, const struct request *q, urma_opcode_t opcode,
	uint32_t id)
{
	struct ub_pair *p = &m->p;

	if (opcode == URMA_OPC_READ) {
		memset(p->side[side].mem + UB_PAIR_READ + slot_of(id), 0, q->len + 1);
		ub_pair_rw(p, side, opcode, UB_PAIR_READ + slot_of(id), q->from, q->len, id);
		return;
	}
	memset(p->side[1 - side].mem + UB_PAIR_TO + slot_of(id), 0, q->len + 1);
	ub_pair_rw(p, side, opcode, q->from, UB_PAIR_TO + slot_of(id), q->len, id);
}

static void
post_special(struct mix *m, unsigned int side, const struct request *q, uint32_t id)
{
	struct ub_pair *p = &m->p;
	uint32_t to = UB_PAIR_TO + slot_of(id);
	urma_sge_t own = ub_pair_local(p, side, q->from, q->len);
	urma_sge_t dst[2] = {ub_pair_remote(p, side, to, q->len),
			     ub_pair_remote(p, side, to + NOTIFY, 8)};
	bool is_inline = q->kind == WRITE_INLINE;
	urma_jfs_wr_t wr =
		ub_pair_request(p, side, is_inline ? URMA_OPC_WRITE : URMA_OPC_WRITE_NOTIFY, id);

	memset(p->side[1 - side].mem + to, 0, q->len + 1);
	memset(p->side[1 - side].mem + to + NOTIFY, 0, 8);
	wr.flag.bs.inline_flag = is_inline;
	wr.rw.src = (urma_sg_t){&own, 1};
	wr.rw.dst = (urma_sg_t){dst, is_inline ? 1 : 2};
	wr.rw.notify_data = ~(uint64_t)id;
	ub_pair_post(p, side, &wr);
}

static void
post_one(struct mix *m, unsigned int side)
{
	static const uint32_t lengths[] = {0, 1, 8, 100, 1024, 4097, 9000, 66000, 100001};
	struct ub_pair *p = &m->p;
	struct mix_side *ms = &m->side[side];
	uint32_t id = ms->posted++;
	struct request *q = &ms->request[id];

	q->kind = (enum kind)sim_below(&p->rng, KINDS);
	q->len = lengths[sim_below(&p->rng, RTE_DIM(lengths))];
	q->from = UB_PAIR_FROM + sim_below(&p->rng, UB_PAIR_PART - q->len);
	ms->recv_want += q->kind == SEND || q->kind == SEND_JFR || q->kind == WRITE_IMM;
	switch (q->kind) {
	case WRITE:
		post_rw(m, side, q, URMA_OPC_WRITE, id);
		break;
	case READ:
		post_rw(m, side, q, URMA_OPC_READ, id);
		break;
	case WRITE_IMM:
		post_rw(m, side, q, URMA_OPC_WRITE_IMM, id);
		break;
	case SEND:
		ub_pair_send(p, side, p->side[side].to_jetty, q->from, q->len, id);
		break;
	case SEND_JFR:
		ub_pair_send(p, side, p->side[side].to_jfr, q->from, q->len, id);
		break;
	case FETCH_ADD:
		ms->adds++;
		ub_pair_atomic(p, side, URMA_OPC_FADD, UB_PAIR_READ + slot_of(id), COUNTER, 8, 1,
			       id);
		break;
	default:
		q->len = q->kind == WRITE_INLINE ? q->len % (UB_PAIR_INLINE + 1) : q->len;
		post_special(m, side, q, id);
	}
}

/* Receives have slots, too: those of the Jetty, then those of the JFR. */
static void
post_recv(struct mix *m, unsigned int side, uint32_t slot)
{
	ub_pair_recv(&m->p, side, slot >= RECEIVES, UB_PAIR_RECV + slot * SLOT, SLOT, slot);
}

/* ---- completions ---- */

static void
check_written(struct mix *m, unsigned int side, uint32_t id)
{
	const struct request *q = &m->side[side].request[id];
	uint32_t to = UB_PAIR_TO + slot_of(id);

	ub_pair_same(&m->p, 1 - side, to, q->from, q->len);
	UB_PAIR_EQ(&m->p, m->p.side[1 - side].mem[to + q->len], 0);
}

static void
check_fetched(struct mix *m, unsigned int side, uint32_t id)
{
	struct mix_side *ms = &m->side[side];
	uint64_t old;

	memcpy(&old, m->p.side[side].mem + UB_PAIR_READ + slot_of(id), sizeof(old));
	sim_check(m->p.s, old < ms->adds && !ms->fetched[old], "side %u: old value %lu of %u", side,
		  (unsigned long)old, id);
	ms->fetched[old] = true;
}

static void
check_request(struct mix *m, unsigned int side, uint32_t id)
{
	const struct request *q = &m->side[side].request[id];
	struct ub_pair *p = &m->p;
	uint64_t told;

	switch (q->kind) {
	case READ:
		ub_pair_same(p, side, UB_PAIR_READ + slot_of(id), q->from, q->len);
		UB_PAIR_EQ(p, p->side[side].mem[UB_PAIR_READ + slot_of(id) + q->len], 0);
		break;
	case FETCH_ADD:
		check_fetched(m, side, id);
		break;
	case WRITE_NOTIFY:
		memcpy(&told, p->side[1 - side].mem + UB_PAIR_TO + slot_of(id) + NOTIFY, 8);
		UB_PAIR_EQ(p, told, ~(uint64_t)id);
		check_written(m, side, id);
		break;
	case SEND:
	case SEND_JFR:
		break;
	default:
		check_written(m, side, id);
	}
}

static void
note(struct mix *m, unsigned int side, const urma_cr_t *cr)
{
	uint64_t v[] = {side,	      cr->user_ctx,	    cr->status, cr->completion_len,
			cr->imm_data, (uint64_t)cr->opcode, m->p.s->now};

	m->completions = sim_hash(m->completions, v, sizeof(v));
}

static void
take_sent(struct mix *m, unsigned int side, const urma_cr_t *cr)
{
	struct mix_side *ms = &m->side[side];

	sim_check(m->p.s, cr->user_ctx == ms->done && cr->status == URMA_CR_SUCCESS,
		  "side %u: completion of %lu with status %u, not of %u (kind %u)", side,
		  (unsigned long)cr->user_ctx, cr->status, ms->done, ms->request[ms->done].kind);
	check_request(m, side, ms->done++);
}

/* A receive of side: the request was the other one's. */
static void
take_received(struct mix *m, unsigned int side, const urma_cr_t *cr)
{
	struct mix_side *from = &m->side[1 - side];
	struct request *q = &from->request[cr->imm_data % UB_MIX_REQUESTS];
	uint32_t slot = (uint32_t)cr->user_ctx;

	sim_check(m->p.s, cr->status == URMA_CR_SUCCESS && cr->imm_data < from->posted,
		  "side %u: receive of %lu with status %u", side, (unsigned long)cr->imm_data,
		  cr->status);
	sim_check(m->p.s, !q->received, "side %u: received twice", side);
	q->received = true;
	from->recv_got++;
	UB_PAIR_EQ(&m->p, cr->completion_len, q->len);
	UB_PAIR_EQ(&m->p, slot >= RECEIVES, q->kind == SEND_JFR);
	if (q->kind != WRITE_IMM)
		ub_pair_same(&m->p, side, UB_PAIR_RECV + slot * SLOT, q->from, q->len);
	post_recv(m, side, slot);
}

static bool
turn(struct mix *m)
{
	bool more = false;

	for (unsigned int i = 0; i < 2; i++) {
		struct mix_side *ms = &m->side[i];
		urma_cr_t cr;

		while (ms->posted < m->n && ms->posted - ms->done < SLOTS &&
		       sim_below(&m->p.rng, 8) != 0)
			post_one(m, i);
		while (urma_poll_jfc(m->p.side[i].recv_jfc, 1, &cr) == 1) {
			note(m, i, &cr);
			take_received(m, i, &cr);
		}
		while (urma_poll_jfc(m->p.side[i].send_jfc, 1, &cr) == 1) {
			note(m, i, &cr);
			take_sent(m, i, &cr);
		}
		more |= ms->done < m->n || ms->recv_got < ms->recv_want;
	}
	sim_poll(m->p.s);
	return more;
}

static void
check_end(struct mix *m)
{
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t sum;

		sim_impair(m->p.s, i, NULL);
		memcpy(&sum, m->p.side[1 - i].mem + COUNTER, sizeof(sum));
		UB_PAIR_EQ(&m->p, sum, m->side[i].adds);
		UB_PAIR_EQ(&m->p, ub_pair_counter(&m->p, i, HCA_CTR_ub_tp_broken), 0);
	}
}

uint64_t
ub_mix_run(const struct ub_pair_config *c, const struct hca_impair *bad, uint32_t n)
{
	struct mix *m = &mix;
	uint64_t end, hash;

	memset(m->side, 0, sizeof(m->side));
	m->n = n;
	m->completions = 0;
	ub_pair_open(&m->p, c);
	for (unsigned int i = 0; i < 2; i++) {
		sim_impair(m->p.s, i, bad);
		for (uint32_t k = 0; k < 2 * RECEIVES; k++)
			post_recv(m, i, k);
	}
	end = m->p.s->now + 60000 * UB_PAIR_MS;
	while (turn(m))
		sim_check(m->p.s, m->p.s->now < end, "%u and %u of %u requests are done, %u of %u",
			  m->side[0].done, m->side[1].done, n, m->side[0].recv_got,
			  m->side[0].recv_want);
	check_end(m);
	if (getenv("SIM_VERBOSE") != NULL)
		sim_summary(m->p.s);
	sim_settle(m->p.s);
	hash = sim_hash_all(m->p.s) ^ m->completions;
	ub_pair_close(&m->p);
	return hash;
}

/* ---- random configurations ---- */

const struct hca_impair ub_mix_bad_link = {.drop = 0.01,
					   .dup = 0.02,
					   .reorder = 0.03,
					   .reorder_ns = 20000,
					   .corrupt = 0.01,
					   .truncate = 0.005};

/* Modes and rules that fit, and whether packets take several paths. */
static const struct {
	uint8_t mode, rule;
	bool go_back;
	uint8_t flags;
} kinds_of_tp[] = {
	{HCA_TP_MODE_DROP, HCA_TP_RULE_NAK, true, 0},
	{HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE, false, 0},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_NONE, false, HCA_TP_FLAG_SPRAY},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH, false, 0},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_MARK, false, HCA_TP_FLAG_RSP_BE},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, false, 0},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, false, HCA_TP_FLAG_SPRAY},
};

uint64_t
ub_mix_random(const struct sim_config *cfg, uint32_t n)
{
	static const enum sim_gid gids[] = {SIM_GID_V4, SIM_GID_V6, SIM_GID_V4_VLAN,
					    SIM_GID_V6_VLAN};
	struct sim_rng rng = {cfg->seed};
	uint32_t kind = sim_below(&rng, RTE_DIM(kinds_of_tp));
	struct hca_impair bad = {.drop = 0.001 * sim_below(&rng, 30),
				 .dup = 0.001 * sim_below(&rng, 30),
				 .reorder = 0.001 * sim_below(&rng, 50),
				 .reorder_ns = 1000 * (1 + sim_below(&rng, 40)),
				 .corrupt = 0.001 * sim_below(&rng, 15),
				 .truncate = 0.001 * sim_below(&rng, 10),
				 .delay_ns = 1000 * sim_below(&rng, 20)};
	struct ub_pair_config c = {.sim = *cfg,
				   .tps = 3,
				   .gid = gids[sim_below(&rng, RTE_DIM(gids))],
				   .mode = kinds_of_tp[kind].mode,
				   .rule = kinds_of_tp[kind].rule,
				   .go_back = kinds_of_tp[kind].go_back,
				   .flags = kinds_of_tp[kind].flags,
				   .small_mtu = sim_below(&rng, 2),
				   .passive = sim_below(&rng, 2),
				   .reorder = kinds_of_tp[kind].flags & HCA_TP_FLAG_SPRAY ? 20 : 0,
				   .requests = 2 + sim_below(&rng, 60),
				   .retries = 15,
				   .err_timeout = 24,
				   .min_rnr_timer = 2,
				   .rto_base = 100};

	return ub_mix_run(&c, &bad, n);
}
