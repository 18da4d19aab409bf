/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DPDK's telemetry socket: SOCK_SEQPACKET in the runtime folder of each process, named by its file
 * prefix. The first message says how long answers may be; then one question, one answer.
 */

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"

#define SOCKET_NAME "dpdk_telemetry.v2"
#define HELLO_MAX 1024u
#define QUESTION_MAX 1024u /* DPDK reads no more of one */
#define ANSWER_MIN 1024u
#define ANSWER_MAX (1u << 24)
#define PATIENCE_S 10
#define PAUSE_NS 50000000
#define PAUSES 200u

/* ---- finding them ---- */

static int
greet(struct ctl_process *p)
{
	char hello[HELLO_MAX];
	ssize_t n = recv(p->fd, hello, sizeof(hello) - 1, 0);
	json_int_t longest;
	json_t *j;

	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return -EBUSY; /* hung up on: DPDK serves few at a time */
	if (n < 0)
		return -1;
	hello[n] = '\0';
	j = json_loads(hello, 0, NULL);
	longest = json_integer_value(json_object_get(j, "max_output_len"));
	json_decref(j);
	if (longest < ANSWER_MIN || longest > ANSWER_MAX)
		return -1;
	p->longest = (size_t)longest;
	p->answer = malloc(p->longest + 1);
	return p->answer != NULL ? 0 : -1;
}

static int
attach_once(struct ctl_process *p)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	int rc = -1;

	if (strlen(p->path) >= sizeof(a.sun_path))
		return -1;
	memcpy(a.sun_path, p->path, strlen(p->path) + 1);
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return -1;
	setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(p->fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		rc = greet(p);
	if (rc == 0)
		return 0;
	close(p->fd);
	p->fd = -1;
	return rc;
}

/* Where others are being served there will be room. */
static int
attach(struct ctl_process *p)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int rc = attach_once(p);

	for (unsigned int i = 0; rc == -EBUSY && i < PAUSES; i++) {
		nanosleep(&pause, NULL);
		rc = attach_once(p);
	}
	return rc;
}

/* .../PREFIX/dpdk_telemetry.v2[:N] */
static bool
take_name(struct ctl_process *p, const char *path, const char *wanted)
{
	const char *end = strrchr(path, '/'), *start = end;

	while (start > path && start[-1] != '/')
		start--;
	if (strlen(path) >= sizeof(p->path) || (size_t)(end - start) >= sizeof(p->prefix))
		return false;
	memset(p, 0, sizeof(*p));
	p->fd = -1;
	memcpy(p->path, path, strlen(path) + 1);
	memcpy(p->prefix, start, (size_t)(end - start));
	return wanted == NULL || strcmp(p->prefix, wanted) == 0;
}

struct search {
	const struct ctl *c;
	struct ctl_process *out;
	unsigned int n, max, stale;
};

static void
search(struct search *s, const char *folder)
{
	char pattern[256];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/dpdk/*/" SOCKET_NAME "*", folder);
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc && s->n < s->max; i++) {
		if (!take_name(&s->out[s->n], found.gl_pathv[i], s->c->prefix))
			continue;
		if (attach(&s->out[s->n]) == 0)
			s->n++;
		else
			s->stale += errno == ECONNREFUSED;
	}
	globfree(&found);
}

unsigned int
ctl_find(const struct ctl *c, struct ctl_process *out, unsigned int max, unsigned int *stale)
{
	struct search s = {.c = c, .out = out, .max = max};
	const char *own = getenv("XDG_RUNTIME_DIR");

	if (own != NULL && *own != '\0')
		search(&s, own);
	if (own == NULL || (strcmp(own, "/var/run") != 0 && strcmp(own, "/run") != 0))
		search(&s, "/var/run");
	search(&s, "/tmp");
	if (stale != NULL)
		*stale = s.stale;
	return s.n;
}

void
ctl_close(struct ctl_process *p, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (p[i].fd >= 0)
			close(p[i].fd);
		free(p[i].answer);
		p[i].fd = -1;
		p[i].answer = NULL;
	}
}

static bool
has_hcas(struct ctl_process *p)
{
	json_t *list = ctl_ask(p, "/softhca/hca/list", NULL);
	bool some = json_array_size(list) != 0;

	json_decref(list);
	return some;
}

int
ctl_one(const struct ctl *c, struct ctl_process *out)
{
	struct ctl_process all[CTL_PROCESSES_MAX];
	unsigned int n = ctl_find(c, all, CTL_PROCESSES_MAX, NULL), ours = 0, which = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (!has_hcas(&all[i]))
			continue;
		which = i;
		ours++;
	}
	if (ours == 1) {
		*out = all[which];
		all[which] = (struct ctl_process){.fd = -1};
	} else if (ours == 0) {
		ctl_error("no process with an HCA %s; is softhcad running, and may you read its "
			  "socket? (softhca-ctl doctor)",
			  c->prefix != NULL ? "answers under that prefix" : "was found");
	} else {
		ctl_error("%u processes have HCAs: choose one with --prefix", ours);
		for (unsigned int i = 0; i < n; i++)
			fprintf(stderr, "  %s\n", all[i].prefix);
	}
	ctl_close(all, n);
	return ours == 1 ? 0 : -1;
}

int
ctl_one_hca(const struct ctl *c, struct ctl_process *p, char *name, size_t size)
{
	json_t *list = ctl_ask(p, "/softhca/hca/list", NULL), *each;
	const char *found = NULL;
	size_t i, matches = 0;

	json_array_foreach(list, i, each) {
		const char *text = json_string_value(each);

		if (text == NULL || (c->hca != NULL && strcmp(text, c->hca) != 0))
			continue;
		found = text;
		matches++;
	}
	if (matches == 1)
		snprintf(name, size, "%s", found);
	else if (matches == 0)
		ctl_error("%s has no HCA %s", p->prefix, c->hca != NULL ? c->hca : "at all");
	else
		ctl_error("%s has %zu HCAs: choose one with --hca", p->prefix, matches);
	json_decref(list);
	return matches == 1 ? 0 : -1;
}

/* ---- asking ---- */

json_t *
ctl_ask(struct ctl_process *p, const char *command, const char *parameters)
{
	char question[QUESTION_MAX];
	int len = snprintf(question, sizeof(question), "%s%s%s", command,
			   parameters != NULL ? "," : "", parameters != NULL ? parameters : "");
	json_t *whole, *part;
	ssize_t n;

	if (p->fd < 0 || len < 0 || (size_t)len >= sizeof(question))
		return NULL;
	if (send(p->fd, question, (size_t)len, MSG_NOSIGNAL) != len)
		goto lost;
	do { /* a signal ends the command, but what was asked must be known */
		n = recv(p->fd, p->answer, p->longest, 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		goto lost;
	p->answer[n] = '\0';
	whole = json_loads(p->answer, 0, NULL);
	part = json_incref(json_object_get(whole, command));
	json_decref(whole);
	if (json_is_null(part)) {
		json_decref(part);
		part = NULL;
	}
	return part;

lost:
	close(p->fd);
	p->fd = -1;
	return NULL;
}

json_t *
ctl_ask_about(struct ctl_process *p, const char *command, const char *hca, const char *more)
{
	char parameters[QUESTION_MAX];
	int len = snprintf(parameters, sizeof(parameters), "%s%s%s", hca, more != NULL ? "," : "",
			   more != NULL ? more : "");

	if (len < 0 || (size_t)len >= sizeof(parameters))
		return NULL;
	return ctl_ask(p, command, parameters);
}

/* A dictionary of objects by index, ascending; returns the last index, or -1 at the end. */
static json_int_t
take_piece(json_t *all, json_t *piece)
{
	json_int_t last = -1;
	const char *key;
	json_t *object;

	json_object_foreach(piece, key, object) {
		last = json_integer_value(json_object_get(object, "index"));
		json_array_append(all, object);
	}
	return last;
}

json_t *
ctl_ask_list(struct ctl_process *p, const char *command, const char *hca)
{
	json_t *all = json_array(), *piece;
	json_int_t last = -1, before;
	char from[24];

	do {
		before = last;
		snprintf(from, sizeof(from), "%lld", (long long)(last + 1));
		piece = ctl_ask_about(p, command, hca, from);
		last = take_piece(all, piece);
		json_decref(piece);
	} while (last > before);
	return all;
}
