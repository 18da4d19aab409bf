/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MSG_H
#define ENGINE_MSG_H

/*
 * Messages between stages about one object (object.h): a set of flags per (producer, consumer,
 * object) plus the object's index on a SPSC ring that is large enough for every object of the
 * channel, so a message can never be refused: an object enters the ring only when its flags were 0,
 * and they become 0 only after it has left. The ring is our own: with 16 bits per object it takes a
 * quarter of an rte_ring. A flag is only a signal; the consumer reads the details from the
 * producer's own line of the object's context. Sending a flag that is already pending costs one
 * atomic OR and no ring entry.
 *
 * Messages are delivered at the target's next poll, never from inside the sender.
 */

#include <rte_common.h>

#include "engine/object.h"
#include "engine/stage.h"

/* X(from, to, kind of the objects): all channels. */
#define HCA_MSG_LIST(X) \
	X(PARSER, REQ_TX, QP) /* NEW: records entered the window */ \
	X(REQ_TX, PARSER, QP) /* FREED: window slots and records were returned; STATE */ \
	X(REQ_TX, REQ_RX, \
	  QP) /* ARM: unacknowledged packets, BAD: error or flush records wait; LOCAL, LATE */ \
	X(REQ_RX, REQ_TX, QP) /* RELEASE, REWIND, HOLD, STATE */ \
	X(REQ_RX, PARSER, QP) /* STATE */ \
	X(REQ_RX, EE, QP)     /* STATE, CNP */ \
	X(REQ_RX, TIMER, QP)  /* ARM: (re)arm at req_rx.timer_deadline */ \
	X(TIMER, REQ_RX, QP)  /* EXPIRED */ \
	X(ENCAP, REQ_TX, QP)  /* FAILED: gather failed at encap.req_failed_*; COPIED, LATE */ \
	X(ENCAP, EE, QP)      /* FAILED, LATE: gather of a READ response failed */ \
	X(EE, PARSER, QP)     /* STATE */ \
	X(EE, REQ_TX, QP)     /* STATE */ \
	X(EE, REQ_RX, QP)     /* STATE */ \
	X(PARSER, REQ_RX, QP) /* STATE */ \
	X(PARSER, EE, QP)     /* STATE */ \
	X(DOORBELL, EE, QP)   /* KICK: flush receives posted after the error */ \
	X(DECAP, EE, QP)      /* MARKED: a packet with data came with a congestion mark */ \
	X(CEU, PARSER, QP)    /* STATE, PURGE */ \
	X(CEU, REQ_TX, QP)    /* STATE, PURGE */ \
	X(CEU, REQ_RX, QP)    /* STATE, PURGE */ \
	X(CEU, EE, QP)	      /* STATE, LEAVES, PURGE */ \
	X(CEU, TIMER, ANY)    /* PURGE */ \
	/* UB; they exist where the wire does */ \
	X(PARSER, TAI, QP)   /* NEW, STATE */ \
	X(TAI, PARSER, QP)   /* FREED, STATE */ \
	X(TAI, TIMER, QP)    /* ARM: (re)arm at tai_wait.timer_deadline */ \
	X(TIMER, TAI, QP)    /* EXPIRED */ \
	X(TAI, TAT, QP)	     /* STATE */ \
	X(TAT, TAI, QP)	     /* STATE */ \
	X(TAT, PARSER, QP)   /* STATE */ \
	X(PARSER, TAT, QP)   /* STATE */ \
	X(DOORBELL, TAT, QP) /* KICK */ \
	X(TAI, TPS, TP)	     /* NEW: operations were put into the lane of requests; STATE */ \
	X(TAT, TPS, TP)	     /* NEW: operations were put into the lane of responses; STATE */ \
	X(TPR, TPS, TP)	     /* STATE: the TP is in ERROR */ \
	X(TPR, TAT, TP)	     /* NEW: rx.given moved */ \
	X(TPS, TAI, TP)	     /* ROOM: tx.lane[].done moved; DEAD: the TP is in ERROR */ \
	X(TPS, TAT, TP)	     /* ROOM, DEAD */ \
	X(ENCAP, TPS, TP)    /* COPIED: encap.done_seq moved */ \
	X(TPS, TIMER, TP)    /* ARM: (re)arm at tx.timer_deadline */ \
	X(TIMER, TPS, TP)    /* EXPIRED */ \
	X(CEU, TAI, ANY)     /* STATE, PURGE */ \
	X(CEU, TAT, ANY)     /* STATE, PURGE */ \
	X(DECAP, TPR, TP)    /* MARKED: a packet came with a congestion mark */ \
	X(CEU, TPR, TP)	     /* PURGE */ \
	X(CEU, TPS, TP)	     /* STATE, PURGE */

/* With REWIND: reason of retransmissions. HCA_AGAIN_LIST (counters.h) has their counters. */
enum hca_again {
	HCA_AGAIN_TIMEOUT,
	HCA_AGAIN_SEQ_NAK,
	HCA_AGAIN_IMPLIED_NAK, /* a response before the one that arrived is missing */
	HCA_AGAIN_RNR_NAK,
	HCA_AGAIN_GATHER, /* after a request whose data could not be read again and is not needed */
	HCA_AGAIN_ASK,	  /* no acknowledgement had been requested */
	HCA_AGAIN_LATE,	  /* foreign memory of this side did not answer in time */
};

enum hca_msg_flag {
	HCA_MSG_NEW = 1u << 0,
	HCA_MSG_FREED = 1u << 0,
	HCA_MSG_ARM = 1u << 0,
	HCA_MSG_EXPIRED = 1u << 0,
	HCA_MSG_KICK = 1u << 0,
	HCA_MSG_MARKED = 1u << 0,
	HCA_MSG_RELEASE = 1u << 0,
	HCA_MSG_ROOM = 1u << 0,
	HCA_MSG_BAD = 1u << 1,
	HCA_MSG_REWIND = 1u << 1,
	HCA_MSG_FAILED = 1u << 1,
	HCA_MSG_CNP = 1u << 1, /* one came */
	HCA_MSG_DEAD = 1u << 1,
	HCA_MSG_HOLD = 1u << 2,
	HCA_MSG_COPIED = 1u << 2,
	HCA_MSG_LOCAL = 1u << 2, /* local operations were executed */
	HCA_MSG_STATE = 1u << 3, /* cfg.state changed: wake, flush */
	HCA_MSG_PURGE = 1u << 4, /* forget the object, then acknowledge to the CEU */
	HCA_MSG_LATE = 1u << 5,	 /* foreign memory did not answer in time: repeat it later */
	HCA_MSG_LEAVES =
		1u << 6, /* it will be reset: send the ACK that is due, then tell the CEU */
};

/*
 * Checked by a stage before it walks its channels: number of messages on channels from the same
 * worker, and whether any channel comes from another worker (these are always checked).
 */
struct hca_msg_inbox {
	uint32_t waiting;
	uint32_t remote;
};

struct hca_msg_channel {
	uint16_t *slot;		     /* ring of object indexes, one slot per object */
	uint8_t *pending;	     /* flags by object index, of the objects of the channel */
	struct hca_msg_inbox *inbox; /* of the consumer, when local */
	uint32_t mask;		     /* slots - 1 */
	bool local;		     /* same worker: no atomic needed */
	uint64_t *wake;		     /* otherwise: as in struct hca_edge */
	uint64_t wake_bit;
	uint32_t head __rte_cache_aligned; /* producer, free running */
	uint32_t tail __rte_cache_aligned; /* consumer */
};

/* Memory of a channel per object. */
#define HCA_MSG_BYTES_PER_OBJECT (sizeof(uint16_t) + sizeof(uint8_t))

/* Number of messages waiting; may lag. */
static inline uint32_t
hca_msg_count(const struct hca_msg_channel *c)
{
	uint32_t tail = __atomic_load_n(&c->tail, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&c->head, __ATOMIC_ACQUIRE) - tail;
}

static inline void
hca_msg_post(struct hca_msg_channel *c, uint32_t obj, uint8_t flags)
{
	uint8_t old;

	if (c->local) {
		old = c->pending[obj];
		c->pending[obj] = old | flags;
	} else {
		old = __atomic_fetch_or(&c->pending[obj], flags, __ATOMIC_ACQ_REL);
	}
	if (old != 0)
		return;
	c->slot[c->head & c->mask] = (uint16_t)obj;
	__atomic_store_n(&c->head, c->head + 1, __ATOMIC_RELEASE);
	if (c->local)
		c->inbox->waiting++;
	else
		*c->wake |= c->wake_bit;
}

/* The same; false: flags of the object are pending, and these were added to them. */
static inline bool
hca_msg_post_first(struct hca_msg_channel *c, uint32_t obj, uint8_t flags)
{
	uint32_t head = c->head;

	hca_msg_post(c, obj, flags);
	return c->head != head;
}

/* Takes a message: returns its flags and the object index, or 0: no message waits. */
static inline uint8_t
hca_msg_take(struct hca_msg_channel *c, uint32_t *obj)
{
	if (c->tail == __atomic_load_n(&c->head, __ATOMIC_ACQUIRE))
		return 0;
	*obj = c->slot[c->tail & c->mask];
	__atomic_store_n(&c->tail, c->tail + 1, __ATOMIC_RELEASE);
	if (c->local) {
		uint8_t f = c->pending[*obj];

		c->pending[*obj] = 0;
		c->inbox->waiting--;
		return f;
	}
	return __atomic_exchange_n(&c->pending[*obj], 0, __ATOMIC_ACQ_REL);
}

/* See impl.h for hca_msg_send(h, FROM, TO, obj, flags) and hca_msg_drain(). */

#endif
