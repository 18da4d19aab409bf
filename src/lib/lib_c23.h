/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_C23_H
#define LIB_C23_H

/*
 * Included into each file of the libraries of clients by the compiler's command line. From 2.38 on
 * glibc leads these calls to others, which read numbers as C23 does (0b1) and which no older glibc
 * has: a library that was built on Debian 13 would not load on Debian 12.
 */

#include <stdio.h>
#include <stdlib.h>

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 38)
extern long lib_strtol(const char *restrict, char **restrict, int) __asm__("strtol");
extern unsigned long lib_strtoul(const char *restrict, char **restrict, int) __asm__("strtoul");
extern unsigned long long lib_strtoull(const char *restrict, char **restrict,
				       int) __asm__("strtoull");
extern int lib_sscanf(const char *restrict, const char *restrict, ...) __asm__("sscanf")
	__attribute__((format(scanf, 2, 3)));
extern int lib_fscanf(FILE *restrict, const char *restrict, ...) __asm__("fscanf")
	__attribute__((format(scanf, 2, 3)));

#define strtol lib_strtol
#define strtoul lib_strtoul
#define strtoull lib_strtoull
#define sscanf lib_sscanf
#define fscanf lib_fscanf
#define atoi(text) ((int)lib_strtol(text, NULL, 10)) /* inline in the header */
#endif

#endif
