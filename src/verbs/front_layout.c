/* SPDX-License-Identifier: BSD-3-Clause */

/* Structures that verbs and libsofthca exchange without conversion have one layout. */

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

_Static_assert((int)IBV_WR_ATOMIC_WRITE == SOFTHCA_WR_ATOMIC_WRITE, "one number");
_Static_assert((int)IBV_WC_ATOMIC_WRITE == SOFTHCA_WC_ATOMIC_WRITE, "one number");
/* of an extended QP: the functions of later headers follow those of this one */
_Static_assert(offsetof(struct front_qp, wr_flush) ==
		       offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *),
	       "wr_flush");

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

_Static_assert(IBV_CREATE_CQ_ATTR_SINGLE_THREADED == (int)SOFTHCA_SINGLE_THREADED, "one number");
_Static_assert(IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN == (int)SOFTHCA_IGNORE_OVERRUN, "one number");

#define OBJECT(a, b) \
	SAME(a, b, context); \
	SAME(a, b, pd); \
	SAME(a, b, handle); \
	_Static_assert(sizeof(struct a) <= offsetof(struct b, user) + sizeof(void *), #b)

OBJECT(ibv_ah, softhca_ah);
OBJECT(ibv_mr, softhca_mr);
SAME(ibv_mr, softhca_mr, addr);
SAME(ibv_mr, softhca_mr, length);
SAME(ibv_mr, softhca_mr, lkey);
SAME(ibv_mr, softhca_mr, rkey);
OBJECT(ibv_mw, softhca_mw);
SAME(ibv_mw, softhca_mw, rkey);
SAME(ibv_mw, softhca_mw, type);

_Static_assert(sizeof(struct ibv_mw_bind) == sizeof(struct softhca_mw_bind), "one layout");
SAME(ibv_mw_bind, softhca_mw_bind, send_flags);
SAME(ibv_mw_bind, softhca_mw_bind, bind_info.mr);
SAME(ibv_mw_bind, softhca_mw_bind, bind_info.addr);
SAME(ibv_mw_bind, softhca_mw_bind, bind_info.length);
SAME(ibv_mw_bind, softhca_mw_bind, bind_info.mw_access_flags);

_Static_assert(sizeof(union ibv_gid) == sizeof(union softhca_gid), "GIDs are 16 bytes");

_Static_assert(sizeof(struct ibv_qp_cap) == sizeof(struct softhca_qp_cap), "one layout");
SAME(ibv_qp_cap, softhca_qp_cap, max_recv_wr);
SAME(ibv_qp_cap, softhca_qp_cap, max_send_sge);
SAME(ibv_qp_cap, softhca_qp_cap, max_recv_sge);
SAME(ibv_qp_cap, softhca_qp_cap, max_inline_data);
