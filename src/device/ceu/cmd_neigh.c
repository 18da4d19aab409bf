/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * SET_NEIGH: the table of neighbours, and QPs and other objects that send to one: from the next
 * frame on they use its new MAC address, without a change of state.
 */

#include <string.h>

#include "ceu/qp.h"
#include "ctxmgt/ctxmgt.h"

#define OBJECTS_PER_STEP 512u /* checked per poll, because the lcore also has other work */

/* The first eight bytes of a frame: destination, and two bytes of the source. */
_Static_assert(offsetof(struct hca_qp, encap.tmpl.bytes) % sizeof(uint64_t) == 0 &&
		       offsetof(struct hca_qp_second, tmpl.bytes) % sizeof(uint64_t) == 0,
	       "a MAC address changes in one store");

/* VLAN of the neighbour's interface in the form that QPs have: 0 for none. */
static uint16_t
vlan_of(const struct hca_core *h, const struct hca_mbox_set_neigh *m)
{
	uint32_t index = HCA_NEIGH_SGID_INDEX(hca_be32_to_cpu(m->flags));
	const struct hca_gid_entry *g = hca_gid_get(h->ctxmgt, index);

	return g != NULL && g->vlan_id != HCA_NO_VLAN ? g->vlan_id : 0;
}

/* The image for QUERY_QP, which is also the base of later changes of other attributes. */
static void
retarget_image(struct hca_qpc_path *p, const uint8_t gid[16], const uint8_t mac[6])
{
	uint8_t known[16];

	memcpy(known, p->rgid, sizeof(known));
	if (memcmp(known, gid, sizeof(known)) == 0)
		hca_path_set_dmac(p, mac);
}

static void
follow(struct hca_core *h, struct hca_qp *qp, const struct hca_mbox_set_neigh *m, uint16_t vlan)
{
	struct hca_udp_template *place[HCA_QP_PATHS] = {&qp->encap.tmpl};
	struct hca_qpc image;
	bool any = false;

	if (qp->cfg.local_qpn == 0 || qp->cfg.block == NULL)
		return;
	if (qp->cfg.block->second != NULL)
		place[1] = &qp->cfg.block->second->tmpl;
	for (uint32_t i = 0; i < HCA_QP_PATHS; i++) {
		if (place[i] == NULL || place[i]->transport == 0 || qp->addr.vlan[i] != vlan ||
		    memcmp(qp->addr.peer_gid[i], m->dgid, sizeof(m->dgid)) != 0)
			continue;
		hca_template_retarget(place[i], m->dmac);
		any = true;
	}
	if (!any)
		return;
	hca_qp_image_load(qp, &image);
	retarget_image(&image.path, m->dgid, m->dmac);
	retarget_image(&image.alt_path, m->dgid, m->dmac);
	hca_qp_image_store(qp, &image);
}

static void
follow_other(struct hca_core *h, uint32_t obj, const struct hca_mbox_set_neigh *m)
{
	uint32_t at;
	const struct hca_wire_object *o = hca_ceu_object(h, obj, &at);

	if (o->follow != NULL)
		o->follow(h, at, m->dgid, vlan_of(h, m), m->dmac);
}

int
hca_cmd_set_neigh(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mbox_set_neigh *m = (const void *)c->in;
	uint32_t qps = h->ctxmgt->count[HCA_ICM_QPC], end;
	uint32_t first, n = qps + hca_ceu_others(h, &first);
	int rc;

	if (c->step == 0) {
		rc = hca_neigh_set(h->ctxmgt, m);
		if (rc != HCA_STAT_OK || !(hca_be32_to_cpu(m->flags) & HCA_NEIGH_VALID))
			return rc;
		c->index = 0;
	}
	c->step = 1;
	end = RTE_MIN(c->index + OBJECTS_PER_STEP, n);
	for (; c->index < RTE_MIN(end, qps); c->index++)
		follow(h, &h->qp[c->index], m, vlan_of(h, m));
	for (; c->index < end; c->index++)
		follow_other(h, first + c->index - qps, m);
	return c->index < n ? HCA_CMD_AGAIN : HCA_STAT_OK;
}
