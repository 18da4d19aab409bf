/* SPDX-License-Identifier: BSD-3-Clause */

/* Posting by ibv_wr_start .. ibv_wr_complete is not offered yet: send_ops_flags are refused. */

#include <errno.h>

#include "front.h"

int
front_wr_init(struct front_qp *qp, uint64_t send_ops_flags, const struct softhca_qp_cap *cap)
{
	return front_refuse(EOPNOTSUPP, "ibv_create_qp_ex", "send_ops_flags %#llx",
			    (unsigned long long)send_ops_flags);
}

void
front_wr_fini(struct front_qp *qp)
{
}
