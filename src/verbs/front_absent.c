/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Names that libibverbs.so.1 must have for programs and providers to load, and that have no
 * function here: the interface between libibverbs and the providers of other devices, which are not
 * loaded, and the interface of 2006 (nodes IBVERBS_1.0), whose structures no program of today has.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "front_kern.h"

static int
refuse(const char *name, const char *of)
{
	return front_refuse(ENOSYS, name, "%s", of);
}

/* ---- providers ---- */

#define OF_PROVIDERS "is for providers of other devices, which this library does not have"

/* Calls of rdma-core 44; X(name) */
#define PROVIDER_CALLS(X) \
	X(execute_ioctl) \
	X(ibv_cmd_advise_mr) \
	X(ibv_cmd_alloc_dm) \
	X(ibv_cmd_alloc_mw) \
	X(ibv_cmd_alloc_pd) \
	X(ibv_cmd_attach_mcast) \
	X(ibv_cmd_close_xrcd) \
	X(ibv_cmd_create_ah) \
	X(ibv_cmd_create_counters) \
	X(ibv_cmd_create_cq) \
	X(ibv_cmd_create_cq_ex) \
	X(ibv_cmd_create_cq_ex2) \
	X(ibv_cmd_create_flow) \
	X(ibv_cmd_create_flow_action_esp) \
	X(ibv_cmd_create_qp) \
	X(ibv_cmd_create_qp_ex) \
	X(ibv_cmd_create_qp_ex2) \
	X(ibv_cmd_create_rwq_ind_table) \
	X(ibv_cmd_create_srq) \
	X(ibv_cmd_create_srq_ex) \
	X(ibv_cmd_create_wq) \
	X(ibv_cmd_dealloc_mw) \
	X(ibv_cmd_dealloc_pd) \
	X(ibv_cmd_dereg_mr) \
	X(ibv_cmd_destroy_ah) \
	X(ibv_cmd_destroy_counters) \
	X(ibv_cmd_destroy_cq) \
	X(ibv_cmd_destroy_flow) \
	X(ibv_cmd_destroy_flow_action) \
	X(ibv_cmd_destroy_qp) \
	X(ibv_cmd_destroy_rwq_ind_table) \
	X(ibv_cmd_destroy_srq) \
	X(ibv_cmd_destroy_wq) \
	X(ibv_cmd_detach_mcast) \
	X(ibv_cmd_free_dm) \
	X(ibv_cmd_get_context) \
	X(ibv_cmd_modify_cq) \
	X(ibv_cmd_modify_flow_action_esp) \
	X(ibv_cmd_modify_qp) \
	X(ibv_cmd_modify_qp_ex) \
	X(ibv_cmd_modify_srq) \
	X(ibv_cmd_modify_wq) \
	X(ibv_cmd_open_qp) \
	X(ibv_cmd_open_xrcd) \
	X(ibv_cmd_poll_cq) \
	X(ibv_cmd_post_recv) \
	X(ibv_cmd_post_send) \
	X(ibv_cmd_post_srq_recv) \
	X(ibv_cmd_query_context) \
	X(ibv_cmd_query_device_any) \
	X(ibv_cmd_query_mr) \
	X(ibv_cmd_query_port) \
	X(ibv_cmd_query_qp) \
	X(ibv_cmd_query_srq) \
	X(ibv_cmd_read_counters) \
	X(ibv_cmd_reg_dm_mr) \
	X(ibv_cmd_reg_dmabuf_mr) \
	X(ibv_cmd_reg_mr) \
	X(ibv_cmd_req_notify_cq) \
	X(ibv_cmd_rereg_mr) \
	X(ibv_cmd_resize_cq)

/* Calls that are newer */
#define LATER_CALLS(X) \
	X(ibv_cmd_alloc_dmah) \
	X(ibv_cmd_create_comp_cntr) \
	X(ibv_cmd_destroy_comp_cntr) \
	X(ibv_cmd_export_dmabuf_fd) \
	X(ibv_cmd_free_dmah) \
	X(ibv_cmd_inc_comp_cntr) \
	X(ibv_cmd_inc_err_comp_cntr) \
	X(ibv_cmd_qp_attach_comp_cntr) \
	X(ibv_cmd_query_comp_cntr_caps) \
	X(ibv_cmd_query_port_speed) \
	X(ibv_cmd_read_comp_cntr) \
	X(ibv_cmd_read_err_comp_cntr) \
	X(ibv_cmd_reg_mr_ex) \
	X(ibv_cmd_set_comp_cntr) \
	X(ibv_cmd_set_err_comp_cntr) \
	X(ibv_dmabuf_heap_alloc) \
	X(ibv_dmabuf_heap_cc_shared_init) \
	X(ibv_dmabuf_heap_destroy) \
	X(ibv_dmabuf_heap_free)

#define X(name) \
	static int name(void) \
	{ \
		return refuse(#name, OF_PROVIDERS); \
	}
PROVIDER_CALLS(X)
LATER_CALLS(X)
#undef X

static bool verbs_allow_disassociate_destroy;

/* Called by constructors of providers, which programs may link. */
static void
register_driver(const void *ops)
{
	(void)ops;
}

static void
verbs_set_ops(void *context, const void *ops)
{
	(void)context;
	(void)ops;
	refuse(__func__, OF_PROVIDERS);
}

static void
verbs_uninit_context(void *context)
{
	(void)context;
	refuse(__func__, OF_PROVIDERS);
}

static void
verbs_init_cq(void *cq, void *context, void *channel, void *cq_context)
{
	(void)cq;
	(void)context;
	(void)channel;
	(void)cq_context;
	refuse(__func__, OF_PROVIDERS);
}

static void *
verbs_open_device(void *device, void *private_data)
{
	(void)device;
	(void)private_data;
	refuse(__func__, OF_PROVIDERS);
	return NULL;
}

static void *
_verbs_init_and_alloc_context(void *device, int cmd_fd, size_t bytes, void *context,
			      uint32_t driver)
{
	(void)device;
	(void)context;
	refuse(__func__, OF_PROVIDERS);
	return NULL;
}

/* The attributes of a command that will be refused */
static unsigned int
__ioctl_final_num_attrs(unsigned int num_attrs, void *link)
{
	(void)link;
	return num_attrs;
}

static __attribute__((format(printf, 4, 5))) int
ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *sysfs_dev, const char *format, ...)
{
	(void)sysfs_dev;
	if (size != 0)
		buf[0] = '\0';
	refuse(__func__, OF_PROVIDERS);
	return -1;
}

static __attribute__((format(printf, 3, 4))) void
__verbs_log(void *context, uint32_t level, const char *format, ...)
{
	va_list args;

	(void)context;
	if (secure_getenv("SOFTHCA_DEBUG") == NULL)
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

/* These two are real, and defined elsewhere. */
static int
gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
	 enum ibv_gid_type_sysfs *type)
{
	return ibv_query_gid_type(context, port_num, index, type);
}

static const char *
wr_opcode_str(enum ibv_wr_opcode opcode)
{
	return ibv_wr_opcode_str(opcode);
}

/*
 * A node for each change of the structures behind the calls, of which nothing is used here: in
 * releases 34 to 56, 57, 59, 64 and 65. Each has all names that any of them needs.
 */
#define AT_NODES(name, here) \
	AT_NODE(34, name, here) \
	AT_NODE(57, name, here) \
	AT_NODE(59, name, here) \
	AT_NODE(64, name, here) \
	AT_NODE(65, name, here)
#define ALIAS(node, name) \
	front_##node##_ \
	##name
#define AT_NODE(node, name, here) \
	FRONT_API extern __typeof__(here) ALIAS(node, name) __attribute__((alias(#here))); \
	__asm__(".symver front_" #node "_" #name ", " #name "@IBVERBS_PRIVATE_" #node);
#define X(name) AT_NODES(name, name)
PROVIDER_CALLS(X)
LATER_CALLS(X)
X(__ioctl_final_num_attrs)
X(__verbs_log)
X(_verbs_init_and_alloc_context)
X(ibv_read_ibdev_sysfs_file)
X(verbs_allow_disassociate_destroy)
X(verbs_init_cq)
X(verbs_open_device)
X(verbs_set_ops)
X(verbs_uninit_context)
#undef X
AT_NODES(ibv_query_gid_type, gid_type)
AT_NODES(ibv_wr_opcode_str, wr_opcode_str)
#define X(node) AT_NODE(node, verbs_register_driver_##node, register_driver)
X(34)
X(57)
X(59)
X(64)
X(65)
#undef X

/* ---- the old interface ---- */

#define OF_2006 "is of the interface of 2006 (IBVERBS_1.0): compile the program anew"

#define OLD_NAME(name, node) __asm__(".symver front_old_" #name ", ibv_" #name "@" node)

/* X(name without ibv_, type, return value) */
#define OLD_CALLS(X) \
	X(alloc_pd, void *, NULL) \
	X(dealloc_pd, int, ENOSYS) \
	X(reg_mr, void *, NULL) \
	X(dereg_mr, int, ENOSYS) \
	X(get_device_list, void *, NULL) \
	X(free_device_list, int, ENOSYS) \
	X(get_device_name, void *, NULL) \
	X(get_device_guid, uint64_t, 0) \
	X(open_device, void *, NULL) \
	X(close_device, int, ENOSYS) \
	X(query_device, int, ENOSYS) \
	X(query_port, int, ENOSYS) \
	X(query_gid, int, -1) \
	X(query_pkey, int, -1) \
	X(create_cq, void *, NULL) \
	X(resize_cq, int, ENOSYS) \
	X(destroy_cq, int, ENOSYS) \
	X(get_cq_event, int, -1) \
	X(ack_cq_events, int, ENOSYS) \
	X(create_srq, void *, NULL) \
	X(modify_srq, int, ENOSYS) \
	X(query_srq, int, ENOSYS) \
	X(destroy_srq, int, ENOSYS) \
	X(create_qp, void *, NULL) \
	X(query_qp, int, ENOSYS) \
	X(modify_qp, int, ENOSYS) \
	X(destroy_qp, int, ENOSYS) \
	X(create_ah, void *, NULL) \
	X(destroy_ah, int, ENOSYS) \
	X(attach_mcast, int, ENOSYS) \
	X(detach_mcast, int, ENOSYS) \
	X(get_async_event, int, -1) \
	X(ack_async_event, int, ENOSYS)

#define X(name, type, value) \
	FRONT_API type front_old_##name(void); \
	type front_old_##name(void) \
	{ \
		refuse("ibv_" #name, OF_2006); \
		return value; \
	} \
	OLD_NAME(name, "IBVERBS_1.0");
OLD_CALLS(X)
#undef X

/* Another name that only programs of long ago have */
FRONT_API void front_old_register_driver(const char *name, void *init);
void
front_old_register_driver(const char *name, void *init)
{
	(void)name;
	(void)init;
	refuse("ibv_register_driver", OF_PROVIDERS);
}
OLD_NAME(register_driver, "IBVERBS_1.1");
