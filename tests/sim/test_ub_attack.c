/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests and responses that no honest program or peer makes, on a channel that a bystander also
 * uses: each has the counter and the error of docs/ub.md and no other effect, and the bystander is
 * not disturbed. Packets of the attacker are changed on the link: all of the transport is right.
 *
 * Attacks on the transport are in test_ub_forged.c, those without a lying peer in test_ub_owner.c,
 * floods are in test_ub_storm.c.
 */

#include "ub_counters.h"
#include "ub_bystander.h"
#include "ub_craft.h"

#include "sim_link.h"

#define PROGRAM "sim-ub-attack"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RESULT UB_PAIR_READ
#define ATTACKS 20u
#define LONGEST 8192u /* Read */

static struct ub_pair pair;

/* ---- changing packets ---- */

struct attack {
	const char *name;
	urma_opcode_t opcode;
	bool responses; /* of side 1 to it are changed, not requests of side 0 */
	/* tah: BTAH or ATAH */
	void (*change)(struct ub_pair *p, uint8_t *tah, const struct hca_ub_layout *at);
	urma_cr_status_t status;
	enum hca_counter counter; /* of the end that receives it */
	/* of Reads whose answer is not as long as they ask for; 0: 64 bytes, answered with 64 */
	uint32_t len, asks;
	uint32_t stored;       /* bytes of it, in front of the error */
	enum hca_counter also; /* at side 0, of the consequence; 0: none */
};

struct attacker {
	struct ub_bystander b;
	const struct attack *attack;
	uint32_t number;	   /* of its Jetty */
	struct softhca_mr *region; /* of side 1, for verbs */
	uint64_t posted, done;
};

static struct attacker attacker;

static bool
change(void *arg, uint8_t *frame, uint32_t len)
{
	struct attacker *a = arg;
	struct ub_view v;
	uint8_t *tah;

	if (ub_parse(frame, len, HCA_UB_FORM_DEFAULT, &v) != 0 || v.tp.ta == 0)
		return false;
	tah = frame + v.w.transport + v.tp.ta;
	if (((v.ta.op->is & HCA_UB_OP_RESPONSE) != 0) != a->attack->responses ||
	    hca_ub_btah_rc_id(tah) != a->number)
		return false;
	a->attack->change(a->b.p, tah, v.ta.at);
	ub_seal(hca_icrc_select(), frame, &v.w);
	return false;
}

#define CHANGE(name) \
	static void name(struct ub_pair *p, uint8_t *tah, const struct hca_ub_layout *at)

CHANGE(trusted)
{
	hca_ub_btah_set_ee(tah, HCA_UB_EE_TRUSTED);
}

CHANGE(version)
{
	hca_ub_btah_set_version(tah, 1);
}

CHANGE(no_opcode)
{
	tah[0] = 0x1e;
}

CHANGE(management)
{
	tah[0] = HCA_UB_TA_WRITEBACK;
}

CHANGE(sequence)
{
	hca_ub_btah_set_rc_type(tah, 2);
}

CHANGE(order)
{
	hca_ub_btah_set_odr(tah, 3);
}

CHANGE(poison)
{
	hca_ub_btah_set_poison(tah, 1);
}

CHANGE(nobodys_memory)
{
	hca_ub_maetah_set_token_id(tah + at->maetah,
				   hca_ub_maetah_token_id(tah + at->maetah) ^ 0x80000);
}

CHANGE(other_life)
{
	hca_ub_maetah_set_token_id(tah + at->maetah,
				   hca_ub_maetah_token_id(tah + at->maetah) ^ 0x20000);
}

CHANGE(region_of_verbs)
{
	hca_ub_maetah_set_token_id(tah + at->maetah, HCA_KEY_TOKEN_ID(attacker.region->rkey));
}

/* The peer answers the changed request: the answer is longer or shorter than expected. */
CHANGE(another_length)
{
	hca_ub_maetah_set_length(tah + at->maetah, attacker.attack->asks);
}

CHANGE(wrong_token)
{
	hca_ub_tvetah_set_token_value(tah + at->tvetah, 0x12345678);
}

CHANGE(behind_the_end)
{
	hca_ub_maetah_set_address(tah + at->maetah, (uintptr_t)p->side[1].mem + UB_PAIR_MEM - 8);
}

CHANGE(in_front)
{
	hca_ub_maetah_set_address(tah + at->maetah, (uintptr_t)p->side[1].mem - 8);
}

CHANGE(around_the_end)
{
	hca_ub_maetah_set_address(tah + at->maetah, ~UINT64_C(0) - 7);
}

CHANGE(straddles)
{
	hca_ub_maetah_set_address(tah + at->maetah, (uintptr_t)p->side[1].mem + TO + 60);
}

CHANGE(odd_length)
{
	hca_ub_maetah_set_length(tah + at->maetah, 7);
}

CHANGE(too_short)
{
	hca_ub_maetah_set_length(tah + at->maetah, 63);
}

CHANGE(nobodys_queue)
{
	hca_ub_mtetah_set_tc_id(tah + at->mtetah, 0x7abcd);
}

CHANGE(nobodys_number)
{
	hca_ub_mtetah_set_tc_id(tah + at->mtetah, 55);
}

CHANGE(queue_of_verbs)
{
	/* index of a live Jetty, the tag of another life */
	hca_ub_mtetah_set_tc_id(tah + at->mtetah, hca_ub_mtetah_tc_id(tah + at->mtetah) ^ 0x40000);
}

CHANGE(group)
{
	hca_ub_mtetah_set_type(tah + at->mtetah, 2);
}

CHANGE(no_mtetah)
{
	hca_ub_btah_set_mt_en(tah, 0);
}

CHANGE(jfs_as_queue)
{
	hca_ub_mtetah_set_tc_id(tah + at->mtetah, p->side[1].jfs->jfs_id.id);
}

/* responses */

CHANGE(to_nobody)
{
	hca_ub_atah_set_rc_id(tah, 0x7abcd);
}

CHANGE(to_bystander)
{
	hca_ub_atah_set_rc_id(tah, p->side[0].jfs->jfs_id.id);
	hca_ub_atah_set_tassn(tah, hca_ub_atah_tassn(tah) + 0x4000);
}

CHANGE(other_number)
{
	hca_ub_atah_set_tassn(tah, hca_ub_atah_tassn(tah) + 77);
}

CHANGE(other_taid)
{
	hca_ub_taidetah_set_taid(tah + at->taidetah, hca_ub_taidetah_taid(tah + at->taidetah) + 1);
}

CHANGE(other_place)
{
	hca_ub_ofstetah_set_offset(tah + at->ofstetah, 5);
}

CHANGE(too_many_done)
{
	hca_ub_atah_set_rspinfo(tah, 31);
}

CHANGE(no_status)
{
	hca_ub_atah_set_rspst(tah, 7);
}

CHANGE(poisoned)
{
	hca_ub_atah_set_poison(tah, 1);
}

CHANGE(other_queue_type)
{
	hca_ub_atah_set_rc_type(tah, 2);
}

#define REFUSED URMA_CR_REM_ACCESS_ABORT_ERR
#define UNKNOWN URMA_CR_REM_UNSUPPORTED_REQ_ERR
#define SILENCE URMA_CR_ACK_TIMEOUT_ERR
#define LENGTH URMA_CR_REM_RESP_LEN_ERR

static const struct attack attacks[] = {
	{"EE 3", URMA_OPC_WRITE, false, trusted, SILENCE, HCA_CTR_ub_ta_bad_ee},
	{"version", URMA_OPC_WRITE, false, version, UNKNOWN, HCA_CTR_ub_ta_bad_version},
	{"opcode", URMA_OPC_WRITE, false, no_opcode, UNKNOWN, HCA_CTR_ub_ta_bad_opcode},
	{"writeback", URMA_OPC_WRITE, false, management, UNKNOWN, HCA_CTR_ub_ta_not_offered},
	{"RC type", URMA_OPC_WRITE, false, sequence, SILENCE, HCA_CTR_ub_ta_sequence,
	 .also = HCA_CTR_ub_rsp_unknown_queue},
	{"ODR", URMA_OPC_WRITE, false, order, UNKNOWN, HCA_CTR_ub_ta_bad_code},
	{"poison", URMA_OPC_WRITE, false, poison, REFUSED, HCA_CTR_ub_ta_poison},
	{"TokenID", URMA_OPC_WRITE, false, nobodys_memory, REFUSED, HCA_CTR_ub_token_unknown},
	{"TokenID of another life", URMA_OPC_READ, false, other_life, REFUSED,
	 HCA_CTR_ub_token_unknown},
	{"region of verbs, write", URMA_OPC_WRITE, false, region_of_verbs, REFUSED,
	 HCA_CTR_ub_token_not_exported},
	{"region of verbs, read", URMA_OPC_READ, false, region_of_verbs, REFUSED,
	 HCA_CTR_ub_token_not_exported},
	{"region of verbs, atomic", URMA_OPC_FADD, false, region_of_verbs, REFUSED,
	 HCA_CTR_ub_token_not_exported},
	{"token, write", URMA_OPC_WRITE, false, wrong_token, REFUSED, HCA_CTR_ub_token_mismatch},
	{"token, read", URMA_OPC_READ, false, wrong_token, REFUSED, HCA_CTR_ub_token_mismatch},
	{"token, atomic", URMA_OPC_FADD, false, wrong_token, REFUSED, HCA_CTR_ub_token_mismatch},
	{"token, send", URMA_OPC_SEND_IMM, false, wrong_token, REFUSED, HCA_CTR_ub_tc_token},
	{"behind the end", URMA_OPC_WRITE, false, behind_the_end, REFUSED, HCA_CTR_ub_token_range},
	{"in front", URMA_OPC_READ, false, in_front, REFUSED, HCA_CTR_ub_token_range},
	{"around the end", URMA_OPC_READ, false, around_the_end, REFUSED, HCA_CTR_ub_token_range},
	{"straddles", URMA_OPC_FADD, false, straddles, UNKNOWN, HCA_CTR_ub_ta_bad_atomic},
	{"atomic of 7", URMA_OPC_FADD, false, odd_length, UNKNOWN, HCA_CTR_ub_ta_bad_atomic},
	{"length", URMA_OPC_WRITE, false, too_short, UNKNOWN, HCA_CTR_ub_ta_bad_length},
	{"TC", URMA_OPC_SEND_IMM, false, nobodys_queue, UNKNOWN, HCA_CTR_ub_tc_unknown},
	{"well-known number", URMA_OPC_SEND_IMM, false, nobodys_number, UNKNOWN,
	 HCA_CTR_ub_tc_unknown},
	{"TC of another life", URMA_OPC_SEND_IMM, false, queue_of_verbs, UNKNOWN,
	 HCA_CTR_ub_tc_unknown},
	{"group", URMA_OPC_SEND_IMM, false, group, UNKNOWN, HCA_CTR_ub_ta_group},
	{"MT_EN", URMA_OPC_SEND_IMM, false, no_mtetah, UNKNOWN, HCA_CTR_ub_ta_bad_flags},
	{"JFS as TC", URMA_OPC_SEND_IMM, false, jfs_as_queue, UNKNOWN, HCA_CTR_ub_tc_unknown},
	{"answer to nobody", URMA_OPC_WRITE, true, to_nobody, SILENCE,
	 HCA_CTR_ub_rsp_unknown_queue},
	{"answer to the bystander", URMA_OPC_WRITE, true, to_bystander, SILENCE,
	 HCA_CTR_ub_rsp_unknown_request},
	{"TASSN", URMA_OPC_WRITE, true, other_number, SILENCE, HCA_CTR_ub_rsp_unknown_request},
	{"TAID", URMA_OPC_READ, true, other_taid, SILENCE, HCA_CTR_ub_rsp_bad},
	{"place", URMA_OPC_READ, true, other_place, LENGTH, HCA_CTR_ub_rsp_bad_place},
	{"longer", URMA_OPC_READ, false, another_length, LENGTH, HCA_CTR_ub_rsp_bad_place,
	 .len = 64, .asks = 128},
	{"longer at its end", URMA_OPC_READ, false, another_length, LENGTH,
	 HCA_CTR_ub_rsp_bad_place, .len = 4160, .asks = 4224, .stored = 4096},
	{"a packet more", URMA_OPC_READ, false, another_length, LENGTH, HCA_CTR_ub_rsp_bad_place,
	 .len = 4096, .asks = 4160, .also = HCA_CTR_ub_rsp_abandoned},
	{"much longer", URMA_OPC_READ, false, another_length, LENGTH, HCA_CTR_ub_rsp_bad_place,
	 .len = 64, .asks = 5000, .also = HCA_CTR_ub_rsp_abandoned},
	{"shorter", URMA_OPC_READ, false, another_length, LENGTH, HCA_CTR_ub_rsp_bad_place,
	 .len = 64, .asks = 32},
	{"a packet less", URMA_OPC_READ, false, another_length, LENGTH, HCA_CTR_ub_rsp_bad_place,
	 .len = 8192, .asks = 4096},
	{"32 done", URMA_OPC_WRITE, true, too_many_done, SILENCE, HCA_CTR_ub_rsp_unknown_request},
	{"status", URMA_OPC_WRITE, true, no_status, SILENCE, HCA_CTR_ub_rsp_malformed},
	{"poisoned Read", URMA_OPC_READ, true, poisoned, URMA_CR_REM_DATA_POISON,
	 HCA_CTR_ub_rsp_poison},
	{"RC type of an answer", URMA_OPC_WRITE, true, other_queue_type, SILENCE,
	 HCA_CTR_ub_rsp_unknown_queue},
};

/* ---- running one ---- */

static uint32_t
length_of(const struct attack *attack)
{
	return attack->len != 0 ? attack->len : 64;
}

static void
attack_once(void *arg, uint32_t i)
{
	struct attacker *a = arg;
	struct ub_pair *p = a->b.p;

	if (i % (UB_BYSTANDER_REQUESTS / ATTACKS) != 0)
		return;
	if (a->attack->opcode == URMA_OPC_FADD)
		ub_pair_atomic(p, 0, URMA_OPC_FADD, RESULT, TO + 64, 8, 1, a->posted);
	else if (a->attack->opcode == URMA_OPC_SEND_IMM)
		ub_pair_send(p, 0, p->side[0].to_jetty, FROM, 64, a->posted);
	else if (a->attack->opcode == URMA_OPC_READ)
		ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, length_of(a->attack), a->posted);
	else
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, a->posted);
	a->posted++;
}

static void
take(void *arg, const urma_cr_t *cr)
{
	struct attacker *a = arg;

	sim_check(a->b.p->s, cr->user_ctx == a->done && cr->status == a->attack->status,
		  "%s: completion of %lu with status %u, not of %lu with %u", a->attack->name,
		  (unsigned long)cr->user_ctx, cr->status, (unsigned long)a->done,
		  a->attack->status);
	a->done++;
}

/* Nothing was written where the attacker may write, or was to read into. */
static void
check_memory(struct ub_pair *p, const struct attack *attack)
{
	for (uint32_t i = 0; i < 2 * LONGEST; i++) {
		/* a Write whose answer is changed was executed */
		if (!attack->responses)
			UB_PAIR_EQ(p, p->side[1].mem[TO + i], 0);
		if (i >= attack->stored)
			UB_PAIR_EQ(p, p->side[0].mem[RESULT + i], 0);
	}
}

/* The end that counts the packet: of a changed answer, or of one to a changed question. */
static unsigned int
victim_of(const struct attack *attack)
{
	return attack->responses || attack->asks != 0 ? 0 : 1;
}

static void
check_counters(struct attacker *a, const struct ub_counters *counters)
{
	const struct attack *attack = a->attack;
	const struct ub_expected expected[] = {
		{victim_of(attack), attack->counter, ATTACKS},
		{0, attack->also, attack->also != 0 ? ATTACKS : 0},
		{0, HCA_CTR_ub_requests_timed_out, attack->status == SILENCE ? ATTACKS : 0},
	};

	ub_counters_check(counters, a->b.p, attack->name, expected, RTE_DIM(expected));
}

static void
open_attack(const struct sim_config *cfg, struct attacker *a, const struct attack *attack)
{
	struct ub_pair_config c = {.sim = *cfg, .rto_base = 100000, .err_timeout = 13};

	memset(a, 0, sizeof(*a));
	ub_pair_open(&pair, &c);
	a->region =
		softhca_reg_mr(pair.s->side[1].pd, pair.side[1].mem, UB_PAIR_MEM,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC);
	sim_check(pair.s, a->region != NULL, "reg_mr: %s", softhca_last_error(NULL));
	ub_bystander_open(&a->b, &pair);
	a->attack = attack;
	a->number = pair.side[0].jetty->jetty_id.id;
	a->b.other = take;
	a->b.disturb = attack_once;
	a->b.arg = a;
}

static void
run_attack(const struct sim_config *cfg, const struct attack *attack)
{
	unsigned int sender = attack->responses ? 1 : 0;
	struct attacker *a = &attacker;
	struct ub_counters counters;

	open_attack(cfg, a, attack);
	ub_counters_begin(&counters, &pair);
	sim_link_lose(pair.s->side[sender].wire, change, a);
	for (uint32_t i = 0; i < ATTACKS; i++)
		ub_pair_recv(&pair, 1, false, UB_PAIR_RECV, 64, i);
	ub_bystander_run(&a->b);
	while (a->done < a->posted) {
		urma_cr_t cr = ub_pair_next(&pair, pair.side[0].send_jfc, 1000 * UB_PAIR_MS);

		take(a, &cr);
	}
	sim_run_for(pair.s, UB_PAIR_MS);
	check_counters(a, &counters);
	check_memory(&pair, attack);
	sim_link_lose(pair.s->side[sender].wire, NULL, NULL);
	UB_PAIR_EQ(&pair, hca_tp_state(ub_pair_tp(&pair, 0, 1)), HCA_TPS_ACTIVE);
	UB_PAIR_EQ(&pair, hca_tp_state(ub_pair_tp(&pair, 1, 1)), HCA_TPS_ACTIVE);
	ub_bystander_request(&a->b);
	softhca_dereg_mr(a->region);
	ub_pair_close(&pair);
}

static void
requests_in(const struct sim_config *cfg)
{
	for (unsigned int i = 0; i < RTE_DIM(attacks); i++)
		if (!attacks[i].responses)
			run_attack(cfg, &attacks[i]);
}

static void
responses_in(const struct sim_config *cfg)
{
	for (unsigned int i = 0; i < RTE_DIM(attacks); i++)
		if (attacks[i].responses)
			run_attack(cfg, &attacks[i]);
}

SIM_TEST(requests)
SIM_TEST(responses)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(responses),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
