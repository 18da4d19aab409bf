/* SPDX-License-Identifier: BSD-3-Clause */

/* Protection domains, parent domains, thread domains, XRC domains. */

#include <errno.h>
#include <stdlib.h>

#include "front.h"

static void
parent_domain_free(struct front_pd *pd)
{
	__atomic_sub_fetch(&pd->parent->users, 1, __ATOMIC_RELAXED);
	if (pd->td != NULL)
		__atomic_sub_fetch(&pd->td->users, 1, __ATOMIC_RELAXED);
	free(pd);
}

static int
pd_destroy(void *object, const char *call)
{
	struct front_pd *pd = object;
	uint32_t users = __atomic_load_n(&pd->users, __ATOMIC_RELAXED);
	int err;

	if (users != 0)
		return front_refuse(EBUSY, call, "%u %s: destroy them first", users,
				    pd->parent != NULL ? "objects are in the parent domain"
						       : "parent domains are of the PD");
	if (pd->parent != NULL) {
		parent_domain_free(pd);
		return 0;
	}
	err = front_result(softhca_dealloc_pd(pd->hca), call);
	if (err == 0)
		free(pd);
	return err;
}

static const struct front_kind pd_kind = {"PD", offsetof(struct ibv_pd, handle), pd_destroy, free};

/* hca NULL: the call of libsofthca has failed */
static struct ibv_pd *
pd_of(struct softhca_pd *hca, struct ibv_context *context, const char *call)
{
	struct front_pd *pd;

	if (hca == NULL)
		return front_failed(call);
	pd = front_new(sizeof(*pd), call);
	if (pd == NULL) {
		softhca_dealloc_pd(hca);
		return NULL;
	}
	pd->pub.context = context;
	pd->pub.handle = hca->handle;
	pd->hca = hca;
	return front_enter(pd, &pd_kind, context, NULL, call);
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	FRONT_FAULT(NULL);
	return pd_of(softhca_alloc_pd(front_hca(context)), context, __func__);
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	return FRONT_DESTROY(pd, &pd_kind);
}

struct ibv_pd *
ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	return pd_of(softhca_import_pd(front_hca(context), pd_handle), context, __func__);
}

void
ibv_unimport_pd(struct ibv_pd *pd)
{
	FRONT_DESTROY(pd, &pd_kind);
}

/* ---- thread domains and parent domains: an ordinary PD, which has its own locks ---- */

static int
td_destroy(void *object, const char *call)
{
	struct front_td *td = object;

	if (__atomic_load_n(&td->users, __ATOMIC_RELAXED) != 0)
		return front_refuse(
			EBUSY, call,
			"%u parent domains use the thread domain: deallocate them first",
			td->users);
	softhca_dealloc_td(td->hca);
	free(td);
	return 0;
}

static const struct front_kind td_kind = {"thread domain", 0, td_destroy, free};

struct ibv_td *
front_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct front_td *td;

	if (attr->comp_mask != 0)
		return FRONT_NULL(EOPNOTSUPP, "comp_mask %#x", attr->comp_mask);
	td = FRONT_NEW(struct front_td);
	if (td == NULL)
		return NULL;
	td->hca = softhca_alloc_td(front_hca(context));
	if (td->hca == NULL) {
		free(td);
		return FRONT_FAILED();
	}
	td->pub.context = context;
	return FRONT_ENTER(td, &td_kind, context);
}

int
front_dealloc_td(struct ibv_td *td)
{
	return FRONT_DESTROY(td, &td_kind);
}

/* The program's own pointer is for its allocators, which are refused. */
struct ibv_pd *
front_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct front_pd *parent = (struct front_pd *)attr->pd;
	struct front_td *td = (struct front_td *)attr->td;
	struct front_pd *pd;

	if (parent == NULL)
		return FRONT_NULL(EINVAL, "a parent domain needs a PD");
	if ((attr->comp_mask & ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) != 0)
		return FRONT_NULL(EOPNOTSUPP, "comp_mask %#x: allocators of the program",
				  attr->comp_mask);
	if (parent->parent != NULL)
		return FRONT_NULL(EINVAL, "a parent domain of a parent domain");
	if (parent->pub.context != context || (td != NULL && td->pub.context != context))
		return FRONT_NULL(EINVAL, "a PD or thread domain of another context");
	if (front_pd_judge(&parent->pub, __func__) != 0)
		return NULL;
	pd = FRONT_NEW(struct front_pd);
	if (pd == NULL)
		return NULL;
	pd->pub = parent->pub;
	pd->hca = parent->hca;
	pd->parent = parent;
	pd->td = td;
	__atomic_add_fetch(&parent->users, 1, __ATOMIC_RELAXED);
	if (td != NULL)
		__atomic_add_fetch(&td->users, 1, __ATOMIC_RELAXED);
	return FRONT_ENTER(pd, &pd_kind, context);
}

/* ---- XRC domains ---- */

static int
xrcd_destroy(void *object, const char *call)
{
	int err = front_result(softhca_close_xrcd(((struct front_xrcd *)object)->hca), call);

	if (err == 0)
		free(object);
	return err;
}

static const struct front_kind xrcd_kind = {"XRC domain", 0, xrcd_destroy, free};

struct ibv_xrcd *
front_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	FRONT_FAULT(NULL);
	const uint32_t required = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	const struct softhca_xrcd_init_attr request = {.fd = attr->fd, .oflags = attr->oflags};
	struct softhca_xrcd *hca;
	struct front_xrcd *xrcd;

	if ((attr->comp_mask & ~required) != 0)
		return FRONT_NULL(EOPNOTSUPP, "comp_mask %#x", attr->comp_mask);
	if (attr->comp_mask != required)
		return FRONT_NULL(EINVAL, "comp_mask %#x, a domain needs %#x", attr->comp_mask,
				  required);
	hca = softhca_open_xrcd(front_hca(context), &request);
	if (hca == NULL)
		return FRONT_FAILED();
	xrcd = FRONT_NEW(struct front_xrcd);
	if (xrcd == NULL) {
		softhca_close_xrcd(hca);
		return NULL;
	}
	xrcd->pub.context = context;
	xrcd->hca = hca;
	return FRONT_ENTER(xrcd, &xrcd_kind, context);
}

int
front_close_xrcd(struct ibv_xrcd *xrcd)
{
	return FRONT_DESTROY(xrcd, &xrcd_kind);
}
