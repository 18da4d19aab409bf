/* SPDX-License-Identifier: BSD-3-Clause */

/* A pair of ports in memory: frames arrive in the queue of their QP, in order, and wake it. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "port/port_memory.h"
#include "port_rig.h"
#include "wire/roce_opcode.h"
#include "wire/roce_qpn.h"

#define FRAMES 20000u
#define MOST 4u

static struct rte_mbuf *
frame_to(uint32_t qpn, uint32_t psn)
{
	return rig_frame_of(HCA_BTH_RC_WRITE_ONLY, psn, qpn, 0, psn % 2 != 0);
}

static void
pair_of(uint16_t queues, uint32_t depth, struct hca_port *pair[2])
{
	static unsigned int serial;
	char name[16];

	snprintf(name, sizeof(name), "tm%u", serial++);
	assert_int_equal(hca_port_memory_pair(name, queues, depth, -1, pair), 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(pair[i]->queues, queues);
		assert_int_equal(pair[i]->queue_size, depth - 1);
		assert_true(pair[i]->ops->link_up(pair[i]));
		assert_int_equal(hca_port_missed(pair[i]), 0);
	}
}

static void
pair_close(struct hca_port *pair[2])
{
	pair[0]->ops->close(pair[0]);
	pair[1]->ops->close(pair[1]);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static uint32_t
qpn_of(const struct rte_mbuf *m)
{
	return hca_roce_qpn(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
}

/* Frames go to the queue of their QP by whichever queue they leave; others go to queue 0. */
static void
steered(void **state)
{
	static const uint16_t numbers[] = {1, 2, MOST};
	struct rte_mbuf *m[40], *got[40];
	struct hca_port *pair[2];

	(void)state;
	for (unsigned int k = 0; k < RTE_DIM(numbers); k++) {
		uint16_t n = numbers[k];

		pair_of(n, 64, pair);
		for (unsigned int to = 0; to < 2; to++) {
			struct hca_port *from = pair[1 - to];

			for (uint16_t q = 0; q < n; q++) {
				for (uint32_t i = 0; i < 39; i++)
					m[i] = frame_to(0x1000 + i * 7, i);
				m[39] = rig_ub_frame(HCA_UB_TP_RTP, 39, 3, 3);
				assert_int_equal(from->ops->tx(from, q, m, 40, 0), 40);
				for (uint16_t r = 0; r < n; r++) {
					uint16_t c = pair[to]->ops->rx(pair[to], r, got, 40, 0);

					for (uint16_t i = 0; i < c; i++)
						assert_int_equal(qpn_of(got[i]) % n, r);
					assert_in_range(c, 40 / n - 1, 40 / n + 1);
					rte_pktmbuf_free_bulk(got, c);
				}
			}
		}
		pair_close(pair);
	}
}

/* A full ring: frames before the first one without room are accepted, none behind it. */
static void
full(void **state)
{
	struct rte_mbuf *m[8], *got[8];
	struct hca_port *pair[2];

	(void)state;
	pair_of(2, 4, pair);
	for (uint32_t i = 0; i < 8; i++) /* to queues 0 1 0 1 0 1 0 0 */
		m[i] = frame_to(i < 6 ? i : 0, i);
	assert_int_equal(pair[0]->ops->tx(pair[0], 1, m, 8, 0), 6);
	assert_int_equal(pair[0]->ops->tx(pair[0], 1, m + 6, 2, 0), 0);
	/* the other queue has its own rings */
	assert_int_equal(pair[0]->ops->tx(pair[0], 0, m + 6, 1, 0), 1);
	assert_int_equal(pair[1]->ops->rx(pair[1], 0, got, 8, 0), 4);
	rte_pktmbuf_free_bulk(got, 4);
	assert_int_equal(pair[0]->ops->tx(pair[0], 1, m + 7, 1, 0), 1);
	assert_int_equal(pair[1]->ops->rx(pair[1], 1, got, 2, 0), 2);
	rte_pktmbuf_free_bulk(got, 2);
	pair_close(pair); /* with two frames */
}

static bool
signalled(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t n;

	return poll(&p, 1, 0) == 1 && read(fd, &n, sizeof(n)) == sizeof(n);
}

/* A frame wakes the queue that receives it, and no other. */
static void
wakes(void **state)
{
	struct hca_port *pair[2];
	struct rte_mbuf *m;
	int fd[MOST];

	(void)state;
	pair_of(MOST, 64, pair);
	for (uint16_t q = 0; q < MOST; q++) {
		fd[q] = pair[1]->ops->wait_fd(pair[1], q);
		assert_true(fd[q] >= 0);
		assert_false(pair[1]->ops->arm(pair[1], q, true));
	}
	for (uint16_t q = 0; q < MOST; q++) {
		m = frame_to(q, q);
		assert_int_equal(pair[0]->ops->tx(pair[0], (q + 1) % MOST, &m, 1, 0), 1);
		for (uint16_t i = 0; i < MOST; i++)
			assert_int_equal(signalled(fd[i]), i == q);
		assert_true(pair[1]->ops->arm(pair[1], q, true));
		assert_false(pair[1]->ops->arm(pair[1], q, false));
		assert_int_equal(pair[1]->ops->rx(pair[1], q, &m, 1, 0), 1);
		rte_pktmbuf_free(m);
	}
	/* awake: no signal */
	m = frame_to(1, 1);
	assert_int_equal(pair[0]->ops->tx(pair[0], 0, &m, 1, 0), 1);
	assert_false(signalled(fd[1]));
	pair_close(pair);
}

struct sender {
	struct hca_port *port;
	uint16_t q;
	/* a pool of several users would wait for the one without a CPU */
	struct rte_mempool *pool;
	pthread_t thread;
};

static uint8_t model[128]; /* a frame */
static uint16_t model_len;

/* A frame to a QP, with the sender's queue in the middle byte of its QPN. */
static struct rte_mbuf *
numbered(const struct sender *s, uint32_t to, uint32_t psn)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(s->pool);
	uint8_t *bth;

	if (m == NULL)
		return NULL;
	memcpy(rte_pktmbuf_append(m, model_len), model, model_len);
	bth = rte_pktmbuf_mtod_offset(m, uint8_t *, HCA_ETH_LEN + HCA_IPV4_LEN + HCA_UDP_LEN);
	bth[7] = (uint8_t)to;
	bth[6] = (uint8_t)s->q;
	bth[9] = (uint8_t)(psn >> 16);
	bth[10] = (uint8_t)(psn >> 8);
	bth[11] = (uint8_t)psn;
	return m;
}

static void *
send_all(void *arg)
{
	struct sender *s = arg;

	for (uint32_t psn = 0; psn < FRAMES / MOST;) {
		struct rte_mbuf *m = numbered(s, psn / 3 % MOST, psn);

		if (m != NULL && s->port->ops->tx(s->port, s->q, &m, 1, 0) == 1) {
			psn++;
		} else {
			rte_pktmbuf_free(m);
			sched_yield();
		}
	}
	return NULL;
}

/* Four senders, four receivers: each frame once, in order between two queues. */
static void
at_once(void **state)
{
	uint32_t next[MOST][MOST] = {{0}}, n = 0;
	struct sender s[MOST];
	struct hca_port *pair[2];
	struct rte_mbuf *m[32];
	char name[8];

	(void)state;
	m[0] = rig_frame_of(HCA_BTH_RC_ACK, 0, 1, 0, false);
	model_len = m[0]->data_len;
	memcpy(model, rte_pktmbuf_mtod(m[0], void *), model_len);
	rte_pktmbuf_free(m[0]);
	pair_of(MOST, 64, pair);
	for (uint16_t q = 0; q < MOST; q++) {
		s[q] = (struct sender){.port = pair[0], .q = q};
		snprintf(name, sizeof(name), "tm.%u", q);
		s[q].pool = rte_pktmbuf_pool_create(name, 255, 0, HCA_MBUF_PRIV, 2048, -1);
		assert_non_null(s[q].pool);
		assert_int_equal(pthread_create(&s[q].thread, NULL, send_all, &s[q]), 0);
	}
	for (uint16_t q = 0; n < FRAMES; q = (q + 1) % MOST) {
		uint16_t got = pair[1]->ops->rx(pair[1], q, m, 32, 0);

		for (uint16_t i = 0; i < got; i++) {
			const uint8_t *bth =
				rte_pktmbuf_mtod_offset(m[i], const uint8_t *,
							HCA_ETH_LEN + HCA_IPV4_LEN + 8);
			uint32_t psn = (uint32_t)bth[9] << 16 | (uint32_t)bth[10] << 8 | bth[11];

			assert_int_equal(bth[7], q);
			assert_true(psn >= next[q][bth[6]]);
			next[q][bth[6]] = psn + 1;
		}
		rte_pktmbuf_free_bulk(m, got);
		n += got;
		if (got == 0)
			sched_yield();
	}
	for (uint16_t q = 0; q < MOST; q++) {
		pthread_join(s[q].thread, NULL);
		assert_int_equal(rte_mempool_in_use_count(s[q].pool), 0);
		rte_mempool_free(s[q].pool);
	}
	pair_close(pair);
}

static void
refused(void **state)
{
	struct hca_port *pair[2], *again[2];

	(void)state;
	assert_int_equal(hca_port_memory_pair("tmx", 0, 64, -1, pair), -EINVAL);
	assert_int_equal(hca_port_memory_pair("tmx", 3, 64, -1, pair), -EINVAL);
	assert_int_equal(hca_port_memory_pair("tmx", 32, 64, -1, pair), -EINVAL);
	assert_int_equal(hca_port_memory_pair("tmx", 2, 63, -1, pair), -EINVAL);
	assert_int_equal(hca_port_memory_pair("tmx", 1, 64, -1, pair), 0);
	assert_int_equal(hca_port_memory_pair("tmx", 1, 64, -1, again), -EEXIST);
	pair_close(pair);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steered), cmocka_unit_test(full),    cmocka_unit_test(wakes),
		cmocka_unit_test(at_once), cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, rig_setup, NULL);
}
