/* SPDX-License-Identifier: BSD-3-Clause */

/* impair: faults in the frames a daemon sends or receives, changed while it runs. */

#include <string.h>

#include "abi_impair.h"
#include "ctl.h"

#define RULES_MAX 32u
#define WORDS_MAX 512u

enum {
	OPT_SHOW = 256,
	OPT_PSN,
	OPT_DIR,
	OPT_QP,
	OPT_TP,
	OPT_ODDS, /* and the words after them */
};

/* Options that set a probability or a time have the names the daemon knows them by. */
static const struct {
	const char *name;
	double max;
} odds[] = {
#define X(name) {#name, 1},
	HCA_IMPAIR_ODDS_LIST(X)
#undef X
#define X(name) {#name, HCA_IMPAIR_TIME_MAX},
		HCA_IMPAIR_TIME_LIST(X)
#undef X
};
#define ODDS (sizeof(odds) / sizeof(odds[0]))

struct impair {
	char dir[16];	       /* "dir=in," or nothing */
	char qp[16];	       /* ",qp=1", ",tp=1" or nothing */
	char words[WORDS_MAX]; /* "drop=0.1,..." or nothing */
	char rule[RULES_MAX][64];
	unsigned int rules;
};

static int
take_odds(struct impair *o, unsigned int i, const char *value)
{
	size_t used = strlen(o->words);
	double number;

	if (ctl_number(odds[i].name, value, 0, odds[i].max, &number) != 0)
		return -1;
	if (odds[i].max > 1)
		snprintf(o->words + used, sizeof(o->words) - used, "%s%s=%.0f",
			 used != 0 ? "," : "", odds[i].name, number);
	else
		snprintf(o->words + used, sizeof(o->words) - used, "%s%s=%.12g",
			 used != 0 ? "," : "", odds[i].name, number);
	return 0;
}

/* N=drop: the first packet of that PSN. */
static int
take_psn(struct impair *o, const char *value)
{
	static const char *const faults[] = {
#define X(name) #name,
		HCA_IMPAIR_ODDS_LIST(X)
#undef X
	};
	const char *fault = strchr(value, '=');
	char number[16];
	double psn;

	if (fault == NULL || (size_t)(fault - value) >= sizeof(number)) {
		ctl_error("--psn: expected N=FAULT, found \"%s\"", value);
		return -1;
	}
	snprintf(number, sizeof(number), "%.*s", (int)(fault - value), value);
	if (ctl_number("psn", number, 0, 0xffffff, &psn) != 0)
		return -1;
	if (o->rules == RULES_MAX) {
		ctl_error("--psn: at most %u", RULES_MAX);
		return -1;
	}
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (strcmp(fault + 1, faults[i]) != 0)
			continue;
		snprintf(o->rule[o->rules++], sizeof(o->rule[0]), "rule=%s,psn=%.0f,count=1",
			 faults[i], psn);
		return 0;
	}
	ctl_error("--psn: no fault \"%s\": drop, dup, reorder, corrupt, truncate or ecn",
		  fault + 1);
	return -1;
}

static int
take_dir(struct impair *o, const char *value)
{
	snprintf(o->dir, sizeof(o->dir), "dir=%s,", value);
	return ctl_direction(value);
}

/* of: "qp" or "tp" */
static int
take_number_of(struct impair *o, const char *of, const char *value)
{
	double number;

	if (ctl_number(of, value, 1, 0xffffff, &number) != 0)
		return -1;
	if (o->qp[0] != '\0') {
		ctl_error("--qp and --tp choose frames of one QP or TP");
		return -1;
	}
	snprintf(o->qp, sizeof(o->qp), ",%s=%.0f", of, number);
	return 0;
}

static int
take(void *arg, int code, const char *value)
{
	struct impair *o = arg;

	if (code == OPT_SHOW)
		return 0; /* as without options */
	if (code == OPT_DIR)
		return take_dir(o, value);
	if (code == OPT_QP)
		return take_number_of(o, "qp", value);
	if (code == OPT_TP)
		return take_number_of(o, "tp", value);
	return code == OPT_PSN ? take_psn(o, value)
			       : take_odds(o, (unsigned int)(code - OPT_ODDS), value);
}

static int
tell(struct ctl_process *p, const struct impair *o, const char *words, const char *qp)
{
	char all[WORDS_MAX + 64];
	json_t *answer;

	snprintf(all, sizeof(all), "%s%s%s", o->dir, words, qp);
	answer = ctl_order(p, "/softhca/impair", all);
	json_decref(answer);
	return answer != NULL ? 0 : -1;
}

static int
change(struct ctl_process *p, const struct impair *o, bool off)
{
	int rc = off ? tell(p, o, "off", "") : 0;

	if (rc == 0 && o->words[0] != '\0')
		rc = tell(p, o, o->words, o->qp);
	for (unsigned int i = 0; i < o->rules && rc == 0; i++)
		rc = tell(p, o, o->rule[i], o->qp);
	return rc;
}

/* A direction, QP or TP, and nothing that is to happen there. */
static bool
says_nothing(const struct impair *o, bool off)
{
	return (o->qp[0] != '\0' || o->dir[0] != '\0') && !off && o->words[0] == '\0' &&
	       o->rules == 0;
}

static int
show(const struct ctl *c, struct ctl_process *p)
{
	json_t *answer = ctl_order(p, "/softhca/impair", NULL);

	if (answer == NULL)
		return -1;
	ctl_show(c, p->prefix, p->prefix, "impair", answer);
	return 0;
}

static void
make_options(struct option *own)
{
	unsigned int n = 0;

	own[n++] = (struct option){"show", no_argument, NULL, OPT_SHOW};
	own[n++] = (struct option){"psn", required_argument, NULL, OPT_PSN};
	own[n++] = (struct option){"dir", required_argument, NULL, OPT_DIR};
	own[n++] = (struct option){"qp", required_argument, NULL, OPT_QP};
	own[n++] = (struct option){"tp", required_argument, NULL, OPT_TP};
	for (unsigned int i = 0; i < ODDS; i++)
		own[n++] =
			(struct option){odds[i].name, required_argument, NULL, OPT_ODDS + (int)i};
	own[n] = (struct option){0};
}

int
ctl_run_impair(struct ctl *c, int argc, char **argv)
{
	struct option own[ODDS + 6];
	struct impair o = {0};
	struct ctl_process p;
	bool off;
	int rc;

	make_options(own);
	rc = ctl_options(c, argc, argv, own, take, &o);
	if (rc != 0)
		return rc;
	off = c->num_words == 1 && strcmp(c->words[0], "off") == 0;
	if (c->num_words != 0 && !off) {
		ctl_error("unexpected argument \"%s\"", c->words[0]);
		return CTL_EXIT_USAGE;
	}
	if (says_nothing(&o, off) || (off && o.qp[0] != '\0')) {
		ctl_error("--dir, --qp and --tp choose frames for a fault: none is named");
		return CTL_EXIT_USAGE;
	}
	if (ctl_one(c, &p) != 0)
		return CTL_EXIT_FAILED;
	rc = change(&p, &o, off);
	if (rc == 0)
		rc = show(c, &p);
	ctl_close(&p, 1);
	return rc == 0 ? 0 : CTL_EXIT_FAILED;
}
