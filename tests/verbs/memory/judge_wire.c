/* SPDX-License-Identifier: BSD-3-Clause */

/* Transfers between regions: their data, its destination, and allowed failures. */

#include <sys/mman.h>
#include <time.h>

#include "judge.h"

#define TIMEOUT_S 120
#define MAX_RUNS 40u
#define FEW_TRIES 24u

/* A part of a region, and where the model has its bytes */
struct side {
	struct region *region;
	size_t offset, bytes;
	bool detached;
	uint32_t runs;
	struct {
		uint8_t *at;
		size_t bytes;
		struct page *page; /* NULL: heap */
	} run[MAX_RUNS];
};

static struct {
	struct ibv_mr *mr;
	uint64_t *word; /* where atomics put the old value */
} result;

/* ---- connection ---- */

static void
connect_pair(void)
{
	for (uint32_t i = 0; i < 2; i++)
		judge.qp[i] = all_qp(&judge.all, IBV_QPT_RC, judge.all.cq, NULL, 0);
	all_connect(&judge.all, judge.qp[0], judge.qp[1]);
}

void
wire_open(void)
{
	connect_pair();
	result.word = model_memory(PAGE);
	result.mr = ibv_reg_mr(judge.all.pd, result.word, PAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(result.mr != NULL);
}

void
wire_close(void)
{
	for (uint32_t i = 0; i < 2; i++)
		CHECK(ibv_destroy_qp(judge.qp[i]) == 0);
	CHECK(ibv_dereg_mr(result.mr) == 0);
}

/* After an error: flushed completions go with the CQ's entries of the destroyed pair. */
static void
connect_again(void)
{
	for (uint32_t i = 0; i < 2; i++)
		CHECK(ibv_destroy_qp(judge.qp[i]) == 0);
	connect_pair();
}

static time_t
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static struct ibv_wc
next_completion(void)
{
	time_t end = seconds() + TIMEOUT_S;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(judge.all.cq, 1, &wc)) == 0)
		CHECK(seconds() < end);
	CHECK(n == 1);
	return wc;
}

static enum ibv_wc_status
wait_completion(void)
{
	return next_completion().status;
}

/* ---- sides ---- */

static bool
side_add(struct side *s, uint8_t *at, size_t bytes, struct page *page)
{
	if (s->runs == MAX_RUNS)
		return false;
	s->run[s->runs].at = at;
	s->run[s->runs].bytes = bytes;
	s->run[s->runs++].page = page;
	return true;
}

/*
 * In place the memory must be there still, with the rights that the access needs, and be all the
 * main thread's. A pinned page is reached wherever it is.
 */
static bool
side_add_page(struct side *s, uint32_t i, size_t in_page, size_t bytes, bool writes)
{
	struct region *r = s->region;
	const struct vpage *v = &r->window->v[r->first + i];
	bool attached = v->page == r->page[i];
	uint8_t prot = PROT_READ | (writes ? PROT_WRITE : 0);

	if (r->page[i]->unknown || in_page + bytes > r->window->owned)
		return false;
	if (r->in_place && (!attached || (v->prot & prot) != prot))
		return false;
	s->detached |= !attached;
	return side_add(s, r->page[i]->bytes + in_page, bytes, r->page[i]);
}

static bool
side_describe(struct side *s, bool writes)
{
	struct region *r = s->region;
	size_t at = ((uintptr_t)r->va & (PAGE - 1)) + s->offset, left = s->bytes;

	s->runs = 0;
	s->detached = false;
	if (r->window == NULL)
		return side_add(s, r->chunk->shadow + (r->va - r->chunk->p) + s->offset, left,
				NULL);
	while (left > 0) {
		size_t in_page = at % PAGE, run = PAGE - in_page < left ? PAGE - in_page : left;

		if (!side_add_page(s, (uint32_t)(at / PAGE), in_page, run, writes))
			return false;
		at += run;
		left -= run;
	}
	return true;
}

/* A part of a region that has these rights */
static bool
side_pick(struct side *s, int need, size_t bytes, bool writes)
{
	for (uint32_t tries = 0; tries < FEW_TRIES; tries++) {
		struct region *r = &judge.region[random_below(MAX_REGIONS)];

		if (r->mr == NULL || (r->access & need) != need || region_is_stale(r))
			continue;
		s->region = r;
		s->bytes = bytes < r->length ? bytes : r->length;
		s->offset = chance(30) ? 0 : random_below((uint32_t)(r->length - s->bytes + 1));
		if (side_describe(s, writes))
			return true;
	}
	return false;
}

static bool
sides_overlap(const struct side *a, const struct side *b)
{
	for (uint32_t i = 0; i < a->runs; i++)
		for (uint32_t k = 0; k < b->runs; k++)
			if (a->run[i].at < b->run[k].at + b->run[k].bytes &&
			    b->run[k].at < a->run[i].at + a->run[i].bytes)
				return true;
	return false;
}

static void
side_gather(const struct side *s, uint8_t *to)
{
	for (uint32_t i = 0; i < s->runs; i++) {
		memcpy(to, s->run[i].at, s->run[i].bytes);
		to += s->run[i].bytes;
	}
}

static void
side_scatter(const struct side *s, const uint8_t *from)
{
	for (uint32_t i = 0; i < s->runs; i++) {
		memcpy(s->run[i].at, from, s->run[i].bytes);
		from += s->run[i].bytes;
	}
}

static void
side_check(const struct side *s)
{
	const struct region *r = s->region;

	if (r->window != NULL)
		check_pages(r->window, r->first, r->npages);
	else
		check_chunk(r->chunk);
}

static uint8_t *
side_va(const struct side *s)
{
	return s->region->va + s->offset;
}

/* ---- bytes written by a failed transfer ---- */

/* Each byte is the old or the new one. */
static void
adopt(uint8_t *model, const uint8_t *live, const uint8_t *new_bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (live[i] == new_bytes[i])
			model[i] = live[i];
		if (live[i] != model[i])
			differs("after a failed transfer", live + i, model + i, live + i, 1);
	}
}

/* Where the page is mapped in the region's window; NULL: nowhere, or it cannot be read */
static const uint8_t *
live_page(const struct region *r, const struct page *page)
{
	for (uint32_t i = 0; i < r->npages; i++) {
		const struct vpage *v = &r->window->v[r->first + i];

		if (v->page == page && vpage_is_readable(v))
			return r->window->va + (r->first + i) * PAGE;
	}
	return NULL;
}

static void
side_adopt(const struct side *s, const uint8_t *new_bytes)
{
	for (uint32_t i = 0; i < s->runs; i++) {
		struct page *page = s->run[i].page;
		const uint8_t *live = page != NULL ? live_page(s->region, page) : NULL;

		if (live != NULL)
			adopt(s->run[i].at, live + (s->run[i].at - page->bytes), new_bytes,
			      s->run[i].bytes);
		else if (page != NULL)
			page->unknown = true;
		else
			adopt(s->run[i].at, side_va(s), new_bytes, s->run[i].bytes);
		new_bytes += s->run[i].bytes;
	}
}

/* ---- operations ---- */

static struct ibv_sge
side_sge(const struct side *s)
{
	return (struct ibv_sge){s->region->base + s->offset, (uint32_t)s->bytes,
				s->region->mr->lkey};
}

static void
post(const struct side *local, const struct side *remote, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = side_sge(local);
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = remote->region->base + remote->offset;
		wr.wr.rdma.rkey = remote->region->mr->rkey;
	}
	CHECK(ibv_post_send(judge.qp[0], &wr, &bad) == 0);
}

static void
post_receive(const struct side *to)
{
	struct ibv_sge sge = side_sge(to);
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	CHECK(ibv_post_recv(judge.qp[1], &wr, &bad) == 0);
}

static void
note_transfer(const char *what, const struct side *from, const struct side *to)
{
	note(side_va(from), from->bytes, "%s to %p%s", what, (void *)side_va(to),
	     from->detached ? ", detached" : "");
	note(side_va(to), to->bytes, "%s from %p%s", what, (void *)side_va(from),
	     to->detached ? ", detached" : "");
}

/* All pages are there: it succeeds. Pages that are not may make it fail. */
static void
settle(const char *what, enum ibv_wc_status status, const struct side *from, const struct side *to)
{
	static uint8_t bytes[MAX_TRANSFER];

	side_gather(from, bytes);
	judge.count.transfers++;
	judge.count.detached += from->detached || to->detached;
	if (status == IBV_WC_SUCCESS) {
		side_scatter(to, bytes);
	} else {
		fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(status));
		errno = EIO;
		if (!from->detached && !to->detached)
			failed(what, side_va(to), to->bytes);
		judge.count.failed++;
		connect_again();
		side_adopt(to, bytes);
	}
	side_check(from);
	side_check(to);
}

/* A request that fails at its own end sends nothing, and the receive stays. */
static enum ibv_wc_status
wait_both(bool receives)
{
	struct ibv_wc wc = next_completion();
	enum ibv_wc_status received = wc.status;
	bool has_received = !receives;

	while (wc.qp_num != judge.qp[0]->qp_num) {
		has_received = true;
		wc = next_completion();
	}
	if (wc.status != IBV_WC_SUCCESS || !receives)
		return wc.status;
	return has_received ? received : wait_completion();
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	int from, to;
} operations[] = {
	{"WRITE", IBV_WR_RDMA_WRITE, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE},
	{"READ", IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE},
	{"SEND", IBV_WR_SEND, 0, IBV_ACCESS_LOCAL_WRITE},
};

static size_t
random_bytes(void)
{
	static const uint32_t max[] = {8, 64, 1000, 4096, 9000, MAX_TRANSFER};

	return 1 + random_below(max[random_below(sizeof(max) / sizeof(max[0]))]);
}

static void
carry(void)
{
	uint32_t k = random_below(sizeof(operations) / sizeof(operations[0]));
	bool receives = operations[k].opcode == IBV_WR_SEND;
	static struct side from, to;

	if (!side_pick(&from, operations[k].from, random_bytes(), false) ||
	    !side_pick(&to, operations[k].to, from.bytes, true))
		return;
	from.bytes = to.bytes;
	if (!side_describe(&from, false) || sides_overlap(&from, &to))
		return;
	note_transfer(operations[k].name, &from, &to);
	if (receives)
		post_receive(&to);
	if (operations[k].opcode == IBV_WR_RDMA_READ)
		post(&to, &from, IBV_WR_RDMA_READ);
	else
		post(&from, &to, operations[k].opcode);
	settle(operations[k].name, wait_both(receives), &from, &to);
}

static void
post_add(const struct side *to, uint64_t add)
{
	struct ibv_sge sge = {(uintptr_t)result.word, sizeof(*result.word), result.mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	wr.wr.atomic.remote_addr = to->region->base + to->offset;
	wr.wr.atomic.rkey = to->region->mr->rkey;
	wr.wr.atomic.compare_add = add;
	CHECK(ibv_post_send(judge.qp[0], &wr, &bad) == 0);
}

static void
settle_add(const struct side *to, uint64_t add)
{
	enum ibv_wc_status status = wait_completion();
	uint64_t old, new_value;

	side_gather(to, (uint8_t *)&old);
	new_value = old + add;
	judge.count.transfers++;
	judge.count.detached += to->detached;
	if (status == IBV_WC_SUCCESS) {
		if (*result.word != old)
			differs("old value of an atomic", side_va(to), (const uint8_t *)&old,
				(const uint8_t *)result.word, sizeof(old));
		side_scatter(to, (const uint8_t *)&new_value);
	} else {
		fprintf(stderr, "FETCH_ADD: %s\n", ibv_wc_status_str(status));
		errno = EIO;
		if (!to->detached)
			failed("FETCH_ADD", side_va(to), to->bytes);
		judge.count.failed++;
		connect_again();
		side_adopt(to, (const uint8_t *)&new_value);
	}
	side_check(to);
}

static void
add(void)
{
	int need = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	static struct side to;
	uint64_t summand;

	if (!side_pick(&to, need, sizeof(uint64_t), true) || to.bytes < sizeof(uint64_t))
		return;
	if (((uintptr_t)side_va(&to) | (to.region->base + to.offset)) % sizeof(uint64_t) != 0)
		return;
	summand = random64();
	note(side_va(&to), to.bytes, "FETCH_ADD%s", to.detached ? ", detached" : "");
	post_add(&to, summand);
	settle_add(&to, summand);
}

void
step_transfer(void)
{
	if (chance(15))
		add();
	else
		carry();
}
