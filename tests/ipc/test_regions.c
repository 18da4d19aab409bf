/* SPDX-License-Identifier: BSD-3-Clause */

/* Kinds of regions of a daemon's client, with memory that is shared and that stays private. */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "ipc_rig.h"

#define PAGE 4096u
#define LW SOFTHCA_ACCESS_LOCAL_WRITE
#define REMOTE (LW | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ)
#define KEEP SOFTHCA_ACCESS_KEEP_PRIVATE

RIG_OF_ALL(rig)

/* Two peers in this process; b has memory of its own besides. */
struct pair {
	struct peer a, b;
	uint8_t *mem; /* 16 pages */
};

static void
pair_open(struct pair *p)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .timeout = 16, .sges = 3};

	assert_int_equal(peer_open(&p->a, rig.path[0], &cfg), 0);
	assert_int_equal(peer_open(&p->b, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&p->a, &p->b), 0);
	p->mem = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p->mem, MAP_FAILED);
}

static void
pair_close(struct pair *p)
{
	peer_close(&p->a);
	peer_close(&p->b);
	munmap(p->mem, 16 * PAGE);
}

/* An RDMA operation of a on [addr, addr + length) of this region; its status. */
static uint32_t
operate(struct pair *p, uint32_t opcode, const struct softhca_mr *mr, uint64_t addr,
	uint32_t length)
{
	struct softhca_wc wc = {0};
	int err;

	p->a.other.addr = addr;
	p->a.other.rkey = mr->rkey;
	err = peer_post(&p->a, opcode, 1, 0, length, 0);
	assert_int_equal(err, 0);
	err = peer_wait(&p->a, &wc, 30);
	assert_true(err >= 0);
	return (uint32_t)err;
}

/* Work requests use an address that is not the one in memory. */
static void
iova(void **state)
{
	const uint64_t at = UINT64_C(0x123400000000);
	struct softhca_mr *mr;
	struct pair p;

	pair_open(&p);
	for (uint32_t i = 0; i < 2; i++) {
		mr = softhca_reg_mr_iova(p.b.pd, p.mem + 40, 15 * PAGE, at + 40,
					 i == 0 ? REMOTE | KEEP : REMOTE);
		assert_non_null(mr);
		assert_true(mr->addr == at + 40);
		peer_fill(p.a.buf, 15 * PAGE, 3 + i);
		assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_WRITE, mr, at + 40, 15 * PAGE), 0);
		assert_true(peer_verify(p.mem + 40, 15 * PAGE, 3 + i));
		if (i == 0)
			assert_int_equal(softhca_dereg_mr(mr), 0);
	}
	assert_null(softhca_reg_mr_iova(p.b.pd, p.mem, PAGE, at + 1, REMOTE));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_WRITE, mr, (uintptr_t)p.mem + 40, 8),
			 SOFTHCA_WC_REM_ACCESS_ERR);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	pair_close(&p);
}

/* A region without memory, with the key checked all the same; memory follows, and goes again. */
static void
length_0(void **state)
{
	struct softhca_mr *mr;
	struct pair p;

	pair_open(&p);
	mr = softhca_reg_mr(p.b.pd, NULL, 0, REMOTE);
	assert_non_null(mr);
	assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_WRITE, mr, 0, 0), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL,
						  p.mem, PAGE, i == 0 ? REMOTE : REMOTE | KEEP),
				 0);
		assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_WRITE, mr, (uintptr_t)p.mem, PAGE), 0);
		assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL,
						  p.mem, 0, REMOTE),
				 0);
		assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_READ, mr, (uintptr_t)p.mem, 0), 0);
	}
	assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_WRITE, mr, (uintptr_t)p.mem, 1),
			 SOFTHCA_WC_REM_ACCESS_ERR);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	pair_close(&p);
}

/* What a READ brings vanishes; the peer cannot use the key. */
static void
null_region(void **state)
{
	struct softhca_sge sge = {.addr = 0x1000, .length = PAGE};
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_RDMA_READ,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .send_flags = SOFTHCA_SEND_SIGNALED},
			       *bad;
	struct softhca_mr *mr, *null[2];
	struct softhca_wc wc;
	struct pair p;

	pair_open(&p);
	mr = softhca_reg_mr(p.b.pd, p.mem, PAGE, REMOTE);
	null[0] = softhca_alloc_null_mr(p.a.pd);
	null[1] = softhca_alloc_null_mr(p.b.pd);
	assert_true(mr != NULL && null[0] != NULL && null[1] != NULL);
	sge.lkey = null[0]->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)p.mem;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(softhca_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(peer_wait(&p.a, &wc, 30), 0);
	memset(p.mem, 1, PAGE);
	wr.opcode = SOFTHCA_WR_RDMA_WRITE;
	assert_int_equal(softhca_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(peer_wait(&p.a, &wc, 30), 0);
	assert_true(p.mem[0] == 0 && p.mem[PAGE - 1] == 0);
	assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_WRITE, null[1], 0, 8),
			 SOFTHCA_WC_REM_ACCESS_ERR);
	assert_int_equal(softhca_rereg_mr(null[0], SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, p.mem,
					  PAGE, 0),
			 -EINVAL);
	assert_int_equal(softhca_dereg_mr(null[0]), 0);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_int_equal(softhca_dereg_mr(null[1]), 0);
	pair_close(&p);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, rig_tidy)
	const struct CMUnitTest tests[] = {
		TEST(iova),
		TEST(length_0),
		TEST(null_region),
	};
#undef TEST

	return cmocka_run_group_tests(tests, start, stop);
}
