/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory regions. */

#include <errno.h>
#include <stdlib.h>

#include "front_kern.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static int
mr_destroy(void *mr, const char *call)
{
	return front_result(softhca_dereg_mr(mr), call);
}

static const struct front_kind mr_kind = {"region", offsetof(struct ibv_mr, handle), mr_destroy,
					  NULL};

/* Fill the members of verbs in a region of libsofthca. */
static struct ibv_mr *
mr_of(struct softhca_mr *hca, struct ibv_pd *pd, void *addr, const struct front_kind *kind,
      const char *call)
{
	struct ibv_mr *mr = (struct ibv_mr *)hca;

	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	return front_enter(mr, kind, pd->context, pd, call);
}

/* A flag of the library that verbs do not have */
static int
judge_access(unsigned int access, const char *call)
{
	if ((access & SOFTHCA_ACCESS_KEEP_PRIVATE) != 0)
		return front_refuse(EINVAL, call, "access flags %#x: %#x is not a flag of verbs",
				    access, SOFTHCA_ACCESS_KEEP_PRIVATE);
	return 0;
}

/* Said once, and only with SOFTHCA_DEBUG */
static void
tell_slow(const struct softhca_mr *hca, const void *addr, size_t length, const char *call)
{
	static bool said;

	if (softhca_mr_is_slow(hca) && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		front_note(
			call,
			"%zu bytes at %p are reached the slow way, by system calls of the daemon",
			length, addr);
}

static struct ibv_mr *
register_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
	    const char *call)
{
	struct softhca_mr *hca;

	/* the header makes one of them of the others */
	if (front_fault("ibv_reg_mr") != 0)
		return NULL;
	if (front_pd_judge(pd, call) != 0 || judge_access(access, call) != 0)
		return NULL;
	hca = softhca_reg_mr_iova(front_pd_hca(pd), addr, length, iova, access);
	if (hca == NULL)
		return front_failed(call);
	tell_slow(hca, addr, length, call);
	return mr_of(hca, pd, addr, &mr_kind, call);
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return register_mr(pd, addr, length, (uintptr_t)addr, (unsigned int)access, __func__);
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return register_mr(pd, addr, length, iova, (unsigned int)access, __func__);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return register_mr(pd, addr, length, iova, access, __func__);
}

struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
		  int access)
{
	return FRONT_NULL(EOPNOTSUPP, "there are no regions of DMA buffers");
}

struct ibv_mr *
front_alloc_null_mr(struct ibv_pd *pd)
{
	struct softhca_mr *hca;

	if (front_pd_judge(pd, __func__) != 0)
		return NULL;
	hca = softhca_alloc_null_mr(front_pd_hca(pd));
	return hca != NULL ? mr_of(hca, pd, NULL, &mr_kind, __func__) : FRONT_FAILED();
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	return FRONT_DESTROY(mr, &mr_kind);
}

/* Checks of libibverbs itself, before the device is asked */
static int
judge_rereg(int flags, const void *addr, size_t length, int access)
{
	if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0)
		return front_refuse(EINVAL, "ibv_rereg_mr", "flags %#x: expected a set of %#x",
				    (unsigned int)flags, IBV_REREG_MR_FLAGS_SUPPORTED);
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 && (addr == NULL || length == 0))
		return front_refuse(EINVAL, "ibv_rereg_mr",
				    "a new translation needs an address and a length, not %p and "
				    "%zu",
				    addr, length);
	if ((flags & IBV_REREG_MR_CHANGE_ACCESS) == 0 && access != 0)
		return front_refuse(
			EINVAL, "ibv_rereg_mr",
			"access %#x without IBV_REREG_MR_CHANGE_ACCESS: pass 0, or set the flag",
			(unsigned int)access);
	return 0;
}

/* Whatever fails, the region stays as it was. */
int
ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	FRONT_FAULT(IBV_REREG_MR_ERR_CMD);
	struct ibv_pd *old_pd = mr->pd;
	void *old_addr = mr->addr;
	int err;

	if (judge_rereg(flags, addr, length, access) != 0)
		return IBV_REREG_MR_ERR_INPUT;
	if ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && front_pd_judge(pd, __func__) != 0)
		return IBV_REREG_MR_ERR_CMD;
	if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 &&
	    judge_access((unsigned int)access, __func__) != 0)
		return IBV_REREG_MR_ERR_CMD;
	err = FRONT_RESULT(softhca_rereg_mr(front_mr_hca(mr), (uint32_t)flags, front_pd_hca(pd),
					    addr, length, (uint32_t)access));
	/* the library has written its own */
	mr->pd = err == 0 && (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? pd : old_pd;
	mr->addr = err == 0 && (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 ? addr : old_addr;
	if (mr->pd != old_pd)
		front_move(mr, mr->pd);
	if (err != 0)
		return IBV_REREG_MR_ERR_CMD;
	front_renumber(mr);
	return 0;
}

int
front_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		struct ibv_sge *sg_list, uint32_t num_sge)
{
	int err = front_pd_judge(pd, __func__);

	if (err != 0)
		return err;
	return FRONT_RESULT(softhca_advise_mr(front_pd_hca(pd), advice, flags,
					      (const struct softhca_sge *)sg_list, num_sge));
}

/* ---- regions of other contexts: only unimport_mr frees one, and the region stays ---- */

static const struct front_kind import_kind = {"imported region", offsetof(struct ibv_mr, handle),
					      mr_destroy, NULL};

struct ibv_mr *
ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct softhca_mr *hca;

	if (front_pd_judge(pd, __func__) != 0)
		return NULL;
	hca = softhca_import_mr(front_pd_hca(pd), mr_handle);
	return hca != NULL ? mr_of(hca, pd, NULL, &import_kind, __func__) : FRONT_FAILED();
}

void
ibv_unimport_mr(struct ibv_mr *mr)
{
	FRONT_DESTROY(mr, &import_kind);
}

struct ibv_dm *
ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	return FRONT_NULL(EOPNOTSUPP, "the device has no memory of its own");
}

void
ibv_unimport_dm(struct ibv_dm *dm)
{
	FRONT_REFUSE(EOPNOTSUPP, "the device has no memory of its own");
}

/* ---- fork(): libsofthca needs nothing for it ---- */

int
ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status
ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int
ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int
ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
