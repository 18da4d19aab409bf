/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cmagent_loop.h"

#define NS_PER_MS UINT64_C(1000000)

static uint64_t
now_of(const struct cmagent_loop *l)
{
	return l->cfg.now(l->cfg.now_arg);
}

void
cmagent_loop_wake(struct cmagent_loop *l)
{
	uint64_t one = 1;

	__atomic_store_n(&l->asked, 1, __ATOMIC_RELEASE);
	if (l->wake_fd >= 0 && write(l->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: the thread will look anyway */
}

static bool
is_due(const struct cmagent_loop *l, uint64_t now)
{
	return __atomic_load_n(&l->asked, __ATOMIC_ACQUIRE) != 0 ||
	       (now >= l->mail_at && cmagent_mail_due(l->cfg.mail)) || now >= l->deadline;
}

/* Most turns of a composition that polls find nothing: these read no clock. */
static bool
is_idle(const struct cmagent_loop *l)
{
	return __atomic_load_n(&l->asked, __ATOMIC_ACQUIRE) == 0 && l->deadline == CMAGENT_NEVER &&
	       !cmagent_mail_due(l->cfg.mail);
}

static unsigned int
loop_turn(struct cmagent_loop *l)
{
	uint64_t now = now_of(l);

	if (!is_due(l, now))
		return 0;
	__atomic_store_n(&l->asked, 0, __ATOMIC_RELAXED);
	return l->cfg.work(l->cfg.owner, now, &l->deadline);
}

unsigned int
cmagent_loop_poll(struct cmagent_loop *l)
{
	unsigned int n;

	if (__atomic_exchange_n(&l->busy, 1, __ATOMIC_ACQUIRE) != 0)
		return 0;
	n = is_idle(l) ? 0 : loop_turn(l);
	__atomic_store_n(&l->busy, 0, __ATOMIC_RELEASE);
	return n;
}

/* ---- the thread ---- */

static int
timeout_ms(const struct cmagent_loop *l)
{
	uint64_t now = now_of(l), wait;

	if (l->deadline == CMAGENT_NEVER)
		return -1;
	wait = l->deadline > now ? l->deadline - now : 0;
	wait = wait / NS_PER_MS + (wait % NS_PER_MS != 0);
	return wait < INT_MAX ? (int)wait : INT_MAX;
}

static void
drain(int fd)
{
	uint8_t bytes[256];

	while (read(fd, bytes, sizeof(bytes)) == sizeof(bytes))
		;
}

static void
sleep_until_due(const struct cmagent_loop *l)
{
	struct pollfd fds[] = {
		{.fd = l->wake_fd, .events = POLLIN},
		{.fd = l->cfg.mail->channel_fd, .events = POLLIN},
	};

	uint64_t now = now_of(l);
	nfds_t n = now >= l->mail_at ? 2 : 1;

	if (n == 2)
		cmagent_mail_arm(l->cfg.mail);
	if (is_due(l, now_of(l)))
		return;
	if (poll(fds, n, timeout_ms(l)) <= 0)
		return;
	for (nfds_t i = 0; i < n; i++)
		if (fds[i].revents != 0)
			drain(fds[i].fd);
}

static void *
loop_main(void *arg)
{
	struct cmagent_loop *l = arg;

	(void)pthread_setname_np(pthread_self(), "hca-cm");
	while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
		(void)cmagent_loop_poll(l);
		sleep_until_due(l);
	}
	return NULL;
}

int
cmagent_loop_start(struct cmagent_loop *l)
{
	sigset_t all, before;
	int err;

	if (!l->cfg.thread)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&l->thread, NULL, loop_main, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	l->runs = err == 0;
	return -err;
}

void
cmagent_loop_stop(struct cmagent_loop *l)
{
	if (!l->runs)
		return;
	__atomic_store_n(&l->stop, 1, __ATOMIC_RELEASE);
	cmagent_loop_wake(l);
	pthread_join(l->thread, NULL);
	l->runs = false;
}

int
cmagent_loop_open(struct cmagent_loop *l, const struct cmagent_loop_config *config)
{
	memset(l, 0, sizeof(*l));
	l->cfg = *config;
	l->wake_fd = -1;
	if (config->thread)
		l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return config->thread && l->wake_fd < 0 ? -errno : 0;
}

void
cmagent_loop_close(struct cmagent_loop *l)
{
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	l->wake_fd = -1;
}
