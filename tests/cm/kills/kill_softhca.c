/* SPDX-License-Identifier: BSD-3-Clause */

/* On softhca/cm.h. */

#include "kill_api.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <softhca/cm.h>

static struct softhca_context *ctx;
static struct softhca_cm_channel *channel;
static struct softhca_cm_id *listener;
static struct softhca_pd *pd;
static struct softhca_cq *cq;
static struct softhca_mr *mr;
static char memory[2 * KILL_BYTES];

int
kill_open(const char *device, int *fd)
{
	const struct softhca_cq_init_attr attr = {.cqe = KILL_CQES};
	int err = softhca_open(device, &ctx);

	if (err != 0)
		return err;
	pd = softhca_alloc_pd(ctx);
	cq = softhca_create_cq(ctx, &attr);
	if (pd != NULL)
		mr = softhca_reg_mr(pd, memory, sizeof(memory), SOFTHCA_ACCESS_LOCAL_WRITE);
	channel = softhca_cm_create_channel(ctx);
	if (cq == NULL || mr == NULL || channel == NULL)
		return -errno;
	*fd = channel->fd;
	return 0;
}

int
kill_listen(const struct sockaddr *address, uint16_t *port)
{
	struct softhca_cm_info info;
	int err;

	listener = softhca_cm_create_id(channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, NULL);
	if (listener == NULL)
		return -errno;
	err = softhca_cm_bind(listener, address, 0);
	if (err == 0)
		err = softhca_cm_listen(listener, 128);
	if (err == 0)
		err = softhca_cm_query(listener, &info);
	/* at the same place in both families */
	*port = err == 0 ? ntohs(((const struct sockaddr_in *)&info.src)->sin_port) : 0;
	return err;
}

int
kill_resolve(struct kill_link *l, const struct sockaddr *address)
{
	int err;

	l->id = softhca_cm_create_id(channel, SOFTHCA_CM_TCP, SOFTHCA_QPT_RC, l);
	if (l->id == NULL)
		return -errno;
	err = softhca_cm_set_option(l->id, SOFTHCA_CM_OPTION_ACK_TIMEOUT, KILL_ACK_TIMEOUT);
	return err != 0 ? err : softhca_cm_resolve_addr(l->id, NULL, address, KILL_TIMEOUT_MS);
}

int
kill_route(struct kill_link *l)
{
	return softhca_cm_resolve_route(l->id, KILL_TIMEOUT_MS);
}

/* ---- data ---- */

static int
post_receive(struct kill_link *l)
{
	struct softhca_sge sge = {(uintptr_t)memory, KILL_BYTES, mr->lkey};
	struct softhca_recv_wr wr = {.wr_id = (uintptr_t)l, .sg_list = &sge, .num_sge = 1}, *bad;

	return softhca_post_recv(l->qp, &wr, &bad);
}

int
kill_send(struct kill_link *l)
{
	struct softhca_sge sge = {(uintptr_t)memory + KILL_BYTES, KILL_BYTES, mr->lkey};
	struct softhca_send_wr wr = {.wr_id = (uintptr_t)l,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_SEND,
				     .send_flags = SOFTHCA_SEND_SIGNALED};
	struct softhca_send_wr *bad;

	return softhca_post_send(l->qp, &wr, &bad);
}

static int
make_qp(struct kill_link *l)
{
	struct softhca_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = SOFTHCA_QPT_RC,
		.cap = {.max_send_wr = 2,
			.max_recv_wr = KILL_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	int err;

	l->qp = softhca_create_qp(pd, &attr);
	if (l->qp == NULL)
		return -errno;
	err = softhca_cm_modify_qp(l->id, l->qp, SOFTHCA_QPS_INIT);
	for (uint32_t i = 0; i < KILL_RECEIVES && err == 0; i++)
		err = post_receive(l);
	return err;
}

bool
kill_done(struct kill_link **l, const char **status)
{
	struct softhca_wc wc;

	while (softhca_poll_cq(cq, 1, &wc) == 1) {
		*l = (struct kill_link *)(uintptr_t)wc.wr_id;
		*status = wc.status == SOFTHCA_WC_SUCCESS ? NULL : softhca_wc_status_str(wc.status);
		if (wc.status == SOFTHCA_WC_SUCCESS && wc.opcode == SOFTHCA_WC_RECV) {
			if ((*l)->qp != NULL)
				(void)post_receive(*l);
		} else if (wc.status != SOFTHCA_WC_WR_FLUSH_ERR) {
			return true;
		}
	}
	return false;
}

/* ---- connections ---- */

static struct softhca_cm_param
param(const struct kill_link *l)
{
	return (struct softhca_cm_param){
		.qp_num = ((const struct softhca_qp *)l->qp)->qp_num,
		.retry_count = KILL_RETRIES,
		.rnr_retry_count = 7,
	};
}

int
kill_connect(struct kill_link *l)
{
	struct softhca_cm_param p;
	int err = make_qp(l);

	if (err != 0)
		return err;
	p = param(l);
	return softhca_cm_connect(l->id, &p);
}

int
kill_accept(struct kill_link *l)
{
	struct softhca_cm_param p;
	int err;

	((struct softhca_cm_id *)l->id)->user = l;
	err = make_qp(l);
	if (err == 0)
		err = softhca_cm_modify_qp(l->id, l->qp, SOFTHCA_QPS_RTS);
	if (err != 0)
		return err;
	p = param(l);
	return softhca_cm_accept(l->id, &p);
}

int
kill_establish(struct kill_link *l)
{
	int err = softhca_cm_modify_qp(l->id, l->qp, SOFTHCA_QPS_RTS);

	return err != 0 ? err : softhca_cm_establish(l->id);
}

int
kill_disconnect(struct kill_link *l)
{
	return softhca_cm_disconnect(l->id);
}

void
kill_destroy(struct kill_link *l)
{
	/* of a dead device it fails: the QP ends with its context */
	if (l->qp != NULL)
		(void)softhca_destroy_qp(l->qp);
	if (l->id != NULL)
		(void)softhca_cm_destroy_id(l->id);
	l->id = l->qp = NULL;
}

int
kill_next(struct kill_event *event)
{
	struct softhca_cm_event e;
	int err = softhca_cm_get_event(channel, &e);

	if (err != 0)
		return err;
	*event = (struct kill_event){
		.type = e.type,
		.status = e.status,
		.name = softhca_cm_event_str(e.type),
		.id = e.id,
		.link = e.type == SOFTHCA_CM_CONNECT_REQUEST ? NULL : e.id->user,
	};
	return 0;
}
