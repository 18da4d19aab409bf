/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Invalid packets, requests, doorbells, mailboxes and transitions: each causes the specified error
 * or a counted drop, nothing else changes, and other QPs lose nothing.
 */

#include <stdio.h>

#include <rte_mbuf.h>

#include "abi_bar.h"
#include "abi_cmd.h"
#include "engine/pkt.h"
#include "lib_doorbell.h"
#include "sim_link.h"
#include "sim_test.h"
#include "roce_craft.h"

#define PROGRAM "test_badinput"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct rig {
	struct sim *s;
	struct sim_pair *victim, *bystander;
	struct rte_mempool *pool;
	struct hca_udp_template tmpl; /* headers of frames from side 0 to the victim of side 1 */
	const struct hca_icrc_ops *icrc;
	struct sim_rng rng;
};

static void
make_template(struct rig *r)
{
	struct hca_roce_path path = {
		.udp.dmac = {2, 0, 0, 0, 0, 2},
		.udp.smac = {2, 0, 0, 0, 0, 1},
		.udp.ip_version = 4,
		.udp.hop_limit = 64,
		.udp.sip = {[10] = 0xff, 0xff, 10, 77, 0, 1},
		.udp.dip = {[10] = 0xff, 0xff, 10, 77, 0, 2},
		.udp.sport = 0xc001,
		.pkey = 0xffff,
		.qpn = r->victim->qp[1]->qp_num,
		.migreq = true,
	};

	sim_check(r->s, hca_roce_template_fill(&path, &r->tmpl) == 0, "template");
}

static void
rig_open(struct rig *r, const struct sim_config *cfg)
{
	static unsigned int serial;
	char name[32];

	*r = (struct rig){.s = sim_open(cfg), .icrc = hca_icrc_select(), .rng.s = cfg->seed};
	r->victim = sim_pair_open(r->s, NULL);
	r->bystander = sim_pair_open(r->s, NULL);
	snprintf(name, sizeof(name), "bad%u", serial++);
	r->pool = rte_pktmbuf_pool_create(name, 512, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA, -1);
	sim_check(r->s, r->pool != NULL, "no pool");
	make_template(r);
}

static void
rig_close(struct rig *r)
{
	sim_finish(r->s, SIM_S);
	sim_settle(r->s);
	sim_check(r->s, rte_mempool_in_use_count(r->pool) == 0, "injected frames are lost");
	sim_pair_close(r->victim);
	sim_pair_close(r->bystander);
	sim_close(r->s);
	rte_mempool_free(r->pool);
}

static void
work(struct rig *r, struct sim_pair *p)
{
	for (unsigned int side = 0; side < 2; side++) {
		struct sim_req q[4];

		for (unsigned int i = 0; i < COUNT(q); i++)
			q[i] = sim_random_req(p, 5000);
		q[3].flags |= S;
		sim_post(p, side, q, COUNT(q));
	}
	sim_poll(r->s);
	sim_reap(r->s);
}

/* Inject a frame to side 1 as if it came from side 0. */
static void
inject(struct rig *r, const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);

	sim_check(r->s, m != NULL, "injected frames are not freed");
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	if (!sim_link_inject(r->s->side[1].wire, m))
		rte_pktmbuf_free(m);
}

static uint32_t
build(struct rig *r, uint8_t *frame, uint8_t opcode, uint32_t psn, uint32_t payload)
{
	struct roce_packet p = {.opcode = opcode, .psn = psn & 0xffffff, .ackreq = true};
	struct roce_headers h = {
		.reth = {.va = r->victim->region[1].va + 4096,
			 .rkey = r->victim->region[1].mr->rkey,
			 .len = payload},
		.atomic = {.va = r->victim->region[1].va, .rkey = r->victim->region[1].mr->rkey},
	};
	uint8_t data[4096];
	int n;

	memset(data, 0xee, sizeof(data));
	if (!hca_roce_opcodes[opcode].has_payload)
		p.payload_len = 0;
	else
		p.payload_len = payload;
	n = roce_build(r->icrc, &r->tmpl, &p, &h, data, frame, 4500);
	sim_check(r->s, n > 0, "build %#x: %d", opcode, n);
	return (uint32_t)n;
}

/* A valid frame with another source, with a wrong ICRC, or cut anywhere. */
static void
damaged_in(const struct sim_config *cfg)
{
	uint8_t frame[4608], bad[4608];
	struct rig r;

	rig_open(&r, cfg);
	for (unsigned int i = 0; i < 256; i++) {
		uint32_t n;

		if (!hca_roce_opcodes[i].valid || i > 0x1f)
			continue;
		/* the victim expects PSN 0: this would be executed if it were accepted */
		n = build(&r, frame, (uint8_t)i, 0, 64);
		for (uint32_t len = 0; len < n; len += 1 + sim_below(&r.rng, 3)) {
			inject(&r, frame, len);
			work(&r, r.bystander);
		}
		for (unsigned int k = 0; k < 50; k++) {
			uint32_t at = HCA_ETH_LEN + sim_below(&r.rng, n - HCA_ETH_LEN);

			/* the ICRC does not cover fields that routers may change: no error */
			if (at == 15 || at == 22 || at == 24 || at == 25 || at == 40 || at == 41 ||
			    at == 46)
				continue;
			memcpy(bad, frame, n);
			bad[at] ^= (uint8_t)(1 + sim_below(&r.rng, 255));
			inject(&r, bad, n);
			work(&r, r.bystander);
		}
	}
	sim_settle(r.s);
	sim_check(r.s,
		  sim_counter(r.s, 1, "rx_icrc_encapsulated") > 100 &&
			  sim_counter(r.s, 1, "rx_bad_length") + sim_counter(r.s, 1, "rx_short") >
				  100,
		  "the drops are not counted");
	sim_reap(r.s);
	/* each counted under one name */
	sim_check(r.s, sim_packets_dropped(r.s, 1) == sim_link_injected(r.s->side[1].wire),
		  "%llu dropped, not %llu", (unsigned long long)sim_packets_dropped(r.s, 1),
		  (unsigned long long)sim_link_injected(r.s->side[1].wire));
	/* the victim is unaffected */
	for (unsigned int k = 0; k < 10; k++)
		work(&r, r.victim);
	rig_close(&r);
}
SIM_TEST(damaged)

static void
noise_in(const struct sim_config *cfg)
{
	uint8_t frame[4608];
	struct rig r;

	rig_open(&r, cfg);
	for (unsigned int i = 0; i < 3000; i++) {
		uint32_t n = sim_below(&r.rng, 200), from = 0;

		if (i % 3 != 0)
			n = build(&r, frame, HCA_BTH_RC_WRITE_ONLY, i, 32);
		/* random; valid up to the UDP header; valid up to the BTH */
		if (i % 3 == 1)
			from = HCA_ETH_LEN + HCA_IPV4_LEN + HCA_UDP_LEN;
		else if (i % 3 == 2)
			from = HCA_ETH_LEN + HCA_IPV4_LEN + HCA_UDP_LEN + HCA_ROCE_BTH_LEN;
		for (uint32_t k = from; k < n; k++)
			frame[k] = (uint8_t)sim_random(&r.rng);
		inject(&r, frame, n);
		work(&r, i % 2 ? r.bystander : r.victim);
	}
	rig_close(&r);
}
SIM_TEST(noise)

/* Frames with a correct ICRC that are not from the peer or not for this QP. */
static void
strangers_in(const struct sim_config *cfg)
{
	struct rig r;
	uint8_t frame[4608];

	rig_open(&r, cfg);
	for (unsigned int kind = 0; kind < 5; kind++) {
		static const char *const counters[] = {"rx_bad_source", "rx_unknown_qpn",
						       "rx_unknown_qpn", "rx_bad_pkey",
						       "out_of_seq_request"};
		uint64_t before = sim_counter(r.s, 1, counters[kind]);
		uint64_t dropped = sim_packets_dropped(r.s, 1);
		struct hca_udp_template keep = r.tmpl;
		struct hca_roce_path path = {
			.udp.ip_version = 4,
			.udp.hop_limit = 64,
			.udp.sport = 0xc001,
			.migreq = true,
			.udp.sip = {[10] = 0xff, 0xff, 10, 77, 0, kind == 0 ? 9 : 1},
			.udp.dip = {[10] = 0xff, 0xff, 10, 77, 0, 2},
			.pkey = kind == 3 ? 0x1234 : 0xffff,
			.qpn = r.victim->qp[1]->qp_num ^ (kind == 1 ? 0x800000 : 0) ^
			       (kind == 2 ? 0x000080 : 0),
		};

		sim_check(r.s, hca_roce_template_fill(&path, &r.tmpl) == 0, "template");
		for (unsigned int i = 0; i < 20; i++) {
			uint32_t n = build(&r, frame, HCA_BTH_RC_WRITE_ONLY,
					   kind == 4 ? 5000 + i : i, 64);

			inject(&r, frame, n);
			work(&r, r.bystander);
		}
		r.tmpl = keep;
		sim_settle(r.s);
		sim_check(r.s, sim_counter(r.s, 1, counters[kind]) > before, "no %s",
			  counters[kind]);
		/* the QP has accepted those that are only out of sequence */
		sim_check(r.s, sim_packets_dropped(r.s, 1) - dropped == (kind == 4 ? 0 : 20),
			  "%s: not each under one name", counters[kind]);
		for (unsigned int k = 0; k < 3; k++)
			work(&r, r.victim);
		sim_finish(r.s, SIM_S);
	}
	rig_close(&r);
}
SIM_TEST(strangers)

/* --- doorbells -------------------- */

static void
ring(struct rig *r, uint64_t word)
{
	struct lib_context *ctx = lib_ctx(r->s->side[0].ctx);
	struct lib_uar *uar = lib_uar_of(ctx, HCA_DB_QPN(word));
	uint32_t number = 0;

	sim_check(r->s, lib_doorbell_take(ctx, uar, &number) == 0, "no slot");
	lib_doorbell_fill(uar, number, word);
	sim_settle(r->s);
}

static void
doorbells_in(const struct sim_config *cfg)
{
	struct softhca_context *other;
	struct softhca_cq_init_attr ca = {.cqe = 16};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = SOFTHCA_QPT_RC};
	struct softhca_qp *foreign, *fresh;
	struct softhca_pd *pd;
	struct softhca_cq *own;
	struct rig r;
	uint32_t qpn;

	rig_open(&r, cfg);
	other = sim_client(r.s, 0);
	qa.send_cq = qa.recv_cq = softhca_create_cq(other, &ca);
	pd = softhca_alloc_pd(other);
	sim_check(r.s, pd != NULL, "alloc_pd");
	foreign = softhca_create_qp(pd, &qa);
	own = softhca_create_cq(r.s->side[0].ctx, &ca);
	qa.send_cq = qa.recv_cq = own;
	fresh = softhca_create_qp(r.s->side[0].pd, &qa);
	sim_check(r.s, foreign != NULL && fresh != NULL, "create_qp");
	for (unsigned int i = 0; i < 2; i++) {
		struct softhca_qp_attr a = {.qp_state = SOFTHCA_QPS_INIT, .port_num = 1};

		sim_check(r.s,
			  softhca_modify_qp(i ? fresh : foreign, &a,
					    SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX |
						    SOFTHCA_QP_PORT | SOFTHCA_QP_ACCESS_FLAGS) == 0,
			  "to INIT");
	}
	qpn = r.victim->qp[0]->qp_num;
	const struct {
		const char *counter;
		uint64_t word;
	} bells[] = {
		{"db_foreign_qpn", HCA_DB_MAKE(0, 0, HCA_OP_RDMA_WRITE, foreign->qp_num, 3)},
		{"db_dead_qpn", HCA_DB_MAKE(0, 0, HCA_OP_RDMA_WRITE, qpn ^ 0x400000, 3)},
		{"db_dead_qpn", HCA_DB_MAKE(0, 0, HCA_OP_RDMA_WRITE, 0, 3)},
		{"db_bad_state", HCA_DB_MAKE(0, 0, HCA_OP_RDMA_WRITE, fresh->qp_num, 3)},
		{"db_bad_opcode", HCA_DB_MAKE(0, 0, 0x1e, qpn, 3)},
		{"db_bad_index", HCA_DB_MAKE(64, 0, HCA_OP_RDMA_WRITE, qpn, 3)},
	};

	for (unsigned int i = 0; i < COUNT(bells); i++) {
		uint64_t before = sim_counter(r.s, 0, bells[i].counter);

		ring(&r, bells[i].word);
		sim_check(r.s, sim_counter(r.s, 0, bells[i].counter) == before + 1,
			  "bell %u is not counted as %s", i, bells[i].counter);
		work(&r, r.victim);
		work(&r, r.bystander);
		sim_finish(r.s, SIM_S);
	}
	sim_check(r.s, softhca_destroy_qp(fresh) == 0 && softhca_destroy_cq(own) == 0, "destroy");
	sim_check(r.s, softhca_destroy_qp(foreign) == 0 && softhca_dealloc_pd(pd) == 0, "destroy");
	softhca_close(other);
	rig_close(&r);
}
SIM_TEST(doorbells)

/* --- requests -------------------- */

/* Addresses and lengths at every edge of the region, and inconsistent WQEs. */
static void
bad_wqes_in(const struct sim_config *cfg)
{
	struct rig r;
	const struct sim_region *m;

	rig_open(&r, cfg);
	m = &r.victim->region[0];
	const struct {
		uint64_t addr;
		uint32_t length;
	} sges[] = {
		{m->va - 1, 1},
		{m->va - 1, 2},
		{m->va + m->len, 1},
		{m->va + m->len - 1, 2},
		{UINT64_MAX, 1},
		{UINT64_MAX - 99, 200},
		{0, 1},
		{m->va, 0x7fffffff},
		{m->va + m->len - 100, 5000},
		{1ull << 63, 0x7fffffff},
	};

	for (unsigned int i = 0; i < COUNT(sges); i++) {
		struct softhca_sge sge = {.addr = sges[i].addr,
					  .length = sges[i].length,
					  .lkey = m->mr->lkey};
		struct softhca_send_wr wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = SOFTHCA_WR_RDMA_WRITE,
			.send_flags = S,
			.wr.rdma = {.remote_addr = r.victim->region[1].va,
				    .rkey = r.victim->region[1].mr->rkey},
		};
		const struct sim_req good = {.opcode = SOFTHCA_WR_RDMA_READ, .len = 50, .flags = S};
		uint64_t id;

		sim_check(r.s, sim_post(r.victim, 0, &good, 1) == 0, "post");
		id = sim_post_wr(r.victim, 0, &wr, SOFTHCA_WC_LOC_PROT_ERR);
		/* the peer may refuse a message longer than its region first */
		sim_check(r.s, sim_post(r.victim, 0, &good, 1) == 0, "post");
		if (sges[i].length == 0x7fffffff && sges[i].addr == m->va)
			r.victim->sq[0].head->next->status = SOFTHCA_WC_REM_ACCESS_ERR;
		sim_expect_sq_error(r.victim, 0, id, r.victim->sq[0].head->next->status, false);
		work(&r, r.bystander);
		sim_check(r.s, sim_drain(r.s, 10 * SIM_S), "SGE %u: not finished", i);
		sim_pair_reset(r.victim);
	}
	rig_close(&r);
}
SIM_TEST(bad_wqes)

/* A WQE changed after the library has written it, between valid ones. */
static void
scrambled_in(const struct sim_config *cfg)
{
	struct rig r;

	rig_open(&r, cfg);
	for (unsigned int kind = 0; kind < 3; kind++) {
		struct lib_qp *q = (struct lib_qp *)r.victim->qp[0];
		const struct sim_req req[] = {
			{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 50, .flags = S},
			{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 60, .flags = 0},
			{.opcode = SOFTHCA_WR_RDMA_READ, .len = 70, .flags = S},
		};
		struct hca_next_unit *first = (void *)q->sq.buf;
		uint64_t id = r.victim->next_id + 1;

		sim_check(r.s, sim_post(r.victim, 0, req, COUNT(req)) == 0, "post");
		/* the first WQE describes the second: with an invalid opcode or size */
		if (kind == 0)
			first->nda_nop = (first->nda_nop & ~0x1fu) | 0x1d;
		else if (kind == 1)
			first->nee_nds = (first->nee_nds & ~0x3fu) | 1;
		else
			first->nee_nds = (first->nee_nds & ~0x3fu) | 0x3f;
		sim_expect_sq_error(r.victim, 0, id, SOFTHCA_WC_LOC_QP_OP_ERR, false);
		work(&r, r.bystander);
		sim_check(r.s, sim_drain(r.s, 10 * SIM_S), "kind %u: not finished", kind);
		sim_pair_reset(r.victim);
	}
	rig_close(&r);
}
SIM_TEST(scrambled)

/* --- commands -------------------- */

/* A mailbox outside the driver's memory, while other QPs work. */
static void
mailboxes_in(const struct sim_config *cfg)
{
	static const uint16_t ops[] = {HCA_CMD_SW2HW_MPT,     HCA_CMD_SW2HW_CQ, HCA_CMD_WRITE_MTT,
				       HCA_CMD_RST2INIT_QPEE, HCA_CMD_QUERY_QP, HCA_CMD_MAP_ICM};
	static const uint64_t where[] = {0,	    8, 0x1000, 0x7ffffffff000ull, UINT64_MAX - 4095,
					 1ull << 63};
	static uint8_t local[8192] __attribute__((aligned(4096)));
	struct rig r;

	rig_open(&r, cfg);
	for (unsigned int i = 0; i < COUNT(ops) * (COUNT(where) + 1); i++) {
		uint64_t at =
			i / COUNT(ops) < COUNT(where) ? where[i / COUNT(ops)] : (uintptr_t)local;
		volatile struct hca_hcr *hcr =
			(void *)((uint8_t *)(uintptr_t)hca_bar0(r.s->side[0].hca) + HCA_BAR0_HCR);
		uint32_t ctrl = HCA_HCR_MAKE_CTRL(0, 0, ops[i % COUNT(ops)]);

		hcr->in_param_hi = hca_cpu_to_le32((uint32_t)(at >> 32));
		hcr->in_param_lo = hca_cpu_to_le32((uint32_t)at);
		hcr->out_param_hi = hcr->in_param_hi;
		hcr->out_param_lo = hcr->in_param_lo;
		hcr->in_modifier = hca_cpu_to_le32(1);
		__atomic_store_n(&hcr->ctrl, hca_cpu_to_le32(ctrl), __ATOMIC_RELEASE);
		for (unsigned int k = 0; k < 1000; k++) {
			work(&r, r.bystander);
			work(&r, r.victim);
			ctrl = hca_le32_to_cpu(__atomic_load_n(&hcr->ctrl, __ATOMIC_ACQUIRE));
			if ((ctrl & HCA_HCR_GO) == 0)
				break;
		}
		sim_check(r.s, (ctrl & HCA_HCR_GO) == 0 && HCA_HCR_STATUS(ctrl) != 0,
			  "command %#x with a mailbox at %#llx: %#x", ops[i % COUNT(ops)],
			  (unsigned long long)at, ctrl);
	}
	sim_finish(r.s, 10 * SIM_S);
	rig_close(&r);
}
SIM_TEST(mailboxes)

/* Every transition that is not in the table: refused, and the QP is unchanged. */
static void
transitions_in(const struct sim_config *cfg)
{
	static const struct {
		uint32_t from, to;
	} bad[] = {
		{SOFTHCA_QPS_RESET, SOFTHCA_QPS_RTR}, {SOFTHCA_QPS_RESET, SOFTHCA_QPS_RTS},
		{SOFTHCA_QPS_RESET, SOFTHCA_QPS_SQD}, {SOFTHCA_QPS_RTS, SOFTHCA_QPS_INIT},
		{SOFTHCA_QPS_RTS, SOFTHCA_QPS_RTR},   {SOFTHCA_QPS_RTS, SOFTHCA_QPS_SQE},
		{SOFTHCA_QPS_ERR, SOFTHCA_QPS_INIT},  {SOFTHCA_QPS_ERR, SOFTHCA_QPS_RTS},
	};
	struct rig r;

	rig_open(&r, cfg);
	for (unsigned int i = 0; i < COUNT(bad); i++) {
		struct softhca_qp *qp = r.victim->qp[0];
		struct softhca_qp_attr a = {.qp_state = bad[i].from}, q;

		if (bad[i].from != SOFTHCA_QPS_RTS)
			sim_check(r.s, softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE) == 0, "modify");
		a = (struct softhca_qp_attr){.qp_state = bad[i].to, .port_num = 1, .path_mtu = 3};
		sim_check(r.s, softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE) == -EINVAL,
			  "%s to %s is not refused", softhca_qp_state_str(bad[i].from),
			  softhca_qp_state_str(bad[i].to));
		work(&r, r.bystander);
		sim_check(r.s,
			  softhca_query_qp(qp, &q, SOFTHCA_QP_STATE, NULL) == 0 &&
				  q.qp_state == bad[i].from,
			  "%s became %s", softhca_qp_state_str(bad[i].from),
			  softhca_qp_state_str(q.qp_state));
		if (bad[i].from != SOFTHCA_QPS_RTS)
			sim_pair_reset(r.victim);
		else
			work(&r, r.victim);
		sim_finish(r.s, SIM_S);
	}
	rig_close(&r);
}
SIM_TEST(transitions)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged),   cmocka_unit_test(noise),
		cmocka_unit_test(strangers), cmocka_unit_test(doorbells),
		cmocka_unit_test(bad_wqes),  cmocka_unit_test(scrambled),
		cmocka_unit_test(mailboxes), cmocka_unit_test(transitions),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
