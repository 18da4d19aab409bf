/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/port_fabric.h"

#define TEXT_MAX 256u

static bool
number(const char *text, double min, double max, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && *end == '\0' && *value >= min && *value <= max;
}

/* Returns NULL, or a text: the value that was expected instead. */
static const char *
take_pair(struct hca_fabric *f, const char *key, const char *value)
{
	double v;

	if (value == NULL)
		return "NAME=VALUE";
#define X(name, member, scale, min, max, expected) \
	if (strcmp(key, #name) == 0) { \
		if (!number(value, min, max, &v)) \
			return expected; \
		f->member = (__typeof__(f->member))(v * (scale)); \
		return NULL; \
	}
	HCA_FABRIC_TEXT_LIST(X)
#undef X
#define X(name, ...) " " #name
	return "one of" HCA_FABRIC_TEXT_LIST(X);
#undef X
}

int
hca_fabric_parse(const char *text, struct hca_fabric *out, char *why, size_t size)
{
	char copy[TEXT_MAX], *words = copy, *key, *value;
	const char *expected;

	*out = (struct hca_fabric){.paths = 1, .loss0 = -1};
	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, size, "fabric: more than %u characters", TEXT_MAX - 1);
		return -EINVAL;
	}
	strcpy(copy, text);
	while ((key = strsep(&words, ",")) != NULL) {
		value = strchr(key, '=');
		if (value != NULL)
			*value++ = '\0';
		expected = take_pair(out, key, value);
		if (expected == NULL)
			continue;
		snprintf(why, size, "fabric \"%.20s%s%.20s\": expected %s", key,
			 value != NULL ? "=" : "", value != NULL ? value : "", expected);
		return -EINVAL;
	}
	if (out->rate_mbps != 0)
		return 0;
	snprintf(why, size, "fabric \"%.40s\": expected a rate", text);
	return -EINVAL;
}
