/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Clients that send objects which could make the daemon wait: descriptors that are slow to close,
 * memory whose pages come and go. Later clients attach at once, and the daemon ends when it is told
 * to.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_path.h"
#include "abi_bar.h"
#include "ipc_rig.h"
#include "raw.h"

/* A daemon that waits for these sockets does not end in time. */
#define LINGER_S (4 * RIG_TIMEOUT_S)

static struct rig rig;

static int
start(void **state)
{
	static const char *const extra[] = {"12", "6", "256", NULL};

	rig_start(&rig, extra);
	return 0;
}

/* Must end in time; a hang fails the test. */
static int
shut_down(void **state)
{
	assert_int_equal(write(rig.to, "quit\n", 5), 5);
	for (int ms = 0; ms < RIG_TIMEOUT_MS; ms += 10) {
		int status;

		if (waitpid(rig.pid, &status, WNOHANG) == rig.pid) {
			rig_forget(&rig);
			assert_true(WIFEXITED(status));
			assert_int_equal(WEXITSTATUS(status), 0);
			return 0;
		}
		usleep(10000);
	}
	rig_kill(&rig);
	fail_msg("the daemon does not end");
	return -1;
}

/* ---- sockets that linger ---- */

struct linger_pair {
	int full; /* a socket whose close() blocks, because its peer receives nothing */
	int peer;
};

static void
make_linger(struct linger_pair *p)
{
	const struct linger on = {1, LINGER_S};
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	static const uint8_t bytes[65536];
	socklen_t len = sizeof(addr);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(l, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&addr, &len), 0);
	p->full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(p->full, (struct sockaddr *)&addr, sizeof(addr)), 0);
	p->peer = accept(l, NULL, NULL);
	assert_true(p->peer >= 0);
	close(l);
	while (send(p->full, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(p->full, SOL_SOCKET, SO_LINGER, &on, sizeof(on)), 0);
}

/*
 * A process that sends these packets, from the second on with the socket as descriptor, and exits:
 * its own end must not linger, as this process would if it held the last descriptor. Returns the
 * peer.
 */
static int
attack(const char *path, unsigned int packets, bool nested)
{
	struct linger_pair p;
	int go[2], sent;
	pid_t pid;

	make_linger(&p);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct raw r, inner = {0};
		int pair[2] = {-1, -1};

		close(go[1]);
		if (read(go[0], &sent, 1) != 0)
			_exit(1);
		if (nested) {
			if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
				_exit(1);
			inner.sock = pair[0];
			raw_packet(&inner, "?", 1, &p.full, 1);
		}
		raw_connect(&r, path);
		for (unsigned int i = 0; i < packets; i++)
			raw_packet(&r, "?", 1, nested ? &pair[1] : &p.full, i != 0 || packets == 1);
		_exit(0);
	}
	close(p.full);
	close(go[0]);
	close(go[1]);
	rig_join(pid);
	return p.peer;
}

/* Clients that are being closed still count: retry until the new one is admitted. */
static void
open_soon(struct raw *r)
{
	for (int i = 0; i < RIG_TIMEOUT_MS; i++) {
		raw_connect(r, rig.path[0]);
		if (raw_greet(r) == 0)
			return;
		raw_close(r);
		usleep(1000);
	}
	fail_msg("the daemon admits no client any more");
}

static void
others_attach(void)
{
	struct raw r;

	for (int i = 0; i < 4; i++) {
		open_soon(&r);
		assert_int_equal(raw_call(&r, HCA_CTL_ALLOC_PD, NULL, 0, -1), 0);
		raw_close(&r);
	}
}

/* In a request that is refused; the client itself stays connected. */
static void
linger_refused(void **state)
{
	const struct hca_ctl_segment segment = {0x10000000, 4096, 0, 0, 0};
	struct linger_pair p;
	struct raw r;

	raw_open(&r, rig.path[0]);
	make_linger(&p);
	/* queued after a request that takes longer than close() does here */
	rig_suspend(&rig);
	assert_int_equal(raw_request(&r, HCA_CTL_ATTACH, &segment, sizeof(segment), p.full), 0);
	close(p.full);
	kill(rig.pid, SIGCONT);
	assert_int_equal(raw_reply(&r, RIG_TIMEOUT_MS), 1);
	assert_int_equal(r.head.err, -EBADF);
	assert_int_equal(raw_call(&r, HCA_CTL_ALLOC_PD, NULL, 0, -1), 0);
	others_attach();
	raw_close(&r);
	close(p.peer);
}

/*
 * In messages that end the session, that are never read, and that arrive where none is expected.
 */
static void
linger_queued(void **state)
{
	int peer[12];

	for (unsigned int i = 0; i < 12; i++)
		peer[i] = attack(rig.path[0], i % 4 + 1, i >= 8);
	others_attach();
	assert_int_equal(rig_ask(&rig, "counters", 0, "closes_lost"), 0);
	for (int i = 0; i < 12; i++)
		close(peer[i]);
}

/* In a connection that is not admitted, because the user has its maximum of clients. */
static void
linger_not_admitted(void **state)
{
	struct raw r[6];
	int peer[4];

	for (int i = 0; i < 6; i++)
		open_soon(&r[i]);
	for (int i = 0; i < 4; i++)
		peer[i] = attack(rig.path[0], 1, false);
	for (int i = 0; i < 6; i++)
		raw_close(&r[i]);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	others_attach();
	for (int i = 0; i < 4; i++)
		close(peer[i]);
}

/* While the daemon ends: with connected clients, in the backlog, and during the handshake. */
static void
linger_at_the_end(void **state)
{
	rig_suspend(&rig);
	for (unsigned int i = 0; i < 6; i++)
		attack(rig.path[i % 2], 3, i % 3 == 0); /* the peers stay open */
	kill(rig.pid, SIGCONT);
}

/* ---- memory that comes and goes ---- */

#define VA UINT64_C(0x10000000)
#define MIB UINT64_C(0x100000)

/* A file that may be attached, with all its pages */
static int
full_file(uint64_t bytes)
{
	int fd = memfd_create("full", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	for (uint64_t at = 0; at < bytes; at += 4096)
		assert_int_equal(pwrite(fd, "", 1, (off_t)at), 1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static int
reg(struct raw *r, uint32_t pdn, uint64_t va, uint64_t length)
{
	const struct hca_ctl_mr mr = {.va = va, .length = length, .pdn = pdn, .access = 7};

	return raw_call(r, HCA_CTL_REG_MR, &mr, sizeof(mr), -1);
}

static int64_t
counted(const char *name)
{
	return rig_ask(&rig, "counters", 0, name);
}

/* Allocated blocks of a file, which show whether a page was allocated. */
static int64_t
blocks(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_blocks;
}

/* The client must allocate its pages; the daemon allocates none and names the hole. */
static void
holes(void **state)
{
	const uint64_t sizes[] = {MIB, 16 * MIB};
	int64_t before = counted("refused_request");

	for (int i = 0; i < 2; i++) {
		int fd = memfd_create("holes", MFD_ALLOW_SEALING | MFD_CLOEXEC);
		uint32_t pdn;
		struct raw r;

		assert_int_equal(ftruncate(fd, (off_t)sizes[i]), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
		open_soon(&r);
		assert_int_equal(raw_call(&r, HCA_CTL_ALLOC_PD, NULL, 0, -1), 0);
		pdn = r.number;
		assert_int_equal(raw_attach(&r, fd, VA, MIB, 0), -EFAULT);
		assert_non_null(strstr(r.head.reason, "has holes"));
		assert_int_equal(reg(&r, pdn, VA, MIB), -EPERM);
		assert_int_equal(blocks(fd), 0);
		raw_close(&r);
		close(fd);
	}
	assert_int_equal(counted("refused_request") - before, 2);
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
}

/* No holes can be punched into a large file that the library has made. */
static void
punched_large(void **state)
{
	struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	const uint64_t bytes = 8 * MIB;
	uint8_t *mem = softhca_alloc(bytes);
	struct softhca_wc wc;
	struct peer p, q;

	assert_non_null(mem);
	assert_int_equal(peer_open(&q, rig.path[1], &cfg), 0);
	cfg.buf = mem;
	assert_int_equal(peer_open(&p, rig.path[0], &cfg), 0);
	assert_int_equal(peer_connect_pair(&p, &q), 0);
	for (uint64_t i = 0; i < 20; i++) {
		memset(mem, (int)i + 1, 65536);
		assert_int_not_equal(madvise(mem, bytes, MADV_REMOVE), 0);
		assert_int_equal(peer_post(&p, SOFTHCA_WR_RDMA_WRITE, i, 0, 65536, 0), 0);
		assert_int_equal(peer_wait(&p, &wc, RIG_TIMEOUT_S), 0);
		assert_int_equal(q.buf[0], i + 1);
	}
	peer_close(&p);
	peer_close(&q);
	assert_int_equal(softhca_free(mem), 0);
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
}

/*
 * A client that punches a hole in its file is ended when the device has accessed the hole and
 * the thread of the session has had a CPU.
 */
static int
puncher(int sock, void *arg)
{
	uint64_t give_up = rig_now_ns() + RIG_TIMEOUT_S * UINT64_C(1000000000);
	struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	uint64_t bytes = *(const uint64_t *)arg;
	int fd = full_file(bytes), err;
	uint8_t *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct softhca_wc wc;
	struct peer p, q;

	err = peer_open(&q, rig.path[1], &cfg);
	cfg.buf = mem;
	if (err == 0)
		err = peer_open(&p, rig.path[0], &cfg);
	if (err == 0)
		err = peer_connect_pair(&p, &q);
	while (err == 0 && rig_now_ns() < give_up) {
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) != 0)
			return -1;
		err = peer_post(&p, SOFTHCA_WR_RDMA_WRITE, 1, 0, 65536, 0);
		if (err == 0)
			err = peer_wait(&p, &wc, RIG_TIMEOUT_S);
	}
	while (err > 0) /* its QP ends with the session, and may flush before the end is seen */
		err = peer_wait(&p, &wc, RIG_TIMEOUT_S);
	if (err != -EIO)
		fprintf(stderr, "puncher: %d\n", err);
	return err == -EIO ? 0 : -1;
}

static void
punched(void **state)
{
	int64_t before = counted("ended_segment_lost");

	for (int i = 0; i < 4; i++) {
		uint64_t bytes = i % 2 == 0 ? MIB : 8 * MIB;
		int sock;
		pid_t pid = rig_fork(puncher, &bytes, &sock);

		rig_join(pid);
		close(sock);
	}
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
	assert_int_equal(counted("ended_segment_lost") - before, 4);
}

/* The same with the doorbell page, which the device reads all the time. */
static void
punched_doorbell(void **state)
{
	int64_t before = counted("ended_segment_lost");

	for (int i = 0; i < 4; i++) {
		struct raw r;

		open_soon(&r);
		assert_int_equal(fallocate(r.uar_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					   HCA_UAR_PAGE_SIZE),
				 0);
		assert_int_equal(raw_reply(&r, RIG_TIMEOUT_MS), 0);
		raw_close(&r);
	}
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
	assert_int_equal(counted("ended_segment_lost") - before, 4);
}

/* ---- limits ---- */

/*
 * A daemon without free descriptors refuses clients and requests with descriptors, and serves again
 * when some are free.
 */
static void
no_descriptors(void **state)
{
	const struct hca_ctl_hello hello = {.magic = IPC_MAGIC};
	struct rlimit old, low;
	struct raw r[5], more;
	int refused = 0, file = full_file(MIB), n = rig_open_files(rig.pid);
	int64_t ended = counted("ended_protocol"), resources;

	open_soon(&more);
	assert_int_equal(prlimit(rig.pid, RLIMIT_NOFILE, NULL, &old), 0);
	low = (struct rlimit){(rlim_t)n + 10, old.rlim_max};
	assert_int_equal(prlimit(rig.pid, RLIMIT_NOFILE, &low, NULL), 0);
	for (int i = 0; i < 5; i++) {
		raw_connect(&r[i], rig.path[0]);
		raw_request(&r[i], HCA_CTL_HELLO, &hello, sizeof(hello), -1);
		if (raw_reply(&r[i], 1000) == 1 && r[i].head.err == 0) {
			r[i].uar_fd = r[i].fds[0];
			r[i].sleep_fd = r[i].fds[1];
		} else {
			refused++;
		}
	}
	assert_true(refused > 0);
	low.rlim_cur = 3; /* for certain */
	resources = counted("refused_resources");
	assert_int_equal(prlimit(rig.pid, RLIMIT_NOFILE, &low, NULL), 0);
	assert_int_equal(raw_attach(&more, file, VA, MIB, 0), -EMFILE);
	assert_non_null(strstr(more.head.reason, "the daemon has no free descriptors"));
	assert_int_equal(raw_call(&more, HCA_CTL_ALLOC_PD, NULL, 0, -1), 0);
	for (int i = 0; i < 5; i++)
		raw_close(&r[i]);
	assert_int_equal(prlimit(rig.pid, RLIMIT_NOFILE, &old, NULL), 0);
	/* clients that waited in the backlog may be refused meanwhile */
	assert_true(counted("refused_resources") > resources);
	assert_int_equal(counted("ended_protocol"), ended);
	assert_int_equal(raw_attach(&more, file, VA, MIB, 0), 0);
	raw_close(&more);
	others_attach();
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	close(file);
}

/* Clients of a user share a limit: the client that exceeds it is told the limit and its key. */
static void
memory_of_a_user(void **state)
{
	static const char *const each[] = {"0", "0", "1", NULL}; /* MiB; 4 MiB per user */
	int file = full_file(MIB);
	uint32_t first = 0;
	struct raw r[5];
	struct rig own;

	rig_start(&own, each);
	for (int i = 0; i < 5; i++) {
		raw_open(&r[i], own.path[0]);
		assert_int_equal(raw_attach(&r[i], file, VA, MIB, 0), i < 4 ? 0 : -ENOMEM);
		if (i == 0)
			first = r[i].number;
	}
	assert_non_null(strstr(r[4].head.reason, "4 MiB ([quota] user_memory_mb)"));
	assert_int_equal(rig_ask(&own, "counters", 0, "refused_memory_per_uid"), 1);
	/* Memory that one client detaches is available to the next. */
	assert_int_equal(raw_call(&r[0], HCA_CTL_DETACH, &first, sizeof(first), -1), 0);
	assert_int_equal(raw_attach(&r[4], file, VA, MIB, 0), 0);
	assert_int_equal(raw_attach(&r[0], file, VA, MIB, 0), -ENOMEM);
	raw_close(&r[4]);
	while (rig_ask(&own, "usage", 0, "clients") != 4)
		usleep(1000);
	while (raw_attach(&r[0], file, VA, MIB, 0) == -ENOMEM)
		usleep(1000);
	assert_int_equal(r[0].head.err, 0);
	for (int i = 0; i < 4; i++)
		raw_close(&r[i]);
	assert_true(rig_wait_empty(&own, 0) >= 0);
	rig_stop(&own);
	close(file);
}

/*
 * A client stopped during requests, replies and attaching memory: others are not affected, and it
 * can be killed. For a longer test by hand: STOPPED_SECONDS=60.
 */
static void
stopped_client(void **state)
{
	const char *env = getenv("STOPPED_SECONDS");
	uint64_t end = rig_now_ns() + (env != NULL ? (uint64_t)atoi(env) * 1000000000u : 0);
	int pipes[2], turns = 0;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct hca_ctl_count all = {.of = HCA_CTL_COUNTERS_DEVICE, .max = 1000};
		struct raw r;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_soon(&r);
		raw_attach(&r, full_file(MIB), VA, MIB, 0);
		for (int i = 0; i < 3; i++, r.seq++)
			raw_request(&r, HCA_CTL_QUERY_COUNTERS, &all, sizeof(all), -1);
		if (write(pipes[1], "x", 1) == 1)
			raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(read(pipes[0], &(char){0}, 1), 1);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	while (turns++ < 4 || rig_now_ns() < end)
		others_attach();
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(pipes[0]);
	close(pipes[1]);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
}

/* Clients with many QPs, memory and descriptors that disconnect at once */
static void
storm(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct hca_ctl_cq cq = {.log_size = 4, .channel = HCA_CTL_NO_CHANNEL, .addr = VA};
		int file = full_file(MIB);
		struct raw r;

		open_soon(&r);
		assert_int_equal(raw_attach(&r, file, VA, MIB, 0), 0);
		for (uint64_t k = 0; k < 40; k++) {
			cq.addr = VA + k * 4096;
			raw_request(&r, HCA_CTL_CREATE_CQ, &cq, sizeof(cq), -1);
			r.seq++;
		}
		raw_close(&r); /* most requests are still unread */
		close(file);
	}
	assert_true(rig_wait_empty(&rig, 0) >= 0);
}

/* Slow memory must be enabled; the error tells how. */
static void
slow_memory_off(void **state)
{
	uint8_t *mem =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct softhca_device_attr attr;
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct rig other;

	setenv("IPCD_NO_SLOW_MEMORY", "1", 1);
	rig_start(&other, NULL);
	unsetenv("IPCD_NO_SLOW_MEMORY");
	assert_int_equal(softhca_open(other.path[0], &ctx), 0);
	pd = softhca_alloc_pd(ctx);
	assert_non_null(pd);
	assert_null(softhca_reg_mr(pd, mem, 65536,
				   SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_KEEP_PRIVATE));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_non_null(strstr(softhca_last_error(NULL), "slow_memory = yes"));
	assert_null(softhca_reg_mr(pd, mem, 65536, SOFTHCA_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(softhca_advise_mr(pd, 0, 0, &(struct softhca_sge){0}, 1), -EOPNOTSUPP);
	assert_int_equal(softhca_query_device(ctx, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps | attr.odp_caps.rc_odp_caps, 0);
	assert_int_equal(softhca_close(ctx), 0);
	munmap(mem, 65536);
	rig_stop(&other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linger_refused),
		cmocka_unit_test(linger_queued),
		cmocka_unit_test(linger_not_admitted),
		cmocka_unit_test(holes),
		cmocka_unit_test(punched_large),
		cmocka_unit_test(punched),
		cmocka_unit_test(punched_doorbell),
		cmocka_unit_test(no_descriptors),
		cmocka_unit_test_teardown(memory_of_a_user, rig_tidy),
		cmocka_unit_test(stopped_client),
		cmocka_unit_test(storm),
		cmocka_unit_test(slow_memory_off),
		cmocka_unit_test(linger_at_the_end),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start, shut_down);
}
