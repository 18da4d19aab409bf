/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CEU_QP_CHANGE_H
#define CEU_QP_CHANGE_H

/* A MODIFY_QP in progress; part of struct hca_cmd, because changing paths takes several polls. */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ctx.h"
#include "ctxmgt/qp.h"

/* The engine's fields of one path, for one of the two places of a QP. */
struct hca_path_slot {
	struct hca_udp_template tmpl;
	uint8_t peer_gid[16];
	uint16_t pkey, vlan;
};

struct hca_qp_path {
	struct hca_path_slot slot;
	uint8_t dmac[6];
	uint8_t timeout, rate;
	bool known; /* the path exists */
};

struct hca_qp_change {
	uint32_t qpi, qpn;
	uint32_t from, to;    /* states */
	uint32_t mask;	      /* attributes in the mailbox */
	struct hca_qpc image; /* merged */
	uint8_t mtu;	      /* enum hca_mtu it gets, 0: as it is */
	/* resolved where the mask asks for it: primary, alternate */
	struct hca_qp_path path[HCA_QP_PATHS];
	/* valid while the paths are held: */
	bool held;
	bool forced;	   /* migrated by software */
	uint32_t was, mig; /* migration state before and after */
	uint8_t step;
	uint64_t rcu;
	bool joins; /* from RST: a round began because a CQ gets another writer */
};

#endif
