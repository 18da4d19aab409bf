/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include <rte_malloc.h>

#include "bar/bar.h"
#include "engine/impl.h"

int
hca_bar_init(struct hca *h)
{
	h->bar0 =
		rte_zmalloc_socket("hca_bar0", HCA_BAR0_SIZE, HCA_UAR_PAGE_SIZE, h->cfg.socket_id);
	h->bar2 =
		rte_zmalloc_socket("hca_bar2", HCA_BAR2_SIZE, HCA_UAR_PAGE_SIZE, h->cfg.socket_id);
	if (h->bar0 == NULL || h->bar2 == NULL) {
		hca_bar_fini(h);
		return -ENOMEM;
	}
	return 0;
}

void
hca_bar_fini(struct hca *h)
{
	rte_free(h->bar2);
	rte_free(h->bar0);
	h->bar0 = NULL;
	h->bar2 = NULL;
}
