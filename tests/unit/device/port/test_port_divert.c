/* SPDX-License-Identifier: BSD-3-Clause */

/* A port shared with a kernel interface: destinations of frames, order, fairness, no duplicates. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_mbuf.h>

#include "../../../test_eal.h"
#include "abi_roce.h"
#include "abi_ub.h"
#include "engine/pkt.h"
#include "port/port_divert.h"
#include "wire/roce_frame.h"

#define FRAMES 8192u

/* The inner port: delivers `coming` and records sent frames. */
struct wire {
	struct hca_port port;
	struct rte_mbuf *coming[FRAMES], *got[FRAMES];
	unsigned int next, end, n, room, polls;
	bool closed;
};

static struct wire wire;
static struct rte_mempool *pool;
static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 2};
static unsigned int kicks;

static uint16_t
wire_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint16_t k = 0;

	(void)p;
	(void)now;
	while (k < n && wire.next < wire.end)
		m[k++] = wire.coming[wire.next++];
	return k;
}

static uint16_t
wire_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint16_t took = 0;

	(void)p;
	(void)now;
	while (took < n && wire.room != 0 && wire.n < FRAMES) {
		wire.got[wire.n++] = m[took++];
		wire.room--;
	}
	return took;
}

static bool
wire_up(struct hca_port *p)
{
	(void)p;
	return true;
}

static void
wire_poll(struct hca_port *p, uint16_t q, uint64_t now)
{
	(void)p;
	(void)now;
	wire.polls++;
}

static void
wire_close(struct hca_port *p)
{
	(void)p;
	wire.closed = true;
}

static const struct hca_port_ops wire_ops = {
	.rx = wire_rx,
	.tx = wire_tx,
	.link_up = wire_up,
	.poll = wire_poll,
	.close = wire_close,
};

static void
kick(void *arg)
{
	(void)arg;
	kicks++;
}

/* Add the buffers in use of such a port's pools; only one such port exists at a time. */
static void
add_in_use(struct rte_mempool *mp, void *sum)
{
	if (strstr(mp->name, ".dinp") != NULL || strstr(mp->name, ".doutp") != NULL)
		*(unsigned int *)sum += rte_mempool_in_use_count(mp);
}

static unsigned int
buffers_in_use(void)
{
	unsigned int sum = 0;

	rte_mempool_walk(add_in_use, &sum);
	return sum;
}

static struct hca_port *
new_divert_of(uint32_t depth, uint32_t wires)
{
	static unsigned int serial;
	struct hca_port_divert_config cfg = {.depth = depth,
					     .wires = wires,
					     .socket_id = -1,
					     .kick = kick};
	struct hca_port *p;
	char name[16];

	snprintf(name, sizeof(name), "td%u", serial++);
	cfg.name = name;
	memcpy(cfg.mac, our_mac, 6);
	wire = (struct wire){.port = {.ops = &wire_ops, .max_frame = 4400, .queue_size = 64},
			     .room = FRAMES};
	assert_int_equal(hca_port_divert_open(&cfg, &wire.port, &p), 0);
	return p;
}

static struct hca_port *
new_divert(uint32_t depth)
{
	return new_divert_of(depth, 0);
}

static void
wire_clear(void)
{
	for (unsigned int i = 0; i < wire.n; i++)
		rte_pktmbuf_free(wire.got[i]);
	wire.n = 0;
}

/* Asserts that no mbufs are left but those the caller has freed. */
static void
done(struct hca_port *p)
{
	wire_clear();
	p->ops->close(p);
	assert_true(wire.closed);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static struct hca_port_divert_stats
stats(struct hca_port *p)
{
	struct hca_port_divert_stats s;

	hca_port_divert_stats(p, &s);
	return s;
}

/* ---- frames ---- */

struct maker {
	uint8_t b[128];
	uint32_t n;
};

static void
put16(struct maker *k, uint16_t v)
{
	k->b[k->n++] = (uint8_t)(v >> 8);
	k->b[k->n++] = (uint8_t)v;
}

static struct maker
ether(const uint8_t dst[6], int tags, uint16_t type)
{
	struct maker k = {.n = 12};

	memcpy(k.b, dst, 6);
	memcpy(k.b + 6, other_mac, 6);
	for (int i = 0; i < tags; i++) {
		put16(&k, HCA_ETHERTYPE_VLAN);
		put16(&k, 100);
	}
	put16(&k, type);
	return k;
}

static struct maker
ip4(const uint8_t dst[6], int tags, uint8_t proto, unsigned int words, uint16_t frag,
    uint16_t dport)
{
	struct maker k = ether(dst, tags, HCA_ETHERTYPE_IPV4);
	uint32_t at = k.n;

	k.b[at] = (uint8_t)(0x40 | words);
	k.b[at + 7] = (uint8_t)frag;
	k.b[at + 6] = (uint8_t)(frag >> 8);
	k.b[at + 9] = proto;
	k.n = at + words * 4;
	put16(&k, 0xc000);
	put16(&k, dport);
	k.n += 40;
	return k;
}

/* ext: 0: none; else a chain of one extension header of that kind */
static struct maker
ip6(const uint8_t dst[6], int tags, uint8_t proto, uint8_t ext, uint16_t frag, uint16_t dport)
{
	struct maker k = ether(dst, tags, HCA_ETHERTYPE_IPV6);
	uint32_t at = k.n;

	k.b[at] = 0x60;
	k.b[at + 6] = ext != 0 ? ext : proto;
	k.n = at + 40;
	if (ext != 0) {
		k.b[k.n] = proto;
		k.b[k.n + 2] = (uint8_t)(frag >> 8);
		k.b[k.n + 3] = (uint8_t)frag;
		k.n += 8;
	}
	put16(&k, 0xc000);
	put16(&k, dport);
	k.n += 30;
	return k;
}

static struct rte_mbuf *
mbuf_of(struct maker k)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)k.n), k.b, k.n);
	return m;
}

static void
comes(struct rte_mbuf *m)
{
	wire.coming[wire.end++] = m;
}

enum fate {
	DEVICE,
	OTHER,
	DROPPED
};

/* Pass one frame through a port, in a burst of its own. */
static enum fate
fate_of(struct hca_port *p, struct maker k)
{
	struct rte_mbuf *m[4], *o[4];
	unsigned int rx, taken;

	wire.next = wire.end = 0;
	comes(mbuf_of(k));
	rx = p->ops->rx(p, 0, m, 4, 0);
	taken = hca_port_divert_take(p, o, 4);
	assert_true(rx + taken <= 1);
	if (taken == 1) {
		assert_int_equal(o[0]->pkt_len, k.n);
		assert_memory_equal(rte_pktmbuf_mtod(o[0], void *), k.b, k.n);
		rte_pktmbuf_free(o[0]);
		return OTHER;
	}
	if (rx == 0)
		return DROPPED;
	assert_memory_equal(rte_pktmbuf_mtod(m[0], void *), k.b, k.n);
	rte_pktmbuf_free(m[0]);
	return DEVICE;
}

static struct maker
cut(struct maker k, uint32_t n)
{
	k.n = n;
	return k;
}

static void
sorting(void **state)
{
	static const uint8_t group[6] = {0x01, 0, 0x5e, 0, 0, 1};
	const uint16_t roce = HCA_ROCE_UDP_PORT;
	struct hca_port *p = new_divert(64);

	(void)state;
	/* RoCE, valid or not */
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 5, 0, roce)), DEVICE);
	assert_int_equal(fate_of(p, ip4(our_mac, 1, 17, 5, 0, roce)), DEVICE);
	assert_int_equal(fate_of(p, ip4(group, 0, 17, 5, 0, roce)), DEVICE);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 6, 0, roce)), DEVICE);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 15, 0, roce)), DEVICE);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 5, 0x2000, roce)), DEVICE);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 5, 0x4000, roce)), DEVICE);
	assert_int_equal(fate_of(p, ip6(our_mac, 0, 17, 0, 0, roce)), DEVICE);
	assert_int_equal(fate_of(p, ip6(our_mac, 1, 17, 0, 0, roce)), DEVICE);
	assert_int_equal(fate_of(p, ip6(group, 0, 17, 0, 0, roce)), DEVICE);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(fate_of(p, ip6(our_mac, 0, 17, (uint8_t[]){0, 43, 60, 44}[i], 0,
						roce)),
				 DEVICE);
	assert_int_equal(fate_of(p, ip6(our_mac, 0, 17, 44, 1, roce)), DEVICE);
	assert_int_equal(fate_of(p, cut(ip4(our_mac, 0, 17, 5, 0, roce), 38)), DEVICE);
	assert_int_equal(fate_of(p, cut(ip4(our_mac, 0, 17, 5, 0, roce), 13)), DEVICE);
	assert_int_equal(fate_of(p, cut(ip4(our_mac, 0, 17, 5, 0, roce), 1)), DEVICE);
	assert_int_equal(stats(p).rx_pkts, 0);
	/* the same for another host */
	assert_int_equal(fate_of(p, ip4(other_mac, 0, 17, 5, 0, roce)), DROPPED);
	assert_int_equal(fate_of(p, ip6(other_mac, 1, 17, 0, 0, roce)), DROPPED);
	assert_int_equal(stats(p).rx_not_ours, 2);
	hca_port_divert_set_mac(p, other_mac);
	assert_int_equal(fate_of(p, ip4(other_mac, 0, 17, 5, 0, roce)), DEVICE);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 5, 0, roce)), DROPPED);
	hca_port_divert_set_mac(p, our_mac);
	/* everything else */
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 5, 0, 4790)), OTHER);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 6, 5, 0, roce)), OTHER);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 1, 5, 0, roce)), OTHER);
	assert_int_equal(fate_of(p, ip4(our_mac, 1, 1, 5, 0, 0)), OTHER);
	assert_int_equal(fate_of(p, ip4(our_mac, 2, 17, 5, 0, roce)), OTHER);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 5, 0x2001, roce)), OTHER);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 5, 0x0001, roce)), OTHER);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 4, 0, roce)), OTHER);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, 4, 5, 0, roce)), OTHER);
	assert_int_equal(fate_of(p, ip6(our_mac, 0, 58, 0, 0, 0)), OTHER);
	assert_int_equal(fate_of(p, ip6(our_mac, 0, 6, 0, 0, roce)), OTHER);
	assert_int_equal(fate_of(p, ip6(our_mac, 0, 17, 44, 8, roce)), OTHER);
	assert_int_equal(fate_of(p, ip6(our_mac, 0, 17, 0, 0, 53)), OTHER);
	assert_int_equal(fate_of(p, cut(ether(our_mac, 0, 0x0806), 42)), OTHER);
	assert_int_equal(fate_of(p, cut(ether(our_mac, 0, 0x88cc), 14)), OTHER);
	assert_int_equal(fate_of(p, cut(ether(our_mac, 1, 0x0806), 46)), OTHER);
	assert_int_equal(fate_of(p, cut(ether(other_mac, 0, 0x0806), 42)), OTHER);
	assert_int_equal(stats(p).rx_pkts, 17);
	done(p);
}

/*
 * Every length of every kind of frame: nothing is read beyond its end (sanitizers check), nothing
 * is lost.
 */
static void
every_length(void **state)
{
	const struct maker shapes[] = {
		ip4(our_mac, 0, 17, 5, 0, HCA_ROCE_UDP_PORT),
		ip4(our_mac, 1, 17, 15, 0, HCA_ROCE_UDP_PORT),
		ip6(our_mac, 0, 17, 0, 0, HCA_ROCE_UDP_PORT),
		ip6(our_mac, 1, 17, 43, 0, HCA_ROCE_UDP_PORT),
	};
	static const uint32_t port_end[] = {38, 82, 58, 70};
	struct hca_port *p = new_divert(64);

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(shapes); i++) {
		for (uint32_t n = 1; n <= shapes[i].n; n++) {
			bool device = n < HCA_ETH_LEN || n >= port_end[i];

			assert_int_equal(fate_of(p, cut(shapes[i], n)), device ? DEVICE : OTHER);
		}
	}
	done(p);
}

static uint32_t
serial_of(const struct rte_mbuf *m)
{
	return hca_get_be32(rte_pktmbuf_mtod(m, const uint8_t *) + 60);
}

static struct rte_mbuf *
numbered(uint16_t dport, uint32_t serial)
{
	struct rte_mbuf *m = mbuf_of(ip4(our_mac, 0, 17, 5, 0, dport));

	hca_put_be32(rte_pktmbuf_mtod(m, uint8_t *) + 60, serial);
	return m;
}

/* 4000 frames, one in three RoCE: both streams are complete and in order, whatever the bursts. */
static void
order(void **state)
{
	struct hca_port *p = new_divert(64);
	uint32_t roce = 0, other = 0;
	struct rte_mbuf *m[32];

	(void)state;
	for (uint32_t i = 0; i < 4000; i++)
		comes(numbered(i % 3 == 0 ? HCA_ROCE_UDP_PORT : 53, i));
	for (unsigned int k = 1; wire.next < wire.end; k++) {
		unsigned int n = p->ops->rx(p, 0, m, (uint16_t)(1 + k % 32), k);

		for (unsigned int i = 0; i < n; i++, roce += 3) {
			assert_int_equal(serial_of(m[i]), roce);
			rte_pktmbuf_free(m[i]);
		}
		n = hca_port_divert_take(p, m, 32);
		for (unsigned int i = 0; i < n; i++, other++) {
			assert_int_equal(serial_of(m[i]), other / 2 * 3 + 1 + other % 2);
			rte_pktmbuf_free(m[i]);
		}
	}
	assert_int_equal(roce, 4002);
	assert_int_equal(other, 2666);
	assert_int_equal(stats(p).rx_pkts, 2666);
	assert_int_equal(buffers_in_use(), 0);
	done(p);
}

/*
 * The ring is not read: when it is full frames for it are dropped and counted; the device's pass.
 */
static void
ring_full(void **state)
{
	struct hca_port *p = new_divert(64);
	struct rte_mbuf *m[32];
	unsigned int roce = 0, n;

	(void)state;
	for (uint32_t i = 0; i < 400; i++)
		comes(numbered(i % 2 ? HCA_ROCE_UDP_PORT : 53, i));
	while ((n = p->ops->rx(p, 0, m, 32, 0)) != 0) {
		rte_pktmbuf_free_bulk(m, n);
		roce += n;
	}
	assert_int_equal(roce, 200);
	assert_int_equal(stats(p).rx_pkts, 63);
	assert_int_equal(stats(p).rx_drops + stats(p).rx_no_mbuf, 137);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	assert_int_equal(buffers_in_use(), 63);
	done(p); /* with a full ring */
}

static void
give(struct hca_port *p, uint32_t from, uint32_t n, unsigned int expect)
{
	struct rte_mbuf *m[64];

	for (uint32_t i = 0; i < n; i++) {
		m[i] = hca_port_divert_alloc(p);
		assert_non_null(m[i]);
		memset(rte_pktmbuf_append(m[i], 64), 0, 64);
		hca_put_be32(rte_pktmbuf_mtod(m[i], uint8_t *) + 60, from + i);
		rte_pktmbuf_mtod(m[i], uint8_t *)[0] = 0xee;
	}
	assert_int_equal(hca_port_divert_give(p, m, n), expect);
}

/* While the port has room, everything is sent at the next poll, in order. */
static void
transmit(void **state)
{
	struct hca_port *p = new_divert(64);

	(void)state;
	p->ops->poll(p, 0, 0);
	assert_int_equal(wire.polls, 1);
	give(p, 0, 50, 50);
	give(p, 50, 20, 13);
	assert_int_equal(stats(p).tx_drops, 7);
	for (unsigned int i = 0; i < 3; i++)
		p->ops->poll(p, 0, 1);
	assert_int_equal(wire.n, 63);
	for (uint32_t i = 0; i < 63; i++)
		assert_int_equal(serial_of(wire.got[i]), i);
	assert_int_equal(stats(p).tx_pkts, 63);
	assert_int_equal(stats(p).tx_bytes, 63 * 64);
	done(p);
}

/*
 * The port accepts 8 frames per poll, and both sides have more: the device sends most, the other
 * side about an eighth, each in order, each frame once.
 */
static void
fair(void **state)
{
	struct hca_port *p = new_divert(64);
	uint32_t given = 0, sent = 0, roce = 0, other = 0;
	struct rte_mbuf *wait[4];

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		wait[i] = numbered(HCA_ROCE_UDP_PORT, sent++);
	for (unsigned int k = 0; k < 600; k++) {
		unsigned int at = 0;

		if (given - other < 48) {
			give(p, given, 8, 8);
			given += 8;
		}
		wire.room = 3;
		p->ops->poll(p, 0, k);
		at = p->ops->tx(p, 0, wait, 4, k);
		memmove(wait, wait + at, (4 - at) * sizeof(wait[0]));
		for (unsigned int i = 4 - at; i < 4; i++)
			wait[i] = numbered(HCA_ROCE_UDP_PORT, sent++);
		for (unsigned int i = 0; i < wire.n; i++) {
			bool theirs = rte_pktmbuf_mtod(wire.got[i], uint8_t *)[0] == 0xee;

			assert_int_equal(serial_of(wire.got[i]), theirs ? other++ : roce++);
		}
		wire_clear();
	}
	assert_int_equal(roce + other, 1800);
	assert_int_equal(stats(p).tx_pkts, other);
	/* RoCE frames have 78 bytes here, the others 64: about a ninth of all frames */
	assert_in_range(other, 150, 300);
	for (unsigned int i = 0; i < 4; i++)
		rte_pktmbuf_free(wait[i]);
	done(p);
}

/* The device discards frames of a stalled port: the other side does not wait for it. */
static void
device_gives_up(void **state)
{
	struct hca_port *p = new_divert(64);
	struct rte_mbuf *m = numbered(HCA_ROCE_UDP_PORT, 0);

	(void)state;
	give(p, 0, 4, 4);
	wire.room = 0;
	assert_int_equal(p->ops->tx(p, 0, &m, 1, 0), 0);
	p->ops->poll(p, 0, 1);
	assert_int_equal(wire.n, 0);
	wire.room = 10;
	rte_pktmbuf_free(m);
	p->ops->poll(p, 0, 2);
	assert_int_equal(wire.n, 4);
	done(p);
}

static void
sleeping(void **state)
{
	struct hca_port *p = new_divert(64);
	struct rte_mbuf *m[4];

	(void)state;
	kicks = 0;
	assert_true(hca_port_divert_may_sleep(p));
	comes(numbered(HCA_ROCE_UDP_PORT, 0));
	assert_int_equal(p->ops->rx(p, 0, m, 4, 0), 1);
	rte_pktmbuf_free(m[0]);
	assert_int_equal(kicks, 0);
	comes(numbered(53, 0));
	comes(numbered(53, 1));
	assert_int_equal(p->ops->rx(p, 0, m, 1, 0), 0);
	assert_int_equal(p->ops->rx(p, 0, m, 1, 0), 0);
	assert_int_equal(kicks, 1);
	assert_false(hca_port_divert_may_sleep(p));
	assert_int_equal(hca_port_divert_take(p, m, 4), 2);
	rte_pktmbuf_free_bulk(m, 2);
	assert_true(hca_port_divert_may_sleep(p));
	done(p);
}

/* Frames in several segments, and frames longer than a buffer. */
static void
odd_buffers(void **state)
{
	struct hca_port *p = new_divert(64);
	struct rte_mbuf *a, *b, *m[4];

	(void)state;
	a = mbuf_of(cut(ip4(our_mac, 0, 1, 5, 0, 0), 40));
	b = rte_pktmbuf_alloc(pool);
	memset(rte_pktmbuf_append(b, 60), 0x5a, 60);
	assert_int_equal(rte_pktmbuf_chain(a, b), 0);
	comes(a);
	assert_int_equal(p->ops->rx(p, 0, m, 4, 0), 0);
	assert_int_equal(hca_port_divert_take(p, m, 4), 1);
	assert_int_equal(m[0]->data_len, 100);
	assert_int_equal(rte_pktmbuf_mtod(m[0], uint8_t *)[99], 0x5a);
	rte_pktmbuf_free(m[0]);
	a = mbuf_of(cut(ip4(our_mac, 0, 1, 5, 0, 0), 60));
	for (unsigned int i = 0; i < 2; i++) {
		b = rte_pktmbuf_alloc(pool);
		assert_non_null(rte_pktmbuf_append(b, 4000));
		assert_int_equal(rte_pktmbuf_chain(a, b), 0);
	}
	comes(a);
	assert_int_equal(p->ops->rx(p, 0, m, 4, 0), 0);
	assert_int_equal(hca_port_divert_take(p, m, 4), 0);
	assert_int_equal(stats(p).rx_too_long, 1);
	done(p);
}

/* Frames from a watched station and address, and no others */
static void
watched(void **state)
{
	static const uint8_t any4[16] = {[10] = 0xff, 0xff};
	struct hca_port *p = new_divert(0);
	const struct maker roce = ip4(our_mac, 0, HCA_IPPROTO_UDP, 5, 0, HCA_ROCE_UDP_PORT);
	const struct maker roce6 = ip6(our_mac, 1, HCA_IPPROTO_UDP, 0, 0, HCA_ROCE_UDP_PORT);
	struct maker k = roce;
	uint8_t gid[16] = {0};
	int a, b;

	(void)state;
	a = hca_port_divert_watch(p, other_mac, any4, 0xffff);
	b = hca_port_divert_watch(p, other_mac, NULL, 100);
	assert_true(a >= 0 && b >= 0 && a != b);
	assert_int_equal(fate_of(p, roce), DEVICE);
	assert_true(hca_port_divert_seen(p, a));
	assert_false(hca_port_divert_seen(p, a) || hca_port_divert_seen(p, b));
	assert_int_equal(fate_of(p, roce6), DEVICE);
	assert_true(hca_port_divert_seen(p, b));
	k.b[11] ^= 1; /* another station; then another address; not RoCE; not for us */
	assert_int_equal(fate_of(p, k), DEVICE);
	k = roce;
	k.b[HCA_ETH_LEN + 12] = 10;
	assert_int_equal(fate_of(p, k), DEVICE);
	assert_int_equal(fate_of(p, ip4(our_mac, 0, HCA_IPPROTO_UDP, 5, 0, 4790)), OTHER);
	assert_int_equal(fate_of(p, ip4(other_mac, 0, HCA_IPPROTO_UDP, 5, 0, HCA_ROCE_UDP_PORT)),
			 DROPPED);
	for (uint32_t n = 0; n < HCA_ETH_LEN; n++)
		fate_of(p, cut(roce, n));
	assert_false(hca_port_divert_seen(p, a) || hca_port_divert_seen(p, b));
	hca_port_divert_unwatch(p, a);
	assert_int_equal(fate_of(p, roce), DEVICE);
	assert_false(hca_port_divert_seen(p, a));
	for (unsigned int i = 1; i < HCA_PORT_DIVERT_WATCHES; i++)
		assert_true(hca_port_divert_watch(p, other_mac, gid, 7) >= 0);
	assert_int_equal(hca_port_divert_watch(p, other_mac, gid, 7), -ENOSPC);
	done(p);
}

static void
bad_config(void **state)
{
	struct hca_port_divert_config cfg = {.name = "tdx", .depth = 100, .socket_id = -1};
	struct hca_port *p = NULL;

	(void)state;
	assert_int_equal(hca_port_divert_open(&cfg, &wire.port, &p), -EINVAL);
	cfg.depth = 64;
	cfg.wires = HCA_WIRE_BIT(HCA_WIRES);
	assert_int_equal(hca_port_divert_open(&cfg, &wire.port, &p), -EINVAL);
	cfg.wires = HCA_WIRE_BIT(HCA_WIRE_NONE) | HCA_WIRE_BIT(HCA_WIRE_UB);
	assert_int_equal(hca_port_divert_open(&cfg, &wire.port, &p), -EINVAL);
	assert_null(p);
}

static const struct {
	uint32_t wires;
	enum fate roce, ub;
} wire_fates[] = {
	{0, DEVICE, OTHER},
	{HCA_WIRE_BIT(HCA_WIRE_ROCE), DEVICE, OTHER},
	{HCA_WIRE_BIT(HCA_WIRE_UB), OTHER, DEVICE},
	{HCA_WIRE_BIT(HCA_WIRE_ROCE) | HCA_WIRE_BIT(HCA_WIRE_UB), DEVICE, DEVICE},
};

/* Frames of a wire that is off go to the other side, for any MAC address. */
static void
wires_that_are_on(void **state)
{
	const uint16_t roce = HCA_ROCE_UDP_PORT, ub = HCA_UB_UDP_PORT;

	(void)state;
	for (unsigned int i = 0; i < sizeof(wire_fates) / sizeof(wire_fates[0]); i++) {
		struct hca_port *p = new_divert_of(64, wire_fates[i].wires);
		enum fate of_ub = wire_fates[i].ub;

		assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 5, 0, roce)), wire_fates[i].roce);
		assert_int_equal(fate_of(p, ip6(our_mac, 1, 17, 0, 0, roce)), wire_fates[i].roce);
		assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 5, 0, ub)), of_ub);
		assert_int_equal(fate_of(p, ip4(our_mac, 1, 17, 6, 0x4000, ub)), of_ub);
		assert_int_equal(fate_of(p, ip6(our_mac, 0, 17, 0, 0, ub)), of_ub);
		assert_int_equal(fate_of(p, ip4(other_mac, 0, 17, 5, 0, ub)),
				 of_ub == DEVICE ? DROPPED : OTHER);
		assert_int_equal(fate_of(p, ip4(our_mac, 0, 17, 5, 0, 4793)), OTHER);
		done(p);
	}
}

static int
setup(void **state)
{
	(void)state;
	if (test_eal_start(256) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("tp", 8191, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA, -1);
	return pool != NULL ? 0 : -1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorting),	   cmocka_unit_test(every_length),
		cmocka_unit_test(order),	   cmocka_unit_test(ring_full),
		cmocka_unit_test(transmit),	   cmocka_unit_test(fair),
		cmocka_unit_test(device_gives_up), cmocka_unit_test(sleeping),
		cmocka_unit_test(odd_buffers),	   cmocka_unit_test(watched),
		cmocka_unit_test(bad_config),	   cmocka_unit_test(wires_that_are_on),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
