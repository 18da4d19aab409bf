/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc_memory_impl.h"
#include "ipc_watch.h"

#define ARENA_SLACK (UINT64_C(4) << 30) /* for alignment and holes */

/* ---- the arena ---- */

/*
 * The tables of a client have room for all segments that it may have. As mappings they take memory
 * for those that it has had, and leave none with the allocator.
 */
static void *
map_table(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at != MAP_FAILED ? at : NULL;
}

static void
free_tables(struct ipc_memory *m)
{
	size_t pointers = m->config.segments_max * sizeof(struct ipc_segment *);

	if (m->by_bus != NULL)
		munmap(m->by_bus, pointers);
	if (m->by_va != NULL)
		munmap(m->by_va, pointers);
	if (m->segment != NULL)
		munmap(m->segment, m->config.segments_max * sizeof(*m->segment));
}

static int
make_tables(struct ipc_memory *m)
{
	size_t pointers = m->config.segments_max * sizeof(struct ipc_segment *);

	m->segment = map_table(m->config.segments_max * sizeof(*m->segment));
	m->by_va = map_table(pointers);
	m->by_bus = map_table(pointers);
	return m->segment != NULL && m->by_va != NULL && m->by_bus != NULL ? 0 : -ENOMEM;
}

int
ipc_memory_create(const struct ipc_memory_config *config, struct ipc_memory **out)
{
	struct ipc_memory *m = calloc(1, sizeof(*m));
	void *base;
	int err = -ENOMEM;

	if (m == NULL)
		return ipc_no_memory("a client", sizeof(*m));
	m->config = *config;
	m->bytes = config->bytes_max * 2 + ARENA_SLACK;
	if (make_tables(m) != 0)
		goto err_free;
	base = mmap(NULL, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		goto err_free;
	m->base = (uintptr_t)base;
	m->next = m->base;
	err = ipc_guard_add(m);
	if (err != 0)
		goto err_unmap;
	*out = m;
	return 0;

err_unmap:
	munmap(base, m->bytes);
err_free:
	free_tables(m);
	free(m);
	return ipc_fail(err,
			"no addresses of the daemon are left for a client's memory: see ulimit -v, "
			"vm.max_map_count and vm.overcommit_memory");
}

void
ipc_memory_destroy(struct ipc_memory *m)
{
	for (uint32_t i = 0; i < IPC_HOLD_BUCKETS; i++)
		while (m->holds[i] != NULL) {
			struct ipc_hold *hold = m->holds[i];

			m->holds[i] = hold->next;
			free(hold->segment);
			free(hold);
		}
	ipc_guard_remove(m); /* first, because these addresses may be reused at once */
	munmap((void *)(uintptr_t)m->base, m->bytes);
	ipc_maps_change(m->config.maps, m->maps, 0);
	free_tables(m);
	free(m);
}

void
ipc_memory_forget_uar(struct ipc_memory *m)
{
	__atomic_store_n(&m->config.uar, 0, __ATOMIC_RELEASE);
}

uint64_t
ipc_memory_bus(const struct ipc_memory *m)
{
	return m->base;
}

uint64_t
ipc_memory_window(const struct ipc_memory *m)
{
	return m->bytes;
}

uint64_t
ipc_memory_attached(const struct ipc_memory *m)
{
	return m->attached;
}

/* ---- attach and detach ---- */

int
ipc_memory_fits(const struct ipc_memory *m, uint64_t bytes, uint32_t segments)
{
	if (bytes > m->config.bytes_max - m->attached)
		return ipc_fail(-ENOMEM,
				"the client may attach %llu MiB ([quota] memory_mb), %llu are",
				(unsigned long long)(m->config.bytes_max >> 20),
				(unsigned long long)(m->attached >> 20));
	if (segments > m->config.segments_max - m->count)
		return ipc_fail(-ENOMEM, "the client has %u of its %u segments ([quota] segments)",
				m->count, m->config.segments_max);
	return 0;
}

static int
judge_range(const struct ipc_memory *m, const struct hca_ctl_segment *r, uint64_t page)
{
	uint32_t i;
	int err;

	if (((r->va | r->length | r->offset) & (page - 1)) != 0 || r->length == 0 || r->va == 0 ||
	    r->va + r->length - 1 < r->va || r->offset + r->length - 1 < r->offset)
		return ipc_fail(-EINVAL, "a segment of %llu bytes at %#llx, pages are %llu",
				(unsigned long long)r->length, (unsigned long long)r->va,
				(unsigned long long)page);
	err = ipc_memory_fits(m, r->length, 1);
	if (err != 0)
		return err;
	i = ipc_arena_behind(m, r->va);
	if (i < m->count && m->by_va[i]->va - r->va < r->length)
		return ipc_fail(-EEXIST, "memory at %#llx is attached already",
				(unsigned long long)m->by_va[i]->va);
	if (i < m->count && m->by_va[i]->va <= r->va)
		return ipc_fail(-EEXIST, "memory at %#llx is attached already",
				(unsigned long long)r->va);
	return m->config.more != NULL ? m->config.more(m->config.more_arg, r->length) : 0;
}

static void
enter(struct ipc_memory *m, struct ipc_segment *s, const struct hca_ctl_segment *r, uint64_t bus,
      const struct ipc_file *file)
{
	s->va = r->va;
	s->bus = bus;
	s->holders = 0;
	s->held_by = 0;
	s->lost = 0;
	s->page = (uint32_t)file->page;
	s->read_only = file->read_only;
	s->by_reading = file->read_only || !file->shmem;
	/* read by the signal handler */
	__atomic_store_n(&s->length, r->length, __ATOMIC_RELEASE);
	ipc_arena_enter(m, s);
	m->attached += r->length;
	m->next = bus + r->length;
}

/* Replace the mapping by an inaccessible one; the place stays reserved. */
static int
cover(uint64_t at, uint64_t bytes)
{
	return mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED
		       ? 0
		       : -errno;
}

static int
map_failed(const struct ipc_file *file)
{
	if (errno == ENOMEM && file->page > IPC_PAGE)
		return ipc_fail(-ENOMEM,
				"the memory cannot be mapped: no pages of %llu KiB are free",
				(unsigned long long)file->page >> 10);
	/* a file of a kind that is not mapped, or not for this */
	return ipc_fail(errno == ENOMEM ? -ENOMEM : -EBADF, "the memory cannot be mapped: %s",
			strerror(errno));
}

/* Map the file at its place and protect it; nothing is left of it on failure. */
static int
map_file(const struct hca_ctl_segment *request, const struct ipc_file *file, uint64_t bus)
{
	int prot = file->read_only ? PROT_READ : PROT_READ | PROT_WRITE, err;

	if (mmap((void *)(uintptr_t)bus, request->length, prot, MAP_SHARED | MAP_FIXED, file->fd,
		 (off_t)request->offset) == MAP_FAILED)
		return map_failed(file);
	err = ipc_file_protect(request, file, bus);
	if (err != 0)
		cover(bus, request->length);
	return err;
}

int
ipc_memory_attach(struct ipc_memory *m, const struct hca_ctl_segment *request, int fd,
		  uint32_t *handle)
{
	struct ipc_file file = {.fd = fd, .trusted = m->config.trusted};
	struct ipc_segment *s;
	uint64_t bus;
	uint32_t maps;
	int err = ipc_file_judge(request, &file);

	if (err == 0)
		err = judge_range(m, request, file.page);
	if (err != 0)
		return err;
	bus = ipc_arena_place(m, request->va, request->length);
	if (bus == 0)
		return ipc_fail(-ENOMEM, "no addresses for %llu bytes",
				(unsigned long long)request->length);
	maps = ipc_arena_maps(m, bus, request->length);
	if (!ipc_maps_change(m->config.maps, m->maps, m->maps + maps))
		return ipc_fail(-ENOMEM,
				"the client has %u segments, and all clients as many as the daemon "
				"can map (vm.max_map_count)",
				m->count);
	err = map_file(request, &file, bus);
	if (err != 0) {
		ipc_maps_change(m->config.maps, m->maps + maps, m->maps);
		return err;
	}
	s = ipc_arena_slot(m); /* judge_range() has counted them */
	enter(m, s, request, bus, &file);
	m->maps += maps;
	*handle = (uint32_t)(s - m->segment);
	return 0;
}

int
ipc_memory_detach(struct ipc_memory *m, uint32_t handle)
{
	struct ipc_segment *s;
	uint32_t maps;

	if (handle >= m->config.segments_max || m->segment[handle].length == 0)
		return ipc_fail(-EINVAL, "there is no segment %u", handle);
	s = &m->segment[handle];
	if (s->holders != 0)
		return ipc_fail(-EBUSY, "%u objects lie in the segment", s->holders);
	if (cover(s->bus, s->length) != 0)
		return ipc_fail(-errno, "the memory cannot be unmapped: %s", strerror(errno));
	maps = ipc_arena_maps(m, s->bus, s->length);
	ipc_maps_change(m->config.maps, m->maps, m->maps - maps);
	m->maps -= maps;
	ipc_arena_leave(m, s);
	m->attached -= s->length;
	__atomic_store_n(&s->length, 0, __ATOMIC_RELEASE);
	ipc_arena_unslot(m, s);
	return 0;
}
