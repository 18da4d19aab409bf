/* SPDX-License-Identifier: BSD-3-Clause */

/* Ports that stand in front of another: impairment by chance and by rule, stalls, captures. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "engine/pkt.h"
#include "port/port_impair.h"
#include "port/port_inbound.h"
#include "port/port_pcap.h"
#include "port/port_stall.h"
#include "wire/roce_frame.h"

#define FRAMES 4096u
#define MISSED 7u

/* The inner port: keeps what it is given, takes at most `room` more. */
struct sink {
	struct hca_port port;
	struct rte_mbuf *got[FRAMES];
	unsigned int n, room, polls;
	bool closed;
};

static struct sink sink;
static struct rte_mempool *pool;

static uint16_t
sink_tx(struct hca_port *p, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint16_t took = 0;

	(void)p;
	(void)now;
	while (took < n && sink.room != 0 && sink.n < FRAMES) {
		sink.got[sink.n++] = m[took++];
		sink.room--;
	}
	return took;
}

static uint16_t
sink_rx(struct hca_port *p, struct rte_mbuf **m, uint16_t n, uint64_t now)
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
sink_poll(struct hca_port *p, uint64_t now)
{
	(void)p;
	(void)now;
	sink.polls++;
}

static uint64_t
sink_missed(const struct hca_port *p)
{
	(void)p;
	return MISSED;
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

static void
sink_clear(void)
{
	for (unsigned int i = 0; i < sink.n; i++)
		rte_pktmbuf_free(sink.got[i]);
	sink.n = 0;
	sink.room = FRAMES;
}

static struct hca_port *
new_sink(void)
{
	sink = (struct sink){.port = {.ops = &sink_ops, .max_frame = 4400, .queue_size = 64},
			     .room = FRAMES};
	return &sink.port;
}

#define QPN 0x123u

/* 64 bytes of that opcode to that QP. */
static struct rte_mbuf *
frame_of(uint8_t opcode, uint32_t psn, uint32_t qpn, uint32_t sqpn, bool vlan)
{
	const struct hca_roce_path path = {.ip_version = 4,
					   .vlan = vlan,
					   .vlan_tci = 7,
					   .hop_limit = 64,
					   .pkey = 0xffff,
					   .qpn = qpn,
					   .udp_sport = 0xc000};
	const struct hca_roce_packet pk = {.opcode = opcode, .psn = psn, .payload_len = 64};
	const struct hca_roce_headers h = {.reth = {.len = 64}, .deth = {.src_qpn = sqpn}};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct hca_roce_template t;
	uint8_t data[64] = {1, 2, 3};
	int n;

	assert_non_null(m);
	assert_int_equal(hca_roce_template_fill(&path, &t), 0);
	n = hca_roce_build(hca_icrc_select(), &t, &pk, &h, data, rte_pktmbuf_mtod(m, uint8_t *),
			   512);
	assert_true(n > 0);
	rte_pktmbuf_append(m, (uint16_t)n);
	return m;
}

/* A WRITE ONLY with that PSN. */
static struct rte_mbuf *
frame(uint32_t psn)
{
	return frame_of(HCA_BTH_RC_WRITE_ONLY, psn, QPN, 0, false);
}

/* PSN of frame i of the sink, or -1 where it does not parse, -2 where the ICRC is wrong. */
static int
psn_of(unsigned int i)
{
	const uint8_t *f = rte_pktmbuf_mtod(sink.got[i], const uint8_t *);
	struct hca_roce_view v;

	if (hca_roce_parse(f, sink.got[i]->data_len, &v) != 0)
		return -1;
	return hca_roce_check_icrc(hca_icrc_select(), f, &v) == 0 ? (int)v.psn : -2;
}

static struct hca_port *
new_impair(uint32_t hold)
{
	static unsigned int serial;
	char name[16];
	const struct hca_port_impair_config cfg = {.name = name,
						   .seed = 7,
						   .hold = hold,
						   .socket_id = -1};
	struct hca_port *p;

	snprintf(name, sizeof(name), "ti%u", serial++);
	assert_int_equal(hca_port_impair_open(&cfg, new_sink(), &p), 0);
	assert_int_equal(hca_port_missed(p), MISSED);
	return p;
}

static void
done(struct hca_port *p)
{
	sink_clear();
	p->ops->close(p);
	assert_true(sink.closed);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void
send(struct hca_port *p, uint32_t psn, uint64_t now)
{
	struct rte_mbuf *m = frame(psn);

	assert_int_equal(p->ops->tx(p, &m, 1, now), 1);
}

static struct hca_port_impair_stats
stats(struct hca_port *p)
{
	struct hca_port_impair_stats s;

	hca_port_impair_stats(p, &s);
	return s;
}

static void
clean(void **state)
{
	struct hca_port *p = new_impair(4);

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		send(p, i, i);
	assert_int_equal(sink.n, 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(psn_of(i), i);
	p->ops->poll(p, 11);
	assert_int_equal(sink.polls, 1);
	done(p);
}

/* 2,000 frames, each fault at 10 %: about 200 of each. */
static void
by_chance(void **state)
{
	const struct hca_impair all = {.drop = 0.1,
				       .dup = 0.1,
				       .reorder = 0.1,
				       .corrupt = 0.1,
				       .truncate = 0.1,
				       .ecn = 0.1};
	struct hca_port *p = new_impair(1024);
	struct hca_port_impair_stats s;
	unsigned int bad = 0, good = 0, swapped = 0;
	int last = -1;

	(void)state;
	hca_port_impair_set(p, &all);
	for (uint32_t i = 0; i < 2000; i++)
		send(p, i, i * 1000);
	p->ops->poll(p, 1000000000);
	s = stats(p);
	assert_int_equal(hca_port_impair_held(p), 0);
	assert_int_equal(sink.n, 2000 - s.dropped + s.duplicated);
	for (unsigned int i = 0; i < sink.n; i++) {
		int psn = psn_of(i);

		good += psn >= 0;
		bad += psn < 0;
		swapped += psn >= 0 && psn < last;
		last = psn >= 0 ? psn : last;
	}
	/* A few hit a byte that routers may change: no error. */
	assert_in_range(bad, (s.corrupted + s.truncated) * 9 / 10, s.corrupted + s.truncated);
	assert_true(swapped >= s.reordered / 2);
#define X(n) assert_in_range(s.n, 100, 300);
	X(dropped)
	X(duplicated)
	X(reordered)
	X(corrupted)
	X(truncated)
	X(ecn_marked)
#undef X
	hca_port_impair_set(p, NULL);
	sink_clear();
	send(p, 5, 2000000000);
	assert_int_equal(psn_of(0), 5);
	done(p);
}

static void
same_seed_same_fate(void **state)
{
	const struct hca_impair all = {.drop = 0.2, .dup = 0.2, .reorder = 0.2};
	int first[600], n = 0;

	(void)state;
	for (unsigned int run = 0; run < 2; run++) {
		struct hca_port *p = new_impair(1024);

		hca_port_impair_set(p, &all);
		for (uint32_t i = 0; i < 300; i++)
			send(p, i, i * 100);
		p->ops->poll(p, 1000000);
		for (unsigned int i = 0; i < sink.n; i++) {
			if (run == 0)
				first[n++] = psn_of(i);
			else
				assert_int_equal(first[i], psn_of(i));
		}
		assert_int_equal(sink.n, n);
		done(p);
	}
}

static void
rules(void **state)
{
	const struct hca_fault_rule drop = {.opcode = HCA_BTH_RC_WRITE_ONLY,
					    .psn = 3,
					    .count = 1,
					    .fault = HCA_FAULT_DROP};
	const struct hca_fault_rule dup = {.opcode = HCA_FAULT_ANY,
					   .psn = HCA_FAULT_ANY,
					   .nth = 5,
					   .count = 1,
					   .fault = HCA_FAULT_DUP};
	const struct hca_fault_rule swap = {.opcode = HCA_FAULT_ANY,
					    .psn = 7,
					    .count = 1,
					    .fault = HCA_FAULT_REORDER};
	const struct hca_fault_rule other = {.opcode = HCA_BTH_RC_ACK,
					     .psn = HCA_FAULT_ANY,
					     .fault = HCA_FAULT_DROP};
	const struct hca_fault_rule late = {.opcode = HCA_FAULT_ANY,
					    .psn = 9,
					    .count = 1,
					    .fault = HCA_FAULT_DELAY,
					    .arg = 500};
	static const int want[] = {0, 1, 2, 4, 5, 5, 6, 8, 7, 10, 9, 3};
	struct hca_port *p = new_impair(8);

	(void)state;
	assert_int_equal(hca_port_impair_rule(p, &drop), 0);
	assert_int_equal(hca_port_impair_rule(p, &dup), 0);
	assert_int_equal(hca_port_impair_rule(p, &swap), 0);
	assert_int_equal(hca_port_impair_rule(p, &other), 0);
	assert_int_equal(hca_port_impair_rule(p, &late), 0);
	for (uint32_t i = 0; i <= 10; i++)
		send(p, i, i);
	p->ops->poll(p, 508);
	assert_int_equal(sink.n, 10);
	p->ops->poll(p, 509);
	send(p, 3, 600);
	assert_int_equal(sink.n, sizeof(want) / sizeof(want[0]));
	for (unsigned int i = 0; i < sink.n; i++)
		assert_int_equal(psn_of(i), want[i]);
	assert_int_equal(hca_port_impair_hits(p, 0), 1);
	assert_int_equal(hca_port_impair_hits(p, 3), 0);
	hca_port_impair_clear_rules(p);
	done(p);
}

/* Every kind of corruption is caught by the parser or the ICRC. */
static void
corruption(void **state)
{
	struct hca_port *p = new_impair(4);

	(void)state;
	for (unsigned int f = HCA_FAULT_CORRUPT_PAYLOAD; f <= HCA_FAULT_CORRUPT_ICRC; f++) {
		const struct hca_fault_rule rule = {.opcode = HCA_FAULT_ANY,
						    .psn = HCA_FAULT_ANY,
						    .fault = f};
		unsigned int missed = 0;

		hca_port_impair_clear_rules(p);
		hca_port_impair_rule(p, &rule);
		for (uint32_t i = 0; i < 300; i++)
			send(p, i, 0);
		/* BTH byte 4 is not covered by the ICRC. */
		for (unsigned int i = 0; i < sink.n; i++)
			missed += psn_of(i) >= 0;
		assert_true(missed < (f == HCA_FAULT_CORRUPT_HEADER ? 40 : 1));
		assert_int_equal(sink.n, 300);
		sink_clear();
	}
	done(p);
}

/* A full hold makes the port stall under delay; nothing is lost and nothing is reordered. */
static void
delay_is_bounded(void **state)
{
	const struct hca_impair slow = {.delay_ns = 1000};
	struct hca_port *p = new_impair(8);
	struct rte_mbuf *m[20];
	uint16_t took;

	(void)state;
	hca_port_impair_set(p, &slow);
	for (uint32_t i = 0; i < 20; i++)
		m[i] = frame(i);
	took = p->ops->tx(p, m, 20, 100);
	assert_int_equal(took, 8);
	assert_int_equal(hca_port_impair_held(p), 8);
	p->ops->poll(p, 1099);
	assert_int_equal(sink.n, 0);
	assert_int_equal(p->ops->tx(p, m + took, 12, 1100), 8);
	assert_int_equal(sink.n, 8);
	p->ops->poll(p, 2100);
	assert_int_equal(sink.n, 16);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(psn_of(i), i);
	/* Copies the receiver still has count against the pool: the port stalls. */
	assert_int_equal(p->ops->tx(p, m + 16, 4, 3000), 0);
	assert_int_equal(stats(p).no_mbuf, 1);
	sink_clear();
	assert_int_equal(p->ops->tx(p, m + 16, 4, 3000), 4);
	p->ops->poll(p, 4000);
	assert_int_equal(sink.n, 4);
	assert_int_equal(psn_of(3), 19);
	assert_true(stats(p).stalled != 0);
	done(p);
}

/* The inner port refuses: the frame stays with the caller, its fate is not decided twice. */
static void
inner_full(void **state)
{
	const struct hca_fault_rule dup = {.opcode = HCA_FAULT_ANY,
					   .psn = HCA_FAULT_ANY,
					   .nth = 1,
					   .count = 1,
					   .fault = HCA_FAULT_CORRUPT_ICRC};
	struct hca_port *p = new_impair(8);
	struct rte_mbuf *m = frame(1);

	(void)state;
	hca_port_impair_rule(p, &dup);
	sink.room = 0;
	assert_int_equal(p->ops->tx(p, &m, 1, 1), 0);
	assert_int_equal(p->ops->tx(p, &m, 1, 2), 0);
	sink.room = 4;
	assert_int_equal(p->ops->tx(p, &m, 1, 3), 1);
	assert_int_equal(psn_of(0), -2);
	assert_int_equal(stats(p).corrupted, 1);
	done(p);
}

static void
send_of(struct hca_port *p, uint8_t opcode, uint32_t qpn, uint32_t sqpn)
{
	struct rte_mbuf *m = frame_of(opcode, 1, qpn, sqpn, false);

	assert_int_equal(p->ops->tx(p, &m, 1, 0), 1);
}

/* Odds and rules of one QP leave the frames of others alone, delay and all. */
static void
one_qp(void **state)
{
	const struct hca_impair odds = {.drop = 1, .delay_ns = 100, .qpn = QPN, .sqpn = 5};
	const struct hca_fault_rule rule = {.opcode = HCA_FAULT_ANY,
					    .psn = HCA_FAULT_ANY,
					    .fault = HCA_FAULT_DROP,
					    .qpn = QPN,
					    .sqpn = 5};
	struct hca_port *p = new_impair(8);

	(void)state;
	for (unsigned int by_rule = 0; by_rule < 2; by_rule++) {
		uint64_t dropped = stats(p).dropped;

		if (by_rule)
			hca_port_impair_rule(p, &rule);
		hca_port_impair_set(p, by_rule ? NULL : &odds);
		send_of(p, HCA_BTH_RC_WRITE_ONLY, QPN, 0);
		send_of(p, HCA_BTH_UD_SEND_ONLY, 9, 5);
		assert_int_equal(sink.n, 0);
		assert_int_equal(stats(p).dropped, dropped + 2);
		send_of(p, HCA_BTH_RC_WRITE_ONLY, QPN + 1, 0);
		send_of(p, HCA_BTH_RC_WRITE_ONLY, 5, 0);
		send_of(p, HCA_BTH_UD_SEND_ONLY, 9, 6);
		assert_int_equal(sink.n, 3);
		assert_int_equal(stats(p).dropped, dropped + 2);
		sink_clear();
	}
	assert_int_equal(hca_port_impair_hits(p, 0), 2);
	assert_int_equal(stats(p).delayed, 0);
	done(p);
}

/* A receiver that verifies the header's checksum takes the frame; the mark is where it belongs. */
static void
marks(void **state)
{
	const struct hca_impair all = {.ecn = 1};
	struct hca_port *p = new_impair(8);

	(void)state;
	hca_port_impair_set(p, &all);
	for (unsigned int vlan = 0; vlan < 2; vlan++) {
		struct rte_mbuf *m = frame_of(HCA_BTH_RC_WRITE_ONLY, 1, QPN, 0, vlan != 0);
		const uint8_t *l3;
		uint32_t sum = 0;

		assert_int_equal(p->ops->tx(p, &m, 1, 0), 1);
		assert_int_equal(psn_of(vlan), 1);
		l3 = rte_pktmbuf_mtod_offset(sink.got[vlan], uint8_t *,
					     HCA_ETH_LEN + vlan * HCA_VLAN_LEN);
		assert_int_equal(l3[1], 3);
		for (unsigned int i = 0; i < HCA_IPV4_LEN; i += 2)
			sum += hca_get_be16(l3 + i);
		assert_int_equal(hca_ip_fold(sum), 0xffff);
	}
	assert_int_equal(stats(p).ecn_marked, 2);
	done(p);
}

static void
stalls(void **state)
{
	const struct hca_port_stall_config cfg = {.seed = 3, .socket_id = -1};
	const struct hca_port_stall_rules two = {.tx_burst_max = 2};
	const struct hca_port_stall_rules window = {.stall_every = 100, .stall_for = 40};
	const struct hca_port_stall_rules down = {.down_after = 100, .down_for = 50};
	struct rte_mbuf *m[8];
	struct hca_port *p;
	unsigned int seen = 0;

	(void)state;
	assert_int_equal(hca_port_stall_open(&cfg, new_sink(), &p), 0);
	assert_int_equal(hca_port_missed(p), MISSED);
	for (uint32_t i = 0; i < 8; i++)
		m[i] = frame(i);
	hca_port_stall_set(p, &two);
	for (unsigned int at = 0, k = 0; at < 8 && k < 1000; k++) {
		uint16_t took = p->ops->tx(p, m + at, (uint16_t)(8 - at), k);

		assert_true(took <= 2);
		seen |= 1u << took;
		at += took;
	}
	assert_int_equal(sink.n, 8);
	assert_int_equal(seen, 7);
	hca_port_stall_set(p, &window);
	m[0] = frame(0);
	m[1] = frame(1);
	assert_int_equal(p->ops->tx(p, m, 1, 1000), 1);
	assert_int_equal(p->ops->tx(p, m + 1, 1, 1060), 0);
	assert_true(p->ops->link_up(p));
	assert_int_equal(p->ops->tx(p, m + 1, 1, 1100), 1);
	hca_port_stall_set(p, &down);
	m[0] = frame(0);
	m[1] = frame(1);
	assert_int_equal(p->ops->tx(p, m, 1, 2000), 1);
	assert_int_equal(p->ops->tx(p, m + 1, 1, 2100), 0);
	assert_false(p->ops->link_up(p));
	p->ops->poll(p, 2150);
	assert_true(p->ops->link_up(p));
	hca_port_stall_link(p, false);
	assert_false(p->ops->link_up(p));
	assert_int_equal(p->ops->tx(p, m + 1, 1, 2160), 0);
	hca_port_stall_link(p, true);
	assert_int_equal(p->ops->tx(p, m + 1, 1, 2170), 1);
	done(p);
}

static void
capture(void **state)
{
	char path[] = "/tmp/softhca-test-XXXXXX";
	uint8_t head[24], frame_head[16], bytes[512];
	struct hca_pcap *file;
	struct hca_port *p;
	uint32_t len;
	int fd = mkstemp(path);
	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(hca_pcap_open(path, 3, &file), 0);
	assert_int_equal(hca_port_pcap_open(file, new_sink(), -1, &p), 0);
	assert_int_equal(hca_port_missed(p), MISSED);
	for (uint32_t i = 0; i < 5; i++)
		send(p, i, 3000000007u + i);
	assert_int_equal(sink.n, 5);
	assert_int_equal(hca_pcap_frames(file), 3);
	hca_port_pcap_attach(p, NULL);
	assert_int_equal(hca_pcap_close(file), 0);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(head, sizeof(head), 1, f), 1);
	memcpy(&len, head, 4);
	assert_int_equal(len, 0xa1b23c4d);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t w[4];

		assert_int_equal(fread(frame_head, sizeof(frame_head), 1, f), 1);
		memcpy(w, frame_head, sizeof(w));
		assert_int_equal(w[0], 3);
		assert_int_equal(w[1], 7 + i);
		assert_int_equal(w[2], sink.got[i]->data_len);
		assert_int_equal(w[3], w[2]);
		assert_int_equal(fread(bytes, w[2], 1, f), 1);
		assert_memory_equal(bytes, rte_pktmbuf_mtod(sink.got[i], void *), w[2]);
	}
	assert_int_equal(fgetc(f), EOF);
	fclose(f);
	unlink(path);
	assert_int_equal(hca_pcap_open("/nonexistent/x", 1, &file), -ENOENT);
	done(p);
}

/* ---- faults of what arrives ---- */

static struct rte_mbuf *arriving[FRAMES];
static unsigned int num_arriving, arrived;

static uint16_t
source_rx(struct hca_port *p, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint16_t got = 0;

	(void)p;
	(void)now;
	while (got < n && arrived < num_arriving)
		m[got++] = arriving[arrived++];
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

/* Frames with PSN 0 .. n - 1 are to be received. */
static struct hca_port *
new_inbound(const char *name, unsigned int n)
{
	const struct hca_port_impair_config cfg = {.name = name, .seed = 7, .socket_id = -1};
	struct hca_port *inner = new_sink(), *p;

	inner->ops = &source_ops;
	for (num_arriving = 0; num_arriving < n; num_arriving++)
		arriving[num_arriving] = frame(num_arriving);
	arrived = 0;
	assert_int_equal(hca_port_inbound_open(&cfg, inner, &p), 0);
	assert_int_equal(hca_port_missed(p), MISSED);
	return p;
}

/* Receives once, behind what the sink has; the sink owns the frames. */
static unsigned int
receive(struct hca_port *p, uint16_t n, uint64_t now)
{
	uint16_t got = p->ops->rx(p, sink.got + sink.n, n, now);

	sink.n += got;
	return got;
}

static void
inbound(void **state)
{
	const struct hca_fault_rule lost = {.opcode = HCA_FAULT_ANY,
					    .psn = 3,
					    .fault = HCA_FAULT_DROP};
	const struct hca_fault_rule late = {.opcode = HCA_FAULT_ANY,
					    .psn = 5,
					    .fault = HCA_FAULT_DELAY,
					    .arg = 1000};
	const struct hca_fault_rule twice = {.opcode = HCA_FAULT_ANY,
					     .psn = 8,
					     .fault = HCA_FAULT_DUP};
	static const int order[] = {0, 1, 2, 4, 6, 7, 8, 9, 8};
	struct hca_port *p = new_inbound("tin", 10), *im = hca_port_inbound_impair(p);
	struct rte_mbuf *m = frame(77);

	(void)state;
	assert_int_equal(hca_port_impair_rule(im, &lost), 0);
	assert_int_equal(hca_port_impair_rule(im, &late), 0);
	assert_int_equal(hca_port_impair_rule(im, &twice), 0);
	while (receive(p, 4, 100) != 0)
		;
	assert_int_equal(sink.n, RTE_DIM(order));
	for (unsigned int i = 0; i < RTE_DIM(order); i++)
		assert_int_equal(psn_of(i), order[i]);
	assert_int_equal(receive(p, 4, 1099), 0);
	assert_int_equal(receive(p, 4, 1100), 1);
	assert_int_equal(psn_of(sink.n - 1), 5);
	assert_int_equal(stats(im).dropped, 1);

	/* what is sent meets no fault */
	assert_int_equal(p->ops->tx(p, &m, 1, 1200), 1);
	assert_int_equal(psn_of(sink.n - 1), 77);
	done(p);
}

/* More than the caller has room for is kept, and freed when the port is closed. */
static void
inbound_keeps_what_does_not_fit(void **state)
{
	const struct hca_impair all_twice = {.dup = 1};
	struct hca_port *p = new_inbound("tik", 100);
	unsigned int times[100] = {0};

	(void)state;
	hca_port_impair_set(hca_port_inbound_impair(p), &all_twice);
	for (unsigned int i = 0; i < 60; i++)
		assert_int_equal(receive(p, 3, i), 3);
	for (unsigned int i = 0; i < 180; i++)
		times[psn_of(i)]++;
	for (unsigned int i = 0; i < 80; i++)
		assert_int_equal(times[i], 2);
	assert_int_equal(arrived, 100);
	done(p); /* twenty have not been fetched */
}

/*
 * A delay that holds more than there is room for: nothing is lost and nothing overtakes; what does
 * not fit stays in the inner port's queue. Then all is off: what was held comes nevertheless.
 */
static void
inbound_delay_is_bounded(void **state)
{
	const struct hca_impair slow = {.delay_ns = 1000};
	struct hca_port *p = new_inbound("tib", 3000), *im = hca_port_inbound_impair(p);

	(void)state;
	hca_port_impair_set(im, &slow);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(receive(p, 32, 10), 0);
	assert_int_equal(hca_port_impair_held(im), 1024);
	assert_in_range(arrived, 1024, 1024 + 32);
	for (unsigned int i = 0; sink.n < 2000; i++) {
		assert_true(i < 1000000);
		receive(p, 32, 1010 + 10 * i);
	}
	hca_port_impair_set(im, NULL);
	for (unsigned int i = 0; i < 200; i++)
		receive(p, 32, 100000000);
	assert_int_equal(sink.n, 3000);
	for (unsigned int i = 0; i < 2000; i++)
		assert_int_equal(psn_of(i), i);
	assert_int_equal(stats(im).frames, 3000);
	assert_int_equal(stats(im).dropped, 0);
	assert_true(stats(im).hold_full != 0);
	done(p);
}

/* Set and not set in turns: every frame arrives once while nothing is set. */
static void
inbound_comes_and_goes(void **state)
{
	const struct hca_impair lose = {.drop = 1};
	struct hca_port *p = new_inbound("tic", 400), *im = hca_port_inbound_impair(p);

	(void)state;
	for (unsigned int i = 0; i < 40; i++) {
		hca_port_impair_set(im, i % 2 ? &lose : NULL);
		assert_int_equal(receive(p, 10, i), i % 2 ? 0 : 10);
	}
	assert_int_equal(sink.n, 200);
	for (unsigned int i = 0; i < 200; i++)
		assert_int_equal(psn_of(i), i / 10 * 20 + i % 10);
	assert_int_equal(stats(im).dropped, 200);
	assert_int_equal(stats(im).frames, 400);
	done(p);
}

/* On request a capture has what was received, too. */
static void
capture_of_both_ways(void **state)
{
	char path[] = "/tmp/test_port_wrap.XXXXXX";
	struct hca_port *inner = new_sink(), *p;
	struct rte_mbuf *m = frame(9);
	struct hca_pcap *file;

	(void)state;
	close(mkstemp(path));
	inner->ops = &source_ops;
	for (num_arriving = 0; num_arriving < 4; num_arriving++)
		arriving[num_arriving] = frame(num_arriving);
	arrived = 0;
	assert_int_equal(hca_pcap_open(path, 0, &file), 0);
	assert_int_equal(hca_port_pcap_open(file, inner, -1, &p), 0);
	assert_int_equal(receive(p, 2, 1), 2);
	assert_int_equal(hca_pcap_frames(file), 0);
	hca_port_pcap_both_ways(p);
	assert_int_equal(receive(p, 8, 2), 2);
	assert_int_equal(hca_pcap_frames(file), 2);
	assert_int_equal(p->ops->tx(p, &m, 1, 3), 1);
	assert_int_equal(hca_pcap_frames(file), 3);
	hca_port_pcap_attach(p, NULL);
	assert_int_equal(hca_pcap_close(file), 0);
	unlink(path);
	done(p);
}

static int
setup(void **state)
{
	static char a[][16] = {"test",		 "--no-huge",	"-m", "256", "--no-pci",
			       "--no-telemetry", "--no-shconf", "-l", "0"};
	char *argv[RTE_DIM(a) + 1] = {NULL};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(a); i++)
		argv[i] = a[i];
	if (rte_eal_init(RTE_DIM(a), argv) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("tp", 8191, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA, -1);
	return pool != NULL ? 0 : -1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean),
		cmocka_unit_test(by_chance),
		cmocka_unit_test(same_seed_same_fate),
		cmocka_unit_test(rules),
		cmocka_unit_test(corruption),
		cmocka_unit_test(delay_is_bounded),
		cmocka_unit_test(inner_full),
		cmocka_unit_test(one_qp),
		cmocka_unit_test(marks),
		cmocka_unit_test(stalls),
		cmocka_unit_test(capture),
		cmocka_unit_test(inbound),
		cmocka_unit_test(inbound_keeps_what_does_not_fit),
		cmocka_unit_test(inbound_delay_is_bounded),
		cmocka_unit_test(inbound_comes_and_goes),
		cmocka_unit_test(capture_of_both_ways),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
