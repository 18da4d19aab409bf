/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "admin_impair.h"
#include "hca.h"

#define TEXT_MAX 512u

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

int
admin_impair_parse(const char *text, struct hca_impair *odds, struct hca_fault_rule *rule)
{
	bool by_rule = strncmp(text, "rule=", 5) == 0;
	char copy[TEXT_MAX], *rest = copy, *pair, *value;

	*odds = (struct hca_impair){0};
	*rule = (struct hca_fault_rule){.opcode = HCA_FAULT_ANY, .psn = HCA_FAULT_ANY};
	if (*text == '\0')
		return ADMIN_IMPAIR_NOTHING;
	if (strcmp(text, "off") == 0)
		return ADMIN_IMPAIR_OFF;
	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	while ((pair = strsep(&rest, ",")) != NULL) {
		value = strchr(pair, '=');
		if (value == NULL)
			return -EINVAL;
		*value++ = '\0';
		if ((by_rule ? take_rule(pair, value, rule) : take_odds(pair, value, odds)) != 0)
			return -EINVAL;
	}
	return by_rule ? ADMIN_IMPAIR_RULE : ADMIN_IMPAIR_ODDS;
}

int
admin_impair(struct hca_port *p, struct hca *h, const char *text)
{
	struct hca_fault_rule rule;
	struct hca_impair odds;
	int what = admin_impair_parse(text != NULL ? text : "", &odds, &rule);

	switch (what) {
	case ADMIN_IMPAIR_OFF:
		hca_port_impair_set(p, NULL);
		hca_port_impair_clear_rules(p);
		hca_wait_workers(h);
		return 0;
	case ADMIN_IMPAIR_ODDS:
		hca_port_impair_set(p, &odds);
		return 0;
	case ADMIN_IMPAIR_RULE:
		return hca_port_impair_rule(p, &rule);
	default:
		return what;
	}
}
