/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UB in decap: frames of the usual form and others, runs of frames that differ in their numbers
 * only, and the reason and counter of each refusal.
 */

#include "ub_frame_rig.h"

#include "cc/cc.h"
#include "frame/decap.h"
#include "ub/frame/frame.h"
#include "ub/ub_stage.h"

#define PAYLOAD 40u

struct bench {
	struct frame_rig *r;
	struct hca_decap *d;
	struct hca_ub_path path; /* of the next frames */
	struct hca_ub_headers headers;
	uint8_t frame[FR_FRAME_MAX];
	uint32_t len;
};

static int
setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->r = uf_new();
	b->d = b->r->h->stage_ctx[HCA_STAGE_DECAP];
	b->path = uf_path(false);
	b->headers = (struct hca_ub_headers){
		.rtph = {.last = 1,
			 .opcode = HCA_UB_TP_RTP,
			 .nlp = HCA_UB_NLP_TA,
			 .psn = 0x20,
			 .tpmsn = 0x30},
		.btah = {.opcode = HCA_UB_TA_WRITE, .rc_id = 5},
		.maetah = {.address = 0x1000, .token_id = 3, .length = PAYLOAD},
	};
	*state = b;
	return 0;
}

/* The mbufs of the burst are freed, wherever they went. */
static void
forget(struct bench *b)
{
	for (unsigned int i = 0; i < b->d->n; i++)
		rte_pktmbuf_free(b->d->frame[i]);
	b->d->n = b->d->n_dead = 0;
	b->d->of[HCA_WIRE_UB] = b->d->of_others = 0;
	for (unsigned int e = 0; e < HCA_EDGE_N; e++)
		b->d->out[e].n = 0;
}

static int
teardown(void **state)
{
	struct bench *b = *state;

	forget(b);
	uf_free(b->r);
	free(b);
	return 0;
}

static uint64_t
counted(const struct bench *b, enum hca_counter c)
{
	return fx_counter(b->r->fx, HCA_STAGE_DECAP, c);
}

static void
make(struct bench *b)
{
	struct hca_udp_template t;
	bool payload =
		b->headers.rtph.opcode == HCA_UB_TP_RTP || b->headers.rtph.opcode == HCA_UB_TP_UTP;
	int n;

	assert_int_equal(hca_ub_template_fill(&b->path, &t), 0);
	b->headers.rtph.src_tpn = b->path.src_tpn;
	b->headers.rtph.dst_tpn = b->path.dst_tpn;
	n = ub_build(b->r->h->icrc, &t, &b->headers, b->r->mem, payload ? PAYLOAD : 0, b->frame,
		     sizeof(b->frame));
	assert_true(n > 0);
	b->len = (uint32_t)n;
}

static struct rte_mbuf *
mbuf(struct bench *b)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(b->r->pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)b->len), b->frame, b->len);
	return m;
}

/* The frame as decap.c brings it: by its usual form, or by the general parser. */
static bool
take(struct bench *b, bool usual)
{
	struct rte_mbuf *m = mbuf(b);
	struct hca_wire_view v;
	int rc;

	assert_int_equal(hca_decap_ub_take(b->d, &m, 1), usual);
	if (usual)
		return true;
	rc = hca_wire_parse(b->frame, b->len, &v);
	if (!hca_decap_ub(b->r->h, b->d, m, &v, rc) || b->d->n_dead != 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	return true;
}

static void
judge(struct bench *b)
{
	b->r->h->icrc->crc_burst(b->d->span, b->d->icrc, b->d->n);
	hca_decap_ub_judge(b->r->h, b->d, 0, b->d->n);
}

static unsigned int
passed(const struct bench *b, enum hca_edge_id edge)
{
	return b->d->out[edge].n;
}

/* Take and judge one frame; it is dropped for this reason and no other. */
static void
refused(struct bench *b, enum hca_counter why)
{
	uint64_t before = counted(b, why);

	make(b);
	assert_true(take(b, b->path.udp.vlan == 0));
	judge(b);
	assert_int_equal(counted(b, why), before + 1);
	assert_int_equal(b->d->n_dead, 1);
	assert_int_equal(passed(b, HCA_EDGE_DECAP_TPR) + passed(b, HCA_EDGE_DECAP_TPS), 0);
	forget(b);
}

static void
accepted(struct bench *b, bool usual, enum hca_edge_id edge)
{
	make(b);
	assert_true(take(b, usual));
	judge(b);
	assert_int_equal(b->d->n_dead, 0);
	assert_int_equal(passed(b, edge), 1);
}

/* ---- forms ---- */

static void
fields(void **state)
{
	struct bench *b = *state;
	const struct hca_ub_rxd *r;

	b->headers.rtph.ack = 1;
	b->path.udp.tclass = HCA_ECN_CE;
	accepted(b, true, HCA_EDGE_DECAP_TPR);
	r = hca_ub_rxd(b->d->out[HCA_EDGE_DECAP_TPR].frame[0]);
	assert_int_equal(r->tp, UF_TPI);
	assert_int_equal(r->generation, UF_GENERATION);
	assert_int_equal(r->psn, 0x20);
	assert_int_equal(r->tpmsn, 0x30);
	assert_int_equal(r->port, UF_PORT);
	assert_int_equal(r->opcode, HCA_UB_TP_RTP);
	assert_int_equal(r->first, HCA_UB_TA_WRITE);
	assert_int_equal(r->flags, HCA_UB_RXD_LAST | HCA_UB_RXD_ASK);
	assert_int_equal(counted(b, HCA_CTR_ub_rx_tp_packets), 1);
	assert_int_equal(counted(b, HCA_CTR_ub_rx_ecn_marked), 1);
	/* the peer has not agreed on CNPs */
	assert_int_equal(counted(b, HCA_CTR_ub_ecn_marked_unanswered), 1);
}

static void
ipv6(void **state)
{
	struct bench *b = *state;
	struct hca_tp_cfg *cfg = &uf_tp(b->r)->cfg;

	b->path.udp.ip_version = 6;
	b->path.udp.sip[0] = b->path.udp.dip[0] = cfg->own_eid[0] = cfg->peer_eid[0] = 0x20;
	accepted(b, true, HCA_EDGE_DECAP_TPR);
	forget(b);
	b->path.udp.dip[0] = 0x21;
	refused(b, HCA_CTR_ub_rx_bad_destination);
}

/* Frames with a VLAN tag go through the general parser. */
static void
vlan(void **state)
{
	struct bench *b = *state;

	b->path.udp.vlan = true;
	b->path.udp.vlan_tci = 9;
	refused(b, HCA_CTR_ub_rx_bad_source);
	uf_tp(b->r)->cfg.vlan = 9;
	accepted(b, false, HCA_EDGE_DECAP_TPR);
	forget(b);
	b->path.udp.vlan = false;
	refused(b, HCA_CTR_ub_rx_bad_source);
}

static void
answers(void **state)
{
	struct bench *b = *state;

	b->headers.rtph = (struct hca_ub_rtph){.opcode = HCA_UB_TP_ACK, .psn = 0x20};
	accepted(b, true, HCA_EDGE_DECAP_TPS);
	assert_int_equal(counted(b, HCA_CTR_ub_rx_acks), 1);
}

/* Without a TP: from any address, to an own one. */
static void
datagrams(void **state)
{
	struct bench *b = *state;

	b->path.src_tpn = b->path.dst_tpn = 0;
	b->path.udp.sip[15] = 77;
	b->headers.rtph = (struct hca_ub_rtph){.last = 1, .opcode = HCA_UB_TP_UTP};
	b->headers.btah.opcode = HCA_UB_TA_SEND;
	accepted(b, true, HCA_EDGE_DECAP_TPR);
	assert_int_equal(hca_ub_rxd(b->d->out[HCA_EDGE_DECAP_TPR].frame[0])->tp, HCA_TP_UNRELIABLE);
	assert_int_equal(counted(b, HCA_CTR_ub_rx_utp), 1);
	forget(b);
	b->path.udp.dip[15] = 9;
	refused(b, HCA_CTR_ub_rx_bad_destination);
}

/* ---- runs ---- */

#define RUN 5u

/* Frames that differ in PSN, TPMSN, A and source port. */
static void
take_run(struct bench *b)
{
	struct rte_mbuf *m[RUN];

	for (unsigned int i = 0; i < RUN; i++) {
		b->headers.rtph.psn = 0x20 + i;
		b->headers.rtph.tpmsn = 0x30 + i;
		b->headers.rtph.ack = i == 3;
		b->path.udp.sport = (uint16_t)(UF_PORT + i);
		make(b);
		m[i] = mbuf(b);
	}
	assert_int_equal(hca_decap_ub_take(b->d, m, RUN), RUN);
}

static void
run(void **state)
{
	struct bench *b = *state;

	take_run(b);
	judge(b);
	assert_int_equal(passed(b, HCA_EDGE_DECAP_TPR), RUN);
	assert_int_equal(counted(b, HCA_CTR_ub_rx_tp_packets), RUN);
	for (unsigned int i = 0; i < RUN; i++) {
		const struct hca_ub_rxd *r = hca_ub_rxd(b->d->out[HCA_EDGE_DECAP_TPR].frame[i]);

		assert_int_equal(r->tp, UF_TPI);
		assert_int_equal(r->generation, UF_GENERATION);
		assert_int_equal(r->psn, 0x20 + i);
		assert_int_equal(r->tpmsn, 0x30 + i);
		assert_int_equal(r->port, UF_PORT + i);
		assert_int_equal(r->flags & HCA_UB_RXD_ASK, i == 3 ? HCA_UB_RXD_ASK : 0);
	}
}

/* A damaged frame of a run is dropped alone. */
static void
run_damaged(void **state)
{
	struct bench *b = *state;

	for (unsigned int damaged = 0; damaged < RUN; damaged++) {
		take_run(b);
		rte_pktmbuf_mtod(b->d->frame[damaged], uint8_t *)[b->len - 1] ^= 1;
		judge(b);
		assert_int_equal(passed(b, HCA_EDGE_DECAP_TPR), RUN - 1);
		assert_int_equal(b->d->n_dead, 1);
		assert_ptr_equal(b->d->dead[0], b->d->frame[damaged]);
		assert_int_equal(counted(b, HCA_CTR_rx_icrc_encapsulated), damaged + 1);
		forget(b);
	}
}

/* A frame of several segments, and one of RoCE, end a run. */
static void
run_ends(void **state)
{
	struct bench *b = *state;
	struct rte_mbuf *m[2];

	make(b);
	m[0] = mbuf(b);
	m[1] = mbuf(b);
	m[1]->nb_segs = 2;
	assert_int_equal(hca_decap_ub_take(b->d, m, 2), 1);
	m[1]->nb_segs = 1;
	rte_pktmbuf_free(m[1]);
	b->len = frame_rig_inbound(b->r, 0x04, PAYLOAD, b->frame);
	assert_false(take(b, false));
	assert_int_equal(b->d->n_dead, 0);
}

/* ---- refusals ---- */

static void
numbers(void **state)
{
	struct bench *b = *state;

	b->path.dst_tpn = UF_OWN_TPN + UF_TPS;
	refused(b, HCA_CTR_ub_rx_unknown_tpn);
	b->path.dst_tpn = UF_OWN_TPN & ~(UF_TPS - 1); /* the place of HCA_TP_UNRELIABLE */
	refused(b, HCA_CTR_ub_rx_unknown_tpn);
	b->path.dst_tpn = UF_OWN_TPN;
	b->path.src_tpn++;
	refused(b, HCA_CTR_ub_rx_bad_peer);
}

static void
states(void **state)
{
	struct bench *b = *state;

	for (uint32_t s = 0; s < HCA_TPS_COUNT; s++) {
		uf_tp(b->r)->cfg.state = s;
		if (!hca_tp_receives(s)) {
			refused(b, HCA_CTR_ub_rx_tp_state);
			continue;
		}
		accepted(b, true, HCA_EDGE_DECAP_TPR);
		forget(b);
	}
}

static void
strangers(void **state)
{
	struct bench *b = *state;

	b->path.udp.sip[15] = 3;
	refused(b, HCA_CTR_ub_rx_bad_source);
	b->path.udp.sip[15] = 2;
	b->path.udp.dip[15] = 3;
	refused(b, HCA_CTR_ub_rx_bad_destination);
}

/* Entities name the addresses of the packet; partitions are not offered. */
static void
entities(void **state)
{
	struct bench *b = *state;
	const uint64_t own = UINT64_C(0xffff0a000001), peer = UINT64_C(0xffff0a000002);

	b->headers.rtph.nlp = HCA_UB_NLP_EIDH;
	b->headers.eidh = (struct hca_ub_eidh){.src_low = peer, .dst_low = own};
	accepted(b, true, HCA_EDGE_DECAP_TPR);
	forget(b);
	b->headers.upih.partition = 1;
	refused(b, HCA_CTR_ub_rx_bad_eid);
	b->headers.upih.partition = 0;
	b->headers.eidh.src_low = own;
	refused(b, HCA_CTR_ub_rx_bad_eid);
	b->headers.eidh = (struct hca_ub_eidh){.src_low = peer, .dst_low = peer};
	refused(b, HCA_CTR_ub_rx_bad_eid);
}

/* Only a TP with an algorithm takes it. */
static void
congestion_packet(void **state)
{
	struct bench *b = *state;
	struct hca_pipe *h = b->r->h;

	b->headers.rtph = (struct hca_ub_rtph){.opcode = HCA_UB_TP_CNP};
	refused(b, HCA_CTR_ub_rx_cnp_ignored);
	forget(b);
	h->cfg.congestion = "dcqcn";
	assert_int_equal(hca_cc_init(h), 0);
	hca_cc_begin(h, hca_tp_object(h, UF_TPI), h->cc_room->number);
	accepted(b, true, HCA_EDGE_DECAP_TPS);
	assert_int_equal(counted(b, HCA_CTR_ub_rx_acks), 1);
	hca_cc_fini(h);
}

/* TPR is told once, and reads the message later; answers and datagrams ask for no CNP. */
static void
marks(void **state)
{
	struct bench *b = *state;
	uint32_t obj = hca_tp_object(b->r->h, UF_TPI);

	uf_tp(b->r)->cfg.flags = HCA_TP_FLAG_CNP;
	take_run(b);
	judge(b);
	assert_int_equal(fx_take_msgs(b->r->fx, HCA_STAGE_DECAP, HCA_STAGE_TPR, obj), 0);
	forget(b);
	b->path.udp.tclass = 0x40 | HCA_ECN_CE;
	take_run(b);
	judge(b);
	assert_int_equal(passed(b, HCA_EDGE_DECAP_TPR), RUN);
	assert_int_equal(fx_take_msgs(b->r->fx, HCA_STAGE_DECAP, HCA_STAGE_TPR, obj),
			 HCA_MSG_MARKED);
	assert_int_equal(counted(b, HCA_CTR_ub_rx_ecn_marked), RUN);
	assert_int_equal(counted(b, HCA_CTR_ub_cnp_suppressed), RUN - 1);
	forget(b);
	b->headers.rtph = (struct hca_ub_rtph){.opcode = HCA_UB_TP_ACK, .psn = 0x20};
	accepted(b, true, HCA_EDGE_DECAP_TPS);
	assert_int_equal(fx_take_msgs(b->r->fx, HCA_STAGE_DECAP, HCA_STAGE_TPR, obj), 0);
	assert_int_equal(counted(b, HCA_CTR_ub_ecn_marked_unanswered), 1);
}

/* Transport headers that are no packet of UB: the reason is that of the parser. */
static void
malformed(void **state)
{
	struct bench *b = *state;

	b->headers.rtph.version = 1;
	make(b);
	assert_false(take(b, false));
	assert_int_equal(counted(b, HCA_CTR_ub_rx_bad_version), 1);
	forget(b);
	b->headers.rtph.version = 0;
	b->headers.rtph.nlp = 0xf;
	make(b);
	assert_false(take(b, false));
	assert_int_equal(counted(b, HCA_CTR_ub_rx_bad_nlp), 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(fields),
		T(ipv6),
		T(vlan),
		T(answers),
		T(datagrams),
		T(run),
		T(run_damaged),
		T(run_ends),
		T(numbers),
		T(states),
		T(strangers),
		T(entities),
		T(congestion_packet),
		T(marks),
		T(malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
