/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_ring.h>

#include "arp_nd.h"
#include "engine/pkt.h"
#include "lan.h"
#include "port/port_divert.h"

#define PAUSE_US 100

#define REPORTS 256u

struct report {
	uint8_t group[16];
	uint8_t type;
};

struct lan {
	struct hca_port wire;
	struct hca_port *shared;
	struct rte_mempool *pool;
	struct rte_ring *coming;
	struct arp_nd *host;
	bool silent;
	pthread_mutex_t lock; /* protects host and reports */
	struct report report[REPORTS];
	unsigned int reports;
	pthread_t thread;
	bool stop;
};

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint16_t
wire_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	(void)now;
	return (uint16_t)rte_ring_dequeue_burst(((struct lan *)p)->coming, (void **)m, n, NULL);
}

/* Without a VLAN tag; types 2 and 4 are joins, 3 is a leave. */
static void
note_reports(struct lan *l, const uint8_t *f, uint32_t len)
{
	bool v4 = f[12] == 8 && f[13] == 0;
	uint32_t at = v4 ? 14 + (f[14] & 0xfu) * 4 : 14 + 48, size = v4 ? 4 : 16;
	unsigned int n;

	if (len < at + 8 ||
	    (v4 ? f[23] != 2 || f[at] != 0x22 : f[12] != 0x86 || f[20] != 0 || f[at] != 143))
		return;
	n = (unsigned int)(f[at + 6] << 8 | f[at + 7]);
	for (at += 8; n > 0 && at + 4 + size <= len; n--, at += 4 + size) {
		struct report *r = &l->report[l->reports++ % REPORTS];

		*r = (struct report){.type = f[at]};
		memcpy(r->group + 16 - size, f + at + 4, size);
		if (v4)
			r->group[10] = r->group[11] = 0xff;
	}
}

static uint16_t
wire_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct lan *l = (struct lan *)p;

	for (uint16_t i = 0; i < n; i++) {
		note_reports(l, rte_pktmbuf_mtod(m[i], const uint8_t *), m[i]->data_len);
		if (l->host != NULL && !l->silent)
			arp_nd_input(l->host, rte_pktmbuf_mtod(m[i], const uint8_t *),
				     m[i]->data_len, now);
		rte_pktmbuf_free(m[i]);
	}
	return n;
}

static bool
wire_up(struct hca_port *p)
{
	(void)p;
	return true;
}

static void
wire_close(struct hca_port *p)
{
	(void)p;
}

static const struct hca_port_ops wire_ops = {
	.rx = wire_rx,
	.tx = wire_tx,
	.link_up = wire_up,
	.close = wire_close,
};

static void
host_sends(void *arg, const uint8_t *frame, uint32_t len)
{
	struct lan *l = arg;
	struct rte_mbuf *m = rte_pktmbuf_alloc(l->pool);

	if (m == NULL || l->silent) {
		rte_pktmbuf_free(m);
		return;
	}
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	if (rte_ring_enqueue(l->coming, m) != 0)
		rte_pktmbuf_free(m);
}

static void *
wire_main(void *arg)
{
	struct lan *l = arg;

	while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
		struct rte_mbuf *m[32];
		uint64_t now = now_ns();
		uint16_t n;

		pthread_mutex_lock(&l->lock);
		l->shared->ops->poll(l->shared, 0, now);
		n = l->shared->ops->rx(l->shared, 0, m, 32, now);
		if (l->host != NULL)
			arp_nd_tick(l->host, now);
		pthread_mutex_unlock(&l->lock);
		if (n != 0)
			rte_pktmbuf_free_bulk(m, n);
		usleep(PAUSE_US);
	}
	return NULL;
}

struct lan *
lan_open(const uint8_t mac[6], void (*kick)(void *arg), void *kick_arg)
{
	static unsigned int serial;
	struct hca_port_divert_config dc = {.socket_id = -1, .kick = kick, .kick_arg = kick_arg};
	struct lan *l = calloc(1, sizeof(*l));
	char name[16];

	assert_non_null(l);
	snprintf(name, sizeof(name), "lan%u", serial++);
	pthread_mutex_init(&l->lock, NULL);
	l->wire = (struct hca_port){.ops = &wire_ops, .max_frame = 4400, .queue_size = 64};
	l->pool = rte_pktmbuf_pool_create(name, 1023, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA, -1);
	l->coming = rte_ring_create(name, 256, -1, RING_F_SP_ENQ | RING_F_SC_DEQ);
	assert_non_null(l->pool);
	assert_non_null(l->coming);
	dc.name = name;
	memcpy(dc.mac, mac, 6);
	assert_int_equal(hca_port_divert_open(&dc, &l->wire, &l->shared), 0);
	assert_int_equal(pthread_create(&l->thread, NULL, wire_main, l), 0);
	return l;
}

void
lan_close(struct lan *l)
{
	void *m;

	__atomic_store_n(&l->stop, true, __ATOMIC_RELEASE);
	pthread_join(l->thread, NULL);
	l->shared->ops->close(l->shared);
	while (rte_ring_dequeue(l->coming, &m) == 0)
		rte_pktmbuf_free(m);
	assert_int_equal(rte_mempool_in_use_count(l->pool), 0);
	rte_ring_free(l->coming);
	rte_mempool_free(l->pool);
	arp_nd_destroy(l->host);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

struct hca_port *
lan_port(struct lan *l)
{
	return l->shared;
}

void
lan_host(struct lan *l, const uint8_t mac[6])
{
	static const struct arp_nd_address own[] = {
		{{[10] = 0xff, 0xff, 10, 9, 0, 2}, 24, ARP_ND_NO_VLAN},
		{{0x20, 1, 0xd, 0xb8, 0, 9, [15] = 2}, 64, ARP_ND_NO_VLAN},
	};
	struct arp_nd_config ac = {.addresses = own,
				   .num_addresses = 2,
				   .send = host_sends,
				   .arg = l};
	struct arp_nd *host;

	memcpy(ac.mac, mac, 6);
	assert_int_equal(arp_nd_create(&ac, &host), 0);
	pthread_mutex_lock(&l->lock);
	arp_nd_destroy(l->host);
	l->host = host;
	pthread_mutex_unlock(&l->lock);
}

void
lan_silence(struct lan *l, bool on)
{
	pthread_mutex_lock(&l->lock);
	l->silent = on;
	pthread_mutex_unlock(&l->lock);
}

unsigned int
lan_reports(struct lan *l, const uint8_t group[16], bool joined)
{
	unsigned int n = 0;

	pthread_mutex_lock(&l->lock);
	for (unsigned int i = 0; i < REPORTS && i < l->reports; i++)
		n += memcmp(l->report[i].group, group, 16) == 0 &&
		     (l->report[i].type == 3) == !joined;
	pthread_mutex_unlock(&l->lock);
	return n;
}

void
lan_send(struct lan *l, const uint8_t *frame, uint32_t len)
{
	pthread_mutex_lock(&l->lock);
	host_sends(l, frame, len);
	pthread_mutex_unlock(&l->lock);
}

uint64_t
lan_pinged(struct lan *l)
{
	struct arp_nd_stats s;

	pthread_mutex_lock(&l->lock);
	arp_nd_stats(l->host, &s);
	pthread_mutex_unlock(&l->lock);
	return s.echo_requests;
}
