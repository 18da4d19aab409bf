/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * States of Jettys and JFSs. In RESET the device has no such object: every posted request has its
 * completion before. READY starts its queues empty, under the same number.
 */

#include <string.h>
#include <time.h>

#include "urma_impl.h"

/* How long the device may take to flush the posted requests. */
#define FLUSH_NS INT64_C(1000000000)
#define PAUSE_NS 20000
#define PAUSE_NS_MAX 1000000

/* States that a program may ask for, by the one before. */
static bool
life_may_become(uint32_t from, uint32_t to)
{
	switch (to) {
	case URMA_JETTY_STATE_RESET:
		return true;
	case URMA_JETTY_STATE_READY:
		return from == URMA_JETTY_STATE_SUSPENDED || from == URMA_JETTY_STATE_RESET;
	case URMA_JETTY_STATE_SUSPENDED:
		return from == URMA_JETTY_STATE_READY;
	case URMA_JETTY_STATE_ERROR:
		return from != URMA_JETTY_STATE_RESET;
	default:
		return false;
	}
}

static const char *
life_name(uint32_t state)
{
	static const char *const names[] = {"RESET", "READY", "SUSPENDED", "ERROR"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

static int
life_query(const struct urma_queue *q, struct urma_ctl_state *now)
{
	return q->ctx->ctl->query_jetty(q->ctx->lib, q->number, now);
}

static int
life_modify(const struct urma_queue *q, uint32_t state)
{
	return q->ctx->ctl->modify_jetty(q->ctx->lib, q->number, state);
}

/* As posts read it: they hold one of the locks. */
static void
life_store(struct urma_queue *q, uint32_t state)
{
	lib_lock_take(&q->sq.lock);
	lib_lock_take(&q->rq.wq.lock);
	q->state = state;
	q->rq.closed = state == URMA_JETTY_STATE_RESET;
	lib_lock_drop(&q->rq.wq.lock);
	lib_lock_drop(&q->sq.lock);
}

/* ---- to RESET ---- */

/* Requests that the device was not told of, because their queue is unusable. */
static uint32_t
life_unseen(const struct urma_queue *q, const struct urma_ctl_state *now)
{
	return (uint16_t)(q->sq.head - now->sent);
}

static bool
life_is_flushed(const struct urma_queue *q, const struct urma_ctl_state *now)
{
	return now->flushed && life_unseen(q, now) == 0 &&
	       (q->rq.wq.buf == NULL || (uint16_t)q->rq.posted == now->received);
}

static int64_t
life_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Let the engine run, if this thread has to, or wait a little longer each time. */
static void
life_pause(struct lib_context *ctx, long *pause_ns)
{
	struct timespec pause = {.tv_nsec = *pause_ns};

	if (ctx->progress != NULL) {
		lib_run(ctx, ctx->progress);
		return;
	}
	nanosleep(&pause, NULL);
	if (*pause_ns < PAUSE_NS_MAX)
		*pause_ns *= 2;
}

/* Wait until all that was posted is complete, or as much as an unusable queue allows. */
static int
life_await_flush(struct urma_queue *q)
{
	int64_t until = life_clock_ns() + FLUSH_NS;
	struct urma_ctl_state now;
	long pause_ns = PAUSE_NS;

	for (;;) {
		int err = life_query(q, &now);

		if (err != 0)
			return err;
		if (life_is_flushed(q, &now))
			break;
		if (life_clock_ns() >= until) {
			if (now.flushed)
				break;
			return urma_fail(
				-EAGAIN,
				"%s %u is not flushed after %u ms: poll its JFCs, and modify it "
				"again",
				URMA_QUEUE(q), (unsigned int)(FLUSH_NS / 1000000));
		}
		life_pause(q->ctx->lib, &pause_ns);
	}
	q->unseen = life_unseen(q, &now);
	return 0;
}

static int
life_reset(struct urma_queue *q, uint32_t from)
{
	int err = urma_inside()->needs(q->ctx->lib, HCA_CTL_FEATURE_JETTY_RESET);

	if (err != 0)
		return err;
	life_store(q, URMA_JETTY_STATE_RESET);
	if (from != URMA_JETTY_STATE_ERROR)
		err = life_modify(q, URMA_JETTY_STATE_ERROR);
	if (err == 0)
		err = life_await_flush(q);
	if (err == 0)
		err = life_modify(q, URMA_JETTY_STATE_RESET);
	if (err != 0) {
		life_store(q, URMA_JETTY_STATE_ERROR);
		return err;
	}
	urma_forget_peer(q);
	return 0;
}

/* ---- to READY ---- */

static bool
life_has_completions(const struct urma_queue *q)
{
	uint32_t local =
		HCA_CQE_UB_MAKE_LOCAL(q->is_jfs ? HCA_CQE_UB_JFS : HCA_CQE_UB_JETTY, q->number);

	return urma_jfc_holds(q->send_cq, local) ||
	       (q->rq.wq.buf != NULL && urma_jfc_holds(q->recv_cq, local));
}

/* Completions name WQEs, so those of the old life are polled before there are new ones. */
static int
life_is_over(struct urma_queue *q)
{
	if (life_has_completions(q))
		return urma_fail(-EAGAIN,
				 "%s %u has completions of its last life: poll its JFCs first",
				 URMA_QUEUE(q));
	/* those without a completion are also finished */
	if (q->unseen != 0 && q->tail != q->sq.head) {
		if (q->sq.head - q->tail > q->unseen)
			q->tail = q->sq.head - q->unseen;
		return urma_fail(-EAGAIN,
				 "the device has not read %u requests of %s %u: fetch them with "
				 "urma_flush_%s()",
				 q->sq.head - q->tail, URMA_QUEUE(q), q->is_jfs ? "jfs" : "jetty");
	}
	return 0;
}

static void
life_clear_receives(struct urma_rq *rq)
{
	if (rq->wq.buf == NULL)
		return;
	memset(rq->wq.buf, 0, ((size_t)rq->wq.mask + 1) << rq->wq.log_stride);
	memset(rq->done, 0, (size_t)rq->wq.mask + 1);
	rq->tail = rq->posted = 0;
	rq->record->notify = 0;
	__atomic_store_n(&rq->record->producer, 0, __ATOMIC_RELEASE);
}

/* The queues keep no request or announcement of the old life. */
static void
life_clear(struct urma_queue *q)
{
	lib_lock_take(&q->sq.lock);
	lib_lock_take(&q->rq.wq.lock);
	memset(q->sq.buf, 0, ((size_t)q->sq.mask + 1) << q->sq.log_stride);
	q->sq.head = 0;
	__atomic_store_n(&q->tail, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&q->flushed, false, __ATOMIC_RELEASE);
	q->unseen = 0;
	life_clear_receives(&q->rq);
	lib_lock_drop(&q->rq.wq.lock);
	lib_lock_drop(&q->sq.lock);
}

static int
life_begin(struct urma_queue *q)
{
	int err = life_is_over(q);

	if (err != 0)
		return err;
	life_clear(q);
	err = life_modify(q, URMA_JETTY_STATE_READY);
	if (err == 0)
		life_store(q, URMA_JETTY_STATE_READY);
	return err;
}

/* ---- calls ---- */

static int
life_set(struct urma_queue *q, uint32_t state)
{
	struct urma_ctl_state now;
	int err = life_query(q, &now);

	if (err != 0)
		return err;
	if (!life_may_become(now.state, state))
		return urma_fail(
			-EINVAL,
			"%s %u cannot go from state %s to state %u: READY follows RESET and "
			"SUSPENDED, SUSPENDED follows READY, ERROR follows all but RESET",
			URMA_QUEUE(q), life_name(now.state), state);
	if (state == URMA_JETTY_STATE_RESET)
		return now.state == URMA_JETTY_STATE_RESET ? 0 : life_reset(q, now.state);
	if (now.state == URMA_JETTY_STATE_RESET)
		return life_begin(q);
	err = life_modify(q, state);
	if (err == 0)
		life_store(q, state);
	return err;
}

urma_status_t
urma_modify_jfs(urma_jfs_t *jfs, urma_jfs_attr_t *attr)
{
	if (jfs == NULL || attr == NULL || (attr->mask & ~(uint32_t)JFS_STATE) != 0)
		return urma_status(urma_fail(
			-EINVAL, "urma_modify_jfs() needs a JFS, and a mask of STATE: not %#x",
			attr == NULL ? 0 : attr->mask));
	return urma_status(attr->mask == 0 ? 0 : life_set((struct urma_queue *)jfs, attr->state));
}

urma_status_t
urma_modify_jetty(urma_jetty_t *jetty, urma_jetty_attr_t *attr)
{
	if (jetty == NULL || attr == NULL ||
	    (attr->mask & ~(uint32_t)(JETTY_STATE | JETTY_RX_THRESHOLD)) != 0)
		return urma_status(urma_fail(
			-EINVAL, "urma_modify_jetty() needs a Jetty, and a mask of STATE: not %#x",
			attr == NULL ? 0 : attr->mask));
	if ((attr->mask & JETTY_RX_THRESHOLD) != 0)
		return urma_status(urma_fail(
			-EOPNOTSUPP,
			"a Jetty has no receive threshold: use a JFR, and urma_modify_jfr()"));
	return urma_status(attr->mask == 0 ? 0 : life_set((struct urma_queue *)jetty, attr->state));
}

urma_status_t
urma_query_jfs(urma_jfs_t *jfs, urma_jfs_cfg_t *cfg, urma_jfs_attr_t *attr)
{
	struct urma_ctl_state now = {0};
	int err = 0;

	if (jfs == NULL)
		return urma_status(urma_null("jfs", "urma_create_jfs"));
	if (attr != NULL)
		err = life_query((struct urma_queue *)jfs, &now);
	if (err == 0 && attr != NULL)
		*attr = (urma_jfs_attr_t){.mask = JFS_STATE, .state = (urma_jfs_state_t)now.state};
	if (err == 0 && cfg != NULL)
		*cfg = jfs->jfs_cfg;
	return urma_status(err);
}

urma_status_t
urma_query_jetty(urma_jetty_t *jetty, urma_jetty_cfg_t *cfg, urma_jetty_attr_t *attr)
{
	struct urma_ctl_state now = {0};
	int err = 0;

	if (jetty == NULL)
		return urma_status(urma_null("jetty", "urma_create_jetty"));
	if (attr != NULL)
		err = life_query((struct urma_queue *)jetty, &now);
	if (err == 0 && attr != NULL)
		*attr = (urma_jetty_attr_t){.mask = JETTY_STATE,
					    .state = (urma_jetty_state_t)now.state};
	if (err == 0 && cfg != NULL)
		*cfg = jetty->jetty_cfg;
	return urma_status(err);
}
