/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Slots: | source 0 .. count-1 | sink 0 .. count-1 | headers of datagrams, or the counter of
 * atomics |. A slot is 64 bytes larger than the largest message, and message i begins i mod 4 bytes
 * after its start.
 */

#include <errno.h>
#include <string.h>

#include "ep.h"

#define SLACK 64u
#define GRH_STRIDE 64u

/* Sizes of EP_SIZES in terms of the MTU: half MTUs, and bytes more or less. */
static const struct {
	int halves, bytes;
} sizes[] = {
	{0, 0}, {0, 1},	 {0, 3}, {1, 0}, {2, -1}, {2, 0}, {2, 1},
	{3, 2}, {4, -1}, {4, 0}, {4, 1}, {6, 0},  {7, 5},
};

/* datagrams fit the MTU */
static const unsigned int datagrams = 6;

size_t
ep_size(const struct perf_exchange *t, unsigned int i)
{
	unsigned int n = t->service == IBV_QPT_UD ? datagrams : sizeof(sizes) / sizeof(sizes[0]);

	if (ep_op_is_atomic(ep_op(t, i)))
		return 8;
	if ((t->flags & EP_SIZES) == 0)
		return t->size;
	i %= n;
	return (size_t)((int)t->mtu / 2 * sizes[i].halves + sizes[i].bytes);
}

size_t
ep_stride(const struct perf_exchange *t)
{
	size_t largest = 0;

	for (unsigned int i = 0; i < t->count; i++)
		if (ep_size(t, i) > largest)
			largest = ep_size(t, i);
	return ((largest + 63) & ~(size_t)63) + SLACK;
}

size_t
ep_length(const struct perf_exchange *t)
{
	return t->count * (2 * ep_stride(t) + GRH_STRIDE);
}

static unsigned int
shift(const struct ep *ep, unsigned int i, unsigned int by)
{
	return ep_op_is_atomic(ep_op(&ep->test, i)) ? 0 : by & 3;
}

uint64_t
ep_source(const struct ep *ep, uint64_t base, unsigned int i)
{
	return base + i * ep->stride + shift(ep, i, i);
}

uint64_t
ep_sink(const struct ep *ep, uint64_t base, unsigned int i)
{
	return base + (ep->test.count + i) * ep->stride + shift(ep, i, i + 1);
}

uint64_t
ep_counter(const struct ep *ep, uint64_t base)
{
	return base + 2 * ep->test.count * ep->stride;
}

uint64_t
ep_grh(const struct ep *ep, unsigned int i)
{
	return (uintptr_t)ep->memory + 2 * ep->test.count * ep->stride + i * GRH_STRIDE;
}

/* Byte j of message i; end: 1 of the requester, 0 of the responder. */
static inline uint8_t
pattern(uint64_t seed, unsigned int end, unsigned int i, size_t j)
{
	uint32_t x = (uint32_t)(seed * 0x9e3779b1u + end * 0x7feb352du + i * 0x85ebca6bu +
				(uint32_t)j * 0xc2b2ae35u);

	return (uint8_t)((x ^ x >> 15) >> 8);
}

void
ep_fill(struct ep *ep)
{
	const struct perf_exchange *t = &ep->test;
	uint64_t base = (uintptr_t)ep->memory;

	memset(ep->memory, EP_GUARD, ep->length);
	for (unsigned int i = 0; i < t->count; i++) {
		uint8_t *p = (uint8_t *)(uintptr_t)ep_source(ep, base, i);
		size_t size = ep_size(t, i);

		for (size_t j = 0; j < size; j++)
			p[j] = pattern(t->seed, t->requester != 0, i, j);
	}
	if (t->service == IBV_QPT_RC && !t->requester)
		*(uint64_t *)(uintptr_t)ep_counter(ep, base) = EP_ATOMIC_START;
}

static size_t
first_wrong(const struct ep *ep, const uint8_t *p, unsigned int i, size_t size)
{
	size_t j = 0;

	while (j < size && p[j] == pattern(ep->test.seed, !ep->test.requester, i, j))
		j++;
	return j;
}

int
ep_check(struct ep *ep, unsigned int slot, unsigned int i, size_t size, bool after)
{
	uint64_t base = (uintptr_t)ep->memory, at = ep_sink(ep, base, slot);
	const uint8_t *p = (const uint8_t *)(uintptr_t)at;
	size_t wrong = first_wrong(ep, p, i, size);
	const uint8_t *end =
		(const uint8_t *)(uintptr_t)(base + (ep->test.count + slot + 1) * ep->stride);

	if (wrong < size)
		return ep_fail(ep, -EBADMSG,
			       "message %u: byte %zu of %zu is wrong (%02x, not %02x)", i, wrong,
			       size, p[wrong],
			       pattern(ep->test.seed, !ep->test.requester, i, wrong));
	for (const uint8_t *q = p + size; after && q < end; q++)
		if (*q != EP_GUARD)
			return ep_fail(ep, -EBADMSG,
				       "message %u: byte %td behind its end was written", i,
				       q - p - (ptrdiff_t)size);
	return 0;
}

bool
ep_arrived(struct ep *ep, unsigned int i)
{
	size_t size = ep_size(&ep->test, i);
	const volatile uint8_t *p =
		(const uint8_t *)(uintptr_t)ep_sink(ep, (uintptr_t)ep->memory, i);

	return size == 0 || first_wrong(ep, (const uint8_t *)p, i, size) == size;
}

int
ep_check_loss(struct ep *ep, unsigned int i)
{
	const uint8_t *p = (const uint8_t *)(uintptr_t)ep_sink(ep, (uintptr_t)ep->memory, i);
	size_t size = ep_size(&ep->test, i);

	for (size_t j = 0; j < size; j++)
		if (p[j] != EP_GUARD && p[j] != pattern(ep->test.seed, !ep->test.requester, i, j))
			return ep_fail(ep, -EBADMSG, "message %u: byte %zu is neither old nor new",
				       i, j);
	return 0;
}
