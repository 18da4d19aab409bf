/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Executes requests: translates the client's addresses to bus addresses; the driver does the rest
 * and checks that numbers belong to the client.
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

typedef int (*op_fn)(struct ipc_session *s, const void *body, const int *fds,
		     struct ipc_answer *answer);

/* Returns the driver's result with its reason */
static int
driver_says(int err)
{
	return err == 0 ? 0 : ipc_fail(err, "%s", hca_driver_reason());
}

/* The number that is the whole request */
static uint32_t
number_in(const void *body)
{
	return ((const struct ipc_number *)body)->number;
}

/* Address of the number that is the whole answer */
static uint32_t *
number_out(struct ipc_answer *answer)
{
	return &((struct ipc_number *)answer->body.bytes)->number;
}

/* ---- a client comes and goes ---- */

/* Make the doorbell page a file of its own that can be sent. */
static int
map_uar(struct ipc_session *s, int *out)
{
	void *page = (void *)(uintptr_t)hca_client_uar(s->client);
	int fd = memfd_create("softhca-uar", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return ipc_fail(-errno, "memfd_create: %s", strerror(errno));
	if (ftruncate(fd, HCA_UAR_PAGE_SIZE) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
	    mmap(page, HCA_UAR_PAGE_SIZE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED) {
		int err =
			ipc_fail(-errno, "the doorbell page cannot be shared: %s", strerror(errno));

		close(fd);
		return err;
	}
	ipc_watch((uintptr_t)page, HCA_UAR_PAGE_SIZE); /* pages that the client has punched out */
	*out = fd;
	return 0;
}

/* Before the page's number is released: the client's further doorbells have no effect. */
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
open_client(struct ipc_session *s, struct ipc_answer *answer)
{
	const struct ipc_server_config *c = &s->server->config;
	struct ipc_memory_config mc = {
		.bytes_max = c->memory_max,
		.segments_max = c->segments_max,
		.lost_fd = s->lost_fd,
		.maps = &s->server->maps,
		.more = ipc_session_more,
		.more_arg = s,
	};
	struct hca_client_who who = {.user = s->uid, .privileged = is_privileged(c, s->uid)};
	int err = driver_says(hca_client_open(c->driver, &who, &s->client));

	if (err != 0) {
		s->client = NULL;
		return err;
	}
	err = map_uar(s, &answer->fds[0]);
	if (err != 0)
		return err;
	answer->num_fds = 1;
	err = driver_says(hca_client_async_fd(s->client, &answer->fds[1]));
	if (err != 0)
		return err;
	answer->num_fds = 2;
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
op_hello(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	const struct ipc_hello *hello = body;
	struct ipc_welcome *w = (struct ipc_welcome *)answer->body.bytes;
	int err;

	if (hello->magic != IPC_MAGIC)
		return ipc_fail(-EPROTO, "this is not a client of softhca");
	err = random_nonce(&w->nonce);
	if (err == 0)
		err = open_client(s, answer);
	if (err == 0)
		err = driver_says(hca_client_info(s->client, &w->info));
	if (err == 0) {
		__atomic_store_n(&s->uar_page, w->info.uar_page, __ATOMIC_RELAXED);
		err = ipc_kick_open(s, answer);
	}
	if (err != 0) {
		ipc_close_fds(answer->fds, answer->num_fds);
		answer->num_fds = 0;
		ipc_session_release(s);
		return err;
	}
	w->sleep_offset = s->server->config.sleep != NULL ? s->server->config.sleep->offset : 0;
	memcpy(w->name, s->server->name, sizeof(w->name));
	s->seq = w->nonce; /* incremented after the reply */
	s->greeted = true;
	return 0;
}

/* The session ends after the reply: nothing of the client is left when it arrives. */
static int
op_close(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	ipc_session_release(s);
	return 0;
}

/* ---- addresses ---- */

static int
op_query_port(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	return driver_says(hca_client_query_port(s->client, number_in(body),
						 (struct hca_ctl_port *)answer->body.bytes));
}

static int
op_query_gid(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	return driver_says(hca_client_query_gid(s->client, number_in(body), answer->body.bytes));
}

static int
op_query_gid_entry(struct ipc_session *s, const void *body, const int *fds,
		   struct ipc_answer *answer)
{
	return driver_says(hca_client_query_gid_entry(s->client, number_in(body),
						      (struct hca_ctl_gid *)answer->body.bytes));
}

static int
op_query_pkey(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	uint16_t pkey = 0;
	int err = driver_says(hca_client_query_pkey(s->client, number_in(body), &pkey));

	*number_out(answer) = pkey;
	return err;
}

static int
op_resolve(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	struct hca_ctl_ah *ah = (struct hca_ctl_ah *)answer->body.bytes;

	memcpy(ah, body, sizeof(*ah));
	return driver_says(hca_client_resolve(s->client, ah));
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

/* ---- protection domains, regions, windows ---- */

static int
op_alloc_pd(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	return driver_says(hca_client_alloc_pd(s->client, number_out(answer)));
}

static int
op_dealloc_pd(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	return driver_says(hca_client_dealloc_pd(s->client, number_in(body)));
}

static void
forget_pages(struct ipc_session *s)
{
	free(s->pages);
	s->pages = NULL;
	s->num_pages = 0;
}

static int
op_pages(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	const struct ipc_pages *r = body;
	uint64_t total = s->num_pages + r->count;
	uint64_t *grown;

	if (total > STAGED_PAGES_MAX) {
		forget_pages(s);
		return ipc_fail(-ENOMEM, "a list of %llu pages", (unsigned long long)total);
	}
	grown = realloc(s->pages, total * sizeof(*grown) + 1);
	if (grown == NULL) {
		forget_pages(s); /* an incomplete list would become the beginning of the next one */
		return ipc_fail(-ENOMEM, "no memory for %llu pages", (unsigned long long)total);
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

	*list = NULL;
	mr->access &= ~HCA_CTL_ACCESS_FOREIGN;
	ipc_hold_foreign(hold)->writes = writes;
	if (mr->npages != s->num_pages)
		return ipc_fail(-EINVAL, "%llu pages were sent, the region has %llu",
				(unsigned long long)s->num_pages, (unsigned long long)mr->npages);
	if (foreign)
		return foreign_pages(s, mr, hold, writes, list);
	return ipc_translate_mr(s->memory, hold, mr, s->pages, list);
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

static bool
writes_to(uint32_t access)
{
	return (access & HCA_ACCESS_LOCAL_WRITE) != 0;
}

static int
op_reg_mr(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	struct hca_ctl_keys *keys = (struct hca_ctl_keys *)answer->body.bytes;
	struct hca_ctl_mr mr = *(const struct hca_ctl_mr *)body;
	struct ipc_hold *hold = ipc_hold_new();
	uint64_t *list = NULL;
	int err;

	err = hold != NULL ? region_pages(s, &mr, hold, writes_to(mr.access), &list) : -ENOMEM;
	if (err == 0)
		err = driver_says(hca_client_reg_mr(s->client, &mr, list, keys));
	bind_hold(s, hold, err, IPC_HOLDER_MR, keys->lkey);
	if (list != s->pages)
		free(list);
	forget_pages(s);
	return err;
}

static int
op_dereg_mr(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	uint32_t lkey = number_in(body);
	int err = drop_hold(s, driver_says(hca_client_dereg_mr(s->client, lkey)), IPC_HOLDER_MR,
			    lkey);

	return err != 0 ? err : settle(s);
}

/* For rights that a region of foreign memory did not have before: check its mapping. */
static int
judge_rights(struct ipc_session *s, const struct ipc_foreign_region *old)
{
	if (!old->set || old->writes || old->length == 0 || s->foreign == NULL)
		return 0;
	return ipc_foreign_judge(s->foreign, old->va, old->length, true);
}

/* The new pages are held before the old ones are released. */
static int
op_rereg_mr(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	struct hca_ctl_keys *keys = (struct hca_ctl_keys *)answer->body.bytes;
	struct ipc_rereg r = *(const struct ipc_rereg *)body;
	bool moves = (r.flags & HCA_CTL_REREG_TRANSLATION) != 0;
	bool rights = (r.flags & HCA_CTL_REREG_ACCESS) != 0, writes = writes_to(r.mr.access);
	struct ipc_hold *hold = NULL, *old = ipc_hold_find(s->memory, IPC_HOLDER_MR, r.lkey);
	uint64_t *list = NULL;
	int err = 0;

	r.mr.npages = 0;
	if (!rights && old != NULL)
		writes = ipc_hold_foreign(old)->writes;
	if (moves) {
		hold = ipc_hold_new();
		if (hold == NULL)
			return -ENOMEM;
		forget_pages(s);
		err = region_pages(s, &r.mr, hold, writes, &list);
	} else if (rights && old != NULL && writes) {
		err = judge_rights(s, ipc_hold_foreign(old));
	}
	r.mr.access &= ~HCA_CTL_ACCESS_FOREIGN;
	if (err == 0)
		err = driver_says(
			hca_client_rereg_mr(s->client, r.lkey, r.flags, &r.mr, list, keys));
	free(list);
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
	return settle(s);
}

static int
op_alloc_mw(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	const struct ipc_pair *r = body;

	return driver_says(hca_client_alloc_mw(s->client, r->number, r->value, number_out(answer)));
}

static int
op_dealloc_mw(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	int err = driver_says(hca_client_dealloc_mw(s->client, number_in(body)));

	return err != 0 ? err : settle(s);
}

/*
 * All of the client's memory. The device's window covers all addresses of the client; each
 * registration decides what is accessible.
 */
static int
op_memory(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
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
	err = ipc_foreign_create(fds[0], fds[1], s->pid, &f);
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
op_attach(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	const struct hca_ctl_segment *r = body;
	int err = ipc_memory_attach(s->memory, r, fds[0], number_out(answer));

	__atomic_store_n(&s->attached, ipc_memory_attached(s->memory), __ATOMIC_RELAXED);
	return err;
}

static int
op_detach(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	int err = ipc_memory_detach(s->memory, number_in(body));

	__atomic_store_n(&s->attached, ipc_memory_attached(s->memory), __ATOMIC_RELAXED);
	return err;
}

/* ---- channels and CQs ---- */

static int
op_create_channel(struct ipc_session *s, const void *body, const int *fds,
		  struct ipc_answer *answer)
{
	int err = driver_says(
		hca_client_create_channel(s->client, number_out(answer), &answer->fds[0]));

	if (err == 0)
		answer->num_fds = 1;
	return err;
}

static int
op_destroy_channel(struct ipc_session *s, const void *body, const int *fds,
		   struct ipc_answer *answer)
{
	return driver_says(hca_client_destroy_channel(s->client, number_in(body)));
}

/* Memory of a queue: one piece of one segment */
static int
queue_memory(struct ipc_session *s, struct ipc_hold *hold, uint64_t *addr, uint32_t log,
	     uint32_t element, uint32_t record)
{
	if (log > QUEUE_LOG_MAX)
		return ipc_fail(-EINVAL, "a queue of 2^%u", log);
	return ipc_translate(s->memory, hold, *addr, ((uint64_t)element << log) + record, addr);
}

static int
op_create_cq(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	uint32_t *cqn = number_out(answer);
	struct hca_ctl_cq r = *(const struct hca_ctl_cq *)body;
	struct ipc_hold *hold = ipc_hold_new();
	int err;

	if (hold == NULL)
		return -ENOMEM;
	err = queue_memory(s, hold, &r.addr, r.log_size, HCA_CQE_SIZE,
			   sizeof(struct hca_cq_record));
	if (err == 0)
		err = driver_says(hca_client_create_cq(s->client, &r, cqn));
	return bind_hold(s, hold, err, IPC_HOLDER_CQ, *cqn);
}

static int
op_destroy_cq(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	uint32_t cqn = number_in(body);

	return drop_hold(s, driver_says(hca_client_destroy_cq(s->client, cqn)), IPC_HOLDER_CQ, cqn);
}

static int
op_resize_cq(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	uint32_t *index = number_out(answer);
	struct ipc_resize r = *(const struct ipc_resize *)body;
	struct ipc_hold *hold = ipc_hold_new();
	int err;

	if (hold == NULL)
		return -ENOMEM;
	err = queue_memory(s, hold, &r.addr, r.log_size, HCA_CQE_SIZE,
			   sizeof(struct hca_cq_record));
	if (err == 0)
		err = driver_says(
			hca_client_resize_cq(s->client, r.cqn, r.addr, r.log_size, index));
	drop_hold(s, err, IPC_HOLDER_CQ, r.cqn);
	return bind_hold(s, hold, err, IPC_HOLDER_CQ, r.cqn);
}

static int
op_moderate_cq(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	const struct ipc_moderate *r = body;

	return driver_says(hca_client_moderate_cq(s->client, r->cqn, r->count, r->period_us));
}

/* ---- QPs ---- */

/* Translate the queues that the service has; the addresses of others are ignored. */
static int
qp_memory(struct ipc_session *s, struct ipc_hold *hold, struct hca_ctl_qp *r)
{
	uint32_t has = hca_service_info(r->service)->queues;
	bool rq = (has & HCA_HAS_RQ) != 0 && r->srqn == 0;
	int err = 0;

	if (r->log_sq_stride > QUEUE_LOG_MAX || r->log_rq_stride > QUEUE_LOG_MAX)
		return ipc_fail(-EINVAL, "WQEs of 2^%u and 2^%u bytes", r->log_sq_stride,
				r->log_rq_stride);
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
op_create_qp(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	uint32_t *qpn = number_out(answer);
	struct hca_ctl_qp r = *(const struct hca_ctl_qp *)body;
	struct ipc_hold *hold = ipc_hold_new();
	int err;

	if (hold == NULL)
		return -ENOMEM;
	err = qp_memory(s, hold, &r);
	if (err == 0)
		err = driver_says(hca_client_create_qp(s->client, &r, qpn));
	return bind_hold(s, hold, err, IPC_HOLDER_QP, *qpn);
}

static int
op_modify_qp(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	const struct ipc_modify *r = body;
	int err = driver_says(hca_client_modify_qp(s->client, r->qpn, r->opcode,
						   r->has_mailbox != 0 ? &r->mailbox : NULL));

	return err != 0 ? err : settle(s);
}

static int
op_query_qp(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	return driver_says(hca_client_query_qp(s->client, number_in(body), answer->body.bytes));
}

static int
op_destroy_qp(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	uint32_t qpn = number_in(body);
	int err = drop_hold(s, driver_says(hca_client_destroy_qp(s->client, qpn)), IPC_HOLDER_QP,
			    qpn);

	return err != 0 ? err : settle(s);
}

static int
op_query_counters(struct ipc_session *s, const void *body, const int *fds,
		  struct ipc_answer *answer)
{
	struct ipc_counters *out = (struct ipc_counters *)answer->body.bytes;
	const struct ipc_count *r = body;
	uint32_t max = r->max < IPC_COUNTERS_MAX ? r->max : (uint32_t)IPC_COUNTERS_MAX;
	int err = driver_says(hca_client_query_counters(s->client, r->of, r->number, out->counter,
							max, &out->total));

	if (err != 0)
		return err;
	out->count = out->total < max ? out->total : max;
	answer->len = (uint32_t)(offsetof(struct ipc_counters, counter) +
				 out->count * sizeof(out->counter[0]));
	return 0;
}

static int
op_mcast(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	const struct ipc_mcast *r = body;

	return driver_says(hca_client_mcast(s->client, r->qpn, r->mgid, r->attach != 0));
}

/* ---- SRQs and XRC domains ---- */

static int
op_alloc_xrcd(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	return driver_says(hca_client_alloc_xrcd(s->client, number_out(answer)));
}

static int
op_dealloc_xrcd(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	return driver_says(hca_client_dealloc_xrcd(s->client, number_in(body)));
}

static int
op_create_srq(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	uint32_t *srqn = number_out(answer);
	struct hca_ctl_srq r = *(const struct hca_ctl_srq *)body;
	struct ipc_hold *hold = ipc_hold_new();
	int err;

	if (hold == NULL)
		return -ENOMEM;
	if (r.log_stride > QUEUE_LOG_MAX)
		err = ipc_fail(-EINVAL, "WQEs of 2^%u bytes", r.log_stride);
	else
		err = queue_memory(s, hold, &r.addr, r.log_size, 1u << r.log_stride,
				   sizeof(struct hca_rq_record));
	if (err == 0)
		err = driver_says(hca_client_create_srq(s->client, &r, srqn));
	return bind_hold(s, hold, err, IPC_HOLDER_SRQ, *srqn);
}

static int
op_arm_srq(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	const struct ipc_pair *r = body;

	return driver_says(hca_client_arm_srq(s->client, r->number, r->value));
}

static int
op_query_srq(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	return driver_says(hca_client_query_srq(s->client, number_in(body),
						(struct hca_ctl_srq_state *)answer->body.bytes));
}

static int
op_destroy_srq(struct ipc_session *s, const void *body, const int *fds, struct ipc_answer *answer)
{
	uint32_t srqn = number_in(body);

	return drop_hold(s, driver_says(hca_client_destroy_srq(s->client, srqn)), IPC_HOLDER_SRQ,
			 srqn);
}

/* ---- dispatch ---- */

static const struct op {
	op_fn run;
	uint32_t request, reply; /* bytes */
	uint32_t fds;
} ops[IPC_OP_COUNT] = {
#define X(NAME, name, request, reply, fds_in, fds_out) \
	[IPC_##NAME] = {op_##name, sizeof(request), sizeof(reply), fds_in},
	IPC_OPS(X)
#undef X
};

static bool
pages_formed(const struct ipc_pages *r, uint32_t len)
{
	return len >= offsetof(struct ipc_pages, page) && r->count <= IPC_PAGES_MAX &&
	       len == offsetof(struct ipc_pages, page) + r->count * sizeof(r->page[0]);
}

bool
ipc_well_formed(uint32_t op, const void *body, uint32_t len, unsigned int num_fds)
{
	if (op >= IPC_OP_COUNT || num_fds != ops[op].fds)
		return false;
	return op == IPC_PAGES ? pages_formed(body, len) : len == ops[op].request;
}

int
ipc_execute(struct ipc_session *session, enum ipc_op op, const void *body, const int *fds,
	    struct ipc_answer *answer)
{
	memset(answer->body.bytes, 0, ops[op].reply);
	answer->len = ops[op].reply;
	return ops[op].run(session, body, fds, answer);
}
