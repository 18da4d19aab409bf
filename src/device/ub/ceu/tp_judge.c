/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests of SW2HW_TP and MODIFY_TP, judged: the fields of the mailbox are merged into the image
 * of the context, checked by the table of abi_tp.h and against each other, and the path becomes
 * headers.
 */

#include "cc/cc.h"
#include "ceu/qp.h"
#include "ub/ceu/tp.h"
#include "port/port.h"
#include "wire/ub_frame.h"

/* Bytes of the fullest frame around its payload: Ethernet, IPv6 to TVETAH, ICRC. */
#define FRAME_OVERHEAD (14u + 152u + 4u)

/* Bits of the path's words that a TP has: no P_Key, no timeout, no retries, no static rate. */
#define PATH_WORD_LIST(X) \
	X(port_pkey, HCA_MASK(26, 24)) \
	X(rnr_retry, HCA_MASK(23, 23)) \
	X(ackto, HCA_MASK(23, 16) | HCA_MASK(7, 0))

static const uint32_t rule_modes[HCA_TP_RULES] = {
#define X(name, number, modes) [HCA_TP_RULE_##name] = modes,
	HCA_TP_RULE_LIST(X)
#undef X
};

static bool
may_change(uint8_t from, uint8_t to)
{
	static const struct {
		uint8_t from, to;
	} rows[] = {
#define X(from, to) {HCA_TPS_##from, HCA_TPS_##to},
		HCA_TP_TRANSITION_LIST(X)
#undef X
	};

	for (unsigned int i = 0; i < RTE_DIM(rows); i++)
		if (rows[i].from == from && rows[i].to == to)
			return true;
	return false;
}

/* A field is taken if its group is; a new TP takes all of them. */
static void
merge(struct hca_tpc *image, const struct hca_tpc *in, uint32_t mask, bool all)
{
	for (unsigned int f = 0; f < HCA_TPC_FIELDS; f++)
		if (all || (hca_tpc_fields[f].attr & mask) != 0)
			hca_tpc_set(image, f, hca_tpc_get(in, f));
	if (all || (mask & HCA_TP_ATTR_PATH) != 0)
		image->path = in->path;
}

static bool
within_limits(const struct hca_tpc *image)
{
	for (unsigned int f = 0; f < HCA_TPC_FIELDS; f++) {
		uint32_t value = hca_tpc_get(image, f);

		if (value < hca_tpc_fields[f].min || value > hca_tpc_fields[f].max)
			return false;
	}
	return true;
}

/* No bits but those of its fields; of a TP that exists, only its words with changed fields. */
static bool
nothing_else(const struct hca_tpc *in, uint32_t mask, bool all)
{
	uint32_t known[HCA_TP_IMAGE_BYTES / sizeof(uint32_t)] = {0};
	bool judged[HCA_TP_IMAGE_BYTES / sizeof(uint32_t)] = {false};

	for (unsigned int f = 0; f < HCA_TPC_FIELDS; f++) {
		const struct hca_tpc_field_info *i = &hca_tpc_fields[f];

		known[i->at / 4] |= HCA_MASK(i->hi, i->lo);
		judged[i->at / 4] |= all || (i->attr & mask) != 0;
	}
	for (unsigned int w = 0; w < RTE_DIM(known); w++)
		if (judged[w] && (hca_get_be32((const uint8_t *)in + 4 * w) & ~known[w]) != 0)
			return false;
#define X(word, bits) \
	if ((all || mask & HCA_TP_ATTR_PATH) && (hca_be32_to_cpu(in->path.word) & ~(bits)) != 0) \
		return false;
	PATH_WORD_LIST(X)
#undef X
	return true;
}

static bool
mtu_fits(const struct hca_core *h, uint32_t bytes)
{
	return bytes <= h->cfg.max_mtu && (h->port == NULL || h->port->max_frame == 0 ||
					   bytes + FRAME_OVERHEAD <= h->port->max_frame);
}

uint32_t
hca_tp_mtu(const struct hca_core *h)
{
	uint32_t code = 1;

	while (code > 0 && !mtu_fits(h, HCA_TP_MTU_BYTES(code)))
		code--;
	return code;
}

/* Checks that need more than the limits of single fields. */
static bool
fits_together(const struct hca_core *h, const struct hca_tpc *t)
{
	uint32_t mode = hca_tpc_get(t, HCA_TPC_MODE), flags = hca_tpc_get(t, HCA_TPC_FLAGS);
	uint32_t base = hca_tpc_get(t, HCA_TPC_RTO_BASE), port = hca_tpc_get(t, HCA_TPC_SPORT);
	uint32_t ports = 1u << hca_tpc_get(t, HCA_TPC_SPORTS_LOG);

	if (!(rule_modes[hca_tpc_get(t, HCA_TPC_RULE)] & HCA_BIT(mode)))
		return false;
	if ((flags & ~HCA_TP_FLAGS_OFFERED) != 0 ||
	    (flags & HCA_TP_FLAG_SPRAY && mode == HCA_TP_MODE_DROP))
		return false;
	if (base != 0 && base < HCA_TP_RTO_LEAST)
		return false;
	if (port + ports - 1 > UINT16_MAX)
		return false;
	return mtu_fits(h, HCA_TP_MTU_BYTES(hca_tpc_get(t, HCA_TPC_MTU)));
}

/* Headers of the path; encap fills in the fields that differ from packet to packet. */
static bool
resolve(const struct hca_core *h, struct hca_tp_plan *plan)
{
	const struct hca_qpc_path *words = &plan->image.path;

	struct hca_ub_path p = {.src_tpn = hca_tpc_get(&plan->image, HCA_TPC_TPN),
				.dst_tpn = hca_tpc_get(&plan->image, HCA_TPC_PEER)};

	if (HCA_QPC_PORT(hca_be32_to_cpu(words->port_pkey)) != 1 ||
	    !hca_path_fill(h, words, &p.udp))
		return false;
	p.udp.tclass = hca_cc_tclass(h->cc_room->ops[h->cc_room->number], p.udp.tclass);
	p.udp.sport = (uint16_t)hca_tpc_get(&plan->image, HCA_TPC_SPORT);
	plan->path = p.udp;
	return hca_ub_template_fill(&p, &plan->tmpl) == 0;
}

/*
 * Encap may be copying the headers of a TP that lives: only the destination's MAC address, in their
 * first eight bytes, may change.
 */
static bool
same_but_mac(const struct hca_udp_template *a, const struct hca_udp_template *b)
{
	return memcmp(a->bytes + 6, b->bytes + 6, a->transport - HCA_UDP_LEN - 6) == 0 &&
	       a->transport == b->transport;
}

static int
judge_new(const struct hca_core *h, struct hca_tp_plan *plan)
{
	uint32_t state = hca_tpc_get(&plan->image, HCA_TPC_STATE);
	uint32_t tpn = hca_tpc_get(&plan->image, HCA_TPC_TPN);

	if (state != HCA_TPS_PASSIVE && state != HCA_TPS_ACTIVE)
		return HCA_STAT_BAD_PARAM;
	if (!resolve(h, plan))
		return HCA_STAT_BAD_PARAM;
	return hca_tpg_check(h, hca_tpc_get(&plan->image, HCA_TPC_GROUP), tpn & h->ub->tp_mask,
			     plan->path.dip);
}

static int
judge_change(const struct hca_core *h, const struct hca_tp *tp, const struct hca_tpc *was,
	     struct hca_tp_plan *plan)
{
	const uint32_t others = ~(uint32_t)HCA_TP_FLAG_SPRAY;
	uint32_t before = hca_tpc_get(was, HCA_TPC_FLAGS);

	if (((hca_tpc_get(&plan->image, HCA_TPC_FLAGS) ^ before) & others) != 0)
		return HCA_STAT_BAD_PARAM;
	if (plan->mask & HCA_TP_ATTR_PATH &&
	    (!resolve(h, plan) || !same_but_mac(&tp->encap.tmpl, &plan->tmpl)))
		return HCA_STAT_BAD_PARAM;
	if (plan->mask & HCA_TP_ATTR_STATE &&
	    !may_change(hca_tp_state(tp), hca_tpc_get(&plan->image, HCA_TPC_STATE)))
		return HCA_STAT_BAD_RES_STATE;
	if (plan->mask & HCA_TP_ATTR_TPG)
		return hca_tpg_check(h, hca_tpc_get(&plan->image, HCA_TPC_GROUP),
				     hca_tp_index(h, tp), tp->cfg.peer_eid);
	return HCA_STAT_OK;
}

int
hca_tpc_judge(const struct hca_core *h, const struct hca_tpc *in, const struct hca_tp *tp,
	      struct hca_tp_plan *plan)
{
	struct hca_tpc was;

	memset(plan, 0, sizeof(*plan));
	plan->mask = hca_be32_to_cpu(in->mask);
	if (tp == NULL ? plan->mask != 0 : plan->mask == 0 || (plan->mask & ~HCA_TP_ATTRS_ALL) != 0)
		return HCA_STAT_BAD_PARAM;
	if (tp != NULL)
		memcpy(&plan->image, hca_tp_work(tp)->image, HCA_TP_IMAGE_BYTES);
	was = plan->image;
	merge(&plan->image, in, plan->mask, tp == NULL);
	if (!nothing_else(in, plan->mask, tp == NULL) || !within_limits(&plan->image) ||
	    !fits_together(h, &plan->image))
		return HCA_STAT_BAD_PARAM;
	return tp == NULL ? judge_new(h, plan) : judge_change(h, tp, &was, plan);
}
