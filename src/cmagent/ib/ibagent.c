/* SPDX-License-Identifier: BSD-3-Clause */

/* The agent's life and its turns. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_cmd.h"
#include "ibagent_impl.h"

/* The device does not say when it dies: it is looked at so often. */
#define LOOK_NS UINT64_C(1000000000)
#define FAREWELLS 64u

void
ibagent_count(struct ibagent *a, enum ibagent_counter which)
{
	__atomic_fetch_add(&a->counter[which], 1, __ATOMIC_RELAXED);
}

uint64_t
ibagent_counter(const struct ibagent *agent, enum ibagent_counter which)
{
	return __atomic_load_n(&agent->counter[which], __ATOMIC_RELAXED);
}

uint64_t
ibagent_now(const struct ibagent *a)
{
	return a->cfg.now(a->cfg.arg);
}

/* ---- a turn ---- */

static void
agent_look_for_death(struct ibagent *a, uint64_t now)
{
	if (a->dead || !hca_driver_dead(a->cfg.drv))
		return;
	__atomic_store_n(&a->dead, true, __ATOMIC_RELAXED);
	pthread_mutex_lock(&a->lock);
	ibcm_dead(a->cm, now);
	pthread_mutex_unlock(&a->lock);
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
agent_tick(struct ibagent *a, uint64_t now)
{
	uint64_t due;

	pthread_mutex_lock(&a->lock);
	if (now >= ibcm_deadline(a->cm))
		ibcm_tick(a->cm, now);
	due = earlier(ibcm_deadline(a->cm), ibping_deadline(a->ping));
	__atomic_store_n(&a->due, due, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&a->lock);
	return due;
}

static unsigned int
agent_turn(void *owner, uint64_t now, uint64_t *deadline)
{
	struct ibagent *a = owner;
	unsigned int n;

	agent_look_for_death(a, now);
	n = ibagent_receive(a, now) + ibagent_answers(a);
	*deadline = agent_tick(a, now);
	n += ibagent_send(a) + ibagent_tell_groups(a);
	if (a->loop.mail_at > now)
		*deadline = earlier(*deadline, a->loop.mail_at);
	if (a->cfg.thread)
		*deadline = earlier(*deadline, now + LOOK_NS);
	return n;
}

unsigned int
ibagent_poll(struct ibagent *agent)
{
	if (!__atomic_load_n(&agent->dead, __ATOMIC_RELAXED) && hca_driver_dead(agent->cfg.drv))
		cmagent_loop_wake(&agent->loop);
	return cmagent_loop_poll(&agent->loop);
}

/* ---- begin and end ---- */

static int
agent_ask_device(struct ibagent *a, struct ibcm_config *c)
{
	struct hca_ctl_info info;
	struct hca_ctl_port port;
	int err = CMAGENT_MAIL_CALL(&a->mail, INFO, NULL, &info, NULL);

	if (err != 0)
		return err;
	hca_driver_query_port(a->cfg.drv, &port);
	c->node_guid = hca_driver_node_guid(a->cfg.drv);
	c->mtu = port.active_mtu;
	c->ack_delay = (uint8_t)info.ack_delay;
	c->max_rd_atomic = (uint8_t)(info.max_rd_atomic < 255 ? info.max_rd_atomic : 255);
	return 0;
}

static int
agent_open_cm(struct ibagent *a)
{
	struct ibcm_config c = {.ops = &ibagent_ops,
				.arg = a,
				.pkey = HCA_PKEY_DEFAULT,
				.limits = a->cfg.limits,
				.user_share = a->cfg.user_share};
	int err = agent_ask_device(a, &c);

	if (err != 0)
		return err;
	a->cm = ibcm_create(&c);
	return a->cm != NULL ? 0 : -ENOMEM;
}

static void
agent_wake(void *owner)
{
	cmagent_loop_wake(&((struct ibagent *)owner)->loop);
}

static int
agent_open(struct ibagent *a)
{
	const struct cmagent_loop_config loop = {.thread = a->cfg.thread,
						 .mail = &a->mail,
						 .now = a->cfg.now,
						 .now_arg = a->cfg.arg,
						 .work = agent_turn,
						 .owner = a};
	const struct cmagent_hops_config hops = {.drv = a->cfg.drv,
						 .asks = a->cfg.asks,
						 .now = a->cfg.now,
						 .now_arg = a->cfg.arg,
						 .wake = agent_wake,
						 .owner = a,
						 .places = IBAGENT_PLACES,
						 .message_bytes = IBCM_MAD_BYTES,
						 .tickets = IBAGENT_TICKETS,
						 .clients = IBAGENT_CLIENTS};
	int err;

	a->out = calloc(IBAGENT_OUT, sizeof(*a->out));
	if (a->out == NULL)
		return -ENOMEM;
	err = cmagent_hops_open(&a->hops, &hops);
	if (err == 0)
		err = gsi_mail_open(&a->mail, a->cfg.drv, a->cfg.thread);
	if (err == 0)
		err = hca_driver_set_gsi(a->cfg.drv, a->mail.qpn);
	if (err == 0)
		err = ibagent_ping_open(a);
	if (err == 0)
		err = agent_open_cm(a);
	return err != 0 ? err : cmagent_loop_open(&a->loop, &loop);
}

static void
agent_close(struct ibagent *a)
{
	cmagent_loop_close(&a->loop);
	cmagent_mail_close(&a->mail);
	cmagent_hops_close(&a->hops);
	ibagent_free_groups(a);
	ibping_destroy(a->ping);
	pthread_mutex_destroy(&a->lock);
	free(a->out);
	free(a);
}

/* Datagrams of the end leave, as far as the device takes them within a few turns. */
static void
agent_farewell(struct ibagent *a)
{
	for (uint32_t i = 0; i < FAREWELLS && ibagent_send(a) != 0; i++)
		cmagent_mail_farewell(&a->mail, a->cfg.progress, a->cfg.arg);
}

static void
agent_end_cm(struct ibagent *a)
{
	if (a->cm == NULL)
		return;
	ibcm_destroy(a->cm, ibagent_now(a));
	(void)ibagent_tell_groups(a);
	agent_farewell(a);
	a->cm = NULL;
}

static void
agent_seed(struct ibagent *a)
{
	a->random.seed = a->cfg.seed;
	a->hash_key = a->cfg.seed != 0 ? a->cfg.seed : cmagent_random(&a->random);
}

int
ibagent_create(const struct ibagent_config *config, struct ibagent **agent)
{
	struct ibagent *a = calloc(1, sizeof(*a));
	int err;

	if (a == NULL)
		return -ENOMEM;
	a->cfg = *config;
	a->mail.channel_fd = a->loop.wake_fd = -1;
	pthread_mutex_init(&a->lock, NULL);
	agent_seed(a);
	ibagent_set_rates(a);
	err = agent_open(a);
	if (err == 0)
		err = cmagent_hops_start(&a->hops);
	if (err == 0) {
		hca_driver_set_cm(a->cfg.drv, &ibagent_face, a);
		err = cmagent_loop_start(&a->loop);
	}
	if (err != 0) {
		ibagent_destroy(a);
		return err;
	}
	*agent = a;
	return 0;
}

void
ibagent_destroy(struct ibagent *a)
{
	if (a == NULL)
		return;
	hca_driver_set_cm(a->cfg.drv, NULL, NULL);
	cmagent_loop_stop(&a->loop);
	cmagent_hops_stop(&a->hops);
	agent_end_cm(a);
	(void)hca_driver_set_gsi(a->cfg.drv, 0);
	agent_close(a);
}
