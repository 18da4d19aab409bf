/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion channels and asynchronous events: struct hca_ctl_event records read from pipes. With
 * manual progress, waiting means running the engine.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib_types.h"

#define LEAVE_SECONDS 2 /* waiting threads wake at once when their channels end */

/* ---- threads that wait ---- */

int
lib_event_begin_wait(struct lib_context *ctx, uint32_t *readers)
{
	int err = 0;

	pthread_mutex_lock(&ctx->lock);
	if (ctx->closing) {
		err = lib_fail(-EIO, LIB_CLOSING);
	} else {
		ctx->readers++;
		if (readers != NULL)
			++*readers;
	}
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

void
lib_event_end_wait(struct lib_context *ctx, uint32_t *readers)
{
	bool last, left;

	pthread_mutex_lock(&ctx->lock);
	last = --ctx->readers == 0;
	left = last && ctx->left;
	if (readers != NULL && --*readers == 0)
		last = true;
	if (last)
		pthread_cond_broadcast(&ctx->acked);
	pthread_mutex_unlock(&ctx->lock);
	if (left)
		lib_context_free(ctx);
}

bool
lib_event_no_readers(struct lib_context *ctx, const uint32_t *readers)
{
	struct timespec until;
	bool none;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LEAVE_SECONDS;
	pthread_mutex_lock(&ctx->lock);
	while (*readers != 0 && err == 0)
		err = pthread_cond_clockwait(&ctx->acked, &ctx->lock, CLOCK_MONOTONIC, &until);
	none = *readers == 0;
	pthread_mutex_unlock(&ctx->lock);
	return none;
}

void
lib_event_end(struct lib_context *ctx)
{
	lib_event_no_readers(ctx, &ctx->readers);
}

bool
lib_event_leave(struct lib_context *ctx)
{
	bool left;

	if (lib_event_no_readers(ctx, &ctx->readers))
		return false;
	pthread_mutex_lock(&ctx->lock);
	left = ctx->readers != 0;
	ctx->left = left;
	pthread_mutex_unlock(&ctx->lock);
	return left;
}

/* ---- channels ---- */

struct softhca_comp_channel *
softhca_create_comp_channel(struct softhca_context *pub)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct lib_channel *channel = lib_object_new(ctx, sizeof(*channel), "a completion channel");
	struct hca_ctl_extra extra;

	if (channel == NULL)
		return NULL;
	channel->pub.context = pub;
	if (LIB_CALL_EXTRA(ctx, CREATE_CHANNEL, NULL, &channel->handle, &extra) != 0)
		return lib_object_refused(ctx, channel);
	channel->pub.fd = extra.fds[0];
	lib_object_fd(channel, channel->pub.fd);
	return &channel->pub;
}

int
softhca_destroy_comp_channel(struct softhca_comp_channel *pub)
{
	struct lib_channel *channel = (struct lib_channel *)pub;
	struct lib_context *ctx = lib_ctx(pub->context);
	uint32_t users;
	int err;

	pthread_mutex_lock(&ctx->lock);
	users = channel->users;
	pthread_mutex_unlock(&ctx->lock);
	if (users != 0)
		return lib_fail(-EBUSY, "%u CQs use the completion channel: destroy them first",
				users);
	err = LIB_CALL(ctx, DESTROY_CHANNEL, &channel->handle, NULL);
	/* a thread that reads it wakes; one that does not leave keeps it */
	if (err == 0 && lib_event_no_readers(ctx, &channel->readers))
		lib_object_free(ctx, channel);
	return err;
}

/* ---- reading ---- */

/*
 * A read that does not wait although the descriptor is blocking: another thread may take the event
 * that poll() has seen, and no thread would run the engine. Where the kernel does not permit it:
 * poll() and read().
 */
static ssize_t
read_ready(int fd, struct hca_ctl_event *event)
{
	struct iovec iov = {event, sizeof(*event)};
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	ssize_t n;

	do {
		n = vmsplice(fd, &iov, 1, SPLICE_F_NONBLOCK);
	} while (n < 0 && errno == EINTR);
	if (n >= 0 || (errno != ENOSYS && errno != EPERM))
		return n;
	if (poll(&ready, 1, 0) != 0)
		return read(fd, event, sizeof(*event));
	errno = EAGAIN;
	return -1;
}

/* Run the engine until there is an event; yield after rounds without work. */
static ssize_t
read_with_progress(struct lib_context *ctx, int fd, struct hca_ctl_event *event)
{
	bool wait = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;

	while (!__atomic_load_n(&ctx->closing, __ATOMIC_RELAXED)) {
		unsigned int work = ctx->progress(ctx->ctl);
		ssize_t n = read_ready(fd, event);

		if (n >= 0 || errno != EAGAIN || !wait)
			return n;
		if (work == 0)
			sched_yield();
	}
	return 0;
}

/*
 * The write end is closed. If this program has not done that, the daemon is gone: report that once,
 * after all earlier events.
 */
static int
channel_ended(struct lib_context *ctx, int fd, struct hca_ctl_event *event)
{
	if (ctx->ops->watch_fd == NULL || fd != ctx->pub.async_fd ||
	    __atomic_load_n(&ctx->closing, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(&ctx->told, true, __ATOMIC_RELAXED))
		return lib_fail(
			-EIO,
			"the event channel has ended with its context, or with the daemon: open "
			"the device again");
	*event = (struct hca_ctl_event){.type = HCA_EVENT_LOCAL_CATAS, .object = 1};
	return 0;
}

/* Writes of the size of a record to a pipe are atomic. */
int
lib_event_read(struct lib_context *ctx, int fd, struct hca_ctl_event *event)
{
	ssize_t n;

	if (ctx->forked)
		return lib_dead(ctx);
	n = ctx->progress != NULL ? read_with_progress(ctx, fd, event)
				  : read(fd, event, sizeof(*event));
	if (n == (ssize_t)sizeof(*event))
		return 0;
	if (n < 0 && errno == EINTR)
		return lib_fail(-EINTR, "a signal came before an event: call again");
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return lib_fail(-EAGAIN, "no event: wait until the descriptor is readable");
	return channel_ended(ctx, fd, event);
}

/* Count an event for its CQ; NULL: it was destroyed. The context's lock is held. */
static struct lib_cq *
event_cq(struct lib_context *ctx, const struct hca_ctl_event *event)
{
	struct lib_cq *cq = ctx->cqs[event->object & ctx->cq_mask];

	if (cq == NULL || cq->pub.handle != event->object || cq->tag != event->tag)
		return NULL;
	cq->events_got++;
	return cq;
}

static struct lib_cq *
take_cq_event(struct lib_context *ctx, const struct hca_ctl_event *event)
{
	struct lib_cq *cq;

	pthread_mutex_lock(&ctx->lock);
	cq = event_cq(ctx, event);
	if (cq != NULL)
		__atomic_store_n(&cq->arm_mode, HCA_CQ_ARM_NONE, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&ctx->lock);
	return cq;
}

/* The CQ stays until the event is acknowledged, the context until the thread has left. */
int
softhca_get_cq_event(struct softhca_comp_channel *pub, struct softhca_cq **out, void **cq_context)
{
	struct lib_channel *channel = (struct lib_channel *)pub;
	struct lib_context *ctx = lib_ctx(pub->context);
	struct hca_ctl_event event;
	struct lib_cq *cq = NULL;
	int err = lib_event_begin_wait(ctx, &channel->readers);

	if (err != 0)
		return err;
	while (err == 0 && cq == NULL) {
		err = lib_event_read(ctx, pub->fd, &event);
		if (err == 0)
			cq = take_cq_event(ctx, &event);
	}
	if (cq != NULL) {
		*out = &cq->pub;
		if (cq_context != NULL)
			*cq_context = cq->pub.cq_context;
	}
	lib_event_end_wait(ctx, &channel->readers);
	return err;
}

void
softhca_ack_cq_events(struct softhca_cq *pub, unsigned int nevents)
{
	struct lib_cq *cq = (struct lib_cq *)pub;
	struct lib_context *ctx = cq->ctx;

	pthread_mutex_lock(&ctx->lock);
	cq->events_acked += nevents;
	pthread_cond_broadcast(&ctx->acked);
	pthread_mutex_unlock(&ctx->lock);
}

enum event_element {
	ELEMENT_PORT,
	ELEMENT_CQ,
	ELEMENT_QP,
	ELEMENT_SRQ,
};

struct event_kind {
	uint8_t type; /* enum hca_event */
	uint8_t public_type;
	uint8_t element;
};

static const struct event_kind event_kinds[] = {
	{HCA_EVENT_PATH_MIG, SOFTHCA_EVENT_PATH_MIG, ELEMENT_QP},
	{HCA_EVENT_COMM_EST, SOFTHCA_EVENT_COMM_EST, ELEMENT_QP},
	{HCA_EVENT_SQ_DRAINED, SOFTHCA_EVENT_SQ_DRAINED, ELEMENT_QP},
	{HCA_EVENT_CQ_ERROR, SOFTHCA_EVENT_CQ_ERR, ELEMENT_CQ},
	{HCA_EVENT_WQ_CATAS, SOFTHCA_EVENT_QP_FATAL, ELEMENT_QP},
	{HCA_EVENT_PATH_MIG_FAILED, SOFTHCA_EVENT_PATH_MIG_ERR, ELEMENT_QP},
	{HCA_EVENT_LOCAL_CATAS, SOFTHCA_EVENT_DEVICE_FATAL, ELEMENT_PORT},
	{HCA_EVENT_PORT_CHANGE, SOFTHCA_EVENT_PORT_ERR, ELEMENT_PORT},
	{HCA_EVENT_WQ_INVAL_REQ, SOFTHCA_EVENT_QP_REQ_ERR, ELEMENT_QP},
	{HCA_EVENT_WQ_ACCESS, SOFTHCA_EVENT_QP_ACCESS_ERR, ELEMENT_QP},
	{HCA_EVENT_SRQ_CATAS, SOFTHCA_EVENT_SRQ_ERR, ELEMENT_SRQ},
	{HCA_EVENT_SRQ_LIMIT, SOFTHCA_EVENT_SRQ_LIMIT_REACHED, ELEMENT_SRQ},
	{HCA_CTL_EVENT_PKEY_CHANGE, SOFTHCA_EVENT_PKEY_CHANGE, ELEMENT_PORT},
	{HCA_CTL_EVENT_GID_CHANGE, SOFTHCA_EVENT_GID_CHANGE, ELEMENT_PORT},
	{HCA_EVENT_LAST_WQE, SOFTHCA_EVENT_QP_LAST_WQE_REACHED, ELEMENT_QP},
};

/* Fill in the object and count the event; false: it was destroyed. The context's lock is held. */
static bool
find_element(struct lib_context *ctx, const struct event_kind *kind,
	     const struct hca_ctl_event *event, struct softhca_async_event *out)
{
	struct lib_srq *srq;
	struct lib_cq *cq;
	struct lib_qp *qp;

	switch (kind->element) {
	case ELEMENT_SRQ:
		srq = lib_find_srq(ctx, event->object);
		if (srq == NULL)
			return false;
		srq->events_got++;
		out->element.srq = &srq->pub;
		return true;
	case ELEMENT_CQ:
		cq = event_cq(ctx, event);
		if (cq == NULL)
			return false;
		out->element.cq = &cq->pub;
		return true;
	case ELEMENT_QP:
		qp = lib_find_qp(ctx, event->object);
		if (qp == NULL)
			return false;
		qp->events_got++;
		out->element.qp = &qp->pub;
		return true;
	default:
		out->element.port_num = (int)event->object;
		return true;
	}
}

static bool
translate_event(struct lib_context *ctx, const struct hca_ctl_event *event,
		struct softhca_async_event *out)
{
	bool known = false;

	for (size_t i = 0; i < sizeof(event_kinds) / sizeof(event_kinds[0]); i++) {
		const struct event_kind *kind = &event_kinds[i];

		if (kind->type != event->type)
			continue;
		pthread_mutex_lock(&ctx->lock);
		known = find_element(ctx, kind, event, out);
		pthread_mutex_unlock(&ctx->lock);
		out->event_type = kind->public_type;
		break;
	}
	if (event->type == HCA_EVENT_PORT_CHANGE && event->subtype == HCA_PORT_ACTIVE)
		out->event_type = SOFTHCA_EVENT_PORT_ACTIVE;
	if (event->type == HCA_EVENT_LOCAL_CATAS)
		__atomic_store_n(&ctx->dead, true, __ATOMIC_RELAXED);
	return known;
}

int
softhca_get_async_event(struct softhca_context *pub, struct softhca_async_event *out)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct hca_ctl_event event;
	int err = lib_event_begin_wait(ctx, NULL);

	if (err != 0)
		return err;
	do {
		err = lib_event_read(ctx, pub->async_fd, &event);
	} while (err == 0 && !translate_event(ctx, &event, out));
	lib_event_end_wait(ctx, NULL);
	return err;
}

void
softhca_ack_async_event(struct softhca_async_event *event)
{
	struct lib_context *ctx;
	uint32_t *acked;

	switch (event->event_type) {
	case SOFTHCA_EVENT_CQ_ERR:
		ctx = ((struct lib_cq *)event->element.cq)->ctx;
		acked = &((struct lib_cq *)event->element.cq)->events_acked;
		break;
	case SOFTHCA_EVENT_SRQ_ERR:
	case SOFTHCA_EVENT_SRQ_LIMIT_REACHED:
		ctx = ((struct lib_srq *)event->element.srq)->ctx;
		acked = &((struct lib_srq *)event->element.srq)->events_acked;
		break;
	case SOFTHCA_EVENT_QP_FATAL:
	case SOFTHCA_EVENT_QP_REQ_ERR:
	case SOFTHCA_EVENT_QP_ACCESS_ERR:
	case SOFTHCA_EVENT_COMM_EST:
	case SOFTHCA_EVENT_SQ_DRAINED:
	case SOFTHCA_EVENT_PATH_MIG:
	case SOFTHCA_EVENT_PATH_MIG_ERR:
	case SOFTHCA_EVENT_QP_LAST_WQE_REACHED:
		ctx = lib_ctx(event->element.qp->context);
		acked = &((struct lib_qp *)event->element.qp)->events_acked;
		break;
	default:
		return;
	}
	pthread_mutex_lock(&ctx->lock);
	++*acked;
	pthread_cond_broadcast(&ctx->acked);
	pthread_mutex_unlock(&ctx->lock);
}
