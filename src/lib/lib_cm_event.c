/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Events of connection management: a record in the channel's pipe says that one waits, CM_EVENT
 * fetches it. After the end of the device the library tells each id that has not been told.
 */

#include <errno.h>
#include <string.h>

#include "lib_cm.h"

#define NOTHING 1 /* the event concerns no id of the program: look for another */

static struct softhca_cm_param
cm_param_of(const struct hca_ctl_cm_param *from)
{
	return (struct softhca_cm_param){
		.private_data_len = from->private_len,
		.responder_resources = from->responder_resources,
		.initiator_depth = from->initiator_depth,
		.flow_control = from->flow_control,
		.retry_count = from->retry_count,
		.rnr_retry_count = from->rnr_retry_count,
		.srq = from->srq,
		.qp_num = from->qpn,
		.qkey = from->qkey,
		.sidr_status = from->sidr_status,
		.ece_vendor = from->ece_vendor,
		.ece_options = from->ece_options,
	};
}

static void
cm_fill_event(const struct hca_ctl_cm_event *from, struct softhca_cm_event *to)
{
	to->type = from->type;
	to->status = from->status;
	to->group = from->group;
	to->param = cm_param_of(&from->param);
	to->ah_attr = (struct softhca_ah_attr){
		.flow_label = from->flow_label,
		.sgid_index = (uint8_t)from->gid_index,
		.hop_limit = from->hop_limit,
		.traffic_class = from->traffic_class,
		.sl = from->sl,
		.port_num = 1,
		.is_global = 1,
	};
	memcpy(to->ah_attr.dgid.raw, from->dgid, sizeof(from->dgid));
	_Static_assert(sizeof(to->data) == sizeof(from->param.private), "private data");
	memcpy(to->data, from->param.private, sizeof(to->data));
	if (to->param.private_data_len > sizeof(to->data))
		to->param.private_data_len = sizeof(to->data);
	to->param.private_data = to->param.private_data_len != 0 ? to->data : NULL;
}

/* The id of a request; NULL: the peer is refused, because the listener has gone, or with err. */
static struct lib_cm_id *
cm_take_request(struct lib_context *ctx, const struct hca_ctl_cm_event *from, int *err)
{
	const struct lib_cm_id *listener = lib_cm_find(ctx->cm, from->listener);
	struct lib_cm_channel *channel;
	struct softhca_cm_id fresh;
	struct lib_cm_id *id = NULL;

	*err = NOTHING;
	if (listener != NULL) {
		channel = (struct lib_cm_channel *)listener->pub.channel;
		fresh = listener->pub;
		fresh.number = from->id;
		if (!channel->leaving)
			id = lib_cm_enter(ctx, channel, &fresh);
		if (!channel->leaving && id == NULL)
			*err = -ENOMEM;
	}
	if (id == NULL)
		lib_drop(ctx, HCA_CTL_CM_DESTROY, from->id);
	return id;
}

/* The lock is held. 0, NOTHING or a negative errno. */
static int
cm_take(struct lib_context *ctx, const struct hca_ctl_cm_event *from, struct softhca_cm_event *to)
{
	struct lib_cm_id *id;
	int err = NOTHING;

	memset(to, 0, sizeof(*to));
	if (from->type == SOFTHCA_CM_CONNECT_REQUEST) {
		id = cm_take_request(ctx, from, &err);
		if (id != NULL)
			to->listener = &lib_cm_find(ctx->cm, from->listener)->pub;
	} else {
		id = lib_cm_find(ctx->cm, from->id);
	}
	if (id == NULL)
		return err;
	if (from->type == SOFTHCA_CM_DEVICE_REMOVAL) {
		__atomic_store_n(&ctx->cm->dead, true, __ATOMIC_RELAXED);
		if (id->told)
			return NOTHING;
		id->told = true;
	}
	to->id = &id->pub;
	cm_fill_event(from, to);
	return 0;
}

/*
 * 0, NOTHING or a negative errno; -EAGAIN: another thread was faster, or the event's id has gone.
 * softhca_close() ends the control channel between two calls, not in one (lib_cm_close()).
 */
static int
cm_fetch(struct lib_context *ctx, const struct lib_cm_channel *channel, struct softhca_cm_event *to)
{
	struct hca_ctl_cm_event from;
	int err;

	pthread_mutex_lock(&ctx->cm->lock);
	if (__atomic_load_n(&ctx->closing, __ATOMIC_RELAXED))
		err = lib_fail(-EIO, LIB_CLOSING);
	else
		err = LIB_CALL(ctx, CM_EVENT, &channel->handle, &from);
	if (err == 0)
		err = cm_take(ctx, &from, to);
	pthread_mutex_unlock(&ctx->cm->lock);
	return err;
}

/* Report the end of the device to an id of the channel that has not been told. */
static int
cm_tell_removal(struct lib_context *ctx, const struct lib_cm_channel *channel,
		struct softhca_cm_event *to)
{
	struct lib_cm_id *id;

	pthread_mutex_lock(&ctx->cm->lock);
	id = channel->ids;
	while (id != NULL && id->told)
		id = id->after;
	if (id != NULL) {
		id->told = true;
		*to = (struct softhca_cm_event){.type = SOFTHCA_CM_DEVICE_REMOVAL, .id = &id->pub};
	}
	pthread_mutex_unlock(&ctx->cm->lock);
	return id != NULL ? 0 : lib_dead(ctx);
}

static bool
cm_is_leaving(struct lib_context *ctx, const struct lib_cm_channel *channel)
{
	bool leaving;

	pthread_mutex_lock(&ctx->cm->lock);
	leaving = channel->leaving;
	pthread_mutex_unlock(&ctx->cm->lock);
	return leaving || __atomic_load_n(&ctx->closing, __ATOMIC_RELAXED);
}

/* Of a dead device: the events that came before its end, then the end. */
static int
cm_last_event(struct lib_context *ctx, const struct lib_cm_channel *channel,
	      struct softhca_cm_event *to)
{
	int err;

	do {
		err = cm_fetch(ctx, channel, to);
	} while (err == NOTHING);
	if (err == 0 || err == -ENOMEM)
		return err;
	if (cm_is_leaving(ctx, channel))
		return lib_fail(-EIO,
				"channel %u is being destroyed: a thread called "
				"softhca_cm_destroy_channel()",
				channel->handle);
	return cm_tell_removal(ctx, channel, to);
}

static bool
cm_is_dead(const struct lib_context *ctx)
{
	return __atomic_load_n(&ctx->dead, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&ctx->cm->dead, __ATOMIC_RELAXED);
}

static int
cm_next_event(struct lib_context *ctx, const struct lib_cm_channel *channel,
	      struct softhca_cm_event *to)
{
	struct hca_ctl_event record;
	int err;

	do {
		if (cm_is_dead(ctx))
			return cm_last_event(ctx, channel, to);
		err = lib_event_read(ctx, channel->pub.fd, &record);
		if (err == 0)
			err = cm_fetch(ctx, channel, to);
		else if (err != -EIO)
			return err;
	} while (err == NOTHING || err == -EAGAIN);
	/* the pipe has ended, or the daemon does not answer */
	if ((err == -EIO || err == -EOPNOTSUPP) && !cm_is_leaving(ctx, channel))
		return cm_tell_removal(ctx, channel, to);
	return err;
}

int
softhca_cm_get_event(struct softhca_cm_channel *pub, struct softhca_cm_event *event)
{
	struct lib_cm_channel *channel = (struct lib_cm_channel *)pub;
	struct lib_context *ctx = lib_ctx(pub->context);
	int err;

	if (ctx->forked)
		return lib_dead(ctx);
	err = lib_event_begin_wait(ctx, &channel->readers);
	if (err != 0)
		return err;
	err = cm_next_event(ctx, channel, event);
	lib_event_end_wait(ctx, &channel->readers);
	return err;
}
