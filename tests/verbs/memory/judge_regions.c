/* SPDX-License-Identifier: BSD-3-Clause */

/* Regions: which pages they pin, and which registrations must be refused. */

#include <sys/mman.h>

#include "judge.h"

#define WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define MAX_BYTES (20 * PAGE)

static const int accesses[] = {
	ALL_ACCESS,
	ALL_ACCESS & ~IBV_ACCESS_MW_BIND,
	IBV_ACCESS_LOCAL_WRITE,
	IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	IBV_ACCESS_REMOTE_READ,
	0,
	IBV_ACCESS_MW_BIND,
};

static int
random_access(void)
{
	return chance(50) ? ALL_ACCESS
			  : accesses[random_below(sizeof(accesses) / sizeof(accesses[0]))];
}

/* ---- a region's life ---- */

/* Its memory has been freed or reallocated: its contents belong to the allocator now. */
bool
region_is_stale(const struct region *r)
{
	return r->chunk != NULL && r->chunk->serial != r->serial;
}

static void
region_unpin(struct region *r)
{
	for (uint32_t i = 0; i < r->npages; i++) {
		r->page[i]->pins--;
		page_drop(r->page[i]);
	}
	r->npages = 0;
}

/* A daemon maps plain private memory, and shared memory where it is said to. */
static bool
region_is_in_place(const struct region *r)
{
	bool pinned = judge.pinned != PINNED_NONE && !r->window->in_place;

	for (uint32_t i = 0; i < r->npages && pinned; i++) {
		const struct vpage *v = &r->window->v[r->first + i];

		if (v->sort == PRIVATE)
			pinned = v->prot == (PROT_READ | PROT_WRITE);
		else
			pinned = v->sort == SHARED && judge.pinned == PINNED_ALL;
	}
	return !pinned;
}

static void
region_pin(struct region *r)
{
	if (r->window == NULL)
		return;
	r->first = (uint32_t)((size_t)(r->va - r->window->va) / PAGE);
	r->npages =
		(uint32_t)((size_t)(r->va + r->length - 1 - r->window->va) / PAGE) - r->first + 1;
	CHECK(r->npages <= MAX_REGION_PAGES);
	for (uint32_t i = 0; i < r->npages; i++) {
		r->page[i] = r->window->v[r->first + i].page;
		r->page[i]->pins++;
	}
	r->in_place = region_is_in_place(r);
}

static void
region_check(const struct region *r)
{
	if (r->window != NULL)
		check_pages(r->window, r->first > 0 ? r->first - 1 : 0, r->npages + 2);
	else if (!region_is_stale(r))
		check_chunk(r->chunk);
}

void
region_drop(struct region *r)
{
	note(r->va, r->length, "dereg");
	if (ibv_dereg_mr(r->mr) != 0)
		failed("ibv_dereg_mr", r->va, r->length);
	region_unpin(r);
	region_check(r);
	r->mr = NULL;
}

void
regions_of_chunk_drop(const struct chunk *c)
{
	for (uint32_t i = 0; i < MAX_REGIONS; i++) {
		struct region *r = &judge.region[i];

		if (r->mr != NULL && r->chunk == c && !region_is_stale(r))
			region_drop(r);
	}
}

/* ---- ranges ---- */

static void
choose_in_chunk(struct region *r, struct chunk *c)
{
	size_t from = chance(50) ? 0 : random_below((uint32_t)c->size);

	r->chunk = c;
	r->serial = c->serial;
	r->va = c->p + from;
	r->length = chance(50) ? c->size - from : 1 + random_below((uint32_t)(c->size - from));
}

/* Where a region of the same window begins or ends, or anywhere */
static size_t
random_start(const struct window *w)
{
	const struct region *other = &judge.region[random_below(MAX_REGIONS)];
	size_t at = random_below(w->n) * PAGE;

	if (other->mr != NULL && other->window == w && chance(70))
		at = (size_t)(other->va - w->va) + (chance(60) ? other->length : 0);
	else if (chance(50))
		at += random_below((uint32_t)PAGE);
	return at < w->n * PAGE ? at : 0;
}

static void
choose_in_window(struct region *r, struct window *w)
{
	size_t at = random_start(w), room = w->n * PAGE - at;
	size_t max = w->rare && chance(30) ? room : MAX_BYTES;

	r->window = w;
	r->va = w->va + at;
	r->length = 1 + random_below((uint32_t)(chance(30) ? PAGE : max));
	if (chance(30))
		r->length = (r->length + PAGE - 1) & ~(PAGE - 1);
	if (r->length > room)
		r->length = room;
}

static bool
choose_range(struct region *r)
{
	struct chunk *c = &judge.chunk[random_below(MAX_CHUNKS)];

	r->chunk = NULL;
	r->window = NULL;
	if (c->p != NULL && chance(45))
		choose_in_chunk(r, c);
	else
		choose_in_window(r, &judge.window[random_below(judge.windows)]);
	return true;
}

/* ---- refusals ---- */

enum verdict {
	ACCEPTED,
	REFUSED,
	UNKNOWN
};

/* Others may have memory where this program has none. */
static enum verdict
judge_page(const struct vpage *v, int access)
{
	if (v->page == NULL)
		return UNKNOWN;
	if ((v->prot & PROT_READ) == 0 || ((access & WRITES) != 0 && (v->prot & PROT_WRITE) == 0))
		return REFUSED;
	return ACCEPTED;
}

static enum verdict
judge_range(const struct region *r, int access)
{
	enum verdict verdict = ACCEPTED;

	if (r->window == NULL)
		return ACCEPTED;
	for (const uint8_t *at = r->va - ((uintptr_t)r->va & (PAGE - 1)); at < r->va + r->length;
	     at += PAGE) {
		enum verdict one =
			judge_page(&r->window->v[(size_t)(at - r->window->va) / PAGE], access);

		if (one == UNKNOWN)
			return UNKNOWN;
		if (one == REFUSED)
			verdict = REFUSED;
	}
	return verdict;
}

/* ---- steps ---- */

static struct region *
free_region(void)
{
	struct region *r = &judge.region[random_below(MAX_REGIONS)];

	if (r->mr != NULL)
		region_drop(r);
	return r;
}

static struct ibv_mr *
register_somehow(struct region *r)
{
	uint32_t way = random_below(10);
	struct ibv_mr *mr;

	r->base = (uintptr_t)r->va;
	r->fixed_base = way < 2;
	if (way == 0) {
		r->base = 0;
		mr = ibv_reg_mr(judge.all.pd, r->va, r->length, r->access | IBV_ACCESS_ZERO_BASED);
	} else if (way == 1) {
		r->base += (random64() >> 20) & ~(uint64_t)(PAGE - 1);
		mr = ibv_reg_mr_iova(judge.all.pd, r->va, r->length, r->base, r->access);
	} else {
		mr = ibv_reg_mr(judge.all.pd, r->va, r->length, r->access);
	}
	return mr;
}

static void
check_refused(const struct region *r)
{
	int err = errno;

	judge.count.refused++;
	note(r->va, r->length, "reg refused, access %#x, errno %d", (unsigned int)r->access, err);
	if (r->window != NULL)
		check_pages(r->window, 0, r->window->n);
	if (err == EFAULT)
		return;
	errno = err;
	failed("refusal by EFAULT: ibv_reg_mr", r->va, r->length);
}

void
step_register(void)
{
	struct region *r = free_region();
	enum verdict verdict;

	choose_range(r);
	r->access = random_access();
	verdict = judge_range(r, r->access);
	if (verdict == UNKNOWN || (verdict == REFUSED && !judge.refusals))
		return;
	r->mr = register_somehow(r);
	if (r->mr == NULL && verdict == REFUSED) {
		check_refused(r);
		return;
	}
	if (r->mr == NULL)
		failed("ibv_reg_mr", r->va, r->length);
	judge.count.registered++;
	note(r->va, r->length, "reg, access %#x", (unsigned int)r->access);
	errno = EPROTO;
	if (verdict == REFUSED)
		failed("refusal: ibv_reg_mr", r->va, r->length);
	region_pin(r);
	region_check(r);
}

void
step_deregister(void)
{
	struct region *r = &judge.region[random_below(MAX_REGIONS)];

	if (r->mr != NULL)
		region_drop(r);
}

/* The new range is pinned before the old one is given up. */
static void
region_move(struct region *r, struct region *to, int flags)
{
	int access = flags & IBV_REREG_MR_CHANGE_ACCESS ? to->access : 0;
	struct region old = *r;

	note(r->va, r->length, "rereg: from here");
	note(to->va, to->length, "rereg, access %#x", (unsigned int)to->access);
	if (ibv_rereg_mr(r->mr, flags, NULL, to->va, to->length, access) != 0)
		failed("ibv_rereg_mr", to->va, to->length);
	to->mr = r->mr;
	*r = *to;
	region_pin(r);
	region_unpin(&old);
	region_check(r);
	judge.count.reregistered++;
}

void
step_reregister(void)
{
	struct region *r = &judge.region[random_below(MAX_REGIONS)];
	int flags = IBV_REREG_MR_CHANGE_TRANSLATION;
	static struct region to;

	if (r->mr == NULL || r->fixed_base)
		return;
	memset(&to, 0, sizeof(to));
	choose_range(&to);
	to.base = (uintptr_t)to.va;
	to.access = r->access;
	if (chance(50)) {
		to.access = random_access();
		flags |= IBV_REREG_MR_CHANGE_ACCESS;
	}
	if (judge_range(&to, to.access) == ACCEPTED)
		region_move(r, &to, flags);
}
