/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_PAIRS_H
#define PORT_PORT_PAIRS_H

/* Texts of the form "name=value,name=value": the settings of simulated networks. Any thread. */

#include <stdbool.h>
#include <stddef.h>

#define HCA_PORT_PAIRS_MAX 256u /* characters of a text, with the terminating zero */

/** A value in min .. max and nothing behind it. */
bool hca_port_number(const char *text, double min, double max, double *value);

/**
 * Take a text apart.
 *
 * @param title
 *   The name of the text in messages.
 * @param take
 *   Is called with each pair; value: NULL without "=". Returns NULL, or the value that was expected
 *   instead.
 * @param out
 *   The first argument of take.
 * @param why
 *   Set to the reason of an error.
 * @param size
 *   Bytes of why.
 * @return
 *   0, or -EINVAL.
 */
int hca_port_pairs(const char *title, const char *text,
		   const char *(*take)(void *out, const char *name, const char *value), void *out,
		   char *why, size_t size);

/*
 * The body of a function `take`: list is an X-macro of rows X(name, member, scale, min, max,
 * expected); the member becomes the value times scale.
 */
#define HCA_PORT_PAIR_ROW(key, member, scale, min, max, expected) \
	if (strcmp(name, #key) == 0) { \
		double v_; \
		if (value == NULL || !hca_port_number(value, min, max, &v_)) \
			return value == NULL ? "NAME=VALUE" : expected; \
		to->member = (__typeof__(to->member))(v_ * (scale)); \
		return NULL; \
	}
#define HCA_PORT_PAIR_NAME(key, ...) " " #key
#define HCA_PORT_PAIR_TAKE(list) \
	do { \
		list(HCA_PORT_PAIR_ROW) return value == NULL ? "NAME=VALUE" \
							     : "one of" list(HCA_PORT_PAIR_NAME); \
	} while (0)

#endif
