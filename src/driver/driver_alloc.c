/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "driver_alloc.h"

#define WORD_BITS 64u

static bool
bit_test(const uint64_t *map, uint32_t bit)
{
	return (map[bit / WORD_BITS] >> (bit % WORD_BITS) & 1) != 0;
}

static void
bit_set(uint64_t *map, uint32_t bit)
{
	map[bit / WORD_BITS] |= UINT64_C(1) << (bit % WORD_BITS);
}

static void
bit_clear(uint64_t *map, uint32_t bit)
{
	map[bit / WORD_BITS] &= ~(UINT64_C(1) << (bit % WORD_BITS));
}

static uint64_t *
bitmap(uint64_t bits)
{
	return calloc((bits + WORD_BITS - 1) / WORD_BITS, sizeof(uint64_t));
}

int
driver_random_init(struct driver_random *random, uint64_t seed)
{
	random->seed = seed;
	random->state = seed;
	if (seed == 0 &&
	    getrandom(&random->state, sizeof(random->state), 0) != (ssize_t)sizeof(random->state))
		return -EIO;
	return 0;
}

uint64_t
driver_random_next(struct driver_random *random)
{
	uint64_t z;

	/* requests of up to 256 bytes are never interrupted or truncated */
	if (random->seed == 0 && getrandom(&z, sizeof(z), 0) == (ssize_t)sizeof(z))
		return z;
	random->state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
	z = random->state;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

int
driver_ids_init(struct driver_ids *ids, uint32_t first, uint32_t count)
{
	memset(ids, 0, sizeof(*ids));
	ids->first = first;
	ids->count = count;
	ids->lowest = first;
	ids->taken = bitmap(count);
	ids->tag = calloc(count, sizeof(*ids->tag));
	if (ids->taken != NULL && ids->tag != NULL)
		return 0;
	driver_ids_free(ids);
	return -ENOMEM;
}

void
driver_ids_free(struct driver_ids *ids)
{
	free(ids->taken);
	free(ids->tag);
	memset(ids, 0, sizeof(*ids));
}

/* The index that rests at a position, counted from the one that was returned first */
static uint32_t *
resting(struct driver_ids *ids, uint32_t position)
{
	return &ids->rest[(ids->rest_first + position) % DRIVER_IDS_REST];
}

static uint32_t
end_rest(struct driver_ids *ids)
{
	uint32_t index = *resting(ids, 0);

	ids->rest_first++;
	ids->rest_n--;
	return index;
}

/* The lowest index that is neither in use nor resting; count: all are. */
static uint32_t
find_lowest(struct driver_ids *ids)
{
	uint32_t i = ids->lowest;

	while (i < ids->count && bit_test(ids->taken, i)) {
		uint64_t free = ~ids->taken[i / WORD_BITS] >> i % WORD_BITS;

		i = free != 0 ? i + (uint32_t)__builtin_ctzll(free)
			      : (i / WORD_BITS + 1) * WORD_BITS;
	}
	ids->lowest = i < ids->count ? i : ids->count;
	return ids->lowest;
}

int
driver_ids_take(struct driver_ids *ids, uint32_t *index)
{
	if (ids->used >= ids->count - ids->first)
		return -ENOMEM;
	*index = find_lowest(ids);
	if (*index == ids->count)
		*index = end_rest(ids);
	bit_set(ids->taken, *index);
	ids->used++;
	return 0;
}

int
driver_ids_take_of(struct driver_ids *ids, uint32_t part, uint32_t n, uint32_t *index)
{
	uint32_t i = (ids->lowest + n - 1) / n * n + part;

	if (n == 1)
		return driver_ids_take(ids, index);
	/* the lowest one may be one of this part below its multiple */
	i = i >= n && i - n >= ids->lowest ? i - n : i;
	while (i < ids->count && bit_test(ids->taken, i))
		i += n;
	for (uint32_t at = 0; i >= ids->count && at < ids->rest_n; at++)
		if (*resting(ids, at) % n == part)
			i = *resting(ids, at);
	if (i >= ids->count)
		return -ENOMEM;
	*index = i;
	return driver_ids_take_at(ids, i);
}

/* Its position among those that rest; rest_n: it does not. */
static uint32_t
find_resting(const struct driver_ids *ids, uint32_t index)
{
	uint32_t at = 0;

	while (at < ids->rest_n && ids->rest[(ids->rest_first + at) % DRIVER_IDS_REST] != index)
		at++;
	return at;
}

/* Whether it rests; it does so no longer. */
static bool
wake_up(struct driver_ids *ids, uint32_t index)
{
	uint32_t at = find_resting(ids, index);

	if (at == ids->rest_n)
		return false;
	for (; at > 0; at--)
		*resting(ids, at) = *resting(ids, at - 1);
	end_rest(ids);
	return true;
}

bool
driver_ids_in_use(const struct driver_ids *ids, uint32_t index)
{
	return index >= ids->first && index < ids->count && bit_test(ids->taken, index) &&
	       find_resting(ids, index) == ids->rest_n;
}

int
driver_ids_take_at(struct driver_ids *ids, uint32_t index)
{
	if (index < ids->first || index >= ids->count)
		return -EINVAL;
	if (bit_test(ids->taken, index) && !wake_up(ids, index))
		return -EBUSY;
	bit_set(ids->taken, index);
	ids->used++;
	return 0;
}

void
driver_ids_give(struct driver_ids *ids, uint32_t index)
{
	ids->used--;
	if (ids->rest_n == DRIVER_IDS_REST) {
		uint32_t rested = end_rest(ids);

		bit_clear(ids->taken, rested);
		if (rested < ids->lowest)
			ids->lowest = rested;
	}
	*resting(ids, ids->rest_n++) = index;
}

uint32_t
driver_ids_new_tag(struct driver_ids *ids, uint32_t index, uint32_t bits,
		   struct driver_random *random)
{
	uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1);
	uint32_t tag;

	do {
		tag = (uint32_t)driver_random_next(random) & mask;
	} while (tag == ids->tag[index] && mask != 0);
	ids->tag[index] = tag;
	return tag;
}

int
driver_ranges_init(struct driver_ranges *ranges, uint32_t max_log)
{
	memset(ranges, 0, sizeof(*ranges));
	ranges->max_log = max_log;
	ranges->free = calloc(max_log + 1, sizeof(*ranges->free));
	ranges->free_count = calloc(max_log + 1, sizeof(*ranges->free_count));
	if (ranges->free == NULL || ranges->free_count == NULL)
		goto err_free;
	for (uint32_t log = 0; log <= max_log; log++) {
		ranges->free[log] = bitmap(UINT64_C(1) << (max_log - log));
		if (ranges->free[log] == NULL)
			goto err_free;
	}
	bit_set(ranges->free[max_log], 0);
	ranges->free_count[max_log] = 1;
	return 0;

err_free:
	driver_ranges_free(ranges);
	return -ENOMEM;
}

void
driver_ranges_free(struct driver_ranges *ranges)
{
	for (uint32_t log = 0; ranges->free != NULL && log <= ranges->max_log; log++)
		free(ranges->free[log]);
	free(ranges->free);
	free(ranges->free_count);
	memset(ranges, 0, sizeof(*ranges));
}

static uint32_t
log2_down(uint64_t n)
{
	return 63 - (uint32_t)__builtin_clzll(n);
}

static uint32_t
log2_up(uint64_t n)
{
	return n > 1 ? log2_down(n - 1) + 1 : 0;
}

static void
block_mark(struct driver_ranges *ranges, uint32_t log, uint32_t n)
{
	bit_set(ranges->free[log], n);
	ranges->free_count[log]++;
}

static void
block_unmark(struct driver_ranges *ranges, uint32_t log, uint32_t n)
{
	bit_clear(ranges->free[log], n);
	ranges->free_count[log]--;
}

/* The first free block of that size, which exists. */
static uint32_t
block_find(const struct driver_ranges *ranges, uint32_t log)
{
	const uint64_t *map = ranges->free[log];
	uint32_t word = 0;

	while (map[word] == 0)
		word++;
	return word * WORD_BITS + (uint32_t)__builtin_ctzll(map[word]);
}

/* The size of the free block that contains the n-th of size 2^log; -1: it is not free as a whole */
static int
block_inside(const struct driver_ranges *ranges, uint32_t log, uint32_t n)
{
	for (uint32_t have = log; have <= ranges->max_log; have++)
		if (bit_test(ranges->free[have], n >> (have - log)))
			return (int)have;
	return -1;
}

/* Take the n-th block of size 2^log out of the free one of size 2^have that contains it. */
static void
block_split(struct driver_ranges *ranges, uint32_t have, uint32_t log, uint32_t n)
{
	block_unmark(ranges, have, n >> (have - log));
	while (have-- > log)
		block_mark(ranges, have, (n >> (have - log)) ^ 1);
}

static void
block_free(struct driver_ranges *ranges, uint32_t log, uint32_t n)
{
	while (log < ranges->max_log && bit_test(ranges->free[log], n ^ 1)) {
		block_unmark(ranges, log, n ^ 1);
		n /= 2;
		log++;
	}
	block_mark(ranges, log, n);
}

static void
free_range(struct driver_ranges *ranges, uint64_t first, uint64_t count)
{
	while (count > 0) {
		uint32_t log = log2_down(count);

		if (first != 0 && (uint32_t)__builtin_ctzll(first) < log)
			log = (uint32_t)__builtin_ctzll(first);
		block_free(ranges, log, (uint32_t)(first >> log));
		first += UINT64_C(1) << log;
		count -= UINT64_C(1) << log;
	}
}

/* A block that is aligned to its size; false: no block is large enough. */
static bool
take_aligned(struct driver_ranges *ranges, uint32_t log, uint32_t *first)
{
	uint32_t have = log, n;

	while (have <= ranges->max_log && ranges->free_count[have] == 0)
		have++;
	if (have > ranges->max_log)
		return false;
	n = block_find(ranges, have) << (have - log);
	block_split(ranges, have, log, n);
	*first = n << log;
	return true;
}

#define RUN_LOG 12u /* a search looks at 2^RUN_LOG blocks at most */

/* Successive free blocks of one size; *taken: their entries, at least count. */
static bool
take_run(struct driver_ranges *ranges, uint32_t count, uint32_t *first, uint64_t *taken)
{
	uint32_t log = ranges->max_log > RUN_LOG ? ranges->max_log - RUN_LOG : 0;
	uint32_t blocks = 1u << (ranges->max_log - log), need, run = 0;

	need = (uint32_t)((count + (UINT64_C(1) << log) - 1) >> log);
	for (uint32_t n = 0; n < blocks; n++) {
		run = block_inside(ranges, log, n) >= 0 ? run + 1 : 0;
		if (run < need)
			continue;
		for (uint32_t i = n + 1 - need; i <= n; i++)
			block_split(ranges, (uint32_t)block_inside(ranges, log, i), log, i);
		*first = (n + 1 - need) << log;
		*taken = (uint64_t)need << log;
		return true;
	}
	return false;
}

int
driver_ranges_take(struct driver_ranges *ranges, uint32_t count, uint32_t *first)
{
	uint32_t log = log2_up(count);
	uint64_t taken = UINT64_C(1) << log;

	if (log > ranges->max_log)
		return -ENOMEM;
	if (!take_aligned(ranges, log, first) && !take_run(ranges, count, first, &taken))
		return -ENOMEM;
	free_range(ranges, *first + (uint64_t)count, taken - count);
	ranges->used += count;
	return 0;
}

void
driver_ranges_give(struct driver_ranges *ranges, uint32_t first, uint32_t count)
{
	ranges->used -= count;
	free_range(ranges, first, count);
}
