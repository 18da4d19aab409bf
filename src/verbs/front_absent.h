/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRONT_ABSENT_H
#define FRONT_ABSENT_H

/*
 * The private interface of libibverbs (IBVERBS_PRIVATE_34): that its names are there is all that is
 * needed, so that structures are only pointers. Calls that are not here take what they are given.
 */

#include "front.h"

FRONT_API extern bool verbs_allow_disassociate_destroy;

FRONT_API void verbs_register_driver_34(const void *ops);
FRONT_API void verbs_set_ops(void *context, const void *ops);
FRONT_API void verbs_uninit_context(void *context);
FRONT_API void verbs_init_cq(void *cq, void *context, void *channel, void *cq_context);
FRONT_API void *verbs_open_device(void *device, void *private_data);
FRONT_API void *_verbs_init_and_alloc_context(void *device, int cmd_fd, size_t bytes, void *context,
					      uint32_t driver);
FRONT_API unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, void *link);
FRONT_API int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *sysfs_dev, const char *format,
					...) __attribute__((format(printf, 4, 5)));
FRONT_API void __verbs_log(void *context, uint32_t level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
