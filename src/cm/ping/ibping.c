/* SPDX-License-Identifier: BSD-3-Clause */

/* Life, the answers to peers, and their rates. */

#include <stdlib.h>
#include <string.h>

#include "abi_addr.h"
#include "ibping_impl.h"

#define SECOND UINT64_C(1000000000)
/* answers to one address that may leave at once, counted in IBPING_ANSWERS of any second */
#define BURST 20u
#define EVERY (SECOND / (IBPING_ANSWERS - BURST))
#define ALL_BURST 100u
#define ALL_EVERY (SECOND / 2000)

struct ibping *
ibping_create(const struct ibping_config *config)
{
	struct ibping *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->cfg = *config;
	p->hash_key = config->random(config->arg);
	return p;
}

void
ibping_destroy(struct ibping *p)
{
	if (p == NULL)
		return;
	for (uint32_t i = 0; i < IBPING_SESSIONS; i++) {
		free(p->session[i].rtt);
		free(p->session[i].sent_at);
	}
	free(p);
}

uint64_t
ibping_counter(const struct ibping *p, enum ibping_counter which)
{
	return __atomic_load_n(&p->counter[which], __ATOMIC_RELAXED);
}

/* ---- rates ---- */

static uint64_t *
bucket_of(struct ibping *p, const uint8_t peer[16])
{
	return &p->address[hca_gid_hash(peer, p->hash_key) % IBPING_BUCKETS];
}

static bool
bucket_may(uint64_t bucket, uint64_t every, uint32_t burst, uint64_t now)
{
	return bucket + every <= now + burst * every;
}

static void
bucket_take(uint64_t *bucket, uint64_t every, uint64_t now)
{
	*bucket = (*bucket > now ? *bucket : now) + every;
}

/* ---- answers ---- */

static void
answer(struct ibping *p, const struct ibcm_way *from, uint8_t traffic_class,
       const struct ibping_message *m, uint64_t now)
{
	uint64_t *bucket = bucket_of(p, from->peer);
	struct ibping_reply *r;

	ibping_count(p, IBPING_pings_received);
	if (!p->cfg.answers) {
		ibping_count(p, IBPING_pings_off);
		return;
	}
	if (p->replies == IBPING_WAITING || !bucket_may(*bucket, EVERY, BURST, now) ||
	    !bucket_may(p->all, ALL_EVERY, ALL_BURST, now)) {
		ibping_count(p, IBPING_pings_limited);
		return;
	}
	bucket_take(bucket, EVERY, now);
	bucket_take(&p->all, ALL_EVERY, now);
	r = &p->reply[(p->reply_first + p->replies++) % IBPING_WAITING];
	r->way = *from;
	r->way.traffic_class = IBPING_TRAFFIC_CLASS;
	r->question = *m;
	r->question.traffic_class = traffic_class;
	ibping_count(p, IBPING_pings_answered);
}

bool
ibping_input(struct ibping *p, const struct ibcm_way *from, uint8_t traffic_class,
	     const uint8_t *bytes, size_t len, uint64_t now)
{
	struct ibping_message m;

	ibping_parse(bytes, len, &m);
	switch (m.kind) {
	case IBPING_OTHER:
		return false;
	case IBPING_BAD:
		ibping_count(p, IBPING_pings_bad);
		return true;
	case IBPING_QUESTION:
		answer(p, from, traffic_class, &m, now);
		return true;
	default:
		return ibping_session_input(p, from, traffic_class, &m, now) ||
		       m.kind != IBPING_OF_CM;
	}
}

size_t
ibping_output(struct ibping *p, struct ibcm_way *way, uint8_t bytes[IBPING_BYTES_MAX], uint64_t now)
{
	const struct ibping_reply *r = &p->reply[p->reply_first];

	if (p->replies == 0)
		return ibping_session_output(p, way, bytes, now);
	p->reply_first = (p->reply_first + 1) % IBPING_WAITING;
	p->replies--;
	*way = r->way;
	return ibping_answer(bytes, &r->question);
}
