/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_QP_TRANSITIONS_H
#define TESTS_QP_TRANSITIONS_H

/*
 * The transitions of a QP as tables A1-2 and A1-3 have them, with InfiniBand's additions for reads,
 * atomics and XRC: a second copy, so that the tests do not rely on the table of the code.
 *
 * T_LIST(X): X(from, to, command, services, required, optional). STATE may stand in all of them.
 *
 * Attributes that table A1-3 does not have are optional where src/abi/abi_qp_attr.h says so;
 * unit/abi/test_tables.c has their masks.
 */

#include <stddef.h>
#include <stdint.h>

#include "abi_qp_attr.h"

enum {
	T_STATE = 1 << 0,
	T_CUR = 1 << 1,
	T_NOTIFY = 1 << 2,
	T_ACCESS = 1 << 3,
	T_PKEY = 1 << 4,
	T_PORT = 1 << 5,
	T_QKEY = 1 << 6,
	T_AV = 1 << 7,
	T_MTU = 1 << 8,
	T_TIMEOUT = 1 << 9,
	T_RETRY = 1 << 10,
	T_RNR_RETRY = 1 << 11,
	T_RQ_PSN = 1 << 12,
	T_MAX_RD = 1 << 13,
	T_ALT = 1 << 14,
	T_MIN_RNR = 1 << 15,
	T_SQ_PSN = 1 << 16,
	T_MAX_DEST = 1 << 17,
	T_MIG = 1 << 18,
	T_CAP = 1 << 19,
	T_DEST = 1 << 20,
};

/* Services are bits of their numbers: RC 0, UC 1, UD 3, XRC_INI 6, XRC_TGT 7. */
enum {
	T_RC = 1 << 0,
	T_UC = 1 << 1,
	T_UD = 1 << 3,
	T_INI = 1 << 6,
	T_TGT = 1 << 7,
	T_CONNECTED = T_RC | T_UC | T_INI | T_TGT,
	T_ALL = T_CONNECTED | T_UD,
};

#define T_RTS_LIST(X, from, command) \
	X(from, RTS, command, T_UD, 0, T_CUR | T_QKEY) \
	X(from, RTS, command, T_UC | T_INI, 0, T_CUR | T_ALT | T_ACCESS | T_MIG) \
	X(from, RTS, command, T_RC, 0, T_CUR | T_ALT | T_ACCESS | T_MIN_RNR | T_MIG) \
	X(from, RTS, command, T_TGT, 0, T_CUR | T_ALT | T_ACCESS | T_MIN_RNR | T_MIG)

#define T_LIST(X) \
	X(RST, RST, ERR2RST, T_ALL, 0, 0) \
	X(INIT, RST, ERR2RST, T_ALL, 0, 0) \
	X(RTR, RST, ERR2RST, T_ALL, 0, 0) \
	X(RTS, RST, ERR2RST, T_ALL, 0, 0) \
	X(SQD, RST, ERR2RST, T_ALL, 0, 0) \
	X(SQE, RST, ERR2RST, T_ALL, 0, 0) \
	X(ERR, RST, ERR2RST, T_ALL, 0, 0) \
	X(INIT, ERR, 2ERR, T_ALL, 0, 0) \
	X(RTR, ERR, 2ERR, T_ALL, 0, 0) \
	X(RTS, ERR, 2ERR, T_ALL, 0, 0) \
	X(SQD, ERR, 2ERR, T_ALL, 0, 0) \
	X(SQE, ERR, 2ERR, T_ALL, 0, 0) \
	X(ERR, ERR, 2ERR, T_ALL, 0, 0) \
	X(RST, INIT, RST2INIT, T_UD, T_PKEY | T_PORT | T_QKEY, 0) \
	X(RST, INIT, RST2INIT, T_CONNECTED, T_PKEY | T_PORT | T_ACCESS, 0) \
	X(INIT, INIT, INIT2INIT, T_UD, 0, T_PKEY | T_PORT | T_QKEY) \
	X(INIT, INIT, INIT2INIT, T_CONNECTED, 0, T_PKEY | T_PORT | T_ACCESS) \
	X(INIT, RTR, INIT2RTR, T_UD, 0, T_PKEY | T_QKEY) \
	X(INIT, RTR, INIT2RTR, T_UC, T_AV | T_MTU | T_DEST | T_RQ_PSN, T_ALT | T_ACCESS | T_PKEY) \
	X(INIT, RTR, INIT2RTR, T_RC | T_TGT, \
	  T_AV | T_MTU | T_DEST | T_RQ_PSN | T_MIN_RNR | T_MAX_DEST, T_ALT | T_ACCESS | T_PKEY) \
	X(INIT, RTR, INIT2RTR, T_INI, T_AV | T_MTU | T_DEST, T_ALT | T_ACCESS | T_PKEY | T_RQ_PSN) \
	X(RTR, RTS, RTR2RTS, T_UD, T_SQ_PSN, T_CUR | T_QKEY) \
	X(RTR, RTS, RTR2RTS, T_UC, T_SQ_PSN, T_CUR | T_ALT | T_ACCESS | T_MIG) \
	X(RTR, RTS, RTR2RTS, T_RC, T_TIMEOUT | T_RETRY | T_RNR_RETRY | T_SQ_PSN | T_MAX_RD, \
	  T_CUR | T_ALT | T_ACCESS | T_MIN_RNR | T_MIG) \
	X(RTR, RTS, RTR2RTS, T_INI, T_TIMEOUT | T_RETRY | T_RNR_RETRY | T_SQ_PSN | T_MAX_RD, \
	  T_CUR | T_ALT | T_ACCESS | T_MIG) \
	X(RTR, RTS, RTR2RTS, T_TGT, T_SQ_PSN | T_TIMEOUT, \
	  T_CUR | T_ALT | T_ACCESS | T_MIN_RNR | T_MIG) \
	T_RTS_LIST(X, RTS, RTS2RTS) \
	X(RTS, SQD, RTS2SQD, T_ALL, 0, T_NOTIFY) \
	T_RTS_LIST(X, SQD, SQD2RTS) \
	X(SQD, SQD, SQD2SQD, T_UD, 0, T_PKEY | T_QKEY) \
	X(SQD, SQD, SQD2SQD, T_UC, 0, T_AV | T_ALT | T_ACCESS | T_PKEY | T_MIG) \
	X(SQD, SQD, SQD2SQD, T_RC, 0, \
	  T_PORT | T_AV | T_TIMEOUT | T_RETRY | T_RNR_RETRY | T_ALT | T_ACCESS | T_PKEY | \
		  T_MIN_RNR | T_MIG | T_MAX_RD | T_MAX_DEST) \
	X(SQD, SQD, SQD2SQD, T_INI, 0, \
	  T_PORT | T_AV | T_TIMEOUT | T_RETRY | T_RNR_RETRY | T_ALT | T_ACCESS | T_PKEY | T_MIG | \
		  T_MAX_RD) \
	X(SQD, SQD, SQD2SQD, T_TGT, 0, \
	  T_PORT | T_AV | T_TIMEOUT | T_ALT | T_ACCESS | T_PKEY | T_MIN_RNR | T_MIG | T_MAX_DEST) \
	X(SQE, RTS, SQERR2RTS, T_UD, 0, T_CUR | T_QKEY) \
	X(SQE, RTS, SQERR2RTS, T_UC, 0, T_CUR | T_ACCESS)

/*
 * Rows of a table of the attributes beyond table A1-3, by transition and service:
 * HCA_QP_TRANSITION_LIST(T_MORE_ROW), with the names of states that the test has.
 */
struct t_more {
	uint32_t from, to, service, attrs;
};
#define T_MORE_ROW(cmd, from, to, service, required, optional) \
	{from, to, HCA_ST_##service, ((required) | (optional)) & ~HCA_MASK(20, 0)},

static inline uint32_t
t_more_of(const struct t_more *rows, size_t n, const struct t_more *wanted)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].from == wanted->from && rows[i].to == wanted->to &&
		    rows[i].service == wanted->service)
			return rows[i].attrs;
	return 0;
}

#endif
