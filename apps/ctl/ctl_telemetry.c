/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DPDK's telemetry socket: SOCK_SEQPACKET in the runtime folder of each process, named by its file
 * prefix. The first message says how long answers may be; then one question, one answer.
 */

#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
#define PAUSE_S 0.05
#define PAUSES 200u

/* ---- finding them ---- */

/* 0; -EBUSY: hung up on, because DPDK serves few at a time; -1: no telemetry of DPDK's. */
static int
greet(struct ctl_process *p)
{
	char hello[HELLO_MAX];
	ssize_t n = recv(p->fd, hello, sizeof(hello) - 1, 0);
	json_int_t longest;
	json_t *j;

	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return -EBUSY;
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

static void
set_timeout(int fd, double seconds)
{
	const struct timeval t = {.tv_sec = (time_t)seconds,
				  .tv_usec =
					  (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/*
 * 0; -ECONNREFUSED: no process listens; -EAGAIN: the process does not accept; -1: it cannot be
 * reached.
 */
static int
attach(struct ctl_process *p)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int rc;

	if (strlen(p->path) >= sizeof(a.sun_path))
		return -1;
	memcpy(a.sun_path, p->path, strlen(p->path) + 1);
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return -1;
	set_timeout(p->fd, CTL_GREETING_S);
	if (connect(p->fd, (struct sockaddr *)&a, sizeof(a)) == 0) {
		if (getsockopt(p->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
			p->pid = peer.pid;
		return 0;
	}
	rc = errno == ECONNREFUSED || errno == EAGAIN ? -errno : -1;
	close(p->fd);
	p->fd = -1;
	return rc;
}

/* Where others are being served there will be room. */
static int
attach_again(struct ctl_process *p)
{
	int rc = -EBUSY;

	for (unsigned int i = 0; rc == -EBUSY && i < PAUSES; i++) {
		ctl_wait(PAUSE_S);
		close(p->fd);
		rc = attach(p);
		if (rc == 0)
			rc = greet(p);
	}
	return rc;
}

/* .../PREFIX/dpdk_telemetry.v2[:N] */
static bool
take_name(struct ctl_process *p, const char *path)
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
	return true;
}

struct search {
	const struct ctl *c;
	struct ctl_process *out;
	unsigned int n, max;
	struct ctl_others *others;
	struct stat searched[4]; /* the folders; one may have several names */
	unsigned int folders;
};

/* "a, b": one name more, as far as there is room. */
static void
add_name(char *names, size_t size, const char *name)
{
	size_t used = strlen(names);

	if (used + strlen(name) + 3 > size)
		return;
	if (used != 0)
		strcat(names, ", ");
	strcat(names, name);
}

/* Whether a process was stopped by a signal or a debugger; false if that is not known. */
static bool
is_stopped(int pid)
{
	char path[32], text[256] = "";
	const char *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = pid != 0 ? fopen(path, "re") : NULL;
	if (f == NULL)
		return false;
	if (fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	fclose(f);
	state = strrchr(text, ')'); /* the name before it may contain anything */
	return state != NULL && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}

static void
hangs(struct ctl_others *o, struct ctl_process *p, double waited)
{
	p->waited = waited;
	p->stopped = is_stopped(p->pid);
	ctl_close(p, 1);
	o->hanging[o->hung++] = *p;
}

/* False: not there, or searched already under another name. */
static bool
search_begins(struct search *s, const char *folder)
{
	struct stat *st = &s->searched[s->folders];
	char path[256];

	if (s->folders == sizeof(s->searched) / sizeof(s->searched[0]))
		return false;
	snprintf(path, sizeof(path), "%s/dpdk", folder);
	if (stat(path, st) != 0)
		return false;
	for (unsigned int i = 0; i < s->folders; i++)
		if (s->searched[i].st_dev == st->st_dev && s->searched[i].st_ino == st->st_ino)
			return false;
	s->folders++;
	return true;
}

/* Connects to every socket found; answers are awaited later, from all at once. */
static void
search(struct search *s, const char *folder)
{
	char pattern[256];
	glob_t found;

	if (!search_begins(s, folder))
		return;
	snprintf(pattern, sizeof(pattern), "%s/dpdk/*/" SOCKET_NAME "*", folder);
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc && s->n < s->max; i++) {
		struct ctl_process *p = &s->out[s->n];
		bool meant;
		int rc;

		if (!take_name(p, found.gl_pathv[i]))
			continue;
		meant = s->c->prefix == NULL || strcmp(p->prefix, s->c->prefix) == 0;
		rc = attach(p);
		s->others->stale += rc == -ECONNREFUSED;
		if (rc == -EAGAIN && meant)
			hangs(s->others, p, CTL_GREETING_S);
		if (rc != 0)
			continue;
		if (meant) {
			s->n++;
			continue;
		}
		add_name(s->others->prefixes, sizeof(s->others->prefixes), p->prefix);
		ctl_close(p, 1);
	}
	globfree(&found);
}

/* Takes the greeting of a process; late: it has sent none for so many seconds. */
static void
hear(struct search *s, struct ctl_process *p, double late)
{
	int rc = late != 0 ? -1 : greet(p);

	if (rc == -EBUSY)
		rc = attach_again(p);
	if (rc == 0)
		set_timeout(p->fd, s->c->timeout_s != 0 ? s->c->timeout_s : CTL_TIMEOUT_S);
	else if (late != 0)
		hangs(s->others, p, late);
	else
		ctl_close(p, 1);
}

static unsigned int
count_silent(const struct pollfd *waits, unsigned int n)
{
	unsigned int silent = 0;

	for (unsigned int i = 0; i < n; i++)
		silent += waits[i].fd >= 0;
	return silent;
}

/*
 * Greetings until `seconds` after begin. Then the processes that have sent none hang: all, or those
 * that are stopped.
 */
static void
hear_until(struct search *s, struct pollfd *waits, double begin, double seconds, bool all)
{
	double left = seconds;

	while (left > 0 && count_silent(waits, s->n) != 0) {
		int some;

		left = begin + seconds - ctl_now();
		some = poll(waits, s->n, left > 0 ? (int)(left * 1e3) + 1 : 0);
		if (some < 0 && errno != EINTR)
			return;
		for (unsigned int i = 0; i < s->n; i++) {
			bool late = waits[i].fd >= 0 && (some < 0 || waits[i].revents == 0);

			if (waits[i].fd < 0 ||
			    (late && (left > 0 || (!all && !is_stopped(s->out[i].pid)))))
				continue;
			hear(s, &s->out[i], late ? seconds : 0);
			waits[i].fd = -1;
		}
	}
}

/* A process that is not stopped may have no CPU: it gets the time of an answer. */
static void
hear_all(struct search *s)
{
	struct pollfd waits[CTL_PROCESSES_MAX];
	double begin = ctl_now();

	for (unsigned int i = 0; i < s->n; i++)
		waits[i] = (struct pollfd){.fd = s->out[i].fd, .events = POLLIN};
	hear_until(s, waits, begin, CTL_GREETING_S, false);
	hear_until(s, waits, begin, CTL_TIMEOUT_S, true);
}

/* Those that are left stand side by side. */
static unsigned int
close_ranks(struct ctl_process *p, unsigned int n)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n; i++)
		if (p[i].fd >= 0)
			p[kept++] = p[i];
	return kept;
}

const char *
ctl_hangs(const struct ctl_process *p)
{
	static char text[160];
	char number[24] = "";

	if (p->pid != 0)
		snprintf(number, sizeof(number), " (process %d)", p->pid);
	snprintf(text, sizeof(text), "%s%s does not answer within %.1f s: it %s", p->prefix, number,
		 p->waited, p->stopped ? "is stopped; resume it" : "has no CPU, or hangs");
	return text;
}

void
ctl_name_hanging(const struct ctl_others *o)
{
	for (unsigned int i = 0; i < o->hung; i++)
		ctl_error("%s", ctl_hangs(&o->hanging[i]));
}

unsigned int
ctl_find(const struct ctl *c, struct ctl_process *out, unsigned int max, struct ctl_others *others)
{
	struct search s = {.c = c,
			   .out = out,
			   .max = max < CTL_PROCESSES_MAX ? max : CTL_PROCESSES_MAX,
			   .others = others};
	const char *own = getenv("XDG_RUNTIME_DIR");
	char run[48]; /* of daemons that softhca-run has started */

	memset(others, 0, sizeof(*others));
	if (own != NULL && *own != '\0')
		search(&s, own);
	search(&s, "/var/run");
	search(&s, "/tmp");
	snprintf(run, sizeof(run), "/tmp/softhca-run-%u", (unsigned int)getuid());
	search(&s, run);
	hear_all(&s);
	return close_ranks(out, s.n);
}

void
ctl_none(const struct ctl *c, const char *what, const struct ctl_others *others)
{
	if (others->hung != 0)
		return; /* was named */
	if (c->prefix == NULL)
		ctl_error("no %s was found; is softhcad running, and may you read its socket? "
			  "(softhca-ctl doctor)",
			  what);
	else if (others->prefixes[0] != '\0')
		ctl_error("no %s was found under the prefix \"%s\"; there are: %s", what, c->prefix,
			  others->prefixes);
	else
		ctl_error("no %s was found under the prefix \"%s\", nor under another one", what,
			  c->prefix);
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

/* Chosen among those that have HCAs; -1: none, -2: several. */
static int
only_one(struct ctl_process *all, unsigned int n, char *names, size_t size)
{
	unsigned int ours = 0;
	int which = -1;

	*names = '\0';
	for (unsigned int i = 0; i < n; i++) {
		if (!has_hcas(&all[i]))
			continue;
		add_name(names, size, all[i].prefix);
		which = (int)i;
		ours++;
	}
	return ours > 1 ? -2 : which;
}

int
ctl_one(const struct ctl *c, struct ctl_process *out)
{
	struct ctl_process all[CTL_PROCESSES_MAX];
	struct ctl_others others;
	unsigned int n = ctl_find(c, all, CTL_PROCESSES_MAX, &others);
	char names[512];
	int which = only_one(all, n, names, sizeof(names));

	ctl_name_hanging(&others);
	if (which == -1)
		ctl_none(c, "process with an HCA", &others);
	else if (which == -2)
		ctl_error("several processes have HCAs: choose one with --prefix: %s", names);
	if (which >= 0) {
		*out = all[which];
		all[which] = (struct ctl_process){.fd = -1};
	}
	ctl_close(all, n);
	return which >= 0 ? 0 : -1;
}

static int
choose_hca(const struct ctl *c, struct ctl_process *p, char *name, size_t size)
{
	json_t *list = ctl_ask(p, "/softhca/hca/list", NULL), *each;
	char names[512] = "";
	const char *found = NULL;
	size_t i, matches = 0;

	json_array_foreach(list, i, each) {
		const char *text = json_string_value(each);

		if (text == NULL)
			continue;
		add_name(names, sizeof(names), text);
		if (c->hca != NULL && strcmp(text, c->hca) != 0)
			continue;
		found = text;
		matches++;
	}
	if (matches == 1)
		snprintf(name, size, "%s", found);
	else if (matches != 0)
		ctl_error("%s has %zu HCAs: choose one with --hca: %s", p->prefix, matches, names);
	else if (c->hca != NULL)
		ctl_error("%s has no HCA \"%s\"; it has: %s", p->prefix, c->hca, names);
	else
		ctl_error("%s has no HCA", p->prefix);
	json_decref(list);
	return matches == 1 ? 0 : -1;
}

int
ctl_one_hca(const struct ctl *c, struct ctl_process *out, char *name, size_t size)
{
	if (ctl_one(c, out) != 0)
		return -1;
	if (choose_hca(c, out, name, size) == 0)
		return 0;
	ctl_close(out, 1);
	return -1;
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
	do { /* a signal ends the command, but not before the result of a request is known */
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
ctl_order(struct ctl_process *p, const char *command, const char *parameters)
{
	json_t *answer = ctl_ask(p, command, parameters);
	const char *why = json_string_value(json_object_get(answer, "error"));

	if (answer == NULL && p->fd < 0)
		ctl_error("%s has ended: 'softhca-ctl status' shows those that run", p->prefix);
	else if (answer == NULL)
		ctl_error("%s does not know the command %s: no daemon, or another version",
			  p->prefix, command);
	else if (why != NULL)
		ctl_error("%s: %s", p->prefix, why);
	if (why != NULL) {
		json_decref(answer);
		answer = NULL;
	}
	return answer;
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

/* Daemons before 0.3.0 do not report the number of pipelines and have one. */
static unsigned int
pipelines_of(struct ctl_process *p, const char *hca)
{
	json_t *status = ctl_ask_about(p, "/softhca/status", hca, NULL);
	json_int_t n = json_integer_value(json_object_get(status, "pipelines"));

	json_decref(status);
	return n > 1 ? (unsigned int)n : 1;
}

json_t *
ctl_ask_stages(struct ctl_process *p, const char *hca)
{
	json_t *all = ctl_ask_about(p, "/softhca/stages", hca, NULL), *more, *stage;
	unsigned int pipelines = pipelines_of(p, hca);
	char number[16], name[64];
	const char *key;

	for (unsigned int i = 1; all != NULL && i < pipelines; i++) {
		snprintf(number, sizeof(number), "%u", i);
		more = ctl_ask_about(p, "/softhca/stages", hca, number);
		json_object_foreach(more, key, stage) {
			snprintf(name, sizeof(name), "%.40s.%u", key, i);
			json_object_set(all, name, stage);
		}
		json_decref(more);
	}
	return all;
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
