/* SPDX-License-Identifier: BSD-3-Clause */

/* set: settings of a daemon, changed while it runs. The daemon judges them. */

#include <string.h>

#include "ctl.h"

#define COMMAND "/softhca/set"
#define WORD_MAX 120u /* of a parameter of DPDK's telemetry */

/* The command has no options. */
static int
set_option(void *arg, int code, const char *value)
{
	(void)arg;
	(void)code;
	(void)value;
	return -1;
}

int
ctl_run_set(struct ctl *c, int argc, char **argv)
{
	static const struct option none[] = {{NULL, 0, NULL, 0}};
	int rc = ctl_options(c, argc, argv, none, set_option, NULL);
	struct ctl_process p;
	json_t *answer = NULL;

	if (rc != 0)
		return rc;
	for (int i = 0; i < c->num_words; i++) {
		if (strchr(c->words[i], '=') != NULL && strlen(c->words[i]) <= WORD_MAX)
			continue;
		ctl_error("expected NAME=VALUE, found \"%.40s\"", c->words[i]);
		return CTL_EXIT_USAGE;
	}
	if (ctl_one(c, &p) != 0)
		return CTL_EXIT_FAILED;
	for (int i = 0; i == 0 || i < c->num_words; i++) {
		json_decref(answer);
		answer = ctl_order(&p, COMMAND, c->num_words != 0 ? c->words[i] : "");
		if (answer == NULL)
			break;
	}
	if (answer != NULL)
		ctl_show(c, p.prefix, p.prefix, "set", answer);
	rc = answer != NULL ? 0 : CTL_EXIT_FAILED;
	ctl_close(&p, 1);
	return rc;
}
