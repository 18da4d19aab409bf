/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion queues: creation, arming, removal of a destroyed QP's entries. Polling is in
 * lib_poll.c.
 */

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "abi_cmd.h"
#include "lib_types.h"
#include "lib_wait.h"

#define PAGE 4096u

/* Fields of every completion, and fields of those of 64 bytes only */
#define WC_FIELDS \
	(SOFTHCA_WC_EX_WITH_BYTE_LEN | SOFTHCA_WC_EX_WITH_IMM | SOFTHCA_WC_EX_WITH_QP_NUM | \
	 SOFTHCA_WC_EX_WITH_SRC_QP | SOFTHCA_WC_EX_WITH_SLID | SOFTHCA_WC_EX_WITH_SL | \
	 SOFTHCA_WC_EX_WITH_DLID_PATH_BITS)
#define WC_LARGE_FIELDS \
	(SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP | SOFTHCA_WC_EX_WITH_CVLAN | \
	 SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static int
alloc_ring(struct lib_context *ctx, struct lib_cq *cq, uint32_t log_size)
{
	size_t entries = (size_t)1 << log_size;
	size_t cqes = entries << cq->large;
	size_t bytes = cqes * sizeof(struct hca_cqe) + sizeof(struct hca_cq_record);

	cq->bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	cq->ring = lib_map(ctx, cq->bytes);
	if (cq->ring == NULL && errno == EMFILE)
		return -EMFILE;
	if (cq->ring == NULL)
		return lib_fail(
			-ENOMEM,
			"no memory for a CQ of %zu entries: %zu bytes cannot be mapped: make "
			"it smaller, or raise the memory limit (ulimit -v, cgroup)",
			entries, cq->bytes);
	cq->record = (struct hca_cq_record *)(cq->ring + cqes);
	cq->mask = (uint32_t)entries - 1;
	for (uint32_t i = 0; i < entries; i++)
		lib_cqe_at(cq, i)->owner = HCA_OWNER_HW;
	return 0;
}

static uint32_t
new_tag(struct lib_context *ctx)
{
	uint32_t tag;

	pthread_mutex_lock(&ctx->lock);
	tag = ++ctx->next_tag;
	pthread_mutex_unlock(&ctx->lock);
	return tag;
}

static int
enter_cq(struct lib_context *ctx, struct lib_cq *cq)
{
	struct lib_cq **place = &ctx->cqs[cq->pub.handle & ctx->cq_mask];
	struct lib_channel *channel = (struct lib_channel *)cq->pub.channel;
	int err = 0;

	pthread_mutex_lock(&ctx->lock);
	if (*place != NULL)
		err = lib_fail(-EIO, "the driver gave CQN %#x twice", cq->pub.handle);
	else
		*place = cq;
	if (err == 0 && channel != NULL)
		channel->users++;
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

static uint64_t
wc_fields(const struct lib_context *ctx)
{
	return WC_FIELDS | (ctx->info.flags & HCA_CAP_CQE_CLOCK ? WC_LARGE_FIELDS : 0);
}

static uint32_t
ctl_flags(const struct softhca_cq_init_attr *attr)
{
	uint32_t flags = 0;

	if ((attr->flags & SOFTHCA_IGNORE_OVERRUN) != 0)
		flags |= HCA_CTL_CQ_IGNORE_OVERRUN;
	if ((attr->wc_flags & WC_LARGE_FIELDS) != 0)
		flags |= HCA_CTL_CQ_LARGE;
	if ((attr->wc_flags & SOFTHCA_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0)
		flags |= HCA_CTL_CQ_WALL;
	return flags;
}

static int
check_cq(const struct lib_context *ctx, const struct softhca_cq_init_attr *attr)
{
	if (attr->cqe == 0 || lib_log2_up(attr->cqe) > ctx->info.log_max_cqes)
		return lib_fail(-EINVAL, "cqe = %u: expected 1 to 2^%u", attr->cqe,
				ctx->info.log_max_cqes);
	if (attr->comp_vector >= ctx->pub.num_comp_vectors)
		return lib_fail(-EINVAL, "comp_vector %u: expected 0 to %u", attr->comp_vector,
				ctx->pub.num_comp_vectors - 1);
	if ((attr->flags & ~(uint32_t)(SOFTHCA_SINGLE_THREADED | SOFTHCA_IGNORE_OVERRUN)) != 0)
		return lib_fail(-EINVAL, "CQ flags %#x: expected a set of %#x", attr->flags,
				SOFTHCA_SINGLE_THREADED | SOFTHCA_IGNORE_OVERRUN);
	if ((attr->wc_flags & ~wc_fields(ctx)) != 0)
		return lib_fail(-EOPNOTSUPP,
				"wc_flags %#" PRIx64
				": completions of this device have the fields %#" PRIx64,
				attr->wc_flags, wc_fields(ctx));
	if (attr->channel != NULL && attr->channel->context != &ctx->pub)
		return lib_fail(
			-EINVAL,
			"the completion channel is of another context: create it with the context "
			"of the CQ");
	return 0;
}

struct softhca_cq *
softhca_create_cq(struct softhca_context *pub, const struct softhca_cq_init_attr *attr)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct lib_channel *channel = (struct lib_channel *)attr->channel;
	uint32_t log_size = lib_log2_up(attr->cqe);
	struct hca_ctl_cq request;
	struct lib_cq *cq;
	int err;

	if (check_cq(ctx, attr) != 0)
		return NULL;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL) {
		lib_no_memory("a CQ", sizeof(*cq));
		return NULL;
	}
	cq->large = (attr->wc_flags & WC_LARGE_FIELDS) != 0;
	err = alloc_ring(ctx, cq, log_size);
	if (err != 0)
		goto err_free;
	cq->ctx = ctx;
	cq->tag = new_tag(ctx);
	cq->locked = (attr->flags & SOFTHCA_SINGLE_THREADED) == 0;
	cq->pub.context = pub;
	cq->pub.channel = attr->channel;
	cq->pub.cq_context = attr->cq_context;
	cq->pub.cqe = (int)(1u << log_size);
	request = (struct hca_ctl_cq){
		.addr = (uintptr_t)cq->ring,
		.log_size = log_size,
		.channel = channel != NULL ? channel->handle : HCA_CTL_NO_CHANNEL,
		.vector = attr->comp_vector,
		.tag = cq->tag,
		.flags = ctl_flags(attr),
	};
	err = LIB_CALL(ctx, CREATE_CQ, &request, &cq->pub.handle);
	if (err != 0)
		goto err_unmap;
	err = enter_cq(ctx, cq);
	if (err != 0)
		goto err_destroy;
	return &cq->pub;

err_destroy:
	lib_drop(ctx, HCA_CTL_DESTROY_CQ, cq->pub.handle);
err_unmap:
	lib_unmap(ctx, cq->ring, cq->bytes);
err_free:
	free(cq);
	errno = -err;
	return NULL;
}

/* The driver may reuse the number as soon as it is free, so it is removed from the table first. */
int
softhca_destroy_cq(struct softhca_cq *pub)
{
	struct lib_cq *cq = (struct lib_cq *)pub;
	struct lib_context *ctx = cq->ctx;
	struct lib_channel *channel = (struct lib_channel *)pub->channel;
	struct lib_cq **place = &ctx->cqs[pub->handle & ctx->cq_mask];
	int err = 0;

	pthread_mutex_lock(&ctx->lock);
	if (cq->users != 0)
		err = lib_fail(-EBUSY, "%u QPs use CQ %u: destroy them first", cq->users,
			       pub->handle);
	else if (__atomic_load_n(&cq->reader, __ATOMIC_RELAXED) != NULL)
		err = lib_fail(-EBUSY,
			       "a thread reads completions of CQ %u: it must call end_poll first",
			       pub->handle);
	else
		*place = NULL;
	pthread_mutex_unlock(&ctx->lock);
	if (err != 0)
		return err;
	err = LIB_CALL(ctx, DESTROY_CQ, &pub->handle, NULL);
	pthread_mutex_lock(&ctx->lock);
	if (err != 0)
		*place = cq;
	while (err == 0 && cq->events_got != cq->events_acked)
		pthread_cond_wait(&ctx->acked, &ctx->lock);
	if (err == 0 && channel != NULL)
		channel->users--;
	pthread_mutex_unlock(&ctx->lock);
	if (err != 0)
		return err;
	lib_unmap(ctx, cq->ring, cq->bytes);
	free(cq);
	return 0;
}

/*
 * Each arm has its own sequence number; the device fires once per number. A request for solicited
 * completions never weakens an earlier request for any completion. The fence orders the store of
 * the arm word before the caller's next poll; the device first publishes and then reads.
 */
int
softhca_req_notify_cq(struct softhca_cq *pub, int solicited_only)
{
	struct lib_cq *cq = (struct lib_cq *)pub;
	uint32_t mode = solicited_only ? HCA_CQ_ARM_SOLICITED : HCA_CQ_ARM_NEXT;

	if (pub->channel == NULL)
		return lib_fail(-EINVAL,
				"CQ %u has no completion channel: create it with one to arm it",
				pub->handle);
	lib_cq_lock(cq);
	if (mode < __atomic_load_n(&cq->arm_mode, __ATOMIC_RELAXED))
		mode = HCA_CQ_ARM_NEXT;
	__atomic_store_n(&cq->arm_mode, mode, __ATOMIC_RELAXED);
	cq->arm_seq++;
	__atomic_store_n(&cq->record->arm, hca_cpu_to_le32(HCA_CQ_ARM_MAKE(cq->arm_seq, mode)),
			 __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	lib_cq_unlock(cq);
	if (cq->ctx->progress != NULL)
		cq->ctx->progress(cq->ctx->ctl);
	return 0;
}

/* QPN 0 is never used, so poll skips these entries. */
void
lib_cq_forget(struct lib_cq *cq, uint32_t qpn)
{
	for (uint32_t i = 0; i <= cq->mask; i++) {
		struct hca_cqe *cqe = lib_cqe_at(cq, cq->consumer + i);

		if (__atomic_load_n(&cqe->owner, __ATOMIC_ACQUIRE) & HCA_OWNER_HW)
			break;
		if (hca_le32_to_cpu(cqe->my_qpn) == qpn)
			cqe->my_qpn = 0;
	}
}

/* Not of a CQ that this thread reads: it has the lock then. */
static bool
needs_lock(const struct lib_cq *cq)
{
	return cq != NULL && cq->locked && !lib_cq_is_read(cq);
}

bool
lib_cq_try(struct lib_cq *cq)
{
	return !needs_lock(cq) || lib_lock_try(&cq->lock);
}

void
lib_cq_lock(struct lib_cq *cq)
{
	if (needs_lock(cq))
		lib_lock_take(&cq->lock);
}

void
lib_cq_unlock(struct lib_cq *cq)
{
	if (needs_lock(cq))
		lib_lock_drop(&cq->lock);
}

/* Wait for one of them without holding the other: a thread that reads one may poll the other. */
void
lib_cq_lock_pair(struct lib_cq *a, struct lib_cq *b)
{
	for (;;) {
		struct lib_cq *first = a;

		lib_cq_lock(first);
		if (a == b || lib_cq_try(b))
			return;
		lib_cq_unlock(first);
		a = b;
		b = first;
	}
}

void
lib_cq_unlock_pair(struct lib_cq *a, struct lib_cq *b)
{
	lib_cq_unlock(a);
	if (b != a)
		lib_cq_unlock(b);
}

/*
 * Move completions that the device wrote before the switch to the new ring, to the slots that
 * precede those the device uses. No thread polls meanwhile.
 */
static void
change_over(struct lib_cq *cq, const struct lib_cq *fresh, uint32_t index)
{
	for (uint32_t i = cq->consumer; i != index; i++) {
		struct hca_cqe *to = lib_cqe_at(fresh, i), *from = lib_cqe_at(cq, i);

		memcpy(to, from, offsetof(struct hca_cqe, owner));
		to->owner = 0;
		memcpy(to + 1, from + 1, cq->large * sizeof(struct hca_cqe_more));
	}
	lib_unmap(cq->ctx, cq->ring, cq->bytes);
	cq->ring = fresh->ring;
	cq->record = fresh->record;
	cq->mask = fresh->mask;
	cq->bytes = fresh->bytes;
	cq->pub.cqe = (int)(fresh->mask + 1);
}

static int
resize_locked(struct lib_cq *cq, uint32_t log_size)
{
	struct lib_context *ctx = cq->ctx;
	struct hca_ctl_resize request = {
		.cqn = cq->pub.handle,
		.log_size = log_size,
		.flags = cq->large ? HCA_CTL_CQ_LARGE : 0,
	};
	struct lib_cq fresh = {.large = cq->large};
	uint32_t index;
	int err = alloc_ring(ctx, &fresh, log_size);

	if (err != 0)
		return err;
	/* the device reads the new record as soon as it has switched */
	fresh.record->consumer = hca_cpu_to_le32(cq->consumer);
	fresh.record->arm = cq->record->arm;
	request.addr = (uintptr_t)fresh.ring;
	err = LIB_CALL(ctx, RESIZE_CQ, &request, &index);
	if (err != 0) {
		lib_unmap(ctx, fresh.ring, fresh.bytes);
		return err;
	}
	change_over(cq, &fresh, index);
	return 0;
}

int
softhca_resize_cq(struct softhca_cq *pub, int cqe)
{
	struct lib_cq *cq = (struct lib_cq *)pub;
	uint32_t log_size;
	int err;

	if (cqe <= 0 || lib_log2_up((uint32_t)cqe) > cq->ctx->info.log_max_cqes)
		return lib_fail(-EINVAL, "cqe = %d: expected 1 to 2^%u", cqe,
				cq->ctx->info.log_max_cqes);
	log_size = lib_log2_up((uint32_t)cqe);
	if (lib_cq_is_read(cq))
		return lib_fail(
			-EBUSY,
			"this thread reads completions of CQ %u: end_poll comes before a resize",
			pub->handle);
	if (1u << log_size == cq->mask + 1)
		return 0;
	lib_cq_lock(cq);
	err = resize_locked(cq, log_size);
	lib_cq_unlock(cq);
	return err;
}

int
softhca_modify_cq(struct softhca_cq *pub, const struct softhca_modify_cq_attr *attr)
{
	const struct hca_ctl_moderate request = {
		.cqn = pub->handle,
		.count = attr->moderate.cq_count,
		.period_us = attr->moderate.cq_period,
	};

	if (attr->attr_mask != SOFTHCA_CQ_ATTR_MODERATE)
		return lib_fail(-EINVAL,
				"CQ attributes %#x: expected SOFTHCA_CQ_ATTR_MODERATE (%#x)",
				attr->attr_mask, SOFTHCA_CQ_ATTR_MODERATE);
	return LIB_CALL(((struct lib_cq *)pub)->ctx, MODERATE_CQ, &request, NULL);
}
