/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Wakeups through a daemon whose workers sleep without the alarm: if one is lost, a request never
 * completes. Doorbells of more clients than the rota of pages holds, frames over memif, commands,
 * completion events, events delayed by a full pipe, and, with a worker per stage, every edge
 * between them, at random times around the one at which a worker falls asleep.
 *
 * Also a client that is stopped between its doorbell and the kick: no other client waits for it.
 *
 * Each test prints the longest wait for a completion. A long test by hand, 10^6 doorbells on a
 * quiet machine, none of which may wait longer than 10 ms:
 *
 *  WAKEUPS=1000000 WAKEUP_BOUND_MS=10 IPCD=.../ipcd test_ipc_wakeups doorbells
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ipc_rig.h"
#include "lib_types.h"

#define CLIENTS 17u /* the rota holds 16 */
#define DOORBELLS 1200u
#define EXCHANGES 150u
#define AT_ONCE_EVERY 16u
#define COMMANDS_EVERY 8u
#define DISTANCE_NS 400000u
#define ALARMS 40u
#define SETTLED_US 90000u /* by then no late kick can come */
#define PIPE 4096
#define MISSED_S 10u /* the alarm counts within milliseconds of the request */
#define STOPS 10u

static struct rig rig;
static uint64_t rung_at;    /* the last doorbell */
static uint64_t longest_ns; /* from there to a completion */

/* ---- a doorbell whose kick does not come ---- */

static volatile bool stop_at_kick;

/* Replaces that of libc, also for the library: writes of 8 bytes go to an eventfd. */
ssize_t
write(int fd, const void *bytes, size_t len)
{
	if (stop_at_kick && len == sizeof(uint64_t)) {
		stop_at_kick = false;
		raise(SIGSTOP);
	}
	return syscall(SYS_write, fd, bytes, len);
}

/* ---- the daemon ---- */

static void
start_daemon(const char *layout, bool alarm, bool memif)
{
	char wire[RIG_PATH_MAX];
	const char *base = getenv("TMPDIR");
	static unsigned int number;

	snprintf(wire, sizeof(wire), "%s/softhca-wire-%d-%u", base != NULL ? base : "/tmp",
		 (int)getpid(), number++);
	unsetenv("IPCD_NO_ALARM");
	unsetenv("IPCD_MEMIF");
	setenv("IPCD_LAYOUT", layout, 1);
	if (!alarm)
		setenv("IPCD_NO_ALARM", "1", 1);
	if (memif)
		setenv("IPCD_MEMIF", wire, 1);
	rig_start(&rig, NULL);
	longest_ns = 0;
	/* so that a sleep of a microsecond does not take fifty */
	prctl(PR_SET_TIMERSLACK, 1ul);
}

/* By hand, on a quiet machine, there is a bound. */
static void
judge_longest(void)
{
	const char *bound = getenv("WAKEUP_BOUND_MS");
	double ms = (double)longest_ns / 1e6;

	print_message("longest wait for a completion: %.3f ms\n", ms);
	if (bound != NULL && ms > atof(bound))
		fail_msg("a completion came after %.3f ms, bound %s ms", ms, bound);
}

static void
stop_daemon(void)
{
	judge_longest();
	for (unsigned int side = 0; side < 2; side++) {
		print_message("side %c: %ld sleeps, %ld kicked\n", 'A' + (int)side,
			      (long)rig_ask(&rig, "device", side, "worker_sleeps"),
			      (long)rig_ask(&rig, "device", side, "worker_kicked"));
		assert_true(rig_ask(&rig, "device", side, "worker_sleeps") > 0);
		assert_int_equal(rig_ask(&rig, "device", side, "wake_missed"), 0);
	}
	rig_stop(&rig);
}

/* ---- chance ---- */

static uint64_t chance_state;

static uint32_t
chance(uint32_t below)
{
	chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(((chance_state >> 32) * below) >> 32);
}

/* Busy for exactly so long, or asleep so that other threads can run. */
static void
pause_between(void)
{
	uint32_t ns = chance(DISTANCE_NS);
	struct timespec ts = {.tv_nsec = ns};
	uint64_t end = rig_now_ns() + ns;

	if (chance(2) == 0)
		nanosleep(&ts, NULL);
	while (rig_now_ns() < end)
		;
}

static uint32_t
rounds(uint32_t otherwise)
{
	const char *env = getenv("WAKEUPS");

	return env != NULL ? (uint32_t)atoi(env) : otherwise;
}

/* ---- doorbells ---- */

static void
open_to_itself(struct peer *p)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};

	assert_int_equal(peer_open(p, rig.path[0], &cfg), 0);
	p->other = p->me;
	assert_int_equal(peer_connect_qp(p, p->qp, p->me.qpn, p->me.psn, p->me.psn), 0);
}

static int
wait_for(struct peer *p)
{
	uint64_t end = rig_now_ns() + RIG_TIMEOUT_S * UINT64_C(1000000000);
	struct softhca_wc wc;
	int n;

	do {
		n = softhca_poll_cq(p->cq, 1, &wc);
	} while (n == 0 && rig_now_ns() < end);
	return n == 1 ? (int)wc.status : n == 0 ? -ETIMEDOUT : n;
}

static void
post(struct peer *p, uint32_t op, uint64_t id, uint32_t len, uint64_t to)
{
	rung_at = rig_now_ns();
	assert_int_equal(peer_post(p, op, id, 0, len, to), 0);
}

static void
ring(struct peer *p, uint64_t id)
{
	post(p, SOFTHCA_WR_RDMA_WRITE, id, 8, 64);
}

static void
note_wait(void)
{
	uint64_t ns = rig_now_ns() - rung_at;

	longest_ns = ns > longest_ns ? ns : longest_ns;
}

static void
done(struct peer *p, uint64_t id)
{
	int err = wait_for(p);

	if (err == -ETIMEDOUT)
		fail_msg("a wake-up was lost: completion %lu", (unsigned long)id);
	assert_int_equal(err, 0);
	note_wait();
}

/* One client rings, or several at once, with pauses long enough to leave the rota. */
static void
doorbells(void **state)
{
	struct peer *p = calloc(CLIENTS, sizeof(*p));
	uint32_t n = rounds(DOORBELLS);

	assert_non_null(p);
	start_daemon("rtc", false, false);
	for (uint32_t i = 0; i < CLIENTS; i++)
		open_to_itself(&p[i]);
	for (uint32_t i = 0; i < n;) {
		uint32_t first = chance(CLIENTS);
		uint32_t many = chance(AT_ONCE_EVERY) == 0 ? 2 + chance(CLIENTS - 1) : 1;

		for (uint32_t k = 0; k < many; k++)
			ring(&p[(first + k) % CLIENTS], i + k);
		for (uint32_t k = 0; k < many; k++)
			done(&p[(first + k) % CLIENTS], i + k);
		i += many;
		pause_between();
	}
	for (uint32_t i = 0; i < CLIENTS; i++)
		peer_close(&p[i]);
	free(p);
	stop_daemon();
}

/* ---- everything else ---- */

static void
exchange(struct peer *a, struct peer *b, uint32_t i)
{
	static const uint32_t ops[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_RDMA_READ, SOFTHCA_WR_SEND,
				       SOFTHCA_WR_ATOMIC_FETCH_AND_ADD};
	uint32_t op = ops[chance(4)];
	uint32_t len =
		op == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD ? 8 : 1 + chance(chance(4) ? 64 : 32768);

	if (op == SOFTHCA_WR_SEND)
		assert_int_equal(peer_post_recv(b, i, 65536, 65536), 0);
	post(a, op, i, len, 131072);
	done(a, i);
	if (op == SOFTHCA_WR_SEND)
		done(b, i);
}

static void
some_commands(struct peer *p)
{
	struct softhca_cq_init_attr ca = {.cqe = 16};
	struct softhca_cq *cq = softhca_create_cq(p->ctx, &ca);

	assert_non_null(cq);
	pause_between();
	assert_int_equal(softhca_destroy_cq(cq), 0);
}

static void
with_event(struct peer *p, uint32_t i)
{
	struct softhca_wc wc;

	ring(p, i);
	assert_int_equal(peer_wait(p, &wc, RIG_TIMEOUT_S), 0);
	note_wait();
}

static void
take_event(struct peer *p)
{
	struct softhca_cq *cq;

	assert_int_equal(softhca_get_cq_event(p->channel, &cq, NULL), 0);
	softhca_ack_cq_events(cq, 1);
}

static int
bytes_in(const struct peer *p)
{
	int bytes;

	assert_int_equal(ioctl(p->channel->fd, FIONREAD, &bytes), 0);
	return bytes;
}

/* Read no events until the pipe is full; the delayed ones arrive when there is room. */
static void
full_pipe(struct peer *p)
{
	struct softhca_wc wc;
	int bytes = 0;

	/* A pipe page that was partly read holds less than a page until it is empty. */
	while (bytes_in(p) != 0)
		take_event(p);
	assert_int_equal(fcntl(p->channel->fd, F_SETPIPE_SZ, PIPE), PIPE);
	for (uint32_t i = 0; i < 10000 && bytes < PIPE; i++) {
		assert_int_equal(softhca_req_notify_cq(p->cq, 0), 0);
		ring(p, i);
		done(p, i);
		bytes = bytes_in(p);
	}
	assert_int_equal(bytes, PIPE);
	assert_int_equal(softhca_req_notify_cq(p->cq, 0), 0);
	ring(p, 0);
	done(p, 0);
	pause_between();
	for (unsigned int i = 0; i < PIPE / 16 + 1; i++)
		take_event(p);
	assert_int_equal(softhca_poll_cq(p->cq, 1, &wc), 0);
}

/* In both directions, so that doorbells and frames wake the workers of both sides. */
static void
exchanges(const char *layout, bool memif)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .events = true, .timeout = 22};
	uint32_t n = rounds(EXCHANGES);
	struct peer p[2];

	start_daemon(layout, false, memif);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(peer_open(&p[i], rig.path[i], &cfg), 0);
	assert_int_equal(peer_connect_pair(&p[0], &p[1]), 0);
	for (uint32_t i = 0; i < n; i++) {
		struct peer *a = &p[chance(2)], *b = a == p ? &p[1] : p;

		if (chance(4) == 0)
			with_event(a, i);
		else
			exchange(a, b, i);
		pause_between();
		if (i % COMMANDS_EVERY == 0)
			some_commands(a);
	}
	for (unsigned int i = 0; i < 2; i++)
		full_pipe(&p[i]);
	for (unsigned int i = 0; i < 2; i++)
		peer_close(&p[i]);
	/* 17 s: a request that is sent again is a frame or a wake-up that was lost */
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(rig_ask(&rig, "device", i, "again_timeout"), 0);
	stop_daemon();
}

static void
memif_rtc(void **state)
{
	exchanges("rtc", true);
}

static void
memif_full(void **state)
{
	exchanges("full", true);
}

static void
memory_txrx(void **state)
{
	exchanges("txrx", false);
}

/* ---- a client that stops between doorbell and kick ---- */

#define AT_WRITTEN 64

/* Ring the doorbell; the kick waits for SIGCONT. */
static int
stopper(int sock, void *buf)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .buf = buf};
	struct peer p;
	int err = peer_open(&p, rig.path[0], &cfg);

	p.other = p.me;
	if (err == 0)
		err = peer_connect_qp(&p, p.qp, p.me.qpn, p.me.psn, p.me.psn);
	if (err == 0)
		err = peer_meet(sock);
	/* repeat until the worker sleeps when the doorbell rings */
	for (stop_at_kick = true; err == 0 && stop_at_kick;) {
		usleep(3000);
		p.buf[AT_WRITTEN] = 0;
		p.buf[0] = 1;
		err = peer_post(&p, SOFTHCA_WR_RDMA_WRITE, 1, 0, 8, AT_WRITTEN);
		if (err == 0)
			err = wait_for(&p);
	}
	peer_close(&p);
	return err;
}

static uint8_t *
shared_buffer(int *fd)
{
	uint8_t *buf;

	*fd = memfd_create("buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(*fd, PEER_BYTES), 0);
	assert_int_equal(fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	buf = mmap(NULL, PEER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_ptr_not_equal(buf, MAP_FAILED);
	return buf;
}

static void
wait_for_byte(const uint8_t *byte)
{
	uint64_t end = rig_now_ns() + RIG_TIMEOUT_S * UINT64_C(1000000000);

	while (__atomic_load_n(byte, __ATOMIC_RELAXED) == 0) {
		assert_true(rig_now_ns() < end);
		usleep(100);
	}
}

/* Both sides of the daemon are asked: a client has one of them. */
static bool
was_missed(void)
{
	uint64_t end = rig_now_ns() + MISSED_S * UINT64_C(1000000000);

	while (rig_ask(&rig, "device", 0, "wake_missed") +
		       rig_ask(&rig, "device", 1, "wake_missed") ==
	       0) {
		if (rig_now_ns() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/*
 * With the alarm the request is found without a kick, and counted, unless the worker woke for
 * another reason at that moment: false. Without it others are served as
 * usual; their kicks wake the worker, which then finds also the stopped client's doorbell. With
 * several pipelines one of the others has a QP in that of the stopped client.
 */
static bool
stopped_once(bool alarm)
{
	bool found = true;
	const char *pipes = getenv("IPCD_PIPES");
	unsigned int others = pipes != NULL ? (unsigned int)atoi(pipes) : 1;
	struct peer other[16];
	int sock, fd, status;
	uint8_t *buf = shared_buffer(&fd);
	pid_t pid;

	start_daemon("rtc", alarm, false);
	pid = rig_fork(stopper, buf, &sock);
	assert_int_equal(peer_meet(sock), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	if (alarm) {
		wait_for_byte(&buf[AT_WRITTEN]);
		found = was_missed();
	}
	for (unsigned int n = 0; n < others; n++)
		open_to_itself(&other[n]);
	for (uint32_t i = 0; i < 100 * others; i++) {
		ring(&other[i % others], i);
		done(&other[i % others], i);
		pause_between();
	}
	wait_for_byte(&buf[AT_WRITTEN]);
	for (unsigned int n = 0; n < others; n++)
		peer_close(&other[n]);
	assert_int_equal(kill(pid, SIGCONT), 0);
	rig_join(pid);
	close(sock);
	munmap(buf, PEER_BYTES);
	close(fd);
	rig_stop(&rig);
	return found;
}

static void
stopped(bool alarm)
{
	for (unsigned int i = 0; !stopped_once(alarm); i++)
		assert_true(i < STOPS);
}

static void
stopped_with_alarm(void **state)
{
	stopped(true);
}

static void
stopped_without_alarm(void **state)
{
	stopped(false);
}

/*
 * A doorbell that rings just when the alarm has ended a sleep needs no kick. It was not missed:
 * stop_daemon() asks.
 */
static void
beside_the_alarm(void **state)
{
	const uint32_t *word;
	struct peer p;

	start_daemon("rtc", true, false);
	open_to_itself(&p);
	word = ((struct lib_context *)p.ctx)->uar.sleep_word;
	for (uint32_t i = 0; i < ALARMS; i++) {
		uint32_t asleep;

		while (((asleep = __atomic_load_n(word, __ATOMIC_RELAXED)) & 1) == 0)
			usleep(1000);
		while (__atomic_load_n(word, __ATOMIC_RELAXED) == asleep)
			;
		ring(&p, i);
		done(&p, i);
		usleep(SETTLED_US);
	}
	peer_close(&p);
	stop_daemon();
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(doorbells, rig_tidy),
		cmocka_unit_test_teardown(memif_rtc, rig_tidy),
		cmocka_unit_test_teardown(memif_full, rig_tidy),
		cmocka_unit_test_teardown(memory_txrx, rig_tidy),
		cmocka_unit_test_teardown(stopped_with_alarm, rig_tidy),
		cmocka_unit_test_teardown(stopped_without_alarm, rig_tidy),
		cmocka_unit_test_teardown(beside_the_alarm, rig_tidy),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	chance_state = rig_now_ns();
	print_message("seed %lu\n", (unsigned long)chance_state);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
