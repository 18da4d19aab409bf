/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory of clients is charged to the clients: in groups with little memory a client cannot
 * register more than its group has, and the daemon's group does not grow by registrations of
 * clients. Skipped where this process may not make such groups.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc_rig.h"

#define MIB (UINT64_C(1) << 20)
#define CLIENT_MIB 64 /* limit of its group */
#define DAEMON_MIB 96
#define GROWS_MIB 16 /* the daemon's tables for its clients' memory */
#define REGISTERED (1024 * MIB)
#define FITS (16 * MIB)
#define UNLIMITED (256 * MIB) /* more than the daemon's group has */
#define OTHERS 4

/* By version of the interface */
static const struct names {
	const char *top, *limit, *swap, *used;
} names[] = {
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
	 "memory.usage_in_bytes"},
	{"/sys/fs/cgroup", "memory.max", "memory.swap.max", "memory.current"},
};
static const struct names *names_used;

static struct rig rig;

struct group {
	char path[96];
};
static struct group tight, small;

static int
set(const struct group *g, const char *name, uint64_t value)
{
	char path[160];
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "%s/%s", g->path, name);
	f = fopen(path, "we");
	if (f == NULL)
		return -errno;
	fprintf(f, "%lu", (unsigned long)value);
	err = fclose(f) == 0 ? 0 : -errno;
	return err;
}

static uint64_t
used(const struct group *g)
{
	char path[160];
	unsigned long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", g->path, names_used->used);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &n), 1);
	fclose(f);
	return n;
}

/* 0, or why it cannot be made; the group is gone then. */
static int
make_group(struct group *g, const char *name, uint64_t mib)
{
	int err;

	snprintf(g->path, sizeof(g->path), "%s/softhca-%s-%d", names_used->top, name,
		 (int)getpid());
	if (mkdir(g->path, 0755) != 0)
		return -errno;
	err = set(g, names_used->limit, mib * MIB);
	if (err != 0) {
		rmdir(g->path);
		return err;
	}
	/* where there is no such limit, there is no swap */
	set(g, names_used->swap, names_used == &names[0] ? mib * MIB : 0);
	return 0;
}

/* The last process may still be on its way out. */
static void
remove_group(struct group *g)
{
	for (int i = 0; g->path[0] != '\0' && rmdir(g->path) != 0 && errno == EBUSY && i < 2000;
	     i++)
		usleep(10000);
	g->path[0] = '\0';
}

static int
make_groups(void **state)
{
	int err = 0;

	for (size_t i = 0; i < 2; i++) {
		names_used = &names[i];
		err = make_group(&tight, "client", CLIENT_MIB);
		if (err == 0)
			break;
	}
	if (err == 0)
		err = make_group(&small, "daemon", DAEMON_MIB);
	if (err != 0) {
		remove_group(&tight);
		tight.path[0] = small.path[0] = '\0';
		printf("groups: no memory controller that this process may use: %s\n",
		       strerror(-err));
	}
	rig_start(&rig, NULL);
	return 0;
}

/* The daemon lives and ends as it should. */
static int
remove_groups(void **state)
{
	rig_tidy(state);
	rig_stop(&rig);
	remove_group(&tight);
	remove_group(&small);
	return 0;
}

struct job {
	const struct group *group;
	uint64_t bytes;
};

static int
client(int sock, void *arg)
{
	const struct job *job = arg;
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	uint8_t *mem;

	(void)sock;
	if (job->group != NULL && set(job->group, "cgroup.procs", (uint64_t)getpid()) != 0)
		return -1;
	mem = mmap(NULL, job->bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED || softhca_open(rig.path[0], &ctx) != 0)
		return -1;
	pd = softhca_alloc_pd(ctx);
	if (pd == NULL || softhca_reg_mr(pd, mem, job->bytes, 7) == NULL)
		return -1;
	return softhca_close(ctx);
}

/* Returns the status of a process that is this client. */
static int
run(const struct group *group, uint64_t bytes)
{
	struct job job = {group, bytes};
	int sock, status;
	pid_t pid = rig_fork(client, &job, &sock);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	rig_keep(pid);
	close(sock);
	return status;
}

static void
each_pays_its_own(void **state)
{
	uint64_t before;

	if (tight.path[0] == '\0')
		skip();
	assert_int_equal(set(&small, "cgroup.procs", (uint64_t)rig.pid), 0);
	before = used(&small);
	/* killed for want of memory, or told so */
	assert_int_not_equal(run(&tight, REGISTERED), 0);
	assert_true(used(&small) < before + GROWS_MIB * MIB);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	for (int i = 0; i < OTHERS; i++) /* others, and more in that group */
		assert_int_equal(run(i % 2 == 0 ? &tight : NULL, FITS), 0);
	assert_int_equal(run(NULL, UNLIMITED), 0);
	assert_true(used(&small) < before + GROWS_MIB * MIB);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pays_its_own),
	};

	return cmocka_run_group_tests(tests, make_groups, remove_groups);
}
