/* SPDX-License-Identifier: BSD-3-Clause */

/* Contexts: creation, destruction, and the objects in them. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib_cm.h"
#include "lib_doorbell.h"

/* Header of an object's memory. */
struct lib_object {
	_Alignas(16) struct lib_object *next;
	struct lib_object *prev;
	int fd; /* closed with the object; -1: none */
};

void *
lib_object_new(struct lib_context *ctx, size_t bytes, const char *what)
{
	struct lib_object *o = calloc(1, sizeof(*o) + bytes);

	if (o == NULL) {
		lib_no_memory(what, sizeof(*o) + bytes);
		return NULL;
	}
	o->fd = -1;
	pthread_mutex_lock(&ctx->lock);
	o->next = ctx->objects;
	if (o->next != NULL)
		o->next->prev = o;
	ctx->objects = o;
	pthread_mutex_unlock(&ctx->lock);
	return o + 1;
}

void
lib_object_free(struct lib_context *ctx, void *object)
{
	struct lib_object *o = (struct lib_object *)object - 1;

	pthread_mutex_lock(&ctx->lock);
	if (o->next != NULL)
		o->next->prev = o->prev;
	if (o->prev != NULL)
		o->prev->next = o->next;
	else
		ctx->objects = o->next;
	pthread_mutex_unlock(&ctx->lock);
	if (o->fd >= 0)
		close(o->fd);
	free(o);
}

void *
lib_object_refused(struct lib_context *ctx, void *object)
{
	lib_object_free(ctx, object);
	return NULL;
}

void
lib_object_fd(void *object, int fd)
{
	struct lib_object *o = (struct lib_object *)object - 1;

	o->fd = fd;
}

static int
alloc_tables(struct lib_context *ctx)
{
	size_t qps, cqs, srqs;

	if (ctx->info.log_num_qps > 23 || ctx->info.log_num_cqs > 23 || ctx->info.log_num_srqs > 23)
		return lib_fail(
			-EIO,
			"the driver reports 2^%u QPs, 2^%u CQs and 2^%u SRQs, more than 2^23: "
			"library and daemon must be of compatible releases",
			ctx->info.log_num_qps, ctx->info.log_num_cqs, ctx->info.log_num_srqs);
	qps = (size_t)1 << ctx->info.log_num_qps;
	cqs = (size_t)1 << ctx->info.log_num_cqs;
	srqs = (size_t)1 << ctx->info.log_num_srqs;
	ctx->srq_mask = (uint32_t)srqs - 1;
	ctx->srqs = calloc(srqs, sizeof(struct lib_srq *));
	ctx->qp_mask = (uint32_t)qps - 1;
	ctx->cq_mask = (uint32_t)cqs - 1;
	ctx->qps = calloc(qps, sizeof(struct lib_qp *));
	ctx->cqs = calloc(cqs, sizeof(struct lib_cq *));
	if (ctx->qps == NULL || ctx->cqs == NULL || ctx->srqs == NULL)
		return lib_no_memory("the tables of a context",
				     (qps + cqs + srqs) * sizeof(void *));
	return 0;
}

/* Pipelines: 1, 2, 4, 8 or 16; 0: of a device that does not say. */
static int
init_uars(struct lib_context *ctx, volatile void *page)
{
	uint32_t pipes = ctx->info.num_pipes != 0 ? ctx->info.num_pipes : 1;
	size_t bytes;

	if (pipes > HCA_UAR_PIPES_MAX || (pipes & (pipes - 1)) != 0)
		return lib_fail(-EIO, "the driver reports %u pipelines", pipes);
	lib_uar_init(&ctx->uar, page, ctx->info.uar_page, pipes, 0);
	if (pipes == 1)
		return 0;
	bytes = (pipes - 1) * sizeof(*ctx->more_uars);
	ctx->more_uars = aligned_alloc(HCA_CACHE_LINE, bytes);
	if (ctx->more_uars == NULL)
		return lib_no_memory("doorbells", bytes);
	memset(ctx->more_uars, 0, bytes);
	for (uint32_t i = 1; i < pipes; i++)
		lib_uar_init(&ctx->more_uars[i - 1], page, ctx->info.uar_page, pipes, i);
	return 0;
}

/* -ENOENT: the worker never sleeps. */
static int
init_sleep(struct lib_context *ctx)
{
	int err = 0;

	for (uint32_t i = 0; ctx->ops->sleep != NULL && i < ctx->uar.pipes; i++) {
		struct lib_uar *uar = lib_uar_of(ctx, i);

		err = ctx->ops->sleep(ctx->ctl, i, &uar->sleep_word, &uar->kick_fd);
		if (err != 0 && err != -ENOENT)
			return err;
	}
	return 0;
}

int
softhca_context_create(const struct softhca_ctl_ops *ops, void *arg, const char *name,
		       struct softhca_context **out)
{
	struct lib_context *ctx = aligned_alloc(HCA_CACHE_LINE, sizeof(*ctx));
	struct hca_ctl_extra extra;
	volatile void *page;
	int err;

	if (ctx == NULL)
		return lib_no_memory("a context", sizeof(*ctx));
	memset(ctx, 0, sizeof(*ctx));
	ctx->ops = ops;
	ctx->ctl = arg;
	ctx->progress = ops->progress;
	ctx->after_posts = ops->posted != NULL ? ops->posted : ops->progress;
	ctx->features = ops->features != NULL ? ops->features(arg) : HCA_CTL_FEATURES;
	snprintf(ctx->name, sizeof(ctx->name), "%s", name);
	ctx->pub.name = ctx->name;
	ctx->pub.async_fd = -1;
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->acked, NULL);
	err = LIB_CALL(ctx, INFO, NULL, &ctx->info);
	if (err != 0)
		goto err_free;
	ctx->pub.num_comp_vectors = ctx->info.num_vectors != 0 ? ctx->info.num_vectors : 1;
	err = alloc_tables(ctx);
	if (err != 0)
		goto err_tables;
	page = ops->uar(arg);
	if (page == NULL) {
		err = lib_fail(
			-EIO,
			"the driver gave no doorbell page: open the device again; the log of the "
			"daemon has the reason");
		goto err_tables;
	}
	err = init_uars(ctx, page);
	if (err != 0)
		goto err_tables;
	err = init_sleep(ctx);
	if (err != 0)
		goto err_tables;
	err = LIB_CALL_EXTRA(ctx, ASYNC_FD, NULL, NULL, &extra);
	if (err != 0)
		goto err_tables;
	ctx->pub.async_fd = extra.fds[0];
	err = lib_life_begin(ctx);
	if (err != 0)
		goto err_async;
	*out = &ctx->pub;
	return 0;

err_async:
	close(ctx->pub.async_fd);
err_tables:
	free(ctx->more_uars);
	free(ctx->srqs);
	free(ctx->cqs);
	free(ctx->qps);
err_free:
	free(ctx);
	return err;
}

/* Threads that run the engine while they wait must leave before the channel is closed. */
static void
begin_close(struct lib_context *ctx)
{
	pthread_mutex_lock(&ctx->lock);
	__atomic_store_n(&ctx->closing, true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&ctx->lock);
	if (ctx->progress != NULL)
		lib_event_end(ctx);
	lib_cm_close(ctx);
}

/* A QP of the table, and those of the same number */
static void
free_qps(struct lib_qp *qp)
{
	while (qp != NULL) {
		struct lib_qp *next = qp->next;

		lib_qp_free(qp);
		qp = next;
	}
}

void
lib_context_free(struct lib_context *ctx)
{
	if (ctx->pub.async_fd >= 0)
		close(ctx->pub.async_fd);
	for (uint32_t i = 0; i <= ctx->qp_mask; i++)
		free_qps(ctx->qps[i]);
	for (uint32_t i = 0; i <= ctx->cq_mask; i++) {
		if (ctx->cqs[i] != NULL) {
			lib_unmap(ctx, ctx->cqs[i]->ring, ctx->cqs[i]->bytes);
			free(ctx->cqs[i]);
		}
	}
	for (uint32_t i = 0; i <= ctx->srq_mask; i++)
		if (ctx->srqs[i] != NULL)
			lib_srq_free(ctx->srqs[i]);
	while (ctx->objects != NULL)
		lib_object_free(ctx, ctx->objects + 1);
	lib_cm_free(ctx);
	pthread_cond_destroy(&ctx->acked);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx->more_uars);
	free(ctx->srqs);
	free(ctx->cqs);
	free(ctx->qps);
	free(ctx);
}

int
softhca_close(struct softhca_context *pub)
{
	struct lib_context *ctx = lib_ctx(pub);

	if (ctx->forked)
		return lib_dead(ctx);
	lib_life_end(ctx);
	begin_close(ctx);
	if (ctx->ops->close(ctx->ctl) != 0)
		lib_share_abandon(ctx);
	lib_share_forget(ctx);
	if (!lib_event_leave(ctx))
		lib_context_free(ctx);
	return 0;
}

unsigned int
softhca_progress(struct softhca_context *pub)
{
	struct lib_context *ctx = lib_ctx(pub);

	return ctx->progress != NULL ? ctx->progress(ctx->ctl) : 0;
}
