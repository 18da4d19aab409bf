/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SYS_H
#define LIB_SYS_H

/*
 * System calls on memory, made directly. Memory hooks of other libraries (registration caches of
 * MPI libraries, allocators, tracers) take the place of the C library's functions in every loaded
 * object. Some drop arguments (mremap() with four), others write to memory of their own, which may
 * be the memory that is held at that moment. Nothing here goes through a function anybody replaces,
 * takes a lock or writes memory, except errno on failure.
 *
 * As the C library's functions of these names: MAP_FAILED or -1 with errno. An address that was
 * asked for with MAP_FIXED or MREMAP_FIXED is compared: another one is a failure (EFAULT).
 */

#include <stddef.h>
#include <stdint.h>

void *lib_sys_mmap(void *at, size_t bytes, int prot, int flags, int fd, uint64_t offset);
int lib_sys_munmap(void *at, size_t bytes);
/* Whole mappings change their place: MREMAP_MAYMOVE | MREMAP_FIXED. 0 or -1 */
int lib_sys_move(void *from, size_t bytes, void *to);
int lib_sys_madvise(void *at, size_t bytes, int advice);
int lib_sys_ioctl(int fd, unsigned long request, void *arg);

#endif
