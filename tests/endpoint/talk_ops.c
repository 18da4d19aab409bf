/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Operations of a conversation, in both directions at once; the receiving end verifies every byte.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "talk_impl.h"

#define QKEY_OF_QP 0x80000000u
/*
 * Unreliable services: time after which a message counts as lost, and limit of successive losses.
 */
#define LOST_S 2.0
#define ATTEMPTS 20

#define RC (1u << SOFTHCA_QPT_RC | 1u << SOFTHCA_QPT_XRC_SEND)
#define UC (1u << SOFTHCA_QPT_UC)
#define UD (1u << SOFTHCA_QPT_UD)

static const struct talk_shape shapes[] = {
	{TALK_SEND, TALK_TWO_SIDED, SOFTHCA_WR_SEND, 0, 9003, 1, RC | UC},
	{TALK_SEND, TALK_TWO_SIDED, SOFTHCA_WR_SEND, 0, 2001, 1, UD},
	{TALK_SEND_IMM, TALK_TWO_SIDED, SOFTHCA_WR_SEND_WITH_IMM, SOFTHCA_SEND_SOLICITED, 3000, 1,
	 RC | UC | UD},
	{TALK_SEND_INLINE, TALK_TWO_SIDED, SOFTHCA_WR_SEND, SOFTHCA_SEND_INLINE, PEER_INLINE, 1,
	 RC | UC | UD},
	{TALK_SEND_SGES, TALK_TWO_SIDED, SOFTHCA_WR_SEND, 0, 3333, TALK_PARTS, RC | UC | UD},
	{TALK_WRITE_IMM, TALK_TWO_SIDED, SOFTHCA_WR_RDMA_WRITE_WITH_IMM, 0, 9001, 1, RC | UC},
	{TALK_WRITE, TALK_WRITES, SOFTHCA_WR_RDMA_WRITE, 0, 60001, 1, RC | UC},
	{TALK_WRITE_INLINE, TALK_WRITES, SOFTHCA_WR_RDMA_WRITE, SOFTHCA_SEND_INLINE, PEER_INLINE, 1,
	 RC | UC},
	{TALK_WRITE_SGES, TALK_WRITES, SOFTHCA_WR_RDMA_WRITE, 0, 20002, TALK_PARTS, RC | UC},
	{TALK_READ, TALK_READS, SOFTHCA_WR_RDMA_READ, 0, 60001, 1, RC},
	{TALK_READ_SGES, TALK_READS, SOFTHCA_WR_RDMA_READ, 0, 20002, TALK_PARTS, RC},
	{TALK_FETCH_ADD, TALK_ATOMICS, SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 1, RC},
	{TALK_CMP_SWAP, TALK_ATOMICS, SOFTHCA_WR_ATOMIC_CMP_AND_SWP, 0, 8, 1, RC},
	/* of talk_mw.c: through a window, and ends of one */
	{TALK_MW_WRITE, TALK_WRITES, SOFTHCA_WR_RDMA_WRITE, 0, 20002, 1, 0},
	{TALK_MW2_WRITE, TALK_WRITES, SOFTHCA_WR_RDMA_WRITE, 0, 20002, 1, 0},
	{TALK_MW_READ, TALK_READS, SOFTHCA_WR_RDMA_READ, 0, 20002, 1, 0},
	{TALK_MW2_READ, TALK_READS, SOFTHCA_WR_RDMA_READ, 0, 20002, 1, 0},
	{TALK_SEND_INV, TALK_TWO_SIDED, SOFTHCA_WR_SEND_WITH_INV, 0, 100, 1, 0},
};

const struct talk_shape *
talk_shape(const struct talk_flow *f, enum talk_op op)
{
	const struct talk_shape *s = shapes;

	while (s->op != op || (s->services != 0 && (s->services & 1u << f->tx->qp_type) == 0))
		s++;
	return s;
}

bool
talk_unreliable(const struct talk_flow *f)
{
	return f->tx->qp_type == SOFTHCA_QPT_UC || f->tx->qp_type == SOFTHCA_QPT_UD;
}

static uint32_t
grh(const struct talk_flow *f)
{
	return f->tx->qp_type == SOFTHCA_QPT_UD ? SOFTHCA_GRH_BYTES : 0;
}

/* ---- data: the serial number in front, then a pattern; in one piece or in parts ---- */

static uint8_t
content(uint32_t who, uint32_t serial, uint32_t i)
{
	return i < sizeof(serial) ? (uint8_t)(serial >> 8 * i)
				  : peer_pattern(who * 3 + serial * 5, i);
}

int
talk_lay_out(struct softhca_sge *sge, const struct talk_flow *f, uint32_t at, uint32_t bytes,
	     uint32_t parts)
{
	static const uint32_t offsets[TALK_PARTS] = {TALK_OFFSET, 4099, 9001},
			      lengths[TALK_PARTS - 1] = {57, 1002};
	uint64_t base = (uintptr_t)f->p->buf + at;

	for (uint32_t i = 0; i < parts; i++) {
		uint32_t n = i + 1 < parts ? lengths[i] : bytes;

		sge[i] = (struct softhca_sge){base + offsets[i], n, f->p->mr->lkey};
		bytes -= n;
	}
	return (int)parts;
}

uint8_t *
talk_byte(const struct softhca_sge *sge, uint32_t i)
{
	while (i >= sge->length)
		i -= (sge++)->length;
	return (uint8_t *)(uintptr_t)sge->addr + i;
}

void
talk_fill(const struct talk_flow *f, const struct softhca_sge *sge, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		*talk_byte(sge, i) = content(f->mine, f->serial, i);
}

uint32_t
talk_right(const struct talk_flow *f, const struct softhca_sge *sge, uint32_t skip, uint32_t bytes)
{
	uint32_t i = 0;

	while (i < bytes && *talk_byte(sge, skip + i) == content(f->others, f->serial, i))
		i++;
	return i;
}

int
talk_differs(const struct talk_flow *f, enum talk_op op, uint32_t i)
{
#define X(name) #name,
	static const char *const names[] = { TALK_OPS(X) };
#undef X
	char what[80];

	snprintf(what, sizeof(what), "%s, serial %u: byte %u differs", names[op], f->serial, i);
	return talk_failed(what, -EILSEQ);
}

/* ---- posting, waiting ---- */

int
talk_post(const struct talk_flow *f, struct softhca_send_wr *wr)
{
	struct softhca_send_wr *bad;

	if (f->tx->qp_type == SOFTHCA_QPT_UD) {
		wr->wr.ud.ah = f->p->ah;
		wr->wr.ud.remote_qpn = f->p->other.qpn;
		wr->wr.ud.remote_qkey = QKEY_OF_QP;
	}
	wr->qp_type.xrc.remote_srqn = f->remote_srqn;
	wr->send_flags |= SOFTHCA_SEND_SIGNALED;
	wr->wr_id = f->serial;
	return softhca_post_send(f->tx, wr, &bad);
}

int
talk_done(const struct talk_flow *f)
{
	struct softhca_wc wc;
	int err = peer_wait(f->p, &wc, TALK_WAIT_S);

	if (err == 0 && (wc.wr_id != f->serial || (wc.opcode & SOFTHCA_WC_RECV) != 0))
		err = -EILSEQ;
	return err;
}

int
talk_post_recv(struct talk_flow *f, struct softhca_sge *sge, uint32_t parts)
{
	struct softhca_recv_wr wr = {.sg_list = sge}, *bad;

	wr.num_sge = talk_lay_out(sge, f, TALK_IN, TALK_RECV_BYTES, parts);
	if (f->posted != 0)
		return 0;
	f->posted++;
	return f->srq != NULL ? softhca_post_srq_recv(f->srq, &wr, &bad)
			      : softhca_post_recv(f->rx, &wr, &bad);
}

/* The serial number a message shows. */
static uint32_t
shown(const struct talk_flow *f, const struct softhca_sge *in, const struct softhca_wc *wc)
{
	uint32_t serial = 0;

	if ((wc->wc_flags & SOFTHCA_WC_WITH_IMM) != 0)
		return wc->imm_data;
	for (uint32_t i = 0; i < sizeof(serial); i++)
		serial |= (uint32_t)*talk_byte(in, grh(f) + i) << 8 * i;
	return serial;
}

int
talk_collect(struct talk_flow *f, unsigned int sends, struct softhca_sge *in, uint32_t parts,
	     struct softhca_wc *recv)
{
	bool got = false;

	while (sends != 0 || !got) {
		bool may_be_lost = talk_unreliable(f) && sends == 0;
		struct softhca_wc wc;
		int err = peer_wait(f->p, &wc, may_be_lost ? LOST_S : TALK_WAIT_S);

		if (err == -ETIMEDOUT && may_be_lost)
			return 1;
		if (err != 0)
			return talk_failed(err > 0 ? softhca_wc_status_str((uint32_t)err)
						   : "completion",
					   err);
		if ((wc.opcode & SOFTHCA_WC_RECV) == 0) {
			sends--;
			continue;
		}
		f->posted--;
		*recv = wc;
		got = !talk_unreliable(f) || shown(f, in, &wc) >= f->serial;
		err = got ? 0 : talk_post_recv(f, in, parts);
		if (err != 0)
			return talk_failed("post_recv", err);
	}
	return 0;
}

/* ---- sends ---- */

struct exchange {
	const struct talk_shape *s;
	struct softhca_send_wr wr;
	uint32_t invalidated;
};

static int
verify_recv(const struct talk_flow *f, const struct exchange *x, const struct softhca_sge *in,
	    const struct softhca_wc *wc)
{
	uint32_t opcode = x->s->opcode, bytes = x->s->bytes, skip = grh(f), i;
	bool write = opcode == SOFTHCA_WR_RDMA_WRITE_WITH_IMM;
	bool imm = opcode == SOFTHCA_WR_SEND_WITH_IMM || write;
	bool inv = opcode == SOFTHCA_WR_SEND_WITH_INV;
	struct softhca_sge to;

	if (wc->opcode != (write ? SOFTHCA_WC_RECV_RDMA_WITH_IMM : SOFTHCA_WC_RECV) ||
	    wc->byte_len != bytes + skip || wc->qp_num != f->rx->qp_num ||
	    imm != ((wc->wc_flags & SOFTHCA_WC_WITH_IMM) != 0) ||
	    inv != ((wc->wc_flags & SOFTHCA_WC_WITH_INV) != 0))
		return talk_failed("a receive completes otherwise than it should", -EILSEQ);
	if ((imm && wc->imm_data != f->serial) || (inv && wc->invalidated_rkey != x->invalidated))
		return talk_failed("immediate data or invalidated key", -EILSEQ);
	if (write)
		talk_lay_out(&to, f, TALK_REACHED, bytes, 1);
	i = talk_right(f, write ? &to : in, skip, bytes);
	return i == bytes ? 0 : talk_differs(f, x->s->op, i);
}

/* Both ends post and receive: 1 if both did, 0 if a message was lost. */
static int
attempt_send(struct talk_flow *f, const void *arg)
{
	const struct exchange *x = arg;
	struct softhca_send_wr wr = x->wr;
	struct softhca_sge out[TALK_PARTS], in[TALK_PARTS];
	uint32_t parts = x->s->parts > 1 ? 2 : 1;
	struct softhca_wc wc;
	int err;

	f->serial++;
	memset(f->p->buf + TALK_IN, 0, 2ul * TALK_QUARTER);
	wr.num_sge = talk_lay_out(out, f, TALK_OUT, x->s->bytes, x->s->parts);
	wr.sg_list = out;
	talk_fill(f, out, x->s->bytes);
	if (x->s->opcode != SOFTHCA_WR_SEND_WITH_INV)
		wr.imm_data = f->serial;
	err = talk_post_recv(f, in, parts);
	if (err == 0)
		err = peer_meet(f->sock);
	if (err == 0)
		err = talk_post(f, &wr);
	if (err != 0)
		return talk_failed("post", err);
	err = talk_collect(f, 1, in, parts, &wc);
	if (err == 0)
		err = verify_recv(f, x, in, &wc);
	return err < 0 ? err : talk_agree(f->sock, err == 0);
}

int
talk_insist(struct talk_flow *f, enum talk_op op, talk_attempt attempt, const void *arg)
{
	int both = 0;

	for (unsigned int i = 0; i < ATTEMPTS && both == 0; i++) {
		both = attempt(f, arg);
		f->tally->lost += both == 0;
	}
	if (both < 0)
		return both;
	if (both == 0)
		return talk_failed("message after message is lost", -ETIMEDOUT);
	f->tally->verified[op]++;
	return 0;
}

int
talk_send(struct talk_flow *f, enum talk_op op, uint32_t invalidate, uint32_t invalidated)
{
	struct exchange x = {.s = talk_shape(f, op), .invalidated = invalidated};

	x.wr.opcode = x.s->opcode;
	x.wr.send_flags = x.s->flags;
	x.wr.invalidate_rkey = invalidate;
	if (x.s->opcode == SOFTHCA_WR_RDMA_WRITE_WITH_IMM) {
		x.wr.wr.rdma.remote_addr = f->p->other.addr + TALK_REACHED + TALK_OFFSET;
		x.wr.wr.rdma.rkey = f->p->other.rkey;
	}
	return talk_insist(f, op, attempt_send, &x);
}

/* ---- all of a service ---- */

int
talk_ops(struct talk_flow *f)
{
	int err = 0;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]) && err == 0; i++) {
		const struct talk_shape *s = &shapes[i];

		if ((s->services & 1u << f->tx->qp_type) == 0)
			continue;
		if (s->kind == TALK_TWO_SIDED)
			err = talk_send(f, s->op, 0, 0);
		else if (s->kind == TALK_WRITES)
			err = talk_write(f, s->op, NULL);
		else if (s->kind == TALK_READS)
			err = talk_read(f, s->op, NULL);
		else
			err = talk_atomic(f, s);
	}
	return err;
}
