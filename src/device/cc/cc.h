/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CC_CC_H
#define CC_CC_H

/*
 * Congestion control: the seam between the stages that send and an algorithm. Each object has the
 * number of one: that of the HCA (hca_config.congestion, SET_CONGESTION), or a QP its own
 * (HCA_QP_ATTR_CONGESTION). While no object has another one than "none", hca_core.cc is NULL and
 * nothing here is called. Requests of reliable QPs and packets of TPs are subject to it. The stage
 * that sends asks before, and then reports the frames; the stage that receives answers reports the
 * state of the network:
 *
 *             may_send, sent         acked, round_trip, cnp, lost     begin
 *  RoCE, QP   req_tx                 req_rx                           CEU
 *  its READ
 *  responses  EE                     EE: cnp alone                    CEU
 *  UB, TP     TPS                    TPS                              CEU
 *
 * READ responses of a QP are a flow with another state (hca_cc_responses()), because other stages
 * work for it. They are not acknowledged: unanswered is 0. So the first two functions may run on
 * another lcore than the next four; begin runs while no stage works for the object, or asks for it:
 * the algorithm of a living object changes by way of a pause and a round. No function may block or
 * allocate. An algorithm defines all of them; a function without work is empty.
 *
 * obj: object index (object.h). now: ns, of poll(). Bytes: of frames, from Ethernet header to ICRC.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include "abi_roce.h"
#include "engine/impl.h"

#define HCA_CC_FRAME_OVERHEAD 82u /* bytes around a payload, at most */
#define HCA_CC_FRAME (4096u + HCA_CC_FRAME_OVERHEAD)

/* The sign of a loss. */
enum hca_cc_loss {
	HCA_CC_TIMEOUT, /* no answer came in time */
	HCA_CC_GAP,	/* an answer or a response says that packets before it are missing */
	HCA_CC_LOSSES
};

/* The limits of a flow now. */
struct hca_cc_view {
	uint32_t rate_kbps; /* 0: no limit */
	uint32_t window;    /* unanswered PSNs, 0: no limit */
	uint64_t rtt_ns;    /* the last round trip, 0: it times none */
	uint32_t target_ns; /* of round trips, 0: it has none */
};

struct hca_cc_ops {
	const char *name;
	/* Of its state of each object, zero at first: hca_cc_state(); see there. */
	size_t state_bytes;
	/* Switches are to mark its packets: they leave as ECT(0). */
	bool marks;
	/*
	 * A new life of the object begins, or it gets this algorithm; then PSNs may be unanswered.
	 */
	void (*begin)(struct hca_pipe *h, uint32_t obj);
	/*
	 * Bytes that may leave now, UINT32_MAX: no limit. unanswered: PSNs sent and not
	 * acknowledged, without those that are to be sent again. If the next frame needs more, the
	 * object waits until acked or lost was called for it, or until *again (ns), which is
	 * UINT64_MAX before the call. While nothing is unanswered the answer must allow a frame of
	 * the path MTU or set *again, because then no ACK wakes the object. One frame may leave
	 * beyond the answer, where the responder would not be asked for an ACK otherwise. It may be
	 * asked again before any of that.
	 */
	uint32_t (*may_send)(struct hca_pipe *h, uint32_t obj, uint32_t unanswered, uint64_t now,
			     uint64_t *again);
	/*
	 * Frames have left, first and repeated ones. psns: that they have or, of READ requests,
	 * that they ask for, so that psns - frames is the number of responses beyond the first.
	 */
	void (*sent)(struct hca_pipe *h, uint32_t obj, uint32_t frames, uint32_t psns,
		     uint64_t bytes, uint64_t now);
	/* PSNs are acknowledged; a response of a READ acknowledges its own. */
	void (*acked)(struct hca_pipe *h, uint32_t obj, uint32_t psns, uint64_t now);
	/* A PSN that was sent once was acknowledged ns after that. */
	void (*round_trip)(struct hca_pipe *h, uint32_t obj, uint64_t ns, uint64_t now);
	/* A congestion notification packet came from the peer. */
	void (*cnp)(struct hca_pipe *h, uint32_t obj, uint64_t now);
	/* Packets are lost and will be sent again; one call per answer or timeout. */
	void (*lost)(struct hca_pipe *h, uint32_t obj, enum hca_cc_loss why, uint64_t now);
	/* Any thread; may lag. NULL: it has nothing to show. */
	void (*show)(const struct hca_pipe *h, uint32_t obj, struct hca_cc_view *out);
};

#define HCA_CC_ROWS 16u

/*
 * The algorithms of a device by number, and the number that each object has. Numbers are those of
 * hca_cc_number(), then those of hca_config.congestion_more; 0: the object is not controlled. After
 * the last number comes the pause, in which an object is while its algorithm changes.
 */
struct hca_cc {
	const struct hca_cc_ops *row[HCA_CC_ROWS]; /* with "none", which has a name only */
	const struct hca_cc_ops *ops[HCA_CC_ROWS]; /* NULL: nothing is asked */
	uint8_t numbers;			   /* the last one */
	uint8_t number;				   /* [pub] CEU: of the HCA */
	uint32_t controlled;			   /* CEU: objects that have an algorithm */
	size_t flow_bytes;
	struct hca_cc_flow *flow; /* by object index; NULL: no object had an algorithm yet */
	uint8_t of[];		  /* [pub] CEU: by object index */
};

/* The number of the pause. */
static inline uint8_t
hca_cc_pause(const struct hca_cc *cc)
{
	return (uint8_t)(cc->numbers + 1);
}

/* Whether stages ask; false is usual. */
static inline bool
hca_cc_in_use(const struct hca_pipe *h)
{
	return unlikely(__atomic_load_n(&h->cc, __ATOMIC_RELAXED) != NULL);
}

/* The algorithm of an object now, which the caller loads once for a call or two; NULL: none. */
static inline const struct hca_cc_ops *
hca_cc_of(const struct hca_pipe *h, uint32_t obj)
{
	const struct hca_cc *cc = __atomic_load_n(&h->cc, __ATOMIC_ACQUIRE);

	if (likely(cc == NULL))
		return NULL;
	return cc->ops[__atomic_load_n(&cc->of[obj], __ATOMIC_ACQUIRE)];
}

/**
 * Find the number of an algorithm by its name.
 *
 * @param name
 *   NULL is "none".
 * @param more
 *   Algorithms that are not in the table, ends with NULL; may be NULL.
 * @return
 *   The number, or -EINVAL: unknown name (HCA_CC_NAMES lists the table).
 */
int hca_cc_find(const char *name, const struct hca_cc_ops *const *more);

/* The traffic class of packets that it controls: DSCP as given, and ECN. */
static inline uint8_t
hca_cc_tclass(const struct hca_cc_ops *cc, uint8_t tclass)
{
	return (uint8_t)((tclass & 0xfcu) | (cc != NULL && cc->marks ? HCA_ECN_ECT0 : 0));
}

/*
 * The state of an object that the algorithm keeps, for its own functions. It begins at a cache
 * line. Each line has one writer, or atomics: may_send and sent may run at the same time as the
 * others.
 */
void *hca_cc_state(const struct hca_pipe *h, uint32_t obj);

/* The flow of a QP's READ responses, as obj of the functions above. */
uint32_t hca_cc_responses(const struct hca_pipe *h, uint32_t qpi);

/*
 * Before the state that the algorithm of an object keeps. Round trips are those of QPs: one PSN of
 * each at a time is timed.
 */
struct hca_cc_flow {
	/* req_tx */
	uint64_t sent_at;  /* ns */
	uint32_t psn;	   /* timed */
	uint32_t begun;	   /* [pub] PSNs ever timed; stored after the two above */
	uint32_t repeated; /* [pub] begun, when frames were sent again: that one is not told */
	/* CEU, in hca_cc_begin() */
	uint32_t life;	/* how often that was */
	uint8_t number; /* of the algorithm whose state follows; 0: zeros */
	/* req_rx */
	uint32_t ended __rte_cache_aligned; /* [pub] PSNs timed and acknowledged */
} __rte_cache_aligned;

/* hca_create(), hca_destroy(); -EINVAL: hca_config.congestion is no name. */
int hca_cc_init(struct hca_pipe *h);
void hca_cc_fini(struct hca_pipe *h);

/* ---- CEU ---- */

/*
 * Objects may have this algorithm from here on, and stages ask: memory for the state, of all pipes.
 * 0, or -ENOMEM.
 */
int hca_cc_use(struct hca_core *h, uint8_t number);
/* Stages do not ask any longer, if no object has an algorithm, nor later ones. */
void hca_cc_settle(struct hca_core *h);
/*
 * A new life of an object, or the end of its pause: it has this algorithm, whose state begins.
 * No stage works for it, or asks.
 */
void hca_cc_begin(struct hca_pipe *h, uint32_t obj, uint8_t number);
/* Stages ask another row from their next call on; hca_cc_begin() follows after a round. */
void hca_cc_set(struct hca_core *h, uint32_t obj, uint8_t number);

/* The number of lives of an object, to find out that the state is new. */
uint32_t hca_cc_life(const struct hca_pipe *h, uint32_t obj);

/* The functions below are called with the algorithm that hca_cc_of() gave. */

/* req_tx: frames have left, with psns PSNs up to last; repeated: some were sent before. */
void hca_cc_sent(struct hca_pipe *h, const struct hca_cc_ops *ops, uint32_t obj, uint32_t last,
		 bool repeated, uint32_t frames, uint32_t psns, uint64_t bytes, uint64_t now);
/* req_rx: n PSNs before una are acknowledged. */
void hca_cc_acked(struct hca_pipe *h, const struct hca_cc_ops *ops, uint32_t obj, uint32_t una,
		  uint32_t n, uint64_t now);

#endif
