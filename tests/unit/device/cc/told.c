/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "told.h"

static struct told *
told_of(const struct hca_pipe *h, uint32_t obj)
{
	return hca_cc_state(h, obj);
}

static void
told_begin(struct hca_pipe *h, uint32_t obj)
{
	told_of(h, obj)->begun++;
}

static uint32_t
told_may_send(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	struct told *t = told_of(h, obj);
	uint32_t leave = t->leave;

	t->asked++;
	t->unanswered = unanswered;
	t->leave = 0;
	if (t->again != 0)
		*again = t->again;
	return leave;
}

static void
told_sent(struct hca_pipe *h, uint32_t obj, uint32_t frames, uint32_t psns, uint64_t bytes,
	  uint64_t now)
{
	told_of(h, obj)->psns += psns;
	told_of(h, obj)->frames += frames;
	told_of(h, obj)->bytes += bytes;
}

static void
told_acked(struct hca_pipe *h, uint32_t obj, uint32_t psns, uint64_t now)
{
	told_of(h, obj)->acked += psns;
}

static void
told_round_trip(struct hca_pipe *h, uint32_t obj, uint64_t ns, uint64_t now)
{
	told_of(h, obj)->timed++;
	told_of(h, obj)->rtt = ns;
}

static void
told_cnp(struct hca_pipe *h, uint32_t obj, uint64_t now)
{
	told_of(h, obj)->cnps++;
}

static void
told_lost(struct hca_pipe *h, uint32_t obj, enum hca_cc_loss why, uint64_t now)
{
	told_of(h, obj)->lost[why]++;
}

const struct hca_cc_ops told_ops = {
	.name = "told",
	.state_bytes = sizeof(struct told),
	.begin = told_begin,
	.may_send = told_may_send,
	.sent = told_sent,
	.acked = told_acked,
	.round_trip = told_round_trip,
	.cnp = told_cnp,
	.lost = told_lost,
};

void
told_open(struct hca_pipe *h, uint32_t obj)
{
	static const struct hca_cc_ops *const more[] = {&told_ops, NULL};

	h->cfg.congestion = told_ops.name;
	h->cfg.congestion_more = more;
	if (hca_cc_init(h) != 0)
		abort();
	hca_cc_begin(h, obj, h->cc_room->number);
}
