/* SPDX-License-Identifier: BSD-3-Clause */

/* modify_qp and query_qp: transitions, attributes, mailbox bytes; creation limits; regions. */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "lib_rig.h"
#include "lib_types.h"

const struct rig_wanted rig_wanted = {
	.cap =
		{
			.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	.cqe = 4,
	.state = SOFTHCA_QPS_RESET,
};

#define INIT_MASK \
	(SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS)
#define RTR_MASK \
	(SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | \
	 SOFTHCA_QP_RQ_PSN | SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER)
#define RTS_MASK \
	(SOFTHCA_QP_STATE | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY | \
	 SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_MAX_QP_RD_ATOMIC)

static const struct softhca_qp_attr full = {
	.path_mtu = SOFTHCA_MTU_4096,
	.rq_psn = 0x123456,
	.sq_psn = 0x654321,
	.dest_qp_num = 0xabcdef,
	.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_LOCAL_WRITE,
	.ah_attr = {.dgid.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 77, 0, 2},
		    .sgid_index = 1,
		    .traffic_class = 0x20,
		    .flow_label = 0x12345},
	.max_rd_atomic = 4,
	.max_dest_rd_atomic = 8,
	.min_rnr_timer = 12,
	.port_num = 1,
	.timeout = 14,
	.retry_cnt = 7,
	.rnr_retry = 6,
};

static int
move(uint32_t to, uint32_t mask)
{
	struct softhca_qp_attr attr = full;

	attr.qp_state = to;
	return softhca_modify_qp(q.qp, &attr, mask);
}

static void
to_rts(void)
{
	assert_int_equal(move(SOFTHCA_QPS_INIT, INIT_MASK), 0);
	assert_int_equal(move(SOFTHCA_QPS_RTR, RTR_MASK), 0);
	assert_int_equal(move(SOFTHCA_QPS_RTS, RTS_MASK), 0);
}

static void
test_connect(void **state)
{
	const struct hca_qpc *m = &fake->mailbox;

	assert_int_equal(move(SOFTHCA_QPS_INIT, INIT_MASK), 0);
	assert_int_equal(fake->opcode, HCA_CMD_RST2INIT_QPEE);
	assert_int_equal(hca_be32_to_cpu(m->opt_param_mask), INIT_MASK);
	assert_int_equal(hca_be32_to_cpu(m->access_flags), SOFTHCA_ACCESS_REMOTE_WRITE);
	assert_int_equal(hca_be32_to_cpu(m->path.port_pkey), 1u << 24);

	assert_int_equal(move(SOFTHCA_QPS_RTR, RTR_MASK), 0);
	assert_int_equal(fake->opcode, HCA_CMD_INIT2RTR_QPEE);
	assert_int_equal(HCA_QPC_MTU(hca_be32_to_cpu(m->sizes)), SOFTHCA_MTU_4096);
	assert_int_equal(hca_be32_to_cpu(m->remote_qpn), 0xabcdef);
	assert_int_equal(hca_be32_to_cpu(m->rnr_nextrecvpsn), 12u << 24 | 0x123456);
	assert_int_equal(HCA_QPC_GID_INDEX(hca_be32_to_cpu(m->path.ackto)), 1);
	assert_int_equal(HCA_QPC_HOP_LIMIT(hca_be32_to_cpu(m->path.ackto)), 64);
	assert_int_equal(HCA_QPC_TCLASS(hca_be32_to_cpu(m->path.sl_tclass_flow)), 0x20);
	assert_memory_equal(m->path.rgid, full.ah_attr.dgid.raw, 16);

	assert_int_equal(move(SOFTHCA_QPS_RTS, RTS_MASK), 0);
	assert_int_equal(fake->opcode, HCA_CMD_RTR2RTS_QPEE);
	assert_int_equal(hca_be32_to_cpu(m->next_send_psn), 0x654321);
	assert_int_equal(HCA_QPC_ACKTO(hca_be32_to_cpu(m->path.ackto)), 14);
	assert_int_equal(HCA_QPC_RNR_RETRY(hca_be32_to_cpu(m->path.rnr_retry)), 6);
	assert_int_equal(hca_be32_to_cpu(m->rd_atomic), 4u << 24 | 7u << 8);
	assert_int_equal(q.qp->state, SOFTHCA_QPS_RTS);
}

static void
test_refusals_name_the_attribute(void **state)
{
	assert_int_equal(move(SOFTHCA_QPS_INIT, INIT_MASK & ~SOFTHCA_QP_PORT), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "needs PORT"));
	assert_int_equal(move(SOFTHCA_QPS_INIT, INIT_MASK | SOFTHCA_QP_QKEY), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "does not take QKEY"));
	assert_int_equal(move(SOFTHCA_QPS_RTS, RTS_MASK), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "RESET to RTS"));
	assert_int_equal(move(SOFTHCA_QPS_ERR, SOFTHCA_QP_STATE), -EINVAL);
	assert_int_equal(move(SOFTHCA_QPS_INIT, INIT_MASK), 0);
	assert_int_equal(move(SOFTHCA_QPS_RTR, RTR_MASK & ~SOFTHCA_QP_MAX_DEST_RD_ATOMIC), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "MAX_DEST_RD_ATOMIC"));
	assert_int_equal(q.qp->state, SOFTHCA_QPS_INIT);
	assert_int_equal(move(7, SOFTHCA_QP_STATE), -EINVAL);
	assert_int_equal(move(SOFTHCA_QPS_INIT, INIT_MASK | 1u << 30), -EINVAL);
}

static void
test_refused_values(void **state)
{
	struct softhca_qp_attr attr = full;

	attr.qp_state = SOFTHCA_QPS_INIT;
	attr.port_num = 2;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, INIT_MASK), -EINVAL);
	attr.port_num = 0;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, INIT_MASK), -EINVAL);
	assert_int_equal(move(SOFTHCA_QPS_INIT, INIT_MASK), 0);
	attr = full;
	attr.qp_state = SOFTHCA_QPS_RTR;
	attr.path_mtu = 0;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, RTR_MASK), -EINVAL);
	attr.path_mtu = 6;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, RTR_MASK), -EINVAL);
	attr.path_mtu = 3;
	attr.dest_qp_num = 0xffffff;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, RTR_MASK), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "dest_qp_num"));
	attr.dest_qp_num = 5;
	attr.max_dest_rd_atomic = 17;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, RTR_MASK), -EINVAL);
	attr.max_dest_rd_atomic = 1;
	attr.ah_attr.static_rate = 1;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, RTR_MASK), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "static rate 1"));
	attr.ah_attr.static_rate = 0;
	attr.congestion = HCA_CONGESTION_MAX + 1;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, RTR_MASK | SOFTHCA_QP_CONGESTION), -EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "congestion"));
	attr.congestion = SOFTHCA_CONGESTION_DCQCN;
	((struct lib_context *)ctx)->features &= ~(uint32_t)HCA_CTL_FEATURE_CONGESTION;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, RTR_MASK | SOFTHCA_QP_CONGESTION),
			 -EOPNOTSUPP);
	assert_non_null(strstr(softhca_last_error(ctx), "upgrade the daemon"));
	((struct lib_context *)ctx)->features |= HCA_CTL_FEATURE_CONGESTION;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, RTR_MASK | SOFTHCA_QP_CONGESTION), 0);
	assert_int_equal(hca_be32_to_cpu(fake->mailbox.congestion), SOFTHCA_CONGESTION_DCQCN);
}

/* Bits beyond the width of a field of the path or of a PSN are cut off. */
static void
test_cut_values(void **state)
{
	const struct hca_qpc *m = &fake->mailbox;
	struct softhca_qp_attr attr = full;
	uint32_t word;

	assert_int_equal(move(SOFTHCA_QPS_INIT, INIT_MASK), 0);
	attr.qp_state = SOFTHCA_QPS_RTR;
	attr.ah_attr.flow_label = 0xffffffff;
	attr.ah_attr.sl = 0x0d;
	attr.rq_psn = 0xff123456;
	assert_int_equal(softhca_modify_qp(q.qp, &attr, RTR_MASK), 0);
	word = hca_be32_to_cpu(m->path.sl_tclass_flow);
	assert_int_equal(HCA_QPC_FLOW_LABEL(word), 0xfffff);
	assert_int_equal(HCA_QPC_TCLASS(word), 0x20);
	assert_int_equal(HCA_QPC_SL(word), 5);
	assert_int_equal(hca_be32_to_cpu(m->rnr_nextrecvpsn), 12u << 24 | 0x123456);

	attr.qp_state = SOFTHCA_QPS_RTS;
	attr.sq_psn = 0xff654321;
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = 1;
	assert_int_equal(softhca_modify_qp(q.qp, &attr,
					   RTS_MASK | SOFTHCA_QP_ALT_PATH |
						   SOFTHCA_QP_PATH_MIG_STATE),
			 0);
	assert_int_equal(hca_be32_to_cpu(m->next_send_psn), 0x654321);
	assert_int_equal(hca_be32_to_cpu(m->alt_path.sl_tclass_flow), word);
}

/* Attributes that the mask does not name are not read: any bytes may stand there. */
static void
test_unnamed_members(void **state)
{
	static const uint32_t masks[] = {INIT_MASK, RTR_MASK, RTS_MASK};
	struct softhca_qp_attr attr;
	struct hca_qpc clean[3];

	for (uint32_t garbage = 0; garbage < 2; garbage++) {
		assert_int_equal(move(SOFTHCA_QPS_RESET, SOFTHCA_QP_STATE), 0);
		for (uint32_t i = 0; i < 3; i++) {
			memset(&attr, garbage != 0 ? 0xff : 0, sizeof(attr));
#define NAMED(bit, member) \
	if ((masks[i] & SOFTHCA_QP_##bit) != 0) \
		attr.member = full.member;
			NAMED(PORT, port_num)
			NAMED(PKEY_INDEX, pkey_index)
			NAMED(ACCESS_FLAGS, qp_access_flags)
			NAMED(AV, ah_attr)
			NAMED(PATH_MTU, path_mtu)
			NAMED(DEST_QPN, dest_qp_num)
			NAMED(RQ_PSN, rq_psn)
			NAMED(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic)
			NAMED(MIN_RNR_TIMER, min_rnr_timer)
			NAMED(TIMEOUT, timeout)
			NAMED(RETRY_CNT, retry_cnt)
			NAMED(RNR_RETRY, rnr_retry)
			NAMED(SQ_PSN, sq_psn)
			NAMED(MAX_QP_RD_ATOMIC, max_rd_atomic)
#undef NAMED
			attr.qp_state = SOFTHCA_QPS_INIT + i;
			assert_int_equal(softhca_modify_qp(q.qp, &attr, masks[i]), 0);
			if (garbage == 0)
				clean[i] = fake->mailbox;
			assert_memory_equal(&fake->mailbox, &clean[i], sizeof(clean[i]));
		}
	}
}

/* If the driver refuses, the state is unchanged and the reason is available. */
static void
test_device_refuses(void **state)
{
	fake->fail_modify = -EHOSTUNREACH;
	assert_int_equal(move(SOFTHCA_QPS_INIT, INIT_MASK), -EHOSTUNREACH);
	assert_string_equal(softhca_last_error(ctx), "the fake says no");
	assert_int_equal(q.qp->state, SOFTHCA_QPS_RESET);
}

/* Back to RESET: queues start from the beginning, and old completions do not appear. */
static void
test_reset_rewinds(void **state)
{
	struct lib_qp *qp = (struct lib_qp *)q.qp;
	struct hca_cqe cqe = {.my_qpn = q.qp->qp_num, .is_send = 1, .opcode = HCA_OP_SEND};
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
	struct softhca_recv_wr rr = {0};
	struct softhca_wc wc;

	to_rts();
	assert_int_equal(softhca_post_send(q.qp, &wr, NULL), 0);
	assert_int_equal(softhca_post_recv(q.qp, &rr, NULL), 0);
	qp->rq_record->notify = 1;
	fake_complete(q.cq, 0, &cqe);
	assert_int_equal(move(SOFTHCA_QPS_RESET, SOFTHCA_QP_STATE), 0);
	assert_int_equal(fake->opcode, HCA_CMD_ERR2RST_QPEE);
	assert_int_equal(qp->sq.head, 0);
	assert_int_equal(qp->rq.head, 0);
	assert_int_equal(qp->rq_record->producer, 0);
	assert_int_equal(qp->rq_record->notify, 0);
	assert_int_equal(softhca_poll_cq(q.cq, 1, &wc), 0);
}

/* A QP that the device moved to ERR can go to RESET, but not back to RTS. */
static void
test_state_is_refreshed(void **state)
{
	to_rts();
	fake->stored.flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(HCA_QPS_ERR, HCA_ST_RC, 0, 0));
	assert_int_equal(move(SOFTHCA_QPS_RTS, SOFTHCA_QP_STATE), -EINVAL);
	assert_int_equal(q.qp->state, SOFTHCA_QPS_ERR);
	assert_int_equal(move(SOFTHCA_QPS_RESET, SOFTHCA_QP_STATE), 0);
}

static void
test_query(void **state)
{
	struct softhca_qp_init_attr init;
	struct softhca_qp_attr attr;

	to_rts();
	fake->stored = fake->mailbox;
	fake->stored.flags =
		hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(HCA_QPS_SQD, HCA_ST_RC, HCA_MIG_REARM, 1));
	assert_int_equal(softhca_query_qp(q.qp, &attr, 0, &init), 0);
	assert_int_equal(attr.qp_state, SOFTHCA_QPS_SQD);
	assert_int_equal(attr.sq_draining, 1);
	assert_int_equal(attr.path_mig_state, SOFTHCA_MIG_REARM);
	assert_int_equal(attr.sq_psn, 0x654321);
	assert_int_equal(attr.timeout, 14);
	assert_int_equal(attr.retry_cnt, 7);
	assert_int_equal(attr.rnr_retry, 6);
	assert_int_equal(attr.max_rd_atomic, 4);
	assert_int_equal(attr.cap.max_send_wr, 4);
	assert_ptr_equal(init.send_cq, q.cq);
}

static void
test_create_limits(void **state)
{
	struct softhca_cq_init_attr cq_attr = {.cqe = 0};
	struct softhca_qp_init_attr attr = {
		.qp_type = SOFTHCA_QPT_RC,
		.send_cq = q.cq,
		.recv_cq = q.cq,
	};

	assert_null(softhca_create_cq(ctx, &cq_attr));
	cq_attr.cqe = (1u << 17) + 1;
	assert_null(softhca_create_cq(ctx, &cq_attr));
	cq_attr = (struct softhca_cq_init_attr){.cqe = 1, .flags = SOFTHCA_IGNORE_OVERRUN << 1};
	errno = 0;
	assert_null(softhca_create_cq(ctx, &cq_attr));
	assert_int_equal(errno, EINVAL);
	attr.flags = SOFTHCA_SINGLE_THREADED << 1 | SOFTHCA_SINGLE_THREADED;
	errno = 0;
	assert_null(softhca_create_qp(q.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.flags = 0;
	attr.cap.max_send_wr = (1u << 15) + 1;
	assert_null(softhca_create_qp(q.pd, &attr));
	attr.cap.max_send_wr = 1;
	attr.cap.max_send_sge = 17;
	assert_null(softhca_create_qp(q.pd, &attr));
	attr.cap.max_send_sge = 1;
	attr.cap.max_inline_data = 401;
	assert_null(softhca_create_qp(q.pd, &attr));
	attr.cap.max_inline_data = 0;
	attr.qp_type = 77;
	assert_null(softhca_create_qp(q.pd, &attr));
	attr.qp_type = SOFTHCA_QPT_RC;
	attr.recv_cq = NULL;
	assert_null(softhca_create_qp(q.pd, &attr));
}

/*
 * The driver has freed a number and another thread gets it before the first QP is completely
 * destroyed.
 */
static struct {
	const struct softhca_ctl_ops *ops; /* of the fake */
	pthread_t thread;
	struct softhca_qp *qp;
	int err;
} heir;

static void *
inherit(void *arg)
{
	struct softhca_qp_init_attr attr = {
		.qp_type = SOFTHCA_QPT_RC,
		.cap = {1, 1, 1, 1, 0},
		.send_cq = q.cq,
		.recv_cq = q.cq,
	};

	heir.qp = softhca_create_qp(q.pd, &attr);
	heir.err = errno;
	return NULL;
}

static int
destroy_slowly(void *arg, enum hca_ctl_op op, const void *request, void *answer,
	       struct hca_ctl_extra *extra)
{
	int err = heir.ops->call(arg, op, request, answer, extra);

	if (op != HCA_CTL_DESTROY_QP)
		return err;
	fake->next_qpn = *(const uint32_t *)request;
	assert_int_equal(pthread_create(&heir.thread, NULL, inherit, NULL), 0);
	usleep(50000); /* enough time for the race to show */
	return err;
}

static void
test_number_of_the_dead(void **state)
{
	struct softhca_ctl_ops ops = *lib_ctx(ctx)->ops;
	uint32_t qpn = q.qp->qp_num;

	heir.ops = lib_ctx(ctx)->ops;
	ops.call = destroy_slowly;
	lib_ctx(ctx)->ops = &ops;
	assert_int_equal(softhca_destroy_qp(q.qp), 0);
	assert_int_equal(pthread_join(heir.thread, NULL), 0);
	lib_ctx(ctx)->ops = heir.ops;
	if (heir.qp == NULL)
		fail_msg("the heir was refused: %s", strerror(heir.err));
	assert_int_equal(heir.qp->qp_num, qpn);
	q.qp = heir.qp;
}

static void
test_regions(void **state)
{
	static char page[4096] __attribute__((aligned(4096)));
	void *pages[3] = {page, page, page};
	struct softhca_mr *mr = softhca_reg_mr(q.pd, page, 100, SOFTHCA_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_equal(mr->lkey, 0xabcd01);
	assert_int_equal(fake->mr.npages, 0);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	mr = softhca_reg_mr_pages(q.pd, 0x10000, 3 * 4096, 4096, pages, 3, 0);
	assert_non_null(mr);
	assert_int_equal(fake->mr.npages, 3);
	assert_int_equal(fake->mr_pages[2], (uintptr_t)page);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	mr = softhca_reg_mr(q.pd, NULL, 0, 0);
	assert_non_null(mr);
	assert_int_equal(mr->length, 0);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_null(softhca_reg_mr_pages(q.pd, 0x10000, 0, 4096, pages, 1, 0));
	assert_null(softhca_alloc_null_mr(q.pd)); /* the fake driver refuses it */
	assert_int_equal(softhca_advise_mr(q.pd, 0, 0, NULL, 0), -EOPNOTSUPP);
	assert_null(softhca_reg_mr(q.pd, page, 8, SOFTHCA_ACCESS_REMOTE_WRITE));
	assert_null(softhca_reg_mr(q.pd, page, 8, 1u << 8));
	assert_null(softhca_reg_mr(q.pd, page, 8, 1u << 19));
	assert_null(softhca_reg_mr(q.pd, page, 8, 1u << 31));
	assert_null(softhca_reg_mr(q.pd, page, 8, SOFTHCA_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EOPNOTSUPP);
	mr = softhca_reg_mr(q.pd, page, 8,
			    SOFTHCA_ACCESS_ZERO_BASED | SOFTHCA_ACCESS_HUGETLB |
				    SOFTHCA_ACCESS_OPTIONAL_RANGE);
	assert_non_null(mr);
	assert_int_equal(mr->addr, 0);
	assert_int_equal(fake->mr.va, (uintptr_t)page);
	assert_int_equal(fake->mr.access, SOFTHCA_ACCESS_ZERO_BASED);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	mr = softhca_reg_mr_iova(q.pd, page + 9, 8, 0x7000009, SOFTHCA_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(mr->addr, 0x7000009);
	assert_int_equal(fake->mr.va, (uintptr_t)page + 9);
	assert_int_equal(fake->mr.va + fake->mr.shift, 0x7000009);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_null(softhca_reg_mr_iova(q.pd, page + 9, 8, 0x7000008, 0));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(softhca_last_error(ctx), "offsets in a page"));
	assert_null(softhca_reg_mr_iova(q.pd, page, 4097, UINT64_MAX - 4095, 0));
	assert_null(softhca_reg_mr_pages(q.pd, UINT64_MAX - 10, 100, 4096, pages, 1, 0));
}

/*
 * Attributes for which the device would refuse each datagram are refused at creation; a PD cannot
 * be freed before its handles.
 */
static void
test_address_handles(void **state)
{
	static const uint8_t unknown[] = {1, 23, 63, 255};
	struct softhca_ah_attr attr = {.port_num = 1};
	struct softhca_pd *pd = softhca_alloc_pd(ctx);
	struct softhca_ah *ah;

	for (unsigned int i = 0; i < sizeof(unknown); i++) {
		attr.static_rate = unknown[i];
		assert_null(softhca_create_ah(pd, &attr));
		assert_int_equal(errno, EINVAL);
		assert_non_null(strstr(softhca_last_error(ctx), "static rate"));
	}
	attr.static_rate = SOFTHCA_RATE_600_GBPS;
	ah = softhca_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_int_equal(softhca_dealloc_pd(pd), -EBUSY);
	assert_int_equal(softhca_destroy_ah(ah), 0);
	/* bits beyond a field are cut off */
	attr.flow_label = 0xffffffff;
	attr.sl = 0xfd;
	attr.hop_limit = 0xff;
	attr.traffic_class = 0xff;
	ah = softhca_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_int_equal(hca_le32_to_cpu(((const struct lib_ah *)ah)->unit.flow),
			 HCA_UD_MAKE_FLOW(1, 5, SOFTHCA_RATE_600_GBPS, 0xfffff));
	assert_int_equal(softhca_destroy_ah(ah), 0);
	assert_int_equal(softhca_dealloc_pd(pd), 0);
}

static uint32_t
dmac_of(const struct softhca_ah *ah)
{
	const struct hca_ud_unit *u = &((const struct lib_ah *)ah)->unit;
	uint64_t mac = HCA_UD_DMAC(hca_le32_to_cpu(u->mac_lo), hca_le32_to_cpu(u->dmac_hi));

	return (uint32_t)mac;
}

/* New handles get the neighbour's new address; existing ones are not changed. */
static void
test_moved_neighbour(void **state)
{
	static const uint8_t macs[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
	const struct softhca_ah_attr attr = {.port_num = 1};
	struct softhca_pd *pd = softhca_alloc_pd(ctx);
	struct softhca_ah *ah[2];

	for (unsigned int i = 0; i < 2; i++) {
		memcpy(fake->dmac, macs[i], sizeof(fake->dmac));
		ah[i] = softhca_create_ah(pd, &attr);
		assert_non_null(ah[i]);
	}
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(dmac_of(ah[i]), i + 1);
		assert_int_equal(softhca_destroy_ah(ah[i]), 0);
	}
	assert_int_equal(softhca_dealloc_pd(pd), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connect, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_refusals_name_the_attribute, rig_setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_refused_values, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_cut_values, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_unnamed_members, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_device_refuses, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_reset_rewinds, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_state_is_refreshed, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_query, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_create_limits, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_number_of_the_dead, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_regions, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_address_handles, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_moved_neighbour, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
