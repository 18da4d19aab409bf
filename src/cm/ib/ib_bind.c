/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Ports: which ids have which port number of a space. Two ids may have one if both may reuse it, or
 * if no address is of both: wildcards are all addresses of their family; that of IPv6 includes that
 * of IPv4, and that of IB includes both, unless the id has AF_ONLY.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ib_impl.h"

/* Ports that are chosen, as Linux has them */
#define PORT_FIRST 32768u
#define PORT_LAST 60999u

#define PORT_RANGE (PORT_LAST - PORT_FIRST + 1)
#define PORT_SPACE_MASK UINT64_C(0xffffffffffff0000) /* of a service ID */

static enum ib_space
port_space(uint32_t space)
{
	switch (space) {
#define X(NAME) \
	case HCA_CTL_CM_SPACE_##NAME: \
		return IB_SPACE_##NAME;
		IB_SPACE_LIST(X)
#undef X
	default:
		return IB_SPACES; /* no id has it */
	}
}

static bool
port_is_of_range(uint16_t number)
{
	return number >= PORT_FIRST && number <= PORT_LAST;
}

/* A new port of the range: of those a user has a share. */
static bool
port_may(struct ibcm *cm, const struct ib_id *id)
{
	enum ib_space space = port_space(id->port_space);

	if (ib_user_may(cm, id->account->user->ports[space], PORT_RANGE - cm->ports_used[space]))
		return true;
	cm->counters.refused_ports++;
	return false;
}

static uint64_t
port_key(uint32_t space, uint16_t number)
{
	return (uint64_t)space << 16 | number;
}

static struct ib_port *
port_find(const struct ibcm *cm, uint32_t space, uint16_t number)
{
	struct ib_link *link = ib_hash_next(&cm->ports, port_key(space, number), NULL);

	return link == NULL ? NULL : IB_CONTAINER(link, struct ib_port, link);
}

/* The id has addresses of the family. */
static bool
port_covers(const struct ib_id *id, uint16_t family)
{
	if (id->src.family == family)
		return true;
	if (id->af_only || !ib_ip_is_any(&id->src))
		return false;
	return id->src.family == HCA_CTL_CM_IB ||
	       (id->src.family == HCA_CTL_CM_IP6 && family == HCA_CTL_CM_IP4);
}

static bool
port_overlaps(const struct ib_id *a, const struct ib_id *b)
{
	if (!port_covers(a, b->src.family) && !port_covers(b, a->src.family))
		return false;
	return ib_ip_is_any(&a->src) || ib_ip_is_any(&b->src) ||
	       memcmp(a->src.gid, b->src.gid, sizeof(a->src.gid)) == 0;
}

static bool
port_is_free(const struct ib_port *port, const struct ib_id *id, bool reuse)
{
	for (const struct ib_node *n = port->ids.next; n != &port->ids; n = n->next) {
		const struct ib_id *other = IB_CONTAINER(n, struct ib_id, in_port);

		if (other == id || !port_overlaps(id, other))
			continue;
		if (!reuse || !other->reuse || other->state == HCA_CTL_CM_LISTENING)
			return false;
	}
	return true;
}

static int
port_join(struct ib_op *op, struct ib_id *id, uint16_t number)
{
	struct ib_port *port = port_find(op->cm, id->port_space, number);

	if (port == NULL) {
		port = calloc(1, sizeof(*port));
		if (port == NULL)
			return ib_op_fail(op, -ENOMEM, IB_NO_MEMORY("a port"));
		port->space = id->port_space;
		port->number = number;
		ib_node_init(&port->ids);
		ib_hash_add(&op->cm->ports, &port->link, port_key(id->port_space, number));
		op->cm->ports_used[port_space(id->port_space)] += port_is_of_range(number);
	}
	id->account->user->ports[port_space(id->port_space)] += port_is_of_range(number);
	id->port = port;
	id->src.port = number;
	ib_node_push(&port->ids, &id->in_port);
	return 0;
}

static int
port_choose(struct ib_op *op, struct ib_id *id)
{
	uint32_t from = (uint32_t)(op->cm->cfg.ops->random(op->cm->cfg.arg) % PORT_RANGE);

	if (!port_may(op->cm, id))
		return ib_op_fail(op, -EADDRNOTAVAIL, IBCM_WHY_PORTS);
	for (uint32_t i = 0; i < PORT_RANGE; i++) {
		uint16_t number = (uint16_t)(PORT_FIRST + (from + i) % PORT_RANGE);

		if (port_find(op->cm, id->port_space, number) == NULL)
			return port_join(op, id, number);
	}
	return ib_op_fail(
		op, -EADDRNOTAVAIL,
		"all ports of %u to %u are bound: destroy ids, or bind id %u to a port that you "
		"choose",
		PORT_FIRST, PORT_FIRST + PORT_RANGE - 1, id->number);
}

static int
port_take(struct ib_op *op, struct ib_id *id, uint16_t number)
{
	const struct ib_port *port;

	if (number == 0)
		return port_choose(op, id);
	port = port_find(op->cm, id->port_space, number);
	if (port != NULL && !port_is_free(port, id, id->reuse))
		return ib_op_fail(
			op, -EADDRINUSE,
			"another id is bound to port %u: destroy it, set REUSEADDR on both, or "
			"bind to port 0, which chooses a free one",
			number);
	if (port == NULL && port_is_of_range(number) && !port_may(op->cm, id))
		return ib_op_fail(op, -EADDRNOTAVAIL, IBCM_WHY_PORTS);
	return port_join(op, id, number);
}

/* The first space of the id that fits the bits of the service ID that are given, as in Linux */
static uint32_t
port_space_of_service(const struct ib_id *id, const struct hca_ctl_cm_service *service)
{
	static const uint32_t spaces[] = {HCA_CTL_CM_SPACE_IB, HCA_CTL_CM_SPACE_TCP,
					  HCA_CTL_CM_SPACE_UDP};

	for (uint32_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		uint64_t differs = service->id ^ ib_ip_service_id(spaces[i], 0);

		if ((id->space == HCA_CTL_CM_SPACE_IB || id->space == spaces[i]) &&
		    (differs & service->mask & PORT_SPACE_MASK) == 0)
			return spaces[i];
	}
	return 0;
}

static int
port_get(struct ib_op *op, struct ib_id *id, uint16_t number,
	 const struct hca_ctl_cm_service *service)
{
	id->port_space = id->space;
	if (id->src.family != HCA_CTL_CM_IB)
		return port_take(op, id, number);
	id->port_space = port_space_of_service(id, service);
	if (id->port_space == 0)
		return ib_op_fail(
			op, -EPROTONOSUPPORT,
			"service ID %#llx with mask %#llx is in no port space of id %u, which has "
			"port space %#x",
			(unsigned long long)service->id, (unsigned long long)service->mask,
			id->number, id->space);
	return port_take(op, id, (uint16_t)(service->id & service->mask));
}

static void
bind_clear(struct ib_id *id)
{
	id->src = (struct hca_ctl_cm_addr){0};
	id->gid_index = HCA_CTL_CM_NO_GID;
}

int
ib_bind(struct ib_op *op, struct ib_id *id, const struct hca_ctl_cm_addr *wanted,
	const struct hca_ctl_cm_service *service, uint32_t flags)
{
	const struct hca_ctl_cm_addr meant = ib_ip_meant(wanted), *addr = &meant;
	bool reuse = id->reuse, af_only = id->af_only;
	int err;

	if (id->state != HCA_CTL_CM_IDLE)
		return ib_op_state(op, id,
				   "an id is bound once; create another id for another address");
	if (!ib_ip_is_good(addr))
		return ib_op_family(op, addr);
	if (!ib_ip_is_any(addr)) {
		id->gid_index = ib_gid_find(op->cm, addr);
		if (id->gid_index == HCA_CTL_CM_NO_GID)
			return ib_op_address(
				op, -EADDRNOTAVAIL, addr,
				"is no address of this HCA: bind to one of its GID table, or to "
				"the wildcard");
	}
	id->src = *addr;
	id->reuse |= (flags & HCA_CTL_CM_REUSE) != 0;
	id->af_only |= (flags & HCA_CTL_CM_AF_ONLY) != 0;
	err = port_get(op, id, addr->port, service);
	if (err != 0) {
		id->reuse = reuse;
		id->af_only = af_only;
		bind_clear(id);
		return err;
	}
	ib_id_state(id, HCA_CTL_CM_BOUND, op->now);
	return 0;
}

void
ib_unbind(struct ibcm *cm, struct ib_id *id)
{
	struct ib_port *port = id->port;

	if (port == NULL)
		return;
	id->port = NULL;
	ib_node_pull(&id->in_port);
	id->account->user->ports[port_space(port->space)] -= port_is_of_range(port->number);
	if (!ib_node_alone(&port->ids))
		return;
	cm->ports_used[port_space(port->space)] -= port_is_of_range(port->number);
	ib_hash_remove(&cm->ports, &port->link);
	free(port);
}

void
ib_bind_undo(struct ib_op *op, struct ib_id *id)
{
	ib_unbind(op->cm, id);
	bind_clear(id);
	ib_id_state(id, HCA_CTL_CM_IDLE, op->now);
}

int
ib_bind_listens(struct ib_op *op, struct ib_id *id)
{
	if (!port_is_free(id->port, id, false))
		return ib_op_fail(
			op, -EADDRINUSE,
			"another id is bound to port %u, and a listener needs the port alone: "
			"destroy the other id, or listen on another port",
			id->src.port);
	ib_node_pull(&id->in_port);
	ib_node_push(id->port->ids.next, &id->in_port);
	ib_id_state(id, HCA_CTL_CM_LISTENING, op->now);
	return 0;
}

/* A specific address is better than the wildcard of its family, that better than the other's. */
static uint32_t
port_fitness(const struct ib_id *id, const struct hca_ctl_cm_addr *addr)
{
	bool same = id->src.family == addr->family;

	if (!same && id->src.family == HCA_CTL_CM_IB)
		return 0;
	if (!ib_ip_is_any(&id->src))
		return same && memcmp(id->src.gid, addr->gid, sizeof(addr->gid)) == 0 ? 3 : 0;
	return same ? 2 : port_covers(id, addr->family) ? 1 : 0;
}

struct ib_id *
ib_bind_listener(const struct ibcm *cm, uint32_t space, const struct hca_ctl_cm_addr *addr)
{
	const struct ib_port *port = port_find(cm, space, addr->port);
	struct ib_id *best = NULL;

	if (port == NULL)
		return NULL;
	for (const struct ib_node *n = port->ids.next; n != &port->ids; n = n->next) {
		struct ib_id *id = IB_CONTAINER(n, struct ib_id, in_port);

		if (id->state != HCA_CTL_CM_LISTENING)
			break;
		if (port_fitness(id, addr) > (best == NULL ? 0 : port_fitness(best, addr)))
			best = id;
	}
	return best;
}

uint64_t
ib_bind_service(const struct ib_id *id)
{
	return ib_ip_service_id(id->port_space != 0 ? id->port_space : id->space, id->src.port);
}
