/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory windows. The device decides about a binding and reports it in the completion; here only
 * requests that cannot be expressed are refused.
 */

#include <errno.h>

#include "abi_ctx.h"
#include "lib_types.h"

#define MW_ACCESS \
	(SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC | \
	 SOFTHCA_ACCESS_ZERO_BASED | SOFTHCA_ACCESS_FLUSH_GLOBAL)

/* Flags of regions that programs pass and that say nothing about a window */
#define MW_IGNORED \
	(SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_MW_BIND | SOFTHCA_ACCESS_ON_DEMAND | \
	 SOFTHCA_ACCESS_HUGETLB | SOFTHCA_ACCESS_OPTIONAL_RANGE | SOFTHCA_ACCESS_KEEP_PRIVATE)

/* Marks requests of softhca_bind_mw() in sg_list, which binds do not use. */
static struct softhca_sge from_bind_mw;

struct softhca_mw *
softhca_alloc_mw(struct softhca_pd *pd, uint32_t type)
{
	struct lib_context *ctx = lib_ctx(pd->context);
	const struct hca_ctl_mw request = {.pdn = pd->handle, .type = type};
	struct lib_mw *mw = lib_object_new(ctx, sizeof(*mw), "a window");

	if (mw == NULL)
		return NULL;
	if (LIB_CALL(ctx, ALLOC_MW, &request, &mw->pub.rkey) != 0)
		return lib_object_refused(ctx, mw);
	mw->pub.context = pd->context;
	mw->pub.pd = pd;
	mw->ctx = ctx;
	mw->pd = pd;
	mw->pub.handle = HCA_KEY_INDEX(mw->pub.rkey);
	mw->pub.type = type;
	return &mw->pub;
}

int
softhca_dealloc_mw(struct softhca_mw *mw)
{
	struct lib_context *ctx = ((struct lib_mw *)mw)->ctx;
	int err = LIB_CALL(ctx, DEALLOC_MW, &mw->rkey, NULL);

	if (err == 0)
		lib_object_free(ctx, mw);
	return err;
}

/* Whether window and region are of the QP's PD is for the device to find, in a completion. */
int
lib_mw_judge(const struct softhca_send_wr *wr)
{
	const struct softhca_mw_bind_info *info = &wr->bind_mw.bind_info;
	const struct softhca_mw *mw = wr->bind_mw.mw;

	if (mw == NULL)
		return lib_fail(-EINVAL,
				"mw of the bind is NULL: expected a window of softhca_alloc_mw()");
	if ((mw->type == SOFTHCA_MW_TYPE_1) != (wr->sg_list == &from_bind_mw))
		return lib_fail(-EINVAL, "a window of type %u: %s binds it", mw->type,
				mw->type == SOFTHCA_MW_TYPE_1 ? "bind_mw" : "post_send");
	if (info->mr == NULL && info->length != 0)
		return lib_fail(
			-EINVAL,
			"mr of the bind is NULL and its length %llu: name a region, or 0 bytes to "
			"end the window",
			(unsigned long long)info->length);
	if (info->mr != NULL && ((const struct lib_mr *)info->mr)->imported)
		return lib_fail(
			-EINVAL,
			"region %#x was imported: bind the window in the context that registered it",
			info->mr->handle);
	if ((info->mw_access_flags & ~(uint32_t)(MW_ACCESS | MW_IGNORED)) != 0)
		return lib_fail(-EINVAL, "access flags %#x of a window: expected a set of %#x",
				info->mw_access_flags, MW_ACCESS | MW_IGNORED);
	return 0;
}

/*
 * The window says which one it is, the request only its new tag: programs pass the tag alone. The
 * window has its new key from now on, as after bind_mw().
 */
void
lib_mw_build(struct hca_bind_unit *unit, const struct softhca_send_wr *wr)
{
	const struct softhca_mw_bind_info *info = &wr->bind_mw.bind_info;
	struct softhca_mw *mw = wr->bind_mw.mw;
	uint32_t key = mw->rkey ^ HCA_KEY_TAG(mw->rkey ^ wr->bind_mw.rkey);

	unit->access = hca_cpu_to_le32(info->mw_access_flags & MW_ACCESS);
	unit->old_key = hca_cpu_to_le32(mw->rkey);
	unit->new_key = hca_cpu_to_le32(key);
	unit->lkey = info->mr != NULL ? hca_cpu_to_le32(info->mr->lkey) : 0;
	unit->addr = hca_cpu_to_le64(info->addr);
	unit->length = hca_cpu_to_le64(info->length);
	mw->rkey = key;
}

int
softhca_bind_mw(struct softhca_qp *qp, struct softhca_mw *mw, struct softhca_mw_bind *mw_bind)
{
	struct softhca_send_wr wr = {
		.wr_id = mw_bind->wr_id,
		.sg_list = &from_bind_mw,
		.opcode = SOFTHCA_WR_BIND_MW,
		.send_flags = mw_bind->send_flags,
		.bind_mw = {mw, softhca_inc_rkey(mw->rkey), mw_bind->bind_info},
	};
	struct softhca_send_wr *bad;

	return softhca_post_send(qp, &wr, &bad);
}
