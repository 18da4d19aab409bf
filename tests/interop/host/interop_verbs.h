/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_HOST_INTEROP_VERBS_H
#define TESTS_INTEROP_HOST_INTEROP_VERBS_H

/* The verbs of softhca: the same names with another prefix. */

#include <softhca/softhca.h>
#include <string.h>

#define ibv_ack_cq_events softhca_ack_cq_events
#define ibv_ah softhca_ah
#define ibv_ah_attr softhca_ah_attr
#define ibv_alloc_mw softhca_alloc_mw
#define ibv_alloc_pd softhca_alloc_pd
#define ibv_attach_mcast softhca_attach_mcast
#define ibv_comp_channel softhca_comp_channel
#define ibv_context softhca_context
#define ibv_cq softhca_cq
#define ibv_create_ah softhca_create_ah
#define ibv_create_comp_channel softhca_create_comp_channel
#define ibv_create_qp softhca_create_qp
#define ibv_create_srq softhca_create_srq
#define ibv_dealloc_mw softhca_dealloc_mw
#define ibv_dealloc_pd softhca_dealloc_pd
#define ibv_dereg_mr softhca_dereg_mr
#define ibv_destroy_ah softhca_destroy_ah
#define ibv_destroy_comp_channel softhca_destroy_comp_channel
#define ibv_destroy_cq softhca_destroy_cq
#define ibv_destroy_qp softhca_destroy_qp
#define ibv_destroy_srq softhca_destroy_srq
#define ibv_detach_mcast softhca_detach_mcast
#define ibv_get_cq_event softhca_get_cq_event
#define ibv_gid softhca_gid
#define ibv_inc_rkey softhca_inc_rkey
#define ibv_modify_qp softhca_modify_qp
#define ibv_mr softhca_mr
#define ibv_mw softhca_mw
#define ibv_pd softhca_pd
#define ibv_poll_cq softhca_poll_cq
#define ibv_post_recv softhca_post_recv
#define ibv_post_send softhca_post_send
#define ibv_post_srq_recv softhca_post_srq_recv
#define ibv_qp softhca_qp
#define ibv_qp_attr softhca_qp_attr
#define ibv_qp_init_attr softhca_qp_init_attr
#define ibv_query_gid softhca_query_gid
#define ibv_recv_wr softhca_recv_wr
#define ibv_reg_mr softhca_reg_mr
#define ibv_req_notify_cq softhca_req_notify_cq
#define ibv_send_wr softhca_send_wr
#define ibv_sge softhca_sge
#define ibv_srq softhca_srq
#define ibv_srq_init_attr softhca_srq_init_attr
#define ibv_wc softhca_wc
#define ibv_wc_status_str softhca_wc_status_str

#define IBV_ACCESS_LOCAL_WRITE SOFTHCA_ACCESS_LOCAL_WRITE
#define IBV_ACCESS_MW_BIND SOFTHCA_ACCESS_MW_BIND
#define IBV_ACCESS_REMOTE_ATOMIC SOFTHCA_ACCESS_REMOTE_ATOMIC
#define IBV_ACCESS_REMOTE_READ SOFTHCA_ACCESS_REMOTE_READ
#define IBV_ACCESS_REMOTE_WRITE SOFTHCA_ACCESS_REMOTE_WRITE
#define IBV_MTU_256 SOFTHCA_MTU_256
#define IBV_MW_TYPE_2 SOFTHCA_MW_TYPE_2
#define IBV_QPS_ERR SOFTHCA_QPS_ERR
#define IBV_QPS_RESET SOFTHCA_QPS_RESET
#define IBV_QPS_INIT SOFTHCA_QPS_INIT
#define IBV_QPS_RTR SOFTHCA_QPS_RTR
#define IBV_QPS_RTS SOFTHCA_QPS_RTS
#define IBV_QPT_RC SOFTHCA_QPT_RC
#define IBV_QPT_UC SOFTHCA_QPT_UC
#define IBV_QPT_UD SOFTHCA_QPT_UD
#define IBV_QP_ACCESS_FLAGS SOFTHCA_QP_ACCESS_FLAGS
#define IBV_QP_AV SOFTHCA_QP_AV
#define IBV_QP_DEST_QPN SOFTHCA_QP_DEST_QPN
#define IBV_QP_MAX_DEST_RD_ATOMIC SOFTHCA_QP_MAX_DEST_RD_ATOMIC
#define IBV_QP_MAX_QP_RD_ATOMIC SOFTHCA_QP_MAX_QP_RD_ATOMIC
#define IBV_QP_MIN_RNR_TIMER SOFTHCA_QP_MIN_RNR_TIMER
#define IBV_QP_PATH_MTU SOFTHCA_QP_PATH_MTU
#define IBV_QP_PKEY_INDEX SOFTHCA_QP_PKEY_INDEX
#define IBV_QP_PORT SOFTHCA_QP_PORT
#define IBV_QP_QKEY SOFTHCA_QP_QKEY
#define IBV_QP_RETRY_CNT SOFTHCA_QP_RETRY_CNT
#define IBV_QP_RNR_RETRY SOFTHCA_QP_RNR_RETRY
#define IBV_QP_RQ_PSN SOFTHCA_QP_RQ_PSN
#define IBV_QP_SQ_PSN SOFTHCA_QP_SQ_PSN
#define IBV_QP_STATE SOFTHCA_QP_STATE
#define IBV_QP_TIMEOUT SOFTHCA_QP_TIMEOUT
#define IBV_SEND_FENCE SOFTHCA_SEND_FENCE
#define IBV_SEND_INLINE SOFTHCA_SEND_INLINE
#define IBV_SEND_SIGNALED SOFTHCA_SEND_SIGNALED
#define IBV_SEND_SOLICITED SOFTHCA_SEND_SOLICITED
#define IBV_WC_BIND_MW SOFTHCA_WC_BIND_MW
#define IBV_WC_GRH SOFTHCA_WC_GRH
#define IBV_WC_RECV SOFTHCA_WC_RECV
#define IBV_WC_RECV_RDMA_WITH_IMM SOFTHCA_WC_RECV_RDMA_WITH_IMM
#define IBV_WC_REM_ACCESS_ERR SOFTHCA_WC_REM_ACCESS_ERR
#define IBV_WC_REM_INV_REQ_ERR SOFTHCA_WC_REM_INV_REQ_ERR
#define IBV_WC_REM_OP_ERR SOFTHCA_WC_REM_OP_ERR
#define IBV_WC_RETRY_EXC_ERR SOFTHCA_WC_RETRY_EXC_ERR
#define IBV_WC_RNR_RETRY_EXC_ERR SOFTHCA_WC_RNR_RETRY_EXC_ERR
#define IBV_WC_SUCCESS SOFTHCA_WC_SUCCESS
#define IBV_WC_WITH_IMM SOFTHCA_WC_WITH_IMM
#define IBV_WC_WR_FLUSH_ERR SOFTHCA_WC_WR_FLUSH_ERR
#define IBV_WR_ SOFTHCA_WR_
#define IBV_WR_ATOMIC_CMP_AND_SWP SOFTHCA_WR_ATOMIC_CMP_AND_SWP
#define IBV_WR_ATOMIC_FETCH_AND_ADD SOFTHCA_WR_ATOMIC_FETCH_AND_ADD
#define IBV_WR_BIND_MW SOFTHCA_WR_BIND_MW
#define IBV_WR_RDMA_READ SOFTHCA_WR_RDMA_READ
#define IBV_WR_RDMA_WRITE SOFTHCA_WR_RDMA_WRITE
#define IBV_WR_RDMA_WRITE_WITH_IMM SOFTHCA_WR_RDMA_WRITE_WITH_IMM
#define IBV_WR_SEND SOFTHCA_WR_SEND
#define IBV_WR_SEND_WITH_IMM SOFTHCA_WR_SEND_WITH_IMM
#define IBV_WR_SEND_WITH_INV SOFTHCA_WR_SEND_WITH_INV

/* Status of a receive that is too small for its message */
#define INTEROP_SHORT_RECV SOFTHCA_WC_LOC_LEN_ERR

/* Least number of messages that must arrive on a bad wire: losses are rare. */
#define INTEROP_LEAST(count) ((count) / 2)

static inline struct softhca_cq *
ibv_create_cq(struct softhca_context *ctx, int cqe, void *cq_context,
	      struct softhca_comp_channel *channel, int comp_vector)
{
	const struct softhca_cq_init_attr attr = {
		.cqe = (uint32_t)cqe,
		.comp_vector = (uint32_t)comp_vector,
		.channel = channel,
		.cq_context = cq_context,
	};

	return softhca_create_cq(ctx, &attr);
}

static inline void
interop_path(struct softhca_ah_attr *attr, const uint8_t gid[16], unsigned int sgid_index,
	     unsigned int traffic_class, unsigned int hop_limit)
{
	*attr = (struct softhca_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.sgid_index = (uint8_t)sgid_index,
		.traffic_class = (uint8_t)traffic_class,
		.hop_limit = (uint8_t)hop_limit,
	};
	memcpy(attr->dgid.raw, gid, 16);
}

static inline void
interop_invalidate(struct softhca_send_wr *wr, uint32_t rkey)
{
	wr->invalidate_rkey = rkey;
}

static inline int
interop_invalidated(const struct softhca_wc *wc, uint32_t rkey)
{
	return (wc->wc_flags & SOFTHCA_WC_WITH_INV) != 0 && wc->invalidated_rkey == rkey;
}

/* The waiting thread runs the engine. */
static inline void
interop_progress(struct softhca_context *ctx)
{
	softhca_progress(ctx);
}

#endif
