/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CEU_QP_H
#define CEU_QP_H

/*
 * MODIFY_QP in parts: qp_modify.c finds the row of the transition table and merges the mailbox into
 * a private image; qp_attr.c judges the attributes of that image, qp_addr.c its addresses;
 * qp_life.c makes and frees what a QP owns and copies the image into the lines of the key-QPC
 * store; qp_path.c changes the paths of a QP that is running.
 */

#include "ceu/ceu.h"

/* Of the context: what was set. Behind it stands what is filled in, and the alternate path. */
#define HCA_QP_IMAGE_BYTES offsetof(struct hca_qpc, reserveda0)

/* In the block behind hca_qp.cfg.block, between the rings the lines point to. */
struct hca_qp_work {
	struct hca_qp_block block;
	uint8_t image[HCA_QP_IMAGE_BYTES]; /* as QUERY_QP answers it */
	uint32_t image_path;		   /* encap.path that its primary path stands for */
	uint32_t bytes; /* of all a QP has but its rings: for the SQ, and of responder jobs */
	void *memory;	/* which this is part of */
	struct hca_resp_job *more_jobs; /* NULL: those in this block are enough */
};

/* enum hca_mtu: what the port and the configuration carry at most, as UD uses it. */
uint32_t hca_port_mtu(const struct hca_core *h);

/* Q_Keys with the top bit are for privileged QPs. */
bool hca_qp_may_have_qkey(const struct hca_qpc *q);

/* Attributes of the image that ch->mask names. enum hca_stat. */
int hca_qp_check_attrs(const struct hca_core *h, struct hca_qp_change *ch);

/* The addresses that q names; false: they do not fit together, or nobody knows them. */
bool hca_qp_resolve(const struct hca_core *h, const struct hca_qp_change *ch,
		    const struct hca_qpc_path *q, struct hca_qp_path *out);

/* RST2INIT: judge what is latched, take queues, records and memory. */
int hca_qp_create(struct hca_core *h, struct hca_qp_change *ch);
/*
 * As many responder jobs as max_dest_rd_atomic asks for: more than a QP has anyway are allocated on
 * the way to RTR, while EE does not execute for it. Later the number may only grow as far as that.
 */
int hca_qp_fit_jobs(struct hca_core *h, const struct hca_qp_change *ch);
/* It has a second place for a path from now on. */
int hca_qp_fit_second(struct hca_core *h, uint32_t qpi);

/* The context as it was set, in whole; the alternate path only of who has a second place. */
void hca_qp_image_load(const struct hca_qp *qp, struct hca_qpc *image);
void hca_qp_image_store(struct hca_qp *qp, const struct hca_qpc *image);

/* The attributes of ch->mask into the lines the transition opens. */
void hca_qp_apply(struct hca_core *h, const struct hca_qp_change *ch);

/* ---- qp_path.c ---- */

/* Its paths are the CEU's from here on; false: someone is migrating it, ask again. */
bool hca_qp_paths_hold(struct hca_core *h, struct hca_qp_change *ch);
/* The new ones, judged, are to be put into place; what is known only then. enum hca_stat. */
int hca_qp_paths_plan(struct hca_core *h, struct hca_qp_change *ch);
/* At each poll until true: every frame from now on goes the new way. */
bool hca_qp_paths_step(struct hca_core *h, struct hca_qp_change *ch);
/* done: migration state and everything as planned; otherwise as it was. Held or not. */
void hca_qp_paths_release(struct hca_core *h, struct hca_qp_change *ch, bool done);
/* Everything else about them; on the way to RTR the paths too: nobody looks at them yet. */
void hca_qp_paths_apply(struct hca_core *h, const struct hca_qp_change *ch);
/* Of the image the primary path becomes the one in use. */
void hca_qp_paths_query(const struct hca_qp *qp, struct hca_qpc *image);

_Static_assert(offsetof(struct hca_qp_work, block) == 0, "the engine sees its beginning");

static inline struct hca_qp_work *
hca_qp_work(const struct hca_qp *qp)
{
	return (struct hca_qp_work *)qp->cfg.block;
}

#endif
