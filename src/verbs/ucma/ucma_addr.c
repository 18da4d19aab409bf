/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Addresses: which HCA an id gets. That is the one that has the address; a wildcard is all. Without
 * an address the HCAs are asked one after the other for the way to the destination.
 */

#include <errno.h>
#include <string.h>

#include "ucma.h"

/* A port that one HCA has chosen may be in use at another. */
#define PORT_TRIES 16

static unsigned int
bind_flags(const struct ucma_id *id)
{
	const uint32_t *value = id->options.value;

	return (value[SOFTHCA_CM_OPTION_REUSEADDR] != 0 ? SOFTHCA_CM_REUSEADDR : 0) |
	       (value[SOFTHCA_CM_OPTION_AFONLY] != 0 ? SOFTHCA_CM_AFONLY : 0);
}

/* ---- bind ---- */

/* The id has one end more, which is bound. */
static int
bind_at(const struct ucma_call *call, struct ucma_id *id, struct ucma_hca *hca,
	const struct sockaddr_storage *addr)
{
	int err = ucma_end_add(call, id, hca);

	if (err != 0)
		return err;
	err = softhca_cm_bind(id->ends[id->num_ends - 1].id, (const struct sockaddr *)addr,
			      bind_flags(id));
	if (err != 0)
		ucma_end_drop(id, id->num_ends - 1);
	return err;
}

/*
 * At the HCA that has the address. Its error says more than the ones of HCAs without the address.
 */
static int
bind_one(const struct ucma_call *call, struct ucma_id *id, const struct ucma_hca_list *list,
	 const struct sockaddr_storage *addr)
{
	int err = 0, reason = -EADDRNOTAVAIL;

	for (uint32_t i = 0; i < list->n; i++) {
		err = bind_at(call, id, list->hcas[i], addr);
		if (err == 0)
			return 0;
		if (err != -EADDRNOTAVAIL)
			reason = err;
	}
	return ucma_front_result(reason, call->name);
}

/* The address gets the port of the last end. */
static int
take_port(const struct ucma_id *id, struct sockaddr_storage *addr)
{
	struct softhca_cm_info info;
	int err = softhca_cm_query(id->ends[id->num_ends - 1].id, &info);

	if (err == 0)
		ucma_addr_set_port(addr, ucma_addr_port(&info.src));
	return err;
}

/* At all HCAs with one port; those that are of an older release, or end now, are passed over. */
static int
bind_all(const struct ucma_call *call, struct ucma_id *id, const struct ucma_hca_list *list,
	 const struct sockaddr_storage *addr)
{
	struct sockaddr_storage with_port = *addr;
	int err = 0, reason = -ENODEV;

	for (uint32_t i = 0; i < list->n; i++) {
		err = bind_at(call, id, list->hcas[i], &with_port);
		if (err == 0 && ucma_addr_port(&with_port) == 0)
			err = take_port(id, &with_port);
		if (err != 0)
			reason = err;
		if (err != 0 && err != -EOPNOTSUPP && err != -EIO)
			break;
	}
	if (id->num_ends != 0 && (err == 0 || reason == -EOPNOTSUPP || reason == -EIO))
		return 0;
	ucma_ends_cut(id, 0);
	return reason;
}

static int
bind_any(const struct ucma_call *call, struct ucma_id *id, const struct ucma_hca_list *list,
	 struct sockaddr_storage *addr)
{
	int tries = ucma_addr_port(addr) == 0 ? PORT_TRIES : 1, err;

	do {
		err = bind_all(call, id, list, addr);
	} while (err == -EADDRINUSE && --tries > 0);
	return ucma_front_result(err, call->name);
}

static int
id_bind(const struct ucma_call *call, struct ucma_id *id, const struct sockaddr_storage *from)
{
	struct sockaddr_storage addr = *from;
	struct ucma_hca_list list;
	int err;

	if (id->bound || id->progress != UCMA_UNRESOLVED)
		return ucma_front_refuse(
			EINVAL, call->name,
			"id %u has an address: bind it once, before its destination is resolved",
			id->number);
	ucma_ends_cut(id, 0);
	err = ucma_hca_list(NULL, &list);
	if (err != 0)
		return err;
	err = ucma_addr_is_any(&addr) ? bind_any(call, id, &list, &addr)
				      : bind_one(call, id, &list, &addr);
	ucma_hca_list_free(&list);
	id->bound = err == 0;
	return err;
}

/* ---- resolve ---- */

/* The end at an HCA becomes the first. */
static int
end_choose(struct ucma_id *id, const struct ucma_hca *hca)
{
	struct ucma_end end;

	for (uint32_t i = 0; i < id->num_ends; i++)
		if (id->ends[i].source->hca == hca) {
			end = id->ends[i];
			id->ends[i] = id->ends[0];
			id->ends[0] = end;
			return 0;
		}
	return -ENODEV;
}

static int
resolve_at(const struct ucma_call *call, struct ucma_id *id, struct ucma_hca *hca)
{
	int err;

	if (!id->bound)
		ucma_ends_cut(id, 0);
	err = id->bound ? end_choose(id, hca) : ucma_end_add(call, id, hca);
	if (err != 0)
		return err;
	return softhca_cm_resolve_addr(id->ends[0].id, NULL, (const struct sockaddr *)&id->dst,
				       id->timeout_ms);
}

/* Ask the next HCA that takes the question. */
static int
resolve_try(const struct ucma_call *call, struct ucma_id *id)
{
	int err, reason = -ENODEV;

	while (id->num_asked < id->asked.n) {
		err = resolve_at(call, id, id->asked.hcas[id->num_asked++]);
		if (err == 0)
			return 0;
		if (err != -ENODEV)
			reason = err;
	}
	return reason;
}

bool
ucma_resolve_next(const struct ucma_call *call, struct ucma_id *id, int status)
{
	bool elsewhere = status == -ENODEV || status == -ENETUNREACH || status == -EHOSTUNREACH ||
			 status == -EADDRNOTAVAIL;

	if (elsewhere && resolve_try(call, id) == 0)
		return true;
	ucma_hca_list_free(&id->asked);
	id->progress = UCMA_UNRESOLVED;
	return false;
}

void
ucma_resolve_done(struct ucma_id *id)
{
	ucma_hca_list_free(&id->asked);
	ucma_ends_cut(id, 1);
	id->progress = UCMA_RESOLVED;
}

/* A source address that says something */
static bool
source_is_given(const struct sockaddr_storage *src)
{
	return src->ss_family != 0 && (!ucma_addr_is_any(src) || ucma_addr_port(src) != 0);
}

static int
resolve_begin(const struct ucma_call *call, struct ucma_id *id)
{
	int err = ucma_hca_list(&id->dst, &id->asked);

	if (err != 0)
		return err;
	id->num_asked = 0;
	err = resolve_try(call, id);
	if (err == 0)
		id->progress = UCMA_RESOLVING;
	else
		ucma_hca_list_free(&id->asked);
	return ucma_front_result(err, call->name);
}

static int
id_resolve(const struct ucma_call *call, struct ucma_id *id, const struct sockaddr_storage *src,
	   const struct sockaddr_storage *dst)
{
	int err = 0;

	if (id->progress != UCMA_UNRESOLVED)
		return ucma_front_refuse(
			EINVAL, call->name,
			"id %u has a destination: resolve it once, and create another id for "
			"another destination",
			id->number);
	if (!id->bound && source_is_given(src))
		err = id_bind(call, id, src);
	if (err != 0)
		return err;
	id->dst = *dst;
	return resolve_begin(call, id);
}

/* ---- commands ---- */

static void
storage_from(struct sockaddr_storage *to, const void *from, size_t bytes)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, bytes);
}

/* The older commands have room for IP addresses. */
static int
ip_judge(const struct ucma_call *call, const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET || addr->ss_family == AF_INET6)
		return 0;
	return ucma_front_refuse(EAFNOSUPPORT, call->name,
				 "address family %u: expected AF_INET (%u) or AF_INET6 (%u)",
				 addr->ss_family, AF_INET, AF_INET6);
}

int
ucma_bind_ip(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_bind_ip *cmd = data;
	struct sockaddr_storage addr;
	struct ucma_id *id;
	int err;

	storage_from(&addr, &cmd->addr, sizeof(cmd->addr));
	id = ucma_id_get(call, cmd->id, &err);
	if (id == NULL)
		return err;
	err = ip_judge(call, &addr);
	return err != 0 ? err : id_bind(call, id, &addr);
}

int
ucma_bind(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_bind *cmd = data;
	struct sockaddr_storage addr;
	struct ucma_id *id;
	int err;

	storage_from(&addr, &cmd->addr, sizeof(addr));
	id = ucma_id_get(call, cmd->id, &err);
	if (id == NULL)
		return err;
	if (cmd->reserved != 0)
		return -EINVAL;
	err = ucma_addr_judge(call, &addr, cmd->addr_size);
	return err != 0 ? err : id_bind(call, id, &addr);
}

int
ucma_resolve_ip(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_resolve_ip *cmd = data;
	struct sockaddr_storage src, dst;
	struct ucma_id *id;
	int err;

	storage_from(&src, &cmd->src_addr, sizeof(cmd->src_addr));
	storage_from(&dst, &cmd->dst_addr, sizeof(cmd->dst_addr));
	id = ucma_id_get(call, cmd->id, &err);
	if (id == NULL)
		return err;
	err = ip_judge(call, &dst);
	if (err == 0 && src.ss_family != 0)
		err = ip_judge(call, &src);
	if (err != 0)
		return err;
	id->timeout_ms = (int)cmd->timeout_ms;
	return id_resolve(call, id, &src, &dst);
}

int
ucma_resolve_addr(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_resolve_addr *cmd = data;
	struct sockaddr_storage src, dst;
	struct ucma_id *id;
	int err;

	storage_from(&src, &cmd->src_addr, cmd->src_size != 0 ? sizeof(src) : 0);
	storage_from(&dst, &cmd->dst_addr, sizeof(dst));
	id = ucma_id_get(call, cmd->id, &err);
	if (id == NULL)
		return err;
	if (cmd->reserved != 0)
		return -EINVAL;
	err = ucma_addr_judge(call, &dst, cmd->dst_size);
	if (err == 0 && cmd->src_size != 0)
		err = ucma_addr_judge(call, &src, cmd->src_size);
	if (err != 0)
		return err;
	id->timeout_ms = (int)cmd->timeout_ms;
	return id_resolve(call, id, &src, &dst);
}

int
ucma_resolve_route(const struct ucma_call *call, const void *data)
{
	const struct rdma_ucm_resolve_route *cmd = data;
	struct ucma_id *id;
	int err;

	id = ucma_id_at_hca(call, cmd->id, &err);
	if (id == NULL)
		return err;
	return ucma_front_result(softhca_cm_resolve_route(id->ends[0].id, (int)cmd->timeout_ms),
				 call->name);
}

/* An id without an address gets the wildcard of IPv4 and a port. */
int
ucma_listen(const struct ucma_call *call, const void *data)
{
	const struct sockaddr_storage any = {.ss_family = AF_INET};
	const struct rdma_ucm_listen *cmd = data;
	struct ucma_id *id;
	int err;

	id = ucma_id_get(call, cmd->id, &err);
	if (id == NULL)
		return err;
	if (id->num_ends == 0)
		err = id_bind(call, id, &any);
	for (uint32_t i = 0; i < id->num_ends && err == 0; i++)
		err = softhca_cm_listen(id->ends[i].id, (int)cmd->backlog);
	return ucma_front_result(err, call->name);
}
