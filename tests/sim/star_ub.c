/* SPDX-License-Identifier: BSD-3-Clause */

/* UB in the rig of star.h: a Jetty for each flow, with a TP between its hosts. */

#include "star.h"

#include <rte_common.h>

#include "../ub_no_agent.h"
#include "../ub_tpc.h"

#define TOKEN 0x5eedu
#define TPN_BASE 0xabc000u
#define DEPTH 1024u

#define MADE(object) STAR_CHECK((object) != NULL, #object ": %s", softhca_urma_reason())
#define FINE(call) STAR_CHECK((call) == URMA_SUCCESS, #call ": %s", softhca_urma_reason())
#define CALL(call) \
	do { \
		int rc_ = (call); \
		STAR_CHECK(rc_ == 0, #call ": %d: %s", rc_, hca_driver_reason()); \
	} while (0)

/* Each host that sends has one group. */
static int
import_peer(struct lib_context *ctx, const struct urma_ctl_peer *request, uint32_t *number,
	    uint32_t *tpg)
{
	*number = 0;
	*tpg = 0;
	return 0;
}

void
star_ub_open(struct star_host *t)
{
	static struct urma_ctl ctl;
	urma_jfc_cfg_t depth = {.depth = DEPTH};
	urma_jfr_cfg_t receives = {.depth = 1,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .trans_mode = URMA_TM_RM,
				   .token_value.token = TOKEN};
	urma_seg_cfg_t seg = {.va = (uintptr_t)t->memory,
			      .len = STAR_MESSAGE_MAX,
			      .token_value.token = TOKEN,
			      .flag.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
					  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE}};

	ctl = ub_no_agent();
	ctl.import_peer = import_peer;
	t->urma = urma_context_new(t->ctx, 0, false, &ctl);
	MADE(t->urma);
	receives.jfc = t->jfc = urma_create_jfc(t->urma, &depth);
	MADE(t->jfc);
	t->jfr = urma_create_jfr(t->urma, &receives);
	MADE(t->jfr);
	t->seg = urma_register_seg(t->urma, &seg);
	MADE(t->seg);
}

static void
open_tp(struct star_host *t, uint32_t tpn, uint32_t peer, uint32_t peer_tpn)
{
	const struct ub_tpc_field fields[] = {
		{HCA_TPC_STATE, HCA_TPS_ACTIVE},
		{HCA_TPC_MODE, HCA_TP_MODE_SACK},
		{HCA_TPC_RULE, HCA_TP_RULE_TIME},
		{HCA_TPC_MTU, 1},
		{HCA_TPC_WINDOW, 0},
		{HCA_TPC_SACK, 1},
		{HCA_TPC_FLAGS, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST | HCA_TP_FLAG_CNP},
		{HCA_TPC_TPN, tpn},
		{HCA_TPC_PEER, peer_tpn},
		{HCA_TPC_REQUESTS, 8},
		{HCA_TPC_ACK_EVERY, 16},
		{HCA_TPC_OOO_EVERY, 1},
		{HCA_TPC_RTO_BASE, 1000},
		{HCA_TPC_RTO_EXPONENT, 1},
		{HCA_TPC_RETRIES, 7},
		{HCA_TPC_SPORT, 0xc000 + tpn % 1024},
	};
	struct hca_tpc image;
	uint8_t eid[16];

	star_gid(peer, eid);
	image = ub_tpc(fields, RTE_DIM(fields), 0, eid);
	CALL(hca_driver_create_tp(t->drv, &image));
	t->tps++;
}

/* The driver numbers TPs as it makes them, from index 1. */
static uint32_t
next_tpn(const struct star_host *t)
{
	return TPN_BASE + t->tps + 1;
}

void
star_ub_flow_open(struct star_flow *f)
{
	struct star_host *from = &f->all->host[f->from], *to = &f->all->host[f->to];
	uint32_t tpn = next_tpn(from), peer_tpn = next_tpn(to), group;
	urma_jfr_cfg_t receives = {.depth = 1, .trans_mode = URMA_TM_RM, .jfc = from->jfc};
	urma_jetty_cfg_t cfg = {.jfs_cfg = {.depth = f->depth,
					    .trans_mode = URMA_TM_RM,
					    .rnr_retry = 7,
					    .err_timeout = 24,
					    .jfc = from->jfc},
				.jfr_cfg = &receives};
	urma_rjfr_t theirs = {.trans_mode = URMA_TM_RM,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
			      .jfr_id = to->jfr->jfr_id};
	urma_token_t token = {TOKEN};

	STAR_CHECK(from->tps == 0, "host %u has a channel", f->from);
	open_tp(from, tpn, f->to, peer_tpn);
	open_tp(to, peer_tpn, f->from, tpn);
	CALL(hca_driver_create_tpg(from->drv, &tpn, 1, &group));
	CALL(hca_driver_permit_tpg(
		from->drv, ((const struct lib_context *)from->ctx)->info.uar_page, group, true));
	f->jetty = urma_create_jetty(from->urma, &cfg);
	MADE(f->jetty);
	f->target = urma_import_jfr(from->urma, &theirs, &token);
	MADE(f->target);
	f->theirs =
		urma_import_seg(from->urma, &to->seg->seg, &token, 0, (urma_import_seg_flag_t){0});
	MADE(f->theirs);
}

void
star_ub_post(struct star_flow *f)
{
	struct star_host *from = f->requester;
	urma_sge_t mine = {(uintptr_t)from->memory, f->message, from->seg};
	urma_sge_t theirs = {(uintptr_t)f->all->host[f->to].memory, f->message, f->theirs};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE,
			    .flag.bs.complete_enable = 1,
			    .tjetty = f->target,
			    .rw = {.src = {&mine, 1}, .dst = {&theirs, 1}},
			    .user_ctx = (uintptr_t)f};

	FINE(urma_post_jetty_send_wr(f->jetty, &wr, NULL));
}

void
star_ub_poll(struct star_host *t, void (*done)(struct star_flow *f, bool fine))
{
	urma_cr_t cr;

	while (urma_poll_jfc(t->jfc, 1, &cr) == 1)
		done((struct star_flow *)(uintptr_t)cr.user_ctx, cr.status == URMA_CR_SUCCESS);
}

void
star_ub_flow_close(struct star_flow *f)
{
	FINE(urma_unimport_seg(f->theirs));
	FINE(urma_unimport_jfr(f->target));
	FINE(urma_delete_jetty(f->jetty));
}

void
star_ub_close(struct star_host *t)
{
	FINE(urma_delete_jfr(t->jfr));
	FINE(urma_delete_jfc(t->jfc));
	FINE(urma_unregister_seg(t->seg));
	FINE(urma_delete_context(t->urma));
}
