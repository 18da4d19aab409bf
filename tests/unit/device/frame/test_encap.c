/* SPDX-License-Identifier: BSD-3-Clause */

/* encap alone: the contents of frames, gathering of payload, and a stalled port. */

#include <string.h>

#include "frame_rig.h"

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

/* Asserts that the last frame equals the one the plain builder makes from d and payload. */
static void
check_last(struct frame_rig *r, const struct hca_txd *d, const void *payload)
{
	static uint8_t want[FR_FRAME_MAX];
	uint32_t len = frame_rig_expect(r, d, payload, want);

	assert_true(r->frames > 0);
	assert_int_equal(r->len[r->frames - 1], len);
	assert_memory_equal(r->frame[r->frames - 1], want, len);
}

static void
send_one(struct frame_rig *r, struct rte_mbuf *m)
{
	if (hca_roce_opcodes[hca_txd(m)->opcode].is_request)
		frame_rig_request(r, m);
	else
		frame_rig_response(r, m);
}

static void
record(struct frame_rig *r, unsigned int nsge)
{
	struct hca_record_full *f = (void *)hca_record(r->h, HCA_RECREF_FULL | 1);

	memset(f, 0, sizeof(*f));
	f->r.flags = HCA_REC_FULL;
	f->r.nsge = (uint8_t)nsge;
	f->swap_add = 0xa1a2a3a4a5a6a7a8;
	f->compare = 0xb1b2b3b4b5b6b7b8;
}

static void
sge(struct frame_rig *r, unsigned int i, uint32_t key, uint32_t off, uint32_t len)
{
	struct hca_record_full *f = (void *)hca_record(r->h, HCA_RECREF_FULL | 1);

	f->body.sge[i] = (struct hca_sge){FR_VA + off, key, len};
}

/*
 * A CNP has the headers that hardware gives it: no MigReq, BECN, PSN 0, 16 bytes of zeros; and a
 * DSCP of its own, whatever that of the QP is.
 */
static void
notification(void **state)
{
	static const uint8_t bth[HCA_ROCE_BTH_LEN] = {0x81, 0, 0xff, 0xff, 0x40, 0x12, 0x34, 0x56};
	static const uint8_t zeros[HCA_CNP_PAYLOAD_LEN];
	static const uint8_t dscp[] = {1, 48, 63};
	struct frame_rig *r = rig(state);
	uint8_t want[FR_FRAME_MAX];
	struct roce_view v;

	for (unsigned int i = 0; i < 2 * RTE_DIM(dscp); i++) {
		struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_CNP, 0, HCA_CNP_PAYLOAD_LEN);
		const uint8_t *f = r->frame[r->frames], *at;
		struct hca_roce_path p = frame_rig_peer();
		uint32_t sum = 0;

		p.qpn = FR_PEER_QPN;
		p.migreq = true;
		p.udp.tclass = 0x6a;
		if (i % 2 != 0) {
			p.udp.ip_version = 6;
			p.udp.flow_label = 0xabcde;
		}
		assert_int_equal(hca_roce_template_fill(&p, &r->qp->encap.tmpl), 0);
		*hca_txd(m) = (struct hca_txd){.qpi = FR_QPI,
					       .opcode = HCA_BTH_CNP,
					       .len = HCA_CNP_PAYLOAD_LEN,
					       .generation = r->qp->cfg.generation};
		r->h->cfg.cnp_dscp = dscp[i / 2];
		frame_rig_response(r, m);
		at = f + r->qp->encap.tmpl.l3;
		if (i % 2 == 0) {
			assert_int_equal(at[1], dscp[i / 2] << 2);
			for (unsigned int k = 0; k < HCA_IPV4_LEN; k += 2)
				sum += hca_get_be16(at + k);
			assert_int_equal(hca_ip_fold(sum), 0xffff);
		} else {
			assert_int_equal(hca_get_be32(at),
					 UINT32_C(6) << 28 | (uint32_t)dscp[i / 2] << 22 | 0xabcde);
		}
		at = f + r->qp->encap.tmpl.transport;
		assert_memory_equal(at, bth, sizeof(bth));
		assert_memory_equal(at + sizeof(bth), zeros, sizeof(zeros));
		assert_int_equal(r->len[r->frames - 1],
				 (at - f) + sizeof(bth) + sizeof(zeros) + HCA_ICRC_LEN);
		memcpy(want, f, r->len[r->frames - 1]);
		assert_int_equal(roce_parse(want, r->len[r->frames - 1], &v), 0);
		roce_seal(r->h->icrc, want, &v);
		assert_memory_equal(want, f, r->len[r->frames - 1]);
	}
}

/* A WRITE ONLY of eight bytes, byte by byte, independent of the builder. */
static void
golden_write(void **state)
{
	static const uint8_t head[] = {/* Ethernet */
				       2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
				       /* IPv4: 68 bytes, DF, TTL 64, UDP */
				       0x45, 0, 0, 68, 0, 0, 0x40, 0, 64, 17, 0x26, 0xa7, 10, 0, 0,
				       1, 10, 0, 0, 2,
				       /* UDP */
				       0xc1, 0x23, 0x12, 0xb7, 0, 48, 0, 0,
				       /* BTH: SE, MigReq, no pad; AckReq */
				       0x0a, 0xc0, 0xff, 0xff, 0, 0x12, 0x34, 0x56, 0x80, 0, 1, 2,
				       /* RETH */
				       0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa,
				       0xbb, 0xcc, 0, 1, 0x23, 0x45};
	struct frame_rig *r = rig(state);
	struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_RC_WRITE_ONLY, 0x102, 8);
	uint32_t sum = 0;

	hca_txd(m)->flags = HCA_TXD_ACKREQ | HCA_TXD_SOLICITED;
	frame_rig_request(r, m);
	assert_int_equal(r->frames, 1);
	assert_int_equal(r->len[0], sizeof(head) + 8 + HCA_ICRC_LEN);
	assert_memory_equal(r->frame[0], head, sizeof(head));
	assert_memory_equal(r->frame[0] + sizeof(head), r->mem + 100, 8);
	for (unsigned int i = 0; i < HCA_IPV4_LEN; i += 2)
		sum += hca_get_be16(r->frame[0] + HCA_ETH_LEN + i);
	assert_int_equal(hca_ip_fold(sum), 0xffff);
}

static void
every_opcode(void **state)
{
	struct frame_rig *r = rig(state);
	unsigned int opcodes = 0;

	record(r, 0);
	for (uint8_t op = 0; op <= HCA_BTH_RC_ATOMIC_WRITE; op++) {
		const struct hca_roce_opcode_info *info = &hca_roce_opcodes[op];

		if (!info->valid || info->at.ieth != 0)
			continue;
		opcodes++;
		for (unsigned int flags = 0; flags < 4; flags++) {
			uint32_t len = info->has_payload ? 37 + op : 0;
			struct rte_mbuf *m = frame_rig_txd(r, op, 0x200u + op, len);
			struct hca_txd d;

			hca_txd(m)->flags = (uint8_t)((flags & 1) * HCA_TXD_ACKREQ |
						      (flags >> 1) * HCA_TXD_SOLICITED);
			d = *hca_txd(m);
			send_one(r, m);
			check_last(r, &d, r->mem + 100);
		}
	}
	assert_int_equal(opcodes, 23);
	assert_int_equal(r->frames, 4 * opcodes);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, sent_pkts), r->frames);
}

/*
 * Short payloads get their ICRC in the burst, long ones while they are copied; both with padding.
 */
static void
every_length(void **state)
{
	struct frame_rig *r = rig(state);

	for (uint32_t len = 0; len <= 4096; len += len < 600 || len > 4080 ? 1 : 61) {
		struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_RC_SEND_MIDDLE, 0x200, len);
		struct hca_txd d = *hca_txd(m);

		r->frames = 0;
		frame_rig_request(r, m);
		check_last(r, &d, r->mem + 100);
	}
}

static void
paged_lengths(void **state)
{
	static uint8_t payload[4096];
	struct frame_rig *r = rig(state);

	for (uint32_t len = 1; len <= 4096; len += len < 300 ? 1 : 97) {
		struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_RC_WRITE_ONLY, 0x200, len);
		uint32_t off = 4096 - len / 2;
		struct hca_txd d;

		hca_txd(m)->key = FR_PAGED_KEY;
		hca_txd(m)->va = FR_VA + off;
		d = *hca_txd(m);
		for (uint32_t i = 0; i < len; i++)
			payload[i] = *frame_rig_paged(r, off + i);
		r->frames = 0;
		frame_rig_request(r, m);
		check_last(r, &d, payload);
	}
}

/* A range of a list of odd, empty and page-crossing pieces. */
static void
gather_lists(void **state)
{
	static const struct {
		uint32_t key, off, len;
	} list[] = {{FR_KEY, 3, 1},	      {FR_PAGED_KEY, 4090, 13}, {FR_KEY, 50, 0},
		    {FR_LOCAL_KEY, 777, 255}, {FR_PAGED_KEY, 8191, 2},	{FR_KEY, 1, 0},
		    {FR_PAGED_KEY, 100, 401}};
	static uint8_t all[1024];
	struct frame_rig *r = rig(state);
	uint32_t total = 0;

	record(r, RTE_DIM(list));
	for (unsigned int i = 0; i < RTE_DIM(list); i++) {
		sge(r, i, list[i].key, list[i].off, list[i].len);
		for (uint32_t k = 0; k < list[i].len; k++)
			all[total++] = list[i].key == FR_PAGED_KEY
					       ? *frame_rig_paged(r, list[i].off + k)
					       : r->mem[list[i].off + k];
	}
	for (uint32_t off = 0; off < total; off += 7) {
		for (uint32_t len = 1; off + len <= total; len += 53) {
			struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_RC_SEND_MIDDLE, 0x200, len);
			struct hca_txd d;

			hca_txd(m)->nsge = (uint8_t)RTE_DIM(list);
			hca_txd(m)->off = off;
			d = *hca_txd(m);
			r->frames = 0;
			frame_rig_request(r, m);
			check_last(r, &d, all + off);
		}
	}
}

static void
inline_data(void **state)
{
	struct frame_rig *r = rig(state);
	struct hca_record_full *f = (void *)hca_record(r->h, HCA_RECREF_FULL | 1);

	record(r, 0);
	f->r.flags |= HCA_REC_INLINE;
	for (unsigned int i = 0; i < HCA_INLINE_MAX; i++)
		f->body.inline_data[i] = (uint8_t)(200 - i);
	for (uint32_t off = 0; off < HCA_INLINE_MAX; off += 37) {
		uint32_t len = RTE_MIN(HCA_INLINE_MAX - off, 300u);
		struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_RC_SEND_MIDDLE, 0x200, len);
		struct hca_txd d;

		hca_txd(m)->flags = HCA_TXD_INLINE;
		hca_txd(m)->nsge = 0;
		hca_txd(m)->off = off;
		d = *hca_txd(m);
		frame_rig_request(r, m);
		check_last(r, &d, f->body.inline_data + off);
	}
}

/* ---- frames that are not sent ---- */

static void
fails_request(struct frame_rig *r, struct rte_mbuf *m)
{
	uint64_t before = FX_COUNTER(r->fx, ENCAP, req_gather_error);
	uint32_t psn = hca_txd(m)->psn;

	r->qp->encap.req_failed_psn = 0;
	frame_rig_request(r, m);
	assert_int_equal(r->frames, 0);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, req_gather_error), before + 1);
	assert_int_equal(r->qp->encap.req_failed_psn, psn);
	assert_int_equal(r->qp->encap.req_failed_syndrome, HCA_SYND_LOCAL_PROT);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, FR_QPI) &
				 HCA_MSG_FAILED,
			 HCA_MSG_FAILED);
	assert_int_equal(frame_rig_in_use(r), 0);
}

static void
request_failures(void **state)
{
	struct frame_rig *r = rig(state);
	struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x201, 64);

	hca_txd(m)->key = FR_KEY ^ 1;
	fails_request(r, m);
	m = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x202, 64);
	hca_txd(m)->va = FR_VA + FR_MEM - 63;
	fails_request(r, m);
	m = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x203, 300);
	hca_txd(m)->va = FR_VA - 1;
	fails_request(r, m);
	m = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x204, 64);
	hca_txd(m)->va = UINT64_MAX - 10;
	fails_request(r, m);
	r->qp->cfg.pd++;
	fails_request(r, frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x205, 64));
	r->qp->cfg.pd--;
	/* the second piece of a list; a list shorter than the packet */
	record(r, 2);
	sge(r, 0, FR_KEY, 0, 32);
	sge(r, 1, FR_KEY, FR_MEM - 16, 32);
	m = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x206, 64);
	hca_txd(m)->nsge = 2;
	fails_request(r, m);
	sge(r, 1, FR_KEY, 0, 31);
	m = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x207, 64);
	hca_txd(m)->nsge = 2;
	fails_request(r, m);
}

/* A failure in a burst does not affect other frames. */
static void
failure_in_a_burst(void **state)
{
	struct frame_rig *r = rig(state);
	void *objs[HCA_BURST];
	struct hca_txd d[HCA_BURST];

	for (unsigned int i = 0; i < HCA_BURST; i++) {
		struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_RC_WRITE_ONLY, 0x200 + i,
						   i % 3 ? 20 + i : 300 + i);

		hca_txd(m)->seq = i + 1;
		if (i == 13)
			hca_txd(m)->key ^= 2;
		d[i] = *hca_txd(m);
		objs[i] = m;
	}
	hca_encap_process_req(r->h, objs, HCA_BURST, r->now);
	assert_int_equal(r->frames, HCA_BURST - 1);
	for (unsigned int i = 0, k = 0; i < HCA_BURST; i++) {
		static uint8_t want[FR_FRAME_MAX];
		uint32_t len;

		if (i == 13)
			continue;
		len = frame_rig_expect(r, &d[i], r->mem + 100, want);
		assert_int_equal(r->len[k], len);
		assert_memory_equal(r->frame[k], want, len);
		k++;
	}
	assert_int_equal(r->qp->encap.req_failed_psn, 0x20d);
	assert_int_equal(r->qp->encap.req_done_seq, HCA_BURST);
}

/* The key of the descriptor does not grant its payload. */
static void
spoil(struct hca_txd *d, unsigned int how)
{
	static const uint64_t va[] = {FR_VA + FR_MEM - 63, FR_VA - 1, UINT64_MAX - 10};

	if (how < RTE_DIM(va))
		d->va = va[how];
	else
		d->key ^= 2;
}

/* A burst of requests alike, with different fields that are not copied, and a refused one. */
static void
alike_burst(struct frame_rig *r, uint8_t opcode, unsigned int how)
{
	static uint8_t want[FR_FRAME_MAX];
	void *objs[HCA_BURST];
	struct hca_txd d[HCA_BURST];
	unsigned int k = 0;

	r->frames = 0;
	for (unsigned int i = 0; i < HCA_BURST; i++) {
		/* the length changes twice */
		struct rte_mbuf *m = frame_rig_txd(r, opcode, 0x200 + i, i / 8 == 2 ? 13 : 64);

		hca_txd(m)->seq = i + 1;
		hca_txd(m)->flags |= i % 3 == 0 ? HCA_TXD_ACKREQ : 0;
		hca_txd(m)->flags |= i == 5 ? HCA_TXD_SOLICITED : 0;
		hca_txd(m)->key = i % 16 == 12 ? FR_LOCAL_KEY : FR_KEY;
		hca_txd(m)->va = FR_VA + 100 * i;
		hca_txd(m)->reth.raddr += i;
		hca_txd(m)->reth.rkey += i / 2;
		if (i == 10)
			spoil(hca_txd(m), how);
		d[i] = *hca_txd(m);
		objs[i] = m;
	}
	hca_encap_process_req(r->h, objs, HCA_BURST, r->now);
	assert_int_equal(r->frames, HCA_BURST - 1);
	for (unsigned int i = 0; i < HCA_BURST; i++) {
		uint32_t len = frame_rig_expect(r, &d[i], r->mem + 100 * i, want);

		if (i == 10)
			continue;
		assert_int_equal(r->len[k], len);
		assert_memory_equal(r->frame[k], want, len);
		k++;
	}
	assert_int_equal(r->qp->encap.req_failed_psn, 0x20a);
	fx_take_msgs(r->fx, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, FR_QPI);
}

static void
requests_alike(void **state)
{
	for (unsigned int how = 0; how < 4; how++) {
		alike_burst(rig(state), HCA_BTH_RC_WRITE_ONLY, how);
		alike_burst(rig(state), HCA_BTH_RC_SEND_ONLY, how);
		alike_burst(rig(state), HCA_BTH_RC_SEND_ONLY_IMM, how);
	}
}

static void
response_failures(void **state)
{
	struct frame_rig *r = rig(state);
	struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_RC_READ_RESP_ONLY, 0x50, 64);

	/* a repeated packet is only dropped */
	hca_txd(m)->key = FR_LOCAL_KEY;
	hca_txd(m)->flags = HCA_TXD_REPEAT;
	frame_rig_response(r, m);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_ENCAP, HCA_STAGE_EE, FR_QPI), 0);
	/* the remote right is checked, and EE gets the PSN, once */
	for (uint32_t psn = 0x51; psn < 0x54; psn++) {
		m = frame_rig_txd(r, HCA_BTH_RC_READ_RESP_MIDDLE, psn, 64);
		hca_txd(m)->key = FR_LOCAL_KEY;
		frame_rig_response(r, m);
	}
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_ENCAP, HCA_STAGE_EE, FR_QPI),
			 HCA_MSG_FAILED);
	assert_int_equal(r->qp->encap.resp_failed_psn, 0x51);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, resp_gather_error), 4);
	assert_int_equal(r->frames, 0);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, FR_QPI), 0);
}

/* Acknowledged meanwhile: no frame and no error, even if the memory is gone. */
static void
released(void **state)
{
	struct frame_rig *r = rig(state);
	struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, FR_PSN - 1, 64);

	hca_txd(m)->key ^= 4;
	hca_txd(m)->seq = 9;
	frame_rig_request(r, m);
	assert_int_equal(r->frames, 0);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, req_dropped_released), 1);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, req_gather_error), 0);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, FR_QPI), 0);
	assert_int_equal(r->qp->encap.req_done_seq, 9);
	/* across the wrap of PSNs */
	r->qp->sq_una = 2;
	frame_rig_request(r, frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0xffffff, 64));
	assert_int_equal(r->frames, 0);
	frame_rig_request(r, frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 2, 64));
	assert_int_equal(r->frames, 1);
}

static void
no_requests_in_error(void **state)
{
	struct frame_rig *r = rig(state);

	r->qp->cfg.state = HCA_QPS_ERR;
	frame_rig_request(r, frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x200, 64));
	assert_int_equal(r->frames, 0);
	/* the fatal NAK is still sent */
	frame_rig_response(r, frame_rig_txd(r, HCA_BTH_RC_ACK, 0x10, 0));
	assert_int_equal(r->frames, 1);
}

static void
another_life(void **state)
{
	struct frame_rig *r = rig(state);
	struct rte_mbuf *m = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x200, 64);

	r->qp->encap.req_done_seq = 77;
	hca_txd(m)->generation--;
	frame_rig_request(r, m);
	m = frame_rig_txd(r, HCA_BTH_RC_ACK, 0x200, 0);
	hca_txd(m)->generation--;
	frame_rig_response(r, m);
	r->qp->cfg.state = HCA_QPS_RST;
	frame_rig_request(r, frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x200, 64));
	assert_int_equal(r->frames, 0);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, stale_descriptors), 3);
	assert_int_equal(r->qp->encap.req_done_seq, 77);
}

/* A stale descriptor between two of the current generation neither hides nor adds progress. */
static void
done_seq(void **state)
{
	struct frame_rig *r = rig(state);
	void *objs[5];

	for (unsigned int i = 0; i < 5; i++) {
		objs[i] = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x200 + i, 10);
		hca_txd(objs[i])->seq = 41 + i;
	}
	hca_txd(objs[4])->generation--;
	hca_txd(objs[4])->seq = 999;
	hca_encap_process_req(r->h, objs, 5, r->now);
	assert_int_equal(r->frames, 4);
	assert_int_equal(r->qp->encap.req_done_seq, 44);
	/* same lcore: no message is sent */
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, FR_QPI), 0);
}

static struct {
	const struct hca_icrc_ops *icrc;
	const struct hca_qp *qp;
	unsigned int copies;
} watched;

static uint32_t
watched_copy(uint32_t seed, void *dst, const void *src, size_t n)
{
	assert_int_equal(watched.qp->encap.req_done_seq, 0);
	watched.copies++;
	return watched.icrc->copy_crc(seed, dst, src, n);
}

/* When descriptors are done, their memory may be used for other data. */
static void
long_payloads_are_read_before_they_are_done(void **state)
{
	struct frame_rig *r = rig(state);
	struct hca_icrc_ops ops = *r->h->icrc;
	struct hca_txd d;
	void *objs[3];

	watched.icrc = r->h->icrc;
	watched.qp = r->qp;
	watched.copies = 0;
	ops.copy_crc = watched_copy;
	for (unsigned int i = 0; i < RTE_DIM(objs); i++) {
		objs[i] = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x200 + i, 1000);
		hca_txd(objs[i])->seq = i + 1;
	}
	d = *hca_txd(objs[RTE_DIM(objs) - 1]);
	r->h->icrc = &ops;
	hca_encap_process_req(r->h, objs, RTE_DIM(objs), r->now);
	r->h->icrc = watched.icrc;
	assert_int_equal(watched.copies, RTE_DIM(objs));
	assert_int_equal(r->frames, RTE_DIM(objs));
	assert_int_equal(r->qp->encap.req_done_seq, RTE_DIM(objs));
	check_last(r, &d, r->mem + 100);
}

static void
copied_over_a_ring(void **state)
{
	struct frame_rig *r = rig(state);
	struct hca_edge *e = &r->h->edge[HCA_EDGE_REQ_TX_ENCAP];
	void *m;

	hca_encap_fini(r->h);
	e->process = hca_encap_process_req;
	e->wake = &r->h->wake[0].workers;
	e->ring = rte_ring_create("t.ring", 8, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	assert_non_null(e->ring);
	assert_int_equal(hca_encap_init(r->h), 0);
	m = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, 0x200, 10);
	hca_txd(m)->seq = 5;
	hca_edge_push(r->h, e, &m, 1, r->now);
	assert_int_equal(r->frames, 0);
	assert_int_equal(hca_encap_poll(r->h, r->now, HCA_BURST), 1);
	assert_int_equal(r->frames, 1);
	assert_int_equal(r->qp->encap.req_done_seq, 5);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, FR_QPI),
			 HCA_MSG_COPIED);
	rte_ring_free(e->ring);
	e->ring = NULL;
}

/* ---- the port stalls ---- */

static unsigned int
push(struct frame_rig *r, unsigned int n, uint32_t psn)
{
	void *objs[128];

	n = RTE_MIN(RTE_MIN(n, hca_encap_room(r->h)), (unsigned int)RTE_DIM(objs));
	for (unsigned int i = 0; i < n; i++)
		objs[i] = frame_rig_txd(r, HCA_BTH_RC_SEND_ONLY, psn + i, 16);
	hca_encap_process_req(r->h, objs, n, r->now);
	return n;
}

static uint32_t
psn_of(const struct frame_rig *r, unsigned int i)
{
	return hca_get_be32(r->frame[i] + 14 + 20 + 8 + 8) & HCA_PSN_MASK;
}

static void
short_bursts(void **state)
{
	struct frame_rig *r = rig(state);
	unsigned int given = 0;

	for (unsigned int i = 0; i < 200; i++) {
		r->accept = i % 4;
		r->now += 1000;
		given += push(r, 1 + i % 5, 0x200 + given);
		hca_encap_poll(r->h, r->now, HCA_BURST);
		if (given > 300)
			break;
	}
	assert_true(FX_COUNTER(r->fx, ENCAP, tx_backlog_events) > 0);
	r->accept = UINT32_MAX;
	hca_encap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(r->h->backlog, 0);
	assert_int_equal(r->frames, given);
	for (unsigned int i = 0; i < given; i++)
		assert_int_equal(psn_of(r, i), 0x200 + i);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, tx_discard_stalled), 0);
}

/*
 * Two edges may each deliver as many as room reported: all must fit, and no room may be left after.
 */
static void
credit(void **state)
{
	struct frame_rig *r = rig(state);
	unsigned int given = 0, n;

	r->accept = 0;
	while ((n = push(r, 64, 0x200 + given)) != 0) {
		given += n;
		assert_true(given <= 256);
		assert_int_equal(r->h->backlog, given);
		assert_true(hca_encap_room(r->h) < 64);
	}
	assert_true(given >= 2 * HCA_BURST);
	r->accept = UINT32_MAX;
	hca_encap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(r->frames, given);
	assert_true(hca_encap_room(r->h) >= HCA_BURST);
}

static void
discards_after_stall_time(void **state)
{
	struct frame_rig *r = rig(state);

	r->accept = 0;
	push(r, 10, 0x200);
	hca_encap_poll(r->h, r->now, HCA_BURST);
	r->now += r->h->cfg.port_stall_ns - 1;
	hca_encap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(r->h->backlog, 10);
	r->now += 1;
	hca_encap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(r->h->backlog, 0);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, tx_discard_stalled), 10);
	/* further frames are discarded at once */
	r->now += 1;
	push(r, 3, 0x300);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, tx_discard_stalled), 13);
	/* until the port accepts one: then the time starts again */
	r->accept = 1;
	push(r, 3, 0x400);
	assert_int_equal(r->frames, 1);
	assert_int_equal(r->h->backlog, 2);
	r->now += r->h->cfg.port_stall_ns / 2;
	hca_encap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(r->h->backlog, 2);
	r->accept = UINT32_MAX;
	hca_encap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(r->frames, 3);
	assert_int_equal(psn_of(r, 2), 0x402);
}

/* A port that is slow but not stopped is not stalled. */
static void
slow_is_not_stalled(void **state)
{
	struct frame_rig *r = rig(state);

	r->accept = 0;
	push(r, 10, 0x200);
	for (unsigned int i = 0; i < 10; i++) {
		r->accept = 1;
		r->now += r->h->cfg.port_stall_ns - 1;
		hca_encap_poll(r->h, r->now, HCA_BURST);
	}
	assert_int_equal(r->frames, 10);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, tx_discard_stalled), 0);
}

static void
link_down(void **state)
{
	struct frame_rig *r = rig(state);

	r->accept = 0;
	push(r, 4, 0x200);
	r->up = false;
	hca_encap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, tx_discard_link_down), 4);
	push(r, 5, 0x300);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, tx_discard_link_down), 9);
	assert_int_equal(r->h->backlog, 0);
	assert_int_equal(frame_rig_in_use(r), 0);
	r->up = true;
	r->accept = UINT32_MAX;
	push(r, 5, 0x400);
	assert_int_equal(r->frames, 5);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, tx_discard_stalled), 0);
}

/* The time without a link, and without traffic after it, does not count for a later stall. */
static void
link_up_again(void **state)
{
	struct frame_rig *r = rig(state);

	r->accept = 0;
	r->up = false;
	push(r, 4, 0x200);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, tx_discard_link_down), 4);
	r->up = true;
	r->now += 3 * r->h->cfg.port_stall_ns;
	push(r, 4, 0x300);
	assert_int_equal(FX_COUNTER(r->fx, ENCAP, tx_discard_stalled), 0);
	assert_int_equal(r->h->backlog, 4);
	r->accept = UINT32_MAX;
	hca_encap_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(r->frames, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(golden_write),
		T(notification),
		T(every_opcode),
		T(every_length),
		T(paged_lengths),
		T(gather_lists),
		T(inline_data),
		T(request_failures),
		T(requests_alike),
		T(failure_in_a_burst),
		T(response_failures),
		T(released),
		T(no_requests_in_error),
		T(another_life),
		T(done_seq),
		T(long_payloads_are_read_before_they_are_done),
		T(copied_over_a_ring),
		T(short_bursts),
		T(credit),
		T(discards_after_stall_time),
		T(slow_is_not_stalled),
		T(link_down),
		T(link_up_again),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
