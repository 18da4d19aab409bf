/* SPDX-License-Identifier: BSD-3-Clause */

/* Queries, domains, regions, SRQs, import, and calls that the device does not offer. */

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test_fork.h"
#include "all.h"

#define PREFETCH IBV_ADVISE_MR_ADVICE_PREFETCH

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *port_attr);

/* A device is the same in all lists, as long as one of them or a context has it. */
static void
lists(struct all *all)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	CHECK(list != NULL && n >= 1);
	for (int i = 0; i <= n; i++)
		CHECK(list[i] == all->list[i]);
	CHECK(list[0] == all->context->device);
	for (int i = 1; i < n; i++)
		CHECK(strcmp(list[i]->dev_name, list[i - 1]->dev_name) != 0);
	ibv_free_device_list(list);
}

static void
devices(struct all *all)
{
	struct ibv_device *device = all->context->device;
	struct ibv_device_attr attr;
	struct ibv_device_attr_ex ex;
	struct ibv_query_device_ex_input input = {0};

	lists(all);
	CHECK(strcmp(ibv_get_device_name(device), device->name) == 0);
	CHECK(ibv_get_device_guid(device) != 0 && ibv_get_device_index(device) >= 0);
	CHECK(device->node_type == IBV_NODE_CA && device->transport_type == IBV_TRANSPORT_IB);
	CHECK(ibv_query_device(all->context, &attr) == 0);
	CHECK(attr.node_guid == ibv_get_device_guid(device) && attr.phys_port_cnt == 1);
	CHECK((attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) == 0);
	CHECK(attr.max_ah >= 65536 && attr.max_ah < 1 << 24);
	memset(&ex, 0xff, sizeof(ex));
	CHECK(ibv_query_device_ex(all->context, &input, &ex) == 0);
	CHECK(memcmp(&ex.orig_attr, &attr, offsetof(struct ibv_device_attr, phys_port_cnt)) == 0);
	CHECK(ex.phys_port_cnt_ex == 1 && ex.max_dm_size == 0 && ex.comp_mask == 0);
	input.comp_mask = 1;
	CHECK(ibv_query_device_ex(all->context, &input, &ex) == EINVAL);
}

static void
ports(struct all *all)
{
	struct ibv_context *context = all->context;
	struct ibv_port_attr attr, old;
	struct ibv_gid_entry entry, entries[64];
	union ibv_gid gid;
	ssize_t n;
	__be16 pkey;

	memset(&old, 0xff, sizeof(old));
	CHECK(___ibv_query_port(context, PORT, &attr) == 0 && attr.state == IBV_PORT_ACTIVE);
	CHECK(ibv_query_port(context, PORT, (struct _compat_ibv_port_attr *)&old) == 0);
	CHECK(memcmp(&attr, &old, offsetof(struct ibv_port_attr, port_cap_flags2)) == 0);
	CHECK(old.port_cap_flags2 == 0xffff); /* the old structure ends before it */
	CHECK(attr.link_layer == IBV_LINK_LAYER_ETHERNET && attr.flags == IBV_QPF_GRH_REQUIRED);
	CHECK(___ibv_query_port(context, 9, &attr) == EINVAL);
	CHECK(ibv_query_gid_ex(context, PORT, GID_INDEX, &entry, 0) == 0);
	CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2 && entry.gid_index == GID_INDEX);
	CHECK(memcmp(&entry.gid, &all->gid, sizeof(gid)) == 0);
	CHECK(ibv_query_gid_ex(context, PORT, (uint32_t)attr.gid_tbl_len - 1, &entry, 0) ==
	      ENODATA);
	CHECK(ibv_query_gid_ex(context, PORT, GID_INDEX, &entry, 1) == EOPNOTSUPP);
	CHECK(ibv_query_gid(context, PORT, attr.gid_tbl_len - 1, &gid) == 0);
	CHECK(gid.global.interface_id == 0 && gid.global.subnet_prefix == 0);
	CHECK(ibv_query_gid(context, PORT, -1, &gid) == -1 && errno == EINVAL);
	n = ibv_query_gid_table(context, entries, 64, 0);
	CHECK(n >= 2 && entries[1].gid_index == GID_INDEX);
	CHECK(ibv_query_gid_table(context, entries, (size_t)n, 0) == n);
	CHECK(ibv_query_gid_table(context, entries, (size_t)n - 1, 0) == -EINVAL);
	CHECK(ibv_query_pkey(context, PORT, 0, &pkey) == 0 && pkey == 0xffff);
	CHECK(ibv_query_pkey(context, PORT, 60000, &pkey) == -1);
	CHECK(ibv_get_pkey_index(context, PORT, 0xffff) == 0);
	CHECK(ibv_get_pkey_index(context, PORT, htobe16(0x1234)) == -1);
}

/* Regions that are not memory as it lies there: of zeros, and on demand. */
static void
special_regions(struct all *all)
{
	struct ibv_device_attr_ex attr;
	struct ibv_mr *mr = ibv_alloc_null_mr(all->pd);
	struct ibv_sge range = {(uintptr_t)all->memory, 4096, 0};

	CHECK(mr != NULL && mr->pd == all->pd && mr->context == all->context);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK(ibv_query_device_ex(all->context, NULL, &attr) == 0);
	CHECK((attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT) == 0);
	CHECK_NULL(ibv_reg_mr(all->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	if ((attr.odp_caps.general_caps & IBV_ODP_SUPPORT) == 0) {
		CHECK_NULL(ibv_reg_mr(all->pd, all->memory, 4096, IBV_ACCESS_ON_DEMAND),
			   EOPNOTSUPP);
		return;
	}
	mr = ibv_reg_mr(all->pd, all->memory, 8192, IBV_ACCESS_ON_DEMAND);
	CHECK(mr != NULL);
	range.lkey = mr->lkey;
	CHECK(ibv_advise_mr(all->pd, PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &range, 1) == 0);
	CHECK(ibv_advise_mr(all->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &range, 1) == EFAULT);
	range.lkey = all->mr->lkey;
	CHECK(ibv_advise_mr(all->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &range, 1) == 0);
	range.lkey = mr->lkey;
	CHECK(ibv_advise_mr(all->pd, PREFETCH, 8, &range, 1) == EINVAL);
	CHECK(ibv_advise_mr(all->pd, PREFETCH, 0, &range, 0) == EINVAL);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* A parent domain that something is in stays: a region, or anything else that has a PD. */
static void
in_domain(struct all *all, struct ibv_pd *pd, struct ibv_pd *parent)
{
	struct ibv_srq_init_attr srq_attr = {all, {4, 1, 0}};
	struct ibv_qp_init_attr qp_attr = {
		.send_cq = all->cq,
		.recv_cq = all->cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_ah_attr path = {
		.grh = {.dgid = all->gid, .sgid_index = GID_INDEX},
		.is_global = 1,
		.port_num = PORT,
	};
	struct ibv_mr *mr = ibv_reg_mr(parent, all->memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_qp *qp;
	struct ibv_srq *srq;

	CHECK(mr != NULL && mr->pd == parent && ibv_dealloc_pd(parent) == EBUSY);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) == 0 && mr->pd == pd);
	mw = ibv_alloc_mw(parent, IBV_MW_TYPE_1);
	CHECK(mw != NULL && ibv_dealloc_pd(parent) == EBUSY && ibv_dealloc_mw(mw) == 0);
	ah = ibv_create_ah(parent, &path);
	CHECK(ah != NULL && ibv_dealloc_pd(parent) == EBUSY && ibv_destroy_ah(ah) == 0);
	qp = ibv_create_qp(parent, &qp_attr);
	CHECK(qp != NULL && ibv_dealloc_pd(parent) == EBUSY && ibv_destroy_qp(qp) == 0);
	srq = ibv_create_srq(parent, &srq_attr);
	CHECK(srq != NULL && ibv_dealloc_pd(parent) == EBUSY && ibv_destroy_srq(srq) == 0);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, parent, NULL, 0, 0) == 0);
	CHECK(ibv_dealloc_pd(parent) == EBUSY && ibv_dereg_mr(mr) == 0);
}

/* With several pipelines all are in one; QPs without a thread domain are dealt to all of them. */
static void
in_thread_domain(struct all *all, struct ibv_pd *parent)
{
	const char *pipelines = getenv("SOFTHCA_PIPELINES");
	uint32_t n = pipelines != NULL ? (uint32_t)atoi(pipelines) : 1, other = 0;
	struct ibv_qp *qp[16];

	for (uint32_t i = 0; i < 16; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = all->cq,
			.recv_cq = all->cq,
			.cap = {1, 1, 1, 1, 0},
			.qp_type = IBV_QPT_RC,
		};

		qp[i] = ibv_create_qp(i % 2 == 0 ? parent : all->pd, &attr);
		CHECK(qp[i] != NULL);
		if (i % 2 == 0)
			CHECK(qp[i]->qp_num % n == qp[0]->qp_num % n);
		else
			other += qp[i]->qp_num % n != qp[0]->qp_num % n;
	}
	CHECK(n == 1 || other != 0);
	for (uint32_t i = 0; i < 16; i++)
		CHECK(ibv_destroy_qp(qp[i]) == 0);
}

static void
domains(struct all *all)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_td *td = ibv_alloc_td(all->context, &td_attr);
	struct ibv_pd *pd = ibv_alloc_pd(all->context), *parent;
	struct ibv_context *other = ibv_open_device(all->context->device);

	CHECK(td != NULL && pd != NULL);
	CHECK_NULL(ibv_alloc_parent_domain(all->context, &attr), EINVAL);
	attr.pd = pd;
	attr.td = td;
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	CHECK_NULL(ibv_alloc_parent_domain(all->context, &attr), EOPNOTSUPP);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	CHECK(other != NULL);
	CHECK_NULL(ibv_alloc_parent_domain(other, &attr), EINVAL);
	CHECK(ibv_close_device(other) == 0);
	parent = ibv_alloc_parent_domain(all->context, &attr);
	CHECK(parent != NULL && parent != pd);
	CHECK(ibv_dealloc_td(td) == EBUSY && ibv_dealloc_pd(pd) == EBUSY);
	in_domain(all, pd, parent);
	in_thread_domain(all, parent);
	CHECK(ibv_dealloc_pd(parent) == 0 && ibv_dealloc_td(td) == 0);
	CHECK(ibv_dealloc_pd(pd) == 0);
	td_attr.comp_mask = 1;
	CHECK_NULL(ibv_alloc_td(all->context, &td_attr), EOPNOTSUPP);
}

static void
regions(struct all *all)
{
	struct ibv_pd *pd = ibv_alloc_pd(all->context);
	unsigned int volatile relaxed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING |
					(1u << 29) | IBV_ACCESS_HUGETLB;
	struct ibv_mr *mr = ibv_reg_mr(pd, all->memory, 4096, relaxed);

	CHECK(mr != NULL && mr->pd == pd && mr->context == all->context);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD, all->pd,
			   all->memory + 4096, 8192, 0) == 0);
	CHECK(mr->pd == all->pd && mr->addr == all->memory + 4096 && mr->length == 8192);
	CHECK(ibv_rereg_mr(mr, 1 << 9, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, all->memory, 0, 0) ==
	      IBV_REREG_MR_ERR_INPUT);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_REMOTE_WRITE) == IBV_REREG_MR_ERR_CMD);
	CHECK(errno == EINVAL);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK_NULL(ibv_reg_mr(pd, all->memory, 4096, 1 << 30), EINVAL);
	CHECK_NULL(ibv_reg_mr(pd, all->memory, 4096, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	mr = ibv_reg_mr_iova(pd, all->memory, 4096, (uintptr_t)all->memory, 0);
	CHECK(mr != NULL && ibv_dereg_mr(mr) == 0);
	mr = ibv_reg_mr_iova2(pd, all->memory, 4096, (uintptr_t)all->memory, relaxed);
	CHECK(mr != NULL && ibv_dereg_mr(mr) == 0);
	mr = ibv_reg_mr(pd, all->memory, 0, 0);
	CHECK(mr != NULL && mr->length == 0 && ibv_dereg_mr(mr) == 0);
	mr = ibv_reg_mr(pd, all->memory, 4096, IBV_ACCESS_ZERO_BASED);
	CHECK(mr != NULL && mr->addr == all->memory && ibv_dereg_mr(mr) == 0);
	CHECK_NULL(ibv_reg_mr_iova(pd, all->memory, 4096, (uintptr_t)all->memory + 1, 0), EINVAL);
	CHECK_NULL(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, 0), EOPNOTSUPP);
	CHECK(ibv_dealloc_pd(pd) == 0);
}

/* Writes from one place of the first context's memory to another, by QPs of the second. */
static void
written_by(struct all *other, const struct ibv_mr *mr, const uint8_t *memory, struct ibv_pd *pd)
{
	struct all in_pd = *other;
	struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {(uintptr_t)memory + 4096, mr->rkey},
				 };
	struct ibv_qp *a, *b;

	in_pd.pd = pd;
	a = all_qp(&in_pd, IBV_QPT_RC, other->cq, NULL, 0);
	b = all_qp(&in_pd, IBV_QPT_RC, other->cq, NULL, 0);
	all_connect(&in_pd, a, b);
	CHECK(ibv_post_send(a, &wr, &bad) == 0);
	all_wc(other->cq);
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
}

/* A region of the second context in the PD is its own. */
static void
own_region(struct ibv_pd *pd)
{
	char *memory = aligned_alloc(4096, 4096);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, 4096, ALL_ACCESS), *found;

	CHECK(mr != NULL && mr->pd == pd);
	found = ibv_import_mr(pd, mr->handle);
	CHECK(found != NULL && found->lkey == mr->lkey);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK_NULL(ibv_import_mr(pd, found->handle), EINVAL);
	ibv_unimport_mr(found);
	free(memory);
}

/* Objects that the second context finds in the first one's PD; memory is all->memory, not read. */
static void
imported_objects(struct all *all, struct ibv_context *context)
{
	struct all other = *all;
	struct ibv_pd *pd = ibv_import_pd(context, all->pd->handle), *again;
	struct ibv_mr *mr;

	CHECK(pd != NULL && pd->context == context && pd->handle == all->pd->handle);
	other.context = context;
	other.cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	CHECK(other.cq != NULL);
	CHECK_NULL(ibv_import_pd(context, 0xffffffff), EINVAL);
	CHECK_NULL(ibv_import_mr(pd, 0), EINVAL);
	CHECK_NULL(ibv_import_mr(pd, 0xffffffff), EINVAL);
	mr = ibv_import_mr(pd, all->mr->handle);
	CHECK(mr != NULL && mr->lkey == all->mr->lkey && mr->rkey == all->mr->rkey);
	CHECK(mr->addr == NULL && mr->length == BYTES && mr->pd == pd && mr->context == context);
	CHECK(ibv_dereg_mr(mr) == EINVAL);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0);
	written_by(&other, mr, all->memory, pd);
	own_region(pd);
	ibv_unimport_mr(mr);
	again = ibv_import_pd(context, pd->handle);
	CHECK(again != NULL);
	ibv_unimport_pd(again);
	CHECK(ibv_destroy_cq(other.cq) == 0);
	ibv_unimport_pd(pd);
}

/* The same in one process, and objects of the second context for the first. */
static void
imported_here(struct all *all)
{
	struct ibv_context *context = ibv_import_device(dup(all->context->cmd_fd));
	struct ibv_pd *pd, *back;

	CHECK(context != NULL);
	memset(all->memory, 0x3c, 64);
	memset(all->memory + 4096, 0, 64);
	imported_objects(all, context);
	CHECK(memcmp(all->memory, all->memory + 4096, 64) == 0);
	pd = ibv_alloc_pd(context);
	back = ibv_import_pd(all->context, pd->handle);
	CHECK(pd != NULL && back != NULL && back->context == all->context);
	CHECK(ibv_dealloc_pd(pd) == 0 && ibv_dealloc_pd(back) == 0);
	CHECK_NULL(ibv_import_pd(all->context, 0xffffffff), EINVAL);
	CHECK(ibv_close_device(context) == 0);
}

/*
 * Another process opens the device whose context's descriptor it has, and writes in this one's
 * memory; the context closes the descriptor.
 */
static void
imported_device(struct all *all)
{
	__be64 guid = ibv_get_device_guid(all->context->device);
	int fd = dup(all->context->cmd_fd), status;
	pid_t child;

	memset(all->memory, 0x5a, 64);
	memset(all->memory + 4096, 0, 64);
	child = test_fork();
	CHECK(fd >= 0 && child >= 0);
	if (child == 0) {
		struct ibv_context *context = ibv_import_device(fd);

		if (context == NULL) /* the device is inside the parent */
			_exit(errno == EOPNOTSUPP &&
					      strncmp(all->context->device->name, "embed", 5) == 0
				      ? 0
				      : 1);
		CHECK(context->cmd_fd == fd && ibv_get_device_guid(context->device) == guid);
		imported_objects(all, context);
		CHECK(ibv_close_device(context) == 0 && fcntl(fd, F_GETFD) < 0);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(strncmp(all->context->device->name, "embed", 5) == 0 ||
	      memcmp(all->memory, all->memory + 4096, 64) == 0);
	CHECK(close(fd) == 0);
}

/* A descriptor that the program could have forged is refused. */
static void
forged_device(struct all *all)
{
	int fd = memfd_create("forged", MFD_ALLOW_SEALING), file = fileno(stderr);
	char bytes[256];
	ssize_t n = pread(all->context->cmd_fd, bytes, sizeof(bytes), 0);

	CHECK(fd >= 0 && n > 0 && pwrite(fd, bytes, (size_t)n, 0) == n);
	CHECK(pwrite(all->context->cmd_fd, bytes, 1, 0) == -1 && errno == EPERM);
	CHECK_NULL(ibv_import_device(fd), EINVAL);
	CHECK_NULL(ibv_import_device(file), EINVAL);
	CHECK_NULL(ibv_import_device(-1), EINVAL);
	CHECK(close(fd) == 0);
}

static void
imported(struct all *all)
{
	imported_here(all);
	imported_device(all);
	forged_device(all);
	CHECK_NULL(ibv_import_dm(all->context, 0), EOPNOTSUPP);
	ibv_unimport_mr(NULL);
	ibv_unimport_pd(NULL);
	ibv_unimport_dm(NULL);
}

/* A context may have a target more than once, also its own, and closes it as often. */
static void
opened_again(struct ibv_context *context, struct ibv_qp *first, struct ibv_qp_open_attr *open)
{
	struct ibv_qp *again = ibv_open_qp(context, open), *third;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(again != NULL && again != first && again->qp_num == first->qp_num);
	third = ibv_open_qp(context, open);
	CHECK(third != NULL && ibv_destroy_qp(again) == 0);
	CHECK(ibv_query_qp(third, &attr, IBV_QP_STATE, &init) == 0);
	CHECK(ibv_destroy_qp(third) == 0);
	CHECK(ibv_query_qp(first, &attr, IBV_QP_STATE, &init) == 0);
}

/* A target that another context of the domain has created; the domain is that of a file. */
static void
shared_targets(struct all *all)
{
	FILE *file = tmpfile();
	struct ibv_xrcd_init_attr attr = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  fileno(file), O_CREAT};
	struct ibv_context *other = ibv_open_device(all->context->device);
	struct ibv_xrcd *xrcd = ibv_open_xrcd(all->context, &attr), *theirs;
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE |
			     IBV_QP_OPEN_ATTR_CONTEXT,
		.qp_context = all,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *qp, *opened;

	CHECK(other != NULL && xrcd != NULL);
	attr.oflags = O_CREAT | O_EXCL;
	CHECK_NULL(ibv_open_xrcd(other, &attr), EEXIST);
	attr.oflags = 0;
	theirs = ibv_open_xrcd(other, &attr);
	qp = ibv_create_qp_ex(all->context, &init);
	CHECK(theirs != NULL && qp != NULL && qp->pd == NULL);
	open.qp_num = qp->qp_num;
	open.xrcd = theirs;
	opened = ibv_open_qp(other, &open);
	CHECK(opened != NULL && opened->qp_num == qp->qp_num && opened->qp_context == all);
	CHECK(opened->state == IBV_QPS_RESET && opened->qp_type == IBV_QPT_XRC_RECV);
	opened_again(other, opened, &open);
	open.comp_mask = IBV_QP_OPEN_ATTR_NUM;
	CHECK_NULL(ibv_open_qp(other, &open), EINVAL);
	open.comp_mask = IBV_QP_OPEN_ATTR_RESERVED;
	CHECK_NULL(ibv_open_qp(other, &open), EOPNOTSUPP);
	CHECK(ibv_destroy_qp(opened) == 0 && ibv_close_xrcd(theirs) == 0);
	open.xrcd = xrcd;
	open.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	opened_again(all->context, qp, &open);
	CHECK(ibv_destroy_qp(qp) == 0 && ibv_close_xrcd(xrcd) == 0);
	CHECK(ibv_close_device(other) == 0);
	fclose(file);
}

static void
shared_queues(struct all *all)
{
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = all,
		.attr = {16, 2, 0},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
		.pd = all->pd,
	};
	struct ibv_xrcd_init_attr domain = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1,
					    O_CREAT};
	struct ibv_srq *srq = ibv_create_srq_ex(all->context, &attr);
	struct ibv_srq_attr limit = {.srq_limit = 3}, got;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
	struct ibv_ops_wr op, *bad;
	uint32_t number;

	CHECK(srq != NULL);
	for (int i = 0; i < 4; i++)
		CHECK(ibv_post_srq_recv(srq, &recv, &bad_recv) == 0);
	CHECK(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
	CHECK(ibv_query_srq(srq, &got) == 0 && got.srq_limit == 3 && got.max_wr >= 16);
	CHECK(ibv_modify_srq(srq, &limit, IBV_SRQ_MAX_WR) == EOPNOTSUPP);
	CHECK(ibv_post_srq_ops(srq, &op, &bad) == EOPNOTSUPP && bad == &op);
	CHECK(ibv_destroy_srq(srq) == 0);
	attr.srq_type = IBV_SRQT_TM;
	CHECK_NULL(ibv_create_srq_ex(all->context, &attr), EOPNOTSUPP);
	attr.srq_type = IBV_SRQT_XRC;
	CHECK_NULL(ibv_create_srq_ex(all->context, &attr), EINVAL);
	attr.xrcd = ibv_open_xrcd(all->context, &domain);
	attr.cq = all->cq;
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	CHECK(attr.xrcd != NULL);
	srq = ibv_create_srq_ex(all->context, &attr);
	CHECK(srq != NULL && ibv_get_srq_num(srq, &number) == 0 && number != 0);
	CHECK(ibv_close_xrcd(attr.xrcd) == EBUSY);
	CHECK(ibv_destroy_srq(srq) == 0 && ibv_close_xrcd(attr.xrcd) == 0);
	domain.comp_mask |= IBV_XRCD_INIT_ATTR_RESERVED;
	CHECK_NULL(ibv_open_xrcd(all->context, &domain), EOPNOTSUPP);
	domain.comp_mask = 0;
	CHECK_NULL(ibv_open_xrcd(all->context, &domain), EINVAL);
}

/* A QP whose peer sends before it is in RTS gets an event, which names the QP. */
static void
events(struct all *all)
{
	struct pollfd ready = {.fd = all->context->async_fd, .events = POLLIN};
	struct ibv_srq_init_attr init = {all, {16, 1, 1}};
	struct ibv_srq *srq = ibv_create_srq(all->pd, &init);
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, srq, 0);
	struct ibv_sge sge = {(uintptr_t)all->memory, 8, all->mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_async_event event;

	all_connect(all, a, b);
	for (int i = 0; i < 2; i++)
		CHECK(ibv_post_srq_recv(srq, &recv, &bad_recv) == 0);
	CHECK(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
	CHECK(ibv_post_send(a, &wr, &bad) == 0);
	all_wc(all->cq);
	all_wc(all->cq);
	CHECK(poll(&ready, 1, 240000) == 1);
	CHECK(ibv_get_async_event(all->context, &event) == 0);
	CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
	CHECK(strcmp(ibv_event_type_str(event.event_type), "SRQ limit reached") == 0);
	ibv_ack_async_event(&event);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0 && ibv_destroy_srq(srq) == 0);
}

void
all_objects(struct all *all)
{
	devices(all);
	ports(all);
	domains(all);
	regions(all);
	special_regions(all);
	imported(all);
	shared_queues(all);
	shared_targets(all);
	events(all);
}
