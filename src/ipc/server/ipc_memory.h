/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MEMORY_H
#define IPC_MEMORY_H

/*
 * Memory of one client as the daemon sees it. All of it is mapped inside one reserved range of
 * addresses (the arena), which is the client's DMA window; a bus address is the daemon's address of
 * the byte. What is not mapped there cannot be touched. Objects (regions, queues) hold the segments
 * they lie in; a segment goes when nobody holds it.
 *
 * Bus and client addresses of a segment agree in the bits below 2 MiB (below 1 GiB for segments
 * that long), so that large pages stay large.
 *
 * One thread per client calls in. Errors: negative errno, reason by ipc_fail().
 *
 * A client that takes pages away (ipc_watch.h: out of a small file, out of its doorbell page), or
 * whose memory is lost otherwise, makes whoever touches them get SIGBUS. The handler puts zeros in
 * their place, marks the segment lost and writes to lost_fd: its owner is to end, nobody else
 * notices.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ipc_maps.h"
#include "ipc_proto.h"

struct ipc_memory;

struct ipc_memory_config {
	uint64_t bytes_max;    /* of all segments */
	uint32_t segments_max; /* at most so many */
	int lost_fd;	       /* eventfd: counts segments that were lost */
	struct ipc_maps *maps; /* of all clients */
	uint64_t uar;	       /* the client's doorbell page, which is watched, too; 0: none */
	/* May the client have so many more? 0, or negative errno with a reason. NULL: it may. */
	int (*more)(void *arg, uint64_t bytes);
	void *more_arg;
};

/* What holds segments */
enum ipc_holder {
	IPC_HOLDER_MR,
	IPC_HOLDER_CQ,
	IPC_HOLDER_QP,
	IPC_HOLDER_SRQ,
};

struct ipc_hold;

/* Of a region; set: in foreign memory (ipc_foreign.h), where it holds no segments */
struct ipc_foreign_region {
	bool set;
	bool writes;	     /* the device may write there */
	uint64_t va, length; /* 0: a list of pages */
};

int ipc_memory_create(const struct ipc_memory_config *config, struct ipc_memory **m);
/* The device touches none of it any more. */
void ipc_memory_destroy(struct ipc_memory *m);

/* The doorbell page is about to be another's. */
void ipc_memory_forget_uar(struct ipc_memory *m);

/* The arena: the window to attach */
uint64_t ipc_memory_bus(const struct ipc_memory *m);
uint64_t ipc_memory_window(const struct ipc_memory *m);
/* Bytes of all segments */
uint64_t ipc_memory_attached(const struct ipc_memory *m);

/* fd stays the caller's. -EBADF a file that is not accepted, -EEXIST the addresses are taken */
int ipc_memory_attach(struct ipc_memory *m, const struct hca_ctl_segment *request, int fd,
		      uint32_t *handle);
/* -EBUSY: an object lies in it. */
int ipc_memory_detach(struct ipc_memory *m, uint32_t handle);

/*
 * Translation, in two steps: take segments into a hold, then bind it to the object it became, or
 * drop it. One piece: [va, va + bytes) in one segment.
 */
struct ipc_hold *ipc_hold_new(void);
void ipc_hold_drop(struct ipc_memory *m, struct ipc_hold *hold);
void ipc_hold_bind(struct ipc_memory *m, struct ipc_hold *hold, enum ipc_holder kind,
		   uint32_t number);
struct ipc_foreign_region *ipc_hold_foreign(struct ipc_hold *hold);
/* The hold of an object, where it is; NULL: it has none. */
struct ipc_hold *ipc_hold_find(struct ipc_memory *m, enum ipc_holder kind, uint32_t number);
/* The hold of an object, taken out; NULL: it has none. */
struct ipc_hold *ipc_hold_take(struct ipc_memory *m, enum ipc_holder kind, uint32_t number);

int ipc_translate(struct ipc_memory *m, struct ipc_hold *hold, uint64_t va, uint64_t bytes,
		  uint64_t *bus);
/*
 * Pages of a region: with npages 0 those from mr->va on, page size chosen here; else `list` has
 * npages client addresses, which become bus addresses. *out: malloc()ed or list itself.
 */
int ipc_translate_mr(struct ipc_memory *m, struct ipc_hold *hold, struct hca_ctl_mr *mr,
		     uint64_t *list, uint64_t **out);

/*
 * Install the SIGBUS handler of the process, once; faults elsewhere go to the handler that was
 * there before.
 */
int ipc_memory_guard(void);

/* Note the reason for this thread and return err. */
int ipc_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *ipc_reason(void);

#endif
