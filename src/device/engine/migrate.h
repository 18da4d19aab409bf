/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MIGRATE_H
#define ENGINE_MIGRATE_H

/*
 * Automatic path migration (InfiniBand 17.2.8). A connected QP has two paths, one of which is in
 * use. MIGRATED: the other one is not used. REARM: software has enabled it, but the peer has not
 * yet (it will then send MigReq 0). ARMED: if RRC uses up its retries, or decap sees that the peer
 * has migrated (MigReq 1 on the other path), the QP migrates: the other path is in use from the
 * next frame on, the state is MIGRATED, and an event (PATH_MIG) is raised.
 *
 * hca_qp_addr.mig is also a lock: the stage that has set it to HELD may change the paths. No stage
 * waits for it; the CEU retries at its next poll and delays its command.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ctx.h"
#include "core/counters.h"
#include "engine/pkt.h"
#include "engine/stage.h"
#include "wire/roce_frame.h"

struct hca;

/* Not visible to software. */
#define HCA_MIG_HELD 2u

enum hca_migrate_result {
	HCA_MIGRATE_DONE,
	HCA_MIGRATE_NOT_ARMED,
	HCA_MIGRATE_HELD, /* its paths are being changed */
};

/* Migrate to the other path, if the QP is armed. Any stage. */
enum hca_migrate_result hca_migrate(struct hca *h, enum hca_stage_id by, uint32_t qpi);

/* Reserve the QP's paths until the caller stores a state; *was: the previous state. CEU. */
bool hca_migrate_hold(struct hca_qp *qp, uint32_t *was);
void hca_migrate_release(struct hca_qp *qp, uint32_t mig);
/* Use path `to` from now on; the paths are held. */
void hca_migrate_use(struct hca_qp *qp, uint32_t to);
/* Raise the event and tell the stages. */
void hca_migrate_tell(struct hca *h, enum hca_stage_id by, uint32_t qpi);

/*
 * Handle the MigReq of a packet with HCA_RXD_ASKED that has passed the other checks. HCA_CTR_N, or
 * the reason of its drop: an armed QP that is asked to migrate to an unknown path raises
 * PATH_MIG_FAILED. On decap's worker.
 */
enum hca_counter hca_migrate_judge(struct hca *h, struct hca_qp *qp, const struct hca_rxd *r,
				   const uint8_t *l3);

/* Whether the packet's IP source is this GID, in this VLAN; IPv4 is compared as ::ffff:0:0/96. */
bool hca_path_is_from(const uint8_t *l3, const struct hca_rxd *r, const uint8_t gid[16],
		      uint16_t vlan);
/* Whether the packet's IP destination is the source in the path's headers. */
bool hca_path_is_to(const uint8_t *l3, const struct hca_udp_template *t);

#endif
