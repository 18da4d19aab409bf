/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Kinds of memory of programs, each tried on a device: registered, and how the device reaches it.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <softhca/softhca.h>

#include "doctor.h"

#define BYTES 8192u
#define HUGE_BYTES (2u << 20)
#define READS SOFTHCA_ACCESS_REMOTE_READ
#define WRITES (SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE | READS)

enum way {
	WAY_IN_PLACE,
	WAY_EXCHANGED,
	WAY_SLOW,
	WAY_REFUSED,
	WAY_ABSENT, /* this machine does not offer the kind */
	WAYS,
};

/* Resources of a kind until its memory is unmapped */
struct piece {
	void *mem;
	size_t bytes;
	int fd;
};

static bool
is_mapped(struct piece *p, int flags, int prot)
{
	p->mem = mmap(NULL, p->bytes, prot, flags, p->fd, 0);
	return p->mem != MAP_FAILED;
}

static bool
map_private(struct piece *p)
{
	return is_mapped(p, MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE);
}

static bool
map_anonymous(struct piece *p)
{
	return is_mapped(p, MAP_SHARED | MAP_ANONYMOUS, PROT_READ | PROT_WRITE);
}

static bool
map_sysv(struct piece *p)
{
	int id = shmget(IPC_PRIVATE, p->bytes, 0600);

	p->mem = id >= 0 ? shmat(id, NULL, 0) : MAP_FAILED;
	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	return p->mem != MAP_FAILED;
}

static bool
map_posix(struct piece *p)
{
	char name[40];

	snprintf(name, sizeof(name), "/softhca-doctor-%d", (int)getpid());
	p->fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (p->fd < 0)
		return false;
	shm_unlink(name);
	return ftruncate(p->fd, (off_t)p->bytes) == 0 &&
	       is_mapped(p, MAP_SHARED, PROT_READ | PROT_WRITE);
}

static bool
map_memfd(struct piece *p)
{
	p->fd = memfd_create("softhca-doctor", MFD_CLOEXEC);
	return p->fd >= 0 && ftruncate(p->fd, (off_t)p->bytes) == 0 &&
	       is_mapped(p, MAP_SHARED, PROT_READ | PROT_WRITE);
}

static bool
map_huge(struct piece *p)
{
	p->bytes = HUGE_BYTES;
	p->fd = memfd_create("softhca-doctor", MFD_CLOEXEC | MFD_HUGETLB);
	return p->fd >= 0 && ftruncate(p->fd, (off_t)p->bytes) == 0 &&
	       is_mapped(p, MAP_SHARED, PROT_READ | PROT_WRITE);
}

/* A file of a disk where there is one: /tmp may be a file system in memory. */
static bool
open_file(struct piece *p)
{
	char path[] = "/var/tmp/softhca-doctor-XXXXXX";

	p->fd = mkstemp(path);
	if (p->fd < 0)
		return false;
	unlink(path);
	return ftruncate(p->fd, (off_t)p->bytes) == 0;
}

static bool
map_file(struct piece *p)
{
	return open_file(p) && is_mapped(p, MAP_SHARED, PROT_READ | PROT_WRITE);
}

static bool
map_private_file(struct piece *p)
{
	return open_file(p) && is_mapped(p, MAP_PRIVATE, PROT_READ | PROT_WRITE);
}

static bool
map_read_only(struct piece *p)
{
	p->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return p->fd >= 0 && is_mapped(p, MAP_SHARED, PROT_READ);
}

static const struct kind {
	const char *name;
	bool (*map)(struct piece *p); /* NULL: the stack */
	bool shared;
	uint32_t access;
} kinds[] = {
	{"private", map_private, false, WRITES},
	{"stack", NULL, false, WRITES},
	{"private file mapping", map_private_file, false, WRITES},
	{"shared anonymous", map_anonymous, true, WRITES},
	{"SysV", map_sysv, true, WRITES},
	{"POSIX shm", map_posix, true, WRITES},
	{"memfd", map_memfd, true, WRITES},
	{"hugetlb", map_huge, true, WRITES},
	{"mapped file", map_file, true, WRITES},
	{"read-only file", map_read_only, true, READS},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static enum way
try_memory(struct softhca_pd *pd, const struct kind *kind, void *mem, size_t bytes)
{
	struct softhca_mr *mr = softhca_reg_mr(pd, mem, bytes, kind->access);
	enum way way = WAY_REFUSED;

	if (mr == NULL)
		return way;
	if (softhca_mr_is_slow(mr))
		way = WAY_SLOW;
	else
		way = kind->shared ? WAY_IN_PLACE : WAY_EXCHANGED;
	softhca_dereg_mr(mr);
	return way;
}

static enum way
try_kind(struct softhca_pd *pd, const struct kind *kind)
{
	struct piece p = {.mem = MAP_FAILED, .bytes = BYTES, .fd = -1};
	uint8_t on_stack[BYTES];
	enum way way = WAY_ABSENT;

	if (kind->map == NULL)
		return try_memory(pd, kind, on_stack, sizeof(on_stack));
	if (kind->map(&p))
		way = try_memory(pd, kind, p.mem, p.bytes);
	if (p.mem != MAP_FAILED && kind->map == map_sysv)
		shmdt(p.mem);
	else if (p.mem != MAP_FAILED)
		munmap(p.mem, p.bytes);
	if (p.fd >= 0)
		close(p.fd);
	return way;
}

/* "exchanged in place: private, stack; ..." of the ways that some kind has */
static void
list_ways(const enum way *ways, char *text, size_t room)
{
	static const char *const names[WAYS] = {
		[WAY_IN_PLACE] = "shared as it is",
		[WAY_EXCHANGED] = "exchanged in place",
		[WAY_SLOW] = "the slow way",
		[WAY_REFUSED] = "refused",
		[WAY_ABSENT] = "not on this machine now",
	};
	size_t at = 0;

	for (unsigned int way = 0; way < WAYS; way++) {
		const char *before = at != 0 ? "; " : "";
		bool any = false;

		for (size_t i = 0; i < KINDS && at < room; i++) {
			if (ways[i] != way)
				continue;
			at += (size_t)snprintf(text + at, room - at, "%s%s%s%s",
					       any ? ", " : before, any ? "" : names[way],
					       any ? "" : ": ", kinds[i].name);
			any = true;
		}
	}
}

void
doctor_memory(struct doctor *d, const char *name, const char *open_name)
{
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	enum way ways[KINDS];
	char text[512] = "";
	bool refused = false;

	if (softhca_open(open_name, &ctx) != 0)
		return; /* reported as a device that cannot be used */
	pd = softhca_alloc_pd(ctx);
	for (size_t i = 0; i < KINDS && pd != NULL; i++) {
		ways[i] = try_kind(pd, &kinds[i]);
		refused = refused || ways[i] == WAY_REFUSED;
	}
	if (pd != NULL)
		list_ways(ways, text, sizeof(text));
	softhca_close(ctx);
	if (pd == NULL)
		doctor_warn(d, "kinds", NULL, "%s: memory cannot be tried: %s", name,
			    softhca_last_error(NULL));
	else if (refused)
		doctor_warn(d, "kinds", "slow_memory = yes in section [memory]", "%s: %s", name,
			    text);
	else
		doctor_ok(d, "kinds", "%s: %s", name, text);
}
