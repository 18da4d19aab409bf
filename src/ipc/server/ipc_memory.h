/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MEMORY_H
#define IPC_MEMORY_H

/*
 * Memory of one client as the daemon maps it. All of it lies in one reserved address range (the
 * arena), which is the client's DMA window; a bus address is the daemon's address of the byte.
 * Memory that is not mapped there cannot be accessed. Objects (regions, queues) hold the segments
 * they lie in; a segment is unmapped when none holds it.
 *
 * Bus and client addresses of a segment of 2 MiB or more are equal in the bits below 2 MiB (below
 * 1 GiB for segments of that size), so that large pages can be used.
 *
 * One thread per client makes the calls. Errors are a negative errno, reason by ipc_fail().
 *
 * If a client removes pages (ipc_watch.h: of a file that is not sealed, or its doorbell page), or
 * its memory is lost otherwise, accesses raise SIGBUS. The handler puts zeros in their place, marks
 * the segment lost and writes to lost_fd: the client's session must end, others are not affected.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ipc_maps.h"
#include "ipc_proto.h"

struct ipc_memory;

struct ipc_memory_config {
	uint64_t bytes_max;    /* of all segments */
	uint32_t segments_max; /* limit of segments */
	int lost_fd;	       /* eventfd: counts lost segments */
	struct ipc_maps *maps; /* of all clients */
	bool trusted;	       /* its files need no guard (abi_ctl.h, ATTACH) */
	uint64_t uar;	       /* the client's doorbell page, which is also watched; 0: none */
	/*
	 * Whether the client may attach this number of further bytes: 0, or a negative errno with a
	 * reason. NULL: no limit.
	 */
	int (*more)(void *arg, uint64_t bytes);
	void *more_arg;
};

/* Kinds of objects that hold segments */
enum ipc_holder {
	IPC_HOLDER_MR,
	IPC_HOLDER_CQ,
	IPC_HOLDER_QP,
	IPC_HOLDER_SRQ,
};

struct ipc_hold;

/* A region; set: in foreign memory (ipc_foreign.h), where it holds no segments */
struct ipc_foreign_region {
	bool set;
	bool writes;	     /* the device may write there */
	uint64_t va, length; /* 0: a list of pages */
};

int ipc_memory_create(const struct ipc_memory_config *config, struct ipc_memory **m);
/* Destroy it when the device does not access the memory any more. */
void ipc_memory_destroy(struct ipc_memory *m);

/* Stop watching the doorbell page, before it gets another owner. */
void ipc_memory_forget_uar(struct ipc_memory *m);

/* The arena, to be attached as DMA window */
uint64_t ipc_memory_bus(const struct ipc_memory *m);
uint64_t ipc_memory_window(const struct ipc_memory *m);
/* Size of all segments */
uint64_t ipc_memory_attached(const struct ipc_memory *m);

/*
 * Map a segment; the caller keeps fd. -EBADF: the file is not acceptable; -EEXIST: the addresses
 * are in use.
 */
int ipc_memory_attach(struct ipc_memory *m, const struct hca_ctl_segment *request, int fd,
		      uint32_t *handle);
/* Whether this number of further bytes could be attached: 0 or -ENOMEM. */
int ipc_memory_fits(const struct ipc_memory *m, uint64_t bytes, uint32_t segments);
/* Unmap a segment; -EBUSY: an object lies in it. */
int ipc_memory_detach(struct ipc_memory *m, uint32_t handle);

/*
 * Translation in two steps: put segments into a hold, then bind it to the new object, or drop it.
 * This one: [va, va + bytes) inside one segment.
 */
struct ipc_hold *ipc_hold_new(void);
void ipc_hold_drop(struct ipc_memory *m, struct ipc_hold *hold);
void ipc_hold_bind(struct ipc_memory *m, struct ipc_hold *hold, enum ipc_holder kind,
		   uint32_t number);
/* Whether the device may write to all its segments: 0 or -EFAULT. */
int ipc_hold_writable(const struct ipc_hold *hold);
struct ipc_foreign_region *ipc_hold_foreign(struct ipc_hold *hold);
/* The hold of an object, or NULL. */
struct ipc_hold *ipc_hold_find(struct ipc_memory *m, enum ipc_holder kind, uint32_t number);
/* Remove and return the hold of an object, or NULL. */
struct ipc_hold *ipc_hold_take(struct ipc_memory *m, enum ipc_holder kind, uint32_t number);

int ipc_translate(struct ipc_memory *m, struct ipc_hold *hold, uint64_t va, uint64_t bytes,
		  uint64_t *bus);
/*
 * Translate the pages of a region: with npages 0 those from mr->va on, page size chosen here;
 * otherwise `list` has npages client addresses, which are replaced by bus addresses. *out:
 * malloc()ed, or list.
 */
int ipc_translate_mr(struct ipc_memory *m, struct ipc_hold *hold, struct hca_ctl_mr *mr,
		     uint64_t *list, uint64_t **out);

/* Install the SIGBUS handler of the process, once; faults elsewhere go to the previous handler. */
int ipc_memory_guard(void);

/* Record the reason for this thread; returns err. */
int ipc_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *ipc_reason(void);
/* An allocation for this object has failed. Returns -ENOMEM. */
int ipc_no_memory(const char *object, size_t bytes);

#endif
