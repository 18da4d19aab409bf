/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_TYPES_H
#define LIB_TYPES_H

/*
 * What stands behind the public objects. Each begins with its public part, so that a cast joins
 * the two. Owner: the library process; the device sees only queue buffers, records and the UAR
 * page.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <softhca/softhca.h>

#include "abi_bar.h"
#include "abi_cqe.h"
#include "abi_ctl.h"
#include "abi_wqe.h"
#include "lib_ctl.h"
#include "lib_error.h"
#include "lib_lock.h"
#include "lib_share.h"

#define LIB_CACHE_ALIGNED _Alignas(HCA_CACHE_LINE)

/*
 * The doorbell page of a context. `next` numbers the doorbells; doorbell number d lies in slot
 * d % 256. turn[slot] is the number whose turn it is there: a producer that has filled its slot
 * sets it 256 further. A slot may be taken when it is its turn *and* the device has emptied it:
 * either alone could be true for a slot that someone took and has not filled yet.
 */
struct lib_uar {
	struct hca_uar_page *page;
	const uint32_t *sleep_word; /* of the worker that looks at it */
	int kick_fd;		    /* wakes that worker; -1: it never sleeps */
	uint32_t kicked;	    /* the word of the sleep that was kicked last */
	LIB_CACHE_ALIGNED uint32_t next;
	LIB_CACHE_ALIGNED uint32_t turn[HCA_UAR_FIFO_SLOTS];
};

struct lib_object;

struct lib_context {
	struct softhca_context pub;
	const struct softhca_ctl_ops *ops;
	void *ctl;
	unsigned int (*progress)(void *arg); /* NULL unless progress is manual */
	uint32_t posted; /* manual: requests posted since the engine was run here */
	struct hca_ctl_info info;
	uint32_t qp_mask; /* index bits of a QPN */
	uint32_t cq_mask;
	uint32_t srq_mask;
	bool dead;	       /* the device is gone: posts give -EIO */
	bool forked;	       /* dead, as this process is not the one that opened it: -EPERM */
	bool told;	       /* the program has read that the device is gone */
	struct lib_qp **qps;   /* by QPN & qp_mask */
	struct lib_cq **cqs;   /* by CQN & cq_mask */
	struct lib_srq **srqs; /* by SRQN & srq_mask */
	struct lib_object *objects; /* host memory to be freed at close */
	pthread_mutex_t lock;	    /* the tables, the list, event counts */
	pthread_cond_t acked;	    /* an event was acknowledged */
	char name[32];
	struct lib_context *next; /* lib_life.c: of all that share memory with a daemon */
	struct lib_cover *covers; /* lib_share.c: of its regions */
	bool memory_given;	  /* lib_share.c: regions may lie in memory that is not shared */
	pthread_t watcher;	  /* lib_life.c */
	int watch_stop;		  /* eventfd; -1: nobody watches */
	struct lib_uar uar;
};

struct lib_channel {
	struct softhca_comp_channel pub;
	uint32_t handle;
	uint32_t users; /* CQs; under the context's lock */
};

struct lib_cq {
	struct softhca_cq pub;
	struct lib_context *ctx;
	struct hca_cqe *ring;
	struct hca_cq_record *record;
	uint32_t mask;
	uint32_t consumer; /* free running */
	bool locked;	   /* false: single threaded */
	struct lib_lock lock;
	uint32_t arm_seq;
	uint32_t arm_mode; /* what is asked for and not yet delivered */
	uint32_t users;	   /* QPs; under the context's lock, as the rest */
	uint32_t events_got;
	uint32_t events_acked;
	size_t bytes; /* of the mapping that starts at ring */
};

/* One work queue, as those see it who post to it. wr_id lies in the object that has the queue. */
struct lib_wq {
	struct lib_lock lock;
	uint32_t head; /* free running: WQEs posted */
	uint32_t mask; /* size - 1 */
	uint32_t log_stride;
	uint8_t *buf;
	uint64_t *wr_id;
	size_t bytes; /* of the mapping that starts at buf */
	uint32_t max_sge;
	bool locked; /* false: single threaded */
};

/*
 * The same queue as poll_cq sees it, under the CQ's lock. It has its own copy of what it reads:
 * the line of those who post changes with each post.
 */
struct lib_polled {
	uint32_t tail; /* free running: WQEs completed */
	uint32_t mask;
	uint64_t *wr_id; /* NULL: there is no such queue */
	uint32_t log_stride;
};

/*
 * Shared receive queue. Its WQEs are a list: `next` of a WQE is the one that is posted after it, so
 * one WQE always stays free. head: the next to be posted; tail: the last free one.
 */
struct lib_srq {
	struct softhca_srq pub;
	struct lib_context *ctx;
	struct lib_wq wq; /* always locked */
	struct hca_rq_record *record;
	uint32_t *next; /* behind the wr_ids */
	uint32_t free_head, free_tail;
	uint32_t posted; /* free running */
	uint32_t users;	 /* QPs; under the context's lock, as the rest */
	uint32_t events_got;
	uint32_t events_acked;
	struct lib_cq *cq; /* XRC */
	bool leaving;	   /* as of a QP */
	struct lib_xrcd *xrcd;
};

struct lib_xrcd {
	struct softhca_xrcd pub;
	uint32_t users; /* under the context's lock */
};

/* An address handle is the UD unit of its WQEs, but for QPN and Q_Key. */
struct lib_ah {
	struct softhca_ah pub;
	struct hca_ud_unit unit;
};

/*
 * A cache line for each of those who may be at work on a QP at the same time: what all only read,
 * post_send, post_recv, and the polls of the two CQs. There may be tens of thousands of QPs: what
 * is rarely used stands where a line has room, behind what is written least.
 */
struct lib_qp {
	struct softhca_qp pub; /* lib_qp_ctx() */

	LIB_CACHE_ALIGNED struct lib_wq sq;
	uint32_t type_bit;    /* 1 << qp_type, against send_op.types */
	uint32_t extra_units; /* UD or XRC unit behind the next unit of every WQE */
	uint32_t max_inline;
	uint32_t signal_all; /* the C flag where every request is signalled, else 0 */

	LIB_CACHE_ALIGNED struct lib_wq rq;
	struct hca_rq_record *rq_record; /* NULL: no receive queue of its own */

	LIB_CACHE_ALIGNED struct lib_polled sq_polled;
	struct lib_xrcd *xrcd;
	bool leaving;	/* the driver is told to destroy it; under the context's lock */
	bool announces; /* WQEs of this life announce chains; the lock of the send queue */

	LIB_CACHE_ALIGNED struct lib_polled rq_polled;
	uint32_t events_got; /* asynchronous; under the context's lock */
	uint32_t events_acked;

	LIB_CACHE_ALIGNED uint64_t wr_ids[]; /* of the send queue, then of the receive queue */
};

_Static_assert(sizeof(struct lib_qp) == 5 * HCA_CACHE_LINE, "a line for each who works on a QP");
_Static_assert(offsetof(struct lib_qp, sq) == HCA_CACHE_LINE, "posts write no line that all read");
_Static_assert(offsetof(struct lib_qp, rq_polled) == 4 * HCA_CACHE_LINE,
	       "nor one that another polls");

/*
 * Host memory of a QP without what grows with its queues: the object, its place in the context's
 * table, and about a cache line that malloc() spends on its header and on the alignment.
 */
#define LIB_QP_BYTES (sizeof(struct lib_qp) + sizeof(struct lib_qp *) + HCA_CACHE_LINE)

struct lib_pd {
	struct softhca_pd pub;
	uint32_t ahs; /* address handles: the driver does not know of them */
};

struct lib_mr {
	struct softhca_mr pub;
	struct lib_cover *cover; /* the shared memory it lies in; NULL: embedded */
	uint64_t va;		 /* pub.addr is 0 where that is the base */
	bool zero_based;
};

struct lib_mw {
	struct softhca_mw pub;
};

static inline struct lib_context *
lib_ctx(const struct softhca_context *ctx)
{
	return (struct lib_context *)(uintptr_t)ctx;
}

static inline struct lib_context *
lib_qp_ctx(const struct lib_qp *qp)
{
	return lib_ctx(qp->pub.context);
}

/* Manual progress: run the engine in post_send once so many requests wait for it. */
#define LIB_POSTED_MAX 32u

static inline void
lib_run(struct lib_context *ctx)
{
	__atomic_store_n(&ctx->posted, 0, __ATOMIC_RELAXED);
	ctx->progress(ctx->ctl);
}

/* n requests have been posted. Approximate where several threads post: it only paces. */
static inline void
lib_posted(struct lib_context *ctx, uint32_t n)
{
	uint32_t posted;

	if (ctx->progress == NULL)
		return;
	posted = __atomic_load_n(&ctx->posted, __ATOMIC_RELAXED) + n;
	if (posted >= LIB_POSTED_MAX)
		lib_run(ctx);
	else
		__atomic_store_n(&ctx->posted, posted, __ATOMIC_RELAXED);
}

/* QP of a QPN this context owns, or NULL: all 24 bits are compared. */
static inline struct lib_qp *
lib_find_qp(const struct lib_context *ctx, uint32_t qpn)
{
	struct lib_qp *qp = __atomic_load_n(&ctx->qps[qpn & ctx->qp_mask], __ATOMIC_ACQUIRE);

	return qp != NULL && qp->pub.qp_num == qpn ? qp : NULL;
}

/* SRQ of an SRQN this context owns, or NULL: all bits are compared. */
static inline struct lib_srq *
lib_find_srq(const struct lib_context *ctx, uint32_t srqn)
{
	struct lib_srq *srq = __atomic_load_n(&ctx->srqs[srqn & ctx->srq_mask], __ATOMIC_ACQUIRE);

	return srq != NULL && srq->pub.handle == srqn ? srq : NULL;
}

/*
 * lib_context.c: zeroed host memory of objects that stand in no table (PDs, MRs, AHs, channels, XRC
 * domains); softhca_close() frees what the program has not.
 */
void *lib_object_new(struct lib_context *ctx, size_t bytes);
void lib_object_free(struct lib_context *ctx, void *object);
/* The file is closed when the object is freed. */
void lib_object_fd(void *object, int fd);

/* lib_srq.c: the WQE a CQE names is free again; its wr_id */
uint64_t lib_srq_take(struct lib_srq *srq, uint32_t wqe_offset);
void lib_srq_free(struct lib_srq *srq);

/* lib_recv.c: the WQE at index; judge it before. */
int lib_recv_judge(const struct lib_wq *wq, const struct softhca_recv_wr *wr);
void lib_recv_build(struct lib_wq *wq, uint32_t index, const struct softhca_recv_wr *wr);

/* lib_qp.c */
/* log2 of the WQEs of a queue for max_wr requests */
uint32_t lib_wq_log(uint32_t max_wr);
/* The caller has set wr_id. */
int lib_wq_map(struct lib_context *ctx, struct lib_wq *wq, uint32_t log_size, uint32_t log_stride,
	       size_t record_bytes);
uint32_t lib_log2_up(uint32_t n);
uint32_t lib_service_of(uint32_t qp_type);

/* lib_error.c: the reason of the channel for this thread; returns err. */
int lib_ctl_fail(struct lib_context *ctx, int err);

/* lib_mw.c: a BIND_MW request of post_send. 0 or -EINVAL; then its unit. */
int lib_mw_judge(const struct lib_qp *qp, const struct softhca_send_wr *wr);
void lib_mw_build(struct hca_bind_unit *unit, const struct softhca_send_wr *wr);

/* lib_mem.c: page-aligned zeroed memory for queues, which the device can reach */
void *lib_map(struct lib_context *ctx, size_t bytes);
void lib_unmap(struct lib_context *ctx, void *mem, size_t bytes);

/*
 * lib_life.c: a context that shares memory with a daemon is watched by a thread of its own, which
 * notices when the daemon is gone, and known to fork().
 */
int lib_life_begin(struct lib_context *ctx);
void lib_life_end(struct lib_context *ctx);
/* The context is dead: -EIO, in a forked process -EPERM. */
int lib_dead(const struct lib_context *ctx);

/* lib_ah.c: 0, or -EINVAL: a flow label, service level or rate that does not exist */
int lib_check_path(const struct softhca_ah_attr *attr);

/* lib_qp.c: free what is host memory; the queues to their first state (both CQs locked) */
struct softhca_qp_cap lib_qp_cap(const struct lib_qp *qp); /* what was granted */
void lib_qp_free(struct lib_qp *qp);
void lib_qp_rewind(struct lib_qp *qp);

/* lib_cq.c: make the CQEs of a QP that is reset or destroyed unknown; lock of the CQ held. */
void lib_cq_forget(struct lib_cq *cq, uint32_t qpn);
void lib_cq_lock_pair(struct lib_cq *a, struct lib_cq *b);
void lib_cq_unlock_pair(struct lib_cq *a, struct lib_cq *b);

#endif
