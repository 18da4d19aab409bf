/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_TABLE_H
#define CORE_TABLE_H

/*
 * Memory that lives as long as a device: tables of contexts and pools of packet buffers. With
 * hugepages it comes from the EAL's heap. Without them that heap is a file of small pages, all of
 * which rte_free() touches to clear them, used or not. Then large tables, which only this process
 * reads, are mappings of their own: transparent hugepages may back them, and the kernel takes them
 * back as a whole. Packet buffers always belong to the heap, because devices and other processes
 * may read them.
 */

#include <stddef.h>
#include <stdint.h>

struct rte_mempool;

/*
 * n objects of `size` bytes, all zero, aligned to a cache line. socket_id: as of
 * rte_zmalloc_socket(). NULL: no memory. Any thread of the EAL or registered with it.
 */
void *hca_table_alloc(size_t n, size_t size, int socket_id);
/* Free a table; NULL is permitted. */
void hca_table_free(void *table);

/*
 * A pool of n mbufs with HCA_MBUF_PRIV bytes of private area and data_room bytes of data, headroom
 * included. cache: objects per lcore cache, 0 = none. NULL: rte_errno. Freed by rte_mempool_free().
 */
struct rte_mempool *hca_mbuf_pool(const char *name, uint32_t n, uint32_t cache, uint16_t data_room,
				  int socket_id);

#endif
