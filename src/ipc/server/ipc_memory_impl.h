/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MEMORY_IMPL_H
#define IPC_MEMORY_IMPL_H

/* Shared by ipc_memory.c and ipc_guard.c. */

#include "ipc_memory.h"

#define IPC_HOLD_BUCKETS 1024u

struct ipc_segment {
	uint64_t va;	 /* address in the client */
	uint64_t bus;	 /* address in the daemon */
	uint64_t length; /* 0: the slot is free; read by the handler */
	uint32_t holders;
	uint32_t page; /* page size in bytes */
	uint32_t lost; /* number of times that pages were replaced by zeros */
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
	uint64_t next;		     /* start of the search for the next segment */
	uint64_t attached;	     /* bytes */
	struct ipc_segment *segment; /* slots; the index is the handle */
	struct ipc_segment **by_va;  /* `count` of them, ordered by va */
	uint32_t count;
	uint32_t lost; /* number of lost segments; written by the handler */
	struct ipc_hold *holds[IPC_HOLD_BUCKETS];
};

/* ipc_guard.c: add the memory to the SIGBUS handler's table. */
int ipc_guard_add(struct ipc_memory *m);
/* After it returns no handler uses m. */
void ipc_guard_remove(struct ipc_memory *m);

#endif
