/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Out of memory: each allocation of hca_create() and of the commands that allocate fails once, in
 * turn. Each time there is an error, the state is unchanged, and nothing leaks. The linker wraps
 * the allocators (--wrap), so the device is not changed for it.
 */

#include <stdlib.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring_elem.h>

#include "rig.h"

#define QPI 5u
#define QPN RIG_QPN(QPI)
#define NEVER (-1)

static int fail_in = NEVER; /* number of allocations until one fails */
static unsigned int failed;

static bool
fails(void)
{
	if (fail_in == NEVER || fail_in-- != 0)
		return false;
	failed++;
	rte_errno = ENOMEM;
	return true;
}

/* Its value that means failure is not NULL. */
void *__real_mmap64(void *addr, size_t n, int prot, int flags, int fd, off_t at);
void *__wrap_mmap64(void *addr, size_t n, int prot, int flags, int fd, off_t at);

void *
__wrap_mmap64(void *addr, size_t n, int prot, int flags, int fd, off_t at)
{
	return fails() ? MAP_FAILED : __real_mmap64(addr, n, prot, flags, fd, at);
}

#define WRAP(type, name, params, args) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params \
	{ \
		return fails() ? NULL : __real_##name args; \
	}

WRAP(void *, rte_zmalloc_socket, (const char *t, size_t n, unsigned int a, int s), (t, n, a, s))
WRAP(void *, rte_malloc_socket, (const char *t, size_t n, unsigned int a, int s), (t, n, a, s))
WRAP(struct rte_ring *, rte_ring_create_elem,
     (const char *n, unsigned int e, unsigned int c, int s, unsigned int f), (n, e, c, s, f))
WRAP(struct rte_mempool *, rte_mempool_create_empty,
     (const char *n, unsigned int c, unsigned int e, unsigned int k, unsigned int p, int s,
      unsigned int f),
     (n, c, e, k, p, s, f))
WRAP(void *, realloc, (void *p, size_t n), (p, n))

static unsigned int
allocations(void)
{
	struct rte_malloc_socket_stats st = {0};

	rte_malloc_get_socket_stats(0, &st);
	return st.alloc_count;
}

static int
setup(void **state)
{
	struct rig *r = rig_new(true);

	rig_qp_world(r);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	fail_in = NEVER;
	rig_free(*state);
	return 0;
}

static void
creating_an_hca(void **state)
{
	struct rig *r = *state;
	unsigned int before = allocations(), n = 0;
	struct hca_config cfg = r->h->core->cfg;
	struct hca *h = NULL;
	int rc = -ENOMEM;

	cfg.name = "t1";
	cfg.wires = RIG_UB;
	for (int k = 0; rc != 0; k++) {
		fail_in = k;
		rc = hca_create(&cfg, &h);
		n += rc != 0;
		assert_true(rc == 0 || rc == -ENOMEM);
		if (rc != 0)
			assert_int_equal(allocations(), before);
	}
	fail_in = NEVER;
	assert_true(n > 40);
	hca_destroy(h);
	assert_int_equal(allocations(), before);
}

/*
 * Execute a command whose mailbox fill() writes, failing each allocation in turn; returns their
 * number.
 */
static unsigned int
command(struct rig *r, uint16_t op, uint32_t in_mod, void (*fill)(struct rig *r))
{
	unsigned int before = allocations();

	rig_remember(r, QPI);
	for (unsigned int k = 0;; k++) {
		unsigned int was = failed;
		int rc;

		fill(r);
		fail_in = (int)k;
		rc = rig_mbox(r, op, in_mod);
		fail_in = NEVER;
		if (failed == was) {
			assert_int_equal(rc, HCA_STAT_OK);
			return k;
		}
		assert_int_equal(rc, HCA_STAT_EXCEED_LIM);
		rig_unchanged(r, QPI);
		assert_int_equal(allocations(), before);
	}
}

static uint32_t
scattered(struct rig *r, uint32_t index, uint8_t *p)
{
	uint32_t mtt = rig_mtt(r, p, 3);

	r->h->core->vtp.mtt[mtt] += 4096;
	r->h->core->vtp.mtt[mtt + 1] -= 4096;
	rig_fill_mpt(r, index, RIG_PD, p, 3 * 4096, mtt);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, index), HCA_STAT_OK);
	return HCA_KEY_MAKE(0x2a, index, 0x33);
}

static uint32_t cq_key;

static void
fill_cq(struct rig *r)
{
	rig_fill_cqc(r, 1, 7, cq_key);
}

static void
sw2hw_cq(void **state)
{
	struct rig *r = *state;

	cq_key = scattered(r, 11, rig_cq_mem(r, 1));
	assert_int_equal(command(r, HCA_CMD_SW2HW_CQ, 1, fill_cq), 1);
	assert_int_equal(r->h->core->vtp.mpt[11].users, 1);
}

/* Queues of more than one page, in pages that are not adjacent. */
static void
fill_init(struct rig *r)
{
	struct hca_qpc *q =
		rig_qpc(r, QPI,
			HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT | HCA_QP_ATTR_ACCESS_FLAGS);

	q->snd_wqe_base_l = hca_cpu_to_be32(HCA_KEY_MAKE(0x2a, 50, 0x33));
	q->snd_wqe_len = hca_cpu_to_be32(8192);
	q->rcv_wqe_base_l = hca_cpu_to_be32(HCA_KEY_MAKE(0x2a, 51, 0x33));
	q->rcv_wqe_len = hca_cpu_to_be32(8192);
}

static void
fill_rtr(struct rig *r)
{
	rig_qpc(r, QPI,
		HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU | HCA_QP_ATTR_DEST_QPN | HCA_QP_ATTR_RQ_PSN |
			HCA_QP_ATTR_MAX_DEST_RD_ATOMIC | HCA_QP_ATTR_MIN_RNR_TIMER)
		->rd_atomic = hca_cpu_to_be32(HCA_QPC_MAKE_RD_ATOMIC(0, 32, 0));
}

static void
rst2init_and_rtr(void **state)
{
	struct rig *r = *state;

	scattered(r, 50, r->user + (640 << 10));
	scattered(r, 51, r->user + (704 << 10));
	/* SQ pages, RQ pages, the block */
	assert_int_equal(command(r, HCA_CMD_RST2INIT_QPEE, QPN, fill_init), 3);
	assert_int_equal(command(r, HCA_CMD_INIT2RTR_QPEE, QPN, fill_rtr), 1);
	assert_int_equal(r->h->pipe[0].records[HCA_WIRE_ROCE].small.reserved_qps, 1);
	assert_int_equal(rig_cmd(r, HCA_CMD_ERR2RST_QPEE, 3, QPN, 0, 0), HCA_STAT_OK);
	assert_int_equal(r->h->core->vtp.mpt[50].users + r->h->core->vtp.mpt[51].users, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(creating_an_hca),
		T(sw2hw_cq),
		T(rst2init_and_rtr),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
