/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_WQE_UNIT_H
#define REQUESTER_WQE_UNIT_H

/*
 * Decodes send WQEs (abi_wqe.h). Reads only the device's private copy of a WQE, and checks only the
 * structure: keys, domains and ranges are checked when data is copied.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ctx.h"
#include "abi_wqe.h"
#include "engine/record.h"

/* Values in host order. If syndrome is not 0 the other members are invalid. */
struct hca_wqe {
	uint8_t syndrome; /* 0 or HCA_SYND_* */
	bool is_inline;	  /* data: len bytes of inline data */
	bool is_rd;	  /* of a kind that counts against max_rd_atomic */
	bool is_atomic;
	bool is_local;		      /* BIND_MW or LOCAL_INV */
	uint8_t nsge;		      /* SGEs of non-zero length */
	uint8_t nunits;		      /* number of data units, including empty ones */
	uint32_t len;		      /* message bytes */
	uint32_t rkey;		      /* or the key of SEND_INV or LOCAL_INV */
	uint32_t srqn;		      /* XRC */
	uint32_t feth;		      /* FLUSH: HCA_FETH_MAKE(), in wire order; else 0 */
	const struct hca_ud_unit *ud; /* in the copy; not checked here */
	uint64_t raddr;
	uint64_t swap_add, compare;
	const uint8_t *data;  /* in the copy: first data unit, inline bytes or the bind unit */
	struct hca_sge first; /* first SGE of non-zero length, when nsge != 0 */
};

/* HCA_WQE_OP_* and HCA_WQE_OP_KIND() by opcode (5 bits); 0: no operation. */
extern const uint16_t hca_wqe_op_flags[32];

/* Send opcodes that doorbell and parser accept: known ones and reserved ones. */
static inline bool
hca_wqe_op_known(uint8_t op)
{
	return hca_wqe_op_flags[op & 31] != 0;
}

/*
 * wqe: the copy, 8-byte aligned; size: announced size in bytes (any value), of which at most stride
 * exist. op, service: HCA_OP_*, HCA_ST_*.
 */
void hca_wqe_decode(const uint8_t *wqe, uint32_t size, uint32_t stride, uint8_t op, uint8_t service,
		    struct hca_wqe *out);

/* Forms of WQEs that are parsed in runs. */
enum hca_wqe_form {
	HCA_WQE_OTHER,
	HCA_WQE_SIMPLE, /* RC; WRITE, SEND or READ, see parser_small.h */
	HCA_WQE_FULL,	/* hca_wqe_decode_full() */
};

/* The form that a WQE may have. op: its low five bits count. */
static inline enum hca_wqe_form
hca_wqe_form(uint8_t op, uint8_t service)
{
	const uint32_t other = HCA_WQE_OP_INV | HCA_WQE_OP_KIND(HCA_KIND_CONFIRM) |
			       HCA_WQE_OP_KIND(HCA_KIND_LOCAL);
	uint32_t flags = hca_wqe_op_flags[op & 31];

	if (unlikely(service != HCA_ST_RC))
		return service == HCA_ST_UD ? HCA_WQE_FULL : HCA_WQE_OTHER;
	if (unlikely(flags & other))
		return HCA_WQE_OTHER;
	return flags & HCA_WQE_OP_KIND(HCA_KIND_ATOMIC) ? HCA_WQE_FULL : HCA_WQE_SIMPLE;
}

/* Its data unit, at the end of a WQE of size bytes; false: empty or inline. */
static inline bool
hca_wqe_decode_data(const uint8_t *wqe, uint32_t size, struct hca_wqe *out)
{
	const struct hca_data_unit *d =
		(const struct hca_data_unit *)(wqe + size - sizeof(struct hca_data_unit));
	uint32_t cnt = hca_le32_to_cpu(d->byte_cnt);

	out->syndrome = 0;
	out->nsge = 1;
	out->len = cnt;
	out->first.va = hca_le64_to_cpu(d->addr);
	out->first.lkey = hca_le32_to_cpu(d->lkey);
	out->first.len = cnt;
	return cnt != 0 && !(cnt & HCA_INLINE_FLAG);
}

/*
 * The same for records of the long form: ATOMICs of RC and SENDs of UD with one data unit that is
 * not empty.
 */
static inline bool
hca_wqe_decode_full(const uint8_t *wqe, uint32_t size, uint32_t stride, uint8_t op, uint8_t service,
		    struct hca_wqe *out)
{
	const struct hca_raddr_unit *r = (const void *)(wqe + sizeof(struct hca_next_unit));
	const struct hca_atomic_unit *a = (const void *)(r + 1);
	uint32_t flags = hca_wqe_op_flags[op & 31];

	out->raddr = out->swap_add = out->compare = 0;
	out->rkey = 0;
	out->ud = NULL;
	out->is_rd = flags & HCA_WQE_OP_KIND(HCA_KIND_ATOMIC);
	if (size > stride || op > 31)
		return false;
	if (service == HCA_ST_UD) {
		out->ud = (const void *)(wqe + sizeof(struct hca_next_unit));
		return flags & HCA_WQE_OP_UD &&
		       size == sizeof(struct hca_next_unit) + sizeof(struct hca_ud_unit) +
				       sizeof(struct hca_data_unit) &&
		       hca_wqe_decode_data(wqe, size, out);
	}
	if (service != HCA_ST_RC || !out->is_rd ||
	    size != sizeof(struct hca_next_unit) + sizeof(*r) + sizeof(*a) +
			    sizeof(struct hca_data_unit))
		return false;
	out->raddr = hca_le64_to_cpu(r->raddr);
	out->rkey = hca_le32_to_cpu(r->rkey);
	out->swap_add = hca_le64_to_cpu(a->swap_add);
	out->compare = hca_le64_to_cpu(a->cmp);
	return hca_wqe_decode_data(wqe, size, out) && out->len == 8;
}

/*
 * Check the UD unit of a decoded WQE of a UD QP: destination, GID index, source addresses and
 * Q_Key. 0 and *av, or a syndrome.
 */
struct hca_pipe;
struct hca_qp;
uint8_t hca_wqe_judge_ud(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_wqe *w,
			 struct hca_ud_av *av);
/* The address alone: destination, Q_Key and MTU of RoCE say nothing to a Jetty. */
uint8_t hca_wqe_judge_address(struct hca_pipe *h, const struct hca_ud_unit *u,
			      struct hca_ud_av *av);
/* The bind unit of a decoded BIND_MW. */
void hca_wqe_bind(const struct hca_wqe *w, struct hca_bind *b);

/* Copy the SGEs of non-zero length of a decoded WQE: of nunits data units at data. */
void hca_wqe_sges(const uint8_t *data, uint32_t nunits, struct hca_sge *sge);

#endif
