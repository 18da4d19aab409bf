/* SPDX-License-Identifier: BSD-3-Clause */

/* TPs and their groups by command: accepted and refused values, changes, and the end. */

#include <string.h>

#include "../../rig.h"
#include "ub/ub.h"

#define TPI 5u
#define TPN(i) (0x1230u << RIG_LOG_TPS | (i))
#define ALL_FIELDS HCA_TPC_FIELDS

static struct hca_tp *
tp_at(struct rig *r, uint32_t i)
{
	return &r->h->core->ub->tp[i];
}

static void
set(struct hca_tpc *c, enum hca_tpc_field f, uint32_t value)
{
	hca_tpc_set(c, f, value);
}

/* A mailbox that is taken: the TP i, ACTIVE, to 10.0.0.2. */
static struct hca_tpc *
tpc(struct rig *r, uint32_t i)
{
	struct hca_tpc *c = (void *)r->in;

	memset(c, 0, sizeof(*c));
	set(c, HCA_TPC_STATE, HCA_TPS_ACTIVE);
	set(c, HCA_TPC_MODE, HCA_TP_MODE_SACK);
	set(c, HCA_TPC_RULE, HCA_TP_RULE_TIME);
	set(c, HCA_TPC_MTU, 1);
	set(c, HCA_TPC_WINDOW, 1);
	set(c, HCA_TPC_SACK, 2);
	set(c, HCA_TPC_FLAGS, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST);
	set(c, HCA_TPC_TPN, TPN(i));
	set(c, HCA_TPC_PEER, 0xabcdef);
	set(c, HCA_TPC_PSN, 0xfffff0);
	set(c, HCA_TPC_EPSN, 0x123456);
	set(c, HCA_TPC_REQUESTS, 64);
	set(c, HCA_TPC_ACK_EVERY, 16);
	set(c, HCA_TPC_OOO_EVERY, 4);
	set(c, HCA_TPC_RTO_BASE, 512);
	set(c, HCA_TPC_RTO_EXPONENT, 1);
	set(c, HCA_TPC_RETRIES, 7);
	set(c, HCA_TPC_REORDER, 25);
	set(c, HCA_TPC_SPORT, 0xc000);
	set(c, HCA_TPC_SPORTS_LOG, 3);
	c->path = rig_path(2);
	return c;
}

static int
create(struct rig *r, uint32_t i)
{
	tpc(r, i);
	return rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(i));
}

static struct hca_tpc *
query(struct rig *r, uint32_t i)
{
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_TP, TPN(i)), HCA_STAT_OK);
	return (void *)r->out;
}

static int
destroy(struct rig *r, uint32_t i)
{
	return rig_cmd(r, HCA_CMD_HW2SW_TP, 0, TPN(i), 0, 0);
}

/* The mailbox of MODIFY_TP: the values of the TP, with this mask. */
static struct hca_tpc *
change(struct rig *r, uint32_t i, uint32_t mask)
{
	struct hca_tpc *c = tpc(r, i);

	c->mask = hca_cpu_to_be32(mask);
	return c;
}

static int
modify(struct rig *r, uint32_t i)
{
	return rig_mbox(r, HCA_CMD_MODIFY_TP, TPN(i));
}

static void
fills_the_context(void **state)
{
	struct rig *r = *state;
	const struct hca_tp *tp = tp_at(r, TPI);
	uint32_t before = tp->cfg.generation;

	assert_int_equal(create(r, TPI), HCA_STAT_OK);
	assert_int_equal(tp->cfg.state, HCA_TPS_ACTIVE);
	assert_int_equal(tp->cfg.own_tpn, TPN(TPI));
	assert_int_equal(tp->cfg.peer_tpn, 0xabcdef);
	assert_int_equal(tp->cfg.generation, before + 1);
	assert_int_equal(tp->cfg.mode, HCA_TP_MODE_SACK);
	assert_int_equal(tp->cfg.rule, HCA_TP_RULE_TIME);
	assert_int_equal(tp->cfg.mtu_log, 12);
	assert_int_equal(tp->cfg.sack_code, 2);
	assert_int_equal(tp->cfg.flags, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST);
	assert_int_equal(tp->cfg.ack_every, 16);
	assert_int_equal(tp->cfg.ooo_every, 4);
	assert_int_equal(tp->cfg.window, 256);
	assert_int_equal(tp->cfg.requests, 64);
	assert_int_equal(tp->cfg.rto_base, 512);
	assert_int_equal(tp->cfg.rto_exponent, 1);
	assert_int_equal(tp->cfg.retries, 7);
	assert_int_equal(tp->cfg.reorder, 25000);
	assert_int_equal(tp->cfg.port, 0xc000);
	assert_int_equal(tp->cfg.ports_log, 3);
	assert_int_equal(tp->cfg.vlan, 0);
	assert_memory_equal(tp->cfg.own_eid + 10, "\xff\xff\x0a\0\0\x01", 6);
	assert_memory_equal(tp->cfg.peer_eid + 10, "\xff\xff\x0a\0\0\x02", 6);
	assert_int_equal(tp->tx.una, 0xfffff0);
	assert_int_equal(tp->rx.epsn, 0x123456);
	assert_int_equal(hca_tp_lane_room(tp, HCA_TP_REQUESTS), 256);
	assert_memory_equal(tp->encap.tmpl.bytes, "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0", 14);
	assert_memory_equal(tp->encap.tmpl.bytes + tp->encap.tmpl.transport - 8, "\xc0\0\x12\xb8",
			    4);
	assert_memory_equal(tp->encap.tmpl.bytes + tp->encap.tmpl.transport + 5, "\xab\xcd\xef", 3);
	assert_true(r->h->core->ub->tp_bytes >= hca_tp_block_bytes(256, 64));
	assert_int_equal(destroy(r, TPI), HCA_STAT_OK);
	assert_int_equal(r->h->core->ub->tp_bytes, 0);
}

static void
every_field_out_of_range(void **state)
{
	struct rig *r = *state;
	unsigned int tried = 0;

	for (unsigned int f = 0; f < ALL_FIELDS; f++) {
		const struct hca_tpc_field_info *i = &hca_tpc_fields[f];
		uint64_t end = UINT64_C(1) << (i->hi - i->lo + 1);
		const uint64_t bad[] = {(uint64_t)i->min - 1, (uint64_t)i->max + 1, end - 1};

		for (unsigned int k = 0; k < RTE_DIM(bad); k++) {
			if (bad[k] >= end || (bad[k] >= i->min && bad[k] <= i->max))
				continue;
			set(tpc(r, TPI), f, (uint32_t)bad[k]);
			assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI)),
					 HCA_STAT_BAD_PARAM);
			assert_int_equal(tp_at(r, TPI)->cfg.own_tpn, 0);
			tried++;
		}
	}
	assert_true(tried >= 20);
}

/* Bits that belong to no field. */
static void
unknown_bits(void **state)
{
	static const struct {
		uint16_t at;
		uint32_t bit;
	} bits[] = {{0x04, 27}, {0x04, 23}, {0x04, 11}, {0x08, 24}, {0x0c, 31},
		    {0x10, 24}, {0x14, 30}, {0x24, 12}, {0x24, 4},  {0x5c, 16},
		    {0x28, 6},	{0x2c, 31}, {0x30, 31}, {0x30, 15}};
	struct rig *r = *state;

	for (unsigned int k = 0; k < RTE_DIM(bits); k++) {
		uint8_t *word = (uint8_t *)tpc(r, TPI) + bits[k].at;

		hca_put_be32(word, hca_get_be32(word) ^ 1u << bits[k].bit);
		assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI)), HCA_STAT_BAD_PARAM);
	}
}

static void
fields_that_do_not_fit_together(void **state)
{
	static const struct {
		enum hca_tpc_field field[2];
		uint32_t value[2];
	} rows[] = {
		{{HCA_TPC_STATE, HCA_TPC_STATE}, {0, HCA_TPS_DRAIN}},
		{{HCA_TPC_MODE, HCA_TPC_RULE}, {HCA_TP_MODE_DROP, HCA_TP_RULE_NONE}},
		{{HCA_TPC_MODE, HCA_TPC_RULE}, {HCA_TP_MODE_TRACK, HCA_TP_RULE_TIME}},
		{{HCA_TPC_MODE, HCA_TPC_RULE}, {HCA_TP_MODE_SACK, HCA_TP_RULE_NAK}},
		{{HCA_TPC_FLAGS, HCA_TPC_FLAGS}, {0, HCA_TP_FLAG_ROL}},
		{{HCA_TPC_FLAGS, HCA_TPC_FLAGS}, {0, HCA_TP_FLAG_EIDH}},
		{{HCA_TPC_RTO_BASE, HCA_TPC_RTO_BASE}, {0, 3}},
		{{HCA_TPC_SPORT, HCA_TPC_SPORTS_LOG}, {0xfff9, 3}},
	};
	struct rig *r = *state;

	for (unsigned int k = 0; k < RTE_DIM(rows); k++) {
		struct hca_tpc *c = tpc(r, TPI);

		set(c, rows[k].field[0], rows[k].value[0]);
		set(c, rows[k].field[1], rows[k].value[1]);
		assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI)), HCA_STAT_BAD_PARAM);
	}
	/* spray is for receivers that take packets out of order */
	set(tpc(r, TPI), HCA_TPC_FLAGS, HCA_TP_FLAG_SPRAY);
	set((void *)r->in, HCA_TPC_MODE, HCA_TP_MODE_DROP);
	set((void *)r->in, HCA_TPC_RULE, HCA_TP_RULE_NAK);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI)), HCA_STAT_BAD_PARAM);
	set((void *)r->in, HCA_TPC_FLAGS, 0);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI)), HCA_STAT_OK);
}

static void
bad_paths(void **state)
{
	struct rig *r = *state;

	tpc(r, TPI)->path.port_pkey = 0;
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI)), HCA_STAT_BAD_PARAM);
	tpc(r, TPI)->path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(0, 3, 0, 64));
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI)), HCA_STAT_BAD_PARAM);
	memset(tpc(r, TPI)->path.rgid, 0xff, 16);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI)), HCA_STAT_BAD_PARAM);
}

static void
bad_numbers(void **state)
{
	struct rig *r = *state;

	tpc(r, TPI);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI + 1)), HCA_STAT_BAD_PARAM);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, 1u << 24 | TPI), HCA_STAT_BAD_INDEX);
	/* packets without TP */
	tpc(r, HCA_TP_UNRELIABLE);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(HCA_TP_UNRELIABLE)), HCA_STAT_BAD_INDEX);
	assert_int_equal(create(r, TPI), HCA_STAT_OK);
	assert_int_equal(create(r, TPI), HCA_STAT_BAD_RES_STATE);
	tpc(r, TPI)->mask = hca_cpu_to_be32(HCA_TP_ATTR_STATE);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI + 1)), HCA_STAT_BAD_PARAM);
	/* the same index with another tag */
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_TP, TPN(TPI) ^ 0x800000), HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_mbox(r, HCA_CMD_MODIFY_TP, TPN(TPI) ^ 0x800000), HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_cmd(r, HCA_CMD_HW2SW_TP, 0, TPN(TPI) ^ 0x800000, 0, 0),
			 HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_TP, 0), HCA_STAT_BAD_INDEX);
	assert_int_equal(destroy(r, TPI), HCA_STAT_OK);
	assert_int_equal(destroy(r, TPI), HCA_STAT_BAD_INDEX);
	assert_int_equal(rig_mbox(r, HCA_CMD_QUERY_TP, TPN(TPI)), HCA_STAT_BAD_INDEX);
}

static void
query_says_what_it_does_now(void **state)
{
	struct rig *r = *state;
	struct hca_tp *tp = tp_at(r, TPI);
	const struct hca_tpc *q;

	assert_int_equal(create(r, TPI), HCA_STAT_OK);
	q = query(r, TPI);
	for (unsigned int f = 0; f < HCA_TPC_FIELDS; f++)
		assert_int_equal(hca_tpc_get(q, f), hca_tpc_get(tpc(r, TPI), f));
	tp->tx.una = 1;
	tp->tx.next = 7;
	tp->tx.srtt = 12345;
	tp->tx.timeouts = 3;
	for (uint32_t i = 0; i < HCA_TP_AGAINS; i++)
		tp->tx.resent[i] = 10 + i;
	tp->rx.epsn = 0x22;
	tp->rx.max_rcv = 0x33;
	tp->rx.duplicates = 4;
	tp->rx.out_of_order = 5;
	tp->rx.accepted_ooo = 6;
	tp->tai.open_out = 8;
	tp->tat.open_in = 9;
	assert_true(hca_tp_fail(tp));
	q = query(r, TPI);
	assert_int_equal(hca_tpc_get(q, HCA_TPC_STATE), HCA_TPS_ERROR);
	assert_int_equal(hca_tpc_get(q, HCA_TPC_PSN), 0xfffff0);
	assert_int_equal(hca_be32_to_cpu(q->una), 1);
	assert_int_equal(hca_be32_to_cpu(q->next), 7);
	assert_int_equal(hca_be32_to_cpu(q->srtt), 12345);
	assert_int_equal(hca_be32_to_cpu(q->timeouts), 3);
	assert_int_equal(hca_be32_to_cpu(q->resent_nak), 10);
	assert_int_equal(hca_be32_to_cpu(q->resent_timeout), 14);
	assert_int_equal(hca_be32_to_cpu(q->live_epsn), 0x22);
	assert_int_equal(hca_be32_to_cpu(q->max_rcv), 0x33);
	assert_int_equal(hca_be32_to_cpu(q->duplicates), 4);
	assert_int_equal(hca_be32_to_cpu(q->out_of_order), 11);
	assert_int_equal(hca_be32_to_cpu(q->open_out), 8);
	assert_int_equal(hca_be32_to_cpu(q->open_in), 9);
}

static void
changes_what_the_mask_names(void **state)
{
	struct rig *r = *state;
	const struct hca_tp_cfg *c = &tp_at(r, TPI)->cfg;
	struct hca_tpc *m;

	assert_int_equal(create(r, TPI), HCA_STAT_OK);
	m = change(r, TPI, HCA_TP_ATTR_RULE | HCA_TP_ATTR_ACKS);
	set(m, HCA_TPC_RULE, HCA_TP_RULE_MARK);
	set(m, HCA_TPC_REORDER, 9);
	set(m, HCA_TPC_ACK_EVERY, 3);
	set(m, HCA_TPC_OOO_EVERY, 2);
	set(m, HCA_TPC_RETRIES, 1);	      /* not named */
	set(m, HCA_TPC_WINDOW, 4);	      /* never */
	set(m, HCA_TPC_STATE, HCA_TPS_ERROR); /* not named */
	assert_int_equal(modify(r, TPI), HCA_STAT_OK);
	assert_int_equal(c->rule, HCA_TP_RULE_MARK);
	assert_int_equal(c->reorder, 9000);
	assert_int_equal(c->ack_every, 3);
	assert_int_equal(c->ooo_every, 2);
	assert_int_equal(c->retries, 7);
	assert_int_equal(c->window, 256);
	assert_int_equal(c->state, HCA_TPS_ACTIVE);
	m = change(r, TPI, HCA_TP_ATTR_RTO | HCA_TP_ATTR_PORTS);
	set(m, HCA_TPC_RTO_BASE, 0);
	set(m, HCA_TPC_RTO_EXPONENT, 2);
	set(m, HCA_TPC_RETRIES, 9);
	set(m, HCA_TPC_SPORT, 0xd000);
	set(m, HCA_TPC_SPORTS_LOG, 1);
	set(m, HCA_TPC_FLAGS, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST | HCA_TP_FLAG_SPRAY);
	assert_int_equal(modify(r, TPI), HCA_STAT_OK);
	assert_int_equal(c->rto_base, 0);
	assert_int_equal(c->retries, 9);
	assert_int_equal(c->port, 0xd000);
	assert_int_equal(c->ports_log, 1);
	assert_int_equal(c->flags, HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST | HCA_TP_FLAG_SPRAY);
	assert_int_equal(hca_tpc_get(query(r, TPI), HCA_TPC_RULE), HCA_TP_RULE_MARK);
	assert_int_equal(hca_tpc_get((void *)r->out, HCA_TPC_SPORT), 0xd000);
	assert_int_equal(hca_tpc_get((void *)r->out, HCA_TPC_WINDOW), 1);
}

static void
changes_that_are_refused(void **state)
{
	struct rig *r = *state;
	struct hca_tp was;

	assert_int_equal(create(r, TPI), HCA_STAT_OK);
	was = *tp_at(r, TPI);
	change(r, TPI, 0);
	assert_int_equal(modify(r, TPI), HCA_STAT_BAD_PARAM);
	change(r, TPI, HCA_TP_ATTRS_ALL + 1);
	assert_int_equal(modify(r, TPI), HCA_STAT_BAD_PARAM);
	set(change(r, TPI, HCA_TP_ATTR_RULE), HCA_TPC_RULE, HCA_TP_RULE_NAK);
	assert_int_equal(modify(r, TPI), HCA_STAT_BAD_PARAM);
	set(change(r, TPI, HCA_TP_ATTR_ACKS), HCA_TPC_ACK_EVERY, 0);
	assert_int_equal(modify(r, TPI), HCA_STAT_BAD_PARAM);
	set(change(r, TPI, HCA_TP_ATTR_RTO), HCA_TPC_RTO_BASE, 1);
	assert_int_equal(modify(r, TPI), HCA_STAT_BAD_PARAM);
	/* the peer reads packets by these */
	set(change(r, TPI, HCA_TP_ATTR_PORTS), HCA_TPC_FLAGS, HCA_TP_FLAG_TAID);
	assert_int_equal(modify(r, TPI), HCA_STAT_BAD_PARAM);
	/* another address is another peer */
	change(r, TPI, HCA_TP_ATTR_PATH)->path = rig_path(3);
	assert_int_equal(modify(r, TPI), HCA_STAT_BAD_PARAM);
	set(change(r, TPI, HCA_TP_ATTR_TPG), HCA_TPC_GROUP, 9);
	assert_int_equal(modify(r, TPI), HCA_STAT_BAD_PARAM);
	assert_memory_equal(&was, tp_at(r, TPI), sizeof(was));
}

static void
states(void **state)
{
	static const struct {
		uint32_t from, to;
		bool ok;
	} rows[] = {
		{HCA_TPS_PASSIVE, HCA_TPS_PASSIVE, false}, {HCA_TPS_PASSIVE, HCA_TPS_ACTIVE, true},
		{HCA_TPS_PASSIVE, HCA_TPS_DRAIN, true},	   {HCA_TPS_PASSIVE, HCA_TPS_ERROR, true},
		{HCA_TPS_ACTIVE, HCA_TPS_PASSIVE, false},  {HCA_TPS_ACTIVE, HCA_TPS_DRAIN, true},
		{HCA_TPS_DRAIN, HCA_TPS_ACTIVE, false},	   {HCA_TPS_DRAIN, HCA_TPS_ERROR, true},
		{HCA_TPS_ERROR, HCA_TPS_ACTIVE, false},	   {HCA_TPS_ERROR, HCA_TPS_ERROR, false},
	};
	struct rig *r = *state;
	struct hca_tp *tp = tp_at(r, TPI);

	set(tpc(r, TPI), HCA_TPC_STATE, HCA_TPS_PASSIVE);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(TPI)), HCA_STAT_OK);
	assert_int_equal(tp->cfg.state, HCA_TPS_PASSIVE);
	for (unsigned int k = 0; k < RTE_DIM(rows); k++) {
		tp->cfg.state = rows[k].from;
		set(change(r, TPI, HCA_TP_ATTR_STATE), HCA_TPC_STATE, rows[k].to);
		assert_int_equal(modify(r, TPI), rows[k].ok ? HCA_STAT_OK : HCA_STAT_BAD_RES_STATE);
		assert_int_equal(tp->cfg.state, rows[k].ok ? rows[k].to : rows[k].from);
	}
}

/* A new MAC address of the peer, by MODIFY_TP or as a neighbour. */
static void
another_mac(void **state)
{
	struct rig *r = *state;
	const struct hca_tp *tp = tp_at(r, TPI);
	struct hca_mbox_set_neigh *n = (void *)r->in;
	struct hca_tpc *m;

	assert_int_equal(create(r, TPI), HCA_STAT_OK);
	m = change(r, TPI, HCA_TP_ATTR_PATH);
	m->path.mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(UINT64_C(0x02aabbccddee), 0));
	m->path.dmac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(UINT64_C(0x02aabbccddee)));
	assert_int_equal(modify(r, TPI), HCA_STAT_OK);
	assert_memory_equal(tp->encap.tmpl.bytes, "\x02\xaa\xbb\xcc\xdd\xee\2\0\0\0\0\1", 12);
	memset(n, 0, sizeof(*n));
	n->flags = hca_cpu_to_be32(HCA_NEIGH_VALID);
	memcpy(n->dgid, tp->cfg.peer_eid, 16);
	memcpy(n->dmac, "\2\1\2\3\4\5", 6);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_NEIGH, 0), HCA_STAT_OK);
	assert_memory_equal(tp->encap.tmpl.bytes, "\2\1\2\3\4\5\2\0\0\0\0\1", 12);
	assert_int_equal(HCA_QPC_DMAC(hca_be32_to_cpu(query(r, TPI)->path.mac_lo),
				      hca_be32_to_cpu(query(r, TPI)->path.dmac_hi)),
			 UINT64_C(0x020102030405));
}

/* Until its round is over the number is taken, and the memory is there. */
static void
ends_after_a_round(void **state)
{
	struct rig *r = *state;
	struct hca_tp *tp = tp_at(r, TPI);
	uint32_t generation;

	assert_int_equal(create(r, TPI), HCA_STAT_OK);
	generation = tp->cfg.generation;
	rig_post(r, HCA_HCR_MAKE_CTRL(0, 0, HCA_CMD_HW2SW_TP), TPN(TPI), 0, 0, HCA_CMD_POLL_TOKEN);
	rig_poll(r);
	assert_int_equal(tp->cfg.state, HCA_TPS_RESET);
	assert_int_equal(tp->cfg.own_tpn, TPN(TPI));
	assert_non_null(tp->cfg.block);
	assert_true(rig_ctrl(r) & HCA_HCR_GO);
	for (unsigned int i = 0; i < 20; i++)
		rig_poll(r);
	assert_false(rig_ctrl(r) & HCA_HCR_GO);
	assert_int_equal(tp->cfg.own_tpn, 0);
	assert_null(tp->cfg.block);
	assert_int_equal(tp->cfg.generation, generation);
	/* a new life does not see the old one */
	tp->tx.timeouts = 9;
	assert_int_equal(create(r, TPI), HCA_STAT_OK);
	assert_int_equal(tp->cfg.generation, generation + 1);
	assert_int_equal(tp->tx.timeouts, 0);
}

/* ---- groups ---- */

static int
set_group(struct rig *r, uint32_t group, uint32_t count, uint32_t first)
{
	struct hca_mbox_set_tpg *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	m->count = hca_cpu_to_be32(count);
	for (uint32_t i = 0; i < count && i < HCA_TPG_MAX_TPS; i++)
		m->tpn[i] = hca_cpu_to_be32(TPN(first + i));
	return rig_mbox(r, HCA_CMD_SET_TPG, group);
}

static void
groups(void **state)
{
	struct rig *r = *state;
	struct hca_tpg *g = &r->h->core->ub->tpg[2];

	for (uint32_t i = 1; i <= 4; i++)
		assert_int_equal(create(r, i), HCA_STAT_OK);
	assert_int_equal(set_group(r, 2, 3, 1), HCA_STAT_OK);
	assert_int_equal(g->count, 3);
	assert_int_equal(g->generation, 1);
	assert_int_equal(g->tp[2], 3);
	assert_int_equal(tp_at(r, 3)->cfg.tpg, 3);
	assert_int_equal(hca_tpc_get(query(r, 3), HCA_TPC_GROUP), 3);
	/* 1 leaves, 4 joins */
	assert_int_equal(set_group(r, 2, 3, 2), HCA_STAT_OK);
	assert_int_equal(tp_at(r, 1)->cfg.tpg, 0);
	assert_int_equal(tp_at(r, 4)->cfg.tpg, 3);
	assert_int_equal(g->generation, 1);
	/* by its own context */
	set(change(r, 1, HCA_TP_ATTR_TPG), HCA_TPC_GROUP, 3);
	assert_int_equal(modify(r, 1), HCA_STAT_OK);
	assert_int_equal(g->count, 4);
	assert_int_equal(g->tp[3], 1);
	set(change(r, 1, HCA_TP_ATTR_TPG), HCA_TPC_GROUP, 0);
	assert_int_equal(modify(r, 1), HCA_STAT_OK);
	assert_int_equal(g->count, 3);
	/* a TP that ends leaves */
	assert_int_equal(destroy(r, 2), HCA_STAT_OK);
	assert_int_equal(g->count, 2);
	assert_int_equal(g->tp[0], 3);
	assert_int_equal(set_group(r, 2, 0, 0), HCA_STAT_OK);
	assert_int_equal(g->count, 0);
	assert_int_equal(tp_at(r, 4)->cfg.tpg, 0);
	assert_int_equal(set_group(r, 2, 0, 0), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(set_group(r, 2, 1, 4), HCA_STAT_OK);
	assert_int_equal(g->generation, 2);
}

static void
groups_that_are_refused(void **state)
{
	struct rig *r = *state;
	struct hca_mbox_set_tpg *m = (void *)r->in;

	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(create(r, i), HCA_STAT_OK);
	tpc(r, 4)->path = rig_path(9);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_TP, TPN(4)), HCA_STAT_OK);
	assert_int_equal(set_group(r, 8, 1, 1), HCA_STAT_BAD_INDEX);
	assert_int_equal(set_group(r, 1, 17, 1), HCA_STAT_EXCEED_LIM);
	assert_int_equal(set_group(r, 1, 5, 1), HCA_STAT_BAD_PARAM); /* no TP 5 */
	assert_int_equal(set_group(r, 1, 4, 1), HCA_STAT_BAD_PARAM); /* 4 has another peer */
	memset(m, 0, sizeof(*m));
	m->count = hca_cpu_to_be32(2);
	m->tpn[0] = m->tpn[1] = hca_cpu_to_be32(TPN(1));
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_TPG, 1), HCA_STAT_BAD_PARAM); /* twice */
	assert_int_equal(set_group(r, 1, 2, 1), HCA_STAT_OK);
	assert_int_equal(set_group(r, 2, 2, 2), HCA_STAT_BAD_RES_STATE); /* 2 is in 1 */
	assert_int_equal(set_group(r, 1, 1, 4), HCA_STAT_BAD_RES_STATE); /* another peer */
	set(change(r, 4, HCA_TP_ATTR_TPG), HCA_TPC_GROUP, 2);
	assert_int_equal(modify(r, 4), HCA_STAT_BAD_PARAM);
	assert_int_equal(r->h->core->ub->tpg[1].count, 2);
}

static int
permit(struct rig *r, uint32_t group, uint64_t word)
{
	return rig_cmd(r, HCA_CMD_PERMIT_TPG, 0, group, word, 0);
}

/* Each domain is permitted separately, until it is revoked or ends, or the group ends. */
static void
groups_have_users(void **state)
{
	struct rig *r = *state;
	struct hca_tpg *g = &r->h->core->ub->tpg[2];

	for (uint32_t i = 1; i <= 2; i++)
		assert_int_equal(create(r, i), HCA_STAT_OK);
	assert_int_equal(permit(r, 2, HCA_TPG_PERMIT | 9), HCA_STAT_BAD_RES_STATE);
	assert_int_equal(set_group(r, 2, 2, 1), HCA_STAT_OK);
	assert_false(hca_tpg_is_user(g, 9));
	assert_true(hca_tpg_is_user(g, 0));
	assert_int_equal(permit(r, 2, HCA_TPG_PERMIT | 9), HCA_STAT_OK);
	assert_int_equal(permit(r, 2, HCA_TPG_PERMIT | 2047), HCA_STAT_OK);
	assert_int_equal(permit(r, 2, HCA_TPG_PERMIT | RIG_PAGE), HCA_STAT_OK);
	assert_true(hca_tpg_is_user(g, 9) && hca_tpg_is_user(g, 2047));
	assert_false(hca_tpg_is_user(g, 10) || hca_tpg_is_user(g, 73));
	assert_false(hca_tpg_is_user(&g[1], 9));
	assert_int_equal(permit(r, 2, 9), HCA_STAT_OK);
	assert_false(hca_tpg_is_user(g, 9));
	assert_int_equal(permit(r, 2, 9), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_CLOSE_DOMAIN, 0, RIG_PAGE, 0, 0), HCA_STAT_OK);
	assert_false(hca_tpg_is_user(g, RIG_PAGE));
	assert_true(hca_tpg_is_user(g, 2047));
	/* one of two TPs ends, and the other */
	assert_int_equal(destroy(r, 1), HCA_STAT_OK);
	assert_true(hca_tpg_is_user(g, 2047));
	assert_int_equal(destroy(r, 2), HCA_STAT_OK);
	assert_int_equal(create(r, 1), HCA_STAT_OK);
	assert_int_equal(set_group(r, 2, 1, 1), HCA_STAT_OK);
	assert_false(hca_tpg_is_user(g, 2047));
	assert_int_equal(permit(r, 8, HCA_TPG_PERMIT | 9), HCA_STAT_BAD_INDEX);
	assert_int_equal(permit(r, 2, HCA_TPG_PERMIT), HCA_STAT_BAD_PARAM);
	assert_int_equal(permit(r, 2, HCA_TPG_PERMIT | 0x809), HCA_STAT_BAD_PARAM);
	assert_int_equal(permit(r, 2, UINT64_C(1) << 32 | 9), HCA_STAT_BAD_PARAM);
}

static void
all_go_with_the_device(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(create(r, i), HCA_STAT_OK);
	assert_int_equal(set_group(r, 1, 3, 1), HCA_STAT_OK);
	/* TPs are the driver's */
	assert_int_equal(rig_cmd(r, HCA_CMD_CLOSE_DOMAIN, 0, RIG_PAGE, 0, 0), HCA_STAT_OK);
	assert_int_equal(tp_at(r, 3)->cfg.own_tpn, TPN(3));
	assert_int_equal(rig_cmd(r, HCA_CMD_CLOSE_HCA, 0, 0, 0, 0), HCA_STAT_OK);
	for (uint32_t i = 0; i <= r->h->core->ub->tp_mask; i++)
		assert_int_equal(tp_at(r, i)->cfg.own_tpn, 0);
	assert_int_equal(r->h->core->ub->tpg[1].count, 0);
	assert_int_equal(r->h->core->ub->tp_bytes, 0);
}

/* The device is destroyed with TPs in it (valgrind and the sanitizers look). */
static void
left_alone(void **state)
{
	assert_int_equal(create(*state, TPI), HCA_STAT_OK);
}

static void
unknown_without_ub(void **state)
{
	struct rig *r = rig_new(true);

	for (uint16_t op = HCA_CMD_SW2HW_TP; op <= HCA_CMD_PERMIT_TPG; op++)
		assert_int_equal(rig_mbox(r, op, 5), HCA_STAT_BAD_OP);
	rig_free(r);
}

static int
setup(void **state)
{
	struct rig *r = rig_new_on(RIG_UB, true);

	rig_gid(r);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	rig_free(*state);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(fills_the_context),
		T(every_field_out_of_range),
		T(unknown_bits),
		T(fields_that_do_not_fit_together),
		T(bad_paths),
		T(bad_numbers),
		T(query_says_what_it_does_now),
		T(changes_what_the_mask_names),
		T(changes_that_are_refused),
		T(states),
		T(another_mac),
		T(ends_after_a_round),
		T(groups),
		T(groups_that_are_refused),
		T(groups_have_users),
		T(all_go_with_the_device),
		T(left_alone),
		cmocka_unit_test(unknown_without_ub),
	};

	if (rig_eal() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
