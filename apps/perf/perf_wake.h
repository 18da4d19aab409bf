/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_PERF_WAKE_H
#define APPS_PERF_PERF_WAKE_H

/*
 * Ends a system call that waits: --events between daemons waits in get_cq_event() itself, as verbs
 * programs do. Waiting in poll() for the channel and the line to the peer first would add 1.5 us to
 * half a round trip where CPUs are shared.
 *
 * A thread watches for other ends of the wait: the descriptor is readable, SIGINT, a second without
 * an event. It sends SIGUSR1 until the wait has ended, because one signal may come just before the
 * system call begins.
 */

struct perf_wake;

/* The calling thread is the one that waits; fd: -1 for none. NULL: errno says why. */
struct perf_wake *perf_wake_start(int fd);
void perf_wake_stop(struct perf_wake *w); /* NULL: nothing */

/* Around the system call. It fails with EINTR, or the next one does, once it has to end. */
void perf_wake_begin(struct perf_wake *w);
void perf_wake_end(struct perf_wake *w);

#endif
