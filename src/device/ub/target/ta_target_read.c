/* SPDX-License-Identifier: BSD-3-Clause */

/* Reads and atomics: requests of one packet that have an answer of their own. */

#include <string.h>

#include "abi_wqe.h"
#include "ub/target/ta_atomic.h"
#include "ub/target/ta_target.h"
#include "vtp/foreign.h"

/* Judged now, and again when encap gathers the payload. */
void
tat_read(struct tat_request *q)
{
	uint32_t length = hca_ub_maetah_length(q->tah + q->v.at->maetah);

	if (unlikely(length > HCA_MAX_MSG_SIZE))
		tat_refuse(q, TAT_SUM);
	else if (length != 0)
		tat_access_of(q, length, HCA_ACCESS_REMOTE_READ);
}

/* ---- atomics ---- */

static struct hca_ub_atomic
atomic_of(const struct tat_request *q)
{
	struct hca_ub_atomic a = {
		.opcode = q->tah[0],
		.len = (uint8_t)hca_ub_maetah_length(q->tah + q->v.at->maetah),
	};

	a.operand[0] = q->payload;
	a.operand[1] = q->payload + a.len;
	if (q->v.at->udetah != 0)
		a.ud_op = hca_ub_ud_op(HCA_UB_UD_OPERATION(
					       hca_ub_udetah_user(q->tah + q->v.at->udetah)),
				       q->h->cfg.ub_choices);
	return a;
}

static void
copy_out(struct tat_request *q, const struct hca_mpt_entry *e, uint64_t va, uint8_t *to,
	 uint32_t len)
{
	while (len != 0) {
		uint32_t run;
		const uint8_t *from = hca_vtp_ptr(&q->h->vtp, e, va, len, &run);

		memcpy(to, from, run);
		len -= run;
		va += run;
		to += run;
	}
}

/*
 * In three steps: TAT alone executes atomics, so they are atomic among themselves, but not against
 * CPUs. A request whose value will be stored later may not be repeated: that is no "late".
 */
static void
tat_execute_in_steps(struct tat_request *q, const struct hca_mpt_entry *e,
		     const struct hca_ub_atomic *a, uint64_t va, uint8_t *old)
{
	uint8_t value[HCA_UB_ATOMIC_MAX];

	if (!e->foreign)
		copy_out(q, e, va, old, a->len);
	else if (!tat_foreign_ok(q, hca_foreign_read(&q->h->core, e, va, old, a->len)))
		return;
	hca_ub_atomic_apply(a, old, value);
	if (!e->foreign)
		hca_vtp_scatter(&q->h->vtp, e, va, value, a->len, q->h->icrc);
	else
		tat_foreign_ok(q, hca_foreign_store(&q->h->core, e, va, value, a->len));
}

static void
tat_execute_atomic(struct tat_request *q, const struct hca_mpt_entry *e, uint8_t *old)
{
	struct hca_ub_atomic a = atomic_of(q);
	uint64_t va = hca_ub_maetah_address(q->tah + q->v.at->maetah);
	uint32_t run;
	void *p;

	if (e->foreign || a.len > HCA_UB_ATOMIC_CPU_MAX) {
		tat_execute_in_steps(q, e, &a, va, old);
		return;
	}
	p = hca_vtp_ptr(&q->h->vtp, e, va, a.len, &run);
	if (unlikely(run != a.len || ((uintptr_t)p & (a.len - 1u)) != 0))
		tat_refuse(q, TAT_ALIGNMENT);
	else
		hca_ub_atomic_execute(&a, p, old);
}

static void
fill_response(const struct tat_request *q, struct hca_ta_op *op, const uint8_t *old, uint32_t len)
{
	hca_ta_op_clear(op);
	op->opcode = HCA_UB_TA_ATOMIC_RESPONSE;
	op->last_opcode = HCA_UB_TA_ATOMIC_RESPONSE;
	op->tassn = q->o->tassn;
	op->rc = q->o->rc;
	if (!hca_ub_atomic_fetches(q->tah[0]))
		return;
	op->source = HCA_TA_OP_RESULT;
	op->payload = len;
	op->length = len;
	memcpy(op->result, old, len);
}

/* The result has no other place than its operation, so that is taken first. */
void
tat_atomic(struct tat_request *q)
{
	uint32_t len = hca_ub_maetah_length(q->tah + q->v.at->maetah), index;
	const struct hca_mpt_entry *e = tat_access_of(q, len, HCA_ACCESS_REMOTE_ATOMIC);
	uint8_t old[HCA_UB_ATOMIC_MAX];

	if (e == NULL)
		return;
	index = tat_op_take(q->h, q->tp);
	if (unlikely(index == TAT_NONE)) {
		tat_refuse_for(q, TAT_NO_OP, TAT_TIMER_DEVICE);
		return;
	}
	tat_execute_atomic(q, e, old);
	if (q->o->answer != 0) {
		tat_op_return(q->h, q->tp, index);
		return;
	}
	fill_response(q, &q->h->ub->ops.op[HCA_TP_RESPONSES][index], old, len);
	q->op = index;
}
