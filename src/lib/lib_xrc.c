/* SPDX-License-Identifier: BSD-3-Clause */

/* XRC domains, and target QPs of other contexts that share one. */

#include <errno.h>
#include <fcntl.h>

#include "lib_types.h"

static int
open_file(struct lib_context *ctx, const struct softhca_xrcd_init_attr *attr, uint32_t *number)
{
	struct hca_ctl_extra extra = {.fds = {attr->fd, -1, -1, -1}};
	uint32_t flags = 0;

	if ((attr->oflags & ~(O_CREAT | O_EXCL)) != 0)
		return lib_fail(-EINVAL,
				"flags %#x of an XRC domain: expected a set of O_CREAT and O_EXCL",
				(unsigned int)attr->oflags);
	if ((attr->oflags & O_CREAT) != 0)
		flags |= HCA_CTL_XRCD_CREATE;
	if ((attr->oflags & O_EXCL) != 0)
		flags |= HCA_CTL_XRCD_NEW;
	return LIB_CALL_EXTRA(ctx, OPEN_XRCD, &flags, number, &extra);
}

struct softhca_xrcd *
softhca_open_xrcd(struct softhca_context *pub, const struct softhca_xrcd_init_attr *attr)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct lib_xrcd *xrcd = lib_object_new(ctx, sizeof(*xrcd), "an XRC domain");
	int err;

	if (xrcd == NULL)
		return NULL;
	xrcd->pub.context = pub;
	if (attr->fd == -1)
		err = LIB_CALL(ctx, ALLOC_XRCD, NULL, &xrcd->pub.handle);
	else
		err = open_file(ctx, attr, &xrcd->pub.handle);
	if (err != 0)
		return lib_object_refused(ctx, xrcd);
	return &xrcd->pub;
}

int
softhca_close_xrcd(struct softhca_xrcd *pub)
{
	struct lib_xrcd *xrcd = (struct lib_xrcd *)pub;
	struct lib_context *ctx = lib_ctx(pub->context);
	uint32_t users;
	int err;

	pthread_mutex_lock(&ctx->lock);
	users = xrcd->users;
	pthread_mutex_unlock(&ctx->lock);
	if (users != 0)
		return lib_fail(-EBUSY, "%u QPs and SRQs use XRC domain %u: destroy them first",
				users, pub->handle);
	err = LIB_CALL(ctx, DEALLOC_XRCD, &pub->handle, NULL);
	if (err == 0)
		lib_object_free(ctx, xrcd);
	return err;
}

static int
check_open(const struct softhca_context *ctx, const struct softhca_qp_open_attr *attr)
{
	if (attr->qp_type != SOFTHCA_QPT_XRC_RECV)
		return lib_fail(-EINVAL,
				"a QP of type %u cannot be opened: only XRC_RECV QPs are shared",
				attr->qp_type);
	if (attr->xrcd == NULL)
		return lib_fail(-EINVAL, "xrcd is NULL: pass the XRC domain of the QP");
	if (attr->xrcd->context != ctx)
		return lib_fail(-EINVAL, "XRC domain %u is of another context: open it in this one",
				attr->xrcd->handle);
	return 0;
}

struct softhca_qp *
softhca_open_qp(struct softhca_context *pub, const struct softhca_qp_open_attr *attr)
{
	const struct softhca_qp_init_attr_ex init = {
		.qp_context = attr->qp_context,
		.qp_type = attr->qp_type,
		.xrcd = attr->xrcd,
	};
	struct hca_ctl_open_qp request = {.qpn = attr->qp_num};
	struct lib_context *ctx = lib_ctx(pub);
	struct lib_qp *qp;
	int err;

	if (check_open(pub, attr) != 0)
		return NULL;
	qp = lib_qp_new(ctx, &init);
	if (qp == NULL)
		return NULL;
	qp->pub.qp_num = attr->qp_num;
	request.xrcd = attr->xrcd->handle;
	err = LIB_CALL(ctx, OPEN_QP, &request, NULL);
	if (err != 0)
		goto err_free;
	err = lib_qp_refresh(qp);
	if (err == 0)
		err = lib_qp_enter(ctx, qp);
	if (err != 0)
		goto err_close;
	return &qp->pub;

err_close:
	lib_drop(ctx, HCA_CTL_DESTROY_QP, qp->pub.qp_num);
err_free:
	lib_qp_free(qp);
	errno = -err;
	return NULL;
}
