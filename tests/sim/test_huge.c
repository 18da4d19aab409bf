/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages of 2 GiB, the maximum, between regions that map the same 2 MiB repeatedly: the data has
 * that period, so in the end the target must equal the source.
 */

#include <stdlib.h>
#include <sys/mman.h>

#include "sim_test.h"

#define PROGRAM "test_huge"
#define PAGE (2u << 20)
#define PAGES 1025u
#define MESSAGE (1ull << 31)
#define VA 0x200000000000ull

struct end {
	uint8_t *page;
	struct softhca_mr *mr;
};

static void
open_end(struct sim *s, unsigned int side, struct end *e)
{
	void *list[PAGES];

	e->page = aligned_alloc(PAGE, PAGE);
	sim_check(s, e->page != NULL, "no memory");
	for (uint32_t i = 0; i < PAGE; i++)
		e->page[i] = (uint8_t)((i * 2654435761u) >> 13) ^ (uint8_t)(side * 0x5a);
	for (unsigned int i = 0; i < PAGES; i++)
		list[i] = e->page;
	e->mr = softhca_reg_mr_pages(s->side[side].pd, VA, (uint64_t)PAGE * PAGES, PAGE, list,
				     PAGES,
				     SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
					     SOFTHCA_ACCESS_REMOTE_READ);
	sim_check(s, e->mr != NULL, "reg_mr_pages: %s", softhca_last_error(s->side[side].ctx));
}

static void
one(struct sim *s, struct sim_pair *p, struct end *e, uint32_t opcode)
{
	/* the longest possible SGE, and the missing byte */
	struct softhca_sge sge[2] = {
		{.addr = VA, .length = 0x7fffffff, .lkey = e[0].mr->lkey},
		{.addr = VA + 0x7fffffff, .length = 1, .lkey = e[0].mr->lkey},
	};
	struct softhca_sge rsge[2] = {
		{.addr = VA, .length = 0x7fffffff, .lkey = e[1].mr->lkey},
		{.addr = VA + 0x7fffffff, .length = 1, .lkey = e[1].mr->lkey},
	};
	struct softhca_send_wr wr = {.sg_list = sge,
				     .num_sge = 2,
				     .opcode = opcode,
				     .send_flags = SOFTHCA_SEND_SIGNALED,
				     .wr.rdma = {.remote_addr = VA, .rkey = e[1].mr->rkey}};
	struct softhca_recv_wr rwr = {.sg_list = rsge, .num_sge = 2, .wr_id = 7}, *rbad;
	struct softhca_send_wr *bad;
	struct softhca_wc wc;
	bool send = opcode == SOFTHCA_WR_SEND;
	uint8_t *to = e[opcode != SOFTHCA_WR_RDMA_READ].page;
	uint64_t end = s->now + 600 * SIM_S;
	int n = 0, m = 0;

	memset(to, 0, PAGE);
	if (send)
		sim_check(s, softhca_post_recv(p->qp[1], &rwr, &rbad) == 0, "post_recv");
	sim_check(s, softhca_post_send(p->qp[0], &wr, &bad) == 0, "post_send");
	while ((n == 0 || (send && m == 0)) && s->now < end) {
		sim_poll(s);
		if (n == 0)
			n = softhca_poll_cq(p->cq[0], 1, &wc);
		if (m == 0 && send)
			m = softhca_poll_cq(p->cq[1], 1, &wc);
	}
	sim_check(s, n == 1 && wc.status == SOFTHCA_WC_SUCCESS, "op %u: %d completions, %s", opcode,
		  n, softhca_wc_status_str(wc.status));
	/* byte_cnt has 31 bits, one too few for 2^31 */
	sim_check(s, !send || m == 1, "no receive completion");
	sim_check(s, memcmp(e[0].page, e[1].page, PAGE) == 0, "op %u: other data", opcode);
}

static void
huge_in(const struct sim_config *cfg)
{
	static const uint32_t ops[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_RDMA_READ,
				       SOFTHCA_WR_SEND};
	const struct sim_pair_attr attr = {.mtu = SOFTHCA_MTU_4096, .timeout = 18, .region = 8192};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);
	struct end e[2];

	for (unsigned int i = 0; i < 2; i++)
		open_end(s, i, &e[i]);
	for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		one(s, p, e, ops[i]);
	for (unsigned int i = 0; i < 2; i++) {
		sim_check(s, sim_counter(s, i, "retransmissions") == 0, "retransmissions");
		sim_check(s, softhca_dereg_mr(e[i].mr) == 0, "dereg_mr");
		free(e[i].page);
	}
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(huge)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(huge),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
