/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UB_TPC_H
#define TESTS_UB_TPC_H

/* TP contexts, for tests that make UB's channels themselves. */

#include <string.h>

#include "abi_ctx.h"
#include "abi_tp.h"

struct ub_tpc_field {
	enum hca_tpc_field field;
	uint32_t value;
};

/* The context with these fields, others are 0; from the GID of that index to the peer. */
static inline struct hca_tpc
ub_tpc(const struct ub_tpc_field *fields, unsigned int n, uint32_t gid_index,
       const uint8_t peer[16])
{
	struct hca_tpc c = {0};

	for (unsigned int i = 0; i < n; i++)
		hca_tpc_set(&c, fields[i].field, fields[i].value);
	c.path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 0));
	c.path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(0, gid_index, 0, 64));
	memcpy(c.path.rgid, peer, sizeof(c.path.rgid));
	return c;
}

#endif
