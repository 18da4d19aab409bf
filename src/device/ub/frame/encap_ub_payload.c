/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The payload of UB's packets: of requests where their record or its one SGE says, of responses in
 * the segment that was read, or in the operation. The usual one lies in one run of memory.
 */

#include <string.h>

#include "ub/record.h"
#include "ub/frame/encap_ub.h"
#include "ub/token.h"
#include "vtp/foreign.h"

enum gathered {
	GATHERED,
	GONE, /* it never will be */
	LATE, /* foreign memory did not answer in time */
};

static enum gathered
copy_foreign(struct hca_pipe *h, const struct hca_mpt_entry *e, uint64_t va, uint8_t *dst,
	     uint32_t n)
{
	int rc = hca_foreign_read(&h->core, e, va, dst, n);

	return rc == 0 ? GATHERED : rc == -EAGAIN ? LATE : GONE;
}

static enum gathered
copy_region(struct hca_pipe *h, const struct hca_mpt_entry *e, uint64_t va, uint8_t *dst,
	    uint32_t n)
{
	if (unlikely(e->foreign))
		return copy_foreign(h, e, va, dst, n);
	while (n != 0) {
		uint32_t run;
		const uint8_t *src = hca_vtp_ptr(&h->vtp, e, va, n, &run);

		h->icrc->copy(dst, src, run);
		dst += run;
		va += run;
		n -= run;
	}
	return GATHERED;
}

/* Any live region of its PD may be sent from. */
static enum gathered
gather_local(struct hca_pipe *h, uint32_t pd, uint32_t key, uint64_t va, uint8_t *dst, uint32_t n)
{
	const struct hca_mpt_entry *e = hca_vtp_check(&h->vtp, key, pd, HCA_MPT_FLAG_REGION, va, n);

	if (unlikely(e == NULL))
		e = hca_foreign_find(&h->vtp, key, pd, NULL, HCA_MPT_FLAG_REGION, va, n);
	return e != NULL ? copy_region(h, e, va, dst, n) : GONE;
}

/* From byte `skip` of the list on. */
static enum gathered
gather_sges(struct hca_pipe *h, uint32_t pd, const struct hca_sge *sge, unsigned int nsge,
	    uint32_t skip, uint8_t *dst, uint32_t n)
{
	enum gathered got = GATHERED;

	for (unsigned int i = 0; i < nsge && n != 0 && got == GATHERED; i++) {
		uint32_t run = sge[i].len > skip ? RTE_MIN(sge[i].len - skip, n) : 0;

		if (run != 0)
			got = gather_local(h, pd, sge[i].lkey, sge[i].va + skip, dst, run);
		skip -= RTE_MIN(skip, sge[i].len);
		dst += run;
		n -= run;
	}
	return n == 0 ? got : GONE;
}

static enum gathered
gather_record(const struct hca_encap_ub_packet *k, uint32_t pd, uint8_t *dst)
{
	const struct hca_ub_record *r = hca_ub_record(k->h, k->op->req.record);
	const uint8_t *data = hca_ub_record_data(r);
	uint32_t from = k->op->req.from + k->displacement;

	if (data == NULL)
		return gather_sges(k->h, pd, hca_ub_record_sges(r), r->nsge, from, dst, k->len);
	memcpy(dst, data + from, k->len);
	return GATHERED;
}

/* A Read_response: the right was judged when the request came, except that it may be gone. */
static inline struct hca_token_access
access_to(uint32_t token_id, uint64_t va, uint32_t len)
{
	return (struct hca_token_access){.va = va,
					 .len = len,
					 .token_id = token_id,
					 .right = HCA_ACCESS_REMOTE_READ};
}

static enum gathered
gather_segment(const struct hca_encap_ub_packet *k, uint8_t *dst)
{
	struct hca_token_access a = access_to(k->op->key, k->op->read.va + k->displacement, k->len);
	const struct hca_mpt_entry *e;

	if (hca_token_check_again(&k->h->core, &a, &e) != HCA_TOKEN_OK)
		return GONE;
	return copy_region(k->h, e, a.va, dst, k->len);
}

/* The old value of an atomic: its least significant byte first, unless the TP says otherwise. */
static enum gathered
put_result(const struct hca_encap_ub_packet *k, uint8_t *dst)
{
	bool turn = (k->tp->cfg.flags & HCA_TP_FLAG_RSP_BE) != 0;

	for (uint32_t i = 0; i < k->len; i++)
		dst[i] = k->op->result[turn ? k->len - 1 - i : i];
	return GATHERED;
}

static enum gathered
gather_request(const struct hca_encap_ub_packet *k, uint8_t *dst)
{
	const struct hca_qp *qp = hca_encap_ub_jetty(*k);

	if (unlikely(qp == NULL))
		return GONE;
	if (likely(k->op->source == HCA_TA_OP_LOCAL))
		return gather_local(k->h, qp->cfg.pd, k->op->key, k->op->req.va + k->displacement,
				    dst, k->len);
	return gather_record(k, qp->cfg.pd, dst);
}

static enum gathered
gather(const struct hca_encap_ub_packet *k, uint8_t *dst)
{
	switch (k->op->source) {
	case HCA_TA_OP_LOCAL:
	case HCA_TA_OP_RECORD:
		return gather_request(k, dst);
	case HCA_TA_OP_TOKEN:
		return gather_segment(k, dst);
	case HCA_TA_OP_RESULT:
		return put_result(k, dst);
	default:
		return GONE;
	}
}

/* ---- payload in one run ---- */

const struct hca_mpt_entry *
hca_encap_ub_segment(struct hca_pipe *h, uint32_t token_id, uint64_t va, uint32_t len)
{
	struct hca_token_access a = access_to(token_id, va, len);
	const struct hca_mpt_entry *e;

	return hca_token_check_again(&h->core, &a, &e) == HCA_TOKEN_OK ? e : NULL;
}

/* ---- */

bool
hca_encap_ub_gather(const struct hca_encap_ub_packet *k, uint8_t *tah, uint8_t *dst)
{
	struct hca_ta_op *op = k->op;
	enum gathered got = op->encap & HCA_TA_OP_POISONED ? GONE : GATHERED;

	if (got == GATHERED && k->len != 0)
		got = gather(k, dst);
	if (likely(got == GATHERED))
		return true;
	if (got == LATE && !(op->encap & HCA_TA_OP_LATE)) {
		op->encap |= HCA_TA_OP_LATE;
		HCA_COUNT(k->h, ENCAP, ub_gather_late);
		return false;
	}
	__atomic_store_n(&op->encap, op->encap | HCA_TA_OP_POISONED, __ATOMIC_RELEASE);
	HCA_COUNT(k->h, ENCAP, ub_poisoned);
	tah[1] |= HCA_ENCAP_UB_POISON;
	memset(dst, 0, k->len);
	return true;
}
