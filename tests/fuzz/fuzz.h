/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

/*
 * Shared by the fuzz targets. A target is only LLVMFuzzerTestOneInput(); it is linked with
 * libFuzzer (-Dfuzz=true) or with replay.c, which feeds it files.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Print the error and abort, which libFuzzer detects. */
void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define fuzz_check(condition, ...) \
	do { \
		if (!(condition)) \
			fuzz_fail(__VA_ARGS__); \
	} while (0)

/* Start the EAL, at the first call, with ordinary pages and without devices. */
void fuzz_eal_start(void);

/*
 * LeakSanitizer does not see pointers in memory of the EAL: allocations between these two calls are
 * not checked for leaks.
 */
void fuzz_lsan_disable(void);
void fuzz_lsan_enable(void);

/* The bytes of an input, read in order; beyond its end all are 0. */
struct fuzz_input {
	const uint8_t *p, *end;
};

static inline size_t
fuzz_left(const struct fuzz_input *in)
{
	return (size_t)(in->end - in->p);
}

static inline uint8_t
fuzz_u8(struct fuzz_input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static inline uint16_t
fuzz_u16(struct fuzz_input *in)
{
	uint16_t lo = fuzz_u8(in);

	return (uint16_t)(lo | fuzz_u8(in) << 8);
}

/* Take at most max bytes; *n: the number taken. */
static inline const uint8_t *
fuzz_bytes(struct fuzz_input *in, size_t max, size_t *n)
{
	const uint8_t *p = in->p;

	*n = fuzz_left(in) < max ? fuzz_left(in) : max;
	in->p += *n;
	return p;
}

#endif
