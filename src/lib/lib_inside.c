/* SPDX-License-Identifier: BSD-3-Clause */

#include "lib_inside.h"

#include "lib_doorbell.h"
#include "lib_wait.h"

static int
doorbell_take(struct lib_context *ctx, uint32_t *number)
{
	return lib_doorbell_take(ctx, &ctx->uar, number);
}

static void
doorbell_fill(struct lib_uar *uar, uint32_t number, uint64_t word)
{
	lib_doorbell_fill(uar, number, word);
}

static void
wait_empty(void)
{
	lib_wait_empty();
}

static void
wait_over(void)
{
	lib_wait_over();
}

const struct lib_inside *
softhca_inside(void)
{
	static const struct lib_inside inside = {
		.bytes = sizeof(inside),
		.context_bytes = sizeof(struct lib_context),
		.failed = lib_fail,
		.reason = lib_reason,
		.call = lib_call,
		.needs = lib_needs,
		.dead = lib_dead,
		.map = lib_map,
		.unmap = lib_unmap,
		.doorbell_take = doorbell_take,
		.doorbell_fill = doorbell_fill,
		.doorbell_mark = lib_doorbell_mark,
		.cq_lock = lib_cq_lock,
		.cq_unlock = lib_cq_unlock,
		.wait_empty = wait_empty,
		.wait_over = wait_over,
		.wait_woke = lib_wait_woke,
	};

	return &inside;
}
