/* SPDX-License-Identifier: BSD-3-Clause */

/* Pings that operators have asked for. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibping_impl.h"

#define SECOND UINT64_C(1000000000)
#define TRIES 3u
#define FORGOTTEN_AFTER (30 * SECOND) /* without a look */
#define SERIAL_MASK UINT64_C(0xffff)

/* MTUs of paths */
static const uint32_t sizes[] = {512, 1024, 2048, 4096};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void
session_free(struct ibping_session *s)
{
	free(s->rtt);
	free(s->sent_at);
	memset(s, 0, sizeof(*s));
}

static struct ibping_session *
session_find(struct ibping *p, uint32_t number)
{
	for (uint32_t i = 0; i < IBPING_SESSIONS; i++)
		if (p->session[i].stage != IBPING_FREE && p->session[i].number == number)
			return &p->session[i];
	return NULL;
}

/* A free one; else one whose operator has gone. */
static struct ibping_session *
session_place(struct ibping *p, uint64_t now)
{
	for (uint32_t i = 0; i < IBPING_SESSIONS; i++) {
		struct ibping_session *s = &p->session[i];

		if (s->stage != IBPING_FREE && now - s->looked > FORGOTTEN_AFTER)
			session_free(s);
		if (s->stage == IBPING_FREE)
			return s;
	}
	return NULL;
}

static void
session_enter(struct ibping_session *s, enum ibping_stage stage, uint64_t now)
{
	s->stage = stage;
	s->stage_serial = s->serial;
	s->tries = 0;
	s->answered = false;
	s->next = stage == IBPING_DONE ? IBPING_NEVER : now;
}

/* ---- operators ---- */

static bool
is_valid(const struct ibping_request *r)
{
	return r->count >= 1 && r->count <= IBPING_COUNT_MAX && r->size >= IBPING_BYTES_MIN &&
	       r->size <= IBPING_BYTES_MAX && r->size_max <= IBPING_BYTES_MAX &&
	       r->interval >= IBPING_INTERVAL_MIN && r->timeout != 0;
}

int
ibping_begin(struct ibping *p, const struct ibping_request *request, uint64_t now)
{
	struct ibping_session *s;

	if (!is_valid(request))
		return -EINVAL;
	s = session_place(p, now);
	if (s == NULL)
		return -EBUSY;
	s->rtt = calloc(request->count, sizeof(*s->rtt));
	s->sent_at = calloc(request->count, sizeof(*s->sent_at));
	if (s->rtt == NULL || s->sent_at == NULL) {
		session_free(s);
		return -ENOMEM;
	}
	s->request = *request;
	s->request.way.traffic_class = IBPING_TRAFFIC_CLASS;
	s->number = ++p->numbers & 0x7fffffffu;
	s->tid = p->cfg.random(p->cfg.arg) & ~SERIAL_MASK;
	s->looked = now;
	session_enter(s, request->size > IBCM_MAD_BYTES ? IBPING_HELLO : IBPING_COUNT, now);
	return (int)s->number;
}

int
ibping_end(struct ibping *p, uint32_t number)
{
	struct ibping_session *s = session_find(p, number);

	if (s == NULL)
		return -ENOENT;
	session_free(s);
	return 0;
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
session_times(const struct ibping_session *s, struct ibping_result *out)
{
	uint64_t sorted[IBPING_COUNT_MAX], sum = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < out->sent; i++)
		if (s->rtt[i] < IBPING_OPEN) {
			sorted[n++] = s->rtt[i];
			sum += s->rtt[i];
		}
	if (n == 0)
		return;
	qsort(sorted, n, sizeof(sorted[0]), compare);
	out->min = sorted[0];
	out->avg = sum / n;
	out->p50 = sorted[(n - 1) / 2];
	out->p99 = sorted[(n * 99 + 99) / 100 - 1]; /* as many are not above it */
	out->max = sorted[n - 1];
}

int
ibping_look(struct ibping *p, uint32_t number, uint32_t from, uint64_t *rtt, uint32_t max,
	    uint64_t now, struct ibping_result *out)
{
	struct ibping_session *s = session_find(p, number);

	if (s == NULL)
		return -ENOENT;
	s->looked = now;
	*out = s->result;
	out->done = s->stage == IBPING_DONE;
	session_times(s, out);
	for (uint32_t i = from; i < out->sent && out->num < max; i++) {
		uint64_t late = s->sent_at[i] + s->request.timeout;

		rtt[out->num] = s->rtt[i];
		if (s->rtt[i] == IBPING_OPEN && (now >= late || out->done))
			rtt[out->num] = IBPING_LOST;
		out->num++;
	}
	return 0;
}

/* ---- answers ---- */

static struct ibping_session *
session_of(struct ibping *p, const struct ibcm_way *from, uint64_t tid)
{
	for (uint32_t i = 0; i < IBPING_SESSIONS; i++) {
		struct ibping_session *s = &p->session[i];

		if (s->stage != IBPING_FREE && ((s->tid ^ tid) & ~SERIAL_MASK) == 0 &&
		    (tid & SERIAL_MASK) < s->serial &&
		    memcmp(s->request.way.peer, from->peer, sizeof(from->peer)) == 0)
			return s;
	}
	return NULL;
}

static bool
is_marked(uint8_t traffic_class)
{
	return (traffic_class & 3) == 3;
}

/* Ping i of those that were asked for has been answered. */
static void
session_returned(struct ibping_session *s, uint32_t i, uint8_t there, uint8_t back, uint64_t now)
{
	if (s->rtt[i] < IBPING_OPEN) {
		s->result.duplicates++;
		return;
	}
	s->rtt[i] = now - s->sent_at[i];
	s->result.received++;
	s->result.ce_there += is_marked(there);
	s->result.ce_back += is_marked(back);
}

static void
session_answered(struct ibping_session *s, uint32_t serial, uint8_t back,
		 const struct ibping_message *m, uint64_t now)
{
	s->result.peer = IBPING_SOFTHCA;
	if (m->len > s->result.passed)
		s->result.passed = m->len;
	if (serial >= s->first && serial - s->first < s->result.sent)
		session_returned(s, serial - s->first, m->traffic_class, back, now);
	if (serial < s->stage_serial)
		return;
	s->answered = true;
	/* the next ping need not wait */
	if (s->stage == IBPING_HELLO || s->stage == IBPING_SIZES)
		s->next = now;
	else if (s->result.sent == s->request.count && s->result.received == s->result.sent)
		s->next = now;
}

bool
ibping_session_input(struct ibping *p, const struct ibcm_way *from, uint8_t traffic_class,
		     const struct ibping_message *m, uint64_t now)
{
	struct ibping_session *s = session_of(p, from, m->tid);

	if (s == NULL)
		return false;
	ibping_count(p, IBPING_pings_returned);
	if (m->kind == IBPING_ANSWER) {
		session_answered(s, (uint32_t)(m->tid & SERIAL_MASK), traffic_class, m, now);
	} else if (m->kind == IBPING_OF_CM && s->stage == IBPING_ASK_CM) {
		s->result.peer = IBPING_CM;
		s->answered = true;
		s->next = now;
	}
	return true;
}

/* ---- sending ---- */

static size_t
session_question(struct ibping *p, struct ibping_session *s, uint32_t len, uint8_t *bytes)
{
	uint64_t tid = s->tid | s->serial++;

	ibping_count(p, IBPING_pings_sent);
	if (s->stage == IBPING_ASK_CM)
		return ibping_dreq(bytes, tid, p->cfg.random(p->cfg.arg));
	return ibping_question(bytes, tid, len);
}

/* One of a few tries, of which the last one has the whole time for its answer. */
static size_t
session_try(struct ibping *p, struct ibping_session *s, uint32_t len, uint8_t *bytes, uint64_t now)
{
	s->tries++;
	s->next = now + (s->tries == TRIES || s->request.interval > s->request.timeout
				 ? s->request.timeout
				 : s->request.interval);
	return session_question(p, s, len, bytes);
}

static void
session_next_size(struct ibping_session *s, uint64_t now)
{
	for (uint32_t i = 0; i < SIZES; i++)
		if (sizes[i] > s->size && sizes[i] <= s->request.size_max) {
			session_enter(s, IBPING_SIZES, now);
			s->size = sizes[i];
			return;
		}
	session_enter(s, IBPING_DONE, now);
}

/* All pings that were asked for have been sent, and have had their time. */
static void
session_counted(struct ibping_session *s, uint64_t now)
{
	if (s->result.received == 0 && s->request.size > IBCM_MAD_BYTES) {
		s->result.failed = s->request.size; /* a MAD has been answered */
		session_enter(s, IBPING_DONE, now);
	} else if (s->result.received == 0) {
		session_enter(s, IBPING_ASK_CM, now);
	} else {
		s->size = s->request.size;
		session_next_size(s, now);
	}
}

static size_t
session_count(struct ibping *p, struct ibping_session *s, uint8_t *bytes, uint64_t now)
{
	uint32_t i = s->result.sent;

	if (i == s->request.count) {
		session_counted(s, now);
		return 0;
	}
	if (i == 0)
		s->first = s->serial;
	s->rtt[i] = IBPING_OPEN;
	s->sent_at[i] = now;
	s->result.sent++;
	s->next = now + (i + 1 == s->request.count ? s->request.timeout : s->request.interval);
	return session_question(p, s, s->request.size, bytes);
}

/* The datagram that is due, or 0 and the next stage. */
static size_t
session_step(struct ibping *p, struct ibping_session *s, uint8_t *bytes, uint64_t now)
{
	bool over = s->answered || s->tries == TRIES;

	switch (s->stage) {
	case IBPING_HELLO:
		if (!over)
			return session_try(p, s, IBCM_MAD_BYTES, bytes, now);
		session_enter(s, s->answered ? IBPING_COUNT : IBPING_ASK_CM, now);
		return 0;
	case IBPING_COUNT:
		return session_count(p, s, bytes, now);
	case IBPING_SIZES:
		if (!over)
			return session_try(p, s, s->size, bytes, now);
		if (s->answered) {
			session_next_size(s, now);
			return 0;
		}
		s->result.failed = s->size;
		break;
	default:
		if (!over)
			return session_try(p, s, IBCM_MAD_BYTES, bytes, now);
	}
	session_enter(s, IBPING_DONE, now);
	return 0;
}

size_t
ibping_session_output(struct ibping *p, struct ibcm_way *way, uint8_t *bytes, uint64_t now)
{
	for (uint32_t i = 0; i < IBPING_SESSIONS; i++) {
		struct ibping_session *s = &p->session[i];

		while (s->stage != IBPING_FREE && s->stage != IBPING_DONE && now >= s->next) {
			size_t len = session_step(p, s, bytes, now);

			if (len == 0)
				continue;
			*way = s->request.way;
			return len;
		}
	}
	return 0;
}

uint64_t
ibping_deadline(const struct ibping *p)
{
	uint64_t due = IBPING_NEVER;

	if (p->replies != 0)
		return 0;
	for (uint32_t i = 0; i < IBPING_SESSIONS; i++) {
		const struct ibping_session *s = &p->session[i];

		if (s->stage != IBPING_FREE && s->stage != IBPING_DONE && s->next < due)
			due = s->next;
	}
	return due;
}
