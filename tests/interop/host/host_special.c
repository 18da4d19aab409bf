/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "host_special.h"

/* BTH opcodes that are the targets of faults */
#define SEND_MIDDLE 0x01
#define WRITE_FIRST 0x06
#define WRITE_MIDDLE 0x07
#define WRITE_LAST 0x08
#define READ_REQUEST 0x0c
#define READ_FIRST 0x0d
#define READ_MIDDLE 0x0e
#define READ_LAST 0x0f
#define ACK 0x11
#define ATOMIC_ACK 0x12
#define CMP_SWAP 0x13
#define FETCH_ADD 0x14

enum way {
	OUT,
	IN,
	BOTH
}; /* of the requests' direction: OUT = requester to responder */

#define RC_TEST(operation, ...) \
	.test = {.service = IBV_QPT_RC, .op = IBV_WR_##operation, __VA_ARGS__}
#define UC_TEST(operation, ...) \
	.test = {.service = IBV_QPT_UC, .op = IBV_WR_##operation, __VA_ARGS__}
#define UD_TEST(operation, ...) \
	.test = {.service = IBV_QPT_UD, .op = IBV_WR_##operation, __VA_ARGS__}
#define ONCE(what, direction, bth) \
	.fault = {{.fault = SOFTHCA_FAULT_##what, \
		   .opcode = bth, \
		   .inbound = direction, \
		   .nth = 2, \
		   .count = 1}}, \
	.num_faults = 1
#define THE_FIRST(what, direction, bth) \
	.fault = {{.fault = SOFTHCA_FAULT_##what, \
		   .opcode = bth, \
		   .inbound = direction, \
		   .count = 1}}, \
	.num_faults = 1
#define RC_MIXED(...) .test = {.service = IBV_QPT_RC, .op = EP_OP_MIXED, __VA_ARGS__}
#define SIZED .flags = EP_SIZES, .mtu = 1024
#define MTU_1024 .mtu = 1024
#define SIZES .count = 26, .flags = EP_SIZES, .mtu = 1024
#define MANY .count = 130, .flags = EP_SIZES, .mtu = 1024 /* random faults are rare */
/*
 * 0.27 s: an emulated guest on a busy machine takes longer than 67 ms for the responses of one READ
 * of 1 MiB, and each timeout asks it for all of them again.
 */
#define LOSS .retry_cnt = 7, .timeout = 16

static const struct special {
	const char *name;
	struct perf_exchange test;
	struct softhca_impairment impair;
	struct softhca_fault_rule fault[HOST_FAULTS];
	unsigned int num_faults;
	unsigned int rxe_status; /* another status where rxe responds, 0: the same */
	bool only_ours;		 /* not where rxe requests */
	unsigned int qps;	 /* 0: 1 */
	bool both_ways;
} specials[] = {
	{"RC SEND inline", RC_TEST(SEND, .size = 100, .flags = EP_INLINE)},
	{"RC WRITE inline", RC_TEST(RDMA_WRITE, .size = 128, .flags = EP_INLINE)},
	{"RC SEND inline, 4 elements", RC_TEST(SEND, .size = 97, .sge = 4, .flags = EP_INLINE)},
	{"RC SEND, 16 elements", RC_TEST(SEND, .size = 5000, .sge = 16)},
	{"RC WRITE, 16 elements", RC_TEST(RDMA_WRITE, .size = 9001, .sge = 16)},
	{"RC READ, 16 elements", RC_TEST(RDMA_READ, .size = 9001, .sge = 16)},
	{"UD SEND, 8 elements", UD_TEST(SEND, .size = 1021, .sge = 8)},
	{"RC SEND of 0 bytes", RC_TEST(SEND, .size = 0)},
	{"RC WRITE of 0 bytes", RC_TEST(RDMA_WRITE, .size = 0)},
	{"RC WRITE_IMM of 0 bytes", RC_TEST(RDMA_WRITE_WITH_IMM, .size = 0)},
	{"RC READ of 0 bytes", RC_TEST(RDMA_READ, .size = 0)},
	{"UC SEND of 0 bytes", UC_TEST(SEND, .size = 0)},
	{"UD SEND of 0 bytes", UD_TEST(SEND_WITH_IMM, .size = 0)},
	{"RC SEND solicited, responder sleeps", RC_TEST(SEND, .size = 300, .flags = EP_SOLICITED)},
	{"RC WRITE_IMM solicited, responder sleeps",
	 RC_TEST(RDMA_WRITE_WITH_IMM, .size = 3000, .flags = EP_SOLICITED)},
	{"UD SEND solicited, responder sleeps", UD_TEST(SEND, .size = 64, .flags = EP_SOLICITED)},
	{"RC WRITE, VLAN, IPv4", RC_TEST(RDMA_WRITE, .net = EP_NET_VLAN, SIZES)},
	{"RC READ, VLAN, IPv6", RC_TEST(RDMA_READ, .net = EP_NET_VLAN, .ip = 6, SIZES)},
	{"UC SEND, VLAN, IPv6", UC_TEST(SEND, .net = EP_NET_VLAN, .ip = 6, SIZES)},
	{"UD SEND, VLAN, IPv4", UD_TEST(SEND, .net = EP_NET_VLAN, SIZES)},
	{"RC SEND, link-local IPv6", RC_TEST(SEND, .net = EP_NET_LINK_LOCAL, .ip = 6, SIZES)},
	{"UD SEND, link-local IPv6", UD_TEST(SEND, .net = EP_NET_LINK_LOCAL, .ip = 6, SIZES)},
	{"RC WRITE, traffic class", RC_TEST(RDMA_WRITE, .tclass = 0x68, SIZES)},
	{"UD SEND, traffic class, IPv4", UD_TEST(SEND, .tclass = 0x68, SIZES)},
	{"UD SEND, traffic class, IPv6", UD_TEST(SEND, .tclass = 0xb8, .ip = 6, SIZES)},
	{"UD SEND to a group, IPv4", UD_TEST(SEND, .size = 900, .flags = EP_MCAST)},
	{"UD SEND_IMM to a group, IPv6",
	 UD_TEST(SEND_WITH_IMM, .size = 900, .ip = 6, .flags = EP_MCAST)},
	{"UD SEND to a group, VLAN, IPv4",
	 UD_TEST(SEND, .net = EP_NET_VLAN, .size = 900, .flags = EP_MCAST)},
	{"UD SEND to a group, VLAN, IPv6",
	 UD_TEST(SEND, .net = EP_NET_VLAN, .size = 900, .ip = 6, .flags = EP_MCAST)},
	{"RC WRITE through a window", RC_TEST(RDMA_WRITE, .flags = EP_WINDOW | EP_SIZES)},
	{"RC READ through a window", RC_TEST(RDMA_READ, .flags = EP_WINDOW | EP_SIZES)},
	{"RC FETCH_ADD through a window", RC_TEST(ATOMIC_FETCH_AND_ADD, .flags = EP_WINDOW)},
	{"RC WRITE past the window",
	 RC_TEST(RDMA_WRITE, .size = 64, .flags = EP_WINDOW | EP_PAST_END,
		 .expect = IBV_WC_REM_ACCESS_ERR)},
	{"RC SEND_INV of a window",
	 RC_TEST(SEND_WITH_INV, .count = 1, .size = 500, .flags = EP_WINDOW)},
	{"RC SEND into a shared queue", RC_TEST(SEND, .flags = EP_SRQ | EP_SIZES, MTU_1024)},
	{"UD SEND into a shared queue", UD_TEST(SEND, .size = 777, .flags = EP_SRQ)},
	{"RC WRITE, one in four signalled",
	 RC_TEST(RDMA_WRITE, .count = 64, .depth = 16, .size = 200, .flags = EP_UNSIGNALED)},
	/* no time-outs here: Linux 6.1 never repeats a fenced READ */
	{"RC READ fenced",
	 RC_TEST(RDMA_READ, .count = 16, .size = 2000, .flags = EP_FENCE, .timeout = 20)},
	{"RC WRITE one by one", RC_TEST(RDMA_WRITE, .depth = 1, .size = 4096)},
	{"RC READ, 16 at once", RC_TEST(RDMA_READ, .count = 48, .depth = 16, .size = 3000)},
	{"RC FETCH_ADD, 16 at once", RC_TEST(ATOMIC_FETCH_AND_ADD, .count = 64, .depth = 16)},
	{"RC WRITE of 1 MiB", RC_TEST(RDMA_WRITE, .count = 3, .size = 1 << 20)},
	{"RC READ of 1 MiB", RC_TEST(RDMA_READ, .count = 3, .size = 1 << 20)},
	{"RC SEND of 1 MiB", RC_TEST(SEND, .count = 3, .size = 1 << 20, MTU_1024)},
	{"RC WRITE over the wrap of PSNs",
	 RC_TEST(RDMA_WRITE, .psn = 0xfffff8, .flags = EP_SIZES, .count = 26, .mtu = 256)},
	{"RC READ over the wrap of PSNs",
	 RC_TEST(RDMA_READ, .psn = 0xfffff8, .flags = EP_SIZES, .count = 26, .mtu = 256)},
	{"RC, all operations in turn", RC_MIXED(.count = 200, SIZED)},
	{"RC, all operations in turn, QP used again",
	 RC_MIXED(.count = 60, .mtu = 1024, .flags = EP_SIZES | EP_REUSED), .qps = 4},
	{"UC, all operations in turn, QP used again", .test = {.service = IBV_QPT_UC,
							       .op = EP_OP_MIXED,
							       .count = 60,
							       .mtu = 1024,
							       .flags = EP_SIZES | EP_REUSED}},
	{"UD SEND, QP used again", UD_TEST(SEND, .size = 1000, .flags = EP_REUSED)},
	{"RC, all operations in turn, fenced",
	 RC_MIXED(.count = 100, .mtu = 1024, .flags = EP_SIZES | EP_FENCE, .timeout = 20)},
	{"RC, all operations in turn, one READ at a time",
	 RC_MIXED(.count = 100, .rd_atomic = 1, SIZED)},
	{"RC, all operations in turn, 16 READs at a time",
	 RC_MIXED(.count = 200, .rd_atomic = 16, .depth = 64, SIZED)},
	{"RC, all operations in turn, 2 % lost", RC_MIXED(.count = 200, SIZED, LOSS),
	 .impair = {.drop = 0.02}},
	{"RC, all operations in turn, 3 % twice", RC_MIXED(.count = 200, SIZED, LOSS),
	 .impair = {.dup = 0.03}},
	{"RC, all operations in turn, 3 % out of order", RC_MIXED(.count = 200, SIZED, LOSS),
	 .impair = {.reorder = 0.03}},
	{"RC, all operations in turn, 2 % damaged", RC_MIXED(.count = 200, SIZED, LOSS),
	 .impair = {.corrupt = 0.02}},
	{"RC, all operations in turn, receives late",
	 RC_MIXED(.count = 100, .delay_us = 20000, SIZED)},
	{"RC, all operations in turn, 16 QPs both ways", RC_MIXED(.count = 60, SIZED), .qps = 16,
	 .both_ways = true},
	{"UC, all operations in turn",
	 .test = {.service = IBV_QPT_UC, .op = EP_OP_MIXED, .count = 100, SIZED}},
	{"RC WRITE of 1 MiB, 2 % lost", RC_TEST(RDMA_WRITE, .count = 2, .size = 1 << 20, LOSS),
	 .impair = {.drop = 0.02}},
	{"RC SEND of 1 MiB, 2 % lost", RC_TEST(SEND, .count = 2, .size = 1 << 20, LOSS),
	 .impair = {.drop = 0.02}},
	{"RC READ of 1 MiB, 2 % lost", RC_TEST(RDMA_READ, .count = 2, .size = 1 << 20, LOSS),
	 .impair = {.drop = 0.02}},
	{"RC WRITE, 1 ms away", RC_TEST(RDMA_WRITE, .depth = 16, SIZES, LOSS),
	 .impair = {.delay_us = 1000}},
	{"RC READ, 1 ms away, now and then more", RC_TEST(RDMA_READ, .depth = 16, SIZES, LOSS),
	 .impair = {.delay_us = 1000, .jitter_us = 50}},
	{"RC WRITE, the MTU of the responder is half",
	 RC_TEST(RDMA_WRITE, .count = 1, .size = 9000, .flags = EP_MTU_HALF,
		 .expect = IBV_WC_REM_INV_REQ_ERR)},
	{"RC FETCH_ADD at an odd address",
	 RC_TEST(ATOMIC_FETCH_AND_ADD, .count = 3, .flags = EP_UNALIGNED,
		 .expect = IBV_WC_REM_INV_REQ_ERR),
	 .only_ours = true /* the library of rxe refuses to post it */},
	{"RC SEND, receives 20 ms late", RC_TEST(SEND, .delay_us = 20000, SIZES)},
	{"RC SEND_IMM, receives 20 ms late", RC_TEST(SEND_WITH_IMM, .delay_us = 20000, SIZES)},
	{"RC WRITE_IMM, receives 20 ms late",
	 RC_TEST(RDMA_WRITE_WITH_IMM, .delay_us = 20000, SIZES)},
	{"RC SEND, no receive ever",
	 RC_TEST(SEND, .count = 1, .size = 64, .rnr_retry = 2, .flags = EP_NO_RECV,
		 .expect = IBV_WC_RNR_RETRY_EXC_ERR)},
	{"RC WRITE, wrong key",
	 RC_TEST(RDMA_WRITE, .size = 2000, .flags = EP_BAD_KEY, .expect = IBV_WC_REM_ACCESS_ERR)},
	{"RC READ, wrong key",
	 RC_TEST(RDMA_READ, .size = 2000, .flags = EP_BAD_KEY, .expect = IBV_WC_REM_ACCESS_ERR)},
	{"RC FETCH_ADD, wrong key",
	 RC_TEST(ATOMIC_FETCH_AND_ADD, .flags = EP_BAD_KEY, .expect = IBV_WC_REM_ACCESS_ERR)},
	{"RC WRITE past the end",
	 RC_TEST(RDMA_WRITE, .size = 64, .flags = EP_PAST_END, .expect = IBV_WC_REM_ACCESS_ERR)},
	{"RC READ without the right",
	 RC_TEST(RDMA_READ, .size = 64, .count = 1, .flags = EP_NO_RIGHTS,
		 .expect = IBV_WC_REM_ACCESS_ERR)},
	{"RC WRITE without the right",
	 RC_TEST(RDMA_WRITE, .size = 64, .count = 1, .flags = EP_NO_RIGHTS,
		 .expect = IBV_WC_REM_ACCESS_ERR)},
	{"RC SEND longer than the receive",
	 RC_TEST(SEND, .size = 3000, .flags = EP_SHORT_RECV, .expect = IBV_WC_REM_INV_REQ_ERR),
	 .rxe_status = IBV_WC_REM_OP_ERR},
	{"UD SEND, wrong Q_Key", UD_TEST(SEND, .size = 64, .flags = EP_BAD_QKEY | EP_LOSSY)},
	{"RC WRITE, 32 QPs", RC_TEST(RDMA_WRITE, SIZES), .qps = 32},
	{"RC SEND, 32 QPs both ways", RC_TEST(SEND, SIZES), .qps = 32, .both_ways = true},
	{"RC READ, 16 QPs both ways", RC_TEST(RDMA_READ, SIZES), .qps = 16, .both_ways = true},
	{"UC WRITE_IMM, 8 QPs both ways", UC_TEST(RDMA_WRITE_WITH_IMM, SIZES), .qps = 8,
	 .both_ways = true},
	{"UD SEND, 8 QPs both ways", UD_TEST(SEND, .size = 1000), .qps = 8, .both_ways = true},
	{"RC WRITE, 2 % lost", RC_TEST(RDMA_WRITE, MANY, LOSS), .impair = {.drop = 0.02}},
	{"RC SEND, 2 % lost", RC_TEST(SEND, MANY, LOSS), .impair = {.drop = 0.02}},
	{"RC READ, 2 % lost", RC_TEST(RDMA_READ, MANY, LOSS), .impair = {.drop = 0.02}},
	{"RC FETCH_ADD, 5 % lost", RC_TEST(ATOMIC_FETCH_AND_ADD, .count = 100, LOSS),
	 .impair = {.drop = 0.05}},
	{"RC CMP_SWAP, 5 % lost", RC_TEST(ATOMIC_CMP_AND_SWP, .count = 100, LOSS),
	 .impair = {.drop = 0.05}},
	{"RC WRITE, 5 % twice", RC_TEST(RDMA_WRITE, MANY, LOSS), .impair = {.dup = 0.05}},
	{"RC SEND, 5 % twice", RC_TEST(SEND, MANY, LOSS), .impair = {.dup = 0.05}},
	{"RC FETCH_ADD, 10 % twice", RC_TEST(ATOMIC_FETCH_AND_ADD, .count = 100, LOSS),
	 .impair = {.dup = 0.1}},
	{"RC WRITE, 3 % out of order", RC_TEST(RDMA_WRITE, MANY, LOSS),
	 .impair = {.reorder = 0.03}},
	{"RC SEND, 3 % damaged", RC_TEST(SEND, MANY, LOSS), .impair = {.corrupt = 0.03}},
	{"RC READ, 3 % damaged", RC_TEST(RDMA_READ, MANY, LOSS), .impair = {.corrupt = 0.03}},
	{"UC SEND_IMM, 5 % lost",
	 UC_TEST(SEND_WITH_IMM, .count = 130, .flags = EP_SIZES | EP_LOSSY, MTU_1024),
	 .impair = {.drop = 0.05}},
	{"UC WRITE, 5 % lost",
	 UC_TEST(RDMA_WRITE, .count = 130, .flags = EP_SIZES | EP_LOSSY, MTU_1024),
	 .impair = {.drop = 0.05}},
	{"UD SEND_IMM, 25 % lost", /* some of 60 frames are lost */
	 UD_TEST(SEND_WITH_IMM, .count = 60, .flags = EP_SIZES | EP_LOSSY, MTU_1024),
	 .impair = {.drop = 0.25}},
	{"RC WRITE, a FIRST lost", RC_TEST(RDMA_WRITE, SIZES, LOSS), ONCE(DROP, OUT, WRITE_FIRST)},
	{"RC WRITE, a MIDDLE lost", RC_TEST(RDMA_WRITE, SIZES, LOSS),
	 ONCE(DROP, OUT, WRITE_MIDDLE)},
	{"RC WRITE, a LAST lost", RC_TEST(RDMA_WRITE, SIZES, LOSS), ONCE(DROP, OUT, WRITE_LAST)},
	{"RC WRITE, an ACK lost", RC_TEST(RDMA_WRITE, SIZES, LOSS), ONCE(DROP, IN, ACK)},
	{"RC WRITE, the only ACK lost", RC_TEST(RDMA_WRITE, .count = 1, .size = 3000, LOSS),
	 THE_FIRST(DROP, IN, ACK)},
	{"RC SEND, the only ACK lost", RC_TEST(SEND, .count = 1, .size = 3000, LOSS),
	 THE_FIRST(DROP, IN, ACK)},
	{"RC SEND, the only ACK damaged", RC_TEST(SEND, .count = 1, .size = 3000, LOSS),
	 THE_FIRST(CORRUPT, IN, ACK)},
	{"RC WRITE_IMM, all of it twice", RC_TEST(RDMA_WRITE_WITH_IMM, SIZES, LOSS),
	 .impair = {.dup = 1}},
	{"RC READ, all of it twice", RC_TEST(RDMA_READ, SIZES, LOSS), .impair = {.dup = 1}},
	{"RC CMP_SWAP, all of it twice", RC_TEST(ATOMIC_CMP_AND_SWP, .count = 30, LOSS),
	 .impair = {.dup = 1}},
	{"RC WRITE, a MIDDLE behind its next", RC_TEST(RDMA_WRITE, SIZES, LOSS),
	 ONCE(REORDER, OUT, WRITE_MIDDLE)},
	{"RC SEND, a MIDDLE lost", RC_TEST(SEND, SIZES, LOSS), ONCE(DROP, OUT, SEND_MIDDLE)},
	{"RC SEND, a MIDDLE twice", RC_TEST(SEND, SIZES, LOSS), ONCE(DUP, OUT, SEND_MIDDLE)},
	{"RC READ, a request lost", RC_TEST(RDMA_READ, SIZES, LOSS), ONCE(DROP, OUT, READ_REQUEST)},
	{"RC READ, a request twice", RC_TEST(RDMA_READ, SIZES, LOSS), ONCE(DUP, OUT, READ_REQUEST)},
	{"RC READ, a response FIRST lost", RC_TEST(RDMA_READ, SIZES, LOSS),
	 ONCE(DROP, IN, READ_FIRST)},
	{"RC READ, a response MIDDLE lost", RC_TEST(RDMA_READ, SIZES, LOSS),
	 ONCE(DROP, IN, READ_MIDDLE)},
	{"RC READ, a response LAST lost", RC_TEST(RDMA_READ, SIZES, LOSS),
	 ONCE(DROP, IN, READ_LAST)},
	{"RC READ, a response MIDDLE damaged", RC_TEST(RDMA_READ, SIZES, LOSS),
	 ONCE(CORRUPT, IN, READ_MIDDLE)},
	{"RC FETCH_ADD, a request lost", RC_TEST(ATOMIC_FETCH_AND_ADD, .count = 16, LOSS),
	 ONCE(DROP, OUT, FETCH_ADD)},
	{"RC FETCH_ADD, an answer lost", RC_TEST(ATOMIC_FETCH_AND_ADD, .count = 16, LOSS),
	 ONCE(DROP, IN, ATOMIC_ACK)},
	{"RC CMP_SWAP, a request twice", RC_TEST(ATOMIC_CMP_AND_SWP, .count = 16, LOSS),
	 ONCE(DUP, OUT, CMP_SWAP)},
	{"RC WRITE, nobody hears it",
	 RC_TEST(RDMA_WRITE, .count = 1, .size = 64, .timeout = 10, .retry_cnt = 2,
		 .flags = EP_LOSSY, .expect = IBV_WC_RETRY_EXC_ERR),
	 .fault = {{.opcode = SOFTHCA_FAULT_ANY, .inbound = OUT}}, .num_faults = 1},
	{"RC WRITE, no answer comes",
	 RC_TEST(RDMA_WRITE, .count = 1, .size = 64, .timeout = 10, .retry_cnt = 2,
		 .flags = EP_LOSSY, .expect = IBV_WC_RETRY_EXC_ERR),
	 .fault = {{.opcode = SOFTHCA_FAULT_ANY, .inbound = IN}}, .num_faults = 1},
};

const unsigned int host_num_specials = sizeof(specials) / sizeof(specials[0]);

const char *
host_special_name(unsigned int i)
{
	return specials[i].name;
}

/*
 * Faults are defined for the requester's direction; if rxe is the requester, outgoing means
 * received by us.
 */
static void
aim_faults(const struct special *s, bool ours, struct host_case *c)
{
	c->num_faults = s->num_faults;
	memcpy(c->fault, s->fault, sizeof(c->fault));
	for (unsigned int i = 0; i < c->num_faults; i++) {
		if (!ours)
			c->fault[i].inbound = !s->fault[i].inbound;
		c->fault[i].psn = SOFTHCA_FAULT_ANY;
	}
}

bool
host_special(unsigned int i, bool ours, struct host_case *c)
{
	const struct special *s = &specials[i];
	const struct softhca_impairment *im = &s->impair;

	if (!ours && (s->only_ours || s->both_ways))
		return false;
	*c = (struct host_case){
		.test = s->test,
		.ours = ours,
		.qps = s->qps,
		.both_ways = s->both_ways,
		.impair = *im,
	};
	aim_faults(s, ours, c);
	if (ours && s->rxe_status != 0)
		c->test.expect = s->rxe_status;
	c->faults_must_hit = c->num_faults != 0 || im->drop > 0 || im->dup > 0 || im->reorder > 0 ||
			     im->corrupt > 0;
	return true;
}

static uint64_t
hash_of(const char *name, uint64_t seed)
{
	uint64_t h = seed * 0x9e3779b97f4a7c15ull + 0xcbf29ce484222325ull;

	for (; *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
	return h ^ h >> 29;
}

void
host_finish_case(struct host_case *c, uint64_t seed, const char *name)
{
	struct perf_exchange *t = &c->test;
	uint64_t h = hash_of(name, seed);

	t->version = PERF_EXCHANGE_VERSION;
	t->seed = 1 + h % 0xfffe;
	t->qkey = 0x11111111 + h % 0x10000;
#define DEFAULT(field, value) \
	if (t->field == 0) \
	t->field = value
	DEFAULT(psn, h >> 20 & 0xffffff);
	DEFAULT(ip, 4);
	DEFAULT(mtu, 4096);
	DEFAULT(count, 12);
	DEFAULT(depth, 8);
	DEFAULT(sge, 1);
	DEFAULT(timeout, 16); /* 0.27 s: the guest is slow */
	DEFAULT(retry_cnt, 7);
	DEFAULT(rnr_retry, 7);
	DEFAULT(rd_atomic, 4);
#undef DEFAULT
}
