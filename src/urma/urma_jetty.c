/* SPDX-License-Identifier: BSD-3-Clause */

/* Jettys and JFSs: both have a send queue, a Jetty also has receives. States: urma_life.c. */

#include "abi_qp_attr.h"
#include "abi_roce.h"
#include "urma_impl.h"

#define DEFAULT_INLINE 64u
#define DEFAULT_ERR_TIMEOUT 17u
#define DEFAULT_RNR_TIMER 12u
#define MAX_PRIORITY 15u

/* ---- configurations ---- */

static int
check_order(uint32_t order)
{
	if (order == URMA_DEF_ORDER || order == URMA_OI)
		return 0;
	if (order <= URMA_NO)
		return urma_fail(-EOPNOTSUPP,
				 "order type %u is not offered: use URMA_DEF_ORDER or URMA_OI",
				 order);
	return urma_fail(-EINVAL, "order type %u: expected URMA_DEF_ORDER (%u) or URMA_OI (%u)",
			 order, URMA_DEF_ORDER, URMA_OI);
}

static int
check_mode(urma_transport_mode_t mode)
{
	if (mode == URMA_TM_RM || mode == URMA_TM_RC || mode == URMA_TM_UM)
		return 0;
	return urma_fail(-EINVAL, "transport mode %u: expected URMA_TM_RM (%u), RC (%u) or UM (%u)",
			 mode, URMA_TM_RM, URMA_TM_RC, URMA_TM_UM);
}

static int
check_token(uint32_t policy)
{
	if (policy <= URMA_TOKEN_PLAIN_TEXT)
		return 0;
	return urma_fail(-EOPNOTSUPP, URMA_NO_POLICY, policy, URMA_TOKEN_PLAIN_TEXT);
}

static int
check_jfc(const urma_context_t *ctx, const urma_jfc_t *jfc)
{
	if (jfc == NULL || jfc->urma_ctx != ctx)
		return urma_fail(
			-EINVAL,
			"jfc is %s: a queue needs a JFC of its context, from urma_create_jfc()",
			jfc == NULL ? "NULL" : "of another context");
	return 0;
}

static int
check_id(uint32_t id)
{
	if (id == 0 || (id >= HCA_TC_WELL_KNOWN_FREE && id < HCA_TC_WELL_KNOWN))
		return 0;
	return urma_fail(-EINVAL, "id %u: programs may ask for %u..%u", id, HCA_TC_WELL_KNOWN_FREE,
			 HCA_TC_WELL_KNOWN - 1);
}

static int
check_jfs(const urma_context_t *ctx, const urma_jfs_cfg_t *cfg)
{
	int err;

	if (ctx == NULL || cfg == NULL)
		return urma_fail(-EINVAL, URMA_NULL_CFG, (const void *)ctx, (const void *)cfg);
	if (cfg->flag.bs.outorder_comp)
		return urma_fail(
			-EOPNOTSUPP,
			"outorder_comp is not offered: completions come in the order of their "
			"requests; clear the flag");
	if (cfg->flag.bs.reserved != 0)
		return urma_fail(-EINVAL, "JFS flags %#x: the reserved bits must be 0",
				 cfg->flag.value);
	if (cfg->priority > MAX_PRIORITY || cfg->rnr_retry > HCA_RNR_RETRY_FOREVER ||
	    cfg->err_timeout > HCA_ACK_TIMEOUT_MAX || cfg->max_rsge > 1)
		return urma_fail(
			-EINVAL,
			"priority %u, rnr_retry %u, err_timeout %u, max_rsge %u: at most %u, %u, "
			"%u, 1",
			cfg->priority, cfg->rnr_retry, cfg->err_timeout, cfg->max_rsge,
			MAX_PRIORITY, HCA_RNR_RETRY_FOREVER, HCA_ACK_TIMEOUT_MAX);
	err = check_order(cfg->flag.bs.order_type);
	if (err == 0)
		err = check_mode(cfg->trans_mode);
	return err != 0 ? err : check_jfc(ctx, cfg->jfc);
}

static int
check_jfr(const urma_context_t *ctx, const urma_jfr_cfg_t *cfg)
{
	int err;

	if (ctx == NULL || cfg == NULL)
		return urma_fail(-EINVAL, URMA_NULL_CFG, (const void *)ctx, (const void *)cfg);
	if (cfg->flag.bs.tag_matching)
		return urma_fail(
			-EOPNOTSUPP,
			"tag_matching is not offered: receives are used in their order; clear the "
			"flag");
	if (cfg->flag.bs.reserved != 0 || cfg->min_rnr_timer > HCA_UB_RNR_TIMER_MAX)
		return urma_fail(
			-EINVAL,
			"JFR flags %#x, min_rnr_timer %u: the reserved bits must be 0, the timer "
			"at most %u",
			cfg->flag.value, cfg->min_rnr_timer, HCA_UB_RNR_TIMER_MAX);
	err = check_id(cfg->id);
	if (err == 0)
		err = check_token(cfg->flag.bs.token_policy);
	if (err == 0)
		err = check_order(cfg->flag.bs.order_type);
	if (err == 0)
		err = check_mode(cfg->trans_mode);
	return err != 0 ? err : check_jfc(ctx, cfg->jfc);
}

/* Messages with addresses in front, and without, need receives of different forms. */
static int
check_both(urma_transport_mode_t sends, urma_transport_mode_t receives)
{
	if ((sends == URMA_TM_UM) == (receives == URMA_TM_UM))
		return 0;
	return urma_fail(
		-EINVAL,
		"a Jetty with sends of mode %u and receives of mode %u: both must be UM (%u), or "
		"neither",
		sends, receives, URMA_TM_UM);
}

/* A Jetty's receives: a JFR's, or a queue that jfr_cfg describes */
static int
check_receives(const urma_context_t *ctx, const urma_jetty_cfg_t *cfg)
{
	if (cfg->flag.bs.reserved != 0)
		return urma_fail(-EINVAL, "Jetty flags %#x: the reserved bits must be 0",
				 cfg->flag.value);
	if (!cfg->flag.bs.share_jfr) {
		int err = check_jfr(ctx, cfg->jfr_cfg);

		return err != 0 ? err
				: check_both(cfg->jfs_cfg.trans_mode, cfg->jfr_cfg->trans_mode);
	}
	if (cfg->shared.jfr == NULL || cfg->shared.jfr->urma_ctx != ctx)
		return urma_fail(
			-EINVAL,
			"shared.jfr is %s: a Jetty with flag share_jfr needs a JFR of its context, "
			"from urma_create_jfr()",
			cfg->shared.jfr == NULL ? "NULL" : "of another context");
	if (check_both(cfg->jfs_cfg.trans_mode, cfg->shared.jfr->jfr_cfg.trans_mode) != 0)
		return -EINVAL;
	if (cfg->shared.jfc != NULL && cfg->shared.jfc != cfg->shared.jfr->jfr_cfg.jfc)
		return urma_fail(
			-EOPNOTSUPP,
			"shared.jfc is not the JFC of the JFR: receives of a JFR complete into its "
			"JFC; pass that one or NULL");
	return 0;
}

static void
fill_jfs(urma_jfs_cfg_t *cfg)
{
	cfg->max_sge = cfg->max_sge != 0 ? cfg->max_sge : 1;
	cfg->max_rsge = 1;
	cfg->max_inline_data = cfg->max_inline_data != 0 ? cfg->max_inline_data : DEFAULT_INLINE;
	cfg->err_timeout = cfg->err_timeout != 0 ? cfg->err_timeout : DEFAULT_ERR_TIMEOUT;
}

static void
fill_jfr(urma_jfr_cfg_t *cfg)
{
	cfg->max_sge = cfg->max_sge != 0 ? cfg->max_sge : 1;
	cfg->min_rnr_timer = cfg->min_rnr_timer != 0 ? cfg->min_rnr_timer : DEFAULT_RNR_TIMER;
}

/* ---- the table of a context, by which polls find an object ---- */

static struct lib_cq *
cq_of(const urma_jfc_t *jfc)
{
	return (struct lib_cq *)((const struct urma_jfc_obj *)jfc)->cq;
}

static void
use_cq(struct urma_ctx *ctx, struct lib_cq *cq, uint32_t add)
{
	if (cq == NULL)
		return;
	pthread_mutex_lock(&ctx->lib->lock);
	cq->users += add;
	pthread_mutex_unlock(&ctx->lib->lock);
}

static int
enter_queue(struct urma_ctx *ctx, struct urma_queue *q)
{
	struct urma_queue **place = &ctx->queue[q->number & ctx->queue_mask];
	int err = 0;

	pthread_mutex_lock(&ctx->lock);
	if (*place != NULL)
		err = urma_fail(-EIO, "the driver gave the number %#x twice", q->number);
	else
		__atomic_store_n(place, q, __ATOMIC_RELEASE);
	if (err == 0 && q->shared != NULL)
		q->shared->users++;
	pthread_mutex_unlock(&ctx->lock);
	if (err != 0)
		return err;
	use_cq(ctx, q->send_cq, 1);
	use_cq(ctx, q->recv_cq, 1);
	return 0;
}

/*
 * Polls look the object up with their CQ's lock held: after urma_jfc_forget() of both CQs no poll
 * uses it.
 */
static void
leave_queue(struct urma_ctx *ctx, struct urma_queue *q)
{
	uint32_t local =
		HCA_CQE_UB_MAKE_LOCAL(q->is_jfs ? HCA_CQE_UB_JFS : HCA_CQE_UB_JETTY, q->number);

	pthread_mutex_lock(&ctx->lock);
	__atomic_store_n(&ctx->queue[q->number & ctx->queue_mask], NULL, __ATOMIC_RELEASE);
	if (q->shared != NULL)
		q->shared->users--;
	pthread_mutex_unlock(&ctx->lock);
	urma_jfc_forget(q->send_cq, local);
	if (q->recv_cq != NULL)
		urma_jfc_forget(q->recv_cq, local);
	use_cq(ctx, q->send_cq, (uint32_t)-1);
	use_cq(ctx, q->recv_cq, (uint32_t)-1);
}

/* ---- creating ---- */

static void
free_queue(struct urma_ctx *ctx, struct urma_queue *q)
{
	urma_wq_unmap(ctx, &q->sq);
	urma_rq_unmap(ctx, &q->rq);
	urma_object_free(ctx, q);
}

static void
fill_send(struct urma_ctl_jetty *r, const struct urma_queue *q, const urma_jfs_cfg_t *cfg)
{
	r->sq_addr = (uintptr_t)q->sq.buf;
	r->pdn = q->ctx->pd->handle;
	r->send_cqn = q->send_cq->pub.handle;
	r->log_sq = (uint8_t)__builtin_ctz(q->sq.mask + 1);
	r->log_sq_stride = (uint8_t)q->sq.log_stride;
	r->priority = cfg->priority;
	r->rnr_retry = cfg->rnr_retry;
	r->err_timeout = cfg->err_timeout;
	r->error_suspend = cfg->flag.bs.error_suspend;
	r->is_jfs = q->is_jfs;
}

static void
fill_receive(struct urma_ctl_jetty *r, const struct urma_queue *q, const urma_jfr_cfg_t *cfg)
{
	r->recv_cqn = q->recv_cq->pub.handle;
	r->check_token = cfg->flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;
	r->token = r->check_token ? cfg->token_value.token : 0;
	r->min_rnr_timer = cfg->min_rnr_timer;
	if (q->shared != NULL) {
		r->share_jfr = true;
		r->srqn = q->shared->number;
		return;
	}
	r->rq_addr = (uintptr_t)q->rq.wq.buf;
	r->log_rq = (uint8_t)__builtin_ctz(q->rq.wq.mask + 1);
	r->log_rq_stride = (uint8_t)q->rq.wq.log_stride;
}

/* The object with its send queue */
static struct urma_queue *
new_queue(urma_context_t *ctx, const urma_jfs_cfg_t *cfg, bool is_jfs)
{
	struct urma_ctx *c = urma_ctx_of(ctx);
	struct urma_queue *q = urma_object_new(c, sizeof(*q), is_jfs ? "a JFS" : "a Jetty");
	int err;

	if (q == NULL)
		return NULL;
	q->ctx = c;
	q->is_jfs = is_jfs;
	q->send_cq = cq_of(cfg->jfc);
	err = urma_sq_map(c, q, cfg);
	if (err != 0) {
		free_queue(c, q);
		errno = -err;
		return NULL;
	}
	return q;
}

/* Give the queue to the driver. On an error it is freed. */
static int
finish_queue(struct urma_queue *q, const struct urma_ctl_jetty *request)
{
	struct urma_ctx *c = q->ctx;
	int err = c->ctl->create_jetty(c->lib, request, &q->number);

	if (err != 0)
		goto err_free;
	err = enter_queue(c, q);
	if (err != 0)
		goto err_destroy;
	q->state = URMA_JETTY_STATE_READY;
	return 0;

err_destroy:
	(void)c->ctl->destroy_jetty(c->lib, q->number);
err_free:
	free_queue(c, q);
	errno = -err;
	return err;
}

urma_jfs_t *
urma_create_jfs(urma_context_t *ctx, urma_jfs_cfg_t *cfg)
{
	struct urma_ctl_jetty request = {0};
	urma_jfs_cfg_t full;
	struct urma_queue *q;

	if (check_jfs(ctx, cfg) != 0)
		return NULL;
	full = *cfg;
	fill_jfs(&full);
	q = new_queue(ctx, &full, true);
	if (q == NULL)
		return NULL;
	full.depth = q->sq.mask + 1;
	q->jfs = (urma_jfs_t){.urma_ctx = ctx, .jfs_cfg = full};
	fill_send(&request, q, &full);
	if (finish_queue(q, &request) != 0)
		return NULL;
	q->jfs.jfs_id = (urma_jfs_id_t){.eid = ctx->eid, .id = q->number};
	return &q->jfs;
}

static int
make_receives(struct urma_queue *q, const urma_jetty_cfg_t *cfg, urma_jfr_cfg_t *own)
{
	if (cfg->flag.bs.share_jfr) {
		q->shared = (struct urma_jfrq *)cfg->shared.jfr;
		q->recv_cq = q->shared->cq;
		*own = q->shared->pub.jfr_cfg;
		return 0;
	}
	*own = *cfg->jfr_cfg;
	fill_jfr(own);
	q->recv_cq = cq_of(own->jfc);
	return urma_rq_map(q->ctx, &q->rq, own, false);
}

urma_jetty_t *
urma_create_jetty(urma_context_t *ctx, urma_jetty_cfg_t *cfg)
{
	struct urma_ctl_jetty request = {0};
	urma_jetty_cfg_t full;
	urma_jfr_cfg_t receives;
	struct urma_queue *q;

	if (cfg == NULL || check_jfs(ctx, &cfg->jfs_cfg) != 0 || check_receives(ctx, cfg) != 0 ||
	    check_id(cfg->id) != 0) {
		if (cfg == NULL)
			urma_fail(-EINVAL, URMA_NULL_CFG, (const void *)ctx, (const void *)cfg);
		return NULL;
	}
	full = *cfg;
	fill_jfs(&full.jfs_cfg);
	q = new_queue(ctx, &full.jfs_cfg, false);
	if (q == NULL)
		return NULL;
	if (make_receives(q, cfg, &receives) != 0) {
		free_queue(q->ctx, q);
		return NULL;
	}
	full.jfs_cfg.depth = q->sq.mask + 1;
	q->jetty = (urma_jetty_t){.urma_ctx = ctx, .jetty_cfg = full};
	fill_send(&request, q, &full.jfs_cfg);
	fill_receive(&request, q, &receives);
	request.well_known = cfg->id;
	request.one_peer = full.jfs_cfg.trans_mode == URMA_TM_RC;
	if (finish_queue(q, &request) != 0)
		return NULL;
	q->jetty.jetty_id =
		(urma_jetty_id_t){.eid = ctx->eid, .id = cfg->id != 0 ? cfg->id : q->number};
	return &q->jetty;
}

/* ---- deleting ---- */

static int
delete_queue(struct urma_queue *q)
{
	struct urma_ctx *ctx = q->ctx;
	int err;

	if (q->bound != NULL)
		return urma_fail(-EBUSY,
				 "Jetty %u is bound: urma_unbind_jetty() it before it is deleted",
				 q->number);
	err = ctx->ctl->destroy_jetty(ctx->lib, q->number);
	if (err != 0)
		return err;
	leave_queue(ctx, q);
	free_queue(ctx, q);
	return 0;
}

urma_status_t
urma_delete_jfs(urma_jfs_t *jfs)
{
	if (jfs == NULL)
		return urma_status(urma_null("jfs", "urma_create_jfs"));
	return urma_status(delete_queue((struct urma_queue *)jfs));
}

urma_status_t
urma_delete_jetty(urma_jetty_t *jetty)
{
	if (jetty == NULL)
		return urma_status(urma_null("jetty", "urma_create_jetty"));
	return urma_status(delete_queue((struct urma_queue *)jetty));
}

/* ---- flushing ---- */

static int
flush(struct urma_queue *q, int cr_cnt, urma_cr_t *cr)
{
	int got = 0;

	if (!__atomic_load_n(&q->flushed, __ATOMIC_ACQUIRE)) {
		urma_fail(-EINVAL,
			  "%s %u is not flushed yet: poll its JFC until URMA_CR_WR_FLUSH_ERR_DONE "
			  "comes",
			  URMA_QUEUE(q));
		return -1;
	}
	lib_lock_take(&q->sq.lock);
	for (; got < cr_cnt && q->tail != q->sq.head; got++) {
		cr[got] = (urma_cr_t){
			.status = URMA_CR_WR_FLUSH_ERR,
			.user_ctx = q->sq.wr_id[q->tail & q->sq.mask],
			.flag.bs.jetty = !q->is_jfs,
			.local_id = q->is_jfs ? q->jfs.jfs_id.id : q->jetty.jetty_id.id,
			.user_data = (uintptr_t)q,
		};
		__atomic_store_n(&q->tail, q->tail + 1, __ATOMIC_RELEASE);
	}
	lib_lock_drop(&q->sq.lock);
	return got;
}

int
urma_flush_jfs(urma_jfs_t *jfs, int cr_cnt, urma_cr_t *cr)
{
	if (jfs != NULL && cr != NULL && cr_cnt >= 0)
		return flush((struct urma_queue *)jfs, cr_cnt, cr);
	urma_fail(-EINVAL,
		  "jfs %p, %d completions at %p: expected a JFS, and a place for 0 or more",
		  (void *)jfs, cr_cnt, (void *)cr);
	return -1;
}

int
urma_flush_jetty(urma_jetty_t *jetty, int cr_cnt, urma_cr_t *cr)
{
	if (jetty != NULL && cr != NULL && cr_cnt >= 0)
		return flush((struct urma_queue *)jetty, cr_cnt, cr);
	urma_fail(-EINVAL,
		  "jetty %p, %d completions at %p: expected a Jetty, and a place for 0 or more",
		  (void *)jetty, cr_cnt, (void *)cr);
	return -1;
}

/* ---- JFRs ---- */

static int
enter_jfr(struct urma_ctx *ctx, struct urma_jfrq *f)
{
	struct urma_jfrq **place = &ctx->jfrq[f->number & ctx->jfrq_mask];
	int err = 0;

	pthread_mutex_lock(&ctx->lock);
	if (*place != NULL)
		err = urma_fail(-EIO, "the driver gave the JFR %#x twice", f->number);
	else
		__atomic_store_n(place, f, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ctx->lock);
	if (err == 0)
		use_cq(ctx, f->cq, 1);
	return err;
}

static void
free_jfr(struct urma_ctx *ctx, struct urma_jfrq *f)
{
	urma_rq_unmap(ctx, &f->rq);
	urma_object_free(ctx, f);
}

static struct urma_ctl_jfr
jfr_request(const struct urma_jfrq *f, const urma_jfr_cfg_t *cfg)
{
	bool check = cfg->flag.bs.token_policy == URMA_TOKEN_PLAIN_TEXT;

	return (struct urma_ctl_jfr){
		.addr = (uintptr_t)f->rq.wq.buf,
		.pdn = f->ctx->pd->handle,
		.cqn = f->cq->pub.handle,
		.token = check ? cfg->token_value.token : 0,
		.well_known = cfg->id,
		.log_size = (uint8_t)__builtin_ctz(f->rq.wq.mask + 1),
		.log_stride = (uint8_t)f->rq.wq.log_stride,
		.max_sge = (uint8_t)f->rq.wq.max_sge,
		.min_rnr_timer = cfg->min_rnr_timer,
		.check_token = check,
	};
}

urma_jfr_t *
urma_create_jfr(urma_context_t *ctx, urma_jfr_cfg_t *cfg)
{
	struct urma_ctx *c = urma_ctx_of(ctx);
	struct urma_ctl_jfr request;
	struct urma_jfrq *f;
	int err;

	if (check_jfr(ctx, cfg) != 0)
		return NULL;
	f = urma_object_new(c, sizeof(*f), "a JFR");
	if (f == NULL)
		return NULL;
	f->ctx = c;
	f->cq = cq_of(cfg->jfc);
	f->pub = (urma_jfr_t){.urma_ctx = ctx, .jfr_cfg = *cfg};
	fill_jfr(&f->pub.jfr_cfg);
	err = urma_rq_map(c, &f->rq, &f->pub.jfr_cfg, true);
	if (err != 0)
		goto err_free;
	f->pub.jfr_cfg.depth = f->rq.wq.mask;
	request = jfr_request(f, &f->pub.jfr_cfg);
	err = c->ctl->create_jfr(c->lib, &request, &f->number);
	if (err != 0)
		goto err_free;
	err = enter_jfr(c, f);
	if (err != 0)
		goto err_destroy;
	f->pub.jfr_id = (urma_jfr_id_t){.eid = ctx->eid,
					.id = cfg->id != 0 ? cfg->id : HCA_TC_JFR | f->number};
	return &f->pub;

err_destroy:
	(void)c->ctl->destroy_jfr(c->lib, f->number);
err_free:
	free_jfr(c, f);
	errno = -err;
	return NULL;
}

urma_status_t
urma_modify_jfr(urma_jfr_t *jfr, urma_jfr_attr_t *attr)
{
	struct urma_jfrq *f = (struct urma_jfrq *)jfr;

	if (jfr == NULL || attr == NULL ||
	    (attr->mask & ~(uint32_t)(JFR_RX_THRESHOLD | JFR_STATE)) != 0)
		return urma_status(urma_fail(
			-EINVAL,
			"urma_modify_jfr() needs a JFR, and a mask of RX_THRESHOLD and STATE: not "
			"%#x",
			attr == NULL ? 0 : attr->mask));
	if ((attr->mask & JFR_STATE) != 0)
		return urma_status(urma_fail(
			-EOPNOTSUPP, "JFR %u is READY until it is deleted: its state cannot be set",
			f->number));
	if (attr->mask == 0)
		return URMA_SUCCESS;
	if (attr->rx_threshold > f->rq.wq.mask)
		return urma_status(urma_fail(-EINVAL,
					     "threshold %u: JFR %u has at most %u receives",
					     attr->rx_threshold, f->number, f->rq.wq.mask));
	return urma_status(f->ctx->ctl->arm_jfr(f->ctx->lib, f->number, attr->rx_threshold));
}

urma_status_t
urma_query_jfr(urma_jfr_t *jfr, urma_jfr_cfg_t *cfg, urma_jfr_attr_t *attr)
{
	if (jfr == NULL)
		return urma_status(urma_null("jfr", "urma_create_jfr"));
	if (cfg != NULL)
		*cfg = jfr->jfr_cfg;
	if (attr != NULL)
		*attr = (urma_jfr_attr_t){.mask = JFR_STATE, .state = URMA_JFR_STATE_READY};
	return URMA_SUCCESS;
}

urma_status_t
urma_delete_jfr(urma_jfr_t *jfr)
{
	struct urma_jfrq *f = (struct urma_jfrq *)jfr;
	struct urma_ctx *ctx;
	uint32_t users;
	int err;

	if (jfr == NULL)
		return urma_status(urma_null("jfr", "urma_create_jfr"));
	ctx = f->ctx;
	pthread_mutex_lock(&ctx->lock);
	users = f->users;
	pthread_mutex_unlock(&ctx->lock);
	if (users != 0)
		return urma_status(urma_fail(-EBUSY, "%u Jettys use JFR %u: delete them first",
					     users, f->number));
	err = ctx->ctl->destroy_jfr(ctx->lib, f->number);
	if (err != 0)
		return urma_status(err);
	__atomic_store_n(&ctx->jfrq[f->number & ctx->jfrq_mask], NULL, __ATOMIC_RELEASE);
	urma_jfc_forget(f->cq, HCA_CQE_UB_MAKE_LOCAL(HCA_CQE_UB_JFR, f->number));
	use_cq(ctx, f->cq, (uint32_t)-1);
	free_jfr(ctx, f);
	return URMA_SUCCESS;
}
