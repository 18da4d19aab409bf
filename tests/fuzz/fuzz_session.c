/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The session layer: a server with its socket, its threads and the closer of descriptors, and two
 * clients driven by the input. They send messages, parts of messages and too many bytes, with
 * descriptors of every kind, read replies or not, and disconnect at any point. Afterwards all
 * sessions have ended, and none of their objects is left.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc_closer.h"
#include "ipc_msg.h"
#include "ipc_server_impl.h"
#include "world.h"

#define CLIENTS 2
#define STEPS_MAX 48u
#define FILE_BYTES (64u << 10)
#define REPLY_MS 20000
#define PEERS_MAX 64u

/* Step byte: bits [2:0]: the action; bit 7: the second client. */
enum act {
	ACT_REQUEST,  /* with a correct header */
	ACT_REQUEST2, /* the same, to make it more likely */
	ACT_ODD_HEAD, /* with a header from the input */
	ACT_PART,     /* shorter than its header says */
	ACT_BYTES,    /* any bytes, or none */
	ACT_REPLY,    /* read a reply, if there is one */
	ACT_CLOSE,
	ACT_OPEN, /* connect and send the greeting */
};

struct client {
	int sock;
	uint64_t seq;
	bool greeted;
};

static struct ipc_server *server;
static char path[100];
static int peers[PEERS_MAX]; /* peers of sockets that linger */
static unsigned int num_peers;

/* ---- the server ---- */

static void
remove_socket(void)
{
	ipc_server_destroy(server);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

static void
start(struct hca_driver *drv)
{
	struct ipc_server_config c = {
		.path = path,
		.name = "fuzz",
		.driver = drv,
		.memory_max = 16u << 20,
		.segments_max = 64,
		.slow_memory = true,
		.send_ms = 100,
		.hello_ms = 100,
	};

	if (server != NULL)
		return;
	snprintf(path, sizeof(path), "%s/softhca-fuzz-%d/s.sock",
		 getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", (int)getpid());
	fuzz_check(ipc_server_create(&c, &server) == 0, "%s", ipc_server_reason());
	atexit(remove_socket);
}

/* Wait until all threads of clients have ended. */
static void
wait_empty(void)
{
	for (int ms = 0;; ms++) {
		uint32_t left;

		pthread_mutex_lock(&server->lock);
		left = server->num_sessions;
		pthread_mutex_unlock(&server->lock);
		if (left == 0)
			return;
		fuzz_check(ms < REPLY_MS, "%u sessions do not end", left);
		poll(NULL, 0, 1);
	}
}

/*
 * Wait until every thread that closes has returned: late if the CPUs are busy, never if it is lost.
 */
static void
wait_closed(void)
{
	for (int ms = 0; ipc_closer_owed(server->closer, getuid()) != 0; ms++) {
		fuzz_check(ms < REPLY_MS, "a thread that closes is lost");
		poll(NULL, 0, 1);
	}
}

/* ---- descriptors ---- */

/* A socket whose close() blocks, because its unsent data is never read. */
static int
lingering(void)
{
	const struct linger on = {1, 30};
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	static const uint8_t bytes[65536];
	socklen_t len = sizeof(addr);
	int l, s;

	if (num_peers == PEERS_MAX)
		return eventfd(0, 0);
	l = socket(AF_INET, SOCK_STREAM, 0);
	s = socket(AF_INET, SOCK_STREAM, 0);
	fuzz_check(bind(l, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(l, 1) == 0 &&
			   getsockname(l, (struct sockaddr *)&addr, &len) == 0 &&
			   connect(s, (struct sockaddr *)&addr, sizeof(addr)) == 0,
		   "no TCP on loopback: %s", strerror(errno));
	peers[num_peers++] = accept(l, NULL, NULL);
	close(l);
	while (send(s, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	setsockopt(s, SOL_SOCKET, SO_LINGER, &on, sizeof(on));
	return s;
}

static int
memory_file(bool filled, int seals)
{
	int fd = memfd_create("fuzz", MFD_ALLOW_SEALING);

	fuzz_check(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0, "memfd");
	for (unsigned int at = 0; filled && at < FILE_BYTES; at += 4096)
		fuzz_check(pwrite(fd, "x", 1, at) == 1, "memfd");
	fcntl(fd, F_ADD_SEALS, seals);
	return fd;
}

/* One end of a pipe whose other end is closed. */
static int
half_pipe(void)
{
	int fds[2];

	fuzz_check(pipe(fds) == 0, "pipe");
	close(fds[0]);
	return fds[1];
}

/* A socket with another one in its queue that lingers */
static int
nested(void)
{
	const int inner = lingering();
	int pair[2];

	fuzz_check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0, "socketpair");
	ipc_send(pair[0], "x", 1, NULL, 0, &inner, 1, MSG_DONTWAIT);
	ipc_closer_give(server->closer, inner, 0);
	close(pair[0]);
	return pair[1];
}

static int
make_fd(uint8_t kind)
{
	switch (kind % 16) {
	case 0:
	case 1:
	case 2:
		return memory_file(true, F_SEAL_SHRINK);
	case 3:
		return memory_file(false, F_SEAL_SHRINK);
	case 4:
		return memory_file(true, 0);
	case 5:
		return memory_file(true, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE);
	case 6:
		return half_pipe();
	case 7:
		return eventfd(0, 0);
	case 8:
		return open("/dev/null", O_RDWR);
	case 9:
		return open("/tmp", O_RDONLY | O_DIRECTORY);
	case 10:
		return open("/proc/self/mem", O_PATH);
	case 11:
		return epoll_create1(0);
	case 12:
		return lingering();
	case 13:
		return nested();
	case 14:
		return open("/proc/self/maps", O_RDONLY);
	default:
		return open("/proc/self/mem", O_RDWR);
	}
}

/* ---- clients ---- */

static void
say(struct client *c, const void *bytes, size_t len, int *fds, unsigned int num_fds)
{
	if (c->sock >= 0)
		ipc_send(c->sock, bytes, len, NULL, 0, fds, num_fds, MSG_DONTWAIT);
	for (unsigned int i = 0; i < num_fds; i++)
		/* it may be the last descriptor of a socket */
		ipc_closer_give(server->closer, fds[i], 0);
}

/* The fuzzer's own alarm interrupts poll(). */
static bool
has_reply(int sock, int ms)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, ms);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* Wait for a reply if one is due. */
static void
take_reply(struct client *c, int ms)
{
	static struct {
		struct ipc_reply head;
		union {
			uint8_t body[IPC_BODY_MAX];
			struct hca_ctl_welcome welcome;
		};
	} m;
	int fds[IPC_FDS_PER_MESSAGE];
	unsigned int num_fds = IPC_FDS_PER_MESSAGE;
	ssize_t got;

	if (c->sock < 0)
		return;
	if (!has_reply(c->sock, ms)) {
		fuzz_check(ms == 0, "neither an answer nor an end");
		return;
	}
	got = ipc_receive(c->sock, &m, sizeof(m), fds, &num_fds);
	ipc_close_fds(fds, num_fds);
	if (got <= 0)
		return;
	fuzz_check(got >= (ssize_t)sizeof(m.head) && m.head.err <= 0 &&
			   m.head.len == (size_t)got - sizeof(m.head),
		   "a reply of %zd bytes", got);
	fuzz_check(m.head.err == 0 || num_fds == 0, "a refusal with descriptors");
	if (m.head.op == HCA_CTL_HELLO && m.head.err == 0 && !c->greeted) {
		c->greeted = true;
		c->seq = m.welcome.nonce + 1;
	}
}

static void
greet(struct client *c)
{
	const struct {
		struct ipc_request head;
		struct hca_ctl_hello hello;
	} m = {{HCA_CTL_VERSION, HCA_CTL_HELLO, sizeof(struct hca_ctl_hello), 0},
	       {IPC_MAGIC, {HCA_CTL_OLDER, HCA_CTL_MINOR, HCA_CTL_FEATURES}}};

	say(c, &m, sizeof(m), NULL, 0);
	take_reply(c, REPLY_MS);
}

static void
close_client(struct client *c)
{
	if (c->sock >= 0)
		close(c->sock);
	*c = (struct client){.sock = -1};
}

static void
open_client(struct client *c, bool greets)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	close_client(c);
	strcpy(addr.sun_path, path);
	c->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	fuzz_check(connect(c->sock, (struct sockaddr *)&addr, sizeof(addr)) == 0, "connect: %s",
		   strerror(errno));
	if (greets)
		greet(c);
}

/* A message from the input: [op, descriptors, number of bytes from the input, bytes] */
static void
message(struct fuzz_input *in, struct client *c, enum act act)
{
	static struct {
		struct ipc_request head;
		uint8_t body[IPC_BODY_MAX + 256];
	} m;
	uint16_t op = fuzz_u8(in) % (HCA_CTL_OP_COUNT + 2);
	uint8_t shape = fuzz_u8(in);
	const struct hca_ctl_shape *row = hca_ctl_shape(op);
	uint32_t len = row != NULL && op != HCA_CTL_PAGES ? row->request : 8 + (shape & 15u) * 8;
	unsigned int num_fds = row != NULL ? row->fds_in : 1;
	int fds[HCA_CTL_FDS_MAX];
	const uint8_t *p;
	size_t n;

	if ((shape & 0xe0) == 0xe0)
		num_fds = shape & 1u ? HCA_CTL_FDS_MAX : 0;
	for (unsigned int i = 0; i < num_fds; i++)
		fds[i] = make_fd(fuzz_u8(in));
	memset(&m, 0, sizeof(m.head) + len);
	m.head = (struct ipc_request){HCA_CTL_VERSION, op, len, c->seq};
	p = fuzz_bytes(in, fuzz_u8(in), &n);
	memcpy(m.body, p, n < len ? n : len);
	if (op == HCA_CTL_PAGES)
		((struct hca_ctl_pages *)m.body)->count = shape & 15u;
	if (act == ACT_ODD_HEAD)
		memcpy(&m.head, p, n < sizeof(m.head) ? n : sizeof(m.head));
	n = sizeof(m.head) + len;
	if (act == ACT_PART)
		n = n * (shape & 31u) / 32;
	say(c, &m, n, fds, num_fds);
	if (act == ACT_REQUEST || act == ACT_REQUEST2) {
		c->seq++;
		if (!(shape & 0x10))
			take_reply(c, REPLY_MS);
	}
}

static void
step(struct fuzz_input *in, struct client *clients)
{
	uint8_t what = fuzz_u8(in);
	struct client *c = &clients[what >> 7];
	const uint8_t *p;
	size_t n;

	switch (what & 7u) {
	case ACT_BYTES:
		p = fuzz_bytes(in, fuzz_u8(in), &n);
		say(c, p, n, NULL, 0);
		break;
	case ACT_REPLY:
		take_reply(c, 0);
		break;
	case ACT_CLOSE:
		close_client(c);
		break;
	case ACT_OPEN:
		open_client(c, !(what & 0x40));
		break;
	default:
		message(in, c, (enum act)(what & 7u));
	}
}

static bool
same_usage(const struct hca_driver_usage *a, const struct hca_driver_usage *b)
{
	return a->clients == b->clients && a->pds == b->pds && a->mrs == b->mrs &&
	       a->cqs == b->cqs && a->qps == b->qps && a->channels == b->channels &&
	       a->mtts == b->mtts && a->srqs == b->srqs && a->xrcds == b->xrcds;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	struct client clients[CLIENTS] = {{.sock = -1}, {.sock = -1}};
	struct world *w = world_begin();
	struct hca_driver_usage before, after;

	start(w->drv);
	hca_driver_usage(w->drv, &before);
	open_client(&clients[0], true);
	for (unsigned int i = 0; i < STEPS_MAX && in.p < in.end; i++)
		step(&in, clients);
	for (int i = 0; i < CLIENTS; i++)
		close_client(&clients[i]);
	wait_empty();
	while (num_peers > 0)
		close(peers[--num_peers]);
	hca_driver_usage(w->drv, &after);
	fuzz_check(same_usage(&before, &after), "something of a client is left");
	wait_closed();
	world_end(w);
	return 0;
}
