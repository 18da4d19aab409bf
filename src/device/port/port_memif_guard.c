/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A peer has truncated a region that could not be sealed. The worker that was copying continues
 * with zeros, and the link goes down.
 */

#include <sys/mman.h>

#include "port/port_memif_impl.h"
#include "sigbus_guard.h"

/* Replaces the region by zeros. Async-signal-safe. */
static bool
repair(void *conn, uintptr_t addr)
{
	struct memif_conn *c = conn;

	for (uint32_t i = 0; i < REGIONS_MAX; i++) {
		uint64_t size = __atomic_load_n(&c->region[i].size, __ATOMIC_ACQUIRE);
		uintptr_t base = (uintptr_t)c->region[i].base;

		if (size == 0 || addr < base || addr - base >= size)
			continue;
		if (mmap(c->region[i].base, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			return false;
		memif_break(c->guarded_by, c, MEMIF_BROKEN_MEMORY);
		return true;
	}
	return false;
}

int
memif_guard_add(struct port_memif *p, struct memif_conn *c)
{
	c->guarded_by = p;
	return sigbus_guard_add(c, repair);
}

/* After it returns no signal handler uses the connection. */
void
memif_guard_remove(struct memif_conn *c)
{
	sigbus_guard_remove(c);
}
