/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The time of day jumps by days in the daemon and its clients: no wait depends on it. Verified
 * traffic, events, clients that connect and disconnect, and the end of the daemon take as long as
 * ever.
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ipc_rig.h"

#define ATTACHES 20u
#define ROUNDS 20u

static struct rig rig;

static int
listener(int sock, void *arg)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .events = true};

	return peer_visit(rig.path[*(unsigned int *)arg], sock, &cfg, ROUNDS);
}

static void
clock_jumps(void **state)
{
	unsigned int near = 0, far = 1;
	struct bystanders by;
	int sock;
	pid_t pid;

	rig_start(&rig, NULL);
	bystanders_start(&by, &rig);
	pid = rig_fork(listener, &far, &sock);
	assert_int_equal(listener(sock, &near), 0);
	rig_join(pid);
	close(sock);
	for (unsigned int i = 0; i < ATTACHES; i++) {
		struct softhca_context *ctx;

		assert_int_equal(softhca_open(rig.path[i % 2], &ctx), 0);
		assert_non_null(softhca_alloc_pd(ctx));
		assert_int_equal(softhca_close(ctx), 0);
	}
	bystanders_stop(&by);
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
	rig_stop(&rig);
}

/* Check that the time jumps in this process. */
static void
preloaded(void **state)
{
	time_t a = time(NULL), b = time(NULL);

	assert_true(labs((long)(a - b)) > 3600);
}

/* LD_PRELOAD splits at blanks, so the library is named by a symbolic link without one. */
static int
again_with(const char *library, char **argv)
{
	const char *folder = getenv("TMPDIR");
	char link[256];

	snprintf(link, sizeof(link), "%s/softhca-clock-%d.so", folder != NULL ? folder : "/tmp",
		 (int)getpid());
	if (symlink(library, link) != 0) {
		perror(link);
		return 1;
	}
	setenv("LD_PRELOAD", link, 1);
	execv("/proc/self/exe", argv);
	perror("execv");
	unlink(link);
	return 1;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(preloaded),
		cmocka_unit_test_teardown(clock_jumps, rig_tidy),
	};
	const char *clock = getenv("CLOCK"), *link = getenv("LD_PRELOAD");
	int failed;

	if (clock == NULL)
		return 77; /* sanitizers want to be loaded first */
	if (link == NULL)
		return again_with(clock, argv);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(link);
	return failed;
}
