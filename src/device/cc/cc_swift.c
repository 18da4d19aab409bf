/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Swift for requests of QPs, and for TPs of UB. READ responses are not acknowledged: their number
 * is limited by the window of the requester, which counts them.
 */

#include "cc/cc.h"
#include "cc/swift.h"
#include "engine/impl.h"

static void
params_of(const struct hca_pipe *h, struct hca_swift_params *p)
{
	uint32_t base = HCA_PARAMETER(h, swift_base_delay_us) * 1000u;

	*p = (struct hca_swift_params){HCA_SWIFT_DEFAULTS(base)};
}

static bool
is_responses(const struct hca_pipe *h, uint32_t obj)
{
	return obj >= h->object[HCA_OBJECT_ANY].count;
}

static void
swift_begin(struct hca_pipe *h, uint32_t obj)
{
	hca_swift_begin(hca_cc_state(h, obj));
}

static uint32_t
swift_may_send(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	if (is_responses(h, obj))
		return UINT32_MAX;
	return hca_swift_may_send(hca_cc_state(h, obj), unanswered, now, again);
}

static void
swift_sent(struct hca_pipe *h, uint32_t obj, uint32_t frames, uint32_t psns, uint64_t bytes,
	   uint64_t now)
{
	uint64_t responses = psns - frames;

	if (is_responses(h, obj))
		return;
	hca_swift_sent(hca_cc_state(h, obj),
		       bytes * HCA_SWIFT_ONE / HCA_CC_FRAME + responses * HCA_SWIFT_ONE,
		       (psns + frames - 1) / frames, now);
}

static void
swift_acked(struct hca_pipe *h, uint32_t obj, uint32_t psns, uint64_t now)
{
	struct hca_swift_params p;

	(void)now;
	params_of(h, &p);
	hca_swift_acked(hca_cc_state(h, obj), &p, psns);
}

static void
swift_round_trip(struct hca_pipe *h, uint32_t obj, uint64_t ns, uint64_t now)
{
	struct hca_swift_params p;

	params_of(h, &p);
	hca_swift_timed(hca_cc_state(h, obj), &p, ns, now);
}

static void
swift_cnp(struct hca_pipe *h, uint32_t obj, uint64_t now)
{
	(void)h;
	(void)obj;
	(void)now;
}

static void
swift_lost(struct hca_pipe *h, uint32_t obj, enum hca_cc_loss why, uint64_t now)
{
	struct hca_swift_params p;

	(void)why;
	params_of(h, &p);
	hca_swift_lost(hca_cc_state(h, obj), &p, now);
}

static void
swift_show(const struct hca_pipe *h, uint32_t obj, struct hca_cc_view *out)
{
	const struct hca_swift *s = hca_cc_state(h, obj);

	if (is_responses(h, obj))
		return;
	out->window = RTE_MAX(__atomic_load_n(&s->window, __ATOMIC_RELAXED) / HCA_SWIFT_ONE, 1u);
	out->rtt_ns = __atomic_load_n(&s->rtt, __ATOMIC_RELAXED);
	out->target_ns = __atomic_load_n(&s->target, __ATOMIC_RELAXED);
}

const struct hca_cc_ops hca_cc_swift = {
	.name = "swift",
	.state_bytes = sizeof(struct hca_swift),
	.marks = true,
	.begin = swift_begin,
	.may_send = swift_may_send,
	.sent = swift_sent,
	.acked = swift_acked,
	.round_trip = swift_round_trip,
	.cnp = swift_cnp,
	.lost = swift_lost,
	.show = swift_show,
};
