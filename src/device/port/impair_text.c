/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/impair_text.h"

#define STRING(x) #x
#define VALUE_STRING(x) STRING(x)
#define TEXT_MAX 512u
#define QPN_MAX 0xffffffu
#define MS_MAX 3600000u
#define MS_EXPECTED "milliseconds, up to " VALUE_STRING(MS_MAX)
#define COUNT_ABSENT UINT32_MAX
#define FAULT_WORD(name, text) " " text
#define FAULTS "one of" HCA_FAULT_LIST(FAULT_WORD)

const char *
hca_fault_name(unsigned int fault)
{
	static const char *const names[] = {
#define X(name, text) [HCA_FAULT_##name] = (text),
		HCA_FAULT_LIST(X)
#undef X
	};

	return fault < HCA_FAULT_KINDS ? names[fault] : "none";
}

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

/* MS of for= and after= */
static bool
milliseconds(const char *text, uint32_t *ms)
{
	uint64_t n;

	if (!whole(text, MS_MAX, &n))
		return false;
	*ms = (uint32_t)n;
	return true;
}

static bool
take_opcode(bool *by_name, struct hca_opcode_set *of, const char *value)
{
	*by_name = true;
	return hca_opcode_set_add(of, value) == 0;
}

static const char *
take_odds(struct hca_impair_text *t, const char *key, const char *value)
{
	uint64_t us;

	if (strcmp(key, "opcode") == 0)
		return take_opcode(&t->odds.by_name, &t->odds.of, value) ? NULL : HCA_OPCODE_NAMES;
#define X(name) \
	if (strcmp(key, #name) == 0) \
		return probability(value, &t->odds.name) ? NULL : "0 to 1";
	HCA_IMPAIR_ODDS_LIST(X)
#undef X
#define X(name) \
	if (strcmp(key, #name) == 0) { \
		if (!whole(value, HCA_IMPAIR_TIME_MAX, &us)) \
			return "microseconds, 0 to " VALUE_STRING(HCA_IMPAIR_TIME_MAX); \
		t->odds.name##_ns = us * 1000; \
		return NULL; \
	}
	HCA_IMPAIR_TIME_LIST(X)
#undef X
	if (strcmp(key, "nth") == 0 || strcmp(key, "psn") == 0 || strcmp(key, "count") == 0)
		return "a fault without =P beside it, as in drop,nth=3";
#define ODDS(name) #name ", "
#define TIME(name) #name " (us), "
	return HCA_IMPAIR_ODDS_LIST(ODDS) HCA_IMPAIR_TIME_LIST(TIME) "opcode, qp or tp";
}

/* The fault that a word names, or HCA_FAULT_KINDS. */
static unsigned int
fault_of(const char *word, size_t len)
{
	unsigned int i = 0;

	while (i < HCA_FAULT_KINDS &&
	       (strlen(hca_fault_name(i)) != len || strncmp(hca_fault_name(i), word, len) != 0))
		i++;
	return i;
}

static const char *
take_fault(struct hca_impair_text *t, const char *word)
{
	unsigned int fault = fault_of(word, strlen(word));

	if (fault == HCA_FAULT_KINDS)
		return FAULTS;
	if (t->rule.fault != HCA_FAULT_KINDS)
		return "one fault in a rule";
	t->rule.fault = fault;
	return NULL;
}

static const char *
take_rule(struct hca_impair_text *t, const char *key, const char *value)
{
	struct hca_fault_rule *rule = &t->rule;
	uint64_t n;

	if (strcmp(key, "rule") == 0)
		return take_fault(t, value);
	if (strcmp(key, "opcode") == 0 && !isdigit((unsigned char)*value))
		return take_opcode(&rule->by_name, &rule->of, value) ? NULL : HCA_OPCODE_NAMES;
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

static const char *
take_port(struct hca_impair_text *t, const char *key, const char *value)
{
	if (strcmp(key, "port") == 0)
		return strcmp(value, "down") == 0 ? NULL : "down";
	if (strcmp(key, "after") == 0)
		return milliseconds(value, &t->after_ms) ? NULL : MS_EXPECTED;
	if (strcmp(key, "for") == 0)
		return milliseconds(value, &t->for_ms) && t->for_ms != 0 ? NULL : MS_EXPECTED;
	return "port=down, after=MS and for=MS";
}

static const char *
take_gid(struct hca_impair_text *t, const char *key, const char *value)
{
	if (strcmp(key, "gid") == 0)
		return strcmp(value, "change") == 0 ? NULL : "change";
	if (strcmp(key, "after") == 0)
		return milliseconds(value, &t->after_ms) ? NULL : MS_EXPECTED;
	return "gid=change and after=MS";
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

/* Returns NULL, or a text: the value that was expected instead. */
static const char *
take_pair(struct hca_impair_text *t, const char *key, const char *value)
{
	if (value == NULL)
		return t->kind == HCA_IMPAIR_RULE ? take_fault(t, key) : FAULTS " or NAME=VALUE";
	if (t->kind == HCA_IMPAIR_PORT)
		return take_port(t, key, value);
	if (t->kind == HCA_IMPAIR_GID)
		return take_gid(t, key, value);
	if (strcmp(key, "qp") == 0)
		return take_number(value, &t->qpn) ? NULL : "a QP number";
	if (strcmp(key, "tp") == 0)
		return take_number(value, &t->tpn) ? NULL : "a TP number";
	return t->kind == HCA_IMPAIR_RULE ? take_rule(t, key, value) : take_odds(t, key, value);
}

/* Kind of a text by its words: a fault without a value makes it a rule. */
static enum hca_impair_kind
kind_of(const char *text)
{
	if (strncmp(text, "rule=", 5) == 0)
		return HCA_IMPAIR_RULE;
	if (strncmp(text, "port=", 5) == 0)
		return HCA_IMPAIR_PORT;
	if (strncmp(text, "gid=", 4) == 0)
		return HCA_IMPAIR_GID;
	for (;;) {
		size_t len = strcspn(text, ",");

		if (fault_of(text, len) != HCA_FAULT_KINDS)
			return HCA_IMPAIR_RULE;
		if (text[len] == '\0')
			return HCA_IMPAIR_ODDS;
		text += len + 1;
	}
}

/*
 * Sets the count of a rule without one. Returns NULL, or a text: why the parts do not go together.
 * any: a rule that names no frames is allowed and applies to all of them.
 */
static const char *
complete(struct hca_impair_text *t, bool any)
{
	struct hca_fault_rule *rule = &t->rule;
	bool said_count = rule->count != COUNT_ABSENT;
	bool one = rule->nth != 0 || rule->psn != HCA_FAULT_ANY;

	if (t->qpn != 0 && t->tpn != 0)
		return "a frame is of a QP or of a TP";
	if (t->kind == HCA_IMPAIR_PORT && t->for_ms == 0)
		return "port=down needs for=MS";
	if (t->kind != HCA_IMPAIR_RULE)
		return NULL;
	if (rule->fault == HCA_FAULT_KINDS)
		return "a rule needs a fault";
	if (!said_count)
		rule->count = one ? 1 : 0;
	if (!any && !said_count && !one && rule->opcode == HCA_FAULT_ANY && !rule->by_name &&
	    t->qpn == 0 && t->tpn == 0)
		return "a fault needs a probability, as in drop=0.01, or its frames: opcode=, "
		       "psn=, nth=, count=, qp= or tp=";
	return NULL;
}

static int
parse_words(char *words, struct hca_impair_text *t, char *why, size_t size)
{
	bool any = strncmp(words, "rule=", 5) == 0;
	const char *expected;
	char *key, *value;

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
	expected = complete(t, any);
	if (expected == NULL)
		return 0;
	snprintf(why, size, "impairment: %s", expected);
	return -EINVAL;
}

int
hca_impair_parse_next(const char **rest, struct hca_impair_text *t, char *why, size_t size)
{
	size_t len = strcspn(*rest, ";");
	char copy[TEXT_MAX];

	*t = (struct hca_impair_text){
		.rule = {.opcode = HCA_FAULT_ANY,
			 .psn = HCA_FAULT_ANY,
			 .count = COUNT_ABSENT,
			 .fault = HCA_FAULT_KINDS},
	};
	if (len >= sizeof(copy)) {
		snprintf(why, size, "impairment: more than %u characters", TEXT_MAX - 1);
		return -EINVAL;
	}
	memcpy(copy, *rest, len);
	copy[len] = '\0';
	*rest = (*rest)[len] == ';' && (*rest)[len + 1] != '\0' ? *rest + len + 1 : NULL;
	t->kind = kind_of(copy);
	return parse_words(copy, t, why, size);
}

int
hca_impair_parse(const char *text, struct hca_impair_text *t, char *why, size_t size)
{
	int err = hca_impair_parse_next(&text, t, why, size);

	if (err != 0 || text == NULL)
		return err;
	snprintf(why, size, "impairment: one at a time, without \";\"");
	return -EINVAL;
}
