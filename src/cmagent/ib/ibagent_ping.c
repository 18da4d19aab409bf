/* SPDX-License-Identifier: BSD-3-Clause */

/* Pings: their datagrams share QP 1 with those of connection management. */

#include <errno.h>

#include "ibagent_impl.h"

static uint64_t
ping_random(void *arg)
{
	return ibagent_ops.random(arg);
}

int
ibagent_ping_open(struct ibagent *a)
{
	const struct ibping_config c = {.answers = !a->cfg.pings_off,
					.random = ping_random,
					.arg = a};

	a->ping = ibping_create(&c);
	return a->ping != NULL ? 0 : -ENOMEM;
}

/* The time is read for each, because the round trip is measured. */
bool
ibagent_ping_input(struct ibagent *a, const struct ibcm_way *from,
		   const struct cmagent_mail_letter *l)
{
	return ibping_input(a->ping, from, l->traffic_class, l->bytes, l->len, ibagent_now(a));
}

/* False: no datagram is due. */
static bool
ping_next(struct ibagent *a, struct hca_ctl_ah *ah)
{
	struct ibagent_ping *o = &a->pinging;

	pthread_mutex_lock(&a->lock);
	if (o->len == 0)
		o->len = ibping_output(a->ping, &o->way, o->bytes, ibagent_now(a));
	if (o->len != 0)
		ibagent_from(a, &o->way, ah);
	pthread_mutex_unlock(&a->lock);
	return o->len != 0;
}

unsigned int
ibagent_ping_send(struct ibagent *a)
{
	struct ibagent_ping *o = &a->pinging;
	struct hca_ctl_ah ah;
	unsigned int n = 0;

	for (; ping_next(a, &ah) && ibagent_post(a, &o->way, &ah, o->bytes, o->len); n++)
		o->len = 0;
	return n;
}

/* ---- operators ---- */

int
ibagent_ping_begin(struct ibagent *agent, const struct ibping_request *request)
{
	int number;

	pthread_mutex_lock(&agent->lock);
	number = ibping_begin(agent->ping, request, ibagent_now(agent));
	pthread_mutex_unlock(&agent->lock);
	if (number > 0)
		cmagent_loop_wake(&agent->loop);
	return number;
}

int
ibagent_ping_look(struct ibagent *agent, uint32_t number, uint32_t from, uint64_t *rtt,
		  uint32_t max, struct ibping_result *out)
{
	int err;

	pthread_mutex_lock(&agent->lock);
	err = ibping_look(agent->ping, number, from, rtt, max, ibagent_now(agent), out);
	pthread_mutex_unlock(&agent->lock);
	return err;
}

int
ibagent_ping_end(struct ibagent *agent, uint32_t number)
{
	int err;

	pthread_mutex_lock(&agent->lock);
	err = ibping_end(agent->ping, number);
	pthread_mutex_unlock(&agent->lock);
	return err;
}
