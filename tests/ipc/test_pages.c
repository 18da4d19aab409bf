/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Client memory whose pages are not there, or do not stay: of hugepages, and memory that is filled
 * after it was refused. The daemon allocates no page. (Pages of 4 KiB: also test_boundary.c.)
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc_rig.h"
#include "raw.h"

#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21u << 26)
#endif

#define VA UINT64_C(0x40000000)
#define HUGE UINT64_C(0x200000)
#define PAGES 4u      /* more than the limit of small files */
#define FREE_PAGES 12 /* of all tests of this file at once, and some */

RIG_OF_ALL(rig)

static void
need_hugepages(void)
{
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re");
	int n = 0;

	if (f != NULL && fscanf(f, "%d", &n) != 1)
		n = 0;
	if (f != NULL)
		fclose(f);
	if (n >= FREE_PAGES)
		return;
	printf("hugepages: %d of 2 MiB are free, the test needs %d\n", n, FREE_PAGES);
	skip();
}

/* A file that may be attached, filled but for the pages in the bit mask `holes` */
static int
huge_file(unsigned int pages, uint32_t holes)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_HUGE_2MB);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(pages * HUGE)), 0);
	for (unsigned int i = 0; i < pages; i++)
		if ((holes >> i & 1) == 0)
			assert_int_equal(fallocate(fd, 0, (off_t)(i * HUGE), HUGE), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

/* Allocated hugepages of a file */
static uint64_t
allocated(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512 / HUGE;
}

static int64_t
counted(const char *name)
{
	return rig_ask(&rig, "counters", 0, name);
}

static int
punch(int fd, uint64_t bytes)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
}

static void
all_gone(void)
{
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
}

/* Wherever the hole is, in files of both kinds: small ones, which may be shared, and large ones. */
static void
holes(void **state)
{
	static const struct {
		unsigned int pages;
		uint32_t holes;
	} files[] = {{1, 1},	       {2, 1},		 {2, 2},      {PAGES, 1},
		     {PAGES, 1u << 2}, {PAGES, 1u << 3}, {PAGES, 0xf}};
	int64_t before;

	need_hugepages();
	before = counted("refused_request");
	for (unsigned int i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = huge_file(files[i].pages, files[i].holes);
		uint64_t has = allocated(fd);
		struct raw r;

		raw_open(&r, rig.path[0]);
		assert_int_equal(raw_attach(&r, fd, VA, files[i].pages * HUGE, 0), -EFAULT);
		assert_non_null(strstr(r.head.reason, "has holes"));
		assert_int_equal(raw_attach(&r, fd, VA, HUGE / 2, 0), -EINVAL);
		assert_non_null(strstr(r.head.reason, "pages are 2097152"));
		assert_int_equal(allocated(fd), has);
		/* as it was told */
		assert_int_equal(fallocate(fd, 0, 0, (off_t)(files[i].pages * HUGE)), 0);
		assert_int_equal(raw_attach(&r, fd, VA, files[i].pages * HUGE, 0), 0);
		raw_close(&r);
		close(fd);
	}
	assert_int_equal(counted("refused_request") - before, 2 * sizeof(files) / sizeof(files[0]));
	all_gone();
}

/* The refusal leaves no trace at the file, large or small. */
static void
filled_later(void **state)
{
	static const uint64_t sizes[] = {1 << 20, 16 << 20};

	for (unsigned int i = 0; i < 2; i++) {
		int fd = memfd_create("holes", MFD_ALLOW_SEALING | MFD_CLOEXEC);
		struct raw r;

		assert_int_equal(ftruncate(fd, (off_t)sizes[i]), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
		raw_open(&r, rig.path[0]);
		assert_int_equal(raw_attach(&r, fd, VA, sizes[i], 0), -EFAULT);
		for (uint64_t at = 0; at < sizes[i]; at += 4096)
			assert_int_equal(pwrite(fd, "", 1, (off_t)at), 1);
		assert_int_equal(raw_attach(&r, fd, VA, sizes[i], 0), 0);
		raw_close(&r);
		close(fd);
	}
	all_gone();
}

static void
whole(void **state)
{
	need_hugepages();
	for (unsigned int pages = 1; pages <= PAGES; pages++) {
		const struct hca_ctl_mr mr = {.va = VA, .length = pages * HUGE, .access = 7};
		int fd = huge_file(pages, 0);
		struct hca_ctl_mr own = mr;
		struct raw r;

		raw_open(&r, rig.path[0]);
		assert_int_equal(raw_call(&r, HCA_CTL_ALLOC_PD, NULL, 0, -1), 0);
		own.pdn = r.number;
		assert_int_equal(raw_attach(&r, fd, VA, pages * HUGE, 0), 0);
		assert_int_equal(raw_call(&r, HCA_CTL_REG_MR, &own, sizeof(own), -1), 0);
		assert_int_equal(allocated(fd), pages);
		raw_close(&r);
		close(fd);
	}
	all_gone();
}

/*
 * One WRITE after the other from memory that the client removes meanwhile, until the thread of its
 * session has had a CPU and has ended it.
 */
static int
write_and_punch(int fd, unsigned int pages)
{
	uint64_t give_up = rig_now_ns() + RIG_TIMEOUT_S * UINT64_C(1000000000);
	struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	const uint64_t bytes = pages * HUGE;
	uint8_t *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct softhca_wc wc;
	struct peer p, q;
	int err = mem == MAP_FAILED ? -errno : peer_open(&q, rig.path[1], &cfg);

	cfg.buf = mem;
	if (err == 0)
		err = peer_open(&p, rig.path[0], &cfg);
	if (err == 0)
		err = peer_connect_pair(&p, &q);
	for (uint64_t i = 1; err == 0 && rig_now_ns() < give_up; i++) {
		if (punch(fd, bytes) != 0 || madvise(mem, bytes, MADV_REMOVE) != 0)
			return -EBADE;
		err = peer_post(&p, SOFTHCA_WR_RDMA_WRITE, i, 0, 65536, 0);
		if (err == 0)
			err = peer_wait(&p, &wc, RIG_TIMEOUT_S);
	}
	while (err > 0) /* its QP ends with the session, and may flush before the end is seen */
		err = peer_wait(&p, &wc, RIG_TIMEOUT_S);
	if (err == 0) {
		peer_close(&p);
		peer_close(&q);
		munmap(mem, bytes);
	}
	return err;
}

static int
puncher(int sock, void *arg)
{
	unsigned int pages = *(const unsigned int *)arg;
	int fd = huge_file(pages, 0), err = write_and_punch(fd, pages);

	(void)sock;
	if (err != -EIO)
		fprintf(stderr, "puncher: %d\n", err);
	return err == -EIO ? 0 : -1;
}

/* A client that removes pages of its file loses the device, and others lose nothing. */
static void
punched(void **state)
{
	static unsigned int sizes[] = {1, PAGES};
	int64_t before;

	need_hugepages();
	before = counted("ended_segment_lost");
	for (int i = 0; i < 4; i++) {
		int sock;
		pid_t pid = rig_fork(puncher, &sizes[i % 2], &sock);

		rig_join(pid);
		close(sock);
	}
	assert_int_equal(counted("ended_segment_lost") - before, 4);
	all_gone();
	whole(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(holes, rig_tidy),
		cmocka_unit_test_teardown(filled_later, rig_tidy),
		cmocka_unit_test_teardown(whole, rig_tidy),
		cmocka_unit_test_teardown(punched, rig_tidy),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start, shut_down);
}
