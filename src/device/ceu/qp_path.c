/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The two paths of a running QP. encap.path names the place from which frames are built; decap
 * compares packets with both. So a place is written only while it is not in use, the QP is not
 * armed, and a round has passed since a stage could have read it. A new primary path is written to
 * the free place, one store puts it into use for requests and responses, and after another round
 * the alternate path is written to the other place.
 */

#include <string.h>

#include "ceu/qp.h"
#include "ctxmgt/rate.h"
#include "engine/loopback.h"
#include "engine/migrate.h"

enum path_step {
	PATH_PLAN,
	PATH_BEGIN,
	PATH_FREE, /* after this round no stage uses the free place */
	PATH_MOVED,
	PATH_DONE,
};

#define RNR_RETRY_BITS HCA_MASK(31, 24)

/* The RNR retry count is stored with the primary path but belongs to the QP. */
static void
swap_paths(struct hca_qpc *q)
{
	uint32_t first = hca_be32_to_cpu(q->path.rnr_retry);
	uint32_t second = hca_be32_to_cpu(q->alt_path.rnr_retry);
	struct hca_qpc_path path = q->path;

	q->path = q->alt_path;
	q->alt_path = path;
	q->path.rnr_retry = hca_cpu_to_be32((second & ~RNR_RETRY_BITS) | (first & RNR_RETRY_BITS));
	q->alt_path.rnr_retry = hca_cpu_to_be32(first & ~RNR_RETRY_BITS);
}

static uint32_t
path_in_use(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->encap.path, __ATOMIC_ACQUIRE) & 1;
}

void
hca_qp_paths_query(const struct hca_qp *qp, struct hca_qpc *image)
{
	uint32_t mig = __atomic_load_n(&qp->addr.mig, __ATOMIC_ACQUIRE);
	uint32_t flags = hca_be32_to_cpu(image->flags);

	if (path_in_use(qp) != hca_qp_work(qp)->image_path)
		swap_paths(image);
	/* between two states a stage is migrating it */
	image->flags = hca_cpu_to_be32(
		HCA_SET_BITS(flags, 12, 11, mig == HCA_MIG_HELD ? HCA_MIG_MIGRATED : mig));
}

bool
hca_qp_paths_hold(struct hca_core *h, struct hca_qp_change *ch)
{
	struct hca_qp *qp = &h->qp[ch->qpi];
	struct hca_qp_work *w = hca_qp_work(qp);
	struct hca_qpc image;

	if (!hca_migrate_hold(qp, &ch->was))
		return false;
	ch->held = true;
	ch->mig = ch->was;
	if (w->image_path != path_in_use(qp)) {
		hca_qp_image_load(qp, &image);
		swap_paths(&image);
		hca_qp_image_store(qp, &image);
	}
	w->image_path = path_in_use(qp);
	return true;
}

void
hca_qp_paths_release(struct hca_core *h, struct hca_qp_change *ch, bool done)
{
	struct hca_qp *qp = &h->qp[ch->qpi];

	if (!ch->held)
		return;
	ch->held = false;
	hca_qp_work(qp)->image_path = path_in_use(qp);
	hca_migrate_release(qp, done ? ch->mig : ch->was);
	if (done && ch->forced)
		hca_migrate_tell(h, HCA_STAGE_CEU, ch->qpi);
}

static void
get_slot(const struct hca_qp *qp, uint32_t place, struct hca_path_slot *s)
{
	const struct hca_udp_template *t = hca_qp_tmpl(qp, place);

	memset(s, 0, sizeof(*s));
	if (t != NULL)
		memcpy(&s->tmpl, t, sizeof(s->tmpl));
	memcpy(s->peer_gid, qp->addr.peer_gid[place], sizeof(s->peer_gid));
	s->pkey = qp->addr.pkey[place];
	s->vlan = qp->addr.vlan[place];
}

static void
put_path(struct hca_core *h, struct hca_qp *qp, uint32_t place, const struct hca_qp_path *p)
{
	const struct hca_path_slot *s = &p->slot;

	memcpy(place == 0 ? &qp->encap.tmpl : &qp->cfg.block->second->tmpl, &s->tmpl,
	       sizeof(s->tmpl));
	memcpy(qp->addr.peer_gid[place], s->peer_gid, sizeof(s->peer_gid));
	qp->addr.pkey[place] = s->pkey;
	qp->addr.vlan[place] = s->vlan;
	qp->addr.ack_timeout[place] = p->timeout;
	qp->addr.rate[place] = p->rate;
	if (p->known)
		hca_loopback_learn(hca_pipe_of(h), p->dmac);
}

static bool
is_in_place(const struct hca_qp *qp, uint32_t place, const struct hca_qp_path *p)
{
	struct hca_path_slot s;

	get_slot(qp, place, &s);
	return memcmp(&s, &p->slot, sizeof(s)) == 0;
}

static void
set_migreq(struct hca_udp_template *t, bool on)
{
	struct hca_bth *bth = (void *)(t->bytes + t->transport);

	if (t->transport != 0) /* else not connected yet, or UD */
		bth->flags = HCA_BTH_MAKE_FLAGS(0, on, 0);
}

/* Values from the mailbox, or the current ones; the rest comes from the image. */
static void
plan_path(const struct hca_qp *qp, uint32_t place, struct hca_qp_path *p,
	  const struct hca_qpc_path *words, bool migreq)
{
	uint32_t ackto = hca_be32_to_cpu(words->ackto);

	if (!p->known)
		get_slot(qp, place, &p->slot);
	p->timeout = (uint8_t)HCA_QPC_ACKTO(ackto);
	p->rate = (uint8_t)HCA_QPC_STATIC_RATE(ackto);
	set_migreq(&p->slot.tmpl, migreq);
}

/* An armed path sends MigReq 0; the path it may migrate to sends 1 from its first frame on. */
static int
plan(struct hca_core *h, struct hca_qp_change *ch)
{
	struct hca_qp *qp = &h->qp[ch->qpi];
	uint32_t place = path_in_use(qp);

	if (ch->mask & HCA_QP_ATTR_PATH_MIG_STATE)
		ch->mig = HCA_QPC_MIG(hca_be32_to_cpu(ch->image.flags));
	ch->forced = ch->was == HCA_MIG_ARMED && ch->mig == HCA_MIG_MIGRATED;
	if (ch->path[1].known && !qp->addr.alt_valid)
		qp->addr.alt_valid = 1; /* decap reads it if the QP is armed */
	plan_path(qp, place, &ch->path[0], &ch->image.path, ch->mig == HCA_MIG_MIGRATED);
	plan_path(qp, 1 - place, &ch->path[1], &ch->image.alt_path, true);
	if (ch->forced) {
		struct hca_qp_path first = ch->path[0];

		ch->path[0] = ch->path[1];
		ch->path[1] = first;
		swap_paths(&ch->image);
	}
	ch->step = PATH_BEGIN;
	return is_in_place(qp, place, &ch->path[0]) ? HCA_STAT_OK : hca_qp_fit_second(h, ch->qpi);
}

/* Write the free place: with the alternate path, or with the new primary one. */
static void
step_free(struct hca_core *h, struct hca_qp_change *ch)
{
	struct hca_qp *qp = &h->qp[ch->qpi];
	uint32_t place = path_in_use(qp);

	ch->step = PATH_DONE;
	if (is_in_place(qp, place, &ch->path[0])) {
		put_path(h, qp, 1 - place, &ch->path[1]);
		return;
	}
	put_path(h, qp, 1 - place, &ch->path[0]);
	hca_migrate_use(qp, 1 - place);
	if (!qp->addr.alt_valid)
		return;
	ch->rcu = hca_round_start(h);
	ch->step = PATH_MOVED;
}

/* The paths of a running QP are written in steps. */
static int
move_paths(struct hca_core *h, struct hca_qp_change *ch)
{
	struct hca_qp *qp = &h->qp[ch->qpi];
	uint32_t place = path_in_use(qp);
	int rc;

	switch (ch->step) {
	case PATH_PLAN:
		rc = plan(h, ch);
		if (rc != HCA_STAT_OK)
			return rc;
		/* fall through */
	case PATH_BEGIN:
		if (is_in_place(qp, place, &ch->path[0]) &&
		    (!qp->addr.alt_valid || is_in_place(qp, 1 - place, &ch->path[1])))
			break;
		ch->rcu = hca_round_start(h);
		ch->step = PATH_FREE;
		return HCA_CMD_AGAIN;
	case PATH_FREE:
		if (!hca_round_done(h, ch->rcu))
			return HCA_CMD_AGAIN;
		step_free(h, ch);
		return ch->step == PATH_DONE ? HCA_STAT_OK : HCA_CMD_AGAIN;
	case PATH_MOVED:
		if (!hca_round_done(h, ch->rcu))
			return HCA_CMD_AGAIN;
		put_path(h, qp, 1 - place, &ch->path[1]);
		break;
	default:
		break;
	}
	ch->step = PATH_DONE;
	return HCA_STAT_OK;
}

/* Cache the path in use for decap, if it is IPv4 and no migration can change it. */
static void
cache_path(struct hca_qp *qp, uint32_t place, uint32_t mig)
{
	const struct hca_udp_template *t = hca_qp_tmpl(qp, place);
	bool ip4 = t->ip_version == 4;
	uint8_t ip[8] = {0};
	uint64_t both;

	__atomic_store_n(&qp->cfg.ask_addr, 1, __ATOMIC_RELEASE);
	if (ip4) {
		memcpy(ip, qp->addr.peer_gid[place] + 12, 4);
		memcpy(ip + 4, t->bytes + t->l3 + offsetof(struct hca_ipv4_hdr, saddr), 4);
	}
	memcpy(&both, ip, sizeof(both));
	__atomic_store_n(&qp->cfg.ip4, both, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->cfg.vlan, qp->addr.vlan[place], __ATOMIC_RELAXED);
	__atomic_store_n(&qp->cfg.pkey, qp->addr.pkey[place], __ATOMIC_RELAXED);
	if (ip4 && mig == HCA_MIG_MIGRATED)
		__atomic_store_n(&qp->cfg.ask_addr, 0, __ATOMIC_RELEASE);
}

/* Timeouts and rates are changed by migration, which is excluded now. */
static void
set_pace(struct hca_qp *qp, uint32_t place, const struct hca_qp_path *path)
{
	for (uint32_t i = 0; i < HCA_QP_PATHS; i++) {
		qp->addr.ack_timeout[place ^ i] = path[i].timeout;
		qp->addr.rate[place ^ i] = path[i].rate;
	}
}

static void
apply_paths(struct hca_core *h, const struct hca_qp_change *ch)
{
	struct hca_qp *qp = &h->qp[ch->qpi];
	uint32_t place = path_in_use(qp);

	for (uint32_t i = 0; i < HCA_QP_PATHS && !ch->held; i++)
		if (ch->path[i].known)
			put_path(h, qp, i, &ch->path[i]);
	if (ch->held)
		set_pace(qp, place, ch->path);
	else
		qp->addr.alt_valid |= ch->path[1].known;
	if (hca_qp_tmpl(qp, place)->transport == 0)
		return;
	__atomic_store_n(&qp->cfg.ack_timeout, qp->addr.ack_timeout[place], __ATOMIC_RELAXED);
	if (qp->cfg.service != HCA_ST_XRC_TGT)
		__atomic_store_n(&qp->addr.limit,
				 hca_rate_limit_pace(hca_be32_to_cpu(ch->image.rate_limit)),
				 __ATOMIC_RELAXED);
	__atomic_store_n(&qp->req_tx.pace, hca_path_pace(qp, place), __ATOMIC_RELAXED);
	cache_path(qp, place, ch->held ? ch->mig : HCA_MIG_MIGRATED);
}

int
hca_qp_paths_step(struct hca_core *h, struct hca_qp_change *ch)
{
	int rc = ch->held ? move_paths(h, ch) : HCA_STAT_OK;

	if (rc != HCA_STAT_OK)
		return rc;
	if (hca_qp_state(&h->qp[ch->qpi]) != ch->from)
		return HCA_STAT_BAD_QP_STATE;
	apply_paths(h, ch);
	return HCA_STAT_OK;
}
