/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_HOST_CLOCK_H
#define TESTS_INTEROP_HOST_CLOCK_H

/*
 * Whether the guest's clock can be believed. A kernel that is emulated measures its cycle counter
 * against an emulated timer, and where the emulator has to wait for a CPU meanwhile the result is
 * wrong by any factor. Then all time of that machine is: what rxe takes for 15 s are two.
 *
 * The guest says what time it is in every line. A line was said after we asked for it and before we
 * read it, so that a wrong clock is proved, whatever delays there are.
 *
 * Threads: one. Nothing here fails.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_moment {
	uint64_t asked, heard; /* ns, our clock */
	uint64_t said;	       /* ns, the guest's */
};

struct host_clock {
	struct host_moment first, last;
};

/* The guest has greeted: its clock begins anew. */
void host_clock_begin(struct host_clock *c, uint64_t asked, uint64_t heard, uint64_t said);
void host_clock_heard(struct host_clock *c, uint64_t asked, uint64_t heard, uint64_t said);

/* It is proved that the clock goes a quarter too fast or too slow; text says how it went anyhow. */
bool host_clock_is_wrong(const struct host_clock *c, char *text, size_t room);

/* Frequency of the cycle counter, 0: there is none. Takes 100 ms; right on a busy machine, too. */
uint32_t host_tsc_khz(void);

#endif
