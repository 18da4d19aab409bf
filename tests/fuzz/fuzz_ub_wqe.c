/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program that writes anything into the queues of its Jetty and JFR, and into its doorbell page,
 * while another Jetty, the bystander, uses the same TP to the same peer, which is honest. The first
 * byte is the kind of the TP (ub_world.c); then a list of steps, a byte that names the step (its
 * low three bits) and its parameters:
 *
 *  0  u8 queue, u16 offset, u8 n, n bytes: into the send queue, the receive queue and its producer
 *     record, or the JFR
 *  1  wqe() below: a WQE of valid units where the device reads next, and its doorbell
 *  2  doorbell() below: a doorbell word for one of its queues
 *  3  8 bytes: any doorbell word
 *  4  u8 status: how the peer answers from now on
 *  5  u8 to, u8 length / 8: the peer sends to the Jetty or JFR
 *  6  u8: time passes, its square in units of 10 us, and the bystander works
 *  7  the device runs once; step byte & 8: a good request or receive is posted
 *
 * Whatever happens, the bystander's requests end well and at their pace, no packet of the TP leaves
 * twice or not at all, only memory changes whose keys allow it, and nothing leaks.
 */

#include <string.h>

#include "abi_tp.h"
#include "abi_wqe.h"
#include "lib_doorbell.h"
#include "ub_world_impl.h"
#include "urma_impl.h"

#define STEPS_MAX 256u

static struct urma_queue *
jetty(const struct ub_world *w)
{
	return (struct urma_queue *)w->jetty;
}

static void
scribble(struct ub_world *w, struct fuzz_input *in)
{
	struct urma_queue *q = jetty(w);
	struct urma_jfrq *r = (struct urma_jfrq *)w->jfr;
	struct lib_wq *wqs[] = {&q->sq, &q->rq.wq, &r->rq.wq, &q->sq};
	const struct hca_rq_record *records[] = {NULL, q->rq.record, r->rq.record, NULL};
	unsigned int which = fuzz_u8(in) % RTE_DIM(wqs);
	uint32_t off = fuzz_u16(in);
	const uint8_t *p;
	size_t n;

	p = fuzz_bytes(in, fuzz_u8(in), &n);
	/* the producer record is important: half of the offsets are in it */
	if (records[which] != NULL && off & 1)
		off = (uint32_t)((const uint8_t *)records[which] - wqs[which]->buf) +
		      (off >> 1) % 128;
	for (size_t i = 0; i < n; i++)
		wqs[which]->buf[(off + i) % wqs[which]->bytes] = p[i];
}

static void
ring(struct ub_world *w, uint64_t word)
{
	struct lib_uar *uar = &((struct lib_context *)w->lib)->uar;
	uint32_t number;

	/* 0 is not a word: the slot would stay taken and empty */
	if (word != 0 && lib_doorbell_try(uar, &number))
		lib_doorbell_fill(uar, number, word);
}

static const uint8_t ops[] = {HCA_OP_SEND,
			      HCA_OP_SEND_IMM,
			      HCA_OP_RDMA_WRITE,
			      HCA_OP_RDMA_WRITE_IMM,
			      HCA_OP_RDMA_READ,
			      HCA_OP_WRITE_NOTIFY,
			      HCA_OP_WRITE_BE,
			      HCA_OP_ATOMIC,
			      HCA_OP_NOP,
			      HCA_DB_OPCODE_KICK,
			      0x1e,
			      0x02};

/* u8 opcode, u8 size, u8 whose and distance from the index that is due */
static void
doorbell(struct ub_world *w, struct fuzz_input *in)
{
	uint8_t op = fuzz_u8(in), size = fuzz_u8(in), how = fuzz_u8(in);
	const urma_jetty_id_t *ids[] = {&w->jetty->jetty_id, &w->jetty->jetty_id, &w->jfs->jfs_id,
					&w->theirs->jetty_id};
	const urma_jetty_id_t *id = ids[how & 3];
	const struct hca_qp *q = ub_world_store(w, id);
	uint32_t index = q->parser.sq_index + (how >= 0xe0 ? how >> 3 & 3 : 0);

	ring(w,
	     HCA_DB_MAKE(index, how >> 2 & 1, ops[op % sizeof(ops)], ub_world_number(w, id), size));
}

struct building {
	uint8_t bytes[512] __attribute__((aligned(16)));
	uint32_t at;
};

static void *
add(struct building *b, uint32_t n)
{
	void *p = b->bytes + b->at;

	b->at += n;
	return p;
}

/*
 * u8 TP[1:0], TC[3:2], token[4], TP of a stranger[6], odd[7]; u8 order; u8 atomic; u8 bytes of
 * operands; [u8 at, u8]
 */
static uint8_t
ub_unit(struct ub_world *w, struct fuzz_input *in, struct hca_ub_unit *u)
{
	/* of peer 1, which this client has not imported: its group, and its TP */
	static const uint32_t strange[] = {HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 1),
					   HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, UB_WORLD_TPN(1))};
	static const uint32_t numbers[] = {HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 0),
					   HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, 1),
					   HCA_UB_MAKE_NUMBER(HCA_UB_TO_TP, UB_WORLD_TPN(0)),
					   HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0)};
	uint8_t what = fuzz_u8(in), order = fuzz_u8(in), atomic = fuzz_u8(in), at;

	u->number = hca_cpu_to_le32(what & 0x40 ? strange[what & 1] : numbers[what & 3]);
	u->tc = hca_cpu_to_le32(HCA_UB_MAKE_TC(0x800u + (what >> 2 & 3), 1, 0));
	u->token = hca_cpu_to_le32(UB_WORLD_TOKEN);
	u->order = hca_cpu_to_le32(HCA_UB_MAKE_ORDER(order & 7, what >> 4 & 1, order >> 4 & 1,
						     HCA_UB_TA_COMPARE_SWAP + atomic % 10,
						     atomic >> 5));
	u->data = hca_cpu_to_le64(0x1122334455667788ull);
	u->tc_token = u->token;
	u->operands = hca_cpu_to_le32(fuzz_u8(in));
	if (what & 0x80) {
		at = fuzz_u8(in) % sizeof(*u);
		((uint8_t *)u)[at] = fuzz_u8(in);
	}
	return what & 0x40 ? 0 : what & 3;
}

static void
address(struct building *b)
{
	struct hca_ud_unit *u = add(b, sizeof(*u));

	u->port = hca_cpu_to_le32(HCA_UD_MAKE_PORT(1, 0, 64, 0));
	u->mac_lo = hca_cpu_to_le32(HCA_UD_MAKE_MAC_LO(UINT64_C(0x020000000002), 0));
	u->dmac_hi = hca_cpu_to_le32((uint32_t)(UINT64_C(0x020000000002) >> 16));
	memcpy(u->dgid + 10, "\xff\xff\x0a\x4d\0\2", 6);
}

/* u8 region, its key damaged[7]; u16 offset; u16 length */
static void
data_unit(struct ub_world *w, struct fuzz_input *in, struct hca_data_unit *u)
{
	uint8_t which = fuzz_u8(in);
	uint16_t off = fuzz_u16(in) & 0x1fff, n = fuzz_u16(in);
	uint32_t len, region = which % UB_WORLD_REGIONS;
	uint8_t *base;

	base = ub_world_region(w, region, &len);
	u->byte_cnt = hca_cpu_to_le32(n & 0x1fff);
	u->lkey = hca_cpu_to_le32(ub_world_lkey(w, region) ^ (which & 0x80 ? 1 : 0));
	u->addr = hca_cpu_to_le64((uintptr_t)base + off - 16);
}

/*
 * u8 opcode, u8 data units[2:0], inline[3], more WQEs behind it[7:4]; UB unit; operands' places as
 * the opcode needs them; data units
 */
static void
wqe(struct ub_world *w, struct fuzz_input *in)
{
	struct urma_queue *q = jetty(w);
	const struct hca_qp *store = ub_world_store(w, &w->jetty->jetty_id);
	struct building b = {.at = 0};
	uint8_t op = ops[fuzz_u8(in) % 8], how = fuzz_u8(in);
	struct hca_next_unit *next = add(&b, sizeof(*next));
	struct hca_ub_unit *ub = add(&b, sizeof(*ub));
	uint8_t to = ub_unit(w, in, ub);
	bool sends = op == HCA_OP_SEND || op == HCA_OP_SEND_IMM;
	uint32_t slot = store->parser.sq_index & q->sq.mask, n;

	next->flags = hca_cpu_to_le32(HCA_WQE_FLAG_SIGNALED);
	next->nda_nop = hca_cpu_to_le32(
		HCA_NEXT_MAKE_NDA_NOP(((slot + 1) & q->sq.mask) << q->sq.log_stride, op));
	next->nee_nds = hca_cpu_to_le32(HCA_NEXT_MAKE_NEE_NDS(0, how >> 4));
	if (!sends) {
		struct hca_raddr_unit *r = add(&b, sizeof(*r));

		r->raddr = hca_cpu_to_le64(0x10000);
		r->rkey = hca_cpu_to_le32(0x4321);
	}
	if (op == HCA_OP_WRITE_NOTIFY) {
		struct hca_notify_unit *u = add(&b, sizeof(*u));

		u->addr = hca_cpu_to_le64(0x20000);
		u->token_id = hca_cpu_to_le32(0x4321);
	}
	n = hca_le32_to_cpu(ub->operands);
	if (op == HCA_OP_ATOMIC || op == HCA_OP_WRITE_BE)
		memset(add(&b, RTE_MIN(RTE_ALIGN_CEIL(n, 16) << (op == HCA_OP_ATOMIC), 128u)),
		       (int)n, 1);
	if (sends && to == 3)
		address(&b);
	if (how & 8) {
		struct hca_inline_unit *u = add(&b, 80);

		u->length = hca_cpu_to_le32(HCA_INLINE_FLAG | (fuzz_u8(in) % 77));
	}
	for (n = 0; n < (how & 7); n++)
		data_unit(w, in, add(&b, sizeof(struct hca_data_unit)));
	memcpy(q->sq.buf + ((size_t)slot << q->sq.log_stride), b.bytes,
	       RTE_MIN(sizeof(b.bytes), (size_t)1 << q->sq.log_stride));
	ring(w, HCA_DB_MAKE(store->parser.sq_index, 0, op, ub_world_number(w, &w->jetty->jetty_id),
			    b.at / 16));
	ub_world_poll(w, 1);
}

static void
good_ones(struct ub_world *w, uint8_t what)
{
	if (what & 0x10)
		ub_world_recv(w, what & 0x20, 1 + (what >> 6), 200);
	else
		ub_world_send(w, what >> 5, 700, false);
}

static void
step(struct ub_world *w, struct fuzz_input *in)
{
	/*
	 * done, not ready, page fault, refused: a request without an answer keeps a place at the
	 * peer
	 */
	static const uint8_t answers[] = {0, 0x20, 0x23, 0x40, 0x61, 0x62};
	uint8_t what = fuzz_u8(in), how;
	uint64_t word = 0;

	switch (what & 7) {
	case 0:
		scribble(w, in);
		break;
	case 1:
		wqe(w, in);
		break;
	case 2:
		doorbell(w, in);
		break;
	case 3:
		for (unsigned int i = 0; i < 8; i++)
			word = word << 8 | fuzz_u8(in);
		ring(w, word);
		break;
	case 4:
		w->peer[0].answer = answers[fuzz_u8(in) % RTE_DIM(answers)];
		break;
	case 5:
		how = fuzz_u8(in);
		ub_peer_send(w, 0, how & 1 ? HCA_TC_JFR | w->jfr->jfr_id.id : UB_WORLD_KNOWN,
			     fuzz_u8(in) * 8u);
		ub_world_poll(w, 1);
		break;
	case 6:
		ub_world_time(w, fuzz_u8(in));
		break;
	default:
		if (what & 8)
			good_ones(w, what);
		ub_world_poll(w, 1);
	}
}

static void
run(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, data + size};
	struct ub_world *w = ub_world_begin(fuzz_u8(&in), true);

	w->lying = true;
	for (unsigned int i = 0; i < STEPS_MAX && fuzz_left(&in) != 0; i++)
		step(w, &in);
	fuzz_check(ub_world_tp(w, 1)->lane[HCA_TP_REQUESTS].head == 0,
		   "requests over a channel that was not imported");
	ub_world_end(w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ub_world_run(run, data, size);
	return 0;
}
