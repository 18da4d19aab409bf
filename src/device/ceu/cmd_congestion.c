/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * SET_CONGESTION: another algorithm for the HCA, while its QPs and TPs work. A slice of objects at
 * a time makes a pause, in which it sends nothing; after a round no stage is within the former
 * algorithm, and the new one begins. "none" needs no pause, because it has no state.
 *
 * Or another value of a parameter, which is stored for each pipe: stages load it when they use it,
 * so it counts from the next CNP or acknowledgement on.
 */

#include "cc/cc.h"
#include "ceu/qp.h"
#include "engine/state.h"

#define SLICE 256u /* objects that pause together */

enum congestion_step {
	CC_BEGIN,
	CC_PAUSE,
	CC_ROUND,
};

/* A QP whose peer is known, or an object that a row of the wires controls; row: of the latter. */
static bool
controlled(const struct hca_core *h, uint32_t obj, const struct hca_wire_object **row, uint32_t *at)
{
	*row = hca_ceu_object(h, obj, at);
	if (*row != NULL)
		return (*row)->control != NULL && (*row)->is_live(h, *at);
	return h->qp[obj].cfg.local_qpn != 0;
}

/* The number that it is to have. */
static uint8_t
number_for(const struct hca_core *h, uint32_t obj)
{
	struct hca_qpc image;

	if (obj > h->qp_mask)
		return h->cc_room->number;
	hca_qp_image_load(&h->qp[obj], &image);
	return hca_qp_algorithm(h, &image);
}

static void
set_ecn(struct hca_udp_template *t, uint8_t tclass)
{
	if (t->transport != 0)
		hca_udp_template_set_ecn(t, tclass & 3);
}

/* Headers of both places, and the stages ask again. */
static void
control_qp(struct hca_core *h, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];
	struct hca_qp_second *second = qp->cfg.block->second;
	uint32_t primary = hca_qp_work(qp)->image_path;
	const struct hca_qpc_path *path[HCA_QP_PATHS];
	struct hca_qpc image;

	hca_qp_image_load(qp, &image);
	path[primary] = &image.path;
	path[1 - primary] = &image.alt_path;
	set_ecn(&qp->encap.tmpl, hca_qp_tclass(h, &image, path[0]));
	if (second != NULL)
		set_ecn(&second->tmpl, hca_qp_tclass(h, &image, path[1]));
	hca_tell_state(hca_pipe_of_qp(h, qpi), HCA_STAGE_CEU, qpi);
}

/* Whether a round must follow. */
static bool
pause_object(struct hca_core *h, uint32_t obj)
{
	struct hca_cc *cc = h->cc_room;
	const struct hca_wire_object *row;
	uint32_t at;
	uint8_t n;

	if (!controlled(h, obj, &row, &at))
		return false;
	n = number_for(h, obj);
	if (n == cc->of[obj])
		return false;
	hca_cc_set(h, obj, cc->ops[n] != NULL ? hca_cc_pause(cc) : n);
	return cc->ops[n] != NULL;
}

static void
begin_object(struct hca_core *h, uint32_t obj)
{
	const struct hca_wire_object *row;
	uint32_t at;

	if (!controlled(h, obj, &row, &at))
		return;
	if (h->cc_room->of[obj] == hca_cc_pause(h->cc_room))
		hca_cc_begin(hca_pipe_of_object(h, obj), obj, number_for(h, obj));
	if (row != NULL)
		row->control(h, at);
	else if (number_for(h, obj) != 0)
		control_qp(h, obj);
}

/* QPs, then other objects: the number of the nth. */
static uint32_t
nth(uint32_t n, uint32_t qps, uint32_t others)
{
	return n < qps ? n : others + n - qps;
}

/* Ranges of all limits, of which the parameters are some. */
enum {
#define X(section, name, min, max, def) MIN_##name = min, MAX_##name = max,
	HCA_LIMIT_LIST(X)
#undef X
};

/* In the configuration of a pipe; NULL: no parameter has this number. */
static uint32_t *
parameter(struct hca_config *c, uint32_t number, uint32_t *min, uint32_t *max)
{
	switch (number) {
#define X(name) \
	case HCA_CC_##name: \
		*min = MIN_##name; \
		*max = MAX_##name; \
		return &c->name;
		HCA_CC_PARAMETER_LIST(X)
#undef X
	default:
		return NULL;
	}
}

static int
set_parameter(struct hca_core *h, uint32_t number, uint64_t value)
{
	struct hca *dev = h->hca;
	uint32_t min, max;

	if (parameter(&h->cfg, number, &min, &max) == NULL || value < min || value > max)
		return HCA_STAT_BAD_PARAM;
	for (unsigned int n = 0; n < dev->n_pipes; n++)
		__atomic_store_n(parameter(&dev->pipe[n].cfg, number, &min, &max), (uint32_t)value,
				 __ATOMIC_RELAXED);
	return HCA_STAT_OK;
}

static int
congestion_begin(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_cc *cc = h->cc_room;

	if (c->op_modifier != 0)
		return HCA_STAT_BAD_PARAM;
	if (c->in_modifier != HCA_CC_ALGORITHM)
		return set_parameter(h, c->in_modifier, c->in_param);
	if (c->in_param == 0 || c->in_param > cc->numbers)
		return HCA_STAT_BAD_PARAM;
	if (c->in_param == cc->number)
		return HCA_STAT_OK;
	if (hca_cc_use(h, (uint8_t)c->in_param) != 0)
		return HCA_STAT_EXCEED_LIM;
	__atomic_store_n(&cc->number, (uint8_t)c->in_param, __ATOMIC_RELAXED);
	c->index = 0;
	c->step = CC_PAUSE;
	return HCA_CMD_AGAIN;
}

int
hca_cmd_set_congestion(struct hca_core *h, struct hca_cmd *c)
{
	uint32_t others, qps = h->qp_mask + 1, n = qps + hca_ceu_others(h, &others), end;
	bool round = false;

	if (c->step == CC_BEGIN)
		return congestion_begin(h, c);
	end = RTE_MIN(c->index + SLICE, n);
	if (c->step == CC_PAUSE) {
		for (uint32_t i = c->index; i < end; i++)
			round |= pause_object(h, nth(i, qps, others));
		c->step = CC_ROUND;
		c->rcu = round ? hca_round_start(h) : 0;
		if (round)
			return HCA_CMD_AGAIN;
	}
	if (c->rcu != 0 && !hca_round_done(h, c->rcu))
		return HCA_CMD_AGAIN;
	for (; c->index < end; c->index++)
		begin_object(h, nth(c->index, qps, others));
	c->step = CC_PAUSE;
	if (c->index < n)
		return HCA_CMD_AGAIN;
	hca_cc_settle(h);
	return HCA_STAT_OK;
}
