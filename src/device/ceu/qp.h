/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CEU_QP_H
#define CEU_QP_H

/*
 * MODIFY_QP in three parts: qp_modify.c finds the row of the transition table and merges the
 * mailbox into a private image; qp_attr.c judges the attributes of that image; qp_life.c makes and
 * frees what a QP owns and copies the image into the lines of the key-QPC store.
 */

#include "ceu/ceu.h"
#include "wire/roce_frame.h"

/* In the block behind hca_qp.cfg.work, between the rings the lines point to. */
struct hca_qp_work {
	struct hca_qpc image; /* what was set, as QUERY_QP answers it */
	uint32_t sq_key, rq_key;
	uint32_t bytes; /* of the block and more_jobs, less the rings that grow with the SQ */
	void *block;
	struct hca_resp_job *more_jobs; /* NULL: those in this block are enough */
};

/* One MODIFY_QP in progress; nothing outside has changed before it is applied. */
struct hca_qp_change {
	uint32_t qpi, qpn;
	uint32_t from, to;	   /* states */
	uint32_t mask;		   /* attributes in the mailbox */
	struct hca_qpc image;	   /* merged */
	struct hca_roce_path path; /* resolved when the mask asks for it */
	uint32_t pace;		   /* of its static rate, with path */
};

/* enum hca_mtu: what the port and the configuration carry at most, as UD uses it. */
uint32_t hca_port_mtu(const struct hca *h);

/* Attributes of the image that ch->mask names. enum hca_stat. */
int hca_qp_check_attrs(const struct hca *h, struct hca_qp_change *ch);

/* RST2INIT: judge what is latched, take queues, records and memory. */
int hca_qp_create(struct hca *h, struct hca_qp_change *ch);
/*
 * As many responder jobs as max_dest_rd_atomic asks for: more than a QP has anyway are allocated on
 * the way to RTR, while EE does not execute for it. Later the number may only grow as far as that.
 */
int hca_qp_fit_jobs(struct hca *h, const struct hca_qp_change *ch);
/* The attributes of ch->mask into the lines the transition opens. */
void hca_qp_apply(struct hca *h, const struct hca_qp_change *ch);

static inline struct hca_qp_work *
hca_qp_work(const struct hca_qp *qp)
{
	return qp->cfg.work;
}

#endif
