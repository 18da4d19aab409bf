/* SPDX-License-Identifier: BSD-3-Clause */

/* Objects: requests to the driver, refusals before them, objects in use. */

#include <string.h>
#include <unistd.h>

#include "fake_urma.h"

static struct urma_rig r;

static int
setup(void **state)
{
	rig_open(&r);
	return 0;
}

static int
teardown(void **state)
{
	rig_close(&r);
	return 0;
}

/* ---- contexts ---- */

static void
test_context(void **state)
{
	urma_context_t *ctx = softhca_urma_context(r.lib);

	assert_non_null(ctx);
	assert_int_equal(ctx->eid_index, 1); /* entry 0 is empty */
	assert_int_equal(ctx->eid.raw[0], 1);
	assert_string_equal(ctx->dev->name, "fake");
	assert_int_equal(urma_delete_context(ctx), URMA_SUCCESS);
	assert_null(urma_context_new(r.lib, 0, false, &fake_urma_ctl));
	assert_int_equal(errno, ENODATA);
	/* objects are left in that of the rig */
	assert_int_equal(urma_delete_context(r.ctx), URMA_FAIL);
	assert_int_equal(errno, EBUSY);
}

/* A driver that refuses UB: its reason is that of the call, and nothing is left of it. */
static void
test_no_operations(void **state)
{
	urma_context_t *ctx = softhca_urma_context(r.lib);
	urma_jfc_cfg_t jfc_cfg = {.depth = 4};
	urma_jfc_t *jfc = urma_create_jfc(ctx, &jfc_cfg);
	urma_jfs_cfg_t jfs = {.depth = 4, .jfc = jfc, .trans_mode = URMA_TM_RM};
	urma_jfr_cfg_t jfr = {.depth = 4, .jfc = jfc, .trans_mode = URMA_TM_RM};
	urma_jetty_cfg_t jetty = {.jfs_cfg = jfs, .jfr_cfg = &jfr};
	urma_seg_cfg_t seg = {.va = (uintptr_t)r.memory,
			      .len = 4096,
			      .flag.bs.access = URMA_ACCESS_READ};
	urma_rjetty_t peer = {.jetty_id.id = 1024, .trans_mode = URMA_TM_RM, .type = URMA_JETTY};
	uint32_t objects = r.ctl->objects;

	assert_true(urma_create_jfs(ctx, &jfs) == NULL && errno == EOPNOTSUPP);
	assert_string_equal(softhca_urma_reason(), "the fake says no");
	assert_true(urma_create_jfr(ctx, &jfr) == NULL && errno == EOPNOTSUPP);
	assert_true(urma_create_jetty(ctx, &jetty) == NULL && errno == EOPNOTSUPP);
	assert_true(urma_register_seg(ctx, &seg) == NULL && errno == EOPNOTSUPP);
	assert_true(urma_import_jetty(ctx, &peer, NULL) == NULL && errno == EOPNOTSUPP);
	assert_string_equal(softhca_urma_reason(), "the fake says no");
	assert_int_equal(r.ctl->objects, objects);
	/* memory for local access needs no part of UB */
	seg.flag.bs.access = URMA_ACCESS_LOCAL_ONLY;
	assert_int_equal(urma_unregister_seg(urma_register_seg(ctx, &seg)), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfc(jfc), URMA_SUCCESS);
	assert_int_equal(urma_delete_context(ctx), URMA_SUCCESS);
}

/* ---- queues ---- */

static void
test_jetty_request(void **state)
{
	const struct urma_ctl_jetty *q = &fake_urma.jetty;

	assert_int_equal(q->sq_addr, (uintptr_t)rig_queue(&r)->sq.buf);
	assert_int_equal(q->rq_addr, (uintptr_t)rig_queue(&r)->rq.wq.buf);
	assert_int_equal(q->log_sq, 3);
	assert_int_equal(q->log_sq_stride, 8);
	assert_int_equal(q->log_rq, 2);
	assert_int_equal(q->log_rq_stride, 6);
	assert_int_equal(q->err_timeout, 17);
	assert_int_equal(q->min_rnr_timer, 12);
	assert_true(q->check_token && !q->is_jfs && !q->share_jfr && !q->error_suspend);
	assert_int_equal(q->token, 77);
	assert_int_equal(q->pdn, urma_ctx_of(r.ctx)->pd->handle);
	assert_int_equal(r.jetty->jetty_id.id, FAKE_JETTY);
	assert_memory_equal(&r.jetty->jetty_id.eid, &r.ctx->eid, 16);
	assert_int_equal(r.jetty->jetty_cfg.jfs_cfg.depth, 8);
	assert_int_equal(r.jetty->jetty_cfg.jfs_cfg.max_inline_data, 64);
	assert_in_range(rig_queue(&r)->max_inline, 64, 256);
}

static void
test_share_jfr(void **state)
{
	urma_jfr_cfg_t receives = {.id = 40, .depth = 3, .jfc = r.jfc, .trans_mode = URMA_TM_RM};
	urma_jfr_t *jfr = urma_create_jfr(r.ctx, &receives);
	urma_jetty_cfg_t cfg = {
		.id = 41,
		.flag.bs.share_jfr = 1,
		.jfs_cfg = {.depth = 4,
			    .jfc = r.jfc,
			    .trans_mode = URMA_TM_RM,
			    .flag.bs.error_suspend = 1},
		.shared = {.jfr = jfr},
	};
	urma_jfr_attr_t attr = {.mask = JFR_RX_THRESHOLD, .rx_threshold = 2};
	urma_jetty_t *jetty = urma_create_jetty(r.ctx, &cfg);
	urma_jfr_wr_t wr = {0};

	assert_true(jfr != NULL && jetty != NULL);
	assert_int_equal(fake_urma.jfr.well_known, 40);
	assert_int_equal(fake_urma.jfr.log_size, 2);
	assert_int_equal(jfr->jfr_id.id, 40);
	assert_int_equal(jetty->jetty_id.id, 41);
	assert_true(fake_urma.jetty.share_jfr && fake_urma.jetty.error_suspend);
	assert_int_equal(fake_urma.jetty.srqn, FAKE_SRQN);
	assert_int_equal(fake_urma.jetty.rq_addr, 0);
	assert_int_equal(urma_post_jetty_recv_wr(jetty, &wr, NULL), URMA_EINVAL);
	assert_int_equal(urma_delete_jfr(jfr), URMA_FAIL); /* it is used */
	assert_int_equal(errno, EBUSY);
	assert_int_equal(urma_modify_jfr(jfr, &attr), URMA_SUCCESS);
	assert_int_equal(fake_urma.threshold, 2);
	attr.rx_threshold = 4;
	assert_int_equal(urma_modify_jfr(jfr, &attr), URMA_EINVAL);
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfr(jfr), URMA_SUCCESS);
}

static void
test_states(void **state)
{
	urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_SUSPENDED};
	urma_jetty_cfg_t cfg;

	assert_int_equal(urma_modify_jetty(r.jetty, &attr), URMA_SUCCESS);
	assert_int_equal(fake_urma.state, URMA_JETTY_STATE_SUSPENDED);
	attr.state = URMA_JETTY_STATE_READY;
	assert_int_equal(urma_modify_jetty(r.jetty, &attr), URMA_SUCCESS);
	assert_int_equal(urma_modify_jetty(r.jetty, &attr), URMA_EINVAL); /* it is */
	attr.state = (urma_jetty_state_t)9;
	assert_int_equal(urma_modify_jetty(r.jetty, &attr), URMA_EINVAL);
	attr.mask = JETTY_RX_THRESHOLD;
	assert_int_equal(urma_modify_jetty(r.jetty, &attr), URMA_FAIL);
	fake_urma.state = URMA_JETTY_STATE_ERROR; /* the device's own doing */
	assert_int_equal(urma_query_jetty(r.jetty, &cfg, &attr), URMA_SUCCESS);
	assert_int_equal(attr.state, URMA_JETTY_STATE_ERROR);
	assert_int_equal(cfg.jfs_cfg.depth, 8);
}

static urma_status_t
become(urma_jetty_state_t to)
{
	urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = to};

	return urma_modify_jetty(r.jetty, &attr);
}

static void
post_one(uint32_t *sent, uint32_t *received)
{
	urma_sge_t own = {(uintptr_t)r.memory, 8, r.local};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = r.peer, .user_ctx = 7};
	urma_jfr_wr_t receive = {.src = {&own, 1}};

	wr.send.src = (urma_sg_t){&own, 1};
	*sent += urma_post_jetty_send_wr(r.jetty, &wr, NULL) == URMA_SUCCESS;
	*received += urma_post_jetty_recv_wr(r.jetty, &receive, NULL) == URMA_SUCCESS;
}

/*
 * RESET is told to the device when it has read and flushed all requests. READY is not, while a
 * completion is left; then the queues are empty ones.
 */
static void
test_reset(void **state)
{
	struct hca_cqe_ub cqe = {.local = hca_cpu_to_le32(HCA_CQE_UB_MAKE_LOCAL(
					 HCA_CQE_UB_JETTY, rig_queue(&r)->number)),
				 .status = HCA_UB_STATUS_FLUSHED,
				 .is_send = HCA_CQE_UB | 1};
	uint32_t sent = 0, received = 0;
	urma_cr_t cr;

	post_one(&sent, &received);
	assert_true(sent == 1 && received == 1);
	fake_urma.flush_in = 3;
	fake_urma.received = 1;
	assert_int_equal(become(URMA_JETTY_STATE_RESET), URMA_SUCCESS);
	assert_false(fake_urma.early);
	/* flushed, and the device has not read the request: it has no completion */
	assert_int_equal(rig_queue(&r)->unseen, 1);
	post_one(&sent, &received);
	assert_true(sent == 1 && received == 1);
	assert_int_equal(become(URMA_JETTY_STATE_SUSPENDED), URMA_EINVAL);
	rig_complete(&r, 0, &cqe);
	assert_int_equal(become(URMA_JETTY_STATE_READY), URMA_EAGAIN);
	assert_int_equal(urma_poll_jfc(r.jfc, 1, &cr), 1);
	assert_int_equal(become(URMA_JETTY_STATE_READY), URMA_SUCCESS);
	assert_int_equal(fake_urma.state, URMA_JETTY_STATE_READY);
	assert_true(rig_queue(&r)->sq.head == 0 && rig_queue(&r)->rq.posted == 0);
	assert_int_equal(hca_le32_to_cpu(rig_queue(&r)->rq.record->producer), 0);
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t k = 0; k < 64; k++)
			assert_int_equal(rig_wqe(&r, i)[k], 0);
}

/* A daemon of an earlier release has no RESET: the queue stays as it is. */
static void
test_reset_lacking(void **state)
{
	uint32_t sent = 0, received = 0;

	rig_queue(&r)->ctx->lib->features &= ~(uint32_t)HCA_CTL_FEATURE_JETTY_RESET;
	assert_int_equal(become(URMA_JETTY_STATE_RESET), URMA_FAIL);
	assert_non_null(strstr(softhca_urma_reason(), "the state RESET of Jettys"));
	assert_non_null(strstr(softhca_urma_reason(), "upgrade the daemon"));
	post_one(&sent, &received);
	assert_true(sent == 1 && received == 1);
}

/* Requests that an unusable queue has hidden from the device: the program takes them. */
static void
test_reset_unseen(void **state)
{
	uint32_t sent = 0, received = 0;
	urma_cr_t cr[2];

	post_one(&sent, &received);
	rig_queue(&r)->flushed = true;
	assert_int_equal(become(URMA_JETTY_STATE_RESET), URMA_SUCCESS);
	assert_int_equal(become(URMA_JETTY_STATE_READY), URMA_EAGAIN);
	assert_int_equal(urma_flush_jetty(r.jetty, 2, cr), 1);
	assert_int_equal(cr[0].user_ctx, 7);
	assert_int_equal(become(URMA_JETTY_STATE_READY), URMA_SUCCESS);
	/* the device does not flush in time: the Jetty stays where it is */
	fake_urma.flush_in = UINT32_MAX;
	assert_int_equal(become(URMA_JETTY_STATE_RESET), URMA_EAGAIN);
	assert_int_equal(fake_urma.state, URMA_JETTY_STATE_ERROR);
	assert_false(fake_urma.early);
	fake_urma.flush_in = 1;
	assert_int_equal(become(URMA_JETTY_STATE_RESET), URMA_SUCCESS);
	assert_int_equal(become(URMA_JETTY_STATE_READY), URMA_SUCCESS);
}

/* Features not offered, or unknown: refused before the driver is called. */
static void
test_refused_configurations(void **state)
{
	const urma_jfs_cfg_t good = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_RM};
	const struct {
		urma_jfs_cfg_t cfg;
		int err;
	} cases[] = {
#define CASE(error, ...) \
	{.cfg = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_RM, __VA_ARGS__}, error}
		CASE(EOPNOTSUPP, .flag.bs.order_type = URMA_OT),
		CASE(EOPNOTSUPP, .flag.bs.order_type = URMA_OL),
		CASE(EOPNOTSUPP, .flag.bs.order_type = URMA_NO),
		CASE(EOPNOTSUPP, .flag.bs.outorder_comp = 1),
		CASE(EINVAL, .flag.bs.order_type = 9),
		CASE(EINVAL, .flag.bs.reserved = 1),
		CASE(EINVAL, .priority = 16),
		CASE(EINVAL, .rnr_retry = 8),
		CASE(EINVAL, .err_timeout = 32),
		CASE(EINVAL, .max_rsge = 2),
		CASE(EINVAL, .max_sge = 17),
		CASE(EINVAL, .max_inline_data = 401),
#undef CASE
	};
	urma_jfs_cfg_t cfg = good;
	uint32_t next = fake_urma.next_jetty;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cfg = cases[i].cfg;
		if (urma_create_jfs(r.ctx, &cfg) != NULL || errno != cases[i].err)
			fail_msg("case %u: %d, %s", i, errno, softhca_urma_reason());
	}
	cfg = good;
	cfg.trans_mode = 8;
	assert_true(urma_create_jfs(r.ctx, &cfg) == NULL && errno == EINVAL);
	cfg = good;
	cfg.depth = 0;
	assert_true(urma_create_jfs(r.ctx, &cfg) == NULL && errno == EINVAL);
	cfg.depth = 65536;
	assert_true(urma_create_jfs(r.ctx, &cfg) == NULL && errno == EINVAL);
	cfg = good;
	cfg.jfc = NULL;
	assert_true(urma_create_jfs(r.ctx, &cfg) == NULL && errno == EINVAL);
	assert_int_equal(fake_urma.next_jetty, next);
	/* an object that the driver refuses is freed */
	cfg = good;
	fake_urma.fail = -ENOMEM;
	assert_true(urma_create_jfs(r.ctx, &cfg) == NULL && errno == ENOMEM);
	assert_int_equal(urma_ctx_of(r.ctx)->objects, 6);
}

static void
test_jfc_in_use(void **state)
{
	assert_int_equal(urma_delete_jfc(r.jfc), URMA_FAIL);
	assert_int_equal(errno, EBUSY);
}

/* ---- events ---- */

static void
raise_event(const urma_jfc_t *jfc)
{
	struct lib_cq *cq = (struct lib_cq *)((const struct urma_jfc_obj *)jfc)->cq;
	struct hca_ctl_event event = {.object = cq->pub.handle, .tag = cq->tag};

	assert_int_equal(write(r.ctl->channel_write, &event, sizeof(event)), sizeof(event));
}

static void
test_wait(void **state)
{
	urma_jfce_t *jfce = urma_create_jfce(r.ctx);
	urma_jfc_cfg_t cfg = {.depth = 4, .jfce = jfce};
	urma_jfc_t *jfc = urma_create_jfc(r.ctx, &cfg), *got[4] = {NULL};
	urma_jfc_attr_t attr = {.mask = JFC_MODERATE_COUNT, .moderate_count = 3};
	uint32_t acks[4] = {1, 1};

	assert_true(jfce != NULL && jfc != NULL);
	assert_int_equal(urma_wait_jfc(jfce, 4, 0, got), 0);
	assert_int_equal(urma_wait_jfc(jfce, 4, 1, got), 0);
	assert_int_equal(urma_rearm_jfc(jfc, false), URMA_SUCCESS);
	raise_event(jfc);
	assert_int_equal(urma_wait_jfc(jfce, 4, -1, got), 1);
	assert_ptr_equal(got[0], jfc);
	urma_ack_jfc(got, acks, 1);
	assert_int_equal(urma_wait_jfc(jfce, 0, 0, got), -1);
	assert_int_equal(urma_rearm_jfc(r.jfc, false), URMA_EINVAL);	 /* it has no JFCE */
	assert_int_not_equal(urma_modify_jfc(jfc, &attr), URMA_SUCCESS); /* the fake has none */
	attr.mask = 4;
	assert_int_equal(urma_modify_jfc(jfc, &attr), URMA_EINVAL);
	assert_int_equal(urma_delete_jfce(jfce), URMA_FAIL);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(urma_delete_jfc(jfc), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfce(jfce), URMA_SUCCESS);
}

/* ---- memory ---- */

static void
test_segment(void **state)
{
	urma_seg_cfg_t cfg = {.va = (uintptr_t)r.memory,
			      .len = 4096,
			      .token_value.token = 5,
			      .flag.bs = {.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE,
					  .token_policy = URMA_TOKEN_PLAIN_TEXT}};
	urma_target_seg_t *seg = urma_register_seg(r.ctx, &cfg);

	assert_non_null(seg);
	assert_int_equal(seg->seg.token_id, HCA_KEY_TOKEN_ID(0xabcd01));
	assert_true(seg->seg.ubva.va == cfg.va && seg->seg.len == 4096);
	assert_int_equal(fake_urma.token.flags, HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK);
	assert_int_equal(fake_urma.token.value[0], 5);
	assert_int_equal(r.ctl->mr.access & SOFTHCA_ACCESS_REMOTE_ATOMIC, 0);
	/* another value: both are good until it is committed */
	assert_int_equal(softhca_urma_commit_token(seg), URMA_EINVAL);
	assert_int_equal(softhca_urma_rotate_token(seg, (urma_token_t){6}), URMA_SUCCESS);
	assert_int_equal(fake_urma.token.flags,
			 HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK | HCA_TOKEN_SECOND);
	assert_int_equal(fake_urma.token.value[0], 5);
	assert_int_equal(fake_urma.token.value[1], 6);
	assert_int_equal(softhca_urma_commit_token(seg), URMA_SUCCESS);
	assert_int_equal(fake_urma.token.flags, HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK);
	assert_int_equal(fake_urma.token.value[0], 6);
	assert_int_equal(urma_unimport_seg(seg), URMA_EINVAL);
	assert_int_equal(urma_unregister_seg(seg), URMA_SUCCESS);
}

static void
test_refused_segments(void **state)
{
	urma_seg_cfg_t cfg = {.va = (uintptr_t)r.memory, .len = 64};
	urma_seg_t seg = {.ubva.va = UINT64_MAX, .len = 2};
	urma_import_seg_flag_t flag = {0};
	uint32_t objects = r.ctl->objects;

	cfg.flag.bs.token_policy = URMA_TOKEN_SIGNED;
	assert_true(urma_register_seg(r.ctx, &cfg) == NULL && errno == EOPNOTSUPP);
	cfg.flag.value = 0;
	cfg.flag.bs.access = URMA_ACCESS_LOCAL_ONLY | URMA_ACCESS_READ;
	assert_true(urma_register_seg(r.ctx, &cfg) == NULL && errno == EINVAL);
	cfg.flag.bs.access = 16;
	assert_true(urma_register_seg(r.ctx, &cfg) == NULL && errno == EINVAL);
	cfg.flag.bs.access = URMA_ACCESS_READ;
	fake_urma.fail = -ENOMEM; /* its token row */
	assert_true(urma_register_seg(r.ctx, &cfg) == NULL && errno == ENOMEM);
	assert_int_equal(r.ctl->objects, objects);
	assert_true(urma_import_seg(r.ctx, &seg, NULL, 0, flag) == NULL && errno == EINVAL);
	seg.len = 0;
	seg.token_id = 1 << 20;
	assert_true(urma_import_seg(r.ctx, &seg, NULL, 0, flag) == NULL && errno == EINVAL);
	seg.token_id = 1;
	seg.attr.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
	assert_true(urma_import_seg(r.ctx, &seg, NULL, 0, flag) == NULL && errno == EINVAL);
	flag.bs.mapping = 1;
	assert_true(urma_import_seg(r.ctx, &seg, NULL, 0, flag) == NULL && errno == EOPNOTSUPP);
	assert_int_equal(urma_unregister_seg(r.remote), URMA_EINVAL);
	assert_int_equal(softhca_urma_rotate_token(r.remote, (urma_token_t){1}), URMA_EINVAL);
}

/* ---- peers ---- */

static void
test_import(void **state)
{
	urma_rjetty_t peer = {.jetty_id.id = 2000, .trans_mode = URMA_TM_RM, .type = URMA_JETTY};
	urma_target_jetty_t *t;

	memset(peer.jetty_id.eid.raw, 0x42, 16);
	t = urma_import_jetty(r.ctx, &peer, NULL);
	assert_non_null(t);
	assert_memory_equal(fake_urma.peer.eid, peer.jetty_id.eid.raw, 16);
	assert_int_equal(fake_urma.peer.gid_index, 3);
	assert_int_equal(urma_unimport_jetty(t), URMA_SUCCESS);
	fake_urma.fail = -ETIMEDOUT;
	assert_true(urma_import_jetty(r.ctx, &peer, NULL) == NULL && errno == ETIMEDOUT);
	peer.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
	assert_true(urma_import_jetty(r.ctx, &peer, NULL) == NULL && errno == EINVAL);
	peer.flag.value = 0;
	peer.flag.bs.order_type = URMA_OT;
	assert_true(urma_import_jetty(r.ctx, &peer, NULL) == NULL && errno == EOPNOTSUPP);
	peer.flag.value = 0;
	peer.type = URMA_JETTY_GROUP;
	assert_true(urma_import_jetty(r.ctx, &peer, NULL) == NULL && errno == EOPNOTSUPP);
	peer.type = URMA_JETTY;
	peer.jetty_id.id = 1 << 20;
	assert_true(urma_import_jetty(r.ctx, &peer, NULL) == NULL && errno == EINVAL);
}

/* A Jetty of mode RC sends to its peer only, and cannot send before it has one. */
static void
test_bind(void **state)
{
	urma_jfr_cfg_t receives = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_RC};
	urma_jetty_cfg_t cfg = {
		.jfs_cfg = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_RC},
		.jfr_cfg = &receives,
	};
	urma_jetty_t *jetty = urma_create_jetty(r.ctx, &cfg);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND};

	assert_non_null(jetty);
	assert_true(fake_urma.jetty.one_peer);
	r.peer->id.id = 40; /* a well-known number does not say whose Sends to take */
	assert_int_equal(urma_bind_jetty(jetty, r.peer), URMA_EINVAL);
	r.peer->id.id = 0x12345;
	assert_int_equal(urma_post_jetty_send_wr(jetty, &wr, NULL), URMA_EINVAL);
	wr.tjetty = r.peer;
	assert_int_equal(urma_post_jetty_send_wr(jetty, &wr, NULL), URMA_EINVAL);
	assert_int_equal(urma_bind_jetty(r.jetty, r.peer), URMA_EINVAL); /* of mode RM */
	fake_urma.fail = -ENOMEM;
	assert_int_equal(urma_bind_jetty(jetty, r.peer), URMA_ENOMEM);
	assert_int_equal(urma_bind_jetty(jetty, r.peer), URMA_SUCCESS);
	assert_ptr_equal(jetty->remote_jetty, r.peer);
	assert_memory_equal(fake_urma.bound_eid, r.peer->id.eid.raw, 16);
	assert_int_equal(fake_urma.bound_tc, 0x12345);
	assert_int_equal(urma_bind_jetty(jetty, r.peer), URMA_EEXIST);
	assert_int_equal(urma_unimport_jetty(r.peer), URMA_FAIL);
	assert_int_equal(urma_delete_jetty(jetty), URMA_FAIL);
	wr.tjetty = NULL;
	assert_int_equal(urma_post_jetty_send_wr(jetty, &wr, NULL), URMA_SUCCESS);
	assert_int_equal(urma_unbind_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(fake_urma.bound_tc, HCA_TC_NONE);
	assert_null(jetty->remote_jetty);
	assert_int_equal(urma_unbind_jetty(jetty), URMA_EINVAL);
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_context),
		TEST(test_no_operations),
		TEST(test_jetty_request),
		TEST(test_share_jfr),
		TEST(test_states),
		TEST(test_reset),
		TEST(test_reset_lacking),
		TEST(test_reset_unseen),
		TEST(test_refused_configurations),
		TEST(test_jfc_in_use),
		TEST(test_wait),
		TEST(test_segment),
		TEST(test_import),
		TEST(test_bind),
		TEST(test_refused_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
