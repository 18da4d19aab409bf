/* SPDX-License-Identifier: BSD-3-Clause */

/* The file of --flows: a flow per line, words of the form name=value, comments after #. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <softhca/softhca.h>

#include "perf_flows.h"

#define LINE_MAX 1024u
#define BLANKS " \t\r\n"

#define DEFAULT_MESSAGE 65536u
#define DEFAULT_DEPTH 16u

struct suffix {
	const char *text;
	double scale;
};

static const struct suffix none[] = {{"", 1}, {NULL, 0}};
static const struct suffix times[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct suffix sizes[] = {{"", 1},
				      {"K", 1024},
				      {"M", 1048576},
				      {"G", 1073741824},
				      {NULL, 0}};

#define SUFFIX_TIME times
#define SUFFIX_BYTES sizes
#define SUFFIX_REAL none
#define SUFFIX_U32 none

static bool
number(const char *text, const struct suffix *suffix, double min, double max, double *value)
{
	char *end;

	*value = strtod(text, &end);
	/* 0 has no unit */
	if (end == text || (*value == 0 && *end == '\0'))
		return end != text && min <= 0;
	while (suffix->text != NULL && strcmp(end, suffix->text) != 0)
		suffix++;
	*value *= suffix->scale;
	return suffix->text != NULL && *value >= min && *value <= max;
}

static bool
is_whole(double v)
{
	return v == (double)(uint64_t)v;
}

static const char *
take_op(struct perf_flow_spec *s, const char *value)
{
	if (strcmp(value, "write") == 0)
		s->op = PERF_FLOW_WRITE;
	else if (strcmp(value, "read") == 0)
		s->op = PERF_FLOW_READ;
	else
		return "write or read";
	return NULL;
}

static const char *
take_congestion(struct perf_flow_spec *s, const char *value)
{
#define X(name, number, text) \
	if (strcmp(value, text) == 0) { \
		s->congestion = (number); \
		return NULL; \
	}
	SOFTHCA_CONGESTION_LIST(X)
#undef X
#define X(name, number, text) " " text
	return "one of" SOFTHCA_CONGESTION_LIST(X);
#undef X
}

static const char *
take_peer(struct perf_flow_spec *s, const char *value)
{
	if (*value == '\0' || strlen(value) >= sizeof(s->peer))
		return "0, 1 or HOST[:PORT] of a server";
	strcpy(s->peer, value);
	return NULL;
}

/* Returns NULL, or the value that was expected. */
static const char *
take_word(struct perf_flow_spec *s, const char *name, const char *value)
{
	double v;

	if (strcmp(name, "op") == 0)
		return take_op(s, value);
	if (strcmp(name, "congestion") == 0)
		return take_congestion(s, value);
	if (strcmp(name, "peer") == 0)
		return take_peer(s, value);
/* half is 0 in members that are integers */
#define X(word, member, kind, min, max, expected) \
	if (strcmp(name, #word) == 0) { \
		__typeof__(s->member) half = 0.5; \
		if (!number(value, SUFFIX_##kind, min, max, &v) || (half == 0 && !is_whole(v))) \
			return expected; \
		s->member = (__typeof__(s->member))v; \
		return NULL; \
	}
	PERF_FLOWS_WORDS(X)
#undef X
#define X(word, ...) " " #word
	return "one of op peer" PERF_FLOWS_WORDS(X) " congestion";
#undef X
}

static const char *
judge(const struct perf_flow_spec *s)
{
	if (s->size == 0 && s->duration_ns == 0)
		return "neither size nor duration";
	if (s->size != 0 && s->message > s->size)
		return "message is larger than size";
	return NULL;
}

static int
take_line(char *line, const char *file, struct perf_flow_spec *s, char *why, size_t size)
{
	const char *expected;
	char *word, *value;

	while ((word = strsep(&line, BLANKS)) != NULL) {
		if (*word == '\0')
			continue;
		value = strchr(word, '=');
		if (value != NULL)
			*value++ = '\0';
		expected = value != NULL ? take_word(s, word, value) : "NAME=VALUE";
		if (expected == NULL)
			continue;
		snprintf(why, size, "%s:%u: \"%.40s%s%.40s\": expected %s", file, s->line, word,
			 value != NULL ? "=" : "", value != NULL ? value : "", expected);
		return -EINVAL;
	}
	/* a flow that is shorter than the default message has one message */
	if (s->message == 0)
		s->message = s->size != 0 && s->size < DEFAULT_MESSAGE ? s->size : DEFAULT_MESSAGE;
	expected = judge(s);
	if (expected == NULL)
		return 0;
	snprintf(why, size, "%s:%u: %s", file, s->line, expected);
	return -EINVAL;
}

static int
append(struct perf_flows *out, struct perf_flow_spec s, const char *file, char *why, size_t size)
{
	uint32_t count = s.count;

	if (count > PERF_FLOWS_MAX - out->n) {
		snprintf(why, size, "%s:%u: more than %u flows", file, s.line, PERF_FLOWS_MAX);
		return -EINVAL;
	}
	s.count = 1;
	while (count-- != 0)
		out->spec[out->n++] = s;
	return 0;
}

bool
perf_flows_is_side(const char *peer)
{
	return strcmp(peer, "0") == 0 || strcmp(peer, "1") == 0;
}

/* Peers are the pair in this process or servers, not both: there is one clock. */
static int
judge_all(const struct perf_flows *flows, const char *file, char *why, size_t size)
{
	if (flows->n == 0) {
		snprintf(why, size, "%s: no flow in it", file);
		return -EINVAL;
	}
	for (uint32_t i = 1; i < flows->n; i++) {
		const struct perf_flow_spec *s = &flows->spec[i];

		if (perf_flows_is_side(s->peer) == perf_flows_is_side(flows->spec[0].peer))
			continue;
		snprintf(why, size, "%s:%u: peer=%.40s: peers are 0 and 1, or all of them servers",
			 file, s->line, s->peer);
		return -EINVAL;
	}
	return 0;
}

int
perf_flows_parse(FILE *f, const char *name, struct perf_flows *out, char *why, size_t size)
{
	char line[LINE_MAX];
	uint32_t number = 0;
	int err = 0;

	out->n = 0;
	while (err == 0 && fgets(line, sizeof(line), f) != NULL) {
		struct perf_flow_spec s = {.line = ++number,
					   .depth = DEFAULT_DEPTH,
					   .count = 1,
					   .peer = "1"};

		if (strchr(line, '\n') == NULL && !feof(f)) {
			snprintf(why, size, "%s:%u: more than %u characters", name, number,
				 LINE_MAX - 2);
			return -EINVAL;
		}
		line[strcspn(line, "#")] = '\0';
		if (line[strspn(line, BLANKS)] == '\0')
			continue;
		err = take_line(line, name, &s, why, size);
		if (err == 0)
			err = append(out, s, name, why, size);
	}
	if (err == 0 && ferror(f)) {
		snprintf(why, size, "%s: %s", name, strerror(errno));
		return -EIO;
	}
	return err == 0 ? judge_all(out, name, why, size) : err;
}
