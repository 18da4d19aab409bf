/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory that is not shared with the daemon: stacks, mappings of files, memory kept private. All
 * operations work on it; a failed access affects only the client that owns the memory.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_disk.h"
#include "abi_ctx.h"
#include "ipc_rig.h"
#include "raw.h"

#define PAGE 4096u
#define VA UINT64_C(0x10000000) /* of a mapping at a known place */
#define LW SOFTHCA_ACCESS_LOCAL_WRITE
#define REMOTE \
	(LW | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ | \
	 SOFTHCA_ACCESS_REMOTE_ATOMIC)
#define KEEP SOFTHCA_ACCESS_KEEP_PRIVATE

RIG_OF_ALL(rig)

/* Children of a test that failed end first: all later ones would find them as left behind. */
static int
nothing_left(void **state)
{
	assert_int_equal(rig_tidy(state), 0);
	for (unsigned int side = 0; side < 2; side++)
		assert_true(rig_wait_empty(&rig, side) >= 0);
	return 0;
}

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

static uint8_t *
private_memory(size_t bytes)
{
	uint8_t *mem =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(mem, MAP_FAILED);
	return mem;
}

static struct softhca_pd *
open_pd(struct softhca_context **ctx)
{
	struct softhca_pd *pd;

	assert_int_equal(softhca_open(rig.path[0], ctx), 0);
	pd = softhca_alloc_pd(*ctx);
	assert_non_null(pd);
	return pd;
}

static int64_t
accesses(const char *name)
{
	return rig_ask(&rig, "counters", 0, name) + rig_ask(&rig, "counters", 1, name);
}

/* ---- conversations ---- */

static int
talk_over(int sock, unsigned int side, uint32_t type, uint8_t *buf)
{
	const struct peer_config cfg = {.type = type,
					.events = true,
					.gid_index = 0,
					.timeout = 16,
					.buf = buf};

	return peer_visit(rig.path[side], sock, &cfg, 3);
}

struct talk {
	uint32_t type;
	int on_stack;
	uint8_t *buf, *childs;
};

static int
talk_on_stack(int sock, unsigned int side, uint32_t type)
{
	uint8_t buf[PEER_BYTES + 40];

	return talk_over(sock, side, type, buf + 24);
}

static int
child_talks(int sock, void *arg)
{
	const struct talk *t = arg;

	return t->on_stack ? talk_on_stack(sock, 1, t->type)
			   : talk_over(sock, 1, t->type, t->childs);
}

static void
conversation(struct talk t)
{
	int64_t before = accesses("foreign_reads") + accesses("foreign_writes"), faults;
	int sock;
	pid_t pid;

	faults = accesses("foreign_faults");
	pid = rig_fork(child_talks, &t, &sock);
	assert_int_equal(t.on_stack ? talk_on_stack(sock, 0, t.type)
				    : talk_over(sock, 0, t.type, t.buf),
			 0);
	rig_join(pid);
	close(sock);
	assert_true(accesses("foreign_reads") + accesses("foreign_writes") > before);
	assert_int_equal(accesses("foreign_faults"), faults);
}

static void
stack(void **state)
{
	static const uint32_t types[] = {SOFTHCA_QPT_RC, SOFTHCA_QPT_UC, SOFTHCA_QPT_UD};

	for (unsigned int i = 0; i < 3; i++)
		conversation((struct talk){.type = types[i], .on_stack = 1});
}

/* Private and shared mappings of an ordinary file. */
static void
file_mapping(void **state)
{
	int fd = test_disk_file();

	if (fd < 0)
		skip();
	assert_int_equal(ftruncate(fd, 3 * PEER_BYTES), 0);
	for (int flags = MAP_SHARED; flags <= MAP_PRIVATE; flags++) {
		uint8_t *mem = mmap(NULL, 3 * PEER_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);

		assert_ptr_not_equal(mem, MAP_FAILED);
		conversation((struct talk){SOFTHCA_QPT_RC, 0, mem + 104, mem + PEER_BYTES + 200});
		munmap(mem, 3 * PEER_BYTES);
	}
	close(fd);
}

/* Private memory of the whole process stays private; softhca_alloc() still shares. */
static void
environment(void **state)
{
	uint8_t *mem = private_memory(2 * PEER_BYTES);
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_mr *mr[2];
	void *own = softhca_alloc(PAGE);

	assert_int_equal(setenv("SOFTHCA_SLOW_MR", "1", 1), 0);
	conversation((struct talk){SOFTHCA_QPT_RC, 0, mem + 3 * PAGE, mem + 7 * PAGE});
	pd = open_pd(&ctx);
	mr[0] = softhca_reg_mr(pd, mem, PAGE, REMOTE);
	mr[1] = softhca_reg_mr(pd, own, PAGE, REMOTE);
	assert_true(mr[0] != NULL && mr[1] != NULL);
	assert_false(is_shared(mem));
	assert_int_equal(setenv("SOFTHCA_SLOW_MR", "0", 1), 0);
	/* Memory in use as private stays private, while memory next to it is converted. */
	assert_non_null(softhca_reg_mr(pd, mem, 2 * PAGE, REMOTE));
	assert_false(is_shared(mem) || is_shared(mem + PAGE));
	assert_non_null(softhca_reg_mr(pd, mem + 2 * PAGE, PAGE, REMOTE));
	assert_true(is_shared(mem + 2 * PAGE));
	/* Shared memory may also be in a region that is accessed the slow way. */
	assert_non_null(softhca_reg_mr(pd, mem, 4 * PAGE, REMOTE | KEEP));
	unsetenv("SOFTHCA_SLOW_MR");
	assert_int_equal(softhca_close(ctx), 0);
	assert_false(is_shared(mem + 2 * PAGE));
	softhca_free(own);
	munmap(mem, 2 * PEER_BYTES);
}

/* ---- two peers in this process, with one more region ---- */

struct pair {
	struct peer a, b;
	uint8_t *mem; /* of b, 16 pages; kept private */
	struct softhca_mr *mr;
};

static void
pair_open(struct pair *p, uint32_t access)
{
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .timeout = 16};

	assert_int_equal(peer_open(&p->a, rig.path[0], &cfg), 0);
	assert_int_equal(peer_open(&p->b, rig.path[1], &cfg), 0);
	assert_int_equal(peer_connect_pair(&p->a, &p->b), 0);
	p->mem = private_memory(16 * PAGE);
	p->mr = softhca_reg_mr(p->b.pd, p->mem, 16 * PAGE, access | KEEP);
	assert_non_null(p->mr);
	p->a.other.addr = (uintptr_t)p->mem;
	p->a.other.rkey = p->mr->rkey;
}

static void
pair_close(struct pair *p)
{
	if (p->mr != NULL)
		assert_int_equal(softhca_dereg_mr(p->mr), 0);
	peer_close(&p->a);
	peer_close(&p->b);
	munmap(p->mem, 16 * PAGE);
}

/* An operation of a; its status. */
static uint32_t
operate(struct pair *p, uint32_t opcode, uint32_t length, uint64_t remote)
{
	struct softhca_wc wc = {0};
	int err = peer_post(&p->a, opcode, 1, 0, length, remote);

	assert_int_equal(err, 0);
	err = peer_wait(&p->a, &wc, RIG_TIMEOUT_S);
	assert_true(err >= 0);
	return (uint32_t)err;
}

static void
expect(uint32_t got, uint32_t status)
{
	if (got != status)
		fail_msg("%s instead of %s; foreign_faults %ld, foreign_late %ld",
			 softhca_wc_status_str(got), softhca_wc_status_str(status),
			 (long)accesses("foreign_faults"), (long)accesses("foreign_late"));
}

static void
reregister(void **state)
{
	struct pair p;
	uint8_t *other;
	uint32_t old;

	pair_open(&p, REMOTE);
	old = p.mr->rkey;
	other = private_memory(40 * PAGE);
	peer_fill(p.a.buf, 8 * PAGE, 1);
	expect(operate(&p, SOFTHCA_WR_RDMA_WRITE, 8 * PAGE, 100), SOFTHCA_WC_SUCCESS);
	assert_true(peer_verify(p.mem + 100, 8 * PAGE, 1));
	/* from slow to fast and back, and its access rights */
	assert_int_equal(softhca_rereg_mr(p.mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, other,
					  20 * PAGE, REMOTE),
			 0);
	assert_true(is_shared(other));
	p.a.other.rkey = p.mr->rkey;
	p.a.other.addr = (uintptr_t)other;
	peer_fill(p.a.buf, 8 * PAGE, 2);
	expect(operate(&p, SOFTHCA_WR_RDMA_WRITE, 8 * PAGE, 5), SOFTHCA_WC_SUCCESS);
	assert_true(peer_verify(other + 5, 8 * PAGE, 2));
	assert_int_equal(softhca_rereg_mr(p.mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL,
					  other + 20 * PAGE, 20 * PAGE, REMOTE | KEEP),
			 0);
	assert_false(is_shared(other) || is_shared(other + 20 * PAGE));
	assert_true(peer_verify(other + 5, 8 * PAGE, 2));
	p.a.other.rkey = p.mr->rkey;
	p.a.other.addr = (uintptr_t)other + 20 * PAGE;
	expect(operate(&p, SOFTHCA_WR_RDMA_WRITE, 8 * PAGE, 5), SOFTHCA_WC_SUCCESS);
	assert_true(peer_verify(other + 20 * PAGE + 5, 8 * PAGE, 2));
	assert_int_equal(softhca_rereg_mr(p.mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					  LW | SOFTHCA_ACCESS_REMOTE_READ),
			 0);
	p.a.other.rkey = p.mr->rkey;
	expect(operate(&p, SOFTHCA_WR_RDMA_READ, PAGE, 0), SOFTHCA_WC_SUCCESS);
	p.a.other.rkey = old;
	expect(operate(&p, SOFTHCA_WR_RDMA_READ, PAGE, 0), SOFTHCA_WC_REM_ACCESS_ERR);
	pair_close(&p);
	munmap(other, 40 * PAGE);
}

/* A list of pages in any order; the region's addresses need not be mapped. */
static void
page_list(void **state)
{
	const uint64_t va = UINT64_C(0x123400000000);
	void *pages[16];
	struct pair p;

	pair_open(&p, REMOTE);
	assert_int_equal(softhca_dereg_mr(p.mr), 0);
	for (unsigned int i = 0; i < 16; i++)
		pages[i] = p.mem + (i * 5 % 16) * PAGE;
	p.mr = softhca_reg_mr_pages(p.b.pd, va + 40, 16 * PAGE - 100, PAGE, pages, 16,
				    REMOTE | KEEP);
	assert_non_null(p.mr);
	assert_false(is_shared(p.mem));
	p.a.other.addr = va;
	p.a.other.rkey = p.mr->rkey;
	peer_fill(p.a.buf, 16 * PAGE, 3);
	expect(operate(&p, SOFTHCA_WR_RDMA_WRITE, 16 * PAGE - 100, 40), SOFTHCA_WC_SUCCESS);
	for (unsigned int i = 1; i < 15; i++)
		assert_memory_equal(pages[i], p.a.buf + (size_t)i * PAGE - 40, PAGE);
	pages[3] = (void *)(UINTPTR_MAX - PAGE + 1);
	assert_null(softhca_reg_mr_pages(p.b.pd, va, 16 * PAGE, PAGE, pages, 16, REMOTE | KEEP));
	pair_close(&p);
}

static void
windows(void **state)
{
	struct softhca_mw_bind bind = {.send_flags = SOFTHCA_SEND_SIGNALED};
	struct softhca_mw *mw[2];
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_BIND_MW,
				     .send_flags = SOFTHCA_SEND_SIGNALED},
			       *bad;
	struct softhca_wc wc;
	struct pair p;

	pair_open(&p, LW | SOFTHCA_ACCESS_MW_BIND);
	expect(peer_post(&p.a, SOFTHCA_WR_RDMA_WRITE, 1, 0, 0, 0) == 0
		       ? peer_wait(&p.a, &wc, RIG_TIMEOUT_S)
		       : 1,
	       SOFTHCA_WC_SUCCESS);
	for (int i = 0; i < 2; i++) {
		mw[i] = softhca_alloc_mw(p.b.pd, SOFTHCA_MW_TYPE_1 + i);
		assert_non_null(mw[i]);
	}
	bind.bind_info = (struct softhca_mw_bind_info){p.mr, (uintptr_t)p.mem + 1000, 2 * PAGE,
						       SOFTHCA_ACCESS_REMOTE_WRITE};
	assert_int_equal(softhca_bind_mw(p.b.qp, mw[0], &bind), 0);
	assert_int_equal(peer_wait(&p.b, &wc, RIG_TIMEOUT_S), 0);
	wr.bind_mw.mw = mw[1];
	wr.bind_mw.rkey = mw[1]->rkey = softhca_inc_rkey(mw[1]->rkey);
	wr.bind_mw.bind_info = bind.bind_info;
	assert_int_equal(softhca_post_send(p.b.qp, &wr, &bad), 0);
	assert_int_equal(peer_wait(&p.b, &wc, RIG_TIMEOUT_S), 0);
	for (int i = 0; i < 2; i++) {
		p.a.other.rkey = mw[i]->rkey;
		peer_fill(p.a.buf, 2 * PAGE, 10 + (uint32_t)i);
		expect(operate(&p, SOFTHCA_WR_RDMA_WRITE, 2 * PAGE, 1000), SOFTHCA_WC_SUCCESS);
		assert_true(peer_verify(p.mem + 1000, 2 * PAGE, 10 + (uint32_t)i));
		/* also the short way */
		expect(operate(&p, SOFTHCA_WR_RDMA_WRITE, 64, 5000), SOFTHCA_WC_SUCCESS);
	}
	assert_int_equal(softhca_dereg_mr(p.mr), -EBUSY);
	expect(operate(&p, SOFTHCA_WR_RDMA_WRITE, 8, 999), SOFTHCA_WC_REM_ACCESS_ERR);
	for (int i = 0; i < 2; i++)
		assert_int_equal(softhca_dealloc_mw(mw[i]), 0);
	pair_close(&p);
}

/* ---- failures ---- */

static void
refused(struct softhca_pd *pd, void *mem, uint64_t bytes, uint32_t access, int error,
	const char *why)
{
	assert_null(softhca_reg_mr(pd, mem, bytes, access));
	if (errno != error || strstr(softhca_last_error(NULL), why) == NULL)
		fail_msg("%d: %s", errno, softhca_last_error(NULL));
}

static void
refusals(void **state)
{
	struct softhca_context *ctx;
	struct softhca_pd *pd = open_pd(&ctx), *other;
	uint8_t *mem = private_memory(8 * PAGE);
	struct softhca_mr *mr;

	assert_int_equal(mprotect(mem + PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(mprotect(mem + 2 * PAGE, PAGE, PROT_NONE), 0);
	munmap(mem + 4 * PAGE, PAGE);
	mr = softhca_reg_mr(pd, mem, 2 * PAGE, KEEP);
	assert_non_null(mr);
	other = softhca_alloc_pd(ctx);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, mem + PAGE,
					  PAGE, KEEP),
			 0);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					  LW | KEEP),
			 -EFAULT);
	refused(pd, mem, 2 * PAGE, LW | KEEP, EFAULT, "cannot be written");
	refused(pd, mem + PAGE, 2 * PAGE, KEEP, EFAULT, "cannot be read");
	refused(pd, mem + 3 * PAGE, 2 * PAGE, LW | KEEP, EFAULT, "nothing is mapped");
	refused(pd, mem + 4 * PAGE, 1, LW | KEEP, EFAULT, "nothing is mapped");
	assert_null(softhca_reg_mr(pd, (void *)(UINTPTR_MAX - PAGE), PAGE, KEEP));
	assert_null(softhca_reg_mr(pd, (void *)UINT64_C(0xffff888000000000), PAGE, LW | KEEP));
	assert_null(softhca_reg_mr(pd, (void *)UINT64_C(0xffffffffff600000), 8, KEEP));
	assert_null(softhca_reg_mr(pd, mem, UINT64_C(1) << 62, KEEP));
	assert_null(softhca_reg_mr(pd, mem, UINT64_MAX, KEEP));
	assert_non_null(softhca_reg_mr(pd, mem + 5 * PAGE, 3 * PAGE, LW | KEEP));
	munmap(mem, 4 * PAGE);
	munmap(mem + 5 * PAGE, 3 * PAGE);
	assert_int_equal(softhca_close(ctx), 0);
}

static int
proc_file(int pid, const char *name, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, flags);
}

static int
reg_foreign(struct raw *r, uint64_t va, uint64_t length, uint32_t pdn)
{
	const struct hca_ctl_mr mr = {.va = va,
				      .length = length,
				      .pdn = pdn,
				      .access = 1 | HCA_CTL_ACCESS_FOREIGN};

	return raw_call(r, HCA_CTL_REG_MR, &mr, sizeof(mr), -1);
}

/* The daemon accepts only the client's own memory file, and only mapped ranges. */
static void
bad_memory(void **state)
{
	const uint64_t bad[][2] = {
		{0, 4096},
		{1, UINT64_MAX},
		{UINT64_MAX, 1},
		{UINT64_MAX - 4095, 4096},
		{1ull << 63, 4096},
		{1ull << 62, 4096},
		{(1ull << 62) - 4096, 8192},
		{0xffff888000000000, 4096},
		{0xffffffffff600000, 8},
		{VA, 0},
		{VA, 1ull << 62},
		{VA, 1ull << 63},
	};
	int mem = proc_file(getpid(), "mem", O_RDWR), maps = proc_file(getpid(), "maps", O_RDONLY);
	const int pairs[][2] = {
		{mem, mem},
		{maps, maps},
		{maps, mem},
		{proc_file(getpid(), "mem", O_RDONLY), maps},
		{proc_file(getpid(), "mem", O_PATH), maps},
		{proc_file(getppid(), "mem", O_RDWR), maps},
		{proc_file(getppid(), "mem", O_RDWR), proc_file(getppid(), "maps", O_RDONLY)},
		{proc_file(rig.pid, "mem", O_RDWR), proc_file(rig.pid, "maps", O_RDONLY)},
		{mem, proc_file(getpid(), "smaps", O_RDONLY)},
		{mem, proc_file(rig.pid, "maps", O_RDONLY)},
		{memfd_create("mem", 0), maps},
		{open("/dev/zero", O_RDWR), maps},
	};
	void *here = mmap((void *)(uintptr_t)VA, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	struct raw r;
	uint32_t pdn;

	assert_ptr_not_equal(here, MAP_FAILED);
	raw_open(&r, rig.path[0]);
	assert_int_equal(raw_call(&r, HCA_CTL_ALLOC_PD, NULL, 0, -1), 0);
	pdn = r.number;
	assert_int_equal(reg_foreign(&r, VA, 4096, pdn), -EINVAL); /* none was given */
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i][0] >= 0 && pairs[i][1] >= 0)
			assert_int_equal(raw_memory(&r, pairs[i][0], pairs[i][1]), -EBADF);
	assert_int_equal(raw_memory(&r, mem, maps), 0);
	assert_int_equal(raw_memory(&r, mem, maps), -EEXIST);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(reg_foreign(&r, bad[i][0], bad[i][1], pdn) < 0);
	assert_int_equal(reg_foreign(&r, VA, 4096, pdn), 0);
	assert_int_equal(reg_foreign(&r, VA, 4097, pdn), -EFAULT);
	/* Queues cannot lie there, whatever the client requests. */
	assert_int_equal(raw_call(&r, HCA_CTL_CREATE_CQ,
				  &(struct hca_ctl_cq){.addr = HCA_BUS_FOREIGN | VA, .log_size = 4},
				  sizeof(struct hca_ctl_cq), -1),
			 -EPERM);
	raw_close(&r);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		for (int k = 0; k < 2; k++)
			if (pairs[i][k] >= 0 && pairs[i][k] != mem && pairs[i][k] != maps)
				close(pairs[i][k]);
	close(mem);
	close(maps);
	munmap(here, 4096);
}

/* Unmapped memory in a region: the request fails with an access error. */
static void
unmapped_under_it(void **state)
{
	static const uint32_t opcodes[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_RDMA_READ,
					   SOFTHCA_WR_ATOMIC_FETCH_AND_ADD};
	struct bystanders by;

	bystanders_start(&by, &rig);
	for (unsigned int i = 0; i < 3; i++) {
		int64_t faults = accesses("foreign_faults");
		uint32_t length = opcodes[i] == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD ? 8 : 8 * PAGE;
		struct pair p;

		pair_open(&p, REMOTE);
		expect(operate(&p, opcodes[i], length, 0), SOFTHCA_WC_SUCCESS);
		munmap(p.mem + (length == 8 ? 0 : 4 * PAGE), PAGE);
		expect(operate(&p, opcodes[i], length, 0), SOFTHCA_WC_REM_ACCESS_ERR);
		assert_true(accesses("foreign_faults") > faults);
		pair_close(&p);
	}
	bystanders_stop(&by);
}

/* The same for local memory of the requester, and of a receive. */
static void
unmapped_locally(void **state)
{
	for (int receive = 0; receive < 2; receive++) {
		struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_RDMA_WRITE, .num_sge = 1}, *bad;
		struct softhca_recv_wr rr = {.num_sge = 1}, *bad_recv;
		struct softhca_sge sge;
		struct softhca_mr *own;
		struct softhca_wc wc;
		struct pair p;

		pair_open(&p, REMOTE);
		if (receive) {
			sge = (struct softhca_sge){(uintptr_t)p.mem, PAGE, p.mr->lkey};
			rr.sg_list = &sge;
			munmap(p.mem, PAGE);
			assert_int_equal(softhca_post_recv(p.b.qp, &rr, &bad_recv), 0);
			expect(operate(&p, SOFTHCA_WR_SEND, 64, 0), SOFTHCA_WC_REM_OP_ERR);
			expect((uint32_t)peer_wait(&p.b, &wc, RIG_TIMEOUT_S),
			       SOFTHCA_WC_LOC_PROT_ERR);
		} else {
			uint8_t *mem = private_memory(2 * PAGE);

			own = softhca_reg_mr(p.a.pd, mem, 2 * PAGE, LW | KEEP);
			assert_non_null(own);
			munmap(mem + PAGE, PAGE);
			sge = (struct softhca_sge){(uintptr_t)mem, 2 * PAGE, own->lkey};
			wr.sg_list = &sge;
			wr.wr.rdma.remote_addr = p.a.other.addr;
			wr.wr.rdma.rkey = p.a.other.rkey;
			assert_int_equal(softhca_post_send(p.a.qp, &wr, &bad), 0);
			expect((uint32_t)peer_wait(&p.a, &wc, RIG_TIMEOUT_S),
			       SOFTHCA_WC_LOC_PROT_ERR);
			munmap(mem, PAGE);
		}
		pair_close(&p);
	}
}

/* ---- fork(), death ---- */

/* Children are forked all the time and write to inherited memory; traffic uses the parent's. */
static void
forks(void **state)
{
	enum {
		FORKS = 60
	};
	struct pair p;
	int status;

	pair_open(&p, REMOTE);
	for (uint32_t i = 0; i < FORKS; i++) {
		pid_t pid;

		peer_fill(p.mem, 16 * PAGE, i);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			bool well = peer_verify(p.mem, 8 * PAGE, i);

			memset(p.mem, 0xee, 16 * PAGE);
			_exit(well ? 0 : 1);
		}
		peer_fill(p.a.buf, 8 * PAGE, i + 1000);
		expect(operate(&p, SOFTHCA_WR_RDMA_WRITE, 8 * PAGE, 8 * PAGE), SOFTHCA_WC_SUCCESS);
		assert_true(peer_verify(p.mem + 8 * PAGE, 8 * PAGE, i + 1000));
		assert_true(peer_verify(p.mem, 8 * PAGE, i));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_true(peer_verify(p.mem + 8 * PAGE, 8 * PAGE, i + 1000));
	}
	pair_close(&p);
}

/* Exchanges data in its stack until it is killed. */
static int
victim(int sock, void *arg)
{
	uint8_t buf[PEER_BYTES];
	const struct peer_config cfg = {.type = SOFTHCA_QPT_RC, .buf = buf};
	struct softhca_wc wc;
	struct peer a, b;
	int status, err = peer_open(&a, rig.path[0], &cfg);

	if (err == 0)
		err = peer_open(&b, rig.path[1], &cfg);
	if (err == 0)
		err = peer_connect_pair(&a, &b);
	if (err != 0)
		return err;
	for (int n = 0;; n++) {
		if (peer_post(&a, n % 2 ? SOFTHCA_WR_RDMA_WRITE : SOFTHCA_WR_RDMA_READ, 1, 0,
			      PEER_BYTES / 2, PEER_BYTES / 2) != 0)
			return -1;
		status = peer_wait(&a, &wc, RIG_TIMEOUT_S);
		if (status != 0) {
			fprintf(stderr, "victim: operation %d: %s\n", n,
				status < 0 ? strerror(-status)
					   : softhca_wc_status_str((uint32_t)status));
			return -1;
		}
		if (n == 4 && write(sock, "x", 1) != 1)
			return -1;
	}
}

static void
killed_in_traffic(void **state)
{
	struct bystanders by;
	char c;

	bystanders_start(&by, &rig);
	for (unsigned int i = 0; i < 12; i++) {
		int sock, status;
		pid_t pid = rig_fork(victim, NULL, &sock);

		assert_int_equal(read(sock, &c, 1), 1);
		usleep(1000 * i);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		close(sock);
	}
	bystanders_stop(&by);
}

/* ---- memory that does not answer ---- */

/* Page faults in this range wait until they are resolved; -1: not permitted here. */
static int
watch_faults(void *mem, size_t bytes)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.range = {(uintptr_t)mem, bytes},
				      .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 &&
	    (ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &reg) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/*
 * A client whose page is not resolved delays no other client. Some kernels fail such an access, and
 * the request fails; others wait, and the access is repeated until the page is there.
 */
static void
silent_memory(void **state)
{
	struct uffdio_zeropage zero;
	struct bystanders by;
	struct softhca_wc wc;
	struct pair p;
	int fd, err;

	pair_open(&p, REMOTE);
	fd = watch_faults(p.mem + 4 * PAGE, 4 * PAGE);
	if (fd < 0)
		print_message("userfaultfd is not allowed here\n");
	bystanders_start(&by, &rig);
	if (fd >= 0) {
		peer_fill(p.a.buf, 8 * PAGE, 77);
		assert_int_equal(peer_post(&p.a, SOFTHCA_WR_RDMA_WRITE, 1, 0, 8 * PAGE, 0), 0);
		err = peer_wait(&p.a, &wc, 0.1);
		zero = (struct uffdio_zeropage){.range = {(uintptr_t)p.mem + 4 * PAGE, 4 * PAGE}};
		assert_int_equal(ioctl(fd, UFFDIO_ZEROPAGE, &zero), 0);
		if (err == -ETIMEDOUT)
			err = peer_wait(&p.a, &wc, RIG_TIMEOUT_S);
		if (err != SOFTHCA_WC_REM_ACCESS_ERR) {
			expect((uint32_t)err, SOFTHCA_WC_SUCCESS);
			assert_true(peer_verify(p.mem, 8 * PAGE, 77));
		}
		close(fd);
	}
	pair_close(&p);
	bystanders_stop(&by);
}

/* The page is never resolved; the process is killed, or exits. */
static int
silent_for_ever(int sock, void *arg)
{
	struct pair p;
	int fd;

	pair_open(&p, REMOTE);
	fd = watch_faults(p.mem, 16 * PAGE);
	if (fd >= 0 && peer_post(&p.a, SOFTHCA_WR_RDMA_READ, 1, 0, 8 * PAGE, 0) != 0)
		return 1;
	usleep(100000);
	if (write(sock, fd >= 0 ? "x" : "-", 1) != 1)
		return 1;
	pause();
	return 0;
}

static void
killed_while_silent(void **state)
{
	struct bystanders by;
	int sock, status;
	pid_t pid;
	char c;

	bystanders_start(&by, &rig);
	pid = rig_fork(silent_for_ever, NULL, &sock);
	assert_int_equal(read(sock, &c, 1), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(sock);
	bystanders_stop(&by);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, nothing_left)
	const struct CMUnitTest tests[] = {
		TEST(stack),
		TEST(file_mapping),
		TEST(environment),
		TEST(reregister),
		TEST(page_list),
		TEST(windows),
		TEST(refusals),
		TEST(bad_memory),
		TEST(unmapped_under_it),
		TEST(unmapped_locally),
		TEST(forks),
		TEST(killed_in_traffic),
		TEST(silent_memory),
		TEST(killed_while_silent),
	};

	cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
	return cmocka_run_group_tests(tests, start, shut_down);
}
