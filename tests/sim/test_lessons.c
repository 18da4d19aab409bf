/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Bugs of other RDMA implementations in software, each as a test: lengths of zero and lengths that
 * wrap, memory that changes while it is read, packets for destroyed QPs, unexpected
 * acknowledgements, datagrams of any length, repeated atomics, leaked objects.
 */

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "lib_types.h"
#include "sim_duo.h"
#include "sim_link.h"
#include "sim_test.h"
#include "sim_victim.h"

#define PROGRAM "test_lessons"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define RIGHTS \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ | \
	 SOFTHCA_ACCESS_REMOTE_ATOMIC)

/* The next completion of a side, without the model. */
static void
expect(struct sim_pair *p, unsigned int side, uint32_t status, uint32_t byte_len)
{
	struct softhca_wc wc;

	sim_settle(p->s);
	sim_check(p->s, softhca_poll_cq(p->cq[side], 1, &wc) == 1, "side %u: no completion", side);
	sim_check(p->s, wc.status == status, "%s instead of %s", softhca_wc_status_str(wc.status),
		  softhca_wc_status_str(status));
	if (status == SOFTHCA_WC_SUCCESS && (wc.opcode & SOFTHCA_WC_RECV) != 0)
		sim_check(p->s, wc.byte_len == byte_len, "%u bytes, not %u", wc.byte_len, byte_len);
}

/* --- zero length -------------------- */

/* No SGE, or an empty one with an invalid key; keys of empty SGEs are not checked. */
static void
nothing_in(const struct sim_config *cfg)
{
	static const struct sim_pair_attr attr[] = {{0}, {.srq = true}, {.xrc = true}};
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < COUNT(attr) * 2; i++) {
		struct sim_pair *p = sim_pair_open(s, &attr[i / 2]);
		struct softhca_sge none = {0x1234, 0, 0xdeadbeef};

		for (uint32_t op = 0; op <= SOFTHCA_WR_RDMA_READ; op++) {
			struct softhca_recv_wr rwr = {.sg_list = &none, .num_sge = i & 1};
			struct softhca_send_wr wr = {
				.sg_list = &none,
				.num_sge = i & 1,
				.opcode = op,
				.send_flags = S,
				.wr.rdma = {UINT64_MAX, 0xdeadbeef},
			};

			struct softhca_recv_wr *rbad;
			struct softhca_send_wr *bad;
			bool recv = op != SOFTHCA_WR_RDMA_WRITE && op != SOFTHCA_WR_RDMA_READ;
			int rc = 0;

			if (recv)
				rc = p->srq[1] != NULL
					     ? softhca_post_srq_recv(p->srq[1], &rwr, &rbad)
					     : softhca_post_recv(p->qp[1], &rwr, &rbad);
			sim_check(s, rc == 0, "post_recv");
			if (attr[i / 2].xrc)
				wr.qp_type.xrc.remote_srqn = p->srq[1]->handle;
			sim_check(s, softhca_post_send(p->qp[0], &wr, &bad) == 0, "post_send");
			expect(p, 0, SOFTHCA_WC_SUCCESS, 0);
			if (recv)
				expect(p, 1, SOFTHCA_WC_SUCCESS, 0);
		}
		sim_pair_close(p);
	}
	sim_check(s, sim_counter(s, 0, "retransmissions") == 0, "retransmissions");
	sim_close(s);
}
SIM_TEST(nothing)

/* An atomic returns eight bytes; without room for them nothing is changed. */
static void
atomic_of_nothing_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (uint32_t len = 0; len < 8; len++) {
		struct sim_pair *p = sim_pair_open(s, NULL);
		struct softhca_sge sge = {p->region[0].va + 64, len, p->region[0].mr->lkey};
		struct softhca_send_wr wr = {
			.sg_list = &sge,
			.num_sge = len != 0,
			.opcode = SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
			.send_flags = S,
			.wr.atomic = {.remote_addr = p->region[1].va + 64,
				      .rkey = p->region[1].mr->rkey,
				      .compare_add = 1},
		};
		struct softhca_send_wr *bad;
		struct softhca_wc wc;

		if (softhca_post_send(p->qp[0], &wr, &bad) == 0) {
			sim_settle(s);
			sim_check(s, softhca_poll_cq(p->cq[0], 1, &wc) == 1, "no completion");
			sim_check(s, wc.status != SOFTHCA_WC_SUCCESS, "%u bytes were enough", len);
		}
		sim_check(s, memcmp(p->region[0].view, p->region[0].shadow, 4096) == 0,
			  "something was stored here");
		sim_check(s, memcmp(p->region[1].view, p->region[1].shadow, 4096) == 0,
			  "something was stored there");
		sim_pair_close(p);
	}
	sim_close(s);
}
SIM_TEST(atomic_of_nothing)

/*
 * Packets of every opcode without payload, in sequence: accepted or refused, without other effects.
 */
static void
empty_packets_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int kind = 0; kind < SIM_VICTIM_KINDS; kind++) {
		struct sim_victim v;

		sim_victim_open(s, &v, kind, SIM_GID_V4);
		for (unsigned int op = 0; op < 256; op++) {
			const struct hca_roce_opcode_info *info = &hca_roce_opcodes[op];
			struct roce_headers h = {
				.deth = {SIM_VICTIM_QKEY, SIM_VICTIM_PEER},
				.xrceth = v.srqn,
				.reth = {.va = UINT64_MAX, .rkey = 0xdeadbeef},
				.atomic = {.va = (uintptr_t)v.mem, .rkey = 0xdeadbeef},
			};

			if (!info->valid)
				continue;
			sim_victim_to(&v, SOFTHCA_QPS_RTS);
			sim_inject_whole(&x, &v.path, (uint8_t)op, SIM_VICTIM_PSN, true, &h, 0);
			sim_settle(s);
			/* the GRH of a datagram is in its receive */
			sim_victim_check(&v, kind != SIM_VICTIM_UD);
			sim_victim_completions(&v);
		}
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(empty_packets)

/* --- ranges that wrap -------------------- */

struct range {
	uint64_t va;
	uint32_t len;
	bool good;
};

static void
access_range(struct sim *s, struct softhca_mr *mr, uint32_t op, const struct range *r)
{
	struct sim_pair *p = sim_pair_open(s, NULL);
	struct softhca_sge sge = {p->region[0].va, r->len, p->region[0].mr->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = op,
				     .send_flags = S,
				     .wr.rdma = {r->va, mr->rkey}};
	struct softhca_send_wr *bad;

	memset(p->region[0].view, 0x21, r->len);
	sim_check(s, softhca_post_send(p->qp[0], &wr, &bad) == 0, "post_send");
	expect(p, 0, r->good ? SOFTHCA_WC_SUCCESS : SOFTHCA_WC_REM_ACCESS_ERR, 0);
	sim_pair_close(p);
}

static void
wrapping_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	uint8_t *mem = aligned_alloc(4096, 3 * 4096);
	void *page = mem + 4096;
	/* the region ends one page below the end of the address space */
	const uint64_t high = UINT64_MAX - 8191;
	struct softhca_mr *top =
		softhca_reg_mr_pages(s->side[1].pd, high, 4096, 4096, &page, 1, RIGHTS);
	struct softhca_mr *zero =
		softhca_reg_mr(s->side[1].pd, page, 4096, RIGHTS | SOFTHCA_ACCESS_ZERO_BASED);
	const struct range at_top[] = {
		{high, 4096, true},	    {high + 4095, 1, true},    {high + 4095, 2, false},
		{high + 4096, 1, false},    {high - 1, 1, false},      {high - 1, 4097, false},
		{UINT64_MAX, 1, false},	    {UINT64_MAX, 2, false},    {UINT64_MAX - 63, 64, false},
		{high + 4000, 8192, false}, {high, 0x7fffffff, false}, {0, 1, false},
	};
	const struct range at_zero[] = {
		{0, 4096, true},
		{4095, 1, true},
		{4095, 2, false},
		{4096, 1, false},
		{UINT64_MAX, 1, false},
		{UINT64_MAX, 2, false},
		{UINT64_MAX - 4095, 4096, false},
		{UINT64_MAX - 4095, 8192, false},
		{(uintptr_t)page, 1, false},
	};

	memset(mem, 0x21, 3 * 4096);
	sim_check(s, top != NULL && zero != NULL, "reg_mr");
	for (unsigned int op = 0; op < 2; op++) {
		uint32_t code = op ? SOFTHCA_WR_RDMA_READ : SOFTHCA_WR_RDMA_WRITE;

		/* the local region has one MiB; longer requests would fail there first */
		for (unsigned int i = 0; i < COUNT(at_top); i++)
			if (at_top[i].len < 1u << 20)
				access_range(s, top, code, &at_top[i]);
		for (unsigned int i = 0; i < COUNT(at_zero); i++)
			access_range(s, zero, code, &at_zero[i]);
	}
	for (unsigned int i = 0; i < 4096; i++)
		sim_check(s, mem[i] == 0x21 && mem[8192 + i] == 0x21, "beside the region");
	sim_check(s, softhca_dereg_mr(top) == 0 && softhca_dereg_mr(zero) == 0, "dereg_mr");
	/* a region cannot wrap around */
	sim_check(s,
		  softhca_reg_mr_pages(s->side[1].pd, UINT64_MAX - 4095, 8192, 4096,
				       (void *const[]){page, page}, 2, RIGHTS) == NULL,
		  "a region around the end of all addresses");
	free(mem);
	sim_close(s);
}
SIM_TEST(wrapping)

/* --- memory that changes while it is read -------------------- */

#define PAGE 4096u

struct flipper {
	struct sim *s;
	struct sim_duo d;
	struct sim_rng rng;
	int stop;
	uint64_t flips;
	uint8_t *page[2]; /* between inaccessible pages */
	struct softhca_mr *mr[2];
};

static uint8_t *
guarded_page(struct sim *s)
{
	uint8_t *m =
		mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sim_check(s,
		  m != MAP_FAILED && mprotect(m, PAGE, PROT_NONE) == 0 &&
			  mprotect(m + 2 * PAGE, PAGE, PROT_NONE) == 0,
		  "mmap");
	return m + PAGE;
}

/* Change one word of a WQE to an invalid value, and back. */
static void
flip(struct flipper *x, struct lib_wq *wq)
{
	static const uint32_t wrong[] = {0,	     1,		 8,	     0x7f,
					 4097,	     0x7fffffff, 0x80000000, 0x80000030,
					 0x800001ff, UINT32_MAX};
	uint32_t words = wq->bytes / 4, at = sim_below(&x->rng, words);
	uint32_t *w = (uint32_t *)(void *)wq->buf + at, keep;

	/* records are after the WQEs */
	if (at >= (wq->mask + 1) << wq->log_stride >> 2)
		return;
	keep = __atomic_load_n(w, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < 20; i++) {
		__atomic_store_n(w, wrong[sim_below(&x->rng, COUNT(wrong))], __ATOMIC_RELAXED);
		__atomic_store_n(w, keep, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&x->flips, 1, __ATOMIC_RELAXED);
}

static void *
flipping(void *arg)
{
	struct flipper *x = arg;

	while (!__atomic_load_n(&x->stop, __ATOMIC_RELAXED)) {
		for (unsigned int i = 0; i < 32; i++) {
			flip(x, &((struct lib_qp *)x->d.qp[0])->sq);
			flip(x, &((struct lib_qp *)x->d.qp[1])->rq);
		}
		usleep(10);
	}
	return NULL;
}

/* Requests whose data is in the guarded pages, unless a field is flipped. */
static void
post_some(struct flipper *x)
{
	struct softhca_sge sge = {(uintptr_t)x->page[0], PAGE, x->mr[0]->lkey};
	struct softhca_sge room = {(uintptr_t)x->page[1], PAGE, x->mr[1]->lkey};
	struct softhca_recv_wr rwr = {.sg_list = &room, .num_sge = 1}, *rbad;
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_SEND,
		.send_flags = S,
		.wr.rdma = {(uintptr_t)x->page[1], x->mr[1]->rkey},
	};
	struct softhca_send_wr *bad;

	for (unsigned int i = 0; i < 8; i++) {
		(void)softhca_post_recv(x->d.qp[1], &rwr, &rbad);
		(void)softhca_post_send(x->d.qp[0], &wr, &bad);
	}
	wr.opcode = SOFTHCA_WR_RDMA_READ;
	(void)softhca_post_send(x->d.qp[0], &wr, &bad);
	wr.opcode = SOFTHCA_WR_RDMA_WRITE;
	(void)softhca_post_send(x->d.qp[0], &wr, &bad);
}

static void
one_life(struct flipper *x)
{
	pthread_t t;

	sim_duo_open(x->s, &x->d);
	x->stop = 0;
	sim_check(x->s, pthread_create(&t, NULL, flipping, x) == 0, "thread");
	for (unsigned int round = 0; round < 60; round++) {
		post_some(x);
		for (unsigned int k = 0; k < 20; k++)
			sim_poll(x->s);
		sim_cq_drain(x->d.scq[0], NULL);
		sim_cq_drain(x->d.scq[1], NULL);
	}
	__atomic_store_n(&x->stop, 1, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	sim_duo_close(&x->d);
}

static void
check_page(struct flipper *x, unsigned int side)
{
	for (uint32_t i = 0; i < PAGE; i++)
		sim_check(x->s, x->page[side][i] == 0x5c, "byte %u of side %u", i, side);
}

static void
changing_wqes(void **state)
{
	const struct sim_config cfg = {.layout = HCA_LAYOUT_TXRX,
				       .executor = SIM_THREADS,
				       .seed = sim_env("SIM_SEED", 1)};
	struct flipper x = {.s = sim_open(&cfg), .rng.s = cfg.seed};

	(void)state;
	sim_set_repeat("SIM_SEED=%llu CMOCKA_TEST_FILTER=changing_wqes " PROGRAM,
		       (unsigned long long)cfg.seed);
	for (unsigned int i = 0; i < 2; i++) {
		x.page[i] = guarded_page(x.s);
		memset(x.page[i], 0x5c, PAGE);
		x.mr[i] = softhca_reg_mr(x.s->side[i].pd, x.page[i], PAGE, RIGHTS);
		sim_check(x.s, x.mr[i] != NULL, "reg_mr");
	}
	for (unsigned int life = 0; life < 25; life++) {
		x.d = (struct sim_duo){0};
		one_life(&x);
	}
	/* both pages have equal bytes, so foreign data would show */
	check_page(&x, 0);
	check_page(&x, 1);
	sim_check(x.s, x.flips > 100, "only %llu flips", (unsigned long long)x.flips);
	for (unsigned int i = 0; i < 2; i++) {
		sim_check(x.s, softhca_dereg_mr(x.mr[i]) == 0, "dereg_mr");
		munmap(x.page[i] - PAGE, 3 * PAGE);
	}
	sim_close(x.s);
}

/* --- packets for destroyed QPs -------------------- */

enum end {
	END_ERR,
	END_RESET,
	END_REUSED, /* RESET and connected again, with other PSNs */
	END_NEW,    /* destroyed, and others created until the index is reused */
	ENDS
};

static void
to_state(struct sim_victim *v, uint32_t state)
{
	const struct softhca_qp_attr a = {.qp_state = state};

	sim_check(v->s, softhca_modify_qp(v->qp, &a, SOFTHCA_QP_STATE) == 0, "modify_qp");
}

/* Valid packets in flight when their QP was reset or destroyed. */
static void
late_for(struct sim *s, struct sim_injector *x, enum sim_victim_kind kind, enum end how)
{
	struct sim_victim v, next;
	struct hca_roce_path path;
	struct roce_headers h;
	uint32_t psn = SIM_VICTIM_PSN;

	sim_victim_open(s, &v, kind, SIM_GID_V4);
	sim_victim_to(&v, SOFTHCA_QPS_RTS);
	path = v.path;
	h = (struct roce_headers){.reth = {(uintptr_t)v.mem + 8192, v.mr->rkey, 64},
				  .deth = {SIM_VICTIM_QKEY, SIM_VICTIM_PEER},
				  .xrceth = v.srqn};
	if (how == END_ERR || how == END_RESET)
		to_state(&v, how == END_ERR ? SOFTHCA_QPS_ERR : SOFTHCA_QPS_RESET);
	if (how == END_REUSED) {
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		psn -= 300; /* sent before the reset */
	}
	if (how == END_NEW) {
		sim_victim_close(&v);
		for (unsigned int i = 0; i < 300; i++) {
			sim_victim_open(s, &next, kind, SIM_GID_V4);
			if ((next.qp->qp_num & 0xff) == (path.qpn & 0xff))
				break;
			sim_victim_close(&next);
		}
		sim_check(s, (next.qp->qp_num & 0xff) == (path.qpn & 0xff), "no such index");
		sim_check(s, next.qp->qp_num != path.qpn, "the same QPN");
		sim_victim_to(&next, SOFTHCA_QPS_RTS);
		v = next;
		h.reth.va = (uintptr_t)v.mem + 8192;
	}
	for (unsigned int op = 0; op < 256; op++) {
		const struct hca_roce_opcode_info *info = &hca_roce_opcodes[op];

		if (!info->valid || info->is_response)
			continue;
		/* UD has no expected PSN */
		if (how == END_REUSED && kind == SIM_VICTIM_UD)
			continue;
		sim_inject_whole(x, &path, (uint8_t)op, psn, true, &h, info->has_payload ? 64 : 0);
	}
	sim_settle(s);
	sim_victim_check(&v, how != END_REUSED || kind != SIM_VICTIM_UC);
	if (how != END_REUSED || kind != SIM_VICTIM_UC)
		sim_check(s,
			  sim_victim_state(&v) == (how == END_ERR     ? SOFTHCA_QPS_ERR
						   : how == END_RESET ? SOFTHCA_QPS_RESET
								      : SOFTHCA_QPS_RTS),
			  "%s, end %u: another state", sim_victim_names[kind], how);
	sim_victim_close(&v);
}

static void
late_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < ENDS * SIM_VICTIM_KINDS; i++)
		late_for(s, &x, i % SIM_VICTIM_KINDS, i / SIM_VICTIM_KINDS);
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(late)

/* --- unexpected acknowledgements, datagrams of any length -------------------- */

static void
ack_bit_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_injector x;
	uint64_t sent;

	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < 2; i++) {
		enum sim_victim_kind kind = i ? SIM_VICTIM_UD : SIM_VICTIM_UC;
		uint8_t op = i ? HCA_BTH_UD_SEND_ONLY : HCA_BTH_UC_SEND_ONLY;
		const struct roce_headers h = {.deth = {SIM_VICTIM_QKEY, SIM_VICTIM_PEER}};
		struct sim_victim v;

		sim_victim_open(s, &v, kind, SIM_GID_V6);
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		sent = sim_counter(s, 1, "sent_pkts");
		for (uint32_t k = 0; k < 8; k++)
			sim_inject_whole(&x, &v.path, op, SIM_VICTIM_PSN + k, true, &h, 100);
		/* gaps and refused requests are not answered either */
		for (uint32_t k = 0; k < 8; k++)
			sim_inject_whole(&x, &v.path, op, SIM_VICTIM_PSN + 1000 * k, true, &h,
					 1000);
		sim_settle(s);
		sim_check(s, sim_victim_completions(&v) == 8, "not all were taken");
		sim_check(s, sim_counter(s, 1, "sent_pkts") == sent, "somebody was answered");
		sim_check(s, sim_victim_state(&v) == SOFTHCA_QPS_RTS, "not in RTS");
		sim_victim_check(&v, false);
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(ack_bit)

/* A datagram longer than its receive or the MTU is dropped; the next one uses the receive. */
static void
datagram_lengths_in(const struct sim_config *cfg)
{
	static const struct {
		uint32_t recv, len;
		bool good;
	} c[] = {
		{512, 0, true},	     {512, 472, true},	  {512, 473, false},  {512, 4096, false},
		{4136, 4096, true},  {4135, 4096, false}, {8192, 4096, true}, {8192, 4097, false},
		{8192, 4200, false}, {40, 0, true},	  {39, 0, false},     {40, 1, false},
	};
	const struct roce_headers h = {.deth = {SIM_VICTIM_QKEY, SIM_VICTIM_PEER}};
	struct sim *s = sim_open(cfg);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < COUNT(c) * SIM_GIDS; i++) {
		unsigned int k = i % COUNT(c);
		struct sim_victim v;

		sim_victim_open(s, &v, SIM_VICTIM_UD, i / COUNT(c));
		v.recv_len = c[k].recv;
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		sim_inject_whole(&x, &v.path, HCA_BTH_UD_SEND_ONLY, 5, false, &h, c[k].len);
		sim_settle(s);
		sim_check(s, sim_victim_completions(&v) == c[k].good,
			  "%u bytes for a receive of %u", c[k].len, c[k].recv);
		for (uint32_t at = c[k].good ? c[k].len + 40 : 0; at < SIM_VICTIM_BYTES; at++)
			sim_check(s, v.mem[at] == 0x96, "byte %u was written", at);
		sim_victim_check(&v, false);
		sim_check(s, sim_victim_state(&v) == SOFTHCA_QPS_RTS, "not in RTS");
		if (c[k].recv > 60) {
			sim_inject_whole(&x, &v.path, HCA_BTH_UD_SEND_ONLY, 6, false, &h, 20);
			sim_settle(s);
			sim_check(s, sim_victim_completions(&v) == 1, "the next one is lost");
		}
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(datagram_lengths)

/* --- repeated atomics -------------------- */

/* Values in the ATOMIC acknowledgements that side 1 sends now, withheld from side 0. */
static unsigned int
answers(struct sim *s, uint64_t *value, unsigned int max)
{
	struct hca_port *wire = s->side[0].wire;
	struct hca *h = s->side[1].hca;
	unsigned int got = 0;

	for (unsigned int loop = 0; loop < 400; loop++) {
		struct rte_mbuf *m[32];
		uint16_t n;

		s->now += s->cfg.tick_ns;
		for (unsigned int w = 0; w < hca_workers(h); w++)
			hca_poll(h, w, s->now);
		n = sim_link_take(wire, m, 32);
		for (uint16_t i = 0; i < n; i++) {
			const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);
			struct roce_headers hd;
			struct roce_view v;

			if (roce_parse(p, m[i]->data_len, &v) == 0 &&
			    v.op->ext & HCA_EXT_ATOMICACKETH && got < max) {
				roce_get_headers(p + v.bth, v.op, &hd);
				value[got++] = hd.original;
			}
			rte_pktmbuf_free(m[i]);
		}
	}
	return got;
}

static void
repeated_atomics_in(const struct sim_config *cfg)
{
	static const enum sim_victim_kind kinds[] = {SIM_VICTIM_RC, SIM_VICTIM_XRC_TGT};
	struct sim *s = sim_open(cfg);
	struct sim_injector x;

	/* the stepped executor has a clock of its own */
	if (cfg->executor == SIM_STEPPED) {
		sim_close(s);
		return;
	}
	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < COUNT(kinds) * 2; i++) {
		bool xrc = kinds[i / 2] == SIM_VICTIM_XRC_TGT, swap = i & 1;
		uint8_t op = (uint8_t)((xrc ? HCA_TRANSPORT_XRC : HCA_TRANSPORT_RC) << 5 |
				       (swap ? HCA_BTH_RC_CMP_SWAP : HCA_BTH_RC_FETCH_ADD));
		struct roce_headers h;
		uint64_t value[64], was, *word;
		struct sim_victim v;
		unsigned int n;

		sim_victim_open(s, &v, kinds[i / 2], SIM_GID_V4);
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		word = (uint64_t *)(void *)(v.mem + 8192);
		was = *word;
		h = (struct roce_headers){
			.xrceth = v.srqn,
			.atomic = {.va = (uintptr_t)word,
				   .rkey = v.mr->rkey,
				   .swap_add = 7,
				   .compare = was},
		};
		for (unsigned int k = 0; k < 10; k++) {
			sim_inject_whole(&x, &v.path, op, SIM_VICTIM_PSN, true, &h, 0);
			n = answers(s, value, COUNT(value));
			sim_check(s, n == 1 && value[0] == was, "%u answers, value %#llx not %#llx",
				  n, (unsigned long long)value[0], (unsigned long long)was);
			sim_check(s, *word == (swap ? 7 : was + 7), "executed again");
			/* another writer changes it: the repeated answer is the old one */
			*word = swap ? 7 : was + 7;
		}
		sim_settle(s);
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(repeated_atomics)

/* --- leaked objects -------------------- */

static unsigned int
entries(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned int n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

/* A client that creates some of everything and then just closes. */
static void
come_and_go(struct sim *s, unsigned int round)
{
	struct softhca_context *ctx = sim_client(s, round & 1);
	struct softhca_pd *pd = softhca_alloc_pd(ctx);
	struct softhca_cq_init_attr ca = {.cqe = 8, .channel = softhca_create_comp_channel(ctx)};
	struct softhca_cq *cq = softhca_create_cq(ctx, &ca);
	struct softhca_qp_init_attr qa = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = round % 3 ? SOFTHCA_QPT_RC : SOFTHCA_QPT_UD,
	};
	static uint8_t mem[4096] __attribute__((aligned(4096)));
	struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_INIT, .port_num = 1};
	struct softhca_qp *qp;

	sim_check(s, pd != NULL && cq != NULL, "create");
	qp = softhca_create_qp(pd, &qa);
	sim_check(s, qp != NULL && softhca_reg_mr(pd, mem, sizeof(mem), 0) != NULL, "create");
	sim_check(s, softhca_req_notify_cq(cq, 0) == 0, "req_notify_cq");
	sim_check(s,
		  softhca_modify_qp(qp, &a,
				    SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
					    (round % 3 ? SOFTHCA_QP_ACCESS_FLAGS
						       : SOFTHCA_QP_QKEY)) == 0,
		  "modify_qp");
	sim_check(s, softhca_close(ctx) == 0, "close");
}

static void
nothing_stays_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, NULL);
	unsigned int fds, tasks;

	come_and_go(s, 0);
	fds = entries("/proc/self/fd");
	tasks = entries("/proc/self/task");
	for (unsigned int round = 0; round < 1000; round++) {
		struct sim_req r = sim_random_req(p, 3000);

		r.flags |= S;
		sim_post(p, round & 1, &r, 1);
		come_and_go(s, round);
		sim_reap(s);
	}
	sim_finish(s, SIM_S);
	sim_check(s, entries("/proc/self/fd") == fds, "%u files were open, now %u", fds,
		  entries("/proc/self/fd"));
	sim_check(s, entries("/proc/self/task") == tasks, "threads are left");
	sim_pair_close(p);
	sim_check_usage(s, true);
	sim_close(s);
}
SIM_TEST(nothing_stays)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),	    cmocka_unit_test(atomic_of_nothing),
		cmocka_unit_test(empty_packets),    cmocka_unit_test(wrapping),
		cmocka_unit_test(changing_wqes),    cmocka_unit_test(late),
		cmocka_unit_test(ack_bit),	    cmocka_unit_test(datagram_lengths),
		cmocka_unit_test(repeated_atomics), cmocka_unit_test(nothing_stays),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
