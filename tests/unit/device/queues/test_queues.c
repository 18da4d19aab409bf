/* SPDX-License-Identifier: BSD-3-Clause */

/* CQ and EQ commands and writers: overrun, arming, invalid consumer indexes, resize, full EQs. */

#include <string.h>

#include "../rig.h"

#define CQN 2u
#define LOG 3u
#define SIZE (1u << LOG)

static int
setup(void **state)
{
	struct rig *r = rig_new(true);

	rig_eq(r, 0, 2);
	rig_cq(r, CQN, LOG);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static struct hca_cqe *
cqe(struct rig *r, uint32_t i)
{
	return (struct hca_cqe *)(void *)(rig_cq_mem(r, CQN) + (i % SIZE) * HCA_CQE_SIZE);
}

static struct hca_cq_record *
record(struct rig *r, uint32_t cqn)
{
	return (struct hca_cq_record *)(void *)(rig_cq_mem(r, cqn) + SIZE * HCA_CQE_SIZE);
}

/* Write one CQE of value v; false: refused. */
static bool
put(struct rig *r, uint32_t cqn, uint32_t v, bool solicited)
{
	struct hca_cq_batch b = {0};
	struct hca_cqe *c = hca_cq_reserve(r->h->core, cqn, &b, solicited, HCA_STAGE_REQ_RX);

	if (c != NULL) {
		c->my_qpn = hca_cpu_to_le32(v);
		hca_cq_publish(c, HCA_OP_SEND | 1u << 8);
	}
	hca_cq_batch_end(r->h->core, &b, HCA_STAGE_REQ_RX);
	return c != NULL;
}

static void
wraps_without_loss(void **state, uint32_t single)
{
	struct rig *r = *state;

	r->h->core->cq[CQN].single_writer = single;
	for (uint32_t i = 0; i < 5 * SIZE; i++) {
		cqe(r, i)->owner = HCA_OWNER_HW;
		assert_true(put(r, CQN, i, false));
		assert_int_equal(hca_le32_to_cpu(cqe(r, i)->my_qpn), i);
		assert_int_equal(cqe(r, i)->owner, HCA_OWNER_SW);
		assert_int_equal(cqe(r, i)->opcode, HCA_OP_SEND);
		assert_int_equal(cqe(r, i)->is_send, 1);
		if (i % 3 == 0)
			record(r, CQN)->consumer = hca_cpu_to_le32(i + 1);
	}
}

static void
single_writer(void **state)
{
	wraps_without_loss(state, 1);
}

static void
many_writers(void **state)
{
	wraps_without_loss(state, 0);
}

static void
index_wraps_within_its_half(void **state)
{
	struct rig *r = *state;

	for (uint32_t single = 0; single < 2; single++) {
		r->h->core->cq[CQN].single_writer = single;
		r->h->core->cq[CQN].reserve = 0xffffffff;
		r->h->core->cq[CQN].consumer = 0xffffffff;
		assert_true(put(r, CQN, 1, false));
		assert_int_equal(r->h->core->cq[CQN].reserve, 0);
	}
}

static void
poll_events(struct rig *r)
{
	for (unsigned int i = 0; i < 4; i++)
		rig_poll(r);
}

/* Overrun: one CQ_ERROR, no further CQE, QPs go to ERR; an invalid consumer index does not help. */
static void
overrun(void **state)
{
	struct rig *r = *state;
	uint32_t lies[] = {0x80000000, SIZE + 1, 0xffffffff};

	for (uint32_t i = 0; i < SIZE; i++)
		assert_true(put(r, CQN, i, false));
	r->h->core->qp[9].cfg.local_qpn = 0x99;
	r->h->core->qp[9].cfg.state = HCA_QPS_RTS;
	r->h->core->qp[9].cfg.scqn = CQN;
	record(r, CQN)->consumer = hca_cpu_to_le32(lies[0]);
	assert_false(put(r, CQN, 100, false));
	for (uint32_t i = 0; i < 3; i++) {
		record(r, CQN)->consumer = hca_cpu_to_le32(lies[i]);
		assert_false(put(r, CQN, 100, false));
	}
	poll_events(r);
	assert_int_equal(rig_eqe(r, 0)->type, HCA_EVENT_CQ_ERROR);
	assert_int_equal(rig_eqe(r, 0)->subtype, HCA_CQ_ERR_OVERRUN);
	assert_int_equal(hca_le32_to_cpu(rig_eqe(r, 0)->object), CQN);
	assert_int_equal(rig_eqe(r, 1)->owner, HCA_OWNER_HW);
	assert_int_equal(r->h->core->qp[9].cfg.state, HCA_QPS_ERR);
	assert_int_equal(hca_counter_value(r->h, HCA_CTR_cqe_overrun), 1);
	assert_int_equal(hca_counter_value(r->h, HCA_CTR_cqe_dead_cq), 3);
	for (uint32_t i = 0; i < SIZE; i++)
		assert_int_equal(hca_le32_to_cpu(cqe(r, i)->my_qpn), i);
	memset(&r->h->core->qp[9], 0, sizeof(r->h->core->qp[9]));
	poll_events(r);
}

static void
arm(struct rig *r, uint32_t cqn, uint32_t seq, uint32_t mode)
{
	record(r, cqn)->arm = hca_cpu_to_le32(HCA_CQ_ARM_MAKE(seq, mode));
}

static void
consume_eq(struct rig *r, uint32_t n)
{
	hca_bar_store(r->h->core->bar0, HCA_BAR0_EQ_CI(0), n);
	poll_events(r);
}

static void
arming(void **state)
{
	struct rig *r = *state;
	uint64_t before = hca_counter_value(r->h, HCA_CTR_comp_events);

#define EVENTS (hca_counter_value(r->h, HCA_CTR_comp_events) - before)
	assert_true(put(r, CQN, 0, true)); /* not armed yet */
	poll_events(r);
	assert_int_equal(EVENTS, 0);
	arm(r, CQN, 1, HCA_CQ_ARM_SOLICITED);
	assert_true(put(r, CQN, 1, false));
	poll_events(r);
	assert_int_equal(EVENTS, 0);
	assert_true(put(r, CQN, 2, true));
	assert_true(put(r, CQN, 3, true)); /* fired already */
	poll_events(r);
	assert_int_equal(EVENTS, 1);
	assert_int_equal(rig_eqe(r, 0)->type, HCA_EVENT_COMP);
	assert_int_equal(hca_le32_to_cpu(rig_eqe(r, 0)->object), CQN);
	/* armed again before software consumed the EQE: the event comes, but not earlier */
	arm(r, CQN, 2, HCA_CQ_ARM_NEXT);
	assert_true(put(r, CQN, 4, false));
	poll_events(r);
	assert_int_equal(EVENTS, 1);
	consume_eq(r, 1);
	assert_int_equal(EVENTS, 2);
	assert_int_equal(rig_eqe(r, 1)->owner, HCA_OWNER_SW);
#undef EVENTS
}

/*
 * A full EQ holds back events of many objects and delivers each of them once later, and one
 * EQ_OVERFLOW.
 */
static void
full_eq_parks(void **state)
{
	struct rig *r = *state;
	uint32_t seen = 0, ci = 0, overflows = 0;

	for (uint32_t i = 8; i < 20; i++) {
		r->h->core->qp[i].cfg.local_qpn = 0x1000 + i;
		hca_eq_raise_qp(r->h->core, HCA_STAGE_EE, HCA_EVENT_COMM_EST, i);
		hca_eq_raise_qp(r->h->core, HCA_STAGE_REQ_TX, HCA_EVENT_COMM_EST, i);
	}
	poll_events(r);
	for (unsigned int i = 0; i < 40; i++) {
		struct hca_eqe *e = rig_eqe(r, ci % 4);

		if (e->owner == HCA_OWNER_HW)
			break;
		if (e->type == HCA_EVENT_EQ_OVERFLOW) {
			assert_int_equal(hca_le32_to_cpu(e->object), 0);
			overflows++;
		} else {
			assert_int_equal(e->type, HCA_EVENT_COMM_EST);
			seen ^= 1u << (hca_le32_to_cpu(e->object) - 0x1000);
		}
		e->owner = HCA_OWNER_HW;
		consume_eq(r, ++ci);
	}
	assert_int_equal(ci, 13);
	assert_int_equal(overflows, 1);
	assert_int_equal(seen, 0xfff00);
	for (uint32_t i = 8; i < 20; i++)
		r->h->core->qp[i].cfg.local_qpn = 0;
}

static void
mask_gates_events(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_EQ, 0, HCA_MAP_EQ_UNMAP | 0,
				 HCA_EVENT_MASK(HCA_EVENT_COMM_EST), 0),
			 HCA_STAT_OK);
	hca_eq_raise_qp(r->h->core, HCA_STAGE_EE, HCA_EVENT_COMM_EST, 5);
	hca_eq_raise_port(r->h->core, HCA_STAGE_DECAP, HCA_PORT_ACTIVE);
	poll_events(r);
	assert_int_equal(rig_eqe(r, 0)->type, HCA_EVENT_PORT_CHANGE);
	assert_int_equal(rig_eqe(r, 0)->subtype, HCA_PORT_ACTIVE);
	assert_int_equal(rig_eqe(r, 1)->owner, HCA_OWNER_HW);
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_EQ, 0, 3, 1, 0), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_EQ, 0, 8, 1, 0), HCA_STAT_BAD_INDEX);
}

/* The link goes down while no EQ takes port events: a later subscriber is told. */
static void
link_is_watched(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_EQ, 0, HCA_MAP_EQ_UNMAP | 0,
				 HCA_EVENT_MASK(HCA_EVENT_PORT_CHANGE), 0),
			 HCA_STAT_OK);
	rig_link(r, false);
	r->now += 20000000;
	poll_events(r);
	assert_int_equal(rig_eqe(r, 0)->owner, HCA_OWNER_HW);
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_EQ, 0, 0, HCA_EVENT_MASK(HCA_EVENT_PORT_CHANGE), 0),
			 HCA_STAT_OK);
	poll_events(r);
	assert_int_equal(rig_eqe(r, 0)->type, HCA_EVENT_PORT_CHANGE);
	assert_int_equal(rig_eqe(r, 0)->subtype, HCA_PORT_DOWN);
	assert_int_equal(hca_le32_to_cpu(rig_eqe(r, 0)->object), 1);
	rig_link(r, true);
	poll_events(r);
	assert_int_equal(rig_eqe(r, 1)->owner, HCA_OWNER_HW);
	r->now += 20000000;
	poll_events(r);
	assert_int_equal(rig_eqe(r, 1)->type, HCA_EVENT_PORT_CHANGE);
	assert_int_equal(rig_eqe(r, 1)->subtype, HCA_PORT_ACTIVE);
	r->now += 20000000;
	poll_events(r);
	assert_int_equal(rig_eqe(r, 2)->owner, HCA_OWNER_HW);
}

static void
note(void *arg, uint32_t bits)
{
	*(uint32_t *)arg |= bits;
}

static void
notifier_hears_of_eqes(void **state)
{
	struct rig *r = *state;
	uint32_t bits = 0;

	hca_set_notify(r->h, note, &bits);
	poll_events(r);
	assert_int_equal(bits, 0);
	hca_eq_raise_port(r->h->core, HCA_STAGE_DECAP, HCA_PORT_DOWN);
	poll_events(r);
	assert_int_equal(bits, 1);
	hca_set_notify(r->h, NULL, NULL);
}

static struct hca_cqc *
cqc(struct rig *r, uint32_t cqn)
{
	struct hca_cqc *c = (void *)r->in;

	memset(c, 0, sizeof(*c));
	hca_cqc_set_start(c, (uintptr_t)rig_cq_mem(r, cqn));
	c->logsize_usrpage = hca_cpu_to_be32(HCA_CQC_MAKE_LOGSIZE(LOG, RIG_PAGE));
	c->pd = hca_cpu_to_be32(RIG_PD);
	c->lkey = hca_cpu_to_be32(HCA_KEY_MAKE(0x2a, 30, 0x33));
	c->cqn = hca_cpu_to_be32(cqn);
	c->ci_db = hca_cpu_to_be32(SIZE * HCA_CQE_SIZE);
	c->state_db = hca_cpu_to_be32(SIZE * HCA_CQE_SIZE + 64);
	return c;
}

#define BREAK_CQ(X) \
	X(c->cqn = hca_cpu_to_be32(5)) \
	X(c->comp_eqn = hca_cpu_to_be32(1)) \
	X(c->comp_eqn = hca_cpu_to_be32(77)) \
	X(c->pd = hca_cpu_to_be32(RIG_KPD)) \
	X(c->logsize_usrpage = hca_cpu_to_be32(HCA_CQC_MAKE_LOGSIZE(LOG, 2))) \
	X(c->logsize_usrpage = hca_cpu_to_be32(HCA_CQC_MAKE_LOGSIZE(23, RIG_PAGE))) \
	X(c->logsize_usrpage = hca_cpu_to_be32(HCA_CQC_MAKE_LOGSIZE(255, RIG_PAGE))) \
	X(c->lkey = hca_cpu_to_be32(HCA_KEY_MAKE(0x2a, 31, 0x33))) \
	X(c->start_lo = hca_cpu_to_be32((uint32_t)(uintptr_t)rig_cq_mem(r, 4) + 64)) \
	X(c->start_lo = hca_cpu_to_be32((uint32_t)(uintptr_t)rig_cq_mem(r, 4) + 8192)) \
	X(c->flags = hca_cpu_to_be32(HCA_CQ_FLAG_LARGE)) \
	X(c->flags = hca_cpu_to_be32(HCA_CQ_FLAG_WALL)) \
	X(c->ci_db = hca_cpu_to_be32(0)) \
	X(c->state_db = hca_cpu_to_be32(0))

/* With overrun ignored, CQEs without room are lost, and the CQ goes on. */
static void
overrun_ignored(void **state)
{
	struct rig *r = *state;
	const struct hca_cqc *queried = (const void *)r->out;
	struct hca_cqc *c;

	rig_mr(r, 30, RIG_PD, rig_cq_mem(r, 4), 8192);
	c = cqc(r, 4);
	c->flags = hca_cpu_to_be32(HCA_CQ_FLAG_TR | HCA_CQ_FLAG_OI);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 4), HCA_STAT_OK);
	for (uint32_t single = 0; single < 2; single++) {
		uint32_t first = (uint32_t)r->h->core->cq[4].reserve;

		r->h->core->cq[4].single_writer = single;
		for (uint32_t i = 0; i < SIZE + 5; i++)
			assert_int_equal(put(r, 4, i, false), i < SIZE);
		record(r, 4)->consumer = hca_cpu_to_le32(first + SIZE);
		assert_int_equal(hca_counter_value(r->h, HCA_CTR_cqe_overrun), 5 * (single + 1));
	}
	poll_events(r);
	assert_int_equal(rig_eqe(r, 0)->owner, HCA_OWNER_HW);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_CQ, 4), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(queried->flags), HCA_CQ_FLAG_TR | HCA_CQ_FLAG_OI);
	assert_int_equal(hca_counter_value(r->h, HCA_CTR_cqe_dead_cq), 0);
}

/* Fill in the RESIZE_CQ mailbox: 2^log CQEs in the memory of CQ n, key 20 + n. */
static void
resize_to(struct rig *r, uint32_t n, uint32_t log)
{
	struct hca_mbox_resize_cq *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	m->logsize = hca_cpu_to_be32(HCA_RESIZE_CQ_MAKE_LOGSIZE(log));
	m->lkey = hca_cpu_to_be32(HCA_KEY_MAKE(0x2a, 20 + n, 0x33));
	m->start = hca_cpu_to_be64((uintptr_t)rig_cq_mem(r, n));
	m->ci_db = hca_cpu_to_be32(HCA_CQE_SIZE << log);
	m->state_db = hca_cpu_to_be32((HCA_CQE_SIZE << log) + 64);
}

/* The mailbox of a CQ of 2^LOG large CQEs, in the memory of CQ 4. */
static struct hca_cqc *
large_cqc(struct rig *r, uint32_t flags)
{
	struct hca_cqc *c = cqc(r, 4);

	c->flags = hca_cpu_to_be32(HCA_CQ_FLAG_TR | HCA_CQ_FLAG_LARGE | flags);
	c->ci_db = hca_cpu_to_be32(SIZE * HCA_CQE_LARGE_SIZE);
	c->state_db = hca_cpu_to_be32(SIZE * HCA_CQE_LARGE_SIZE + 64);
	return c;
}

static void
expect_large(struct rig *r, uint8_t *memory, uint32_t i, uint64_t wall)
{
	struct hca_cqe *e = (void *)(memory + i * HCA_CQE_LARGE_SIZE);
	const struct hca_cqe_more *more = (const void *)(e + 1);

	assert_int_equal(hca_le32_to_cpu(e->my_qpn), i);
	assert_int_equal(e->owner, HCA_OWNER_SW);
	assert_int_equal(hca_le64_to_cpu(more->core_clock), r->now);
	assert_int_equal(hca_le64_to_cpu(more->wall_clock), wall);
	assert_int_equal(more->vlan, 0);
}

static uint64_t
wall_clock(void)
{
	return UINT64_C(1700000000) * 1000000000;
}

/* Large CQEs: places, times, tags; by one writer or several, before and after a resize. */
static void
large_cqes(void **state)
{
	struct rig *r = *state;
	static const uint8_t smac[6] = {2, 3, 4, 5, 6, 7};
	struct hca_mbox_resize_cq *m = (void *)r->in;
	uint8_t *old = rig_cq_mem(r, 4), *new = rig_cq_mem(r, 6);
	const struct hca_cqe_more *more;
	struct hca_cqe *tagged = (void *)(new + 5 * HCA_CQE_LARGE_SIZE);
	struct hca_cq_batch b = {0};
	struct hca_cq_cursor cursor;

	rig_mr(r, 30, RIG_PD, old, 8192);
	rig_mr(r, 26, RIG_PD, new, 8192);
	large_cqc(r, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 4), HCA_STAT_OK);
	for (uint32_t i = 0; i < 4; i++) {
		r->h->core->cq[4].single_writer = i & 1;
		rig_poll(r);
		assert_true(put(r, 4, i, false));
		expect_large(r, old, i, 0);
	}
	assert_false(hca_cq_cursor_open(r->h->core, 4, &b, HCA_STAGE_REQ_RX, &cursor));
	resize_to(r, 6, LOG); /* as small ones */
	assert_int_equal(rig_mbox(r, HCA_CMD_RESIZE_CQ, 4), HCA_STAT_BAD_PARAM);
	resize_to(r, 6, LOG);
	m->ci_db = hca_cpu_to_be32(SIZE * HCA_CQE_LARGE_SIZE);
	m->state_db = hca_cpu_to_be32(SIZE * HCA_CQE_LARGE_SIZE + 64);
	assert_int_equal(rig_mbox(r, HCA_CMD_RESIZE_CQ, 4), HCA_STAT_OK);
	assert_true(put(r, 4, 4, false));
	expect_large(r, new, 4, 0);
	assert_ptr_equal(hca_cq_reserve(r->h->core, 4, &b, false, HCA_STAGE_EE), tagged);
	more = (const void *)(tagged + 1);
	hca_cq_set_sender(r->h->core, 4, tagged, 0xa123, NULL);
	assert_int_equal(more->vlan, hca_cpu_to_le16(0xa123));
	assert_int_equal(more->smac[0], 0);
	hca_cq_set_sender(r->h->core, 4, tagged, 0, smac);
	assert_int_equal(more->vlan, 0);
	assert_memory_equal(more->smac, smac, sizeof(smac));
	hca_cq_batch_end(r->h->core, &b, HCA_STAGE_EE);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_CQ, 4), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(((const struct hca_cqc *)(void *)r->out)->flags),
			 HCA_CQ_FLAG_TR | HCA_CQ_FLAG_LARGE);
}

/* The wall clock is read for those that have it; without one it is the time of the poll. */
static void
wall_clock_in_cqes(void **state)
{
	struct rig *r = *state;

	rig_mr(r, 30, RIG_PD, rig_cq_mem(r, 4), 8192);
	large_cqc(r, HCA_CQ_FLAG_WALL);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 4), HCA_STAT_OK);
	assert_true(put(r, 4, 0, false));
	expect_large(r, rig_cq_mem(r, 4), 0, r->now);
	r->h->core->cfg.wall_clock = wall_clock;
	assert_true(put(r, 4, 1, false));
	expect_large(r, rig_cq_mem(r, 4), 1, wall_clock());
}

static void
bad_cq_changes_nothing(void **state)
{
	struct rig *r = *state;
	struct hca_cqc *c;

	rig_mr(r, 30, RIG_PD, rig_cq_mem(r, 4), 8192);
	rig_remember(r, 0);
#define X(change) \
	c = cqc(r, 4); \
	change; \
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 4), HCA_STAT_BAD_PARAM); \
	rig_unchanged(r, 0);
	BREAK_CQ(X)
#undef X
	cqc(r, 4);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 16), HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, CQN), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, 4), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_EQ, 0, 0, 0, 0), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, 4, 0, 0), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, 4, 0, 0), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, CQN, 0, 0), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_EQ, 0, 0, 0, 0), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_EQ, 0, 0, 0, 0), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 30, 0, 0), HCA_STAT_OK);
}

static void
query_cq(void **state)
{
	struct rig *r = *state;
	const struct hca_cqc *c = (const void *)r->out;

	assert_true(put(r, CQN, 1, false));
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_CQ, CQN), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(c->producer_index), 1);
	assert_int_equal(hca_be32_to_cpu(c->cqn), CQN);
	assert_int_equal(HCA_CQC_LOGSIZE(hca_be32_to_cpu(c->logsize_usrpage)), LOG);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_CQ, 5), HCA_STAT_BAD_RES_STATE);
}

static void
resize(void **state)
{
	struct rig *r = *state;
	struct hca_cqe *n = (void *)rig_cq_mem(r, 6);

	rig_mr(r, 26, RIG_PD, rig_cq_mem(r, 6), 8192);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(put(r, CQN, i, false));
	resize_to(r, 6, 2);
	rig_remember(r, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_RESIZE_CQ, CQN), HCA_STAT_BAD_PARAM);
	rig_unchanged(r, 0);
	resize_to(r, 6, 4);
	assert_int_equal(rig_mbox(r, HCA_CMD_RESIZE_CQ, CQN), HCA_STAT_OK);
	assert_int_equal(r->out_param, 5);
	assert_int_equal(r->h->core->vtp.mpt[26].users, 1);
	assert_int_equal(r->h->core->vtp.mpt[10 + CQN].users, 0);
	for (uint32_t i = 5; i < 16; i++)
		assert_true(put(r, CQN, i, false));
	assert_int_equal(hca_le32_to_cpu(n[5].my_qpn), 5);
	assert_int_equal(hca_le32_to_cpu(n[15].my_qpn), 15);
	assert_int_equal(hca_le32_to_cpu(cqe(r, 5)->my_qpn), 0);
	assert_false(put(r, CQN, 16, false));
}

#define USERS(r, index) ((r)->h->core->vtp.mpt[index].users)

/* A buffer holds a reference to its own region while it is in use, and to no other region. */
static void
resize_counts_users(void **state)
{
	struct rig *r = *state;

	rig_mr(r, 26, RIG_PD, rig_cq_mem(r, 6), 8192);
	rig_mr(r, 27, RIG_PD, rig_cq_mem(r, 7), 8192);
	for (uint32_t i = 0; i < 9; i++) {
		uint32_t n = 6 + i % 2;

		resize_to(r, n, 2 + i % 3);
		assert_int_equal(rig_mbox(r, HCA_CMD_RESIZE_CQ, CQN), HCA_STAT_OK);
		assert_int_equal(USERS(r, 10 + CQN), 0);
		assert_int_equal(USERS(r, 20 + n), 1);
		assert_int_equal(USERS(r, 20 + 13 - n), 0);
		assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 20 + n, 0, 0),
				 HCA_STAT_RESOURCE_BUSY);
		/* refused: the region is too short */
		resize_to(r, 13 - n, 12);
		assert_int_equal(rig_mbox(r, HCA_CMD_RESIZE_CQ, CQN), HCA_STAT_BAD_PARAM);
		assert_int_equal(USERS(r, 26) + USERS(r, 27), 1);
	}
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, CQN, 0, 0), HCA_STAT_OK);
	for (uint32_t i = 10; i < 32; i++)
		assert_int_equal(USERS(r, i), 0);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 26, 0, 0), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 27, 0, 0), HCA_STAT_OK);
}

/* More completions than fit: nothing changes, even with an invalid consumer index. */
static void
resize_refused_keeps_all(void **state)
{
	struct rig *r = *state;
	uint64_t word;

	rig_mr(r, 26, RIG_PD, rig_cq_mem(r, 6), 8192);
	for (uint32_t i = 0; i < 7; i++)
		assert_true(put(r, CQN, i, false));
	word = r->h->core->cq[CQN].reserve;
	for (uint32_t lie = 0; lie < 2; lie++) {
		record(r, CQN)->consumer = hca_cpu_to_le32(lie ? 0x80000000u : 2);
		resize_to(r, 6, 2);
		assert_int_equal(rig_mbox(r, HCA_CMD_RESIZE_CQ, CQN), HCA_STAT_BAD_PARAM);
		assert_int_equal(USERS(r, 26), 0);
		assert_int_equal(USERS(r, 10 + CQN), 1);
		assert_int_equal(r->h->core->cq[CQN].reserve, word);
	}
	record(r, CQN)->consumer = hca_cpu_to_le32(3);
	resize_to(r, 6, 2);
	assert_int_equal(rig_mbox(r, HCA_CMD_RESIZE_CQ, CQN), HCA_STAT_OK);
	assert_int_equal(r->out_param, 7);
}

/* The device is reset between the switch of buffers and the end of the round. */
static void
reset_amid_resize(void **state)
{
	struct rig *r = *state;

	rig_mr(r, 26, RIG_PD, rig_cq_mem(r, 6), 8192);
	resize_to(r, 6, 4);
	rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_RESIZE_CQ), CQN, (uintptr_t)r->in, 0, 1);
	rig_poll(r);
	assert_true(rig_ctrl(r) & HCA_HCR_GO);
	assert_int_equal(USERS(r, 26), 1);
	assert_int_equal(USERS(r, 10 + CQN), 1);
	hca_bar_store(r->h->core->bar0, HCA_BAR0_RESET, HCA_RESET_START);
	for (unsigned int i = 0; i < 4000 && hca_bar_load(r->h->core->bar0, HCA_BAR0_RESET) != 0;
	     i++)
		rig_poll(r);
	assert_int_equal(hca_bar_load(r->h->core->bar0, HCA_BAR0_RESET), 0);
	assert_false(rig_ctrl(r) & HCA_HCR_GO);
	for (uint32_t i = 0; i < 1u << RIG_LOG_MPTS; i++)
		assert_int_equal(USERS(r, i), 0);
}

/* An overrun CQ keeps its contents and cannot be resized. */
static void
resize_of_overrun_cq(void **state)
{
	struct rig *r = *state;

	rig_mr(r, 26, RIG_PD, rig_cq_mem(r, 6), 8192);
	for (uint32_t i = 0; i < SIZE; i++)
		assert_true(put(r, CQN, i, false));
	assert_false(put(r, CQN, 100, false));
	resize_to(r, 6, 5);
	assert_int_equal(rig_mbox(r, HCA_CMD_RESIZE_CQ, CQN), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(USERS(r, 26), 0);
}

static void
moderate(struct rig *r, uint32_t count, uint32_t period)
{
	struct hca_mbox_modify_cq *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	m->moderation = hca_cpu_to_be32(HCA_CQ_MOD_MAKE(count, period));
	assert_int_equal(rig_mbox(r, HCA_CMD_MODIFY_CQ, CQN), HCA_STAT_OK);
}

/* Moderated events: by count, by time, not for solicited completions, released by a change. */
static void
moderation(void **state)
{
	struct rig *r = *state;
	uint64_t before = hca_counter_value(r->h, HCA_CTR_comp_events);
	uint32_t seq = 0, ci = 0;

#define EVENTS (hca_counter_value(r->h, HCA_CTR_comp_events) - before)
#define EXPECT(n) \
	do { \
		poll_events(r); \
		assert_int_equal(EVENTS, (n)); \
		if (ci != (n)) \
			consume_eq(r, ++ci); \
		record(r, CQN)->consumer = hca_cpu_to_le32((uint32_t)r->h->core->cq[CQN].reserve); \
	} while (0)
	moderate(r, 3, 0);
	arm(r, CQN, ++seq, HCA_CQ_ARM_NEXT);
	put(r, CQN, 0, false);
	put(r, CQN, 0, false);
	EXPECT(0);
	put(r, CQN, 0, false);
	EXPECT(1);
	/* a solicited completion is not delayed */
	arm(r, CQN, ++seq, HCA_CQ_ARM_NEXT);
	put(r, CQN, 0, true);
	EXPECT(2);
	/* by time: 50 us, of which a poll takes one */
	moderate(r, 100, 50);
	arm(r, CQN, ++seq, HCA_CQ_ARM_NEXT);
	put(r, CQN, 0, false);
	for (unsigned int i = 0; i < 40; i++)
		rig_poll(r);
	EXPECT(2);
	for (unsigned int i = 0; i < 10; i++)
		rig_poll(r);
	EXPECT(3);
	/* a change of settings releases delayed events */
	moderate(r, 100, 0);
	arm(r, CQN, ++seq, HCA_CQ_ARM_NEXT);
	put(r, CQN, 0, false);
	EXPECT(3);
	moderate(r, 0, 0);
	EXPECT(4);
	/* a QP destroyed meanwhile does not end the period of other CQs */
	moderate(r, 100, 50);
	arm(r, CQN, ++seq, HCA_CQ_ARM_NEXT);
	put(r, CQN, 0, false);
	hca_eq_forget_qp(r->h->core, 1);
	for (unsigned int i = 0; i < 40; i++)
		rig_poll(r);
	EXPECT(4);
	for (unsigned int i = 0; i < 10; i++)
		rig_poll(r);
	EXPECT(5);
	/* new settings end the old period; the new one begins with the next completion */
	moderate(r, 100, 50);
	arm(r, CQN, ++seq, HCA_CQ_ARM_NEXT);
	put(r, CQN, 0, false);
	for (unsigned int i = 0; i < 10; i++)
		rig_poll(r);
	moderate(r, 100, 1000);
	EXPECT(6);
	arm(r, CQN, ++seq, HCA_CQ_ARM_NEXT);
	put(r, CQN, 0, false);
	for (unsigned int i = 0; i < 100; i++)
		rig_poll(r);
	EXPECT(6);
	/* destroying the CQ ends its period */
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, CQN, 0, 0), HCA_STAT_OK);
	assert_false(hca_eqs_due(r->h->core, UINT64_MAX));
#undef EXPECT
#undef EVENTS
	assert_int_equal(rig_mbox(r, HCA_CMD_MODIFY_CQ, 5), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(rig_mbox(r, HCA_CMD_MODIFY_CQ, 16), HCA_STAT_BAD_INDEX);
}

/* QPs of one pipe have the CQ for themselves; one of another pipe waits for a round. */
static void
joined_by_pipes(void **state)
{
	struct rig *r = *state;
	struct hca_core *h = r->h->core;
	struct hca_cq *cq = &h->cq[CQN];

	assert_int_equal(cq->single_writer, 1);
	/* one pipe: the CQ has one writer in any case */
	assert_false(hca_cq_join(h, CQN, HCA_CQ_NO_PIPE));
	assert_int_equal(cq->single_writer, 1);
	h->pipe_mask = 3;
	assert_false(hca_cq_join(h, CQN, 2));
	assert_false(hca_cq_join(h, CQN, 2));
	assert_int_equal(cq->single_writer, 1);
	assert_true(hca_cq_join(h, CQN, 1));
	assert_int_equal(cq->single_writer, 0);
	assert_false(hca_cq_join(h, CQN, 1));
	assert_false(hca_cq_join(h, CQN, 2));
	assert_int_equal(cq->single_writer, 0);
	/* messages to an SRQ with a CQ may come in any pipe */
	cq->single_writer = 1;
	cq->pipe = HCA_CQ_NO_PIPE;
	assert_true(hca_cq_join(h, CQN, HCA_CQ_NO_PIPE));
	assert_int_equal(cq->single_writer, 0);
	h->pipe_mask = 0;
	for (uint32_t i = 0; i < 3 * SIZE; i++) {
		assert_true(put(r, CQN, i, false));
		assert_int_equal(hca_le32_to_cpu(cqe(r, i)->my_qpn), i);
		record(r, CQN)->consumer = hca_cpu_to_le32(i + 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(single_writer),
		T(joined_by_pipes),
		T(many_writers),
		T(index_wraps_within_its_half),
		T(overrun),
		T(arming),
		T(full_eq_parks),
		T(mask_gates_events),
		T(link_is_watched),
		T(notifier_hears_of_eqes),
		T(overrun_ignored),
		T(large_cqes),
		T(wall_clock_in_cqes),
		T(bad_cq_changes_nothing),
		T(query_cq),
		T(resize),
		T(resize_counts_users),
		T(resize_refused_keeps_all),
		T(reset_amid_resize),
		T(resize_of_overrun_cq),
		T(moderation),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
