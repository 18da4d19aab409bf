/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTXMGT_STORE_H
#define CTXMGT_STORE_H

/*
 * Replaces a context while other lcores may read single words of it (its state, to see that it is
 * not theirs): no word is torn. Called by the CEU. The caller orders the words by a release store
 * of the state afterwards.
 */

#include <stddef.h>
#include <stdint.h>

/* bytes is a multiple of 8, to is aligned to 8; from NULL: store zeros. */
static inline void
hca_store_words(void *to, const void *from, size_t bytes)
{
	uint64_t *t = to;
	const uint64_t *f = from;

	for (size_t i = 0; i < bytes / sizeof(*t); i++)
		__atomic_store_n(&t[i], f != NULL ? f[i] : 0, __ATOMIC_RELAXED);
}

#endif
