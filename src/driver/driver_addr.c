/* SPDX-License-Identifier: BSD-3-Clause */

/* Addresses: GID and P_Key tables, neighbours, the MAC and IPv4 words of a path. */

#include <errno.h>
#include <string.h>

#include "abi_gid_text.h"
#include "driver_types.h"

static uint32_t
table_len(hca_be32 device, uint32_t own)
{
	uint32_t len = hca_be32_to_cpu(device);

	return len < own ? len : own;
}

static int
no_gid(const struct hca_driver *drv, uint32_t index)
{
	return driver_fail(-EINVAL, "GID index %u: the table has %u entries", index,
			   table_len(drv->lim.gid_table_len, DRIVER_MAX_GIDS));
}

/* The default P_Key exists from the start. */
int
driver_addr_init(struct hca_driver *drv)
{
	struct hca_mbox_set_pkey *mailbox = driver_mailbox(drv);

	drv->pkeys[0] = HCA_PKEY_DEFAULT;
	drv->port = (struct hca_ctl_port){
		.state = HCA_PORT_ACTIVE,
		.max_mtu = HCA_LIM_MAX_MTU(hca_be32_to_cpu(drv->lim.port)),
		.active_mtu = HCA_LIM_MAX_MTU(hca_be32_to_cpu(drv->lim.port)),
	};
	mailbox->pkey = hca_cpu_to_be32(HCA_PKEY_DEFAULT);
	return driver_command_in(drv, HCA_CMD_SET_PKEY, 0);
}

int
hca_driver_set_port(struct hca_driver *drv, const struct hca_ctl_port *port)
{
	uint32_t state;

	pthread_mutex_lock(&drv->event_lock);
	state = drv->port_told ? drv->port.state : port->state;
	drv->port = *port;
	drv->port.state = state;
	pthread_mutex_unlock(&drv->event_lock);
	return 0;
}

static bool
gid_differs(const struct driver_gid *a, const struct driver_gid *b)
{
	return !a->valid || memcmp(a->gid, b->gid, sizeof(a->gid)) != 0 ||
	       memcmp(a->mac, b->mac, sizeof(a->mac)) != 0 || a->vlan_id != b->vlan_id ||
	       a->ifindex != b->ifindex;
}

int
hca_driver_set_gid_of(struct hca_driver *drv, uint32_t index, const uint8_t gid[16],
		      const uint8_t mac[6], uint16_t vlan_id, uint32_t ifindex)
{
	struct driver_gid entry = {.vlan_id = vlan_id, .valid = true, .ifindex = ifindex};
	bool vlan = vlan_id != 0xffff, changed = false;
	uint32_t type = hca_gid_is_mapped(gid) ? HCA_GID_ROCE_V2_IPV4 : HCA_GID_ROCE_V2_IPV6;
	struct hca_mbox_set_gid *mailbox;
	int err;

	if (index >= table_len(drv->lim.gid_table_len, DRIVER_MAX_GIDS))
		return no_gid(drv, index);
	memcpy(entry.gid, gid, sizeof(entry.gid));
	memcpy(entry.mac, mac, sizeof(entry.mac));
	driver_lock_take(&drv->lock);
	mailbox = driver_mailbox(drv);
	mailbox->index = hca_cpu_to_be32(index);
	mailbox->flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, type, vlan, vlan ? vlan_id : 0));
	memcpy(mailbox->gid, gid, sizeof(mailbox->gid));
	memcpy(mailbox->mac, mac, sizeof(mailbox->mac));
	err = driver_command_in(drv, HCA_CMD_SET_GID, 0);
	if (err == 0) {
		changed = gid_differs(&drv->gids[index], &entry);
		drv->gids[index] = entry;
		pthread_mutex_lock(&drv->event_lock);
		memcpy(drv->port.mac, mac, sizeof(drv->port.mac));
		pthread_mutex_unlock(&drv->event_lock);
	}
	if (changed) {
		driver_cm_gid(drv, index);
		driver_port_event(drv, HCA_CTL_EVENT_GID_CHANGE);
	}
	driver_lock_give(&drv->lock);
	return err;
}

void
hca_driver_gid_event(struct hca_driver *drv)
{
	driver_lock_take(&drv->lock);
	driver_port_event(drv, HCA_CTL_EVENT_GID_CHANGE);
	driver_lock_give(&drv->lock);
}

/* QPs that use the address are not changed: that is their owners' decision. */
int
hca_driver_clear_gid(struct hca_driver *drv, uint32_t index)
{
	struct hca_mbox_set_gid *mailbox;
	int err = 0;

	if (index >= table_len(drv->lim.gid_table_len, DRIVER_MAX_GIDS))
		return no_gid(drv, index);
	driver_lock_take(&drv->lock);
	if (drv->gids[index].valid) {
		mailbox = driver_mailbox(drv);
		mailbox->index = hca_cpu_to_be32(index);
		err = driver_command_in(drv, HCA_CMD_SET_GID, 0);
	}
	if (err == 0 && drv->gids[index].valid) {
		memset(&drv->gids[index], 0, sizeof(drv->gids[index]));
		driver_cm_gid(drv, index);
		driver_port_event(drv, HCA_CTL_EVENT_GID_CHANGE);
	}
	driver_lock_give(&drv->lock);
	return err;
}

static struct driver_neigh *
find_neigh(const struct hca_driver *drv, const uint8_t gid[16])
{
	for (uint32_t i = 0; i < drv->num_neighs; i++)
		if (memcmp(drv->neighs[i].gid, gid, sizeof(drv->neighs[i].gid)) == 0)
			return (struct driver_neigh *)(uintptr_t)&drv->neighs[i];
	return NULL;
}

/* flags: HCA_NEIGH_VALID and the GID index of the interface */
static int
tell_neigh(struct hca_driver *drv, const uint8_t gid[16], const uint8_t mac[6], uint32_t flags)
{
	struct hca_mbox_set_neigh *mailbox = driver_mailbox(drv);

	memcpy(mailbox->dgid, gid, sizeof(mailbox->dgid));
	memcpy(mailbox->dmac, mac, sizeof(mailbox->dmac));
	mailbox->flags = hca_cpu_to_be32(flags);
	return driver_command_in(drv, HCA_CMD_SET_NEIGH, 0);
}

static int
set_neigh(struct hca_driver *drv, const uint8_t gid[16], const uint8_t mac[6])
{
	struct driver_neigh *neigh = find_neigh(drv, gid);
	int err;

	if (neigh == NULL && drv->num_neighs == DRIVER_MAX_NEIGH)
		return driver_fail(-ENOMEM, "the table of static neighbours has its %u entries",
				   DRIVER_MAX_NEIGH);
	err = tell_neigh(drv, gid, mac, HCA_NEIGH_VALID);
	if (err != 0)
		return err;
	if (neigh == NULL)
		neigh = &drv->neighs[drv->num_neighs++];
	memcpy(neigh->gid, gid, sizeof(neigh->gid));
	memcpy(neigh->mac, mac, sizeof(neigh->mac));
	return 0;
}

int
hca_driver_set_neigh(struct hca_driver *drv, const uint8_t gid[16], const uint8_t mac[6])
{
	int err;

	driver_lock_take(&drv->lock);
	err = set_neigh(drv, gid, mac);
	driver_lock_give(&drv->lock);
	return err;
}

bool
hca_driver_get_neigh(struct hca_driver *drv, const uint8_t gid[16], uint8_t mac[6])
{
	const struct driver_neigh *neigh;

	driver_lock_take(&drv->lock);
	neigh = find_neigh(drv, gid);
	if (neigh != NULL)
		memcpy(mac, neigh->mac, sizeof(neigh->mac));
	driver_lock_give(&drv->lock);
	return neigh != NULL;
}

/*
 * The device changes its QPs. The table is not changed: its entry would outlive the kernel's.
 */
int
hca_driver_move_neigh(struct hca_driver *drv, uint32_t sgid_index, const uint8_t gid[16],
		      const uint8_t mac[6])
{
	int err = 0;

	driver_lock_take(&drv->lock);
	if (find_neigh(drv, gid) == NULL) {
		err = tell_neigh(drv, gid, mac, HCA_NEIGH_VALID | (sgid_index & HCA_MASK(7, 0)));
		if (err == 0)
			err = tell_neigh(drv, gid, mac, 0);
	}
	driver_lock_give(&drv->lock);
	return err;
}

/* A GID of this port itself */
static bool
own_mac(const struct hca_driver *drv, const uint8_t dgid[16], uint8_t mac[6])
{
	for (uint32_t i = 0; i < DRIVER_MAX_GIDS; i++) {
		if (!drv->gids[i].valid || memcmp(drv->gids[i].gid, dgid, 16) != 0)
			continue;
		memcpy(mac, drv->gids[i].mac, 6);
		return true;
	}
	return false;
}

/* Addresses that need no resolution. */
static bool
known_mac(const struct hca_driver *drv, const uint8_t dgid[16], uint8_t mac[6])
{
	const struct driver_neigh *neigh = find_neigh(drv, dgid);

	if (hca_gid_is_multicast(dgid)) {
		hca_gid_multicast_mac(dgid, mac);
		return true;
	}
	if (own_mac(drv, dgid, mac))
		return true;
	if (neigh != NULL)
		memcpy(mac, neigh->mac, sizeof(neigh->mac));
	return neigh != NULL;
}

static const char *
why_not(int err)
{
	switch (err) {
	case 0:
		return "it is not in the neighbour table";
	case -ENETUNREACH:
		return "there is no route to it";
	case -EHOSTUNREACH:
		return "the next hop does not answer";
	case -ESHUTDOWN:
		return "the daemon is stopping";
	default:
		return strerror(-err);
	}
}

static int
resolve_mac(const struct hca_driver *drv, const uint8_t dgid[16], const struct driver_answer *told,
	    uint8_t mac[6])
{
	char to[INET6_ADDRSTRLEN];

	if (known_mac(drv, dgid, mac))
		return 0;
	if (told->valid && memcmp(told->dgid, dgid, sizeof(told->dgid)) == 0) {
		memcpy(mac, told->dmac, sizeof(told->dmac));
		return 0;
	}
	return driver_fail(-EHOSTUNREACH, "no MAC address is known for %s: %s",
			   hca_gid_text(dgid, to, sizeof(to)), why_not(told->err));
}

static void
ask_neigh(struct hca_driver *drv, uint32_t index, const uint8_t dgid[16],
	  struct driver_answer *told)
{
	uint8_t mac[6];
	bool ask;

	told->valid = false;
	told->err = 0;
	if (drv->config.resolve == NULL || index >= DRIVER_MAX_GIDS)
		return;
	memcpy(told->dgid, dgid, sizeof(told->dgid));
	ask = drv->gids[index].valid &&
	      hca_gid_is_mapped(drv->gids[index].gid) == hca_gid_is_mapped(told->dgid) &&
	      !known_mac(drv, told->dgid, mac);
	if (!ask)
		return;
	driver_lock_give(&drv->lock);
	told->err = drv->config.resolve(drv->config.resolve_arg, index, told->dgid, told->dmac);
	told->valid = told->err == 0;
	driver_lock_take(&drv->lock);
}

void
driver_ask_path(struct hca_driver *drv, const struct hca_qpc_path *path, struct driver_answer *told)
{
	ask_neigh(drv, HCA_QPC_GID_INDEX(hca_be32_to_cpu(path->ackto)), path->rgid, told);
}

/* Fill in the source entry and both MAC addresses of a path. */
static int
resolve(struct hca_driver *drv, uint32_t index, const uint8_t dgid[16],
	const struct driver_answer *told, const struct driver_gid **source, uint8_t dmac[6])
{
	const struct driver_gid *gid = index < DRIVER_MAX_GIDS ? &drv->gids[index] : NULL;
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];

	if (gid == NULL || !gid->valid)
		return driver_fail(-EINVAL, "GID index %u is empty", index);
	if (hca_gid_is_mapped(gid->gid) != hca_gid_is_mapped(dgid))
		return driver_fail(-EINVAL,
				   "GID index %u (%s) and the destination %s are of different IP "
				   "versions",
				   index, hca_gid_text(gid->gid, from, sizeof(from)),
				   hca_gid_text(dgid, to, sizeof(to)));
	*source = gid;
	return resolve_mac(drv, dgid, told, dmac);
}

int
driver_resolve_path(struct hca_driver *drv, struct hca_qpc_path *path,
		    const struct driver_answer *told)
{
	const struct driver_gid *gid = NULL;
	uint8_t dmac[6];
	uint64_t dst, src;
	int err = resolve(drv, HCA_QPC_GID_INDEX(hca_be32_to_cpu(path->ackto)), path->rgid, told,
			  &gid, dmac);

	if (err != 0)
		return err;
	dst = hca_mac_number(dmac);
	src = hca_mac_number(gid->mac);
	path->mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(dst, src));
	path->smac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(src));
	path->dmac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(dst));
	path->sip = 0;
	path->dip = 0;
	if (hca_gid_is_mapped(gid->gid)) {
		path->sip = hca_cpu_to_be32(hca_get_be32(gid->gid + 12));
		path->dip = hca_cpu_to_be32(hca_get_be32(path->rgid + 12));
	}
	return 0;
}

static int
resolve_ah(struct hca_driver *drv, const struct hca_ctl_ah *request, bool ask,
	   struct hca_ctl_ah *answer)
{
	const struct driver_gid *gid = NULL;
	struct driver_answer told = {.valid = false};
	int err;

	*answer = *request;
	if (ask)
		ask_neigh(drv, answer->sgid_index, answer->dgid, &told);
	err = resolve(drv, answer->sgid_index, answer->dgid, &told, &gid, answer->dmac);
	if (err == 0)
		memcpy(answer->smac, gid->mac, sizeof(answer->smac));
	return err;
}

int
driver_op_resolve(struct hca_client *client, const struct hca_ctl_ah *request,
		  struct hca_ctl_ah *answer)
{
	return resolve_ah(client->drv, request, true, answer);
}

int
hca_driver_resolve(struct hca_driver *drv, bool ask, struct hca_ctl_ah *ah)
{
	const struct hca_ctl_ah request = *ah;
	int err;

	driver_lock_take(&drv->lock);
	err = resolve_ah(drv, &request, ask, ah);
	driver_lock_give(&drv->lock);
	return err;
}

int
driver_query_gid(const struct hca_driver *drv, uint32_t index, struct hca_ctl_gid *out)
{
	if (index >= hca_driver_gid_entries(drv))
		return no_gid(drv, index);
	memset(out, 0, sizeof(*out));
	memcpy(out->gid, drv->gids[index].gid, sizeof(out->gid));
	memcpy(out->mac, drv->gids[index].mac, sizeof(out->mac));
	out->vlan_id = drv->gids[index].vlan_id;
	out->valid = drv->gids[index].valid;
	out->ifindex = drv->gids[index].ifindex;
	return 0;
}

int
hca_driver_query_gid(struct hca_driver *drv, uint32_t index, struct hca_ctl_gid *out)
{
	int err;

	driver_lock_take(&drv->lock);
	err = driver_query_gid(drv, index, out);
	driver_lock_give(&drv->lock);
	return err;
}

uint32_t
hca_driver_gid_entries(const struct hca_driver *drv)
{
	return table_len(drv->lim.gid_table_len, DRIVER_MAX_GIDS);
}

int
driver_op_query_gid(struct hca_client *client, const uint32_t *index, struct hca_ctl_gid *answer)
{
	return driver_query_gid(client->drv, *index, answer);
}

int
driver_op_query_pkey(struct hca_client *client, const uint32_t *index, uint16_t *pkey)
{
	const struct hca_driver *drv = client->drv;

	if (*index >= table_len(drv->lim.pkey_table_len, DRIVER_MAX_PKEYS))
		return driver_fail(-EINVAL, "P_Key index %u: the table has %u entries", *index,
				   table_len(drv->lim.pkey_table_len, DRIVER_MAX_PKEYS));
	*pkey = drv->pkeys[*index];
	return 0;
}
