/* SPDX-License-Identifier: BSD-3-Clause */

/* Kinds of regions of a daemon's client, with memory that is shared and that stays private. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc_rig.h"

#define PAGE 4096u
#define LW SOFTHCA_ACCESS_LOCAL_WRITE
#define REMOTE (LW | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ)
#define ALL (REMOTE | SOFTHCA_ACCESS_REMOTE_ATOMIC)
#define KEEP SOFTHCA_ACCESS_KEEP_PRIVATE

RIG_OF_ALL(rig)

/* Two peers in this process; b also has memory of its own. */
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
	err = peer_wait(&p->a, &wc, RIG_TIMEOUT_S);
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

/* Data of a READ vanishes; the peer cannot use the key. */
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
	assert_int_equal(peer_wait(&p.a, &wc, RIG_TIMEOUT_S), 0);
	memset(p.mem, 1, PAGE);
	wr.opcode = SOFTHCA_WR_RDMA_WRITE;
	assert_int_equal(softhca_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(peer_wait(&p.a, &wc, RIG_TIMEOUT_S), 0);
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

/* ---- on-demand paging ---- */

#define ODP SOFTHCA_ACCESS_ON_DEMAND

static bool
is_shared(const void *addr)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long first, end;
	char line[512], perms[8];
	bool shared = false;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL)
		if (sscanf(line, "%lx-%lx %7s", &first, &end, perms) == 3 &&
		    (uintptr_t)addr >= first && (uintptr_t)addr < end)
			shared = perms[3] == 's';
	fclose(maps);
	return shared;
}

static void
map_at(uint8_t *at, size_t bytes, uint8_t value)
{
	assert_ptr_equal(mmap(at, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 at);
	memset(at, value, bytes);
}

/* The mapping at the time of each access counts; memory stays in place. */
static void
on_demand(void **state)
{
	struct softhca_mr *mr;
	struct pair p;

	pair_open(&p);
	mr = softhca_reg_mr(p.b.pd, p.mem, 8 * PAGE, REMOTE | ODP);
	assert_non_null(mr);
	assert_false(is_shared(p.mem));
	map_at(p.mem, 8 * PAGE, 7);
	assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_READ, mr, (uintptr_t)p.mem, 8 * PAGE), 0);
	assert_true(p.a.buf[0] == 7 && p.a.buf[8 * PAGE - 1] == 7);
	munmap(p.mem + PAGE, PAGE);
	assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_READ, mr, (uintptr_t)p.mem, PAGE), 0);
	map_at(p.mem + PAGE, PAGE, 8);
	assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_READ, mr, (uintptr_t)p.mem, 2 * PAGE), 0);
	assert_true(p.a.buf[PAGE - 1] == 7 && p.a.buf[PAGE] == 8);
	/* kept with a new translation alone, given up with other rights, not begun with them */
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL,
					  p.mem + 9 * PAGE, PAGE, 0),
			 0);
	assert_false(is_shared(p.mem + 9 * PAGE));
	assert_int_equal(softhca_rereg_mr(mr,
					  SOFTHCA_REREG_MR_CHANGE_TRANSLATION |
						  SOFTHCA_REREG_MR_CHANGE_ACCESS,
					  NULL, p.mem + 8 * PAGE, PAGE, REMOTE),
			 0);
	assert_true(is_shared(p.mem + 8 * PAGE));
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					  REMOTE | ODP),
			 -EOPNOTSUPP);
	/* also shared memory */
	assert_int_equal(softhca_rereg_mr(mr,
					  SOFTHCA_REREG_MR_CHANGE_TRANSLATION |
						  SOFTHCA_REREG_MR_CHANGE_ACCESS,
					  NULL, p.b.buf, PAGE, REMOTE | ODP),
			 0);
	assert_int_equal(operate(&p, SOFTHCA_WR_RDMA_WRITE, mr, (uintptr_t)p.b.buf, PAGE), 0);
	assert_memory_equal(p.a.buf, p.b.buf, PAGE);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	/* the whole address space, and unmapped addresses */
	assert_null(softhca_reg_mr(p.b.pd, NULL, UINT64_MAX, REMOTE | ODP));
	assert_int_equal(errno, EOPNOTSUPP);
	munmap(p.mem + PAGE, PAGE);
	assert_null(softhca_reg_mr(p.b.pd, p.mem, 2 * PAGE, REMOTE | ODP));
	assert_int_equal(errno, EFAULT);
	pair_close(&p);
}

static void
advice(void **state)
{
	struct softhca_mr *mr, *other, *reads;
	struct softhca_sge sge[2];
	struct pair p;

	pair_open(&p);
	mr = softhca_reg_mr(p.b.pd, p.mem, 8 * PAGE, LW | ODP);
	reads = softhca_reg_mr(p.b.pd, p.mem, 8 * PAGE, ODP);
	other = softhca_reg_mr(p.b.pd, p.mem, 8 * PAGE, LW | KEEP);
	assert_true(mr != NULL && reads != NULL && other != NULL);
	sge[0] = (struct softhca_sge){(uintptr_t)p.mem, PAGE, mr->lkey};
	sge[1] = (struct softhca_sge){(uintptr_t)p.mem + 7 * PAGE, PAGE, reads->lkey};
	for (uint32_t advice = 0; advice < 3; advice++)
		assert_int_equal(softhca_advise_mr(p.b.pd, advice, advice & 1, sge, 2),
				 advice == SOFTHCA_ADVISE_MR_ADVICE_PREFETCH_WRITE ? -EFAULT : 0);
	assert_int_equal(
		softhca_advise_mr(p.b.pd, SOFTHCA_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, sge, 1), 0);
	assert_int_equal(softhca_advise_mr(p.b.pd, 3, 0, sge, 2), -EOPNOTSUPP);
	assert_int_equal(softhca_advise_mr(p.b.pd, 0, 2, sge, 2), -EINVAL);
	assert_int_equal(softhca_advise_mr(p.b.pd, 0, 0, sge, 0), -EINVAL);
	assert_int_equal(softhca_advise_mr(p.b.pd, 0, 0, NULL, 1), -EINVAL);
	sge[1].length++;
	assert_int_equal(softhca_advise_mr(p.b.pd, 0, 0, sge, 2), -EFAULT);
	assert_int_equal(softhca_advise_mr(p.b.pd, 0, 0, sge, 1), 0);
	sge[0].lkey = other->lkey; /* not on demand: nothing to do */
	assert_int_equal(softhca_advise_mr(p.b.pd, 0, 0, sge, 1), 0);
	assert_true(softhca_dereg_mr(mr) == 0 && softhca_dereg_mr(reads) == 0 &&
		    softhca_dereg_mr(other) == 0);
	pair_close(&p);
}

struct talk {
	uint32_t type;
	bool srq;
};

static int
talk(int sock, unsigned int side, const struct talk *t)
{
	struct peer_config cfg = {.type = t->type,
				  .srq = t->srq,
				  .events = true,
				  .timeout = 16,
				  .buf = NULL};
	struct peer p;
	int err;

	cfg.buf =
		mmap(NULL, PEER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	err = peer_open(&p, rig.path[side], &cfg);
	if (err == 0)
		err = softhca_rereg_mr(p.mr,
				       SOFTHCA_REREG_MR_CHANGE_TRANSLATION |
					       SOFTHCA_REREG_MR_CHANGE_ACCESS,
				       NULL, cfg.buf, PEER_BYTES, ALL | ODP);
	p.me.rkey = p.mr->rkey;
	if (err == 0)
		err = peer_connect(&p, sock);
	if (err == 0)
		err = peer_talk(&p, sock, 3);
	peer_close(&p);
	munmap(cfg.buf, PEER_BYTES);
	return err;
}

#define LOST 2 /* exit status of a child that has waited in vain */

static int
child_talks(int sock, void *arg)
{
	int err = talk(sock, 1, arg);

	if (err == -ETIMEDOUT)
		_exit(LOST);
	return err;
}

/*
 * Memory that a CPU without time for the daemon makes late costs UC and UD a datagram, and they do
 * not send again: they have three tries.
 */
static void
talk_both(const struct talk *t)
{
	unsigned int tries = t->type == SOFTHCA_QPT_RC ? 1 : 3;
	int sock, here, there;

	do {
		struct talk copy = *t;
		pid_t pid = rig_fork(child_talks, &copy, &sock);

		here = talk(sock, 0, t);
		close(sock);
		there = rig_wait(pid);
	} while (--tries != 0 && (here == -ETIMEDOUT || there == LOST));
	assert_int_equal(here, 0);
	assert_int_equal(there, 0);
}

/* The device's attributes of services and SRQs */
static void
services(void **state)
{
	static const struct talk talks[] = {
		{SOFTHCA_QPT_RC, false}, {SOFTHCA_QPT_RC, true}, {SOFTHCA_QPT_UC, false},
		{SOFTHCA_QPT_UD, false}, {SOFTHCA_QPT_UD, true},
	};
	struct softhca_device_attr attr;
	struct softhca_context *ctx;

	for (size_t i = 0; i < sizeof(talks) / sizeof(talks[0]); i++) {
		int64_t writes = rig_ask(&rig, "counters", 0, "foreign_writes");

		talk_both(&talks[i]);
		assert_true(rig_ask(&rig, "counters", 0, "foreign_writes") > writes);
	}
	assert_int_equal(softhca_open(rig.path[0], &ctx), 0);
	assert_int_equal(softhca_query_device(ctx, &attr), 0);
	assert_int_equal(softhca_close(ctx), 0);
	assert_int_equal(attr.odp_caps.general_caps, SOFTHCA_ODP_SUPPORT);
	assert_int_equal(attr.odp_caps.rc_odp_caps, 0xff);
	assert_int_equal(attr.odp_caps.uc_odp_caps, 0x07);
	assert_int_equal(attr.odp_caps.ud_odp_caps, 0x23);
	assert_int_equal(attr.odp_caps.xrc_odp_caps, 0xfd);
}

struct xrc {
	struct softhca_xrcd *xrcd;
	struct softhca_srq *srq;      /* of b */
	struct softhca_qp *tx, *rx;   /* of a and b */
	struct softhca_mr *from, *to; /* of a and b: on demand */
};

static void
xrc_open(struct xrc *x, struct pair *p)
{
	const struct softhca_xrcd_init_attr domain = {.fd = -1};
	struct softhca_srq_init_attr_ex srq = {.attr = {.max_wr = 4, .max_sge = 1},
					       .srq_type = SOFTHCA_SRQT_XRC,
					       .pd = p->b.pd,
					       .cq = p->b.cq};
	struct softhca_qp_init_attr tx = {.send_cq = p->a.cq,
					  .recv_cq = p->a.cq,
					  .cap = {.max_send_wr = 4, .max_send_sge = 1},
					  .qp_type = SOFTHCA_QPT_XRC_SEND};
	struct softhca_qp_init_attr_ex rx = {.qp_type = SOFTHCA_QPT_XRC_RECV,
					     .comp_mask = SOFTHCA_QP_INIT_ATTR_XRCD};

	x->xrcd = srq.xrcd = rx.xrcd = softhca_open_xrcd(p->b.ctx, &domain);
	x->srq = softhca_create_srq_ex(p->b.ctx, &srq);
	x->tx = softhca_create_qp(p->a.pd, &tx);
	x->rx = softhca_create_qp_ex(p->b.ctx, &rx);
	assert_true(x->srq != NULL && x->tx != NULL && x->rx != NULL);
	assert_int_equal(peer_connect_qp(&p->a, x->tx, x->rx->qp_num, 5, 9), 0);
	assert_int_equal(peer_connect_qp(&p->b, x->rx, x->tx->qp_num, 9, 5), 0);
	x->from = softhca_reg_mr(p->a.pd, p->mem, 8 * PAGE, ALL | ODP);
	x->to = softhca_reg_mr(p->b.pd, p->mem + 8 * PAGE, 8 * PAGE, ALL | ODP);
	assert_true(x->from != NULL && x->to != NULL);
}

static void
xrc_close(struct xrc *x)
{
	assert_int_equal(softhca_destroy_qp(x->tx), 0);
	assert_int_equal(softhca_destroy_qp(x->rx), 0);
	assert_int_equal(softhca_destroy_srq(x->srq), 0);
	assert_int_equal(softhca_close_xrcd(x->xrcd), 0);
	assert_int_equal(softhca_dereg_mr(x->from), 0);
	assert_int_equal(softhca_dereg_mr(x->to), 0);
}

/* Each operation, between on-demand regions at both ends */
static void
xrc_on_demand(void **state)
{
	static const uint32_t ops[] = {SOFTHCA_WR_SEND, SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_RDMA_READ,
				       SOFTHCA_WR_ATOMIC_FETCH_AND_ADD};
	struct softhca_wc wc;
	struct pair p;
	struct xrc x;

	pair_open(&p);
	xrc_open(&x, &p);
	for (uint8_t i = 0; i < 4; i++) {
		uint32_t length = i == 3 ? 8 : 6 * PAGE;
		struct softhca_sge sge = {x.from->addr, length, x.from->lkey};
		struct softhca_sge recv = {x.to->addr, length, x.to->lkey};
		struct softhca_recv_wr rr = {.sg_list = &recv, .num_sge = 1}, *bad_recv;
		struct softhca_send_wr wr = {.opcode = ops[i],
					     .sg_list = &sge,
					     .num_sge = 1,
					     .send_flags = SOFTHCA_SEND_SIGNALED},
				       *bad;

		memset(p.mem, 2 * i, 8 * PAGE);
		memset(p.mem + 8 * PAGE, 2 * i + 1, 8 * PAGE);
		assert_int_equal(softhca_get_srq_num(x.srq, &wr.qp_type.xrc.remote_srqn), 0);
		if (i == 3) {
			wr.wr.atomic.remote_addr = x.to->addr;
			wr.wr.atomic.compare_add = 1;
			wr.wr.atomic.rkey = x.to->rkey;
		} else if (i > 0) {
			wr.wr.rdma.remote_addr = x.to->addr;
			wr.wr.rdma.rkey = x.to->rkey;
		} else {
			assert_int_equal(softhca_post_srq_recv(x.srq, &rr, &bad_recv), 0);
		}
		assert_int_equal(softhca_post_send(x.tx, &wr, &bad), 0);
		assert_int_equal(peer_wait(&p.a, &wc, RIG_TIMEOUT_S), 0);
		if (i == 0)
			assert_int_equal(peer_wait(&p.b, &wc, RIG_TIMEOUT_S), 0);
		if (i == 3)
			assert_true(p.mem[0] == 7 && p.mem[8 * PAGE] == 8);
		else
			assert_memory_equal(p.mem, p.mem + 8 * PAGE, 6 * PAGE);
	}
	xrc_close(&x);
	pair_close(&p);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, rig_tidy)
	const struct CMUnitTest tests[] = {
		TEST(iova),   TEST(length_0), TEST(null_region),   TEST(on_demand),
		TEST(advice), TEST(services), TEST(xrc_on_demand),
	};
#undef TEST

	return cmocka_run_group_tests(tests, start, shut_down);
}
