/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * decap: services and their packets, and permitted sources: IPv6, VLANs, the alternate path.
 * Congestion marks and notifications.
 */

#include <string.h>

#include "ctxmgt/ctxmgt.h"
#include "engine/migrate.h"
#include "frame_rig.h"

#include "cc/cc.h"
#include "queues/eq.h"

static uint8_t frame[FR_FRAME_MAX];

/* The peer's addresses on the path in use and on the other one. */
static const uint8_t ip4[2][16] = {{[10] = 0xff, 0xff, 10, 0, 0, 2},
				   {[10] = 0xff, 0xff, 10, 0, 9, 2}};
static const uint8_t ip6[2][16] = {{0xfe, 0x80, [15] = 2}, {0x20, 1, [15] = 2}};

static int
setup(void **state)
{
	struct frame_rig *r = frame_rig_new();

	memcpy(r->qp->addr.peer_gid[0], ip4[0], 16);
	r->second.tmpl = r->qp->encap.tmpl;
	r->qp->addr.pkey[0] = r->qp->addr.pkey[1] = 0xffff;
	r->qp->addr.mig = HCA_MIG_MIGRATED;
	if (r->h->eqs == NULL)
		assert_int_equal(hca_eqs_init(&r->h->core), 0);
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	struct frame_rig *r = *state;

	hca_eqs_fini(&r->h->core);
	frame_rig_free(r);
	return 0;
}

static void
take(struct frame_rig *r, enum hca_edge_id e, struct hca_rxd *out)
{
	struct fx_edge *edge = &r->fx->edge[e];

	assert_int_equal(edge->n, 1);
	if (out != NULL)
		*out = *hca_rxd(edge->obj[0]);
	rte_pktmbuf_free(edge->obj[0]);
	edge->n = 0;
}

static uint64_t
counted(struct frame_rig *r, enum hca_counter c)
{
	return fx_counter(r->fx, HCA_STAGE_DECAP, c);
}

/* Receive `frame`: it must be dropped as `why` or, for HCA_CTR_N, passed to this edge. */
static void
expect(struct frame_rig *r, uint32_t len, enum hca_edge_id edge, enum hca_counter why,
       struct hca_rxd *out)
{
	uint64_t before = why != HCA_CTR_N ? counted(r, why) : 0;

	frame_rig_give(r, frame, len);
	assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), 1);
	if (why == HCA_CTR_N) {
		take(r, edge, out);
		return;
	}
	if (counted(r, why) != before + 1)
		fail_msg("not counted as %s", hca_counter_name(why));
	assert_int_equal(r->fx->edge[HCA_EDGE_DECAP_EE].n + r->fx->edge[HCA_EDGE_DECAP_REQ_RX].n,
			 0);
	assert_int_equal(frame_rig_in_use(r), 0);
}

static void
passes(struct frame_rig *r, uint32_t len, struct hca_rxd *out)
{
	expect(r, len, HCA_EDGE_DECAP_EE, HCA_CTR_N, out);
}

static void
refused(struct frame_rig *r, uint32_t len, enum hca_counter why)
{
	expect(r, len, HCA_EDGE_DECAP_EE, why, NULL);
}

static uint32_t
from(struct frame_rig *r, const struct hca_roce_path *p)
{
	return frame_rig_from(r, p, HCA_BTH_RC_WRITE_ONLY, NULL, 32, frame);
}

/* ---- services ---- */

static enum hca_counter
verdict(uint8_t service, const struct hca_roce_opcode_info *op)
{
	static const uint8_t wants[HCA_ST_COUNT] = {
		[HCA_ST_RC] = HCA_TRANSPORT_RC,	      [HCA_ST_UC] = HCA_TRANSPORT_UC,
		[HCA_ST_RD] = HCA_TRANSPORT_RD,	      [HCA_ST_UD] = HCA_TRANSPORT_UD,
		[HCA_ST_XRC_INI] = HCA_TRANSPORT_XRC, [HCA_ST_XRC_TGT] = HCA_TRANSPORT_XRC,
	};

	if (op->kind == HCA_PKT_CNP)
		return HCA_CTR_rp_cnp_ignored;
	if (op->transport != wants[service] || (service == HCA_ST_XRC_INI && op->is_request) ||
	    (service == HCA_ST_XRC_TGT && op->is_response))
		return HCA_CTR_rx_bad_service;
	return HCA_CTR_N;
}

/* Every opcode, sent to a QP of every service. */
static void
every_opcode_and_service(void **state)
{
	static const uint8_t services[] = {HCA_ST_RC, HCA_ST_UC, HCA_ST_UD, HCA_ST_XRC_INI,
					   HCA_ST_XRC_TGT};
	const struct hca_roce_path p = frame_rig_peer();
	struct frame_rig *r = *state;
	const uint64_t addresses = r->qp->cfg.ip4;
	unsigned int passed = 0;

	for (unsigned int s = 0; s < RTE_DIM(services); s++) {
		r->qp->cfg.service = services[s];
		r->qp->cfg.ip4 = services[s] == HCA_ST_UD ? 0 : addresses;
		for (unsigned int code = 0; code < 256; code++) {
			const struct hca_roce_opcode_info *op = &hca_roce_opcodes[code];
			enum hca_counter why = verdict(services[s], op);

			if (!op->valid)
				continue;
			expect(r,
			       frame_rig_from(r, &p, (uint8_t)code, NULL, op->has_payload ? 16 : 0,
					      frame),
			       op->is_response ? HCA_EDGE_DECAP_REQ_RX : HCA_EDGE_DECAP_EE, why,
			       NULL);
			passed += why == HCA_CTR_N;
		}
	}
	/* RC, XRC with both its ends, UC, UD */
	assert_int_equal(passed, 25 + 25 + 12 + 2);
}

/* A service without packets accepts none. */
static void
no_service(void **state)
{
	static const uint8_t services[] = {HCA_ST_RD, 4, 5};
	struct frame_rig *r = *state;

	for (unsigned int s = 0; s < RTE_DIM(services); s++) {
		r->qp->cfg.service = services[s];
		refused(r, frame_rig_inbound(r, HCA_BTH_RC_SEND_ONLY, 8, frame),
			HCA_CTR_rx_bad_service);
		refused(r, frame_rig_inbound(r, HCA_BTH_UD_SEND_ONLY, 8, frame),
			HCA_CTR_rx_bad_service);
	}
}

/* UC checks the source as RC does. */
static void
uc_source(void **state)
{
	struct hca_roce_path p = frame_rig_peer();
	struct frame_rig *r = *state;

	r->qp->cfg.service = HCA_ST_UC;
	p.udp.sip[15] = 9;
	refused(r, frame_rig_from(r, &p, HCA_BTH_UC_SEND_ONLY, NULL, 8, frame),
		HCA_CTR_rx_bad_source);
}

/* ---- IPv6 ---- */

static struct hca_roce_path
peer6(void)
{
	struct hca_roce_path p = frame_rig_peer();

	p.udp.ip_version = 6;
	memcpy(p.udp.sip, ip6[0], 16);
	memcpy(p.udp.dip, ip6[0], 16);
	p.udp.dip[15] = 1;
	p.udp.flow_label = 0x12345;
	return p;
}

/* Set the QP's own address of a path to the destination of p. */
static void
own_end(struct frame_rig *r, uint32_t path, const struct hca_roce_path *p)
{
	struct hca_roce_path out = *p;

	memcpy(out.udp.sip, p->udp.dip, 16);
	memcpy(out.udp.dip, p->udp.sip, 16);
	assert_int_equal(
		hca_roce_template_fill(&out, path == 0 ? &r->qp->encap.tmpl : &r->second.tmpl), 0);
}

static void
to_ip6(struct frame_rig *r)
{
	const struct hca_roce_path p = peer6();

	own_end(r, 0, &p);
	r->qp->cfg.ask_addr = 1;
	r->qp->cfg.peer_ip4 = 0;
	memcpy(r->qp->addr.peer_gid[0], ip6[0], 16);
}

static void
over_ip6(void **state)
{
	struct frame_rig *r = *state;
	struct hca_roce_path p = peer6();
	struct hca_rxd d;

	to_ip6(r);
	passes(r, from(r, &p), &d);
	assert_int_equal(d.l3_off, HCA_ETH_LEN);
	assert_int_equal(d.ext_off, HCA_ETH_LEN + HCA_IPV6_LEN + HCA_UDP_LEN + HCA_ROCE_BTH_LEN);
	assert_int_equal(d.payload_len, 32);
	assert_int_equal(d.psn, FR_PSN);
	assert_int_equal(d.ecn, 2);
	assert_int_equal(d.flags, HCA_RXD_ACKREQ | HCA_RXD_ASKED);
	for (unsigned int i = 0; i < 16; i++) {
		p.udp.sip[i] ^= 1;
		refused(r, from(r, &p), HCA_CTR_rx_bad_source);
		p.udp.sip[i] ^= 1;
		p.udp.dip[i] ^= 1;
		refused(r, from(r, &p), HCA_CTR_rx_bad_destination);
		p.udp.dip[i] ^= 1;
	}
}

/* IPv4 and IPv6 addresses are not confused, even if their bytes are equal. */
static void
versions_do_not_mix(void **state)
{
	struct frame_rig *r = *state;
	struct hca_roce_path p4 = frame_rig_peer(), p6 = peer6();

	refused(r, from(r, &p6), HCA_CTR_rx_bad_source);
	to_ip6(r);
	refused(r, from(r, &p4), HCA_CTR_rx_bad_source);
	/* IPv4 source 0.0.0.0, where zero would stand for "IPv6" */
	memset(p4.udp.sip + 12, 0, 4);
	refused(r, from(r, &p4), HCA_CTR_rx_bad_source);
	/* the last four bytes of the IPv6 address as IPv4 source */
	memcpy(p4.udp.sip + 12, ip6[0] + 12, 4);
	refused(r, from(r, &p4), HCA_CTR_rx_bad_source);
}

/* ---- VLANs ---- */

/* Frames of one burst: the tag of each is checked. */
static void
vlans(void **state)
{
	static const struct {
		uint16_t ours;
		bool tagged;
		uint16_t tci;
		bool match;
	} t[] = {
		{0, false, 0, true},	      {0, true, 0, true},
		{0, true, 5 << 13, true},     {0, true, 7, false},
		{7, true, 7, true},	      {7, true, 7 | 3 << 13, true},
		{7, true, 7 | 1 << 12, true}, {7, true, 8, false},
		{7, true, 0, false},	      {7, false, 0, false},
		{4094, true, 4094, true},     {4094, true, 0xfff, false},
	};
	struct frame_rig *r = *state;

	for (unsigned int version = 4; version <= 6; version += 2) {
		struct hca_roce_path p = version == 4 ? frame_rig_peer() : peer6();

		if (version == 6)
			to_ip6(r);
		for (unsigned int i = 0; i < RTE_DIM(t); i++) {
			struct hca_rxd d;

			r->qp->cfg.vlan = r->qp->addr.vlan[0] = t[i].ours;
			p.udp.vlan = t[i].tagged;
			p.udp.vlan_tci = t[i].tci;
			if (!t[i].match) {
				refused(r, from(r, &p), HCA_CTR_rx_bad_source);
				continue;
			}
			passes(r, from(r, &p), &d);
			assert_int_equal(d.vlan, t[i].tagged ? t[i].tci : 0);
			assert_int_equal(d.l3_off, HCA_ETH_LEN + 4 * t[i].tagged);
		}
	}
}

/* A good untagged frame does not make a tagged one of the same burst pass. */
static void
vlans_in_one_burst(void **state)
{
	struct hca_roce_path p = frame_rig_peer();
	struct frame_rig *r = *state;

	frame_rig_give(r, frame, from(r, &p));
	p.udp.vlan = true;
	p.udp.vlan_tci = 9;
	frame_rig_give(r, frame, from(r, &p));
	p.udp.vlan = false;
	frame_rig_give(r, frame, from(r, &p));
	assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), 3);
	assert_int_equal(r->fx->edge[HCA_EDGE_DECAP_EE].n, 2);
	assert_int_equal(counted(r, HCA_CTR_rx_bad_source), 1);
}

/* ---- the alternate path ---- */

/* Only an armed QP accepts the alternate path, and marks its packets, also in bursts. */
static void
alternate(void **state)
{
	static const uint32_t mig[] = {HCA_MIG_MIGRATED, HCA_MIG_REARM, HCA_MIG_ARMED};
	struct frame_rig *r = *state;

	for (unsigned int v6 = 0; v6 < 2; v6++) {
		struct hca_roce_path p = v6 ? peer6() : frame_rig_peer();

		memcpy(p.udp.sip, v6 ? ip6[1] : ip4[1], 16);
		memcpy(r->qp->addr.peer_gid[1], p.udp.sip, 16);
		own_end(r, 1, &p);
		for (unsigned int i = 0; i < 2 * RTE_DIM(mig); i++) {
			struct hca_rxd d;

			r->qp->addr.mig = mig[i / 2];
			r->qp->addr.alt_valid = i & 1;
			if (mig[i / 2] != HCA_MIG_ARMED || !(i & 1)) {
				refused(r, from(r, &p), HCA_CTR_rx_bad_source);
				continue;
			}
			passes(r, from(r, &p), &d);
			assert_int_equal(d.flags,
					 HCA_RXD_ACKREQ | HCA_RXD_ALT_PATH | HCA_RXD_ASKED);
			/* the path has its own VLAN */
			r->qp->addr.vlan[1] = 3;
			refused(r, from(r, &p), HCA_CTR_rx_bad_source);
			r->qp->addr.vlan[1] = 0;
			/* its own local address */
			p.udp.dip[15]++;
			refused(r, from(r, &p), HCA_CTR_rx_bad_source);
			p.udp.dip[15]--;
			/* and its own P_Key */
			r->qp->addr.pkey[1] = 0x8001;
			refused(r, from(r, &p), HCA_CTR_rx_bad_pkey);
			p.pkey = 0x8001;
			passes(r, from(r, &p), &d);
			r->qp->addr.pkey[1] = p.pkey = 0xffff;
		}
	}
}

static void
alternate_in_one_burst(void **state)
{
	static const bool alt[] = {false, true, true, false, true, false};
	struct frame_rig *r = *state;
	struct fx_edge *ee = &r->fx->edge[HCA_EDGE_DECAP_EE];

	memcpy(r->qp->addr.peer_gid[1], ip4[1], 16);
	r->qp->addr.mig = HCA_MIG_ARMED;
	r->qp->addr.alt_valid = 1;
	for (unsigned int i = 0; i < RTE_DIM(alt); i++) {
		struct hca_roce_path p = frame_rig_peer();

		memcpy(p.udp.sip, ip4[alt[i]], 16);
		frame_rig_give(r, frame, from(r, &p));
	}
	hca_decap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(ee->n, RTE_DIM(alt));
	for (unsigned int i = 0; i < RTE_DIM(alt); i++)
		assert_int_equal((hca_rxd(ee->obj[i])->flags & HCA_RXD_ALT_PATH) != 0, alt[i]);
}

/* After a migration the roles are exchanged. */
static void
second_path_in_use(void **state)
{
	struct frame_rig *r = *state;
	struct hca_roce_path p = frame_rig_peer();
	struct hca_rxd d;

	memcpy(r->qp->addr.peer_gid[1], ip4[1], 16);
	memcpy(&r->qp->cfg.peer_ip4, ip4[1] + 12, 4);
	r->qp->encap.path = 1;
	refused(r, from(r, &p), HCA_CTR_rx_bad_source);
	r->qp->addr.mig = HCA_MIG_ARMED;
	r->qp->addr.alt_valid = 1;
	passes(r, from(r, &p), &d);
	assert_true(d.flags & HCA_RXD_ALT_PATH);
	memcpy(p.udp.sip, ip4[1], 16);
	passes(r, from(r, &p), &d);
	assert_false(d.flags & HCA_RXD_ALT_PATH);
}

/* ---- migration ---- */

static void
armed(struct frame_rig *r, const uint8_t peer[16])
{
	memcpy(r->qp->addr.peer_gid[1], peer, 16);
	r->qp->cfg.ask_addr = 1;
	r->qp->addr.ack_timeout[1] = 9;
	r->qp->addr.alt_valid = 1;
	r->qp->encap.path = 0;
	r->qp->addr.mig = HCA_MIG_ARMED;
}

/* MigReq on the other path migrates an armed QP; the old path is then refused. */
static void
peer_migrates(void **state)
{
	struct frame_rig *r = *state;
	struct hca_roce_path p = frame_rig_peer();

	armed(r, ip4[1]);
	memcpy(p.udp.sip, ip4[1], 16);
	p.migreq = true;
	frame_rig_give(r, frame, from(r, &p));
	frame_rig_give(r, frame, from(r, &p));
	assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), 2);
	assert_int_equal(r->fx->edge[HCA_EDGE_DECAP_EE].n, 2);
	for (unsigned int i = 0; i < 2; i++)
		rte_pktmbuf_free(r->fx->edge[HCA_EDGE_DECAP_EE].obj[i]);
	r->fx->edge[HCA_EDGE_DECAP_EE].n = 0;
	assert_int_equal(r->qp->addr.mig, HCA_MIG_MIGRATED);
	assert_int_equal(r->qp->encap.path, 1);
	assert_int_equal(r->qp->cfg.ack_timeout, 9);
	assert_int_equal(counted(r, HCA_CTR_path_migrations), 1);
	memcpy(p.udp.sip, ip4[0], 16);
	refused(r, from(r, &p), HCA_CTR_rx_bad_source);
}

/* The local address tells two paths to the same peer apart. */
static void
same_peer_on_both_paths(void **state)
{
	static const uint8_t ours[16] = {[10] = 0xff, 0xff, 10, 0, 9, 1};
	struct frame_rig *r = *state;
	struct hca_roce_path p = frame_rig_peer(), out = frame_rig_peer();
	struct hca_rxd d;

	memcpy(out.udp.sip, ours, 16);
	assert_int_equal(hca_roce_template_fill(&out, &r->second.tmpl), 0);
	p.migreq = true;
	armed(r, ip4[0]);
	refused(r, from(r, &p), HCA_CTR_rx_bad_migration);
	assert_int_equal(r->qp->encap.path, 0);
	memcpy(p.udp.dip, ours, 16);
	passes(r, from(r, &p), &d);
	assert_int_equal(r->qp->encap.path, 1);
	assert_int_equal(r->qp->addr.mig, HCA_MIG_MIGRATED);
}

/* Every state, with and without MigReq, from both addresses. */
static void
migreq_in_each_state(void **state)
{
	static const struct {
		uint32_t mig, after;
		bool migreq, other;
		enum hca_counter why;
	} t[] = {
		{HCA_MIG_MIGRATED, HCA_MIG_MIGRATED, false, false, HCA_CTR_N},
		{HCA_MIG_MIGRATED, HCA_MIG_MIGRATED, true, false, HCA_CTR_N},
		{HCA_MIG_MIGRATED, HCA_MIG_MIGRATED, true, true, HCA_CTR_rx_bad_source},
		{HCA_MIG_REARM, HCA_MIG_REARM, true, false, HCA_CTR_N},
		{HCA_MIG_REARM, HCA_MIG_REARM, true, true, HCA_CTR_rx_bad_source},
		{HCA_MIG_REARM, HCA_MIG_REARM, false, true, HCA_CTR_rx_bad_source},
		{HCA_MIG_REARM, HCA_MIG_ARMED, false, false, HCA_CTR_N},
		{HCA_MIG_ARMED, HCA_MIG_ARMED, false, false, HCA_CTR_N},
		{HCA_MIG_ARMED, HCA_MIG_ARMED, false, true, HCA_CTR_N},
		{HCA_MIG_ARMED, HCA_MIG_ARMED, true, false, HCA_CTR_rx_bad_migration},
		{HCA_MIG_ARMED, HCA_MIG_MIGRATED, true, true, HCA_CTR_N},
		{HCA_MIG_HELD, HCA_MIG_HELD, true, false, HCA_CTR_N},
		{HCA_MIG_HELD, HCA_MIG_HELD, false, true, HCA_CTR_rx_bad_source},
	};
	struct frame_rig *r = *state;
	struct hca_rxd d;

	for (unsigned int i = 0; i < RTE_DIM(t); i++) {
		struct hca_roce_path p = frame_rig_peer();

		armed(r, ip4[1]);
		r->qp->addr.mig = t[i].mig;
		p.migreq = t[i].migreq;
		memcpy(p.udp.sip, ip4[t[i].other], 16);
		expect(r, from(r, &p), HCA_EDGE_DECAP_EE, t[i].why, &d);
		assert_int_equal(r->qp->addr.mig, t[i].after);
		assert_int_equal(r->qp->encap.path,
				 t[i].mig == HCA_MIG_ARMED && t[i].after == HCA_MIG_MIGRATED);
	}
	/* without a second path MigReq has no effect */
	armed(r, ip4[1]);
	r->qp->addr.alt_valid = 0;
	assert_int_equal(hca_migrate(r->h, HCA_STAGE_REQ_RX, FR_QPI), HCA_MIGRATE_NOT_ARMED);
	assert_int_equal(r->qp->addr.mig, HCA_MIG_ARMED);
}

/* ---- congestion ---- */

static void
marks(void **state)
{
	static const uint8_t ecn[] = {0, 1, 2, 3, 3, 2, 3};
	struct frame_rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(ecn); i++) {
		struct hca_roce_path p = frame_rig_peer();

		p.udp.tclass = 0x40 | ecn[i];
		frame_rig_give(r, frame, from(r, &p));
	}
	hca_decap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(r->fx->edge[HCA_EDGE_DECAP_EE].n, RTE_DIM(ecn));
	assert_int_equal(counted(r, HCA_CTR_np_ecn_marked_roce_packets), 3);
	/* EE is told once; it has not read the message yet */
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_DECAP, HCA_STAGE_EE, FR_QPI),
			 HCA_MSG_MARKED);
	assert_int_equal(counted(r, HCA_CTR_np_cnp_suppressed), 2);
}

/* Only data of a reliable QP asks for a CNP. */
static void
marks_that_ask(void **state)
{
	static const struct {
		uint8_t opcode, service;
		uint32_t len;
		bool asks;
	} t[] = {
		{HCA_BTH_RC_WRITE_MIDDLE, HCA_ST_RC, 256, true},
		{HCA_BTH_RC_READ_RESP_ONLY, HCA_ST_RC, 64, true},
		{HCA_BTH_XRC_SEND_ONLY, HCA_ST_XRC_TGT, 64, true},
		{HCA_BTH_XRC_READ_RESP_ONLY, HCA_ST_XRC_INI, 64, true},
		{HCA_BTH_RC_ACK, HCA_ST_RC, 0, false},
		{HCA_BTH_RC_READ_REQ, HCA_ST_RC, 0, false},
		{HCA_BTH_RC_FETCH_ADD, HCA_ST_RC, 0, false},
		{HCA_BTH_UC_WRITE_MIDDLE, HCA_ST_UC, 256, false},
	};
	struct frame_rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(t); i++) {
		uint64_t unanswered = counted(r, HCA_CTR_np_ecn_marked_unanswered);
		struct hca_roce_path p = frame_rig_peer();

		p.udp.tclass = HCA_ECN_CE;
		r->qp->cfg.service = t[i].service;
		frame_rig_give(r, frame, frame_rig_from(r, &p, t[i].opcode, NULL, t[i].len, frame));
		hca_decap_poll(r->h, r->now, HCA_BURST);
		assert_int_equal(counted(r, HCA_CTR_np_ecn_marked_roce_packets), i + 1);
		assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_DECAP, HCA_STAGE_EE, FR_QPI) != 0,
				 t[i].asks);
		assert_int_equal(counted(r, HCA_CTR_np_ecn_marked_unanswered) - unanswered,
				 !t[i].asks);
	}
}

/* Notifications count only if they come from the peer. */
static void
notifications(void **state)
{
	struct frame_rig *r = *state;
	struct hca_roce_path p = frame_rig_peer();

	refused(r, frame_rig_from(r, &p, HCA_BTH_CNP, NULL, 16, frame), HCA_CTR_rp_cnp_ignored);
	p.udp.sip[15]++;
	refused(r, frame_rig_from(r, &p, HCA_BTH_CNP, NULL, 16, frame), HCA_CTR_rx_bad_service);
	/* a Jetty has no RoCE peer */
	p = frame_rig_peer();
	r->qp->cfg.service = HCA_ST_JETTY;
	refused(r, frame_rig_from(r, &p, HCA_BTH_CNP, NULL, 16, frame), HCA_CTR_rx_bad_service);
}

/* The MigReq bit of a CNP is 0: a QP that waits for the peer to rearm does not take it for that. */
static void
notification_rearms_nothing(void **state)
{
	struct frame_rig *r = *state;
	struct hca_roce_path p = frame_rig_peer();
	uint32_t qpi = (uint32_t)(r->qp - r->h->qp);
	struct hca_rxd d;

	armed(r, ip4[1]);
	r->h->cfg.congestion = "dcqcn";
	assert_int_equal(hca_cc_init(r->h), 0);
	hca_cc_begin(r->h, qpi, r->h->cc_room->number);
	r->qp->addr.mig = HCA_MIG_REARM;
	p.migreq = false;
	memcpy(p.udp.sip, ip4[0], 16);
	expect(r, frame_rig_from(r, &p, HCA_BTH_CNP, NULL, 16, frame), HCA_EDGE_DECAP_REQ_RX,
	       HCA_CTR_N, &d);
	assert_int_equal(r->qp->addr.mig, HCA_MIG_REARM);
	/* READ responses leave before RTS; other answers are not accepted then */
	r->qp->cfg.state = HCA_QPS_RTR;
	expect(r, frame_rig_from(r, &p, HCA_BTH_CNP, NULL, 16, frame), HCA_EDGE_DECAP_REQ_RX,
	       HCA_CTR_N, &d);
	refused(r, frame_rig_from(r, &p, HCA_BTH_RC_ACK, NULL, 0, frame), HCA_CTR_rx_qp_state);
	r->qp->cfg.state = HCA_QPS_INIT;
	refused(r, frame_rig_from(r, &p, HCA_BTH_CNP, NULL, 16, frame), HCA_CTR_rx_qp_state);
	hca_cc_fini(r->h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(every_opcode_and_service),
		T(no_service),
		T(uc_source),
		T(over_ip6),
		T(versions_do_not_mix),
		T(vlans),
		T(vlans_in_one_burst),
		T(alternate),
		T(alternate_in_one_burst),
		T(second_path_in_use),
		T(peer_migrates),
		T(same_peer_on_both_paths),
		T(migreq_in_each_state),
		T(marks),
		T(marks_that_ask),
		T(notifications),
		T(notification_rearms_nothing),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
