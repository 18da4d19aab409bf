/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Life cycle of contexts. If a context shares memory with a daemon, a thread watches the
 * connection, so that a program that only polls CQs learns when the daemon is gone. For all
 * contexts: after fork() the child cannot harm the parent's.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib_cm.h"
#include "lib_types.h"

#define WATCHER_STACK (64u << 10)

static struct lib_context *contexts;
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

int
lib_dead(const struct lib_context *ctx)
{
	if (ctx->forked)
		return lib_fail(
			-EPERM,
			"the context belongs to the process this one was forked from: open the "
			"device again in the child");
	return lib_fail(
		-EIO,
		"the device is dead: its daemon has ended, or the device had a fatal error; close "
		"the context, and open the device again");
}

/* ---- the daemon's end ---- */

static void *
watcher_main(void *arg)
{
	struct lib_context *ctx = arg;
	struct pollfd fds[] = {
		{.fd = ctx->watch_stop, .events = POLLIN},
		{.fd = ctx->ops->watch_fd(ctx->ctl), .events = POLLRDHUP},
	};

	(void)pthread_setname_np(pthread_self(), "hca-watcher");
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue; /* EINTR */
		if (fds[0].revents != 0)
			return NULL;
		if (fds[1].revents != 0) {
			__atomic_store_n(&ctx->dead, true, __ATOMIC_RELAXED);
			return NULL;
		}
	}
}

/* Block all signals in the thread, so that it never runs the program's handlers. */
static int
start_watcher(struct lib_context *ctx)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	ctx->watch_stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->watch_stop < 0)
		return lib_fail(-errno, "no eventfd for the thread that watches the daemon: %s",
				strerror(errno));
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, WATCHER_STACK);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&ctx->watcher, &attr, watcher_main, ctx);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (err == 0)
		return 0;
	close(ctx->watch_stop);
	ctx->watch_stop = -1;
	return lib_fail(
		-err,
		"no thread to watch the daemon: %s; raise ulimit -u, or pids.max of the cgroup",
		strerror(err));
}

static void
stop_watcher(struct lib_context *ctx)
{
	uint64_t one = 1;

	if (ctx->watch_stop < 0)
		return;
	if (write(ctx->watch_stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(ctx->watcher, NULL);
	close(ctx->watch_stop);
	ctx->watch_stop = -1;
}

/* ---- fork() ---- */

static void
fork_prepare(void)
{
	pthread_mutex_lock(&contexts_lock);
	lib_share_fork_prepare();
}

static void
fork_parent(void)
{
	lib_share_fork_parent();
	pthread_mutex_unlock(&contexts_lock);
}

/*
 * Locks that other threads held at fork() are never released here: those threads are not in the
 * child.
 */
static void
reset_locks(struct lib_context *ctx)
{
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->acked, NULL);
	lib_cm_reset_lock(ctx);
	for (uint32_t i = 0; i <= ctx->qp_mask; i++) {
		if (ctx->qps[i] == NULL)
			continue;
		lib_lock_drop(&ctx->qps[i]->sq.lock);
		lib_lock_drop(&ctx->qps[i]->rq.lock);
	}
	for (uint32_t i = 0; i <= ctx->cq_mask; i++) {
		if (ctx->cqs[i] == NULL)
			continue;
		ctx->cqs[i]->reader = NULL;
		ctx->cqs[i]->shown = NULL;
		lib_lock_drop(&ctx->cqs[i]->lock);
	}
	for (uint32_t i = 0; i <= ctx->srq_mask; i++)
		if (ctx->srqs[i] != NULL)
			lib_lock_drop(&ctx->srqs[i]->wq.lock);
}

/* The child's part of a context of its parent */
static void
leave(struct lib_context *ctx)
{
	ctx->forked = true;
	ctx->dead = true;
	ctx->progress = NULL; /* the engine's memory is shared with the parent */
	if (ctx->watch_stop >= 0)
		close(ctx->watch_stop);
	ctx->watch_stop = -1;
	if (ctx->ops->leave != NULL)
		ctx->ops->leave(ctx->ctl);
	for (uint32_t i = 0; i < ctx->uar.pipes; i++)
		lib_uar_of(ctx, i)->kick_fd = -1;
	reset_locks(ctx);
}

/*
 * The child has no doorbell page: stores to its address are harmless. The child has no contexts of
 * its own yet and may open some.
 */
static void
fork_child(void)
{
	lib_share_fork_restore();
	for (struct lib_context *ctx = contexts; ctx != NULL; ctx = ctx->next)
		leave(ctx);
	contexts = NULL;
	lib_share_fork_child();
	pthread_mutex_unlock(&contexts_lock);
}

static int register_error;

static void
register_fork(void)
{
	register_error = -pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* ---- life ---- */

int
lib_life_begin(struct lib_context *ctx)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err;

	ctx->watch_stop = -1;
	pthread_once(&once, register_fork);
	if (register_error != 0)
		return lib_fail(register_error, "pthread_atfork(): %s", strerror(-register_error));
	err = ctx->ops->watch_fd != NULL ? start_watcher(ctx) : 0;
	if (err != 0)
		return err;
	pthread_mutex_lock(&contexts_lock);
	ctx->next = contexts;
	contexts = ctx;
	pthread_mutex_unlock(&contexts_lock);
	return 0;
}

void
lib_life_end(struct lib_context *ctx)
{
	struct lib_context **link = &contexts;

	pthread_mutex_lock(&contexts_lock);
	while (*link != NULL && *link != ctx)
		link = &(*link)->next;
	if (*link != NULL)
		*link = ctx->next;
	pthread_mutex_unlock(&contexts_lock);
	stop_watcher(ctx);
}
