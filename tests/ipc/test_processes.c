/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Processes of programs that use a daemon's device: constructors and destructors that use it,
 * children that exec, exit or go on, daemons that leave their parent, signals, and libraries that
 * are unloaded. Each program is this file in another process, so that its exit is an ordinary one.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_fork.h"
#include "../test_path.h"
#include "../test_threads.h"
#include "ipc_rig.h"

#define SECONDS (2 * RIG_TIMEOUT_S) /* a program that hangs ends */
#define BYTES 65536u
#define PROGRAM "SOFTHCA_TEST_PROGRAM"
#define FILES "SOFTHCA_TEST_FILES"
#define PEER "SOFTHCA_TEST_PEER"
#define PIPE "SOFTHCA_TEST_PIPE"
#define ROUNDS 8u

RIG_OF_ALL(rig)

static int
differs(const char *what, long got, long want)
{
	if (got == want)
		return 0;
	fprintf(stderr, "%s: %ld instead of %ld (%s)\n", what, got, want, softhca_last_error(NULL));
	return 1;
}

/* ---- programs; the device is the one of SOFTHCA_DEVICE ---- */

struct objects {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_comp_channel *channel;
	struct softhca_mr *mr;
	uint8_t *mem; /* private to the process, but shared while it is registered */
};

static struct objects mine;

static int
open_all(struct objects *o)
{
	*o = (struct objects){0};
	if (softhca_open(NULL, &o->ctx) != 0)
		return differs("open", 1, 0);
	o->pd = softhca_alloc_pd(o->ctx);
	o->channel = softhca_create_comp_channel(o->ctx);
	o->mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(o->mem, 0x33, BYTES);
	o->mr = softhca_reg_mr(o->pd, o->mem, BYTES, SOFTHCA_ACCESS_LOCAL_WRITE);
	return differs("objects", o->pd != NULL && o->channel != NULL && o->mr != NULL, 1);
}

/* The context works, as it did before. */
static int
still_works(struct objects *o)
{
	struct softhca_port_attr port;
	struct softhca_mr *more;
	int bad = differs("query_port", softhca_query_port(o->ctx, 1, &port), 0);

	more = softhca_reg_mr(o->pd, o->mem, BYTES, 0);
	bad += differs("reg_mr", more != NULL, 1);
	if (more != NULL)
		bad += differs("dereg_mr", softhca_dereg_mr(more), 0);
	return bad;
}

/* In a child of fork(): the parent's context is refused, the memory is a copy. */
static int
is_refused(const struct objects *o)
{
	struct softhca_async_event event;
	struct softhca_port_attr port;
	struct softhca_cq *cq;
	int bad = differs("query_port", softhca_query_port(o->ctx, 1, &port), -EPERM);

	bad += differs("alloc_pd", softhca_alloc_pd(o->ctx) == NULL && errno == EPERM, 1);
	bad += differs("get_cq_event", softhca_get_cq_event(o->channel, &cq, NULL), -EPERM);
	bad += differs("get_async_event", softhca_get_async_event(o->ctx, &event), -EPERM);
	bad += differs("destroy_comp_channel", softhca_destroy_comp_channel(o->channel), -EPERM);
	bad += differs("dereg_mr", softhca_dereg_mr(o->mr), -EPERM);
	bad += differs("close", softhca_close(o->ctx), -EPERM);
	return bad + differs("memory", o->mem[BYTES - 1], 0x33);
}

static int
join(pid_t pid)
{
	int status = -1;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return differs("child", status, 0);
}

static struct objects at_start;

/* Before main(), like the constructor of a library that uses the device */
__attribute__((constructor)) static void
open_early(void)
{
	const char *program = getenv(PROGRAM);

	if (program != NULL && strcmp(program, "early") == 0 && open_all(&at_start) != 0)
		_exit(2);
}

__attribute__((destructor)) static void
close_late(void)
{
	if (at_start.ctx != NULL && softhca_close(at_start.ctx) != 0)
		_exit(3);
}

static int
program_early(void)
{
	return differs("open", at_start.ctx != NULL, 1) + still_works(&at_start);
}

static void
close_mine(void)
{
	softhca_close(mine.ctx);
}

/* Its child leaves by exit(), with all that is run at the exit, and by _exit(). */
static int
program_exits(void)
{
	int bad = open_all(&mine);
	pid_t pid;

	atexit(close_mine);
	for (int i = 0; i < 2; i++) {
		pid = test_fork();
		if (pid == 0 && i == 0)
			exit(0);
		if (pid == 0)
			_exit(0);
		bad += join(pid) + still_works(&mine);
	}
	return bad;
}

static int
open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int n = -3; /* this one, "." and ".." */

	while (folder != NULL && readdir(folder) != NULL)
		n++;
	closedir(folder);
	return n;
}

/* No descriptor of a context is open in a program that its child executes. */
static int
program_execs(void)
{
	char number[16];
	int bad, files = open_files();
	pid_t pid;

	bad = open_all(&mine);
	snprintf(number, sizeof(number), "%d", files);
	setenv(FILES, number, 1);
	setenv(PROGRAM, "counts", 1);
	pid = test_fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_processes", NULL);
		_exit(9);
	}
	bad += join(pid);
	bad += still_works(&mine);
	return bad + differs("close", softhca_close(mine.ctx), 0);
}

static int
program_counts(void)
{
	return differs("open files", open_files(), atoi(getenv(FILES)));
}

/* A daemon (in the background) after its parent has gone: it needs a context of its own. */
static int
as_daemon(int alive)
{
	struct objects own;
	char c;
	int bad = differs("parent", read(alive, &c, 1), 0);

	bad += is_refused(&mine);
	bad += open_all(&own);
	mine.mem[0] = 0x44;
	bad += still_works(&own);
	return bad + differs("close", softhca_close(own.ctx), 0);
}

/* Opens the device and then goes to the background. */
static int
program_daemonises(void)
{
	int alive[2], answer[2], bad = 1;
	pid_t pid;

	if (pipe(alive) != 0 || pipe(answer) != 0)
		return 1;
	pid = test_fork();
	if (pid == 0) {
		close(answer[0]);
		if (open_all(&mine) != 0)
			_exit(1);
		if (test_fork() != 0)
			_exit(0);
		close(alive[1]);
		bad = as_daemon(alive[0]);
		_exit(write(answer[1], &bad, sizeof(bad)) != sizeof(bad));
	}
	close(alive[1]);
	close(answer[1]);
	if (join(pid) != 0 || read(answer[0], &bad, sizeof(bad)) != sizeof(bad))
		return 1;
	return bad;
}

/* ---- memory after fork() ---- */

struct pair {
	struct peer a, b;
};

static uint8_t *
map_private(void)
{
	void *mem =
		mmap(NULL, PEER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mem != MAP_FAILED ? mem : NULL;
}

static int
open_pair(struct pair *p, void *from, void *to)
{
	const struct peer_config a = {.type = SOFTHCA_QPT_RC, .buf = from};
	const struct peer_config b = {.type = SOFTHCA_QPT_RC, .buf = to};

	if (peer_open(&p->a, getenv("SOFTHCA_DEVICE"), &a) != 0 ||
	    peer_open(&p->b, getenv(PEER), &b) != 0)
		return 1;
	return peer_connect_pair(&p->a, &p->b) != 0;
}

/* WRITE that pattern from one piece of private memory to the other. */
static int
carry(struct pair *p, uint32_t seed)
{
	struct softhca_wc wc;

	peer_fill(p->a.buf, BYTES, seed);
	if (peer_post(&p->a, SOFTHCA_WR_RDMA_WRITE, seed, 0, BYTES, 0) != 0 ||
	    peer_wait(&p->a, &wc, RIG_TIMEOUT_S) != SOFTHCA_WC_SUCCESS)
		return differs("write", (long)seed, -1);
	return !peer_verify(p->b.buf, BYTES, seed);
}

/* Has its memory as it was at fork(), and registers it for itself, at the same addresses. */
static int
as_child(void *from, void *to)
{
	struct pair own;
	int bad = !peer_verify(to, BYTES, 0);

	memset(from, 0x55, PEER_BYTES);
	memset(to, 0x55, PEER_BYTES);
	bad += open_pair(&own, from, to);
	for (uint32_t i = 0; i < ROUNDS && bad == 0; i++)
		bad += carry(&own, 100 + i);
	peer_close(&own.a);
	peer_close(&own.b);
	return bad;
}

/* Forks after it has registered; both go on, each with its memory. */
static int
program_forks(void)
{
	uint8_t *from = map_private(), *to = map_private();
	struct pair p;
	int bad = from == NULL || to == NULL || open_pair(&p, from, to) != 0 || carry(&p, 0) != 0;
	pid_t pid;

	if (bad != 0)
		return bad;
	pid = test_fork();
	if (pid == 0)
		_exit(as_child(from, to));
	for (uint32_t i = 1; i <= ROUNDS; i++)
		bad += carry(&p, i);
	bad += join(pid) + carry(&p, ROUNDS + 1);
	peer_close(&p.a);
	peer_close(&p.b);
	return bad;
}

/*
 * Executes another program in its place, while a child that it has forked goes on: its context ends
 * all the same. PIPE: says that the context is open, and waits for the end of the test.
 */
static int
program_leaves(void)
{
	int ends[2];
	char c;

	if (sscanf(getenv(PIPE), "%d,%d", &ends[0], &ends[1]) != 2 || open_all(&mine) != 0)
		return 1;
	if (test_fork() == 0)
		_exit(read(ends[0], &c, 1) != 0);
	if (write(ends[1], "x", 1) != 1)
		return 1;
	close(ends[1]);
	setenv(PROGRAM, "waits", 1);
	execl("/proc/self/exe", "program", NULL);
	return 1;
}

static int
program_waits(void)
{
	int ends[2];
	char c;

	if (sscanf(getenv(PIPE), "%d,%d", &ends[0], &ends[1]) != 2)
		return 1;
	return differs("pipe", read(ends[0], &c, 1), 0);
}

/* ---- signals ---- */

static volatile sig_atomic_t alarms, elsewhere;
static pid_t main_thread;

static void
on_alarm(int number)
{
	(void)number;
	alarms++;
	if (syscall(SYS_gettid) != main_thread)
		elsewhere++;
}

/* Calls are not disturbed by signals, and only this thread gets them. */
static int
program_signals(void)
{
	const struct itimerval often = {{0, 500}, {0, 500}}, never = {0};
	struct sigaction action = {.sa_handler = on_alarm};
	struct objects o[4];
	int bad = 0;

	main_thread = (pid_t)syscall(SYS_gettid);
	sigaction(SIGALRM, &action, NULL);
	alarm(0);
	setitimer(ITIMER_REAL, &often, NULL);
	for (unsigned int i = 0; i < 10 && bad == 0; i++) {
		for (unsigned int k = 0; k < 4; k++)
			bad += open_all(&o[k]) + still_works(&o[k]);
		for (unsigned int k = 0; k < 4; k++) {
			bad += differs("close", softhca_close(o[k].ctx), 0);
			munmap(o[k].mem, BYTES);
		}
	}
	setitimer(ITIMER_REAL, &never, NULL);
	return bad + differs("alarms", alarms > 0, 1) + differs("elsewhere", elsewhere, 0);
}

/* The library's threads leave all signals to the program's threads. */
static int
program_threads(void)
{
	int bad = open_all(&mine);
	unsigned int take;

	bad += differs("other threads", test_other_threads(&take) > 0, 1);
	bad += differs("take signals", take, 0);
	return bad + differs("close", softhca_close(mine.ctx), 0);
}

static const struct {
	const char *name;
	int (*run)(void);
} programs[] = {
	{"early", program_early},     {"exits", program_exits}, {"execs", program_execs},
	{"counts", program_counts},   {"forks", program_forks}, {"daemonises", program_daemonises},
	{"leaves", program_leaves},   {"waits", program_waits}, {"signals", program_signals},
	{"threads", program_threads},
};

static int
run_program(const char *name)
{
	alarm(SECONDS);
	for (unsigned int i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (strcmp(name, programs[i].name) == 0)
			return programs[i].run() == 0 ? 0 : 1;
	return 4;
}

/* ---- tests ---- */

static pid_t running; /* the program of this test, which leads a group of processes */

static void
begin(const char *file, const char *name)
{
	running = fork();
	assert_true(running >= 0);
	if (running == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("SOFTHCA_DEVICE", rig.path[0], 1);
		setenv(PEER, rig.path[1], 1);
		setenv(PROGRAM, name, 1);
		execl(file, "program", NULL);
		_exit(127);
	}
	setpgid(running, running); /* both try; fails after its exec */
}

static void
end_well(void)
{
	int status;

	assert_int_equal(waitpid(running, &status, 0), running);
	assert_int_equal(status, 0);
}

/* Leftovers of the program and its children do not disturb the next test. */
static int
tidy(void **state)
{
	if (running > 0) {
		kill(-running, SIGKILL);
		waitpid(running, NULL, 0);
	}
	running = 0;
	return 0;
}

/* Run a program; it and all of its clients end well. */
static void
run(const char *file, const char *name)
{
	begin(file, name);
	end_well();
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
}

#define PROGRAM_TEST(name) \
	static void name(void **state) \
	{ \
		run("/proc/self/exe", #name); \
	}

PROGRAM_TEST(early)
PROGRAM_TEST(exits)
PROGRAM_TEST(execs)
PROGRAM_TEST(forks)
PROGRAM_TEST(daemonises)
PROGRAM_TEST(signals)
PROGRAM_TEST(threads)

static void
leaves(void **state)
{
	int down[2], up[2];
	char text[24], c;

	assert_int_equal(pipe(down), 0);
	assert_int_equal(pipe(up), 0);
	fcntl(down[1], F_SETFD, FD_CLOEXEC);
	fcntl(up[0], F_SETFD, FD_CLOEXEC);
	snprintf(text, sizeof(text), "%d,%d", down[0], up[1]);
	setenv(PIPE, text, 1);
	begin("/proc/self/exe", "leaves");
	close(down[0]);
	close(up[1]);
	assert_int_equal(read(up[0], &c, 1), 1);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	close(down[1]);
	close(up[0]);
	end_well();
}

static void *
accept_later(void *arg)
{
	const int *listener = arg;
	int s;

	while (alarms < 20)
		usleep(1000);
	while ((s = accept(*listener, NULL, NULL)) >= 0)
		close(s);
	return NULL;
}

static void
alarms_every(suseconds_t us)
{
	const struct itimerval often = {{0, us}, {0, us}};

	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
}

/* Signals come while softhca_open() waits, because the daemon is busy with others. */
static void
interrupted(void **state)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char folder[TEST_PATH_MAX];
	struct softhca_context *ctx;
	int listener, other, err;
	sigset_t set, before;
	pthread_t thread;

	assert_non_null(mkdtemp(test_path(folder, "ipc-busy")));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/x.sock", folder);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	other = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(connect(other, (struct sockaddr *)&addr, sizeof(addr)), 0);
	alarms = 0;
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	assert_int_equal(pthread_create(&thread, NULL, accept_later, &listener), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	alarms_every(1000);
	err = softhca_open(addr.sun_path, &ctx);
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	alarms_every(0);
	close(other);
	close(listener);
	unlink(addr.sun_path);
	rmdir(folder);
	assert_int_equal(err, -EIO); /* it was accepted and got no answer */
}

/* A program that loads the library, and unloads it with and without contexts (unloads.c) */
static void
unloads(void **state)
{
	const char *program = getenv("UNLOADS");

	assert_non_null(program);
	run(program, "unloads");
}

int
main(void)
{
	const char *program = getenv(PROGRAM);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(early, tidy),
		cmocka_unit_test_teardown(exits, tidy),
		cmocka_unit_test_teardown(execs, tidy),
		cmocka_unit_test_teardown(forks, tidy),
		cmocka_unit_test_teardown(daemonises, tidy),
		cmocka_unit_test_teardown(leaves, tidy),
		cmocka_unit_test_teardown(signals, tidy),
		cmocka_unit_test_teardown(threads, tidy),
		cmocka_unit_test(interrupted),
		cmocka_unit_test_teardown(unloads, tidy),
	};

	if (program != NULL)
		return run_program(program);
	return cmocka_run_group_tests(tests, start, shut_down);
}
