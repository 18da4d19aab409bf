/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Checks data and completions. Rounds of one batch: every source slot is filled with bytes that
 * depend on seed, round, QP and slot; every slot travels once; completions have to come exactly
 * once and in order per QP; then every byte of every sink slot and of the gaps between slots is
 * compared. Atomics are compared with a model of the counters.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf_verify.h"

#define ROUNDS_MIN 3u
/* A row is checked enough with --iters messages, or one of these, and ROUNDS_MIN. */
#define BYTES_MAX (64ull << 20)
#define TIME_NS 500000000ull
#define GAP_BYTE 0xa5
#define DIRECTION 0xd1b54a32d192ed03ull /* tells the data of both directions apart */

static uint64_t
mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint64_t
slot_seed(const struct perf_verify *v, uint32_t flow, uint32_t slot)
{
	return mix(v->s->opt->seed + v->direction * DIRECTION + v->round * 0x9e3779b97f4a7c15ull +
		   ((uint64_t)flow << 32 | slot));
}

static uint64_t
word_at(uint64_t seed, uint64_t i)
{
	return mix(seed + i * 0x9e3779b97f4a7c15ull);
}

static void
fill(uint8_t *p, uint64_t n, uint64_t seed)
{
	uint64_t i = 0, w;

	for (; n >= 8; n -= 8, p += 8) {
		w = word_at(seed, i++);
		memcpy(p, &w, 8);
	}
	w = word_at(seed, i);
	memcpy(p, &w, n);
}

static unsigned int
first_difference(const uint8_t *p, uint64_t w, unsigned int n)
{
	unsigned int k = 0;

	while (k < n && p[k] == ((const uint8_t *)&w)[k])
		k++;
	return k;
}

/* Offset of the first wrong byte, or n. */
static uint64_t
compare(const uint8_t *p, uint64_t n, uint64_t seed)
{
	uint64_t off = 0, found;

	for (; n - off >= 8; off += 8) {
		uint64_t w = word_at(seed, off / 8);

		memcpy(&found, p + off, 8);
		if (found != w)
			return off + first_difference(p + off, w, 8);
	}
	return off + first_difference(p + off, word_at(seed, off / 8), (unsigned int)(n - off));
}

/* The side and kind data is taken from, and arrives at. */
static unsigned int
source_side(const struct perf_verify *v)
{
	return v->s->opt->op == PERF_OP_READ ? !v->from : v->from;
}

static void
prepare_slot(struct perf_verify *v, uint32_t f, uint32_t i)
{
	struct perf_session *s = v->s;
	unsigned int from = source_side(v);

	if (s->local[from])
		fill(perf_slot(s, from, PERF_SOURCE, f, i), s->size, slot_seed(v, f, i));
	/* The same byte everywhere, which the data does not end in by chance 8 times in a row. */
	if (s->local[!from])
		memset(perf_slot(s, !from, PERF_SINK, f, i), GAP_BYTE, s->stride);
}

/* Both ends compute the final values of the counters. */
static void
prepare_atomic(struct perf_verify *v, uint32_t f, uint32_t i)
{
	struct perf_session *s = v->s;
	struct softhca_send_wr *wr = &perf_ring_of(&v->s->flows[f], v->from)->wr[i];
	uint64_t *counter = &v->counter[(size_t)f * s->slots + i];
	uint64_t operand = slot_seed(v, f, i);
	bool add = s->opt->op == PERF_OP_FETCH_ADD;
	/* Every fourth comparison fails. */
	uint64_t compare_with = operand % 4 != 0 ? *counter : ~*counter;

	v->old[(size_t)f * s->slots + i] = *counter;
	if (s->local[v->from]) {
		memset(perf_slot(s, v->from, PERF_SINK, f, i), GAP_BYTE, s->stride);
		wr->wr.atomic.compare_add = add ? operand : compare_with;
		wr->wr.atomic.swap = operand;
	}
	if (add)
		*counter += operand;
	else if (operand % 4 != 0 || s->opt->op == PERF_OP_SWAP)
		*counter = operand;
}

static int
wrong(const struct perf_verify *v, uint32_t f, uint32_t slot, uint64_t off, const char *what)
{
	fprintf(stderr,
		"softhca-perf: %s: QP %u, slot %u, byte %llu, round %llu, size %llu, seed %llu\n",
		what, f, slot, (unsigned long long)off, (unsigned long long)v->round,
		(unsigned long long)v->s->size, (unsigned long long)v->s->opt->seed);
	return -EILSEQ;
}

static int
check_gap(const struct perf_verify *v, const uint8_t *slot, uint32_t f, uint32_t i)
{
	bool notify = v->s->opt->op == PERF_OP_NOTIFY;
	uint64_t end = v->s->stride - (notify ? PERF_NOTIFY_SIZE : 0), told;

	memcpy(&told, slot + v->s->stride - sizeof(told), sizeof(told));
	if (notify && told != PERF_NOTIFY_VALUE((uint64_t)f << 32 | i))
		return wrong(v, f, i, end, "a notify left a wrong value");
	for (uint64_t off = v->s->size; off < end; off++)
		if (slot[off] != GAP_BYTE)
			return wrong(v, f, i, off, "a byte outside the message was changed");
	return 0;
}

static int
check_source(const struct perf_verify *v, uint32_t f, uint32_t i)
{
	const struct perf_session *s = v->s;
	uint64_t off;

	if (!s->local[source_side(v)])
		return 0;
	off = compare(perf_slot(s, source_side(v), PERF_SOURCE, f, i), s->size, slot_seed(v, f, i));
	return off == s->size ? 0 : wrong(v, f, i, off, "the source was changed");
}

/* A WRITE of which packets were lost: each byte is of this message or untouched. */
static int
check_partial(struct perf_verify *v, const uint8_t *sink, uint32_t f, uint32_t i)
{
	uint64_t seed = slot_seed(v, f, i);

	for (uint64_t off = 0; off < v->s->size; off++) {
		uint64_t w = word_at(seed, off / 8);

		if (sink[off] != GAP_BYTE && sink[off] != ((const uint8_t *)&w)[off % 8])
			return wrong(v, f, i, off, "wrong data arrived");
	}
	v->lost++;
	return check_gap(v, sink, f, i);
}

static int
check_slot(struct perf_verify *v, uint32_t f, uint32_t i)
{
	const struct perf_session *s = v->s;
	const uint8_t *sink = perf_slot(s, !source_side(v), PERF_SINK, f, i);
	uint64_t off;

	if (!s->local[!source_side(v)])
		return check_source(v, f, i);
	off = compare(sink, s->size, slot_seed(v, f, i));
	if (off != s->size && v->lossy)
		return check_partial(v, sink, f, i);
	if (off != s->size)
		return wrong(v, f, i, off, "wrong data arrived");
	if (check_source(v, f, i) != 0)
		return -EILSEQ;
	return check_gap(v, sink, f, i);
}

/* Messages may be missing: each slot holds a later one than the slot before. */
static int
check_received(struct perf_verify *v, uint32_t f)
{
	const struct perf_session *s = v->s;
	uint32_t message = 0;

	for (uint32_t k = 0; k < v->received[f]; k++) {
		uint32_t slot = (v->recv_at[f] + k) % s->slots;
		const uint8_t *sink = perf_slot(s, !v->from, PERF_SINK, f, slot);

		while (message < s->slots &&
		       compare(sink, s->size, slot_seed(v, f, message)) != s->size)
			message++;
		if (message++ == s->slots)
			return wrong(v, f, slot, 0, "none of the messages sent is what arrived");
		if (check_gap(v, sink, f, slot) != 0)
			return -EILSEQ;
	}
	v->lost += s->slots - v->received[f];
	return 0;
}

/* UB: Sends of a Jetty take several channels, so a message may be in any of the receives. */
static bool
is_unordered(const struct perf_verify *v)
{
	return v->s->ub != NULL && v->s->opt->op == PERF_OP_SEND;
}

/* Each receive has one of the messages, each message is there once. */
static int
check_unordered(struct perf_verify *v, uint32_t f, uint32_t i)
{
	const struct perf_session *s = v->s;
	const uint8_t *sink = perf_slot(s, !v->from, PERF_SINK, f, i);
	uint8_t *found = &v->taken[(size_t)f * s->slots];

	if (i == 0)
		memset(found, 0, s->slots);
	for (uint32_t m = 0; m < s->slots; m++) {
		uint32_t message = (i + m) % s->slots;

		if (found[message] != 0 ||
		    compare(sink, s->size, slot_seed(v, f, message)) != s->size)
			continue;
		found[message] = 1;
		return check_gap(v, sink, f, i);
	}
	return wrong(v, f, i, 0, "none of the messages sent is what arrived");
}

static int
check_atomic(struct perf_verify *v, uint32_t f, uint32_t i)
{
	const struct perf_session *s = v->s;
	const uint8_t *result = perf_slot(s, v->from, PERF_SINK, f, i);
	size_t at = (size_t)f * s->slots + i;
	uint64_t got;

	if (s->local[!v->from]) {
		memcpy(&got, perf_slot(s, !v->from, PERF_SINK, f, i), sizeof(got));
		if (got != v->counter[at])
			return wrong(v, f, i, 0, "an atomic left a wrong value");
	}
	if (!s->local[v->from])
		return 0;
	memcpy(&got, result, sizeof(got));
	if (got != v->old[at])
		return wrong(v, f, i, 0, "an atomic returned a wrong value");
	return check_gap(v, result, f, i);
}

typedef int (*slot_fn)(struct perf_verify *v, uint32_t flow, uint32_t slot);

static int
prepare_one(struct perf_verify *v, uint32_t f, uint32_t i)
{
	if (perf_is_atomic(v->s->opt->op))
		prepare_atomic(v, f, i);
	else
		prepare_slot(v, f, i);
	return 0;
}

static int
check_one(struct perf_verify *v, uint32_t f, uint32_t i)
{
	if (is_unordered(v) && v->s->local[!v->from])
		return check_unordered(v, f, i);
	return perf_is_atomic(v->s->opt->op) ? check_atomic(v, f, i) : check_slot(v, f, i);
}

static int
for_all(struct perf_verify *v, slot_fn fn)
{
	for (uint32_t f = 0; f < v->s->num_flows; f++) {
		for (uint32_t i = 0; i < v->s->slots; i++) {
			int err = fn(v, f, i);

			if (err != 0)
				return err;
		}
	}
	return 0;
}

/* Receives of the slots that were used up; lists of `group`, the last one may be shorter. */
static int
post_receives(struct perf_verify *v, uint32_t f)
{
	struct perf_ring *r = perf_ring_of(&v->s->flows[f], v->from);
	int err = 0;

	v->recv_at[f] = (v->recv_at[f] + v->received[f]) % r->count;
	for (uint32_t n = 0; n < v->unposted[f] && err == 0; n += r->group)
		err = perf_post_recv(
			v->s, &v->s->flows[f], !v->from,
			&r->recv[(v->recv_at[f] + r->count - v->unposted[f] + n) % r->count]);
	v->unposted[f] = 0;
	return err;
}

int
perf_verify_prepare(struct perf_verify *v)
{
	struct perf_session *s = v->s;
	uint32_t all = s->num_flows * s->slots;
	bool receives = s->opt->op == PERF_OP_SEND && s->local[!v->from];
	int err = 0;

	for_all(v, prepare_one);
	memset(v->taken, 0, (size_t)s->num_flows * s->slots);
	v->sends_left = s->local[v->from] ? all : 0;
	v->recv_left = receives ? all : 0;
	for (uint32_t f = 0; f < s->num_flows && err == 0; f++) {
		if (receives)
			err = post_receives(v, f);
		v->received[f] = 0;
		s->flows[f].expected = 0;
	}
	return err;
}

/* Every slot of every QP travels. */
int
perf_verify_post(struct perf_verify *v)
{
	int err = 0;

	for (uint32_t f = 0; f < v->s->num_flows && v->sends_left != 0; f++) {
		struct perf_ring *r = perf_ring_of(&v->s->flows[f], v->from);

		for (uint32_t i = 0; i < r->count && err == 0; i += r->group)
			err = perf_post(v->s, &v->s->flows[f], v->from, &r->wr[i]);
	}
	return err;
}

/* Exactly once, in order per QP, of the length posted. */
static int
take_one(struct perf_verify *v, const struct softhca_wc *wc, bool is_recv)
{
	uint32_t f = (uint32_t)(wc->wr_id >> 32), at = (uint32_t)wc->wr_id;
	uint32_t *left = is_recv ? &v->recv_left : &v->sends_left, expected;

	if (wc->status != SOFTHCA_WC_SUCCESS)
		return perf_bad_completion(v->s, wc);
	if (f >= v->s->num_flows || *left == 0)
		return wrong(v, f, at, 0, "an unexpected completion");
	if (is_recv && is_unordered(v)) {
		uint8_t *taken = &v->taken[(size_t)f * v->s->slots];

		if (at >= v->s->slots || taken[at] != 0)
			return wrong(v, f, at, 0, "a receive completed twice");
		taken[at] = 1;
	}
	expected =
		is_recv ? (v->recv_at[f] + v->received[f]) % v->s->slots : v->s->flows[f].expected;
	if (at != expected && !(is_recv && is_unordered(v)))
		return wrong(v, f, at, 0, "a completion out of order");
	if (is_recv && wc->byte_len != v->s->size + perf_recv_extra(v->s))
		return wrong(v, f, at, wc->byte_len, "a receive of a wrong length");
	if (is_recv) {
		v->received[f]++;
		v->unposted[f]++;
	} else {
		v->s->flows[f].expected++;
	}
	(*left)--;
	return 0;
}

static int
verify_take(struct perf_verify *v, unsigned int side, enum perf_queue queue)
{
	struct softhca_wc wc[PERF_POLL_MAX];
	int n = perf_poll(v->s, side, queue, PERF_POLL_MAX, wc), err = 0;

	for (int i = 0; i < n && err == 0; i++)
		err = take_one(v, &wc[i], queue == PERF_RECEIVES);
	return err != 0 ? err : n;
}

int
perf_verify_take(struct perf_verify *v)
{
	const struct perf_session *s = v->s;
	int n = s->local[v->from] ? verify_take(v, v->from, PERF_SENDS) : 0, m = 0;

	if (n >= 0 && s->opt->op == PERF_OP_SEND && s->local[!v->from])
		m = verify_take(v, !v->from, PERF_RECEIVES);
	return n < 0 ? n : m < 0 ? m : n + m;
}

int
perf_verify_check(struct perf_verify *v)
{
	const struct perf_session *s = v->s;
	int err = 0;

	if (!v->lossy || s->opt->op != PERF_OP_SEND || !s->local[!v->from])
		return for_all(v, check_one);
	for (uint32_t f = 0; f < s->num_flows && err == 0; f++)
		err = check_received(v, f);
	return err;
}

bool
perf_verify_complete(const struct perf_verify *v)
{
	const struct perf_session *s = v->s;

	if (s->opt->op == PERF_OP_SEND)
		return v->recv_left == 0;
	for (uint32_t f = 0; f < s->num_flows; f++)
		for (uint32_t i = 0; i < s->slots; i++)
			if (compare(perf_slot(s, !v->from, PERF_SINK, f, i), s->size,
				    slot_seed(v, f, i)) != s->size)
				return false;
	return true;
}

bool
perf_verify_enough(const struct perf_verify *v, uint64_t begin)
{
	const struct perf_session *s = v->s;
	uint64_t checked = v->round * s->num_flows * s->slots;

	perf_progress(s, "verify", (double)(perf_now_ns() - begin) / TIME_NS);
	return v->round >= ROUNDS_MIN &&
	       ((s->opt->iters != 0 && checked >= s->opt->iters) ||
		checked * s->stride > BYTES_MAX || perf_now_ns() - begin > TIME_NS);
}

int
perf_verify_open(struct perf_verify *v, struct perf_session *s, unsigned int from, bool lossy)
{
	size_t slots = (size_t)s->num_flows * s->slots;
	uint32_t group = s->opt->post_list < s->slots ? s->opt->post_list : s->slots;
	int err = 0;

	*v = (struct perf_verify){.s = s, .from = from, .lossy = lossy};
	v->counter = calloc(slots, sizeof(uint64_t));
	v->old = calloc(slots, sizeof(uint64_t));
	v->taken = calloc(slots, sizeof(uint8_t));
	v->recv_at = calloc(s->num_flows, sizeof(uint32_t));
	v->received = calloc(s->num_flows, sizeof(uint32_t));
	v->unposted = calloc(s->num_flows, sizeof(uint32_t));
	if (v->counter == NULL || v->old == NULL || v->recv_at == NULL || v->received == NULL ||
	    v->unposted == NULL || v->taken == NULL)
		err = -ENOMEM;
	for (uint32_t f = 0; f < s->num_flows && err == 0; f++) {
		v->unposted[f] = s->slots;
		err = perf_ring_build(s, f, from, s->slots, lossy ? 1 : group, 1,
				      perf_ring_of(&v->s->flows[f], v->from));
	}
	return err;
}

void
perf_verify_close(struct perf_verify *v)
{
	free(v->counter);
	free(v->old);
	free(v->taken);
	free(v->recv_at);
	free(v->received);
	free(v->unposted);
	*v = (struct perf_verify){0};
}
