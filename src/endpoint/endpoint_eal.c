/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "endpoint_eal.h"
#include "endpoint_log.h"
#include "endpoint_machine.h"
#include "host.h"

#define ARGS_MAX 48
#define TEXT_MAX 1024
#define HOLD_TRIES 1000u

/* Growing list of EAL arguments */
struct args {
	char *v[ARGS_MAX + 1];
	int n;
	char text[TEXT_MAX];
	size_t used;
	bool full;
};

static bool on_hugepages;

bool
endpoint_eal_huge(void)
{
	return on_hugepages;
}

static void add(struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
add(struct args *a, const char *format, ...)
{
	size_t room = sizeof(a->text) - a->used;
	va_list ap;
	int len;

	va_start(ap, format);
	len = vsnprintf(a->text + a->used, room, format, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= room || a->n == ARGS_MAX) {
		a->full = true;
		return;
	}
	a->v[a->n++] = a->text + a->used;
	a->used += (size_t)len + 1;
}

static int
choose_memory(const struct endpoint_config *c)
{
	uint32_t need = HCA_HUGEPAGES_OF(c->memory_mb), have = hca_host_free_hugepages();

	on_hugepages = c->hugepages != ENDPOINT_HUGEPAGES_NEVER && have >= need;
	if (on_hugepages || c->hugepages == ENDPOINT_HUGEPAGES_NEVER)
		return 0;
	if (c->hugepages == ENDPOINT_HUGEPAGES_MUST)
		return endpoint_fail(-ENOMEM, "[memory] " ENDPOINT_HUGEPAGES_LACK, have, need,
				     hca_host_hugepages_for(need));
	LOG_WARNING("%u free hugepages, %u are needed: ordinary memory is used, which is slower",
		    have, need);
	return 0;
}

static void
add_memory(struct args *a, const struct endpoint_config *c, const struct endpoint_device *d)
{
	add(a, "%s", on_hugepages ? "--in-memory" : "--no-huge");
	add(a, "-m");
	add(a, "%u", c->memory_mb);
	if (on_hugepages && (d->traits & ENDPOINT_DEVICE_SHARED))
		add(a, "--single-file-segments");
}

static void
add_extra(struct args *a, const char *words)
{
	while (*(words += strspn(words, " ")) != '\0') {
		size_t len = strcspn(words, " ");

		add(a, "%.*s", (int)len, words);
		words += len;
	}
}

static const char *
eal_log_level(const struct endpoint_config *c)
{
	static const char *const level[] = {"error", "error", "error", "info"};

	return level[c->log_level];
}

static void
build_args(struct args *a, const struct endpoint_config *c, const struct endpoint_device *d,
	   const cpu_set_t *set)
{
	add(a, "softhcad");
	add(a, "--iova-mode=va");
	add(a, "--file-prefix=%s", c->name);
	/* no secondary processes, so daemons with equal names do not collide */
	add(a, "--no-shconf");
	add(a, "--log-level=%s", eal_log_level(c));
	add(a, "-l");
	add(a, "%d", hca_host_first_cpu(set));
	if (d->traits & ENDPOINT_DEVICE_PCI) {
		add(a, "-a");
		add(a, "%s%s%s", d->name, d->args[0] ? "," : "", d->args);
	} else {
		add(a, "--no-pci");
	}
	if (!c->telemetry)
		add(a, "--no-telemetry");
	add_memory(a, c, d);
	add_extra(a, c->dpdk_args);
}

/*
 * Telemetry unlinks its socket when the process exits, so the folder is removed after that. If
 * files of other programs are left in it, it stays.
 */
static char runtime_dir[256];

static void
remove_runtime_dir(void)
{
	if (runtime_dir[0] != '\0')
		rmdir(runtime_dir);
}

/*
 * While DPDK starts, a file of this process in the runtime folder of that name: a daemon of the
 * same name that ends meanwhile cannot remove the folder between the time when DPDK makes it and
 * the time when DPDK has a socket in it.
 */
struct hold {
	char dir[128], file[160];
};

/* The folder is chosen as DPDK does. */
static void
hold_runtime_dir(struct hold *hold, const char *name)
{
	const char *base = getenv("RUNTIME_DIRECTORY"), *own = getenv("XDG_RUNTIME_DIR");
	char parent[sizeof(hold->dir)];

	if (base == NULL)
		base = getuid() == 0 ? "/var/run" : own != NULL ? own : "/tmp";
	hold->file[0] = '\0';
	if (snprintf(parent, sizeof(parent), "%s/dpdk", base) >= (int)sizeof(parent) ||
	    snprintf(hold->dir, sizeof(hold->dir), "%s/dpdk/%s", base, name) >=
		    (int)sizeof(hold->dir))
		return;
	snprintf(hold->file, sizeof(hold->file), "%s/starting.%d", hold->dir, (int)getpid());
	for (unsigned int i = 0; i < HOLD_TRIES; i++) {
		int fd;

		mkdir(parent, 0700);
		if (mkdir(hold->dir, 0700) != 0 && errno != EEXIST)
			break;
		fd = open(hold->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0) {
			close(fd);
			return;
		}
		if (errno != ENOENT)
			break;
	}
	hold->file[0] = '\0'; /* without it DPDK starts as well */
}

/* runtime_dir is that of DPDK: another one goes. */
static void
release_runtime_dir(const struct hold *hold)
{
	if (hold->file[0] == '\0')
		return;
	unlink(hold->file);
	if (strcmp(hold->dir, runtime_dir) != 0)
		rmdir(hold->dir);
}

int
endpoint_eal_start(const struct endpoint_config *c, const struct endpoint_device *d)
{
	static struct args a; /* the EAL keeps pointers to its arguments */
	struct hold hold;
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	pthread_getaffinity_np(pthread_self(), sizeof(set), &set);
	err = choose_memory(c);
	if (err != 0)
		return err;
	build_args(&a, c, d, &set);
	if (a.full)
		return endpoint_fail(-EINVAL,
				     "[memory] dpdk_args: expected fewer than %u words and %u "
				     "characters with those of softhcad: leave some out",
				     ARGS_MAX, TEXT_MAX);
	/* registered before the EAL's handlers, hence runs after them */
	atexit(remove_runtime_dir);
	hold_runtime_dir(&hold, c->name);
	if (rte_eal_init(a.n, a.v) < 0)
		err = endpoint_fail(-rte_errno, "DPDK did not start: %s", rte_strerror(rte_errno));
	/* the EAL creates it early, so it exists even after a failure */
	if (rte_eal_get_runtime_dir() != NULL)
		snprintf(runtime_dir, sizeof(runtime_dir), "%s", rte_eal_get_runtime_dir());
	release_runtime_dir(&hold);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	return err;
}
