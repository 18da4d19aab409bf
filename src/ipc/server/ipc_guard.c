/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A client has removed the pages of a segment. A thread that was accessing it (an lcore in the
 * middle of a copy, the driver) continues with zeros.
 */

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi_reason.h"
#include "ipc_memory_impl.h"
#include "sigbus_guard.h"

#define PAGE UINT64_C(4096)
#define PIECES 32u /* of a large segment that are replaced separately */

static bool
put_zeros(uint64_t at, uint64_t bytes)
{
	return mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static bool
tell(struct ipc_memory *m, bool first)
{
	uint64_t one = 1;

	if (first)
		__atomic_fetch_add(&m->lost, 1, __ATOMIC_RELEASE);
	return write(m->config.lost_fd, &one, sizeof(one)) >= 0 || errno == EAGAIN;
}

/*
 * Replace the page by zeros; false: it is not mapped here. Async-signal-safe.
 *
 * A small segment is replaced whole: the client may be punching holes in it in a loop, and the
 * kernel lets each access to a hole, and each mapping here, wait for the punch that is in progress.
 * Replacing a whole large segment would delay an lcore, but each page is a mapping.
 */
static bool
replace(struct ipc_memory *m, uint64_t addr)
{
	uint64_t uar = __atomic_load_n(&m->config.uar, __ATOMIC_ACQUIRE);

	if (uar != 0 && addr - uar < PAGE)
		return put_zeros(uar, PAGE) && tell(m, true);
	for (uint32_t i = 0; i < __atomic_load_n(&m->slots, __ATOMIC_ACQUIRE); i++) {
		struct ipc_segment *s = &m->segment[i];
		uint64_t length = __atomic_load_n(&s->length, __ATOMIC_ACQUIRE);
		uint64_t at = s->bus, page = s->page;
		uint32_t times;

		if (length == 0 || addr < at || addr - at >= length)
			continue;
		times = __atomic_fetch_add(&s->lost, 1, __ATOMIC_RELAXED);
		if (length > HCA_CTL_SMALL_FILE && times < PIECES) {
			at += (addr - at) & ~(page - 1);
			length = page;
		}
		return put_zeros(at, length) && tell(m, times == 0);
	}
	return false;
}

static bool
repair(void *memory, uintptr_t addr)
{
	struct ipc_memory *m = memory;

	return (addr - m->base < m->bytes || addr - m->config.uar < PAGE) && replace(m, addr);
}

int
ipc_guard_add(struct ipc_memory *m)
{
	return sigbus_guard_add(m, repair);
}

/* After it returns no signal handler uses m. */
void
ipc_guard_remove(struct ipc_memory *m)
{
	sigbus_guard_remove(m);
}

int
ipc_memory_guard(void)
{
	return sigbus_guard_install();
}

HCA_REASON_DEFINE(ipc_fail, ipc_reason, sizeof(((struct ipc_reply *)NULL)->reason), 0)

int
ipc_no_memory(const char *object, size_t bytes)
{
	return ipc_fail(-ENOMEM, HCA_NO_MEMORY("the daemon"), object, bytes);
}
