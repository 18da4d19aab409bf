/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The receive path of a whole HCA. The input is a list of steps: a byte that names the step (its
 * low three bits), then its parameters:
 *
 *  0    u16 n, n bytes: a frame, unchanged
 *  1    u16 n, n bytes: a frame; lengths, addresses, QPN and ICRC are corrected
 *  2-4  a correct packet of a QP's peer, in few bytes (packet() below)
 *  5    u8: time passes, its square in units of 10 us
 *  6    u8 kind, u8 length / 4: post a request, or a receive; kind 7 with length FEh or FFh: an
 *	 ATOMIC WRITE or a FLUSH. A request has two SGEs, one with bit 3 of the step
 *  7    the device runs once
 *
 * Successive frames arrive in one burst.
 */

#include <string.h>

#include "world.h"
#include "wire/roce_frame.h"

#define FRAME_MAX 2048u
#define FRAMES_MAX 256u

#define POST_ONE_SGE 0x08u	   /* bit of step 6 */
#define POST_CONFIRMED (4 * 0xfeu) /* length of a step 6 */

/* Bits of a packet's control byte. */
#define CTL_ACKREQ 0x01u
#define CTL_SE 0x02u
#define CTL_BAD_PAD 0x04u
/* PSN relative to the oldest unacknowledged one, not to the expected one */
#define CTL_FROM_UNA 0x08u
#define CTL_REGION 0x10u	    /* set key and address of a region in RETH or AtomicETH */
#define CTL_WHICH(c) ((c) >> 5 & 3) /* enum world_region */
#define CTL_MIGREQ 0x80u

/* Fuzzers cannot guess 32-bit keys and 64-bit addresses, so the low bits are used as an offset. */
static void
put_region(struct world *w, uint8_t *ext, unsigned int which)
{
	uint32_t len, off = ((uint32_t)ext[6] << 8 | ext[7]) & 0x1fff;
	uint8_t *base = world_region(w, which, &len);

	hca_put_be64(ext, (uintptr_t)base + off - 16);
	hca_put_be32(ext + 8, w->mr[which]->rkey);
}

static void
packet(struct world *w, struct fuzz_input *in)
{
	uint8_t qp = fuzz_u8(in) % WORLD_QPS, opcode = fuzz_u8(in), ctl = fuzz_u8(in);
	int8_t delta = (int8_t)fuzz_u8(in);
	uint16_t payload = fuzz_u16(in) & 0x3ff;
	const struct hca_roce_opcode_info *op = &hca_roce_opcodes[opcode];
	const struct hca_qp *q = world_store(w, qp);
	uint8_t ext[64] = {0};
	size_t want = op->header_len > HCA_ROCE_BTH_LEN ? op->header_len - HCA_ROCE_BTH_LEN : 0, n;
	const uint8_t *bytes = fuzz_bytes(in, want, &n);
	struct world_packet p = {
		.to = qp,
		.opcode = opcode,
		.flags = (uint8_t)((ctl & CTL_SE ? HCA_BTH_SE : 0) |
				   (ctl & CTL_MIGREQ ? HCA_BTH_MIGREQ : 0)),
		.ackreq = ctl & CTL_ACKREQ,
		.psn = ((ctl & CTL_FROM_UNA ? hca_una_psn(q->sq_una) : q->ee.epsn) +
			(uint32_t)delta) &
		       HCA_PSN_MASK,
		.ext = ext,
		.ext_len = (uint32_t)want,
		.payload_len = op->has_payload || ctl & CTL_BAD_PAD ? payload : 0,
		.fill = opcode,
		.pad = ctl & CTL_BAD_PAD ? 1 + (payload & 1) : 0,
	};

	memcpy(ext, bytes, n);
	if (ctl & CTL_REGION && op->ext & (HCA_EXT_RETH | HCA_EXT_ATOMICETH))
		put_region(w, ext + (op->ext & HCA_EXT_FETH ? sizeof(struct hca_feth) : 0),
			   CTL_WHICH(ctl));
	world_packet(w, &p);
}

static void
frame(struct world *w, struct fuzz_input *in, bool fix)
{
	uint8_t buf[FRAME_MAX];
	size_t n;
	const uint8_t *bytes = fuzz_bytes(in, fuzz_u16(in) % FRAME_MAX, &n);

	memcpy(buf, bytes, n);
	if (fix)
		world_fix(w, buf, (uint32_t)n);
	world_frame(w, buf, (uint32_t)n);
}

static void
pass_time(struct world *w, uint32_t n)
{
	world_poll(w, 2);
	w->now += (uint64_t)n * n * 10000;
	world_poll(w, 2);
}

static void
post(struct world *w, uint8_t kind, uint32_t len, unsigned int nsge)
{
	enum world_qp qp = kind / 8 % WORLD_QPS;

	if (kind % 8 < SOFTHCA_WR_LOCAL_INV)
		world_send(w, qp, kind % 8, len, nsge);
	else if (len >= POST_CONFIRMED)
		world_send(w, qp,
			   len == POST_CONFIRMED ? SOFTHCA_WR_ATOMIC_WRITE : SOFTHCA_WR_FLUSH, len,
			   2);
	else
		world_recv(w, qp, 1 + kind / 64, len);
}

static void
step(struct world *w, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in), kind;

	switch (what & 7) {
	case 0:
	case 1:
		frame(w, in, what & 1);
		break;
	case 5:
		pass_time(w, fuzz_u8(in));
		break;
	case 6:
		kind = fuzz_u8(in);
		post(w, kind, fuzz_u8(in) * 4u, what & POST_ONE_SGE ? 1 : 2);
		break;
	case 7:
		world_poll(w, 1);
		break;
	default:
		packet(w, in);
	}
}

static void
run(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	struct world *w = world_begin();

	for (unsigned int i = 0; i < FRAMES_MAX && fuzz_left(&in) != 0; i++)
		step(w, &in);
	world_end(w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	world_run(run, data, size);
	return 0;
}
