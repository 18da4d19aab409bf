/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_client.h"

#define DEPTH 64u

#define MADE(p, object) sim_check((p)->s, (object) != NULL, #object ": %s", softhca_urma_reason())
#define ENDED(p, call) \
	sim_check((p)->s, (call) == URMA_SUCCESS, #call ": %s", softhca_urma_reason())

static void
make_queues(struct ub_pair *p, struct ub_pair_side *sd, const struct ub_client_config *cfg)
{
	urma_transport_mode_t mode = cfg->one_peer ? URMA_TM_RC : URMA_TM_RM;
	urma_jfc_cfg_t depth = {.depth = DEPTH};
	urma_jfr_cfg_t receives = {.depth = 16,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .trans_mode = mode,
				   .token_value.token =
					   cfg->token != 0 ? cfg->token : UB_PAIR_SEND_TOKEN};
	urma_jetty_cfg_t both = {.id = cfg->id,
				 .jfs_cfg = {.depth = 16, .trans_mode = mode, .rnr_retry = 7},
				 .jfr_cfg = &receives};

	sd->send_jfc = sd->recv_jfc = urma_create_jfc(sd->ctx, &depth);
	MADE(p, sd->send_jfc);
	receives.jfc = both.jfs_cfg.jfc = sd->send_jfc;
	sd->jetty = urma_create_jetty(sd->ctx, &both);
	MADE(p, sd->jetty);
}

static void
import_all(struct ub_pair *p, struct ub_pair_side *sd, const struct ub_pair_side *peer)
{
	urma_rjetty_t r = {.jetty_id = peer->jetty->jetty_id,
			   .trans_mode = URMA_TM_RM,
			   .type = URMA_JETTY,
			   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t send = {UB_PAIR_SEND_TOKEN}, memory = {UB_PAIR_SEG_TOKEN};

	sd->to_jetty = urma_import_jetty(sd->ctx, &r, &send);
	MADE(p, sd->to_jetty);
	sd->to_seg =
		urma_import_seg(sd->ctx, &peer->seg->seg, &memory, 0, (urma_import_seg_flag_t){0});
	MADE(p, sd->to_seg);
}

void
ub_client_open(struct ub_pair *p, struct ub_client *c, const struct ub_client_config *cfg)
{
	const struct ub_pair_side *usual = &p->side[cfg->side];
	struct ub_pair_side *sd = &c->own;
	urma_seg_cfg_t seg = {.va = (uintptr_t)usual->mem,
			      .len = UB_PAIR_MEM,
			      .flag.bs.access = URMA_ACCESS_LOCAL_ONLY};

	c->lib = cfg->lib != NULL ? cfg->lib : sim_client(p->s, cfg->side);
	*sd = (struct ub_pair_side){.h = usual->h, .mem = usual->mem};
	sd->ctx = urma_context_new(c->lib, cfg->gid, false,
				   cfg->ctl != NULL ? cfg->ctl : urma_ctx_of(usual->ctx)->ctl);
	MADE(p, sd->ctx);
	make_queues(p, sd, cfg);
	sd->seg = urma_register_seg(sd->ctx, &seg);
	MADE(p, sd->seg);
	import_all(p, sd, &p->side[1 - cfg->side]);
}

void
ub_client_close(struct ub_pair *p, struct ub_client *c)
{
	struct ub_pair_side *sd = &c->own;

	ENDED(p, urma_unimport_seg(sd->to_seg));
	ENDED(p, urma_unimport_jetty(sd->to_jetty));
	ENDED(p, urma_delete_jetty(sd->jetty));
	ENDED(p, urma_unregister_seg(sd->seg));
	ENDED(p, urma_delete_jfc(sd->send_jfc));
	ENDED(p, urma_delete_context(sd->ctx));
	ub_client_kill(p, c);
}

void
ub_client_kill(struct ub_pair *p, struct ub_client *c)
{
	sim_check(p->s, softhca_close(c->lib) == 0, "close: %s", softhca_last_error(NULL));
}
