/* SPDX-License-Identifier: BSD-3-Clause */

/* Connection management: channels, ids, and the table of ids by number. */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi_service.h"
#include "lib_cm.h"

#define LOG_BUCKETS_FIRST 6u
#define LOG_BUCKETS_LAST 20u

/* ---- the table ---- */

static uint32_t
cm_bucket(const struct lib_cm *cm, uint32_t number)
{
	return (number * UINT32_C(0x9e3779b1)) >> (32 - cm->log_buckets);
}

struct lib_cm_id *
lib_cm_find(const struct lib_cm *cm, uint32_t number)
{
	struct lib_cm_id *id = cm->buckets[cm_bucket(cm, number)];

	while (id != NULL && id->number != number)
		id = id->next;
	return id;
}

static void
cm_push(struct lib_cm *cm, struct lib_cm_id *id)
{
	struct lib_cm_id **bucket = &cm->buckets[cm_bucket(cm, id->number)];

	id->next = *bucket;
	*bucket = id;
}

/* Without memory for more buckets the chains become longer. */
static void
cm_grow(struct lib_cm *cm)
{
	struct lib_cm_id **old = cm->buckets;
	uint32_t n = 1u << cm->log_buckets;
	struct lib_cm_id **grown;

	if (cm->count < n || cm->log_buckets == LOG_BUCKETS_LAST)
		return;
	grown = calloc((size_t)n * 2, sizeof(struct lib_cm_id *));
	if (grown == NULL)
		return;
	cm->buckets = grown;
	cm->log_buckets++;
	for (uint32_t i = 0; i < n; i++) {
		while (old[i] != NULL) {
			struct lib_cm_id *id = old[i];

			old[i] = id->next;
			cm_push(cm, id);
		}
	}
	free(old);
}

static void
cm_remove(struct lib_cm *cm, const struct lib_cm_id *id)
{
	struct lib_cm_id **link = &cm->buckets[cm_bucket(cm, id->number)];

	while (*link != id)
		link = &(*link)->next;
	*link = id->next;
	cm->count--;
}

void
lib_cm_link(struct lib_cm_channel *channel, struct lib_cm_id *id)
{
	id->pub.channel = &channel->pub;
	id->before = NULL;
	id->after = channel->ids;
	if (id->after != NULL)
		id->after->before = id;
	channel->ids = id;
}

void
lib_cm_unlink(struct lib_cm_id *id)
{
	struct lib_cm_channel *channel = (struct lib_cm_channel *)id->pub.channel;

	if (id->after != NULL)
		id->after->before = id->before;
	if (id->before != NULL)
		id->before->after = id->after;
	else
		channel->ids = id->after;
}

struct lib_cm_id *
lib_cm_enter(struct lib_context *ctx, struct lib_cm_channel *channel,
	     const struct softhca_cm_id *pub)
{
	struct lib_cm_id *id = lib_object_new(ctx, sizeof(*id), "an id of connection management");

	if (id == NULL)
		return NULL;
	id->pub = *pub;
	id->number = pub->number;
	lib_cm_link(channel, id);
	cm_grow(ctx->cm);
	cm_push(ctx->cm, id);
	ctx->cm->count++;
	return id;
}

/* ---- life ---- */

static struct lib_cm *
cm_new(void)
{
	struct lib_cm *cm = calloc(1, sizeof(*cm));

	if (cm == NULL)
		return NULL;
	cm->log_buckets = LOG_BUCKETS_FIRST;
	cm->buckets = calloc(1u << LOG_BUCKETS_FIRST, sizeof(struct lib_cm_id *));
	if (cm->buckets == NULL) {
		free(cm);
		return NULL;
	}
	pthread_mutex_init(&cm->lock, NULL);
	return cm;
}

/* With the first channel */
static int
cm_begin(struct lib_context *ctx)
{
	struct lib_cm *cm;

	pthread_mutex_lock(&ctx->lock);
	if (ctx->cm == NULL)
		ctx->cm = cm_new();
	cm = ctx->cm;
	pthread_mutex_unlock(&ctx->lock);
	return cm != NULL ? 0 : lib_no_memory("connection management", sizeof(*cm));
}

void
lib_cm_close(struct lib_context *ctx)
{
	if (ctx->cm == NULL)
		return;
	pthread_mutex_lock(&ctx->cm->lock);
	pthread_mutex_unlock(&ctx->cm->lock);
}

void
lib_cm_reset_lock(struct lib_context *ctx)
{
	if (ctx->cm != NULL)
		pthread_mutex_init(&ctx->cm->lock, NULL);
}

void
lib_cm_free(struct lib_context *ctx)
{
	if (ctx->cm == NULL)
		return;
	pthread_mutex_destroy(&ctx->cm->lock);
	free(ctx->cm->buckets);
	free(ctx->cm);
}

/* ---- channels ---- */

/* A daemon that has no connection management says so to the first question for an event. */
static int
cm_probe(struct lib_context *ctx, struct lib_cm_channel *channel)
{
	struct hca_ctl_cm_event event;
	int err = LIB_CALL(ctx, CM_EVENT, &channel->handle, &event);

	return err == -EAGAIN ? 0 : err;
}

struct softhca_cm_channel *
softhca_cm_create_channel(struct softhca_context *pub)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct lib_cm_channel *channel;
	struct hca_ctl_extra extra;

	if (cm_begin(ctx) != 0)
		return NULL;
	channel = lib_object_new(ctx, sizeof(*channel), "a channel of connection management");
	if (channel == NULL)
		return NULL;
	channel->pub.context = pub;
	if (LIB_CALL_EXTRA(ctx, CREATE_CHANNEL, NULL, &channel->handle, &extra) != 0)
		return lib_object_refused(ctx, channel);
	channel->pub.fd = extra.fds[0];
	lib_object_fd(channel, channel->pub.fd);
	if (cm_probe(ctx, channel) == 0)
		return &channel->pub;
	lib_drop(ctx, HCA_CTL_DESTROY_CHANNEL, channel->handle);
	return lib_object_refused(ctx, channel);
}

/* The next id of a channel that is left; after the last one, no id can come into it. */
static struct lib_cm_id *
cm_last_id(struct lib_cm *cm, struct lib_cm_channel *channel)
{
	struct lib_cm_id *id;

	pthread_mutex_lock(&cm->lock);
	channel->leaving = true;
	id = channel->ids;
	pthread_mutex_unlock(&cm->lock);
	return id;
}

int
softhca_cm_destroy_channel(struct softhca_cm_channel *pub)
{
	struct lib_cm_channel *channel = (struct lib_cm_channel *)pub;
	struct lib_context *ctx = lib_ctx(pub->context);
	struct lib_cm_id *id;
	int err;

	if (ctx->forked)
		return lib_dead(ctx);
	while ((id = cm_last_id(ctx->cm, channel)) != NULL)
		softhca_cm_destroy_id(&id->pub);
	err = LIB_CALL(ctx, DESTROY_CHANNEL, &channel->handle, NULL);
	if (err == -EIO) /* it ended with the daemon */
		err = 0;
	/* a thread that reads it wakes; one that does not leave keeps it */
	if (err == 0 && lib_event_no_readers(ctx, &channel->readers))
		lib_object_free(ctx, channel);
	return err;
}

/* ---- ids ---- */

struct softhca_cm_id *
softhca_cm_create_id(struct softhca_cm_channel *pub, enum softhca_cm_space space,
		     enum softhca_qp_type qp_type, void *user)
{
	struct lib_cm_channel *channel = (struct lib_cm_channel *)pub;
	struct lib_context *ctx = lib_ctx(pub->context);
	struct hca_ctl_cm_create request = {
		.channel = channel->handle,
		.space = space,
		.service = lib_service_of(qp_type),
	};
	struct softhca_cm_id fresh = {.user = user, .space = space};
	struct lib_cm_id *id;

	if (hca_service_info(request.service)->transport == HCA_NO_TRANSPORT) {
		lib_fail(-EINVAL, "QP type %u: ids are for RC, UC, UD, XRC_SEND and XRC_RECV QPs",
			 qp_type);
		return NULL;
	}
	if (LIB_CALL(ctx, CM_CREATE, &request, &fresh.number) != 0)
		return NULL;
	pthread_mutex_lock(&ctx->cm->lock);
	id = lib_cm_enter(ctx, channel, &fresh);
	pthread_mutex_unlock(&ctx->cm->lock);
	if (id != NULL)
		return &id->pub;
	lib_drop(ctx, HCA_CTL_CM_DESTROY, fresh.number);
	return NULL;
}

/* An id that the daemon does not have any more has ended as the program wishes. */
int
softhca_cm_destroy_id(struct softhca_cm_id *pub)
{
	struct lib_context *ctx = lib_cm_ctx(pub);
	struct lib_cm_id *id = lib_cm_id(pub);

	if (ctx->forked)
		return lib_dead(ctx);
	pthread_mutex_lock(&ctx->cm->lock);
	cm_remove(ctx->cm, id);
	lib_cm_unlink(id);
	pthread_mutex_unlock(&ctx->cm->lock);
	lib_drop(ctx, HCA_CTL_CM_DESTROY, id->number);
	lib_object_free(ctx, id);
	return 0;
}

int
softhca_cm_migrate(struct softhca_cm_id *pub, struct softhca_cm_channel *to)
{
	struct lib_context *ctx = lib_cm_ctx(pub);
	struct lib_cm_channel *channel = (struct lib_cm_channel *)to;
	struct lib_cm_id *id = lib_cm_id(pub);
	struct hca_ctl_cm_move request = {.id = id->number, .channel = channel->handle};
	int err;

	if (lib_ctx(to->context) != ctx)
		return lib_fail(
			-EINVAL,
			"the channel is of another context than id %u: move the id to a channel of "
			"its context",
			id->number);
	pthread_mutex_lock(&ctx->cm->lock);
	err = LIB_CALL(ctx, CM_MOVE, &request, NULL);
	if (err == 0) {
		lib_cm_unlink(id);
		lib_cm_link(channel, id);
	}
	pthread_mutex_unlock(&ctx->cm->lock);
	return err;
}
