/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/port_pairs.h"

bool
hca_port_number(const char *text, double min, double max, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && *end == '\0' && *value >= min && *value <= max;
}

int
hca_port_pairs(const char *title, const char *text,
	       const char *(*take)(void *out, const char *name, const char *value), void *out,
	       char *why, size_t size)
{
	char copy[HCA_PORT_PAIRS_MAX], *words = copy, *name, *value;
	const char *expected;

	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, size, "%s: more than %u characters", title, HCA_PORT_PAIRS_MAX - 1);
		return -EINVAL;
	}
	strcpy(copy, text);
	while ((name = strsep(&words, ",")) != NULL) {
		value = strchr(name, '=');
		if (value != NULL)
			*value++ = '\0';
		expected = take(out, name, value);
		if (expected == NULL)
			continue;
		snprintf(why, size, "%s \"%.20s%s%.20s\": expected %s", title, name,
			 value != NULL ? "=" : "", value != NULL ? value : "", expected);
		return -EINVAL;
	}
	return 0;
}
