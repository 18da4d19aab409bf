/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin_impair.h"

#define TEXT_MAX 512u
#define QPN_MAX 0xffffffu

static const struct {
	const char *name;
	size_t at;	/* in struct hca_impair */
	uint64_t scale; /* of a time, to ns; 0: a probability */
} odds_keys[] = {
	{"drop", offsetof(struct hca_impair, drop), 0},
	{"dup", offsetof(struct hca_impair, dup), 0},
	{"reorder", offsetof(struct hca_impair, reorder), 0},
	{"corrupt", offsetof(struct hca_impair, corrupt), 0},
	{"truncate", offsetof(struct hca_impair, truncate), 0},
	{"ecn", offsetof(struct hca_impair, ecn), 0},
	{"delay_us", offsetof(struct hca_impair, delay_ns), 1000},
	{"jitter_us", offsetof(struct hca_impair, jitter_ns), 1000},
};

static const char *const fault_names[HCA_FAULT_KINDS] = {
	[HCA_FAULT_DROP] = "drop",
	[HCA_FAULT_DUP] = "dup",
	[HCA_FAULT_REORDER] = "reorder",
	[HCA_FAULT_DELAY] = "delay",
	[HCA_FAULT_CORRUPT_PAYLOAD] = "corrupt_payload",
	[HCA_FAULT_CORRUPT_HEADER] = "corrupt_header",
	[HCA_FAULT_CORRUPT_ICRC] = "corrupt_icrc",
	[HCA_FAULT_CORRUPT_RANDOM] = "corrupt",
	[HCA_FAULT_TRUNCATE] = "truncate",
	[HCA_FAULT_ECN] = "ecn",
};

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

static int
take_odds(const char *key, const char *value, struct hca_impair *odds)
{
	for (size_t i = 0; i < sizeof(odds_keys) / sizeof(odds_keys[0]); i++) {
		char *at = (char *)odds + odds_keys[i].at, *end;
		uint64_t time;
		double p;

		if (strcmp(key, odds_keys[i].name) != 0)
			continue;
		if (odds_keys[i].scale != 0) {
			if (!whole(value, 60000000, &time))
				return -EINVAL;
			time *= odds_keys[i].scale;
			memcpy(at, &time, sizeof(time));
			return 0;
		}
		p = strtod(value, &end);
		if (end == value || *end != '\0' || !(p >= 0 && p <= 1))
			return -EINVAL;
		memcpy(at, &p, sizeof(p));
		return 0;
	}
	return -EINVAL;
}

static int
take_rule(const char *key, const char *value, struct hca_fault_rule *rule)
{
	uint64_t n;

	if (strcmp(key, "rule") == 0) {
		for (unsigned int i = 0; i < HCA_FAULT_KINDS; i++) {
			if (strcmp(value, fault_names[i]) != 0)
				continue;
			rule->fault = (enum hca_fault)i;
			return 0;
		}
		return -EINVAL;
	}
	if (!whole(value, UINT32_MAX, &n))
		return -EINVAL;
	if (strcmp(key, "psn") == 0 && n < 1u << 24)
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
		return -EINVAL;
	return 0;
}

/* The words behind dir, of a copy of the text. */
static int
take_words(char *words, struct admin_impair *a)
{
	bool by_rule = strncmp(words, "rule=", 5) == 0;
	char *pair, *value;
	uint64_t qpn;

	a->what = by_rule ? ADMIN_IMPAIR_RULE : ADMIN_IMPAIR_ODDS;
	while ((pair = strsep(&words, ",")) != NULL) {
		value = strchr(pair, '=');
		if (value == NULL)
			return -EINVAL;
		*value++ = '\0';
		if (strcmp(pair, "qp") == 0) {
			if (!whole(value, QPN_MAX, &qpn) || qpn == 0)
				return -EINVAL;
			a->qpn = (uint32_t)qpn;
			continue;
		}
		if ((by_rule ? take_rule(pair, value, &a->rule)
			     : take_odds(pair, value, &a->odds)) != 0)
			return -EINVAL;
	}
	return 0;
}

/* Returns what is behind it. */
static const char *
take_direction(const char *text, struct admin_impair *a)
{
	static const struct {
		const char *word;
		bool sent, received;
	} ways[] = {{"dir=out,", true, false}, {"dir=in,", false, true}, {"dir=both,", true, true}};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strncmp(text, ways[i].word, strlen(ways[i].word)) != 0)
			continue;
		a->sent = ways[i].sent;
		a->received = ways[i].received;
		return text + strlen(ways[i].word);
	}
	a->sent = true;
	a->received = strcmp(text, "off") == 0;
	return text;
}

int
admin_impair_parse(const char *text, struct admin_impair *a)
{
	char copy[TEXT_MAX];

	*a = (struct admin_impair){.rule = {.opcode = HCA_FAULT_ANY, .psn = HCA_FAULT_ANY}};
	a->words = text;
	if (*text == '\0')
		return 0;
	a->words = take_direction(text, a);
	if (strcmp(a->words, "off") == 0) {
		a->what = ADMIN_IMPAIR_OFF;
		return 0;
	}
	if (strlen(a->words) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, a->words);
	return take_words(copy, a);
}

/* Rules stand behind the probabilities, which replace each other. */
static void
note(struct admin_faults *f, const struct admin_impair *a)
{
	size_t used = strlen(f->setting);
	char *rules = strstr(f->setting, "rule=");
	char kept[sizeof(f->setting)] = "";

	if (a->what == ADMIN_IMPAIR_RULE) {
		snprintf(f->setting + used, sizeof(f->setting) - used, "%s%s", used != 0 ? " " : "",
			 a->words);
		return;
	}
	if (rules != NULL && a->what != ADMIN_IMPAIR_OFF)
		snprintf(kept, sizeof(kept), " %s", rules);
	snprintf(f->setting, sizeof(f->setting), "%.80s%.40s",
		 a->what != ADMIN_IMPAIR_OFF ? a->words : "", kept);
}

int
admin_impair_set(struct admin_faults *f, const struct admin_impair *a, uint32_t qpn, uint32_t sqpn)
{
	struct hca_fault_rule rule = a->rule;
	struct hca_impair odds = a->odds;
	int rc = 0;

	rule.qpn = odds.qpn = qpn;
	rule.sqpn = odds.sqpn = sqpn;
	if (a->what == ADMIN_IMPAIR_OFF) {
		hca_port_impair_set(f->port, NULL);
		hca_port_impair_clear_rules(f->port);
	} else if (a->what == ADMIN_IMPAIR_ODDS) {
		hca_port_impair_set(f->port, &odds);
	} else if (a->what == ADMIN_IMPAIR_RULE) {
		unsigned int at = hca_port_impair_rules(f->port);

		rc = hca_port_impair_rule(f->port, &rule);
		if (rc == 0)
			snprintf(f->rule[at], sizeof(f->rule[at]), "%s", a->words);
	}
	if (rc == 0 && a->what != ADMIN_IMPAIR_NOTHING)
		note(f, a);
	return rc;
}
