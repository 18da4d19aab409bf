/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Work requests and completions. The structures of verbs and of libsofthca have one layout, so that
 * lists go through as they are: but for the pointers in requests of UD QPs (address handle) and in
 * binds (window, region), which are objects of this library. Such lists are copied, a few requests
 * at a time; this goes away as soon as the objects of libsofthca can be found from ours without it.
 */

#include <stddef.h>
#include <string.h>

#include "front.h"

#define SAME(a, b, member) \
	_Static_assert(offsetof(struct a, member) == offsetof(struct b, member), #member)

_Static_assert(sizeof(struct ibv_sge) == sizeof(struct softhca_sge), "SGEs have one layout");
SAME(ibv_sge, softhca_sge, length);
SAME(ibv_sge, softhca_sge, lkey);

_Static_assert(sizeof(struct ibv_recv_wr) == sizeof(struct softhca_recv_wr), "one layout");
SAME(ibv_recv_wr, softhca_recv_wr, next);
SAME(ibv_recv_wr, softhca_recv_wr, sg_list);
SAME(ibv_recv_wr, softhca_recv_wr, num_sge);

_Static_assert(sizeof(struct ibv_send_wr) == sizeof(struct softhca_send_wr), "one layout");
SAME(ibv_send_wr, softhca_send_wr, next);
SAME(ibv_send_wr, softhca_send_wr, sg_list);
SAME(ibv_send_wr, softhca_send_wr, num_sge);
SAME(ibv_send_wr, softhca_send_wr, opcode);
SAME(ibv_send_wr, softhca_send_wr, send_flags);
SAME(ibv_send_wr, softhca_send_wr, imm_data);
SAME(ibv_send_wr, softhca_send_wr, invalidate_rkey);
SAME(ibv_send_wr, softhca_send_wr, wr.rdma.remote_addr);
SAME(ibv_send_wr, softhca_send_wr, wr.rdma.rkey);
SAME(ibv_send_wr, softhca_send_wr, wr.atomic.compare_add);
SAME(ibv_send_wr, softhca_send_wr, wr.atomic.swap);
SAME(ibv_send_wr, softhca_send_wr, wr.atomic.rkey);
SAME(ibv_send_wr, softhca_send_wr, wr.ud.ah);
SAME(ibv_send_wr, softhca_send_wr, wr.ud.remote_qpn);
SAME(ibv_send_wr, softhca_send_wr, wr.ud.remote_qkey);
SAME(ibv_send_wr, softhca_send_wr, qp_type.xrc.remote_srqn);
SAME(ibv_send_wr, softhca_send_wr, bind_mw.mw);
SAME(ibv_send_wr, softhca_send_wr, bind_mw.rkey);
SAME(ibv_send_wr, softhca_send_wr, bind_mw.bind_info.mr);
SAME(ibv_send_wr, softhca_send_wr, bind_mw.bind_info.addr);
SAME(ibv_send_wr, softhca_send_wr, bind_mw.bind_info.length);
SAME(ibv_send_wr, softhca_send_wr, bind_mw.bind_info.mw_access_flags);

_Static_assert(sizeof(struct ibv_wc) == sizeof(struct softhca_wc), "completions have one layout");
SAME(ibv_wc, softhca_wc, status);
SAME(ibv_wc, softhca_wc, opcode);
SAME(ibv_wc, softhca_wc, vendor_err);
SAME(ibv_wc, softhca_wc, byte_len);
SAME(ibv_wc, softhca_wc, imm_data);
SAME(ibv_wc, softhca_wc, qp_num);
SAME(ibv_wc, softhca_wc, src_qp);
SAME(ibv_wc, softhca_wc, wc_flags);
SAME(ibv_wc, softhca_wc, pkey_index);
SAME(ibv_wc, softhca_wc, slid);
SAME(ibv_wc, softhca_wc, sl);
SAME(ibv_wc, softhca_wc, dlid_path_bits);

int
front_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int n = softhca_poll_cq(front_cq_hca(cq), num_entries, (struct softhca_wc *)wc);

	return __builtin_expect(n >= 0, 1) ? n : -front_result(n, "ibv_poll_cq");
}

/* ---- requests with pointers in them ---- */

/* Requests that are copied and posted together */
#define COPIED 16

void
front_bind_info(const struct ibv_mw_bind_info *from, struct softhca_mw_bind_info *to)
{
	*to = (struct softhca_mw_bind_info){
		.mr = from->mr != NULL ? ((struct front_mr *)from->mr)->hca : NULL,
		.addr = from->addr,
		.length = from->length,
		.mw_access_flags = from->mw_access_flags,
	};
}

static void
translate(const struct front_qp *qp, const struct ibv_send_wr *from, struct softhca_send_wr *to)
{
	memcpy(to, from, sizeof(*to));
	to->next = NULL;
	if (qp->is_ud) {
		if (from->wr.ud.ah != NULL)
			to->wr.ud.ah = ((struct front_ah *)from->wr.ud.ah)->hca;
	} else if (from->opcode == IBV_WR_BIND_MW) {
		if (from->bind_mw.mw != NULL)
			to->bind_mw.mw = ((struct front_mw *)from->bind_mw.mw)->hca;
		front_bind_info(&from->bind_mw.bind_info, &to->bind_mw.bind_info);
	}
}

static int
post_copied(struct front_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct softhca_send_wr copies[COPIED], *bad;
	struct ibv_send_wr *from[COPIED];
	int n, err;

	while (wr != NULL) {
		for (n = 0; wr != NULL && n < COPIED; n++, wr = wr->next) {
			from[n] = wr;
			translate(qp, wr, &copies[n]);
			if (n > 0)
				copies[n - 1].next = &copies[n];
		}
		err = softhca_post_send(qp->hca, copies, &bad);
		if (err != 0) {
			*bad_wr = from[bad - copies];
			return err;
		}
	}
	return 0;
}

static bool
has_bind(const struct ibv_send_wr *wr)
{
	while (wr != NULL && wr->opcode != IBV_WR_BIND_MW)
		wr = wr->next;
	return wr != NULL;
}

int
front_post_send(struct ibv_qp *pub, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct front_qp *qp = front_qp(pub);
	int err;

	if (__builtin_expect(qp->is_ud, 0) ||
	    (__atomic_load_n(&front_ctx(pub->context)->session->has_windows, __ATOMIC_RELAXED) &&
	     has_bind(wr)))
		err = post_copied(qp, wr, bad_wr);
	else
		err = softhca_post_send(qp->hca, (struct softhca_send_wr *)wr,
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
