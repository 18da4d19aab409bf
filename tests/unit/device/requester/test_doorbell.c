/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * doorbell: order of the FIFO, the register, every check with its counter, opening and closing
 * pages.
 */

#include "../engine/fixture.h"

#include "abi_bar.h"
#include "abi_ctx.h"
#include "abi_tp.h"
#include "abi_wqe.h"
#include "ctxmgt/ctxmgt.h"
#include "requester/doorbell.h"

#define PAGE 5u
#define QPI 3u
#define SCAN_NS 50000u

struct client {
	struct hca_uar_page *page;
	uint32_t next;
};

static struct client
client_open_parts(struct fx *fx, uint32_t page, uint32_t parts)
{
	struct client c = {(struct hca_uar_page *)(fx->h->bar2 + page * HCA_UAR_PAGE_SIZE),
			   HCA_UAR_FIFO_FIRST(page)};

	memset(c.page, 0, sizeof(*c.page));
	hca_doorbell_page_open(fx->h, page, parts);
	return c;
}

static struct client
client_open(struct fx *fx, uint32_t page)
{
	return client_open_parts(fx, page, 1);
}

static void
ring(struct client *c, uint64_t word)
{
	c->page->fifo[c->next++ % HCA_UAR_FIFO_SLOTS] = hca_cpu_to_le64(word);
}

static uint64_t
word(uint32_t sq_head, uint8_t op, uint32_t qpn)
{
	return HCA_DB_MAKE(sq_head, 0, op, qpn, 4);
}

static uint64_t
pushed(struct fx *fx, unsigned int i)
{
	assert_true(i < fx->edge[HCA_EDGE_DB_PARSER].n);
	return hca_dbw_from(fx->edge[HCA_EDGE_DB_PARSER].obj[i]);
}

static int
setup(void **state)
{
	struct fx *fx = fx_create(NULL);

	fx->h->ctxmgt = calloc(1, sizeof(*fx->h->ctxmgt));
	assert_non_null(fx->h->ctxmgt);
	assert_int_equal(hca_doorbell_init(fx->h), 0);
	fx_qp(fx, QPI, PAGE, 6, 6, 16);
	*state = fx;
	return 0;
}

static int
teardown(void **state)
{
	struct fx *fx = *state;

	hca_doorbell_fini(fx->h);
	free(fx->h->ctxmgt);
	fx->h->ctxmgt = NULL;
	fx_destroy(fx);
	return 0;
}

static void
test_words_in_order(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	/* more than one turn of the FIFO, in bursts that fit */
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < 24; i++)
			ring(&c, HCA_DB_MAKE((round * 24 + i) % 64, i & 1, HCA_OP_RDMA_WRITE,
					     fx_qpn(QPI), i));
		assert_int_equal(hca_doorbell_poll(fx->h, round, 32), 24);
	}
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, 480);
	for (uint32_t i = 0; i < 480; i++) {
		uint64_t w = pushed(fx, i);

		assert_int_equal(HCA_CHAIN_SQ_HEAD(w), i % 64);
		assert_int_equal(HCA_CHAIN_F(w), i % 24 & 1);
		assert_int_equal(HCA_CHAIN_OPCODE(w), HCA_OP_RDMA_WRITE);
		assert_int_equal(HCA_CHAIN_SIZE0(w), i % 24);
		assert_int_equal(hca_dbw_qpi(w), QPI);
		assert_true(hca_dbw_current(w, fx->h->qp[QPI].cfg.generation));
		assert_false(hca_dbw_current(w, fx->h->qp[QPI].cfg.generation + 1));
	}
	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		assert_int_equal(c.page->fifo[i], 0);
	assert_int_equal(hca_doorbell_poll(fx->h, 99, 32), 0);
}

static void
test_stays_behind_an_unfilled_slot(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	c.next++; /* reserved, not filled yet */
	ring(&c, word(1, HCA_OP_SEND, fx_qpn(QPI)));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 0);
	c.page->fifo[HCA_UAR_FIFO_FIRST(PAGE)] = word(0, HCA_OP_SEND, fx_qpn(QPI));
	assert_int_equal(hca_doorbell_poll(fx->h, 1, 32), 2);
	assert_int_equal(HCA_CHAIN_SQ_HEAD(pushed(fx, 0)), 0);
	assert_int_equal(HCA_CHAIN_SQ_HEAD(pushed(fx, 1)), 1);
}

static void
test_register(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);
	uint64_t w = word(9, HCA_OP_RDMA_READ, fx_qpn(QPI));

	hca_put_le32(&c.page->sq_doorbell, (uint32_t)w);
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 0);
	hca_put_le32((uint8_t *)&c.page->sq_doorbell + 4, (uint32_t)(w >> 32));
	assert_int_equal(hca_doorbell_poll(fx->h, 1, 32), 1);
	assert_int_equal(c.page->sq_doorbell, 0);
	assert_int_equal(HCA_CHAIN_SQ_HEAD(pushed(fx, 0)), 9);
}

static void
test_takes_room_first(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);
	struct fx_edge *e = &fx->edge[HCA_EDGE_DB_PARSER];

	for (uint32_t i = 0; i < 10; i++)
		ring(&c, word(i, HCA_OP_SEND, fx_qpn(QPI)));
	e->room = 0;
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 0);
	e->room = 3;
	assert_int_equal(hca_doorbell_poll(fx->h, 1, 32), 3);
	e->room = FX_OBJECTS;
	assert_int_equal(hca_doorbell_poll(fx->h, 2, 2), 2);
	assert_int_equal(hca_doorbell_poll(fx->h, 3, 32), 5);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(HCA_CHAIN_SQ_HEAD(pushed(fx, i)), i);
}

/* One invalid word between two valid ones: the counter has the reason, the others pass. */
static void
expect_dropped(struct fx *fx, uint64_t bad, uint64_t before, enum hca_counter counter)
{
	struct fx_edge *e = &fx->edge[HCA_EDGE_DB_PARSER];
	struct client c = client_open(fx, PAGE);

	e->n = 0;
	ring(&c, before);
	ring(&c, bad);
	ring(&c, before);
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 3);
	assert_int_equal(e->n, 2);
	assert_int_equal(fx_counter(fx, HCA_STAGE_DOORBELL, counter), 1);
	hca_doorbell_page_open(fx->h, PAGE, 0);
	hca_doorbell_poll(fx->h, 0, 32);
}

static void
test_checks(void **state)
{
	struct fx *fx = *state;
	uint32_t qpn = fx_qpn(QPI);
	uint64_t good = word(0, HCA_OP_SEND, qpn);

	fx_qp(fx, QPI + 1, PAGE + 1, 6, 6, 16);
	fx_qp(fx, QPI + 2, PAGE, 6, 6, 16)->cfg.state = HCA_QPS_RTR;
	expect_dropped(fx, word(0, 0x02, qpn), good, HCA_CTR_db_bad_opcode);
	expect_dropped(fx, word(0, HCA_OP_SEND, qpn ^ 0x800000), good, HCA_CTR_db_dead_qpn);
	expect_dropped(fx, word(0, HCA_OP_SEND, fx_qpn(QPI + 1)), good, HCA_CTR_db_foreign_qpn);
	expect_dropped(fx, word(0, HCA_OP_SEND, fx_qpn(QPI + 2)), good, HCA_CTR_db_bad_state);
	expect_dropped(fx, word(64, HCA_OP_SEND, qpn), good, HCA_CTR_db_bad_index);
}

/* A QP in RST is being destroyed: its owner does not matter, and no stage is kicked. */
static void
test_taken_apart(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	fx_qp(fx, QPI + 1, PAGE + 1, 6, 6, 16)->cfg.state = HCA_QPS_RST;
	fx_qp(fx, QPI + 2, PAGE, 6, 6, 16)->cfg.state = HCA_QPS_RST;
	ring(&c, word(0, HCA_OP_SEND, fx_qpn(QPI + 1)));
	ring(&c, word(0, HCA_DB_OPCODE_KICK, fx_qpn(QPI + 2)));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 2);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_bad_state), 2);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_kicks), 0);
}

static void
test_dead_entry_and_qpn_zero(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, 0);

	ring(&c, word(0, HCA_OP_SEND, 0) | 1); /* entry 0 is not used: local_qpn 0 */
	ring(&c, word(0, HCA_OP_SEND, 0x10));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 2);
	assert_int_equal(
		FX_COUNTER(fx, DOORBELL, db_dead_qpn) + FX_COUNTER(fx, DOORBELL, db_bad_opcode), 2);
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, 0);
}

static void
test_opcodes(void **state)
{
	static const uint8_t passed[] = {HCA_OP_SEND_INV,  HCA_OP_RDMA_WRITE, HCA_OP_RDMA_WRITE_IMM,
					 HCA_OP_SEND,	   HCA_OP_SEND_IMM,   HCA_OP_RDMA_READ,
					 HCA_OP_ATOMIC_CS, HCA_OP_ATOMIC_FA,  HCA_OP_ATOMIC_WRITE,
					 HCA_OP_FLUSH,	   HCA_OP_BIND_MW,    HCA_OP_LOCAL_INV};
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	for (uint8_t op = 0; op < HCA_DB_OPCODE_KICK; op++)
		ring(&c, word(0, op, fx_qpn(QPI)));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 31);
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, RTE_DIM(passed));
	for (unsigned int i = 0; i < RTE_DIM(passed); i++)
		assert_int_equal(HCA_CHAIN_OPCODE(pushed(fx, i)), passed[i]);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_bad_opcode), 31 - RTE_DIM(passed));
	assert_int_equal(FX_COUNTER(fx, DOORBELL, doorbells), 31);
}

/* Jettys have more opcodes; an opcode that neither they nor QPs have is refused for both. */
static void
test_opcodes_of_jettys(void **state)
{
	static const uint8_t more[] = {HCA_OP_WRITE_NOTIFY, HCA_OP_WRITE_BE, HCA_OP_ATOMIC};
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	fx->h->qp[QPI].cfg.service = HCA_ST_JETTY;
	for (unsigned int i = 0; i < RTE_DIM(more); i++)
		ring(&c, word(0, more[i], fx_qpn(QPI)));
	ring(&c, word(0, 0x0e, fx_qpn(QPI)));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 4);
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, RTE_DIM(more));
	for (unsigned int i = 0; i < RTE_DIM(more); i++)
		assert_int_equal(HCA_CHAIN_OPCODE(pushed(fx, i)), more[i]);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_bad_opcode), 1);
}

static void
test_kick(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	fx->h->qp[QPI].cfg.state = HCA_QPS_ERR;
	ring(&c, word(0, HCA_DB_OPCODE_KICK, fx_qpn(QPI)));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 1);
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, 0);
	assert_int_equal(fx_take_msgs(fx, HCA_STAGE_DOORBELL, HCA_STAGE_EE, QPI), HCA_MSG_KICK);
}

/* Of a Jetty TAT has the receives: EE must not see it, which is not told when it ends. */
static void
test_kick_of_a_jetty(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	fx->h->qp[QPI].cfg.service = HCA_ST_JETTY;
	fx->h->qp[QPI].cfg.state = HCA_QPS_ERR;
	ring(&c, word(0, HCA_DB_OPCODE_KICK, fx_qpn(QPI)));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 1);
	assert_int_equal(fx_take_msgs(fx, HCA_STAGE_DOORBELL, HCA_STAGE_TAT, QPI), HCA_MSG_KICK);
	assert_int_equal(fx_take_msgs(fx, HCA_STAGE_DOORBELL, HCA_STAGE_EE, QPI), 0);
}

static void
test_closed_page_is_not_looked_at(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	hca_doorbell_page_open(fx->h, PAGE, 0);
	ring(&c, word(0, HCA_OP_SEND, fx_qpn(QPI)));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 0);
	assert_int_equal(hca_doorbell_poll(fx->h, SCAN_NS, 32), 0);
	/* the next owner starts at the first slot */
	c = client_open(fx, PAGE);
	ring(&c, word(0, HCA_OP_SEND, fx_qpn(QPI)));
	assert_int_equal(hca_doorbell_poll(fx->h, SCAN_NS + 1, 32), 1);
}

/* The page of QP 1 costs nothing while no client uses it; its doorbells are found by the scan. */
static void
test_page_of_qp1_is_scanned(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);
	uint64_t now = 0;

	fx->h->ctxmgt->gsi_qpn = fx_qpn(QPI);
	for (unsigned int i = 0; i < 2; i++) {
		now += SCAN_NS;
		assert_int_equal(hca_doorbell_poll(fx->h, now, 32), 0);
		ring(&c, word(0, HCA_OP_SEND, fx_qpn(QPI)));
		assert_int_equal(hca_doorbell_poll(fx->h, now, 32), 0);
		now += SCAN_NS;
		assert_int_equal(hca_doorbell_poll(fx->h, now, 32), 1);
	}
	/* that of another QP stays */
	fx->h->ctxmgt->gsi_qpn = 0;
	assert_int_equal(hca_doorbell_poll(fx->h, now + SCAN_NS, 32), 0);
	ring(&c, word(0, HCA_OP_SEND, fx_qpn(QPI)));
	assert_int_equal(hca_doorbell_poll(fx->h, now + SCAN_NS, 32), 1);
}

static void
test_idle_pages_are_scanned(void **state)
{
	struct fx *fx = *state;
	struct client c = {0};
	uint64_t now = 10000000;

	for (uint32_t page = 1; page < 100; page++) {
		struct client p = client_open(fx, page);

		if (page == PAGE)
			c = p;
	}
	/* long idle: not in the rota, but checked within 50 us */
	for (uint64_t t = 0; t < now; t += SCAN_NS)
		hca_doorbell_poll(fx->h, t, 32);
	ring(&c, word(0, HCA_OP_SEND, fx_qpn(QPI)));
	for (uint64_t t = 0; t <= SCAN_NS; t += 5000)
		hca_doorbell_poll(fx->h, now + t, 32);
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, 1);
}

static void
test_busy_page_leaves_room_for_others(void **state)
{
	struct fx *fx = *state;
	struct client busy = client_open(fx, PAGE), other = client_open(fx, PAGE + 1);

	fx_qp(fx, QPI + 1, PAGE + 1, 6, 6, 16);
	ring(&other, word(0, HCA_OP_SEND, fx_qpn(QPI + 1)));
	for (int i = 0; i < 3; i++) {
		for (uint32_t k = 0; k < 40; k++)
			ring(&busy, word(0, HCA_OP_SEND, fx_qpn(QPI)));
		hca_doorbell_poll(fx->h, (uint64_t)i, 32);
	}
	for (unsigned int i = 0; i < fx->edge[HCA_EDGE_DB_PARSER].n; i++)
		if (hca_dbw_qpi(pushed(fx, i)) == QPI + 1)
			return;
	fail_msg("the other page was starved");
}

/* ---- marks ---- */

static void
mark(struct client *c, uint32_t qpn)
{
	uint32_t m = HCA_UAR_MARK(1, qpn);

	c->page->marks[m / 64] |= hca_cpu_to_le64(1ull << m % 64);
	c->page->marked |= hca_cpu_to_le64(1ull << m / 64);
}

static void
test_marks(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 0);
	mark(&c, fx_qpn(QPI));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 1);
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, 1);
	assert_int_equal(HCA_CHAIN_OPCODE(pushed(fx, 0)), HCA_DBW_LOOK);
	assert_int_equal(hca_dbw_qpi(pushed(fx, 0)), QPI);
	assert_int_equal(hca_doorbell_poll(fx->h, 1, 32), 0);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_marks), 1);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, doorbells), 0);
}

/* The mark of another client's QP, of no QP, and of one that is being destroyed. */
static void
test_marks_of_others(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	fx_qp(fx, QPI + 1, PAGE + 1, 6, 6, 16);
	fx_qp(fx, QPI + 2, PAGE, 6, 6, 16)->cfg.state = HCA_QPS_RST;
	mark(&c, QPI + 1);
	mark(&c, QPI + 2);
	mark(&c, QPI + 3);
	c.page->marked |= hca_cpu_to_le64(UINT64_MAX);
	for (unsigned int i = 0; i < 64; i++)
		hca_doorbell_poll(fx->h, i, 32);
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, 0);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_foreign_qpn), 1);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_dead_qpn), 2);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, doorbells), 3);
	assert_int_equal(c.page->marked, 0);
}

/*
 * A visit checks only some words: while it has not found the marked one, the worker must not sleep.
 */
static void
test_marks_beyond_a_visit(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);
	unsigned int n = 0;

	mark(&c, fx_qpn(QPI));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 1);
	assert_true(hca_doorbell_deadline(fx->h, 0) == UINT64_MAX);
	/* the next check begins after that mark, and each is in vain */
	c.page->marked = hca_cpu_to_le64(UINT64_MAX);
	mark(&c, fx_qpn(QPI));
	for (unsigned int i = 1; i < 64 && n == 0; i++) {
		n = hca_doorbell_poll(fx->h, i, 32);
		if (i == 1)
			assert_int_equal(n, 0);
		if (n == 0)
			assert_true(hca_doorbell_deadline(fx->h, i) == HCA_DEADLINE_ROOM);
	}
	assert_int_equal(n, 1);
}

/* A QP in ERR: its receives and its announced requests are flushed. */
static void
test_mark_kicks(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	fx->h->qp[QPI].cfg.state = HCA_QPS_ERR;
	mark(&c, fx_qpn(QPI));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 1);
	assert_int_equal(fx_take_msgs(fx, HCA_STAGE_DOORBELL, HCA_STAGE_EE, QPI), HCA_MSG_KICK);
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, 1);
}

static void
test_mark_kicks_a_jetty(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);

	fx->h->qp[QPI].cfg.service = HCA_ST_JETTY;
	fx->h->qp[QPI].cfg.state = HCA_QPS_ERR;
	mark(&c, fx_qpn(QPI));
	assert_int_equal(hca_doorbell_poll(fx->h, 0, 32), 1);
	assert_int_equal(fx_take_msgs(fx, HCA_STAGE_DOORBELL, HCA_STAGE_TAT, QPI), HCA_MSG_KICK);
	assert_int_equal(fx_take_msgs(fx, HCA_STAGE_DOORBELL, HCA_STAGE_EE, QPI), 0);
}

/* A FIFO that is always full does not hide marks, and no mark hides another. */
static void
test_marks_take_turns(void **state)
{
	struct fx *fx = *state;
	struct client c = client_open(fx, PAGE);
	bool seen[12] = {false};

	for (uint32_t i = 1; i < 12; i++)
		fx_qp(fx, QPI + i, PAGE, 6, 6, 16);
	for (unsigned int round = 0; round < 12; round++) {
		struct fx_edge *edge = &fx->edge[HCA_EDGE_DB_PARSER];
		unsigned int from = edge->n;

		for (uint32_t i = 0; i < 8; i++)
			ring(&c, word(0, HCA_OP_SEND, fx_qpn(QPI)));
		for (uint32_t i = 0; i < 12; i++)
			mark(&c, fx_qpn(QPI + i));
		assert_int_equal(hca_doorbell_poll(fx->h, round, 8), 8);
		for (unsigned int i = from; i < edge->n; i++)
			if (HCA_CHAIN_OPCODE(pushed(fx, i)) == HCA_DBW_LOOK)
				seen[hca_dbw_qpi(pushed(fx, i)) - QPI] = true;
	}
	for (uint32_t i = 0; i < 12; i++)
		assert_true(seen[i]);
}

/* ---- several pipes: the stage of one reads its part of the page ---- */

#define PIPES 4u
#define PIPE 2u

/* The stage again, as that of a pipe; QPs of index i belong to pipe i mod PIPES. */
static void
become_pipe(struct fx *fx, uint32_t pipe)
{
	hca_doorbell_fini(fx->h);
	fx->h->pipe_mask = PIPES - 1;
	fx->h->pipe_number = (uint8_t)pipe;
	assert_int_equal(hca_doorbell_init(fx->h), 0);
	for (uint32_t qpi = 4; qpi < 8; qpi++)
		fx_qp(fx, qpi, PAGE, 6, 6, 16);
}

static void
test_part_of_the_fifo(void **state)
{
	struct fx *fx = *state;
	struct client c;

	become_pipe(fx, PIPE);
	c = client_open_parts(fx, PAGE, PIPES);
	/* the slots of all parts are filled; more than one turn of this one */
	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		c.page->fifo[i] = hca_cpu_to_le64(word(63, HCA_OP_SEND, fx_qpn(4)));
	for (uint32_t i = 0; i < HCA_UAR_FIFO_PART(PIPES); i++)
		c.page->fifo[HCA_UAR_FIFO_SLOT(PIPES, PIPE, i)] = 0;
	for (uint32_t round = 0; round < 30; round++) {
		for (uint32_t i = 0; i < 5; i++)
			c.page->fifo[HCA_UAR_FIFO_SLOT(PIPES, PIPE, c.next++)] =
				word(i, HCA_OP_SEND, fx_qpn(6));
		assert_int_equal(hca_doorbell_poll(fx->h, round, 32), 5);
	}
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, 150);
	for (uint32_t i = 0; i < 150; i++)
		assert_int_equal(HCA_CHAIN_SQ_HEAD(pushed(fx, i)), i % 5);
	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		assert_int_equal(c.page->fifo[i] != 0, i / HCA_UAR_FIFO_PART(PIPES) != PIPE);
}

/* A client rings for a QP of another pipe: that pipe's stages alone may use the QP. */
static void
test_qps_of_other_pipes(void **state)
{
	struct fx *fx = *state;
	struct client c;

	become_pipe(fx, PIPE);
	c = client_open_parts(fx, PAGE, PIPES);
	for (uint32_t qpi = 4; qpi < 8; qpi++)
		c.page->fifo[HCA_UAR_FIFO_SLOT(PIPES, PIPE, c.next++)] =
			word(qpi, HCA_OP_SEND, fx_qpn(qpi));
	hca_doorbell_poll(fx->h, 1, 32);
	assert_int_equal(fx->edge[HCA_EDGE_DB_PARSER].n, 1);
	assert_int_equal(HCA_CHAIN_SQ_HEAD(pushed(fx, 0)), 6);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_foreign_qpn), 3);
}

/* Each pipe takes from the register the words of its QPs. */
static void
test_register_of_a_pipe(void **state)
{
	struct fx *fx = *state;
	struct client c;

	become_pipe(fx, PIPE);
	c = client_open_parts(fx, PAGE, PIPES);
	c.page->sq_doorbell = word(1, HCA_OP_SEND, fx_qpn(5));
	assert_int_equal(hca_doorbell_poll(fx->h, 1, 32), 0);
	assert_int_not_equal(c.page->sq_doorbell, 0);
	c.page->sq_doorbell = word(1, HCA_OP_SEND, fx_qpn(6));
	assert_int_equal(hca_doorbell_poll(fx->h, 1 + SCAN_NS, 32), 1);
	assert_int_equal(c.page->sq_doorbell, 0);
}

static void
test_marks_of_a_pipe(void **state)
{
	struct fx *fx = *state;
	struct client c;
	uint32_t mine, other;

	become_pipe(fx, PIPE);
	c = client_open_parts(fx, PAGE, PIPES);
	mine = HCA_UAR_MARK(PIPES, fx_qpn(6));
	other = HCA_UAR_MARK(PIPES, fx_qpn(5));
	assert_int_equal(mine / HCA_UAR_MARK_PART(PIPES), PIPE);
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t m = i == 0 ? mine : other;

		c.page->marks[m / 64] |= hca_cpu_to_le64(1ull << m % 64);
		c.page->marked |= hca_cpu_to_le64(1ull << m / 64);
	}
	hca_doorbell_poll(fx->h, 1, 32);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_marks), 1);
	assert_int_equal(c.page->marked, hca_cpu_to_le64(1ull << other / 64));
}

/* The first pipe takes all doorbells of an undivided page, and the others none. */
static void
test_undivided_page(void **state)
{
	struct fx *fx = *state;
	uint32_t mark = HCA_UAR_MARK(1, fx_qpn(4)), other = HCA_UAR_MARK(1, fx_qpn(6));
	struct client c;

	become_pipe(fx, 0);
	c = client_open_parts(fx, PAGE, 1);
	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		ring(&c, word(i % 64, HCA_OP_SEND, fx_qpn(4)));
	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS / 32; i++)
		assert_int_equal(hca_doorbell_poll(fx->h, i, 32), 32);
	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		assert_int_equal(HCA_CHAIN_SQ_HEAD(pushed(fx, i)), i % 64);
	c.page->marks[mark / 64] |= hca_cpu_to_le64(1ull << mark % 64);
	c.page->marks[other / 64] |= hca_cpu_to_le64(1ull << other % 64);
	c.page->marked |= hca_cpu_to_le64(1ull << mark / 64 | 1ull << other / 64);
	hca_doorbell_poll(fx->h, 1, 32);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_marks), 1);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, db_foreign_qpn), 1); /* QP 6 is not in pipe 0 */
	assert_int_equal(c.page->marked, 0);
}

static void
test_undivided_page_of_other_pipes(void **state)
{
	struct fx *fx = *state;
	struct client c;

	become_pipe(fx, PIPE);
	c = client_open_parts(fx, PAGE, 1);
	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		ring(&c, word(i % 64, HCA_OP_SEND, fx_qpn(6)));
	assert_int_equal(hca_doorbell_poll(fx->h, 1, 32), 0);
	assert_int_equal(FX_COUNTER(fx, DOORBELL, doorbells), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_words_in_order),
		T(test_stays_behind_an_unfilled_slot),
		T(test_register),
		T(test_takes_room_first),
		T(test_checks),
		T(test_taken_apart),
		T(test_dead_entry_and_qpn_zero),
		T(test_opcodes),
		T(test_opcodes_of_jettys),
		T(test_kick),
		T(test_kick_of_a_jetty),
		T(test_closed_page_is_not_looked_at),
		T(test_page_of_qp1_is_scanned),
		T(test_idle_pages_are_scanned),
		T(test_busy_page_leaves_room_for_others),
		T(test_marks),
		T(test_marks_of_others),
		T(test_marks_beyond_a_visit),
		T(test_mark_kicks),
		T(test_mark_kicks_a_jetty),
		T(test_marks_take_turns),
		T(test_part_of_the_fifo),
		T(test_qps_of_other_pipes),
		T(test_register_of_a_pipe),
		T(test_marks_of_a_pipe),
		T(test_undivided_page),
		T(test_undivided_page_of_other_pipes),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
