/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests for foreign memory. An access to it can fail, so it is the last of the checks: a refused
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

/* ---- ATOMICs ---- */

/* A QP that was reset or has ended repeats nothing: its entry is free. */
static bool
store_is_used(const struct ee_request *q, const struct ee_store *s)
{
	const struct hca_qp *qp = &q->h->qp[s->qpi];

	return s->used && s->generation == qp->cfg.generation && hca_qp_state(qp) != HCA_QPS_ERR &&
	       hca_qp_state(qp) != HCA_QPS_RST;
}

/* The entry of this request; NULL: it is executed for the first time. */
static struct ee_store *
store_find(struct ee_request *q)
{
	for (unsigned int i = 0; i < EE_STORES; i++) {
		struct ee_store *s = &q->ctx->store[i];

		if (s->used && s->qpi == q->qpi && s->psn == q->rxd->psn && store_is_used(q, s))
			return s;
	}
	return NULL;
}

/* A free entry; NULL: the table is full, or the client has all that it may have. */
static struct ee_store *
store_place(struct ee_request *q)
{
	struct ee_store *place = NULL;
	unsigned int own = 0;

	for (unsigned int i = 0; i < EE_STORES; i++) {
		struct ee_store *s = &q->ctx->store[i];

		if (!store_is_used(q, s))
			place = s;
		else
			own += s->client == q->qp->cfg.usr_page;
	}
	return own < EE_STORES_CLIENT ? place : NULL;
}

/* The new value will be stored later; the repetition is answered with the old one. */
static enum ee_verdict
store_later(struct ee_request *q, struct ee_store *place)
{
	*place = (struct ee_store){.qpi = q->qpi,
				   .psn = q->rxd->psn,
				   .generation = q->qp->cfg.generation,
				   .client = q->qp->cfg.usr_page,
				   .used = true,
				   .before = q->before};
	return failed(q, -EAGAIN);
}

/* The process can be reached again: the value is stored, or its memory is gone. */
static enum ee_verdict
store_end(struct ee_request *q, struct ee_store *s)
{
	uint64_t now;

	if (hca_foreign_read(&q->h->core, q->piece[0].mpt, q->va, &now, sizeof(now)) == -EAGAIN)
		return failed(q, -EAGAIN);
	q->before = s->before;
	s->used = false;
	return EE_NEXT;
}

enum ee_verdict
ee_foreign_atomic(struct ee_request *q)
{
	const struct hca_atomiceth *a = (const void *)q->ext;
	struct ee_store *s = store_find(q);
	int rc;

	if (s != NULL)
		return store_end(q, s);
	s = store_place(q);
	if (s == NULL)
		return failed(q, -EAGAIN);
	rc = hca_foreign_atomic(&q->h->core, q->piece[0].mpt, q->va,
				q->op->kind == HCA_PKT_FETCH_ADD, hca_be64_to_cpu(a->swap_add),
				hca_be64_to_cpu(a->cmp), &q->before);
	if (rc == -EINPROGRESS)
		return store_later(q, s);
	return rc == 0 ? EE_NEXT : failed(q, rc);
}

enum ee_verdict
ee_foreign_atomic_write(struct ee_request *q)
{
	int rc = hca_foreign_atomic_write(&q->h->core, q->piece[0].mpt, q->va, q->payload);

	return rc == 0 ? EE_NEXT : failed(q, rc);
}
