/* SPDX-License-Identifier: BSD-3-Clause */

/* Events: a queue for each channel of a client; the owner of the CM is told when one begins to
 * wait. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ib_impl.h"

static uint64_t
channel_key(uint32_t owner, uint32_t number)
{
	return (uint64_t)owner << 32 | number;
}

struct ib_channel *
ib_channel_find(const struct ibcm *cm, uint32_t owner, uint32_t number)
{
	struct ib_link *link = ib_hash_next(&cm->channels, channel_key(owner, number), NULL);

	return link == NULL ? NULL : IB_CONTAINER(link, struct ib_channel, link);
}

struct ib_channel *
ib_channel_get(struct ibcm *cm, struct ib_account *account, uint32_t number)
{
	struct ib_channel *ch = ib_channel_find(cm, account->client.owner, number);

	if (ch != NULL)
		return ch;
	ch = calloc(1, sizeof(*ch));
	if (ch == NULL)
		return NULL;
	ch->account = account;
	ch->number = number;
	ib_node_init(&ch->events);
	ib_node_init(&ch->members);
	ib_node_push(&account->channels, &ch->in_account);
	ib_hash_add(&cm->channels, &ch->link, channel_key(account->client.owner, number));
	return ch;
}

void
ib_channel_drop(struct ibcm *cm, struct ib_channel *channel)
{
	if (channel->ids != 0)
		return;
	ib_node_pull(&channel->in_account);
	ib_hash_remove(&cm->channels, &channel->link);
	free(channel);
}

static void
channel_signal(struct ibcm *cm, const struct ib_channel *channel)
{
	cm->cfg.ops->event(cm->cfg.arg, channel->account->client.owner, channel->number);
}

struct ib_event *
ib_event_new(struct ibcm *cm, struct ib_id *id, uint32_t type, int32_t status)
{
	struct ib_event *e = id->number == 0 ? NULL : calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->id = id;
	e->event.type = type;
	e->event.status = status;
	e->event.id = id->number;
	e->event.gid_index = id->gid_index;
	ib_node_init(&e->in_channel);
	ib_node_init(&e->in_id);
	cm->counters.events++;
	return e;
}

static void
event_enqueue(struct ibcm *cm, struct ib_event *e, struct ib_channel *channel)
{
	ib_node_push(&channel->events, &e->in_channel);
	if (channel->waiting++ == 0)
		channel_signal(cm, channel);
}

void
ib_event_post(struct ibcm *cm, struct ib_event *event)
{
	ib_node_push(&event->id->events, &event->in_id);
	event->id->nevents++;
	event_enqueue(cm, event, event->id->channel);
}

void
ib_event_simple(struct ibcm *cm, struct ib_id *id, uint32_t type, int32_t status)
{
	struct ib_event *e = ib_event_new(cm, id, type, status);

	if (e != NULL)
		ib_event_post(cm, e);
}

bool
ib_event_waits(const struct ib_id *id, uint32_t type)
{
	for (const struct ib_node *n = id->events.next; n != &id->events; n = n->next)
		if (IB_CONTAINER(n, struct ib_event, in_id)->event.type == type)
			return true;
	return false;
}

static void
event_pull(struct ib_event *e)
{
	ib_node_pull(&e->in_channel);
	ib_node_pull(&e->in_id);
	e->id->nevents--;
	e->id->channel->waiting--;
}

void
ib_event_clear(struct ib_id *id)
{
	IB_NODE_EACH(n, &id->events)
	{
		struct ib_event *e = IB_CONTAINER(n, struct ib_event, in_id);

		event_pull(e);
		free(e);
	}
}

void
ib_event_clear_group(struct ib_id *id, uint32_t group)
{
	IB_NODE_EACH(n, &id->events)
	{
		struct ib_event *e = IB_CONTAINER(n, struct ib_event, in_id);

		if (e->event.group != group)
			continue;
		event_pull(e);
		free(e);
	}
}

int
ib_event_fetch(struct ib_op *op, uint32_t channel, struct hca_ctl_cm_event *out)
{
	struct ib_channel *ch = ib_channel_find(op->cm, op->client->owner, channel);
	struct ib_event *e;

	if (ch == NULL || ch->waiting == 0)
		return ib_op_fail(op, -EAGAIN,
				  "channel %u has no event: wait until its descriptor is readable",
				  channel);
	e = IB_CONTAINER(ch->events.next, struct ib_event, in_channel);
	event_pull(e);
	*out = e->event;
	out->left = ch->waiting;
	if (out->type == HCA_CTL_CM_EV_CONNECT_REQUEST)
		ib_wait_drop(op->cm, e->id);
	free(e);
	if (ch->waiting > 0)
		channel_signal(op->cm, ch);
	return 0;
}

void
ib_event_move(struct ibcm *cm, struct ib_id *id, struct ib_channel *to)
{
	struct ib_channel *from = id->channel;

	id->channel = to;
	to->ids++;
	ib_node_pull(&id->in_channel);
	ib_node_push(&to->members, &id->in_channel);
	IB_NODE_EACH(n, &id->events)
	{
		struct ib_event *e = IB_CONTAINER(n, struct ib_event, in_id);

		ib_node_pull(&e->in_channel);
		from->waiting--;
		event_enqueue(cm, e, to);
	}
	from->ids--;
	ib_channel_drop(cm, from);
}
