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

#define ERROR_MAX 127u /* bytes of an error that DPDK's telemetry passes on */
#define WORD_MAX 64u
#define NAME_SHOWN 20u

#define UNKNOWN " is no setting: " HOST_SETTINGS
_Static_assert(sizeof("\"\"" UNKNOWN) - 1 + NAME_SHOWN <= ERROR_MAX, "it is shown in full");

/* One setting. p: its parameter, NULL: the algorithm. */
struct setting {
	const struct parameter *p;
	uint32_t value;
};

/* The value in "NAME=VALUE"; NULL: another name. */
static const char *
value_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	return strncmp(text, name, len) == 0 && text[len] == '=' ? text + len + 1 : NULL;
}

static int
judge_algorithm(const char *name, struct setting *out, char *why, size_t size)
{
	if (!hca_cc_is_name(name)) {
		snprintf(why, size, "congestion: expected " HCA_CC_NAMES ", found \"%.20s\"", name);
		return -EINVAL;
	}
	*out = (struct setting){NULL, hca_cc_number(name)};
	return 0;
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
judge_parameter(const struct parameter *p, const char *text, struct setting *out, char *why,
		size_t size)
{
	out->p = p;
	if (number_within(text, p, &out->value))
		return 0;
	snprintf(why, size, "%s: expected %u to %u, found \"%.20s\"", p->name, p->min, p->max,
		 text);
	return -EINVAL;
}

static int
judge(const char *word, struct setting *out, char *why, size_t size)
{
	const char *value = value_of(word, "congestion");

	if (value != NULL)
		return judge_algorithm(value, out, why, size);
	for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
		value = value_of(word, parameters[i].name);
		if (value != NULL)
			return judge_parameter(&parameters[i], value, out, why, size);
	}
	snprintf(why, size, "\"%.*s\"" UNKNOWN, (int)NAME_SHOWN, word);
	return -EINVAL;
}

/* The second of two algorithms could lack memory after the first one has been applied. */
static int
judge_once(const struct setting *s, uint32_t *seen, char *why, size_t size)
{
	uint32_t bit = s->p != NULL ? 2u << (s->p - parameters) : 1;

	if ((*seen & bit) != 0) {
		snprintf(why, size, "%s: expected once, found twice",
			 s->p != NULL ? s->p->name : "congestion");
		return -EINVAL;
	}
	*seen |= bit;
	return 0;
}

static int
apply(struct hca_driver *drv, const struct setting *s, char *why, size_t size)
{
	int err = s->p != NULL ? hca_driver_set_congestion_parameter(drv, s->p->number, s->value)
			       : hca_driver_set_congestion(drv, s->value);

	if (err != 0)
		snprintf(why, size, "%s", hca_driver_reason());
	return err;
}

/* The first word; the rest, NULL after the last one. A long word loses its end, and is wrong. */
static const char *
next_word(const char *text, char word[WORD_MAX])
{
	size_t len = strcspn(text, ",");
	bool cut = len >= WORD_MAX;

	snprintf(word, WORD_MAX, "%.*s%s", (int)(cut ? WORD_MAX - 4 : len), text, cut ? "..." : "");
	return text[len] == ',' ? text + len + 1 : NULL;
}

/* An algorithm may lack memory, a parameter cannot fail: algorithms are first. */
int
host_setting_change(struct hca_driver *drv, const char *text, char *why, size_t size)
{
	enum {
		JUDGE,
		ALGORITHM,
		PARAMETERS,
		END
	};
	char word[WORD_MAX];
	struct setting s;
	uint32_t seen = 0;
	int err = 0;

	for (int turn = JUDGE; turn < END; turn++) {
		const char *rest = text;

		while (rest != NULL && err == 0) {
			rest = next_word(rest, word);
			err = judge(word, &s, why, size);
			if (err == 0 && turn == JUDGE)
				err = judge_once(&s, &seen, why, size);
			if (err == 0 && turn == (s.p != NULL ? PARAMETERS : ALGORITHM))
				err = apply(drv, &s, why, size);
		}
	}
	return err;
}
