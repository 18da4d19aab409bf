/* SPDX-License-Identifier: BSD-3-Clause */

/* Leftovers of sessions in the daemon when they have ended, well or killed: none that add up. */

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi_bar.h"
#include "ipc_rig.h"

#define FIRST 80u /* sessions that use for the first time resources kept for later ones */
#define SESSIONS 420u
#define OBJECTS 8u /* of each kind in a session */
#define KILLS 30u
#define SLACK_KB 1024 /* of the C library; all contexts of 3,360 QPs, CQs and regions are 2 MiB */
#define SLACK_MAPPINGS 10 /* stacks that the C library keeps for the next threads */

static struct rig rig;

struct counts {
	int64_t memory, mappings, bar2, descriptors;
};

/* All mappings, and those of BAR2. */
static void
count_mappings(struct counts *c)
{
	uint64_t bar2 = (uint64_t)rig_ask(&rig, "places", 0, "bar2"), from, to;
	char path[64], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)rig.pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		c->mappings++;
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from < bar2 + HCA_BAR2_SIZE &&
		    to > bar2)
			c->bar2++;
	}
	fclose(file);
}

static int64_t
anonymous_kb(void)
{
	char path[64], line[256];
	long kb = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)rig.pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (kb < 0 && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "RssAnon: %ld", &kb) != 1)
			kb = -1;
	fclose(file);
	assert_true(kb > 0);
	return kb;
}

static int64_t
descriptors(void)
{
	char path[64];
	int64_t n = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)rig.pid);
	folder = opendir(path);
	assert_non_null(folder);
	while (readdir(folder) != NULL)
		n++;
	closedir(folder);
	return n;
}

static struct counts
count(void)
{
	struct counts c = {0};

	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
	c.memory = anonymous_kb();
	c.descriptors = descriptors();
	count_mappings(&c);
	return c;
}

static void
print_counts(const char *when, const struct counts *c)
{
	printf("%s: %ld KiB, %ld descriptors, %ld mappings, %ld of them of BAR2\n", when,
	       (long)c->memory, (long)c->descriptors, (long)c->mappings, (long)c->bar2);
}

static bool
nothing_added(const struct counts *before, const struct counts *after)
{
	return after->descriptors <= before->descriptors && after->bar2 == 1 &&
	       after->mappings <= before->mappings + SLACK_MAPPINGS &&
	       after->memory <= before->memory + SLACK_KB;
}

/* Threads and descriptors of sessions end a moment after their objects. */
static void
judge(const struct counts *before)
{
	uint64_t end = rig_now_ns() + RIG_TIMEOUT_MS * UINT64_C(1000000);
	struct counts after = count();

	print_counts("before", before);
	while (!nothing_added(before, &after) && rig_now_ns() < end) {
		usleep(100000);
		after = count();
	}
	print_counts("after", &after);
	assert_true(nothing_added(before, &after));
}

/* Its objects end with it. */
static void
session(uint8_t *mem)
{
	struct softhca_cq_init_attr ca = {.cqe = 16};
	struct softhca_context *ctx;
	struct softhca_pd *pd;

	assert_int_equal(softhca_open(rig.path[0], &ctx), 0);
	pd = softhca_alloc_pd(ctx);
	assert_non_null(pd);
	for (unsigned int i = 0; i < OBJECTS; i++) {
		struct softhca_qp_init_attr qa = {
			.qp_type = SOFTHCA_QPT_RC,
			.cap = {16, 16, 1, 1, 0},
		};

		qa.send_cq = qa.recv_cq = softhca_create_cq(ctx, &ca);
		assert_non_null(qa.send_cq);
		assert_non_null(softhca_create_qp(pd, &qa));
		assert_non_null(softhca_reg_mr(pd, mem, 4096, 0));
	}
	softhca_close(ctx);
}

static void
sessions(unsigned int n)
{
	uint8_t *mem = softhca_alloc(4096);

	assert_non_null(mem);
	for (unsigned int i = 0; i < n; i++)
		session(mem);
	assert_int_equal(softhca_free(mem), 0);
}

/* Posts all the time, until the parent kills it. */
static int
victim(int sock, void *arg)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	struct softhca_wc wc[16];
	struct peer a, b;
	int err = peer_open(&a, rig.path[0], &cfg);

	if (err == 0)
		err = peer_open(&b, rig.path[1], &cfg);
	if (err == 0)
		err = peer_connect_pair(&a, &b);
	if (err == 0)
		err = peer_meet(sock);
	while (err == 0) {
		peer_post(&a, SOFTHCA_WR_RDMA_WRITE, 1, 0, 4096, 0);
		softhca_poll_cq(a.cq, 16, wc);
	}
	return err;
}

static void
kills(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		int sock;
		pid_t pid = rig_fork(victim, NULL, &sock);

		assert_int_equal(peer_meet(sock), 0);
		usleep(i * 100);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		rig_keep(pid);
		close(sock);
	}
}

static void
ended_well(void **state)
{
	struct counts before;

	sessions(FIRST);
	before = count();
	sessions(SESSIONS);
	judge(&before);
}

static void
killed(void **state)
{
	struct counts before;

	kills(KILLS);
	before = count();
	kills(KILLS);
	judge(&before);
}

static int
start(void **state)
{
	/* an arena of the C library takes memory when threads use it for the first time */
	setenv("MALLOC_ARENA_MAX", "1", 1);
	rig_start(&rig, NULL);
	unsetenv("MALLOC_ARENA_MAX");
	return 0;
}

static int
shut_down(void **state)
{
	rig_stop(&rig);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ended_well, rig_tidy),
		cmocka_unit_test_teardown(killed, rig_tidy),
	};

	return cmocka_run_group_tests(tests, start, shut_down);
}
