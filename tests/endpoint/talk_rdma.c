/* SPDX-License-Identifier: BSD-3-Clause */

/* Writes, reads and atomics of a conversation. */

#include <errno.h>
#include <string.h>

#include "talk_impl.h"

#define AT_WORD (PEER_BYTES - 64)
#define AT_OLD (PEER_BYTES - 128)

/* ---- writes and reads ---- */

struct access {
	const struct talk_shape *s;
	struct talk_place place;
};

static struct access
access_of(const struct talk_flow *f, enum talk_op op, const struct talk_place *place)
{
	struct talk_place usual = {TALK_REACHED, f->p->other.addr + TALK_REACHED, f->p->other.rkey};

	return (struct access){talk_shape(f, op), place != NULL ? *place : usual};
}

static struct softhca_send_wr
access_wr(const struct access *a, struct softhca_sge *sge, int parts)
{
	return (struct softhca_send_wr){
		.opcode = a->s->opcode,
		.send_flags = a->s->flags,
		.sg_list = sge,
		.num_sge = parts,
		.wr.rdma = {a->place.addr + TALK_OFFSET, a->place.rkey},
	};
}

/*
 * UC: the next message tells that the write has arrived or never will. If only its first packets
 * arrived, the bytes after them must be unchanged.
 */
static int
write_and_tell(struct talk_flow *f, struct softhca_send_wr *wr)
{
	struct softhca_sge tell, in;
	struct softhca_send_wr behind = {
		.opcode = SOFTHCA_WR_SEND,
		.sg_list = &tell,
		.num_sge = 1,
	};
	struct softhca_wc wc;
	int err;

	talk_lay_out(&tell, f, TALK_OUT, PEER_INLINE, 1);
	err = talk_post(f, wr);
	if (err == 0)
		err = talk_post(f, &behind);
	talk_lay_out(&in, f, TALK_IN, TALK_RECV_BYTES, 1);
	return err == 0 ? talk_collect(f, 2, &in, 1, &wc) : talk_failed("post", err);
}

static int
write_arrived(const struct talk_flow *f, const struct access *a, bool may_be_lost)
{
	struct softhca_sge to;
	uint32_t n = a->s->bytes, i;

	talk_lay_out(&to, f, a->place.at, n, 1);
	i = talk_right(f, &to, 0, n);
	if (i == n)
		return 1;
	for (uint32_t rest = i; may_be_lost && rest < n; rest++)
		may_be_lost = *talk_byte(&to, rest) == 0;
	return may_be_lost ? 0 : talk_differs(f, a->s->op, i);
}

static int
attempt_write(struct talk_flow *f, const void *arg)
{
	const struct access *a = arg;
	struct softhca_sge out[TALK_PARTS], in;
	struct softhca_send_wr wr;
	int err = 0;

	f->serial++;
	memset(f->p->buf + a->place.at, 0, a->s->bytes + TALK_OFFSET);
	wr = access_wr(a, out, talk_lay_out(out, f, TALK_OUT, a->s->bytes, a->s->parts));
	talk_fill(f, out, a->s->bytes);
	if (talk_unreliable(f))
		err = talk_post_recv(f, &in, 1);
	if (err == 0)
		err = peer_meet(f->sock);
	if (err == 0 && talk_unreliable(f)) {
		err = write_and_tell(f, &wr);
		if (err == 0)
			err = write_arrived(f, a, true);
		else if (err > 0)
			err = 0;
		return err < 0 ? err : talk_agree(f->sock, err == 1);
	}
	if (err == 0)
		err = talk_post(f, &wr);
	if (err == 0)
		err = talk_done(f);
	if (err == 0)
		err = peer_meet(f->sock);
	if (err != 0)
		return talk_failed("write", err);
	err = write_arrived(f, a, false);
	return err < 0 ? err : talk_agree(f->sock, true);
}

int
talk_write(struct talk_flow *f, enum talk_op op, const struct talk_place *place)
{
	struct access a = access_of(f, op, place);

	return talk_insist(f, op, attempt_write, &a);
}

static int
attempt_read(struct talk_flow *f, const void *arg)
{
	const struct access *a = arg;
	struct softhca_sge source, in[TALK_PARTS];
	struct softhca_send_wr wr;
	uint32_t i;
	int err;

	f->serial++;
	talk_lay_out(&source, f, a->place.at, a->s->bytes, 1);
	talk_fill(f, &source, a->s->bytes);
	memset(f->p->buf + TALK_IN, 0, TALK_QUARTER);
	wr = access_wr(a, in, talk_lay_out(in, f, TALK_IN, a->s->bytes, a->s->parts));
	err = peer_meet(f->sock);
	if (err == 0)
		err = talk_post(f, &wr);
	if (err == 0)
		err = talk_done(f);
	if (err != 0)
		return talk_failed("read", err);
	i = talk_right(f, in, 0, a->s->bytes);
	return i == a->s->bytes ? talk_agree(f->sock, true) : talk_differs(f, a->s->op, i);
}

int
talk_read(struct talk_flow *f, enum talk_op op, const struct talk_place *place)
{
	struct access a = access_of(f, op, place);

	return talk_insist(f, op, attempt_read, &a);
}

/* ---- atomics ---- */

int
talk_atomic(struct talk_flow *f, const struct talk_shape *s)
{
	uint64_t *word = (uint64_t *)(f->p->buf + AT_WORD), *old = (uint64_t *)(f->p->buf + AT_OLD);
	uint64_t mine = (uint64_t)f->mine << 32 | ++f->serial;
	uint64_t others = (uint64_t)f->others << 32 | f->serial;
	bool swaps = s->opcode == SOFTHCA_WR_ATOMIC_CMP_AND_SWP;
	struct softhca_sge sge = {(uintptr_t)old, 8, f->p->mr->lkey};
	struct softhca_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = s->opcode,
		.wr.atomic = {.remote_addr = f->p->other.addr + AT_WORD,
			      .rkey = f->p->other.rkey,
			      .compare_add = others,
			      .swap = ~others},
	};
	int err;

	*old = 0;
	__atomic_store_n(word, mine, __ATOMIC_RELEASE);
	err = peer_meet(f->sock);
	if (err == 0)
		err = talk_post(f, &wr);
	if (err == 0)
		err = talk_done(f);
	if (err == 0)
		err = peer_meet(f->sock);
	if (err == 0 && (*old != others ||
			 __atomic_load_n(word, __ATOMIC_ACQUIRE) != (swaps ? ~mine : 2 * mine)))
		err = -EILSEQ;
	if (err != 0)
		return talk_failed("atomic", err);
	f->tally->verified[s->op]++;
	return peer_meet(f->sock);
}
