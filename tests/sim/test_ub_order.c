/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Receives whose sender asks for their order (ODR[2]) and does not wait for answers, as a peer may
 * do: they complete in the order of sending, whatever the link does to the packets. Our initiator
 * waits, so the bit is set on the link.
 */

#include "ub_pair.h"

#include "sim_link.h"
#include "ub_craft.h"

#define PROGRAM "sim-ub-order"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RECV UB_PAIR_RECV
#define SLOT 32768u
#define SENDS 60u
#define LIVES 4u

static struct ub_pair pair;

/* Set the bit in all requests that take a receive; the frame goes on. */
static bool
ask(void *arg, uint8_t *frame, uint32_t len)
{
	struct ub_view v;
	uint8_t *tah;

	if (ub_parse(frame, len, HCA_UB_FORM_DEFAULT, &v) != 0 || v.tp.ta == 0 ||
	    v.ta.op->is & HCA_UB_OP_RESPONSE)
		return false;
	tah = frame + v.w.transport + v.tp.ta;
	hca_ub_btah_set_odr(tah, hca_ub_btah_odr(tah) | HCA_UB_ODR_COMPLETION);
	ub_seal(hca_icrc_select(), frame, &v.w);
	return false;
}

/* Lengths of one to seven packets; with an immediate, whose packet is the last one. */
static uint32_t
length_of(uint32_t i)
{
	return i % 3 == 0 ? i : i % 3 == 1 ? 1000 * (i % 30) : 100;
}

static void
post(struct ub_pair *p, uint32_t i)
{
	uint32_t len = length_of(i);
	urma_sge_t own = ub_pair_local(p, 0, FROM + i, len);
	urma_sge_t peers = ub_pair_remote(p, 0, TO, len);
	urma_jfs_wr_t wr =
		ub_pair_request(p, 0, i % 4 == 3 ? URMA_OPC_WRITE_IMM : URMA_OPC_SEND_IMM, i);

	wr.flag.bs.place_order = 0;
	if (i % 4 == 3) {
		wr.rw = (urma_rw_wr_t){.src = {&own, 1}, .dst = {&peers, 1}, .notify_data = i};
	} else {
		wr.tjetty = i % 4 == 1 ? p->side[0].to_jfr : p->side[0].to_jetty;
		wr.send = (urma_send_wr_t){.src = {&own, 1}, .imm_data = i};
	}
	ub_pair_post(p, 0, &wr);
}

/* Returns how many receives completed before one that was sent before them. */
static uint32_t
received(struct ub_pair *p, bool asked)
{
	uint32_t early = 0, next = 0;
	bool seen[SENDS] = {0};

	for (uint32_t n = 0; n < SENDS; n++) {
		urma_cr_t cr = ub_pair_next(p, p->side[1].recv_jfc, 2000 * UB_PAIR_MS);

		UB_PAIR_EQ(p, cr.status, URMA_CR_SUCCESS);
		sim_check(p->s, cr.imm_data < SENDS && !seen[cr.imm_data], "%lu again",
			  (unsigned long)cr.imm_data);
		seen[cr.imm_data] = true;
		if (asked)
			UB_PAIR_EQ(p, cr.imm_data, n);
		early += cr.imm_data != next;
		while (next < SENDS && seen[next])
			next++;
		if (cr.opcode == URMA_CR_OPC_SEND_WITH_IMM)
			ub_pair_same(p, 1, RECV + (uint32_t)cr.user_ctx * SLOT,
				     FROM + (uint32_t)cr.imm_data, length_of(cr.imm_data));
	}
	return early;
}

static uint32_t
messages(struct ub_pair *p, bool asked)
{
	uint32_t early;

	for (uint32_t i = 0; i < SENDS; i++)
		ub_pair_recv(p, 1, i % 4 == 1, RECV + i * SLOT, SLOT, i);
	/* the other way too: holes are filled by answers as well */
	for (uint32_t i = 0; i < SENDS; i++) {
		post(p, i);
		ub_pair_rw(p, 1, i % 2 ? URMA_OPC_READ : URMA_OPC_WRITE, UB_PAIR_READ,
			   TO + UB_PAIR_PART / 2, 5000, i);
	}
	early = received(p, asked);
	for (uint32_t i = 0; i < SENDS; i++) {
		ub_pair_done(p, 0, i, URMA_CR_SUCCESS);
		ub_pair_done(p, 1, i, URMA_CR_SUCCESS);
	}
	return early;
}

static const struct hca_impair links[] = {
	{.jitter_ns = 50000},
	{.drop = 0.02, .dup = 0.02, .reorder = 0.1, .reorder_ns = 100000},
};

/* One TP, also with spray: an early receive waits, and without the bit it does not. */
static void
in_order_in(const struct sim_config *cfg)
{
	for (unsigned int k = 0; k < 2 * RTE_DIM(links); k++) {
		struct ub_pair_config c = {.sim = *cfg,
					   .small_mtu = k % 2,
					   .flags = k % 2 ? HCA_TP_FLAG_SPRAY : 0};
		struct ub_pair *p = &pair;
		uint32_t early;

		ub_pair_open(p, &c);
		for (unsigned int side = 0; side < 2; side++)
			sim_impair(p->s, side, &links[k / 2]);
		early = messages(p, false);
		sim_check(p->s, early > 3, "%u came early", early);
		UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_ordered_held), 0);
		sim_link_lose(p->s->side[0].wire, ask, NULL);
		for (uint32_t life = 0; life < LIVES; life++)
			messages(p, true);
		sim_check(p->s, ub_pair_counter(p, 1, HCA_CTR_ub_ordered_held) > 3,
			  "none had to wait");
		sim_link_lose(p->s->side[0].wire, NULL, NULL);
		for (unsigned int side = 0; side < 2; side++)
			sim_impair(p->s, side, NULL);
		ub_pair_close(p);
	}
}

/* ---- ends ---- */

/*
 * The first of several Sends loses its packet, which comes again after 100 ms only. Returns with
 * the others executed and answered, and their completions held.
 */
static struct ub_pair *
begin_held(const struct sim_config *cfg, bool jfr)
{
	struct ub_pair_config c = {.sim = *cfg,
				   .mode = HCA_TP_MODE_SACK,
				   .rule = HCA_TP_RULE_NONE,
				   .rto_base = 100000};
	const struct hca_impair dead = {.drop = 1};
	struct ub_pair *p = &pair;

	ub_pair_open(p, &c);
	sim_link_lose(p->s->side[0].wire, ask, NULL);
	for (uint32_t i = 0; i < 4; i++)
		ub_pair_recv(p, 1, jfr, RECV + i * SLOT, SLOT, i);
	sim_impair(p->s, 0, &dead);
	ub_pair_send(p, 0, jfr ? p->side[0].to_jfr : p->side[0].to_jetty, FROM, 64, 0);
	sim_run_for(p->s, UB_PAIR_MS);
	sim_impair(p->s, 0, NULL);
	for (uint32_t i = 1; i < 3; i++)
		ub_pair_send(p, 0, jfr ? p->side[0].to_jfr : p->side[0].to_jetty, FROM, 64, i);
	sim_run_for(p->s, UB_PAIR_MS);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_requests_done), 2);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_ordered_held), 2);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_resp_completions), 0);
	return p;
}

static void
end_held(struct ub_pair *p)
{
	sim_link_lose(p->s->side[0].wire, NULL, NULL);
	ub_pair_close(p);
}

/* The Jetty in ERROR: executed requests complete well and first, then the rest is flushed. */
static void
error_in(const struct sim_config *cfg)
{
	urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
	struct ub_pair *p = begin_held(cfg, false);

	UB_PAIR_EQ(p, urma_modify_jetty(p->side[1].jetty, &attr), URMA_SUCCESS);
	for (uint32_t i = 0; i < 4; i++)
		UB_PAIR_EQ(p, ub_pair_next(p, p->side[1].recv_jfc, UB_PAIR_MS).status,
			   i < 2 ? URMA_CR_SUCCESS : URMA_CR_WR_FLUSH_ERR);
	ub_pair_done(p, 0, 0, URMA_CR_REM_ACCESS_ABORT_ERR);
	ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
	ub_pair_done(p, 0, 2, URMA_CR_SUCCESS);
	UB_PAIR_EQ(p, ub_pair_next(p, p->side[1].send_jfc, UB_PAIR_MS).status,
		   URMA_CR_WR_FLUSH_ERR_DONE);
	ub_pair_nothing(p, UB_PAIR_MS);
	end_held(p);
}

/* The queue is destroyed, and its number may be another's: nothing completes. */
static void
queue_goes_in(const struct sim_config *cfg)
{
	for (unsigned int jfr = 0; jfr < 2; jfr++) {
		struct ub_pair *p = begin_held(cfg, jfr);
		struct ub_pair_side *sd = &p->side[1];

		UB_PAIR_EQ(p, jfr ? urma_delete_jfr(sd->jfr) : urma_delete_jetty(sd->jetty),
			   URMA_SUCCESS);
		if (jfr)
			sd->jfr = NULL;
		else
			sd->jetty = NULL;
		ub_pair_done(p, 0, 0, URMA_CR_REM_UNSUPPORTED_REQ_ERR);
		ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
		ub_pair_done(p, 0, 2, URMA_CR_SUCCESS);
		ub_pair_nothing(p, UB_PAIR_MS);
		UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_resp_completions), 0);
		end_held(p);
	}
}

/* The channel is gone: no packet will come any more, and executed requests complete. */
static void
channel_goes_in(const struct sim_config *cfg)
{
	struct ub_pair *p = begin_held(cfg, false);

	ub_pair_close_tp(p, 1, 1);
	ub_pair_received(p, 1, 0, 64);
	ub_pair_received(p, 1, 1, 64);
	ub_pair_close_tp(p, 0, 1);
	for (uint32_t i = 0; i < 3; i++)
		ub_pair_done(p, 0, i, i == 0 ? URMA_CR_ACK_TIMEOUT_ERR : URMA_CR_SUCCESS);
	end_held(p);
}

SIM_TEST(in_order)
SIM_TEST(error)
SIM_TEST(queue_goes)
SIM_TEST(channel_goes)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(error),
		cmocka_unit_test(queue_goes),
		cmocka_unit_test(channel_goes),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
