/* SPDX-License-Identifier: BSD-3-Clause */

/* Other actions of a process: it forks, locks, and reaches its limits. */

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rows.h"

#define PAGES 16u

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* ---- fork ---- */

static _Noreturn void
child(uint8_t *at, int fd)
{
	char word;

	row_check(at, PAGES * PAGE, 1);
	row_fill(at, PAGES * PAGE, 2);
	if (write(fd, "a", 1) != 1 || read(fd, &word, 1) != 1)
		_exit(2);
	row_check(at, PAGES * PAGE, 2);
	_exit(0);
}

/* Neither sees the writes of the other; the device writes to the parent's memory. */
static void
forked(struct row *row)
{
	uint8_t *at = row_pages(PAGES, 1);
	struct ibv_mr *mr = row_reg(row, at, PAGES * PAGE - 100, ALL_ACCESS);
	int end[2], status;
	char word;
	pid_t pid;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, end) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child(at, end[1]);
	CHECK(read(end[0], &word, 1) == 1);
	row_check(at, PAGES * PAGE, 1);
	row_exchange(row, at, PAGES * PAGE - 100, mr, 3);
	CHECK(write(end[0], &word, 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	row_check(at, PAGES * PAGE - 100, 4);
	row_dereg(mr);
	row_check(at, PAGES * PAGE - 100, 4);
}

/* Pages added to a registered mapping are also private. */
static void
forked_grown(struct row *row)
{
	uint8_t *at = mmap(NULL, 32 * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	int status;
	pid_t pid;

	CHECK(at != MAP_FAILED && munmap(at + PAGE, 31 * PAGE) == 0);
	row_fill(at, PAGE, 1);
	mr = row_reg(row, at, PAGE, ALL_ACCESS);
	if (mremap(at, PAGE, PAGES * PAGE, 0) == MAP_FAILED)
		row_skip("the mapping cannot grow where it is");
	row_fill(at, PAGES * PAGE, 1);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		row_check(at, PAGES * PAGE, 1);
		row_fill(at, PAGES * PAGE, 2);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	row_check(at, PAGES * PAGE, 1);
	row_dereg(mr);
	row_check(at, PAGES * PAGE, 1);
}

static void
dontfork(struct row *row)
{
	uint8_t *at = row_pages(PAGES, 1);
	struct ibv_mr *mr;
	int status;
	pid_t pid;

	CHECK(madvise(at, PAGES * PAGE, MADV_DONTFORK) == 0);
	mr = row_reg(row, at, PAGES * PAGE, ALL_ACCESS);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	row_exchange(row, at, PAGES * PAGE, mr, 2);
	CHECK(madvise(at, PAGES * PAGE, MADV_DOFORK) == 0);
	row_dereg(mr);
	row_check(at, PAGES * PAGE, 3);
}

/* ---- locked, huge, guarded, with a key ---- */

/* Registered and given up, with all bytes where they were */
static void
comes_and_goes(struct row *row, uint8_t *at, size_t bytes)
{
	struct ibv_mr *mr;

	row_fill(at, bytes, 1);
	mr = row_reg(row, at, bytes, ALL_ACCESS);
	row_check(at, bytes, 1);
	row_exchange(row, at, bytes, mr, 2);
	row_dereg(mr);
	row_check(at, bytes, 3);
}

static void
all_locked(struct row *row)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
		row_skip("memory cannot be locked");
	comes_and_goes(row, row_pages(PAGES, 1), PAGES * PAGE);
	CHECK(munlockall() == 0);
	comes_and_goes(row, row_pages(PAGES, 1), PAGES * PAGE);
}

static void
transparent_huge(struct row *row)
{
	size_t huge = (size_t)2 << 20;
	uint8_t *at = mmap(NULL, 3 * huge, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *page;
	struct ibv_mr *mr;

	CHECK(at != MAP_FAILED);
	at += -(uintptr_t)at & (huge - 1);
	if (madvise(at, 2 * huge, MADV_HUGEPAGE) != 0)
		row_skip("there are no transparent huge pages");
	row_fill(at, 2 * huge, 1);
	page = at + 100 * PAGE;
	mr = row_reg(row, page, PAGE, ALL_ACCESS);
	row_check(at, 2 * huge, 1);
	row_send(row, page, PAGE, mr);
	row_dereg(mr);
	row_check(at, 2 * huge, 1);
	comes_and_goes(row, at + huge / 2, huge / 4);
}

static void
guard_pages(struct row *row)
{
	uint8_t *at = row_pages(PAGES + 2, 1);
	char perms[5];

	CHECK(mprotect(at, PAGE, PROT_NONE) == 0);
	CHECK(mprotect(at + (PAGES + 1) * PAGE, PAGE, PROT_NONE) == 0);
	comes_and_goes(row, at + PAGE, PAGES * PAGE);
	row_refused(row, at, (PAGES + 2) * PAGE, ALL_ACCESS);
	row_refused(row, at + PAGE, (PAGES + 1) * PAGE, 0);
	row_check(at + PAGE, PAGES * PAGE, 3);
	row_perms(at, perms);
	CHECK(strcmp(perms, "---p") == 0);
	row_perms(at + (PAGES + 1) * PAGE, perms);
	CHECK(strcmp(perms, "---p") == 0);
}

/* Guards without a mapping of their own: a touch is SIGSEGV, and must not come from the library. */
static void
guard_installed(struct row *row)
{
	uint8_t *at = row_pages(PAGES, 1);

	if (madvise(at + 8 * PAGE, PAGE, MADV_GUARD_INSTALL) != 0)
		row_skip("this kernel has no such guards");
	if (!row->in_place)
		row_refused(row, at, PAGES * PAGE, ALL_ACCESS);
	row_check(at, 8 * PAGE, 1);
	comes_and_goes(row, at, 8 * PAGE);
}

static void
with_key(struct row *row)
{
	uint8_t *at = row_pages(PAGES, 1);
	int key = pkey_alloc(0, 0);

	if (key < 0)
		row_skip("the CPU has no protection keys");
	CHECK(pkey_mprotect(at, PAGES * PAGE, READ_WRITE, key) == 0);
	comes_and_goes(row, at, PAGES * PAGE);
	/* the key still guards it */
	CHECK(pkey_set(key, PKEY_DISABLE_WRITE) == 0);
	CHECK(pkey_set(key, 0) == 0);
	row_check(at, PAGES * PAGE, 3);
}

/* ---- limits ---- */

static long
number_in(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	char line[128];
	long value = -1;

	while (file != NULL && value < 0 && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, key, strlen(key)) == 0)
			value = atol(line + strlen(key));
	if (file != NULL)
		fclose(file);
	return value;
}

/* Each second page is protected, until the process may have no more mappings. Returns the pages. */
static size_t
fill_mappings(uint8_t *at, size_t pages)
{
	for (size_t i = 0; i < pages; i += 2)
		if (mprotect(at + i * PAGE, PAGE, PROT_READ) != 0)
			return i;
	return pages;
}

/* Nothing is lost, and all works again when there is room. */
static void
most_mappings(struct row *row)
{
	long most = number_in("/proc/sys/vm/max_map_count", "");
	size_t pages = (size_t)most + 64, filled;
	uint8_t *many = mmap(NULL, pages * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at = row_pages(PAGES, 1), *late = row_pages(PAGES, 2);
	struct ibv_mr *mr, *refused;

	if (most <= 0 || most > 1000000 || many == MAP_FAILED)
		row_skip("there is no limit that can be reached");
	mr = row_reg(row, at + 4 * PAGE, 4 * PAGE, ALL_ACCESS);
	filled = fill_mappings(many, pages);
	CHECK(filled < pages);
	errno = 0;
	refused = ibv_reg_mr(row->all.pd, late + 4 * PAGE, 4 * PAGE, ALL_ACCESS);
	CHECK(row->in_place || (refused == NULL && errno == ENOMEM));
	row_check(late, PAGES * PAGE, 2);
	row_check(at, PAGES * PAGE, 1);
	row_dereg(mr);
	row_check(at, PAGES * PAGE, 1);
	if (refused != NULL)
		row_dereg(refused);
	CHECK(munmap(many, pages * PAGE) == 0);
	comes_and_goes(row, at, PAGES * PAGE);
	comes_and_goes(row, late, PAGES * PAGE);
}

#define SCATTERED 4000u
#define APART (4 * PAGE)
#define BATCH 100u

/* Bytes that the process reads for a batch of registrations: descriptions of its mappings */
static long
bytes_read(struct row *row, uint8_t *at, struct ibv_mr **mr)
{
	long before = number_in("/proc/self/io", "rchar: ");

	for (uint32_t i = 0; i < BATCH; i++)
		mr[i] = row_reg(row, at + i * APART, PAGE, ALL_ACCESS);
	return number_in("/proc/self/io", "rchar: ") - before;
}

/* The last of many registrations do not read more than the first ones. */
static void
scattered(struct row *row)
{
	static struct ibv_mr *mr[SCATTERED];
	uint8_t *at = mmap(NULL, SCATTERED * APART, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long first = 0, last = 0;
	struct ibv_device_attr attr;

	CHECK(at != MAP_FAILED && ibv_query_device(row->all.context, &attr) == 0);
	if (attr.max_mr < (int)SCATTERED + 100)
		row_skip("the device has fewer regions");
	for (uint32_t i = 0; i < SCATTERED; i += BATCH) {
		last = bytes_read(row, at + i * APART, mr + i);
		if (i == 0)
			first = last;
	}
	printf("%ld bytes read for the first %u regions, %ld for the last\n", first, BATCH, last);
	CHECK(first < 0 || last <= first + first / 2 + 65536);
	for (uint32_t i = 0; i < SCATTERED; i++) {
		at[i * APART] = (uint8_t)i;
		row_dereg(mr[i]);
		CHECK(at[i * APART] == (uint8_t)i);
	}
}

/* ---- memory that goes back ---- */

#define LARGE ((size_t)256 << 20)
#define SAMPLES_MIN 3u

/* Memory of the process and of the file with the pages of its regions, sampled by a thread */
struct sampler {
	int fd;
	bool over;
	uint64_t most;	  /* bytes */
	uint32_t between; /* samples while a part of the pages was private */
};

/* The descriptor of one of these files, or -1 */
static int
find_file(const char *start)
{
	char link[64], name[64];

	for (int fd = 3; fd < 1024; fd++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, name, sizeof(name) - 1);
		if (n <= 0)
			continue;
		name[n] = 0;
		if (strncmp(name, start, strlen(start)) == 0)
			return fd;
	}
	return -1;
}

static void
take_sample(struct sampler *s)
{
	uint64_t anonymous = (uint64_t)number_in("/proc/self/status", "RssAnon:") << 10;
	uint64_t file, sum;
	struct stat st;

	CHECK(fstat(s->fd, &st) == 0);
	file = (uint64_t)st.st_blocks * 512;
	sum = anonymous + file;
	if (sum > s->most)
		s->most = sum;
	if (file > LARGE / 8 && anonymous > LARGE / 8)
		s->between++;
}

static void *
sampler_main(void *arg)
{
	struct sampler *s = arg;

	while (!__atomic_load_n(&s->over, __ATOMIC_RELAXED))
		take_sample(s);
	return NULL;
}

/* A page does not exist twice because its region ends: programs register most of the memory. */
static void
goes_back_in_parts(struct row *row)
{
	uint8_t *at = row_pages(LARGE / PAGE, 1);
	struct ibv_mr *mr = row_reg(row, at, LARGE, ALL_ACCESS);
	struct sampler s = {.fd = find_file("/memfd:softhca-private")};
	pthread_t thread;

	if (s.fd < 0)
		row_skip("memory stays where it is");
	CHECK(pthread_create(&thread, NULL, sampler_main, &s) == 0);
	row_dereg(mr);
	__atomic_store_n(&s.over, true, __ATOMIC_RELAXED);
	CHECK(pthread_join(thread, NULL) == 0);
	row_check(at, LARGE, 1);
	printf("at most %llu MiB of %llu, %u samples\n", (unsigned long long)s.most >> 20,
	       (unsigned long long)LARGE >> 20, s.between);
	CHECK(s.most < LARGE + LARGE / 2);
	if (s.between < SAMPLES_MIN)
		row_skip("no CPU for samples");
	CHECK(munmap(at, LARGE) == 0);
}

/* A program that closes unknown descriptors has other files under their numbers. */
static void
closes_descriptors(struct row *row)
{
	uint8_t *at = row_pages(PAGES, 1);
	int fd;

	comes_and_goes(row, at, PAGES * PAGE);
	fd = find_file("anon_inode:[userfaultfd]");
	if (fd < 0)
		row_skip("memory stays where it is");
	CHECK(dup2(STDERR_FILENO, fd) == fd);
	comes_and_goes(row, at, PAGES * PAGE);
	CHECK(fcntl(fd, F_GETFD) == 0);
	CHECK(close(fd) == 0);
	comes_and_goes(row, at, PAGES * PAGE);
}

#define GIANT ((size_t)1 << 30)

/* It begins within a page, so that it has one page more than a power of 2. */
static void
giant(struct row *row)
{
	uint8_t *at = mmap(NULL, GIANT + PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	CHECK(at != MAP_FAILED);
	row_fill(at + GIANT - PAGE, PAGE, 1);
	mr = row_reg(row, at + 16, GIANT, ALL_ACCESS);
	row_exchange(row, at + GIANT - PAGE, PAGE + 16, mr, 2);
	row_exchange(row, at + 16, PAGE, mr, 4);
	row_dereg(mr);
	row_check(at + GIANT - PAGE, PAGE + 16, 3);
	row_check(at + 16, PAGE, 5);
	CHECK(munmap(at, GIANT + PAGE) == 0);
}

struct row rows_process[] = {
	{"forked", forked, 0},
	{"forked_grown", forked_grown, 0},
	{"dontfork", dontfork, 0},
	{"all_locked", all_locked, 0},
	{"transparent_huge", transparent_huge, 0},
	{"guard_pages", guard_pages, 0},
	{"guard_installed", guard_installed, 0},
	{"with_key", with_key, 0},
	{"most_mappings", most_mappings, 0},
	{"scattered", scattered, 0},
	{"closes_descriptors", closes_descriptors, 0},
	{"goes_back_in_parts", goes_back_in_parts, 0},
	{"giant", giant, 0},
	{0},
};
