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

/**
 * Wait for a given time, at most rule->longest.
 *
 * @param rule
 *   The rule of the message.
 * @param r
 *   Its state, which keeps the wait.
 * @param wait
 *   Time in ns.
 * @param now
 *   Time in ns, monotonic.
 * @return
 *   When the message is due, ns.
 */
static inline uint64_t
cm_repeat_wait(const struct cm_repeat_rule *rule, struct cm_repeat *r, uint64_t wait, uint64_t now)
{
	r->wait = wait < rule->longest ? wait : rule->longest;
	return now + r->wait;
}

/**
 * Begin: the message has been sent for the first time.
 *
 * @param rule
 *   The rule of the message.
 * @param r
 *   Its state, which is set.
 * @param now
 *   Time in ns, monotonic.
 * @return
 *   When the message is due again, ns.
 */
static inline uint64_t
cm_repeat_begin(const struct cm_repeat_rule *rule, struct cm_repeat *r, uint64_t now)
{
	r->tries = 0;
	return cm_repeat_wait(rule, r, rule->first, now);
}

/**
 * Wait twice as long as before, in a repetition that does not count: the receiver has asked for
 * time.
 *
 * @param rule
 *   The rule of the message.
 * @param r
 *   Its state.
 * @param now
 *   Time in ns, monotonic.
 * @return
 *   When the message is due again, ns.
 */
static inline uint64_t
cm_repeat_later(const struct cm_repeat_rule *rule, struct cm_repeat *r, uint64_t now)
{
	return cm_repeat_wait(rule, r, 2 * r->wait, now);
}

/**
 * Decide about a message that is due and has no answer.
 *
 * @param rule
 *   The rule of the message.
 * @param r
 *   Its state.
 * @param now
 *   Time in ns, monotonic.
 * @param due
 *   Set to the time in ns at which the message is due again; not changed if it is given up.
 * @return
 *   True: the caller sends it again. False: rule->repeats are used up, the message is given up.
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

/**
 * Time from the first sending of a message until it is given up.
 *
 * @param rule
 *   A rule whose longest wait is CM_REPEAT_UNBOUNDED.
 * @return
 *   Time in ns.
 */
static inline uint64_t
cm_repeat_whole(const struct cm_repeat_rule *rule)
{
	return rule->first * ((UINT64_C(2) << rule->repeats) - 1);
}

#endif
