/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The operations of a context as messages to the daemon, one request at a time per context. A
 * forked process must not use its parent's channel: calls are refused and nothing is sent.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "abi_bar.h"
#include "abi_release.h"
#include "ipc_client.h"
#include "ipc_connect.h"
#include "ipc_msg.h"
#include "lib_ctl.h"
#include "lib_error.h"
#include "lib_sys.h"

#define SLEEP_PAGE 4096u
#define LOOK_MS 200 /* interval of looks at the daemon */
/* a daemon that was idle so long is not waited for at the begin and the end of a context */
#define IDLE_MS (IPC_GREETING_SECONDS * 1000u)

struct ipc_channel {
	int sock;
	pid_t pid;    /* of the process that opened it */
	pid_t daemon; /* 0: in another PID namespace */
	pthread_mutex_t lock;
	uint64_t seq;
	uint32_t minor;	   /* of the daemon: it decides which operations and members there are */
	uint32_t features; /* in force */
	bool broken;	   /* the daemon is gone, or sends invalid replies */
	void *uar;
	const uint8_t *sleep_page;
	uint32_t sleep_offset;		/* of pipeline 0 */
	int kick_fd[HCA_UAR_PIPES_MAX]; /* -1: none */
	char name[32];
};

static _Thread_local char reason[sizeof(((struct ipc_reply *)NULL)->reason)] = "no error";

static int
fail(int err, const char *why)
{
	snprintf(reason, sizeof(reason), "%s", why);
	return err;
}

static int
gone(struct ipc_channel *c)
{
	__atomic_store_n(&c->broken, true, __ATOMIC_RELEASE);
	return fail(-EIO, "the daemon is gone: start it, and open the device again");
}

/* ---- one call ---- */

/* An answer of minor version 0 has its size; later ones may have more members, or fewer. */
static bool
length_fits(const struct ipc_channel *c, enum hca_ctl_op op, uint32_t len)
{
	return (c->minor != 0 && op != HCA_CTL_HELLO) || len == hca_ctl_sizes(op, 0).answer;
}

static bool
reply_fits(const struct ipc_channel *c, enum hca_ctl_op op, const struct ipc_reply *head,
	   size_t got, unsigned int num_fds)
{
	const struct hca_ctl_shape *shape = hca_ctl_shape(op);

	if (got < sizeof(*head) || head->op != op || head->seq != c->seq ||
	    head->len != got - sizeof(*head) || head->err > 0)
		return false;
	/* a full daemon refuses a greeting before it reads its version */
	if (head->version != HCA_CTL_VERSION && (op != HCA_CTL_HELLO || head->err == 0))
		return false;
	if (head->err != 0)
		return head->len == 0 && num_fds == 0;
	return length_fits(c, op, head->len) && num_fds == shape->fds_out;
}

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Whether a process was stopped by a signal or a debugger; false if that is not known. */
static bool
is_stopped(pid_t pid)
{
	char path[32], text[256] = "", *state;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	state = strrchr(text, ')'); /* the name before it may contain anything */
	return state != NULL && (state[1] == ' ') && (state[2] == 'T' || state[2] == 't');
}

/* Whether the daemon has not read the request; false if unknown. */
static bool
is_unread(int sock)
{
	int bytes = 0;

	return ioctl(sock, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

/*
 * Whether the daemon has stopped working on the reply. A greeting that it has read may wait for its
 * turn and for other commands; only memory depends on the answer at the end of a context
 * (lib_share_abandon()).
 */
static bool
is_idle(const struct ipc_channel *c, enum hca_ctl_op op)
{
	if (op == HCA_CTL_HELLO)
		return is_unread(c->sock) || is_stopped(c->daemon);
	return op == HCA_CTL_CLOSE && is_stopped(c->daemon);
}

/* Wait for a reply, however many signals come meanwhile. */
static bool
reply_comes(const struct ipc_channel *c, enum hca_ctl_op op)
{
	struct pollfd p = {.fd = c->sock, .events = POLLIN};
	uint64_t start = now_ms(), busy = start, now = start;

	while (now - start < IPC_REPLY_SECONDS * 1000 && now - busy < IDLE_MS) {
		if (poll(&p, 1, LOOK_MS) > 0)
			return true;
		now = now_ms();
		if (!is_idle(c, op))
			busy = now;
	}
	return false;
}

/* The daemon has not answered the greeting; its number is 0 in another PID namespace. */
static int
unanswered(const struct ipc_channel *c, const char *why, unsigned int seconds)
{
	char text[sizeof(reason)], number[32] = "";

	if (c->daemon != 0)
		snprintf(number, sizeof(number), " %d", (int)c->daemon);
	snprintf(text, sizeof(text),
		 "the daemon does not answer: after %u seconds its process%s %s", seconds, number,
		 why);
	return fail(-ETIMEDOUT, text);
}

/* No reply has come in time. */
static int
silent(struct ipc_channel *c, enum hca_ctl_op op)
{
	int err = gone(c);

	if (op != HCA_CTL_HELLO)
		return err;
	if (is_stopped(c->daemon))
		return unanswered(c, "is stopped: resume it (kill -CONT)", IPC_GREETING_SECONDS);
	if (is_unread(c->sock))
		return unanswered(c, "has not read the greeting: it has no CPU, or hangs",
				  IPC_GREETING_SECONDS);
	return unanswered(c, "has read the greeting, and hangs", IPC_REPLY_SECONDS);
}

static int
receive_reply(struct ipc_channel *c, enum hca_ctl_op op, void *answer, struct hca_ctl_extra *extra)
{
	struct {
		struct ipc_reply head;
		uint8_t body[IPC_BODY_MAX];
	} m;
	int fds[HCA_CTL_FDS_MAX];
	unsigned int num_fds = HCA_CTL_FDS_MAX;
	ssize_t got;

	if (!reply_comes(c, op))
		return silent(c, op);
	got = ipc_receive(c->sock, &m, sizeof(m), fds, &num_fds);
	if (got <= 0) {
		ipc_close_fds(fds, num_fds);
		if (got != -EMFILE)
			return gone(c);
		/* whatever the daemon has created is destroyed with the context */
		c->seq++;
		return fail(-EMFILE, "this process may have no more open files");
	}
	if (!reply_fits(c, op, &m.head, (size_t)got, num_fds)) {
		ipc_close_fds(fds, num_fds);
		return gone(c);
	}
	c->seq++;
	if (m.head.err != 0) {
		m.head.reason[sizeof(m.head.reason) - 1] = '\0';
		return fail(m.head.err, m.head.reason);
	}
	(void)ipc_fit(m.body, m.head.len, hca_ctl_shape(op)->answer);
	if (hca_ctl_shape(op)->answer != 0)
		memcpy(answer, m.body, hca_ctl_shape(op)->answer);
	if (num_fds != 0)
		memcpy(extra->fds, fds, num_fds * sizeof(int));
	return 0;
}

/* Send a request and receive its reply; the caller holds the lock. */
static int
exchange(struct ipc_channel *c, enum hca_ctl_op op, const void *request, size_t bytes, void *answer,
	 struct hca_ctl_extra *extra)
{
	const struct ipc_request head = {
		.version = HCA_CTL_VERSION,
		.op = (uint16_t)op,
		.len = (uint32_t)bytes,
		.seq = c->seq,
	};
	int err;

	if (c->broken)
		return gone(c);
	err = ipc_send(c->sock, &head, sizeof(head), request, bytes,
		       extra != NULL ? extra->fds : NULL, hca_ctl_shape(op)->fds_in, 0);
	if (err == -EBADF && hca_ctl_shape(op)->fds_in != 0 && fcntl(c->sock, F_GETFD) >= 0)
		return fail(err, "the descriptor is not open"); /* nothing was sent */
	if (err != 0 && (err != -EPIPE || op != HCA_CTL_HELLO)) /* it may have been refused */
		return gone(c);
	return receive_reply(c, op, answer, extra);
}

static int
send_pages(struct ipc_channel *c, const uint64_t *pages, uint64_t npages)
{
	struct hca_ctl_pages m = {0};
	int err = 0;

	for (uint64_t done = 0; done < npages && err == 0; done += m.count) {
		uint64_t left = npages - done;

		m.count = left < HCA_CTL_PAGES_MAX ? (uint32_t)left : HCA_CTL_PAGES_MAX;
		memcpy(m.page, pages + done, m.count * sizeof(m.page[0]));
		err = exchange(c, HCA_CTL_PAGES, &m,
			       offsetof(struct hca_ctl_pages, page) + m.count * sizeof(m.page[0]),
			       NULL, NULL);
	}
	return err;
}

static int
lacking(const struct ipc_channel *c, const char *what, uint32_t since)
{
	char text[sizeof(reason)];

	snprintf(text, sizeof(text),
		 "the daemon speaks version %u.%u of the control channel, which has no %s (it came "
		 "with %u.%u): upgrade the daemon, and restart it",
		 HCA_CTL_VERSION, c->minor, what, HCA_CTL_VERSION, since);
	return fail(-EOPNOTSUPP, text);
}

/* The request in the daemon's version: *bytes of it, if all other members are 0. */
static int
cut_request(const struct ipc_channel *c, enum hca_ctl_op op, const void *request, size_t *bytes)
{
	const struct hca_ctl_shape *shape = hca_ctl_shape(op);
	char what[64];

	*bytes = hca_ctl_sizes(op, c->minor).request;
	if (shape->since > c->minor)
		return lacking(c, shape->name, shape->since);
	for (size_t i = *bytes; i < shape->request; i++) {
		if (((const uint8_t *)request)[i] != 0) {
			snprintf(what, sizeof(what), "more of %s", shape->name);
			return lacking(c, what, HCA_CTL_MINOR);
		}
	}
	return 0;
}

/*
 * The process is checked before the lock is taken: in a child of fork() a thread of the parent may
 * hold it. The lock is held from the first page of a list to the region that uses the list.
 */
static int
ctl_call(void *arg, enum hca_ctl_op op, const void *request, void *answer,
	 struct hca_ctl_extra *extra)
{
	struct ipc_channel *c = arg;
	size_t bytes;
	int err;

	if (c->pid != getpid())
		return fail(-EPERM, "the context belongs to the process this one was forked from");
	err = cut_request(c, op, request, &bytes);
	if (err != 0)
		return err;
	pthread_mutex_lock(&c->lock);
	if (op == HCA_CTL_REG_MR)
		err = send_pages(c, extra->pages, ((const struct hca_ctl_mr *)request)->npages);
	if (op == HCA_CTL_REREG_MR)
		err = send_pages(c, extra->pages,
				 ((const struct hca_ctl_rereg *)request)->mr.npages);
	if (err == 0)
		err = exchange(c, op, request, bytes, answer, extra);
	pthread_mutex_unlock(&c->lock);
	return err;
}

static volatile void *
ctl_uar(void *arg)
{
	return ((struct ipc_channel *)arg)->uar;
}

static uint32_t
ctl_features(void *arg)
{
	return ((const struct ipc_channel *)arg)->features;
}

static const char *
ctl_reason(void *arg)
{
	return reason;
}

static int
ctl_watch_fd(void *arg)
{
	return ((struct ipc_channel *)arg)->sock;
}

static int
check_offset(uint32_t offset)
{
	if (offset > SLEEP_PAGE - sizeof(uint32_t) || offset % sizeof(uint32_t) != 0)
		return lib_fail(-EPROTO, "the daemon's offset of its sleep words is invalid");
	return 0;
}

static int
ctl_sleep(void *arg, uint32_t pipe, const uint32_t **word, int *kick_fd)
{
	struct ipc_channel *c = arg;
	uint32_t offset = c->sleep_offset;
	struct hca_ctl_extra got;
	int err;

	if (pipe != 0) {
		err = ctl_call(c, HCA_CTL_KICK, &pipe, &offset, &got);
		if (err != 0)
			return lib_fail(err, "pipeline %u: %s", pipe, reason);
		c->kick_fd[pipe] = got.fds[0];
		err = check_offset(offset);
		if (err != 0)
			return err;
	}
	*word = (const uint32_t *)(c->sleep_page + offset);
	*kick_fd = c->kick_fd[pipe];
	return 0;
}

/* The daemon has ended the connection. */
static bool
has_hung_up(const struct ipc_channel *c)
{
	struct pollfd p = {.fd = c->sock, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static bool
ctl_alive(void *arg)
{
	struct ipc_channel *c = arg;

	return !__atomic_load_n(&c->broken, __ATOMIC_ACQUIRE) && !has_hung_up(c);
}

/* As long as a process has the socket the daemon does not see it hang up. */
static void
ctl_leave(void *arg)
{
	struct ipc_channel *c = arg;

	ipc_close_fds(c->kick_fd, HCA_UAR_PIPES_MAX);
	ipc_close_fds(&c->sock, 1);
}

static void
close_channel(struct ipc_channel *c)
{
	if (c->uar != NULL)
		lib_sys_munmap(c->uar, HCA_UAR_PAGE_SIZE);
	if (c->sleep_page != NULL)
		lib_sys_munmap((void *)(uintptr_t)c->sleep_page, SLEEP_PAGE);
	ctl_leave(c);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/*
 * After the daemon's answer, or its end, the device does not access memory of this context any
 * more.
 */
static int
ctl_close(void *arg)
{
	int err = ctl_call(arg, HCA_CTL_CLOSE, NULL, NULL, NULL);

	if (err != 0)
		err = has_hung_up(arg) ? 0 : -ETIMEDOUT;
	close_channel(arg);
	return err;
}

static const struct softhca_ctl_ops client_ops = {
	.call = ctl_call,
	.reason = ctl_reason,
	.features = ctl_features,
	.attaches = true,
	.uar = ctl_uar,
	.alive = ctl_alive,
	.watch_fd = ctl_watch_fd,
	.sleep = ctl_sleep,
	.close = ctl_close,
	.leave = ctl_leave,
};

/* ---- opening ---- */

/* Not inherited by children, which cannot use it. */
static int
map_sleep_page(struct ipc_channel *c, int fd, uint32_t offset)
{
	void *page;
	int err = check_offset(offset);

	if (err != 0)
		return err;
	page = lib_sys_mmap(NULL, SLEEP_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return lib_fail(-errno, "the sleep words: %s", strerror(errno));
	c->sleep_page = page;
	c->sleep_offset = offset;
	return 0;
}

static int
say_hello(struct ipc_channel *c, const char *path)
{
	const struct hca_ctl_hello hello = {
		.magic = IPC_MAGIC,
		.offer = {HCA_CTL_OLDER, HCA_CTL_MINOR, HCA_CTL_FEATURES},
	};
	struct hca_ctl_welcome welcome;
	struct hca_ctl_extra got;
	int err = ctl_call(c, HCA_CTL_HELLO, &hello, &welcome, &got), uar_fd, sleep_fd;

	if (err != 0)
		return lib_fail(err, "%s: %s", path, reason);
	uar_fd = got.fds[0];
	sleep_fd = got.fds[1];
	c->kick_fd[0] = got.fds[2];
	c->seq = welcome.nonce + 1;
	c->minor = welcome.offer.minor;
	c->features = welcome.offer.features & HCA_CTL_FEATURES;
	memcpy(c->name, welcome.name, sizeof(c->name) - 1);
	err = map_sleep_page(c, sleep_fd, welcome.sleep_offset);
	close(sleep_fd);
	if (err != 0) {
		close(uar_fd);
		return err;
	}
	c->uar = lib_sys_mmap(NULL, HCA_UAR_PAGE_SIZE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_POPULATE, uar_fd, 0);
	close(uar_fd);
	if (c->uar == MAP_FAILED) {
		c->uar = NULL;
		return lib_fail(-errno, "the doorbell page: %s", strerror(errno));
	}
	if (lib_sys_madvise(c->uar, HCA_UAR_PAGE_SIZE, MADV_DONTFORK) != 0)
		return lib_fail(-errno, "the doorbell page: %s", strerror(errno));
	return 0;
}

/* For the operator's list of clients; no error of its own. */
static void
tell_release(struct ipc_channel *c)
{
	const struct hca_ctl_identity me = {HCA_RELEASE};
	struct hca_ctl_identity daemon;

	if (c->minor >= hca_ctl_shape(HCA_CTL_IDENTIFY)->since)
		(void)ctl_call(c, HCA_CTL_IDENTIFY, &me, &daemon, NULL);
}

static pid_t
daemon_of(int sock)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.pid : 0;
}

int
ipc_client_open(const char *path, struct softhca_context **ctx)
{
	struct ipc_channel *c = calloc(1, sizeof(*c));
	int err;

	if (c == NULL)
		return lib_no_memory("a context", sizeof(*c));
	c->sock = -1;
	memset(c->kick_fd, -1, sizeof(c->kick_fd));
	c->pid = getpid();
	pthread_mutex_init(&c->lock, NULL);
	err = ipc_connect(path, &c->sock);
	if (err == 0)
		c->daemon = daemon_of(c->sock);
	if (err == 0)
		err = say_hello(c, path);
	if (err == -EIO && c->broken)
		err = ipc_explain_silence(path);
	if (err == 0) {
		tell_release(c);
		err = softhca_context_create(&client_ops, c, c->name, ctx);
	}
	if (err != 0)
		close_channel(c);
	return err;
}
