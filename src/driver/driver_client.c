/* SPDX-License-Identifier: BSD-3-Clause */

/* Clients: a UAR page, a DMA domain, memory segments, event channels. */

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi_release.h"
#include "driver_types.h"

#define PIPE_BYTES (1 << 20)

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A free slot of the channel table; event_lock held, as for all uses of the table. */
static int
find_slot(struct hca_client *client, uint32_t *slot)
{
	struct driver_channel *grown;
	uint32_t n = client->num_channels;

	for (uint32_t i = 0; i < n; i++) {
		if (client->channels[i].write_fd < 0) {
			*slot = i;
			return 0;
		}
	}
	if (n >= DRIVER_MAX_CHANNELS)
		return driver_fail(-ENOMEM, "the client has %u channels, the limit: destroy some",
				   n);
	grown = realloc(client->channels, (n + 8) * sizeof(*grown));
	if (grown == NULL)
		return driver_no_memory("a channel", (n + 8) * sizeof(*grown));
	for (uint32_t i = n; i < n + 8; i++)
		grown[i] = (struct driver_channel){.write_fd = -1};
	client->channels = grown;
	client->num_channels = n + 8;
	*slot = n;
	return 0;
}

static int
open_channel(struct hca_client *client, uint32_t *channel, int *read_fd)
{
	struct hca_driver *drv = client->drv;
	int fds[2];
	int err;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return driver_fail(-errno, "pipe: %s", strerror(errno));
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	/* As large as is allowed without privileges; events that do not fit are delayed. */
	fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES);
	pthread_mutex_lock(&drv->event_lock);
	err = find_slot(client, channel);
	if (err == 0)
		client->channels[*channel] = (struct driver_channel){.write_fd = fds[1]};
	pthread_mutex_unlock(&drv->event_lock);
	if (err != 0) {
		close(fds[0]);
		close(fds[1]);
		return err;
	}
	client->count_channels++;
	*read_fd = fds[0];
	return 0;
}

/* Clear doorbells of the page's previous owner. */
static void
clear_uar(struct hca_client *client)
{
	volatile uint64_t *word = hca_client_uar(client);

	for (size_t i = 0; i < HCA_UAR_PAGE_SIZE / sizeof(*word); i++)
		word[i] = 0;
}

/* Select the pipelines of the client's QPs, before the device opens its doorbell page. */
static int
divide_uar(struct hca_client *client, bool undivided)
{
	const struct hca_driver *drv = client->drv;
	int err;

	client->pipes = undivided ? 1 : drv->pipes;
	if (drv->pipes == 1 || drv->hw.uar_undivide == NULL)
		return 0;
	err = drv->hw.uar_undivide(drv->hw.dma_arg, client->uar, undivided);
	return err == 0 ? 0
			: driver_fail(err, "the device does not divide doorbell page %u",
				      client->uar);
}

int
hca_client_open(struct hca_driver *drv, const struct hca_client_who *identity,
		struct hca_client **out)
{
	struct hca_client *client = calloc(1, sizeof(*client));
	uint32_t channel;
	int err;

	if (client == NULL)
		return driver_no_memory("a client", sizeof(*client));
	client->drv = drv;
	client->privileged = identity != NULL && identity->privileged;
	client->host = identity != NULL && identity->host;
	client->user = identity != NULL ? identity->user : 0;
	client->async_read_fd = -1;
	driver_lock_take(&drv->lock);
	err = driver_ids_take(&drv->uar_ids, &client->uar);
	if (err != 0) {
		driver_fail(err,
			    "all %u doorbell pages of the device are in use, one by each client",
			    drv->uar_ids.count - 1);
		goto err_unlock;
	}
	err = divide_uar(client, identity != NULL && identity->undivided);
	if (err == 0)
		err = open_channel(client, &channel, &client->async_read_fd);
	if (err != 0)
		goto err_uar;
	clear_uar(client);
	driver_share_init(client);
	pthread_mutex_lock(&drv->event_lock);
	client->next = drv->clients;
	drv->clients = client;
	pthread_mutex_unlock(&drv->event_lock);
	driver_lock_give(&drv->lock);
	*out = client;
	return 0;

err_uar:
	driver_ids_give(&drv->uar_ids, client->uar);
err_unlock:
	driver_lock_give(&drv->lock);
	free(client->channels);
	free(client);
	return err;
}

/*
 * Destroy all objects of a client with one command, if the device supports it; otherwise one by
 * one.
 */
static bool
close_domain(struct hca_driver *drv, const struct hca_client *client)
{
	if ((hca_be32_to_cpu(drv->lim.caps) & HCA_CAP_CLOSE_DOMAIN) == 0)
		return false;
	return driver_command_bare(drv, HCA_CMD_CLOSE_DOMAIN, 0, client->uar, 0) == 0;
}

/* Each release unlinks the head of its list. */
static void
release_objects(struct hca_driver *drv, struct hca_client *client)
{
	while (client->opened != NULL)
		driver_opener_drop(drv, client->opened);
	while (client->qps != NULL)
		if (!driver_qp_pass_on(drv, client->qps))
			driver_qp_release(drv, client->qps, true);
	while (client->srqs != NULL)
		driver_srq_release(drv, client->srqs, true);
	while (client->xrcds != NULL)
		driver_xrcd_release(drv, client, client->xrcds);
	while (client->cqs != NULL)
		driver_cq_release(drv, client->cqs, true);
	while (client->mws != NULL)
		driver_mw_release(drv, client->mws, true);
	while (client->mrs != NULL)
		driver_mr_destroy(drv, client->mrs, true);
	driver_pd_free_all(client);
}

static void
unlink_client(struct hca_driver *drv, struct hca_client *client)
{
	struct hca_client **link = &drv->clients;

	pthread_mutex_lock(&drv->event_lock);
	while (*link != client)
		link = &(*link)->next;
	*link = client->next;
	if (client->owed_port != 0)
		drv->owed--;
	for (uint32_t i = 0; i < client->num_channels; i++)
		close_fd(&client->channels[i].write_fd);
	pthread_mutex_unlock(&drv->event_lock);
}

void
hca_client_close(struct hca_client *client)
{
	struct hca_driver *drv = client->drv;

	driver_lock_take(&drv->lock);
	driver_cm_forget(client);
	driver_peers_forget(client);
	client->closed = close_domain(drv, client);
	release_objects(drv, client);
	unlink_client(drv, client);
	while (client->segments != NULL) {
		struct driver_segment *segment = client->segments;

		client->segments = segment->next;
		if (drv->hw.dma_detach != NULL)
			drv->hw.dma_detach(drv->hw.dma_arg, client->uar, segment->bus,
					   segment->len);
		free(segment);
	}
	driver_ids_give(&drv->uar_ids, client->uar);
	driver_lock_give(&drv->lock);
	driver_xrc_close(client->ended);
	close_fd(&client->async_read_fd);
	free(client->channels);
	free(client);
}

/* --- memory segments --- */

bool
driver_client_covers(const struct hca_client *client, uint64_t bus, uint64_t len)
{
	for (const struct driver_segment *s = client->segments; s != NULL; s = s->next)
		if (bus >= s->bus && len <= s->len && bus - s->bus <= s->len - len)
			return true;
	return false;
}

int
hca_client_attach(struct hca_client *client, uint64_t bus, uint64_t len)
{
	struct hca_driver *drv = client->drv;
	uint32_t quota = drv->config.quota.segments;
	struct driver_segment *segment;
	int err = 0;

	if (((bus | len) & (DRIVER_PAGE - 1)) != 0 || len == 0 || bus + len - 1 < bus)
		return driver_fail(-EINVAL,
				   "a segment of %llu bytes at %#llx: must be whole pages of 4 KiB",
				   (unsigned long long)len, (unsigned long long)bus);
	segment = calloc(1, sizeof(*segment));
	if (segment == NULL)
		return driver_no_memory("a segment", sizeof(*segment));
	segment->bus = bus;
	segment->len = len;
	driver_lock_take(&drv->lock);
	if (quota != 0 && client->count_segments >= quota)
		err = driver_fail(-ENOMEM, "the client has its %u segments ([quota] segments)",
				  quota);
	else if (drv->hw.dma_attach != NULL)
		err = drv->hw.dma_attach(drv->hw.dma_arg, client->uar, bus, len);
	if (err == 0) {
		segment->next = client->segments;
		client->segments = segment;
		client->count_segments++;
	}
	driver_lock_give(&drv->lock);
	if (err == 0)
		return 0;
	free(segment);
	if (err == -ENOMEM)
		return err;
	return driver_fail(err, "the device takes no window of %llu bytes at %#llx",
			   (unsigned long long)len, (unsigned long long)bus);
}

volatile void *
hca_client_uar(struct hca_client *client)
{
	return (volatile uint8_t *)client->drv->hw.bar2 + (size_t)client->uar * HCA_UAR_PAGE_SIZE;
}

/* --- queries --- */

static uint32_t
quota_or(uint32_t quota, uint32_t limit)
{
	return quota != 0 && quota < limit ? quota : limit;
}

static uint32_t
mcgs(const struct hca_mbox_dev_lim *lim)
{
	uint32_t word = hca_be32_to_cpu(lim->mcast);

	return word != 0 ? 1u << (HCA_LIM_MCGS_LOG(word) & 31) : 0;
}

static uint32_t
mws(const struct hca_mbox_dev_lim *lim)
{
	uint32_t log = HCA_LIM_MWS_LOG(hca_be32_to_cpu(lim->inline_mw));

	return log != 0 ? 1u << (log & 31) : 0;
}

static uint32_t
limit_of(const struct hca_client *client, enum driver_thing thing)
{
	uint64_t n = driver_quota_most(client, thing);

	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

int
driver_op_info(struct hca_client *client, const struct hca_ctl_none *none,
	       struct hca_ctl_info *info)
{
	const struct hca_driver *drv = client->drv;
	const struct hca_mbox_dev_lim *lim = &drv->lim;
	uint32_t sz = hca_be32_to_cpu(lim->max_sz);
	uint32_t port = hca_be32_to_cpu(lim->port);
	uint32_t sq = hca_be32_to_cpu(lim->sq_sg);
	uint32_t rd = hca_be32_to_cpu(lim->rd_atomic);

	*info = (struct hca_ctl_info){
		.board_id = hca_driver_node_guid(drv),
		.fw_ver = hca_be64_to_cpu(drv->adapter.fw_ver),
		.uar_page = client->uar,
		.log_num_qps = drv->config.log_num_qps,
		.log_num_cqs = drv->config.log_num_cqs,
		.log_max_wqes = HCA_LIM_QP_SZ_LOG(sz),
		.log_max_cqes = HCA_LIM_CQ_SZ_LOG(sz),
		.max_wqe_stride = HCA_LIM_MAX_DESC_SZ(sq),
		.max_sge = HCA_LIM_MAX_SGE(sq),
		.max_inline = HCA_LIM_MAX_INLINE(hca_be32_to_cpu(lim->inline_mw)),
		.max_rd_atomic = HCA_LIM_MAX_RD_ATOMIC(rd),
		.max_dest_rd_atomic = HCA_LIM_MAX_DEST_RD_ATOMIC(rd),
		.max_mtu = HCA_LIM_MAX_MTU(port),
		.num_ports = HCA_LIM_NUM_PORTS(port),
		.gid_entries = quota_or(hca_be32_to_cpu(lim->gid_table_len), DRIVER_MAX_GIDS),
		.pkey_entries = quota_or(hca_be32_to_cpu(lim->pkey_table_len), DRIVER_MAX_PKEYS),
		.max_qps = limit_of(client, DRIVER_QPS),
		.max_cqs = limit_of(client, DRIVER_CQS),
		.max_mrs = limit_of(client, DRIVER_MRS),
		.max_pds = limit_of(client, DRIVER_PDS),
		.ack_delay = HCA_LIM_ACK_DELAY(port),
		.flags = hca_be32_to_cpu(lim->caps),
		.log_num_srqs = drv->config.log_num_srqs,
		.max_srqs = limit_of(client, DRIVER_SRQS),
		.max_xrcds = limit_of(client, DRIVER_XRCDS),
		.max_mcgs = mcgs(lim),
		.max_qps_per_mcg = HCA_LIM_QP_PER_MCG(hca_be32_to_cpu(lim->mcast)),
		.max_mws = mws(lim),
		.num_vectors = drv->num_eqs - 1,
		.vendor_id = hca_be32_to_cpu(drv->adapter.vendor_id),
		.vendor_part_id = hca_be32_to_cpu(drv->adapter.vendor_part_id),
		.hw_ver = hca_be32_to_cpu(drv->adapter.hw_ver),
		.num_pipes = client->pipes,
		.share = client->share,
	};
	if ((info->flags & HCA_CAP_SRQ) == 0)
		info->max_srqs = 0;
	if ((info->flags & HCA_CAP_XRC) == 0)
		info->max_xrcds = 0;
	return 0;
}

int
driver_op_query_port(struct hca_client *client, const uint32_t *port, struct hca_ctl_port *answer)
{
	struct hca_driver *drv = client->drv;

	if (*port != 1)
		return driver_fail(-EINVAL, "port %u does not exist: the device has port 1", *port);
	pthread_mutex_lock(&drv->event_lock);
	*answer = drv->port;
	pthread_mutex_unlock(&drv->event_lock);
	return 0;
}

int
driver_op_query_clock(struct hca_client *client, const struct hca_ctl_none *none, uint64_t *ns)
{
	struct driver_cmd cmd = {.op = HCA_CMD_QUERY_CLOCK};
	int err = driver_command(client->drv, &cmd);

	if (err == 0)
		*ns = cmd.out_param;
	return err;
}

/*
 * Letters, digits and the other characters of package versions; the operator's terminal gets no
 * others.
 */
static void
take_release(char *out, const char *in, size_t size)
{
	size_t n = 0;

	while (n < size - 1 && (isalnum((unsigned char)in[n]) || strchr(".+~-", in[n]) != NULL) &&
	       in[n] != '\0') {
		out[n] = in[n];
		n++;
	}
	out[n] = '\0';
}

int
driver_op_identify(struct hca_client *client, const struct hca_ctl_identity *request,
		   struct hca_ctl_identity *answer)
{
	take_release(client->release, request->release, sizeof(client->release));
	*answer = (struct hca_ctl_identity){HCA_RELEASE};
	return 0;
}

/* --- channels --- */

int
driver_op_async_fd(struct hca_client *client, const struct hca_ctl_none *request,
		   struct hca_ctl_none *answer, struct hca_ctl_extra *extra)
{
	if (client->async_read_fd < 0)
		return driver_fail(-EINVAL, "the asynchronous channel was handed out before");
	extra->fds[0] = client->async_read_fd;
	client->async_read_fd = -1;
	return 0;
}

int
driver_op_create_channel(struct hca_client *client, const struct hca_ctl_none *none,
			 uint32_t *channel, struct hca_ctl_extra *extra)
{
	int err = driver_quota_files(client);

	return err == 0 ? open_channel(client, channel, &extra->fds[0]) : err;
}

int
driver_op_destroy_channel(struct hca_client *client, const uint32_t *channel,
			  struct hca_ctl_none *none)
{
	struct driver_channel *c =
		*channel < client->num_channels ? &client->channels[*channel] : NULL;

	if (*channel == 0 || c == NULL || c->write_fd < 0)
		return driver_fail(-EINVAL, "channel %u does not exist", *channel);
	if (c->users != 0)
		return driver_fail(-EBUSY, "%u CQs use the channel: destroy them first", c->users);
	driver_cm_channel(client, *channel);
	pthread_mutex_lock(&client->drv->event_lock);
	close_fd(&c->write_fd);
	client->count_channels--;
	pthread_mutex_unlock(&client->drv->event_lock);
	return 0;
}
