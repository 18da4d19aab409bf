/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "port/port_impair.h"

#define TEXT_MAX 512u
#define QPN_MAX 0xffffffu

static bool
whole(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return errno == 0 && *end == '\0' && *value <= max;
}

static bool
probability(const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && *end == '\0' && *value >= 0 && *value <= 1;
}

static const char *
take_odds(struct hca_impair_text *t, const char *key, const char *value)
{
	uint64_t us;

#define X(name) \
	if (strcmp(key, #name) == 0) \
		return probability(value, &t->odds.name) ? NULL : "0 to 1";
	HCA_IMPAIR_ODDS_LIST(X)
#undef X
#define X(name) \
	if (strcmp(key, #name) == 0) { \
		if (!whole(value, HCA_IMPAIR_TIME_MAX, &us)) \
			return "microseconds, 0 to " RTE_STR(HCA_IMPAIR_TIME_MAX); \
		t->odds.name##_ns = us * 1000; \
		return NULL; \
	}
	HCA_IMPAIR_TIME_LIST(X)
#undef X
#define ODDS(name) #name ", "
#define TIME(name) #name " (us), "
	return HCA_IMPAIR_ODDS_LIST(ODDS) HCA_IMPAIR_TIME_LIST(TIME) "qp or tp";
}

static const char *
take_rule(struct hca_impair_text *t, const char *key, const char *value)
{
	struct hca_fault_rule *rule = &t->rule;
	uint64_t n;

	if (strcmp(key, "rule") == 0) {
#define X(name, text) \
	if (strcmp(value, text) == 0) { \
		rule->fault = HCA_FAULT_##name; \
		return NULL; \
	}
		HCA_FAULT_LIST(X)
#undef X
#define X(name, text) " " text
		return "one of" HCA_FAULT_LIST(X);
#undef X
	}
	if (!whole(value, UINT32_MAX, &n))
		return "a number";
	if (strcmp(key, "psn") == 0 && n <= QPN_MAX)
		rule->psn = (uint32_t)n;
	else if (strcmp(key, "opcode") == 0 && n < 256)
		rule->opcode = (uint32_t)n;
	else if (strcmp(key, "nth") == 0)
		rule->nth = (uint32_t)n;
	else if (strcmp(key, "count") == 0)
		rule->count = (uint32_t)n;
	else if (strcmp(key, "arg") == 0)
		rule->arg = n;
	else
		return "psn, opcode, nth, count or arg of a rule";
	return NULL;
}

static bool
take_number(const char *value, uint32_t *number)
{
	uint64_t n;

	if (!whole(value, QPN_MAX, &n) || n == 0)
		return false;
	*number = (uint32_t)n;
	return true;
}

/* What was expected instead, or NULL. */
static const char *
take_pair(struct hca_impair_text *t, const char *key, const char *value)
{
	if (value == NULL)
		return "NAME=VALUE";
	if (strcmp(key, "qp") == 0)
		return take_number(value, &t->qpn) ? NULL : "a QP number";
	if (strcmp(key, "tp") == 0)
		return take_number(value, &t->tpn) ? NULL : "a TP number";
	return t->is_rule ? take_rule(t, key, value) : take_odds(t, key, value);
}

int
hca_impair_parse(const char *text, struct hca_impair_text *t, char *why, size_t size)
{
	char copy[TEXT_MAX], *words = copy, *key, *value;
	const char *expected;

	*t = (struct hca_impair_text){
		.is_rule = strncmp(text, "rule=", 5) == 0,
		.rule = {.opcode = HCA_FAULT_ANY, .psn = HCA_FAULT_ANY},
	};
	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, size, "impairment: more than %u characters", TEXT_MAX - 1);
		return -EINVAL;
	}
	strcpy(copy, text);
	while ((key = strsep(&words, ",")) != NULL) {
		value = strchr(key, '=');
		if (value != NULL)
			*value++ = '\0';
		expected = take_pair(t, key, value);
		if (expected == NULL)
			continue;
		snprintf(why, size, "impairment \"%.20s%s%.20s\": expected %s", key,
			 value != NULL ? "=" : "", value != NULL ? value : "", expected);
		return -EINVAL;
	}
	if (t->qpn != 0 && t->tpn != 0) {
		snprintf(why, size, "impairment: a frame is of a QP or of a TP");
		return -EINVAL;
	}
	return 0;
}
