/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MSG_H
#define ENGINE_MSG_H

/*
 * Messages between stages about one QP: a set of flags per (producer, consumer, QP) plus the QP's
 * index on a SPSC ring that is large enough for every QP, so a message can never be refused: a QP
 * enters the ring only when its flags were 0, and they become 0 only after it has left. The ring is
 * our own because with every QP on 16 bits it takes a quarter of an rte_ring. The flags say that
 * something happened; what happened is read from the producer's own line of the key-QPC store.
 * Sending a flag that is already pending costs one atomic OR and no ring entry.
 *
 * Messages are delivered at the target's next poll, never from inside the sender.
 */

#include <rte_common.h>

#include "engine/stage.h"

/* X(from, to): the only channels there are. */
#define HCA_MSG_LIST(X) \
	X(PARSER, RTC)	/* NEW: records entered the window */ \
	X(RTC, PARSER)	/* FREED: window slots and records came back; STATE */ \
	X(RTC, RRC)	/* ARM: unacknowledged packets, BAD: error or flush records wait, LOCAL */ \
	X(RRC, RTC)	/* RELEASE, REWIND, HOLD, STATE */ \
	X(RRC, PARSER)	/* STATE */ \
	X(RRC, EE)	/* STATE */ \
	X(RRC, TIMER)	/* ARM: (re)arm at rrc.timer_deadline */ \
	X(TIMER, RRC)	/* EXPIRED */ \
	X(ENCAP, RTC)	/* FAILED: gather failed at encap.req_failed_*; COPIED */ \
	X(ENCAP, EE)	/* FAILED: gather of a READ response failed */ \
	X(EE, PARSER)	/* STATE */ \
	X(EE, RTC)	/* STATE */ \
	X(EE, RRC)	/* STATE */ \
	X(PARSER, RRC)	/* STATE */ \
	X(PARSER, EE)	/* STATE */ \
	X(DOORBELL, EE) /* KICK: flush receives posted after the error */ \
	X(CEU, PARSER)	/* STATE, PURGE */ \
	X(CEU, RTC)	/* STATE, PURGE */ \
	X(CEU, RRC)	/* STATE, PURGE */ \
	X(CEU, EE)	/* STATE, PURGE */ \
	X(CEU, TIMER)	/* PURGE */

/* With REWIND: why packets are sent again. HCA_AGAIN_LIST (counters.h) has their counters. */
enum hca_again {
	HCA_AGAIN_TIMEOUT,
	HCA_AGAIN_SEQ_NAK,
	HCA_AGAIN_IMPLIED_NAK, /* a response before the one that came is missing */
	HCA_AGAIN_RNR_NAK,
	HCA_AGAIN_GATHER, /* behind a request that could not be read again and need not be */
	HCA_AGAIN_ASK,	  /* nobody had asked for an acknowledgement */
};

enum hca_msg_flag {
	HCA_MSG_NEW = 1u << 0,
	HCA_MSG_FREED = 1u << 0,
	HCA_MSG_ARM = 1u << 0,
	HCA_MSG_EXPIRED = 1u << 0,
	HCA_MSG_KICK = 1u << 0,
	HCA_MSG_RELEASE = 1u << 0,
	HCA_MSG_BAD = 1u << 1,
	HCA_MSG_REWIND = 1u << 1,
	HCA_MSG_FAILED = 1u << 1,
	HCA_MSG_HOLD = 1u << 2,
	HCA_MSG_COPIED = 1u << 2,
	HCA_MSG_LOCAL = 1u << 2, /* local operations were executed */
	HCA_MSG_STATE = 1u << 3, /* cfg.state changed: wake, flush */
	HCA_MSG_PURGE = 1u << 4, /* forget the QP, then acknowledge to the CEU */
};

/*
 * What a stage looks at before it walks its channels: messages waiting on channels from the same
 * worker, and whether any channel comes from another one (those are always looked at).
 */
struct hca_msg_inbox {
	uint32_t waiting;
	uint32_t remote;
};

struct hca_msg_channel {
	uint16_t *slot;		     /* ring of QP indexes, one slot per QP */
	uint8_t *pending;	     /* flags per QP index */
	struct hca_msg_inbox *inbox; /* of the consumer, when local */
	uint32_t mask;		     /* slots - 1 */
	bool local;		     /* same worker: no atomic needed */
	uint32_t *wake;		     /* otherwise: as in struct hca_edge */
	uint32_t wake_bit;
	uint32_t head __rte_cache_aligned; /* producer, free running */
	uint32_t tail __rte_cache_aligned; /* consumer */
};

/* What a channel takes for each QP. */
#define HCA_MSG_BYTES_PER_QP (sizeof(uint16_t) + sizeof(uint8_t))

/* Messages waiting; may lag. */
static inline uint32_t
hca_msg_count(const struct hca_msg_channel *c)
{
	uint32_t tail = __atomic_load_n(&c->tail, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&c->head, __ATOMIC_ACQUIRE) - tail;
}

static inline void
hca_msg_post(struct hca_msg_channel *c, uint32_t qpi, uint8_t flags)
{
	uint8_t old;

	if (c->local) {
		old = c->pending[qpi];
		c->pending[qpi] = old | flags;
	} else {
		old = __atomic_fetch_or(&c->pending[qpi], flags, __ATOMIC_ACQ_REL);
	}
	if (old != 0)
		return;
	c->slot[c->head & c->mask] = (uint16_t)qpi;
	__atomic_store_n(&c->head, c->head + 1, __ATOMIC_RELEASE);
	if (c->local)
		c->inbox->waiting++;
	else
		*c->wake |= c->wake_bit;
}

/* One message: returns the flags and the QP index, or 0 when there is none. */
static inline uint8_t
hca_msg_take(struct hca_msg_channel *c, uint32_t *qpi)
{
	if (c->tail == __atomic_load_n(&c->head, __ATOMIC_ACQUIRE))
		return 0;
	*qpi = c->slot[c->tail & c->mask];
	__atomic_store_n(&c->tail, c->tail + 1, __ATOMIC_RELEASE);
	if (c->local) {
		uint8_t f = c->pending[*qpi];

		c->pending[*qpi] = 0;
		c->inbox->waiting--;
		return f;
	}
	return __atomic_exchange_n(&c->pending[*qpi], 0, __ATOMIC_ACQ_REL);
}

/* See impl.h for hca_msg_send(h, FROM, TO, qpi, flags) and hca_msg_drain(). */

#endif
