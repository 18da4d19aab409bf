/* SPDX-License-Identifier: BSD-3-Clause */

/* Tests drawn from a seed. */

#include <stdio.h>

#include "host_special.h"

#define FAULTY_PACKETS 3000u /* on a bad wire rxe repeats packets often */

struct dice {
	uint64_t s;
};

static uint64_t
roll(struct dice *d, uint64_t sides)
{
	/* splitmix64 */
	uint64_t z = (d->s += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) % sides;
}

static const struct {
	const char *name;
	uint32_t service, op;
} kinds[] = {
	{"RC SEND", IBV_QPT_RC, IBV_WR_SEND},
	{"RC SEND_IMM", IBV_QPT_RC, IBV_WR_SEND_WITH_IMM},
	{"RC WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE},
	{"RC WRITE_IMM", IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM},
	{"RC READ", IBV_QPT_RC, IBV_WR_RDMA_READ},
	{"RC mixed", IBV_QPT_RC, EP_OP_MIXED},
	{"RC mixed", IBV_QPT_RC, EP_OP_MIXED},
	{"UC mixed", IBV_QPT_UC, EP_OP_MIXED},
	{"RC FETCH_ADD", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD},
	{"RC CMP_SWAP", IBV_QPT_RC, IBV_WR_ATOMIC_CMP_AND_SWP},
	{"UC SEND", IBV_QPT_UC, IBV_WR_SEND},
	{"UC WRITE", IBV_QPT_UC, IBV_WR_RDMA_WRITE},
	{"UC WRITE_IMM", IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM},
	{"UD SEND_IMM", IBV_QPT_UD, IBV_WR_SEND_WITH_IMM},
};

static void
draw_flags(struct dice *d, bool ours, struct perf_exchange *t)
{
	bool reads = t->op == IBV_WR_RDMA_READ || t->op == EP_OP_MIXED ||
		     ep_op_is_atomic((uint32_t)t->op);
	bool receives = ep_op_takes_recv((uint32_t)t->op);

	if (roll(d, 2) == 0)
		t->flags |= EP_SIZES;
	else if (!reads && t->size <= EP_INLINE_MAX && roll(d, 2) == 0)
		t->flags |= EP_INLINE;
	if (t->service != IBV_QPT_UC && (receives || t->op == EP_OP_MIXED) && roll(d, 4) == 0)
		t->flags |= EP_SRQ;
	if (receives && roll(d, 4) == 0)
		t->flags |= EP_SOLICITED;
	if (t->depth >= 8 && roll(d, 4) == 0)
		t->flags |= EP_UNSIGNALED;
	/* Linux 6.1 never repeats a fenced READ or atomic that was lost: it waits for itself */
	if (ours && t->service == IBV_QPT_RC && roll(d, 4) == 0)
		t->flags |= EP_FENCE;
}

static uint64_t
packets(const struct host_case *c)
{
	return c->test.count * (c->test.size / c->test.mtu + 2) * (c->qps != 0 ? c->qps : 1);
}

/* Faults only for services that repair them. */
static void
draw_faults(struct dice *d, struct host_case *c)
{
	if (c->test.service != IBV_QPT_RC || roll(d, 2) == 0)
		return;
	c->impair.drop = roll(d, 3) == 0 ? 0.02 : 0;
	c->impair.dup = roll(d, 3) == 0 ? 0.03 : 0;
	c->impair.reorder = roll(d, 3) == 0 ? 0.02 : 0;
	c->impair.corrupt = roll(d, 3) == 0 ? 0.01 : 0;
	if (roll(d, 4) == 0)
		c->test.delay_us = roll(d, 5000);
	while (c->test.count > 1 && packets(c) > FAULTY_PACKETS)
		c->test.count /= 2;
}

void
host_random_case(unsigned int i, uint64_t seed, struct host_case *c, char *name, size_t room)
{
	struct dice d = {.s = seed * 1000003 + i};
	unsigned int kind = (unsigned int)roll(&d, sizeof(kinds) / sizeof(kinds[0]));
	struct perf_exchange *t = &c->test;

	*c = (struct host_case){.ours = roll(&d, 2)};
	t->service = kinds[kind].service;
	t->op = kinds[kind].op;
	t->mtu = 256u << roll(&d, 5);
	t->ip = roll(&d, 2) ? 6 : 4;
	t->count = 1 + roll(&d, 60);
	t->depth = 1 + roll(&d, 20);
	t->rd_atomic = 1 + roll(&d, 16);
	t->sge = 1 + roll(&d, EP_SGE_MAX);
	t->size = roll(&d, 2) ? roll(&d, 20000) : roll(&d, 200);
	if (t->service == IBV_QPT_UD)
		t->size %= t->mtu + 1;
	t->psn = roll(&d, 4) == 0 ? 0xffffff - roll(&d, 40) : 0;
	if (roll(&d, 4) == 0) {
		c->qps = 2 + (unsigned int)roll(&d, 7);
		c->both_ways = roll(&d, 2);
	}
	draw_flags(&d, c->ours && !c->both_ways, t);
	draw_faults(&d, c);
	snprintf(name, room,
		 "drawn %u: %s %s MTU %u IPv%u size %u count %u depth %u sge %u flags %x QPs %u", i,
		 kinds[kind].name, c->ours ? "softhca->rxe" : "rxe->softhca", (unsigned int)t->mtu,
		 (unsigned int)t->ip, (unsigned int)t->size, (unsigned int)t->count,
		 (unsigned int)t->depth, (unsigned int)t->sge, (unsigned int)t->flags,
		 c->qps ? c->qps : 1);
}
