/* SPDX-License-Identifier: BSD-3-Clause */

/* The fate of a frame, by rules and odds, and the changes of its contents. */

#include "port/impair_lane.h"
#include "wire/udp_template.h"

#define REORDER_NS 10000u
/* odd, and far from each other and from the steps of the generator */
#define FRAME_STEP UINT64_C(0xd1342543de82ef95)
#define SETTING_STEP UINT64_C(0xa0761d6478bd642f)

static bool
chance(struct impair_lane *l, uint64_t odds)
{
	return odds != 0 && (hca_port_random(&l->rng) >> 32) < odds;
}

static unsigned int
random_corruption(struct impair_lane *l)
{
	static const uint8_t faults[] = {HCA_FAULT_CORRUPT_PAYLOAD, HCA_FAULT_CORRUPT_HEADER,
					 HCA_FAULT_CORRUPT_ICRC, HCA_FAULT_CORRUPT_RANDOM};
	unsigned int i;

	do {
		i = hca_port_random_below(&l->rng, RTE_DIM(faults));
	} while ((impair_odds(l)->kinds & 1u << i) == 0);
	return faults[i];
}

/* Reads the members that rules and odds compare; false: a frame of no wire. */
static bool
read_frame(const struct rte_mbuf *m, struct hca_wire_view *v)
{
	return hca_wire_parse(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, v) == 0;
}

static bool
is_of_qp(const struct hca_wire_view *v, uint32_t qpn, uint32_t sqpn)
{
	return (qpn == 0 && sqpn == 0) || (qpn != 0 && v->dst == qpn) ||
	       (sqpn != 0 && v->src == sqpn);
}

static bool
is_of_wire(const struct hca_wire_view *v, uint8_t wire)
{
	return wire == HCA_WIRE_NONE || v->wire == wire;
}

static bool
rule_matches(const struct hca_fault_rule *r, const struct rte_mbuf *m,
	     const struct hca_wire_view *v)
{
	bool any_qp = r->qpn == 0 && r->sqpn == 0 && r->wire == HCA_WIRE_NONE;

	if (v == NULL)
		return r->opcode == HCA_FAULT_ANY && r->psn == HCA_FAULT_ANY && any_qp &&
		       !r->by_name;
	return is_of_wire(v, r->wire) && (r->opcode == HCA_FAULT_ANY || r->opcode == v->opcode) &&
	       (r->psn == HCA_FAULT_ANY || r->psn == v->psn) && is_of_qp(v, r->qpn, r->sqpn) &&
	       (!r->by_name || hca_opcode_set_has(&r->of, rte_pktmbuf_mtod(m, const uint8_t *), v));
}

static bool
fate_by_rule(const struct port_impair *p, struct impair_lane *l, struct rte_mbuf *m,
	     struct impair_fate *f)
{
	struct hca_wire_view v;
	bool parsed = read_frame(m, &v);

	for (unsigned int i = 0; i < impair_rules(p); i++) {
		const struct hca_fault_rule *r = &p->rule[i];
		struct impair_rule_count *c = &l->rule[i];

		if (!rule_matches(r, m, parsed ? &v : NULL))
			continue;
		hca_port_count(&c->seen, 1);
		if (c->seen < r->nth || (r->count != 0 && c->hits >= r->count))
			continue;
		hca_port_count(&c->hits, 1);
		f->fault = r->fault;
		f->arg = r->arg;
		f->by_rule = true;
		f->rule = (uint8_t)(i + 1);
		return true;
	}
	return false;
}

/* Are the odds for one QP, wire or opcode that is not the frame's? */
static bool
is_spared(const struct impair_lane *l, const struct rte_mbuf *m)
{
	const struct impair_odds *o = impair_odds(l);
	struct hca_wire_view v;

	if (likely(o->qpn == 0 && o->sqpn == 0 && o->wire == HCA_WIRE_NONE && !o->by_name))
		return false;
	return !read_frame(m, &v) || !is_of_wire(&v, o->wire) || !is_of_qp(&v, o->qpn, o->sqpn) ||
	       (o->by_name &&
		!hca_opcode_set_has(&o->of, rte_pktmbuf_mtod(m, const uint8_t *), &v));
}

/*
 * Draws depend only on the seed, the number of settings and the number of the frame: not on the
 * fate of other frames, nor on the number of times that this one was refused.
 */
static void
begin_draws(struct impair_lane *l)
{
	l->rng.s = l->seed + l->settings * SETTING_STEP + l->judged * FRAME_STEP;
}

static struct impair_fate
fate_of(const struct port_impair *p, struct impair_lane *l, struct rte_mbuf *m)
{
	const struct impair_odds *o = impair_odds(l);
	struct impair_fate f = {.fault = IMPAIR_PASS, .spared = is_spared(l, m)};

	if (impair_rules(p) != 0 && fate_by_rule(p, l, m, &f))
		return f;
	if (!o->any || f.spared)
		return f;
	f.ecn = chance(l, o->ecn);
	if (chance(l, o->drop))
		f.fault = HCA_FAULT_DROP;
	else if (chance(l, o->corrupt))
		f.fault = random_corruption(l);
	else if (chance(l, o->truncate))
		f.fault = HCA_FAULT_TRUNCATE;
	else if (chance(l, o->dup))
		f.fault = HCA_FAULT_DUP;
	else if (chance(l, o->reorder))
		f.fault = HCA_FAULT_REORDER;
	return f;
}

/* Offset and length of the range that a corruption of this kind may change. */
static uint32_t
corruptible(const struct rte_mbuf *m, unsigned int fault, uint32_t *from)
{
	struct hca_wire_view v;
	uint32_t len = m->data_len;

	*from = 2 * 6;
	if (!read_frame(m, &v) || fault == HCA_FAULT_CORRUPT_RANDOM)
		return len > *from ? len - *from : 0;
	if (fault == HCA_FAULT_CORRUPT_ICRC) {
		*from = v.icrc;
		return HCA_ICRC_LEN;
	}
	if (fault == HCA_FAULT_CORRUPT_PAYLOAD && v.icrc > v.payload) {
		*from = v.payload;
		return v.icrc - v.payload;
	}
	*from = v.transport;
	return v.payload - v.transport;
}

static void
corrupt(struct impair_lane *l, struct rte_mbuf *m, unsigned int fault)
{
	uint32_t from, n = corruptible(m, fault, &from);
	uint8_t *byte;

	if (n == 0)
		return;
	byte = rte_pktmbuf_mtod_offset(m, uint8_t *, from + hca_port_random_below(&l->rng, n));
	*byte ^= (uint8_t)(1 + hca_port_random_below(&l->rng, 255));
	hca_port_count(&l->stats.corrupted, 1);
}

static void
cut(struct impair_lane *l, struct rte_mbuf *m, uint64_t to)
{
	if (m->data_len < 2)
		return;
	if (to == 0 || to >= m->data_len)
		to = 1 + hca_port_random_below(&l->rng, m->data_len - 1u);
	rte_pktmbuf_trim(m, (uint16_t)(m->data_len - to));
	hca_port_count(&l->stats.truncated, 1);
}

static void
mark_ecn(struct impair_lane *l, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t l3 = hca_port_l3(frame, m->data_len);

	if (l3 == 0)
		return;
	hca_port_mark_ce(frame + l3);
	hca_port_count(&l->stats.ecn_marked, 1);
}

bool
impair_damages(const struct impair_fate *f)
{
	return f->ecn || f->fault == HCA_FAULT_ECN || f->fault == HCA_FAULT_TRUNCATE ||
	       (f->fault >= HCA_FAULT_CORRUPT_PAYLOAD && f->fault <= HCA_FAULT_CORRUPT_RANDOM);
}

/* Apply a fault to the frame's contents. */
static void
damage(struct impair_lane *l, struct rte_mbuf *m, const struct impair_fate *f)
{
	if (f->ecn || f->fault == HCA_FAULT_ECN)
		mark_ecn(l, m);
	if (f->fault >= HCA_FAULT_CORRUPT_PAYLOAD && f->fault <= HCA_FAULT_CORRUPT_RANDOM)
		corrupt(l, m, f->fault);
	else if (f->fault == HCA_FAULT_TRUNCATE)
		cut(l, m, f->arg);
}

/* Time for which a frame is held, ns; 0: it is sent at once. */
static uint64_t
wait_of(struct impair_lane *l, const struct impair_fate *f)
{
	const struct impair_odds *o = impair_odds(l);
	uint64_t reorder = o->reorder_ns ? o->reorder_ns : REORDER_NS;
	uint64_t wait = f->spared ? 0 : o->delay_ns;

	if (o->jitter_ns != 0 && !f->spared)
		wait += hca_port_random_below(&l->rng,
					      (uint32_t)RTE_MIN(o->jitter_ns + 1, UINT32_MAX));
	if (f->fault == HCA_FAULT_DELAY)
		wait += f->arg;
	if (f->fault == HCA_FAULT_REORDER)
		wait += f->by_rule
				? reorder
				: 1 + hca_port_random_below(&l->rng,
							    (uint32_t)RTE_MIN(reorder, UINT32_MAX));
	return wait;
}

/* Lists the fault of a frame, before damage() changes the frame. */
static void
tell(struct port_impair *p, struct impair_lane *l, const struct rte_mbuf *m,
     const struct impair_fate *f, uint64_t now)
{
	struct hca_fired d = {.at = now,
			      .frame = l->stats.frames + 1,
			      .rule = f->rule,
			      .queue = l->queue};

	d.fault = (uint8_t)(f->fault != IMPAIR_PASS ? f->fault : HCA_FAULT_ECN);
	hca_fired_describe(&d, m);
	if (p->watch != NULL)
		p->watch(p->watch_arg, m, &d);
	hca_fired_enter(&l->fired, &d);
}

void
impair_decide(struct port_impair *p, struct impair_lane *l, struct rte_mbuf *m, uint64_t now)
{
	struct impair_fate *f = &l->fate;

	begin_draws(l);
	*f = fate_of(p, l, m);
	if (f->fault != IMPAIR_PASS || f->ecn)
		tell(p, l, m, f, now);
	if (f->fault == HCA_FAULT_DROP)
		return;
	damage(l, m, f);
	f->wait = wait_of(l, f);
}
