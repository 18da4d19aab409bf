/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory windows of both types, and invalidation from both ends: end to end, on a bad link, and
 * while a peer keeps writing.
 */

#include "mw_rig.h"

#define PROGRAM "test_mw"

/* --- type 1 -------------------- */

static void
type1_in(const struct sim_config *cfg)
{
	struct softhca_mw *mw;
	struct rig r;
	uint32_t old;

	rig_open(&r, cfg, &patient);
	mw = window(&r, SOFTHCA_MW_TYPE_1);
	expect(&r, put(&r, va_of(&r, 1000), mw->rkey, 8, 1), SOFTHCA_WC_REM_ACCESS_ERR, "unbound");
	reset(&r);
	expect(&r, bind1(&r, mw, 1000, 5000, LW | WR | RD), SOFTHCA_WC_SUCCESS, "bind");
	sim_check(r.s, r.wc.opcode == SOFTHCA_WC_BIND_MW, "opcode %u", r.wc.opcode);
	expect(&r, put(&r, va_of(&r, 1000), mw->rkey, 5000, 0x11), SOFTHCA_WC_SUCCESS, "write");
	sim_check(r.s, holds(r.mem + 1000, 5000, 0x11) && r.mem[999] == 0 && r.mem[6000] == 0,
		  "wrong bytes");
	memset(r.local, 0, 5000);
	expect(&r, rdma(&r, SOFTHCA_WR_RDMA_READ, va_of(&r, 1000), mw->rkey, 5000),
	       SOFTHCA_WC_SUCCESS, "read");
	sim_check(r.s, holds(r.local, 5000, 0x11), "wrong bytes read");
	sim_check(r.s, softhca_dereg_mr(r.mr) == -EBUSY, "a bound region is deregistered");
	expect(&r, put(&r, va_of(&r, 1000), mw->rkey, 8, 2), SOFTHCA_WC_SUCCESS, "after -EBUSY");
	expect(&r, put(&r, va_of(&r, 999), mw->rkey, 8, 3), SOFTHCA_WC_REM_ACCESS_ERR, "before it");
	reset(&r);
	expect(&r, put(&r, va_of(&r, 5996), mw->rkey, 8, 3), SOFTHCA_WC_REM_ACCESS_ERR, "behind");
	reset(&r);
	/* bound again without unbinding: the old key is invalid */
	old = mw->rkey;
	expect(&r, bind1(&r, mw, 20000, 100, RD | ZERO), SOFTHCA_WC_SUCCESS, "bind again");
	sim_check(r.s, old != mw->rkey, "the same key");
	expect(&r, rdma(&r, SOFTHCA_WR_RDMA_READ, 50, mw->rkey, 50), SOFTHCA_WC_SUCCESS, "read");
	expect(&r, put(&r, 50, mw->rkey, 8, 4), SOFTHCA_WC_REM_ACCESS_ERR, "write");
	reset(&r);
	expect(&r, put(&r, va_of(&r, 1000), old, 8, 4), SOFTHCA_WC_REM_ACCESS_ERR, "old key");
	reset(&r);
	expect(&r, bind1(&r, mw, 0, 0, 0), SOFTHCA_WC_SUCCESS, "unbind");
	expect(&r, rdma(&r, SOFTHCA_WR_RDMA_READ, 50, mw->rkey, 8), SOFTHCA_WC_REM_ACCESS_ERR,
	       "unbound");
	reset(&r);
	expect(&r, bind1(&r, mw, 0, 100, RD), SOFTHCA_WC_SUCCESS, "bind");
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw: %s", softhca_last_error(NULL));
	sim_check(r.s,
		  sim_counter(r.s, 1, "req_local_ops") == 4 &&
			  sim_counter(r.s, 1, "req_bind_error") == 0,
		  "counters");
	rig_close(&r);
}
SIM_TEST(type1)

/* --- type 2 -------------------- */

static void
post_recv(struct rig *r, unsigned int side)
{
	struct softhca_recv_wr wr = {0}, *bad;

	sim_check(r->s, softhca_post_recv(r->p->qp[side], &wr, &bad) == 0, "post_recv");
}

static uint32_t
send_inv(struct rig *r, uint32_t key)
{
	post_recv(r, 1);
	return perform(r, 0,
		       (struct softhca_send_wr){.opcode = SOFTHCA_WR_SEND_WITH_INV,
						.invalidate_rkey = key});
}

static void
type2_in(const struct sim_config *cfg)
{
	struct softhca_mw *mw;
	struct rig r, other;
	struct sim_pair *first;

	rig_open(&r, cfg, &patient);
	other = r;
	other.p = sim_pair_open(r.s, &patient);
	first = r.p;
	mw = window(&r, SOFTHCA_MW_TYPE_2);
	for (unsigned int round = 0; round < 4; round++) {
		uint32_t flags = round & 1 ? ZERO : LW | SOFTHCA_ACCESS_OPTIONAL_RANGE;
		uint64_t va = round & 1 ? 0 : va_of(&r, 4000);

		expect(&r, bind2(&r, mw, 4000, 8192, WR | RD | AT | flags), SOFTHCA_WC_SUCCESS,
		       "bind");
		memset(r.mem, 0, BYTES);
		expect(&r, put(&r, va, mw->rkey, 8192, 0x21), SOFTHCA_WC_SUCCESS, "write");
		sim_check(r.s, holds(r.mem + 4000, 8192, 0x21) && r.mem[3999] == 0, "bytes");
		expect(&r, rdma(&r, SOFTHCA_WR_RDMA_READ, va, mw->rkey, 8192), SOFTHCA_WC_SUCCESS,
		       "read");
		expect(&r, rdma(&r, SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, va, mw->rkey, 8),
		       SOFTHCA_WC_SUCCESS, "atomic");
		sim_check(r.s, r.mem[4000] == 0x22, "not added");
		/* usable by this QP only */
		expect(&r, put(&other, va, mw->rkey, 8, 9), SOFTHCA_WC_REM_ACCESS_ERR, "other QP");
		sim_pair_reset(other.p);
		if (round < 2) {
			expect(&r, invalidate(&r, mw->rkey), SOFTHCA_WC_SUCCESS, "local_inv");
			sim_check(r.s, r.wc.opcode == SOFTHCA_WC_LOCAL_INV, "opcode");
		} else {
			expect(&r, send_inv(&r, mw->rkey), SOFTHCA_WC_SUCCESS, "send_inv");
			expect(&r, wait_for(&r, 1), SOFTHCA_WC_SUCCESS, "receive");
			sim_check(r.s,
				  r.wc.wc_flags & SOFTHCA_WC_WITH_INV &&
					  r.wc.invalidated_rkey == mw->rkey,
				  "key %#x instead of %#x", r.wc.invalidated_rkey, mw->rkey);
		}
		expect(&r, put(&r, va, mw->rkey, 8, 9), SOFTHCA_WC_REM_ACCESS_ERR, "invalid");
		sim_check(r.s, r.mem[4001] == 0x21, "written through a dead window");
		reset(&r);
	}
	/* resetting the QP invalidates its windows; they can be freed */
	expect(&r, bind2(&r, mw, 0, 100, WR), SOFTHCA_WC_SUCCESS, "bind");
	reset(&r);
	expect(&r, put(&r, va_of(&r, 0), mw->rkey, 8, 9), SOFTHCA_WC_REM_ACCESS_ERR, "new life");
	sim_check(r.s, softhca_dereg_mr(r.mr) == -EBUSY, "a bound region is deregistered");
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw: %s", softhca_last_error(NULL));
	r.p = first;
	sim_pair_close(other.p);
	rig_close(&r);
}
SIM_TEST(type2)

/* --- UC -------------------- */

/* The same rig with QPs of another service. */
static void
open_service(struct rig *r, struct sim_pair *p, uint32_t type)
{
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};

	*p = *r->p;
	for (unsigned int i = 0; i < 2; i++) {
		qa.send_cq = qa.recv_cq = p->cq[i];
		p->qp[i] = softhca_create_qp(r->s->side[i].pd, &qa);
		sim_check(r->s, p->qp[i] != NULL, "create_qp: %s", softhca_last_error(NULL));
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct softhca_qp_attr a = {
			.qp_state = SOFTHCA_QPS_INIT,
			.port_num = 1,
			.qp_access_flags = WR,
			.path_mtu = SOFTHCA_MTU_1024,
			.dest_qp_num = p->qp[1 - i]->qp_num,
			.ah_attr = {.port_num = 1,
				    .is_global = 1,
				    .hop_limit = 64,
				    .dgid.raw = {[10] = 0xff, 0xff, 10, 77, 0, (uint8_t)(2 - i)}},
		};
		int rc = softhca_modify_qp(p->qp[i], &a,
					   SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX |
						   SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS);

		a.qp_state = SOFTHCA_QPS_RTR;
		if (rc == 0)
			rc = softhca_modify_qp(p->qp[i], &a,
					       SOFTHCA_QP_STATE | SOFTHCA_QP_AV |
						       SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN |
						       SOFTHCA_QP_RQ_PSN);
		a.qp_state = SOFTHCA_QPS_RTS;
		if (rc == 0)
			rc = softhca_modify_qp(p->qp[i], &a, SOFTHCA_QP_STATE | SOFTHCA_QP_SQ_PSN);
		sim_check(r->s, rc == 0, "modify_qp: %s", softhca_last_error(NULL));
	}
}

/* req_tx writes the completions of UC; a failed bind stops only the send queue. */
static void
uc_in(const struct sim_config *cfg)
{
	struct softhca_sge sge;
	struct softhca_send_wr data, bind, inv, bad;
	struct softhca_mw *mw;
	struct sim_pair uc, *rc;
	struct rig r;

	rig_open(&r, cfg, &patient);
	rc = r.p;
	open_service(&r, &uc, SOFTHCA_QPT_UC);
	r.p = &uc;
	mw = window(&r, SOFTHCA_MW_TYPE_2);
	sge = (struct softhca_sge){(uintptr_t)r.mem, 3000, r.mr->lkey};
	data = (struct softhca_send_wr){
		.opcode = SOFTHCA_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {uc.region[0].va, uc.region[0].mr->rkey},
	};
	for (unsigned int round = 0; round < 8; round++) {
		bool alone = round & 1;

		bind = bind_wr(&r, mw, 100, 5000, WR);
		inv = (struct softhca_send_wr){.opcode = SOFTHCA_WR_LOCAL_INV,
					       .invalidate_rkey = mw->rkey};
		if (!alone)
			post_on(&r, uc.qp[1], &data);
		post_on(&r, uc.qp[1], &bind);
		if (!alone)
			expect(&r, wait_for(&r, 1), SOFTHCA_WC_SUCCESS, "write");
		expect(&r, wait_for(&r, 1), SOFTHCA_WC_SUCCESS, "bind");
		sim_check(r.s, r.wc.opcode == SOFTHCA_WC_BIND_MW, "order");
		memset(r.mem, 0, BYTES);
		expect(&r, put(&r, va_of(&r, 100), mw->rkey, 5000, 0x61), SOFTHCA_WC_SUCCESS,
		       "through it");
		sim_settle(r.s);
		sim_check(r.s, holds(r.mem + 100, 5000, 0x61), "wrong bytes");
		post_on(&r, uc.qp[1], &inv);
		if (!alone)
			post_on(&r, uc.qp[1], &data);
		expect(&r, wait_for(&r, 1), SOFTHCA_WC_SUCCESS, "invalidate");
		if (!alone)
			expect(&r, wait_for(&r, 1), SOFTHCA_WC_SUCCESS, "write");
	}
	/* a write of the peer finds no window: dropped, as UC does */
	expect(&r, put(&r, va_of(&r, 100), mw->rkey, 100, 0x62), SOFTHCA_WC_SUCCESS, "late write");
	sim_settle(r.s);
	sim_check(r.s, holds(r.mem + 100, 5000, 0x61), "written through a dead window");
	bad = bind_wr(&r, mw, 100, BYTES, WR);
	post_on(&r, uc.qp[1], &data);
	post_on(&r, uc.qp[1], &bad);
	post_on(&r, uc.qp[1], &data);
	expect(&r, wait_for(&r, 1), SOFTHCA_WC_SUCCESS, "before");
	expect(&r, wait_for(&r, 1), SOFTHCA_WC_MW_BIND_ERR, "bad bind");
	expect(&r, wait_for(&r, 1), SOFTHCA_WC_WR_FLUSH_ERR, "behind");
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
	sim_check(r.s, softhca_destroy_qp(uc.qp[0]) == 0 && softhca_destroy_qp(uc.qp[1]) == 0,
		  "destroy_qp");
	r.p = rc;
	rig_close(&r);
}
SIM_TEST(uc)

/* --- refused requests -------------------- */

/* A request that fails, with one before it that succeeds and one after it that is flushed. */
static void
expect_bad(struct rig *r, unsigned int side, struct softhca_send_wr bad, const char *what)
{
	struct softhca_sge sge = {(uintptr_t)r->mem, 8, r->mr->lkey};
	struct softhca_send_wr good = {
		.opcode = SOFTHCA_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {r->p->region[0].va, r->p->region[0].mr->rkey},
	};
	struct softhca_send_wr behind = good;

	post_on(r, r->p->qp[side], &good);
	post_on(r, r->p->qp[side], &bad);
	post_on(r, r->p->qp[side], &behind);
	expect(r, wait_for(r, side), SOFTHCA_WC_SUCCESS, what);
	expect(r, wait_for(r, side), SOFTHCA_WC_MW_BIND_ERR, what);
	expect(r, wait_for(r, side), SOFTHCA_WC_WR_FLUSH_ERR, what);
	reset(r);
}

static void
bad_binds_in(const struct sim_config *cfg)
{
	struct softhca_mw *mw;
	struct softhca_mr *plain, *reads, *foreign;
	struct softhca_send_wr wr;
	struct softhca_send_wr *bad;
	struct softhca_pd *other;
	struct rig r;

	rig_open(&r, cfg, &patient);
	other = softhca_alloc_pd(r.s->side[1].pd->context);
	foreign = softhca_reg_mr(other, r.mem, BYTES, LW | WR | RD | BIND);
	plain = region(&r, 1, r.mem, LW | WR | RD);
	reads = region(&r, 1, r.mem, RD | BIND);
	mw = window(&r, SOFTHCA_MW_TYPE_2);
#define BAD(change) \
	wr = bind_wr(&r, mw, 100, 1000, WR); \
	change; \
	expect_bad(&r, 1, wr, #change);
	BAD(wr.bind_mw.bind_info.mr = plain)
	BAD(wr.bind_mw.bind_info.mr = reads)
	BAD(wr.bind_mw.bind_info.addr--; wr.bind_mw.bind_info.length = BYTES)
	BAD(wr.bind_mw.bind_info.addr += BYTES)
	BAD(wr.bind_mw.bind_info.length = BYTES)
	BAD(wr.bind_mw.bind_info.length = 0)
	BAD(wr.bind_mw.bind_info.length = UINT64_MAX)
	BAD(wr.bind_mw.bind_info.mr = foreign)
#undef BAD
	/* only the tag of its new key says something: which window it is, the window says */
	wr = bind_wr(&r, mw, 100, 1000, WR);
	wr.bind_mw.rkey ^= 1u << 20;
	expect(&r, perform(&r, 1, wr), SOFTHCA_WC_SUCCESS, "bind");
	wr = bind_wr(&r, mw, 100, 1000, WR);
	expect_bad(&r, 1, wr, "bound already");
	/* keys that cannot be invalidated; type 2 windows of a QP that was reset */
	const uint32_t keys[] = {r.mr->rkey, plain->rkey, 0, mw->rkey, UINT32_MAX};

	for (unsigned int i = 0; i < COUNT(keys); i++) {
		wr = (struct softhca_send_wr){.opcode = SOFTHCA_WR_LOCAL_INV,
					      .invalidate_rkey = keys[i]};
		expect_bad(&r, 1, wr, "local_inv");
		/* the receiver is told, the sender gets no answer */
		expect(&r, send_inv(&r, keys[i]), SOFTHCA_WC_RETRY_EXC_ERR, "send_inv");
		expect(&r, wait_for(&r, 1), SOFTHCA_WC_MW_BIND_ERR, "receive");
		reset(&r);
	}
	sim_check(r.s, sim_counter(r.s, 1, "resp_invalidate_error") == COUNT(keys), "counter");
	sim_check(r.s, sim_counter(r.s, 1, "resp_invalidations") == 0, "counter");
	/* refused before anything is posted */
#define REFUSED(change) \
	wr = bind_wr(&r, mw, 100, 1000, WR); \
	change; \
	sim_check(r.s, softhca_post_send(r.p->qp[1], &wr, &bad) == -EINVAL, #change);
	REFUSED(wr.bind_mw.mw = NULL)
	REFUSED(wr.bind_mw.bind_info.mr = NULL)
	REFUSED(wr.bind_mw.bind_info.mw_access_flags = SOFTHCA_ACCESS_FLUSH_PERSISTENT)
	REFUSED(wr.num_sge = 1)
	REFUSED(wr.send_flags = SOFTHCA_SEND_INLINE)
#undef REFUSED
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
	mw = window(&r, SOFTHCA_MW_TYPE_1);
	wr = bind_wr(&r, mw, 100, 1000, WR);
	sim_check(r.s, softhca_post_send(r.p->qp[1], &wr, &bad) == -EINVAL, "type 1 by post_send");
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
	sim_check(r.s, softhca_alloc_mw(r.s->side[1].pd, 3) == NULL && errno == EINVAL, "type 3");
	softhca_dereg_mr(plain);
	softhca_dereg_mr(reads);
	softhca_dereg_mr(foreign);
	sim_check(r.s, softhca_dealloc_pd(other) == 0, "dealloc_pd");
	rig_close(&r);
}
SIM_TEST(bad_binds)

/* --- under traffic -------------------- */

enum way {
	BY_LOCAL_INV,
	BY_UNBIND,
	BY_REBIND,
	BY_SEND_INV,
	BY_DEALLOC,
	BY_REREG,
	WAYS,
};

#define CHUNK 4096u
#define WRITES 20u

static void
keep_writing(struct rig *r, uint64_t va, uint32_t rkey, unsigned int round)
{
	memset(r->local, (int)(0x80 + round), BYTES);
	for (unsigned int i = 0; i < WRITES; i++) {
		struct softhca_sge sge = {(uintptr_t)r->local, CHUNK, r->local_mr->lkey};
		struct softhca_send_wr wr = {
			.opcode = SOFTHCA_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = {va + i % 4 * CHUNK, rkey},
		};

		post_on(r, r->p->qp[0], &wr);
	}
}

/* Access is revoked while writes are in flight; from then on no byte changes. */
static void
take_away(struct rig *r, enum way way, unsigned int round)
{
	struct softhca_mw *mw = NULL;
	struct softhca_mr *mr = NULL;
	uint32_t rkey, status = SOFTHCA_WC_SUCCESS;
	uint8_t *seen = malloc(BYTES), *moved = memory(r, BYTES);
	unsigned int written = 0, refused = 0;

	sim_check(r->s, seen != NULL, "no memory");
	memset(r->mem, 0, BYTES);
	if (way == BY_REREG) {
		mr = region(r, 1, r->mem, LW | WR);
		rkey = mr->rkey;
	} else if (way == BY_LOCAL_INV || way == BY_SEND_INV) {
		mw = window(r, SOFTHCA_MW_TYPE_2);
		status = bind2(r, mw, 0, BYTES, WR);
		rkey = mw->rkey;
	} else {
		mw = window(r, SOFTHCA_MW_TYPE_1);
		status = bind1(r, mw, 0, BYTES, WR);
		rkey = mw->rkey;
	}
	expect(r, status, SOFTHCA_WC_SUCCESS, "bind");
	if (way == BY_SEND_INV)
		post_recv(r, 1);
	keep_writing(r, va_of(r, 0), rkey, round);
	for (unsigned int i = 0; i < round * 7; i++)
		sim_poll(r->s);
	switch (way) {
	case BY_LOCAL_INV:
		status = invalidate(r, rkey);
		break;
	case BY_UNBIND:
		status = bind1(r, mw, 0, 0, 0);
		break;
	case BY_REBIND:
		status = bind1(r, mw, 32768, 100, RD);
		break;
	case BY_SEND_INV: {
		struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND_WITH_INV,
					     .invalidate_rkey = rkey};

		post_on(r, r->p->qp[0], &wr);
		keep_writing(r, va_of(r, 0), rkey, round + 1);
		status = wait_for(r, 1);
		break;
	}
	case BY_DEALLOC:
		sim_check(r->s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
		mw = NULL;
		break;
	default:
		sim_check(r->s,
			  softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, moved,
					   BYTES, 0) == 0,
			  "rereg_mr: %s", softhca_last_error(NULL));
		break;
	}
	memcpy(seen, r->mem, BYTES);
	/* a late write may have moved the QP to ERR first; the window is also invalid */
	if (status != SOFTHCA_WC_WR_FLUSH_ERR || way == BY_SEND_INV)
		expect(r, status, SOFTHCA_WC_SUCCESS, "taking it away");
	keep_writing(r, va_of(r, 0), rkey, 100);
	for (unsigned int i = 0; i < (way == BY_SEND_INV ? 3 * WRITES + 1 : 2 * WRITES); i++) {
		status = wait_for(r, 0);
		written += status == SOFTHCA_WC_SUCCESS;
		refused += status == SOFTHCA_WC_REM_ACCESS_ERR;
	}
	sim_check(r->s, refused == 1, "way %u: %u refused, %u written", way, refused, written);
	sim_check(r->s, memcmp(seen, r->mem, BYTES) == 0, "way %u: written afterwards", way);
	sim_check(r->s, holds(moved, BYTES, 0), "an old key reached the new memory");
	if (mw != NULL)
		sim_check(r->s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
	if (mr != NULL)
		sim_check(r->s, softhca_dereg_mr(mr) == 0, "dereg_mr");
	reset(r);
	free(seen);
	free(moved);
}

static void
under_traffic_in(const struct sim_config *cfg)
{
	struct rig r;

	rig_open(&r, cfg, &patient);
	for (unsigned int way = 0; way < WAYS; way++)
		for (unsigned int round = 0; round < 8; round++)
			take_away(&r, way, round);
	rig_close(&r);
}
SIM_TEST(under_traffic)

/* The same with the engine in its own threads: readers are on other CPUs. */
static void
threads(void **state)
{
	static const enum hca_layout layouts[] = {HCA_LAYOUT_RTC, HCA_LAYOUT_TXRX, HCA_LAYOUT_FULL};

	(void)state;
	for (unsigned int i = 0; i < COUNT(layouts); i++) {
		const struct sim_config cfg = {.layout = layouts[i],
					       .executor = SIM_THREADS,
					       .all_cpus = true,
					       .seed = sim_env("SIM_SEED", 1)};

		sim_set_repeat("CMOCKA_TEST_FILTER=threads " PROGRAM);
		under_traffic_in(&cfg);
		type2_in(&cfg);
	}
}

/* Lost packets: operations are executed once, and everything completes in order. */
static void
lossy_in(const struct sim_config *cfg)
{
	const struct hca_impair loss = {.drop = 0.1};
	struct softhca_mw *mw;
	struct rig r;
	uint64_t before;

	rig_open(&r, cfg, NULL);
	mw = window(&r, SOFTHCA_MW_TYPE_2);
	sim_impair(r.s, 0, &loss);
	sim_impair(r.s, 1, &loss);
	before = sim_counter(r.s, 1, "req_local_ops");
	for (unsigned int round = 0; round < 40; round++) {
		struct softhca_sge sge = {(uintptr_t)r.mem, 3000, r.mr->lkey};
		struct softhca_send_wr data = {
			.opcode = round & 1 ? SOFTHCA_WR_RDMA_READ : SOFTHCA_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = {r.p->region[0].va, r.p->region[0].mr->rkey},
		};
		struct softhca_send_wr bind = bind_wr(&r, mw, 0, 100, WR), again = data;
		struct softhca_send_wr inv = {.opcode = SOFTHCA_WR_LOCAL_INV,
					      .invalidate_rkey = mw->rkey};
		static const uint32_t order[] = {SOFTHCA_WC_RDMA_WRITE, SOFTHCA_WC_BIND_MW,
						 SOFTHCA_WC_RDMA_WRITE, SOFTHCA_WC_LOCAL_INV};

		post_on(&r, r.p->qp[1], &data);
		post_on(&r, r.p->qp[1], &bind);
		post_on(&r, r.p->qp[1], &again);
		post_on(&r, r.p->qp[1], &inv);
		for (unsigned int i = 0; i < COUNT(order); i++) {
			expect(&r, wait_for(&r, 1), SOFTHCA_WC_SUCCESS, "lossy");
			sim_check(r.s, i % 2 == 0 || r.wc.opcode == order[i], "order");
		}
	}
	sim_check(r.s, sim_counter(r.s, 1, "req_local_ops") - before == 80, "not once each");
	sim_check(r.s, sim_counter(r.s, 1, "req_rewinds") != 0, "nothing was lost");
	sim_impair(r.s, 0, &(struct hca_impair){0});
	sim_impair(r.s, 1, &(struct hca_impair){0});
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
	rig_close(&r);
}
SIM_TEST(lossy)

/*
 * The round trip of a READ ends with its first response, although a bind, which has no packet,
 * follows it in the chain. The last response is late.
 */
static void
round_trip_in(const struct sim_config *cfg)
{
	struct hca_impair late = {.delay_ns = 5000000, .by_name = true};
	struct hca_round_trips trips;
	struct softhca_mw *mw;
	struct rig r;

	rig_open(&r, cfg, &patient);
	mw = window(&r, SOFTHCA_MW_TYPE_2);
	sim_check(r.s, hca_opcode_set_add(&late.of, "read-response-last") == 0, "opcode");
	sim_impair(r.s, 0, &late);
	for (unsigned int round = 0; round < 10; round++) {
		struct softhca_sge sge = {(uintptr_t)r.mem, 8000, r.mr->lkey};
		struct softhca_send_wr bind = bind_wr(&r, mw, 0, 100, WR);
		struct softhca_send_wr data = {
			.opcode = SOFTHCA_WR_RDMA_READ,
			.sg_list = &sge,
			.num_sge = 1,
			.next = &bind,
			.wr.rdma = {r.p->region[0].va, r.p->region[0].mr->rkey},
		};

		bind.send_flags = SIGNAL;
		post_on(&r, r.p->qp[1], &data);
		for (unsigned int i = 0; i < 2; i++)
			expect(&r, wait_for(&r, 1), SOFTHCA_WC_SUCCESS, "chain");
		expect(&r, invalidate(&r, mw->rkey), SOFTHCA_WC_SUCCESS, "local_inv");
	}
	sim_impair(r.s, 0, &(struct hca_impair){0});
	sim_check(r.s,
		  hca_qp_round_trips(r.s->side[1].hca, r.p->qp[1]->qp_num, &trips) == 0 &&
			  trips.samples >= 5,
		  "%u samples", trips.samples);
	sim_check(r.s, trips.p99_ns < 2000000, "p99 %llu ns", (unsigned long long)trips.p99_ns);
	sim_check(r.s, softhca_dealloc_mw(mw) == 0, "dealloc_mw");
	rig_close(&r);
}
SIM_TEST(round_trip)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(type1),
		cmocka_unit_test(type2),
		cmocka_unit_test(uc),
		cmocka_unit_test(bad_binds),
		cmocka_unit_test(under_traffic),
		cmocka_unit_test(lossy),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(threads),
	};

	return sim_main_of(tests, COUNT(tests));
}
