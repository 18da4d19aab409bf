/* SPDX-License-Identifier: BSD-3-Clause */

/* Faults of embedded HCAs as text, in the language of softhca-ctl impair. */

#include <errno.h>
#include <stdio.h>

#include "abi_ctx.h"
#include "abi_tp.h"
#include "embed_impl.h"
#include "wire/wire_view.h"

/* Frames that an HCA sends: to a QP or TP, or from one. */
struct frames {
	uint32_t to, from;
	uint8_t wire;
};

/* QPN of the peer of a QP of this HCA; 0: it has no such QP. */
static uint32_t
peer_of(struct embed_hca *s, uint32_t qpn)
{
	struct hca_qpc q;

	if (hca_driver_query_qp(s->drv, qpn, &q) != 0)
		return 0;
	return hca_be32_to_cpu(q.remote_qpn) & 0xffffff;
}

static bool
qp_lives(struct embed_hca *s, uint32_t qpn)
{
	struct hca_qpc q;

	return hca_driver_query_qp(s->drv, qpn, &q) == 0;
}

static bool
tp_lives(struct embed_hca *s, uint32_t tpn)
{
	struct hca_tpc c;

	return s->owner->cfg.ub != 0 && hca_driver_query_tp(s->drv, tpn, &c) == 0;
}

/*
 * Links in memory are impaired by the senders: frames to a QP are those of the other HCA. A frame
 * that leaves its own HCA has the number of its peer, or, if it is a datagram, its own.
 */
static struct frames
frames_of(struct embed_hca *s, const struct hca_impair_text *t)
{
	struct frames f = {0};

	if (t->qpn == 0 && t->tpn == 0)
		return f;
	f.to = t->qpn | t->tpn;
	f.wire = t->tpn != 0 ? HCA_WIRE_UB : HCA_WIRE_ROCE;
	if (t->tpn != 0) {
		f.from = t->tpn;
	} else if (qp_lives(s, t->qpn)) {
		f.to = peer_of(s, t->qpn);
		f.from = t->qpn;
	}
	return f;
}

static int
judge_number(struct softhca_embed *e, const struct hca_impair_text *t)
{
	bool lives = t->qpn == 0 && t->tpn == 0;

	for (uint32_t i = 0; i < e->cfg.num_hcas && !lives; i++)
		lives = t->tpn != 0 ? tp_lives(&e->side[i], t->tpn) : qp_lives(&e->side[i], t->qpn);
	if (lives)
		return 0;
	return embed_fail(-ENOENT, "there is no %s 0x%x", t->tpn != 0 ? "TP" : "QP",
			  t->qpn | t->tpn);
}

static int
add_rule(struct hca_port *port, const struct hca_impair_text *t, const struct frames *f)
{
	struct hca_fault_rule rule = t->rule;
	int err;

	if (port == NULL)
		return 0;
	rule.qpn = f->to;
	rule.sqpn = f->from;
	rule.wire = f->wire;
	err = hca_port_impair_rule(port, &rule);
	return err == 0 ? 0
			: embed_fail(err,
				     "an HCA has %u rules, the most that may be: "
				     "softhca_embed_clear_faults() removes them",
				     HCA_FAULT_RULES);
}

static void
set_odds(struct hca_port *port, const struct hca_impair_text *t, const struct frames *f)
{
	struct hca_impair odds = t->odds;

	if (port == NULL)
		return;
	odds.qpn = f->to;
	odds.sqpn = f->from;
	odds.wire = f->wire;
	hca_port_impair_set(port, &odds);
}

static int
apply_at(struct embed_hca *s, const struct hca_impair_text *t)
{
	const struct hca_port_stall_rules down = {
		.down_after = t->after_ms * UINT64_C(1000000),
		.down_for = t->for_ms * UINT64_C(1000000),
		.at_once = t->after_ms == 0,
		.both_ways = true,
	};
	const struct frames f = frames_of(s, t);
	int err = 0;

	if (t->kind == HCA_IMPAIR_RULE) {
		err = add_rule(s->impair, t, &f);
		if (err == 0)
			err = add_rule(s->inbound, t, &f);
	} else if (t->kind == HCA_IMPAIR_ODDS) {
		set_odds(s->impair, t, &f);
		set_odds(s->inbound, t, &f);
	} else {
		hca_port_stall_set(s->port, &down);
	}
	return err;
}

static int
apply(struct softhca_embed *e, const struct hca_impair_text *t)
{
	int err;

	if (t->kind == HCA_IMPAIR_GID)
		return embed_fail(-EOPNOTSUPP, "gid=change: only of daemons");
	err = e != NULL ? judge_number(e, t) : 0;
	for (uint32_t i = 0; e != NULL && err == 0 && i < e->cfg.num_hcas; i++)
		err = apply_at(&e->side[i], t);
	return err;
}

int
softhca_embed_impair(struct softhca_embed *e, const char *text)
{
	struct hca_impair_text t;
	char why[192];
	int err = e != NULL ? embed_own(e) : 0;

	while (text != NULL && err == 0) {
		if (hca_impair_parse_next(&text, &t, why, sizeof(why)) != 0)
			return embed_fail(-EINVAL, "%s", why);
		err = apply(e, &t);
	}
	return err;
}

int
softhca_embed_faults(struct softhca_embed *e, unsigned int index, char *text, size_t size)
{
	struct hca_fired fired[HCA_FIRED_MAX];
	unsigned int n;
	size_t used = 0;
	char what[40];
	int err = embed_own_hca(e, index);

	if (err != 0)
		return err;
	if (size != 0)
		text[0] = '\0';
	n = hca_port_impair_fired(e->side[index].impair, fired);
	for (unsigned int i = 0; i < n && used < size; i++) {
		hca_fired_text(&fired[i], what, sizeof(what));
		used += (size_t)snprintf(text + used, size - used, "%s %s PSN %u to 0x%x\n", what,
					 fired[i].opcode[0] != '\0' ? fired[i].opcode : "frame",
					 fired[i].psn, fired[i].dst);
	}
	return (int)n;
}
