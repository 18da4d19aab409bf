/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Changes that a program may make to its mappings while regions lie over them, and after that: its
 * memory reads as before the exchange, and a region keeps the pages that it was made over.
 */

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_fork.h"
#include "ipc_rig.h"

#define PAGE 4096u
#define PAGES 16u
#define GUARD_INSTALL 102      /* an advice of Linux 6.13 */
#define MAPS_QUERY 0xc0686611u /* the ioctl of /proc/PID/maps */
#define REMOTE \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ)

RIG_OF_ALL(rig)

/* Peer a reads and writes memory of peer b, which is also in this process. */
struct world {
	struct peer a, b;
	uint8_t *mem; /* PAGES private pages */
};

static uint8_t *
map_private(size_t pages)
{
	void *mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	assert_ptr_not_equal(mem, MAP_FAILED);
	return mem;
}

static void
world_open(struct world *w)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .timeout = 16};

	assert_int_equal(peer_open(&w->a, rig.path[0], &cfg), 0);
	assert_int_equal(peer_open(&w->b, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&w->a, &w->b), 0);
	w->mem = map_private(PAGES);
	peer_fill(w->mem, PAGES * PAGE, 1);
}

static void
world_close(struct world *w)
{
	peer_close(&w->a);
	peer_close(&w->b);
	munmap(w->mem, PAGES * PAGE);
}

static struct softhca_mr *
reg(struct world *w, void *at, uint64_t bytes)
{
	struct softhca_mr *mr = softhca_reg_mr(w->b.pd, at, bytes, REMOTE);

	if (mr == NULL)
		fail_msg("%s", softhca_last_error(NULL));
	return mr;
}

/* The bytes that a peer reads through the region arrive in a's buffer. */
static const uint8_t *
fetch(struct world *w, const struct softhca_mr *mr, const void *at, uint32_t bytes)
{
	struct softhca_wc wc = {0};

	w->a.other.addr = (uintptr_t)at;
	w->a.other.rkey = mr->rkey;
	memset(w->a.buf, 0xee, bytes);
	assert_int_equal(peer_post(&w->a, SOFTHCA_WR_RDMA_READ, 1, 0, bytes, 0), 0);
	assert_int_equal(peer_wait(&w->a, &wc, RIG_TIMEOUT_S), 0);
	return w->a.buf;
}

static void
store(struct world *w, const struct softhca_mr *mr, void *at, uint32_t bytes, uint32_t seed)
{
	struct softhca_wc wc = {0};

	w->a.other.addr = (uintptr_t)at;
	w->a.other.rkey = mr->rkey;
	peer_fill(w->a.buf, bytes, seed);
	assert_int_equal(peer_post(&w->a, SOFTHCA_WR_RDMA_WRITE, 1, 0, bytes, 0), 0);
	assert_int_equal(peer_wait(&w->a, &wc, RIG_TIMEOUT_S), 0);
}

static bool
all(const uint8_t *at, size_t bytes, uint8_t value)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != value) {
			fprintf(stderr, "byte %zu is %#x, not %#x\n", i, at[i], value);
			return false;
		}
	return true;
}

/* Memory in the files that private memory is exchanged for */
static int64_t
shared_kib(void)
{
	int64_t blocks = 0;

	for (int fd = 0; fd < 1024; fd++) {
		char path[32], name[64];
		struct stat st;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = '\0';
		if (strncmp(name, "/memfd:softhca-private", 22) == 0 && fstat(fd, &st) == 0)
			blocks += st.st_blocks;
	}
	return blocks / 2;
}

/* After DONTNEED private memory reads as zeros, shared memory as before. */
static void
assert_private(uint8_t *at, size_t pages)
{
	memset(at, 0x77, pages * PAGE);
	assert_int_equal(madvise(at, pages * PAGE, MADV_DONTNEED), 0);
	assert_true(all(at, pages * PAGE, 0));
}

/* Whatever cuts the mapping of a region in pieces, the rest of its memory stays as it is. */
static void
split(void **state)
{
	static const char *const ways[] = {"protect", "dump", "unmap", "replace", "lock", "fork"};

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (int other = 0; other < 2; other++) {
			struct softhca_mr *mr, *beside = NULL;
			struct world w;
			uint8_t *page;

			world_open(&w);
			page = w.mem + 4 * PAGE;
			mr = reg(&w, w.mem, PAGES * PAGE);
			if (other)
				beside = reg(&w, w.mem + PAGE + 100, 200);
			switch (way) {
			case 0:
				assert_int_equal(mprotect(page, PAGE, PROT_READ), 0);
				break;
			case 1:
				assert_int_equal(madvise(page, PAGE, MADV_DONTDUMP), 0);
				break;
			case 2:
				assert_int_equal(munmap(page, PAGE), 0);
				break;
			case 3:
				assert_ptr_equal(mmap(page, PAGE, PROT_READ | PROT_WRITE,
						      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
						      0),
						 page);
				break;
			case 4:
				assert_int_equal(mlock(page, PAGE), 0);
				break;
			default:
				assert_int_equal(madvise(page, PAGE, MADV_DONTFORK), 0);
				break;
			}
			assert_int_equal(softhca_dereg_mr(mr), 0);
			if (beside != NULL)
				assert_int_equal(softhca_dereg_mr(beside), 0);
			assert_true(peer_verify(w.mem, 4 * PAGE, 1));
			for (size_t i = 5 * PAGE; i < PAGES * PAGE; i++)
				assert_int_equal(w.mem[i], peer_pattern(1, i));
			if (way == 3)
				assert_true(all(page, PAGE, 0));
			assert_private(w.mem, 4);
			assert_private(w.mem + 5 * PAGE, PAGES - 5);
			world_close(&w);
		}
}

/* The program unmaps pages and uses their addresses again: old and new region are apart. */
static void
used_again(void **state)
{
	struct softhca_mr *old, *new, *third;
	struct world w;

	world_open(&w);
	old = reg(&w, w.mem, PAGES * PAGE);
	assert_ptr_equal(mmap(w.mem + 2 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 w.mem + 2 * PAGE);
	memset(w.mem + 2 * PAGE, 'n', 4 * PAGE);
	new = reg(&w, w.mem + 2 * PAGE, 4 * PAGE);
	third = reg(&w, w.mem + PAGE + 8, 8 * PAGE); /* of both */
	assert_true(peer_verify(fetch(&w, old, w.mem, PAGES * PAGE), PAGES * PAGE, 1));
	assert_true(all(fetch(&w, new, w.mem + 2 * PAGE, 4 * PAGE), 4 * PAGE, 'n'));
	assert_memory_equal(fetch(&w, third, w.mem + PAGE + 8, 8 * PAGE), w.mem + PAGE + 8,
			    8 * PAGE);
	store(&w, old, w.mem, PAGES * PAGE, 2);
	assert_true(all(w.mem + 2 * PAGE, 4 * PAGE, 'n'));
	assert_true(peer_verify(w.mem, 2 * PAGE, 2));
	store(&w, third, w.mem + PAGE + 8, 8 * PAGE, 3);
	assert_true(peer_verify(w.mem + PAGE + 8, 8 * PAGE, 3));
	assert_int_equal(softhca_dereg_mr(old), 0);
	assert_true(peer_verify(w.mem + PAGE + 8, 8 * PAGE, 3));
	assert_int_equal(softhca_dereg_mr(new), 0);
	assert_int_equal(softhca_dereg_mr(third), 0);
	assert_true(peer_verify(w.mem + PAGE + 8, 8 * PAGE, 3));
	assert_private(w.mem, PAGES);
	world_close(&w);
}

/* The same by another registration of the region, and by a list of pages. */
static void
used_again_listed(void **state)
{
	struct softhca_mr *old, *mr;
	void *pages[PAGES];
	struct world w;

	world_open(&w);
	old = reg(&w, w.mem, PAGES * PAGE);
	mr = reg(&w, w.mem, PAGE);
	assert_ptr_equal(mmap(w.mem + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 w.mem + 2 * PAGE);
	memset(w.mem + 2 * PAGE, 'n', PAGE);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, w.mem + 16,
					  8 * PAGE, REMOTE),
			 0);
	assert_memory_equal(fetch(&w, mr, w.mem + 16, 8 * PAGE), w.mem + 16, 8 * PAGE);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	for (uint32_t i = 0; i < PAGES; i++)
		pages[i] = w.mem + (PAGES - 1 - i) * PAGE;
	mr = softhca_reg_mr_pages(w.b.pd, 0x100000, PAGES * PAGE, PAGE, pages, PAGES, REMOTE);
	assert_non_null(mr);
	fetch(&w, mr, (void *)0x100000, PAGES * PAGE);
	for (uint32_t i = 0; i < PAGES; i++)
		assert_memory_equal(w.a.buf + i * PAGE, pages[i], PAGE);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_int_equal(softhca_dereg_mr(old), 0);
	assert_private(w.mem, PAGES);
	world_close(&w);
}

/* mremap() moves registered memory: the region follows the pages, not the addresses. */
static void
moved(void **state)
{
	struct softhca_mr *mr, *again;
	uint8_t *to = map_private(PAGES);
	struct world w;

	world_open(&w);
	mr = reg(&w, w.mem, PAGES * PAGE);
	assert_ptr_equal(mremap(w.mem + 3 * PAGE, 5 * PAGE, 5 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
				to),
			 to);
	store(&w, mr, w.mem, PAGES * PAGE, 4);
	for (size_t i = 0; i < 5 * PAGE; i++)
		assert_int_equal(to[i], peer_pattern(4, 3 * PAGE + i));
	again = reg(&w, to + PAGE, 8 * PAGE); /* moved pages, and others behind them */
	memset(to + PAGE, 'm', 8 * PAGE);
	assert_true(all(fetch(&w, again, to + PAGE, 8 * PAGE), 8 * PAGE, 'm'));
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_true(all(fetch(&w, again, to + PAGE, 8 * PAGE), 8 * PAGE, 'm'));
	assert_private(w.mem, 3);
	assert_int_equal(softhca_dereg_mr(again), 0);
	assert_true(all(to + PAGE, 8 * PAGE, 'm'));
	assert_private(to, PAGES);
	munmap(to, PAGES * PAGE);
	assert_private(w.mem + 8 * PAGE, PAGES - 8);
	world_close(&w);
}

/* mremap() lengthens registered memory: the new part reads as zeros and is not shared. */
static void
grown(void **state)
{
	struct softhca_mr *mr[3], *whole;
	uint8_t *mem[3], *one;
	struct world w;

	world_open(&w);
	for (int i = 0; i < 3; i++) {
		mem[i] = map_private(2);
		memset(mem[i], 'a' + i, 2 * PAGE);
		mr[i] = reg(&w, mem[i], 2 * PAGE);
	}
	for (int i = 0; i < 3; i++) {
		one = mremap(mem[i] + (i == 1 ? PAGE : 0), i == 1 ? PAGE : 2 * PAGE, 40 * PAGE,
			     MREMAP_MAYMOVE);
		assert_ptr_not_equal(one, MAP_FAILED);
		if (i != 1)
			mem[i] = one;
		assert_true(all(one, (i == 1 ? 1 : 2) * PAGE, (uint8_t)('a' + i)));
		assert_true(all(one + 2 * PAGE, 38 * PAGE, 0));
		memset(one + 2 * PAGE, 'A' + i, 38 * PAGE);
		if (i == 2) {
			whole = reg(&w, one, 40 * PAGE);
			assert_memory_equal(fetch(&w, whole, one, 40 * PAGE), one, 40 * PAGE);
			assert_int_equal(softhca_dereg_mr(whole), 0);
		}
		assert_int_equal(softhca_dereg_mr(mr[i]), 0);
		assert_true(all(one + 2 * PAGE, 38 * PAGE, (uint8_t)('A' + i)));
		assert_private(one, 40);
		munmap(one, 40 * PAGE);
	}
	world_close(&w);
}

/* A page of two regions becomes private after the second; the others at once. */
static void
neighbours(void **state)
{
	struct softhca_mr *a, *b;
	struct world w;

	world_open(&w);
	a = reg(&w, w.mem, 8 * PAGE + 100);
	b = reg(&w, w.mem + 8 * PAGE + 100, PAGE);
	assert_int_equal(softhca_dereg_mr(a), 0);
	assert_private(w.mem, 8);
	for (size_t i = 8 * PAGE; i < PAGES * PAGE; i++)
		assert_int_equal(w.mem[i], peer_pattern(1, i));
	assert_int_equal(softhca_dereg_mr(b), 0);
	assert_private(w.mem, PAGES);
	world_close(&w);
}

/*
 * Memory that cannot be written: for reading alone, and memory that the program changes meanwhile.
 */
static void
read_only(void **state)
{
	struct softhca_mr *mr;
	struct world w;

	world_open(&w);
	assert_int_equal(mprotect(w.mem, PAGES * PAGE, PROT_READ), 0);
	mr = softhca_reg_mr(w.b.pd, w.mem + 10, 4 * PAGE, SOFTHCA_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	assert_memory_equal(fetch(&w, mr, w.mem + 10, 4 * PAGE), w.mem + 10, 4 * PAGE);
	assert_int_equal(mprotect(w.mem, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	memset(w.mem, 'r', PAGES * PAGE);
	assert_true(all(fetch(&w, mr, w.mem + 10, 4 * PAGE), 4 * PAGE, 'r'));
	assert_int_equal(mprotect(w.mem + PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_int_equal(mprotect(w.mem, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	assert_true(all(w.mem, PAGES * PAGE, 'r'));
	assert_private(w.mem, PAGES);
	world_close(&w);
}

/* The child has a copy of the mapped memory, wherever the program has moved it. */
static void
forked(void **state)
{
	uint8_t *to = map_private(4);
	struct softhca_mr *mr;
	struct world w;
	int status;
	pid_t pid;

	world_open(&w);
	mr = reg(&w, w.mem, PAGES * PAGE);
	assert_ptr_equal(mremap(w.mem, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	assert_int_equal(mprotect(w.mem + 6 * PAGE, PAGE, PROT_READ), 0);
	pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool good = peer_verify(to, 4 * PAGE, 1);

		for (size_t i = 4 * PAGE; i < PAGES * PAGE; i++)
			good = good && w.mem[i] == peer_pattern(1, i);
		memset(to, 'c', 4 * PAGE);
		memset(w.mem + 8 * PAGE, 'c', PAGE);
		_exit(!good);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(peer_verify(to, 4 * PAGE, 1));
	assert_int_equal(w.mem[8 * PAGE], peer_pattern(1, 8 * PAGE));
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_private(to, 4);
	munmap(to, 4 * PAGE);
	world_close(&w);
}

/* Random registrations of a heap that the allocator trims: every block keeps its bytes. */
static void
heap(void **state)
{
	enum {
		BLOCKS = 48,
		STEPS = 3000
	};
	struct {
		uint8_t *at;
		uint32_t bytes, seed;
		struct softhca_mr *mr;
	} block[BLOCKS] = {{0}};
	unsigned int seed = 1;
	struct world w;

	world_open(&w);
	for (uint32_t i = 0; i < STEPS; i++) {
		uint32_t k = (uint32_t)rand_r(&seed) % BLOCKS;

		if (block[k].at == NULL) {
			block[k].bytes = 1 + (uint32_t)rand_r(&seed) % (i % 7 == 0 ? 200000 : 9000);
			block[k].at = malloc(block[k].bytes);
			block[k].seed = i;
			peer_fill(block[k].at, block[k].bytes, i);
		} else if (block[k].mr == NULL && rand_r(&seed) % 3 != 0) {
			block[k].mr = reg(&w, block[k].at, block[k].bytes);
		} else {
			const uint8_t *at = block[k].mr != NULL ? fetch(&w, block[k].mr,
									block[k].at, block[k].bytes)
								: block[k].at;

			assert_true(peer_verify(at, block[k].bytes, block[k].seed));
			if (block[k].mr != NULL)
				assert_int_equal(softhca_dereg_mr(block[k].mr), 0);
			assert_true(peer_verify(block[k].at, block[k].bytes, block[k].seed));
			free(block[k].at);
			block[k].at = NULL;
			block[k].mr = NULL;
		}
	}
	for (uint32_t k = 0; k < BLOCKS; k++) {
		if (block[k].mr != NULL)
			assert_int_equal(softhca_dereg_mr(block[k].mr), 0);
		if (block[k].at != NULL)
			assert_true(peer_verify(block[k].at, block[k].bytes, block[k].seed));
		free(block[k].at);
	}
	world_close(&w);
}

/* Pages that cannot be read: an error, whatever the rest is, and no fault of the library. */
static void
guards(void **state)
{
	int fd = memfd_create("guarded", MFD_CLOEXEC), status;
	struct softhca_mr *mr;
	struct world w;
	void *mem;
	pid_t pid;

	world_open(&w);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	mem = mmap(NULL, PAGE, PROT_NONE, MAP_SHARED, fd, 0);
	assert_null(softhca_reg_mr(w.b.pd, mem, PAGE, SOFTHCA_ACCESS_REMOTE_READ));
	assert_int_equal(errno, EFAULT);
	munmap(mem, PAGE);
	close(fd);
	if (madvise(w.mem + 3 * PAGE, PAGE, GUARD_INSTALL) != 0) {
		world_close(&w);
		skip();
	}
	assert_null(softhca_reg_mr(w.b.pd, w.mem, PAGES * PAGE, REMOTE));
	assert_int_equal(errno, EFAULT);
	assert_int_equal(mprotect(w.mem, PAGES * PAGE, PROT_READ), 0);
	assert_null(softhca_reg_mr(w.b.pd, w.mem, PAGES * PAGE, SOFTHCA_ACCESS_REMOTE_READ));
	assert_int_equal(errno, EFAULT);
	assert_int_equal(mprotect(w.mem, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	assert_true(peer_verify(w.mem, 3 * PAGE, 1));
	mr = reg(&w, w.mem + 4 * PAGE, 12 * PAGE);
	assert_int_equal(madvise(w.mem + 9 * PAGE, PAGE, GUARD_INSTALL), 0);
	pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(w.mem[4 * PAGE] != peer_pattern(1, 4 * PAGE));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* the page with the guard stays, the others are private */
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_private(w.mem + 4 * PAGE, 5);
	assert_private(w.mem + 10 * PAGE, 6);
	assert_int_equal(munmap(w.mem + 9 * PAGE, PAGE), 0);
	mr = reg(&w, w.mem, 1);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	world_close(&w);
}

/* An extension that was unmapped is freed with the region. */
static void
freed(void **state)
{
	int64_t before, after;
	struct world w;

	world_open(&w);
	before = shared_kib();
	for (int i = 0; i < 4; i++) {
		uint8_t *mem = map_private(2);
		struct softhca_mr *mr = reg(&w, mem, 2 * PAGE);

		mem = mremap(mem, 2 * PAGE, 4096 * PAGE, MREMAP_MAYMOVE);
		assert_ptr_not_equal(mem, MAP_FAILED);
		memset(mem, 1, 4096 * PAGE);
		munmap(mem, 4096 * PAGE);
		assert_int_equal(softhca_dereg_mr(mr), 0);
	}
	after = shared_kib();
	if (after - before > 8192)
		fail_msg("%ld KiB stay", (long)(after - before));
	world_close(&w);
}

/* fork() in a process that has no descriptors left. */
static void
forked_without_descriptors(void **state)
{
	struct softhca_mr *mr;
	struct world w;
	int fd[1024], n = 0, status;
	pid_t pid;

	world_open(&w);
	mr = reg(&w, w.mem, PAGES * PAGE);
	while (n < 1024 && (fd[n] = dup(1)) >= 0)
		n++;
	pid = test_fork();
	if (pid == 0) {
		memset(w.mem, 'c', PAGE);
		_exit(w.mem[5 * PAGE] != peer_pattern(1, 5 * PAGE));
	}
	while (n > 0)
		close(fd[--n]);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(peer_verify(w.mem, PAGES * PAGE, 1));
	assert_int_equal(softhca_dereg_mr(mr), 0);
	world_close(&w);
}

/* The first block of a thread lies next to the state of its arena, which fork() changes. */
static void *
register_in_arena(void *arg)
{
	struct world *w = arg;
	uint8_t *block = malloc(100);
	struct softhca_mr *mr = softhca_reg_mr(w->b.pd, block, 100, REMOTE);
	int status;
	pid_t pid;

	if (mr == NULL)
		return arg;
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (waitpid(pid, &status, 0) != pid || status != 0 || softhca_dereg_mr(mr) != 0)
		return arg;
	free(block);
	return NULL;
}

static void
arena(void **state)
{
	pthread_t thread;
	void *result;
	struct world w;

	world_open(&w);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_create(&thread, NULL, register_in_arena, &w), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_null(result);
	}
	world_close(&w);
}

/* ---- limits ---- */

/*
 * As many mappings as the kernel permits: every other page of a range has another protection. The
 * registration reports the error; a deregistration leaves the contents, and makes the page private
 * when there is room again.
 */
static void
many_mappings(void **state)
{
	const size_t room = 70000;
	struct softhca_mr *mr, *refused;
	uint8_t *filler = map_private(room);
	struct world w;
	size_t i = 1;

	world_open(&w);
	mr = reg(&w, w.mem + 2 * PAGE, 4 * PAGE);
	while (i < room && mprotect(filler + i * PAGE, PAGE, PROT_READ) == 0)
		i += 2;
	if (i >= room) {
		munmap(filler, room * PAGE);
		world_close(&w);
		skip();
	}
	refused = softhca_reg_mr(w.b.pd, w.mem + 8 * PAGE, PAGE, REMOTE);
	assert_null(refused);
	assert_int_equal(errno, ENOMEM);
	assert_non_null(strstr(softhca_last_error(NULL), "vm.max_map_count"));
	assert_true(peer_verify(w.mem, PAGES * PAGE, 1));
	assert_int_equal(mprotect(w.mem + 3 * PAGE, PAGE, PROT_READ), -1);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_true(peer_verify(w.mem, PAGES * PAGE, 1));
	munmap(filler, room * PAGE);
	mr = reg(&w, w.mem, 1);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_true(peer_verify(w.mem, PAGES * PAGE, 1));
	assert_private(w.mem, PAGES);
	world_close(&w);
}

/* A process that limits its files gets no SIGXFSZ, and its memory is reached the slow way. */
static void
small_files(void **state)
{
	struct rlimit old, limit;
	struct softhca_mr *mr;
	struct world w;

	world_open(&w);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 1 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	mr = reg(&w, w.mem, PAGES * PAGE);
	assert_true(peer_verify(fetch(&w, mr, w.mem, PAGES * PAGE), PAGES * PAGE, 1));
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_private(w.mem, PAGES);
	world_close(&w);
}

/* Kernels before 6.11 do not tell single mappings. */
static void
forbid_query(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAPS_QUERY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		perror("seccomp");
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(split, rig_tidy),
		cmocka_unit_test_teardown(used_again, rig_tidy),
		cmocka_unit_test_teardown(used_again_listed, rig_tidy),
		cmocka_unit_test_teardown(moved, rig_tidy),
		cmocka_unit_test_teardown(grown, rig_tidy),
		cmocka_unit_test_teardown(neighbours, rig_tidy),
		cmocka_unit_test_teardown(read_only, rig_tidy),
		cmocka_unit_test_teardown(forked, rig_tidy),
		cmocka_unit_test_teardown(heap, rig_tidy),
		cmocka_unit_test_teardown(guards, rig_tidy),
		cmocka_unit_test_teardown(freed, rig_tidy),
		cmocka_unit_test_teardown(forked_without_descriptors, rig_tidy),
		cmocka_unit_test_teardown(arena, rig_tidy),
		cmocka_unit_test_teardown(many_mappings, rig_tidy),
		cmocka_unit_test_teardown(small_files, rig_tidy),
	};

	if (argc > 1)
		forbid_query();

	return cmocka_run_group_tests(tests, start, shut_down);
}
