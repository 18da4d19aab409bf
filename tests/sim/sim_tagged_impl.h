/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_TAGGED_IMPL_H
#define TESTS_SIM_SIM_TAGGED_IMPL_H

/*
 * Shared by sim_tagged.c, which posts and checks, and sim_tagged_qp.c, which creates the objects.
 */

#include "sim_model.h"
#include "sim_tagged.h"

#define SIM_TAGGED_SLOT (SIM_TAGGED_MAX + 64u) /* bytes, GRH and guard included */
#define SIM_TAGGED_DEPTH 32u		       /* sends outstanding per direction of a flow */

static inline bool
sim_tagged_has_srq(const struct sim_tagged *t)
{
	return t->attr.srq || t->attr.service == SIM_XRC;
}

/* Set the destination in a work request: UD and XRC. */
void sim_tagged_address(struct sim_tagged *t, unsigned int side, uint32_t flow,
			struct softhca_send_wr *wr);

#endif
