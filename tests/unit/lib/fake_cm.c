/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cm.h"

#define EVENTS_MAX 4096u

struct fake_cm fake_cm;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint32_t channel;
	struct hca_ctl_cm_event event;
} waiting[EVENTS_MAX];
static uint32_t num_waiting;

static uint32_t
count_of(uint32_t channel)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < num_waiting; i++)
		n += waiting[i].channel == channel;
	return n;
}

static void
signal_channel(struct fake_ctl *fake, uint32_t channel)
{
	const struct hca_ctl_event record = {.type = HCA_CTL_EVENT_CM, .object = channel};

	assert_int_equal(write(fake->channel_writes[channel], &record, sizeof(record)),
			 sizeof(record));
}

static void
take_out(uint32_t i)
{
	num_waiting--;
	memmove(&waiting[i], &waiting[i + 1], (num_waiting - i) * sizeof(waiting[0]));
}

static int
fetch(struct fake_ctl *fake, uint32_t channel, struct hca_ctl_cm_event *event)
{
	uint32_t i = 0;

	while (i < num_waiting && waiting[i].channel != channel)
		i++;
	if (i == num_waiting)
		return -EAGAIN;
	*event = waiting[i].event;
	take_out(i);
	event->left = count_of(channel);
	if (event->left != 0)
		signal_channel(fake, channel);
	return 0;
}

static int
destroy(uint32_t id)
{
	for (uint32_t i = num_waiting; i-- > 0;)
		if (waiting[i].event.id == id)
			take_out(i);
	fake_cm.ids--;
	return 0;
}

static int
move(struct fake_ctl *fake, const struct hca_ctl_cm_move *m)
{
	bool was = count_of(m->channel) != 0;

	for (uint32_t i = 0; i < num_waiting; i++)
		if (waiting[i].event.id == m->id)
			waiting[i].channel = m->channel;
	if (!was && count_of(m->channel) != 0)
		signal_channel(fake, m->channel);
	return 0;
}

static uint32_t
new_id(void)
{
	fake_cm.ids++;
	fake_cm.next_number += fake_cm.stride;
	return fake_cm.next_number;
}

uint32_t
fake_cm_new_id(void)
{
	uint32_t number;

	pthread_mutex_lock(&lock);
	number = new_id();
	pthread_mutex_unlock(&lock);
	return number;
}

static int
ask(const struct hca_ctl_cm_ask *a, struct hca_ctl_cm_attr *answer)
{
	if (fake_cm.num_asked < sizeof(fake_cm.asked) / sizeof(fake_cm.asked[0]))
		fake_cm.asked[fake_cm.num_asked++] = a->qp_state;
	*answer = fake_cm.attr;
	answer->qp_state = a->qp_state;
	answer->mask |= SOFTHCA_QP_STATE;
	return 0;
}

#define KEEP(NAME, member) \
	case HCA_CTL_CM_##NAME: \
		memcpy(&fake_cm.member, request, sizeof(fake_cm.member)); \
		return 0;

static int
operation(struct fake_ctl *fake, enum hca_ctl_op op, const void *request, void *answer)
{
	if (fake_cm.fail != 0)
		return fake_cm.fail;
	switch (op) {
		KEEP(RESOLVE, resolve)
		KEEP(ROUTE, route)
		KEEP(LISTEN, listen)
		KEEP(CONNECT, connect)
		KEEP(ACCEPT, accept)
		KEEP(REJECT, reject)
		KEEP(NOTIFY, notify)
		KEEP(OPTION, option)
		KEEP(DISCONNECT, disconnected)
		KEEP(LEAVE, left)
		KEEP(BIND, bind)
	case HCA_CTL_CM_CREATE:
		fake_cm.create = *(const struct hca_ctl_cm_create *)request;
		*(uint32_t *)answer = new_id();
		return 0;
	case HCA_CTL_CM_DESTROY:
		return destroy(*(const uint32_t *)request);
	case HCA_CTL_CM_MOVE:
		return move(fake, request);
	case HCA_CTL_CM_QUERY:
		*(struct hca_ctl_cm_info *)answer = fake_cm.info;
		return 0;
	case HCA_CTL_CM_QP_ATTR:
		return ask(request, answer);
	case HCA_CTL_CM_JOIN:
		fake_cm.join = *(const struct hca_ctl_cm_join *)request;
		*(uint32_t *)answer = 77;
		return 0;
	case HCA_CTL_CM_EVENT:
		return fetch(fake, *(const uint32_t *)request, answer);
	default:
		return -EOPNOTSUPP;
	}
}

static int
call(struct fake_ctl *fake, enum hca_ctl_op op, const void *request, void *answer)
{
	int err;

	pthread_mutex_lock(&lock);
	err = operation(fake, op, request, answer);
	pthread_mutex_unlock(&lock);
	return err;
}

void
fake_cm_begin(struct fake_ctl *fake)
{
	fake_cm = (struct fake_cm){.next_number = 0x1000, .stride = 1};
	num_waiting = 0;
	fake->cm = call;
}

void
fake_cm_raise(struct fake_ctl *fake, uint32_t channel, const struct hca_ctl_cm_event *event)
{
	pthread_mutex_lock(&lock);
	assert_true(num_waiting < EVENTS_MAX);
	waiting[num_waiting].channel = channel;
	waiting[num_waiting++].event = *event;
	if (count_of(channel) == 1)
		signal_channel(fake, channel);
	pthread_mutex_unlock(&lock);
}
