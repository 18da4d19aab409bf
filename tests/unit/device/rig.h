/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_RIG_H
#define TESTS_UNIT_DEVICE_RIG_H

/*
 * A whole HCA on a port that leads nowhere, with a minimal driver: commands through the HCR, ICM
 * mapped in one piece, queues and regions in one block of memory per domain.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi_bar.h"
#include "abi_cmd.h"
#include "abi_cqe.h"
#include "abi_qp_attr.h"
#include "abi_wqe.h"
#include "bar/bar.h"
#include "ctxmgt/ctxmgt.h"
#include "engine/impl.h"
#include "queues/eq.h"

#define RIG_LOG_QPS 5u
#define RIG_LOG_CQS 4u
#define RIG_LOG_EQS 3u
#define RIG_LOG_SRQS 3u
#define RIG_LOG_MPTS 7u
#define RIG_LOG_MTTS 12u
#define RIG_LOG_TPS 3u
#define RIG_UB (HCA_WIRE_BIT(HCA_WIRE_ROCE) | HCA_WIRE_BIT(HCA_WIRE_UB))
#define RIG_BLOCK (1u << 20)
#define RIG_PAGE 1u /* UAR page and domain of the client */
#define RIG_PD HCA_PD_MAKE(5, RIG_PAGE)
#define RIG_KPD HCA_PD_MAKE(1, 0) /* the driver's PD */
#define RIG_QPN(i) HCA_QPN_MAKE(0x155, i, RIG_LOG_QPS)

struct rig {
	struct hca *h;
	struct hca_port port;
	bool link_down;
	uint64_t now;
	uint8_t *driver;    /* RIG_BLOCK bytes, domain 0: ICM, mailboxes, EQ */
	uint8_t *user;	    /* RIG_BLOCK bytes, domain RIG_PAGE */
	uint8_t *in, *out;  /* mailboxes */
	uint64_t out_param; /* of the last command */
	uint8_t *srqc;	    /* ICM of the SRQ contexts */
	uint32_t next_mtt;  /* first unused MTT entry */
	uint8_t snapshot[1 << 16];
};

/* Create the rig. init: execute INIT_HCA and map the ICM. */
struct rig *rig_new(bool init);
/* With these wires: HCA_WIRE_BIT(). */
struct rig *rig_new_on(uint32_t wires, bool init);
/* With 1 << log_qps QPs and no ICM. */
struct rig *rig_new_wide(uint32_t log_qps);
void rig_free(struct rig *r);
int rig_eal(void);
void rig_poll(struct rig *r);
/* Take the link down or up. */
void rig_link(struct rig *r, bool up);

/* Execute a command; returns its status. */
int rig_cmd(struct rig *r, uint16_t op, uint8_t mod, uint32_t in_mod, uint64_t in, uint64_t out);
/* Execute a command with the rig's mailboxes. */
int rig_mbox(struct rig *r, uint16_t op, uint32_t in_mod);
/* Write the HCR with go set, without polling the device. */
void rig_post(struct rig *r, uint32_t ctrl, uint32_t in_mod, uint64_t in, uint64_t out,
	      uint16_t token);
uint32_t rig_ctrl(struct rig *r);

void rig_init_hca(struct rig *r);
/* Write an MTT entry for each of `pages` 4 KiB pages from p; returns the first index. */
uint32_t rig_mtt(struct rig *r, const uint8_t *p, uint32_t pages);
/* Register len bytes at p as MPT index; returns the key. */
uint32_t rig_mr(struct rig *r, uint32_t index, uint32_t pd, const uint8_t *p, uint64_t len);
void rig_fill_mpt(struct rig *r, uint32_t index, uint32_t pd, const uint8_t *p, uint64_t len,
		  uint32_t mtt);
void rig_eq(struct rig *r, uint32_t eqn, uint32_t log);
struct hca_eqe *rig_eqe(struct rig *r, uint32_t i);
void rig_cq(struct rig *r, uint32_t cqn, uint32_t log);
/* Fill in the mailbox of SW2HW_CQ. */
void rig_fill_cqc(struct rig *r, uint32_t cqn, uint32_t log, uint32_t key);
void rig_gid(struct rig *r);

/* The path of a TP to 10.0.0.host, whose MAC address is 02:00:00:00:00:host. */
struct hca_qpc_path rig_path(uint8_t host);

/* Create the queues of a QP: SQ of 16 x 64 B and RQ of 8 x 64 B in keys 20 and 21, CQs 2 and 3. */
void rig_qp_world(struct rig *r);
struct hca_qpc *rig_qpc(struct rig *r, uint32_t qpi, uint32_t mask);
int rig_to_init(struct rig *r, uint32_t qpi);
int rig_to_rtr(struct rig *r, uint32_t qpi);
int rig_to_rts(struct rig *r, uint32_t qpi);

/* rig_remember() copies the HCA's contexts; rig_unchanged() asserts that all are unchanged. */
void rig_remember(struct rig *r, uint32_t qpi);
void rig_unchanged(struct rig *r, uint32_t qpi);

uint8_t *rig_eq_mem(struct rig *r);
uint8_t *rig_cq_mem(struct rig *r, uint32_t cqn);

#endif
