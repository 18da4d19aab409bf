/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Messages of mode UM over links that lose, copy, delay and damage frames, while Writes go on
 * between the same hosts: messages that arrive are whole and name their sender, every Send
 * completes, no other work stops.
 */

#include "ub_pair.h"

#define PROGRAM "sim-ub-unreliable"
#define MESSAGES 400u
#define OPEN 16u     /* Sends that are not completed */
#define RECEIVES 24u /* fewer than messages on their way: some find none */
#define ROOM 4096u
#define WRITE_ID (1ull << 32)
#define WRITE_LEN 20000u

struct um_side {
	urma_jetty_t *jetty;
	urma_target_jetty_t *to;
	uint32_t posted, completed;
	uint32_t receives; /* posted */
	uint32_t seen[MESSAGES];
	uint32_t newest, late; /* the newest message that came, and how many came after it */
	uint32_t writes;
};

struct um {
	struct ub_pair p;
	struct um_side side[2];
};

static struct um um;

static void
open_jetty(struct ub_pair *p, unsigned int side)
{
	struct ub_pair_side *sd = &p->side[side];
	urma_jfr_cfg_t receives = {.depth = RECEIVES,
				   .trans_mode = URMA_TM_UM,
				   .max_sge = 1,
				   .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				   .token_value.token = UB_PAIR_SEND_TOKEN,
				   .jfc = sd->recv_jfc};
	urma_jetty_cfg_t cfg = {.jfs_cfg = {.depth = OPEN,
					    .trans_mode = URMA_TM_UM,
					    .max_sge = 1,
					    .jfc = sd->send_jfc},
				.jfr_cfg = &receives};

	um.side[side].jetty = urma_create_jetty(sd->ctx, &cfg);
	sim_check(p->s, um.side[side].jetty != NULL, "Jetty: %s", softhca_urma_reason());
}

static void
import_jetty(struct ub_pair *p, unsigned int side)
{
	urma_rjetty_t what = {.jetty_id = um.side[1 - side].jetty->jetty_id,
			      .trans_mode = URMA_TM_UM,
			      .type = URMA_JETTY,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t token = {UB_PAIR_SEND_TOKEN};

	um.side[side].to = urma_import_jetty(p->side[side].ctx, &what, &token);
	sim_check(p->s, um.side[side].to != NULL, "import: %s", softhca_urma_reason());
}

/* ---- messages: the id says where their bytes are from, and how many ---- */

static uint32_t
length_of(uint64_t id)
{
	static const uint32_t lengths[] = {0, 1, 100, 1000, 1024};

	return lengths[id % RTE_DIM(lengths)];
}

static uint32_t
from_of(uint64_t id)
{
	return UB_PAIR_FROM + (uint32_t)id * 1237 % (UB_PAIR_PART - ROOM);
}

static void
post_message(struct ub_pair *p, unsigned int side)
{
	struct um_side *u = &um.side[side];
	uint64_t id = u->posted++;
	urma_sge_t own = ub_pair_local(p, side, from_of(id), length_of(id));
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM,
			    .user_ctx = id,
			    .flag.bs.complete_enable = 1,
			    .tjetty = u->to,
			    .send = {.src = {&own, 1}, .imm_data = id}};

	sim_check(p->s, urma_post_jetty_send_wr(u->jetty, &wr, NULL) == URMA_SUCCESS, "post: %s",
		  softhca_urma_reason());
}

static void
post_receive(struct ub_pair *p, unsigned int side, uint64_t slot)
{
	struct um_side *u = &um.side[side];
	urma_sge_t sge = ub_pair_local(p, side, UB_PAIR_RECV + (uint32_t)slot * ROOM, ROOM);
	urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = slot};

	sim_check(p->s, urma_post_jetty_recv_wr(u->jetty, &wr, NULL) == URMA_SUCCESS, "receive: %s",
		  softhca_urma_reason());
	u->receives++;
}

static void
post_write(struct ub_pair *p, unsigned int side)
{
	ub_pair_rw(p, side, URMA_OPC_WRITE, UB_PAIR_FROM, UB_PAIR_TO, WRITE_LEN, WRITE_ID);
}

static void
sent(struct ub_pair *p, unsigned int side, const urma_cr_t *cr)
{
	struct um_side *u = &um.side[side];

	sim_check(p->s, cr->status == URMA_CR_SUCCESS, "%lu: status %u",
		  (unsigned long)cr->user_ctx, cr->status);
	if (cr->user_ctx == WRITE_ID) {
		u->writes++;
		if (u->posted < MESSAGES)
			post_write(p, side);
		return;
	}
	UB_PAIR_EQ(p, cr->user_ctx, u->completed++);
}

static void
received(struct ub_pair *p, unsigned int side, const urma_cr_t *cr)
{
	struct um_side *u = &um.side[side];
	uint32_t at = UB_PAIR_RECV + (uint32_t)cr->user_ctx * ROOM;
	uint32_t len = length_of(cr->imm_data), id = (uint32_t)cr->imm_data;

	UB_PAIR_EQ(p, cr->status, URMA_CR_SUCCESS);
	sim_check(p->s, cr->imm_data < um.side[1 - side].posted, "nobody has sent it");
	UB_PAIR_EQ(p, cr->completion_len, len);
	UB_PAIR_EQ(p, cr->remote_id.id, um.side[1 - side].jetty->jetty_id.id);
	sim_check(p->s, memcmp(&cr->remote_id.eid, &p->side[1 - side].ctx->eid, 16) == 0,
		  "from another address");
	UB_PAIR_EQ(p, cr->tpn, 0);
	ub_pair_same(p, side, at, from_of(id), len);
	memset(p->side[side].mem + at, 0, ROOM);
	u->receives--;
	u->seen[id]++;
	u->late += id < u->newest;
	u->newest = RTE_MAX(u->newest, id);
	post_receive(p, side, cr->user_ctx);
}

static bool
step(struct ub_pair *p)
{
	bool done = true;
	urma_cr_t cr;

	for (unsigned int i = 0; i < 2; i++) {
		struct um_side *u = &um.side[i];

		while (u->posted < MESSAGES && u->posted - u->completed < OPEN)
			post_message(p, i);
		while (urma_poll_jfc(p->side[i].send_jfc, 1, &cr) == 1)
			sent(p, i, &cr);
		while (urma_poll_jfc(p->side[i].recv_jfc, 1, &cr) == 1)
			received(p, i, &cr);
		done = done && u->completed == MESSAGES;
	}
	sim_poll(p->s);
	return done;
}

static void
run_for(struct ub_pair *p, uint64_t ns)
{
	for (uint64_t end = p->s->now + ns; p->s->now < end;)
		step(p);
}

static void
begin(const struct ub_pair_config *c)
{
	memset(&um, 0, sizeof(um));
	ub_pair_open(&um.p, c);
	for (unsigned int i = 0; i < 2; i++)
		open_jetty(&um.p, i);
	for (unsigned int i = 0; i < 2; i++)
		import_jetty(&um.p, i);
}

static void
end(struct ub_pair *p)
{
	for (unsigned int i = 0; i < 2; i++)
		UB_PAIR_EQ(p, urma_unimport_jetty(um.side[i].to), URMA_SUCCESS);
	for (unsigned int i = 0; i < 2; i++)
		UB_PAIR_EQ(p, urma_delete_jetty(um.side[i].jetty), URMA_SUCCESS);
	ub_pair_close(p);
}

/* Every Send completes although no receive is posted; then one is, and messages come. */
static void
no_receive_in(const struct sim_config *cfg)
{
	struct ub_pair *p = &um.p;

	begin(&(struct ub_pair_config){.sim = *cfg});
	while (!step(p))
		;
	run_for(p, UB_PAIR_MS);
	UB_PAIR_EQ(p, um.side[1].newest, 0);
	post_receive(p, 1, 0);
	um.side[0].posted--; /* the last one again */
	um.side[0].completed--;
	post_message(p, 0);
	run_for(p, UB_PAIR_MS);
	UB_PAIR_EQ(p, um.side[1].seen[MESSAGES - 1], 1);
	end(p);
}

static void
bad_link(const struct sim_config *cfg, enum sim_gid gid)
{
	static const struct hca_impair bad = {.drop = 0.1,
					      .dup = 0.1,
					      .reorder = 0.1,
					      .reorder_ns = 20000,
					      .corrupt = 0.05,
					      .truncate = 0.02};
	struct ub_pair *p = &um.p;

	begin(&(struct ub_pair_config){.sim = *cfg,
				       .gid = gid,
				       .retries = 15,
				       .err_timeout = 24,
				       .rto_base = 100});
	for (unsigned int i = 0; i < 2; i++) {
		for (uint32_t r = 0; r < RECEIVES; r++)
			post_receive(p, i, r);
		sim_impair(p->s, i, &bad);
		post_write(p, i);
	}
	while (!step(p))
		;
	for (unsigned int i = 0; i < 2; i++)
		sim_impair(p->s, i, NULL);
	run_for(p, 50 * UB_PAIR_MS);
	for (unsigned int i = 0; i < 2; i++) {
		const struct um_side *u = &um.side[i];
		uint32_t lost = 0, copies = 0;

		for (uint32_t id = 0; id < MESSAGES; id++) {
			lost += u->seen[id] == 0;
			copies += u->seen[id] > 1;
		}
		sim_check(p->s, lost != 0 && copies != 0 && u->late > copies && u->writes != 0,
			  "side %u: %u lost, %u copied, %u late, %u Writes", i, lost, copies,
			  u->late, u->writes);
		sim_check(p->s, lost < MESSAGES / 2, "%u of %u lost", lost, MESSAGES);
	}
	end(p);
}

static void
bad_v4_in(const struct sim_config *cfg)
{
	bad_link(cfg, SIM_GID_V4);
}

static void
bad_v6_in(const struct sim_config *cfg)
{
	bad_link(cfg, SIM_GID_V6);
}

SIM_TEST(no_receive)
SIM_TEST(bad_v4)
SIM_TEST(bad_v6)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_receive),
		cmocka_unit_test(bad_v4),
		cmocka_unit_test(bad_v6),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
