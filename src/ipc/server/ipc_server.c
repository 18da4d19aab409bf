/* SPDX-License-Identifier: BSD-3-Clause */

/* The socket, its listener, and the list of clients. */

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ipc_closer.h"
#include "ipc_msg.h"
#include "ipc_server_impl.h"

#define BACKLOG 64
#define SESSION_STACK (256u << 10)
#define OWED_MAX 2u	/* limit of threads that a user may block in close() */
#define RELEASE_MS 1000 /* limit of a wait for clients that have ended */
#define INTERRUPT_MS 50 /* interval of interrupts of a session that must end but blocks */

static const char *const counter_names[] = {
#define X(name) #name,
	IPC_COUNTERS(X)
#undef X
#define X(NAME, name, request, answer, fds_in, fds_out, caller, by, since) "calls_" #name,
		HCA_CTL_OPS(X)
#undef X
};

unsigned int
ipc_server_counter_count(void)
{
	return IPC_COUNTER_COUNT;
}

const char *
ipc_server_counter_name(unsigned int i)
{
	return i < IPC_COUNTER_COUNT ? counter_names[i] : "unknown";
}

uint64_t
ipc_server_counter(const struct ipc_server *server, unsigned int i)
{
	if (i == IPC_COUNTER_closes_lost)
		return ipc_closer_lost(server->closer);
	return i < IPC_COUNTER_COUNT ? __atomic_load_n(&server->counter[i], __ATOMIC_RELAXED) : 0;
}

int
ipc_server_access(struct ipc_server *server, uint32_t domain, bool write, uint64_t addr,
		  void *bytes, uint32_t len)
{
	struct ipc_foreign *f = NULL;
	int rc = -EFAULT;

	if (domain < HCA_UAR_PAGES)
		f = __atomic_load_n(&server->foreign[domain], __ATOMIC_ACQUIRE);
	if (f != NULL)
		rc = ipc_foreign_access(f, write, addr, bytes, len);
	ipc_count(server, rc == -EAGAIN || rc == -EINPROGRESS ? IPC_COUNTER_foreign_late
			  : rc != 0			      ? IPC_COUNTER_foreign_faults
			  : write			      ? IPC_COUNTER_foreign_writes
							      : IPC_COUNTER_foreign_reads);
	return rc;
}

const char *
ipc_server_reason(void)
{
	return ipc_reason();
}

/* ---- the socket ---- */

static int
make_folder(const char *path)
{
	char copy[sizeof(((struct ipc_server *)NULL)->path)];

	snprintf(copy, sizeof(copy), "%s", path);
	if (mkdir(dirname(copy), 0755) == 0 || errno == EEXIST)
		return 0;
	return ipc_fail(-errno, "the folder of %s: %s", path, strerror(errno));
}

/* A socket without a listener is a leftover; one with a listener belongs to another daemon. */
static int
clear_path(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, err = 0;

	if (lstat(addr->sun_path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return ipc_fail(-EEXIST, "%s is not a socket", addr->sun_path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return ipc_fail(-errno, "socket: %s", strerror(errno));
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN)
		err = ipc_fail(-EADDRINUSE, "a daemon listens on %s", addr->sun_path);
	else if (unlink(addr->sun_path) != 0)
		err = ipc_fail(-errno, "%s cannot be removed: %s", addr->sun_path, strerror(errno));
	close(fd);
	return err;
}

static int
open_socket(struct ipc_server *server)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	mode_t mask;
	int err = make_folder(server->path);

	if (err != 0)
		return err;
	memcpy(addr.sun_path, server->path, sizeof(addr.sun_path));
	err = clear_path(&addr);
	if (err != 0)
		return err;
	server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listen_fd < 0)
		return ipc_fail(-errno, "socket: %s", strerror(errno));
	mask = umask(0177); /* no process can connect before mode and group are set */
	err = bind(server->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ? -errno : 0;
	umask(mask);
	if (err != 0)
		return ipc_fail(err, "%s: %s", server->path, strerror(-err));
	if (server->config.set_group && chown(server->path, (uid_t)-1, server->config.group) != 0)
		return ipc_fail(-errno, "group of %s: %s", server->path, strerror(errno));
	if (chmod(server->path, server->config.mode) != 0 ||
	    listen(server->listen_fd, BACKLOG) != 0 || lstat(server->path, &st) != 0)
		return ipc_fail(-errno, "%s: %s", server->path, strerror(errno));
	server->inode = st.st_ino;
	return 0;
}

/* Not if it was removed and another daemon has created its own. */
static void
remove_socket(const struct ipc_server *server)
{
	struct stat st;

	if (lstat(server->path, &st) == 0 && st.st_ino == server->inode)
		unlink(server->path);
}

/* ---- clients ---- */

/* Lock held: bytes that all clients of the user have attached */
static uint64_t
attached_of(const struct ipc_server *server, uid_t uid)
{
	uint64_t has = 0;

	for (const struct ipc_session *s = server->sessions; s != NULL; s = s->next)
		if (s->uid == uid)
			has += __atomic_load_n(&s->attached, __ATOMIC_RELAXED);
	return has;
}

static int
user_refused(struct ipc_server *server, uid_t uid, uint64_t has)
{
	ipc_count(server, IPC_COUNTER_refused_memory_per_uid);
	return ipc_fail(-ENOMEM,
			"all clients of a user may attach %llu MiB ([quota] user_memory_mb), those "
			"of user %u have %llu",
			(unsigned long long)(server->config.memory_per_uid >> 20),
			(unsigned int)uid, (unsigned long long)(has >> 20));
}

int
ipc_session_more(void *session, uint64_t bytes)
{
	struct ipc_session *s = session;
	struct ipc_server *server = s->server;
	uint64_t max = server->config.memory_per_uid, has;
	bool fits;

	pthread_mutex_lock(&server->lock);
	has = attached_of(server, s->uid);
	fits = bytes <= max && has <= max - bytes;
	if (fits)
		__atomic_store_n(&s->attached, s->attached + bytes, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&server->lock);
	return fits ? 0 : user_refused(server, s->uid, has);
}

int
ipc_session_fits(const struct ipc_session *s, uint64_t bytes)
{
	struct ipc_server *server = s->server;
	uint64_t max = server->config.memory_per_uid, has;

	pthread_mutex_lock(&server->lock);
	has = attached_of(server, s->uid);
	pthread_mutex_unlock(&server->lock);
	return bytes <= max && has <= max - bytes ? 0 : user_refused(server, s->uid, has);
}

static uint32_t
sessions_of(const struct ipc_server *server, uid_t uid)
{
	uint32_t n = 0;

	for (const struct ipc_session *s = server->sessions; s != NULL; s = s->next)
		n += s->uid == uid;
	return n;
}

static int
start_thread(struct ipc_session *session)
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, SESSION_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&session->thread, &attr, ipc_session_main, session);
	pthread_attr_destroy(&attr);
	return -err;
}

/* A pidfd of the peer; -1: it is gone, or the kernel has no pidfds. */
static int
open_pid(int sock, pid_t pid)
{
#ifdef SO_PEERPIDFD
	socklen_t len = sizeof(int);
	int fd;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;
#endif
	return pidfd_open(pid, 0);
}

static struct ipc_session *
new_session(struct ipc_server *server, int sock)
{
	struct ipc_session *session = calloc(1, sizeof(*session));
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (session == NULL || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		goto err_free;
	session->server = server;
	session->sock = sock;
	session->pid = cred.pid;
	session->uid = cred.uid;
	session->pid_fd = open_pid(sock, cred.pid);
	memset(session->kick_fd, -1, sizeof(session->kick_fd));
	session->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (session->lost_fd < 0)
		goto err_pid;
	return session;

err_pid:
	if (session->pid_fd >= 0)
		close(session->pid_fd);
err_free:
	free(session);
	return NULL;
}

/* Messages left in the socket, with descriptors, are closed with it: not in this thread. */
static void
free_session(struct ipc_session *session)
{
	shutdown(session->sock, SHUT_RDWR); /* the client sees the end now */
	ipc_closer_give(session->server->closer, session->sock, session->uid);
	if (session->pid_fd >= 0)
		close(session->pid_fd);
	close(session->lost_fd);
	free(session->pages);
	free(session);
}

/* Lock held: whether the user may have one more client: 0, or a negative errno with words. */
static int
admit(struct ipc_server *server, const struct ipc_session *session)
{
	const struct ipc_server_config *c = &server->config;

	if (server->num_sessions >= c->clients_max) {
		ipc_count(server, IPC_COUNTER_refused_clients_max);
		return ipc_fail(-ENOMEM,
				"the daemon is full: it has %u clients, its limit ([limits] "
				"clients)",
				c->clients_max);
	}
	if (sessions_of(server, session->uid) >= c->clients_per_uid) {
		ipc_count(server, IPC_COUNTER_refused_clients_per_uid);
		return ipc_fail(-EMFILE,
				"user %u has %u clients of the daemon, the limit of a user "
				"([limits] clients_per_user)",
				(unsigned int)session->uid, c->clients_per_uid);
	}
	if (ipc_closer_owed(server->closer, session->uid) >= OWED_MAX) {
		ipc_count(server, IPC_COUNTER_refused_resources);
		return ipc_fail(-EMFILE,
				"descriptors that clients of user %u have sent block the daemon "
				"in close()",
				(unsigned int)session->uid);
	}
	return 0;
}

/*
 * The answer to the greeting, sent before that is read: a client that is refused takes only room in
 * its own socket.
 */
static void
refuse_client(const struct ipc_session *session, int err)
{
	struct ipc_reply head = {
		.version = HCA_CTL_VERSION,
		.op = HCA_CTL_HELLO,
		.err = err,
		.speaks = HCA_CTL_VERSION,
	};

	strncpy(head.reason, ipc_reason(), sizeof(head.reason) - 1);
	ipc_send(session->sock, &head, sizeof(head), NULL, 0, NULL, 0, MSG_DONTWAIT);
}

static void
take_client(struct ipc_server *server, int sock)
{
	struct ipc_session *session = new_session(server, sock);
	int err;

	if (session == NULL) {
		ipc_count(server, IPC_COUNTER_refused_resources);
		ipc_closer_give(server->closer, sock, (uid_t)-1);
		return;
	}
	pthread_mutex_lock(&server->lock);
	err = admit(server, session);
	if (err == 0 && start_thread(session) != 0) {
		ipc_count(server, IPC_COUNTER_refused_resources);
		err = ipc_fail(-ENOMEM, "the daemon has no thread for one more client");
	}
	if (err == 0) {
		ipc_count(server, IPC_COUNTER_clients_accepted);
		session->next = server->sessions;
		server->sessions = session;
		server->num_sessions++;
	}
	pthread_mutex_unlock(&server->lock);
	if (err != 0) {
		refuse_client(session, err);
		free_session(session);
	}
}

static void *
listener_main(void *arg)
{
	struct ipc_server *server = arg;
	struct pollfd fds[2] = {
		{.fd = server->stop_fd, .events = POLLIN},
		{.fd = server->listen_fd, .events = POLLIN},
	};

	(void)pthread_setname_np(pthread_self(), "hca-listener");
	for (;;) {
		int sock;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (fds[0].revents != 0)
			return NULL;
		sock = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (sock >= 0)
			take_client(server, sock);
		else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			/* no descriptors or memory: the client waits in the backlog */
			poll(NULL, 0, 10);
	}
}

/* The time at which a wait of ms ends; ms below 1000. */
static void
after_ms(struct timespec *until, unsigned int ms)
{
	clock_gettime(CLOCK_MONOTONIC, until);
	until->tv_nsec += ms * 1000000;
	until->tv_sec += until->tv_nsec / 1000000000;
	until->tv_nsec %= 1000000000;
}

/* The last call of a session's thread. */
void
ipc_session_gone(struct ipc_session *session, uint64_t ns)
{
	struct ipc_server *server = session->server;
	struct ipc_session **link = &server->sessions;

	pthread_mutex_lock(&server->lock);
	while (*link != session)
		link = &(*link)->next;
	*link = session->next;
	if (session->greeted) {
		server->clean_ups.count++;
		server->clean_ups.sum_ns += ns;
		if (ns > server->clean_ups.longest_ns)
			server->clean_ups.longest_ns = ns;
	}
	pthread_mutex_unlock(&server->lock);
	free_session(session);
	pthread_mutex_lock(&server->lock);
	/* the last access: the server may be freed when the lock is released */
	server->num_sessions--;
	pthread_cond_broadcast(&server->ended);
	pthread_mutex_unlock(&server->lock);
}

/* A client that has ended, or closed its socket, and is not released yet. */
static bool
is_ending(const struct ipc_session *session)
{
	struct pollfd fd = {.fd = session->sock};

	return poll(&fd, 1, 0) > 0 && (fd.revents & POLLHUP) != 0;
}

static bool
others_are_ending(const struct ipc_server *server, const struct ipc_session *self)
{
	for (const struct ipc_session *s = server->sessions; s != NULL; s = s->next)
		if (s != self && is_ending(s))
			return true;
	return false;
}

bool
ipc_wait_for_ended(struct ipc_session *self)
{
	struct ipc_server *server = self->server;
	struct pollfd stop = {.fd = server->stop_fd, .events = POLLIN};
	bool waited = false;

	pthread_mutex_lock(&server->lock);
	for (unsigned int ms = 0; ms < RELEASE_MS && others_are_ending(server, self);
	     ms += INTERRUPT_MS) {
		struct timespec until;

		waited = true;
		if (poll(&stop, 1, 0) > 0)
			break;
		after_ms(&until, INTERRUPT_MS);
		pthread_cond_timedwait(&server->ended, &server->lock, &until);
	}
	pthread_mutex_unlock(&server->lock);
	return waited;
}

/* ---- life ---- */

static int
take_config(struct ipc_server *server, const struct ipc_server_config *in)
{
	struct ipc_server_config *c = &server->config;

	if (in->path == NULL || in->name == NULL || in->driver == NULL)
		return ipc_fail(-EINVAL, "a server needs a path, a name and a driver");
	if (strlen(in->path) >= sizeof(server->path))
		return ipc_fail(-ENAMETOOLONG, "the path of the socket has more than %zu bytes",
				sizeof(server->path) - 1);
	if (strlen(in->name) >= sizeof(server->name))
		return ipc_fail(-ENAMETOOLONG, "the name \"%s\" has more than %zu bytes", in->name,
				sizeof(server->name) - 1);
	*c = *in;
	strcpy(server->path, in->path);
	strcpy(server->name, in->name);
	c->path = server->path;
	c->name = server->name;
#define DEFAULT(field, value) \
	if (c->field == 0) \
	c->field = value
	DEFAULT(mode, 0660);
	DEFAULT(clients_max, 256);
	DEFAULT(clients_per_uid, c->clients_max);
	DEFAULT(memory_max, UINT64_C(16) << 30);
	DEFAULT(memory_per_uid, 4 * c->memory_max);
	DEFAULT(segments_max, 32768);
	DEFAULT(hello_ms, 1000);
	DEFAULT(send_ms, 1000);
#undef DEFAULT
	ipc_maps_init(&server->maps, c->clients_max, 0);
	return 0;
}

int
ipc_server_create(const struct ipc_server_config *config, struct ipc_server **out)
{
	struct ipc_server *server = calloc(1, sizeof(*server));
	pthread_condattr_t attr;
	int err;

	if (server == NULL)
		return ipc_no_memory("a server", sizeof(*server));
	server->listen_fd = -1;
	server->device_fd = -1;
	server->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&server->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&server->ended, &attr);
	pthread_condattr_destroy(&attr);
	ipc_turns_init(&server->turns, config->turn_ms);
	err = take_config(server, config);
	if (err == 0 && server->stop_fd < 0)
		err = ipc_fail(-errno, "eventfd: %s", strerror(errno));
	if (err == 0)
		err = ipc_memory_guard();
	if (err == 0)
		err = ipc_closer_create(&server->closer);
	if (err == 0)
		err = open_socket(server);
	if (err != 0)
		goto err_close;
	err = ipc_publish(server);
	if (err != 0)
		goto err_unlink;
	err = -pthread_create(&server->listener, NULL, listener_main, server);
	if (err != 0) {
		ipc_fail(err, "no thread for %s", server->path);
		goto err_unlink;
	}
	*out = server;
	return 0;

err_unlink:
	ipc_unpublish(server);
	remove_socket(server);
err_close:
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	if (server->stop_fd >= 0)
		close(server->stop_fd);
	ipc_closer_destroy(server->closer);
	ipc_turns_free(&server->turns);
	pthread_cond_destroy(&server->ended);
	pthread_mutex_destroy(&server->lock);
	free(server);
	return err;
}

/* Threads see stop_fd, unless they block in a system call on behalf of their client. */
static void
end_sessions(struct ipc_server *server)
{
	pthread_mutex_lock(&server->lock);
	while (server->num_sessions != 0) {
		struct timespec until;

		after_ms(&until, INTERRUPT_MS);
		if (pthread_cond_timedwait(&server->ended, &server->lock, &until) != ETIMEDOUT)
			continue;
		for (struct ipc_session *s = server->sessions; s != NULL; s = s->next)
			ipc_closer_interrupt(s->thread);
	}
	pthread_mutex_unlock(&server->lock);
}

void
ipc_server_destroy(struct ipc_server *server)
{
	uint64_t one = 1;

	if (server == NULL)
		return;
	if (write(server->stop_fd, &one, sizeof(one)) < 0)
		abort(); /* a new eventfd accepts 1 */
	pthread_join(server->listener, NULL);
	ipc_unpublish(server);
	remove_socket(server);
	ipc_closer_give(server->closer, server->listen_fd, (uid_t)-1); /* with its backlog */
	end_sessions(server);
	ipc_closer_destroy(server->closer);
	close(server->stop_fd);
	ipc_turns_free(&server->turns);
	pthread_cond_destroy(&server->ended);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

unsigned int
ipc_server_clients(struct ipc_server *server, struct ipc_client_info *out, unsigned int max)
{
	unsigned int n = 0;

	const struct ipc_sleep *sleep = server->config.sleep;

	pthread_mutex_lock(&server->lock);
	for (const struct ipc_session *s = server->sessions; s != NULL; s = s->next, n++) {
		if (n >= max)
			continue;
		out[n] = (struct ipc_client_info){
			.uar_page = __atomic_load_n(&s->uar_page, __ATOMIC_RELAXED),
			.pid = s->pid,
			.uid = s->uid,
			.attached = __atomic_load_n(&s->attached, __ATOMIC_RELAXED),
			.requests = __atomic_load_n(&s->requests, __ATOMIC_RELAXED),
		};
		if (sleep != NULL)
			out[n].muted = sleep->muted(sleep->arg, out[n].uar_page);
	}
	pthread_mutex_unlock(&server->lock);
	return n;
}

void
ipc_server_clean_ups(struct ipc_server *server, struct ipc_clean_ups *out)
{
	pthread_mutex_lock(&server->lock);
	*out = server->clean_ups;
	pthread_mutex_unlock(&server->lock);
}
