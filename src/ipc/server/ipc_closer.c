/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ipc_closer.h"
#include "ipc_memory.h"

#define CLOSERS_MAX 16u
#define CLOSER_STACK (64u << 10)
#define LOOK_MS 20u	/* interval of the keeper's checks while a close is in progress */
#define LOST_MS 200u	/* a thread that takes longer is counted as lost */
#define DESTROY_MS 500u /* limit of the wait when the closer is destroyed */
#define INTERRUPT (SIGRTMIN + 5)

struct job {
	struct job *next;
	int fd;
	uid_t uid;
};

struct hand {
	struct ipc_closer *closer;
	pthread_t thread;
	bool started, lost;
	uint64_t since; /* ms; 0: it waits for a job */
	uid_t uid;
};

struct ipc_closer {
	pthread_mutex_t lock;
	pthread_cond_t work; /* for the workers: a job, or stop */
	pthread_cond_t look; /* for the keeper, and for the destroying thread */
	struct job *first, **last;
	struct hand hand[CLOSERS_MAX];
	uint32_t busy, idle;
	uint32_t refs; /* number of threads, and the owner */
	uint64_t lost;
	bool stop;
};

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- interrupting ---- */

static void
on_interrupt(int sig)
{
	(void)sig;
}

static void
install(void)
{
	struct sigaction sa = {.sa_handler = on_interrupt};

	sigemptyset(&sa.sa_mask);
	sigaction(INTERRUPT, &sa, NULL);
}

void
ipc_closer_admit(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t set;

	pthread_once(&once, install);
	sigemptyset(&set);
	sigaddset(&set, INTERRUPT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void
ipc_closer_interrupt(pthread_t thread)
{
	pthread_kill(thread, INTERRUPT);
}

/* ---- threads ---- */

/* Lock held; it is released or, with the last reference, destroyed. */
static void
release(struct ipc_closer *c)
{
	bool last = --c->refs == 0;

	pthread_cond_broadcast(&c->look);
	pthread_mutex_unlock(&c->lock);
	if (!last)
		return;
	pthread_cond_destroy(&c->look);
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct job *
take_job(struct ipc_closer *c)
{
	struct job *job = c->first;

	c->first = job->next;
	if (c->first == NULL)
		c->last = &c->first;
	return job;
}

/* The socket's unsent data is not waited for. */
static void
close_patiently(int fd)
{
	const struct linger off = {0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	close(fd);
}

static void
do_job(struct ipc_closer *c, struct hand *h)
{
	struct job *job = take_job(c);

	h->since = now_ms();
	h->uid = job->uid;
	c->busy++;
	pthread_cond_broadcast(&c->look);
	pthread_mutex_unlock(&c->lock);
	close_patiently(job->fd);
	free(job);
	pthread_mutex_lock(&c->lock);
	c->busy--;
	h->since = 0;
	h->lost = false;
}

static void *
hand_main(void *arg)
{
	struct hand *h = arg;
	struct ipc_closer *c = h->closer;

	(void)pthread_setname_np(pthread_self(), "hca-close");
	ipc_closer_admit();
	pthread_mutex_lock(&c->lock);
	for (;;) {
		if (c->first != NULL) {
			do_job(c, h);
			continue;
		}
		if (c->stop)
			break;
		c->idle++;
		pthread_cond_wait(&c->work, &c->lock);
		c->idle--;
	}
	h->started = false;
	release(c);
	return NULL;
}

static int
start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CLOSER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return -err;
}

/* Lock held. */
static int
add_hand(struct ipc_closer *c)
{
	for (unsigned int i = 0; i < CLOSERS_MAX; i++) {
		struct hand *h = &c->hand[i];
		int err;

		if (h->started)
			continue;
		*h = (struct hand){.closer = c, .started = true};
		c->refs++;
		err = start(&h->thread, hand_main, h);
		if (err != 0) {
			h->started = false;
			c->refs--;
		}
		return err;
	}
	return -EAGAIN;
}

/*
 * Lock held: interrupt slow threads, count those that do not return as lost. True: some thread can
 * take a job.
 */
static bool
look_after(struct ipc_closer *c)
{
	uint64_t now = now_ms();
	bool able = c->idle != 0;

	for (unsigned int i = 0; i < CLOSERS_MAX; i++) {
		struct hand *h = &c->hand[i];

		if (!h->started)
			continue;
		if (h->since == 0 || now - h->since < LOOK_MS) {
			able = true;
			continue;
		}
		ipc_closer_interrupt(h->thread);
		if (!h->lost && now - h->since >= LOST_MS) {
			h->lost = true;
			c->lost++;
		}
		able |= !h->lost;
	}
	return able;
}

static void
wait_ms(struct ipc_closer *c, unsigned int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&c->look, &c->lock, &until);
}

static void *
keeper_main(void *arg)
{
	struct ipc_closer *c = arg;

	(void)pthread_setname_np(pthread_self(), "hca-close-watch");
	pthread_mutex_lock(&c->lock);
	while (!c->stop || c->first != NULL || c->busy != 0) {
		if (!look_after(c) && (c->first != NULL || c->busy != 0))
			add_hand(c); /* on failure the descriptors wait */
		if (c->busy != 0)
			wait_ms(c, LOOK_MS);
		else if (!c->stop)
			pthread_cond_wait(&c->look, &c->lock);
		else
			break;
	}
	release(c);
	return NULL;
}

/* ---- the owner ---- */

int
ipc_closer_create(struct ipc_closer **out)
{
	struct ipc_closer *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;
	pthread_t keeper;
	int err;

	if (c == NULL)
		return ipc_no_memory("the threads that close descriptors", sizeof(*c));
	c->last = &c->first;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->look, &attr);
	pthread_cond_init(&c->work, NULL);
	pthread_condattr_destroy(&attr);
	pthread_mutex_lock(&c->lock);
	c->refs = 2; /* the owner and the keeper */
	err = add_hand(c);
	if (err == 0) {
		err = start(&keeper, keeper_main, c);
		if (err == 0) {
			pthread_mutex_unlock(&c->lock);
			*out = c;
			return 0;
		}
		c->stop = true;
		pthread_cond_broadcast(&c->work);
	}
	c->refs--; /* the keeper does not exist */
	release(c);
	return ipc_fail(err,
			"no thread that closes descriptors: %s: see ulimit -u and the limit of "
			"tasks (cgroup)",
			strerror(-err));
}

void
ipc_closer_destroy(struct ipc_closer *c)
{
	uint64_t until = now_ms() + DESTROY_MS;

	if (c == NULL)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->work);
	pthread_cond_broadcast(&c->look);
	while (c->refs != 1 && now_ms() < until)
		wait_ms(c, LOOK_MS);
	release(c);
}

void
ipc_closer_give(struct ipc_closer *c, int fd, uid_t uid)
{
	struct job *job = malloc(sizeof(*job));

	if (job == NULL) {
		close_patiently(fd);
		return;
	}
	*job = (struct job){.fd = fd, .uid = uid};
	pthread_mutex_lock(&c->lock);
	*c->last = job;
	c->last = &job->next;
	pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
}

void
ipc_closer_give_all(struct ipc_closer *c, int *fds, unsigned int num_fds, uid_t uid)
{
	for (unsigned int i = 0; i < num_fds; i++) {
		if (fds[i] >= 0)
			ipc_closer_give(c, fds[i], uid);
		fds[i] = -1;
	}
}

unsigned int
ipc_closer_owed(struct ipc_closer *c, uid_t uid)
{
	unsigned int n = 0;

	pthread_mutex_lock(&c->lock);
	for (unsigned int i = 0; i < CLOSERS_MAX; i++)
		n += c->hand[i].started && c->hand[i].lost && c->hand[i].uid == uid;
	pthread_mutex_unlock(&c->lock);
	return n;
}

uint64_t
ipc_closer_lost(struct ipc_closer *c)
{
	uint64_t n;

	pthread_mutex_lock(&c->lock);
	n = c->lost;
	pthread_mutex_unlock(&c->lock);
	return n;
}
