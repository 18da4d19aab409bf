/* SPDX-License-Identifier: BSD-3-Clause */

/* Calls no other test makes: address handles from completions, SRQ attributes, devices, names. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <softhca/embed.h>
#include <softhca/softhca.h>

#include "../../test_path.h"

#define BYTES 64u
#define QKEY 0x1234u
#define TURNS 100000u /* of the engine: a datagram needs a few */

static struct softhca_embed *embed;
static struct side {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	struct softhca_mr *mr;
	struct softhca_qp *qp;
	uint8_t mem[SOFTHCA_GRH_BYTES + BYTES];
} sides[2];

/* A UD QP in RTS */
static void
open_side(unsigned int i)
{
	struct side *s = &sides[i];
	struct softhca_cq_init_attr cq = {
		.cqe = 16,
		.wc_flags = SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct softhca_qp_init_attr init = {
		.qp_type = SOFTHCA_QPT_UD,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct softhca_qp_attr a = {.port_num = 1, .qkey = QKEY};
	static const uint32_t masks[] = {
		SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_QKEY,
		SOFTHCA_QP_STATE,
		SOFTHCA_QP_STATE | SOFTHCA_QP_SQ_PSN,
	};

	assert_int_equal(softhca_embed_open(embed, i, &s->ctx), 0);
	s->pd = softhca_alloc_pd(s->ctx);
	s->cq = softhca_create_cq(s->ctx, &cq);
	s->mr = softhca_reg_mr(s->pd, s->mem, sizeof(s->mem), SOFTHCA_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = s->cq;
	s->qp = softhca_create_qp(s->pd, &init);
	assert_true(s->pd != NULL && s->cq != NULL && s->mr != NULL && s->qp != NULL);
	for (uint32_t k = 0; k < 3; k++) {
		a.qp_state = SOFTHCA_QPS_INIT + k;
		assert_int_equal(softhca_modify_qp(s->qp, &a, masks[k]), 0);
	}
}

static int
setup(void **state)
{
	struct softhca_embed_config cfg;

	softhca_embed_config_init(&cfg);
	cfg.hugepages = 2;
	cfg.executor = SOFTHCA_EXECUTOR_MANUAL;
	cfg.mbufs = 512;
	cfg.log_qps = cfg.log_cqs = 8;
	cfg.log_mpts = 10;
	cfg.log_mtts = 12;
	cfg.seed = 1;
	assert_int_equal(softhca_embed_create(&cfg, &embed), 0);
	open_side(0);
	open_side(1);
	return 0;
}

static int
teardown(void **state)
{
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(softhca_destroy_qp(sides[i].qp), 0);
		assert_int_equal(softhca_dereg_mr(sides[i].mr), 0);
		assert_int_equal(softhca_destroy_cq(sides[i].cq), 0);
		assert_int_equal(softhca_dealloc_pd(sides[i].pd), 0);
	}
	return softhca_embed_destroy(embed);
}

static void
take(struct side *s, struct softhca_wc *wc)
{
	unsigned int turns = 0;

	while (softhca_poll_cq(s->cq, 1, wc) == 0)
		assert_true(turns++ < TURNS);
	assert_int_equal(wc->status, SOFTHCA_WC_SUCCESS);
}

/* One datagram; returns the completion of its receive. */
static struct softhca_wc
transfer(struct side *from, struct side *to, struct softhca_ah *ah)
{
	struct softhca_sge in = {(uintptr_t)to->mem, sizeof(to->mem), to->mr->lkey};
	struct softhca_sge out = {(uintptr_t)from->mem, BYTES, from->mr->lkey};
	struct softhca_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *bad_recv;
	struct softhca_send_wr send =
				       {
					       .sg_list = &out,
					       .num_sge = 1,
					       .opcode = SOFTHCA_WR_SEND,
					       .send_flags = SOFTHCA_SEND_SIGNALED,
					       .wr.ud = {.ah = ah,
							 .remote_qpn = to->qp->qp_num,
							 .remote_qkey = QKEY},
				       },
			       *bad_send;
	struct softhca_wc sent, received;

	assert_int_equal(softhca_post_recv(to->qp, &recv, &bad_recv), 0);
	assert_int_equal(softhca_post_send(from->qp, &send, &bad_send), 0);
	take(to, &received);
	take(from, &sent);
	assert_int_equal(received.byte_len, SOFTHCA_GRH_BYTES + BYTES);
	assert_int_equal(received.src_qp, from->qp->qp_num);
	assert_true((received.wc_flags & SOFTHCA_WC_GRH) != 0);
	assert_int_equal(softhca_destroy_ah(ah), 0);
	return received;
}

/* The datagram, and one back to where it came from: gid 0 is IPv4, 1 is IPv6. */
static void
reply(uint8_t gid)
{
	struct softhca_ah_attr to = {.port_num = 1,
				     .is_global = 1,
				     .sgid_index = gid,
				     .traffic_class = 0x28,
				     .flow_label = gid == 1 ? 0x12345 : 0};
	struct softhca_ah_attr back;
	struct softhca_wc wc;
	struct softhca_ah *ah;

	assert_int_equal(softhca_query_gid(sides[1].ctx, 1, gid, &to.dgid), 0);
	wc = transfer(&sides[0], &sides[1], softhca_create_ah(sides[0].pd, &to));
	assert_int_equal(softhca_init_ah_from_wc(sides[1].ctx, 1, &wc, sides[1].mem, &back), 0);
	assert_int_equal(back.sgid_index, gid);
	assert_int_equal(back.port_num, 1);
	assert_int_equal(back.traffic_class, to.traffic_class);
	assert_int_equal(back.flow_label, to.flow_label);
	assert_int_equal(softhca_query_gid(sides[0].ctx, 1, gid, &to.dgid), 0);
	assert_memory_equal(back.dgid.raw, to.dgid.raw, sizeof(to.dgid.raw));
	ah = softhca_create_ah_from_wc(sides[1].pd, &wc, sides[1].mem, 1);
	assert_non_null(ah);
	assert_int_equal(ah->pd == sides[1].pd, 1);
	transfer(&sides[1], &sides[0], ah);
}

static void
test_reply(void **state)
{
	reply(0);
	reply(1);
}

/* A run ends with the HCA of the polling context: one poll finds the other side's datagram. */
static void
test_one_poll(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct side *from = &sides[i], *to = &sides[1 - i];
		struct softhca_ah_attr at = {.port_num = 1, .is_global = 1};
		struct softhca_sge in = {(uintptr_t)to->mem, sizeof(to->mem), to->mr->lkey};
		struct softhca_sge out = {(uintptr_t)from->mem, BYTES, from->mr->lkey};
		struct softhca_recv_wr recv = {.sg_list = &in, .num_sge = 1};
		struct softhca_send_wr send = {
			.sg_list = &out,
			.num_sge = 1,
			.opcode = SOFTHCA_WR_SEND,
			.send_flags = SOFTHCA_SEND_SIGNALED,
			.wr.ud = {.remote_qpn = to->qp->qp_num, .remote_qkey = QKEY},
		};
		struct softhca_wc wc;

		assert_int_equal(softhca_query_gid(to->ctx, 1, 0, &at.dgid), 0);
		send.wr.ud.ah = softhca_create_ah(from->pd, &at);
		assert_non_null(send.wr.ud.ah);
		assert_int_equal(softhca_post_recv(to->qp, &recv, NULL), 0);
		assert_int_equal(softhca_post_send(from->qp, &send, NULL), 0);
		assert_int_equal(softhca_poll_cq(to->cq, 1, &wc), 1);
		assert_int_equal(wc.byte_len, SOFTHCA_GRH_BYTES + BYTES);
		take(from, &wc);
		assert_int_equal(softhca_destroy_ah(send.wr.ud.ah), 0);
	}
}

static uint64_t
raw_clock(struct softhca_context *ctx)
{
	struct softhca_values values = {.comp_mask = SOFTHCA_VALUES_MASK_RAW_CLOCK};

	assert_int_equal(softhca_query_rt_values(ctx, &values), 0);
	return values.raw_clock;
}

static uint64_t
wall_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Both times of a completion lie between readings of the clocks before and after it. */
static void
test_times(void **state)
{
	struct softhca_send_wr send = {.opcode = SOFTHCA_WR_SEND,
				       .send_flags = SOFTHCA_SEND_SIGNALED,
				       .wr.ud = {.remote_qpn = 0x123456, .remote_qkey = QKEY}};
	struct softhca_ah_attr to = {.port_num = 1, .is_global = 1};
	struct side *s = &sides[0];
	unsigned int turns = 0;
	uint64_t raw, wall;
	int err;

	assert_int_equal(softhca_query_gid(sides[1].ctx, 1, 0, &to.dgid), 0);
	send.wr.ud.ah = softhca_create_ah(s->pd, &to);
	assert_non_null(send.wr.ud.ah);
	for (unsigned int i = 0; i < 40; i++) {
		raw = raw_clock(s->ctx);
		wall = wall_clock();
		assert_int_equal(softhca_post_send(s->qp, &send, NULL), 0);
		do
			err = softhca_start_poll(s->cq);
		while (err == -ENOENT && turns++ < TURNS);
		assert_int_equal(err, 0);
		assert_int_equal(s->cq->status, SOFTHCA_WC_SUCCESS);
		assert_in_range(softhca_wc_read_completion_ts(s->cq), raw, raw_clock(s->ctx));
		assert_in_range(softhca_wc_read_completion_wallclock_ns(s->cq), wall, wall_clock());
		softhca_end_poll(s->cq);
		if (i == 20)
			assert_int_equal(softhca_resize_cq(s->cq, 64), 0);
	}
	assert_int_equal(softhca_destroy_ah(send.wr.ud.ah), 0);
}

static void
refused(const struct softhca_wc *wc, const uint8_t *grh, uint8_t port, const char *why)
{
	errno = 0;
	assert_null(softhca_create_ah_from_wc(sides[1].pd, wc, grh, port));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(softhca_last_error(sides[1].ctx), why));
}

static void
test_reply_refused(void **state)
{
	struct softhca_ah_attr to = {.port_num = 1, .is_global = 1};
	uint8_t grh[SOFTHCA_GRH_BYTES];
	struct softhca_wc wc, plain;

	assert_int_equal(softhca_query_gid(sides[1].ctx, 1, 0, &to.dgid), 0);
	wc = transfer(&sides[0], &sides[1], softhca_create_ah(sides[0].pd, &to));
	plain = wc;
	plain.wc_flags &= ~(uint32_t)SOFTHCA_WC_GRH;
	refused(&plain, sides[1].mem, 1, "SOFTHCA_WC_GRH");
	refused(&wc, sides[1].mem, 2, "port_num 2: expected 1 to 1");
	memcpy(grh, sides[1].mem, sizeof(grh));
	grh[39] ^= 0x40; /* the IPv4 destination */
	refused(&wc, grh, 1, "not in the GID table");
	grh[20] = 0x70;
	refused(&wc, grh, 1, "IP version");
}

static void
test_srq(void **state)
{
	struct softhca_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 2}};
	struct softhca_srq_attr a = {.srq_limit = 5}, got;
	struct softhca_sge sge = {(uintptr_t)sides[0].mem, BYTES, sides[0].mr->lkey};
	struct softhca_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct softhca_srq *srq = softhca_create_srq(sides[0].pd, &init);

	assert_non_null(srq);
	/* With fewer receives than the limit it would be reported at once, and be 0 again. */
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(softhca_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(softhca_query_srq(srq, &got), 0);
	assert_true(got.max_wr >= 16 && got.max_sge >= 2);
	assert_int_equal(got.srq_limit, 0);
	assert_int_equal(softhca_modify_srq(srq, &a, 0), 0); /* nothing is named */
	assert_int_equal(softhca_query_srq(srq, &got), 0);
	assert_int_equal(got.srq_limit, 0);
	assert_int_equal(softhca_modify_srq(srq, &a, SOFTHCA_SRQ_LIMIT), 0);
	a.srq_limit = got.max_wr + 1;
	assert_int_equal(softhca_modify_srq(srq, &a, SOFTHCA_SRQ_LIMIT), -EINVAL);
	assert_int_equal(softhca_modify_srq(srq, &a, SOFTHCA_SRQ_MAX_WR), -EOPNOTSUPP);
	assert_int_equal(softhca_modify_srq(srq, &a, 1u << 7), -EINVAL);
	assert_int_equal(softhca_query_srq(srq, &got), 0);
	assert_int_equal(got.srq_limit, 5);
	assert_int_equal(softhca_destroy_srq(srq), 0);
}

static void
make_file(const char *folder, const char *name)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static void
test_devices(void **state)
{
	static const char *const files[] = {"beta.sock", "alpha.sock", "notes", ".sock"};
	char folder[TEST_PATH_MAX], path[128];
	struct softhca_device **list;
	int n = -1;

	assert_non_null(mkdtemp(test_path(folder, "calls")));
	assert_int_equal(setenv("SOFTHCA_DIRECTORY", folder, 1), 0);
	list = softhca_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 0);
	assert_null(list[0]);
	softhca_free_device_list(list);
	for (unsigned int i = 0; i < 4; i++)
		make_file(folder, files[i]);
	/* no daemon is behind these names (tests/ipc/test_list.c has some) */
	list = softhca_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 0);
	softhca_free_device_list(list);
	for (unsigned int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(folder), 0);
	/* a folder that does not exist has no devices */
	list = softhca_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 0);
	softhca_free_device_list(list);
	softhca_free_device_list(NULL);
	unsetenv("SOFTHCA_DIRECTORY");
}

/* Unless configured, the firmware is the release. */
static void
test_identity(void **state)
{
	struct softhca_device_attr attr;
	char release[32];

	assert_int_equal(softhca_query_release(sides[0].ctx, release, sizeof(release)), 0);
	assert_string_equal(release, PROJECT_VERSION);
	assert_int_equal(softhca_query_device(sides[0].ctx, &attr), 0);
	assert_string_equal(attr.fw_ver, PROJECT_VERSION);
	assert_int_equal(attr.vendor_id, 0x025348);
	assert_int_equal(attr.vendor_part_id, 1);
	assert_int_equal(attr.hw_ver, 1);
}

static void
test_names(void **state)
{
	static const uint32_t opcodes[] = {
		SOFTHCA_WC_SEND,      SOFTHCA_WC_RDMA_WRITE, SOFTHCA_WC_RDMA_READ,
		SOFTHCA_WC_COMP_SWAP, SOFTHCA_WC_FETCH_ADD,  SOFTHCA_WC_BIND_MW,
		SOFTHCA_WC_LOCAL_INV, SOFTHCA_WC_RECV,	     SOFTHCA_WC_RECV_RDMA_WITH_IMM,
	};

	assert_string_equal(softhca_wc_opcode_str(SOFTHCA_WC_RDMA_READ), "rdma read");
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		assert_string_not_equal(softhca_wc_opcode_str(opcodes[i]), "unknown");
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(softhca_wc_opcode_str(opcodes[i]),
						softhca_wc_opcode_str(opcodes[k]));
	}
	assert_string_equal(softhca_wc_opcode_str(SOFTHCA_WC_RECV - 1), "unknown");
	assert_string_equal(softhca_wc_opcode_str(1u << 20), "unknown");
	assert_string_equal(softhca_wc_opcode_str(UINT32_MAX), "unknown");
}

/* A link whose rules change while it runs still brings every datagram. */
static void
test_stall(void **state)
{
	const struct softhca_port_stall one = {.tx_burst_max = 1};

	assert_int_equal(softhca_embed_set_stall(embed, &one), 0);
	reply(0);
	assert_int_equal(softhca_embed_set_stall(embed, NULL), 0);
	reply(1);
}

/* Two contexts of one HCA share the XRC domain of a file, which is not that of another HCA. */
static void
test_xrc_file(void **state)
{
	FILE *file = tmpfile();
	struct softhca_xrcd_init_attr init = {.fd = fileno(file), .oflags = O_CREAT | O_EXCL};
	struct softhca_qp_init_attr_ex target = {.qp_type = SOFTHCA_QPT_XRC_RECV};
	struct softhca_qp_open_attr open = {.qp_type = SOFTHCA_QPT_XRC_RECV};
	struct softhca_xrcd *mine, *theirs, *elsewhere;
	struct softhca_context *ctx;
	struct softhca_qp *qp;

	assert_int_equal(softhca_embed_open(embed, 0, &ctx), 0);
	mine = softhca_open_xrcd(sides[0].ctx, &init);
	elsewhere = softhca_open_xrcd(sides[1].ctx, &init);
	assert_true(mine != NULL && elsewhere != NULL);
	assert_null(softhca_open_xrcd(ctx, &init));
	assert_int_equal(errno, EEXIST);
	init.oflags = 0;
	theirs = softhca_open_xrcd(ctx, &init);
	assert_non_null(theirs);
	init.fd = 12345;
	assert_null(softhca_open_xrcd(ctx, &init));
	assert_int_equal(errno, EBADF);
	target.xrcd = mine;
	qp = softhca_create_qp_ex(sides[0].ctx, &target);
	assert_non_null(qp);
	open.qp_num = qp->qp_num;
	open.xrcd = elsewhere;
	assert_null(softhca_open_qp(sides[1].ctx, &open));
	assert_int_equal(errno, EINVAL);
	open.xrcd = theirs;
	assert_null(softhca_open_qp(sides[0].ctx, &open)); /* a domain of another context */
	assert_int_equal(errno, EINVAL);
	assert_non_null(softhca_open_qp(ctx, &open));
	assert_int_equal(softhca_destroy_qp(qp), 0);
	assert_int_equal(softhca_close_xrcd(mine), 0);
	assert_int_equal(softhca_close_xrcd(elsewhere), 0);
	assert_int_equal(softhca_close_xrcd(theirs), -EBUSY); /* the QP is its context's now */
	assert_int_equal(softhca_close(ctx), 0);
	fclose(file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reply),	 cmocka_unit_test(test_reply_refused),
		cmocka_unit_test(test_times),	 cmocka_unit_test(test_srq),
		cmocka_unit_test(test_devices),	 cmocka_unit_test(test_names),
		cmocka_unit_test(test_stall),	 cmocka_unit_test(test_xrc_file),
		cmocka_unit_test(test_identity), cmocka_unit_test(test_one_poll),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
