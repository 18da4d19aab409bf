/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Event queues. To raise an event, a stage ORs the type into the object's pending word and, if that
 * was 0, adds the object to its own list. An object is on at most one list, so one link per object
 * suffices for all stages, and lists cannot be full. Only the CEU writes EQEs: it takes the lists,
 * moves the bits to its own `unsent` words and writes; bits remain if an EQ has no room. An object
 * with unsent events is on the parked ring exactly once.
 */

#include <string.h>

#include <rte_bitops.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "abi_cmd.h"
#include "abi_cqe.h"
#include "bar/bar.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/qp.h"
#include "queues/cq.h"
#include "queues/eq.h"
#include "queues/eq_impl.h"
#include "queues/srq.h"

#define EQ_MAX_LOG 22u
#define PARKED HCA_BIT(31)
#define SCAN_BUDGET 256u
#define LATER_UNSET UINT64_MAX

static uint32_t *
link_of(struct hca_eqs *q, uint32_t token)
{
	return &q->link[TOKEN_KIND(token)][TOKEN_INDEX(token)];
}

/* ---- raising: any stage ---- */

/* Adds an object to the stage's list, which the CEU may empty at the same time. */
static void
raised_push(struct hca_eqs *q, enum hca_stage_id from, uint32_t token)
{
	uint32_t *last = &q->raised[from].last, *link = link_of(q, token);

	*link = __atomic_load_n(last, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(last, link, token, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	__atomic_store_n(&q->kick, 1, __ATOMIC_RELEASE);
}

static void
raise_event(struct hca_core *h, enum hca_stage_id from, enum object_kind kind, uint32_t index,
	    uint8_t type)
{
	struct hca_eqs *q = h->eqs;
	uint32_t old;

	old = __atomic_fetch_or(&q->pending[kind][index], HCA_BIT(type), __ATOMIC_ACQ_REL);
	if (type != HCA_EQ_LATER) {
		HCA_COUNT_AT(h, from, HCA_CTR_events_raised);
		if (old & HCA_BIT(type))
			HCA_COUNT_AT(h, from, HCA_CTR_events_coalesced);
	}
	if (old != 0)
		return;
	raised_push(q, from, TOKEN(kind, index));
	hca_wake_stage(h, from, HCA_STAGE_CEU);
}

void
hca_eq_raise_comp(struct hca_core *h, enum hca_stage_id from, uint32_t cqi)
{
	raise_event(h, from, OBJ_CQ, cqi, HCA_EVENT_COMP);
}

void
hca_eq_raise_cq(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t cqi)
{
	raise_event(h, from, OBJ_CQ, cqi, type);
}

void
hca_eq_raise_qp(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t qpi)
{
	raise_event(h, from, OBJ_QP, qpi, type);
}

void
hca_eq_raise_srq(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t srqi)
{
	raise_event(h, from, OBJ_SRQ, srqi, type);
}

void
hca_eq_raise_tp(struct hca_core *h, enum hca_stage_id from, uint32_t tpi, uint32_t tpn,
		uint8_t subtype)
{
	uint32_t told = HCA_FIELD(31, 24, subtype) | HCA_FIELD(23, 0, tpn);

	__atomic_store_n(&h->eqs->tp_told[tpi], told, __ATOMIC_RELEASE);
	raise_event(h, from, OBJ_TP, tpi, HCA_EVENT_TP_ERROR);
}

void
hca_eq_raise_port(struct hca_core *h, enum hca_stage_id from, uint8_t subtype)
{
	__atomic_store_n(&h->eqs->port_subtype, subtype, __ATOMIC_RELEASE);
	raise_event(h, from, OBJ_DEVICE, 0, HCA_EVENT_PORT_CHANGE);
}

/* ---- writing: CEU ---- */

/* Reads the consumer index in BAR0; accepts it only between the last index and the producer. */
static bool
eq_refresh(struct hca_core *h, uint32_t eqn)
{
	struct hca_eq *e = &h->eqs->eq[eqn];
	uint32_t ci = hca_bar_load(h->bar0, HCA_BAR0_EQ_CI(eqn));

	if (ci == e->ci || e->prod - ci > e->prod - e->ci)
		return false;
	e->ci = ci;
	return true;
}

/* Events wait, and EQ_OVERFLOW tells software so: once, until the queue has been empty. */
static bool
eq_full(struct hca_core *h, uint32_t eqn)
{
	struct hca_eq *e = &h->eqs->eq[eqn];

	if (!e->overflowed)
		raise_event(h, HCA_STAGE_CEU, OBJ_DEVICE, 1 + eqn, HCA_EVENT_EQ_OVERFLOW);
	e->overflowed = true;
	return false;
}

static bool
eq_write(struct hca_core *h, uint32_t eqn, const struct hca_eqe *ev)
{
	struct hca_eq *e = &h->eqs->eq[eqn];
	uint32_t size = 1u << e->log_size;
	struct hca_eqe *slot;

	if (e->prod - e->ci >= size)
		eq_refresh(h, eqn);
	if (e->prod - e->ci >= size)
		return eq_full(h, eqn);
	if (e->prod == e->ci)
		e->overflowed = false;
	slot = hca_qbuf_at(&e->q, (e->prod & (size - 1)) * HCA_EQE_SIZE);
	memcpy(slot, ev, offsetof(struct hca_eqe, owner));
	__atomic_store_n(&slot->owner, HCA_OWNER_SW, __ATOMIC_RELEASE);
	e->prod++;
	h->eqs->written |= HCA_BIT(eqn);
	return true;
}

static uint32_t
object_number(const struct hca_core *h, enum object_kind kind, uint32_t index)
{
	switch (kind) {
	case OBJ_CQ:
		return h->cq[index].cqn;
	case OBJ_QP:
		return h->qp[index].cfg.local_qpn;
	case OBJ_SRQ:
		return h->srq[index].srqn;
	case OBJ_TP:
		return HCA_BITS(__atomic_load_n(&h->eqs->tp_told[index], __ATOMIC_ACQUIRE), 23, 0);
	default:
		return index == 0 ? 1 : index - 1;
	}
}

/* True: written, or the type is not mapped to any EQ. */
static bool
write_async(struct hca_core *h, enum object_kind kind, uint32_t index, uint8_t type)
{
	struct hca_eqs *q = h->eqs;
	uint32_t eqn = q->type_eqn[type];
	struct hca_eqe ev = {.type = type};

	if (eqn == EQN_NONE) {
		HCA_COUNT(h, CEU, events_unmapped);
		return true;
	}
	ev.object = hca_cpu_to_le32(object_number(h, kind, index));
	if (kind == OBJ_CQ)
		ev.subtype = HCA_CQ_ERR_OVERRUN;
	if (kind == OBJ_TP)
		ev.subtype =
			(uint8_t)HCA_BITS(__atomic_load_n(&q->tp_told[index], __ATOMIC_ACQUIRE), 31,
					  24);
	if (type == HCA_EVENT_PORT_CHANGE)
		ev.subtype = __atomic_load_n(&q->port_subtype, __ATOMIC_ACQUIRE);
	if (!eq_write(h, eqn, &ev))
		return false;
	HCA_COUNT(h, CEU, async_events);
	return true;
}

static bool
write_comp(struct hca_core *h, uint32_t cqi)
{
	struct hca_eqs *q = h->eqs;
	struct comp_mark *m = &q->comp[cqi];
	uint32_t eqn = h->cq[cqi].comp_eqn;
	struct hca_eqe ev = {.type = HCA_EVENT_COMP};

	if (hca_cq_state(&h->cq[cqi]) == HCA_CQ_FREE || eqn >= EQ_MAX || !q->eq[eqn].live) {
		HCA_COUNT(h, CEU, events_dead);
		return true;
	}
	if (m->valid) {
		eq_refresh(h, eqn);
		if ((int32_t)(q->eq[eqn].ci - m->index) <= 0)
			return false;
	}
	ev.object = hca_cpu_to_le32(h->cq[cqi].cqn);
	m->index = q->eq[eqn].prod;
	m->valid = eq_write(h, eqn, &ev);
	if (m->valid)
		HCA_COUNT(h, CEU, comp_events);
	return m->valid;
}

/* Write the object's events; returns the number of EQEs written. */
static unsigned int
deliver(struct hca_core *h, uint32_t token)
{
	enum object_kind kind = TOKEN_KIND(token);
	uint32_t index = TOKEN_INDEX(token), *unsent = &h->eqs->unsent[kind][index];
	unsigned int n = 0;

	for (uint32_t types = *unsent & ~PARKED; types != 0; types &= types - 1) {
		uint8_t type = (uint8_t)rte_bsf32(types);
		bool done = kind == OBJ_CQ && type == HCA_EVENT_COMP
				    ? write_comp(h, index)
				    : write_async(h, kind, index, type);

		if (!done)
			continue;
		*unsent &= ~HCA_BIT(type);
		n++;
	}
	return n;
}

static void
park(struct hca_eqs *q, uint32_t token)
{
	q->unsent[TOKEN_KIND(token)][TOKEN_INDEX(token)] |= PARKED;
	rte_ring_sp_enqueue_elem(q->parked, &token, sizeof(token));
	q->parked_count++;
}

static uint64_t
later_end(const struct hca_core *h, uint32_t cqi, uint64_t now)
{
	return now + RTE_MAX((uint64_t)HCA_CQ_MOD_PERIOD(h->cq[cqi].moderation), 1u) * 1000;
}

/* Starts a moderation period. now 0: the next later_poll() sets its end. */
static void
later_add(struct hca_core *h, uint32_t cqi, uint64_t now)
{
	struct hca_eqs *q = h->eqs;
	uint64_t due = now != 0 ? later_end(h, cqi, now) : 0;

	if (q->later_at[cqi] == 0)
		q->later[q->later_n++] = cqi;
	q->later_at[cqi] = now != 0 ? due : LATER_UNSET;
	if (q->later_n == 1 || due < q->later_next)
		q->later_next = due;
}

static void
later_remove(struct hca_eqs *q, uint32_t cqi)
{
	if (q->later_at[cqi] == 0)
		return;
	q->later_at[cqi] = 0;
	for (uint32_t i = 0; i < q->later_n; i++)
		if (q->later[i] == cqi)
			q->later[i] = q->later[--q->later_n];
}

/* Ends moderation periods that are over. */
static void
later_poll(struct hca_core *h, uint64_t now)
{
	struct hca_eqs *q = h->eqs;
	uint64_t next = UINT64_MAX;

	if (q->later_n == 0 || now < q->later_next)
		return;
	for (uint32_t i = q->later_n; i-- > 0;) {
		uint32_t cqi = q->later[i];

		if (q->later_at[cqi] == LATER_UNSET)
			q->later_at[cqi] = later_end(h, cqi, now);
		if (now < q->later_at[cqi]) {
			next = RTE_MIN(next, q->later_at[cqi]);
			continue;
		}
		q->later[i] = q->later[--q->later_n];
		q->later_at[cqi] = 0;
		hca_cq_fire_late(h, cqi);
	}
	q->later_next = next;
}

/* Empties a stage's list in the order of raising: returns its first object, links lead on. */
static uint32_t
raised_take(struct hca_eqs *q, enum hca_stage_id from)
{
	uint32_t token, first = TOKEN_NONE;

	token = __atomic_exchange_n(&q->raised[from].last, TOKEN_NONE, __ATOMIC_ACQUIRE);
	while (token != TOKEN_NONE) {
		uint32_t *link = link_of(q, token), before = *link;

		*link = first;
		first = token;
		token = before;
	}
	return first;
}

/* Moves the bits of an object's pending word to its unsent word. */
static void
collect_one(struct hca_core *h, uint32_t token, uint64_t now)
{
	struct hca_eqs *q = h->eqs;
	enum object_kind kind = TOKEN_KIND(token);
	uint32_t i = TOKEN_INDEX(token), *unsent = &q->unsent[kind][i];
	uint32_t types = __atomic_exchange_n(&q->pending[kind][i], 0, __ATOMIC_ACQ_REL);

	if (kind == OBJ_CQ && (types & HCA_BIT(HCA_EVENT_CQ_ERROR)))
		rte_ring_sp_enqueue_elem(q->failed_cq, &i, sizeof(i));
	if (unlikely(kind == OBJ_CQ && types & HCA_BIT(HCA_EQ_LATER)))
		later_add(h, i, now);
	types &= ~HCA_BIT(HCA_EQ_LATER);
	if (types == 0)
		return;
	HCA_COUNT_N(h, CEU, events_coalesced, __builtin_popcount(types & *unsent));
	*unsent |= types;
	if (!(*unsent & PARKED))
		park(q, token);
}

static void
collect(struct hca_core *h, uint64_t now)
{
	struct hca_eqs *q = h->eqs;
	uint32_t token, next;

	if (__atomic_exchange_n(&q->kick, 0, __ATOMIC_ACQ_REL) == 0)
		return;
	for (unsigned int s = 0; s < HCA_STAGE_N; s++) {
		for (token = raised_take(q, s); token != TOKEN_NONE; token = next) {
			next = *link_of(q, token); /* collect_one() frees the link for reuse */
			collect_one(h, token, now);
		}
	}
	q->scan_left = q->parked_count;
}

static bool
any_consumed(struct hca_core *h)
{
	bool moved = false;

	for (uint32_t eqn = 0; eqn < EQ_MAX; eqn++)
		if (h->eqs->eq[eqn].live)
			moved |= eq_refresh(h, eqn);
	return moved;
}

bool
hca_eqs_due(const struct hca_core *h, uint64_t now)
{
	const struct hca_eqs *q = h->eqs;

	return (q->later_n != 0 && now >= q->later_next) || q->parked_count != 0 ||
	       __atomic_load_n(&q->kick, __ATOMIC_RELAXED) != 0;
}

uint64_t
hca_eqs_deadline(const struct hca_core *h, uint64_t now)
{
	const struct hca_eqs *q = h->eqs;

	if (q->scan_left != 0 || __atomic_load_n(&q->kick, __ATOMIC_RELAXED) != 0)
		return now;
	if (q->parked_count != 0)
		return HCA_DEADLINE_ROOM;
	return q->later_n != 0 ? q->later_next : UINT64_MAX;
}

unsigned int
hca_eqs_poll(struct hca_core *h, uint64_t now)
{
	struct hca_eqs *q = h->eqs;
	unsigned int n = 0;
	uint32_t token;

	later_poll(h, now);
	collect(h, now);
	if (q->scan_left == 0 && q->parked_count != 0 && any_consumed(h))
		q->scan_left = q->parked_count;
	for (unsigned int i = 0; i < SCAN_BUDGET && q->scan_left != 0; i++) {
		uint32_t *unsent;

		q->scan_left--;
		if (rte_ring_sc_dequeue_elem(q->parked, &token, sizeof(token)) != 0)
			break;
		q->parked_count--;
		unsent = &q->unsent[TOKEN_KIND(token)][TOKEN_INDEX(token)];
		*unsent &= ~PARKED;
		n += deliver(h, token);
		if (*unsent != 0) {
			HCA_COUNT(h, CEU, eq_parked);
			park(q, token);
		}
	}
	return n;
}

void
hca_eqs_notify(struct hca_core *h)
{
	struct hca_eqs *q = h->eqs;
	uint32_t written = q->written;

	if (written == 0)
		return;
	q->written = 0;
	h->wake[h->stage_worker[HCA_STAGE_CEU]].events = true;
	if (q->notify != NULL)
		q->notify(q->notify_arg, written);
}

void
hca_set_notify(struct hca *h, hca_notify_fn fn, void *arg)
{
	struct hca_eqs *q = hca_core(h)->eqs;

	q->notify_arg = arg;
	q->notify = fn;
}

bool
hca_eq_write_cmd(struct hca_core *h, uint16_t token, uint8_t status, uint64_t out_param)
{
	uint32_t eqn = h->eqs->type_eqn[HCA_EVENT_CMD];
	struct hca_eqe ev = {.type = HCA_EVENT_CMD, .status = status};

	if (eqn == EQN_NONE) {
		HCA_COUNT(h, CEU, events_raised);
		HCA_COUNT(h, CEU, events_unmapped);
		return true;
	}
	ev.cmd.token = hca_cpu_to_le16(token);
	ev.out_param = hca_cpu_to_le64(out_param);
	return eq_write(h, eqn, &ev);
}

bool
hca_eq_take_failed_cq(struct hca_core *h, uint32_t *cqi)
{
	return rte_ring_sc_dequeue_elem(h->eqs->failed_cq, cqi, sizeof(*cqi)) == 0;
}

/* Discards events of an object that is being destroyed. */
static void
drop_unsent(struct hca_core *h, enum object_kind kind, uint32_t index)
{
	uint32_t *unsent = &h->eqs->unsent[kind][index];

	HCA_COUNT_N(h, CEU, events_dead, __builtin_popcount(*unsent & ~PARKED));
	*unsent &= PARKED;
}

static void
forget(struct hca_core *h, enum object_kind kind, uint32_t index)
{
	collect(h, 0);
	drop_unsent(h, kind, index);
}

void
hca_eq_forget_cq(struct hca_core *h, uint32_t cqi)
{
	hca_eq_forget_later(h, cqi);
	drop_unsent(h, OBJ_CQ, cqi);
	h->eqs->comp[cqi].valid = 0;
}

void
hca_eq_forget_later(struct hca_core *h, uint32_t cqi)
{
	collect(h, 0);
	later_remove(h->eqs, cqi);
}

void
hca_eq_forget_qp(struct hca_core *h, uint32_t qpi)
{
	forget(h, OBJ_QP, qpi);
}

void
hca_eq_forget_srq(struct hca_core *h, uint32_t srqi)
{
	forget(h, OBJ_SRQ, srqi);
}

void
hca_eq_forget_tp(struct hca_core *h, uint32_t tpi)
{
	forget(h, OBJ_TP, tpi);
}

/* ---- commands ---- */

bool
hca_eq_is_live(const struct hca_core *h, uint32_t eqn)
{
	return eqn < EQ_MAX && h->eqs->eq[eqn].live;
}

static void
eq_mirror(struct hca_core *h, uint32_t eqn)
{
	const struct hca_eq *e = &h->eqs->eq[eqn];
	struct hca_eqc c = {0};

	if (e->live) {
		c.flags = hca_cpu_to_be32(HCA_EQ_OWNER_HW | HCA_EQ_FLAG_TR);
		hca_eqc_set_start(&c, e->start);
		c.logsize = hca_cpu_to_be32(HCA_EQC_MAKE_LOGSIZE(e->log_size));
		c.intr = hca_cpu_to_be32(e->intr);
		c.pd = hca_cpu_to_be32(e->pd);
		c.lkey = hca_cpu_to_be32(e->key);
	}
	hca_icm_write(h, HCA_ICM_EQC, eqn, &c);
}

int
hca_eq_create(struct hca_core *h, uint32_t eqn, const struct hca_eqc *c)
{
	struct hca_eq e = {
		.live = true,
		.log_size = HCA_EQC_LOGSIZE(hca_be32_to_cpu(c->logsize)),
		.key = hca_be32_to_cpu(c->lkey),
		.pd = hca_be32_to_cpu(c->pd),
		.intr = HCA_EQC_INTR(hca_be32_to_cpu(c->intr)),
		.start = hca_eqc_start(c),
	};
	int rc;

	if (eqn >= h->ctxmgt->count[HCA_ICM_EQC])
		return HCA_STAT_BAD_INDEX;
	if (h->eqs->eq[eqn].live || !hca_icm_mapped(h, HCA_ICM_EQC, eqn))
		return HCA_STAT_BAD_RES_STATE;
	/* only the driver, domain 0, has EQs */
	if (e.log_size > EQ_MAX_LOG || HCA_PD_DOMAIN(e.pd) != 0)
		return HCA_STAT_BAD_PARAM;
	rc = hca_qbuf_resolve(h, &e.q, e.key, e.pd, 0, e.start, HCA_EQE_SIZE << e.log_size);
	if (rc != HCA_STAT_OK)
		return rc;
	hca_bar_store(h->bar0, HCA_BAR0_EQ_CI(eqn), 0);
	h->eqs->eq[eqn] = e;
	eq_mirror(h, eqn);
	return HCA_STAT_OK;
}

static void
eq_drop(struct hca_core *h, uint32_t eqn)
{
	struct hca_eq *e = &h->eqs->eq[eqn];

	hca_eq_map(h, eqn, ~UINT64_C(0), true);
	hca_qbuf_release(h, &e->q, e->key);
	memset(e, 0, sizeof(*e));
	eq_mirror(h, eqn);
}

int
hca_eq_destroy(struct hca_core *h, uint32_t eqn)
{
	if (eqn >= h->ctxmgt->count[HCA_ICM_EQC])
		return HCA_STAT_BAD_INDEX;
	if (!h->eqs->eq[eqn].live)
		return HCA_STAT_BAD_RES_STATE;
	for (uint32_t i = 0; i <= h->cq_mask; i++)
		if (hca_cq_state(&h->cq[i]) != HCA_CQ_FREE && h->cq[i].comp_eqn == eqn)
			return HCA_STAT_RESOURCE_BUSY;
	eq_drop(h, eqn);
	return HCA_STAT_OK;
}

int
hca_eq_map(struct hca_core *h, uint32_t eqn, uint64_t mask, bool unmap)
{
	struct hca_eqs *q = h->eqs;

	if (eqn >= EQ_MAX || eqn >= h->ctxmgt->count[HCA_ICM_EQC])
		return HCA_STAT_BAD_INDEX;
	if (!q->eq[eqn].live)
		return HCA_STAT_BAD_RES_STATE;
	for (unsigned int t = 0; t < EVENT_TYPES; t++) {
		if (!(mask & HCA_EVENT_MASK(t) & HCA_EVENT_MASK_ALL))
			continue;
		if (!unmap)
			q->type_eqn[t] = (uint8_t)eqn;
		else if (q->type_eqn[t] == eqn)
			q->type_eqn[t] = EQN_NONE;
	}
	/* software takes the port as up until it reads PORT_CHANGE */
	if (!unmap && (mask & HCA_EVENT_MASK(HCA_EVENT_PORT_CHANGE)) != 0 &&
	    __atomic_load_n(&q->port_subtype, __ATOMIC_ACQUIRE) == HCA_PORT_DOWN)
		raise_event(h, HCA_STAGE_CEU, OBJ_DEVICE, 0, HCA_EVENT_PORT_CHANGE);
	return HCA_STAT_OK;
}

void
hca_eq_destroy_all(struct hca_core *h)
{
	struct hca_eqs *q = h->eqs;

	collect(h, 0);
	for (uint32_t eqn = 0; eqn < EQ_MAX; eqn++)
		if (q->eq[eqn].live)
			eq_drop(h, eqn);
	for (unsigned int k = 0; k < OBJ_KINDS; k++)
		for (uint32_t i = 0; i < q->count[k]; i++)
			drop_unsent(h, k, i);
	memset(q->comp, 0, q->count[OBJ_CQ] * sizeof(*q->comp));
	q->written = 0;
}
