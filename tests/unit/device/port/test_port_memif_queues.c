/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The memif port with several queues: each frame in the queue of its QP, in order and once; peers
 * with other numbers of queues, and foreign ones with one ring or several.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>

#include "memif_fake.h"
#include "wire/roce_qpn.h"

#define MOST 4u
#define FRAMES 4000u /* of each sender */
#define LENGTH 64u

static struct hca_port *server, *client;

static void
open_both(uint16_t of_server, uint16_t of_client)
{
	rig_queues = of_server;
	server = rig_open("server", "");
	rig_queues = of_client;
	client = rig_open("client", "");
	assert_int_equal(server->queues, of_server);
	assert_int_equal(client->queues, of_client);
	assert_true(rig_wait(server, true));
	assert_true(rig_wait(client, true));
}

static void
close_both(void)
{
	rig_close(client);
	rig_close(server);
}

/* RoCE over IPv4; bytes 50 and on: the sender's queue and a number. */
static struct rte_mbuf *
frame_to(struct rte_mempool *from, uint32_t qpn, uint16_t q, uint32_t number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(from);
	uint32_t mark[2] = {q, number};
	uint8_t *b;

	if (m == NULL)
		return NULL;
	b = (uint8_t *)rte_pktmbuf_append(m, LENGTH);
	memset(b, 0, LENGTH);
	b[12] = 0x08;
	b[14] = 0x45;
	b[14 + 9] = HCA_IPPROTO_UDP;
	b[36] = HCA_ROCE_UDP_PORT >> 8;
	b[37] = HCA_ROCE_UDP_PORT & 0xff;
	b[47] = (uint8_t)(qpn >> 16);
	b[48] = (uint8_t)(qpn >> 8);
	b[49] = (uint8_t)qpn;
	memcpy(b + 54, mark, sizeof(mark));
	return m;
}

static uint32_t
qpn_of(const struct rte_mbuf *m)
{
	return hca_roce_qpn(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
}

static void
send_to(struct hca_port *from, uint16_t q, uint32_t qpn, uint32_t number)
{
	struct rte_mbuf *m = frame_to(pool, qpn, q, number);

	assert_int_equal(from->ops->tx(from, q, &m, 1, 0), 1);
}

/* Every queue of one port to every QP: frames arrive in the queue of their QP at once. */
static void
all_to_all(struct hca_port *from, struct hca_port *to)
{
	struct rte_mbuf *m[64];

	for (uint16_t q = 0; q < from->queues; q++) {
		for (uint32_t qpn = 16; qpn < 48; qpn++)
			send_to(from, q, qpn, qpn);
		for (uint16_t k = 0; k < to->queues; k++) {
			uint16_t got = to->ops->rx(to, k, m, 64, 0);

			assert_int_equal(got, 32 / to->queues);
			for (uint16_t i = 0; i < got; i++)
				assert_int_equal(qpn_of(m[i]), 16 + i * to->queues + k);
			rte_pktmbuf_free_bulk(m, got);
		}
	}
}

static void
steered(void **state)
{
	static const uint16_t numbers[][2] = {{2, 2}, {MOST, MOST}, {1, MOST}, {MOST, 2}, {2, 16}};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(numbers); i++) {
		open_both(numbers[i][0], numbers[i][1]);
		all_to_all(server, client);
		all_to_all(client, server);
		/* another frame: to queue 0 */
		rig_send(client, 7, 100);
		rig_expect(server, 7, 100);
		assert_int_equal(rig_stats(client).tx_pkts, rig_stats(server).rx_pkts);
		close_both();
	}
}

/* A full ring: frames before the first one without room are accepted, none behind it. */
static void
full(void **state)
{
	struct rte_mbuf *m[64], *got[64];
	uint16_t took;

	(void)state;
	open_both(2, 2);
	for (uint32_t i = 0; i < 1000; i++) {
		m[0] = frame_to(pool, 1, 1, i);
		if (client->ops->tx(client, 1, m, 1, 0) == 0)
			break;
		assert_true(i < 999);
	}
	for (uint32_t i = 1; i < 8; i++)
		m[i] = frame_to(pool, i < 6 ? 0 : 1, 1, i);
	/* m[0] is to the full ring */
	assert_int_equal(client->ops->tx(client, 1, m, 8, 0), 0);
	assert_int_equal(client->ops->tx(client, 1, m + 1, 7, 0), 5);
	/* queue 0 has its own rings */
	assert_int_equal(client->ops->tx(client, 0, m + 6, 1, 0), 1);
	took = server->ops->rx(server, 0, got, 64, 0);
	assert_int_equal(took, 5);
	rte_pktmbuf_free_bulk(got, took);
	rte_pktmbuf_free(m[0]);
	rte_pktmbuf_free(m[7]);
	close_both();
}

static bool
woken(int fd)
{
	struct epoll_event e;

	return epoll_wait(fd, &e, 1, 0) > 0;
}

/* A frame wakes the worker of its queue only. */
static void
wakes(void **state)
{
	struct rte_mbuf *m;

	(void)state;
	open_both(MOST, 2);
	for (uint16_t q = 0; q < MOST; q++) {
		assert_false(server->ops->arm(server, q, true));
		while (woken(server->ops->wait_fd(server, q)))
			; /* the link came up */
	}
	for (uint16_t q = 0; q < MOST; q++) {
		send_to(client, q % 2, MOST + q, 1);
		for (uint16_t i = 0; i < MOST; i++)
			assert_int_equal(woken(server->ops->wait_fd(server, i)), i == q);
		assert_false(server->ops->arm(server, q, false));
		assert_int_equal(server->ops->rx(server, q, &m, 1, 0), 1);
		rte_pktmbuf_free(m);
		assert_true(server->ops->deadline(server, q, 0) == UINT64_MAX);
	}
	close_both();
}

struct sender {
	struct hca_port *port;
	uint16_t q;
	uint32_t to; /* the peer's queues */
	/* a pool of several users would wait for the one without a CPU */
	struct rte_mempool *pool;
	pthread_t thread;
};

static void *
send_all(void *arg)
{
	struct sender *s = arg;

	for (uint32_t n = 0; n < FRAMES;) {
		struct rte_mbuf *m = frame_to(s->pool, n / 3 % s->to, s->q, n);

		if (m != NULL && s->port->ops->tx(s->port, s->q, &m, 1, 0) == 1) {
			n++;
		} else {
			rte_pktmbuf_free(m);
			sched_yield();
		}
	}
	return NULL;
}

static void
start(struct sender s[MOST], struct hca_port *from, uint32_t to)
{
	for (uint16_t q = 0; q < MOST; q++) {
		char name[8];

		snprintf(name, sizeof(name), "mq%u", q);
		s[q] = (struct sender){.port = from, .q = q, .to = to};
		s[q].pool = rte_pktmbuf_pool_create(name, 127, 0, HCA_MBUF_PRIV, 2048, -1);
		assert_non_null(s[q].pool);
		assert_int_equal(pthread_create(&s[q].thread, NULL, send_all, &s[q]), 0);
	}
}

static void
join(struct sender s[MOST])
{
	for (uint16_t q = 0; q < MOST; q++) {
		pthread_join(s[q].thread, NULL);
		assert_int_equal(rte_mempool_in_use_count(s[q].pool), 0);
		rte_mempool_free(s[q].pool);
	}
}

/* Receives all frames of all senders; those of one sender in one queue are in order. */
static void
take_all(struct hca_port *to)
{
	uint32_t next[MOST][MOST] = {{0}}, n = 0;
	struct rte_mbuf *m[32];

	for (uint16_t k = 0; n < MOST * FRAMES; k = (k + 1) % to->queues) {
		uint16_t got = to->ops->rx(to, k, m, 32, 0);

		for (uint16_t i = 0; i < got; i++) {
			uint32_t mark[2];

			memcpy(mark, rte_pktmbuf_mtod_offset(m[i], uint8_t *, 54), sizeof(mark));
			assert_int_equal(qpn_of(m[i]) % to->queues, k);
			assert_true(mark[0] < MOST && mark[1] >= next[k][mark[0]]);
			next[k][mark[0]] = mark[1] + 1;
		}
		rte_pktmbuf_free_bulk(m, got);
		n += got;
		if (got == 0)
			sched_yield();
	}
}

static void
at_once(void **state)
{
	struct sender s[MOST];

	(void)state;
	open_both(MOST, MOST);
	start(s, client, MOST);
	take_all(server);
	join(s);
	start(s, server, MOST);
	take_all(client);
	join(s);
	close_both();
}

/* Takes the frames of a fake client's receiving ring, which the server fills. */
static uint32_t
fake_take(struct fake *f, uint16_t *seen, uint32_t next[MOST])
{
	uint32_t n = 0;

	for (; *seen != __atomic_load_n(&f->to_client->tail, __ATOMIC_ACQUIRE); (*seen)++, n++) {
		const struct memif_desc *d = &f->to_client->desc[*seen % FAKE_SLOTS];
		uint32_t mark[2];

		memcpy(mark, f->base + d->offset + 54, sizeof(mark));
		assert_true(mark[0] < MOST);
		assert_int_equal(mark[1], next[mark[0]]);
		next[mark[0]]++;
	}
	__atomic_store_n(&f->to_client->head, (uint16_t)(*seen + FAKE_SLOTS), __ATOMIC_RELEASE);
	return n;
}

/* A foreign client with one ring each way: all queues send by it, and queue 0 receives. */
static void
one_ring(void **state)
{
	uint32_t next[MOST] = {0}, n = 0;
	struct sender s[MOST];
	struct rte_mbuf *m;
	uint16_t seen = 0;
	struct fake f;

	(void)state;
	rig_queues = MOST;
	server = rig_open("server", "");
	fake_connect(&f, F_SEAL_SHRINK);
	assert_true(rig_wait(server, true));
	f.to_client->head = FAKE_SLOTS;
	start(s, server, MOST);
	while (n < MOST * FRAMES) {
		n += fake_take(&f, &seen, next);
		sched_yield();
	}
	join(s);
	f.to_server->desc[0].length = LENGTH;
	__atomic_store_n(&f.to_server->head, 1, __ATOMIC_RELEASE);
	for (uint16_t q = 1; q < MOST; q++)
		assert_int_equal(server->ops->rx(server, q, &m, 1, 0), 0);
	assert_int_equal(server->ops->rx(server, 0, &m, 1, 0), 1);
	rte_pktmbuf_free(m);
	fake_leave(&f);
	rig_close(server);
}

/* A foreign client with three rings each way to a server with two queues. */
static void
foreign_rings(void **state)
{
	struct memif_message m = {.type = MEMIF_CONNECT}, answer;
	struct rte_mbuf *got;
	struct fake f;
	int fd;

	(void)state;
	rig_queues = 2;
	server = rig_open("server", "");
	fake_dial(&f);
	fake_memory(&f, F_SEAL_SHRINK);
	assert_int_equal(fake_hear(&f, &answer, NULL), MEMIF_HELLO);
	assert_int_equal(answer.hello.max_s2m_ring, 2 * HCA_PORT_MEMIF_QUEUES - 1);
	assert_int_equal(answer.hello.max_m2s_ring, 2 * HCA_PORT_MEMIF_QUEUES - 1);
	assert_string_equal(answer.hello.name, "softhca memif 2");
	for (unsigned int step = 1; step < 3; step++) {
		assert_true(fake_step(&f, step));
		assert_int_equal(fake_hear(&f, &answer, NULL), MEMIF_ACK);
	}
	/* rings of 8 descriptors, one behind the other in the place of the large ones */
	for (uint16_t i = 0; i < 6; i++) {
		struct memif_message r = fake_ring(i < 3, i * 512u);
		struct memif_ring *ring = (struct memif_ring *)(void *)(f.base + i * 512u);

		memset(ring, 0, 512);
		ring->cookie = MEMIF_COOKIE;
		for (uint32_t k = 0; k < 8; k++)
			ring->desc[k] = (struct memif_desc){.length = FAKE_BUFFER,
							    .offset = 2 * FAKE_RING +
								      (i * 8 + k) * FAKE_BUFFER};
		r.add_ring.index = i % 3;
		r.add_ring.log2_ring_size = 3;
		fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		assert_true(fake_say(&f, &r, fd));
		close(fd);
		assert_int_equal(fake_hear(&f, &answer, NULL), MEMIF_ACK);
	}
	assert_true(fake_say(&f, &m, -1));
	assert_int_equal(fake_hear(&f, &answer, NULL), MEMIF_CONNECTED);
	assert_true(rig_wait(server, true));
	for (uint16_t i = 0; i < 3; i++) {
		struct memif_ring *ring = (struct memif_ring *)(void *)(f.base + i * 512u);

		ring->desc[0].length = LENGTH;
		__atomic_store_n(&ring->head, 1, __ATOMIC_RELEASE);
		assert_int_equal(server->ops->rx(server, (i + 1) % 2, &got, 1, 0), 0);
		assert_int_equal(server->ops->rx(server, i % 2, &got, 1, 0), 1);
		rte_pktmbuf_free(got);
	}
	for (uint16_t q = 0; q < 2; q++) {
		struct memif_ring *ring = (struct memif_ring *)(void *)(f.base + (3 + q) * 512u);

		ring->head = 8;
		send_to(server, q, 0, 0);
		assert_int_equal(__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE), 1);
	}
	fake_leave(&f);
	rig_close(server);
}

/* Handshake of a fake client with this name up to both rings, then CONNECT. */
static unsigned int
answer_to(const char *name, uint16_t index)
{
	struct memif_message m, answer;
	unsigned int got = 0;
	struct fake f;

	fake_dial(&f);
	fake_memory(&f, F_SEAL_SHRINK);
	assert_int_equal(fake_hear(&f, &answer, NULL), MEMIF_HELLO);
	m = fake_init();
	snprintf(m.init.name, sizeof(m.init.name), "%s", name);
	assert_true(fake_say(&f, &m, -1));
	assert_int_equal(fake_hear(&f, &answer, NULL), MEMIF_ACK);
	for (unsigned int step = 2; step < FAKE_STEPS; step++) {
		m = fake_ring(step == 3, step == 3 ? 0 : FAKE_RING);
		m.add_ring.index = index;
		if (step == 3 || step == 4)
			assert_true(fake_say(&f, &m, f.event[step - 3]));
		else
			assert_true(fake_step(&f, step));
		got = fake_hear(&f, &answer, NULL);
	}
	fake_leave(&f);
	return got;
}

/* Names that lie about the number of queues are foreign; a gap in the rings is an error. */
static void
lies(void **state)
{
	static const char *const names[] = {"softhca memif 4",	"softhca memif 3",
					    "softhca memif 0",	"softhca memif 99",
					    "softhca memif -1", "softhca memif 2x",
					    "softhca memif2",	"softhca memif"};

	(void)state;
	rig_queues = 2;
	server = rig_open("server", "");
	for (size_t i = 0; i < RTE_DIM(names); i++) {
		assert_true(rig_wait(server, false));
		assert_int_equal(answer_to(names[i], 0), MEMIF_CONNECTED);
	}
	assert_true(rig_wait(server, false));
	assert_int_equal(answer_to("softhca memif 2", 1), MEMIF_DISCONNECT);
	rig_close(server);
}

/* A foreign server with one ring each way. */
static void
foreign_server(void **state)
{
	struct rte_mbuf *m;
	struct fake f;

	(void)state;
	fake_listen(&f);
	rig_queues = 2;
	client = rig_open("client", "");
	assert_true(fake_accept(&f));
	for (unsigned int step = 0; step < FAKE_STEPS; step++)
		assert_true(fake_serve(&f, step));
	assert_true(rig_wait(client, true));
	for (uint16_t q = 0; q < 2; q++) {
		send_to(client, q, 1, q);
		assert_int_equal(__atomic_load_n(&f.to_server->head, __ATOMIC_ACQUIRE), q + 1);
		assert_int_equal(client->ops->rx(client, q, &m, 1, 0), 0);
	}
	fake_leave(&f);
	close(f.listener);
	unlink(rig_socket());
	rig_close(client);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steered),  cmocka_unit_test(full),
		cmocka_unit_test(wakes),    cmocka_unit_test(at_once),
		cmocka_unit_test(one_ring), cmocka_unit_test(foreign_rings),
		cmocka_unit_test(lies),	    cmocka_unit_test(foreign_server),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
