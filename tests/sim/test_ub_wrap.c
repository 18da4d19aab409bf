/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A Jetty has more segments than there are numbers for them (TASSN, 16 bits), over links that lose,
 * copy, reorder and damage frames, to a peer that is not always ready. Where the numbers wrap,
 * requests of every kind are under way, one of them on both sides. Each is executed once and
 * completes in order.
 */

#include "ub_pair.h"

#include "ub/initiator/ta_initiator.h"

#define PROGRAM "sim-ub-wrap"
#define NUMBERS 65536u
#define SEGMENTS (NUMBERS + 2000u)
#define OPEN 200u     /* requests that are not completed */
#define RECEIVES 1u   /* fewer than Sends may be open */
#define SLOTS 1024u   /* each request has one, which none that is open shares */
#define SLOT 64u      /* bytes */
#define LONG_PARTS 4u /* segments of the request that is on both sides */
#define LONG_LEN (LONG_PARTS * HCA_TAI_SEGMENT)
#define LONG_AT (1u << 20) /* of it, in its part of the memory */
#define COUNTER (UB_PAIR_TO + UB_PAIR_PART - 8u)

enum kind {
	WRITE,
	READ,
	ADD,
	SEND,
	LONG
};

struct wrap {
	struct ub_pair p;
	struct hca_qp *qp; /* of the Jetty */
	uint64_t posted, done, segments;
	uint64_t adds, sends, received;
	bool is_long[SLOTS];
	uint8_t fetched[SEGMENTS]; /* by old value of the counter */
	/* at the wrap: most that were open below and above it, packets sent again */
	uint32_t below, above;
	uint64_t again_from, again;
	bool wrapping;
};

static struct wrap wrap;

static uint32_t
slot_of(uint64_t id)
{
	return (uint32_t)(id % SLOTS) * SLOT;
}

static enum kind
kind_of(const struct wrap *w, uint64_t id)
{
	if (w->is_long[id % SLOTS])
		return LONG;
	switch (id % 8) {
	case 0:
		return READ;
	case 3:
		return ADD;
	case 6:
		return SEND;
	default:
		return WRITE;
	}
}

/* ---- requests ---- */

static void
post(struct wrap *w)
{
	struct ub_pair *p = &w->p;
	uint64_t id = w->posted++;
	uint32_t slot = slot_of(id);

	w->is_long[id % SLOTS] = w->segments % NUMBERS > NUMBERS - LONG_PARTS;
	w->segments += w->is_long[id % SLOTS] ? LONG_PARTS : 1;
	memcpy(p->side[0].mem + UB_PAIR_FROM + slot, &id, sizeof(id));
	switch (kind_of(w, id)) {
	case WRITE:
		ub_pair_rw(p, 0, URMA_OPC_WRITE, UB_PAIR_FROM + slot, UB_PAIR_TO + slot, SLOT, id);
		break;
	case READ:
		ub_pair_rw(p, 0, URMA_OPC_READ, UB_PAIR_READ + slot, UB_PAIR_FROM + slot, SLOT, id);
		break;
	case ADD:
		ub_pair_atomic(p, 0, URMA_OPC_FADD, UB_PAIR_READ + slot, COUNTER, 8, 1, id);
		w->adds++;
		break;
	case SEND:
		ub_pair_send(p, 0, p->side[0].to_jetty, UB_PAIR_FROM + slot, SLOT, id);
		w->sends++;
		break;
	case LONG:
		ub_pair_rw(p, 0, URMA_OPC_WRITE, UB_PAIR_FROM + LONG_AT, UB_PAIR_TO + LONG_AT,
			   LONG_LEN, id);
		break;
	}
}

static void
completed(struct wrap *w, const urma_cr_t *cr)
{
	struct ub_pair *p = &w->p;
	uint64_t id = w->done++, old;
	uint32_t slot = slot_of(id);

	UB_PAIR_EQ(p, cr->user_ctx, id);
	UB_PAIR_EQ(p, cr->status, URMA_CR_SUCCESS);
	switch (kind_of(w, id)) {
	case WRITE:
		ub_pair_same(p, 1, UB_PAIR_TO + slot, UB_PAIR_FROM + slot, SLOT);
		break;
	case READ:
		ub_pair_same(p, 0, UB_PAIR_READ + slot, UB_PAIR_FROM + slot, SLOT);
		break;
	case ADD:
		memcpy(&old, p->side[0].mem + UB_PAIR_READ + slot, sizeof(old));
		sim_check(p->s, old < w->adds && w->fetched[old]++ == 0,
			  "an add has found %lu, of %lu", (unsigned long)old,
			  (unsigned long)w->adds);
		break;
	case SEND:
		break;
	case LONG:
		ub_pair_same(p, 1, UB_PAIR_TO + LONG_AT, UB_PAIR_FROM + LONG_AT, LONG_LEN);
		break;
	}
}

/* Sends to a Jetty are executed in any order: its bytes say which one it is. */
static void
received(struct wrap *w, const urma_cr_t *cr)
{
	struct ub_pair *p = &w->p;
	uint32_t at = UB_PAIR_RECV + (uint32_t)cr->user_ctx * SLOT;

	UB_PAIR_EQ(p, cr->status, URMA_CR_SUCCESS);
	UB_PAIR_EQ(p, cr->completion_len, SLOT);
	UB_PAIR_EQ(p, kind_of(w, cr->imm_data), SEND);
	ub_pair_same(p, 1, at, UB_PAIR_FROM + slot_of(cr->imm_data), SLOT);
	w->received++;
	ub_pair_recv(p, 1, false, at, SLOT, cr->user_ctx);
}

/* ---- the wrap ---- */

static uint32_t
open_between(const struct wrap *w, uint32_t from, uint32_t to)
{
	uint32_t n = 0;

	for (uint32_t t = from; t < to; t++)
		n += hca_tai_outstanding(hca_tai_segment(w->qp, (uint16_t)t));
	return n;
}

static void
watch(struct wrap *w)
{
	uint32_t una = hca_tai_una(w->qp), next = w->qp->tai.tassn;
	bool wrapping = next < una;

	if (wrapping && !w->wrapping)
		w->again_from = ub_pair_again(&w->p);
	if (wrapping || w->wrapping)
		w->again = ub_pair_again(&w->p) - w->again_from;
	w->wrapping = wrapping;
	if (!wrapping)
		return;
	w->below = RTE_MAX(w->below, open_between(w, una, NUMBERS));
	w->above = RTE_MAX(w->above, open_between(w, 0, next));
}

static void
check_wrap(const struct wrap *w)
{
	const struct ub_pair *p = &w->p;
	uint64_t counter;

	sim_check(p->s, w->below != 0 && w->above >= LONG_PARTS && w->again != 0,
		  "%u and %u segments around the wrap, %lu packets sent again", w->below, w->above,
		  (unsigned long)w->again);
	sim_check(p->s, ub_pair_counter(p, 0, HCA_CTR_ub_segments_reissued) != 0, "always ready");
	UB_PAIR_EQ(p, w->received, w->sends);
	memcpy(&counter, p->side[1].mem + COUNTER, sizeof(counter));
	UB_PAIR_EQ(p, counter, w->adds);
}

static void
run(struct wrap *w)
{
	struct ub_pair *p = &w->p;
	urma_cr_t cr;

	while (w->done != w->posted || w->segments < SEGMENTS) {
		while (w->segments < SEGMENTS && w->posted - w->done < OPEN)
			post(w);
		sim_poll(p->s);
		watch(w);
		while (urma_poll_jfc(p->side[0].send_jfc, 1, &cr) == 1)
			completed(w, &cr);
		while (urma_poll_jfc(p->side[1].recv_jfc, 1, &cr) == 1)
			received(w, &cr);
	}
}

static void
under_way_in(const struct sim_config *cfg)
{
	static const struct hca_impair bad = {.drop = 0.02,
					      .dup = 0.01,
					      .reorder = 0.01,
					      .reorder_ns = 5000,
					      .corrupt = 0.005};
	struct ub_pair_config c = {.sim = *cfg,
				   .tps = 2,
				   .retries = 15,
				   .err_timeout = 24,
				   .min_rnr_timer = 1,
				   .rto_base = 100};
	struct wrap *w = &wrap;
	struct ub_pair *p = &w->p;

	memset(w, 0, sizeof(*w));
	ub_pair_open(p, &c);
	w->qp = &p->side[0].h->core->qp[hca_qp_index(p->side[0].h->core,
						     p->side[0].jetty->jetty_id.id)];
	UB_PAIR_EQ(p, w->qp->tai.tassn, 0);
	for (uint32_t i = 0; i < RECEIVES; i++)
		ub_pair_recv(p, 1, false, UB_PAIR_RECV + i * SLOT, SLOT, i);
	for (unsigned int i = 0; i < 2; i++)
		sim_impair(p->s, i, &bad);
	run(w);
	for (unsigned int i = 0; i < 2; i++)
		sim_impair(p->s, i, NULL);
	check_wrap(w);
	ub_pair_close(p);
}

SIM_TEST(under_way)

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(under_way)};

	return sim_main_of(tests, RTE_DIM(tests));
}
