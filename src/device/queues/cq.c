/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Writes completions (abi_cqe.h). The consumer index and the arm word are in client memory and are
 * only hints; the device relies on its own state.
 */

#include <errno.h>

#include "abi_cqe.h"
#include "core/core.h"
#include "core/table.h"
#include "queues/cq.h"
#include "queues/eq.h"
#include "queues/srq.h"

int
hca_queues_init(struct hca_core *h)
{
	h->cq = hca_table_alloc((size_t)h->cq_mask + 1, sizeof(*h->cq), h->cfg.socket_id);
	h->srq = hca_table_alloc((size_t)h->srq_mask + 1, sizeof(*h->srq), h->cfg.socket_id);
	return h->cq != NULL && h->srq != NULL ? 0 : -ENOMEM;
}

void
hca_queues_fini(struct hca_core *h)
{
	hca_table_free(h->srq);
	hca_table_free(h->cq);
	h->srq = NULL;
	h->cq = NULL;
}

#define CURSOR_SLOTS 32u /* that one cursor should find free: as many as a burst has packets */

#define GENERATION(word) ((uint32_t)((word) >> 32))

static inline struct hca_cq_record *
cq_record(const struct hca_cq_buf *b)
{
	return hca_qbuf_at(&b->q, b->record_off);
}

/* Reads the consumer index again; returns it. It is accepted only between the last one and prod. */
static uint32_t
cq_read_consumer(struct hca_cq *cq, const struct hca_cq_buf *b, uint32_t prod)
{
	uint32_t seen = __atomic_load_n(&cq->consumer, __ATOMIC_RELAXED);
	uint32_t ci = hca_le32_to_cpu(__atomic_load_n(&cq_record(b)->consumer, __ATOMIC_ACQUIRE));

	if (prod - ci > prod - seen)
		return seen;
	__atomic_store_n(&cq->consumer, ci, __ATOMIC_RELAXED);
	return ci;
}

/* Is slot prod still in use? Reads the consumer index again only if the copy of it says so. */
static inline bool
cq_full(struct hca_cq *cq, const struct hca_cq_buf *b, uint32_t prod)
{
	uint32_t seen = __atomic_load_n(&cq->consumer, __ATOMIC_RELAXED);

	return unlikely(prod - seen > b->mask) && prod - cq_read_consumer(cq, b, prod) > b->mask;
}

static void
cq_overrun(struct hca_core *h, struct hca_cq *cq, uint32_t cqi, enum hca_stage_id stage)
{
	uint32_t live = HCA_CQ_LIVE;

	HCA_COUNT_AT(h, stage, HCA_CTR_cqe_overrun);
	if ((cq->flags & HCA_CQ_FLAG_OI) != 0)
		return;
	if (__atomic_compare_exchange_n(&cq->state, &live, HCA_CQ_ERROR, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		__atomic_store_n(&cq->overrun, 1, __ATOMIC_RELEASE);
		hca_eq_raise_cq(h, stage, HCA_EVENT_CQ_ERROR, cqi);
	}
}

/* Loads the reservation word again; whether it has changed since w was loaded. */
static bool
cq_moved(const struct hca_cq *cq, uint64_t *w)
{
	uint64_t before = *w;

	*w = __atomic_load_n(&cq->reserve, __ATOMIC_ACQUIRE);
	return *w != before;
}

static inline bool
cq_take(struct hca_cq *cq, uint64_t *word)
{
	uint64_t w = __atomic_load_n(&cq->reserve, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&cq->single_writer, __ATOMIC_RELAXED)) {
		if (unlikely(cq_full(cq, &cq->buf[GENERATION(w) & 1], (uint32_t)w)))
			return false;
		*word = w;
		/* the index wraps within its half of the word */
		w = (w & HCA_MASK64(63, 32)) | (uint32_t)(w + 1);
		__atomic_store_n(&cq->reserve, w, __ATOMIC_RELEASE);
		return true;
	}
	do {
		/* other writers and then the client may have passed w: no slot seems to be free */
		while (unlikely(cq_full(cq, &cq->buf[GENERATION(w) & 1], (uint32_t)w)))
			if (!cq_moved(cq, &w))
				return false;
		*word = w;
	} while (!__atomic_compare_exchange_n(&cq->reserve, &w,
					      (w & HCA_MASK64(63, 32)) | (uint32_t)(w + 1), true,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	return true;
}

static inline void
batch_add(struct hca_core *h, struct hca_cq_batch *b, uint32_t cqi, bool solicited,
	  enum hca_stage_id stage)
{
	for (uint32_t i = b->n; i-- > 0;) {
		if (b->e[i].cqi == cqi) {
			b->e[i].solicited |= solicited;
			return;
		}
	}
	if (b->n == HCA_CQ_BATCH)
		hca_cq_batch_end(h, b, stage);
	b->e[b->n].cqi = cqi;
	b->e[b->n].solicited = solicited;
	b->n++;
}

static struct hca_cqe_more *
more_of(struct hca_cqe *cqe)
{
	return (struct hca_cqe_more *)(void *)(cqe + 1);
}

/* Returns a slot of the larger kind with its time stamps set. */
static struct hca_cqe *
large_slot(const struct hca_core *h, const struct hca_cq *cq, const struct hca_qbuf *q,
	   uint32_t slot, enum hca_stage_id stage)
{
	struct hca_cqe *cqe = hca_qbuf_at(q, slot * HCA_CQE_LARGE_SIZE);
	uint64_t now = h->wake[h->stage_worker[stage]].now, wall = 0;

	if ((cq->flags & HCA_CQ_FLAG_WALL) != 0)
		wall = h->cfg.wall_clock != NULL ? h->cfg.wall_clock() : now;
	*more_of(cqe) = (struct hca_cqe_more){
		.core_clock = hca_cpu_to_le64(now),
		.wall_clock = hca_cpu_to_le64(wall),
	};
	return cqe;
}

void
hca_cq_set_sender(const struct hca_core *h, uint32_t cqi, struct hca_cqe *cqe, uint16_t vlan,
		  const uint8_t *smac)
{
	if ((h->cq[cqi].flags & HCA_CQ_FLAG_LARGE) == 0)
		return;
	more_of(cqe)->vlan = hca_cpu_to_le16(vlan);
	if (smac != NULL)
		memcpy(more_of(cqe)->smac, smac, sizeof(more_of(cqe)->smac));
}

struct hca_cqe *
hca_cq_reserve(struct hca_core *h, uint32_t cqi, struct hca_cq_batch *b, bool solicited,
	       enum hca_stage_id stage)
{
	struct hca_cq *cq = &h->cq[cqi];
	const struct hca_cq_buf *buf;
	uint64_t word;

	if (unlikely(cqi > h->cq_mask ||
		     __atomic_load_n(&cq->state, __ATOMIC_ACQUIRE) != HCA_CQ_LIVE)) {
		HCA_COUNT_AT(h, stage, HCA_CTR_cqe_dead_cq);
		return NULL;
	}
	if (unlikely(!cq_take(cq, &word))) {
		cq_overrun(h, cq, cqi, stage);
		return NULL;
	}
	batch_add(h, b, cqi, solicited, stage);
	buf = &cq->buf[GENERATION(word) & 1];
	if (unlikely((cq->flags & HCA_CQ_FLAG_LARGE) != 0))
		return large_slot(h, cq, &buf->q, (uint32_t)word & buf->mask, stage);
	return hca_qbuf_at(&buf->q, ((uint32_t)word & buf->mask) * HCA_CQE_SIZE);
}

bool
hca_cq_join(struct hca_core *h, uint32_t cqi, uint32_t pipe)
{
	struct hca_cq *cq = &h->cq[cqi];

	if (pipe != HCA_CQ_NO_PIPE && (cq->pipe == pipe || cq->pipe == HCA_CQ_NO_PIPE)) {
		cq->pipe = pipe;
		return false;
	}
	if (h->pipe_mask == 0 || !cq->single_writer)
		return false;
	__atomic_store_n(&cq->single_writer, 0, __ATOMIC_RELAXED);
	return true;
}

bool
hca_cq_cursor_open(struct hca_core *h, uint32_t cqi, struct hca_cq_batch *b,
		   enum hca_stage_id stage, struct hca_cq_cursor *c)
{
	struct hca_cq *cq = &h->cq[cqi];
	uint64_t word = __atomic_load_n(&cq->reserve, __ATOMIC_ACQUIRE);
	const struct hca_cq_buf *buf = &cq->buf[GENERATION(word) & 1];

	c->cq = NULL;
	if (!__atomic_load_n(&cq->single_writer, __ATOMIC_RELAXED) || buf->q.base == NULL ||
	    (cq->flags & HCA_CQ_FLAG_LARGE) != 0 ||
	    __atomic_load_n(&cq->state, __ATOMIC_ACQUIRE) != HCA_CQ_LIVE)
		return false;
	c->cq = cq;
	c->core = h;
	c->batch = b;
	c->cqi = cqi;
	c->stage = stage;
	c->base = buf->q.base;
	c->mask = buf->mask;
	c->prod = c->first = (uint32_t)word;
	c->consumer = __atomic_load_n(&cq->consumer, __ATOMIC_RELAXED);
	/* a cursor does not read the index again */
	if (unlikely(c->prod - c->consumer + CURSOR_SLOTS > c->mask))
		c->consumer = cq_read_consumer(cq, buf, c->prod);
	return true;
}

void
hca_cq_cursor_close(struct hca_cq_cursor *c)
{
	struct hca_cq *cq = c->cq;

	if (cq == NULL)
		return;
	c->cq = NULL;
	if ((uint32_t)cq->reserve == c->prod)
		return;
	hca_cq_cursor_publish(c);
	__atomic_store_n(&cq->reserve, (cq->reserve & HCA_MASK64(63, 32)) | c->prod,
			 __ATOMIC_RELEASE);
	batch_add(c->core, c->batch, c->cqi, false, c->stage);
}

void
hca_cq_publish(struct hca_cqe *cqe, uint32_t last_word)
{
	hca_cq_publish_now(cqe, last_word);
}

/*
 * Moderation: returns whether the event has to wait, until HCA_CQ_MOD_COUNT completions or the end
 * of the period. If a period is set, asks the CEU, once per event, to raise it then.
 */
static bool
too_early(struct hca_core *h, struct hca_cq *cq, uint32_t cqi, uint32_t prod,
	  enum hca_stage_id stage)
{
	uint32_t mod = __atomic_load_n(&cq->moderation, __ATOMIC_RELAXED);
	uint32_t count = HCA_CQ_MOD_COUNT(mod);
	uint32_t pending = prod - __atomic_load_n(&cq->mod_mark, __ATOMIC_RELAXED);

	if (likely(mod == 0) || (count != 0 && pending >= count))
		return false;
	if (HCA_CQ_MOD_PERIOD(mod) != 0 &&
	    __atomic_exchange_n(&cq->mod_later, 1, __ATOMIC_ACQ_REL) == 0)
		hca_eq_raise_cq(h, stage, HCA_EQ_LATER, cqi);
	return true;
}

static void
cq_check_arm(struct hca_core *h, uint32_t cqi, bool solicited, bool late, enum hca_stage_id stage)
{
	struct hca_cq *cq = &h->cq[cqi];
	uint64_t word = __atomic_load_n(&cq->reserve, __ATOMIC_ACQUIRE);
	const struct hca_cq_buf *b = &cq->buf[GENERATION(word) & 1];
	uint32_t arm, seq, fired;

	arm = hca_le32_to_cpu(__atomic_load_n(&cq_record(b)->arm, __ATOMIC_RELAXED));
	if (HCA_CQ_ARM_MODE(arm) != HCA_CQ_ARM_NEXT &&
	    !(HCA_CQ_ARM_MODE(arm) == HCA_CQ_ARM_SOLICITED && solicited))
		return;
	seq = HCA_CQ_ARM_SEQ(arm);
	fired = __atomic_load_n(&cq->fired_seq, __ATOMIC_ACQUIRE);
	if (fired == seq)
		return;
	/* solicited and failed completions are not delayed */
	if (!solicited && !late && too_early(h, cq, cqi, (uint32_t)word, stage))
		return;
	if (!__atomic_compare_exchange_n(&cq->fired_seq, &fired, seq, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&cq->mod_mark, (uint32_t)word, __ATOMIC_RELAXED);
	hca_eq_raise_comp(h, stage, cqi);
}

void
hca_cq_fire_late(struct hca_core *h, uint32_t cqi)
{
	struct hca_cq *cq = &h->cq[cqi];
	uint32_t prod, state = __atomic_load_n(&cq->state, __ATOMIC_ACQUIRE);

	__atomic_store_n(&cq->mod_later, 0, __ATOMIC_RELEASE);
	if (state != HCA_CQ_LIVE && state != HCA_CQ_ERROR)
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	prod = (uint32_t)__atomic_load_n(&cq->reserve, __ATOMIC_ACQUIRE);
	if (prod != __atomic_load_n(&cq->mod_mark, __ATOMIC_RELAXED))
		cq_check_arm(h, cqi, false, true, HCA_STAGE_CEU);
}

void
hca_cq_batch_end(struct hca_core *h, struct hca_cq_batch *b, enum hca_stage_id stage)
{
	if (b->n == 0)
		return;
	/*
	 * the library stores the arm word, executes a fence, and then polls: either it finds the
	 * CQE, or the device finds the arm word
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < b->n; i++)
		cq_check_arm(h, b->e[i].cqi, b->e[i].solicited, false, stage);
	b->n = 0;
}
