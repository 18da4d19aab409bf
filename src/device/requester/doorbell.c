/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * doorbell: takes words from the UAR pages (tables 3-1-6, 3-1-7), checks them and passes them to
 * the parser. Pages are client memory: each word is read once, and every field of it is checked.
 * Marks are taken in the same way; MARK_WORDS and the burst limit the cost of a visit.
 *
 * Pages with recent doorbells are on the rota and checked in every poll; all open pages are checked
 * every SCAN_NS. While the rota is short no page leaves it but that of QP 1, which hosts have whose
 * programs do not use it.
 */

#include <errno.h>

#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "abi_ctx.h"
#include "ctxmgt/ctxmgt.h"
#include "requester/doorbell.h"
#include "engine/impl.h"
#include "engine/wire_ops.h"
#include "requester/wqe_unit.h"

#define SCAN_NS 25000u
#define ROTA_KEEP 16u /* pages that stay on the rota even if idle */
#define ROTA_IDLE_NS 1000000u
#define PAGE_WORDS (HCA_UAR_PAGES / 64u)
#define MARK_WORDS 8u /* limit of words checked per visit of a page */

/* An open page, and the part of its FIFO and of its words of marks that this pipe has. */
struct page {
	uint64_t last_ring; /* ns */
	uint64_t marked;    /* a bit for each word of marks */
	uint32_t gen_seen;
	uint16_t mark_at; /* position of the next check of marks */
	uint8_t head;	  /* number of the next doorbell */
	uint8_t fifo_base, fifo_mask;
	uint8_t mark_base, mark_mask;
};

struct hca_doorbell_ctx {
	/* control plane; odd = open, incremented when the page is opened or closed */
	uint32_t page_gen[HCA_UAR_PAGES];
	uint8_t page_parts[HCA_UAR_PAGES];  /* pipes that divide the page; before page_gen */
	uint32_t epoch __rte_cache_aligned; /* [pub] counts changes of page_gen */

	/* doorbell stage */
	uint32_t epoch_seen __rte_cache_aligned;
	uint32_t hot_n, hot_at;
	/* a page had doorbells but no word was taken: no room, or more marks than a visit checks */
	bool stuck;
	uint64_t next_scan; /* ns */
	uint64_t open[PAGE_WORDS];
	uint64_t on_rota[PAGE_WORDS];
	struct page page[HCA_UAR_PAGES];
	uint16_t hot[HCA_UAR_PAGES];
};

_Static_assert(HCA_UAR_FIFO_SLOTS == 256, "head counts in 8 bits");

static inline struct hca_doorbell_ctx *
doorbell_ctx(struct hca_pipe *h)
{
	return h->stage_ctx[HCA_STAGE_DOORBELL];
}

static inline struct hca_uar_page *
uar_page(struct hca_pipe *h, uint32_t page)
{
	return (struct hca_uar_page *)(h->bar2 + (size_t)page * HCA_UAR_PAGE_SIZE);
}

static inline bool
bit_get(const uint64_t *map, uint32_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static inline void
bit_set(uint64_t *map, uint32_t i, bool on)
{
	uint64_t bit = 1ull << (i % 64);

	map[i / 64] = on ? map[i / 64] | bit : map[i / 64] & ~bit;
}

/* The part of a pipe, less than `parts`, of page number n. */
static void
take_part(struct page *p, uint32_t n, uint32_t parts, uint32_t pipe)
{
	uint32_t words = HCA_UAR_MARK_WORDS / parts;

	p->fifo_base = (uint8_t)HCA_UAR_FIFO_SLOT(parts, pipe, 0);
	p->fifo_mask = (uint8_t)(HCA_UAR_FIFO_PART(parts) - 1);
	p->mark_base = (uint8_t)(pipe * words);
	p->mark_mask = (uint8_t)(words - 1);
	p->marked = UINT64_MAX >> (64 - words) << p->mark_base;
	p->head = (uint8_t)HCA_UAR_FIFO_FIRST(n);
	p->mark_at = (uint16_t)(64u * p->mark_base);
}

int
hca_doorbell_init(struct hca_pipe *h)
{
	struct hca_doorbell_ctx *c;

	c = rte_zmalloc_socket(NULL, sizeof(*c), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	if (c == NULL)
		return -ENOMEM;
	h->stage_ctx[HCA_STAGE_DOORBELL] = c;
	return 0;
}

void
hca_doorbell_fini(struct hca_pipe *h)
{
	rte_free(h->stage_ctx[HCA_STAGE_DOORBELL]);
	h->stage_ctx[HCA_STAGE_DOORBELL] = NULL;
}

void
hca_doorbell_page_open(struct hca_pipe *h, uint32_t page, uint32_t parts)
{
	struct hca_doorbell_ctx *c = doorbell_ctx(h);
	uint32_t gen;

	if (page >= HCA_UAR_PAGES || (parts != 0 && parts <= h->pipe_number))
		return;
	gen = c->page_gen[page];
	if ((gen & 1) == (parts != 0))
		return;
	if (parts != 0)
		__atomic_store_n(&c->page_parts[page], (uint8_t)parts, __ATOMIC_RELAXED);
	/* a worker that looks for an earlier change may also find this one: the page is cleared */
	__atomic_store_n(&c->page_gen[page], gen + 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&c->epoch, 1, __ATOMIC_RELEASE);
}

static void
rota_add(struct hca_doorbell_ctx *c, uint32_t page, uint64_t now)
{
	c->page[page].last_ring = now;
	if (bit_get(c->on_rota, page))
		return;
	bit_set(c->on_rota, page, true);
	c->hot[c->hot_n++] = (uint16_t)page;
}

static void
rota_remove_at(struct hca_doorbell_ctx *c, uint32_t i)
{
	bit_set(c->on_rota, c->hot[i], false);
	c->hot[i] = c->hot[--c->hot_n];
}

/* The control plane has opened or closed pages. */
static void
pages_changed(struct hca_pipe *h, struct hca_doorbell_ctx *c, uint32_t epoch, uint64_t now)
{
	c->epoch_seen = epoch;
	for (uint32_t page = 0; page < HCA_UAR_PAGES; page++) {
		uint32_t gen = __atomic_load_n(&c->page_gen[page], __ATOMIC_ACQUIRE);

		if (gen == c->page[page].gen_seen)
			continue;
		c->page[page].gen_seen = gen;
		bit_set(c->open, page, gen & 1);
		if ((gen & 1) == 0)
			continue;
		take_part(&c->page[page], page,
			  __atomic_load_n(&c->page_parts[page], __ATOMIC_RELAXED), h->pipe_number);
		rota_add(c, page, now);
	}
	for (uint32_t i = 0; i < c->hot_n;) {
		if (bit_get(c->open, c->hot[i]))
			i++;
		else
			rota_remove_at(c, i);
	}
}

/*
 * Whether the register was written, judged by its second half, which is never zero because QPN 0
 * does not exist.
 */
static inline bool
register_written(const struct hca_pipe *h, const struct hca_uar_page *u)
{
	uint64_t w = hca_le64_to_cpu(__atomic_load_n(&u->sq_doorbell, __ATOMIC_RELAXED));

	return w >> 32 != 0 && (HCA_DB_QPN(w) & h->pipe_mask) == h->pipe_number;
}

/* On the same cache line as the register. */
static inline bool
is_marked(const struct page *p, const struct hca_uar_page *u)
{
	return (hca_le64_to_cpu(__atomic_load_n(&u->marked, __ATOMIC_RELAXED)) & p->marked) != 0;
}

static inline uint32_t
fifo_slot(const struct page *p, uint8_t number)
{
	return p->fifo_base + (number & p->fifo_mask);
}

static inline bool
has_doorbells(const struct hca_pipe *h, const struct page *p, const struct hca_uar_page *u)
{
	return __atomic_load_n(&u->fifo[fifo_slot(p, p->head)], __ATOMIC_RELAXED) != HCA_DB_EMPTY ||
	       register_written(h, u) || is_marked(p, u);
}

/* Check open pages that are not on the rota; those with doorbells join it. */
static void
check_cold_pages(struct hca_pipe *h, struct hca_doorbell_ctx *c, uint64_t now)
{
	for (uint32_t w = 0; w < PAGE_WORDS; w++) {
		uint64_t cold = c->open[w] & ~c->on_rota[w];

		for (; cold != 0; cold &= cold - 1) {
			uint32_t page = w * 64 + (uint32_t)__builtin_ctzll(cold);

			if (has_doorbells(h, &c->page[page], uar_page(h, page)))
				rota_add(c, page, now);
		}
	}
}

/* The page of the QP that gets the datagrams to QPN 1; 0: none. */
static uint32_t
gsi_page(const struct hca_pipe *h)
{
	uint32_t qpn = __atomic_load_n(&h->ctxmgt->gsi_qpn, __ATOMIC_ACQUIRE);

	return qpn != 0 ? h->qp[hca_qp_index(&h->core, qpn)].cfg.usr_page : 0;
}

/* Check every open page once; idle pages leave the rota if it is long. */
static void
scan_pages(struct hca_pipe *h, struct hca_doorbell_ctx *c, uint64_t now)
{
	uint32_t gsi = gsi_page(h);

	c->next_scan = now + SCAN_NS;
	for (uint32_t i = c->hot_n; i-- > 0;)
		if (c->hot[i] == gsi ||
		    (c->hot_n > ROTA_KEEP && now - c->page[c->hot[i]].last_ring > ROTA_IDLE_NS))
			rota_remove_at(c, i);
	check_cold_pages(h, c, now);
}

/* The word of the register, unless the client has replaced it by one for another pipe. */
static unsigned int
take_register(const struct hca_pipe *h, struct hca_uar_page *u, uint64_t *word)
{
	hca_le64 raw = __atomic_load_n(&u->sq_doorbell, __ATOMIC_RELAXED);

	*word = hca_le64_to_cpu(raw);
	return (HCA_DB_QPN(*word) & h->pipe_mask) == h->pipe_number &&
	       __atomic_compare_exchange_n(&u->sq_doorbell, &raw, 0, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/*
 * Prefetch the lines of the QP that the doorbell stage and the requester need. Lines that other
 * workers write are left to them.
 */
static inline void
prefetch_lines(const struct hca_pipe *h, const struct hca_qp *qp)
{
	rte_prefetch0(&qp->cfg);
	if (!h->single_worker)
		return;
	rte_prefetch0(&qp->parser);
	rte_prefetch0((const uint8_t *)&qp->parser + RTE_CACHE_LINE_SIZE);
	rte_prefetch0(&qp->sq_next);
	rte_prefetch0(&qp->sq_una);
	rte_prefetch0(&qp->encap);
	rte_prefetch0((const uint8_t *)&qp->encap + RTE_CACHE_LINE_SIZE);
}

/* Take at most max words of the page and clear them. */
static inline unsigned int
take_words(struct hca_pipe *h, struct page *p, struct hca_uar_page *u, uint64_t *words,
	   unsigned int max)
{
	uint8_t head = p->head;
	uint32_t last = UINT32_MAX;
	unsigned int n = 0;

	while (n < max) {
		hca_le64 *slot = &u->fifo[fifo_slot(p, head)];
		uint64_t w = hca_le64_to_cpu(__atomic_load_n(slot, __ATOMIC_ACQUIRE));

		if (w == HCA_DB_EMPTY)
			break;
		__atomic_store_n(slot, HCA_DB_EMPTY, __ATOMIC_RELEASE);
		head++;
		if (HCA_DB_QPN(w) != last)
			prefetch_lines(h, &h->qp[hca_qp_index(&h->core, HCA_DB_QPN(w))]);
		last = HCA_DB_QPN(w);
		words[n++] = w;
	}
	p->head = head;
	if (unlikely(n < max && register_written(h, u)))
		n += take_register(h, u, &words[n]);
	return n;
}

static inline bool
state_takes_wqes(uint32_t state)
{
	return 1u << state &
	       (1u << HCA_QPS_RTS | 1u << HCA_QPS_SQD | 1u << HCA_QPS_SQE | 1u << HCA_QPS_ERR);
}

/* An operation that RoCE does not have, of a QP of a wire that has it. */
static __rte_noinline bool
is_other_op(const struct hca_qp *qp, uint8_t op, const struct hca_pipe *h)
{
	const struct hca_wire_ops *wire = hca_other_wire(&h->core, qp->cfg.service);

	return wire != NULL && (wire->wqe_ops >> (op & 31) & 1) != 0;
}

/* Receives were posted to a QP in ERR: the stage that has them flushes them. */
static void
kick(struct hca_pipe *h, uint32_t qpi)
{
	const struct hca_wire_ops *wire = hca_wire_of_qp(&h->core, &h->qp[qpi]);

	hca_msg_send(h, HCA_STAGE_DOORBELL, wire->receives_to, qpi, HCA_MSG_KICK);
}

/*
 * Check a word: returns it for the parser, or NULL if it was dropped (and counted) or is not for
 * the parser.
 */
static inline void *
doorbell_judge(struct hca_pipe *h, uint32_t page, uint64_t w)
{
	uint32_t qpn = HCA_DB_QPN(w), qpi = hca_qp_index(&h->core, qpn);
	uint8_t op = (uint8_t)HCA_DB_OPCODE(w);
	struct hca_qp *qp = &h->qp[qpi];
	uint32_t state;

	if (unlikely(!hca_wqe_op_known(op) && op != HCA_DB_OPCODE_KICK &&
		     !is_other_op(qp, op, h))) {
		HCA_COUNT(h, DOORBELL, db_bad_opcode);
		return NULL;
	}
	if (unlikely(qpn == 0 || __atomic_load_n(&qp->cfg.local_qpn, __ATOMIC_ACQUIRE) != qpn)) {
		HCA_COUNT(h, DOORBELL, db_dead_qpn);
		return NULL;
	}
	/* in RST the QP is being destroyed: its other fields must not be used */
	state = hca_qp_state(qp);
	if (unlikely(state == HCA_QPS_RST)) {
		HCA_COUNT(h, DOORBELL, db_bad_state);
		return NULL;
	}
	if (unlikely(qp->cfg.usr_page != page || (qpi & h->pipe_mask) != h->pipe_number)) {
		HCA_COUNT(h, DOORBELL, db_foreign_qpn);
		return NULL;
	}
	if (unlikely(op == HCA_DB_OPCODE_KICK)) {
		HCA_COUNT(h, DOORBELL, db_kicks);
		kick(h, qpi);
		return NULL;
	}
	if (unlikely(!state_takes_wqes(state))) {
		HCA_COUNT(h, DOORBELL, db_bad_state);
		return NULL;
	}
	if (unlikely(qp->parser.sq.bytes == 0)) {
		HCA_COUNT(h, DOORBELL, db_bad_state);
		return NULL;
	}
	if (unlikely(HCA_DB_SQ_HEAD(w) >> qp->parser.sq_size_log != 0)) {
		HCA_COUNT(h, DOORBELL, db_bad_index);
		return NULL;
	}
	return hca_dbw_make(w, qpi, qp->cfg.generation);
}

/* ---- marks ---- */

/* Number of QPs that share one mark. */
static inline uint32_t
qps_per_mark(const struct hca_pipe *h)
{
	uint32_t qps = __atomic_load_n(&h->qp_mask, __ATOMIC_RELAXED) + 1;

	return qps > HCA_UAR_MARK_COUNT ? qps / HCA_UAR_MARK_COUNT : 1;
}

/*
 * Take up to max marks of word w from bit `from` on and clear them in the page. If some remain they
 * are set again: the word first, then its bit in `marked`, as the owner does.
 */
static unsigned int
take_mark_word(struct hca_uar_page *u, uint32_t w, uint32_t from, uint16_t *marks, unsigned int max)
{
	uint64_t bit = 1ull << w, set, left;
	unsigned int n = 0;

	__atomic_fetch_and(&u->marked, hca_cpu_to_le64(~bit), __ATOMIC_SEQ_CST);
	set = hca_le64_to_cpu(__atomic_exchange_n(&u->marks[w], 0, __ATOMIC_SEQ_CST));
	left = set & ((1ull << from) - 1);
	for (set &= ~left; set != 0 && n < max; set &= set - 1)
		marks[n++] = (uint16_t)(w * 64 + (uint32_t)__builtin_ctzll(set));
	left |= set;
	if (left != 0) {
		__atomic_fetch_or(&u->marks[w], hca_cpu_to_le64(left), __ATOMIC_RELAXED);
		__atomic_fetch_or(&u->marked, hca_cpu_to_le64(bit), __ATOMIC_RELEASE);
	}
	return n;
}

/* Words of marks of this pipe, in a circle. */
static inline uint32_t
next_mark_word(const struct page *p, uint32_t w)
{
	return p->mark_base + (w & p->mark_mask);
}

/*
 * Take up to max marks, beginning after the one taken last, so that none waits for others that are
 * set again and again.
 */
static unsigned int
take_marks(struct page *p, struct hca_uar_page *u, uint16_t *marks, unsigned int max)
{
	uint64_t set = hca_le64_to_cpu(__atomic_load_n(&u->marked, __ATOMIC_RELAXED)) & p->marked;
	uint32_t at = p->mark_at, looked = 0;
	unsigned int n = 0;

	/* the first word is visited twice: from the middle on, and at the end the rest */
	for (uint32_t i = 0; i <= p->mark_mask + 1u && looked < MARK_WORDS; i++) {
		uint32_t w = at / 64;

		if (set >> w & 1) {
			looked++;
			n += take_mark_word(u, w, at % 64, &marks[n], max - n);
			if (n == max) {
				at = marks[n - 1] + 1u;
				break;
			}
		}
		at = next_mark_word(p, w + 1) * 64;
	}
	p->mark_at = (uint16_t)(next_mark_word(p, at / 64) * 64 + at % 64);
	return n;
}

/* Handle a mark for one QP that shares it: 1 word for the parser, or none. */
static unsigned int
judge_marked(struct hca_pipe *h, uint32_t page, uint32_t qpi, void **obj, bool *own, bool *foreign)
{
	struct hca_qp *qp = &h->qp[qpi];
	uint32_t state;

	if (__atomic_load_n(&qp->cfg.local_qpn, __ATOMIC_ACQUIRE) == 0)
		return 0;
	state = hca_qp_state(qp);
	if (state == HCA_QPS_RST)
		return 0;
	if (qp->cfg.usr_page != page || (qpi & h->pipe_mask) != h->pipe_number) {
		*foreign = true;
		return 0;
	}
	*own = true;
	if (state == HCA_QPS_ERR)
		kick(h, qpi);
	if (!state_takes_wqes(state) || qp->parser.sq.bytes == 0)
		return 0;
	*obj = hca_dbw_make(HCA_DB_MAKE(0, 0, HCA_DBW_LOOK, 0, 0), qpi, qp->cfg.generation);
	return 1;
}

/*
 * The k-th QP of those that share a mark, see HCA_UAR_MARK(). In an undivided page QPs of all pipes
 * share marks.
 */
static inline uint32_t
marked_qp(const struct hca_pipe *h, const struct page *p, uint32_t mark, uint32_t k)
{
	uint32_t words = p->mark_mask + 1u, parts = HCA_UAR_MARK_WORDS / words;
	uint32_t part = HCA_UAR_MARK_PART(parts), pipe = p->mark_base / words;

	return ((mark % part + k * part) * parts + pipe) & h->qp_mask;
}

/* Returns the number of marks taken; their words for the parser fit into max. */
static unsigned int
visit_marks(struct hca_pipe *h, struct hca_doorbell_ctx *c, uint32_t page, unsigned int max,
	    uint64_t now)
{
	uint32_t per = qps_per_mark(h);
	uint16_t marks[HCA_BURST];
	void *objs[HCA_BURST];
	struct page *p = &c->page[page];
	unsigned int n = take_marks(p, uar_page(h, page), marks, max / per), good = 0;

	for (unsigned int i = 0; i < n; i++) {
		bool own = false, foreign = false;

		for (uint32_t k = 0; k < per; k++)
			good += judge_marked(h, page, marked_qp(h, p, marks[i], k), &objs[good],
					     &own, &foreign);
		if (own) {
			HCA_COUNT(h, DOORBELL, db_marks);
			continue;
		}
		HCA_COUNT(h, DOORBELL, doorbells);
		if (foreign)
			HCA_COUNT(h, DOORBELL, db_foreign_qpn);
		else
			HCA_COUNT(h, DOORBELL, db_dead_qpn);
	}
	if (good != 0)
		hca_edge_push(h, &h->edge[HCA_EDGE_DB_PARSER], objs, good, now);
	return n;
}

static unsigned int
visit_words(struct hca_pipe *h, struct hca_doorbell_ctx *c, uint32_t page, unsigned int max,
	    uint64_t now)
{
	uint64_t words[HCA_BURST];
	void *objs[HCA_BURST];
	unsigned int n, good = 0;

	n = take_words(h, &c->page[page], uar_page(h, page), words, max);
	c->page[page].last_ring = now;
	for (unsigned int i = 0; i < n; i++) {
		void *obj = doorbell_judge(h, page, words[i]);

		if (likely(obj != NULL))
			objs[good++] = obj;
	}
	HCA_COUNT_N(h, DOORBELL, doorbells, n);
	if (good != 0)
		hca_edge_push(h, &h->edge[HCA_EDGE_DB_PARSER], objs, good, now);
	return n;
}

/* Half of the burst is for marks, if there are any, so that a full FIFO does not hide them. */
static unsigned int
visit_page(struct hca_pipe *h, struct hca_doorbell_ctx *c, uint32_t page, unsigned int max,
	   uint64_t now)
{
	unsigned int marks = RTE_MAX(max / 2, qps_per_mark(h)), done = 0;

	if (unlikely(is_marked(&c->page[page], uar_page(h, page))) && marks <= max) {
		done = visit_marks(h, c, page, marks, now);
		max -= marks;
	}
	return done + visit_words(h, c, page, max, now);
}

/* Room first: words that the parser's edge cannot take stay in their FIFO. */
static inline unsigned int
burst_room(struct hca_pipe *h, unsigned int budget)
{
	unsigned int room = hca_edge_room(h, &h->edge[HCA_EDGE_DB_PARSER]);

	room = RTE_MIN(room, budget);
	return RTE_MIN(room, HCA_BURST);
}

unsigned int
hca_doorbell_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct hca_doorbell_ctx *c = doorbell_ctx(h);
	uint32_t epoch = __atomic_load_n(&c->epoch, __ATOMIC_ACQUIRE);
	unsigned int done = 0;
	uint32_t at;

	if (unlikely(epoch != c->epoch_seen))
		pages_changed(h, c, epoch, now);
	if (unlikely(now >= c->next_scan))
		scan_pages(h, c, now);
	at = c->hot_at < c->hot_n ? c->hot_at : 0;
	c->stuck = false;
	for (uint32_t i = 0; i < c->hot_n; i++) {
		uint32_t page = c->hot[at];

		if (unlikely(has_doorbells(h, &c->page[page], uar_page(h, page)))) {
			unsigned int max = burst_room(h, budget - done), taken;

			if (max == 0) {
				c->stuck = true;
				break;
			}
			taken = visit_page(h, c, page, max, now);
			c->stuck |= taken == 0;
			done += taken;
		}
		at = at + 1 < c->hot_n ? at + 1 : 0;
	}
	/* the next burst starts where this one ended, so that no page delays another */
	c->hot_at = at;
	return done;
}

/* Clients kick after a doorbell; the last check before a sleep sees all pages. */
uint64_t
hca_doorbell_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct hca_doorbell_ctx *c = h->stage_ctx[HCA_STAGE_DOORBELL];

	(void)now;
	return c->stuck ? HCA_DEADLINE_ROOM : UINT64_MAX;
}

void
hca_doorbell_scan_next(struct hca_pipe *h)
{
	doorbell_ctx(h)->next_scan = 0;
}

bool
hca_doorbell_rang(const struct hca_pipe *h, uint32_t page, uint64_t now)
{
	const struct hca_doorbell_ctx *c = h->stage_ctx[HCA_STAGE_DOORBELL];

	return c->page[page].last_ring == now || c->stuck;
}
