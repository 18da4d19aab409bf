/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_ECHO_WIRE_H
#define TESTS_UNIT_DEVICE_ECHO_WIRE_H

/*
 * A third wire: each frame of an Ethertype for experiments goes back to its sender. This row is all
 * of it; it has no stage, because decap hands its frames to encap.
 */

#include <string.h>

#include "frame/decap.h"
#include "frame/encap.h"

#define ECHO_ETHERTYPE 0x88b5

static bool
echo_describe(struct hca_pipe *h, struct hca_decap *d, struct rte_mbuf *m,
	      const struct hca_wire_view *v, int rc)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->data_len < HCA_ETH_LEN || hca_get_be16(p + 12) != ECHO_ETHERTYPE)
		return false;
	d->span[d->n] = (struct hca_icrc_span){p, hca_icrc_ones_none, m->data_len, 0};
	d->frame[d->n] = m;
	hca_decap_add(d, HCA_WIRE_TEST, 1);
	return true;
}

static void
echo_judge(struct hca_pipe *h, struct hca_decap *d, unsigned int from, unsigned int to)
{
	for (; from < to; from++)
		hca_decap_pass(d, HCA_EDGE_DECAP_ENCAP, d->frame[from]);
}

static void
echo_build(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct hca_encap_burst b;

	hca_encap_begin(&b);
	for (; b.frames < n; b.frames++) {
		struct rte_mbuf *m = b.frame[b.frames] = objs[b.frames];
		uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *), to[6];

		memcpy(to, p + 6, 6);
		memcpy(p + 6, p, 6);
		memcpy(p, to, 6);
		b.bytes += m->data_len;
	}
	hca_encap_transmit(h, &b, now);
}

static const struct hca_wire_edge echo_edge = {HCA_EDGE_DECAP_ENCAP, echo_build, hca_encap_room};

static const struct hca_wire_ops echo_wire = {
	.name = "echo",
	.wire = HCA_WIRE_TEST,
	.edges = &echo_edge,
	.num_edges = 1,
	.describe = echo_describe,
	.judge = echo_judge,
};

#endif
