/* SPDX-License-Identifier: BSD-3-Clause */

/* MPT and MTT tables, their commands (tables 3-2-16 .. 3-2-23), and scatter. */

#include <errno.h>
#include <string.h>

#include <rte_bitops.h>

#include "abi_cmd.h"
#include "core/core.h"
#include "core/table.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/store.h"
#include "vtp/vtp.h"
#include "vtp/window.h"
#include "wire/icrc.h"

/* MTT entries checked per poll of the CEU. */
#define SLICE 1024u

#define FLAGS_REFUSED (HCA_MPT_FLAG_PHYSICAL | HCA_ACCESS_ON_DEMAND)
#define FLAGS_KNOWN \
	(HCA_MPT_FLAG_SW_OWNS | HCA_MPT_FLAG_MIO | HCA_MPT_FLAG_BIND_ENABLE | \
	 HCA_MPT_FLAG_REGION | HCA_MPT_FLAG_NULL | HCA_MPT_FLAG_FLUSH_GLOBAL | HCA_ACCESS_MASK)
#define FLAGS_NULL (HCA_MPT_FLAG_REGION | HCA_MPT_FLAG_NULL | HCA_ACCESS_LOCAL_WRITE)
#define DOMAINS (HCA_PD_DOMAIN(UINT32_MAX) + 1u)
#define FLAGS_WINDOW (HCA_MPT_FLAG_SW_OWNS | HCA_MPT_FLAG_WINDOW2)

int
hca_vtp_init(struct hca_core *h)
{
	struct hca_vtp *v = &h->vtp;
	size_t mpts = (size_t)1 << h->cfg.log_mpts, mtts = (size_t)1 << h->cfg.log_mtts;
	int socket = h->cfg.socket_id;

	v->mpt = hca_table_alloc(mpts, sizeof(*v->mpt), socket);
	v->domain = hca_table_alloc(mpts, sizeof(*v->domain), socket);
	v->mtt = hca_table_alloc(mtts, sizeof(*v->mtt), socket);
	v->mtt_ref = hca_table_alloc(mtts, sizeof(*v->mtt_ref), socket);
	v->regions = hca_table_alloc(DOMAINS, sizeof(*v->regions), socket);
	if (v->mpt == NULL || v->domain == NULL || v->mtt == NULL || v->mtt_ref == NULL ||
	    v->regions == NULL) {
		hca_vtp_fini(h);
		return -ENOMEM;
	}
	v->mpt_mask = (uint32_t)mpts - 1;
	v->mtt_count = (uint32_t)mtts;
	return 0;
}

void
hca_vtp_fini(struct hca_core *h)
{
	hca_table_free(h->vtp.regions);
	hca_table_free(h->vtp.mtt_ref);
	hca_table_free(h->vtp.mtt);
	hca_table_free(h->vtp.domain);
	hca_table_free(h->vtp.mpt);
	memset(&h->vtp, 0, sizeof(h->vtp));
}

/* Change the count of the owner's regions, including those of queues. */
static void
count_region(struct hca_core *h, const struct hca_mpt_entry *e, int n)
{
	if (e->flags & HCA_MPT_FLAG_REGION)
		__atomic_fetch_add(&h->vtp.regions[hca_mpt_domain(&h->vtp, e)], n,
				   __ATOMIC_RELEASE);
}

static bool
flags_ok(uint32_t flags, uint64_t start)
{
	uint32_t writes = HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_ATOMIC;

	if ((flags & FLAGS_REFUSED) || (flags & ~FLAGS_KNOWN))
		return false;
	if (!(flags & HCA_MPT_FLAG_BIND_ENABLE) != !(flags & HCA_ACCESS_MW_BIND))
		return false;
	/* InfiniBand: remote write and atomic require local write */
	if ((flags & writes) && !(flags & HCA_ACCESS_LOCAL_WRITE))
		return false;
	return !(flags & HCA_ACCESS_ZERO_BASED) || start == 0;
}

/* Checks the range of a region; a null region has no range and has fixed flags. */
static bool
range_ok(const struct hca_mpt_entry *e)
{
	if (e->flags & HCA_MPT_FLAG_NULL)
		return e->flags == FLAGS_NULL && e->start == 0 && e->length == 0;
	return e->length == 0 ||
	       (e->length <= (UINT64_C(1) << 62) && e->start + e->length - 1 >= e->start);
}

static bool
page_size_ok(uint32_t psize)
{
	return psize != 0 && (psize & (psize - 1)) == 0 && psize >= (1u << HCA_MIN_PAGE_LOG) &&
	       psize <= (1u << HCA_MAX_PAGE_LOG);
}

static bool
index_free(const struct hca_core *h, uint32_t index)
{
	return hca_mpt_state(&h->vtp.mpt[index]) == HCA_MPT_FREE &&
	       hca_icm_mapped(h, HCA_ICM_MPT, index);
}

/* Reads the domain of an entry; without the valid bit it is that of the PD. false: unknown bits. */
static bool
read_domain(const struct hca_mpt *m, struct hca_mpt_build *b)
{
	uint32_t word = hca_be32_to_cpu(m->domain);

	b->domain = (uint16_t)(word & HCA_MPT_DOMAIN_VALID ? HCA_MPT_DOMAIN(word)
							   : HCA_PD_DOMAIN(b->e.pd));
	return word == 0 || word == HCA_MPT_DOMAIN_MAKE(b->domain);
}

/* An unbound window. */
static int
begin_window(const struct hca_core *h, uint32_t index, const struct hca_mpt *m,
	     struct hca_mpt_build *b)
{
	static const struct hca_mpt zero;
	struct hca_mpt rest = *m;

	rest.flags = rest.key = rest.pd = rest.domain = 0;
	if (HCA_KEY_INDEX(b->e.key) != index || (hca_be32_to_cpu(m->flags) & ~FLAGS_WINDOW) ||
	    memcmp(&rest, &zero, sizeof(rest)) != 0)
		return HCA_STAT_BAD_PARAM;
	return index_free(h, index) ? HCA_STAT_OK : HCA_STAT_BAD_RES_STATE;
}

int
hca_mpt_begin(struct hca_core *h, uint32_t index, const struct hca_mpt *m, struct hca_mpt_build *b)
{
	struct hca_mpt_entry *e = &b->e;
	uint32_t psize = hca_be32_to_cpu(m->page_size), sz = hca_be32_to_cpu(m->mtt_sz);
	uint64_t seg = hca_mpt_mtt_seg(m), n;

	memset(b, 0, sizeof(*b));
	e->start = hca_be64_to_cpu(m->start);
	e->length = hca_be64_to_cpu(m->length);
	e->key = hca_be32_to_cpu(m->key);
	e->pd = hca_be32_to_cpu(m->pd);
	e->flags = hca_be32_to_cpu(m->flags) & ~HCA_MPT_FLAG_SW_OWNS;
	e->first = hca_be32_to_cpu(m->first_byte_offset);

	if (index == 0 || index >= h->ctxmgt->count[HCA_ICM_MPT])
		return HCA_STAT_BAD_INDEX;
	if (!read_domain(m, b))
		return HCA_STAT_BAD_PARAM;
	if (!(e->flags & HCA_MPT_FLAG_REGION))
		return begin_window(h, index, m, b);
	if (HCA_KEY_INDEX(e->key) != index || !page_size_ok(psize) || e->first >= psize ||
	    !flags_ok(hca_be32_to_cpu(m->flags), e->start))
		return HCA_STAT_BAD_PARAM;
	if (!range_ok(e))
		return HCA_STAT_BAD_PARAM;
	n = e->length != 0 ? (e->first + e->length - 1) / psize + 1 : 0;
	if (seg >= h->vtp.mtt_count || n > h->vtp.mtt_count - seg || (sz != 0 && sz < n))
		return HCA_STAT_BAD_PARAM;
	if (!index_free(h, index))
		return HCA_STAT_BAD_RES_STATE;
	e->mtt = (uint32_t)seg;
	e->mtt_count = (uint32_t)n;
	e->page_shift = (uint8_t)rte_bsf32(psize);
	b->psize = psize;
	b->left = e->length;
	b->contiguous = true;
	if (e->flags & HCA_MPT_FLAG_NULL) {
		e->length = UINT64_MAX;
		e->foreign = 1;
	}
	return HCA_STAT_OK;
}

/* Whether the bytes collected so far lie in the windows of the region's domain. */
static bool
run_allowed(struct hca_core *h, const struct hca_mpt_build *b)
{
	return b->run_len == 0 || hca_dma_allowed(h, b->domain, b->run_bus, b->run_len);
}

int
hca_mpt_slice(struct hca_core *h, struct hca_mpt_build *b)
{
	struct hca_mpt_entry *e = &b->e;
	uint32_t end = RTE_MIN(e->mtt_count, b->at + SLICE);

	for (; b->at < end; b->at++) {
		uint64_t bus = h->vtp.mtt[e->mtt + b->at], off = b->at == 0 ? e->first : 0;
		uint64_t n = RTE_MIN(b->psize - off, b->left);
		bool foreign = (bus & HCA_BUS_FOREIGN) != 0;

		if (b->at == 0)
			e->foreign = foreign;
		if (foreign != e->foreign)
			return HCA_STAT_BAD_PARAM;
		if ((bus & (b->psize - 1)) != 0 || h->vtp.mtt_ref[e->mtt + b->at] == UINT16_MAX ||
		    !hca_icm_mapped(h, HCA_ICM_MTT, e->mtt + b->at))
			return HCA_STAT_BAD_PARAM;
		if (b->at != 0 && bus == b->run_bus + b->run_len) {
			b->run_len += n;
		} else {
			if (!run_allowed(h, b))
				return HCA_STAT_BAD_PARAM;
			b->contiguous = b->at == 0;
			b->run_bus = bus + off;
			b->run_len = n;
		}
		b->left -= n;
	}
	if (b->at < e->mtt_count)
		return HCA_MPT_AGAIN;
	if (!run_allowed(h, b))
		return HCA_STAT_BAD_PARAM;
	return HCA_STAT_OK;
}

int
hca_mpt_commit(struct hca_core *h, uint32_t index, struct hca_mpt_build *b)
{
	struct hca_mpt_entry *e = &h->vtp.mpt[index];
	bool region = b->e.flags & HCA_MPT_FLAG_REGION;
	uint32_t end;

	if (!b->entered) {
		struct hca_mpt_entry n = b->e;

		n.mtt_count = 0;
		n.state = HCA_MPT_DYING;
		__atomic_store_n(&h->vtp.domain[index], b->domain, __ATOMIC_RELAXED);
		hca_store_words(e, &n, sizeof(n));
		b->entered = true;
		count_region(h, e, 1);
	}
	for (end = RTE_MIN(b->e.mtt_count, e->mtt_count + SLICE); e->mtt_count < end;)
		h->vtp.mtt_ref[e->mtt + e->mtt_count++]++;
	if (e->mtt_count < b->e.mtt_count)
		return HCA_MPT_AGAIN;
	if (b->contiguous && e->mtt_count != 0 && !e->foreign)
		e->base = (uint8_t *)(uintptr_t)(h->vtp.mtt[e->mtt] + e->first);
	__atomic_store_n(&e->state, region ? hca_mpt_live_state(e) : HCA_MPT_UNBOUND,
			 __ATOMIC_RELEASE);
	return HCA_STAT_OK;
}

static bool
is_region(const struct hca_mpt_entry *e)
{
	return __atomic_load_n(&e->flags, __ATOMIC_RELAXED) & HCA_MPT_FLAG_REGION;
}

static int
window_dying(struct hca_core *h, struct hca_mpt_entry *e)
{
	uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);

	if (state == HCA_MPT_FREE || state == HCA_MPT_DYING)
		return HCA_STAT_BAD_RES_STATE;
	if (state == HCA_MPT_BUSY || !hca_mpt_cas(e, state, HCA_MPT_DYING)) {
		__atomic_store_n(&e->doomed, 1, __ATOMIC_RELEASE);
		return HCA_MPT_AGAIN;
	}
	/* the region is freed after a later RCU round, which includes the rest of this one */
	hca_window_unpin(h, e);
	return HCA_STAT_OK;
}

int
hca_mpt_dying(struct hca_core *h, uint32_t index)
{
	struct hca_mpt_entry *e = &h->vtp.mpt[index];

	if (!is_region(e))
		return window_dying(h, e);
	if (hca_mpt_state(e) != hca_mpt_live_state(e))
		return HCA_STAT_BAD_RES_STATE;
	if (e->users != 0 || __atomic_load_n(&e->windows, __ATOMIC_SEQ_CST) != 0)
		return HCA_STAT_RESOURCE_BUSY;
	/*
	 * A bind first counts itself and then checks the state, so at least one side sees the
	 * other.
	 */
	__atomic_store_n(&e->state, HCA_MPT_DYING, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&e->windows, __ATOMIC_SEQ_CST) == 0)
		return HCA_STAT_OK;
	__atomic_store_n(&e->state, hca_mpt_live_state(e), __ATOMIC_SEQ_CST);
	return HCA_STAT_RESOURCE_BUSY;
}

bool
hca_mpt_release(struct hca_core *h, uint32_t index)
{
	struct hca_mpt_entry *e = &h->vtp.mpt[index];

	if (e->flags & HCA_MPT_FLAG_REGION) {
		for (uint32_t n = RTE_MIN(e->mtt_count, SLICE); n != 0; n--)
			h->vtp.mtt_ref[e->mtt + --e->mtt_count]--;
		if (e->mtt_count != 0)
			return false;
	}
	count_region(h, e, -1);
	__atomic_store_n(&h->vtp.domain[index], 0, __ATOMIC_RELAXED);
	hca_store_words(e, NULL, sizeof(*e));
	return true;
}

/* Bytes of the region in its page i: bus address of the first, and their number. */
static uint64_t
page_run(const struct hca_vtp *v, const struct hca_mpt_entry *e, uint32_t i, uint64_t *len)
{
	uint64_t size = UINT64_C(1) << e->page_shift, off = i == 0 ? e->first : 0;
	uint64_t before = i == 0 ? 0 : ((uint64_t)i << e->page_shift) - e->first;

	*len = RTE_MIN(size - off, e->length - before);
	return v->mtt[e->mtt + i] + off;
}

static bool
region_uncovered(struct hca_core *h, const struct hca_mpt_entry *e, uint32_t domain, uint64_t bus,
		 uint64_t len)
{
	for (uint32_t i = 0; i < e->mtt_count; i++) {
		uint64_t n, at = page_run(&h->vtp, e, i, &n);

		if (e->base != NULL)
			n = e->length;
		if (at - bus < len || bus - at < n)
			if (!hca_dma_allowed(h, domain, at, n))
				return true;
		if (e->base != NULL)
			break;
	}
	return false;
}

bool
hca_vtp_uncovered(struct hca_core *h, uint32_t domain, uint64_t bus, uint64_t len)
{
	/* usually the owner has ended and the CEU closes its many windows */
	if (domain >= DOMAINS || __atomic_load_n(&h->vtp.regions[domain], __ATOMIC_ACQUIRE) == 0)
		return false;
	for (uint32_t i = 0; i <= h->vtp.mpt_mask; i++) {
		const struct hca_mpt_entry *e = &h->vtp.mpt[i];
		uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);

		/* entries of other domains may be changing */
		if (state == HCA_MPT_FREE || !is_region(e) || hca_mpt_domain(&h->vtp, e) != domain)
			continue;
		if (region_uncovered(h, e, domain, bus, len))
			return true;
	}
	return false;
}

int
hca_mtt_write(struct hca_core *h, uint64_t start, const uint64_t *bus, uint32_t n)
{
	struct hca_vtp *v = &h->vtp;

	if (start >= v->mtt_count || n > v->mtt_count - start)
		return HCA_STAT_BAD_INDEX;
	for (uint32_t i = 0; i < n; i++) {
		if (v->mtt_ref[start + i] != 0)
			return HCA_STAT_RESOURCE_BUSY;
		if (bus[i] & ((1u << HCA_MIN_PAGE_LOG) - 1))
			return HCA_STAT_BAD_PARAM;
		if (!hca_icm_mapped(h, HCA_ICM_MTT, start + i))
			return HCA_STAT_BAD_RES_STATE;
	}
	for (uint32_t i = 0; i < n; i++) {
		hca_be64 entry = hca_cpu_to_be64(bus[i]);

		v->mtt[start + i] = bus[i];
		hca_icm_write(h, HCA_ICM_MTT, start + i, &entry);
	}
	return HCA_STAT_OK;
}

void
hca_vtp_scatter(const struct hca_vtp *v, const struct hca_mpt_entry *e, uint64_t va,
		const uint8_t *src, uint32_t len, const struct hca_icrc_ops *ops)
{
	uint32_t contig;

	while (len > 0) {
		uint8_t *dst = hca_vtp_ptr(v, e, va, len, &contig);

		if (contig == len) {
			hca_copy_last_byte_last(ops, dst, src, len);
			return;
		}
		ops->copy(dst, src, contig);
		va += contig;
		src += contig;
		len -= contig;
	}
}
