/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_FRAME_ENCAP_UB_H
#define UB_FRAME_ENCAP_UB_H

/* Internal to UB in encap: a packet being built (encap_ub.c), its payload (encap_ub_payload.c). */

#include "frame/encap.h"
#include "ub/tp/pkt.h"
#include "ub/ub_stage.h"

#define HCA_ENCAP_UB_POISON 0x04u /* in byte 1 of BTAH and ATAH */

struct hca_encap_ub_packet {
	struct hca_pipe *h;
	const struct hca_tp *tp;
	struct hca_ta_op *op;
	uint32_t displacement; /* of its payload in that of the operation */
	uint32_t len;
};

/* The Jetty of a request, if it lives as it was when it made the request, else NULL. */
static inline const struct hca_qp *
hca_encap_ub_jetty(struct hca_encap_ub_packet k)
{
	const struct hca_qp *qp = &k.h->qp[k.op->object & k.h->qp_mask];

	/* in this order: a new generation is stored before its state */
	if (unlikely(hca_ta_op_flags(k.op) & HCA_TA_OP_ORPHAN || hca_qp_state(qp) == HCA_QPS_RST ||
		     qp->cfg.generation != k.op->generation))
		return NULL;
	return qp;
}

/* Address of len bytes of a region that was checked; NULL: not in one run, or foreign. */
static inline const uint8_t *
hca_encap_ub_one_run(const struct hca_vtp *vtp, const struct hca_mpt_entry *e, uint64_t va,
		     uint32_t len)
{
	const uint8_t *src;
	uint32_t run;

	if (unlikely(e == NULL || e->foreign))
		return NULL;
	src = hca_vtp_ptr(vtp, e, va, len, &run);
	return likely(run == len) ? src : NULL;
}

/* The memory of the last payload that was found: the next one is often in it. */
struct hca_encap_ub_memory {
	const struct hca_mpt_entry *entry; /* NULL: none */
	uint32_t key, object, generation;
	uint8_t source;
};

/* The segment of a Read_response; NULL: it is not there any more. */
const struct hca_mpt_entry *hca_encap_ub_segment(struct hca_pipe *h, uint32_t token_id, uint64_t va,
						 uint32_t len);

/* The region of a request's payload; NULL: not allowed. */
static inline const struct hca_mpt_entry *
hca_encap_ub_region(struct hca_encap_ub_packet k, uint64_t va)
{
	const struct hca_qp *qp = hca_encap_ub_jetty(k);

	if (unlikely(qp == NULL))
		return NULL;
	return hca_vtp_check(&k.h->vtp, k.op->key, qp->cfg.pd, HCA_MPT_FLAG_REGION, va, k.len);
}

/* Whether all but the range of the payload was judged with that of the last packet. */
static inline bool
hca_encap_ub_judged(const struct hca_encap_ub_memory *m, const struct hca_ta_op *op)
{
	if (m->entry == NULL || ((m->key ^ op->key) | (m->source ^ op->source)) != 0)
		return false;
	return op->source == HCA_TA_OP_TOKEN ||
	       (((m->object ^ op->object) | (m->generation ^ op->generation)) == 0 &&
		!(hca_ta_op_flags(op) & HCA_TA_OP_ORPHAN));
}

/* Where the payload lies, if it may be read and lies in one run of memory; else NULL. */
static __rte_always_inline const uint8_t *
hca_encap_ub_find(struct hca_encap_ub_packet k, struct hca_encap_ub_memory *m)
{
	const struct hca_ta_op *op = k.op;
	bool segment = op->source == HCA_TA_OP_TOKEN;
	const struct hca_mpt_entry *e = m->entry;
	uint64_t va;

	if (k.len == 0 || unlikely(op->encap & HCA_TA_OP_POISONED))
		return NULL;
	if (unlikely(!segment && op->source != HCA_TA_OP_LOCAL))
		return NULL;
	va = (segment ? op->read.va : op->req.va) + k.displacement;
	if (HCA_SHORT_WAYS && likely(hca_encap_ub_judged(m, op))) {
		if (unlikely(k.len > e->length || va - e->start > e->length - k.len))
			return NULL;
		return hca_encap_ub_one_run(&k.h->vtp, e, va, k.len);
	}
	e = segment ? hca_encap_ub_segment(k.h, op->key, va, k.len) : hca_encap_ub_region(k, va);
	*m = (struct hca_encap_ub_memory){e, op->key, op->object, op->generation, op->source};
	return hca_encap_ub_one_run(&k.h->vtp, e, va, k.len);
}

/*
 * Payload of the packet to dst; tah: its BTAH or ATAH. False: it is late for the first time, and
 * the packet counts as lost on the wire. A payload that is late again, or gone, becomes zeros, and
 * the packet is marked as poisoned.
 */
bool hca_encap_ub_gather(const struct hca_encap_ub_packet *k, uint8_t *tah, uint8_t *dst);

#endif
