/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub/initiator/wqe_ub.h"

#include <string.h>

#include <rte_branch_prediction.h>

#include "requester/wqe_unit.h"

#define UNIT 16u

/* The part of a WQE that is not decoded yet. */
struct rest {
	const uint8_t *at;
	uint32_t left; /* bytes */
};

/* The next unit; NULL: it is not there. */
static const void *
wqe_ub_take(struct rest *r, uint32_t bytes)
{
	const uint8_t *unit = r->at;

	if (bytes > r->left)
		return NULL;
	r->at += bytes;
	r->left -= bytes;
	return unit;
}

static bool
wqe_ub_is_power(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static bool
wqe_ub_is_atomic(uint32_t opcode)
{
	return opcode >= HCA_UB_TA_COMPARE_SWAP && opcode <= HCA_UB_TA_FETCH_XOR;
}

static bool
names_ud_op(uint32_t opcode)
{
	return opcode == HCA_UB_TA_STORE || opcode == HCA_UB_TA_LOAD;
}

/* Codes of the UB unit. */
static bool
codes_fit(const struct hca_ub_wr *wr, const struct hca_ub_unit *u)
{
	uint32_t order = hca_le32_to_cpu(u->order), to = HCA_UB_TO(hca_le32_to_cpu(u->number));
	uint32_t opcode = HCA_UB_ATOMIC(order);

	if (HCA_UB_ODR_EXECUTION(HCA_UB_ODR(order)) == HCA_UB_CODE_RESERVED ||
	    HCA_UB_TC_TYPE(hca_le32_to_cpu(u->tc)) == HCA_UB_CODE_RESERVED)
		return false;
	if (to > HCA_UB_TO_ADDRESS || (to == HCA_UB_TO_ADDRESS && wr->flags != HCA_UB_WR_RECV))
		return false;
	if (!(wr->flags & HCA_UB_WR_OPERANDS))
		return true;
	return wqe_ub_is_atomic(opcode) &&
	       (!names_ud_op(opcode) || HCA_UB_UD_OP(order) < HCA_UB_UD_OPS);
}

/* Bytes of the operands or byte enables of a WQE that has them; 0: no such length. */
static uint32_t
operand_bytes(const struct hca_wqe_ub *w)
{
	uint32_t n = hca_le32_to_cpu(w->ub->operands);

	if (!wqe_ub_is_power(n))
		return 0;
	if (w->wr->flags & HCA_UB_WR_ENABLES)
		return n >= HCA_UB_BE_MIN / 8 && n <= HCA_UB_BE_MAX / 8 ? RTE_ALIGN_CEIL(n, UNIT)
									: 0;
	return n <= HCA_UB_ATOMIC_MAX ? 2 * RTE_ALIGN_CEIL(n, UNIT) : 0;
}

/* Units up to the data. */
static uint8_t
wqe_ub_decode_units(struct rest *r, struct hca_wqe_ub *w)
{
	uint8_t flags = w->wr->flags;
	uint32_t bytes;

	if (flags & HCA_UB_WR_RADDR && (w->raddr = wqe_ub_take(r, sizeof(*w->raddr))) == NULL)
		return HCA_UB_STATUS_LOCAL_LENGTH;
	if (flags & HCA_UB_WR_NOTIFY && (w->notify = wqe_ub_take(r, sizeof(*w->notify))) == NULL)
		return HCA_UB_STATUS_LOCAL_LENGTH;
	if (flags & (HCA_UB_WR_OPERANDS | HCA_UB_WR_ENABLES)) {
		bytes = operand_bytes(w);
		w->operands = bytes != 0 ? wqe_ub_take(r, bytes) : NULL;
		if (w->operands == NULL)
			return HCA_UB_STATUS_LOCAL_LENGTH;
	}
	if (HCA_UB_TO(hca_le32_to_cpu(w->ub->number)) == HCA_UB_TO_ADDRESS &&
	    (w->ud = wqe_ub_take(r, sizeof(*w->ud))) == NULL)
		return HCA_UB_STATUS_LOCAL_LENGTH;
	return 0;
}

static uint8_t
wqe_ub_decode_inline(const struct rest *r, struct hca_wqe_ub *w)
{
	uint32_t len = HCA_INLINE_LENGTH(hca_get_le32(r->at));

	if (w->wr->flags & HCA_UB_WR_READ)
		return HCA_UB_STATUS_UNSUPPORTED_OPCODE;
	if (len > r->left - sizeof(struct hca_inline_unit))
		return HCA_UB_STATUS_LOCAL_LENGTH;
	w->is_inline = len != 0;
	w->len = len;
	w->data = r->at + offsetof(struct hca_inline_unit, data);
	return 0;
}

static uint8_t
wqe_ub_decode_sges(const struct rest *r, struct hca_wqe_ub *w)
{
	const struct hca_data_unit *d = (const struct hca_data_unit *)r->at;
	uint32_t n = r->left / sizeof(*d);
	uint64_t total = 0;

	if (n > HCA_SGE_MAX)
		return HCA_UB_STATUS_LOCAL_LENGTH;
	for (uint32_t i = n; i-- > 0;) {
		uint32_t cnt = hca_le32_to_cpu(d[i].byte_cnt);

		if (cnt & HCA_INLINE_FLAG)
			return HCA_UB_STATUS_LOCAL_LENGTH;
		if (cnt == 0)
			continue;
		total += cnt;
		w->nsge++;
		w->first.va = hca_le64_to_cpu(d[i].addr);
		w->first.lkey = hca_le32_to_cpu(d[i].lkey);
		w->first.len = cnt;
	}
	w->data = r->at;
	w->nunits = (uint8_t)n;
	w->len = (uint32_t)total;
	return total > HCA_MAX_MSG_SIZE ? HCA_UB_STATUS_LOCAL_LENGTH : 0;
}

/* The message against the limits of its operation; len becomes that of an atomic's operand. */
static bool
length_fits(struct hca_wqe_ub *w)
{
	uint32_t n = hca_le32_to_cpu(w->ub->operands), result = w->len;

	if (w->wr->flags & HCA_UB_WR_ENABLES)
		return w->len == 8 * n;
	if (w->wr->flags & HCA_UB_WR_OPERANDS) {
		w->len = n;
		return result ==
		       (HCA_UB_ATOMIC(hca_le32_to_cpu(w->ub->order)) == HCA_UB_TA_STORE ? 0 : n);
	}
	return w->wr->flags & HCA_UB_WR_SEGMENTED || w->len <= HCA_UB_SEND_MAX;
}

static uint8_t
wqe_ub_decode(struct rest *r, struct hca_wqe_ub *w)
{
	uint8_t status;

	wqe_ub_take(r, sizeof(struct hca_next_unit));
	w->ub = wqe_ub_take(r, sizeof(*w->ub));
	if (w->ub == NULL)
		return HCA_UB_STATUS_LOCAL_LENGTH;
	if (!codes_fit(w->wr, w->ub))
		return HCA_UB_STATUS_UNSUPPORTED_OPCODE;
	status = wqe_ub_decode_units(r, w);
	if (status != 0)
		return status;
	if (r->left >= sizeof(struct hca_inline_unit) && hca_get_le32(r->at) & HCA_INLINE_FLAG)
		status = wqe_ub_decode_inline(r, w);
	else
		status = wqe_ub_decode_sges(r, w);
	if (status != 0)
		return status;
	return length_fits(w) ? 0 : HCA_UB_STATUS_LOCAL_LENGTH;
}

void
hca_wqe_ub_decode(const uint8_t *wqe, uint32_t size, uint32_t stride, uint8_t op,
		  struct hca_wqe_ub *out)
{
	struct rest r = {.at = wqe, .left = size};

	memset(out, 0, sizeof(*out));
	out->wr = &hca_ub_wrs[op & 31];
	out->is_rd = out->wr->flags & HCA_UB_WR_READ;
	if (unlikely(!out->wr->known))
		out->status = HCA_UB_STATUS_UNSUPPORTED_OPCODE;
	else if (unlikely(size > stride))
		out->status = HCA_UB_STATUS_LOCAL_LENGTH;
	else
		out->status = wqe_ub_decode(&r, out);
	if (unlikely(out->status != 0))
		*out = (struct hca_wqe_ub){.status = out->status};
}

/* ---- the record ---- */

/* On the wire byte enables are one big-endian number. */
static void
fill_enables(uint8_t *to, const uint8_t *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[n - 1 - i] = from[i];
}

static void
fill_operands(const struct hca_wqe_ub *w, uint8_t *to)
{
	uint32_t n = hca_le32_to_cpu(w->ub->operands);

	if (w->wr->flags & HCA_UB_WR_ENABLES) {
		fill_enables(to, w->operands, n);
		return;
	}
	memcpy(to, w->operands, n);
	memcpy(to + n, w->operands + RTE_ALIGN_CEIL(n, UNIT), n);
}

static void
wqe_ub_fill_full(const struct hca_wqe_ub *w, const struct hca_ud_av *av,
		 struct hca_ub_record_full *f)
{
	if (w->operands != NULL)
		fill_operands(w, f->operand);
	else if (w->ud != NULL)
		f->av = *av;
	if (w->is_inline)
		memcpy(f->body.inline_data, w->data, w->len);
	else
		hca_wqe_sges(w->data, w->nunits, f->body.sge);
}

static void
fill_remote(const struct hca_wqe_ub *w, struct hca_ub_record *r)
{
	if (w->raddr != NULL) {
		r->raddr = hca_le64_to_cpu(w->raddr->raddr);
		r->token_id = hca_le32_to_cpu(w->raddr->rkey) & HCA_TOKEN_ID_MASK;
	}
	if (w->notify != NULL) {
		r->notify = hca_le64_to_cpu(w->notify->addr);
		r->notify_token_id = hca_le32_to_cpu(w->notify->token_id) & HCA_TOKEN_ID_MASK;
		r->notify_token = hca_le32_to_cpu(w->notify->token);
	}
}

void
hca_wqe_ub_fill(const struct hca_wqe_ub *w, const struct hca_ud_av *av, struct hca_ub_record *r)
{
	bool full = hca_wqe_ub_full(w);
	uint32_t order;

	memset(r, 0, sizeof(*r));
	r->status = w->status;
	if (w->status != 0)
		return;
	order = hca_le32_to_cpu(w->ub->order);
	r->flags = (w->is_rd ? HCA_REC_RD : 0) | (full ? HCA_REC_FULL : 0) |
		   (w->is_inline ? HCA_REC_INLINE : 0);
	r->nsge = w->nsge;
	r->order = order & (HCA_MASK(2, 0) | HCA_UB_HAS_TOKEN | HCA_UB_EXCLUSIVE);
	r->atomic = HCA_UB_ATOMIC(order);
	r->user = HCA_UB_UD_MAKE_OPERATION(HCA_UB_UD_OP(order));
	r->len = w->len;
	r->to = hca_le32_to_cpu(w->ub->number);
	r->data = hca_le64_to_cpu(w->ub->data);
	r->tc = hca_le32_to_cpu(w->ub->tc);
	r->token = hca_le32_to_cpu(w->ub->token);
	r->tc_token = hca_le32_to_cpu(w->ub->tc_token);
	r->sge = w->first;
	fill_remote(w, r);
	if (full)
		wqe_ub_fill_full(w, av, (struct hca_ub_record_full *)r);
}
