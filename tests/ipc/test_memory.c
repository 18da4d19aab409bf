/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Registering every kind of memory through a daemon: which is converted in place, found, or
 * refused; no store is lost meanwhile; and the state after fork().
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_fork.h"
#include "ipc_rig.h"

#define PAGE 4096u
#define REMOTE \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ)

RIG_OF_ALL(rig)
/* The page where .data ends and .bss begins is a mapping of the program's file. */
static uint8_t in_bss[PEER_BYTES + 2 * PAGE];
static uint8_t in_data[3 * PAGE] = {1};

/* Does /proc/self/maps show shared memory at addr? */
static bool
is_shared(const void *addr)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start_at, end;
	bool shared = false;
	char line[512], perms[8];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL)
		if (sscanf(line, "%lx-%lx %7s", &start_at, &end, perms) == 3 &&
		    (uintptr_t)addr >= start_at && (uintptr_t)addr < end)
			shared = perms[3] == 's';
	fclose(maps);
	return shared;
}

/* Convert a buffer on each side, use it, and check the rest of its pages. */
static int
talk_over(int sock, unsigned int side, uint8_t *buf)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .events = true, .buf = buf};
	struct peer p;
	int err;

	peer_fill(buf, PEER_BYTES, 9);
	err = peer_open(&p, rig.path[side], &cfg);
	if (err == 0 && (!peer_verify(buf, PEER_BYTES, 9) || !is_shared(buf)))
		err = -EILSEQ;
	if (err == 0)
		err = peer_connect(&p, sock);
	if (err == 0)
		err = peer_talk(&p, sock, 3);
	if (err == 0)
		peer_fill(buf, PEER_BYTES, 10);
	peer_close(&p);
	if (err == 0 && (!peer_verify(buf, PEER_BYTES, 10) || is_shared(buf)))
		err = -EILSEQ;
	return err;
}

static int
child_talks_over(int sock, void *arg)
{
	return talk_over(sock, 1, arg);
}

static void
conversation(uint8_t *buf)
{
	int sock;
	pid_t pid = rig_fork(child_talks_over, buf, &sock);

	assert_int_equal(talk_over(sock, 0, buf), 0);
	rig_join(pid);
	close(sock);
}

static void
heap(void **state)
{
	uint8_t *mem = malloc(PEER_BYTES + 2 * PAGE);
	uint8_t *buf = mem + 40; /* begins and ends inside pages that hold other data */

	assert_non_null(mem);
	memset(mem, 0x5a, 40);
	memset(buf + PEER_BYTES, 0xa5, 2 * PAGE - 40);
	conversation(buf);
	for (int i = 0; i < 40; i++)
		assert_int_equal(mem[i], 0x5a);
	for (unsigned int i = 0; i < 2 * PAGE - 40; i++)
		assert_int_equal(buf[PEER_BYTES + i], 0xa5);
	free(mem);
}

static void
bss(void **state)
{
	conversation(in_bss + PAGE + 24);
}

static void
mapping(void **state)
{
	uint8_t *mem = mmap(NULL, 2 * PEER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	conversation(mem + 3 * PAGE);
	munmap(mem, 2 * PEER_BYTES);
}

static struct softhca_pd *
open_pd(struct softhca_context **ctx)
{
	struct softhca_pd *pd;

	assert_int_equal(softhca_open(rig.path[0], ctx), 0);
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

/*
 * Memory that cannot be shared is not moved, including whole regions with such parts; unmapped
 * memory is refused.
 */
static void
left_where_it_is(void **state)
{
	uint8_t on_stack[2 * PAGE];
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&ctx);
	int file = open("/proc/self/exe", O_RDONLY), fd = memfd_create("plain", 0);
	uint8_t *mem;

	assert_non_null(softhca_reg_mr(pd, on_stack, sizeof(on_stack), REMOTE));
	assert_non_null(softhca_reg_mr(pd, in_data, sizeof(in_data), REMOTE));
	assert_false(is_shared(on_stack) || is_shared(in_data) || is_shared(in_data + PAGE));
	mem = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	assert_non_null(softhca_reg_mr(pd, mem, PAGE, SOFTHCA_ACCESS_REMOTE_READ));
	refused(pd, mem, PAGE, REMOTE, EFAULT, "cannot be written");
	munmap(mem, PAGE);
	refused(pd, mem, PAGE, 0, EFAULT, "nothing is mapped");
	mem = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_non_null(softhca_reg_mr(pd, mem, PAGE, 0));
	refused(pd, mem, PAGE, REMOTE, EFAULT, "cannot be written");
	munmap(mem, PAGE);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_non_null(softhca_reg_mr(pd, mem, PAGE, REMOTE)); /* not sealed */
	munmap(mem, PAGE);
	close(file);
	close(fd);
	assert_int_equal(softhca_close(ctx), 0);
}

/* Regions that share pages: a page becomes private again after the last region. */
static void
overlapping(void **state)
{
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&ctx);
	uint8_t *mem =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct softhca_mr *mr[3];

	peer_fill(mem, 8 * PAGE, 3);
	mr[0] = softhca_reg_mr(pd, mem + 10, 2 * PAGE, REMOTE);	      /* pages 0 to 2 */
	mr[1] = softhca_reg_mr(pd, mem + 2 * PAGE, PAGE + 1, REMOTE); /* 2, 3 */
	mr[2] = softhca_reg_mr(pd, mem, 8 * PAGE, REMOTE);
	for (int i = 0; i < 3; i++)
		assert_non_null(mr[i]);
	assert_int_equal(softhca_dereg_mr(mr[2]), 0);
	assert_true(is_shared(mem) && is_shared(mem + 3 * PAGE));
	assert_false(is_shared(mem + 4 * PAGE));
	assert_int_equal(softhca_dereg_mr(mr[0]), 0);
	assert_int_equal(softhca_dereg_mr(mr[1]), 0);
	for (int i = 0; i < 8; i++)
		assert_false(is_shared(mem + (size_t)i * PAGE));
	assert_true(peer_verify(mem, 8 * PAGE, 3));
	munmap(mem, 8 * PAGE);
	assert_int_equal(softhca_close(ctx), 0);
}

/* Unmapped by the program before deregistration: whatever is mapped there later is not touched. */
static void
unmapped_before(void **state)
{
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&ctx);
	uint8_t *mem =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct softhca_mr *mr = softhca_reg_mr(pd, mem, 4 * PAGE, REMOTE);

	assert_non_null(mr);
	assert_ptr_equal(mmap(mem, 4 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mem);
	peer_fill(mem, 4 * PAGE, 21);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_true(peer_verify(mem, 4 * PAGE, 21));
	mr = softhca_reg_mr(pd, mem, 4 * PAGE, REMOTE);
	assert_non_null(mr);
	assert_true(peer_verify(mem, 4 * PAGE, 21));
	munmap(mem, 4 * PAGE);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_int_equal(softhca_close(ctx), 0);
}

/* A shared mapping is found while its descriptor is open. */
static void
shared_mapping(void **state)
{
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&ctx);
	int fd = memfd_create("mine", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	struct softhca_mr *a, *b;
	uint8_t *mem;

	assert_int_equal(ftruncate(fd, 64 * PAGE), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	mem = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 16 * PAGE);
	a = softhca_reg_mr(pd, mem + 5, 3 * PAGE, REMOTE);
	b = softhca_reg_mr(pd, mem + 20 * PAGE, 12 * PAGE, REMOTE);
	assert_true(a != NULL && b != NULL);
	assert_int_equal(softhca_dereg_mr(a), 0);
	assert_int_equal(softhca_dereg_mr(b), 0);
	assert_true(is_shared(mem));
	munmap(mem, 32 * PAGE);
	close(fd);
	assert_int_equal(softhca_close(ctx), 0);
}

/* Pages of 1 GiB, which are not available: an error with a reason. */
static void
no_hugepages(void **state)
{
	const uint64_t bytes = UINT64_C(1) << 30;
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	uint8_t *mem;
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | 30u << 26);
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "re");
	int free_pages = -1;

	if (f != NULL && fscanf(f, "%d", &free_pages) != 1)
		free_pages = -1;
	if (f != NULL)
		fclose(f);
	if (fd < 0 || free_pages != 0)
		skip();
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	pd = open_pd(&ctx);
	refused(pd, mem, PAGE, REMOTE, ENOMEM, "no pages of 1048576 KiB are free");
	assert_non_null(softhca_alloc_pd(ctx));
	assert_int_equal(softhca_close(ctx), 0);
	munmap(mem, bytes);
	close(fd);
}

/* ---- no write is lost ---- */

#define HAMMERS 3u
#define HAMMER_PAGES 16u
#define HAMMER_SECONDS 1u

struct hammer {
	uint8_t *mem;
	unsigned int number;
	int *stop;
	uint64_t writes, lost;
	int pipe[2];
};

/* Stores to its own words on every page: the last value must be there. */
static void *
hammer_stores(void *arg)
{
	struct hammer *h = arg;

	for (uint64_t n = 1; !__atomic_load_n(h->stop, __ATOMIC_RELAXED); n++) {
		for (unsigned int p = 0; p < HAMMER_PAGES; p++) {
			volatile uint64_t *word =
				(uint64_t *)(h->mem + p * PAGE + 1024) + 8 * h->number + n % 2;

			if (n > 2 && *word != n - 2)
				h->lost++;
			*word = n;
			h->writes++;
		}
	}
	return NULL;
}

/* The kernel writes: read(2) from a pipe, across a page border. */
static void *
hammer_reads(void *arg)
{
	struct hammer *h = arg;
	uint8_t *at = h->mem + PAGE - 64, want[128];

	for (uint32_t n = 0; !__atomic_load_n(h->stop, __ATOMIC_RELAXED); n++) {
		peer_fill(want, sizeof(want), n);
		if (write(h->pipe[1], want, sizeof(want)) != sizeof(want) ||
		    read(h->pipe[0], at, sizeof(want)) != sizeof(want))
			h->lost++;
		if (memcmp(at, want, sizeof(want)) != 0)
			h->lost++;
		at = h->mem + (n % (HAMMER_PAGES - 1) + 1) * PAGE - 64;
		h->writes++;
	}
	return NULL;
}

static void
no_write_is_lost(void **state)
{
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&ctx);
	uint8_t *mem = mmap(NULL, HAMMER_PAGES * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hammer h[HAMMERS + 1] = {{0}};
	pthread_t thread[HAMMERS + 1];
	uint64_t end = rig_now_ns() + HAMMER_SECONDS * 1000000000ull, writes = 0, lost = 0;
	unsigned int changes = 0;
	int stop_now = 0;

	for (unsigned int i = 0; i <= HAMMERS; i++) {
		h[i] = (struct hammer){.mem = mem, .number = i, .stop = &stop_now};
		assert_int_equal(pipe(h[i].pipe), 0);
		assert_int_equal(pthread_create(&thread[i], NULL,
						i < HAMMERS ? hammer_stores : hammer_reads, &h[i]),
				 0);
	}
	while (rig_now_ns() < end) {
		struct softhca_mr *mr = softhca_reg_mr(pd, mem, HAMMER_PAGES * PAGE, REMOTE);

		assert_non_null(mr);
		assert_int_equal(softhca_dereg_mr(mr), 0);
		changes += 2;
	}
	__atomic_store_n(&stop_now, 1, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i <= HAMMERS; i++) {
		pthread_join(thread[i], NULL);
		writes += h[i].writes;
		lost += h[i].lost;
		close(h[i].pipe[0]);
		close(h[i].pipe[1]);
	}
	printf("%u changes of %u pages under %lu writes (%lu of them by read(2)): %lu lost\n",
	       changes, HAMMER_PAGES, (unsigned long)writes, (unsigned long)h[HAMMERS].writes,
	       (unsigned long)lost);
	assert_int_equal(lost, 0);
	munmap(mem, HAMMER_PAGES * PAGE);
	assert_int_equal(softhca_close(ctx), 0);
}

/* ---- fork() ---- */

static int
expect(int got, int want, const char *what)
{
	if (got == want)
		return 0;
	fprintf(stderr, "%s: %d instead of %d\n", what, got, want);
	return 1;
}

/* In the child: the parent's context does not work, nothing crashes, memory is a copy. */
static int
in_child(struct peer *p, uint8_t *buf, int from_parent, int to_parent)
{
	struct softhca_context *own;
	struct softhca_wc wc;
	struct softhca_pd *pd;
	struct softhca_mr *mr;
	char c = 'x';
	int bad = 0;

	bad += expect(read(from_parent, &c, 1), 1, "the parent has written");
	bad += expect(peer_verify(buf, PEER_BYTES, 30), true, "contents at fork()");
	memset(buf, 0xee, PEER_BYTES);
	bad += expect(is_shared(buf), false, "shared");
	bad += expect(peer_post(p, SOFTHCA_WR_RDMA_WRITE, 1, 0, 64, 0), -EPERM, "post_send");
	bad += expect(peer_post_recv(p, 1, 0, 64), -EPERM, "post_recv");
	bad += expect(softhca_poll_cq(p->cq, 1, &wc), -EPERM, "poll_cq");
	bad += expect(softhca_alloc_pd(p->ctx) == NULL && errno == EPERM, true, "alloc_pd");
	bad += expect(softhca_reg_mr(p->pd, buf, 64, 0) == NULL && errno == EPERM, true, "reg_mr");
	bad += expect(softhca_destroy_qp(p->qp), -EPERM, "destroy_qp");
	bad += expect(softhca_close(p->ctx), -EPERM, "close");
	bad += expect(softhca_open(rig.path[1], &own), 0, "a context of its own");
	pd = bad == 0 ? softhca_alloc_pd(own) : NULL;
	mr = pd != NULL ? softhca_reg_mr(pd, buf, PEER_BYTES, REMOTE) : NULL;
	bad += expect(mr != NULL, true, "a region of its own");
	if (mr != NULL)
		bad += expect(softhca_close(own), 0, "close of its own");
	bad += expect(buf[77], 0xee, "its own memory");
	return expect(write(to_parent, &c, 1), 1, "tell the parent") + bad;
}

static void
fork_after_open(void **state)
{
	uint8_t *buf =
		mmap(NULL, PEER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .buf = buf};
	int down[2], up[2], status;
	struct softhca_wc wc;
	struct peer a, b;
	pid_t pid;
	char c = 'x';

	assert_int_equal(peer_open(&a, rig.path[0], &cfg), 0);
	cfg.buf = NULL;
	assert_int_equal(peer_open(&b, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&a, &b), 0);
	peer_fill(buf, PEER_BYTES, 30);
	assert_int_equal(pipe(down), 0);
	assert_int_equal(pipe(up), 0);
	pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(in_child(&a, buf, down[0], up[1]));
	peer_fill(buf, PEER_BYTES, 31);
	assert_int_equal(write(down[1], &c, 1), 1);
	assert_int_equal(read(up[0], &c, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);

	assert_true(peer_verify(buf, PEER_BYTES, 31));
	assert_int_equal(peer_post(&a, SOFTHCA_WR_RDMA_WRITE, 1, 0, 65536, 0), 0);
	assert_int_equal(peer_wait(&a, &wc, RIG_TIMEOUT_S), 0);
	assert_true(peer_verify(b.buf, 65536, 31));
	peer_close(&a);
	peer_close(&b);
	assert_false(is_shared(buf));
	assert_true(peer_verify(buf, PEER_BYTES, 31));
	munmap(buf, PEER_BYTES);
	for (int i = 0; i < 2; i++) {
		close(down[i]);
		close(up[i]);
	}
}

/* Heap with the library's own objects in its pages: those of the context, here. */
static void
fork_with_shared_heap(void **state)
{
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&ctx);
	void *page = (void *)((uintptr_t)ctx & ~(uintptr_t)(PAGE - 1));
	struct softhca_mr *mr = softhca_reg_mr(pd, page, 2 * PAGE, REMOTE);
	int status;
	pid_t pid;

	assert_non_null(mr);
	assert_true(is_shared(ctx));
	pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(expect(is_shared(ctx), false, "shared") +
		      expect(softhca_alloc_pd(ctx) == NULL && errno == EPERM, true, "alloc_pd"));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_int_equal(softhca_close(ctx), 0);
}

static void *
register_all_the_time(void *arg)
{
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&ctx);
	void *mem = softhca_alloc(4096);

	while (!__atomic_load_n((bool *)arg, __ATOMIC_RELAXED)) {
		struct softhca_mr *mr = softhca_reg_mr(pd, mem, 4096, 0);

		if (mr == NULL || softhca_dereg_mr(mr) != 0)
			return arg;
	}
	softhca_close(ctx);
	softhca_free(mem);
	return NULL;
}

/*
 * With its own context the child repeats the work of the parent's threads at fork(). ASan's
 * allocator may stay locked in a child of a process with threads.
 */
static void
fork_while_registering(void **state)
{
	bool end = false;
	pthread_t thread;
	void *result;
	int status;

#ifdef __SANITIZE_ADDRESS__
	skip();
#endif
	assert_int_equal(pthread_create(&thread, NULL, register_all_the_time, &end), 0);
	for (unsigned int i = 0; i < 10; i++) {
		pid_t pid;

		usleep(5000);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct softhca_context *ctx;
			struct softhca_mr *mr;

			alarm(2 * RIG_TIMEOUT_S);
			mr = softhca_reg_mr(open_pd(&ctx), softhca_alloc(4096), 4096, 0);
			_exit(mr == NULL);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	__atomic_store_n(&end, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
}

/* Many small regions on one heap: registration and deregistration leave nothing behind. */
static void
many_regions(void **state)
{
	enum {
		REGIONS = 500
	};
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&ctx);
	struct softhca_mr *mr[REGIONS];
	uint8_t *mem[REGIONS];

	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < REGIONS; i++) {
			mem[i] = malloc(1 + i * 37);
			peer_fill(mem[i], 1 + i * 37, i);
			mr[i] = softhca_reg_mr(pd, mem[i], 1 + i * 37, REMOTE);
			assert_non_null(mr[i]);
		}
		for (uint32_t i = 0; i < REGIONS; i++) {
			uint32_t k = i * 7 % REGIONS;

			assert_int_equal(softhca_dereg_mr(mr[k]), 0);
			assert_true(peer_verify(mem[k], 1 + k * 37, k));
		}
		for (uint32_t i = 0; i < REGIONS; i++) {
			assert_false(is_shared(mem[i]));
			free(mem[i]);
		}
	}
	assert_int_equal(softhca_close(ctx), 0);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
}

struct lister {
	struct softhca_pd *pd;
	uint8_t *mem;
	bool end;
	uint32_t failed;
};

static void *
register_lists(void *arg)
{
	struct lister *l = arg;
	void *pages[8];

	for (uint32_t i = 0; i < 8; i++)
		pages[i] = l->mem + (i & 1) * PAGE;
	while (!__atomic_load_n(&l->end, __ATOMIC_RELAXED)) {
		struct softhca_mr *mr =
			softhca_reg_mr_pages(l->pd, 0x10000, 8 * PAGE, PAGE, pages, 8, REMOTE);

		l->failed += mr == NULL;
		if (mr != NULL)
			softhca_dereg_mr(mr);
	}
	return NULL;
}

/* A list of pages is sent before its region: another conversion must not come between. */
static void
lists_beside_moves(void **state)
{
	struct softhca_context *ctx;
	struct lister l = {.pd = open_pd(&ctx), .mem = softhca_alloc(4 * PAGE)};
	struct softhca_mr *mr = softhca_reg_mr(l.pd, l.mem, PAGE, REMOTE);
	pthread_t thread;

	assert_non_null(mr);
	assert_int_equal(pthread_create(&thread, NULL, register_lists, &l), 0);
	for (uint32_t i = 0; i < 2000; i++)
		assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL,
						  l.mem + i % 4 * PAGE, PAGE, 0),
				 0);
	__atomic_store_n(&l.end, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(l.failed, 0);
	assert_int_equal(softhca_close(ctx), 0);
	softhca_free(l.mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(heap, rig_tidy),
		cmocka_unit_test_teardown(bss, rig_tidy),
		cmocka_unit_test_teardown(mapping, rig_tidy),
		cmocka_unit_test_teardown(left_where_it_is, rig_tidy),
		cmocka_unit_test_teardown(overlapping, rig_tidy),
		cmocka_unit_test_teardown(unmapped_before, rig_tidy),
		cmocka_unit_test_teardown(shared_mapping, rig_tidy),
		cmocka_unit_test_teardown(no_hugepages, rig_tidy),
		cmocka_unit_test_teardown(no_write_is_lost, rig_tidy),
		cmocka_unit_test_teardown(fork_after_open, rig_tidy),
		cmocka_unit_test_teardown(fork_with_shared_heap, rig_tidy),
		cmocka_unit_test_teardown(fork_while_registering, rig_tidy),
		cmocka_unit_test_teardown(many_regions, rig_tidy),
		cmocka_unit_test_teardown(lists_beside_moves, rig_tidy),
	};

	return cmocka_run_group_tests(tests, start, shut_down);
}
