/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_rig.h"

#include <rte_bitops.h>

#include "../ub_tpc.h"
#include "ceu/ceu.h"
#include "ub/ceu/tp.h"
#include "port/port_wrap.h"
#include "sim_link.h"
#include "ub/tp/tp_wire.h"
#include "wire/ub_frame.h"

#define TICK_NS 100u
#define IDLE_LOOPS 40u
#define JUMP_NS 4000u
#define LONG_PAYLOAD 257u /* HCA_ENCAP_FUSED_MIN */
#define OWN_STAGES (1u << HCA_STAGE_TAI | 1u << HCA_STAGE_TAT)
#define FORM (HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST)

/* Edges have no argument: one rig at a time. */
static struct ub_rig *current;

#define CHECK(r, condition, ...) sim_check((r)->s, condition, __VA_ARGS__)

static unsigned int
side_of(const struct hca_pipe *h)
{
	return h == current->side[1].h;
}

struct hca_tp *
ub_rig_tp(struct ub_rig *r, unsigned int side, uint32_t tpi)
{
	return &r->side[side].h->ub->tp[tpi];
}

uint64_t
ub_rig_counter(const struct ub_rig *r, unsigned int side, enum hca_counter c)
{
	return hca_counter_value(r->side[side].h->hca, c);
}

static uint32_t
tpn_of(unsigned int side, uint32_t tpi)
{
	return 0xabc100u + (side << 16) + tpi;
}

/* ---- the wire's rules ---- */

/* A packet that was sent before is unchanged; a new one has the next PSN. */
static void
judge_numbers(struct ub_rig *r, struct ub_rig_tp *t, const struct hca_tp *tp,
	      const struct hca_ub_tp_view *v, uint32_t len)
{
	struct ub_rig_sent *sent = &t->sent[v->psn % UB_RIG_WINDOW_MAX], *before;
	uint32_t una = __atomic_load_n(&tp->tx.una, __ATOMIC_RELAXED), mtu = 1u << tp->cfg.mtu_log;

	CHECK(r, hca_psn_diff(v->psn, una) < tp->cfg.window, "PSN %06x beyond the window of %06x",
	      v->psn, una);
	if (v->psn != t->next) {
		CHECK(r,
		      sent->valid && sent->tpmsn == v->tpmsn && sent->last == v->last &&
			      sent->len == len,
		      "PSN %06x is another one than before", v->psn);
		return;
	}
	before = &t->sent[hca_tp_psn_before(v->psn) % UB_RIG_WINDOW_MAX];
	CHECK(r,
	      !before->valid ? v->tpmsn == 1 : v->tpmsn == hca_tp_psn(before->tpmsn, before->last),
	      "PSN %06x: TPMSN %06x", v->psn, v->tpmsn);
	CHECK(r, v->last ? len <= mtu : len == mtu, "PSN %06x: %u bytes", v->psn, len);
	*sent = (struct ub_rig_sent){v->tpmsn, len, v->last, true};
	t->next = hca_tp_psn(t->next, 1);
}

static void
judge_packet(struct ub_rig *r, unsigned int side, uint32_t tpi, const uint8_t *tph,
	     const struct hca_ub_tp_view *v)
{
	struct hca_ub_ta_view ta;
	int rc = hca_ub_parse_ta(tph, v, FORM, &ta);

	CHECK(r, rc == 0, "transaction header: %s", hca_ub_drop_text(rc));
	CHECK(r, v->rspst == 0 && v->rspinfo == 0 && !v->fake, "fields of acknowledgements");
	CHECK(r, v->pad == hca_ub_pad(ta.payload_len), "pad");
	CHECK(r,
	      ta.payload_len < LONG_PAYLOAD ||
		      (uintptr_t)(tph + v->ta + ta.payload) % RTE_CACHE_LINE_SIZE == 0,
	      "a long payload begins within a cache line");
	judge_numbers(r, &r->side[side].tp[tpi], ub_rig_tp(r, side, tpi), v, ta.payload_len);
}

static void
judge_datagram(struct ub_rig *r, const uint8_t *tph, const struct hca_ub_tp_view *v)
{
	struct hca_ub_ta_view ta;

	CHECK(r, hca_ub_parse_ta(tph, v, FORM, &ta) == 0, "transaction header");
	CHECK(r, v->pad == hca_ub_pad(ta.payload_len) && hca_ub_rtph_last(tph), "UTPH");
	for (unsigned int i = 2; i < HCA_UB_RTPH_LEN; i++)
		CHECK(r, tph[i] == 0, "byte %u of the UTPH", i);
}

static void
judge_answer(struct ub_rig *r, const struct hca_ub_tp_view *v)
{
	CHECK(r, v->opcode == HCA_UB_TP_ACK || v->opcode == HCA_UB_TP_SACK, "answer %u", v->opcode);
	CHECK(r, !v->last && !v->ack && !v->fake && v->pad == 0, "fields of packets");
}

static void
judge_ip(struct ub_rig *r, const uint8_t *frame, uint32_t len, const struct hca_wire_view *v)
{
	const uint8_t *l3 = frame + v->l3, *udp = frame + v->transport - HCA_UDP_LEN;

	CHECK(r, len == v->icrc + HCA_ICRC_LEN, "%u bytes behind the ICRC",
	      len - v->icrc - HCA_ICRC_LEN);
	CHECK(r, hca_get_be16(udp + 6) == 0, "UDP checksum");
	if (v->ip_version == 4) {
		uint32_t sum = 0;

		for (unsigned int i = 0; i < HCA_IPV4_LEN; i += 2)
			sum += hca_get_be16(l3 + i);
		CHECK(r, hca_ip_fold(sum) == 0xffff, "IPv4 checksum");
		CHECK(r, hca_get_be16(l3 + 6) == HCA_IPV4_DF, "DF");
	} else {
		CHECK(r, (hca_get_be32(l3) & 0xfffff) == hca_ub_flow_label(hca_get_be16(udp)),
		      "flow label");
	}
}

static void
judge_icrc(struct ub_rig *r, const uint8_t *frame, const struct hca_wire_view *v)
{
	struct hca_icrc_span span = hca_icrc_span_of_view(frame, v);
	uint32_t crc;

	hca_icrc_select()->crc_burst(&span, &crc, 1);
	CHECK(r, crc == hca_icrc_load(frame + v->icrc), "ICRC");
}

/* Returns whether it is an acknowledgement. */
static bool
judge_frame(struct ub_rig *r, unsigned int side, const uint8_t *frame, uint32_t len)
{
	struct hca_ub_tp_view tp;
	struct hca_wire_view v;
	uint32_t tpi;

	CHECK(r, hca_wire_parse(frame, len, &v) == 0 && v.wire == HCA_WIRE_UB, "no frame of UB");
	judge_ip(r, frame, len, &v);
	judge_icrc(r, frame, &v);
	CHECK(r, hca_ub_parse_tp(frame + v.transport, v.icrc - v.transport, &tp) == 0, "transport");
	if (tp.opcode == HCA_UB_TP_UTP) {
		judge_datagram(r, frame + v.transport, &tp);
		return false;
	}
	tpi = v.src & 0xf;
	CHECK(r, v.src == tpn_of(side, tpi) && v.dst == tpn_of(1 - side, tpi), "TPNs");
	if (tp.opcode == HCA_UB_TP_RTP)
		judge_packet(r, side, tpi, frame + v.transport, &tp);
	else
		judge_answer(r, &tp);
	r->hash = sim_hash(r->hash, frame, len);
	r->side[side].frames++;
	return tp.opcode != HCA_UB_TP_RTP;
}

struct judge_port {
	struct hca_port_wrap wrap;
	unsigned int side;
};

static uint16_t
judge_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct judge_port *j = (struct judge_port *)p;
	struct ub_rig_side *side = &current->side[j->side];

	side->bursts++;
	side->first_answers = side->behind = 0;
	for (uint16_t i = 0; i < n; i++) {
		bool answer = judge_frame(current, j->side, rte_pktmbuf_mtod(m[i], const uint8_t *),
					  m[i]->data_len);

		if (answer && side->behind == 0)
			side->first_answers++;
		else
			side->behind++;
	}
	n = j->wrap.inner->ops->tx(j->wrap.inner, 0, m, n, now);
	return n;
}

static const struct hca_port_ops judge_ops = {
	.rx = hca_port_wrap_rx,
	.tx = judge_tx,
	.link_up = hca_port_wrap_link_up,
	.poll = hca_port_wrap_poll,
	.missed = hca_port_wrap_missed,
	.deadline = hca_port_wrap_deadline,
};

static struct judge_port judges[2];

static void
set_judge(struct ub_rig *r, unsigned int side)
{
	r->side[side].port = r->side[side].h->port;
	judges[side].side = side;
	hca_port_wrap_init(&judges[side].wrap, &judge_ops, r->side[side].h->port);
	r->side[side].h->port = &judges[side].wrap.port;
}

/* ---- in the places of TAI and TAT ---- */

static void
arrive(struct hca_pipe *h, struct rte_mbuf *m, bool response)
{
	struct ub_rig *r = current;
	struct ub_rig_side *side = &r->side[side_of(h)];
	const struct hca_ub_rxd *d = hca_ub_rxd(m);
	const uint8_t *tph = hca_ub_rxd_tph(m), *tah = tph + d->ta;
	struct hca_ub_ta_view ta;
	struct hca_ub_tp_view v;

	hca_ub_rxd_view(d, &v);
	CHECK(r, hca_ub_parse_ta(tph, &v, FORM, &ta) == 0, "passed on");
	CHECK(r, response == !!(ta.op->is & HCA_UB_OP_RESPONSE), "to the wrong stage");
	side->requests += !response;
	side->responses += response;
	side->poisoned += hca_ub_btah_poison(tah);
	if (response || ta.at->maetah == 0 || hca_ub_btah_poison(tah))
		return;
	memcpy(side->mem + hca_ub_maetah_address(tah + ta.at->maetah), tah + ta.payload,
	       ta.payload_len);
}

static void
arrivals(struct hca_pipe *h, void *const *objs, unsigned int n, bool response)
{
	for (unsigned int i = 0; i < n; i++)
		arrive(h, objs[i], response);
	/* for the sums of counters */
	if (response)
		HCA_COUNT_N(h, TAI, ub_responses, n);
	else
		HCA_COUNT_N(h, TAT, ub_ta_used, n);
	hca_mbuf_free_burst((struct rte_mbuf *const *)objs, n);
}

static void
to_tai(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	(void)now;
	arrivals(h, objs, n, true);
}

static void
to_tat(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	(void)now;
	arrivals(h, objs, n, false);
}

/* Operations come back in the order in which they were put. */
static void
take_back(struct ub_rig *r, unsigned int side, uint32_t tpi, uint32_t lane, uint32_t end)
{
	struct hca_tp *tp = ub_rig_tp(r, side, tpi);
	struct ub_rig_tp *t = &r->side[side].tp[tpi];

	for (; t->taken[lane] != end; t->taken[lane]++, t->ops_back++)
		hca_ta_op_return(&r->side[side].h->ub->pool[lane],
				 tp->lane[lane].ring[t->taken[lane] & (tp->cfg.window - 1u)]);
}

static void
on_tps(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	(void)now;
	current->side[side_of(h)].dead += (flags & HCA_MSG_DEAD) != 0;
	if (hca_tp_state(tp) == HCA_TPS_RESET)
		return;
	for (uint32_t l = 0; l < HCA_TP_LANES; l++)
		take_back(current, side_of(h), tpi, l,
			  __atomic_load_n(&tp->tx.lane[l].done, __ATOMIC_ACQUIRE));
}

/* A round: no stage uses the operations of its lanes any more. */
static void
on_ceu_tp(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	(void)now;
	if (!(flags & HCA_MSG_PURGE))
		return;
	for (uint32_t l = 0; l < HCA_TP_LANES; l++)
		take_back(current, side_of(h), tpi, l, tp->lane[l].head);
}

static void
on_ceu_qp(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	(void)h;
	(void)qp;
	(void)qpi;
	(void)flags;
	(void)now;
}

static unsigned int
owner_poll(struct hca_pipe *h, enum hca_stage_id stage, uint64_t now, unsigned int budget)
{
	enum hca_edge_id e = stage == HCA_STAGE_TAI ? HCA_EDGE_TPR_TAI : HCA_EDGE_TPR_TAT;
	unsigned int n;

	n = hca_ub_msg_drain(h, HCA_STAGE_CEU, stage, on_ceu_qp, on_ceu_tp, now, budget);
	if (n != 0)
		hca_purge_ack(h, stage);
	n += hca_tp_msg_drain(h, HCA_STAGE_TPS, stage, on_tps, now, budget);
	n += hca_edge_drain(h, &h->edge[e], budget, now);
	rte_rcu_qsbr_quiescent(h->rcu, h->stage_worker[stage]);
	return n;
}

uint32_t
ub_rig_take(struct ub_rig *r, unsigned int side, uint32_t tpi, uint32_t lane)
{
	struct hca_pipe *h = r->side[side].h;

	if (hca_tp_lane_room(ub_rig_tp(r, side, tpi), lane) == 0)
		return UINT32_MAX;
	return hca_ta_op_take(&h->ub->pool[lane]);
}

struct hca_ta_op *
ub_rig_op(struct ub_rig *r, unsigned int side, uint32_t lane, uint32_t index)
{
	return &r->side[side].h->ub->ops.op[lane][index];
}

void
ub_rig_put(struct ub_rig *r, unsigned int side, uint32_t tpi, uint32_t lane, uint32_t index)
{
	hca_tp_lane_put(ub_rig_tp(r, side, tpi), lane, index);
	r->side[side].tp[tpi].ops_put++;
	hca_tp_msg_send(r->side[side].h, lane == HCA_TP_REQUESTS ? HCA_STAGE_TAI : HCA_STAGE_TAT,
			HCA_STAGE_TPS, tpi, HCA_MSG_NEW);
}

bool
ub_rig_write(struct ub_rig *r, unsigned int side, uint32_t tpi, uint32_t len)
{
	struct ub_rig_side *sd = &r->side[side];
	uint32_t index;

	if (sd->at + len > UB_RIG_MEM / 2)
		return false;
	index = ub_rig_take(r, side, tpi, HCA_TP_REQUESTS);
	if (index == UINT32_MAX)
		return false;
	*ub_rig_op(r, side, HCA_TP_REQUESTS, index) =
		(struct hca_ta_op){.object = UB_RIG_QPI,
				   .opcode = HCA_UB_TA_WRITE,
				   .last_opcode = HCA_UB_TA_WRITE,
				   .ta1 = HCA_UB_EE_NORMAL << 4,
				   .tassn = r->tassn++,
				   .source = HCA_TA_OP_LOCAL,
				   .rc = 0x12345,
				   .payload = len,
				   .length = len,
				   .key = sd->mr->lkey,
				   .req = {.address = UB_RIG_MEM / 2 + sd->at,
					   .va = (uint64_t)(uintptr_t)sd->mem + sd->at,
					   .token_id = 0x54321}};
	sd->at += len;
	ub_rig_put(r, side, tpi, HCA_TP_REQUESTS, index);
	return true;
}

bool
ub_rig_taack(struct ub_rig *r, unsigned int side, uint32_t tpi)
{
	uint32_t index = ub_rig_take(r, side, tpi, HCA_TP_RESPONSES);

	if (index == UINT32_MAX)
		return false;
	*ub_rig_op(r, side, HCA_TP_RESPONSES, index) =
		(struct hca_ta_op){.opcode = HCA_UB_TA_TAACK,
				   .last_opcode = HCA_UB_TA_TAACK,
				   .tassn = r->tassn,
				   .rc = 0x12345};
	ub_rig_put(r, side, tpi, HCA_TP_RESPONSES, index);
	return true;
}

void
ub_rig_check(struct ub_rig *r)
{
	for (unsigned int i = 0; i < 2; i++) {
		const uint8_t *from = r->side[i].mem, *to = r->side[1 - i].mem + UB_RIG_MEM / 2;
		uint32_t at = r->side[i].at;

		CHECK(r, memcmp(from, to, at) == 0, "side %u: data differ", i);
		for (; at < UB_RIG_MEM / 2; at++)
			CHECK(r, to[at] == 0, "side %u: byte %u is written", 1 - i, at);
	}
}

/* ---- time ---- */

static unsigned int
poll_stage(struct ub_rig *r, unsigned int side, unsigned int stage, unsigned int budget)
{
	struct hca_pipe *h = r->side[side].h;

	if (OWN_STAGES >> stage & 1)
		return owner_poll(h, stage, r->now, budget);
	return hca_poll_stage(h->hca, 0, stage, r->now, budget);
}

unsigned int
ub_rig_poll_side(struct ub_rig *r, unsigned int side)
{
	unsigned int work = 0;

	for (unsigned int stage = 0; stage < HCA_STAGE_N; stage++)
		work += poll_stage(r, side, stage, HCA_BURST);
	return work;
}

static unsigned int
poll_stepped(struct ub_rig *r)
{
	unsigned int work = 0;

	for (unsigned int i = 0; i < 2 * HCA_STAGE_N; i++)
		work += poll_stage(r, sim_below(&r->rng, 2), sim_below(&r->rng, HCA_STAGE_N),
				   1 + sim_below(&r->rng, HCA_BURST));
	return work;
}

unsigned int
ub_rig_poll(struct ub_rig *r)
{
	bool stepped = r->cfg.sim.executor == SIM_STEPPED;
	unsigned int work =
		stepped ? poll_stepped(r) : ub_rig_poll_side(r, 0) + ub_rig_poll_side(r, 1);

	r->now += TICK_NS;
	r->idle = work != 0 ? 0 : r->idle + 1;
	if (r->idle > IDLE_LOOPS)
		r->now += JUMP_NS;
	return work;
}

void
ub_rig_run(struct ub_rig *r, uint64_t ns)
{
	for (uint64_t end = r->now + ns; r->now < end;)
		ub_rig_poll(r);
}

static bool
is_quiet(struct ub_rig *r)
{
	for (unsigned int i = 0; i < 2; i++) {
		for (uint32_t t = 0; t <= r->cfg.tps; t++) {
			const struct hca_tp *tp = ub_rig_tp(r, i, t);

			if (tp->cfg.own_tpn == 0 && t != HCA_TP_UNRELIABLE)
				continue;
			if (r->side[i].tp[t].ops_put != r->side[i].tp[t].ops_back ||
			    (tp->tx.una != tp->tx.next && hca_tp_state(tp) != HCA_TPS_ERROR) ||
			    tp->rx.debt != HCA_TP_OWES_NOTHING)
				return false;
		}
		if (sim_link_queued(r->s->side[i].wire) != 0 ||
		    hca_port_impair_held(r->s->side[i].impair) != 0)
			return false;
	}
	return r->idle > IDLE_LOOPS;
}

void
ub_rig_settle(struct ub_rig *r, uint64_t max_ns)
{
	uint64_t end = r->now + max_ns;

	ub_rig_poll(r);
	while (!is_quiet(r)) {
		CHECK(r, r->now < end, "not quiet in time: put %lu back %lu",
		      (unsigned long)r->side[0].tp[1].ops_put,
		      (unsigned long)r->side[0].tp[1].ops_back);
		ub_rig_poll(r);
	}
}

/* ---- life ---- */

/* A command, executed at once or in a round while everything goes on. */
static void
command(struct ub_rig *r, unsigned int side, hca_cmd_fn fn, uint32_t tpn, const struct hca_tpc *in)
{
	struct hca_cmd *c = aligned_alloc(64, sizeof(*c));
	int rc;

	CHECK(r, c != NULL, "no memory");
	memset(c, 0, sizeof(*c));
	c->in_modifier = tpn;
	if (in != NULL)
		memcpy(c->in, in, sizeof(*in));
	while ((rc = fn(&r->side[side].h->core, c)) == HCA_CMD_AGAIN)
		ub_rig_poll(r);
	CHECK(r, rc == HCA_STAT_OK, "command: status %d", rc);
	free(c);
}

void
ub_rig_open_tp(struct ub_rig *r, unsigned int side, uint32_t tpi)
{
	const struct ub_rig_config *c = &r->cfg;
	struct ub_rig_tp *t = &r->side[side].tp[tpi];
	const struct ub_tpc_field fields[] = {
		{HCA_TPC_STATE, side == 0 ? HCA_TPS_ACTIVE : HCA_TPS_PASSIVE},
		{HCA_TPC_MODE, c->mode},
		{HCA_TPC_RULE, c->rule},
		{HCA_TPC_MTU, c->mtu_log == 12},
		{HCA_TPC_WINDOW, rte_bsf32(c->window / 128)},
		{HCA_TPC_SACK, 4},
		{HCA_TPC_FLAGS, FORM | (c->flags & HCA_TP_FLAG_SPRAY)},
		{HCA_TPC_TPN, tpn_of(side, tpi)},
		{HCA_TPC_PEER, tpn_of(1 - side, tpi)},
		{HCA_TPC_PSN, c->psn + side},
		{HCA_TPC_EPSN, c->psn + 1 - side},
		{HCA_TPC_REQUESTS, 64},
		{HCA_TPC_ACK_EVERY, 16},
		{HCA_TPC_OOO_EVERY, 1},
		{HCA_TPC_RTO_BASE, c->rto_base},
		{HCA_TPC_RTO_EXPONENT, 1},
		{HCA_TPC_RETRIES, c->retries},
		{HCA_TPC_REORDER, c->reorder},
		{HCA_TPC_SPORT, 0xc000 + 16 * tpi},
		{HCA_TPC_SPORTS_LOG, c->ports_log},
	};
	uint64_t mac = UINT64_C(0x020000000000) | (2 - side);
	enum sim_gid gid = c->gid[tpi - 1];
	struct hca_tpc image;
	uint8_t peer[16];

	sim_gid(1 - side, gid, peer);
	image = ub_tpc(fields, RTE_DIM(fields), gid, peer);
	image.path.mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(mac, 0));
	image.path.dmac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(mac));
	memset(t, 0, sizeof(*t));
	t->next = (c->psn + side) & HCA_PSN_MASK;
	command(r, side, hca_cmd_sw2hw_tp, tpn_of(side, tpi), &image);
	/* not offered by the command yet */
	ub_rig_tp(r, side, tpi)->cfg.flags |= c->flags & HCA_TP_FLAG_EIDH;
}

void
ub_rig_close_tp(struct ub_rig *r, unsigned int side, uint32_t tpi)
{
	const struct ub_rig_tp *t = &r->side[side].tp[tpi];

	command(r, side, hca_cmd_hw2sw_tp, tpn_of(side, tpi), NULL);
	CHECK_EQ(r, t->ops_back, t->ops_put);
}

static void
open_memory(struct ub_rig *r, unsigned int i)
{
	struct ub_rig_side *sd = &r->side[i];
	struct hca_qp_cfg *qp = &sd->h->qp[UB_RIG_QPI].cfg;

	sd->mem = aligned_alloc(4096, UB_RIG_MEM);
	CHECK(r, sd->mem != NULL, "no memory");
	memset(sd->mem, 0, UB_RIG_MEM);
	for (uint32_t k = 0; k < UB_RIG_MEM / 2; k++)
		sd->mem[k] = (uint8_t)(1 + sim_below(&r->rng, 255));
	sd->mr = softhca_reg_mr(r->s->side[i].pd, sd->mem, UB_RIG_MEM,
				SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_READ);
	CHECK(r, sd->mr != NULL, "reg_mr");
	qp->pd = sd->h->vtp.mpt[HCA_KEY_INDEX(sd->mr->lkey)].pd;
	qp->state = HCA_QPS_RTS;
}

void
ub_rig_open(struct ub_rig *r, const struct ub_rig_config *cfg)
{
	memset(r, 0, sizeof(*r));
	current = r;
	r->cfg = *cfg;
	r->cfg.tps = RTE_MAX(cfg->tps, 1u);
	r->cfg.window = cfg->window != 0 ? cfg->window : 128;
	r->cfg.mtu_log = cfg->mtu_log != 0 ? cfg->mtu_log : 12;
	r->cfg.psn = cfg->psn != 0 ? cfg->psn : 0xfffff0;
	r->cfg.retries = cfg->retries != 0 ? cfg->retries : 7;
	r->cfg.sim.wires = HCA_WIRE_BIT(HCA_WIRE_ROCE) | HCA_WIRE_BIT(HCA_WIRE_UB);
	r->rng.s = r->cfg.sim.seed;
	r->s = sim_open(&r->cfg.sim);
	r->now = r->s->now;
	for (unsigned int i = 0; i < 2; i++) {
		struct hca_pipe *h = r->side[i].h = &r->s->side[i].hca->pipe[0];

		open_memory(r, i);
		h->edge[HCA_EDGE_TPR_TAI].process = to_tai;
		h->edge[HCA_EDGE_TPR_TAT].process = to_tat;
		set_judge(r, i);
		for (uint32_t t = 1; t <= r->cfg.tps; t++)
			ub_rig_open_tp(r, i, t);
	}
}

static void
close_side(struct ub_rig *r, unsigned int i)
{
	struct ub_rig_side *sd = &r->side[i];

	for (uint32_t t = 1; t <= r->cfg.tps; t++)
		if (ub_rig_tp(r, i, t)->cfg.own_tpn != 0)
			ub_rig_close_tp(r, i, t);
	for (uint32_t l = 0; l < HCA_TP_LANES; l++)
		CHECK(r, sd->h->ub->pool[l].free_n == sd->h->ub->pool[l].count,
		      "operations leaked");
	sd->h->qp[UB_RIG_QPI].cfg.state = HCA_QPS_RST;
	sd->h->qp[UB_RIG_QPI].cfg.pd = 0;
	CHECK(r, softhca_dereg_mr(sd->mr) == 0, "dereg_mr");
	sd->h->port = sd->port;
	free(sd->mem);
}

void
ub_rig_close(struct ub_rig *r)
{
	ub_rig_run(r, 20000000); /* also entries of the timing wheel */
	for (unsigned int i = 0; i < 2; i++)
		close_side(r, i);
	r->s->now = r->s->stepper.now = r->now;
	sim_close(r->s); /* which checks sums and leaks */
	current = NULL;
}
