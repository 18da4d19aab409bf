/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_bystander.h"

#include "core/counters.h"

#define LENGTH 4096u
/* Parts of the memories that are not used otherwise in these tests. */
#define FROM (UB_PAIR_FROM + UB_PAIR_PART - LENGTH)
#define TO (UB_PAIR_TO + UB_PAIR_PART - LENGTH)
#define INTO (UB_PAIR_READ + UB_PAIR_PART - LENGTH)

static void
post(struct ub_bystander *b, bool read)
{
	struct ub_pair *p = b->p;
	urma_sge_t own = ub_pair_local(p, 0, read ? INTO : FROM, LENGTH);
	urma_sge_t peers = ub_pair_remote(p, 0, read ? FROM : TO, LENGTH);
	urma_jfs_wr_t wr = ub_pair_request(p, 0, read ? URMA_OPC_READ : URMA_OPC_WRITE,
					   UB_BYSTANDER_ID + b->requests);

	memset(read ? p->side[0].mem + INTO : p->side[1].mem + TO, 0, LENGTH);
	wr.rw.src = (urma_sg_t){read ? &peers : &own, 1};
	wr.rw.dst = (urma_sg_t){read ? &own : &peers, 1};
	sim_check(p->s, urma_post_jfs_wr(p->side[0].jfs, &wr, NULL) == URMA_SUCCESS, "post: %s",
		  softhca_urma_reason());
}

/* Notes when all requests have completed, before other code sees it. */
static void
watch(void *arg)
{
	struct ub_bystander *b = arg;
	const struct ub_pair_side *sd = &b->p->side[0];
	const struct urma_queue *q = (const struct urma_queue *)sd->jfs;
	const struct hca_qp *qp = &sd->h->core->qp[q->number & sd->h->core->qp_mask];

	if (b->ended == 0 && hca_una_tail(qp->sq_una) == q->sq.head)
		b->ended = b->p->s->now;
}

static uint64_t
request(struct ub_bystander *b, uint32_t i)
{
	struct ub_pair *p = b->p;
	uint64_t began = p->s->now, id = UB_BYSTANDER_ID + b->requests;
	bool read = b->requests % 2;
	urma_cr_t cr;

	b->ended = 0;
	p->s->watch = watch;
	p->s->watch_arg = b;
	post(b, read);
	b->requests++;
	if (b->during != NULL)
		b->during(b->arg, i);
	for (;;) {
		cr = ub_pair_next(p, p->side[0].send_jfc, 1000 * UB_PAIR_MS);
		if (cr.user_ctx == id)
			break;
		sim_check(p->s, b->other != NULL && cr.user_ctx < UB_BYSTANDER_ID,
			  "completion of %#lx, status %u", (unsigned long)cr.user_ctx, cr.status);
		b->other(b->arg, &cr);
	}
	p->s->watch = NULL;
	sim_check(p->s, cr.status == URMA_CR_SUCCESS && b->ended != 0,
		  "the bystander's status is %u", cr.status);
	if (read)
		ub_pair_same(p, 0, INTO, FROM, LENGTH);
	else
		ub_pair_same(p, 1, TO, FROM, LENGTH);
	return b->ended - began;
}

uint64_t
ub_bystander_request(struct ub_bystander *b)
{
	return request(b, 0);
}

static int
by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static struct ub_bystander_times
run(struct ub_bystander *b)
{
	uint64_t took[UB_BYSTANDER_REQUESTS], sum = 0;

	for (uint32_t i = 0; i < RTE_DIM(took); i++) {
		if (b->disturb != NULL)
			b->disturb(b->arg, i);
		took[i] = request(b, i);
		sum += took[i];
	}
	qsort(took, RTE_DIM(took), sizeof(took[0]), by_size);
	return (struct ub_bystander_times){.p99 = took[RTE_DIM(took) * 99 / 100 - 1],
					   .mean = sum / RTE_DIM(took)};
}

void
ub_bystander_check(struct ub_bystander *b)
{
	UB_PAIR_EQ(b->p, ub_pair_again(b->p), b->again);
	UB_PAIR_EQ(b->p, ub_pair_timeouts(b->p), b->timeouts);
}

void
ub_bystander_open(struct ub_bystander *b, struct ub_pair *p)
{
	*b = (struct ub_bystander){.p = p};
	run(b); /* until round trips have been timed */
	b->again = ub_pair_again(p);
	b->timeouts = ub_pair_timeouts(p);
	b->usual = run(b);
}

void
ub_bystander_beside(struct ub_bystander *b)
{
	b->usual = run(b);
	ub_bystander_check(b);
}

static void
at_most(struct ub_bystander *b, const char *what, uint64_t now, uint64_t usual, uint64_t more)
{
	if (getenv("SIM_VERBOSE") != NULL)
		fprintf(stderr, "%s %lu ns, usually %lu ns\n", what, (unsigned long)now,
			(unsigned long)usual);
	sim_check(b->p->s, now <= usual + more, "%s of requests: %lu ns, usually %lu ns", what,
		  (unsigned long)now, (unsigned long)usual);
}

void
ub_bystander_run(struct ub_bystander *b)
{
	struct ub_bystander_times now = run(b), usual = b->usual;

	/* stepped: stages take turns at random, which moves the p99 of so few by a tenth itself */
	if (b->p->cfg.sim.executor == SIM_STEPPED) {
		at_most(b, "mean", now.mean, usual.mean, usual.mean / 10);
		at_most(b, "p99", now.p99, usual.p99, usual.p99 / 4);
	} else {
		at_most(b, "p99", now.p99, usual.p99, usual.p99 / 10);
	}
	ub_bystander_check(b);
}
