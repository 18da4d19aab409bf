/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The least work of a message, the limit that benchmarks/report draws: one thread posts requests,
 * builds frames, checks them, copies their data to the memory of the peer, and completes them. No
 * retransmission, no port, no doorbells, no state but PSNs. The ICRC is made and checked by ISA-L,
 * over headers whose variant fields are ones meanwhile, or by the kernels of src/device/wire.
 *
 * Prints JSON: ns per message, the median of rounds in which all rows take turns.
 */

#include <getopt.h>
#include <isa-l/crc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi_roce.h"
#include "wire/icrc.h"

#define BURST 32u
#define SLOTS 64u /* of memory, 4 KiB each; and entries of queues */
#define SLOT_BYTES 4096u
#define TABLE 256u /* entries of the tables of keys and QPs */
#define FRAME_BYTES 4352u
#define L3 14u
#define BTH 42u
#define HEADERS (BTH + 12u + 16u) /* with the longest header after the BTH */
#define ICRC_BYTES 4u
#define ROUNDS_MAX 99u
#define CHECK_EVERY 64u /* bursts between two looks at the clock */

enum op {
	OP_WRITE,
	OP_SEND,
	OP_READ
};

struct wqe {
	uint64_t local, remote, id, reserved[4];
	uint32_t bytes, key;
};

struct cqe {
	uint64_t id, reserved[5];
	uint32_t status, bytes, qpn, number;
};

struct key {
	uint8_t *memory;
	uint64_t bytes;
	uint32_t key, rights;
};

struct qp {
	uint32_t next_psn, expected_psn, number, msn;
	uint8_t headers[96];
} __attribute__((aligned(64)));

struct frame {
	uint8_t byte[FRAME_BYTES];
	uint32_t bytes;
} __attribute__((aligned(64)));

struct row {
	const char *name;
	enum op op;
	uint32_t bytes;
	bool isal;
	double ns[ROUNDS_MAX];
};

static struct row rows[] = {
	{"write", OP_WRITE, 64, true},	 {"write", OP_WRITE, 64, false},
	{"send", OP_SEND, 64, true},	 {"send", OP_SEND, 64, false},
	{"read", OP_READ, 64, true},	 {"read", OP_READ, 64, false},
	{"write", OP_WRITE, 4096, true}, {"write", OP_WRITE, 4096, false},
	{"send", OP_SEND, 4096, true},	 {"send", OP_SEND, 4096, false},
	{"read", OP_READ, 4096, true},	 {"read", OP_READ, 4096, false},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static uint8_t memory[2][SLOTS * SLOT_BYTES] __attribute__((aligned(4096)));
static struct frame frames[2][BURST]; /* requests, and the responses of READs */
static struct wqe sq[SLOTS], rq[SLOTS];
static struct cqe send_cq[SLOTS], recv_cq[SLOTS];
static struct key keys[TABLE];
static struct qp qps[TABLE];
static const struct hca_icrc_ops *kernels;
static uint64_t posted, faults;

/* ---- ICRC ---- */

/* The fields that routers change: DSCP, TTL, checksums, BTH's byte 4. */
static inline void
mask(uint8_t *p, bool ones)
{
	uint8_t value = ones ? 0xff : 0;

	p[L3 + 1] = value;
	p[L3 + 8] = ones ? 0xff : 64;
	memset(p + L3 + 10, value, 2);
	memset(p + L3 + 26, value, 2);
	p[BTH + 4] = value;
}

static inline uint32_t
isal_crc(const struct frame *f)
{
	return crc32_gzip_refl(hca_icrc_seed[HCA_WIRE_ROCE], (uint8_t *)(uintptr_t)f->byte + L3,
			       f->bytes - L3 - ICRC_BYTES);
}

/* In passes over the burst: a CRC right behind a store to its header waits for that store. */
static inline void
isal_burst(struct frame *f, uint32_t *crc)
{
	for (uint32_t i = 0; i < BURST; i++)
		mask(f[i].byte, true);
	for (uint32_t i = 0; i < BURST; i++)
		crc[i] = isal_crc(&f[i]);
	for (uint32_t i = 0; i < BURST; i++)
		mask(f[i].byte, false);
}

static inline void
own_burst(struct frame *f, uint32_t *crc)
{
	struct hca_icrc_span span[BURST];

	for (uint32_t i = 0; i < BURST; i++)
		span[i] = hca_icrc_span_of(HCA_WIRE_ROCE, 4, f[i].byte + L3,
					   f[i].bytes - L3 - ICRC_BYTES);
	kernels->crc_burst(span, crc, BURST);
}

static inline void
seal(const struct row *r, struct frame *f)
{
	uint32_t crc[BURST];

	if (r->isal)
		isal_burst(f, crc);
	else
		own_burst(f, crc);
	for (uint32_t i = 0; i < BURST; i++)
		hca_icrc_store(f[i].byte + f[i].bytes - ICRC_BYTES, crc[i]);
}

static inline void
check(const struct row *r, struct frame *f)
{
	uint32_t crc[BURST];

	if (r->isal)
		isal_burst(f, crc);
	else
		own_burst(f, crc);
	for (uint32_t i = 0; i < BURST; i++)
		faults += hca_icrc_load(f[i].byte + f[i].bytes - ICRC_BYTES) != crc[i];
}

static inline void
copy(const struct row *r, void *to, const void *from, size_t n)
{
	if (r->isal)
		memcpy(to, from, n);
	else
		kernels->copy(to, from, n);
}

/* ---- one burst ---- */

static inline uint8_t *
memory_of(uint32_t key, uint64_t offset, uint32_t bytes)
{
	const struct key *k = &keys[key & (TABLE - 1)];

	faults += k->key != key || offset + bytes > k->bytes;
	return k->memory + offset;
}

static inline void
post(const struct row *r)
{
	for (uint32_t i = 0; i < BURST; i++) {
		uint64_t at = posted + i, slot = at % SLOTS;

		sq[slot] = (struct wqe){.local = slot * SLOT_BYTES,
					.remote = slot * SLOT_BYTES,
					.id = at,
					.bytes = r->bytes,
					.key = 3};
		if (r->op == OP_SEND)
			rq[slot] = (struct wqe){.local = slot * SLOT_BYTES, .id = at, .key = 5};
	}
}

/* Headers from the QP's template, PSN, address; returns where the payload is. */
static inline uint8_t *
begin_frame(struct qp *qp, struct frame *f, uint32_t header, uint32_t payload)
{
	uint32_t bytes = BTH + 12 + header + payload + ICRC_BYTES;

	memcpy(f->byte, qp->headers, HEADERS);
	hca_put_be16(f->byte + L3 + 2, (uint16_t)(bytes - L3));
	hca_put_be16(f->byte + L3 + 24, (uint16_t)(bytes - L3 - 20));
	hca_put_be32(f->byte + BTH + 8, qp->next_psn++ & 0xffffff);
	f->bytes = bytes;
	return f->byte + BTH + 12 + header;
}

/* An RETH is 16 bytes: address, key, length. */
static inline void
put_reth(uint8_t *p, uint64_t address, uint32_t key, uint32_t bytes)
{
	hca_put_be64(p, address);
	hca_put_be32(p + 8, key);
	hca_put_be32(p + 12, bytes);
}

static inline void
build_requests(const struct row *r, struct frame *f)
{
	uint32_t header = r->op == OP_SEND ? 0 : 16;

	for (uint32_t i = 0; i < BURST; i++) {
		const struct wqe *w = &sq[(posted + i) % SLOTS];
		uint8_t *data =
			begin_frame(&qps[7], &f[i], header, r->op == OP_READ ? 0 : w->bytes);

		if (header != 0)
			put_reth(data - header, w->remote, 5, w->bytes);
		if (r->op != OP_READ)
			copy(r, data, memory_of(w->key, w->local, w->bytes), w->bytes);
	}
	seal(r, f);
}

static inline void
accept_psn(const struct frame *f)
{
	struct qp *qp = &qps[hca_get_be32(f->byte + BTH + 4) & (TABLE - 1)];

	faults += (hca_get_be32(f->byte + BTH + 8) & 0xffffff) != (qp->expected_psn & 0xffffff);
	qp->expected_psn++;
	qp->msn++;
}

static inline void
complete(struct cqe *cq, uint64_t number, uint64_t id, uint32_t bytes)
{
	cq[number % SLOTS] =
		(struct cqe){.id = id, .bytes = bytes, .qpn = 7, .number = (uint32_t)number};
}

/* WRITE and SEND: data to the memory of the peer; a SEND completes a receive. */
static inline void
execute(const struct row *r, struct frame *f)
{
	uint32_t header = r->op == OP_SEND ? 0 : 16;

	check(r, f);
	for (uint32_t i = 0; i < BURST; i++) {
		const uint8_t *p = f[i].byte + BTH + 12;
		uint32_t bytes = f[i].bytes - BTH - 12 - header - ICRC_BYTES;
		const struct wqe *w = &rq[(posted + i) % SLOTS];
		uint64_t to = header != 0 ? hca_get_be64(p) : w->local;

		accept_psn(&f[i]);
		copy(r, memory_of(header != 0 ? hca_get_be32(p + 8) : w->key, to, bytes),
		     p + header, bytes);
		if (r->op == OP_SEND)
			complete(recv_cq, posted + i, w->id, bytes);
	}
}

/* READ: a response of an AETH and the data to each request. */
static inline void
respond(const struct row *r, struct frame *f, struct frame *response)
{
	check(r, f);
	for (uint32_t i = 0; i < BURST; i++) {
		const uint8_t *p = f[i].byte + BTH + 12;
		uint32_t bytes = hca_get_be32(p + 12);
		uint8_t *data;

		accept_psn(&f[i]);
		data = begin_frame(&qps[8], &response[i], 4, bytes);
		hca_put_be32(data - 4, qps[7].msn);
		copy(r, data, memory_of(hca_get_be32(p + 8), hca_get_be64(p), bytes), bytes);
	}
	seal(r, response);
}

static inline void
take_responses(const struct row *r, struct frame *f)
{
	check(r, f);
	for (uint32_t i = 0; i < BURST; i++) {
		const struct wqe *w = &sq[(posted + i) % SLOTS];

		accept_psn(&f[i]);
		copy(r, memory_of(w->key, w->local, w->bytes), f[i].byte + BTH + 16, w->bytes);
	}
}

/* An ACK for the burst, and the completions of its requests. */
static inline void
finish(const struct row *r)
{
	static volatile uint32_t acked;
	uint64_t seen = 0;

	acked = qps[7].msn;
	for (uint32_t i = 0; i < BURST; i++) {
		const struct wqe *w = &sq[(posted + i) % SLOTS];

		complete(send_cq, posted + i, w->id, w->bytes);
	}
	/* the program polls */
	for (uint32_t i = 0; i < BURST; i++)
		seen += send_cq[(posted + i) % SLOTS].id - posted;
	faults += seen != BURST * (BURST - 1) / 2;
	posted += BURST;
	(void)acked;
}

static void
run_burst(const struct row *r)
{
	post(r);
	build_requests(r, frames[0]);
	if (r->op == OP_READ) {
		respond(r, frames[0], frames[1]);
		take_responses(r, frames[1]);
	} else {
		execute(r, frames[0]);
	}
	finish(r);
}

/* ---- rounds ---- */

/* CPU time: waiting for a CPU is no part of a message. */
static double
clock_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double
measure(const struct row *r, double seconds)
{
	uint8_t *to = memory[r->op != OP_READ];
	const uint8_t *from = memory[r->op == OP_READ];
	double begin, now;
	uint64_t first;

	for (uint32_t i = 0; i < sizeof(memory[0]); i++)
		to[i] = (uint8_t)~from[i];
	for (uint32_t i = 0; i < CHECK_EVERY; i++)
		run_burst(r);
	first = posted;
	begin = clock_s();
	do {
		for (uint32_t i = 0; i < CHECK_EVERY; i++)
			run_burst(r);
		now = clock_s();
	} while (now - begin < seconds);
	return (now - begin) * 1e9 / (double)(posted - first);
}

static void
set_up(void)
{
	kernels = hca_icrc_select();
	for (uint32_t i = 0; i < sizeof(memory[0]); i++) {
		memory[0][i] = (uint8_t)(i * 7 + i / SLOT_BYTES);
		memory[1][i] = (uint8_t)(i * 5);
	}
	keys[3] = (struct key){memory[0], sizeof(memory[0]), 3, 1};
	keys[5] = (struct key){memory[1], sizeof(memory[1]), 5, 3};
	for (uint32_t i = 7; i <= 8; i++) {
		uint8_t *p = qps[i].headers;

		p[12] = 8; /* IPv4 */
		p[L3] = 0x45;
		p[L3 + 8] = 64;
		p[L3 + 9] = 17; /* UDP */
		hca_put_be16(p + L3 + 22, HCA_ROCE_UDP_PORT);
		p[BTH] = 10; /* WRITE ONLY */
		hca_put_be32(p + BTH + 4, i);
	}
}

/* The data that the row copies is where it belongs. */
static bool
is_right(const struct row *r)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		if (memcmp(memory[0] + i * SLOT_BYTES, memory[1] + i * SLOT_BYTES, r->bytes) != 0)
			return false;
	return faults == 0;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
print(uint32_t rounds)
{
	printf("{\n \"program\": \"model\",\n \"kernels\": \"%s\",\n \"rounds\": %u,\n \"rows\": [",
	       kernels->name, rounds);
	for (uint32_t i = 0; i < ROWS; i++) {
		struct row *r = &rows[i];

		qsort(r->ns, rounds, sizeof(r->ns[0]), compare);
		printf("%s\n  {\"op\": \"%s\", \"size\": %u, \"kernel\": \"%s\", \"ns_per_msg\": "
		       "%.2f}",
		       i == 0 ? "" : ",", r->name, r->bytes, r->isal ? "isal" : "own",
		       r->ns[rounds / 2]);
	}
	printf("\n ]\n}\n");
}

static int
usage(FILE *to, int status)
{
	fprintf(to,
		"usage: model [--seconds S] [--rounds N]\n"
		"ns per message of ideal loops, as JSON: the median of N rounds [5] of S seconds a "
		"row [0.2]\n");
	return status;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"seconds", required_argument, NULL, 's'},
						{"rounds", required_argument, NULL, 'r'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	unsigned long rounds = 5;
	double seconds = 0.2;
	int c;

	while ((c = getopt_long(argc, argv, "s:r:h", options, NULL)) != -1) {
		if (c == 's')
			seconds = strtod(optarg, NULL);
		else if (c == 'r')
			rounds = strtoul(optarg, NULL, 10);
		else
			return usage(c == 'h' ? stdout : stderr, c == 'h' ? 0 : 2);
	}
	if (optind != argc || rounds == 0 || rounds > ROUNDS_MAX || !(seconds > 0 && seconds < 60))
		return usage(stderr, 2);
	set_up();
	for (uint32_t round = 0; round < rounds; round++)
		for (uint32_t i = 0; i < ROWS; i++) {
			rows[i].ns[round] = measure(&rows[i], seconds / (double)rounds);
			if (!is_right(&rows[i])) {
				fprintf(stderr,
					"model: %s of %u bytes: %llu faults, or wrong data\n",
					rows[i].name, rows[i].bytes, (unsigned long long)faults);
				return 1;
			}
		}
	print((uint32_t)rounds);
	return 0;
}
