/* SPDX-License-Identifier: BSD-3-Clause */

/* The addresses of the HCA. */

#include <stdlib.h>
#include <string.h>

#include "ib_impl.h"

#define GID_ENTRIES_MAX 4096u

uint32_t
ib_gid_find(const struct ibcm *cm, const struct hca_ctl_cm_addr *addr)
{
	bool scoped = addr->scope != 0 && ib_ip_is_link_local(addr->gid);

	for (uint32_t i = 0; i < cm->gids; i++)
		if (cm->gid[i].valid && memcmp(cm->gid[i].gid, addr->gid, 16) == 0 &&
		    (!scoped || cm->gid[i].ifindex == 0 || cm->gid[i].ifindex == addr->scope))
			return i;
	return HCA_CTL_CM_NO_GID;
}

uint32_t
ib_gid_any(const struct ibcm *cm, uint16_t family)
{
	uint32_t local = HCA_CTL_CM_NO_GID;

	for (uint32_t i = 0; i < cm->gids; i++) {
		if (!cm->gid[i].valid ||
		    (family != HCA_CTL_CM_IB && ib_ip_family(cm->gid[i].gid) != family))
			continue;
		if (!ib_ip_is_link_local(cm->gid[i].gid))
			return i;
		if (local == HCA_CTL_CM_NO_GID)
			local = i;
	}
	return local;
}

static bool
gid_room(struct ibcm *cm, uint32_t index)
{
	struct hca_ctl_gid *more;

	if (index < cm->gids)
		return true;
	if (index >= GID_ENTRIES_MAX)
		return false;
	more = realloc(cm->gid, (index + 1) * sizeof(*more));
	if (more == NULL)
		return false;
	memset(more + cm->gids, 0, (index + 1 - cm->gids) * sizeof(*more));
	cm->gid = more;
	cm->gids = index + 1;
	return true;
}

/* One waiting event says it all. */
static void
gid_tell(struct ibcm *cm, struct ib_id *id, uint32_t index)
{
	if (id->number != 0 && id->listener == NULL && id->gid_index == index &&
	    !ib_event_waits(id, HCA_CTL_CM_EV_ADDR_CHANGE))
		ib_event_simple(cm, id, HCA_CTL_CM_EV_ADDR_CHANGE, 0);
}

void
ibcm_set_gid(struct ibcm *cm, uint32_t index, const struct hca_ctl_gid *gid, uint64_t now)
{
	bool moved;

	(void)now;
	if (!gid_room(cm, index))
		return;
	moved = cm->gid[index].valid &&
		(!gid->valid || memcmp(cm->gid[index].gid, gid->gid, 16) != 0 ||
		 memcmp(cm->gid[index].mac, gid->mac, sizeof(gid->mac)) != 0 ||
		 cm->gid[index].vlan_id != gid->vlan_id);
	cm->gid[index] = *gid;
	for (uint32_t i = 0; moved && i < cm->slots; i++)
		if (cm->slot[i].id != NULL)
			gid_tell(cm, cm->slot[i].id, index);
}
