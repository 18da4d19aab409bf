/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A whole HCA against a peer that is written from the design of the wire alone and is strict
 * (ub_strict.h): every operation, and how long each kind of loss takes, in simulated time.
 */

#include "ub_atomic.h"
#include "ub_strict.h"

#define PROGRAM "sim-ub-strict"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RESULT UB_PAIR_READ
#define RTO_US 200u
#define US 1000u

static struct ub_pair pair;
static struct ub_strict peer;

static const struct way {
	const char *name;
	uint8_t mode, rule;
} ways[] = {
	{"SACK", HCA_TP_MODE_SACK, HCA_TP_RULE_TIME},
	{"DROP", HCA_TP_MODE_DROP, HCA_TP_RULE_NAK},
	{"TRACK", HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE},
};

static const struct form {
	const char *name;
	bool v6, small; /* packets of 1024 bytes */
} forms[] = {
	{"IPv4, 1024", false, true},
	{"IPv4, 4096", false, false},
	{"IPv6, 1024", true, true},
	{"IPv6, 4096", true, false},
};

static void
run(const struct sim_way *layout, const struct way *way, const struct form *form, const char *test,
    void (*fn)(struct ub_pair *p, struct ub_strict *x))
{
	struct ub_pair_config c = {.sim = {.layout = layout->layout,
					   .link_depth = 4096, /* of a peer that goes back */
					   .mbufs = 1024,
					   .seed = sim_env("SIM_SEED", 1)},
				   .mode = way->mode,
				   .rule = way->rule,
				   .go_back = way->mode == HCA_TP_MODE_DROP,
				   .gid = form->v6 ? SIM_GID_V6 : SIM_GID_V4,
				   .small_mtu = form->small,
				   .rto_base = RTO_US};

	sim_set_repeat("SIM_SEED=%llu SIM_LAYOUT=%s CMOCKA_TEST_FILTER=%s " PROGRAM " (%s, %s)",
		       (unsigned long long)c.sim.seed, layout->name, test, way->name, form->name);
	ub_pair_open(&pair, &c);
	ub_strict_open(&peer, &pair);
	fn(&pair, &peer);
	sim_run_for(pair.s, UB_PAIR_MS);
	ub_strict_check(&peer);
	ub_pair_close(&pair);
}

/* In all forms and layouts; of the stepped one no times are known. mode: of all, or of one. */
static void
everywhere(const char *test, int mode, void (*fn)(struct ub_pair *p, struct ub_strict *x))
{
	for (unsigned int l = 0; l < SIM_WAYS; l++) {
		if (sim_ways[l].executor != SIM_DIRECT || !sim_way_wanted(&sim_ways[l]))
			continue;
		for (unsigned int i = 0; i < RTE_DIM(ways) * RTE_DIM(forms); i++) {
			const struct way *way = &ways[i / RTE_DIM(forms)];

			if (mode < 0 || way->mode == mode)
				run(&sim_ways[l], way, &forms[i % RTE_DIM(forms)], test, fn);
		}
	}
}

#define TEST(n) \
	static void n(void **state) \
	{ \
		everywhere(#n, -1, n##_of); \
	}
#define TEST_IN(n, mode) \
	static void n(void **state) \
	{ \
		everywhere(#n, HCA_TP_MODE_##mode, n##_of); \
	}

/* ---- operations ---- */

static const uint32_t lengths[] = {0,	 1,    3,    1023, 1024,  1025,	 2048,
				   4095, 4096, 4097, 9000, 65536, 200001};

static void
writes_of(struct ub_pair *p, struct ub_strict *x)
{
	static const urma_opcode_t codes[] = {URMA_OPC_WRITE, URMA_OPC_WRITE_IMM};
	uint64_t id = 0;

	for (unsigned int i = 0; i < 2 * RTE_DIM(lengths); i++) {
		uint32_t n = lengths[i / 2];

		memset(p->side[1].mem + TO, 0, n + 8);
		ub_pair_rw(p, 0, codes[i % 2], FROM + i, TO + 4, n, ++id);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
		ub_pair_same(p, 1, TO + 4, FROM + i, n);
		UB_PAIR_EQ(p, p->side[1].mem[TO + 3] + p->side[1].mem[TO + 4 + n], 0);
		if (i % 2)
			UB_PAIR_EQ(p, x->immediate, id);
	}
	UB_PAIR_EQ(p, x->again, 0);
}

static void
reads_of(struct ub_pair *p, struct ub_strict *x)
{
	uint64_t id = 0;

	for (unsigned int i = 0; i < RTE_DIM(lengths); i++) {
		memset(p->side[0].mem + RESULT, 0, lengths[i] + 1);
		ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM + i, lengths[i], ++id);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
		ub_pair_same(p, 0, RESULT, FROM + i, lengths[i]);
		UB_PAIR_EQ(p, p->side[0].mem[RESULT + lengths[i]], 0);
	}
	UB_PAIR_EQ(p, x->again, 0);
}

/* A plain one, which changes no immediate, and one with an immediate. */
static void
sends_of(struct ub_pair *p, struct ub_strict *x)
{
	uint64_t id = 0;

	for (unsigned int i = 0; i < 2 * RTE_DIM(lengths); i++) {
		uint32_t n = lengths[i / 2];
		urma_sge_t own = ub_pair_local(p, 0, FROM + i, n);
		urma_jfs_wr_t wr = ub_pair_request(p, 0, URMA_OPC_SEND, ++id);

		memset(p->side[1].mem + UB_PAIR_RECV, 0, n + 1);
		x->immediate = 0;
		wr.send.src = (urma_sg_t){&own, 1};
		if (i % 2)
			ub_pair_send(p, 0, p->side[0].to_jetty, FROM + i, n, id);
		else
			ub_pair_post(p, 0, &wr);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
		ub_pair_same(p, 1, UB_PAIR_RECV, FROM + i, n);
		UB_PAIR_EQ(p, p->side[1].mem[UB_PAIR_RECV + n], 0);
		UB_PAIR_EQ(p, x->immediate, i % 2 ? id : 0);
	}
	UB_PAIR_EQ(p, x->requests[0x00], RTE_DIM(lengths));
	UB_PAIR_EQ(p, x->requests[0x01], RTE_DIM(lengths));
	UB_PAIR_EQ(p, x->again, 0);
}

static void
notifies_of(struct ub_pair *p, struct ub_strict *x)
{
	for (uint32_t i = 0; i < RTE_DIM(lengths); i++) {
		urma_sge_t own = ub_pair_local(p, 0, FROM + i, lengths[i]);
		urma_sge_t dst[2] = {ub_pair_remote(p, 0, TO, lengths[i]),
				     ub_pair_remote(p, 0, TO + UB_PAIR_PART - 8, 8)};
		urma_jfs_wr_t wr = ub_pair_request(p, 0, URMA_OPC_WRITE_NOTIFY, i);

		wr.rw.src = (urma_sg_t){&own, 1};
		wr.rw.dst = (urma_sg_t){dst, 2};
		wr.rw.notify_data = ~(uint64_t)i;
		ub_pair_post(p, 0, &wr);
		ub_pair_done(p, 0, i, URMA_CR_SUCCESS);
		ub_pair_same(p, 1, TO, FROM + i, lengths[i]);
		UB_PAIR_EQ(p, x->notified, ~(uint64_t)i);
	}
}

static void
enables_of(struct ub_pair *p, struct ub_strict *x)
{
	ub_enables_all(p, FROM, TO);
	UB_PAIR_EQ(p, x->requests[0x14], 5);
}

static void
atomics_of(struct ub_pair *p, struct ub_strict *x)
{
	ub_atomic_all(p, RESULT, FROM + 64);
	for (unsigned int op = 0x07; op <= 0x0f; op++)
		UB_PAIR_EQ(p, x->requests[op], (op == 0x09 || op == 0x0a ? 8 : 1) * 7 * 2);
	UB_PAIR_EQ(p, x->again, 0);
}

/* ---- answers in TPACKs ---- */

/* A peer that has no room for a TAACK has the result of the request in its TPACK. */
static void
told_of(struct ub_pair *p, struct ub_strict *x)
{
	static const struct {
		uint8_t rspst, rspinfo;
		urma_cr_status_t status;
	} told[] = {
		{1, 5, URMA_CR_SUCCESS}, /* again, after the time that it says */
		{2, 0, URMA_CR_SUCCESS},
		{3, 1, URMA_CR_REM_UNSUPPORTED_REQ_ERR},
		{3, 2, URMA_CR_REM_ACCESS_ABORT_ERR},
		{5, 0, URMA_CR_SUCCESS},
		{5, 1, URMA_CR_REM_ACCESS_ABORT_ERR},
		{5, 2, URMA_CR_SUCCESS}, /* done */
	};

	for (uint32_t i = 0; i < RTE_DIM(told); i++) {
		uint64_t requests = x->requests[0x03], again = told[i].rspst != 3 &&
							       told[i].rspinfo + 0u != 2 &&
							       told[i].status == URMA_CR_SUCCESS;

		x->tell = (uint8_t)(told[i].rspst << 5 | told[i].rspinfo);
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM + i, TO, 3000, 2 * i);
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM + i, TO + 4096, 100, 2 * i + 1);
		ub_pair_done(p, 0, 2 * i, told[i].status);
		ub_pair_done(p, 0, 2 * i + 1, URMA_CR_SUCCESS);
		ub_pair_same(p, 1, TO, FROM + i, 3000);
		UB_PAIR_EQ(p, x->requests[0x03] - requests, 2 + again);
	}
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_segments_told), RTE_DIM(told));
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_requests_timed_out), 0);
	UB_PAIR_EQ(p, ub_pair_tp(p, 0, 1)->tai.open_out, 0);
	UB_PAIR_EQ(p, x->again, 0);
}

/* ---- losses ---- */

/* A Write of ten packets, of which something is lost; returns how long it took. */
static uint64_t
write_with(struct ub_pair *p, struct ub_strict *x, struct ub_strict_losses lose)
{
	static uint64_t id;
	uint64_t began = p->s->now;
	uint32_t n = 10 * x->mtu;

	x->lose = lose;
	memset(p->side[1].mem + TO, 0, n);
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, n, ++id);
	ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	ub_pair_same(p, 1, TO, FROM, n);
	return p->s->now - began;
}

static void
within(struct ub_pair *p, uint64_t ns, uint64_t least, uint64_t most)
{
	sim_check(p->s, ns >= least && ns <= most, "%lu ns, expected %lu to %lu", (unsigned long)ns,
		  (unsigned long)least, (unsigned long)most);
}

/* A hole is told by the packets behind it, so it costs a round trip; the last one, a timeout. */
static void
lost_data_of(struct ub_pair *p, struct ub_strict *x)
{
	for (unsigned int i = 1; i <= 9; i++)
		within(p, write_with(p, x, (struct ub_strict_losses){.data = i}), 0, 20 * US);
	UB_PAIR_EQ(p, x->again, 9);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_tp_timeouts), 0);
	within(p, write_with(p, x, (struct ub_strict_losses){.data = 10}), RTO_US * US,
	       (RTO_US + 40) * US);
	/* and the one before it, which nothing asked to acknowledge */
	UB_PAIR_EQ(p, x->again, 9 + 2);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_tp_timeouts), 1);
}

/* The answer of the transaction says that all has arrived; nothing is sent again. */
static void
lost_ack_of(struct ub_pair *p, struct ub_strict *x)
{
	within(p, write_with(p, x, (struct ub_strict_losses){.acks = 1}), 0, 20 * US);
	sim_run_for(p->s, 3 * RTO_US * US);
	UB_PAIR_EQ(p, x->again, 0);
	within(p, write_with(p, x, (struct ub_strict_losses){0}), 0, 20 * US);
}

/* A TPSACK is lost: the next packet behind the hole tells it again. */
static void
lost_sack_of(struct ub_pair *p, struct ub_strict *x)
{
	within(p, write_with(p, x, (struct ub_strict_losses){.data = 3, .acks = 1}), 0, 20 * US);
	UB_PAIR_EQ(p, x->again, 1);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_tp_timeouts), 0);
}

/* A TAACK is lost: side 0 asks for it as soon as another response comes. */
static void
lost_taack_of(struct ub_pair *p, struct ub_strict *x)
{
	uint64_t began;

	x->lose.responses = 1;
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, 100);
	sim_run_for(p->s, 50 * US);
	began = p->s->now;
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, 101);
	ub_pair_done(p, 0, 100, URMA_CR_SUCCESS);
	ub_pair_done(p, 0, 101, URMA_CR_SUCCESS);
	within(p, p->s->now - began, 0, 20 * US);
	UB_PAIR_EQ(p, x->again, 0);
}

/* A Read of ten packets, of which one is lost; returns how long it took. */
static uint64_t
read_without(struct ub_pair *p, struct ub_strict *x, unsigned int lost)
{
	uint64_t began = p->s->now;
	uint32_t n = 10 * x->mtu;

	x->lose.responses = lost;
	memset(p->side[0].mem + RESULT, 0, n);
	ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, n, lost);
	ub_pair_done(p, 0, lost, URMA_CR_SUCCESS);
	ub_pair_same(p, 0, RESULT, FROM, n);
	return p->s->now - began;
}

/* Packets of a Read_response: the first, one in the middle, the one that leaves at the end. */
static void
lost_response_of(struct ub_pair *p, struct ub_strict *x)
{
	static const unsigned int which[] = {1, 5, 10};

	for (unsigned int i = 0; i < RTE_DIM(which); i++)
		within(p, read_without(p, x, which[i]), 0, 20 * US);
}

/* Mode DROP: the packet behind the hole is refused, and all from the hole on is sent again. */
static void
drop_lost_data_of(struct ub_pair *p, struct ub_strict *x)
{
	for (unsigned int i = 1; i <= 9; i++) {
		uint64_t again = x->again;

		within(p, write_with(p, x, (struct ub_strict_losses){.data = i}), 0, 20 * US);
		UB_PAIR_EQ(p, x->again - again, 10 - i + 1);
	}
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_tp_timeouts), 0);
	within(p, write_with(p, x, (struct ub_strict_losses){.data = 10}), RTO_US * US,
	       (RTO_US + 40) * US);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_tp_timeouts), 1);
}

/* Nothing tells it again. */
static void
drop_lost_nak_of(struct ub_pair *p, struct ub_strict *x)
{
	within(p, write_with(p, x, (struct ub_strict_losses){.data = 3, .acks = 1}), RTO_US * US,
	       (RTO_US + 40) * US);
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_tp_timeouts), 1);
}

/* Side 0 refuses packets after the hole, once. */
static void
drop_lost_response_of(struct ub_pair *p, struct ub_strict *x)
{
	uint64_t dropped = ub_pair_counter(p, 0, HCA_CTR_ub_tp_out_of_order);

	for (unsigned int i = 1; i <= 10; i += 3)
		within(p, read_without(p, x, i), 0, 20 * US);
	sim_check(p->s, ub_pair_counter(p, 0, HCA_CTR_ub_tp_out_of_order) > dropped,
		  "nothing was out of order");
}

/* Mode TRACK does not report holes: a timeout repeats, and packets come that are there already. */
static void
track_lost_data_of(struct ub_pair *p, struct ub_strict *x)
{
	for (unsigned int i = 1; i <= 10; i += 3) {
		within(p, write_with(p, x, (struct ub_strict_losses){.data = i}), RTO_US * US,
		       (RTO_US + 40) * US);
		sim_run_for(p->s, 2 * RTO_US * US);
	}
	UB_PAIR_EQ(p, ub_pair_counter(p, 0, HCA_CTR_ub_tp_timeouts), 4);
}

TEST(writes)
TEST(reads)
TEST(sends)
TEST(notifies)
TEST(enables)
TEST(atomics)
TEST(told)
TEST_IN(lost_data, SACK)
TEST_IN(lost_ack, SACK)
TEST_IN(lost_sack, SACK)
TEST_IN(lost_taack, SACK)
TEST_IN(lost_response, SACK)
TEST_IN(drop_lost_data, DROP)
TEST_IN(drop_lost_nak, DROP)
TEST_IN(drop_lost_response, DROP)
TEST_IN(track_lost_data, TRACK)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes),
		cmocka_unit_test(reads),
		cmocka_unit_test(sends),
		cmocka_unit_test(notifies),
		cmocka_unit_test(enables),
		cmocka_unit_test(atomics),
		cmocka_unit_test(told),
		cmocka_unit_test(lost_data),
		cmocka_unit_test(lost_ack),
		cmocka_unit_test(lost_sack),
		cmocka_unit_test(lost_taack),
		cmocka_unit_test(lost_response),
		cmocka_unit_test(drop_lost_data),
		cmocka_unit_test(drop_lost_nak),
		cmocka_unit_test(drop_lost_response),
		cmocka_unit_test(track_lost_data),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
