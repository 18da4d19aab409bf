/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about event and completion queues (3.2.4, 3.2.5, QUERY_CQ). */

#include <string.h>

#include "abi_cqe.h"
#include "ceu/ceu.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/store.h"

#define CQ_LOG_MAX 22u

int
hca_cmd_map_eq(struct hca_core *h, struct hca_cmd *c)
{
	return hca_eq_map(h, HCA_MAP_EQ_EQN(c->in_modifier), c->in_param,
			  (c->in_modifier & HCA_MAP_EQ_UNMAP) != 0);
}

int
hca_cmd_sw2hw_eq(struct hca_core *h, struct hca_cmd *c)
{
	return hca_eq_create(h, c->in_modifier, (const void *)c->in);
}

/* Only the CEU writes EQs, so there is no need to wait for stages. */
int
hca_cmd_hw2sw_eq(struct hca_core *h, struct hca_cmd *c)
{
	return hca_eq_destroy(h, c->in_modifier);
}

static int
cq_find(struct hca_core *h, struct hca_cmd *c, bool live)
{
	uint32_t state;

	if (c->in_modifier >= h->ctxmgt->count[HCA_ICM_CQC])
		return HCA_STAT_BAD_INDEX;
	state = hca_cq_state(&h->cq[c->in_modifier]);
	if (live != (state == HCA_CQ_LIVE || state == HCA_CQ_ERROR))
		return HCA_STAT_BAD_RES_STATE;
	return HCA_STAT_OK;
}

/* The buffer of 2^log CQEs, large or not, followed by its record, as the mailbox places it. */
static int
cq_buffer(struct hca_core *h, struct hca_cq_buf *b, uint32_t flags, uint32_t log, uint32_t key,
	  uint32_t pd, uint64_t start, uint32_t ci_db, uint32_t state_db)
{
	uint32_t bytes;

	if (log > CQ_LOG_MAX)
		return HCA_STAT_BAD_PARAM;
	bytes = 1u << (HCA_CQ_CQE_LOG(flags) + log);
	if (ci_db != bytes || state_db != bytes + offsetof(struct hca_cq_record, arm))
		return HCA_STAT_BAD_PARAM;
	b->mask = (1u << log) - 1;
	b->record_off = bytes;
	return hca_qbuf_resolve(h, &b->q, key, pd, HCA_PD_DOMAIN(pd), start,
				bytes + sizeof(struct hca_cq_record));
}

static void
cq_image(const struct hca_cq *cq, struct hca_cqc *out)
{
	static const uint32_t status[] =
		{[HCA_CQ_ERROR] = HCA_CQ_STATUS_OVERRUN, [HCA_CQ_DYING] = 0};
	uint64_t word = __atomic_load_n(&cq->reserve, __ATOMIC_ACQUIRE);
	const struct hca_cq_buf *b = &cq->buf[(word >> 32) & 1];
	uint32_t state = __atomic_load_n(&cq->state, __ATOMIC_ACQUIRE);

	memset(out, 0, sizeof(*out));
	if (state == HCA_CQ_FREE)
		return;
	out->flags = hca_cpu_to_be32(HCA_FIELD(31, 28, status[state]) | HCA_CQ_FLAG_TR | cq->flags);
	hca_cqc_set_start(out, cq->start);
	out->logsize_usrpage = hca_cpu_to_be32(HCA_CQC_MAKE_LOGSIZE(cq->log_size, cq->usr_page));
	out->comp_eqn = hca_cpu_to_be32(cq->comp_eqn);
	out->pd = hca_cpu_to_be32(cq->pd);
	out->lkey = hca_cpu_to_be32(cq->lkey);
	out->last_notified_seq = hca_cpu_to_be32(__atomic_load_n(&cq->fired_seq, __ATOMIC_RELAXED));
	out->consumer_index = hca_cpu_to_be32(__atomic_load_n(&cq->consumer, __ATOMIC_RELAXED));
	out->producer_index = hca_cpu_to_be32((uint32_t)word);
	out->moderation = hca_cpu_to_be32(cq->moderation);
	out->cqn = hca_cpu_to_be32(cq->cqn);
	out->ci_db = hca_cpu_to_be32(b->record_off);
	out->state_db = hca_cpu_to_be32(b->record_off + offsetof(struct hca_cq_record, arm));
}

static void
cq_mirror(struct hca_core *h, uint32_t cqn)
{
	struct hca_cqc c;

	cq_image(&h->cq[cqn], &c);
	hca_icm_write(h, HCA_ICM_CQC, cqn, &c);
}

int
hca_cmd_sw2hw_cq(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_cqc *m = (const void *)c->in;
	uint32_t size = hca_be32_to_cpu(m->logsize_usrpage);
	struct hca_cq n = {
		.cqn = c->in_modifier,
		.comp_eqn = hca_be32_to_cpu(m->comp_eqn),
		.lkey = hca_be32_to_cpu(m->lkey),
		.pd = hca_be32_to_cpu(m->pd),
		.usr_page = HCA_CQC_USRPAGE(size),
		.log_size = HCA_CQC_LOGSIZE(size),
		.start = hca_cqc_start(m),
		.buf_key = {hca_be32_to_cpu(m->lkey)},
		.flags = hca_be32_to_cpu(m->flags) & HCA_CQ_FLAGS,
		/* if all stages of a pipe share an lcore it is the only writer */
		.single_writer = h->num_workers == 1,
		.pipe = HCA_CQ_NO_PIPE,
	};
	int rc = cq_find(h, c, false);

	if (rc != HCA_STAT_OK)
		return rc;
	if (!hca_icm_mapped(h, HCA_ICM_CQC, n.cqn))
		return HCA_STAT_BAD_RES_STATE;
	if (hca_be32_to_cpu(m->cqn) != n.cqn || n.usr_page != HCA_PD_DOMAIN(n.pd) ||
	    !hca_eq_is_live(h, n.comp_eqn) ||
	    (n.flags & (HCA_CQ_FLAG_LARGE | HCA_CQ_FLAG_WALL)) == HCA_CQ_FLAG_WALL)
		return HCA_STAT_BAD_PARAM;
	rc = cq_buffer(h, &n.buf[0], n.flags, n.log_size, n.lkey, n.pd, n.start,
		       hca_be32_to_cpu(m->ci_db), hca_be32_to_cpu(m->state_db));
	if (rc != HCA_STAT_OK)
		return rc;
	hca_eq_forget_cq(h, n.cqn);
	n.state = HCA_CQ_FREE;
	hca_store_words(&h->cq[n.cqn], &n, sizeof(n));
	__atomic_store_n(&h->cq[n.cqn].state, HCA_CQ_LIVE, __ATOMIC_RELEASE);
	cq_mirror(h, n.cqn);
	return HCA_STAT_OK;
}

static void
let_go(struct hca_core *h, struct hca_cq *cq, unsigned int buf)
{
	hca_qbuf_release(h, &cq->buf[buf].q, cq->buf_key[buf]);
	cq->buf[buf] = (struct hca_cq_buf){0};
	cq->buf_key[buf] = 0;
}

void
hca_cq_free(struct hca_core *h, uint32_t cqi)
{
	struct hca_cq *cq = &h->cq[cqi];

	hca_eq_forget_cq(h, cqi);
	for (unsigned int i = 0; i < RTE_DIM(cq->buf); i++)
		let_go(h, cq, i);
	hca_store_words(cq, NULL, sizeof(*cq));
	cq_mirror(h, cqi);
}

int
hca_cmd_hw2sw_cq(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_cq *cq;

	if (c->step == 0) {
		int rc = cq_find(h, c, true);

		if (rc != HCA_STAT_OK)
			return rc;
		cq = &h->cq[c->in_modifier];
		if (cq->users != 0)
			return HCA_STAT_RESOURCE_BUSY;
		__atomic_store_n(&cq->state, HCA_CQ_DYING, __ATOMIC_SEQ_CST);
		c->rcu = hca_round_start(h);
		c->step = 1;
		return HCA_CMD_AGAIN;
	}
	if (!hca_round_done(h, c->rcu))
		return HCA_CMD_AGAIN;
	hca_cq_free(h, c->in_modifier);
	return HCA_STAT_OK;
}

/*
 * Number of CQEs up to prod that are not consumed, according to the record; an impossible value
 * counts as none consumed.
 */
static uint32_t
cq_unconsumed(const struct hca_cq *cq, const struct hca_cq_buf *b, uint32_t prod)
{
	const struct hca_cq_record *r = hca_qbuf_at(&b->q, b->record_off);
	uint32_t seen = __atomic_load_n(&cq->consumer, __ATOMIC_RELAXED);
	uint32_t ci = hca_le32_to_cpu(__atomic_load_n(&r->consumer, __ATOMIC_ACQUIRE));

	return prod - ci <= prod - seen ? prod - ci : prod - seen;
}

/*
 * The reservation word changes buffer and index in one step: earlier reservations write to the old
 * buffer, later ones to the new one. The round waits for the former. Slots of the new buffer
 * continue from the switch index. The consumer count does not change: the library stores it into
 * the new record before it issues the command. False: at that moment the queue holds more than the
 * new buffer can.
 */
static bool
cq_switch(struct hca_cq *cq, uint64_t *index)
{
	uint64_t w = __atomic_load_n(&cq->reserve, __ATOMIC_ACQUIRE), n;
	/* the CEU alone changes the generation */
	const struct hca_cq_buf *b = &cq->buf[(w >> 32) & 1], *next = &cq->buf[~(w >> 32) & 1];

	do {
		while (cq_unconsumed(cq, b, (uint32_t)w) > next->mask + 1) {
			uint64_t before = w;

			/* the client may have consumed what was written after w was loaded */
			w = __atomic_load_n(&cq->reserve, __ATOMIC_ACQUIRE);
			if (w == before)
				return false;
		}
		n = ((w >> 32) + 1) << 32 | (uint32_t)w;
	} while (!__atomic_compare_exchange_n(&cq->reserve, &w, n, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	*index = (uint32_t)w;
	return true;
}

/* The buffer that is not in use. */
static uint32_t
other_buf(const struct hca_cq *cq)
{
	return ((uint32_t)(__atomic_load_n(&cq->reserve, __ATOMIC_ACQUIRE) >> 32) + 1) & 1;
}

static int
resize_begin(struct hca_core *h, struct hca_cmd *c, struct hca_cq *cq)
{
	const struct hca_mbox_resize_cq *m = (const void *)c->in;
	uint32_t log = HCA_RESIZE_CQ_LOGSIZE(hca_be32_to_cpu(m->logsize));
	uint32_t next = other_buf(cq), key = hca_be32_to_cpu(m->lkey);
	struct hca_cq_buf b = {0};
	int rc;

	if (__atomic_load_n(&cq->state, __ATOMIC_ACQUIRE) != HCA_CQ_LIVE)
		return HCA_STAT_BAD_RES_STATE;
	rc = cq_buffer(h, &b, cq->flags, log, key, cq->pd, hca_be64_to_cpu(m->start),
		       hca_be32_to_cpu(m->ci_db), hca_be32_to_cpu(m->state_db));
	if (rc != HCA_STAT_OK)
		return rc;
	/* the round of the last resize is over, so no stage uses this one */
	cq->buf[next] = b;
	cq->buf_key[next] = key;
	if (cq_switch(cq, &c->out_param))
		return HCA_STAT_OK;
	let_go(h, cq, next);
	return HCA_STAT_BAD_PARAM;
}

enum resize_step {
	RESIZE_FIND,
	RESIZE_JOINED,	  /* a round until the only writer takes slots by CAS */
	RESIZE_SWITCHED,  /* a round until no writer uses the old buffer */
	RESIZE_SWITCHED_1 /* the same, and the CQ has one writer again */
};

static int
resize_round(struct hca_core *h, struct hca_cmd *c, enum resize_step step)
{
	c->rcu = hca_round_start(h);
	c->step = step;
	return HCA_CMD_AGAIN;
}

static int
resize_switch(struct hca_core *h, struct hca_cmd *c, struct hca_cq *cq)
{
	bool one = c->step == RESIZE_JOINED;
	int rc = resize_begin(h, c, cq);

	if (rc == HCA_STAT_OK)
		return resize_round(h, c, one ? RESIZE_SWITCHED_1 : RESIZE_SWITCHED);
	if (one)
		__atomic_store_n(&cq->single_writer, 1, __ATOMIC_RELAXED);
	return rc;
}

/*
 * A worker that takes slots without CAS would overwrite the switch. If it is the CEU's own, no
 * reservation is in progress; that of another pipe takes them by CAS until the resize is over.
 * After the last round every writer uses the new word, and the old buffer is released.
 */
int
hca_cmd_resize_cq(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mbox_resize_cq *m = (const void *)c->in;
	struct hca_cq *cq;
	uint32_t old;

	if (c->step == RESIZE_FIND) {
		int rc = cq_find(h, c, true);

		if (rc != HCA_STAT_OK)
			return rc;
		cq = &h->cq[c->in_modifier];
		if (cq->pipe != 0 && hca_cq_join(h, c->in_modifier, HCA_CQ_NO_PIPE))
			return resize_round(h, c, RESIZE_JOINED);
		return resize_switch(h, c, cq);
	}
	if (!hca_round_done(h, c->rcu))
		return HCA_CMD_AGAIN;
	cq = &h->cq[c->in_modifier];
	if (c->step == RESIZE_JOINED)
		return resize_switch(h, c, cq);
	if (c->step == RESIZE_SWITCHED_1)
		__atomic_store_n(&cq->single_writer, 1, __ATOMIC_RELAXED);
	old = other_buf(cq);
	let_go(h, cq, old);
	cq->lkey = hca_be32_to_cpu(m->lkey);
	cq->start = hca_be64_to_cpu(m->start);
	cq->log_size = HCA_RESIZE_CQ_LOGSIZE(hca_be32_to_cpu(m->logsize));
	cq_mirror(h, c->in_modifier);
	c->out_is_value = true;
	return HCA_STAT_OK;
}

int
hca_cmd_query_cq(struct hca_core *h, struct hca_cmd *c)
{
	int rc = cq_find(h, c, true);

	if (rc != HCA_STAT_OK)
		return rc;
	cq_image(&h->cq[c->in_modifier], (void *)c->out);
	cq_mirror(h, c->in_modifier);
	return HCA_STAT_OK;
}

int
hca_cmd_modify_cq(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mbox_modify_cq *m = (const void *)c->in;
	int rc = cq_find(h, c, true);

	if (rc != HCA_STAT_OK)
		return rc;
	__atomic_store_n(&h->cq[c->in_modifier].moderation, hca_be32_to_cpu(m->moderation),
			 __ATOMIC_RELAXED);
	hca_eq_forget_later(h, c->in_modifier);
	/* an event delayed by the old settings may be due under the new ones */
	hca_cq_fire_late(h, c->in_modifier);
	cq_mirror(h, c->in_modifier);
	return HCA_STAT_OK;
}
