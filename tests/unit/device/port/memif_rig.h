/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_PORT_MEMIF_RIG_H
#define TESTS_UNIT_DEVICE_PORT_MEMIF_RIG_H

/*
 * Shared by the tests of the memif port: a folder with a socket, ports on it, and frames that can
 * be identified.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "../../../test_eal.h"
#include "../../../test_path.h"
#include "engine/pkt.h"
#include "port/port_memif.h"

#define TIMEOUT_MS 60000u
#define RIG_ROOM (9216u + RTE_PKTMBUF_HEADROOM)

static char folder[TEST_PATH_MAX];
static struct rte_mempool *pool;
static unsigned int opened;
static bool carrier;	    /* of ports that are opened */
static uint16_t rig_queues; /* the same; 0: one */

static inline const char *
rig_socket(void)
{
	static char path[sizeof(folder) + 8];

	snprintf(path, sizeof(path), "%s/wire", folder);
	return path;
}

static inline int
rig_setup(void **state)
{
	(void)state;
	if (mkdtemp(test_path(folder, "memif")) == NULL || test_eal_start(160) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("frames", 2047, 0, HCA_MBUF_PRIV, RIG_ROOM, -1);
	return pool == NULL ? -1 : 0;
}

static inline int
rig_teardown(void **state)
{
	(void)state;
	unlink(rig_socket());
	return rmdir(folder);
}

/* Open a port with role, socket and these arguments. */
static inline struct hca_port *
rig_open(const char *role, const char *more)
{
	struct hca_port_memif_config cfg;
	char args[512], why[256] = "", name[32];
	struct hca_port *p;

	snprintf(args, sizeof(args), "role=%s,socket=%s,socket-abstract=no%s%s", role, rig_socket(),
		 more[0] != '\0' ? "," : "", more);
	if (hca_port_memif_parse(args, &cfg, why, sizeof(why)) != 0)
		fail_msg("%s: %s", args, why);
	snprintf(name, sizeof(name), "m%u%s", opened++, role);
	cfg.name = name;
	cfg.mtu = 9000;
	cfg.queues = rig_queues;
	cfg.rx_mbufs = 511;
	cfg.data_room = RIG_ROOM;
	cfg.socket_id = -1;
	cfg.carrier = carrier;
	assert_int_equal(hca_port_memif_open(&cfg, &p), 0);
	return p;
}

static inline bool
rig_wait(struct hca_port *p, bool up)
{
	for (unsigned int ms = 0; ms < TIMEOUT_MS * 4; ms++) {
		if (p->ops->link_up(p) == up)
			return true;
		usleep(250);
	}
	return false;
}

static inline struct hca_port_memif_stats
rig_stats(const struct hca_port *p)
{
	struct hca_port_memif_stats st;

	hca_port_memif_stats(p, &st);
	return st;
}

static inline uint8_t
rig_byte(uint32_t serial, uint32_t i)
{
	return (uint8_t)(serial * 131 + i * 7 + (i >> 8));
}

/* A frame whose bytes depend on serial. */
static inline struct rte_mbuf *
rig_frame(uint32_t serial, uint32_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *b;

	assert_non_null(m);
	b = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)length);
	assert_non_null(b);
	for (uint32_t i = 0; i < length; i++)
		b[i] = rig_byte(serial, i);
	return m;
}

static inline bool
rig_is(const struct rte_mbuf *m, uint32_t serial, uint32_t length)
{
	const uint8_t *b = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->nb_segs != 1 || m->data_len != length || m->pkt_len != length ||
	    m->priv_size < HCA_MBUF_PRIV)
		return false;
	for (uint32_t i = 0; i < length; i++)
		if (b[i] != rig_byte(serial, i))
			return false;
	return true;
}

/* Send one frame, which the port must accept. */
static inline void
rig_send(struct hca_port *p, uint32_t serial, uint32_t length)
{
	struct rte_mbuf *m = rig_frame(serial, length);

	assert_int_equal(p->ops->tx(p, 0, &m, 1, 0), 1);
}

/* The next received frame; NULL after TIMEOUT_MS. */
static inline struct rte_mbuf *
rig_next(struct hca_port *p)
{
	struct rte_mbuf *m;

	for (unsigned int ms = 0; ms < TIMEOUT_MS * 4; ms++) {
		if (p->ops->rx(p, 0, &m, 1, 0) == 1)
			return m;
		usleep(250);
	}
	return NULL;
}

static inline void
rig_expect(struct hca_port *p, uint32_t serial, uint32_t length)
{
	struct rte_mbuf *m = rig_next(p);

	assert_non_null(m);
	assert_true(rig_is(m, serial, length));
	rte_pktmbuf_free(m);
}

/* Close the port; asserts that all mbufs are free. */
static inline void
rig_close(struct hca_port *p)
{
	p->ops->close(p);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

#endif
