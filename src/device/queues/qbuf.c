/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include <rte_malloc.h>

#include "abi_cmd.h"
#include "core/core.h"
#include "queues/qbuf.h"
#include "vtp/vtp.h"

#define QBUF_PAGE_SHIFT 12u
#define QBUF_PAGE (1u << QBUF_PAGE_SHIFT)

static struct hca_mpt_entry *
entry_of(struct hca_core *h, uint32_t key)
{
	return &h->vtp.mpt[HCA_KEY_INDEX(key) & h->vtp.mpt_mask];
}

static int
resolve_pages(struct hca_core *h, struct hca_qbuf *q, const struct hca_mpt_entry *e, uint64_t va)
{
	uint32_t n = (q->bytes + QBUF_PAGE - 1) >> QBUF_PAGE_SHIFT, contig;

	q->pages = rte_malloc_socket("hca_qbuf", n * sizeof(*q->pages), 0, h->cfg.socket_id);
	if (q->pages == NULL)
		return HCA_STAT_EXCEED_LIM;
	for (uint32_t i = 0; i < n; i++)
		q->pages[i] =
			hca_vtp_ptr(&h->vtp, e, va + ((uint64_t)i << QBUF_PAGE_SHIFT), 1, &contig);
	return HCA_STAT_OK;
}

static int
resolve(struct hca_core *h, struct hca_qbuf *q, uint32_t key, uint32_t pd, uint32_t domain,
	uint64_t va, uint32_t bytes, uint32_t access)
{
	const struct hca_mpt_entry *e =
		hca_vtp_check(&h->vtp, key, pd, access | HCA_MPT_FLAG_REGION, va, bytes);
	int rc = HCA_STAT_OK;

	memset(q, 0, sizeof(*q));
	if (e == NULL || hca_mpt_domain(&h->vtp, e) != domain ||
	    ((e->first + (va - e->start)) & (QBUF_PAGE - 1)) != 0)
		return HCA_STAT_BAD_PARAM;
	q->bytes = bytes;
	q->page_shift = QBUF_PAGE_SHIFT;
	entry_of(h, key)->users++;
	if (e->base != NULL)
		q->base = e->base + (va - e->start);
	else
		rc = resolve_pages(h, q, e, va);
	if (rc != HCA_STAT_OK)
		hca_qbuf_release(h, q, key);
	return rc;
}

int
hca_qbuf_resolve(struct hca_core *h, struct hca_qbuf *q, uint32_t key, uint32_t pd, uint32_t domain,
		 uint64_t va, uint32_t bytes)
{
	return resolve(h, q, key, pd, domain, va, bytes, HCA_ACCESS_LOCAL_WRITE);
}

int
hca_qbuf_resolve_whole(struct hca_core *h, struct hca_qbuf *q, uint32_t key, uint32_t pd,
		       uint32_t domain, uint32_t bytes, uint32_t access)
{
	/* resolve() refuses an invalid key */
	return resolve(h, q, key, pd, domain, entry_of(h, key)->start, bytes, access);
}

void
hca_qbuf_release(struct hca_core *h, struct hca_qbuf *q, uint32_t key)
{
	if (q->bytes == 0)
		return;
	entry_of(h, key)->users--;
	rte_free(q->pages);
	memset(q, 0, sizeof(*q));
}
