/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim_link.h"
#include "ub_atomic.h"
#include "ub_mix.h"

#define SLOTS 16u /* requests of a side that are open */
#define SLOT (UB_PAIR_PART / SLOTS)
#define RECEIVES 2u /* of each kind: fewer than may be sent, so that some are not ready */
#define COUNTER (UB_PAIR_TO + UB_PAIR_PART - 8u) /* of the fetch-adds */
#define CHAIN (UB_PAIR_TO + UB_PAIR_PART - 32u)	 /* of the swaps */
#define NOTIFY (SLOT - 16u)			 /* in a slot */
#define VALUE (SLOT - 128u)			 /* in a slot: of the other atomics */
#define ENABLES_MAX (HCA_UB_BE_MAX / 8u)

enum kind {
	WRITE,
	READ,
	SEND,
	SEND_JFR,
	WRITE_IMM,
	WRITE_NOTIFY,
	FETCH_ADD,
	WRITE_INLINE,
	WRITE_ENABLES,
	SWAP,
	ATOMIC,
	KINDS
};

struct request {
	enum kind kind;
	uint32_t len;
	uint32_t from; /* of the data, in the memory of its owner */
	bool received;
	uint8_t enables[ENABLES_MAX];
	bool returns; /* of ATOMIC: the old value */
	uint8_t old[UB_ATOMIC_MAX], changed[UB_ATOMIC_MAX];
};

struct mix_side {
	struct request request[UB_MIX_REQUESTS];
	uint32_t posted, done;
	uint32_t adds;
	bool fetched[UB_MIX_REQUESTS]; /* old values that fetch-adds have seen */
	uint32_t swaps;
	bool swapped[UB_MIX_REQUESTS + 1]; /* values that swaps have found, and that of the start */
	uint32_t recv_want, recv_got;
};

struct mix {
	struct ub_pair p;
	struct mix_side side[2];
	uint32_t n;
	uint64_t completions; /* hash */
	const struct ub_mix_beside *beside;
};

static struct mix mix;

static uint32_t
slot_of(uint64_t id)
{
	return (uint32_t)id % SLOTS * SLOT;
}

/* ---- posting ---- */

/* Some SGEs that follow each other; often one. */
static uint32_t
pieces(struct mix *m, unsigned int side, uint32_t at, uint32_t len, urma_sge_t *sge)
{
	struct ub_pair *p = &m->p;
	uint32_t n = sim_below(&p->rng, 2) == 0 ? 1 : 1 + sim_below(&p->rng, UB_PAIR_SGES);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = i + 1 == n ? len : sim_below(&p->rng, len + 1);

		sge[i] = ub_pair_local(p, side, at, k);
		at += k;
		len -= k;
	}
	return n;
}

static const urma_opcode_t opcodes[KINDS] = {
	[WRITE] = URMA_OPC_WRITE,	  [READ] = URMA_OPC_READ,
	[SEND] = URMA_OPC_SEND_IMM,	  [SEND_JFR] = URMA_OPC_SEND_IMM,
	[WRITE_IMM] = URMA_OPC_WRITE_IMM, [WRITE_NOTIFY] = URMA_OPC_WRITE_NOTIFY,
	[WRITE_INLINE] = URMA_OPC_WRITE,  [WRITE_ENABLES] = SOFTHCA_URMA_OPC_WRITE_BE,
};

static void
post_send(struct mix *m, unsigned int side, const struct request *q, uint32_t id)
{
	struct ub_pair_side *sd = &m->p.side[side];
	urma_jfs_wr_t wr = ub_pair_request(&m->p, side, opcodes[q->kind], id);
	urma_sge_t own[UB_PAIR_SGES];

	wr.tjetty = q->kind == SEND ? sd->to_jetty : sd->to_jfr;
	wr.send.src = (urma_sg_t){own, pieces(m, side, q->from, q->len, own)};
	wr.send.imm_data = id;
	ub_pair_post(&m->p, side, &wr);
}

static void
post_rw(struct mix *m, unsigned int side, const struct request *q, uint32_t id)
{
	struct ub_pair *p = &m->p;
	urma_jfs_wr_t wr = ub_pair_request(p, side, opcodes[q->kind], id);
	bool read = q->kind == READ;
	uint32_t to = (read ? UB_PAIR_READ : UB_PAIR_TO) + slot_of(id);
	uint8_t *changed = p->side[read ? side : 1 - side].mem + to;
	urma_sge_t peers[2] = {ub_pair_remote(p, side, read ? q->from : to, q->len),
			       ub_pair_remote(p, side, to + NOTIFY, 8)};
	urma_sge_t own[UB_PAIR_SGES];
	uint32_t n = pieces(m, side, read ? to : q->from, q->len, own);

	memset(changed, 0, q->len + 1);
	memset(changed + NOTIFY, 0, 8);
	wr.flag.bs.inline_flag = q->kind == WRITE_INLINE;
	wr.rw.src = read ? (urma_sg_t){peers, 1} : (urma_sg_t){own, n};
	wr.rw.dst =
		read ? (urma_sg_t){own, n} : (urma_sg_t){peers, q->kind == WRITE_NOTIFY ? 2 : 1};
	wr.rw.notify_data = q->kind == WRITE_IMM ? id : ~(uint64_t)id;
	wr.rw.byte_enables = q->enables;
	ub_pair_post(p, side, &wr);
}

/* Any atomic on a value of its own. */
static void
post_atomic(struct mix *m, unsigned int side, struct request *q, uint32_t id)
{
	struct ub_pair *p = &m->p;
	uint8_t *value = p->side[1 - side].mem + UB_PAIR_TO + slot_of(id) + VALUE;
	struct ub_atomic a;

	for (uint32_t i = 0; i < UB_ATOMIC_MAX; i++)
		value[i] = (uint8_t)sim_random(&p->rng);
	memcpy(q->old, value, UB_ATOMIC_MAX);
	memcpy(q->changed, value, UB_ATOMIC_MAX);
	q->len = 1u << sim_below(&p->rng, 7);
	a = ub_atomic_draw(sim_below(&p->rng, UB_ATOMIC_KINDS), q->len, q->old, &p->rng);
	ub_atomic_model(&a, q->changed);
	q->returns = ub_atomic_returns(&a);
	ub_atomic_post(p, side, &a, UB_PAIR_READ + slot_of(id), UB_PAIR_TO + slot_of(id) + VALUE,
		       id);
}

/* Each leaves its number, from 1, and finds that of the one before it. */
static void
post_swap(struct mix *m, unsigned int side, uint32_t id)
{
	struct ub_atomic a = {.opcode = URMA_OPC_SWAP, .len = 8};
	uint64_t number = ++m->side[side].swaps;

	memcpy(a.swap, &number, sizeof(number));
	ub_atomic_post(&m->p, side, &a, UB_PAIR_READ + slot_of(id), CHAIN, id);
}

static void
draw_request(struct mix *m, struct request *q)
{
	static const uint32_t lengths[] = {0, 1, 8, 100, 1024, 4097, 9000, 66000, 100001};
	struct sim_rng *rng = &m->p.rng;

	q->kind = (enum kind)sim_below(rng, KINDS);
	q->len = lengths[sim_below(rng, RTE_DIM(lengths))];
	if (q->kind == WRITE_INLINE)
		q->len %= UB_PAIR_INLINE + 1;
	if (q->kind == WRITE_ENABLES)
		q->len = HCA_UB_BE_MIN << sim_below(rng, 5);
	q->from = UB_PAIR_FROM + sim_below(rng, UB_PAIR_PART - q->len);
	for (uint32_t i = 0; i < ENABLES_MAX; i++)
		q->enables[i] = (uint8_t)sim_random(rng);
}

static void
post_one(struct mix *m, unsigned int side)
{
	struct mix_side *ms = &m->side[side];
	uint32_t id = ms->posted++;
	struct request *q = &ms->request[id];

	draw_request(m, q);
	ms->recv_want += q->kind == SEND || q->kind == SEND_JFR || q->kind == WRITE_IMM;
	switch (q->kind) {
	case SEND:
	case SEND_JFR:
		post_send(m, side, q, id);
		break;
	case FETCH_ADD:
		ms->adds++;
		ub_pair_atomic(&m->p, side, URMA_OPC_FADD, UB_PAIR_READ + slot_of(id), COUNTER, 8,
			       1, id);
		break;
	case SWAP:
		post_swap(m, side, id);
		break;
	case ATOMIC:
		post_atomic(m, side, q, id);
		break;
	default:
		post_rw(m, side, q, id);
	}
}

/* Receives also have slots: those of the Jetty, then those of the JFR. */
static void
post_recv(struct mix *m, unsigned int side, uint32_t slot)
{
	struct ub_pair_side *sd = &m->p.side[side];
	urma_sge_t sge[UB_PAIR_SGES];
	urma_jfr_wr_t wr = {.src = {sge, pieces(m, side, UB_PAIR_RECV + slot * SLOT, SLOT, sge)},
			    .user_ctx = slot};
	urma_status_t status = slot >= RECEIVES ? urma_post_jfr_wr(sd->jfr, &wr, NULL)
						: urma_post_jetty_recv_wr(sd->jetty, &wr, NULL);

	sim_check(m->p.s, status == URMA_SUCCESS, "receive: %s", softhca_urma_reason());
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
check_swapped(struct mix *m, unsigned int side, uint64_t found)
{
	struct mix_side *ms = &m->side[side];

	sim_check(m->p.s, found <= ms->swaps && !ms->swapped[found], "side %u: swap found %lu",
		  side, (unsigned long)found);
	ms->swapped[found] = true;
}

static void
check_enabled(struct mix *m, unsigned int side, uint32_t id)
{
	const struct request *q = &m->side[side].request[id];
	const uint8_t *have = m->p.side[1 - side].mem + UB_PAIR_TO + slot_of(id);
	const uint8_t *from = m->p.side[side].mem + q->from;

	for (uint32_t i = 0; i < q->len; i++)
		UB_PAIR_EQ(&m->p, have[i], q->enables[i / 8] >> i % 8 & 1 ? from[i] : 0);
}

static void
check_atomic(struct mix *m, unsigned int side, uint32_t id)
{
	const struct request *q = &m->side[side].request[id];
	struct ub_pair *p = &m->p;

	ub_pair_same_bytes(p, p->side[1 - side].mem + UB_PAIR_TO + slot_of(id) + VALUE, q->changed,
			   UB_ATOMIC_MAX);
	if (q->returns)
		ub_pair_same_bytes(p, p->side[side].mem + UB_PAIR_READ + slot_of(id), q->old,
				   q->len);
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
	case SWAP:
		memcpy(&told, p->side[side].mem + UB_PAIR_READ + slot_of(id), 8);
		check_swapped(m, side, told);
		break;
	case ATOMIC:
		check_atomic(m, side, id);
		break;
	case WRITE_ENABLES:
		check_enabled(m, side, id);
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
	bool more = m->beside != NULL && m->beside->turn(&m->p);

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
		/* the number that no swap has found is there */
		memcpy(&sum, m->p.side[1 - i].mem + CHAIN, sizeof(sum));
		check_swapped(m, i, sum);
		UB_PAIR_EQ(&m->p, ub_pair_counter(&m->p, i, HCA_CTR_ub_tp_broken), 0);
	}
}

uint64_t
ub_mix_run(const struct ub_pair_config *c, const struct hca_impair *bad, uint32_t n)
{
	return ub_mix_beside(c, bad, n, NULL);
}

uint64_t
ub_mix_beside(const struct ub_pair_config *c, const struct hca_impair *bad, uint32_t n,
	      const struct ub_mix_beside *beside)
{
	struct mix *m = &mix;
	uint64_t end, hash;

	memset(m->side, 0, sizeof(m->side));
	m->n = n;
	m->completions = 0;
	m->beside = beside;
	ub_pair_open(&m->p, c);
	if (beside != NULL)
		beside->begin(&m->p);
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
	if (beside != NULL)
		beside->end(&m->p);
	if (getenv("SIM_VERBOSE") != NULL)
		sim_summary(m->p.s);
	sim_settle(m->p.s);
	hash = sim_hash_all(m->p.s) ^ m->completions;
	ub_pair_close(&m->p);
	return hash;
}
