/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/port_wrap.h"
#include "wire/udp_template.h"

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
	w->port.queues = hca_port_queues(inner);
	w->inner = inner;
}

uint16_t
hca_port_wrap_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	return inner_of(p)->ops->rx(inner_of(p), q, m, n, now);
}

uint16_t
hca_port_wrap_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	return inner_of(p)->ops->tx(inner_of(p), q, m, n, now);
}

bool
hca_port_wrap_link_up(struct hca_port *p)
{
	return inner_of(p)->ops->link_up(inner_of(p));
}

void
hca_port_wrap_poll(struct hca_port *p, uint16_t q, uint64_t now)
{
	hca_port_poll(inner_of(p), q, now);
}

uint64_t
hca_port_wrap_missed(const struct hca_port *p)
{
	return hca_port_missed(inner_of(p));
}

int
hca_port_wrap_wait_fd(const struct hca_port *p, uint16_t q)
{
	return hca_port_wait_fd(inner_of(p), q);
}

bool
hca_port_wrap_arm(struct hca_port *p, uint16_t q, bool on)
{
	return hca_port_arm(inner_of(p), q, on);
}

uint64_t
hca_port_wrap_deadline(const struct hca_port *p, uint16_t q, uint64_t now)
{
	return hca_port_deadline(inner_of(p), q, now);
}

uint32_t
hca_port_l3(const uint8_t *frame, uint32_t len)
{
	uint32_t l3 = HCA_ETH_LEN, version;

	if (len < HCA_ETH_LEN + HCA_VLAN_LEN + HCA_IPV4_LEN)
		return 0;
	if (hca_get_be16(frame + 12) == HCA_ETHERTYPE_VLAN)
		l3 += HCA_VLAN_LEN;
	version = frame[l3] >> 4;
	return version == 4 || (version == 6 && len >= l3 + HCA_IPV6_LEN) ? l3 : 0;
}

uint32_t
hca_port_ecn(const uint8_t *l3)
{
	return l3[0] >> 4 == 4 ? l3[1] & 3 : l3[1] >> 4 & 3;
}

/* Sets CE and updates the checksum (RFC 1624). */
static void
mark_ipv4(uint8_t *l3)
{
	uint32_t before = hca_get_be16(l3), sum = ~hca_get_be16(l3 + 10) & 0xffffu;
	uint16_t csum;

	l3[1] |= 3;
	csum = ~hca_ip_fold(sum + (~before & 0xffff) + hca_get_be16(l3));
	l3[10] = (uint8_t)(csum >> 8);
	l3[11] = (uint8_t)csum;
}

void
hca_port_mark_ce(uint8_t *l3)
{
	if (l3[0] >> 4 == 4)
		mark_ipv4(l3);
	else
		l3[1] |= 0x30;
}
