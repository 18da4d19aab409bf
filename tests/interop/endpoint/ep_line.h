/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_EP_LINE_H
#define TESTS_INTEROP_EP_LINE_H

/*
 * The control channel of an interoperation test: lines of perf_exchange.h over a byte stream, which
 * never blocks the reader: a virtio-serial port in the guest, a unix socket outside.
 *
 * Words; the host leads:
 *  hello                   guest: it is there
 *  case -> ready | error   a QP of the test with the host's addresses; the guest's
 *  go                      all QPs are connected: start
 *  stop                    instead of go: forget the QPs
 *  sent                    either end: its own requests have completed
 *  result                  either end: status and reason
 *  bye                     the guest ends
 */

#include "perf_exchange.h"

struct ep_line {
	int fd;
	size_t have;
	char buffer[PERF_EXCHANGE_LINE];
};

/* 0, or a negative errno. */
int ep_line_send(struct ep_line *l, const char *word, const struct perf_exchange *x);

/*
 * 1: a line was received; 0: none yet; negative errno: the channel is broken or sent an invalid
 * line.
 */
int ep_line_poll(struct ep_line *l, char word[PERF_EXCHANGE_WORD], struct perf_exchange *x);

#endif
