/* SPDX-License-Identifier: BSD-3-Clause */

/* Jettys and JFRs of peers: channels to their hosts, and their fields in requests. */

#include <string.h>

#include "urma_impl.h"

static int
check_peer(const urma_context_t *ctx, const urma_target_jetty_t *t, const urma_token_t *token)
{
	uint32_t order = t->flag.bs.order_type;

	if (ctx == NULL)
		return urma_null("ctx", "urma_create_context");
	if (t->type == URMA_JETTY_GROUP || order == URMA_OT || order == URMA_OL || order == URMA_NO)
		return urma_fail(
			-EOPNOTSUPP,
			"type %u with order type %u is not offered: import a Jetty or JFR with "
			"URMA_DEF_ORDER or URMA_OI",
			t->type, order);
	if ((t->trans_mode != URMA_TM_RM && t->trans_mode != URMA_TM_RC &&
	     t->trans_mode != URMA_TM_UM) ||
	    t->type > URMA_JETTY_GROUP || order > URMA_NO || t->flag.bs.reserved != 0)
		return urma_fail(
			-EINVAL,
			"mode %u, type %u or flags %#x are not known: expected RM, RC or UM, a "
			"Jetty or JFR, and reserved bits of 0",
			t->trans_mode, t->type, t->flag.value);
	if (t->id.id == HCA_TC_NONE || t->id.id > HCA_TC_MASK)
		return urma_fail(-EINVAL,
				 "no Jetty has the id %#x: expected one of the peer, from 1 to %#x",
				 t->id.id, HCA_TC_MASK);
	if (t->flag.bs.token_policy > URMA_TOKEN_PLAIN_TEXT)
		return urma_fail(-EOPNOTSUPP, URMA_NO_POLICY, t->flag.bs.token_policy,
				 URMA_TOKEN_PLAIN_TEXT);
	if (t->flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT && token == NULL)
		return urma_fail(
			-EINVAL,
			"token_value is NULL, and Jetty %#x of the peer has the token policy "
			"PLAIN_TEXT: pass the peer's token",
			t->id.id);
	return 0;
}

static urma_target_jetty_t *
import(urma_context_t *ctx, const urma_target_jetty_t *what, const urma_token_t *token)
{
	struct urma_ctl_peer request = {0};
	struct urma_ctx *c = urma_ctx_of(ctx);
	struct urma_target *t;
	int err;

	if (check_peer(ctx, what, token) != 0)
		return NULL;
	t = urma_object_new(c, sizeof(*t), "a peer");
	if (t == NULL)
		return NULL;
	t->pub = *what;
	t->pub.urma_ctx = ctx;
	t->check = what->flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
	t->token = t->check ? token->token : 0;
	memcpy(request.eid, what->id.eid.raw, sizeof(request.eid));
	request.gid_index = ctx->eid_index;
	t->unreliable = what->trans_mode == URMA_TM_UM;
	err = t->unreliable ? c->ctl->find_peer(c->lib, &request, &t->ah)
			    : c->ctl->import_peer(c->lib, &request, &t->import, &t->tpg);
	if (err != 0) {
		urma_object_free(c, t);
		errno = -err;
		return NULL;
	}
	return &t->pub;
}

urma_target_jetty_t *
urma_import_jetty(urma_context_t *ctx, urma_rjetty_t *rjetty, urma_token_t *token_value)
{
	urma_target_jetty_t what;

	if (rjetty == NULL) {
		urma_fail(-EINVAL, "rjetty is NULL: expected the Jetty of a peer");
		return NULL;
	}
	what = (urma_target_jetty_t){.id = rjetty->jetty_id,
				     .trans_mode = rjetty->trans_mode,
				     .type = rjetty->type,
				     .flag = rjetty->flag};
	return import(ctx, &what, token_value);
}

urma_target_jetty_t *
urma_import_jfr(urma_context_t *ctx, urma_rjfr_t *rjfr, urma_token_t *token_value)
{
	urma_target_jetty_t what;

	if (rjfr == NULL) {
		urma_fail(-EINVAL, "rjfr is NULL: expected the JFR of a peer");
		return NULL;
	}
	what = (urma_target_jetty_t){.id = rjfr->jfr_id,
				     .trans_mode = rjfr->trans_mode,
				     .type = URMA_JFR,
				     .flag = rjfr->flag};
	return import(ctx, &what, token_value);
}

urma_status_t
urma_unimport_jetty(urma_target_jetty_t *tjetty)
{
	struct urma_target *t = (struct urma_target *)tjetty;
	struct urma_ctx *c;
	uint32_t users;
	int err;

	if (tjetty == NULL)
		return urma_status(urma_null("tjetty", "urma_import_jetty"));
	c = urma_ctx_of(tjetty->urma_ctx);
	pthread_mutex_lock(&c->lock);
	users = t->users;
	pthread_mutex_unlock(&c->lock);
	if (users != 0)
		return urma_status(urma_fail(
			-EBUSY,
			"%u Jettys are bound to the imported Jetty %#x: urma_unbind_jetty() them "
			"first",
			users, tjetty->id.id));
	err = t->unreliable ? 0 : c->ctl->unimport_peer(c->lib, t->import);
	if (err == 0)
		urma_object_free(c, t);
	return urma_status(err);
}

urma_status_t
urma_unimport_jfr(urma_target_jetty_t *target_jfr)
{
	return urma_unimport_jetty(target_jfr);
}

/* ---- one peer ---- */

static int
bind(struct urma_queue *q, struct urma_target *t)
{
	struct urma_ctx *c = q->ctx;
	bool taken;
	int err;

	pthread_mutex_lock(&c->lock);
	taken = q->bound != NULL;
	if (!taken) {
		q->bound = t;
		t->users++;
	}
	pthread_mutex_unlock(&c->lock);
	if (taken)
		return urma_fail(
			-EEXIST,
			"Jetty %u is bound to a peer: urma_unbind_jetty() it before another bind",
			q->number);
	err = c->ctl->bind_jetty(c->lib, q->number, t->pub.id.eid.raw, t->pub.id.id);
	if (err == 0) {
		q->jetty.remote_jetty = &t->pub;
		return 0;
	}
	pthread_mutex_lock(&c->lock);
	q->bound = NULL;
	t->users--;
	pthread_mutex_unlock(&c->lock);
	return err;
}

urma_status_t
urma_bind_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty)
{
	if (jetty == NULL || tjetty == NULL || jetty->urma_ctx != tjetty->urma_ctx)
		return urma_status(urma_fail(
			-EINVAL,
			"jetty %p, tjetty %p: expected a Jetty and an imported one, both of one "
			"context",
			(void *)jetty, (void *)tjetty));
	if (jetty->jetty_cfg.jfs_cfg.trans_mode != URMA_TM_RC || tjetty->type != URMA_JETTY)
		return urma_status(urma_fail(
			-EINVAL,
			"mode %u, type %u: only a Jetty of mode RC (%u) is bound, and to a Jetty",
			jetty->jetty_cfg.jfs_cfg.trans_mode, tjetty->type, URMA_TM_RC));
	if (tjetty->trans_mode == URMA_TM_UM)
		return urma_status(urma_fail(
			-EINVAL,
			"the peer was imported for mode UM (%u): import it for RC (%u) to bind a "
			"Jetty to it",
			URMA_TM_UM, URMA_TM_RC));
	if (tjetty->id.id < HCA_TC_WELL_KNOWN)
		return urma_status(urma_fail(
			-EINVAL,
			"id %u of the peer is well-known: a Jetty is bound to the number of "
			"another, %u or more",
			tjetty->id.id, HCA_TC_WELL_KNOWN));
	return urma_status(bind((struct urma_queue *)jetty, (struct urma_target *)tjetty));
}

void
urma_forget_peer(struct urma_queue *q)
{
	pthread_mutex_lock(&q->ctx->lock);
	if (q->bound != NULL) {
		q->bound->users--;
		q->bound = NULL;
		q->jetty.remote_jetty = NULL;
	}
	pthread_mutex_unlock(&q->ctx->lock);
}

urma_status_t
urma_unbind_jetty(urma_jetty_t *jetty)
{
	struct urma_queue *q = (struct urma_queue *)jetty;
	struct urma_ctx *c;
	int err;

	if (jetty == NULL || q->bound == NULL)
		return urma_status(urma_fail(
			-EINVAL, "jetty is NULL, or not bound: urma_bind_jetty() comes first"));
	c = q->ctx;
	err = c->ctl->bind_jetty(c->lib, q->number, q->bound->pub.id.eid.raw, HCA_TC_NONE);
	if (err == 0)
		urma_forget_peer(q);
	return urma_status(err);
}
