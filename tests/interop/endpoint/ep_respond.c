/* SPDX-License-Identifier: BSD-3-Clause */

/* The responder: posts receives, sleeps for events, checks the messages. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "ep.h"

#define MS 1000000ull

#define POLL_MAX 16

static size_t
recv_size(const struct ep *ep, unsigned int i)
{
	const struct perf_exchange *t = &ep->test;
	size_t size;

	if (ep_op_is_write(ep_op(t, i)))
		return 0;
	/* if a message can be missing, the receive has room for the next one */
	size = t->flags & EP_LOSSY ? ep_stride(t) - 64 : ep_size(t, i);
	if ((t->flags & EP_SHORT_RECV) && i + 1 == t->count)
		size /= 2;
	return size;
}

/* Data in up to `sge` SGEs, the header of a datagram in its own. */
static int
fill_sge(struct ep *ep, struct ibv_sge *sge, unsigned int i)
{
	uint64_t at = ep_sink(ep, (uintptr_t)ep->memory, i);
	size_t size = recv_size(ep, i), parts = ep->test.sge ? ep->test.sge : 1;
	int n = 0;

	if (ep->test.service == IBV_QPT_UD) {
		sge[n++] = (struct ibv_sge){ep_grh(ep, i), EP_GRH, ep->mr->lkey};
		parts -= parts == EP_SGE_MAX;
	}
	while (size != 0) {
		size_t part = parts > 1 && size / parts != 0 ? size / parts : size;

		sge[n++] = (struct ibv_sge){at, (uint32_t)part, ep->mr->lkey};
		at += part;
		size -= part;
		parts -= parts > 1;
	}
	return n;
}

static int
post_recv(struct ep *ep, unsigned int i)
{
	struct ibv_sge sge[EP_SGE_MAX];
	struct ibv_recv_wr wr, *bad;
	int err;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = i;
	wr.sg_list = sge;
	wr.num_sge = fill_sge(ep, sge, i);
	err = ep->srq != NULL ? ibv_post_srq_recv(ep->srq, &wr, &bad)
			      : ibv_post_recv(ep->qp, &wr, &bad);
	return err == 0 ? 0 : ep_fail(ep, -EIO, "post_recv %u: error %d", i, err);
}

static int
post_recvs(struct ep *ep)
{
	const struct perf_exchange *t = &ep->test;

	for (; ep->recvs < t->count; ep->recvs = ep_next_recv(t, ep->recvs + 1)) {
		int err = post_recv(ep, ep->recvs);

		if (err != 0)
			return err;
	}
	return 0;
}

int
ep_start(struct ep *ep)
{
	const struct perf_exchange *t = &ep->test;

	ep->recvs = ep_next_recv(t, 0);
	ep->recv_next = ep->recvs;
	if (t->requester || ep->recvs == t->count || (t->flags & EP_NO_RECV))
		return 0;
	if ((t->flags & EP_SOLICITED) && ibv_req_notify_cq(ep->cq, 1) != 0)
		return ep_fail(ep, -EIO, "req_notify_cq");
	fcntl(ep->channel->fd, F_SETFL, O_NONBLOCK);
	ep->post_at = ep_now() + t->delay_us * 1000;
	return t->delay_us == 0 ? post_recvs(ep) : 0;
}

/* The number in the immediate data of a message; other messages arrive in order. */
static unsigned int
message_of(const struct ep *ep, const struct ibv_wc *wc)
{
	if ((ep->test.flags & EP_LOSSY) && ep_op_has_imm((uint32_t)ep->test.op))
		return ntohl(wc->imm_data) & 0xffff;
	return ep->recv_next;
}

static int
judge_fields(struct ep *ep, const struct ibv_wc *wc, unsigned int i, size_t size)
{
	const struct perf_exchange *t = &ep->test;
	uint32_t op = ep_op(t, i);
	uint32_t opcode = ep_op_is_write(op) ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	size_t length = size + (t->service == IBV_QPT_UD ? EP_GRH : 0);

	if ((uint32_t)wc->opcode != opcode)
		return ep_fail(ep, -EPROTO, "receive %u: opcode %u, not %u", i, wc->opcode, opcode);
	if (wc->byte_len != length)
		return ep_fail(ep, -EPROTO, "receive %u: %u bytes, not %zu", i, wc->byte_len,
			       length);
	if (ep_op_has_imm(op) != ((wc->wc_flags & IBV_WC_WITH_IMM) != 0))
		return ep_fail(ep, -EPROTO, "receive %u: flags %x", i, wc->wc_flags);
	if (ep_op_has_imm(op) && wc->imm_data != ep_immediate(t, i))
		return ep_fail(ep, -EPROTO, "receive %u: immediate %x, not %x", i,
			       ntohl(wc->imm_data), ntohl(ep_immediate(t, i)));
	if (op == IBV_WR_SEND_WITH_INV && !interop_invalidated(wc, (uint32_t)t->rkey))
		return ep_fail(ep, -EPROTO, "receive %u: no key was invalidated, flags %x", i,
			       wc->wc_flags);
	if (wc->qp_num != ep->qp->qp_num)
		return ep_fail(ep, -EPROTO, "receive %u: QP %x", i, wc->qp_num);
	if (t->service == IBV_QPT_UD &&
	    (wc->src_qp != ep->peer.qpn || (wc->wc_flags & IBV_WC_GRH) == 0))
		return ep_fail(ep, -EPROTO, "receive %u: from QP %x, flags %x", i, wc->src_qp,
			       wc->wc_flags);
	return 0;
}

/*
 * 20 zeros and an IPv4 header, or an IPv6 header: from the peer's address to mine or the group's.
 */
static int
judge_header(struct ep *ep, unsigned int slot)
{
	const uint8_t *h = (const uint8_t *)(uintptr_t)ep_grh(ep, slot);
	unsigned int tclass, hops;
	union ibv_gid to;
	bool ok;

	if (ep->test.service != IBV_QPT_UD)
		return 0;
	memcpy(to.raw, ep->test.gid, sizeof(to.raw));
	if (ep->test.flags & EP_MCAST)
		ep_group(&ep->test, &to);
	if (ep->test.ip == 6) {
		ok = h[0] >> 4 == 6 && memcmp(h + 8, ep->peer.gid, 16) == 0 &&
		     memcmp(h + 24, to.raw, 16) == 0;
		tclass = (h[0] & 0xfu) << 4 | h[1] >> 4;
		hops = h[7];
	} else {
		ok = h[20] == 0x45 && memcmp(h + 32, ep->peer.gid + 12, 4) == 0 &&
		     memcmp(h + 36, to.raw + 12, 4) == 0;
		tclass = h[21];
		hops = h[28];
	}
	if (!ok)
		return ep_fail(ep, -EPROTO, "receive %u: header of the datagram is wrong", slot);
	if (tclass != ep->test.tclass || hops != EP_HOP_LIMIT)
		return ep_fail(ep, -EPROTO, "receive %u: traffic class %x, hop limit %u", slot,
			       tclass, hops);
	return 0;
}

static int
judge(struct ep *ep, const struct ibv_wc *wc)
{
	const struct perf_exchange *t = &ep->test;
	unsigned int slot = (unsigned int)wc->wr_id, i = message_of(ep, wc);
	bool cut = (t->flags & EP_SHORT_RECV) && slot + 1 == t->count;
	size_t size;
	int err;

	/* consequence of an intended error */
	if (t->expect != 0 && wc->status == IBV_WC_WR_FLUSH_ERR)
		return 0;
	if (slot != ep->recv_next)
		return ep_fail(ep, -EPROTO, "receive %u completed, receive %u was to", slot,
			       ep->recv_next);
	if ((uint32_t)wc->status != (cut ? INTEROP_SHORT_RECV : IBV_WC_SUCCESS))
		return ep_fail(ep, -EPROTO, "receive %u completed as '%s'", slot,
			       ibv_wc_status_str(wc->status));
	ep->received++;
	ep->recv_next = ep_next_recv(t, slot + 1);
	if (cut)
		return 0;
	if (i >= t->count)
		return ep_fail(ep, -EPROTO, "receive %u: message %u of %u", slot, i,
			       (unsigned int)t->count);
	size = ep_size(t, i);
	err = judge_fields(ep, wc, i, size);
	if (err == 0)
		err = judge_header(ep, slot);
	if (err == 0 && !ep_op_is_write(ep_op(t, i)))
		err = ep_check(ep, slot, i, size, (t->flags & EP_LOSSY) == 0);
	return err;
}

/* Completions are not polled until the event of the solicited one has come. */
static bool
asleep(struct ep *ep)
{
	struct ibv_cq *cq;
	void *context;

	if ((ep->test.flags & EP_SOLICITED) == 0 || ep->slept)
		return false;
	interop_progress(ep->ctx);
	if (ibv_get_cq_event(ep->channel, &cq, &context) != 0)
		return true;
	ibv_ack_cq_events(cq, 1);
	ep->slept = true;
	return false;
}

int
ep_respond(struct ep *ep)
{
	const struct perf_exchange *t = &ep->test;
	bool receives = ep_num_recvs(t) != 0 && (t->flags & EP_NO_RECV) == 0;
	struct ibv_wc wc[POLL_MAX];
	int n, err;

	if (receives && ep->recvs < t->count && ep_now() >= ep->post_at) {
		err = post_recvs(ep);
		if (err != 0)
			return err;
	}
	if (receives && asleep(ep))
		return 0;
	n = ibv_poll_cq(ep->cq, POLL_MAX, wc);
	if (n < 0)
		return ep_fail(ep, -EIO, "poll_cq: error %d", n);
	for (int k = 0; k < n; k++) {
		err = judge(ep, &wc[k]);
		if (err != 0)
			return err;
	}
	return n;
}

/* Unacknowledged data may still be in flight. */
static bool
writes_arrived(struct ep *ep)
{
	const struct perf_exchange *t = &ep->test;

	for (unsigned int i = 0; i < t->count; i++)
		if (ep_op(t, i) == IBV_WR_RDMA_WRITE && !ep_arrived(ep, i))
			return false;
	return true;
}

/* Messages may be missing. If the machine stood still, more may be on their way. */
static bool
lossy_complete(const struct ep *ep)
{
	const struct perf_exchange *t = &ep->test;
	bool some = ep_num_recvs(t) == 0 || t->flags & EP_BAD_QKEY || t->expect != 0 ||
		    ep->received >= INTEROP_LEAST((unsigned int)t->count);
	uint64_t now = ep_now();

	if (ep->received == t->count)
		return true;
	return now > ep->quiet_at && (some || now - ep->quiet_at > EP_LATE_MS / 2 * MS);
}

bool
ep_complete(struct ep *ep)
{
	const struct perf_exchange *t = &ep->test;
	unsigned int recvs = ep_num_recvs(t);

	if (t->flags & EP_LOSSY)
		return lossy_complete(ep);
	if (t->flags & EP_NO_RECV)
		return true;
	if (recvs != 0 && t->expect != 0 && !(t->flags & EP_SHORT_RECV) &&
	    ep_op_takes_recv(ep_op(t, (unsigned int)t->count - 1)))
		recvs--;
	return ep->received == recvs && (t->service != IBV_QPT_UC || writes_arrived(ep));
}
