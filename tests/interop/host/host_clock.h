/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_HOST_CLOCK_H
#define TESTS_INTEROP_HOST_CLOCK_H

/*
 * Whether the guest's clock is reliable. An emulated kernel measures its cycle counter against an
 * emulated timer; if the emulator has to wait for a CPU meanwhile, the result is wrong by any
 * factor, and so are all times in that machine: 15 s of rxe may be two seconds.
 *
 * The guest reports its time in every line. A line was sent after we asked for it and before we
 * read it, so a wrong clock can be proved in spite of delays.
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

/* The guest has sent its greeting: its clock starts. */
void host_clock_begin(struct host_clock *c, uint64_t asked, uint64_t heard, uint64_t said);
void host_clock_heard(struct host_clock *c, uint64_t asked, uint64_t heard, uint64_t said);

/*
 * True if it is proved that the clock is a quarter too fast or too slow; text describes it anyway.
 */
bool host_clock_is_wrong(const struct host_clock *c, char *text, size_t room);

/*
 * Frequency of the cycle counter; 0: no counter. Takes 100 ms; correct also on a busy machine.
 */
uint32_t host_tsc_khz(void);

#endif
