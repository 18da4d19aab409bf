/* SPDX-License-Identifier: BSD-3-Clause */

/* Both ends on one HCA: every service over every kind of address, without frames on the wire. */

#include "sim_tagged.h"
#include "sim_test.h"

#define PROGRAM "test_loopback"
#define MESSAGES 100u

static void
exchange(struct sim_tagged *t, unsigned int messages)
{
	struct sim_rng *r = &sim_model(t->s)->rng;
	unsigned int dry = 0;

	while (messages > 0) {
		bool one = sim_tagged_send(t, sim_below(r, 2), sim_below(r, t->attr.flows));

		messages -= one;
		dry = one ? 0 : dry + 1;
		sim_check(t->s, dry < 200000, "%s: nothing more can be sent",
			  sim_service_names[t->attr.service]);
		if (!one || sim_below(r, 4) == 0)
			sim_poll(t->s);
		sim_tagged_reap(t);
		sim_tagged_fill(t);
	}
	sim_tagged_finish(t);
}

static uint64_t
on_the_wire(struct sim *s)
{
	struct hca_port_impair_stats st;

	hca_port_impair_stats(s->side[0].impair, &st);
	return st.frames;
}

static void
nothing_leaves_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < SIM_SERVICES * SIM_GIDS; i++) {
		const struct sim_tagged_attr a = {
			.service = i / SIM_GIDS,
			.gid = i % SIM_GIDS,
			.srq = i % 2 == 0 && i / SIM_GIDS != SIM_UC,
			.flows = 1 + i % 3,
			.max_len = i / SIM_GIDS == SIM_UD ? 1024 : 4000,
			.loop = true,
			.read = i % 2 != 0,
		};
		struct sim_tagged *t = sim_tagged_open(s, &a);

		t->lossless = true;
		exchange(t, MESSAGES);
		sim_tagged_close(t);
	}
	sim_check(s, on_the_wire(s) == 0, "%llu frames on the wire",
		  (unsigned long long)on_the_wire(s));
	sim_check(s, sim_counter(s, 0, "loopback_pkts") == sim_counter(s, 0, "sent_pkts"),
		  "some frames did not loop");
	sim_check(s, sim_counter(s, 0, "loopback_pkts") == sim_counter(s, 0, "rcvd_pkts"),
		  "some frames were not received");
	sim_check(s, sim_counter(s, 0, "loopback_drops") == 0, "lost");
	sim_check(s, sim_counter(s, 0, "retransmissions") == 0, "retransmissions");
	sim_close(s);
}
SIM_TEST(nothing_leaves)

/* It works without a link. */
static void
without_a_link_in(const struct sim_config *cfg)
{
	const struct sim_tagged_attr a = {.loop = true};
	struct sim *s = sim_open(cfg);
	struct sim_tagged *t = sim_tagged_open(s, &a);

	hca_port_stall_link(s->side[0].stall, false);
	t->lossless = true;
	exchange(t, MESSAGES);
	hca_port_stall_link(s->side[0].stall, true);
	sim_tagged_close(t);
	sim_close(s);
}
SIM_TEST(without_a_link)

/* Local and remote peers at the same time; a bad link affects only the remote ones. */
static void
beside_the_wire_in(const struct sim_config *cfg)
{
	const struct sim_tagged_attr a = {.loop = true, .flows = 4, .timeout = 12};
	const struct hca_impair bad = {.drop = 0.02, .dup = 0.02, .reorder = 0.02};
	struct sim *s = sim_open(cfg);
	struct sim_tagged *t = sim_tagged_open(s, &a);
	struct sim_pair *p = sim_pair_open(s, NULL);

	sim_impair(s, 0, &bad);
	sim_impair(s, 1, &bad);
	t->lossless = true;
	for (unsigned int i = 0; i < 20; i++) {
		struct sim_req r = sim_random_req(p, 6000);

		r.flags |= SOFTHCA_SEND_SIGNALED;
		sim_check(s, sim_post(p, i & 1, &r, 1) == 0, "post");
		exchange(t, 20);
	}
	sim_finish(s, SIM_S);
	sim_check(s, sim_counter(s, 0, "loopback_drops") == 0, "lost");
	sim_check(s, sim_counter(s, 0, "loopback_pkts") != 0 && on_the_wire(s) != 0, "not mixed");
	sim_impair(s, 0, NULL);
	sim_impair(s, 1, NULL);
	sim_pair_close(p);
	sim_tagged_close(t);
	sim_close(s);
}
SIM_TEST(beside_the_wire)

/* Small pools, small rings, long messages: packets without room wait. */
static void
starved_in(const struct sim_config *cfg)
{
	const struct sim_tagged_attr a = {.loop = true, .flows = 8, .max_len = 8000};
	struct sim_config c = *cfg;
	struct sim *s;
	struct sim_tagged *t;

	c.mbufs = 64;
	c.edge_size = 4;
	c.records = c.full_records = 512;
	s = sim_open(&c);
	t = sim_tagged_open(s, &a);
	t->lossless = true;
	exchange(t, 400);
	sim_check(s, sim_counter(s, 0, "loopback_drops") == 0, "lost");
	sim_tagged_close(t);
	sim_close(s);
}
SIM_TEST(starved)

/* --- a QP that is its own peer -------------------- */

#define SELF_BYTES 32768u

struct self {
	struct sim *s;
	struct softhca_cq *cq;
	struct softhca_qp *qp;
	struct softhca_mr *mr;
	uint8_t *mem;
	uint32_t bytes; /* of mem */
};

static void
self_to(struct self *x, enum sim_gid gid, uint32_t state, uint32_t mask)
{
	struct softhca_qp_attr a = {
		.qp_state = state,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
				   SOFTHCA_ACCESS_REMOTE_ATOMIC,
		.path_mtu = SOFTHCA_MTU_512,
		.dest_qp_num = x->qp->qp_num,
		.rq_psn = 0xfffffe,
		.sq_psn = 0xfffffe,
		.max_dest_rd_atomic = 2,
		.max_rd_atomic = 2,
		.min_rnr_timer = 1,
		.timeout = 10,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.port_num = 1, .is_global = 1, .sgid_index = (uint8_t)gid},
	};
	int rc;

	sim_gid(0, gid, a.ah_attr.dgid.raw);
	rc = softhca_modify_qp(x->qp, &a, SOFTHCA_QP_STATE | mask);
	sim_check(x->s, rc == 0, "to %s: %d: %s", softhca_qp_state_str(state), rc,
		  softhca_last_error(x->s->side[0].ctx));
}

static void
self_open(struct self *x, struct sim *s, enum sim_gid gid, uint32_t bytes)
{
	struct softhca_cq_init_attr ca = {.cqe = 64};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC,
	};

	x->s = s;
	x->bytes = bytes;
	qa.send_cq = qa.recv_cq = x->cq = softhca_create_cq(s->side[0].ctx, &ca);
	x->qp = softhca_create_qp(s->side[0].pd, &qa);
	x->mem = aligned_alloc(4096, bytes);
	sim_check(s, x->qp != NULL && x->mem != NULL, "create_qp");
	x->mr = softhca_reg_mr(s->side[0].pd, x->mem, bytes,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC);
	sim_check(s, x->mr != NULL, "reg_mr");
	self_to(x, gid, SOFTHCA_QPS_INIT,
		SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS);
	self_to(x, gid, SOFTHCA_QPS_RTR,
		SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN |
			SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER);
	self_to(x, gid, SOFTHCA_QPS_RTS,
		SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
			SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_MAX_QP_RD_ATOMIC);
}

static void
self_close(struct self *x)
{
	sim_check(x->s,
		  softhca_destroy_qp(x->qp) == 0 && softhca_dereg_mr(x->mr) == 0 &&
			  softhca_destroy_cq(x->cq) == 0,
		  "destroy");
	free(x->mem);
}

/* Copy the first quarter to the second, or back; returns the number of expected completions. */
static unsigned int
self_post(struct self *x, uint32_t opcode, uint32_t len)
{
	struct softhca_sge sge = {(uintptr_t)x->mem, len, x->mr->lkey};
	struct softhca_sge room = {(uintptr_t)x->mem + x->bytes / 4, len, x->mr->lkey};
	struct softhca_recv_wr rwr = {.wr_id = 2, .sg_list = &room, .num_sge = 1}, *rbad;
	struct softhca_send_wr wr = {.wr_id = 1,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .opcode = opcode,
				     .send_flags = SOFTHCA_SEND_SIGNALED};
	struct softhca_send_wr *bad;
	bool recv = opcode == SOFTHCA_WR_SEND || opcode == SOFTHCA_WR_SEND_WITH_IMM ||
		    opcode == SOFTHCA_WR_RDMA_WRITE_WITH_IMM;

	if (opcode >= SOFTHCA_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = room.addr;
		wr.wr.atomic.rkey = x->mr->rkey;
		wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = room.addr;
		wr.wr.rdma.rkey = x->mr->rkey;
	}
	if (recv)
		sim_check(x->s, softhca_post_recv(x->qp, &rwr, &rbad) == 0, "post_recv");
	sim_check(x->s, softhca_post_send(x->qp, &wr, &bad) == 0, "post_send");
	return recv ? 2 : 1;
}

static void
self_one(struct self *x, uint32_t opcode, uint32_t len)
{
	bool in = opcode == SOFTHCA_WR_RDMA_READ || opcode >= SOFTHCA_WR_ATOMIC_CMP_AND_SWP;
	const uint8_t *from = x->mem + (in ? SELF_BYTES / 4 : 0);
	const uint8_t *to = x->mem + (in ? 0 : SELF_BYTES / 4);
	uint8_t want[SELF_BYTES / 4];
	unsigned int due, got = 0;
	struct softhca_wc wc;

	for (uint32_t i = 0; i < SELF_BYTES; i++)
		x->mem[i] = (uint8_t)sim_random(&sim_model(x->s)->rng);
	memcpy(want, from, len);
	due = self_post(x, opcode, len);
	sim_settle(x->s);
	for (; softhca_poll_cq(x->cq, 1, &wc) == 1; got++)
		sim_check(x->s, wc.status == SOFTHCA_WC_SUCCESS && wc.qp_num == x->qp->qp_num,
			  "op %u: %s, QP %#x", opcode, softhca_wc_status_str(wc.status), wc.qp_num);
	sim_check(x->s, got == due, "op %u: %u completions of %u", opcode, got, due);
	sim_check(x->s, memcmp(to, want, len) == 0, "op %u: wrong bytes", opcode);
}

static void
itself_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (unsigned int gid = 0; gid < SIM_GIDS; gid++) {
		struct self x;

		self_open(&x, s, gid, SELF_BYTES);
		for (uint32_t op = 0; op <= SOFTHCA_WR_ATOMIC_FETCH_AND_ADD; op++) {
			bool atomic = op >= SOFTHCA_WR_ATOMIC_CMP_AND_SWP;

			self_one(&x, op, 8);
			self_one(&x, op, atomic ? 8 : 5000);
		}
		self_close(&x);
	}
	sim_check(s, on_the_wire(s) == 0, "frames on the wire");
	sim_check(s, sim_counter(s, 0, "retransmissions") == 0, "retransmissions");
	sim_close(s);
}
SIM_TEST(itself)

/* --- the ring is full -------------------- */

/* Run all stages of side 0 except the one that empties the ring. */
static void
run_without_decap(struct sim *s)
{
	struct hca *h = s->side[0].hca;
	unsigned int off = hca_stage_count();

	for (unsigned int i = 0; i < hca_stage_count(); i++)
		if (strcmp(hca_stage_name(i), "decap") == 0)
			off = hca_stage_on(h, 0, i);
	sim_check(s, off < hca_workers(h), "no stage decap");
	for (unsigned int k = 0; k < 2000; k++) {
		s->now += s->cfg.tick_ns;
		for (unsigned int w = 0; w < hca_workers(h); w++)
			if (w != off)
				hca_poll(h, w, s->now);
	}
}

static void
full_ring_in(const struct sim_config *cfg)
{
	const struct sim_tagged_attr a = {.loop = true,
					  .flows = 32,
					  .max_len = 8000,
					  .mtu = SOFTHCA_MTU_256};
	struct sim_config c = *cfg;
	struct sim_tagged *t;
	struct sim *s;

	/* if one worker runs both, or at random, the ring is emptied in time */
	if (cfg->layout == HCA_LAYOUT_RTC || cfg->executor == SIM_STEPPED)
		return;
	c.mbufs = 4096;
	s = sim_open(&c);
	t = sim_tagged_open(s, &a);
	t->lossless = true;
	for (uint32_t i = 0; i < 256; i++)
		sim_tagged_send(t, 0, i % a.flows);
	run_without_decap(s);
	sim_check(s, sim_counter(s, 0, "sent_pkts") >= 200, "the ring was never full");
	sim_tagged_finish(t);
	sim_check(s, sim_counter(s, 0, "loopback_drops") == 0, "lost");
	sim_check(s, sim_counter(s, 0, "loopback_pkts") == sim_counter(s, 0, "sent_pkts"),
		  "some frames are not counted");
	sim_tagged_close(t);
	sim_close(s);
}
SIM_TEST(full_ring)

/* --- many long messages at once -------------------- */

#define MANY_QPS 6u
#define MANY_BYTES (4u * 65536u)
#define MANY_DEPTH 5u

/* Requests and responses fill the ring: they must not deadlock. */
static void
long_messages_in(const struct sim_config *cfg)
{
	static const uint32_t ops[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_RDMA_READ, SOFTHCA_WR_SEND,
				       SOFTHCA_WR_ATOMIC_FETCH_AND_ADD};
	unsigned int due = 0, got = 0;
	struct sim_config c = *cfg;
	struct self x[MANY_QPS];
	struct softhca_wc wc;
	struct sim *s;

	c.edge_size = 4;
	s = sim_open(&c);
	for (unsigned int q = 0; q < MANY_QPS; q++)
		self_open(&x[q], s, q % SIM_GIDS, MANY_BYTES);
	for (unsigned int i = 0; i < MANY_DEPTH * MANY_QPS; i++) {
		uint32_t op = ops[(i + i / MANY_QPS) % RTE_DIM(ops)];

		due += self_post(&x[i % MANY_QPS], op,
				 op == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD ? 8 : MANY_BYTES / 4);
	}
	sim_settle(s);
	for (unsigned int q = 0; q < MANY_QPS; q++)
		for (; softhca_poll_cq(x[q].cq, 1, &wc) == 1; got++)
			sim_check(s, wc.status == SOFTHCA_WC_SUCCESS, "QP %u: %s", q,
				  softhca_wc_status_str(wc.status));
	sim_check(s, got == due, "%u completions of %u", got, due);
	sim_check(s, sim_counter(s, 0, "loopback_drops") == 0, "lost");
	sim_check(s, sim_counter(s, 0, "retransmissions") == 0, "retransmissions");
	for (unsigned int q = 0; q < MANY_QPS; q++)
		self_close(&x[q]);
	sim_close(s);
}
SIM_TEST(long_messages)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_leaves),  cmocka_unit_test(without_a_link),
		cmocka_unit_test(beside_the_wire), cmocka_unit_test(starved),
		cmocka_unit_test(itself),	   cmocka_unit_test(full_ring),
		cmocka_unit_test(long_messages),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
