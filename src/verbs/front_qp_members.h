/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_FRONT_QP_MEMBERS_H
#define VERBS_FRONT_QP_MEMBERS_H

/*
 * Members of QP attributes that have one name in struct softhca_qp_attr, struct ibv_qp_attr and the
 * kernel's struct ib_uverbs_qp_attr: rows of HCA_QP_FIELD_LIST, whose last column says which of
 * these have the member. Addresses and sizes are converted elsewhere.
 */

#include "abi_qp_attr.h"

#define FRONT_COPY(member) to->member = (__typeof__(to->member))from->member;
#define FRONT_COPY_STATES \
	FRONT_COPY(qp_state) \
	FRONT_COPY(cur_qp_state) \
	FRONT_COPY(en_sqd_async_notify) \
	FRONT_COPY(sq_draining)

/* Between struct softhca_qp_attr and struct ibv_qp_attr: from *from to *to. */
#define FRONT_COPY_IBV FRONT_COPY_STATES HCA_QP_FIELD_LIST(FRONT_IBV_ROW)
#define FRONT_IBV_ROW(attribute, member, word, field, min, max, limit, rule, verbs) \
	FRONT_IBV_##verbs(member)
#define FRONT_IBV_KERNEL(member) FRONT_COPY(member)
#define FRONT_IBV_IBV(member) FRONT_COPY(member)
#define FRONT_IBV_OWN(member)

/* The same with struct ib_uverbs_qp_attr at one end. */
#define FRONT_COPY_KERNEL FRONT_COPY_STATES HCA_QP_FIELD_LIST(FRONT_KERNEL_ROW)
#define FRONT_KERNEL_ROW(attribute, member, word, field, min, max, limit, rule, verbs) \
	FRONT_KERNEL_##verbs(member)
#define FRONT_KERNEL_KERNEL(member) FRONT_COPY(member)
#define FRONT_KERNEL_IBV(member)
#define FRONT_KERNEL_OWN(member)

/* Bits of attributes that verbs do not know. */
#define FRONT_OWN_ATTRS (0u HCA_QP_FIELD_LIST(FRONT_OWN_ROW))
#define FRONT_OWN_ROW(attribute, member, word, field, min, max, limit, rule, verbs) \
	FRONT_OWN_##verbs(attribute)
#define FRONT_OWN_KERNEL(attribute)
#define FRONT_OWN_IBV(attribute)
#define FRONT_OWN_OWN(attribute) | HCA_QP_ATTR_##attribute

#endif
