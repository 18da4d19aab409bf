/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Guarantees for a provider of verbs: requests, SGEs, completions, regions, windows and address
 * handles have the layout of those of verbs, so that a list of the program is posted as it is.
 */

#include <string.h>

#include <infiniband/verbs.h>

#include "lib_rig.h"

#define SIZE_OF(type, member) sizeof(((struct type *)0)->member)

/* The member has the same place and size in both structures. */
#define SAME(name, member) \
	_Static_assert(offsetof(struct ibv_##name, member) == \
				       offsetof(struct softhca_##name, member) && \
			       SIZE_OF(ibv_##name, member) == SIZE_OF(softhca_##name, member), \
		       #name "." #member);
#define SAME_SIZE(name) \
	_Static_assert(sizeof(struct ibv_##name) == sizeof(struct softhca_##name), #name);

#define MEMBERS(X) \
	X(sge, addr) \
	X(sge, length) \
	X(sge, lkey) \
	X(recv_wr, wr_id) \
	X(recv_wr, next) \
	X(recv_wr, sg_list) \
	X(recv_wr, num_sge) \
	X(send_wr, wr_id) \
	X(send_wr, next) \
	X(send_wr, sg_list) \
	X(send_wr, num_sge) \
	X(send_wr, opcode) \
	X(send_wr, send_flags) \
	X(send_wr, imm_data) \
	X(send_wr, invalidate_rkey) \
	X(send_wr, wr.rdma.remote_addr) \
	X(send_wr, wr.rdma.rkey) \
	X(send_wr, wr.atomic.remote_addr) \
	X(send_wr, wr.atomic.compare_add) \
	X(send_wr, wr.atomic.swap) \
	X(send_wr, wr.atomic.rkey) \
	X(send_wr, wr.ud.ah) \
	X(send_wr, wr.ud.remote_qpn) \
	X(send_wr, wr.ud.remote_qkey) \
	X(send_wr, qp_type.xrc.remote_srqn) \
	X(send_wr, bind_mw.mw) \
	X(send_wr, bind_mw.rkey) \
	X(send_wr, bind_mw.bind_info) \
	X(send_wr, tso.hdr) \
	X(send_wr, tso.hdr_sz) \
	X(send_wr, tso.mss) \
	X(mw_bind_info, mr) \
	X(mw_bind_info, addr) \
	X(mw_bind_info, length) \
	X(mw_bind_info, mw_access_flags) \
	X(mw_bind, wr_id) \
	X(mw_bind, send_flags) \
	X(mw_bind, bind_info) \
	X(wc, wr_id) \
	X(wc, status) \
	X(wc, opcode) \
	X(wc, vendor_err) \
	X(wc, byte_len) \
	X(wc, imm_data) \
	X(wc, invalidated_rkey) \
	X(wc, qp_num) \
	X(wc, src_qp) \
	X(wc, wc_flags) \
	X(wc, pkey_index) \
	X(wc, slid) \
	X(wc, sl) \
	X(wc, dlid_path_bits) \
	X(mr, context) \
	X(mr, pd) \
	X(mr, addr) \
	X(mr, length) \
	X(mr, handle) \
	X(mr, lkey) \
	X(mr, rkey) \
	X(mw, context) \
	X(mw, pd) \
	X(mw, rkey) \
	X(mw, handle) \
	X(mw, type) \
	X(ah, context) \
	X(ah, pd) \
	X(ah, handle) \
	X(pd, context) \
	X(pd, handle) \
	X(gid_entry, gid) \
	X(gid_entry, gid_index) \
	X(gid_entry, port_num) \
	X(gid_entry, gid_type) \
	X(gid_entry, ndev_ifindex)

MEMBERS(SAME)
SAME_SIZE(sge)
SAME_SIZE(recv_wr)
SAME_SIZE(send_wr)
SAME_SIZE(mw_bind)
SAME_SIZE(wc)

/* The program's own pointer lies behind the members of verbs' objects. */
_Static_assert(offsetof(struct softhca_mr, user) >= sizeof(struct ibv_mr) &&
		       offsetof(struct softhca_mw, user) >= sizeof(struct ibv_mw) &&
		       offsetof(struct softhca_ah, user) >= sizeof(struct ibv_ah),
	       "user is not in the structure of verbs");

/* The fields of completions have the numbers of verbs. */
#define SAME_FIELD(name) \
	_Static_assert((int)SOFTHCA_WC_EX_WITH_##name == (int)IBV_WC_EX_WITH_##name, #name);

#define WC_FIELDS(X) \
	X(BYTE_LEN) \
	X(IMM) \
	X(QP_NUM) \
	X(SRC_QP) \
	X(SLID) \
	X(SL) \
	X(DLID_PATH_BITS) \
	X(COMPLETION_TIMESTAMP) \
	X(CVLAN) \
	X(COMPLETION_TIMESTAMP_WALLCLOCK)

WC_FIELDS(SAME_FIELD)

const struct rig_wanted rig_wanted = {
	.cap = {.max_send_wr = 8, .max_recv_wr = 4, .max_send_sge = 2},
	.cqe = 32,
	.state = SOFTHCA_QPS_RTS,
};

/* Not objects of the library */
static struct ibv_context front_context;
static struct ibv_pd front_pd = {.context = &front_context};

#define DISGUISE(object) \
	(object)->context = (struct softhca_context *)&front_context; \
	(object)->pd = (struct softhca_pd *)&front_pd; \
	(object)->user = &front_pd;

/* A list of verbs is posted as it is; windows and regions are those of the provider. */
static void
test_bind_list(void **state)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct softhca_mr *mr = softhca_reg_mr(q.pd, page, sizeof(page),
					       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_MW_BIND);
	struct softhca_mw *mw = softhca_alloc_mw(q.pd, SOFTHCA_MW_TYPE_2);
	struct ibv_sge sge = {(uintptr_t)page, 8, mr->lkey};
	struct ibv_send_wr wr[2] = {
		{.next = &wr[1],
		 .opcode = IBV_WR_BIND_MW,
		 .bind_mw = {(struct ibv_mw *)mw,
			     ibv_inc_rkey(mw->rkey),
			     {(struct ibv_mr *)mr, 0x1000, 8, IBV_ACCESS_REMOTE_READ}}},
		{.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ},
	};
	const struct lib_wq *sq = &((const struct lib_qp *)q.qp)->sq;
	const struct hca_bind_unit *unit = (const void *)(sq->buf + HCA_WQE_UNIT);
	uint32_t key = mw->rkey;

	DISGUISE(mr)
	DISGUISE(mw)
	assert_int_equal(softhca_post_send(q.qp, (struct softhca_send_wr *)wr, NULL), 0);
	assert_int_equal(sq->head, 2);
	assert_int_equal(hca_le32_to_cpu(unit->old_key), key);
	assert_int_equal(hca_le32_to_cpu(unit->lkey), mr->lkey);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_PD, q.pd, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, q.pd);
	DISGUISE(mr)
	assert_ptr_equal(mr->user, &front_pd);
	assert_ptr_equal(mw->user, &front_pd);
	assert_int_equal(softhca_dealloc_mw(mw), 0);
	assert_int_equal(softhca_dereg_mr(mr), 0);
}

static void
test_datagram_list(void **state)
{
	const struct softhca_ah_attr to = {.port_num = 1, .flow_label = 0x12345};
	struct softhca_qp_init_attr attr = {
		.qp_type = SOFTHCA_QPT_UD,
		.cap = {.max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1},
		.send_cq = q.cq,
		.recv_cq = q.cq,
	};
	struct softhca_qp *ud = softhca_create_qp(q.pd, &attr);
	struct softhca_ah *ah = softhca_create_ah(q.pd, &to);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.wr.ud = {(struct ibv_ah *)ah, 0x17, 0x11111111},
	};
	const struct hca_ud_unit *unit;

	ud->state = SOFTHCA_QPS_RTS;
	DISGUISE(ah)
	assert_int_equal(softhca_post_send(ud, (struct softhca_send_wr *)&wr, NULL), 0);
	unit = (const void *)(((struct lib_qp *)ud)->sq.buf + HCA_WQE_UNIT);
	assert_int_equal(hca_le32_to_cpu(unit->dqpn), 0x17);
	assert_int_equal(HCA_UD_FLOW_LABEL(hca_le32_to_cpu(unit->flow)), 0x12345);
	assert_ptr_equal(ah->user, &front_pd);
	assert_int_equal(softhca_destroy_ah(ah), 0);
	assert_int_equal(softhca_destroy_qp(ud), 0);
}

/* user is 0 at first, and stays as it is set. */
static void
test_user(void **state)
{
	struct softhca_comp_channel *channel = softhca_create_comp_channel(ctx);
	struct softhca_cq_init_attr attr = {.cqe = 1, .channel = channel};
	struct softhca_cq *cq;

	assert_null(ctx->user);
	assert_null(q.pd->user);
	assert_null(channel->user);
	ctx->user = q.pd->user = channel->user = &front_pd;
	cq = softhca_create_cq(ctx, &attr);
	assert_non_null(cq);
	assert_int_equal(softhca_destroy_cq(cq), 0);
	assert_ptr_equal(ctx->user, &front_pd);
	assert_ptr_equal(q.pd->user, &front_pd);
	assert_ptr_equal(channel->user, &front_pd);
	assert_int_equal(softhca_destroy_comp_channel(channel), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bind_list, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_datagram_list, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_user, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
