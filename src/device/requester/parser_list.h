/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PARSER_LIST_H
#define REQUESTER_PARSER_LIST_H

/*
 * Lists of QPs of the parser, by index and linked through their parser lines: those with work, and
 * per owner and pool those that wait for a record. All operations are O(1), except wake_waiting(),
 * which is bounded by HCA_OWNER_VISITS and the number of records. On the parser's lcore.
 */

#include "engine/impl.h"
#include "requester/parser.h"
#include "requester/record_pool.h"

#define HCA_NO_QP UINT32_MAX
/* Owners visited per poll while some of their QPs wait for records. */
#define HCA_OWNER_VISITS 16u

#define ON_LIST (HCA_PF_READY | HCA_PF_WAIT_REC | HCA_PF_WAIT_FULL)
#define PARKED (HCA_PF_PARK_WINDOW | HCA_PF_PARK_STATE)

/* The destination of the last datagram; the next one often has the same. */
struct hca_parser_ud {
	const struct hca_qp *qp;
	uint32_t generation;
	uint64_t gids; /* state of the GID table when it was judged; 0: it may not be used again */
	struct hca_ud_unit unit;
	struct hca_ud_av av;
};

struct hca_parser_ctx {
	uint32_t ready_head, ready_tail; /* QP indexes, linked by parser.list_next */
	uint32_t ready_n;
	bool freed; /* records were returned in this poll */
	/* the wires other than RoCE that have QPs, and their pools */
	const struct hca_wire_ops *other[HCA_WIRE_ROWS];
	struct hca_record_pools *pools[HCA_WIRE_ROWS];
	unsigned int n_others;
	struct hca_parser_ud ud;
} __rte_cache_aligned;

static inline void
list_append(struct hca_pipe *h, uint32_t *head, uint32_t *tail, uint32_t qpi)
{
	struct hca_qp_parser *p = &h->qp[qpi].parser;

	p->list_next = HCA_NO_QP;
	p->list_prev = *tail;
	if (*head == HCA_NO_QP)
		*head = qpi;
	else
		h->qp[*tail].parser.list_next = qpi;
	*tail = qpi;
}

static inline void
list_prepend(struct hca_pipe *h, uint32_t *head, uint32_t *tail, uint32_t qpi)
{
	h->qp[qpi].parser.list_next = *head;
	if (*head == HCA_NO_QP)
		*tail = qpi;
	else
		h->qp[*head].parser.list_prev = qpi;
	*head = qpi;
}

static inline void
list_remove(struct hca_pipe *h, uint32_t *head, uint32_t *tail, uint32_t qpi)
{
	struct hca_qp_parser *p = &h->qp[qpi].parser;

	if (*tail == qpi)
		*tail = p->list_prev;
	else
		h->qp[p->list_next].parser.list_prev = p->list_prev;
	if (*head == qpi)
		*head = p->list_next;
	else
		h->qp[p->list_prev].parser.list_next = p->list_next;
}

static inline uint32_t
list_pop(struct hca_pipe *h, uint32_t *head, uint32_t *tail)
{
	uint32_t qpi = *head;

	list_remove(h, head, tail, qpi);
	return qpi;
}

static inline bool
has_work(const struct hca_qp_parser *p)
{
	return p->in_chain || p->chain_head != p->chain_tail || p->marked & HCA_PM_LOOK;
}

static inline void
make_ready(struct hca_pipe *h, struct hca_parser_ctx *c, uint32_t qpi)
{
	struct hca_qp_parser *p = &h->qp[qpi].parser;

	if (p->flags & (ON_LIST | PARKED) || !has_work(p))
		return;
	p->flags |= HCA_PF_READY;
	list_append(h, &c->ready_head, &c->ready_tail, qpi);
	c->ready_n++;
}

static inline uint8_t
wait_flag(const struct hca_record_pool *pool)
{
	return pool->mark != 0 ? HCA_PF_WAIT_FULL : HCA_PF_WAIT_REC;
}

/* Owners with waiting QPs take turns, so that one that has used up its share delays no other. */
static inline void
owner_append(struct hca_record_pool *pool, struct hca_record_owner *o)
{
	uint16_t i = (uint16_t)(o - pool->owner);

	if (pool->waiting++ == 0)
		pool->wait_head = i;
	else
		pool->owner[pool->wait_tail].next = i;
	pool->wait_tail = i;
	o->waiting = 1;
}

static inline struct hca_record_owner *
owner_pop(struct hca_record_pool *pool)
{
	struct hca_record_owner *o = &pool->owner[pool->wait_head];

	pool->wait_head = o->next;
	pool->waiting--;
	o->waiting = 0;
	return o;
}

/*
 * Wait for a record after others of the same owner. QPs that lack their own two records, and those
 * that were woken and found none, wait at the front.
 */
static inline void
wait_for_record(struct hca_pipe *h, struct hca_record_pool *pool, uint32_t qpi, bool in_front)
{
	struct hca_record_owner *o = hca_record_owner(pool, &h->qp[qpi].parser);

	h->qp[qpi].parser.flags |= wait_flag(pool);
	if (in_front)
		list_prepend(h, &o->wait_head, &o->wait_tail, qpi);
	else
		list_append(h, &o->wait_head, &o->wait_tail, qpi);
	if (!o->waiting)
		owner_append(pool, o);
	HCA_COUNT(h, PARSER, sq_parked_record);
}

static inline void
stop_waiting(struct hca_pipe *h, struct hca_record_pool *pool, uint32_t qpi)
{
	struct hca_record_owner *o = hca_record_owner(pool, &h->qp[qpi].parser);

	list_remove(h, &o->wait_head, &o->wait_tail, qpi);
}

static inline void
wake(struct hca_pipe *h, struct hca_parser_ctx *c, struct hca_record_pool *pool, uint32_t qpi)
{
	struct hca_qp_parser *p = &h->qp[qpi].parser;

	stop_waiting(h, pool, qpi);
	p->flags = (p->flags & ~wait_flag(pool)) | HCA_PF_GRANTED;
	make_ready(h, c, qpi);
}

static inline bool
reserve_due(const struct hca_record_pool *pool, const struct hca_qp_parser *p)
{
	return p->held[pool->mark != 0] < HCA_RECORDS_PER_QP_RESERVED;
}

static inline void
wake_waiting(struct hca_pipe *h, struct hca_parser_ctx *c, struct hca_record_pool *pool)
{
	uint32_t visits = RTE_MIN(pool->waiting, HCA_OWNER_VISITS), left;

	hca_record_pool_refill(pool);
	for (left = pool->stack_n; left != 0 && visits != 0; visits--) {
		struct hca_record_owner *o = owner_pop(pool);
		uint32_t share = hca_record_share(pool, o);

		for (; left != 0 && o->wait_head != HCA_NO_QP; left--) {
			if (!reserve_due(pool, &h->qp[o->wait_head].parser) && share-- == 0)
				break;
			wake(h, c, pool, o->wait_head);
		}
		if (o->wait_head != HCA_NO_QP)
			owner_append(pool, o);
	}
}

/* A waiting QP that lacks one of the two records reserved for it can go on. */
static inline void
wake_if_due(struct hca_pipe *h, struct hca_parser_ctx *c, struct hca_record_pool *pool,
	    uint32_t qpi)
{
	struct hca_qp_parser *p = &h->qp[qpi].parser;

	if (p->flags & wait_flag(pool) && reserve_due(pool, p))
		wake(h, c, pool, qpi);
}

#endif
