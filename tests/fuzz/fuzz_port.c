/* SPDX-License-Identifier: BSD-3-Clause */

#include "fuzz_port.h"

#include <stdio.h>
#include <string.h>

#include "engine/pkt.h"
#include "fuzz.h"

static uint16_t
port_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct fuzz_port *p = (struct fuzz_port *)port;
	uint16_t i;

	(void)now;
	for (i = 0; i < n && p->tail != p->head; i++)
		m[i] = p->rx[p->tail++ % FUZZ_PORT_DEPTH];
	return i;
}

static uint16_t
port_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct fuzz_port *p = (struct fuzz_port *)port;

	(void)now;
	for (uint16_t i = 0; i < n; i++)
		p->judge(p->arg, rte_pktmbuf_mtod(m[i], const uint8_t *), m[i]->data_len);
	rte_pktmbuf_free_bulk(m, n);
	p->sent += n;
	return n;
}

static bool
port_up(struct hca_port *port)
{
	(void)port;
	return true;
}

static const struct hca_port_ops port_ops = {.rx = port_rx, .tx = port_tx, .link_up = port_up};

void
fuzz_port_open(struct fuzz_port *p, const char *name, unsigned int most)
{
	char pool[RTE_MEMPOOL_NAMESIZE];

	snprintf(pool, sizeof(pool), "%s.rx", name);
	p->port = (struct hca_port){.ops = &port_ops, .max_frame = 9000, .queue_size = most};
	p->most = most;
	p->pool = rte_pktmbuf_pool_create(pool, 2 * most, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA,
					  SOCKET_ID_ANY);
	fuzz_check(p->pool != NULL, "no mbufs");
}

bool
fuzz_port_put(struct fuzz_port *p, const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf *m;

	if (p->head - p->tail == p->most || len > HCA_MBUF_DATA - RTE_PKTMBUF_HEADROOM)
		return false;
	m = rte_pktmbuf_alloc(p->pool);
	fuzz_check(m != NULL, "the device keeps received frames");
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	p->rx[p->head++ % FUZZ_PORT_DEPTH] = m;
	return true;
}
