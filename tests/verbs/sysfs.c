/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Files of a device through every function of the C library that takes a path.
 *
 *	sysfs DEVICE
 *
 * Prints each function that does not find them, and how many it tried.
 */

#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CLASS "/sys/class/infiniband"

static const char *device;
static char state[PATH_MAX], link_of[PATH_MAX];
static int tried, failed;

static void
check(const char *function, bool good)
{
	tried++;
	failed += !good;
	if (!good)
		printf("%s: %s\n", function, strerror(errno));
}

/* Functions that no header declares today */
#define FIND(type, name) ((type *)dlsym(RTLD_DEFAULT, name))

/* ---- opening ---- */

static bool
is_state(int fd)
{
	char text[32];
	ssize_t n = read(fd, text, sizeof(text));

	close(fd);
	return n == (ssize_t)strlen("4: ACTIVE\n") && memcmp(text, "4: ACTIVE\n", (size_t)n) == 0;
}

static bool
is_state_file(FILE *f)
{
	char text[32] = "";
	bool good = f != NULL && fgets(text, sizeof(text), f) != NULL &&
		    strcmp(text, "4: ACTIVE\n") == 0;

	if (f != NULL)
		fclose(f);
	return good;
}

static void
opening(void)
{
	typedef int open_2_fn(const char *, int);
	typedef int openat_2_fn(int, const char *, int);

	check("open", is_state(open(state, O_RDONLY)));
	check("open64", is_state(open64(state, O_RDONLY)));
	check("openat", is_state(openat(AT_FDCWD, state, O_RDONLY)));
	check("openat64", is_state(openat64(AT_FDCWD, state, O_RDONLY)));
	check("__open_2", is_state(FIND(open_2_fn, "__open_2")(state, O_RDONLY)));
	check("__open64_2", is_state(FIND(open_2_fn, "__open64_2")(state, O_RDONLY)));
	check("__openat_2", is_state(FIND(openat_2_fn, "__openat_2")(AT_FDCWD, state, O_RDONLY)));
	check("__openat64_2",
	      is_state(FIND(openat_2_fn, "__openat64_2")(AT_FDCWD, state, O_RDONLY)));
	check("fopen", is_state_file(fopen(state, "re")));
	check("fopen64", is_state_file(fopen64(state, "re")));
}

/* ---- asking ---- */

static void
asking(void)
{
	struct statx x;

	check("access", access(state, R_OK) == 0 && access(CLASS "/nosuch", F_OK) != 0);
	check("eaccess", eaccess(state, R_OK) == 0);
	check("euidaccess", euidaccess(state, R_OK) == 0);
	check("faccessat", faccessat(AT_FDCWD, state, R_OK, 0) == 0);
	check("statx", statx(AT_FDCWD, state, 0, STATX_BASIC_STATS, &x) == 0);
	check("getxattr", getxattr(state, "user.x", NULL, 0) < 0 && errno != ENOENT);
	check("lgetxattr", lgetxattr(state, "user.x", NULL, 0) < 0 && errno != ENOENT);
	check("listxattr", listxattr(state, NULL, 0) >= 0 || errno != ENOENT);
	check("llistxattr", llistxattr(state, NULL, 0) >= 0 || errno != ENOENT);
}

static void
stating(void)
{
	typedef int xstat_fn(int, const char *, struct stat *);
	typedef int xstat64_fn(int, const char *, struct stat64 *);
	typedef int fxstatat_fn(int, int, const char *, struct stat *, int);
	typedef int fxstatat64_fn(int, int, const char *, struct stat64 *, int);
	struct stat s;
	struct stat64 l;

	check("stat", stat(state, &s) == 0 && S_ISREG(s.st_mode));
	check("stat64", stat64(state, &l) == 0 && S_ISREG(l.st_mode));
	check("lstat", lstat(link_of, &s) == 0 && S_ISLNK(s.st_mode));
	check("lstat64", lstat64(link_of, &l) == 0 && S_ISLNK(l.st_mode));
	check("fstatat", fstatat(AT_FDCWD, state, &s, 0) == 0);
	check("fstatat64", fstatat64(AT_FDCWD, state, &l, 0) == 0);
	if (FIND(xstat_fn, "__xstat") == NULL) /* not preloaded: there is no such function */
		return;
	check("__xstat", FIND(xstat_fn, "__xstat")(1, state, &s) == 0);
	check("__xstat64", FIND(xstat64_fn, "__xstat64")(1, state, &l) == 0);
	check("__lxstat", FIND(xstat_fn, "__lxstat")(1, link_of, &s) == 0 && S_ISLNK(s.st_mode));
	check("__lxstat64", FIND(xstat64_fn, "__lxstat64")(1, link_of, &l) == 0);
	check("__fxstatat", FIND(fxstatat_fn, "__fxstatat")(1, AT_FDCWD, state, &s, 0) == 0);
	check("__fxstatat64", FIND(fxstatat64_fn, "__fxstatat64")(1, AT_FDCWD, state, &l, 0) == 0);
}

/* UCX looks at nodes so. */
static void
node(void)
{
	const char *path = "/dev/infiniband/uverbs0";
	char to[PATH_MAX];
	struct stat s;

	check("a node",
	      stat(path, &s) == 0 && S_ISCHR(s.st_mode) && access(path, R_OK | W_OK) == 0);
	check("lstat of a node", lstat(path, &s) == 0 && S_ISCHR(s.st_mode));
	check("readlink of a node", readlink(path, to, sizeof(to)) < 0 && errno == EINVAL);
	check("realpath of a node", realpath(path, to) != NULL && strcmp(to, path) == 0);
}

/* ---- folders ---- */

static bool
has_device(DIR *dir)
{
	const struct dirent *entry;
	bool found = false;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		found |= strcmp(entry->d_name, device) == 0;
	if (dir != NULL)
		closedir(dir);
	return found;
}

static int
is_device(const struct dirent *entry)
{
	return strcmp(entry->d_name, device) == 0;
}

static int
is_device64(const struct dirent64 *entry)
{
	return strcmp(entry->d_name, device) == 0;
}

static void
folders(void)
{
	struct dirent **list;
	struct dirent64 **list64;
	glob_t found;
	glob64_t found64;

	check("opendir", has_device(opendir(CLASS)));
	check("opendir with slashes", has_device(opendir("/sys//class/infiniband//")));
	check("scandir", scandir(CLASS, &list, is_device, alphasort) == 1);
	check("scandir64", scandir64(CLASS, &list64, is_device64, alphasort64) == 1);
	check("glob", glob(CLASS "/*/ports/1/stat?", 0, NULL, &found) == 0 &&
			      strcmp(found.gl_pathv[0], state) == 0);
	check("glob64", glob64(CLASS "/*/ports/1/stat?", GLOB_MARK, NULL, &found64) == 0 &&
				strcmp(found64.gl_pathv[0], state) == 0);
	check("chdir", chdir(CLASS) == 0 && access(device, F_OK) == 0);
}

/* ---- links ---- */

static void
links(void)
{
	typedef ssize_t readlink_chk_fn(const char *, char *, size_t, size_t);
	typedef char *realpath_chk_fn(const char *, char *, size_t);
	char to[PATH_MAX], real[PATH_MAX];

	snprintf(real, sizeof(real), "/sys/devices/virtual/softhca/%s", device);
	check("readlink", readlink(link_of, to, sizeof(to)) > 0);
	check("readlinkat", readlinkat(AT_FDCWD, link_of, to, sizeof(to)) > 0);
	check("__readlink_chk",
	      FIND(readlink_chk_fn, "__readlink_chk")(link_of, to, sizeof(to), sizeof(to)) > 0);
	check("realpath", realpath(link_of, to) != NULL && strcmp(to, real) == 0);
	check("__realpath_chk",
	      FIND(realpath_chk_fn, "__realpath_chk")(link_of, to, sizeof(to)) != NULL &&
		      strcmp(to, real) == 0);
	check("canonicalize_file_name", strcmp(canonicalize_file_name(link_of), real) == 0);
	check("elsewhere", realpath("/proc/self/..", to) != NULL && strcmp(to, "/proc") == 0);
}

int
main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	device = argv[1];
	snprintf(state, sizeof(state), CLASS "/%s/ports/1/state", device);
	snprintf(link_of, sizeof(link_of), CLASS "/%s/device", device);
	opening();
	asking();
	stating();
	node();
	folders();
	links();
	printf("%d tried, %d failed\n", tried, failed);
	return failed != 0;
}
