/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hca_limits.h"
#include "host_setting.h"

/* Ranges of all limits, of which the parameters are some. */
enum {
#define X(section, name, min, max, def) MIN_##name = min, MAX_##name = max,
	HCA_LIMIT_LIST(X)
#undef X
};

static const struct parameter {
	const char *name;
	uint32_t number, min, max;
} parameters[] = {
#define X(name) {#name, HCA_CC_##name, MIN_##name, MAX_##name},
	HCA_CC_PARAMETER_LIST(X)
#undef X
};

/* The value in "NAME=VALUE"; NULL: another name. */
static const char *
value_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	return strncmp(text, name, len) == 0 && text[len] == '=' ? text + len + 1 : NULL;
}

static int
change_algorithm(struct hca_driver *drv, const char *name, char *why, size_t size)
{
	int err;

	if (!hca_cc_is_name(name)) {
		snprintf(why, size, "congestion: expected " HCA_CC_NAMES ", found \"%.20s\"", name);
		return -EINVAL;
	}
	err = hca_driver_set_congestion(drv, hca_cc_number(name));
	if (err != 0)
		snprintf(why, size, "%s", hca_driver_reason());
	return err;
}

static bool
number_within(const char *text, const struct parameter *p, uint32_t *value)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtoul(text, &end, 10);
	*value = (uint32_t)n;
	return errno == 0 && *end == '\0' && n >= p->min && n <= p->max;
}

static int
change_parameter(struct hca_driver *drv, const struct parameter *p, const char *text, char *why,
		 size_t size)
{
	uint32_t value;
	int err;

	if (!number_within(text, p, &value)) {
		snprintf(why, size, "%s: expected %u to %u, found \"%.20s\"", p->name, p->min,
			 p->max, text);
		return -EINVAL;
	}
	err = hca_driver_set_congestion_parameter(drv, p->number, value);
	if (err != 0)
		snprintf(why, size, "%s", hca_driver_reason());
	return err;
}

int
host_setting_change(struct hca_driver *drv, const char *text, char *why, size_t size)
{
	const char *value = value_of(text, "congestion");

	if (value != NULL)
		return change_algorithm(drv, value, why, size);
	for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
		value = value_of(text, parameters[i].name);
		if (value != NULL)
			return change_parameter(drv, &parameters[i], value, why, size);
	}
	snprintf(why, size, "\"%.40s\" is no setting: " HOST_SETTINGS, text);
	return -EINVAL;
}
