/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connections: how messages are repeated, and how connections end.
 *
 *	active   REQ_SENT --REP--> REP_RCVD --establish (RTU)--> ESTABLISHED
 *	passive  REQ_RCVD --accept (REP)--> REP_SENT --RTU--> ESTABLISHED
 *	both     ESTABLISHED --disconnect (DREQ)--> DREQ_SENT --DREP--> TIMEWAIT --> NONE
 *	         ESTABLISHED --DREQ (DREP)--> TIMEWAIT
 *	         REQ_RCVD --reject (REJ)--> REFUSED --> NONE
 *	         REP_SENT --destroyed (REJ)--> DREQ_SENT: the peer may be established by now
 *
 * A message that waits for an answer is sent again after 268 ms, after twice that, and so on up to
 * the time in the REQ (response timeout of the other end, and twice the way), as often as the REQ
 * allows. A peer that has sent an MRA is reminded, but this does not count.
 */

#include <errno.h>
#include <string.h>

#include "ib_impl.h"

/* Exponents of 4.096 us */
#define CONN_FIRST_WAIT 16u
#define CONN_LONGEST 24u /* 68.7 s: longer ones of peers are cut */

uint64_t
ib_time(uint32_t exponent)
{
	return UINT64_C(4096) << (exponent < CONN_LONGEST ? exponent : CONN_LONGEST);
}

/* ---- tables ---- */

static uint64_t
conn_key(const struct ibcm *cm, const uint8_t gid[16], uint64_t guid, uint32_t number)
{
	struct {
		uint64_t guid, number;
		uint8_t gid[16];
	} key = {.guid = guid, .number = number};

	memcpy(key.gid, gid, sizeof(key.gid));
	return ib_hash_key(cm->seed, &key, sizeof(key));
}

void
ib_conn_number(struct ibcm *cm, struct ib_id *id)
{
	do {
		id->c.local_comm = (uint32_t)cm->cfg.ops->random(cm->cfg.arg);
	} while (id->c.local_comm == 0 || ib_conn_find(cm, id->c.local_comm) != NULL);
	ib_hash_add(&cm->comms, &id->by_comm, id->c.local_comm);
}

struct ib_id *
ib_conn_find(const struct ibcm *cm, uint32_t local_comm)
{
	struct ib_link *link = ib_hash_next(&cm->comms, local_comm, NULL);

	return link == NULL ? NULL : IB_CONTAINER(link, struct ib_id, by_comm);
}

void
ib_conn_know_remote(struct ibcm *cm, struct ib_id *id)
{
	const struct ib_connection *c = &id->c;

	ib_hash_add(&cm->remotes, &id->by_remote,
		    conn_key(cm, id->way.peer, c->remote_guid, c->remote_comm));
	if (c->remote_qpn != 0)
		ib_hash_add(&cm->qpns, &id->by_qpn,
			    conn_key(cm, id->way.peer, c->remote_guid, c->remote_qpn));
}

static bool
conn_is_of(const struct ib_id *id, const uint8_t gid[16], uint64_t guid)
{
	return id->c.remote_guid == guid && memcmp(id->way.peer, gid, sizeof(id->way.peer)) == 0;
}

struct ib_id *
ib_conn_of_remote(const struct ibcm *cm, const uint8_t gid[16], uint64_t guid, uint32_t comm)
{
	uint64_t key = conn_key(cm, gid, guid, comm);

	for (struct ib_link *l = ib_hash_next(&cm->remotes, key, NULL); l != NULL;
	     l = ib_hash_next(&cm->remotes, key, l)) {
		struct ib_id *id = IB_CONTAINER(l, struct ib_id, by_remote);

		if (conn_is_of(id, gid, guid) && id->c.remote_comm == comm)
			return id;
	}
	return NULL;
}

struct ib_id *
ib_conn_of_qpn(const struct ibcm *cm, const uint8_t gid[16], uint64_t guid, uint32_t qpn)
{
	uint64_t key = conn_key(cm, gid, guid, qpn);

	for (struct ib_link *l = ib_hash_next(&cm->qpns, key, NULL); l != NULL;
	     l = ib_hash_next(&cm->qpns, key, l)) {
		struct ib_id *id = IB_CONTAINER(l, struct ib_id, by_qpn);

		if (conn_is_of(id, gid, guid) && id->c.remote_qpn == qpn)
			return id;
	}
	return NULL;
}

/* ---- messages that wait for an answer ---- */

void
ib_conn_phase(struct ibcm *cm, struct ib_id *id, enum ib_phase phase)
{
	id->phase = phase;
	ib_heap_stop(&cm->timers, &id->timer);
	if (phase == IB_PHASE_ESTABLISHED || phase == IB_PHASE_DREQ_SENT ||
	    phase == IB_PHASE_TIMEWAIT || phase == IB_PHASE_NONE)
		ib_half_drop(cm, id);
	/* the peer may use its QP for another connection */
	if (phase == IB_PHASE_TIMEWAIT || phase == IB_PHASE_REFUSED)
		ib_hash_remove(&cm->qpns, &id->by_qpn);
}

/* So long an answer may take: the other end, and the way there and back. */
static uint64_t
conn_full_wait(const struct ib_id *id)
{
	return ib_time(id->c.peer_timeout) + ib_time(id->c.ack_timeout);
}

/* A peer that names shorter times than the first wait does not make this end send more often. */
static struct cm_repeat_rule
conn_rule(const struct ib_id *id)
{
	uint64_t first = ib_time(CONN_FIRST_WAIT), full = conn_full_wait(id);

	return (struct cm_repeat_rule){.first = first,
				       .longest = full < first ? first : full,
				       .repeats = id->c.max_retries};
}

/* The message in c.mad has been sent, or may be sent later. */
static void
conn_await(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	struct cm_repeat_rule rule = conn_rule(id);

	id->c.mras = 0;
	id->c.mra_until = 0;
	ib_heap_set(&cm->timers, &id->timer, cm_repeat_begin(&rule, &id->c.repeat, now));
}

void
ib_conn_ask(struct ibcm *cm, struct ib_id *id, const struct ib_mad *mad, uint64_t now)
{
	ib_mad_build(mad, id->c.mad);
	ib_send_bytes(cm, &id->way, mad->type, id->c.mad);
	conn_await(cm, id, now);
}

static const uint8_t conn_message[IB_PHASES] = {
	[IB_PHASE_REQ_SENT] = IB_MAD_REQ,	[IB_PHASE_REP_SENT] = IB_MAD_REP,
	[IB_PHASE_DREQ_SENT] = IB_MAD_DREQ,	[IB_PHASE_REFUSED] = IB_MAD_REJ,
	[IB_PHASE_SIDR_SENT] = IB_MAD_SIDR_REQ, [IB_PHASE_SIDR_DONE] = IB_MAD_SIDR_REP,
};

void
ib_conn_repeat(struct ibcm *cm, struct ib_id *id)
{
	enum ib_mad_type type = (enum ib_mad_type)conn_message[id->phase];

	id->c.repeats++;
	cm->counters.repeated[type]++;
	ib_send_bytes(cm, &id->way, type, id->c.mad);
}

void
ib_conn_follow(struct ib_id *id, const struct ibcm_way *from)
{
	static const uint8_t unknown[6];

	id->way.doubted = false;
	if (memcmp(from->dmac, unknown, sizeof(unknown)) != 0)
		memcpy(id->way.dmac, from->dmac, sizeof(id->way.dmac));
}

void
ib_conn_extend(struct ibcm *cm, struct ib_id *id, uint32_t service_timeout, uint64_t now)
{
	struct cm_repeat_rule rule = conn_rule(id);

	if (id->c.mras >= id->c.max_retries)
		return;
	id->c.mras++;
	id->c.mra_until = now + ib_time(service_timeout) + ib_time(id->c.ack_timeout);
	ib_heap_set(&cm->timers, &id->timer, cm_repeat_later(&rule, &id->c.repeat, now));
}

void
ib_conn_await_program(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	uint64_t time = ib_time(id->c.own_timeout);

	id->c.mra_sent = false;
	ib_heap_set(&cm->timers, &id->timer, now + time - time / 4);
}

/* ---- ends ---- */

void
ib_conn_end(struct ibcm *cm, struct ib_id *id)
{
	ib_conn_phase(cm, id, IB_PHASE_NONE);
	ib_hash_remove(&cm->comms, &id->by_comm);
	ib_hash_remove(&cm->remotes, &id->by_remote);
	ib_hash_remove(&cm->qpns, &id->by_qpn);
	if (id->number == 0)
		ib_id_free(cm, id);
}

void
ib_conn_timewait(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	ib_conn_phase(cm, id, IB_PHASE_TIMEWAIT);
	ib_heap_set(&cm->timers, &id->timer, now + ib_time(id->c.ack_timeout));
}

void
ib_conn_over(struct ibcm *cm, struct ib_id *id, uint32_t type, int32_t status, uint64_t now)
{
	if (id->number == 0)
		return;
	ib_id_state(id, HCA_CTL_CM_ENDED, now);
	ib_event_simple(cm, id, type, status);
}

bool
ib_conn_forgotten(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	if (id->phase != IB_PHASE_DREQ_SENT)
		return false;
	if (id->state == HCA_CTL_CM_DISCONNECTING)
		ib_conn_over(cm, id, HCA_CTL_CM_EV_DISCONNECTED, 0, now);
	ib_conn_timewait(cm, id, now);
	return true;
}

static struct ib_mad
conn_dreq(struct ibcm *cm, const struct ib_id *id)
{
	return (struct ib_mad){
		.type = IB_MAD_DREQ,
		.transaction = cm->cfg.ops->random(cm->cfg.arg),
		.dreq = {.local_comm = id->c.local_comm,
			 .remote_comm = id->c.remote_comm,
			 .remote_qpn = id->c.remote_qpn},
	};
}

void
ib_conn_dreq(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	struct ib_mad mad = conn_dreq(cm, id);

	ib_conn_phase(cm, id, IB_PHASE_DREQ_SENT);
	ib_conn_ask(cm, id, &mad, now);
}

/* The peer may have sent its RTU: if the REJ does not reach it the DREQ does. */
static void
conn_withdraw(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	struct ib_mad mad = conn_dreq(cm, id);

	ib_send_rej(cm, id, IB_MAD_REASON_CONSUMER, NULL, 0);
	ib_conn_phase(cm, id, IB_PHASE_DREQ_SENT);
	id->c.leaving = true;
	ib_mad_build(&mad, id->c.mad);
	conn_await(cm, id, now);
}

void
ib_conn_refuse(struct ibcm *cm, struct ib_id *id, uint16_t reason, const void *private,
	       uint32_t len, uint64_t now)
{
	ib_send_rej(cm, id, reason, private, len);
	ib_conn_phase(cm, id, IB_PHASE_REFUSED);
	ib_half_hold(id);
	ib_heap_set(&cm->timers, &id->timer, now + conn_full_wait(id));
}

void
ib_conn_leave(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	struct ib_op op = {.cm = cm, .now = now};

	switch (id->phase) {
	case IB_PHASE_REQ_SENT:
		ib_send_rej_timeout(cm, id);
		ib_conn_end(cm, id);
		break;
	case IB_PHASE_REQ_RCVD:
		ib_conn_refuse(cm, id, IB_MAD_REASON_CONSUMER, NULL, 0, now);
		break;
	case IB_PHASE_REP_RCVD:
		ib_send_rej(cm, id, IB_MAD_REASON_CONSUMER, NULL, 0);
		ib_conn_timewait(cm, id, now);
		break;
	case IB_PHASE_REP_SENT:
		conn_withdraw(cm, id, now);
		break;
	case IB_PHASE_ESTABLISHED:
		ib_conn_dreq(cm, id, now);
		break;
	case IB_PHASE_SIDR_SENT:
		ib_conn_end(cm, id);
		break;
	case IB_PHASE_SIDR_RCVD:
		(void)ib_sidr_answer(&op, id, IB_MAD_SIDR_REJECTED, NULL);
		break;
	default:
		break;
	}
}

/* ---- time ---- */

static void
conn_give_up(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	enum ib_phase phase = id->phase;

	cm->counters.timeouts++;
	if (phase == IB_PHASE_REQ_SENT || phase == IB_PHASE_REP_SENT)
		ib_send_rej_timeout(cm, id);
	if (id->state == HCA_CTL_CM_DISCONNECTING)
		ib_conn_over(cm, id, HCA_CTL_CM_EV_DISCONNECTED, -ETIMEDOUT, now);
	else if (phase != IB_PHASE_DREQ_SENT)
		ib_conn_over(cm, id, HCA_CTL_CM_EV_UNREACHABLE, -ETIMEDOUT, now);
	if (phase == IB_PHASE_REP_SENT || phase == IB_PHASE_DREQ_SENT)
		ib_conn_timewait(cm, id, now);
	else
		ib_conn_end(cm, id);
}

static void
conn_unanswered(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	struct cm_repeat_rule rule = conn_rule(id);
	uint64_t due;

	if (now < id->c.mra_until) {
		due = cm_repeat_later(&rule, &id->c.repeat, now);
	} else if (!cm_repeat_again(&rule, &id->c.repeat, now, &due)) {
		conn_give_up(cm, id, now);
		return;
	}
	id->way.doubted = true;
	ib_conn_repeat(cm, id);
	ib_heap_set(&cm->timers, &id->timer, due);
}

void
ib_conn_expired(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	switch (id->phase) {
	case IB_PHASE_NONE:
		ib_resolve_expired(cm, id, now);
		break;
	case IB_PHASE_REQ_RCVD:
	case IB_PHASE_REP_RCVD:
		ib_send_mra(cm, id);
		break;
	case IB_PHASE_TIMEWAIT:
		if (id->number != 0)
			ib_event_simple(cm, id, HCA_CTL_CM_EV_TIMEWAIT_EXIT, 0);
		ib_conn_end(cm, id);
		break;
	case IB_PHASE_REFUSED:
	case IB_PHASE_SIDR_DONE:
		ib_conn_end(cm, id);
		break;
	default:
		conn_unanswered(cm, id, now);
	}
}
