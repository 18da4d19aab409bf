/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls that libibverbs has had since rdma-core 57 (nodes IBVERBS_1.15 to 1.18). They are declared
 * here, because the header of Debian 12 lacks them; a newer header declares them in the same way.
 * Structures that a caller fills have their layout here, under another name.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "front.h"

#undef ibv_reg_mr_iova

struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

FRONT_API struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *mr_init_attr);
FRONT_API int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num,
				   uint64_t *port_speed);
FRONT_API void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
FRONT_API void ibv_free_buf(struct ibv_buf *buf);
FRONT_API struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr,
					size_t length, int access);
FRONT_API int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
FRONT_API int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
FRONT_API struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
					  struct ibv_dmah_init_attr *attr);
FRONT_API int ibv_dealloc_dmah(struct ibv_dmah *dmah);
FRONT_API int _ibv_query_comp_cntr_caps(struct ibv_context *context,
					struct ibv_comp_cntr_caps *caps, size_t caps_size);
FRONT_API struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
						     struct ibv_comp_cntr_init_attr *cc_attr);
FRONT_API int ibv_destroy_comp_cntr(struct ibv_comp_cntr *comp_cntr);
FRONT_API int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *comp_cntr,
				      struct ibv_qp_attach_comp_cntr_attr *attr);
FRONT_API int ibv_set_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t value);
FRONT_API int ibv_set_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t value);
FRONT_API int ibv_inc_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t amount);
FRONT_API int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t amount);
FRONT_API int ibv_read_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t *value);
FRONT_API int ibv_read_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t *value);

/* ---- memory of the library ---- */

struct front_buf {
	struct ibv_pd *pd;
	char *addr;
	size_t size;
};

static void
buf_free(void *buf)
{
	free(((struct front_buf *)buf)->addr);
	free(buf);
}

static int
buf_destroy(void *buf, const char *call)
{
	buf_free(buf);
	return 0;
}

static const struct front_kind buf_kind = {"buffer", 0, buf_destroy, buf_free};

/* Whole pages, so that none of them is shared with other data of the program */
void *
ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size + page - 1) & ~(page - 1);
	struct front_buf *made;
	void *addr;

	if (size == 0 || bytes < size)
		return FRONT_NULL(EINVAL, "a buffer of %zu bytes", size);
	made = FRONT_NEW(struct front_buf);
	if (made == NULL)
		return NULL;
	addr = aligned_alloc(page, bytes);
	if (addr == NULL) {
		free(made);
		return FRONT_NULL(ENOMEM, "no memory for a buffer of %zu bytes", size);
	}
	*made = (struct front_buf){.pd = pd, .addr = addr, .size = size};
	if (FRONT_ENTER_PD(made, &buf_kind, pd) == NULL)
		return NULL;
	*buf = (struct ibv_buf *)made;
	return addr;
}

void
ibv_free_buf(struct ibv_buf *buf)
{
	FRONT_DESTROY(buf, &buf_kind);
}

int
ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	FRONT_REFUSE(ENODATA, "no buffer is a DMA buffer");
	return -1;
}

/* ---- regions ---- */

/* struct ibv_mr_init_attr, and enum ibv_mr_init_attr_mask */
struct front_mr_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	struct ibv_dmah *dmah;
	struct ibv_buf *buf;
};

#define MR_IOVA (UINT64_C(1) << 0)
#define MR_ADDR (UINT64_C(1) << 1)
#define MR_FD (UINT64_C(1) << 2)
#define MR_FD_OFFSET (UINT64_C(1) << 3)
#define MR_BUF (UINT64_C(1) << 5)
#define MR_ALL (MR_IOVA | MR_ADDR | MR_FD | MR_FD_OFFSET | MR_BUF)

static bool
is_inside(const struct front_buf *buf, const char *addr, size_t length)
{
	return addr >= buf->addr && (size_t)(addr - buf->addr) <= buf->size &&
	       length <= buf->size - (size_t)(addr - buf->addr);
}

/* The request, with the errors of libibverbs for it */
static int
judge_region(const struct ibv_pd *pd, const struct front_mr_attr *attr)
{
	const struct front_buf *buf = (const struct front_buf *)attr->buf;

	if ((attr->comp_mask & ~MR_ALL) != 0)
		return front_refuse(EOPNOTSUPP, "ibv_reg_mr_ex",
				    "comp_mask %#llx: expected a set of %#llx",
				    (unsigned long long)attr->comp_mask,
				    (unsigned long long)MR_ALL);
	if ((attr->comp_mask & (MR_FD | MR_ADDR | MR_BUF)) == MR_FD)
		return front_refuse(
			EOPNOTSUPP, "ibv_reg_mr_ex",
			"comp_mask %#llx names a DMA buffer, which is not offered: register mapped "
			"memory by its address",
			(unsigned long long)attr->comp_mask);
	if ((attr->comp_mask & MR_ADDR) == 0 || (attr->comp_mask & (MR_FD | MR_FD_OFFSET)) != 0)
		return front_refuse(
			EINVAL, "ibv_reg_mr_ex",
			"comp_mask %#llx: expected IBV_REG_MR_MASK_ADDR, and no descriptor",
			(unsigned long long)attr->comp_mask);
	if ((attr->comp_mask & MR_BUF) != 0 &&
	    (buf->pd != pd || !is_inside(buf, attr->addr, attr->length)))
		return front_refuse(
			EINVAL, "ibv_reg_mr_ex",
			"%zu bytes at %p are not in the buffer, which has %zu bytes at %p, or the "
			"PD is another one",
			attr->length, attr->addr, buf->size, buf->addr);
	return 0;
}

struct ibv_mr *
ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *mr_init_attr)
{
	const struct front_mr_attr *attr = (const struct front_mr_attr *)mr_init_attr;
	uint64_t iova = (uintptr_t)attr->addr;

	if (judge_region(pd, attr) != 0)
		return NULL;
	if ((attr->comp_mask & MR_IOVA) != 0)
		iova = attr->iova;
	return ibv_reg_mr_iova(pd, attr->addr, attr->length, iova, attr->access);
}

struct ibv_mr *
ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access)
{
	struct front_mr_attr attr = {
		.length = length,
		.access = access,
		.comp_mask = MR_BUF | MR_ADDR,
		.addr = addr,
		.buf = buf,
	};

	return ibv_reg_mr_ex(pd, (struct ibv_mr_init_attr *)&attr);
}

/* ---- the port ---- */

/* In units of 100 Mb/s */
int
ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed)
{
	struct softhca_port_attr attr;
	int err = FRONT_RESULT(softhca_query_port(front_hca(context), port_num, &attr));

	if (err == 0)
		*port_speed = attr.link_speed / 100;
	return err;
}

/* ---- not offered by the device ---- */

#define NO_MEMORY "the device has no memory of its own"
#define NO_HANDLES "the device takes no hints about caches"
#define NO_COUNTERS "the device has no completion counters"

int
ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	FRONT_REFUSE(EOPNOTSUPP, NO_MEMORY);
	return -1;
}

struct ibv_dmah *
ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr)
{
	return FRONT_NULL(EOPNOTSUPP, NO_HANDLES);
}

int
ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	return FRONT_REFUSE(EOPNOTSUPP, NO_HANDLES);
}

int
_ibv_query_comp_cntr_caps(struct ibv_context *context, struct ibv_comp_cntr_caps *caps,
			  size_t caps_size)
{
	return FRONT_REFUSE(EOPNOTSUPP, NO_COUNTERS);
}

struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context, struct ibv_comp_cntr_init_attr *cc_attr)
{
	return FRONT_NULL(EOPNOTSUPP, NO_COUNTERS);
}

int
ibv_destroy_comp_cntr(struct ibv_comp_cntr *comp_cntr)
{
	return FRONT_REFUSE(EOPNOTSUPP, NO_COUNTERS);
}

int
ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *comp_cntr,
			struct ibv_qp_attach_comp_cntr_attr *attr)
{
	return FRONT_REFUSE(EOPNOTSUPP, NO_COUNTERS);
}

int
ibv_set_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t value)
{
	return FRONT_REFUSE(EOPNOTSUPP, NO_COUNTERS);
}

int
ibv_set_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t value)
{
	return FRONT_REFUSE(EOPNOTSUPP, NO_COUNTERS);
}

int
ibv_inc_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t amount)
{
	return FRONT_REFUSE(EOPNOTSUPP, NO_COUNTERS);
}

int
ibv_inc_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t amount)
{
	return FRONT_REFUSE(EOPNOTSUPP, NO_COUNTERS);
}

int
ibv_read_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t *value)
{
	return FRONT_REFUSE(EOPNOTSUPP, NO_COUNTERS);
}

int
ibv_read_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t *value)
{
	return FRONT_REFUSE(EOPNOTSUPP, NO_COUNTERS);
}
