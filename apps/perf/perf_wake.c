/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "perf.h"
#include "perf_wake.h"

#define TICK_MS 200
#define TICKS_MAX 5u /* a wait of this many ends */
#define AGAIN_US 1000

struct perf_wake {
	pthread_t watcher, waiter;
	int fd, stop_fd;
	uint32_t waits; /* [pub] odd: the waiter is inside */
};

static void
on_wake(int number)
{
	(void)number;
}

static void *
watch(void *arg)
{
	struct perf_wake *w = arg;
	struct pollfd fd[2] = {{.fd = w->stop_fd, .events = POLLIN},
			       {.fd = w->fd, .events = POLLIN}};
	uint32_t seen = 0, ticks = 0;

	for (;;) {
		bool ready = poll(fd, 2, TICK_MS) > 0;
		uint32_t now = __atomic_load_n(&w->waits, __ATOMIC_RELAXED);

		if (fd[0].revents != 0)
			return NULL;
		ticks = now == seen && !ready ? ticks + 1 : 0;
		seen = now;
		if (now % 2 == 1 && (ready || perf_interrupted() || ticks >= TICKS_MAX))
			pthread_kill(w->waiter, SIGUSR1);
		if (ready)
			usleep(AGAIN_US);
	}
}

/* The watcher takes no signals of the program. */
static int
start_watcher(struct perf_wake *w)
{
	struct sigaction action = {.sa_handler = on_wake};
	sigset_t all, before;
	int err;

	sigaction(SIGUSR1, &action, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&w->watcher, NULL, watch, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

struct perf_wake *
perf_wake_start(int fd)
{
	struct perf_wake *w = calloc(1, sizeof(*w));
	int err;

	if (w == NULL)
		return NULL;
	w->waiter = pthread_self();
	w->fd = fd;
	w->stop_fd = eventfd(0, EFD_CLOEXEC);
	err = w->stop_fd < 0 ? errno : start_watcher(w);
	if (err == 0)
		return w;
	if (w->stop_fd >= 0)
		close(w->stop_fd);
	free(w);
	errno = err;
	return NULL;
}

void
perf_wake_stop(struct perf_wake *w)
{
	if (w == NULL)
		return;
	eventfd_write(w->stop_fd, 1);
	pthread_join(w->watcher, NULL);
	close(w->stop_fd);
	free(w);
}

/* Only the waiter writes the word. */
static void
count(struct perf_wake *w)
{
	__atomic_store_n(&w->waits, w->waits + 1, __ATOMIC_RELAXED);
}

void
perf_wake_begin(struct perf_wake *w)
{
	count(w);
}

void
perf_wake_end(struct perf_wake *w)
{
	count(w);
}
