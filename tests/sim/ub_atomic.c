/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_atomic.h"

static const struct {
	urma_opcode_t opcode;
	uint32_t op;
} kinds[UB_ATOMIC_KINDS] = {
#define X(opcode, op) {opcode, op},
	UB_ATOMIC_LIST(X)
#undef X
};

/* ---- operands ---- */

static void
draw(struct sim_rng *rng, uint8_t *v, uint32_t n)
{
	uint32_t form = sim_below(rng, 4);

	for (uint32_t i = 0; i < n; i++)
		v[i] = form == 0 ? 0 : form == 1 ? 0xff : (uint8_t)sim_random(rng);
}

struct ub_atomic
ub_atomic_draw(unsigned int kind, uint32_t len, const uint8_t *old, struct sim_rng *rng)
{
	struct ub_atomic a = {.opcode = kinds[kind].opcode, .op = kinds[kind].op, .len = len};

	draw(rng, a.operand, len);
	draw(rng, a.swap, len);
	if (a.opcode == URMA_OPC_CAS && sim_below(rng, 2) == 0)
		memcpy(a.operand, old, len);
	return a;
}

bool
ub_atomic_returns(const struct ub_atomic *a)
{
	return a->opcode != SOFTHCA_URMA_OPC_ATOMIC_STORE;
}

/* ---- the model ---- */

/* Of two's complement if signs count. */
static bool
less(const uint8_t *a, const uint8_t *b, uint32_t n, bool with_sign)
{
	uint8_t flip = with_sign ? 0x80 : 0; /* negative ones come first */

	for (uint32_t i = n; i-- > 0; flip = 0)
		if (a[i] != b[i])
			return (a[i] ^ flip) < (b[i] ^ flip);
	return false;
}

static void
sum(uint8_t *v, const uint8_t *operand, uint32_t n, bool minus)
{
	int carry = 0;

	for (uint32_t i = 0; i < n; i++) {
		carry += minus ? v[i] - operand[i] : v[i] + operand[i];
		v[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

/* Load and store. */
static void
by_op(uint32_t op, uint8_t *v, const uint8_t *operand, uint32_t n)
{
	bool with_sign = op == SOFTHCA_URMA_ATOMIC_SMAX || op == SOFTHCA_URMA_ATOMIC_SMIN;
	bool max = op == SOFTHCA_URMA_ATOMIC_SMAX || op == SOFTHCA_URMA_ATOMIC_UMAX;

	if (op == SOFTHCA_URMA_ATOMIC_ADD) {
		sum(v, operand, n, false);
		return;
	}
	if (op >= SOFTHCA_URMA_ATOMIC_SMAX) {
		if (max ? less(v, operand, n, with_sign) : less(operand, v, n, with_sign))
			memcpy(v, operand, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		v[i] = op == SOFTHCA_URMA_ATOMIC_CLR   ? v[i] & (uint8_t)~operand[i]
		       : op == SOFTHCA_URMA_ATOMIC_EOR ? v[i] ^ operand[i]
						       : v[i] | operand[i];
}

void
ub_atomic_model(const struct ub_atomic *a, uint8_t *v)
{
	switch (a->opcode) {
	case URMA_OPC_CAS:
		if (memcmp(v, a->operand, a->len) == 0)
			memcpy(v, a->swap, a->len);
		break;
	case URMA_OPC_SWAP:
		memcpy(v, a->swap, a->len);
		break;
	case URMA_OPC_FADD:
	case URMA_OPC_FSUB:
		sum(v, a->operand, a->len, a->opcode == URMA_OPC_FSUB);
		break;
	case URMA_OPC_FAND:
		for (uint32_t i = 0; i < a->len; i++)
			v[i] &= a->operand[i];
		break;
	case URMA_OPC_FOR:
		by_op(SOFTHCA_URMA_ATOMIC_SET, v, a->operand, a->len);
		break;
	case URMA_OPC_FXOR:
		by_op(SOFTHCA_URMA_ATOMIC_EOR, v, a->operand, a->len);
		break;
	default:
		by_op(a->op, v, a->operand, a->len);
	}
}

/* ---- requests ---- */

/* Up to 8 bytes stand in the request, others at an address. */
static uint64_t
argument(const uint8_t *operand, uint32_t len)
{
	uint64_t v;

	if (len > sizeof(v))
		return (uintptr_t)operand;
	memcpy(&v, operand, sizeof(v));
	return v;
}

void
ub_atomic_post(struct ub_pair *p, unsigned int side, struct ub_atomic *a, uint32_t local,
	       uint32_t remote, uint64_t id)
{
	urma_sge_t own = ub_pair_local(p, side, local, a->len);
	urma_sge_t peers = ub_pair_remote(p, side, remote, a->len);
	urma_jfs_wr_t wr = ub_pair_request(p, side, a->opcode, id);

	if (a->opcode == URMA_OPC_CAS || a->opcode == URMA_OPC_SWAP)
		wr.cas = (urma_cas_wr_t){.dst = &peers,
					 .src = &own,
					 .cmp_data = argument(a->operand, a->len),
					 .swap_data = argument(a->swap, a->len)};
	else
		wr.faa = (urma_faa_wr_t){.dst = &peers,
					 .src = ub_atomic_returns(a) ? &own : NULL,
					 .operand = argument(a->operand, a->len),
					 .op = a->op};
	ub_pair_post(p, side, &wr);
}

static void
one(struct ub_pair *p, unsigned int kind, uint32_t len, uint32_t local, uint32_t remote,
    uint64_t id)
{
	uint8_t *theirs = p->side[1].mem + remote, *own = p->side[0].mem + local;
	uint8_t old[UB_ATOMIC_MAX], before[UB_ATOMIC_MAX], want[UB_ATOMIC_MAX];
	struct ub_atomic a;

	for (uint32_t i = 0; i < UB_ATOMIC_MAX; i++)
		own[i] = (uint8_t)sim_random(&p->rng);
	draw(&p->rng, theirs, UB_ATOMIC_MAX);
	memcpy(before, own, sizeof(before));
	memcpy(old, theirs, sizeof(old));
	memcpy(want, theirs, sizeof(want));
	a = ub_atomic_draw(kind, len, old, &p->rng);
	ub_atomic_model(&a, want);
	if (ub_atomic_returns(&a))
		memcpy(before, old, len);
	ub_atomic_post(p, 0, &a, local, remote, id);
	/* the request has all it needs */
	memset(a.operand, 0xa5, sizeof(a.operand));
	memset(a.swap, 0xa5, sizeof(a.swap));
	ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	ub_pair_same_bytes(p, theirs, want, UB_ATOMIC_MAX);
	ub_pair_same_bytes(p, own, before, UB_ATOMIC_MAX);
}

void
ub_atomic_all(struct ub_pair *p, uint32_t local, uint32_t remote)
{
	uint64_t id = 0;

	for (unsigned int kind = 0; kind < UB_ATOMIC_KINDS; kind++)
		for (uint32_t len = 1; len <= UB_ATOMIC_MAX; len *= 2)
			for (unsigned int k = 0; k < 2; k++)
				one(p, kind, len, local, remote, ++id);
}

/* ---- byte enables ---- */

static void
write_some(struct ub_pair *p, uint32_t local, uint32_t remote, uint32_t n, uint64_t id)
{
	urma_sge_t own = ub_pair_local(p, 0, local, n), peers = ub_pair_remote(p, 0, remote, n);
	urma_jfs_wr_t wr = ub_pair_request(p, 0, SOFTHCA_URMA_OPC_WRITE_BE, id);
	uint8_t enables[HCA_UB_BE_MAX / 8];

	for (uint32_t i = 0; i < n / 8; i++)
		enables[i] = (uint8_t)sim_random(&p->rng);
	memset(p->side[1].mem + remote, 0, n);
	wr.rw = (urma_rw_wr_t){.src = {&own, 1}, .dst = {&peers, 1}, .byte_enables = enables};
	ub_pair_post(p, 0, &wr);
	ub_pair_done(p, 0, id, URMA_CR_SUCCESS);
	for (uint32_t i = 0; i < n; i++)
		UB_PAIR_EQ(p, p->side[1].mem[remote + i],
			   enables[i / 8] >> i % 8 & 1 ? p->side[0].mem[local + i] : 0);
}

void
ub_enables_all(struct ub_pair *p, uint32_t local, uint32_t remote)
{
	for (uint32_t n = HCA_UB_BE_MIN; n <= HCA_UB_BE_MAX; n *= 2)
		write_some(p, local, remote, n, n);
}
