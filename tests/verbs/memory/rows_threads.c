/* SPDX-License-Identifier: BSD-3-Clause */

/* Threads and signal handlers that use memory while regions of it come and go. */

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "rows.h"

#define PAGES 16u
#define TURNS 100u

/* ---- writers ---- */

static uint8_t *written;
/* volatile: GCC keeps a plain one in a register over setitimer(), and the handler may run then */
static volatile uint64_t stores;
static bool over;

/* One word of each page counts up; the row has the other bytes. */
static void
store_words(void)
{
	stores++;
	for (size_t i = 0; i < PAGES; i++) {
		volatile uint64_t *word = (volatile uint64_t *)(written + i * PAGE + 2048);

		CHECK(*word == stores - 1);
		*word = stores;
	}
}

static void *
writer(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		store_words();
	return NULL;
}

static void
exchange_often(struct row *row)
{
	for (uint32_t i = 0; i < TURNS; i++) {
		size_t from = i % PAGES * PAGE;
		struct ibv_mr *mr = row_reg(row, written + from, PAGES * PAGE - from, ALL_ACCESS);

		row_exchange(row, written + from, 2048, mr, (uint8_t)i);
		row_dereg(mr);
	}
}

static void
threads_write(struct row *row)
{
	pthread_t thread;

	written = row_pages(PAGES, 1);
	memset(written, 0, PAGES * PAGE);
	CHECK(pthread_create(&thread, NULL, writer, NULL) == 0);
	exchange_often(row);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	CHECK(pthread_join(thread, NULL) == 0);
	store_words();
}

static void
on_alarm(int number)
{
	(void)number;
	store_words();
}

static void
signals_write(struct row *row)
{
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 500}, {0, 500}}, never = {0};

	written = row_pages(PAGES, 1);
	memset(written, 0, PAGES * PAGE);
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	while (stores < 10)
		exchange_often(row);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	store_words();
}

/* ---- threads that touch pages added by mremap() ---- */

#define ADDED ((size_t)65536) /* pages */
#define DEREGS 10u

static uint8_t *added;
static uint64_t touched[ADDED]; /* first word of each page */

static void
touch(size_t page)
{
	volatile uint64_t *word = (volatile uint64_t *)(added + page * PAGE);

	CHECK(*word == touched[page]);
	*word = ++touched[page];
}

static void *
toucher(void *arg)
{
	pthread_barrier_wait(arg);
	for (size_t i = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); i++)
		touch(i * 2657 % ADDED);
	return NULL;
}

static void
touch_while_dereg(struct row *row)
{
	uint8_t *one = row_pages(1, 1);
	struct ibv_mr *mr = row_reg(row, one, PAGE, ALL_ACCESS);
	uint8_t *at = mremap(one, PAGE, (ADDED + 1) * PAGE, MREMAP_MAYMOVE);
	pthread_barrier_t barrier;
	pthread_t thread;

	CHECK(at != MAP_FAILED);
	over = false;
	added = at + PAGE;
	memset(touched, 0, sizeof(touched));
	CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
	CHECK(pthread_create(&thread, NULL, toucher, &barrier) == 0);
	pthread_barrier_wait(&barrier);
	row_dereg(mr);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	CHECK(pthread_join(thread, NULL) == 0);
	for (size_t i = 0; i < ADDED; i++)
		touch(i);
	row_check(at, PAGE, 1);
	CHECK(munmap(at, (ADDED + 1) * PAGE) == 0);
}

static void
threads_touch_added(struct row *row)
{
	for (uint32_t i = 0; i < DEREGS; i++)
		touch_while_dereg(row);
}

/* ---- stacks of threads ---- */

struct stack {
	struct row *row;
	pthread_barrier_t barrier;
	uint8_t *at;
};

/* Its own stack, then that of a thread which waits in the next page of it */
static void *
stack_main(void *arg)
{
	volatile uint8_t room[PAGES * PAGE];
	struct stack *s = arg;
	struct ibv_mr *mr;

	room[0] = 0;
	s->at = (uint8_t *)(uintptr_t)room;
	row_fill(s->at, PAGES * PAGE, 1);
	mr = row_reg(s->row, s->at, PAGES * PAGE, ALL_ACCESS);
	row_exchange(s->row, s->at, PAGES * PAGE, mr, 2);
	row_dereg(mr);
	row_check(s->at, PAGES * PAGE, 3);
	pthread_barrier_wait(&s->barrier);
	pthread_barrier_wait(&s->barrier);
	row_check(s->at, PAGES * PAGE, 5);
	return NULL;
}

static void
thread_stack(struct row *row)
{
	struct stack s = {.row = row};
	struct ibv_mr *mr;
	pthread_t thread;

	CHECK(pthread_barrier_init(&s.barrier, NULL, 2) == 0);
	CHECK(pthread_create(&thread, NULL, stack_main, &s) == 0);
	pthread_barrier_wait(&s.barrier);
	mr = row_reg(row, s.at, PAGES * PAGE, ALL_ACCESS);
	row_exchange(row, s.at, PAGES * PAGE, mr, 4);
	row_dereg(mr);
	pthread_barrier_wait(&s.barrier);
	CHECK(pthread_join(thread, NULL) == 0);
}

struct row rows_threads[] = {
	{"threads_write", threads_write, 0},
	{"threads_touch_added", threads_touch_added, 0},
	{"signals_write", signals_write, 0},
	{"thread_stack", thread_stack, 0},
	{0},
};
