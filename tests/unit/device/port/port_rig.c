/* SPDX-License-Identifier: BSD-3-Clause */

#include "../../../test_eal.h"
#include "port_rig.h"
#include "wire/roce_opcode.h"

struct rig_sink sink;
struct rte_mempool *pool;
unsigned int arrived;

static struct rte_mbuf *arriving[RIG_FRAMES];
static unsigned int num_arriving, next_arriving[16]; /* of each queue */

static uint16_t
sink_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint16_t took = 0;

	(void)p;
	(void)now;
	while (took < n && sink.room != 0 && sink.n < RIG_FRAMES) {
		sink.queue[sink.n] = q;
		sink.got[sink.n++] = m[took++];
		sink.room--;
	}
	return took;
}

static uint16_t
sink_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	(void)p;
	(void)m;
	(void)now;
	return n;
}

static bool
sink_up(struct hca_port *p)
{
	(void)p;
	return true;
}

static void
sink_poll(struct hca_port *p, uint16_t q, uint64_t now)
{
	(void)p;
	(void)now;
	sink.polls++;
}

static uint64_t
sink_missed(const struct hca_port *p)
{
	(void)p;
	return RIG_MISSED;
}

static void
sink_close(struct hca_port *p)
{
	(void)p;
	sink.closed = true;
}

static const struct hca_port_ops sink_ops = {
	.rx = sink_rx,
	.tx = sink_tx,
	.link_up = sink_up,
	.poll = sink_poll,
	.missed = sink_missed,
	.close = sink_close,
};

void
rig_sink_clear(void)
{
	for (unsigned int i = 0; i < sink.n; i++)
		rte_pktmbuf_free(sink.got[i]);
	sink.n = 0;
	sink.room = RIG_FRAMES;
}

struct hca_port *
rig_sink(void)
{
	sink = (struct rig_sink){.port = {.ops = &sink_ops, .max_frame = 4400, .queue_size = 64},
				 .room = RIG_FRAMES};
	return &sink.port;
}

struct hca_port *
rig_sink_of(uint16_t queues)
{
	struct hca_port *p = rig_sink();

	p->queues = queues;
	return p;
}

struct rte_mbuf *
rig_frame_of(uint8_t opcode, uint32_t psn, uint32_t qpn, uint32_t sqpn, bool vlan)
{
	const struct hca_roce_path path = {.udp.ip_version = 4,
					   .udp.vlan = vlan,
					   .udp.vlan_tci = 7,
					   .udp.hop_limit = 64,
					   .pkey = 0xffff,
					   .qpn = qpn,
					   .udp.sport = 0xc000};
	const uint32_t payload = hca_roce_opcodes[opcode].has_payload ? 64 : 0;
	const struct roce_packet pk = {.opcode = opcode, .psn = psn, .payload_len = payload};
	const struct roce_headers h = {.reth = {.len = 64}, .deth = {.src_qpn = sqpn}};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct hca_udp_template t;
	uint8_t data[64] = {1, 2, 3};
	int n;

	assert_non_null(m);
	assert_int_equal(hca_roce_template_fill(&path, &t), 0);
	n = roce_build(hca_icrc_select(), &t, &pk, &h, data, rte_pktmbuf_mtod(m, uint8_t *), 512);
	assert_true(n > 0);
	rte_pktmbuf_append(m, (uint16_t)n);
	return m;
}

struct rte_mbuf *
rig_ub_frame(uint8_t opcode, uint32_t psn, uint32_t tpn, uint32_t source_tpn)
{
	const struct hca_ub_path path = {.udp = {.ip_version = 4, .hop_limit = 64}};
	struct hca_ub_headers h = {.rtph = {.last = opcode == HCA_UB_TP_RTP,
					    .opcode = opcode,
					    .src_tpn = source_tpn,
					    .dst_tpn = tpn,
					    .psn = psn},
				   .atah = {.opcode = HCA_UB_TA_TAACK}};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct hca_udp_template t;
	int n;

	assert_non_null(m);
	assert_int_equal(hca_ub_template_fill(&path, &t), 0);
	n = ub_build(hca_icrc_select(), &t, &h, NULL, 0, rte_pktmbuf_mtod(m, uint8_t *), 512);
	assert_true(n > 0);
	rte_pktmbuf_append(m, (uint16_t)n);
	return m;
}

struct rte_mbuf *
rig_frame(uint32_t psn)
{
	return rig_frame_of(HCA_BTH_RC_WRITE_ONLY, psn, RIG_QPN, 0, false);
}

int
rig_psn_of(unsigned int i)
{
	const uint8_t *f = rte_pktmbuf_mtod(sink.got[i], const uint8_t *);
	struct roce_view v;

	if (roce_parse(f, sink.got[i]->data_len, &v) != 0)
		return -1;
	return roce_icrc_ok(hca_icrc_select(), f, &v) ? (int)v.psn : -2;
}

void
rig_done(struct hca_port *p)
{
	rig_sink_clear();
	p->ops->close(p);
	assert_true(sink.closed);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

void
rig_send_by(struct hca_port *p, uint16_t q, uint32_t psn, uint64_t now)
{
	struct rte_mbuf *m = rig_frame(psn);

	assert_int_equal(p->ops->tx(p, q, &m, 1, now), 1);
}

void
rig_send(struct hca_port *p, uint32_t psn, uint64_t now)
{
	rig_send_by(p, 0, psn, now);
}

static uint16_t
source_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint16_t got = 0;

	(void)now;
	for (; got < n && next_arriving[q] < num_arriving; arrived++) {
		m[got++] = arriving[next_arriving[q]];
		next_arriving[q] += hca_port_queues(p);
	}
	return got;
}

static const struct hca_port_ops source_ops = {
	.rx = source_rx,
	.tx = sink_tx,
	.link_up = sink_up,
	.poll = sink_poll,
	.missed = sink_missed,
	.close = sink_close,
};

struct hca_port *
rig_source_of(unsigned int n, uint16_t queues)
{
	struct hca_port *inner = rig_sink_of(queues);

	inner->ops = &source_ops;
	for (uint16_t q = 0; q < queues; q++)
		next_arriving[q] = q;
	for (num_arriving = 0; num_arriving < n; num_arriving++)
		arriving[num_arriving] = rig_frame(num_arriving);
	arrived = 0;
	return inner;
}

struct hca_port *
rig_source(unsigned int n)
{
	return rig_source_of(n, 1);
}

unsigned int
rig_receive_by(struct hca_port *p, uint16_t q, uint16_t n, uint64_t now)
{
	uint16_t got = p->ops->rx(p, q, sink.got + sink.n, n, now);

	for (uint16_t i = 0; i < got; i++)
		sink.queue[sink.n++] = q;
	return got;
}

unsigned int
rig_receive(struct hca_port *p, uint16_t n, uint64_t now)
{
	return rig_receive_by(p, 0, n, now);
}

int
rig_setup(void **state)
{
	(void)state;
	if (test_eal_start(256) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("tp", 8191, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA, -1);
	return pool != NULL ? 0 : -1;
}
