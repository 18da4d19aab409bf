/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The map from ICM addresses to owner memory (tables 3-2-12 .. 3-2-15). The engine uses its own
 * tables; a copy of each context is written to ICM when its ownership changes.
 */

#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "ctxmgt/ctxmgt.h"

static const struct {
	uint32_t map, size;
} tables[HCA_ICM_TABLE_N] = {
#define X(e, m, s) [HCA_ICM_##e] = {HCA_ICM_##m, s},
	HCA_ICM_TABLE_LIST(X)
#undef X
};

static uint64_t
chunk_end(const struct hca_icm_chunk *c)
{
	return c->virt + (uint64_t)c->pages * HCA_ICM_PAGE_SIZE;
}

/* Index of the first chunk that ends after virt. */
static uint32_t
map_lower(const struct hca_icm_map *m, uint64_t virt)
{
	uint32_t lo = 0, hi = m->count;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (chunk_end(&m->chunk[mid]) > virt)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static bool
map_reserve(struct hca_icm_map *m, uint32_t n)
{
	uint32_t room = m->room ? m->room : 64;
	struct hca_icm_chunk *c;

	if (n > HCA_ICM_CHUNKS)
		return false;
	while (room < n)
		room *= 2;
	if (room == m->room)
		return true;
	c = realloc(m->chunk, room * sizeof(*c));
	if (c == NULL)
		return false;
	m->chunk = c;
	m->room = room;
	return true;
}

static bool
map_insert(struct hca_icm_map *m, const struct hca_icm_chunk *c)
{
	uint32_t i = map_lower(m, c->virt);

	if (i < m->count && m->chunk[i].virt < chunk_end(c))
		return false;
	memmove(&m->chunk[i + 1], &m->chunk[i], (m->count - i) * sizeof(*c));
	m->chunk[i] = *c;
	m->count++;
	return true;
}

static void
map_remove(struct hca_icm_map *m, uint64_t virt)
{
	uint32_t i = map_lower(m, virt);

	m->count--;
	memmove(&m->chunk[i], &m->chunk[i + 1], (m->count - i) * sizeof(*m->chunk));
}

static bool
chunk_ok(struct hca_core *h, const struct hca_icm_chunk *c)
{
	return c->pages != 0 && c->virt % HCA_ICM_PAGE_SIZE == 0 && chunk_end(c) > c->virt &&
	       hca_dma_allowed(h, 0, c->bus, (uint64_t)c->pages * HCA_ICM_PAGE_SIZE);
}

int
hca_icm_map_chunks(struct hca_core *h, uint32_t type, const struct hca_icm_chunk *c, uint32_t n)
{
	struct hca_icm_map *m = &h->ctxmgt->map[type];
	uint32_t done;

	for (uint32_t i = 0; i < n; i++)
		if (!chunk_ok(h, &c[i]))
			return HCA_STAT_BAD_PARAM;
	if (!map_reserve(m, m->count + n))
		return HCA_STAT_EXCEED_LIM;
	for (done = 0; done < n; done++)
		if (!map_insert(m, &c[done]))
			break;
	if (done == n)
		return HCA_STAT_OK;
	while (done-- > 0)
		map_remove(m, c[done].virt);
	return HCA_STAT_BAD_PARAM;
}

/* Whether an entry there is in use: ICM of live contexts cannot be unmapped. */
static bool
range_live(const struct hca_core *h, uint32_t type, uint64_t from, uint64_t to,
	   hca_icm_live_fn live)
{
	const struct hca_ctxmgt *c = h->ctxmgt;

	for (unsigned int t = 0; t < HCA_ICM_TABLE_N; t++) {
		uint64_t base = c->base[t], end = base + (uint64_t)c->count[t] * tables[t].size;

		if (tables[t].map != type || end <= from || base >= to)
			continue;
		for (uint64_t a = RTE_MAX(from, base); a < RTE_MIN(to, end); a += tables[t].size)
			if (live(h, t, (uint32_t)((a - base) / tables[t].size)))
				return true;
	}
	return false;
}

int
hca_icm_unmap(struct hca_core *h, uint32_t type, uint64_t virt, uint32_t pages,
	      hca_icm_live_fn live)
{
	struct hca_icm_map *m = &h->ctxmgt->map[type];
	uint64_t end = virt + (uint64_t)pages * HCA_ICM_PAGE_SIZE, at = virt;
	uint32_t first = map_lower(m, virt), n = 0;

	if (pages == 0 || virt % HCA_ICM_PAGE_SIZE != 0 || end <= virt)
		return HCA_STAT_BAD_PARAM;
	/* whole chunks without gaps, as they were mapped */
	while (at < end) {
		if (first + n >= m->count || m->chunk[first + n].virt != at)
			return HCA_STAT_BAD_PARAM;
		at = chunk_end(&m->chunk[first + n]);
		n++;
	}
	if (at != end)
		return HCA_STAT_BAD_PARAM;
	if (range_live(h, type, virt, end, live))
		return HCA_STAT_RESOURCE_BUSY;
	m->count -= n;
	memmove(&m->chunk[first], &m->chunk[first + n], (m->count - first) * sizeof(*m->chunk));
	return HCA_STAT_OK;
}

void
hca_icm_unmap_all(struct hca_core *h)
{
	for (unsigned int i = 0; i < RTE_DIM(h->ctxmgt->map); i++) {
		struct hca_icm_map *m = &h->ctxmgt->map[i];

		free(m->chunk);
		memset(m, 0, sizeof(*m));
	}
}

static uint8_t *
entry_addr(const struct hca_core *h, enum hca_icm_table t, uint64_t index)
{
	const struct hca_ctxmgt *c = h->ctxmgt;
	const struct hca_icm_map *m = &c->map[tables[t].map];
	uint64_t virt;
	uint32_t i;

	if (index >= c->count[t])
		return NULL;
	virt = c->base[t] + index * tables[t].size;
	i = map_lower(m, virt);
	if (i == m->count || m->chunk[i].virt > virt)
		return NULL;
	return (uint8_t *)(uintptr_t)(m->chunk[i].bus + (virt - m->chunk[i].virt));
}

bool
hca_icm_mapped(const struct hca_core *h, enum hca_icm_table t, uint64_t index)
{
	return entry_addr(h, t, index) != NULL;
}

bool
hca_icm_write(struct hca_core *h, enum hca_icm_table t, uint64_t index, const void *entry)
{
	uint8_t *p = entry_addr(h, t, index);

	if (p == NULL)
		return false;
	memcpy(p, entry, tables[t].size);
	return true;
}
