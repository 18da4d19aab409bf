/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_FUZZ_TRACE_H
#define TESTS_FUZZ_FUZZ_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct hca;

/* What a peer and the programs see of a device, in order. */
struct fuzz_trace {
	uint8_t *bytes;
	size_t n, room;
};

/* The kind of an event is one character. Its time is that of the world. */
void fuzz_trace_begin(struct fuzz_trace *t);
void fuzz_trace_add(struct fuzz_trace *t, char kind, uint64_t time, const void *bytes, uint32_t n);
/* At the end of an input: bytes of memory, and all counters. */
void fuzz_trace_state(struct fuzz_trace *t, uint64_t time, const struct hca *h, const uint8_t *mem,
		      uint32_t bytes);
/* Ends the process at the first event that differs. */
void fuzz_trace_compare(const struct fuzz_trace *with, const struct fuzz_trace *without);

#endif
