/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The order of sleep and kick (graph/sleep.h), model-checked: every interleaving of a worker that
 * goes to sleep and of kickers that publish work, on a machine whose stores reach memory later than
 * its loads (x86: a store buffer per CPU that drains at any time; a fence waits for it). A wakeup
 * is lost if all threads have finished, work is in memory, and the worker sleeps without a kick.
 *
 * To show that the model is able to find lost wakeups, it also finds those that occur if either
 * fence is omitted, or if the worker checks for work before it announces its sleep.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define KICKERS_MAX 2
#define BUFFER 3
#define SEEN_MAX (1u << 22)

/* Memory: the sleep word, the note of the last kicked sleep, and a work item per kicker. */
enum cell {
	WORD,
	NOTE,
	WORK,
	CELLS = WORK + KICKERS_MAX
};

struct thread {
	uint8_t pc;
	uint8_t reg; /* value loaded last */
	uint8_t buffered;
	uint8_t cell[BUFFER], value[BUFFER];
};

struct state {
	uint8_t memory[CELLS];
	uint8_t kicks; /* kicks not consumed yet */
	uint8_t done;  /* bits of the work items that the worker has found */
	struct thread worker, kicker[KICKERS_MAX];
};

/* Parts of the protocol to omit. */
struct rules {
	unsigned int kickers;
	bool no_worker_fence, no_kicker_fence, look_first;
};

static uint8_t seen[SEEN_MAX / 8];
static uint64_t states;
static bool lost;

static uint64_t
hash_of(const struct state *s)
{
	const uint8_t *p = (const uint8_t *)s;
	uint64_t h = 1469598103934665603u;

	for (size_t i = 0; i < sizeof(*s); i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h ^ h >> 29;
}

/* A thread sees its own newest store first. */
static uint8_t
load(const struct state *s, const struct thread *t, uint8_t cell)
{
	for (unsigned int i = t->buffered; i-- > 0;)
		if (t->cell[i] == cell)
			return t->value[i];
	return s->memory[cell];
}

static void
store(struct thread *t, uint8_t cell, uint8_t value)
{
	assert_true(t->buffered < BUFFER);
	t->cell[t->buffered] = cell;
	t->value[t->buffered++] = value;
}

static void
drain_one(struct state *s, struct thread *t)
{
	s->memory[t->cell[0]] = t->value[0];
	t->buffered--;
	for (unsigned int i = 0; i < t->buffered; i++) {
		t->cell[i] = t->cell[i + 1];
		t->value[i] = t->value[i + 1];
	}
	t->cell[t->buffered] = t->value[t->buffered] = 0;
}

/* Check every item; true: one was found. */
static bool
look(struct state *s, const struct rules *r)
{
	bool found = false;

	for (unsigned int k = 0; k < r->kickers; k++) {
		if (load(s, &s->worker, (uint8_t)(WORK + k)) != 0 && !(s->done >> k & 1)) {
			s->done |= (uint8_t)(1u << k);
			found = true;
		}
	}
	return found;
}

enum worker_pc {
	W_EARLY, /* only with look_first */
	W_SAY,
	W_FENCE,
	W_LOOK,
	W_SLEEP,
	W_AWAKE,
	W_AGAIN
};

/* False: the thread cannot execute a step now. */
static bool
step_worker(struct state *s, const struct rules *r)
{
	struct thread *w = &s->worker;

	if (w->buffered == BUFFER)
		return false;
	switch (w->pc) {
	case W_EARLY:
		if (r->look_first)
			look(s, r);
		w->pc = W_SAY;
		return true;
	case W_SAY:
		store(w, WORD, (uint8_t)(load(s, w, WORD) + 1));
		w->pc = r->no_worker_fence ? W_LOOK : W_FENCE;
		return true;
	case W_FENCE:
		if (w->buffered != 0)
			return false;
		w->pc = W_LOOK;
		return true;
	case W_LOOK:
		w->pc = !r->look_first && look(s, r) ? W_AWAKE : W_SLEEP;
		return true;
	case W_SLEEP: /* a system call: the buffer drains meanwhile, which is a step of its own */
		if (s->kicks == 0)
			return false;
		s->kicks = 0;
		w->pc = W_AWAKE;
		return true;
	case W_AWAKE:
		store(w, WORD, (uint8_t)(load(s, w, WORD) + 1));
		w->pc = W_AGAIN;
		return true;
	default: /* polls, and goes to sleep again while work is still to come */
		look(s, r);
		w->pc = W_EARLY;
		return true;
	}
}

enum kicker_pc {
	K_PUBLISH,
	K_FENCE,
	K_WORD,
	K_NOTED,
	K_KICK,
	K_NOTE,
	K_END
};

static bool
step_kicker(struct state *s, const struct rules *r, unsigned int k)
{
	struct thread *t = &s->kicker[k];

	switch (t->pc) {
	case K_PUBLISH:
		store(t, (uint8_t)(WORK + k), 1);
		t->pc = r->no_kicker_fence ? K_WORD : K_FENCE;
		return true;
	case K_FENCE:
		if (t->buffered != 0)
			return false;
		t->pc = K_WORD;
		return true;
	case K_WORD:
		t->reg = load(s, t, WORD);
		t->pc = t->reg & 1 ? K_NOTED : K_END;
		return true;
	case K_NOTED:
		t->pc = load(s, t, NOTE) == t->reg ? K_END : K_KICK;
		return true;
	case K_KICK:
		s->kicks++;
		t->pc = K_NOTE;
		return true;
	case K_NOTE:
		store(t, NOTE, t->reg);
		t->pc = K_END;
		return true;
	default:
		return false;
	}
}

static bool
is_new(const struct state *s)
{
	uint64_t h = hash_of(s) % SEEN_MAX;
	bool old = seen[h / 8] >> (h % 8) & 1;

	seen[h / 8] |= (uint8_t)(1u << (h % 8));
	states += !old;
	return !old;
}

/* A kicker that never runs again has not finished: it would still kick. */
static void
judge(const struct state *s, const struct rules *r)
{
	if (s->worker.pc != W_SLEEP || s->kicks != 0 || s->worker.buffered != 0)
		return;
	for (unsigned int k = 0; k < r->kickers; k++)
		if (s->kicker[k].pc != K_END || s->kicker[k].buffered != 0)
			return;
	lost |= s->done != (1u << r->kickers) - 1;
}

static void
explore(const struct state *s, const struct rules *r)
{
	struct state next;

	if (s->memory[WORD] > 12 || !is_new(s))
		return;
	judge(s, r);
	next = *s;
	if (step_worker(&next, r))
		explore(&next, r);
	next = *s;
	if (next.worker.buffered != 0) {
		drain_one(&next, &next.worker);
		explore(&next, r);
	}
	for (unsigned int k = 0; k < r->kickers; k++) {
		next = *s;
		if (step_kicker(&next, r, k))
			explore(&next, r);
		next = *s;
		if (next.kicker[k].buffered != 0) {
			drain_one(&next, &next.kicker[k]);
			explore(&next, r);
		}
	}
}

static bool
loses(const struct rules *r)
{
	struct state s;

	memset(&s, 0, sizeof(s));
	memset(seen, 0, sizeof(seen));
	lost = false;
	states = 0;
	explore(&s, r);
	assert_true(states < SEEN_MAX / 16); /* with more states, hashes may have collided */
	print_message("%lu states\n", (unsigned long)states);
	return lost;
}

static void
nothing_is_lost(void **state)
{
	assert_false(loses(&(struct rules){.kickers = 1}));
	assert_false(loses(&(struct rules){.kickers = 2}));
}

static void
each_part_is_needed(void **state)
{
	assert_true(loses(&(struct rules){.kickers = 1, .no_worker_fence = true}));
	assert_true(loses(&(struct rules){.kickers = 1, .no_kicker_fence = true}));
	assert_true(loses(&(struct rules){.kickers = 1, .look_first = true}));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(each_part_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
