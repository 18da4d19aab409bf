/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Threads apart from the main one: two store to halves of pages of which the main thread registers
 * the other halves, one allocates, and one has a stack to be registered.
 */

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "judge.h"

#define WRITERS 2u
#define BUSY_PAGES 12u
#define STACK_PAGES 8u
#define HALF (PAGE / 2)
#define WORDS (HALF / sizeof(uint64_t))

static struct writer {
	pthread_t thread;
	uint8_t *va;
	uint64_t expected[BUSY_PAGES][WORDS];
	uint64_t random;
} writers[WRITERS];
static pthread_t allocator, sleeper;
static bool ends;

static uint64_t
writer_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *state >> 20;
}

static volatile uint64_t *
writer_word(const struct writer *w, uint64_t page, uint64_t word)
{
	return (volatile uint64_t *)(w->va + page * PAGE + HALF) + word;
}

static void
writer_check(const struct writer *w, uint64_t page, uint64_t word)
{
	uint64_t found = *writer_word(w, page, word);

	if (found != w->expected[page][word])
		differs("a thread's store", w->va + page * PAGE + HALF + word * sizeof(uint64_t),
			(const uint8_t *)&w->expected[page][word], (const uint8_t *)&found,
			sizeof(found));
}

static void *
writer_main(void *arg)
{
	struct writer *w = arg;

	for (uint64_t turn = 0; !__atomic_load_n(&ends, __ATOMIC_RELAXED); turn++) {
		uint64_t page = writer_random(&w->random) % BUSY_PAGES;
		uint64_t word = writer_random(&w->random) % WORDS;

		writer_check(w, page, word);
		w->expected[page][word] = writer_random(&w->random);
		*writer_word(w, page, word) = w->expected[page][word];
		writer_check(w, page, word);
		if (turn % 64 == 0)
			sched_yield();
	}
	for (uint64_t i = 0; i < BUSY_PAGES * WORDS; i++)
		writer_check(w, i / WORDS, i % WORDS);
	return NULL;
}

/* Each block has bytes of its own from its beginning to its end. */
static void
allocator_turn(uint8_t *block[8], size_t size[8], uint64_t *state)
{
	uint64_t k = writer_random(state) % 8;

	for (size_t i = 0; block[k] != NULL && i < size[k]; i++)
		if (block[k][i] != (uint8_t)(i * 7 + k))
			differs("a thread's block", block[k] + i,
				(const uint8_t[]){(uint8_t)(i * 7 + k)}, block[k] + i, 1);
	free(block[k]);
	size[k] = 1 + writer_random(state) % (k == 0 ? 300000 : 9000);
	block[k] = malloc(size[k]);
	CHECK(block[k] != NULL);
	for (size_t i = 0; i < size[k]; i++)
		block[k][i] = (uint8_t)(i * 7 + k);
}

static void *
allocator_main(void *arg)
{
	uint8_t *block[8] = {0};
	size_t size[8];
	uint64_t state = 1;

	(void)arg;
	while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
		allocator_turn(block, size, &state);
		sched_yield();
	}
	for (uint32_t i = 0; i < 8; i++)
		free(block[i]);
	return NULL;
}

/* ---- a stack ---- */

static struct {
	sem_t shown, over;
	uint8_t *va;
} stack;

static void *
sleeper_main(void *arg)
{
	volatile uint8_t room[(STACK_PAGES + 1) * PAGE];

	(void)arg;
	room[0] = 0;
	stack.va = (uint8_t *)(uintptr_t)room + (-(uintptr_t)room & (PAGE - 1));
	memset(stack.va, 0, STACK_PAGES * PAGE);
	CHECK(sem_post(&stack.shown) == 0);
	while (sem_wait(&stack.over) != 0)
		;
	return NULL;
}

static void
window_of_threads(const char *name, void *va, uint32_t pages, size_t owned)
{
	struct vpage v = {.prot = PROT_READ | PROT_WRITE, .max_prot = PROT_READ | PROT_WRITE};
	struct window *w = window_new(name, va, pages, 0);

	w->owned = owned;
	for (uint32_t i = 0; i < pages; i++) {
		v.page = page_new();
		vpage_put(w, i, &v);
	}
}

void
windows_thread_stack(void)
{
	CHECK(sem_init(&stack.shown, 0, 0) == 0 && sem_init(&stack.over, 0, 0) == 0);
	CHECK(pthread_create(&sleeper, NULL, sleeper_main, NULL) == 0);
	while (sem_wait(&stack.shown) != 0)
		;
	window_of_threads("stack", stack.va, STACK_PAGES, PAGE);
}

void
threads_start(void)
{
	for (uint32_t i = 0; i < WRITERS; i++) {
		void *va = mmap(NULL, BUSY_PAGES * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(va != MAP_FAILED);
		window_of_threads("busy", va, BUSY_PAGES, HALF);
		writers[i].va = va;
		writers[i].random = judge.seed + i;
	}
	for (uint32_t i = 0; i < WRITERS; i++)
		CHECK(pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]) == 0);
	CHECK(pthread_create(&allocator, NULL, allocator_main, NULL) == 0);
}

void
threads_stop(void)
{
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	CHECK(sem_post(&stack.over) == 0 && pthread_join(sleeper, NULL) == 0);
	if (!judge.threads)
		return;
	for (uint32_t i = 0; i < WRITERS; i++)
		CHECK(pthread_join(writers[i].thread, NULL) == 0);
	CHECK(pthread_join(allocator, NULL) == 0);
}
