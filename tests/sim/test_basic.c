/* SPDX-License-Identifier: BSD-3-Clause */

/* Every operation on a clean link: sizes, scatter lists, inline, flags, chains. */

#include "sim_test.h"

#define PROGRAM "test_basic"
#define S SOFTHCA_SEND_SIGNALED

static const uint32_t all_ops[] = {
	SOFTHCA_WR_SEND,
	SOFTHCA_WR_SEND_WITH_IMM,
	SOFTHCA_WR_RDMA_WRITE,
	SOFTHCA_WR_RDMA_WRITE_WITH_IMM,
	SOFTHCA_WR_RDMA_READ,
	SOFTHCA_WR_ATOMIC_CMP_AND_SWP,
	SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
	SOFTHCA_WR_ATOMIC_WRITE,
	SOFTHCA_WR_FLUSH,
};

#define OPS (sizeof(all_ops) / sizeof(all_ops[0]))

static void
post(struct sim_pair *p, unsigned int side, const struct sim_req *req, unsigned int n)
{
	int rc = sim_post(p, side, req, n);

	sim_check(p->s, rc == 0, "sim_post: %d", rc);
}

static void
check_clean(struct sim *s)
{
	for (unsigned int i = 0; i < 2; i++) {
		sim_check(s, sim_counter(s, i, "retransmissions") == 0, "retransmissions");
		sim_check(s, sim_counter(s, i, "local_ack_timeout_err") == 0, "timeouts");
		sim_check(s, sim_counter(s, i, "seq_nak_sent") == 0, "sequence NAKs");
		sim_check(s, sim_counter(s, i, "rnr_nak_sent") == 0, "RNR NAKs");
	}
}

static void
open_close_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, NULL);

	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(open_close)

static void
each_op_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, NULL);

	for (unsigned int i = 0; i < OPS; i++) {
		for (unsigned int side = 0; side < 2; side++) {
			const struct sim_req r = {.opcode = all_ops[i], .len = 100, .flags = S};

			post(p, side, &r, 1);
			sim_finish(s, SIM_S);
		}
	}
	check_clean(s);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(each_op)

/* Lengths around the MTU, at every MTU. */
static void
sizes_in(const struct sim_config *cfg)
{
	for (uint32_t mtu = SOFTHCA_MTU_256; mtu <= SOFTHCA_MTU_4096; mtu++) {
		uint32_t m = 128u << mtu;
		const uint32_t sizes[] = {0,	     1,	    2,	       3,      4,	   5,
					  63,	     64,    65,	       m - 1,  m,	   m + 1,
					  2 * m - 1, 2 * m, 2 * m + 1, 33 * m, 100 * m + 7};
		const struct sim_pair_attr attr = {.mtu = mtu,
						   .region = 4 << 20,
						   .psn = {0xfffff0, 0x123456}};
		struct sim *s = sim_open(cfg);
		struct sim_pair *p = sim_pair_open(s, &attr);

		for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			for (unsigned int k = 0; k < OPS; k++) {
				const struct sim_req r = {.opcode = all_ops[k],
							  .len = sizes[i],
							  .flags = S};

				post(p, (i + k) & 1, &r, 1);
			}
			sim_finish(s, SIM_S);
		}
		check_clean(s);
		sim_pair_close(p);
		sim_close(s);
	}
}
SIM_TEST(sizes)

static void
big_messages_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr attr = {.mtu = SOFTHCA_MTU_4096, .region = 16 << 20};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);

	for (unsigned int i = 0; i < OPS; i++) {
		const struct sim_req r = {.opcode = all_ops[i],
					  .len = (5 << 20) + 13,
					  .nsge = 3,
					  .flags = S};

		post(p, i & 1, &r, 1);
		sim_finish(s, SIM_S);
	}
	check_clean(s);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(big_messages)

/* 0 .. 16 SGEs of odd lengths, including empty ones. */
static void
scatter_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr attr = {.mtu = SOFTHCA_MTU_512, .max_sge = 16};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);

	for (unsigned int round = 0; round < 40; round++) {
		for (unsigned int k = 0; k < OPS; k++) {
			uint32_t len[16], sum = 0;
			struct sim_req r = {.opcode = all_ops[k], .flags = S, .sge_len = len};

			r.nsge = round % 17;
			for (unsigned int i = 0; i < r.nsge; i++) {
				len[i] = round % 3 == 0 && i % 2 == 0
						 ? 0
						 : 1 + (round * 7 + i * 13) % 97;
				sum += len[i];
			}
			r.len = sum;
			if (all_ops[k] >= SOFTHCA_WR_ATOMIC_CMP_AND_SWP)
				r.sge_len = NULL;
			post(p, k & 1, &r, 1);
		}
		sim_finish(s, SIM_S);
	}
	check_clean(s);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(scatter)

static void
inline_data_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr attr = {.mtu = SOFTHCA_MTU_256, .max_inline = 400};
	const uint32_t sizes[] = {0, 1, 15, 16, 17, 64, 255, 256, 257, 400};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);
	unsigned int posted[2] = {0};

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned int k = 0; k < 4; k++) {
			const struct sim_req r = {.opcode = all_ops[k],
						  .len = sizes[i],
						  .nsge = sizes[i] > 3 ? 3 : 0,
						  .flags = S | SOFTHCA_SEND_INLINE};

			post(p, k & 1, &r, 1);
			posted[k & 1] += sizes[i] != 0;
		}
		sim_finish(s, SIM_S);
	}
	check_clean(s);
	for (unsigned int side = 0; side < 2; side++)
		sim_check(s, sim_counter(s, side, "sq_inline") == posted[side], "inline data");
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(inline_data)

/* Chains with every mixture of fence, unsignalled and solicited, both sides at once. */
static void
chains_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr attr = {.mtu = SOFTHCA_MTU_1024,
					   .max_inline = 100,
					   .region = 4 << 20};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);

	for (unsigned int round = 0; round < 30; round++) {
		for (unsigned int side = 0; side < 2; side++) {
			struct sim_req r[32];
			unsigned int n = 1 + sim_below(&s->model->rng, 32);

			for (unsigned int i = 0; i < n; i++)
				r[i] = sim_random_req(p, 9000);
			post(p, side, r, n);
		}
		sim_finish(s, SIM_S);
	}
	check_clean(s);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(chains)

/* The queue wraps around repeatedly and is always full. */
static void
full_queue_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr attr = {.sq_depth = 16, .rq_depth = 16, .region = 8 << 20};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);

	for (unsigned int i = 0; i < 2000; i++) {
		struct sim_req r = sim_random_req(p, 3000);
		unsigned int side = i & 1;

		r.flags |= S;
		for (unsigned int k = 0; sim_post(p, side, &r, 1) != 0; k++) {
			sim_check(s, k < 100000, "the queue stays full");
			sim_poll(s);
			sim_reap(s);
		}
		if (i % 500 == 499)
			sim_finish(s, SIM_S);
	}
	check_clean(s);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(full_queue)

/*
 * A WRITE of memory that a READ fills just before, over a link with delay: correct only with a
 * fence. In one chain, and with two doorbells.
 */
static void
fence_in(const struct sim_config *cfg)
{
	const struct hca_impair slow = {.delay_ns = 20000};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, NULL);
	struct sim_region *l = &p->region[0], *r = &p->region[1];

	sim_impair(s, 0, &slow);
	sim_impair(s, 1, &slow);
	for (unsigned int way = 0; way < 2; way++) {
		uint32_t from = 8192 * way, to = from + 65536, via = from + 131072;
		struct softhca_sge sge = {.addr = l->va + via, .length = 5000, .lkey = l->mr->lkey};
		struct softhca_send_wr wr[2] =
			{
				{.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = SOFTHCA_WR_RDMA_READ,
				 .send_flags = S,
				 .next = way == 0 ? &wr[1] : NULL,
				 .wr.rdma = {.remote_addr = r->va + from, .rkey = r->mr->rkey}},
				{.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = SOFTHCA_WR_RDMA_WRITE,
				 .send_flags = S | SOFTHCA_SEND_FENCE,
				 .wr.rdma = {.remote_addr = r->va + to, .rkey = r->mr->rkey}},
			},
				       *bad;
		struct softhca_wc wc[2];
		int n = 0;

		sim_check(s, softhca_post_send(p->qp[0], &wr[0], &bad) == 0, "post");
		sim_check(s, way == 0 || softhca_post_send(p->qp[0], &wr[1], &bad) == 0, "post");
		for (unsigned int k = 0; n < 2 && k < 100000; k++) {
			sim_poll(s);
			n += softhca_poll_cq(p->cq[0], 2 - n, wc + n);
		}
		sim_check(s, n == 2 && wc[1].status == SOFTHCA_WC_SUCCESS, "not finished");
		sim_check(s, memcmp(r->view + from, r->view + to, 5000) == 0,
			  "the WRITE did not wait for the READ");
	}
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(fence)

static void
many_pairs_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *p[20];

	for (unsigned int i = 0; i < 20; i++)
		p[i] = sim_pair_open(s, NULL);
	for (unsigned int round = 0; round < 10; round++) {
		for (unsigned int i = 0; i < 20; i++) {
			struct sim_req r[8];

			for (unsigned int k = 0; k < 8; k++)
				r[k] = sim_random_req(p[i], 5000);
			post(p[i], round & 1, r, 8);
		}
		sim_finish(s, SIM_S);
	}
	check_clean(s);
	for (unsigned int i = 0; i < 20; i++)
		sim_pair_close(p[i]);
	sim_close(s);
}
SIM_TEST(many_pairs)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_close), cmocka_unit_test(each_op),
		cmocka_unit_test(sizes),      cmocka_unit_test(big_messages),
		cmocka_unit_test(scatter),    cmocka_unit_test(inline_data),
		cmocka_unit_test(chains),     cmocka_unit_test(full_queue),
		cmocka_unit_test(fence),      cmocka_unit_test(many_pairs),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
