/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An RDMA WRITE in plain verbs, between two queue pairs of one device. It does not use any name of
 * softhca.
 *
 *   cc verbs_write.c -o verbs_write -libverbs
 *   softhca-run --embed ./verbs_write
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#define BYTES 4096

static void
must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

/* Connect a QP to another of the same port. */
static void
connect_to(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid)
{
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.ah_attr = {.grh = {.dgid = *gid, .hop_limit = 64}, .is_global = 1, .port_num = 1},
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	must(ibv_modify_qp(qp, &attr, init) == 0, "INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(qp, &attr, rtr) == 0, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp, &attr, rts) == 0, "RTS");
}

static void
write_text(struct ibv_qp *qp, char *text, void *to, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)text, (uint32_t)strlen(text) + 1, 0};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
					 .wr.rdma = {(uintptr_t)to, rkey},
				 };
	struct ibv_wc wc;
	int n;

	must(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
	do
		n = ibv_poll_cq(qp->send_cq, 1, &wc);
	while (n == 0);
	must(n == 1 && wc.status == IBV_WC_SUCCESS, "ibv_poll_cq");
}

int
main(void)
{
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 32}, .qp_type = IBV_QPT_RC};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	char *memory = calloc(1, BYTES);
	struct ibv_qp *qp[2];
	union ibv_gid gid;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	must(list != NULL && list[0] != NULL, "no device");
	context = ibv_open_device(list[0]);
	must(context != NULL && ibv_query_gid(context, 1, 0, &gid) == 0, "ibv_open_device");
	pd = ibv_alloc_pd(context);
	mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = init.recv_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	must(mr != NULL && init.send_cq != NULL, "ibv_reg_mr, ibv_create_cq");
	for (int i = 0; i < 2; i++)
		must((qp[i] = ibv_create_qp(pd, &init)) != NULL, "ibv_create_qp");
	for (int i = 0; i < 2; i++)
		connect_to(qp[i], qp[1 - i]->qp_num, &gid);
	write_text(qp[0], "written by verbs", memory, mr->rkey);
	printf("%s: %s\n", ibv_get_device_name(context->device), memory);
	for (int i = 0; i < 2; i++)
		ibv_destroy_qp(qp[i]);
	ibv_destroy_cq(init.send_cq);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	ibv_free_device_list(list);
	free(memory);
	return 0;
}
