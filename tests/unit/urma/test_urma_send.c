/* SPDX-License-Identifier: BSD-3-Clause */

/* Posting: bytes of WQEs, doorbells, refusals and their reasons. */

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_urma.h"

static struct urma_rig r;

static int
setup(void **state)
{
	rig_open(&r);
	return 0;
}

static int
teardown(void **state)
{
	rig_close(&r);
	return 0;
}

static urma_sge_t
here(uint32_t len)
{
	return (urma_sge_t){(uintptr_t)r.memory, len, r.local};
}

static urma_sge_t
there(uint32_t len)
{
	return (urma_sge_t){RIG_REMOTE + 0x100, len, r.remote};
}

static uint64_t
bell(uint32_t index, uint32_t fence, uint32_t op, uint32_t units)
{
	return HCA_DB_MAKE(index, fence, op, FAKE_JETTY, units);
}

/* The data unit that a local SGE becomes */
static void
assert_data(const uint8_t *at, uint64_t addr, uint32_t len)
{
	assert_int_equal(hca_get_le32(at), len);
	assert_int_equal(hca_get_le32(at + 4), 0xabcd01);
	assert_true(hca_get_le64(at + 8) == addr);
}

/* A Write, but for the address of its data byte for byte */
static void
test_write(void **state)
{
	static const uint8_t want[] = {
		0,    0,    0,	  0,	0,    0,    0,	  0, /* no next */
		0x0a, 0,    0,	  0,	0,    0,    0,	  0, /* signalled, solicited */
		5,    0,    0,	  0x40, 0x45, 0x23, 0x01, 0, /* TPG 5, TC 0x12345 */
		0xef, 0xbe, 0xad, 0xde, 0x0e, 0,    0,	  0, /* token; ODR 6, token present */
		0,    0,    0,	  0,	0,    0,    0,	  0, /* no immediate */
		0,    0,    0,	  0,	0,    0,    0,	  0,
		0,    0x11, 0,	  0,	0,    0x7f, 0,	  0, /* address */
		0xde, 0xbc, 0x0a, 0,	0,    0,    0,	  0, /* TokenID */
		64,   0,    0,	  0,	0x01, 0xcd, 0xab, 0, /* 64 bytes, lkey */
	};
	urma_sge_t src = here(64), dst = there(64);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE,
			    .tjetty = r.peer,
			    .user_ctx = 7,
			    .flag.bs = {.place_order = 2,
					.comp_order = 1,
					.solicited_enable = 1,
					.complete_enable = 1},
			    .rw = {.src = {&src, 1}, .dst = {&dst, 1}}};

	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_memory_equal(rig_wqe(&r, 0), want, sizeof(want));
	assert_data(rig_wqe(&r, 0) + 64, (uintptr_t)r.memory, 64);
	assert_int_equal(fake_take_doorbell(r.ctl), bell(0, 0, HCA_OP_RDMA_WRITE, 5));
	assert_int_equal(fake_take_doorbell(r.ctl), 0);
}

/* A segment without a token value: the bit says so, and no value is sent. */
static void
test_no_token(void **state)
{
	urma_sge_t src = here(8), dst = {RIG_REMOTE, 8, r.open};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_READ,
			    .tjetty = r.peer,
			    .rw = {.src = {&dst, 1}, .dst = {&src, 1}}};
	const struct hca_ub_unit *u = (const void *)(rig_wqe(&r, 0) + 16);

	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_int_equal(u->token, 0);
	assert_int_equal(hca_le32_to_cpu(u->order) & HCA_UB_HAS_TOKEN, 0);
	assert_int_equal(fake_take_doorbell(r.ctl), bell(0, 0, HCA_OP_RDMA_READ, 5));
}

static void
test_immediate(void **state)
{
	urma_sge_t src = here(8), dst = there(8);
	urma_jfs_wr_t wr = {
		.opcode = URMA_OPC_WRITE_IMM,
		.tjetty = r.peer,
		.rw = {.src = {&src, 1}, .dst = {&dst, 1}, .notify_data = 0x0102030405060708}};
	const struct hca_ub_unit *u = (const void *)(rig_wqe(&r, 0) + 16);

	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_true(hca_le64_to_cpu(u->data) == 0x0102030405060708);
	assert_int_equal(hca_le32_to_cpu(u->token), RIG_TOKEN);
	assert_int_equal(hca_le32_to_cpu(u->tc_token), 0x11223344);
	assert_int_equal(fake_take_doorbell(r.ctl), bell(0, 0, HCA_OP_RDMA_WRITE_IMM, 5));
}

static void
test_notify(void **state)
{
	urma_sge_t src = here(8), dst[2] = {there(8), {RIG_REMOTE + 0x200, 8, r.remote}};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE_NOTIFY,
			    .tjetty = r.peer,
			    .rw = {.src = {&src, 1}, .dst = {dst, 2}, .notify_data = 99}};
	const struct hca_notify_unit *n = (const void *)(rig_wqe(&r, 0) + 64);
	const struct hca_ub_unit *u = (const void *)(rig_wqe(&r, 0) + 16);
	struct urma_segment open = *(struct urma_segment *)r.remote;

	open.check = false;
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_true(hca_le64_to_cpu(n->addr) == RIG_REMOTE + 0x200);
	assert_int_equal(hca_le32_to_cpu(n->token_id), RIG_TOKEN_ID);
	assert_int_equal(hca_le32_to_cpu(n->token), RIG_TOKEN);
	assert_data(rig_wqe(&r, 0) + 80, (uintptr_t)r.memory, 8);
	assert_int_equal(hca_le32_to_cpu(u->order) & HCA_UB_HAS_TOKEN, HCA_UB_HAS_TOKEN);
	assert_int_equal(fake_take_doorbell(r.ctl), bell(0, 0, HCA_OP_WRITE_NOTIFY, 6));
	/* one of the two segments is enough: the packet has both values, or none */
	for (int i = 0; i < 4; i++) {
		dst[0].tseg = (i & 1) != 0 ? r.remote : &open.pub;
		dst[1].tseg = (i & 2) != 0 ? r.remote : &open.pub;
		assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
		u = (const void *)(rig_wqe(&r, (unsigned)i + 1) + 16);
		n = (const void *)(rig_wqe(&r, (unsigned)i + 1) + 64);
		assert_int_equal((hca_le32_to_cpu(u->order) & HCA_UB_HAS_TOKEN) != 0, i != 0);
		assert_int_equal(hca_le32_to_cpu(u->token), (i & 1) != 0 ? RIG_TOKEN : 0);
		assert_int_equal(hca_le32_to_cpu(n->token), (i & 2) != 0 ? RIG_TOKEN : 0);
		fake_take_doorbell(r.ctl);
	}
}

/* A Send's token is that of the receiver; inline data needs no segment. */
static void
test_send_inline(void **state)
{
	char text[] = "inline";
	urma_sge_t src[2] = {{(uintptr_t)text, 3, NULL}, {(uintptr_t)text + 3, 3, NULL}};
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM,
			    .tjetty = r.peer,
			    .flag.bs.inline_flag = 1,
			    .send = {.src = {src, 2}, .imm_data = 5}};
	const struct hca_ub_unit *u = (const void *)(rig_wqe(&r, 0) + 16);

	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_int_equal(hca_le32_to_cpu(u->token), 0x11223344);
	assert_int_equal(hca_le32_to_cpu(u->tc_token), 0);
	assert_true(hca_le64_to_cpu(u->data) == 5);
	assert_int_equal(hca_get_le32(rig_wqe(&r, 0) + 48), HCA_INLINE_FLAG | 6);
	assert_memory_equal(rig_wqe(&r, 0) + 52, "inline", 6);
	assert_int_equal(fake_take_doorbell(r.ctl), bell(0, 0, HCA_OP_SEND_IMM, 4));
}

static const struct {
	urma_opcode_t opcode;
	uint8_t atomic;
} fetches[] = {
	{URMA_OPC_FADD, HCA_UB_TA_FETCH_ADD},
	{URMA_OPC_FSUB, HCA_UB_TA_FETCH_SUB},
	{URMA_OPC_FAND, HCA_UB_TA_FETCH_AND},
	{URMA_OPC_FOR, HCA_UB_TA_FETCH_OR},
	{URMA_OPC_FXOR, HCA_UB_TA_FETCH_XOR},
	{SOFTHCA_URMA_OPC_ATOMIC_LOAD, HCA_UB_TA_LOAD},
	{SOFTHCA_URMA_OPC_ATOMIC_STORE, HCA_UB_TA_STORE},
};

static void
test_fetches(void **state)
{
	urma_sge_t src = here(64), dst = there(8);

	for (uint32_t i = 0; i < sizeof(fetches) / sizeof(fetches[0]); i++) {
		bool store = fetches[i].atomic == HCA_UB_TA_STORE, ud = i >= 5;
		urma_jfs_wr_t wr = {.opcode = fetches[i].opcode,
				    .tjetty = r.peer,
				    .faa = {.dst = &dst,
					    .src = &src,
					    .operand = 0x1122334455667788,
					    .op = ud ? SOFTHCA_URMA_ATOMIC_SMAX : 0}};
		const struct hca_ub_unit *u = (const void *)(rig_wqe(&r, i) + 16);
		static const uint8_t operands[32] = {0x88, 0x77, 0x66, 0x55,
						     0x44, 0x33, 0x22, 0x11};

		assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
		assert_int_equal(HCA_UB_ATOMIC(hca_le32_to_cpu(u->order)), fetches[i].atomic);
		assert_int_equal(HCA_UB_UD_OP(hca_le32_to_cpu(u->order)),
				 ud ? HCA_UB_UD_OP_SMAX : 0);
		assert_int_equal(hca_le32_to_cpu(u->operands), 8);
		assert_memory_equal(rig_wqe(&r, i) + 64, operands, 32);
		if (!store)
			assert_data(rig_wqe(&r, i) + 96, (uintptr_t)r.memory, 8);
		assert_int_equal(fake_take_doorbell(r.ctl),
				 bell(i, 0, HCA_OP_ATOMIC, store ? 6 : 7));
	}
}

/* Compare, then swap; of 64 bytes at addresses */
static void
test_compare_swap(void **state)
{
	uint8_t compare[64], swap[64];
	urma_sge_t src = here(64), dst = there(64);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_CAS,
			    .tjetty = r.peer,
			    .cas = {.dst = &dst,
				    .src = &src,
				    .cmp_addr = (uintptr_t)compare,
				    .swap_addr = (uintptr_t)swap}};

	memset(compare, 0xc0, sizeof(compare));
	memset(swap, 0x50, sizeof(swap));
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_memory_equal(rig_wqe(&r, 0) + 64, compare, 64);
	assert_memory_equal(rig_wqe(&r, 0) + 128, swap, 64);
	assert_data(rig_wqe(&r, 0) + 192, (uintptr_t)r.memory, 64);
	assert_int_equal(fake_take_doorbell(r.ctl), bell(0, 0, HCA_OP_ATOMIC, 13));
	wr.opcode = URMA_OPC_SWAP;
	dst.len = 2;
	wr.cas.swap_data = 0x11223344;
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_int_equal(hca_get_le32(rig_wqe(&r, 1) + 64), 0x3344);
	assert_true(hca_get_le64(rig_wqe(&r, 1) + 80) == 0);
	assert_int_equal(fake_take_doorbell(r.ctl), bell(1, 0, HCA_OP_ATOMIC, 7));
}

static void
test_byte_enables(void **state)
{
	static const uint8_t enables[8] = {0xff, 0, 1, 2, 3, 4, 5, 6};
	urma_sge_t src = here(64), dst = there(64);
	urma_jfs_wr_t wr = {.opcode = SOFTHCA_URMA_OPC_WRITE_BE,
			    .tjetty = r.peer,
			    .rw = {.src = {&src, 1}, .dst = {&dst, 1}, .byte_enables = enables}};
	const struct hca_ub_unit *u = (const void *)(rig_wqe(&r, 0) + 16);

	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_int_equal(hca_le32_to_cpu(u->operands), 8);
	assert_memory_equal(rig_wqe(&r, 0) + 64, enables, 8);
	assert_data(rig_wqe(&r, 0) + 80, (uintptr_t)r.memory, 64);
	assert_int_equal(fake_take_doorbell(r.ctl), bell(0, 0, HCA_OP_WRITE_BE, 6));
	src.len = 65;
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_EINVAL);
}

/* One doorbell for a chain, whose WQEs describe the next one each */
static void
test_chain(void **state)
{
	urma_sge_t src = here(8), dst = there(8);
	urma_jfs_wr_t wr[3] = {
		{.opcode = URMA_OPC_SEND, .send = {.src = {&src, 1}}, .next = &wr[1]},
		{.opcode = URMA_OPC_READ,
		 .flag.bs.fence = 1,
		 .rw = {.src = {&dst, 1}, .dst = {&src, 1}},
		 .next = &wr[2]},
		{.opcode = URMA_OPC_SEND, .send = {.src = {&src, 1}}},
	};
	const struct hca_next_unit *next = (const void *)rig_wqe(&r, 0);

	for (uint32_t i = 0; i < 3; i++)
		wr[i].tjetty = r.peer;
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, wr, NULL), URMA_SUCCESS);
	assert_int_equal(fake_take_doorbell(r.ctl), bell(0, 0, HCA_OP_SEND, 4));
	assert_int_equal(fake_take_doorbell(r.ctl), 0);
	assert_int_equal(next->nda_nop, HCA_NEXT_MAKE_NDA_NOP(256, HCA_OP_RDMA_READ));
	assert_int_equal(next->nee_nds, HCA_NEXT_MAKE_NEE_NDS(1, 5));
	next = (const void *)rig_wqe(&r, 1);
	assert_int_equal(next->nda_nop, HCA_NEXT_MAKE_NDA_NOP(512, HCA_OP_SEND));
	assert_int_equal(next->nee_nds, HCA_NEXT_MAKE_NEE_NDS(0, 4));
	assert_int_equal(((const struct hca_next_unit *)(const void *)rig_wqe(&r, 2))->nee_nds, 0);
}

/* Requests behind a Write that differ from it in one thing */
enum behind {
	BEHIND_LIKE,
	BEHIND_FLAGS,
	BEHIND_TARGET,
	BEHIND_LOCAL,
	BEHIND_REMOTE,
	BEHIND_IMMEDIATE,
	BEHIND_READ,
	BEHIND_SEND,
	BEHIND_TWO_SGES,
	BEHIND_TWO_PLACES,
	BEHIND_NO_LOCAL,
	BEHIND_NO_REMOTE,
	BEHIND_LOW,
	BEHIND_FAR,
	BEHIND_WRAPS,
	BEHIND_LONG,
	BEHINDS
};

struct behind_wr {
	struct urma_target target;
	struct urma_segment segment;
	struct softhca_mr mr;
	urma_sge_t src[2], dst[2];
	urma_jfs_wr_t wr;
};

static void
make_behind(struct behind_wr *b, enum behind what)
{
	b->target = *(const struct urma_target *)r.peer;
	b->target.pub.id.id = 0x54321;
	b->segment = *(const struct urma_segment *)r.local;
	b->mr = *b->segment.mr;
	b->mr.lkey = 0x1111;
	b->segment.mr = &b->mr;
	b->src[0] = b->src[1] = (urma_sge_t){(uintptr_t)r.memory + 7, 24, r.local};
	b->dst[0] = b->dst[1] = (urma_sge_t){RIG_REMOTE + 0x300, 24, r.remote};
	b->wr = (urma_jfs_wr_t){.opcode = URMA_OPC_WRITE,
				.tjetty = r.peer,
				.user_ctx = 2,
				.flag.bs.complete_enable = 1,
				.rw = {.src = {b->src, 1}, .dst = {b->dst, 1}}};
	b->wr.flag.bs.solicited_enable = what == BEHIND_FLAGS;
	b->wr.tjetty = what == BEHIND_TARGET ? &b->target.pub : r.peer;
	b->src[0].tseg = what == BEHIND_LOCAL ? &b->segment.pub : r.local;
	b->dst[0].tseg = what == BEHIND_REMOTE ? r.open : r.remote;
	b->wr.opcode = what == BEHIND_IMMEDIATE ? URMA_OPC_WRITE_IMM : URMA_OPC_WRITE;
	b->wr.rw.notify_data = what == BEHIND_IMMEDIATE ? 0x1234 : 0;
	b->wr.rw.src.num_sge = what == BEHIND_TWO_SGES ? 2 : 1;
	b->wr.rw.dst.num_sge = what == BEHIND_TWO_PLACES ? 2 : 1;
	b->wr.rw.src.sge = what == BEHIND_NO_LOCAL ? NULL : b->src;
	b->wr.rw.dst.sge = what == BEHIND_NO_REMOTE ? NULL : b->dst;
	b->dst[0].addr -= what == BEHIND_LOW ? 0x301 : 0;
	b->dst[0].addr += what == BEHIND_FAR ? 65536 - 0x300 - 23 : 0;
	b->dst[0].addr += what == BEHIND_WRAPS ? 65536 - 0x300 + 1 : 0;
	if (what == BEHIND_READ) {
		b->wr.opcode = URMA_OPC_READ;
		b->wr.rw.src.sge = b->dst;
		b->wr.rw.dst.sge = b->src;
	} else if (what == BEHIND_SEND) {
		b->wr.opcode = URMA_OPC_SEND;
		b->wr.send.src = (urma_sg_t){b->src, 1};
	} else if (what == BEHIND_LONG) {
		r.remote->seg.len = UINT64_C(1) << 40;
		b->src[0].len = (UINT32_C(1) << 31) + 1;
	}
}

/* Behind a Write each request has the same WQE, or the same refusal, as alone. */
static void
test_behind(void **state)
{
	uint8_t alone[256];

	(void)state;
	for (enum behind what = 0; what < BEHINDS; what++) {
		urma_sge_t src = here(64), dst = there(64);
		urma_jfs_wr_t first = {.opcode = URMA_OPC_WRITE, .user_ctx = 1}, *bad = NULL;
		urma_status_t status;
		struct behind_wr b;

		rig_close(&r);
		rig_open(&r);
		make_behind(&b, what);
		status = urma_post_jetty_send_wr(r.jetty, &b.wr, NULL);
		assert_int_equal(1u << rig_queue(&r)->sq.log_stride, sizeof(alone));
		memcpy(alone, rig_wqe(&r, 0), sizeof(alone));
		rig_close(&r);
		rig_open(&r);
		make_behind(&b, what);
		src = here(64);
		dst = there(64);
		first.tjetty = r.peer;
		first.flag.bs.complete_enable = 1;
		first.rw.src = (urma_sg_t){&src, 1};
		first.rw.dst = (urma_sg_t){&dst, 1};
		first.next = &b.wr;
		if (urma_post_jetty_send_wr(r.jetty, &first, &bad) != status ||
		    bad != (status == URMA_SUCCESS ? NULL : &b.wr))
			fail_msg("request %u: status", what);
		if (status != URMA_SUCCESS)
			continue;
		if (memcmp(rig_wqe(&r, 1), alone, sizeof(alone)) != 0)
			fail_msg("request %u: its WQE", what);
		assert_int_equal(HCA_DB_OPCODE(fake_take_doorbell(r.ctl)), HCA_OP_RDMA_WRITE);
		assert_int_equal(rig_queue(&r)->sq.wr_id[1], 2);
	}
}

/* A Write behind a Send, and one behind that. */
static void
test_behind_a_send(void **state)
{
	urma_sge_t src = here(8), dst = there(8);
	urma_jfs_wr_t wr[3] = {
		{.opcode = URMA_OPC_SEND, .send = {.src = {&src, 1}}, .next = &wr[1]},
		{.opcode = URMA_OPC_WRITE,
		 .rw = {.src = {&src, 1}, .dst = {&dst, 1}},
		 .next = &wr[2]},
		{.opcode = URMA_OPC_WRITE, .rw = {.src = {&src, 1}, .dst = {&dst, 1}}},
	};
	const struct hca_next_unit *next = (const void *)rig_wqe(&r, 1);

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		wr[i].tjetty = r.peer;
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, wr, NULL), URMA_SUCCESS);
	assert_int_equal(next->nda_nop, HCA_NEXT_MAKE_NDA_NOP(512, HCA_OP_RDMA_WRITE));
	assert_int_equal(next->nee_nds, HCA_NEXT_MAKE_NEE_NDS(0, 5));
	assert_memory_equal(rig_wqe(&r, 1) + 8, rig_wqe(&r, 2) + 8, 72);
}

/* Writes behind one with inline data, and behind one of two SGEs: these are not plain. */
static void
test_behind_unusual(void **state)
{
	urma_sge_t src[2] = {here(8), here(8)}, dst = there(8);
	urma_jfs_wr_t inlined = {.opcode = URMA_OPC_WRITE,
				 .flag.bs.inline_flag = 1,
				 .tjetty = r.peer,
				 .rw = {.src = {src, 1}, .dst = {&dst, 1}}};
	urma_jfs_wr_t wr[4] = {inlined, inlined, inlined, inlined};
	const struct hca_next_unit *next = (const void *)rig_wqe(&r, 2);

	(void)state;
	wr[2].flag.bs.inline_flag = wr[3].flag.bs.inline_flag = 0;
	wr[2].rw.src.num_sge = 2;
	for (uint32_t i = 0; i < 3; i++)
		wr[i].next = &wr[i + 1];
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, wr, NULL), URMA_SUCCESS);
	assert_memory_equal(rig_wqe(&r, 0) + 8, rig_wqe(&r, 1) + 8, 72);
	assert_int_equal(next->nee_nds, HCA_NEXT_MAKE_NEE_NDS(0, 5));
	assert_data(rig_wqe(&r, 3) + 64, (uintptr_t)r.memory, 8);
}

/* The queue is full: those that fit are posted, with one doorbell. */
static void
test_full(void **state)
{
	urma_jfs_wr_t wr[10], *bad = NULL;

	for (uint32_t i = 0; i < 10; i++)
		wr[i] = (urma_jfs_wr_t){.opcode = URMA_OPC_SEND,
					.tjetty = r.peer,
					.next = i < 9 ? &wr[i + 1] : NULL};
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, wr, &bad), URMA_ENOMEM);
	assert_ptr_equal(bad, &wr[8]);
	assert_int_equal(fake_take_doorbell(r.ctl), bell(0, 0, HCA_OP_SEND, 3));
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, wr, &bad), URMA_ENOMEM);
	assert_ptr_equal(bad, wr);
	assert_int_equal(fake_take_doorbell(r.ctl), 0);
}

/* No place for a doorbell: the first WQE announces the chain, and the Jetty is marked. */
static void
test_announced(void **state)
{
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = r.peer};
	const struct hca_next_unit *next = (const void *)rig_wqe(&r, 0);

	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		r.ctl->page.fifo[i] = 1;
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_int_equal(hca_le32_to_cpu(next->flags), HCA_WQE_MAKE_ANNOUNCE(0, 0, HCA_OP_SEND, 3));
	assert_int_not_equal(r.ctl->page.marked, 0);
	memset(r.ctl->page.fifo, 0, sizeof(r.ctl->page.fifo));
	r.ctl->dead = true;
}

/* Each request is wrong in one way; nothing is posted. */
static void
test_refused(void **state)
{
	urma_sge_t src = here(8), dst = there(8), far = {RIG_REMOTE + 65530, 8, r.remote};
	urma_sge_t odd = {RIG_REMOTE + 1, 8, r.remote}, none = {0, 8, NULL};
	urma_sge_t beyond = {RIG_REMOTE + 65537, 8, r.remote};
	urma_sge_t low = {RIG_REMOTE - 1, 8, r.remote}, own = {(uintptr_t)r.memory, 8, r.local};
	urma_sge_t three[3] = {here(1), here(1), here(1)}, wide = there(128), big = here(8);
	urma_jfs_wr_t good = {.opcode = URMA_OPC_WRITE,
			      .tjetty = r.peer,
			      .rw = {.src = {&src, 1}, .dst = {&dst, 1}}};
	urma_jfs_wr_t atomic = {.opcode = URMA_OPC_FADD,
				.tjetty = r.peer,
				.faa = {.dst = &dst, .src = &src}};
	urma_jfs_wr_t wr[] = {good, good, good,	  good,	  good,	  good,	  good,	  good, good, good,
			      good, good, atomic, atomic, atomic, atomic, atomic, good, good, good};
	urma_jfs_wr_t *bad;

	wr[0].opcode = 0x77;
	wr[1].opcode = 0x4000;
	wr[2].tjetty = NULL;
	wr[3].flag.bs.place_order = 3;
	wr[4].flag.bs.reserved = 1;
	wr[5].rw.dst.sge = &far;
	wr[6].rw.dst.sge = &low;
	wr[7].rw.dst.sge = &own; /* registered, not imported */
	wr[8].rw.src.sge = &none;
	wr[9].rw.src = (urma_sg_t){three, 20};
	wr[10].rw.dst.num_sge = 2;
	wr[11].opcode = URMA_OPC_WRITE_NOTIFY; /* no second place */
	wr[12].faa.dst = &odd;
	wr[13].faa.dst = &wide;
	wr[14].faa.dst = &none;
	wr[15].flag.bs.inline_flag = 1;
	wr[16].opcode = SOFTHCA_URMA_OPC_ATOMIC_LOAD;
	wr[16].faa.op = 8;
	big.len = 4000;
	wr[17].rw.src.sge = &big;
	wr[17].flag.bs.inline_flag = 1;
	wr[18].rw.src.sge = &dst; /* imported, not registered */
	wr[19].rw.dst.sge = &beyond;
	for (uint32_t i = 0; i < sizeof(wr) / sizeof(wr[0]); i++) {
		bad = NULL;
		if (urma_post_jetty_send_wr(r.jetty, &wr[i], &bad) != URMA_EINVAL || bad != &wr[i])
			fail_msg("request %u: %s", i, softhca_urma_reason());
	}
	wr[0].opcode = URMA_OPC_NOP;
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr[0], NULL), URMA_FAIL);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(fake_take_doorbell(r.ctl), 0);
	assert_int_equal(rig_queue(&r)->sq.head, 0);
}

static void
test_single_calls(void **state)
{
	urma_jfs_cfg_t cfg = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_RM};
	urma_jfs_t *jfs = urma_create_jfs(r.ctx, &cfg);
	struct urma_queue *q = (struct urma_queue *)jfs;
	urma_jfs_wr_flag_t flag = {.bs.complete_enable = 1};
	uint64_t va = (uintptr_t)r.memory;

	assert_non_null(jfs);
	assert_int_equal(urma_write(jfs, r.peer, r.remote, r.local, RIG_REMOTE, va, 16, flag, 1),
			 URMA_SUCCESS);
	assert_int_equal(urma_read(jfs, r.peer, r.local, r.remote, va, RIG_REMOTE, 16, flag, 2),
			 URMA_SUCCESS);
	assert_int_equal(urma_send(jfs, r.peer, r.local, va, 16, flag, 3), URMA_SUCCESS);
	assert_data(q->sq.buf + 64, va, 16);
	assert_true(hca_get_le64(q->sq.buf + 256 + 48) == RIG_REMOTE);
	assert_data(q->sq.buf + 256 + 64, va, 16);
	assert_data(q->sq.buf + 512 + 48, va, 16);
	assert_int_equal(q->sq.wr_id[2], 3);
	assert_int_equal(urma_delete_jfs(jfs), URMA_SUCCESS);
}

static void
test_receives(void **state)
{
	urma_sge_t sge[2] = {here(0), here(100)};
	urma_jfr_wr_t wr = {.src = {sge, 2}, .user_ctx = 5}, *bad = NULL;
	struct urma_rq *rq = &rig_queue(&r)->rq;

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(urma_post_jetty_recv_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_data(rq->wq.buf + 16, (uintptr_t)r.memory, 100); /* empty ones are left out */
	assert_int_equal(hca_le32_to_cpu(rq->record->producer), 4);
	assert_int_equal(urma_post_jetty_recv_wr(r.jetty, &wr, &bad), URMA_ENOMEM);
	assert_ptr_equal(bad, &wr);
	wr.src.num_sge = 4;
	assert_int_equal(urma_post_jetty_recv_wr(r.jetty, &wr, NULL), URMA_ENOMEM);
	rq->record->notify = 1;
	assert_int_equal(urma_post_jetty_recv_wr(r.jetty, NULL, NULL), URMA_SUCCESS);
	assert_int_equal(HCA_DB_OPCODE(fake_take_doorbell(r.ctl)), HCA_DB_OPCODE_KICK);
}

/* ---- unreliable ---- */

static urma_jetty_t *
open_mail(void)
{
	urma_jfr_cfg_t receives = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_UM};
	urma_jetty_cfg_t cfg = {
		.jfs_cfg = {.depth = 4, .jfc = r.jfc, .trans_mode = URMA_TM_UM, .max_sge = 1},
		.jfr_cfg = &receives};
	urma_jetty_t *jetty = urma_create_jetty(r.ctx, &cfg);

	assert_non_null(jetty);
	return jetty;
}

static urma_target_jetty_t *
import_mail(void)
{
	urma_rjetty_t what = {.jetty_id.id = 40,
			      .trans_mode = URMA_TM_UM,
			      .type = URMA_JETTY,
			      .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT};
	urma_token_t token = {0x600d};
	urma_target_jetty_t *t;

	memset(what.jetty_id.eid.raw, 0x42, 16);
	t = urma_import_jetty(r.ctx, &what, &token);
	assert_non_null(t);
	return t;
}

/* A request to an address instead of a channel; operations that need a channel are refused. */
static void
test_unreliable(void **state)
{
	uint32_t objects = fake_urma.objects;
	urma_jetty_t *jetty = open_mail();
	urma_target_jetty_t *to = import_mail();
	urma_sge_t src = here(64), dst = there(64);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = to, .send = {.src = {&src, 1}}};
	const uint8_t *wqe = ((struct urma_queue *)jetty)->sq.buf;
	const struct hca_ub_unit *ub = (const void *)(wqe + 16);
	const struct hca_ud_unit *ud = (const void *)(wqe + 48);

	assert_int_equal(fake_urma.objects, objects + 1); /* no channels */
	assert_int_equal(urma_post_jetty_send_wr(jetty, &wr, NULL), URMA_SUCCESS);
	assert_int_equal(HCA_UB_TO(hca_le32_to_cpu(ub->number)), HCA_UB_TO_ADDRESS);
	assert_int_equal(hca_le32_to_cpu(ub->tc) & HCA_TC_MASK, 40);
	assert_int_equal(hca_le32_to_cpu(ub->token), 0x600d);
	assert_int_equal(HCA_UD_SGID_INDEX(hca_le32_to_cpu(ud->port)), 3);
	assert_int_equal(HCA_UD_DMAC(hca_le32_to_cpu(ud->mac_lo), hca_le32_to_cpu(ud->dmac_hi)),
			 0x020000000009);
	assert_int_equal(HCA_UD_SMAC(hca_le32_to_cpu(ud->mac_lo), hca_le32_to_cpu(ud->smac_hi)),
			 0x020000000001);
	assert_memory_equal(ud->dgid, to->id.eid.raw, 16);
	assert_true((hca_le32_to_cpu(ud->flow) & HCA_UD_GID_FORM) != 0);
	assert_data(wqe + 96, (uintptr_t)r.memory, 64);
	assert_int_equal(fake_take_doorbell(r.ctl),
			 HCA_DB_MAKE(0, 0, HCA_OP_SEND, ((struct urma_queue *)jetty)->number, 7));
	/* channels for one, addresses for the other */
	wr.tjetty = r.peer;
	assert_int_equal(urma_post_jetty_send_wr(jetty, &wr, NULL), URMA_EINVAL);
	wr.tjetty = to;
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_EINVAL);
	wr = (urma_jfs_wr_t){.opcode = URMA_OPC_WRITE,
			     .tjetty = to,
			     .rw = {.src = {&src, 1}, .dst = {&dst, 1}}};
	assert_int_equal(urma_post_jetty_send_wr(jetty, &wr, NULL), URMA_EINVAL);
	assert_int_equal(fake_take_doorbell(r.ctl), 0);
	assert_int_equal(urma_unimport_jetty(to), URMA_SUCCESS);
	assert_int_equal(urma_delete_jetty(jetty), URMA_SUCCESS);
	assert_int_equal(fake_urma.objects, objects);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A post that wakes the worker gives way to it. */
static void
test_wakes(void **state)
{
	struct lib_uar *uar = &((struct lib_context *)r.lib)->uar;
	urma_sge_t src = here(64), dst = there(64);
	urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE,
			    .tjetty = r.peer,
			    .rw = {.src = {&src, 1}, .dst = {&dst, 1}}};
	int fd = eventfd(0, EFD_NONBLOCK);
	uint32_t asleep = 1;
	uint64_t kicks = 0;

	uar->sleep_word = &asleep;
	uar->kick_fd = fd;
	assert_int_equal(urma_post_jetty_send_wr(r.jetty, &wr, NULL), URMA_SUCCESS);
	assert_int_equal(read(fd, &kicks, sizeof(kicks)), sizeof(kicks));
	assert_int_equal(kicks, 1);
	assert_int_equal(uar->kicked, 1);
	assert_false(uar->woke);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_write),	 TEST(test_wakes),	   TEST(test_no_token),
		TEST(test_immediate),	 TEST(test_notify),	   TEST(test_fetches),
		TEST(test_compare_swap), TEST(test_byte_enables),  TEST(test_chain),
		TEST(test_behind),	 TEST(test_behind_a_send), TEST(test_behind_unusual),
		TEST(test_full),	 TEST(test_announced),	   TEST(test_unreliable),
		TEST(test_refused),	 TEST(test_single_calls),  TEST(test_receives),
		TEST(test_send_inline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
