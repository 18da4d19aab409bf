/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A whole HCA against a peer that knows only the design of the wire and gives nothing away
 * (ub_strict.h): every operation, and how long each kind of loss takes, in simulated time.
 */

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
	bool v6, large; /* packets of 4096 bytes */
} ways[] = {
	{"SACK", HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, false, false},
	{"SACK over IPv6, 4096", HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, true, true},
	{"DROP", HCA_TP_MODE_DROP, HCA_TP_RULE_NAK, false, false},
	{"DROP over IPv6, 4096", HCA_TP_MODE_DROP, HCA_TP_RULE_NAK, true, true},
	{"TRACK", HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE, false, false},
	{"TRACK over IPv6, 4096", HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE, true, true},
};

static void
run(const struct way *way, void (*fn)(struct ub_pair *p, struct ub_strict *x))
{
	struct ub_pair_config c = {.sim = {.layout = HCA_LAYOUT_RTC,
					   .link_depth = 4096, /* of a peer that goes back */
					   .seed = sim_env("SIM_SEED", 1)},
				   .mode = way->mode,
				   .rule = way->rule,
				   .go_back = way->mode == HCA_TP_MODE_DROP,
				   .gid = way->v6 ? SIM_GID_V6 : SIM_GID_V4,
				   .small_mtu = !way->large,
				   .rto_base = RTO_US};

	sim_set_repeat("SIM_SEED=%llu " PROGRAM " (%s)", (unsigned long long)c.sim.seed, way->name);
	ub_pair_open(&pair, &c);
	ub_strict_open(&peer, &pair);
	fn(&pair, &peer);
	sim_run_for(pair.s, UB_PAIR_MS);
	ub_strict_check(&peer);
	ub_pair_close(&pair);
}

/* In every way; or, of losses, in that of one mode. */
#define TEST(n) \
	static void n(void **state) \
	{ \
		for (unsigned int i = 0; i < RTE_DIM(ways); i++) \
			run(&ways[i], n##_of); \
	}
#define TEST_IN(n, way) \
	static void n(void **state) \
	{ \
		run(&ways[way], n##_of); \
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

static void
sends_of(struct ub_pair *p, struct ub_strict *x)
{
	uint64_t id = 0;

	for (unsigned int i = 0; i < RTE_DIM(lengths); i++) {
		ub_pair_send(p, 0, p->side[0].to_jetty, FROM + i, lengths[i], ++id);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
		ub_pair_same(p, 1, UB_PAIR_RECV, FROM + i, lengths[i]);
		UB_PAIR_EQ(p, x->immediate, id);
	}
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
	for (uint32_t n = 64; n <= 1024; n *= 2) {
		urma_sge_t own = ub_pair_local(p, 0, FROM, n), peers = ub_pair_remote(p, 0, TO, n);
		urma_jfs_wr_t wr = ub_pair_request(p, 0, SOFTHCA_URMA_OPC_WRITE_BE, n);
		uint8_t enables[128];

		for (uint32_t i = 0; i < n / 8; i++)
			enables[i] = (uint8_t)sim_random(&p->rng);
		memset(p->side[1].mem + TO, 0, n);
		wr.rw = (urma_rw_wr_t){.src = {&own, 1},
				       .dst = {&peers, 1},
				       .byte_enables = enables};
		ub_pair_post(p, 0, &wr);
		ub_pair_done(p, 0, n, URMA_CR_SUCCESS);
		for (uint32_t i = 0; i < n; i++)
			UB_PAIR_EQ(p, p->side[1].mem[TO + i],
				   enables[i / 8] >> i % 8 & 1 ? p->side[0].mem[FROM + i] : 0);
	}
	UB_PAIR_EQ(p, x->requests[0x14], 5);
}

/* ---- atomics ---- */

/* What the peer's memory must be: the operation, done here byte by byte. */
static void
model(urma_opcode_t opcode, uint8_t *v, const uint8_t *operand, uint32_t n)
{
	int carry = 0;

	for (uint32_t i = 0; i < n; i++) {
		switch (opcode) {
		case URMA_OPC_FADD:
			carry += v[i] + operand[i];
			break;
		case URMA_OPC_FSUB:
			carry += v[i] - operand[i];
			break;
		case URMA_OPC_FAND:
			carry = v[i] & operand[i];
			break;
		case URMA_OPC_FOR:
			carry = v[i] | operand[i];
			break;
		case URMA_OPC_FXOR:
			carry = v[i] ^ operand[i];
			break;
		default:
			carry = operand[i];
		}
		v[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

static void
fetches_of(struct ub_pair *p, struct ub_strict *x)
{
	static const urma_opcode_t codes[] = {URMA_OPC_FADD, URMA_OPC_FSUB, URMA_OPC_FAND,
					      URMA_OPC_FOR, URMA_OPC_FXOR};
	uint64_t id = 0;

	for (unsigned int i = 0; i < RTE_DIM(codes); i++) {
		for (uint32_t n = 1; n <= 64; n *= 2) {
			uint8_t old[64], want[64], operand[64] = {0};
			uint64_t value;

			memcpy(old, p->side[1].mem + FROM, n);
			memcpy(want, old, n);
			for (uint32_t k = 0; k < n; k++)
				operand[k] = (uint8_t)sim_random(&p->rng);
			model(codes[i], want, operand, n);
			memcpy(&value, operand, sizeof(value));
			ub_pair_atomic(p, 0, codes[i], RESULT, FROM, n,
				       n > 8 ? (uintptr_t)operand : value, ++id);
			ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
			ub_pair_same_bytes(p, p->side[0].mem + RESULT, old, n);
			ub_pair_same_bytes(p, p->side[1].mem + FROM, want, n);
		}
	}
	UB_PAIR_EQ(p, x->again, 0);
}

static void
swap(struct ub_pair *p, urma_opcode_t opcode, uint32_t n, uint8_t *compare, uint8_t *with,
     uint64_t id)
{
	urma_sge_t own = ub_pair_local(p, 0, RESULT, n), peers = ub_pair_remote(p, 0, FROM, n);
	urma_jfs_wr_t wr = ub_pair_request(p, 0, opcode, id);
	uint64_t c, w;

	memcpy(&c, compare, 8);
	memcpy(&w, with, 8);
	wr.cas = (urma_cas_wr_t){.dst = &peers,
				 .src = &own,
				 .cmp_data = n > 8 ? (uintptr_t)compare : c,
				 .swap_data = n > 8 ? (uintptr_t)with : w};
	ub_pair_post(p, 0, &wr);
	ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
}

static void
swaps_of(struct ub_pair *p, struct ub_strict *x)
{
	uint8_t old[64], with[64];
	uint64_t id = 0;

	for (uint32_t n = 1; n <= 64; n *= 2) {
		memcpy(old, p->side[1].mem + FROM, 64);
		for (uint32_t k = 0; k < 64; k++)
			with[k] = (uint8_t)~old[k];
		swap(p, URMA_OPC_CAS, n, with, with, ++id); /* differs */
		ub_pair_same_bytes(p, p->side[1].mem + FROM, old, 64);
		swap(p, URMA_OPC_CAS, n, old, with, ++id);
		ub_pair_same_bytes(p, p->side[0].mem + RESULT, old, n);
		ub_pair_same_bytes(p, p->side[1].mem + FROM, with, n);
		swap(p, URMA_OPC_SWAP, n, with, old, ++id);
		ub_pair_same_bytes(p, p->side[0].mem + RESULT, with, n);
		ub_pair_same_bytes(p, p->side[1].mem + FROM, old, n);
	}
	UB_PAIR_EQ(p, x->again, 0);
}

/* ---- losses ---- */

/* A Write of ten packets, of which something is lost; returns how long it took. */
static uint64_t
write_with(struct ub_pair *p, struct ub_strict *x, struct ub_strict_losses lose)
{
	static uint64_t id;
	uint64_t began = p->s->now;

	x->lose = lose;
	memset(p->side[1].mem + TO, 0, 10240);
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 10240, ++id);
	ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	ub_pair_same(p, 1, TO, FROM, 10240);
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

/* Packets of a Read_response: the first, one in the middle, the one that leaves at the end. */
static void
lost_response_of(struct ub_pair *p, struct ub_strict *x)
{
	static const unsigned int which[] = {1, 5, 10};
	uint64_t id = 0, began;

	for (unsigned int i = 0; i < RTE_DIM(which); i++) {
		x->lose.responses = which[i];
		memset(p->side[0].mem + RESULT, 0, 10240);
		began = p->s->now;
		ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, 10240, ++id);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
		ub_pair_same(p, 0, RESULT, FROM, 10240);
		within(p, p->s->now - began, 0, 20 * US);
	}
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

/* Side 0 refuses what is behind the hole, once. */
static void
drop_lost_response_of(struct ub_pair *p, struct ub_strict *x)
{
	uint64_t id = 0, dropped = ub_pair_counter(p, 0, HCA_CTR_ub_tp_out_of_order);

	for (unsigned int i = 1; i <= 10; i += 3) {
		x->lose.responses = i;
		memset(p->side[0].mem + RESULT, 0, 10240);
		ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, 10240, ++id);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
		ub_pair_same(p, 0, RESULT, FROM, 10240);
	}
	sim_check(p->s, ub_pair_counter(p, 0, HCA_CTR_ub_tp_out_of_order) > dropped,
		  "nothing was out of order");
}

/* Mode TRACK tells nothing of holes: a timeout does, and packets come that are there already. */
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
TEST(fetches)
TEST(swaps)
TEST_IN(lost_data, 0)
TEST_IN(lost_ack, 0)
TEST_IN(lost_sack, 0)
TEST_IN(lost_taack, 0)
TEST_IN(lost_response, 0)
TEST_IN(drop_lost_data, 2)
TEST_IN(drop_lost_nak, 2)
TEST_IN(drop_lost_response, 2)
TEST_IN(track_lost_data, 4)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes),
		cmocka_unit_test(reads),
		cmocka_unit_test(sends),
		cmocka_unit_test(notifies),
		cmocka_unit_test(enables),
		cmocka_unit_test(fetches),
		cmocka_unit_test(swaps),
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
