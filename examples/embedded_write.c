/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One RDMA WRITE between two HCAs inside this process: no daemon, no NIC, no root.
 *
 *   cc embedded_write.c -o embedded_write $(pkg-config --cflags --libs softhca-embed)
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <softhca/embed.h>
#include <softhca/softhca.h>

#define BYTES 4096u
#define INIT (SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS)
#define RTR \
	(SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | \
	 SOFTHCA_QP_RQ_PSN | SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER)
#define RTS \
	(SOFTHCA_QP_STATE | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY | \
	 SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_MAX_QP_RD_ATOMIC)

struct side {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_qp *qp;
	struct softhca_mr *mr;
	char *memory;
};

static void
must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s; %s\n", what, softhca_last_error(NULL), softhca_embed_last_error());
	exit(1);
}

static void
open_side(struct softhca_embed *embed, unsigned int index, struct side *s)
{
	struct softhca_cq_init_attr cq = {.cqe = 16};
	struct softhca_qp_init_attr attr = {.cap = {.max_send_wr = 16, .max_send_sge = 1}};

	must(softhca_embed_open(embed, index, &s->ctx) == 0, "open");
	s->pd = softhca_alloc_pd(s->ctx);
	must(s->pd != NULL, "alloc_pd");
	s->cq = softhca_create_cq(s->ctx, &cq);
	must(s->cq != NULL, "create_cq");
	s->memory = softhca_alloc(BYTES);
	must(s->memory != NULL, "alloc");
	s->mr = softhca_reg_mr(s->pd, s->memory, BYTES,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE);
	must(s->mr != NULL, "reg_mr");
	attr.send_cq = attr.recv_cq = s->cq;
	attr.qp_type = SOFTHCA_QPT_RC;
	s->qp = softhca_create_qp(s->pd, &attr);
	must(s->qp != NULL, "create_qp");
}

/* RESET to INIT, RTR and RTS; HCA 0 has the address ::ffff:10.77.0.1, HCA 1 .2 */
static void
connect_to(struct side *s, const struct side *peer)
{
	struct softhca_qp_attr a = {
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE,
		.path_mtu = SOFTHCA_MTU_4096,
		.dest_qp_num = peer->qp->qp_num,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	must(softhca_query_gid(peer->ctx, 1, 0, &a.ah_attr.dgid) == 0, "query_gid");
	a.qp_state = SOFTHCA_QPS_INIT;
	must(softhca_modify_qp(s->qp, &a, INIT) == 0, "INIT");
	a.qp_state = SOFTHCA_QPS_RTR;
	must(softhca_modify_qp(s->qp, &a, RTR) == 0, "RTR");
	a.qp_state = SOFTHCA_QPS_RTS;
	must(softhca_modify_qp(s->qp, &a, RTS) == 0, "RTS");
}

int
main(void)
{
	struct softhca_embed_config config;
	struct softhca_embed *embed;
	struct side a, b;
	struct softhca_sge sge;
	struct softhca_send_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct softhca_wc wc;

	softhca_embed_config_init(&config);
	config.memory_mb = 256;
	config.log_qps = 8;
	must(softhca_embed_create(&config, &embed) == 0, "embed_create");
	open_side(embed, 0, &a);
	open_side(embed, 1, &b);
	connect_to(&a, &b);
	connect_to(&b, &a);

	strcpy(a.memory, "written by the other HCA");
	sge = (struct softhca_sge){(uintptr_t)a.memory, BYTES, a.mr->lkey};
	wr.opcode = SOFTHCA_WR_RDMA_WRITE;
	wr.send_flags = SOFTHCA_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)b.memory;
	wr.wr.rdma.rkey = b.mr->rkey;
	must(softhca_post_send(a.qp, &wr, &bad) == 0, "post_send");
	while (softhca_poll_cq(a.cq, 1, &wc) == 0)
		;
	must(wc.status == SOFTHCA_WC_SUCCESS, softhca_wc_status_str(wc.status));
	printf("%s\n", b.memory);
	return softhca_embed_destroy(embed) == 0 ? 0 : 1;
}
