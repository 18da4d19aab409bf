/* SPDX-License-Identifier: BSD-3-Clause */

/* Automatic path migration: permission, and execution. */

#include <string.h>

#include "abi_cqe.h"
#include "ctxmgt/ctxmgt.h"
#include "engine/impl.h"
#include "engine/migrate.h"
#include "queues/eq.h"

enum hca_migrate_result
hca_migrate(struct hca_pipe *h, enum hca_stage_id by, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];
	uint32_t mig = __atomic_load_n(&qp->addr.mig, __ATOMIC_ACQUIRE);

	if (mig == HCA_MIG_HELD)
		return HCA_MIGRATE_HELD;
	if (mig != HCA_MIG_ARMED || !hca_migrate_cas(qp, HCA_MIG_ARMED, HCA_MIG_HELD))
		return HCA_MIGRATE_NOT_ARMED;
	if (!qp->addr.alt_valid) {
		hca_migrate_release(qp, mig);
		return HCA_MIGRATE_NOT_ARMED;
	}
	hca_migrate_use(qp, 1 - qp->encap.path);
	hca_migrate_release(qp, HCA_MIG_MIGRATED);
	hca_migrate_tell(&h->core, by, qpi);
	return HCA_MIGRATE_DONE;
}

bool
hca_path_is_from(const uint8_t *l3, const struct hca_rxd *r, const uint8_t gid[16], uint16_t vlan)
{
	if (HCA_VLAN_VID(r->vlan) != vlan)
		return false;
	if (l3[0] >> 4 == 4)
		return hca_gid_is_ip4(gid) &&
		       memcmp(l3 + offsetof(struct hca_ipv4_hdr, saddr), gid + 12, 4) == 0;
	return memcmp(l3 + offsetof(struct hca_ipv6_hdr, saddr), gid, 16) == 0;
}

bool
hca_path_is_to(const uint8_t *l3, const struct hca_udp_template *t)
{
	const uint8_t *ours = t->bytes + t->l3;

	if (l3[0] >> 4 != t->ip_version)
		return false;
	if (t->ip_version == 4)
		return memcmp(l3 + offsetof(struct hca_ipv4_hdr, daddr),
			      ours + offsetof(struct hca_ipv4_hdr, saddr), 4) == 0;
	return memcmp(l3 + offsetof(struct hca_ipv6_hdr, daddr),
		      ours + offsetof(struct hca_ipv6_hdr, saddr), 16) == 0;
}

/* Both paths may lead to the same address of the peer: then our own address distinguishes them. */
static bool
came_by_other_path(const struct hca_qp *qp, const struct hca_rxd *r, const uint8_t *l3)
{
	uint32_t other = 1 - (__atomic_load_n(&qp->encap.path, __ATOMIC_ACQUIRE) & 1);

	return r->flags & HCA_RXD_ALT_PATH ||
	       (hca_path_is_from(l3, r, qp->addr.peer_gid[other], qp->addr.vlan[other]) &&
		hca_path_is_to(l3, hca_qp_tmpl(qp, other)));
}

enum hca_counter
hca_migrate_judge(struct hca_pipe *h, struct hca_qp *qp, const struct hca_rxd *r, const uint8_t *l3)
{
	uint32_t mig = __atomic_load_n(&qp->addr.mig, __ATOMIC_ACQUIRE),
		 qpi = hca_qp_index(&h->core, r->qpi);

	if (mig == HCA_MIG_REARM && !(r->flags & HCA_RXD_MIGREQ))
		hca_migrate_cas(qp, HCA_MIG_REARM, HCA_MIG_ARMED);
	if (mig != HCA_MIG_ARMED || !qp->addr.alt_valid || !(r->flags & HCA_RXD_MIGREQ))
		return HCA_CTR_N;
	if (came_by_other_path(qp, r, l3)) {
		hca_migrate(h, HCA_STAGE_DECAP, qpi);
		return HCA_CTR_N;
	}
	hca_eq_raise_qp(&h->core, HCA_STAGE_DECAP, HCA_EVENT_PATH_MIG_FAILED, qpi);
	return HCA_CTR_rx_bad_migration;
}
