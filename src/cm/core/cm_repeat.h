/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_CORE_CM_REPEAT_H
#define CM_CORE_CM_REPEAT_H

/*
 * When a message that waits for an answer is sent again: after `first`, then each time after twice
 * as long, `repeats` times; after one more wait it is given up. Times are ns.
 */

#include <stdbool.h>
#include <stdint.h>

struct cm_repeat_rule {
	uint64_t first;
	uint32_t repeats; /* at most 30 */
};

/* The message has been sent for the first time at now: when it is due again. */
static inline uint64_t
cm_repeat_begin(const struct cm_repeat_rule *rule, uint32_t *tries, uint64_t now)
{
	*tries = 0;
	return now + rule->first;
}

/**
 * The message is due and has no answer.
 *
 * @param tries
 *   How often it was repeated; one more if it is to be sent again.
 * @param due
 *   When it is due again.
 * @return
 *   False: it is given up.
 */
static inline bool
cm_repeat_again(const struct cm_repeat_rule *rule, uint32_t *tries, uint64_t now, uint64_t *due)
{
	if (*tries >= rule->repeats)
		return false;
	++*tries;
	*due = now + (rule->first << *tries);
	return true;
}

/* From the first time it is sent until it is given up */
static inline uint64_t
cm_repeat_whole(const struct cm_repeat_rule *rule)
{
	return rule->first * ((UINT64_C(2) << rule->repeats) - 1);
}

#endif
