/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_EP_LINE_H
#define TESTS_INTEROP_EP_LINE_H

/*
 * The control channel of an interoperation test: lines of perf_exchange.h over a byte stream that
 * never blocks the reader. A virtio-serial port in the guest, a unix socket outside; later TCP.
 *
 * The words; the host leads:
 *	hello			guest: it is there
 *	case -> ready | error	a QP of the test with the host's addresses; the guest's
 *	go			all QPs are connected: start
 *	stop			instead: forget the QPs
 *	sent			either end: its own requests have completed
 *	result			either end: it has what it should; status and reason
 *	bye			the guest ends
 */

#include "perf_exchange.h"

struct ep_line {
	int fd;
	size_t have;
	char buffer[PERF_EXCHANGE_LINE];
};

/* 0, or negative errno. */
int ep_line_send(struct ep_line *l, const char *word, const struct perf_exchange *x);

/* 1: a line came; 0: none yet; negative errno: the channel is gone or speaks nonsense. */
int ep_line_poll(struct ep_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x);

#endif
