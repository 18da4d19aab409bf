/* SPDX-License-Identifier: BSD-3-Clause */

#include <sys/mman.h>

#include "ub_pair.h"

#include "../ub_no_agent.h"
#include "../ub_tpc.h"

#define GROUP 0u

#define CHECK(p, condition, ...) sim_check((p)->s, condition, __VA_ARGS__)

struct hca_tp *
ub_pair_tp(struct ub_pair *p, unsigned int side, uint32_t tpi)
{
	return &p->side[side].h->core->ub->tp[tpi];
}

uint64_t
ub_pair_counter(const struct ub_pair *p, unsigned int side, enum hca_counter c)
{
	return hca_counter_value(p->side[side].h, c);
}

uint64_t
ub_pair_again(const struct ub_pair *p)
{
	static const enum hca_counter again[] = {
#define X(n) HCA_CTR_##n,
		HCA_UB_AGAIN_LIST(X)
#undef X
	};
	uint64_t n = 0;

	for (unsigned int i = 0; i < 2 * RTE_DIM(again); i++)
		n += ub_pair_counter(p, i % 2, again[i / 2]);
	return n;
}

uint64_t
ub_pair_timeouts(const struct ub_pair *p)
{
	return ub_pair_counter(p, 0, HCA_CTR_ub_tp_timeouts) +
	       ub_pair_counter(p, 1, HCA_CTR_ub_tp_timeouts);
}

/* ---- channels ---- */

static uint32_t
tpn_of(unsigned int side, uint32_t tpi)
{
	return 0xabc100u + (side << 16) + tpi;
}

#define CALL(p, call) \
	do { \
		int rc_ = (call); \
		CHECK(p, rc_ == 0, #call ": %d: %s", rc_, hca_driver_reason()); \
	} while (0)

#define USUAL_FLAGS ((uint32_t)(HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST | HCA_TP_FLAG_CNP))

void
ub_pair_open_tp(struct ub_pair *p, unsigned int side, uint32_t tpi)
{
	const struct ub_pair_config *c = &p->cfg;
	const struct ub_tpc_field fields[] = {
		{HCA_TPC_STATE, side == 1 && c->passive ? HCA_TPS_PASSIVE : HCA_TPS_ACTIVE},
		{HCA_TPC_MODE, c->mode},
		{HCA_TPC_RULE, c->rule},
		{HCA_TPC_MTU, !c->small_mtu},
		{HCA_TPC_WINDOW, 1},
		{HCA_TPC_SACK, 2},
		{HCA_TPC_FLAGS, c->flags | (c->bare ? 0 : USUAL_FLAGS) |
					(c->old_value_le ? 0 : HCA_TP_FLAG_RSP_BE) |
					(c->silent ? 0 : HCA_TP_FLAG_TELL)},
		{HCA_TPC_TPN, tpn_of(side, tpi)},
		{HCA_TPC_PEER, tpn_of(1 - side, tpi)},
		{HCA_TPC_PSN, 0xfffff0 + side},
		{HCA_TPC_EPSN, 0xfffff0 + 1 - side},
		{HCA_TPC_REQUESTS, c->requests},
		{HCA_TPC_ACK_EVERY, 16},
		{HCA_TPC_OOO_EVERY, 1},
		{HCA_TPC_RTO_BASE, c->rto_base},
		{HCA_TPC_RTO_EXPONENT, 1},
		{HCA_TPC_RETRIES, c->retries},
		{HCA_TPC_REORDER, c->reorder},
		{HCA_TPC_SPORT, 0xc000 + 16 * tpi},
		{HCA_TPC_SPORTS_LOG, c->flags & HCA_TP_FLAG_SPRAY ? 3 : 0},
	};
	struct hca_tpc image;
	uint8_t gid[16];

	sim_gid(1 - side, c->gid, gid);
	image = ub_tpc(fields, RTE_DIM(fields), c->gid, gid);
	CALL(p, hca_driver_create_tp(p->s->side[side].drv, &image));
}

void
ub_pair_close_tp(struct ub_pair *p, unsigned int side, uint32_t tpi)
{
	CALL(p, hca_driver_destroy_tp(p->s->side[side].drv, tpn_of(side, tpi)));
}

static uint32_t
members(struct ub_pair *p, unsigned int side, uint32_t *tpns)
{
	uint32_t n = 0;

	for (uint32_t t = 1; t <= p->cfg.tps; t++)
		if (ub_pair_tp(p, side, t)->cfg.own_tpn != 0)
			tpns[n++] = tpn_of(side, t);
	return n;
}

void
ub_pair_permit(struct ub_pair *p, unsigned int side, const struct softhca_context *client,
	       uint32_t group, bool may)
{
	uint32_t uar = ((const struct lib_context *)client)->info.uar_page;

	CALL(p, hca_driver_permit_tpg(p->s->side[side].drv, uar, group, may));
}

void
ub_pair_set_group(struct ub_pair *p, unsigned int side)
{
	uint32_t tpns[UB_PAIR_TPS], n = members(p, side, tpns);

	CALL(p, hca_driver_change_tpg(p->s->side[side].drv, GROUP, tpns, n));
	ub_pair_permit(p, side, p->s->side[side].ctx, GROUP, true);
}

static void
open_channels(struct ub_pair *p, unsigned int side)
{
	uint32_t tpns[UB_PAIR_TPS], group;

	if (p->cfg.maker != NULL)
		return;
	for (uint32_t t = 1; t <= p->cfg.tps; t++)
		ub_pair_open_tp(p, side, t);
	CALL(p, hca_driver_create_tpg(p->s->side[side].drv, tpns, members(p, side, tpns), &group));
	UB_PAIR_EQ(p, group, GROUP);
}

static void
close_channels(struct ub_pair *p, unsigned int side)
{
	if (p->cfg.maker != NULL)
		return;
	CALL(p, hca_driver_destroy_tpg(p->s->side[side].drv, GROUP));
	for (uint32_t t = 1; t <= p->cfg.tps; t++)
		if (ub_pair_tp(p, side, t)->cfg.own_tpn != 0)
			ub_pair_close_tp(p, side, t);
}

static void
check_operations(struct ub_pair *p, unsigned int side)
{
	for (uint32_t l = 0; l < HCA_TP_LANES; l++)
		CHECK(p,
		      p->side[side].h->core->ub->pool[l].free_n ==
			      p->side[side].h->core->ub->pool[l].count,
		      "side %u: operations leaked", side);
}

/* ---- operations that the driver lacks ---- */

static struct ub_pair *opened;

static int
import_peer(struct lib_context *ctx, const struct urma_ctl_peer *request, uint32_t *number,
	    uint32_t *tpg)
{
	struct ub_pair *p = opened;
	uint8_t eid[16];

	sim_gid(1, p->cfg.gid, eid);
	*number = 0;
	*tpg = GROUP;
	if (!p->strangers)
		ub_pair_permit(p, memcmp(request->eid, eid, sizeof(eid)) != 0, &ctx->pub, GROUP,
			       true);
	return 0;
}

/* err_timeout 0, in place of which the library has its own: as other programs may ask for it. */
static int
create_jetty(struct lib_context *ctx, const struct urma_ctl_jetty *request, uint32_t *number)
{
	struct urma_ctl_jetty r = *request;

	if (opened->cfg.for_ever)
		r.err_timeout = 0;
	return urma_ctl_driver.create_jetty(ctx, &r, number);
}

static urma_context_t *
open_context(struct ub_pair *p, unsigned int side)
{
	const struct ub_pair_maker *maker = p->cfg.maker;
	static struct urma_ctl ctl;

	ctl = ub_no_agent();
	ctl.import_peer = maker != NULL ? maker->import_peer : import_peer;
	if (maker != NULL)
		ctl.unimport_peer = maker->unimport_peer;
	ctl.create_jetty = create_jetty;
	return urma_context_new(p->s->side[side].ctx, p->cfg.gid, false, &ctl);
}

/* ---- objects ---- */

#define MADE(p, object) CHECK(p, (object) != NULL, #object ": %s", softhca_urma_reason())
#define ENDED(p, call) CHECK(p, (call) == URMA_SUCCESS, #call ": %s", softhca_urma_reason())

static uint32_t
policy(const struct ub_pair *p)
{
	return p->cfg.no_token ? URMA_TOKEN_NONE : URMA_TOKEN_PLAIN_TEXT;
}

static void
open_queues(struct ub_pair *p, struct ub_pair_side *sd)
{
	urma_jfc_cfg_t depth = {.depth = 4 * UB_PAIR_DEPTH};
	urma_jfs_cfg_t sends = {.depth = UB_PAIR_DEPTH,
				.flag.bs.error_suspend = p->cfg.suspend,
				.trans_mode = URMA_TM_RM,
				.max_sge = UB_PAIR_SGES,
				.max_inline_data = UB_PAIR_INLINE,
				.rnr_retry = p->cfg.rnr_retry,
				.err_timeout = p->cfg.err_timeout};
	urma_jfr_cfg_t receives = {.depth = UB_PAIR_DEPTH,
				   .flag.bs.token_policy = policy(p),
				   .trans_mode = URMA_TM_RM,
				   .max_sge = UB_PAIR_SGES,
				   .min_rnr_timer = p->cfg.min_rnr_timer,
				   .token_value.token = UB_PAIR_SEND_TOKEN};
	urma_jetty_cfg_t both;

	sd->send_jfc = urma_create_jfc(sd->ctx, &depth);
	MADE(p, sd->send_jfc);
	sd->recv_jfc = urma_create_jfc(sd->ctx, &depth);
	MADE(p, sd->recv_jfc);
	sends.jfc = sd->send_jfc;
	receives.jfc = sd->recv_jfc;
	both = (urma_jetty_cfg_t){.jfs_cfg = sends, .jfr_cfg = &receives};
	sd->jetty = urma_create_jetty(sd->ctx, &both);
	MADE(p, sd->jetty);
	sd->jfs = urma_create_jfs(sd->ctx, &sends);
	MADE(p, sd->jfs);
	sd->jfr = urma_create_jfr(sd->ctx, &receives);
	MADE(p, sd->jfr);
}

/* Frames name addresses, so equal runs need equal ones; zeroed. Page faults take longest. */
static uint8_t *
map_memory(struct ub_pair *p, unsigned int side)
{
	void *at = (void *)(uintptr_t)(UINT64_C(0x2a0000000000) + side * UINT64_C(0x100000000));
	void *mem =
		mmap(at, UB_PAIR_MEM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p, mem != MAP_FAILED, "no memory");
	(void)madvise(mem, UB_PAIR_MEM, MADV_HUGEPAGE);
	return mem;
}

static void
open_memory(struct ub_pair *p, struct ub_pair_side *sd)
{
	urma_seg_cfg_t cfg = {.len = UB_PAIR_MEM,
			      .token_value.token = UB_PAIR_SEG_TOKEN,
			      .flag.bs = {.token_policy = policy(p),
					  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						    URMA_ACCESS_ATOMIC}};

	sd->mem = map_memory(p, (unsigned int)(sd - p->side));
	for (uint32_t i = 0; i < UB_PAIR_PART; i += 8) {
		uint64_t v = sim_random(&p->rng);

		memcpy(sd->mem + UB_PAIR_FROM + i, &v, sizeof(v));
	}
	cfg.va = (uintptr_t)sd->mem;
	sd->seg = urma_register_seg(sd->ctx, &cfg);
	MADE(p, sd->seg);
}

static void
import_all(struct ub_pair *p, struct ub_pair_side *sd, const struct ub_pair_side *peer)
{
	urma_token_t send = {UB_PAIR_SEND_TOKEN}, memory = {UB_PAIR_SEG_TOKEN};
	urma_rjetty_t jetty = {.jetty_id = peer->jetty->jetty_id,
			       .trans_mode = URMA_TM_RM,
			       .type = URMA_JETTY,
			       .flag.bs.token_policy = policy(p)};
	urma_rjfr_t jfr = {.jfr_id = peer->jfr->jfr_id,
			   .trans_mode = URMA_TM_RM,
			   .flag.bs.token_policy = policy(p)};

	sd->to_jetty = urma_import_jetty(sd->ctx, &jetty, &send);
	MADE(p, sd->to_jetty);
	sd->to_jfr = urma_import_jfr(sd->ctx, &jfr, &send);
	MADE(p, sd->to_jfr);
	sd->to_seg =
		urma_import_seg(sd->ctx, &peer->seg->seg, &memory, 0, (urma_import_seg_flag_t){0});
	MADE(p, sd->to_seg);
}

static void
defaults(struct ub_pair_config *c)
{
	c->tps = c->tps != 0 ? c->tps : 1;
	if (c->mode == 0 && c->rule == 0 && !c->go_back) {
		c->mode = HCA_TP_MODE_SACK;
		c->rule = HCA_TP_RULE_TIME;
	}
	c->requests = c->requests != 0 ? c->requests : 64;
	c->retries = c->retries != 0 ? c->retries : 7;
	c->rnr_retry = c->rnr_retry != 0 ? c->rnr_retry : 7;
	c->sim.wires = HCA_WIRE_BIT(HCA_WIRE_ROCE) | HCA_WIRE_BIT(HCA_WIRE_UB);
}

void
ub_pair_open(struct ub_pair *p, const struct ub_pair_config *cfg)
{
	memset(p, 0, sizeof(*p));
	p->cfg = *cfg;
	defaults(&p->cfg);
	opened = p;
	p->rng.s = p->cfg.sim.seed;
	p->s = sim_open(&p->cfg.sim);
	for (unsigned int i = 0; i < 2; i++)
		p->side[i].h = p->s->side[i].hca;
	if (p->cfg.maker != NULL)
		p->cfg.maker->open(p);
	for (unsigned int i = 0; i < 2; i++) {
		struct ub_pair_side *sd = &p->side[i];

		open_channels(p, i);
		sd->ctx = open_context(p, i);
		MADE(p, sd->ctx);
		open_memory(p, sd);
		open_queues(p, sd);
	}
	for (unsigned int i = 0; i < 2; i++)
		import_all(p, &p->side[i], &p->side[1 - i]);
}

static void
close_objects(struct ub_pair *p, struct ub_pair_side *sd)
{
	ENDED(p, urma_unimport_seg(sd->to_seg));
	ENDED(p, urma_unimport_jfr(sd->to_jfr));
	ENDED(p, urma_unimport_jetty(sd->to_jetty));
	if (sd->jfr != NULL)
		ENDED(p, urma_delete_jfr(sd->jfr));
	ENDED(p, urma_delete_jfs(sd->jfs));
	if (sd->jetty != NULL)
		ENDED(p, urma_delete_jetty(sd->jetty));
	if (sd->seg != NULL)
		ENDED(p, urma_unregister_seg(sd->seg));
	ENDED(p, urma_delete_jfc(sd->recv_jfc));
	ENDED(p, urma_delete_jfc(sd->send_jfc));
	ENDED(p, urma_delete_context(sd->ctx));
}

void
ub_pair_close(struct ub_pair *p)
{
	ub_pair_nothing(p, 20 * UB_PAIR_MS);
	for (unsigned int i = 0; i < 2; i++) {
		close_objects(p, &p->side[i]);
		close_channels(p, i);
		munmap(p->side[i].mem, UB_PAIR_MEM);
	}
	if (p->cfg.maker != NULL)
		p->cfg.maker->close(p);
	for (unsigned int i = 0; i < 2; i++)
		check_operations(p, i);
	sim_close(p->s); /* which checks sums and leaks */
}
