/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program that was linked with rdma-core 65: it refers to each function that is newer than Debian
 * 12 by its name and version node, and does not start where one is missing. The declarations are
 * its own.
 */

#include "all.h"

#define LATER(node, type, name, ...) \
	type later_##name(__VA_ARGS__); \
	__asm__(".symver later_" #name ", " #name "@IBVERBS_1." #node)

/* The tools of rdma-core 52 and later find it at the node of providers. */
const char *later_ibv_wr_opcode_str(unsigned int opcode);
__asm__(".symver later_ibv_wr_opcode_str, ibv_wr_opcode_str@IBVERBS_PRIVATE_34");

#define WITH_FLUSH (1u << 11) /* IBV_QP_EX_WITH_FLUSH */
#define ACCESS_FLUSH (1u << 8)
#define ACCESS_FLUSH_PERSISTENT (1u << 9)
#define FLUSH_GLOBAL 1
#define FLUSH_PERSISTENT 2
#define FLUSH_OF_MR 1

/* struct ibv_qp_ex with the member that the header of Debian 12 lacks */
struct later_qp_ex {
	char until_44[offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *)];
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			 uint8_t type, uint8_t level);
};

struct later_mr_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	void *buf;
};

enum {
	MR_IOVA = 1 << 0,
	MR_ADDR = 1 << 1,
	MR_FD = 1 << 2,
	MR_FD_OFFSET = 1 << 3,
	MR_DMAH = 1 << 4,
	MR_BUF = 1 << 5,
};

LATER(15, void *, ibv_alloc_dmah, struct ibv_context *context, void *attr);
LATER(15, int, ibv_dealloc_dmah, void *dmah);
LATER(15, struct ibv_mr *, ibv_reg_mr_ex, struct ibv_pd *pd, struct later_mr_attr *attr);
LATER(16, int, ibv_dm_export_dmabuf_fd, struct ibv_dm *dm);
LATER(16, int, ibv_query_port_speed, struct ibv_context *context, uint32_t port, uint64_t *speed);
LATER(17, void *, ibv_alloc_buf, struct ibv_pd *pd, size_t size, void **buf);
LATER(17, void, ibv_free_buf, void *buf);
LATER(17, struct ibv_mr *, ibv_reg_buf_mr, struct ibv_pd *pd, void *buf, void *addr, size_t length,
      int access);
LATER(18, int, _ibv_query_comp_cntr_caps, struct ibv_context *context, void *caps, size_t size);
LATER(18, void *, ibv_create_comp_cntr, struct ibv_context *context, void *attr);
LATER(18, int, ibv_destroy_comp_cntr, void *counter);
LATER(18, int, ibv_export_buf_dmabuf_fd, void *buf);
LATER(18, int, ibv_inc_comp_cntr, void *counter, uint64_t amount);
LATER(18, int, ibv_inc_err_comp_cntr, void *counter, uint64_t amount);
LATER(18, int, ibv_qp_attach_comp_cntr, struct ibv_qp *qp, void *counter, void *attr);
LATER(18, int, ibv_read_comp_cntr, void *counter, uint64_t *value);
LATER(18, int, ibv_read_err_comp_cntr, void *counter, uint64_t *value);
LATER(18, int, ibv_set_comp_cntr, void *counter, uint64_t value);
LATER(18, int, ibv_set_err_comp_cntr, void *counter, uint64_t value);

/* A write through a region of 64 bytes, and whether it has arrived */
static void
writes_to(struct all *all, struct ibv_mr *mr, uint64_t remote_addr, const uint8_t *memory)
{
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct ibv_sge sge = {.addr = (uintptr_t)all->memory, .length = 64, .lkey = all->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = remote_addr, .rkey = mr->rkey},
	};
	struct ibv_send_wr *bad;

	all_connect(all, a, b);
	memset(all->memory, memory[0] + 1, 64);
	CHECK(ibv_post_send(a, &wr, &bad) == 0);
	all_wc(all->cq);
	CHECK(memcmp(all->memory, memory, 64) == 0);
	CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
}

static void
regions(struct all *all)
{
	struct later_mr_attr attr = {
		.length = 64,
		.access = ALL_ACCESS,
		.comp_mask = MR_ADDR,
		.addr = all->memory + 4096,
		.iova = 0x7000000 + ((uintptr_t)all->memory & 4095),
		.fd = -1,
	};
	struct ibv_mr *mr = later_ibv_reg_mr_ex(all->pd, &attr);

	CHECK(mr != NULL && mr->addr == attr.addr && mr->length == 64 && mr->pd == all->pd);
	writes_to(all, mr, (uintptr_t)attr.addr, attr.addr);
	CHECK(ibv_dereg_mr(mr) == 0);
	attr.comp_mask = MR_ADDR | MR_IOVA;
	mr = later_ibv_reg_mr_ex(all->pd, &attr);
	CHECK(mr != NULL);
	writes_to(all, mr, attr.iova, attr.addr);
	CHECK(ibv_dereg_mr(mr) == 0);
}

static void
refused_regions(struct all *all)
{
	struct later_mr_attr attr = {.length = 64, .access = ALL_ACCESS, .addr = all->memory};

	CHECK_NULL(later_ibv_reg_mr_ex(all->pd, &attr), EINVAL);
	attr.comp_mask = MR_ADDR | MR_FD;
	CHECK_NULL(later_ibv_reg_mr_ex(all->pd, &attr), EINVAL);
	attr.comp_mask = MR_ADDR | MR_FD_OFFSET;
	CHECK_NULL(later_ibv_reg_mr_ex(all->pd, &attr), EINVAL);
	attr.comp_mask = MR_FD | MR_FD_OFFSET | MR_IOVA;
	CHECK_NULL(later_ibv_reg_mr_ex(all->pd, &attr), EOPNOTSUPP);
	attr.comp_mask = MR_ADDR | MR_DMAH;
	CHECK_NULL(later_ibv_reg_mr_ex(all->pd, &attr), EOPNOTSUPP);
	attr.comp_mask = MR_ADDR | 1 << 6;
	CHECK_NULL(later_ibv_reg_mr_ex(all->pd, &attr), EOPNOTSUPP);
}

static void
buffers(struct all *all)
{
	struct ibv_pd *other = ibv_alloc_pd(all->context);
	void *buf, *left;
	uint8_t *memory = later_ibv_alloc_buf(all->pd, 5000, &buf);
	struct ibv_mr *mr;

	CHECK(memory != NULL && ((uintptr_t)memory & 4095) == 0);
	memset(memory, 0, 5000);
	mr = later_ibv_reg_buf_mr(all->pd, buf, memory + 4000, 1000, ALL_ACCESS);
	CHECK(mr != NULL && mr->addr == memory + 4000);
	writes_to(all, mr, (uintptr_t)memory + 4000, memory + 4000);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK_NULL(later_ibv_reg_buf_mr(all->pd, buf, memory + 4000, 1001, ALL_ACCESS), EINVAL);
	CHECK_NULL(later_ibv_reg_buf_mr(all->pd, buf, memory - 1, 8, ALL_ACCESS), EINVAL);
	CHECK_NULL(later_ibv_reg_buf_mr(other, buf, memory, 5000, ALL_ACCESS), EINVAL);
	errno = 0;
	CHECK(later_ibv_export_buf_dmabuf_fd(buf) == -1 && errno == ENODATA);
	later_ibv_free_buf(buf);
	errno = 0;
	later_ibv_free_buf(buf); /* it is gone, and nothing happens */
	CHECK(errno == EINVAL);
	CHECK_NULL(later_ibv_alloc_buf(all->pd, 0, &buf), EINVAL);
	CHECK_NULL(later_ibv_alloc_buf(all->pd, SIZE_MAX - 5, &buf), EINVAL);
	CHECK(ibv_dealloc_pd(other) == 0);
	CHECK(later_ibv_alloc_buf(all->pd, 1, &left) != NULL); /* freed with the context */
}

static void
speed(struct all *all)
{
	uint64_t in_100_mbps = 0;

	CHECK(later_ibv_query_port_speed(all->context, PORT, &in_100_mbps) == 0);
	CHECK(in_100_mbps >= 10);
	CHECK(later_ibv_query_port_speed(all->context, PORT + 1, &in_100_mbps) == EINVAL);
}

static void
absent(struct all *all)
{
	struct ibv_dm dm = {.context = all->context};
	struct ibv_qp *qp = all_qp(all, IBV_QPT_RC, all->cq, NULL, 0);
	struct {
		struct ibv_context *context;
		uint32_t handle;
	} object = {all->context, 0};
	uint64_t value = 0;

	CHECK_NULL(later_ibv_alloc_dmah(all->context, &value), EOPNOTSUPP);
	CHECK(later_ibv_dealloc_dmah(&object) == EOPNOTSUPP);
	errno = 0;
	CHECK(later_ibv_dm_export_dmabuf_fd(&dm) == -1 && errno == EOPNOTSUPP);
	CHECK(later__ibv_query_comp_cntr_caps(all->context, &value, 8) == EOPNOTSUPP);
	CHECK_NULL(later_ibv_create_comp_cntr(all->context, &value), EOPNOTSUPP);
	CHECK(later_ibv_destroy_comp_cntr(&object) == EOPNOTSUPP);
	CHECK(later_ibv_qp_attach_comp_cntr(qp, &object, &value) == EOPNOTSUPP);
	CHECK(later_ibv_set_comp_cntr(&object, 1) == EOPNOTSUPP);
	CHECK(later_ibv_set_err_comp_cntr(&object, 1) == EOPNOTSUPP);
	CHECK(later_ibv_inc_comp_cntr(&object, 1) == EOPNOTSUPP);
	CHECK(later_ibv_inc_err_comp_cntr(&object, 1) == EOPNOTSUPP);
	CHECK(later_ibv_read_comp_cntr(&object, &value) == EOPNOTSUPP);
	CHECK(later_ibv_read_err_comp_cntr(&object, &value) == EOPNOTSUPP);
	CHECK(ibv_destroy_qp(qp) == 0);
}

static void
names(struct all *all)
{
	(void)all;
	CHECK(strcmp(later_ibv_wr_opcode_str(IBV_WR_SEND), "send") == 0);
	CHECK(strcmp(later_ibv_wr_opcode_str(14), "flush") == 0);
	CHECK(strcmp(later_ibv_wr_opcode_str(15), "atomic-write") == 0);
}

/* What the header of rdma-core 45 and later defines, so that its programs have it inline. */
static void
later_ibv_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
		   uint8_t type, uint8_t level)
{
	((struct later_qp_ex *)qp)->wr_flush(qp, rkey, remote_addr, len, type, level);
}

static struct ibv_wc
flushed(struct all *all, struct ibv_qp_ex *ex, uint32_t rkey, size_t len, uint8_t type,
	uint8_t level)
{
	ex->wr_id = 5;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(ex);
	later_ibv_wr_flush(ex, rkey, (uintptr_t)all->memory, len, type, level);
	CHECK(ibv_wr_complete(ex) == 0);
	return all_any_wc(all->cq);
}

/* After a WRITE, of a range and of the region; by a program that chains several requests. */
static void
flush(struct all *all)
{
	uint64_t ops = IBV_QP_EX_WITH_RDMA_WRITE | WITH_FLUSH;
	struct ibv_qp *a = all_qp(all, IBV_QPT_RC, all->cq, NULL, ops);
	struct ibv_qp *b = all_qp(all, IBV_QPT_RC, all->cq, NULL, ops);
	struct ibv_mr *mr = ibv_reg_mr(all->pd, all->memory, BYTES, ALL_ACCESS | ACCESS_FLUSH);
	struct ibv_qp_attr access = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH |
							ACCESS_FLUSH_PERSISTENT};
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a);
	struct ibv_device_attr_ex device;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr query;
	struct ibv_wc wc;

	CHECK(mr != NULL);
	CHECK_NULL(ibv_reg_mr(all->pd, all->memory, BYTES, ACCESS_FLUSH_PERSISTENT), EOPNOTSUPP);
	CHECK(ibv_query_device_ex(all->context, NULL, &device) == 0);
	CHECK((device.device_cap_flags_ex >> 38 & 7) == 5); /* GLOBAL and ATOMIC WRITE */
	all_connect(all, a, b);
	CHECK(ibv_modify_qp(b, &access, IBV_QP_ACCESS_FLAGS) == 0);
	CHECK(ibv_query_qp(b, &query, IBV_QP_ACCESS_FLAGS, &init) == 0);
	CHECK(query.qp_access_flags == access.qp_access_flags);
	memcpy(all->memory, "flushed", 8);
	ex->wr_flags = 0;
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)all->memory + 4096);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)all->memory, 8);
	ex->wr_id = 4;
	ex->wr_flags = IBV_SEND_SIGNALED;
	later_ibv_wr_flush(ex, mr->rkey, (uintptr_t)all->memory + 4096, 8, FLUSH_GLOBAL, 0);
	CHECK(ibv_wr_complete(ex) == 0);
	wc = all_wc(all->cq);
	CHECK(wc.wr_id == 4 && wc.opcode == 8 && wc.status == IBV_WC_SUCCESS);
	CHECK(strcmp((char *)all->memory + 4096, "flushed") == 0);
	CHECK(flushed(all, ex, mr->rkey, 12345678, FLUSH_GLOBAL, FLUSH_OF_MR).status ==
	      IBV_WC_SUCCESS);
	ibv_wr_start(ex);
	later_ibv_wr_flush(ex, mr->rkey, 0, (size_t)1 << 33, FLUSH_GLOBAL, 0);
	CHECK(ibv_wr_complete(ex) == EINVAL);
	ibv_wr_start(ex);
	later_ibv_wr_flush(ex, mr->rkey, 0, 8, 0, 0);
	CHECK(ibv_wr_complete(ex) == EINVAL);
	/* no memory is persistent */
	CHECK(flushed(all, ex, mr->rkey, 8, FLUSH_PERSISTENT, 0).status == IBV_WC_REM_ACCESS_ERR);
	CHECK(ibv_destroy_qp(a) == 0);
	CHECK(ibv_destroy_qp(b) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
}

int
main(void)
{
	struct all all;

	all_open(&all);
	regions(&all);
	refused_regions(&all);
	buffers(&all);
	speed(&all);
	absent(&all);
	names(&all);
	flush(&all);
	all_close(&all);
	puts("every later function answers as its page says");
	return 0;
}
