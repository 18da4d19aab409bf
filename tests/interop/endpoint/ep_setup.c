/* SPDX-License-Identifier: BSD-3-Clause */

/* Queues, memory, and the transitions to RTS. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ep.h"

#define IDLE_SPINS 256u
#define IDLE_US 50u
#define MIN_RNR_TIMER 12u /* 0.64 ms */

uint64_t
ep_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void
ep_idle(unsigned int *idle)
{
	if (++*idle > IDLE_SPINS)
		usleep(IDLE_US);
}

int
ep_fail(struct ep *ep, int err, const char *format, ...)
{
	va_list ap;

	if (ep->reason[0] != '\0')
		return err; /* the first reason is the relevant one */
	va_start(ap, format);
	vsnprintf(ep->reason, sizeof(ep->reason), format, ap);
	va_end(ap);
	return err;
}

static bool
is_ud(const struct ep *ep)
{
	return ep->test.service == IBV_QPT_UD;
}

static bool
is_rc(const struct ep *ep)
{
	return ep->test.service == IBV_QPT_RC;
}

static int
open_memory(struct ep *ep)
{
	unsigned int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

	if ((ep->test.flags & EP_NO_RIGHTS) == 0 || ep->test.requester)
		rights |=
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	ep->stride = ep_stride(&ep->test);
	ep->length = ep_length(&ep->test);
	if (posix_memalign((void **)&ep->memory, 4096, ep->length) != 0)
		return ep_fail(ep, -ENOMEM, "no memory for %zu bytes", ep->length);
	ep_fill(ep);
	ep->mr = ibv_reg_mr(ep->pd, ep->memory, ep->length, (int)rights);
	if (ep->mr == NULL)
		return ep_fail(ep, -errno, "reg_mr: %s", strerror(errno));
	ep->test.vaddr = (uintptr_t)ep->memory;
	ep->test.rkey = ep->mr->rkey;
	return 0;
}

static int
open_cq(struct ep *ep)
{
	ep->channel = ibv_create_comp_channel(ep->ctx);
	if (ep->channel == NULL)
		return ep_fail(ep, -errno, "create_comp_channel: %s", strerror(errno));
	ep->cq = ibv_create_cq(ep->ctx, 2 * (int)ep->test.count + 8, NULL, ep->channel, 0);
	if (ep->cq == NULL)
		return ep_fail(ep, -errno, "create_cq: %s", strerror(errno));
	return 0;
}

static int
open_srq(struct ep *ep)
{
	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = (uint32_t)ep->test.count, .max_sge = EP_SGE_MAX},
	};

	if ((ep->test.flags & EP_SRQ) == 0)
		return 0;
	ep->srq = ibv_create_srq(ep->pd, &attr);
	return ep->srq != NULL ? 0 : ep_fail(ep, -errno, "create_srq: %s", strerror(errno));
}

static int
open_qp(struct ep *ep)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = ep->cq,
		.recv_cq = ep->cq,
		.srq = ep->srq,
		.qp_type = (uint32_t)ep->test.service,
		.cap =
			{
				.max_send_wr = (uint32_t)ep->test.depth + 1,
				.max_recv_wr = ep->srq == NULL ? (uint32_t)ep->test.count : 0,
				.max_send_sge = EP_SGE_MAX,
				.max_recv_sge = ep->srq == NULL ? EP_SGE_MAX : 0,
				.max_inline_data = EP_INLINE_MAX,
			},
	};

	ep->qp = ibv_create_qp(ep->pd, &attr);
	if (ep->qp == NULL)
		return ep_fail(ep, -errno, "create_qp: %s", strerror(errno));
	ep->test.qpn = ep->qp->qp_num;
	return 0;
}

static int
to_init(struct ep *ep)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = (uint32_t)ep->test.qkey,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (is_rc(ep))
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	mask |= is_ud(ep) ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	if (ibv_modify_qp(ep->qp, &attr, mask) != 0)
		return ep_fail(ep, -EINVAL, "QP to INIT: %s", strerror(errno));
	return 0;
}

#define PREFIX 15 /* bytes; the last byte distinguishes the ends */

/* The addresses of both ends, by version and kind. */
static const struct {
	uint32_t ip, net;
	uint8_t prefix[PREFIX];
} nets[] = {
	{4, EP_NET_PLAIN, {[10] = 0xff, 0xff, 10, 77, 0}},
	{6, EP_NET_PLAIN, {0x20, 0x01, 0x0d, 0xb8, 0, 0x77}},
	{4, EP_NET_VLAN, {[10] = 0xff, 0xff, 10, 78, 0}},
	{6, EP_NET_VLAN, {0x20, 0x01, 0x0d, 0xb8, 0, 0x78}},
	{6, EP_NET_LINK_LOCAL, {0xfe, 0x80}},
};

static const uint8_t *
prefix_of(const struct perf_exchange *t)
{
	for (unsigned int i = 0; i < sizeof(nets) / sizeof(nets[0]); i++)
		if (nets[i].ip == t->ip && nets[i].net == t->net)
			return nets[i].prefix;
	return nets[0].prefix;
}

static int
find_gid(struct ep *ep)
{
	const uint8_t *prefix = prefix_of(&ep->test);
	union ibv_gid gid;

	for (ep->sgid_index = 0; ep->sgid_index < 32; ep->sgid_index++) {
		if (ibv_query_gid(ep->ctx, 1, (int)ep->sgid_index, &gid) != 0)
			continue;
		/* there may be another link-local address, made from the MAC address */
		if (memcmp(gid.raw, prefix, PREFIX) != 0 || gid.raw[PREFIX] > 2)
			continue;
		memcpy(ep->test.gid, gid.raw, sizeof(gid.raw));
		return 0;
	}
	return ep_fail(ep, -ENODATA, "no GID for IPv%u, kind %u", (unsigned int)ep->test.ip,
		       (unsigned int)ep->test.net);
}

void
ep_group(const struct perf_exchange *t, union ibv_gid *gid)
{
	static const union ibv_gid group4 = {{[10] = 0xff, 0xff, 239, 77, 0, 1}};
	static const union ibv_gid group6 = {{0xff, 0x0e, [15] = 0x77}};

	*gid = t->ip == 6 ? group6 : group4;
}

int
ep_open(struct ep *ep, struct ibv_context *ctx, const struct perf_exchange *test)
{
	int err;

	memset(ep, 0, sizeof(*ep));
	ep->ctx = ctx;
	ep->test = *test;
	ep->pd = ibv_alloc_pd(ctx);
	if (ep->pd == NULL)
		return ep_fail(ep, -errno, "alloc_pd: %s", strerror(errno));
	err = find_gid(ep);
	if (err == 0)
		err = open_memory(ep);
	if (err == 0)
		err = open_cq(ep);
	if (err == 0)
		err = open_srq(ep);
	if (err == 0)
		err = open_qp(ep);
	if (err == 0)
		err = ep_window_open(ep);
	return err == 0 ? to_init(ep) : err;
}

static unsigned int
mtu_code(uint64_t bytes)
{
	unsigned int code = IBV_MTU_256;

	while (128u << code < bytes)
		code++;
	return code;
}

static unsigned int
path_mtu(const struct perf_exchange *t)
{
	return mtu_code((t->flags & EP_MTU_HALF) != 0 && !t->requester ? t->mtu / 2 : t->mtu);
}

static int
to_rtr(struct ep *ep)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = path_mtu(&ep->test),
		.dest_qp_num = (uint32_t)ep->peer.qpn,
		.rq_psn = (uint32_t)ep->peer.psn,
		.max_dest_rd_atomic = (uint8_t)ep->test.rd_atomic,
		.min_rnr_timer = MIN_RNR_TIMER,
	};
	int mask = IBV_QP_STATE;

	if (!is_ud(ep))
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (is_rc(ep))
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	interop_path(&attr.ah_attr, ep->peer.gid, ep->sgid_index, (unsigned int)ep->test.tclass,
		     EP_HOP_LIMIT);
	if (ibv_modify_qp(ep->qp, &attr, mask) != 0)
		return ep_fail(ep, -EINVAL, "QP to RTR: %s", strerror(errno));
	return 0;
}

static int
to_rts(struct ep *ep)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = (uint32_t)ep->test.psn,
		.timeout = (uint8_t)ep->test.timeout,
		.retry_cnt = (uint8_t)ep->test.retry_cnt,
		.rnr_retry = (uint8_t)ep->test.rnr_retry,
		.max_rd_atomic = (uint8_t)ep->test.rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (is_rc(ep))
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	if (ibv_modify_qp(ep->qp, &attr, mask) != 0)
		return ep_fail(ep, -EINVAL, "QP to RTS: %s", strerror(errno));
	return 0;
}

static int
open_ah(struct ep *ep)
{
	bool group = (ep->test.flags & EP_MCAST) != 0;
	struct ibv_ah_attr attr;
	union ibv_gid gid;

	if (group)
		ep_group(&ep->test, &gid);
	else
		memcpy(gid.raw, ep->peer.gid, sizeof(gid.raw));
	interop_path(&attr, gid.raw, ep->sgid_index, (unsigned int)ep->test.tclass, EP_HOP_LIMIT);
	ep->ah = ibv_create_ah(ep->pd, &attr);
	if (ep->ah == NULL)
		return ep_fail(ep, -errno, "create_ah: %s", strerror(errno));
	if (group && !ep->test.requester && ibv_attach_mcast(ep->qp, &gid, 0) != 0)
		return ep_fail(ep, -EIO, "attach_mcast: %s", strerror(errno));
	return 0;
}

static int
to_state(struct ep *ep, uint32_t state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	if (ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE) != 0)
		return ep_fail(ep, -EINVAL, "QP to state %u: %s", state, strerror(errno));
	return 0;
}

/* Through ERR and RESET back to INIT. */
static int
start_again(struct ep *ep)
{
	int err = to_state(ep, IBV_QPS_ERR);

	if (err == 0)
		err = to_state(ep, IBV_QPS_RESET);
	return err == 0 ? to_init(ep) : err;
}

static int
to_ready(struct ep *ep)
{
	int err = to_rtr(ep);

	return err == 0 ? to_rts(ep) : err;
}

int
ep_connect(struct ep *ep, const struct perf_exchange *peer)
{
	int err;

	ep->peer = *peer;
	err = to_ready(ep);
	if (err == 0 && (ep->test.flags & EP_REUSED) != 0) {
		err = start_again(ep);
		if (err == 0)
			err = to_ready(ep);
	}
	if (err == 0 && is_ud(ep))
		err = open_ah(ep);
	return err == 0 ? ep_window_bind(ep) : err;
}

static void
leave_group(struct ep *ep)
{
	union ibv_gid gid;

	if ((ep->test.flags & EP_MCAST) == 0 || ep->test.requester)
		return;
	ep_group(&ep->test, &gid);
	ibv_detach_mcast(ep->qp, &gid, 0);
}

void
ep_close(struct ep *ep)
{
	/* before its QP: rxe does not destroy a QP with a window bound to it */
	if (ep->window != NULL)
		ibv_dealloc_mw(ep->window);
	if (ep->qp != NULL) {
		leave_group(ep);
		ibv_destroy_qp(ep->qp);
	}
	if (ep->ah != NULL)
		ibv_destroy_ah(ep->ah);
	if (ep->srq != NULL)
		ibv_destroy_srq(ep->srq);
	if (ep->cq != NULL)
		ibv_destroy_cq(ep->cq);
	if (ep->channel != NULL)
		ibv_destroy_comp_channel(ep->channel);
	if (ep->mr != NULL)
		ibv_dereg_mr(ep->mr);
	free(ep->memory);
	if (ep->pd != NULL)
		ibv_dealloc_pd(ep->pd);
	memset(ep, 0, sizeof(*ep));
}
