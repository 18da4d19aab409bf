/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests for foreign memory. Such an access can fail, so it is the last of the checks: a refused
 * request has not changed the QP, and a repeated one stores the same bytes again.
 */

#include <errno.h>

#include "responder/ee.h"
#include "vtp/foreign.h"

bool
ee_foreign_piece(struct ee_request *q, struct ee_piece *p, uint32_t lkey, uint32_t pd)
{
	p->mpt =
		hca_foreign_find(&q->h->vtp, lkey, pd, NULL, HCA_ACCESS_LOCAL_WRITE, p->va, p->len);
	q->foreign |= p->mpt != NULL;
	return p->mpt != NULL;
}

/* -EAGAIN: the requester must repeat the request. Any other error is attributed to the key. */
static enum ee_verdict
failed(struct ee_request *q, int rc)
{
	if (rc == -EAGAIN) {
		HCA_COUNT(q->h, EE, resp_scatter_late);
		return EE_NOT_READY;
	}
	if (q->op->kind != HCA_PKT_SEND)
		return EE_ACCESS;
	q->recv_syndrome = HCA_SYND_LOCAL_PROT;
	return EE_OPERATIONAL;
}

enum ee_verdict
ee_foreign_scatter(struct ee_request *q)
{
	const uint8_t *src = q->payload;

	for (unsigned int i = 0; i < q->npieces; i++) {
		const struct ee_piece *p = &q->piece[i];
		int rc = p->mpt->foreign
				 ? hca_foreign_write(&q->h->core, p->mpt, p->va, src, p->len)
				 : 0;

		if (rc != 0)
			return failed(q, rc);
		src += p->len;
	}
	return EE_NEXT;
}

enum ee_verdict
ee_foreign_atomic(struct ee_request *q)
{
	const struct hca_atomiceth *a = (const void *)q->ext;
	int rc = hca_foreign_atomic(&q->h->core, q->piece[0].mpt, q->va,
				    q->op->kind == HCA_PKT_FETCH_ADD, hca_be64_to_cpu(a->swap_add),
				    hca_be64_to_cpu(a->cmp), &q->before);

	return rc == 0 ? EE_NEXT : failed(q, rc);
}
