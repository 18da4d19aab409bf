/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A client that writes into its WQEs a group of TPs that it has not imported, with valid tokens,
 * next to a bystander that has imported it. None of its requests leaves, the bystander's take as
 * long as before; and it may use the channel exactly as long as it is said to.
 */

#include "ub_bystander.h"
#include "ub_client.h"

#define PROGRAM "sim-ub-stranger"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RECV UB_PAIR_RECV
#define RESULT UB_PAIR_READ
#define EVERY 5u /* the bystander's requests between two of its attempts */
#define LENGTH 5000u

static struct ub_pair pair;

struct stranger {
	struct ub_bystander b;
	struct ub_client client; /* on side 0 */
	uint64_t posted;
};

static struct stranger other;

/* One request of each kind; all of them end so. */
static void
try_all(struct stranger *x, urma_cr_status_t status)
{
	struct ub_pair *p = x->b.p;
	struct ub_pair_side usual = p->side[0];

	p->side[0] = x->client.own;
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, LENGTH, 0);
	ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, LENGTH, 1);
	ub_pair_send(p, 0, p->side[0].to_jetty, FROM, LENGTH, 2);
	ub_pair_atomic(p, 0, URMA_OPC_FADD, RESULT + 8192, TO + 8192, 8, 1, 3);
	for (uint64_t id = 0; id < 4; id++)
		ub_pair_done(p, 0, id, status);
	p->side[0] = usual;
	x->posted += 4;
}

static void
disturb(void *arg, uint32_t i)
{
	if (i % EVERY == 0)
		try_all(arg, URMA_CR_ACK_TIMEOUT_ERR);
}

static void
nothing_arrived(struct ub_pair *p)
{
	for (uint32_t i = 0; i < 8192 + 8; i++)
		UB_PAIR_EQ(p,
			   p->side[1].mem[TO + i] | p->side[0].mem[RESULT + i] |
				   p->side[1].mem[RECV + i],
			   0);
}

static void
not_imported_in(const struct sim_config *cfg)
{
	struct stranger *x = &other;
	struct ub_pair *p = &pair;
	struct ub_pair_config c = {.sim = *cfg, .rto_base = 100000};
	uint64_t requests;

	memset(x, 0, sizeof(*x));
	ub_pair_open(p, &c);
	ub_bystander_open(&x->b, p);
	p->strangers = true;
	ub_client_open(p, &x->client, &(struct ub_client_config){0});
	requests = ub_pair_counter(p, 1, HCA_CTR_ub_requests);
	x->b.disturb = disturb;
	x->b.arg = x;
	ub_bystander_run(&x->b);
	nothing_arrived(p);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_requests), requests + UB_BYSTANDER_REQUESTS);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_not_imported), x->posted);
	/* one that has imported it, and gives it back, while the bystander goes on */
	ub_pair_recv(p, 1, false, RECV, LENGTH, 7);
	ub_pair_permit(p, 0, x->client.lib, 0, true);
	try_all(x, URMA_CR_SUCCESS);
	ub_pair_received(p, 1, 7, LENGTH);
	ub_pair_permit(p, 0, x->client.lib, 0, false);
	try_all(x, URMA_CR_ACK_TIMEOUT_ERR);
	ub_bystander_request(&x->b);
	ub_bystander_check(&x->b);
	UB_PAIR_EQ(p, hca_tp_state(ub_pair_tp(p, 0, 1)), HCA_TPS_ACTIVE);
	ub_client_close(p, &x->client);
	ub_pair_close(p);
}

SIM_TEST(not_imported)

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(not_imported)};

	return sim_main_of(tests, RTE_DIM(tests));
}
