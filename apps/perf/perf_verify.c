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

#include "perf.h"

#define ROUNDS_MIN 3u
#define BYTES_MAX (64ull << 20) /* checked per row, unless ROUNDS_MIN need more */
#define TIME_NS 500000000ull
#define GAP_BYTE 0xa5

struct verify {
	struct perf_session *s;
	uint64_t *counter; /* atomics: what the peer's counters must hold, by flow and slot */
	uint64_t *old;	   /* what each must have held when the batch came */
	uint64_t round;
	uint32_t recv_left; /* receives of the batch still to complete */
	uint32_t sends_left;
	uint32_t *recv_expected; /* per flow */
};

static uint64_t
mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint64_t
slot_seed(const struct verify *v, uint32_t flow, uint32_t slot)
{
	return mix(v->s->opt->seed + v->round * 0x9e3779b97f4a7c15ull +
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

/* Offset of the first wrong byte, or n. */
static uint64_t
compare(const uint8_t *p, uint64_t n, uint64_t seed)
{
	for (uint64_t off = 0; off < n; off += 8) {
		uint64_t w = word_at(seed, off / 8), len = n - off < 8 ? n - off : 8;

		if (memcmp(p + off, &w, len) == 0)
			continue;
		for (uint64_t k = 0; k < len; k++)
			if (p[off + k] != ((const uint8_t *)&w)[k])
				return off + k;
	}
	return n;
}

/* The side and kind data is taken from, and arrives at. */
static unsigned int
source_side(const struct verify *v)
{
	return v->s->opt->op == PERF_OP_READ;
}

static void
prepare_slot(struct verify *v, uint32_t f, uint32_t i)
{
	struct perf_session *s = v->s;
	unsigned int from = source_side(v);
	uint8_t *sink = perf_slot(s, !from, PERF_SINK, f, i);

	fill(perf_slot(s, from, PERF_SOURCE, f, i), s->size, slot_seed(v, f, i));
	/* The same byte everywhere, which the data does not end in by chance 8 times in a row. */
	memset(sink, GAP_BYTE, s->stride);
}

static void
prepare_atomic(struct verify *v, uint32_t f, uint32_t i)
{
	struct perf_session *s = v->s;
	struct softhca_send_wr *wr = &s->flows[f].ring.wr[i];
	uint64_t *counter = &v->counter[(size_t)f * s->slots + i], operand;

	memset(perf_slot(s, 0, PERF_SINK, f, i), GAP_BYTE, s->stride);
	operand = slot_seed(v, f, i);
	v->old[(size_t)f * s->slots + i] = *counter;
	if (s->opt->op == PERF_OP_FETCH_ADD) {
		wr->wr.atomic.compare_add = operand;
		*counter += operand;
		return;
	}
	/* Every fourth comparison fails. */
	wr->wr.atomic.compare_add = operand % 4 != 0 ? *counter : ~*counter;
	wr->wr.atomic.swap = operand;
	if (operand % 4 != 0)
		*counter = operand;
}

static int
wrong(const struct verify *v, uint32_t f, uint32_t slot, uint64_t off, const char *what)
{
	fprintf(stderr,
		"softhca-perf: %s: QP %u, slot %u, byte %llu, round %llu, size %llu, seed %llu\n",
		what, f, slot, (unsigned long long)off, (unsigned long long)v->round,
		(unsigned long long)v->s->size, (unsigned long long)v->s->opt->seed);
	return -EILSEQ;
}

static int
check_gap(const struct verify *v, const uint8_t *slot, uint32_t f, uint32_t i)
{
	for (uint64_t off = v->s->size; off < v->s->stride; off++)
		if (slot[off] != GAP_BYTE)
			return wrong(v, f, i, off, "a byte outside the message was changed");
	return 0;
}

static int
check_slot(const struct verify *v, uint32_t f, uint32_t i)
{
	const struct perf_session *s = v->s;
	unsigned int from = source_side(v);
	const uint8_t *sink = perf_slot(s, !from, PERF_SINK, f, i);
	uint64_t seed = slot_seed(v, f, i), off;

	off = compare(sink, s->size, seed);
	if (off != s->size)
		return wrong(v, f, i, off, "wrong data arrived");
	off = compare(perf_slot(s, from, PERF_SOURCE, f, i), s->size, seed);
	if (off != s->size)
		return wrong(v, f, i, off, "the source was changed");
	return check_gap(v, sink, f, i);
}

static int
check_atomic(const struct verify *v, uint32_t f, uint32_t i)
{
	const struct perf_session *s = v->s;
	const uint8_t *result = perf_slot(s, 0, PERF_SINK, f, i);
	size_t at = (size_t)f * s->slots + i;
	uint64_t got;

	memcpy(&got, result, sizeof(got));
	if (got != v->old[at])
		return wrong(v, f, i, 0, "an atomic returned a wrong value");
	memcpy(&got, perf_slot(s, 1, PERF_SINK, f, i), sizeof(got));
	if (got != v->counter[at])
		return wrong(v, f, i, 0, "an atomic left a wrong value");
	return check_gap(v, result, f, i);
}

typedef int (*slot_fn)(struct verify *v, uint32_t flow, uint32_t slot);

static int
prepare_one(struct verify *v, uint32_t f, uint32_t i)
{
	if (perf_is_atomic(v->s->opt->op))
		prepare_atomic(v, f, i);
	else
		prepare_slot(v, f, i);
	return 0;
}

static int
check_one(struct verify *v, uint32_t f, uint32_t i)
{
	return perf_is_atomic(v->s->opt->op) ? check_atomic(v, f, i) : check_slot(v, f, i);
}

static int
for_all(struct verify *v, slot_fn fn)
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

/* Every slot of every QP travels; lists of `group`, the last one may be shorter. */
static int
post_batch(struct verify *v)
{
	struct perf_session *s = v->s;

	for (uint32_t f = 0; f < s->num_flows; f++) {
		struct perf_ring *r = &s->flows[f].ring;

		s->flows[f].expected = 0;
		v->recv_expected[f] = 0;
		for (uint32_t i = 0; i < r->count; i += r->group) {
			int err = 0;

			if (s->opt->op == PERF_OP_SEND)
				err = perf_post_recv(s, &s->flows[f], 1, &r->recv[i]);
			if (err == 0)
				err = perf_post(&s->flows[f], 0, &r->wr[i]);
			if (err != 0)
				return err;
		}
	}
	v->sends_left = s->num_flows * s->slots;
	v->recv_left = s->opt->op == PERF_OP_SEND ? v->sends_left : 0;
	return 0;
}

/* Exactly once, in order per QP, of the length posted. */
static int
take(struct verify *v, struct softhca_cq *cq, uint32_t *left, bool is_recv)
{
	struct softhca_wc wc[PERF_POLL_MAX];
	int n = softhca_poll_cq(cq, PERF_POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		uint32_t f = (uint32_t)(wc[i].wr_id >> 32), at = (uint32_t)wc[i].wr_id, *expected;

		if (wc[i].status != SOFTHCA_WC_SUCCESS)
			return perf_bad_completion(v->s, &wc[i]);
		if (f >= v->s->num_flows || *left == 0)
			return wrong(v, f, at, 0, "a completion nobody asked for");
		expected = is_recv ? &v->recv_expected[f] : &v->s->flows[f].expected;
		if (at != *expected)
			return wrong(v, f, at, 0, "a completion out of order");
		if (is_recv && wc[i].byte_len != v->s->size + perf_recv_extra(v->s))
			return wrong(v, f, at, wc[i].byte_len, "a receive of a wrong length");
		(*expected)++;
		(*left)--;
	}
	return n;
}

static int
run_batch(struct verify *v)
{
	uint64_t since = perf_now_ns();
	int err = post_batch(v);

	if (err != 0)
		return err;
	while (v->sends_left != 0 || v->recv_left != 0) {
		int n = take(v, v->s->send_cq[0], &v->sends_left, false);
		int m = v->s->opt->op != PERF_OP_SEND
				? 0
				: take(v, v->s->recv_cq[1], &v->recv_left, true);

		if (n < 0 || m < 0)
			return n < 0 ? n : m;
		if (v->s->opt->events && n + m == 0 && perf_wait(v->s) != 0)
			return -EIO;
		if (n + m != 0)
			since = perf_now_ns();
		else if (perf_now_ns() - since > PERF_STUCK_NS)
			return perf_stuck(v->s);
	}
	/* None too many. */
	for (uint32_t i = 0; i < 64; i++)
		if (take(v, v->s->send_cq[0], &v->sends_left, false) < 0)
			return -EILSEQ;
	return 0;
}

static int
run_rounds(struct verify *v, struct perf_row *row)
{
	struct perf_session *s = v->s;
	uint64_t batch = (uint64_t)s->num_flows * s->slots, begin = perf_now_ns();
	int err = 0;

	for (v->round = 0; err == 0 && !perf_interrupted(); v->round++) {
		if (v->round >= ROUNDS_MIN &&
		    (v->round * batch * s->stride > BYTES_MAX || perf_now_ns() - begin > TIME_NS))
			break;
		for_all(v, prepare_one);
		err = run_batch(v);
		if (err == 0)
			err = for_all(v, check_one);
		if (err == 0)
			row->verified_msgs += batch;
		perf_progress(s, "verify", (double)(perf_now_ns() - begin) / TIME_NS);
	}
	perf_progress(s, "verify", -1);
	return err;
}

int
perf_verify_run(struct perf_session *s, struct perf_row *row)
{
	struct verify v = {.s = s};
	size_t slots = (size_t)s->num_flows * s->slots;
	uint32_t group = s->opt->post_list < s->slots ? s->opt->post_list : s->slots;
	int err = 0;

	v.counter = calloc(slots, sizeof(uint64_t));
	v.old = calloc(slots, sizeof(uint64_t));
	v.recv_expected = calloc(s->num_flows, sizeof(uint32_t));
	if (v.counter == NULL || v.old == NULL || v.recv_expected == NULL)
		err = -ENOMEM;
	for (uint32_t f = 0; f < s->num_flows && err == 0; f++)
		err = perf_ring_build(s, f, 0, s->slots, group, 1, &s->flows[f].ring);
	if (err == 0)
		err = run_rounds(&v, row);
	row->verified = err == 0 ? PERF_VERIFIED : PERF_WRONG;
	free(v.counter);
	free(v.old);
	free(v.recv_expected);
	return err;
}
