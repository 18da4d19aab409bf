/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Quotas: each client gets its quota of each kind of object and no more, independently of others,
 * and freed objects are available again.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_hw.h"

#define PAGE 4096u
#define PAGES 64u
#define MANY 64u

static struct fake_hw *fake;
static struct hca_driver *drv;
static struct hca_client *client;
static struct hca_client *others[2];
static uint8_t *memory;

static void
start(const struct hca_quota *quota)
{
	struct hca_driver_config config = {.timeout_ms = 50, .quota = *quota};

	if (quota->user_share != 0) {
		config.log_num_qps = config.log_num_cqs = config.log_num_srqs = 7;
		config.log_num_mpts = 9;
		config.log_num_mtts = 9;
		config.device_bytes = 128 << 10;
	}

	fake = fake_hw_create();
	memory = aligned_alloc(PAGE, PAGES * PAGE);
	assert_int_equal(hca_driver_create(&fake->hw, &config, &drv), 0);
	assert_int_equal(hca_client_open(drv, NULL, &client), 0);
	assert_int_equal(hca_client_attach(client, (uintptr_t)memory, PAGES * PAGE), 0);
}

static int
shut_down(void **state)
{
	hca_driver_destroy(drv);
	assert_int_equal(fake->windows, 0);
	free(memory);
	fake_hw_destroy(fake);
	return 0;
}

/* Create objects until one is refused, then destroy all; returns their number. */
struct thing {
	int (*make)(struct hca_client *c, uint32_t *handle);
	enum hca_ctl_op op; /* gives one back; or, where that is not all: */
	int (*drop)(struct hca_client *c, uint32_t handle);
};

/* Nothing gives it back but the end of the client. */
static bool
stays(const struct thing *t)
{
	return t->drop == NULL && t->op == HCA_CTL_HELLO;
}

static int
drop_one(struct hca_client *c, const struct thing *t, uint32_t handle)
{
	return t->drop != NULL ? t->drop(c, handle) : call_drop(c, t->op, handle);
}

static void
expect(struct hca_client *c, const struct thing *t, unsigned int quota)
{
	uint32_t handle[MANY];

	for (unsigned int round = 0; round < 2; round++) {
		unsigned int n = 0;
		int rc;

		while ((rc = t->make(c, &handle[n])) == 0)
			assert_true(++n < MANY);
		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(n, quota);
		if (stays(t))
			return;
		/* destroy one, create one */
		assert_int_equal(drop_one(c, t, handle[0]), 0);
		assert_int_equal(t->make(c, &handle[0]), 0);
		assert_int_equal(t->make(c, &handle[n]), -ENOMEM);
		while (n > 0)
			assert_int_equal(drop_one(c, t, handle[--n]), 0);
	}
}

/* Each client has a quota of its own. */
static void
expect_each(const struct thing *t, unsigned int quota)
{
	struct hca_client *other;
	uint32_t handle;

	for (unsigned int i = 0; i < quota && !stays(t); i++)
		assert_int_equal(t->make(client, &handle), 0);
	assert_int_equal(t->make(client, &handle), -ENOMEM);
	assert_int_equal(hca_client_open(drv, NULL, &other), 0);
	assert_int_equal(hca_client_attach(other, (uintptr_t)memory, PAGES * PAGE), 0);
	expect(other, t, quota);
	hca_client_close(other);
}

static int
make_pd(struct hca_client *c, uint32_t *number)
{
	return hca_client_call(c, HCA_CTL_ALLOC_PD, NULL, number, NULL);
}

static const struct thing pds = {make_pd, HCA_CTL_DEALLOC_PD};

static int
make_cq(struct hca_client *c, uint32_t *cqn)
{
	const struct hca_ctl_cq cq = {.addr = (uintptr_t)memory,
				      .log_size = 4,
				      .channel = HCA_CTL_NO_CHANNEL};

	return hca_client_call(c, HCA_CTL_CREATE_CQ, &cq, cqn, NULL);
}

static const struct thing cqs = {make_cq, HCA_CTL_DESTROY_CQ};

/* PD and CQ that the test created for its client. */
static uint32_t pdn[4], cqn[4];

static unsigned int
index_of(const struct hca_client *c)
{
	return c == client ? 0 : c == others[0] ? 2 : c == others[1] ? 3 : 1;
}

static int
make_qp(struct hca_client *c, uint32_t *qpn)
{
	unsigned int i = index_of(c);
	struct hca_ctl_qp qp = {
		.sq_addr = (uintptr_t)memory + PAGE,
		.rq_addr = (uintptr_t)memory + 2 * PAGE,
		.log_sq = 4,
		.log_sq_stride = 6,
		.log_rq = 3,
		.log_rq_stride = 7,
	};

	if (pdn[i] == 0 && (hca_client_call(c, HCA_CTL_ALLOC_PD, NULL, &pdn[i], NULL) != 0 ||
			    make_cq(c, &cqn[i]) != 0))
		return -EIO;
	qp.pdn = pdn[i];
	qp.send_cqn = qp.recv_cqn = cqn[i];
	return hca_client_call(c, HCA_CTL_CREATE_QP, &qp, qpn, NULL);
}

static const struct thing qps = {make_qp, HCA_CTL_DESTROY_QP};

static int
make_mr(struct hca_client *c, uint64_t pages, uint32_t *lkey)
{
	unsigned int i = index_of(c);
	struct hca_ctl_mr mr = {.va = (uintptr_t)memory, .length = pages * PAGE};
	struct hca_ctl_keys keys;
	int rc;

	if (pdn[i] == 0 && hca_client_call(c, HCA_CTL_ALLOC_PD, NULL, &pdn[i], NULL) != 0)
		return -EIO;
	mr.pdn = pdn[i];
	rc = hca_client_call(c, HCA_CTL_REG_MR, &mr, &keys, NULL);
	*lkey = keys.lkey;
	return rc;
}

static int
make_small_mr(struct hca_client *c, uint32_t *lkey)
{
	return make_mr(c, 1, lkey);
}

static int
make_large_mr(struct hca_client *c, uint32_t *lkey)
{
	return make_mr(c, 4, lkey);
}

static const struct thing mrs = {make_small_mr, HCA_CTL_DEREG_MR};
static const struct thing large_mrs = {make_large_mr, HCA_CTL_DEREG_MR};

static int read_end[2 * MANY];

static int
make_channel(struct hca_client *c, uint32_t *channel)
{
	int fd, rc = call_create_channel(c, channel, &fd);

	if (rc == 0)
		read_end[(c != client ? MANY : 0) + *channel] = fd;
	return rc;
}

static int
drop_channel(struct hca_client *c, uint32_t channel)
{
	close(read_end[(c != client ? MANY : 0) + channel]);
	return call_drop(c, HCA_CTL_DESTROY_CHANNEL, channel);
}

static const struct thing channels = {make_channel, .drop = drop_channel};

/* A segment in addition to the one that start() attached. */
static int
make_segment(struct hca_client *c, uint32_t *at)
{
	static uint32_t next;

	*at = 1 + next++ % 1000;
	return hca_client_attach(c, (uint64_t)*at << 32, PAGE);
}

/* They stay until the client is closed. */
static const struct thing segments = {.make = make_segment};

static void
each_has_its_quota(void **state)
{
	static const struct {
		struct hca_quota quota;
		const struct thing *thing;
		unsigned int count;
	} cases[] = {
		{{.pds = 3}, &pds, 3},		 {{.cqs = 5}, &cqs, 5},
		{{.qps = 4}, &qps, 4},		 {{.mrs = 6}, &mrs, 6},
		{{.mtts = 13}, &large_mrs, 3},	 {{.channels = 2}, &channels, 2},
		{{.segments = 4}, &segments, 3},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pdn[0] = pdn[1] = cqn[0] = cqn[1] = 0;
		start(&cases[i].quota);
		expect(client, cases[i].thing, cases[i].count);
		expect_each(cases[i].thing, cases[i].count);
		for (uint32_t k = 1; cases[i].thing == &channels && k <= 2; k++)
			close(read_end[k]);
		shut_down(NULL);
	}
}

/* ---- shares ---- */

static int
make_srq(struct hca_client *c, uint32_t *srqn)
{
	unsigned int i = index_of(c);
	struct hca_ctl_srq srq = {.addr = (uintptr_t)memory,
				  .log_size = 4,
				  .log_stride = 6,
				  .max_sge = 1};

	if (pdn[i] == 0 && hca_client_call(c, HCA_CTL_ALLOC_PD, NULL, &pdn[i], NULL) != 0)
		return -EIO;
	srq.pdn = pdn[i];
	return hca_client_call(c, HCA_CTL_CREATE_SRQ, &srq, srqn, NULL);
}

static int
make_mw(struct hca_client *c, uint32_t *rkey)
{
	unsigned int i = index_of(c);

	if (pdn[i] == 0 && hca_client_call(c, HCA_CTL_ALLOC_PD, NULL, &pdn[i], NULL) != 0)
		return -EIO;
	return hca_client_call(c, HCA_CTL_ALLOC_MW, &(struct hca_ctl_mw){pdn[i], HCA_CTL_MW_TYPE_1},
			       rkey, NULL);
}

/* A QP for each group, because a QP may join any number. */
static int
join(struct hca_client *c, uint32_t *group)
{
	static uint32_t ud[4], next;
	unsigned int i = index_of(c);
	struct hca_qpc qpc = {
		.opt_param_mask = hca_cpu_to_be32(HCA_QP_ATTR_PORT),
	};
	struct hca_ctl_qp qp = {
		.sq_addr = (uintptr_t)memory + PAGE,
		.rq_addr = (uintptr_t)memory + 2 * PAGE,
		.service = HCA_ST_UD,
		.log_sq = 4,
		.log_sq_stride = 6,
		.log_rq = 3,
		.log_rq_stride = 7,
	};
	uint8_t mgid[16] = {0xff};

	if (pdn[i] == 0) {
		assert_int_equal(hca_client_call(c, HCA_CTL_ALLOC_PD, NULL, &pdn[i], NULL), 0);
		assert_int_equal(make_cq(c, &cqn[i]), 0);
		qp.pdn = pdn[i];
		qp.send_cqn = qp.recv_cqn = cqn[i];
		assert_int_equal(hca_client_call(c, HCA_CTL_CREATE_QP, &qp, &ud[i], NULL), 0);
		assert_int_equal(call_modify_qp(c, ud[i], HCA_CMD_RST2INIT_QPEE, &qpc), 0);
	}
	*group = next++;
	memcpy(&mgid[1], group, sizeof(*group));
	return call_mcast(c, ud[i], mgid, true);
}

static unsigned int
take_all(struct hca_client *c, const struct thing *t, const char *why)
{
	uint32_t handle;
	unsigned int n = 0;
	int rc;

	while ((rc = t->make(c, &handle)) == 0)
		assert_true(++n < 1u << 20);
	assert_int_equal(rc, -ENOMEM);
	if (strstr(hca_driver_reason(), why) == NULL)
		fail_msg("%s", hca_driver_reason());
	return n;
}

/*
 * A client takes all it gets; another one of its user, and one of another user, still get objects.
 */
static void
nobody_takes_all(void **state)
{
	static const struct thing srqs = {.make = make_srq}, mws = {.make = make_mw},
				  groups = {.make = join};
	static const struct {
		const struct thing *thing;
		unsigned int all;
	} cases[] = {{&qps, 30},  {&cqs, 128},	     {&srqs, 64},   {&mrs, 512},
		     {&mws, 512}, {&large_mrs, 128}, {&pds, 65536}, {&groups, 64}};
	const struct hca_quota quota = {.user_share = 75, .client_share = 50};
	const struct hca_client_who who = {.user = 1}, same = {.user = 0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int all = cases[i].all, n[3];

		memset(pdn, 0, sizeof(pdn));
		start(&quota);
		assert_int_equal(hca_client_open(drv, &same, &others[0]), 0);
		assert_int_equal(hca_client_open(drv, &who, &others[1]), 0);
		for (unsigned int k = 0; k < 2; k++)
			assert_int_equal(
				hca_client_attach(others[k], (uintptr_t)memory, PAGES * PAGE), 0);
		n[0] = take_all(client, cases[i].thing, "client_share");
		n[1] = take_all(others[0], cases[i].thing, "_share");
		n[2] = take_all(others[1], cases[i].thing, "_share");
		printf("%u of %u: %u, %u, %u\n", (unsigned int)i, all, n[0], n[1], n[2]);
		assert_true(n[0] >= all / 4 && n[0] <= all * 2 / 5);
		assert_true(n[1] >= all / 8 && n[1] <= all / 4);
		assert_true(n[2] >= all / 8);
		/* a closed client does not count */
		hca_client_close(others[0]);
		hca_client_close(client);
		others[0] = NULL;
		pdn[1] = 0;
		assert_int_equal(hca_client_open(drv, &same, &client), 0);
		assert_int_equal(hca_client_attach(client, (uintptr_t)memory, PAGES * PAGE), 0);
		pdn[0] = 0;
		assert_true(take_all(client, cases[i].thing, "_share") >= all / 6);
		shut_down(NULL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_has_its_quota),
		cmocka_unit_test(nobody_takes_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
