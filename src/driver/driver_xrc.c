/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * XRC domains, and QPs that several clients have open.
 *
 * A domain belongs to one client, or to a file: then all clients share it that open it with a
 * descriptor of that file and may write to the file, or own it. QPs of such a domain (targets: they
 * have no queues, CQs or PD) are no client's in the device. In the driver each has an owner; when
 * that one destroys it or ends it is given to another client that has opened it, if any.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver_types.h"

bool
driver_has_cap(const struct hca_driver *drv, uint32_t cap)
{
	return (hca_be32_to_cpu(drv->lim.caps) & cap) != 0;
}

struct driver_xrcd *
driver_xrcd_of(struct hca_client *client, uint32_t number)
{
	struct driver_xrcd *xrcd = client->xrcds;

	while (xrcd != NULL && xrcd->number != number)
		xrcd = xrcd->next;
	return xrcd;
}

/* ---- files ---- */

/* State of a client's descriptor, without asking its file system, which might not answer. */
static int
inspect(const struct hca_client *client, int fd, struct statx *file)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_PATH) != 0)
		return driver_fail(-EBADF, "an XRC domain's descriptor is of an open file");
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, file) != 0)
		return driver_fail(-errno, "the file of an XRC domain: %s", strerror(errno));
	if (!S_ISREG(file->stx_mode))
		return driver_fail(-EINVAL, "an XRC domain's file is a regular one");
	if ((flags & O_ACCMODE) == O_RDONLY && client->user != 0 && client->user != file->stx_uid)
		return driver_fail(-EACCES, "the XRC domain of a file is for its owner, and for "
					    "those that have opened it for writing");
	return 0;
}

static struct driver_xrc_file *
find_file(const struct hca_driver *drv, const struct statx *file)
{
	struct driver_xrc_file *f = drv->xrc_files;

	while (f != NULL && (f->inode != file->stx_ino || f->dev_major != file->stx_dev_major ||
			     f->dev_minor != file->stx_dev_minor))
		f = f->next;
	return f;
}

/*
 * A path to the file of a client's descriptor: closing it tells the client's file system nothing,
 * which might not answer.
 */
static int
path_of(int fd)
{
	char link[32];
	int path;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	path = open(link, O_PATH | O_CLOEXEC);
	return path >= 0 ? path
			 : driver_fail(-errno, "the file of an XRC domain: %s", strerror(errno));
}

static int
take_number(struct hca_driver *drv, uint32_t *number)
{
	int err = driver_ids_take(&drv->xrcd_ids, number);

	return err == 0
		       ? 0
		       : driver_fail(err, "all %u XRC domains are in use", drv->xrcd_ids.count - 1);
}

static int
new_file(struct hca_driver *drv, const struct statx *file, int fd, struct driver_xrc_file **out)
{
	struct driver_xrc_file *f = calloc(1, sizeof(*f));
	int err;

	if (f == NULL)
		return driver_no_memory("an XRC domain", sizeof(*f));
	f->dev_major = file->stx_dev_major;
	f->dev_minor = file->stx_dev_minor;
	f->inode = file->stx_ino;
	f->fd = path_of(fd);
	err = f->fd < 0 ? f->fd : take_number(drv, &f->number);
	if (err != 0)
		goto err_free;
	f->next = drv->xrc_files;
	drv->xrc_files = f;
	*out = f;
	return 0;

err_free:
	if (f->fd >= 0)
		close(f->fd);
	free(f);
	return err;
}

/* If the file was removed, closing it frees its space: that of a large one takes seconds. */
static void
end_file(struct hca_client *client, struct driver_xrc_file *f)
{
	struct driver_xrc_file **link = &client->drv->xrc_files;

	while (*link != f)
		link = &(*link)->next;
	*link = f->next;
	f->next = client->ended;
	client->ended = f;
}

void
driver_xrc_close(struct driver_xrc_file *ended)
{
	while (ended != NULL) {
		struct driver_xrc_file *f = ended;

		ended = f->next;
		close(f->fd);
		free(f);
	}
}

/* ---- domains ---- */

/* Enter a domain into the client's list. */
static void
link_xrcd(struct hca_client *client, struct driver_xrcd *xrcd)
{
	xrcd->opens = 1;
	xrcd->next = client->xrcds;
	client->xrcds = xrcd;
	client->count[DRIVER_XRCDS]++;
}

static int
new_xrcd(struct hca_client *client, struct driver_xrcd **out)
{
	int err = driver_quota(client, DRIVER_XRCDS, 1);

	if (err != 0)
		return err;
	*out = calloc(1, sizeof(**out));
	return *out != NULL ? 0 : driver_no_memory("an XRC domain", sizeof(**out));
}

int
driver_op_alloc_xrcd(struct hca_client *client, const struct hca_ctl_none *none, uint32_t *number)
{
	struct hca_driver *drv = client->drv;
	struct driver_xrcd *xrcd;
	int err;

	if (!driver_has_cap(drv, HCA_CAP_XRC))
		return driver_fail(-EOPNOTSUPP, "the device has no XRC");
	err = new_xrcd(client, &xrcd);
	if (err != 0)
		return err;
	err = take_number(drv, &xrcd->number);
	if (err != 0) {
		free(xrcd);
		return err;
	}
	link_xrcd(client, xrcd);
	*number = xrcd->number;
	return 0;
}

static int
check_flags(const struct driver_xrc_file *f, uint32_t flags)
{
	const uint32_t new = HCA_CTL_XRCD_CREATE | HCA_CTL_XRCD_NEW;

	if ((flags & ~new) != 0)
		return driver_fail(-EINVAL, "flags %#x of an XRC domain are not known", flags);
	if (f == NULL && (flags & HCA_CTL_XRCD_CREATE) == 0)
		return driver_fail(-ENOENT, "the file has no XRC domain (O_CREAT makes one)");
	if (f != NULL && flags == new)
		return driver_fail(-EEXIST, "the file has an XRC domain");
	return 0;
}

/* The file's domain, which the client does not have open yet; f NULL: a new one */
static int
join_file(struct hca_client *client, const struct statx *file, int fd, struct driver_xrc_file *f,
	  uint32_t *number)
{
	struct driver_xrcd *xrcd = NULL;
	int err = driver_quota_files(client);

	if (err == 0)
		err = new_xrcd(client, &xrcd);
	if (err != 0)
		return err;
	if (f == NULL)
		err = new_file(client->drv, file, fd, &f);
	if (err != 0) {
		free(xrcd);
		return err;
	}
	f->clients++;
	client->count_files++;
	xrcd->file = f;
	xrcd->number = f->number;
	link_xrcd(client, xrcd);
	*number = f->number;
	return 0;
}

int
driver_op_open_xrcd(struct hca_client *client, const uint32_t *flags, uint32_t *number,
		    struct hca_ctl_extra *extra)
{
	struct hca_driver *drv = client->drv;
	struct driver_xrc_file *f;
	struct driver_xrcd *xrcd;
	struct statx file;
	int err;

	if (!driver_has_cap(drv, HCA_CAP_XRC))
		return driver_fail(-EOPNOTSUPP, "the device has no XRC");
	err = inspect(client, extra->fds[0], &file);
	if (err != 0)
		return err;
	f = find_file(drv, &file);
	err = check_flags(f, *flags);
	if (err != 0)
		return err;
	xrcd = f != NULL ? driver_xrcd_of(client, f->number) : NULL;
	if (xrcd == NULL)
		return join_file(client, &file, extra->fds[0], f, number);
	xrcd->opens++;
	*number = xrcd->number;
	return 0;
}

void
driver_xrcd_release(struct hca_driver *drv, struct hca_client *client, struct driver_xrcd *xrcd)
{
	struct driver_xrcd **link = &client->xrcds;
	bool last = xrcd->file == NULL || --xrcd->file->clients == 0;

	while (*link != xrcd)
		link = &(*link)->next;
	*link = xrcd->next;
	client->count[DRIVER_XRCDS]--;
	client->count_files -= xrcd->file != NULL;
	if (last)
		driver_ids_give(&drv->xrcd_ids, xrcd->number);
	if (last && xrcd->file != NULL)
		end_file(client, xrcd->file);
	free(xrcd);
}

int
driver_op_dealloc_xrcd(struct hca_client *client, const uint32_t *number, struct hca_ctl_none *none)
{
	struct driver_xrcd *xrcd = driver_xrcd_of(client, *number);

	if (xrcd == NULL)
		return driver_fail(-EINVAL, "XRC domain %u does not exist", *number);
	if (xrcd->opens > 1) {
		xrcd->opens--;
		return 0;
	}
	if (xrcd->users != 0)
		return driver_fail(-EBUSY, "%u QPs and SRQs use the XRC domain: destroy them first",
				   xrcd->users);
	driver_xrcd_release(client->drv, client, xrcd);
	return 0;
}

/* ---- QPs of several clients ---- */

struct driver_opener *
driver_opener_of(const struct driver_qp *qp, const struct hca_client *client)
{
	struct driver_opener *o = qp->openers;

	while (o != NULL && o->client != client)
		o = o->next;
	return o;
}

/* A target of the domain: no other error shows whether the QP exists. */
static int
find_target(struct hca_client *client, const struct hca_ctl_open_qp *request,
	    struct driver_qp **out)
{
	struct hca_driver *drv = client->drv;
	struct driver_xrcd *xrcd = driver_xrcd_of(client, request->xrcd);
	struct driver_qp *qp = drv->qps[request->qpn & (drv->qp_ids.count - 1)];

	if (xrcd == NULL)
		return driver_fail(-EINVAL, "XRC domain %u does not exist", request->xrcd);
	if (qp == NULL || qp->qpn != request->qpn || qp->xrcd == NULL ||
	    qp->xrcd->number != xrcd->number)
		return driver_fail(-EINVAL, "the XRC domain has no target QP %#x", request->qpn);
	*out = qp;
	return 0;
}

/* How many times more a client has opened a QP than once; NULL: it does not have it. */
static uint32_t *
opened_again(struct driver_qp *qp, const struct hca_client *client)
{
	struct driver_opener *o = driver_opener_of(qp, client);

	if (qp->owner == client)
		return &qp->again;
	return o != NULL ? &o->again : NULL;
}

bool
driver_qp_close_again(struct driver_qp *qp, const struct hca_client *client)
{
	uint32_t *again = opened_again(qp, client);

	if (again == NULL || *again == 0)
		return false;
	--*again;
	return true;
}

static int
open_first(struct hca_client *client, struct driver_qp *qp, uint32_t xrcd)
{
	struct hca_driver *drv = client->drv;
	struct driver_opener *o;
	int err = driver_quota(client, DRIVER_QPS, 1);

	if (err == 0)
		err = driver_quota(client, DRIVER_BYTES, qp->cost);
	if (err != 0)
		return err;
	o = calloc(1, sizeof(*o));
	if (o == NULL)
		return driver_no_memory("a QP", sizeof(*o));
	o->client = client;
	o->qp = qp;
	o->xrcd = driver_xrcd_of(client, xrcd);
	o->xrcd->users++;
	pthread_mutex_lock(&drv->event_lock);
	o->next = qp->openers;
	qp->openers = o;
	o->next_own = client->opened;
	client->opened = o;
	client->count[DRIVER_QPS]++;
	client->count[DRIVER_BYTES] += qp->cost;
	pthread_mutex_unlock(&drv->event_lock);
	return 0;
}

int
driver_op_open_qp(struct hca_client *client, const struct hca_ctl_open_qp *request,
		  struct hca_ctl_none *none)
{
	struct driver_qp *qp = NULL;
	int err = find_target(client, request, &qp);
	uint32_t *again = err == 0 ? opened_again(qp, client) : NULL;

	if (err == 0 && again == NULL)
		return open_first(client, qp, request->xrcd);
	if (err == 0)
		++*again;
	return err;
}

/* Take an opener out of both lists, and its QP from its account; event_lock held. */
static void
unlink_opener(struct driver_opener *o)
{
	struct driver_opener **link = &o->qp->openers;

	while (*link != o)
		link = &(*link)->next;
	*link = o->next;
	link = &o->client->opened;
	while (*link != o)
		link = &(*link)->next_own;
	*link = o->next_own;
	o->client->count[DRIVER_QPS]--;
	o->client->count[DRIVER_BYTES] -= o->qp->cost;
}

void
driver_opener_drop(struct hca_driver *drv, struct driver_opener *o)
{
	pthread_mutex_lock(&drv->event_lock);
	unlink_opener(o);
	if (o->owed != 0)
		drv->owed--;
	driver_eq_forget(o->client, 0, DRIVER_QP_EVENTS, o->qp->qpn);
	pthread_mutex_unlock(&drv->event_lock);
	o->xrcd->users--;
	free(o);
}

bool
driver_qp_pass_on(struct hca_driver *drv, struct driver_qp *qp)
{
	struct driver_opener *heir = qp->openers;

	if (heir == NULL)
		return false;
	qp->xrcd->users--;
	pthread_mutex_lock(&drv->event_lock);
	driver_qp_disown(qp);
	unlink_opener(heir);
	qp->owner = heir->client;
	qp->xrcd = heir->xrcd;
	qp->owed = heir->owed;
	qp->again = heir->again;
	driver_qp_own(qp);
	pthread_mutex_unlock(&drv->event_lock);
	free(heir);
	return true;
}
