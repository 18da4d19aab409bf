/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CEU_QP_H
#define CEU_QP_H

/*
 * MODIFY_QP as a ladder, which hca_cmd_modify_qp() goes down: find the row of the transition table
 * (qp_modify.c); hold the paths of a QP that is running (qp_path.c); merge the mailbox into a
 * private image and judge it (qp_judge.c); put new paths into place (qp_path.c); create the QP, or
 * copy the image into the lines of the key-QPC store (qp_life.c).
 */

#include <string.h>

#include "abi_qp_attr.h"
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

static inline struct hca_qp_work *
hca_qp_work(const struct hca_qp *qp)
{
	return (struct hca_qp_work *)qp->cfg.block;
}

/*
 * Merges the mailbox into ch->image, checks its attributes, builds the headers of its addresses in
 * ch->path and allocates the memory that the QP needs for them. Returns enum hca_stat.
 */
int hca_qp_judge(struct hca_core *h, const struct hca_qpc *in, struct hca_qp_change *ch);

/*
 * Source, destination and MAC addresses of a path, from its words and the address tables; without
 * source port and ECN. False: it leads nowhere.
 */
bool hca_path_fill(const struct hca_core *h, const struct hca_qpc_path *q, struct hca_udp_path *p);

/* The destination's MAC address in the words of a path. */
static inline void
hca_path_set_dmac(struct hca_qpc_path *p, const uint8_t mac[6])
{
	uint64_t src = HCA_QPC_SMAC(hca_be32_to_cpu(p->mac_lo), hca_be32_to_cpu(p->smac_hi));
	uint64_t dst = (uint64_t)hca_get_be16(mac) << 32 | hca_get_be32(mac + 2);

	p->mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(dst, src));
	p->dmac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(dst));
}

/* The destination's MAC address of headers that encap may be copying: in one store. */
static inline void
hca_template_retarget(struct hca_udp_template *t, const uint8_t mac[6])
{
	uint64_t *word = (void *)t->bytes, first = __atomic_load_n(word, __ATOMIC_RELAXED);

	memcpy(&first, mac, 6);
	__atomic_store_n(word, first, __ATOMIC_RELAXED);
}

/* The number of a QP's algorithm of congestion control (cc/cc.h). image: its context. */
uint8_t hca_qp_algorithm(const struct hca_core *h, const struct hca_qpc *image);
/* The traffic class of its packets on a path, with the ECN field of its algorithm. */
uint8_t hca_qp_tclass(const struct hca_core *h, const struct hca_qpc *image,
		      const struct hca_qpc_path *path);

/* RST2INIT: checks sizes and queues, takes references to queues, records and memory. */
int hca_qp_create(struct hca_core *h, struct hca_qp_change *ch);
/*
 * Allocates for a QP that exists: as many responder jobs as max_dest_rd_atomic asks for, and a
 * second place if it gets an alternate path. More than the HCA_RESP_JOBS that each QP has are
 * allocated on the way to RTR, while EE does not execute for it; later their number cannot grow.
 * Returns enum hca_stat.
 */
int hca_qp_fit(struct hca_core *h, const struct hca_qp_change *ch);
/* Allocates the second place for a path. Returns enum hca_stat. */
int hca_qp_fit_second(struct hca_core *h, uint32_t qpi);

/* Loads the context as it was set; the alternate path only if there is a second place. */
static inline void
hca_qp_image_load(const struct hca_qp *qp, struct hca_qpc *image)
{
	const struct hca_qp_work *w = hca_qp_work(qp);

	memset(image, 0, sizeof(*image));
	memcpy(image, w->image, sizeof(w->image));
	if (w->block.second != NULL)
		image->alt_path = w->block.second->words;
}

static inline void
hca_qp_image_store(struct hca_qp *qp, const struct hca_qpc *image)
{
	struct hca_qp_work *w = hca_qp_work(qp);

	memcpy(w->image, image, sizeof(w->image));
	if (w->block.second != NULL)
		w->block.second->words = image->alt_path;
}

/* Writes the attributes of ch->mask, except the paths, into the lines of the key-QPC store. */
void hca_qp_apply(struct hca_core *h, const struct hca_qp_change *ch);

/* ---- qp_path.c ---- */

/* From here on only the CEU changes the QP's paths. False: a stage is migrating it, call again. */
bool hca_qp_paths_hold(struct hca_core *h, struct hca_qp_change *ch);
/*
 * Puts the judged paths into place, and timeout and rate with them. The paths of a running QP are
 * held and change in steps; before RTR no stage reads them. HCA_CMD_AGAIN: call again at the next
 * poll; HCA_STAT_OK: every frame from now on takes the new path; HCA_STAT_BAD_QP_STATE: a stage has
 * changed the state meanwhile.
 */
int hca_qp_paths_step(struct hca_core *h, struct hca_qp_change *ch);
/*
 * Ends hca_qp_paths_hold(), if the paths are held. done: the migration state is the planned one;
 * otherwise it is as before.
 */
void hca_qp_paths_release(struct hca_core *h, struct hca_qp_change *ch, bool done);
/* Makes the path in use the primary path of the image. */
void hca_qp_paths_query(const struct hca_qp *qp, struct hca_qpc *image);

_Static_assert(offsetof(struct hca_qp_work, block) == 0, "the engine sees its beginning");

#endif
