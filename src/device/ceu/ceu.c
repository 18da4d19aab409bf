/* SPDX-License-Identifier: BSD-3-Clause */

/* The HCR state machine and the one table of commands. */

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "abi_bar.h"
#include "bar/bar.h"
#include "ceu/ceu.h"
#include "ctxmgt/ctxmgt.h"
#include "engine/impl.h"
#include "engine/stage.h"
#include "engine/state.h"

#define HCR(field) (HCA_BAR0_HCR + offsetof(struct hca_hcr, field))

/* QPs checked per poll while those of an overrun CQ are moved to ERR. */
#define FAIL_SLICE 256u

struct hca_cmd_row {
	uint16_t opcode;
	uint16_t in_len, out_len;
	uint16_t flags; /* HCA_CMDF_* */
	uint32_t caps;
	bool anytime;	/* also allowed before INIT_HCA */
	hca_cmd_fn run; /* NULL: refused */
};

enum cmd_row_index {
	ROW_UNKNOWN,
#define X(name, opcode, in_len, out_len, flags, caps) ROW_##name,
	HCA_CMD_LIST(X)
#undef X
	ROW_N
};

static const struct hca_cmd_row rows[ROW_N] = {
#define X(name, opcode, in_len, out_len, flags, caps) \
	[ROW_##name] = {opcode, in_len, out_len, flags, caps, HCA_CMD_RUN_##name},
	HCA_CMD_LIST(X)
#undef X
};

static const uint8_t row_of[HCA_HCR_OP_MAX + 1] = {
#define X(name, opcode, in_len, out_len, flags, caps) [opcode] = ROW_##name,
	HCA_CMD_LIST(X)
#undef X
};

static const struct hca_cmd_row *
find_row(const struct hca_core *h, uint32_t op)
{
	const struct hca_cmd_row *r = &rows[row_of[op]];

	return r->run != NULL && (r->caps & ~hca_ceu_caps(h)) == 0 ? r : NULL;
}

int
hca_cmd_of_wire(struct hca_core *h, struct hca_cmd *c)
{
	HCA_WIRES_IN_USE(h, w)
	{
		for (unsigned int i = 0; i < w->num_commands; i++)
			if (w->commands[i].opcode == c->op)
				return w->commands[i].run(h, c);
	}
	return HCA_STAT_BAD_OP;
}

/* Bytes of the input mailbox; false: the count in the command is too large. */
static bool
in_length(const struct hca_cmd_row *r, struct hca_cmd *c)
{
	c->in_len = r->in_len;
	if ((r->flags & HCA_CMDF_IN_OPT) && c->op_modifier == HCA_MODIFY_QP_NO_INBOX)
		c->in_len = 0;
	if (c->op == HCA_CMD_MAP_ICM) {
		c->in_len = HCA_MAP_ICM_LEN(c->in_modifier);
		return c->in_modifier != 0 && c->in_modifier <= HCA_MAP_ICM_MAX;
	}
	if (c->op == HCA_CMD_WRITE_MTT) {
		c->in_len = HCA_WRITE_MTT_LEN(c->in_modifier);
		return c->in_modifier != 0 && c->in_modifier <= HCA_WRITE_MTT_MAX;
	}
	return true;
}

/* Mailboxes lie in the driver's domain; the command checks and uses a copy. */
static int
fetch_mailbox(struct hca_core *h, const struct hca_cmd_row *r, struct hca_cmd *c)
{
	if (!in_length(r, c))
		return HCA_STAT_BAD_PARAM;
	if (c->in_len != 0) {
		if (!hca_dma_allowed(h, 0, c->in_param, c->in_len))
			return HCA_STAT_BAD_PARAM;
		memcpy(c->in, (const void *)(uintptr_t)c->in_param, c->in_len);
	}
	c->out_len = r->out_len;
	if (c->out_len != 0) {
		if (!hca_dma_allowed(h, 0, c->out_param, c->out_len))
			return HCA_STAT_BAD_PARAM;
		memset(c->out, 0, c->out_len);
	}
	return HCA_STAT_OK;
}

static int
command_judge(struct hca_core *h, struct hca_ceu *u)
{
	struct hca_cmd *c = &u->cmd;

	u->row = find_row(h, c->op);
	if (u->row == NULL)
		return HCA_STAT_BAD_OP;
	if (!u->row->anytime && !h->ctxmgt->ready)
		return HCA_STAT_BAD_SYS_STATE;
	return fetch_mailbox(h, u->row, c);
}

static void
read_hcr(struct hca_core *h, struct hca_cmd *c, uint32_t ctrl)
{
	uint8_t *b = h->bar0;

	c->op = (uint16_t)HCA_HCR_OP(ctrl);
	c->op_modifier = (uint8_t)HCA_HCR_OP_MODIFIER(ctrl);
	c->event = (ctrl & HCA_HCR_E) != 0;
	c->in_param = (uint64_t)hca_bar_load(b, HCR(in_param_hi)) << 32 |
		      hca_bar_load(b, HCR(in_param_lo));
	c->out_param = (uint64_t)hca_bar_load(b, HCR(out_param_hi)) << 32 |
		       hca_bar_load(b, HCR(out_param_lo));
	c->in_modifier = hca_bar_load(b, HCR(in_modifier));
	c->token = (uint16_t)HCA_HCR_TOKEN(hca_bar_load(b, HCR(token)));
	c->out_is_value = false;
	c->out_len = 0;
	c->step = 0;
	c->index = 0;
}

static void
release_hcr(struct hca_core *h, const struct hca_ceu *u, uint8_t status)
{
	hca_bar_store(h->bar0, HCR(ctrl), HCA_HCR_MAKE_DONE(u->ctrl, status));
}

static void
put_event(struct hca_core *h, struct hca_ceu *u)
{
	const struct hca_cmd *c = &u->cmd;

	u->state = HCA_CEU_EVENT;
	if (hca_eq_write_cmd(h, c->token, u->status, c->out_is_value ? c->out_param : 0))
		u->state = HCA_CEU_IDLE;
}

static void
finish(struct hca_core *h, struct hca_ceu *u, int status)
{
	struct hca_cmd *c = &u->cmd;

	u->status = (uint8_t)status;
	if (status != HCA_STAT_OK) {
		HCA_COUNT(h, CEU, hcr_errors);
		c->out_is_value = false;
	} else if (c->out_len != 0) {
		memcpy((void *)(uintptr_t)c->out_param, c->out, c->out_len);
	}
	if (c->event) {
		put_event(h, u);
		return;
	}
	if (c->out_is_value) {
		hca_bar_store(h->bar0, HCR(out_param_hi), (uint32_t)(c->out_param >> 32));
		hca_bar_store(h->bar0, HCR(out_param_lo), (uint32_t)c->out_param);
	}
	release_hcr(h, u, u->status);
	u->state = HCA_CEU_IDLE;
}

static void
run(struct hca_core *h, struct hca_ceu *u)
{
	int status = u->row->run(h, &u->cmd);

	if (status == HCA_CMD_AGAIN)
		u->state = HCA_CEU_RUN;
	else
		finish(h, u, status);
}

static void
accept_command(struct hca_core *h, struct hca_ceu *u, uint32_t ctrl)
{
	int status;

	HCA_COUNT(h, CEU, hcr_commands);
	u->ctrl = ctrl;
	read_hcr(h, &u->cmd, ctrl);
	status = command_judge(h, u);
	/* with E the register is free for the next command after this one has been copied */
	if (u->cmd.event)
		release_hcr(h, u, HCA_STAT_OK);
	if (status != HCA_STAT_OK)
		finish(h, u, status);
	else
		run(h, u);
}

/* The reset register was written: abandon everything; a pending command gets BAD_SYS_STATE. */
static void
reset_start(struct hca_core *h, struct hca_ceu *u)
{
	if ((u->state == HCA_CEU_RUN || u->state == HCA_CEU_EVENT) && !u->cmd.event)
		release_hcr(h, u, HCA_STAT_BAD_SYS_STATE);
	u->failing = false;
	u->state = HCA_CEU_RESET;
	hca_close_start(h, &u->cmd, HCA_DOMAIN_ALL);
}

static void
reset_step(struct hca_core *h, struct hca_ceu *u)
{
	if (!hca_close_step(h, &u->cmd))
		return;
	u->state = HCA_CEU_IDLE;
	hca_bar_store(h->bar0, HCA_BAR0_RESET, 0);
}

static void
fail_qp(struct hca_core *h, uint32_t i, uint32_t cqi)
{
	const struct hca_qp_cfg *q = &h->qp[i].cfg;

	if (q->local_qpn != 0 && (q->scqn == cqi || q->rcqn == cqi))
		hca_qp_to_error(hca_pipe_of_qp(h, i), HCA_STAGE_CEU, i);
}

/*
 * Fail an XRC SRQ or JFR of the CQ: no QP refers to the CQ, and requests of the SRQ could not
 * complete.
 */
static void
fail_srq(struct hca_core *h, uint32_t i, uint32_t cqi)
{
	struct hca_srq *s = &h->srq[i];

	if (hca_srq_has_cq(s) && s->cqn == cqi)
		hca_srq_fail(s);
}

/*
 * A CQ has overrun: every QP and XRC SRQ that completes to it goes to the error state. If it was
 * destroyed meanwhile, they were also destroyed, and objects that use its number now are not at
 * fault.
 */
static unsigned int
fail_users(struct hca_core *h, struct hca_ceu *u)
{
	uint32_t last = RTE_MAX(h->qp_mask, h->srq_mask), end;

	if (!u->failing) {
		if (!hca_eq_take_failed_cq(h, &u->failing_cqi))
			return 0;
		u->failing_at = 0;
	}
	u->failing = hca_cq_state(&h->cq[u->failing_cqi]) == HCA_CQ_ERROR;
	if (!u->failing)
		return 1;
	end = RTE_MIN(u->failing_at + FAIL_SLICE, last + 1);
	for (; u->failing_at < end; u->failing_at++) {
		if (u->failing_at <= h->qp_mask)
			fail_qp(h, u->failing_at, u->failing_cqi);
		if (u->failing_at <= h->srq_mask)
			fail_srq(h, u->failing_at, u->failing_cqi);
	}
	u->failing = u->failing_at <= last;
	return 1;
}

unsigned int
hca_ceu_poll(struct hca_pipe *dev, uint64_t now, unsigned int budget)
{
	struct hca_core *h = hca_pipe_core(dev);
	struct hca_ceu *u = h->ceu;
	unsigned int work = 0;
	uint32_t ctrl;

	if (u == NULL) /* of another pipe than the first */
		return 0;
	u->now = now;
	if (hca_eqs_due(h, now)) {
		work += hca_eqs_poll(h, now);
		work += fail_users(h, u);
	} else if (unlikely(u->failing)) {
		work += fail_users(h, u);
	}
	if (unlikely(u->state != HCA_CEU_RESET &&
		     hca_bar_load(h->bar0, HCA_BAR0_RESET) == HCA_RESET_START))
		reset_start(h, u);
	switch (u->state) {
	case HCA_CEU_IDLE:
		ctrl = hca_bar_load(h->bar0, HCR(ctrl));
		if (likely(!(ctrl & HCA_HCR_GO)))
			break;
		accept_command(h, u, ctrl);
		work++;
		break;
	case HCA_CEU_RUN:
		run(h, u);
		work++;
		break;
	case HCA_CEU_EVENT:
		put_event(h, u);
		break;
	case HCA_CEU_RESET:
		reset_step(h, u);
		work++;
		break;
	}
	hca_eqs_notify(h);
	return work;
}

int
hca_ceu_init(struct hca_pipe *dev)
{
	struct hca_core *h = hca_pipe_core(dev);

	if (h->pipe_number != 0)
		return 0;
	h->ceu = rte_zmalloc_socket("hca_ceu", sizeof(*h->ceu), RTE_CACHE_LINE_SIZE,
				    h->cfg.socket_id);
	return h->ceu == NULL ? -ENOMEM : 0;
}

static void
free_others(struct hca_core *h)
{
	uint32_t first, n = hca_ceu_others(h, &first), at;

	for (uint32_t obj = first; obj < first + n; obj++) {
		const struct hca_wire_object *o = hca_ceu_object(h, obj, &at);

		if (o->is_live(h, at))
			o->free(h, at);
	}
}

void
hca_ceu_fini(struct hca_pipe *dev)
{
	struct hca_core *h = hca_pipe_core(dev);

	if (h->ceu == NULL)
		return;
	/* no worker polls any more: free the rest without rounds */
	for (uint32_t i = 0; i <= h->qp_mask; i++)
		if (h->qp[i].cfg.local_qpn != 0)
			hca_qp_free(h, i);
	for (uint32_t i = 0; i <= h->srq_mask; i++)
		if (hca_srq_state(&h->srq[i]) != HCA_SRQ_FREE)
			hca_srq_free(h, i);
	for (uint32_t i = 0; i <= h->cq_mask; i++)
		if (hca_cq_state(&h->cq[i]) != HCA_CQ_FREE)
			hca_cq_free(h, i);
	free_others(h);
	rte_free(h->ceu);
	h->ceu = NULL;
}

/* Commands and resets come with a kick. */
uint64_t
hca_ceu_deadline(const struct hca_pipe *dev, uint64_t now)
{
	const struct hca_core *h = hca_pipe_core(dev);
	const struct hca_ceu *u = h->ceu;

	if (u == NULL)
		return UINT64_MAX;
	if (u->state == HCA_CEU_EVENT)
		return HCA_DEADLINE_ROOM;
	return u->state != HCA_CEU_IDLE || u->failing ? now : hca_eqs_deadline(h, now);
}
