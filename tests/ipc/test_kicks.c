/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Abuse of the sleep words and the eventfd: writing to the page, reading the counter with
 * O_NONBLOCK cleared, kicking in a loop. The page is sealed, the worker never reads the counter,
 * and a client that kicks without need is soon ignored for a while. Another client works meanwhile.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc_rig.h"
#include "raw.h"

#define STORM_NS 3000000000u

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

/* A command of another client; its worker may have to be woken. */
static void
bystand(struct raw *r)
{
	assert_int_equal(raw_call(r, HCA_CTL_ALLOC_PD, NULL, 0, -1), 0);
}

static void
storm(void **state)
{
	struct rig rig;
	struct raw bad, good;
	uint64_t one = 1, end, taken;

	rig_start(&rig, NULL);
	raw_open(&bad, rig.path[0]);
	raw_open(&good, rig.path[0]);
	assert_int_equal(fcntl(bad.kick_fd, F_SETFL, 0), 0);
	end = rig_now_ns() + STORM_NS;
	for (uint32_t n = 0; rig_now_ns() < end; n++) {
		assert_int_equal(write(bad.kick_fd, &one, sizeof(one)), sizeof(one));
		if (n % 2 == 0)
			assert_int_equal(read(bad.kick_fd, &taken, sizeof(taken)), sizeof(taken));
		if (n % 4096 == 0 && n < 40 * 4096)
			bystand(&good);
		if (n % 64 == 0 && rig_ask(&rig, "device", 0, "kicks_muted") != 0)
			break;
	}
	/* A worker that waits for a CPU sees fewer kicks. */
	assert_true(rig_ask(&rig, "device", 0, "kicks_for_nothing") >= 1);
	print_message("not listened to %ld times\n",
		      (long)rig_ask(&rig, "device", 0, "kicks_muted"));
	bystand(&good);
	raw_close(&bad);
	bystand(&good);
	raw_close(&good);
	assert_true(rig_wait_empty(&rig, 0, 30000) >= 0);
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
