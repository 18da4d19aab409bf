/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * decap alone: which frames go to EE and which to req_rx; every refused frame is counted once,
 * under its reason, and freed.
 */

#include <string.h>

#include "frame/decap.h"
#include "frame_rig.h"

#define L3 HCA_ETH_LEN
#define UDP (L3 + HCA_IPV4_LEN)
#define BTH (UDP + HCA_UDP_LEN)

static uint8_t frame[FR_FRAME_MAX];

static struct frame_rig *
rig(void **state)
{
	return *state;
}

static int
setup(void **state)
{
	*state = frame_rig_new();
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

static struct fx_edge *
req_rx(struct frame_rig *r)
{
	return &r->fx->edge[HCA_EDGE_DECAP_REQ_RX];
}

static uint64_t
all_counted(struct frame_rig *r)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < HCA_CTR_N; i++)
		if (i != HCA_CTR_port_rcv_data && i != HCA_CTR_rcvd_pkts &&
		    i != HCA_CTR_np_ecn_marked_roce_packets)
			n += fx_counter(r->fx, HCA_STAGE_DECAP, i);
	return n;
}

/* Receive `frame`: it must be dropped, counted only as `why`, and freed. */
static void
dropped_as(struct frame_rig *r, uint32_t len, enum hca_counter why, const char *name)
{
	uint64_t before = fx_counter(r->fx, HCA_STAGE_DECAP, why), all = all_counted(r);
	unsigned int in_use = frame_rig_in_use(r);

	frame_rig_give(r, frame, len);
	assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), 1);
	if (fx_counter(r->fx, HCA_STAGE_DECAP, why) != before + 1 || all_counted(r) != all + 1)
		fail_msg("not counted as %s", name);
	assert_int_equal(ee(r)->n + req_rx(r)->n, 0);
	assert_int_equal(frame_rig_in_use(r), in_use);
}
#define dropped(r, len, why) dropped_as(r, len, HCA_CTR_##why, #why)

/* A valid WRITE ONLY of 32 bytes in `frame`. */
static uint32_t
good(struct frame_rig *r)
{
	return frame_rig_inbound(r, HCA_BTH_RC_WRITE_ONLY, 32, frame);
}

static void
describes(void **state)
{
	struct frame_rig *r = rig(state);
	uint32_t len = frame_rig_inbound(r, HCA_BTH_RC_WRITE_ONLY, 33, frame);
	const struct hca_rxd *d;

	frame_rig_give(r, frame, len);
	assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), 1);
	assert_int_equal(ee(r)->n, 1);
	d = hca_rxd(ee(r)->obj[0]);
	assert_int_equal(d->qpi, FR_QPI);
	assert_int_equal(d->psn, FR_PSN);
	assert_int_equal(d->opcode, HCA_BTH_RC_WRITE_ONLY);
	assert_int_equal(d->flags, HCA_RXD_ACKREQ);
	assert_int_equal(d->pad, 3);
	assert_int_equal(d->ecn, 2);
	assert_int_equal(d->ext_off, BTH + HCA_ROCE_BTH_LEN);
	assert_int_equal(d->payload_off, BTH + HCA_ROCE_BTH_LEN + 16);
	assert_int_equal(d->payload_len, 33);
	assert_int_equal(d->generation, r->qp->cfg.generation);
	assert_ptr_equal(d->info, &hca_roce_opcodes[HCA_BTH_RC_WRITE_ONLY]);
	assert_int_equal(d->l3_off, L3);
	assert_int_equal(FX_COUNTER(r->fx, DECAP, rcvd_pkts), 1);
	assert_int_equal(FX_COUNTER(r->fx, DECAP, port_rcv_data), len);
	assert_int_equal(all_counted(r), 0);
}

static void
sorts_every_opcode(void **state)
{
	struct frame_rig *r = rig(state);
	unsigned int requests = 0, responses = 0;

	for (uint8_t op = 0; op <= HCA_BTH_RC_FETCH_ADD; op++) {
		const struct hca_roce_opcode_info *info = &hca_roce_opcodes[op];
		uint32_t len = frame_rig_inbound(r, op, info->has_payload ? 40 : 0, frame);

		frame_rig_give(r, frame, len);
		*(info->is_request ? &requests : &responses) += 1;
	}
	assert_int_equal(responses, 6);
	while (hca_decap_poll(r->h, r->now, HCA_BURST) != 0)
		;
	assert_int_equal(ee(r)->n, requests);
	assert_int_equal(req_rx(r)->n, responses);
	assert_int_equal(all_counted(r), 0);
}

/* ---- malformed ---- */

static void
every_truncation(void **state)
{
	struct frame_rig *r = rig(state);
	uint32_t len = good(r);

	for (uint32_t n = 1; n < len; n++) {
		uint64_t all = all_counted(r);

		frame_rig_give(r, frame, n);
		assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), 1);
		assert_int_equal(all_counted(r), all + 1);
		assert_int_equal(ee(r)->n + req_rx(r)->n, 0);
	}
	assert_int_equal(frame_rig_in_use(r), 0);
	assert_int_equal(FX_COUNTER(r->fx, DECAP, rx_short) +
				 FX_COUNTER(r->fx, DECAP, rx_bad_length),
			 len - 1);
}

static void
bad_ip(void **state)
{
	struct frame_rig *r = rig(state);
	uint32_t len = good(r);

	frame[12] = 0x88;
	dropped(r, len, rx_not_ip);
	len = good(r);
	frame[L3] = 0x55;
	dropped(r, len, rx_bad_ip);
	frame[L3] = 0x46;
	dropped(r, len, rx_bad_ip);
	frame[L3] = 0x44;
	dropped(r, len, rx_bad_ip);
	len = good(r);
	frame[L3 + 6] = 0x20;
	dropped(r, len, rx_fragment);
	frame[L3 + 6] = 0;
	frame[L3 + 7] = 1;
	dropped(r, len, rx_fragment);
	len = good(r);
	frame[L3 + 9] = 6;
	dropped(r, len, rx_not_udp);
	len = good(r);
	frame[L3 + 2] = 0xff;
	dropped(r, len, rx_bad_length);
	frame[L3 + 2] = 0;
	frame[L3 + 3] = 27;
	dropped(r, len, rx_bad_length);
}

static void
bad_udp_and_bth(void **state)
{
	struct frame_rig *r = rig(state);
	uint32_t len = good(r);

	frame[UDP + 2]++;
	dropped(r, len, rx_not_roce);
	len = good(r);
	frame[UDP + 5]++;
	dropped(r, len, rx_bad_length);
	len = good(r);
	frame[BTH + 1] |= 1;
	dropped(r, len, rx_bad_bth);
	/* not an opcode, or not of RC */
	len = good(r);
	frame[BTH] = 0x2d;
	frame_rig_seal(r, frame, len);
	dropped(r, len, rx_bad_opcode);
	frame[BTH] = 0xff;
	frame_rig_seal(r, frame, len);
	dropped(r, len, rx_bad_opcode);
	/* pad without payload, payload that is not a multiple of 4, payload in an ACK */
	len = frame_rig_inbound(r, HCA_BTH_RC_SEND_ONLY, 0, frame);
	frame[BTH + 1] |= 1 << 4;
	frame_rig_seal(r, frame, len);
	dropped(r, len, rx_bad_pad);
	len = good(r);
	frame[BTH] = HCA_BTH_RC_ACK;
	frame_rig_seal(r, frame, len);
	dropped(r, len, rx_bad_length);
}

/* One bit inverted anywhere in the frame's ICRC coverage or in the ICRC. */
static void
every_bit(void **state)
{
	static const uint8_t variant[] = {L3 + 1,  L3 + 8,  L3 + 10, L3 + 11,
					  UDP + 6, UDP + 7, BTH + 4};
	struct frame_rig *r = rig(state);
	uint32_t len = good(r);

	for (uint32_t bit = 8 * L3; bit < 8 * len; bit++) {
		bool covered = memchr(variant, (int)(bit / 8), sizeof(variant)) == NULL;
		uint64_t all = all_counted(r);

		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		frame_rig_give(r, frame, len);
		hca_decap_poll(r->h, r->now, HCA_BURST);
		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (all_counted(r) != all + covered)
			fail_msg("bit %u of byte %u", bit % 8, bit / 8);
	}
	assert_int_equal(ee(r)->n, 8 * sizeof(variant));
	assert_true(FX_COUNTER(r->fx, DECAP, rx_icrc_encapsulated) > 0);
}

/* Congestion marks of valid packets are counted; the ICRC does not cover these bits. */
static void
congestion_marks(void **state)
{
	struct frame_rig *r = rig(state);
	uint32_t len = good(r);

	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		frame[L3 + 1] = ecn;
		frame_rig_give(r, frame, len);
		assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), 1);
	}
	assert_int_equal(ee(r)->n, 4);
	assert_int_equal(FX_COUNTER(r->fx, DECAP, np_ecn_marked_roce_packets), 1);
}

static void
several_segments(void **state)
{
	struct frame_rig *r = rig(state);
	struct rte_mbuf *more = rte_pktmbuf_alloc(r->pool);

	assert_non_null(more);
	frame_rig_give(r, frame, good(r));
	rte_pktmbuf_append(more, 4);
	assert_int_equal(rte_pktmbuf_chain(r->rx[0], more), 0);
	assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), 1);
	assert_int_equal(FX_COUNTER(r->fx, DECAP, rx_multi_segment), 1);
	assert_int_equal(all_counted(r), 1);
	assert_int_equal(frame_rig_in_use(r), 0);
}

/* ---- whose it is ---- */

static void
qpn(void **state)
{
	struct frame_rig *r = rig(state);
	uint32_t len;

	/* right index but wrong tag; QPN 0, even if the line is free */
	for (unsigned int i = 5; i <= 6; i++) {
		len = good(r);
		frame[BTH + i] ^= 0x10;
		frame_rig_seal(r, frame, len);
		dropped(r, len, rx_unknown_qpn);
	}
	len = good(r);
	memset(frame + BTH + 5, 0, 3);
	frame_rig_seal(r, frame, len);
	dropped(r, len, rx_unknown_qpn);
}

static void
states(void **state)
{
	/* RST INIT RTR RTS SQE SQD ERR */
	static const bool requests[] = {0, 0, 1, 1, 1, 1, 0}, responses[] = {0, 0, 0, 1, 1, 1, 0};
	struct frame_rig *r = rig(state);

	for (uint32_t s = 0; s < HCA_QPS_COUNT; s++) {
		uint32_t len = good(r);

		r->qp->cfg.state = s;
		if (!requests[s]) {
			dropped(r, len, rx_qp_state);
		} else {
			frame_rig_give(r, frame, len);
			hca_decap_poll(r->h, r->now, HCA_BURST);
			assert_int_equal(ee(r)->n, 1);
			rte_pktmbuf_free(ee(r)->obj[--ee(r)->n]);
		}
		len = frame_rig_inbound(r, HCA_BTH_RC_ACK, 0, frame);
		if (!responses[s]) {
			dropped(r, len, rx_qp_state);
		} else {
			frame_rig_give(r, frame, len);
			hca_decap_poll(r->h, r->now, HCA_BURST);
			assert_int_equal(req_rx(r)->n, 1);
			rte_pktmbuf_free(req_rx(r)->obj[--req_rx(r)->n]);
		}
	}
}

static void
service(void **state)
{
	struct frame_rig *r = rig(state);
	uint32_t len = frame_rig_inbound(r, HCA_BTH_UC_WRITE_ONLY, 32, frame);

	dropped(r, len, rx_bad_service);
	len = frame_rig_inbound(r, HCA_BTH_UD_SEND_ONLY, 32, frame);
	dropped(r, len, rx_bad_service);
	len = frame_rig_inbound(r, HCA_BTH_XRC_SEND_ONLY, 32, frame);
	dropped(r, len, rx_bad_service);
	len = frame_rig_inbound(r, HCA_BTH_CNP, 16, frame);
	dropped(r, len, rp_cnp_ignored);
	r->qp->cfg.service = HCA_ST_UC;
	dropped(r, good(r), rx_bad_service);
}

static void
source(void **state)
{
	struct frame_rig *r = rig(state);
	uint32_t len = good(r);

	for (unsigned int i = 12; i < 16; i++) {
		len = good(r);
		frame[L3 + i] ^= 1;
		frame_rig_seal(r, frame, len);
		dropped(r, len, rx_bad_source);
	}
	len = good(r);
	r->qp->cfg.ask_addr = 1;
	r->qp->addr.peer_gid[0][15]++;
	dropped(r, len, rx_bad_source);
}

/* A frame of the peer for another host; a port may deliver such frames. */
static void
not_ours(void **state)
{
	struct frame_rig *r = rig(state);

	for (unsigned int ask = 0; ask < 2; ask++) {
		r->qp->cfg.ask_addr = ask;
		for (unsigned int i = 16; i < 20; i++) {
			uint32_t len = good(r);

			frame[L3 + i] ^= 1;
			frame_rig_seal(r, frame, len);
			dropped(r, len, rx_bad_destination);
			/* both are wrong: not a frame of the peer */
			frame[L3 + 15] ^= 1;
			frame_rig_seal(r, frame, len);
			dropped(r, len, rx_bad_source);
		}
	}
}

static void
pkeys(void **state)
{
	static const struct {
		uint16_t ours, theirs;
		bool match;
	} t[] = {{0xffff, 0xffff, true},  {0xffff, 0x7fff, true},  {0x7fff, 0xffff, true},
		 {0x7fff, 0x7fff, false}, {0xffff, 0xfffe, false}, {0x8001, 0x0001, true},
		 {0x8001, 0x8002, false}, {0x0001, 0x0001, false}};
	struct frame_rig *r = rig(state);

	for (unsigned int i = 0; i < RTE_DIM(t); i++) {
		uint32_t len = good(r);

		r->qp->cfg.pkey = t[i].ours;
		frame[BTH + 2] = t[i].theirs >> 8;
		frame[BTH + 3] = t[i].theirs & 0xff;
		frame_rig_seal(r, frame, len);
		if (!t[i].match) {
			dropped(r, len, rx_bad_pkey);
			continue;
		}
		frame_rig_give(r, frame, len);
		hca_decap_poll(r->h, r->now, HCA_BURST);
		assert_int_equal(ee(r)->n, 1);
		rte_pktmbuf_free(ee(r)->obj[--ee(r)->n]);
	}
}

/* Within a burst, results about a frame must not be applied to a different one. */
static void
mixed_burst(void **state)
{
	struct frame_rig *r = rig(state);
	struct hca_qp *other = fx_qp(r->fx, 2, 1, 4, 6, 16);
	uint32_t len = good(r);

	other->cfg.pkey = 0xffff;
	other->cfg.peer_ip4 = 0x01020304;
	other->cfg.own_ip4 = r->qp->cfg.own_ip4;
	other->cfg.generation = 99;
	frame_rig_give(r, frame, len);
	for (unsigned int i = 0; i < 4; i++) {
		static const uint8_t at[] = {L3 + 13, L3 + 18, BTH + 3, BTH + 5};

		len = good(r);
		frame[at[i]] ^= 1;
		frame_rig_seal(r, frame, len);
		frame_rig_give(r, frame, len);
		len = good(r);
		frame_rig_give(r, frame, len);
	}
	/* the other QP's frame, from our QP's peer and then from its own */
	frame[BTH + 7] = 2;
	frame_rig_seal(r, frame, len);
	frame_rig_give(r, frame, len);
	memcpy(frame + L3 + 12, &other->cfg.peer_ip4, 4);
	frame_rig_seal(r, frame, len);
	frame_rig_give(r, frame, len);
	assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), 11);
	assert_int_equal(ee(r)->n, 6);
	assert_int_equal(hca_rxd(ee(r)->obj[5])->qpi, 2);
	assert_int_equal(hca_rxd(ee(r)->obj[5])->generation, 99);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(hca_rxd(ee(r)->obj[i])->generation, r->qp->cfg.generation);
	assert_int_equal(FX_COUNTER(r->fx, DECAP, rx_bad_source), 2);
	assert_int_equal(FX_COUNTER(r->fx, DECAP, rx_bad_destination), 1);
	assert_int_equal(FX_COUNTER(r->fx, DECAP, rx_bad_pkey), 1);
	assert_int_equal(FX_COUNTER(r->fx, DECAP, rx_unknown_qpn), 1);
}

/* EE refuses an RC opcode that does not exist, but only from the right peer. */
static void
unknown_opcode(void **state)
{
	struct frame_rig *r = rig(state);
	uint32_t len = good(r);
	const struct hca_rxd *d;

	frame[BTH] = 0x1f;
	dropped(r, len, rx_icrc_encapsulated);
	frame_rig_seal(r, frame, len);
	frame_rig_give(r, frame, len);
	hca_decap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(ee(r)->n, 1);
	d = hca_rxd(ee(r)->obj[0]);
	assert_int_equal(d->opcode, 0x1f);
	assert_int_equal(d->payload_len, 0);
	assert_int_equal(((const struct hca_roce_opcode_info *)d->info)->kind, HCA_PKT_NONE);
	rte_pktmbuf_free(ee(r)->obj[--ee(r)->n]);
	frame[L3 + 15]++;
	frame_rig_seal(r, frame, len);
	dropped(r, len, rx_bad_source);
}

/* ---- room ---- */

static void
respects_room(void **state)
{
	static const struct {
		unsigned int ee, req_rx, budget, asks;
	} t[] = {{100, 100, 32, 32},
		 {100, 7, 32, 7},
		 {5, 100, 32, 5},
		 {100, 100, 3, 3},
		 {100, 100, 100, 32}};
	struct frame_rig *r = rig(state);
	unsigned int taken = 0;

	for (unsigned int i = 0; i < 100; i++)
		frame_rig_give(r, frame, good(r));
	for (unsigned int i = 0; i < RTE_DIM(t); i++) {
		ee(r)->room = t[i].ee;
		req_rx(r)->room = t[i].req_rx;
		assert_int_equal(hca_decap_poll(r->h, r->now, t[i].budget), t[i].asks);
		assert_int_equal(r->asked, t[i].asks);
		taken += t[i].asks;
		assert_int_equal(ee(r)->n, taken);
	}
	/* no room: the port is not asked */
	r->asked = 1000;
	req_rx(r)->room = 0;
	assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), 0);
	assert_int_equal(r->asked, 1000);
}

/* With several wires a poll takes up to half a burst more, as far as there is room. */
static void
burst_and_a_half(void **state)
{
	static const struct {
		unsigned int given, room, taken, asks;
	} t[] = {{20, 100, 20, 48},  {32, 100, 32, 48}, {40, 100, 40, 48},
		 {100, 100, 48, 48}, {0, 7, 7, 7},	{0, 100, 45, 48}};
	static const struct hca_wire_ops roce = {.wire = HCA_WIRE_ROCE,
						 .take = hca_decap_roce_take,
						 .judge = hca_decap_roce_judge};
	struct frame_rig *r = rig(state);
	unsigned int taken = 0;

	hca_decap_fini(r->h);
	r->h->wire[HCA_WIRE_ROCE] = &roce;
	r->h->mixed = true;
	r->h->edge[HCA_EDGE_DECAP_TPR].process = r->h->edge[HCA_EDGE_DECAP_EE].process;
	assert_int_equal(hca_decap_init(r->h), 0);
	for (unsigned int i = 0; i < RTE_DIM(t); i++) {
		for (unsigned int n = 0; n < t[i].given; n++)
			frame_rig_give(r, frame, good(r));
		r->fx->edge[HCA_EDGE_DECAP_TPR].room = t[i].room;
		assert_int_equal(hca_decap_poll(r->h, r->now, HCA_BURST), t[i].taken);
		assert_int_equal(r->asked, t[i].asks);
		taken += t[i].taken;
		assert_int_equal(ee(r)->n, taken);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(describes),
		T(sorts_every_opcode),
		T(every_truncation),
		T(bad_ip),
		T(bad_udp_and_bth),
		T(every_bit),
		T(congestion_marks),
		T(several_segments),
		T(qpn),
		T(states),
		T(service),
		T(source),
		T(not_ours),
		T(pkeys),
		T(mixed_burst),
		T(unknown_opcode),
		T(respects_room),
		T(burst_and_a_half),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
