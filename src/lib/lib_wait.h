/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_WAIT_H
#define LIB_WAIT_H

/*
 * Giving way in poll_cq (giveway.h): the worker that is waited for may want this very CPU. Per
 * thread, whatever CQs of whatever contexts it polls. Where progress is manual the poll runs the
 * engine, and nothing of this.
 */

#include "giveway.h"

/* Looks at the clock: only one poll in so many, unless the CPU is known to be shared. */
#define LIB_WAIT_POLLS 32u

struct lib_wait {
	struct giveway giveway;
	uint32_t polls; /* that may still pass without a look */
};

extern __thread struct lib_wait lib_wait
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

void lib_wait_look(void);

static inline void
lib_wait_empty(void)
{
	if (__builtin_expect(lib_wait.polls != 0, 1))
		lib_wait.polls--;
	else
		lib_wait_look();
}

static inline void
lib_wait_over(void)
{
	giveway_anew(&lib_wait.giveway);
}

#endif
