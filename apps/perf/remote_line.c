/* SPDX-License-Identifier: BSD-3-Clause */

/* Lines over TCP. No call waits longer than the other end may be silent, whatever arrives. */

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "remote.h"

#define BACKLOG 16
#define BEAT_NS 1000000000ull
#define FAREWELL_NS 2000000000ull /* after a signal the other end may still answer */
#define SLICE_MS 200		  /* signals are seen that soon */

static int
failed(int err, const char *what)
{
	fprintf(stderr, "softhca-perf: %s: %s\n", what, strerror(-err));
	return err;
}

/* IPv6 also accepts IPv4; a machine without IPv6 gets IPv4. */
static int
open_listener(int family, uint32_t port)
{
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, zero = 0;
	int rc;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	rc = family == AF_INET6 ? bind(fd, (struct sockaddr *)&a6, sizeof(a6))
				: bind(fd, (struct sockaddr *)&a4, sizeof(a4));
	if (rc == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int
remote_listen(uint32_t port, int *fd)
{
	char what[40];

	*fd = open_listener(AF_INET6, port);
	if (*fd == -EAFNOSUPPORT || *fd == -EADDRNOTAVAIL)
		*fd = open_listener(AF_INET, port);
	snprintf(what, sizeof(what), "TCP port %u", port);
	return *fd >= 0 ? 0 : failed(*fd, what);
}

void
remote_line_start(struct remote_line *l, int fd, uint64_t timeout_ns, const struct sockaddr *a,
		  socklen_t bytes)
{
	static const char mapped[] = "::ffff:";
	char host[64] = "?", port[8] = "?", *name = host;
	int one = 1;

	getnameinfo(a, bytes, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	if (strncmp(host, mapped, sizeof(mapped) - 1) == 0 && strchr(host, '.') != NULL)
		name += sizeof(mapped) - 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*l = (struct remote_line){.fd = fd, .timeout_ns = timeout_ns};
	l->last_sent = l->last_heard = perf_now_ns();
	snprintf(l->peer, sizeof(l->peer), strchr(name, ':') != NULL ? "[%s]:%s" : "%s:%s", name,
		 port);
}

int
remote_accept(int listener, int device, struct remote_line *l, uint64_t timeout_ns)
{
	struct pollfd p[2] = {{.fd = listener, .events = POLLIN}, {.fd = device, .events = POLLIN}};
	struct sockaddr_storage a;
	socklen_t bytes;
	int fd;

	for (;;) {
		if (perf_interrupted())
			return -EINTR;
		if (poll(p, 2, SLICE_MS) <= 0)
			continue;
		if (p[1].revents != 0)
			return -EAGAIN;
		bytes = sizeof(a);
		fd = accept4(listener, (struct sockaddr *)&a, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			break;
		/*
		 * A client that has gone already is no trouble; neither is a lack of descriptors
		 * now.
		 */
		usleep(10000);
	}
	remote_line_start(l, fd, timeout_ns, (struct sockaddr *)&a, bytes);
	return 0;
}

/* HOST, HOST:PORT, IPV6 or [IPV6]:PORT; otherwise is the port of a text without one. */
int
remote_split_host(const char *text, uint32_t otherwise, char host[256], char port[8])
{
	const char *colon = strrchr(text, ':'), *bracket = strchr(text, ']');
	size_t n = strlen(text), digits;

	snprintf(port, 8, "%u", otherwise);
	if (colon != NULL && (strchr(text, ':') == colon || (bracket != NULL && bracket < colon))) {
		n = (size_t)(colon - text);
		digits = strspn(colon + 1, "0123456789");
		if (digits == 0 || digits > 5 || colon[1 + digits] != '\0')
			return -EINVAL;
		snprintf(port, 8, "%.5s", colon + 1);
	}
	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (n == 0 || n >= 256)
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	return 0;
}

static int
finish_connect(int fd, uint64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t bytes = sizeof(int);
	int err = 0;

	while (poll(&p, 1, SLICE_MS) <= 0) {
		if (perf_interrupted())
			return -EINTR;
		if (perf_now_ns() > deadline)
			return -ETIMEDOUT;
	}
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes);
	return -err;
}

static int
connect_one(const struct addrinfo *a, uint64_t deadline)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) != 0)
		err = errno == EINPROGRESS ? finish_connect(fd, deadline) : -errno;
	if (err == 0)
		return fd;
	close(fd);
	return err;
}

void
remote_pause(void)
{
	const struct timespec ts = {.tv_nsec = 20000000};

	nanosleep(&ts, NULL);
}

/* Each address in turn; a server started a moment ago may not listen yet. */
static int
connect_any(const struct addrinfo *list, uint64_t deadline, const struct addrinfo **taken)
{
	uint64_t start = perf_now_ns(), now;
	bool refused = true;
	int fd = -EINVAL;

	while (refused) {
		refused = false;
		for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
			fd = connect_one(a, deadline);
			*taken = a;
			if (fd >= 0)
				return fd;
			refused |= fd == -ECONNREFUSED;
		}
		now = perf_now_ns();
		refused = refused && now - start < REMOTE_START_NS && now < deadline;
		if (refused)
			remote_pause();
	}
	return fd;
}

int
remote_connect(struct remote_line *l, const char *text, uint32_t otherwise, uint64_t timeout_ns)
{
	const struct addrinfo *a = NULL;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	uint64_t deadline = perf_now_ns() + timeout_ns;
	char host[256], port[8];
	int fd, rc;

	l->fd = -1;
	if (remote_split_host(text, otherwise, host, port) != 0) {
		fprintf(stderr, "softhca-perf: --client: HOST or HOST:PORT expected, not %s\n",
			text);
		return -EINVAL;
	}
	rc = getaddrinfo(host, port, &hints, &list);
	if (rc != 0) {
		fprintf(stderr, "softhca-perf: %s: %s\n", host, gai_strerror(rc));
		return -EINVAL;
	}
	fd = connect_any(list, deadline, &a);
	if (fd >= 0)
		remote_line_start(l, fd, timeout_ns, a->ai_addr, a->ai_addrlen);
	freeaddrinfo(list);
	if (fd >= 0)
		return 0;
	fprintf(stderr, "softhca-perf: no server at %s, port %s: %s\n", host, port, strerror(-fd));
	return fd;
}

void
remote_close(struct remote_line *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	remote_pump_close(l->pump);
	l->pump = NULL;
}

static int
lost(struct remote_line *l, int err)
{
	fprintf(stderr, "softhca-perf: %s: %s\n", l->peer,
		err == -EPIPE	    ? "the other end has gone"
		: err == -EPROTO    ? "the data received is not the protocol of softhca-perf"
		: err == -ETIMEDOUT ? "silent for too long"
				    : strerror(-err));
	return err;
}

int
remote_send(struct remote_line *l, const char *word, const struct perf_exchange *x)
{
	uint64_t deadline = perf_now_ns() + l->timeout_ns;
	char line[PERF_EXCHANGE_LINE];
	int n = perf_exchange_format(line, sizeof(line), word, x), at = 0;

	if (n < 0)
		return lost(l, n);
	while (at < n) {
		struct pollfd p = {.fd = l->fd, .events = POLLOUT};
		ssize_t sent = send(l->fd, line + at, (size_t)(n - at), MSG_NOSIGNAL);

		if (sent > 0)
			at += (int)sent;
		else if (errno == EAGAIN && perf_now_ns() < deadline)
			poll(&p, 1, SLICE_MS);
		else if (errno != EINTR)
			return lost(l, errno == EAGAIN ? -ETIMEDOUT : -EPIPE);
	}
	l->last_sent = perf_now_ns();
	return 0;
}

/* The first line of the buffer, if there is a whole one. */
static int
take_line(struct remote_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x)
{
	char *end = memchr(l->buffer, '\n', l->used);
	size_t n;
	int rc;

	if (end == NULL)
		return l->used == sizeof(l->buffer) ? -EPROTO : 0;
	n = (size_t)(end - l->buffer) + 1;
	*end = '\0';
	rc = memchr(l->buffer, '\0', n - 1) != NULL ? -EPROTO
						    : perf_exchange_parse(l->buffer, word, x);
	l->used -= n;
	l->last_heard = perf_now_ns();
	memmove(l->buffer, l->buffer + n, l->used);
	return rc < 0 ? rc : 1;
}

static int
get_line(struct remote_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x)
{
	int rc = take_line(l, word, x);
	ssize_t n;

	if (rc != 0)
		return rc;
	n = recv(l->fd, l->buffer + l->used, sizeof(l->buffer) - l->used, 0);
	if (n == 0)
		return -EPIPE;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	l->used += (size_t)n;
	return take_line(l, word, x);
}

/* The other end may send any bytes: only printable ones are shown. */
static void
print_error(struct remote_line *l, struct perf_exchange *x)
{
	for (char *c = x->text; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	fprintf(stderr, "softhca-perf: %s says: %s\n", l->peer, x->text);
}

/* Wrong data keeps its error: the verdict depends on it. */
static int
remote_status(const struct perf_exchange *x)
{
	return x->status == EILSEQ ? -EILSEQ : -EREMOTEIO;
}

int
remote_poll(struct remote_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x)
{
	int rc = get_line(l, word, x);

	if (rc == 1 && strcmp(word, "alive") == 0)
		rc = 0; /* the next one at the next look */
	if (rc == 0 && perf_now_ns() - l->last_heard > l->timeout_ns)
		rc = -ETIMEDOUT;
	if (rc < 0)
		return lost(l, rc);
	if (rc == 0 || strcmp(word, "error") != 0)
		return rc;
	print_error(l, x);
	return remote_status(x);
}

int
remote_beat(struct remote_line *l)
{
	const struct perf_exchange none = {0};

	return perf_now_ns() - l->last_sent > BEAT_NS ? remote_send(l, "alive", &none) : 0;
}

int
remote_recv(struct remote_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x)
{
	struct pollfd p = {.fd = l->fd, .events = POLLIN};
	uint64_t deadline = perf_now_ns() + l->timeout_ns;
	bool hurry = false;
	int rc;

	for (;;) {
		rc = get_line(l, word, x);
		if (rc < 0)
			return lost(l, rc);
		if (rc == 1 && strcmp(word, "error") == 0) {
			print_error(l, x);
			return remote_status(x);
		}
		if (rc == 1 && strcmp(word, "alive") != 0)
			return 0;
		if (rc == 1 && !hurry)
			deadline = perf_now_ns() + l->timeout_ns;
		if (perf_now_ns() > deadline)
			return perf_interrupted() ? -EINTR : lost(l, -ETIMEDOUT);
		if (perf_interrupted() && !hurry) {
			hurry = true;
			deadline = perf_now_ns() + FAREWELL_NS;
		}
		if (remote_beat(l) != 0)
			return -EPIPE;
		poll(&p, 1, SLICE_MS);
	}
}

int
remote_expect(struct remote_line *l, const char *word, struct perf_exchange *x)
{
	char got[PERF_EXCHANGE_WORD];
	int err = remote_recv(l, got, x);

	if (err != 0 || strcmp(got, word) == 0)
		return err;
	return lost(l, -EPROTO);
}

int
remote_fail(struct remote_line *l, int err, const char *format, ...)
{
	struct perf_exchange x = {.status = (uint64_t)-err};
	va_list args;

	va_start(args, format);
	vsnprintf(x.text, sizeof(x.text), format, args);
	va_end(args);
	fprintf(stderr, "softhca-perf: %s\n", x.text);
	if (l->fd >= 0)
		remote_send(l, "error", &x);
	return err;
}
