/* SPDX-License-Identifier: BSD-3-Clause */

/* SET_CONGESTION with connected QPs: their algorithm, and the ECN field of their headers. */

#include "cc/cc.h"
#include "cc/cc_names.h"
#include "../rig.h"

#define NONE hca_cc_number("none")
#define DCQCN hca_cc_number("dcqcn")

static int
setup(void **state)
{
	*state = rig_new(true);
	rig_gid(*state);
	rig_qp_world(*state);
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static void
to_rtr(struct rig *r, uint32_t qpi)
{
	assert_int_equal(rig_to_init(r, qpi), HCA_STAT_OK);
	assert_int_equal(rig_to_rtr(r, qpi), HCA_STAT_OK);
}

static int
set(struct rig *r, uint64_t number)
{
	return rig_cmd(r, HCA_CMD_SET_CONGESTION, 0, 0, number, 0);
}

/* The TOS byte of a QP's frames, whose checksum is right. */
static uint8_t
tos_of(struct rig *r, uint32_t qpi)
{
	const struct hca_udp_template *t = &r->h->core->qp[qpi].encap.tmpl;
	uint8_t frame[sizeof(t->bytes)];
	uint32_t sum = 0;

	assert_int_equal(t->ip_version, 4);
	hca_udp_template_put(t, 100, frame);
	for (unsigned int i = 0; i < HCA_IPV4_LEN; i += 2)
		sum += hca_get_be16(frame + t->l3 + i);
	assert_int_equal(hca_ip_fold(sum), 0xffff);
	return frame[t->l3 + 1];
}

static const char *
name_of(struct rig *r, uint32_t qpi)
{
	const struct hca_cc_ops *cc = hca_cc_of(&r->h->pipe[0], qpi);

	return cc != NULL ? cc->name : "none";
}

static void
qps_follow(void **state)
{
	struct rig *r = *state;
	uint8_t tos;

	to_rtr(r, 5);
	tos = tos_of(r, 5);
	assert_int_equal(tos & 3, 0);
	assert_string_equal(name_of(r, 5), "none");
	assert_int_equal(set(r, DCQCN), HCA_STAT_OK);
	assert_string_equal(hca_congestion(r->h), "dcqcn");
	assert_string_equal(name_of(r, 5), "dcqcn");
	assert_int_equal(tos_of(r, 5), tos | HCA_ECN_ECT0);
	assert_int_equal(hca_cc_life(&r->h->pipe[0], 5), 1);
	/* one that is there already changes nothing */
	assert_int_equal(set(r, DCQCN), HCA_STAT_OK);
	assert_int_equal(hca_cc_life(&r->h->pipe[0], 5), 1);
	/* later QPs have it */
	to_rtr(r, 6);
	assert_string_equal(name_of(r, 6), "dcqcn");
	assert_int_equal(tos_of(r, 6) & 3, HCA_ECN_ECT0);
	assert_int_equal(set(r, NONE), HCA_STAT_OK);
	assert_null(r->h->core->cc);
	for (uint32_t i = 5; i <= 6; i++)
		assert_int_equal(tos_of(r, i), tos);
}

static void
wrong_numbers(void **state)
{
	struct rig *r = *state;

	to_rtr(r, 5);
	assert_int_equal(set(r, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(set(r, r->h->core->cc_room->numbers + 1), HCA_STAT_BAD_PARAM);
	assert_int_equal(set(r, (uint64_t)DCQCN << 32), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_SET_CONGESTION, 1, 0, DCQCN, 0), HCA_STAT_BAD_PARAM);
	assert_null(r->h->core->cc);
	assert_string_equal(name_of(r, 5), "none");
}

static int
set_parameter(struct rig *r, uint32_t number, uint64_t value)
{
	return rig_cmd(r, HCA_CMD_SET_CONGESTION, 0, number, value, 0);
}

/* Values within the range of the configuration's key; others change nothing. */
static void
parameters(void **state)
{
	static const struct {
		uint32_t number, initial, min, max;
	} each[] = {
		{1, 50, 1, 1000000},
		{2, 48, 1, 63},
		{3, 25, 5, 100000},
	};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(each); i++) {
		uint32_t n = each[i].number;

		assert_int_equal(hca_congestion_parameter(r->h, n), each[i].initial);
		assert_int_equal(set_parameter(r, n, each[i].min - 1), HCA_STAT_BAD_PARAM);
		assert_int_equal(set_parameter(r, n, each[i].max + 1), HCA_STAT_BAD_PARAM);
		assert_int_equal(set_parameter(r, n, 1ull << 32 | each[i].min), HCA_STAT_BAD_PARAM);
		assert_int_equal(hca_congestion_parameter(r->h, n), each[i].initial);
		assert_int_equal(set_parameter(r, n, each[i].min), HCA_STAT_OK);
		assert_int_equal(hca_congestion_parameter(r->h, n), each[i].min);
		assert_int_equal(set_parameter(r, n, each[i].max), HCA_STAT_OK);
		assert_int_equal(hca_congestion_parameter(r->h, n), each[i].max);
	}
	assert_int_equal(rig_cmd(r, HCA_CMD_SET_CONGESTION, 1, 2, 7, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(set_parameter(r, RTE_DIM(each) + 1, 7), HCA_STAT_BAD_PARAM);
	assert_int_equal(hca_congestion_parameter(r->h, 0), 0);
	assert_int_equal(hca_congestion_parameter(r->h, RTE_DIM(each) + 1), 0);
	assert_string_equal(hca_congestion(r->h), "none");
}

static int
to_rtr_with(struct rig *r, uint32_t qpi, uint32_t number)
{
	struct hca_qpc *q;

	assert_int_equal(rig_to_init(r, qpi), HCA_STAT_OK);
	q = rig_qpc(r, qpi,
		    HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU | HCA_QP_ATTR_DEST_QPN |
			    HCA_QP_ATTR_RQ_PSN | HCA_QP_ATTR_MAX_DEST_RD_ATOMIC |
			    HCA_QP_ATTR_MIN_RNR_TIMER | HCA_QP_ATTR_CONGESTION);
	q->congestion = hca_cpu_to_be32(number);
	return rig_mbox(r, HCA_CMD_INIT2RTR_QPEE, RIG_QPN(qpi));
}

static uint32_t
queried(struct rig *r, uint32_t qpi)
{
	const struct hca_qpc *q = (const void *)r->out;

	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_QP, RIG_QPN(qpi)), HCA_STAT_OK);
	return hca_be32_to_cpu(q->congestion);
}

/* A QP with an algorithm of its own keeps it; one that takes that of the HCA follows. */
static void
of_a_qp(void **state)
{
	struct rig *r = *state;

	assert_int_equal(to_rtr_with(r, 5, DCQCN), HCA_STAT_OK);
	assert_int_equal(to_rtr_with(r, 6, 0), HCA_STAT_OK);
	assert_string_equal(hca_congestion(r->h), "none");
	assert_string_equal(name_of(r, 5), "dcqcn");
	assert_int_equal(tos_of(r, 5) & 3, HCA_ECN_ECT0);
	assert_int_equal(queried(r, 5), DCQCN);
	assert_string_equal(name_of(r, 6), "none");
	assert_int_equal(tos_of(r, 6) & 3, 0);
	assert_int_equal(queried(r, 6), 0);
	assert_int_equal(set(r, hca_cc_number("swift")), HCA_STAT_OK);
	assert_int_equal(to_rtr_with(r, 7, NONE), HCA_STAT_OK);
	assert_string_equal(name_of(r, 5), "dcqcn");
	assert_string_equal(name_of(r, 6), "swift");
	assert_string_equal(name_of(r, 7), "none");
	assert_int_equal(tos_of(r, 7) & 3, 0);
	assert_int_equal(hca_cc_life(&r->h->pipe[0], 5), 1);
	assert_int_equal(set(r, NONE), HCA_STAT_OK);
	assert_string_equal(name_of(r, 6), "none");
	assert_non_null(r->h->core->cc); /* for QP 5 */
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, HCA_MODIFY_QP_NO_INBOX, RIG_QPN(5), 0, 0),
			 HCA_STAT_OK);
	assert_null(r->h->core->cc);
}

/* A QP that is gone has none, and the next one with its number has that of the HCA. */
static void
lives(void **state)
{
	struct rig *r = *state;

	to_rtr(r, 5);
	assert_int_equal(set(r, DCQCN), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, HCA_MODIFY_QP_NO_INBOX, RIG_QPN(5), 0, 0),
			 HCA_STAT_OK);
	assert_string_equal(name_of(r, 5), "none");
	assert_int_equal(set(r, NONE), HCA_STAT_OK);
	to_rtr(r, 5);
	assert_int_equal(set(r, DCQCN), HCA_STAT_OK);
	assert_string_equal(name_of(r, 5), "dcqcn");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(qps_follow), T(wrong_numbers), T(parameters), T(of_a_qp), T(lives),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
