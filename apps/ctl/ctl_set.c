/* SPDX-License-Identifier: BSD-3-Clause */

/* set: settings of a daemon, changed while it runs. The daemon judges all before it changes one. */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ctl.h"

#define COMMAND "/softhca/set"
#define TEXT_MAX 256u /* DPDK's telemetry reads 1024 bytes */

/* The command has no options. */
static int
set_option(void *arg, int code, const char *value)
{
	(void)arg;
	(void)code;
	(void)value;
	return -1;
}

/* The words with commas between them; false: one is wrong, or all are too long. */
static bool
join(const struct ctl *c, char text[TEXT_MAX])
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < c->num_words; i++) {
		if (strchr(c->words[i], '=') == NULL) {
			ctl_error("expected NAME=VALUE, found \"%.40s\"", c->words[i]);
			return false;
		}
		used += (size_t)snprintf(text + used, TEXT_MAX - used, "%s%s", i != 0 ? "," : "",
					 c->words[i]);
		if (used >= TEXT_MAX) {
			ctl_error("\"%.40s...\" is too long", c->words[i]);
			return false;
		}
	}
	return true;
}

int
ctl_run_set(struct ctl *c, int argc, char **argv)
{
	static const struct option none[] = {{NULL, 0, NULL, 0}};
	int rc = ctl_options(c, argc, argv, none, set_option, NULL);
	struct ctl_process p;
	char text[TEXT_MAX];
	json_t *answer;

	if (rc != 0)
		return rc;
	if (!join(c, text))
		return CTL_EXIT_USAGE;
	if (ctl_one(c, &p) != 0)
		return CTL_EXIT_FAILED;
	answer = ctl_order(&p, COMMAND, text);
	if (answer != NULL)
		ctl_show(c, p.prefix, p.prefix, "set", answer);
	rc = answer != NULL ? 0 : CTL_EXIT_FAILED;
	ctl_close(&p, 1);
	return rc;
}
