/* SPDX-License-Identifier: BSD-3-Clause */

/* The requester: posts requests, up to `depth` at a time, and checks completions. */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "ep.h"

#define BAD_KEY_BITS 0x00000013u
#define BAD_QKEY_BITS 0x00000100u
#define SIGNAL_EVERY 4u
#define POLL_MAX 16

uint32_t
ep_immediate(const struct perf_exchange *t, unsigned int i)
{
	return htonl((uint32_t)t->seed << 16 | i);
}

static bool
last(const struct ep *ep, unsigned int i)
{
	return i + 1 == ep->test.count;
}

static bool
signaled(const struct ep *ep, unsigned int i)
{
	return (ep->test.flags & EP_UNSIGNALED) == 0 || (i + 1) % SIGNAL_EVERY == 0 || last(ep, i);
}

/* Split [addr, addr + size) into up to n SGEs; none if it is empty. */
static int
split(struct ibv_sge *sge, unsigned int n, uint64_t addr, size_t size, uint32_t lkey)
{
	int k = 0;

	if (n == 0)
		n = 1;
	while (size != 0) {
		size_t part = n > 1 && size / n != 0 ? size / n : size;

		sge[k++] = (struct ibv_sge){.addr = addr, .length = (uint32_t)part, .lkey = lkey};
		addr += part;
		size -= part;
		n -= n > 1;
	}
	return k;
}

static unsigned int
send_flags(const struct ep *ep, unsigned int i)
{
	unsigned int flags = signaled(ep, i) ? IBV_SEND_SIGNALED : 0;

	if (ep->test.flags & EP_INLINE)
		flags |= IBV_SEND_INLINE;
	if (ep->test.flags & EP_FENCE)
		flags |= IBV_SEND_FENCE;
	if ((ep->test.flags & EP_SOLICITED) && last(ep, i))
		flags |= IBV_SEND_SOLICITED;
	return flags;
}

/* Only the last request has the intended error. */
static bool
is_wrong(const struct ep *ep, unsigned int i, enum ep_flags flag)
{
	return (ep->test.flags & flag) != 0 && last(ep, i);
}

static uint32_t
remote_key(const struct ep *ep, unsigned int i)
{
	return (uint32_t)ep->peer.rkey ^ (is_wrong(ep, i, EP_BAD_KEY) ? BAD_KEY_BITS : 0);
}

static void
set_remote(const struct ep *ep, struct ibv_send_wr *wr, unsigned int i)
{
	uint64_t base = ep->peer.vaddr;

	wr->wr.rdma.rkey = remote_key(ep, i);
	if (is_wrong(ep, i, EP_PAST_END))
		wr->wr.rdma.remote_addr = base + ep->length - 7;
	else if (wr->opcode == IBV_WR_RDMA_READ)
		wr->wr.rdma.remote_addr = ep_source(ep, base, i);
	else
		wr->wr.rdma.remote_addr = ep_sink(ep, base, i);
}

/*
 * FETCH_ADD adds i + 1. COMP_SWAP expects the value after the previous atomic and stores i + 1
 * more; every third one expects another value and changes nothing.
 */
static uint64_t
value_before(const struct perf_exchange *t, unsigned int i)
{
	uint64_t v = EP_ATOMIC_START;

	for (unsigned int k = 0; k < i; k++) {
		uint32_t op = ep_op(t, k);

		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD ||
		    (op == IBV_WR_ATOMIC_CMP_AND_SWP && k % 3 != 2))
			v += k + 1;
	}
	return v;
}

static void
set_atomic(const struct ep *ep, struct ibv_send_wr *wr, unsigned int i)
{
	uint64_t base = ep->peer.vaddr, before = value_before(&ep->test, i);

	wr->wr.atomic.rkey = remote_key(ep, i);
	wr->wr.atomic.remote_addr = ep_counter(ep, base);
	if (is_wrong(ep, i, EP_PAST_END))
		wr->wr.atomic.remote_addr = base + ep->length;
	if (is_wrong(ep, i, EP_UNALIGNED))
		wr->wr.atomic.remote_addr += 4;
	wr->wr.atomic.compare_add = i + 1;
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return;
	wr->wr.atomic.compare_add = i % 3 != 2 ? before : before + 1;
	wr->wr.atomic.swap = before + i + 1;
}

static void
set_datagram(const struct ep *ep, struct ibv_send_wr *wr)
{
	wr->wr.ud.ah = ep->ah;
	wr->wr.ud.remote_qpn = ep->test.flags & EP_MCAST ? EP_MCAST_QPN : (uint32_t)ep->peer.qpn;
	wr->wr.ud.remote_qkey = (uint32_t)ep->peer.qkey;
	if (ep->test.flags & EP_BAD_QKEY)
		wr->wr.ud.remote_qkey ^= BAD_QKEY_BITS;
}

static int
post(struct ep *ep, unsigned int i)
{
	const struct perf_exchange *t = &ep->test;
	uint32_t op = ep_op(t, i);
	bool local_sink = op == IBV_WR_RDMA_READ || ep_op_is_atomic(op);
	uint64_t base = (uintptr_t)ep->memory;
	struct ibv_sge sge[EP_SGE_MAX];
	struct ibv_send_wr wr, *bad;
	int err;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = i;
	wr.opcode = op;
	wr.sg_list = sge;
	wr.num_sge = split(sge, (unsigned int)t->sge,
			   local_sink ? ep_sink(ep, base, i) : ep_source(ep, base, i),
			   ep_size(t, i), ep->mr->lkey);
	wr.send_flags = send_flags(ep, i);
	if (op == IBV_WR_SEND_WITH_INV)
		interop_invalidate(&wr, (uint32_t)ep->peer.rkey);
	else
		wr.imm_data = ep_immediate(t, i);
	if (t->service == IBV_QPT_UD)
		set_datagram(ep, &wr);
	else if (ep_op_is_atomic(op))
		set_atomic(ep, &wr, i);
	else
		set_remote(ep, &wr, i);
	err = ibv_post_send(ep->qp, &wr, &bad);
	if (err != 0)
		return ep_fail(ep, -EIO, "post_send of message %u: error %d", i, err);
	return 0;
}

static int
judge(struct ep *ep, const struct ibv_wc *wc)
{
	uint32_t expect = last(ep, (unsigned int)wc->wr_id) ? (uint32_t)ep->test.expect : 0;

	/* unsignalled requests complete silently with the next signalled one */
	while (ep->completed < ep->posted && ep->completed != wc->wr_id &&
	       !signaled(ep, ep->completed))
		ep->completed++;
	if (wc->wr_id != ep->completed)
		return ep_fail(ep, -EPROTO, "request %u completed, request %u was to",
			       (unsigned int)wc->wr_id, ep->completed);
	ep->completed++;
	if ((uint32_t)wc->status != expect)
		return ep_fail(ep, -EPROTO, "request %u completed as '%s', expected '%s'",
			       (unsigned int)wc->wr_id, ibv_wc_status_str(wc->status),
			       ibv_wc_status_str(expect));
	return 0;
}

int
ep_request(struct ep *ep)
{
	struct ibv_wc wc[POLL_MAX];
	int n, err;

	while (ep->posted < ep->test.count && ep->posted - ep->completed < ep->test.depth) {
		err = post(ep, ep->posted);
		if (err != 0)
			return err;
		ep->posted++;
	}
	n = ibv_poll_cq(ep->cq, POLL_MAX, wc);
	if (n < 0)
		return ep_fail(ep, -EIO, "poll_cq: error %d", n);
	for (int k = 0; k < n; k++) {
		err = judge(ep, &wc[k]);
		if (err != 0)
			return err;
	}
	if (n == 0 && ep_now() > ep->end)
		return ep_fail(ep, -ETIMEDOUT, "%u of %u requests completed, then none for %u ms",
			       ep->completed, (unsigned int)ep->test.count, EP_TIMEOUT_MS);
	return n;
}

/* Check the result of an atomic. */
static int
verify_result(struct ep *ep, unsigned int i)
{
	uint64_t found = *(uint64_t *)(uintptr_t)ep_sink(ep, (uintptr_t)ep->memory, i);
	uint64_t wanted = value_before(&ep->test, i);

	if (found == wanted)
		return 0;
	return ep_fail(ep, -EBADMSG, "atomic %u brought %llx, not %llx", i,
		       (unsigned long long)found, (unsigned long long)wanted);
}

/* Check the final value after all atomics. */
static int
verify_counter(struct ep *ep, unsigned int n)
{
	uint64_t found = *(uint64_t *)(uintptr_t)ep_counter(ep, (uintptr_t)ep->memory);
	uint64_t wanted = value_before(&ep->test, n);

	if (found == wanted)
		return 0;
	return ep_fail(ep, -EBADMSG, "atomics left %llx, not %llx", (unsigned long long)found,
		       (unsigned long long)wanted);
}

static int
verify_loss(struct ep *ep, unsigned int came)
{
	unsigned int least = ep->test.expect == 0 ? INTEROP_LEAST((unsigned int)ep->test.count) : 0;

	if (came >= least)
		return 0;
	return ep_fail(ep, -ENODATA, "%u of %u messages came, hardly any", came,
		       (unsigned int)ep->test.count);
}

static int
verify_lossy(struct ep *ep)
{
	const struct perf_exchange *t = &ep->test;
	unsigned int came = 0;
	int err = 0;

	if (t->requester)
		return 0;
	if (t->flags & EP_BAD_QKEY)
		return ep->received == 0 ? 0
					 : ep_fail(ep, -EBADMSG, "%u datagrams came", ep->received);
	if (!ep_op_is_write((uint32_t)t->op))
		return verify_loss(ep, ep->received);
	for (unsigned int i = 0; i < t->count && err == 0; i++) {
		came += ep_arrived(ep, i);
		err = ep_check_loss(ep, i);
	}
	return err == 0 ? verify_loss(ep, came) : err;
}

/*
 * Receives were checked one by one. A request that failed on purpose must not have changed
 * anything.
 */
static int
verify_message(struct ep *ep, unsigned int i)
{
	const struct perf_exchange *t = &ep->test;
	bool failed = t->expect != 0 && last(ep, i);
	uint32_t op = ep_op(t, i);

	if (ep_op_is_atomic(op))
		return t->requester && !failed ? verify_result(ep, i) : 0;
	if (op == IBV_WR_RDMA_READ)
		return t->requester && !failed ? ep_check(ep, i, i, ep_size(t, i), true) : 0;
	if (ep_op_is_write(op) && !t->requester)
		return ep_check(ep, i, i, failed ? 0 : ep_size(t, i), true);
	return 0;
}

int
ep_verify(struct ep *ep)
{
	const struct perf_exchange *t = &ep->test;
	int err = 0;

	if (t->flags & EP_LOSSY)
		return verify_lossy(ep);
	for (unsigned int i = 0; i < t->count && err == 0; i++)
		err = verify_message(ep, i);
	if (err == 0 && t->service == IBV_QPT_RC && !t->requester)
		err = verify_counter(ep, (unsigned int)t->count - (t->expect != 0));
	return err;
}
