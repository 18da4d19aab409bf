/* SPDX-License-Identifier: BSD-3-Clause */

/* The agent's life and its loop. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ubagent_impl.h"

#define WINDOW 1024u
#define SACK_BITS 1024u
#define REQUESTS 1024u
#define PLACES 64u /* of peers whose MAC address is looked for, or known */
#define TPS 4u
#define RTO_EXPONENT 1u
#define RETRIES 7u
/*
 * Of timeouts by round trips, which may be 100 us: seven end within 26 ms, for which a worker of
 * the peer may well be without a CPU; eleven last 0.4 s at least.
 */
#define RETRIES_BY_ROUND_TRIPS 11u
#define ACK_EVERY 16u
#define OOO_EVERY 1u
#define OOO_EVERY_SPRAY 4u

void
ubagent_count(struct ubagent *a, enum ubagent_counter which)
{
	__atomic_store_n(&a->counter[which], a->counter[which] + 1, __ATOMIC_RELAXED);
}

uint64_t
ubagent_counter(const struct ubagent *agent, enum ubagent_counter which)
{
	return __atomic_load_n(&agent->counter[which], __ATOMIC_RELAXED);
}

/* ---- work that is due ---- */

/*
 * A program may have seen a request fail and import its peer again before the event of the dead TP
 * arrives: check the group that it would join.
 */
static void
look_for_dead(struct ubagent *a, const struct import *i, uint64_t now)
{
	uint32_t tpn[UBCM_MSG_TPS], n = ubcm_tpns(a->cm, i->own, i->peer, tpn);
	struct hca_tpc c;

	for (uint32_t t = 0; t < n; t++) {
		if (hca_driver_query_tp(a->cfg.drv, tpn[t], &c) != 0 ||
		    hca_tpc_get(&c, HCA_TPC_STATE) != HCA_TPS_ERROR)
			continue;
		ubcm_event(a->cm, tpn[t], UBCM_DEAD, now);
		return;
	}
}

static void
begin_import(struct ubagent *a, struct import *i, uint64_t now)
{
	struct account *c = &a->account;
	uint32_t link = 0;
	int err;

	cmagent_hops_learn(&a->hops, i->own, i->peer, &i->ah);
	look_for_dead(a, i, now);
	err = ubcm_import(a->cm, i->own, i->peer, now, &link);
	pthread_mutex_lock(&c->lock);
	i->joined = err == 0;
	i->link = link;
	if (i->state == IMPORT_LEAVING) {
		/* it comes again */
	} else if (err != 0) {
		i->state = IMPORT_DOWN;
		i->status = UBCM_STATUS_NO_RESOURCES;
	} else {
		i->state = IMPORT_WAITING;
		if (ubcm_is_up(a->cm, link))
			account_up(c, link, a->group[UBCM_LINK_TPG(link)]);
	}
	pthread_mutex_unlock(&c->lock);
}

static void
end_import(struct ubagent *a, struct import *i, uint64_t now)
{
	uint32_t group;

	if (i->joined)
		(void)ubcm_unimport(a->cm, i->link, now);
	pthread_mutex_lock(&a->account.lock);
	i->joined = false;
	group = account_end(&a->account, i);
	pthread_mutex_unlock(&a->account.lock);
	ubagent_give_group(a, group);
}

static unsigned int
do_account(struct ubagent *a, uint64_t now)
{
	struct account *c = &a->account;
	unsigned int n = 0;
	struct import *i;
	uint8_t state;

	for (;; n++) {
		pthread_mutex_lock(&c->lock);
		i = account_next(c);
		state = i != NULL ? i->state : IMPORT_FREE;
		pthread_mutex_unlock(&c->lock);
		if (i == NULL)
			return n;
		if (state == IMPORT_NEW)
			begin_import(a, i, now);
		else if (state == IMPORT_LEAVING)
			end_import(a, i, now);
	}
}

static unsigned int
do_events(struct ubagent *a, uint64_t now)
{
	struct account *c = &a->account;
	unsigned int n = 0;

	if (!__atomic_exchange_n(&c->any_dead, false, __ATOMIC_ACQ_REL))
		return 0;
	for (uint32_t i = 0; i < c->ntps; i++) {
		uint32_t tpn = __atomic_exchange_n(&c->dead[i], 0, __ATOMIC_RELAXED);

		if (tpn == 0)
			continue;
		ubagent_count(a, UBAGENT_events);
		ubcm_event(a->cm, tpn, UBCM_DEAD, now);
		n++;
	}
	return n;
}

static void
take_letter(struct ubagent *a, const struct cmagent_mail_letter *l, uint64_t now)
{
	struct hca_ctl_ah ah;

	if (a->cfg.asks && ubcm_needs_way(a->cm, l->own, l->peer, l->bytes, l->len, now) &&
	    !cmagent_hops_find(&a->hops, l->own, l->peer, &ah)) {
		cmagent_hops_keep(&a->hops, l->own, l->peer, l->mac, l->bytes, l->len);
		return;
	}
	a->answering = l;
	ubcm_input(a->cm, l->own, l->peer, l->bytes, l->len, now);
	a->answering = NULL;
}

static unsigned int
do_mail(struct ubagent *a, uint64_t now)
{
	struct cmagent_mail_letter l;
	enum cmagent_mail_kind kind;
	unsigned int n = 0;

	while ((kind = cmagent_mail_take(&a->mail, &l)) != CMAGENT_MAIL_NONE) {
		n++;
		if (kind == CMAGENT_MAIL_BAD)
			ubagent_count(a, UBAGENT_bad);
		if (kind != CMAGENT_MAIL_LETTER)
			continue;
		ubagent_count(a, UBAGENT_received);
		take_letter(a, &l, now);
		cmagent_mail_give_back(&a->mail, l.slot);
	}
	return n;
}

static void
show_counters(struct ubagent *a, uint64_t now)
{
	const uint64_t *from = (const uint64_t *)ubcm_counters(a->cm, now);
	uint64_t *to = (uint64_t *)&a->shown;

	for (size_t i = 0; i < sizeof(a->shown) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

/* A message whose peer's MAC address was looked for */
static void
take_kept(void *arg, const uint8_t own[16], const uint8_t peer[16], const uint8_t *bytes,
	  size_t len)
{
	struct ubagent *a = arg;

	ubcm_input(a->cm, own, peer, bytes, len, a->cfg.now(a->cfg.arg));
}

static void
wake_agent(void *arg)
{
	cmagent_loop_wake(&((struct ubagent *)arg)->loop);
}

static unsigned int
agent_work(void *arg, uint64_t now, uint64_t *deadline)
{
	struct ubagent *a = arg;
	unsigned int n;

	n = do_account(a, now) + do_events(a, now) + do_mail(a, now);
	n += cmagent_hops_deliver(&a->hops, take_kept, a);
	if (now >= *deadline)
		ubcm_tick(a->cm, now);
	*deadline = ubcm_deadline(a->cm);
	show_counters(a, now);
	return n;
}

unsigned int
ubagent_poll(struct ubagent *a)
{
	return cmagent_loop_poll(&a->loop);
}

/* ---- begin and end ---- */

static uint32_t
mode_of(const struct ubagent_config *c)
{
	if (c->mode != 0)
		return c->mode - 1;
	return c->rule == HCA_TP_RULE_NAK + 1 ? HCA_TP_MODE_DROP : HCA_TP_MODE_SACK;
}

/* Offer to peers: all features of the specification's text, except for choices. */
static uint8_t
flags_of(const struct ubagent_config *c)
{
	uint32_t flags = HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST | HCA_TP_FLAG_RSP_BE |
			 HCA_TP_FLAG_TELL | HCA_TP_FLAG_CNP;
	static const struct {
		uint32_t choice, flag;
	} off[] = {
		{HCA_UB_SWITCH_OLD_VALUE_LE, HCA_TP_FLAG_RSP_BE},
		{HCA_UB_SWITCH_NO_TAID, HCA_TP_FLAG_TAID},
		{HCA_UB_SWITCH_NO_OFST, HCA_TP_FLAG_OFST},
		{HCA_UB_SWITCH_SILENT, HCA_TP_FLAG_TELL},
	};

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		if (c->choices & off[i].choice)
			flags &= ~off[i].flag;
	/* packets of several paths are out of order */
	if (c->spray > 1 && mode_of(c) != HCA_TP_MODE_DROP)
		flags |= HCA_TP_FLAG_SPRAY;
	return (uint8_t)flags;
}

static struct ubcm_config
cm_config(struct ubagent *a, uint32_t mtu_code)
{
	const struct ubagent_config *c = &a->cfg;

	return (struct ubcm_config){
		.ops = &ubagent_ops,
		.arg = a,
		.limits = {.window = (uint16_t)c->window,
			   .sack = (uint16_t)(c->sack != 0 ? c->sack : SACK_BITS),
			   .mtu = (uint16_t)HCA_TP_MTU_BYTES(mtu_code),
			   .requests = REQUESTS,
			   .mode = (uint8_t)mode_of(c),
			   .flags = flags_of(c)},
		.timer = {.rto_base = c->timeout_us,
			  .rto_exponent =
				  (uint8_t)(c->exponent != 0 ? c->exponent - 1 : RTO_EXPONENT),
			  .retries = c->timeout_us == 0 ? RETRIES_BY_ROUND_TRIPS : RETRIES,
			  .ack_every = ACK_EVERY,
			  .ooo_every = c->spray > 1 ? OOO_EVERY_SPRAY : OOO_EVERY},
		.tps = c->tps,
		.log_tps = a->log_tps,
		.max_links = a->nlinks,
	};
}

static int
open_all(struct ubagent *a)
{
	struct ubcm_config cm;
	uint32_t mtu_code;
	void *memory;
	int err = hca_driver_ub_limits(a->cfg.drv, &a->log_tps, &mtu_code);

	if (err != 0)
		return err;
	a->nlinks = 1u << a->log_tps;
	cm = cm_config(a, mtu_code);
	if (ubcm_bytes(&cm) == 0)
		return -EINVAL;
	a->group = malloc(a->nlinks * sizeof(*a->group));
	memory = calloc(1, ubcm_bytes(&cm));
	if (a->group == NULL || memory == NULL) {
		free(memory);
		return -ENOMEM;
	}
	memset(a->group, 0xff, a->nlinks * sizeof(*a->group));
	a->cm = ubcm_init(memory, &cm);
	err = account_init(&a->account, a->nlinks);
	if (err == 0)
		err = cmagent_loop_open(&a->loop, &(struct cmagent_loop_config){
							  .thread = a->cfg.thread,
							  .mail = &a->mail,
							  .now = a->cfg.now,
							  .now_arg = a->cfg.arg,
							  .work = agent_work,
							  .owner = a,
						  });
	if (err == 0)
		err = cmagent_hops_open(&a->hops, &(struct cmagent_hops_config){
							  .drv = a->cfg.drv,
							  .asks = a->cfg.asks,
							  .now = a->cfg.now,
							  .now_arg = a->cfg.arg,
							  .wake = wake_agent,
							  .owner = a,
							  .places = PLACES,
							  .message_bytes = UBCM_MSG_MAX,
						  });
	return err != 0 ? err : ubagent_mail_open(a);
}

static void
close_all(struct ubagent *a)
{
	cmagent_mail_close(&a->mail);
	cmagent_loop_close(&a->loop);
	cmagent_hops_close(&a->hops);
	if (a->cm != NULL)
		account_free(&a->account);
	free(a->group);
	free(a->cm);
	free(a);
}

static void
take_defaults(struct ubagent_config *c)
{
	c->tps = c->tps != 0 ? c->tps : TPS;
	c->window = c->window != 0 ? c->window : WINDOW;
}

int
ubagent_create(const struct ubagent_config *config, struct ubagent **agent)
{
	struct ubagent *a = calloc(1, sizeof(*a));
	int err;

	if (a == NULL)
		return -ENOMEM;
	a->cfg = *config;
	a->random.seed = config->seed;
	a->loop.wake_fd = a->mail.channel_fd = -1;
	take_defaults(&a->cfg);
	err = open_all(a);
	if (err == 0)
		err = cmagent_hops_start(&a->hops);
	if (err == 0)
		err = cmagent_loop_start(&a->loop);
	if (err != 0) {
		cmagent_hops_stop(&a->hops);
		close_all(a);
		return err;
	}
	hca_driver_set_agent(a->cfg.drv, &ubagent_face, a);
	*agent = a;
	return 0;
}

void
ubagent_destroy(struct ubagent *a)
{
	uint64_t now;

	if (a == NULL)
		return;
	hca_driver_set_agent(a->cfg.drv, NULL, NULL);
	cmagent_loop_stop(&a->loop);
	cmagent_hops_stop(&a->hops);
	now = a->cfg.now(a->cfg.arg);
	(void)do_account(a, now);
	ubcm_end(a->cm, now);
	cmagent_mail_farewell(&a->mail, a->cfg.progress, a->cfg.arg);
	close_all(a);
}
