/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * capture: the daemon writes its sent and received frames into a pcapng file, for a limited time.
 */

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"

#define LOOK_S 0.2 /* is the daemon still there? */

enum {
	OPT_SECONDS = 256,
	OPT_DIR,
	OPT_QP,
	OPT_TP,
	OPT_SNAPLEN
};

struct capture {
	double seconds; /* 0: until a signal */
	char words[128];
};

static void
add_word(struct capture *o, const char *word)
{
	size_t used = strlen(o->words);

	snprintf(o->words + used, sizeof(o->words) - used, "%s,", word);
}

static int
capture_option(void *arg, int code, const char *value)
{
	struct capture *o = arg;
	char word[48];
	double number;

	if (code == OPT_SECONDS)
		return ctl_number("seconds", value, 0.01, 1e9, &o->seconds);
	if (code == OPT_DIR) {
		if (ctl_direction(value) != 0)
			return -1;
		snprintf(word, sizeof(word), "dir=%s", value);
	} else if (code == OPT_QP || code == OPT_TP) {
		const char *of = code == OPT_QP ? "qp" : "tp";

		if (ctl_number(of, value, 1, 0xffffff, &number) != 0)
			return -1;
		snprintf(word, sizeof(word), "%s=%.0f", of, number);
	} else {
		if (ctl_number("snaplen", value, 14, 65535, &number) != 0)
			return -1;
		snprintf(word, sizeof(word), "snaplen=%.0f", number);
	}
	add_word(o, word);
	return 0;
}

/* The daemon's working directory is not ours. */
static int
absolute(const char *file, char *path, size_t size)
{
	char here[PATH_MAX];
	int n;

	if (file[0] == '/')
		n = snprintf(path, size, "%s", file);
	else if (getcwd(here, sizeof(here)) != NULL)
		n = snprintf(path, size, "%s/%s", here, file);
	else
		n = -1;
	if (n >= 0 && (size_t)n < size)
		return 0;
	ctl_error("%s: the path is too long, expected up to %zu characters: use a shorter one",
		  file, size - 1);
	return -1;
}

static json_t *
begin(struct ctl_process *p, const struct capture *o, const char *path)
{
	char words[1000];
	json_t *answer = NULL;

	if (snprintf(words, sizeof(words), "%s%s", o->words, path) < (int)sizeof(words))
		answer = ctl_order(p, "/softhca/capture", words);
	else
		ctl_error("%s: the path is too long: use a shorter one", path);
	return answer;
}

static bool
is_capturing(struct ctl_process *p)
{
	json_t *answer = ctl_ask(p, "/softhca/capture", NULL);
	bool active = json_integer_value(json_object_get(answer, "active")) == 1;

	json_decref(answer);
	return active;
}

static long long
number_of(json_t *answer, const char *name)
{
	return (long long)json_integer_value(json_object_get(answer, name));
}

static void
tell(json_t *answer, const char *path)
{
	long long lost = number_of(answer, "lost");

	printf("%lld frames in %s", number_of(answer, "frames"), path);
	if (lost != 0)
		printf("; capture lost %lld, the disk was too slow", lost);
	putchar('\n');
}

static int
end(const struct ctl *c, struct ctl_process *p, const char *path)
{
	json_t *answer = ctl_ask(p, "/softhca/capture", "off");
	bool failed;

	if (answer == NULL) {
		ctl_error("%s has ended, so %s is not complete: capture again when it runs",
			  p->prefix, path);
		return -1;
	}
	failed = number_of(answer, "failed") != 0;
	json_object_set_new(answer, "file", json_string(path));
	if (c->json) {
		answer = ctl_frame(p->prefix, p->prefix, "capture", answer);
		ctl_json(stdout, answer);
	} else {
		tell(answer, path);
	}
	json_decref(answer);
	if (failed)
		ctl_error("%s is not complete: the file could not be written", path);
	return failed ? -1 : 0;
}

static int
capture(const struct ctl *c, const struct capture *o, struct ctl_process *p, const char *path)
{
	double start = ctl_now(), left = o->seconds;
	json_t *begun;

	ctl_catch_signals();
	begun = begin(p, o, path);
	if (begun == NULL)
		return -1;
	json_decref(begun);
	if (!c->json && o->seconds == 0)
		fprintf(stderr, "capturing into %s; Ctrl-C ends it\n", path);
	while (!ctl_stopped() && (o->seconds == 0 || left > 0) && is_capturing(p)) {
		ctl_wait(o->seconds == 0 || left > LOOK_S ? LOOK_S : left);
		left = o->seconds - (ctl_now() - start);
	}
	return end(c, p, path);
}

int
ctl_run_capture(struct ctl *c, int argc, char **argv)
{
	static const struct option own[] = {
		{"seconds", required_argument, NULL, OPT_SECONDS},
		{"dir", required_argument, NULL, OPT_DIR},
		{"qp", required_argument, NULL, OPT_QP},
		{"tp", required_argument, NULL, OPT_TP},
		{"snaplen", required_argument, NULL, OPT_SNAPLEN},
		{NULL, 0, NULL, 0},
	};
	struct capture o = {0};
	int rc = ctl_options(c, argc, argv, own, capture_option, &o);
	struct ctl_process p;
	char path[PATH_MAX];

	if (rc != 0)
		return rc;
	if (c->num_words != 1) {
		ctl_error("expected one file to write to");
		return CTL_EXIT_USAGE;
	}
	if (absolute(c->words[0], path, sizeof(path)) != 0 || ctl_one(c, &p) != 0)
		return CTL_EXIT_FAILED;
	rc = capture(c, &o, &p, path);
	ctl_close(&p, 1);
	return rc == 0 ? 0 : CTL_EXIT_FAILED;
}
