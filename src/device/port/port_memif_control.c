/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The port's thread: accepts and connects peers, ends connections, and makes sure that workers do
 * not access unmapped memory.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "port/port_memif_impl.h"

#define CLOSERS_MAX 32u
/* longest wait for closing threads when the port is closed; the process's exit ends the others */
#define CLOSE_MS 100u

static const char *const broken_text[] = {
#define X(name, text) text,
	MEMIF_BROKEN(X)
#undef X
};

/* ---- log ---- */

static void say(struct port_memif *p, bool warning, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Drops a message that repeats the last one: a client retries without limit. */
static void
say(struct port_memif *p, bool warning, const char *format, ...)
{
	char text[sizeof(p->told)];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (p->cfg.log == NULL || strcmp(text, p->told) == 0)
		return;
	memcpy(p->told, text, sizeof(text));
	p->cfg.log(p->cfg.log_arg, warning, text);
}

static void
set_peer(struct port_memif *p, const char *name)
{
	pthread_mutex_lock(&p->lock);
	snprintf(p->peer, sizeof(p->peer), "%s", name);
	pthread_mutex_unlock(&p->lock);
}

/* ---- descriptors of peers ---- */

static uint32_t closers;

static void *
close_one(void *arg)
{
	(void)pthread_setname_np(pthread_self(), "hca-memif-close");
	close((int)(intptr_t)arg);
	__atomic_fetch_sub(&closers, 1, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * The last close() of a socket with a linger time blocks, and a peer may send sockets of this kind.
 * If CLOSERS_MAX threads block in close() already, the descriptor stays open, and no peer is
 * accepted meanwhile.
 */
void
memif_close_apart(int fd)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (__atomic_add_fetch(&closers, 1, __ATOMIC_ACQ_REL) <= CLOSERS_MAX &&
	    pthread_attr_init(&attr) == 0) {
		int err;

		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		pthread_attr_setstacksize(&attr, 65536);
		err = pthread_create(&thread, &attr, close_one, (void *)(intptr_t)fd);
		pthread_attr_destroy(&attr);
		if (err == 0)
			return;
	}
	__atomic_fetch_sub(&closers, 1, __ATOMIC_RELEASE);
}

/* ---- the connection shared with the workers ---- */

static void
wake(const struct port_memif *p)
{
	uint64_t one = 1;

	if (write(p->event_fd, &one, sizeof(one)) < 0)
		return; /* a full counter also wakes the worker */
}

/* Release a worker that blocks in a write to an eventfd whose counter the peer has filled. */
static void
unblock(const struct memif_conn *c)
{
	uint64_t value;
	struct iovec iov = {.iov_base = &value, .iov_len = sizeof(value)};

	/* RWF_NOWAIT, because the peer may clear O_NONBLOCK */
	for (uint16_t i = 0; i < c->rings[MEMIF_TX]; i++)
		if (preadv2(c->lane[MEMIF_TX][i].fd, &iov, 1, -1, RWF_NOWAIT) < 0)
			continue;
}

static void
wait_worker(const struct memif_worker *w, const struct memif_conn *c)
{
	while (__atomic_load_n(&w->busy, __ATOMIC_ACQUIRE) != 0) {
		if ((__atomic_load_n(&w->kicks, __ATOMIC_RELAXED) & 1) != 0)
			unblock(c);
		usleep(20);
	}
}

static void
wait_workers(struct port_memif *p, const struct memif_conn *c)
{
	if (!p->fences)
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (uint32_t i = 0; i < MEMIF_SIDES; i++)
		for (uint16_t q = 0; q < p->port.queues; q++)
			wait_worker(&p->worker[i][q], c);
}

static void
unwatch_rings(struct port_memif *p, const struct memif_conn *c)
{
	for (uint16_t q = 0; q < p->port.queues; q++)
		for (uint16_t i = 0; i < c->from[q].n; i++) {
			uint16_t at = c->from[q].first + i * c->from[q].step;

			(void)epoll_ctl(p->queue[q].wait_fd, EPOLL_CTL_DEL,
					c->lane[MEMIF_RX][at].fd, NULL);
		}
}

/* The rings of each queue wake its worker. */
static int
watch_rings(struct port_memif *p, const struct memif_conn *c)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};

	for (uint16_t q = 0; q < p->port.queues; q++)
		for (uint16_t i = 0; i < c->from[q].n; i++) {
			uint16_t at = c->from[q].first + i * c->from[q].step;

			if (epoll_ctl(p->queue[q].wait_fd, EPOLL_CTL_ADD, c->lane[MEMIF_RX][at].fd,
				      &e) != 0) {
				int err = -errno;

				unwatch_rings(p, c);
				return err;
			}
		}
	return 0;
}

int
memif_publish(struct port_memif *p, struct memif_session *s)
{
	int err;

	if (p->active != NULL)
		return -EBUSY;
	err = watch_rings(p, s->conn);
	if (err != 0)
		return err;
	p->active = s;
	set_peer(p, s->name);
	hca_port_count(&p->stats.connects, 1);
	for (uint16_t q = 0; q < p->port.queues; q++) {
		p->worker[MEMIF_RX][q].settle = 0;
		__atomic_store_n(&p->queue[q].napped, !s->conn->fenced, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&p->conn, s->conn, __ATOMIC_RELEASE);
	wake(p);
	say(p, false, "connected to %s (%s)", s->interface, s->name);
	return 0;
}

/* Ends a session. If its connection is published, waits until the workers have left its memory. */
static void
end(struct port_memif *p, struct memif_session *s, const char *why)
{
	if (s == p->active) {
		__atomic_store_n(&p->conn, NULL, __ATOMIC_SEQ_CST);
		wait_workers(p, s->conn);
		for (uint16_t q = 0; q < p->port.queues; q++)
			__atomic_store_n(&p->queue[q].napped, false, __ATOMIC_RELAXED);
		unwatch_rings(p, s->conn);
		p->active = NULL;
		set_peer(p, "");
		hca_port_count(&p->stats.disconnects, 1);
		wake(p);
	} else {
		hca_port_count(&p->stats.refused, 1);
	}
	for (uint32_t i = 0; i < SESSIONS_MAX; i++)
		if (p->session[i] == s)
			p->session[i] = NULL;
	/* the descriptor is closed soon after */
	(void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	memif_session_free(s, why);
}

void
memif_end_sessions(struct port_memif *p)
{
	for (uint32_t i = 0; i < SESSIONS_MAX; i++)
		if (p->session[i] != NULL)
			end(p, p->session[i], "Device closed");
	for (uint32_t ms = 0; ms < CLOSE_MS && __atomic_load_n(&closers, __ATOMIC_ACQUIRE); ms++)
		usleep(1000);
}

/* ---- sockets ---- */

static socklen_t
address_of(const struct port_memif *p, struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* As in DPDK, an abstract name fills the whole field. */
	memcpy(a->sun_path + p->cfg.abstract, p->cfg.socket,
	       RTE_MIN(strlen(p->cfg.socket), sizeof(a->sun_path) - 1 - p->cfg.abstract));
	return sizeof(*a);
}

static int
set_owner(const struct port_memif *p)
{
	if (p->cfg.abstract || (p->cfg.owner_uid == (uid_t)-1 && p->cfg.owner_gid == (gid_t)-1))
		return 0;
	return chown(p->cfg.socket, p->cfg.owner_uid, p->cfg.owner_gid) == 0 ? 0 : -errno;
}

int
memif_listen(struct port_memif *p)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.ptr = &p->listener};
	struct sockaddr_un a;
	socklen_t len = address_of(p, &a);
	int err;

	p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&a, len) != 0)
		return -errno;
	p->bound = true;
	err = set_owner(p);
	if (err == 0 && (listen(p->listener, SESSIONS_MAX) != 0 ||
			 epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->listener, &e) != 0))
		err = -errno;
	return err;
}

int
memif_set_timer(struct port_memif *p, bool quiet)
{
	long ns = (quiet ? QUIET_MS : TICK_MS) * 1000000l;
	const struct itimerspec every = {.it_interval.tv_nsec = ns, .it_value.tv_nsec = ns};

	if (timerfd_settime(p->timer, 0, &every, NULL) != 0)
		return -errno;
	p->quiet = quiet;
	return 0;
}

/* A free entry, or that of the session that was silent longest, except the connected one. */
static uint32_t
session_slot(struct port_memif *p)
{
	uint32_t oldest = SESSIONS_MAX;

	for (uint32_t i = 0; i < SESSIONS_MAX; i++) {
		if (p->session[i] == NULL)
			return i;
		if (p->session[i] != p->active &&
		    (oldest == SESSIONS_MAX || p->session[i]->ticks > p->session[oldest]->ticks))
			oldest = i;
	}
	end(p, p->session[oldest], "Too many connections");
	return oldest;
}

static void
add_session(struct port_memif *p, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};
	uint32_t i = session_slot(p);

	e.data.ptr = &p->session[i];
	p->session[i] = memif_session_new(p, fd);
	if (p->session[i] == NULL) /* ended already */
		hca_port_count(&p->stats.refused, 1);
	else if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e) != 0)
		end(p, p->session[i], "No resources");
}

/* Accept while entries are free. The listener is edge-triggered, so the next tick retries. */
static void
accept_all(struct port_memif *p)
{
	int fd = 0;

	for (uint32_t i = 0; i < SESSIONS_MAX && fd >= 0; i++) {
		if (__atomic_load_n(&closers, __ATOMIC_ACQUIRE) >= CLOSERS_MAX)
			return;
		fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			add_session(p, fd);
		else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			say(p, true, "cannot accept connections: %s", strerror(errno));
	}
}

static void
try_server(struct port_memif *p)
{
	struct sockaddr_un a;
	socklen_t len = address_of(p, &a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	p->retry_ticks = RETRY_MS / TICK_MS;
	if (fd < 0) {
		say(p, true, "no socket: %s", strerror(errno));
		return;
	}
	if (connect(fd, (struct sockaddr *)&a, len) == 0) {
		add_session(p, fd);
		return;
	}
	if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN)
		say(p, true, "%s: %s", p->cfg.socket, strerror(errno));
	close(fd);
}

/* ---- the thread ---- */

static void
read_session(struct port_memif *p, struct memif_session *s)
{
	const char *why = NULL;
	bool was_up;

	if (memif_session_read(s, &why) == 0)
		return;
	was_up = memif_session_is_up(s);
	if (why == NULL && s->reason[0] != '\0')
		say(p, !was_up, "the peer %s: %s", was_up ? "leaves" : "refuses", s->reason);
	else if (why != NULL)
		say(p, true, "a peer was refused: %s", why);
	else if (was_up)
		say(p, false, "the peer disconnected");
	end(p, s, why);
}

static void
check_broken(struct port_memif *p)
{
	uint32_t why = p->active == NULL
			       ? MEMIF_BROKEN_NO
			       : __atomic_load_n(&p->active->conn->broken, __ATOMIC_RELAXED);

	if (why == MEMIF_BROKEN_NO)
		return;
	if (why == MEMIF_BROKEN_MEMORY)
		hca_port_count(&p->stats.memory_lost, 1);
	say(p, true, "the peer violates the protocol: %s", broken_text[why]);
	end(p, p->active, broken_text[why]);
	p->retry_ticks = PUNISHED_MS / TICK_MS;
}

/* Is the thread asleep? A runnable one has only lost its CPU, likely to the peer that it woke. */
static bool
thread_sleeps(int32_t tid)
{
	char path[64], text[256];
	const char *name_end;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n <= 0)
		return false;
	text[n] = '\0';
	name_end = strrchr(text, ')');
	return name_end != NULL && name_end[1] == ' ' && name_end[2] == 'S';
}

/*
 * A write to an eventfd is short; a worker that sleeps in the same write for a tick is stuck.
 * Returns whether one is in a write.
 */
static bool
check_stuck_writer(struct port_memif *p, uint16_t q)
{
	const struct memif_worker *w = &p->worker[MEMIF_TX][q];
	uint32_t kicks = __atomic_load_n(&w->kicks, __ATOMIC_ACQUIRE);

	if (p->active != NULL && (kicks & 1) != 0 && kicks == p->queue[q].kicks &&
	    thread_sleeps(__atomic_load_n(&w->kicker, __ATOMIC_RELAXED)) &&
	    kicks == __atomic_load_n(&w->kicks, __ATOMIC_ACQUIRE))
		__atomic_store_n(&p->active->conn->broken, MEMIF_BROKEN_STUCK, __ATOMIC_RELAXED);
	p->queue[q].kicks = kicks;
	return (kicks & 1) != 0;
}

/* Ticks are far apart while no other connection is there and no worker writes to its peer. */
static void
choose_period(struct port_memif *p, bool writes)
{
	bool quiet = p->active != NULL && !writes &&
		     __atomic_load_n(&closers, __ATOMIC_ACQUIRE) < CLOSERS_MAX;

	for (uint32_t i = 0; i < SESSIONS_MAX && quiet; i++)
		quiet = p->session[i] == NULL || p->session[i] == p->active;
	if (quiet != p->quiet)
		memif_set_timer(p, quiet);
}

static void
tick(struct port_memif *p)
{
	bool any = false, writes = false;
	uint64_t times;

	if (read(p->timer, &times, sizeof(times)) < 0)
		return;
	for (uint16_t q = 0; q < p->port.queues; q++)
		writes |= check_stuck_writer(p, q);
	check_broken(p);
	for (uint32_t i = 0; i < SESSIONS_MAX; i++) {
		struct memif_session *s = p->session[i];

		if (s != NULL && s != p->active && ++s->ticks > HANDSHAKE_MS / TICK_MS)
			end(p, s, "Silent for too long");
		any |= p->session[i] != NULL;
	}
	choose_period(p, writes);
	if (p->cfg.server)
		accept_all(p);
	else if (any)
		return;
	else if (p->retry_ticks > 1)
		p->retry_ticks--;
	else
		try_server(p);
}

/*
 * Handles events of sessions by index first and of the listener last, so that the session of a peer
 * that left ends before its successor is accepted.
 */
static void
handle(struct port_memif *p, struct epoll_event *e, int n)
{
	uint64_t value;
	bool comes = false;

	for (int i = 0; i < n; i++) {
		void *what = e[i].data.ptr;

		if (what == &p->timer)
			tick(p);
		else if (what == &p->listener)
			comes = true;
		else if (what == &p->broken_fd) {
			if (read(p->broken_fd, &value, sizeof(value)) > 0)
				check_broken(p);
		} else if (what != &p->stop_fd && *(struct memif_session **)what != NULL)
			read_session(p, *(struct memif_session **)what);
	}
	if (comes)
		accept_all(p);
	if (p->quiet)
		choose_period(p, false);
}

void *
memif_thread(void *arg)
{
	struct port_memif *p = arg;
	struct epoll_event e[SESSIONS_MAX + 4];

	if (!p->cfg.server)
		try_server(p);
	while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE)) {
		int n = epoll_wait(p->epoll, e, RTE_DIM(e), -1);

		handle(p, e, n);
	}
	return NULL;
}
