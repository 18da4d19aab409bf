/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_world_impl.h"

#include <stdlib.h>
#include <string.h>

#include "../short_ways.h"
#include "../ub_no_agent.h"
#include "../ub_tpc.h"
#include "embed_ctl.h"
#include "fuzz_hca.h"
#include "urma_impl.h"

#define JETTY_OF_PEER 0x800u

/* Regions begin and end inside pages: the rest of their pages is also guarded. */
const struct ub_world_area ub_world_regions[UB_WORLD_REGIONS] = {
	[UB_WORLD_RW] = {0x1100, 0x1240, URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC,
			 UB_WORLD_TOKEN, true},
	[UB_WORLD_RO] = {0x4108, 0x1000, URMA_ACCESS_READ, 0, false},
	[UB_WORLD_VERBS] = {0x6080, 0x1400, 0, 0, false},
	[UB_WORLD_LOCAL] = {0x8011, 0x4000, URMA_ACCESS_LOCAL_ONLY, 0, true},
	[UB_WORLD_THEIR] = {0xd040, 0x40, URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC,
			    UB_WORLD_SECRET, true},
};

static void
make_hca(struct ub_world *w)
{
	struct hca_config cfg = {
		.name = hca_short_ways ? "fuzz1" : "fuzz0",
		.port = &w->port.port,
		.layout = getenv("FUZZ_FULL") != NULL ? HCA_LAYOUT_FULL : HCA_LAYOUT_RTC,
		.wires = HCA_WIRE_BIT(HCA_WIRE_ROCE) | HCA_WIRE_BIT(HCA_WIRE_UB),
		.socket_id = -1,
		.log_qps = 4,
		.log_cqs = 4,
		.log_srqs = 3,
		.log_eqs = 3,
		.log_mpts = 7,
		.log_mtts = 12,
		.log_tps = 3,
		.ub_ops = 48,
		.ub_records = 64,
		.ub_full_records = 32,
		.edge_size = 64,
		.records = 64,
		.full_records = 64,
		.records_per_qp = 16,
		.mbufs = 256,
		.max_mtu = 4096,
		.mac = {2, 0, 0, 0, 0, 1},
	};

	w->port.judge = ub_peer_hear;
	w->port.arg = w;
	fuzz_port_open(&w->port, cfg.name, FUZZ_PORT_DEPTH);
	fuzz_check(hca_create(&cfg, &w->h) == 0, "hca_create");
}

static urma_context_t *
open_context(struct ub_world *w, const char *name, struct softhca_context **lib)
{
	const struct embed_ctl_config cc = {.name = name};
	static struct urma_ctl ctl;
	urma_context_t *ctx;

	ctl = ub_no_agent();
	fuzz_check(embed_ctl_open(w->drv, &cc, lib) == 0, "client: %s", hca_driver_reason());
	ctx = urma_context_new(*lib, 0, false, &ctl);
	MADE(ctx);
	return ctx;
}

static void
make_memory(struct ub_world *w)
{
	w->mem = fuzz_memory(UB_WORLD_MEM);
	for (unsigned int i = 0; i < UB_WORLD_REGIONS; i++) {
		urma_seg_cfg_t cfg = {.va = (uintptr_t)w->mem + ub_world_regions[i].at,
				      .len = ub_world_regions[i].len,
				      .token_value.token = ub_world_regions[i].token,
				      .flag.bs = {.token_policy = ub_world_regions[i].token != 0
									  ? URMA_TOKEN_PLAIN_TEXT
									  : URMA_TOKEN_NONE,
						  .access = ub_world_regions[i].access}};

		if (i == UB_WORLD_VERBS)
			continue;
		w->seg[i] = urma_register_seg(i == UB_WORLD_THEIR ? w->their_ctx : w->ctx, &cfg);
		MADE(w->seg[i]);
	}
	w->mr = softhca_reg_mr(urma_ctx_of(w->ctx)->pd,
			       w->mem + ub_world_regions[UB_WORLD_VERBS].at,
			       ub_world_regions[UB_WORLD_VERBS].len,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC);
	fuzz_check(w->mr != NULL, "mr: %s", softhca_last_error(w->lib));
}

static void
import_from_peer(urma_context_t *ctx, uint8_t peer, urma_target_jetty_t **to,
		 urma_target_seg_t **to_seg)
{
	urma_token_t token = {UB_WORLD_TOKEN};
	urma_rjetty_t r = {
		.jetty_id = {.eid.raw = {[10] = 0xff, 0xff, 10, 77, 0, (uint8_t)(2 + peer)},
			     .id = JETTY_OF_PEER},
		.trans_mode = URMA_TM_RM,
		.type = URMA_JETTY,
		.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_seg_t seg = {.ubva = {.eid = r.jetty_id.eid, .va = 0x10000},
			  .len = 0x10000,
			  .attr.bs = {.token_policy = URMA_TOKEN_PLAIN_TEXT,
				      .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						URMA_ACCESS_ATOMIC},
			  .token_id = 0x4321};

	*to = urma_import_jetty(ctx, &r, &token);
	MADE(*to);
	*to_seg = urma_import_seg(ctx, &seg, &token, 0, (urma_import_seg_flag_t){0});
	MADE(*to_seg);
}

static urma_jfc_t *
make_jfc(urma_context_t *ctx)
{
	urma_jfc_cfg_t cfg = {.depth = 256};
	urma_jfc_t *jfc = urma_create_jfc(ctx, &cfg);

	MADE(jfc);
	return jfc;
}

urma_jfs_cfg_t
ub_world_sends(urma_jfc_t *jfc)
{
	return (urma_jfs_cfg_t){.depth = UB_WORLD_DEPTH,
				.trans_mode = URMA_TM_RM,
				.max_sge = 4,
				.max_inline_data = 64,
				.rnr_retry = 3,
				.err_timeout = 10,
				.jfc = jfc};
}

urma_jfr_cfg_t
ub_world_receives(urma_jfc_t *jfc)
{
	return (urma_jfr_cfg_t){.depth = UB_WORLD_DEPTH,
				.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				.trans_mode = URMA_TM_RM,
				.max_sge = 4,
				.min_rnr_timer = 1,
				.jfc = jfc,
				.token_value.token = UB_WORLD_TOKEN};
}

urma_jetty_t *
ub_world_make_jetty(urma_context_t *ctx, urma_jfc_t *send_jfc, urma_jfc_t *recv_jfc, uint32_t known)
{
	urma_jfr_cfg_t r = ub_world_receives(recv_jfc);
	urma_jetty_cfg_t cfg = {.id = known, .jfs_cfg = ub_world_sends(send_jfc), .jfr_cfg = &r};
	urma_jetty_t *jetty;

	if (known == 0)
		cfg.jfs_cfg.err_timeout = 24; /* the bystander waits without limit */
	jetty = urma_create_jetty(ctx, &cfg);
	MADE(jetty);
	return jetty;
}

/* ---- channels ---- */

static const struct {
	uint8_t mode, rule, flags;
} tp_kinds[] = {
	{HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST},
	{HCA_TP_MODE_DROP, HCA_TP_RULE_NAK, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST},
	{HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_MARK, 0},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_NONE,
	 HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST | HCA_TP_FLAG_SPRAY | HCA_TP_FLAG_RSP_BE},
};

void
ub_world_open_tp(struct ub_world *w, unsigned int peer, uint8_t kind, bool honest)
{
	const struct ub_tpc_field fields[] = {
		{HCA_TPC_STATE, kind & 0x80 ? HCA_TPS_PASSIVE : HCA_TPS_ACTIVE},
		{HCA_TPC_MODE, tp_kinds[kind % RTE_DIM(tp_kinds)].mode},
		{HCA_TPC_RULE, tp_kinds[kind % RTE_DIM(tp_kinds)].rule},
		{HCA_TPC_FLAGS, tp_kinds[kind % RTE_DIM(tp_kinds)].flags},
		{HCA_TPC_SACK, 1},
		{HCA_TPC_TPN, UB_WORLD_TPN(peer)},
		{HCA_TPC_PEER, UB_PEER_TPN(peer)},
		{HCA_TPC_PSN, UB_WORLD_PSN},
		{HCA_TPC_EPSN, UB_PEER_PSN},
		{HCA_TPC_REQUESTS, 12},
		{HCA_TPC_ACK_EVERY, 4},
		{HCA_TPC_OOO_EVERY, 1},
		/* time passes in leaps, so an honest peer must never be late */
		{HCA_TPC_RTO_BASE, honest ? 2097152 : 20},
		{HCA_TPC_RTO_EXPONENT, honest ? 0 : 2},
		{HCA_TPC_RETRIES, 3},
		{HCA_TPC_SPORT, 0xc000 + 16 * peer},
		{HCA_TPC_SPORTS_LOG,
		 tp_kinds[kind % RTE_DIM(tp_kinds)].flags & HCA_TP_FLAG_SPRAY ? 3 : 0},
	};
	const uint8_t eid[16] = {[10] = 0xff, 0xff, 10, 77, 0, (uint8_t)(2 + peer)};
	struct hca_tpc c = ub_tpc(fields, RTE_DIM(fields), 0, eid);

	fuzz_check(hca_driver_create_tp(w->drv, &c) == 0, "TP: %s", hca_driver_reason());
	ub_peer_open(w, peer, honest);
}

static void
make_group(struct ub_world *w, unsigned int peer)
{
	uint32_t tpn = UB_WORLD_TPN(peer), group;

	fuzz_check(hca_driver_create_tpg(w->drv, &tpn, 1, &group) == 0 && group == peer,
		   "group: %s", hca_driver_reason());
}

void
ub_world_permit(struct ub_world *w, struct softhca_context *client, unsigned int peer)
{
	uint32_t uar = ((struct lib_context *)client)->info.uar_page;

	fuzz_check(hca_driver_permit_tpg(w->drv, uar, peer, true) == 0, "group: %s",
		   hca_driver_reason());
}

void
ub_world_make(struct ub_world *w)
{
	make_hca(w);
	w->drv = fuzz_driver(w->h, ub_world_progress, w, 2);
	ub_world_open_tp(w, 1, 0, true);
	w->peer[0].honest = false;
	ub_world_open_tp(w, 0, 0, false);
	make_group(w, 0);
	make_group(w, 1);
	fuzz_check(hca_driver_destroy_tp(w->drv, UB_WORLD_TPN(0)) == 0, "TP: %s",
		   hca_driver_reason());
	w->ctx = open_context(w, "fuzz", &w->lib);
	w->their_ctx = open_context(w, "bystander", &w->their_lib);
	ub_world_permit(w, w->their_lib, 1);
	make_memory(w);
	import_from_peer(w->ctx, 0, &w->to, &w->to_seg);
	for (uint8_t i = 0; i < 2; i++)
		import_from_peer(w->their_ctx, i, &w->their_to[i], &w->their_to_seg[i]);
	w->send_jfc = make_jfc(w->ctx);
	w->recv_jfc = make_jfc(w->ctx);
	w->their_jfc = make_jfc(w->their_ctx);
	w->theirs = ub_world_make_jetty(w->their_ctx, w->their_jfc, w->their_jfc, 0);
}
