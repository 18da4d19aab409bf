/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packets of an attacker with knowledge of the protocol that is not the peer, or of a hostile peer.
 * Only a packet that passes the checks of source, P_Key, PSN and ICRC may change a QP, and only
 * that QP.
 */

#include <stdio.h>
#include <unistd.h>

#include "sim_test.h"
#include "sim_victim.h"

#define PROGRAM "test_attacks"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const enum sim_gid gids[] = {SIM_GID_V4, SIM_GID_V6, SIM_GID_V4_VLAN, SIM_GID_V6_VLAN};

static void
work(struct sim *s, struct sim_pair *p)
{
	for (unsigned int side = 0; side < 2; side++) {
		struct sim_req q[3];

		for (unsigned int i = 0; i < COUNT(q); i++)
			q[i] = sim_random_req(p, 3000);
		q[2].flags |= S;
		sim_post(p, side, q, COUNT(q));
	}
	sim_poll(s);
	sim_reap(s);
}

static uint8_t
transport_of(enum sim_victim_kind kind)
{
	static const uint8_t t[SIM_VICTIM_KINDS] = {
		[SIM_VICTIM_RC] = HCA_TRANSPORT_RC,	  [SIM_VICTIM_UC] = HCA_TRANSPORT_UC,
		[SIM_VICTIM_UD] = HCA_TRANSPORT_UD,	  [SIM_VICTIM_XRC_INI] = HCA_TRANSPORT_XRC,
		[SIM_VICTIM_XRC_TGT] = HCA_TRANSPORT_XRC,
	};

	return t[kind];
}

static bool
is_connected_responder(enum sim_victim_kind kind)
{
	return kind == SIM_VICTIM_RC || kind == SIM_VICTIM_UC || kind == SIM_VICTIM_XRC_TGT;
}

static bool
hears_requests(uint32_t state)
{
	return state >= SOFTHCA_QPS_RTR && state <= SOFTHCA_QPS_SQE;
}

/*
 * Inject a complete WRITE of 64 bytes at offset `at` of the region, or a request that this kind of
 * QP accepts.
 */
static void
good_write(struct sim_injector *x, struct sim_victim *v, const struct hca_roce_path *path,
	   uint32_t psn, uint32_t at)
{
	const struct roce_headers h = {
		.reth = {.va = (uintptr_t)v->mem + at, .rkey = v->mr->rkey, .len = 64},
		.xrceth = v->srqn,
	};
	uint8_t op = (uint8_t)(transport_of(v->kind) << 5 | (HCA_BTH_RC_WRITE_ONLY & 0x1f));

	sim_inject_whole(x, path, op, psn, true, &h, 64);
}

static bool
was_written(const struct sim_victim *v, uint32_t at)
{
	for (uint32_t i = 0; i < 64; i++)
		if (v->mem[at + i] != 0xe7)
			return false;
	return true;
}

/* The QP is unaffected: it still accepts the expected packet. */
static void
check_alive(struct sim_injector *x, struct sim_victim *v)
{
	if (!is_connected_responder(v->kind))
		return;
	good_write(x, v, &v->path, SIM_VICTIM_PSN, 8192);
	sim_settle(v->s);
	sim_check(v->s, was_written(v, 8192), "%s over %s does not go on",
		  sim_victim_names[v->kind], sim_gid_names[v->gid]);
}

/* --- every opcode -------------------- */

/* A PSN other than the expected one: far ahead or far behind. */
static uint32_t
other_psn(struct sim_rng *r)
{
	uint32_t off = 1 + sim_below(r, 0x3fffff);

	return (SIM_VICTIM_PSN + (sim_below(r, 2) ? off + 4096 : 0x1000000 - off - 4096)) &
	       0xffffff;
}

static void
shower(struct sim_injector *x, struct sim_victim *v, struct sim_rng *r, uint32_t lengths)
{
	for (uint32_t i = 0; i < 256 * 4; i++) {
		uint32_t headers = hca_roce_opcodes[i & 0xff].header_len;

		headers = headers > HCA_ROCE_BTH_LEN ? headers - HCA_ROCE_BTH_LEN : 0;
		for (uint32_t k = 0; k < lengths; k++) {
			const struct sim_packet p = {
				.opcode = (uint8_t)i,
				.pad = (uint8_t)(i >> 8),
				.ackreq = sim_below(r, 2),
				.se = sim_below(r, 2),
				.psn = other_psn(r),
				/* all lengths up to slightly too long */
				.len = sim_below(r, headers + 12),
			};

			sim_inject_packet(x, &v->path, &p);
		}
	}
	for (uint32_t cut = 1; cut <= HCA_ROCE_BTH_LEN; cut++) {
		const struct sim_packet p = {.opcode = HCA_BTH_RC_WRITE_ONLY, .cut = cut};

		sim_inject_packet(x, &v->path, &p);
	}
}

static void
one_state(struct sim_injector *x, struct sim_victim *v, struct sim_rng *r, uint32_t state,
	  uint32_t lengths)
{
	if (!sim_victim_to(v, state))
		return;
	shower(x, v, r, lengths);
	sim_settle(v->s);
	/* UC begins a message at any PSN and uses its receives */
	sim_victim_check(v, v->kind != SIM_VICTIM_UC);
	sim_check(v->s, sim_victim_state(v) == state, "%s over %s: %s became %s",
		  sim_victim_names[v->kind], sim_gid_names[v->gid], softhca_qp_state_str(state),
		  softhca_qp_state_str(sim_victim_state(v)));
	sim_check(v->s,
		  v->kind == SIM_VICTIM_UC || sim_victim_completions(v) == 0 ||
			  state >= SOFTHCA_QPS_SQE,
		  "%s in %s: completions", sim_victim_names[v->kind], softhca_qp_state_str(state));
	if (hears_requests(state))
		check_alive(x, v);
	sim_victim_completions(v);
}

/* SIM_LENGTHS: number of lengths per opcode and pad. */
static void
opcodes_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_rng r = {cfg->seed * 5};
	struct sim_pair *bystander = sim_pair_open(s, NULL);
	uint32_t lengths = (uint32_t)sim_env("SIM_LENGTHS", 1);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < COUNT(gids) * SIM_VICTIM_KINDS; i++) {
		struct sim_victim v;

		sim_victim_open(s, &v, i % SIM_VICTIM_KINDS, gids[i / SIM_VICTIM_KINDS]);
		for (uint32_t state = 0; state <= SOFTHCA_QPS_ERR; state++) {
			work(s, bystander);
			one_state(&x, &v, &r, state, lengths);
		}
		sim_victim_close(&v);
		sim_finish(s, SIM_S);
	}
	sim_injector_close(&x);
	sim_pair_close(bystander);
	sim_close(s);
}
SIM_TEST(opcodes)

/* The expected PSN, and every opcode with random headers. */
static void
one_in_place(struct sim_injector *x, struct sim_victim *v, struct sim_rng *r, uint8_t opcode)
{
	const struct hca_roce_opcode_info *op = &hca_roce_opcodes[opcode];
	uint32_t headers = op->valid ? op->header_len - HCA_ROCE_BTH_LEN : 0;
	uint8_t tail[256], pad = (uint8_t)sim_below(r, 4);
	struct sim_packet p = {.opcode = opcode,
			       .pad = pad,
			       .psn = SIM_VICTIM_PSN,
			       .tail = tail,
			       .len = headers + 4 * sim_below(r, 9)};
	uint32_t state;

	for (uint32_t i = 0; i < sizeof(tail); i++)
		tail[i] = sim_below(r, 3) ? (uint8_t)sim_random(r) : 0;
	/* valid keys without the right: the first four bytes after an address */
	if (op->valid && (op->ext & (HCA_EXT_RETH | HCA_EXT_ATOMICETH)) != 0 && sim_below(r, 2)) {
		uint32_t at = op->ext & HCA_EXT_RETH ? op->at.reth : op->at.atomiceth;
		hca_be64 va = hca_cpu_to_be64((uintptr_t)v->block);
		hca_be32 key = hca_cpu_to_be32(v->dark->rkey);

		memcpy(tail + at - HCA_ROCE_BTH_LEN, &va, 8);
		memcpy(tail + at - HCA_ROCE_BTH_LEN + 8, &key, 4);
	}
	sim_inject_packet(x, &v->path, &p);
	sim_settle(v->s);
	sim_victim_check(v, false);
	state = sim_victim_state(v);
	if (HCA_BTH_TRANSPORT(opcode) != transport_of(v->kind) || op->is_response ||
	    v->kind == SIM_VICTIM_UD || v->kind == SIM_VICTIM_XRC_INI)
		sim_check(v->s, state == SOFTHCA_QPS_RTS, "%s: opcode %#x moved it to %s",
			  sim_victim_names[v->kind], opcode, softhca_qp_state_str(state));
	if (state != SOFTHCA_QPS_RTS)
		sim_check(v->s, sim_victim_to(v, SOFTHCA_QPS_RTS), "to RTS");
	sim_victim_completions(v);
}

static void
opcodes_in_place_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_rng r = {cfg->seed * 9};
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int kind = 0; kind < SIM_VICTIM_KINDS; kind++) {
		struct sim_victim v;

		sim_victim_open(s, &v, kind, gids[sim_below(&r, COUNT(gids))]);
		for (unsigned int op = 0; op < 256; op++) {
			unsigned int times = op >> 5 == transport_of(kind) ? 4 : 1;

			sim_victim_to(&v, SOFTHCA_QPS_RTS);
			while (times-- > 0)
				one_in_place(&x, &v, &r, (uint8_t)op);
		}
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(opcodes_in_place)

/* --- packets of other hosts -------------------- */

/* X(name, counter, change of the path, change of the PSN) */
#define LIE_LIST(X) \
	X(ANOTHER_ADDRESS, "rx_bad_source", path.udp.sip[15] ^= 0x40, 0) \
	X(FOR_ANOTHER_HOST, "rx_bad_destination", path.udp.dip[15] ^= 0x40, 0) \
	X(ANOTHER_NETWORK, "rx_bad_source", path.udp.sip[13] ^= 1, 0) \
	X(ANOTHER_VLAN, "rx_bad_source", (path.udp.vlan = true, path.udp.vlan_tci ^= 2), 0) \
	X(TAGGED_OR_NOT, "rx_bad_source", \
	  (path.udp.vlan = !path.udp.vlan, path.udp.vlan_tci = path.udp.vlan ? 5 : 0), 0) \
	X(PKEY, "rx_bad_pkey", path.pkey = 0x8001, 0) \
	X(PKEY_ZERO, "rx_bad_pkey", path.pkey = 0, 0) \
	X(QPN_TAG, "rx_unknown_qpn", path.qpn ^= 0x800000, 0) \
	X(QPN_INDEX, "rx_unknown_qpn", path.qpn ^= 0x80, 0) \
	X(QPN_ZERO, "rx_unknown_qpn", path.qpn = 0, 0)

enum lie {
#define X(name, counter, change, psn) LIE_##name,
	LIE_LIST(X)
#undef X
	LIES
};

static const char *const lie_counters[LIES] = {
#define X(name, counter, change, psn) [LIE_##name] = counter,
	LIE_LIST(X)
#undef X
};

static struct hca_roce_path
lie(struct hca_roce_path path, enum lie what)
{
	switch (what) {
#define X(name, counter, change, psn) \
	case LIE_##name: \
		change; \
		break;
		LIE_LIST(X)
#undef X
	default:
		break;
	}
	return path;
}

/*
 * A correct WRITE from a wrong source: dropped and counted, and the QP still expects the same PSN.
 */
static void
strangers_in(const struct sim_config *cfg)
{
	static const uint32_t states[] = {SOFTHCA_QPS_RTR, SOFTHCA_QPS_RTS, SOFTHCA_QPS_SQD};
	struct sim *s = sim_open(cfg);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < COUNT(gids) * SIM_VICTIM_KINDS * COUNT(states); i++) {
		unsigned int kind = i % SIM_VICTIM_KINDS;
		struct sim_victim v;

		if (!is_connected_responder(kind))
			continue;
		sim_victim_open(s, &v, kind, gids[i / SIM_VICTIM_KINDS % COUNT(gids)]);
		if (sim_victim_to(&v, states[i / SIM_VICTIM_KINDS / COUNT(gids)])) {
			for (unsigned int l = 0; l < LIES; l++) {
				struct hca_roce_path path = lie(v.path, l);
				uint64_t before = sim_counter(s, 1, lie_counters[l]);

				good_write(&x, &v, &path, SIM_VICTIM_PSN, 0);
				sim_settle(s);
				sim_check(s, sim_counter(s, 1, lie_counters[l]) == before + 1,
					  "lie %u is not counted as %s", l, lie_counters[l]);
				sim_victim_check(&v, true);
			}
			check_alive(&x, &v);
		}
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(strangers)

/* A forged response to a READ: nothing completes, and the genuine one is still accepted. */
static void
false_answers_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < COUNT(gids) * 2; i++) {
		bool xrc = i & 1;
		uint8_t op = xrc ? HCA_BTH_XRC_READ_RESP_ONLY : HCA_BTH_RC_READ_RESP_ONLY;
		const struct roce_headers h = {.aeth = {.syndrome = 0x1f, .msn = 1}};
		struct softhca_send_wr wr = {.num_sge = 1,
					     .opcode = SOFTHCA_WR_RDMA_READ,
					     .send_flags = S,
					     .wr.rdma = {0x1000, 0x1234}},
				       *bad;
		struct softhca_sge sge = {.length = 64};
		struct sim_victim v;

		sim_victim_open(s, &v, xrc ? SIM_VICTIM_XRC_INI : SIM_VICTIM_RC, gids[i / 2]);
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		sge.addr = (uintptr_t)v.mem + 8192;
		sge.lkey = v.mr->lkey;
		wr.sg_list = &sge;
		sim_check(s, softhca_post_send(v.qp, &wr, &bad) == 0, "post_send");
		sim_run_for(s, 20000);
		for (unsigned int l = 0; l < LIES; l++) {
			struct hca_roce_path path = lie(v.path, l);

			sim_inject_whole(&x, &path, op, SIM_VICTIM_SQ_PSN, false, &h, 64);
			sim_run_for(s, 20000);
		}
		/* PSNs never sent, or answered long ago */
		for (unsigned int k = 1; k < 40; k += 3) {
			sim_inject_whole(&x, &v.path, op, SIM_VICTIM_SQ_PSN + k, false, &h, 64);
			sim_inject_whole(&x, &v.path, op, SIM_VICTIM_SQ_PSN - k, false, &h, 64);
		}
		sim_run_for(s, 1000000);
		sim_victim_check(&v, true);
		sim_check(s, sim_victim_completions(&v) == 0, "completed by a false answer");
		sim_inject_whole(&x, &v.path, op, SIM_VICTIM_SQ_PSN, false, &h, 64);
		sim_run_for(s, 1000000);
		sim_check(s, sim_victim_completions(&v) == 1 && was_written(&v, 8192),
			  "the right answer is not taken");
		sim_check(s, sim_victim_state(&v) == SOFTHCA_QPS_RTS, "not in RTS");
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(false_answers)

/* --- storms -------------------- */

/* Thousands of packets after a gap cause one NAK, and duplicates at most an ACK per burst. */
static void
nak_storm_in(const struct sim_config *cfg)
{
	static const enum sim_victim_kind kinds[] = {SIM_VICTIM_RC, SIM_VICTIM_XRC_TGT};
	struct sim *s = sim_open(cfg);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int k = 0; k < COUNT(kinds); k++) {
		uint64_t naks = sim_counter(s, 1, "seq_nak_sent"), sent;
		struct sim_victim v;

		sim_victim_open(s, &v, kinds[k], SIM_GID_V4);
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		sent = sim_counter(s, 1, "sent_pkts");
		for (unsigned int i = 1; i <= 3000; i++)
			good_write(&x, &v, &v.path, SIM_VICTIM_PSN + i, 0);
		sim_settle(s);
		sim_check(s, sim_counter(s, 1, "seq_nak_sent") == naks + 1, "%llu NAKs for one gap",
			  (unsigned long long)(sim_counter(s, 1, "seq_nak_sent") - naks));
		sim_check(s, sim_counter(s, 1, "sent_pkts") == sent + 1, "more than one answer");
		sim_victim_check(&v, true);
		check_alive(&x, &v);
		/* the gap is closed: the next one gets its own NAK */
		good_write(&x, &v, &v.path, SIM_VICTIM_PSN + 9, 0);
		sim_settle(s);
		sim_check(s, sim_counter(s, 1, "seq_nak_sent") == naks + 2, "no second NAK");
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(nak_storm)

/*
 * A packet of a PSN to come arrives with the last one that the peer has sent. The peer ignores the
 * NAK, so it must also get the ACK, or it waits for its timer.
 */
static void
future_psn_in(const struct sim_config *cfg)
{
	static const enum sim_victim_kind kinds[] = {SIM_VICTIM_RC, SIM_VICTIM_XRC_TGT};
	struct sim *s = sim_open(cfg);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < 2 * COUNT(kinds); i++) {
		uint64_t acks = sim_counter(s, 1, "acks_sent"), naks;
		bool first = i & 1; /* the forged one */
		struct sim_victim v;

		naks = sim_counter(s, 1, "seq_nak_sent");
		sim_victim_open(s, &v, kinds[i / 2], SIM_GID_V4);
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		if (first)
			good_write(&x, &v, &v.path, SIM_VICTIM_PSN + 40, 0);
		good_write(&x, &v, &v.path, SIM_VICTIM_PSN, 8192);
		if (!first)
			good_write(&x, &v, &v.path, SIM_VICTIM_PSN + 40, 0);
		sim_settle(s);
		sim_check(s, was_written(&v, 8192), "not written");
		sim_check(s, sim_counter(s, 1, "seq_nak_sent") == naks + 1, "no NAK");
		sim_check(s, sim_counter(s, 1, "acks_sent") == acks + 1, "no ACK");
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(future_psn)

/*
 * Copies of a READ that was answered, by any host that has seen it, each ask for the same data
 * again: while others work, they get about a packet of each loop.
 */
static void
replayed_read_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_pair *bystander = sim_pair_open(s, NULL);
	uint64_t repeated, loops;
	struct sim_injector x;
	struct sim_victim v;

	sim_injector_open(s, &x);
	sim_victim_open(s, &v, SIM_VICTIM_RC, SIM_GID_V4);
	sim_victim_to(&v, SOFTHCA_QPS_RTS);
	const struct roce_headers h = {
		.reth = {.va = (uintptr_t)v.mem, .rkey = v.mr->rkey, .len = SIM_VICTIM_BYTES}};

	sim_inject_whole(&x, &v.path, HCA_BTH_RC_READ_REQ, SIM_VICTIM_PSN, true, &h, 0);
	sim_settle(s);
	work(s, bystander);
	repeated = sim_counter(s, 1, "resp_repeated");
	loops = s->loops;
	for (unsigned int i = 0; i < 300; i++) {
		sim_inject_whole(&x, &v.path, HCA_BTH_RC_READ_REQ, SIM_VICTIM_PSN, true, &h, 0);
		if (i % 4 == 0)
			work(s, bystander);
		sim_poll(s);
	}
	repeated = sim_counter(s, 1, "resp_repeated") - repeated;
	loops = s->loops - loops;
	sim_check(s, repeated != 0, "copies are not answered");
	/* a bystander in another pipe has its own execution engine */
	if (s->threads == NULL && s->cfg.pipes == 1) {
		sim_check(s, sim_counter(s, 1, "resp_repeats_slowed") != 0, "nothing is slowed");
		sim_check(s, repeated <= 2 * loops, "%llu packets for copies in %llu loops",
			  (unsigned long long)repeated, (unsigned long long)loops);
	}
	sim_finish(s, SIM_S);
	sim_victim_close(&v);
	sim_injector_close(&x);
	sim_pair_close(bystander);
	sim_close(s);
}
SIM_TEST(replayed_read)

/* Packets of strangers are never answered. */
static void
no_answers_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_injector x;
	uint64_t sent;

	sim_injector_open(s, &x);
	sent = sim_counter(s, 1, "sent_pkts");
	for (unsigned int kind = 0; kind < SIM_VICTIM_KINDS; kind++) {
		struct sim_victim v;

		sim_victim_open(s, &v, kind, SIM_GID_V6);
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		for (unsigned int op = 0; op < 256; op++) {
			const struct sim_packet p = {.opcode = (uint8_t)op,
						     .psn = SIM_VICTIM_PSN,
						     .ackreq = true,
						     .len = 60};
			struct hca_roce_path path = lie(v.path, op % LIES);

			/* UD has no peer: the Q_Key is the only check */
			sim_inject_packet(&x, &path, &p);
		}
		sim_settle(s);
		sim_victim_check(&v, true);
		sim_victim_close(&v);
	}
	sim_check(s, sim_counter(s, 1, "sent_pkts") == sent, "strangers are answered");
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(no_answers)

/*
 * A flood of congestion notifications, from the peer and from strangers, to QPs in every state:
 * each is counted once, none is answered or changes anything, and other QPs keep working.
 */
static void
cnp_flood_in(const struct sim_config *cfg)
{
	const struct sim_packet cnp = {.opcode = HCA_BTH_CNP, .len = 16};
	struct sim *s = sim_open(cfg);
	struct sim_pair *bystander = sim_pair_open(s, NULL);
	struct sim_injector x;

	sim_injector_open(s, &x);
	for (unsigned int i = 0; i < COUNT(gids); i++) {
		uint64_t ignored = sim_counter(s, 1, "rp_cnp_ignored"), sent;
		uint64_t foreign = sim_counter(s, 1, "rx_bad_service");
		struct hca_roce_path stranger;
		struct sim_victim v;

		sim_victim_open(s, &v, SIM_VICTIM_RC, gids[i]);
		sim_victim_to(&v, SOFTHCA_QPS_RTS);
		sim_settle(s);
		sent = sim_counter(s, 1, "sent_pkts");
		stranger = lie(v.path, LIE_ANOTHER_ADDRESS);
		for (unsigned int n = 0; n < 600; n++)
			sim_inject_packet(&x, n % 2 ? &stranger : &v.path, &cnp);
		sim_settle(s);
		sim_check(s, sim_counter(s, 1, "rp_cnp_ignored") == ignored + 300,
			  "%llu of 300 are counted",
			  (unsigned long long)(sim_counter(s, 1, "rp_cnp_ignored") - ignored));
		sim_check(s, sim_counter(s, 1, "rx_bad_service") == foreign + 300,
			  "those of strangers are not counted");
		sim_check(s, sim_counter(s, 1, "sent_pkts") == sent, "they are answered");
		sim_victim_check(&v, true);
		check_alive(&x, &v);
		for (unsigned int n = 0; n < 100; n++) {
			sim_inject_packet(&x, &v.path, &cnp);
			if (n % 25 == 0)
				work(s, bystander);
		}
		sim_finish(s, SIM_S);
		sim_victim_close(&v);
	}
	sim_injector_close(&x);
	sim_pair_close(bystander);
	sim_close(s);
}
SIM_TEST(cnp_flood)

/* No packet makes the device write to the log. */
static void
silence_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	int keep = dup(STDERR_FILENO);
	FILE *log = tmpfile();
	struct sim_injector x;
	struct sim_victim v;
	struct sim_rng r = {cfg->seed};

	sim_injector_open(s, &x);
	sim_victim_open(s, &v, SIM_VICTIM_RC, SIM_GID_V4);
	sim_victim_to(&v, SOFTHCA_QPS_RTS);
	sim_check(s, keep >= 0 && log != NULL && dup2(fileno(log), STDERR_FILENO) >= 0, "dup");
	shower(&x, &v, &r, 1);
	for (unsigned int i = 0; i < 500; i++)
		one_in_place(&x, &v, &r, (uint8_t)sim_random(&r));
	sim_settle(s);
	fflush(stderr);
	dup2(keep, STDERR_FILENO);
	close(keep);
	fseek(log, 0, SEEK_END);
	sim_check(s, ftell(log) == 0, "%ld bytes were logged", ftell(log));
	fclose(log);
	sim_victim_close(&v);
	sim_injector_close(&x);
	sim_close(s);
}
SIM_TEST(silence)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opcodes),    cmocka_unit_test(opcodes_in_place),
		cmocka_unit_test(strangers),  cmocka_unit_test(false_answers),
		cmocka_unit_test(nak_storm),  cmocka_unit_test(no_answers),
		cmocka_unit_test(silence),    cmocka_unit_test(cnp_flood),
		cmocka_unit_test(future_psn), cmocka_unit_test(replayed_read),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
