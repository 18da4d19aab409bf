/* SPDX-License-Identifier: BSD-3-Clause */

/* SW2HW_TP, MODIFY_TP, QUERY_TP, HW2SW_TP. */

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "cc/cc.h"
#include "ceu/qp.h"
#include "ub/ceu/tp.h"
#include "ub/ub_stage.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/store.h"
#include "engine/impl.h"
#include "queues/eq.h"

#define GET(f) hca_tpc_get(image, HCA_TPC_##f)
/* A member that stages may read while the TP lives. */
#define SET_LIVE(member, value) __atomic_store_n(&(member), (value), __ATOMIC_RELAXED)

/* The template's first eight bytes: a MAC address changes in one store. */
_Static_assert(offsetof(struct hca_tp, encap.tmpl.bytes) % sizeof(uint64_t) == 0, "aligned");

static uint32_t
object_of(struct hca_core *h, uint32_t tpi)
{
	return hca_pipe_of(h)->object[HCA_OBJECT_TP].first + tpi;
}

static void
apply(struct hca_tp_cfg *c, const struct hca_tpc *image, uint32_t mask)
{
	if (mask & HCA_TP_ATTR_RULE) {
		SET_LIVE(c->rule, (uint8_t)GET(RULE));
		SET_LIVE(c->reorder, GET(REORDER) * 1000);
	}
	if (mask & HCA_TP_ATTR_ACKS) {
		SET_LIVE(c->ack_every, (uint8_t)GET(ACK_EVERY));
		SET_LIVE(c->ooo_every, (uint8_t)GET(OOO_EVERY));
	}
	if (mask & HCA_TP_ATTR_RTO) {
		SET_LIVE(c->rto_base, GET(RTO_BASE));
		SET_LIVE(c->rto_exponent, (uint8_t)GET(RTO_EXPONENT));
		SET_LIVE(c->retries, (uint8_t)GET(RETRIES));
	}
	if (mask & HCA_TP_ATTR_PORTS) {
		SET_LIVE(c->flags, (uint8_t)GET(FLAGS));
		SET_LIVE(c->ports_log, (uint8_t)GET(SPORTS_LOG));
		SET_LIVE(c->port, (uint16_t)GET(SPORT));
	}
}

/* The fields that never change while the TP lives. */
static void
fill(struct hca_tp_cfg *c, const struct hca_tp_plan *plan)
{
	const struct hca_tpc *image = &plan->image;
	const struct hca_udp_path *p = &plan->path;

	c->peer_tpn = GET(PEER);
	c->mode = (uint8_t)GET(MODE);
	c->mtu_log = (uint8_t)rte_bsf32(HCA_TP_MTU_BYTES(GET(MTU)));
	c->sack_code = (uint8_t)GET(SACK);
	c->congestion = (uint8_t)GET(CC);
	c->window = (uint16_t)HCA_TP_WINDOW_PACKETS(GET(WINDOW));
	c->requests = (uint16_t)GET(REQUESTS);
	c->vlan = p->vlan ? HCA_VLAN_VID(p->vlan_tci) : 0;
	memcpy(c->own_eid, p->sip, sizeof(c->own_eid));
	memcpy(c->peer_eid, p->dip, sizeof(c->peer_eid));
	apply(c, image, HCA_TP_ATTRS_ALL);
}

/* Image and block, zeroed; NULL: no memory. */
static struct hca_tp_work *
new_work(struct hca_core *h, const struct hca_tp_cfg *c)
{
	size_t bytes = sizeof(struct hca_tp_work) + hca_tp_block_bytes(c->window, c->requests);

	return rte_zmalloc_socket("hca_tp", bytes, RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
}

static uint64_t
work_bytes(const struct hca_tp_cfg *c)
{
	return sizeof(struct hca_tp_work) + hca_tp_block_bytes(c->window, c->requests);
}

static void
account(struct hca_core *h, uint64_t add)
{
	__atomic_store_n(&h->ub->tp_bytes, h->ub->tp_bytes + add, __ATOMIC_RELAXED);
}

/* Everything, then the number, then the state: packets for the index may come at any time. */
static void
publish(struct hca_core *h, struct hca_tp *tp, const struct hca_tp_plan *plan, struct hca_tp_cfg *c,
	struct hca_tp_work *w)
{
	const struct hca_tpc *image = &plan->image;

	memcpy(w->image, image, sizeof(w->image));
	c->generation = tp->cfg.generation + 1;
	hca_store_words(&tp->cfg, c, sizeof(*c));
	tp->encap.tx_packets = tp->encap.tx_bytes = 0;
	tp->encap.tmpl = plan->tmpl;
	hca_tp_begin(tp, w + 1, GET(PSN), GET(EPSN));
	hca_cc_begin(hca_pipe_of(h), object_of(h, hca_tp_index(h, tp)), h->cc_room->number);
	hca_loopback_learn(hca_pipe_of(h), plan->path.dmac);
	account(h, work_bytes(c));
	__atomic_store_n(&tp->cfg.own_tpn, GET(TPN), __ATOMIC_RELEASE);
	__atomic_store_n(&tp->cfg.state, GET(STATE), __ATOMIC_RELEASE);
	hca_tpg_move(h, hca_tp_index(h, tp), GET(GROUP));
}

int
hca_cmd_sw2hw_tp(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_tpc *in = (const void *)c->in;
	uint32_t tpn = c->in_modifier, tpi = tpn & h->ub->tp_mask;
	struct hca_tp_cfg n = {.state = HCA_TPS_RESET};
	struct hca_tp *tp = &h->ub->tp[tpi];
	struct hca_tp_plan plan;
	struct hca_tp_work *w;
	int rc;

	if (tpn > HCA_TPN_MASK || tpi == HCA_TP_UNRELIABLE)
		return HCA_STAT_BAD_INDEX;
	if (tp->cfg.own_tpn != 0)
		return HCA_STAT_BAD_RES_STATE;
	if (hca_tpc_get(in, HCA_TPC_TPN) != tpn)
		return HCA_STAT_BAD_PARAM;
	rc = hca_tpc_judge(h, in, NULL, &plan);
	if (rc != HCA_STAT_OK)
		return rc;
	fill(&n, &plan);
	w = new_work(h, &n);
	if (w == NULL)
		return HCA_STAT_EXCEED_LIM;
	publish(h, tp, &plan, &n, w);
	return HCA_STAT_OK;
}

int
hca_cmd_modify_tp(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_tp *tp = hca_tp_find(h, c->in_modifier);
	struct hca_tp_plan plan;
	uint32_t from, to;
	int rc;

	if (tp == NULL)
		return HCA_STAT_BAD_INDEX;
	from = hca_tp_state(tp);
	rc = hca_tpc_judge(h, (const void *)c->in, tp, &plan);
	if (rc != HCA_STAT_OK)
		return rc;
	to = hca_tpc_get(&plan.image, HCA_TPC_STATE);
	/* a stage may have changed it meanwhile */
	if (plan.mask & HCA_TP_ATTR_STATE && !hca_tp_state_cas(tp, from, to))
		return HCA_STAT_BAD_RES_STATE;
	memcpy(hca_tp_work(tp)->image, &plan.image, HCA_TP_IMAGE_BYTES);
	apply(&tp->cfg, &plan.image, plan.mask);
	if (plan.mask & HCA_TP_ATTR_PATH) {
		hca_template_retarget(&tp->encap.tmpl, plan.path.dmac);
		hca_loopback_learn(hca_pipe_of(h), plan.path.dmac);
	}
	if (plan.mask & HCA_TP_ATTR_TPG)
		hca_tpg_move(h, hca_tp_index(h, tp), hca_tpc_get(&plan.image, HCA_TPC_GROUP));
	hca_tp_tell(hca_pipe_of(h), HCA_STAGE_CEU, hca_tp_index(h, tp));
	return HCA_STAT_OK;
}

/* Words of stages, read while these run. */
static void
live_words(const struct hca_tp *tp, struct hca_tpc *out)
{
	const struct hca_tp_tx *tx = &tp->tx;
	const struct hca_tp_rx *rx = &tp->rx;

#define READ(word) hca_cpu_to_be32((uint32_t)__atomic_load_n(&(word), __ATOMIC_RELAXED))
	out->una = READ(tx->una);
	out->next = READ(tx->next);
	out->live_epsn = READ(rx->epsn);
	out->max_rcv = READ(rx->max_rcv);
	out->srtt = READ(tx->srtt);
	out->timeouts = READ(tx->timeouts);
#define X(name, counter) out->counter = READ(tx->resent[HCA_TP_AGAIN_##name]);
	HCA_TP_AGAIN_LIST(X)
#undef X
	out->duplicates = READ(rx->duplicates);
	out->out_of_order = hca_cpu_to_be32(__atomic_load_n(&rx->out_of_order, __ATOMIC_RELAXED) +
					    __atomic_load_n(&rx->accepted_ooo, __ATOMIC_RELAXED));
	out->open_out = READ(tp->tai.open_out);
	out->open_in = READ(tp->tat.open_in);
#undef READ
}

int
hca_cmd_query_tp(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_tp *tp = hca_tp_find(h, c->in_modifier);
	struct hca_tpc *out = (void *)c->out;

	if (tp == NULL)
		return HCA_STAT_BAD_INDEX;
	memcpy(out, hca_tp_work(tp)->image, HCA_TP_IMAGE_BYTES);
	out->mask = 0;
	hca_tpc_set(out, HCA_TPC_STATE, hca_tp_state(tp));
	live_words(tp, out);
	return HCA_STAT_OK;
}

int
hca_cmd_hw2sw_tp(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_tp *tp;
	uint32_t obj;

	if (c->step == 0) {
		tp = hca_tp_find(h, c->in_modifier);
		if (tp == NULL)
			return HCA_STAT_BAD_INDEX;
		obj = object_of(h, hca_tp_index(h, tp));
		hca_teardown_start(&c->teardown, obj, obj, HCA_DOMAIN_ALL);
		c->step = 1;
	}
	return hca_teardown_step(h, &c->teardown) ? HCA_STAT_OK : HCA_CMD_AGAIN;
}

void
hca_tp_free(struct hca_core *h, uint32_t tpi)
{
	struct hca_tp *tp = &h->ub->tp[tpi];
	struct hca_tp_work *w = hca_tp_work(tp);
	struct hca_tp_cfg gone = {.state = HCA_TPS_RESET, .generation = tp->cfg.generation};

	hca_eq_forget_tp(h, tpi);
	account(h, -work_bytes(&tp->cfg));
	hca_store_words(&tp->cfg, &gone, sizeof(gone));
	hca_cc_set(h, object_of(h, tpi), 0);
	rte_free(w);
}

void
hca_tp_control(struct hca_core *h, uint32_t tpi)
{
	struct hca_tp *tp = &h->ub->tp[tpi];
	const struct hca_cc_ops *cc = h->cc_room->ops[h->cc_room->number];

	hca_udp_template_set_ecn(&tp->encap.tmpl, hca_cc_tclass(cc, 0));
	hca_tp_tell(hca_pipe_of(h), HCA_STAGE_CEU, tpi);
}

void
hca_tp_follow(struct hca_core *h, uint32_t tpi, const uint8_t gid[16], uint16_t vlan,
	      const uint8_t mac[6])
{
	struct hca_tp *tp = &h->ub->tp[tpi];
	struct hca_tpc *image;

	if (tp->cfg.own_tpn == 0 || tp->cfg.vlan != vlan ||
	    memcmp(tp->cfg.peer_eid, gid, sizeof(tp->cfg.peer_eid)) != 0)
		return;
	image = (void *)hca_tp_work(tp)->image;
	hca_path_set_dmac(&image->path, mac);
	hca_template_retarget(&tp->encap.tmpl, mac);
}
