/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Objects that QPs of several pipes share, with a real thread for each pipe: a word of atomics, an
 * SRQ and a CQ that is resized, a window that another pipe's QP unbinds; and QPs of one pipe that
 * are reset while those of the others transfer. SIM_PIPES: [4], SIM_ROUNDS: rounds of each [100].
 */

#include <time.h>

#include "sim_test.h"

#define PROGRAM "sim-across"

#define QPS 8u
#define DEPTH 16u
#define BLOCK 4096u
#define PER_QP (2 * DEPTH * BLOCK)
#define BYTES (QPS * PER_QP)
#define RECEIVES 64u
#define ADDS 50u		    /* of a QP in a round: two seldom meet */
#define PATIENCE_NS 240000000000ull /* for a test in one layout */
#define ACCESS \
	(SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC)

/* Side 0 sends requests; side 1 owns the shared objects. */
struct across {
	struct sim *s;
	uint32_t pipes, rounds;
	uint8_t *mem[2];
	struct softhca_mr *mr[2];
	struct softhca_cq *cq[2];
	struct softhca_srq *srq;
	struct softhca_qp *qp[2][QPS];
	uint64_t done[QPS]; /* successful requests of side 0 */
	uint32_t failed[QPS];
	uint64_t until; /* real time, ns */
};

static struct across across;

/* ---- set-up ---- */

static uint64_t
real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
to_reset(struct across *a, unsigned int side, uint32_t n)
{
	const struct softhca_qp_attr q = {.qp_state = SOFTHCA_QPS_RESET};

	sim_check(a->s, softhca_modify_qp(a->qp[side][n], &q, SOFTHCA_QP_STATE) == 0, "reset: %s",
		  softhca_last_error(NULL));
}

static void
connect_qp(struct across *a, unsigned int side, uint32_t n)
{
	sim_connect_rc(a->s, side, a->qp[side][n], a->qp[1 - side][n]->qp_num, ACCESS);
}

static void
open_side(struct across *a, unsigned int side)
{
	struct sim_side *e = &a->s->side[side];
	struct softhca_cq_init_attr ca = {.cqe = (int)(QPS * DEPTH + RECEIVES)};
	struct softhca_srq_init_attr sa = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = DEPTH, .max_send_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
		.sq_sig_all = 1,
	};
	uint32_t seen = 0;

	a->mem[side] = aligned_alloc(4096, BYTES);
	sim_check(a->s, a->mem[side] != NULL, "no memory");
	memset(a->mem[side], 0, BYTES);
	a->mr[side] = softhca_reg_mr(e->pd, a->mem[side], BYTES,
				     ACCESS | SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_MW_BIND);
	a->cq[side] = softhca_create_cq(e->ctx, &ca);
	if (side == 1)
		a->srq = softhca_create_srq(e->pd, &sa);
	sim_check(a->s, a->mr[side] != NULL && a->cq[side] != NULL && (side == 0 || a->srq != NULL),
		  "set-up: %s", softhca_last_error(NULL));
	qa.send_cq = qa.recv_cq = a->cq[side];
	qa.srq = side == 1 ? a->srq : NULL;
	for (uint32_t n = 0; n < QPS; n++) {
		a->qp[side][n] = softhca_create_qp(e->pd, &qa);
		sim_check(a->s, a->qp[side][n] != NULL, "create_qp: %s", softhca_last_error(NULL));
		seen |= 1u << (a->qp[side][n]->qp_num & (a->pipes - 1));
	}
	sim_check(a->s, seen == (1u << a->pipes) - 1, "QPs of pipes %#x only", seen);
}

static struct across *
across_open(enum hca_layout layout)
{
	struct across *a = &across;
	struct sim_config cfg = {.layout = layout,
				 .executor = SIM_THREADS,
				 .all_cpus = true,
				 .pipes = (uint32_t)sim_env("SIM_PIPES", 4),
				 .seed = sim_env("SIM_SEED", 1)};

	*a = (struct across){.pipes = cfg.pipes, .rounds = (uint32_t)sim_env("SIM_ROUNDS", 100)};
	sim_set_repeat("SIM_PIPES=%u SIM_ROUNDS=%u %s", a->pipes, a->rounds, PROGRAM);
	a->s = sim_open(&cfg);
	a->until = real_ns() + PATIENCE_NS;
	for (unsigned int side = 0; side < 2; side++)
		open_side(a, side);
	for (uint32_t n = 0; n < QPS; n++)
		for (unsigned int side = 0; side < 2; side++)
			connect_qp(a, side, n);
	return a;
}

static void
across_close(struct across *a)
{
	for (unsigned int side = 0; side < 2; side++) {
		for (uint32_t n = 0; n < QPS; n++)
			sim_check(a->s, softhca_destroy_qp(a->qp[side][n]) == 0, "destroy_qp");
		if (side == 1)
			sim_check(a->s, softhca_destroy_srq(a->srq) == 0, "destroy_srq");
		sim_check(a->s, softhca_destroy_cq(a->cq[side]) == 0, "destroy_cq");
		sim_check(a->s, softhca_dereg_mr(a->mr[side]) == 0, "dereg_mr: %s",
			  softhca_last_error(NULL));
	}
	sim_close(a->s);
	for (unsigned int side = 0; side < 2; side++)
		free(a->mem[side]);
}

/* ---- requests of side 0 ---- */

static uint8_t *
own(struct across *a, uint32_t n, uint64_t number)
{
	return a->mem[0] + n * PER_QP + number % (2 * DEPTH) * BLOCK;
}

/* The last 16 bits of wr_id are the number of the QP. */
static void
post(struct across *a, uint32_t n, uint64_t number, struct softhca_send_wr *wr, uint32_t len)
{
	struct softhca_sge sge = {(uintptr_t)own(a, n, number), len, a->mr[0]->lkey};
	struct softhca_send_wr *bad;

	wr->wr_id = number << 16 | n;
	wr->sg_list = &sge;
	wr->num_sge = 1;
	sim_check(a->s, softhca_post_send(a->qp[0][n], wr, &bad) == 0, "post_send: %s",
		  softhca_last_error(NULL));
}

/* Every loop of a test calls it, so that a test that hangs says where. */
static void
check_time(struct across *a)
{
	sim_check(a->s, real_ns() < a->until, "no end; done %lu %lu %lu %lu %lu %lu %lu %lu",
		  (unsigned long)a->done[0], (unsigned long)a->done[1], (unsigned long)a->done[2],
		  (unsigned long)a->done[3], (unsigned long)a->done[4], (unsigned long)a->done[5],
		  (unsigned long)a->done[6], (unsigned long)a->done[7]);
}

/* Completions of side 0 come in the order of each QP's requests. */
static void
reap(struct across *a)
{
	struct softhca_wc wc[16];
	int got = softhca_poll_cq(a->cq[0], 16, wc);

	sim_check(a->s, got >= 0, "poll_cq: %d", got);
	for (int i = 0; i < got; i++) {
		uint32_t n = wc[i].wr_id & 0xffff;

		sim_check(a->s, wc[i].qp_num == a->qp[0][n]->qp_num, "completion of another QP");
		if (wc[i].status != SOFTHCA_WC_SUCCESS) {
			a->failed[n]++;
			continue;
		}
		sim_check(a->s, wc[i].wr_id >> 16 == a->done[n], "QP %u: %lu instead of %lu", n,
			  (unsigned long)(wc[i].wr_id >> 16), (unsigned long)a->done[n]);
		a->done[n]++;
	}
	sim_poll(a->s);
	check_time(a);
}

static void
reap_until(struct across *a, const uint64_t *word, uint64_t value)
{
	while (*word != value)
		reap(a);
}

static void
check_no_failure(struct across *a)
{
	for (uint32_t n = 0; n < QPS; n++)
		sim_check(a->s, a->failed[n] == 0, "QP %u: %u failed", n, a->failed[n]);
}

/* ---- atomics ---- */

static uint64_t
result(struct across *a, uint32_t n, uint64_t number)
{
	uint64_t v;

	memcpy(&v, own(a, n, number), sizeof(v));
	return v;
}

static void
post_atomic(struct across *a, uint32_t n, uint64_t number, uint32_t opcode, uint64_t compare_add,
	    uint64_t swap)
{
	struct softhca_send_wr wr = {.opcode = opcode,
				     .wr.atomic = {.remote_addr = (uintptr_t)a->mem[1],
						   .rkey = a->mr[1]->rkey,
						   .compare_add = compare_add,
						   .swap = swap}};

	post(a, n, number, &wr, 8);
}

/* Sums that were returned. */
struct sums {
	uint8_t *seen;
	uint64_t max, n;
	uint64_t checked[QPS], last[QPS];
};

/* Every sum is returned once, and those of a QP rise. */
static void
check_sums(struct across *a, struct sums *s, uint32_t n)
{
	for (; s->checked[n] < a->done[n]; s->checked[n]++, s->n++) {
		uint64_t value = result(a, n, s->checked[n]);

		sim_check(a->s, value < s->max && s->seen[value] == 0, "QP %u: sum %lu twice", n,
			  (unsigned long)value);
		sim_check(a->s, s->checked[n] == 0 || value > s->last[n],
			  "QP %u: sum %lu after %lu", n, (unsigned long)value,
			  (unsigned long)s->last[n]);
		s->seen[value] = 1;
		s->last[n] = value;
	}
}

static void
fetch_and_add(struct across *a)
{
	uint64_t number[QPS] = {0}, adds = (uint64_t)ADDS * a->rounds, value;
	struct sums s = {.max = QPS * adds};

	s.seen = calloc(1, s.max);
	while (s.n < s.max) {
		reap(a);
		for (uint32_t n = 0; n < QPS; n++) {
			check_sums(a, &s, n);
			if (number[n] < adds && number[n] - a->done[n] < DEPTH)
				post_atomic(a, n, number[n]++, SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, 1,
					    0);
		}
	}
	memcpy(&value, a->mem[1], sizeof(value));
	sim_check(a->s, value == s.max, "%lu instead of %lu", (unsigned long)value,
		  (unsigned long)s.max);
	check_no_failure(a);
	free(s.seen);
}

/* Each round, one QP swaps the word, and the others find the new value. */
static void
compare_and_swap(struct across *a)
{
	for (uint64_t round = 0; round < a->rounds; round++) {
		uint32_t winners = 0;

		for (uint32_t n = 0; n < QPS; n++)
			post_atomic(a, (uint32_t)(n + round) % QPS, round,
				    SOFTHCA_WR_ATOMIC_CMP_AND_SWP, round, round + 1);
		for (uint32_t n = 0; n < QPS; n++) {
			uint64_t value;

			reap_until(a, &a->done[n], round + 1);
			value = result(a, n, round);
			winners += value == round;
			sim_check(a->s, value - round <= 1, "round %lu: QP %u found %lu",
				  (unsigned long)round, n, (unsigned long)value);
		}
		sim_check(a->s, winners == 1, "round %lu: %u winners", (unsigned long)round,
			  winners);
	}
}

/* ---- an SRQ and CQs ---- */

struct message {
	uint64_t qp, number;
};

struct receiver {
	bool posted[RECEIVES];
	uint64_t next[QPS]; /* number of each QP's next message */
	uint64_t got;
};

static void
post_receive(struct across *a, struct receiver *r, uint64_t slot)
{
	struct softhca_sge sge = {(uintptr_t)a->mem[1] + slot * sizeof(struct message),
				  sizeof(struct message), a->mr[1]->lkey};
	struct softhca_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	r->posted[slot] = true;
	sim_check(a->s, softhca_post_srq_recv(a->srq, &wr, &bad) == 0, "post_srq_recv");
}

/* Each receive is used once, by the next message of the QP that the completion names. */
static void
take_messages(struct across *a, struct receiver *r)
{
	struct softhca_wc wc[8];
	int got = softhca_poll_cq(a->cq[1], 8, wc);

	sim_check(a->s, got >= 0, "poll_cq: %d", got);
	for (int i = 0; i < got; i++) {
		struct message m;

		sim_check(a->s,
			  wc[i].status == SOFTHCA_WC_SUCCESS && wc[i].wr_id < RECEIVES &&
				  r->posted[wc[i].wr_id],
			  "receive %lu: status %u", (unsigned long)wc[i].wr_id, wc[i].status);
		r->posted[wc[i].wr_id] = false;
		memcpy(&m, a->mem[1] + wc[i].wr_id * sizeof(m), sizeof(m));
		sim_check(a->s, m.qp < QPS && wc[i].qp_num == a->qp[1][m.qp]->qp_num,
			  "message of QP %lu", (unsigned long)m.qp);
		sim_check(a->s, m.number == r->next[m.qp], "QP %lu: message %lu instead of %lu",
			  (unsigned long)m.qp, (unsigned long)m.number,
			  (unsigned long)r->next[m.qp]);
		r->next[m.qp]++;
		r->got++;
	}
}

/* They are posted when all are used: messages come that find no receive. */
static void
post_receives(struct across *a, struct receiver *r)
{
	for (uint64_t slot = 0; slot < RECEIVES; slot++)
		if (r->posted[slot])
			return;
	for (uint64_t slot = 0; slot < RECEIVES; slot++)
		post_receive(a, r, slot);
}

static void
send_message(struct across *a, uint32_t n, uint64_t number)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
	const struct message m = {n, number};

	memcpy(own(a, n, number), &m, sizeof(m));
	post(a, n, number, &wr, sizeof(m));
}

/* Fewer receives than messages under way. The CQs grow and shrink. */
static void
share_queues(struct across *a)
{
	uint64_t number[QPS] = {0}, total = (uint64_t)QPS * a->rounds, resized = 0;
	struct receiver r = {.got = 0};
	int cqe = a->cq[1]->cqe;

	/* the first messages find no receive */
	while (sim_counter(a->s, 0, "rnr_nak_received") == 0) {
		if (number[0] == 0)
			send_message(a, 0, number[0]++);
		reap(a);
	}
	while (r.got < total) {
		post_receives(a, &r);
		for (uint32_t n = 0; n < QPS; n++)
			if (number[n] < a->rounds && number[n] - a->done[n] < DEPTH)
				send_message(a, n, number[n]++);
		reap(a);
		take_messages(a, &r);
		if (r.got / 32 <= resized)
			continue;
		resized++;
		for (unsigned int side = 0; side < 2; side++)
			sim_check(a->s,
				  softhca_resize_cq(a->cq[side],
						    resized % 2 != 0 ? 2 * cqe : cqe) == 0,
				  "resize_cq: %s", softhca_last_error(NULL));
	}
	for (uint32_t n = 0; n < QPS; n++)
		reap_until(a, &a->done[n], a->rounds);
	check_no_failure(a);
}

/* ---- windows ---- */

static void
bind_window(struct across *a, struct softhca_mw *mw, uint32_t n, uint64_t len)
{
	struct softhca_mw_bind b = {
		.send_flags = SOFTHCA_SEND_SIGNALED,
		.bind_info = {len != 0 ? a->mr[1] : NULL, (uintptr_t)a->mem[1], len,
			      SOFTHCA_ACCESS_REMOTE_WRITE},
	};
	struct softhca_wc wc;

	sim_check(a->s, softhca_bind_mw(a->qp[1][n], mw, &b) == 0, "bind_mw: %s",
		  softhca_last_error(NULL));
	while (softhca_poll_cq(a->cq[1], 1, &wc) == 0) {
		sim_poll(a->s);
		check_time(a);
	}
	sim_check(a->s, wc.status == SOFTHCA_WC_SUCCESS, "bind: %s",
		  softhca_wc_status_str(wc.status));
}

static void
write_block(struct across *a, uint32_t n, uint64_t number, uint32_t rkey)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_RDMA_WRITE,
				     .wr.rdma = {(uintptr_t)a->mem[1], rkey}};

	memset(own(a, n, number), (int)(1 + number % 255), BLOCK);
	post(a, n, number, &wr, BLOCK);
}

/*
 * A QP writes through a window while a QP of another pipe unbinds it: when the unbinding has
 * completed, the memory does not change any more.
 */
static void
unbind_under_traffic(struct across *a)
{
	struct softhca_mw *mw = softhca_alloc_mw(a->s->side[1].pd, SOFTHCA_MW_TYPE_1);
	static uint8_t before[BLOCK];

	sim_check(a->s, mw != NULL, "alloc_mw: %s", softhca_last_error(NULL));
	for (uint32_t round = 0; round < a->rounds; round++) {
		uint32_t n = round % QPS, binder = (n + 1 + round / QPS % (QPS - 1)) % QPS;
		uint64_t number = 0;

		bind_window(a, mw, binder, BLOCK);
		a->done[n] = a->failed[n] = 0;
		while (a->done[n] < 1 + round % 20 && a->failed[n] == 0) {
			if (number - a->done[n] < DEPTH)
				write_block(a, n, number++, mw->rkey);
			reap(a);
		}
		sim_check(a->s, a->failed[n] == 0, "round %u: a WRITE to a bound window failed",
			  round);
		for (; number - a->done[n] < DEPTH; number++)
			write_block(a, n, number, mw->rkey);
		bind_window(a, mw, binder, 0);
		memcpy(before, a->mem[1], BLOCK);
		while (a->done[n] + a->failed[n] < number)
			reap(a);
		sim_check(a->s, memcmp(before, a->mem[1], BLOCK) == 0,
			  "round %u: memory changes after an unbinding", round);
		if (a->failed[n] == 0)
			continue;
		for (unsigned int side = 0; side < 2; side++)
			to_reset(a, side, n);
		for (unsigned int side = 0; side < 2; side++)
			connect_qp(a, side, n);
	}
	sim_check(a->s, softhca_dealloc_mw(mw) == 0, "dealloc_mw: %s", softhca_last_error(NULL));
}

/* ---- resets ---- */

static void
write_part(struct across *a, uint32_t n, uint64_t number)
{
	uint32_t at = (uint32_t)(own(a, n, number) - a->mem[0]);
	struct softhca_send_wr wr = {.opcode = number % 3 == 0 ? SOFTHCA_WR_RDMA_READ
							       : SOFTHCA_WR_RDMA_WRITE,
				     .wr.rdma = {(uintptr_t)a->mem[1] + at, a->mr[1]->rkey}};

	post(a, n, number, &wr, BLOCK);
}

/* QPs of one pipe are reset with requests under way; all requests of the other QPs succeed. */
static void
reset_one_pipe(struct across *a)
{
	uint64_t number[QPS] = {0};

	for (uint32_t round = 0; round < a->rounds; round++) {
		uint32_t pipe = round % a->pipes;

		for (uint32_t turn = 0; turn < 4; turn++) {
			for (uint32_t n = 0; n < QPS; n++)
				while (number[n] - a->done[n] < DEPTH)
					write_part(a, n, number[n]++);
			reap(a);
		}
		for (uint32_t n = 0; n < QPS; n++) {
			if ((a->qp[0][n]->qp_num & (a->pipes - 1)) != pipe)
				continue;
			for (unsigned int side = 0; side < 2; side++)
				to_reset(a, (side + round) % 2, n);
			for (unsigned int side = 0; side < 2; side++)
				connect_qp(a, side, n);
			/* completions of the time before are gone, by softhca_modify_qp() */
			a->done[n] = number[n] = 0;
		}
	}
	for (uint32_t n = 0; n < QPS; n++)
		reap_until(a, &a->done[n], number[n]);
	check_no_failure(a);
}

/* ---- all of it ---- */

static void
in_layouts(void (*run)(struct across *a))
{
	static const enum hca_layout layouts[] = {HCA_LAYOUT_RTC, HCA_LAYOUT_TXRX};

	for (unsigned int i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		struct across *a = across_open(layouts[i]);

		run(a);
		across_close(a);
	}
}

#define ACROSS_TEST(name) \
	static void test_##name(void **state) \
	{ \
		(void)state; \
		in_layouts(name); \
	}

ACROSS_TEST(fetch_and_add)
ACROSS_TEST(compare_and_swap)
ACROSS_TEST(share_queues)
ACROSS_TEST(unbind_under_traffic)
ACROSS_TEST(reset_one_pipe)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fetch_and_add),  cmocka_unit_test(test_compare_and_swap),
		cmocka_unit_test(test_share_queues),   cmocka_unit_test(test_unbind_under_traffic),
		cmocka_unit_test(test_reset_one_pipe),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
