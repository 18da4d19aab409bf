/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Abuse of the sleep words and the eventfd: writing to the page, reading the counter with
 * O_NONBLOCK cleared, kicking in a loop. The page is sealed, the worker never reads the counter,
 * and a client that kicks without need is soon ignored for 100 ms. Others work meanwhile, and their
 * daemon has no alarm: a lost wake-up stays lost.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ipc_rig.h"
#include "raw.h"

#define STORM_NS 3000000000u
#define REQUESTS 700u /* of the bystander in a storm, and twice as many after it */
#define PAUSE_NS 300000u

static void
sealed(void **state)
{
	struct rig rig;
	struct raw r;
	char path[32];
	int fd;

	rig_start(&rig, NULL);
	raw_open(&r, rig.path[0]);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r.sleep_fd, 0),
			 MAP_FAILED);
	assert_true(write(r.sleep_fd, "x", 1) < 0);
	assert_true(fallocate(r.sleep_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0);
	assert_true(ftruncate(r.sleep_fd, 0) < 0);
	/* Opening it again gives the same file. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r.sleep_fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		assert_true(write(fd, "x", 1) < 0);
		close(fd);
	}
	raw_close(&r);
	rig_stop(&rig);
}

/* ---- a client that works meanwhile ---- */

struct bystander {
	pthread_t thread;
	const char *path;
	uint32_t done; /* requests that were completed with the right effect */
	int err;
	bool over;
};

/* Sleeps for the completion, or polls. */
static int
one_request(struct peer *p, uint32_t i)
{
	uint64_t *from = (uint64_t *)p->buf, *to = from + 1;
	struct timespec pause = {.tv_nsec = i * 7919 % PAUSE_NS};
	struct softhca_wc wc;
	int err;

	*from = i + 1;
	p->events = i % 2 == 0;
	err = peer_post(p, SOFTHCA_WR_RDMA_WRITE, i, 0, sizeof(*from), sizeof(*from));
	if (err == 0)
		err = peer_wait(p, &wc, RIG_TIMEOUT_S);
	if (err == 0 && (wc.wr_id != i || __atomic_load_n(to, __ATOMIC_RELAXED) != i + 1))
		err = -EILSEQ;
	nanosleep(&pause, NULL); /* the worker falls asleep, or is about to */
	return err;
}

static void *
work(void *arg)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .events = true};
	struct bystander *by = arg;
	struct peer p;
	int err = peer_open(&p, by->path, &cfg);

	p.other = p.me;
	if (err == 0)
		err = peer_connect_qp(&p, p.qp, p.me.qpn, p.me.psn, p.me.psn);
	for (uint32_t i = 0; err == 0 && !__atomic_load_n(&by->over, __ATOMIC_RELAXED); i++) {
		err = one_request(&p, i);
		if (err == 0)
			__atomic_store_n(&by->done, i + 1, __ATOMIC_RELAXED);
	}
	peer_close(&p);
	__atomic_store_n(&by->err, err, __ATOMIC_RELAXED);
	return NULL;
}

static void
bystander_start(struct bystander *by, struct rig *rig)
{
	*by = (struct bystander){.path = rig->path[0]};
	assert_int_equal(pthread_create(&by->thread, NULL, work, by), 0);
}

/* False: it works and has more to do. */
static bool
bystander_done(const struct bystander *by, uint32_t requests)
{
	return __atomic_load_n(&by->done, __ATOMIC_RELAXED) >= requests ||
	       __atomic_load_n(&by->err, __ATOMIC_RELAXED) != 0;
}

static void
bystander_stop(struct bystander *by)
{
	__atomic_store_n(&by->over, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(by->thread, NULL), 0);
	if (by->err != 0)
		fail_msg("the bystander's request %u: %d", by->done, by->err);
}

/* A command of another client; its worker may have to be woken. */
static void
command(struct raw *r)
{
	assert_int_equal(raw_call(r, HCA_CTL_ALLOC_PD, NULL, 0, -1), 0);
}

/* Until this client was ignored, or has done it for long, and the bystander has done its work. */
static void
kick(struct rig *rig, struct raw *bad, struct raw *good, const struct bystander *by)
{
	uint64_t one = 1, end = rig_now_ns() + STORM_NS, taken;
	bool enough = false;

	for (uint32_t n = 0; !enough || !bystander_done(by, REQUESTS); n++) {
		assert_int_equal(write(bad->kick_fd, &one, sizeof(one)), sizeof(one));
		if (n % 2 == 0)
			assert_int_equal(read(bad->kick_fd, &taken, sizeof(taken)), sizeof(taken));
		if (n % 4096 == 0 && n < 40 * 4096)
			command(good);
		if (n % 64 == 0 && !enough)
			enough = rig_ask(rig, "device", 0, "kicks_muted") != 0 ||
				 rig_now_ns() >= end;
	}
}

static void
storm(void **state)
{
	static struct bystander by; /* a test that fails leaves the thread */
	static struct rig rig;
	struct raw bad, good;

	setenv("IPCD_NO_ALARM", "1", 1);
	rig_start(&rig, NULL);
	raw_open(&bad, rig.path[0]);
	raw_open(&good, rig.path[0]);
	assert_int_equal(fcntl(bad.kick_fd, F_SETFL, 0), 0);
	bystander_start(&by, &rig);
	kick(&rig, &bad, &good, &by);
	/* Now no other kick wakes the worker, and soon it naps for no muted client. */
	while (!bystander_done(&by, 3 * REQUESTS))
		usleep(1000);
	bystander_stop(&by);
	/* A worker that waits for a CPU sees fewer kicks. */
	assert_true(rig_ask(&rig, "device", 0, "kicks_for_nothing") >= 1);
	print_message("not listened to %ld times, %u requests beside it\n",
		      (long)rig_ask(&rig, "device", 0, "kicks_muted"), by.done);
	command(&good);
	raw_close(&bad);
	command(&good);
	raw_close(&good);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	rig_stop(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(sealed, rig_tidy),
		cmocka_unit_test_teardown(storm, rig_tidy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
