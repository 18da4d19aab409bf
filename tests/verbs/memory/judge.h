/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_VERBS_MEMORY_JUDGE_H
#define TESTS_VERBS_MEMORY_JUDGE_H

/*
 * The judge: a program of plain verbs that changes, maps, registers and transfers memory at random,
 * and a model of private memory and of pinned pages that computes the bytes it must read.
 *
 * The model has frames, as a machine has: `struct page`. A virtual page maps a frame, a file holds
 * frames, and a region pins those that were mapped when it was made. A page that the program unmaps
 * or exchanges under a region belongs to the region alone from then on (detached): an access there
 * finds the old bytes or fails.
 *
 * The steps depend on the seed alone; addresses are not randomized.
 */

#include "../all.h"

#define PAGE ((size_t)4096)
#define MAX_WINDOWS 24
#define MAX_OBJECTS 4
#define MAX_REGIONS 32
#define MAX_REGION_PAGES 514u
#define MAX_CHUNKS 48
#define MAX_CHUNK ((size_t)1 << 20)
#define MAX_TRANSFER ((size_t)65536)

struct page {
	uint8_t bytes[PAGE];
	uint32_t mapped; /* virtual pages that map it */
	uint32_t pins;	 /* pages of regions */
	uint32_t held;	 /* by a file */
	bool unknown;	 /* a failed transfer may have written it */
	struct page *next_free;
};

enum sort {
	PRIVATE,
	PRIVATE_FILE,
	SHARED
};

/* A virtual page; without a page the program has no mapping there. */
struct vpage {
	struct page *page;
	enum sort sort;
	uint8_t prot, max_prot;
	bool dontfork, locked;
	bool grown;		   /* by mremap(): mapped as the extended pages are */
	const uint8_t *file_bytes; /* of PRIVATE_FILE: contents after MADV_DONTNEED */
};

/* Allowed steps on a window */
#define MAY_MAP 1u	/* unmapped, mapped over, moved, grown */
#define MAY_PROTECT 2u	/* mprotect, mlock */
#define MAY_ADVISE 4u	/* madvise that keeps the contents */
#define MAY_DONTNEED 8u /* madvise that does not */
#define MAY_BREAK 16u	/* shrunk and grown by sbrk */
#define MAY_DETACH 32u	/* SysV */

/* A range of addresses with one frame or none at each */
struct window {
	const char *name;
	uint8_t *va;
	uint32_t n;
	uint32_t may;
	bool in_place; /* a daemon reaches it where it is */
	bool rare;     /* large: it is looked at now and then */
	size_t owned;  /* bytes of each page that are the main thread's */
	int shmid;
	struct vpage *v;
};

/* A file whose pages are mapped shared */
struct object {
	const char *name;
	int fd, fd_ro;
	uint32_t n;
	struct page **page;
};

struct chunk {
	uint8_t *p; /* NULL: free */
	size_t size;
	uint8_t *shadow;
	uint32_t serial; /* lives it has had */
};

struct region {
	struct ibv_mr *mr; /* NULL: free */
	uint8_t *va;
	size_t length;
	uint64_t base; /* its first byte on the wire */
	int access;
	bool in_place;
	bool fixed_base;     /* zero-based or with an iova of its own */
	struct chunk *chunk; /* or */
	struct window *window;
	uint32_t serial;
	uint32_t first, npages; /* in the window */
	struct page *page[MAX_REGION_PAGES];
};

enum pinned {
	PINNED_NONE,
	PINNED_PRIVATE,
	PINNED_ALL
};

struct judge {
	uint64_t seed, random, step;
	enum pinned pinned;
	bool free_registered; /* memory is freed and reallocated while regions lie in it */
	bool threads;
	bool refusals; /* memory without the requested access is also registered */
	struct all all;
	struct ibv_qp *qp[2];
	struct window window[MAX_WINDOWS];
	uint32_t windows;
	struct object object[MAX_OBJECTS];
	uint32_t objects;
	const struct object *constant; /* a file that is mapped privately */
	struct region region[MAX_REGIONS];
	struct chunk chunk[MAX_CHUNKS];
	bool child;
	bool shared_changes; /* by the parent, after the child has looked */
	struct {
		uint64_t maps, heap, forks, registered, refused, reregistered, transfers, detached,
			failed;
	} count;
};

extern struct judge judge;

/* ---- chance ---- */

uint64_t random64(void);
/* 0 to n - 1 */
uint32_t random_below(uint32_t n);
bool chance(uint32_t percent);
void random_fill(uint8_t *to, size_t bytes);

/* ---- model ---- */

/* Memory of the model itself, apart from the judged memory: never freed, zeroed */
void *model_memory(size_t bytes);
struct page *page_new(void);
/* Frees it if unused. */
void page_drop(struct page *page);

struct window *window_new(const char *name, void *va, uint32_t n, uint32_t may);
/* A window that allows all of this, at random; NULL: no such window */
struct window *window_pick(uint32_t may);
void vpage_put(struct window *w, uint32_t i, const struct vpage *v);
void vpage_clear(struct window *w, uint32_t i);
bool vpage_is_mapped(const struct vpage *v);
bool vpage_is_hole(const struct vpage *v);
bool vpage_is_readable(const struct vpage *v);
bool vpage_is_writable(const struct vpage *v);
/* At random, up to max neighbours that are all of a kind; false: none found */
bool run_pick(const struct window *w, bool (*want)(const struct vpage *), uint32_t max,
	      uint32_t *first, uint32_t *n);

/* The program writes new bytes: pages are writable. */
void window_store(struct window *w, uint32_t first, size_t offset, size_t bytes);
/* At most `bytes` at random in a run of writable pages */
void window_store_somewhere(struct window *w, size_t bytes);

void check_pages(const struct window *w, uint32_t first, uint32_t n);
void check_chunk(const struct chunk *c);
/* All memory; rare: also large windows */
void check_all(bool rare);
/*
 * Protections, and that memory without a region is private: the kernel's view of the windows. end:
 * there are no regions, so that pages added by mremap() are private as well.
 */
void check_maps(bool end);

/* ---- history ---- */

__attribute__((format(printf, 3, 4))) void note(const void *va, size_t bytes, const char *format,
						...);
/* Reports a difference of n bytes at va, with their history, and exits. */
_Noreturn void differs(const char *what, const void *va, const uint8_t *expected,
		       const uint8_t *found, size_t n);
/* A call that must not fail has failed. */
_Noreturn void failed(const char *call, const void *va, size_t bytes);

/* ---- steps ---- */

void windows_open(void);
void windows_thread_stack(void);
void step_map(void);
void step_unmap(void);
void step_protect(void);
void step_lock(void);
void step_advise(void);
void step_dontneed(void);
void step_free_advice(void);
void step_remap(void);
void step_break(void);
void step_detach(void);
void step_store(void);
void step_allocate(void);
void step_reallocate(void);
void step_release(void);
void step_trim(void);
void step_register(void);
void step_deregister(void);
void step_reregister(void);
void step_transfer(void);
void step_fork(void);

void region_drop(struct region *r);
/* All that lie in the chunk */
void regions_of_chunk_drop(const struct chunk *c);
bool region_is_stale(const struct region *r);

void wire_open(void);
void wire_close(void);
void threads_start(void);
void threads_stop(void);

#endif
