/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory windows. */

#include <stdlib.h>

#include "front.h"

struct ibv_mw *
front_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct softhca_mw *hca = softhca_alloc_mw(front_pd_hca(pd), type);
	struct front_mw *mw;

	if (hca == NULL)
		return FRONT_FAILED();
	mw = FRONT_NEW(struct front_mw);
	if (mw == NULL) {
		softhca_dealloc_mw(hca);
		return NULL;
	}
	mw->pub = (struct ibv_mw){pd->context, pd, hca->rkey, hca->handle, type};
	mw->hca = hca;
	__atomic_store_n(&front_ctx(pd->context)->session->has_windows, true, __ATOMIC_RELAXED);
	return &mw->pub;
}

int
front_dealloc_mw(struct ibv_mw *pub)
{
	struct front_mw *mw = (struct front_mw *)pub;
	int err = FRONT_RESULT(softhca_dealloc_mw(mw->hca));

	if (err == 0)
		free(mw);
	return err;
}

int
front_bind_mw(struct ibv_qp *qp, struct ibv_mw *pub, struct ibv_mw_bind *bind)
{
	struct front_mw *mw = (struct front_mw *)pub;
	struct softhca_mw_bind request = {
		.wr_id = bind->wr_id,
		.send_flags = bind->send_flags,
	};
	int err;

	front_bind_info(&bind->bind_info, &request.bind_info);
	err = FRONT_RESULT(softhca_bind_mw(front_qp(qp)->hca, mw->hca, &request));
	if (err == 0)
		pub->rkey = mw->hca->rkey;
	return err;
}
