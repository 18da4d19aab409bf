/* SPDX-License-Identifier: BSD-3-Clause */

/* DCQCN: the rate of a QP's requests, of its READ responses, and of a TP, by CNPs of the peer. */

#include "cc/cc.h"
#include "cc/dcqcn.h"
#include "cc/window.h"
#include "engine/impl.h"

struct flow {
	struct hca_dcqcn rate;
	struct hca_cc_window window __rte_cache_aligned;
};

static void
params_of(const struct hca_pipe *h, struct hca_dcqcn_params *p)
{
	*p = (struct hca_dcqcn_params){HCA_DCQCN_DEFAULTS(h->cfg.link_mbps * 1000u)};
}

static void
dcqcn_begin(struct hca_pipe *h, uint32_t obj)
{
	struct flow *f = hca_cc_state(h, obj);

	hca_dcqcn_begin(&f->rate);
	hca_cc_window_begin(&f->window);
}

static uint32_t
dcqcn_may_send(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	struct flow *f = hca_cc_state(h, obj);
	uint32_t window = hca_cc_window_of(&f->window), leave;
	struct hca_dcqcn_params p;

	if (unanswered >= window)
		return 0;
	params_of(h, &p);
	leave = hca_dcqcn_may_send(&f->rate, &p, now, again);
	return RTE_MIN(leave, (window - unanswered) * HCA_CC_FRAME);
}

static void
dcqcn_sent(struct hca_pipe *h, uint32_t obj, uint32_t frames, uint32_t psns, uint64_t bytes,
	   uint64_t now)
{
	struct flow *f = hca_cc_state(h, obj);
	struct hca_dcqcn_params p;

	(void)frames;
	(void)psns;
	params_of(h, &p);
	hca_dcqcn_sent(&f->rate, &p, bytes, now);
}

static void
dcqcn_acked(struct hca_pipe *h, uint32_t obj, uint32_t psns, uint64_t now)
{
	struct flow *f = hca_cc_state(h, obj);

	hca_cc_window_acked(&f->window, psns, now);
}

static void
dcqcn_round_trip(struct hca_pipe *h, uint32_t obj, uint64_t ns, uint64_t now)
{
	struct flow *f = hca_cc_state(h, obj);

	(void)now;
	hca_cc_window_timed(&f->window, ns);
}

static void
dcqcn_cnp(struct hca_pipe *h, uint32_t obj, uint64_t now)
{
	struct flow *f = hca_cc_state(h, obj);

	hca_dcqcn_notified(&f->rate);
	hca_cc_window_cut(&f->window, now);
}

static void
dcqcn_lost(struct hca_pipe *h, uint32_t obj, enum hca_cc_loss why, uint64_t now)
{
	struct flow *f = hca_cc_state(h, obj);

	(void)why;
	hca_cc_window_cut(&f->window, now);
}

static void
dcqcn_show(const struct hca_pipe *h, uint32_t obj, struct hca_cc_view *out)
{
	const struct flow *f = hca_cc_state(h, obj);

	out->rate_kbps = __atomic_load_n(&f->rate.rate, __ATOMIC_RELAXED);
	out->window = hca_cc_window_of(&f->window);
}

const struct hca_cc_ops hca_cc_dcqcn = {
	.name = "dcqcn",
	.state_bytes = sizeof(struct flow),
	.marks = true,
	.begin = dcqcn_begin,
	.may_send = dcqcn_may_send,
	.sent = dcqcn_sent,
	.acked = dcqcn_acked,
	.round_trip = dcqcn_round_trip,
	.cnp = dcqcn_cnp,
	.lost = dcqcn_lost,
	.show = dcqcn_show,
};
