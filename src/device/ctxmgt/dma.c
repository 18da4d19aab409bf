/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DMA windows: which bus addresses the device may access on whose behalf, as an IOMMU does in
 * silicon. The composition's thread attaches and detaches while the CEU may be checking another
 * domain, hence the lock; the stages of the data path do not use it.
 */

#include <errno.h>
#include <string.h>

#include "abi_bar.h"
#include "core/core.h"
#include "ctxmgt/ctxmgt.h"

static bool
window_ok(uint32_t domain, uint64_t bus, uint64_t len)
{
	return domain < HCA_DMA_DOMAINS && len != 0 && bus + len - 1 >= bus;
}

/*
 * Memory of other processes: only for clients, only if the composition can access it, and not mixed
 * with other memory.
 */
static bool
foreign_ok(const struct hca_core *h, uint32_t domain, uint64_t bus, uint64_t len)
{
	if (((bus ^ (bus + len - 1)) & HCA_BUS_FOREIGN) != 0)
		return false;
	return (bus & HCA_BUS_FOREIGN) == 0 || (domain != 0 && h->cfg.foreign != NULL);
}

/* Number of windows of the domain; the lock is held. */
static uint32_t
window_count(const struct hca_dma *d, uint32_t domain)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->count; i++)
		n += d->window[i].domain == domain;
	return n;
}

int
hca_dma_window_add(struct hca_core *h, uint32_t domain, uint64_t bus, uint64_t len, bool *first)
{
	struct hca_dma *d = &h->ctxmgt->dma;
	int rc = -ENOSPC;

	if (!window_ok(domain, bus, len) || !foreign_ok(h, domain, bus, len))
		return -EINVAL;
	rte_spinlock_lock(&d->lock);
	if (d->count < HCA_DMA_WINDOWS) {
		*first = window_count(d, domain) == 0;
		d->window[d->count++] = (struct hca_dma_window){bus, len, domain};
		rc = 0;
	}
	rte_spinlock_unlock(&d->lock);
	return rc;
}

int
hca_dma_window_remove(struct hca_core *h, uint32_t domain, uint64_t bus, uint64_t len, bool *last)
{
	struct hca_dma *d = &h->ctxmgt->dma;
	int rc = -ENOENT;

	rte_spinlock_lock(&d->lock);
	for (uint32_t i = 0; i < d->count; i++) {
		struct hca_dma_window *w = &d->window[i];

		if (w->domain == domain && w->bus == bus && w->len == len) {
			*w = d->window[--d->count];
			*last = window_count(d, domain) == 0;
			rc = 0;
			break;
		}
	}
	rte_spinlock_unlock(&d->lock);
	return rc;
}

/* Bytes from bus on, at most len, that the domain's windows cover; 0: none. */
static uint64_t
window_reach(const struct hca_dma *d, uint32_t domain, uint64_t bus, uint64_t len)
{
	uint64_t best = 0;

	for (uint32_t i = 0; i < d->count && best < len; i++) {
		const struct hca_dma_window *w = &d->window[i];

		if (w->domain != domain || bus < w->bus || bus - w->bus >= w->len)
			continue;
		best = RTE_MAX(best, RTE_MIN(len, w->len - (bus - w->bus)));
	}
	return best;
}

bool
hca_dma_allowed(struct hca_core *h, uint32_t domain, uint64_t bus, uint64_t len)
{
	struct hca_dma *d = &h->ctxmgt->dma;
	uint64_t n = 1;

	if (!window_ok(domain, bus, len))
		return false;
	rte_spinlock_lock(&d->lock);
	while (len > 0 && n > 0) {
		n = window_reach(d, domain, bus, len);
		bus += n;
		len -= n;
	}
	rte_spinlock_unlock(&d->lock);
	return len == 0;
}
