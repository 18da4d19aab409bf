/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IPC_MEMORY_IMPL_H
#define IPC_MEMORY_IMPL_H

/*
 * Shared by ipc_memory.c (attachment), ipc_arena.c (places), ipc_translate.c (holds, pages) and
 * ipc_guard.c (lost pages).
 */

#include "ipc_memory.h"

#define IPC_HOLD_BUCKETS 1024u
#define IPC_PAGE_LOG 12u
#define IPC_HUGE_LOG 21u
#define IPC_GIANT_LOG 30u
#define IPC_PAGE (UINT64_C(1) << IPC_PAGE_LOG)

struct ipc_segment {
	uint64_t va;	 /* address in the client */
	uint64_t bus;	 /* address in the daemon */
	uint64_t length; /* 0: the slot is free; read by the handler */
	uint32_t holders;
	uint32_t page; /* page size in bytes */
	uint32_t lost; /* number of times that pages were replaced by zeros */
	bool read_only;
	bool by_reading;  /* its pages are entered as a read access does it */
	uint64_t held_by; /* the hold that it was put into last */
	struct ipc_segment *next_free;
};

struct ipc_hold {
	struct ipc_hold *next;
	enum ipc_holder kind;
	uint32_t number;
	uint64_t id; /* no other has had it */
	uint32_t count, room;
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
	struct ipc_segment *free;    /* slots that were in use */
	uint32_t slots;		     /* that have ever been in use; read by the handler */
	struct ipc_segment **by_va;  /* `count` of them, ordered by va */
	struct ipc_segment **by_bus; /* the same, ordered by bus */
	uint32_t count;
	uint32_t maps; /* mappings of the process for them, in addition to one of the arena */
	uint32_t lost; /* number of lost segments; written by the handler */
	struct ipc_hold *holds[IPC_HOLD_BUCKETS];
};

/* ---- ipc_arena.c ---- */

/* A free slot, or NULL; and give it back. */
struct ipc_segment *ipc_arena_slot(struct ipc_memory *m);
void ipc_arena_unslot(struct ipc_memory *m, struct ipc_segment *s);
/* The first segment that ends after va, as an index of by_va */
uint32_t ipc_arena_behind(const struct ipc_memory *m, uint64_t va);
/* The segment that contains va, or NULL */
struct ipc_segment *ipc_arena_at(const struct ipc_memory *m, uint64_t va);
/* A free place for a segment at va; 0: no free place. */
uint64_t ipc_arena_place(const struct ipc_memory *m, uint64_t va, uint64_t length);
/* Mappings of the process that a segment there costs, or has cost. */
uint32_t ipc_arena_maps(const struct ipc_memory *m, uint64_t bus, uint64_t length);
void ipc_arena_enter(struct ipc_memory *m, struct ipc_segment *s);
void ipc_arena_leave(struct ipc_memory *m, const struct ipc_segment *s);

/* ipc_guard.c: add the memory to the SIGBUS handler's table. */
int ipc_guard_add(struct ipc_memory *m);
/* After it returns no handler uses m. */
void ipc_guard_remove(struct ipc_memory *m);

#endif
