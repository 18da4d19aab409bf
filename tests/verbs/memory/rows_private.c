/* SPDX-License-Identifier: BSD-3-Clause */

/* Private memory that the program changes while regions lie in it, and after. */

#include <malloc.h>
#include <unistd.h>

#include "rows.h"

#define BIG ((size_t)390000)
#define SMALL ((size_t)30000)
#define PAGES 16u

/* ---- the heap ---- */

/* Blocks of this size come from the heap from now on. */
static void
lift_threshold(void)
{
	uint8_t *block = malloc(400000);

	row_fill(block, 400000, 0);
	free(block);
}

struct heap {
	uint8_t *below, *small, *big[4];
	struct ibv_mr *big_mr[4], *small_mr;
};

/* The small one, registered last, shares its last page with a big one. */
static void
heap_open(struct row *row, struct heap *h)
{
	lift_threshold();
	h->below = malloc(BIG);
	h->small = malloc(SMALL);
	for (int i = 0; i < 4; i++)
		h->big[i] = malloc(BIG);
	row_fill(h->small, SMALL, 9);
	for (int i = 0; i < 4; i++) {
		row_fill(h->big[i], BIG, (uint8_t)i);
		h->big_mr[i] = row_reg(row, h->big[i], BIG, ALL_ACCESS);
	}
	h->small_mr = row_reg(row, h->small, SMALL, ALL_ACCESS);
}

/* Each is deregistered before it is freed, and the allocator trims its heap. */
static void
heap_drop(struct heap *h)
{
	for (int i = 4; i-- > 0;) {
		row_dereg(h->big_mr[i]);
		row_check(h->big[i], BIG, (uint8_t)i);
		free(h->big[i]);
	}
}

static void
heap_trim(struct row *row)
{
	struct heap h;

	heap_open(row, &h);
	heap_drop(&h);
	row_check(h.small, SMALL, 9);
	row_dereg(h.small_mr);
	row_check(h.small, SMALL, 9);
	free(h.small);
	free(h.below);
}

static void
stale_on_wire(struct row *row)
{
	struct ibv_mr *mr;
	uint8_t *block;
	struct heap h;

	heap_open(row, &h);
	heap_drop(&h);
	block = malloc(BIG);
	row_fill(block, BIG, 77);
	mr = row_reg(row, block, BIG, ALL_ACCESS);
	row_send(row, block, BIG, mr);
	row_exchange(row, block, BIG, mr, 3);
	row_send(row, h.small, SMALL, h.small_mr);
	row_dereg(mr);
	row_dereg(h.small_mr);
	row_check(h.small, SMALL, 9);
	free(block);
	free(h.small);
	free(h.below);
}

#define BLOCKS 24u
#define TURNS 1000u

struct block {
	uint8_t *at;
	size_t bytes;
	struct ibv_mr *mr;
};

static void
block_turn(struct row *row, struct block *b, uint8_t number, uint32_t draw)
{
	if (b->at == NULL) {
		b->bytes = 1 + draw % (draw % 3 == 0 ? 100000 : 20000);
		b->at = malloc(b->bytes);
		CHECK(b->at != NULL);
		row_fill(b->at, b->bytes, number);
		return;
	}
	row_check(b->at, b->bytes, number);
	if (b->mr == NULL && draw % 4 != 0) {
		b->mr = row_reg(row, b->at, b->bytes, ALL_ACCESS);
		return;
	}
	if (b->mr != NULL)
		row_dereg(b->mr);
	row_check(b->at, b->bytes, number);
	free(b->at);
	*b = (struct block){0};
}

static uint32_t
next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

static void
random_heap(struct row *row)
{
	static struct block block[BLOCKS];
	uint32_t draw = 1;

	/* the heap ends where its last block ends */
	CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 24) == 1 && mallopt(M_TRIM_THRESHOLD, 4096) == 1);
	for (uint32_t i = 0; i < TURNS; i++) {
		uint32_t k = next_random(&draw) % BLOCKS;

		block_turn(row, &block[k], (uint8_t)k, next_random(&draw));
	}
	for (uint32_t k = 0; k < BLOCKS; k++)
		while (block[k].at != NULL)
			block_turn(row, &block[k], (uint8_t)k, 0);
}

/* ---- a range in pieces ---- */

enum split {
	SPLIT_MLOCK,
	SPLIT_MPROTECT,
	SPLIT_DONTDUMP,
	SPLIT_MUNMAP,
	WITH_OTHER = 8
};

static void
split_page(uint8_t *page, enum split how)
{
	switch (how) {
	case SPLIT_MLOCK:
		CHECK(mlock(page, PAGE) == 0);
		break;
	case SPLIT_MPROTECT:
		CHECK(mprotect(page, PAGE, PROT_READ) == 0);
		break;
	case SPLIT_DONTDUMP:
		CHECK(madvise(page, PAGE, MADV_DONTDUMP) == 0);
		break;
	default:
		CHECK(munmap(page, PAGE) == 0);
		break;
	}
}

/* The page is filled as a part of its range. */
static void
split_check(const uint8_t *at, const uint8_t *expected, bool hole)
{
	for (size_t i = 0; i < PAGES; i++)
		if (i != 4 || !hole)
			CHECK(memcmp(at + i * PAGE, expected + i * PAGE, PAGE) == 0);
}

static void
split(struct row *row)
{
	uint8_t *at = row_pages(PAGES, 1), *same = row_pages(PAGES, 1), *other = NULL, *next;
	struct ibv_mr *mr = row_reg(row, at, PAGES * PAGE, ALL_ACCESS), *other_mr = NULL, *next_mr;
	enum split how = row->way & ~WITH_OTHER;
	char perms[5];

	split_page(at + 4 * PAGE, how);
	if (row->way & WITH_OTHER) {
		other = row_pages(1, 2);
		other_mr = row_reg(row, other, PAGE, ALL_ACCESS);
	}
	row_dereg(mr);
	split_check(at, same, how == SPLIT_MUNMAP);
	/* nor does the range share pages with the next region */
	next = row_pages(PAGES, 3);
	next_mr = row_reg(row, next, PAGES * PAGE, ALL_ACCESS);
	row_exchange(row, next, PAGES * PAGE, next_mr, 4);
	split_check(at, same, how == SPLIT_MUNMAP);
	row_perms(at, perms);
	CHECK(strcmp(perms, "rw-p") == 0);
	row_dereg(next_mr);
	row_check(next, PAGES * PAGE, 5);
	if (other_mr == NULL)
		return;
	row_check(other, PAGE, 2);
	row_dereg(other_mr);
}

/* ---- two regions in a page ---- */

static void
meet_dontneed(struct row *row)
{
	uint8_t *at = row_pages(PAGES, 1);
	struct ibv_mr *a = row_reg(row, at, 15 * PAGE + 100, ALL_ACCESS);
	struct ibv_mr *b = row_reg(row, at + 15 * PAGE + 100, 500, ALL_ACCESS);

	row_dereg(a);
	row_check(at, PAGES * PAGE, 1);
	CHECK(madvise(at, 15 * PAGE, MADV_DONTNEED) == 0);
	row_check_zeros(at, 15 * PAGE);
	row_send(row, at + 15 * PAGE + 100, 500, b);
	row_dereg(b);
	row_check_zeros(at, 15 * PAGE);
}

/* ---- growing ---- */

#define OTHERS 8u

/* Memory of other regions, which nothing may reach */
struct others {
	uint8_t *at[OTHERS];
	struct ibv_mr *mr[OTHERS];
};

static void
others_open(struct row *row, struct others *o)
{
	for (uint32_t i = 0; i < OTHERS; i++) {
		o->at[i] = row_pages(PAGES, (uint8_t)(100 + i));
		o->mr[i] = row_reg(row, o->at[i], PAGES * PAGE, ALL_ACCESS);
	}
}

static void
others_close(const struct others *o)
{
	for (uint32_t i = 0; i < OTHERS; i++) {
		row_check(o->at[i], PAGES * PAGE, (uint8_t)(100 + i));
		row_dereg(o->mr[i]);
		row_check(o->at[i], PAGES * PAGE, (uint8_t)(100 + i));
	}
}

/* Block after block: each has a mapping of its own. */
static void
realloc_grows(struct row *row)
{
	size_t small = (size_t)600 * 1024, large = 3 * small;
	uint8_t *block = malloc(small), *grown;
	struct others o;
	struct ibv_mr *mr;

	row_fill(block, small, 1);
	mr = row_reg(row, block, small, ALL_ACCESS);
	others_open(row, &o);
	grown = realloc(block, large);
	CHECK(grown != NULL);
	row_check(grown, small, 1);
	memset(grown + small, 0x5a, large - small);
	row_dereg(mr);
	row_check(grown, small, 1);
	for (size_t i = small; i < large; i++)
		CHECK(grown[i] == 0x5a);
	mr = row_reg(row, grown, large, ALL_ACCESS);
	row_exchange(row, grown + small - 1000, 100000, mr, 6);
	row_dereg(mr);
	others_close(&o);
	free(grown);
}

static void
check_perms(const uint8_t *at, size_t bytes)
{
	char perms[5];

	for (size_t i = 0; i < bytes; i += PAGE) {
		row_perms(at + i, perms);
		CHECK(perms[3] == 'p');
	}
}

/* Without a region all of it is private again: MADV_DONTNEED brings zeros. */
static void
check_private(uint8_t *at, size_t bytes)
{
	check_perms(at, bytes);
	CHECK(madvise(at, bytes, MADV_DONTNEED) == 0);
	row_check_zeros(at, bytes);
}

/* The last pages of the range become more, where nothing is mapped behind them. */
static void
mremap_grows(struct row *row)
{
	size_t pages = row->way == 0 ? 1 : 4, more = 6, before;
	uint8_t *at = mmap(NULL, 32 * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	struct others o;

	CHECK(at != MAP_FAILED && munmap(at + pages * PAGE, (32 - pages) * PAGE) == 0);
	row_fill(at, pages * PAGE, 1);
	mr = row_reg(row, at, pages * PAGE, ALL_ACCESS);
	others_open(row, &o);
	before = pages - 1;
	if (row->way != 0) /* the range is two mappings */
		CHECK(mprotect(at, 2 * PAGE, PROT_READ) == 0);
	if (mremap(at + before * PAGE, PAGE, (1 + more) * PAGE, 0) == MAP_FAILED)
		row_skip("the mapping cannot grow where it is");
	row_check_zeros(at + pages * PAGE, more * PAGE);
	row_fill(at + pages * PAGE, more * PAGE, 2);
	row_dereg(mr);
	row_check(at, pages * PAGE, 1);
	row_check(at + pages * PAGE, more * PAGE, 2);
	check_perms(at + before * PAGE, (1 + more) * PAGE);
	mr = row_reg(row, at + pages * PAGE, more * PAGE, ALL_ACCESS);
	row_exchange(row, at + pages * PAGE, more * PAGE, mr, 3);
	row_dereg(mr);
	row_check(at + pages * PAGE, more * PAGE, 4);
	check_private(at + pages * PAGE, more * PAGE);
	others_close(&o);
}

/* The extension is moved away from the pages before it. */
static void
mremap_grows_and_parts(struct row *row)
{
	uint8_t *at = row_pages(1, 1), *to = row_pages(PAGES, 2), *grown;
	struct ibv_mr *mr = row_reg(row, at, PAGE, ALL_ACCESS);

	grown = mremap(at, PAGE, (1 + PAGES) * PAGE, MREMAP_MAYMOVE);
	CHECK(grown != MAP_FAILED);
	row_fill(grown + PAGE, PAGES * PAGE, 3);
	CHECK(mremap(grown + PAGE, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
	      to);
	row_dereg(mr);
	row_check(grown, PAGE, 1);
	row_check(to, PAGES * PAGE, 3);
	check_private(to, PAGES * PAGE);
	check_private(grown, PAGE);
}

static void
mremap_moves(struct row *row)
{
	uint8_t *at = row_pages(PAGES, 1), *to = row_pages(PAGES, 2);
	struct ibv_mr *mr = row_reg(row, at, PAGES * PAGE, ALL_ACCESS);
	char perms[5];

	CHECK(mremap(at, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	row_check(to, PAGES * PAGE, 1);
	row_fill(to, PAGES * PAGE, 3);
	if (!row->in_place && row_read(row, at, PAGES * PAGE, mr))
		row_check(row->mirror, PAGES * PAGE, 3);
	row_dereg(mr);
	row_check(to, PAGES * PAGE, 3);
	row_perms(to, perms);
	CHECK(strcmp(perms, "rw-p") == 0);
}

/* A region keeps the old pages that were unmapped under it, and does not see their replacement. */
static void
replaced(struct row *row)
{
	uint8_t *at = row_pages(PAGES, 1), *again;
	struct ibv_mr *mr = row_reg(row, at, PAGES * PAGE, ALL_ACCESS), *now;

	CHECK(munmap(at, PAGES * PAGE) == 0);
	again = mmap(at, PAGES * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(again == at);
	row_check_zeros(at, PAGES * PAGE);
	row_fill(at, PAGES * PAGE, 2);
	if (!row->in_place && row_read(row, at, PAGES * PAGE, mr))
		row_check(row->mirror, PAGES * PAGE, 1);
	now = row_reg(row, at, PAGES * PAGE, ALL_ACCESS);
	row_send(row, at, PAGES * PAGE, now);
	row_exchange(row, at, PAGES * PAGE, now, 5);
	row_dereg(mr);
	row_exchange(row, at, PAGES * PAGE, now, 7);
	row_dereg(now);
	row_check(at, PAGES * PAGE, 8);
}

struct row rows_private[] = {
	{"heap_trim", heap_trim, 0},
	{"stale_on_wire", stale_on_wire, 0},
	{"random_heap", random_heap, 0},
	{"split_mlock", split, SPLIT_MLOCK},
	{"split_mprotect", split, SPLIT_MPROTECT},
	{"split_dontdump", split, SPLIT_DONTDUMP},
	{"split_munmap", split, SPLIT_MUNMAP},
	{"split_mlock_other", split, SPLIT_MLOCK | WITH_OTHER},
	{"split_mprotect_other", split, SPLIT_MPROTECT | WITH_OTHER},
	{"split_dontdump_other", split, SPLIT_DONTDUMP | WITH_OTHER},
	{"split_munmap_other", split, SPLIT_MUNMAP | WITH_OTHER},
	{"meet_dontneed", meet_dontneed, 0},
	{"realloc_grows", realloc_grows, 0},
	{"mremap_one_page", mremap_grows, 0},
	{"mremap_last_mapping", mremap_grows, 1},
	{"mremap_grows_and_parts", mremap_grows_and_parts, 0},
	{"mremap_moves", mremap_moves, 0},
	{"replaced", replaced, 0},
	{0},
};
