/* SPDX-License-Identifier: BSD-3-Clause */

/* Clients that take their memory away come back one at a time; killed ones do not wait. */

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi_bar.h"
#include "ipc_rig.h"
#include "raw.h"

#define LOSSES 6u
#define KILLS 10u

static struct rig rig;

static int64_t
counted(const char *name)
{
	return rig_ask(&rig, "counters", 0, name);
}

/* Punch out the doorbell page, which the device reads all the time. */
static void
lose_one(void)
{
	struct raw r;

	raw_open(&r, rig.path[0]);
	assert_int_equal(fallocate(r.uar_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				   HCA_UAR_PAGE_SIZE),
			 0);
	assert_int_equal(raw_reply(&r, RIG_TIMEOUT_MS), 0);
	raw_close(&r);
}

static void
start(const char *turn_ms)
{
	setenv("IPCD_TURN_MS", turn_ms, 1);
	rig_start(&rig, NULL);
	unsetenv("IPCD_TURN_MS");
}

/* Returns how many clients were delayed. */
static int64_t
losers_take_turns(const char *turn_ms)
{
	int64_t delayed;
	struct raw r;

	start(turn_ms);
	for (unsigned int i = 0; i < LOSSES; i++)
		lose_one();
	raw_open(&r, rig.path[0]);
	raw_close(&r);
	assert_int_equal(counted("ended_segment_lost"), LOSSES);
	delayed = counted("clients_delayed");
	rig_stop(&rig);
	return delayed;
}

/*
 * Every one is admitted in the end, and lost memory is counted once for each. Where a client takes
 * longer than a turn the next one need not wait, so the turns become longer.
 */
static void
losers_wait(void **state)
{
	static const char *const turn_ms[] = {"400", "4000", "20000"};
	int64_t delayed = 0;

	for (unsigned int i = 0; i < 3 && delayed == 0; i++)
		delayed = losers_take_turns(turn_ms[i]);
	assert_in_range(delayed, 1, LOSSES);
}

static void
nobody_waits(void **state)
{
	start("0");
	for (unsigned int i = 0; i < LOSSES; i++)
		lose_one();
	assert_int_equal(counted("ended_segment_lost"), LOSSES);
	assert_int_equal(counted("clients_delayed"), 0);
	rig_stop(&rig);
}

static void
crashes_are_no_losses(void **state)
{
	start("400");
	for (unsigned int i = 0; i < KILLS; i++) {
		int ready[2], status;
		char byte;
		pid_t pid;

		assert_int_equal(pipe(ready), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct raw r;

			raw_open(&r, rig.path[0]);
			if (write(ready[1], "", 1) == 1)
				pause();
			_exit(1);
		}
		assert_int_equal(read(ready[0], &byte, 1), 1);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		close(ready[0]);
		close(ready[1]);
	}
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	assert_int_equal(counted("clients_accepted"), KILLS);
	assert_int_equal(counted("clients_delayed"), 0);
	rig_stop(&rig);
}

/* A client that waits can go, and the daemon can end. */
static void
waiting_ends(void **state)
{
	struct raw r, gone;

	start("60000");
	for (unsigned int i = 0; i < 4; i++)
		lose_one();
	/* from here on one waits for longer than the test lasts, unless the first took its turn */
	raw_connect(&r, rig.path[0]);
	raw_connect(&gone, rig.path[0]);
	raw_close(&gone);
	rig_stop(&rig);
	raw_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(losers_wait, rig_tidy),
		cmocka_unit_test_teardown(nobody_waits, rig_tidy),
		cmocka_unit_test_teardown(crashes_are_no_losses, rig_tidy),
		cmocka_unit_test_teardown(waiting_ends, rig_tidy),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
