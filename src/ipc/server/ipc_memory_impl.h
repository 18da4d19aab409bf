/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MEMORY_IMPL_H
#define IPC_MEMORY_IMPL_H

/* What ipc_memory.c and ipc_guard.c share. */

#include "ipc_memory.h"

#define IPC_HOLD_BUCKETS 1024u

struct ipc_segment {
	uint64_t va;	 /* in the client */
	uint64_t bus;	 /* here */
	uint64_t length; /* 0: the slot is free; the handler reads it */
	uint32_t holders;
	uint32_t page; /* bytes of its pages */
	uint32_t lost; /* how often zeros were put in the place of pages */
};

struct ipc_hold {
	struct ipc_hold *next;
	enum ipc_holder kind;
	uint32_t number;
	uint32_t count;
	struct ipc_foreign_region foreign;
	struct ipc_segment **segment;
};

struct ipc_memory {
	struct ipc_memory_config config;
	uint64_t base;
	uint64_t bytes;
	uint64_t next;		     /* where the next segment is tried first */
	uint64_t attached;	     /* bytes */
	struct ipc_segment *segment; /* slots; the index is the handle */
	struct ipc_segment **by_va;  /* `count` of them in order */
	uint32_t count;
	uint32_t lost; /* segments; written by the handler */
	struct ipc_hold *holds[IPC_HOLD_BUCKETS];
};

/* ipc_guard.c: the SIGBUS handler knows the memory from here to there. */
int ipc_guard_add(struct ipc_memory *m);
/* When it returns no handler looks at m any more. */
void ipc_guard_remove(struct ipc_memory *m);

#endif
