/* SPDX-License-Identifier: BSD-3-Clause */

/* Pings between two ends on a simulated network, and datagrams that are none. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_bits.h"
#include "ibping_impl.h"

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define DELAY (MS / 10) /* one way */
#define FLIGHT 4096u

static const uint8_t x_gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t y_gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};

struct flying {
	uint64_t at;
	struct ibcm_way from; /* as its receiver sees it */
	uint8_t traffic_class, bytes[IBPING_BYTES_MAX];
	size_t len;
	bool to_y;
};

static struct ibping *x, *y;
static struct flying *flight;
static unsigned int flying, longest, dreqs;
static uint64_t now, seed;
static bool y_speaks_cm, y_loses_all;
static size_t mtu;
static unsigned int lose_every, lost_count;
static bool mark_there, mark_back, twice;

static uint64_t
random_of(void *arg)
{
	(void)arg;
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return seed ^ (seed >> 32);
}

static struct ibping *
make(bool answers)
{
	const struct ibping_config c = {.answers = answers, .random = random_of};
	struct ibping *p = ibping_create(&c);

	assert_non_null(p);
	return p;
}

static int
setup(void **state)
{
	(void)state;
	now = 50 * SECOND;
	seed = 7;
	x = make(true);
	y = make(true);
	flight = calloc(FLIGHT, sizeof(*flight));
	assert_non_null(flight);
	flying = longest = dreqs = 0;
	y_speaks_cm = true;
	y_loses_all = mark_there = mark_back = twice = false;
	mtu = IBPING_BYTES_MAX;
	lose_every = lost_count = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	ibping_destroy(x);
	ibping_destroy(y);
	free(flight);
	return 0;
}

static struct ibcm_way
way(const uint8_t own[16], const uint8_t peer[16])
{
	struct ibcm_way w = {.gid_index = 1, .dmac = {2}, .hop_limit = 64};

	memcpy(w.own, own, 16);
	memcpy(w.peer, peer, 16);
	return w;
}

static void
fly(bool to_y, const uint8_t *bytes, size_t len, uint8_t traffic_class)
{
	struct flying *f = &flight[flying];

	if (len > mtu || (lose_every != 0 && ++lost_count % lose_every == 0) ||
	    (to_y && y_loses_all))
		return;
	assert_true(flying < FLIGHT);
	*f = (struct flying){.at = now + DELAY,
			     .from = to_y ? way(y_gid, x_gid) : way(x_gid, y_gid),
			     .traffic_class = traffic_class,
			     .len = len,
			     .to_y = to_y};
	if (to_y ? mark_there : mark_back)
		f->traffic_class |= 3;
	memcpy(f->bytes, bytes, len);
	flying++;
}

/* The connection manager of y, as Linux does it: a DREQ of nothing is answered by a DREP. */
static void
cm_of_y(const uint8_t *bytes)
{
	uint8_t drep[IBCM_MAD_BYTES] = {1, 7, 2, 3};

	assert_int_equal(bytes[1], 7);
	assert_int_equal(bytes[2], 2);
	assert_int_equal(bytes[3], 3);
	assert_int_equal(hca_get_be16(bytes + 16), 0x15);
	dreqs++;
	if (!y_speaks_cm)
		return;
	memcpy(drep + 8, bytes + 8, 8);
	drep[17] = 0x16;
	memcpy(drep + 24, bytes + 28, 4);
	memcpy(drep + 28, bytes + 24, 4);
	fly(false, drep, sizeof(drep), 0);
}

static void
land(void)
{
	for (unsigned int i = 0; i < flying;) {
		struct flying *f = &flight[i];
		static struct flying one;

		if (f->at > now) {
			i++;
			continue;
		}
		one = *f;
		*f = flight[--flying];
		for (int n = 0; n < (twice ? 2 : 1); n++)
			if (!ibping_input(one.to_y ? y : x, &one.from, one.traffic_class, one.bytes,
					  one.len, now) &&
			    one.to_y)
				cm_of_y(one.bytes);
	}
}

static void
send_all(struct ibping *p, bool to_y)
{
	uint8_t bytes[IBPING_BYTES_MAX];
	struct ibcm_way w;
	size_t len;

	while ((len = ibping_output(p, &w, bytes, now)) != 0) {
		assert_memory_equal(w.peer, to_y ? y_gid : x_gid, 16);
		assert_int_equal(w.traffic_class, IBPING_TRAFFIC_CLASS);
		longest = len > longest ? (unsigned int)len : longest;
		fly(to_y, bytes, len, w.traffic_class);
	}
}

static void
run(uint64_t ns)
{
	for (uint64_t end = now + ns; now < end; now += DELAY) {
		land();
		send_all(x, true);
		send_all(y, false);
		assert_true(ibping_deadline(x) > now);
	}
}

static struct ibping_request
request(uint32_t count, uint32_t size)
{
	return (struct ibping_request){.way = way(x_gid, y_gid),
				       .count = count,
				       .size = size,
				       .interval = 100 * MS,
				       .timeout = SECOND};
}

static struct ibping_result
result_of(int number)
{
	uint64_t rtt[IBPING_COUNT_MAX];
	struct ibping_result r;

	assert_int_equal(ibping_look(x, (uint32_t)number, 0, rtt, IBPING_COUNT_MAX, now, &r), 0);
	return r;
}

static struct ibping_result
ping(const struct ibping_request *q)
{
	struct ibping_result r;
	int number = ibping_begin(x, q, now);

	assert_true(number > 0);
	for (unsigned int i = 0; i < 1000; i++) {
		run(100 * MS);
		r = result_of(number);
		if (r.done)
			break;
	}
	assert_true(r.done);
	assert_int_equal(ibping_deadline(x), IBPING_NEVER);
	assert_int_equal(ibping_end(x, (uint32_t)number), 0);
	assert_int_equal(ibping_end(x, (uint32_t)number), -ENOENT);
	return r;
}

/* ---- between two ends ---- */

static void
round_trips(void **state)
{
	struct ibping_request q = request(10, 256);
	struct ibping_result r = ping(&q);

	(void)state;
	assert_int_equal(r.peer, IBPING_SOFTHCA);
	assert_int_equal(r.sent, 10);
	assert_int_equal(r.received, 10);
	assert_int_equal(r.duplicates + r.ce_there + r.ce_back, 0);
	assert_int_equal(r.min, 2 * DELAY);
	assert_int_equal(r.avg, 2 * DELAY);
	assert_int_equal(r.p50, 2 * DELAY);
	assert_int_equal(r.p99, 2 * DELAY);
	assert_int_equal(r.max, 2 * DELAY);
	assert_int_equal(r.passed, 256);
	assert_int_equal(r.failed, 0);
	assert_int_equal(longest, 256); /* no padded one without need */
	assert_int_equal(ibping_counter(y, IBPING_pings_answered), 10);
	assert_int_equal(ibping_counter(x, IBPING_pings_returned), 10);
	assert_int_equal(dreqs, 0);
}

static void
rtt_of_each(void **state)
{
	struct ibping_request q = request(6, 256);
	uint64_t rtt[8];
	struct ibping_result r;
	int number;

	(void)state;
	lose_every = 5; /* question, answer, question, answer, question lost, ... */
	number = ibping_begin(x, &q, now);
	run(250 * MS);
	assert_int_equal(ibping_look(x, (uint32_t)number, 1, rtt, 8, now, &r), 0);
	assert_int_equal(r.num, 2);
	assert_int_equal(rtt[0], 2 * DELAY);
	assert_int_equal(rtt[1], IBPING_OPEN);
	run(3 * SECOND);
	assert_int_equal(ibping_look(x, (uint32_t)number, 2, rtt, 8, now, &r), 0);
	assert_true(r.done);
	assert_int_equal(r.num, 4);
	assert_int_equal(rtt[0], IBPING_LOST);
	assert_int_equal(r.sent, 6);
	assert_in_range(r.received, 3, 5);
	assert_int_equal(ibping_look(x, (uint32_t)number, 5, rtt, 0, now, &r), 0);
	assert_int_equal(r.num, 0);
	assert_int_equal(ibping_look(x, (uint32_t)number, 99, rtt, 8, now, &r), 0);
	assert_int_equal(r.num, 0);
}

/* One of the answers is late. */
static void
percentiles(void **state)
{
	static const struct {
		uint32_t count;
		uint64_t p99;
	} cases[] = {{5, 42 * DELAY}, {99, 42 * DELAY}, {100, 2 * DELAY}, {200, 2 * DELAY}};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct ibping_request q = request(cases[i].count, 256);
		struct ibping_result r;
		int number = ibping_begin(x, &q, now);

		run(DELAY);
		assert_int_equal(flying, 1);
		flight[0].at += 40 * DELAY;
		run(q.count * q.interval + 2 * SECOND);
		r = result_of(number);
		assert_int_equal(r.received, q.count);
		assert_int_equal(r.p50, 2 * DELAY);
		assert_int_equal(r.p99, cases[i].p99);
		assert_int_equal(r.max, 42 * DELAY);
		assert_int_equal(ibping_end(x, (uint32_t)number), 0);
	}
}

static void
path_mtu(void **state)
{
	static const struct {
		size_t mtu;
		uint32_t size_max, passed, failed;
	} cases[] = {
		{4096, 4096, 4096, 0}, {4096, 1024, 1024, 0}, {1500, 4096, 1024, 2048},
		{300, 4096, 256, 512}, {4096, 1500, 1024, 0},
	};

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		struct ibping_request q = request(2, 256);
		struct ibping_result r;

		mtu = cases[i].mtu;
		q.size_max = cases[i].size_max;
		r = ping(&q);
		assert_int_equal(r.passed, cases[i].passed);
		assert_int_equal(r.failed, cases[i].failed);
		assert_int_equal(r.received, 2);
	}
}

/* A padded one is answered by 64 bytes, after a MAD has been. */
static void
padded(void **state)
{
	struct ibping_request q = request(5, 3000);
	struct ibping_result r;
	uint8_t bytes[IBPING_BYTES_MAX];
	struct ibcm_way from = way(y_gid, x_gid), w;
	size_t len;

	(void)state;
	r = ping(&q);
	assert_int_equal(r.sent, 5);
	assert_int_equal(r.received, 5);
	assert_int_equal(r.passed, 3000);
	assert_int_equal(longest, 3000);
	len = ibping_question(bytes, 1, 3000);
	assert_true(ibping_input(y, &from, 2, bytes, len, now));
	assert_int_equal(ibping_output(y, &w, bytes, now), 64);
	mtu = 2000;
	r = ping(&q);
	assert_int_equal(r.received, 0);
	assert_int_equal(r.peer, IBPING_SOFTHCA);
	assert_int_equal(r.passed, 256);
	assert_int_equal(r.failed, 3000);
}

static void
marks(void **state)
{
	struct ibping_request q = request(3, 256);
	struct ibping_result r;

	(void)state;
	mark_there = true;
	r = ping(&q);
	assert_int_equal(r.ce_there, 3);
	assert_int_equal(r.ce_back, 0);
	mark_there = false;
	mark_back = true;
	r = ping(&q);
	assert_int_equal(r.ce_there, 0);
	assert_int_equal(r.ce_back, 3);
}

static void
doubled(void **state)
{
	struct ibping_request q = request(3, 256);
	struct ibping_result r;

	(void)state;
	twice = true;
	r = ping(&q);
	assert_int_equal(r.received, 3);
	assert_int_equal(r.duplicates, 9); /* two questions, two answers to each */
}

/* ---- other peers ---- */

static void
other_peers(void **state)
{
	struct ibping_request q = request(3, 256);
	struct ibping_result r;

	(void)state;
	ibping_destroy(y);
	y = make(false); /* as [admin] ping = no, and as a peer without pings */
	q.size_max = 4096;
	r = ping(&q);
	assert_int_equal(r.peer, IBPING_CM);
	assert_int_equal(r.received + r.passed + r.failed, 0);
	assert_int_equal(dreqs, 1);
	assert_int_equal(ibping_counter(y, IBPING_pings_off), 3);
	q.size = 4096;
	r = ping(&q);
	assert_int_equal(r.peer, IBPING_CM);
	assert_int_equal(r.sent, 0);
	assert_int_equal(longest, 256); /* nothing longer than a MAD */
	y_speaks_cm = false;
	r = ping(&q);
	assert_int_equal(r.peer, IBPING_SILENT);
	y_speaks_cm = true;
	y_loses_all = true;
	r = ping(&q);
	assert_int_equal(r.peer, IBPING_SILENT);
}

/* A management agent without the class answers with a status (Linux with some NICs). */
static void
refusals(void **state)
{
	struct ibping_request q = request(1, 256);
	int number = ibping_begin(x, &q, now);
	struct ibcm_way from = way(x_gid, y_gid), w;
	uint8_t bytes[IBPING_BYTES_MAX];

	(void)state;
	assert_int_equal(ibping_output(x, &w, bytes, now), 256);
	bytes[3] = 0x81;
	bytes[5] = 0x0c;
	assert_true(ibping_input(x, &from, 0, bytes, 256, now));
	assert_int_equal(result_of(number).received, 0);
	assert_int_equal(result_of(number).peer, IBPING_SILENT);
}

/* ---- rates ---- */

static uint32_t
flood(const uint8_t peer[16], uint64_t ns, uint32_t spread)
{
	uint8_t question[IBPING_BYTES_MAX], bytes[IBPING_BYTES_MAX];
	size_t len = ibping_question(question, 9, 4096);
	struct ibcm_way from = way(y_gid, peer), w;
	uint32_t answered = 0, i = 0;

	for (uint64_t end = now + ns; now < end; now += MS / 10) {
		from.peer[13] = (uint8_t)(i % spread);
		from.peer[14] = (uint8_t)(i++ % spread >> 8);
		assert_true(ibping_input(y, &from, 0, question, len, now));
		while ((len = ibping_output(y, &w, bytes, now)) != 0) {
			assert_int_equal(len, 64);
			answered++;
		}
		len = 4096;
	}
	return answered;
}

static void
limits(void **state)
{
	struct ibping_request q = request(5, 256);

	(void)state;
	assert_in_range(flood(y_gid, SECOND, 1), 90, 100);
	assert_in_range(flood(y_gid, SECOND, 1), 75, 100);
	assert_in_range(flood(y_gid, 10 * SECOND, 1), 750, 1000);
	/* of many sources: 2000 a second */
	assert_in_range(flood(y_gid, 10 * SECOND, 60000), 1900 * 10, 2010 * 10);
	assert_true(ibping_counter(y, IBPING_pings_limited) > 100000);
	now += SECOND;
	assert_int_equal(ping(&q).received, 5);
}

static void
sessions(void **state)
{
	struct ibping_request q = request(1000, 256);
	int number[IBPING_SESSIONS];

	(void)state;
	for (uint32_t i = 0; i < IBPING_SESSIONS; i++) {
		number[i] = ibping_begin(x, &q, now);
		assert_true(number[i] > 0);
	}
	assert_int_equal(ibping_begin(x, &q, now), -EBUSY);
	assert_int_equal(ibping_end(x, (uint32_t)number[3]), 0);
	assert_true(ibping_begin(x, &q, now) > 0);
	now += 20 * SECOND;
	(void)result_of(number[0]);
	now += 20 * SECOND;
	assert_true(ibping_begin(x, &q, now) > 0); /* the others are forgotten */
	assert_int_equal(result_of(number[0]).done, 0);
	assert_int_equal(ibping_end(x, (uint32_t)number[1]), -ENOENT);
}

static void
bad_requests(void **state)
{
	struct ibping_request q;

	(void)state;
#define BAD(member, value) \
	q = request(1, 256); \
	q.member = value; \
	assert_int_equal(ibping_begin(x, &q, now), -EINVAL)
	BAD(count, 0);
	BAD(count, IBPING_COUNT_MAX + 1);
	BAD(size, 255);
	BAD(size, 4097);
	BAD(size_max, 4097);
	BAD(interval, IBPING_INTERVAL_MIN - 1);
	BAD(timeout, 0);
#undef BAD
}

/* ---- datagrams of others ---- */

static void
not_ours(void **state)
{
	struct ibcm_way from = way(y_gid, x_gid), w;
	uint8_t bytes[IBPING_BYTES_MAX];
	size_t len;

	(void)state;
	len = ibping_dreq(bytes, 5, 6); /* of connection management */
	assert_false(ibping_input(y, &from, 0, bytes, len, now));
	bytes[17] = 0x16; /* a DREP that was not asked for */
	assert_false(ibping_input(y, &from, 0, bytes, len, now));
	for (len = 0; len < 24; len++)
		assert_false(ibping_input(y, &from, 0, bytes, len, now));
	assert_int_equal(ibping_counter(y, IBPING_pings_bad), 0);
#define BAD(at, value) \
	len = ibping_question(bytes, 5, 300); \
	bytes[at] = value; \
	assert_true(ibping_input(y, &from, 0, bytes, len, now))
	BAD(2, 2);  /* class version */
	BAD(3, 2);  /* method */
	BAD(17, 1); /* attribute */
	BAD(23, 9); /* length */
	BAD(38, 1); /* OUI */
	BAD(40, 0); /* version */
#undef BAD
	len = ibping_question(bytes, 5, 256);
	assert_true(ibping_input(y, &from, 0, bytes, 64, now));
	assert_true(ibping_input(y, &from, 0, bytes, 255, now));
	assert_int_equal(ibping_counter(y, IBPING_pings_bad), 8);
	assert_int_equal(ibping_output(y, &w, bytes, now), 0);
}

/* An answer from another address, or without a request, is ignored. */
static void
forged_answers(void **state)
{
	struct ibping_request q = request(3, 256);
	int number = ibping_begin(x, &q, now);
	struct ibcm_way from = way(x_gid, x_gid), w;
	uint8_t bytes[IBPING_BYTES_MAX];
	struct ibping_message m;

	(void)state;
	assert_int_equal(ibping_output(x, &w, bytes, now), 256);
	ibping_parse(bytes, 256, &m);
	assert_int_equal(ibping_answer(bytes, &m), 256);
	assert_true(ibping_input(x, &from, 0, bytes, 256, now));
	assert_int_equal(result_of(number).received, 0);
	memcpy(from.peer, y_gid, 16);
	bytes[15]++; /* transaction ID: not sent yet */
	assert_true(ibping_input(x, &from, 0, bytes, 256, now));
	bytes[15]--;
	bytes[8] ^= 1;
	assert_true(ibping_input(x, &from, 0, bytes, 256, now));
	assert_int_equal(result_of(number).received, 0);
	bytes[8] ^= 1;
	assert_true(ibping_input(x, &from, 0, bytes, 256, now));
	assert_int_equal(result_of(number).received, 1);
}

static void
noise(void **state)
{
	struct ibping_request q = request(1000, 256);
	struct ibcm_way from = way(x_gid, y_gid), w;
	uint8_t bytes[IBPING_BYTES_MAX];

	(void)state;
	assert_true(ibping_begin(x, &q, now) > 0);
	for (unsigned int i = 0; i < 100000; i++) {
		size_t len = i % 2 ? ibping_question(bytes, random_of(NULL), 256 + i % 3)
				   : ibping_dreq(bytes, random_of(NULL), 1);
		uint8_t *exact;

		for (uint64_t n = random_of(NULL) % 4; n > 0; n--)
			bytes[random_of(NULL) % 64] = (uint8_t)random_of(NULL);
		if (random_of(NULL) % 4 == 0)
			len = random_of(NULL) % (len + 1);
		exact = malloc(len + 1);
		memcpy(exact + 1, bytes, len);
		(void)ibping_input(x, &from, 0, exact + 1, len, now);
		free(exact);
		now += MS;
		while (ibping_output(x, &w, bytes, now) != 0)
			continue;
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(round_trips), TEST(rtt_of_each),	 TEST(path_mtu), TEST(percentiles),
		TEST(padded),	   TEST(marks),		 TEST(doubled),	 TEST(other_peers),
		TEST(refusals),	   TEST(limits),	 TEST(sessions), TEST(bad_requests),
		TEST(not_ours),	   TEST(forged_answers), TEST(noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
