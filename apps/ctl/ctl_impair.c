/* SPDX-License-Identifier: BSD-3-Clause */

/* impair: faults in the frames a daemon sends or receives, changed while it runs. */

#include <stdarg.h>
#include <string.h>

#include "abi_impair.h"
#include "config_faults.h"
#include "ctl.h"
#include "faults/verbs_faults.h"

#define RULES_MAX 32u
#define WORDS_MAX 512u
#define VALUE_MAX 64u

/* Options that a rule and a fault without odds have, by their names in the daemon. */
#define OF_FRAMES(X) \
	X(opcode) \
	X(nth) \
	X(count) \
	X(arg)

enum {
	OPT_SHOW = 256,
	OPT_PSN,
	OPT_DIR,
	OPT_QP,
	OPT_TP,
	OPT_PORT_DOWN,
	OPT_GID_CHANGE,
	OPT_AFTER,
	OPT_CHECK,
#define X(name) OPT_##name,
	OF_FRAMES(X)
#undef X
	OPT_FAULTS, /* names of HCA_FAULT_LIST that are no odds, and the words after them */
	OPT_ODDS = OPT_FAULTS + 32,
};

/* Options that set a probability or a time have their names in the daemon. */
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

static const char *const faults[] = {
#define X(name, text) (text),
	HCA_FAULT_LIST(X)
#undef X
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static const char *const of_frames[] = {
#define X(name) #name,
	OF_FRAMES(X)
#undef X
};

struct impair {
	char dir[16];		/* "dir=in," or nothing */
	char qp[16];		/* ",qp=1", ",tp=1" or nothing */
	char words[WORDS_MAX];	/* "drop=0.1,..." or nothing */
	const char *fault;	/* of a rule: without odds; or NULL */
	char frames[WORDS_MAX]; /* ",opcode=ack,nth=3" or nothing */
	char psn[16];		/* ",psn=5" or nothing */
	char port[64];		/* "port=down,..." or nothing */
	bool gid;
	char after[24];	  /* ",after=5" or nothing */
	const char *text; /* of all faults, as a word; or NULL */
	bool check;	  /* judges the text, no more */
	char rule[RULES_MAX][64];
	unsigned int rules;
};

static void append(char *to, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void
append(char *to, size_t size, const char *format, ...)
{
	size_t used = strlen(to);
	va_list args;

	va_start(args, format);
	vsnprintf(to + used, size - used, format, args);
	va_end(args);
}

static bool
is_fault(const char *name)
{
	for (size_t i = 0; i < FAULTS; i++)
		if (strcmp(name, faults[i]) == 0)
			return true;
	return false;
}

static int
take_fault(struct impair *o, const char *name)
{
	if (o->fault != NULL) {
		ctl_error("--%s and --%s: one fault at a time without P", o->fault, name);
		return -1;
	}
	o->fault = name;
	return 0;
}

/* Without a value it is the fault of a rule. */
static int
take_odds(struct impair *o, unsigned int i, const char *value)
{
	double number;

	if (value == NULL && is_fault(odds[i].name))
		return take_fault(o, odds[i].name);
	if (ctl_number(odds[i].name, value, 0, odds[i].max, &number) != 0)
		return -1;
	append(o->words, sizeof(o->words), odds[i].max > 1 ? "%s%s=%.0f" : "%s%s=%.12g",
	       o->words[0] != '\0' ? "," : "", odds[i].name, number);
	return 0;
}

/* The daemon judges it: it has the list of opcodes. Its words are separated by commas. */
static int
take_frames(struct impair *o, const char *name, const char *value)
{
	if (strlen(value) > VALUE_MAX || strpbrk(value, ",;=") != NULL || *value == '\0') {
		ctl_error("--%s: expected a number%s, found \"%s\"", name,
			  strcmp(name, "opcode") == 0 ? " or the name of an opcode" : "", value);
		return -1;
	}
	append(o->frames, sizeof(o->frames), ",%s=%s", name, value);
	return 0;
}

/* N=drop: the first packet of that PSN; N: that of the fault without odds. */
static int
take_psn(struct impair *o, const char *value)
{
	const char *fault = strchrnul(value, '=');
	char number[16];
	double psn;

	snprintf(number, sizeof(number), "%.*s", (int)(fault - value), value);
	if (ctl_number("psn", number, 0, 0xffffff, &psn) != 0)
		return -1;
	if (*fault == '\0') {
		snprintf(o->psn, sizeof(o->psn), ",psn=%.0f", psn);
		return 0;
	}
	if (o->rules == RULES_MAX) {
		ctl_error(
			"--psn: expected at most %u with a fault, which is what an HCA has, found more; "
			"'softhca-ctl impair off' frees those that are used up",
			RULES_MAX);
		return -1;
	}
	if (is_fault(fault + 1)) {
		snprintf(o->rule[o->rules++], sizeof(o->rule[0]), "rule=%s,psn=%.0f,count=1",
			 fault + 1, psn);
		return 0;
	}
	ctl_error("--psn: no fault \"%s\": drop, dup, reorder, corrupt, truncate, ecn, ...",
		  fault + 1);
	return -1;
}

static int
take_port_down(struct impair *o, const char *value)
{
	double ms;

	if (ctl_number("port-down", value, 1, 3600000, &ms) != 0)
		return -1;
	snprintf(o->port, sizeof(o->port), "port=down,for=%.0f", ms);
	return 0;
}

static int
take_after(struct impair *o, const char *value)
{
	double ms;

	if (ctl_number("after", value, 0, 3600000, &ms) != 0)
		return -1;
	snprintf(o->after, sizeof(o->after), ",after=%.0f", ms);
	return 0;
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
impair_option(void *arg, int code, const char *value)
{
	struct impair *o = arg;

	switch (code) {
	case OPT_SHOW:
		return 0; /* as without options */
	case OPT_DIR:
		return take_dir(o, value);
	case OPT_QP:
		return take_number_of(o, "qp", value);
	case OPT_TP:
		return take_number_of(o, "tp", value);
	case OPT_PSN:
		return take_psn(o, value);
	case OPT_PORT_DOWN:
		return take_port_down(o, value);
	case OPT_AFTER:
		return take_after(o, value);
	case OPT_CHECK:
		o->check = true;
		return 0;
	case OPT_GID_CHANGE:
		o->gid = true;
		return 0;
	default:
		break;
	}
	if (code >= OPT_ODDS)
		return take_odds(o, (unsigned int)(code - OPT_ODDS), value);
	return code >= OPT_FAULTS ? take_fault(o, faults[code - OPT_FAULTS])
				  : take_frames(o, of_frames[code - OPT_opcode], value);
}

static int
tell(struct ctl_process *p, const struct impair *o, const char *words, const char *qp)
{
	char all[WORDS_MAX + 64];
	json_t *answer;

	if (snprintf(all, sizeof(all), "%s%s%s", o->dir, words, qp) >= (int)sizeof(all)) {
		ctl_error("\"%.20s...\" is too long", words);
		return -1;
	}
	answer = ctl_order(p, "/softhca/impair", all);
	json_decref(answer);
	return answer != NULL ? 0 : -1;
}

/* The rule of a fault without odds, and faults of port and GIDs */
static int
tell_others(struct ctl_process *p, const struct impair *o)
{
	char words[2 * WORDS_MAX];
	int rc = 0;

	if (o->fault != NULL) {
		snprintf(words, sizeof(words), "%s%s%s", o->fault, o->frames, o->psn);
		rc = tell(p, o, words, o->qp);
	}
	if (rc == 0 && o->port[0] != '\0')
		rc = tell(p, o, o->port, o->after);
	return rc == 0 && o->gid ? tell(p, o, "gid=change", o->after) : rc;
}

/* "drop=0.01;drop,opcode=ack,nth=3" */
static int
tell_text(struct ctl_process *p, const struct impair *o, const char *text)
{
	char each[WORDS_MAX];
	int rc = 0;

	while (text != NULL && rc == 0) {
		size_t len = strcspn(text, ";");

		if (len >= sizeof(each)) {
			ctl_error("\"%.20s...\" is too long", text);
			return -1;
		}
		snprintf(each, sizeof(each), "%.*s", (int)len, text);
		rc = tell(p, o, each, o->qp);
		text = text[len] == ';' && text[len + 1] != '\0' ? text + len + 1 : NULL;
	}
	return rc;
}

static int
change(struct ctl_process *p, const struct impair *o, bool off)
{
	char words[2 * WORDS_MAX];
	int rc = off ? tell(p, o, "off", "") : 0;

	if (o->text != NULL)
		rc = tell_text(p, o, o->text);

	if (rc == 0 && o->words[0] != '\0') {
		snprintf(words, sizeof(words), "%s%s", o->words, o->fault == NULL ? o->frames : "");
		rc = tell(p, o, words, o->qp);
	}
	for (unsigned int i = 0; i < o->rules && rc == 0; i++)
		rc = tell(p, o, o->rule[i], o->qp);
	return rc == 0 ? tell_others(p, o) : rc;
}

/* Options that select frames, without a fault; or a time without a fault. */
static const char *
what_is_missing(const struct impair *o, bool off)
{
	bool faults_named =
		o->words[0] != '\0' || o->rules != 0 || o->fault != NULL || o->text != NULL;
	bool chosen = o->qp[0] != '\0' || o->frames[0] != '\0' || o->psn[0] != '\0';

	if (off && (chosen || faults_named || o->port[0] != '\0' || o->gid))
		return "off: ends all faults, or with --dir those of a direction";
	if ((chosen || (o->dir[0] != '\0' && !off)) && !faults_named)
		return "--dir, --qp, --tp, --psn, --opcode, --nth and --count choose frames for a "
		       "fault: none is named, as with --drop";
	if (o->psn[0] != '\0' && o->fault == NULL)
		return "--psn N: needs a fault without P, as --drop";
	if (o->after[0] != '\0' && o->port[0] == '\0' && !o->gid)
		return "--after: with --port-down or --gid-change only";
	if (o->check)
		return "--check: expected a text of faults";
	return NULL;
}

/* The same words are judged here and by the daemon, or by programs. */
static int
judge_one(const char **rest, char *why, size_t size)
{
	struct verbs_fault f;

	if (verbs_fault_is(*rest))
		return verbs_fault_parse(rest, &f, why, size);
	return endpoint_faults_judge_next(rest, why, size);
}

/* check: judge only; else it is for a daemon, which has no faults of verbs. */
static int
impair_judge(const char *text, bool check)
{
	char why[256];

	while (text != NULL) {
		if (!check && verbs_fault_is(text)) {
			ctl_error("call= and completion are faults of programs: see softhca-run");
			return -1;
		}
		if (judge_one(&text, why, sizeof(why)) == 0)
			continue;
		ctl_error("%s", why);
		return -1;
	}
	return 0;
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

static unsigned int
make_faults(struct option *own)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < ODDS; i++)
		own[n++] = (struct option){odds[i].name,
					   is_fault(odds[i].name) ? optional_argument
								  : required_argument,
					   NULL, OPT_ODDS + (int)i};
	for (unsigned int i = 0; i < FAULTS; i++) {
		bool has_odds = false;

		for (unsigned int k = 0; k < ODDS; k++)
			has_odds |= strcmp(odds[k].name, faults[i]) == 0;
		if (!has_odds)
			own[n++] =
				(struct option){faults[i], no_argument, NULL, OPT_FAULTS + (int)i};
	}
	return n;
}

static void
make_options(struct option *own)
{
	static const struct option first[] = {
		{"show", no_argument, NULL, OPT_SHOW},
		{"psn", required_argument, NULL, OPT_PSN},
		{"dir", required_argument, NULL, OPT_DIR},
		{"qp", required_argument, NULL, OPT_QP},
		{"tp", required_argument, NULL, OPT_TP},
		{"port-down", required_argument, NULL, OPT_PORT_DOWN},
		{"gid-change", no_argument, NULL, OPT_GID_CHANGE},
		{"after", required_argument, NULL, OPT_AFTER},
		{"check", no_argument, NULL, OPT_CHECK},
#define X(name) {#name, required_argument, NULL, OPT_##name},
		OF_FRAMES(X)
#undef X
	};
	const unsigned int n = sizeof(first) / sizeof(first[0]);

	memcpy(own, first, sizeof(first));
	own[n + make_faults(own + n)] = (struct option){0};
}

int
ctl_run_impair(struct ctl *c, int argc, char **argv)
{
	struct option own[ODDS + FAULTS + 16];
	struct impair o = {0};
	struct ctl_process p;
	const char *missing;
	bool off;
	int rc;

	make_options(own);
	rc = ctl_options(c, argc, argv, own, impair_option, &o);
	if (rc != 0)
		return rc;
	off = c->num_words == 1 && strcmp(c->words[0], "off") == 0;
	if (c->num_words == 1 && !off && strpbrk(c->words[0], "=,") != NULL)
		o.text = c->words[0];
	if (c->num_words != 0 && !off && o.text == NULL) {
		ctl_error("unexpected argument \"%s\"", c->words[0]);
		return CTL_EXIT_USAGE;
	}
	if (o.text != NULL && impair_judge(o.text, o.check) != 0)
		return CTL_EXIT_USAGE;
	if (o.check && o.text != NULL)
		return 0;
	missing = what_is_missing(&o, off);
	if (missing != NULL) {
		ctl_error("%s", missing);
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
