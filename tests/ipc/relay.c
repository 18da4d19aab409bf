/* SPDX-License-Identifier: BSD-3-Clause */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_path.h"
#include "old_ops.h"
#include "raw.h"
#include "relay.h"

#define LATER_MINOR 9u
#define LATER_FEATURE 0x8000u
#define LATER_BYTES 8u /* that answers are longer */

struct message {
	union {
		uint16_t op_of[2]; /* version, operation: of requests and replies */
		struct ipc_request request;
		struct ipc_reply reply;
		uint8_t bytes[sizeof(struct ipc_reply) + IPC_BODY_MAX];
	};
	size_t len;
	int fds[253];
	unsigned int num_fds;
};

/* ---- messages ---- */

static bool
relay_receive(int sock, struct message *m)
{
	static _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(m->fds))];
	struct iovec iov = {m->bytes, sizeof(m->bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	m->len = got > 0 ? (size_t)got : 0;
	m->num_fds = 0;
	if (c != NULL && c->cmsg_type == SCM_RIGHTS) {
		m->num_fds = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(m->fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	}
	return got > 0;
}

static bool
relay_send(int sock, struct message *m)
{
	struct raw r = {.sock = sock};
	int err = raw_packet(&r, m->bytes, m->len, m->fds, m->num_fds);

	for (unsigned int i = 0; i < m->num_fds; i++)
		close(m->fds[i]);
	return err == 0;
}

static bool
relay_wrong(struct relay_seen *seen, const char *what, uint32_t op, size_t len)
{
	if (seen->wrong[0] == '\0')
		snprintf(seen->wrong, sizeof(seen->wrong), "%s of operation %u has %zu bytes", what,
			 op, len);
	return false;
}

/* ---- as version 7.0 ---- */

static bool
old_request(struct relay_seen *seen, struct message *m)
{
	uint32_t op = m->request.op;
	size_t len = m->len - sizeof(m->request);
	struct hca_ctl_hello *hello = (void *)(m->bytes + sizeof(m->request));

	if (m->request.version != OLD_VERSION || op >= OLD_OPS ||
	    m->num_fds != old_ops[op].fds_in || (len != old_ops[op].request && op != OLD_PAGES))
		return relay_wrong(seen, "request", op, len);
	if (op == HCA_CTL_HELLO) /* the library of 7.0 sends 0, the daemon does not look */
		memset(&hello->offer, 0, sizeof(hello->offer));
	return true;
}

static bool
old_reply(struct relay_seen *seen, struct message *m)
{
	uint32_t op = m->reply.op;
	size_t len = m->len - sizeof(m->reply);
	struct hca_ctl_welcome *welcome = (void *)(m->bytes + sizeof(m->reply));

	if (m->reply.version != OLD_VERSION || op >= OLD_OPS)
		return relay_wrong(seen, "answer", op, len);
	if (m->reply.err != 0)
		return len == 0 && m->num_fds == 0 ? true : relay_wrong(seen, "error", op, len);
	if (len != old_ops[op].answer || m->num_fds != old_ops[op].fds_out)
		return relay_wrong(seen, "answer", op, len);
	if (op == HCA_CTL_HELLO)
		memset(&welcome->offer, 0, sizeof(welcome->offer));
	return true;
}

/* ---- as a later release ---- */

static bool
later_reply(struct relay_seen *seen, struct message *m)
{
	struct hca_ctl_welcome *welcome = (void *)(m->bytes + sizeof(m->reply));

	if (m->reply.err != 0)
		return true;
	if (m->reply.op == HCA_CTL_HELLO) {
		welcome->offer.minor = LATER_MINOR;
		welcome->offer.features |= LATER_FEATURE;
	} else if (m->reply.op == HCA_CTL_QUERY_PORT) {
		m->len -= sizeof(((struct hca_ctl_port *)NULL)->reserved);
		m->reply.len -= sizeof(((struct hca_ctl_port *)NULL)->reserved);
	} else {
		memset(m->bytes + m->len, 0xff, LATER_BYTES);
		m->len += LATER_BYTES;
		m->reply.len += LATER_BYTES;
	}
	return true;
}

static bool
later_request(struct relay_seen *seen, struct message *m)
{
	return true;
}

static const struct {
	bool (*request)(struct relay_seen *seen, struct message *m);
	bool (*reply)(struct relay_seen *seen, struct message *m);
} manners[] = {
	[RELAY_OLD] = {old_request, old_reply},
	[RELAY_LATER] = {later_request, later_reply},
};

/* ---- the process ---- */

static void
serve(int client, int daemon, struct relay_seen *seen, enum relay_as as)
{
	struct pollfd fds[] = {{.fd = client, .events = POLLIN}, {.fd = daemon, .events = POLLIN}};
	static struct message m;

	while (poll(fds, 2, -1) >= 0) {
		bool from_client = fds[0].revents != 0;

		if (!relay_receive(from_client ? client : daemon, &m))
			return;
		__atomic_fetch_add(from_client ? &seen->requests : &seen->answers, 1,
				   __ATOMIC_RELAXED);
		if (!(from_client ? manners[as].request : manners[as].reply)(seen, &m) ||
		    !relay_send(from_client ? daemon : client, &m))
			return;
	}
}

static void
listen_for(int listener, const char *to, struct relay_seen *seen, enum relay_as as)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int client = accept(listener, NULL, NULL);
		struct raw r;

		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			raw_connect(&r, to);
			serve(client, r.sock, seen, as);
			_exit(0);
		}
		close(client);
	}
}

void
relay_start(struct relay *relay, const char *to, enum relay_as as)
{
	char folder[TEST_PATH_MAX];
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_non_null(mkdtemp(test_path(folder, "ipc-relay")));
	relay->addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(relay->addr.sun_path, sizeof(relay->addr.sun_path), "%s/x.sock", folder);
	relay->seen = mmap(NULL, sizeof(*relay->seen), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(relay->seen, MAP_FAILED);
	assert_int_equal(bind(listener, (struct sockaddr *)&relay->addr, sizeof(relay->addr)), 0);
	assert_int_equal(listen(listener, 16), 0);
	relay->pid = fork();
	assert_true(relay->pid >= 0);
	if (relay->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		listen_for(listener, to, relay->seen, as);
	}
	close(listener);
}

void
relay_stop(struct relay *relay)
{
	assert_int_equal(kill(relay->pid, SIGKILL), 0);
	assert_int_equal(waitpid(relay->pid, NULL, 0), relay->pid);
	munmap(relay->seen, sizeof(*relay->seen));
	unlink(relay->addr.sun_path);
	*strrchr(relay->addr.sun_path, '/') = '\0';
	rmdir(relay->addr.sun_path);
}
