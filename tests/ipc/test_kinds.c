/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Kinds of memory on daemons without slow memory: one that trusts its own user and one that does
 * not. Memory that may be registered, with which rights, and memory that a quota refuses before it
 * is touched; and many pieces of slow memory.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc_rig.h"

#define PAGE UINT64_C(4096)
#define BYTES ((uint64_t)PEER_BYTES)
#define HUGE_BYTES (UINT64_C(2) << 20)
#define MEMORY_MB 64u
#define READS SOFTHCA_ACCESS_REMOTE_READ
#define WRITES (SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE)

#define KEEP (SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_KEEP_PRIVATE)

static struct rig trusting, strict, slow;

static int
start(void **state)
{
	static const char *const extra[] = {"12", "8", "64", NULL};

	rig_start(&slow, NULL);
	setenv("IPCD_NO_SLOW_MEMORY", "1", 1);
	rig_start(&strict, extra);
	setenv("IPCD_TRUST", "1", 1);
	rig_start(&trusting, extra);
	return 0;
}

static int
shut_down(void **state)
{
	rig_stop(&trusting);
	rig_stop(&strict);
	rig_stop(&slow);
	return 0;
}

/* A file without a name, of this size */
static int
file_in(const char *folder, uint64_t bytes)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/softhca-kinds-XXXXXX", folder);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

static uint8_t *
map(int fd, uint64_t bytes, int prot)
{
	uint8_t *mem =
		mmap(NULL, bytes, prot, fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd, 0);

	assert_ptr_not_equal(mem, MAP_FAILED);
	return mem;
}

/* The memory is written by a peer and read by it, on both devices of the daemon. */
static void
exchange(const struct rig *rig, uint8_t *mem)
{
	struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	struct softhca_wc wc;
	struct peer p, q;

	assert_int_equal(peer_open(&q, rig->path[1], &cfg), 0);
	cfg.buf = mem;
	if (peer_open(&p, rig->path[0], &cfg) != 0)
		fail_msg("%s", softhca_last_error(NULL));
	assert_int_equal(peer_connect_pair(&p, &q), 0);
	peer_fill(q.buf, BYTES / 2, 5);
	peer_fill(mem + BYTES / 2, BYTES / 2, 6);
	assert_int_equal(peer_post(&q, SOFTHCA_WR_RDMA_WRITE, 1, 0, BYTES / 2, 0), 0);
	assert_int_equal(peer_wait(&q, &wc, RIG_TIMEOUT_S), 0);
	assert_true(peer_verify(mem, BYTES / 2, 5));
	assert_int_equal(peer_post(&q, SOFTHCA_WR_RDMA_READ, 2, 0, BYTES / 2, BYTES / 2), 0);
	assert_int_equal(peer_wait(&q, &wc, RIG_TIMEOUT_S), 0);
	assert_true(peer_verify(q.buf, BYTES / 2, 6));
	peer_close(&p);
	peer_close(&q);
}

static void
take(const struct rig *rig, int fd, uint64_t bytes)
{
	uint8_t *mem = map(fd, bytes, PROT_READ | PROT_WRITE);

	exchange(rig, mem);
	munmap(mem, bytes);
	close(fd);
}

static struct softhca_pd *
open_pd(const struct rig *rig, struct softhca_context **ctx)
{
	struct softhca_pd *pd;

	assert_int_equal(softhca_open(rig->path[0], ctx), 0);
	pd = softhca_alloc_pd(*ctx);
	assert_non_null(pd);
	return pd;
}

static void
refused(struct softhca_pd *pd, void *mem, uint64_t bytes, uint32_t access, int error,
	const char *why)
{
	assert_null(softhca_reg_mr(pd, mem, bytes, access));
	if (errno != error || strstr(softhca_last_error(NULL), why) == NULL)
		fail_msg("%d: %s", errno, softhca_last_error(NULL));
}

/* Files in memory, sealed or not: of every user. */
static void
files_in_memory(void **state)
{
	const struct rig *rigs[] = {&trusting, &strict};

	for (int i = 0; i < 2; i++) {
		int fd = memfd_create("kinds", MFD_ALLOW_SEALING | MFD_CLOEXEC);

		assert_int_equal(ftruncate(fd, (off_t)(32 * BYTES)), 0);
		take(rigs[i], dup(fd), 32 * BYTES);
		assert_int_equal(fcntl(fd, F_GET_SEALS), 0); /* as it was */
		close(fd);
		fd = memfd_create("kinds", MFD_CLOEXEC);
		assert_int_equal(ftruncate(fd, (off_t)BYTES), 0);
		take(rigs[i], fd, BYTES);
		take(rigs[i], file_in("/dev/shm", BYTES), BYTES);
	}
}

/* Where the process may open the file, as root. */
static void
anonymous(void **state)
{
	char path[64];
	uint8_t *mem = map(-1, BYTES, PROT_READ | PROT_WRITE);
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)mem,
		 (unsigned long)(mem + BYTES));
	fd = open(path, O_RDWR);
	if (fd < 0)
		skip();
	close(fd);
	exchange(&trusting, mem);
	exchange(&strict, mem);
	munmap(mem, BYTES);
}

static void
hugepages(void **state)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	uint8_t *mem;

	if (fd < 0 || ftruncate(fd, (off_t)(2 * HUGE_BYTES)) != 0)
		skip();
	mem = mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED) {
		close(fd);
		skip();
	}
	exchange(&trusting, mem + HUGE_BYTES - PAGE);
	exchange(&strict, mem + HUGE_BYTES - PAGE);
	munmap(mem, 2 * HUGE_BYTES);
	close(fd);
}

/* Files of a disk: of the daemon's own user. */
static void
files_of_a_disk(void **state)
{
	int fd = file_in(".", BYTES - 100);
	uint8_t *mem = map(fd, BYTES, PROT_READ | PROT_WRITE);
	struct softhca_context *ctx;
	struct softhca_pd *pd;

	if (fcntl(fd, F_GET_SEALS) >= 0)
		skip(); /* the folder is one in memory */
	exchange(&trusting, mem);
	pd = open_pd(&strict, &ctx);
	assert_null(softhca_reg_mr(pd, mem, BYTES, WRITES));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(softhca_close(ctx), 0);
	munmap(mem, BYTES);
	close(fd);
}

/* A file that the program has open for reading is read, never written. */
static void
read_only(void **state)
{
	struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	int fd = file_in("/dev/shm", BYTES), only;
	struct softhca_mr *mr;
	struct softhca_wc wc;
	struct peer p, q;
	char path[40];
	uint8_t *mem;

	mem = map(fd, BYTES, PROT_READ | PROT_WRITE);
	peer_fill(mem, BYTES, 3);
	munmap(mem, BYTES);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	only = open(path, O_RDONLY);
	close(fd);
	mem = map(only, BYTES, PROT_READ);
	assert_int_equal(peer_open(&p, trusting.path[0], &cfg), 0);
	assert_int_equal(peer_open(&q, trusting.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&p, &q), 0);
	refused(p.pd, mem, BYTES, WRITES, EFAULT, "cannot be written");
	mr = softhca_reg_mr(p.pd, mem, BYTES, READS);
	assert_non_null(mr);
	q.other.addr = (uintptr_t)mem;
	q.other.rkey = mr->rkey;
	assert_int_equal(peer_post(&q, SOFTHCA_WR_RDMA_READ, 2, 0, BYTES, 0), 0);
	assert_int_equal(peer_wait(&q, &wc, RIG_TIMEOUT_S), 0);
	assert_true(peer_verify(q.buf, BYTES, 3));
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					  WRITES),
			 -EFAULT);
	assert_int_equal(peer_post(&q, SOFTHCA_WR_RDMA_WRITE, 3, 0, BYTES, 0), 0);
	assert_int_equal(peer_wait(&q, &wc, RIG_TIMEOUT_S), SOFTHCA_WC_REM_ACCESS_ERR);
	assert_true(peer_verify(mem, BYTES, 3));
	assert_int_equal(softhca_dereg_mr(mr), 0);
	peer_close(&p);
	peer_close(&q);
	munmap(mem, BYTES);
	close(only);
}

/* Rights against mappings: private memory that is read-only, without access, with a gap */
static void
rights(void **state)
{
	static const uint32_t writing[] = {
		SOFTHCA_ACCESS_LOCAL_WRITE,
		SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE,
		SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_ATOMIC,
		SOFTHCA_ACCESS_MW_BIND,
	};
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&trusting, &ctx);
	uint8_t *mem =
		mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *pages[2] = {mem + PAGE, mem + 3 * PAGE};
	struct softhca_mr *mr;

	memset(mem, 7, 6 * PAGE);
	assert_int_equal(mprotect(mem + PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(mprotect(mem + 2 * PAGE, PAGE, PROT_NONE), 0);
	for (size_t i = 0; i < sizeof(writing) / sizeof(writing[0]); i++) {
		refused(pd, mem + PAGE, PAGE, writing[i], EFAULT, "cannot be written");
		refused(pd, mem, 2 * PAGE, writing[i], EFAULT, "cannot be written");
	}
	refused(pd, mem + 2 * PAGE, 1, 0, EFAULT, "cannot be read");
	refused(pd, mem, 6 * PAGE, READS, EFAULT, "cannot be read");
	assert_int_equal(munmap(mem + 4 * PAGE, PAGE), 0);
	refused(pd, mem + 3 * PAGE, 3 * PAGE, READS, EFAULT, "nothing is mapped");
	assert_null(softhca_reg_mr_pages(pd, 0, 2 * PAGE, PAGE, pages, 2, WRITES));
	assert_int_equal(errno, EFAULT);
	mr = softhca_reg_mr_pages(pd, 0, 2 * PAGE, PAGE, pages, 2, READS);
	assert_non_null(mr);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	mr = softhca_reg_mr(pd, mem + PAGE, PAGE, 0);
	assert_non_null(mr);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					  WRITES),
			 -EFAULT);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL,
					  mem + 2 * PAGE, PAGE, 0),
			 -EFAULT);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, READS),
			 0);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	munmap(mem, 4 * PAGE);
	munmap(mem + 5 * PAGE, PAGE);
	assert_int_equal(softhca_close(ctx), 0);
}

/* Over the quota: nothing was exchanged, and no page was taken. */
static void
quota_first(void **state)
{
	const uint64_t bytes = (MEMORY_MB + 16) << 20;
	unsigned char present[4];
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&trusting, &ctx);
	uint8_t *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int64_t attaches = rig_ask(&trusting, "counters", 0, "calls_attach");

	assert_ptr_not_equal(mem, MAP_FAILED);
	refused(pd, mem + 16, bytes - PAGE, WRITES, ENOMEM, "memory_mb");
	assert_int_equal(rig_ask(&trusting, "counters", 0, "calls_attach"), attaches);
	for (uint64_t at = 0; at < bytes; at += 4 << 20) {
		assert_int_equal(mincore(mem + at, sizeof(present) * PAGE, present), 0);
		assert_int_equal(present[0] | present[1] | present[2] | present[3], 0);
	}
	munmap(mem, bytes);
	assert_int_equal(softhca_close(ctx), 0);
}

/* Bytes that the daemon has read so far */
static uint64_t
daemon_has_read(void)
{
	char path[40], line[80];
	unsigned long long bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/io", (int)slow.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL && sscanf(line, "rchar: %llu", &bytes) != 1)
		;
	fclose(f);
	return bytes;
}

/*
 * A process with many mappings registers many pieces: the daemon reads the list of mappings once,
 * not once for each piece.
 */
static void
many_mappings(void **state)
{
	enum {
		PIECES = 500
	};
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&slow, &ctx);
	uint8_t *mem = mmap(NULL, 2 * PIECES * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *pages[PIECES];
	struct softhca_mr *mr;
	uint64_t before;

	for (unsigned int i = 0; i < PIECES; i++) {
		pages[PIECES - 1 - i] = mem + (size_t)2 * i * PAGE;
		assert_int_equal(mprotect(mem + (size_t)(2 * i + 1) * PAGE, PAGE, PROT_READ), 0);
	}
	before = daemon_has_read();
	mr = softhca_reg_mr_pages(pd, (uintptr_t)mem, PIECES * PAGE, PAGE, pages, PIECES, KEEP);
	assert_non_null(mr);
	/* a line has some 50 bytes, and the process also has other mappings */
	assert_in_range(daemon_has_read() - before, 2 * PIECES * 20, 2 * PIECES * 200);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	/* one page is not writable: it is the last in the list, and the first in the memory */
	pages[PIECES - 1] = mem + PAGE;
	assert_null(
		softhca_reg_mr_pages(pd, (uintptr_t)mem, PIECES * PAGE, PAGE, pages, PIECES, KEEP));
	assert_int_equal(errno, EFAULT);
	munmap(mem, (size_t)2 * PIECES * PAGE);
	assert_int_equal(softhca_close(ctx), 0);
}

/*
 * A client that truncates its file ends alone. The device writes zeros until the thread of its
 * session has had a CPU.
 */
static int
truncates(int sock, void *arg)
{
	uint64_t give_up = rig_now_ns() + RIG_TIMEOUT_S * UINT64_C(1000000000);
	const struct rig *rig = arg;
	struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	int fd = file_in(rig == &trusting ? "." : "/dev/shm", BYTES), err;
	struct softhca_wc wc;
	struct peer p, q;

	err = peer_open(&q, rig->path[1], &cfg);
	cfg.buf = map(fd, BYTES, PROT_READ | PROT_WRITE);
	if (err == 0)
		err = peer_open(&p, rig->path[0], &cfg);
	if (err == 0)
		err = peer_connect_pair(&p, &q);
	if (err != 0 || ftruncate(fd, 0) != 0)
		return -1;
	while (err == 0 && rig_now_ns() < give_up) {
		err = peer_post(&p, SOFTHCA_WR_RDMA_WRITE, 1, 0, 65536, 0);
		if (err == 0)
			err = peer_wait(&p, &wc, RIG_TIMEOUT_S);
	}
	while (err > 0) /* its QP ends with the session, and may flush before the end is seen */
		err = peer_wait(&p, &wc, RIG_TIMEOUT_S);
	return err == -EIO ? 0 : -1;
}

static void
truncated(void **state)
{
	struct rig *rigs[] = {&trusting, &strict};

	for (int i = 0; i < 2; i++) {
		int64_t before = rig_ask(rigs[i], "counters", 0, "ended_segment_lost");
		struct bystanders by;
		pid_t pid;
		int sock;

		bystanders_start(&by, rigs[i]);
		pid = rig_fork(truncates, rigs[i], &sock);
		rig_join(pid);
		close(sock);
		bystanders_stop(&by);
		assert_int_equal(rig_ask(rigs[i], "counters", 0, "ended_segment_lost"), before + 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(files_in_memory, rig_tidy),
		cmocka_unit_test_teardown(anonymous, rig_tidy),
		cmocka_unit_test_teardown(hugepages, rig_tidy),
		cmocka_unit_test_teardown(files_of_a_disk, rig_tidy),
		cmocka_unit_test_teardown(read_only, rig_tidy),
		cmocka_unit_test_teardown(rights, rig_tidy),
		cmocka_unit_test_teardown(quota_first, rig_tidy),
		cmocka_unit_test_teardown(many_mappings, rig_tidy),
		cmocka_unit_test_teardown(truncated, rig_tidy),
	};

	cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
	return cmocka_run_group_tests(tests, start, shut_down);
}
