/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_TYPES_H
#define LIB_TYPES_H

/*
 * The structures of the public objects. Each begins with its public part, so that pointers can be
 * cast. They belong to the library; the device sees only queue buffers, records and the UAR page.
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
 * No stack protector in a function of the data path: 8 instructions of 240. It must have no array
 * on its stack.
 */
#if __has_attribute(no_stack_protector)
#define LIB_NO_CANARY __attribute__((no_stack_protector))
#else
#define LIB_NO_CANARY
#endif

/*
 * The part of a context's doorbell page that one pipeline of the device reads. `next` numbers the
 * doorbells; doorbell d is in slot `base` + (d & `mask`) of the FIFO. turn[d & mask] is the number
 * that may use the slot next: a producer that has filled the slot adds mask + 1. A slot may be
 * taken if it is its turn *and* the device has emptied it: a slot that was taken but not filled
 * fulfils only one of the two conditions.
 */
struct lib_uar {
	struct hca_uar_page *page;
	uint32_t pipes;
	uint16_t base, mask;
	const uint32_t *sleep_word; /* of the worker that reads the page */
	int kick_fd;		    /* wakes that worker; -1: it never sleeps */
	uint32_t kicked;	    /* sleep word at the last kick */
	bool woke;		    /* kicked since the last lib_wait_posted() */
	LIB_CACHE_ALIGNED uint32_t next;
	LIB_CACHE_ALIGNED uint32_t turn[HCA_UAR_FIFO_SLOTS];
};

struct lib_object;

struct lib_context {
	struct softhca_context pub;
	const struct softhca_ctl_ops *ops;
	void *ctl;
	unsigned int (*progress)(void *arg); /* NULL unless progress is manual */
	unsigned int (*after_posts)(void *arg);
	uint32_t posted; /* NULL unless progress is manual */
	struct hca_ctl_info info;
	uint32_t features; /* HCA_CTL_FEATURE_* of the device's end */
	uint32_t qp_mask;  /* manual: requests posted since the engine last ran here */
	uint32_t cq_mask;
	uint32_t srq_mask;
	bool dead;		    /* the device is gone: posts return -EIO */
	bool forked;		    /* dead because this is a forked child: -EPERM */
	bool told;		    /* the program was told that the device is gone */
	struct lib_qp **qps;	    /* by QPN & qp_mask */
	struct lib_cq **cqs;	    /* by CQN & cq_mask */
	struct lib_srq **srqs;	    /* by SRQN & srq_mask */
	struct lib_object *objects; /* host memory to free at close */
	pthread_mutex_t lock;	    /* protects tables, list and event counts */
	pthread_cond_t acked;	    /* an event was acknowledged, a thread has left */
	bool closing;		    /* softhca_close(): no thread may wait for events any more */
	bool left;		    /* closed: the last thread that waits frees it */
	uint32_t readers;	    /* threads that wait for events; under the lock, as left */
	uint32_t next_tag;	    /* of a CQ; under the lock */
	char name[32];
	struct lib_context *next;  /* lib_life.c: list of all contexts */
	struct lib_cover *covers;  /* lib_share.c: covers of its regions */
	struct lib_cm *cm;	   /* lib_cm.h; NULL: not used yet; under the lock */
	bool memory_given;	   /* lib_share.c: the daemon can access foreign memory */
	pthread_t watcher;	   /* lib_life.c */
	int watch_stop;		   /* eventfd; -1: there is no watcher */
	struct lib_uar *more_uars; /* of the pipelines but the first */
	struct lib_uar uar;
};

/* The part of the doorbell page for a QP. */
static inline struct lib_uar *
lib_uar_of(struct lib_context *ctx, uint32_t qpn)
{
	uint32_t pipe = qpn % ctx->uar.pipes;

	return pipe == 0 ? &ctx->uar : &ctx->more_uars[pipe - 1];
}

struct lib_channel {
	struct softhca_comp_channel pub;
	uint32_t handle;
	uint32_t users;	  /* number of CQs; under the context's lock, as the next */
	uint32_t readers; /* threads that wait for its events */
};

struct lib_cq {
	struct softhca_cq pub;
	struct lib_context *ctx;
	struct hca_cqe *ring;
	struct hca_cq_record *record;
	uint32_t mask;
	uint32_t large;	   /* 1: struct hca_cqe_more follows every CQE, else 0 */
	uint32_t consumer; /* free running */
	bool locked;	   /* false: SOFTHCA_SINGLE_THREADED */
	struct lib_lock lock;
	const struct lib_wait *reader; /* thread between start_poll and end_poll */
	const struct hca_cqe *shown;   /* the CQE it reads, the one at consumer; or NULL */
	uint32_t arm_seq;
	uint32_t arm_mode; /* requested but not yet delivered */
	uint32_t users;	   /* number of QPs; under the context's lock, as the rest */
	uint32_t events_got;
	uint32_t events_acked;
	uint32_t tag; /* tells its events from those of an earlier CQ of that number */
	size_t bytes; /* of the mapping that starts at ring */
};

/* A work queue as used by posts. The object that has the queue contains the wr_id array. */
struct lib_wq {
	struct lib_lock lock;
	uint32_t head; /* free running: WQEs posted */
	uint32_t mask; /* size - 1 */
	uint32_t log_stride;
	uint8_t *buf;
	uint64_t *wr_id;
	size_t bytes; /* of the mapping that starts at buf */
	uint32_t max_sge;
	bool locked; /* false: SOFTHCA_SINGLE_THREADED */
};

/*
 * The same queue as used by poll_cq, under the CQ's lock. It has its own copy of these fields,
 * because posts change their cache line all the time.
 */
struct lib_polled {
	uint32_t tail; /* free running: WQEs completed */
	uint32_t mask;
	uint64_t *wr_id; /* NULL: the queue does not exist */
	uint32_t log_stride;
};

/*
 * Shared receive queue. Its WQEs form a list: `next` of a WQE is the one posted after it, so one
 * WQE is always free. free_head: the next to post; free_tail: the last free one.
 */
struct lib_srq {
	struct softhca_srq pub;
	struct lib_context *ctx;
	struct lib_wq wq; /* always locked */
	struct hca_rq_record *record;
	uint32_t *next; /* after the wr_ids */
	uint32_t free_head, free_tail;
	uint32_t posted; /* free running */
	uint32_t users;	 /* number of QPs; under the context's lock, as the rest */
	uint32_t events_got;
	uint32_t events_acked;
	struct lib_cq *cq; /* XRC only */
	bool leaving;	   /* being destroyed */
	struct lib_xrcd *xrcd;
};

struct lib_xrcd {
	struct softhca_xrcd pub;
	uint32_t users; /* under the context's lock */
};

/*
 * How many address handles a device is said to have. Memory alone limits them, but programs count
 * up to this number, some as an int.
 */
#define LIB_MAX_AHS 65536u

/* An address handle contains the UD unit of its WQEs, without QPN and Q_Key. */
struct lib_ah {
	struct softhca_ah pub; /* the program may change context and pd; so of MRs and windows */
	struct lib_context *ctx;
	struct softhca_pd *pd;
	struct hca_ud_unit unit;
};

/*
 * One cache line for each part that threads may use concurrently: read-only members, post_send,
 * post_recv, and polls of the two CQs. There may be tens of thousands of QPs, so members that are
 * rarely used fill the rest of those lines that are written least.
 */
struct lib_qp {
	struct softhca_qp pub; /* see lib_qp_ctx() */

	LIB_CACHE_ALIGNED struct lib_wq sq;
	struct lib_uar *uar;  /* of its pipeline */
	uint16_t ops;	      /* HCA_WQE_OP_RC, _UC or _UD, against send_op.services */
	uint16_t extra_units; /* size of the UD or XRC unit after the next unit of every WQE */
	uint16_t max_inline;
	uint16_t signal_all; /* the C flag if every request is signalled, else 0 */

	LIB_CACHE_ALIGNED struct lib_wq rq;
	struct hca_rq_record *rq_record; /* NULL: it has no receive queue */

	LIB_CACHE_ALIGNED struct lib_polled sq_polled;
	struct lib_xrcd *xrcd;
	struct lib_qp *next; /* of the same number: an XRC target opened once more; as `leaving` */
	bool leaving;	     /* being destroyed by the driver; under the context's lock */
	/* its WQEs announce chains, since the last reset; under the lock of the send queue */
	bool announces;

	LIB_CACHE_ALIGNED struct lib_polled rq_polled;
	uint32_t events_got; /* of asynchronous events; under the context's lock */
	uint32_t events_acked;

	LIB_CACHE_ALIGNED uint64_t wr_ids[]; /* of the send queue, then of the receive queue */
};

_Static_assert(sizeof(struct lib_qp) == 5 * HCA_CACHE_LINE, "one cache line per user of a QP");
_Static_assert(offsetof(struct lib_qp, sq) == HCA_CACHE_LINE, "posts write no line that all read");
_Static_assert(offsetof(struct lib_qp, rq_polled) == 4 * HCA_CACHE_LINE,
	       "nor one that another polls");

/*
 * Host memory of a QP without its queues: the object, its entry in the context's table, and about a
 * cache line of malloc()'s header and alignment.
 */
#define LIB_QP_BYTES (sizeof(struct lib_qp) + sizeof(struct lib_qp *) + HCA_CACHE_LINE)

struct lib_td {
	struct softhca_td pub;
	uint32_t pipe; /* of its QPs, + 1; 0: it has had none */
};

struct lib_pd {
	struct softhca_pd pub;
	uint32_t ahs; /* number of address handles, which are not in the driver */
};

struct lib_mr {
	struct softhca_mr pub;
	struct lib_context *ctx;
	struct softhca_pd *pd;
	struct lib_cover *cover; /* the shared memory it lies in; NULL: embedded */
	uint64_t va;		 /* in work requests; pub.addr is 0 if zero-based */
	uint64_t memory;	 /* where it was registered; 0: by a list of pages */
	uint32_t access;	 /* rights */
	bool zero_based, on_demand;
	bool slow;     /* foreign memory */
	bool imported; /* another context's */
};

struct lib_mw {
	struct softhca_mw pub;
	struct lib_context *ctx;
	struct softhca_pd *pd;
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

/* Manual progress: post_send runs the engine after this number of posted requests. */
#define LIB_POSTED_MAX 32u

static inline void
lib_run(struct lib_context *ctx, unsigned int (*progress)(void *arg))
{
	__atomic_store_n(&ctx->posted, 0, __ATOMIC_RELAXED);
	progress(ctx->ctl);
}

/* Count n posted requests. Not exact if several threads post, because it only controls pacing. */
static inline void
lib_posted(struct lib_context *ctx, uint32_t n)
{
	uint32_t posted;

	if (ctx->progress == NULL)
		return;
	posted = __atomic_load_n(&ctx->posted, __ATOMIC_RELAXED) + n;
	if (posted >= LIB_POSTED_MAX)
		lib_run(ctx, ctx->after_posts);
	else
		__atomic_store_n(&ctx->posted, posted, __ATOMIC_RELAXED);
}

/* Find the QP of a QPN in this context; all 24 bits are compared. NULL: not found. */
static inline struct lib_qp *
lib_find_qp(const struct lib_context *ctx, uint32_t qpn)
{
	struct lib_qp *qp = __atomic_load_n(&ctx->qps[qpn & ctx->qp_mask], __ATOMIC_ACQUIRE);

	return qp != NULL && qp->pub.qp_num == qpn ? qp : NULL;
}

/* Find the SRQ of an SRQN in this context; all bits are compared. NULL: not found. */
static inline struct lib_srq *
lib_find_srq(const struct lib_context *ctx, uint32_t srqn)
{
	struct lib_srq *srq = __atomic_load_n(&ctx->srqs[srqn & ctx->srq_mask], __ATOMIC_ACQUIRE);

	return srq != NULL && srq->pub.handle == srqn ? srq : NULL;
}

/*
 * lib_context.c: zeroed host memory for objects that are in no table (PDs, MRs, AHs, channels, XRC
 * domains). softhca_close() frees those that the program has not. NULL with the reason set: no
 * memory for the object that the last argument names.
 */
void *lib_object_new(struct lib_context *ctx, size_t bytes, const char *what);
/* Free an object that the control channel has refused; returns NULL. */
void *lib_object_refused(struct lib_context *ctx, void *object);
void lib_object_free(struct lib_context *ctx, void *object);
/* Close fd when the object is freed. */
void lib_object_fd(void *object, int fd);
/* Free a context and all that is left in it; its control channel is closed. */
void lib_context_free(struct lib_context *ctx);

/* lib_srq.c: free the WQE that a CQE names; returns its wr_id. */
uint64_t lib_srq_take(struct lib_srq *srq, uint32_t wqe_offset);
void lib_srq_free(struct lib_srq *srq);

/* lib_qp.c */
/* log2 of the number of WQEs of a queue for max_wr requests */
uint32_t lib_wq_log(uint32_t max_wr);
/* Allocate the buffer of a queue and its record; the caller has set wr_id. */
int lib_wq_map(struct lib_context *ctx, struct lib_wq *wq, uint32_t log_size, uint32_t log_stride,
	       size_t record_bytes);
uint32_t lib_log2_up(uint32_t n);
uint32_t lib_service_of(uint32_t qp_type);

/*
 * lib_event.c: for a context that is being closed. Wait a limited time until no thread waits for
 * events; after that, leave the context to the threads that remain. False: no thread remains.
 */
void lib_event_end(struct lib_context *ctx);
bool lib_event_leave(struct lib_context *ctx);
/*
 * A thread that waits for events of a channel, counted in *readers, which the context's lock
 * protects; NULL: for asynchronous ones. -EIO: the context is being closed.
 */
int lib_event_begin_wait(struct lib_context *ctx, uint32_t *readers);
void lib_event_end_wait(struct lib_context *ctx, uint32_t *readers);
/* Wait until no thread waits. False: some did not leave in time. */
bool lib_event_no_readers(struct lib_context *ctx, const uint32_t *readers);
/*
 * Read one whole record; with manual progress the engine runs meanwhile. -EAGAIN: no record and fd
 * is O_NONBLOCK; -EINTR; -EIO: the channel has ended; -EPERM: in a forked child.
 */
int lib_event_read(struct lib_context *ctx, int fd, struct hca_ctl_event *event);

/*
 * lib_error.c: call a control operation (abi_ops.h). 0 or the negative errno of the channel, whose
 * reason is recorded for this thread. Use it as LIB_CALL(ctx, CREATE_CQ, &request, &cqn), which
 * checks the types against the row of the operation.
 */
int lib_call(struct lib_context *ctx, enum hca_ctl_op op, const void *request, void *answer,
	     struct hca_ctl_extra *extra);
/* 0, or -EOPNOTSUPP with the reason: the daemon is of a release without the feature. */
int lib_needs(const struct lib_context *ctx, enum hca_ctl_feature feature);
/* Release the object of that number on an error path: the recorded reason does not change. */
void lib_drop(struct lib_context *ctx, enum hca_ctl_op op, uint32_t number);

#define LIB_CALL_EXTRA(ctx, NAME, request, answer, extra) \
	lib_call(ctx, HCA_CTL_##NAME, HCA_CTL_REQUEST(NAME, request), \
		 HCA_CTL_ANSWER(NAME, answer), extra)
#define LIB_CALL(ctx, NAME, request, answer) LIB_CALL_EXTRA(ctx, NAME, request, answer, NULL)

/* lib_mw.c: check a BIND_MW request of post_send (0 or -EINVAL); write its unit. */
int lib_mw_judge(const struct softhca_send_wr *wr);
void lib_mw_build(struct hca_bind_unit *unit, const struct softhca_send_wr *wr);

/* lib_mem.c: page-aligned zeroed memory for queues, accessible to the device */
void *lib_map(struct lib_context *ctx, size_t bytes);
void lib_unmap(struct lib_context *ctx, void *mem, size_t bytes);

/*
 * lib_life.c: register a context for fork() and, if it shares memory with a daemon, start the
 * thread that watches the daemon.
 */
int lib_life_begin(struct lib_context *ctx);
void lib_life_end(struct lib_context *ctx);
/* Error of a dead context: -EIO, or -EPERM in a forked child. */
int lib_dead(const struct lib_context *ctx);

/* lib_ah.c: 0, or -EINVAL: it is not one of enum softhca_rate */
int lib_check_rate(uint32_t static_rate);

/* lib_qp.c: the granted capacities; free host memory; reset the queues (with both CQs locked). */
struct softhca_qp_cap lib_qp_cap(const struct lib_qp *qp);
void lib_qp_free(struct lib_qp *qp);
/* The object and its queues; NULL with errno. */
struct lib_qp *lib_qp_new(struct lib_context *ctx, const struct softhca_qp_init_attr_ex *attr);
/* Enter a QP whose number is known into the context's table. */
int lib_qp_enter(struct lib_context *ctx, struct lib_qp *qp);
/* lib_modify.c: read the QP's state from the device. */
int lib_qp_refresh(struct lib_qp *qp);
void lib_qp_rewind(struct lib_qp *qp);

/* The CQE of index i, free running */
static inline struct hca_cqe *
lib_cqe_at(const struct lib_cq *cq, uint32_t i)
{
	return &cq->ring[(size_t)(i & cq->mask) << cq->large];
}

/*
 * lib_cq.c: the lock of a CQ, which may be NULL. Nothing happens if the CQ has none, or if this
 * thread has it because it reads the CQ. try: false: another thread has it.
 */
void lib_cq_lock(struct lib_cq *cq);
bool lib_cq_try(struct lib_cq *cq);
void lib_cq_unlock(struct lib_cq *cq);
/* Invalidate the CQEs of a QP that is reset or destroyed; the CQ's lock is held. */
void lib_cq_forget(struct lib_cq *cq, uint32_t qpn);
void lib_cq_lock_pair(struct lib_cq *a, struct lib_cq *b);
void lib_cq_unlock_pair(struct lib_cq *a, struct lib_cq *b);

#endif
