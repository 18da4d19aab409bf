/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_UB_TRACE_H
#define TESTS_FUZZ_UB_TRACE_H

#include <stddef.h>
#include <stdint.h>

/* What a peer and the programs see of a device, in order. */
struct ub_trace {
	uint8_t *bytes;
	size_t n, room;
};

/* The kind of an event is one character. Its time is that of the world. */
void ub_trace_begin(struct ub_trace *t);
void ub_trace_add(struct ub_trace *t, char kind, uint64_t time, const void *bytes, uint32_t n);
/* Ends the process at the first event that differs. */
void ub_trace_compare(const struct ub_trace *with, const struct ub_trace *without);

#endif
