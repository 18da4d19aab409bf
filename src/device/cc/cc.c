/* SPDX-License-Identifier: BSD-3-Clause */

/* The table of algorithms; which one an object has; the calls of the stages; round trips of QPs. */

#include <errno.h>
#include <string.h>

#include "abi_qp_attr.h"
#include "cc/cc.h"
#include "cc/cc_names.h"
#include "core/table.h"
#include "hca.h"

#define PAUSE_NS 2000u /* between questions; the end of a pause is told by a message */

#define X(name) extern const struct hca_cc_ops hca_cc_##name;
HCA_CC_LIST(X)
#undef X

static const struct hca_cc_ops *const cc_table[] = {
#define X(name) &hca_cc_##name,
	HCA_CC_LIST(X)
#undef X
};

/* ---- the pause, in which nothing leaves ---- */

static void
pause_begin(struct hca_pipe *h, uint32_t obj)
{
	(void)h;
	(void)obj;
}

static uint32_t
pause_may_send(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	(void)h;
	(void)obj;
	(void)unanswered;
	*again = now + PAUSE_NS;
	return 0;
}

static void
pause_sent(struct hca_pipe *h, uint32_t obj, uint32_t frames, uint32_t psns, uint64_t bytes,
	   uint64_t now)
{
	(void)h;
	(void)obj;
	(void)frames;
	(void)psns;
	(void)bytes;
	(void)now;
}

static void
pause_acked(struct hca_pipe *h, uint32_t obj, uint32_t psns, uint64_t now)
{
	(void)h;
	(void)obj;
	(void)psns;
	(void)now;
}

static void
pause_round_trip(struct hca_pipe *h, uint32_t obj, uint64_t ns, uint64_t now)
{
	(void)h;
	(void)obj;
	(void)ns;
	(void)now;
}

static void
pause_cnp(struct hca_pipe *h, uint32_t obj, uint64_t now)
{
	(void)h;
	(void)obj;
	(void)now;
}

static void
pause_lost(struct hca_pipe *h, uint32_t obj, enum hca_cc_loss why, uint64_t now)
{
	(void)h;
	(void)obj;
	(void)why;
	(void)now;
}

static const struct hca_cc_ops pause = {
	.name = "pause",
	.begin = pause_begin,
	.may_send = pause_may_send,
	.sent = pause_sent,
	.acked = pause_acked,
	.round_trip = pause_round_trip,
	.cnp = pause_cnp,
	.lost = pause_lost,
};

/* ---- the algorithms of a device ---- */

int
hca_cc_find(const char *name, const struct hca_cc_ops *const *more)
{
	unsigned int n = hca_cc_number(name != NULL ? name : "none");

	if (n != 0)
		return (int)n;
	for (n = RTE_DIM(cc_table) + 1; more != NULL && *more != NULL; more++, n++)
		if (strcmp((*more)->name, name) == 0)
			return (int)n;
	return -EINVAL;
}

static void
cc_add(struct hca_cc *cc, const struct hca_cc_ops *row)
{
	size_t bytes =
		sizeof(struct hca_cc_flow) + RTE_ALIGN_CEIL(row->state_bytes, RTE_CACHE_LINE_SIZE);
	uint8_t n = ++cc->numbers;

	cc->row[n] = row;
	cc->ops[n] = row->may_send != NULL ? row : NULL;
	cc->flow_bytes = RTE_MAX(cc->flow_bytes, bytes);
}

static uint32_t
cc_flows(const struct hca_pipe *h)
{
	return h->object[HCA_OBJECT_ANY].count + h->object[HCA_OBJECT_QP].count;
}

/* The table, those that only this device has, and the pause. -EINVAL: too many. */
static int
cc_fill(struct hca_cc *cc, const struct hca_cc_ops *const *more)
{
	for (unsigned int i = 0; i < RTE_DIM(cc_table); i++)
		cc_add(cc, cc_table[i]);
	for (; more != NULL && *more != NULL; more++) {
		if (cc->numbers + 2u == HCA_CC_ROWS)
			return -EINVAL;
		cc_add(cc, *more);
	}
	cc->row[hca_cc_pause(cc)] = cc->ops[hca_cc_pause(cc)] = &pause;
	return 0;
}

_Static_assert(RTE_DIM(cc_table) + 2 <= HCA_CC_ROWS, "the table, and the pause");
_Static_assert(RTE_DIM(cc_table) == HCA_CONGESTION_MAX, "each has a number of the attribute");

int
hca_cc_init(struct hca_pipe *h)
{
	int number = hca_cc_find(h->cfg.congestion, h->cfg.congestion_more), rc;
	struct hca_cc *cc;

	if (number < 0)
		return number;
	if (h->pipe_number != 0) { /* objects are numbered through all pipes */
		h->cc_room = h->hca->core->cc_room;
		h->cc = h->hca->core->cc;
		return 0;
	}
	cc = hca_table_alloc(1, sizeof(*cc) + h->object[HCA_OBJECT_ANY].count, h->cfg.socket_id);
	h->cc_room = cc;
	if (cc == NULL)
		return -ENOMEM;
	rc = cc_fill(cc, h->cfg.congestion_more);
	cc->number = (uint8_t)number;
	if (rc == 0)
		rc = hca_cc_use(&h->core, cc->number);
	if (rc != 0)
		hca_cc_fini(h);
	return rc;
}

void
hca_cc_fini(struct hca_pipe *h)
{
	if (h->pipe_number == 0 && h->cc_room != NULL) {
		hca_table_free(h->cc_room->flow);
		hca_table_free(h->cc_room);
	}
	h->cc_room = NULL;
	h->cc = NULL;
}

/* Of all pipes that there are; hca_create() makes one after the other. */
static void
cc_publish(struct hca_core *h, struct hca_cc *cc)
{
	struct hca *dev = h->hca;

	__atomic_store_n(&h->cc, cc, __ATOMIC_RELEASE);
	for (unsigned int n = 0; dev != NULL && n < dev->n_pipes; n++)
		__atomic_store_n(&dev->pipe[n].cc, cc, __ATOMIC_RELEASE);
}

int
hca_cc_use(struct hca_core *h, uint8_t number)
{
	struct hca_cc *cc = h->cc_room;

	if (cc->ops[number] == NULL || h->cc != NULL)
		return 0;
	if (cc->flow == NULL)
		cc->flow =
			hca_table_alloc(cc_flows(hca_pipe_of(h)), cc->flow_bytes, h->cfg.socket_id);
	if (cc->flow == NULL)
		return -ENOMEM;
	cc_publish(h, cc);
	return 0;
}

void
hca_cc_settle(struct hca_core *h)
{
	const struct hca_cc *cc = h->cc_room;

	if (h->cc != NULL && cc->controlled == 0 && cc->ops[cc->number] == NULL)
		cc_publish(h, NULL);
}

/* ---- objects ---- */

static struct hca_cc_flow *
flow_of(const struct hca_pipe *h, uint32_t obj)
{
	return RTE_PTR_ADD(h->cc_room->flow, obj * h->cc_room->flow_bytes);
}

void *
hca_cc_state(const struct hca_pipe *h, uint32_t obj)
{
	return flow_of(h, obj) + 1;
}

uint32_t
hca_cc_life(const struct hca_pipe *h, uint32_t obj)
{
	return __atomic_load_n(&flow_of(h, obj)->life, __ATOMIC_RELAXED);
}

uint32_t
hca_cc_responses(const struct hca_pipe *h, uint32_t qpi)
{
	return h->object[HCA_OBJECT_ANY].count + qpi;
}

static void
flow_begin(struct hca_pipe *h, uint32_t obj, uint8_t number)
{
	struct hca_cc_flow *f = flow_of(h, obj);

	f->repeated = f->ended = f->begun;
	__atomic_store_n(&f->life, f->life + 1, __ATOMIC_RELAXED);
	if (f->number != number)
		memset(f + 1, 0, h->cc_room->flow_bytes - sizeof(*f));
	f->number = number;
	h->cc_room->ops[number]->begin(h, obj);
}

void
hca_cc_set(struct hca_core *h, uint32_t obj, uint8_t number)
{
	struct hca_cc *cc = h->cc_room;

	cc->controlled += (cc->ops[number] != NULL) - (cc->ops[cc->of[obj]] != NULL);
	__atomic_store_n(&cc->of[obj], number, __ATOMIC_RELEASE);
}

void
hca_cc_begin(struct hca_pipe *h, uint32_t obj, uint8_t number)
{
	if (h->cc_room->ops[number] != NULL) {
		flow_begin(h, obj, number);
		if (obj < h->object[HCA_OBJECT_QP].count)
			flow_begin(h, hca_cc_responses(h, obj), number);
	}
	hca_cc_set(&h->core, obj, number);
}

void
hca_cc_sent(struct hca_pipe *h, const struct hca_cc_ops *ops, uint32_t obj, uint32_t last,
	    bool repeated, uint32_t frames, uint32_t psns, uint64_t bytes, uint64_t now)
{
	struct hca_cc_flow *f = flow_of(h, obj);

	if (ops == &pause) /* the CEU may be in hca_cc_begin() */
		return;
	if (repeated) {
		__atomic_store_n(&f->repeated, f->begun, __ATOMIC_RELEASE);
	} else if (__atomic_load_n(&f->ended, __ATOMIC_ACQUIRE) == f->begun) {
		f->sent_at = now;
		f->psn = last;
		__atomic_store_n(&f->begun, f->begun + 1, __ATOMIC_RELEASE);
	}
	/* one that is repeated for its ACK has no PSN more */
	ops->sent(h, obj, frames, RTE_MAX(psns, frames), bytes, now);
}

void
hca_cc_acked(struct hca_pipe *h, const struct hca_cc_ops *ops, uint32_t obj, uint32_t una,
	     uint32_t n, uint64_t now)
{
	struct hca_cc_flow *f = flow_of(h, obj);
	uint32_t begun;

	if (ops == &pause)
		return;
	begun = __atomic_load_n(&f->begun, __ATOMIC_ACQUIRE);
	if (begun != f->ended && ((una - 1 - f->psn) & HCA_PSN_MASK) < HCA_PSN_HALF) {
		if (__atomic_load_n(&f->repeated, __ATOMIC_ACQUIRE) != begun)
			ops->round_trip(h, obj, RTE_MAX(now, f->sent_at) - f->sent_at, now);
		__atomic_store_n(&f->ended, begun, __ATOMIC_RELEASE);
	}
	ops->acked(h, obj, n, now);
}

/* ---- any thread ---- */

static void
show(const struct hca_pipe *h, const struct hca_cc_ops *ops, uint32_t obj, struct hca_cc_view *out)
{
	*out = (struct hca_cc_view){0};
	if (ops != NULL && ops->show != NULL)
		ops->show(h, obj, out);
}

static void
show_limits(const struct hca_pipe *h, const struct hca_cc_ops *ops, uint32_t obj,
	    struct hca_congestion_limits *out)
{
	struct hca_cc_view v;

	show(h, ops, obj, &v);
	*out = (struct hca_congestion_limits){.name = ops != NULL ? ops->name : "none",
					      .rate_bps = v.rate_kbps * UINT64_C(1000),
					      .window = v.window,
					      .rtt_ns = v.rtt_ns,
					      .target_ns = v.target_ns};
}

int
hca_qp_congestion(const struct hca *dev, uint32_t qpn, struct hca_congestion_limits *out)
{
	const struct hca_pipe *h = &dev->pipe[0];
	uint32_t qpi = hca_qp_index(&h->core, qpn);
	const struct hca_cc_ops *ops = hca_cc_of(h, qpi);
	struct hca_cc_view responses;

	if (qpn == 0 || __atomic_load_n(&h->qp[qpi].cfg.local_qpn, __ATOMIC_ACQUIRE) != qpn) {
		show_limits(h, NULL, qpi, out);
		return -ENOENT;
	}
	show_limits(h, ops, qpi, out);
	show(h, ops, hca_cc_responses(h, qpi), &responses);
	out->responses_bps = responses.rate_kbps * UINT64_C(1000);
	return 0;
}

int
hca_tp_congestion(const struct hca *dev, uint32_t tpn, struct hca_congestion_limits *out)
{
	const struct hca_pipe *h = &dev->pipe[0];
	const struct hca_object_range *tps = &h->object[HCA_OBJECT_TP];
	uint32_t obj = tps->first + (tpn & (tps->count - 1));

	show_limits(h, tps->count != 0 ? hca_cc_of(h, obj) : NULL, obj, out);
	return tps->count != 0 ? 0 : -ENOENT;
}
