/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "abi_cqe.h"
#include "abi_roce.h"
#include "abi_service.h"
#include "requester/wqe_unit.h"

const uint16_t hca_wqe_op_flags[32] = {
#define X(name, code, wr, wc, kind, flags, bth) [code] = (flags) | HCA_WQE_OP_KIND(HCA_KIND_##kind),
	HCA_OP_LIST(X)
#undef X
};

#define KIND(name) HCA_WQE_OP_KIND(HCA_KIND_##name)
#define ATOMIC_LEN 8u

/* rest: bytes from the inline unit to the announced end. */
static uint8_t
decode_inline(const uint8_t *unit, uint32_t rest, uint32_t flags, struct hca_wqe *out)
{
	uint32_t len = HCA_INLINE_LENGTH(hca_get_le32(unit));

	if (flags & (KIND(READ) | KIND(ATOMIC)))
		return HCA_SYND_LOCAL_QP_OP;
	if (len > rest - sizeof(struct hca_inline_unit))
		return HCA_SYND_LOCAL_QP_OP;
	out->is_inline = len != 0;
	out->len = len;
	out->data = unit + offsetof(struct hca_inline_unit, data);
	return 0;
}

static uint8_t
decode_sges(const uint8_t *unit, uint32_t n, struct hca_wqe *out)
{
	const struct hca_data_unit *d = (const struct hca_data_unit *)unit;
	uint64_t total = 0;

	if (n > HCA_SGE_MAX)
		return HCA_SYND_LOCAL_QP_OP;
	for (uint32_t i = n; i-- > 0;) {
		uint32_t cnt = hca_le32_to_cpu(d[i].byte_cnt);

		if (unlikely(cnt & HCA_INLINE_FLAG))
			return HCA_SYND_LOCAL_QP_OP;
		if (cnt == 0)
			continue;
		total += cnt;
		out->nsge++;
		out->first.va = hca_le64_to_cpu(d[i].addr);
		out->first.lkey = hca_le32_to_cpu(d[i].lkey);
		out->first.len = cnt;
	}
	out->data = unit;
	out->nunits = n;
	out->len = (uint32_t)total;
	return total > HCA_MAX_MSG_SIZE ? HCA_SYND_LOCAL_LENGTH : 0;
}

/* Decode the unit of the service after the next unit; returns the offset after it. */
static uint32_t
decode_service(const uint8_t *wqe, uint8_t service, struct hca_wqe *out)
{
	uint32_t off = sizeof(struct hca_next_unit);

	if (service == HCA_ST_UD) {
		out->ud = (const struct hca_ud_unit *)(wqe + off);
		off += sizeof(*out->ud);
	} else if (service == HCA_ST_XRC_INI) {
		const struct hca_xrc_unit *x = (const struct hca_xrc_unit *)(wqe + off);

		out->srqn = hca_le32_to_cpu(x->remote_srqn);
		off += sizeof(*x);
	}
	return off;
}

static uint8_t
decode(const uint8_t *wqe, uint32_t size, uint32_t flags, uint8_t service, struct hca_wqe *out)
{
	uint32_t off = decode_service(wqe, service, out);
	uint8_t syndrome;

	if (unlikely(out->srqn > HCA_QPN_MASK))
		return HCA_SYND_LOCAL_QP_OP;
	if (flags & HCA_WQE_OP_INV)
		out->rkey = hca_le32_to_cpu(((const struct hca_next_unit *)wqe)->imm_data);

	if (flags & HCA_WQE_OP_RADDR) {
		const struct hca_raddr_unit *r = (const struct hca_raddr_unit *)(wqe + off);

		off += sizeof(*r);
		out->raddr = hca_le64_to_cpu(r->raddr);
		out->rkey = hca_le32_to_cpu(r->rkey);
	}
	if (flags & KIND(ATOMIC)) {
		const struct hca_atomic_unit *a = (const struct hca_atomic_unit *)(wqe + off);

		off += sizeof(*a);
		out->swap_add = hca_le64_to_cpu(a->swap_add);
		out->compare = hca_le64_to_cpu(a->cmp);
	}
	if (unlikely(size < off))
		return HCA_SYND_LOCAL_QP_OP;
	if (size > off && hca_get_le32(wqe + off) & HCA_INLINE_FLAG)
		return decode_inline(wqe + off, size - off, flags, out);
	syndrome = decode_sges(wqe + off, (size - off) / sizeof(struct hca_data_unit), out);
	if (flags & KIND(ATOMIC) && syndrome == 0 && out->len != ATOMIC_LEN)
		return HCA_SYND_LOCAL_LENGTH;
	return syndrome;
}

/* A flush unit after that of the remote address, and nothing more. */
static uint8_t
decode_flush(const uint8_t *wqe, uint32_t size, uint32_t flags, uint8_t service,
	     struct hca_wqe *out)
{
	uint32_t end = decode_service(wqe, service, out) + sizeof(struct hca_raddr_unit) +
		       sizeof(struct hca_flush_unit);
	const struct hca_flush_unit *f =
		(const struct hca_flush_unit *)(wqe + end - sizeof(struct hca_flush_unit));
	uint32_t feth = hca_le32_to_cpu(f->feth);
	uint8_t syndrome;

	if (size != end || !hca_feth_ok(feth))
		return HCA_SYND_LOCAL_QP_OP;
	syndrome = decode(wqe, size - sizeof(*f), flags, service, out);
	out->len = hca_le32_to_cpu(f->length);
	out->feth = hca_cpu_to_be32(feth);
	return syndrome == 0 && out->len > HCA_MAX_MSG_SIZE ? HCA_SYND_LOCAL_LENGTH : syndrome;
}

static uint8_t
decode_confirmed(const uint8_t *wqe, uint32_t size, uint32_t flags, uint8_t service,
		 struct hca_wqe *out)
{
	uint8_t syndrome;

	if (flags & HCA_WQE_OP_FLUSH)
		return decode_flush(wqe, size, flags, service, out);
	syndrome = decode(wqe, size, flags, service, out);
	return syndrome == 0 && out->len != 8 ? HCA_SYND_LOCAL_LENGTH : syndrome;
}

/* Local operations have exactly their units and no data. */
static uint8_t
decode_local(const uint8_t *wqe, uint32_t size, uint32_t flags, struct hca_wqe *out)
{
	const struct hca_next_unit *next = (const struct hca_next_unit *)wqe;
	uint32_t unit = flags & HCA_WQE_OP_BIND ? sizeof(struct hca_bind_unit) : 0;

	if (size != sizeof(*next) + unit)
		return HCA_SYND_LOCAL_QP_OP;
	out->rkey = hca_le32_to_cpu(next->imm_data);
	out->data = wqe + sizeof(*next);
	return 0;
}

void
hca_wqe_bind(const struct hca_wqe *w, struct hca_bind *b)
{
	const struct hca_bind_unit *u = (const struct hca_bind_unit *)w->data;

	b->access = hca_le32_to_cpu(u->access);
	b->old_key = hca_le32_to_cpu(u->old_key);
	b->new_key = hca_le32_to_cpu(u->new_key);
	b->lkey = hca_le32_to_cpu(u->lkey);
	b->addr = hca_le64_to_cpu(u->addr);
	b->length = hca_le64_to_cpu(u->length);
}

void
hca_wqe_decode(const uint8_t *wqe, uint32_t size, uint32_t stride, uint8_t op, uint8_t service,
	       struct hca_wqe *out)
{
	uint32_t flags = op < RTE_DIM(hca_wqe_op_flags) ? hca_wqe_op_flags[op] : 0;

	out->is_inline = false;
	out->is_rd = flags & (KIND(READ) | KIND(ATOMIC) | KIND(CONFIRM));
	out->is_atomic = flags & KIND(ATOMIC);
	out->is_local = flags & KIND(LOCAL);
	out->nsge = 0;
	out->nunits = 0;
	out->len = 0;
	out->rkey = 0;
	out->srqn = 0;
	out->feth = 0;
	out->ud = NULL;
	out->raddr = 0;
	out->swap_add = out->compare = 0;
	memset(&out->first, 0, sizeof(out->first));
	if (unlikely(!(flags & hca_service_info(service)->ops) ||
		     size < sizeof(struct hca_next_unit) || size > stride))
		out->syndrome = HCA_SYND_LOCAL_QP_OP;
	else if (unlikely(out->is_local))
		out->syndrome = decode_local(wqe, size, flags, out);
	else if (unlikely(flags & KIND(CONFIRM)))
		out->syndrome = decode_confirmed(wqe, size, flags, service, out);
	else
		out->syndrome = decode(wqe, size, flags, service, out);
}

void
hca_wqe_sges(const uint8_t *data, uint32_t nunits, struct hca_sge *sge)
{
	const struct hca_data_unit *d = (const struct hca_data_unit *)data;

	for (uint32_t i = 0; i < nunits; i++) {
		uint32_t cnt = hca_le32_to_cpu(d[i].byte_cnt);

		if (cnt == 0)
			continue;
		sge->va = hca_le64_to_cpu(d[i].addr);
		sge->lkey = hca_le32_to_cpu(d[i].lkey);
		sge->len = cnt;
		sge++;
	}
}
