/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_FUZZ_HCR_H
#define TESTS_FUZZ_FUZZ_HCR_H

/* The device whose command register fuzz_hcr.c uses, and valid mailboxes for its commands. */

#include "abi_bar.h"
#include "abi_cmd.h"
#include "abi_ctx.h"
#include "abi_tp.h"
#include "bar/bar.h"
#include "engine/impl.h"
#include "fuzz.h"
#include "ub/ub.h"

#define LOG_QPS 4u
#define LOG_CQS 3u
#define LOG_EQS 2u
#define LOG_MPTS 6u
#define LOG_MTTS 8u
#define PAGE 1u /* UAR page of the user */
#define BLOCK (256u << 10)
#define KEY(i) HCA_KEY_MAKE(0x2a, i, 0x33)
#define QPN(i) HCA_QPN_MAKE(0x155, i, LOG_QPS)
/* Offsets in the driver's block; the user's block holds queues, 8 KiB each. */
#define D_IN (128u << 10)
#define D_OUT (D_IN + HCA_MBOX_SIZE)
#define D_EQ (D_IN + 2 * HCA_MBOX_SIZE)
#define U_QUEUE(i) ((i)*8192u)
/* ICM addresses of the tables. */
#define V_QPC 0x100000u
#define V_CQC 0x110000u
#define V_EQC 0x120000u
#define V_MPT 0x200000u
#define V_MTT 0x210000u

struct hcr_world {
	struct hca_port port;
	struct hca *h;
	uint8_t *driver, *user, *foreign; /* BLOCK bytes; foreign is in no window */
	uint8_t *in;
	uint64_t now;
};

/*
 * Fill the input mailbox: its low three bits are the kind (INIT_HCA, MAP_ICM, MPT, MTT, EQ, CQ, QP,
 * GID or objects of UB), the others which one.
 */
void hcr_image(struct hcr_world *w, uint8_t what);
/* No object of UB is left. */
void hcr_check_no_ub(const struct hcr_world *w);

#endif
