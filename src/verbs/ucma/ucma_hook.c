/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The calls by which librdmacm reaches the device. Calls for other files go on to their original
 * target: the C library, or a preloaded library that stands before it.
 */

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "ucma.h"
#include "ucma_got.h"

#define LIBRDMACM "librdmacm.so.1"

/* ---- open ---- */

#define OPEN_CALLS(X) \
	X(open) \
	X(open64)

/* The mode is there with O_CREAT alone; without it anything may be passed on. */
#define X(name) \
	static void *name##_from; \
	static int hook_##name(const char *path, int flags, ...) \
	{ \
		mode_t mode = 0; \
		va_list args; \
\
		if (path != NULL && strcmp(path, UCMA_PATH) == 0) \
			return ucma_open(flags); \
		va_start(args, flags); \
		if ((flags & (O_CREAT | __O_TMPFILE)) != 0) \
			mode = va_arg(args, mode_t); \
		va_end(args); \
		return ((int (*)(const char *, int, ...))name##_from)(path, flags, mode); \
	}
OPEN_CALLS(X)
#undef X

/* The forms of a program that was compiled with _FORTIFY_SOURCE */
#define FORTIFIED_OPEN_CALLS(X) \
	X(__open_2) \
	X(__open64_2)

#define X(name) \
	static void *name##_from; \
	static int hook_##name(const char *path, int flags) \
	{ \
		if (path != NULL && strcmp(path, UCMA_PATH) == 0) \
			return ucma_open(flags); \
		return ((int (*)(const char *, int))name##_from)(path, flags); \
	}
FORTIFIED_OPEN_CALLS(X)
#undef X

#define OPENAT_CALLS(X) \
	X(openat) \
	X(openat64)

#define X(name) \
	static void *name##_from; \
	static int hook_##name(int folder, const char *path, int flags, ...) \
	{ \
		mode_t mode = 0; \
		va_list args; \
\
		if (path != NULL && strcmp(path, UCMA_PATH) == 0) \
			return ucma_open(flags); \
		va_start(args, flags); \
		if ((flags & (O_CREAT | __O_TMPFILE)) != 0) \
			mode = va_arg(args, mode_t); \
		va_end(args); \
		return ((int (*)(int, const char *, int, ...))name##_from)(folder, path, flags, \
									   mode); \
	}
OPENAT_CALLS(X)
#undef X

/* ---- fstat ---- */

/* Where the kernel also has the device, librdmacm reads its number there. */
static dev_t
device_number(void)
{
	unsigned int major_number, minor_number;
	struct stat st;
	FILE *file;
	int n;

	if (stat(UCMA_PATH, &st) == 0 && S_ISCHR(st.st_mode))
		return st.st_rdev;
	file = fopen("/sys/class/misc/rdma_cm/dev", "re");
	if (file == NULL)
		return 0;
	n = fscanf(file, "%u:%u", &major_number, &minor_number);
	fclose(file);
	return n == 2 ? makedev(major_number, minor_number) : 0;
}

static void
stat_device(int fd, struct stat *st)
{
	if (!ucma_is_file(fd))
		return;
	st->st_mode = S_IFCHR | S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
	st->st_rdev = device_number();
}

/* struct stat64 is struct stat on the machines that this is for. */
#define STAT_CALLS(X) \
	X(fstat) \
	X(fstat64)

#define X(name) \
	static void *name##_from; \
	static int hook_##name(int fd, struct stat *st) \
	{ \
		int result = ((int (*)(int, struct stat *))name##_from)(fd, st); \
\
		if (result == 0) \
			stat_device(fd, st); \
		return result; \
	}
STAT_CALLS(X)
#undef X

/* Name in a library that was linked before glibc 2.33 */
#define OLD_STAT_CALLS(X) \
	X(__fxstat) \
	X(__fxstat64)

#define X(name) \
	static void *name##_from; \
	static int hook_##name(int version, int fd, struct stat *st) \
	{ \
		int result = ((int (*)(int, int, struct stat *))name##_from)(version, fd, st); \
\
		if (result == 0) \
			stat_device(fd, st); \
		return result; \
	}
OLD_STAT_CALLS(X)
#undef X

/* ---- write, close ---- */

static void *write_from, *close_from;

/* Most writes of librdmacm are commands; a descriptor of another kind is seen at once. */
static ssize_t
hook_write(int fd, const void *data, size_t bytes)
{
	if (bytes >= sizeof(struct rdma_ucm_cmd_hdr) && ucma_is_file(fd))
		return ucma_write(fd, data, bytes);
	return ((ssize_t(*)(int, const void *, size_t))write_from)(fd, data, bytes);
}

static int
hook_close(int fd)
{
	return ucma_close(fd, (int (*)(int))close_from);
}

/* ---- leading ---- */

static const struct ucma_got_name names[] = {
#define X(name) {#name, (void *)hook_##name, &name##_from},
	OPEN_CALLS(X) FORTIFIED_OPEN_CALLS(X) OPENAT_CALLS(X) STAT_CALLS(X) OLD_STAT_CALLS(X)
#undef X
		{"write", (void *)hook_write, &write_from},
	{"close", (void *)hook_close, &close_from},
};

/* Libraries that were loaded so far */
static int
count_loaded(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	(void)bytes;
	*(unsigned long long *)arg = info->dlpi_adds;
	return 1;
}

void
ucma_hook(void)
{
	static unsigned long long seen;
	unsigned long long loaded = 0;

	dl_iterate_phdr(count_loaded, &loaded);
	if (__atomic_exchange_n(&seen, loaded, __ATOMIC_RELAXED) != loaded)
		ucma_got_lead(LIBRDMACM, names, sizeof(names) / sizeof(names[0]));
}

/* librdmacm is linked with this library: it has been loaded, but not called yet. */
static __attribute__((constructor)) void
hook_begin(void)
{
	ucma_hook();
}
