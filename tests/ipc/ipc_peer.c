/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Peers: the objects of one end, their connection, and a conversation in which everything is
 * verified.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc_rig.h"

#define QKEY 0x11223344u
#define SEND_BYTES 4096u
#define RDMA_BYTES 65536u

void
peer_fill(uint8_t *buf, uint64_t bytes, uint32_t seed)
{
	for (uint64_t i = 0; i < bytes; i++)
		buf[i] = peer_pattern(seed, i);
}

bool
peer_verify(const uint8_t *buf, uint64_t bytes, uint32_t seed)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (buf[i] != peer_pattern(seed, i)) {
			fprintf(stderr, "byte %lu is %#x, not %#x\n", (unsigned long)i, buf[i],
				peer_pattern(seed, i));
			return false;
		}
	return true;
}

static int
complain(int err, const char *what)
{
	fprintf(stderr, "%s: %s (%s)\n", what, strerror(err < 0 ? -err : err),
		softhca_last_error(NULL));
	return err < 0 ? err : -EIO;
}

/* ---- objects ---- */

static int
make_qp(struct peer *p, const struct peer_config *cfg)
{
	struct softhca_cq_init_attr ca = {
		.cqe = 4 * PEER_DEPTH,
		.channel = p->channel,
		.wc_flags = cfg->wc_flags,
	};
	uint32_t sges = cfg->sges != 0 ? cfg->sges : 1;
	struct softhca_srq_init_attr sa = {.attr = {.max_wr = PEER_DEPTH, .max_sge = sges}};
	struct softhca_qp_init_attr qa = {
		.qp_type = cfg->type,
		.cap = {PEER_DEPTH, PEER_DEPTH, sges, sges, PEER_INLINE},
	};

	p->cq = softhca_create_cq(p->ctx, &ca);
	if (p->cq == NULL)
		return -errno;
	if (cfg->srq) {
		p->srq = softhca_create_srq(p->pd, &sa);
		if (p->srq == NULL)
			return -errno;
	}
	qa.send_cq = qa.recv_cq = p->cq;
	qa.srq = p->srq;
	p->qp = softhca_create_qp(p->pd, &qa);
	return p->qp != NULL ? 0 : -errno;
}

static int
make_memory(struct peer *p, const struct peer_config *cfg)
{
	p->own_buf = cfg->buf == NULL;
	p->buf = p->own_buf ? softhca_alloc(PEER_BYTES) : cfg->buf;
	if (p->buf == NULL)
		return -errno;
	p->mr = softhca_reg_mr(p->pd, p->buf, PEER_BYTES,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
				       SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC);
	return p->mr != NULL ? 0 : -errno;
}

int
peer_open(struct peer *p, const char *device, const struct peer_config *cfg)
{
	int err;

	memset(p, 0, sizeof(*p));
	p->events = cfg->events;
	p->gid_index = cfg->gid_index;
	p->timeout = cfg->timeout != 0 ? cfg->timeout : 18;
	err = softhca_open(device, &p->ctx);
	if (err != 0)
		return complain(err, "open");
	p->pd = softhca_alloc_pd(p->ctx);
	if (p->pd == NULL)
		return complain(-errno, "alloc_pd");
	if (cfg->events)
		p->channel = softhca_create_comp_channel(p->ctx);
	if (cfg->events && p->channel == NULL)
		return complain(-errno, "create_comp_channel");
	err = make_memory(p, cfg);
	if (err == 0)
		err = make_qp(p, cfg);
	if (err == 0)
		err = softhca_query_gid(p->ctx, 1, (int)p->gid_index, &p->me.gid);
	if (err != 0)
		return complain(err, "objects");
	p->me.qpn = p->qp->qp_num;
	p->me.psn = p->qp->qp_num * 77 & 0xffffff;
	p->me.rkey = p->mr->rkey;
	p->me.addr = (uintptr_t)p->buf;
	return 0;
}

void
peer_close(struct peer *p)
{
	if (p->ah != NULL)
		softhca_destroy_ah(p->ah);
	if (p->qp != NULL)
		softhca_destroy_qp(p->qp);
	if (p->srq != NULL)
		softhca_destroy_srq(p->srq);
	if (p->cq != NULL)
		softhca_destroy_cq(p->cq);
	if (p->mr != NULL)
		softhca_dereg_mr(p->mr);
	if (p->channel != NULL)
		softhca_destroy_comp_channel(p->channel);
	if (p->pd != NULL)
		softhca_dealloc_pd(p->pd);
	if (p->ctx != NULL)
		softhca_close(p->ctx);
	if (p->own_buf)
		softhca_free(p->buf);
	memset(p, 0, sizeof(*p));
}

/* ---- connection ---- */

#define CONNECT (SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN)
#define RESPOND (SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER)
#define REQUEST \
	(SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY | \
	 SOFTHCA_QP_MAX_QP_RD_ATOMIC)

/* Attributes of each type of QP on its way to INIT, RTR, RTS */
struct steps {
	uint32_t type, init, rtr, rts;
};

static const struct steps steps[] = {
	{SOFTHCA_QPT_RC, SOFTHCA_QP_ACCESS_FLAGS, CONNECT | RESPOND, REQUEST},
	{SOFTHCA_QPT_UC, SOFTHCA_QP_ACCESS_FLAGS, CONNECT, SOFTHCA_QP_SQ_PSN},
	{SOFTHCA_QPT_UD, SOFTHCA_QP_QKEY, 0, SOFTHCA_QP_SQ_PSN},
	{SOFTHCA_QPT_XRC_SEND, SOFTHCA_QP_ACCESS_FLAGS, CONNECT, REQUEST},
	{SOFTHCA_QPT_XRC_RECV, SOFTHCA_QP_ACCESS_FLAGS, CONNECT | RESPOND,
	 SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_TIMEOUT},
};

static struct softhca_ah_attr
path_to(const struct peer *p)
{
	return (struct softhca_ah_attr){
		.dgid = p->other.gid,
		.sgid_index = (uint8_t)p->gid_index,
		.is_global = 1,
		.port_num = 1,
		.hop_limit = 64,
	};
}

int
peer_connect_qp(const struct peer *p, struct softhca_qp *qp, uint32_t dest_qpn, uint32_t rq_psn,
		uint32_t sq_psn)
{
	struct softhca_qp_attr a = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ |
				   SOFTHCA_ACCESS_REMOTE_ATOMIC,
		.path_mtu = SOFTHCA_MTU_4096,
		.dest_qp_num = dest_qpn,
		.rq_psn = rq_psn,
		.sq_psn = sq_psn,
		.max_dest_rd_atomic = 16,
		.max_rd_atomic = 16,
		.min_rnr_timer = 1,
		.timeout = p->timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = path_to(p),
	};
	const struct steps *t = steps;
	int err;

	while (t->type != qp->qp_type)
		t++;
	err = softhca_modify_qp(
		qp, &a, SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT | t->init);
	a.qp_state = SOFTHCA_QPS_RTR;
	if (err == 0)
		err = softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE | t->rtr);
	a.qp_state = SOFTHCA_QPS_RTS;
	if (err == 0)
		err = softhca_modify_qp(qp, &a, SOFTHCA_QP_STATE | t->rts);
	return err == 0 ? 0 : complain(err, "connect");
}

static int
connect_own(struct peer *p)
{
	struct softhca_ah_attr a = path_to(p);

	if (p->qp->qp_type == SOFTHCA_QPT_UD) {
		p->ah = softhca_create_ah(p->pd, &a);
		if (p->ah == NULL)
			return complain(-errno, "create_ah");
	}
	return peer_connect_qp(p, p->qp, p->other.qpn, p->other.psn, p->me.psn);
}

int
peer_connect(struct peer *p, int sock)
{
	int err;

	if (send(sock, &p->me, sizeof(p->me), MSG_NOSIGNAL) != sizeof(p->me) ||
	    recv(sock, &p->other, sizeof(p->other), 0) != sizeof(p->other))
		return complain(-EPIPE, "exchange");
	err = connect_own(p);
	return err == 0 ? peer_meet(sock) : err;
}

int
peer_connect_pair(struct peer *a, struct peer *b)
{
	int err;

	a->other = b->me;
	b->other = a->me;
	err = connect_own(a);
	return err == 0 ? connect_own(b) : err;
}

int
peer_meet(int sock)
{
	char c = 'm';

	if (send(sock, &c, 1, MSG_NOSIGNAL) == 1 && recv(sock, &c, 1, 0) == 1)
		return 0;
	return complain(-EPIPE, "the other end is gone");
}

/* ---- work ---- */

static int
sleep_for_event(struct peer *p, double seconds)
{
	struct pollfd f = {.fd = p->channel->fd, .events = POLLIN};
	struct softhca_cq *cq;
	int err;

	if (poll(&f, 1, (int)(seconds * 1000)) == 0)
		return -ETIMEDOUT;
	err = softhca_get_cq_event(p->channel, &cq, NULL);
	if (err == 0)
		softhca_ack_cq_events(cq, 1);
	return err;
}

int
peer_wait(struct peer *p, struct softhca_wc *wc, double seconds)
{
	uint64_t end = rig_now_ns() + (uint64_t)(seconds * 1e9);
	unsigned int spins = 0;

	for (;;) {
		int n = softhca_poll_cq(p->cq, 1, wc), err = 0;

		if (n != 0)
			return n < 0 ? n : (int)wc->status;
		if (rig_now_ns() > end)
			return -ETIMEDOUT;
		if (p->events) {
			err = softhca_req_notify_cq(p->cq, 0);
			n = softhca_poll_cq(p->cq, 1, wc);
			if (n != 0)
				return n < 0 ? n : (int)wc->status;
			if (err == 0)
				err = sleep_for_event(p, seconds);
		} else if (++spins < 100) {
			poll(NULL, 0, 0);
		} else {
			usleep(20); /* with more processes than CPUs, others must be able to run */
		}
		if (err != 0)
			return err;
	}
}

int
peer_post_recv(struct peer *p, uint64_t wr_id, uint64_t offset, uint32_t length)
{
	struct softhca_sge sge = {(uintptr_t)p->buf + offset, length, p->mr->lkey};
	struct softhca_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return p->srq != NULL ? softhca_post_srq_recv(p->srq, &wr, &bad)
			      : softhca_post_recv(p->qp, &wr, &bad);
}

int
peer_post(struct peer *p, uint32_t opcode, uint64_t wr_id, uint64_t offset, uint32_t length,
	  uint64_t remote_offset)
{
	struct softhca_sge sge = {(uintptr_t)p->buf + offset, length, p->mr->lkey};
	struct softhca_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = SOFTHCA_SEND_SIGNALED,
	};
	struct softhca_send_wr *bad;

	if (p->qp->qp_type == SOFTHCA_QPT_UD) {
		wr.wr.ud.ah = p->ah;
		wr.wr.ud.remote_qpn = p->other.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else if (opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = p->other.addr + remote_offset;
		wr.wr.atomic.rkey = p->other.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = p->other.addr + remote_offset;
		wr.wr.rdma.rkey = p->other.rkey;
	}
	return softhca_post_send(p->qp, &wr, &bad);
}

/* ---- the conversation ---- */

/* Layout of the buffer: sends, receives, target of the peer's writes, data read back, a counter. */
#define AT_SEND 0u
#define AT_RECV (2 * SEND_BYTES)
#define AT_SOURCE (4 * SEND_BYTES)
#define AT_WRITTEN (AT_SOURCE + RDMA_BYTES)
#define AT_READ (AT_WRITTEN + RDMA_BYTES)
#define AT_COUNTER (PEER_BYTES - 64)

static int
swap_sends(struct peer *p, int sock, uint32_t round)
{
	bool ud = p->qp->qp_type == SOFTHCA_QPT_UD;
	uint32_t grh = ud ? SOFTHCA_GRH_BYTES : 0, bytes = ud ? 2048 : SEND_BYTES;
	struct softhca_wc wc;
	int err = peer_post_recv(p, 1000 + round, AT_RECV, bytes + grh);

	peer_fill(p->buf + AT_SEND, bytes, p->me.qpn + round);
	if (err == 0)
		err = peer_meet(sock);
	if (err == 0)
		err = peer_post(p, SOFTHCA_WR_SEND, round, AT_SEND, bytes, 0);
	for (int i = 0; i < 2 && err == 0; i++) {
		err = peer_wait(p, &wc, RIG_TIMEOUT_S);
		if (err != 0)
			return complain(err, softhca_wc_status_str((uint32_t)err));
		if (wc.opcode != SOFTHCA_WC_RECV)
			continue;
		if (wc.wr_id != 1000 + round || wc.byte_len != bytes + grh ||
		    !peer_verify(p->buf + AT_RECV + grh, bytes, p->other.qpn + round))
			return complain(-EILSEQ, "a receive is not what was sent");
	}
	return err == 0 ? peer_meet(sock) : err;
}

static int
one(struct peer *p, uint32_t opcode, uint64_t offset, uint32_t length, uint64_t remote)
{
	struct softhca_wc wc;
	int err = peer_post(p, opcode, opcode, offset, length, remote);

	if (err == 0)
		err = peer_wait(p, &wc, RIG_TIMEOUT_S);
	if (err == 0 && wc.wr_id != opcode)
		err = -EILSEQ;
	return err;
}

static int
rdma(struct peer *p, int sock, uint32_t round)
{
	uint64_t *counter = (uint64_t *)(p->buf + AT_COUNTER);
	int err;

	__atomic_store_n(counter, round, __ATOMIC_RELEASE);
	peer_fill(p->buf + AT_SOURCE, RDMA_BYTES, p->me.qpn ^ round);
	err = peer_meet(sock);
	if (err == 0)
		err = one(p, SOFTHCA_WR_RDMA_WRITE, AT_SOURCE, RDMA_BYTES, AT_WRITTEN);
	if (err == 0)
		err = one(p, SOFTHCA_WR_RDMA_READ, AT_READ, RDMA_BYTES, AT_SOURCE);
	if (err == 0)
		err = one(p, SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, AT_SEND, 8, AT_COUNTER);
	if (err == 0)
		err = peer_meet(sock);
	if (err != 0)
		return complain(err, "rdma");
	if (!peer_verify(p->buf + AT_WRITTEN, RDMA_BYTES, p->other.qpn ^ round) ||
	    !peer_verify(p->buf + AT_READ, RDMA_BYTES, p->other.qpn ^ round))
		return complain(-EILSEQ, "data differs");
	if (__atomic_load_n(counter, __ATOMIC_ACQUIRE) != round + 1 ||
	    memcmp(p->buf + AT_SEND, &(uint64_t){round}, 8) != 0)
		return complain(-EILSEQ, "an atomic was not executed");
	return peer_meet(sock);
}

int
peer_talk(struct peer *p, int sock, unsigned int rounds)
{
	int err = 0;

	for (unsigned int i = 0; i < rounds && err == 0; i++) {
		err = swap_sends(p, sock, i);
		if (err == 0 && p->qp->qp_type == SOFTHCA_QPT_RC)
			err = rdma(p, sock, i);
	}
	return err;
}

int
peer_visit(const char *path, int sock, const struct peer_config *cfg, unsigned int rounds)
{
	struct peer p;
	int err = peer_open(&p, path, cfg);

	if (err == 0)
		err = peer_connect(&p, sock);
	if (err == 0)
		err = peer_talk(&p, sock, rounds);
	peer_close(&p);
	return err;
}
