/* SPDX-License-Identifier: BSD-3-Clause */

/* On librdmacm and libibverbs. */

#include "kill_api.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rdma/rdma_cma.h>

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char memory[2 * KILL_BYTES];

static int
result(int rc)
{
	return rc == 0 ? 0 : rc > 0 ? -rc : -errno;
}

/* SOFTHCA_DEVICE names the device. */
int
kill_open(const char *device, int *fd)
{
	(void)device;
	channel = rdma_create_event_channel();
	if (channel == NULL)
		return -errno;
	*fd = channel->fd;
	return 0;
}

static int
id_options(struct rdma_cm_id *id)
{
	uint8_t timeout = KILL_ACK_TIMEOUT;

	return result(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
				      sizeof(timeout)));
}

int
kill_listen(const struct sockaddr *address, uint16_t *port)
{
	int err = result(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));

	if (err == 0)
		err = result(rdma_bind_addr(listener, (struct sockaddr *)address));
	if (err == 0)
		err = result(rdma_listen(listener, 128));
	*port = err == 0 ? ntohs(rdma_get_src_port(listener)) : 0;
	return err;
}

int
kill_resolve(struct kill_link *l, const struct sockaddr *address)
{
	struct rdma_cm_id *id;
	int err = result(rdma_create_id(channel, &id, l, RDMA_PS_TCP));

	if (err != 0)
		return err;
	l->id = id;
	err = id_options(id);
	return err != 0 ? err
			: result(rdma_resolve_addr(id, NULL, (struct sockaddr *)address,
						   KILL_TIMEOUT_MS));
}

int
kill_route(struct kill_link *l)
{
	return result(rdma_resolve_route(l->id, KILL_TIMEOUT_MS));
}

/* ---- data ---- */

static int
objects(struct ibv_context *verbs)
{
	if (pd == NULL)
		pd = ibv_alloc_pd(verbs);
	if (pd != NULL && cq == NULL)
		cq = ibv_create_cq(verbs, KILL_CQES, NULL, NULL, 0);
	if (cq != NULL && mr == NULL)
		mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	return mr == NULL ? -errno : 0;
}

static int
post_receive(struct kill_link *l)
{
	struct ibv_sge sge = {(uintptr_t)memory, KILL_BYTES, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)l, .sg_list = &sge, .num_sge = 1}, *bad;

	return result(ibv_post_recv(l->qp, &wr, &bad));
}

int
kill_send(struct kill_link *l)
{
	struct ibv_sge sge = {(uintptr_t)memory + KILL_BYTES, KILL_BYTES, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = (uintptr_t)l,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	return result(ibv_post_send(l->qp, &wr, &bad));
}

static int
make_qp(struct kill_link *l)
{
	struct rdma_cm_id *id = l->id;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 2,
			.max_recv_wr = KILL_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	int err = objects(id->verbs);

	attr.send_cq = attr.recv_cq = cq;
	if (err == 0)
		err = result(rdma_create_qp(id, pd, &attr));
	if (err != 0)
		return err;
	l->qp = id->qp;
	for (uint32_t i = 0; i < KILL_RECEIVES && err == 0; i++)
		err = post_receive(l);
	return err;
}

bool
kill_done(struct kill_link **l, const char **status)
{
	struct ibv_wc wc;

	while (cq != NULL && ibv_poll_cq(cq, 1, &wc) == 1) {
		*l = (struct kill_link *)(uintptr_t)wc.wr_id;
		*status = wc.status == IBV_WC_SUCCESS ? NULL : ibv_wc_status_str(wc.status);
		if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV) {
			if ((*l)->qp != NULL)
				(void)post_receive(*l);
		} else if (wc.status != IBV_WC_WR_FLUSH_ERR) {
			return true;
		}
	}
	return false;
}

/* ---- connections ---- */

static struct rdma_conn_param
param(void)
{
	return (struct rdma_conn_param){.retry_count = KILL_RETRIES, .rnr_retry_count = 7};
}

int
kill_connect(struct kill_link *l)
{
	struct rdma_conn_param p = param();
	int err = make_qp(l);

	return err != 0 ? err : result(rdma_connect(l->id, &p));
}

int
kill_accept(struct kill_link *l)
{
	struct rdma_conn_param p = param();
	struct rdma_cm_id *id = l->id;
	int err;

	id->context = l;
	err = make_qp(l);
	return err != 0 ? err : result(rdma_accept(id, &p));
}

int
kill_establish(struct kill_link *l)
{
	return result(rdma_establish(l->id));
}

int
kill_disconnect(struct kill_link *l)
{
	return result(rdma_disconnect(l->id));
}

void
kill_destroy(struct kill_link *l)
{
	if (l->qp != NULL)
		rdma_destroy_qp(l->id);
	if (l->id != NULL)
		(void)rdma_destroy_id(l->id);
	l->id = l->qp = NULL;
}

int
kill_next(struct kill_event *event)
{
	struct rdma_cm_event *e;

	if (rdma_get_cm_event(channel, &e) != 0)
		return -errno;
	*event = (struct kill_event){.type = e->event,
				     .status = e->status,
				     .name = rdma_event_str(e->event),
				     .id = e->id,
				     .link = e->id->context};
	if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		event->link = NULL;
	rdma_ack_cm_event(e);
	return 0;
}
