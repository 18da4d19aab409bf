/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MIGRATE_H
#define ENGINE_MIGRATE_H

/*
 * Automatic path migration (InfiniBand 17.2.8). A connected QP has two paths, one of which is in
 * use. MIGRATED: the other one is not used. REARM: software has enabled it, but the peer has not
 * yet (it will then send MigReq 0). ARMED: if req_rx uses up its retries, or decap sees that the
 * peer has migrated (MigReq 1 on the other path), the QP migrates: the other path is in use from
 * the next frame on, the state is MIGRATED, and an event (PATH_MIG) is raised.
 *
 * hca_qp_addr.mig is also a lock: the stage that has set it to HELD may change the paths. No stage
 * waits for it; the CEU retries at its next poll and delays its command.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "core/core.h"
#include "ctxmgt/qp.h"
#include "ctxmgt/rate.h"
#include "engine/pkt.h"
#include "engine/stage.h"
#include "queues/eq.h"
#include "wire/roce_frame.h"

struct hca_pipe;

/* Not visible to software. */
#define HCA_MIG_HELD 2u

enum hca_migrate_result {
	HCA_MIGRATE_DONE,
	HCA_MIGRATE_NOT_ARMED,
	HCA_MIGRATE_HELD, /* its paths are being changed */
};

/* Migrate to the other path, if the QP is armed. Any stage. */
enum hca_migrate_result hca_migrate(struct hca_pipe *h, enum hca_stage_id by, uint32_t qpi);

/* From one migration state to another, in one step. */
static inline bool
hca_migrate_cas(struct hca_qp *qp, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&qp->addr.mig, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

/* The caller may change the QP's paths until it stores a state; *was: the state so far. CEU. */
static inline bool
hca_migrate_hold(struct hca_qp *qp, uint32_t *was)
{
	*was = __atomic_load_n(&qp->addr.mig, __ATOMIC_ACQUIRE);
	return *was != HCA_MIG_HELD && hca_migrate_cas(qp, *was, HCA_MIG_HELD);
}

static inline void
hca_migrate_release(struct hca_qp *qp, uint32_t mig)
{
	__atomic_store_n(&qp->addr.mig, mig, __ATOMIC_RELEASE);
}

/* Pace of a QP on that path, ps per byte: the slower of its static rate and its limit. */
static inline uint32_t
hca_path_pace(const struct hca_qp *qp, uint32_t place)
{
	uint32_t pace = 0;

	hca_rate_pace(qp->addr.rate[place], &pace);
	if (qp->cfg.service == HCA_ST_XRC_TGT)
		return pace;
	return RTE_MAX(pace, __atomic_load_n(&qp->addr.limit, __ATOMIC_RELAXED));
}

/*
 * The paths are held: path `to` is in use from now on. decap must check the paths then, because
 * they differ from its cache.
 */
static inline void
hca_migrate_use(struct hca_qp *qp, uint32_t to)
{
	__atomic_store_n(&qp->cfg.ask_addr, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->cfg.ack_timeout, qp->addr.ack_timeout[to], __ATOMIC_RELAXED);
	__atomic_store_n(&qp->req_tx.pace, hca_path_pace(qp, to), __ATOMIC_RELAXED);
	__atomic_store_n(&qp->encap.path, (uint8_t)to, __ATOMIC_RELEASE);
}

/* Counts a migration and raises its event. */
static inline void
hca_migrate_tell(struct hca_core *h, enum hca_stage_id by, uint32_t qpi)
{
	HCA_COUNT_AT(h, by, HCA_CTR_path_migrations);
	hca_eq_raise_qp(h, by, HCA_EVENT_PATH_MIG, qpi);
}

/*
 * Handle the MigReq of a packet with HCA_RXD_ASKED that has passed the other checks. HCA_CTR_N, or
 * the reason of its drop: an armed QP that is asked to migrate to an unknown path raises
 * PATH_MIG_FAILED. On decap's worker.
 */
enum hca_counter hca_migrate_judge(struct hca_pipe *h, struct hca_qp *qp, const struct hca_rxd *r,
				   const uint8_t *l3);

/* Whether the packet's IP source is this GID, in this VLAN; IPv4 is compared as ::ffff:0:0/96. */
bool hca_path_is_from(const uint8_t *l3, const struct hca_rxd *r, const uint8_t gid[16],
		      uint16_t vlan);
/* Whether the packet's IP destination is the source in the path's headers. */
bool hca_path_is_to(const uint8_t *l3, const struct hca_udp_template *t);

#endif
