/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_PERF_UB_H
#define APPS_PERF_PERF_UB_H

/*
 * --wire ub: the objects of URMA that stand in the places of QPs, CQs and regions. The rest of the
 * program keeps its rings of verbs requests as names of posted requests, and gets completions of
 * verbs: perf_ub_ring.c translates, as far as possible once per ring, so a post is the post of a
 * prepared list.
 *
 * Flow f is a Jetty at each side; all of them share the channels that the HCAs have set up when the
 * first was imported.
 */

#include <softhca/urma.h>

#include "perf.h"

struct perf_ub_flow {
	urma_jetty_t *jetty[2];
	urma_target_jetty_t *to[2]; /* the other side's Jetty, as imported by this one */
};

struct perf_ub {
	urma_context_t *ctx[2];
	urma_token_t token[2]; /* of a side's segments and Jettys */
	urma_jfce_t *jfce[2];  /* --events */
	urma_jfc_t *send_jfc[2], *recv_jfc[2];
	urma_jfr_t *jfr[2]; /* --srq: of all Jettys of the side */
	urma_target_seg_t *seg[2][PERF_AREA_KINDS];
	urma_target_seg_t *to_seg[2]; /* where the other side's requests find or leave data */
	struct perf_ub_flow *flow;
};

/* A ring's requests and receives as URMA has them; the same indexes. */
struct perf_ub_ring {
	urma_jfs_wr_t *wr;
	urma_jfr_wr_t *recv;
	urma_sge_t *local, *remote, *result; /* of wr; of recv */
};

/* --- perf_ub.c: each as its namesake of perf_setup.c -------------------- */
int perf_ub_session_open(struct perf_session *s);
void perf_ub_session_close(struct perf_session *s);
int perf_ub_area_open(struct perf_session *s, unsigned int side, enum perf_area_kind kind);
int perf_ub_queues_open(struct perf_session *s, unsigned int side);
int perf_ub_flow_open(struct perf_session *s, uint32_t f, unsigned int side);
int perf_ub_connect(struct perf_session *s);
/* --events: ask for events; take those there are, and say so. */
int perf_ub_arm(struct perf_session *s, unsigned int side, bool send);
int perf_ub_take_events(struct perf_session *s, unsigned int side);
/* Everything of the row. */
void perf_ub_row_close(struct perf_session *s);
/* The status of a completion that perf_ub_poll() has made, in words. */
const char *perf_ub_status(uint32_t status);

/* --- perf_ub_ring.c -------------------- */
int perf_ub_ring_build(const struct perf_session *s, uint32_t f, unsigned int side,
		       struct perf_ring *ring);
void perf_ub_ring_free(struct perf_ring *ring);
int perf_ub_post(struct perf_session *s, struct perf_flow *f, unsigned int side,
		 const struct softhca_send_wr *wr);
int perf_ub_post_recv(struct perf_session *s, struct perf_flow *f, unsigned int side,
		      const struct softhca_recv_wr *wr);

#endif
