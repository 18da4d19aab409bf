/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_UB_FRAME_UB_FRAME_RIG_H
#define TESTS_UNIT_DEVICE_UB_FRAME_UB_FRAME_RIG_H

/*
 * UB in encap and decap alone: the rig of RoCE's frames (frame_rig.h), a TP between the addresses
 * of its QP, and operations of one lane.
 */

#include <stdlib.h>
#include <string.h>

#include "../../frame/frame_rig.h"

#include "ctxmgt/ctxmgt.h"
#include "ub/tp/pkt.h"
#include "ub/ub.h"
#include "ub_craft.h"

#define UF_TPS 4u
#define UF_TPI 1u
#define UF_OWN_TPN 0x111101u
#define UF_PEER_TPN 0x222205u
#define UF_GENERATION 7u
#define UF_PSN 0x10u /* oldest that is not acknowledged */
#define UF_OPS 8u
#define UF_PORT 0xc123u
#define UF_MTU_LOG 10u

static inline void
uf_eid(uint8_t eid[16], uint8_t last)
{
	memset(eid, 0, 16);
	memcpy(eid + 10, "\xff\xff\x0a\0\0", 5);
	eid[15] = last;
}

/* Own addresses end with 1, the peer's with 2; out: of a frame that the rig sends. */
static inline struct hca_ub_path
uf_path(bool out)
{
	struct hca_ub_path p = {.udp = {.dmac = {2, 0, 0, 0, 0, out ? 2 : 1},
					.smac = {2, 0, 0, 0, 0, out ? 1 : 2},
					.ip_version = 4,
					.hop_limit = 64,
					.sport = UF_PORT},
				.src_tpn = out ? UF_OWN_TPN : UF_PEER_TPN,
				.dst_tpn = out ? UF_PEER_TPN : UF_OWN_TPN};

	uf_eid(p.udp.sip, out ? 1 : 2);
	uf_eid(p.udp.dip, out ? 2 : 1);
	return p;
}

static inline struct hca_tp *
uf_tp(const struct frame_rig *r)
{
	return &r->h->ub->tp[UF_TPI];
}

static inline struct frame_rig *
uf_new(void)
{
	struct frame_rig *r = frame_rig_new();
	struct hca_ub *ub = calloc(1, sizeof(*ub));
	struct hca_ub_path path = uf_path(true);
	struct hca_tp *tp;

	assert_non_null(ub);
	ub->tp = aligned_alloc(RTE_CACHE_LINE_SIZE, UF_TPS * sizeof(*ub->tp));
	assert_non_null(ub->tp);
	memset(ub->tp, 0, UF_TPS * sizeof(*ub->tp));
	ub->tp_mask = UF_TPS - 1;
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++) {
		ub->ops.op[lane] =
			aligned_alloc(RTE_CACHE_LINE_SIZE, UF_OPS * sizeof(struct hca_ta_op));
		assert_non_null(ub->ops.op[lane]);
		memset(ub->ops.op[lane], 0, UF_OPS * sizeof(struct hca_ta_op));
	}
	ub->token = calloc(8, sizeof(*ub->token));
	assert_non_null(ub->token);
	r->h->ub = ub;
	tp = uf_tp(r);
	tp->cfg = (struct hca_tp_cfg){.state = HCA_TPS_ACTIVE,
				      .own_tpn = UF_OWN_TPN,
				      .peer_tpn = UF_PEER_TPN,
				      .generation = UF_GENERATION,
				      .mtu_log = UF_MTU_LOG,
				      .window = 128};
	uf_eid(tp->cfg.own_eid, 1);
	uf_eid(tp->cfg.peer_eid, 2);
	tp->tx.una = UF_PSN;
	assert_int_equal(hca_ub_template_fill(&path, &tp->encap.tmpl), 0);
	return r;
}

static inline void
uf_free(struct frame_rig *r)
{
	struct hca_ub *ub = r->h->ub;

	r->h->ub = NULL;
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++)
		free(ub->ops.op[lane]);
	free(ub->token);
	free(ub->tp);
	free(ub);
	frame_rig_free(r);
}

#endif
