/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory regions end to end: rights of QP, region and window; kinds of memory; re-registration. */

#include "mw_rig.h"

#define PROGRAM "test_regions"

/* --- rights -------------------- */

static void
qp_rights(struct rig *r, uint32_t rights)
{
	struct softhca_qp_attr a = {.qp_access_flags = rights};
	int rc = softhca_modify_qp(r->p->qp[1], &a, SOFTHCA_QP_ACCESS_FLAGS);

	sim_check(r->s, rc == 0, "modify_qp: %s", softhca_last_error(NULL));
}

/* One operation with these rights of the QP and of the key. */
static void
one_right(struct rig *r, uint32_t qp, uint32_t key, uint32_t rkey, const char *what)
{
	static const struct {
		uint32_t opcode, right;
	} ops[] = {
		{SOFTHCA_WR_RDMA_WRITE, WR},
		{SOFTHCA_WR_RDMA_READ, RD},
		{SOFTHCA_WR_ATOMIC_CMP_AND_SWP, AT},
		{SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, AT},
	};

	for (unsigned int i = 0; i < COUNT(ops); i++) {
		uint32_t status = SOFTHCA_WC_SUCCESS, got;

		if (!(qp & ops[i].right))
			status = SOFTHCA_WC_REM_INV_REQ_ERR;
		else if (!(key & ops[i].right))
			status = SOFTHCA_WC_REM_ACCESS_ERR;
		got = rdma(r, ops[i].opcode, va_of(r, 128), rkey, 16);
		sim_check(r->s, got == status, "%s, opcode %u, QP %#x, key %#x: %s", what,
			  ops[i].opcode, qp, key, softhca_wc_status_str(got));
		if (status != SOFTHCA_WC_SUCCESS) {
			reset(r);
			qp_rights(r, qp);
		}
	}
}

static void
rights_in(const struct sim_config *cfg)
{
	struct softhca_mw *mw = NULL;
	struct softhca_mr *mr;
	struct rig r;

	rig_open(&r, cfg, &patient);
	mw = window(&r, SOFTHCA_MW_TYPE_1);
	for (uint32_t qp = 0; qp <= (WR | RD | AT); qp += WR) {
		qp_rights(&r, qp);
		for (uint32_t key = 0; key <= (WR | RD | AT); key += WR) {
			mr = region(&r, 1, r.mem, key | (key & (WR | AT) ? LW : 0));
			one_right(&r, qp, key, mr->rkey, "region");
			softhca_dereg_mr(mr);
			/* the rights of the window, not of the region, which has none */
			expect(&r, bind1(&r, mw, 64, 4096, key), SOFTHCA_WC_SUCCESS, "bind");
			one_right(&r, qp, key, mw->rkey, "window");
		}
	}
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
	reset(&r);
	/* a receive cannot use a region without local write */
	mr = region(&r, 1, r.mem, RD);
	for (unsigned int i = 0; i < 2; i++) {
		struct softhca_sge sge = {va_of(&r, 0), 64, i ? r.mr->lkey : mr->lkey};
		struct softhca_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
		struct softhca_sge src = {(uintptr_t)r.local, 64, r.local_mr->lkey};
		uint32_t want = i ? SOFTHCA_WC_SUCCESS : SOFTHCA_WC_LOC_PROT_ERR;

		sim_check(r.s, softhca_post_recv(r.p->qp[1], &wr, &bad) == 0, "post_recv");
		expect(&r,
		       perform(&r, 0,
			       (struct softhca_send_wr){.opcode = SOFTHCA_WR_SEND,
							.sg_list = &src,
							.num_sge = 1}),
		       i ? SOFTHCA_WC_SUCCESS : SOFTHCA_WC_REM_OP_ERR, "send");
		expect(&r, wait_for(&r, 1), want, "receive");
		reset(&r);
	}
	softhca_dereg_mr(mr);
	rig_close(&r);
}
SIM_TEST(rights)

/* --- registrations -------------------- */

static void
registrations_in(const struct sim_config *cfg)
{
	uint8_t *ro = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct softhca_mr *mr;
	struct rig r;

	rig_open(&r, cfg, &patient);
	/* memory that the process itself cannot write */
	sim_check(r.s, ro != MAP_FAILED, "mmap");
	memset(ro, 0x77, BYTES);
	sim_check(r.s, mprotect(ro, BYTES, PROT_READ) == 0, "mprotect");
	mr = region(&r, 1, ro, RD);
	expect(&r, rdma(&r, SOFTHCA_WR_RDMA_READ, (uintptr_t)ro + 5, mr->rkey, BYTES - 5),
	       SOFTHCA_WC_SUCCESS, "read");
	sim_check(r.s, holds(r.local, BYTES - 5, 0x77), "wrong bytes");
	expect(&r, put(&r, (uintptr_t)ro, mr->rkey, 8, 1), SOFTHCA_WC_REM_ACCESS_ERR, "write");
	reset(&r);
	softhca_dereg_mr(mr);
	munmap(ro, BYTES);
	/* zero-based, not at the start of a page */
	mr = softhca_reg_mr(r.s->side[1].pd, r.mem + 100, 30000,
			    LW | WR | RD | ZERO | SOFTHCA_ACCESS_HUGETLB |
				    SOFTHCA_ACCESS_OPTIONAL_RANGE);
	sim_check(r.s, mr != NULL && mr->addr == 0, "zero-based: %s", softhca_last_error(NULL));
	memset(r.mem, 0, BYTES);
	expect(&r, put(&r, 0, mr->rkey, 30000, 0x33), SOFTHCA_WC_SUCCESS, "write");
	sim_check(r.s, holds(r.mem + 100, 30000, 0x33) && r.mem[99] == 0 && r.mem[30100] == 0,
		  "wrong bytes");
	expect(&r, put(&r, 29993, mr->rkey, 8, 1), SOFTHCA_WC_REM_ACCESS_ERR, "behind it");
	reset(&r);
	expect(&r, put(&r, va_of(&r, 100), mr->rkey, 8, 1), SOFTHCA_WC_REM_ACCESS_ERR, "address");
	reset(&r);
	softhca_dereg_mr(mr);
	sim_check(r.s,
		  softhca_reg_mr(r.s->side[1].pd, r.mem, 8, SOFTHCA_ACCESS_ON_DEMAND) == NULL &&
			  errno == EOPNOTSUPP,
		  "on-demand paging");
	sim_check(r.s, softhca_reg_mr(r.s->side[1].pd, r.mem, 8, WR) == NULL && errno == EINVAL,
		  "remote without local write");
	rig_close(&r);
}
SIM_TEST(registrations)

/* Work requests and the peer use an address that is not the address in memory. */
static void
iova_in(const struct sim_config *cfg)
{
	const uint64_t iova = UINT64_MAX - 0xffff + 100; /* the region ends below 2^64 */
	struct softhca_mr *mr, *local;
	struct softhca_mw *mw;
	struct rig r;

	rig_open(&r, cfg, &patient);
	mr = softhca_reg_mr_iova(r.s->side[1].pd, r.mem + 100, 40000, iova,
				 LW | WR | RD | AT | BIND);
	local = softhca_reg_mr_iova(r.s->side[0].pd, r.local, BYTES, 0, LW);
	sim_check(r.s, mr != NULL && local != NULL, "reg_mr_iova: %s", softhca_last_error(NULL));
	sim_check(r.s, mr->addr == iova && mr->length == 40000, "MR");
	memset(r.mem, 0, BYTES);
	expect(&r, put(&r, iova, mr->rkey, 40000, 0x33), SOFTHCA_WC_SUCCESS, "write");
	sim_check(r.s, holds(r.mem + 100, 40000, 0x33) && r.mem[99] == 0 && r.mem[40100] == 0,
		  "wrong bytes");
	expect(&r, rdma(&r, SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, iova + 4, mr->rkey, 8),
	       SOFTHCA_WC_SUCCESS, "atomic");
	sim_check(r.s, r.mem[104] == 0x34, "not added");
	/* and as the local end of a READ */
	{
		struct softhca_sge sge = {5000, 20000, local->lkey};
		struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_RDMA_READ,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .wr.rdma = {iova + 1000, mr->rkey}};

		memset(r.local, 0, BYTES);
		expect(&r, perform(&r, 0, wr), SOFTHCA_WC_SUCCESS, "read");
		sim_check(r.s, holds(r.local + 5000, 20000, 0x33) && r.local[4999] == 0, "bytes");
	}
	expect(&r, put(&r, va_of(&r, 100), mr->rkey, 8, 1), SOFTHCA_WC_REM_ACCESS_ERR, "memory");
	reset(&r);
	expect(&r, put(&r, iova - 1, mr->rkey, 8, 1), SOFTHCA_WC_REM_ACCESS_ERR, "before it");
	reset(&r);
	mw = window(&r, SOFTHCA_MW_TYPE_1);
	{
		struct softhca_mw_bind b = {SIGNAL, SIGNAL, {mr, iova + 5000, 100, WR}};

		sim_check(r.s, softhca_bind_mw(r.p->qp[1], mw, &b) == 0, "bind_mw");
		expect(&r, wait_for(&r, 1), SOFTHCA_WC_SUCCESS, "bind");
	}
	expect(&r, put(&r, iova + 5000, mw->rkey, 100, 0x44), SOFTHCA_WC_SUCCESS, "window");
	sim_check(r.s, holds(r.mem + 5100, 100, 0x44) && r.mem[5099] == 0x33, "window's bytes");
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
	/* kept with other rights; a new translation has its own */
	sim_check(r.s,
		  softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW | WR) == 0,
		  "rereg_mr: %s", softhca_last_error(NULL));
	expect(&r, put(&r, iova, mr->rkey, 8, 0x55), SOFTHCA_WC_SUCCESS, "kept");
	sim_check(r.s,
		  softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, r.mem, 100, 0) ==
			  0,
		  "rereg_mr: %s", softhca_last_error(NULL));
	sim_check(r.s, mr->addr == va_of(&r, 0), "address %#llx", (unsigned long long)mr->addr);
	expect(&r, put(&r, va_of(&r, 0), mr->rkey, 8, 0x66), SOFTHCA_WC_SUCCESS, "new address");
	softhca_dereg_mr(mr);
	softhca_dereg_mr(local);
	sim_check(r.s,
		  softhca_reg_mr_iova(r.s->side[1].pd, r.mem, 8, 100, LW) == NULL &&
			  errno == EINVAL,
		  "another offset in the page");
	rig_close(&r);
}
SIM_TEST(iova)

static void
length_0_in(const struct sim_config *cfg)
{
	struct softhca_mr *mr;
	struct rig r;

	rig_open(&r, cfg, &patient);
	mr = softhca_reg_mr(r.s->side[1].pd, NULL, 0, LW | WR | RD | BIND);
	sim_check(r.s, mr != NULL && mr->length == 0, "reg_mr: %s", softhca_last_error(NULL));
	expect(&r, put(&r, 0, mr->rkey, 0, 0), SOFTHCA_WC_SUCCESS, "write");
	expect(&r, rdma(&r, SOFTHCA_WR_RDMA_READ, 0, mr->rkey, 0), SOFTHCA_WC_SUCCESS, "read");
	expect(&r, put(&r, 0, mr->rkey, 1, 0), SOFTHCA_WC_REM_ACCESS_ERR, "a byte");
	reset(&r);
	expect(&r, rdma(&r, SOFTHCA_WR_RDMA_READ, 0, mr->rkey, 1), SOFTHCA_WC_REM_ACCESS_ERR,
	       "a byte");
	reset(&r);
	sim_check(r.s,
		  softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, r.mem, BYTES,
				   0) == 0,
		  "rereg_mr: %s", softhca_last_error(NULL));
	expect(&r, put(&r, va_of(&r, 0), mr->rkey, 8, 0x55), SOFTHCA_WC_SUCCESS, "memory");
	sim_check(r.s,
		  softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, r.mem, 0, 0) == 0,
		  "rereg_mr: %s", softhca_last_error(NULL));
	expect(&r, put(&r, va_of(&r, 0), mr->rkey, 8, 0x66), SOFTHCA_WC_REM_ACCESS_ERR, "gone");
	reset(&r);
	sim_check(r.s, softhca_dereg_mr(mr) == 0, "dereg_mr");
	rig_close(&r);
}
SIM_TEST(length_0)

/* --- null regions -------------------- */

#define PIECE 3000u

/* PIECE bytes of memory, of the null region at any address, and of memory again */
static struct softhca_send_wr
around_null(struct rig *r, uint32_t opcode, uint64_t va, uint32_t key,
	    const struct softhca_mr *null, struct softhca_sge sge[3])
{
	sge[0] = (struct softhca_sge){(uintptr_t)r->local, PIECE, r->local_mr->lkey};
	sge[1] = (struct softhca_sge){UINT64_MAX - PIECE, PIECE, null->lkey};
	sge[2] = (struct softhca_sge){(uintptr_t)r->local + PIECE, PIECE, r->local_mr->lkey};
	return (struct softhca_send_wr){.opcode = opcode,
					.sg_list = sge,
					.num_sge = 3,
					.wr.rdma = {va, key}};
}

/* Zeros leave in WRITE and SEND; a READ and an atomic store only the bytes next to it. */
static void
null_at_requester(struct rig *r, const struct softhca_mr *mr, const struct softhca_mr *null)
{
	struct softhca_sge sge[3], one = {0, 8, null->lkey};
	struct softhca_send_wr wr;

	memset(r->local, 0x11, BYTES);
	memset(r->mem, 0x22, BYTES);
	wr = around_null(r, SOFTHCA_WR_RDMA_WRITE, va_of(r, 0), mr->rkey, null, sge);
	expect(r, perform(r, 0, wr), SOFTHCA_WC_SUCCESS, "write");
	sim_check(r->s,
		  holds(r->mem, PIECE, 0x11) && holds(r->mem + PIECE, PIECE, 0) &&
			  holds(r->mem + 2 * PIECE, PIECE, 0x11) && r->mem[3 * PIECE] == 0x22,
		  "written");
	memset(r->mem, 0x33, BYTES);
	memset(r->mem + PIECE, 0x44, PIECE);
	wr = around_null(r, SOFTHCA_WR_RDMA_READ, va_of(r, 0), mr->rkey, null, sge);
	expect(r, perform(r, 0, wr), SOFTHCA_WC_SUCCESS, "read");
	sim_check(r->s, holds(r->local, 2 * PIECE, 0x33) && r->local[2 * PIECE] == 0x11, "read");
	wr = (struct softhca_send_wr){
		.opcode = SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
		.sg_list = &one,
		.num_sge = 1,
		.wr.atomic = {.remote_addr = va_of(r, 0), .rkey = mr->rkey, .compare_add = 1}};
	expect(r, perform(r, 0, wr), SOFTHCA_WC_SUCCESS, "atomic");
	sim_check(r->s, r->mem[0] == 0x34, "not added");
}

/* A message of three pieces, of which the second is received by the null region. */
static void
null_at_responder(struct rig *r, const struct softhca_mr *mr, const struct softhca_mr *null)
{
	struct softhca_sge to[3] = {{va_of(r, 0), PIECE, mr->lkey},
				    {0, PIECE, null->lkey},
				    {va_of(r, PIECE), PIECE, mr->lkey}};
	struct softhca_sge from = {(uintptr_t)r->local, 3 * PIECE, r->local_mr->lkey};
	struct softhca_recv_wr recv = {.sg_list = to, .num_sge = 3}, *bad;

	for (unsigned int i = 0; i < 3; i++)
		memset(r->local + i * PIECE, 0x51 + (int)i, PIECE);
	memset(r->mem, 0, BYTES);
	sim_check(r->s, softhca_post_recv(r->p->qp[1], &recv, &bad) == 0, "post_recv");
	expect(r,
	       perform(r, 0,
		       (struct softhca_send_wr){.opcode = SOFTHCA_WR_SEND,
						.sg_list = &from,
						.num_sge = 1}),
	       SOFTHCA_WC_SUCCESS, "send");
	expect(r, wait_for(r, 1), SOFTHCA_WC_SUCCESS, "receive");
	sim_check(r->s, r->wc.byte_len == 3 * PIECE, "%u bytes", r->wc.byte_len);
	sim_check(r->s,
		  holds(r->mem, PIECE, 0x51) && holds(r->mem + PIECE, PIECE, 0x53) &&
			  r->mem[2 * PIECE] == 0,
		  "received");
}

static void
null_in(const struct sim_config *cfg)
{
	struct softhca_mr *mr, *null[2];
	struct softhca_mw *mw;
	struct softhca_pd *pd;
	struct rig r;

	rig_open(&r, cfg, &patient);
	mr = region(&r, 1, r.mem, LW | WR | RD | AT);
	for (unsigned int i = 0; i < 2; i++) {
		null[i] = softhca_alloc_null_mr(r.s->side[i].pd);
		sim_check(r.s, null[i] != NULL, "alloc_null_mr: %s", softhca_last_error(NULL));
	}
	sim_check(r.s, null[0]->addr == 0 && null[0]->length == UINT64_MAX, "MR");
	null_at_requester(&r, mr, null[0]);
	null_at_responder(&r, mr, null[1]);
	/* not for the peer, not for a window, not for another PD; it does not change */
	expect(&r, put(&r, 0, null[1]->rkey, 8, 1), SOFTHCA_WC_REM_ACCESS_ERR, "write");
	reset(&r);
	expect(&r, rdma(&r, SOFTHCA_WR_RDMA_READ, 0, null[1]->rkey, 8), SOFTHCA_WC_REM_ACCESS_ERR,
	       "read");
	reset(&r);
	mw = window(&r, SOFTHCA_MW_TYPE_1);
	{
		struct softhca_mw_bind b = {SIGNAL, SIGNAL, {null[1], 0, 100, RD}};

		sim_check(r.s, softhca_bind_mw(r.p->qp[1], mw, &b) == 0, "bind_mw");
		expect(&r, wait_for(&r, 1), SOFTHCA_WC_MW_BIND_ERR, "bind");
		reset(&r);
	}
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
	sim_check(r.s,
		  softhca_rereg_mr(null[1], SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW) ==
			  -EINVAL,
		  "rereg_mr");
	sim_check(r.s, softhca_dereg_mr(null[0]) == 0 && softhca_dereg_mr(null[1]) == 0, "free");
	pd = softhca_alloc_pd(r.s->side[0].ctx);
	null[0] = softhca_alloc_null_mr(pd);
	sim_check(r.s, null[0] != NULL && softhca_dealloc_pd(pd) == -EBUSY, "PD");
	{
		struct softhca_sge sge[3];
		struct softhca_send_wr wr = around_null(&r, SOFTHCA_WR_RDMA_WRITE, va_of(&r, 0),
							mr->rkey, null[0], sge);

		expect(&r, perform(&r, 0, wr), SOFTHCA_WC_LOC_PROT_ERR, "other PD");
		reset(&r);
	}
	sim_check(r.s, softhca_dereg_mr(null[0]) == 0 && softhca_dealloc_pd(pd) == 0, "free");
	sim_check(r.s, softhca_dereg_mr(mr) == 0, "dereg_mr");
	rig_close(&r);
}
SIM_TEST(null)

/* Unmapped memory is refused at registration, not by the engine. */
static void
holes_in(const struct sim_config *cfg)
{
	const size_t page = 4096;
	uint8_t *mem =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *list[2] = {mem + page, mem};
	struct softhca_mr *mr;
	struct softhca_pd *pd;
	struct rig r;

	rig_open(&r, cfg, &patient);
	pd = r.s->side[1].pd;
	sim_check(r.s, mem != MAP_FAILED && munmap(mem + page, page) == 0, "mmap");
#define REFUSED(call, err) \
	do { \
		errno = 0; \
		sim_check(r.s, (call) == NULL && errno == (err), #call ": %d", errno); \
	} while (0)
	REFUSED(softhca_reg_mr(pd, mem, 3 * page, LW), EFAULT);
	REFUSED(softhca_reg_mr(pd, mem + page - 1, 2, LW), EFAULT);
	REFUSED(softhca_reg_mr(pd, mem + 2 * page - 1, 2, LW), EFAULT);
	REFUSED(softhca_reg_mr(pd, NULL, 1, LW), EFAULT);
	REFUSED(softhca_reg_mr(pd, (void *)(UINTPTR_MAX - 10), 11, LW), EFAULT);
	REFUSED(softhca_reg_mr_pages(pd, 0x1000, 2 * page, page, list, 2, LW), EFAULT);
	/* the list would not fit into memory */
	REFUSED(softhca_reg_mr_pages(pd, 0x1000, page, page, list, UINT64_C(1) << 60, LW), EINVAL);
	REFUSED(softhca_reg_mr_pages(pd, 0x1001, 2 * page, page, list, 2, LW), EINVAL);
	REFUSED(softhca_reg_mr_pages(pd, 0x1000, page, 0, list, 1, LW), EINVAL);
	REFUSED(softhca_reg_mr_pages(pd, 0x1000, page, 6000, list, 1, LW), EINVAL);
#undef REFUSED
	mr = softhca_reg_mr(pd, mem + 2 * page, page, LW | WR);
	sim_check(r.s, mr != NULL, "reg_mr: %s", softhca_last_error(NULL));
	sim_check(r.s,
		  softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, mem, 2 * page,
				   0) == -EFAULT,
		  "rereg");
	softhca_dereg_mr(mr);
	list[0] = mem + 2 * page;
	mr = softhca_reg_mr_pages(pd, 0x1000, 2 * page, page, list, 2, LW | WR);
	sim_check(r.s, mr != NULL, "pages: %s", softhca_last_error(NULL));
	expect(&r, put(&r, 0x1000, mr->rkey, 2 * page, 0x44), SOFTHCA_WC_SUCCESS, "write");
	sim_check(r.s, holds(mem, page, 0x44) && holds(mem + 2 * page, page, 0x44), "wrong bytes");
	softhca_dereg_mr(mr);
	rig_close(&r);
	munmap(mem, page);
	munmap(mem + 2 * page, page);
}
SIM_TEST(holes)

static void
rereg_in(const struct sim_config *cfg)
{
	struct softhca_mw *mw;
	struct softhca_mr *mr;
	struct softhca_pd *pd;
	uint8_t *second;
	struct rig r;
	uint32_t old;

	rig_open(&r, cfg, &patient);
	second = memory(&r, 2 * BYTES);
	mr = region(&r, 1, r.mem, LW | WR | RD);
	/* translation: the old key is invalid, the new one refers to the new memory */
	old = mr->rkey;
	sim_check(r.s,
		  softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, second + 7,
				   BYTES + 9000, 0) == 0,
		  "rereg_mr: %s", softhca_last_error(NULL));
	sim_check(r.s, mr->addr == (uintptr_t)second + 7 && mr->length == BYTES + 9000, "MR");
	expect(&r, put(&r, mr->addr + BYTES, mr->rkey, 9000, 0x44), SOFTHCA_WC_SUCCESS, "new");
	sim_check(r.s, holds(second + 7 + BYTES, 9000, 0x44), "wrong bytes");
	expect(&r, put(&r, va_of(&r, 0), old, 8, 1), SOFTHCA_WC_REM_ACCESS_ERR, "old key");
	reset(&r);
	/* access: the same key with other rights */
	old = mr->rkey;
	sim_check(r.s, softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RD) == 0,
		  "rereg_mr: %s", softhca_last_error(NULL));
	sim_check(r.s, mr->rkey == old, "another key");
	expect(&r, rdma(&r, SOFTHCA_WR_RDMA_READ, mr->addr, mr->rkey, 100), SOFTHCA_WC_SUCCESS,
	       "read");
	expect(&r, put(&r, mr->addr, mr->rkey, 8, 1), SOFTHCA_WC_REM_ACCESS_ERR, "write");
	reset(&r);
	/* PD: the QP's requests cannot use the key any more, until it is changed back */
	pd = softhca_alloc_pd(r.s->side[1].ctx);
	sim_check(r.s, softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) == 0,
		  "rereg_mr: %s", softhca_last_error(NULL));
	sim_check(r.s, mr->pd == pd && softhca_dealloc_pd(pd) == -EBUSY, "PD");
	expect(&r, rdma(&r, SOFTHCA_WR_RDMA_READ, mr->addr, mr->rkey, 100),
	       SOFTHCA_WC_REM_ACCESS_ERR, "other PD");
	reset(&r);
	sim_check(r.s,
		  softhca_rereg_mr(mr,
				   SOFTHCA_REREG_MR_CHANGE_PD | SOFTHCA_REREG_MR_CHANGE_ACCESS |
					   SOFTHCA_REREG_MR_CHANGE_TRANSLATION,
				   r.s->side[1].pd, r.mem, BYTES, LW | WR | BIND) == 0,
		  "rereg_mr: %s", softhca_last_error(NULL));
	sim_check(r.s, softhca_dealloc_pd(pd) == 0, "dealloc_pd");
	expect(&r, put(&r, va_of(&r, 0), mr->rkey, 8, 0x55), SOFTHCA_WC_SUCCESS, "all changed");
	/* a failed call changes nothing */
	const struct {
		uint32_t flags;
		struct softhca_pd *pd;
		void *addr;
		uint64_t length;
		uint32_t access;
	} bad[] = {
		{0, NULL, NULL, 0, 0},
		{1u << 3, NULL, NULL, 0, 0},
		{SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)UINTPTR_MAX, 100, 0},
		{SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)(UINTPTR_MAX / 2 + 1), 8, 0},
		{SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, second, 1ull << 60, 0},
		{SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, WR},
		{SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, SOFTHCA_ACCESS_ON_DEMAND},
		{SOFTHCA_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0},
		{SOFTHCA_REREG_MR_CHANGE_PD, r.s->side[0].pd, NULL, 0, 0},
	};

	for (unsigned int i = 0; i < COUNT(bad); i++) {
		sim_check(r.s,
			  softhca_rereg_mr(mr, bad[i].flags, bad[i].pd, bad[i].addr, bad[i].length,
					   bad[i].access) < 0,
			  "case %u is not refused", i);
		expect(&r, put(&r, va_of(&r, i), mr->rkey, 8, 0x56), SOFTHCA_WC_SUCCESS,
		       "as before");
	}
	/* nor with a window bound to it */
	mw = window(&r, SOFTHCA_MW_TYPE_1);
	{
		struct softhca_mw_bind b = {SIGNAL, SIGNAL, {mr, va_of(&r, 0), 100, WR}};

		sim_check(r.s, softhca_bind_mw(r.p->qp[1], mw, &b) == 0, "bind_mw");
		expect(&r, wait_for(&r, 1), SOFTHCA_WC_SUCCESS, "bind");
	}
	sim_check(r.s,
		  softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RD) == -EBUSY,
		  "with a window");
	expect(&r, put(&r, va_of(&r, 0), mr->rkey, 8, 0x57), SOFTHCA_WC_SUCCESS, "as before");
	expect(&r, put(&r, va_of(&r, 0), mw->rkey, 8, 0x58), SOFTHCA_WC_SUCCESS, "window");
	sim_check(r.s, softhca_dealloc_mw(mw) == 0 && softhca_dereg_mr(mr) == 0, "free");
	rig_close(&r);
	free(second);
}
SIM_TEST(rereg)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rights), cmocka_unit_test(registrations),
		cmocka_unit_test(iova),	  cmocka_unit_test(length_0),
		cmocka_unit_test(null),	  cmocka_unit_test(holes),
		cmocka_unit_test(rereg),
	};

	return sim_main_of(tests, COUNT(tests));
}
