/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MAP_ICM and UNMAP_ICM with chunks of all sizes and orders, refused requests, and the copies of
 * contexts written to ICM when ownership changes.
 */

#include <stdlib.h>
#include <string.h>

#include "../rig.h"

#define PAGE 4096u
/* Addresses of the tables in rig.c, and the driver's memory behind that of rig_init_hca(). */
#define V_QPC 0x100000u
#define V_CQC 0x110000u
#define V_EQC 0x120000u
#define V_SRQC 0x140000u
#define V_MPT 0x200000u
#define V_MTT 0x210000u
#define SPARE_PAGES 64u
#define SRQN HCA_QPN_MAKE(0x77, 2, RIG_LOG_SRQS)

static uint8_t *
spare(struct rig *r, unsigned int page)
{
	return r->driver + (32 + page) * PAGE;
}

static int
setup(void **state)
{
	struct rig *r = rig_new(true);

	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

struct chunk {
	uint64_t virt;
	uint64_t bus;
	uint32_t pages;
};

static int
map_list(struct rig *r, uint8_t type, const struct chunk *c, uint32_t n)
{
	struct hca_mbox_map_icm *m = (void *)r->in;

	memset(m, 0, PAGE);
	for (uint32_t i = 0; i < n; i++) {
		hca_map_icm_entry(m, i)->virt = hca_cpu_to_be64(c[i].virt);
		hca_map_icm_entry(m, i)->page =
			hca_cpu_to_be64(HCA_ICM_MAKE_PAGE(c[i].bus, c[i].pages));
	}
	return rig_cmd(r, HCA_CMD_MAP_ICM, type, n, (uintptr_t)m, 0);
}

static int
map(struct rig *r, uint8_t type, uint64_t virt, const uint8_t *p, uint32_t pages)
{
	const struct chunk c = {virt, (uintptr_t)p, pages};

	return map_list(r, type, &c, 1);
}

static int
unmap(struct rig *r, uint8_t type, uint64_t virt, uint32_t pages)
{
	return rig_cmd(r, HCA_CMD_UNMAP_ICM, type, pages, virt, 0);
}

/* ---- which memory a table lies in ---- */

/*
 * The two pages of the QPC table mapped one at a time, the second first, to pages in reverse order.
 */
static void
pages_out_of_order(void **state)
{
	static const uint32_t qpis[] = {3, 15, 16, 31};
	struct rig *r = *state;

	rig_qp_world(r);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_QPC, 2), HCA_STAT_OK);
	for (unsigned int i = 0; i < RTE_DIM(qpis); i++)
		assert_int_equal(rig_to_init(r, qpis[i]), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(map(r, HCA_ICM_CTX, V_QPC + PAGE, spare(r, 1), 1), HCA_STAT_OK);
	assert_int_equal(rig_to_init(r, 15), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(rig_to_init(r, 16), HCA_STAT_OK);
	assert_int_equal(map(r, HCA_ICM_CTX, V_QPC, spare(r, 9), 1), HCA_STAT_OK);
	for (unsigned int i = 0; i < RTE_DIM(qpis); i++) {
		uint32_t at = qpis[i] % 16 * HCA_QPC_SIZE;
		const struct hca_qpc *q = (void *)(spare(r, qpis[i] < 16 ? 9 : 1) + at);

		if (qpis[i] != 16)
			assert_int_equal(rig_to_init(r, qpis[i]), HCA_STAT_OK);
		assert_int_equal(hca_be32_to_cpu(q->local_qpn), RIG_QPN(qpis[i]));
		assert_int_equal(HCA_QPC_STATE(hca_be32_to_cpu(q->flags)), HCA_QPS_INIT);
	}
	/* both chunks are in use now */
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_QPC, 1), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_QPC + PAGE, 1), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_QPC, 2), HCA_STAT_RESOURCE_BUSY);
}

/*
 * One command with chunks of odd sizes in any order; they are not merged and are unmapped as
 * mapped.
 */
static void
odd_chunks(void **state)
{
	struct rig *r = *state;
	const struct chunk c[] = {
		{0x803000, (uintptr_t)spare(r, 3), 3},	{0x800000, (uintptr_t)spare(r, 0), 1},
		{0x806000, (uintptr_t)spare(r, 10), 7}, {0x801000, (uintptr_t)spare(r, 30), 2},
		{0x900000, (uintptr_t)spare(r, 40), 1},
	};

	assert_int_equal(map_list(r, HCA_ICM_CTX, c, RTE_DIM(c)), HCA_STAT_OK);
	/* the same addresses in the other space are different ones */
	assert_int_equal(map_list(r, HCA_ICM_TPT, c, RTE_DIM(c)), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x801000, 1), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x802000, 1), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x800000, 2), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x800000, 14), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x7ff000, 2), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x800000, 257), HCA_STAT_BAD_PARAM);
	/* two of them, then the rest */
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x801000, 5), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x801000, 5), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x800000, 13), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x800000, 1), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x806000, 7), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, 0x900000, 1), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_TPT, 0x800000, 13), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_TPT, 0x900000, 1), HCA_STAT_OK);
}

static void
refused(void **state)
{
	struct rig *r = *state;
	const uint64_t at = (uintptr_t)spare(r, 0), user = (uintptr_t)r->user;
	const uint64_t end = (uintptr_t)r->driver + RIG_BLOCK;
	const struct chunk bad[] = {
		{0x800000, at, 0}, /* an empty chunk */
		{0x800800, at, 1}, /* not page-aligned */
		{0x800001, at, 1},
		{UINT64_MAX - 4095, at, 1}, /* wraps around the address space */
		{UINT64_MAX - 8191, at, 3},
		{0x800000, user, 1},	   /* a client's memory */
		{0x800000, end - PAGE, 2}, /* partly outside */
		{0x800000, end, 1},
		{0x800000, UINT64_MAX - 4095, 1},
		{0x800000, 0, 1},
		{V_QPC, at, 1}, /* mapped already: whole, first page, last page, surrounding */
		{V_QPC - PAGE, at, 2},
		{V_QPC + PAGE, at, 2},
		{V_QPC - PAGE, at, 8},
	};
	uint32_t count = r->h->core->ctxmgt->map[HCA_ICM_CTX].count;

	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		/* after and before a valid one: neither is mapped */
		const struct chunk good = {0xa00000, at, 1};
		const struct chunk behind[] = {good, bad[i]}, before[] = {bad[i], good};

		assert_int_equal(map_list(r, HCA_ICM_CTX, &bad[i], 1), HCA_STAT_BAD_PARAM);
		assert_int_equal(map_list(r, HCA_ICM_CTX, behind, 2), HCA_STAT_BAD_PARAM);
		assert_int_equal(map_list(r, HCA_ICM_CTX, before, 2), HCA_STAT_BAD_PARAM);
		assert_int_equal(r->h->core->ctxmgt->map[HCA_ICM_CTX].count, count);
	}
	/* A list that overlaps itself. */
	const struct chunk self[] = {{0xa00000, at, 3}, {0xa02000, at, 1}};

	assert_int_equal(map_list(r, HCA_ICM_CTX, self, 2), HCA_STAT_BAD_PARAM);
	assert_int_equal(map(r, 0, 0xa00000, spare(r, 0), 1), HCA_STAT_BAD_PARAM);
	assert_int_equal(map(r, 3, 0xa00000, spare(r, 0), 1), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, 0, V_QPC, 2), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_QPC, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_QPC + 1, 2), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, UINT64_MAX - 4095, 2), HCA_STAT_BAD_PARAM);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_QPC, UINT32_MAX), HCA_STAT_BAD_PARAM);
	assert_int_equal(r->h->core->ctxmgt->map[HCA_ICM_CTX].count, count);
}

/* Random chunks, compared with a plain page map. */
static void
at_random(void **state)
{
	enum {
		PAGES = 200
	};
	static int first[PAGES]; /* index of the first page of its chunk, or -1 */
	struct rig *r = *state;
	unsigned int seed = 4711;

	for (int i = 0; i < PAGES; i++)
		first[i] = -1;
	for (unsigned int round = 0; round < 3000; round++) {
		int at = rand_r(&seed) % PAGES, n = 1 + rand_r(&seed) % 9, want = HCA_STAT_OK;
		uint64_t virt = 0xb00000 + (uint64_t)at * PAGE;

		if (at + n > PAGES)
			continue;
		if (rand_r(&seed) & 1) {
			for (int i = at; i < at + n; i++)
				want = first[i] >= 0 ? HCA_STAT_BAD_PARAM : want;
			assert_int_equal(map(r, HCA_ICM_CTX, virt, spare(r, at % 16), n), want);
			for (int i = at; i < at + n && want == HCA_STAT_OK; i++)
				first[i] = at;
			continue;
		}
		/* Only whole chunks, without gaps. */
		for (int i = at; i < at + n; i++)
			want = first[i] < at ? HCA_STAT_BAD_PARAM : want;
		if (at + n < PAGES && first[at + n] >= 0 && first[at + n] < at + n)
			want = HCA_STAT_BAD_PARAM;
		assert_int_equal(unmap(r, HCA_ICM_CTX, virt, n), want);
		for (int i = at; i < at + n && want == HCA_STAT_OK; i++)
			first[i] = -1;
	}
}

/* ---- tables in use ---- */

static int
make_srq(struct rig *r)
{
	const uint32_t bytes = 1u << (3 + 7);
	uint32_t key =
		rig_mr(r, 22, RIG_PD, r->user + (640u << 10), bytes + sizeof(struct hca_rq_record));
	struct hca_srqc *c = (void *)r->in;

	memset(c, 0, sizeof(*c));
	hca_srqc_set_start(c, (uintptr_t)r->user + (640u << 10));
	c->logsize_usrpage = hca_cpu_to_be32(3u << 24 | RIG_PAGE);
	c->stride = hca_cpu_to_be32(7u << 24 | 7);
	c->pd = hca_cpu_to_be32(RIG_PD);
	c->lkey = hca_cpu_to_be32(key);
	c->srqn = hca_cpu_to_be32(SRQN);
	return rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN);
}

/* For every table: its memory cannot be unmapped while it holds a live context. */
static void
live_contexts_hold_it(void **state)
{
	struct rig *r = *state;

	rig_qp_world(r);
	assert_int_equal(rig_to_init(r, 5), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_SRQC, 1), HCA_STAT_OK);
	assert_int_equal(make_srq(r), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(map(r, HCA_ICM_CTX, V_SRQC, spare(r, 0), 1), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 22, 0, 0), HCA_STAT_OK);
	assert_int_equal(make_srq(r), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_QPC, 2), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_CQC, 1), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_EQC, 1), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_SRQC, 1), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(unmap(r, HCA_ICM_TPT, V_MPT, 2), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(unmap(r, HCA_ICM_TPT, V_MTT, 8), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_SRQ, 0, SRQN, 0, 0), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_SRQC, 1), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, RIG_QPN(5), 0, 0), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_QPC, 2), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, 2, 0, 0), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_CQC, 1), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, 3, 0, 0), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_CQC, 1), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_EQ, 0, 0, 0, 0), HCA_STAT_OK);
	assert_int_equal(unmap(r, HCA_ICM_CTX, V_EQC, 1), HCA_STAT_OK);
}

/* ---- copies of contexts ---- */

static const struct hca_qpc *
qpc(struct rig *r, uint32_t qpi)
{
	return (const void *)(r->driver + qpi * HCA_QPC_SIZE);
}

static uint32_t
state_in_icm(struct rig *r, uint32_t qpi)
{
	return HCA_QPC_STATE(hca_be32_to_cpu(qpc(r, qpi)->flags));
}

/* The copy is updated at each transition and, with the current PSNs, at QUERY. */
static void
qp_is_written_back(void **state)
{
	struct rig *r = *state;
	struct hca_qp *qp = &r->h->core->qp[5];

	rig_qp_world(r);
	assert_int_equal(rig_to_init(r, 5), HCA_STAT_OK);
	assert_int_equal(state_in_icm(r, 5), HCA_QPS_INIT);
	assert_int_equal(hca_be32_to_cpu(qpc(r, 5)->local_qpn), RIG_QPN(5));
	assert_int_equal(rig_to_rtr(r, 5), HCA_STAT_OK);
	assert_int_equal(state_in_icm(r, 5), HCA_QPS_RTR);
	assert_int_equal(hca_be32_to_cpu(qpc(r, 5)->remote_qpn), 0x123456);
	assert_int_equal(rig_to_rts(r, 5), HCA_STAT_OK);
	assert_int_equal(state_in_icm(r, 5), HCA_QPS_RTS);
	assert_int_equal(hca_be32_to_cpu(qpc(r, 5)->next_send_psn), 0xabcdef);
	/* The engine advances; the copy in ICM follows at the query. */
	qp->req_tx.next_psn = qp->req_tx.max_psn = 0xabcdf5;
	qp->sq_una = 0xabcdf2;
	qp->ee.epsn = 0x654399;
	assert_int_equal(hca_be32_to_cpu(qpc(r, 5)->next_send_psn), 0xabcdef);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, RIG_QPN(5)), HCA_STAT_OK);
	assert_memory_equal(qpc(r, 5), r->out, HCA_QPC_SIZE);
	assert_int_equal(hca_be32_to_cpu(qpc(r, 5)->next_send_psn), 0xabcdf5);
	assert_int_equal(hca_be32_to_cpu(qpc(r, 5)->last_acked_psn), 0xabcdf2);
	assert_int_equal(HCA_QPC_EPSN(hca_be32_to_cpu(qpc(r, 5)->rnr_nextrecvpsn)), 0x654399);
	rig_qpc(r, 5, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_RTS2SQD_QPEE, RIG_QPN(5)), HCA_STAT_OK);
	assert_int_equal(state_in_icm(r, 5), HCA_QPS_SQD);
	assert_int_equal(rig_cmd(r, HCA_CMD_2ERR_QPEE, 3, RIG_QPN(5), 0, 0), HCA_STAT_OK);
	assert_int_equal(state_in_icm(r, 5), HCA_QPS_ERR);
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, RIG_QPN(5), 0, 0), HCA_STAT_OK);
	assert_int_equal(state_in_icm(r, 5), HCA_QPS_RST);
	/* The neighbouring entries belong to no QP. */
	for (uint32_t i = 0; i < HCA_QPC_SIZE; i++) {
		assert_int_equal(((const uint8_t *)qpc(r, 4))[i], 0);
		assert_int_equal(((const uint8_t *)qpc(r, 6))[i], 0);
	}
}

/*
 * CQ, EQ, SRQ, MPT and MTT entries: written when the device takes ownership, marked when it gives
 * it up.
 */
static void
others_are_written_back(void **state)
{
	struct rig *r = *state;
	const struct hca_cqc *cqc = (const void *)(r->driver + 2 * PAGE);
	const struct hca_eqc *eqc = (const void *)(r->driver + 3 * PAGE);
	const struct hca_mpt *mpt = (const void *)(r->driver + 4 * PAGE);
	const hca_be64 *mtt = (const void *)(r->driver + 6 * PAGE);

	rig_qp_world(r);
	assert_int_equal(hca_be32_to_cpu(cqc[2].cqn), 2);
	assert_int_equal(hca_be32_to_cpu(cqc[3].cqn), 3);
	assert_int_not_equal(hca_be32_to_cpu(eqc[0].flags), 0);
	assert_int_equal(hca_be32_to_cpu(mpt[20].key), HCA_KEY_MAKE(0x2a, 20, 0x33));
	assert_int_equal(hca_be64_to_cpu(mpt[20].length), 1024);
	assert_true(hca_be64_to_cpu(mtt[0]) != 0);
	assert_int_equal(make_srq(r), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(((struct hca_srqc *)(void *)r->srqc)[2].srqn), SRQN);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, 2, 0, 0), HCA_STAT_OK);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_CQ, 2), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 20, 0, 0), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(mpt[20].key), 0);
	assert_int_equal(hca_be32_to_cpu(mpt[21].key), HCA_KEY_MAKE(0x2a, 21, 0x33));
	/* a CQ still reports to this EQ */
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_EQ, 0, 0, 0, 0), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, 3, 0, 0), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_EQ, 0, 0, 0, 0), HCA_STAT_OK);
	assert_int_equal(hca_be32_to_cpu(eqc[0].flags), 0);
}

/* ---- the special QP ---- */

static int
gsi(struct rig *r, uint8_t which, uint32_t qpn)
{
	return rig_cmd(r, HCA_CMD_CONF_SPECIAL_QP, which, qpn, 0, 0);
}

static int
make_ud(struct rig *r, uint32_t qpi)
{
	rig_qpc(r, qpi, HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT | HCA_QP_ATTR_QKEY)->flags =
		hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_UD, HCA_MIG_MIGRATED, 0) |
				HCA_QPC_PRIVILEGED);
	return rig_mbox(r, HCA_CMD_RST2INIT_QPEE, RIG_QPN(qpi));
}

/* ---- privilege ---- */

static int
with_qkey(struct rig *r, uint32_t op, uint32_t qkey, uint32_t flags)
{
	struct hca_qpc *q =
		rig_qpc(r, 5, HCA_QP_ATTR_QKEY | HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT);

	q->qkey = hca_cpu_to_be32(qkey);
	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_UD, HCA_MIG_MIGRATED, 0) | flags);
	return rig_mbox(r, op, RIG_QPN(5));
}

/* Q_Keys with the top bit set are reserved for QPs that were privileged when they left RESET. */
static void
controlled_qkeys(void **state)
{
	const uint32_t top = HCA_QKEY_CONTROLLED, some = 0x7fffffff;
	struct rig *r = *state;

	rig_qp_world(r);
	assert_int_equal(with_qkey(r, HCA_CMD_RST2INIT_QPEE, top, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(with_qkey(r, HCA_CMD_RST2INIT_QPEE, HCA_QKEY_GSI, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(hca_counter_value(r->h, HCA_CTR_qp_qkey_refused), 2);
	assert_int_equal(with_qkey(r, HCA_CMD_RST2INIT_QPEE, some, 0), HCA_STAT_OK);
	assert_int_equal(with_qkey(r, HCA_CMD_INIT2INIT_QPEE, top, HCA_QPC_PRIVILEGED),
			 HCA_STAT_BAD_PARAM);
	assert_int_equal(r->h->core->qp[5].cfg.qkey, some);
	assert_int_equal(gsi(r, HCA_CONF_SPECIAL_GSI, RIG_QPN(5)), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, RIG_QPN(5), 0, 0), HCA_STAT_OK);
	assert_int_equal(with_qkey(r, HCA_CMD_RST2INIT_QPEE, top, HCA_QPC_PRIVILEGED), HCA_STAT_OK);
	assert_int_equal(with_qkey(r, HCA_CMD_INIT2INIT_QPEE, UINT32_MAX, 0), HCA_STAT_OK);
	assert_int_equal(r->h->core->qp[5].cfg.qkey, UINT32_MAX);
	assert_int_equal(gsi(r, HCA_CONF_SPECIAL_GSI, RIG_QPN(5)), HCA_STAT_OK);
	assert_int_equal(hca_counter_value(r->h, HCA_CTR_qp_qkey_refused), 3);
}

static void
special_qp(void **state)
{
	const uint32_t nobody[] = {1, 0xffffff, RIG_QPN(9), RIG_QPN(5) ^ 0x40000, UINT32_MAX};
	struct rig *r = *state;

	rig_qp_world(r);
	assert_int_equal(make_ud(r, 5), HCA_STAT_OK);
	assert_int_equal(rig_to_init(r, 6), HCA_STAT_OK);
	for (unsigned int i = 0; i < RTE_DIM(nobody); i++)
		assert_int_not_equal(gsi(r, HCA_CONF_SPECIAL_GSI, nobody[i]), HCA_STAT_OK);
	assert_int_equal(gsi(r, HCA_CONF_SPECIAL_GSI, RIG_QPN(6)), HCA_STAT_BAD_PARAM);
	assert_int_equal(gsi(r, 0, RIG_QPN(5)), HCA_STAT_BAD_PARAM);
	assert_int_equal(gsi(r, 2, RIG_QPN(5)), HCA_STAT_BAD_PARAM);
	assert_int_equal(r->h->core->ctxmgt->gsi_qpn, 0);
	assert_int_equal(gsi(r, HCA_CONF_SPECIAL_GSI, RIG_QPN(5)), HCA_STAT_OK);
	assert_int_equal(r->h->core->ctxmgt->gsi_qpn, RIG_QPN(5));
	/* a refused command changes nothing; another QP replaces it; 0 removes it */
	assert_int_not_equal(gsi(r, HCA_CONF_SPECIAL_GSI, RIG_QPN(6)), HCA_STAT_OK);
	assert_int_equal(r->h->core->ctxmgt->gsi_qpn, RIG_QPN(5));
	assert_int_equal(make_ud(r, 7), HCA_STAT_OK);
	assert_int_equal(gsi(r, HCA_CONF_SPECIAL_GSI, RIG_QPN(7)), HCA_STAT_OK);
	assert_int_equal(r->h->core->ctxmgt->gsi_qpn, RIG_QPN(7));
	/* destroying another QP has no effect on it, destroying it does */
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, RIG_QPN(5), 0, 0), HCA_STAT_OK);
	assert_int_equal(r->h->core->ctxmgt->gsi_qpn, RIG_QPN(7));
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, RIG_QPN(7), 0, 0), HCA_STAT_OK);
	assert_int_equal(r->h->core->ctxmgt->gsi_qpn, 0);
	assert_int_equal(make_ud(r, 7), HCA_STAT_OK);
	assert_int_equal(gsi(r, HCA_CONF_SPECIAL_GSI, RIG_QPN(7)), HCA_STAT_OK);
	assert_int_equal(gsi(r, HCA_CONF_SPECIAL_GSI, 0), HCA_STAT_OK);
	assert_int_equal(r->h->core->ctxmgt->gsi_qpn, 0);
	assert_int_equal(gsi(r, HCA_CONF_SPECIAL_GSI, RIG_QPN(7)), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_CLOSE_HCA, 0, 0, 0, 0), HCA_STAT_OK);
	assert_int_equal(r->h->core->ctxmgt->gsi_qpn, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(pages_out_of_order),
		T(odd_chunks),
		T(refused),
		T(at_random),
		T(live_contexts_hold_it),
		T(qp_is_written_back),
		T(others_are_written_back),
		T(special_qp),
		T(controlled_qkeys),
#undef T
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
