/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "abi_addr.h"
#include "abi_roce.h"
#include "core/mbuf.h"
#include "core/table.h"
#include "core/ring_count.h"
#include "port/port_divert.h"
#include "port/port_wrap.h"
#include "wire/wire_view.h"

#define DEFAULT_DEPTH 1024u
#define DEPTH_OF_QUEUE 128u /* each of several queues has this share of the depth, or more */
#define HELD 32u	    /* frames of the other side being sent */
#define SHARE_SHIFT 3	    /* the other side's share of a busy port: 1/8 */
#define LATER_NS 100000u    /* retry interval for a port that accepted nothing */
#define CREDIT_MAX 65536u   /* bytes */

_Static_assert(HCA_PORT_DIVERT_FRAME <= HCA_MBUF_DATA - RTE_PKTMBUF_HEADROOM, "a buffer holds it");

/*
 * One per queue that receives: its counters, and its ring to the other side with the pool of the
 * frames in it. With one for all queues, a worker without a CPU would stop the others.
 */
struct divert_rx {
	uint64_t pkts, bytes, drops, no_mbuf, too_long, not_ours;
	struct rte_ring *ring;
	struct rte_mempool *pool;
} __rte_cache_aligned;

/* Frames of the other side left after a poll. */
enum more {
	MORE_NONE, /* none, or there is no link */
	MORE_NOW,
	MORE_LATER, /* the port accepted none */
};

struct divert_tx {
	uint64_t pkts, bytes;
	struct rte_mbuf *held[HELD];
	unsigned int held_at, held_n; /* first, end */
	uint32_t credit;	      /* bytes the other side may send while the device waits */
	bool waiting;		      /* the port did not accept all frames of the device */
	bool asked;		      /* the device has sent since the last poll */
	uint32_t more;		      /* [pub] enum more */
} __rte_cache_aligned;

/*
 * Written while `on` is 0 by the watching thread; `seen` is set by decap's lcore and cleared by the
 * watching thread.
 */
struct divert_watch {
	uint32_t on;   /* [pub] */
	uint32_t seen; /* [pub] */
	uint64_t mac;  /* mac_bits() */
	uint8_t gid[16];
	uint16_t vlan_id;
	bool any_ip;
};

struct port_divert {
	struct hca_port_wrap wrap;
	uint64_t mac;	   /* [pub] mac_bits() */
	uint32_t watching; /* [pub] number of active entries in watch[] */
	uint32_t wires;	   /* HCA_WIRE_BIT() of the device's wires */
	uint16_t plain;	   /* UDP port, big-endian, of the first of them */
	void (*kick)(void *arg);
	void *kick_arg;
	void (*wake)(void *arg); /* wakes the worker that transmits */
	void *wake_arg;
	struct rte_ring *out; /* from the other side */
	struct rte_mempool *out_pool;
	uint16_t take_next;  /* the other side's: queue to take from first */
	struct divert_tx tx; /* of HCA_PORT_QUEUE, by which the other side sends */
	uint64_t tx_drops __rte_cache_aligned; /* the other side's */
	uint32_t sleeping __rte_cache_aligned; /* [pub] the other side needs a kick */
	struct divert_watch watch[HCA_PORT_DIVERT_WATCHES];
	uint32_t watch_next;
	struct divert_rx rx[]; /* wrap.port.queues */
};

static struct port_divert *
divert(struct hca_port *p)
{
	return (struct port_divert *)p;
}

/* ---- sorting ---- */

/* The first six bytes in one register, in memory order; eight bytes must be readable. */
static inline uint64_t
mac_bits(const uint8_t *p)
{
	uint64_t bits;

	memcpy(&bits, p, sizeof(bits));
	return bits & RTE_BE64(0xffffffffffff0000);
}

static uint64_t
mac_bits_of(const uint8_t mac[6])
{
	uint8_t p[8] = {0};

	memcpy(p, mac, 6);
	return mac_bits(p);
}

/* A frame of the device's wires, or shorter than an Ethernet header: the device counts those. */
static bool
is_of_wires(uint32_t wires, const uint8_t *p, uint32_t len)
{
	return len < HCA_ETH_LEN || (wires & HCA_WIRE_BIT(hca_wire_of(p, len))) != 0;
}

static inline bool
for_us(const uint8_t *p, uint32_t len, uint64_t mac)
{
	return len < HCA_ETH_LEN || (p[0] & 1) != 0 || mac_bits(p) == mac;
}

#define PLAIN_LEN (HCA_ETH_LEN + HCA_IPV4_LEN + 4u)

/*
 * One comparison for nearly all frames of a wire: IPv4 without options or tag, not a fragment, with
 * that UDP port, to our MAC address.
 */
static inline bool
is_plain(const uint8_t *p, uint32_t len, uint64_t mac, uint16_t dport)
{
	uint32_t type, proto;
	uint16_t port;

	if (unlikely(len < PLAIN_LEN))
		return false;
	memcpy(&type, p + 12, sizeof(type));
	memcpy(&proto, p + HCA_ETH_LEN + 6, sizeof(proto));
	memcpy(&port, p + HCA_ETH_LEN + HCA_IPV4_LEN + 2, sizeof(port));
	type = (type & RTE_BE32(0xffffff00)) ^ RTE_BE32(HCA_ETHERTYPE_IPV4 << 16 | 0x4500);
	proto = (proto & RTE_BE32(0x1fff00ff)) ^ RTE_BE32(HCA_IPPROTO_UDP);
	port ^= dport;
	return ((mac_bits(p) ^ mac) | type | proto | port) == 0;
}

/* ---- receive ---- */

static struct rte_mbuf *
copy_frame(struct divert_rx *rx, const struct rte_mbuf *m)
{
	struct rte_mbuf *c;
	const void *from;
	void *to;

	if (m->pkt_len > HCA_PORT_DIVERT_FRAME) {
		hca_port_count(&rx->too_long, 1);
		return NULL;
	}
	c = rte_pktmbuf_alloc(rx->pool);
	if (c == NULL) {
		hca_port_count(&rx->no_mbuf, 1);
		return NULL;
	}
	to = rte_pktmbuf_append(c, (uint16_t)m->pkt_len);
	from = rte_pktmbuf_read(m, 0, m->pkt_len, to);
	if (from != to)
		memcpy(to, from, m->pkt_len);
	return c;
}

static void
hand_over(struct divert_rx *rx, struct rte_mbuf *m)
{
	struct rte_mbuf *c = copy_frame(rx, m);

	rte_pktmbuf_free(m);
	if (c == NULL)
		return;
	if (rte_ring_enqueue(rx->ring, c) != 0) {
		rte_pktmbuf_free(c);
		hca_port_count(&rx->drops, 1);
		return;
	}
	hca_port_count(&rx->pkts, 1);
	hca_port_count(&rx->bytes, c->pkt_len);
}

/* The fence orders the ring before the flag; the other side uses the reverse order. */
static void
wake(struct port_divert *d)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&d->sleeping, __ATOMIC_RELAXED) != 0 &&
	    __atomic_exchange_n(&d->sleeping, 0, __ATOMIC_ACQ_REL) != 0 && d->kick != NULL)
		d->kick(d->kick_arg);
}

/* The general decision. True: the frame is for the device. */
static bool
sort(struct port_divert *d, struct divert_rx *rx, struct rte_mbuf *m, uint64_t mac, bool *diverted)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

	if (!is_of_wires(d->wires, p, m->data_len)) {
		hand_over(rx, m);
		*diverted = true;
		return false;
	}
	if (for_us(p, m->data_len, mac))
		return true;
	rte_pktmbuf_free(m);
	hca_port_count(&rx->not_ours, 1);
	return false;
}

/* ---- watches for senders ---- */

#define NO_VLAN 0xffffu
#define VID_MASK 0xfffu

/* VLAN and source address (GID form) of a RoCE frame. False: it is too short. */
static bool
source_of(const uint8_t *p, uint32_t len, uint16_t *vlan_id, uint8_t gid[16])
{
	uint32_t off = HCA_ETH_LEN, type = len >= HCA_ETH_LEN ? hca_get_be16(p + 12) : 0;

	*vlan_id = NO_VLAN;
	if (type == HCA_ETHERTYPE_VLAN && len >= HCA_ETH_LEN + HCA_VLAN_LEN) {
		if ((hca_get_be16(p + 14) & VID_MASK) != 0)
			*vlan_id = hca_get_be16(p + 14) & VID_MASK;
		off += HCA_VLAN_LEN;
		type = hca_get_be16(p + 16);
	}
	if (type == HCA_ETHERTYPE_IPV4 && len >= off + HCA_IPV4_LEN) {
		hca_gid_from_ip4(gid, p + off + 12);
		return true;
	}
	if (type != HCA_ETHERTYPE_IPV6 || len < off + HCA_IPV6_LEN)
		return false;
	memcpy(gid, p + off + 8, 16);
	return true;
}

/* Out of line: watches are rare and short. */
static __rte_noinline void
look(struct port_divert *d, struct rte_mbuf *const *m, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);
		uint16_t vlan_id;
		uint8_t gid[16];

		if (!source_of(p, m[i]->data_len, &vlan_id, gid))
			continue;
		for (unsigned int k = 0; k < HCA_PORT_DIVERT_WATCHES; k++) {
			struct divert_watch *w = &d->watch[k];

			if (__atomic_load_n(&w->on, __ATOMIC_ACQUIRE) != 0 &&
			    mac_bits(p + 6) == w->mac && vlan_id == w->vlan_id &&
			    (w->any_ip || memcmp(gid, w->gid, sizeof(gid)) == 0))
				__atomic_store_n(&w->seen, 1, __ATOMIC_RELAXED);
		}
	}
}

int
hca_port_divert_watch(struct hca_port *p, const uint8_t mac[6], const uint8_t *gid,
		      uint16_t vlan_id)
{
	struct port_divert *d = divert(p);

	for (unsigned int i = 0; i < HCA_PORT_DIVERT_WATCHES; i++) {
		uint32_t at = d->watch_next++ % HCA_PORT_DIVERT_WATCHES;
		struct divert_watch *w = &d->watch[at];

		if (w->on != 0)
			continue;
		w->mac = mac_bits_of(mac);
		w->vlan_id = vlan_id;
		w->any_ip = gid == NULL;
		if (gid != NULL)
			memcpy(w->gid, gid, sizeof(w->gid));
		__atomic_store_n(&w->seen, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&w->on, 1, __ATOMIC_RELEASE);
		__atomic_fetch_add(&d->watching, 1, __ATOMIC_RELAXED);
		return (int)at;
	}
	return -ENOSPC;
}

bool
hca_port_divert_seen(struct hca_port *p, int handle)
{
	return __atomic_exchange_n(&divert(p)->watch[handle].seen, 0, __ATOMIC_RELAXED) != 0;
}

void
hca_port_divert_unwatch(struct hca_port *p, int handle)
{
	struct port_divert *d = divert(p);

	__atomic_store_n(&d->watch[handle].on, 0, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&d->watching, 1, __ATOMIC_RELAXED);
}

static uint16_t
divert_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_divert *d = divert(port);
	uint64_t mac = __atomic_load_n(&d->mac, __ATOMIC_RELAXED);
	uint16_t got = d->wrap.inner->ops->rx(d->wrap.inner, q, m, n, now), kept = 0;
	bool diverted = false;

	for (uint16_t i = 0; i < got; i++) {
		const uint8_t *p = rte_pktmbuf_mtod(m[i], const uint8_t *);

		if (likely(is_plain(p, m[i]->data_len, mac, d->plain)) ||
		    sort(d, &d->rx[q], m[i], mac, &diverted))
			m[kept++] = m[i];
	}
	if (unlikely(diverted))
		wake(d);
	if (unlikely(__atomic_load_n(&d->watching, __ATOMIC_RELAXED) != 0))
		look(d, m, kept);
	return kept;
}

/* ---- transmit ---- */

/* Gets more frames of the other side; false: its ring is empty. */
static bool
refill(struct port_divert *d)
{
	struct divert_tx *t = &d->tx;

	if (t->held_at != t->held_n)
		return true;
	t->held_at = 0;
	t->held_n = rte_ring_sc_dequeue_burst(d->out, (void **)t->held, HELD, NULL);
	return t->held_n != 0;
}

/* Number of held frames that may be sent now. */
static unsigned int
allowed(const struct divert_tx *t)
{
	uint32_t left = t->credit;
	unsigned int n = 0;

	if (!t->waiting)
		return t->held_n - t->held_at;
	while (t->held_at + n < t->held_n && t->held[t->held_at + n]->pkt_len <= left)
		left -= t->held[t->held_at + n++]->pkt_len;
	return n;
}

/* Sends one burst of the other side; before the next one the device may send. */
static enum more
send_other_side(struct port_divert *d, uint64_t now)
{
	struct divert_tx *t = &d->tx;
	uint32_t length[HELD], bytes = 0;
	unsigned int n;
	uint16_t took;

	if (!refill(d))
		return MORE_NONE;
	n = allowed(t);
	for (unsigned int i = 0; i < n; i++) /* accepted frames must not be read any more */
		length[i] = t->held[t->held_at + i]->pkt_len;
	took = n == 0 ? 0
		      : d->wrap.inner->ops->tx(d->wrap.inner, HCA_PORT_QUEUE, t->held + t->held_at,
					       (uint16_t)n, now);
	for (unsigned int i = 0; i < took; i++)
		bytes += length[i];
	t->held_at += took;
	if (t->waiting)
		t->credit -= bytes;
	hca_port_count(&t->pkts, took);
	hca_port_count(&t->bytes, bytes);
	if (took != 0)
		return t->held_at != t->held_n || !hca_ring_empty(d->out) ? MORE_NOW : MORE_NONE;
	return d->wrap.inner->ops->link_up(d->wrap.inner) ? MORE_LATER : MORE_NONE;
}

/* The other side has frames waiting: it earns credit when the device sends. */
static uint16_t
tx_shared(struct port_divert *d, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint32_t length[HELD], earned = 0;
	uint16_t k = RTE_MIN(n, HELD), took;

	for (uint16_t i = 0; i < k; i++)
		length[i] = m[i]->pkt_len;
	took = d->wrap.inner->ops->tx(d->wrap.inner, HCA_PORT_QUEUE, m, k, now);
	for (uint16_t i = 0; i < took; i++)
		earned += length[i] >> SHARE_SHIFT;
	d->tx.credit = RTE_MIN(d->tx.credit + earned, CREDIT_MAX);
	return took;
}

static uint16_t
divert_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_divert *d = divert(port);
	struct divert_tx *t = &d->tx;
	uint16_t took = 0, last;

	if (q != HCA_PORT_QUEUE)
		return d->wrap.inner->ops->tx(d->wrap.inner, q, m, n, now);
	t->asked = true;
	if (likely(t->held_at == t->held_n && hca_ring_empty(d->out))) {
		took = d->wrap.inner->ops->tx(d->wrap.inner, q, m, n, now);
	} else {
		do {
			last = tx_shared(d, m + took, n - took, now);
			took += last;
		} while (took < n && last != 0);
	}
	t->waiting = took < n;
	return took;
}

static void
divert_poll(struct hca_port *port, uint16_t q, uint64_t now)
{
	struct port_divert *d = divert(port);

	hca_port_poll(d->wrap.inner, q, now);
	if (q != HCA_PORT_QUEUE)
		return;
	/* the device has not called tx since the last poll */
	if (!d->tx.asked)
		d->tx.waiting = false;
	d->tx.asked = false;
	__atomic_store_n(&d->tx.more, send_other_side(d, now), __ATOMIC_RELAXED);
}

/* ---- the other side ---- */

unsigned int
hca_port_divert_take(struct hca_port *p, struct rte_mbuf **m, unsigned int n)
{
	struct port_divert *d = divert(p);
	unsigned int got = 0;

	for (uint16_t i = 0; i < p->queues && got < n; i++) {
		got += rte_ring_sc_dequeue_burst(d->rx[d->take_next].ring, (void **)m + got,
						 n - got, NULL);
		d->take_next = (uint16_t)(d->take_next + 1 < p->queues ? d->take_next + 1 : 0);
	}
	return got;
}

struct rte_mbuf *
hca_port_divert_alloc(struct hca_port *p)
{
	return rte_pktmbuf_alloc(divert(p)->out_pool);
}

unsigned int
hca_port_divert_room(const struct hca_port *p)
{
	return hca_ring_room(((const struct port_divert *)p)->out);
}

unsigned int
hca_port_divert_give(struct hca_port *p, struct rte_mbuf **m, unsigned int n)
{
	struct port_divert *d = divert(p);
	unsigned int took = rte_ring_sp_enqueue_burst(d->out, (void *const *)m, n, NULL);

	if (took < n) {
		rte_pktmbuf_free_bulk(m + took, n - took);
		hca_port_count(&d->tx_drops, n - took);
	}
	if (d->wake != NULL)
		d->wake(d->wake_arg);
	return took;
}

void
hca_port_divert_set_wake(struct hca_port *p, void (*fn)(void *arg), void *arg)
{
	divert(p)->wake_arg = arg;
	divert(p)->wake = fn;
}

static bool
nothing_diverted(const struct port_divert *d)
{
	for (uint16_t q = 0; q < d->wrap.port.queues; q++)
		if (!hca_ring_empty(d->rx[q].ring))
			return false;
	return true;
}

bool
hca_port_divert_may_sleep(struct hca_port *p)
{
	struct port_divert *d = divert(p);

	__atomic_store_n(&d->sleeping, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (nothing_diverted(d))
		return true;
	__atomic_store_n(&d->sleeping, 0, __ATOMIC_RELAXED);
	return false;
}

/* ---- life ---- */

static void
drain(struct rte_ring *r)
{
	void *m;

	while (r != NULL && rte_ring_dequeue(r, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(r);
}

static void
release(struct port_divert *d)
{
	struct divert_tx *t = &d->tx;

	for (; t->held_at < t->held_n; t->held_at++)
		rte_pktmbuf_free(t->held[t->held_at]);
	for (uint16_t q = 0; q < d->wrap.port.queues; q++) {
		drain(d->rx[q].ring);
		rte_mempool_free(d->rx[q].pool);
	}
	drain(d->out);
	rte_mempool_free(d->out_pool);
	rte_free(d);
}

/*
 * The other side's frames are sent a burst per poll. If the port accepts none, encap polls again
 * after LATER_NS; without a link it waits for the event of the link.
 */
static uint64_t
divert_deadline(const struct hca_port *port, uint16_t q, uint64_t now)
{
	const struct port_divert *d = (const struct port_divert *)port;
	uint64_t inner = hca_port_deadline(d->wrap.inner, q, now);

	if (q != HCA_PORT_QUEUE)
		return inner;
	switch (__atomic_load_n(&d->tx.more, __ATOMIC_RELAXED)) {
	case MORE_NOW:
		return now;
	case MORE_LATER:
		return hca_port_earlier(inner, now + LATER_NS);
	default:
		return inner;
	}
}

/* The inner port is closed first: it may still transmit buffers of our pool. */
static void
divert_close(struct hca_port *port)
{
	struct port_divert *d = divert(port);

	d->wrap.inner->ops->close(d->wrap.inner);
	release(d);
}

static const struct hca_port_ops divert_ops = {
	.rx = divert_rx,
	.tx = divert_tx,
	.link_up = hca_port_wrap_link_up,
	.poll = divert_poll,
	.missed = hca_port_wrap_missed,
	.wait_fd = hca_port_wrap_wait_fd,
	.arm = hca_port_wrap_arm,
	.deadline = divert_deadline,
	.close = divert_close,
};

static struct rte_ring *
make_ring(const struct hca_port_divert_config *cfg, const char *what, uint32_t depth)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%.16s.%s", cfg->name, what);
	return rte_ring_create(name, depth, cfg->socket_id, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

/* For a full ring, a full queue of the port, and the bursts of both ends. */
static struct rte_mempool *
make_pool(const struct hca_port_divert_config *cfg, const char *what, uint32_t frames)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "%.14s.%s", cfg->name, what);
	return hca_mbuf_pool(name, frames + 4 * HELD, 0, HCA_MBUF_DATA, cfg->socket_id);
}

/* The queues share the depth. */
static bool
make_rx(struct port_divert *d, const struct hca_port_divert_config *cfg, uint32_t depth)
{
	uint32_t share = RTE_MAX(rte_align32prevpow2(depth / d->wrap.port.queues),
				 RTE_MIN(depth, DEPTH_OF_QUEUE));
	char ring[12] = "din", pool[12] = "dinp";

	for (uint16_t q = 0; q < d->wrap.port.queues; q++) {
		struct divert_rx *rx = &d->rx[q];

		if (q != 0) {
			snprintf(ring, sizeof(ring), "din%u", q);
			snprintf(pool, sizeof(pool), "dinp%u", q);
		}
		rx->ring = make_ring(cfg, ring, share);
		rx->pool = make_pool(cfg, pool, share);
		if (rx->ring == NULL || rx->pool == NULL)
			return false;
	}
	return true;
}

int
hca_port_divert_open(const struct hca_port_divert_config *cfg, struct hca_port *inner,
		     struct hca_port **out)
{
	uint32_t depth = cfg->depth != 0 ? cfg->depth : DEFAULT_DEPTH;
	uint16_t queues = hca_port_queues(inner);
	struct port_divert *d;

	if (!rte_is_power_of_2(depth) || (cfg->wires & HCA_WIRE_BIT(HCA_WIRE_NONE)) != 0 ||
	    cfg->wires >= HCA_WIRE_BIT(HCA_WIRES))
		return -EINVAL;
	d = rte_zmalloc_socket("hca_divert", sizeof(*d) + queues * sizeof(d->rx[0]),
			       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (d == NULL)
		return -ENOMEM;
	hca_port_wrap_init(&d->wrap, &divert_ops, inner);
	d->mac = mac_bits_of(cfg->mac);
	d->wires = cfg->wires != 0 ? cfg->wires : HCA_WIRE_BIT(HCA_WIRE_ROCE);
	d->plain = rte_cpu_to_be_16(hca_wire_udp_port((enum hca_wire)__builtin_ctz(d->wires)));
	d->kick = cfg->kick;
	d->kick_arg = cfg->kick_arg;
	d->out = make_ring(cfg, "dout", depth);
	d->out_pool = make_pool(cfg, "doutp", depth + inner->queue_size);
	if (!make_rx(d, cfg, depth) || d->out == NULL || d->out_pool == NULL) {
		release(d);
		return -ENOMEM;
	}
	*out = &d->wrap.port;
	return 0;
}

void
hca_port_divert_set_mac(struct hca_port *p, const uint8_t mac[6])
{
	__atomic_store_n(&divert(p)->mac, mac_bits_of(mac), __ATOMIC_RELAXED);
}

void
hca_port_divert_stats(const struct hca_port *p, struct hca_port_divert_stats *out)
{
	const struct port_divert *d = (const struct port_divert *)p;

	*out = (struct hca_port_divert_stats){
		.tx_pkts = __atomic_load_n(&d->tx.pkts, __ATOMIC_RELAXED),
		.tx_bytes = __atomic_load_n(&d->tx.bytes, __ATOMIC_RELAXED),
		.tx_drops = __atomic_load_n(&d->tx_drops, __ATOMIC_RELAXED),
	};
	for (uint16_t q = 0; q < d->wrap.port.queues; q++) {
		const struct divert_rx *rx = &d->rx[q];

		out->rx_pkts += __atomic_load_n(&rx->pkts, __ATOMIC_RELAXED);
		out->rx_bytes += __atomic_load_n(&rx->bytes, __ATOMIC_RELAXED);
		out->rx_drops += __atomic_load_n(&rx->drops, __ATOMIC_RELAXED);
		out->rx_no_mbuf += __atomic_load_n(&rx->no_mbuf, __ATOMIC_RELAXED);
		out->rx_too_long += __atomic_load_n(&rx->too_long, __ATOMIC_RELAXED);
		out->rx_not_ours += __atomic_load_n(&rx->not_ours, __ATOMIC_RELAXED);
	}
}
