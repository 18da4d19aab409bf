/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_SERVICE_H
#define HCA_ABI_SERVICE_H

/*
 * Services: one row each, from which the driver, the library and the device take the properties
 * of a service.
 */

#include <stdbool.h>

#include "abi_cmd.h"
#include "abi_ctx.h"
#include "abi_roce.h"
#include "abi_wqe.h"

/* Properties of a QP of a service. */
#define HCA_HAS_SQ 1u
#define HCA_HAS_RQ 2u /* unless it has an SRQ */
#define HCA_MAY_SRQ 4u
#define HCA_HAS_XRCD 8u /* an XRC domain instead of a PD and queues */

/*
 * X(name, type, transport, queues, ops, cap, unit)
 *   name       after HCA_ST_; shown to operators
 *   type       of the QP in the public interface, after SOFTHCA_QPT_
 *   transport  opcode class of its packets, after HCA_TRANSPORT_
 *   queues     HCA_HAS_*
 *   ops        HCA_WQE_OP_RC, _UC or _UD: the operations its send queue takes; 0: it has none
 *   cap        capability that announces it, after HCA_CAP_
 *   unit       bytes between the next unit and the others of every send WQE
 * Services of UB are in a list of their own, because no type of the public interface stands for
 * them. RD has no row: it is not offered.
 */
#define HCA_SERVICE_LIST(X) \
	X(RC, RC, RC, HCA_HAS_SQ | HCA_HAS_RQ | HCA_MAY_SRQ, HCA_WQE_OP_RC, RC, 0) \
	X(UC, UC, UC, HCA_HAS_SQ | HCA_HAS_RQ, HCA_WQE_OP_UC, UC, 0) \
	X(UD, UD, UD, HCA_HAS_SQ | HCA_HAS_RQ | HCA_MAY_SRQ, HCA_WQE_OP_UD, UD, \
	  sizeof(struct hca_ud_unit)) \
	X(XRC_INI, XRC_SEND, XRC, HCA_HAS_SQ, HCA_WQE_OP_RC, XRC, sizeof(struct hca_xrc_unit)) \
	X(XRC_TGT, XRC_RECV, XRC, HCA_HAS_XRCD, 0, XRC, 0)

/* X(name, queues): as above. Their operations are HCA_UB_OP_LIST and others, see abi_tp.h. */
#define HCA_UB_SERVICE_LIST(X) \
	X(JETTY, HCA_HAS_SQ | HCA_HAS_RQ | HCA_MAY_SRQ) \
	X(JFS, HCA_HAS_SQ)

struct hca_service_info {
	uint8_t transport; /* HCA_TRANSPORT_* or HCA_NO_TRANSPORT */
	uint8_t queues;	   /* HCA_HAS_* */
	uint8_t ops;	   /* HCA_WQE_OP_* */
	uint8_t units;	   /* of 16 bytes after the next unit */
	uint32_t cap;	   /* HCA_CAP_*; 0: the service is not offered */
};

/* The class of no packet, for numbers that are not offered. */
#define HCA_NO_TRANSPORT 0xffu

/* clang-format takes a bracket at this place of a header for Objective-C. */
#define HCA_AT(index) [index]

/* By number of the service (enum hca_service). */
static const struct hca_service_info hca_services[HCA_ST_COUNT] = {
#define X(name, type, transport, queues, ops, cap, unit) \
	HCA_AT(HCA_ST_##name) = {HCA_TRANSPORT_##transport, queues, ops, (unit) / HCA_WQE_UNIT, \
				 HCA_CAP_##cap},
	HCA_SERVICE_LIST(X)
#undef X
#define X(name, queues) HCA_AT(HCA_ST_##name) = {HCA_NO_TRANSPORT, queues, 0, 0, HCA_CAP_UB},
		HCA_UB_SERVICE_LIST(X)
#undef X
			HCA_AT(HCA_ST_RD) = {.transport = HCA_NO_TRANSPORT},
};

/* Jetty or JFS. */
static inline bool
hca_service_is_ub(uint32_t service)
{
	return service == HCA_ST_JETTY || service == HCA_ST_JFS;
}

/* The row of any number, as clients send it; empty if the service is not offered. */
static inline const struct hca_service_info *
hca_service_info(uint32_t number)
{
	return &hca_services[number < HCA_ST_COUNT ? number : HCA_ST_RD];
}

#endif
