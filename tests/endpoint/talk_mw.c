/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory windows of a conversation: bound here, accessed from the other daemon, removed in every
 * possible way, and accessed once more. RC refuses that access with an error that moves both QPs to
 * ERR, and they are connected again; UC drops it.
 */

#include <errno.h>
#include <string.h>

#include "talk.h"

#define BYTES 32768u
#define RIGHTS (SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ)
#define UNTOUCHED 0x5a

/* Steps of a round: how a window is bound and removed, and the operations that count it. */
enum away {
	BY_UNBIND,
	BY_LOCAL_INV,
	BY_SEND_INV,
	WAYS,
};

static const struct way {
	uint32_t type; /* enum softhca_mw_type */
	enum talk_op bind, write, read, away, refused;
	bool rc_only;
} ways[WAYS] = {
	[BY_UNBIND] = {SOFTHCA_MW_TYPE_1, TALK_BIND_MW, TALK_MW_WRITE, TALK_MW_READ, TALK_MW_UNBIND,
		       TALK_MW_REFUSED, false},
	[BY_LOCAL_INV] = {SOFTHCA_MW_TYPE_2, TALK_BIND_MW2, TALK_MW2_WRITE, TALK_MW2_READ,
			  TALK_LOCAL_INV, TALK_MW2_REFUSED, false},
	[BY_SEND_INV] = {SOFTHCA_MW_TYPE_2, TALK_BIND_MW2, TALK_MW2_WRITE, TALK_MW2_READ,
			 TALK_SEND_INV, TALK_MW2_REFUSED, true},
};

static bool
is_rc(const struct talk_windows *w)
{
	return w->f.tx->qp_type == SOFTHCA_QPT_RC;
}

/* ---- binding, taking away ---- */

static int
done_locally(struct talk_windows *w, int err, enum talk_op op)
{
	if (err == 0)
		err = talk_done(&w->f);
	if (err != 0)
		return talk_failed("bind or invalidate", err);
	w->f.tally->verified[op]++;
	return 0;
}

static int
bind_one(struct talk_windows *w, struct softhca_mw_bind_info info, enum talk_op op)
{
	struct softhca_mw_bind bind = {
		.wr_id = ++w->f.serial,
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.bind_info = info,
	};

	return done_locally(w, softhca_bind_mw(w->f.tx, w->one, &bind), op);
}

static int
bind_two(struct talk_windows *w, struct softhca_mw_bind_info info, enum talk_op op)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_BIND_MW};

	w->f.serial++;
	w->two->rkey = softhca_inc_rkey(w->two->rkey);
	wr.bind_mw.mw = w->two;
	wr.bind_mw.rkey = w->two->rkey;
	wr.bind_mw.bind_info = info;
	return done_locally(w, talk_post(&w->f, &wr), op);
}

static int
take_away(struct talk_windows *w, enum away away, uint32_t mine, uint32_t others)
{
	struct softhca_send_wr inv = {.opcode = SOFTHCA_WR_LOCAL_INV, .invalidate_rkey = mine};

	if (away == BY_UNBIND)
		return bind_one(w, (struct softhca_mw_bind_info){0}, ways[away].away);
	if (away == BY_SEND_INV)
		return talk_send(&w->f, ways[away].away, others, mine);
	w->f.serial++;
	return done_locally(w, talk_post(&w->f, &inv), ways[away].away);
}

/* ---- refused ---- */

static int
new_life(struct talk_windows *w)
{
	struct softhca_qp_attr reset = {.qp_state = SOFTHCA_QPS_RESET};
	/* far from the last PSNs, in case old frames are still in the network */
	uint32_t far = ++w->lives * 0x123457;
	int err = softhca_modify_qp(w->f.tx, &reset, SOFTHCA_QP_STATE);

	w->f.posted = 0;
	if (err != 0)
		return talk_failed("reset", err);
	err = peer_meet(w->f.sock);
	if (err == 0)
		err = peer_connect_qp(w->f.p, w->f.tx, w->other_qpn, (w->f.others + far) & 0xffffff,
				      (w->f.mine + far) & 0xffffff);
	return err == 0 ? peer_meet(w->f.sock) : err;
}

static int
try_access(struct talk_windows *w, uint32_t opcode, const struct talk_place *place)
{
	struct softhca_sge sge = {(uintptr_t)w->f.p->buf + TALK_IN, 5000, w->f.p->mr->lkey};
	struct softhca_send_wr wr = {
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {place->addr, place->rkey},
	};
	int err;

	w->f.serial++;
	memset(w->f.p->buf + TALK_IN, UNTOUCHED + 1, TALK_QUARTER);
	err = talk_post(&w->f, &wr);
	return err == 0 ? talk_done(&w->f) : err;
}

static bool
untouched(const struct talk_windows *w, uint32_t at, uint8_t value)
{
	for (uint32_t i = 0; i < BYTES; i++)
		if (w->f.p->buf[at + i] != value)
			return false;
	return true;
}

/*
 * RC: the ends take turns. If the answer was lost, the peer may be in ERR before it can repeat it:
 * this proves less and is not counted.
 */
static int
refused_rc(struct talk_windows *w, enum talk_op op, uint32_t opcode, const struct talk_place *place)
{
	for (unsigned int turn = 0; turn < 2; turn++) {
		bool tries = (turn == 0) == w->first;
		int status = 0, others = 0, err;

		memset(w->f.p->buf + TALK_WINDOW, UNTOUCHED, BYTES);
		err = peer_meet(w->f.sock);
		if (err == 0 && tries)
			status = try_access(w, opcode, place);
		if (err == 0)
			err = talk_swap(w->f.sock, &status, &others, sizeof(status));
		if (err != 0)
			return err;
		status = tries ? status : others;
		if (status != SOFTHCA_WC_REM_ACCESS_ERR && status != SOFTHCA_WC_RETRY_EXC_ERR)
			return talk_failed("access through a window that is gone", status);
		if (!untouched(w, TALK_WINDOW, UNTOUCHED) ||
		    (tries && !untouched(w, TALK_IN, UNTOUCHED + 1)))
			return talk_failed("a window that is gone gave access", -EILSEQ);
		w->f.tally->verified[op] += status == SOFTHCA_WC_REM_ACCESS_ERR;
		err = new_life(w);
		if (err != 0)
			return err;
	}
	return 0;
}

/* UC: no error is reported; the next message arrives. */
static int
refused_uc(struct talk_windows *w, enum talk_op op, const struct talk_place *place)
{
	int err;

	memset(w->f.p->buf + TALK_WINDOW, UNTOUCHED, BYTES);
	err = peer_meet(w->f.sock);
	if (err == 0)
		err = try_access(w, SOFTHCA_WR_RDMA_WRITE, place);
	if (err != 0)
		return talk_failed("access through a window that is gone", err);
	err = talk_send(&w->f, TALK_SEND, 0, 0);
	if (err != 0)
		return err;
	if (!untouched(w, TALK_WINDOW, UNTOUCHED))
		return talk_failed("a window that is gone gave access", -EILSEQ);
	w->f.tally->verified[op]++;
	return 0;
}

/* ---- rounds ---- */

static int
one_way(struct talk_windows *w, enum away away, unsigned int round)
{
	const struct way *way = &ways[away];
	struct softhca_mw *mw = way->type == SOFTHCA_MW_TYPE_1 ? w->one : w->two;
	bool zero_based = round % 2 == 1;
	uint32_t opcode =
		round / 2 % 2 == 1 && is_rc(w) ? SOFTHCA_WR_RDMA_READ : SOFTHCA_WR_RDMA_WRITE;
	struct softhca_mw_bind_info info = {
		.mr = w->mr,
		.addr = (uintptr_t)w->f.p->buf + TALK_WINDOW,
		.length = BYTES,
		.mw_access_flags = RIGHTS | (zero_based ? SOFTHCA_ACCESS_ZERO_BASED : 0),
	};
	struct talk_place place = {
		.at = TALK_WINDOW,
		.addr = zero_based ? 0 : w->f.p->other.addr + TALK_WINDOW,
	};
	uint32_t mine;
	int err = mw == w->one ? bind_one(w, info, way->bind) : bind_two(w, info, way->bind);

	mine = mw->rkey;
	if (err == 0)
		err = talk_swap(w->f.sock, &mine, &place.rkey, sizeof(mine));
	if (err == 0)
		err = talk_write(&w->f, way->write, &place);
	if (err == 0 && is_rc(w))
		err = talk_read(&w->f, way->read, &place);
	if (err == 0)
		err = take_away(w, away, mine, place.rkey);
	if (err != 0)
		return err;
	return is_rc(w) ? refused_rc(w, way->refused, opcode, &place)
			: refused_uc(w, way->refused, &place);
}

int
talk_windows_round(struct talk_windows *w, unsigned int round)
{
	int err = 0;

	for (unsigned int away = 0; away < WAYS && err == 0; away++)
		if (is_rc(w) || !ways[away].rc_only)
			err = one_way(w, (enum away)away, round);
	return err;
}

/* ---- objects ---- */

static int
make(struct talk_windows *w, struct peer *p)
{
	struct softhca_qp_init_attr a = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.srq = p->srq,
		.cap = {.max_send_wr = PEER_DEPTH,
			.max_recv_wr = PEER_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = PEER_INLINE},
		.qp_type = p->qp->qp_type,
	};

	w->mr = softhca_reg_mr(p->pd, p->buf + TALK_WINDOW, BYTES,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_MW_BIND);
	if (w->mr == NULL)
		return -errno;
	w->one = softhca_alloc_mw(p->pd, SOFTHCA_MW_TYPE_1);
	if (w->one == NULL)
		return -errno;
	w->two = softhca_alloc_mw(p->pd, SOFTHCA_MW_TYPE_2);
	if (w->two == NULL)
		return -errno;
	w->f.tx = w->f.rx = softhca_create_qp(p->pd, &a);
	return w->f.tx != NULL ? 0 : -errno;
}

int
talk_windows_open(struct talk_windows *w, const struct talk_flow *like, bool first)
{
	int err;

	memset(w, 0, sizeof(*w));
	w->first = first;
	w->f = *like;
	w->f.tx = w->f.rx = NULL;
	w->f.serial = w->f.posted = 0;
	err = make(w, like->p);
	if (err != 0)
		return talk_failed("objects of windows", err);
	w->f.mine = w->f.tx->qp_num;
	err = talk_swap(w->f.sock, &w->f.mine, &w->f.others, sizeof(w->f.mine));
	w->other_qpn = w->f.others;
	return err == 0 ? new_life(w) : err;
}

void
talk_windows_close(struct talk_windows *w)
{
	if (w->f.tx != NULL)
		softhca_destroy_qp(w->f.tx);
	if (w->two != NULL)
		softhca_dealloc_mw(w->two);
	if (w->one != NULL)
		softhca_dealloc_mw(w->one);
	if (w->mr != NULL)
		softhca_dereg_mr(w->mr);
	memset(w, 0, sizeof(*w));
}
