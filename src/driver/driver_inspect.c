/* SPDX-License-Identifier: BSD-3-Clause */

/* Lists of objects for operators, read piecewise under the driver's lock. */

#include <errno.h>
#include <string.h>

#include "driver_types.h"

static bool
is_hosts(const struct hca_client *owner)
{
	return owner != NULL && owner->host;
}

static void
show_client(const struct hca_client *c, struct hca_driver_client_info *out)
{
	*out = (struct hca_driver_client_info){
		.index = c->uar,
		.qps = (uint32_t)c->count[DRIVER_QPS],
		.peers = (uint32_t)c->count[DRIVER_PEERS],
		.links = (uint32_t)c->count[DRIVER_LINKS],
		.known = (uint32_t)c->count[DRIVER_KNOWN],
		.cqs = (uint32_t)c->count[DRIVER_CQS],
		.mrs = (uint32_t)c->count[DRIVER_MRS],
		.pds = (uint32_t)c->count[DRIVER_PDS],
		.srqs = (uint32_t)c->count[DRIVER_SRQS],
		.xrcds = (uint32_t)c->count[DRIVER_XRCDS],
		.channels = c->count_channels,
		.segments = c->count_segments,
		.mtts = c->count[DRIVER_MTTS],
	};
	memcpy(out->release, c->release, sizeof(out->release));
}

static const struct hca_client *
next_client(const struct hca_driver *drv, uint32_t from)
{
	const struct hca_client *best = NULL;

	for (const struct hca_client *c = drv->clients; c != NULL; c = c->next)
		if (!c->host && c->uar >= from && (best == NULL || c->uar < best->uar))
			best = c;
	return best;
}

/* The list is in the order of creation, and short. */
unsigned int
hca_driver_list_clients(struct hca_driver *drv, uint32_t from, struct hca_driver_client_info *out,
			unsigned int max)
{
	const struct hca_client *c;
	unsigned int n = 0;

	driver_lock_take(&drv->lock);
	while (n < max && (c = next_client(drv, from)) != NULL) {
		show_client(c, &out[n++]);
		from = c->uar + 1;
	}
	driver_lock_give(&drv->lock);
	return n;
}

static void
show_mr(const struct driver_mr *mr, uint32_t index, struct hca_driver_mr_info *out)
{
	*out = (struct hca_driver_mr_info){
		.index = index,
		.key = mr->key,
		.owner = mr->owner != NULL ? mr->owner->uar : 0,
		.pdn = mr->pdn,
		.access = mr->access,
		.va = mr->va + mr->shift,
		.length = mr->length,
		.page_size = mr->window ? 0 : 1ull << mr->page_log,
		.queue = mr->internal,
		.window = mr->window,
		.null = mr->null,
	};
}

unsigned int
hca_driver_list_mrs(struct hca_driver *drv, uint32_t from, struct hca_driver_mr_info *out,
		    unsigned int max)
{
	unsigned int n = 0;

	driver_lock_take(&drv->lock);
	for (uint32_t i = from; i < drv->mpt_ids.count && n < max; i++)
		if (drv->mrs[i] != NULL && !is_hosts(drv->mrs[i]->owner))
			show_mr(drv->mrs[i], i, &out[n++]);
	driver_lock_give(&drv->lock);
	return n;
}

static void
show_qp(const struct driver_qp *qp, uint32_t index, struct hca_driver_qp_info *out)
{
	*out = (struct hca_driver_qp_info){
		.index = index,
		.qpn = qp->qpn,
		.owner = qp->owner->uar,
		.service = qp->service,
		.pdn = qp->pd != NULL ? qp->pd->pdn : 0,
		.send_cqn = qp->send_cq != NULL ? qp->send_cq->cqn : 0,
		.recv_cqn = qp->recv_cq != NULL ? qp->recv_cq->cqn : 0,
		.srqn = qp->srq != NULL ? qp->srq->srqn : 0,
	};
}

unsigned int
hca_driver_list_qps(struct hca_driver *drv, uint32_t from, struct hca_driver_qp_info *out,
		    unsigned int max)
{
	unsigned int n = 0;

	driver_lock_take(&drv->lock);
	for (uint32_t i = from; i < drv->qp_ids.count && n < max; i++)
		if (drv->qps[i] != NULL && !is_hosts(drv->qps[i]->owner))
			show_qp(drv->qps[i], i, &out[n++]);
	driver_lock_give(&drv->lock);
	return n;
}

bool
hca_driver_is_host_qp(struct hca_driver *drv, uint32_t qpn)
{
	const struct driver_qp *qp;
	bool hosts;

	driver_lock_take(&drv->lock);
	qp = drv->qps[qpn & (drv->qp_ids.count - 1)];
	hosts = qp != NULL && qp->qpn == qpn && is_hosts(qp->owner);
	driver_lock_give(&drv->lock);
	return hosts;
}

int
hca_driver_query_qp(struct hca_driver *drv, uint32_t qpn, void *mailbox)
{
	const struct driver_qp *qp;
	int err;

	driver_lock_take(&drv->lock);
	qp = drv->qps[qpn & (drv->qp_ids.count - 1)];
	if (qp != NULL && qp->qpn == qpn)
		err = driver_qp_query(drv, qp, mailbox);
	else
		err = driver_fail(-EINVAL, "QP %#x does not exist", qpn);
	driver_lock_give(&drv->lock);
	return err;
}

void
hca_driver_query_port(struct hca_driver *drv, struct hca_ctl_port *out)
{
	driver_lock_take(&drv->lock);
	pthread_mutex_lock(&drv->event_lock);
	*out = drv->port;
	pthread_mutex_unlock(&drv->event_lock);
	driver_lock_give(&drv->lock);
}
