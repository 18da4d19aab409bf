/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_CORE_CM_REPEAT_H
#define CM_CORE_CM_REPEAT_H

/*
 * When a message that waits for an answer is sent again: after `first`, then each time after twice
 * as long, but at most `longest`, `repeats` times; after one more wait it is given up. Times are
 * ns.
 */

#include <stdbool.h>
#include <stdint.h>

#define CM_REPEAT_UNBOUNDED (UINT64_MAX / 2)

struct cm_repeat_rule {
	uint64_t first;
	uint64_t longest; /* CM_REPEAT_UNBOUNDED: none */
	uint32_t repeats; /* at most 30 */
};

/* The state of a message */
struct cm_repeat {
	uint64_t wait;	/* until it is due */
	uint32_t tries; /* repetitions that count */
};

static inline uint64_t
cm_repeat_wait(const struct cm_repeat_rule *rule, struct cm_repeat *r, uint64_t wait, uint64_t now)
{
	r->wait = wait < rule->longest ? wait : rule->longest;
	return now + r->wait;
}

/* The message has been sent for the first time at now: when it is due again. */
static inline uint64_t
cm_repeat_begin(const struct cm_repeat_rule *rule, struct cm_repeat *r, uint64_t now)
{
	r->tries = 0;
	return cm_repeat_wait(rule, r, rule->first, now);
}

/* The receiver has asked for time: the next wait, of a repetition that does not count. */
static inline uint64_t
cm_repeat_later(const struct cm_repeat_rule *rule, struct cm_repeat *r, uint64_t now)
{
	return cm_repeat_wait(rule, r, 2 * r->wait, now);
}

/**
 * The message is due and has no answer.
 *
 * @param due
 *   When it is due again.
 * @return
 *   False: it is given up.
 */
static inline bool
cm_repeat_again(const struct cm_repeat_rule *rule, struct cm_repeat *r, uint64_t now, uint64_t *due)
{
	if (r->tries >= rule->repeats)
		return false;
	r->tries++;
	*due = cm_repeat_later(rule, r, now);
	return true;
}

/* From the first time it is sent until it is given up, of a rule without a longest wait. */
static inline uint64_t
cm_repeat_whole(const struct cm_repeat_rule *rule)
{
	return rule->first * ((UINT64_C(2) << rule->repeats) - 1);
}

#endif
