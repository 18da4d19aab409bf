/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two programs, each on a device of its own, with the installed header only:
 *
 *	urma_forms DEVICE serve PLACE	offers memory and a Jetty, whose names it writes to PLACE
 *	urma_forms DEVICE use PLACE	many pieces of memory in a request, some bytes of a Write,
 *					every atomic of every length against a model
 *
 * The server ends after a message has come, and both say "verified".
 */

#include "urma_program.h"

#define FAR_PART (2 * PART) /* of the server: memory written and read */
#define MESSAGE (3 * PART)  /* of the server */
#define WIDEST 64u
#define ENABLES_MIN 64u /* bytes of a Write with byte enables */
#define ENABLES_MAX 1024u

/* Lengths of SGEs that follow each other in memory. */
static const uint32_t pieces[SGES] = {1,  4099, 0,   70000, 3,	  1024, 13,  30001,
				      64, 65,	128, 4096,  4095, 7,	511, 100000};

/* Fills sge with pieces from `at` on; returns their bytes. */
static uint32_t
cut(const struct program *p, uint32_t at, urma_sge_t *sge)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < SGES; i++) {
		sge[i] = own(p, at + n, pieces[i]);
		n += pieces[i];
	}
	return n;
}

/* ---- the server ---- */

static void
serve(struct program *p, const char *place)
{
	urma_sge_t sge[SGES];
	urma_jfr_wr_t wr = {.src = {sge, SGES}, .user_ctx = 1};
	uint32_t n = cut(p, MESSAGE, sge);
	urma_cr_t cr;

	memset(p->mem + MESSAGE, 0, PART);
	must(urma_post_jetty_recv_wr(p->jetty, &wr, NULL) == URMA_SUCCESS, "receive");
	offer(p, place);
	cr = next(p);
	must(cr.completion_len == n, "length of the message");
	same(p->mem + MESSAGE, p->mem, n, "message");
	must(p->mem[MESSAGE + n] == 0, "and no more");
}

/* ---- the user ---- */

static urma_sge_t
far(const struct program *p, uint32_t len)
{
	return (urma_sge_t){p->to_seg->seg.ubva.va + FAR_PART, len, p->to_seg};
}

static void
put(struct program *p, uint32_t from, uint32_t len)
{
	transfer(p, URMA_OPC_WRITE, from, FAR_PART, len);
}

/* The server's bytes at PART */
static const uint8_t *
get(struct program *p, uint32_t len)
{
	memset(p->mem + PART, 0xee, len);
	transfer(p, URMA_OPC_READ, PART, FAR_PART, len);
	return p->mem + PART;
}

static void
many_pieces(struct program *p)
{
	urma_jfs_wr_t write = {.opcode = URMA_OPC_WRITE}, read = {.opcode = URMA_OPC_READ};
	urma_jfs_wr_t send = {.opcode = URMA_OPC_SEND};
	urma_sge_t mine[SGES], theirs;
	uint32_t n = cut(p, 0, mine);

	theirs = far(p, n);
	write.rw.src = send.send.src = (urma_sg_t){mine, SGES};
	write.rw.dst = (urma_sg_t){&theirs, 1};
	post(p, &write);
	next(p);
	same(get(p, n), p->mem, n, "what was written from pieces");

	memset(p->mem + PART, 0, PART);
	cut(p, PART, mine);
	read.rw.src = (urma_sg_t){&theirs, 1};
	read.rw.dst = (urma_sg_t){mine, SGES};
	post(p, &read);
	next(p);
	same(p->mem + PART, p->mem, n, "what was read into pieces");

	cut(p, 0, mine);
	post(p, &send);
	next(p);
}

static void
enables(struct program *p)
{
	static uint8_t bits[ENABLES_MAX / 8];

	memset(p->mem + FAR_PART, 0, ENABLES_MAX);
	for (uint32_t n = ENABLES_MIN; n <= ENABLES_MAX; n *= 2) {
		urma_sge_t mine = own(p, 0, n), theirs = far(p, n);
		urma_jfs_wr_t wr = {.opcode = SOFTHCA_URMA_OPC_WRITE_BE};
		const uint8_t *got;

		for (uint32_t i = 0; i < n / 8; i++)
			bits[i] = (uint8_t)(i * 37 + n / 64);
		put(p, FAR_PART, n);
		wr.rw = (urma_rw_wr_t){.src = {&mine, 1},
				       .dst = {&theirs, 1},
				       .byte_enables = bits};
		post(p, &wr);
		next(p);
		got = get(p, n);
		for (uint32_t i = 0; i < n; i++)
			must(got[i] == (bits[i / 8] >> i % 8 & 1 ? p->mem[i] : 0), "byte enables");
	}
}

/* ---- atomics, and a model of them: little-endian numbers of n bytes ---- */

enum change {
	ADD,
	SUB,
	AND,
	OR,
	XOR,
	CLEAR,
	SIGNED_MAX,
	SIGNED_MIN,
	UNSIGNED_MAX,
	UNSIGNED_MIN,
};

#define LOAD SOFTHCA_URMA_OPC_ATOMIC_LOAD
#define STORE SOFTHCA_URMA_OPC_ATOMIC_STORE

static const struct {
	urma_opcode_t opcode;
	enum softhca_urma_atomic op;
	enum change change;
} atomics[] = {
	{URMA_OPC_FADD, 0, ADD},
	{URMA_OPC_FSUB, 0, SUB},
	{URMA_OPC_FAND, 0, AND},
	{URMA_OPC_FOR, 0, OR},
	{URMA_OPC_FXOR, 0, XOR},
	{LOAD, SOFTHCA_URMA_ATOMIC_ADD, ADD},
	{LOAD, SOFTHCA_URMA_ATOMIC_CLR, CLEAR},
	{LOAD, SOFTHCA_URMA_ATOMIC_EOR, XOR},
	{LOAD, SOFTHCA_URMA_ATOMIC_SET, OR},
	{LOAD, SOFTHCA_URMA_ATOMIC_SMAX, SIGNED_MAX},
	{LOAD, SOFTHCA_URMA_ATOMIC_SMIN, SIGNED_MIN},
	{LOAD, SOFTHCA_URMA_ATOMIC_UMAX, UNSIGNED_MAX},
	{LOAD, SOFTHCA_URMA_ATOMIC_UMIN, UNSIGNED_MIN},
	{STORE, SOFTHCA_URMA_ATOMIC_ADD, ADD},
	{STORE, SOFTHCA_URMA_ATOMIC_CLR, CLEAR},
	{STORE, SOFTHCA_URMA_ATOMIC_EOR, XOR},
	{STORE, SOFTHCA_URMA_ATOMIC_SET, OR},
	{STORE, SOFTHCA_URMA_ATOMIC_SMAX, SIGNED_MAX},
	{STORE, SOFTHCA_URMA_ATOMIC_SMIN, SIGNED_MIN},
	{STORE, SOFTHCA_URMA_ATOMIC_UMAX, UNSIGNED_MAX},
	{STORE, SOFTHCA_URMA_ATOMIC_UMIN, UNSIGNED_MIN},
};

static int
is_less(const uint8_t *a, const uint8_t *b, uint32_t n, uint8_t sign)
{
	if ((a[n - 1] ^ sign) != (b[n - 1] ^ sign))
		return (a[n - 1] ^ sign) < (b[n - 1] ^ sign);
	for (uint32_t i = n - 1; i-- != 0;)
		if (a[i] != b[i])
			return a[i] < b[i];
	return 0;
}

static void
change_bytes(enum change change, uint8_t *value, const uint8_t *operand, uint32_t n)
{
	uint8_t sign = change == SIGNED_MAX || change == SIGNED_MIN ? 0x80 : 0;
	int less = is_less(value, operand, n, sign), carry = 0;

	for (uint32_t i = 0; i < n; i++) {
		int sum = value[i] + operand[i] + carry, rest = value[i] - operand[i] - carry;

		switch (change) {
		case ADD:
			value[i] = (uint8_t)sum;
			carry = sum > 255;
			break;
		case SUB:
			value[i] = (uint8_t)rest;
			carry = rest < 0;
			break;
		case AND:
			value[i] &= operand[i];
			break;
		case OR:
			value[i] |= operand[i];
			break;
		case XOR:
			value[i] ^= operand[i];
			break;
		case CLEAR:
			value[i] &= (uint8_t)~operand[i];
			break;
		case SIGNED_MAX:
		case UNSIGNED_MAX:
			value[i] = less ? operand[i] : value[i];
			break;
		case SIGNED_MIN:
		case UNSIGNED_MIN:
			value[i] = less ? value[i] : operand[i];
			break;
		}
	}
}

/* Up to 8 bytes stand in the request, others at an address. */
static uint64_t
in_request(const uint8_t *bytes, uint32_t n)
{
	uint64_t value = 0;

	if (n > sizeof(value))
		return (uintptr_t)bytes;
	memcpy(&value, bytes, n);
	return value;
}

static void
random_bytes(uint8_t *bytes, uint32_t n)
{
	static uint64_t state = 1;

	for (uint32_t i = 0; i < n; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(state >> 56);
	}
}

/* The server's value before and after; `old` is the place of the atomic's old value. */
static void
found(struct program *p, const uint8_t *old, const uint8_t *before, const uint8_t *after,
      uint32_t n)
{
	if (old != NULL)
		same(old, before, n, "old value");
	same(get(p, n), after, n, "new value");
}

static void
one_atomic(struct program *p, unsigned int row, uint32_t n)
{
	urma_opcode_t opcode = atomics[row].opcode;
	urma_sge_t old = own(p, FAR_PART + WIDEST, n), theirs = far(p, n);
	urma_jfs_wr_t wr = {.opcode = opcode};
	uint8_t *value = p->mem + FAR_PART, operand[WIDEST], after[WIDEST];

	random_bytes(value, n);
	random_bytes(operand, n);
	memcpy(after, value, n);
	change_bytes(atomics[row].change, after, operand, n);
	put(p, FAR_PART, n);
	wr.faa = (urma_faa_wr_t){.dst = &theirs,
				 .src = opcode == STORE ? NULL : &old,
				 .operand = in_request(operand, n),
				 .op = atomics[row].op};
	post(p, &wr);
	next(p);
	found(p, opcode == STORE ? NULL : value + WIDEST, value, after, n);
}

/* Compare and swap that fails, one that does not, a swap. */
static void
swaps(struct program *p, uint32_t n)
{
	urma_sge_t old = own(p, FAR_PART + WIDEST, n), theirs = far(p, n);
	uint8_t *value = p->mem + FAR_PART, swap[WIDEST], compare[WIDEST];

	for (unsigned int round = 0; round < 3; round++) {
		urma_jfs_wr_t wr = {.opcode = round < 2 ? URMA_OPC_CAS : URMA_OPC_SWAP};

		random_bytes(value, n);
		random_bytes(swap, n);
		memcpy(compare, value, n);
		compare[0] ^= round == 0;
		put(p, FAR_PART, n);
		wr.cas = (urma_cas_wr_t){.dst = &theirs,
					 .src = &old,
					 .cmp_data = in_request(compare, n),
					 .swap_data = in_request(swap, n)};
		post(p, &wr);
		next(p);
		found(p, value + WIDEST, value, round == 0 ? value : swap, n);
	}
}

static void
use(struct program *p, const char *place)
{
	find_peer(p, place, URMA_TM_RM);
	enables(p);
	for (uint32_t n = 1; n <= WIDEST; n *= 2) {
		for (unsigned int row = 0; row < sizeof(atomics) / sizeof(atomics[0]); row++)
			one_atomic(p, row, n);
		swaps(p, n);
	}
	many_pieces(p);
	unimport_peer(p);
}

int
main(int argc, char **argv)
{
	return play(argc, argv, &(struct roles){URMA_TM_RM, serve, use});
}
