/* SPDX-License-Identifier: BSD-3-Clause */

/* Work requests and completions: lists go through as they are (front_layout.c). */

#include "front.h"

int
front_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int n = softhca_poll_cq(front_cq_hca(cq), num_entries, (struct softhca_wc *)wc);

	return __builtin_expect(n >= 0, 1) ? n : -front_result(n, "ibv_poll_cq");
}

int
front_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int err = softhca_post_send(front_qp(qp)->hca, (struct softhca_send_wr *)wr,
				    (struct softhca_send_wr **)bad_wr);

	return front_result(err, "ibv_post_send");
}

int
front_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int err = softhca_post_recv(front_qp(qp)->hca, (struct softhca_recv_wr *)wr,
				    (struct softhca_recv_wr **)bad_wr);

	return front_result(err, "ibv_post_recv");
}

int
front_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int err = softhca_post_srq_recv(front_srq_hca(srq), (struct softhca_recv_wr *)wr,
					(struct softhca_recv_wr **)bad_wr);

	return front_result(err, "ibv_post_srq_recv");
}
