/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef URMA_IMPL_H
#define URMA_IMPL_H

/* The structures behind the public objects, each of which begins with its public part. */

#include <softhca/urma.h>

#include "abi_reason.h"
#include "abi_ub.h"
#include "lib_inside.h"
#include "urma_ctl.h"

/* EIDs of channels, by TPN */
#define URMA_EID_CACHE 64u

struct urma_eid_of {
	uint32_t tpn; /* 0: unused */
	urma_eid_t eid;
};

struct urma_ctx {
	urma_context_t pub;
	urma_device_t device; /* target of pub.dev */
	struct lib_context *lib;
	struct softhca_pd *pd; /* of everything in it */
	const struct urma_ctl *ctl;
	bool owned; /* lib is closed with it */
	pthread_mutex_t lock;
	uint32_t objects;	   /* that are left; under the lock, as all below */
	struct urma_queue **queue; /* Jettys and JFSs, by number & queue_mask */
	struct urma_jfrq **jfrq;   /* JFRs, in the same way */
	uint32_t queue_mask, jfrq_mask;
	struct urma_eid_of eid_of[URMA_EID_CACHE];
};

struct urma_jfc_obj {
	urma_jfc_t pub;
	struct softhca_cq *cq;
	struct softhca_moderate_cq moderate;
};

struct urma_jfce_obj {
	urma_jfce_t pub;
	struct softhca_comp_channel *channel;
};

/* Receives in a ring of their own, or in a list that the device follows (a JFR). */
struct urma_rq {
	struct lib_wq wq;
	struct hca_rq_record *record;
	uint32_t tail;		       /* ring: free running, all before it are completed */
	uint8_t *done;		       /* ring: by index, completed, but not one before it */
	uint32_t *next;		       /* list: index of the WQE after each; NULL: a ring */
	uint32_t free_head, free_tail; /* list: next to post, last that is free */
	uint32_t posted;
	bool closed; /* its Jetty is in RESET */
	/* unreliable: where the addresses in front of each message go, URMA_HEAD_STRIDE a WQE */
	uint8_t *heads;
	struct softhca_mr *heads_mr;
};

/* In front of an unreliable message: the IPv6 header, or the IPv4 header in the last 20 bytes. */
#define URMA_HEAD_BYTES 40u
#define URMA_HEAD_STRIDE 64u

/* A Jetty or a JFS */
struct urma_queue {
	union {
		urma_jetty_t jetty;
		urma_jfs_t jfs;
	};
	struct urma_ctx *ctx;
	bool is_jfs;
	uint32_t number; /* QPN */
	struct lib_wq sq;
	uint32_t tail; /* of sq: completed; written by polls */
	uint32_t max_inline;
	uint32_t state;	 /* urma_jetty_state_t, as this side has set it */
	bool flushed;	 /* FLUSH_DONE has come */
	uint32_t unseen; /* in RESET: the last requests, which the device has not read */
	bool announces;
	struct lib_cq *send_cq, *recv_cq;
	struct urma_rq rq; /* buf NULL: none of its own */
	struct urma_jfrq *shared;
	struct urma_target *bound;
};

struct urma_jfrq {
	urma_jfr_t pub;
	struct urma_ctx *ctx;
	uint32_t number; /* SRQN */
	struct lib_cq *cq;
	struct urma_rq rq;
	uint32_t users; /* Jettys; under the context's lock */
};

/* A registered segment (mr) or an imported one */
struct urma_segment {
	urma_target_seg_t pub;
	struct softhca_mr *mr; /* NULL: imported */
	uint32_t token, second;
	bool check, rotating, exported;
};

struct urma_target {
	urma_target_jetty_t pub;
	bool unreliable; /* there are no channels: messages go to ah */
	struct hca_ctl_ah ah;
	uint32_t import; /* its number at the driver */
	uint32_t tpg;
	uint32_t token;
	bool check;
	uint32_t users; /* Jettys that are bound; under the context's lock */
};

#define urma_inside() softhca_inside()
#define urma_fail(err, ...) softhca_inside()->failed(err, __VA_ARGS__)
/* An argument is NULL; make is the call that makes its objects. */
#define urma_null(argument, make) \
	urma_fail(-EINVAL, argument " is NULL: expected what %s() returns", make)
#define URMA_NULL_CFG "ctx %p, cfg %p: expected a context and a configuration"
#define URMA_NO_POLICY "token policy %u is not offered: expected 0 to %u"
#define URMA_SGES "%u SGEs: the queue takes 0 to %u, and their list must not be NULL"
#define URMA_NO_SEGMENT "SGE %u has no segment of urma_register_seg() in this context"
/* for "%s %u" */
#define URMA_QUEUE(q) (q)->is_jfs ? "JFS" : "Jetty", (q)->number
/* An allocation for this object has failed: -ENOMEM. */
#define urma_no_memory(object, bytes) \
	urma_fail(-ENOMEM, HCA_NO_MEMORY("this process"), object, (size_t)(bytes))

static inline struct urma_ctx *
urma_ctx_of(const urma_context_t *ctx)
{
	return (struct urma_ctx *)(uintptr_t)ctx;
}

/* urma_context.c: a negative errno as a status, and in errno */
urma_status_t urma_status(int err);
/* The context over lib; owned: closed with it. NULL with the reason. */
urma_context_t *urma_context_new(struct softhca_context *lib, uint32_t eid_index, bool owned,
				 const struct urma_ctl *ctl);
/* Zeroed memory of an object, which counts; its end. */
void *urma_object_new(struct urma_ctx *ctx, size_t bytes, const char *what);
void urma_object_free(struct urma_ctx *ctx, void *object);

/* urma_queue.c: memory of queues */
int urma_sq_map(struct urma_ctx *ctx, struct urma_queue *q, const urma_jfs_cfg_t *cfg);
int urma_rq_map(struct urma_ctx *ctx, struct urma_rq *rq, const urma_jfr_cfg_t *cfg, bool list);
void urma_wq_unmap(struct urma_ctx *ctx, struct lib_wq *wq);
void urma_rq_unmap(struct urma_ctx *ctx, struct urma_rq *rq);

/* urma_poll.c: completions of an object that ends, local as in its CQEs; locks the CQ */
void urma_jfc_forget(struct lib_cq *cq, uint32_t local);
/* Whether there are completions of the object; locks the CQ */
bool urma_jfc_holds(struct lib_cq *cq, uint32_t local);
/* urma_peer.c: the device has forgotten which peer the Jetty is bound to */
void urma_forget_peer(struct urma_queue *q);
urma_status_t urma_post_send(struct urma_queue *q, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr);

#endif
