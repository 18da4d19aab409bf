/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Execution of requests. Most go to the driver (abi_ops.h), which checks that the numbers belong to
 * the client. The functions here serve the operations of the channel itself, and those of objects
 * in memory of the client: they translate its addresses to bus addresses, and hold the memory until
 * the object is destroyed.
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi_bar.h"
#include "abi_cqe.h"
#include "abi_service.h"
#include "ipc_msg.h"
#include "ipc_server_impl.h"
#include "ipc_watch.h"

#define STAGED_PAGES_MAX (UINT64_C(1) << 20)
#define QUEUE_LOG_MAX 24u /* far more than any device supports: the driver reports the limit */

/* request and answer have the types of the row of op; extra has the descriptors of the request. */
typedef int (*op_fn)(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
		     struct hca_ctl_extra *extra);

/* Returns the driver's result with its reason */
static int
driver_says(int err)
{
	return err == 0 ? 0 : ipc_fail(err, "%s", hca_driver_reason());
}

static int
op_driver(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	  struct hca_ctl_extra *extra)
{
	return driver_says(hca_client_call(s->client, op, request, answer, extra));
}

/* ---- a client comes and goes ---- */

/* Make the doorbell page a file of its own that can be sent. */
static int
map_uar(struct ipc_session *s, int *out)
{
	void *page = (void *)(uintptr_t)hca_client_uar(s->client);
	int fd = memfd_create("softhca-uar", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return ipc_fail(-errno,
				"no memfd for a doorbell page: %s: see the daemon's limit of open "
				"files (ulimit -n)",
				strerror(errno));
	if (ftruncate(fd, HCA_UAR_PAGE_SIZE) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
	    mmap(page, HCA_UAR_PAGE_SIZE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED) {
		int err = ipc_fail(-errno,
				   "the doorbell page of process %d cannot be shared: %s: see the "
				   "daemon's memory limit (cgroup) and vm.max_map_count",
				   (int)s->pid, strerror(errno));

		close(fd);
		return err;
	}
	ipc_watch((uintptr_t)page, HCA_UAR_PAGE_SIZE); /* pages that the client has punched out */
	*out = fd;
	return 0;
}

/*
 * Before the page's number is released: the client's further doorbells have no effect. No advice
 * follows, because a worker that wrote to the page before it would keep it a mapping of its own.
 */
static void
unmap_uar(const struct ipc_session *s)
{
	void *page = (void *)(uintptr_t)hca_client_uar(s->client);

	if (mmap(page, HCA_UAR_PAGE_SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort(); /* a page was mapped there, so a page can be */
}

static bool
is_privileged(const struct ipc_server_config *c, uid_t uid)
{
	for (uint32_t i = 0; i < c->num_privileged; i++)
		if (c->privileged[i] == uid)
			return true;
	return uid == 0;
}

static int
open_client(struct ipc_session *s, const struct hca_ctl_offer *offer, int *uar_fd)
{
	const struct ipc_server_config *c = &s->server->config;
	struct ipc_memory_config mc = {
		.bytes_max = c->memory_max,
		.segments_max = c->segments_max,
		.lost_fd = s->lost_fd,
		.maps = &s->server->maps,
		.trusted = c->trust_own && (s->uid == 0 || s->uid == geteuid()),
		.more = ipc_session_more,
		.more_arg = s,
	};
	struct hca_client_who who = {
		.user = s->uid,
		.privileged = is_privileged(c, s->uid),
		.undivided = (offer->features & HCA_CTL_FEATURE_PIPES) == 0,
	};
	int err = driver_says(hca_client_open(c->driver, &who, &s->client));

	if (err != 0) {
		s->client = NULL;
		return err;
	}
	err = map_uar(s, uar_fd);
	if (err != 0)
		return err;
	mc.uar = (uintptr_t)hca_client_uar(s->client);
	err = ipc_memory_create(&mc, &s->memory);
	if (err != 0)
		return err;
	/* from here on the device checks the doorbell page */
	return driver_says(hca_client_attach(s->client, ipc_memory_bus(s->memory),
					     ipc_memory_window(s->memory)));
}

/* Before the page's number is released, because the next owner may attach memory of its own. */
static void
forget_memory(const struct ipc_session *s)
{
	if (s->foreign == NULL)
		return;
	ipc_foreign_end(s->foreign);
	__atomic_store_n(&s->server->foreign[s->uar_page], NULL, __ATOMIC_RELEASE);
}

void
ipc_session_release(struct ipc_session *s)
{
	forget_memory(s);
	ipc_kick_close(s);
	if (s->client != NULL) {
		if (s->memory != NULL)
			ipc_memory_forget_uar(s->memory);
		unmap_uar(s);
		hca_client_close(s->client);
	}
	if (s->foreign != NULL)
		ipc_foreign_destroy(s->foreign);
	s->foreign = NULL;
	if (s->memory != NULL)
		ipc_memory_destroy(s->memory);
	s->client = NULL;
	s->memory = NULL;
}

static int
random_nonce(uint64_t *nonce)
{
	return getentropy(nonce, sizeof(*nonce)) == 0
		       ? 0
		       : ipc_fail(-errno, "no random numbers: %s", strerror(errno));
}

static int
op_hello(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	 struct hca_ctl_extra *extra)
{
	const struct hca_ctl_hello *hello = request;
	struct hca_ctl_welcome *w = answer;
	struct hca_ctl_info info;
	int *fds = extra->fds, err;

	if (hello->magic != IPC_MAGIC)
		return ipc_fail(-EPROTO, "this is not a client of softhca");
	err = random_nonce(&w->nonce);
	if (err == 0)
		err = open_client(s, &hello->offer, &fds[0]);
	if (err == 0)
		err = op_driver(s, HCA_CTL_INFO, NULL, &info, NULL);
	if (err == 0) {
		__atomic_store_n(&s->uar_page, info.uar_page, __ATOMIC_RELAXED);
		s->pipes = info.num_pipes;
		err = ipc_kick_open(s, &w->sleep_offset, &fds[1]);
	}
	if (err != 0) {
		ipc_close_fds(fds, 3);
		ipc_session_release(s);
		return err;
	}
	w->offer = (struct hca_ctl_offer){HCA_CTL_OLDER, HCA_CTL_MINOR, HCA_CTL_FEATURES};
	memcpy(w->name, s->server->name, sizeof(w->name));
	s->seq = w->nonce; /* incremented after the reply */
	s->greeted = true;
	s->minor = hello->offer.minor;
	ipc_tell_version(s);
	return 0;
}

/* The daemon's addition: whether it takes the memory file of clients. */
static int
op_info(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	struct hca_ctl_extra *extra)
{
	struct hca_ctl_info *info = answer;
	int err = op_driver(s, op, request, answer, extra);

	info->slow_memory = s->server->config.slow_memory;
	return err;
}

static int
op_kick(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	struct hca_ctl_extra *extra)
{
	return ipc_kick_of(s, *(const uint32_t *)request, answer, &extra->fds[0]);
}

/* The session ends after the reply: all objects of the client are gone when it arrives. */
static int
op_close(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	 struct hca_ctl_extra *extra)
{
	ipc_session_release(s);
	return 0;
}

/* ---- memory of objects ---- */

/* The object was created, or not: bind its hold to it, or drop it. */
static int
bind_hold(struct ipc_session *s, struct ipc_hold *hold, int err, enum ipc_holder holder,
	  uint32_t number)
{
	if (err == 0)
		ipc_hold_bind(s->memory, hold, holder, number);
	else
		ipc_hold_drop(s->memory, hold);
	return err;
}

/* The object was destroyed, or not. */
static int
drop_hold(struct ipc_session *s, int err, enum ipc_holder holder, uint32_t number)
{
	if (err == 0)
		ipc_hold_drop(s->memory, ipc_hold_take(s->memory, holder, number));
	return err;
}

/* After the device has released memory: make sure that no abandoned access writes to it. */
static int
settle(struct ipc_session *s)
{
	const uint64_t one = 1;
	int err = s->foreign != NULL ? ipc_foreign_settle(s->foreign) : 0;

	if (err != 0 && write(s->lost_fd, &one, sizeof(one)) < 0)
		return err; /* the reason is recorded */
	return err;
}

/* An operation after which the device no longer uses some memory of the client */
static int
op_release(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	   struct hca_ctl_extra *extra)
{
	static const enum ipc_holder holders[] = {
		[HCA_CTL_DEREG_MR] = IPC_HOLDER_MR,
		[HCA_CTL_DESTROY_CQ] = IPC_HOLDER_CQ,
		[HCA_CTL_DESTROY_QP] = IPC_HOLDER_QP,
		[HCA_CTL_DESTROY_SRQ] = IPC_HOLDER_SRQ,
	};
	int err = op_driver(s, op, request, answer, extra);

	if (op != HCA_CTL_DEALLOC_MW && op != HCA_CTL_MODIFY_QP)
		drop_hold(s, err, holders[op], *(const uint32_t *)request);
	return err != 0 ? err : settle(s);
}

/* ---- regions ---- */

static void
forget_pages(struct ipc_session *s)
{
	free(s->pages);
	s->pages = NULL;
	s->num_pages = 0;
}

static int
op_pages(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	 struct hca_ctl_extra *extra)
{
	const struct hca_ctl_pages *r = request;
	uint64_t total = s->num_pages + r->count;
	uint64_t *grown;

	if (total > STAGED_PAGES_MAX) {
		forget_pages(s);
		return ipc_fail(-ENOMEM, "a list of %llu pages: at most %llu; use larger pages",
				(unsigned long long)total, (unsigned long long)STAGED_PAGES_MAX);
	}
	grown = realloc(s->pages, total * sizeof(*grown) + 1);
	if (grown == NULL) {
		forget_pages(s); /* an incomplete list would become the beginning of the next one */
		return ipc_no_memory("a list of pages", total * sizeof(*grown));
	}
	memcpy(grown + s->num_pages, r->page, r->count * sizeof(*grown));
	s->pages = grown;
	s->num_pages = total;
	return 0;
}

/* Pages of memory that is not attached. */
static int
foreign_pages(struct ipc_session *s, struct hca_ctl_mr *mr, struct ipc_hold *hold, bool writes,
	      uint64_t **list)
{
	bool listed = mr->npages != 0;

	if (s->foreign == NULL)
		return ipc_fail(-EINVAL, "the client has not given its memory");
	*ipc_hold_foreign(hold) = (struct ipc_foreign_region){true, writes, listed ? 0 : mr->va,
							      listed ? 0 : mr->length};
	return ipc_foreign_pages(s->foreign, mr, writes, s->pages, list);
}

/* The bus pages of a region: *list must be freed unless it is the staged one. */
static int
region_pages(struct ipc_session *s, struct hca_ctl_mr *mr, struct ipc_hold *hold, bool writes,
	     uint64_t **list)
{
	bool foreign = (mr->access & HCA_CTL_ACCESS_FOREIGN) != 0;
	int err;

	*list = NULL;
	mr->access &= ~HCA_CTL_ACCESS_FOREIGN;
	ipc_hold_foreign(hold)->writes = writes;
	if (mr->npages != s->num_pages)
		return ipc_fail(-EINVAL, "%llu pages were sent, the region has %llu",
				(unsigned long long)s->num_pages, (unsigned long long)mr->npages);
	if (foreign)
		return foreign_pages(s, mr, hold, writes, list);
	err = ipc_translate_mr(s->memory, hold, mr, s->pages, list);
	return err == 0 && writes ? ipc_hold_writable(hold) : err;
}

/* Whether the memory must be writable: other rights to write need LOCAL_WRITE. */
static bool
writes_to(uint32_t access)
{
	return (access & (HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_MW_BIND)) != 0;
}

/* The daemon's own limits, then the driver's. */
static int
op_check_mr(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	    struct hca_ctl_extra *extra)
{
	const struct hca_ctl_need *need = request;
	int err = ipc_memory_fits(s->memory, need->bytes, need->segments);

	if (err == 0)
		err = ipc_session_fits(s, need->bytes);
	return err != 0 ? err : op_driver(s, op, request, answer, extra);
}

/* A region is registered or moved: the log has a client's first slow one. */
static void
tell_slow(struct ipc_session *s, uint32_t access)
{
	const struct ipc_server_config *c = &s->server->config;

	if ((access & HCA_CTL_ACCESS_FOREIGN) == 0 || s->slow)
		return;
	s->slow = true;
	if (c->slow != NULL)
		c->slow(s->pid, s->uid);
}

static int
op_reg_mr(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	  struct hca_ctl_extra *extra)
{
	struct hca_ctl_keys *keys = answer;
	struct hca_ctl_mr mr = *(const struct hca_ctl_mr *)request;
	struct ipc_hold *hold = ipc_hold_new();
	uint64_t *list = NULL;
	int err;

	err = hold != NULL ? region_pages(s, &mr, hold, writes_to(mr.access), &list) : -ENOMEM;
	extra->pages = list;
	if (err == 0)
		err = op_driver(s, op, &mr, keys, extra);
	bind_hold(s, hold, err, IPC_HOLDER_MR, keys->lkey);
	if (list != s->pages)
		free(list);
	forget_pages(s);
	if (err == 0)
		tell_slow(s, ((const struct hca_ctl_mr *)request)->access);
	return err;
}

/* For rights to write that a region did not have before: judge its memory again. */
static int
judge_rights(struct ipc_session *s, struct ipc_hold *hold)
{
	const struct ipc_foreign_region *old = ipc_hold_foreign(hold);

	if (!old->set)
		return ipc_hold_writable(hold);
	if (old->writes || s->foreign == NULL)
		return 0;
	if (old->length == 0)
		return ipc_fail(-EOPNOTSUPP, "rights to write for slow memory that was registered "
					     "as a list of pages");
	return ipc_foreign_judge(s->foreign, old->va, old->length, true);
}

/* The new pages are held before the old ones are released. */
static int
op_rereg_mr(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	    struct hca_ctl_extra *extra)
{
	struct hca_ctl_keys *keys = answer;
	struct hca_ctl_rereg r = *(const struct hca_ctl_rereg *)request;
	bool moves = (r.flags & HCA_CTL_REREG_TRANSLATION) != 0;
	bool rights = (r.flags & HCA_CTL_REREG_ACCESS) != 0, writes = writes_to(r.mr.access);
	struct ipc_hold *hold = NULL, *old = ipc_hold_find(s->memory, IPC_HOLDER_MR, r.lkey);
	uint64_t *list = NULL;
	int err = 0;

	if (!moves)
		r.mr.npages = 0;
	if (!rights && old != NULL)
		writes = ipc_hold_foreign(old)->writes;
	if (moves) {
		hold = ipc_hold_new();
		if (hold == NULL) {
			forget_pages(s);
			return -ENOMEM;
		}
		err = region_pages(s, &r.mr, hold, writes, &list);
	} else if (rights && old != NULL && writes) {
		err = judge_rights(s, old);
	}
	r.mr.access &= ~HCA_CTL_ACCESS_FOREIGN;
	extra->pages = list;
	if (err == 0)
		err = op_driver(s, op, &r, keys, extra);
	if (list != s->pages)
		free(list);
	forget_pages(s);
	if (err != 0) {
		ipc_hold_drop(s->memory, hold);
		return err;
	}
	old = ipc_hold_take(s->memory, IPC_HOLDER_MR, r.lkey);
	if (moves)
		ipc_hold_drop(s->memory, old);
	else
		hold = old;
	if (hold != NULL)
		ipc_hold_bind(s->memory, hold, IPC_HOLDER_MR, keys->lkey);
	if (hold != NULL)
		ipc_hold_foreign(hold)->writes = writes;
	if (moves)
		tell_slow(s, ((const struct hca_ctl_rereg *)request)->mr.access);
	return settle(s);
}

/*
 * Attach all of the client's memory. The device's window covers all addresses of the client; each
 * registration decides what is accessible.
 */
static int
op_memory(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	  struct hca_ctl_extra *extra)
{
	struct ipc_foreign *f;
	int err;

	if (!s->server->config.slow_memory)
		return ipc_fail(
			-EOPNOTSUPP,
			"memory that cannot be shared is reached where slow_memory = yes is "
			"in section [memory] of the daemon's configuration; or take memory "
			"of softhca_alloc()");
	if (s->foreign != NULL)
		return ipc_fail(-EEXIST, "the client has given its memory");
	err = ipc_foreign_create(extra->fds[0], extra->fds[1], s->pid, s->uid, s->server->stop_fd,
				 &f);
	if (err != 0)
		return err;
	err = driver_says(hca_client_attach(s->client, HCA_BUS_FOREIGN, HCA_BUS_FOREIGN_BYTES));
	if (err != 0) {
		ipc_foreign_destroy(f);
		return err;
	}
	s->foreign = f;
	__atomic_store_n(&s->server->foreign[s->uar_page], f, __ATOMIC_RELEASE);
	return 0;
}

static int
op_attach(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	  struct hca_ctl_extra *extra)
{
	int err = ipc_memory_attach(s->memory, request, extra->fds[0], answer);

	__atomic_store_n(&s->attached, ipc_memory_attached(s->memory), __ATOMIC_RELAXED);
	return err;
}

static int
op_detach(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	  struct hca_ctl_extra *extra)
{
	int err = ipc_memory_detach(s->memory, *(const uint32_t *)request);

	__atomic_store_n(&s->attached, ipc_memory_attached(s->memory), __ATOMIC_RELAXED);
	return err;
}

/* ---- queues ---- */

/* Memory of a queue: one piece of one segment */
static int
queue_memory(struct ipc_session *s, struct ipc_hold *hold, uint64_t *addr, uint32_t log,
	     uint32_t element, uint32_t record)
{
	if (log > QUEUE_LOG_MAX)
		return ipc_fail(-EINVAL, "a queue of 2^%u entries: at most 2^%u", log,
				QUEUE_LOG_MAX);
	return ipc_translate(s->memory, hold, *addr, ((uint64_t)element << log) + record, addr);
}

static int
cq_memory(struct ipc_session *s, struct ipc_hold *hold, uint64_t *addr, uint32_t log_size,
	  uint32_t flags)
{
	return queue_memory(s, hold, addr, log_size, HCA_CTL_CQE_SIZE(flags),
			    sizeof(struct hca_cq_record));
}

/* Translate the queues that the service has; the addresses of others are ignored. */
static int
qp_memory(struct ipc_session *s, struct ipc_hold *hold, struct hca_ctl_qp *r)
{
	uint32_t has = hca_service_info(r->service)->queues;
	bool rq = (has & HCA_HAS_RQ) != 0 && r->srqn == 0;
	int err = 0;

	if (r->log_sq_stride > QUEUE_LOG_MAX || r->log_rq_stride > QUEUE_LOG_MAX)
		return ipc_fail(-EINVAL, "WQEs of 2^%u and 2^%u bytes: at most 2^%u",
				r->log_sq_stride, r->log_rq_stride, QUEUE_LOG_MAX);
	if ((has & HCA_HAS_SQ) != 0)
		err = queue_memory(s, hold, &r->sq_addr, r->log_sq, 1u << r->log_sq_stride, 0);
	else
		r->sq_addr = 0;
	if (err == 0 && rq)
		err = queue_memory(s, hold, &r->rq_addr, r->log_rq, 1u << r->log_rq_stride,
				   sizeof(struct hca_rq_record));
	else if (err == 0)
		r->rq_addr = 0;
	return err;
}

static int
srq_memory(struct ipc_session *s, struct ipc_hold *hold, struct hca_ctl_srq *r)
{
	if (r->log_stride > QUEUE_LOG_MAX)
		return ipc_fail(-EINVAL, "WQEs of 2^%u bytes: at most 2^%u", r->log_stride,
				QUEUE_LOG_MAX);
	return queue_memory(s, hold, &r->addr, r->log_size, 1u << r->log_stride,
			    sizeof(struct hca_rq_record));
}

/* Create an object in memory of the client, or give a CQ new memory. */
static int
op_create(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	  struct hca_ctl_extra *extra)
{
	union {
		struct hca_ctl_cq cq;
		struct hca_ctl_resize resize;
		struct hca_ctl_qp qp;
		struct hca_ctl_srq srq;
		struct hca_ctl_jetty jetty; /* begins with qp */
		struct hca_ctl_jfr jfr;	    /* begins with srq */
	} r;
	struct ipc_hold *hold = ipc_hold_new();
	enum ipc_holder holder = IPC_HOLDER_CQ;
	int err;

	if (hold == NULL)
		return -ENOMEM;
	memcpy(&r, request, hca_ctl_shape(op)->request);
	if (op == HCA_CTL_CREATE_CQ) {
		err = cq_memory(s, hold, &r.cq.addr, r.cq.log_size, r.cq.flags);
	} else if (op == HCA_CTL_RESIZE_CQ) {
		err = cq_memory(s, hold, &r.resize.addr, r.resize.log_size, r.resize.flags);
	} else if (op == HCA_CTL_CREATE_QP || op == HCA_CTL_CREATE_JETTY) {
		holder = IPC_HOLDER_QP;
		err = qp_memory(s, hold, &r.qp);
	} else {
		holder = IPC_HOLDER_SRQ;
		err = srq_memory(s, hold, &r.srq);
	}
	if (err == 0)
		err = op_driver(s, op, &r, answer, extra);
	if (op != HCA_CTL_RESIZE_CQ)
		return bind_hold(s, hold, err, holder, *(const uint32_t *)answer);
	drop_hold(s, err, holder, r.resize.cqn);
	return bind_hold(s, hold, err, holder, r.resize.cqn);
}

/*
 * Ports of connection management. A program that is restarted finds the port of its last process
 * free: that process has ended, but the daemon may not have released it yet.
 */
static int
op_port(struct ipc_session *s, enum hca_ctl_op op, const void *request, void *answer,
	struct hca_ctl_extra *extra)
{
	int err = op_driver(s, op, request, answer, extra);

	if (err == -EADDRINUSE && ipc_wait_for_ended(s))
		err = op_driver(s, op, request, answer, extra);
	return err;
}

/* ---- dispatch ---- */

/* Operations that are not the driver's alone */
static const op_fn ops[HCA_CTL_OP_COUNT] = {
	[HCA_CTL_HELLO] = op_hello,	   [HCA_CTL_CLOSE] = op_close,
	[HCA_CTL_ATTACH] = op_attach,	   [HCA_CTL_DETACH] = op_detach,
	[HCA_CTL_MEMORY] = op_memory,	   [HCA_CTL_PAGES] = op_pages,
	[HCA_CTL_INFO] = op_info,	   [HCA_CTL_REG_MR] = op_reg_mr,
	[HCA_CTL_CHECK_MR] = op_check_mr,  [HCA_CTL_REREG_MR] = op_rereg_mr,
	[HCA_CTL_DEREG_MR] = op_release,   [HCA_CTL_DEALLOC_MW] = op_release,
	[HCA_CTL_CREATE_CQ] = op_create,   [HCA_CTL_RESIZE_CQ] = op_create,
	[HCA_CTL_DESTROY_CQ] = op_release, [HCA_CTL_CREATE_QP] = op_create,
	[HCA_CTL_MODIFY_QP] = op_release,  [HCA_CTL_DESTROY_QP] = op_release,
	[HCA_CTL_CREATE_SRQ] = op_create,  [HCA_CTL_CREATE_JETTY] = op_create,
	[HCA_CTL_CREATE_JFR] = op_create,  [HCA_CTL_DESTROY_SRQ] = op_release,
	[HCA_CTL_CM_BIND] = op_port,	   [HCA_CTL_CM_LISTEN] = op_port,
	[HCA_CTL_KICK] = op_kick,
};

int
ipc_execute(struct ipc_session *session, enum hca_ctl_op op, const void *request, const int *fds,
	    struct ipc_answer *answer)
{
	const struct hca_ctl_shape *shape = hca_ctl_shape(op);
	op_fn run = ops[op] != NULL ? ops[op] : op_driver;
	int err;

	memset(answer->body.bytes, 0, shape->answer);
	answer->extra = (struct hca_ctl_extra){.fds = {-1, -1, -1, -1}};
	memcpy(answer->extra.fds, fds, shape->fds_in * sizeof(int));
	err = run(session, op, request, answer->body.bytes, &answer->extra);
	answer->len = hca_ctl_sizes(op, session->minor).answer;
	answer->num_fds = err == 0 ? shape->fds_out : 0;
	return err;
}
