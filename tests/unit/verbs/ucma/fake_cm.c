/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cm.h"
#include "ucma.h"

struct fake_hca {
	struct softhca_context pub;
	int number;
	bool dead;
};

struct fake_event {
	struct fake_event *next;
	struct softhca_cm_event event;
};

struct fake_channel {
	struct softhca_cm_channel pub;
	struct fake_hca *hca;
	int write_fd;
	struct fake_event *first, **last;
};

struct fake_id {
	struct softhca_cm_id pub;
	struct fake_id *next;
	struct fake_channel *channel;
	struct sockaddr_storage src, dst;
	uint32_t qp_type;
	bool bound, listening, resolved;
	int backlog;
	struct fake_id *peer;
};

static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_device devices[FAKE_HCAS];
static int num_devices;
static struct fake_counts counts;
static struct fake_id *all;
static bool dead[FAKE_HCAS], older[FAKE_HCAS];
static struct fake_hca *opened[FAKE_HCAS];

static void
lock(void)
{
	pthread_mutex_lock(&fake_lock);
}

static int
unlock(int result)
{
	pthread_mutex_unlock(&fake_lock);
	return result;
}

void
fake_begin(int hcas)
{
	num_devices = hcas;
}

void
fake_set_older(int hca, bool is)
{
	older[hca] = is;
}

struct fake_counts
fake_counts(void)
{
	return counts;
}

/* ---- devices ---- */

struct ibv_device **
ucma_front_devices(int *n)
{
	struct ibv_device **list = calloc((size_t)num_devices + 1, sizeof(*list));

	for (int i = 0; i < num_devices; i++)
		list[i] = &devices[i];
	*n = num_devices;
	return list;
}

void
ucma_front_free_devices(struct ibv_device **list)
{
	free(list);
}

void
ucma_front_take(struct ibv_device *device)
{
	(void)device;
}

void
ucma_front_drop(struct ibv_device *device)
{
	(void)device;
}

int
ucma_front_result(int result, const char *call)
{
	(void)call;
	return result;
}

int
ucma_front_fault(const char *call)
{
	(void)call;
	return 0;
}

int
ucma_front_refuse(int err, const char *call, const char *format, ...)
{
	(void)call;
	(void)format;
	return -err;
}

__be64
ibv_get_device_guid(struct ibv_device *device)
{
	return (__be64)(0x100 + (device - devices));
}

int
ibv_get_device_index(struct ibv_device *device)
{
	return 7 + (int)(device - devices);
}

int
ucma_front_open(struct ibv_device *device, struct softhca_context **ctx)
{
	struct fake_hca *hca = calloc(1, sizeof(*hca));

	lock();
	hca->number = (int)(device - devices);
	opened[hca->number] = hca;
	dead[hca->number] = false;
	counts.contexts++;
	counts.opened++;
	*ctx = &hca->pub;
	return unlock(0);
}

int
softhca_close(struct softhca_context *ctx)
{
	counts.contexts--;
	if (opened[((struct fake_hca *)ctx)->number] == (struct fake_hca *)ctx)
		opened[((struct fake_hca *)ctx)->number] = NULL;
	free(ctx);
	return 0;
}

int
softhca_query_port(struct softhca_context *ctx, unsigned int port, struct softhca_port_attr *attr)
{
	(void)ctx;
	(void)port;
	memset(attr, 0, sizeof(*attr));
	attr->gid_tbl_len = 2;
	return 0;
}

static void
hca_gid(int number, bool ip4, union softhca_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[15] = (uint8_t)(number + 1);
	gid->raw[0] = ip4 ? 0 : 0xfd;
	gid->raw[10] = gid->raw[11] = ip4 ? 0xff : 0;
	gid->raw[12] = ip4 ? 10 : 0;
}

int
softhca_query_gid(struct softhca_context *ctx, unsigned int port, unsigned int index,
		  union softhca_gid *gid)
{
	(void)port;
	hca_gid(((struct fake_hca *)ctx)->number, index == 0, gid);
	return 0;
}

/* ---- channels ---- */

struct softhca_cm_channel *
softhca_cm_create_channel(struct softhca_context *ctx)
{
	struct fake_channel *channel = calloc(1, sizeof(*channel));
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		abort();
	channel->pub.context = ctx;
	channel->pub.fd = fds[0];
	channel->write_fd = fds[1];
	channel->hca = (struct fake_hca *)ctx;
	channel->last = &channel->first;
	lock();
	counts.channels++;
	unlock(0);
	return &channel->pub;
}

static struct fake_event *
event_take(struct fake_channel *channel)
{
	struct fake_event *event = channel->first;

	channel->first = event->next;
	if (channel->first == NULL)
		channel->last = &channel->first;
	return event;
}

int
softhca_cm_destroy_channel(struct softhca_cm_channel *pub)
{
	struct fake_channel *channel = (struct fake_channel *)pub;

	lock();
	while (channel->first != NULL)
		free(event_take(channel));
	close(pub->fd);
	close(channel->write_fd);
	free(channel);
	counts.channels--;
	return unlock(0);
}

static struct softhca_cm_event *
event_add(struct fake_id *id, uint32_t type, int status)
{
	struct fake_event *event = calloc(1, sizeof(*event));

	event->event.type = type;
	event->event.status = status;
	event->event.id = &id->pub;
	*id->channel->last = event;
	id->channel->last = &event->next;
	if (write(id->channel->write_fd, "", 1) != 1)
		abort();
	return &event->event;
}

int
softhca_cm_get_event(struct softhca_cm_channel *pub, struct softhca_cm_event *to)
{
	struct fake_channel *channel = (struct fake_channel *)pub;
	struct fake_event *event;
	char byte;

	lock();
	if (channel->first == NULL)
		return unlock(channel->hca->dead ? -EIO : -EAGAIN);
	if (read(pub->fd, &byte, 1) != 1)
		abort();
	event = event_take(channel);
	*to = event->event;
	to->param.private_data = to->data;
	free(event);
	return unlock(0);
}

/* A request that the program has not seen ends with its listener. */
static void
request_end(struct softhca_cm_event *event)
{
	struct fake_id *id = (struct fake_id *)event->id, **link = &all;

	if (event->type != SOFTHCA_CM_CONNECT_REQUEST)
		return;
	while (*link != id)
		link = &(*link)->next;
	*link = id->next;
	if (id->peer != NULL)
		id->peer->peer = NULL;
	free(id);
	counts.ids--;
}

/* Events are taken out, or moved to another channel. */
static void
events_move(struct fake_id *id, struct fake_channel *to)
{
	struct fake_event **link = &id->channel->first, *event;
	char byte;

	id->channel->last = link;
	while ((event = *link) != NULL) {
		if (event->event.id != &id->pub && event->event.listener != &id->pub) {
			link = &event->next;
			id->channel->last = link;
			continue;
		}
		*link = event->next;
		if (read(id->channel->pub.fd, &byte, 1) != 1)
			abort();
		if (to == NULL) {
			request_end(&event->event);
			free(event);
			continue;
		}
		event->next = NULL;
		*to->last = event;
		to->last = &event->next;
		if (write(to->write_fd, "", 1) != 1)
			abort();
	}
}

/* ---- ids ---- */

static struct fake_id *
id_new(struct fake_channel *channel, uint32_t space, uint32_t qp_type, void *user)
{
	static uint32_t numbers;
	struct fake_id *id = calloc(1, sizeof(*id));

	id->pub = (struct softhca_cm_id){&channel->pub, user, ++numbers, space};
	id->channel = channel;
	id->qp_type = qp_type;
	id->next = all;
	all = id;
	counts.ids++;
	return id;
}

struct softhca_cm_id *
softhca_cm_create_id(struct softhca_cm_channel *channel, enum softhca_cm_space space,
		     enum softhca_qp_type qp_type, void *user)
{
	struct fake_id *id;

	lock();
	id = id_new((struct fake_channel *)channel, space, qp_type, user);
	unlock(0);
	return &id->pub;
}

int
softhca_cm_destroy_id(struct softhca_cm_id *pub)
{
	struct fake_id *id = (struct fake_id *)pub, **link = &all;

	lock();
	events_move(id, NULL);
	while (*link != id)
		link = &(*link)->next;
	*link = id->next;
	if (id->peer != NULL) {
		event_add(id->peer, SOFTHCA_CM_DISCONNECTED, 0);
		id->peer->peer = NULL;
	}
	free(id);
	counts.ids--;
	return unlock(0);
}

int
softhca_cm_migrate(struct softhca_cm_id *pub, struct softhca_cm_channel *to)
{
	struct fake_id *id = (struct fake_id *)pub;

	lock();
	events_move(id, (struct fake_channel *)to);
	id->channel = (struct fake_channel *)to;
	id->pub.channel = to;
	return unlock(0);
}

/* ---- addresses ---- */

static bool
gid_is_any(const union softhca_gid *gid)
{
	static const uint8_t zeros[10];

	return memcmp(gid->raw, zeros, 10) == 0 &&
	       (memcmp(gid->raw + 12, zeros, 3) == 0 || gid->raw[12] == 127);
}

/* An address of a family that an older daemon does not have */
static bool
is_too_new(const struct fake_id *id, const struct sockaddr *addr)
{
	return addr->sa_family == AF_IB && older[id->channel->hca->number];
}

static bool
port_in_use(int hca, uint16_t port)
{
	if (hca == 1 && port == 40000)
		return true;
	for (const struct fake_id *id = all; id != NULL; id = id->next)
		if (id->bound && id->channel->hca->number == hca &&
		    ucma_addr_port(&id->src) == port)
			return true;
	return false;
}

static int
id_bind(struct fake_id *id, const struct sockaddr *addr, unsigned int flags)
{
	static uint16_t next = 40000;
	int hca = id->channel->hca->number;
	union softhca_gid gid, own;

	if (is_too_new(id, addr))
		return -EOPNOTSUPP;
	memcpy(&id->src, addr, ucma_addr_size((const struct sockaddr_storage *)addr));
	gid = ucma_addr_gid(&id->src);
	hca_gid(hca, gid.raw[10] == 0xff, &own);
	if (!gid_is_any(&gid) && memcmp(&gid, &own, sizeof(gid)) != 0)
		return -EADDRNOTAVAIL;
	if (ucma_addr_port(&id->src) == 0)
		ucma_addr_set_port(&id->src, next++);
	else if (port_in_use(hca, ucma_addr_port(&id->src)) && (flags & SOFTHCA_CM_REUSEADDR) == 0)
		return -EADDRINUSE;
	id->bound = true;
	return 0;
}

int
softhca_cm_bind(struct softhca_cm_id *id, const struct sockaddr *addr, unsigned int flags)
{
	lock();
	return unlock(id_bind((struct fake_id *)id, addr, flags));
}

static bool
reaches(int hca, const union softhca_gid *gid)
{
	if (gid->raw[0] == 0xfd)
		return true;
	if (gid->raw[12] >= 224)
		return true;
	return gid->raw[12] == 10 && (gid->raw[13] == 0 || (hca == 1 && gid->raw[13] == 1));
}

int
softhca_cm_resolve_addr(struct softhca_cm_id *pub, const struct sockaddr *src,
			const struct sockaddr *dst, int timeout_ms)
{
	struct fake_id *id = (struct fake_id *)pub;
	union softhca_gid gid;

	(void)src;
	(void)timeout_ms;
	lock();
	if (id->listening || id->resolved)
		return unlock(-EINVAL);
	if (is_too_new(id, dst))
		return unlock(-EOPNOTSUPP);
	memcpy(&id->dst, dst, ucma_addr_size((const struct sockaddr_storage *)dst));
	gid = ucma_addr_gid(&id->dst);
	if (!reaches(id->channel->hca->number, &gid)) {
		event_add(id, SOFTHCA_CM_ADDR_ERROR, -ENETUNREACH);
		return unlock(0);
	}
	id->resolved = true;
	id->src.ss_family = dst->sa_family;
	event_add(id, SOFTHCA_CM_ADDR_RESOLVED, 0);
	return unlock(0);
}

int
softhca_cm_resolve_route(struct softhca_cm_id *id, int timeout_ms)
{
	(void)timeout_ms;
	lock();
	if (!((struct fake_id *)id)->resolved)
		return unlock(-EINVAL);
	event_add((struct fake_id *)id, SOFTHCA_CM_ROUTE_RESOLVED, 0);
	return unlock(0);
}

static bool
gid_is_ip4(const struct fake_id *id)
{
	return ucma_addr_gid(id->resolved ? &id->dst : &id->src).raw[10] == 0xff;
}

int
softhca_cm_query(struct softhca_cm_id *pub, struct softhca_cm_info *info)
{
	struct fake_id *id = (struct fake_id *)pub;

	lock();
	counts.queries++;
	memset(info, 0, sizeof(*info));
	info->src = id->src;
	info->dst = id->dst;
	info->pkey = 0xffff;
	info->path_mtu = 3;
	info->sgid = ucma_addr_gid(&id->src);
	info->sgid_index = id->resolved || !gid_is_any(&info->sgid) ? 0 : -1;
	info->service_id = (uint64_t)id->pub.space << 16 | ucma_addr_port(&id->dst);
	hca_gid(id->channel->hca->number, gid_is_ip4(id), &info->sgid);
	info->dgid = ucma_addr_gid(&id->dst);
	info->port_num = info->sgid_index == 0 ? 1 : 0;
	return unlock(0);
}

int
softhca_cm_set_option(struct softhca_cm_id *id, enum softhca_cm_option option, uint32_t value)
{
	(void)id;
	return option == SOFTHCA_CM_OPTION_ACK_TIMEOUT && value > 31 ? -EINVAL : 0;
}

/* ---- connections ---- */

int
softhca_cm_listen(struct softhca_cm_id *id, int backlog)
{
	lock();
	((struct fake_id *)id)->listening = true;
	((struct fake_id *)id)->backlog = backlog;
	return unlock(0);
}

static struct fake_id *
find_listener(struct fake_id *id)
{
	union softhca_gid dst, own;

	dst = ucma_addr_gid(&id->dst);
	for (struct fake_id *other = all; other != NULL; other = other->next) {
		hca_gid(other->channel->hca->number, dst.raw[10] == 0xff, &own);
		if (other->listening && other->pub.space == id->pub.space &&
		    memcmp(&own, &dst, sizeof(own)) == 0 &&
		    (other->src.ss_family == AF_IB) == (id->dst.ss_family == AF_IB) &&
		    ucma_addr_port(&other->src) == ucma_addr_port(&id->dst))
			return other;
	}
	return NULL;
}

static void
event_param(struct softhca_cm_event *event, const struct softhca_cm_param *param)
{
	event->param = *param;
	memcpy(event->data, param->private_data, param->private_data_len);
}

int
softhca_cm_connect(struct softhca_cm_id *pub, const struct softhca_cm_param *param)
{
	struct fake_id *id = (struct fake_id *)pub, *listener, *new;
	struct softhca_cm_event *event;

	lock();
	if (!id->resolved)
		return unlock(-EINVAL);
	listener = find_listener(id);
	if (listener == NULL) {
		event_add(id, SOFTHCA_CM_REJECTED, 8);
		return unlock(0);
	}
	new = id_new(listener->channel, id->pub.space, id->qp_type, listener->pub.user);
	new->peer = id;
	id->peer = new;
	new->resolved = true;
	new->src = id->dst;
	new->dst = id->src;
	event = event_add(new, SOFTHCA_CM_CONNECT_REQUEST, 0);
	event->listener = &listener->pub;
	event_param(event, param);
	return unlock(0);
}

int
softhca_cm_accept(struct softhca_cm_id *pub, const struct softhca_cm_param *param)
{
	struct fake_id *id = (struct fake_id *)pub;
	struct softhca_cm_event *event;

	lock();
	if (id->peer == NULL)
		return unlock(-EINVAL);
	event = event_add(id->peer,
			  id->qp_type == SOFTHCA_QPT_UD ? SOFTHCA_CM_ESTABLISHED
							: SOFTHCA_CM_CONNECT_RESPONSE,
			  0);
	event_param(event, param);
	event->ah_attr.sgid_index = 5;
	return unlock(0);
}

int
softhca_cm_establish(struct softhca_cm_id *id)
{
	lock();
	if (((struct fake_id *)id)->peer == NULL)
		return unlock(-EINVAL);
	event_add(((struct fake_id *)id)->peer, SOFTHCA_CM_ESTABLISHED, 0);
	return unlock(0);
}

int
softhca_cm_reject(struct softhca_cm_id *pub, uint8_t reason, const void *data, uint8_t len)
{
	struct fake_id *id = (struct fake_id *)pub;
	const struct softhca_cm_param param = {.private_data = data, .private_data_len = len};

	lock();
	if (id->peer == NULL)
		return unlock(-EINVAL);
	event_param(event_add(id->peer, SOFTHCA_CM_REJECTED, reason), &param);
	id->peer->peer = NULL;
	id->peer = NULL;
	return unlock(0);
}

int
softhca_cm_disconnect(struct softhca_cm_id *pub)
{
	struct fake_id *id = (struct fake_id *)pub;

	lock();
	if (id->peer == NULL)
		return unlock(-EINVAL);
	event_add(id->peer, SOFTHCA_CM_DISCONNECTED, 0);
	event_add(id, SOFTHCA_CM_DISCONNECTED, 0);
	id->peer->peer = NULL;
	id->peer = NULL;
	return unlock(0);
}

int
softhca_cm_notify(struct softhca_cm_id *id, uint32_t event)
{
	(void)id;
	return event == SOFTHCA_EVENT_COMM_EST ? 0 : -EINVAL;
}

int
softhca_cm_init_qp_attr(struct softhca_cm_id *id, uint32_t qp_state, struct softhca_qp_attr *attr,
			uint32_t *attr_mask)
{
	(void)id;
	attr->qp_state = qp_state;
	attr->dest_qp_num = 0x1234;
	attr->ah_attr.dgid.raw[15] = 9;
	attr->timeout = 19;
	*attr_mask = SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_DEST_QPN;
	return 0;
}

/* ---- memberships ---- */

int
softhca_cm_join(struct softhca_cm_id *pub, const struct sockaddr *addr, unsigned int flags,
		uint32_t *group)
{
	static uint32_t numbers = 100;
	struct softhca_cm_event *event;

	(void)addr;
	lock();
	*group = ++numbers;
	counts.groups++;
	event = event_add((struct fake_id *)pub, SOFTHCA_CM_MULTICAST_JOIN, 0);
	event->group = *group;
	event->param.qp_num = 0xffffff;
	event->ah_attr.sl = (uint8_t)flags;
	return unlock(0);
}

int
softhca_cm_leave(struct softhca_cm_id *id, uint32_t group)
{
	(void)id;
	(void)group;
	lock();
	counts.groups--;
	return unlock(0);
}

void
fake_die(int number)
{
	lock();
	for (struct fake_id *id = all; id != NULL; id = id->next)
		if (id->channel->hca == opened[number])
			event_add(id, SOFTHCA_CM_DEVICE_REMOVAL, 0);
	opened[number]->dead = true;
	opened[number] = NULL;
	unlock(0);
}
