/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A second program in addition to the one of world.c, which writes to every part of its doorbell
 * page and queues and creates and destroys objects. The input is a list of steps: a byte that names
 * the step (its low bits), then its parameters:
 *
 *  0   word() below: a doorbell in its turn; one for another client's QP must be counted as such
 *  1   u8 slot, word(): any slot of the FIFO, in any order
 *  2   u8 slot, u8 half, u16 twice: half a word, as after a torn store
 *  3   word(): into the register's place
 *  4   8 bytes: any word, in its turn
 *  5   u8 QP, u8 kind, u8 length: a request through the library
 *  6   u8 QP or SRQ: a receive through the library
 *  7   u8 CQ, u8 what, u16: consumer index, arm word, request for an event, poll
 *  8   u8 QP or SRQ, u8 offset, u16: producer record
 *  9   u8 QP or SRQ, u16 offset, u8 n, n bytes: into a queue
 *  10  u8 what: create an object
 *  11  u8 what: destroy an object
 *  12  u8 QP, u8 state: modify_qp
 *  13  the program ends with all its objects, and starts again
 *  14  u8: microseconds that pass
 *  15  the device runs once
 *  19  u8 whose, u16: the mark of a QP; whose 30 and 31: whole words of marks
 *
 * In every case the memory of the first program does not change, its outstanding requests proceed,
 * nothing leaks, and no doorbell is counted twice.
 */

#include <stdlib.h>
#include <string.h>

#include "abi_wqe.h"
#include "embed_ctl.h"
#include "lib_doorbell.h"
#include "world.h"

#define STEPS_MAX 64u
#define QPS 4u
#define CQS 2u
#define MEM 4096u
#define DEPTH 8u
/* Before this time no ack timeout (4.2 ms) of the first program expires. */
#define CALM_NS 3000000u
/* Polls in which the device checks every open page. */
#define SCAN_POLLS 60u

struct ringer {
	struct world *w;
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_mr *mr;
	struct softhca_cq *cq[CQS];
	struct softhca_srq *srq;
	struct softhca_qp *qp[QPS];
	uint8_t *mem;
	uint32_t gone; /* QPN of the QP destroyed last */
	bool wild;     /* slots were filled out of turn: which ones are taken is unknown */
};

/* The first program's initial state. */
struct bystander {
	struct hca_qp fresh;
	struct hca_uar_page page;
	uint64_t reserve;
	uint64_t began, doorbells, drops;
};

static const struct hca_cq *
world_cq(const struct world *w)
{
	return &w->h->core->cq[w->cq->handle & w->h->core->cq_mask];
}

static const enum hca_counter drop_counters[] = {
	HCA_CTR_db_bad_opcode, HCA_CTR_db_dead_qpn,  HCA_CTR_db_foreign_qpn,
	HCA_CTR_db_bad_state,  HCA_CTR_db_bad_index,
};

static uint64_t
drops(const struct world *w)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < RTE_DIM(drop_counters); i++)
		n += hca_counter_value(w->h, drop_counters[i]);
	return n;
}

/* ---- the ringer's objects ---- */

static void
make_qp(struct ringer *x, unsigned int i)
{
	struct softhca_qp_init_attr a = {
		.send_cq = x->cq[i % CQS],
		.recv_cq = x->cq[i % CQS],
		.srq = i & 1 ? x->srq : NULL,
		.cap = {DEPTH, DEPTH, 2, 2, 64},
		.qp_type = SOFTHCA_QPT_RC,
	};

	if (x->qp[i] != NULL || x->pd == NULL || a.send_cq == NULL)
		return;
	x->qp[i] = softhca_create_qp(x->pd, &a);
	if (x->qp[i] != NULL && i != 3) /* the last one is not changed */
		world_connect(x->w, x->qp[i]);
}

static void
make_object(struct ringer *x, uint8_t what)
{
	const struct softhca_cq_init_attr ca = {.cqe = 2 * DEPTH};
	struct softhca_srq_init_attr sa = {.attr = {.max_wr = DEPTH, .max_sge = 2}};
	unsigned int i = what % 8;

	if (i < QPS) {
		make_qp(x, i);
	} else if (i < QPS + CQS) {
		if (x->cq[i - QPS] == NULL)
			x->cq[i - QPS] = softhca_create_cq(x->ctx, &ca);
	} else if (i == QPS + CQS) {
		if (x->srq == NULL && x->pd != NULL)
			x->srq = softhca_create_srq(x->pd, &sa);
	} else if (x->mr == NULL && x->pd != NULL) {
		x->mr = softhca_reg_mr(x->pd, x->mem, MEM, SOFTHCA_ACCESS_LOCAL_WRITE);
	}
}

/* Objects in use are not destroyed. */
static void
destroy_object(struct ringer *x, uint8_t what)
{
	unsigned int i = what % 8;

	if (i < QPS) {
		if (x->qp[i] == NULL)
			return;
		x->gone = x->qp[i]->qp_num;
		fuzz_check(softhca_destroy_qp(x->qp[i]) == 0, "destroy_qp: %s",
			   softhca_last_error(x->ctx));
		x->qp[i] = NULL;
	} else if (i < QPS + CQS) {
		if (x->cq[i - QPS] != NULL && softhca_destroy_cq(x->cq[i - QPS]) == 0)
			x->cq[i - QPS] = NULL;
	} else if (i == QPS + CQS) {
		if (x->srq != NULL && softhca_destroy_srq(x->srq) == 0)
			x->srq = NULL;
	} else if (x->mr != NULL && softhca_dereg_mr(x->mr) == 0) {
		x->mr = NULL;
	}
}

static void
ringer_open(struct ringer *x)
{
	const struct embed_ctl_config cc = {.name = "ringer"};

	fuzz_check(embed_ctl_open(x->w->drv, &cc, &x->ctx) == 0, "client: %s", hca_driver_reason());
	x->pd = softhca_alloc_pd(x->ctx);
	fuzz_check(x->pd != NULL, "alloc_pd: %s", softhca_last_error(x->ctx));
	make_object(x, QPS);
	make_object(x, QPS + 1);
	make_object(x, QPS + CQS);
	make_object(x, 7);
	make_object(x, 0);
	make_object(x, 1);
	x->wild = false;
}

/* Closing it destroys all its objects. */
static void
ringer_close(struct ringer *x)
{
	struct world *w = x->w;
	uint8_t *mem = x->mem;

	fuzz_check(softhca_close(x->ctx) == 0, "close: %s", softhca_last_error(NULL));
	*x = (struct ringer){.w = w, .mem = mem};
}

/* ---- doorbells ---- */

/* u8 opcode and fence, u8 whose QP, u16 index, u8 size. */
static uint64_t
word(const struct ringer *x, struct fuzz_input *in, bool *foreign)
{
	uint8_t op = fuzz_u8(in), whose = fuzz_u8(in) % 16;
	uint16_t index = fuzz_u16(in);
	uint8_t size = fuzz_u8(in);
	uint32_t qpn = 0;

	*foreign = whose >= QPS && whose < QPS + WORLD_QPS;
	if (whose < QPS)
		qpn = x->qp[whose] != NULL ? x->qp[whose]->qp_num : x->gone;
	else if (*foreign)
		qpn = x->w->qp[whose - QPS]->qp_num;
	else if (whose == QPS + WORLD_QPS)
		qpn = x->gone;
	else if (whose == QPS + WORLD_QPS + 1)
		qpn = index; /* reserved numbers, and entries with another tag */
	return HCA_DB_MAKE(index & (index & 0x8000 ? 0xffff : DEPTH - 1), op >> 5 & 1, op & 31, qpn,
			   size);
}

static bool
ring(struct ringer *x, uint64_t w)
{
	struct lib_uar *uar = &lib_ctx(x->ctx)->uar;
	uint32_t number;

	/* 0 is not a word: the slot would stay taken and empty */
	if (w == 0 || !lib_doorbell_try(uar, &number))
		return false;
	lib_doorbell_fill(uar, number, w);
	return true;
}

static void
ring_in_turn(struct ringer *x, struct fuzz_input *in)
{
	const struct hca *h = x->w->h;
	uint64_t foreign, opcodes, w;
	bool theirs;

	w = word(x, in, &theirs);
	if (!theirs || x->wild) {
		ring(x, w);
		return;
	}
	/* earlier doorbells are taken first */
	world_poll(x->w, SCAN_POLLS);
	if (!ring(x, w))
		return;
	foreign = hca_counter_value(h, HCA_CTR_db_foreign_qpn);
	opcodes = hca_counter_value(h, HCA_CTR_db_bad_opcode);
	world_poll(x->w, SCAN_POLLS);
	foreign = hca_counter_value(h, HCA_CTR_db_foreign_qpn) - foreign;
	opcodes = hca_counter_value(h, HCA_CTR_db_bad_opcode) - opcodes;
	fuzz_check(foreign + opcodes == 1, "a foreign doorbell counted %u times as such",
		   (unsigned int)(foreign + opcodes));
}

static void
torn(struct ringer *x, struct fuzz_input *in)
{
	struct hca_uar_page *page = lib_ctx(x->ctx)->uar.page;
	uint8_t slot = fuzz_u8(in), half = fuzz_u8(in);
	uint32_t v = fuzz_u16(in);
	uint32_t *to = (uint32_t *)(void *)(half & 2 ? &page->sq_doorbell : &page->fifo[slot]);

	v |= (uint32_t)fuzz_u16(in) << 16;
	if (half & 4 && x->qp[0] != NULL)
		v = (uint32_t)(HCA_DB_MAKE(0, 0, HCA_OP_SEND, x->qp[0]->qp_num, 2) >>
			       (half & 1 ? 32 : 0));
	__atomic_store_n(to + (half & 1), v, __ATOMIC_RELEASE);
	x->wild = true;
}

/*
 * A mark is a bit: of a QP, of another client's, or whole words of bits, with and without the
 * summary bit.
 */
static void
mark(struct ringer *x, struct fuzz_input *in)
{
	struct hca_uar_page *page = lib_ctx(x->ctx)->uar.page;
	uint8_t whose = fuzz_u8(in) & 31;
	uint64_t v = fuzz_u16(in) * 0x0001000100010001ull;
	uint32_t qpn = (uint32_t)v & 0xffff;

	if (whose >= 30) {
		hca_le64 *to = whose == 30 ? &page->marked : &page->marks[v % HCA_UAR_MARK_WORDS];

		__atomic_store_n(to, hca_cpu_to_le64(v), __ATOMIC_RELEASE);
		x->wild = true;
		return;
	}
	if (whose < QPS)
		qpn = x->qp[whose] != NULL ? x->qp[whose]->qp_num : x->gone;
	else if (whose < QPS + WORLD_QPS)
		qpn = x->w->qp[whose - QPS]->qp_num;
	lib_doorbell_mark(&lib_ctx(x->ctx)->uar, qpn);
}

/* ---- queues ---- */

static void
post_request(struct ringer *x, struct fuzz_input *in)
{
	struct softhca_qp *qp = x->qp[fuzz_u8(in) % QPS];
	uint8_t kind = fuzz_u8(in), len = fuzz_u8(in);
	struct softhca_sge sge = {(uintptr_t)x->mem, len, x->mr != NULL ? x->mr->lkey : 1};
	struct softhca_send_wr *bad, wr = {
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = kind % 7,
					     .send_flags = kind & 0x80 ? SOFTHCA_SEND_SIGNALED : 0,
					     .wr.rdma = {0x10000, 0x1234},
				     };

	if (wr.opcode >= SOFTHCA_WR_ATOMIC_CMP_AND_SWP) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = 0x10000;
		wr.wr.atomic.rkey = 0x1234;
	}
	if (qp != NULL)
		softhca_post_send(qp, &wr, &bad);
}

static void
post_receive(struct ringer *x, uint8_t to)
{
	struct softhca_sge sge = {(uintptr_t)x->mem, 64, x->mr != NULL ? x->mr->lkey : 1};
	struct softhca_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if (to % (QPS + 1) == QPS) {
		if (x->srq != NULL)
			softhca_post_srq_recv(x->srq, &wr, &bad);
	} else if (x->qp[to % (QPS + 1)] != NULL) {
		softhca_post_recv(x->qp[to % (QPS + 1)], &wr, &bad);
	}
}

static void
touch_cq(struct ringer *x, struct fuzz_input *in)
{
	struct softhca_cq *pub = x->cq[fuzz_u8(in) % CQS];
	uint8_t what = fuzz_u8(in);
	uint32_t v = fuzz_u16(in);
	struct lib_cq *cq = (struct lib_cq *)pub;
	struct softhca_wc wc[4];

	if (pub == NULL)
		return;
	switch (what & 3) {
	case 0:
		__atomic_store_n(&cq->record->consumer, hca_cpu_to_le32(what & 4 ? v << 16 : v),
				 __ATOMIC_RELEASE);
		break;
	case 1:
		__atomic_store_n(&cq->record->arm, hca_cpu_to_le32(v), __ATOMIC_RELEASE);
		break;
	case 2:
		cq->ring[v & cq->mask].owner = (uint8_t)(v >> 8);
		break;
	default:
		softhca_poll_cq(pub, 4, wc);
	}
}

/* The send queue of a QP, or the SRQ; NULL: it does not exist. */
static struct lib_wq *
queue_of(struct ringer *x, uint8_t which)
{
	if (which % (QPS + 1) == QPS)
		return x->srq != NULL ? &((struct lib_srq *)x->srq)->wq : NULL;
	if (x->qp[which % (QPS + 1)] == NULL)
		return NULL;
	return &((struct lib_qp *)x->qp[which % (QPS + 1)])->sq;
}

static void
touch_record(struct ringer *x, struct fuzz_input *in)
{
	uint8_t which = fuzz_u8(in) % (QPS + 1), at = fuzz_u8(in);
	uint32_t v = fuzz_u16(in);
	struct hca_rq_record *r = NULL;

	if (which == QPS && x->srq != NULL)
		r = ((struct lib_srq *)x->srq)->record;
	else if (which < QPS && x->qp[which] != NULL)
		r = ((struct lib_qp *)x->qp[which])->rq_record;
	if (r == NULL)
		return;
	/* mostly the count itself */
	at = at & 3 ? 0 : at / 4 % (sizeof(*r) / 4);
	__atomic_store_n((uint32_t *)(void *)r + at, v & 0x8000 ? v << 16 : v, __ATOMIC_RELEASE);
}

static void
touch_queue(struct ringer *x, struct fuzz_input *in)
{
	struct lib_wq *q = queue_of(x, fuzz_u8(in));
	uint32_t off = fuzz_u16(in);
	size_t n;
	const uint8_t *p = fuzz_bytes(in, fuzz_u8(in), &n);

	for (size_t i = 0; q != NULL && q->buf != NULL && i < n; i++)
		q->buf[(off + i) & (((size_t)(q->mask + 1) << q->log_stride) - 1)] = p[i];
}

static void
modify(struct ringer *x, struct fuzz_input *in)
{
	uint8_t i = fuzz_u8(in) % QPS;
	const struct softhca_qp_attr a = {.qp_state = fuzz_u8(in) % 7};

	if (x->qp[i] == NULL)
		return;
	if (a.qp_state == SOFTHCA_QPS_RTS && i != 3) {
		const struct softhca_qp_attr reset = {.qp_state = SOFTHCA_QPS_RESET};

		fuzz_check(softhca_modify_qp(x->qp[i], &reset, SOFTHCA_QP_STATE) == 0,
			   "to RESET: %s", softhca_last_error(x->ctx));
		world_connect(x->w, x->qp[i]);
	} else {
		softhca_modify_qp(x->qp[i], &a, SOFTHCA_QP_STATE);
	}
}

/* ---- an input ---- */

static void
step(struct ringer *x, struct fuzz_input *in)
{
	struct hca_uar_page *page;
	uint64_t v = 0;
	uint8_t slot, what;
	bool foreign;

	what = fuzz_u8(in);
	if ((what & 31) == 19) {
		mark(x, in);
		return;
	}
	switch (what & 15) {
	case 0:
		ring_in_turn(x, in);
		break;
	case 1:
		slot = fuzz_u8(in);
		page = lib_ctx(x->ctx)->uar.page;
		v = word(x, in, &foreign);
		__atomic_store_n(&page->fifo[slot], hca_cpu_to_le64(v), __ATOMIC_RELEASE);
		x->wild = true;
		break;
	case 2:
		torn(x, in);
		break;
	case 3:
		page = lib_ctx(x->ctx)->uar.page;
		v = word(x, in, &foreign);
		__atomic_store_n(&page->sq_doorbell, hca_cpu_to_le64(v), __ATOMIC_RELEASE);
		x->wild = true;
		break;
	case 4:
		for (unsigned int i = 0; i < 8; i++)
			v = v << 8 | fuzz_u8(in);
		ring(x, v);
		break;
	case 5:
		post_request(x, in);
		break;
	case 6:
		post_receive(x, fuzz_u8(in));
		break;
	case 7:
		touch_cq(x, in);
		break;
	case 8:
		touch_record(x, in);
		break;
	case 9:
		touch_queue(x, in);
		break;
	case 10:
		make_object(x, fuzz_u8(in));
		break;
	case 11:
		destroy_object(x, fuzz_u8(in));
		break;
	case 12:
		modify(x, in);
		break;
	case 13:
		ringer_close(x);
		ringer_open(x);
		break;
	case 14:
		world_poll(x->w, fuzz_u8(in));
		break;
	default:
		world_poll(x->w, 1);
	}
}

static void
remember(const struct world *w, struct bystander *b)
{
	b->fresh = *world_store((struct world *)(uintptr_t)w, WORLD_FRESH);
	b->page = *lib_ctx(w->ctx)->uar.page;
	b->reserve = world_cq(w)->reserve;
	b->began = w->now;
	b->doorbells = hca_counter_value(w->h, HCA_CTR_doorbells);
	b->drops = drops(w);
}

static void
compare(struct world *w, const struct bystander *b)
{
	const struct hca_qp *fresh = world_store(w, WORLD_FRESH);

	fuzz_check(memcmp(fresh, &b->fresh, sizeof(*fresh)) == 0,
		   "the context of somebody else's QP changed");
	fuzz_check(memcmp(lib_ctx(w->ctx)->uar.page, &b->page, sizeof(b->page)) == 0,
		   "somebody else's page changed");
	fuzz_check(drops(w) - b->drops <= hca_counter_value(w->h, HCA_CTR_doorbells) - b->doorbells,
		   "more doorbells dropped than taken");
	if (w->now - b->began > CALM_NS)
		return;
	fuzz_check(world_cq(w)->reserve == b->reserve, "somebody else's CQ was written");
	for (unsigned int i = 0; i < WORLD_QPS; i++)
		fuzz_check(hca_qp_state(world_store(w, i)) == HCA_QPS_RTS,
			   "QP %u of somebody else is in state %u", i,
			   hca_qp_state(world_store(w, i)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t mem[MEM] __attribute__((aligned(4096)));
	struct fuzz_input in = {data, data + size};
	struct ringer x = {.w = world_begin(), .mem = mem};
	struct bystander b;

	ringer_open(&x);
	remember(x.w, &b);
	for (unsigned int i = 0; i < STEPS_MAX && fuzz_left(&in) != 0; i++)
		step(&x, &in);
	compare(x.w, &b);
	ringer_close(&x);
	world_end(x.w);
	return 0;
}
