/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * READ responses under congestion control, which EE asks as req_tx does for requests. Responses of
 * a QP leave in PSN order, so those behind a READ wait with it.
 */

#include "cc/cc.h"
#include "responder/ee.h"

int
ee_pace_init(struct hca_pipe *h, struct ee_ctx *ctx)
{
	return hca_pace_init(&ctx->pace, h->qp_mask + 1, h->cfg.socket_id);
}

static bool
is_read_response(const struct hca_txd *d)
{
	uint8_t op = HCA_BTH_OPERATION(d->opcode);

	return op >= HCA_BTH_RC_READ_RESP_FIRST && op <= HCA_BTH_RC_READ_RESP_ONLY;
}

/* Whether a READ is being answered, or one of the answers that are due is that of a READ. */
static bool
answers_read(const struct hca_qp_ee *ee)
{
	for (uint32_t rest = ee->job_pending; rest != 0; rest &= rest - 1)
		if (ee->jobs[__builtin_ctz(rest)].kind == HCA_KIND_READ)
			return true;
	return false;
}

static void
wait_until(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp_ee *ee, uint32_t qpi, uint64_t at)
{
	ee->flags |= EE_PACED;
	hca_pace_put(&ctx->pace, qpi, at);
	ee_note_waits(h, ctx);
}

unsigned int
ee_pace_allow(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, unsigned int n, uint64_t now)
{
	struct hca_qp_ee *ee = &h->qp[qpi].ee;
	uint32_t frame = (1u << ee->mtu_log) + HCA_CC_FRAME_OVERHEAD, leave, frames = 0;
	const struct hca_cc_ops *cc = hca_cc_of(h, qpi);
	uint64_t again = UINT64_MAX;

	if (n == 0 || cc == NULL || !answers_read(ee))
		return n;
	leave = cc->may_send(h, hca_cc_responses(h, qpi), 0, now, &again);
	while (frames < n && leave >= frame) {
		leave -= frame;
		frames++;
	}
	/* no acknowledgement would end a wait without a time */
	if (frames == 0 && again == UINT64_MAX)
		return 1;
	if (frames == 0)
		wait_until(h, ctx, ee, qpi, again);
	return frames;
}

void
ee_pace_sent(struct hca_pipe *h, const struct ee_ctx *ctx, uint32_t qpi, unsigned int n,
	     uint64_t now)
{
	const struct hca_cc_ops *cc = hca_cc_of(h, qpi);
	uint32_t frames = 0;
	uint64_t bytes = 0;

	if (cc == NULL)
		return;
	for (unsigned int i = ctx->nout - n; i < ctx->nout; i++) {
		const struct hca_txd *d = hca_txd(ctx->out[i]);

		if (!is_read_response(d))
			continue;
		frames++;
		bytes += d->len + HCA_CC_FRAME_OVERHEAD;
	}
	if (frames != 0)
		cc->sent(h, hca_cc_responses(h, qpi), frames, frames, bytes, now);
}

void
ee_pace_cnp(struct hca_pipe *h, uint32_t qpi, uint64_t now)
{
	const struct hca_cc_ops *cc = hca_cc_of(h, qpi);

	if (cc != NULL)
		cc->cnp(h, hca_cc_responses(h, qpi), now);
}

void
ee_pace_due(struct hca_pipe *h, struct ee_ctx *ctx, uint64_t now)
{
	uint32_t qpi;

	while ((qpi = hca_pace_take(&ctx->pace, now)) != HCA_PACE_NONE) {
		struct hca_qp_ee *ee = &h->qp[qpi].ee;

		ee->flags &= ~EE_PACED;
		ee_list_ready(h, ctx, ee, qpi);
	}
}

void
ee_pace_drop(struct hca_pipe *h, struct hca_qp_ee *ee, uint32_t qpi)
{
	hca_pace_drop(&ee_ctx(h)->pace, qpi);
	ee->flags &= ~EE_PACED;
	ee_note_waits(h, ee_ctx(h));
}
