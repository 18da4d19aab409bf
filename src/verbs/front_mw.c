/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory windows: those of libsofthca, with the context and the PD of verbs in them. */

#include "front.h"

static int
mw_destroy(void *mw, const char *call)
{
	return front_result(softhca_dealloc_mw(mw), call);
}

static const struct front_kind mw_kind = {"memory window", offsetof(struct ibv_mw, handle),
					  mw_destroy, NULL};

struct ibv_mw *
front_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	FRONT_FAULT(NULL);
	struct ibv_mw *mw;

	if (front_pd_judge(pd, __func__) != 0)
		return NULL;
	mw = (struct ibv_mw *)softhca_alloc_mw(front_pd_hca(pd), type);
	if (mw == NULL)
		return FRONT_FAILED();
	mw->context = pd->context;
	mw->pd = pd;
	return FRONT_ENTER_PD(mw, &mw_kind, pd);
}

int
front_dealloc_mw(struct ibv_mw *mw)
{
	return FRONT_DESTROY(mw, &mw_kind);
}

int
front_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	FRONT_FAULT(errno);
	return FRONT_RESULT(softhca_bind_mw(front_qp(qp)->hca, front_mw_hca(mw),
					    (struct softhca_mw_bind *)bind));
}
