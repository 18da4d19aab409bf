/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRONT_KERN_H
#define FRONT_KERN_H

/*
 * Functions that only librdmacm and the tools call. They are part of the library's interface, and
 * declared in headers that are not installed.
 */

#pragma GCC visibility push(default)
#include <rdma/ib_user_verbs.h>
#include <rdma/ib_user_sa.h>
#include <infiniband/sa.h>
#pragma GCC visibility pop

#include "front.h"

FRONT_API void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
FRONT_API void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
FRONT_API void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst,
					   struct ib_user_path_rec *src);
FRONT_API void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

FRONT_API const char *ibv_get_sysfs_path(void);
FRONT_API int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
FRONT_API int ibv_dontfork_range(void *base, size_t size);
FRONT_API int ibv_dofork_range(void *base, size_t size);
FRONT_API const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

/* The kernel's sysfs values of GIDs, as numbers */
enum ibv_gid_type_sysfs {
	IBV_GID_TYPE_SYSFS_IB_ROCE_V1,
	IBV_GID_TYPE_SYSFS_ROCE_V2,
};

FRONT_API int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
				 enum ibv_gid_type_sysfs *type);

#endif
