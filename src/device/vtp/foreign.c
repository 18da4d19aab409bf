/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "core/core.h"
#include "ctxmgt/qp.h"
#include "vtp/foreign.h"
#include "vtp/vtp.h"

/* A region or a window of type 1, or a window of type 2 bound to this QP. */
static bool
usable(const struct hca_mpt_entry *e, const struct hca_qp_cfg *qp)
{
	uint32_t state = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE);

	if (state == HCA_MPT_FOREIGN)
		return true;
	return state == HCA_MPT_BOUND && e->foreign && qp != NULL && e->qpn == qp->local_qpn &&
	       e->generation == qp->generation;
}

const struct hca_mpt_entry *
hca_foreign_find(const struct hca_vtp *v, uint32_t key, uint32_t pd, const struct hca_qp_cfg *qp,
		 uint32_t access, uint64_t va, uint64_t len)
{
	const struct hca_mpt_entry *e = &v->mpt[HCA_KEY_INDEX(key) & v->mpt_mask];

	if (!usable(e, qp) || e->key != key || e->pd != pd || (e->flags & access) != access ||
	    len > e->length || va - e->start > e->length - len)
		return NULL;
	return e;
}

/* Address of va in its process, and number of bytes contiguous there (at most len). */
static uint64_t
locate(const struct hca_vtp *v, const struct hca_mpt_entry *e, uint64_t va, uint32_t len,
       uint32_t *run)
{
	uint64_t size = UINT64_C(1) << e->page_shift, lin = e->first + (va - e->start);
	const uint64_t *mtt = &v->mtt[e->mtt + (lin >> e->page_shift)];
	uint64_t in_page = lin & (size - 1), n = size - in_page;

	for (uint32_t i = 1; n < len && mtt[i] == mtt[i - 1] + size; i++)
		n += size;
	*run = n < len ? (uint32_t)n : len;
	return (mtt[0] + in_page) & ~HCA_BUS_FOREIGN;
}

static int
transfer(struct hca_core *h, const struct hca_mpt_entry *e, bool write, uint64_t va, uint8_t *bytes,
	 uint32_t len)
{
	if (e->flags & HCA_MPT_FLAG_NULL) {
		if (!write)
			memset(bytes, 0, len);
		return 0;
	}
	while (len != 0) {
		uint32_t run;
		uint64_t at = locate(&h->vtp, e, va, len, &run);
		int rc = h->cfg.foreign(h->cfg.foreign_arg, hca_mpt_domain(&h->vtp, e), write, at,
					bytes, run);

		if (rc != 0)
			return rc == -EAGAIN || rc == -EINPROGRESS ? rc : -EFAULT;
		bytes += run;
		va += run;
		len -= run;
	}
	return 0;
}

int
hca_foreign_read(struct hca_core *h, const struct hca_mpt_entry *e, uint64_t va, void *dst,
		 uint32_t len)
{
	return transfer(h, e, false, va, dst, len);
}

int
hca_foreign_write(struct hca_core *h, const struct hca_mpt_entry *e, uint64_t va, const void *src,
		  uint32_t len)
{
	uint8_t *bytes = (uint8_t *)(uintptr_t)src;
	int rc;

	if (len == 0)
		return 0;
	rc = transfer(h, e, true, va, bytes, len - 1);
	if (rc == 0)
		rc = transfer(h, e, true, va + len - 1, bytes + len - 1, 1);
	return rc == -EINPROGRESS ? -EAGAIN : rc;
}

int
hca_foreign_store(struct hca_core *h, const struct hca_mpt_entry *e, uint64_t va, const void *src,
		  uint32_t len)
{
	uint8_t *bytes = (uint8_t *)(uintptr_t)src;
	uint32_t run;
	int rc;

	locate(&h->vtp, e, va, len, &run);
	rc = transfer(h, e, true, va, bytes, len);
	return rc != 0 && run != len ? -EFAULT : rc;
}

int
hca_foreign_atomic(struct hca_core *h, const struct hca_mpt_entry *e, uint64_t va, bool add,
		   uint64_t swap_add, uint64_t compare, uint64_t *old)
{
	uint64_t value;
	uint32_t run;
	int rc;

	if ((locate(&h->vtp, e, va, 8, &run) & 7) != 0 || run != 8)
		return -EINVAL;
	rc = transfer(h, e, false, va, (uint8_t *)old, 8);
	if (rc != 0 || (!add && *old != compare))
		return rc;
	value = add ? *old + swap_add : swap_add;
	return hca_foreign_store(h, e, va, &value, 8);
}

int
hca_foreign_atomic_write(struct hca_core *h, const struct hca_mpt_entry *e, uint64_t va,
			 const void *src)
{
	uint32_t run;
	int rc;

	if ((locate(&h->vtp, e, va, 8, &run) & 7) != 0 || run != 8)
		return -EINVAL;
	rc = transfer(h, e, true, va, (uint8_t *)(uintptr_t)src, 8);
	return rc == -EINPROGRESS ? -EAGAIN : rc;
}
