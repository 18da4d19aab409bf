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
	assert_int_equal(rig_cmd(r, HCA_CMD_SET_CONGESTION, 0, 1, DCQCN, 0), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_cmd(r, HCA_CMD_SET_CONGESTION, 1, 0, DCQCN, 0), HCA_STAT_BAD_PARAM);
	assert_null(r->h->core->cc);
	assert_string_equal(name_of(r, 5), "none");
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
		T(qps_follow),
		T(wrong_numbers),
		T(lives),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
