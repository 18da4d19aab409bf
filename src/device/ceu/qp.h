/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CEU_QP_H
#define CEU_QP_H

/*
 * Parts of MODIFY_QP: qp_modify.c finds the row of the transition table and merges the mailbox into
 * a private image; qp_attr.c checks the attributes of the image, qp_addr.c its addresses; qp_life.c
 * allocates and frees a QP's memory and copies the image into the lines of the key-QPC store;
 * qp_path.c changes the paths of a running QP.
 */

#include "ceu/ceu.h"

/*
 * The part of the context that was set; the following part is computed or holds the alternate path.
 */
#define HCA_QP_IMAGE_BYTES offsetof(struct hca_qpc, reserveda0)

/* In the block of hca_qp.cfg.block, between the rings that the lines point to. */
struct hca_qp_work {
	struct hca_qp_block block;
	uint8_t image[HCA_QP_IMAGE_BYTES]; /* as returned by QUERY_QP */
	/* value of encap.path for which it holds the primary path */
	uint32_t image_path;
	/* size of the QP's memory without its rings: for the SQ, and of responder jobs */
	uint32_t bytes;
	void *memory;			/* the allocation that contains this */
	struct hca_resp_job *more_jobs; /* NULL: those in this block are sufficient */
};

/* enum hca_mtu: what the port and the configuration carry at most, as UD uses it. */
uint32_t hca_port_mtu(const struct hca_core *h);

/* Whether the QP may have this Q_Key: those with the top bit set are for privileged QPs. */
bool hca_qp_may_have_qkey(const struct hca_qpc *q);

/* Attributes of the image that ch->mask names. enum hca_stat. */
int hca_qp_check_attrs(const struct hca_core *h, struct hca_qp_change *ch);

/* The addresses that q names; false: they contradict each other or are unknown. */
bool hca_qp_resolve(const struct hca_core *h, const struct hca_qp_change *ch,
		    const struct hca_qpc_path *q, struct hca_qp_path *out);

/* RST2INIT: judge what is latched, take queues, records and memory. */
int hca_qp_create(struct hca_core *h, struct hca_qp_change *ch);
/*
 * Provide the number of responder jobs that max_dest_rd_atomic requests. More than a QP has anyway
 * are allocated at RTR, while EE does not execute for it; later the number cannot exceed these.
 */
int hca_qp_fit_jobs(struct hca_core *h, const struct hca_qp_change *ch);
/* It has a second place for a path from now on. */
int hca_qp_fit_second(struct hca_core *h, uint32_t qpi);

/* Copy the context as it was set; the alternate path only if the QP has a second place. */
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
/* The other attributes; on the way to RTR also the paths: no stage reads them yet. */
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
