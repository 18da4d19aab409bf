/* SPDX-License-Identifier: BSD-3-Clause */

/* A listener that answers HTTP requests with one text; see ctl_metrics.h. */

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl_metrics.h"

#define REQUEST_MAX 4096u
#define CLIENT_S 2.0 /* to ask, and to read the answer */
#define FRESH_S 1.0  /* age of a text that is given again */
#define TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* A client asks until the empty line, then reads until the answer is out. */
struct http_client {
	int fd; /* -1: none */
	double end;
	size_t asked;
	char request[REQUEST_MAX];
	char *answer; /* NULL: it asks */
	size_t length, sent;
};

struct http {
	int listener;
	struct http_client client[CTL_HTTP_CLIENTS_MAX];
	ctl_http_text_fn make;
	void *arg;
	char *text;
	size_t length;
	double made; /* when the text was made */
};

static void
client_close(struct http_client *c)
{
	/* Unread bytes would reset the connection, and the answer might be lost. */
	for (unsigned int i = 0; i < 16; i++)
		if (recv(c->fd, c->request, sizeof(c->request), 0) <= 0)
			break;
	close(c->fd);
	free(c->answer);
	c->answer = NULL;
	c->fd = -1;
}

/* Takes the text, where there is one. */
static void
client_answer(struct http_client *c, const char *status, const char *text, size_t length)
{
	FILE *out = open_memstream(&c->answer, &c->length);

	if (out == NULL) {
		client_close(c);
		return;
	}
	fprintf(out,
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n"
		"\r\n",
		status, text != NULL ? TYPE : "text/plain", length);
	if (text != NULL)
		fwrite(text, 1, length, out);
	if (fclose(out) != 0)
		client_close(c);
	c->sent = 0;
	c->end = ctl_now() + CLIENT_S; /* making the text may have taken longer */
}

/* While the text is made no client is read: that is not part of their time. */
static void
http_refresh(struct http *h)
{
	double began = ctl_now();

	if (h->text != NULL && began - h->made < FRESH_S)
		return;
	free(h->text);
	h->text = h->make(h->arg, &h->length);
	h->made = ctl_now();
	for (unsigned int i = 0; i < CTL_HTTP_CLIENTS_MAX; i++)
		h->client[i].end += h->made - began;
}

static void
client_judge(struct http *h, struct http_client *c)
{
	if (strncmp(c->request, "GET ", 4) != 0) {
		client_answer(c, "405 Method Not Allowed", NULL, 0);
		return;
	}
	if (strncmp(c->request + 4, "/metrics", 8) != 0 || strchr(" ?", c->request[12]) == NULL) {
		client_answer(c, "404 Not Found", NULL, 0);
		return;
	}
	http_refresh(h);
	if (h->text == NULL)
		client_answer(c, "503 Service Unavailable", NULL, 0);
	else
		client_answer(c, "200 OK", h->text, h->length);
}

static void
client_read(struct http *h, struct http_client *c)
{
	ssize_t n = recv(c->fd, c->request + c->asked, sizeof(c->request) - 1 - c->asked, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(c);
		return;
	}
	c->asked += (size_t)n;
	c->request[c->asked] = '\0';
	if (strstr(c->request, "\r\n\r\n") != NULL || strstr(c->request, "\n\n") != NULL)
		client_judge(h, c);
	else if (c->asked == sizeof(c->request) - 1)
		client_answer(c, "431 Request Header Fields Too Large", NULL, 0);
}

static void
client_write(struct http_client *c)
{
	ssize_t n = send(c->fd, c->answer + c->sent, c->length - c->sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->sent += n > 0 ? (size_t)n : 0;
	if (n <= 0 || c->sent == c->length)
		client_close(c);
}

static void
http_accept(struct http *h)
{
	int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (unsigned int i = 0; fd >= 0 && i < CTL_HTTP_CLIENTS_MAX; i++) {
		struct http_client *c = &h->client[i];

		if (c->fd >= 0)
			continue;
		c->fd = fd;
		c->asked = 0;
		c->end = ctl_now() + CLIENT_S;
		return;
	}
	if (fd >= 0)
		close(fd);
}

/* One look at all clients; while there is no room for more, the listener is not looked at. */
static void
http_turn(struct http *h)
{
	struct pollfd waits[CTL_HTTP_CLIENTS_MAX + 1];
	bool room = false;
	double now;

	for (unsigned int i = 0; i < CTL_HTTP_CLIENTS_MAX; i++) {
		const struct http_client *c = &h->client[i];

		waits[i] = (struct pollfd){.fd = c->fd,
					   .events = c->answer != NULL ? POLLOUT : POLLIN};
		room |= c->fd < 0;
	}
	waits[CTL_HTTP_CLIENTS_MAX] =
		(struct pollfd){.fd = room ? h->listener : -1, .events = POLLIN};
	if (poll(waits, CTL_HTTP_CLIENTS_MAX + 1, 200) < 0)
		return;
	now = ctl_now();
	for (unsigned int i = 0; i < CTL_HTTP_CLIENTS_MAX; i++) {
		struct http_client *c = &h->client[i];

		if (c->fd < 0)
			continue;
		if (now > c->end)
			client_close(c);
		else if (waits[i].revents != 0 && c->answer != NULL)
			client_write(c);
		else if (waits[i].revents != 0)
			client_read(h, c);
	}
	if (waits[CTL_HTTP_CLIENTS_MAX].revents != 0)
		http_accept(h);
}

/* "192.0.2.1:9477" or "[2001:db8::1]:9477" */
static int
split_address(const char *address, char host[64], const char **port)
{
	const char *colon = strrchr(address, ':'), *begin = address, *end = colon;

	if (colon == NULL || colon == address)
		return -1;
	if (*begin == '[' && end[-1] == ']') {
		begin++;
		end--;
	} else if (memchr(begin, ':', (size_t)(end - begin)) != NULL) {
		return -1;
	}
	if (end - begin >= 64)
		return -1;
	memcpy(host, begin, (size_t)(end - begin));
	host[end - begin] = '\0';
	*port = colon + 1;
	return strspn(*port, "0123456789") == strlen(*port) && **port != '\0' ? 0 : -1;
}

static int
open_listener(const char *address)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
	struct addrinfo *a = NULL;
	const char *port;
	char host[64];
	int fd, on = 1;

	if (split_address(address, host, &port) != 0 || getaddrinfo(host, port, &hints, &a) != 0) {
		ctl_error("--listen: expected ADDRESS:PORT, like 127.0.0.1:9477, found \"%s\"",
			  address);
		return -1;
	}
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, 16) != 0) {
		ctl_error("--listen %s: %s", address, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(a);
	return fd;
}

static void
say_port(int listener)
{
	struct sockaddr_in6 a; /* the port of IPv4 stands at the same place */
	socklen_t bytes = sizeof(a);

	if (getsockname(listener, (struct sockaddr *)&a, &bytes) == 0)
		printf("serves /metrics on port %u\n", ntohs(a.sin6_port));
	fflush(stdout);
}

int
ctl_http_serve(const char *address, ctl_http_text_fn text, void *arg)
{
	static struct http h;

	h = (struct http){.listener = open_listener(address), .make = text, .arg = arg};
	if (h.listener < 0)
		return -1;
	for (unsigned int i = 0; i < CTL_HTTP_CLIENTS_MAX; i++)
		h.client[i].fd = -1;
	ctl_catch_signals();
	say_port(h.listener);
	while (!ctl_stopped())
		http_turn(&h);
	for (unsigned int i = 0; i < CTL_HTTP_CLIENTS_MAX; i++)
		if (h.client[i].fd >= 0)
			client_close(&h.client[i]);
	close(h.listener);
	free(h.text);
	return 0;
}
