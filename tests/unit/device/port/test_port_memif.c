/* SPDX-License-Identifier: BSD-3-Clause */

/* The memif port connected to itself: frames of all sizes, full rings, reconnects, interrupts. */

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "memif_rig.h"

#define SLEEPS 10000u

static struct hca_port *server, *client;

static void
open_both(const char *more)
{
	server = rig_open("server", more);
	client = rig_open("client", more);
	assert_true(rig_wait(server, true));
	assert_true(rig_wait(client, true));
}

static void
close_both(void)
{
	rig_close(client);
	rig_close(server);
}

static void
arguments(void **state)
{
	static const char *const bad[] = {"role=both",	     "id=-1",
					  "bsize=0",	     "bsize=65536",
					  "rsize=0",	     "rsize=15",
					  "rsize=8x",	     "socket=",
					  "zero-copy=yes",   "zero-copy=1",
					  "mac=02:00:00:00", "secret=1234567890123456789012345",
					  "color=red",	     "role",
					  "owner-uid=root",  "socket-abstract=maybe"};
	struct hca_port_memif_config c;
	char why[256];

	(void)state;
	assert_int_equal(hca_port_memif_parse("", &c, why, sizeof(why)), 0);
	assert_false(c.server);
	assert_true(c.abstract);
	assert_int_equal(c.buffer, 0);
	assert_int_equal(c.log2_ring, HCA_PORT_MEMIF_LOG2_RING);
	assert_int_equal(hca_port_memif_parse("role=master,id=7,bsize=4224,rsize=9,socket=/a/b,"
					      "socket-abstract=no,owner-uid=1,owner-gid=2,"
					      "mac=02:00:00:00:00:0a,zero-copy=no,secret=abc",
					      &c, why, sizeof(why)),
			 0);
	assert_true(c.server && !c.abstract && c.has_mac);
	assert_int_equal(c.id, 7);
	assert_int_equal(c.buffer, 4224);
	assert_int_equal(c.log2_ring, 9);
	assert_int_equal(c.owner_uid, 1);
	assert_int_equal(c.owner_gid, 2);
	assert_int_equal(c.mac[5], 10);
	assert_string_equal(c.socket, "/a/b");
	assert_string_equal(c.secret, "abc");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why[0] = '\0';
		assert_int_equal(hca_port_memif_parse(bad[i], &c, why, sizeof(why)), -EINVAL);
		assert_string_not_equal(why, "");
	}
}

static void
all_sizes(const char *more)
{
	uint32_t serial = 0;

	open_both(more);
	for (uint32_t length = 60; length <= 9000; length += length < 300 ? 1 : 61) {
		rig_send(client, ++serial, length);
		rig_expect(server, serial, length);
		rig_send(server, ++serial, length);
		rig_expect(client, serial, length);
	}
	assert_int_equal(rig_stats(server).rx_pkts, rig_stats(client).tx_pkts);
	assert_int_equal(rig_stats(client).rx_bytes, rig_stats(server).tx_bytes);
	assert_int_equal(hca_port_missed(server) + hca_port_missed(client), 0);
	close_both();
}

static void
sizes(void **state)
{
	(void)state;
	all_sizes("bsize=9216,rsize=6");
	all_sizes("bsize=2048,rsize=7"); /* frames of several descriptors */
	all_sizes("bsize=64,rsize=10,secret=xyzzy,id=3");
}

/* Segments of an mbuf, in buffers of another size. */
static void
segments(void **state)
{
	(void)state;
	open_both("bsize=1000,rsize=6");
	for (uint32_t turn = 0; turn < 100; turn++) {
		struct hca_port *from = turn % 2 ? server : client,
				*to = turn % 2 ? client : server;
		struct rte_mbuf *whole = rig_frame(turn, 5000), *m = NULL, *piece;
		uint32_t cut[] = {37 + turn, 1500, 0, 0};

		cut[2] = 1000;
		cut[3] = 5000 - cut[0] - cut[1] - cut[2];
		for (uint32_t i = 0, at = 0; i < 4; at += cut[i++]) {
			piece = rte_pktmbuf_alloc(pool);
			memcpy(rte_pktmbuf_append(piece, (uint16_t)cut[i]),
			       rte_pktmbuf_mtod_offset(whole, uint8_t *, at), cut[i]);
			if (m == NULL)
				m = piece;
			else
				assert_int_equal(rte_pktmbuf_chain(m, piece), 0);
		}
		rte_pktmbuf_free(whole);
		assert_int_equal(from->ops->tx(from, 0, &m, 1, 0), 1);
		rig_expect(to, turn, 5000);
	}
	close_both();
}

/*
 * Frames that do not fit stay with their owner, complete and in order; frames that can never fit
 * are dropped.
 */
static void
fill_and_drain(struct hca_port *from, struct hca_port *to, uint32_t length)
{
	struct rte_mbuf *m[64];
	uint32_t sent = 0, came = 0;
	uint16_t took;

	for (uint32_t turn = 0; turn < 40; turn++) {
		do {
			for (uint32_t i = 0; i < 24; i++)
				m[i] = rig_frame(sent + i, length);
			took = from->ops->tx(from, 0, m, 24, 0);
			rte_pktmbuf_free_bulk(m + took, 24u - took);
			sent += took;
		} while (took == 24);
		took = to->ops->rx(to, 0, m, (uint16_t)(1 + turn % 32), 0);
		assert_int_not_equal(took, 0);
		for (uint32_t i = 0; i < took; i++)
			assert_true(rig_is(m[i], came++, length));
		rte_pktmbuf_free_bulk(m, took);
	}
	while (came < sent)
		rig_expect(to, came++, length);
	assert_int_not_equal(rig_stats(from).tx_full, 0);
	m[0] = rig_frame(0, 9000);
	assert_int_equal(from->ops->tx(from, 0, m, 1, 0), 1);
	assert_int_equal(rig_stats(from).tx_too_long, 1);
	rig_send(from, 77, 100);
	rig_expect(to, 77, 100);
}

static void
ring_full(void **state)
{
	(void)state;
	open_both("bsize=256,rsize=5");
	fill_and_drain(client, server, 200);
	fill_and_drain(server, client, 200);
	close_both();
	open_both("bsize=256,rsize=5");
	fill_and_drain(client, server, 1000);
	fill_and_drain(server, client, 1000);
	close_both();
}

/* No buffers: frames wait in the ring. */
static void
no_mbufs(void **state)
{
	struct rte_mbuf *held[600];
	uint32_t n = 0, sent = 0;

	(void)state;
	open_both("bsize=2048,rsize=10");
	for (; sent < 600; sent++)
		rig_send(client, sent, 100);
	while (n < 600 && server->ops->rx(server, 0, held + n, 1, 0) == 1)
		n++;
	assert_int_equal(n, 511);
	assert_int_not_equal(rig_stats(server).rx_no_mbuf, 0);
	for (uint32_t i = 0; i < n; i++)
		assert_true(rig_is(held[i], i, 100));
	rte_pktmbuf_free_bulk(held, n);
	for (; n < sent; n++)
		rig_expect(server, n, 100);
	close_both();
}

static void
peers_return(void **state)
{
	uint64_t connects;
	char name[64];

	(void)state;
	client = rig_open("client", "");
	assert_false(client->ops->link_up(client));
	for (uint32_t turn = 0; turn < 5; turn++) {
		server = rig_open("server", "");
		assert_true(rig_wait(client, true) && rig_wait(server, true));
		hca_port_memif_peer(server, name, sizeof(name));
		assert_memory_equal(name, HCA_PORT_MEMIF_OURS, strlen(HCA_PORT_MEMIF_OURS));
		rig_send(client, turn, 100);
		rig_expect(server, turn, 100);
		rig_send(server, turn, 1500); /* and is lost with the server */
		rig_close(server);
		assert_true(rig_wait(client, false));
		hca_port_memif_peer(client, name, sizeof(name));
		assert_string_equal(name, "");
	}
	assert_false(hca_port_memif_connected(client, &connects));
	assert_int_equal(connects, 5);
	server = rig_open("server", "");
	for (uint32_t turn = 0; turn < 5; turn++) {
		rig_close(client);
		assert_true(rig_wait(server, false));
		client = rig_open("client", "");
		assert_true(rig_wait(server, true) && rig_wait(client, true));
		rig_send(server, turn, 100);
		rig_expect(client, turn, 100);
	}
	close_both();
}

static void
wait_peer(const struct hca_port *port, bool there)
{
	for (unsigned int ms = 0; hca_port_memif_connected(port, NULL) != there; ms++) {
		assert_true(ms < TIMEOUT_MS);
		usleep(1000);
	}
}

/* The link stays up without the peer: frames are taken, and lost. */
static void
link_without_peer(void **state)
{
	struct hca_port_memif_stats st;

	(void)state;
	carrier = true;
	client = rig_open("client", "");
	assert_true(client->ops->link_up(client));
	rig_send(client, 1, 100);
	st = rig_stats(client);
	assert_int_equal(st.tx_no_peer, 1);
	assert_int_equal(st.tx_pkts, 0);
	server = rig_open("server", "");
	carrier = false;
	wait_peer(client, true);
	wait_peer(server, true);
	rig_send(client, 2, 100);
	rig_expect(server, 2, 100);
	rig_close(server);
	wait_peer(client, false);
	assert_true(client->ops->link_up(client));
	rig_send(client, 3, 100);
	assert_int_equal(rig_stats(client).tx_no_peer, 2);
	rig_close(client);
}

/* A second client is refused, and connected after the first has left. */
static void
second_client(void **state)
{
	struct hca_port *other;

	(void)state;
	open_both("");
	other = rig_open("client", "");
	for (unsigned int ms = 0; rig_stats(server).refused == 0 && ms < TIMEOUT_MS; ms++)
		usleep(1000);
	assert_false(other->ops->link_up(other));
	assert_true(client->ops->link_up(client));
	rig_send(client, 1, 100);
	rig_expect(server, 1, 100);
	rig_close(client);
	client = other;
	assert_true(rig_wait(client, true));
	rig_send(client, 2, 100);
	rig_expect(server, 2, 100);
	close_both();
}

static void
who_may_not(void **state)
{
	static const char *const pairs[][2] = {{"secret=a", "secret=b"},
					       {"secret=a", ""},
					       {"id=1", "id=2"}};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		server = rig_open("server", pairs[i][0]);
		client = rig_open("client", pairs[i][1]);
		for (unsigned int ms = 0; rig_stats(server).refused < 2 && ms < TIMEOUT_MS; ms++)
			usleep(1000);
		assert_int_not_equal(rig_stats(server).refused, 0);
		assert_int_equal(rig_stats(server).connects + rig_stats(client).connects, 0);
		close_both();
	}
}

static void
socket_file(void **state)
{
	struct hca_port_memif_config cfg;
	struct hca_port *p;
	struct stat st;
	char why[64];

	(void)state;
	server = rig_open("server", "");
	assert_int_equal(stat(rig_socket(), &st), 0);
	assert_int_equal(
		hca_port_memif_parse("role=server,socket-abstract=no", &cfg, why, sizeof(why)), 0);
	snprintf(cfg.socket, sizeof(cfg.socket), "%s", rig_socket());
	cfg.name = "second";
	cfg.socket_id = -1;
	assert_int_equal(hca_port_memif_open(&cfg, &p), -EADDRINUSE);
	assert_int_equal(stat(rig_socket(), &st), 0);
	rig_close(server);
	assert_int_equal(stat(rig_socket(), &st), -1);
}

/* ---- a worker that sleeps ---- */

struct sleeper {
	struct hca_port *port;
	uint32_t came, slept, missed;
};

static void *
sleep_and_take(void *arg)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	struct sleeper *s = arg;
	struct hca_port *p = s->port;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct rte_mbuf *m[32];
	uint16_t n;

	epoll_ctl(epoll, EPOLL_CTL_ADD, p->ops->wait_fd(p, 0), &e);
	while (__atomic_load_n(&s->came, __ATOMIC_RELAXED) < SLEEPS) {
		if (!p->ops->arm(p, 0, true)) {
			/* no alarm: nothing makes up for a lost edge */
			if (epoll_wait(epoll, &e, 1, (int)TIMEOUT_MS) != 1) {
				s->missed++;
				break;
			}
			s->slept++;
		}
		p->ops->arm(p, 0, false);
		while ((n = p->ops->rx(p, 0, m, 32, 0)) != 0) {
			rte_pktmbuf_free_bulk(m, n);
			__atomic_store_n(&s->came, s->came + n, __ATOMIC_RELEASE);
		}
	}
	close(epoll);
	return NULL;
}

/* Each frame is sent after the previous one was received: one lost edge stops the test. */
static void
sleeps(struct hca_port *from, struct hca_port *to)
{
	struct sleeper s = {.port = to};
	uint32_t seed = 12345;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, sleep_and_take, &s), 0);
	for (uint32_t sent = 0; sent < SLEEPS; sent++) {
		uint32_t wait;

		seed = seed * 1664525u + 1013904223u;
		/* about the time at which it arms */
		wait = (seed >> 16) % (sent % 2 != 0 ? 2000 : 300);
		for (volatile uint32_t i = 0; i < wait; i++)
			;
		rig_send(from, sent, 64);
		while (__atomic_load_n(&s.came, __ATOMIC_ACQUIRE) <= sent &&
		       __atomic_load_n(&s.missed, __ATOMIC_RELAXED) == 0)
			sched_yield();
		if (__atomic_load_n(&s.missed, __ATOMIC_RELAXED) != 0)
			break;
	}
	pthread_join(thread, NULL);
	assert_int_equal(s.missed, 0);
	assert_int_equal(s.came, SLEEPS);
	assert_int_equal(rig_stats(to).rx_arms >= s.slept, 1);
}

static void
interrupts(void **state)
{
	(void)state;
	open_both("");
	assert_int_equal(server->ops->deadline(server, 0, 5), UINT64_MAX);
	sleeps(client, server);
	sleeps(server, client);
	close_both();
}

/*
 * A polling worker is not interrupted; a sleeping one is once, however many frames come; and once
 * when the peer leaves.
 */
static void
edges(void **state)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd;
	struct rte_mbuf *m;
	uint64_t kicks;

	(void)state;
	open_both("");
	fd = server->ops->wait_fd(server, 0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
	rig_send(client, 0, 64);
	rig_expect(server, 0, 64);
	while (epoll_wait(epoll, &e, 1, 0) == 1)
		;
	kicks = rig_stats(client).tx_kicks;
	for (uint32_t i = 0; i < 10; i++)
		rig_send(client, i, 64);
	assert_int_equal(rig_stats(client).tx_kicks, kicks);
	assert_int_equal(epoll_wait(epoll, &e, 1, 0), 0);
	assert_true(server->ops->arm(server, 0, true));
	assert_false(server->ops->arm(server, 0, false));
	while (server->ops->rx(server, 0, &m, 1, 0) == 1)
		rte_pktmbuf_free(m);
	assert_false(server->ops->arm(server, 0, true));
	assert_int_equal(epoll_wait(epoll, &e, 1, 0), 0);
	for (uint32_t i = 0; i < 10; i++)
		rig_send(client, i, 64);
	assert_int_equal(rig_stats(client).tx_kicks, kicks + 1);
	assert_int_equal(epoll_wait(epoll, &e, 1, (int)TIMEOUT_MS), 1);
	assert_int_equal(epoll_wait(epoll, &e, 1, 0), 0);
	server->ops->arm(server, 0, false);
	while (server->ops->rx(server, 0, &m, 1, 0) == 1)
		rte_pktmbuf_free(m);
	assert_false(server->ops->arm(server, 0, true));
	rig_close(client);
	assert_int_equal(epoll_wait(epoll, &e, 1, (int)TIMEOUT_MS), 1);
	assert_false(server->ops->arm(server, 0, true)); /* no peer */
	client = rig_open("client", "");
	assert_int_equal(epoll_wait(epoll, &e, 1, (int)TIMEOUT_MS), 1);
	assert_int_equal(server->ops->wait_fd(server, 0), fd);
	close(epoll);
	close_both();
}

/* ---- workers that poll while peers come and go ---- */

static bool over;

static void *
poll_for_ever(void *arg)
{
	struct hca_port *p = arg;
	struct rte_mbuf *m[32];

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		uint16_t n = p->ops->rx(p, 0, m, 32, 0), k;

		k = n != 0 ? p->ops->tx(p, 0, m, n, 0) : 0;
		rte_pktmbuf_free_bulk(m + k, n - k);
		if (n == 0 && rte_pktmbuf_alloc_bulk(pool, m, 4) == 0) {
			for (k = 0; k < 4; k++)
				rte_pktmbuf_append(m[k], 300);
			k = p->ops->tx(p, 0, m, 4, 0);
			rte_pktmbuf_free_bulk(m + k, 4u - k);
			sched_yield();
		}
	}
	return NULL;
}

static void
torn_down_under_workers(void **state)
{
	pthread_t thread;

	(void)state;
	over = false;
	server = rig_open("server", "");
	assert_int_equal(pthread_create(&thread, NULL, poll_for_ever, server), 0);
	for (uint32_t turn = 0; turn < 50; turn++) {
		struct rte_mbuf *m[32];

		client = rig_open("client", "rsize=8");
		assert_true(rig_wait(client, true));
		for (uint32_t i = 0; i < 50; i++) {
			uint16_t n = client->ops->rx(client, 0, m, 32, 0);

			rte_pktmbuf_free_bulk(m, n);
		}
		client->ops->close(client);
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(rig_wait(server, false));
	rig_close(server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments),
		cmocka_unit_test(sizes),
		cmocka_unit_test(segments),
		cmocka_unit_test(ring_full),
		cmocka_unit_test(no_mbufs),
		cmocka_unit_test(peers_return),
		cmocka_unit_test(link_without_peer),
		cmocka_unit_test(second_client),
		cmocka_unit_test(who_may_not),
		cmocka_unit_test(socket_file),
		cmocka_unit_test(interrupts),
		cmocka_unit_test(edges),
		cmocka_unit_test(torn_down_under_workers),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
