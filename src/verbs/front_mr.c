/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory regions. */

#include <errno.h>
#include <stdlib.h>

#include "front_kern.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct ibv_mr *
mr_new(struct ibv_pd *pd, struct softhca_mr *hca, void *addr, size_t length, const char *call)
{
	struct front_mr *mr = front_new(sizeof(*mr), call);

	if (mr == NULL)
		return NULL;
	mr->pub = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.handle = hca->lkey,
		.lkey = hca->lkey,
		.rkey = hca->rkey,
	};
	mr->hca = hca;
	mr->handle = (struct front_handle){FRONT_MR, hca->lkey, hca, NULL};
	front_handle_add(pd->context, &mr->handle);
	return &mr->pub;
}

/* Flags that a device may ignore, and the size of pages, which the library finds out itself */
#define IGNORED_ACCESS ((uint32_t)IBV_ACCESS_OPTIONAL_RANGE | (uint32_t)IBV_ACCESS_HUGETLB)
#define KNOWN_ACCESS \
	((uint32_t)IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_ON_DEMAND)

static int
judge_access(unsigned int *access, const char *call)
{
	*access &= ~IGNORED_ACCESS;
	if ((*access & ~KNOWN_ACCESS) != 0)
		return front_refuse(EINVAL, call, "access flags %#x are not known", *access);
	return 0;
}

static struct ibv_mr *
register_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
	    const char *call)
{
	struct softhca_mr *hca;
	struct ibv_mr *mr;

	if (judge_access(&access, call) != 0)
		return NULL;
	if ((access & IBV_ACCESS_ZERO_BASED) == 0 && iova != (uintptr_t)addr) {
		front_refuse(EOPNOTSUPP, call, "a region at %p with the address %#llx", addr,
			     (unsigned long long)iova);
		return NULL;
	}
	hca = softhca_reg_mr(front_pd_hca(pd), addr, length, access);
	if (hca == NULL)
		return front_failed(call);
	mr = mr_new(pd, hca, addr, length, call);
	if (mr == NULL)
		softhca_dereg_mr(hca);
	return mr;
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

int
ibv_dereg_mr(struct ibv_mr *pub)
{
	struct front_mr *mr = (struct front_mr *)pub;
	int err = FRONT_RESULT(softhca_dereg_mr(mr->hca));

	if (err != 0)
		return err;
	front_handle_forget(pub->context, mr->hca);
	free(mr);
	return 0;
}

/* Whatever fails, the region stays as it was. */
int
ibv_rereg_mr(struct ibv_mr *pub, int flags, struct ibv_pd *pd, void *addr, size_t length,
	     int access)
{
	struct front_mr *mr = (struct front_mr *)pub;
	unsigned int known = (unsigned int)access;

	if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) {
		FRONT_REFUSE(EINVAL, "flags %#x are not known", (unsigned int)flags);
		return IBV_REREG_MR_ERR_INPUT;
	}
	if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 && judge_access(&known, __func__) != 0)
		return IBV_REREG_MR_ERR_INPUT;
	if (FRONT_RESULT(softhca_rereg_mr(mr->hca, (uint32_t)flags, front_pd_hca(pd), addr, length,
					  known)) != 0)
		return IBV_REREG_MR_ERR_INPUT;
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
		pub->addr = addr;
		pub->length = length;
	}
	if ((flags & IBV_REREG_MR_CHANGE_PD) != 0)
		pub->pd = pd;
	pub->lkey = mr->hca->lkey;
	pub->rkey = mr->hca->rkey;
	return 0;
}

struct ibv_mr *
ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct softhca_mr *hca = front_handle_find(pd->context, FRONT_MR, mr_handle);

	if (hca == NULL)
		return FRONT_NULL(ENOENT, "the context has no region %#x", mr_handle);
	return mr_new(pd, hca, NULL, hca->length, __func__);
}

void
ibv_unimport_mr(struct ibv_mr *pub)
{
	struct front_mr *mr = (struct front_mr *)pub;

	front_handle_remove(pub->context, &mr->handle);
	free(mr);
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
