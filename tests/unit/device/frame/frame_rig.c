/* SPDX-License-Identifier: BSD-3-Clause */

#include "frame_rig.h"

#include <stdlib.h>
#include <string.h>

#include "ctxmgt/ctxmgt.h"

#define PAGE 4096u
#define RECORDS 16u

static uint16_t
port_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct frame_rig *r = (struct frame_rig *)port;
	uint16_t i;

	r->asked = n;
	for (i = 0; i < n && r->rx_tail != r->rx_head; i++)
		m[i] = r->rx[r->rx_tail++ % FR_FRAMES];
	return i;
}

static uint16_t
port_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct frame_rig *r = (struct frame_rig *)port;
	uint16_t took = (uint16_t)RTE_MIN(n, r->accept);

	r->tx_calls++;
	r->accept -= took;
	for (uint16_t i = 0; i < took; i++) {
		assert_true(r->frames < FR_FRAMES && m[i]->data_len <= FR_FRAME_MAX);
		assert_int_equal(m[i]->data_len, m[i]->pkt_len);
		memcpy(r->frame[r->frames], rte_pktmbuf_mtod(m[i], void *), m[i]->data_len);
		r->len[r->frames++] = m[i]->data_len;
		rte_pktmbuf_free(m[i]);
	}
	return took;
}

static bool
port_up(struct hca_port *port)
{
	return ((struct frame_rig *)port)->up;
}

static const struct hca_port_ops port_ops = {.rx = port_rx, .tx = port_tx, .link_up = port_up};

static void
make_key(struct frame_rig *r, uint32_t key, uint32_t flags, bool paged)
{
	r->h->vtp.mpt[HCA_KEY_INDEX(key)] = (struct hca_mpt_entry){
		.start = FR_VA,
		.length = FR_MEM,
		.base = paged ? NULL : r->mem,
		.key = key,
		.pd = FR_PD,
		.state = HCA_MPT_VALID,
		.flags = HCA_MPT_FLAG_REGION | flags,
		.mtt_count = paged ? FR_MEM / PAGE : 0,
		.page_shift = 12,
	};
}

static void
make_memory(struct frame_rig *r)
{
	struct hca_vtp *v = &r->h->vtp;

	r->mem = aligned_alloc(PAGE, FR_MEM);
	v->mpt = aligned_alloc(64, 8 * sizeof(*v->mpt));
	v->mtt = calloc(FR_MEM / PAGE, sizeof(*v->mtt));
	assert_non_null(r->mem);
	assert_non_null(v->mpt);
	assert_non_null(v->mtt);
	memset(v->mpt, 0, 8 * sizeof(*v->mpt));
	v->mpt_mask = 7;
	v->mtt_count = FR_MEM / PAGE;
	for (uint32_t i = 0; i < FR_MEM; i++)
		r->mem[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + 1);
	for (uint32_t i = 0; i < FR_MEM / PAGE; i++)
		v->mtt[i] = (uintptr_t)frame_rig_paged(r, i * PAGE);
	make_key(r, FR_KEY, HCA_ACCESS_REMOTE_READ, false);
	make_key(r, FR_PAGED_KEY, HCA_ACCESS_REMOTE_READ, true);
	make_key(r, FR_LOCAL_KEY, 0, false);
}

uint8_t *
frame_rig_paged(struct frame_rig *r, uint32_t off)
{
	return r->mem + FR_MEM - PAGE - off / PAGE * PAGE + off % PAGE;
}

static void
make_qp(struct frame_rig *r)
{
	const struct hca_roce_path path = {
		.udp.dmac = {2, 0, 0, 0, 0, 2},
		.udp.smac = {2, 0, 0, 0, 0, 1},
		.udp.ip_version = 4,
		.udp.hop_limit = 64,
		.udp.sip = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		.udp.dip = {[10] = 0xff, 0xff, 10, 0, 0, 2},
		.udp.sport = 0xc123,
		.pkey = 0xffff,
		.qpn = FR_PEER_QPN,
		.migreq = true,
	};

	r->qp = fx_qp(r->fx, FR_QPI, 1, 4, 6, 16);
	r->qp->cfg.pd = FR_PD;
	r->qp->cfg.pkey = 0xffff;
	memcpy(&r->qp->cfg.peer_ip4, "\x0a\0\0\x02", 4);
	memcpy(&r->qp->cfg.own_ip4, "\x0a\0\0\x01", 4);
	memcpy(r->qp->addr.peer_gid[0], path.udp.dip, 16);
	r->qp->sq_una = FR_PSN;
	assert_int_equal(hca_roce_template_fill(&path, &r->qp->encap.tmpl), 0);
	r->block.second = &r->second;
	r->qp->cfg.block = &r->block;
}

void
frame_rig_own(struct frame_rig *r, unsigned int index, const uint8_t gid[16], uint16_t vlan)
{
	struct hca_gid_entry *g = &r->h->ctxmgt->gid[index];

	memcpy(g->gid, gid, sizeof(g->gid));
	g->vlan_id = vlan;
	g->valid = 1;
	r->h->ctxmgt->gid_changes++;
}

/* The GID table holds the address that the QP sends from. */
static void
make_addresses(struct frame_rig *r)
{
	static const uint8_t own[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};

	r->h->ctxmgt = calloc(1, sizeof(*r->h->ctxmgt));
	assert_non_null(r->h->ctxmgt);
	frame_rig_own(r, 0, own, HCA_NO_VLAN);
}

struct frame_rig *
frame_rig_new(void)
{
	const struct fx_config fc = {.full_records = RECORDS};
	struct frame_rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->fx = fx_create(&fc);
	r->h = r->fx->h;
	r->now = 1000;
	r->up = true;
	r->accept = UINT32_MAX;
	r->port = (struct hca_port){.ops = &port_ops, .max_frame = FR_FRAME_MAX, .queue_size = 32};
	r->h->port = &r->port;
	r->h->icrc = hca_icrc_select();
	r->h->cfg.port_stall_ns = 10000000;
	r->pool = rte_pktmbuf_pool_create("frames", FR_MBUFS, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA,
					  SOCKET_ID_ANY);
	assert_non_null(r->pool);
	make_memory(r);
	make_addresses(r);
	make_qp(r);
	assert_int_equal(hca_encap_init(r->h), 0);
	assert_int_equal(hca_decap_init(r->h), 0);
	return r;
}

unsigned int
frame_rig_in_use(const struct frame_rig *r)
{
	return rte_mempool_in_use_count(r->pool);
}

void
frame_rig_free(struct frame_rig *r)
{
	unsigned int left;

	hca_encap_fini(r->h);
	hca_decap_fini(r->h);
	for (unsigned int e = 0; e < HCA_EDGE_N; e++)
		for (unsigned int i = 0; i < r->fx->edge[e].n; i++)
			rte_pktmbuf_free(r->fx->edge[e].obj[i]);
	for (; r->rx_tail != r->rx_head; r->rx_tail++)
		rte_pktmbuf_free(r->rx[r->rx_tail % FR_FRAMES]);
	left = frame_rig_in_use(r);
	free(r->h->ctxmgt);
	r->h->ctxmgt = NULL;
	free(r->h->vtp.mpt);
	free(r->h->vtp.mtt);
	free(r->mem);
	fx_destroy(r->fx);
	rte_mempool_free(r->pool);
	free(r);
	assert_int_equal(left, 0);
}

/* ---- out ---- */

struct rte_mbuf *
frame_rig_txd(struct frame_rig *r, uint8_t opcode, uint32_t psn, uint32_t len)
{
	const struct hca_roce_opcode_info *op = &hca_roce_opcodes[opcode];
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
	struct hca_txd *d;

	assert_non_null(m);
	d = hca_txd(m);
	memset(d, 0, sizeof(*d));
	d->qpi = FR_QPI;
	d->generation = r->qp->cfg.generation;
	d->psn = psn;
	d->opcode = opcode;
	d->len = (uint16_t)len;
	d->nsge = len != 0;
	d->key = FR_KEY;
	d->va = FR_VA + 100;
	d->rec = HCA_RECREF_FULL | 1;
	d->syndrome = 0x1f;
	/* in a READ response, imm is the PD of its key */
	d->imm = hca_roce_opcodes[opcode].kind == HCA_PKT_READ_RESP ? r->qp->cfg.pd : 0x04030201;
	if (op->is_request) {
		d->reth.raddr = 0x1122334455667788;
		d->reth.rkey = 0x99aabbcc;
		d->reth.dma_len = 0x12345;
	} else {
		d->resp.result = 0x0102030405060708;
		d->resp.msn = 0xabcdef;
	}
	return m;
}

void
frame_rig_request(struct frame_rig *r, struct rte_mbuf *m)
{
	void *obj = m;

	hca_encap_process_req(r->h, &obj, 1, r->now);
}

void
frame_rig_response(struct frame_rig *r, struct rte_mbuf *m)
{
	void *obj = m;

	hca_encap_process_resp(r->h, &obj, 1, r->now);
}

uint32_t
frame_rig_expect(struct frame_rig *r, const struct hca_txd *d, const void *payload, uint8_t *out)
{
	const struct hca_roce_opcode_info *op = &hca_roce_opcodes[d->opcode];
	const struct hca_record_full *rec = (void *)hca_record(r->h, HCA_RECREF_FULL | 1);
	const struct roce_packet p = {
		.opcode = d->opcode,
		.se = d->flags & HCA_TXD_SOLICITED,
		.ackreq = d->flags & HCA_TXD_ACKREQ,
		.psn = d->psn,
		.payload_len = d->len,
	};
	struct roce_headers h;
	int rc;

	memset(&h, 0, sizeof(h));
	memcpy(h.imm, &d->imm, 4);
	if (op->is_request) {
		h.reth.va = h.atomic.va = d->reth.raddr;
		h.reth.rkey = h.atomic.rkey = d->reth.rkey;
		h.reth.len = d->reth.dma_len;
		h.feth = hca_be32_to_cpu(d->imm);
		h.atomic.swap_add = rec->swap_add;
		h.atomic.compare = rec->compare;
	} else {
		h.aeth.syndrome = d->syndrome;
		h.aeth.msn = d->resp.msn;
		h.original = d->resp.result;
	}
	rc = roce_build(r->h->icrc, &r->qp->encap.tmpl, &p, &h, payload, out, FR_FRAME_MAX);
	assert_true(rc > 0);
	return (uint32_t)rc;
}

/* ---- in ---- */

struct hca_roce_path
frame_rig_peer(void)
{
	return (struct hca_roce_path){
		.udp.ip_version = 4,
		.udp.tclass = 2,
		.udp.hop_limit = 64,
		.udp.sip = {[10] = 0xff, 0xff, 10, 0, 0, 2},
		.udp.dip = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		.udp.sport = 0xc456,
		.pkey = 0xffff,
		.qpn = fx_qpn(FR_QPI),
	};
}

uint32_t
frame_rig_from(struct frame_rig *r, const struct hca_roce_path *path, uint8_t opcode,
	       const struct roce_headers *headers, uint32_t payload_len, uint8_t *out)
{
	const struct roce_packet p = {.opcode = opcode,
				      .ackreq = true,
				      .psn = FR_PSN,
				      .payload_len = payload_len};
	struct roce_headers h;
	struct hca_udp_template t;
	int rc;

	memset(&h, 0, sizeof(h));
	if (headers != NULL)
		h = *headers;
	assert_int_equal(hca_roce_template_fill(path, &t), 0);
	rc = roce_build(r->h->icrc, &t, &p, &h, r->mem, out, FR_FRAME_MAX);
	assert_true(rc > 0);
	return (uint32_t)rc;
}

uint32_t
frame_rig_inbound(struct frame_rig *r, uint8_t opcode, uint32_t payload_len, uint8_t *out)
{
	const struct hca_roce_path path = frame_rig_peer();

	return frame_rig_from(r, &path, opcode, NULL, payload_len, out);
}

void
frame_rig_seal(struct frame_rig *r, uint8_t *frame, uint32_t len)
{
	const struct roce_view v = {.l3 = HCA_ETH_LEN, .ip_version = 4, .icrc = len - HCA_ICRC_LEN};

	roce_seal(r->h->icrc, frame, &v);
}

void
frame_rig_give(struct frame_rig *r, const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	r->rx[r->rx_head++ % FR_FRAMES] = m;
}
