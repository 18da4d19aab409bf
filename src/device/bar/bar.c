/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <sys/mman.h>

#include <rte_malloc.h>

#include "bar/bar.h"
#include "core/core.h"

/*
 * BAR2 is ordinary memory, so that the composition can replace any page with one that it can share
 * with a process. When that is given back all of BAR2 becomes one mapping again, because nothing
 * makes parts of it unlike others: no advice, and a page is written before any is replaced.
 */
static void *
map_bar2(void)
{
	void *mem = mmap(NULL, HCA_BAR2_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	*(volatile uint8_t *)mem = 0;
	return mem;
}

int
hca_bar_init(struct hca_core *h)
{
	h->bar0 =
		rte_zmalloc_socket("hca_bar0", HCA_BAR0_SIZE, HCA_UAR_PAGE_SIZE, h->cfg.socket_id);
	h->bar2 = map_bar2();
	if (h->bar0 == NULL || h->bar2 == NULL) {
		hca_bar_fini(h);
		return -ENOMEM;
	}
	return 0;
}

void
hca_bar_fini(struct hca_core *h)
{
	if (h->bar2 != NULL)
		munmap(h->bar2, HCA_BAR2_SIZE);
	rte_free(h->bar0);
	h->bar0 = NULL;
	h->bar2 = NULL;
}
