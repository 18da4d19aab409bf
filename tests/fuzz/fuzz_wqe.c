/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program that writes anything into its own queues and doorbell page. The input is a list of
 * steps: a byte that names the step (its low three bits), then its parameters:
 *
 *  0  u8 QP, u16 offset, u8 n, n bytes: into the send queue
 *  1  u8 QP, u16 offset, u8 n, n bytes: into the receive queue and its producer record
 *  2  wqe() below: a WQE with valid keys and addresses where the device reads next
 *  3  doorbell() below: a doorbell word for one of our QPs
 *  4  8 bytes: any doorbell word
 *  5  u8 QP, u8 how, u8 length: the peer acknowledges, refuses or answers
 *  6  u8: time passes, its square in units of 10 us
 *  7  the device runs once
 *
 * Whatever happens, only memory changes whose keys allow it, nothing leaks, and the device
 * continues.
 */

#include <string.h>

#include "abi_wqe.h"
#include "lib_doorbell.h"
#include "world.h"

#define STEPS_MAX 256u

static void
scribble(struct fuzz_input *in, const struct hca_qbuf *q, bool rq)
{
	uint32_t off = fuzz_u16(in), bytes = q->bytes;
	size_t n;
	const uint8_t *p = fuzz_bytes(in, fuzz_u8(in), &n);

	/* the producer record is important: half of the offsets are in it */
	if (rq && off & 1)
		off = bytes - 128 + (off >> 1) % 128;
	for (size_t i = 0; i < n && bytes != 0; i++)
		*(uint8_t *)hca_qbuf_at(q, (off + (uint32_t)i) % bytes) = p[i];
}

/* An SGE of a region: first byte and length from the input. */
static void
data_unit(struct world *w, struct fuzz_input *in, struct hca_data_unit *u)
{
	uint8_t which = fuzz_u8(in);
	uint16_t off = fuzz_u16(in) & 0x1fff, n = fuzz_u16(in);
	uint32_t len;
	uint8_t *base = world_region(w, which % WORLD_REGIONS, &len);

	u->byte_cnt = hca_cpu_to_le32(n & 0x7ff);
	u->lkey = hca_cpu_to_le32(w->mr[which % WORLD_REGIONS]->lkey ^ (which & 0x80 ? 1 : 0));
	u->addr = hca_cpu_to_le64((uintptr_t)base + off - 16);
}

/* u8 window, damage; u8 region; u16 offset; u16 length; u8 rights */
static void
bind_unit(struct world *w, struct fuzz_input *in, struct hca_bind_unit *u)
{
	uint8_t which = fuzz_u8(in), region = fuzz_u8(in) % WORLD_REGIONS;
	const struct softhca_mw *mw = w->mw[which & 1];
	uint32_t len, damage = which & 0x80 ? 1u << (which >> 1 & 31) : 0;
	uint8_t *base = world_region(w, region, &len);

	u->old_key = hca_cpu_to_le32(mw->rkey);
	u->new_key = hca_cpu_to_le32(mw->rkey ^ damage);
	u->lkey = hca_cpu_to_le32(w->mr[region]->lkey);
	u->addr = hca_cpu_to_le64((uintptr_t)base + (fuzz_u16(in) & 0x1fff) - 16);
	u->length = hca_cpu_to_le64(fuzz_u16(in) & 0x1fff);
	u->access = hca_cpu_to_le32(fuzz_u8(in));
}

/*
 * u8 QP, u8 slots after the next one, u8 units, u8 kinds of units after the next unit, and those
 * units
 */
static void
wqe(struct world *w, struct fuzz_input *in)
{
	struct hca_qp *q = world_store(w, fuzz_u8(in) % WORLD_QPS);
	uint32_t log = q->parser.sq_stride_log, mask = (1u << q->parser.sq_size_log) - 1;
	uint32_t slot = (q->parser.sq_index + fuzz_u8(in) % 4) & mask;
	uint8_t units = fuzz_u8(in) % 20, what = fuzz_u8(in);
	uint8_t buf[512] = {0};
	struct hca_next_unit *next = (void *)buf;
	uint32_t at = sizeof(*next);

	if (q->parser.sq.bytes == 0)
		return;
	next->nda_nop =
		hca_cpu_to_le32(HCA_NEXT_MAKE_NDA_NOP(((slot + 1) & mask) << log, fuzz_u8(in)));
	next->nee_nds = hca_cpu_to_le32(HCA_NEXT_MAKE_NEE_NDS(what >> 7, fuzz_u8(in)));
	next->flags = hca_cpu_to_le32(HCA_WQE_FLAG_SIGNALED);
	for (uint32_t i = 0; i < (what & 3); i++, at += 16) { /* raddr, atomic */
		hca_put_be64(buf + at, 0x10000);
		hca_put_be32(buf + at + 8, 0x1234);
	}
	if (what & 8) {
		bind_unit(w, in, (void *)(buf + sizeof(*next)));
		at = sizeof(*next) + sizeof(struct hca_bind_unit);
	}
	if (what & 16) /* invalidate */
		next->imm_data = hca_cpu_to_le32(w->mw[what >> 5 & 1]->rkey);
	for (uint32_t i = 0; i < units && at + 16 <= sizeof(buf); i++, at += 16)
		data_unit(w, in, (void *)(buf + at));
	if (what & 4) { /* inline instead */
		((struct hca_inline_unit *)(void *)(buf + 16 + 16 * (what & 3)))->length =
			hca_cpu_to_le32(HCA_INLINE_FLAG | fuzz_u16(in));
	}
	memcpy(hca_qbuf_at(&q->parser.sq, slot << log), buf, (size_t)1 << log);
}

static void
ring(struct world *w, uint64_t word)
{
	struct lib_uar *uar = &((struct lib_context *)w->ctx)->uar;
	uint32_t number;

	/* 0 is not a word: the slot would stay taken and empty */
	if (word != 0 && lib_doorbell_try(uar, &number))
		lib_doorbell_fill(uar, number, word);
}

/* u8 QP, u8 opcode, u8 size, u8: fence and distance from the correct index */
static void
doorbell(struct world *w, struct fuzz_input *in)
{
	static const uint8_t ops[] = {
		HCA_OP_NOP,
#define X(name, code, wr, wc, kind, flags, bth) code,
		HCA_OP_LIST(X)
#undef X
			HCA_DB_OPCODE_KICK
	};
	uint8_t qp = fuzz_u8(in) % WORLD_QPS, op = fuzz_u8(in), size = fuzz_u8(in),
		how = fuzz_u8(in);
	const struct hca_qp *q = world_store(w, qp);
	uint32_t index = q->parser.sq_index + (how >= 0xf0 ? how & 15 : 0);

	ring(w, HCA_DB_MAKE(index, how & 1, ops[op % sizeof(ops)], w->qp[qp]->qp_num, size));
}

static void
answer(struct world *w, struct fuzz_input *in)
{
	static const uint8_t syndromes[] = {0x1f, 0x60, 0x61, 0x62, 0x63, 0x21};
	uint8_t qp = fuzz_u8(in) % WORLD_QPS, how = fuzz_u8(in), len = fuzz_u8(in);
	const struct hca_qp *q = world_store(w, qp);
	uint8_t ext[12] = {0};
	struct world_packet p = {.to = qp, .ext = ext, .ext_len = 4, .fill = 0x5a};

	ext[0] = syndromes[how / 4 % sizeof(syndromes)];
	p.psn = hca_una_psn(q->sq_una);
	switch (how & 3) {
	case 0:
		p.opcode = HCA_BTH_RC_ACK;
		p.psn = (q->req_tx.max_psn - 1) & HCA_PSN_MASK;
		break;
	case 1:
		p.opcode = HCA_BTH_RC_READ_RESP_ONLY;
		p.payload_len = len;
		break;
	case 2:
		p.opcode = HCA_BTH_RC_ATOMIC_ACK;
		p.ext_len = 12;
		break;
	default:
		p.opcode = HCA_BTH_RC_SEND_ONLY;
		p.psn = q->ee.epsn;
		p.ext_len = 0;
		p.payload_len = len;
	}
	world_packet(w, &p);
}

static void
step(struct world *w, struct fuzz_input *in)
{
	uint64_t word = 0;
	uint32_t n;

	switch (fuzz_u8(in) & 7) {
	case 0:
		scribble(in, &world_store(w, fuzz_u8(in) % WORLD_QPS)->parser.sq, false);
		break;
	case 1:
		scribble(in, &world_store(w, fuzz_u8(in) % WORLD_QPS)->ee.rq, true);
		break;
	case 2:
		wqe(w, in);
		break;
	case 3:
		doorbell(w, in);
		break;
	case 4:
		for (unsigned int i = 0; i < 8; i++)
			word = word << 8 | fuzz_u8(in);
		ring(w, word);
		break;
	case 5:
		answer(w, in);
		break;
	case 6:
		n = fuzz_u8(in);
		world_poll(w, 2);
		w->now += (uint64_t)n * n * 10000;
		world_poll(w, 2);
		break;
	default:
		world_poll(w, 1);
	}
}

static void
run(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	struct world *w = world_begin();

	w->lying = true;
	for (unsigned int i = 0; i < STEPS_MAX && fuzz_left(&in) != 0; i++)
		step(w, &in);
	world_end(w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	world_run(run, data, size);
	return 0;
}
