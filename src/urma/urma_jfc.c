/* SPDX-License-Identifier: BSD-3-Clause */

/* JFCEs and JFCs: channels and CQs of the library. Their entries: urma_poll.c. */

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <time.h>

#include "urma_impl.h"

urma_jfce_t *
urma_create_jfce(urma_context_t *ctx)
{
	struct urma_ctx *c = urma_ctx_of(ctx);
	struct urma_jfce_obj *e;

	if (ctx == NULL) {
		urma_null("ctx", "urma_create_context");
		return NULL;
	}
	e = urma_object_new(c, sizeof(*e), "a JFCE");
	if (e == NULL)
		return NULL;
	e->channel = softhca_create_comp_channel(&c->lib->pub);
	if (e->channel == NULL) {
		int err = errno;

		urma_object_free(c, e);
		errno = err;
		return NULL;
	}
	e->pub.urma_ctx = ctx;
	e->pub.fd = e->channel->fd;
	/* several threads may wait, and another one may take the event */
	(void)fcntl(e->pub.fd, F_SETFL, fcntl(e->pub.fd, F_GETFL) | O_NONBLOCK);
	return &e->pub;
}

urma_status_t
urma_delete_jfce(urma_jfce_t *jfce)
{
	struct urma_jfce_obj *e = (struct urma_jfce_obj *)jfce;
	int err;

	if (jfce == NULL)
		return urma_status(urma_null("jfce", "urma_create_jfce"));
	err = softhca_destroy_comp_channel(e->channel);
	if (err == 0)
		urma_object_free(urma_ctx_of(jfce->urma_ctx), e);
	return urma_status(err);
}

static int
check_jfc(const urma_context_t *ctx, const urma_jfc_cfg_t *cfg)
{
	if (ctx == NULL || cfg == NULL)
		return urma_fail(-EINVAL, URMA_NULL_CFG, (const void *)ctx, (const void *)cfg);
	if (cfg->flag.bs.jfc_inline)
		return urma_fail(
			-EOPNOTSUPP,
			"jfc_inline is not offered: completions carry no data; clear the flag");
	if (cfg->flag.bs.reserved != 0)
		return urma_fail(-EINVAL, "JFC flags %#x: the reserved bits must be 0",
				 cfg->flag.value);
	if (cfg->jfce != NULL && cfg->jfce->urma_ctx != ctx)
		return urma_fail(
			-EINVAL,
			"the JFCE is of another context: create it with the context of the JFC");
	return 0;
}

urma_jfc_t *
urma_create_jfc(urma_context_t *ctx, urma_jfc_cfg_t *cfg)
{
	struct softhca_cq_init_attr attr = {0};
	struct urma_jfc_obj *j;

	if (check_jfc(ctx, cfg) != 0)
		return NULL;
	j = urma_object_new(urma_ctx_of(ctx), sizeof(*j), "a JFC");
	if (j == NULL)
		return NULL;
	attr.cqe = cfg->depth;
	attr.comp_vector = cfg->ceqn;
	attr.cq_context = j;
	if (cfg->jfce != NULL)
		attr.channel = ((struct urma_jfce_obj *)cfg->jfce)->channel;
	j->cq = softhca_create_cq(&urma_ctx_of(ctx)->lib->pub, &attr);
	if (j->cq == NULL) {
		int err = errno;

		urma_object_free(urma_ctx_of(ctx), j);
		errno = err;
		return NULL;
	}
	j->pub.urma_ctx = ctx;
	j->pub.jfc_cfg = *cfg;
	j->pub.jfc_cfg.depth = (uint32_t)j->cq->cqe;
	j->pub.jfc_id = (urma_jfc_id_t){.eid = ctx->eid, .id = j->cq->handle};
	return &j->pub;
}

urma_status_t
urma_modify_jfc(urma_jfc_t *jfc, urma_jfc_attr_t *attr)
{
	struct urma_jfc_obj *j = (struct urma_jfc_obj *)jfc;
	struct softhca_modify_cq_attr change = {.attr_mask = SOFTHCA_CQ_ATTR_MODERATE};
	int err;

	if (jfc == NULL || attr == NULL)
		return urma_status(
			urma_fail(-EINVAL, "jfc %p, attr %p: expected a JFC and its new attributes",
				  (void *)jfc, (void *)attr));
	if ((attr->mask & ~(uint32_t)(JFC_MODERATE_COUNT | JFC_MODERATE_PERIOD)) != 0)
		return urma_status(urma_fail(-EINVAL, "JFC attributes %#x: expected a set of %#x",
					     attr->mask, JFC_MODERATE_COUNT | JFC_MODERATE_PERIOD));
	change.moderate = j->moderate;
	if ((attr->mask & JFC_MODERATE_COUNT) != 0)
		change.moderate.cq_count = attr->moderate_count;
	if ((attr->mask & JFC_MODERATE_PERIOD) != 0)
		change.moderate.cq_period = attr->moderate_period;
	err = softhca_modify_cq(j->cq, &change);
	if (err == 0)
		j->moderate = change.moderate;
	return urma_status(err);
}

urma_status_t
urma_delete_jfc(urma_jfc_t *jfc)
{
	struct urma_jfc_obj *j = (struct urma_jfc_obj *)jfc;
	int err;

	if (jfc == NULL)
		return urma_status(urma_null("jfc", "urma_create_jfc"));
	err = softhca_destroy_cq(j->cq);
	if (err == 0)
		urma_object_free(urma_ctx_of(jfc->urma_ctx), j);
	return urma_status(err);
}

urma_status_t
urma_rearm_jfc(urma_jfc_t *jfc, bool solicited_only)
{
	if (jfc == NULL)
		return urma_status(urma_null("jfc", "urma_create_jfc"));
	return urma_status(softhca_req_notify_cq(((struct urma_jfc_obj *)jfc)->cq, solicited_only));
}

/* ---- waiting ---- */

static int64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Events that are there; how many, or a negative errno */
static int
take_events(struct urma_jfce_obj *e, uint32_t cnt, urma_jfc_t *jfc[])
{
	uint32_t got = 0;

	while (got < cnt) {
		struct softhca_cq *cq;
		void *j;
		int err = softhca_get_cq_event(e->channel, &cq, &j);

		if (err != 0)
			return got != 0 || err == -EAGAIN ? (int)got : err;
		jfc[got++] = &((struct urma_jfc_obj *)j)->pub;
	}
	return (int)got;
}

/* If no other thread runs the engine, the caller polls instead of sleeping. */
static void
wait_for_event(const struct urma_jfce_obj *e, int ms)
{
	struct pollfd p = {.fd = e->pub.fd, .events = POLLIN};
	bool manual = lib_ctx(e->channel->context)->progress != NULL;

	(void)poll(&p, 1, manual ? 0 : ms);
	if (manual)
		sched_yield();
}

int
urma_wait_jfc(urma_jfce_t *jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t *jfc[])
{
	struct urma_jfce_obj *e = (struct urma_jfce_obj *)jfce;
	int64_t until = time_out < 0 ? INT64_MAX : now_ms() + time_out;
	int got;

	if (jfce == NULL || jfc == NULL || jfc_cnt == 0 || jfc_cnt > INT32_MAX) {
		urma_fail(-EINVAL,
			  "jfce %p, %u JFCs at %p: expected a JFCE, and a place for at least one",
			  (void *)jfce, jfc_cnt, (void *)jfc);
		return -1;
	}
	for (;;) {
		int64_t left;

		got = take_events(e, jfc_cnt, jfc);
		if (got != 0)
			return got < 0 ? -1 : got;
		left = time_out < 0 ? INT32_MAX : until - now_ms();
		if (left <= 0)
			return 0;
		wait_for_event(e, time_out < 0 ? -1 : (int)left);
	}
}

void
urma_ack_jfc(urma_jfc_t *jfc[], uint32_t nevents[], uint32_t jfc_cnt)
{
	for (uint32_t i = 0; i < jfc_cnt; i++)
		softhca_ack_cq_events(((struct urma_jfc_obj *)jfc[i])->cq, nevents[i]);
}
