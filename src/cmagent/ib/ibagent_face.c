/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Both sides of the state machines: calls of the driver for clients, under its lock, and calls of
 * the state machines. The latter is queued, because the driver must not be called.
 */

#include <string.h>

#include "ibagent_impl.h"

/* ---- calls of the driver ---- */

/* The thread of a client leaves the state machines: the agent runs if there is more to do. */
static void
face_leave(struct ibagent *a)
{
	bool more = a->out_count != 0 || a->first_change != NULL ||
		    ibcm_deadline(a->cm) < __atomic_load_n(&a->due, __ATOMIC_RELAXED);

	pthread_mutex_unlock(&a->lock);
	if (more)
		cmagent_loop_wake(&a->loop);
}

static int
face_call(void *arg, const struct hca_driver_cm_caller *caller, enum hca_ctl_op op,
	  const void *request, void *answer, const char **why)
{
	const struct ibcm_client client = {.owner = caller->owner, .user = caller->user};
	struct ibagent *a = arg;
	int err;

	pthread_mutex_lock(&a->lock);
	err = ibcm_call(a->cm, &client, op, request, answer, ibagent_now(a), why);
	if (err != 0)
		ibagent_refused(a, client.owner, op, request, err, *why);
	face_leave(a);
	return err;
}

static void
face_forget(void *arg, uint32_t owner)
{
	struct ibagent *a = arg;

	pthread_mutex_lock(&a->lock);
	ibcm_forget(a->cm, owner, ibagent_now(a));
	face_leave(a);
	cmagent_hops_forget(&a->hops, owner);
}

static void
face_channel(void *arg, uint32_t owner, uint32_t channel)
{
	struct ibagent *a = arg;

	pthread_mutex_lock(&a->lock);
	ibcm_forget_channel(a->cm, owner, channel, ibagent_now(a));
	face_leave(a);
}

static void
face_gid(void *arg, uint32_t index, const struct hca_ctl_gid *gid)
{
	struct ibagent *a = arg;

	if (index >= IBAGENT_GIDS)
		return;
	pthread_mutex_lock(&a->lock);
	a->gid[index] = *gid;
	ibcm_set_gid(a->cm, index, gid, ibagent_now(a));
	face_leave(a);
}

static const char *const counter_names[] = {
#define X(name, text) #name,
	IBAGENT_COUNTER_LIST(X) IBPING_COUNTER_LIST(X)
#undef X
};

#define COUNTERS (IBAGENT_COUNTERS + (uint32_t)IBPING_COUNTERS)

static const char *
face_counter(void *arg, uint32_t i, uint64_t *value)
{
	struct ibagent *a = arg;
	const char *name;

	if (i < IBAGENT_COUNTERS) {
		*value = ibagent_counter(a, (enum ibagent_counter)i);
		return counter_names[i];
	}
	if (i < COUNTERS) {
		*value = ibping_counter(a->ping, (enum ibping_counter)(i - IBAGENT_COUNTERS));
		return counter_names[i];
	}
	pthread_mutex_lock(&a->lock);
	name = ibcm_counter(a->cm, i - COUNTERS, value);
	pthread_mutex_unlock(&a->lock);
	return name;
}

const struct hca_driver_cm ibagent_face = {
	.call = face_call,
	.forget = face_forget,
	.channel = face_channel,
	.gid = face_gid,
	.counter = face_counter,
};

/* ---- for operators ---- */

unsigned int
ibagent_list(struct ibagent *agent, uint32_t from, struct ibcm_entry *out, unsigned int max)
{
	uint64_t now = ibagent_now(agent);
	unsigned int n;

	pthread_mutex_lock(&agent->lock);
	n = ibcm_list(agent->cm, from, out, max);
	pthread_mutex_unlock(&agent->lock);
	for (unsigned int i = 0; i < n; i++)
		out[i].since = now > out[i].since ? now - out[i].since : 0;
	return n;
}

/* ---- calls of the state machines; the lock is held ---- */

const struct hca_ctl_gid *
ibagent_gid(const struct ibagent *a, const uint8_t own[16], uint16_t vlan_id, uint32_t *index)
{
	const struct hca_ctl_gid *found = NULL;

	for (uint32_t i = 0; i < IBAGENT_GIDS; i++) {
		const struct hca_ctl_gid *g = &a->gid[i];

		if (!g->valid || memcmp(g->gid, own, sizeof(g->gid)) != 0)
			continue;
		if (found == NULL || g->vlan_id == vlan_id) {
			found = g;
			*index = i;
		}
		if (g->vlan_id == vlan_id)
			break;
	}
	return found;
}

static void
ops_send(void *arg, const struct ibcm_way *way, const uint8_t mad[IBCM_MAD_BYTES])
{
	struct ibagent *a = arg;
	struct ibagent_out *o;

	if (a->out_count == IBAGENT_OUT) {
		ibagent_count(a, IBAGENT_mads_queue_full);
		return;
	}
	if (a->out_count == 0)
		a->out_first = 0;
	o = &a->out[(a->out_first + a->out_count++) % IBAGENT_OUT];
	o->way = *way;
	memcpy(o->mad, mad, sizeof(o->mad));
}

static void
ops_event(void *arg, uint32_t owner, uint32_t channel)
{
	hca_driver_cm_event(((struct ibagent *)arg)->cfg.drv, owner, channel);
}

static void
ops_resolve(void *arg, uint64_t ticket, const struct ibcm_wish *wish)
{
	ibagent_ask(arg, ticket, wish);
}

static uint64_t
ops_random(void *arg)
{
	return cmagent_random(&((struct ibagent *)arg)->random);
}

const struct ibcm_ops ibagent_ops = {
	.send = ops_send,
	.event = ops_event,
	.resolve = ops_resolve,
	.group = ibagent_group,
	.random = ops_random,
};
