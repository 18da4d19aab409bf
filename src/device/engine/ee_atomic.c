/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ATOMICs: executed once, on the CPU's own atomic instructions, so that they are atomic against
 * every other agent of the host. The value before is kept for requests that come again.
 */

#include "engine/ee.h"

static uint64_t
execute_at(uint64_t *p, uint8_t kind, uint64_t swap_add, uint64_t compare)
{
	if (kind == HCA_PKT_FETCH_ADD)
		return __atomic_fetch_add(p, swap_add, __ATOMIC_SEQ_CST);
	/* on failure the builtin leaves what it found in compare; on success they are equal */
	__atomic_compare_exchange_n(p, &compare, swap_add, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return compare;
}

uint64_t
ee_atomic_execute(struct ee_request *q)
{
	const struct hca_atomiceth *a = (const void *)q->ext;
	struct hca_qp_ee *ee = &q->qp->ee;
	struct hca_atomic_replay *replay = &ee->replay[ee->replay_head++ & ee->job_mask];
	uint32_t run;
	uint8_t *p = hca_vtp_ptr(&q->h->vtp, q->piece[0].mpt, q->va, 8, &run);

	replay->result = execute_at((uint64_t *)p, q->op->kind, hca_be64_to_cpu(a->swap_add),
				    hca_be64_to_cpu(a->cmp));
	replay->psn = q->rxd->psn;
	replay->valid = 1;
	return replay->result;
}

/* Newest first: PSNs come round again. */
bool
ee_atomic_replay(const struct hca_qp_ee *ee, uint32_t psn, uint64_t *result)
{
	for (uint32_t i = 1; i <= (uint32_t)ee->job_mask + 1; i++) {
		const struct hca_atomic_replay *r =
			&ee->replay[(ee->replay_head - i) & ee->job_mask];

		if (r->valid && r->psn == psn) {
			*result = r->result;
			return true;
		}
	}
	return false;
}
