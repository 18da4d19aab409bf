/* SPDX-License-Identifier: BSD-3-Clause */

/* Each operation of UB from a program's call to the peer's memory and back, over a good link. */

#include "ub_atomic.h"

#define PROGRAM "sim-ub-ops"

#define FROM UB_PAIR_FROM
#define TO UB_PAIR_TO
#define RECV UB_PAIR_RECV
#define RESULT UB_PAIR_READ

static struct ub_pair pair;

/* In each form of packets; nothing is sent again. */
static void
in_forms(const struct sim_config *cfg, void (*fn)(struct ub_pair *p))
{
	static const struct ub_pair_config forms[] = {
		{.gid = SIM_GID_V4, .tps = 1},
		{.gid = SIM_GID_V4_VLAN, .tps = 2, .small_mtu = true},
		{.gid = SIM_GID_V6, .tps = 1},
		{.gid = SIM_GID_V6_VLAN,
		 .tps = 3,
		 .passive = true,
		 .small_mtu = true,
		 .old_value_le = true},
	};

	for (unsigned int i = 0; i < RTE_DIM(forms); i++) {
		struct ub_pair_config c = forms[i];

		c.sim = *cfg;
		ub_pair_open(&pair, &c);
		fn(&pair);
		UB_PAIR_EQ(&pair, ub_pair_again(&pair), 0);
		UB_PAIR_EQ(&pair, ub_pair_timeouts(&pair), 0);
		for (unsigned int k = 0; k < 2; k++) {
			UB_PAIR_EQ(&pair, ub_pair_counter(&pair, k, HCA_CTR_ub_tp_duplicates), 0);
			UB_PAIR_EQ(&pair, ub_pair_counter(&pair, k, HCA_CTR_ub_tp_broken), 0);
		}
		ub_pair_close(&pair);
	}
}

#define IN_FORMS(n) \
	static void n##_in(const struct sim_config *cfg) \
	{ \
		in_forms(cfg, n##_of); \
	} \
	SIM_TEST(n)

/* The smallest whole way: a Write of 64 bytes arrives and completes. */
static void
one_write_of(struct ub_pair *p)
{
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, 1);
	ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
	ub_pair_same(p, 1, TO, FROM, 64);
	UB_PAIR_EQ(p, p->side[1].mem[TO + 64], 0);
}

static const uint32_t lengths[] = {0,	 1,    3,     64,    1000,  1023,   1024,
				   1025, 4096, 65535, 65536, 65537, 200001, 1 << 20};

static void
writes_of(struct ub_pair *p)
{
	uint64_t id = 0;

	for (unsigned int i = 0; i < RTE_DIM(lengths); i++) {
		uint32_t n = lengths[i];

		memset(p->side[1].mem + TO, 0, n + 8);
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM + i, TO + 4, n, ++id);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
		ub_pair_same(p, 1, TO + 4, FROM + i, n);
		UB_PAIR_EQ(p, p->side[1].mem[TO + 3] + p->side[1].mem[TO + 4 + n], 0);
	}
}

static void
reads_of(struct ub_pair *p)
{
	uint64_t id = 0;

	for (unsigned int i = 0; i < RTE_DIM(lengths); i++) {
		uint32_t n = lengths[i];

		memset(p->side[0].mem + RESULT, 0, n + 8);
		ub_pair_rw(p, 0, URMA_OPC_READ, RESULT + 4, FROM + i, n, ++id);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
		ub_pair_same(p, 0, RESULT + 4, FROM + i, n);
		UB_PAIR_EQ(p, p->side[0].mem[RESULT + 3] + p->side[0].mem[RESULT + 4 + n], 0);
	}
}

/* Into a Jetty's own receives, and into a JFR. */
static void
sends_of(struct ub_pair *p)
{
	uint64_t id = 0;
	urma_cr_t cr;

	for (unsigned int i = 0; i < 2 * RTE_DIM(lengths); i++) {
		uint32_t n = lengths[i / 2];
		bool jfr = i % 2;

		memset(p->side[1].mem + RECV, 0, n + 8);
		ub_pair_recv(p, 1, jfr, RECV, n + 1, ++id);
		ub_pair_send(p, 0, jfr ? p->side[0].to_jfr : p->side[0].to_jetty, FROM + i, n, id);
		cr = ub_pair_received(p, 1, id, n);
		ub_pair_same(p, 1, RECV, FROM + i, n);
		UB_PAIR_EQ(p, p->side[1].mem[RECV + n], 0);
		UB_PAIR_EQ(p, cr.opcode, URMA_CR_OPC_SEND_WITH_IMM);
		UB_PAIR_EQ(p, cr.imm_data, id);
		UB_PAIR_EQ(p, cr.remote_id.id, p->side[0].jetty->jetty_id.id);
		UB_PAIR_EQ(p, cr.flag.bs.jetty, !jfr);
		UB_PAIR_EQ(p, cr.local_id,
			   jfr ? p->side[1].jfr->jfr_id.id : p->side[1].jetty->jetty_id.id);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	}
}

static void
immediates_of(struct ub_pair *p)
{
	uint64_t id = UINT64_C(0xfedcba9876543210);
	urma_cr_t cr;

	for (unsigned int i = 0; i < RTE_DIM(lengths); i++) {
		uint32_t n = lengths[i];

		memset(p->side[1].mem + TO, 0, n + 1);
		ub_pair_recv(p, 1, false, RECV, 16, ++id);
		ub_pair_rw(p, 0, URMA_OPC_WRITE_IMM, FROM + i, TO, n, id);
		cr = ub_pair_received(p, 1, id, n);
		UB_PAIR_EQ(p, cr.opcode, URMA_CR_OPC_WRITE_WITH_IMM);
		UB_PAIR_EQ(p, cr.imm_data, id);
		ub_pair_same(p, 1, TO, FROM + i, n);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	}
	UB_PAIR_EQ(p, p->side[1].mem[RECV], 0);
}

static uint64_t
word(struct ub_pair *p, unsigned int side, uint32_t at)
{
	uint64_t v;

	memcpy(&v, p->side[side].mem + at, sizeof(v));
	return v;
}

static void
set_word(struct ub_pair *p, unsigned int side, uint32_t at, uint64_t v)
{
	memcpy(p->side[side].mem + at, &v, sizeof(v));
}

static void
notify(struct ub_pair *p, uint32_t from, uint32_t len, uint32_t notify_at, uint64_t id)
{
	urma_sge_t own = ub_pair_local(p, 0, from, len);
	urma_sge_t dst[2] = {ub_pair_remote(p, 0, TO, len), ub_pair_remote(p, 0, notify_at, 8)};
	urma_jfs_wr_t wr = ub_pair_request(p, 0, URMA_OPC_WRITE_NOTIFY, id);

	wr.rw.src = (urma_sg_t){&own, 1};
	wr.rw.dst = (urma_sg_t){dst, 2};
	wr.rw.notify_data = ~id;
	ub_pair_post(p, 0, &wr);
}

/* When the notify is seen, all data is there. */
static void
notifies_of(struct ub_pair *p)
{
	uint32_t at = TO + UB_PAIR_PART - 8;
	uint64_t id = 0;

	for (unsigned int i = 0; i < RTE_DIM(lengths); i++) {
		memset(p->side[1].mem + TO, 0, lengths[i]);
		notify(p, FROM + i, lengths[i], at, ++id);
		while (word(p, 1, at) != ~id)
			sim_poll(p->s);
		ub_pair_same(p, 1, TO, FROM + i, lengths[i]);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	}
}

/* Another segment over the same memory that asks for no token, as side 0 has imported it. */
static urma_target_seg_t *
import_open(struct ub_pair *p, urma_target_seg_t **own)
{
	urma_seg_cfg_t cfg = {.va = (uintptr_t)p->side[1].mem + TO,
			      .len = UB_PAIR_PART,
			      .flag.bs = {.token_policy = URMA_TOKEN_NONE,
					  .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE}};
	urma_target_seg_t *t;

	*own = urma_register_seg(p->side[1].ctx, &cfg);
	sim_check(p->s, *own != NULL, "%s", softhca_urma_reason());
	t = urma_import_seg(p->side[0].ctx, &(*own)->seg, NULL, 0, (urma_import_seg_flag_t){0});
	sim_check(p->s, t != NULL, "%s", softhca_urma_reason());
	return t;
}

/* Data and notify go to segments of which any one, or both, or none asks for a token. */
static void
notify_tokens_of(struct ub_pair *p)
{
	uint32_t at = TO + UB_PAIR_PART - 8;
	urma_target_seg_t *own, *open = import_open(p, &own);

	for (uint32_t id = 1; id <= 4; id++) {
		urma_sge_t from = ub_pair_local(p, 0, FROM + id, 5000);
		urma_sge_t dst[2] = {ub_pair_remote(p, 0, TO, 5000), ub_pair_remote(p, 0, at, 8)};
		urma_jfs_wr_t wr = ub_pair_request(p, 0, URMA_OPC_WRITE_NOTIFY, id);

		dst[0].tseg = id & 1 ? open : dst[0].tseg;
		dst[1].tseg = id & 2 ? open : dst[1].tseg;
		wr.rw.src = (urma_sg_t){&from, 1};
		wr.rw.dst = (urma_sg_t){dst, 2};
		wr.rw.notify_data = ~(uint64_t)id;
		ub_pair_post(p, 0, &wr);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
		ub_pair_same(p, 1, TO, FROM + id, 5000);
		UB_PAIR_EQ(p, word(p, 1, at), ~(uint64_t)id);
	}
	sim_check(p->s,
		  urma_unimport_seg(open) == URMA_SUCCESS &&
			  urma_unregister_seg(own) == URMA_SUCCESS,
		  "%s", softhca_urma_reason());
}

static void
atomics_of(struct ub_pair *p)
{
	ub_atomic_all(p, RESULT, TO);
}

/* ---- forms of requests ---- */

static void
enables_of(struct ub_pair *p)
{
	ub_enables_all(p, FROM, TO);
}

/* Data that is gone when the call returns. */
static void
inlines_of(struct ub_pair *p)
{
	static const uint32_t sizes[] = {0, 1, 5, 64, UB_PAIR_INLINE};
	uint8_t data[UB_PAIR_INLINE];
	uint64_t id = 0;

	for (unsigned int i = 0; i < RTE_DIM(sizes); i++) {
		urma_sge_t own = {(uintptr_t)data, sizes[i], NULL};
		urma_sge_t peers = ub_pair_remote(p, 0, TO, sizes[i]);
		urma_jfs_wr_t wr = ub_pair_request(p, 0, URMA_OPC_WRITE, ++id);

		wr.flag.bs.inline_flag = 1;
		wr.rw.src = (urma_sg_t){&own, 1};
		wr.rw.dst = (urma_sg_t){&peers, 1};
		memcpy(data, p->side[0].mem + FROM + i, sizes[i]);
		ub_pair_post(p, 0, &wr);
		wr = ub_pair_request(p, 0, URMA_OPC_SEND, ++id);
		wr.flag.bs.inline_flag = 1;
		wr.send.src = (urma_sg_t){&own, 1};
		ub_pair_recv(p, 1, false, RECV, sizes[i], id);
		ub_pair_post(p, 0, &wr);
		memset(data, 0, sizeof(data));
		UB_PAIR_EQ(p, ub_pair_received(p, 1, id, sizes[i]).opcode, URMA_CR_OPC_SEND);
		ub_pair_done(p, 0, id - 1, URMA_CR_SUCCESS);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
		ub_pair_same(p, 1, TO, FROM + i, sizes[i]);
		ub_pair_same(p, 1, RECV, FROM + i, sizes[i]);
	}
}

/* Many requests at once both ways, more than a TP takes; all complete in order. */
static void
many_of(struct ub_pair *p)
{
	uint32_t n = UB_PAIR_DEPTH;

	for (uint32_t i = 0; i < n; i++)
		for (unsigned int k = 0; k < 2; k++)
			ub_pair_rw(p, k, i % 3 == 0 ? URMA_OPC_READ : URMA_OPC_WRITE,
				   i % 3 == 0 ? RESULT + i * 4096 : FROM + i * 4096,
				   i % 3 == 0 ? FROM + i * 4096 : TO + i * 4096, 4096, i);
	for (uint32_t i = 0; i < n; i++)
		for (unsigned int k = 0; k < 2; k++)
			ub_pair_done(p, k, i, URMA_CR_SUCCESS);
	for (uint32_t i = 0; i < n; i++)
		for (unsigned int k = 0; k < 2; k++)
			ub_pair_same(p, i % 3 == 0 ? k : 1 - k,
				     (i % 3 == 0 ? RESULT : TO) + i * 4096, FROM + i * 4096, 4096);
}

/* Neighbours of one region, of which the second one's payload leaves it. */
static void
beyond_of(struct ub_pair *p)
{
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 64, 1);
	ub_pair_rw(p, 0, URMA_OPC_WRITE, UB_PAIR_MEM - 32, TO + 4096, 64, 2);
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM + 64, TO + 64, 64, 3);
	ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
	ub_pair_done(p, 0, 2, URMA_CR_LOC_ACCESS_ERR);
	ub_pair_done(p, 0, 3, URMA_CR_SUCCESS);
	ub_pair_same(p, 1, TO, FROM, 128);
}

/* A JFS, and requests of which only the last asks for a completion. */
static void
jfs_of(struct ub_pair *p)
{
	urma_jfs_wr_flag_t flag = {0};
	struct ub_pair_side *sd = &p->side[0];
	urma_status_t st;

	for (uint32_t i = 0; i < 10; i++) {
		flag.bs.complete_enable = i == 9;
		st = urma_write(sd->jfs, sd->to_jetty, sd->to_seg, sd->seg,
				(uintptr_t)p->side[1].mem + TO + 100 * i,
				(uintptr_t)sd->mem + FROM + 100 * i, 100, flag, i);
		sim_check(p->s, st == URMA_SUCCESS, "%s", softhca_urma_reason());
	}
	ub_pair_done(p, 0, 9, URMA_CR_SUCCESS);
	ub_pair_same(p, 1, TO, FROM, 1000);
}

/* A request with strong order is executed after all ordered ones before it. */
static void
orders_of(struct ub_pair *p)
{
	for (uint32_t i = 1; i <= 20; i++) {
		set_word(p, 0, FROM, i);
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM + 8, TO + 8, 100000, 3 * i);
		ub_pair_ordered(p, 0, URMA_OPC_WRITE, FROM, TO, 8, HCA_UB_ODR_RELAXED, 3 * i + 1);
		ub_pair_ordered(p, 0, URMA_OPC_READ, RESULT, TO, 8, HCA_UB_ODR_STRONG, 3 * i + 2);
		for (uint32_t k = 0; k < 3; k++)
			ub_pair_done(p, 0, 3 * i + k, URMA_CR_SUCCESS);
		UB_PAIR_EQ(p, word(p, 0, RESULT), i);
	}
}

/* ---- without a channel, as the agents of hosts talk ---- */

#define AGENT 40u /* a well-known number */

static urma_jetty_t *
make_agent(struct ub_pair *p, unsigned int side)
{
	struct ub_pair_side *sd = &p->side[side];
	urma_jfr_cfg_t own = {.depth = 8, .trans_mode = URMA_TM_RM, .jfc = sd->recv_jfc};
	urma_jetty_cfg_t cfg = {
		.id = AGENT,
		.jfs_cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .jfc = sd->send_jfc},
		.jfr_cfg = &own};
	urma_jetty_t *j = urma_create_jetty(sd->ctx, &cfg);

	sim_check(p->s, j != NULL, "agent: %s", softhca_urma_reason());
	return j;
}

/* The library does not offer it, so the WQE is written here. */
static void
post_datagram(struct ub_pair *p, urma_jetty_t *agent, uint32_t from, uint32_t len, uint64_t imm)
{
	struct urma_queue *q = (struct urma_queue *)agent;
	struct softhca_ah_attr attr = {.sgid_index = p->cfg.gid, .port_num = 1};
	struct softhca_ah *ah;
	uint32_t index = q->sq.head++ & q->sq.mask, number;
	uint8_t *wqe = q->sq.buf + (index << q->sq.log_stride);
	struct {
		struct hca_next_unit next;
		struct hca_ub_unit ub;
		struct hca_ud_unit ud;
		struct hca_data_unit data;
	} w = {.next.flags = hca_cpu_to_le32(HCA_WQE_FLAG_SIGNALED),
	       .ub = {.number = hca_cpu_to_le32(HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0)),
		      .tc = hca_cpu_to_le32(HCA_UB_MAKE_TC(AGENT, HCA_UB_TC_ONE, 0)),
		      .data = hca_cpu_to_le64(imm)},
	       .data = {.byte_cnt = hca_cpu_to_le32(len),
			.lkey = hca_cpu_to_le32(((struct urma_segment *)p->side[0].seg)->mr->lkey),
			.addr = hca_cpu_to_le64((uintptr_t)p->side[0].mem + from)}};

	sim_gid(1, p->cfg.gid, attr.dgid.raw);
	ah = softhca_create_ah(urma_ctx_of(p->side[0].ctx)->pd, &attr);
	sim_check(p->s, ah != NULL, "create_ah");
	w.ud = ((struct lib_ah *)ah)->unit;
	softhca_destroy_ah(ah);
	memcpy(wqe, &w, sizeof(w));
	q->sq.wr_id[index] = imm;
	UB_PAIR_EQ(p, urma_inside()->doorbell_take(q->ctx->lib, &number), 0);
	urma_inside()->doorbell_fill(&q->ctx->lib->uar, number,
				     HCA_DB_MAKE(index, 0, HCA_OP_SEND_IMM, q->number,
						 sizeof(w) / HCA_WQE_UNIT));
}

/* Sends to a well-known number: one packet each, completed when they have left. */
static void
datagrams_of(struct ub_pair *p)
{
	static const uint32_t sizes[] = {0, 1, 100, 1024};
	urma_jetty_t *agent[2] = {make_agent(p, 0), make_agent(p, 1)};
	urma_sge_t sge = ub_pair_local(p, 1, RECV, 2000);
	urma_jfr_wr_t recv = {.src = {&sge, 1}};
	bool is_v4 = p->cfg.gid == SIM_GID_V4 || p->cfg.gid == SIM_GID_V4_VLAN;
	uint64_t id = 0;
	urma_cr_t cr;

	for (unsigned int i = 0; i < RTE_DIM(sizes); i++) {
		recv.user_ctx = ++id;
		sim_check(p->s, urma_post_jetty_recv_wr(agent[1], &recv, NULL) == URMA_SUCCESS,
			  "post");
		post_datagram(p, agent[0], FROM + i, sizes[i], id);
		cr = ub_pair_received(p, 1, id, sizes[i] + 40);
		UB_PAIR_EQ(p, cr.imm_data, id);
		UB_PAIR_EQ(p, cr.tpn, 0);
		UB_PAIR_EQ(p, cr.local_id, AGENT);
		UB_PAIR_EQ(p, cr.remote_id.id, ((struct urma_queue *)agent[0])->number);
		ub_pair_same(p, 1, RECV + 40, FROM + i, sizes[i]);
		/* the source's address is behind that of the header's start */
		UB_PAIR_EQ(p, p->side[1].mem[RECV + (is_v4 ? 35 : 23)], 1);
		ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	}
	/* it has no request: it is counted and dropped */
	post_datagram(p, agent[0], FROM, 10, ++id);
	ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	sim_run_for(p->s, UB_PAIR_MS);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_no_receive), 1);
	for (unsigned int i = 0; i < 2; i++)
		sim_check(p->s, urma_delete_jetty(agent[i]) == URMA_SUCCESS, "delete");
}

/* A peer whose Reads and atomics have no headers except addresses: Reads have one packet. */
static void
bare_in(const struct sim_config *cfg)
{
	struct ub_pair_config c = {.sim = *cfg, .bare = true};
	struct ub_pair *p = &pair;

	ub_pair_open(p, &c);
	set_word(p, 1, TO, 5);
	ub_pair_atomic(p, 0, URMA_OPC_FADD, RESULT, TO, 8, 2, 1);
	ub_pair_done(p, 0, 1, URMA_CR_SUCCESS);
	UB_PAIR_EQ(p, word(p, 0, RESULT), 5);
	UB_PAIR_EQ(p, word(p, 1, TO), 7);
	ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, 4096, 2);
	ub_pair_done(p, 0, 2, URMA_CR_SUCCESS);
	ub_pair_same(p, 0, RESULT, FROM, 4096);
	ub_pair_rw(p, 0, URMA_OPC_READ, RESULT, FROM, 4097, 3);
	ub_pair_done(p, 0, 3, URMA_CR_REM_RESP_LEN_ERR);
	ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 200001, 4);
	ub_pair_done(p, 0, 4, URMA_CR_SUCCESS);
	ub_pair_same(p, 1, TO, FROM, 200001);
	ub_pair_close(p);
}

/*
 * No worker runs for some time, whatever is under way: nothing is sent again, and no request fails
 * whose answer is there when that was longer than its timeout.
 */
static void
away_of(struct ub_pair *p)
{
	for (unsigned int i = 0; i < 200; i++) {
		ub_pair_rw(p, 0, URMA_OPC_WRITE, FROM, TO, 200, i + 1);
		for (unsigned int k = i % 20; k > 0; k--)
			sim_poll(p->s);
		sim_pass(p->s, i % 3 == 2 ? 1000 * UB_PAIR_MS : 5 * UB_PAIR_MS);
		ub_pair_done(p, 0, i + 1, URMA_CR_SUCCESS);
	}
}

SIM_TEST(bare)
IN_FORMS(away)
IN_FORMS(one_write)
IN_FORMS(datagrams)
IN_FORMS(writes)
IN_FORMS(reads)
IN_FORMS(sends)
IN_FORMS(immediates)
IN_FORMS(notifies)
IN_FORMS(notify_tokens)
IN_FORMS(atomics)
IN_FORMS(enables)
IN_FORMS(inlines)
IN_FORMS(many)
IN_FORMS(beyond)
IN_FORMS(jfs)
IN_FORMS(orders)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_write),	 cmocka_unit_test(datagrams),
		cmocka_unit_test(bare),		 cmocka_unit_test(writes),
		cmocka_unit_test(reads),	 cmocka_unit_test(sends),
		cmocka_unit_test(immediates),	 cmocka_unit_test(notifies),
		cmocka_unit_test(notify_tokens), cmocka_unit_test(atomics),
		cmocka_unit_test(enables),	 cmocka_unit_test(inlines),
		cmocka_unit_test(many),		 cmocka_unit_test(beyond),
		cmocka_unit_test(jfs),		 cmocka_unit_test(orders),
		cmocka_unit_test(away),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
