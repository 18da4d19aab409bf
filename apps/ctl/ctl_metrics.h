/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_CTL_METRICS_H
#define CTL_CTL_METRICS_H

/* metrics: the text (ctl_metrics.c), and a listener that answers with it (ctl_http.c). */

#include "ctl.h"

/*
 * Makes the text of an answer: malloc()ed, *length bytes; NULL: no memory. Called once a second at
 * most.
 */
typedef char *(*ctl_http_text_fn)(void *arg, size_t *length);

/*
 * Answers GET /metrics on `address` (ADDRESS:PORT or [ADDRESS]:PORT; port 0: any, which is printed)
 * until a signal ends it. A client that does not ask or does not read is dropped after two seconds;
 * CTL_HTTP_CLIENTS_MAX are served at a time, others wait. Returns 0, or -1 (said).
 */
#define CTL_HTTP_CLIENTS_MAX 16
int ctl_http_serve(const char *address, ctl_http_text_fn text, void *arg);

#endif
