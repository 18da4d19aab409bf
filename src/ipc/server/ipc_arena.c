/* SPDX-License-Identifier: BSD-3-Clause */

/* Where segments lie: slots, their order by client address and by bus address, free places. */

#include <string.h>

#include "ipc_memory_impl.h"

/* ---- slots ---- */

struct ipc_segment *
ipc_arena_slot(struct ipc_memory *m)
{
	struct ipc_segment *s = m->free;
	uint32_t used = m->slots;

	if (s != NULL) {
		m->free = s->next_free;
		return s;
	}
	if (used == m->config.segments_max)
		return NULL;
	__atomic_store_n(&m->slots, used + 1, __ATOMIC_RELEASE);
	return &m->segment[used];
}

void
ipc_arena_unslot(struct ipc_memory *m, struct ipc_segment *s)
{
	s->next_free = m->free;
	m->free = s;
}

/* ---- by client address ---- */

uint32_t
ipc_arena_behind(const struct ipc_memory *m, uint64_t va)
{
	uint32_t low = 0, high = m->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (m->by_va[mid]->va + m->by_va[mid]->length - 1 < va)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct ipc_segment *
ipc_arena_at(const struct ipc_memory *m, uint64_t va)
{
	uint32_t i = ipc_arena_behind(m, va);

	return i < m->count && m->by_va[i]->va <= va ? m->by_va[i] : NULL;
}

/* ---- by bus address ---- */

/* The first segment that ends after the address, as an index of by_bus */
static uint32_t
behind_bus(const struct ipc_memory *m, uint64_t bus)
{
	uint32_t low = 0, high = m->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (m->by_bus[mid]->bus + m->by_bus[mid]->length <= bus)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The first free place after `from` that is congruent to va modulo align. 0: none. */
static uint64_t
place_from(const struct ipc_memory *m, uint64_t from, uint64_t va, uint64_t length, uint64_t align)
{
	uint64_t end = m->base + m->bytes, at = from;

	for (uint32_t i = behind_bus(m, from);; i++) {
		at += (va - at) & (align - 1);
		while (i < m->count && m->by_bus[i]->bus + m->by_bus[i]->length <= at)
			i++;
		if (at >= end || length > end - at)
			return 0;
		if (i == m->count || m->by_bus[i]->bus >= at + length)
			return at;
		at = m->by_bus[i]->bus + m->by_bus[i]->length;
	}
}

/* No large page fits into a segment that is smaller: they lie side by side. */
static uint64_t
alignment(uint64_t length)
{
	if (length >= UINT64_C(1) << IPC_GIANT_LOG)
		return UINT64_C(1) << IPC_GIANT_LOG;
	return length >= UINT64_C(1) << IPC_HUGE_LOG ? UINT64_C(1) << IPC_HUGE_LOG : IPC_PAGE;
}

uint64_t
ipc_arena_place(const struct ipc_memory *m, uint64_t va, uint64_t length)
{
	uint64_t align = alignment(length), at = place_from(m, m->next, va, length, align);

	return at != 0 ? at : place_from(m, m->base, va, length, align);
}

/*
 * Further mappings of the process if [bus, bus + length), which lies between two segments, is one:
 * itself and the holes on both sides, instead of one hole.
 */
uint32_t
ipc_arena_maps(const struct ipc_memory *m, uint64_t bus, uint64_t length)
{
	uint32_t i = behind_bus(m, bus);
	uint64_t low = i > 0 ? m->by_bus[i - 1]->bus + m->by_bus[i - 1]->length : m->base;
	uint64_t high = m->base + m->bytes;

	if (i < m->count && m->by_bus[i]->bus == bus)
		i++; /* bus is the start of a segment */
	if (i < m->count)
		high = m->by_bus[i]->bus;
	return (uint32_t)(low != bus) + (uint32_t)(high != bus + length);
}

/* ---- both ---- */

static void
insert(struct ipc_segment **order, uint32_t count, uint32_t i, struct ipc_segment *s)
{
	memmove(&order[i + 1], &order[i], (count - i) * sizeof(order[0]));
	order[i] = s;
}

static void delete (struct ipc_segment **order, uint32_t count, uint32_t i)
{
	memmove(&order[i], &order[i + 1], (count - i - 1) * sizeof(order[0]));
}

void
ipc_arena_enter(struct ipc_memory *m, struct ipc_segment *s)
{
	insert(m->by_va, m->count, ipc_arena_behind(m, s->va), s);
	insert(m->by_bus, m->count, behind_bus(m, s->bus), s);
	m->count++;
}

void
ipc_arena_leave(struct ipc_memory *m, const struct ipc_segment *s)
{
	delete (m->by_va, m->count, ipc_arena_behind(m, s->va));
	delete (m->by_bus, m->count, behind_bus(m, s->bus));
	m->count--;
}
