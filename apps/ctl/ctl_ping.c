/* SPDX-License-Identifier: BSD-3-Clause */

/* ping: the daemon asks the daemon of a peer, by datagrams on QP 1. */

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "ctl.h"

#define LOOK_S 0.05
#define SIZE_MIN 256
#define SIZE_MAX_BYTES 4096
#define COUNT_MAX 1000
#define INTERVAL_MIN_S 0.02 /* a peer answers 100 a second */
#define COMMAND "/softhca/ping"

enum {
	OPT_SIZE = 256,
	OPT_COUNT,
	OPT_INTERVAL
};

struct ping {
	double size, count, interval; /* size 0: MADs, then larger datagrams */
	char to[INET6_ADDRSTRLEN];
	long long printed; /* pings of which the round trip has been printed */
};

static int
ping_option(void *arg, int code, const char *value)
{
	struct ping *o = arg;

	if (code == OPT_SIZE)
		return ctl_number("size", value, SIZE_MIN, SIZE_MAX_BYTES, &o->size);
	if (code == OPT_COUNT)
		return ctl_number("count", value, 1, COUNT_MAX, &o->count);
	return ctl_number("interval", value, INTERVAL_MIN_S, 60, &o->interval);
}

/* ---- begin ---- */

static json_t *
begin_at(struct ctl_process *p, struct ping *o, const struct sockaddr *address)
{
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;
	char words[256], size[32] = "mtu=yes";
	unsigned int scope = 0;

	if (address->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &six->sin6_addr, o->to, sizeof(o->to));
		scope = six->sin6_scope_id;
	} else {
		inet_ntop(AF_INET, &four->sin_addr, o->to, sizeof(o->to));
	}
	if (o->size != 0)
		snprintf(size, sizeof(size), "size=%.0f", o->size);
	snprintf(words, sizeof(words), "to=%s,scope=%u,%s,count=%.0f,interval_ms=%.0f", o->to,
		 scope, size, o->count, o->interval * 1000);
	return ctl_ask(p, COMMAND, words);
}

/* Choose the first address of the name that the daemon can route to, or report why it cannot. */
static json_t *
begin(struct ctl_process *p, struct ping *o, const char *host)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
	struct addrinfo *all;
	json_t *answer = NULL;
	const char *why = NULL;
	int rc = getaddrinfo(host, NULL, &hints, &all);

	if (rc != 0) {
		ctl_error("%s: %s", host, gai_strerror(rc));
		return NULL;
	}
	for (const struct addrinfo *i = all; i != NULL; i = i->ai_next) {
		json_decref(answer);
		answer = begin_at(p, o, i->ai_addr);
		why = json_string_value(json_object_get(answer, "error"));
		if (answer == NULL || why == NULL)
			break;
	}
	freeaddrinfo(all);
	if (answer != NULL && why == NULL)
		return answer;
	ctl_error("%s: %s", host,
		  why != NULL ? why
			      : "the process answers no pings; is it a daemon "
				"of this release?");
	json_decref(answer);
	return NULL;
}

/* ---- output ---- */

static long long
number_of(const json_t *answer, const char *name)
{
	return (long long)json_integer_value(json_object_get(answer, name));
}

static double
us_of(const json_t *answer, const char *name)
{
	return (double)number_of(answer, name) * 1e-3;
}

static void
tell_round_trips(struct ping *o, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "rtt_ns");
	size_t n = json_array_size(list);

	for (size_t i = 0; i < n; i++) {
		long long ns = (long long)json_integer_value(json_array_get(list, i));

		if (ns == -2) /* the others were sent later, but may have been answered */
			return;
		if (ns < 0)
			printf("ping %lld: no answer\n", o->printed);
		else
			printf("ping %lld: %.1f us\n", o->printed, (double)ns * 1e-3);
		o->printed++;
	}
	fflush(stdout);
}

static void
tell_sizes(const json_t *answer)
{
	long long passed = number_of(answer, "passed"), failed = number_of(answer, "failed");

	if (failed != 0)
		printf("path MTU: datagrams of %lld bytes pass, of %lld none did\n", passed,
		       failed);
	else
		printf("path MTU: datagrams of %lld bytes pass\n", passed);
}

static void
tell_end(const struct ping *o, const json_t *answer)
{
	const char *peer = json_string_value(json_object_get(answer, "peer"));
	long long sent = number_of(answer, "sent"), received = number_of(answer, "received");

	if (peer == NULL || strcmp(peer, "softhca") != 0) {
		printf("%s: no softhca answers; %s\n", o->to,
		       peer != NULL && strcmp(peer, "cm") == 0 ? "a connection manager does"
							       : "nothing answers");
		return;
	}
	printf("%lld sent, %lld answered", sent, received);
	if (number_of(answer, "duplicates") != 0)
		printf(", %lld answers came twice", number_of(answer, "duplicates"));
	if (received != 0)
		printf("; round trip min/avg/p99/max %.1f/%.1f/%.1f/%.1f us",
		       us_of(answer, "rtt_min_ns"), us_of(answer, "rtt_avg_ns"),
		       us_of(answer, "rtt_p99_ns"), us_of(answer, "rtt_max_ns"));
	putchar('\n');
	tell_sizes(answer);
	if (number_of(answer, "ce_there") + number_of(answer, "ce_back") != 0)
		printf("CE marks: on %lld pings, on %lld answers\n", number_of(answer, "ce_there"),
		       number_of(answer, "ce_back"));
}

/* ---- until the end ---- */

static json_t *
look(struct ctl_process *p, const struct ping *o, long long session)
{
	char words[64];

	snprintf(words, sizeof(words), "session=%lld,from=%lld", session, o->printed);
	return ctl_order(p, COMMAND, words);
}

static void
forget(struct ctl_process *p, long long session)
{
	char words[64];

	snprintf(words, sizeof(words), "session=%lld,end", session);
	json_decref(ctl_ask(p, COMMAND, words));
}

/* The last answer, or NULL. A signal ends the wait, and the answers so far are printed. */
static json_t *
follow(const struct ctl *c, struct ctl_process *p, struct ping *o, long long session)
{
	json_t *answer = NULL;

	for (;;) {
		long long before = o->printed;

		json_decref(answer);
		answer = look(p, o, session);
		if (answer == NULL)
			return NULL;
		if (!c->json)
			tell_round_trips(o, answer);
		if (o->printed == before && (number_of(answer, "done") != 0 || ctl_stopped()))
			return answer;
		if (o->printed == before)
			ctl_wait(LOOK_S);
	}
}

static int
ping(const struct ctl *c, struct ctl_process *p, struct ping *o, const char *host)
{
	json_t *begun = begin(p, o, host), *answer;
	long long session = number_of(begun, "session");
	bool answered;

	if (begun == NULL)
		return -1;
	if (!c->json)
		printf("%s from %s (GID %lld), %.0f bytes\n", o->to,
		       json_string_value(json_object_get(begun, "from")), number_of(begun, "index"),
		       o->size != 0 ? o->size : SIZE_MIN);
	ctl_catch_signals();
	answer = follow(c, p, o, session);
	forget(p, session);
	answered = number_of(answer, "received") != 0;
	if (answer != NULL && c->json) {
		json_object_del(answer, "rtt_ns");
		json_object_del(answer, "done");
		json_object_del(begun, "session");
		json_object_update(answer, begun);
		json_object_set_new(answer, "size",
				    json_integer((json_int_t)(o->size != 0 ? o->size : SIZE_MIN)));
		answer = ctl_frame(p->prefix, p->prefix, "ping", answer);
		ctl_json(stdout, answer);
	} else if (answer != NULL) {
		tell_end(o, answer);
	}
	json_decref(answer);
	json_decref(begun);
	return answered ? 0 : -1;
}

int
ctl_run_ping(struct ctl *c, int argc, char **argv)
{
	static const struct option own[] = {
		{"size", required_argument, NULL, OPT_SIZE},
		{"count", required_argument, NULL, OPT_COUNT},
		{"interval", required_argument, NULL, OPT_INTERVAL},
		{NULL, 0, NULL, 0},
	};
	struct ping o = {.count = 5, .interval = 0.2};
	int rc = ctl_options(c, argc, argv, own, ping_option, &o);
	struct ctl_process p;

	if (rc != 0)
		return rc;
	if (c->num_words != 1) {
		ctl_error("expected the name or the address of one host");
		return CTL_EXIT_USAGE;
	}
	if (ctl_one(c, &p) != 0)
		return CTL_EXIT_FAILED;
	rc = ping(c, &p, &o, c->words[0]);
	ctl_close(&p, 1);
	return rc == 0 ? 0 : CTL_EXIT_FAILED;
}
