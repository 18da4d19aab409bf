/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_DPDK_X86INTRIN_H
#define CONFIG_DPDK_X86INTRIN_H

/*
 * Found before the compiler's header of this name by whatever includes DPDK's. Those want vectors
 * of 128 bits; the compiler's declares all the others too, which takes GCC a quarter of a second
 * for each of three hundred files. Code of ours includes the header of the vectors it wants.
 */
#ifdef __AVX__
#include_next <x86intrin.h>
#else
#include <smmintrin.h>
#include <x86gprintrin.h> /* __rdtsc() of rte_cycles.h since DPDK 23.11 */
#endif

#endif
