/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "embed_ctl.h"
#include "lib_ctl.h"

#define USER_FIRST UINT64_C(0x1000)
#define USER_END UINT64_C(0x7ffffffff000)

struct embed_ctl {
	struct hca_driver *drv;
	struct hca_client *client;
	struct embed_ctl_config config;
	uint32_t forks; /* embed_forks() when it was opened */
};

/* Whether this process was forked from the one that has the HCA. */
static bool
foreign(void *arg)
{
	return ((struct embed_ctl *)arg)->forks != embed_forks();
}

static struct hca_client *
client_of(void *arg)
{
	return ((struct embed_ctl *)arg)->client;
}

static int
ctl_info(void *arg, struct hca_ctl_info *info)
{
	return foreign(arg) ? -EPERM : hca_client_info(client_of(arg), info);
}

static volatile void *
ctl_uar(void *arg)
{
	return hca_client_uar(client_of(arg));
}

static int
ctl_query_port(void *arg, uint32_t port, struct hca_ctl_port *out)
{
	return foreign(arg) ? -EPERM : hca_client_query_port(client_of(arg), port, out);
}

static int
ctl_query_gid(void *arg, uint32_t index, uint8_t gid[16])
{
	return foreign(arg) ? -EPERM : hca_client_query_gid(client_of(arg), index, gid);
}

static int
ctl_query_pkey(void *arg, uint32_t index, uint16_t *pkey)
{
	return foreign(arg) ? -EPERM : hca_client_query_pkey(client_of(arg), index, pkey);
}

static int
ctl_alloc_pd(void *arg, uint32_t *pdn)
{
	return foreign(arg) ? -EPERM : hca_client_alloc_pd(client_of(arg), pdn);
}

static int
ctl_dealloc_pd(void *arg, uint32_t pdn)
{
	return foreign(arg) ? -EPERM : hca_client_dealloc_pd(client_of(arg), pdn);
}

static int
ctl_reg_mr(void *arg, const struct hca_ctl_mr *mr, const uint64_t *pages, struct hca_ctl_keys *keys)
{
	return foreign(arg) ? -EPERM : hca_client_reg_mr(client_of(arg), mr, pages, keys);
}

static int
ctl_dereg_mr(void *arg, uint32_t lkey)
{
	return foreign(arg) ? -EPERM : hca_client_dereg_mr(client_of(arg), lkey);
}

static int
ctl_rereg_mr(void *arg, uint32_t lkey, uint32_t flags, const struct hca_ctl_mr *mr,
	     struct hca_ctl_keys *keys)
{
	return foreign(arg) ? -EPERM
			    : hca_client_rereg_mr(client_of(arg), lkey, flags, mr, NULL, keys);
}

static int
ctl_alloc_mw(void *arg, uint32_t pdn, uint32_t type, uint32_t *rkey)
{
	return foreign(arg) ? -EPERM : hca_client_alloc_mw(client_of(arg), pdn, type, rkey);
}

static int
ctl_dealloc_mw(void *arg, uint32_t rkey)
{
	return foreign(arg) ? -EPERM : hca_client_dealloc_mw(client_of(arg), rkey);
}

static int
ctl_async_fd(void *arg, int *fd)
{
	return foreign(arg) ? -EPERM : hca_client_async_fd(client_of(arg), fd);
}

static int
ctl_create_channel(void *arg, uint32_t *channel, int *fd)
{
	return foreign(arg) ? -EPERM : hca_client_create_channel(client_of(arg), channel, fd);
}

static int
ctl_destroy_channel(void *arg, uint32_t channel)
{
	return foreign(arg) ? -EPERM : hca_client_destroy_channel(client_of(arg), channel);
}

static int
ctl_create_cq(void *arg, const struct hca_ctl_cq *cq, uint32_t *cqn)
{
	return foreign(arg) ? -EPERM : hca_client_create_cq(client_of(arg), cq, cqn);
}

static int
ctl_destroy_cq(void *arg, uint32_t cqn)
{
	return foreign(arg) ? -EPERM : hca_client_destroy_cq(client_of(arg), cqn);
}

static int
ctl_create_qp(void *arg, const struct hca_ctl_qp *qp, uint32_t *qpn)
{
	return foreign(arg) ? -EPERM : hca_client_create_qp(client_of(arg), qp, qpn);
}

static int
ctl_modify_qp(void *arg, uint32_t qpn, uint32_t opcode, const void *mailbox)
{
	return foreign(arg) ? -EPERM : hca_client_modify_qp(client_of(arg), qpn, opcode, mailbox);
}

static int
ctl_query_qp(void *arg, uint32_t qpn, void *mailbox)
{
	return foreign(arg) ? -EPERM : hca_client_query_qp(client_of(arg), qpn, mailbox);
}

static int
ctl_destroy_qp(void *arg, uint32_t qpn)
{
	return foreign(arg) ? -EPERM : hca_client_destroy_qp(client_of(arg), qpn);
}

static int
ctl_query_gid_entry(void *arg, uint32_t index, struct hca_ctl_gid *out)
{
	return foreign(arg) ? -EPERM : hca_client_query_gid_entry(client_of(arg), index, out);
}

static int
ctl_resolve(void *arg, struct hca_ctl_ah *ah)
{
	return foreign(arg) ? -EPERM : hca_client_resolve(client_of(arg), ah);
}

static int
ctl_query_counters(void *arg, uint32_t of, uint32_t number, struct hca_ctl_counter *out,
		   uint32_t max, uint32_t *total)
{
	return foreign(arg)
		       ? -EPERM
		       : hca_client_query_counters(client_of(arg), of, number, out, max, total);
}

static int
ctl_mcast(void *arg, uint32_t qpn, const uint8_t mgid[16], bool attach)
{
	return foreign(arg) ? -EPERM : hca_client_mcast(client_of(arg), qpn, mgid, attach);
}

static int
ctl_alloc_xrcd(void *arg, uint32_t *xrcd)
{
	return foreign(arg) ? -EPERM : hca_client_alloc_xrcd(client_of(arg), xrcd);
}

static int
ctl_dealloc_xrcd(void *arg, uint32_t xrcd)
{
	return foreign(arg) ? -EPERM : hca_client_dealloc_xrcd(client_of(arg), xrcd);
}

static int
ctl_create_srq(void *arg, const struct hca_ctl_srq *srq, uint32_t *srqn)
{
	return foreign(arg) ? -EPERM : hca_client_create_srq(client_of(arg), srq, srqn);
}

static int
ctl_arm_srq(void *arg, uint32_t srqn, uint32_t limit)
{
	return foreign(arg) ? -EPERM : hca_client_arm_srq(client_of(arg), srqn, limit);
}

static int
ctl_query_srq(void *arg, uint32_t srqn, struct hca_ctl_srq_state *out)
{
	return foreign(arg) ? -EPERM : hca_client_query_srq(client_of(arg), srqn, out);
}

static int
ctl_destroy_srq(void *arg, uint32_t srqn)
{
	return foreign(arg) ? -EPERM : hca_client_destroy_srq(client_of(arg), srqn);
}

static int
ctl_resize_cq(void *arg, uint32_t cqn, uint64_t addr, uint32_t log_size, uint32_t *index)
{
	return foreign(arg) ? -EPERM
			    : hca_client_resize_cq(client_of(arg), cqn, addr, log_size, index);
}

static int
ctl_moderate_cq(void *arg, uint32_t cqn, uint16_t count, uint16_t period_us)
{
	return foreign(arg) ? -EPERM
			    : hca_client_moderate_cq(client_of(arg), cqn, count, period_us);
}

static const char *
ctl_reason(void *arg)
{
	return foreign(arg) ? "the context belongs to the process this one was forked from"
			    : hca_driver_reason();
}

static bool
ctl_alive(void *arg)
{
	return !hca_driver_dead(((struct embed_ctl *)arg)->drv);
}

static unsigned int
ctl_progress(void *arg)
{
	struct embed_ctl *ctl = arg;

	return ctl->config.progress(ctl->config.arg);
}

static int
ctl_sleep(void *arg, const uint32_t **word, int *kick_fd)
{
	const struct embed_ctl_config *c = &((struct embed_ctl *)arg)->config;

	if (c->sleep_word == NULL)
		return -ENOENT;
	*word = c->sleep_word;
	*kick_fd = c->kick_fd;
	return 0;
}

static void
ctl_close(void *arg)
{
	struct embed_ctl *ctl = arg;

	hca_client_close(ctl->client);
	if (ctl->config.closed != NULL)
		ctl->config.closed(ctl->config.arg);
	free(ctl);
}

#define CTL_OPS(progress_fn) \
	{ \
		.info = ctl_info, .uar = ctl_uar, .query_port = ctl_query_port, \
		.query_gid = ctl_query_gid, .query_pkey = ctl_query_pkey, \
		.alloc_pd = ctl_alloc_pd, .dealloc_pd = ctl_dealloc_pd, .reg_mr = ctl_reg_mr, \
		.dereg_mr = ctl_dereg_mr, .rereg_mr = ctl_rereg_mr, .alloc_mw = ctl_alloc_mw, \
		.dealloc_mw = ctl_dealloc_mw, .async_fd = ctl_async_fd, \
		.create_channel = ctl_create_channel, .destroy_channel = ctl_destroy_channel, \
		.create_cq = ctl_create_cq, .destroy_cq = ctl_destroy_cq, \
		.create_qp = ctl_create_qp, .modify_qp = ctl_modify_qp, .query_qp = ctl_query_qp, \
		.resize_cq = ctl_resize_cq, .moderate_cq = ctl_moderate_cq, \
		.query_counters = ctl_query_counters, .query_gid_entry = ctl_query_gid_entry, \
		.resolve = ctl_resolve, .mcast = ctl_mcast, .alloc_xrcd = ctl_alloc_xrcd, \
		.dealloc_xrcd = ctl_dealloc_xrcd, .create_srq = ctl_create_srq, \
		.arm_srq = ctl_arm_srq, .query_srq = ctl_query_srq, \
		.destroy_srq = ctl_destroy_srq, .destroy_qp = ctl_destroy_qp, \
		.reason = ctl_reason, .alive = ctl_alive, .progress = progress_fn, \
		.sleep = ctl_sleep, .close = ctl_close, \
	}

static const struct softhca_ctl_ops manual_ops = CTL_OPS(ctl_progress);
static const struct softhca_ctl_ops background_ops = CTL_OPS(NULL);

int
embed_ctl_open(struct hca_driver *drv, const struct embed_ctl_config *config,
	       struct softhca_context **ctx)
{
	/* the device belongs to this process */
	const struct hca_client_who who = {.privileged = true};
	struct embed_ctl *ctl = calloc(1, sizeof(*ctl));
	int err;

	if (ctl == NULL)
		return -ENOMEM;
	ctl->drv = drv;
	ctl->config = *config;
	ctl->forks = embed_forks();
	err = hca_client_open(drv, &who, &ctl->client);
	if (err != 0)
		goto err_free;
	err = hca_client_attach(ctl->client, USER_FIRST, USER_END - USER_FIRST);
	if (err != 0)
		goto err_client;
	err = softhca_context_create(config->progress != NULL ? &manual_ops : &background_ops, ctl,
				     config->name, ctx);
	if (err != 0)
		goto err_client;
	return 0;

err_client:
	hca_client_close(ctl->client);
err_free:
	free(ctl);
	return err;
}
