/* SPDX-License-Identifier: BSD-3-Clause */

/* Automatic path migration: permission, and execution. */

#include <string.h>

#include "abi_cqe.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/rate.h"
#include "engine/impl.h"
#include "engine/migrate.h"
#include "queues/eq.h"

static bool
mig_cas(struct hca_qp *qp, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&qp->addr.mig, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

bool
hca_migrate_hold(struct hca_qp *qp, uint32_t *was)
{
	*was = __atomic_load_n(&qp->addr.mig, __ATOMIC_ACQUIRE);
	return *was != HCA_MIG_HELD && mig_cas(qp, *was, HCA_MIG_HELD);
}

void
hca_migrate_release(struct hca_qp *qp, uint32_t mig)
{
	__atomic_store_n(&qp->addr.mig, mig, __ATOMIC_RELEASE);
}

/* from here on decap must check the paths, because they differ from its cache */
void
hca_migrate_use(struct hca_qp *qp, uint32_t to)
{
	uint32_t pace = 0;

	hca_rate_pace(qp->addr.rate[to], &pace);
	__atomic_store_n(&qp->cfg.ask_addr, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->cfg.ack_timeout, qp->addr.ack_timeout[to], __ATOMIC_RELAXED);
	__atomic_store_n(&qp->rtc.pace, pace, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->encap.path, (uint8_t)to, __ATOMIC_RELEASE);
}

void
hca_migrate_tell(struct hca *h, enum hca_stage_id by, uint32_t qpi)
{
	HCA_COUNT_AT(h, by, HCA_CTR_path_migrations);
	hca_eq_raise_qp(&h->core, by, HCA_EVENT_PATH_MIG, qpi);
}

enum hca_migrate_result
hca_migrate(struct hca *h, enum hca_stage_id by, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];
	uint32_t mig = __atomic_load_n(&qp->addr.mig, __ATOMIC_ACQUIRE);

	if (mig == HCA_MIG_HELD)
		return HCA_MIGRATE_HELD;
	if (mig != HCA_MIG_ARMED || !mig_cas(qp, HCA_MIG_ARMED, HCA_MIG_HELD))
		return HCA_MIGRATE_NOT_ARMED;
	if (!qp->addr.alt_valid) {
		hca_migrate_release(qp, mig);
		return HCA_MIGRATE_NOT_ARMED;
	}
	hca_migrate_use(qp, 1 - qp->encap.path);
	hca_migrate_release(qp, HCA_MIG_MIGRATED);
	hca_migrate_tell(h, by, qpi);
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

/* The peer may be the same at the end of both paths: then our own address tells them apart. */
static bool
came_by_other_path(const struct hca_qp *qp, const struct hca_rxd *r, const uint8_t *l3)
{
	uint32_t other = 1 - (__atomic_load_n(&qp->encap.path, __ATOMIC_ACQUIRE) & 1);

	return r->flags & HCA_RXD_ALT_PATH ||
	       (hca_path_is_from(l3, r, qp->addr.peer_gid[other], qp->addr.vlan[other]) &&
		hca_path_is_to(l3, hca_qp_tmpl(qp, other)));
}

enum hca_counter
hca_migrate_judge(struct hca *h, struct hca_qp *qp, const struct hca_rxd *r, const uint8_t *l3)
{
	uint32_t mig = __atomic_load_n(&qp->addr.mig, __ATOMIC_ACQUIRE),
		 qpi = hca_qp_index(&h->core, r->qpi);

	if (mig == HCA_MIG_REARM && !(r->flags & HCA_RXD_MIGREQ))
		mig_cas(qp, HCA_MIG_REARM, HCA_MIG_ARMED);
	if (mig != HCA_MIG_ARMED || !qp->addr.alt_valid || !(r->flags & HCA_RXD_MIGREQ))
		return HCA_CTR_N;
	if (came_by_other_path(qp, r, l3)) {
		hca_migrate(h, HCA_STAGE_DECAP, qpi);
		return HCA_CTR_N;
	}
	hca_eq_raise_qp(&h->core, HCA_STAGE_DECAP, HCA_EVENT_PATH_MIG_FAILED, qpi);
	return HCA_CTR_rx_bad_migration;
}
