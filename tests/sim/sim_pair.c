/* SPDX-License-Identifier: BSD-3-Clause */

/* Pairs of connected QPs and their memory. */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim_model_impl.h"

#define PAGE 4096u
#define VA_BASE 0x100000000000ull

static void
fill(struct sim_model *m, uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += 8) {
		uint64_t r = sim_random(&m->rng);

		memcpy(p + i, &r, n - i < 8 ? n - i : 8);
	}
}

/* Memory of a region, mapped twice: in order, and with its pages in another order. */
struct sim_scattered {
	uint8_t *view, *pages;
	void **list; /* the pages in the order of the view */
	size_t mapped;
	uint32_t len;
};

/*
 * Map the view onto a permutation of the file's pages: page by page, or in large regions in runs of
 * several, because the kernel's mappings would cost more than the test. The permutation is the same
 * for every seed, so that the memory can be used again.
 */
static struct sim_scattered *
map_scattered(struct sim *s, uint32_t len)
{
	uint32_t run = len / PAGE > 64 ? len / PAGE / 64 : 1;
	uint32_t n = (len / PAGE + run - 1) / run, *perm = malloc(n * sizeof(*perm));
	int fd = memfd_create("sim", 0), rw = PROT_READ | PROT_WRITE;
	struct sim_scattered *m = calloc(1, sizeof(*m));
	size_t step = (size_t)run * PAGE;
	struct sim_rng rng = {len};

	sim_check(s, m != NULL && perm != NULL && fd >= 0, "no memory");
	m->len = len;
	m->mapped = n * step;
	m->list = malloc(len / PAGE * sizeof(*m->list));
	sim_check(s, m->list != NULL && ftruncate(fd, (off_t)m->mapped) == 0, "no memory");
	m->pages = mmap(NULL, m->mapped, rw, MAP_SHARED | MAP_POPULATE, fd, 0);
	m->view = mmap(NULL, m->mapped, rw, MAP_SHARED, fd, 0);
	sim_check(s, m->pages != MAP_FAILED && m->view != MAP_FAILED, "no memory");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = sim_below(&rng, i + 1);

		perm[i] = perm[k];
		perm[k] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		void *at = m->view + i * step;

		sim_check(s,
			  mmap(at, step, rw, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
			       (off_t)(perm[i] * step)) == at,
			  "mmap");
	}
	for (uint32_t i = 0; i < len / PAGE; i++)
		m->list[i] = m->pages + perm[i / run] * step + (size_t)(i % run) * PAGE;
	close(fd);
	free(perm);
	return m;
}

/* Memory of closed regions: mapping it again takes longer than most simulations. */
#define KEPT_MAX 8
static struct sim_scattered *kept[KEPT_MAX];

static struct sim_scattered *
get_scattered(struct sim *s, uint32_t len)
{
	for (unsigned int i = 0; i < KEPT_MAX; i++) {
		struct sim_scattered *m = kept[i];

		if (m == NULL || m->len != len)
			continue;
		kept[i] = NULL;
		return m;
	}
	return map_scattered(s, len);
}

static void
put_scattered(struct sim_scattered *m)
{
	for (unsigned int i = 0; i < KEPT_MAX; i++)
		if (kept[i] == NULL) {
			kept[i] = m;
			return;
		}
	munmap(m->view, m->mapped);
	munmap(m->pages, m->mapped);
	free(m->list);
	free(m);
}

static void
region_open(struct sim_pair *p, unsigned int side)
{
	struct sim *s = p->s;
	struct sim_region *r = &p->region[side];

	r->len = ((p->attr.region ? p->attr.region : 1u << 20) + PAGE - 1) & ~(PAGE - 1);
	r->shadow = malloc(r->len);
	sim_check(s, r->shadow != NULL, "no memory");
	r->memory = get_scattered(s, r->len);
	r->view = r->memory->view;
	/* the first byte is not the first of its page */
	r->va = VA_BASE * (1 + side) + (uint64_t)p->index * 0x100000000ull;
	r->mr = softhca_reg_mr_pages(s->side[side].pd, r->va, r->len, PAGE, r->memory->list,
				     r->len / PAGE,
				     SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
					     SOFTHCA_ACCESS_REMOTE_READ |
					     SOFTHCA_ACCESS_REMOTE_ATOMIC |
					     SOFTHCA_ACCESS_FLUSH_GLOBAL);
	sim_check(s, r->mr != NULL, "reg_mr_pages: %s", softhca_last_error(s->side[side].ctx));
	fill(s->model, r->view, r->len);
	memcpy(r->shadow, r->view, r->len);
	r->used = SIM_COUNTER_BYTES;
}

static void
region_close(struct sim_pair *p, unsigned int side, bool lost)
{
	struct sim_region *r = &p->region[side];
	int rc = lost ? 0 : softhca_dereg_mr(r->mr);

	sim_check(p->s, rc == 0, "dereg_mr: %d: %s", rc, softhca_last_error(p->s->side[side].ctx));
	put_scattered(r->memory);
	free(r->shadow);
}

static void
to_state(struct sim_pair *p, unsigned int side, struct softhca_qp *qp,
	 const struct softhca_qp_attr *attr, uint32_t mask)
{
	int rc = softhca_modify_qp(qp, attr, mask);

	sim_check(p->s, rc == 0, "modify_qp to %s: %d: %s", softhca_qp_state_str(attr->qp_state),
		  rc, softhca_last_error(p->s->side[side].ctx));
}

#define CONNECT (SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN)
#define RESPOND (SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER)
#define REQUEST \
	(SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_SQ_PSN | \
	 SOFTHCA_QP_MAX_QP_RD_ATOMIC)

/* Attributes of the transitions to RTR and RTS, by QP type */
static void
masks(uint32_t type, uint32_t *rtr, uint32_t *rts)
{
	*rtr = CONNECT | RESPOND;
	*rts = REQUEST;
	if (type == SOFTHCA_QPT_XRC_SEND)
		*rtr = CONNECT;
	else if (type == SOFTHCA_QPT_XRC_RECV)
		*rts = SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT;
}

/* Connect qp on this side with `peer`; it sends from sq_psn and expects rq_psn. */
static void
connect_qp(struct sim_pair *p, unsigned int side, struct softhca_qp *qp, uint32_t peer)
{
	const struct sim_pair_attr *a = &p->attr;
	struct softhca_qp_attr q = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
				   SOFTHCA_ACCESS_REMOTE_ATOMIC | SOFTHCA_ACCESS_FLUSH_GLOBAL,
		.path_mtu = a->mtu,
		.dest_qp_num = peer,
		.rq_psn = a->psn[1 - side],
		.sq_psn = a->psn[side],
		.max_dest_rd_atomic = (uint8_t)a->max_rd_atomic,
		.max_rd_atomic = (uint8_t)a->max_rd_atomic,
		.min_rnr_timer = (uint8_t)a->min_rnr_timer,
		.timeout = (uint8_t)a->timeout,
		.retry_cnt = (uint8_t)a->retry_cnt,
		.rnr_retry = (uint8_t)a->rnr_retry,
		.ah_attr = {.port_num = 1,
			    .is_global = 1,
			    .hop_limit = 64,
			    .static_rate = a->static_rate,
			    .sgid_index = (uint8_t)a->gid},
	};
	uint32_t rtr, rts;

	sim_gid(1 - side, a->gid, q.ah_attr.dgid.raw);
	masks(qp->qp_type, &rtr, &rts);
	to_state(p, side, qp, &q,
		 SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
			 SOFTHCA_QP_ACCESS_FLAGS);
	q.qp_state = SOFTHCA_QPS_RTR;
	to_state(p, side, qp, &q, SOFTHCA_QP_STATE | rtr);
	q.qp_state = SOFTHCA_QPS_RTS;
	to_state(p, side, qp, &q, SOFTHCA_QP_STATE | rts);
}

void
sim_connect(struct sim_pair *p, unsigned int side)
{
	connect_qp(p, side, p->qp[side], p->tgt[1 - side]->qp_num);
	if (p->tgt[side] != p->qp[side])
		connect_qp(p, side, p->tgt[side], p->qp[1 - side]->qp_num);
}

static void
set_default(uint32_t *v, uint32_t d)
{
	if (*v == 0)
		*v = d;
}

static void
default_attr(const struct sim *s, struct sim_pair_attr *a)
{
	set_default(&a->mtu, SOFTHCA_MTU_1024);
	set_default(&a->sq_depth, 64);
	set_default(&a->rq_depth, 64);
	set_default(&a->max_sge, 4);
	set_default(&a->max_rd_atomic, 4);
	set_default(&a->min_rnr_timer, 1);
	set_default(&a->timeout, a->no_timeout ? 0 : sim_ack_timeout(s));
	set_default(&a->retry_cnt, a->no_retry ? 0 : 7);
	set_default(&a->rnr_retry, a->no_rnr_retry ? 0 : 7);
}

static void
open_srq(struct sim_pair *p, unsigned int side)
{
	struct sim_side *ss = &p->s->side[side];
	struct softhca_xrcd_init_attr xa = {.fd = -1};
	struct softhca_srq_init_attr_ex a = {
		.attr = {.max_wr = p->attr.rq_depth, .max_sge = p->attr.max_sge},
		.pd = ss->pd,
	};

	if (p->attr.xrc) {
		p->xrcd[side] = softhca_open_xrcd(ss->ctx, &xa);
		sim_check(p->s, p->xrcd[side] != NULL, "open_xrcd: %s",
			  softhca_last_error(ss->ctx));
		a.srq_type = SOFTHCA_SRQT_XRC;
		a.xrcd = p->xrcd[side];
		a.cq = p->cq[side];
	}
	p->srq[side] = softhca_create_srq_ex(ss->ctx, &a);
	sim_check(p->s, p->srq[side] != NULL, "create_srq_ex: %s", softhca_last_error(ss->ctx));
}

static void
open_target(struct sim_pair *p, unsigned int side)
{
	struct softhca_context *ctx = p->s->side[side].ctx;
	struct softhca_qp_init_attr_ex a = {
		.qp_type = SOFTHCA_QPT_XRC_RECV,
		.comp_mask = SOFTHCA_QP_INIT_ATTR_XRCD,
		.xrcd = p->xrcd[side],
	};

	p->tgt[side] = softhca_create_qp_ex(ctx, &a);
	sim_check(p->s, p->tgt[side] != NULL, "create_qp_ex: %s", softhca_last_error(ctx));
}

static void
open_qp(struct sim_pair *p, unsigned int side)
{
	struct softhca_cq_init_attr ca = {
		.cqe = p->attr.sq_depth + p->attr.rq_depth,
		.wc_flags = p->attr.read ? SIM_WC_LARGE : 0,
	};
	struct softhca_qp_init_attr qa = {
		.cap = {.max_send_wr = p->attr.sq_depth,
			.max_recv_wr = p->attr.rq_depth,
			.max_send_sge = p->attr.max_sge,
			.max_recv_sge = p->attr.max_sge,
			.max_inline_data = p->attr.max_inline},
		.qp_type = p->attr.xrc ? SOFTHCA_QPT_XRC_SEND : SOFTHCA_QPT_RC,
	};
	struct sim_side *ss = &p->s->side[side];

	p->cq[side] = softhca_create_cq(ss->ctx, &ca);
	sim_check(p->s, p->cq[side] != NULL, "create_cq: %s", softhca_last_error(ss->ctx));
	if (p->attr.srq || p->attr.xrc)
		open_srq(p, side);
	qa.send_cq = qa.recv_cq = p->cq[side];
	qa.srq = p->attr.xrc ? NULL : p->srq[side];
	p->qp[side] = softhca_create_qp(ss->pd, &qa);
	sim_check(p->s, p->qp[side] != NULL, "create_qp: %s", softhca_last_error(ss->ctx));
	p->tgt[side] = p->qp[side];
	if (p->attr.xrc)
		open_target(p, side);
	sim_fifo_init(&p->sq[side]);
	sim_fifo_init(&p->rq[side]);
	sim_fifo_init(&p->unmatched_send[side]);
}

struct sim_pair *
sim_pair_open(struct sim *s, const struct sim_pair_attr *attr)
{
	struct sim_model *m = sim_model(s);
	struct sim_pair *p = calloc(1, sizeof(*p));

	sim_check(s, p != NULL, "no memory");
	p->s = s;
	p->index = m->serial++;
	if (attr != NULL)
		p->attr = *attr;
	default_attr(s, &p->attr);
	for (unsigned int i = 0; i < 2; i++) {
		region_open(p, i);
		open_qp(p, i);
	}
	sim_connect(p, 0);
	sim_connect(p, 1);
	p->next = m->pairs;
	m->pairs = p;
	m->num_pairs++;
	return p;
}

static void
forget_all(struct sim_pair *p)
{
	for (unsigned int i = 0; i < 2; i++) {
		for (struct sim_op *op = p->sq[i].head; op != NULL; op = op->next)
			sim_forget_targets(p, op);
		for (struct sim_op *op = p->rq[i].head; op != NULL; op = op->next)
			sim_forget_targets(p, op);
		sim_fifo_free(&p->sq[i]);
		sim_fifo_free(&p->rq[i]);
		sim_fifo_free(&p->unmatched_send[i]);
		p->posted[i] = 0;
		p->unsignalled_last[i] = false;
	}
}

static void
close_objects(struct sim_pair *p, unsigned int side)
{
	struct softhca_context *ctx = p->s->side[side].ctx;
	int rc = softhca_destroy_qp(p->qp[side]);

	if (p->tgt[side] != p->qp[side])
		rc |= softhca_destroy_qp(p->tgt[side]);
	sim_check(p->s, rc == 0, "destroy_qp: %d: %s", rc, softhca_last_error(ctx));
	if (p->srq[side] != NULL)
		rc = softhca_destroy_srq(p->srq[side]);
	sim_check(p->s, rc == 0, "destroy_srq: %d: %s", rc, softhca_last_error(ctx));
	if (p->xrcd[side] != NULL)
		rc = softhca_close_xrcd(p->xrcd[side]);
	sim_check(p->s, rc == 0, "close_xrcd: %d: %s", rc, softhca_last_error(ctx));
	rc = softhca_destroy_cq(p->cq[side]);
	sim_check(p->s, rc == 0, "destroy_cq: %d: %s", rc, softhca_last_error(ctx));
}

#define NONE 2u

/* lost: the side whose objects are destroyed already */
static void
pair_end(struct sim_pair *p, unsigned int lost)
{
	struct sim_model *m = p->s->model;
	struct sim_pair **at = &m->pairs;

	for (unsigned int i = 0; i < 2; i++)
		if (i != lost)
			close_objects(p, i);
	for (unsigned int i = 0; i < 2; i++)
		region_close(p, i, i == lost);
	for (unsigned int i = 0; i < 2; i++) {
		sim_fifo_free(&p->sq[i]);
		sim_fifo_free(&p->rq[i]);
		sim_fifo_free(&p->unmatched_send[i]);
	}
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	m->num_pairs--;
	free(p);
}

void
sim_pair_close(struct sim_pair *p)
{
	pair_end(p, NONE);
}

void
sim_pair_abandon(struct sim_pair *p, unsigned int lost)
{
	pair_end(p, lost);
}

void
sim_pair_reset(struct sim_pair *p)
{
	const struct softhca_qp_attr q = {.qp_state = SOFTHCA_QPS_RESET};

	for (unsigned int i = 0; i < 2; i++)
		to_state(p, i, p->qp[i], &q, SOFTHCA_QP_STATE);
	for (unsigned int i = 0; i < 2 && p->attr.xrc; i++)
		to_state(p, i, p->tgt[i], &q, SOFTHCA_QP_STATE);
	forget_all(p);
	sim_connect(p, 0);
	sim_connect(p, 1);
	/* the counters' values after failed atomics are known now */
	for (unsigned int i = 0; i < 2; i++) {
		memcpy(p->region[i].shadow, p->region[i].view, p->region[i].len);
		p->region[i].used = SIM_COUNTER_BYTES;
	}
}
