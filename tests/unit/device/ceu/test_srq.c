/* SPDX-License-Identifier: BSD-3-Clause */

/* SW2HW_SRQ, HW2SW_SRQ, QUERY_SRQ, ARM_SRQ, and QPs that use one. */

#include <string.h>

#include "ceu/ceu.h"
#include "../rig.h"

#define SRQI 5u
#define SRQN HCA_QPN_MAKE(0x1234, SRQI, RIG_LOG_SRQS)
#define KEY HCA_KEY_MAKE(0x2a, 22, 0x33)
#define U_SRQ (640u << 10)
#define SIZE_LOG 3u
#define STRIDE_LOG 7u
#define BYTES (1u << (SIZE_LOG + STRIDE_LOG))
#define XRCD 0x4321u
#define QPI 3u

static struct hca_srq *
srq(struct rig *r)
{
	return &r->h->core->srq[SRQI];
}

static struct hca_rq_record *
record(struct rig *r)
{
	return (void *)(r->user + U_SRQ + BYTES);
}

static struct hca_srqc *
fill(struct rig *r)
{
	struct hca_srqc *c = (void *)r->in;

	memset(c, 0, sizeof(*c));
	hca_srqc_set_start(c, (uintptr_t)r->user + U_SRQ);
	c->logsize_usrpage = hca_cpu_to_be32(SIZE_LOG << 24 | RIG_PAGE);
	c->stride = hca_cpu_to_be32(STRIDE_LOG << 24 | 7);
	c->pd = hca_cpu_to_be32(RIG_PD);
	c->lkey = hca_cpu_to_be32(KEY);
	c->srqn = hca_cpu_to_be32(SRQN);
	return c;
}

static int
create(struct rig *r)
{
	fill(r);
	return rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN);
}

static int
create_xrc(struct rig *r)
{
	struct hca_srqc *c = fill(r);

	c->xrcd = hca_cpu_to_be32(HCA_SRQC_XRCD_VALID | XRCD);
	c->xrc_cqn = hca_cpu_to_be32(3);
	return rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN);
}

static int
destroy(struct rig *r)
{
	return rig_cmd(r, HCA_CMD_HW2SW_SRQ, 0, SRQN, 0, 0);
}

static int
arm(struct rig *r, uint64_t limit)
{
	return rig_cmd(r, HCA_CMD_ARM_SRQ, 0, SRQN, limit, 0);
}

static const struct hca_srqc *
query(struct rig *r)
{
	memset(r->out, 0xee, 64);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_SRQ, SRQN), HCA_STAT_OK);
	/* the ICM holds the same */
	assert_memory_equal(r->srqc + SRQI * HCA_SRQC_SIZE, r->out, HCA_SRQC_SIZE);
	return (const void *)r->out;
}

static void
post(struct rig *r, uint32_t producer)
{
	__atomic_store_n(&record(r)->producer, hca_cpu_to_le32(producer), __ATOMIC_RELEASE);
}

static int
setup(void **state)
{
	struct rig *r = rig_new(true);

	rig_qp_world(r);
	rig_mr(r, 22, RIG_PD, r->user + U_SRQ, BYTES + sizeof(struct hca_rq_record));
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static uint32_t
usage(struct rig *r)
{
	struct hca_usage u;

	hca_usage(r->h, &u);
	return u.srqs;
}

/* ---- life ---- */

static void
comes_and_goes(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(create(r), HCA_STAT_OK);
		assert_ptr_equal(hca_srq_find(r->h->core, SRQN), srq(r));
		assert_int_equal(usage(r), 1);
		assert_int_equal(create(r), HCA_STAT_BAD_RES_STATE);
		assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 22, 0, 0),
				 HCA_STAT_RESOURCE_BUSY);
		assert_int_equal(destroy(r), HCA_STAT_OK);
		assert_null(hca_srq_find(r->h->core, SRQN));
		assert_int_equal(usage(r), 0);
		assert_int_equal(r->h->core->vtp.mpt[22].users, 0);
		assert_int_equal(destroy(r), HCA_STAT_BAD_INDEX);
	}
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_MPT, 0, 22, 0, 0), HCA_STAT_OK);
}

static void
queried(void **state)
{
	struct rig *r = *state;
	uint64_t next;
	const struct hca_srqc *c;

	assert_int_equal(create(r), HCA_STAT_OK);
	c = query(r);
	assert_int_equal(hca_be32_to_cpu(c->flags), 0);
	assert_int_equal(hca_srqc_start(c), (uintptr_t)r->user + U_SRQ);
	assert_int_equal(hca_be32_to_cpu(c->logsize_usrpage), SIZE_LOG << 24 | RIG_PAGE);
	assert_int_equal(hca_be32_to_cpu(c->stride), STRIDE_LOG << 24 | 7);
	assert_int_equal(hca_be32_to_cpu(c->pd), RIG_PD);
	assert_int_equal(hca_be32_to_cpu(c->lkey), KEY);
	assert_int_equal(hca_be32_to_cpu(c->srqn), SRQN);
	assert_int_equal(c->limit | c->xrcd | c->xrc_cqn | c->producer | c->consumer, 0);
	/* up to where the device has read */
	post(r, 4);
	assert_int_equal(hca_srq_available(srq(r), &next), 1);
	assert_int_equal(hca_srq_take(srq(r), next, 128), 0);
	c = query(r);
	assert_int_equal(hca_be32_to_cpu(c->producer), 4);
	assert_int_equal(hca_be32_to_cpu(c->consumer), 1);
	post(r, 40);
	hca_srq_count(srq(r));
	c = query(r);
	assert_int_equal(HCA_SRQC_STATE(hca_be32_to_cpu(c->flags)), HCA_SRQC_STATE_ERR);
	assert_int_equal(destroy(r), HCA_STAT_OK);
}

/* Every field that can be invalid, one at a time. */
#define BAD_LIST(X) \
	X(c->srqn = hca_cpu_to_be32(SRQN ^ 0x100)) \
	X(c->srqn = 0) \
	X(c->logsize_usrpage = hca_cpu_to_be32(SIZE_LOG << 24 | (RIG_PAGE + 1))) \
	X(c->logsize_usrpage = hca_cpu_to_be32(SIZE_LOG << 24)) \
	X(c->logsize_usrpage = hca_cpu_to_be32(SIZE_LOG << 24 | 0x800)) \
	X(c->logsize_usrpage = hca_cpu_to_be32(16u << 24 | RIG_PAGE)) \
	X(c->logsize_usrpage = hca_cpu_to_be32(255u << 24 | RIG_PAGE)) \
	X(c->logsize_usrpage = hca_cpu_to_be32((SIZE_LOG + 1) << 24 | RIG_PAGE)) \
	X(c->stride = hca_cpu_to_be32(5u << 24)) \
	X(c->stride = hca_cpu_to_be32(10u << 24)) \
	X(c->stride = hca_cpu_to_be32(255u << 24)) \
	X(c->stride = hca_cpu_to_be32(STRIDE_LOG << 24 | 8)) \
	X(c->stride = hca_cpu_to_be32(STRIDE_LOG << 24 | 255)) \
	X(c->pd = hca_cpu_to_be32(RIG_PD + 1)) \
	X(c->pd = hca_cpu_to_be32(RIG_KPD)) \
	X(c->lkey = hca_cpu_to_be32(KEY ^ 1)) \
	X(c->lkey = hca_cpu_to_be32(HCA_KEY_MAKE(0x2a, 21, 0x33))) \
	X(c->lkey = 0) \
	X(hca_srqc_set_start(c, (uintptr_t)r->user + U_SRQ + 64)) \
	X(hca_srqc_set_start(c, (uintptr_t)r->user + U_SRQ + 4096)) \
	X(hca_srqc_set_start(c, UINT64_MAX - 4095)) \
	X(hca_srqc_set_start(c, 0)) \
	X(c->limit = hca_cpu_to_be32((1u << SIZE_LOG) + 1)) \
	X(c->xrcd = hca_cpu_to_be32(XRCD)) \
	X(c->xrcd = hca_cpu_to_be32(HCA_SRQC_XRCD_VALID | 0x1000000 | XRCD); \
	  c->xrc_cqn = hca_cpu_to_be32(3)) \
	X(c->xrcd = hca_cpu_to_be32(HCA_SRQC_XRCD_VALID | XRCD); c->xrc_cqn = hca_cpu_to_be32(4)) \
	X(c->xrcd = hca_cpu_to_be32(HCA_SRQC_XRCD_VALID | XRCD); c->xrc_cqn = UINT32_MAX)

static void
bad_fields(void **state)
{
	struct rig *r = *state;
	struct hca_srqc *c;

#define X(change) \
	c = fill(r); \
	change; \
	rig_remember(r, QPI); \
	if (rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN) != HCA_STAT_BAD_PARAM) \
		fail_msg("accepted: " #change); \
	rig_unchanged(r, QPI); \
	assert_int_equal(usage(r), 0);
	BAD_LIST(X)
#undef X
	assert_int_equal(create(r), HCA_STAT_OK);
}

static void
bad_numbers(void **state)
{
	const uint32_t bad[] = {0, SRQN ^ (1u << 20), SRQN | 1u << 24, SRQI, UINT32_MAX};
	struct rig *r = *state;

	fill(r)->srqn = 0;
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_SRQ, 0), HCA_STAT_BAD_INDEX);
	fill(r)->srqn = hca_cpu_to_be32(SRQN | 1u << 24);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_SRQ, SRQN | 1u << 24), HCA_STAT_BAD_INDEX);
	assert_int_equal(create(r), HCA_STAT_OK);
	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(rig_cmd(r, HCA_CMD_ARM_SRQ, 0, bad[i], 1, 0), HCA_STAT_BAD_INDEX);
		assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_SRQ, bad[i]), HCA_STAT_BAD_INDEX);
		assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_SRQ, 0, bad[i], 0, 0),
				 HCA_STAT_BAD_INDEX);
	}
	assert_int_equal(usage(r), 1);
}

/* ---- the limit ---- */

/* Number of events of this type about the SRQ in the EQ. */
static unsigned int
events(struct rig *r, uint8_t type)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 5; i++)
		rig_poll(r);
	for (uint32_t i = 0; i < 64; i++) {
		const struct hca_eqe *e = rig_eqe(r, i);

		n += e->owner == HCA_OWNER_SW && e->type == type &&
		     hca_le32_to_cpu(e->object) == SRQN;
	}
	return n;
}

static void
armed(void **state)
{
	struct rig *r = *state;
	const struct hca_srqc *c;

	assert_int_equal(create(r), HCA_STAT_OK);
	post(r, 5);
	assert_int_equal(arm(r, (1u << SIZE_LOG) + 1), HCA_STAT_BAD_PARAM);
	assert_int_equal(arm(r, UINT64_C(1) << 32), HCA_STAT_BAD_PARAM);
	assert_int_equal(srq(r)->limit, 0);
	assert_int_equal(arm(r, 5), HCA_STAT_OK);
	c = query(r);
	assert_int_equal(hca_be32_to_cpu(c->limit), 5);
	assert_int_equal(hca_be32_to_cpu(c->flags), HCA_SRQC_LIMIT_ARMED);
	assert_int_equal(events(r, HCA_EVENT_SRQ_LIMIT), 0);
	assert_int_equal(arm(r, 0), HCA_STAT_OK);
	assert_int_equal(srq(r)->limit, 0);
	assert_int_equal(events(r, HCA_EVENT_SRQ_LIMIT), 0);
}

/* Armed when there are fewer receives already: the event comes at once, and once. */
static void
armed_too_late(void **state)
{
	struct rig *r = *state;

	assert_int_equal(create(r), HCA_STAT_OK);
	post(r, 5);
	assert_int_equal(arm(r, 6), HCA_STAT_OK);
	assert_int_equal(events(r, HCA_EVENT_SRQ_LIMIT), 1);
	assert_int_equal(srq(r)->limit, 0);
	assert_int_equal(HCA_SRQC_STATE(hca_be32_to_cpu(query(r)->flags)), 0);
}

/* Pending events of a destroyed SRQ are not reported for the next one. */
static void
events_end_with_it(void **state)
{
	struct rig *r = *state;

	assert_int_equal(create(r), HCA_STAT_OK);
	hca_eq_raise_srq(r->h->core, HCA_STAGE_EE, HCA_EVENT_SRQ_CATAS, SRQI);
	hca_srq_free(r->h->core, SRQI);
	assert_int_equal(create(r), HCA_STAT_OK);
	assert_int_equal(events(r, HCA_EVENT_SRQ_CATAS), 0);
}

/* ---- QPs ---- */

static int
qp_on_srq(struct rig *r, uint32_t service, uint32_t srqn, uint32_t rq_len)
{
	uint32_t mask = HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT;
	struct hca_qpc *q;

	mask |= service == HCA_ST_UD ? HCA_QP_ATTR_QKEY : HCA_QP_ATTR_ACCESS_FLAGS;
	q = rig_qpc(r, QPI, mask);
	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, service, HCA_MIG_MIGRATED, 0));
	q->srqn = hca_cpu_to_be32(HCA_QPC_SRQ_VALID | srqn);
	q->rcv_wqe_len = hca_cpu_to_be32(rq_len);
	q->rcv_wqe_base_l = 0;
	return rig_mbox(r, HCA_CMD_RST2INIT_QPEE, RIG_QPN(QPI));
}

static void
used_by_a_qp(void **state)
{
	static const uint32_t service[] = {HCA_ST_RC, HCA_ST_UD};
	struct rig *r = *state;

	assert_int_equal(create(r), HCA_STAT_OK);
	for (unsigned int i = 0; i < RTE_DIM(service); i++) {
		assert_int_equal(qp_on_srq(r, service[i], SRQN, 0), HCA_STAT_OK);
		assert_ptr_equal(r->h->core->qp[QPI].ee.srq, srq(r));
		assert_int_equal(r->h->core->qp[QPI].ee.rq.bytes, 0);
		assert_int_equal(destroy(r), HCA_STAT_RESOURCE_BUSY);
		assert_ptr_equal(hca_srq_find(r->h->core, SRQN), srq(r));
		assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, RIG_QPN(QPI), 0, 0),
				 HCA_STAT_OK);
	}
	assert_int_equal(destroy(r), HCA_STAT_OK);
}

/* Refused, and the SRQ has no additional user. */
static void
not_for_this_qp(void **state)
{
	struct rig *r = *state;

	assert_int_equal(create(r), HCA_STAT_OK);
	assert_int_equal(qp_on_srq(r, HCA_ST_UC, SRQN, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(qp_on_srq(r, HCA_ST_RC, SRQN ^ 0x1000, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(qp_on_srq(r, HCA_ST_RC, SRQN, 512), HCA_STAT_BAD_PARAM);
	srq(r)->usr_page++;
	assert_int_equal(qp_on_srq(r, HCA_ST_RC, SRQN, 0), HCA_STAT_BAD_PARAM);
	srq(r)->usr_page--;
	assert_int_equal(srq(r)->users, 0);
	assert_int_equal(destroy(r), HCA_STAT_OK);
	assert_int_equal(qp_on_srq(r, HCA_ST_RC, SRQN, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(create_xrc(r), HCA_STAT_OK);
	assert_int_equal(qp_on_srq(r, HCA_ST_RC, SRQN, 0), HCA_STAT_BAD_PARAM);
}

/* An XRC SRQ holds a reference to its CQ. */
static void
xrc(void **state)
{
	struct rig *r = *state;
	const struct hca_srqc *c;

	assert_int_equal(create_xrc(r), HCA_STAT_OK);
	c = query(r);
	assert_int_equal(hca_be32_to_cpu(c->xrcd), HCA_SRQC_XRCD_VALID | XRCD);
	assert_int_equal(hca_be32_to_cpu(c->xrc_cqn), 3);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, 3, 0, 0), HCA_STAT_RESOURCE_BUSY);
	assert_int_equal(destroy(r), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_CQ, 0, 3, 0, 0), HCA_STAT_OK);
}

/* The CQ of an XRC SRQ is its owner's. */
static void
cq_of_another_client(void **state)
{
	struct rig *r = *state;

	r->h->core->cq[3].usr_page++;
	assert_int_equal(create_xrc(r), HCA_STAT_BAD_PARAM);
	assert_int_equal(usage(r), 0);
	r->h->core->cq[3].usr_page--;
	assert_int_equal(create_xrc(r), HCA_STAT_OK);
}

/* Two SRQs that have the same number one after the other differ in their generation. */
static void
generations(void **state)
{
	struct rig *r = *state;
	uint32_t last = srq(r)->generation;

	for (unsigned int i = 0; i < 6; i++) {
		assert_int_equal(i & 1 ? create_xrc(r) : create(r), HCA_STAT_OK);
		assert_int_not_equal(srq(r)->generation, last);
		last = srq(r)->generation;
		assert_int_equal(i < 3 ? destroy(r)
				       : rig_cmd(r, HCA_CMD_CLOSE_DOMAIN, 0, RIG_PAGE, 0, 0),
				 HCA_STAT_OK);
		assert_int_equal(usage(r), 0);
		if (i < 3)
			continue;
		rig_cq(r, 3, 4);
		rig_mr(r, 22, RIG_PD, r->user + U_SRQ, BYTES + sizeof(struct hca_rq_record));
	}
}

/* CQ 3 overruns while an XRC SRQ completes to cqn. */
static void
overrun(struct rig *r, uint32_t cqn)
{
	struct hca_cq_batch b = {0};
	struct hca_cqe *c;

	assert_int_equal(create_xrc(r), HCA_STAT_OK);
	srq(r)->cqn = cqn;
	record(r)->producer = hca_cpu_to_le32(1);
	while ((c = hca_cq_reserve(r->h->core, 3, &b, false, HCA_STAGE_EE)) != NULL)
		hca_cq_publish(c, HCA_OP_SEND);
	hca_cq_batch_end(r->h->core, &b, HCA_STAGE_EE);
	for (unsigned int i = 0; i < 64; i++)
		rig_poll(r);
}

/* Receives of the SRQ can no longer be completed, so it provides no more WQEs. */
static void
its_cq_overruns(void **state)
{
	struct rig *r = *state;
	uint64_t next;

	overrun(r, 3);
	assert_int_equal(hca_srq_available(srq(r), &next), -1);
	assert_int_equal(HCA_SRQC_STATE(hca_be32_to_cpu(query(r)->flags)), HCA_SRQC_STATE_ERR);
	assert_int_equal(destroy(r), HCA_STAT_OK);
}

static void
another_cq_overruns(void **state)
{
	struct rig *r = *state;
	uint64_t next;

	overrun(r, 2);
	assert_int_equal(hca_srq_available(srq(r), &next), 1);
	assert_int_equal(HCA_SRQC_STATE(hca_be32_to_cpu(query(r)->flags)), HCA_SRQC_STATE_OK);
}

/* The late work of an overrun does not affect the users of the next CQ of that number. */
static void
cq_number_is_reused_after_an_overrun(void **state)
{
	struct rig *r = *state;
	struct hca_ceu *u = r->h->core->ceu;

	assert_int_equal(rig_to_init(r, QPI), HCA_STAT_OK);
	assert_int_equal(create_xrc(r), HCA_STAT_OK);
	u->failing_cqi = 3;
	u->failing_at = 0;
	u->failing = true;
	rig_poll(r);
	assert_false(u->failing);
	assert_int_equal(hca_srq_state(srq(r)), HCA_SRQ_LIVE);
	assert_int_equal(r->h->core->qp[QPI].cfg.state, HCA_QPS_INIT);
}

/* CLOSE_HCA destroys all SRQs, and they are free after the next INIT_HCA. */
static void
hca_closes(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 6; i++) {
		assert_int_equal(i & 1 ? create_xrc(r) : create(r), HCA_STAT_OK);
		if (!(i & 1))
			assert_int_equal(qp_on_srq(r, HCA_ST_RC, SRQN, 0), HCA_STAT_OK);
		assert_int_equal(rig_cmd(r, HCA_CMD_CLOSE_HCA, 0, 0, 0, 0), HCA_STAT_OK);
		assert_int_equal(usage(r), 0);
		for (unsigned int k = 0; k <= r->h->core->cq_mask; k++)
			assert_int_equal(r->h->core->cq[k].users, 0);
		r->next_mtt = 0;
		rig_init_hca(r);
		rig_qp_world(r);
		rig_mr(r, 22, RIG_PD, r->user + U_SRQ, BYTES + sizeof(struct hca_rq_record));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(comes_and_goes),
		T(queried),
		T(bad_fields),
		T(bad_numbers),
		T(armed),
		T(armed_too_late),
		T(events_end_with_it),
		T(used_by_a_qp),
		T(not_for_this_qp),
		T(xrc),
		T(cq_of_another_client),
		T(generations),
		T(its_cq_overruns),
		T(another_cq_overruns),
		T(cq_number_is_reused_after_an_overrun),
		T(hca_closes),
#undef T
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
