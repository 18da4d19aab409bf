/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Verbs programs: which libibverbs.so.1 they load, its devices, and the memory they can register.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ctl_devices.h"
#include "doctor.h"

#define DROP_IN "libibverbs.so.1"
#define PRELOAD "libsofthca-verbs.so"

/* That of this build if the program is not installed, as softhca-run does */
static const char *
built_folder(void)
{
	static char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *end;

	if (n <= 0)
		return NULL;
	path[n] = '\0';
	end = strrchr(path, '/');
	strcpy(end, "/../src/verbs/" DROP_IN);
	if (access(path, F_OK) != 0)
		return NULL;
	*strrchr(path, '/') = '\0';
	return path;
}

static const char *
verbs_folder(void)
{
	const char *chosen = secure_getenv("SOFTHCA_VERBS");

	if (chosen == NULL || chosen[0] == '\0')
		chosen = built_folder();
	return chosen != NULL ? chosen : CTL_VERBS_DIR;
}

/* ---- the library ---- */

/* The file from which programs started as this one load their verbs; NULL: none. */
static const char *
loaded_file(void)
{
	void *function = dlsym(RTLD_DEFAULT, "ibv_get_device_list"), *library; /* preloaded */
	static Dl_info info;

	if (function == NULL) {
		library = dlopen(DROP_IN, RTLD_NOW);
		function = library != NULL ? dlsym(library, "ibv_get_device_list") : NULL;
	}
	return function != NULL && dladdr(function, &info) != 0 ? info.dli_fname : NULL;
}

static bool
is_ours(const char *file)
{
	static const char *const names[] = {DROP_IN, PRELOAD};
	char path[512];
	struct stat loaded, own;

	if (file == NULL || stat(file, &loaded) != 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", verbs_folder(), names[i]);
		if (stat(path, &own) == 0 && own.st_ino == loaded.st_ino &&
		    own.st_dev == loaded.st_dev)
			return true;
	}
	return false;
}

static void
judge_library(struct doctor *d)
{
	const char *file = loaded_file();
	char fix[512];

	if (is_ours(file)) {
		doctor_ok(d, "verbs", "programs load %s, softhca's", file);
		return;
	}
	snprintf(fix, sizeof(fix), "softhca-run PROGRAM");
	if (geteuid() == 0)
		snprintf(fix, sizeof(fix),
			 "softhca-run PROGRAM; or, for all programs: echo %s "
			 ">/etc/ld.so.conf.d/00-softhca.conf; ldconfig",
			 verbs_folder());
	doctor_warn(d, "verbs", fix, "verbs programs see no device of softhca: they load %s",
		    file != NULL ? file : "no " DROP_IN " at all");
}

/* ---- memory ---- */

/* As src/lib/lib_hold.c does */
static bool
has_userfaultfd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A daemon offers on-demand paging exactly where it reaches memory the slow way. */
static bool
takes_slow_memory(const struct ctl_device *device)
{
	struct softhca_context *ctx;
	struct softhca_device_attr attr;
	bool slow;

	if (softhca_open(device->open_name, &ctx) != 0)
		return false;
	slow = softhca_query_device(ctx, &attr) == 0 && attr.odp_caps.general_caps != 0;
	softhca_close(ctx);
	return slow;
}

static void
judge_memory(struct doctor *d, const struct ctl_device *device)
{
	if (has_userfaultfd())
		doctor_ok(d, "memory", "%s: private memory of programs is shared in place",
			  device->name);
	else if (takes_slow_memory(device))
		doctor_ok(d, "memory",
			  "%s: private memory of programs is reached the slow way, which this "
			  "daemon allows: there is no userfaultfd for this user",
			  device->name);
	else
		doctor_warn(d, "memory",
			    "slow_memory = yes in section [memory], or sysctl -w "
			    "vm.unprivileged_userfaultfd=1",
			    "%s: private memory cannot be registered: there is no userfaultfd for "
			    "this user, and the daemon refuses slow memory",
			    device->name);
}

/* ---- devices ---- */

static void
judge_devices(struct doctor *d)
{
	static struct ctl_device found[CTL_DEVICES_MAX];
	unsigned int n = ctl_devices(found, CTL_DEVICES_MAX);
	const char *chosen = getenv("SOFTHCA_DEVICE");

	for (unsigned int i = 0; i < n; i++) {
		if (found[i].reason[0] != '\0') {
			doctor_fail(d, "devices", NULL, "%s cannot be used: %s", found[i].name,
				    found[i].reason);
			continue;
		}
		doctor_ok(d, "devices", "%s can be used", found[i].name);
		if (strncmp(found[i].open_name, "embed", strlen("embed")) == 0)
			continue;
		judge_memory(d, &found[i]);
		doctor_memory(d, found[i].name, found[i].open_name);
	}
	if (n == 0 && d->role == DOCTOR_OWN && getenv("SOFTHCA_DIRECTORY") == NULL)
		doctor_ok(d, "devices", "no daemon runs: programs see that of softhca-run");
	else if (n == 0)
		doctor_warn(d, "devices",
			    "systemctl start softhcad; softhca-run starts a daemon of the user's "
			    "own where there is none",
			    "programs find no device: no daemon has its socket in %s",
			    getenv("SOFTHCA_DIRECTORY") != NULL ? getenv("SOFTHCA_DIRECTORY")
								: "/run/softhca");
	else if (chosen != NULL && chosen[0] != '\0')
		doctor_ok(d, "devices", "SOFTHCA_DEVICE=%s hides all others", chosen);
}

void
doctor_verbs(struct doctor *d)
{
	if (access(doctor_path(d, "%s/" DROP_IN, verbs_folder()), F_OK) != 0) {
		doctor_ok(d, "verbs",
			  "not installed: %s has no " DROP_IN ", unmodified verbs programs do not "
			  "run on softhca",
			  verbs_folder());
		return;
	}
	if (d->root[0] != '\0')
		return; /* not of this machine */
	judge_library(d);
	if (d->others.hung == 0) /* opening it takes long, and it was named */
		judge_devices(d);
}
