/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UB_NO_AGENT_H
#define TESTS_UB_NO_AGENT_H

/*
 * URMA over drivers without an agent: the test makes the channels, so imports find them made, and
 * the library has no data of their other end.
 */

#include <string.h>

#include "urma_ctl.h"

/* To the address that ends with n + 2 leads group n. */
static inline int
ub_no_agent_import(struct lib_context *ctx, const struct urma_ctl_peer *request, uint32_t *number,
		   uint32_t *tpg)
{
	*number = 0;
	*tpg = request->eid[15] - 2u;
	return 0;
}

static inline int
ub_no_agent_unimport(struct lib_context *ctx, uint32_t number)
{
	return 0;
}

static inline int
ub_no_agent_eid(struct lib_context *ctx, uint32_t tpn, uint8_t eid[16])
{
	memset(eid, 0, 16);
	return 0;
}

/* The driver's operations, with these in place of those that ask the agent. */
static inline struct urma_ctl
ub_no_agent(void)
{
	struct urma_ctl ctl = urma_ctl_driver;

	ctl.import_peer = ub_no_agent_import;
	ctl.unimport_peer = ub_no_agent_unimport;
	ctl.tp_eid = ub_no_agent_eid;
	return ctl;
}

#endif
