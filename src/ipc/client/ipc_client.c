/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The operations of a context as messages to the daemon, one request at a time per context. A
 * forked process must not use its parent's channel: calls are refused and nothing is sent.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi_bar.h"
#include "ipc_client.h"
#include "ipc_connect.h"
#include "ipc_msg.h"
#include "lib_ctl.h"
#include "lib_error.h"
#include "lib_sys.h"

#define SLEEP_PAGE 4096u

struct ipc_channel {
	int sock;
	pid_t pid; /* of the process that opened it */
	pthread_mutex_t lock;
	pthread_mutex_t lists; /* keeps a list of pages and the following request together */
	uint64_t seq;
	bool broken; /* the daemon is gone, or sends invalid replies */
	struct hca_ctl_info info;
	void *uar;
	int async_fd; /* until it is taken */
	const uint8_t *sleep_page;
	uint32_t sleep_offset;
	int kick_fd;
	char name[32];
};

/* A request and its reply; the caller owns the bodies. */
struct call {
	enum ipc_op op;
	const void *request;
	size_t request_bytes;
	void *reply;
	size_t reply_bytes; /* exact length, unless `shorter` is set */
	bool shorter;
	int fd_in;  /* descriptor to send; -1: none */
	int fd_in2; /* a second one, for MEMORY */
	int *fds_out;
	unsigned int num_fds_out;
};

static _Thread_local char reason[sizeof(((struct ipc_reply *)NULL)->reason)] = "no error";

static int
fail(int err, const char *why)
{
	snprintf(reason, sizeof(reason), "%s", why);
	return err;
}

static int
gone(struct ipc_channel *c)
{
	__atomic_store_n(&c->broken, true, __ATOMIC_RELEASE);
	return fail(-EIO, "the daemon is gone");
}

/* ---- one call ---- */

static int
send_request(struct ipc_channel *c, const struct call *call)
{
	struct ipc_request head = {
		.version = IPC_VERSION,
		.op = (uint16_t)call->op,
		.len = (uint32_t)call->request_bytes,
		.seq = c->seq,
	};

	const int fds[] = {call->fd_in, call->fd_in2};
	unsigned int num_fds = call->fd_in < 0 ? 0 : call->op == IPC_MEMORY ? 2 : 1;

	return ipc_send(c->sock, &head, sizeof(head), call->request, call->request_bytes, fds,
			num_fds, 0);
}

static bool
reply_fits(const struct ipc_channel *c, const struct call *call, const struct ipc_reply *head,
	   size_t got, unsigned int num_fds)
{
	if (got < sizeof(*head) || head->version != IPC_VERSION || head->op != call->op ||
	    head->seq != c->seq || head->len != got - sizeof(*head) || head->err > 0)
		return false;
	if (head->err != 0)
		return head->len == 0 && num_fds == 0;
	if (num_fds != call->num_fds_out)
		return false;
	return call->shorter ? head->len <= call->reply_bytes : head->len == call->reply_bytes;
}

static int
receive_reply(struct ipc_channel *c, const struct call *call)
{
	struct {
		struct ipc_reply head;
		uint8_t body[IPC_BODY_MAX];
	} m;
	int fds[IPC_FDS_MAX];
	unsigned int num_fds = IPC_FDS_MAX;
	ssize_t got = ipc_receive(c->sock, &m, sizeof(m), fds, &num_fds);

	if (got <= 0) {
		ipc_close_fds(fds, num_fds);
		if (got != -EMFILE)
			return gone(c);
		/* whatever the daemon has created is destroyed with the context */
		c->seq++;
		return fail(-EMFILE, "this process may have no more open files");
	}
	if (!reply_fits(c, call, &m.head, (size_t)got, num_fds)) {
		ipc_close_fds(fds, num_fds);
		return gone(c);
	}
	c->seq++;
	if (m.head.err != 0) {
		m.head.reason[sizeof(m.head.reason) - 1] = '\0';
		return fail(m.head.err, m.head.reason);
	}
	memcpy(call->reply, m.body, m.head.len);
	memcpy(call->fds_out, fds, num_fds * sizeof(int));
	return 0;
}

/* Called before any lock is taken: in a child of fork() a thread of the parent may hold it. */
static int
check_process(const struct ipc_channel *c)
{
	if (c->pid == getpid())
		return 0;
	return fail(-EPERM, "the context belongs to the process this one was forked from");
}

static int
do_call(struct ipc_channel *c, const struct call *call)
{
	int err = check_process(c);

	if (err != 0)
		return err;
	pthread_mutex_lock(&c->lock);
	if (c->broken)
		err = gone(c);
	else if (send_request(c, call) != 0)
		err = gone(c);
	else
		err = receive_reply(c, call);
	pthread_mutex_unlock(&c->lock);
	return err;
}

#define NO_FDS \
	.fd_in = -1, .fds_out = (int[IPC_FDS_MAX]) \
	{ \
		-1 \
	}

/* A request of one structure that another one answers. */
static int
exchange(void *arg, enum ipc_op op, const void *request, size_t request_bytes, void *reply,
	 size_t reply_bytes)
{
	const struct call call = {
		.op = op,
		.request = request,
		.request_bytes = request_bytes,
		.reply = reply,
		.reply_bytes = reply_bytes,
		NO_FDS,
	};

	return do_call(arg, &call);
}

static int
number_to(void *arg, enum ipc_op op, uint32_t number, void *reply, size_t reply_bytes)
{
	const struct ipc_number r = {.number = number};

	return exchange(arg, op, &r, sizeof(r), reply, reply_bytes);
}

static int
tell_number(void *arg, enum ipc_op op, uint32_t number)
{
	struct ipc_none none;

	return number_to(arg, op, number, &none, 0);
}

static int
ask_number(void *arg, enum ipc_op op, const void *request, size_t request_bytes, uint32_t *number)
{
	struct ipc_number reply;
	int err = exchange(arg, op, request, request_bytes, &reply, sizeof(reply));

	if (err == 0)
		*number = reply.number;
	return err;
}

/* ---- the operations ---- */

static int
ctl_info(void *arg, struct hca_ctl_info *info)
{
	*info = ((struct ipc_channel *)arg)->info;
	return 0;
}

static volatile void *
ctl_uar(void *arg)
{
	return ((struct ipc_channel *)arg)->uar;
}

static int
ctl_query_port(void *arg, uint32_t port, struct hca_ctl_port *out)
{
	return number_to(arg, IPC_QUERY_PORT, port, out, sizeof(*out));
}

static int
ctl_query_gid(void *arg, uint32_t index, uint8_t gid[16])
{
	return number_to(arg, IPC_QUERY_GID, index, gid, 16);
}

static int
ctl_query_gid_entry(void *arg, uint32_t index, struct hca_ctl_gid *out)
{
	return number_to(arg, IPC_QUERY_GID_ENTRY, index, out, sizeof(*out));
}

static int
ctl_query_pkey(void *arg, uint32_t index, uint16_t *pkey)
{
	struct ipc_number reply;
	int err = number_to(arg, IPC_QUERY_PKEY, index, &reply, sizeof(reply));

	if (err == 0)
		*pkey = (uint16_t)reply.number;
	return err;
}

static int
ctl_resolve(void *arg, struct hca_ctl_ah *ah)
{
	return exchange(arg, IPC_RESOLVE, ah, sizeof(*ah), ah, sizeof(*ah));
}

static int
ctl_alloc_pd(void *arg, uint32_t *pdn)
{
	return ask_number(arg, IPC_ALLOC_PD, NULL, 0, pdn);
}

static int
ctl_dealloc_pd(void *arg, uint32_t pdn)
{
	return tell_number(arg, IPC_DEALLOC_PD, pdn);
}

static int
send_pages(void *arg, const uint64_t *pages, uint64_t npages)
{
	struct ipc_pages m = {0};
	struct ipc_none none;
	int err = 0;

	for (uint64_t done = 0; done < npages && err == 0; done += m.count) {
		uint64_t left = npages - done;

		m.count = left < IPC_PAGES_MAX ? (uint32_t)left : IPC_PAGES_MAX;
		memcpy(m.page, pages + done, m.count * sizeof(m.page[0]));
		err = exchange(arg, IPC_PAGES, &m,
			       offsetof(struct ipc_pages, page) + m.count * sizeof(m.page[0]),
			       &none, 0);
	}
	return err;
}

/* No list or region of another thread may come between the list and its request. */
static int
ctl_reg_mr(void *arg, const struct hca_ctl_mr *mr, const uint64_t *pages, struct hca_ctl_keys *keys)
{
	struct ipc_channel *c = arg;
	int err = check_process(c);

	if (err != 0)
		return err;
	pthread_mutex_lock(&c->lists);
	err = send_pages(arg, pages, mr->npages);
	if (err == 0)
		err = exchange(arg, IPC_REG_MR, mr, sizeof(*mr), keys, sizeof(*keys));
	pthread_mutex_unlock(&c->lists);
	return err;
}

static int
ctl_dereg_mr(void *arg, uint32_t lkey)
{
	return tell_number(arg, IPC_DEREG_MR, lkey);
}

static int
ctl_rereg_mr(void *arg, uint32_t lkey, uint32_t flags, const struct hca_ctl_mr *mr,
	     struct hca_ctl_keys *keys)
{
	const struct ipc_rereg r = {.lkey = lkey, .flags = flags, .mr = *mr};
	struct ipc_channel *c = arg;
	int err = check_process(c);

	if (err != 0)
		return err;
	pthread_mutex_lock(&c->lists); /* converting a region would end the list in progress */
	err = exchange(arg, IPC_REREG_MR, &r, sizeof(r), keys, sizeof(*keys));
	pthread_mutex_unlock(&c->lists);
	return err;
}

static int
ctl_alloc_mw(void *arg, uint32_t pdn, uint32_t type, uint32_t *rkey)
{
	const struct ipc_pair r = {pdn, type};

	return ask_number(arg, IPC_ALLOC_MW, &r, sizeof(r), rkey);
}

static int
ctl_dealloc_mw(void *arg, uint32_t rkey)
{
	return tell_number(arg, IPC_DEALLOC_MW, rkey);
}

static int
ctl_attach(void *arg, const struct hca_ctl_segment *segment, int fd, uint32_t *handle)
{
	struct ipc_number reply;
	const struct call call = {
		.op = IPC_ATTACH,
		.request = segment,
		.request_bytes = sizeof(*segment),
		.reply = &reply,
		.reply_bytes = sizeof(reply),
		.fd_in = fd,
		.fds_out = (int[IPC_FDS_MAX]){-1},
	};
	int err = do_call(arg, &call);

	if (err == 0)
		*handle = reply.number;
	return err;
}

static int
ctl_detach(void *arg, uint32_t handle)
{
	return tell_number(arg, IPC_DETACH, handle);
}

static int
ctl_give_memory(void *arg, int mem_fd, int maps_fd)
{
	struct ipc_none none;
	const struct call call = {
		.op = IPC_MEMORY,
		.reply = &none,
		.fd_in = mem_fd,
		.fd_in2 = maps_fd,
		.fds_out = (int[IPC_FDS_MAX]){-1},
	};

	return do_call(arg, &call);
}

static int
ctl_async_fd(void *arg, int *fd)
{
	struct ipc_channel *c = arg;

	if (c->async_fd < 0)
		return fail(-EINVAL, "the asynchronous channel was handed out before");
	*fd = c->async_fd;
	c->async_fd = -1;
	return 0;
}

static int
ctl_create_channel(void *arg, uint32_t *channel, int *fd)
{
	struct ipc_number reply;
	int fds[IPC_FDS_MAX];
	const struct call call = {
		.op = IPC_CREATE_CHANNEL,
		.reply = &reply,
		.reply_bytes = sizeof(reply),
		.fd_in = -1,
		.fds_out = fds,
		.num_fds_out = 1,
	};
	int err = do_call(arg, &call);

	if (err != 0)
		return err;
	*channel = reply.number;
	*fd = fds[0];
	return 0;
}

static int
ctl_destroy_channel(void *arg, uint32_t channel)
{
	return tell_number(arg, IPC_DESTROY_CHANNEL, channel);
}

static int
ctl_create_cq(void *arg, const struct hca_ctl_cq *cq, uint32_t *cqn)
{
	return ask_number(arg, IPC_CREATE_CQ, cq, sizeof(*cq), cqn);
}

static int
ctl_destroy_cq(void *arg, uint32_t cqn)
{
	return tell_number(arg, IPC_DESTROY_CQ, cqn);
}

static int
ctl_resize_cq(void *arg, uint32_t cqn, uint64_t addr, uint32_t log_size, uint32_t *index)
{
	const struct ipc_resize r = {cqn, log_size, addr};

	return ask_number(arg, IPC_RESIZE_CQ, &r, sizeof(r), index);
}

static int
ctl_moderate_cq(void *arg, uint32_t cqn, uint16_t count, uint16_t period_us)
{
	const struct ipc_moderate r = {cqn, count, period_us};
	struct ipc_none none;

	return exchange(arg, IPC_MODERATE_CQ, &r, sizeof(r), &none, 0);
}

static int
ctl_create_qp(void *arg, const struct hca_ctl_qp *qp, uint32_t *qpn)
{
	return ask_number(arg, IPC_CREATE_QP, qp, sizeof(*qp), qpn);
}

static int
ctl_modify_qp(void *arg, uint32_t qpn, uint32_t opcode, const void *mailbox)
{
	struct ipc_modify r = {.qpn = qpn, .opcode = opcode, .has_mailbox = mailbox != NULL};
	struct ipc_none none;

	if (mailbox != NULL)
		memcpy(&r.mailbox, mailbox, sizeof(r.mailbox));
	return exchange(arg, IPC_MODIFY_QP, &r, sizeof(r), &none, 0);
}

static int
ctl_query_qp(void *arg, uint32_t qpn, void *mailbox)
{
	return number_to(arg, IPC_QUERY_QP, qpn, mailbox, sizeof(struct hca_qpc));
}

static int
ctl_destroy_qp(void *arg, uint32_t qpn)
{
	return tell_number(arg, IPC_DESTROY_QP, qpn);
}

static int
ctl_query_counters(void *arg, uint32_t of, uint32_t number, struct hca_ctl_counter *out,
		   uint32_t max, uint32_t *total)
{
	const struct ipc_count r = {.of = of, .number = number, .max = max};
	struct ipc_counters *reply = malloc(sizeof(*reply));
	const struct call call = {
		.op = IPC_QUERY_COUNTERS,
		.request = &r,
		.request_bytes = sizeof(r),
		.reply = reply,
		.reply_bytes = sizeof(*reply),
		.shorter = true,
		NO_FDS,
	};
	int err;

	if (reply == NULL)
		return fail(-ENOMEM, "no memory for counters");
	err = do_call(arg, &call);
	if (err == 0) {
		uint32_t n = reply->count < max ? reply->count : max;

		if (n > IPC_COUNTERS_MAX)
			n = IPC_COUNTERS_MAX;
		if (n != 0)
			memcpy(out, reply->counter, n * sizeof(*out));
		*total = reply->total;
	}
	free(reply);
	return err;
}

static int
ctl_mcast(void *arg, uint32_t qpn, const uint8_t mgid[16], bool attach)
{
	struct ipc_mcast r = {.qpn = qpn, .attach = attach};
	struct ipc_none none;

	memcpy(r.mgid, mgid, sizeof(r.mgid));
	return exchange(arg, IPC_MCAST, &r, sizeof(r), &none, 0);
}

static int
ctl_alloc_xrcd(void *arg, uint32_t *xrcd)
{
	return ask_number(arg, IPC_ALLOC_XRCD, NULL, 0, xrcd);
}

static int
ctl_dealloc_xrcd(void *arg, uint32_t xrcd)
{
	return tell_number(arg, IPC_DEALLOC_XRCD, xrcd);
}

static int
ctl_create_srq(void *arg, const struct hca_ctl_srq *srq, uint32_t *srqn)
{
	return ask_number(arg, IPC_CREATE_SRQ, srq, sizeof(*srq), srqn);
}

static int
ctl_arm_srq(void *arg, uint32_t srqn, uint32_t limit)
{
	const struct ipc_pair r = {srqn, limit};
	struct ipc_none none;

	return exchange(arg, IPC_ARM_SRQ, &r, sizeof(r), &none, 0);
}

static int
ctl_query_srq(void *arg, uint32_t srqn, struct hca_ctl_srq_state *out)
{
	return number_to(arg, IPC_QUERY_SRQ, srqn, out, sizeof(*out));
}

static int
ctl_destroy_srq(void *arg, uint32_t srqn)
{
	return tell_number(arg, IPC_DESTROY_SRQ, srqn);
}

static const char *
ctl_reason(void *arg)
{
	return reason;
}

static int
ctl_watch_fd(void *arg)
{
	return ((struct ipc_channel *)arg)->sock;
}

static int
ctl_sleep(void *arg, const uint32_t **word, int *kick_fd)
{
	const struct ipc_channel *c = arg;

	*word = (const uint32_t *)(c->sleep_page + c->sleep_offset);
	*kick_fd = c->kick_fd;
	return 0;
}

static bool
ctl_alive(void *arg)
{
	struct ipc_channel *c = arg;
	struct pollfd p = {.fd = c->sock, .events = POLLRDHUP};

	if (__atomic_load_n(&c->broken, __ATOMIC_ACQUIRE))
		return false;
	return poll(&p, 1, 0) <= 0 || (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
}

static void
close_channel(struct ipc_channel *c)
{
	if (c->uar != NULL)
		lib_sys_munmap(c->uar, HCA_UAR_PAGE_SIZE);
	if (c->sleep_page != NULL)
		lib_sys_munmap((void *)(uintptr_t)c->sleep_page, SLEEP_PAGE);
	if (c->kick_fd >= 0)
		close(c->kick_fd);
	if (c->async_fd >= 0)
		close(c->async_fd);
	if (c->sock >= 0)
		close(c->sock);
	pthread_mutex_destroy(&c->lists);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* After the daemon's answer the device does not access memory of this context any more. */
static void
ctl_close(void *arg)
{
	struct ipc_none none;

	exchange(arg, IPC_CLOSE, NULL, 0, &none, 0);
	close_channel(arg);
}

static const struct softhca_ctl_ops client_ops = {
	.info = ctl_info,
	.uar = ctl_uar,
	.query_port = ctl_query_port,
	.query_gid = ctl_query_gid,
	.query_gid_entry = ctl_query_gid_entry,
	.query_pkey = ctl_query_pkey,
	.resolve = ctl_resolve,
	.alloc_pd = ctl_alloc_pd,
	.dealloc_pd = ctl_dealloc_pd,
	.reg_mr = ctl_reg_mr,
	.dereg_mr = ctl_dereg_mr,
	.rereg_mr = ctl_rereg_mr,
	.alloc_mw = ctl_alloc_mw,
	.dealloc_mw = ctl_dealloc_mw,
	.attach = ctl_attach,
	.detach = ctl_detach,
	.give_memory = ctl_give_memory,
	.async_fd = ctl_async_fd,
	.create_channel = ctl_create_channel,
	.destroy_channel = ctl_destroy_channel,
	.create_cq = ctl_create_cq,
	.destroy_cq = ctl_destroy_cq,
	.resize_cq = ctl_resize_cq,
	.moderate_cq = ctl_moderate_cq,
	.create_qp = ctl_create_qp,
	.modify_qp = ctl_modify_qp,
	.query_qp = ctl_query_qp,
	.destroy_qp = ctl_destroy_qp,
	.query_counters = ctl_query_counters,
	.mcast = ctl_mcast,
	.alloc_xrcd = ctl_alloc_xrcd,
	.dealloc_xrcd = ctl_dealloc_xrcd,
	.create_srq = ctl_create_srq,
	.arm_srq = ctl_arm_srq,
	.query_srq = ctl_query_srq,
	.destroy_srq = ctl_destroy_srq,
	.reason = ctl_reason,
	.alive = ctl_alive,
	.watch_fd = ctl_watch_fd,
	.sleep = ctl_sleep,
	.close = ctl_close,
};

/* ---- opening ---- */

/* Not inherited by children, which cannot use it. */
static int
map_sleep_page(struct ipc_channel *c, int fd, uint32_t offset)
{
	void *page;

	if (offset > SLEEP_PAGE - sizeof(uint32_t) || offset % sizeof(uint32_t) != 0)
		return lib_fail(-EPROTO, "the daemon talks nonsense about its sleep words");
	page = lib_sys_mmap(NULL, SLEEP_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return lib_fail(-errno, "the sleep words: %s", strerror(errno));
	c->sleep_page = page;
	c->sleep_offset = offset;
	return 0;
}

static int
say_hello(struct ipc_channel *c)
{
	const struct ipc_hello hello = {.magic = IPC_MAGIC};
	struct ipc_welcome welcome;
	int fds[IPC_FDS_MAX] = {-1, -1, -1, -1};
	const struct call call = {
		.op = IPC_HELLO,
		.request = &hello,
		.request_bytes = sizeof(hello),
		.reply = &welcome,
		.reply_bytes = sizeof(welcome),
		.fd_in = -1,
		.fds_out = fds,
		.num_fds_out = 4,
	};
	int err = do_call(c, &call);

	if (err != 0)
		return lib_fail(err, "%s", reason);
	c->seq = welcome.nonce + 1;
	c->info = welcome.info;
	memcpy(c->name, welcome.name, sizeof(c->name) - 1);
	c->async_fd = fds[1];
	c->kick_fd = fds[3];
	err = map_sleep_page(c, fds[2], welcome.sleep_offset);
	close(fds[2]);
	if (err != 0) {
		close(fds[0]);
		return err;
	}
	c->uar = lib_sys_mmap(NULL, HCA_UAR_PAGE_SIZE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_POPULATE, fds[0], 0);
	close(fds[0]);
	if (c->uar == MAP_FAILED) {
		c->uar = NULL;
		return lib_fail(-errno, "the doorbell page: %s", strerror(errno));
	}
	if (lib_sys_madvise(c->uar, HCA_UAR_PAGE_SIZE, MADV_DONTFORK) != 0)
		return lib_fail(-errno, "the doorbell page: %s", strerror(errno));
	return 0;
}

int
ipc_client_open(const char *path, struct softhca_context **ctx)
{
	struct ipc_channel *c = calloc(1, sizeof(*c));
	int err;

	if (c == NULL)
		return lib_fail(-ENOMEM, "no memory for a context");
	c->sock = -1;
	c->async_fd = -1;
	c->kick_fd = -1;
	c->pid = getpid();
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->lists, NULL);
	err = ipc_connect(path, &c->sock);
	if (err == 0)
		err = say_hello(c);
	if (err == -EIO && c->broken)
		err = ipc_explain_silence(path);
	if (err == 0)
		err = softhca_context_create(&client_ops, c, c->name, ctx);
	if (err != 0)
		close_channel(c);
	return err;
}
