/* SPDX-License-Identifier: BSD-3-Clause */

/* The operation of each message, and properties of operations. */

#include "ep.h"

bool
ep_op_is_atomic(uint32_t op)
{
	return op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP;
}

bool
ep_op_has_imm(uint32_t op)
{
	return op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool
ep_op_is_write(uint32_t op)
{
	return op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool
ep_op_takes_recv(uint32_t op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_INV || ep_op_has_imm(op);
}

uint32_t
ep_op(const struct perf_exchange *t, unsigned int i)
{
	static const uint32_t mixed[] = {
		IBV_WR_SEND,
		IBV_WR_RDMA_WRITE,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		/* RC */
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	uint32_t x = (uint32_t)t->seed * 0x9e3779b1u + i * 0x85ebca6bu;

	if (t->op != EP_OP_MIXED)
		return (uint32_t)t->op;
	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	return mixed[(x >> 20) % (t->service == IBV_QPT_RC ? 8 : 4)];
}

unsigned int
ep_next_recv(const struct perf_exchange *t, unsigned int i)
{
	while (i < t->count && !ep_op_takes_recv(ep_op(t, i)))
		i++;
	return i;
}

unsigned int
ep_num_recvs(const struct perf_exchange *t)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->count; i++)
		n += ep_op_takes_recv(ep_op(t, i));
	return n;
}
