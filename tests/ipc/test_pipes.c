/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A daemon with several pipelines: INFO, KICK, the pipelines of QPs, and clients without the
 * feature PIPES.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi_bar.h"
#include "ipc_rig.h"
#include "raw.h"

#define PIPES 4u
#define QPS 16u

static struct rig rig;

static int
start(void **state)
{
	setenv("IPCD_PIPES", "4", 1);
	rig_start(&rig, NULL);
	return 0;
}

static int
shut_down(void **state)
{
	rig_stop(&rig);
	return 0;
}

static uint32_t
pipes_of(struct raw *r)
{
	assert_int_equal(raw_call(r, HCA_CTL_INFO, NULL, 0, -1), 0);
	return r->info.num_pipes;
}

static int
kick(struct raw *r, uint32_t pipe)
{
	return raw_call(r, HCA_CTL_KICK, &pipe, sizeof(pipe), -1);
}

/* Each pipeline has a sleep word of its worker. */
static void
words(void **state)
{
	uint32_t offset[PIPES];
	struct raw r;

	raw_open_today(&r, rig.path[0]);
	offset[0] = r.welcome.sleep_offset;
	assert_int_equal(pipes_of(&r), PIPES);
	for (uint32_t i = 0; i < PIPES; i++) {
		assert_int_equal(kick(&r, i), 0);
		assert_true(i != 0 || r.number == offset[0]);
		offset[i] = r.number;
		assert_in_range(offset[i], 0, HCA_UAR_PAGE_SIZE - sizeof(uint32_t));
		for (uint32_t k = 0; k < i; k++)
			assert_int_not_equal(offset[k], offset[i]);
		close(r.fds[0]);
	}
	assert_int_equal(kick(&r, PIPES), -EINVAL);
	assert_non_null(strstr(r.head.reason, "pipeline 4: expected less than 4"));
	assert_int_equal(kick(&r, UINT32_MAX), -EINVAL);
	raw_close(&r);
}

/* KICK repeated: the same eventfd, and no descriptor of the daemon for each. */
static void
asked_again(void **state)
{
	int before = rig_open_files(rig.pid), first;
	uint64_t count = 1;
	struct raw r;

	raw_open_today(&r, rig.path[0]);
	assert_int_equal(kick(&r, 1), 0);
	first = r.fds[0];
	fcntl(first, F_SETFL, O_NONBLOCK);
	assert_int_equal(write(first, &count, sizeof(count)), sizeof(count));
	for (uint32_t i = 0; i < 200; i++) {
		assert_int_equal(kick(&r, 1), 0);
		close(r.fds[0]);
	}
	assert_int_equal(kick(&r, 1), 0);
	assert_int_equal(read(r.fds[0], &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 1);
	assert_in_range(rig_open_files(rig.pid), 0, before + 16);
	close(r.fds[0]);
	close(first);
	raw_close(&r);
	assert_true(rig_wait_empty(&rig, 0) >= 0);
	while (rig_open_files(rig.pid) > before)
		usleep(1000);
}

/* A client without the feature has pipeline 0 only. */
static void
without_the_feature(void **state)
{
	const struct hca_ctl_offer offer = {0, HCA_CTL_MINOR,
					    HCA_CTL_FEATURES & ~HCA_CTL_FEATURE_PIPES};
	struct raw r;

	raw_connect(&r, rig.path[0]);
	assert_int_equal(raw_greet_as(&r, HCA_CTL_VERSION, offer), 0);
	assert_int_equal(pipes_of(&r), 1);
	assert_int_equal(kick(&r, 0), 0);
	close(r.fds[0]);
	assert_int_equal(kick(&r, 1), -EINVAL);
	raw_close(&r);
	raw_open(&r, rig.path[0]); /* of minor version 0 */
	assert_int_equal(pipes_of(&r), 1);
	raw_close(&r);
}

/* The driver deals the QPs of a client to all pipelines, also after others were destroyed. */
static void
dealt(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	uint32_t qps[PIPES] = {0};
	struct peer p[QPS];

	for (uint32_t round = 0; round < 2; round++) {
		memset(qps, 0, sizeof(qps));
		for (uint32_t i = 0; i < QPS; i++) {
			assert_int_equal(peer_open(&p[i], rig.path[0], &cfg), 0);
			qps[p[i].me.qpn % PIPES]++;
		}
		for (uint32_t i = 0; i < PIPES; i++)
			assert_in_range(qps[i], QPS / PIPES - 1, QPS / PIPES + 1);
		for (uint32_t i = 0; i < QPS; i++)
			peer_close(&p[i]);
	}
}

static struct softhca_qp *
qp_in(struct peer *p, struct softhca_td *td)
{
	struct softhca_qp_init_attr_ex attr = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = SOFTHCA_QPT_RC,
		.comp_mask = SOFTHCA_QP_INIT_ATTR_PD,
		.pd = p->pd,
	};

	return softhca_create_qp_td(p->ctx, &attr, td);
}

/* QPs of a thread domain are in the pipeline of its first one; those of two in two. */
static void
thread_domains(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	uint32_t pipe[2] = {0};
	struct softhca_qp *qp[8];
	struct softhca_td *td[2];
	struct peer p;

	assert_int_equal(peer_open(&p, rig.path[0], &cfg), 0);
	for (uint32_t i = 0; i < 2; i++) {
		td[i] = softhca_alloc_td(p.ctx);
		assert_non_null(td[i]);
	}
	for (uint32_t i = 0; i < 8; i++) {
		qp[i] = qp_in(&p, td[i % 2]);
		assert_non_null(qp[i]);
		if (i < 2)
			pipe[i] = qp[i]->qp_num % PIPES;
		assert_int_equal(qp[i]->qp_num % PIPES, pipe[i % 2]);
	}
	assert_int_not_equal(pipe[0], pipe[1]);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(softhca_destroy_qp(qp[i]), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(softhca_dealloc_td(td[i]), 0);
	peer_close(&p);
}

/* A quarter of the QPNs of a pipeline is not for those that ask for it. */
static void
reserve(void **state)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC};
	const uint32_t part = 4096 / PIPES, n = part + 100; /* ipcd has 2^12 QPs */
	struct softhca_qp **qp = calloc(n, sizeof(struct softhca_qp *));
	struct softhca_td *td;
	uint32_t mine = 0;
	struct peer p;

	assert_non_null(qp);
	assert_int_equal(peer_open(&p, rig.path[0], &cfg), 0);
	td = softhca_alloc_td(p.ctx);
	for (uint32_t i = 0; i < n; i++) {
		qp[i] = qp_in(&p, td);
		assert_non_null(qp[i]);
		mine += qp[i]->qp_num % PIPES == qp[0]->qp_num % PIPES;
	}
	assert_in_range(mine, part / 4 * 3 - 2, part / 4 * 3);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(softhca_destroy_qp(qp[i]), 0);
	assert_int_equal(softhca_dealloc_td(td), 0);
	peer_close(&p);
	free(qp);
}

/* A pipeline that does not exist, and one of a client that has one only */
static void
no_such_pipeline(void **state)
{
	struct hca_ctl_qp qp = {.service = HCA_ST_XRC_TGT, .source = HCA_CTL_PIPE(PIPES)};
	struct raw r;

	raw_open_today(&r, rig.path[0]);
	assert_int_equal(raw_call(&r, HCA_CTL_CREATE_QP, &qp, sizeof(qp), -1), -EINVAL);
	assert_non_null(strstr(r.head.reason, "pipeline 4 of 4"));
	raw_close(&r);
	raw_open(&r, rig.path[0]);
	qp.source = HCA_CTL_PIPE(0);
	assert_int_equal(raw_call(&r, HCA_CTL_CREATE_QP, &qp, sizeof(qp), -1), -EINVAL);
	raw_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_teardown(f, rig_tidy)
		T(words),	   T(asked_again), T(without_the_feature), T(dealt),
		T(thread_domains), T(reserve),	   T(no_such_pipeline),
#undef T
	};

	return cmocka_run_group_tests(tests, start, shut_down);
}
