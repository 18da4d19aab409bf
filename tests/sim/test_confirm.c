/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ATOMIC WRITE and FLUSH among other requests: order, losses, copies, refusals. When a FLUSH
 * completes, the model compares the data of the unsignalled requests before it at the peer.
 */

#include "sim_fault.h"
#include "sim_test.h"
#include "wire/roce_opcode.h"

#define PROGRAM "test_confirm"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const enum hca_fault faults[] = {HCA_FAULT_DROP, HCA_FAULT_DUP, HCA_FAULT_REORDER,
					HCA_FAULT_DELAY, HCA_FAULT_CORRUPT_ICRC};

static const struct sim_req mix[] = {
	{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 700, .nsge = 2},
	{.opcode = SOFTHCA_WR_ATOMIC_WRITE, .nsge = 2},
	{.opcode = SOFTHCA_WR_FLUSH, .len = 5000, .flags = S},
	{.opcode = SOFTHCA_WR_RDMA_READ, .len = 600},
	{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 20},
	{.opcode = SOFTHCA_WR_FLUSH, .flags = S},
	{.opcode = SOFTHCA_WR_SEND, .len = 300},
	{.opcode = SOFTHCA_WR_ATOMIC_FETCH_AND_ADD},
	{.opcode = SOFTHCA_WR_ATOMIC_WRITE, .flags = S | SOFTHCA_SEND_FENCE},
	{.opcode = SOFTHCA_WR_FLUSH, .len = 1, .flags = S},
};

/* One fault at each of the first packets, by PSN and by position, in each direction. */
static void
placed_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (unsigned int f = 0; f < COUNT(faults); f++) {
		for (uint32_t at = 0; at < 24; at++) {
			const struct sim_pair_attr attr = {.mtu = SOFTHCA_MTU_256,
							   .region = 65536,
							   .xrc = at % 3 == 2,
							   .psn = {0xfffffd, 0xfffffd}};
			struct sim_pair *p = sim_pair_open(s, &attr);
			struct hca_fault_rule rule = sim_fault_rule(faults[f], 1 + at % 2);

			if (at & 1)
				rule.nth = 1 + at / 2;
			else
				rule.psn = (0xfffffd + at / 2) & 0xffffff;
			sim_clear_rules(s);
			sim_rule(s, (at / 2 + f) & 1, rule);
			sim_check(s, sim_post(p, 0, mix, COUNT(mix)) == 0, "post");
			sim_finish(s, 10 * SIM_S);
			sim_clear_rules(s);
			sim_pair_close(p);
		}
	}
	sim_close(s);
}
SIM_TEST(placed)

/* Every packet of a kind comes twice, or its answer is lost: executed once, answered again. */
static void
once_in(const struct sim_config *cfg)
{
	static const struct {
		uint8_t opcode;
		unsigned int side;
		enum hca_fault fault;
	} row[] = {
		{HCA_BTH_RC_ATOMIC_WRITE, 0, HCA_FAULT_DUP},
		{HCA_BTH_RC_FLUSH, 0, HCA_FAULT_DUP},
		{HCA_BTH_RC_READ_RESP_ONLY, 1, HCA_FAULT_DUP},
		{HCA_BTH_RC_READ_RESP_ONLY, 1, HCA_FAULT_DROP},
	};
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < COUNT(row); i++) {
		struct hca_fault_rule rule = sim_fault_rule(row[i].fault, 2);
		uint64_t writes = sim_counter(s, 1, "rx_atomic_writes");
		uint64_t flushes = sim_counter(s, 1, "rx_flush_requests");
		uint64_t again = sim_counter(s, 1, "resp_repeated");
		struct sim_pair *p = sim_pair_open(s, NULL);

		rule.opcode = row[i].opcode;
		sim_clear_rules(s);
		sim_rule(s, row[i].side, rule);
		sim_check(s, sim_post(p, 0, mix, COUNT(mix)) == 0, "post");
		sim_finish(s, 10 * SIM_S);
		sim_check(s, sim_counter(s, 1, "rx_atomic_writes") == writes + 2, "ATOMIC WRITEs");
		sim_check(s, sim_counter(s, 1, "rx_flush_requests") == flushes + 3, "FLUSHes");
		sim_check(s,
			  row[i].fault != HCA_FAULT_DROP ||
				  sim_counter(s, 1, "resp_repeated") > again,
			  "nothing was answered again");
		sim_clear_rules(s);
		sim_pair_close(p);
	}
	sim_close(s);
}
SIM_TEST(once)

/* Requests that the peer refuses; its QP and region grant GLOBAL, and no memory is persistent. */
static void
refused_in(const struct sim_config *cfg)
{
	static const struct {
		uint32_t opcode, status;
		uint32_t off; /* of the address, from the region */
		uint32_t length;
		uint8_t type, level;
		bool bad_key;
	} row[] = {
		{SOFTHCA_WR_ATOMIC_WRITE, SOFTHCA_WC_REM_INV_REQ_ERR, 4, 0, 0, 0, false},
		{SOFTHCA_WR_ATOMIC_WRITE, SOFTHCA_WC_REM_ACCESS_ERR, 0, 0, 0, 0, true},
		{SOFTHCA_WR_FLUSH, SOFTHCA_WC_REM_INV_REQ_ERR, 0, 8, SOFTHCA_FLUSH_PERSISTENT, 0,
		 false},
		{SOFTHCA_WR_FLUSH, SOFTHCA_WC_REM_ACCESS_ERR, 1, 1 << 20, SOFTHCA_FLUSH_GLOBAL, 0,
		 false},
		{SOFTHCA_WR_FLUSH, SOFTHCA_WC_REM_ACCESS_ERR, 0, 8, SOFTHCA_FLUSH_GLOBAL, 0, true},
		{SOFTHCA_WR_FLUSH, SOFTHCA_WC_REM_ACCESS_ERR, 0, 8, SOFTHCA_FLUSH_GLOBAL,
		 SOFTHCA_FLUSH_MR, true},
	};
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < COUNT(row); i++) {
		struct sim_pair *p = sim_pair_open(s, NULL);
		const struct sim_region *r = &p->region[1];
		uint64_t va = (r->va + 7) / 8 * 8 + row[i].off;
		struct softhca_sge sge = {p->region[0].va, 8, p->region[0].mr->lkey};
		struct softhca_send_wr wr = {.opcode = row[i].opcode, .send_flags = S};
		uint32_t rkey = r->mr->rkey ^ row[i].bad_key;
		uint64_t id;

		if (row[i].opcode == SOFTHCA_WR_ATOMIC_WRITE) {
			wr.sg_list = &sge;
			wr.num_sge = 1;
			wr.wr.rdma.remote_addr = va;
			wr.wr.rdma.rkey = rkey;
		} else {
			wr.wr.flush.remote_addr = va;
			wr.wr.flush.rkey = rkey;
			wr.wr.flush.length = row[i].length;
			wr.wr.flush.type = row[i].type;
			wr.wr.flush.level = row[i].level;
		}
		id = sim_post_wr(p, 0, &wr, SOFTHCA_WC_SUCCESS);
		sim_expect_sq_error(p, 0, id, row[i].status, false);
		sim_finish(s, SIM_S);
		sim_pair_close(p);
	}
	sim_close(s);
}
SIM_TEST(refused)

/* A region without the right, and a window that has it for a part of the region. */
static void
rights_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, NULL);
	const struct sim_region *r = &p->region[1];
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_FLUSH,
				     .send_flags = S,
				     .wr.flush = {.remote_addr = r->va,
						  .rkey = r->mr->rkey,
						  .type = SOFTHCA_FLUSH_GLOBAL}};
	uint64_t id;

	sim_post_wr(p, 0, &wr, SOFTHCA_WC_SUCCESS);
	sim_finish(s, SIM_S);
	sim_check(s,
		  softhca_rereg_mr(r->mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				   SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE) == 0,
		  "rereg_mr: %s", softhca_last_error(s->side[1].ctx));
	wr.wr.flush.rkey = r->mr->rkey;
	id = sim_post_wr(p, 0, &wr, SOFTHCA_WC_SUCCESS);
	sim_expect_sq_error(p, 0, id, SOFTHCA_WC_REM_ACCESS_ERR, false);
	sim_finish(s, SIM_S);
	sim_check(s,
		  softhca_rereg_mr(r->mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				   SOFTHCA_ACCESS_FLUSH_PERSISTENT) != 0,
		  "memory is persistent");
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(rights)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placed),
		cmocka_unit_test(once),
		cmocka_unit_test(refused),
		cmocka_unit_test(rights),
	};

	return sim_main_of(tests, COUNT(tests));
}
