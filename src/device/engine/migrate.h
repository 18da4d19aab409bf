/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MIGRATE_H
#define ENGINE_MIGRATE_H

/*
 * Automatic path migration (InfiniBand 17.2.8). A connected QP has two paths, of which one is in
 * use. MIGRATED: the other one is not to be used. REARM: software wants it watched, the peer has
 * not said yet that it does too (it sends MigReq 0 then). ARMED: whoever finds the path in use dead
 * (RRC: retries used up), or hears that the peer has left it (decap: MigReq 1 on the other path),
 * migrates: the other path is in use from the next frame on, the state is MIGRATED, and software
 * hears of it (PATH_MIG).
 *
 * hca_qp_addr.mig is a lock as well: who has set it to HELD may change the paths. Nobody waits for
 * it; the CEU asks again at its next poll, and does not let a command of its own go on without it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ctx.h"
#include "core/counters.h"
#include "engine/pkt.h"
#include "engine/stage.h"
#include "wire/roce_frame.h"

struct hca;

/* Not a state that software sees. */
#define HCA_MIG_HELD 2u

enum hca_migrate_result {
	HCA_MIGRATE_DONE,
	HCA_MIGRATE_NOT_ARMED,
	HCA_MIGRATE_HELD, /* its paths are being changed at this moment */
};

/* To the other path, if the QP is armed. Any stage. */
enum hca_migrate_result hca_migrate(struct hca *h, enum hca_stage_id by, uint32_t qpi);

/* The QP's paths are the caller's until it stores a state; *was: the state so far. CEU. */
bool hca_migrate_hold(struct hca_qp *qp, uint32_t *was);
void hca_migrate_release(struct hca_qp *qp, uint32_t mig);
/* The paths are held: path `to` is in use from now on. */
void hca_migrate_use(struct hca_qp *qp, uint32_t to);
/* Says that it has happened. */
void hca_migrate_tell(struct hca *h, enum hca_stage_id by, uint32_t qpi);

/*
 * A packet with HCA_RXD_ASKED that is good otherwise: what its MigReq means for the QP. HCA_CTR_N,
 * or why it is dropped: an armed QP that is asked to migrate to a path it does not know tells
 * software so (PATH_MIG_FAILED). decap.
 */
enum hca_counter hca_migrate_judge(struct hca *h, struct hca_qp *qp, const struct hca_rxd *r,
				   const uint8_t *l3);

/* IP source of the packet is this GID, in this VLAN; an IPv4 address is one in ::ffff:0:0/96. */
bool hca_path_is_from(const uint8_t *l3, const struct hca_rxd *r, const uint8_t gid[16],
		      uint16_t vlan);
/* IP destination of the packet is what the path of these headers has as its source. */
bool hca_path_is_to(const uint8_t *l3, const struct hca_roce_template *t);

#endif
