/* SPDX-License-Identifier: BSD-3-Clause */
#include <softhca/softhca.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 4096
#define NEED(ok) \
	((ok) ? (void)0 : (fprintf(stderr, "%s: %s\n", #ok, softhca_last_error(NULL)), exit(1)))

int
main(int argc, char **argv)
{
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_qp *qp;
	struct softhca_mr *mr;
	struct softhca_cq_init_attr ca = {.cqe = 64};
	struct softhca_qp_init_attr qa = {.qp_type = SOFTHCA_QPT_RC,
					  .cap = {.max_send_wr = 32, .max_send_sge = 1}};
	struct softhca_qp_attr a = {.port_num = 1, .path_mtu = SOFTHCA_MTU_1024, .timeout = 14};
	char *buf;

	/* "embed": an HCA inside this process; or the name of a daemon's */
	NEED(softhca_open(argc > 1 ? argv[1] : "embed", &ctx) == 0);
	NEED((pd = softhca_alloc_pd(ctx)) != NULL);
	NEED((buf = softhca_alloc(2 * BYTES)) != NULL);
	NEED((mr = softhca_reg_mr(pd, buf, 2 * BYTES,
				  SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE)) !=
	     NULL);
	NEED((qa.send_cq = qa.recv_cq = cq = softhca_create_cq(ctx, &ca)) != NULL);
	NEED((qp = softhca_create_qp(pd, &qa)) != NULL);

	/* The peer is this QP itself; two programs exchange QPN, GID, address and key. */
	a.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE;
	a.dest_qp_num = qp->qp_num;
	a.ah_attr.port_num = 1;
	a.retry_cnt = a.rnr_retry = 7;
	NEED(softhca_query_gid(ctx, 1, 0, &a.ah_attr.dgid) == 0);
	a.qp_state = SOFTHCA_QPS_INIT;
	NEED(softhca_modify_qp(qp, &a,
			       SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
				       SOFTHCA_QP_ACCESS_FLAGS) == 0);
	a.qp_state = SOFTHCA_QPS_RTR;
	NEED(softhca_modify_qp(qp, &a,
			       SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU |
				       SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
				       SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER) ==
	     0);
	a.qp_state = SOFTHCA_QPS_RTS;
	NEED(softhca_modify_qp(qp, &a,
			       SOFTHCA_QP_STATE | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
				       SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_SQ_PSN |
				       SOFTHCA_QP_MAX_QP_RD_ATOMIC) == 0);

	struct softhca_sge sge = {(uintptr_t)buf, BYTES, mr->lkey};
	struct softhca_send_wr *bad, wr = {.sg_list = &sge,
					   .num_sge = 1,
					   .opcode = SOFTHCA_WR_RDMA_WRITE,
					   .send_flags = SOFTHCA_SEND_SIGNALED};
	struct softhca_wc wc;
	int n;

	strcpy(buf, "written over RoCE");
	wr.wr.rdma.remote_addr = (uintptr_t)buf + BYTES;
	wr.wr.rdma.rkey = mr->rkey;
	NEED(softhca_post_send(qp, &wr, &bad) == 0);
	while ((n = softhca_poll_cq(cq, 1, &wc)) == 0)
		;
	NEED(n == 1 && wc.status == SOFTHCA_WC_SUCCESS);
	printf("%s\n", buf + BYTES);
	softhca_close(ctx);
	return 0;
}
