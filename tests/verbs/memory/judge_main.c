/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * verbs_memory [--seed N] [--steps N] [--seconds N] [--pinned none|private|all] [--free-registered]
 *              [--no-threads] [--no-refusals]
 *
 * --pinned: the memory that the device reaches by its pages, not by its addresses. Embedded, and as
 * slow memory, it is none; only there a region is used after its memory was unmapped or exchanged.
 * --free-registered: memory is also freed while regions lie in it. An allocator that takes pages
 * for zeros after MADV_DONTNEED does not bear that.
 * --no-refusals: memory that must be refused for its protection is not registered.
 */

#include <getopt.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <time.h>
#include <unistd.h>

#include "judge.h"

#define LOOK_AT_ALL 16u
#define LOOK_AT_MAPS 64u
#define LOOK_AT_END 1024u

struct judge judge;

static const struct {
	void (*step)(void);
	uint32_t weight;
} steps[] = {
	{step_store, 20},      {step_map, 8},	     {step_unmap, 5},	  {step_protect, 4},
	{step_lock, 3},	       {step_advise, 4},     {step_dontneed, 4},  {step_free_advice, 2},
	{step_remap, 6},       {step_break, 3},	     {step_detach, 1},	  {step_allocate, 9},
	{step_reallocate, 4},  {step_release, 7},    {step_trim, 1},	  {step_register, 26},
	{step_deregister, 14}, {step_reregister, 5}, {step_transfer, 40}, {step_fork, 1},
};

static void
random_step(void)
{
	uint32_t sum = 0, draw;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		sum += steps[i].weight;
	draw = random_below(sum);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (draw < steps[i].weight) {
			steps[i].step();
			return;
		}
		draw -= steps[i].weight;
	}
}

static time_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* The memory of the regions is the program's again. */
static void
drop_regions(void)
{
	for (uint32_t i = 0; i < MAX_REGIONS; i++)
		if (judge.region[i].mr != NULL)
			region_drop(&judge.region[i]);
	check_all(true);
	check_maps(true);
}

static void
run(uint64_t max, uint64_t seconds)
{
	time_t end = seconds < INT32_MAX ? now() + (time_t)seconds : INT64_MAX;

	while (judge.step < max && (judge.step % LOOK_AT_ALL != 0 || now() <= end)) {
		judge.step++;
		random_step();
		if (judge.step % LOOK_AT_ALL == 0)
			check_all(judge.step % (LOOK_AT_ALL * LOOK_AT_MAPS) == 0);
		if (judge.step % LOOK_AT_MAPS == 0)
			check_maps(false);
		if (judge.step % LOOK_AT_END == 0)
			drop_regions();
	}
}

/* A leak checker reads it all. */
static void
make_readable(const struct window *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (vpage_is_mapped(&w->v[i]) && w->v[i].prot == PROT_NONE)
			CHECK(mprotect(w->va + i * PAGE, PAGE, PROT_READ) == 0);
}

static void
finish(void)
{
	drop_regions();
	for (uint32_t i = 0; i < judge.windows; i++)
		make_readable(&judge.window[i]);
	threads_stop();
	for (uint32_t i = 0; i < MAX_CHUNKS; i++)
		free(judge.chunk[i].p);
	wire_close();
}

static void
same_addresses(char **argv)
{
	int old = personality(0xffffffff);

	if (old < 0 || (old & ADDR_NO_RANDOMIZE) != 0 ||
	    personality((unsigned long)old | ADDR_NO_RANDOMIZE) < 0)
		return;
	execv("/proc/self/exe", argv);
}

static enum pinned
pinned_of(const char *word)
{
	if (strcmp(word, "private") == 0)
		return PINNED_PRIVATE;
	return strcmp(word, "all") == 0 ? PINNED_ALL : PINNED_NONE;
}

static uint64_t
number(const char *text)
{
	return strtoull(text, NULL, 0);
}

static const struct option options[] = {
	{"seed", required_argument, NULL, 's'},	     {"steps", required_argument, NULL, 'n'},
	{"seconds", required_argument, NULL, 't'},   {"pinned", required_argument, NULL, 'p'},
	{"free-registered", no_argument, NULL, 'f'}, {"no-threads", no_argument, NULL, 'l'},
	{"no-refusals", no_argument, NULL, 'r'},     {0},
};

static void
parse(int argc, char **argv, uint64_t *max, uint64_t *seconds)
{
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		CHECK(c != '?');
		if (c == 's')
			judge.seed = number(optarg);
		else if (c == 'n')
			*max = number(optarg);
		else if (c == 't')
			*seconds = number(optarg);
		else if (c == 'p')
			judge.pinned = pinned_of(optarg);
		else if (c == 'f')
			judge.free_registered = true;
		else if (c == 'l')
			judge.threads = false;
		else
			judge.refusals = false;
	}
}

static void
say_counts(void)
{
	printf("seed %llu: %llu steps, no difference: %llu mappings, %llu of the heap, %llu forks, "
	       "%llu regions (%llu refused, %llu moved), %llu transfers (%llu detached, %llu "
	       "failed)\n",
	       (unsigned long long)judge.seed, (unsigned long long)judge.step,
	       (unsigned long long)judge.count.maps, (unsigned long long)judge.count.heap,
	       (unsigned long long)judge.count.forks, (unsigned long long)judge.count.registered,
	       (unsigned long long)judge.count.refused,
	       (unsigned long long)judge.count.reregistered,
	       (unsigned long long)judge.count.transfers, (unsigned long long)judge.count.detached,
	       (unsigned long long)judge.count.failed);
}

int
main(int argc, char **argv)
{
	uint64_t max = UINT64_MAX, seconds = UINT64_MAX;

	same_addresses(argv);
	judge.seed = (uint64_t)time(NULL) ^ ((uint64_t)getpid() << 32);
	judge.threads = true;
	judge.refusals = true;
	parse(argc, argv, &max, &seconds);
	if (max == UINT64_MAX && seconds == UINT64_MAX)
		max = 10000;
	judge.random = judge.seed;
	setvbuf(stderr, NULL, _IONBF, 0);
	fprintf(stderr, "seed %llu\n", (unsigned long long)judge.seed);
	windows_open();
	windows_thread_stack();
	if (judge.threads)
		threads_start();
	all_open(&judge.all);
	wire_open();
	run(max, seconds);
	finish();
	all_close(&judge.all);
	say_counts();
	return 0;
}
