/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory of a QP: queues, records, rings; and its lines of the key-QPC store. */

#include <string.h>

#include <rte_bitops.h>
#include <rte_malloc.h>

#include "abi_service.h"
#include "ceu/qp.h"
#include "ceu/qp_shape.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/store.h"
#include "cc/cc.h"
#include "engine/impl.h"
#include "requester/record_pool.h"

#define WORD(f) hca_be32_to_cpu(q->f)
_Static_assert((HCA_RESP_JOBS & (HCA_RESP_JOBS - 1)) == 0, "ring");
_Static_assert(HCA_RD_ATOMIC_MAX <= 32, "job_pending has a bit for each");

#define NO_CQ UINT32_MAX
#define HEAP_HEADER 128u /* size of rte_malloc()'s header before each block */

/* Whether 2^size_log entries of 2^stride_log bytes are exactly len bytes. */
static bool
queue_size(uint32_t len, uint32_t stride_log, uint32_t *size_log)
{
	if (stride_log < HCA_WQE_MIN_STRIDE_LOG || stride_log > HCA_WQE_MAX_STRIDE_LOG)
		return false;
	if (len == 0 || (len & (len - 1)) != 0 || (len >> stride_log) == 0)
		return false;
	*size_log = rte_bsf32(len) - stride_log;
	return *size_log <= HCA_WQ_MAX_LOG_SIZE;
}

static bool
cq_usable(const struct hca_core *h, uint32_t cqn, uint32_t usr_page)
{
	return cqn < h->ctxmgt->count[HCA_ICM_CQC] && hca_cq_state(&h->cq[cqn]) == HCA_CQ_LIVE &&
	       h->cq[cqn].usr_page == usr_page;
}

static const struct hca_wire_ops *
wire_of(const struct hca_core *h, const struct hca_qp_shape *s)
{
	return hca_wire_of_service(h, s->service);
}

/* An SRQ of the same owner replaces the RQ: a JFR, if the wire has those. */
static int
read_srq(const struct hca_core *h, const struct hca_qpc *q, struct hca_qp_shape *s)
{
	uint32_t word = WORD(srqn);

	if (!(word & HCA_QPC_SRQ_VALID))
		return HCA_STAT_OK;
	s->srq = hca_srq_find(h, HCA_QPC_SRQN(word));
	if (!(s->has & HCA_MAY_SRQ) || s->srq == NULL || s->srq->usr_page != s->usr_page ||
	    s->srq->xrcd & HCA_SRQC_XRCD_VALID || s->srq->jfr != (wire_of(h, s)->jfr != NULL))
		return HCA_STAT_BAD_PARAM;
	s->has &= ~HCA_HAS_RQ;
	return HCA_STAT_OK;
}

/* Exactly the queues that the service has. */
static int
read_queues(const struct hca_core *h, const struct hca_qpc *q, struct hca_qp_shape *s)
{
	s->scqn = WORD(cqn_snd);
	s->rcqn = WORD(cqn_rcv);
	s->sq_key = WORD(snd_wqe_base_l);
	s->rq_key = WORD(rcv_wqe_base_l);
	s->sq_stride_log = HCA_QPC_SQ_STRIDE_LOG(WORD(sizes));
	s->rq_stride_log = HCA_QPC_RQ_STRIDE_LOG(WORD(sizes));
	if (s->has & HCA_HAS_SQ ? !queue_size(WORD(snd_wqe_len), s->sq_stride_log, &s->sq_size_log)
				: WORD(snd_wqe_len) != 0)
		return HCA_STAT_BAD_PARAM;
	if (s->has & HCA_HAS_RQ ? !queue_size(WORD(rcv_wqe_len), s->rq_stride_log, &s->rq_size_log)
				: WORD(rcv_wqe_len) != 0)
		return HCA_STAT_BAD_PARAM;
	if ((s->has & HCA_HAS_SQ && !cq_usable(h, s->scqn, s->usr_page)) ||
	    ((s->has & HCA_HAS_RQ || s->srq != NULL) && !cq_usable(h, s->rcqn, s->usr_page)))
		return HCA_STAT_BAD_PARAM;
	return HCA_STAT_OK;
}

/* The PD may be another client's; then the domain of its queues says that the QP is this one's. */
static bool
pd_fits(const struct hca_core *h, const struct hca_qp_shape *s)
{
	return HCA_PD_DOMAIN(s->pd) == s->usr_page ||
	       (s->has & HCA_HAS_SQ && !wire_of(h, s)->qp_in_domain);
}

static int
read_shape(const struct hca_core *h, const struct hca_qp_change *ch, struct hca_qp_shape *s)
{
	const struct hca_qpc *q = &ch->image;
	uint32_t records;
	int rc;

	s->service = HCA_QPC_SERVICE(WORD(flags));
	s->has = hca_services[s->service].queues;
	s->xrcd = WORD(xrcd);
	s->pd = WORD(pd);
	s->usr_page = WORD(usr_page);
	if (s->usr_page >= HCA_DMA_DOMAINS || !pd_fits(h, s))
		return HCA_STAT_BAD_PARAM;
	if (s->has & HCA_HAS_XRCD ? s->xrcd == 0 || s->xrcd > HCA_QPN_MASK : s->xrcd != 0)
		return HCA_STAT_BAD_PARAM;
	rc = read_srq(h, q, s);
	if (rc == HCA_STAT_OK)
		rc = read_queues(h, q, s);
	records = rte_align32prevpow2(RTE_MAX(h->cfg.records_per_qp, 1u));
	s->window = RTE_MIN(1u << s->sq_size_log, records);
	return rc;
}

static int
take_queues(struct hca_core *h, const struct hca_qpc *q, struct hca_qp_shape *s)
{
	int rc = HCA_STAT_OK;

	if (s->has & HCA_HAS_SQ)
		rc = hca_qbuf_resolve_whole(h, &s->sq, s->sq_key, s->pd, s->usr_page,
					    WORD(snd_wqe_len), 0);
	if (rc != HCA_STAT_OK || !(s->has & HCA_HAS_RQ))
		return rc;
	return hca_qbuf_resolve_whole(h, &s->rq, s->rq_key, s->pd, s->usr_page,
				      WORD(rcv_wqe_len) + sizeof(struct hca_rq_record),
				      HCA_ACCESS_LOCAL_WRITE);
}

static size_t
carve(size_t *at, size_t bytes)
{
	size_t off = *at;

	*at += RTE_ALIGN_CEIL(bytes, sizeof(uint64_t));
	return off;
}

/*
 * One block without gaps: data of the stage that has receives, struct hca_qp_work, data that the
 * parser and the stage that has records write. The image in between is rarely used, so no two
 * stages write to one cache line.
 */
static struct hca_qp_work *
new_work(struct hca_core *h, const struct hca_qp_shape *s, struct hca_qp *n)
{
	const struct hca_wire_ops *wire = wire_of(h, s);
	struct hca_qp_room room = {0, 0};
	size_t at = 0, front, work, chain, window, back;
	struct hca_qp_work *made;
	uint8_t *w;

	wire->qp_room(s, &room);
	front = carve(&at, room.front);
	work = carve(&at, sizeof(struct hca_qp_work));
	chain = carve(&at, sizeof(uint32_t) << s->sq_size_log);
	window = carve(&at, sizeof(uint32_t) * s->window);
	back = carve(&at, room.back);
	w = rte_zmalloc_socket("hca_qp_work", at, RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	if (w == NULL)
		return NULL;
	made = (struct hca_qp_work *)(void *)(w + work);
	made->memory = w;
	made->bytes = (uint32_t)chain + HEAP_HEADER;
	n->cfg.block = &made->block;
	n->parser.chain = (uint32_t *)(void *)(w + chain);
	n->parser.window = (uint32_t *)(void *)(w + window);
	n->parser.window_mask = s->window - 1;
	wire->qp_fill(n, s, w + front, w + back);
	return made;
}

static void
fill_shape(struct hca_qp *n, const struct hca_qp_shape *s)
{
	n->cfg.service = (uint8_t)s->service;
	n->cfg.pd = s->pd;
	n->addr.xrcd = s->xrcd;
	n->addr.mig = HCA_MIG_MIGRATED;
	n->ee.srq = s->srq;
	n->cfg.usr_page = (uint16_t)s->usr_page;
	n->cfg.scqn = s->has & HCA_HAS_SQ ? s->scqn : NO_CQ;
	n->cfg.rcqn = s->has & HCA_HAS_RQ || s->srq != NULL ? s->rcqn : NO_CQ;
	n->parser.sq = s->sq;
	n->parser.sq_stride_log = (uint8_t)s->sq_stride_log;
	n->parser.sq_size_log = (uint8_t)s->sq_size_log;
	n->ee.rq = s->rq;
	n->ee.rq_stride_log = (uint8_t)s->rq_stride_log;
	n->ee.rq_size_log = (uint8_t)s->rq_size_log;
}

/* Atomic, because it is read at any time for statistics. */
static void
account_bytes(uint64_t *sum, uint64_t add)
{
	__atomic_store_n(sum, *sum + add, __ATOMIC_RELAXED);
}

static uint64_t
job_bytes(const struct hca_qp *qp)
{
	uint32_t more = hca_qp_work(qp)->more_jobs != NULL ? qp->ee.job_mask + 1u : 0;

	if (qp->ee.jobs == NULL)
		return 0;
	return sizeof(struct hca_resp_job) * (HCA_RESP_JOBS + more);
}

static int
fit_jobs(struct hca_core *h, const struct hca_qp_change *ch)
{
	uint32_t wanted = HCA_QPC_MAX_DEST_RD_ATOMIC(hca_be32_to_cpu(ch->image.rd_atomic));
	struct hca_qp *qp = &h->qp[ch->qpi];
	size_t bytes = sizeof(struct hca_resp_job) * rte_align32pow2(wanted);
	struct hca_qp_work *w = hca_qp_work(qp);

	if (!(ch->mask & HCA_QP_ATTR_MAX_DEST_RD_ATOMIC) || wanted <= qp->ee.job_mask + 1u)
		return HCA_STAT_OK;
	if (ch->from != HCA_QPS_INIT)
		return HCA_STAT_EXCEED_LIM;
	w->more_jobs =
		rte_zmalloc_socket("hca_qp_jobs", bytes, RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	if (w->more_jobs == NULL)
		return HCA_STAT_EXCEED_LIM;
	account_bytes(&h->qp_job_bytes, bytes);
	qp->ee.jobs = w->more_jobs;
	qp->ee.job_mask = (uint16_t)(rte_align32pow2(wanted) - 1);
	return HCA_STAT_OK;
}

int
hca_qp_fit_second(struct hca_core *h, uint32_t qpi)
{
	struct hca_qp_work *w = hca_qp_work(&h->qp[qpi]);
	struct hca_qp_second *second;

	if (w->block.second != NULL)
		return HCA_STAT_OK;
	second = rte_zmalloc_socket("hca_qp_second", sizeof(*second), RTE_CACHE_LINE_SIZE,
				    h->cfg.socket_id);
	if (second == NULL)
		return HCA_STAT_EXCEED_LIM;
	w->bytes += (uint32_t)sizeof(*second) + HEAP_HEADER;
	account_bytes(&h->qp_own_bytes, sizeof(*second) + HEAP_HEADER);
	__atomic_store_n(&w->block.second, second, __ATOMIC_RELEASE);
	return HCA_STAT_OK;
}

int
hca_qp_fit(struct hca_core *h, const struct hca_qp_change *ch)
{
	int rc = fit_jobs(h, ch);

	if (rc == HCA_STAT_OK && hca_cc_use(h, hca_qp_algorithm(h, &ch->image)) != 0)
		return HCA_STAT_EXCEED_LIM;
	return rc == HCA_STAT_OK && ch->path[1].known ? hca_qp_fit_second(h, ch->qpi) : rc;
}

/* Make the QP visible: first everything else, then the number, then the state. */
static void
publish(struct hca_core *h, const struct hca_qp_change *ch, struct hca_qp *n)
{
	struct hca_qp *qp = &h->qp[ch->qpi];
	uint32_t source = hca_be32_to_cpu(ch->image.remote_qpn);

	n->cfg.generation = qp->cfg.generation + 1;
	n->cfg.privileged = (hca_be32_to_cpu(ch->image.flags) & HCA_QPC_PRIVILEGED) != 0;
	if (n->cfg.service == HCA_ST_UD)
		n->cfg.source_qpn = source != 0 ? source : ch->qpn;
	n->cfg.no_own_group = (hca_be32_to_cpu(ch->image.flags) & HCA_QPC_NO_OWN_GROUP) != 0;
	n->cfg.one_peer = (hca_be32_to_cpu(ch->image.flags) & HCA_QPC_ONE_PEER) != 0;
	n->cfg.suspend = (hca_be32_to_cpu(ch->image.flags) & HCA_QPC_SUSPEND) != 0;
	/*
	 * In RST and without a number: a packet for the index and readers of counters may see
	 * this state.
	 */
	hca_store_words(qp, n, sizeof(*n));
	hca_qp_apply(h, ch);
	if (hca_wire_of_qp(h, qp)->qp_open != NULL)
		hca_wire_of_qp(h, qp)->qp_open(h, ch->qpi, &ch->image);
	__atomic_store_n(&qp->cfg.local_qpn, ch->qpn, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->cfg.state, ch->to, __ATOMIC_RELEASE);
}

/* Change the user counts of CQs and SRQ. */
static void
use_queues(struct hca_core *h, const struct hca_qp *qp, uint32_t add)
{
	if (qp->cfg.scqn != NO_CQ)
		h->cq[qp->cfg.scqn].users += add;
	if (qp->cfg.rcqn != NO_CQ)
		h->cq[qp->cfg.rcqn].users += add;
	if (qp->ee.srq != NULL)
		qp->ee.srq->users += add;
}

/* Before a pipe writes a CQ of another one, that one must take slots by compare and swap. */
static bool
cqs_joined(struct hca_core *h, struct hca_qp_change *ch, const struct hca_qp_shape *s)
{
	uint32_t pipe = ch->qpi & h->pipe_mask;

	if (likely(h->pipe_mask == 0))
		return true;
	if (!ch->joins) {
		if (s->has & HCA_HAS_SQ)
			ch->joins = hca_cq_join(h, s->scqn, pipe);
		if (s->has & HCA_HAS_RQ || s->srq != NULL)
			ch->joins |= hca_cq_join(h, s->rcqn, pipe);
		if (!ch->joins)
			return true;
		ch->rcu = hca_round_start(h);
	}
	return hca_round_done(h, ch->rcu);
}

int
hca_qp_create(struct hca_core *h, struct hca_qp_change *ch)
{
	struct hca_qp n = {.cfg.state = HCA_QPS_RST};
	struct hca_qp_shape s = {0};
	const struct hca_wire_ops *wire;
	struct hca_qp_work *w;
	int rc = read_shape(h, ch, &s);

	if (rc != HCA_STAT_OK)
		return rc;
	wire = wire_of(h, &s);
	if (wire->qpn_ok != NULL && !wire->qpn_ok(ch->qpn))
		return HCA_STAT_BAD_INDEX;
	if (!hca_icm_mapped(h, HCA_ICM_QPC, ch->qpi))
		return HCA_STAT_BAD_RES_STATE;
	if (!cqs_joined(h, ch, &s))
		return HCA_CMD_AGAIN;
	rc = take_queues(h, &ch->image, &s);
	if (rc != HCA_STAT_OK)
		goto err_queues;
	rc = HCA_STAT_EXCEED_LIM;
	if (hca_record_reserve_qp(hca_pipe_of_qp(h, ch->qpi), s.service, s.usr_page, 1) != 0)
		goto err_queues;
	w = new_work(h, &s, &n);
	if (w == NULL)
		goto err_records;
	/* responder jobs are counted apart, because a QP may get more */
	w->bytes -= (uint32_t)job_bytes(&n);
	hca_qp_image_store(&n, &ch->image);
	fill_shape(&n, &s);
	use_queues(h, &n, 1);
	account_bytes(&h->qp_own_bytes, w->bytes);
	account_bytes(&h->qp_job_bytes, job_bytes(&n));
	hca_cc_begin(hca_pipe_of_qp(h, ch->qpi), ch->qpi, hca_qp_algorithm(h, &ch->image));
	publish(h, ch, &n);
	return HCA_STAT_OK;

err_records:
	hca_record_reserve_qp(hca_pipe_of_qp(h, ch->qpi), s.service, s.usr_page, -1);
err_queues:
	hca_qbuf_release(h, &s.rq, s.rq_key);
	hca_qbuf_release(h, &s.sq, s.sq_key);
	return rc;
}

/* It left its groups before the rounds: groups without members are free now. */
static void
forget_ud(struct hca_core *h, uint32_t qpn)
{
	hca_mcast_reap(h);
	if (h->ctxmgt->gsi_qpn == qpn)
		__atomic_store_n(&h->ctxmgt->gsi_qpn, 0, __ATOMIC_RELEASE);
}

void
hca_qp_free(struct hca_core *h, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];
	uint32_t qpn = qp->cfg.local_qpn;
	uint32_t generation = qp->cfg.generation;
	struct hca_qp_work *w = hca_qp_work(qp);
	const size_t dead = offsetof(struct hca_qp, cfg.remote_qpn);
	struct hca_qpc image;

	__atomic_store_n(&qp->cfg.local_qpn, 0, __ATOMIC_RELEASE);
	HCA_COUNT_N(h, CEU, sq_purged, qp->parser.head - hca_una_tail(qp->sq_una));
	hca_eq_forget_qp(h, qpi);
	hca_cc_set(h, qpi, 0);
	hca_cc_settle(h);
	if (qp->cfg.service == HCA_ST_UD)
		forget_ud(h, qpn);
	if (hca_wire_of_qp(h, qp)->qp_close != NULL)
		hca_wire_of_qp(h, qp)->qp_close(h, qpi);
	hca_qp_image_load(qp, &image);
	hca_qbuf_release(h, &qp->parser.sq, hca_be32_to_cpu(image.snd_wqe_base_l));
	hca_qbuf_release(h, &qp->ee.rq, hca_be32_to_cpu(image.rcv_wqe_base_l));
	use_queues(h, qp, (uint32_t)-1);
	account_bytes(&h->qp_own_bytes, -(uint64_t)w->bytes);
	account_bytes(&h->qp_job_bytes, -job_bytes(qp));
	hca_record_reserve_qp(hca_pipe_of_qp(h, qpi), qp->cfg.service, qp->cfg.usr_page, -1);
	/*
	 * Packets and doorbells for the index are still checked, by local_qpn and state only, which
	 * have their final values already: no stage uses the other fields since the round. But
	 * readers of counters read these first and the number afterwards.
	 */
	hca_store_words((uint8_t *)qp + dead, NULL, sizeof(*qp) - dead);
	qp->cfg.generation = generation;
	rte_free(w->block.second);
	rte_free(w->more_jobs);
	rte_free(w->memory);
}

static void
apply_mtu(struct hca_qp *qp, uint32_t code)
{
	uint8_t log = (uint8_t)(7 + code);

	qp->cfg.mtu_log = log;
	qp->req_tx.mtu_log = log;
	qp->ee.mtu_log = log;
}

/* Set a byte that stages may read while the QP runs, also in SQD. */
static void
set_live(uint8_t *byte, uint32_t value)
{
	__atomic_store_n(byte, (uint8_t)value, __ATOMIC_RELAXED);
}

static void
apply_requester(struct hca_qp_cfg *cfg, const struct hca_qpc *q, uint32_t mask)
{
	if (mask & HCA_QP_ATTR_RETRY_CNT)
		set_live(&cfg->retry_cnt, HCA_QPC_RETRY_CNT(WORD(rd_atomic)));
	if (mask & HCA_QP_ATTR_RNR_RETRY)
		set_live(&cfg->rnr_retry, HCA_QPC_RNR_RETRY(WORD(path.rnr_retry)));
	if (mask & HCA_QP_ATTR_MAX_QP_RD_ATOMIC)
		set_live(&cfg->max_rd_atomic, HCA_QPC_MAX_RD_ATOMIC(WORD(rd_atomic)));
}

static void
apply_responder(struct hca_qp_cfg *cfg, const struct hca_qpc *q, uint32_t mask)
{
	if (mask & HCA_QP_ATTR_ACCESS_FLAGS)
		set_live(&cfg->access, HCA_QP_RIGHTS(WORD(access_flags)));
	if (mask & HCA_QP_ATTR_MIN_RNR_TIMER)
		set_live(&cfg->min_rnr_timer, HCA_QPC_MIN_RNR_TIMER(WORD(rnr_nextrecvpsn)));
	/*
	 * Requesters round their limit up to a power of two (Linux rxe, some NICs): one that agreed
	 * to five at a time may use eight. The jobs exist.
	 */
	if (mask & HCA_QP_ATTR_MAX_DEST_RD_ATOMIC)
		set_live(&cfg->max_dest_rd_atomic,
			 rte_align32pow2(HCA_QPC_MAX_DEST_RD_ATOMIC(WORD(rd_atomic))));
}

/* From RTR on, a connected QP uses the P_Key of its path. */
static void
apply_pkey(const struct hca_core *h, struct hca_qp *qp, uint32_t index)
{
	if (qp->cfg.service == HCA_ST_UD)
		__atomic_store_n(&qp->cfg.pkey, h->ctxmgt->pkey[index], __ATOMIC_RELAXED);
	set_live(&qp->addr.pkey_index, index);
}

void
hca_qp_apply(struct hca_core *h, const struct hca_qp_change *ch)
{
	struct hca_qp *qp = &h->qp[ch->qpi];
	const struct hca_qpc *q = &ch->image;
	uint32_t mask = ch->mask;

	apply_requester(&qp->cfg, q, mask);
	apply_responder(&qp->cfg, q, mask);
	/* on the way to RTR: no stage asks yet */
	if (mask & HCA_QP_ATTR_CONGESTION)
		hca_cc_begin(hca_pipe_of_qp(h, ch->qpi), ch->qpi, hca_qp_algorithm(h, q));
	if (mask & HCA_QP_ATTR_PKEY_INDEX)
		apply_pkey(h, qp, HCA_QPC_PKEY_INDEX(WORD(path.port_pkey)));
	if (mask & HCA_QP_ATTR_QKEY)
		__atomic_store_n(&qp->cfg.qkey, WORD(qkey), __ATOMIC_RELEASE);
	if (mask & HCA_QP_ATTR_DEST_QPN)
		qp->cfg.remote_qpn = WORD(remote_qpn);
	if (ch->mtu != 0)
		apply_mtu(qp, ch->mtu);
	if (mask & HCA_QP_ATTR_RQ_PSN)
		__atomic_store_n(&qp->ee.epsn, HCA_QPC_EPSN(WORD(rnr_nextrecvpsn)),
				 __ATOMIC_RELEASE);
	hca_wire_of_qp(h, qp)->qp_apply(qp, q, mask);
}
