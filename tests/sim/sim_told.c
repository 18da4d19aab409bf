/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim_told.h"

#define LARGEST_WINDOW 2048u

static struct sim *clock_of;

void
sim_told_clock(struct sim *s)
{
	clock_of = s;
}

/* What the algorithm is told of the time is what the clock of the simulation shows. */
static struct sim_told *
told_at(const struct hca_pipe *h, uint32_t obj, uint64_t now)
{
	struct sim *s = clock_of;
	uint64_t shown = s->cfg.executor == SIM_STEPPED ? s->stepper.now : s->now;

	sim_check(s, now == shown, "told of %llu ns at %llu ns", (unsigned long long)now,
		  (unsigned long long)shown);
	return hca_cc_state(h, obj);
}

static void
begin(struct hca_pipe *h, uint32_t obj)
{
	struct sim_told *t = hca_cc_state(h, obj);

	*t = (struct sim_told){.begun = t->begun + 1, .shortest = UINT64_MAX};
}

static struct sim_told *
ask(const struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now,
    const uint64_t *again)
{
	struct sim_told *t = told_at(h, obj, now);

	t->asked++;
	sim_check(clock_of, *again == UINT64_MAX, "the time to ask again is set already");
	t->psns = unanswered + t->acked;
	t->not_frames += t->psns != t->frames;
	return t;
}

/* One PSN unanswered at a time. */
static uint32_t
one_at_a_time(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	struct sim_told *t = ask(h, obj, unanswered, now, again);

	t->refused += unanswered != 0;
	return unanswered == 0 ? TOLD_FRAME : 0;
}

/* One PSN unanswered at a time; only an ACK or a loss, not its time, ends the wait in a test. */
static uint32_t
one_and_late(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	uint32_t leave = one_at_a_time(h, obj, unanswered, now, again);

	*again = now + TOLD_FOREVER_NS;
	return leave;
}

/* A frame each TOLD_GAP_NS. */
static uint32_t
one_each_gap(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	struct sim_told *t = ask(h, obj, unanswered, now, again);

	if (now >= t->next_at)
		return TOLD_FRAME;
	t->refused++;
	*again = t->next_at;
	return 0;
}

static uint32_t
nothing(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	ask(h, obj, unanswered, now, again)->refused++;
	*again = now + TOLD_FOREVER_NS;
	return 0;
}

static uint32_t
all(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	ask(h, obj, unanswered, now, again);
	return UINT32_MAX - 1;
}

static void
sent(struct hca_pipe *h, uint32_t obj, uint32_t frames, uint32_t psns, uint64_t bytes, uint64_t now)
{
	struct sim_told *t = told_at(h, obj, now);

	sim_check(clock_of, t->turns < TOLD_TURNS, "too many turns");
	t->sent_at[t->turns++] = now;
	t->frames += frames;
	t->most = RTE_MAX(t->most, t->frames - t->acked);
	t->bytes += bytes;
	t->next_at = now + TOLD_GAP_NS;
}

static void
acked(struct hca_pipe *h, uint32_t obj, uint32_t psns, uint64_t now)
{
	told_at(h, obj, now)->acked += psns;
}

static void
round_trip(struct hca_pipe *h, uint32_t obj, uint64_t ns, uint64_t now)
{
	struct sim_told *t = told_at(h, obj, now);
	uint32_t i = 0;

	/* TPS dates the packets of a turn 1 ns apart */
	while (i < t->turns && now - ns - t->sent_at[i] > LARGEST_WINDOW)
		i++;
	sim_check(clock_of, i < t->turns, "round trip of %llu ns: nothing was sent then",
		  (unsigned long long)ns);
	t->timed++;
	t->shortest = RTE_MIN(t->shortest, ns);
}

static void
cnp(struct hca_pipe *h, uint32_t obj, uint64_t now)
{
	struct sim_told *t = told_at(h, obj, now);

	t->cnps++;
	t->cnp_at = now;
}

static void
lost(struct hca_pipe *h, uint32_t obj, enum hca_cc_loss why, uint64_t now)
{
	struct sim_told *t = told_at(h, obj, now);

	t->lost[why]++;
	t->lost_after = now - t->sent_at[t->turns - 1];
}

#define OPS(n, ask, mark) \
	{ \
		.name = n, .state_bytes = sizeof(struct sim_told), .marks = mark, .begin = begin, \
		.may_send = ask, .sent = sent, .acked = acked, .round_trip = round_trip, \
		.cnp = cnp, .lost = lost \
	}

const struct hca_cc_ops sim_told_window = OPS("window", one_at_a_time, false);
const struct hca_cc_ops sim_told_hesitant = OPS("hesitant", one_and_late, false);
const struct hca_cc_ops sim_told_rate = OPS("rate", one_each_gap, false);
const struct hca_cc_ops sim_told_never = OPS("never", nothing, false);
const struct hca_cc_ops sim_told_open = OPS("open", all, true);
