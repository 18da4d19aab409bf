/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every call that a fault can name fails once, with EXDEV, and does its work the next time. The
 * faults are those that the program prints with "faults" as its argument.
 */

#include <fcntl.h>

#include "all.h"
#include "faults/verbs_faults.h"

#define ERROR EXDEV

static const char *const names[] = {
#define X(name) #name,
	VERBS_FAULT_CALLS(X)
#undef X
};
#define NAMES (sizeof(names) / sizeof(names[0]))

static bool failed[NAMES];

static void
note(const char *name)
{
	for (size_t i = 0; i < NAMES; i++)
		if (strcmp(names[i], name) == 0)
			failed[i] = true;
}

/* call, and its return value when it fails (bad) */
#define FAILS(name, what, bad) \
	do { \
		errno = 0; \
		CHECK((what) == (bad)); \
		CHECK(errno == ERROR); \
		note(#name); \
	} while (0)
#define FAILS_NULL(name, what) FAILS(name, what, NULL)
#define FAILS_ERRNO(name, what) FAILS(name, what, ERROR)
/* And works then */
#define OBJECT(name, to, what) \
	do { \
		FAILS_NULL(name, what); \
		(to) = (what); \
		CHECK((to) != NULL); \
	} while (0)
#define WORKS(name, what) \
	do { \
		FAILS_ERRNO(name, what); \
		CHECK((what) == 0); \
	} while (0)

static struct all all;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp, *peer, *ud;

static void
device(void)
{
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;
	struct ibv_async_event event;
	struct ibv_port_attr port;

	OBJECT(get_device_list, all.list, ibv_get_device_list(NULL));
	OBJECT(open_device, all.context, ibv_open_device(all.list[0]));
	WORKS(query_device, ibv_query_device(all.context, &attr));
	WORKS(query_device_ex, ibv_query_device_ex(all.context, NULL, &ex));
	WORKS(query_port, ibv_query_port(all.context, PORT, &port));
	FAILS(query_gid, ibv_query_gid(all.context, PORT, GID_INDEX, &all.gid), -1);
	CHECK(ibv_query_gid(all.context, PORT, GID_INDEX, &all.gid) == 0);
	FAILS(get_async_event, ibv_get_async_event(all.context, &event), -1);
}

static void
memory(void)
{
	struct ibv_mw *mw;

	OBJECT(alloc_pd, all.pd, ibv_alloc_pd(all.context));
	all.memory = calloc(1, BYTES);
	OBJECT(reg_mr, all.mr, ibv_reg_mr(all.pd, all.memory, BYTES, ALL_ACCESS));
	FAILS(rereg_mr, ibv_rereg_mr(all.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS),
	      IBV_REREG_MR_ERR_CMD);
	CHECK(ibv_rereg_mr(all.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS) == 0);
	OBJECT(alloc_mw, mw, ibv_alloc_mw(all.pd, IBV_MW_TYPE_2));
	WORKS(dealloc_mw, ibv_dealloc_mw(mw));
}

static void
queues(void)
{
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 16};
	struct ibv_cq_ex *ex;
	struct ibv_cq *got;
	struct ibv_wc wc;
	void *own;

	OBJECT(create_comp_channel, channel, ibv_create_comp_channel(all.context));
	OBJECT(create_cq, cq, ibv_create_cq(all.context, 16, NULL, channel, 0));
	WORKS(resize_cq, ibv_resize_cq(cq, 32));
	WORKS(req_notify_cq, ibv_req_notify_cq(cq, 0));
	FAILS(poll_cq, ibv_poll_cq(cq, 1, &wc), -1);
	CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
	FAILS(get_cq_event, ibv_get_cq_event(channel, &got, &own), -1);
	OBJECT(create_cq_ex, ex, ibv_create_cq_ex(all.context, &cq_attr));
	CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)) == ERROR); /* the first of destroy_cq */
	note("destroy_cq");
	CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)) == 0);
}

static void
shared_queues(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq_init_attr_ex ex = {
		.attr = {.max_wr = 8, .max_sge = 1},
		.srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.pd = all.pd,
		.cq = cq,
	};
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_sge sge = {(uintptr_t)all.memory, 64, all.mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad = NULL;
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_srq *other;

	OBJECT(open_xrcd, ex.xrcd, ibv_open_xrcd(all.context, &xrcd));
	OBJECT(create_srq, srq, ibv_create_srq(all.pd, &attr));
	OBJECT(create_srq_ex, other, ibv_create_srq_ex(all.context, &ex));
	WORKS(destroy_srq, ibv_destroy_srq(other));
	WORKS(close_xrcd, ibv_close_xrcd(ex.xrcd));
	WORKS(modify_srq, ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	FAILS_ERRNO(post_srq_recv, ibv_post_srq_recv(srq, &wr, &bad));
	CHECK(bad == &wr);
	CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0);
}

/* With a PD alone the header makes it ibv_create_qp(), and the same for an SRQ. */
static struct ibv_qp *
create_ex(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {8, 8, 1, 1, 0},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = all.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	return ibv_create_qp_ex(all.context, &attr);
}

static void
pairs(void)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {8, 8, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_init_attr init;

	OBJECT(create_qp, qp, ibv_create_qp(all.pd, &attr));
	OBJECT(create_qp_ex, ud, create_ex(IBV_QPT_UD));
	WORKS(modify_qp, ibv_modify_qp(qp, &reset, IBV_QP_STATE));
	WORKS(query_qp, ibv_query_qp(qp, &reset, IBV_QP_STATE, &init));
	peer = ibv_create_qp(all.pd, &attr);
	CHECK(peer != NULL);
	all_to_init(qp);
	all_to_init(peer);
	all_to_init(ud);
	all_connect(&all, qp, peer);
}

static void
requests(void)
{
	struct ibv_sge sge = {(uintptr_t)all.memory, 64, all.mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv = NULL;
	struct ibv_send_wr send = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad = NULL;
	struct ibv_mw_bind bind = {0};

	FAILS_ERRNO(post_recv, ibv_post_recv(peer, &recv, &bad_recv));
	CHECK(bad_recv == &recv && ibv_post_recv(peer, &recv, &bad_recv) == 0);
	FAILS_ERRNO(post_send, ibv_post_send(qp, &send, &bad));
	CHECK(bad == &send && ibv_post_send(qp, &send, &bad) == 0);
	all_wc(cq);
	all_wc(cq);
	FAILS_ERRNO(bind_mw, qp->context->ops.bind_mw(qp, NULL, &bind));
}

static void
others(void)
{
	union ibv_gid group = {.raw = {0xff, 0x12, [15] = 0x77}};
	struct ibv_ah_attr path = {
		.grh = {.dgid = all.gid, .sgid_index = GID_INDEX, .hop_limit = 1},
		.is_global = 1,
		.port_num = PORT,
	};
	struct ibv_ah *ah;

	OBJECT(create_ah, ah, ibv_create_ah(all.pd, &path));
	WORKS(destroy_ah, ibv_destroy_ah(ah));
	WORKS(attach_mcast, ibv_attach_mcast(ud, &group, 0));
	WORKS(detach_mcast, ibv_detach_mcast(ud, &group, 0));
}

static void
end(void)
{
	WORKS(destroy_qp, ibv_destroy_qp(qp));
	CHECK(ibv_destroy_qp(peer) == 0 && ibv_destroy_qp(ud) == 0);
	CHECK(ibv_destroy_srq(srq) == 0);
	CHECK(ibv_destroy_cq(cq) == 0);
	WORKS(destroy_comp_channel, ibv_destroy_comp_channel(channel));
	WORKS(dereg_mr, ibv_dereg_mr(all.mr));
	WORKS(dealloc_pd, ibv_dealloc_pd(all.pd));
	WORKS(close_device, ibv_close_device(all.context));
	ibv_free_device_list(all.list);
	free(all.memory);
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "faults") == 0) {
		for (size_t i = 0; i < NAMES; i++)
			printf("%scall=ibv_%s,nth=1,errno=EXDEV", i != 0 ? ";" : "", names[i]);
		return 0;
	}
	device();
	memory();
	queues();
	shared_queues();
	pairs();
	requests();
	others();
	end();
	for (size_t i = 0; i < NAMES; i++)
		if (!failed[i])
			fprintf(stderr, "ibv_%s was not tried\n", names[i]);
	for (size_t i = 0; i < NAMES; i++)
		CHECK(failed[i]);
	printf("%zu calls have failed and worked\n", NAMES);
	return 0;
}
