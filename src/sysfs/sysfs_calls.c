/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Functions of the C library that take a path, for a preloaded library: paths of RDMA devices lead
 * to the files of softhca-run, all others where they always lead. A program that makes its own
 * system calls (Go, static programs) does not use them.
 */

/* Names with and without 64 are different functions here, without inline forms. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sysfs_path.h"

#define EXPORT __attribute__((visibility("default")))

/*
 * The function of this name that the program would have without us, of the type of the caller's
 * pointer; each place that asks keeps it.
 */
static void *
next_of(_Atomic(void *) *kept, const char *name)
{
	void *found = atomic_load_explicit(kept, memory_order_relaxed);

	if (found != NULL)
		return found;
	found = dlsym(RTLD_NEXT, name);
	if (found == NULL)
		abort(); /* a C library without a function that the program calls */
	atomic_store_explicit(kept, found, memory_order_relaxed);
	return found;
}

#define NEXT(type, name) \
	static _Atomic(void *) kept_##type; \
	type *const next = (type *)next_of(&kept_##type, name)

/* ---- opening ---- */

static mode_t
mode_of(int flags, va_list ap)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

typedef int open_fn(const char *path, int flags, ...);
typedef int openat_fn(int dir, const char *path, int flags, ...);
typedef int open_2_fn(const char *path, int flags);
typedef int openat_2_fn(int dir, const char *path, int flags);

#define OPEN(name) \
	EXPORT int name(const char *path, int flags, ...); \
	int name(const char *path, int flags, ...) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		va_list ap; \
		mode_t mode; \
		NEXT(open_fn, #name); \
\
		va_start(ap, flags); \
		mode = mode_of(flags, ap); \
		va_end(ap); \
		return next(sysfs_path(path, buf), flags, mode); \
	}

#define OPENAT(name) \
	EXPORT int name(int dir, const char *path, int flags, ...); \
	int name(int dir, const char *path, int flags, ...) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		va_list ap; \
		mode_t mode; \
		NEXT(openat_fn, #name); \
\
		va_start(ap, flags); \
		mode = mode_of(flags, ap); \
		va_end(ap); \
		return next(dir, sysfs_path(path, buf), flags, mode); \
	}

/* Replacements of open() by the headers in programs that are built with checks */
#define OPEN_2(name) \
	EXPORT int name(const char *path, int flags); \
	int name(const char *path, int flags) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		NEXT(open_2_fn, #name); \
\
		return next(sysfs_path(path, buf), flags); \
	}

#define OPENAT_2(name) \
	EXPORT int name(int dir, const char *path, int flags); \
	int name(int dir, const char *path, int flags) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		NEXT(openat_2_fn, #name); \
\
		return next(dir, sysfs_path(path, buf), flags); \
	}

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
OPEN_2(__open_2)
OPEN_2(__open64_2)
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)

typedef FILE *fopen_fn(const char *path, const char *mode);

#define FOPEN(name) \
	EXPORT FILE *name(const char *restrict path, const char *restrict mode) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		NEXT(fopen_fn, #name); \
\
		return next(sysfs_path(path, buf), mode); \
	}

FOPEN(fopen)
FOPEN(fopen64)

/* ---- asking ---- */

typedef int access_fn(const char *path, int mode);
typedef int faccessat_fn(int dir, const char *path, int mode, int flags);

#define ACCESS(name) \
	EXPORT int name(const char *path, int mode) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		NEXT(access_fn, #name); \
\
		return next(sysfs_path(path, buf), mode); \
	}

ACCESS(access)
ACCESS(eaccess)
ACCESS(euidaccess)

EXPORT int
faccessat(int dir, const char *path, int mode, int flags)
{
	char buf[SYSFS_PATH_MAX];
	NEXT(faccessat_fn, "faccessat");

	return next(dir, sysfs_path(path, buf), mode, flags);
}

typedef int stat_fn(const char *path, void *st);
typedef int fstatat_fn(int dir, const char *path, void *st, int flags);
typedef int statx_fn(int dir, const char *path, int flags, unsigned int mask, struct statx *st);

/* The C library has one structure for both names, and for all versions that __xstat() is told. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one structure");

#define STAT(name, type) \
	EXPORT int name(const char *restrict path, type *restrict st) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		NEXT(stat_fn, #name); \
\
		return next(sysfs_path(path, buf), st); \
	}

/* A node stands in the tree as a link, but the program asks about the node. */
#define LSTAT(name, type) \
	EXPORT int name(const char *restrict path, type *restrict st) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		const char *there = sysfs_path(path, buf); \
		NEXT(stat_fn, #name); \
\
		return sysfs_is_node(there, path) ? stat(there, (struct stat *)st) \
						  : next(there, st); \
	}

/* For programs that were built before the C library had stat() as a function */
#define XSTAT(name, type, now) \
	EXPORT int name(int version, const char *path, type *st); \
	int name(int version, const char *path, type *st) \
	{ \
		(void)version; \
		return now(path, st); \
	}

#define FSTATAT(name, type) \
	EXPORT int name(int dir, const char *restrict path, type *restrict st, int flags) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		const char *there = sysfs_path(path, buf); \
		NEXT(fstatat_fn, #name); \
\
		if (sysfs_is_node(there, path)) \
			flags &= ~AT_SYMLINK_NOFOLLOW; \
		return next(dir, there, st, flags); \
	}

#define FXSTATAT(name, type, now) \
	EXPORT int name(int version, int dir, const char *path, type *st, int flags); \
	int name(int version, int dir, const char *path, type *st, int flags) \
	{ \
		(void)version; \
		return now(dir, path, st, flags); \
	}

STAT(stat, struct stat)
STAT(stat64, struct stat64)
LSTAT(lstat, struct stat)
LSTAT(lstat64, struct stat64)
FSTATAT(fstatat, struct stat)
FSTATAT(fstatat64, struct stat64)
XSTAT(__xstat, struct stat, stat)
XSTAT(__xstat64, struct stat64, stat64)
XSTAT(__lxstat, struct stat, lstat)
XSTAT(__lxstat64, struct stat64, lstat64)
FXSTATAT(__fxstatat, struct stat, fstatat)
FXSTATAT(__fxstatat64, struct stat64, fstatat64)

EXPORT int
statx(int dir, const char *restrict path, int flags, unsigned int mask, struct statx *restrict st)
{
	char buf[SYSFS_PATH_MAX];
	const char *there = sysfs_path(path, buf);
	NEXT(statx_fn, "statx");

	if (sysfs_is_node(there, path))
		flags &= ~AT_SYMLINK_NOFOLLOW;
	return next(dir, there, flags, mask, st);
}

/* ls(1) asks for them. */
typedef ssize_t getxattr_fn(const char *path, const char *name, void *value, size_t size);
typedef ssize_t listxattr_fn(const char *path, char *list, size_t size);

#define GETXATTR(name) \
	EXPORT ssize_t name(const char *path, const char *attr, void *value, size_t size) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		NEXT(getxattr_fn, #name); \
\
		return next(sysfs_path(path, buf), attr, value, size); \
	}

#define LISTXATTR(name) \
	EXPORT ssize_t name(const char *path, char *list, size_t size) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		NEXT(listxattr_fn, #name); \
\
		return next(sysfs_path(path, buf), list, size); \
	}

GETXATTR(getxattr)
GETXATTR(lgetxattr)
LISTXATTR(listxattr)
LISTXATTR(llistxattr)

/* ---- folders ---- */

typedef DIR *opendir_fn(const char *path);
typedef int chdir_fn(const char *path);

EXPORT DIR *
opendir(const char *path)
{
	char buf[SYSFS_PATH_MAX];
	NEXT(opendir_fn, "opendir");

	return next(sysfs_path(path, buf));
}

EXPORT int
chdir(const char *path)
{
	char buf[SYSFS_PATH_MAX];
	NEXT(chdir_fn, "chdir");

	return next(sysfs_path(path, buf));
}

#define SCANDIR(name, entry) \
	typedef int name##_fn(const char *path, struct entry ***list, \
			      int (*take)(const struct entry *), \
			      int (*order)(const struct entry **, const struct entry **)); \
	EXPORT int name(const char *restrict path, struct entry ***restrict list, \
			int (*take)(const struct entry *), \
			int (*order)(const struct entry **, const struct entry **)) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		NEXT(name##_fn, #name); \
\
		return next(sysfs_path(path, buf), list, take, order); \
	}

SCANDIR(scandir, dirent)
SCANDIR(scandir64, dirent64)

#define GLOB(name, type) \
	typedef int name##_fn(const char *pattern, int flags, int (*failed)(const char *, int), \
			      type *found); \
	EXPORT int name(const char *restrict pattern, int flags, int (*failed)(const char *, int), \
			type *restrict found) \
	{ \
		char buf[SYSFS_PATH_MAX]; \
		const char *there = sysfs_path(pattern, buf); \
		int rc; \
		NEXT(name##_fn, #name); \
\
		rc = next(there, flags, failed, found); \
		for (size_t i = 0; rc == 0 && there != pattern && i < found->gl_pathc; i++) \
			sysfs_path_back( \
				found->gl_pathv[i + ((flags & GLOB_DOOFFS) != 0 ? found->gl_offs \
										: 0)]); \
		return rc; \
	}

GLOB(glob, glob_t)
GLOB(glob64, glob64_t)

/* ---- links ---- */

typedef ssize_t readlink_fn(const char *path, char *to, size_t size);
typedef ssize_t readlinkat_fn(int dir, const char *path, char *to, size_t size);
typedef char *realpath_fn(const char *path, char *to);

EXPORT ssize_t
readlink(const char *restrict path, char *restrict to, size_t size)
{
	char buf[SYSFS_PATH_MAX];
	const char *there = sysfs_path(path, buf);
	NEXT(readlink_fn, "readlink");

	if (sysfs_is_node(there, path)) {
		errno = EINVAL; /* a node is no link */
		return -1;
	}
	return next(there, to, size);
}

EXPORT ssize_t
readlinkat(int dir, const char *restrict path, char *restrict to, size_t size)
{
	char buf[SYSFS_PATH_MAX];
	NEXT(readlinkat_fn, "readlinkat");

	return next(dir, sysfs_path(path, buf), to, size);
}

EXPORT ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room);

ssize_t
__readlink_chk(const char *path, char *to, size_t size, size_t room)
{
	if (size > room)
		abort();
	return readlink(path, to, size);
}

EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *to, size_t size, size_t room);

ssize_t
__readlinkat_chk(int dir, const char *path, char *to, size_t size, size_t room)
{
	if (size > room)
		abort();
	return readlinkat(dir, path, to, size);
}

EXPORT char *
realpath(const char *restrict path, char *restrict to)
{
	char buf[SYSFS_PATH_MAX];
	const char *there = sysfs_path(path, buf);
	char *resolved;
	NEXT(realpath_fn, "realpath");

	if (sysfs_is_node(there, path)) {
		if (access(there, F_OK) != 0)
			return NULL;
		return to != NULL ? strcpy(to, path) : strdup(path);
	}
	resolved = next(there, to);
	return there != path ? sysfs_path_back(resolved) : resolved;
}

EXPORT char *__realpath_chk(const char *path, char *to, size_t room);

char *
__realpath_chk(const char *path, char *to, size_t room)
{
	if (room < PATH_MAX)
		abort();
	return realpath(path, to);
}

EXPORT char *
canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}
