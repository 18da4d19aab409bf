/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Several owners: one cannot use keys, doorbells and numbers of another, and its use of resources
 * is charged to it.
 */

#include <errno.h>
#include <unistd.h>

#include "../driver_calls.h"
#include "abi_bar.h"
#include "abi_cmd.h"
#include "abi_ctx.h"
#include "lib_doorbell.h"
#include "lib_types.h"
#include "sim_test.h"

#define PROGRAM "test_isolation"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define RIGHTS \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ | \
	 SOFTHCA_ACCESS_REMOTE_ATOMIC)

/* --- keys -------------------- */

#define BYTES 8192u
#define FILL 0x42

/* Memory of side 1 that the connection must not access. */
struct strange {
	struct softhca_context *ctx; /* another client */
	struct softhca_pd *pd;	     /* its PD */
	struct softhca_pd *second;   /* another PD of the connection's own client */
	struct softhca_mr *of_client, *of_pd, *read_only;
	struct softhca_mw *unbound;
	uint32_t stale;
	uint8_t *mem;
};

static void
strange_open(struct sim *s, struct strange *x)
{
	struct softhca_mr *gone, *again;

	*x = (struct strange){.ctx = sim_client(s, 1)};
	x->mem = aligned_alloc(4096, BYTES);
	memset(x->mem, FILL, BYTES);
	x->pd = softhca_alloc_pd(x->ctx);
	x->second = softhca_alloc_pd(s->side[1].ctx);
	sim_check(s, x->pd != NULL && x->second != NULL, "alloc_pd");
	x->of_client = softhca_reg_mr(x->pd, x->mem, BYTES, RIGHTS);
	x->of_pd = softhca_reg_mr(x->second, x->mem, BYTES, RIGHTS);
	x->read_only = softhca_reg_mr(s->side[1].pd, x->mem, BYTES, 0);
	x->unbound = softhca_alloc_mw(s->side[1].pd, SOFTHCA_MW_TYPE_2);
	sim_check(s, x->of_client && x->of_pd && x->read_only && x->unbound, "reg_mr");
	gone = softhca_reg_mr(s->side[1].pd, x->mem, BYTES, RIGHTS);
	sim_check(s, gone != NULL, "reg_mr");
	x->stale = gone->rkey;
	sim_check(s, softhca_dereg_mr(gone) == 0, "dereg_mr");
	/* other regions have been registered and deregistered since */
	for (unsigned int i = 0; i < 20; i++) {
		again = softhca_reg_mr(s->side[1].pd, x->mem, BYTES, RIGHTS);
		sim_check(s, again != NULL && again->rkey != x->stale, "a key came back");
		sim_check(s, softhca_dereg_mr(again) == 0, "dereg_mr");
	}
}

static void
strange_close(struct sim *s, struct strange *x)
{
	for (uint32_t i = 0; i < BYTES; i++)
		sim_check(s, x->mem[i] == FILL, "byte %u was written", i);
	sim_check(s,
		  softhca_dereg_mr(x->of_client) == 0 && softhca_dereg_mr(x->of_pd) == 0 &&
			  softhca_dereg_mr(x->read_only) == 0 &&
			  softhca_dealloc_mw(x->unbound) == 0,
		  "dereg_mr");
	sim_check(s, softhca_dealloc_pd(x->second) == 0 && softhca_close(x->ctx) == 0, "close");
	free(x->mem);
}

/*
 * X(what, key, nearly): keys of side 1 for memory at x.mem, none of which the connection may use;
 * nearly: almost its own key, for its own memory.
 */
#define KEY_LIST(X) \
	X("another PD", x.of_pd->rkey, 0) \
	X("another client", x.of_client->rkey, 0) \
	X("no remote right", x.read_only->rkey, 0) \
	X("unbound window", x.unbound->rkey, 0) \
	X("stale", x.stale, 0) \
	X("zero", 0, 0) \
	X("all ones", UINT32_MAX, 0) \
	X("another tag of the consumer", 0, 1) \
	X("another index", 0, 0x200) \
	X("another random part", 0, 0x80000000u)

static void
refuse(struct sim *s, struct sim_pair *bystander, uint32_t op, const char *what, uint64_t va,
       uint32_t key, uint32_t nearly)
{
	struct sim_pair *p = sim_pair_open(s, NULL);
	struct softhca_sge sge = {p->region[0].va + 64, 64, p->region[0].mr->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = S};
	const struct sim_req good = sim_random_req(bystander, 2000);
	uint64_t id;

	if (nearly != 0) {
		va = p->region[1].va + 64;
		key = p->region[1].mr->rkey ^ nearly;
	}
	if (op >= SOFTHCA_WR_ATOMIC_CMP_AND_SWP) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = va;
		wr.wr.atomic.rkey = key;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = va;
		wr.wr.rdma.rkey = key;
	}
	id = sim_post_wr(p, 0, &wr, SOFTHCA_WC_REM_ACCESS_ERR);
	sim_expect_sq_error(p, 0, id, SOFTHCA_WC_REM_ACCESS_ERR, false);
	sim_check(s, sim_post(bystander, 0, &good, 1) == 0, "post");
	sim_check(s, sim_drain(s, SIM_S), "%s, op %u: does not end", what, op);
	sim_pair_close(p);
	sim_finish(s, SIM_S);
}

static void
remote_keys_in(const struct sim_config *cfg)
{
	static const uint32_t ops[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_RDMA_READ,
				       SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
				       SOFTHCA_WR_ATOMIC_CMP_AND_SWP};
	struct sim *s = sim_open(cfg);
	struct sim_pair *bystander = sim_pair_open(s, NULL);
	struct strange x;

	strange_open(s, &x);
	for (unsigned int i = 0; i < COUNT(ops); i++) {
#define X(what, key, nearly) refuse(s, bystander, ops[i], what, (uintptr_t)x.mem, key, nearly);
		KEY_LIST(X)
#undef X
	}
	sim_check(s, sim_counter(s, 1, "resp_remote_access_errors") == COUNT(ops) * 10,
		  "not all are counted");
	sim_pair_close(bystander);
	strange_close(s, &x);
	sim_close(s);
}
SIM_TEST(remote_keys)

static struct softhca_sge
own_or(struct sim_pair *p, uint64_t va, uint32_t key, uint32_t nearly)
{
	const struct sim_region *own = &p->region[1];

	if (nearly == 0)
		return (struct softhca_sge){va, 64, key};
	return (struct softhca_sge){own->va + 64, 64, own->mr->lkey ^ nearly};
}

/* The same keys as lkeys, of a request and of a receive. */
static void
refuse_local(struct sim *s, uint32_t op, const char *what, uint64_t va, uint32_t key,
	     uint32_t nearly)
{
	struct sim_pair *p = sim_pair_open(s, NULL);
	struct softhca_sge sge = own_or(p, va, key, nearly);
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = S,
		.wr.rdma = {p->region[0].va, p->region[0].mr->rkey},
	};
	uint64_t id = sim_post_wr(p, 1, &wr, SOFTHCA_WC_LOC_PROT_ERR);

	sim_expect_sq_error(p, 1, id, SOFTHCA_WC_LOC_PROT_ERR, false);
	sim_check(s, sim_drain(s, SIM_S), "%s, op %u: does not end", what, op);
	sim_pair_close(p);
}

static void
refuse_recv(struct sim *s, const char *what, uint64_t va, uint32_t key, uint32_t nearly)
{
	struct sim_pair *p = sim_pair_open(s, NULL);
	struct softhca_sge sge = {p->region[0].va, 64, p->region[0].mr->lkey};
	struct softhca_sge room = own_or(p, va, key, nearly);
	struct softhca_recv_wr rwr = {.sg_list = &room, .num_sge = 1};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_SEND,
				     .send_flags = S};
	uint64_t id;

	sim_post_recv_wr(p, 1, &rwr, SOFTHCA_WC_LOC_PROT_ERR);
	id = sim_post_wr(p, 0, &wr, SOFTHCA_WC_REM_OP_ERR);
	sim_expect_sq_error(p, 0, id, SOFTHCA_WC_REM_OP_ERR, false);
	sim_check(s, sim_drain(s, SIM_S), "receive with the key of %s: does not end", what);
	sim_pair_close(p);
}

static void
local_keys_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *bystander = sim_pair_open(s, NULL);
	struct strange x;

	strange_open(s, &x);
#define X(what, key, nearly) \
	if ((key) != x.read_only->rkey) \
		refuse_local(s, SOFTHCA_WR_RDMA_WRITE, what, (uintptr_t)x.mem, key, nearly); \
	refuse_local(s, SOFTHCA_WR_RDMA_READ, what, (uintptr_t)x.mem, key, nearly); \
	refuse_recv(s, what, (uintptr_t)x.mem, key, nearly);
	KEY_LIST(X)
#undef X
	sim_pair_close(bystander);
	strange_close(s, &x);
	sim_close(s);
}
SIM_TEST(local_keys)

/* --- doorbells -------------------- */

static void
ring(struct sim *s, struct lib_context *ctx, uint64_t word)
{
	struct lib_uar *uar = lib_uar_of(ctx, HCA_DB_QPN(word));
	uint32_t number = 0;

	for (unsigned int i = 0; lib_doorbell_take(ctx, uar, &number) != 0; i++) {
		sim_check(s, i < 1000, "no slot");
		sim_poll(s);
	}
	lib_doorbell_fill(uar, number, word);
}

/* Another client rings doorbells with every opcode for QPs of all kinds that are in use. */
static void
foreign_bells_in(const struct sim_config *cfg)
{
	static const struct sim_pair_attr attr[] = {{0}, {.srq = true}, {.xrc = true}};
	struct sim *s = sim_open(cfg);
	struct softhca_context *other = sim_client(s, 0);
	struct sim_pair *p[COUNT(attr)];
	uint64_t rung = 0, before;

	for (unsigned int i = 0; i < COUNT(attr); i++)
		p[i] = sim_pair_open(s, &attr[i]);
	before = sim_counter(s, 0, "db_foreign_qpn") + sim_counter(s, 0, "db_bad_opcode");
	for (unsigned int round = 0; round < 32 * 4; round++) {
		uint32_t op = round % 32;

		for (unsigned int i = 0; i < COUNT(attr); i++) {
			struct sim_req r = sim_random_req(p[i], 3000);

			r.flags |= S;
			sim_post(p[i], round & 1, &r, 1);
			ring(s, lib_ctx(other),
			     HCA_DB_MAKE(round % 64, 0, op, p[i]->qp[0]->qp_num, 4));
			ring(s, lib_ctx(other),
			     HCA_DB_MAKE(round % 64, 0, op, p[i]->tgt[0]->qp_num, 4));
			rung += 2;
		}
		sim_poll(s);
		sim_reap(s);
	}
	sim_finish(s, SIM_S);
	sim_settle(s);
	sim_check(s,
		  sim_counter(s, 0, "db_foreign_qpn") + sim_counter(s, 0, "db_bad_opcode") ==
			  before + rung,
		  "some bells are not refused");
	sim_check(s, sim_counter(s, 0, "db_kicks") == 0, "a foreign kick was obeyed");
	for (unsigned int i = 0; i < COUNT(attr); i++)
		sim_pair_close(p[i]);
	sim_check(s, softhca_close(other) == 0, "close");
	sim_close(s);
}
SIM_TEST(foreign_bells)

/* --- quotas -------------------- */

#define THING_LIST(X) \
	X(pd, struct softhca_pd *, softhca_alloc_pd(c->ctx), softhca_dealloc_pd) \
	X(cq, struct softhca_cq *, softhca_create_cq(c->ctx, &cqa), softhca_destroy_cq) \
	X(mr, struct softhca_mr *, softhca_reg_mr(c->pd, c->mem, 4096, 0), softhca_dereg_mr) \
	X(mw, struct softhca_mw *, softhca_alloc_mw(c->pd, SOFTHCA_MW_TYPE_1), softhca_dealloc_mw) \
	X(srq, struct softhca_srq *, softhca_create_srq(c->pd, &srqa), softhca_destroy_srq) \
	X(qp, struct softhca_qp *, softhca_create_qp(c->pd, &qpa), softhca_destroy_qp) \
	X(xrcd, struct softhca_xrcd *, softhca_open_xrcd(c->ctx, &xa), softhca_close_xrcd) \
	X(ah, struct softhca_ah *, softhca_create_ah(c->pd, &aa), softhca_destroy_ah)

enum thing {
#define X(name, ...) THING_##name,
	THING_LIST(X)
#undef X
	THINGS
};

#define MANY 300u

struct tenant {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_cq *cq;
	uint8_t *mem;
};

static void
tenant_open(struct sim *s, struct tenant *c)
{
	struct softhca_cq_init_attr cqa = {.cqe = 16};

	c->ctx = sim_client(s, 0);
	c->pd = softhca_alloc_pd(c->ctx);
	c->cq = softhca_create_cq(c->ctx, &cqa);
	c->mem = aligned_alloc(4096, 4096);
	sim_check(s, c->pd != NULL && c->cq != NULL && c->mem != NULL, "a tenant");
}

static void *
make(struct tenant *c, enum thing what)
{
	struct softhca_cq_init_attr cqa = {.cqe = 16};
	struct softhca_srq_init_attr srqa = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct softhca_xrcd_init_attr xa = {.fd = -1};
	struct softhca_ah_attr aa = {.port_num = 1};
	struct softhca_qp_init_attr qpa = {
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};

	sim_gid(1, 0, aa.dgid.raw);
	switch (what) {
#define X(name, type, create, destroy) \
	case THING_##name: \
		return create;
		THING_LIST(X)
#undef X
	default:
		return NULL;
	}
}

static int
drop(void *object, enum thing what)
{
	switch (what) {
#define X(name, type, create, destroy) \
	case THING_##name: \
		return destroy((type)object);
		THING_LIST(X)
#undef X
	default:
		return -EINVAL;
	}
}

/* Create all objects it can get, then destroy them; returns their number. */
static unsigned int
gorge(struct sim *s, struct tenant *c, enum thing what, bool keep)
{
	void *object[MANY];
	unsigned int n = 0;

	while (n < MANY && (object[n] = make(c, what)) != NULL)
		n++;
	sim_check(s, n == MANY || errno == ENOMEM, "thing %u: errno %d", what, errno);
	for (unsigned int i = 0; i < n && !keep; i++)
		sim_check(s, drop(object[i], what) == 0, "thing %u is not given back", what);
	return n;
}

/*
 * One client takes all it can get of everything; another still gets its share, and others keep
 * working.
 */
static void
quotas_in(const struct sim_config *cfg)
{
	/* minus a tenant's objects from the start; regions of queues also count */
	static const unsigned int due[THINGS] = {[THING_pd] = 22,
						 [THING_cq] = 20,
						 [THING_srq] = 6,
						 [THING_qp] = 20,
						 [THING_xrcd] = 7};
	struct sim_config c = *cfg;
	struct sim *s;
	struct sim_pair *p;
	struct tenant greedy, modest;

	c.quota = (struct hca_quota){.qps = 20,
				     .cqs = 21,
				     .mrs = 150,
				     .pds = 23,
				     .srqs = 6,
				     .xrcds = 7,
				     .channels = 4};
	s = sim_open(&c);
	p = sim_pair_open(s, NULL);
	tenant_open(s, &greedy);
	tenant_open(s, &modest);
	for (unsigned int what = 0; what < THINGS; what++) {
		unsigned int a = gorge(s, &greedy, what, false), b;
		struct sim_req r = sim_random_req(p, 3000);

		/* an address handle only needs memory of the client */
		sim_check(s, a > 0 && (a < MANY) == (what != THING_ah), "thing %u: %u", what, a);
		sim_check(s, due[what] == 0 || a == due[what], "thing %u: %u, the quota leaves %u",
			  what, a, due[what]);
		gorge(s, &greedy, what, true);
		b = gorge(s, &modest, what, false);
		sim_check(s, a == b, "thing %u: %u for one, %u left for the other", what, a, b);
		r.flags |= S;
		sim_check(s, sim_post(p, what & 1, &r, 1) == 0, "post");
		sim_finish(s, SIM_S);
		/* closing frees its objects */
		sim_check(s, softhca_close(greedy.ctx) == 0, "close");
		free(greedy.mem);
		tenant_open(s, &greedy);
	}
	sim_check(s, softhca_close(greedy.ctx) == 0 && softhca_close(modest.ctx) == 0, "close");
	free(greedy.mem);
	free(modest.mem);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(quotas)

/* --- numbers -------------------- */

/*
 * In random numbers each bit is set in about half; with 1000 of them the limits are 8 sigma away.
 */
static void
check_spread(struct sim *s, const uint32_t *n, unsigned int count, uint32_t mask, const char *what)
{
	for (unsigned int bit = 0; bit < 32; bit++) {
		unsigned int set = 0;

		for (unsigned int i = 0; i < count; i++)
			set += n[i] >> bit & 1;
		sim_check(s, !(mask >> bit & 1) || (set > count * 3 / 8 && set < count * 5 / 8),
			  "bit %u of %s is set in %u of %u", bit, what, set, count);
	}
}

#define DRAWS 1000u

/* QPNs and keys of a thousand objects: random as far as possible, and not reused at once. */
static void
numbers_in(const struct sim_config *cfg)
{
	static uint32_t last_qpn[1 << 8], last_key[1 << 17];
	uint32_t qpn[DRAWS], key[DRAWS], qp_bits = 8, back = 0;
	struct sim *s = sim_open(cfg);
	struct tenant c;

	memset(last_qpn, 0, sizeof(last_qpn));
	memset(last_key, 0, sizeof(last_key));
	tenant_open(s, &c);
	for (unsigned int i = 0; i < DRAWS; i++) {
		struct softhca_qp *qp = make(&c, THING_qp);
		struct softhca_mr *mr = make(&c, THING_mr);
		uint32_t q, k;

		sim_check(s, qp != NULL && mr != NULL, "create");
		q = qpn[i] = qp->qp_num;
		k = key[i] = mr->lkey;
		sim_check(s, q > 1 && q < 0xffffff, "QPN %#x", q);
		sim_check(s, last_qpn[q & 0xff] != q, "QPN %#x came back at once", q);
		back += last_key[k >> 8 & 0x1ffff] == k;
		last_qpn[q & 0xff] = q;
		last_key[k >> 8 & 0x1ffff] = k;
		sim_check(s, softhca_destroy_qp(qp) == 0 && softhca_dereg_mr(mr) == 0, "destroy");
	}
	/* regions of queues had the index in between, so one of 2^15 random numbers may */
	sim_check(s, back <= 2, "%u of %u keys came back at once", back, DRAWS);
	check_spread(s, qpn, DRAWS, 0xffffffu << qp_bits & 0xffffff, "QPNs");
	check_spread(s, key, DRAWS, 0xfe000000u, "keys");
	sim_check(s, softhca_close(c.ctx) == 0, "close");
	free(c.mem);
	sim_close(s);
}
SIM_TEST(numbers)

/* --- handles -------------------- */

#define POOL (64u << 12)

/* One of each object, created through the control channel as by a client without the library. */
struct owner {
	struct hca_client *c;
	uint8_t *mem;
	uint32_t pd, cq, srq, xsrq, xrcd, rc, ud, tgt, mw, mr, channel;
	int fd;
};

#define CTL(s, call) \
	do { \
		int ctl_rc = (call); \
		sim_check((s), ctl_rc == 0, #call ": %d: %s", ctl_rc, hca_driver_reason()); \
	} while (0)

static struct hca_ctl_qp
plain_qp(const struct owner *o, uint32_t service)
{
	return (struct hca_ctl_qp){
		.sq_addr = (uintptr_t)o->mem + (8u << 12),
		.rq_addr = (uintptr_t)o->mem + (16u << 12),
		.pdn = o->pd,
		.service = service,
		.send_cqn = o->cq,
		.recv_cqn = o->cq,
		.log_sq = 4,
		.log_sq_stride = 6,
		.log_rq = 3,
		.log_rq_stride = 6,
	};
}

static struct hca_ctl_srq
plain_srq(const struct owner *o)
{
	return (struct hca_ctl_srq){
		.addr = (uintptr_t)o->mem + (24u << 12),
		.pdn = o->pd,
		.log_size = 3,
		.log_stride = 6,
		.max_sge = 1,
	};
}

static struct hca_ctl_cq
plain_cq(const struct owner *o)
{
	return (struct hca_ctl_cq){.addr = (uintptr_t)o->mem,
				   .log_size = 4,
				   .channel = HCA_CTL_NO_CHANNEL};
}

static void
owner_open(struct sim *s, struct owner *o)
{
	struct hca_ctl_mr mr = {.length = 4096};
	struct hca_ctl_keys keys;
	struct hca_ctl_cq cq;
	struct hca_ctl_srq srq;
	struct hca_ctl_qp qp;

	*o = (struct owner){.mem = aligned_alloc(4096, POOL)};
	memset(o->mem, 0, POOL);
	CTL(s, hca_client_open(s->side[0].drv, NULL, &o->c));
	CTL(s, hca_client_attach(o->c, (uintptr_t)o->mem, POOL));
	CTL(s, hca_client_call(o->c, HCA_CTL_ALLOC_PD, NULL, &o->pd, NULL));
	CTL(s, call_create_channel(o->c, &o->channel, &o->fd));
	cq = plain_cq(o);
	CTL(s, hca_client_call(o->c, HCA_CTL_CREATE_CQ, &cq, &o->cq, NULL));
	CTL(s, hca_client_call(o->c, HCA_CTL_ALLOC_XRCD, NULL, &o->xrcd, NULL));
	srq = plain_srq(o);
	CTL(s, hca_client_call(o->c, HCA_CTL_CREATE_SRQ, &srq, &o->srq, NULL));
	srq.addr += 4u << 12;
	srq.xrcd = o->xrcd;
	srq.cqn = o->cq;
	CTL(s, hca_client_call(o->c, HCA_CTL_CREATE_SRQ, &srq, &o->xsrq, NULL));
	qp = plain_qp(o, HCA_ST_RC);
	CTL(s, hca_client_call(o->c, HCA_CTL_CREATE_QP, &qp, &o->rc, NULL));
	qp = plain_qp(o, HCA_ST_UD);
	qp.sq_addr += 4u << 12;
	qp.rq_addr += 4u << 12;
	CTL(s, hca_client_call(o->c, HCA_CTL_CREATE_QP, &qp, &o->ud, NULL));
	qp = (struct hca_ctl_qp){.service = HCA_ST_XRC_TGT, .xrcd = o->xrcd};
	CTL(s, hca_client_call(o->c, HCA_CTL_CREATE_QP, &qp, &o->tgt, NULL));
	CTL(s, hca_client_call(o->c, HCA_CTL_ALLOC_MW,
			       &(struct hca_ctl_mw){o->pd, HCA_CTL_MW_TYPE_1}, &o->mw, NULL));
	mr.va = (uintptr_t)o->mem + (40u << 12);
	mr.pdn = o->pd;
	CTL(s, hca_client_call(o->c, HCA_CTL_REG_MR, &mr, &keys, NULL));
	o->mr = keys.lkey;
}

static void
owner_close(struct owner *o)
{
	hca_client_close(o->c);
	close(o->fd);
	free(o->mem);
}

/* Requests of b with its own objects, except for one object of a. */
static unsigned int
refused_to_make(struct hca_client *c, const struct owner *a, const struct owner *b)
{
	struct hca_ctl_qp qp[7];
	struct hca_ctl_srq srq[3];
	struct hca_ctl_cq cq = plain_cq(b);
	struct hca_ctl_mr mr = {.va = (uintptr_t)b->mem, .length = 64, .pdn = a->pd};
	struct hca_ctl_keys keys;
	unsigned int n = 0;
	uint32_t number = 0;

	for (unsigned int i = 0; i < 7; i++)
		qp[i] = plain_qp(b, HCA_ST_RC);
	qp[0].pdn = a->pd;
	qp[1].send_cqn = a->cq;
	qp[2].recv_cqn = a->cq;
	qp[3].srqn = a->srq;
	qp[4].sq_addr = (uintptr_t)a->mem + (8u << 12);
	qp[5].rq_addr = (uintptr_t)a->mem + (16u << 12);
	qp[6] = (struct hca_ctl_qp){.service = HCA_ST_XRC_TGT, .xrcd = a->xrcd};
	for (unsigned int i = 0; i < 7; i++)
		n += hca_client_call(c, HCA_CTL_CREATE_QP, &qp[i], &number, NULL) != 0;
	for (unsigned int i = 0; i < 3; i++)
		srq[i] = plain_srq(b);
	srq[0].pdn = a->pd;
	srq[1].xrcd = a->xrcd;
	srq[1].cqn = b->cq;
	srq[2].xrcd = b->xrcd;
	srq[2].cqn = a->cq;
	for (unsigned int i = 0; i < 3; i++)
		n += hca_client_call(c, HCA_CTL_CREATE_SRQ, &srq[i], &number, NULL) != 0;
	cq.addr = (uintptr_t)a->mem + (48u << 12);
	n += hca_client_call(c, HCA_CTL_CREATE_CQ, &cq, &number, NULL) != 0;
	n += hca_client_call(c, HCA_CTL_REG_MR, &mr, &keys, NULL) != 0;
	mr.pdn = b->pd;
	mr.va = (uintptr_t)a->mem;
	n += hca_client_call(c, HCA_CTL_REG_MR, &mr, &keys, NULL) != 0;
	n += hca_client_call(c, HCA_CTL_ALLOC_MW, &(struct hca_ctl_mw){a->pd, HCA_CTL_MW_TYPE_1},
			     &number, NULL) != 0;
	return n;
}

/* Without that object they succeed, so it was the reason. */
static void
check_plain(struct sim *s, const struct owner *b)
{
	struct hca_ctl_qp qp = plain_qp(b, HCA_ST_RC);
	struct hca_ctl_qp tgt = {.service = HCA_ST_XRC_TGT, .xrcd = b->xrcd};
	struct hca_ctl_srq srq = plain_srq(b);
	struct hca_ctl_cq cq = plain_cq(b);
	uint32_t number = 0;

	CTL(s, hca_client_call(b->c, HCA_CTL_CREATE_QP, &qp, &number, NULL));
	CTL(s, call_drop(b->c, HCA_CTL_DESTROY_QP, number));
	CTL(s, hca_client_call(b->c, HCA_CTL_CREATE_QP, &tgt, &number, NULL));
	CTL(s, call_drop(b->c, HCA_CTL_DESTROY_QP, number));
	CTL(s, hca_client_call(b->c, HCA_CTL_CREATE_SRQ, &srq, &number, NULL));
	CTL(s, call_drop(b->c, HCA_CTL_DESTROY_SRQ, number));
	srq.xrcd = b->xrcd;
	srq.cqn = b->cq;
	CTL(s, hca_client_call(b->c, HCA_CTL_CREATE_SRQ, &srq, &number, NULL));
	CTL(s, call_drop(b->c, HCA_CTL_DESTROY_SRQ, number));
	CTL(s, hca_client_call(b->c, HCA_CTL_CREATE_CQ, &cq, &number, NULL));
	CTL(s, call_drop(b->c, HCA_CTL_DESTROY_CQ, number));
}

/* Calls of another client about a's objects. */
static unsigned int
refused_to_touch(struct hca_client *c, const struct owner *a, const struct owner *b)
{
	static const uint8_t group[16] = {0xff, 0x0e, [15] = 9};
	const uint32_t qps[] = {a->rc, a->ud, a->tgt};
	struct hca_ctl_mr mr = {.va = (uintptr_t)b->mem, .length = 64, .pdn = b->pd};
	static struct hca_ctl_counters counters;
	struct hca_ctl_srq_state state;
	struct hca_ctl_keys keys;
	struct hca_qpc qpc = {0};
	unsigned int n = 0;
	uint32_t x;

	for (unsigned int i = 0; i < COUNT(qps); i++) {
		n += call_modify_qp(c, qps[i], HCA_CMD_RST2INIT_QPEE, &qpc) != 0;
		n += call_modify_qp(c, qps[i], HCA_CMD_2ERR_QPEE, NULL) != 0;
		n += hca_client_call(c, HCA_CTL_QUERY_QP, &(uint32_t){qps[i]}, &qpc, NULL) != 0;
		n += hca_client_call(c, HCA_CTL_QUERY_COUNTERS,
				     &(struct hca_ctl_count){HCA_CTL_COUNTERS_QP, qps[i], 4},
				     &counters, NULL) != 0;
		n += call_mcast(c, qps[i], group, true) != 0;
		n += call_drop(c, HCA_CTL_DESTROY_QP, qps[i]) != 0;
	}
	n += hca_client_call(c, HCA_CTL_ARM_SRQ, &(struct hca_ctl_arm){a->srq, 1}, NULL, NULL) != 0;
	n += hca_client_call(c, HCA_CTL_QUERY_SRQ, &(uint32_t){a->srq}, &state, NULL) != 0;
	n += call_drop(c, HCA_CTL_DESTROY_SRQ, a->srq) != 0;
	n += call_drop(c, HCA_CTL_DESTROY_SRQ, a->xsrq) != 0;
	n += call_drop(c, HCA_CTL_DEALLOC_XRCD, a->xrcd) != 0;
	n += hca_client_call(c, HCA_CTL_RESIZE_CQ,
			     &(struct hca_ctl_resize){a->cq, 5, (uintptr_t)b->mem + (50u << 12)},
			     &x, NULL) != 0;
	n += hca_client_call(c, HCA_CTL_MODERATE_CQ, &(struct hca_ctl_moderate){a->cq, 3, 3}, NULL,
			     NULL) != 0;
	n += call_drop(c, HCA_CTL_DESTROY_CQ, a->cq) != 0;
	n += call_drop(c, HCA_CTL_DEREG_MR, a->mr) != 0;
	n += hca_client_call(c, HCA_CTL_REREG_MR,
			     &(struct hca_ctl_rereg){a->mr, HCA_CTL_REREG_ACCESS, mr}, &keys,
			     NULL) != 0;
	n += hca_client_call(c, HCA_CTL_REREG_MR,
			     &(struct hca_ctl_rereg){b->mr, HCA_CTL_REREG_PD,
						     (struct hca_ctl_mr){.pdn = a->pd}},
			     &keys, NULL) != 0;
	n += call_drop(c, HCA_CTL_DEALLOC_MW, a->mw) != 0;
	n += call_drop(c, HCA_CTL_DEALLOC_PD, a->pd) != 0;
	return n;
}

/* A client that names an object of another is always refused, and the other is not affected. */
static void
foreign_handles_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct hca_qpc before, after;
	struct hca_driver_usage used, now;
	struct owner a, b;
	unsigned int n;

	owner_open(s, &a);
	owner_open(s, &b);
	hca_driver_usage(s->side[0].drv, &used);
	CTL(s, hca_client_call(a.c, HCA_CTL_QUERY_QP, &(uint32_t){a.rc}, &before, NULL));
	check_plain(s, &b);
	n = refused_to_make(b.c, &a, &b);
	sim_check(s, n == 14, "%u of 14 refused", n);
	n = refused_to_touch(b.c, &a, &b);
	sim_check(s, n == 18 + 13, "%u of 31 refused", n);
	CTL(s, hca_client_call(a.c, HCA_CTL_QUERY_QP, &(uint32_t){a.rc}, &after, NULL));
	sim_check(s, memcmp(&before, &after, sizeof(after)) == 0, "the QP has changed");
	hca_driver_usage(s->side[0].drv, &now);
	sim_check(s, memcmp(&used, &now, sizeof(now)) == 0, "something was made or lost");
	/* the owner still has all of it */
	CTL(s, call_drop(a.c, HCA_CTL_DESTROY_QP, a.tgt));
	CTL(s, call_drop(a.c, HCA_CTL_DESTROY_QP, a.rc));
	CTL(s, call_drop(a.c, HCA_CTL_DESTROY_QP, a.ud));
	CTL(s, call_drop(a.c, HCA_CTL_DESTROY_SRQ, a.xsrq));
	CTL(s, call_drop(a.c, HCA_CTL_DESTROY_SRQ, a.srq));
	CTL(s, call_drop(a.c, HCA_CTL_DEALLOC_XRCD, a.xrcd));
	CTL(s, call_drop(a.c, HCA_CTL_DESTROY_CQ, a.cq));
	CTL(s, call_drop(a.c, HCA_CTL_DEALLOC_MW, a.mw));
	CTL(s, call_drop(a.c, HCA_CTL_DEREG_MR, a.mr));
	CTL(s, call_drop(a.c, HCA_CTL_DEALLOC_PD, a.pd));
	owner_close(&a);
	owner_close(&b);
	sim_close(s);
}
SIM_TEST(foreign_handles)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remote_keys),	   cmocka_unit_test(local_keys),
		cmocka_unit_test(foreign_bells),   cmocka_unit_test(quotas),
		cmocka_unit_test(foreign_handles), cmocka_unit_test(numbers),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
