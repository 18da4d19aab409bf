/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * LeakSanitizer looks for pointers in the heap, in stacks and in variables, not in memory of DPDK:
 * pointers that only the device has would be reported as leaks of the program. A program that is
 * built with it has these functions, and registers all pages of DPDK with it.
 */

#include <rte_eal.h>
#include <rte_memory.h>

#include "embed_impl.h"

void __lsan_register_root_region(const void *at, size_t bytes) __attribute__((weak));
void __lsan_unregister_root_region(const void *at, size_t bytes) __attribute__((weak));

static int
add_pages(const struct rte_memseg_list *list, const struct rte_memseg *pages, size_t bytes,
	  void *arg)
{
	if (!list->external)
		__lsan_register_root_region(pages->addr, bytes);
	return 0;
}

static int
add_page(const struct rte_memseg_list *list, const struct rte_memseg *page, void *arg)
{
	return add_pages(list, page, page->len, arg);
}

/* Pages one by one, because a removed range must be one that was added. */
static void
follow(enum rte_mem_event event, const void *at, size_t bytes, void *arg)
{
	const struct rte_memseg_list *list = rte_mem_virt2memseg_list(at);

	if (list == NULL || list->external)
		return;
	for (size_t done = 0; done < bytes; done += list->page_sz) {
		const void *page = (const uint8_t *)at + done;

		if (event == RTE_MEM_EVENT_ALLOC)
			__lsan_register_root_region(page, list->page_sz);
		else
			__lsan_unregister_root_region(page, list->page_sz);
	}
}

void
embed_lsan_watch(void)
{
	if (__lsan_register_root_region == NULL || __lsan_unregister_root_region == NULL)
		return;
	/* without hugepages the memory is one piece that stays */
	if (!rte_eal_has_hugepages()) {
		rte_memseg_contig_walk(add_pages, NULL);
		return;
	}
	rte_memseg_walk(add_page, NULL);
	rte_mem_event_callback_register("softhca-lsan", follow, NULL);
}
