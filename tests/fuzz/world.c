/* SPDX-License-Identifier: BSD-3-Clause */

#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../short_ways.h"
#include "embed_ctl.h"
#include "engine/pkt.h"
#include "fuzz_hca.h"
#include "roce_craft.h"

#define FRAME_MAX 4096u
#define QUEUE 16u	 /* WQEs of each queue */
#define SQ_PSN 0xfffff0u /* wraps around soon */
#define RQ_PSN 0xfffff8u

/* Regions begin and end inside pages: the rest of their pages is also guarded. */
static const struct {
	uint32_t at, len, access;
	bool changes;
} regions[WORLD_REGIONS] = {
	[WORLD_RW] = {0x1100, 0x1245,
		      SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
			      SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC |
			      SOFTHCA_ACCESS_FLUSH_GLOBAL | SOFTHCA_ACCESS_MW_BIND,
		      true},
	[WORLD_RO] = {0x4103, 0x1000, SOFTHCA_ACCESS_REMOTE_READ, false},
	[WORLD_SOURCE] = {0x6080, 0x1400, 0, false},
	[WORLD_TARGET] = {0x8011, 0x1000, SOFTHCA_ACCESS_LOCAL_WRITE, true},
	[WORLD_RECV] = {0xa0f1, 0x1000, SOFTHCA_ACCESS_LOCAL_WRITE, true},
};

/* Contents of the memory at the start of every input. */
static uint8_t pattern[WORLD_MEM];

uint8_t *
world_region(struct world *w, enum world_region r, uint32_t *len)
{
	*len = regions[r].len;
	return w->mem + regions[r].at;
}

struct hca_qp *
world_store(struct world *w, enum world_qp qp)
{
	return &w->h->core->qp[w->qp[qp]->qp_num & w->h->core->qp_mask];
}

/* ---- the port ---- */

/* Whatever the device received, the frames it sends must be valid. */
static void
judge_sent(void *arg, const uint8_t *frame, uint32_t len)
{
	struct world *w = arg;
	struct roce_view v;
	int rc = roce_parse(frame, len, &v);

	fuzz_trace_add(&w->trace, 'f', w->now, frame, len);
	fuzz_check(rc == 0, "sent a malformed frame: %s", roce_drop_name(rc));
	fuzz_check(roce_icrc_ok(hca_icrc_select(), frame, &v), "sent a frame with a wrong ICRC");
	fuzz_check(v.qpn == WORLD_PEER_QPN, "sent a frame to QPN %#x", v.qpn);
	fuzz_check(v.payload_len <= WORLD_MTU, "sent %u bytes in one packet", v.payload_len);
}

void
world_frame(struct world *w, const uint8_t *frame, uint32_t len)
{
	if (len <= FRAME_MAX)
		(void)fuzz_port_put(&w->port, frame, len);
}

/* ---- frames ---- */

static void
seal(uint8_t *frame, uint32_t len)
{
	const struct roce_view v = {.l3 = HCA_ETH_LEN, .ip_version = 4, .icrc = len - HCA_ICRC_LEN};

	roce_seal(hca_icrc_select(), frame, &v);
}

void
world_fix(struct world *w, uint8_t *frame, uint32_t len)
{
	struct hca_ipv4_hdr *ip = (void *)(frame + HCA_ETH_LEN);
	struct hca_udp_hdr *udp = (void *)(ip + 1);
	struct hca_bth *bth = (void *)(udp + 1);
	uint32_t total = len - HCA_ETH_LEN;

	if (len < HCA_ETH_LEN + sizeof(*ip) + sizeof(*udp) + sizeof(*bth) + HCA_ICRC_LEN)
		return;
	frame[12] = HCA_ETHERTYPE_IPV4 >> 8;
	frame[13] = HCA_ETHERTYPE_IPV4 & 0xff;
	ip->ver_ihl = HCA_IPV4_VER_IHL;
	ip->total_len = hca_cpu_to_be16(total);
	ip->frag = hca_cpu_to_be16(HCA_IPV4_DF);
	ip->proto = HCA_IPPROTO_UDP;
	ip->saddr = hca_cpu_to_be32(WORLD_PEER_IP);
	ip->daddr = hca_cpu_to_be32(WORLD_LOCAL_IP);
	udp->dport = hca_cpu_to_be16(HCA_ROCE_UDP_PORT);
	udp->len = hca_cpu_to_be16(total - sizeof(*ip));
	bth->dqpn = hca_cpu_to_be32(w->qp[hca_be32_to_cpu(bth->dqpn) % WORLD_QPS]->qp_num);
	seal(frame, len);
}

void
world_packet(struct world *w, const struct world_packet *p)
{
	uint8_t frame[FRAME_MAX] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0};
	struct hca_ipv4_hdr *ip = (void *)(frame + HCA_ETH_LEN);
	struct hca_udp_hdr *udp = (void *)(ip + 1);
	struct hca_bth *bth = (void *)(udp + 1);
	uint32_t pad = -(p->payload_len + p->ext_len) & 3, len;
	uint8_t *at = (uint8_t *)(bth + 1);

	ip->ttl = 64;
	udp->sport = hca_cpu_to_be16(HCA_ROCE_SPORT_BASE);
	bth->opcode = p->opcode;
	bth->flags = (uint8_t)((p->flags & (HCA_BTH_SE | HCA_BTH_MIGREQ)) |
			       ((pad ^ (uint32_t)p->pad) & 3) << 4);
	bth->pkey = hca_cpu_to_be16(0xffff);
	bth->dqpn = hca_cpu_to_be32(p->to);
	bth->psn = hca_cpu_to_be32(HCA_BTH_MAKE_PSN(p->ackreq, p->psn));
	memcpy(at, p->ext, p->ext_len);
	memset(at + p->ext_len, p->fill, p->payload_len);
	len = (uint32_t)(at - frame) + p->ext_len + p->payload_len + pad + HCA_ICRC_LEN;
	world_fix(w, frame, len);
	world_frame(w, frame, len);
}

/* ---- time and completions ---- */

static void
progress(void *arg)
{
	struct world *w = arg;

	fuzz_poll(w->h, &w->now);
}

void
world_poll(struct world *w, unsigned int n)
{
	while (n-- > 0)
		fuzz_poll(w->h, &w->now);
}

void
world_settle(struct world *w)
{
	fuzz_settle(w->h, &w->now);
}

/* Of a completion, the members that it has with its status. */
static void
trace_completion(struct world *w, const struct softhca_wc *wc)
{
	bool good = wc->status == SOFTHCA_WC_SUCCESS;
	const uint64_t seen[] = {wc->wr_id,
				 wc->status,
				 wc->vendor_err,
				 wc->qp_num,
				 good ? wc->opcode : 0,
				 good ? wc->byte_len : 0,
				 good ? wc->wc_flags : 0,
				 good && wc->wc_flags & SOFTHCA_WC_WITH_IMM ? wc->imm_data : 0};

	fuzz_trace_add(&w->trace, 'w', w->now, seen, sizeof(seen));
}

void
world_reap(struct world *w)
{
	struct softhca_wc wc[16];
	int n;

	while ((n = softhca_poll_cq(w->cq, 16, wc)) > 0) {
		for (int i = 0; i < n; i++)
			trace_completion(w, &wc[i]);
		for (int i = 0; i < n && !w->lying; i++) {
			fuzz_check(wc[i].wr_id < w->posted, "completion of request %llu",
				   (unsigned long long)wc[i].wr_id);
			fuzz_check(!w->done[wc[i].wr_id], "request %llu completed twice",
				   (unsigned long long)wc[i].wr_id);
			w->done[wc[i].wr_id] = 1;
			w->completed++;
		}
	}
	fuzz_check(n == 0, "poll_cq: %d", n);
}

/* ---- posting ---- */

void
world_send(struct world *w, enum world_qp qp, uint32_t kind, uint32_t len, unsigned int nsge)
{
	bool atomic =
		kind == SOFTHCA_WR_ATOMIC_CMP_AND_SWP || kind == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD;
	bool reads = kind == SOFTHCA_WR_RDMA_READ || atomic;
	enum world_region r = reads ? WORLD_TARGET : WORLD_SOURCE;
	struct softhca_sge sge[2];
	struct softhca_send_wr *bad, wr = {
					     .wr_id = w->posted,
					     .sg_list = sge,
					     .num_sge = (int)nsge,
					     .opcode = kind,
					     .send_flags = SOFTHCA_SEND_SIGNALED,
					     .imm_data = 0x01020304,
				     };
	uint32_t first;

	if (w->posted == WORLD_WRS)
		return;
	if (atomic || kind == SOFTHCA_WR_ATOMIC_WRITE)
		len = 8;
	first = nsge == 1 ? len : len / 3;
	sge[0] = (struct softhca_sge){(uintptr_t)w->mem + regions[r].at + 1, first, w->mr[r]->lkey};
	sge[1] = (struct softhca_sge){(uintptr_t)w->mem + regions[r].at + 0x800, len - first,
				      w->mr[r]->lkey};
	wr.wr.rdma.remote_addr = 0x10000;
	wr.wr.rdma.rkey = 0x1234;
	if (atomic) {
		wr.wr.atomic.remote_addr = 0x10000;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 2;
		wr.wr.atomic.rkey = 0x1234;
	}
	if (kind == SOFTHCA_WR_FLUSH) {
		wr.num_sge = 0;
		wr.wr.flush.length = len;
		wr.wr.flush.type = SOFTHCA_FLUSH_GLOBAL;
	}
	if (softhca_post_send(w->qp[qp], &wr, &bad) == 0)
		w->posted++;
}

void
world_recv(struct world *w, enum world_qp qp, unsigned int nsge, uint32_t sge_len)
{
	struct softhca_sge sge[4];
	struct softhca_recv_wr *bad, wr = {
					     .wr_id = w->posted,
					     .sg_list = sge,
					     .num_sge = (int)nsge,
				     };

	if (w->posted == WORLD_WRS)
		return;
	for (unsigned int i = 0; i < nsge; i++)
		sge[i] = (struct softhca_sge){(uintptr_t)w->mem + regions[WORLD_RECV].at +
						      i * 0x300 + w->posted,
					      sge_len, w->mr[WORLD_RECV]->lkey};
	if (softhca_post_recv(w->qp[qp], &wr, &bad) == 0)
		w->posted++;
}

/* ---- making ---- */

/* Memory of other processes: clients may name it, but none exists. */
static int
no_memory(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	return -EFAULT;
}

static void
make_hca(struct world *w)
{
	struct hca_config cfg = {
		.name = hca_short_ways ? "fuzz1" : "fuzz",
		.foreign = no_memory,
		.port = &w->port.port,
		.layout = getenv("FUZZ_FULL") != NULL ? HCA_LAYOUT_FULL : HCA_LAYOUT_RTC,
		.socket_id = -1,
		.log_qps = 4,
		.log_cqs = 4,
		.log_eqs = 3,
		.log_mpts = 7,
		.log_mtts = 12,
		.edge_size = 64,
		.records = 64,
		.full_records = 64,
		.records_per_qp = 16,
		.mbufs = 256,
		.max_mtu = 4096,
		.mac = {2, 0, 0, 0, 0, 1},
	};

	w->port.judge = judge_sent;
	w->port.arg = w;
	fuzz_port_open(&w->port, cfg.name, WORLD_RX);
	fuzz_check(hca_create(&cfg, &w->h) == 0, "hca_create");
}

static void
make_objects(struct world *w)
{
	const struct embed_ctl_config cc = {.name = "fuzz"};
	const struct softhca_cq_init_attr ca = {.cqe = 256};

	fuzz_check(embed_ctl_open(w->drv, &cc, &w->ctx) == 0, "client: %s", hca_driver_reason());
	w->pd = softhca_alloc_pd(w->ctx);
	w->cq = softhca_create_cq(w->ctx, &ca);
	fuzz_check(w->pd != NULL && w->cq != NULL, "pd, cq: %s", softhca_last_error(w->ctx));
	w->mem = fuzz_memory(WORLD_MEM);
	for (unsigned int i = 0; i < WORLD_REGIONS; i++) {
		w->mr[i] = softhca_reg_mr(w->pd, w->mem + regions[i].at, regions[i].len,
					  regions[i].access);
		fuzz_check(w->mr[i] != NULL, "mr: %s", softhca_last_error(w->ctx));
	}
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		struct softhca_qp_init_attr qa = {
			.send_cq = w->cq,
			.recv_cq = w->cq,
			.cap = {QUEUE, QUEUE, 4, 4, 64},
			.qp_type = SOFTHCA_QPT_RC,
		};

		w->qp[i] = softhca_create_qp(w->pd, &qa);
		fuzz_check(w->qp[i] != NULL, "qp: %s", softhca_last_error(w->ctx));
	}
}

static struct world *
make(void)
{
	struct world *w = calloc(1, sizeof(*w));

	fuzz_check(w != NULL, "no memory");
	fuzz_eal_start();
	fuzz_pattern(pattern, WORLD_MEM);
	make_hca(w);
	w->drv = fuzz_driver(w->h, progress, w, 1);
	make_objects(w);
	world_settle(w);
	hca_usage(w->h, &w->base);
	return w;
}

/* ---- an input's beginning and end ---- */

static void
to_state(struct world *w, struct softhca_qp *qp, const struct softhca_qp_attr *attr, uint32_t mask)
{
	int rc = softhca_modify_qp(qp, attr, mask);

	fuzz_check(rc == 0, "QP %#x to %s: %d: %s", qp->qp_num,
		   softhca_qp_state_str(attr->qp_state), rc, softhca_last_error(w->ctx));
}

void
world_connect(struct world *w, struct softhca_qp *qp)
{
	struct softhca_qp_attr q = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
				   SOFTHCA_ACCESS_REMOTE_ATOMIC | SOFTHCA_ACCESS_FLUSH_GLOBAL,
		.path_mtu = SOFTHCA_MTU_256,
		.dest_qp_num = WORLD_PEER_QPN,
		.rq_psn = RQ_PSN,
		.sq_psn = SQ_PSN,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 10,
		.retry_cnt = 3,
		.rnr_retry = 3,
		.ah_attr = {.port_num = 1,
			    .is_global = 1,
			    .hop_limit = 64,
			    .dgid.raw = {[10] = 0xff, 0xff, 10, 77, 0, 2}},
	};

	to_state(w, qp, &q,
		 SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
			 SOFTHCA_QP_ACCESS_FLAGS);
	q.qp_state = SOFTHCA_QPS_RTR;
	to_state(w, qp, &q,
		 SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN |
			 SOFTHCA_QP_RQ_PSN | SOFTHCA_QP_MAX_DEST_RD_ATOMIC |
			 SOFTHCA_QP_MIN_RNR_TIMER);
	q.qp_state = SOFTHCA_QPS_RTS;
	to_state(w, qp, &q,
		 SOFTHCA_QP_STATE | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
			 SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_MAX_QP_RD_ATOMIC);
}

static void
first_packets(struct world *w)
{
	struct hca_reth reth;
	struct world_packet p = {.to = WORLD_WRITTEN,
				 .opcode = HCA_BTH_RC_WRITE_FIRST,
				 .psn = RQ_PSN,
				 .payload_len = WORLD_MTU,
				 .fill = 0x77,
				 .ext = (void *)&reth,
				 .ext_len = sizeof(reth)};

	hca_put_be64(&reth.va, (uintptr_t)w->mem + regions[WORLD_RW].at + 0x100);
	hca_put_be32(&reth.rkey, w->mr[WORLD_RW]->rkey);
	hca_put_be32(&reth.dma_len, 3 * WORLD_MTU + 5);
	world_packet(w, &p);
	p.to = WORLD_SENT;
	p.opcode = HCA_BTH_RC_SEND_FIRST;
	p.ext_len = 0;
	world_packet(w, &p);
}

static struct world *worlds[2]; /* by hca_short_ways */

void
world_run(void (*run)(const uint8_t *data, size_t size), const uint8_t *data, size_t size)
{
	for (int ways = 0; ways < 2; ways++) {
		hca_short_ways = ways != 0;
		run(data, size);
	}
	fuzz_trace_compare(&worlds[1]->trace, &worlds[0]->trace);
}

struct world *
world_begin(void)
{
	struct world *w = worlds[hca_short_ways];

	if (w == NULL) {
		fuzz_lsan_disable();
		w = worlds[hca_short_ways] = make();
		fuzz_show_counters(w->h);
		fuzz_lsan_enable();
	}
	fuzz_trace_begin(&w->trace);
	memcpy(w->mem, pattern, WORLD_MEM);
	w->posted = w->completed = 0;
	w->lying = false;
	memset(w->done, 0, sizeof(w->done));
	for (unsigned int i = 0; i < WORLD_QPS; i++)
		world_connect(w, w->qp[i]);
	for (unsigned int i = 0; i < 2; i++) {
		w->mw[i] = softhca_alloc_mw(w->pd, SOFTHCA_MW_TYPE_1 + i);
		fuzz_check(w->mw[i] != NULL, "mw: %s", softhca_last_error(w->ctx));
	}
	world_send(w, WORLD_READER, SOFTHCA_WR_RDMA_READ, 1000, 2);
	world_send(w, WORLD_READER, SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, 8, 2);
	world_send(w, WORLD_READER, SOFTHCA_WR_RDMA_READ, 99, 2);
	world_send(w, WORLD_WRITER, SOFTHCA_WR_RDMA_WRITE, 1000, 2);
	world_send(w, WORLD_WRITER, SOFTHCA_WR_SEND_WITH_IMM, 300, 2);
	world_send(w, WORLD_WRITER, SOFTHCA_WR_ATOMIC_CMP_AND_SWP, 8, 2);
	world_send(w, WORLD_WRITER, SOFTHCA_WR_SEND, 0, 2);
	for (unsigned int i = 1; i <= 4; i++)
		world_recv(w, WORLD_RECEIVER, i, 157);
	world_recv(w, WORLD_WRITTEN, 1, 64);
	for (unsigned int i = 0; i < 3; i++)
		world_recv(w, WORLD_SENT, 3, 200);
	first_packets(w);
	world_poll(w, 4);
	return w;
}

static void
check_run(const struct world *w, uint32_t from, uint32_t to)
{
	if (memcmp(w->mem + from, pattern + from, to - from) == 0)
		return;
	while (w->mem[from] == pattern[from])
		from++;
	fuzz_fail("byte %#x was overwritten", from);
}

/* All memory except writable regions is unchanged; the table is in the order of addresses. */
static void
check_memory(const struct world *w)
{
	uint32_t from = 0;

	for (unsigned int r = 0; r < WORLD_REGIONS; r++) {
		if (!regions[r].changes)
			continue;
		check_run(w, from, regions[r].at);
		from = regions[r].at + regions[r].len;
	}
	check_run(w, from, WORLD_MEM);
}

/* Invariants of a QP's cursors and PSNs between two loops. */
static void
check_qp(const struct world *w, unsigned int i)
{
	const struct hca_qp *q = &w->h->core->qp[w->qp[i]->qp_num & w->h->core->qp_mask];
	uint32_t una = hca_una_psn(q->sq_una), tail = hca_una_tail(q->sq_una);
	uint32_t flight = (q->req_tx.max_psn - una) & HCA_PSN_MASK;

	/* one READ of 2 GiB may have the whole window; flushing skips packets that were not sent */
	fuzz_check(flight <= HCA_PSN_HALF || q->cfg.state == HCA_QPS_ERR,
		   "QP %u: UPSN %#x beyond %#x", i, una, q->req_tx.max_psn);
	fuzz_check((una | q->req_tx.max_psn | q->req_tx.next_psn | q->ee.epsn) <= HCA_PSN_MASK,
		   "QP %u: PSN of more than 24 bits", i);
	fuzz_check((int32_t)(q->parser.head - tail) >= 0 && (int32_t)(tail - q->sq_freed) >= 0 &&
			   q->parser.head - q->sq_freed <= q->parser.window_mask + 1,
		   "QP %u: window head %u tail %u freed %u", i, q->parser.head, tail, q->sq_freed);
	fuzz_check((int32_t)(q->parser.head - q->sq_next) >= 0, "QP %u: next %u beyond head %u", i,
		   q->sq_next, q->parser.head);
	fuzz_check(q->ee.new_jobs <= __builtin_popcount(q->ee.job_pending) &&
			   q->ee.job_pending >> 1 >> q->ee.job_mask == 0 &&
			   q->ee.job_now <= q->ee.job_mask + 1,
		   "QP %u: jobs %#x, %u new, at %u", i, q->ee.job_pending, q->ee.new_jobs,
		   q->ee.job_now);
	fuzz_check(q->ee.recv_nsge <= 16 && q->ee.recv_sge_at <= q->ee.recv_nsge,
		   "QP %u: receive SGE %u of %u", i, q->ee.recv_sge_at, q->ee.recv_nsge);
	fuzz_check(q->cfg.state <= HCA_QPS_ERR, "QP %u: state %u", i, q->cfg.state);
}

static void
all_to(struct world *w, uint32_t state)
{
	const struct softhca_qp_attr a = {.qp_state = state};

	for (unsigned int i = 0; i < WORLD_QPS; i++)
		to_state(w, w->qp[i], &a, SOFTHCA_QP_STATE);
}

void
world_end(struct world *w)
{
	world_settle(w);
	world_reap(w);
	for (unsigned int i = 0; i < WORLD_QPS; i++)
		check_qp(w, i);
	all_to(w, SOFTHCA_QPS_ERR);
	world_settle(w);
	world_reap(w);
	fuzz_check(w->lying || w->completed == w->posted, "%u of %u requests completed",
		   w->completed, w->posted);
	all_to(w, SOFTHCA_QPS_RESET);
	world_settle(w);
	world_reap(w);
	for (unsigned int i = 0; i < 2; i++)
		fuzz_check(softhca_dealloc_mw(w->mw[i]) == 0, "dealloc_mw: %s",
			   softhca_last_error(w->ctx));
	hca_driver_poll(w->drv);
	check_memory(w);
	fuzz_check_usage(w->h, &w->base, &w->port);
	fuzz_trace_state(&w->trace, w->now, w->h, w->mem, WORLD_MEM);
}
