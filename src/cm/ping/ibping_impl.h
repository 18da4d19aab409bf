/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_PING_IBPING_IMPL_H
#define CM_PING_IBPING_IMPL_H

/* Shared by the files of pings. */

#include "ibping.h"

#define IBPING_SHORT 64u /* bytes of the answer to a padded ping */

/* Contents of a datagram, by ibping_message.c. */
enum ibping_kind {
	IBPING_OTHER, /* none of pings */
	IBPING_BAD,
	IBPING_QUESTION,
	IBPING_ANSWER,
	IBPING_REFUSAL, /* a management agent without the class */
	IBPING_OF_CM,	/* a message of connection management that answers one */
};

struct ibping_message {
	enum ibping_kind kind;
	uint64_t tid;
	uint8_t traffic_class; /* an answer: of its question */
	uint32_t len;	       /* a question: its own; an answer: that of its question */
};

void ibping_parse(const uint8_t *bytes, size_t len, struct ibping_message *m);
/* Write a question of len bytes, or the answer to one (its traffic class); returns its length. */
size_t ibping_question(uint8_t *bytes, uint64_t tid, uint32_t len);
size_t ibping_answer(uint8_t *bytes, const struct ibping_message *question);
/* A DREQ for a connection that does not exist; ids: two unused numbers of 32 bits. */
size_t ibping_dreq(uint8_t *bytes, uint64_t tid, uint64_t ids);

/* ---- answers that are to be sent ---- */

#define IBPING_WAITING 64u
struct ibping_reply {
	struct ibcm_way way;
	struct ibping_message question;
};

#define IBPING_BUCKETS 256u

/* ---- sessions ---- */

enum ibping_stage {
	IBPING_FREE,
	IBPING_HELLO, /* MADs, until one is answered, before padded ones */
	IBPING_COUNT, /* the pings that were asked for */
	IBPING_SIZES, /* padded ones of growing size */
	IBPING_ASK_CM,
	IBPING_DONE,
};

struct ibping_session {
	struct ibping_request request;
	struct ibping_result result;
	enum ibping_stage stage;
	uint32_t number;
	uint64_t tid;	 /* of the first one; the lower 16 bits count */
	uint64_t next;	 /* when the next one is to be sent, or the stage is over */
	uint64_t looked; /* time of the last look */
	uint32_t tries;	 /* of HELLO, ASK_CM, and a size */
	uint32_t size;	 /* that is tried */
	uint32_t serial; /* datagrams sent */
	uint64_t *rtt;	 /* of COUNT */
	uint64_t *sent_at;
	uint32_t first;	       /* serial of the first ping of COUNT */
	uint32_t stage_serial; /* of the first datagram of the stage */
	bool answered;	       /* the size, HELLO, or ASK_CM */
};

struct ibping {
	struct ibping_config cfg;
	uint64_t hash_key;
	uint64_t all;			  /* when the bucket of all is empty */
	uint64_t address[IBPING_BUCKETS]; /* of each */
	struct ibping_reply reply[IBPING_WAITING];
	uint32_t reply_first, replies;
	struct ibping_session session[IBPING_SESSIONS];
	uint32_t numbers;
	uint64_t counter[IBPING_COUNTERS];
};

static inline void
ibping_count(struct ibping *p, enum ibping_counter which)
{
	__atomic_fetch_add(&p->counter[which], 1, __ATOMIC_RELAXED);
}

/* ibping_session.c */
/* An answer (or refusal) that may belong to a session. */
bool ibping_session_input(struct ibping *p, const struct ibcm_way *from, uint8_t traffic_class,
			  const struct ibping_message *m, uint64_t now);
size_t ibping_session_output(struct ibping *p, struct ibcm_way *way, uint8_t *bytes, uint64_t now);

#endif
