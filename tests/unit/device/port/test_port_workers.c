/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Workers of four queues use one port at the same time, while an operator or the other side uses it
 * from another thread: frames are neither lost nor doubled, and ThreadSanitizer finds no races.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "../../../test_eal.h"
#include "abi_roce.h"
#include "engine/pkt.h"
#include "port/port_divert.h"
#include "port/port_impair.h"
#include "port/port_pcap.h"
#include "port/port_stall.h"

#define QUEUES 4u
#define BURST 8u
#define ROUNDS 2000u
#define LEN 100u

/* One per queue: a ring of several producers stops with the one that has no CPU. */
static struct rte_mempool *pool[QUEUES];

/* The inner port: rx makes frames with their number, tx frees them. */
struct wire {
	struct hca_port port;
	struct {
		uint64_t sent, made;
	} __rte_cache_aligned of[QUEUES];
};

static struct wire wire;

static uint16_t
wire_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	(void)p;
	(void)now;
	wire.of[q].sent += n;
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* ARP: a frame for the other side. Bytes 14 to 21: queue and number. */
static uint16_t
wire_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	(void)p;
	(void)now;
	if (rte_pktmbuf_alloc_bulk(pool[q], m, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		uint8_t *b = (uint8_t *)rte_pktmbuf_append(m[i], LEN);
		uint32_t mark[2] = {q, (uint32_t)wire.of[q].made++};

		memset(b, 0xff, LEN);
		b[12] = 0x08;
		b[13] = 0x06;
		memcpy(b + 14, mark, sizeof(mark));
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

static struct hca_port *
new_wire(void)
{
	wire = (struct wire){
		.port = {.ops = &wire_ops, .max_frame = 4400, .queue_size = 64, .queues = QUEUES}};
	return &wire.port;
}

static uint64_t
sent(void)
{
	uint64_t n = 0;

	for (unsigned int q = 0; q < QUEUES; q++)
		n += wire.of[q].sent;
	return n;
}

static void
done(struct hca_port *p)
{
	p->ops->close(p);
	for (unsigned int q = 0; q < QUEUES; q++)
		assert_int_equal(rte_mempool_in_use_count(pool[q]), 0);
}

struct worker {
	struct hca_port *port;
	uint16_t q;
	uint64_t accepted, refused, received;
	void (*step)(struct worker *w, uint64_t now);
	pthread_t thread;
};

static unsigned int running; /* [pub] workers that have not ended */

static void *
work(void *arg)
{
	struct worker *w = arg;

	for (uint64_t now = 1; now <= ROUNDS; now++) {
		w->step(w, now);
		if (now % 16 == 0)
			sched_yield();
	}
	__atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void
start(struct worker *w, struct hca_port *p, void (*step)(struct worker *w, uint64_t now))
{
	running = QUEUES;
	for (uint16_t q = 0; q < QUEUES; q++) {
		w[q] = (struct worker){.port = p, .q = q, .step = step};
		assert_int_equal(pthread_create(&w[q].thread, NULL, work, &w[q]), 0);
	}
}

static bool
all_ended(void)
{
	sched_yield();
	return __atomic_load_n(&running, __ATOMIC_ACQUIRE) == 0;
}

static void
join(struct worker *w)
{
	for (uint16_t q = 0; q < QUEUES; q++)
		pthread_join(w[q].thread, NULL);
}

static uint64_t
accepted(const struct worker *w)
{
	uint64_t n = 0;

	for (uint16_t q = 0; q < QUEUES; q++)
		n += w[q].accepted;
	return n;
}

/* A burst; the port may refuse frames. */
static void
send_burst(struct worker *w, uint64_t now)
{
	struct rte_mbuf *m[BURST];
	uint16_t took;

	if (rte_pktmbuf_alloc_bulk(pool[w->q], m, BURST) != 0)
		return;
	for (unsigned int i = 0; i < BURST; i++)
		memset(rte_pktmbuf_append(m[i], LEN), 0, LEN);
	w->port->ops->poll(w->port, w->q, now);
	w->port->ops->link_up(w->port);
	took = w->port->ops->tx(w->port, w->q, m, BURST, now);
	rte_pktmbuf_free_bulk(m + took, BURST - took);
	w->accepted += took;
	w->refused += BURST - took;
}

/* All frames are lost, or all are doubled: a frame that is neither met a mixture. */
static void
impaired(void **state)
{
	static const struct hca_impair settings[] = {{.drop = 1}, {.dup = 1}};
	const struct hca_port_impair_config cfg = {.name = "tw", .seed = 3, .socket_id = -1};
	struct hca_fired fired[HCA_FIRED_MAX];
	struct hca_port_impair_stats s;
	struct worker w[QUEUES];
	struct hca_port *p;

	(void)state;
	assert_int_equal(hca_port_impair_open(&cfg, new_wire(), &p), 0);
	hca_port_impair_set(p, &settings[0]);
	start(w, p, send_burst);
	for (unsigned int i = 0; !all_ended(); i++) {
		hca_port_impair_set(p, &settings[i % 2]);
		for (unsigned int k = hca_port_impair_fired(p, fired); k > 1; k--) {
			assert_int_equal(fired[k - 1].number, fired[k - 2].number + 1);
			assert_true(fired[k - 1].at >= fired[k - 2].at);
		}
		hca_port_impair_stats(p, &s);
		assert_true(s.dropped <= QUEUES * BURST * (uint64_t)ROUNDS);
	}
	join(w);
	hca_port_impair_stats(p, &s);
	assert_int_equal(s.frames, accepted(w));
	assert_int_equal(s.frames, s.dropped + s.duplicated);
	assert_int_equal(sent(), 2 * s.duplicated);
	done(p);
}

/* An operator pulls the cable and plugs it in, and sets rules. */
static void
stalled(void **state)
{
	const struct hca_port_stall_rules down = {.down_for = 5, .at_once = true};
	const struct hca_port_stall_config cfg = {.seed = 3, .socket_id = -1};
	struct hca_port_stall_stats s;
	struct worker w[QUEUES];
	struct hca_port *p;
	uint64_t downs = 0;

	(void)state;
	assert_int_equal(hca_port_stall_open(&cfg, new_wire(), &p), 0);
	start(w, p, send_burst);
	for (unsigned int i = 0; !all_ended(); i++) {
		hca_port_stall_set(p, &down);
		hca_port_stall_link(p, i % 4 < 2);
		hca_port_stall_stats(p, &s);
		assert_true(s.link_downs >= downs);
		downs = s.link_downs;
	}
	join(w);
	hca_port_stall_link(p, true);
	for (uint16_t q = 0; q < 2 * QUEUES; q++)
		p->ops->poll(p, q % QUEUES, (2 + q / QUEUES) * ROUNDS);
	assert_true(p->ops->link_up(p));
	hca_port_stall_stats(p, &s);
	assert_int_equal(s.taken, accepted(w));
	assert_int_equal(sent(), accepted(w));
	done(p);
}

/* Frames of all queues are in the file, those with a fault marked; the file comes and goes. */
static void
captured(void **state)
{
	const struct hca_port_impair_config cfg = {.name = "twp", .seed = 3, .socket_id = -1};
	const struct hca_impair marked = {.corrupt = 0.5, .drop = 0.1};
	char path[] = "/tmp/test_port_workers.XXXXXX";
	struct hca_port *pcap, *p;
	struct worker w[QUEUES];
	struct hca_pcap *file;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(hca_pcap_open(path, 0, &file), 0);
	assert_int_equal(hca_port_pcap_open(file, new_wire(), -1, &pcap), 0);
	assert_int_equal(hca_port_impair_open(&cfg, pcap, &p), 0);
	hca_port_impair_watch(p, hca_port_pcap_mark, pcap);
	hca_port_impair_set(p, &marked);
	start(w, p, send_burst);
	join(w);
	assert_int_equal(hca_pcap_frames(file), accepted(w));
	start(w, p, send_burst);
	for (unsigned int i = 0; !all_ended(); i++)
		hca_port_pcap_attach(pcap, i % 2 ? file : NULL);
	join(w);
	hca_port_pcap_attach(pcap, NULL);
	assert_int_equal(hca_pcap_close(file), 0);
	done(p);
	unlink(path);
}

static void
receive_burst(struct worker *w, uint64_t now)
{
	struct rte_mbuf *m[BURST];

	assert_int_equal(w->port->ops->rx(w->port, w->q, m, BURST, now), 0);
	w->received += BURST;
	send_burst(w, now);
}

static void
kick(void *arg)
{
	__atomic_fetch_add((unsigned int *)arg, 1, __ATOMIC_RELAXED);
}

/* Takes frames; those of one queue are in order. Returns their number. */
static unsigned int
take(struct hca_port *p, uint32_t next[QUEUES])
{
	struct rte_mbuf *m[32];
	unsigned int n = hca_port_divert_take(p, m, 32);

	for (unsigned int i = 0; i < n; i++) {
		uint32_t mark[2];

		memcpy(mark, rte_pktmbuf_mtod_offset(m[i], uint8_t *, 14), sizeof(mark));
		assert_true(mark[0] < QUEUES && mark[1] >= next[mark[0]]);
		next[mark[0]] = mark[1] + 1;
	}
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* Frames of all queues reach the one other side, whose frames leave by queue 0. */
static void
diverted(void **state)
{
	unsigned int kicks = 0, given = 0;
	struct hca_port_divert_config cfg = {.name = "tw",
					     .depth = 64,
					     .socket_id = -1,
					     .kick = kick,
					     .kick_arg = &kicks};
	struct hca_port_divert_stats s;
	uint32_t next[QUEUES] = {0};
	struct worker w[QUEUES];
	struct hca_port *p;
	uint64_t taken = 0;

	(void)state;
	assert_int_equal(hca_port_divert_open(&cfg, new_wire(), &p), 0);
	assert_int_equal(p->queues, QUEUES);
	assert_true(hca_port_divert_may_sleep(p));
	start(w, p, receive_burst);
	while (!all_ended()) {
		struct rte_mbuf *m = hca_port_divert_alloc(p);

		if (m != NULL) {
			rte_pktmbuf_append(m, LEN);
			given += hca_port_divert_give(p, &m, 1);
		}
		if (!hca_port_divert_may_sleep(p))
			taken += take(p, next);
	}
	join(w);
	for (unsigned int n = 1; n != 0; taken += n)
		n = take(p, next);
	for (unsigned int i = 0; i < 64; i++)
		p->ops->poll(p, 0, 2 * ROUNDS);
	hca_port_divert_stats(p, &s);
	assert_int_equal(s.rx_pkts, taken);
	assert_int_equal(s.rx_pkts + s.rx_drops + s.rx_no_mbuf, QUEUES * BURST * (uint64_t)ROUNDS);
	assert_int_equal(s.tx_pkts, given);
	assert_int_equal(sent(), accepted(w) + given);
	for (uint16_t q = 1; q < QUEUES; q++)
		assert_int_equal(wire.of[q].sent, w[q].accepted);
	assert_true(kicks != 0);
	done(p);
}

static int
setup(void **state)
{
	(void)state;
	if (test_eal_start(256) != 0)
		return -1;
	for (unsigned int q = 0; q < QUEUES; q++) {
		char name[8];

		snprintf(name, sizeof(name), "tp%u", q);
		pool[q] = rte_pktmbuf_pool_create(name, 255, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA, -1);
		if (pool[q] == NULL)
			return -1;
	}
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(impaired),
		cmocka_unit_test(stalled),
		cmocka_unit_test(captured),
		cmocka_unit_test(diverted),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
