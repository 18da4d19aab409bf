/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "admin_impair.h"
#include "wire/wire_view.h"

/* Returns the text after it. */
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
admin_impair_parse(const char *text, struct admin_impair *a, char *why, size_t size)
{
	static const enum admin_impair_what kinds[] = {
		[HCA_IMPAIR_ODDS] = ADMIN_IMPAIR_ODDS,
		[HCA_IMPAIR_RULE] = ADMIN_IMPAIR_RULE,
		[HCA_IMPAIR_PORT] = ADMIN_IMPAIR_PORT,
		[HCA_IMPAIR_GID] = ADMIN_IMPAIR_GID,
	};

	*a = (struct admin_impair){.words = text};
	if (*text == '\0')
		return 0;
	a->words = take_direction(text, a);
	if (strcmp(a->words, "off") == 0) {
		a->what = ADMIN_IMPAIR_OFF;
		return 0;
	}
	if (hca_impair_parse(a->words, &a->said, why, size) != 0)
		return -EINVAL;
	a->what = kinds[a->said.kind];
	return 0;
}

/* Rules follow the probabilities, which replace earlier ones. */
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
	struct hca_fault_rule rule = a->said.rule;
	struct hca_impair odds = a->said.odds;
	int rc = 0;

	rule.qpn = odds.qpn = qpn;
	rule.sqpn = odds.sqpn = sqpn;
	rule.wire = odds.wire = a->said.tpn != 0	? HCA_WIRE_UB
				: qpn != 0 || sqpn != 0 ? HCA_WIRE_ROCE
							: HCA_WIRE_NONE;
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
