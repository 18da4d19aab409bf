/* SPDX-License-Identifier: BSD-3-Clause */

/* decap and datagrams: Q_Keys, the GSI, multicast groups and members. */

#include <stdlib.h>
#include <string.h>

#include "abi_cmd.h"
#include "ctxmgt/ctxmgt.h"
#include "frame_rig.h"

#define QKEY 0x11112222u
#define MEMBERS 5u

static const uint8_t group4[16] = {[10] = 0xff, 0xff, 224, 1, 2, 3};
static const uint8_t group6[16] = {0xff, 0x0e, [14] = 7, [15] = 9};

static uint8_t frame[FR_FRAME_MAX];

/* QPs 1..MEMBERS are UD. */
static int
setup(void **state)
{
	struct frame_rig *r = frame_rig_new();

	r->h->resp_pool = r->pool;
	for (unsigned int i = 1; i <= MEMBERS; i++) {
		struct hca_qp *qp = i == FR_QPI ? r->qp : fx_qp(r->fx, i, 1, 4, 6, 16);

		qp->cfg.service = HCA_ST_UD;
		qp->cfg.ip4 = 0;
		qp->cfg.qkey = QKEY;
		qp->cfg.pkey = 0xffff;
		qp->cfg.generation = 100 + i;
	}
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	frame_rig_free(*state);
	return 0;
}

static struct fx_edge *
ee(struct frame_rig *r)
{
	return &r->fx->edge[HCA_EDGE_DECAP_EE];
}

static void
forget(struct frame_rig *r)
{
	for (unsigned int i = 0; i < ee(r)->n; i++)
		rte_pktmbuf_free(ee(r)->obj[i]);
	ee(r)->n = 0;
}

static uint64_t
counted(struct frame_rig *r, enum hca_counter c)
{
	return fx_counter(r->fx, HCA_STAGE_DECAP, c);
}
#define COUNTED(r, name) counted(r, HCA_CTR_##name)

/* Receive a datagram for a QPN with this Q_Key; dip NULL: our own address. */
static void
give(struct frame_rig *r, uint32_t qpn, uint32_t qkey, const uint8_t *dip)
{
	struct hca_roce_path p = frame_rig_peer();
	const struct roce_headers h = {.deth = {.qkey = qkey, .src_qpn = 0x777}};

	p.qpn = qpn;
	p.udp.sip[15] = 200;
	if (dip != NULL)
		memcpy(p.udp.dip, dip, 16);
	if (dip != NULL && !hca_gid_is_ip4(dip)) {
		p.udp.ip_version = 6;
		memset(p.udp.sip, 0, 12);
		p.udp.sip[0] = 0x20;
	}
	frame_rig_give(r, frame, frame_rig_from(r, &p, HCA_BTH_UD_SEND_ONLY, &h, 24, frame));
}

static void
poll_all(struct frame_rig *r)
{
	while (hca_decap_poll(r->h, r->now, HCA_BURST) != 0)
		;
}

/* ---- to one QP ---- */

static void
qkeys(void **state)
{
	struct frame_rig *r = *state;
	uint32_t qpn = fx_qpn(FR_QPI);

	give(r, qpn, QKEY, NULL);
	for (unsigned int bit = 0; bit < 32; bit++)
		give(r, qpn, QKEY ^ 1u << bit, NULL);
	give(r, qpn, QKEY, NULL);
	poll_all(r);
	assert_int_equal(ee(r)->n, 2);
	assert_int_equal(COUNTED(r, rx_bad_qkey), 32);
	assert_int_equal(COUNTED(r, rx_bad_source), 0);
	/* a new Q_Key takes effect at once */
	r->qp->cfg.qkey = QKEY + 1;
	give(r, qpn, QKEY, NULL);
	give(r, qpn, QKEY + 1, NULL);
	poll_all(r);
	assert_int_equal(ee(r)->n, 3);
	assert_int_equal(COUNTED(r, rx_bad_qkey), 33);
}

static void
pkeys(void **state)
{
	struct frame_rig *r = *state;

	r->qp->cfg.pkey = 0x8001;
	give(r, fx_qpn(FR_QPI), QKEY, NULL);
	poll_all(r);
	assert_int_equal(ee(r)->n, 0);
	assert_int_equal(COUNTED(r, rx_bad_pkey), 1);
}

/* Datagrams for another host or VLAN, which a port may deliver, are dropped. */
static void
destinations(void **state)
{
	static const uint8_t ours6[16] = {0x20, 1, [15] = 1},
			     ours4[16] = {[10] = 0xff, 0xff, 10, 0, 9, 1};
	static const struct {
		uint8_t gid[16];
		uint16_t tag; /* VLAN id, 0: no tag */
		bool taken;
	} t[] = {
		{{[10] = 0xff, 0xff, 10, 0, 0, 1}, 0, true},
		{{[10] = 0xff, 0xff, 10, 0, 0, 3}, 0, false},
		{{[10] = 0xff, 0xff, 10, 0, 0, 1}, 5, false},
		{{[10] = 0xff, 0xff, 10, 0, 9, 1}, 5, true},
		{{[10] = 0xff, 0xff, 10, 0, 9, 1}, 0, false},
		{{[10] = 0xff, 0xff, 10, 0, 9, 1}, 6, false},
		/* a group, but with the number of one QP */
		{{[10] = 0xff, 0xff, 224, 1, 2, 3}, 0, false},
		{{[10] = 0xff, 0xff, 255, 255, 255, 255}, 0, false},
		{{0x20, 1, [15] = 1}, 0, true},
		{{0x20, 1, [15] = 2}, 0, false},
		{{0xff, 0x0e, [14] = 7, [15] = 9}, 0, false},
	};
	struct frame_rig *r = *state;
	unsigned int bad = 0;

	frame_rig_own(r, 1, ours6, HCA_NO_VLAN);
	frame_rig_own(r, 3, ours4, 5);
	hca_mcast_attach(&r->h->core, group4, fx_qpn(FR_QPI));
	for (unsigned int i = 0; i < RTE_DIM(t) * RTE_DIM(t); i++) {
		/* every order of two */
		unsigned int n = i % 2 ? i / 2 % RTE_DIM(t) : i / RTE_DIM(t);
		struct hca_roce_path p = frame_rig_peer();
		const struct roce_headers h = {.deth = {.qkey = QKEY}};

		p.udp.ip_version = hca_gid_is_ip6(t[n].gid) || t[n].gid[0] == 0xff ? 6 : 4;
		memcpy(p.udp.dip, t[n].gid, 16);
		p.udp.vlan = t[n].tag != 0;
		p.udp.vlan_tci = t[n].tag;
		frame_rig_give(r, frame,
			       frame_rig_from(r, &p, HCA_BTH_UD_SEND_ONLY, &h, 24, frame));
		poll_all(r);
		assert_int_equal(ee(r)->n, t[n].taken);
		bad += !t[n].taken;
		assert_int_equal(COUNTED(r, rx_bad_destination), bad);
		forget(r);
	}
}

/* After an address is removed, datagrams to it are dropped. */
static void
address_goes(void **state)
{
	struct hca_mbox_set_gid none = {.index = 0};
	struct frame_rig *r = *state;

	give(r, fx_qpn(FR_QPI), QKEY, NULL);
	poll_all(r);
	assert_int_equal(ee(r)->n, 1);
	hca_gid_put(r->h->ctxmgt, &none);
	give(r, fx_qpn(FR_QPI), QKEY, NULL);
	poll_all(r);
	assert_int_equal(ee(r)->n, 1);
	assert_int_equal(COUNTED(r, rx_bad_destination), 1);
}

/* QPN 1 is the configured QP; its packets carry the well-known Q_Key. */
static void
gsi(void **state)
{
	struct frame_rig *r = *state;

	give(r, HCA_QPN_GSI, HCA_QKEY_GSI, NULL);
	poll_all(r);
	assert_int_equal(COUNTED(r, rx_unknown_qpn), 1);
	r->h->ctxmgt->gsi_qpn = fx_qpn(3);
	give(r, HCA_QPN_GSI, HCA_QKEY_GSI, NULL);
	give(r, HCA_QPN_GSI, QKEY, NULL);
	give(r, fx_qpn(3), HCA_QKEY_GSI, NULL);
	give(r, fx_qpn(3), QKEY, NULL);
	poll_all(r);
	assert_int_equal(ee(r)->n, 2);
	assert_int_equal(COUNTED(r, rx_bad_qkey), 2);
	for (unsigned int i = 0; i < 2; i++) {
		const struct hca_rxd *d = hca_rxd(ee(r)->obj[i]);

		assert_int_equal(d->qpi, 3);
		assert_int_equal(d->generation, 103);
		assert_int_equal((d->flags & HCA_RXD_GSI) != 0, i == 0);
	}
	r->h->qp[3].cfg.state = HCA_QPS_INIT;
	give(r, HCA_QPN_GSI, HCA_QKEY_GSI, NULL);
	poll_all(r);
	assert_int_equal(COUNTED(r, rx_qp_state), 1);
}

/* ---- to groups ---- */

static void
attach(struct frame_rig *r, const uint8_t *gid, unsigned int qpi)
{
	assert_int_equal(hca_mcast_attach(&r->h->core, gid, fx_qpn(qpi)), HCA_STAT_OK);
}

/* Asserts that each of these QPs got a copy of the payload of `frame`, in any order. */
static void
expect_members(struct frame_rig *r, uint32_t members)
{
	uint32_t got = 0;

	for (unsigned int i = 0; i < ee(r)->n; i++) {
		const struct hca_rxd *d = hca_rxd(ee(r)->obj[i]);
		const uint8_t *p = rte_pktmbuf_mtod((struct rte_mbuf *)ee(r)->obj[i], uint8_t *);

		assert_false(got & 1u << d->qpi);
		got |= 1u << d->qpi;
		assert_int_equal(d->generation, 100 + d->qpi);
		assert_int_equal(d->payload_len, 24);
		assert_memory_equal(p + d->payload_off, r->mem, 24);
	}
	assert_int_equal(got, members);
}

static void
members(void **state)
{
	struct frame_rig *r = *state;

	attach(r, group4, 1);
	attach(r, group4, 2);
	attach(r, group4, 4);
	attach(r, group4, 2); /* attaching twice counts once */
	attach(r, group6, 2);
	attach(r, group6, 5);
	give(r, HCA_QPN_MULTICAST, QKEY, group4);
	poll_all(r);
	expect_members(r, 1u << 1 | 1u << 2 | 1u << 4);
	assert_int_equal(COUNTED(r, rx_mcast_copies), 3);
	forget(r);
	give(r, HCA_QPN_MULTICAST, QKEY, group6);
	poll_all(r);
	expect_members(r, 1u << 2 | 1u << 5);
	forget(r);
	assert_int_equal(frame_rig_in_use(r), 0);
	assert_int_equal(hca_mcast_detach(&r->h->core, group4, fx_qpn(2)), HCA_STAT_OK);
	give(r, HCA_QPN_MULTICAST, QKEY, group4);
	poll_all(r);
	expect_members(r, 1u << 1 | 1u << 4);
	assert_int_equal(COUNTED(r, rx_mcast_unattached), 0);
}

/* Each member applies its own checks. */
static void
members_judge(void **state)
{
	struct frame_rig *r = *state;

	for (unsigned int i = 1; i <= MEMBERS; i++)
		attach(r, group4, i);
	r->h->qp[1].cfg.qkey++;
	r->h->qp[2].cfg.pkey = 0x8001;
	r->h->qp[3].cfg.state = HCA_QPS_ERR;
	r->h->qp[4].cfg.local_qpn = 0;
	give(r, HCA_QPN_MULTICAST, QKEY, group4);
	poll_all(r);
	expect_members(r, 1u << 5);
	assert_int_equal(COUNTED(r, rx_bad_qkey), 1);
	assert_int_equal(COUNTED(r, rx_bad_pkey), 1);
	assert_int_equal(COUNTED(r, rx_qp_state), 1);
	assert_int_equal(COUNTED(r, rx_unknown_qpn), 1);
	assert_int_equal(COUNTED(r, rx_mcast_copies), 1);
}

/* No member; an address that is not a group; and the multicast QPN with a unicast address. */
static void
unattached(void **state)
{
	struct frame_rig *r = *state;
	uint8_t other[16];

	attach(r, group4, 1);
	memcpy(other, group4, 16);
	other[15] ^= 1;
	give(r, HCA_QPN_MULTICAST, QKEY, other);
	give(r, HCA_QPN_MULTICAST, QKEY, group6);
	give(r, HCA_QPN_MULTICAST, QKEY, NULL);
	poll_all(r);
	assert_int_equal(ee(r)->n, 0);
	assert_int_equal(COUNTED(r, rx_mcast_unattached), 3);
	assert_int_equal(hca_mcast_detach(&r->h->core, group4, fx_qpn(1)), HCA_STAT_OK);
	give(r, HCA_QPN_MULTICAST, QKEY, group4);
	poll_all(r);
	assert_int_equal(COUNTED(r, rx_mcast_unattached), 4);
	assert_int_equal(frame_rig_in_use(r), 0);
}

/* Groups receive only datagrams. */
static void
other_classes(void **state)
{
	struct frame_rig *r = *state;
	struct hca_roce_path p = frame_rig_peer();

	attach(r, group4, 1);
	p.qpn = HCA_QPN_MULTICAST;
	memcpy(p.udp.dip, group4, 16);
	frame_rig_give(r, frame, frame_rig_from(r, &p, HCA_BTH_RC_WRITE_ONLY, NULL, 24, frame));
	frame_rig_give(r, frame, frame_rig_from(r, &p, HCA_BTH_RC_ACK, NULL, 0, frame));
	poll_all(r);
	assert_int_equal(ee(r)->n, 0);
	assert_int_equal(COUNTED(r, rx_bad_service), 2);
}

/* EE has room for a few copies at a time: each member gets exactly one. */
static void
little_room(void **state)
{
	struct frame_rig *r = *state;
	unsigned int got[MEMBERS + 1] = {0};

	for (unsigned int i = 1; i <= MEMBERS; i++)
		attach(r, group4, i);
	for (unsigned int i = 0; i < 3; i++)
		give(r, HCA_QPN_MULTICAST, QKEY, group4);
	give(r, fx_qpn(1), QKEY, NULL);
	ee(r)->room = 2;
	for (unsigned int polls = 0; polls < 40; polls++) {
		unsigned int before = ee(r)->n;

		hca_decap_poll(r->h, r->now, HCA_BURST);
		assert_true(ee(r)->n <= before + 2);
	}
	assert_int_equal(ee(r)->n, 3 * MEMBERS + 1);
	for (unsigned int i = 0; i < ee(r)->n; i++)
		got[hca_rxd(ee(r)->obj[i])->qpi]++;
	for (unsigned int i = 1; i <= MEMBERS; i++)
		assert_int_equal(got[i], i == 1 ? 4 : 3);
}

/* Between two polls the group is destroyed and its entry is reused. */
static void
group_ends_meanwhile(void **state)
{
	struct frame_rig *r = *state;

	attach(r, group4, 1);
	attach(r, group4, 2);
	give(r, HCA_QPN_MULTICAST, QKEY, group4);
	ee(r)->room = 1;
	hca_decap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(ee(r)->n, 1);
	hca_mcast_forget(&r->h->core, fx_qpn(1));
	hca_mcast_forget(&r->h->core, fx_qpn(2));
	hca_mcast_reap(&r->h->core);
	for (unsigned int i = 1; i <= MEMBERS; i++)
		attach(r, group6, i);
	poll_all(r);
	assert_int_equal(ee(r)->n, 1);
	forget(r);
	assert_int_equal(frame_rig_in_use(r), 0);
}

/* Without buffers for copies: counted, and the frame itself is freed. */
static void
no_buffers(void **state)
{
	struct frame_rig *r = *state;
	struct rte_mbuf *m[FR_MBUFS];
	unsigned int n = 0;

	attach(r, group4, 1);
	attach(r, group4, 2);
	give(r, HCA_QPN_MULTICAST, QKEY, group4);
	while ((m[n] = rte_pktmbuf_alloc(r->pool)) != NULL)
		n++;
	poll_all(r);
	assert_int_equal(ee(r)->n, 0);
	assert_int_equal(COUNTED(r, rx_mcast_no_buffer), 2);
	while (n-- != 0)
		rte_pktmbuf_free(m[n]);
	assert_int_equal(frame_rig_in_use(r), 0);
}

/* Frames that wait for room are freed with the HCA. */
static void
ends_with_frames(void **state)
{
	struct frame_rig *r = *state;

	for (unsigned int i = 1; i <= MEMBERS; i++)
		attach(r, group4, i);
	give(r, HCA_QPN_MULTICAST, QKEY, group4);
	ee(r)->room = 1;
	hca_decap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(frame_rig_in_use(r), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(qkeys),
		T(pkeys),
		T(destinations),
		T(address_goes),
		T(gsi),
		T(members),
		T(members_judge),
		T(unattached),
		T(other_classes),
		T(little_room),
		T(group_ends_meanwhile),
		T(no_buffers),
		T(ends_with_frames),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
