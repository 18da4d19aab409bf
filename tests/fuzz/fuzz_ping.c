/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Datagrams on QP 1 as the pings see them, while some are under way. The input is a list of steps:
 *
 *  u8 what, u8 milliseconds that pass, u16 n, n bytes: a datagram; what & 3: its sender; & 4: its
 *  transaction ID is that of the last ping sent; & 8: its header is that of a ping; & 16: of an
 *  answer
 *
 * No answer is longer than its question, and no address gets more than it may.
 */

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ibping_impl.h"

#define MS UINT64_C(1000000)
#define STEPS_MAX 512u
#define PEERS 4u

static uint64_t drawn;

static uint64_t
random_of(void *arg)
{
	return drawn += UINT64_C(0x9e3779b97f4a7c15);
}

struct fuzz_ping {
	struct ibping *p;
	uint64_t now, second;
	uint32_t answers[PEERS]; /* of this second */
	size_t question;	 /* longest one that was not answered yet */
	uint8_t tid[8];
};

static struct ibcm_way
way_of(unsigned int peer)
{
	return (struct ibcm_way){.own = {[10] = 0xff, 0xff, 10, 0, 0, 1},
				 .peer = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(2 + peer)}};
}

static void
take_output(struct fuzz_ping *f)
{
	uint8_t bytes[IBPING_BYTES_MAX];
	struct ibcm_way way;
	size_t len;

	while ((len = ibping_output(f->p, &way, bytes, f->now)) != 0) {
		fuzz_check(len <= IBPING_BYTES_MAX, "%zu bytes", len);
		if (bytes[1] != 0x4f || bytes[3] != 0x81) {
			memcpy(f->tid, bytes + 8, sizeof(f->tid));
			continue;
		}
		fuzz_check(len <= f->question, "%zu bytes answer %zu", len, f->question);
		fuzz_check(++f->answers[way.peer[15] - 2] <= IBPING_ANSWERS, "too many answers");
	}
}

static void
put(struct fuzz_ping *f, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in);
	struct ibcm_way from = way_of(what % PEERS);
	uint8_t *bytes = malloc(IBPING_BYTES_MAX + 64);
	const uint8_t *at;
	size_t n, used;

	f->now += fuzz_u8(in) * MS;
	if (f->now - f->second >= 1000 * MS) {
		f->second = f->now;
		memset(f->answers, 0, sizeof(f->answers));
	}
	fuzz_check(bytes != NULL, "no memory");
	n = fuzz_u16(in) % (IBPING_BYTES_MAX + 64);
	memset(bytes, 0, n);
	at = fuzz_bytes(in, n, &used);
	if ((what & 8) != 0 && n >= IBPING_BYTES_MIN && n <= IBPING_BYTES_MAX)
		(void)ibping_question(bytes, 0, (uint32_t)n);
	else
		memcpy(bytes, at, used);
	if ((what & 16) != 0 && n > 3)
		bytes[3] = 0x81;
	if ((what & 4) != 0 && n >= 16)
		memcpy(bytes + 8, f->tid, sizeof(f->tid));
	f->question = n;
	bytes = realloc(bytes, n + 1); /* an exact copy */
	fuzz_check(bytes != NULL, "no memory");
	(void)ibping_input(f->p, &from, what, bytes, n, f->now);
	free(bytes);
	take_output(f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ibping_config c = {.answers = true, .random = random_of};
	struct ibping_request q = {.way = way_of(0),
				   .count = 50,
				   .size = 256,
				   .size_max = 4096,
				   .interval = 20 * MS,
				   .timeout = 100 * MS};
	struct fuzz_input in = {data, data + size};
	struct fuzz_ping f = {.now = 1000 * MS, .second = 1000 * MS};
	uint64_t rtt[64];
	struct ibping_result r;

	drawn = 1;
	f.p = ibping_create(&c);
	fuzz_check(f.p != NULL && ibping_begin(f.p, &q, f.now) == 1, "no session");
	q.size = 1024;
	fuzz_check(ibping_begin(f.p, &q, f.now) == 2, "no session");
	take_output(&f);
	for (unsigned int i = 0; i < STEPS_MAX && fuzz_left(&in) != 0; i++)
		put(&f, &in);
	for (uint32_t number = 1; number <= 2; number++) {
		fuzz_check(ibping_look(f.p, number, 0, rtt, 64, f.now, &r) == 0, "lost session");
		fuzz_check(r.received <= r.sent && r.sent <= q.count, "%u of %u", r.received,
			   r.sent);
	}
	ibping_destroy(f.p);
	return 0;
}
