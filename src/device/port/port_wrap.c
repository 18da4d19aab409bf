/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/port_wrap.h"

static struct hca_port *
inner_of(const struct hca_port *p)
{
	return ((const struct hca_port_wrap *)p)->inner;
}

void
hca_port_wrap_init(struct hca_port_wrap *w, const struct hca_port_ops *ops, struct hca_port *inner)
{
	w->port = *inner;
	w->port.ops = ops;
	w->inner = inner;
}

uint16_t
hca_port_wrap_rx(struct hca_port *p, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	return inner_of(p)->ops->rx(inner_of(p), m, n, now);
}

uint16_t
hca_port_wrap_tx(struct hca_port *p, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	return inner_of(p)->ops->tx(inner_of(p), m, n, now);
}

bool
hca_port_wrap_link_up(struct hca_port *p)
{
	return inner_of(p)->ops->link_up(inner_of(p));
}

void
hca_port_wrap_poll(struct hca_port *p, uint64_t now)
{
	hca_port_poll(inner_of(p), now);
}

uint64_t
hca_port_wrap_missed(const struct hca_port *p)
{
	return hca_port_missed(inner_of(p));
}

int
hca_port_wrap_wait_fd(const struct hca_port *p)
{
	return hca_port_wait_fd(inner_of(p));
}

bool
hca_port_wrap_arm(struct hca_port *p, bool on)
{
	return hca_port_arm(inner_of(p), on);
}

uint64_t
hca_port_wrap_deadline(const struct hca_port *p, uint64_t now)
{
	return hca_port_deadline(inner_of(p), now);
}
