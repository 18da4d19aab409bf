/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SYS_H
#define LIB_SYS_H

/*
 * System calls on memory, made directly. Memory hooks of other libraries (registration caches of
 * MPI libraries, allocators, tracers) replace the C library's functions in every loaded object.
 * Some drop arguments (mremap() with four), others write to their own memory, which may be the
 * memory that is write-protected at that moment. These functions call nothing that can be replaced,
 * take no lock, and write no memory but errno on failure.
 *
 * They behave as the C library's functions of these names: MAP_FAILED or -1 with errno. If
 * MAP_FIXED or MREMAP_FIXED yields another address than requested, they fail with EFAULT.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *lib_sys_mmap(void *at, size_t bytes, int prot, int flags, int fd, uint64_t offset);
int lib_sys_munmap(void *at, size_t bytes);
/* Move whole mappings (MREMAP_MAYMOVE | MREMAP_FIXED); 0 or -1. */
int lib_sys_move(void *from, size_t bytes, void *to);
int lib_sys_mprotect(void *at, size_t bytes, int prot);
int lib_sys_madvise(void *at, size_t bytes, int advice);
/*
 * Make pages present, for writing or for reading alone, without changing them. 0, or -1 with errno
 * EFAULT: a page cannot be accessed so. Where the kernel has no call for it (before 5.14) nothing
 * happens, and a later access makes them present.
 */
int lib_sys_populate(void *at, size_t bytes, bool write);
int lib_sys_ioctl(int fd, unsigned long request, void *arg);

#endif
