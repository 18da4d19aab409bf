/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXAMPLE_H
#define EXAMPLE_H

/* Shared by the examples: one side of an RC connection, and the connection of both. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <softhca/softhca.h>

struct side {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_comp_channel *channel; /* NULL: completions are polled */
	struct softhca_cq *cq;
	struct softhca_qp *qp;
	struct softhca_mr *mr;
	char *memory;
};

/* Data of one side for the other; programs exchange it by any means. */
struct address {
	union softhca_gid gid;
	uint32_t qpn;
	uint32_t rkey;
	uint64_t memory;
};

static inline void
must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, softhca_last_error(NULL));
	exit(1);
}

/* A protection domain, a CQ, registered memory and an RC QP in s->ctx */
static inline void
create_objects(struct side *s, size_t bytes, int with_channel)
{
	struct softhca_cq_init_attr cq = {.cqe = 64};
	struct softhca_qp_init_attr qp = {
		.qp_type = SOFTHCA_QPT_RC,
		.cap = {.max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 1, .max_recv_sge = 1},
	};

	s->pd = softhca_alloc_pd(s->ctx);
	must(s->pd != NULL, "alloc_pd");
	s->channel = with_channel ? softhca_create_comp_channel(s->ctx) : NULL;
	must(s->channel != NULL || !with_channel, "create_comp_channel");
	cq.channel = s->channel;
	s->cq = softhca_create_cq(s->ctx, &cq);
	must(s->cq != NULL, "create_cq");
	s->memory = softhca_alloc(bytes);
	must(s->memory != NULL, "alloc");
	s->mr = softhca_reg_mr(s->pd, s->memory, bytes,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ);
	must(s->mr != NULL, "reg_mr");
	qp.send_cq = qp.recv_cq = s->cq;
	s->qp = softhca_create_qp(s->pd, &qp);
	must(s->qp != NULL, "create_qp");
}

static inline struct address
address_of(const struct side *s, unsigned int gid_index)
{
	struct address a = {.qpn = s->qp->qp_num,
			    .rkey = s->mr->rkey,
			    .memory = (uintptr_t)s->memory};

	must(softhca_query_gid(s->ctx, 1, gid_index, &a.gid) == 0, "query_gid");
	return a;
}

/* RESET to INIT, RTR and RTS, as every verbs program does it */
static inline void
connect_to(struct side *s, unsigned int gid_index, const struct address *peer)
{
	struct softhca_qp_attr a = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ,
		.path_mtu = SOFTHCA_MTU_1024,
		.dest_qp_num = peer->qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 14, /* 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.ah_attr = {.dgid = peer->gid, .sgid_index = gid_index, .port_num = 1},
	};

	must(softhca_modify_qp(s->qp, &a,
			       SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
				       SOFTHCA_QP_ACCESS_FLAGS) == 0,
	     "INIT");
	a.qp_state = SOFTHCA_QPS_RTR;
	must(softhca_modify_qp(s->qp, &a,
			       SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU |
				       SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
				       SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER) ==
		     0,
	     "RTR");
	a.qp_state = SOFTHCA_QPS_RTS;
	must(softhca_modify_qp(s->qp, &a,
			       SOFTHCA_QP_STATE | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
				       SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_SQ_PSN |
				       SOFTHCA_QP_MAX_QP_RD_ATOMIC) == 0,
	     "RTS");
}

/*
 * Creates the objects of two sides that are open in this process, and connects them. Returns the
 * address of b, to which a can write.
 */
static inline struct address
connect_pair(struct side *a, struct side *b, size_t bytes, int with_channel)
{
	struct address to_a, to_b;

	create_objects(a, bytes, with_channel);
	create_objects(b, bytes, with_channel);
	to_a = address_of(a, 0);
	to_b = address_of(b, 0);
	connect_to(a, 0, &to_b);
	connect_to(b, 0, &to_a);
	return to_b;
}

/* Posts one signalled request of an operation on `bytes` of s->memory. */
static inline void
post(struct side *s, enum softhca_wr_opcode opcode, uint32_t bytes, const struct address *peer)
{
	struct softhca_sge sge = {(uintptr_t)s->memory, bytes, s->mr->lkey};
	struct softhca_send_wr *bad, wr = {.sg_list = &sge,
					   .num_sge = 1,
					   .opcode = opcode,
					   .send_flags = SOFTHCA_SEND_SIGNALED};

	if (peer != NULL) {
		wr.wr.rdma.remote_addr = peer->memory;
		wr.wr.rdma.rkey = peer->rkey;
	}
	must(softhca_post_send(s->qp, &wr, &bad) == 0, "post_send");
}

static inline void
post_receive(struct side *s, uint32_t bytes)
{
	struct softhca_sge sge = {(uintptr_t)s->memory, bytes, s->mr->lkey};
	struct softhca_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	must(softhca_post_recv(s->qp, &wr, &bad) == 0, "post_recv");
}

/* Polls until one request has completed. */
static inline void
complete(struct side *s)
{
	struct softhca_wc wc;
	int n;

	do
		n = softhca_poll_cq(s->cq, 1, &wc);
	while (n == 0);
	must(n == 1, "poll_cq");
	must(wc.status == SOFTHCA_WC_SUCCESS, softhca_wc_status_str(wc.status));
}

#endif
