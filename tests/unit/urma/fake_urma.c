/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "fake_urma.h"

struct fake_urma fake_urma;

static int
failed(void)
{
	int err = fake_urma.fail;

	fake_urma.fail = 0;
	return err == 0 ? 0 : urma_fail(err, "the fake says no");
}

static int
create_jetty(struct lib_context *ctx, const struct urma_ctl_jetty *request, uint32_t *number)
{
	fake_urma.jetty = *request;
	if (fake_urma.fail != 0)
		return failed();
	*number = fake_urma.next_jetty++;
	fake_urma.objects++;
	fake_urma.state = URMA_JETTY_STATE_READY;
	return 0;
}

static int
modify_jetty(struct lib_context *ctx, uint32_t number, uint32_t state)
{
	if (fake_urma.fail == 0 && state == URMA_JETTY_STATE_RESET && fake_urma.flush_in != 0)
		fake_urma.early = true;
	if (fake_urma.fail == 0)
		fake_urma.state = state;
	return failed();
}

static int
query_jetty(struct lib_context *ctx, uint32_t number, struct urma_ctl_state *now)
{
	bool error = fake_urma.state == URMA_JETTY_STATE_ERROR;

	fake_urma.flush_in -= error && fake_urma.flush_in != 0;
	*now = (struct urma_ctl_state){
		.state = fake_urma.state,
		.flushed = error && fake_urma.flush_in == 0,
		.sent = fake_urma.sent,
		.received = fake_urma.received,
	};
	return failed();
}

static int
destroy(struct lib_context *ctx, uint32_t number)
{
	fake_urma.objects -= fake_urma.fail == 0;
	return failed();
}

static int
bind_jetty(struct lib_context *ctx, uint32_t number, const uint8_t eid[16], uint32_t tc)
{
	memcpy(fake_urma.bound_eid, eid, sizeof(fake_urma.bound_eid));
	fake_urma.bound_tc = tc;
	return failed();
}

static int
create_jfr(struct lib_context *ctx, const struct urma_ctl_jfr *request, uint32_t *number)
{
	fake_urma.jfr = *request;
	if (fake_urma.fail != 0)
		return failed();
	*number = fake_urma.next_jfr++;
	fake_urma.objects++;
	return 0;
}

static int
arm_jfr(struct lib_context *ctx, uint32_t number, uint32_t threshold)
{
	fake_urma.threshold = threshold;
	return failed();
}

static int
set_token(struct lib_context *ctx, const struct urma_ctl_token *request)
{
	fake_urma.token = *request;
	return failed();
}

static int
import_peer(struct lib_context *ctx, const struct urma_ctl_peer *request, uint32_t *number,
	    uint32_t *tpg)
{
	*number = FAKE_TPG;
	fake_urma.peer = *request;
	if (fake_urma.fail != 0)
		return failed();
	*tpg = FAKE_TPG;
	fake_urma.objects++;
	return 0;
}

static int
find_peer(struct lib_context *ctx, const struct urma_ctl_peer *request, struct hca_ctl_ah *ah)
{
	fake_urma.peer = *request;
	*ah = (struct hca_ctl_ah){.sgid_index = (uint8_t)request->gid_index,
				  .dmac = {2, 0, 0, 0, 0, 9},
				  .smac = {2, 0, 0, 0, 0, 1}};
	memcpy(ah->dgid, request->eid, sizeof(ah->dgid));
	return failed();
}

static int
tp_eid(struct lib_context *ctx, uint32_t tpn, uint8_t eid[16])
{
	fake_urma.eids++;
	if (fake_urma.fail != 0)
		return failed();
	memset(eid, (int)tpn, 16);
	return 0;
}

const struct urma_ctl fake_urma_ctl = {
	.create_jetty = create_jetty,
	.modify_jetty = modify_jetty,
	.query_jetty = query_jetty,
	.destroy_jetty = destroy,
	.bind_jetty = bind_jetty,
	.create_jfr = create_jfr,
	.arm_jfr = arm_jfr,
	.destroy_jfr = destroy,
	.set_token = set_token,
	.import_peer = import_peer,
	.find_peer = find_peer,
	.unimport_peer = destroy,
	.tp_eid = tp_eid,
};

/* ---- the rig ---- */

static urma_target_seg_t *
import_seg(struct urma_rig *r, uint32_t policy)
{
	urma_seg_t seg = {.ubva.va = RIG_REMOTE,
			  .len = 65536,
			  .token_id = RIG_TOKEN_ID,
			  .attr.bs.token_policy = policy};
	urma_token_t token = {RIG_TOKEN};

	return urma_import_seg(r->ctx, &seg, &token, 0, (urma_import_seg_flag_t){0});
}

static void
make_jetty(struct urma_rig *r)
{
	urma_jfr_cfg_t receives = {.depth = 4,
				   .max_sge = 2,
				   .jfc = r->jfc,
				   .trans_mode = URMA_TM_RM,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .token_value.token = 77};
	urma_jetty_cfg_t cfg = {
		.jfs_cfg = {.depth = 7, .max_sge = 2, .jfc = r->jfc, .trans_mode = URMA_TM_RM},
		.jfr_cfg = &receives,
	};

	r->jetty = urma_create_jetty(r->ctx, &cfg);
	assert_non_null(r->jetty);
}

void
rig_open(struct urma_rig *r)
{
	urma_jfc_cfg_t jfc = {.depth = 32};
	urma_seg_cfg_t seg = {.va = (uintptr_t)r->memory,
			      .len = sizeof(r->memory),
			      .flag.bs.access = URMA_ACCESS_LOCAL_ONLY};
	urma_rjetty_t peer = {.jetty_id.id = 0x12345,
			      .trans_mode = URMA_TM_RM,
			      .type = URMA_JETTY,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t token = {0x11223344};

	memset(r, 0, sizeof(*r));
	fake_urma = (struct fake_urma){.next_jetty = FAKE_JETTY, .next_jfr = FAKE_SRQN};
	r->ctl = fake_open(&r->lib, false);
	r->ctx = urma_context_new(r->lib, 3, false, &fake_urma_ctl);
	assert_non_null(r->ctx);
	r->jfc = urma_create_jfc(r->ctx, &jfc);
	assert_non_null(r->jfc);
	make_jetty(r);
	r->local = urma_register_seg(r->ctx, &seg);
	r->remote = import_seg(r, URMA_TOKEN_PLAIN_TEXT);
	r->open = import_seg(r, URMA_TOKEN_NONE);
	r->peer = urma_import_jetty(r->ctx, &peer, &token);
	assert_true(r->local != NULL && r->remote != NULL && r->open != NULL && r->peer != NULL);
}

void
rig_close(struct urma_rig *r)
{
	assert_int_equal(urma_unimport_jetty(r->peer), URMA_SUCCESS);
	assert_int_equal(urma_unimport_seg(r->open), URMA_SUCCESS);
	assert_int_equal(urma_unimport_seg(r->remote), URMA_SUCCESS);
	assert_int_equal(urma_unregister_seg(r->local), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty(r->jetty), URMA_SUCCESS);
	assert_int_equal(urma_delete_jfc(r->jfc), URMA_SUCCESS);
	assert_int_equal(urma_delete_context(r->ctx), URMA_SUCCESS);
	assert_int_equal(fake_urma.objects, 0);
	fake_close(r->ctl, r->lib);
}

void
rig_complete(struct urma_rig *r, uint32_t n, const struct hca_cqe_ub *cqe)
{
	fake_complete(((struct urma_jfc_obj *)r->jfc)->cq, n, (const struct hca_cqe *)cqe);
}
