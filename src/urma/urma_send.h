/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef URMA_SEND_H
#define URMA_SEND_H

/*
 * Requests between the application's struct and the WQE. Private to
 *	urma_send.c		chains of WQEs and their doorbells
 *	urma_send_plain.h	the usual requests, in short ways; of urma_send.c alone
 *	urma_send_judge.c	whether a request can be posted
 *	urma_send_build.c	its WQE
 */

#include "urma_impl.h"

enum op_flag {
	OP_REMOTE = 1 << 0,  /* raddr unit */
	OP_NOTIFY = 1 << 1,  /* notify unit, second remote SGE */
	OP_ATOMIC = 1 << 2,  /* operands */
	OP_ENABLES = 1 << 3, /* byte enables */
	OP_IMM = 1 << 4,
	OP_READ = 1 << 5, /* local memory is written: no inline data */
	OP_SEND = 1 << 6, /* the token is that of the receiver */
	OP_CAS = 1 << 7,  /* the request has urma_cas_wr */
	OP_UD = 1 << 8,	  /* an operation of atomic store and load */
};

struct op {
	uint8_t known, op, atomic;
	uint16_t flags;
};

/* By URMA opcode; urma_send_judge.c */
extern const struct op urma_ops[256];

#define SEND_MAX (16u << 20) /* bytes of a Send */

/* A request that was judged */
struct request {
	const urma_jfs_wr_t *wr;
	const struct op *op;
	const struct urma_target *to;
	const urma_sge_t *local, *remote;
	uint32_t nlocal;
	uint32_t total;	   /* bytes of local data */
	uint32_t operands; /* bytes of each, or of the byte enables; 0: none */
	uint32_t units;	   /* of the WQE */
	bool plain;	   /* judge_plain() has taken it */
	bool like;	   /* judge_like() has taken it, after one that was plain */
};

/* ---- shared by the short and the general way ---- */

static inline bool
is_imported(const struct urma_queue *q, const urma_target_seg_t *tseg)
{
	return tseg != NULL && tseg->urma_ctx == &q->ctx->pub &&
	       ((const struct urma_segment *)tseg)->mr == NULL;
}

static inline bool
is_registered(const struct urma_queue *q, const urma_target_seg_t *tseg)
{
	return tseg != NULL && tseg->urma_ctx == &q->ctx->pub &&
	       ((const struct urma_segment *)tseg)->mr != NULL;
}

static inline urma_transport_mode_t
mode_of(const struct urma_queue *q)
{
	return q->is_jfs ? q->jfs.jfs_cfg.trans_mode : q->jetty.jetty_cfg.jfs_cfg.trans_mode;
}

static inline const struct urma_segment *
segment(const urma_sge_t *sge)
{
	return (const struct urma_segment *)sge->tseg;
}

/* Of a WQE that none follows yet */
static inline void
build_next(struct hca_next_unit *next, const struct request *r)
{
	const urma_jfs_wr_flag_t *f = &r->wr->flag;

	*next = (struct hca_next_unit){
		.flags = hca_cpu_to_le32((f->bs.complete_enable ? HCA_WQE_FLAG_SIGNALED : 0) |
					 (f->bs.solicited_enable ? HCA_WQE_FLAG_SOLICITED : 0))};
}

static inline uint8_t *
build_remote(uint8_t *at, const urma_sge_t *sge)
{
	struct hca_raddr_unit *u = (struct hca_raddr_unit *)at;

	u->raddr = hca_cpu_to_le64(sge->addr);
	u->rkey = hca_cpu_to_le32(sge->tseg->seg.token_id);
	u->reserved = 0;
	return at + sizeof(*u);
}

static inline uint32_t
units_of(uint32_t bytes)
{
	return (bytes + HCA_WQE_UNIT - 1) / HCA_WQE_UNIT;
}

/* urma_send_judge.c: 0 and r filled in, or the reason by a negative errno */
int urma_send_judge(const struct urma_queue *q, const urma_jfs_wr_t *wr, struct request *r);
/* urma_send_build.c: the WQE of a request that was judged, but for its link to the next one */
void urma_send_build(uint8_t *wqe, const struct request *r);

#endif
