/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "ep.h"
#include "ep_line.h"

#define SEND_MS 5000

int
ep_line_send(struct ep_line *l, const char *word, const struct perf_exchange *x)
{
	struct perf_exchange stamped = *x;
	char line[PERF_EXCHANGE_LINE];
	int n;

	stamped.clock = ep_now();
	n = perf_exchange_format(line, sizeof(line), word, &stamped);
	if (n < 0)
		return n;
	for (int done = 0; done < n;) {
		struct pollfd p = {.fd = l->fd, .events = POLLOUT};
		ssize_t k = write(l->fd, line + done, (size_t)(n - done));

		if (k > 0)
			done += (int)k;
		else if (k < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		else if (poll(&p, 1, SEND_MS) == 0)
			return -ETIMEDOUT;
	}
	return 0;
}

static int
take_line(struct ep_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x)
{
	char *end = memchr(l->buffer, '\n', l->have);
	size_t n;
	int err;

	if (end == NULL)
		return l->have < sizeof(l->buffer) - 1 ? 0 : -EPROTO;
	*end = '\0';
	n = (size_t)(end + 1 - l->buffer);
	err = perf_exchange_parse(l->buffer, word, x);
	l->have -= n;
	memmove(l->buffer, l->buffer + n, l->have);
	return err == 0 ? 1 : err;
}

int
ep_line_poll(struct ep_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x)
{
	int rc = take_line(l, word, x);
	ssize_t k;

	if (rc != 0)
		return rc;
	k = read(l->fd, l->buffer + l->have, sizeof(l->buffer) - 1 - l->have);
	if (k == 0)
		return -EPIPE;
	if (k < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	l->have += (size_t)k;
	return take_line(l, word, x);
}
