/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include "core/mbuf.h"
#include "core/table.h"

#define MAPPED_LEAST (256u << 10) /* smaller tables come from the heap */
#define HUGE_PAGE (2u << 20)

/* Before a mapped table: the size to unmap. */
struct mapping {
	size_t bytes;
} __rte_cache_aligned;

static size_t
page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Hugepages for a size of at least half of one. */
static size_t
whole_pages(size_t bytes)
{
	return RTE_ALIGN_CEIL(bytes, bytes >= HUGE_PAGE / 2 ? HUGE_PAGE : page_size());
}

/* `bytes` of zeros, aligned so that hugepages fit; NULL: no memory. */
static void *
map(size_t bytes)
{
	size_t spare = bytes >= HUGE_PAGE ? HUGE_PAGE : 0, before;
	uint8_t *p = mmap(NULL, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (spare != 0) {
		before = RTE_PTR_ALIGN_CEIL(p, HUGE_PAGE) - p;
		if (before != 0)
			munmap(p, before);
		p += before;
		if (before != spare)
			munmap(p + bytes, spare - before);
		(void)madvise(p, bytes, MADV_HUGEPAGE);
	}
	return p;
}

void *
hca_table_alloc(size_t n, size_t size, int socket_id)
{
	size_t bytes = n * size + sizeof(struct mapping);
	struct mapping *m;

	if (rte_eal_has_hugepages() || bytes < MAPPED_LEAST)
		return rte_zmalloc_socket("hca_table", n * size, RTE_CACHE_LINE_SIZE, socket_id);
	bytes = whole_pages(bytes);
	m = map(bytes);
	if (m == NULL)
		return NULL;
	m->bytes = bytes;
	return m + 1;
}

void
hca_table_free(void *table)
{
	struct mapping *m = table;

	if (table == NULL || rte_mem_virt2memseg_list(table) != NULL) {
		rte_free(table);
		return;
	}
	m--;
	munmap(m, m->bytes);
}

static void
free_chunk(struct rte_mempool_memhdr *memhdr, void *chunk)
{
	(void)memhdr;
	rte_free(chunk);
}

/*
 * Every page of a pool is written when its objects are made: one call instead of a fault per page.
 * If it cannot be done they fault.
 */
static void
populate_pages(uint8_t *chunk, size_t bytes)
{
	uint8_t *first = RTE_PTR_ALIGN_FLOOR(chunk, page_size());

	(void)madvise(first, (size_t)(chunk + bytes - first), MADV_POPULATE_WRITE);
}

/* Objects side by side in one block of the heap: with IOVA as VA they may cross pages. */
static int
populate_packed(struct rte_mempool *mp, size_t bytes)
{
	void *chunk = rte_malloc_socket("hca_mbufs", bytes, RTE_CACHE_LINE_SIZE, mp->socket_id);
	int rc;

	if (chunk == NULL)
		return -ENOMEM;
	populate_pages(chunk, bytes);
	rc = rte_mempool_populate_iova(mp, chunk, rte_malloc_virt2iova(chunk), bytes, free_chunk,
				       chunk);
	if (rc <= 0)
		rte_free(chunk);
	return rc;
}

/*
 * Without hugepages DPDK begins each object that is larger than a page at a page: 8 KiB for a frame
 * of 4 KiB. Objects that fit into a page stay within one.
 */
static int
populate(struct rte_mempool *mp)
{
	size_t object = mp->header_size + mp->elt_size + mp->trailer_size;
	int rc;

	if (rte_eal_has_hugepages() || rte_eal_iova_mode() != RTE_IOVA_VA || object < page_size())
		rc = rte_mempool_populate_default(mp);
	else
		rc = populate_packed(mp, mp->size * object);
	if (rc >= 0 && (uint32_t)rc < mp->size)
		rc = -ENOMEM;
	return rc;
}

struct rte_mempool *
hca_mbuf_pool(const char *name, uint32_t n, uint32_t cache, uint16_t data_room, int socket_id)
{
	struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = data_room,
						   .mbuf_priv_size = HCA_MBUF_PRIV};
	struct rte_mempool *mp = rte_mempool_create_empty(name, n,
							  (unsigned int)sizeof(struct rte_mbuf) +
								  HCA_MBUF_PRIV + data_room,
							  cache, sizeof(private), socket_id, 0);
	int rc;

	if (mp == NULL)
		return NULL;
	rc = rte_mempool_set_ops_byname(mp, rte_mbuf_best_mempool_ops(), NULL);
	if (rc == 0) {
		rte_pktmbuf_pool_init(mp, &private);
		rc = populate(mp);
	}
	if (rc < 0) {
		rte_mempool_free(mp);
		rte_errno = -rc;
		return NULL;
	}
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;
}
